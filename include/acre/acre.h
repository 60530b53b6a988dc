/* acre.h - shared by the whole library: the version and the error codes.
 *
 * Functions return 0 or a negative ACRE_E* code. Functions whose failure a person will read take
 * `struct acre_error *err` as their last parameter and put the text there; NULL is fine.
 * Any thread. */
#ifndef ACRE_ACRE_H
#define ACRE_ACRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define ACRE_API __attribute__((visibility("default")))
#else
#define ACRE_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

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
#define ACRE_ERROR_ROW_(name, code, http, exit, message) ACRE_E##name = (code),
    ACRE_ERRORS(ACRE_ERROR_ROW_)
#undef ACRE_ERROR_ROW_
};

enum { ACRE_ERROR_TEXT_MAX = 512 }; /* a file name, a line, a value and what is accepted */

struct acre_error {
    int code;
    char text[ACRE_ERROR_TEXT_MAX];
};

/* The strings are constants; do not free them. */
ACRE_API const char *acre_error_name(int code);    /* "INVALID"; "OK" for 0; else "UNKNOWN" */
ACRE_API const char *acre_error_message(int code); /* "invalid request" */
ACRE_API const char *acre_version(void);           /* "0.1.0" */

#ifdef __cplusplus
}
#endif

#endif
