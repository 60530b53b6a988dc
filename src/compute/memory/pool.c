/* pool.c - two-level segregated fit over blocks, one common index and one for each stream.
 *
 * Chunks of a block are linked in address order, so that neighbors merge in O(1). Free ones are
 * found by size class: the power of two, and sixteen steps within it. Each class is a list and a
 * bit, so finding one takes two bitmap scans. A few chunks of the request's own step are tried
 * first: freed memory is most often requested again in the same size.
 *
 * A chunk is used, free (in the common index), pending (its stream frees it later: it is in that
 * stream's index, where only that stream looks, and in that stream's queue, which is in order of
 * numbers, so that checking its head is enough) or held (other streams use it too: in no index
 * until all of them have passed). Pending chunks merge with neighbors freed at the same point at
 * once, and with all others of the same stream before a new block is allocated for it.
 *
 * Metadata is on the host, in slabs that stay: freeing allocates nothing and cannot fail. */
#include "compute/memory/pool_inner.h"

#include <stdlib.h>
#include <string.h>

enum {
    SLAB_CHUNKS = 128,
    LIMIT_LOG2 = 47,
    BLOCK_ROUND = 2 << 20, /* what drivers round to */
    BLOCKS_PER_LIMIT = 64, /* at least, but for large buffers */
    UNITS_PER_LIMIT = 256,
    CHUNKS_PER_ADD = 2, /* what is asked for, and the rest of the block */
};

struct slab {
    struct slab *next;
    struct chunk chunks[SLAB_CHUNKS];
};

/* --- spare chunks --------------------------------------------------------------------------- */

/* So many, besides those that are promised. */
static bool have_spare(struct memory_pool *pool, uint32_t count) {
    _Static_assert(SLAB_CHUNKS >= CHUNKS_PER_ADD, "one more slab is enough");
    if (pool->spare_count >= pool->promised + count) {
        return true;
    }
    struct slab *slab = calloc(1, sizeof(*slab));
    if (slab == NULL) {
        return false;
    }
    slab->next = pool->slabs;
    pool->slabs = slab;
    for (size_t i = 0; i < SLAB_CHUNKS; i++) {
        slab->chunks[i].upper = pool->spare;
        pool->spare = &slab->chunks[i];
    }
    pool->spare_count += SLAB_CHUNKS;
    return true;
}

static struct chunk *take_spare(struct memory_pool *pool) {
    struct chunk *chunk = pool->spare;
    ACRE_ASSERT(chunk != NULL);
    pool->spare = chunk->upper;
    pool->spare_count--;
    *chunk = (struct chunk){0};
    return chunk;
}

static void put_spare(struct memory_pool *pool, struct chunk *chunk) {
    chunk->upper = pool->spare;
    chunk->block = NULL; /* whoever still has it is found out */
    pool->spare = chunk;
    pool->spare_count++;
}

/* --- states --------------------------------------------------------------------------------- */

bool pool_is_past(const struct memory_pool *pool, struct pool_point point) {
    return atomic_load_explicit(&pool->options.words[point.stream], memory_order_acquire) >=
           point.sequence;
}

static struct pool_cache *cache_of(const struct memory_pool *pool, uint32_t stream) {
    ACRE_ASSERT(stream < pool->options.stream_max);
    return pool->caches[stream];
}

static struct pool_cache *make_cache(struct memory_pool *pool, uint32_t stream) {
    struct pool_cache *cache = cache_of(pool, stream);
    if (cache == NULL) {
        cache = calloc(1, sizeof(*cache));
        if (cache != NULL) {
            cache->next = pool->all_caches;
            pool->all_caches = cache;
            pool->caches[stream] = cache;
        }
    }
    return cache;
}

/* The index a chunk is in; NULL: none. */
static struct pool_index *index_of(struct memory_pool *pool, const struct chunk *chunk) {
    if (chunk->state == CHUNK_FREE) {
        return &pool->index;
    }
    if (chunk->state == CHUNK_PENDING && !pool->options.only_past) {
        return &cache_of(pool, chunk->point.stream)->index;
    }
    return NULL;
}

