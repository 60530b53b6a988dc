/* place.h - from a want to parts, and parts into the books. Private to src/ledger. */
#ifndef ACRE_LEDGER_PLACE_H
#define ACRE_LEDGER_PLACE_H

#include "ledger/class.h"
#include "ledger/grant.h"

/* Parts for `replicas` members of the class's want on this node, as the strategy chooses; false:
 * they do not fit. `words` (by slot, may be NULL) replaces the devices' states. */
bool place_on_node(struct acre_ledger *ledger, struct want_class *class, uint32_t node,
                   uint32_t replicas, const uint64_t *words, struct acre_part *parts);

/* The node's room, its devices in the states `words` (by slot) instead of their own; NULL: as they
 * are. `device_at_slot` (ACRE_NODE_DEVICES_MAX) becomes part of the room. */
void room_with_words(const struct acre_ledger *ledger, uint32_t node, const uint64_t *words,
                     struct room *ret_room, uint8_t *device_at_slot);
/* As place_on_node, in a room the caller made of that node; `slots` are those of want_matches. */
bool place_in_room(struct acre_ledger *ledger, const struct want *want, uint64_t slots,
                   uint32_t node, uint32_t replicas, struct room *room, struct acre_part *parts);

/* The part for one member with one device, that of the node in the state of `slot`. */
void place_on_slot(const struct acre_ledger *ledger, const struct want *want, uint32_t node,
                   uint32_t slot, struct acre_part *part);

/* Members over several nodes, as few as can be. */
bool place_gang(struct acre_ledger *ledger, const struct want *want, struct acre_part *parts);

/* Put the parts into the books, all or none, and refile the nodes. ACRE_ECONFLICT: a part does
 * not fit. With `within_reservation` the devices' books are left alone (the reservation's
 * allocation is in them already) and only CPU and RAM are taken. */
int books_take(struct acre_ledger *ledger, const struct acre_part *parts, uint32_t count,
               enum acre_isolation isolation, bool exclusive, bool within_reservation,
               struct acre_error *err);
void books_give(struct acre_ledger *ledger, const struct acre_part *parts, uint32_t count,
                bool within_reservation);

/* Why nothing served this want, for people (explain.c). Fills err with ACRE_ENOFIT. */
int explain_no_fit(struct acre_ledger *ledger, const struct want *want, struct acre_error *err);

/* Tell whoever listens. */
void ledger_tell(struct acre_ledger *ledger, enum acre_ledger_event_kind kind, uint64_t now_ms,
                 uint64_t owner, uint64_t allocation, int code);

/* Release one grant with this outcome and tell. */
void grant_end(struct acre_ledger *ledger, struct grant *grant, enum acre_allocation_status outcome,
               uint64_t now_ms);

#endif
