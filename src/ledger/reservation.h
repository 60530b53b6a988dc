/* reservation.h - devices kept for a user for a period of time (ALC-8).
 *
 * A reservation is pending until its start, active until its end, then completed; it may be
 * canceled before that, and is expired when its whole window passed without a call of
 * acre_ledger_tick. While it is pending its devices still take work that ends before it starts.
 * When it becomes active it holds an allocation, and requests that name it are served from that.
 * Core thread only. */
#ifndef ACRE_LEDGER_RESERVATION_H
#define ACRE_LEDGER_RESERVATION_H

#include "ledger/ledger.h"

#define ACRE_RESERVATION_STATES(X)                                                                 \
    X(PENDING, "pending")                                                                          \
    X(ACTIVE, "active")                                                                            \
    X(COMPLETED, "completed")                                                                      \
    X(CANCELLED, "cancelled")                                                                      \
    X(EXPIRED, "expired")
enum acre_reservation_state {
#define X(name, text) ACRE_RESERVATION_##name,
    ACRE_RESERVATION_STATES(X)
#undef X
};
const char *acre_reservation_state_name(enum acre_reservation_state state);

struct acre_reservation_limits {
    uint32_t per_user;   /* pending and active */
    uint32_t per_device; /* pending and active */
    uint64_t max_duration_ms;
    uint64_t max_ahead_ms; /* how far in the future it may start */
};
extern const struct acre_reservation_limits acre_reservation_limits_default; /* 5, 10, 7 d, 30 d */

struct acre_reservation_spec {
    uint32_t user; /* a name */
    const uint32_t *devices;
    uint32_t device_count;
    uint32_t milli; /* of each device; 1000: alone */
    enum acre_isolation isolation;
    uint64_t start_ms; /* now or later */
    uint64_t end_ms;
};

struct acre_reservation {
    uint64_t id;
    uint32_t user;
    enum acre_reservation_state state;
    uint32_t milli;
    enum acre_isolation isolation;
    uint64_t start_ms;
    uint64_t end_ms;
    uint64_t allocation; /* while active; else 0 */
    const uint32_t *devices;
    uint32_t device_count;
};

/* Limits for what is reserved from now on; NULL: the default. */
void acre_ledger_set_reservation_limits(struct acre_ledger *ledger,
                                        const struct acre_reservation_limits *limits);

/* ACRE_EINVALID: a bad field; ACRE_ELIMIT: too many for this user or device; ACRE_ECONFLICT: the
 * device is held or reserved in that window and the shares do not fit together. */
int acre_ledger_reserve(struct acre_ledger *ledger, const struct acre_reservation_spec *spec,
                        uint64_t now_ms, uint64_t *ret_id, struct acre_error *err);
/* The same question without reserving. */
int acre_ledger_may_reserve(struct acre_ledger *ledger, const struct acre_reservation_spec *spec,
                            uint64_t now_ms, struct acre_error *err);
/* Put back a reservation as it was recorded (its allocation is not looked at): one that was active
 * takes its devices again, limits and windows are not asked. ACRE_EEXISTS: that id is
 * there; ACRE_ECONFLICT: its devices are not free; as reserve for bad fields. */
int acre_ledger_restore_reservation(struct acre_ledger *ledger,
                                    const struct acre_reservation *recorded, uint64_t now_ms,
                                    struct acre_error *err);
/* ACRE_ENOTFOUND; ACRE_ECONFLICT when it is over already. */
int acre_ledger_cancel_reservation(struct acre_ledger *ledger, uint64_t id, uint64_t now_ms,
                                   struct acre_error *err);
bool acre_ledger_find_reservation(const struct acre_ledger *ledger, uint64_t id,
                                  struct acre_reservation *ret_reservation);
/* The next one (of any state) after `id`, by id; start with 0. */
bool acre_ledger_next_reservation(const struct acre_ledger *ledger, uint64_t id,
                                  struct acre_reservation *ret_reservation);

#endif
