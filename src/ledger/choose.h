/* choose.h - which devices of one node a want would take, and how good that would be.
 *
 * Works on a room: a copy of a node's state that is changed as members are placed. Private to
 * src/ledger; pure. */
#ifndef ACRE_LEDGER_CHOOSE_H
#define ACRE_LEDGER_CHOOSE_H

#include "ledger/shape.h"
#include "ledger/want.h"

struct room {
    const struct profile *profile;
    uint32_t profile_index;
    uint32_t cpu_free_milli;
    uint32_t ram_free_mib;
    /* Which device of the node stands at each slot; NULL when only the rank is asked for. */
    const uint8_t *device_at_slot;
    uint64_t words[ACRE_NODE_DEVICES_MAX];
};

/* Higher is better; equal ranks are told apart by shape_compare, then by node index. */
struct rank {
    double score;
    double second;
    uint32_t islands; /* used beyond the first: fewer comes before any score (ALC-7) */
};

void room_from_shape(const struct acre_ledger *ledger, const struct shape *shape,
                     struct room *ret_room);

/* Place `replicas` members of the want into the room. `slots` are those of want_matches;
 * `chosen` (replicas * gpus entries, may be NULL) receives slot numbers member by member. False:
 * they do not all fit; the room is then unspecified. */
bool choose_devices(const struct acre_ledger *ledger, const struct want *want, uint64_t slots,
                    uint32_t replicas, struct room *room, uint8_t *chosen, struct rank *ret_rank);

/* How many members would fit into the room, at most `limit`. */
uint32_t choose_capacity(const struct want *want, uint64_t slots, const struct room *room,
                         uint32_t limit);

#endif
