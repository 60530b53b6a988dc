/* file.h - whole files, read and written with limits; open ones told apart.
 *
 * Any thread. Directories, devices and files over `max_bytes` are refused by name. */
#ifndef ACRE_CORE_FILE_H
#define ACRE_CORE_FILE_H

#include "core/buf.h"

/* Append the file's bytes to `buf` (sysfs and proc files included, whose size reads as 0). */
int acre_file_read(const char *path, size_t max_bytes, struct acre_buf *buf,
                   struct acre_error *err);
/* Write through a temporary file in the same directory and rename: all or nothing. Links are
 * refused too. */
int acre_file_write(const char *path, const void *bytes, size_t length, struct acre_error *err);
/* Whether two descriptors are one open file; false where the kernel does not tell. */
bool acre_file_is_same(int a, int b);

#endif
