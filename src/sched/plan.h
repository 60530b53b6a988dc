/* plan.h - the timeline of everything that runs and waits, as it is kept between questions.
 *
 * Private to src/sched; core thread only. forecast.c owns it and notes what happens, plan.c makes
 * it, when.c reads it. */
#ifndef ACRE_SCHED_PLAN_H
#define ACRE_SCHED_PLAN_H

#include "core/map.h"
#include "sched/inner.h"
#include "sched/timeline.h"

struct plan_entry {
    uint64_t start_ms, end_ms;
};

/* An array of which only so many run at once: when its members end, soonest first. */
struct gate {
    uint32_t array;
    uint32_t next; /* the end that lets the next one in */
    uint32_t count, capacity;
    uint64_t *ends_ms;
};

/* A hard quota: a node of the timeline `purses`. */
struct purse {
    uint64_t not_before_ms; /* its GPU-hours are used up until then */
    /* The last one who looked: who asks for as much, for as long, starts no sooner. */
    struct account_load load;
    uint64_t duration_ms, start_ms;
};

struct plan {
    struct timeline *timeline; /* NULL: none yet */
    struct timeline *purses;
    struct acre_map purse_of_party; /* party + 1 */
    struct purse *purse;
    uint32_t purse_count, purse_capacity;
    struct gate *gates;
    uint32_t gate_count, gate_capacity;
    struct acre_map entry_of_job;
    struct plan_entry *entries;
    uint32_t entry_count, entry_capacity;
    uint32_t running_count; /* of the entries, those that hold GPUs */
    uint32_t queued_count;  /* jobs of the queue that were looked at, in its order */
    uint64_t last_start_ms; /* the latest of these */
    uint64_t built_ms;
    uint64_t good_until_ms; /* somebody should have ended by then */
    bool is_stale;          /* something changed since */
    uint64_t *joined;       /* submitted since, in order */
    uint32_t joined_count, joined_capacity;
};

void plan_finish(struct plan *plan);
size_t plan_bytes(const struct plan *plan);
/* NULL: not in the plan. */
const struct plan_entry *plan_find(const struct plan *plan, uint64_t job);

/* Make the plan of this scheduler anew. */
void plan_make(struct acre_sched *sched, uint64_t now_ms);
/* Put those who were submitted since behind the others. */
void plan_add_joined(struct acre_sched *sched, uint64_t now_ms);

#endif