static struct pool_queue *queue_of(struct memory_pool *pool, const struct chunk *chunk) {
    return chunk->state == CHUNK_PENDING    ? &cache_of(pool, chunk->point.stream)->queue
           : chunk->state == CHUNK_DEFERRED ? &pool->deferred
                                            : NULL;
}

static void enter_index(struct memory_pool *pool, struct chunk *chunk) {
    struct pool_index *index = index_of(pool, chunk);
    if (index != NULL) {
        pool_index_insert(index, chunk);
    }
}

/* Out of everything it is in. */
static void leave(struct memory_pool *pool, struct chunk *chunk) {
    struct pool_index *index = index_of(pool, chunk);
    struct pool_queue *queue = queue_of(pool, chunk);
    if (index != NULL) {
        pool_index_remove(index, chunk);
    }
    if (queue != NULL) {
        pool_queue_remove(queue, chunk);
        pool->report.pending_bytes -= chunk->bytes;
    }
}

/* `lower` grows by its upper neighbour; both are in nothing. */
static void swallow(struct memory_pool *pool, struct chunk *lower) {
    struct chunk *upper = lower->upper;
    lower->bytes += upper->bytes;
    lower->upper = upper->upper;
    if (lower->upper != NULL) {
        lower->upper->lower = lower;
    }
    put_spare(pool, upper);
}

/* A chunk that is in nothing, to everybody. */
static void release(struct memory_pool *pool, struct chunk *chunk) {
    free(chunk->more);
    chunk->more = NULL;
    chunk->state = CHUNK_FREE;
    if (chunk->upper != NULL && chunk->upper->state == CHUNK_FREE) {
        pool_index_remove(&pool->index, chunk->upper);
        swallow(pool, chunk);
    }
    if (chunk->lower != NULL && chunk->lower->state == CHUNK_FREE) {
        chunk = chunk->lower;
        pool_index_remove(&pool->index, chunk);
        swallow(pool, chunk);
    }
    pool_index_insert(&pool->index, chunk);
}

static bool is_of(const struct chunk *chunk, const struct pool_point *point) {
    return chunk != NULL && chunk->state == CHUNK_PENDING && chunk->point.stream == point->stream &&
           chunk->point.sequence == point->sequence;
}

/* A chunk that is in nothing, to its stream, with neighbours that were freed at the same moment. */
static void make_pending(struct memory_pool *pool, struct chunk *chunk, struct pool_cache *cache) {
    chunk->state = CHUNK_PENDING;
    pool->report.pending_bytes += chunk->bytes;
    pool_queue_append(&cache->queue, chunk);
    if (is_of(chunk->upper, &chunk->point)) {
        leave(pool, chunk->upper);
        pool->report.pending_bytes += chunk->upper->bytes;
        swallow(pool, chunk);
    }
    if (is_of(chunk->lower, &chunk->point)) {
        struct chunk *lower = chunk->lower;
        leave(pool, lower);
        pool->report.pending_bytes += lower->bytes;
        pool_queue_replace(&cache->queue, chunk, lower);
        swallow(pool, lower);
        chunk = lower;
    }
    enter_index(pool, chunk);
}

static void defer(struct memory_pool *pool, struct chunk *chunk) {
    chunk->state = CHUNK_DEFERRED;
    pool->report.pending_bytes += chunk->bytes;
    pool_queue_append(&pool->deferred, chunk);
}

/* Give everybody what a stream freed and has come to. */
static void harvest(struct memory_pool *pool, struct pool_cache *cache) {
    struct chunk *chunk;
    while (cache != NULL && (chunk = cache->queue.first) != NULL &&
           pool_is_past(pool, chunk->point)) {
        leave(pool, chunk);
        release(pool, chunk);
    }
}

static bool is_deferred(const struct memory_pool *pool, struct chunk *chunk) {
    while (chunk->more_count > 0 && pool_is_past(pool, chunk->more[chunk->more_count - 1])) {
        chunk->more_count--;
    }
    return chunk->more_count > 0 || !pool_is_past(pool, chunk->point);
}

