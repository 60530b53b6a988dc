/* conn.c - one connection: bytes from the socket to requests, answers to the socket.
 *
 * The socket is watched once for everything, edge-triggered: epoll reports changes,
 * `can_read` and `can_write` remember it, and no request costs a change of the watch. One request
 * is handled at a time; what a client sends ahead stays unread in `in` and then in the kernel, so
 * it cannot make us hold more than one buffer of it.
 *
 * All is done in http_conn_work, which nothing calls from within itself: handlers only put
 * bytes into `out` and mark the connection as ready. So an answer inside a handler is no recursion,
 * and no connection is freed while it is in use: a closed one is destroyed by the next call that
 * works on it.
 *
 * A closed connection is closed in two steps (our half, then a second of reading and throwing
 * away), because closing a socket with unread bytes makes the kernel discard what the client has
 * not read: the very answer that says why. */
#include "core/units.h"
#include "http/inner.h"
#include "http/problem.h"

#include <errno.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    STEPS_A_TURN = 64,            /* requests or reads before others have a turn */
    COUNTED_BYTES = 64 * 1024,    /* of a body or answers: less is what a read brings anyway */
    THROWN_A_TURN = 4,            /* reads of input that is dropped */
    OUT_PAUSE_BYTES = 256 * 1024, /* more waiting answers: read no further requests */
    OUT_KEPT_BYTES = 8 * 1024,    /* memory an idle connection keeps */
    RECORD_BYTES = 16 * 1024,     /* of TLS */
    BYTES_A_MS_MIN = 16,          /* 16 KiB/s: slower takers of answers are cut */
    PROBLEM_MAX = 4096,
    HANDSHAKES_A_TURN = 4, /* a millisecond each with RSA */
    REFUSED_MAX = 32,      /* connections kept open until the client has read why it is refused */
};

enum http_wait http_conn_idle(const struct http_conn *conn) {
    return conn->is_known ? ACRE_HTTP_WAIT_IDLE : ACRE_HTTP_WAIT_STRANGER_IDLE;
}

static enum http_wait wait_for_request(const struct http_conn *conn) {
    return conn->is_known ? ACRE_HTTP_WAIT_REQUEST : ACRE_HTTP_WAIT_STRANGER_REQUEST;
}

static bool waits_for_request(const struct http_conn *conn) {
    return conn->wait == ACRE_HTTP_WAIT_REQUEST || conn->wait == ACRE_HTTP_WAIT_STRANGER_REQUEST;
}

void http_turn_away(int fd, bool tls, int status, const struct acre_error *err) {
    struct acre_buf body;
    char answer[2 * PROBLEM_MAX];
    acre_buf_init(&body, PROBLEM_MAX);
    acre_problem_write(&body, status, err);
    int length = snprintf(answer, sizeof(answer),
                          "HTTP/1.1 %d %s\r\nContent-Type: " ACRE_PROBLEM_TYPE
                          "\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s",
                          status, acre_http_reason(status), body.length, body.data);
    acre_buf_finish(&body);
    if (!tls && length > 0 && (size_t)length < sizeof(answer)) {
        ssize_t sent = send(fd, answer, (size_t)length, MSG_NOSIGNAL | MSG_DONTWAIT);
        (void)sent; /* not taken: the client has hung up */
    }
    close(fd);
}

static struct http_conn *make(struct acre_http *http, int fd, bool tls,
                              const struct acre_http_peer *peer) {
    struct http_conn *conn = acre_calloc(1, sizeof(*conn));
    conn->http = http;
    conn->fd = fd;
    conn->peer = *peer;
    conn->can_write = true;
    conn->wait = ACRE_HTTP_WAIT_NONE;
    conn->tls = tls ? tls_create(http->tls) : NULL;
    http_reader_init(&conn->reader, http->options.body_max);
    conn->next = http->conns;
    conn->previous = &http->conns;
    if (conn->next != NULL) {
        conn->next->previous = &conn->next;
    }
    http->conns = conn;
    http->counts.connections++;
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | EPOLLET, .data.ptr = conn};
    if (epoll_ctl(http->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0) {
        conn->dead = true;
        http_make_ready(conn);
    }
    return conn;
}

void http_conn_create(struct acre_http *http, int fd, bool tls, const struct acre_http_peer *peer,
                      struct http_key key) {
    struct http_conn *conn = make(http, fd, tls, peer);
    http_enter(conn, key);
    http_set_wait(conn, wait_for_request(conn));
}

