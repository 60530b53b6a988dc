/* file.h - reads and writes whole files, with limits; identifies open ones.
 *
 * Any thread. Directories, devices and files over `max_bytes` are refused; the error names them. */
#ifndef ACRE_CORE_FILE_H
#define ACRE_CORE_FILE_H

#include "core/buf.h"

#include <limits.h>

/* Append the file's bytes to `buf` (sysfs and proc files included, whose size reads as 0). */
int acre_file_read(const char *path, size_t max_bytes, struct acre_buf *buf,
                   struct acre_error *err);
/* The same for a file that holds a secret: ACRE_EDENIED when it belongs to another user, or when
 * its mode lets others read or change it. */
int acre_file_read_private(const char *path, size_t max_bytes, struct acre_buf *buf,
                           struct acre_error *err);
/* The beginning of a file in one reading (those of /proc and of cgroups are whole), ended with 0:
 * `text`; "" when it cannot be read. */
const char *acre_file_peek(const char *path, char *text, size_t size);
/* Write through a temporary file in the same directory and rename: all or nothing. Links are
 * refused too. */
int acre_file_write(const char *path, const void *bytes, size_t length, struct acre_error *err);

/* The same in steps, for several files that are all to appear or none of them. Begin makes the
 * temporary file, or says why that cannot be; it has no name where the file system allows that, so
 * that nothing of it stays when the program ends early. Name gives it one beside its place, which a
 * full disk may refuse; commit does so where it was not, and puts it in its place. Dropped, it is
 * gone, unless it was committed; one that was never begun (zeros) may be dropped too. */
struct acre_draft {
    const char *path; /* the caller's; NULL: nothing to drop */
    int fd;           /* -1: closed */
    bool is_named;    /* `temporary` is there */
    char temporary[PATH_MAX];
};
int acre_draft_begin(struct acre_draft *draft, const char *path, struct acre_error *err);
int acre_draft_write(struct acre_draft *draft, const void *bytes, size_t length,
                     struct acre_error *err);
int acre_draft_name(struct acre_draft *draft, struct acre_error *err);
int acre_draft_commit(struct acre_draft *draft, struct acre_error *err);
void acre_draft_drop(struct acre_draft *draft);

/* Let standard streams that are closed be /dev/null, for the first file a program opens would get
 * their number, and what is printed. Reading ends at once; writing fails, as it would have. First
 * of all in main. */
void acre_file_keep_standard(void);

/* Whether two descriptors are one open file. Where the kernel does not tell: whether they are one
 * eventfd, or one file by its number; what cannot be told apart is the same. */
bool acre_file_is_same(int a, int b);

#endif
