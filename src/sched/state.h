/* state.h - the scheduler as a whole, and what its parts ask of each other. Private to src/sched;
 * core thread only. records.h has the records and their invariants. */
#ifndef ACRE_SCHED_STATE_H
#define ACRE_SCHED_STATE_H

#include "sched/records.h"

/* The head's reservation (POL-6): the first job in order that does not fit starts at `start_ms` at
 * the latest, on the place the outlook shows; nothing later in order may delay that. */
struct shadow {
    uint64_t head;     /* job; 0: nobody waits for room */
    uint64_t start_ms; /* UINT64_MAX: not known (nothing that runs makes room) */
    uint64_t hash;     /* of the head's class */
    uint64_t mark;     /* differs when the place does */
    bool is_stale;     /* the place or the time may have changed since */
    bool is_complete;  /* false: looked only as far as `start_ms`; the place is not known yet */
    struct acre_outlook *outlook; /* NULL: none */
};

/* A job whose dependency failed. */
struct doomed {
    uint64_t job, because;
};

struct timer {
    uint64_t at_ms;
    uint64_t job;
};

/* What made lines wait: a quota of a user or project, or one of these. */
enum { BLOCKER_PASS, BLOCKER_TIME, BLOCKER_FIRST_NAMED };
struct blocker {
    uint32_t first; /* parked line */
};

/* The last attempt to preempt for the head. */
struct preempting {
    uint32_t priority; /* of the head it was made for */
    uint64_t again_ms; /* not before, but for a higher one */
};

enum {
    FREED_MAX = 16, /* more than that and everything is tried: one gang may free hundreds */
};

struct acre_sched {
    struct acre_ledger *ledger;
    struct acre_policy policy;
    struct accounts *accounts;
    struct forecast *forecast;
    struct acre_burdens *burdens;
    void (*event)(void *context, const struct acre_sched_event *event);
    void (*action)(void *context, const struct acre_sched_action *action);
    void *context;
    bool paused;
    uint64_t last_id; /* of any job seen */

    struct job *jobs;
    uint32_t job_limit, job_capacity, job_free; /* free records are linked through `array` */
    struct acre_map job_of_id;
    struct run *runs;
    uint32_t run_limit, run_capacity, run_free; /* through `newer` */
    struct edge *edges;
    uint32_t edge_limit, edge_capacity, edge_free; /* through `next_need` */
    struct array *arrays;
    uint32_t array_limit, array_capacity, array_free; /* through `open` */
    struct acre_map array_of_id;
    struct job_class *classes;
    uint32_t kind_count; /* of nodes, when the classes were last weighed */
    uint32_t class_limit, class_capacity, class_free; /* through `waiting` */
    struct acre_map class_of_hash;
    struct line *lines;
    uint32_t line_limit, line_capacity, line_free; /* through `next` */
    struct acre_map line_of_pair;                  /* (account + 1) << 32 | class */
    struct owner *owners;                          /* by account */
    uint32_t owner_count, owner_capacity;
    uint64_t *open_lines; /* by account: a bit per class with a line that is not parked */
    uint32_t open_words;  /* a row's length */

    struct tree order;   /* jobs in line or promised, by key; empty with fair share */
    struct tree aside;   /* queued, may not start; by id */
    struct tree holding; /* by id */
    struct tree ends;    /* holding, by expected end */
    uint32_t newest[ACRE_PRIORITY_CRITICAL + 1]; /* holding, by priority; first of a list */

    uint32_t *ranking; /* fair share: accounts with jobs in order, next first */
    uint32_t ranking_count, ranking_capacity;
    uint64_t ranked_ms; /* when levels were last computed */

    struct blocker *blockers; /* who parked lines; the first two are not users or projects */
    uint32_t blocker_count, blocker_capacity;
    struct acre_map blocker_of_name; /* (1 user, 2 project) << 32 | name */

    uint32_t freed[FREED_MAX]; /* nodes where something was freed since the last pass */
    uint32_t freed_count;
    bool all_changed;  /* anything may fit now */
    bool is_dirty;     /* something changed since the last pass */
    bool has_open;     /* a class in CLASS_OPEN may have jobs in line */
    bool has_more;     /* the last pass ended at its limit of tries */
    bool has_behind;   /* a class is in CLASS_BEHIND, */
    uint32_t behind_s; /* and what takes longer than this was too long for it */
    uint64_t wake_ms;  /* when to look again though nothing happened; UINT64_MAX: never */
    struct shadow shadow;
    struct preempting preempting;
    uint8_t newest_priority; /* highest that joined since the last attempt to preempt */

    struct promise *promises;
    uint32_t promise_count, promise_capacity;
    struct timer *timers; /* heap, soonest first; entries may be out of date */
    uint32_t timer_count, timer_capacity;
    struct doomed *doomed; /* to be canceled */
    uint32_t doomed_count, doomed_capacity;
    uint64_t *due_arrays; /* ids of arrays that may put another member in line */
    uint32_t due_array_count, due_array_capacity;
    uint64_t *idle; /* runs that were told that they idle */
    uint32_t idle_count, idle_capacity;
    uint64_t idle_again_ms;
    uint64_t *repeat; /* restored jobs whose last action may not have been carried out */
    uint32_t repeat_count, repeat_capacity;

    struct acre_part *parts; /* scratch */
    uint32_t part_capacity;
    struct acre_dependency *shown; /* dependencies of the job shown last */
    struct acre_sched_counts counts;
};

/* job.c */
struct job *job_find(const struct acre_sched *sched, uint64_t id); /* NULL: unknown */
void job_show(const struct acre_sched *sched, const struct job *job, struct acre_job *ret_job);
/* The spec as it is now, without dependencies. */
void job_show_spec(const struct acre_sched *sched, const struct job *job,
                   struct acre_job_spec *ret_spec);
/* How long a run of it is expected to take (forecast.h). */
uint64_t job_predicted_ms(const struct acre_sched *sched, const struct job *job);
static inline uint32_t job_index(const struct acre_sched *sched, const struct job *job) {
    return (uint32_t)(job - sched->jobs);
}
static inline struct run *job_run(const struct acre_sched *sched, const struct job *job) {
    return job->run != NONE ? &sched->runs[job->run] : NULL;
}

/* order.c: STAND_LINE and STAND_PROMISED are in the order; how many stand before this one there.
 * With fair share the ranking of the last pass counts. */
bool order_has(const struct job *job);
uint32_t order_ahead(const struct acre_sched *sched, const struct job *job);
/* The next job in order; *cursor starts at 0; NULL at the end. Good until a change. */
const struct job *order_walk(const struct acre_sched *sched, uint64_t *cursor);
uint32_t order_length(const struct acre_sched *sched);

#endif
