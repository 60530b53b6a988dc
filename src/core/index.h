/* index.h - finds the records of the caller's array by their keys: open addressing, linear probing.
 *
 * The index holds record numbers, 4 bytes each, and gets the keys from the caller: it is for
 * records that hold their own key (map.h maps numbers to numbers). It is at most half full, and the
 * functions are inlined, so that an index whose kind is a static const is as fast as a table
 * written by hand: one cache line, and the record.
 *
 * One thread at a time. All zero is an empty index; numbers are below ACRE_INDEX_NONE. */
#ifndef ACRE_CORE_INDEX_H
#define ACRE_CORE_INDEX_H

#include "core/base.h"

#define ACRE_INDEX_NONE UINT32_MAX

struct acre_index {
    uint32_t *slots; /* number + 1; 0: empty. A power of two of them; NULL: none yet */
    uint32_t mask, count;
};

struct acre_index_kind {
    uint32_t (*hash)(uint32_t number, const void *context); /* of the record's key; all 32 bits */
    bool (*is)(uint32_t number, const void *key, const void *context);
};

#define ACRE_INDEX_INLINE static inline __attribute__((always_inline))

/* Of a key that is a number. */
ACRE_INDEX_INLINE uint32_t acre_hash_u64(uint64_t key) {
    return (uint32_t)(key * UINT64_C(0x9E3779B97F4A7C15) >> 32);
}

void acre_index_finish(struct acre_index *index);
void acre_index_clear(struct acre_index *index); /* keeps its memory */
size_t acre_index_bytes(const struct acre_index *index);

/* `number`, whose key has this hash, and no other record has the key. */
void acre_index_add(const struct acre_index_kind *kind, struct acre_index *index, uint32_t hash,
                    uint32_t number, const void *context);

/* The record with this key, which has this hash. ACRE_INDEX_NONE: not there. */
ACRE_INDEX_INLINE uint32_t acre_index_find(const struct acre_index_kind *kind,
                                           const struct acre_index *index, uint32_t hash,
                                           const void *key, const void *context) {
    if (index->slots == NULL) {
        return ACRE_INDEX_NONE;
    }
    for (uint32_t at = hash & index->mask; index->slots[at] != 0; at = (at + 1) & index->mask) {
        if (kind->is(index->slots[at] - 1, key, context)) {
            return index->slots[at] - 1;
        }
    }
    return ACRE_INDEX_NONE;
}

/* `number`, whose key has this hash, must be there; all records that are must still be whole. Those
 * behind the gap move up, unless that would be before their home. */
ACRE_INDEX_INLINE void acre_index_remove(const struct acre_index_kind *kind,
                                         struct acre_index *index, uint32_t hash, uint32_t number,
                                         const void *context) {
    ACRE_ASSERT(index->count > 0);
    uint32_t *slots = index->slots, mask = index->mask, hole = hash & mask;
    while (slots[hole] != number + 1) {
        ACRE_ASSERT(slots[hole] != 0);
        hole = (hole + 1) & mask;
    }
    for (uint32_t at = (hole + 1) & mask; slots[at] != 0; at = (at + 1) & mask) {
        uint32_t home = kind->hash(slots[at] - 1, context) & mask;
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            slots[hole] = slots[at];
            hole = at;
        }
    }
    slots[hole] = 0;
    index->count--;
}

#endif
