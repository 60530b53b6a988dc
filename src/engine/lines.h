/* lines.h - a number out of a small file of "key value" lines (/proc, /sys).
 *
 * Any thread; blocks as long as the kernel takes. */
#ifndef ACRE_ENGINE_LINES_H
#define ACRE_ENGINE_LINES_H

#include "core/error.h"

/* The decimal number after `key` and `separator` in the first line that begins so; blanks around
 * both are passed over. With key "" the file holds nothing but the number. ACRE_ENOTFOUND: no
 * such file or line; ACRE_EINVALID: no number, or one over UINT32_MAX. */
int lines_number(const char *path, const char *key, char separator, uint32_t *ret_number,
                 struct acre_error *err);

#endif