void http_conn_destroy(struct http_conn *conn) {
    struct acre_http *http = conn->http;
    http_forget(conn);
    if (conn->fd >= 0) {
        close(conn->fd); /* leaves the epoll set, too */
        http_listen_again(http);
    }
    struct acre_exchange *exchange = conn->exchange;
    tls_destroy(conn->tls);
    http_reader_finish(&conn->reader);
    acre_buf_finish(&conn->in);
    acre_buf_finish(&conn->out);
    acre_buf_finish(&conn->body);
    if (exchange != NULL) {
        http->counts.streams -= exchange->streaming;
    }
    free(conn);
    if (exchange != NULL) {
        exchange_orphan(exchange);
    }
}

struct acre_buf *http_conn_out(struct http_conn *conn) {
    if (conn->out.data == NULL) {
        acre_buf_init(&conn->out, SIZE_MAX / 2); /* what limits it: OUT_PAUSE or STREAM_MAX */
    }
    return &conn->out;
}

size_t http_conn_backlog(const struct http_conn *conn) {
    size_t bytes = conn->out.length - conn->out_sent + conn->body.length - conn->body_sent;
    return bytes + (conn->tls != NULL ? tls_pending(conn->tls).length : 0);
}

/* Give back what was sent of out, where it never becomes empty because its client is never done. */
static void drop_sent(struct http_conn *conn) {
    struct acre_buf *out = &conn->out;
    if (conn->out_sent >= COUNTED_BYTES && conn->out_sent >= out->length / 2) {
        out->length -= conn->out_sent;
        memmove(out->data, out->data + conn->out_sent, out->length + 1); /* with its NUL */
        conn->out_sent = 0;
    }
}

/* Forget `length` bytes of the front of out and body. */
static void was_sent(struct http_conn *conn, size_t length) {
    size_t of_out = ACRE_MIN(length, conn->out.length - conn->out_sent);
    conn->out_sent += of_out;
    conn->body_sent += length - of_out;
    if (conn->out_sent == conn->out.length && conn->out.data != NULL) {
        conn->out_sent = 0;
        if (conn->out.capacity > OUT_KEPT_BYTES) {
            acre_buf_finish(&conn->out);
        } else {
            acre_buf_clear(&conn->out);
        }
    }
    drop_sent(conn);
    if (conn->body_sent == conn->body.length) {
        acre_buf_finish(&conn->body);
        conn->body_sent = 0;
    }
}

/* The next bytes for the socket: at most two pieces. 0: there are none. */
static int next_pieces(struct http_conn *conn, struct iovec pieces[2]) {
    int count = 0;
    if (conn->out.length > conn->out_sent) {
        pieces[count++] = (struct iovec){.iov_base = conn->out.data + conn->out_sent,
                                         .iov_len = conn->out.length - conn->out_sent};
    }
    if (conn->body.length > conn->body_sent) {
        pieces[count++] = (struct iovec){.iov_base = conn->body.data + conn->body_sent,
                                         .iov_len = conn->body.length - conn->body_sent};
    }
    if (conn->tls == NULL) {
        return count;
    }
    struct acre_str pending = tls_pending(conn->tls);
    if (pending.length == 0 && count > 0) {
        size_t length = ACRE_MIN(pieces[0].iov_len, (size_t)RECORD_BYTES);
        if (!tls_write(conn->tls, pieces[0].iov_base, length)) {
            conn->dead = true;
            return 0;
        }
        was_sent(conn, length);
        pending = tls_pending(conn->tls);
    }
    pieces[0] =
        (struct iovec){.iov_base = (void *)(uintptr_t)pending.data, .iov_len = pending.length};
    return pending.length > 0 ? 1 : 0;
}

/* Few connections ever get here, so the others are not woken by every byte the client takes. */
static void wait_for_room(struct http_conn *conn) {
    conn->can_write = false;
    if (!conn->watches_write) {
        struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
                                    .data.ptr = conn};
        conn->watches_write = true;
        conn->dead = epoll_ctl(conn->http->epoll_fd, EPOLL_CTL_MOD, conn->fd, &event) != 0;
    }
}

void http_conn_flush(struct http_conn *conn) {
    struct iovec pieces[2];
    while (conn->can_write && !conn->dead) {
        struct msghdr message = {.msg_iov = pieces};
        message.msg_iovlen = (size_t)next_pieces(conn, pieces);
        if (message.msg_iovlen == 0) {
            return;
        }
        ssize_t sent = sendmsg(conn->fd, &message, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) {
            continue;
        }
        if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            wait_for_room(conn);
        } else if (sent < 0) {
            conn->dead = true;
        } else {
            conn->sent_bytes += (uint64_t)sent;
            if (conn->tls != NULL) {
                tls_sent(conn->tls, (size_t)sent);
            } else {
                was_sent(conn, (size_t)sent);
            }
        }
    }
}