/* The first `count` deferred ones. */
static void harvest_deferred(struct memory_pool *pool, uint32_t count) {
    struct chunk *chunk = pool->deferred.first;
    while (chunk != NULL && count-- > 0) {
        struct chunk *after = chunk->queue.after;
        if (!is_deferred(pool, chunk)) {
            leave(pool, chunk);
            release(pool, chunk);
        }
        chunk = after;
    }
}

static void harvest_all(struct memory_pool *pool) {
    for (struct pool_cache *cache = pool->all_caches; cache != NULL; cache = cache->next) {
        harvest(pool, cache);
    }
    harvest_deferred(pool, UINT32_MAX);
}

/* Merge what a stream freed at different moments: it waits for the later ones then, so this is done
 * only when the stream needs room and there is no other. */
static void consolidate(struct memory_pool *pool, struct pool_cache *cache) {
    struct chunk *chunk = cache->queue.first;
    while (chunk != NULL) {
        struct chunk *upper = chunk->upper;
        struct chunk *next = chunk->queue.after;
        if (upper != NULL && upper->state == CHUNK_PENDING &&
            upper->point.stream == chunk->point.stream) {
            pool_index_remove(&cache->index, chunk);
            pool_index_remove(&cache->index, upper);
            if (upper->point.sequence >= chunk->point.sequence) {
                next = next == upper ? chunk : next; /* where it is met again */
                pool_queue_remove(&cache->queue, chunk);
                pool_queue_replace(&cache->queue, upper, chunk);
                chunk->point = upper->point;
            } else {
                pool_queue_remove(&cache->queue, upper);
                next = chunk; /* it has another neighbour now */
            }
            swallow(pool, chunk);
            pool_index_insert(&cache->index, chunk);
        }
        chunk = next;
    }
}

/* --- allocating and freeing ----------------------------------------------------------------- */

/* Cut a chunk to size; the rest stays in the state it was in. */
static void take(struct memory_pool *pool, struct chunk *chunk, uint64_t bytes) {
    struct pool_index *index = index_of(pool, chunk);
    struct pool_queue *queue = queue_of(pool, chunk);
    pool_index_remove(index, chunk);
    if (chunk->bytes > bytes) {
        struct chunk *rest = take_spare(pool);
        *rest = (struct chunk){.block = chunk->block,
                               .offset = chunk->offset + bytes,
                               .bytes = chunk->bytes - bytes,
                               .lower = chunk,
                               .upper = chunk->upper,
                               .state = chunk->state,
                               .point = chunk->point};
        if (rest->upper != NULL) {
            rest->upper->lower = rest;
        }
        chunk->upper = rest;
        chunk->bytes = bytes;
        pool_index_insert(index, rest);
        if (queue != NULL) {
            pool_queue_replace(queue, chunk, rest);
        }
    } else if (queue != NULL) {
        pool_queue_remove(queue, chunk);
    }
    pool->report.pending_bytes -= queue != NULL ? bytes : 0;
    chunk->state = CHUNK_USED;
    pool->report.used_bytes += bytes;
    pool->report.peak_bytes = ACRE_MAX(pool->report.peak_bytes, pool->report.used_bytes);
    pool->report.allocations++;
}

static struct chunk *find(struct memory_pool *pool, struct pool_cache *own, uint64_t bytes) {
    bool has_own = own != NULL && !pool->options.only_past;
    harvest(pool, own);
    harvest_deferred(pool, 1);
    struct chunk *chunk = has_own ? pool_index_find(&own->index, bytes) : NULL;
    chunk = chunk != NULL ? chunk : pool_index_find(&pool->index, bytes);
    if (chunk == NULL && pool->report.pending_bytes > 0) {
        harvest_all(pool);
        chunk = pool_index_find(&pool->index, bytes);
    }
    if (chunk == NULL && has_own) {
        consolidate(pool, own);
        chunk = pool_index_find(&own->index, bytes);
    }
    return chunk;
}

/* In whole granules; 0: out of any range. */
static uint64_t round_up(uint64_t bytes) {
    return bytes > UINT64_C(1) << LIMIT_LOG2
               ? 0
               : (bytes + POOL_GRANULE_BYTES - 1) / POOL_GRANULE_BYTES * POOL_GRANULE_BYTES;
}

