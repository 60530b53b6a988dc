/* names.c - an open-addressing hash of ids over an array of texts.
 *
 * Texts live in an arena, so their addresses never move; the array maps id to text, and the
 * hash (linear probing, at most half full, grown by doubling) maps text to id. The full hash
 * is kept beside each text: growing rehashes without touching the texts, and a probe compares
 * bytes only when 32 bits agree. */
#include "core/names.h"

#include "core/arena.h"

#include <stdlib.h>

enum { FIRST_SLOTS = 64 };

struct entry {
    const char *text;
    uint32_t length;
    uint32_t hash;
};

struct acre_names {
    struct acre_arena *texts;
    struct entry *entries; /* by id - 1 */
    uint32_t count;
    uint32_t capacity;
    uint32_t *slots;     /* ids; 0: free */
    uint32_t slot_count; /* a power of two, at least twice `count` */
};

struct acre_names *acre_names_create(void) {
    struct acre_names *names = acre_calloc(1, sizeof(*names));
    names->texts = acre_arena_create(SIZE_MAX);
    names->slot_count = FIRST_SLOTS;
    names->slots = acre_calloc(FIRST_SLOTS, sizeof(*names->slots));
    return names;
}

void acre_names_destroy(struct acre_names *names) {
    if (names != NULL) {
        acre_arena_destroy(names->texts);
        free(names->entries);
        free(names->slots);
        free(names);
    }
}

/* The slot that holds `text`, or the free one where it belongs. */
static uint32_t *find_slot(const struct acre_names *names, struct acre_str text, uint32_t hash) {
    uint32_t mask = names->slot_count - 1;
    for (uint32_t i = hash & mask;; i = (i + 1) & mask) {
        uint32_t id = names->slots[i];
        if (id == 0) {
            return &names->slots[i];
        }
        const struct entry *entry = &names->entries[id - 1];
        if (entry->hash == hash &&
            acre_str_equal(text, (struct acre_str){entry->text, entry->length})) {
            return &names->slots[i];
        }
    }
}

static void grow_slots(struct acre_names *names) {
    uint32_t count = names->slot_count * 2;
    ACRE_ASSERT(count > names->slot_count);
    uint32_t *slots = acre_calloc(count, sizeof(*slots));
    for (uint32_t id = 1; id <= names->count; id++) {
        uint32_t i = names->entries[id - 1].hash & (count - 1);
        while (slots[i] != 0) {
            i = (i + 1) & (count - 1);
        }
        slots[i] = id;
    }
    free(names->slots);
    names->slots = slots;
    names->slot_count = count;
}

static uint32_t add_entry(struct acre_names *names, struct acre_str text, uint32_t hash) {
    if (names->count == names->capacity) {
        names->capacity = names->capacity == 0 ? FIRST_SLOTS / 2 : names->capacity * 2;
        names->entries = acre_realloc(names->entries, names->capacity, sizeof(*names->entries));
    }
    names->entries[names->count] = (struct entry){
        .text = acre_arena_strndup(names->texts, text.data, text.length),
        .length = (uint32_t)text.length,
        .hash = hash,
    };
    return ++names->count;
}

uint32_t acre_names_intern(struct acre_names *names, struct acre_str text) {
    ACRE_ASSERT(text.length < UINT32_MAX);
    if (text.length == 0) {
        return 0;
    }
    uint32_t hash = (uint32_t)acre_hash_bytes(text.data, text.length);
    uint32_t *slot = find_slot(names, text, hash);
    if (*slot != 0) {
        return *slot;
    }
    if ((names->count + 1) * 2 > names->slot_count) {
        grow_slots(names);
        slot = find_slot(names, text, hash);
    }
    *slot = add_entry(names, text, hash);
    return names->count;
}

uint32_t acre_names_find(const struct acre_names *names, struct acre_str text) {
    if (text.length == 0) {
        return 0;
    }
    return *find_slot(names, text, (uint32_t)acre_hash_bytes(text.data, text.length));
}

const char *acre_names_text(const struct acre_names *names, uint32_t id) {
    ACRE_ASSERT(id <= names->count);
    return id == 0 ? "" : names->entries[id - 1].text;
}

int acre_names_compare_ids(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

uint32_t acre_names_count(const struct acre_names *names) {
    return names->count;
}

size_t acre_names_bytes(const struct acre_names *names) {
    return sizeof(*names) + acre_arena_used(names->texts) +
           names->capacity * sizeof(*names->entries) + names->slot_count * sizeof(*names->slots);
}
