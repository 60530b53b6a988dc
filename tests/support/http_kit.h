/* http_kit.h - a real server on a thread of its own, and clients that write raw bytes.
 *
 * The handler answers by path:
 *   /echo    at once, with "METHOD path?key=value... body"
 *   /later   the same, from a posted function
 *   /know    the same, and the client is known from then on; /know-admin: with a privilege
 *   /park    never, until http_kit_answer_parked
 *   /big     8 MiB of 'x' at once
 *   /stream  a stream; http_kit_send and http_kit_end drive it
 *   /peer    "is_unix uid address"
 * Everything a client does times out after ten seconds and fails the test. */
#ifndef ACRE_HTTP_KIT_H
#define ACRE_HTTP_KIT_H

#include "http/http.h"

#include <pthread.h>
#include <semaphore.h>

enum { HTTP_KIT_BIG_BYTES = 8 * 1024 * 1024 };

struct http_kit {
    struct acre_http_options options; /* set before start; the handler may be another */
    struct acre_loop *loop;
    struct acre_http *http;
    pthread_t thread;
    uint16_t port;
    sem_t done;                            /* one for each http_kit_do that ended */
    struct acre_exchange *parked, *stream; /* loop thread only */
    unsigned closed;                       /* streams; loop thread only */
    struct acre_http_counts counts;        /* filled by http_kit_counts */
    struct acre_timer *alive;
    bool seen_parked; /* copies for the test's thread */
    unsigned seen_closed;
};

void http_kit_start(struct http_kit *kit); /* on 127.0.0.1:0 unless the options say otherwise */
void http_kit_stop(struct http_kit *kit);
acre_http_handler http_kit_handle; /* of the paths above; its context is the kit */

/* Run on the loop's thread, and wait until it has. */
void http_kit_do(struct http_kit *kit, acre_loop_function *function, void *context);
void http_kit_answer_parked(struct http_kit *kit);
void http_kit_stream_parked(struct http_kit *kit); /* answer it with a stream */
void http_kit_send(struct http_kit *kit, struct acre_str bytes);
void http_kit_end(struct http_kit *kit);
const struct acre_http_counts *http_kit_counts(struct http_kit *kit);
bool http_kit_is_parked(struct http_kit *kit);
unsigned http_kit_closed(struct http_kit *kit);
void http_kit_wait_gone(struct http_kit *kit, uint32_t connections); /* until so few are left */
void http_kit_wait_parked(struct http_kit *kit);

struct http_client {
    int fd;
    void *tls; /* an SSL, NULL: plain */
    struct acre_buf in;
    size_t used;
};

struct http_answer {
    int status;
    char head[8192];
    struct acre_buf body; /* unchunked */
};

struct http_client http_client_open(const struct http_kit *kit);
struct http_client http_client_open_unix(const char *path);
void http_client_close(struct http_client *client);
void http_client_write(struct http_client *client, struct acre_str bytes); /* errors are fine */
void http_client_puts(struct http_client *client, const char *text);
/* The next answer; false: the connection ended instead. Free it with http_answer_free. */
bool http_client_read(struct http_client *client, struct http_answer *ret_answer);
void http_answer_free(struct http_answer *answer);
/* Status of the next answer (0: ended), the body dropped. */
int http_client_status(struct http_client *client);
/* Status and body ("" when ended) of one request. */
int http_client_ask(struct http_client *client, const char *request, char *body, size_t size);
/* Whether the server ends the connection within ten seconds; what comes before is dropped. */
bool http_client_ends(struct http_client *client);
/* More bytes into in; false: ended. */
bool http_client_more(struct http_client *client);

/* Ask for a stream, and wait until it is one. */
void http_kit_start_stream(struct http_kit *kit, struct http_client *client, const char *request);

/* A self-signed certificate for localhost and its key, both PEM. */
void http_kit_certificate(struct acre_buf *certificate, struct acre_buf *key);
/* Shake hands on an open client. */
bool http_client_start_tls(struct http_client *client);

#endif
