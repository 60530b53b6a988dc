/* inner.h - what the files of the HTTP server share; no other file includes it.
 *
 * http.c owns the server: listeners, one epoll set, deadlines. conn.c moves one connection's
 * bytes; exchange.c gives answers; tls.c turns bytes into other bytes; listen.c
 * opens sockets; admit.c says who gets a connection. Loop thread only. */
#ifndef ACRE_HTTP_INNER_H
#define ACRE_HTTP_INNER_H

#include "core/clock.h"
#include "http/admit.h"
#include "http/conn.h"
#include "http/http.h"

enum {
    ACRE_HTTP_SCRATCH_BYTES = 64 * 1024,
    ACRE_HTTP_STREAM_MAX = 1024 * 1024, /* waiting for a slow follower; then it is cut */
    ACRE_HTTP_LISTENERS_MAX = 2,
    ACRE_HTTP_SPARES = 4, /* descriptors kept back, so that root gets in when there are no others */
};

struct acre_exchange {
    struct acre_http_request request;
    struct http_message message;
    struct acre_http_peer peer;
    struct acre_loop *loop;
    struct http_conn *conn; /* NULL: the client has gone, or the server */
    struct acre_buf added;  /* header fields of the answer; data NULL: none */
    bool streaming, chunked, ended;
    bool again; /* its handler has put it off and is to be called again */
    acre_loop_function *closed;
    void *context;
};

struct http_wait_list {
    struct http_conn *oldest, **end;
    uint64_t timeout_ms;
};

struct http_listener {
    int fd; /* -1: closed */
    bool is_unix;
    bool tls;
};

struct acre_http {
    struct acre_http_options options; /* texts in it are not kept */
    struct acre_clock clock;
    struct acre_http_counts counts;
    struct http_listener listeners[ACRE_HTTP_LISTENERS_MAX];
    uint32_t listener_count;
    char *unix_path; /* what we made and must remove; NULL: nothing */
    uint64_t unix_device, unix_inode;
    uint16_t port;
    int epoll_fd, wake_fd; /* -1: not open */
    int spares[ACRE_HTTP_SPARES];
    uint32_t spare_count;
    bool is_deaf; /* not even a spare descriptor is left: no client is accepted */
    uint32_t own_uid;
    struct http_crowd crowd;
    uint32_t handshakes; /* of this turn */
    bool awake;          /* we look at the ready list before we sleep anyway, or have been woken */
    struct acre_watch *watch;
    struct acre_timer *tick;
    uint64_t tick_ms;
    struct http_wait_list waits[ACRE_HTTP_WAIT_COUNT];
    struct http_conn *conns;
    struct http_conn *ready, **ready_end;
    bool draining;
    struct acre_timer *drain_timer;
    acre_loop_function *drained;
    void *drained_context;
    struct ssl_ctx_st *tls; /* NULL: plain */
    uint64_t date_s;
    char date[40]; /* "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n" */
    char scratch[ACRE_HTTP_SCRATCH_BYTES];
    char plain[ACRE_HTTP_SCRATCH_BYTES]; /* of TLS */
};

/* http.c */
void http_set_wait(struct http_conn *conn, enum http_wait wait);
void http_make_ready(struct http_conn *conn);   /* look at it soon */
void http_listen_again(struct acre_http *http); /* a descriptor may be free */
void http_forget(struct http_conn *conn);       /* it is gone from all lists */

/* exchange.c */
struct acre_exchange *exchange_create(struct http_conn *conn);
/* The client has gone: free it (a stream, after `closed`) or leave it to its handler. */
void exchange_orphan(struct acre_exchange *exchange);
/* Append status line and header fields; length_known false: chunks, or until the end. */
void http_write_head(struct http_conn *conn, int status, const char *content_type,
                     bool length_known, uint64_t length, const struct acre_buf *added);

/* listen.c */
int http_listen(struct acre_http *http, struct acre_error *err);
void http_unlisten(struct acre_http *http);
struct http_key http_peer_of(int fd, bool is_unix, struct acre_http_peer *ret_peer);

#endif
