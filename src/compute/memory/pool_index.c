/* pool_index.c - free chunks by size, and queues of those that wait.
 *
 * A size class is a power of two of granules, its steps are sixteen equal parts of it. One bitmap
 * tells the classes that have chunks, one for each class its steps: finding the next larger chunk
 * is two scans for a bit, whatever the number of chunks. */
#include "compute/memory/pool_inner.h"

enum { TRIES = 4 }; /* chunks of the same step looked at: not all of them are large enough */

void pool_queue_append(struct queue *queue, struct chunk *chunk) {
    chunk->queue = (struct links){.before = queue->last};
    if (queue->last != NULL) {
        queue->last->queue.after = chunk;
    } else {
        queue->first = chunk;
    }
    queue->last = chunk;
}

void pool_queue_remove(struct queue *queue, struct chunk *chunk) {
    struct links links = chunk->queue;
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

void pool_queue_replace(struct queue *queue, const struct chunk *chunk, struct chunk *other) {
    other->queue = chunk->queue;
    *(other->queue.before != NULL ? &other->queue.before->queue.after : &queue->first) = other;
    *(other->queue.after != NULL ? &other->queue.after->queue.before : &queue->last) = other;
}

void pool_index_bin(uint64_t bytes, uint32_t *ret_class, uint32_t *ret_step) {
    uint64_t granules = bytes / POOL_GRANULE_BYTES;
    ACRE_ASSERT(granules > 0);
    if (granules < STEPS) {
        *ret_class = 0;
        *ret_step = (uint32_t)granules;
        return;
    }
    uint32_t log2 = 63 - (uint32_t)__builtin_clzll(granules);
    *ret_class = log2 - STEPS_LOG2 + 1;
    *ret_step = (uint32_t)(granules >> (log2 - STEPS_LOG2)) & (STEPS - 1);
    ACRE_ASSERT(*ret_class < CLASSES);
}

void pool_index_insert(struct index *index, struct chunk *chunk) {
    uint32_t class, step;
    pool_index_bin(chunk->bytes, &class, &step);
    struct chunk *first = index->bins[class][step];
    chunk->bin = (struct links){.after = first};
    if (first != NULL) {
        first->bin.before = chunk;
    }
    index->bins[class][step] = chunk;
    index->steps[class] |= UINT32_C(1) << step;
    index->classes |= UINT64_C(1) << class;
}

void pool_index_remove(struct index *index, struct chunk *chunk) {
    struct links links = chunk->bin;
    if (links.after != NULL) {
        links.after->bin.before = links.before;
    }
    if (links.before != NULL) {
        links.before->bin.after = links.after;
        return;
    }
    uint32_t class, step;
    pool_index_bin(chunk->bytes, &class, &step);
    ACRE_ASSERT(index->bins[class][step] == chunk);
    index->bins[class][step] = links.after;
    if (links.after == NULL) {
        index->steps[class] &= ~(UINT32_C(1) << step);
        if (index->steps[class] == 0) {
            index->classes &= ~(UINT64_C(1) << class);
        }
    }
}

struct chunk *pool_index_find(const struct index *index, uint64_t bytes) {
    uint32_t class, step;
    pool_index_bin(bytes, &class, &step);
    struct chunk *chunk = index->bins[class][step];
    for (uint32_t i = 0; i < TRIES && chunk != NULL; i++, chunk = chunk->bin.after) {
        if (chunk->bytes >= bytes) {
            return chunk;
        }
    }
    uint32_t steps = step + 1 < STEPS ? index->steps[class] & (UINT32_MAX << (step + 1)) : 0;
    if (steps == 0) {
        uint64_t classes = index->classes & (UINT64_MAX << (class + 1));
        if (classes == 0) {
            return NULL;
        }
        class = (uint32_t)__builtin_ctzll(classes);
        steps = index->steps[class];
    }
    return index->bins[class][__builtin_ctz(steps)];
}

uint64_t pool_index_largest(const struct index *index) {
    if (index->classes == 0) {
        return 0;
    }
    uint32_t class = 63 - (uint32_t)__builtin_clzll(index->classes);
    uint32_t step = 31 - (uint32_t)__builtin_clz(index->steps[class]);
    uint64_t largest = 0;
    for (struct chunk *chunk = index->bins[class][step]; chunk != NULL; chunk = chunk->bin.after) {
        largest = ACRE_MAX(largest, chunk->bytes);
    }
    return largest;
}
