/* timeline.h - what is free on every node from now on, and the earliest place for what waits.
 *
 * A conservative plan: whoever is placed keeps his place; the next is put at the earliest time he
 * fits without moving anybody. Judged node by node and device by device, so whole nodes, several
 * GPUs and shares of one wait for what they really need. Built once, thrown away when the world has
 * changed. Pure; core thread only. It starts nothing and knows no policy: the order is the
 * caller's.
 */
#ifndef ACRE_SCHED_TIMELINE_H
#define ACRE_SCHED_TIMELINE_H

#include "core/base.h"

enum { ACRE_TIMELINE_SLOTS_MAX = 64 };
#define ACRE_TIMELINE_NEVER UINT64_MAX

struct acre_timeline;

struct acre_timeline *acre_timeline_create(uint64_t now_ms);
void acre_timeline_destroy(struct acre_timeline *timeline); /* NULL is fine */
size_t acre_timeline_bytes(const struct acre_timeline *timeline);

/* A node of equal ones (`kind`), all of this free for ever. Returns its number, from 0. */
uint32_t acre_timeline_add_node(struct acre_timeline *timeline, uint32_t kind,
                                const uint16_t *free_milli, uint32_t slot_count, uint32_t cpu_milli,
                                uint32_t ram_mib);

struct acre_timeline_hold {
    uint32_t node;
    uint64_t slots; /* a bit each; 0: CPU and RAM only */
    uint32_t milli; /* of each */
    uint32_t cpu_milli, ram_mib;
    uint64_t from_ms, until_ms; /* ACRE_TIMELINE_NEVER: it does not end */
};
/* What is held or reserved. Where there is less than that, all there is is gone. */
void acre_timeline_hold(struct acre_timeline *timeline, const struct acre_timeline_hold *hold);

/* What a job needs of a node of one kind. */
struct acre_timeline_need {
    uint64_t slots; /* that could serve it */
    uint32_t milli; /* of each device it takes */
    bool serves;    /* false: this kind cannot */
};
struct acre_timeline_ask {
    uint32_t replicas; /* placed at one time, each on one node */
    uint32_t gpus;     /* devices a replica; 0: CPU and RAM only */
    uint32_t cpu_milli, ram_mib;
    uint64_t duration_ms;                   /* at least 1 */
    uint64_t not_before_ms;                 /* 0: now */
    const struct acre_timeline_need *needs; /* by kind */
    uint32_t kind_count;
};
struct acre_timeline_place {
    uint32_t node;
    uint64_t slots;
};
/* Find the earliest time and take it. `places` (one a replica) may be NULL. False: never fits. The
 * time is the earliest in clusters of up to 128 nodes; in larger ones a place is good enough when
 * the 128 likeliest nodes have none that is earlier. */
bool acre_timeline_place(struct acre_timeline *timeline, const struct acre_timeline_ask *ask,
                         struct acre_timeline_place *places, uint64_t *ret_start_ms);
/* The earliest time on one node, judged alone; nothing is taken. ACRE_TIMELINE_NEVER. */
uint64_t acre_timeline_earliest_on(struct acre_timeline *timeline, uint32_t node,
                                   const struct acre_timeline_ask *ask);
/* How many times a node was searched: what the time it took goes with. */
uint64_t acre_timeline_searches(const struct acre_timeline *timeline);

#endif
