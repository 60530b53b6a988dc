/* mps_paths.c - directories of MPS daemons.
 *
 * <home>/<uuid> is the pipe directory, <home>/<uuid>.log has the logs: the same path for every
 * process of ours, so that a later one finds what an earlier one left.
 *
 * The path is public, and NVIDIA's daemon, which is root's, opens its files by name
 * with umask 0 and follows links. So only we may ever make something in these directories: they
 * are new for each start, closed until the daemon has made its files, and then users get the right
 * to pass through the pipe directory to the sockets (clients need no more), and none on the logs.
 * Of the daemon's own files, which are 0666, the plain ones lose the right to be written by others.
 *
 * A POSIX access list names the users (a group would let in its other members). The list is
 * written as the kernel takes it, which spares a library, and in one call: a user who stays is
 * never locked out for a moment. Where the file system keeps no lists all users may pass through
 * while the daemon runs, and still none may write.
 *
 * Everything is done by descriptors of directories that were found to be ours, without following
 * links. */
#include "engine/mps_paths.h"

#include "core/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

enum {
    SUN_PATH = 108,
    SOCKET_BYTES = sizeof("/control_privileged"), /* the longest, with its end */
    USERS_MAX = 1000,                             /* shares are thousandths */
    LEVELS_MAX = 16,                              /* one descriptor each; daemons make none */
    NAME_BYTES = 80,                              /* a UUID and ".log.old" */
    SHOWN = 80,
};

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

int mps_paths_init(struct mps_paths *paths, const char *home, const char *device,
                   struct acre_error *err) {
    char shown[SHOWN];
    if (!is_uuid(device)) {
        return acre_fail(err, ACRE_EINVALID,
                         "GPU '%s' is not a UUID; accepted: one like GPU-1234abcd-...",
                         acre_str_show(acre_str_from(device), shown, sizeof(shown)));
    }
    size_t length = strlen(home) + 1 + strlen(device);
    if (length + (size_t)SOCKET_BYTES > SUN_PATH) {
        return acre_fail(err, ACRE_ELIMIT,
                         "MPS directory '%s' is too long for sockets; accepted: at most %zu bytes",
                         acre_str_show(acre_str_from(home), shown, sizeof(shown)),
                         SUN_PATH - (size_t)SOCKET_BYTES - 1 - strlen(device));
    }
    snprintf(paths->home, sizeof(paths->home), "%s", home);
    snprintf(paths->pipe, sizeof(paths->pipe), "%s/%s", home, device);
    snprintf(paths->log, sizeof(paths->log), "%s.log", paths->pipe);
    return 0;
}

/* --- directories of ours --- */

/* Open `name` in the directory `at` (or a path, AT_FDCWD); `path` is for the error. */
static int open_own(int at, const char *name, const char *path, struct acre_error *err) {
    struct stat info;
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && (errno == ENOTDIR || errno == ELOOP)) {
        return acre_fail(err, ACRE_EDENIED, "%s is not a directory; remove it", path);
    }
    if (fd < 0 || fstat(fd, &info) != 0) {
        int errnum = errno;
        if (fd >= 0) {
            close(fd);
        }
        return acre_fail_errno(err, errnum, "%s", path);
    }
    if (info.st_uid != geteuid()) {
        close(fd);
        return acre_fail(err, ACRE_EDENIED,
                         "%s belongs to uid %u; accepted: uid %u, which runs the daemon", path,
                         (unsigned)info.st_uid, (unsigned)geteuid());
    }
    return fd;
}

static int open_home(const char *home, struct acre_error *err) {
    if (mkdir(home, 0711) != 0 && errno != EEXIST) {
        return acre_fail_errno(err, errno, "%s", home);
    }
    int fd = open_own(AT_FDCWD, home, home, err);
    if (fd >= 0 && fchmod(fd, 0711) != 0) { /* whatever the umask says, and who made it */
        int errnum = errno;
        close(fd);
        return acre_fail_errno(err, errnum, "%s", home);
    }
    return fd;
}

int mps_paths_make_home(const char *home, struct acre_error *err) {
    int fd = open_home(home, err);
    if (fd >= 0) {
        close(fd);
    }
    return fd < 0 ? fd : 0;
}

static const char *name_of(const char *path) {
    return strrchr(path, '/') + 1;
}

