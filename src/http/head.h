/* head.h - the head of one HTTP/1.1 request: request line, header fields, how its body ends.
 *
 * Pure; inside src/api only. Stricter than RFC 9112 demands wherever leniency has led to two
 * parsers seeing two requests in the same bytes. */
#ifndef ACRE_HTTP_HEAD_H
#define ACRE_HTTP_HEAD_H

#include "core/arena.h"
#include "core/error.h"
#include "core/str.h"

/* 16 KiB hold a request line, a token and twenty times the header fields of a browser. */
enum {
    ACRE_HTTP_HEAD_MAX = 16 * 1024,
    ACRE_HTTP_HEADERS_MAX = 64,
    ACRE_HTTP_QUERY_MAX = 64,
    ACRE_HTTP_METHOD_MAX = 16,
};

struct http_pair {
    const char *name, *value; /* in the arena */
};

struct http_head {
    const char *method, *path; /* the path decoded */
    struct http_pair *headers, *query;
    uint32_t header_count, query_count;
    bool is_http10;
    bool keep_alive;
    bool chunked;
    bool expects_continue;
    uint64_t body_bytes; /* Content-Length; 0 when chunked */
};

/* Find the end of a head that comes in pieces: call again with the longer view and the same scan
 * (zeroed at first). 1: it is scan->end bytes long, the empty line included. 0: not here yet.
 * Otherwise the HTTP status to refuse it with, and err. */
struct http_scan {
    size_t at, line; /* looked at so far; where the current line begins */
    size_t end;
};
int http_head_scan(struct http_scan *scan, struct acre_str bytes, struct acre_error *err);

/* Parse a whole head as found by the scan. 0, or the status to refuse it with, and err. */
int http_head_parse(struct acre_str bytes, uint64_t body_max, struct acre_arena *arena,
                    struct http_head *ret_head, struct acre_error *err);

/* One line without its CRLF: "name: value". False when it is not exactly that. */
bool http_header_split(struct acre_str line, struct acre_str *ret_name, struct acre_str *ret_value);

#endif
