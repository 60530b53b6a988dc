/* cache.c - who may be in PoCL's directory of programs.
 *
 * PoCL keeps every program as a directory of files, named by a hash of its source. When it compiles
 * the source again it removes the program's file and writes it anew. Whoever asks for the bytes of
 * that program meanwhile, in this process or another, gets them without it; and a process that
 * loads such bytes is ended by an assertion. So who compiles has the directory alone, and those who
 * load share it. Launches need no such thing: what they add is complete when it gets its name.
 *
 * The lock is flock() on a file in that directory, each time opened anew: so it holds between
 * threads too, and it ends with its process. Where there is no such file (a full or read-only disk)
 * we go on without: PoCL then has the same trouble, and tells it better. */
#include "compute/opencl/place.h"
#include "opencl/pocl.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

int opencl_cache_open(const struct acre_opencl_query *query, opencl_platform platform) {
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

int opencl_cache_hold(const struct opencl_place *place, bool is_alone) {
    int fd = place->cache_fd < 0 ? -1
                                 : openat(place->cache_fd, "acre.lock",
                                          O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    while (fd >= 0 && flock(fd, is_alone ? LOCK_EX : LOCK_SH) < 0) {
        if (errno != EINTR) {
            close(fd);
            fd = -1;
        }
    }
    return fd;
}

void opencl_cache_release(int held) {
    if (held >= 0) {
        flock(held, LOCK_UN); /* said aloud: a child of this moment may have inherited it */
        close(held);
    }
}
