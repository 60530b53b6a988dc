/* admit.h - which clients get a connection, and how much of a turn one origin gets.
 *
 * Inside src/api only; loop thread only. An origin is a user on the unix socket; over TCP it is an
 * address (IPv6: a /64, which is what one customer has; all of 127.0.0.0/8, which any process here
 * has), and from the first authenticated request on the user who sent it. It knows no roles and no
 * tokens: the router says which clients are known (acre_http_know). */
#ifndef ACRE_HTTP_ADMIT_H
#define ACRE_HTTP_ADMIT_H

#include "http/http.h"

struct http_conn;
struct http_origin;

/* Where a client comes from, as a number. */
struct http_key {
    enum { ACRE_HTTP_KEY_UID, ACRE_HTTP_KEY_NAME, ACRE_HTTP_KEY_IPV4, ACRE_HTTP_KEY_IPV6 } kind;
    uint64_t value; /* uid, a hash of the name, address, or the first half of it */
};

enum { ACRE_HTTP_ORIGINS = 1024 }; /* chains of the table */

/* Strangers, oldest first: each is in the line of all, and in that of its origin. */
enum http_line_kind { ACRE_HTTP_LINE_ALL, ACRE_HTTP_LINE_ORIGIN, ACRE_HTTP_LINES };

struct http_line {
    enum http_line_kind kind;
    struct http_conn *oldest, **end;
};

struct http_crowd {
    struct http_origin *origins[ACRE_HTTP_ORIGINS];
    struct http_line strangers;
    uint32_t refused;          /* not admitted, but not gone yet */
    uint64_t held_bytes;       /* of bodies that are not complete */
    uint64_t owed_bytes;       /* of answers that are not read */
    uint64_t turn;             /* of the loop, counted from 1 */
    uint64_t spent_ns;         /* by handlers in this turn */
    uint32_t all, common, tcp; /* admitted; of these without a privilege; of these over TCP */
};

/* 0: there is a place for this client; a stranger may have been closed for it. Otherwise the status
 * to refuse it with, and err. */
int http_admit(struct acre_http *http, const struct acre_http_peer *peer, struct http_key key,
               struct acre_error *err);
bool http_is_privileged(const struct acre_http *http, const struct acre_http_peer *peer);
/* Count it from now on; after http_admit. */
void http_enter(struct http_conn *conn, struct http_key key);
void http_leave(struct http_conn *conn); /* twice is fine */
/* Close the stranger that came first; its descriptor is free at once. False: there is none. */
bool http_make_room(struct acre_http *http);

/* A body that is not complete has so many bytes now. 0, or the status to refuse it with, and err.
 */
int http_count_body(struct http_conn *conn, size_t bytes, struct acre_error *err);
/* Its client has not read so many bytes of answers now. False: that is too much of its origin, or
 * in all. */
bool http_owe(struct http_conn *conn, size_t bytes);
/* A handler took so long with a request of it. */
void http_spend(struct http_conn *conn, uint64_t ns);
/* Whether its origin may have another request handled in this turn. */
bool http_has_time(const struct http_conn *conn);
/* How many of its requests are handled before others have a turn; 0: none in this one. */
uint32_t http_allowance(const struct http_conn *conn);

#endif
