/* grant.h - the live allocations (grants), by id.
 *
 * Records may move when one is added; ids only grow. Finished ones are forgotten: history
 * is the store's. Private to src/ledger; core thread only. */
#ifndef ACRE_LEDGER_GRANT_H
#define ACRE_LEDGER_GRANT_H

#include "ledger/state.h"

/* Active, and held by the reservation `owner`: ends with that alone. */
enum { GRANT_RESERVED = ACRE_ALLOCATION_EXPIRED + 1 };

/* One cache line: at 100,000 devices a release is mostly waiting for memory. */
struct grant {
    uint64_t id;    /* 0: this record is free */
    uint64_t owner; /* while free: the next free record */
    uint64_t created_ms;
    uint64_t expires_ms;  /* 0: never */
    uint32_t reservation; /* whose devices these are; 0: none */
    uint32_t tenant;
    uint16_t part_count;
    uint8_t status; /* enum acre_allocation_status, or GRANT_RESERVED */
    uint8_t isolation;
    uint32_t place; /* of the only part: its device, or its node when it is of CPU and RAM alone */
    union {
        struct {
            uint32_t mib;
            uint32_t cpu_milli;
            uint32_t ram_mib;
            uint16_t milli;
            bool by_share;
            bool exclusive;
        } one;
        struct grant_parts *many; /* part_count > 1 */
    } parts;
};
_Static_assert(sizeof(struct grant) == 64, "a grant is one cache line");

struct grant_parts {
    bool exclusive;
    struct acre_part all[];
};

struct grants *grants_create(void);
void grants_destroy(struct grants *grants);

/* Ids that callers give stay below 2^63, so that there is always a next one. */
#define GRANT_ID_MAX ((uint64_t)INT64_MAX)

/* A zeroed record under `id` (0: the next one; else one that is not in use), with room for
 * `part_count` parts. Valid until the next one is added. */
struct grant *grants_add(struct grants *grants, uint64_t id, uint32_t part_count);
void grants_remove(struct grants *grants, struct grant *grant);
struct grant *grants_find(const struct grants *grants, uint64_t id); /* NULL: none */
bool grant_is_exclusive(const struct grant *grant);
void grant_set_parts(struct grant *grant, const struct acre_part *parts, bool exclusive);
/* The parts; those of a grant with one part are written to `one`, which must outlive their use. */
const struct acre_part *grant_parts(const struct acre_ledger *ledger, const struct grant *grant,
                                    struct acre_part *one);

/* The next live record from `*cursor` on, in no particular but fixed order; NULL at the end. */
struct grant *grants_walk(const struct grants *grants, uint32_t *cursor);
size_t grants_bytes(const struct grants *grants);

/* Records that end, soonest first. Note every record that has an end (and again when its end
 * moves); take returns one whose end is at or before `now_ms`, NULL when there is none. */
void grants_note_end(struct grants *grants, const struct grant *grant);
struct grant *grants_take_ended(struct grants *grants, uint64_t now_ms);

#endif
