/* limit.h - how often one key (a user, an address) may ask: a token bucket each.
 *
 * Pure: the caller passes now_ms, which never goes back. One thread at a time. A fixed table; when
 * it is full, the key that has been quiet longest is forgotten (it would be unlimited by now or
 * soonest). It sends no answers: the caller turns a wait into 429 and Retry-After. */
#ifndef ACRE_API_LIMIT_H
#define ACRE_API_LIMIT_H

#include "core/str.h"

struct acre_limit;

struct acre_limit_options {
    uint32_t keys;       /* how many are remembered, 1 ... 2^20; rounded up to a power of two */
    uint32_t burst;      /* how many at once, 1 ... 10^6 */
    uint32_t per_minute; /* and how many in the long run, 1 ... 10^8 */
};

struct acre_limit *limit_create(const struct acre_limit_options *options);
void limit_destroy(struct acre_limit *limit); /* NULL is fine */

/* 0: go on, one token is taken. Otherwise nothing is taken, and there will be one in that many ms.
 */
uint64_t limit_take(struct acre_limit *limit, struct acre_str key, uint64_t now_ms);
/* Several at once (at most 2^20 count), in two steps: may they be taken, and take them. What may
 * not be taken is not. */
uint64_t limit_ask(struct acre_limit *limit, struct acre_str key, uint32_t count, uint64_t now_ms);
void limit_charge(struct acre_limit *limit, struct acre_str key, uint32_t count, uint64_t now_ms);
uint32_t limit_per_minute(const struct acre_limit *limit);

#endif
