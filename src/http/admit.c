/* admit.c - places for connections, counted by origin.
 *
 * One origin has at most `peer_max` connections. Those of a user with a token are counted by name,
 * because addresses cost nothing: so an address counts its strangers alone. Of all places TCP gets
 * three quarters, and clients without a privilege 15 in 16: so no number of addresses can fill the
 * unix socket, and no number of users can keep out root and the daemon's own user. A client that
 * logs in as an operator or administrator frees its place among the others.
 *
 * A stranger is a client over TCP that has not sent an authenticated request yet. When places run
 * short, or those of its address, the oldest stranger (of that address) is closed for the next
 * client, which may be one with a token: to keep that one out, an attacker would have to open a
 * whole share of connections between its connect and its first request.
 *
 * Origins exist while they have connections, in chains by their number, so the table is never
 * larger than the number of connections.
 *
 * Requests that were sent ahead are handled in turns of the loop. An origin has a number of them a
 * turn, divided among its connections, and a time in which they are handled; otherwise the others
 * would wait longer the more connections it had, or the more its requests cost. What has to wait is
 * looked at again in the next turn, after what has come from others meanwhile. When a turn takes
 * long, only origins that have had nothing of it yet still get one request: all of them have that
 * in every turn, so no origin waits forever. */
#include "http/admit.h"

#include "http/inner.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    REQUESTS_A_TURN = 64,         /* of one connection */
    ORIGIN_REQUESTS_A_TURN = 128, /* about a millisecond of refusals */
    ORIGIN_NS_A_TURN = 5 * 1000 * 1000,
    NS_A_TURN = 10 * 1000 * 1000, /* of all */
    /* Of incomplete bodies: 100 connections times 1 MiB would be a lot for one origin, and all
     * connections together must not fill the memory. */
    ORIGIN_BODIES_MAX_BYTES = 32 << 20,
    BODIES_MAX_BYTES = 256 << 20,
    /* Of answers: the longest has some MiB. */
    ORIGIN_ANSWERS_MAX_BYTES = 64 << 20,
    ANSWERS_MAX_BYTES = 512 << 20,
};

struct http_origin {
    struct http_origin *next, **previous;
    struct http_key key;
    struct http_line strangers;
    uint32_t connections;
    uint64_t held_bytes, owed_bytes;
    uint64_t turn, spent_ns; /* the last turn with requests of it, and how long these took */
};

static struct http_origin **chain_of(struct acre_http *http, struct http_key key) {
    uint64_t hash = (key.value + key.kind) * UINT64_C(0x9e3779b97f4a7c15);
    return &http->crowd.origins[(hash >> 32) % ACRE_HTTP_ORIGINS];
}

static bool is_same(struct http_key a, struct http_key b) {
    return a.kind == b.kind && a.value == b.value;
}

static struct http_origin *find_origin(struct acre_http *http, struct http_key key) {
    struct http_origin *origin = *chain_of(http, key);
    while (origin != NULL && !is_same(origin->key, key)) {
        origin = origin->next;
    }
    return origin;
}

static struct http_origin *add_origin(struct acre_http *http, struct http_key key) {
    struct http_origin **chain = chain_of(http, key);
    struct http_origin *origin = acre_calloc(1, sizeof(*origin));
    *origin = (struct http_origin){.next = *chain, .previous = chain, .key = key};
    origin->strangers.kind = ACRE_HTTP_LINE_ORIGIN;
    origin->strangers.end = &origin->strangers.oldest;
    if (origin->next != NULL) {
        origin->next->previous = &origin->next;
    }
    *chain = origin;
    return origin;
}

static void join_origin(struct http_conn *conn, struct http_key key) {
    struct http_origin *origin = find_origin(conn->http, key);
    conn->origin = origin != NULL ? origin : add_origin(conn->http, key);
    conn->origin->connections++;
}

static void leave_origin(struct http_conn *conn) {
    struct http_origin *origin = conn->origin;
    if (origin == NULL) {
        return;
    }
    http_count_body(conn, 0, NULL);
    http_owe(conn, 0);
    conn->origin = NULL;
    if (--origin->connections > 0) {
        return;
    }
    *origin->previous = origin->next;
    if (origin->next != NULL) {
        origin->next->previous = origin->previous;
    }
    free(origin);
}

static void line_up(struct http_line *line, struct http_conn *conn) {
    conn->lines[line->kind].next = NULL;
    conn->lines[line->kind].previous = line->end;
    *line->end = conn;
    line->end = &conn->lines[line->kind].next;
}

static void step_out(struct http_line *line, struct http_conn *conn) {
    struct http_conn *next = conn->lines[line->kind].next;
    struct http_conn **previous = conn->lines[line->kind].previous;
    *previous = next;
    if (next != NULL) {
        next->lines[line->kind].previous = previous;
    } else {
        line->end = previous;
    }
    conn->lines[line->kind].previous = NULL;
}

