/* pool_inner.h - what a pool is made of; for pool.c, pool_index.c and pool_check.c only. */
#ifndef ACRE_COMPUTE_MEMORY_POOL_INNER_H
#define ACRE_COMPUTE_MEMORY_POOL_INNER_H

#include "compute/memory/pool.h"

enum {
    STEPS_LOG2 = 4,
    STEPS = 1 << STEPS_LOG2,
    POWERS = 48, /* 2^47 bytes are 2^39 granules: power 36 */
};

enum chunk_state { CHUNK_USED, CHUNK_FREE, CHUNK_PENDING, CHUNK_DEFERRED };

struct pool_links {
    struct chunk *before, *after;
};

struct chunk {
    struct pool_block *block;
    uint64_t offset, bytes;
    struct chunk *lower, *upper; /* neighbours in the block; upper: also the list of spare ones */
    enum chunk_state state;
    struct pool_point point; /* PENDING, DEFERRED */
    struct pool_links bin;   /* FREE, PENDING: of its size */
    struct pool_links queue; /* PENDING: of its stream; DEFERRED: of all deferred */
    struct pool_point *more; /* DEFERRED */
    uint32_t more_count;
};

struct pool_block {
    struct pool_region region;
    struct chunk *first;
    struct pool_block *before, *after;
};

struct pool_queue {
    struct chunk *first, *last;
};

struct pool_index {
    uint64_t powers; /* bit: some step has a chunk */
    uint32_t steps[POWERS];
    struct chunk *bins[POWERS][STEPS];
};

struct pool_cache { /* of one stream */
    struct pool_index index;
    struct pool_queue queue;
    struct pool_cache *next; /* all there are */
};

struct memory_pool {
    struct pool_options options;
    struct pool_index index;
    struct pool_cache **caches; /* by stream; NULL: none yet */
    struct pool_cache *all_caches;
    struct pool_queue deferred;
    struct pool_block *blocks;
    struct slab *slabs;
    struct chunk *spare;
    uint32_t spare_count, promised; /* how many there are; of these, for blocks that are reserved */
    struct pool_block *prepared;    /* for those blocks: list by `after` */
    struct pool_report report;      /* largest_free_bytes: not kept up */
};

void pool_queue_append(struct pool_queue *queue, struct chunk *chunk);
void pool_queue_remove(struct pool_queue *queue, struct chunk *chunk);
/* Put `other` where `chunk` is. */
void pool_queue_replace(struct pool_queue *queue, const struct chunk *chunk, struct chunk *other);

void pool_index_insert(struct pool_index *index, struct chunk *chunk);
void pool_index_remove(struct pool_index *index, struct chunk *chunk);
/* A chunk of at least so many bytes, nearly the smallest; NULL: none. */
struct chunk *pool_index_find(const struct pool_index *index, uint64_t bytes);
uint64_t pool_index_largest(const struct pool_index *index);
/* Where a chunk of that size is kept: all chunks of a bin are at least as large as the smallest
 * size of it. */
void pool_index_bin(uint64_t bytes, uint32_t *ret_power, uint32_t *ret_step);

#endif
