/* error.h - how functions report failures. The table of codes is public: acre/acre.h.
 *
 * If a person will read the failure, the last parameter `struct acre_error *err` carries the text;
 * it may be NULL. The text names the field, the value and what is accepted. Any thread. */
#ifndef ACRE_CORE_ERROR_H
#define ACRE_CORE_ERROR_H

#include "core/base.h"

#include <acre/acre.h>

/* Fill `err` (NULL is fine) and return `code`. Longer texts are cut, never overrun. */
int acre_fail(struct acre_error *err, int code, const char *format, ...) ACRE_PRINTF(3, 4);

/* Put "context: " before the text already in `err`, keep its code; returns that code.
 * With err == NULL returns `code`. */
int acre_fail_in(struct acre_error *err, int code, const char *format, ...) ACRE_PRINTF(3, 4);

/* ACRE_EIO (or NOTFOUND, DENIED, EXISTS, NOMEM for the errno values that mean it), text
 * "<what>: <strerror>". */
int acre_fail_errno(struct acre_error *err, int errnum, const char *format, ...) ACRE_PRINTF(3, 4);

int acre_error_http(int code); /* 200 for 0, 500 for unknown codes */
int acre_error_exit(int code); /* 0 for 0, 70 for unknown codes */

#endif
