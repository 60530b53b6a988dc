/* pocl_cache.c - who may use PoCL's directory of programs, and when.
 *
 * PoCL keeps every program as a directory of files, named by a hash of its source. When it compiles
 * the source again, it removes the program's file and writes it again. A caller that asks for the
 * bytes of that program meanwhile, in this process or another, gets them without it; and a process
 * that loads such bytes dies of an assertion. So compiling locks the directory exclusively, and
 * loading shares it. Launches need no lock: the files they add are complete when they get their
 * names.
 *
 * The lock is flock() on a file in that directory, opened each time: so it also works between
 * threads, and ends with its process. If the file cannot be opened (a full or read-only disk), we
 * continue without: PoCL then has the same trouble, and reports it better. */
#include "compute/opencl/seat.h"
#include "opencl/pocl.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

int pocl_cache_open(const struct acre_opencl_query *query, opencl_platform platform) {
    char text[ACRE_OPENCL_TEXT_MAX];
    char path[PATH_MAX];
    struct acre_str version =
        acre_opencl_platform_text(query, platform, OPENCL_PLATFORM_VERSION, text, sizeof(text) - 1);
    char name[ACRE_OPENCL_TEXT_MAX + 1];
    snprintf(name, sizeof(name), "%.*s", (int)version.length, version.data);
    if (strcasestr(name, "pocl") == NULL || !acre_pocl_directory(path)) {
        return -1;
    }
    return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

int pocl_cache_enter(const struct opencl_seat *seat, bool is_alone) {
    int fd = seat->cache_fd < 0 ? -1
                                : openat(seat->cache_fd, "acre.lock",
                                         O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    while (fd >= 0 && flock(fd, is_alone ? LOCK_EX : LOCK_SH) < 0) {
        if (errno != EINTR) {
            close(fd);
            fd = -1;
        }
    }
    return fd;
}

void pocl_cache_leave(int entered) {
    if (entered >= 0) {
        flock(entered, LOCK_UN); /* said aloud: a child of this moment may have inherited it */
        close(entered);
    }
}
