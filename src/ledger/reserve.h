/* reserve.h - reservations as the rest of the ledger sees them. Private to src/ledger. */
#ifndef ACRE_LEDGER_RESERVE_H
#define ACRE_LEDGER_RESERVE_H

#include "ledger/class.h"
#include "ledger/grant.h"
#include "ledger/reservation.h"

struct reservations *reservations_create(void);
void reservations_destroy(struct reservations *reservations);
size_t reservations_bytes(const struct reservations *reservations);

/* Is any device reserved for later? */
bool reservations_ahead(const struct acre_ledger *ledger);

/* `word` (by the books) of a device that has reservations ahead, lowered to what is free at every
 * time before `until_ms`. */
uint64_t reserved_word(const struct acre_ledger *ledger, uint32_t device, uint64_t word,
                       uint64_t until_ms);

/* An allocation was taken (or is about to be given back): keep the calendars of its devices. */
void reserved_note(struct acre_ledger *ledger, struct grant *grant, bool taken);

/* A place for a want that ends at `expires_ms`, on devices whose reservations all begin later. */
bool reserved_place(struct acre_ledger *ledger, const struct want *want, uint64_t expires_ms,
                    struct acre_part *parts);

/* A place on the devices of an active reservation. ACRE_ENOTFOUND, ACRE_ECONFLICT (not active),
 * ACRE_ENOFIT. */
int reserved_place_within(struct acre_ledger *ledger, const struct want *want, uint64_t id,
                          struct acre_part *parts, struct acre_error *err);

/* May these parts be drawn on the reservation? As reserved_place_within, and ACRE_ENOTFOUND for a
 * device that is not in it, ACRE_ECONFLICT when a part does not fit beside what is drawn. */
int reserved_may_draw(struct acre_ledger *ledger, uint64_t id, const struct acre_part *parts,
                      uint32_t count, enum acre_isolation isolation, bool exclusive,
                      struct acre_error *err);

/* May this allocation last until `expires_ms` (0: for ever)? ACRE_ECONFLICT names the
 * reservation that begins before. */
int reserved_may_last(struct acre_ledger *ledger, struct grant *grant, uint64_t expires_ms,
                      struct acre_error *err);

/* Complete, expire and start reservations; returns how many of them and of the allocations drawn
 * on them changed. Called after allocations that ended have been released. */
uint32_t reservations_tick(struct acre_ledger *ledger, uint64_t now_ms);

#endif
