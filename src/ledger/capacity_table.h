/* capacity_table.h - the insides of capacity.h, shared by capacity*.c only. */
#ifndef ACRE_LEDGER_CAPACITY_TABLE_H
#define ACRE_LEDGER_CAPACITY_TABLE_H

#include "ledger/capacity_index.h"

#define ACRE_CAPACITY_NONE UINT32_MAX

enum capacity_state {
    ACRE_CAPACITY_ABSENT,
    ACRE_CAPACITY_FRESH,
    ACRE_CAPACITY_STALE,
};

/* One per node id: 56 bytes, and with 16 of the index and 4 of the heap 76 a node. */
struct capacity_entry {
    uint64_t time_ms;
    uint64_t due_ms; /* when to look at its age again: never later than it matters */
    uint32_t total_mib;
    uint32_t available_mib; /* as reported, like `largest_mib` and `queue_depth` */
    uint32_t largest_mib;
    uint32_t queue_depth;
    uint32_t backend;
    uint32_t reserved_mib;
    uint32_t first_reservation;
    uint32_t heap_at;
    uint16_t device_count;
    uint16_t reserved_count;
    uint8_t state; /* enum capacity_state */
};

_Static_assert(sizeof(struct capacity_entry) == 56, "memory per node is a promise");
_Static_assert(ACRE_CAPACITY_DEVICES_MAX <= UINT16_MAX, "device_count is 16 bits");

struct capacity_reservation {
    uint64_t at_ms; /* of reserving, then of the commit */
    uint32_t node;
    uint32_t mib;
    uint32_t generation;     /* odd while in use */
    uint32_t next, previous; /* of the same node */
    uint32_t later, earlier; /* of those not committed, in order of time */
    bool committed;
};

struct acre_capacity {
    uint64_t now_ms;
    uint64_t lapse_ms;
    struct capacity_entry *entries;
    uint32_t entry_capacity;
    uint32_t count;
    uint32_t stale_count;
    uint32_t *heap; /* of nodes by due_ms, earliest first */
    uint32_t heap_capacity;
    struct capacity_index gpu_index;
    struct capacity_index cpu_index;
    struct capacity_reservation *reservations;
    uint32_t reservation_count; /* free ones too */
    uint32_t reservation_capacity;
    uint32_t free_reservation;
    uint32_t oldest_pending, newest_pending;
};

/* capacity.c */
struct acre_capacity_report capacity_effective(const struct capacity_entry *entry);
/* NULL unless the node is registered. */
struct capacity_entry *capacity_entry(const struct acre_capacity *capacity, uint32_t node);

/* Where an entry is indexed as it is now: ask before changing it, put it in its new place after. */
struct capacity_position {
    struct capacity_index *index; /* NULL: none */
    uint64_t key;
};
struct capacity_position capacity_position(struct acre_capacity *capacity, uint32_t node);
void capacity_reindex(struct acre_capacity *capacity, uint32_t node,
                      struct capacity_position before);
void capacity_remove(struct acre_capacity *capacity, uint32_t node);

/* capacity_age.c */
uint32_t capacity_advance(struct acre_capacity *capacity, uint64_t now_ms);
void capacity_heap_add(struct acre_capacity *capacity, uint32_t node, uint64_t due_ms);
void capacity_heap_move(struct acre_capacity *capacity, uint32_t node, uint64_t due_ms);
void capacity_heap_remove(struct acre_capacity *capacity, uint32_t node);

/* capacity_reserve.c */
void capacity_lapse(struct acre_capacity *capacity);
/* Forget the node's reservations: those committed before `time_ms`, or all of them. The caller
 * puts the node in its new place. */
void capacity_forget(struct acre_capacity *capacity, uint32_t node, bool all, uint64_t time_ms);

#endif