/* Answer without a handler, and read nothing more from this client. */
static void refuse(struct http_conn *conn, int status, const struct acre_error *err) {
    struct acre_buf body;
    acre_buf_init(&body, PROBLEM_MAX);
    acre_problem_write(&body, status, err);
    conn->closing = true;
    http_write_head(conn, status, ACRE_PROBLEM_TYPE, true, body.length, NULL);
    acre_buf_append(http_conn_out(conn), body.data, body.length);
    acre_buf_finish(&body);
    conn->http->counts.refused++;
}

/* Closed in two steps like every other, so that the client can read the answer; but not for a
 * flood of them. */
void http_conn_refuse(struct acre_http *http, int fd, bool tls, const struct acre_http_peer *peer,
                      int status, const struct acre_error *err) {
    if (tls || http->crowd.refused >= REFUSED_MAX) {
        http_turn_away(fd, tls, status, err);
        http->counts.refused++;
        return;
    }
    struct http_conn *conn = make(http, fd, false, peer);
    conn->is_refused = true;
    http->crowd.refused++;
    refuse(conn, status, err);
    http_make_ready(conn);
}

/* To the handler; where it says that this is not the turn for it, in the next one again. */
static void handle(struct http_conn *conn) {
    struct acre_http *http = conn->http;
    conn->exchange->again = false;
    uint64_t began_ns = acre_clock_monotonic_ns(&http->clock);
    http->options.handler(http->options.context, conn->exchange, &conn->exchange->request);
    http_spend(conn, acre_clock_monotonic_ns(&http->clock) - began_ns);
    if (conn->exchange != NULL && conn->exchange->again) {
        http_make_ready(conn);
    }
}

static void dispatch(struct http_conn *conn) {
    conn->sent_continue = false;
    conn->exchange = exchange_create(conn);
    conn->http->counts.requests++;
    http_set_wait(conn, ACRE_HTTP_WAIT_NONE);
    handle(conn);
}

static void handle_again(struct http_conn *conn) {
    if (conn->exchange == NULL || !conn->exchange->again) {
        return;
    }
    if (http_has_time(conn)) {
        handle(conn);
    } else {
        http_make_ready(conn);
    }
}

/* Bytes from the socket into `to`: how many, or 0 when there are none now or ever again. */
static size_t receive(struct http_conn *conn, char *to, size_t size) {
    while (conn->can_read) {
        ssize_t got = recv(conn->fd, to, size, 0);
        if (got > 0) {
            /* Less than asked for is all there was; but the end may be waiting behind it. */
            conn->can_read = (size_t)got == size || conn->hung_up;
            return (size_t)got;
        }
        if (got < 0 && errno == EINTR) {
            continue;
        }
        conn->can_read = false;
        if (got == 0) {
            conn->has_ended = true;
        } else if (errno != EAGAIN && errno != EWOULDBLOCK) {
            conn->dead = true;
        }
    }
    return 0;
}

/* The same, decrypted where need be. */
static struct acre_str receive_plain(struct http_conn *conn) {
    struct acre_http *http = conn->http;
    if (conn->tls == NULL) {
        size_t got = receive(conn, http->scratch, sizeof(http->scratch));
        return (struct acre_str){http->scratch, got};
    }
    for (;;) {
        int plain = tls_read(conn->tls, http->plain, sizeof(http->plain));
        if (plain != 0) {
            conn->has_ended = conn->has_ended || plain < 0;
            return (struct acre_str){http->plain, plain > 0 ? (size_t)plain : 0};
        }
        size_t got = receive(conn, http->scratch, sizeof(http->scratch));
        if (got == 0) {
            return (struct acre_str){0};
        }
        tls_put(conn->tls, http->scratch, got);
    }
}

/* Keep for later what was read and not used. */
static void keep_unread(struct http_conn *conn, struct acre_str unread) {
    if (unread.length == 0) {
        acre_buf_finish(&conn->in);
        conn->in_used = 0;
    } else if (conn->in.data != NULL && unread.data >= conn->in.data &&
               unread.data <= conn->in.data + conn->in.length) {
        conn->in_used = (size_t)(unread.data - conn->in.data); /* it is there already */
    } else {
        ACRE_ASSERT(conn->in.data == NULL);
        acre_buf_init(&conn->in, ACRE_HTTP_HEAD_MAX + ACRE_HTTP_SCRATCH_BYTES);
        acre_buf_append(&conn->in, unread.data, unread.length);
        conn->in_used = 0;
    }
}

