/* client.h - HTTP to the daemon: one call and its JSON answer, or streams of bytes as they come.
 *
 * Programs only, one thread. libcurl is opened at run time, by the first client: it takes longer to
 * load than all the rest of the program, and most runs of the program (`acre shim`) never ask a
 * server. An answer that is an error becomes an acre_error with the server's own words, its code,
 * and what to do where we know it. */
#ifndef ACRE_CLI_CLIENT_H
#define ACRE_CLI_CLIENT_H

#include "cli/server.h"
#include "core/json.h"

struct acre_client;
struct acre_feed;

/* `authorities` is a file of certificates to trust for https (NULL: the system's). */
int acre_client_create(const struct acre_server *server, const char *authorities,
                       struct acre_client **ret_client, struct acre_error *err);
void acre_client_destroy(struct acre_client *client); /* NULL is fine; ends its streams */

/* Ask and wait. `path` begins with '/', its parts escaped (acre_client_escape); `body` may be NULL.
 * `ret_answer` (may be NULL) is the parsed answer, NULL when there is none: json_decref it. */
int acre_client_call(struct acre_client *client, const char *method, const char *path,
                     const json_t *body, json_t **ret_answer, struct acre_error *err);

/* `text` as one part of a path or query. */
void acre_client_escape(struct acre_buf *out, const char *text);

/* A GET whose bytes are handed over while acre_client_wait runs. `last_id` (may be NULL) asks
 * server-sent events to resume after it. */
typedef void acre_feed_bytes(void *context, struct acre_str bytes);
int acre_client_stream(struct acre_client *client, const char *path, const char *last_id,
                       acre_feed_bytes *bytes, void *context, struct acre_feed **ret_stream,
                       struct acre_error *err);
void acre_feed_close(struct acre_feed *stream); /* NULL is fine */
/* Whether it has ended; `ret_result` is 0 after its proper end, else a code with `err` filled. */
bool acre_feed_ended(const struct acre_feed *stream, int *ret_result, struct acre_error *err);

/* Wait until a stream moved, `fd` (-1: none) can be read, or `timeout_ms` have passed. */
int acre_client_wait(struct acre_client *client, int fd, uint32_t timeout_ms, bool *ret_fd_is_ready,
                     struct acre_error *err);

#endif
