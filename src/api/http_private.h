/* http_private.h - what the files of the HTTP server share; nobody else includes it.
 *
 * http.c owns the server: listeners, one epoll set, deadlines. http_conn.c moves one connection's
 * bytes; http_exchange.c gives answers; http_tls.c turns bytes into other bytes; http_listen.c
 * opens sockets. Loop thread only. */
#ifndef ACRE_API_HTTP_PRIVATE_H
#define ACRE_API_HTTP_PRIVATE_H

#include "api/http.h"
#include "api/http_reader.h"
#include "api/http_tls.h"
#include "core/clock.h"

enum {
    ACRE_HTTP_SCRATCH_BYTES = 64 * 1024,
    ACRE_HTTP_STREAM_MAX = 1024 * 1024, /* waiting for a slow follower; then it is cut */
    ACRE_HTTP_LISTENERS_MAX = 2,
};

/* What a connection is waiting for; each kind has one time-out, so a list of each kind in order of
 * arming is in order of expiry, and only the heads need to be looked at. */
enum acre_http_wait {
    ACRE_HTTP_WAIT_REQUEST, /* for the rest of a request (or the first one) */
    ACRE_HTTP_WAIT_ANSWER,  /* for the client to take what we sent */
    ACRE_HTTP_WAIT_IDLE,    /* for the next request */
    ACRE_HTTP_WAIT_LINGER,  /* for the client to close, after we did */
    ACRE_HTTP_WAIT_COUNT,
    ACRE_HTTP_WAIT_NONE = ACRE_HTTP_WAIT_COUNT, /* for a handler */
};

struct acre_http_conn {
    struct acre_http *http;
    struct acre_http_conn *next, **previous;           /* all */
    struct acre_http_conn *wait_next, **wait_previous; /* of the same kind, oldest first */
    struct acre_http_conn *ready_next;                 /* to be looked at before we sleep */
    int fd;
    enum acre_http_wait wait;
    uint64_t deadline_ms;
    uint64_t sent_bytes;   /* to the kernel */
    uint64_t taken_before; /* by the client, when the deadline was set */
    bool is_ready;         /* in the list of those to be looked at */
    bool can_read;         /* epoll said so, and no read has said otherwise */
    bool can_write;
    bool watches_write; /* epoll has been asked to say when it can be written again */
    bool hung_up;       /* epoll said that the client sends no more */
    bool has_ended;     /* and that has been read */
    bool working;       /* inside acre_http_conn_work */
    bool closing;       /* nothing is read after what is being sent */
    bool lingering;     /* what we had to say is said */
    bool dead;          /* to be destroyed by whoever looks at it next */
    bool sent_continue;
    struct acre_tls *tls; /* NULL: plain */
    struct acre_http_reader reader;
    struct acre_buf in; /* bytes read and not used; data NULL: none */
    size_t in_used;
    struct acre_buf out; /* to be sent, in front of `body`; data NULL: nothing */
    size_t out_sent;
    struct acre_buf body; /* a large one, as the handler gave it; data NULL: none */
    size_t body_sent;
    struct acre_exchange *exchange; /* being handled or streamed; NULL: none */
    struct acre_http_peer peer;
};

struct acre_exchange {
    struct acre_http_request request;
    struct acre_http_message message;
    struct acre_http_peer peer;
    struct acre_loop *loop;
    struct acre_http_conn *conn; /* NULL: the client has gone, or the server */
    struct acre_buf added;       /* header fields of the answer; data NULL: none */
    bool streaming, chunked, ended;
    acre_loop_function *closed;
    void *context;
};

struct acre_http_wait_list {
    struct acre_http_conn *oldest, **end;
    uint64_t timeout_ms;
};

struct acre_http_listener {
    int fd; /* -1: closed */
    bool is_unix;
    bool tls;
};

struct acre_http {
    struct acre_http_options options; /* texts in it are not kept */
    struct acre_clock clock;
    struct acre_http_counts counts;
    struct acre_http_listener listeners[ACRE_HTTP_LISTENERS_MAX];
    uint32_t listener_count;
    char *unix_path; /* what we made and must remove; NULL: nothing */
    uint64_t unix_device, unix_inode;
    uint16_t port;
    int epoll_fd, wake_fd, spare_fd; /* -1: not open */
    bool awake; /* we look at the ready list before we sleep anyway, or have been woken */
    struct acre_watch *watch;
    struct acre_timer *tick;
    uint64_t tick_ms;
    struct acre_http_wait_list waits[ACRE_HTTP_WAIT_COUNT];
    struct acre_http_conn *conns;
    struct acre_http_conn *ready, **ready_end;
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
void acre_http_set_wait(struct acre_http_conn *conn, enum acre_http_wait wait);
void acre_http_make_ready(struct acre_http_conn *conn); /* look at it soon */
void acre_http_forget(struct acre_http_conn *conn);     /* it is gone from all lists */

/* http_conn.c */
void acre_http_conn_create(struct acre_http *http, int fd, bool tls,
                           const struct acre_http_peer *peer);
void acre_http_conn_destroy(struct acre_http_conn *conn);
/* Do all that can be done without waiting; may destroy it. */
void acre_http_conn_work(struct acre_http_conn *conn);
/* Something was put into out or body. */
void acre_http_conn_flush(struct acre_http_conn *conn);
/* The deadline is over; may destroy it. */
void acre_http_conn_expire(struct acre_http_conn *conn);
uint64_t acre_http_conn_taken(const struct acre_http_conn *conn); /* bytes the client has */
size_t acre_http_conn_backlog(const struct acre_http_conn *conn); /* bytes to be sent */
struct acre_buf *acre_http_conn_out(struct acre_http_conn *conn); /* to be appended to */

/* http_exchange.c */
struct acre_exchange *acre_exchange_create(struct acre_http_conn *conn);
/* The client has gone: free it (a stream, after `closed`) or leave it to its handler. */
void acre_exchange_orphan(struct acre_exchange *exchange);
/* Append status line and header fields; length_known false: chunks, or until the end. */
void acre_http_write_head(struct acre_http_conn *conn, int status, const char *content_type,
                          bool length_known, uint64_t length, const struct acre_buf *added);

/* http_listen.c */
int acre_http_listen(struct acre_http *http, struct acre_error *err);
void acre_http_unlisten(struct acre_http *http);
void acre_http_peer_of(int fd, bool is_unix, struct acre_http_peer *ret_peer);

#endif
