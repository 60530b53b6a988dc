/* capacity.c - the table of nodes and the questions asked of it.
 *
 * Each node's entry is in at most one index: fresh nodes with memory free in `gpu_index`, keyed by
 * the largest free device and ranked by score; fresh nodes without devices in `cpu_index`, ranked
 * by queue. "Which node is best for M MiB" is then one walk in the first (capacity_index.c). The
 * rank and the key are computed from the entry when asked, not stored, so code that changes an
 * entry notes its place before and puts it in its new place afterwards. Ageing is in
 * capacity_age.c, reservations in capacity_reserve.c. */
#include "ledger/capacity_table.h"

#include <inttypes.h>
#include <stdlib.h>

double acre_capacity_usage_pct(const struct acre_capacity_report *report) {
    if (report->total_mib == 0) {
        return 0;
    }
    return ((double)report->total_mib - (double)report->available_mib) / (double)report->total_mib *
           100;
}

bool acre_capacity_has(const struct acre_capacity_report *report) {
    return report->device_count > 0 && report->available_mib > 0;
}

bool acre_capacity_is_stale(const struct acre_capacity_report *report, uint64_t now_ms) {
    return now_ms > report->time_ms && now_ms - report->time_ms > ACRE_CAPACITY_STALE_MS;
}

static double score_of(uint64_t available_mib, uint64_t total_mib, uint32_t queue_depth) {
    double penalty = ACRE_MIN(2.0 * queue_depth, 20.0);
    double score = (double)available_mib / (double)total_mib * 100 - penalty;
    return ACRE_MAX(score, 0.0);
}

double acre_capacity_score(const struct acre_capacity_report *report, uint64_t now_ms) {
    if (!acre_capacity_has(report) || report->total_mib == 0 ||
        acre_capacity_is_stale(report, now_ms)) {
        return 0;
    }
    return score_of(report->available_mib, report->total_mib, report->queue_depth);
}

static uint32_t divide_up(uint32_t a, uint32_t b) {
    return a / b + (a % b != 0);
}

/* What the largest free device certainly has left after k reservations of `reserved` MiB in all,
 * without knowing which devices the node takes for them. Three bounds hold at once:
 *   all on the largest:      largest - reserved
 *   k devices at most were touched, none freer than the largest; the others share the rest:
 *                            (available - k * largest) / (devices - k)
 *   no device beats the mean: (available - reserved) / devices
 * The second one is why eight whole-GPU placements fit a node of eight idle GPUs. */
static uint32_t largest_certain(const struct capacity_entry *entry, uint32_t available_mib) {
    uint32_t devices = entry->device_count;
    uint32_t reservations = entry->reserved_count;
    uint32_t largest = 0;
    if (entry->largest_mib > entry->reserved_mib) {
        largest = entry->largest_mib - entry->reserved_mib;
    }
    uint64_t touched_mib = (uint64_t)reservations * entry->largest_mib;
    if (reservations < devices && entry->available_mib > touched_mib) {
        uint32_t rest =
            divide_up(entry->available_mib - (uint32_t)touched_mib, devices - reservations);
        largest = ACRE_MAX(largest, rest);
    }
    largest = ACRE_MAX(largest, divide_up(available_mib, devices));
    return ACRE_MIN(largest, available_mib);
}

static uint32_t available_now(const struct capacity_entry *entry) {
    return entry->available_mib > entry->reserved_mib ? entry->available_mib - entry->reserved_mib
                                                      : 0;
}

static uint32_t largest_now(const struct capacity_entry *entry) {
    if (entry->reserved_mib == 0) {
        return entry->largest_mib;
    }
    return entry->device_count > 0 ? largest_certain(entry, available_now(entry)) : 0;
}

static uint32_t queue_now(const struct capacity_entry *entry) {
    return entry->queue_depth + entry->reserved_count;
}

struct acre_capacity_report capacity_effective(const struct capacity_entry *entry) {
    return (struct acre_capacity_report){
        .device_count = entry->device_count,
        .queue_depth = queue_now(entry),
        .backend = entry->backend,
        .total_mib = entry->total_mib,
        .available_mib = available_now(entry),
        .largest_device_available_mib = largest_now(entry),
        .time_ms = entry->time_ms,
    };
}

static uint64_t gpu_key(const void *context, uint32_t node) {
    const struct acre_capacity *capacity = context;
    return (uint64_t)largest_now(&capacity->entries[node]) << 20 | node;
}

