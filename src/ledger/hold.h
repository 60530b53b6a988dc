/* hold.h - the live allocations, by id.
 *
 * Records stay where they are while live; ids only grow. Finished ones are forgotten: history
 * is the store's. Private to src/ledger; core thread only. */
#ifndef ACRE_LEDGER_HOLD_H
#define ACRE_LEDGER_HOLD_H

#include "ledger/state.h"

struct hold {
    uint64_t id; /* 0: this record is free */
    uint64_t owner;
    uint64_t created_ms;
    uint64_t expires_ms;  /* 0: never */
    uint64_t reservation; /* whose devices these are; 0: none */
    uint32_t tenant;
    uint8_t status;
    uint8_t isolation;
    bool exclusive;
    uint32_t part_count;
    uint32_t next_free; /* while live: its own number */
    union {
        struct acre_part one;
        struct acre_part *many; /* part_count > 1 */
    } parts;
};

struct holds *holds_create(void);
void holds_destroy(struct holds *holds);

/* A zeroed record under `id` (0: the next one), with room for `part_count` parts. NULL when the
 * id is in use. */
struct hold *holds_add(struct holds *holds, uint64_t id, uint32_t part_count);
void holds_remove(struct holds *holds, struct hold *hold);
struct hold *holds_find(const struct holds *holds, uint64_t id); /* NULL: none */
struct acre_part *hold_parts(struct hold *hold);

/* The next live record from `*cursor` on, in no particular but fixed order; NULL at the end. */
struct hold *holds_walk(const struct holds *holds, uint32_t *cursor);
uint32_t holds_count(const struct holds *holds);
size_t holds_bytes(const struct holds *holds);

/* Records that end, soonest first. Note every record that has an end (and again when its end
 * moves); take returns one whose end is at or before `now_ms`, NULL when there is none. */
void holds_note_end(struct holds *holds, const struct hold *hold);
struct hold *holds_take_ended(struct holds *holds, uint64_t now_ms);

#endif