int pool_alloc(struct memory_pool *pool, uint32_t stream, uint64_t bytes,
               struct chunk **ret_chunk) {
    ACRE_ASSERT(bytes > 0);
    bytes = round_up(bytes);
    if (bytes == 0 || bytes > pool->options.limit_bytes - pool->report.used_bytes) {
        return ACRE_ELIMIT;
    }
    if (!have_spare(pool, 1)) {
        return ACRE_ENOMEM;
    }
    struct chunk *chunk = find(pool, cache_of(pool, stream), bytes);
    if (chunk == NULL) {
        return ACRE_ENOFIT;
    }
    take(pool, chunk, bytes);
    pool->report.hits++;
    *ret_chunk = chunk;
    return 0;
}

void pool_free(struct memory_pool *pool, struct chunk *chunk, struct pool_point point,
               struct pool_point *more, uint32_t more_count) {
    ACRE_ASSERT(chunk->block != NULL && chunk->state == CHUNK_USED);
    ACRE_ASSERT(point.stream < pool->options.stream_max);
    pool->report.used_bytes -= chunk->bytes;
    pool->report.frees++;
    chunk->point = point;
    chunk->more = more;
    chunk->more_count = more_count;
    if (!is_deferred(pool, chunk)) {
        release(pool, chunk);
        return;
    }
    struct pool_cache *cache = chunk->more_count == 0 ? make_cache(pool, point.stream) : NULL;
    if (cache != NULL) {
        free(chunk->more);
        chunk->more = NULL;
        harvest(pool, cache);
        make_pending(pool, chunk, cache);
    } else {
        defer(pool, chunk);
    }
}

struct pool_range pool_range(const struct chunk *chunk) {
    const struct pool_region *region = &chunk->block->region;
    return (struct pool_range){.region = region->handle,
                               .offset = chunk->offset,
                               .bytes = chunk->bytes,
                               .host = region->host != NULL ? (char *)region->host + chunk->offset
                                                            : NULL};
}

/* --- blocks --------------------------------------------------------------------------------- */

/* A block that few use is room nobody else has: under a small limit blocks are small. */
static uint64_t limit_part(const struct memory_pool *pool, uint32_t parts) {
    uint64_t part = ACRE_MAX(pool->options.limit_bytes / parts, (uint64_t)POOL_GRANULE_BYTES);
    return UINT64_C(1) << (63 - __builtin_clzll(part)); /* a power of two, as the others are */
}

/* As much again as there is, so that their number stays small; half of it or more: of its own. */
static uint64_t block_bytes(const struct memory_pool *pool, uint64_t bytes, bool exact) {
    const struct pool_options *options = &pool->options;
    uint64_t next = options->block_min_bytes;
    while (next < options->block_max_bytes && next < pool->report.reserved_bytes) {
        next *= 2;
    }
    next = ACRE_MIN(next, limit_part(pool, BLOCKS_PER_LIMIT));
    return exact || bytes >= next / 2 ? bytes : next;
}

int pool_reserve(struct memory_pool *pool, uint64_t bytes, bool exact, uint64_t *ret_block_bytes) {
    bytes = round_up(bytes);
    uint64_t left = pool->options.limit_bytes - pool->report.reserved_bytes;
    if (bytes == 0 || bytes > left) {
        return ACRE_ELIMIT;
    }
    struct pool_block *prepared = calloc(1, sizeof(*prepared));
    if (prepared == NULL || !have_spare(pool, CHUNKS_PER_ADD)) {
        free(prepared);
        return ACRE_ENOMEM;
    }
    prepared->after = pool->prepared;
    pool->prepared = prepared;
    pool->promised += CHUNKS_PER_ADD;
    uint64_t block = block_bytes(pool, bytes, exact);
    uint64_t unit = ACRE_MIN(pool->options.block_min_bytes, (uint64_t)BLOCK_ROUND);
    unit = ACRE_MIN(unit, limit_part(pool, UNITS_PER_LIMIT));
    block = (block + unit - 1) / unit * unit;
    block = ACRE_MIN(block, left / POOL_GRANULE_BYTES * POOL_GRANULE_BYTES);
    pool->report.reserved_bytes += block;
    *ret_block_bytes = block;
    return 0;
}

