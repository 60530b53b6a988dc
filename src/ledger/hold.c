/* hold.c - allocations in one array of records, found through an index of their ids.
 *
 * Free records are linked through their owner; the index finds them in one or two cache lines.
 * Ends are a binary heap of (end, id) pairs that is not searched on release: a pair whose record is
 * gone or has another end is dropped when it reaches the top, and the heap is rebuilt when more
 * than half of it is such litter. */
#include "ledger/hold.h"

#include "core/heap.h"
#include "core/index.h"

#include <stdlib.h>
#include <string.h>

#define RECORD_NONE UINT32_MAX

struct end {
    uint64_t at_ms;
    uint64_t id;
};

struct holds {
    struct hold *records;
    uint32_t limit, capacity; /* records below `limit` have been in use */
    uint32_t first_free;
    uint32_t count;
    struct acre_index index; /* of records by id */
    uint64_t next_id;
    struct end *ends;
    uint32_t end_count, end_capacity;
    size_t many_bytes;
};

static struct hold *record_at(const struct holds *holds, uint32_t number) {
    return &holds->records[number];
}

static size_t many_size(uint32_t part_count) {
    return sizeof(struct hold_parts) + part_count * sizeof(struct acre_part);
}

static uint32_t id_hash(uint32_t number, const void *context) {
    return acre_hash_u64(record_at(context, number)->id);
}

static bool id_is(uint32_t number, const void *key, const void *context) {
    return record_at(context, number)->id == *(const uint64_t *)key;
}

static const struct acre_index_kind by_id = {id_hash, id_is};

struct holds *holds_create(void) {
    struct holds *holds = acre_calloc(1, sizeof(*holds));
    holds->first_free = RECORD_NONE;
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
    free(holds->records);
    acre_index_finish(&holds->index);
    free(holds->ends);
    free(holds);
}

/* The number of an unused record. */
static uint32_t take_record(struct holds *holds) {
    uint32_t number = holds->first_free;
    if (number != RECORD_NONE) {
        holds->first_free = (uint32_t)holds->records[number].owner;
        return number;
    }
    if (holds->limit == holds->capacity) {
        uint32_t capacity = holds->capacity + ACRE_MAX(holds->capacity / 8, 64U);
        holds->records =
            acre_grow_table(holds->records, holds->capacity, capacity, sizeof(*holds->records));
        holds->capacity = capacity;
    }
    return holds->limit++;
}

struct hold *holds_add(struct holds *holds, uint64_t id, uint32_t part_count) {
    ACRE_ASSERT(part_count > 0 && part_count <= UINT16_MAX);
    ACRE_ASSERT(id == 0 || (id <= HOLD_ID_MAX && holds_find(holds, id) == NULL));
    id = id != 0 ? id : holds->next_id;
    holds->next_id = ACRE_MAX(holds->next_id, id + 1);
    uint32_t number = take_record(holds);
    struct hold *hold = record_at(holds, number);
    memset(hold, 0, sizeof(*hold));
    hold->id = id;
    hold->part_count = (uint16_t)part_count;
    if (part_count > 1) {
        hold->parts.many = acre_calloc(1, many_size(part_count));
        holds->many_bytes += many_size(part_count);
    }
    acre_index_add(&by_id, &holds->index, acre_hash_u64(id), number, holds);
    holds->count++;
    return hold;
}

void holds_remove(struct holds *holds, struct hold *hold) {
    ACRE_ASSERT(holds->count > 0);
    uint32_t number = (uint32_t)(hold - holds->records);
    acre_index_remove(&by_id, &holds->index, acre_hash_u64(hold->id), number, holds);
    if (hold->part_count > 1) {
        holds->many_bytes -= many_size(hold->part_count);
        free(hold->parts.many);
    }
    hold->id = 0;
    hold->owner = holds->first_free;
    holds->first_free = number;
    holds->count--;
}

struct hold *holds_find(const struct holds *holds, uint64_t id) {
    uint32_t number = acre_index_find(&by_id, &holds->index, acre_hash_u64(id), &id, holds);
    return number != ACRE_INDEX_NONE ? record_at(holds, number) : NULL;
}

bool hold_is_exclusive(const struct hold *hold) {
    return hold->part_count > 1 ? hold->parts.many->exclusive : hold->parts.one.exclusive;
}

void hold_set_parts(struct hold *hold, const struct acre_part *parts, bool exclusive) {
    ACRE_ASSERT(parts->milli <= UINT16_MAX); /* as it is kept */
    ACRE_ASSERT(parts->device != ACRE_DEVICE_NONE || parts->milli == 0);
    if (hold->part_count > 1) {
        hold->parts.many->exclusive = exclusive;
        memcpy(hold->parts.many->all, parts, hold->part_count * sizeof(*parts));
        return;
    }
    bool has_device = parts->device != ACRE_DEVICE_NONE;
    hold->place = has_device ? parts->device : parts->node;
    hold->parts.one.mib = parts->mib;
    hold->parts.one.cpu_milli = parts->cpu_milli;
    hold->parts.one.ram_mib = parts->ram_mib;
    hold->parts.one.milli = (uint16_t)parts->milli; /* 0: of CPU and RAM alone */
    hold->parts.one.by_share = parts->by_share;
    hold->parts.one.exclusive = exclusive;
}

const struct acre_part *hold_parts(const struct acre_ledger *ledger, const struct hold *hold,
                                   struct acre_part *one) {
    if (hold->part_count > 1) {
        return hold->parts.many->all;
    }
    bool has_device = hold->parts.one.milli > 0;
    *one = (struct acre_part){
        .node = has_device ? ledger->devices[hold->place].node : hold->place,
        .device = has_device ? hold->place : ACRE_DEVICE_NONE,
        .milli = hold->parts.one.milli,
        .mib = hold->parts.one.mib,
        .cpu_milli = hold->parts.one.cpu_milli,
        .ram_mib = hold->parts.one.ram_mib,
        .by_share = hold->parts.one.by_share,
    };
    return one;
}

struct hold *holds_walk(const struct holds *holds, uint32_t *cursor) {
    while (*cursor < holds->limit) {
        struct hold *hold = record_at(holds, (*cursor)++);
        if (hold->id != 0) {
            return hold;
        }
    }
    return NULL;
}

size_t holds_bytes(const struct holds *holds) {
    return sizeof(*holds) + holds->capacity * sizeof(*holds->records) +
           acre_index_bytes(&holds->index) + holds->end_capacity * sizeof(*holds->ends) +
           holds->many_bytes;
}

static bool end_precedes(const void *a, const void *b, const void *context) {
    (void)context;
    const struct end *x = a, *y = b;
    return x->at_ms != y->at_ms ? x->at_ms < y->at_ms : x->id < y->id;
}

static const struct acre_heap_kind by_time = {sizeof(struct end), end_precedes, NULL};

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
            holds->ends[kept++] = end;
        }
    }
    holds->end_count = kept;
    acre_heap_build(&by_time, holds->ends, kept, NULL);
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
    struct end end = {hold->expires_ms, hold->id};
    acre_heap_push(&by_time, holds->ends, &holds->end_count, &end, NULL);
}

struct hold *holds_take_ended(struct holds *holds, uint64_t now_ms) {
    while (holds->end_count > 0 && holds->ends[0].at_ms <= now_ms) {
        struct end end = holds->ends[0];
        acre_heap_remove_first(&by_time, holds->ends, &holds->end_count, NULL);
        if (end_is_current(holds, &end)) {
            return holds_find(holds, end.id);
        }
    }
    return NULL;
}
