/* capacity_age.c - reports grow old: fresh, stale after two minutes, gone after five.
 *
 * A binary heap holds every node by the time its age must be looked at. A report makes that time
 * later, but the heap is not told: `due_ms` may be too early, never too late. When it comes, the
 * node is looked at and, if it reported meanwhile, put back with its true time. So a report costs
 * the heap nothing, and each node costs one step per two minutes however often it reports. The
 * order of arrival does not matter, so late and reordered reports cost no more than prompt ones
 * (a list in order of time would be walked for each of them). */
#include "ledger/capacity_table.h"

static void put(struct acre_capacity *capacity, uint32_t at, uint32_t node) {
    capacity->heap[at] = node;
    capacity->entries[node].heap_at = at;
}

static uint64_t due_at(const struct acre_capacity *capacity, uint32_t at) {
    return capacity->entries[capacity->heap[at]].due_ms;
}

/* Each step writes the hole only: the moving node is put down once. */
static void sift_up(struct acre_capacity *capacity, uint32_t at, uint32_t node) {
    uint64_t due_ms = capacity->entries[node].due_ms;
    while (at > 0 && due_at(capacity, (at - 1) / 2) > due_ms) {
        put(capacity, at, capacity->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    put(capacity, at, node);
}

static void sift_down(struct acre_capacity *capacity, uint32_t count, uint32_t at, uint32_t node) {
    uint64_t due_ms = capacity->entries[node].due_ms;
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child + 1 < count && due_at(capacity, child + 1) < due_at(capacity, child)) {
            child++;
        }
        if (child >= count || due_at(capacity, child) >= due_ms) {
            break;
        }
        put(capacity, at, capacity->heap[child]);
        at = child;
    }
    put(capacity, at, node);
}

/* The heap holds exactly the registered nodes: its length is capacity->count. */
void acre_capacity_heap_add(struct acre_capacity *capacity, uint32_t node, uint64_t due_ms) {
    if (capacity->count == capacity->heap_capacity) {
        capacity->heap_capacity += capacity->heap_capacity / 8 + 16;
        capacity->heap =
            acre_realloc(capacity->heap, capacity->heap_capacity, sizeof(*capacity->heap));
    }
    capacity->entries[node].due_ms = due_ms;
    sift_up(capacity, capacity->count++, node);
}

void acre_capacity_heap_move(struct acre_capacity *capacity, uint32_t node, uint64_t due_ms) {
    struct acre_capacity_entry *entry = &capacity->entries[node];
    uint64_t before_ms = entry->due_ms;
    entry->due_ms = due_ms;
    if (due_ms < before_ms) {
        sift_up(capacity, entry->heap_at, node);
    } else {
        sift_down(capacity, capacity->count, entry->heap_at, node);
    }
}

void acre_capacity_heap_remove(struct acre_capacity *capacity, uint32_t node) {
    ACRE_ASSERT(capacity->count > 0);
    uint32_t at = capacity->entries[node].heap_at;
    uint32_t last = capacity->heap[--capacity->count];
    if (last == node) {
        return;
    }
    if (at > 0 && due_at(capacity, (at - 1) / 2) > capacity->entries[last].due_ms) {
        sift_up(capacity, at, last);
    } else {
        sift_down(capacity, capacity->count, at, last);
    }
}

/* Returns 1 when the node was dropped. */
static uint32_t look_at(struct acre_capacity *capacity, uint32_t node) {
    struct acre_capacity_entry *entry = &capacity->entries[node];
    uint64_t age_ms = capacity->now_ms - entry->time_ms;
    if (age_ms > ACRE_CAPACITY_DROP_MS) {
        acre_capacity_remove(capacity, node);
        return 1;
    }
    if (age_ms <= ACRE_CAPACITY_STALE_MS) {
        acre_capacity_heap_move(capacity, node, entry->time_ms + ACRE_CAPACITY_STALE_MS + 1);
        return 0;
    }
    if (entry->state == ACRE_CAPACITY_FRESH) {
        struct acre_capacity_place before = acre_capacity_place(capacity, node);
        entry->state = ACRE_CAPACITY_STALE;
        capacity->stale_count++;
        acre_capacity_replace(capacity, node, before);
    }
    acre_capacity_heap_move(capacity, node, entry->time_ms + ACRE_CAPACITY_DROP_MS + 1);
    return 0;
}

uint32_t acre_capacity_advance(struct acre_capacity *capacity, uint64_t now_ms) {
    ACRE_ASSERT(now_ms < UINT64_C(1) << 62); /* so that adding five minutes cannot overflow */
    capacity->now_ms = ACRE_MAX(capacity->now_ms, now_ms);
    acre_capacity_lapse(capacity);
    uint32_t dropped = 0;
    while (capacity->count > 0 && due_at(capacity, 0) <= capacity->now_ms) {
        dropped += look_at(capacity, capacity->heap[0]);
    }
    return dropped;
}