/* What was prepared for a block that is reserved. */
static struct pool_block *take_prepared(struct memory_pool *pool) {
    struct pool_block *block = pool->prepared;
    ACRE_ASSERT(block != NULL && pool->promised >= CHUNKS_PER_ADD);
    pool->prepared = block->after;
    pool->promised -= CHUNKS_PER_ADD;
    return block;
}

void pool_unreserve(struct memory_pool *pool, uint64_t bytes) {
    ACRE_ASSERT(bytes <= pool->report.reserved_bytes);
    pool->report.reserved_bytes -= bytes;
    free(take_prepared(pool));
}

struct chunk *pool_add(struct memory_pool *pool, const struct pool_region *region, uint64_t bytes) {
    bytes = round_up(bytes);
    ACRE_ASSERT(bytes > 0 && bytes <= region->bytes && region->bytes % POOL_GRANULE_BYTES == 0);
    /* All chunks are in blocks, and all blocks, this one too, within the limit. */
    ACRE_ASSERT(bytes <= pool->options.limit_bytes - pool->report.used_bytes);
    struct pool_block *block = take_prepared(pool);
    struct chunk *chunk = take_spare(pool);
    *block = (struct pool_block){.region = *region, .first = chunk, .after = pool->blocks};
    if (block->after != NULL) {
        block->after->before = block;
    }
    pool->blocks = block;
    pool->report.blocks++;
    *chunk = (struct chunk){.block = block, .bytes = region->bytes, .state = CHUNK_FREE};
    pool_index_insert(&pool->index, chunk);
    take(pool, chunk, bytes);
    return chunk;
}

/* Its chunks are in nothing. */
static void drop_block(struct memory_pool *pool, struct pool_block *block) {
    *(block->before != NULL ? &block->before->after : &pool->blocks) = block->after;
    if (block->after != NULL) {
        block->after->before = block->before;
    }
    for (struct chunk *chunk = block->first, *upper; chunk != NULL; chunk = upper) {
        upper = chunk->upper;
        put_spare(pool, chunk);
    }
    pool->report.blocks--;
    pool->report.reserved_bytes -= block->region.bytes;
    free(block);
}

bool pool_pop(struct memory_pool *pool, uint64_t keep_bytes, struct pool_region *ret_region) {
    if (pool->report.reserved_bytes <= keep_bytes) {
        return false;
    }
    harvest_all(pool);
    for (struct pool_block *block = pool->blocks; block != NULL; block = block->after) {
        if (block->first->state == CHUNK_FREE && block->first->upper == NULL) {
            *ret_region = block->region;
            pool_index_remove(&pool->index, block->first);
            drop_block(pool, block);
            return true;
        }
    }
    return false;
}

bool pool_pop_any(struct memory_pool *pool, struct pool_region *ret_region) {
    struct pool_block *block = pool->blocks;
    if (block == NULL) {
        return false;
    }
    for (struct chunk *chunk = block->first; chunk != NULL; chunk = chunk->upper) {
        leave(pool, chunk);
        pool->report.used_bytes -= chunk->state == CHUNK_USED ? chunk->bytes : 0;
        free(chunk->more);
        chunk->more = NULL;
    }
    *ret_region = block->region;
    drop_block(pool, block);
    return true;
}

bool pool_renew(struct memory_pool *pool, uint32_t number, struct pool_region **ret_region) {
    struct pool_block *block = pool->blocks;
    while (block != NULL && number-- > 0) {
        block = block->after;
    }
    if (block == NULL) {
        return false;
    }
    *ret_region = &block->region;
    return true;
}

/* --- life and looks ------------------------------------------------------------------------- */

