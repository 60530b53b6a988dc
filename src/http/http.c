/* http.c - the server: accepting, one epoll set for all connections, their deadlines, the end.
 *
 * The loop watches one descriptor of ours: an epoll set that holds listeners, connections and an
 * eventfd. So thousands of connections cost the loop one handle, and we see all that happened in
 * one call. Connections to be looked at again (an answer was given, a turn was used up) are in the
 * ready list; the eventfd keeps the loop from sleeping over it.
 *
 * Deadlines: every kind of waiting has one time-out, so each kind is a list in order of expiry;
 * arming moves a connection to the end of one. A single coarse timer looks at the heads while there
 * are connections at all. */
#include "http/inner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    EVENTS_A_TURN = 256,
    ACCEPTS_A_TURN = 64,
    LINGER_MS = 1000,
    TICK_MIN_MS = 5,
    TICK_MAX_MS = 250, /* deadlines are seconds: nobody sees a quarter of one */
    BODY_MAX = 1024 * 1024,
    REQUEST_TIMEOUT_MS = 10 * 1000,
    ANSWER_TIMEOUT_MS = 30 * 1000,
    IDLE_TIMEOUT_MS = 60 * 1000,
    STRANGER_TIMEOUT_MS = 5 * 1000,
    CONNECTIONS_MAX = 1000,
    CONNECTIONS_MIN = 4, /* one for root, and one for the socket */
};

static uint64_t clock_ms(const struct acre_http *http) {
    return acre_clock_monotonic_ns(&http->clock) / 1000000;
}

static void leave_wait(struct http_conn *conn) {
    if (conn->wait == ACRE_HTTP_WAIT_NONE) {
        return;
    }
    struct http_wait_list *list = &conn->http->waits[conn->wait];
    *conn->wait_previous = conn->wait_next;
    if (conn->wait_next != NULL) {
        conn->wait_next->wait_previous = conn->wait_previous;
    } else {
        list->end = conn->wait_previous;
    }
    conn->wait = ACRE_HTTP_WAIT_NONE;
}

static void on_tick(void *context);

static void start_tick(struct acre_http *http) {
    if (http->tick == NULL) {
        http->tick =
            acre_loop_timer(http->options.loop, http->tick_ms, http->tick_ms, on_tick, http);
    }
}

void http_set_wait(struct http_conn *conn, enum http_wait wait) {
    struct acre_http *http = conn->http;
    leave_wait(conn);
    if (wait == ACRE_HTTP_WAIT_NONE) {
        return;
    }
    struct http_wait_list *list = &http->waits[wait];
    conn->wait = wait;
    conn->deadline_ms = clock_ms(http) + list->timeout_ms;
    if (wait == ACRE_HTTP_WAIT_ANSWER) {
        conn->taken_before = http_conn_taken(conn);
    }
    conn->wait_next = NULL;
    conn->wait_previous = list->end;
    *list->end = conn;
    list->end = &conn->wait_next;
    start_tick(http);
}

static void wake(struct acre_http *http) {
    if (!http->awake) {
        uint64_t one = 1;
        http->awake = write(http->wake_fd, &one, sizeof(one)) == (ssize_t)sizeof(one);
        ACRE_ASSERT(http->awake); /* it cannot be full: it is read before it is written again */
    }
}

void http_make_ready(struct http_conn *conn) {
    struct acre_http *http = conn->http;
    if (!conn->is_ready) {
        conn->is_ready = true;
        conn->ready_next = NULL;
        *http->ready_end = conn;
        http->ready_end = &conn->ready_next;
        wake(http);
    }
}

void http_forget(struct http_conn *conn) {
    struct acre_http *http = conn->http;
    leave_wait(conn);
    http_leave(conn);
    *conn->previous = conn->next;
    if (conn->next != NULL) {
        conn->next->previous = conn->previous;
    }
    if (conn->is_ready) { /* rare: an expired one, or at the end */
        struct http_conn **link = &http->ready;
        while (*link != conn) {
            link = &(*link)->ready_next;
        }
        *link = conn->ready_next;
        if (*link == NULL) {
            http->ready_end = link;
        }
    }
    http->counts.connections--;
}

/* Call `drained` when it is time. The last thing to do with `http`, which it may stop. */
static void check_drained(struct acre_http *http) {
    if (!http->draining || http->conns != NULL || http->drained == NULL) {
        return;
    }
    acre_loop_function *drained = http->drained;
    http->drained = NULL;
    acre_timer_cancel(http->drain_timer);
    http->drain_timer = NULL;
    drained(http->drained_context);
}

