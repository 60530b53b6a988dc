/* conn.h - one connection of the HTTP server; for the server's own files alone.
 *
 * Loop thread only. It moves bytes; what the requests mean is its handler's business. */
#ifndef ACRE_HTTP_CONN_H
#define ACRE_HTTP_CONN_H

#include "http/admit.h"
#include "http/reader.h"
#include "http/tls.h"

/* What a connection is waiting for; each kind has one time-out, so a list of each kind in order of
 * arming is in order of expiry, and only the heads need to be looked at. */
enum http_wait {
    ACRE_HTTP_WAIT_REQUEST,          /* for the rest of a request (or the first one) */
    ACRE_HTTP_WAIT_ANSWER,           /* for the client to take what we sent */
    ACRE_HTTP_WAIT_IDLE,             /* for the next request */
    ACRE_HTTP_WAIT_STRANGER_REQUEST, /* the same, of clients that are not known */
    ACRE_HTTP_WAIT_STRANGER_IDLE,
    ACRE_HTTP_WAIT_LINGER, /* for the client to close, after we did */
    ACRE_HTTP_WAIT_COUNT,
    ACRE_HTTP_WAIT_NONE = ACRE_HTTP_WAIT_COUNT, /* for a handler */
};

struct http_conn {
    struct acre_http *http;
    struct http_conn *next, **previous;           /* all */
    struct http_conn *wait_next, **wait_previous; /* of the same kind, oldest first */
    struct http_conn *ready_next;                 /* to be looked at before we sleep */
    struct {
        struct http_conn *next, **previous;
    } lines[ACRE_HTTP_LINES];   /* of strangers; previous NULL: none */
    struct http_origin *origin; /* what it counts against; NULL: nothing */
    size_t held_bytes;          /* of a body, as counted */
    size_t owed_bytes;          /* of answers, as counted */
    int fd;
    enum http_wait wait;
    uint64_t deadline_ms;
    uint64_t sent_bytes;   /* to the kernel */
    uint64_t taken_before; /* by the client, when the deadline was set */
    bool is_ready;         /* in the list of those to be looked at */
    bool is_counted;       /* in the number of connections */
    bool is_common;        /* and among those without a privilege */
    bool is_known;         /* no stranger */
    bool is_refused;       /* not admitted: it only gets the reason */
    bool can_read;         /* epoll said so, and no read has said otherwise */
    bool can_write;
    bool watches_write; /* epoll has been asked to say when it can be written again */
    bool hung_up;       /* epoll said that the client sends no more */
    bool has_ended;     /* and that has been read */
    bool working;       /* inside http_conn_work */
    bool closing;       /* nothing is read after what is being sent */
    bool lingering;     /* what we had to say is said */
    bool dead;          /* to be destroyed by whoever looks at it next */
    bool sent_continue;
    struct tls *tls; /* NULL: plain */
    struct http_reader reader;
    struct acre_buf in; /* bytes read and not used; data NULL: none */
    size_t in_used;
    struct acre_buf out; /* to be sent, in front of `body`; data NULL: nothing */
    size_t out_sent;
    struct acre_buf body; /* a large one, as the handler gave it; data NULL: none */
    size_t body_sent;
    struct acre_exchange *exchange; /* being handled or streamed; NULL: none */
    struct acre_http_peer peer;
};

void http_conn_create(struct acre_http *http, int fd, bool tls, const struct acre_http_peer *peer,
                      struct http_key key);
/* Say why this client cannot have a connection, and end it. */
void http_conn_refuse(struct acre_http *http, int fd, bool tls, const struct acre_http_peer *peer,
                      int status, const struct acre_error *err);
/* The same at once; a client that has sent something already may not see the reason. */
void http_turn_away(int fd, bool tls, int status, const struct acre_error *err);
/* What it waits for between two requests, and for the rest of one. */
enum http_wait http_conn_idle(const struct http_conn *conn);
void http_conn_destroy(struct http_conn *conn);
/* Do all that can be done without waiting; may destroy it. */
void http_conn_work(struct http_conn *conn);
/* Something was put into out or body. */
void http_conn_flush(struct http_conn *conn);
/* The deadline is over; may destroy it. */
void http_conn_expire(struct http_conn *conn);
uint64_t http_conn_taken(const struct http_conn *conn); /* bytes the client has */
size_t http_conn_backlog(const struct http_conn *conn); /* bytes to be sent */
struct acre_buf *http_conn_out(struct http_conn *conn); /* to be appended to */

#endif
