/* file.c - reads and writes whole files.
 *
 * Reading uses fstat only for the kind of file, never for its size: proc and sysfs report 0 or 4096
 * whatever they hold. It reads until the end or one byte past the limit. Opening does not block,
 * so a FIFO is refused instead of waited for.
 *
 * Writing creates a new file on the same file system, syncs it and renames it over the target: a
 * reader sees the old bytes or the new ones, even after a crash. The new file has no name until it
 * is complete (O_TMPFILE), so an interrupted program leaves nothing behind. If the file system does
 * not support that, the new file is created next to the target. */
#include "core/file.h"

#include "core/str.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PIECE_BYTES = 16384, PATH_SHOWN = 200, NAME_KEPT = 100, PROC_MAX = 32 };

static int refuse_kind(const char *shown, mode_t mode, struct acre_error *err) {
    if (S_ISDIR(mode)) {
        return acre_fail(err, ACRE_EINVALID, "%s: is a directory; accepted: a file", shown);
    }
    return acre_fail(err, ACRE_EINVALID, "%s: is %s; accepted: a file", shown,
                     S_ISLNK(mode) ? "a symbolic link" : "not a regular file");
}

static int read_all(int fd, const char *shown, size_t max_bytes, struct acre_buf *buf,
                    struct acre_error *err) {
    size_t total = 0;
    for (;;) {
        char piece[PIECE_BYTES];
        ssize_t got = read(fd, piece, sizeof(piece));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return acre_fail_errno(err, errno, "%s", shown);
        }
        if (got == 0) {
            return 0;
        }
        total += (size_t)got;
        if (total > max_bytes || acre_buf_append(buf, piece, (size_t)got) < 0) {
            return acre_fail(err, ACRE_ELIMIT, "%s: too large; accepted: at most %zu bytes", shown,
                             ACRE_MIN(max_bytes, buf->max));
        }
    }
}

static int check_private(const char *shown, const struct stat *info, struct acre_error *err) {
    if (info->st_uid != geteuid()) {
        return acre_fail(err, ACRE_EDENIED,
                         "%s: belongs to uid %u; accepted: a file that belongs to you", shown,
                         info->st_uid);
    }
    if ((info->st_mode & (S_IRWXG | S_IRWXO)) != 0) {
        return acre_fail(err, ACRE_EDENIED,
                         "%s: mode %04o lets other users read this secret; accepted: 0600 or 0400 "
                         "(chmod 600 %s)",
                         shown, info->st_mode & 07777U, shown);
    }
    return 0;
}

static int read_file(const char *path, size_t max_bytes, bool is_private, struct acre_buf *buf,
                     struct acre_error *err) {
    char shown[PATH_SHOWN];
    acre_str_show(acre_str_from(path), shown, sizeof(shown));
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        return acre_fail_errno(err, errno, "%s", shown);
    }
    struct stat info;
    int r;
    if (fstat(fd, &info) != 0) {
        r = acre_fail_errno(err, errno, "%s", shown);
    } else if (!S_ISREG(info.st_mode)) {
        r = refuse_kind(shown, info.st_mode, err);
    } else if (is_private && check_private(shown, &info, err) < 0) {
        r = ACRE_EDENIED;
    } else {
        size_t length = buf->length;
        bool failed = buf->failed;
        r = read_all(fd, shown, max_bytes, buf, err);
        if (r < 0) {
            buf->length = length;
            buf->data[length] = '\0';
            buf->failed = failed;
        }
    }
    close(fd);
    return r;
}

int acre_file_read(const char *path, size_t max_bytes, struct acre_buf *buf,
                   struct acre_error *err) {
    return read_file(path, max_bytes, false, buf, err);
}

int acre_file_read_private(const char *path, size_t max_bytes, struct acre_buf *buf,
                           struct acre_error *err) {
    return read_file(path, max_bytes, true, buf, err);
}

const char *acre_file_peek(const char *path, char *text, size_t size) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, text, size - 1) : -1;
    if (fd >= 0) {
        close(fd);
    }
    text[got > 0 ? got : 0] = '\0';
    return text;
}

static int write_all(int fd, const char *bytes, size_t length) {
    while (length > 0) {
        ssize_t put = write(fd, bytes, length);
        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put < 0) {
            return -1;
        }
        bytes += put;
        length -= (size_t)put;
    }
    return fsync(fd);
}

/* "out.npy.<16 digits>.tmp" beside it; of a name that is long only the beginning, up to a whole
 * character: the longest that a file may have is the file's own. */
static bool name_temporary(const char *path, char temporary[PATH_MAX]) {
    const char *slash = strrchr(path, '/');
    size_t folder = slash != NULL ? (size_t)(slash - path) + 1 : 0;
    size_t name = ACRE_MIN(strlen(path + folder), (size_t)NAME_KEPT);
    while (name > 0 && (path[folder + name] & 0xc0) == 0x80) {
        name--;
    }
    uint64_t unique = 0;
    return folder < PATH_MAX && getrandom(&unique, sizeof(unique), 0) == sizeof(unique) &&
           snprintf(temporary, PATH_MAX, "%.*s.%016" PRIx64 ".tmp", (int)(folder + name), path,
                    unique) < PATH_MAX;
}

/* By which a file without a name is given one. */
static char *proc_path(int fd, char text[PROC_MAX]) {
    snprintf(text, PROC_MAX, "/proc/self/fd/%d", fd);
    return text;
}

