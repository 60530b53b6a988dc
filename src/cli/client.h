/* client.h - HTTP to the daemon: a call with its JSON answer, or a stream of bytes.
 *
 * Programs only, one thread. The first client loads libcurl at run time: loading it takes longer
 * than starting the rest of the program, and most processes (`acre shim`) never talk to a server.
 * An error answer becomes an acre_error with the server's message, its code, and advice where we
 * have some. */
#ifndef ACRE_CLI_CLIENT_H
#define ACRE_CLI_CLIENT_H

#include "cli/server.h"
#include "core/json.h"

struct curl_client;
struct feed;

/* `authorities` is a file of certificates to trust for https (NULL: the system's). */
int client_create(const struct server_address *server, const char *authorities,
                  struct curl_client **ret_client, struct acre_error *err);
void client_destroy(struct curl_client *client); /* NULL is fine; ends its streams */

/* Ask and wait. `path` begins with '/', its parts escaped (client_escape); `body` may be NULL.
 * `ret_answer` (may be NULL) is the parsed answer, NULL when there is none: json_decref it. */
int client_call(struct curl_client *client, const char *method, const char *path,
                const json_t *body, json_t **ret_answer, struct acre_error *err);

/* `text` as one part of a path or query. */
void client_escape(struct acre_buf *out, const char *text);

/* A GET whose bytes are handed over while client_wait runs. `last_id` (may be NULL) asks
 * server-sent events to resume after it. */
typedef void feed_bytes(void *context, struct acre_str bytes);
int client_stream(struct curl_client *client, const char *path, const char *last_id,
                  feed_bytes *bytes, void *context, struct feed **ret_stream,
                  struct acre_error *err);
void feed_close(struct feed *stream); /* NULL is fine */
/* Whether it has ended; `ret_result` is 0 after its proper end, else a code with `err` filled. */
bool feed_ended(const struct feed *stream, int *ret_result, struct acre_error *err);

/* Wait until a stream moved, `fd` (-1: none) can be read, or `timeout_ms` have passed. */
int client_wait(struct curl_client *client, int fd, uint32_t timeout_ms, bool *ret_fd_is_ready,
                struct acre_error *err);

#endif
