/* plan.h - the timeline of everything that runs and waits, as when.c keeps it between questions.
 *
 * Private to src/sched: forecast.c owns it and notes what happens, when.c fills and reads it. */
#ifndef ACRE_SCHED_PLAN_H
#define ACRE_SCHED_PLAN_H

#include "sched/map.h"
#include "sched/timeline.h"

struct plan_entry {
    uint64_t start_ms, end_ms;
};

struct acre_plan {
    struct acre_timeline *timeline; /* NULL: none yet */
    struct map entry_of_job;
    struct plan_entry *entries;
    uint32_t entry_count, entry_capacity;
    uint32_t running_count; /* of the entries, those that hold GPUs */
    uint32_t queued_count;  /* of the entries, those placed in order of the queue */
    uint64_t last_start_ms; /* the latest of these */
    uint64_t built_ms;
    uint64_t good_until_ms; /* somebody should have ended by then */
    bool is_stale;          /* something changed since */
    uint64_t *joined;       /* submitted since, in order */
    uint32_t joined_count, joined_capacity;
};

void acre_plan_finish(struct acre_plan *plan);
/* NULL: not in the plan. */
const struct plan_entry *acre_plan_find(const struct acre_plan *plan, uint64_t job);
void acre_plan_add(struct acre_plan *plan, uint64_t job, uint64_t start_ms, uint64_t end_ms);

#endif