int mps_paths_open(const struct mps_paths *paths, struct acre_error *err) {
    int home = open_own(AT_FDCWD, paths->home, paths->home, err);
    if (home < 0) {
        return home;
    }
    int fd = open_own(home, name_of(paths->pipe), paths->pipe, err);
    close(home);
    return fd;
}

/* --- who may enter --- */

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
enum { ACL_OWNER = 1, ACL_USER = 2, ACL_GROUP = 4, ACL_MASK = 16, ACL_OTHER = 32 };
enum { ACL_PASS = 1, ACL_ALL = 7 };

/* All rights for the owner, the right to pass through for these users, none for the rest. */
static int set_access(int fd, const uid_t *users, uint32_t count) {
    struct acl acl = {.version = 2};
    uint32_t used = 0, named = 0;
    acl.entries[used++] = (struct acl_entry){ACL_OWNER, ACL_ALL, UINT32_MAX};
    for (uint32_t i = 0; i < count; i++) {
        if (users[i] != geteuid()) {
            acl.entries[used++] = (struct acl_entry){ACL_USER, ACL_PASS, users[i]};
            named++;
        }
    }
    acl.entries[used++] = (struct acl_entry){ACL_GROUP, 0, UINT32_MAX};
    if (named > 0) { /* a list without names is a mode, and the kernel makes it one */
        acl.entries[used++] = (struct acl_entry){ACL_MASK, ACL_PASS, UINT32_MAX};
    }
    acl.entries[used++] = (struct acl_entry){ACL_OTHER, 0, UINT32_MAX};
    size_t size = offsetof(struct acl, entries) + used * sizeof(acl.entries[0]);
    if (fsetxattr(fd, "system.posix_acl_access", &acl, size, 0) == 0) {
        return 0;
    }
    return errno == ENOTSUP ? fchmod(fd, named > 0 ? 0711 : 0700) : -1;
}

/* Take the right to write `name` from others, if it is a plain file or a FIFO of ours. */
static int protect(int at, const char *name) {
    struct stat info;
    if (fstatat(at, name, &info, AT_SYMLINK_NOFOLLOW) != 0 ||
        (!S_ISREG(info.st_mode) && !S_ISFIFO(info.st_mode))) {
        return 0;
    }
    int fd = openat(at, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        return errno == ENOENT ? 0 : -1; /* the daemon may be ending */
    }
    int r = 0;
    if (fstat(fd, &info) == 0 && info.st_uid == geteuid() && (info.st_mode & 0022) != 0) {
        r = fchmod(fd, info.st_mode & 07755);
    }
    close(fd);
    return r;
}

/* What is in the directory `fd`, with a position of its own. NULL: errno says why. */
static DIR *walk(int fd) {
    int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = copy >= 0 ? fdopendir(copy) : NULL;
    if (directory == NULL && copy >= 0) {
        int error = errno;
        close(copy);
        errno = error;
    }
    return directory;
}

/* The daemon lets everybody write its plain files and the FIFO that feeds its log, and users who
 * pass through know their names: the pid file could lie to us, and any of them could fill the file
 * system. Clients only need the sockets. */
static int protect_files(int fd, const char *path, struct acre_error *err) {
    DIR *directory = walk(fd);
    if (directory == NULL) {
        return acre_fail_errno(err, errno, "%s", path);
    }
    const struct dirent *entry;
    int r = 0;
    while (r == 0 && (entry = readdir(directory)) != NULL) {
        if (protect(fd, entry->d_name) != 0) {
            r = acre_fail_errno(err, errno, "%s/%s", path, entry->d_name);
        }
    }
    closedir(directory);
    return r;
}

int mps_paths_admit(const struct mps_paths *paths, const uid_t *users, uint32_t count,
                    struct acre_error *err) {
    if (count > USERS_MAX) {
        return acre_fail(err, ACRE_ELIMIT,
                         "%s: %u users are too many; accepted: at most %d sharing a GPU",
                         paths->pipe, count, USERS_MAX);
    }
    int fd = mps_paths_open(paths, err);
    if (fd < 0) {
        return fd;
    }
    int r = protect_files(fd, paths->pipe, err);
    if (r == 0 && set_access(fd, users, count) != 0) {
        r = acre_fail_errno(err, errno, "%s: cannot set the access list for %u users", paths->pipe,
                            count);
    }
    close(fd);
    return r;
}

