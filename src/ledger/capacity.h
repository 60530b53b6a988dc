/* capacity.h - what each node last said it has, and which node is best to place on (CAP-1..CAP-8).
 *
 * Nodes are small integers chosen by the caller (dense: memory grows to the highest id). Pure:
 * no I/O, no clock. Callers pass now_ms; an earlier now_ms than one already seen counts as that
 * later one, so time never goes back. One thread at a time.
 *
 * A node's numbers here are its last report less what was reserved since (CAP-7). Reports older
 * than ACRE_CAPACITY_STALE_MS are stale (listed, score 0, never best); older than
 * ACRE_CAPACITY_DROP_MS they are dropped, as if unregistered: every call does this by itself.
 * It does not know devices, labels or models, and decides nothing else than "best node". */
#ifndef ACRE_LEDGER_CAPACITY_H
#define ACRE_LEDGER_CAPACITY_H

#include "core/error.h"

enum {
    ACRE_CAPACITY_NODES_MAX = 1 << 20,
    ACRE_CAPACITY_DEVICES_MAX = 4096, /* of one node; 64 GPUs in 64 slices each */
    ACRE_CAPACITY_QUEUE_MAX = 1 << 30,
    ACRE_CAPACITY_STALE_MS = 120000, /* strictly older */
    ACRE_CAPACITY_DROP_MS = 300000,  /* strictly older */
    ACRE_CAPACITY_LAPSE_MS = 10000,  /* a reservation nobody commits */
};
#define ACRE_CAPACITY_MIB_MAX UINT32_MAX /* of one node: 4 PiB */
#define ACRE_CAPACITY_NO_NODE UINT32_MAX

struct acre_capacity_report {
    uint32_t device_count; /* 0: a CPU node */
    uint32_t queue_depth;
    uint32_t backend; /* interned name */
    uint64_t total_mib;
    uint64_t available_mib;                /* the sum over devices */
    uint64_t largest_device_available_mib; /* the most that is free on one device */
    uint64_t time_ms;                      /* when the node looked */
};

double acre_capacity_usage_pct(const struct acre_capacity_report *report); /* 0 when total is 0 */
bool acre_capacity_has(const struct acre_capacity_report *report);
bool acre_capacity_is_stale(const struct acre_capacity_report *report, uint64_t now_ms);
double acre_capacity_score(const struct acre_capacity_report *report, uint64_t now_ms); /* CAP-3 */

struct acre_capacity;

/* `lapse_ms`: how long a reservation waits for its commit (ACRE_CAPACITY_LAPSE_MS). */
struct acre_capacity *acre_capacity_create(uint64_t lapse_ms);
void acre_capacity_destroy(struct acre_capacity *capacity); /* NULL is fine */
size_t acre_capacity_bytes(const struct acre_capacity *capacity);

/* Register `node` or replace its report. A time_ms ahead of now_ms is taken as now_ms: a fast
 * clock must not keep a dead node fresh. ACRE_EINVALID: numbers out of range or contradictory;
 * ACRE_ECONFLICT: older than the report already held, or older than ACRE_CAPACITY_DROP_MS. */
int acre_capacity_report(struct acre_capacity *capacity, uint32_t node,
                         const struct acre_capacity_report *report, uint64_t now_ms,
                         struct acre_error *err);
/* ACRE_ENOTFOUND: not registered; the caller logs a warning, it is no failure (CAP-2).
 * Reservations on the node are forgotten. */
int acre_capacity_unregister(struct acre_capacity *capacity, uint32_t node, uint64_t now_ms);

struct acre_capacity_view {
    struct acre_capacity_report reported;
    struct acre_capacity_report effective; /* less what is reserved */
    uint32_t reservations;
    bool stale;
    double score; /* of `effective` */
};

int acre_capacity_get(struct acre_capacity *capacity, uint32_t node, uint64_t now_ms,
                      struct acre_capacity_view *ret_view); /* 0 or ACRE_ENOTFOUND */

struct acre_capacity_rank {
    double score;
    uint32_t queue_depth;
    uint32_t node;
};

/* Nodes with capacity, best first, stale ones (score 0) among them; at most `max` are written.
 * Returns how many there are in all. O(n log n): for people, not for placing. */
size_t acre_capacity_list(struct acre_capacity *capacity, uint64_t now_ms,
                          struct acre_capacity_rank *ret_ranks, size_t max);

/* The best fresh node with min_mib free on one device (CAP-4); O(log n). ACRE_ENOFIT: none, and
 * the text says how many nodes there are, how many are stale, and the largest free device. */
int acre_capacity_best(struct acre_capacity *capacity, uint64_t min_mib, uint64_t now_ms,
                       uint32_t *ret_node, struct acre_error *err);

/* The best node among those `accept` allows, in the same order, or ACRE_ENOFIT. Looks only at
 * nodes that fit and could still win, but may ask about all of them when few are accepted. */
typedef bool acre_capacity_accept(void *context, uint32_t node);
int acre_capacity_best_where(struct acre_capacity *capacity, uint64_t min_mib, uint64_t now_ms,
                             acre_capacity_accept *accept, void *context, uint32_t *ret_node);
/* The fresh node without devices that has the shortest queue (then the lowest id), or ENOFIT. */
int acre_capacity_best_cpu(struct acre_capacity *capacity, uint64_t now_ms,
                           acre_capacity_accept *accept, void *context, uint32_t *ret_node);

struct acre_capacity_summary {
    uint32_t nodes;
    uint32_t stale;
    uint64_t largest_device_available_mib; /* over fresh nodes */
};

struct acre_capacity_summary acre_capacity_summarise(struct acre_capacity *capacity,
                                                     uint64_t now_ms); /* O(log n) */

struct acre_capacity_stats { /* CAP-5: all but `nodes` over fresh nodes only */
    uint32_t nodes;
    uint32_t capable;
    uint64_t devices;
    uint64_t total_mib;
    uint64_t available_mib;
    uint64_t queue_depth;
    double average_queue; /* queue_depth / capable, 0 when none */
};

struct acre_capacity_stats acre_capacity_stats(struct acre_capacity *capacity, uint64_t now_ms);

/* Let time pass: drop what is too old, lapse what nobody committed. Returns how many nodes were
 * dropped. Never needed for right answers; keeps memory and the next call small. */
uint32_t acre_capacity_purge(struct acre_capacity *capacity, uint64_t now_ms);

/* Take `mib` of one device of a fresh node, and a place in its queue, until the node's own reports
 * show it (CAP-7). The largest free device is lowered to what is certain to be left whichever
 * device the node chooses. ACRE_ENOTFOUND: no such node; ACRE_EUNAVAILABLE: stale;
 * ACRE_ENOFIT: too little on one device; ACRE_ELIMIT: 65,535 reservations on one node. */
int acre_capacity_reserve(struct acre_capacity *capacity, uint32_t node, uint64_t mib,
                          uint64_t now_ms, uint64_t *ret_token, struct acre_error *err);
/* The placement was made: hold on until a report later than now_ms, which includes it. A
 * reservation not committed after lapse_ms is cancelled. ACRE_ENOTFOUND: unknown, lapsed,
 * cancelled or already reported; ACRE_ECONFLICT: committed before. */
int acre_capacity_commit(struct acre_capacity *capacity, uint64_t token, uint64_t now_ms);
int acre_capacity_cancel(struct acre_capacity *capacity, uint64_t token, uint64_t now_ms);

#endif