/* In the folder of `path`; -1: not here, or not at all, which making one with a name will tell. */
static int open_nameless(const char *path, mode_t mode) {
    char folder[PATH_MAX] = ".", proc[PROC_MAX];
    const char *slash = strrchr(path, '/');
    struct acre_str before = {path, slash != NULL ? (size_t)(slash - path) + 1 : 0};
    if (slash != NULL && !acre_str_copy(folder, sizeof(folder), before)) {
        return -1;
    }
    int fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
    if (fd >= 0 && access(proc_path(fd, proc), F_OK) != 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

int acre_draft_begin(struct acre_draft *draft, const char *path, struct acre_error *err) {
    char shown[PATH_SHOWN];
    acre_str_show(acre_str_from(path), shown, sizeof(shown));
    struct stat info = {.st_mode = S_IFREG | 0666}; /* what the umask leaves of it */
    /* A rename would put the file in the place of a link, /dev/stdout for one. */
    if (lstat(path, &info) == 0) {
        if (!S_ISREG(info.st_mode)) {
            return refuse_kind(shown, info.st_mode, err);
        }
    } else if (errno != ENOENT) { /* a name that cannot be, for one */
        return acre_fail_errno(err, errno, "%s", shown);
    }
    if (!name_temporary(path, draft->temporary)) {
        return acre_fail_errno(err, ENAMETOOLONG, "%s", shown);
    }
    mode_t mode = info.st_mode & 0777;
    int fd = open_nameless(path, mode);
    draft->is_named = fd < 0;
    if (fd < 0) {
        fd = open(draft->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    }
    if (fd < 0) {
        return acre_fail_errno(err, errno, "%s", shown);
    }
    draft->path = path;
    draft->fd = fd;
    return 0;
}

static int fail_draft(const struct acre_draft *draft, int errnum, struct acre_error *err) {
    char shown[PATH_SHOWN];
    return acre_fail_errno(err, errnum, "%s",
                           acre_str_show(acre_str_from(draft->path), shown, sizeof(shown)));
}

/* Some file systems tell only now that it was not written. */
static int close_draft(struct acre_draft *draft, struct acre_error *err) {
    int fd = draft->fd;
    draft->fd = -1;
    return close(fd) == 0 ? 0 : fail_draft(draft, errno, err);
}

int acre_draft_write(struct acre_draft *draft, const void *bytes, size_t length,
                     struct acre_error *err) {
    if (write_all(draft->fd, bytes, length) != 0) {
        return fail_draft(draft, errno, err);
    }
    return draft->is_named ? close_draft(draft, err) : 0;
}

int acre_draft_name(struct acre_draft *draft, struct acre_error *err) {
    char proc[PROC_MAX];
    if (draft->is_named) {
        return 0;
    }
    if (linkat(AT_FDCWD, proc_path(draft->fd, proc), AT_FDCWD, draft->temporary,
               AT_SYMLINK_FOLLOW) != 0) {
        return fail_draft(draft, errno, err);
    }
    draft->is_named = true;
    return close_draft(draft, err);
}

int acre_draft_commit(struct acre_draft *draft, struct acre_error *err) {
    int r = acre_draft_name(draft, err);
    if (r < 0) {
        return r;
    }
    if (rename(draft->temporary, draft->path) != 0) {
        return fail_draft(draft, errno, err);
    }
    draft->path = NULL;
    return 0;
}

void acre_draft_drop(struct acre_draft *draft) {
    if (draft->path == NULL) {
        return;
    }
    if (draft->fd >= 0) {
        close(draft->fd);
    }
    if (draft->is_named) {
        unlink(draft->temporary);
    }
    draft->path = NULL;
}

int acre_file_write(const char *path, const void *bytes, size_t length, struct acre_error *err) {
    struct acre_draft draft = {0};
    int r = acre_draft_begin(&draft, path, err);
    r = r == 0 ? acre_draft_write(&draft, bytes, length, err) : r;
    r = r == 0 ? acre_draft_commit(&draft, err) : r;
    acre_draft_drop(&draft);
    return r;
}

void acre_file_keep_standard(void) {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        /* The lowest number that is free; programs that are started from here have it too. */
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDONLY) != fd) {
            abort(); /* and nowhere to say why */
        }
    }
}

/* Eventfds share one inode; since Linux 5.2 each has a number. False: it has none, or is none. */
static bool read_eventfd_id(int fd, uint64_t *ret_id) {
    static const char key[] = "\neventfd-id:";
    char path[48], text[512];
    snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
    const char *at = strstr(acre_file_peek(path, text, sizeof(text)), key);
    return at != NULL && sscanf(at + sizeof(key) - 1, "%" SCNu64, ret_id) == 1;
}

/* Where the kernel may not be asked: filters of containers, kernels without it. */
static bool is_same_by_facts(int a, int b) {
    struct stat of_a, of_b;
    if (fstat(a, &of_a) < 0 || fstat(b, &of_b) < 0 || of_a.st_dev != of_b.st_dev ||
        of_a.st_ino != of_b.st_ino) {
        return false;
    }
    uint64_t id_a = 0;
    uint64_t id_b = 0;
    return read_eventfd_id(a, &id_a) == read_eventfd_id(b, &id_b) && id_a == id_b;
}

bool acre_file_is_same(int a, int b) {
    pid_t self = getpid();
    long order = syscall(SYS_kcmp, self, self, KCMP_FILE, a, b);
    return order < 0 && errno != EBADF ? is_same_by_facts(a, b) : order == 0;
}
