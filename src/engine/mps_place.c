/* mps_place.c - directories of MPS daemons.
 *
 * <directory>/<uuid> is the pipe directory, <directory>/<uuid>.log has the logs: the same path for
 * every process of ours, so that a later one finds what an earlier one left.
 *
 * The daemon makes its sockets open to all, and a server that runs as the job's user opens files
 * in the pipe directory: so the directory decides who comes in. A POSIX access list names the
 * users (a group would let in its other members); the sticky bit keeps them from removing what is
 * not theirs. The list is written as the kernel takes it, which spares a library.
 *
 * A pid file may be stale and its number taken by another process: the process must have this
 * pipe directory in its environment. */
#include "engine/mps_place.h"

#include "core/file.h"
#include "core/str.h"
#include "core/units.h"
#include "engine/mps.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

enum {
    SUN_PATH = 108,
    SOCKET_BYTES = sizeof("/control_privileged"), /* the longest, with its end */
    ENVIRONMENT_MAX = 1024 * 1024, /* the kernel allows 6 MiB; ours has six variables */
    USERS_MAX = 64,                /* more than clients a server takes (60) */
    SHOWN = 80,
};

static const char pid_file[] = "nvidia-cuda-mps-control.pid";

static bool is_uuid(const char *device) {
    struct acre_str text = acre_str_from(device);
    for (size_t i = 0; i < text.length; i++) {
        if (strchr("0123456789abcdefABCDEFGPUMI-", text.data[i]) == NULL) {
            return false;
        }
    }
    return text.length >= 8 && text.length <= 64 &&
           (strncmp(device, "GPU-", 4) == 0 || strncmp(device, "MIG-", 4) == 0);
}

int acre_mps_place_init(struct acre_mps_place *place, const char *directory, const char *device,
                        struct acre_error *err) {
    char shown[SHOWN];
    if (!is_uuid(device)) {
        return acre_fail(err, ACRE_EINVALID, "GPU '%s'; accepted: a UUID such as GPU-1234abcd-...",
                         acre_str_show(acre_str_from(device), shown, sizeof(shown)));
    }
    size_t length = strlen(directory) + 1 + strlen(device);
    if (length + (size_t)SOCKET_BYTES > SUN_PATH) {
        return acre_fail(err, ACRE_ELIMIT,
                         "MPS directory '%s': too long for sockets; accepted: up to %zu bytes",
                         acre_str_show(acre_str_from(directory), shown, sizeof(shown)),
                         SUN_PATH - (size_t)SOCKET_BYTES - 1 - strlen(device));
    }
    snprintf(place->pipe, sizeof(place->pipe), "%s/%s", directory, device);
    snprintf(place->log, sizeof(place->log), "%s.log", place->pipe);
    return 0;
}

static int make_directory(const char *path, struct acre_error *err) {
    struct stat info;
    if (mkdir(path, 0700) != 0 && errno != EEXIST) {
        return acre_fail_errno(err, errno, "%s", path);
    }
    if (lstat(path, &info) != 0) {
        return acre_fail_errno(err, errno, "%s", path);
    }
    if (!S_ISDIR(info.st_mode) || info.st_uid != geteuid()) {
        return acre_fail(err, ACRE_EDENIED, "%s: is not a directory of ours; remove it", path);
    }
    return 0;
}

int acre_mps_place_prepare(const struct acre_mps_place *place, struct acre_error *err) {
    int r = make_directory(place->pipe, err);
    if (r == 0) {
        r = make_directory(place->log, err);
    }
    if (r < 0) {
        return r;
    }
    DIR *directory = opendir(place->pipe);
    if (directory == NULL) {
        return acre_fail_errno(err, errno, "%s", place->pipe);
    }
    const struct dirent *entry;
    while ((entry = readdir(directory)) != NULL) {
        unlinkat(dirfd(directory), entry->d_name, 0); /* . and .. refuse */
    }
    closedir(directory);
    return 0;
}

/* The kernel's form of an access list (system.posix_acl_access, version 2). */
struct acl_entry {
    uint16_t tag, permissions;
    uint32_t id;
};
struct acl {
    uint32_t version;
    struct acl_entry entries[USERS_MAX + 4];
};
_Static_assert(sizeof(struct acl_entry) == 8, "ABI");
enum { ACL_OWNER = 1, ACL_USER = 2, ACL_GROUP = 4, ACL_MASK = 16, ACL_OTHER = 32, ACL_RWX = 7 };

static bool set_list(const char *path, const uid_t *users, uint32_t count) {
    struct acl acl = {.version = 2};
    uint32_t used = 0;
    acl.entries[used++] = (struct acl_entry){ACL_OWNER, ACL_RWX, UINT32_MAX};
    for (uint32_t i = 0; i < count; i++) {
        acl.entries[used++] = (struct acl_entry){ACL_USER, ACL_RWX, users[i]};
    }
    acl.entries[used++] = (struct acl_entry){ACL_GROUP, 0, UINT32_MAX};
    acl.entries[used++] = (struct acl_entry){ACL_MASK, ACL_RWX, UINT32_MAX};
    acl.entries[used++] = (struct acl_entry){ACL_OTHER, 0, UINT32_MAX};
    size_t size = offsetof(struct acl, entries) + used * sizeof(acl.entries[0]);
    return setxattr(path, "system.posix_acl_access", &acl, size, 0) == 0;
}

