/* hold.c - allocations in pages of records, found through an open-addressing table.
 *
 * Records live in pages so that they never move; a table of record numbers, hashed by id with
 * linear probing and backward-shift deletion, finds them in one or two cache lines. Ends are a
 * binary heap of (end, id) pairs that is not searched on release: a pair whose record is gone or
 * has another end is dropped when it reaches the top, and the heap is rebuilt when more than
 * half of it is such litter. */
#include "ledger/hold.h"

#include <stdlib.h>
#include <string.h>

enum { PAGE_BITS = 10, PAGE_SIZE = 1 << PAGE_BITS };
#define RECORD_NONE UINT32_MAX

struct end {
    uint64_t at_ms;
    uint64_t id;
};

struct holds {
    struct hold **pages;
    uint32_t page_count, page_capacity;
    uint32_t first_free;
    uint32_t count;
    uint32_t *table; /* record number + 1; 0 empty */
    uint32_t table_mask;
    uint64_t next_id;
    struct end *ends;
    uint32_t end_count, end_capacity;
    size_t many_bytes;
};

static struct hold *record_at(const struct holds *holds, uint32_t number) {
    return &holds->pages[number >> PAGE_BITS][number & (PAGE_SIZE - 1)];
}

static uint32_t home_of(const struct holds *holds, uint64_t id) {
    return (uint32_t)(id * UINT64_C(0x9E3779B97F4A7C15) >> 32) & holds->table_mask;
}

struct holds *holds_create(void) {
    struct holds *holds = acre_calloc(1, sizeof(*holds));
    holds->first_free = RECORD_NONE;
    holds->table_mask = 255;
    holds->table = acre_calloc(holds->table_mask + 1, sizeof(*holds->table));
    holds->next_id = 1;
    return holds;
}

void holds_destroy(struct holds *holds) {
    if (holds == NULL) {
        return;
    }
    uint32_t cursor = 0;
    for (struct hold *hold; (hold = holds_walk(holds, &cursor)) != NULL;) {
        if (hold->part_count > 1) {
            free(hold->parts.many);
        }
    }
    for (uint32_t i = 0; i < holds->page_count; i++) {
        free(holds->pages[i]);
    }
    free(holds->pages);
    free(holds->table);
    free(holds->ends);
    free(holds);
}

static void add_page(struct holds *holds) {
    if (holds->page_count == holds->page_capacity) {
        holds->page_capacity = ACRE_MAX(2 * holds->page_capacity, 16U);
        holds->pages = acre_realloc(holds->pages, holds->page_capacity, sizeof(*holds->pages));
    }
    uint32_t page = holds->page_count++;
    holds->pages[page] = acre_calloc(PAGE_SIZE, sizeof(struct hold));
    for (uint32_t i = PAGE_SIZE; i-- > 0;) {
        holds->pages[page][i].next_free = holds->first_free;
        holds->first_free = page << PAGE_BITS | i;
    }
}

static void table_put(struct holds *holds, uint64_t id, uint32_t number) {
    uint32_t at = home_of(holds, id);
    while (holds->table[at] != 0) {
        at = (at + 1) & holds->table_mask;
    }
    holds->table[at] = number + 1;
}

static void table_grow(struct holds *holds) {
    uint32_t *old = holds->table;
    uint32_t old_size = holds->table_mask + 1;
    holds->table_mask = 2 * old_size - 1;
    holds->table = acre_calloc(holds->table_mask + 1, sizeof(*holds->table));
    for (uint32_t i = 0; i < old_size; i++) {
        if (old[i] != 0) {
            table_put(holds, record_at(holds, old[i] - 1)->id, old[i] - 1);
        }
    }
    free(old);
}

/* The table's index of `id`, or RECORD_NONE. */
static uint32_t table_find(const struct holds *holds, uint64_t id) {
    uint32_t at = home_of(holds, id);
    while (holds->table[at] != 0) {
        if (record_at(holds, holds->table[at] - 1)->id == id) {
            return at;
        }
        at = (at + 1) & holds->table_mask;
    }
    return RECORD_NONE;
}

static void table_erase(struct holds *holds, uint32_t hole) {
    uint32_t at = hole;
    for (;;) {
        at = (at + 1) & holds->table_mask;
        if (holds->table[at] == 0) {
            break;
        }
        uint32_t home = home_of(holds, record_at(holds, holds->table[at] - 1)->id);
        if (((at - home) & holds->table_mask) >= ((at - hole) & holds->table_mask)) {
            holds->table[hole] = holds->table[at];
            hole = at;
        }
    }
    holds->table[hole] = 0;
}

