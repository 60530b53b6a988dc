/* sysfs.h - values from a tree of small files (sysfs, proc), with a root that tests can move.
 *
 * Set the path (sysfs_at), then read. A missing file means "unknown" and is silent: kernels
 * differ. A file that exists but cannot be read or holds nonsense leaves the value unknown too, and
 * adds one line to the notes with the file, the value and what is accepted.
 * One thread at a time. */
#ifndef ACRE_DEVICE_SYSFS_H
#define ACRE_DEVICE_SYSFS_H

#include "core/buf.h"
#include "core/str.h"

enum {
    ACRE_SYSFS_ROOT_MAX = 256,
    ACRE_SYSFS_PATH_MAX = 512,
    ACRE_SYSFS_FILE_MAX = 1024 * 1024, /* cpuinfo of 1,000 CPUs; most files are under 4 KiB */
    ACRE_SYSFS_NOTES_MAX = 16 * 1024,  /* about a hundred lines; the rest is left off */
};

struct acre_sysfs {
    char root[ACRE_SYSFS_ROOT_MAX];
    char path[ACRE_SYSFS_PATH_MAX]; /* what the next read reads */
    struct acre_buf text;           /* the file last read */
    struct acre_buf notes;          /* one line each, no doubles */
};

void sysfs_init(struct acre_sysfs *fs, const char *root);
void sysfs_finish(struct acre_sysfs *fs);

void sysfs_at(struct acre_sysfs *fs, const char *format, ...) ACRE_PRINTF(2, 3);

/* 0, ACRE_ENOTFOUND (not there) or another error (noted). Views live until the next read. */
int sysfs_text(struct acre_sysfs *fs, struct acre_str *ret_text);
int sysfs_line(struct acre_sysfs *fs, struct acre_str *ret_line);
int sysfs_u64(struct acre_sysfs *fs, uint64_t max, uint64_t *ret_value);
int sysfs_i64(struct acre_sysfs *fs, int64_t min, int64_t max, int64_t *ret_value);

/* Numbers N of the entries "<prefix>N" of the directory, ascending ("card0", "card12"; an
 * empty prefix takes plain numbers). Other names are passed over. At most `max`; returns how
 * many, 0 when the directory is not there. */
uint32_t sysfs_numbers(struct acre_sysfs *fs, const char *prefix, uint32_t *ret_numbers,
                       uint32_t max);

/* Add "<path>: <text of err>" to the notes, unless it is there already. */
void sysfs_note(struct acre_sysfs *fs, const struct acre_error *err);

#endif
