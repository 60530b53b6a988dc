/* index.c - the parts of the index that are not worth inlining.
 *
 * The table is at most half full: a lookup reads 1.5 slots on average if the key is there and 2.5
 * if not, and each may be a record in another cache line. */
#include "core/index.h"

#include <stdlib.h>
#include <string.h>

enum { SIZE_MIN = 16 };

void acre_index_finish(struct acre_index *index) {
    free(index->slots);
    *index = (struct acre_index){0};
}

void acre_index_clear(struct acre_index *index) {
    if (index->count > 0) {
        memset(index->slots, 0, acre_index_bytes(index));
        index->count = 0;
    }
}

size_t acre_index_bytes(const struct acre_index *index) {
    return index->slots != NULL ? ((size_t)index->mask + 1) * sizeof(*index->slots) : 0;
}

static void put(struct acre_index *index, uint32_t hash, uint32_t number) {
    uint32_t at = hash & index->mask;
    while (index->slots[at] != 0) {
        at = (at + 1) & index->mask;
    }
    index->slots[at] = number + 1;
}

static void grow(const struct acre_index_kind *kind, struct acre_index *index,
                 const void *context) {
    struct acre_index old = *index;
    uint32_t size = old.slots != NULL ? 2 * (old.mask + 1) : (uint32_t)SIZE_MIN;
    ACRE_ASSERT(size > old.mask);
    index->slots = acre_grow_table(NULL, 0, size, sizeof(*index->slots)); /* read at random */
    index->mask = size - 1;
    memset(index->slots, 0, acre_index_bytes(index));
    for (uint32_t i = 0; old.slots != NULL && i <= old.mask; i++) {
        if (old.slots[i] != 0) {
            put(index, kind->hash(old.slots[i] - 1, context), old.slots[i] - 1);
        }
    }
    free(old.slots);
}

void acre_index_add(const struct acre_index_kind *kind, struct acre_index *index, uint32_t hash,
                    uint32_t number, const void *context) {
    ACRE_ASSERT(number != ACRE_INDEX_NONE);
    if (index->slots == NULL || 2 * ((uint64_t)index->count + 1) > (uint64_t)index->mask + 1) {
        grow(kind, index, context);
    }
    put(index, hash, number);
    index->count++;
}