/* Before it leaves its origin. */
static void leave_strangers(struct http_conn *conn) {
    if (conn->lines[ACRE_HTTP_LINE_ALL].previous != NULL) {
        step_out(&conn->http->crowd.strangers, conn);
        step_out(&conn->origin->strangers, conn);
    }
}

bool http_is_privileged(const struct acre_http *http, const struct acre_http_peer *peer) {
    return peer->is_unix && (peer->uid == 0 || peer->uid == http->own_uid);
}

static void join_common(struct http_conn *conn) {
    struct http_crowd *crowd = &conn->http->crowd;
    if (!conn->is_common) {
        crowd->common++;
        crowd->tcp += !conn->peer.is_unix;
        conn->is_common = true;
    }
}

/* It no longer counts among the clients without a privilege. */
static void leave_common(struct http_conn *conn) {
    struct http_crowd *crowd = &conn->http->crowd;
    if (conn->is_common) {
        crowd->common--;
        crowd->tcp -= !conn->peer.is_unix;
        conn->is_common = false;
    }
    leave_origin(conn);
}

void http_enter(struct http_conn *conn, struct http_key key) {
    struct http_crowd *crowd = &conn->http->crowd;
    crowd->all++;
    conn->is_counted = true;
    conn->is_known = conn->peer.is_unix; /* the kernel says who it is */
    if (!http_is_privileged(conn->http, &conn->peer)) {
        join_origin(conn, key);
        join_common(conn);
    }
    if (!conn->is_known) {
        line_up(&crowd->strangers, conn);
        line_up(&conn->origin->strangers, conn);
    }
}

void http_leave(struct http_conn *conn) {
    leave_strangers(conn);
    leave_common(conn);
    conn->http->crowd.all -= conn->is_counted;
    conn->http->crowd.refused -= conn->is_refused;
    conn->is_counted = conn->is_refused = false;
}

/* Close the oldest of the line. With `why` it gets that as an answer, unless it is in the middle of
 * an answer. */
static bool close_oldest(const struct http_line *line, int status, const struct acre_error *why) {
    struct http_conn *conn = line->oldest;
    while (conn != NULL && (conn->exchange != NULL || conn->working)) {
        conn = conn->lines[line->kind].next; /* few: strangers are answered at once */
    }
    if (conn == NULL) {
        return false;
    }
    /* An event of this turn may still point to it, so the next look at it frees it. */
    http_leave(conn);
    if (why != NULL && http_conn_backlog(conn) == 0) {
        http_turn_away(conn->fd, conn->tls != NULL, status, why);
    } else {
        close(conn->fd);
    }
    conn->fd = -1;
    conn->dead = true;
    http_make_ready(conn);
    conn->http->counts.refused++;
    return true;
}

bool http_make_room(struct acre_http *http) {
    return close_oldest(&http->crowd.strangers, 0, NULL);
}

static uint32_t origin_max(const struct acre_http *http) {
    const struct acre_http_options *options = &http->options;
    return options->peer_max != NULL ? options->peer_max(options->context)
                                     : options->connections_max;
}

/* Over TCP the connection is this user's from now on; a proxy may send several users' requests over
 * one. */
static int join_user(struct http_conn *conn, const char *user, struct acre_error *err) {
    struct http_key key = {ACRE_HTTP_KEY_NAME, acre_hash_bytes(user, strlen(user))};
    if (conn->peer.is_unix || (conn->origin != NULL && is_same(conn->origin->key, key))) {
        return 0;
    }
    const struct http_origin *origin = find_origin(conn->http, key);
    uint32_t most = origin_max(conn->http);
    if (origin != NULL && origin->connections >= most) {
        acre_fail(err, ACRE_ELIMIT,
                  "connections: user %s has %u open, of at most %u (max_connections in the "
                  "policy); close some, or ask an administrator to raise the limit",
                  user, origin->connections, most);
        return 429;
    }
    leave_strangers(conn);
    leave_origin(conn);
    join_origin(conn, key);
    join_common(conn);
    return 0;
}

int acre_http_know(struct acre_exchange *exchange, const char *user, bool is_privileged,
                   struct acre_error *err) {
    struct http_conn *conn = exchange->conn;
    if (conn == NULL) {
        return 0; /* it has gone */
    }
    int status = is_privileged ? 0 : join_user(conn, user, err);
    if (status != 0) {
        return status;
    }
    leave_strangers(conn);
    conn->is_known = true;
    if (is_privileged) {
        leave_common(conn);
    }
    /* Until now it may have had the time of its address, or of another user. */
    exchange->again = !http_has_time(conn);
    return exchange->again ? ACRE_HTTP_LATER : 0;
}