struct hold *holds_add(struct holds *holds, uint64_t id, uint32_t part_count) {
    ACRE_ASSERT(part_count > 0);
    if (id == 0) {
        id = holds->next_id;
    } else if (table_find(holds, id) != RECORD_NONE) {
        return NULL;
    }
    holds->next_id = ACRE_MAX(holds->next_id, id + 1);
    if (holds->first_free == RECORD_NONE) {
        add_page(holds);
    }
    if (4 * (uint64_t)(holds->count + 1) > 3 * (uint64_t)holds->table_mask) {
        table_grow(holds);
    }
    uint32_t number = holds->first_free;
    struct hold *hold = record_at(holds, number);
    holds->first_free = hold->next_free;
    memset(hold, 0, sizeof(*hold));
    hold->id = id;
    hold->next_free = number;
    hold->part_count = part_count;
    if (part_count > 1) {
        hold->parts.many = acre_calloc(part_count, sizeof(*hold->parts.many));
        holds->many_bytes += part_count * sizeof(*hold->parts.many);
    }
    table_put(holds, id, number);
    holds->count++;
    return hold;
}

void holds_remove(struct holds *holds, struct hold *hold) {
    uint32_t at = table_find(holds, hold->id);
    ACRE_ASSERT(at != RECORD_NONE);
    table_erase(holds, at);
    if (hold->part_count > 1) {
        holds->many_bytes -= hold->part_count * sizeof(*hold->parts.many);
        free(hold->parts.many);
    }
    uint32_t number = hold->next_free;
    hold->id = 0;
    hold->part_count = 0;
    hold->next_free = holds->first_free;
    holds->first_free = number;
    holds->count--;
}

struct hold *holds_find(const struct holds *holds, uint64_t id) {
    uint32_t at = id != 0 ? table_find(holds, id) : RECORD_NONE;
    return at != RECORD_NONE ? record_at(holds, holds->table[at] - 1) : NULL;
}

struct acre_part *hold_parts(struct hold *hold) {
    return hold->part_count > 1 ? hold->parts.many : &hold->parts.one;
}

struct hold *holds_walk(const struct holds *holds, uint32_t *cursor) {
    while (*cursor < holds->page_count << PAGE_BITS) {
        struct hold *hold = record_at(holds, (*cursor)++);
        if (hold->id != 0) {
            return hold;
        }
    }
    return NULL;
}

uint32_t holds_count(const struct holds *holds) {
    return holds->count;
}

size_t holds_bytes(const struct holds *holds) {
    return sizeof(*holds) + holds->page_capacity * sizeof(*holds->pages) +
           (size_t)holds->page_count * PAGE_SIZE * sizeof(struct hold) +
           (holds->table_mask + 1) * sizeof(*holds->table) +
           holds->end_capacity * sizeof(*holds->ends) + holds->many_bytes;
}

static bool end_before(const struct end *a, const struct end *b) {
    return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->id < b->id;
}

static void ends_up(struct holds *holds, uint32_t at, struct end end) {
    while (at > 0 && end_before(&end, &holds->ends[(at - 1) / 2])) {
        holds->ends[at] = holds->ends[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    holds->ends[at] = end;
}

static void ends_drop_first(struct holds *holds) {
    struct end end = holds->ends[--holds->end_count];
    uint32_t at = 0;
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= holds->end_count) {
            break;
        }
        if (child + 1 < holds->end_count &&
            end_before(&holds->ends[child + 1], &holds->ends[child])) {
            child++;
        }
        if (end_before(&end, &holds->ends[child])) {
            break;
        }
        holds->ends[at] = holds->ends[child];
        at = child;
    }
    holds->ends[at] = end;
}

static bool end_is_current(const struct holds *holds, const struct end *end) {
    const struct hold *hold = holds_find(holds, end->id);
    return hold != NULL && hold->expires_ms == end->at_ms;
}

/* Keep the pairs that still mean something. */
static void ends_tidy(struct holds *holds) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < holds->end_count; i++) {
        struct end end = holds->ends[i];
        if (end_is_current(holds, &end)) {
            ends_up(holds, kept++, end);
        }
    }
    holds->end_count = kept;
}

void holds_note_end(struct holds *holds, const struct hold *hold) {
    ACRE_ASSERT(hold->expires_ms != 0);
    if (holds->end_count > 2 * holds->count + 64) {
        ends_tidy(holds);
    }
    if (holds->end_count == holds->end_capacity) {
        holds->end_capacity = ACRE_MAX(2 * holds->end_capacity, 64U);
        holds->ends = acre_realloc(holds->ends, holds->end_capacity, sizeof(*holds->ends));
    }
    ends_up(holds, holds->end_count++, (struct end){hold->expires_ms, hold->id});
}

struct hold *holds_take_ended(struct holds *holds, uint64_t now_ms) {
    while (holds->end_count > 0 && holds->ends[0].at_ms <= now_ms) {
        struct end end = holds->ends[0];
        ends_drop_first(holds);
        if (end_is_current(holds, &end)) {
            return holds_find(holds, end.id);
        }
    }
    return NULL;
}
