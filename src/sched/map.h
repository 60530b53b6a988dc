/* map.h - from a 64-bit key to a small index: open addressing, linear probing.
 *
 * Core thread only. Key 0 is not a key. Private to src/sched. */
#ifndef ACRE_SCHED_MAP_H
#define ACRE_SCHED_MAP_H

#include "core/base.h"

#define MAP_NONE UINT32_MAX

struct map_slot {
    uint64_t key; /* 0: empty */
    uint32_t value;
};
struct map {
    struct map_slot *slots; /* a power of two of them; NULL: none yet */
    uint32_t mask, count;
};

void map_finish(struct map *map);
uint32_t map_get(const struct map *map, uint64_t key); /* MAP_NONE: not there */
void map_put(struct map *map, uint64_t key, uint32_t value);
void map_remove(struct map *map, uint64_t key); /* it must be there */
size_t map_bytes(const struct map *map);

#endif
