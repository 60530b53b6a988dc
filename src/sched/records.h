/* records.h - the records the scheduler is made of: jobs, runs, classes, lines. Private to
 * src/sched; core thread only.
 *
 * A job is a record of its own index (stable while the job is known; found by id through a map).
 * What only a job that was placed has is in its run. Requests are interned as classes: jobs of one
 * class fit or do not fit together. The jobs of one account and class that may start stand in one
 * line, in the order of their keys. All orders are trees (tree.h) over indexes.
 *
 * Invariants, checked by check.c:
 * - Every live job is in exactly one tree by its `in_order` links: `holding` (by id) when it holds
 *   GPUs; the order of its account (fair share) or the one order (all other policies), by key, when
 *   it stands in STAND_LINE or STAND_PROMISED; `aside` (by id) otherwise.
 * - By its `in_line` links it is in its line (STAND_LINE, by key) or in `ends` (STAND_HOLDING, by
 *   key, which then is the expected end) or in none.
 * - A job holds an allocation in the ledger exactly when its state holds GPUs; owner is its id.
 * - A line exists exactly while it has jobs. It is in its class's tree of lines unless a quota
 *   parked it. */
#ifndef ACRE_SCHED_RECORDS_H
#define ACRE_SCHED_RECORDS_H

#include "core/map.h"
#include "ledger/outlook.h"
#include "sched/account.h"
#include "sched/forecast.h"
#include "sched/sched.h"
#include "sched/tree.h"

#define NONE UINT32_MAX

/* Where a live job stands; in the order of what must be cured first. */
enum stand {
    STAND_HELD,       /* by its owner */
    STAND_DEPENDENCY, /* open dependencies */
    STAND_BEGIN,      /* begin_ms is ahead */
    STAND_RETRY,      /* not_before_ms is ahead */
    STAND_ARRAY,      /* as many of its array as may are running or in line */
    STAND_LINE,       /* may start */
    STAND_PROMISED,   /* others yield for it: its place is kept */
    STAND_HOLDING,    /* scheduled ... preempted */
    STAND_ENDED,      /* until acre_sched_drop */
    STAND_COUNT,
};

/* What trees and passes read is in the first cache line; records begin on one (acre_grow_table). */
struct job {
    uint64_t id; /* 0: this record is free */
    int64_t key; /* smaller first; while holding: when its run is expected to end */
    struct tree_links in_order, in_line;
    uint32_t duration_s; /* limit, else estimate, else the policy's default; for plans */
    uint32_t class;
    uint32_t line; /* NONE unless STAND_LINE */
    uint8_t stand, state, priority;
    bool held;

    uint32_t account;
    uint32_t run;   /* NONE until it was placed */
    uint32_t array; /* NONE: of no array */
    uint32_t array_index;
    uint32_t needs, needed_by; /* first edges: what it waits for, who waits for it */
    uint32_t user, project, name;
    uint8_t max_retries, retries;
    bool fixed, smaller_on_oom, canceling;
    uint64_t submitted_ms, eligible_ms, begin_ms, not_before_ms, estimate_ms, limit_ms;
    uint32_t bytes, zero[7]; /* to a multiple of cache lines */
};
_Static_assert(offsetof(struct job, account) == 64 && sizeof(struct job) == 192, "cache lines");

/* The runs of a job: the last one, and sums over the earlier ones. */
struct run {
    uint32_t attempt, preemptions;
    uint64_t scheduled_ms, started_ms, ended_ms, run_ms;
    uint64_t allocation, preempted_for;
    struct account_load load; /* what it holds, as its account was told */
    struct acre_job_exit exit;
    uint64_t idle_since_ms; /* 0: not idle */
    uint64_t reclaim_ms;    /* warned: when it may be told to yield */
    uint64_t stop_ms;       /* PREEMPTED: when TERMINATE follows; 0: it did */
    uint32_t newer, older;  /* STAND_HOLDING: list of its priority, latest first */
    bool idle_warned, reclaimed, killed;
    bool is_listed; /* its job is in sched.idle */
    bool is_extra;  /* over a soft quota when it was placed: others of its owner are within */
};

/* One dependency that is still open. */
struct edge {
    uint32_t waiter, target;
    uint32_t next_need;            /* of the waiter */
    uint32_t next_by, previous_by; /* of the target */
    uint8_t kind;
};

struct array {
    uint64_t id;
    uint32_t limit;       /* 0: none */
    uint32_t user, bytes; /* whose burden it is (burden.h) */
    uint32_t members;     /* live ones */
    uint32_t open;        /* of these, in line, promised or holding */
    struct tree waiting;  /* STAND_ARRAY, by id */
};

enum class_state {
    CLASS_OPEN,   /* untried since something changed for it */
    CLASS_SHUT,   /* the ledger had no place, and nothing that helps was freed since */
    CLASS_BEHIND, /* there is a place, but taking it would delay the head */
};

struct job_class {
    struct acre_request request; /* owner, tenant, expiry: 0 */
    uint64_t hash;
    uint32_t jobs;    /* known ones; 0: this record is free */
    uint32_t waiting; /* jobs in lines */
    struct account_load load;
    struct tree lines; /* by their first jobs; not the parked ones */
    uint8_t state;
    bool is_local;   /* open because of sched.freed alone: there is no room elsewhere, */
    bool was_behind; /* but, with this, in the head's place */
};

struct line {
    uint32_t account, class;
    struct tree jobs;
    uint32_t first; /* of jobs, with its key and id */
    int64_t first_key;
    uint64_t first_id;
    int64_t filed_key; /* as filed in its class: not after its first job, put right when met */
    uint64_t filed_id;
    uint32_t filed_s; /* likewise: not above its shortest job */
    struct tree_links in_class;
    uint32_t next;    /* free record */
    uint32_t blocker; /* parked by this blocker's quota; NONE: not parked */
    uint32_t next_parked, previous_parked;
};

/* What the scheduler keeps beside account.h, by account. */
struct owner {
    struct tree order; /* fair share: its jobs in line or promised, by key */
    bool is_ranked;    /* in sched.ranking */
    double level;      /* as of the ranking */
    double per_milli;  /* what holding a milli-GPU adds to it */
    uint64_t held_milli;
};

/* A place kept for a job until those who yield for it are gone (preempt.c). */
struct promise {
    uint64_t job;
    uint32_t waiting_for;         /* runs that have not ended */
    struct acre_outlook *outlook; /* the place */
};

#endif
