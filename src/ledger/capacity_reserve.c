/* capacity_reserve.c - reserve, then commit: placements made between two reports of a node.
 *
 * Reports come every 30 s; without a record of what was placed since, every request of that half
 * minute would see the same best node. A reservation lowers the node's numbers at once. It ends in
 * one of four ways: canceled; lapsed (never committed); reported (committed, and the node looked
 * again afterwards, so its own numbers include it); or its node went away.
 *
 * Reservations live in one array with a free list. Each is on its node's list (to be found by a
 * report) and, until committed, on one list in order of time (all wait equally long, so the oldest
 * is always the next to lapse). A token is the slot and its generation, so that a token of a
 * finished reservation is recognised when its slot serves another one. */
#include "ledger/capacity_table.h"

#include <inttypes.h>

static void link_to_node(struct acre_capacity *capacity, uint32_t slot) {
    struct capacity_reservation *reservation = &capacity->reservations[slot];
    struct capacity_entry *entry = &capacity->entries[reservation->node];
    reservation->previous = ACRE_CAPACITY_NONE;
    reservation->next = entry->first_reservation;
    if (reservation->next != ACRE_CAPACITY_NONE) {
        capacity->reservations[reservation->next].previous = slot;
    }
    entry->first_reservation = slot;
    entry->reserved_mib += reservation->mib;
    entry->reserved_count++;
}

static void unlink_from_node(struct acre_capacity *capacity, uint32_t slot) {
    struct capacity_reservation *reservation = &capacity->reservations[slot];
    struct capacity_entry *entry = &capacity->entries[reservation->node];
    if (reservation->previous != ACRE_CAPACITY_NONE) {
        capacity->reservations[reservation->previous].next = reservation->next;
    } else {
        entry->first_reservation = reservation->next;
    }
    if (reservation->next != ACRE_CAPACITY_NONE) {
        capacity->reservations[reservation->next].previous = reservation->previous;
    }
    entry->reserved_mib -= reservation->mib;
    entry->reserved_count--;
}

static void link_pending(struct acre_capacity *capacity, uint32_t slot) {
    struct capacity_reservation *reservation = &capacity->reservations[slot];
    reservation->later = ACRE_CAPACITY_NONE;
    reservation->earlier = capacity->newest_pending;
    if (reservation->earlier != ACRE_CAPACITY_NONE) {
        capacity->reservations[reservation->earlier].later = slot;
    } else {
        capacity->oldest_pending = slot;
    }
    capacity->newest_pending = slot;
}

static void unlink_pending(struct acre_capacity *capacity, uint32_t slot) {
    struct capacity_reservation *reservation = &capacity->reservations[slot];
    if (reservation->earlier != ACRE_CAPACITY_NONE) {
        capacity->reservations[reservation->earlier].later = reservation->later;
    } else {
        capacity->oldest_pending = reservation->later;
    }
    if (reservation->later != ACRE_CAPACITY_NONE) {
        capacity->reservations[reservation->later].earlier = reservation->earlier;
    } else {
        capacity->newest_pending = reservation->earlier;
    }
}

static uint32_t take_slot(struct acre_capacity *capacity) {
    uint32_t slot = capacity->free_reservation;
    if (slot != ACRE_CAPACITY_NONE) {
        capacity->free_reservation = capacity->reservations[slot].next;
    } else {
        if (capacity->reservation_count == capacity->reservation_capacity) {
            capacity->reservation_capacity += capacity->reservation_capacity / 2 + 16;
            capacity->reservations =
                acre_realloc(capacity->reservations, capacity->reservation_capacity,
                             sizeof(*capacity->reservations));
        }
        slot = capacity->reservation_count++;
        capacity->reservations[slot].generation = 0;
    }
    capacity->reservations[slot].generation++;
    return slot;
}

/* Off all lists and free. The caller puts the node in its new place. */
static void end(struct acre_capacity *capacity, uint32_t slot) {
    struct capacity_reservation *reservation = &capacity->reservations[slot];
    ACRE_ASSERT(slot < capacity->reservation_count && reservation->generation % 2 == 1);
    unlink_from_node(capacity, slot);
    if (!reservation->committed) {
        unlink_pending(capacity, slot);
    }
    reservation->generation++;
    reservation->next = capacity->free_reservation;
    capacity->free_reservation = slot;
}

