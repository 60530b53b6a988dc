/* grant.c - allocations in one array of records, found through an index of their ids.
 *
 * Free records are linked through their owner; the index finds them in one or two cache lines.
 * Ends are a binary heap of (end, id) pairs that is not searched on release: a pair whose record
 * was freed or has another end is dropped when it reaches the top, and the heap is rebuilt when
 * more than half of it is such litter. */
#include "ledger/grant.h"

#include "core/heap.h"
#include "core/index.h"

#include <stdlib.h>
#include <string.h>

#define RECORD_NONE UINT32_MAX

struct expiry {
    uint64_t at_ms;
    uint64_t id;
};

struct grants {
    struct grant *records;
    uint32_t limit, capacity; /* records below `limit` have been in use */
    uint32_t first_free;
    uint32_t count;
    struct acre_index index; /* of records by id */
    uint64_t next_id;
    struct expiry *ends;
    uint32_t end_count, end_capacity;
    size_t many_bytes;
};

static struct grant *record_at(const struct grants *grants, uint32_t number) {
    return &grants->records[number];
}

static size_t many_size(uint32_t part_count) {
    return sizeof(struct grant_parts) + part_count * sizeof(struct acre_part);
}

static uint32_t id_hash(uint32_t number, const void *context) {
    return acre_hash_u64(record_at(context, number)->id);
}

static bool id_is(uint32_t number, const void *key, const void *context) {
    return record_at(context, number)->id == *(const uint64_t *)key;
}

static const struct acre_index_kind by_id = {id_hash, id_is};

struct grants *grants_create(void) {
    struct grants *grants = acre_calloc(1, sizeof(*grants));
    grants->first_free = RECORD_NONE;
    grants->next_id = 1;
    return grants;
}

void grants_destroy(struct grants *grants) {
    if (grants == NULL) {
        return;
    }
    uint32_t cursor = 0;
    for (struct grant *grant; (grant = grants_walk(grants, &cursor)) != NULL;) {
        if (grant->part_count > 1) {
            free(grant->parts.many);
        }
    }
    free(grants->records);
    acre_index_finish(&grants->index);
    free(grants->ends);
    free(grants);
}

/* The number of an unused record. */
static uint32_t take_record(struct grants *grants) {
    uint32_t number = grants->first_free;
    if (number != RECORD_NONE) {
        grants->first_free = (uint32_t)grants->records[number].owner;
        return number;
    }
    if (grants->limit == grants->capacity) {
        uint32_t capacity = grants->capacity + ACRE_MAX(grants->capacity / 8, 64U);
        grants->records =
            acre_grow_table(grants->records, grants->capacity, capacity, sizeof(*grants->records));
        grants->capacity = capacity;
    }
    return grants->limit++;
}

struct grant *grants_add(struct grants *grants, uint64_t id, uint32_t part_count) {
    ACRE_ASSERT(part_count > 0 && part_count <= UINT16_MAX);
    ACRE_ASSERT(id == 0 || (id <= GRANT_ID_MAX && grants_find(grants, id) == NULL));
    id = id != 0 ? id : grants->next_id;
    grants->next_id = ACRE_MAX(grants->next_id, id + 1);
    uint32_t number = take_record(grants);
    struct grant *grant = record_at(grants, number);
    memset(grant, 0, sizeof(*grant));
    grant->id = id;
    grant->part_count = (uint16_t)part_count;
    if (part_count > 1) {
        grant->parts.many = acre_calloc(1, many_size(part_count));
        grants->many_bytes += many_size(part_count);
    }
    acre_index_add(&by_id, &grants->index, acre_hash_u64(id), number, grants);
    grants->count++;
    return grant;
}

void grants_remove(struct grants *grants, struct grant *grant) {
    ACRE_ASSERT(grants->count > 0);
    uint32_t number = (uint32_t)(grant - grants->records);
    acre_index_remove(&by_id, &grants->index, acre_hash_u64(grant->id), number, grants);
    if (grant->part_count > 1) {
        grants->many_bytes -= many_size(grant->part_count);
        free(grant->parts.many);
    }
    grant->id = 0;
    grant->owner = grants->first_free;
    grants->first_free = number;
    grants->count--;
}

struct grant *grants_find(const struct grants *grants, uint64_t id) {
    uint32_t number = acre_index_find(&by_id, &grants->index, acre_hash_u64(id), &id, grants);
    return number != ACRE_INDEX_NONE ? record_at(grants, number) : NULL;
}

