/* pocl.c - see pocl.h.
 *
 * The check creates and writes nothing: PoCL does that itself. The directory in TMPDIR stays, like
 * any cache, and is used again. A directory that others could have created or may write to is not
 * used, because its contents are executed. */
#include "opencl/pocl.h"

#include "core/base.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/single_threaded.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { ROOM_MIN_BYTES = 16 << 20 }; /* a program and its kernels take some hundred KiB */

static const char chosen[] = "POCL_CACHE_DIR";

static const char *setting(const char *variable) {
    const char *value = getenv(variable);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

bool acre_pocl_directory(char path[PATH_MAX]) {
    static const struct {
        const char *variable, *below;
    } rows[] = {{chosen, ""}, {"XDG_CACHE_HOME", "/pocl/kcache"}, {"HOME", "/.cache/pocl/kcache"}};
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        const char *base = setting(rows[i].variable);
        if (base != NULL) {
            return snprintf(path, PATH_MAX, "%s%s", base, rows[i].below) < PATH_MAX;
        }
    }
    return snprintf(path, PATH_MAX, "/tmp/pocl/kcache") < PATH_MAX;
}

/* Where a missing directory would be made: "/a/b" to "/a" to "/". False: there is nothing above. */
static bool go_up(char *path) {
    char *slash = strrchr(path, '/');
    if (strcmp(path, "/") == 0 || strcmp(path, ".") == 0) {
        return false;
    }
    if (slash == NULL) {
        snprintf(path, PATH_MAX, ".");
    } else {
        slash[slash == path] = '\0';
    }
    return true;
}

int acre_pocl_trouble(const char *directory) {
    char path[PATH_MAX];
    struct stat info;
    struct statvfs room;
    if (snprintf(path, sizeof(path), "%s", directory) >= (int)sizeof(path)) {
        return ENAMETOOLONG;
    }
    while (stat(path, &info) != 0) {
        if (errno != ENOENT || !go_up(path)) {
            return errno;
        }
    }
    if (!S_ISDIR(info.st_mode)) {
        return ENOTDIR;
    }
    struct statfs kind; /* root may write there, for all access() knows */
    if (statfs(path, &kind) == 0 &&
        (kind.f_type == PROC_SUPER_MAGIC || kind.f_type == SYSFS_MAGIC)) {
        return EROFS;
    }
    if (access(path, W_OK | X_OK) != 0) {
        return errno;
    }
    bool is_told = statvfs(path, &room) == 0 && room.f_blocks > 0;
    bool is_full = is_told && (room.f_bavail < ROOM_MIN_BYTES / ACRE_MAX(room.f_frsize, 1UL) ||
                               (room.f_files > 0 && room.f_favail == 0));
    return is_full ? ENOSPC : 0;
}

static bool is_ours(const char *path) {
    struct stat info;
    return lstat(path, &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == geteuid() &&
           (info.st_mode & (S_IRWXG | S_IRWXO)) == 0;
}

void acre_pocl_settle(void) {
    char path[PATH_MAX];
    if (setting(chosen) != NULL || !acre_pocl_directory(path) || acre_pocl_trouble(path) == 0) {
        return;
    }
    const char *base = setting("TMPDIR");
    if (snprintf(path, sizeof(path), "%s/acre-pocl-%u", base != NULL ? base : "/tmp", geteuid()) >=
        (int)sizeof(path)) {
        return;
    }
    (void)mkdir(path, S_IRWXU); /* it may be there */
    if (is_ours(path) && acre_pocl_trouble(path) == 0) {
        setenv(chosen, path, 1);
    }
}

void acre_pocl_settle_alone(void) {
    if (__libc_single_threaded) {
        acre_pocl_settle();
    }
}