static struct acre_str unread_of(const struct http_conn *conn) {
    if (conn->in.data == NULL) {
        return (struct acre_str){0};
    }
    return (struct acre_str){conn->in.data + conn->in_used, conn->in.length - conn->in_used};
}

/* More bytes behind `unread`, in one piece with it. False: none now. */
static bool read_more(struct http_conn *conn, struct acre_str *unread) {
    keep_unread(conn, *unread); /* before: they may be where the next ones are read into */
    *unread = unread_of(conn);
    struct acre_str more = receive_plain(conn);
    if (more.length == 0) {
        return false;
    }
    if (unread->length == 0) {
        *unread = more;
        return true;
    }
    struct acre_buf joined; /* a request in pieces: rare, and short */
    acre_buf_init(&joined, ACRE_HTTP_HEAD_MAX + ACRE_HTTP_SCRATCH_BYTES);
    acre_buf_append(&joined, unread->data, unread->length);
    acre_buf_append(&joined, more.data, more.length);
    ACRE_ASSERT(!acre_buf_failed(&joined)); /* the reader keeps no more than a head */
    acre_buf_finish(&conn->in);
    conn->in = joined;
    conn->in_used = 0;
    *unread = unread_of(conn);
    return true;
}

static void send_continue(struct http_conn *conn) {
    if (!conn->sent_continue && http_reader_wants_continue(&conn->reader)) {
        acre_buf_puts(http_conn_out(conn), "HTTP/1.1 100 Continue\r\n\r\n");
        conn->sent_continue = true;
        http_conn_flush(conn);
    }
}

static bool may_read(const struct http_conn *conn) {
    return !conn->dead && !conn->closing && conn->exchange == NULL && conn->body.data == NULL &&
           conn->out.length - conn->out_sent < OUT_PAUSE_BYTES;
}

static bool has_input(const struct http_conn *conn) {
    return conn->in.data != NULL || conn->can_read ||
           (conn->tls != NULL && tls_has_input(conn->tls));
}

/* As http_reader_feed, within what may be held of bodies. Short ones are not worth counting.
 */
static int feed(struct http_conn *conn, struct acre_str bytes, size_t *ret_used,
                struct acre_error *err) {
    int r = http_reader_feed(&conn->reader, bytes, ret_used, err);
    size_t held = r == 0 ? conn->reader.message.body.capacity : 0;
    held = held >= COUNTED_BYTES ? held : 0;
    if (held == conn->held_bytes) {
        return r;
    }
    int status = http_count_body(conn, held, err);
    return status != 0 ? status : r;
}

/* Requests to their handlers, as long as there are some and nothing holds them up. */
static void pump(struct http_conn *conn) {
    struct acre_str unread = unread_of(conn);
    unsigned steps = 0;
    uint32_t requests = http_allowance(conn);
    while (may_read(conn) && requests > 0 && steps++ < STEPS_A_TURN) {
        struct acre_error err = {0};
        size_t used = 0;
        int r = feed(conn, unread, &used, &err);
        unread.data += used;
        unread.length -= used;
        if (r > 1) {
            refuse(conn, r, &err);
        } else if (r == 1) {
            dispatch(conn);
            requests = http_has_time(conn) ? requests - 1 : 0;
        } else {
            send_continue(conn);
            if (!read_more(conn, &unread)) {
                conn->closing = conn->closing || conn->has_ended;
                break;
            }
        }
    }
    if (conn->closing) {
        unread.length = 0;
    }
    keep_unread(conn, unread);
    if (steps > STEPS_A_TURN || (requests == 0 && has_input(conn))) {
        http_make_ready(conn);
    }
}

static void throw_input_away(struct http_conn *conn) {
    struct acre_http *http = conn->http;
    for (unsigned i = 0; i < THROWN_A_TURN && conn->can_read; i++) {
        receive(conn, http->scratch, sizeof(http->scratch));
    }
    if (conn->has_ended) {
        conn->dead = true;
    } else if (conn->can_read) {
        http_make_ready(conn);
    }
}

/* Everything is sent. */
static void start_to_linger(struct http_conn *conn) {
    if (conn->tls != NULL) {
        tls_close(conn->tls);
        http_conn_flush(conn);
    }
    conn->lingering = true;
    if (conn->has_ended || shutdown(conn->fd, SHUT_WR) != 0) {
        conn->dead = true;
    }
}

