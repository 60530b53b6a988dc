/* buf.h - a growing byte buffer with a maximum size.
 *
 * One thread at a time. Append functions return 0 or ACRE_ELIMIT; after a failure the buffer
 * is unchanged and stays failed (acre_buf_failed), so a writer may check once at the end.
 * `data` is always NUL-terminated. */
#ifndef ACRE_CORE_BUF_H
#define ACRE_CORE_BUF_H

#include "core/error.h"

#include <stdarg.h>

struct acre_buf {
    char *data;
    size_t length;
    size_t capacity;
    size_t max;
    bool failed;
};

void acre_buf_init(struct acre_buf *buf, size_t max);
void acre_buf_finish(struct acre_buf *buf);
void acre_buf_clear(struct acre_buf *buf); /* length 0, not failed, memory kept */

/* Room for so many more bytes in one step; appends may still grow it. */
int acre_buf_reserve(struct acre_buf *buf, size_t length);
int acre_buf_append(struct acre_buf *buf, const void *bytes, size_t length);
int acre_buf_puts(struct acre_buf *buf, const char *text);
int acre_buf_putc(struct acre_buf *buf, char c);
int acre_buf_printf(struct acre_buf *buf, const char *format, ...) ACRE_PRINTF(2, 3);
int acre_buf_vprintf(struct acre_buf *buf, const char *format, va_list arguments) ACRE_PRINTF(2, 0);
bool acre_buf_failed(const struct acre_buf *buf);

#endif
