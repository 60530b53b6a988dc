/* mps_process.c - the processes of MPS daemons, known by what users cannot forge.
 *
 * Any user can start a program with any name and environment, and what stands in the pid file may
 * be stale or a lie. So a daemon is the process that listens on the socket in our pipe directory,
 * where only we can make one: the kernel says which it is (SO_PEERCRED). The pid file is a second
 * hint, for a daemon that is too busy to be connected to or inherited its socket from a parent.
 * Either way the process must be our user's in all its uids (a set-user-id program keeps the real
 * one of its caller), run the control program, and have this pipe directory in its environment.
 *
 * A daemon for several users runs its servers as our user, and we start no other kind as root: so
 * a process of another user is no server of ours, whatever list it stands on. */
#include "engine/mps_process.h"

#include "core/file.h"
#include "core/str.h"
#include "core/units.h"
#include "engine/mps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    ENVIRONMENT_MAX = 1024 * 1024, /* the kernel allows 6 MiB; ours has six variables */
    STATUS_BYTES = 2048,           /* the lines we look for are among the first */
    COMM_BYTES = 15,               /* of a name, as the kernel keeps it */
};

static const char default_program[] = "nvidia-cuda-mps-control";
static const char pid_file[] = "nvidia-cuda-mps-control.pid";

static void path_of(char path[64], pid_t pid, const char *name) {
    snprintf(path, 64, "/proc/%d/%s", (int)pid, name);
}

/* --- one process --- */

/* Numbers after "<field>:" in its status; false when there are fewer. */
static bool read_status(pid_t pid, const char *field, uint32_t *ret_numbers, uint32_t count) {
    char path[64], text[STATUS_BYTES], start[16];
    path_of(path, pid, "status");
    snprintf(start, sizeof(start), "\n%s:", field);
    const char *line = strstr(acre_file_peek(path, text, sizeof(text)), start);
    if (line == NULL) {
        return false;
    }
    line += strlen(start);
    for (uint32_t i = 0; i < count; i++) {
        char *end;
        ret_numbers[i] = (uint32_t)strtoul(line, &end, 10);
        if (end == line) {
            return false;
        }
        line = end;
    }
    return true;
}

static bool is_ours(pid_t pid) {
    uint32_t uids[4]; /* real, effective, saved, of files */
    bool ours = read_status(pid, "Uid", uids, ACRE_COUNT(uids));
    for (size_t i = 0; ours && i < ACRE_COUNT(uids); i++) {
        ours = uids[i] == geteuid();
    }
    return ours;
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

/* Was it started for this place? */
static bool has_place(const struct mps_paths *paths, pid_t pid) {
    char path[64], line[ACRE_MPS_PATH + 40];
    struct acre_buf environment;
    path_of(path, pid, "environ");
    snprintf(line, sizeof(line), "CUDA_MPS_PIPE_DIRECTORY=%s", paths->pipe);
    acre_buf_init(&environment, ENVIRONMENT_MAX);
    bool has = acre_file_read(path, ENVIRONMENT_MAX, &environment, NULL) == 0 &&
               has_line(&environment, line);
    acre_buf_finish(&environment);
    return has;
}

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* By its file, or, where that is the interpreter of a script, by the name the kernel gave it. */
static bool runs(const char *program, pid_t pid) {
    char path[64], text[512];
    const char *name = base_name(program != NULL ? program : default_program);
    path_of(path, pid, "exe");
    ssize_t length = readlink(path, text, sizeof(text) - 1);
    text[length > 0 ? length : 0] = '\0';
    char *removed = strstr(text, " (deleted)"); /* the driver was updated */
    if (removed != NULL) {
        *removed = '\0';
    }
    if (strcmp(base_name(text), name) == 0) {
        return true;
    }
    path_of(path, pid, "comm");
    acre_file_peek(path, text, sizeof(text));
    text[strcspn(text, "\n")] = '\0';
    return text[0] != '\0' && strncmp(text, name, COMM_BYTES) == 0;
}

bool mps_process_is_daemon(const struct mps_paths *paths, const char *program, pid_t pid) {
    return is_ours(pid) && runs(program, pid) && has_place(paths, pid);
}

bool mps_process_is_server(const struct mps_paths *paths, pid_t daemon, pid_t pid) {
    ACRE_ASSERT(daemon > 0);
    uint32_t parent = 0;
    if (!is_ours(pid)) {
        return false;
    }
    bool is_child = read_status(pid, "PPid", &parent, 1) && (pid_t)parent == daemon;
    return is_child || has_place(paths, pid);
}

/* --- the daemon --- */

/* Who listens on the socket, as the kernel says; 0: nobody, or somebody else than our user. The
 * connection says nothing and is closed again, as those of CUDA do when they look for a daemon. */
static pid_t ask_socket(int directory) {
    static const int types[] = {SOCK_SEQPACKET, SOCK_STREAM}; /* the first is the vendor's today */
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct ucred peer = {0};
    snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/control", directory);
    for (size_t i = 0; i < ACRE_COUNT(types) && peer.pid == 0; i++) {
        socklen_t size = sizeof(peer);
        int fd = socket(AF_UNIX, types[i] | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0 ||
            getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
            peer.pid = 0;
        }
        if (fd >= 0) {
            close(fd);
        }
    }
    return peer.uid == geteuid() ? peer.pid : 0;
}

static pid_t read_pid_file(int directory) {
    char text[16];
    struct stat info;
    uint64_t pid = 0;
    int fd = openat(directory, pid_file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        return 0;
    }
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == geteuid()) {
        ssize_t got = pread(fd, text, sizeof(text) - 1, 0);
        text[got > 0 ? got : 0] = '\0';
        text[strcspn(text, "\n")] = '\0';
        if (acre_parse_count("pid", text, 2, INT32_MAX, &pid, NULL) < 0) {
            pid = 0;
        }
    }
    close(fd);
    return (pid_t)pid;
}

pid_t mps_process_find(const struct mps_paths *paths, const char *program) {
    int directory = mps_paths_open(paths, NULL);
    if (directory < 0) {
        return 0;
    }
    pid_t pid = ask_socket(directory);
    if (pid <= 0 || !mps_process_is_daemon(paths, program, pid)) {
        pid = read_pid_file(directory);
    }
    close(directory);
    return pid > 0 && mps_process_is_daemon(paths, program, pid) ? pid : 0;
}

bool mps_parse_servers(const char *text, size_t length, int64_t ret_pids[ACRE_MPS_SERVERS],
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

int mps_find(const char *program, char ret_path[256], struct acre_error *err) {
    static const char more[] = "/usr/bin:/usr/local/bin:/usr/local/nvidia/bin";
    const char *path = getenv("PATH");
    char list[4096], shown[80];
    program = program != NULL ? program : default_program;
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
    return acre_fail(
        err, ACRE_EUNAVAILABLE,
        "MPS: cannot find the program %s in PATH or %s (it comes with the NVIDIA driver)",
        acre_str_show(acre_str_from(program), shown, sizeof(shown)), more);
}
