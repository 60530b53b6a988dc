/* specs.c - a ring of texts, and a table from a job's id to its place in the ring.
 *
 * Ids grow, so the table is the id modulo its size: two ids share a place only when they are a
 * whole ring apart, and then the older one has left the ring. An array has the spec of its first
 * member alone, so ids may also jump by more than a ring. */
#include "desk/specs.h"

#include <stdlib.h>
#include <string.h>

struct spec_entry {
    uint64_t job; /* 0: none */
    char *text;
    size_t length;
};

struct specs {
    struct spec_entry *entries; /* by job % count */
    uint32_t count;
    size_t bytes, max_bytes;
    uint64_t oldest; /* no entry below it */
};

struct specs *specs_create(uint32_t max_count, size_t max_bytes) {
    ACRE_ASSERT(max_count > 0);
    struct specs *specs = acre_calloc(1, sizeof(*specs));
    specs->entries = acre_calloc(max_count, sizeof(*specs->entries));
    specs->count = max_count;
    specs->max_bytes = max_bytes;
    return specs;
}

static void clear(struct specs *specs, struct spec_entry *entry) {
    specs->bytes -= entry->length;
    free(entry->text);
    *entry = (struct spec_entry){0};
}

void specs_destroy(struct specs *specs) {
    if (specs == NULL) {
        return;
    }
    for (uint32_t i = 0; i < specs->count; i++) {
        clear(specs, &specs->entries[i]);
    }
    free(specs->entries);
    free(specs);
}

static struct spec_entry *at(const struct specs *specs, uint64_t job) {
    return &specs->entries[job % specs->count];
}

/* Nothing below this id stays. */
static void forget_below(struct specs *specs, uint64_t job) {
    uint64_t steps = job > specs->oldest ? ACRE_MIN(job - specs->oldest, specs->count) : 0;
    for (uint64_t i = 0; i < steps; i++) { /* a whole round of ids is every place once */
        struct spec_entry *entry = at(specs, specs->oldest + i);
        if (entry->job < job) {
            clear(specs, entry);
        }
    }
    specs->oldest = ACRE_MAX(specs->oldest, job);
}

void specs_put(struct specs *specs, uint64_t job, struct acre_str text) {
    ACRE_ASSERT(job != 0);
    clear(specs, at(specs, job));
    forget_below(specs, job >= specs->count ? job - specs->count + 1 : 0);
    while (specs->oldest < job && specs->bytes + text.length > specs->max_bytes) {
        specs_remove(specs, specs->oldest++);
    }
    if (specs->bytes + text.length > specs->max_bytes) {
        return; /* larger than everything: it is in the store */
    }
    struct spec_entry *entry = at(specs, job);
    entry->text = acre_calloc(text.length + 1, 1);
    memcpy(entry->text, text.data, text.length);
    entry->job = job;
    entry->length = text.length;
    specs->bytes += text.length;
}

bool specs_find(const struct specs *specs, uint64_t job, struct acre_str *ret_text) {
    const struct spec_entry *entry = at(specs, job);
    if (entry->job != job || job == 0) {
        return false;
    }
    *ret_text = (struct acre_str){entry->text, entry->length};
    return true;
}

void specs_remove(struct specs *specs, uint64_t job) {
    if (at(specs, job)->job == job) {
        clear(specs, at(specs, job));
    }
}