static void end_one(struct acre_capacity *capacity, uint32_t slot) {
    uint32_t node = capacity->reservations[slot].node;
    struct capacity_position before = capacity_position(capacity, node);
    end(capacity, slot);
    capacity_reindex(capacity, node, before);
}

void capacity_lapse(struct acre_capacity *capacity) {
    while (capacity->oldest_pending != ACRE_CAPACITY_NONE) {
        uint32_t slot = capacity->oldest_pending;
        if (capacity->now_ms - capacity->reservations[slot].at_ms <= capacity->lapse_ms) {
            return;
        }
        end_one(capacity, slot);
    }
}

void capacity_forget(struct acre_capacity *capacity, uint32_t node, bool all, uint64_t time_ms) {
    ACRE_ASSERT(node < capacity->entry_capacity);
    uint32_t slot = capacity->entries[node].first_reservation;
    while (slot != ACRE_CAPACITY_NONE) {
        const struct capacity_reservation *reservation = &capacity->reservations[slot];
        uint32_t next = reservation->next;
        if (all || (reservation->committed && reservation->at_ms < time_ms)) {
            end(capacity, slot);
        }
        slot = next;
    }
}

int acre_capacity_reserve(struct acre_capacity *capacity, uint32_t node, uint64_t mib,
                          uint64_t now_ms, uint64_t *ret_token, struct acre_error *err) {
    capacity_advance(capacity, now_ms);
    const struct capacity_entry *entry = capacity_entry(capacity, node);
    if (entry == NULL) {
        return acre_fail(err, ACRE_ENOTFOUND, "node %" PRIu32 " is not registered", node);
    }
    if (entry->state == ACRE_CAPACITY_STALE) {
        return acre_fail(err, ACRE_EUNAVAILABLE,
                         "node %" PRIu32 " has not reported for %" PRIu64 " ms", node,
                         capacity->now_ms - entry->time_ms);
    }
    uint64_t free_mib = capacity_effective(entry).largest_device_available_mib;
    if (mib > free_mib) {
        return acre_fail(err, ACRE_ENOFIT,
                         "node %" PRIu32 " has %" PRIu64 " MiB free on one device, %" PRIu64
                         " asked for",
                         node, free_mib, mib);
    }
    if (entry->reserved_count == UINT16_MAX) {
        return acre_fail(err, ACRE_ELIMIT, "node %" PRIu32 " has %d reservations already", node,
                         UINT16_MAX);
    }
    struct capacity_position before = capacity_position(capacity, node);
    uint32_t slot = take_slot(capacity);
    struct capacity_reservation *reservation = &capacity->reservations[slot];
    reservation->at_ms = capacity->now_ms;
    reservation->node = node;
    reservation->mib = (uint32_t)mib; /* free_mib fits */
    reservation->committed = false;
    link_to_node(capacity, slot);
    link_pending(capacity, slot);
    capacity_reindex(capacity, node, before);
    *ret_token = (uint64_t)reservation->generation << 32 | slot;
    return 0;
}

/* The slot of a live reservation, or ACRE_CAPACITY_NONE. */
static uint32_t find(const struct acre_capacity *capacity, uint64_t token) {
    uint32_t slot = (uint32_t)token;
    uint32_t generation = (uint32_t)(token >> 32);
    if (slot >= capacity->reservation_count || generation % 2 == 0 ||
        capacity->reservations[slot].generation != generation) {
        return ACRE_CAPACITY_NONE;
    }
    return slot;
}

int acre_capacity_commit(struct acre_capacity *capacity, uint64_t token, uint64_t now_ms) {
    capacity_advance(capacity, now_ms);
    uint32_t slot = find(capacity, token);
    if (slot == ACRE_CAPACITY_NONE) {
        return ACRE_ENOTFOUND;
    }
    struct capacity_reservation *reservation = &capacity->reservations[slot];
    if (reservation->committed) {
        return ACRE_ECONFLICT;
    }
    ACRE_ASSERT(reservation->node < capacity->entry_capacity);
    unlink_pending(capacity, slot);
    reservation->committed = true;
    reservation->at_ms = capacity->now_ms;
    return 0;
}

int acre_capacity_cancel(struct acre_capacity *capacity, uint64_t token, uint64_t now_ms) {
    capacity_advance(capacity, now_ms);
    uint32_t slot = find(capacity, token);
    if (slot == ACRE_CAPACITY_NONE) {
        return ACRE_ENOTFOUND;
    }
    end_one(capacity, slot);
    return 0;
}
