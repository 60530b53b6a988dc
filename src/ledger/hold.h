/* hold.h - the live allocations, by id.
 *
 * Records may move when one is added; ids only grow. Finished ones are forgotten: history
 * is the store's. Private to src/ledger; core thread only. */
#ifndef ACRE_LEDGER_HOLD_H
#define ACRE_LEDGER_HOLD_H

#include "ledger/state.h"

/* Active, and held by the reservation `owner`: ends with that alone. */
enum { HOLD_RESERVED = ACRE_ALLOCATION_EXPIRED + 1 };

/* One cache line: at 100,000 devices a release is mostly waiting for memory. */
struct hold {
    uint64_t id;    /* 0: this record is free */
    uint64_t owner; /* while free: the next free record */
    uint64_t created_ms;
    uint64_t expires_ms;  /* 0: never */
    uint32_t reservation; /* whose devices these are; 0: none */
    uint32_t tenant;
    uint16_t part_count;
    uint8_t status; /* enum acre_allocation_status, or HOLD_RESERVED */
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
        struct hold_parts *many; /* part_count > 1 */
    } parts;
};
_Static_assert(sizeof(struct hold) == 64, "a hold is one cache line");

struct hold_parts {
    bool exclusive;
    struct acre_part all[];
};

struct holds *holds_create(void);
void holds_destroy(struct holds *holds);

/* Ids that callers give stay below 2^63, so that there is always a next one. */
#define HOLD_ID_MAX ((uint64_t)INT64_MAX)

/* A zeroed record under `id` (0: the next one; else one that is not in use), with room for
 * `part_count` parts. Valid until the next one is added. */
struct hold *holds_add(struct holds *holds, uint64_t id, uint32_t part_count);
void holds_remove(struct holds *holds, struct hold *hold);
struct hold *holds_find(const struct holds *holds, uint64_t id); /* NULL: none */
bool hold_is_exclusive(const struct hold *hold);
void hold_set_parts(struct hold *hold, const struct acre_part *parts, bool exclusive);
/* The parts; those of a hold with one part are written to `one`, which must outlive their use. */
const struct acre_part *hold_parts(const struct acre_ledger *ledger, const struct hold *hold,
                                   struct acre_part *one);

/* The next live record from `*cursor` on, in no particular but fixed order; NULL at the end. */
struct hold *holds_walk(const struct holds *holds, uint32_t *cursor);
size_t holds_bytes(const struct holds *holds);

/* Records that end, soonest first. Note every record that has an end (and again when its end
 * moves); take returns one whose end is at or before `now_ms`, NULL when there is none. */
void holds_note_end(struct holds *holds, const struct hold *hold);
struct hold *holds_take_ended(struct holds *holds, uint64_t now_ms);

#endif