void mps_paths_close(const struct mps_paths *paths) {
    int fd = mps_paths_open(paths, NULL);
    if (fd >= 0) { /* if not, there is nothing to enter */
        set_access(fd, NULL, 0);
        close(fd);
    }
}

/* --- new ones --- */

static int erase(int at, const char *name, const char *path, uint32_t levels,
                 struct acre_error *err);

/* Remove all that is in the directory `fd`. */
static int empty(int fd, const char *path, uint32_t levels, struct acre_error *err) {
    DIR *directory = walk(fd);
    if (directory == NULL) {
        return acre_fail_errno(err, errno, "%s", path);
    }
    const struct dirent *entry;
    int r = 0;
    while (r == 0 && (entry = readdir(directory)) != NULL) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || unlinkat(fd, name, 0) == 0) {
            continue;
        }
        r = errno == EISDIR || errno == EPERM ? erase(fd, name, path, levels, err)
                                              : acre_fail_errno(err, errno, "%s/%s", path, name);
    }
    closedir(directory);
    return r;
}

/* Remove the directory `name` in `at`, and all in it; what is mounted there stays, and fails. */
static int erase(int at, const char *name, const char *path, uint32_t levels,
                 struct acre_error *err) {
    struct stat above, info;
    if (levels == 0) {
        return acre_fail(err, ACRE_ELIMIT,
                         "%s: directories more than %d levels deep; remove it by hand", path,
                         LEVELS_MAX);
    }
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        return acre_fail_errno(err, errno, "%s: %s", path, name);
    }
    int r = 0;
    if (fstat(at, &above) != 0 || fstat(fd, &info) != 0 || above.st_dev != info.st_dev) {
        r = acre_fail(err, ACRE_EDENIED, "%s: %s: something is mounted there; unmount it", path,
                      name);
    }
    r = r == 0 ? empty(fd, path, levels - 1, err) : r;
    close(fd);
    if (r == 0 && unlinkat(at, name, AT_REMOVEDIR) != 0) {
        r = acre_fail_errno(err, errno, "%s: %s", path, name);
    }
    return r;
}

/* Out of the way with the directory that is at `path`, if any: as `aside`, or removed (NULL). */
static int put_aside(int home, const char *path, const char *aside, struct acre_error *err) {
    struct stat info;
    if (fstatat(home, name_of(path), &info, AT_SYMLINK_NOFOLLOW) != 0) {
        return errno == ENOENT ? 0 : acre_fail_errno(err, errno, "%s", path);
    }
    int fd = open_own(home, name_of(path), path, err); /* what is not ours is not ours to remove */
    if (fd < 0) {
        return fd;
    }
    int r = set_access(fd, NULL, 0) == 0 ? 0 : acre_fail_errno(err, errno, "%s", path);
    close(fd);
    if (r == 0 && aside == NULL) {
        r = erase(home, name_of(path), path, LEVELS_MAX, err);
    } else if (r == 0 && renameat(home, name_of(path), home, aside) != 0) {
        r = acre_fail_errno(err, errno, "%s", path);
    }
    return r;
}

static int make_new(int home, const char *path, struct acre_error *err) {
    if (mkdirat(home, name_of(path), 0700) != 0) {
        return acre_fail_errno(err, errno, "%s", path);
    }
    int fd = open_own(home, name_of(path), path, err);
    if (fd < 0) {
        return fd;
    }
    /* Lists can be inherited. */
    int r = set_access(fd, NULL, 0) == 0 ? 0 : acre_fail_errno(err, errno, "%s", path);
    close(fd);
    return r;
}

int mps_paths_renew(const struct mps_paths *paths, struct acre_error *err) {
    char old_log[ACRE_MPS_PATH + 16], old_name[NAME_BYTES];
    snprintf(old_log, sizeof(old_log), "%s.old", paths->log);
    snprintf(old_name, sizeof(old_name), "%s", name_of(old_log));
    int home = open_home(paths->home, err);
    if (home < 0) {
        return home;
    }
    int r = put_aside(home, paths->pipe, NULL, err);
    r = r == 0 ? put_aside(home, old_log, NULL, err) : r;
    r = r == 0 ? put_aside(home, paths->log, old_name, err) : r;
    r = r == 0 ? make_new(home, paths->pipe, err) : r;
    r = r == 0 ? make_new(home, paths->log, err) : r;
    close(home);
    return r;
}
