/* error.c - formats error texts, truncates long ones, and translates errno. */
#include "core/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct error_row {
    int code;
    int http;
    int exit;
    const char *name;
    const char *message;
};

static const struct error_row rows[] = {
#define X(name, code, http, exit, message) {code, http, exit, #name, message},
    ACRE_ERRORS(X)
#undef X
};

static const struct error_row *find_row(int code) {
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        if (rows[i].code == code) {
            return &rows[i];
        }
    }
    return NULL;
}

int acre_fail(struct acre_error *err, int code, const char *format, ...) {
    ACRE_ASSERT(code < 0);
    if (err != NULL) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(err->text, sizeof(err->text), format, arguments);
        va_end(arguments);
        err->code = code;
    }
    return code;
}

int acre_fail_in(struct acre_error *err, int code, const char *format, ...) {
    ACRE_ASSERT(code < 0);
    if (err == NULL) {
        return code;
    }
    char text[ACRE_ERROR_TEXT_MAX];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    size_t used = ACRE_MIN((size_t)ACRE_MAX(length, 0), sizeof(text) - 1);
    snprintf(text + used, sizeof(text) - used, ": %s", err->text);
    memcpy(err->text, text, sizeof(text));
    err->code = err->code < 0 ? err->code : code;
    return err->code;
}

static int code_of_errno(int errnum) {
    switch (errnum) {
    case ENOENT:
    case ENOTDIR:
        return ACRE_ENOTFOUND;
    case EACCES:
    case EPERM:
    case EROFS:
        return ACRE_EDENIED;
    case EEXIST:
        return ACRE_EEXISTS;
    case ENOMEM:
        return ACRE_ENOMEM;
    case ETIMEDOUT:
        return ACRE_ETIMEOUT;
    default:
        return ACRE_EIO;
    }
}

int acre_fail_errno(struct acre_error *err, int errnum, const char *format, ...) {
    char what[ACRE_ERROR_TEXT_MAX / 2];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof(what), format, arguments);
    va_end(arguments);
    return acre_fail(err, code_of_errno(errnum), "%s: %s", what, strerror(errnum));
}

const char *acre_error_name(int code) {
    const struct error_row *row = find_row(code);
    return code == 0 ? "OK" : row != NULL ? row->name : "UNKNOWN";
}

const char *acre_error_message(int code) {
    const struct error_row *row = find_row(code);
    return code == 0 ? "success" : row != NULL ? row->message : "unknown error";
}

int acre_error_http(int code) {
    const struct error_row *row = find_row(code);
    return code == 0 ? 200 : row != NULL ? row->http : 500;
}

int acre_error_exit(int code) {
    const struct error_row *row = find_row(code);
    return code == 0 ? 0 : row != NULL ? row->exit : 70;
}
