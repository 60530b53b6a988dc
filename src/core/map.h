/* map.h - maps 64-bit keys to small indexes: open addressing, linear probing.
 *
 * For records that hold their own key use index.h, a quarter of the size. One thread at a time.
 * Key 0 is not allowed; all zero is an empty map. */
#ifndef ACRE_CORE_MAP_H
#define ACRE_CORE_MAP_H

#include "core/base.h"

#define ACRE_MAP_NONE UINT32_MAX

struct acre_map_slot {
    uint64_t key; /* 0: empty */
    uint32_t value;
};
struct acre_map {
    struct acre_map_slot *slots; /* a power of two of them; NULL: none yet */
    uint32_t mask, count;
};

void acre_map_finish(struct acre_map *map);
uint32_t acre_map_get(const struct acre_map *map, uint64_t key); /* ACRE_MAP_NONE: not there */
void acre_map_put(struct acre_map *map, uint64_t key, uint32_t value);
/* Only a key that is not there yet: false when it is, and its value stays. As a set of keys. */
bool acre_map_add(struct acre_map *map, uint64_t key, uint32_t value);
void acre_map_remove(struct acre_map *map, uint64_t key); /* it must be there */
void acre_map_clear(struct acre_map *map); /* gives back what one much larger than this took */
size_t acre_map_bytes(const struct acre_map *map);

#endif