static int admit(const char *path, const uid_t *users, uint32_t count, struct acre_error *err) {
    mode_t mode = S_ISVTX | 0700;
    if (count == 1 && users[0] == geteuid()) {
        removexattr(path, "system.posix_acl_access"); /* only ourselves: the mode says it all */
        return chmod(path, 0700) == 0 ? 0 : acre_fail_errno(err, errno, "%s", path);
    }
    if (chmod(path, mode) != 0) {
        return acre_fail_errno(err, errno, "%s", path);
    }
    if (count > USERS_MAX || !set_list(path, users, count)) {
        if (count <= USERS_MAX && errno != ENOTSUP) {
            return acre_fail_errno(err, errno, "%s: access list", path);
        }
        mode |= 0077;
    } else {
        mode |= 0070; /* with a list, the group bits are its mask */
    }
    return chmod(path, mode) == 0 ? 0 : acre_fail_errno(err, errno, "%s", path);
}

int acre_mps_place_admit(const struct acre_mps_place *place, const uid_t *users, uint32_t count,
                         struct acre_error *err) {
    int r = admit(place->pipe, users, count, err);
    return r == 0 ? admit(place->log, users, count, err) : r;
}

static bool has_line(const struct acre_buf *environment, const char *line) {
    struct acre_split parts =
        acre_split_begin((struct acre_str){environment->data, environment->length}, '\0');
    struct acre_str part;
    while (acre_split_next(&parts, &part)) {
        if (acre_str_is(part, line)) {
            return true;
        }
    }
    return false;
}

bool acre_mps_place_owns(const struct acre_mps_place *place, pid_t pid) {
    char path[64], line[ACRE_MPS_PATH + 40];
    struct acre_buf environment;
    snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
    snprintf(line, sizeof(line), "CUDA_MPS_PIPE_DIRECTORY=%s", place->pipe);
    acre_buf_init(&environment, ENVIRONMENT_MAX);
    bool owns = acre_file_read(path, ENVIRONMENT_MAX, &environment, NULL) == 0 &&
                has_line(&environment, line);
    acre_buf_finish(&environment);
    return owns;
}

pid_t acre_mps_place_daemon(const struct acre_mps_place *place) {
    char path[ACRE_MPS_PATH + sizeof(pid_file) + 1], number[16];
    struct acre_buf text;
    uint64_t pid = 0;
    snprintf(path, sizeof(path), "%s/%s", place->pipe, pid_file);
    acre_buf_init(&text, 64);
    if (acre_file_read(path, 64, &text, NULL) == 0) {
        struct acre_split lines = acre_split_begin((struct acre_str){text.data, text.length}, '\n');
        struct acre_str line;
        if (!acre_split_next(&lines, &line) ||
            !acre_str_copy(number, sizeof(number), acre_str_trim(line)) ||
            acre_parse_count("pid", number, 2, INT32_MAX, &pid, NULL) < 0) {
            pid = 0;
        }
    }
    acre_buf_finish(&text);
    return pid > 0 && acre_mps_place_owns(place, (pid_t)pid) ? (pid_t)pid : 0;
}

bool acre_mps_parse_servers(const char *text, size_t length, int64_t ret_pids[ACRE_MPS_SERVERS],
                            uint32_t *ret_count) {
    int64_t pids[ACRE_MPS_SERVERS];
    uint32_t count = 0;
    struct acre_split lines = acre_split_begin((struct acre_str){text, length}, '\n');
    struct acre_str line;
    while (acre_split_next(&lines, &line) && count < ACRE_MPS_SERVERS) {
        char number[16];
        uint64_t pid;
        line = acre_str_trim(line);
        if (line.length == 0) {
            continue;
        }
        if (!acre_str_copy(number, sizeof(number), line) ||
            acre_parse_count("pid", number, 1, INT32_MAX, &pid, NULL) < 0) {
            return false;
        }
        pids[count++] = (int64_t)pid;
    }
    memcpy(ret_pids, pids, count * sizeof(pids[0]));
    *ret_count = count;
    return true;
}

int acre_mps_find(const char *program, char ret_path[256], struct acre_error *err) {
    static const char more[] = "/usr/bin:/usr/local/bin:/usr/local/nvidia/bin";
    const char *path = getenv("PATH");
    char list[4096], shown[80];
    program = program != NULL ? program : "nvidia-cuda-mps-control";
    if (strchr(program, '/') != NULL) {
        snprintf(list, sizeof(list), "%s", program);
    } else {
        snprintf(list, sizeof(list), "%s:%s", path != NULL ? path : "", more);
    }
    struct acre_split parts = acre_split_begin(acre_str_from(list), ':');
    struct acre_str part;
    while (acre_split_next(&parts, &part)) {
        char candidate[256];
        int length = strchr(program, '/') != NULL
                         ? snprintf(candidate, sizeof(candidate), "%s", program)
                         : snprintf(candidate, sizeof(candidate), "%.*s/%s", (int)part.length,
                                    part.data, program);
        if (length > 0 && (size_t)length < sizeof(candidate) && candidate[0] == '/' &&
            access(candidate, X_OK) == 0) {
            snprintf(ret_path, 256, "%s", candidate);
            return 0;
        }
    }
    return acre_fail(err, ACRE_EUNAVAILABLE,
                     "MPS: no program %s in PATH or %s (it comes with the NVIDIA driver)",
                     acre_str_show(acre_str_from(program), shown, sizeof(shown)), more);
}
