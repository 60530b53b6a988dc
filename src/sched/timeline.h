/* timeline.h - what is free on every node from now on, and the earliest place for what waits.
 *
 * A conservative plan: a placed job keeps its place; the next is put at the earliest time it fits
 * without moving another. Judged node by node and device by device, so whole nodes, several GPUs
 * and shares of one wait for what they really need. Built once, thrown away when the world has
 * changed. Pure; core thread only. It starts nothing and knows no policy: the order is the
 * caller's.
 */
#ifndef ACRE_SCHED_TIMELINE_H
#define ACRE_SCHED_TIMELINE_H

#include "core/base.h"

enum { ACRE_TIMELINE_SLOTS_MAX = 64 };
#define ACRE_TIMELINE_NEVER UINT64_MAX

struct timeline;

struct timeline *timeline_create(uint64_t now_ms);
void timeline_destroy(struct timeline *timeline); /* NULL is fine */
size_t timeline_bytes(const struct timeline *timeline);

/* A node of equal ones (`kind`), all of this free for ever. Returns its number, from 0. */
uint32_t timeline_add_node(struct timeline *timeline, uint32_t kind, const uint16_t *free_milli,
                           uint32_t slot_count, uint32_t cpu_milli, uint32_t ram_mib);

struct timeline_use {
    uint32_t node;
    uint64_t slots; /* a bit each; 0: CPU and RAM only */
    uint32_t milli; /* of each */
    uint32_t cpu_milli, ram_mib;
    uint64_t from_ms, until_ms; /* ACRE_TIMELINE_NEVER: it does not end */
};
/* What is held or reserved. Where there is less than that, all there is is gone. */
void timeline_occupy(struct timeline *timeline, const struct timeline_use *use);

/* What a job needs of a node of one kind. */
struct timeline_need {
    uint64_t slots; /* that could serve it */
    uint32_t milli; /* of each device it takes */
    bool serves;    /* false: this kind cannot */
};
struct timeline_ask {
    uint32_t replicas; /* placed at one time, each on one node */
    uint32_t gpus;     /* devices a replica; 0: CPU and RAM only */
    uint32_t cpu_milli, ram_mib;
    uint64_t duration_ms;              /* at least 1 */
    uint64_t not_before_ms;            /* 0: now */
    const struct timeline_need *needs; /* by kind */
    uint32_t kind_count;
};
struct timeline_spot {
    uint32_t node;
    uint64_t slots;
};
/* Find the earliest time and take it. `spots` (one a replica) may be NULL. False: never fits. The
 * time is the earliest in clusters of up to 128 nodes; in larger ones a place is good enough when
 * the 128 likeliest nodes have none that is earlier. */
bool timeline_fit(struct timeline *timeline, const struct timeline_ask *ask,
                  struct timeline_spot *spots, uint64_t *ret_start_ms);
/* The earliest time on one node, judged alone; nothing is taken. ACRE_TIMELINE_NEVER. */
uint64_t timeline_earliest_on(struct timeline *timeline, uint32_t node,
                              const struct timeline_ask *ask);
/* How many times a node was searched: what the time it took goes with. */
uint64_t timeline_searches(const struct timeline *timeline);

#endif
