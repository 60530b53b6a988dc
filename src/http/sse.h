/* sse.h - server-sent events: one ring of the newest events, any number of followers.
 *
 * Loop thread only. Events get ids 1, 2, 3 ... (or go on after `first_id`, so that ids from before
 * a restart are known to be too old, not wrongly new). A follower that comes back with
 * Last-Event-ID gets what it missed; when that is no longer in the ring it gets `event: reset`
 * first and must read the state again. A comment every 15 s keeps proxies and dead peers honest. A
 * follower that does not read is cut by http.h (1 MiB waiting), never waited for. */
#ifndef ACRE_HTTP_SSE_H
#define ACRE_HTTP_SSE_H

#include "http/http.h"

struct acre_sse;

struct acre_sse_options {
    struct acre_loop *loop;
    uint32_t ring;         /* events kept; 0: 8192 */
    uint64_t heartbeat_ms; /* 0: 15000 */
    uint64_t first_id;     /* 0: 1 */
};

struct acre_sse *acre_sse_create(const struct acre_sse_options *options);
void acre_sse_destroy(struct acre_sse *sse); /* ends all streams; NULL is fine */

/* `name` is the event's type ("job"), `topic` what followers may choose by (a job's id; 0: none).
 * `data` is one line of text, without CR or LF. Returns the event's id. */
uint64_t acre_sse_publish(struct acre_sse *sse, const char *name, uint64_t topic,
                          struct acre_str data);

/* Make the exchange a stream of events, those of `topic` only unless 0. Reads Last-Event-ID (or
 * the query's last_event_id). `gone` (may be NULL) is called once when the follower has left.
 * ACRE_EINVALID, unanswered, when the id is not a number. The caller limits how many follow. */
int acre_sse_follow(struct acre_sse *sse, struct acre_exchange *exchange, uint64_t topic,
                    acre_loop_function *gone, void *context, struct acre_error *err);

uint32_t acre_sse_followers(const struct acre_sse *sse);
uint64_t acre_sse_last_id(const struct acre_sse *sse); /* 0: none yet */

#endif