/* Everything in gpu_index is fresh and has memory free: what is left of the score. */
static struct acre_capacity_rank gpu_rank(const void *context, uint32_t node) {
    const struct capacity_entry *entry = &((const struct acre_capacity *)context)->entries[node];
    double score = score_of(available_now(entry), entry->total_mib, queue_now(entry));
    return (struct acre_capacity_rank){score, queue_now(entry), node};
}

static uint64_t cpu_key(const void *context, uint32_t node) {
    (void)context;
    return node;
}

static struct acre_capacity_rank cpu_rank(const void *context, uint32_t node) {
    const struct acre_capacity *capacity = context;
    return (struct acre_capacity_rank){0, queue_now(&capacity->entries[node]), node};
}

struct acre_capacity *acre_capacity_create(uint64_t lapse_ms) {
    struct acre_capacity *capacity = acre_calloc(1, sizeof(*capacity));
    capacity->lapse_ms = lapse_ms;
    capacity->free_reservation = ACRE_CAPACITY_NONE;
    capacity->oldest_pending = ACRE_CAPACITY_NONE;
    capacity->newest_pending = ACRE_CAPACITY_NONE;
    capacity_index_init(&capacity->gpu_index, (struct capacity_facts){capacity, gpu_key, gpu_rank});
    capacity_index_init(&capacity->cpu_index, (struct capacity_facts){capacity, cpu_key, cpu_rank});
    return capacity;
}

void acre_capacity_destroy(struct acre_capacity *capacity) {
    if (capacity == NULL) {
        return;
    }
    capacity_index_finish(&capacity->gpu_index);
    capacity_index_finish(&capacity->cpu_index);
    free(capacity->entries);
    free(capacity->heap);
    free(capacity->reservations);
    free(capacity);
}

size_t acre_capacity_bytes(const struct acre_capacity *capacity) {
    return sizeof(*capacity) + capacity->entry_capacity * sizeof(*capacity->entries) +
           capacity->heap_capacity * sizeof(*capacity->heap) +
           capacity->reservation_capacity * sizeof(*capacity->reservations) +
           capacity_index_bytes(&capacity->gpu_index) + capacity_index_bytes(&capacity->cpu_index);
}

struct capacity_entry *capacity_entry(const struct acre_capacity *capacity, uint32_t node) {
    if (node >= capacity->entry_capacity || capacity->entries[node].state == ACRE_CAPACITY_ABSENT) {
        return NULL;
    }
    return &capacity->entries[node];
}

/* The index an entry belongs to as it is now; NULL for none. */
static struct capacity_index *index_for(struct acre_capacity *capacity, uint32_t node) {
    const struct capacity_entry *entry = &capacity->entries[node];
    if (entry->state != ACRE_CAPACITY_FRESH) {
        return NULL;
    }
    if (entry->device_count == 0) {
        return &capacity->cpu_index;
    }
    return available_now(entry) > 0 ? &capacity->gpu_index : NULL;
}

struct capacity_position capacity_position(struct acre_capacity *capacity, uint32_t node) {
    struct capacity_index *index = index_for(capacity, node);
    uint64_t key = index != NULL ? index->facts.key(capacity, node) : 0;
    return (struct capacity_position){index, key};
}

void capacity_reindex(struct acre_capacity *capacity, uint32_t node,
                      struct capacity_position before) {
    struct capacity_index *index = index_for(capacity, node);
    if (before.index != NULL && before.index == index) {
        capacity_index_move(index, node, before.key);
        return;
    }
    if (before.index != NULL) {
        capacity_index_remove(before.index, node, before.key);
    }
    if (index != NULL) {
        capacity_index_insert(index, node);
    }
}

void capacity_remove(struct acre_capacity *capacity, uint32_t node) {
    struct capacity_entry *entry = &capacity->entries[node];
    struct capacity_position before = capacity_position(capacity, node);
    capacity_forget(capacity, node, true, 0);
    capacity_heap_remove(capacity, node);
    capacity->stale_count -= entry->state == ACRE_CAPACITY_STALE;
    entry->state = ACRE_CAPACITY_ABSENT;
    capacity_reindex(capacity, node, before);
}

