/* pool_inner.h - what a pool is made of; for pool.c, pool_index.c and pool_check.c only. */
#ifndef ACRE_COMPUTE_MEMORY_POOL_INNER_H
#define ACRE_COMPUTE_MEMORY_POOL_INNER_H

#include "compute/memory/pool.h"

enum {
    STEPS_LOG2 = 4,
    STEPS = 1 << STEPS_LOG2,
    CLASSES = 48, /* 2^47 bytes are 2^39 granules: class 36 */
};

enum chunk_state { CHUNK_USED, CHUNK_FREE, CHUNK_PENDING, CHUNK_HELD };

struct links {
    struct chunk *before, *after;
};

struct chunk {
    struct block *block;
    uint64_t offset, bytes;
    struct chunk *lower, *upper; /* neighbours in the block; upper: also the list of spare ones */
    enum chunk_state state;
    struct pool_point point; /* PENDING, HELD */
    struct links bin;        /* FREE, PENDING: of its size class */
    struct links queue;      /* PENDING: of its stream; HELD: of all held */
    struct pool_point *more; /* HELD */
    uint32_t more_count;
};

struct block {
    struct pool_region region;
    struct chunk *first;
    struct block *before, *after;
};

struct queue {
    struct chunk *first, *last;
};

struct index {
    uint64_t classes; /* bit: some step has a chunk */
    uint32_t steps[CLASSES];
    struct chunk *bins[CLASSES][STEPS];
};

struct cache { /* of one stream */
    struct index index;
    struct queue queue;
    struct cache *next; /* all there are */
};

struct pool {
    struct pool_options options;
    struct index index;
    struct cache **caches; /* by stream; NULL: none yet */
    struct cache *all_caches;
    struct queue held;
    struct block *blocks;
    struct slab *slabs;
    struct chunk *spare;
    uint32_t spare_count, promised; /* how many there are; of these, for blocks that are reserved */
    struct block *prepared;         /* for those blocks: list by `after` */
    struct pool_report report;      /* largest_free_bytes: not kept up */
};

void pool_queue_append(struct queue *queue, struct chunk *chunk);
void pool_queue_remove(struct queue *queue, struct chunk *chunk);
/* Put `other` where `chunk` is. */
void pool_queue_replace(struct queue *queue, const struct chunk *chunk, struct chunk *other);

void pool_index_insert(struct index *index, struct chunk *chunk);
void pool_index_remove(struct index *index, struct chunk *chunk);
/* A chunk of at least so many bytes, nearly the smallest; NULL: none. */
struct chunk *pool_index_find(const struct index *index, uint64_t bytes);
uint64_t pool_index_largest(const struct index *index);
/* Where a chunk of that size is kept: all chunks of a bin are at least as large as the smallest
 * size of it. */
void pool_index_bin(uint64_t bytes, uint32_t *ret_class, uint32_t *ret_step);

#endif