int pool_create(const struct pool_options *options, struct memory_pool **ret_pool,
                struct acre_error *err) {
    ACRE_ASSERT(options->limit_bytes <= UINT64_C(1) << LIMIT_LOG2);
    ACRE_ASSERT(options->block_min_bytes >= POOL_GRANULE_BYTES);
    ACRE_ASSERT(options->block_min_bytes % POOL_GRANULE_BYTES == 0);
    struct memory_pool *pool = calloc(1, sizeof(*pool));
    struct pool_cache **caches = calloc(options->stream_max, sizeof(struct pool_cache *));
    if (pool == NULL || caches == NULL) {
        free(pool);
        free(caches);
        return acre_fail(err, ACRE_ENOMEM, "memory pool");
    }
    pool->options = *options;
    pool->caches = caches;
    *ret_pool = pool;
    return 0;
}

void pool_destroy(struct memory_pool *pool) {
    if (pool == NULL) {
        return;
    }
    struct pool_region region;
    while (pool_pop_any(pool, &region)) {
    }
    while (pool->prepared != NULL) {
        free(take_prepared(pool));
    }
    while (pool->slabs != NULL) {
        struct slab *slab = pool->slabs;
        pool->slabs = slab->next;
        free(slab);
    }
    while (pool->all_caches != NULL) {
        struct pool_cache *cache = pool->all_caches;
        pool->all_caches = cache->next;
        free(cache);
    }
    free(pool->caches);
    free(pool);
}

/* The first of a held chunk's moments that has not come. */
static struct pool_point held_point(const struct memory_pool *pool, const struct chunk *chunk) {
    return chunk->more_count > 0 && pool_is_past(pool, chunk->point)
               ? chunk->more[chunk->more_count - 1]
               : chunk->point;
}

bool pool_pending(struct memory_pool *pool, uint32_t stream, uint32_t number,
                  struct pool_point *ret_point) {
    harvest_all(pool);
    if (stream != UINT32_MAX) {
        const struct pool_cache *cache = cache_of(pool, stream);
        if (cache == NULL || cache->queue.first == NULL) {
            return false;
        }
        *ret_point = cache->queue.first->point;
        return true;
    }
    for (const struct pool_cache *cache = pool->all_caches; cache != NULL; cache = cache->next) {
        if (cache->queue.first != NULL && number-- == 0) {
            *ret_point = cache->queue.first->point;
            return true;
        }
    }
    for (const struct chunk *chunk = pool->deferred.first; chunk != NULL;
         chunk = chunk->queue.after) {
        if (number-- == 0) {
            *ret_point = held_point(pool, chunk);
            return true;
        }
    }
    return false;
}

/* The largest run of chunks in a block that nobody has. */
static uint64_t largest_run(const struct pool_block *block) {
    uint64_t run = 0;
    uint64_t largest = 0;
    for (const struct chunk *chunk = block->first; chunk != NULL; chunk = chunk->upper) {
        run = chunk->state == CHUNK_USED ? 0 : run + chunk->bytes;
        largest = ACRE_MAX(largest, run);
    }
    return largest;
}

bool pool_would_fit(const struct memory_pool *pool, uint64_t bytes) {
    bytes = round_up(bytes);
    if (bytes == 0) { /* rounded above all numbers */
        return false;
    }
    uint64_t room = pool->options.limit_bytes - pool->report.reserved_bytes;
    for (const struct pool_block *block = pool->blocks; block != NULL; block = block->after) {
        uint64_t run = largest_run(block);
        if (run >= bytes) {
            return true;
        }
        room += run == block->region.bytes ? run : 0; /* it can be given back for another */
    }
    return room >= bytes;
}

uint64_t pool_used(const struct memory_pool *pool) {
    return pool->report.used_bytes;
}

void pool_report(struct memory_pool *pool, struct pool_report *ret_report) {
    harvest_all(pool);
    struct pool_report report = pool->report;
    uint64_t in_blocks = 0;
    for (const struct pool_block *block = pool->blocks; block != NULL; block = block->after) {
        in_blocks += block->region.bytes;
    }
    report.free_bytes = in_blocks - report.used_bytes - report.pending_bytes;
    report.largest_free_bytes = pool_index_largest(&pool->index);
    *ret_report = report;
}
