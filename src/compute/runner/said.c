/* said.c - see said.h. If no descriptor is available, nothing changes. */
#include "compute/runner/said.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SAID_MAX_BYTES = 64 << 10 };

struct said said_begin(void) {
    struct said said = {.file = memfd_create("acre-said", MFD_CLOEXEC), .before = -1};
    if (said.file >= 0) {
        said.before = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    }
    if (said.before >= 0 && dup2(said.file, STDERR_FILENO) < 0) {
        close(said.before);
        said.before = -1;
    }
    return said;
}

void said_end(struct said said, struct acre_buf *log) {
    char part[4096];
    off_t at = 0;
    if (said.before >= 0) {
        dup2(said.before, STDERR_FILENO);
        close(said.before);
        for (ssize_t n; at < SAID_MAX_BYTES && (n = pread(said.file, part, sizeof(part), at)) > 0;
             at += n) {
            (void)acre_buf_append(log, part, (size_t)n);
        }
    }
    if (said.file >= 0) {
        close(said.file);
    }
}
