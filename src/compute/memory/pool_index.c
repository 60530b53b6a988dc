/* pool_index.c - free chunks by size, and queues of those that wait.
 *
 * A size class is a power of two of granules; its steps are sixteen equal parts. One bitmap shows
 * which classes have chunks, and one per class shows its steps: finding the next larger chunk takes
 * two bit scans, whatever the number of chunks. */
#include "compute/memory/pool_inner.h"

enum { TRIES = 4 }; /* chunks of the same step looked at: not all of them are large enough */

void pool_queue_append(struct pool_queue *queue, struct chunk *chunk) {
    chunk->queue = (struct pool_links){.before = queue->last};
    if (queue->last != NULL) {
        queue->last->queue.after = chunk;
    } else {
        queue->first = chunk;
    }
    queue->last = chunk;
}

void pool_queue_remove(struct pool_queue *queue, struct chunk *chunk) {
    struct pool_links links = chunk->queue;
    if (links.before != NULL) {
        links.before->queue.after = links.after;
    } else {
        queue->first = links.after;
    }
    if (links.after != NULL) {
        links.after->queue.before = links.before;
    } else {
        queue->last = links.before;
    }
}

void pool_queue_replace(struct pool_queue *queue, const struct chunk *chunk, struct chunk *other) {
    other->queue = chunk->queue;
    *(other->queue.before != NULL ? &other->queue.before->queue.after : &queue->first) = other;
    *(other->queue.after != NULL ? &other->queue.after->queue.before : &queue->last) = other;
}

void pool_index_bin(uint64_t bytes, uint32_t *ret_power, uint32_t *ret_step) {
    uint64_t granules = bytes / POOL_GRANULE_BYTES;
    ACRE_ASSERT(granules > 0);
    if (granules < STEPS) {
        *ret_power = 0;
        *ret_step = (uint32_t)granules;
        return;
    }
    uint32_t log2 = 63 - (uint32_t)__builtin_clzll(granules);
    *ret_power = log2 - STEPS_LOG2 + 1;
    *ret_step = (uint32_t)(granules >> (log2 - STEPS_LOG2)) & (STEPS - 1);
    ACRE_ASSERT(*ret_power < POWERS);
}

void pool_index_insert(struct pool_index *index, struct chunk *chunk) {
    uint32_t power, step;
    pool_index_bin(chunk->bytes, &power, &step);
    struct chunk *first = index->bins[power][step];
    chunk->bin = (struct pool_links){.after = first};
    if (first != NULL) {
        first->bin.before = chunk;
    }
    index->bins[power][step] = chunk;
    index->steps[power] |= UINT32_C(1) << step;
    index->powers |= UINT64_C(1) << power;
}

void pool_index_remove(struct pool_index *index, struct chunk *chunk) {
    struct pool_links links = chunk->bin;
    if (links.after != NULL) {
        links.after->bin.before = links.before;
    }
    if (links.before != NULL) {
        links.before->bin.after = links.after;
        return;
    }
    uint32_t power, step;
    pool_index_bin(chunk->bytes, &power, &step);
    ACRE_ASSERT(index->bins[power][step] == chunk);
    index->bins[power][step] = links.after;
    if (links.after == NULL) {
        index->steps[power] &= ~(UINT32_C(1) << step);
        if (index->steps[power] == 0) {
            index->powers &= ~(UINT64_C(1) << power);
        }
    }
}

struct chunk *pool_index_find(const struct pool_index *index, uint64_t bytes) {
    uint32_t power, step;
    pool_index_bin(bytes, &power, &step);
    struct chunk *chunk = index->bins[power][step];
    for (uint32_t i = 0; i < TRIES && chunk != NULL; i++, chunk = chunk->bin.after) {
        if (chunk->bytes >= bytes) {
            return chunk;
        }
    }
    uint32_t steps = step + 1 < STEPS ? index->steps[power] & (UINT32_MAX << (step + 1)) : 0;
    if (steps == 0) {
        uint64_t powers = index->powers & (UINT64_MAX << (power + 1));
        if (powers == 0) {
            return NULL;
        }
        power = (uint32_t)__builtin_ctzll(powers);
        steps = index->steps[power];
    }
    return index->bins[power][__builtin_ctz(steps)];
}

uint64_t pool_index_largest(const struct pool_index *index) {
    if (index->powers == 0) {
        return 0;
    }
    uint32_t power = 63 - (uint32_t)__builtin_clzll(index->powers);
    uint32_t step = 31 - (uint32_t)__builtin_clz(index->steps[power]);
    uint64_t largest = 0;
    for (struct chunk *chunk = index->bins[power][step]; chunk != NULL; chunk = chunk->bin.after) {
        largest = ACRE_MAX(largest, chunk->bytes);
    }
    return largest;
}
