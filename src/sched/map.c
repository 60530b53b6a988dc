/* map.c - open addressing with linear probing and backward-shift deletion, at most 3/4 full.
 *
 * Two words a slot are more than an index into records would need, but a look-up then costs one
 * cache line and the map knows nothing of what it finds. */
#include "sched/map.h"

#include <stdlib.h>
#include <string.h>

static uint32_t home_of(const struct map *map, uint64_t key) {
    return (uint32_t)(key * UINT64_C(0x9E3779B97F4A7C15) >> 32) & map->mask;
}

void map_finish(struct map *map) {
    free(map->slots);
    *map = (struct map){0};
}

/* The slot of `key`, or the empty one where it belongs. */
static uint32_t probe(const struct map *map, uint64_t key) {
    uint32_t at = home_of(map, key);
    while (map->slots[at].key != 0 && map->slots[at].key != key) {
        at = (at + 1) & map->mask;
    }
    return at;
}

uint32_t map_get(const struct map *map, uint64_t key) {
    if (map->slots == NULL || key == 0) {
        return MAP_NONE;
    }
    const struct map_slot *slot = &map->slots[probe(map, key)];
    return slot->key == key ? slot->value : MAP_NONE;
}

static void resize(struct map *map, uint32_t size) {
    struct map old = *map;
    map->slots = acre_grow_table(NULL, 0, size, sizeof(*map->slots)); /* read at random */
    memset(map->slots, 0, size * sizeof(*map->slots));
    map->mask = size - 1;
    for (uint32_t i = 0; old.slots != NULL && i <= old.mask; i++) {
        if (old.slots[i].key != 0) {
            map->slots[probe(map, old.slots[i].key)] = old.slots[i];
        }
    }
    free(old.slots);
}

void map_put(struct map *map, uint64_t key, uint32_t value) {
    ACRE_ASSERT(key != 0);
    if (map->slots == NULL) {
        resize(map, 64);
    } else if (4 * ((uint64_t)map->count + 1) > 3 * ((uint64_t)map->mask + 1)) {
        resize(map, 2 * (map->mask + 1));
    }
    struct map_slot *slot = &map->slots[probe(map, key)];
    map->count += slot->key == 0;
    *slot = (struct map_slot){key, value};
}

void map_remove(struct map *map, uint64_t key) {
    uint32_t hole = probe(map, key);
    ACRE_ASSERT(key != 0 && map->slots[hole].key == key);
    for (uint32_t at = (hole + 1) & map->mask; map->slots[at].key != 0; at = (at + 1) & map->mask) {
        uint32_t home = home_of(map, map->slots[at].key);
        if (((at - home) & map->mask) >= ((at - hole) & map->mask)) {
            map->slots[hole] = map->slots[at];
            hole = at;
        }
    }
    map->slots[hole].key = 0;
    map->count--;
}

size_t map_bytes(const struct map *map) {
    return map->slots != NULL ? ((size_t)map->mask + 1) * sizeof(*map->slots) : 0;
}