static int check_report(uint32_t node, const struct acre_capacity_report *report,
                        struct acre_error *err) {
    const struct {
        const char *field;
        uint64_t value, max;
    } limits[] = {
        {"node id", node, ACRE_CAPACITY_NODES_MAX - 1},
        {"device_count", report->device_count, ACRE_CAPACITY_DEVICES_MAX},
        {"queue_depth", report->queue_depth, ACRE_CAPACITY_QUEUE_MAX},
        {"total_mib", report->total_mib, ACRE_CAPACITY_MIB_MAX},
        {"available_mib", report->available_mib, report->total_mib},
        {"largest_device_available_mib", report->largest_device_available_mib,
         report->available_mib},
    };
    for (size_t i = 0; i < ACRE_COUNT(limits); i++) {
        if (limits[i].value > limits[i].max) {
            return acre_fail(err, ACRE_EINVALID,
                             "node %" PRIu32 ": %s %" PRIu64 " is over %" PRIu64, node,
                             limits[i].field, limits[i].value, limits[i].max);
        }
    }
    if (report->available_mib > report->device_count * report->largest_device_available_mib) {
        return acre_fail(err, ACRE_EINVALID,
                         "node %" PRIu32 ": available_mib %" PRIu64 " is more than %" PRIu32
                         " devices with at most largest_device_available_mib %" PRIu64 " each",
                         node, report->available_mib, report->device_count,
                         report->largest_device_available_mib);
    }
    return 0;
}

static void make_room(struct acre_capacity *capacity, uint32_t node) {
    uint32_t before = capacity->entry_capacity;
    if (node < before) {
        return;
    }
    uint32_t wanted = ACRE_MAX(node + 1, before + before / 8 + 16);
    capacity->entry_capacity = ACRE_MIN(wanted, ACRE_CAPACITY_NODES_MAX);
    capacity->entries =
        acre_realloc(capacity->entries, capacity->entry_capacity, sizeof(*capacity->entries));
    for (uint32_t i = before; i < capacity->entry_capacity; i++) {
        capacity->entries[i] = (struct capacity_entry){.first_reservation = ACRE_CAPACITY_NONE};
    }
}

static void store(struct capacity_entry *entry, const struct acre_capacity_report *report,
                  uint64_t time_ms) {
    entry->time_ms = time_ms;
    entry->total_mib = (uint32_t)report->total_mib;
    entry->available_mib = (uint32_t)report->available_mib;
    entry->largest_mib = (uint32_t)report->largest_device_available_mib;
    entry->queue_depth = report->queue_depth;
    entry->backend = report->backend;
    entry->device_count = (uint16_t)report->device_count;
}

int acre_capacity_report(struct acre_capacity *capacity, uint32_t node,
                         const struct acre_capacity_report *report, uint64_t now_ms,
                         struct acre_error *err) {
    int r = check_report(node, report, err);
    if (r < 0) {
        return r;
    }
    capacity_advance(capacity, now_ms);
    uint64_t time_ms = ACRE_MIN(report->time_ms, capacity->now_ms);
    struct capacity_entry *entry = capacity_entry(capacity, node);
    if (entry != NULL && time_ms < entry->time_ms) {
        return acre_fail(err, ACRE_ECONFLICT,
                         "node %" PRIu32 ": time_ms %" PRIu64 " is before %" PRIu64
                         " of the report already held",
                         node, time_ms, entry->time_ms);
    }
    uint64_t age_ms = capacity->now_ms - time_ms;
    if (age_ms > ACRE_CAPACITY_DROP_MS) {
        return acre_fail(err, ACRE_ECONFLICT,
                         "node %" PRIu32 ": the report is %" PRIu64 " ms old, over %d", node,
                         age_ms, ACRE_CAPACITY_DROP_MS);
    }
    bool stale = age_ms > ACRE_CAPACITY_STALE_MS;
    uint64_t due_ms = time_ms + (stale ? ACRE_CAPACITY_DROP_MS : ACRE_CAPACITY_STALE_MS) + 1;
    struct capacity_position before = {NULL, 0};
    if (entry == NULL) {
        make_room(capacity, node);
        entry = &capacity->entries[node];
        capacity_heap_add(capacity, node, due_ms);
    } else {
        before = capacity_position(capacity, node);
        capacity->stale_count -= entry->state == ACRE_CAPACITY_STALE;
        if (due_ms < entry->due_ms) {
            capacity_heap_move(capacity, node, due_ms);
        }
    }
    store(entry, report, time_ms);
    entry->state = stale ? ACRE_CAPACITY_STALE : ACRE_CAPACITY_FRESH;
    capacity->stale_count += stale;
    capacity_forget(capacity, node, false, time_ms);
    capacity_reindex(capacity, node, before);
    return 0;
}

int acre_capacity_unregister(struct acre_capacity *capacity, uint32_t node, uint64_t now_ms) {
    capacity_advance(capacity, now_ms);
    if (capacity_entry(capacity, node) == NULL) {
        return ACRE_ENOTFOUND;
    }
    capacity_remove(capacity, node);
    return 0;
}

uint32_t acre_capacity_purge(struct acre_capacity *capacity, uint64_t now_ms) {
    return capacity_advance(capacity, now_ms);
}