bool grant_is_exclusive(const struct grant *grant) {
    return grant->part_count > 1 ? grant->parts.many->exclusive : grant->parts.one.exclusive;
}

void grant_set_parts(struct grant *grant, const struct acre_part *parts, bool exclusive) {
    ACRE_ASSERT(parts->milli <= UINT16_MAX); /* as it is kept */
    ACRE_ASSERT(parts->device != ACRE_DEVICE_NONE || parts->milli == 0);
    if (grant->part_count > 1) {
        grant->parts.many->exclusive = exclusive;
        memcpy(grant->parts.many->all, parts, grant->part_count * sizeof(*parts));
        return;
    }
    bool has_device = parts->device != ACRE_DEVICE_NONE;
    grant->place = has_device ? parts->device : parts->node;
    grant->parts.one.mib = parts->mib;
    grant->parts.one.cpu_milli = parts->cpu_milli;
    grant->parts.one.ram_mib = parts->ram_mib;
    grant->parts.one.milli = (uint16_t)parts->milli; /* 0: of CPU and RAM alone */
    grant->parts.one.by_share = parts->by_share;
    grant->parts.one.exclusive = exclusive;
}

const struct acre_part *grant_parts(const struct acre_ledger *ledger, const struct grant *grant,
                                    struct acre_part *one) {
    if (grant->part_count > 1) {
        return grant->parts.many->all;
    }
    bool has_device = grant->parts.one.milli > 0;
    *one = (struct acre_part){
        .node = has_device ? ledger->devices[grant->place].node : grant->place,
        .device = has_device ? grant->place : ACRE_DEVICE_NONE,
        .milli = grant->parts.one.milli,
        .mib = grant->parts.one.mib,
        .cpu_milli = grant->parts.one.cpu_milli,
        .ram_mib = grant->parts.one.ram_mib,
        .by_share = grant->parts.one.by_share,
    };
    return one;
}

struct grant *grants_walk(const struct grants *grants, uint32_t *cursor) {
    while (*cursor < grants->limit) {
        struct grant *grant = record_at(grants, (*cursor)++);
        if (grant->id != 0) {
            return grant;
        }
    }
    return NULL;
}

size_t grants_bytes(const struct grants *grants) {
    return sizeof(*grants) + grants->capacity * sizeof(*grants->records) +
           acre_index_bytes(&grants->index) + grants->end_capacity * sizeof(*grants->ends) +
           grants->many_bytes;
}

static bool end_precedes(const void *a, const void *b, const void *context) {
    (void)context;
    const struct expiry *x = a, *y = b;
    return x->at_ms != y->at_ms ? x->at_ms < y->at_ms : x->id < y->id;
}

static const struct acre_heap_kind by_time = {sizeof(struct expiry), end_precedes, NULL};

static bool end_is_current(const struct grants *grants, const struct expiry *end) {
    const struct grant *grant = grants_find(grants, end->id);
    return grant != NULL && grant->expires_ms == end->at_ms;
}

/* Keep the pairs that still mean something. */
static void ends_tidy(struct grants *grants) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < grants->end_count; i++) {
        struct expiry end = grants->ends[i];
        if (end_is_current(grants, &end)) {
            grants->ends[kept++] = end;
        }
    }
    grants->end_count = kept;
    acre_heap_build(&by_time, grants->ends, kept, NULL);
}

void grants_note_end(struct grants *grants, const struct grant *grant) {
    ACRE_ASSERT(grant->expires_ms != 0);
    if (grants->end_count > 2 * grants->count + 64) {
        ends_tidy(grants);
    }
    if (grants->end_count == grants->end_capacity) {
        grants->end_capacity = ACRE_MAX(2 * grants->end_capacity, 64U);
        grants->ends = acre_realloc(grants->ends, grants->end_capacity, sizeof(*grants->ends));
    }
    struct expiry end = {grant->expires_ms, grant->id};
    acre_heap_push(&by_time, grants->ends, &grants->end_count, &end, NULL);
}

struct grant *grants_take_ended(struct grants *grants, uint64_t now_ms) {
    while (grants->end_count > 0 && grants->ends[0].at_ms <= now_ms) {
        struct expiry end = grants->ends[0];
        acre_heap_remove_first(&by_time, grants->ends, &grants->end_count, NULL);
        if (end_is_current(grants, &end)) {
            return grants_find(grants, end.id);
        }
    }
    return NULL;
}
