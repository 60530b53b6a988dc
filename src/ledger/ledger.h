/* ledger.h - the record of all allocations: who holds which share of which device.
 *
 * Pure state: no I/O, no clock (callers pass now_ms), no threads, no randomness; the same calls
 * in the same order give the same answers. Core thread only. Jobs, silos and reservations all
 * draw on it. It places and accounts; it does not decide who goes first (src/sched) and does not
 * start anything (src/engine).
 *
 * Units are integers: milli-GPU (1000 = one device), MiB, milli-CPU, ms. A request must fit per
 * device: two devices 60 % used never host 0.8. A failed call has changed nothing. */
#ifndef ACRE_LEDGER_LEDGER_H
#define ACRE_LEDGER_LEDGER_H

#include "core/names.h"
#include "ledger/request.h"
#include "ledger/rules.h"

struct acre_ledger;

enum acre_allocation_status {
    ACRE_ALLOCATION_PENDING, /* held, not yet in use */
    ACRE_ALLOCATION_ACTIVE,
    ACRE_ALLOCATION_COMPLETED,
    ACRE_ALLOCATION_FAILED,
    ACRE_ALLOCATION_EXPIRED,
};

struct acre_part {
    uint32_t node;
    uint32_t device; /* index for acre_ledger_device_name; ACRE_DEVICE_NONE: CPU and RAM only */
    uint32_t milli;
    uint32_t mib;       /* what the holder may use of this device's memory */
    uint32_t cpu_milli; /* on the first part of each replica */
    uint32_t ram_mib;
    bool by_share; /* mib follows from milli (no memory was asked for) */
};
#define ACRE_DEVICE_NONE UINT32_MAX

struct acre_allocation {
    uint64_t id;
    uint64_t owner;
    uint32_t tenant;
    enum acre_allocation_status status;
    enum acre_isolation isolation;
    bool exclusive;
    uint64_t created_ms;
    uint64_t expires_ms;           /* 0: never */
    uint64_t reservation;          /* drawn on this reservation's devices; 0: none */
    const struct acre_part *parts; /* valid until the ledger or this struct changes */
    uint32_t part_count;
    struct acre_part one_part; /* what `parts` points to when there is one */
};

#define ACRE_LEDGER_EVENTS(X)                                                                      \
    X(REQUESTED, "requested")                                                                      \
    X(ALLOCATED, "allocated")                                                                      \
    X(FAILED, "failed")                                                                            \
    X(RELEASED, "released")                                                                        \
    X(EXPIRED, "expired")                                                                          \
    X(MODIFIED, "modified")
enum acre_ledger_event_kind {
#define X(name, text) ACRE_LEDGER_##name,
    ACRE_LEDGER_EVENTS(X)
#undef X
};
const char *acre_ledger_event_name(enum acre_ledger_event_kind kind);

struct acre_ledger_event {
    enum acre_ledger_event_kind kind;
    uint64_t now_ms;
    uint64_t owner;
    uint64_t allocation; /* 0 for requested and failed */
    int code;            /* ACRE_E* for failed */
};

struct acre_ledger_options {
    enum acre_strategy strategy;    /* ACRE_STRATEGY_DEFAULT: least fragmentation */
    const struct acre_rules *rules; /* NULL: rules_default; copied */
    void (*event)(void *context, const struct acre_ledger_event *event); /* NULL: none */
    void *event_context;
};

struct acre_ledger *acre_ledger_create(const struct acre_ledger_options *options);
void acre_ledger_destroy(struct acre_ledger *ledger);             /* NULL is fine */
struct acre_names *acre_ledger_names(struct acre_ledger *ledger); /* for models, labels, tenants */

/* Find a place without taking it: fills up to `max` parts, in replica order. ACRE_ENOFIT with
 * the dominant reason and its numbers; ACRE_EINVALID, ACRE_EDENIED as the request deserves;
 * ACRE_ELIMIT when `max` is too small (request_parts() says how many). */
int acre_ledger_plan(struct acre_ledger *ledger, const struct acre_request *request,
                     uint64_t now_ms, struct acre_part *parts, uint32_t max, uint32_t *ret_count,
                     struct acre_error *err);
/* The same on the first of these nodes that takes all its members; not gangs over several nodes,
 * not what draws on a reservation. ACRE_ENOFIT without a reason. */
int acre_ledger_plan_on(struct acre_ledger *ledger, const struct acre_request *request,
                        const uint32_t *nodes, uint32_t count, struct acre_part *parts,
                        uint32_t max, uint32_t *ret_count, struct acre_error *err);
/* Somebody will ask for this: it counts in the recent mix that placements are judged by. What
 * acre_ledger_allocate serves is counted there already. */
void acre_ledger_expect(struct acre_ledger *ledger, const struct acre_request *request);
/* Find a place and take it. */
int acre_ledger_allocate(struct acre_ledger *ledger, const struct acre_request *request,
                         uint64_t now_ms, uint64_t *ret_id, struct acre_error *err);
/* Take exactly these parts under this id (replaying a log, committing a plan). `id` 0: a new
 * one. ACRE_ECONFLICT when any part no longer fits: then none was taken. */
int acre_ledger_place(struct acre_ledger *ledger, const struct acre_request *request,
                      const struct acre_part *parts, uint32_t count, uint64_t id, uint64_t now_ms,
                      uint64_t *ret_id, struct acre_error *err);

int acre_ledger_activate(struct acre_ledger *ledger, uint64_t id, uint64_t now_ms,
                         struct acre_error *err);
/* `outcome`: COMPLETED or FAILED. The shares are free at once. ACRE_ECONFLICT for what a
 * reservation holds: that ends with the reservation. */
int acre_ledger_release(struct acre_ledger *ledger, uint64_t id,
                        enum acre_allocation_status outcome, uint64_t now_ms,
                        struct acre_error *err);
/* New end; ACRE_ECONFLICT when a reservation of a held device begins before it. */
int acre_ledger_extend(struct acre_ledger *ledger, uint64_t id, uint64_t expires_ms,
                       uint64_t now_ms, struct acre_error *err);
/* Release what has expired; start, complete and expire reservations. Returns how many
 * allocations and reservations changed. */
uint32_t acre_ledger_tick(struct acre_ledger *ledger, uint64_t now_ms);

/* False when there is no live allocation of that id. */
bool acre_ledger_find(const struct acre_ledger *ledger, uint64_t id,
                      struct acre_allocation *ret_allocation);
/* The next live allocation from `*cursor` (start at 0) on, in a fixed order; false at the end. */
bool acre_ledger_walk(const struct acre_ledger *ledger, uint32_t *cursor,
                      struct acre_allocation *ret_allocation);

#endif
