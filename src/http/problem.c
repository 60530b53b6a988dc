/* problem.c - two tables: HTTP's own words for statuses, and ours for those no error code has. */
#include "http/problem.h"

#include "core/json.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { PROBLEM_MAX = 8192, FIELD_MAX = 64 };

static const struct {
    int status;
    const char *text;
} reasons[] = {
    {200, "OK"},
    {201, "Created"},
    {202, "Accepted"},
    {204, "No Content"},
    {206, "Partial Content"},
    {301, "Moved Permanently"},
    {302, "Found"},
    {303, "See Other"},
    {304, "Not Modified"},
    {307, "Temporary Redirect"},
    {308, "Permanent Redirect"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {406, "Not Acceptable"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {410, "Gone"},
    {412, "Precondition Failed"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {416, "Range Not Satisfiable"},
    {417, "Expectation Failed"},
    {422, "Unprocessable Content"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
    {507, "Insufficient Storage"},
};

/* Statuses whose meaning is not that of the error's code. */
static const struct {
    int status;
    const char *code, *title;
} special[] = {
    {401, "UNAUTHENTICATED", "not authenticated"},
    {405, "METHOD", "method not allowed"},
    {408, "TIMEOUT", "request timed out"},
    {414, "LIMIT", "limit exceeded"},
    {417, "INVALID", "expectation failed"},
    {429, "RATE", "too many requests"},
    {431, "LIMIT", "limit exceeded"},
    {505, "UNSUPPORTED", "HTTP version not supported"},
};

const char *acre_http_reason(int status) {
    for (size_t i = 0; i < ACRE_COUNT(reasons); i++) {
        if (reasons[i].status == status) {
            return reasons[i].text;
        }
    }
    return "Unknown";
}

/* The leading "name: " of an error text; empty when there is none. */
static struct acre_str field_of(const char *text) {
    size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                 "0123456789_-.[]");
    bool is_field =
        length > 0 && length < FIELD_MAX && text[length] == ':' && text[length + 1] == ' ';
    return (struct acre_str){text, is_field ? length : 0};
}

void acre_problem_write(struct acre_buf *buf, int status, const struct acre_error *err) {
    const char *code = acre_error_name(err->code);
    const char *title = acre_error_message(err->code);
    for (size_t i = 0; i < ACRE_COUNT(special); i++) {
        if (special[i].status == status) {
            code = special[i].code;
            title = special[i].title;
        }
    }
    struct acre_json json;
    acre_json_begin(&json, buf, false);
    acre_json_object(&json);
    acre_json_put_string(&json, "type", "about:blank");
    acre_json_put_string(&json, "title", title);
    acre_json_put_u64(&json, "status", (uint64_t)status);
    acre_json_put_string(&json, "detail", err->text);
    acre_json_put_string(&json, "code", code);
    struct acre_str field = field_of(err->text);
    if (field.length > 0) {
        acre_json_key(&json, "field");
        acre_json_str(&json, field);
    }
    acre_json_object_end(&json);
    acre_json_end(&json);
}

void acre_problem_answer_as(struct acre_exchange *exchange, int status,
                            const struct acre_error *err) {
    struct acre_buf body;
    acre_buf_init(&body, PROBLEM_MAX);
    acre_problem_write(&body, status, err);
    acre_http_answer(exchange, status, ACRE_PROBLEM_TYPE, &body);
}

void acre_problem_answer(struct acre_exchange *exchange, const struct acre_error *err) {
    acre_problem_answer_as(exchange, acre_error_http(err->code), err);
}

void acre_problem_fail(struct acre_exchange *exchange, int code, const char *format, ...) {
    struct acre_error err = {.code = code};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(err.text, sizeof(err.text), format, arguments);
    va_end(arguments);
    acre_problem_answer(exchange, &err);
}
