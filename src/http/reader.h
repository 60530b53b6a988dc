/* reader.h - bytes in, whole requests out, one at a time.
 *
 * Pure; inside src/api only. How the bytes are cut makes no difference (a fuzzer holds it to
 * that). A body is gathered up to a limit, whole or in chunks; trailers are checked and dropped. */
#ifndef ACRE_HTTP_READER_H
#define ACRE_HTTP_READER_H

#include "core/buf.h"
#include "http/head.h"

/* One request, with the memory it stands on. */
struct http_message {
    struct acre_arena *arena;
    struct http_head head;
    struct acre_buf body; /* data NULL: none */
};
void http_message_finish(struct http_message *message); /* zeroed: fine */

enum http_state {
    ACRE_HTTP_HEAD,
    ACRE_HTTP_BODY,       /* `left` bytes to come */
    ACRE_HTTP_CHUNK_SIZE, /* a line */
    ACRE_HTTP_CHUNK_DATA, /* `left` bytes to come */
    ACRE_HTTP_CHUNK_END,  /* CR LF */
    ACRE_HTTP_TRAILER,    /* lines up to an empty one */
    ACRE_HTTP_DONE,
};

struct http_reader {
    uint64_t body_max;
    enum http_state state;
    struct http_scan scan;
    bool skipped_line; /* one empty line before a request is forgiven */
    uint64_t left;
    size_t trailer_bytes;
    struct http_message message;
};

void http_reader_init(struct http_reader *reader, uint64_t body_max);
void http_reader_finish(struct http_reader *reader);

/* Look at all bytes not yet used. 1: a request is complete, take it. 0: more are needed. Otherwise
 * the status to refuse it with, and err: no later byte makes sense. `ret_used` bytes of the front
 * are not to be shown again (always set). */
int http_reader_feed(struct http_reader *reader, struct acre_str bytes, size_t *ret_used,
                     struct acre_error *err);
/* After 1: move the request out and be ready for the next. */
struct http_message http_reader_take(struct http_reader *reader);

/* Whether bytes of a request have been used (those still shown again do not count). */
bool http_reader_is_inside(const struct http_reader *reader);
/* Whether the client waits for 100 Continue before it sends the body. */
bool http_reader_wants_continue(const struct http_reader *reader);

#endif
