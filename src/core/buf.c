/* buf.c - a byte buffer that doubles up to its maximum.
 *
 * Doubling makes appends linear in total; the maximum limits how much memory outside input can
 * take. A failure sticks, so that a writer of many pieces can check once at the end and never
 * produces text with a hole in it. */
#include "core/buf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 64 };

void acre_buf_init(struct acre_buf *buf, size_t max) {
    max = ACRE_MIN(max, SIZE_MAX / 4); /* capacity doubles and counts a NUL: no overflow */
    size_t capacity = ACRE_MIN(max + 1, (size_t)FIRST_CAPACITY);
    *buf = (struct acre_buf){
        .data = acre_calloc(capacity, 1),
        .capacity = capacity,
        .max = max,
    };
}

void acre_buf_finish(struct acre_buf *buf) {
    free(buf->data);
    *buf = (struct acre_buf){0};
}

void acre_buf_clear(struct acre_buf *buf) {
    ACRE_ASSERT(buf->data != NULL);
    buf->length = 0;
    buf->data[0] = '\0';
    buf->failed = false;
}

/* Make room for `length` more bytes and the NUL; false (and failed) past the maximum. */
static bool reserve(struct acre_buf *buf, size_t length) {
    ACRE_ASSERT(buf->data != NULL && buf->length <= buf->max);
    if (buf->failed || length > buf->max - buf->length) {
        buf->failed = true;
        return false;
    }
    size_t needed = buf->length + length + 1;
    if (needed > buf->capacity) {
        size_t capacity = ACRE_MIN(ACRE_MAX(buf->capacity * 2, needed), buf->max + 1);
        buf->data = acre_realloc(buf->data, capacity, 1);
        buf->capacity = capacity;
    }
    return true;
}

int acre_buf_reserve(struct acre_buf *buf, size_t length) {
    return reserve(buf, length) ? 0 : ACRE_ELIMIT;
}

int acre_buf_append(struct acre_buf *buf, const void *bytes, size_t length) {
    if (!reserve(buf, length)) {
        return ACRE_ELIMIT;
    }
    if (length > 0) {
        memcpy(buf->data + buf->length, bytes, length);
        buf->length += length;
        buf->data[buf->length] = '\0';
    }
    return 0;
}

int acre_buf_puts(struct acre_buf *buf, const char *text) {
    return acre_buf_append(buf, text, strlen(text));
}

int acre_buf_putc(struct acre_buf *buf, char c) {
    return acre_buf_append(buf, &c, 1);
}

int acre_buf_printf(struct acre_buf *buf, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int r = acre_buf_vprintf(buf, format, arguments);
    va_end(arguments);
    return r;
}

int acre_buf_vprintf(struct acre_buf *buf, const char *format, va_list arguments) {
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    ACRE_ASSERT(length >= 0);
    if (!reserve(buf, (size_t)length)) {
        return ACRE_ELIMIT;
    }
    vsnprintf(buf->data + buf->length, (size_t)length + 1, format, arguments);
    buf->length += (size_t)length;
    return 0;
}

bool acre_buf_failed(const struct acre_buf *buf) {
    return buf->failed;
}
