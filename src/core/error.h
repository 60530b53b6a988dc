/* error.h - every way a thing can fail, in one table.
 *
 * Functions return 0 or a negative ACRE_E* code. Where a person will read the failure, the
 * last parameter `struct acre_error *err` carries the text; NULL is fine. The text names the
 * field, the value and what is accepted. Any thread. */
#ifndef ACRE_CORE_ERROR_H
#define ACRE_CORE_ERROR_H

#include "core/base.h"

/* clang-format off */
#define ACRE_ERRORS(X)                                            \
    /* name         code  http  exit  message                  */ \
    X(INVALID,      -1,   400,  2,    "invalid request")          \
    X(DENIED,       -2,   403,  3,    "not allowed")              \
    X(NOTFOUND,     -3,   404,  4,    "no such object")           \
    X(CONFLICT,     -4,   409,  5,    "state conflict")           \
    X(EXISTS,       -5,   409,  5,    "already exists")           \
    X(NOFIT,        -6,   409,  6,    "does not fit")             \
    X(LIMIT,        -7,   413,  7,    "limit exceeded")           \
    X(UNAVAILABLE,  -8,   503,  9,    "not available now")        \
    X(UNSUPPORTED,  -9,   501,  10,   "not supported here")       \
    X(IO,           -10,  500,  11,   "input or output failed")   \
    X(NOMEM,        -11,  507,  12,   "out of memory")            \
    X(TIMEOUT,      -12,  504,  13,   "timed out")                \
    X(CORRUPT,      -13,  500,  14,   "damaged data")             \
    X(INTERNAL,     -14,  500,  70,   "internal error")
/* clang-format on */

enum acre_error_code {
#define X(name, code, http, exit, message) ACRE_E##name = (code),
    ACRE_ERRORS(X)
#undef X
};

enum { ACRE_ERROR_TEXT_MAX = 512 }; /* a file name, a line, a value and what is accepted */

struct acre_error {
    int code;
    char text[ACRE_ERROR_TEXT_MAX];
};

/* Fill `err` (NULL is fine) and return `code`. Longer texts are cut, never overrun. */
int acre_fail(struct acre_error *err, int code, const char *format, ...) ACRE_PRINTF(3, 4);

/* Put "context: " before the text already in `err`, keep its code; returns that code.
 * With err == NULL returns `code`. */
int acre_fail_in(struct acre_error *err, int code, const char *format, ...) ACRE_PRINTF(3, 4);

/* ACRE_EIO (or NOTFOUND, DENIED, EXISTS, NOMEM for the errno values that mean it), text
 * "<what>: <strerror>". */
int acre_fail_errno(struct acre_error *err, int errnum, const char *format, ...) ACRE_PRINTF(3, 4);

const char *acre_error_name(int code);    /* "INVALID"; "OK" for 0; "UNKNOWN" otherwise */
const char *acre_error_message(int code); /* "invalid request" */
int acre_error_http(int code);            /* 200 for 0, 500 for unknown codes */
int acre_error_exit(int code);            /* 0 for 0, 70 for unknown codes */

#endif
