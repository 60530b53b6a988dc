/* http.h - an HTTP/1.1 server on the loop, with a strict parser of our own (docs/design/004).
 *
 * Loop thread only. It parses, limits and frames; it knows no route and no user. Listens on a unix
 * socket (peer credentials known) and on TCP, with TLS when given a certificate.
 *
 * Refused with 400 and a closed connection: Content-Length together with Transfer-Encoding, a
 * repeated or odd Content-Length, unknown transfer codings, blanks before a colon, folded lines,
 * bare CR or LF, NUL or other control characters, no Host or two. Bodies over `body_max`: 413
 * before they are read. Headers over 16 KiB: 431. A request that is not complete within
 * `request_timeout_ms` is cut, however slowly it drips; an answer that is taken at less than
 * 16 KiB/s over `answer_timeout_ms` too.
 *
 * Connections are counted by user on the unix socket and by address over TCP (IPv6: by /64, and all
 * of 127.0.0.0/8 is one); more than `peer_max` are refused at accept with 429, more than
 * `connections_max` in all with 503. Of these TCP gets three quarters, and all users but root and
 * the daemon's own 15 in 16. Clients over TCP are strangers until acre_http_know: their time-outs
 * are shorter, and the oldest of them (of an address, at its limit) is closed when all places are
 * taken. From then on they count as their user's, with the same limit of `peer_max`.
 *
 * An exchange is answered once, at any later time; if the client has left by then, the answer is
 * dropped. An exchange and its request are good until its answer is given (or its stream ended),
 * even after acre_http_stop. */
#ifndef ACRE_HTTP_HTTP_H
#define ACRE_HTTP_HTTP_H

#include "core/arena.h"
#include "core/buf.h"
#include "core/loop.h"
#include "core/str.h"

struct acre_http;
struct acre_exchange;

struct acre_http_peer {
    bool is_unix;
    uint32_t uid, gid; /* of the unix peer */
    int64_t pid;
    char address[64]; /* "127.0.0.1" or "unix:1000" */
};

/* An encoded slash in a path: part of a name, not a separator. (No other control gets here.) */
#define ACRE_HTTP_SLASH '\x1f'

struct acre_http_request {
    const char *method;
    const char *path; /* decoded once, "/queue/42"; no "..", no NUL; see ACRE_HTTP_SLASH */
    struct acre_str body;
    const struct acre_http_peer *peer;
    struct acre_arena *arena; /* lives as long as the exchange */
};

typedef void acre_http_handler(void *context, struct acre_exchange *exchange,
                               const struct acre_http_request *request);

struct acre_http_options {
    struct acre_loop *loop;
    const char *unix_path; /* NULL: none. A socket nobody listens on is replaced. Mode 0666. */
    const char *address;   /* "127.0.0.1:10000", "[::1]:0"; NULL: none */
    const char *certificate_pem, *key_pem; /* texts, NULL: no TLS */
    size_t body_max;                       /* 1 MiB */
    uint64_t request_timeout_ms;           /* 10 s */
    uint64_t answer_timeout_ms;            /* 30 s */
    uint64_t idle_timeout_ms;              /* keep-alive: 60 s */
    uint64_t stranger_timeout_ms; /* for a stranger's request, and between two: 5 s or the above */
    uint32_t connections_max;     /* 1000; at least 4 */
    uint32_t (*peer_max)(void *context); /* asked at each accept; NULL: no limit of one origin */
    /* Has this uid an account that is served? Those that have none share one origin. NULL: all. */
    bool (*knows_uid)(void *context, uint32_t uid);
    acre_http_handler *handler;
    void *context; /* of these three */
};

int acre_http_start(const struct acre_http_options *options, struct acre_http **ret_http,
                    struct acre_error *err);
/* Another certificate for connections from now on; the old one stays when this one is refused, or
 * when the start was without. */
int acre_http_renew_tls(struct acre_http *http, const char *certificate_pem, const char *key_pem,
                        struct acre_error *err);
uint16_t acre_http_port(const struct acre_http *http); /* 0: no TCP */
/* Accept no more; answers under way go out, streams are ended. `done` when the last is gone, or
 * after `timeout_ms`. */
void acre_http_drain(struct acre_http *http, uint64_t timeout_ms, acre_loop_function *done,
                     void *context);
void acre_http_stop(struct acre_http *http); /* at once; not in a handler; NULL is fine */

/* NULL when absent. Names of headers in any case. A query key given twice: the first. */
const char *acre_http_header(struct acre_exchange *exchange, const char *name);
const char *acre_http_query(struct acre_exchange *exchange, const char *key);
/* Walk the query: false at the end. */
bool acre_http_query_at(struct acre_exchange *exchange, uint32_t index, const char **ret_key,
                        const char **ret_value);

/* The client is known: its connection is no stranger's any more. Over TCP it counts as this user's
 * from now on, with a privilege against nobody. 0, or the status to refuse it with, and err: the
 * user has too many; the connection should end with the answer. ACRE_HTTP_LATER: the user has had
 * the time of this turn; the handler returns without an answer and is called with this exchange
 * again. */
enum { ACRE_HTTP_LATER = 1 };
int acre_http_know(struct acre_exchange *exchange, const char *user, bool is_privileged,
                   struct acre_error *err);
/* The connection ends with the answer. Before it. */
void acre_http_hang_up(struct acre_exchange *exchange);
/* Before the answer. */
void acre_http_add_header(struct acre_exchange *exchange, const char *name, const char *value);
/* Takes the body's memory (it is empty afterwards). */
void acre_http_answer(struct acre_exchange *exchange, int status, const char *content_type,
                      struct acre_buf *body);

/* A stream (server-sent events, followed logs): chunks as they come. `closed` is called once when
 * the client has gone or is too slow (more than 1 MiB waiting), or some time after end; never from
 * within these functions, but from acre_http_stop. Until then sending is harmless; after it, and
 * after end, the exchange is not touched any more. */
void acre_http_stream(struct acre_exchange *exchange, int status, const char *content_type,
                      acre_loop_function *closed, void *context);
void acre_http_send(struct acre_exchange *exchange, struct acre_str bytes);
void acre_http_end(struct acre_exchange *exchange);
/* Bytes of a stream that the client has not taken yet: for whoever has more than it can take. */
size_t acre_http_waiting(const struct acre_exchange *exchange);

struct acre_http_counts {
    uint64_t requests, refused, timed_out;
    uint32_t connections, streams;
};
void acre_http_counts(const struct acre_http *http, struct acre_http_counts *ret_counts);

#endif
