/* names.c - an index of ids over an array of texts.
 *
 * Texts that stay are kept in an arena; one that was taken has its own allocation, so that it can
 * be freed. Either way its address never changes. The array maps ids to texts, and the index maps
 * texts to ids. The full hash is kept with each text: growing rehashes without reading the texts,
 * and a probe compares bytes only if 32 bits agree. Ids that were given back are used again, latest
 * first, so that the array never exceeds the largest number of names held at once. */
#include "core/names.h"

#include "core/arena.h"
#include "core/index.h"

#include <stdlib.h>
#include <string.h>

#define STAYS UINT32_MAX /* taken for ever */

struct name_entry {
    const char *text; /* NULL: free */
    uint32_t length;
    uint32_t hash;
    uint32_t taken; /* how often; of a free one: the next free id */
    bool is_alone;  /* the text is not in the arena */
};

struct acre_names {
    struct acre_arena *texts;
    struct name_entry *entries; /* by id - 1 */
    uint32_t count;             /* names */
    uint32_t limit;             /* entries ever used */
    uint32_t capacity;
    uint32_t free;           /* id of a free entry; 0: none */
    struct acre_index index; /* of entries */
    size_t alone_bytes;
};

struct acre_names *acre_names_create(void) {
    struct acre_names *names = acre_calloc(1, sizeof(*names));
    names->texts = acre_arena_create(SIZE_MAX);
    return names;
}

void acre_names_destroy(struct acre_names *names) {
    if (names != NULL) {
        for (uint32_t i = 0; i < names->limit; i++) {
            if (names->entries[i].is_alone) {
                free((char *)names->entries[i].text);
            }
        }
        acre_arena_destroy(names->texts);
        free(names->entries);
        acre_index_finish(&names->index);
        free(names);
    }
}

static struct name_entry *entry_of(const struct acre_names *names, uint32_t id) {
    ACRE_ASSERT(id > 0 && id <= names->limit && names->entries[id - 1].text != NULL);
    return &names->entries[id - 1];
}

struct key {
    struct acre_str text;
    uint32_t hash;
};

static struct key key_of(struct acre_str text) {
    return (struct key){text, (uint32_t)acre_hash_bytes(text.data, text.length)};
}

static uint32_t entry_hash(uint32_t number, const void *context) {
    return ((const struct acre_names *)context)->entries[number].hash;
}

static bool entry_is(uint32_t number, const void *key, const void *context) {
    const struct name_entry *entry = &((const struct acre_names *)context)->entries[number];
    const struct key *wanted = key;
    return entry->hash == wanted->hash &&
           acre_str_equal(wanted->text, (struct acre_str){entry->text, entry->length});
}

static const struct acre_index_kind by_text = {entry_hash, entry_is};

/* 0: unknown. */
static uint32_t find(const struct acre_names *names, const struct key *key) {
    uint32_t number = acre_index_find(&by_text, &names->index, key->hash, key, names);
    return number != ACRE_INDEX_NONE ? number + 1 : 0;
}

static const char *copy_text(struct acre_names *names, struct acre_str text, bool is_alone) {
    if (!is_alone) {
        return acre_arena_strndup(names->texts, text.data, text.length);
    }
    char *copy = acre_calloc(text.length + 1, 1);
    memcpy(copy, text.data, text.length);
    names->alone_bytes += text.length + 1;
    return copy;
}

static uint32_t add_entry(struct acre_names *names, struct acre_str text, uint32_t hash,
                          bool is_alone) {
    uint32_t id = names->free;
    if (id != 0) {
        names->free = names->entries[id - 1].taken;
    } else {
        names->entries =
            acre_grow(names->entries, names->limit, &names->capacity, sizeof(*names->entries));
        id = ++names->limit;
    }
    names->entries[id - 1] = (struct name_entry){.text = copy_text(names, text, is_alone),
                                                 .length = (uint32_t)text.length,
                                                 .hash = hash,
                                                 .is_alone = is_alone};
    names->count++;
    return id;
}

/* The id of a text that is not empty, made when new: then nobody has taken it yet. */
static uint32_t find_or_add(struct acre_names *names, struct acre_str text, bool is_alone) {
    ACRE_ASSERT(text.length < UINT32_MAX);
    struct key key = key_of(text);
    uint32_t id = find(names, &key);
    if (id == 0) {
        id = add_entry(names, text, key.hash, is_alone);
        acre_index_add(&by_text, &names->index, key.hash, id - 1, names);
    }
    return id;
}

uint32_t acre_names_intern(struct acre_names *names, struct acre_str text) {
    if (text.length == 0) {
        return 0;
    }
    uint32_t id = find_or_add(names, text, false);
    names->entries[id - 1].taken = STAYS;
    return id;
}

uint32_t acre_names_take(struct acre_names *names, struct acre_str text) {
    if (text.length == 0) {
        return 0;
    }
    uint32_t id = find_or_add(names, text, true);
    acre_names_take_again(names, id);
    return id;
}

void acre_names_take_again(struct acre_names *names, uint32_t id) {
    if (id != 0) {
        struct name_entry *entry = entry_of(names, id);
        entry->taken += entry->taken != STAYS; /* 2^32 - 1 takers are more than memory holds */
    }
}

void acre_names_give(struct acre_names *names, uint32_t id) {
    if (id == 0) {
        return;
    }
    struct name_entry *entry = entry_of(names, id);
    ACRE_ASSERT(entry->taken > 0);
    if (entry->taken == STAYS || --entry->taken > 0) {
        return;
    }
    acre_index_remove(&by_text, &names->index, entry->hash, id - 1, names);
    names->alone_bytes -= entry->length + 1;
    names->count--;
    free((char *)entry->text); /* what stays was interned: this one is alone */
    *entry = (struct name_entry){.taken = names->free};
    names->free = id;
}

uint32_t acre_names_find(const struct acre_names *names, struct acre_str text) {
    if (text.length == 0) {
        return 0;
    }
    struct key key = key_of(text);
    return find(names, &key);
}

const char *acre_names_text(const struct acre_names *names, uint32_t id) {
    return id == 0 ? "" : entry_of(names, id)->text;
}

uint32_t acre_names_hash(const struct acre_names *names, uint32_t id) {
    return id == 0 ? 0 : entry_of(names, id)->hash;
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
    return sizeof(*names) + acre_arena_used(names->texts) + names->alone_bytes +
           names->capacity * sizeof(*names->entries) + acre_index_bytes(&names->index);
}
