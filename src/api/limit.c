/* limit.c - token buckets in a table of sets of eight.
 *
 * A key may be in the eight slots of its set only, so a look-up touches half a kibibyte and never
 * walks. A bucket is one number: the time at which it will be full again (the "virtual
 * scheduling" form of the leaky bucket), so nothing is ever refilled. When the set is full, the
 * slot that will be full first is taken over: it is the one whose loss gives away least, and one
 * whose time has passed gives away nothing.
 *
 * Times are nanoseconds: 10^8 requests a minute cost 600 of them each. */
#include "api/limit.h"

#include <stdlib.h>
#include <string.h>

enum { WAYS = 8, KEY_BYTES = 48, KEYS_MAX = 1 << 20, COUNT_MAX = 1 << 20 };

#define NS_A_MINUTE UINT64_C(60000000000)
#define NS_A_MS     UINT64_C(1000000)

struct rate_bucket {
    uint64_t hash;    /* 0: free */
    uint64_t full_ns; /* when the bucket has its whole burst again */
    char key[KEY_BYTES];
};

struct acre_limit {
    struct rate_bucket *slots;
    uint32_t sets; /* a power of two */
    uint32_t per_minute;
    uint64_t cost_ns;
    uint64_t burst_ns; /* what a whole burst costs */
};

struct acre_limit *limit_create(const struct acre_limit_options *options) {
    ACRE_ASSERT(options->keys >= 1 && options->keys <= KEYS_MAX);
    ACRE_ASSERT(options->burst >= 1 && options->burst <= 1000000);
    ACRE_ASSERT(options->per_minute >= 1 && options->per_minute <= 100000000);
    struct acre_limit *limit = acre_calloc(1, sizeof(*limit));
    limit->sets = 1;
    while (limit->sets * WAYS < options->keys) {
        limit->sets *= 2;
    }
    limit->slots = acre_calloc((size_t)limit->sets * WAYS, sizeof(*limit->slots));
    limit->per_minute = options->per_minute;
    limit->cost_ns = NS_A_MINUTE / options->per_minute;
    limit->burst_ns = limit->cost_ns * options->burst;
    return limit;
}

void limit_destroy(struct acre_limit *limit) {
    if (limit != NULL) {
        free(limit->slots);
        free(limit);
    }
}

/* The slot of the key, or the one it may take over. */
static struct rate_bucket *find(struct acre_limit *limit, uint64_t hash,
                                const char start[KEY_BYTES]) {
    struct rate_bucket *set = &limit->slots[(size_t)(hash & (limit->sets - 1)) * WAYS];
    struct rate_bucket *victim = set;
    for (size_t i = 0; i < WAYS; i++) {
        if (set[i].hash == hash && memcmp(set[i].key, start, KEY_BYTES) == 0) {
            return &set[i];
        }
        if (set[i].full_ns < victim->full_ns) {
            victim = &set[i];
        }
    }
    return victim;
}

/* When `count` tokens can be had: 0 for now, and then, if asked to, they are taken. */
static uint64_t judge(struct acre_limit *limit, struct acre_str key, uint32_t count, bool takes,
                      uint64_t now_ms) {
    char start[KEY_BYTES] = {0};
    uint64_t hash = acre_hash_bytes(key.data, key.length) | 1;
    if (key.length > 0) {
        memcpy(start, key.data, ACRE_MIN(key.length, sizeof(start)));
    }
    struct rate_bucket *slot = find(limit, hash, start);
    bool is_ours = slot->hash == hash && memcmp(slot->key, start, KEY_BYTES) == 0;
    ACRE_ASSERT(now_ms < UINT64_MAX / NS_A_MS / 2);
    uint64_t now_ns = now_ms * NS_A_MS;
    uint64_t cost_ns = limit->cost_ns * ACRE_MIN(count, (uint32_t)COUNT_MAX);
    uint64_t full_ns = is_ours ? ACRE_MAX(slot->full_ns, now_ns) : now_ns;
    uint64_t after_ns = full_ns + cost_ns - now_ns; /* of the burst spent, with these */
    if (after_ns > limit->burst_ns) {
        return (after_ns - limit->burst_ns + NS_A_MS - 1) / NS_A_MS;
    }
    if (takes) {
        slot->hash = hash;
        slot->full_ns = full_ns + cost_ns;
        memcpy(slot->key, start, KEY_BYTES);
    }
    return 0;
}

uint64_t limit_take(struct acre_limit *limit, struct acre_str key, uint64_t now_ms) {
    return judge(limit, key, 1, true, now_ms);
}

uint64_t limit_ask(struct acre_limit *limit, struct acre_str key, uint32_t count, uint64_t now_ms) {
    return judge(limit, key, count, false, now_ms);
}

void limit_charge(struct acre_limit *limit, struct acre_str key, uint32_t count, uint64_t now_ms) {
    judge(limit, key, count, true, now_ms);
}

uint32_t limit_per_minute(const struct acre_limit *limit) {
    return limit->per_minute;
}
