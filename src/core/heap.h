/* heap.h - a binary heap in the caller's array: the item that precedes all others is items[0].
 *
 * Like qsort, it takes the size of an item and a function that compares two; unlike qsort it is
 * inlined, so that a heap whose kind is a static const is as fast as one written by hand. The
 * caller owns the array and its length, makes room before a push, and may read all items (the
 * children of items[i] are items[2 i + 1] and items[2 i + 2]).
 *
 * To find items again (to remove or move them), `moved` records their positions. Items that compare
 * equal come out in no particular order, but in the same order every time. Pure; allocates
 * nothing. */
#ifndef ACRE_CORE_HEAP_H
#define ACRE_CORE_HEAP_H

#include "core/base.h"

#include <string.h>

enum { ACRE_HEAP_ITEM_MAX = 64 };

struct acre_heap_kind {
    size_t size; /* of an item */
    bool (*precedes)(const void *a, const void *b, const void *context);
    void (*moved)(const void *item, uint32_t at, void *context); /* optional */
};

#define ACRE_HEAP_INLINE static inline __attribute__((always_inline))

ACRE_HEAP_INLINE const void *acre_heap_at(const struct acre_heap_kind *kind, const void *items,
                                          uint32_t at) {
    return (const char *)items + at * kind->size;
}

ACRE_HEAP_INLINE void acre_heap_put(const struct acre_heap_kind *kind, void *items, uint32_t at,
                                    const void *item, void *context) {
    memcpy((char *)items + at * kind->size, item, kind->size);
    if (kind->moved != NULL) {
        kind->moved(item, at, context);
    }
}

/* Puts `item`, which is not in the array, into the hole at `at` or above: each step fills the hole
 * and makes another, so the item is written once. */
ACRE_HEAP_INLINE void acre_heap_rise(const struct acre_heap_kind *kind, void *items, uint32_t at,
                                     const void *item, void *context) {
    while (at > 0 && kind->precedes(item, acre_heap_at(kind, items, (at - 1) / 2), context)) {
        acre_heap_put(kind, items, at, acre_heap_at(kind, items, (at - 1) / 2), context);
        at = (at - 1) / 2;
    }
    acre_heap_put(kind, items, at, item, context);
}

/* The same downwards. */
ACRE_HEAP_INLINE void acre_heap_sink(const struct acre_heap_kind *kind, void *items, uint32_t count,
                                     uint32_t at, const void *item, void *context) {
    for (uint32_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
        if (child + 1 < count && kind->precedes(acre_heap_at(kind, items, child + 1),
                                                acre_heap_at(kind, items, child), context)) {
            child++;
        }
        if (!kind->precedes(acre_heap_at(kind, items, child), item, context)) {
            break;
        }
        acre_heap_put(kind, items, at, acre_heap_at(kind, items, child), context);
        at = child;
    }
    acre_heap_put(kind, items, at, item, context);
}

/* The array has room for one more; `item` is not in it. */
ACRE_HEAP_INLINE void acre_heap_push(const struct acre_heap_kind *kind, void *items,
                                     uint32_t *count, const void *item, void *context) {
    acre_heap_rise(kind, items, (*count)++, item, context);
}

/* `item`, which is not in the array, takes the place of the one at `at` and moves to where it
 * belongs: also for an item whose order has changed. */
ACRE_HEAP_INLINE void acre_heap_replace(const struct acre_heap_kind *kind, void *items,
                                        uint32_t count, uint32_t at, const void *item,
                                        void *context) {
    ACRE_ASSERT(at < count);
    if (at > 0 && kind->precedes(item, acre_heap_at(kind, items, (at - 1) / 2), context)) {
        acre_heap_rise(kind, items, at, item, context);
    } else {
        acre_heap_sink(kind, items, count, at, item, context);
    }
}

/* Takes out the item at `at`; the last one fills the gap. */
ACRE_HEAP_INLINE void acre_heap_remove(const struct acre_heap_kind *kind, void *items,
                                       uint32_t *count, uint32_t at, void *context) {
    ACRE_ASSERT(at < *count);
    (*count)--;
    if (at < *count) {
        acre_heap_replace(kind, items, *count, at, acre_heap_at(kind, items, *count), context);
    }
}

ACRE_HEAP_INLINE void acre_heap_remove_first(const struct acre_heap_kind *kind, void *items,
                                             uint32_t *count, void *context) {
    ACRE_ASSERT(*count > 0);
    (*count)--;
    if (*count > 0) {
        acre_heap_sink(kind, items, *count, 0, acre_heap_at(kind, items, *count), context);
    }
}

/* Makes a heap of an array in any order, in time proportional to its length. */
ACRE_HEAP_INLINE void acre_heap_build(const struct acre_heap_kind *kind, void *items,
                                      uint32_t count, void *context) {
    _Alignas(max_align_t) char item[ACRE_HEAP_ITEM_MAX];
    ACRE_ASSERT(kind->size <= sizeof(item));
    for (uint32_t i = count / 2; i-- > 0;) {
        memcpy(item, acre_heap_at(kind, items, i), kind->size);
        acre_heap_sink(kind, items, count, i, item, context);
    }
}

#endif
