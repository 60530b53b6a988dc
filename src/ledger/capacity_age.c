/* capacity_age.c - reports grow old: fresh, stale after two minutes, dropped after five.
 *
 * A binary heap holds every node by the time its age must be looked at. A report makes that time
 * later, but the heap is not updated: `due_ms` may be too early, never too late. When it comes, the
 * node is looked at and, if it reported meanwhile, put back with its true time. So a report costs
 * the heap nothing, and each node costs one step per two minutes however often it reports. The
 * order of arrival does not matter, so late and reordered reports cost no more than prompt ones
 * (a list in order of time would be walked for each of them). */
#include "core/heap.h"
#include "ledger/capacity_table.h"

static uint64_t due_ms_of(const struct acre_capacity *capacity, uint32_t node) {
    return capacity->entries[node].due_ms;
}

static bool is_due_before(const void *a, const void *b, const void *context) {
    return due_ms_of(context, *(const uint32_t *)a) < due_ms_of(context, *(const uint32_t *)b);
}

static void note_position(const void *item, uint32_t at, void *context) {
    ((struct acre_capacity *)context)->entries[*(const uint32_t *)item].heap_at = at;
}

static const struct acre_heap_kind by_due = {sizeof(uint32_t), is_due_before, note_position};

/* The heap holds exactly the registered nodes: its length is capacity->count. */
void capacity_heap_add(struct acre_capacity *capacity, uint32_t node, uint64_t due_ms) {
    if (capacity->count == capacity->heap_capacity) {
        capacity->heap_capacity += capacity->heap_capacity / 8 + 16;
        capacity->heap =
            acre_realloc(capacity->heap, capacity->heap_capacity, sizeof(*capacity->heap));
    }
    capacity->entries[node].due_ms = due_ms;
    acre_heap_push(&by_due, capacity->heap, &capacity->count, &node, capacity);
}

void capacity_heap_move(struct acre_capacity *capacity, uint32_t node, uint64_t due_ms) {
    struct capacity_entry *entry = &capacity->entries[node];
    entry->due_ms = due_ms;
    acre_heap_replace(&by_due, capacity->heap, capacity->count, entry->heap_at, &node, capacity);
}

void capacity_heap_remove(struct acre_capacity *capacity, uint32_t node) {
    uint32_t at = capacity->entries[node].heap_at;
    acre_heap_remove(&by_due, capacity->heap, &capacity->count, at, capacity);
}

/* Returns 1 when the node was dropped. */
static uint32_t look_at(struct acre_capacity *capacity, uint32_t node) {
    struct capacity_entry *entry = &capacity->entries[node];
    uint64_t age_ms = capacity->now_ms - entry->time_ms;
    if (age_ms > ACRE_CAPACITY_DROP_MS) {
        capacity_remove(capacity, node);
        return 1;
    }
    if (age_ms <= ACRE_CAPACITY_STALE_MS) {
        capacity_heap_move(capacity, node, entry->time_ms + ACRE_CAPACITY_STALE_MS + 1);
        return 0;
    }
    if (entry->state == ACRE_CAPACITY_FRESH) {
        struct capacity_position before = capacity_position(capacity, node);
        entry->state = ACRE_CAPACITY_STALE;
        capacity->stale_count++;
        capacity_reindex(capacity, node, before);
    }
    capacity_heap_move(capacity, node, entry->time_ms + ACRE_CAPACITY_DROP_MS + 1);
    return 0;
}

uint32_t capacity_advance(struct acre_capacity *capacity, uint64_t now_ms) {
    ACRE_ASSERT(now_ms < UINT64_C(1) << 62); /* so that adding five minutes cannot overflow */
    capacity->now_ms = ACRE_MAX(capacity->now_ms, now_ms);
    capacity_lapse(capacity);
    uint32_t dropped = 0;
    while (capacity->count > 0 && due_ms_of(capacity, capacity->heap[0]) <= capacity->now_ms) {
        dropped += look_at(capacity, capacity->heap[0]);
    }
    return dropped;
}