static void choose_wait(struct http_conn *conn) {
    enum http_wait wait = http_conn_idle(conn);
    if (conn->lingering) {
        wait = ACRE_HTTP_WAIT_LINGER;
    } else if (http_conn_backlog(conn) > 0) {
        wait = ACRE_HTTP_WAIT_ANSWER;
    } else if (conn->exchange != NULL || (conn->is_ready && has_input(conn))) {
        wait = ACRE_HTTP_WAIT_NONE; /* it waits for us */
    } else if (waits_for_request(conn) || conn->in.data != NULL ||
               http_reader_is_inside(&conn->reader)) {
        wait = wait_for_request(conn);
    }
    if (wait != conn->wait) {
        http_set_wait(conn, wait);
    }
}

/* A stream that ended is over once its last byte is sent. */
static void finish_stream(struct http_conn *conn) {
    struct acre_exchange *exchange = conn->exchange;
    conn->exchange = NULL;
    conn->http->counts.streams--;
    exchange_orphan(exchange);
}

/* A handshake is as much work as a hundred requests, and needs no token: a few a turn. */
static bool may_shake(struct http_conn *conn) {
    struct acre_http *http = conn->http;
    if (conn->tls == NULL || !tls_is_shaking(conn->tls)) {
        return true;
    }
    if (http->handshakes >= HANDSHAKES_A_TURN) {
        return false;
    }
    http->handshakes++;
    return true;
}

static void work_alive(struct http_conn *conn) {
    bool streaming = conn->exchange != NULL && conn->exchange->streaming;
    if (streaming && conn->hung_up) {
        conn->dead = true;
        return;
    }
    if (conn->lingering) {
        throw_input_away(conn);
    } else if (may_shake(conn)) {
        handle_again(conn);
        pump(conn);
    } else {
        http_make_ready(conn);
    }
    bool was_held_up = !may_read(conn);
    http_conn_flush(conn);
    if (conn->dead || http_conn_backlog(conn) > 0) {
        return;
    }
    if (conn->exchange != NULL && conn->exchange->ended) {
        finish_stream(conn);
    }
    if (conn->closing && conn->exchange == NULL && !conn->lingering) {
        start_to_linger(conn);
    } else if (was_held_up && may_read(conn)) {
        http_make_ready(conn);
    }
}

/* A client that asks for much and reads nothing is cut before that fills the memory. */
static void count_answers(struct http_conn *conn) {
    size_t bytes = conn->out.length + conn->body.length;
    bytes = bytes >= COUNTED_BYTES ? bytes : 0;
    if (bytes != conn->owed_bytes && !http_owe(conn, bytes)) {
        conn->dead = true;
        conn->http->counts.refused++;
    }
}

void http_conn_work(struct http_conn *conn) {
    if (!conn->dead) {
        conn->working = true;
        work_alive(conn);
        conn->working = false;
        count_answers(conn);
    }
    if (conn->dead) {
        http_conn_destroy(conn);
    } else {
        choose_wait(conn);
    }
}

uint64_t http_conn_taken(const struct http_conn *conn) {
    int waiting = 0; /* in the kernel, which tells us of room only when a third is free */
    if (ioctl(conn->fd, SIOCOUTQ, &waiting) != 0 || waiting < 0) {
        return conn->sent_bytes;
    }
    return conn->sent_bytes - ACRE_MIN((uint64_t)waiting, conn->sent_bytes);
}

/* Whether the client took enough since the deadline was set to be given another one. */
static bool takes_enough(const struct http_conn *conn) {
    uint64_t timeout_ms = conn->http->waits[ACRE_HTTP_WAIT_ANSWER].timeout_ms;
    uint64_t taken = http_conn_taken(conn);
    return taken > conn->taken_before &&
           (taken - conn->taken_before) / BYTES_A_MS_MIN >= timeout_ms;
}

void http_conn_expire(struct http_conn *conn) {
    struct acre_http *http = conn->http;
    if (conn->wait == ACRE_HTTP_WAIT_ANSWER && takes_enough(conn)) {
        http_set_wait(conn, ACRE_HTTP_WAIT_ANSWER);
        return;
    }
    bool is_counted = waits_for_request(conn) || conn->wait == ACRE_HTTP_WAIT_ANSWER;
    if (waits_for_request(conn) &&
        (conn->in.data != NULL || http_reader_is_inside(&conn->reader))) {
        struct acre_error err;
        char within[32];
        acre_format_span(http->waits[conn->wait].timeout_ms, within, sizeof(within));
        acre_fail(&err, ACRE_ETIMEOUT, "the request was not complete within %s", within);
        refuse(conn, 408, &err);
        keep_unread(conn, (struct acre_str){0});
    } else {
        conn->dead = true;
    }
    if (is_counted) {
        http->counts.timed_out++;
    }
    http_conn_work(conn);
}
