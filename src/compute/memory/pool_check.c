/* pool_check.c - check every chunk of a pool and assert that the structures agree.
 *
 * Slow; only tests call it. Whatever pool.c maintains step by step is counted here from the blocks.
 */
#include "compute/memory/pool_inner.h"

struct tally {
    uint64_t used_bytes, pending_bytes, free_chunks, pending_chunks, deferred_chunks;
};

static bool is_in(const struct pool_index *index, const struct chunk *chunk) {
    uint32_t power, step;
    pool_index_bin(chunk->bytes, &power, &step);
    const struct chunk *each = index->bins[power][step];
    while (each != NULL && each != chunk) {
        each = each->bin.after;
    }
    return each == chunk && (index->powers >> power & 1) != 0 &&
           (index->steps[power] >> step & 1) != 0;
}

static void check_chunk(const struct memory_pool *pool, const struct chunk *chunk,
                        struct tally *tally) {
    const struct chunk *upper = chunk->upper;
    ACRE_ASSERT(upper == NULL || upper->lower == chunk);
    switch (chunk->state) {
    case CHUNK_USED:
        tally->used_bytes += chunk->bytes;
        break;
    case CHUNK_FREE:
        tally->free_chunks++;
        ACRE_ASSERT(upper == NULL || upper->state != CHUNK_FREE);
        ACRE_ASSERT(is_in(&pool->index, chunk));
        break;
    case CHUNK_PENDING:
        tally->pending_chunks++;
        tally->pending_bytes += chunk->bytes;
        ACRE_ASSERT(pool->caches[chunk->point.stream] != NULL);
        ACRE_ASSERT(pool->options.only_past ||
                    is_in(&pool->caches[chunk->point.stream]->index, chunk));
        break;
    case CHUNK_DEFERRED:
        tally->deferred_chunks++;
        tally->pending_bytes += chunk->bytes;
        break;
    }
}

static uint64_t count_index(const struct pool_index *index) {
    uint64_t count = 0;
    for (uint32_t power = 0; power < POWERS; power++) {
        for (uint32_t step = 0; step < STEPS; step++) {
            for (const struct chunk *chunk = index->bins[power][step]; chunk != NULL;
                 chunk = chunk->bin.after) {
                count++;
            }
        }
    }
    return count;
}

static uint64_t count_queue(const struct pool_queue *queue, bool is_ordered) {
    uint64_t count = 0;
    const struct chunk *last = NULL;
    for (const struct chunk *chunk = queue->first; chunk != NULL; chunk = chunk->queue.after) {
        ACRE_ASSERT(chunk->queue.before == last);
        ACRE_ASSERT(!is_ordered || last == NULL || last->point.sequence <= chunk->point.sequence);
        last = chunk;
        count++;
    }
    ACRE_ASSERT(queue->last == last);
    return count;
}

void pool_check(struct memory_pool *pool) {
    struct tally tally = {0};
    uint32_t blocks = 0;
    for (const struct pool_block *block = pool->blocks; block != NULL; block = block->after) {
        uint64_t at = 0;
        blocks++;
        for (const struct chunk *chunk = block->first; chunk != NULL; chunk = chunk->upper) {
            ACRE_ASSERT(chunk->block == block && chunk->offset == at && chunk->bytes > 0);
            at += chunk->bytes;
            check_chunk(pool, chunk, &tally);
        }
        ACRE_ASSERT(at == block->region.bytes);
    }
    uint64_t queued = 0;
    uint64_t indexed = 0;
    for (const struct pool_cache *cache = pool->all_caches; cache != NULL; cache = cache->next) {
        queued += count_queue(&cache->queue, true);
        indexed += count_index(&cache->index);
    }
    ACRE_ASSERT(blocks == pool->report.blocks);
    ACRE_ASSERT(tally.used_bytes == pool->report.used_bytes);
    ACRE_ASSERT(tally.pending_bytes == pool->report.pending_bytes);
    ACRE_ASSERT(tally.free_chunks == count_index(&pool->index));
    ACRE_ASSERT(tally.pending_chunks == queued);
    ACRE_ASSERT(indexed == (pool->options.only_past ? 0 : queued));
    ACRE_ASSERT(tally.deferred_chunks == count_queue(&pool->deferred, false));
}
