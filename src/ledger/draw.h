/* draw.h - what is drawn on an active reservation by the requests that name it.
 *
 * Private to src/ledger (reserve.c owns the reservations); core thread only. */
#ifndef ACRE_LEDGER_DRAW_H
#define ACRE_LEDGER_DRAW_H

#include "ledger/reserve.h"

/* Of one device. */
struct drawn {
    uint32_t milli;
    uint32_t milli_by_share; /* of these, by the parts that asked for no memory */
    uint64_t asked_mib;      /* by the parts that asked for memory */
    uint32_t count;
    uint32_t isolation; /* as in the word */
};

struct reservation {
    struct acre_reservation shown; /* .devices is ours */
    struct drawn *drawn;           /* by device, while active */
};

/* The reservation when it is active. ACRE_ENOTFOUND, ACRE_ECONFLICT (not active). */
int reservation_active(const struct acre_ledger *ledger, uint64_t id,
                       struct reservation **ret_reservation, struct acre_error *err);

/* An allocation that names the reservation was taken, or is about to be given back. */
void drawn_note(const struct acre_ledger *ledger, struct reservation *reservation,
                const struct grant *grant, bool taken);

#endif