/* A place among those of its origin: 0, or the status to refuse it with, and err. */
static int admit_to_origin(struct acre_http *http, const struct acre_http_peer *peer,
                           struct http_key key, struct acre_error *err) {
    const struct http_origin *origin = find_origin(http, key);
    uint32_t most = origin_max(http);
    if (origin == NULL || origin->connections < most) {
        return 0;
    }
    struct acre_error why;
    acre_fail(&why, ACRE_ELIMIT,
              "connections: %s has %u open, of at most %u (max_connections in the policy); %sclose "
              "some, or ask an administrator to raise the limit",
              peer->address, origin->connections, most, peer->is_unix ? "" : "send a token, ");
    if (close_oldest(&origin->strangers, 429, &why)) {
        return 0;
    }
    *err = why;
    return 429;
}

static int refuse_all(const char *which, uint32_t most, struct acre_error *err) {
    acre_fail(err, ACRE_EUNAVAILABLE,
              "connections: all %u %s are in use; try again later, or raise --connections on the "
              "server",
              most, which);
    return 503;
}

int http_admit(struct acre_http *http, const struct acre_http_peer *peer, struct http_key key,
               struct acre_error *err) {
    const struct http_crowd *crowd = &http->crowd;
    uint32_t all_max = http->options.connections_max;
    uint32_t common_max = all_max - ACRE_MAX(all_max / 16, 1U);
    uint32_t tcp_max = all_max - ACRE_MAX(all_max / 4, 1U);
    if (!http_is_privileged(http, peer)) {
        int status = admit_to_origin(http, peer, key, err);
        if (status != 0) {
            return status;
        }
        if (!peer->is_unix && crowd->tcp >= tcp_max && !http_make_room(http)) {
            return refuse_all("TCP connections", tcp_max, err);
        }
        if (crowd->common >= common_max && !http_make_room(http)) {
            return refuse_all("connections for users", common_max, err);
        }
    }
    if (crowd->all >= all_max && !http_make_room(http)) {
        return refuse_all("connections", all_max, err);
    }
    return 0;
}

int http_count_body(struct http_conn *conn, size_t bytes, struct acre_error *err) {
    struct acre_http *http = conn->http;
    struct http_origin *origin = conn->origin;
    if (origin == NULL) {
        return 0;
    }
    bool grows = bytes > conn->held_bytes;
    origin->held_bytes += bytes - conn->held_bytes;
    http->crowd.held_bytes += bytes - conn->held_bytes;
    conn->held_bytes = bytes;
    if (grows && origin->held_bytes > ORIGIN_BODIES_MAX_BYTES) {
        acre_fail(err, ACRE_ELIMIT,
                  "%s has more than %d MiB of incomplete requests; send fewer at once",
                  conn->peer.address, ORIGIN_BODIES_MAX_BYTES >> 20);
        return 429;
    }
    while (grows && http->crowd.held_bytes > BODIES_MAX_BYTES) {
        if (!http_make_room(http)) {
            acre_fail(err, ACRE_EUNAVAILABLE,
                      "incomplete requests use more than %d MiB; try again later",
                      BODIES_MAX_BYTES >> 20);
            return 503;
        }
    }
    return 0;
}

bool http_owe(struct http_conn *conn, size_t bytes) {
    struct http_crowd *crowd = &conn->http->crowd;
    struct http_origin *origin = conn->origin;
    if (origin == NULL) {
        return true;
    }
    bool grows = bytes > conn->owed_bytes;
    origin->owed_bytes += bytes - conn->owed_bytes;
    crowd->owed_bytes += bytes - conn->owed_bytes;
    conn->owed_bytes = bytes;
    return !grows || (origin->owed_bytes <= ORIGIN_ANSWERS_MAX_BYTES &&
                      crowd->owed_bytes <= ANSWERS_MAX_BYTES);
}

void http_spend(struct http_conn *conn, uint64_t ns) {
    struct http_crowd *crowd = &conn->http->crowd;
    struct http_origin *origin = conn->origin;
    crowd->spent_ns += ns;
    if (origin != NULL) {
        origin->spent_ns = origin->turn == crowd->turn ? origin->spent_ns + ns : ns;
        origin->turn = crowd->turn;
    }
}

bool http_has_time(const struct http_conn *conn) {
    const struct http_crowd *crowd = &conn->http->crowd;
    const struct http_origin *origin = conn->origin;
    if (origin == NULL || origin->turn != crowd->turn) {
        return true; /* with a privilege, or the first of this turn */
    }
    return origin->spent_ns < ORIGIN_NS_A_TURN && crowd->spent_ns < NS_A_TURN;
}

uint32_t http_allowance(const struct http_conn *conn) {
    if (!http_has_time(conn)) {
        return 0;
    }
    uint32_t connections = conn->origin != NULL ? conn->origin->connections : 1;
    return ACRE_MAX(ACRE_MIN(ORIGIN_REQUESTS_A_TURN / connections, (uint32_t)REQUESTS_A_TURN), 1U);
}