static void on_tick(void *context) {
    struct acre_http *http = context;
    uint64_t now_ms = clock_ms(http);
    for (size_t i = 0; i < ACRE_HTTP_WAIT_COUNT; i++) {
        struct http_wait_list *list = &http->waits[i];
        while (list->oldest != NULL && list->oldest->deadline_ms <= now_ms) {
            http_conn_expire(list->oldest); /* leaves the list, or goes to its end */
        }
    }
    http_listen_again(http);
    if (http->conns == NULL && !http->is_deaf) {
        acre_timer_cancel(http->tick);
        http->tick = NULL;
    }
    check_drained(http);
}

static bool watch_fd(struct acre_http *http, int fd, void *pointer) {
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = pointer};
    return epoll_ctl(http->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

static bool fill_spares(struct acre_http *http) {
    while (http->spare_count < ACRE_HTTP_SPARES) {
        int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (fd < 0) {
            return false;
        }
        http->spares[http->spare_count++] = fd;
    }
    return true;
}

/* A queue of clients that cannot be accepted would wake us for ever: listen again with the next
 * tick, or when a connection ends. */
static void stop_listening(struct acre_http *http) {
    for (uint32_t i = 0; i < http->listener_count && !http->is_deaf; i++) {
        epoll_ctl(http->epoll_fd, EPOLL_CTL_DEL, http->listeners[i].fd, NULL);
    }
    http->is_deaf = true;
    start_tick(http);
}

void http_listen_again(struct acre_http *http) {
    if (http->spare_count == ACRE_HTTP_SPARES) {
        return;
    }
    fill_spares(http);
    if (!http->is_deaf || http->spare_count == 0) {
        return;
    }
    http->is_deaf = false;
    for (uint32_t i = 0; i < http->listener_count; i++) {
        watch_fd(http, http->listeners[i].fd, &http->listeners[i]);
    }
}

/* The next client; where no other descriptor is left, on a spare one. -1: there is none, or it
 * cannot be accepted. */
static int accept_one(struct acre_http *http, int listener_fd, bool *ret_is_spare) {
    int fd = accept4(listener_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    *ret_is_spare = fd < 0 && (errno == EMFILE || errno == ENFILE);
    if (!*ret_is_spare) {
        return fd;
    }
    if (http->spare_count > 0) {
        close(http->spares[--http->spare_count]);
        fd = accept4(listener_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    }
    if (fd < 0 && (errno == EAGAIN || errno == ECONNABORTED)) {
        fill_spares(http); /* the client has left */
    } else if (fd < 0) {
        stop_listening(http);
    }
    return fd;
}

/* Only a privileged client keeps a spare descriptor. For others a stranger is closed, or they are
 * refused. */
static int judge(struct acre_http *http, const struct acre_http_peer *peer, struct http_key key,
                 bool is_spare, struct acre_error *err) {
    int status = http_admit(http, peer, key, err);
    if (status != 0 || !is_spare || http_make_room(http) || http_is_privileged(http, peer)) {
        return status;
    }
    acre_fail(err, ACRE_EUNAVAILABLE, "the server is out of file descriptors; try again later");
    return 503;
}

/* A peer of the unix socket without an account. */
static bool is_ghost(const struct acre_http *http, const struct acre_http_peer *peer) {
    const struct acre_http_options *options = &http->options;
    return !http_is_privileged(http, peer) && options->knows_uid != NULL &&
           !options->knows_uid(options->context, peer->uid);
}

static void accept_some(struct acre_http *http, const struct http_listener *listener) {
    for (unsigned i = 0; i < ACCEPTS_A_TURN && listener->fd >= 0; i++) {
        bool is_spare;
        int fd = accept_one(http, listener->fd, &is_spare);
        if (fd < 0) {
            return; /* no client is left, or none can be accepted */
        }
        struct acre_http_peer peer;
        struct acre_error err = {0};
        struct http_key key = http_peer_of(fd, listener->is_unix, &peer);
        if (key.kind == ACRE_HTTP_KEY_UID && is_ghost(http, &peer)) {
            key.value = UINT32_MAX; /* no uid: one user may have thousands of these (/etc/subuid) */
        }
        int status = judge(http, &peer, key, is_spare, &err);
        if (status == 0) {
            http_conn_create(http, fd, listener->tls, &peer, key);
        } else if (is_spare) {
            http_turn_away(fd, listener->tls, status, &err);
            http->counts.refused++;
        } else {
            http_conn_refuse(http, fd, listener->tls, &peer, status, &err);
        }
        if (is_spare) {
            http_listen_again(http);
        }
    }
}

static void note_events(struct http_conn *conn, uint32_t events) {
    bool is_over = (events & EPOLLHUP) != 0 && (conn->exchange != NULL || conn->lingering);
    conn->dead = conn->dead || (events & EPOLLERR) != 0 || is_over;
    conn->hung_up = conn->hung_up || (events & (EPOLLRDHUP | EPOLLHUP)) != 0;
    conn->can_read = conn->can_read || (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP)) != 0;
    conn->can_write = conn->can_write || (events & EPOLLOUT) != 0;
}

static bool is_listener(const struct acre_http *http, const void *pointer) {
    uintptr_t at = (uintptr_t)pointer;
    return at >= (uintptr_t)http->listeners &&
           at < (uintptr_t)(http->listeners + ACRE_HTTP_LISTENERS_MAX);
}

static void work_on_ready(struct acre_http *http) {
    /* Only those that are there now: the others have their turn after the rest of the loop. */
    struct http_conn *last = NULL;
    for (struct http_conn *conn = http->ready; conn != NULL; conn = conn->ready_next) {
        last = conn;
    }
    for (bool more = last != NULL; more;) {
        struct http_conn *conn = http->ready;
        more = conn != last;
        http->ready = conn->ready_next;
        if (http->ready == NULL) {
            http->ready_end = &http->ready;
        }
        conn->is_ready = false;
        http_conn_work(conn);
    }
}

static void on_events(void *context) {
    struct acre_http *http = context;
    struct epoll_event events[EVENTS_A_TURN];
    http->awake = true; /* the ready list is looked at below */
    http->handshakes = 0;
    http->crowd.turn++;
    http->crowd.spent_ns = 0;
    work_on_ready(http); /* before newer requests; and before an event can point to what it frees */
    int count = epoll_wait(http->epoll_fd, events, EVENTS_A_TURN, 0);
    for (int i = 0; i < count; i++) {
        void *pointer = events[i].data.ptr;
        if (pointer == http) {
            uint64_t value;
            ssize_t r = read(http->wake_fd, &value, sizeof(value));
            (void)r; /* it was readable; what it holds does not matter */
        } else if (is_listener(http, pointer)) {
            accept_some(http, pointer);
        } else {
            struct http_conn *conn = pointer; /* the dead are destroyed by themselves or below */
            note_events(conn, events[i].events);
            http_conn_work(conn);
        }
    }
    work_on_ready(http);
    http->awake = false;
    if (http->ready != NULL) {
        wake(http);
    }
    check_drained(http);
}

static int open_all(struct acre_http *http, struct acre_error *err) {
    const struct acre_http_options *options = &http->options;
    if (options->certificate_pem != NULL || options->key_pem != NULL) {
        int r = tls_setup(options->certificate_pem, options->key_pem, &http->tls, err);
        if (r < 0) {
            return r;
        }
    }
    http->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    http->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (http->epoll_fd < 0 || http->wake_fd < 0 || !fill_spares(http) ||
        !watch_fd(http, http->wake_fd, http)) {
        return acre_fail_errno(err, errno, "http server");
    }
    int r = http_listen(http, err);
    if (r < 0) {
        return r;
    }
    for (uint32_t i = 0; i < http->listener_count; i++) {
        if (!watch_fd(http, http->listeners[i].fd, &http->listeners[i])) {
            return acre_fail_errno(err, errno, "http server");
        }
    }
    http->watch = acre_loop_watch(options->loop, http->epoll_fd, on_events, http, err);
    return http->watch != NULL ? 0 : ACRE_EIO;
}

static uint64_t or_default(uint64_t value, uint64_t fallback) {
    return value != 0 ? value : fallback;
}

static void set_defaults(struct acre_http *http) {
    struct acre_http_options *options = &http->options;
    options->body_max = or_default(options->body_max, BODY_MAX);
    options->request_timeout_ms = or_default(options->request_timeout_ms, REQUEST_TIMEOUT_MS);
    options->answer_timeout_ms = or_default(options->answer_timeout_ms, ANSWER_TIMEOUT_MS);
    options->idle_timeout_ms = or_default(options->idle_timeout_ms, IDLE_TIMEOUT_MS);
    options->stranger_timeout_ms = or_default(options->stranger_timeout_ms, STRANGER_TIMEOUT_MS);
    options->connections_max =
        options->connections_max != 0 ? options->connections_max : CONNECTIONS_MAX;
    options->connections_max = ACRE_MAX(options->connections_max, (uint32_t)CONNECTIONS_MIN);
    const uint64_t timeouts[ACRE_HTTP_WAIT_COUNT] = {
        [ACRE_HTTP_WAIT_REQUEST] = options->request_timeout_ms,
        [ACRE_HTTP_WAIT_ANSWER] = options->answer_timeout_ms,
        [ACRE_HTTP_WAIT_IDLE] = options->idle_timeout_ms,
        [ACRE_HTTP_WAIT_STRANGER_REQUEST] =
            ACRE_MIN(options->stranger_timeout_ms, options->request_timeout_ms),
        [ACRE_HTTP_WAIT_STRANGER_IDLE] =
            ACRE_MIN(options->stranger_timeout_ms, options->idle_timeout_ms),
        [ACRE_HTTP_WAIT_LINGER] = LINGER_MS,
    };
    http->tick_ms = TICK_MAX_MS;
    for (size_t i = 0; i < ACRE_HTTP_WAIT_COUNT; i++) {
        http->waits[i].timeout_ms = timeouts[i];
        http->waits[i].end = &http->waits[i].oldest;
        http->tick_ms = ACRE_MIN(http->tick_ms, ACRE_MAX(timeouts[i] / 4, (uint64_t)TICK_MIN_MS));
    }
    http->ready_end = &http->ready;
    http->crowd.strangers.end = &http->crowd.strangers.oldest;
    http->own_uid = (uint32_t)geteuid();
    http->date_s = UINT64_MAX;
}

int acre_http_start(const struct acre_http_options *options, struct acre_http **ret_http,
                    struct acre_error *err) {
    ACRE_ASSERT(options->loop != NULL && options->handler != NULL);
    struct acre_http *http = acre_calloc(1, sizeof(*http));
    http->options = *options;
    http->clock = acre_clock_real();
    http->epoll_fd = http->wake_fd = -1;
    set_defaults(http);
    int r = open_all(http, err);
    http->options.unix_path = http->options.address = NULL;
    http->options.certificate_pem = http->options.key_pem = NULL;
    if (r < 0) {
        acre_http_stop(http);
        return r;
    }
    *ret_http = http;
    return 0;
}

uint16_t acre_http_port(const struct acre_http *http) {
    return http->port;
}

void acre_http_counts(const struct acre_http *http, struct acre_http_counts *ret_counts) {
    *ret_counts = http->counts;
}

static void on_drain_timeout(void *context) {
    struct acre_http *http = context;
    http->drain_timer = NULL; /* it is gone when this returns */
    while (http->conns != NULL) {
        http_conn_destroy(http->conns);
    }
    check_drained(http);
}

void acre_http_drain(struct acre_http *http, uint64_t timeout_ms, acre_loop_function *done,
                     void *context) {
    ACRE_ASSERT(!http->draining && done != NULL);
    http->draining = true;
    http->drained = done;
    http->drained_context = context;
    http->drain_timer = acre_loop_timer(http->options.loop, timeout_ms, 0, on_drain_timeout, http);
    http_unlisten(http);
    for (struct http_conn *conn = http->conns; conn != NULL; conn = conn->next) {
        bool is_waiting = conn->exchange == NULL && conn->in.data == NULL &&
                          !http_reader_is_inside(&conn->reader);
        if (conn->exchange != NULL && conn->exchange->streaming) {
            acre_http_end(conn->exchange);
        }
        conn->dead = conn->dead || (is_waiting && http_conn_backlog(conn) == 0);
        conn->closing = conn->closing || conn->exchange != NULL;
        http_make_ready(conn);
    }
    wake(http); /* there may be nobody to wait for */
}

int acre_http_renew_tls(struct acre_http *http, const char *certificate_pem, const char *key_pem,
                        struct acre_error *err) {
    if (http->tls == NULL) {
        return acre_fail(err, ACRE_ECONFLICT, "TLS: the server has no certificate");
    }
    struct ssl_ctx_st *setup;
    int r = tls_setup(certificate_pem, key_pem, &setup, err);
    if (r == 0) {
        tls_setup_free(http->tls); /* connections hold it until they end */
        http->tls = setup;
    }
    return r;
}

void acre_http_stop(struct acre_http *http) {
    if (http == NULL) {
        return;
    }
    while (http->conns != NULL) {
        ACRE_ASSERT(!http->conns->working); /* not from a handler */
        http_conn_destroy(http->conns);
    }
    acre_timer_cancel(http->tick);
    acre_timer_cancel(http->drain_timer);
    acre_watch_cancel(http->watch);
    http_unlisten(http);
    const int fds[] = {http->epoll_fd, http->wake_fd};
    for (size_t i = 0; i < ACRE_COUNT(fds); i++) {
        if (fds[i] >= 0) {
            close(fds[i]);
        }
    }
    while (http->spare_count > 0) {
        close(http->spares[--http->spare_count]);
    }
    tls_setup_free(http->tls);
    free(http);
}
