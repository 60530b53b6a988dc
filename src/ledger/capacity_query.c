/* capacity_query.c - reading the table: one node, all of them, the best, the sums.
 *
 * best* go through the indexes; list and stats look at every entry, because they answer about
 * every entry. All first let time pass, so that no answer rests on a report that is too old. */
#include "ledger/capacity_table.h"

#include <inttypes.h>
#include <stdlib.h>

int acre_capacity_get(struct acre_capacity *capacity, uint32_t node, uint64_t now_ms,
                      struct acre_capacity_view *ret_view) {
    capacity_advance(capacity, now_ms);
    const struct capacity_entry *entry = capacity_entry(capacity, node);
    if (entry == NULL) {
        return ACRE_ENOTFOUND;
    }
    struct acre_capacity_report effective = capacity_effective(entry);
    struct acre_capacity_report reported = effective;
    reported.queue_depth = entry->queue_depth;
    reported.available_mib = entry->available_mib;
    reported.largest_device_available_mib = entry->largest_mib;
    *ret_view = (struct acre_capacity_view){
        .reported = reported,
        .effective = effective,
        .reservations = entry->reserved_count,
        .stale = entry->state == ACRE_CAPACITY_STALE,
        .score = acre_capacity_score(&effective, capacity->now_ms),
    };
    return 0;
}

static int compare_ranks(const void *a, const void *b) {
    const struct acre_capacity_rank *x = a;
    const struct acre_capacity_rank *y = b;
    return capacity_rank_better(*x, *y) ? -1 : capacity_rank_better(*y, *x);
}

size_t acre_capacity_list(struct acre_capacity *capacity, uint64_t now_ms,
                          struct acre_capacity_rank *ret_ranks, size_t max) {
    capacity_advance(capacity, now_ms);
    struct acre_capacity_rank *ranks = acre_calloc(capacity->count + 1, sizeof(*ranks));
    size_t count = 0;
    for (uint32_t node = 0; node < capacity->entry_capacity; node++) {
        const struct capacity_entry *entry = capacity_entry(capacity, node);
        if (entry == NULL) {
            continue;
        }
        struct acre_capacity_report report = capacity_effective(entry);
        if (acre_capacity_has(&report)) {
            ranks[count++] = (struct acre_capacity_rank){
                acre_capacity_score(&report, capacity->now_ms), report.queue_depth, node};
        }
    }
    qsort(ranks, count, sizeof(*ranks), compare_ranks);
    for (size_t i = 0; i < count && i < max; i++) {
        ret_ranks[i] = ranks[i];
    }
    free(ranks);
    return count;
}

static uint32_t best_gpu(struct acre_capacity *capacity, uint64_t min_mib, uint64_t now_ms,
                         acre_capacity_accept *accept, void *context) {
    capacity_advance(capacity, now_ms);
    if (min_mib > ACRE_CAPACITY_MIB_MAX) {
        return ACRE_CAPACITY_NO_NODE;
    }
    return capacity_index_best(&capacity->gpu_index, min_mib << 20, accept, context);
}

int acre_capacity_best(struct acre_capacity *capacity, uint64_t min_mib, uint64_t now_ms,
                       uint32_t *ret_node, struct acre_error *err) {
    uint32_t node = best_gpu(capacity, min_mib, now_ms, NULL, NULL);
    if (node == ACRE_CAPACITY_NO_NODE) {
        struct acre_capacity_summary summary = acre_capacity_summarise(capacity, now_ms);
        return acre_fail(err, ACRE_ENOFIT,
                         "no node has %" PRIu64 " MiB free on one device: %" PRIu32
                         " nodes, %" PRIu32 " stale, the largest free device has %" PRIu64 " MiB",
                         min_mib, summary.nodes, summary.stale,
                         summary.largest_device_available_mib);
    }
    *ret_node = node;
    return 0;
}

int acre_capacity_best_where(struct acre_capacity *capacity, uint64_t min_mib, uint64_t now_ms,
                             acre_capacity_accept *accept, void *context, uint32_t *ret_node) {
    uint32_t node = best_gpu(capacity, min_mib, now_ms, accept, context);
    if (node == ACRE_CAPACITY_NO_NODE) {
        return ACRE_ENOFIT;
    }
    *ret_node = node;
    return 0;
}

int acre_capacity_best_cpu(struct acre_capacity *capacity, uint64_t now_ms,
                           acre_capacity_accept *accept, void *context, uint32_t *ret_node) {
    capacity_advance(capacity, now_ms);
    uint32_t node = capacity_index_best(&capacity->cpu_index, 0, accept, context);
    if (node == ACRE_CAPACITY_NO_NODE) {
        return ACRE_ENOFIT;
    }
    *ret_node = node;
    return 0;
}

struct acre_capacity_summary acre_capacity_summarise(struct acre_capacity *capacity,
                                                     uint64_t now_ms) {
    capacity_advance(capacity, now_ms);
    struct acre_capacity_summary summary = {.nodes = capacity->count,
                                            .stale = capacity->stale_count};
    uint32_t last = capacity_index_last(&capacity->gpu_index);
    if (last != ACRE_CAPACITY_NO_NODE) {
        summary.largest_device_available_mib =
            capacity_effective(&capacity->entries[last]).largest_device_available_mib;
    }
    return summary;
}

struct acre_capacity_stats acre_capacity_stats(struct acre_capacity *capacity, uint64_t now_ms) {
    capacity_advance(capacity, now_ms);
    struct acre_capacity_stats stats = {.nodes = capacity->count};
    for (uint32_t node = 0; node < capacity->entry_capacity; node++) {
        const struct capacity_entry *entry = capacity_entry(capacity, node);
        if (entry == NULL || entry->state == ACRE_CAPACITY_STALE) {
            continue;
        }
        struct acre_capacity_report report = capacity_effective(entry);
        stats.capable += acre_capacity_has(&report);
        stats.devices += report.device_count;
        stats.total_mib += report.total_mib;
        stats.available_mib += report.available_mib;
        stats.queue_depth += report.queue_depth;
    }
    if (stats.capable > 0) {
        stats.average_queue = (double)stats.queue_depth / stats.capable;
    }
    return stats;
}
