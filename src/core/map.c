/* map.c - open addressing with linear probing and backward-shift deletion, at most 3/4 full.
 *
 * Two words per slot are more than an index into records would need, but a lookup touches one cache
 * line, and the map needs to know nothing about the records. */
#include "core/map.h"

#include "core/index.h"

#include <stdlib.h>
#include <string.h>

enum { SIZE_MIN = 64, SPARSE = 16 };

static uint32_t home_of(const struct acre_map *map, uint64_t key) {
    return acre_hash_u64(key) & map->mask;
}

void acre_map_finish(struct acre_map *map) {
    free(map->slots);
    *map = (struct acre_map){0};
}

/* The slot of `key`, or the empty one where it belongs. */
static uint32_t probe(const struct acre_map *map, uint64_t key) {
    uint32_t at = home_of(map, key);
    while (map->slots[at].key != 0 && map->slots[at].key != key) {
        at = (at + 1) & map->mask;
    }
    return at;
}

uint32_t acre_map_get(const struct acre_map *map, uint64_t key) {
    if (map->slots == NULL || key == 0) {
        return ACRE_MAP_NONE;
    }
    const struct acre_map_slot *slot = &map->slots[probe(map, key)];
    return slot->key == key ? slot->value : ACRE_MAP_NONE;
}

static void resize(struct acre_map *map, uint32_t size) {
    struct acre_map old = *map;
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

/* The slot of `key`, taken for it if it was not there: then the key is still to be written. */
static struct acre_map_slot *take(struct acre_map *map, uint64_t key) {
    ACRE_ASSERT(key != 0);
    if (map->slots == NULL) {
        resize(map, SIZE_MIN);
    } else if (4 * ((uint64_t)map->count + 1) > 3 * ((uint64_t)map->mask + 1)) {
        resize(map, 2 * (map->mask + 1));
    }
    struct acre_map_slot *slot = &map->slots[probe(map, key)];
    map->count += slot->key == 0;
    return slot;
}

void acre_map_put(struct acre_map *map, uint64_t key, uint32_t value) {
    *take(map, key) = (struct acre_map_slot){key, value};
}

bool acre_map_add(struct acre_map *map, uint64_t key, uint32_t value) {
    struct acre_map_slot *slot = take(map, key);
    if (slot->key == key) {
        return false;
    }
    *slot = (struct acre_map_slot){key, value};
    return true;
}

void acre_map_remove(struct acre_map *map, uint64_t key) {
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

void acre_map_clear(struct acre_map *map) {
    if (map->mask >= SIZE_MIN && map->count < map->mask / SPARSE) {
        acre_map_finish(map); /* emptying it would cost more than what it held */
    } else if (map->count > 0) {
        memset(map->slots, 0, acre_map_bytes(map));
        map->count = 0;
    }
}

size_t acre_map_bytes(const struct acre_map *map) {
    return map->slots != NULL ? ((size_t)map->mask + 1) * sizeof(*map->slots) : 0;
}
