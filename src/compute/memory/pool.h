/* pool.h - device memory in large blocks, cut into chunks and reused in stream order.
 *
 * Pure: no driver, no lock (the caller's), no waiting. It decides which bytes of which block a
 * buffer gets. The caller allocates and returns blocks, between pool_reserve and pool_add, and
 * after pool_pop. The streams' words show their progress (inner.h): a chunk freed at number n of
 * stream s is free for all once words[s] >= n; until then only s itself may reuse it, because its
 * later work runs after the work that still uses it. */
#ifndef ACRE_COMPUTE_MEMORY_POOL_H
#define ACRE_COMPUTE_MEMORY_POOL_H

#include "core/error.h"

#include <stdatomic.h>

/* Chunks start at multiples of this: what every back end wants of a kernel's argument at most. */
enum { POOL_GRANULE_BYTES = 256 };

struct memory_pool;

struct pool_options {
    const _Atomic uint64_t *words;
    uint32_t stream_max;      /* words there are */
    uint64_t limit_bytes;     /* of blocks, and so of chunks; at most 2^47 */
    uint64_t block_min_bytes; /* powers of two; larger requests get blocks of their own */
    uint64_t block_max_bytes;
    bool only_past; /* memory the host sees at once: not even its own stream has it early */
};

/* A moment of a stream: all it was given up to this number. */
struct pool_point {
    uint32_t stream; /* index of its word */
    uint64_t sequence;
};

struct pool_region {
    uint64_t handle; /* of the back end */
    void *host;      /* NULL: device memory */
    uint64_t bytes;
};

/* A part of a block that someone has: read only, but for `region` and `host`, which move with
 * pool_renew. */
struct chunk;
struct pool_range {
    uint64_t region; /* handle */
    uint64_t offset;
    uint64_t bytes;
    void *host;
};

struct pool_report {
    uint64_t used_bytes, peak_bytes, reserved_bytes, free_bytes, pending_bytes, largest_free_bytes;
    uint64_t allocations, frees, hits;
    uint32_t blocks;
};

int pool_create(const struct pool_options *options, struct memory_pool **ret_pool,
                struct acre_error *err);
void pool_destroy(struct memory_pool *pool); /* forgets its blocks: pop them first. NULL is fine */

/* ACRE_ENOFIT: nothing that is free now holds it, take a block; ACRE_ELIMIT: more than the limit in
 * chunks; ACRE_ENOMEM: of the host. No texts: the caller knows what it is for. */
int pool_alloc(struct memory_pool *pool, uint32_t stream, uint64_t bytes, struct chunk **ret_chunk);
/* Free from `point` on, and not before the `more` others (malloc'ed, taken over; NULL: none). */
void pool_free(struct memory_pool *pool, struct chunk *chunk, struct pool_point point,
               struct pool_point *more, uint32_t more_count);
struct pool_range pool_range(const struct chunk *chunk);

/* How large a block to take for a request that did not fit; counted as reserved from now on, with
 * all that pool_add will need. `exact`: no larger than it must be. ACRE_ELIMIT: not within the
 * limit; ACRE_ENOMEM: of the host. */
int pool_reserve(struct memory_pool *pool, uint64_t bytes, bool exact, uint64_t *ret_block_bytes);
void pool_unreserve(struct memory_pool *pool, uint64_t block_bytes); /* the driver had none */
/* The block that was reserved; returns a chunk of it for the request. It cannot fail: a block that
 * the driver gave has a place. */
struct chunk *pool_add(struct memory_pool *pool, const struct pool_region *region, uint64_t bytes);
/* Take a block out that is free as a whole, if more than `keep_bytes` are reserved. */
bool pool_pop(struct memory_pool *pool, uint64_t keep_bytes, struct pool_region *ret_region);
/* Take any block out, whatever is in it; its chunks are gone. */
bool pool_pop_any(struct memory_pool *pool, struct pool_region *ret_region);
/* The number-th block, to give it a new handle; false: there are no more. */
bool pool_renew(struct memory_pool *pool, uint32_t number, struct pool_region **ret_region);

/* The oldest moment that a freed chunk waits for: of that stream, or (UINT32_MAX) of any that has
 * not come yet, the number-th. False: none. */
bool pool_pending(struct memory_pool *pool, uint32_t stream, uint32_t number,
                  struct pool_point *ret_point);

/* Whether it would fit, within the limit, were all past that freed chunks wait for. It looks at
 * each chunk. */
bool pool_would_fit(const struct memory_pool *pool, uint64_t bytes);

bool pool_is_past(const struct memory_pool *pool, struct pool_point point);
uint64_t pool_used(const struct memory_pool *pool);
void pool_report(struct memory_pool *pool, struct pool_report *ret_report);
/* Everything that must be true of it; asserts. For tests: it looks at each chunk. */
void pool_check(struct memory_pool *pool);

#endif
