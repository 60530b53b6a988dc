/* job.h - what a job is to the scheduler: what was asked, where it stands, how it ended.
 *
 * Plain values, no behavior; any thread may read a copy. The command, environment and files of a
 * job are not here: the caller that starts it keeps those. Times are wall-clock ms, 0 for "not
 * yet". */
#ifndef ACRE_SCHED_JOB_H
#define ACRE_SCHED_JOB_H

#include "ledger/ledger.h"

/* clang-format off */
#define ACRE_JOB_STATES(X)                                                              \
    /* name        text          live   holds GPUs                                   */ \
    X(QUEUED,      "queued",     true,  false)                                          \
    X(SCHEDULED,   "scheduled",  true,  true)  /* place decided, being committed     */ \
    X(ALLOCATING,  "allocating", true,  true)  /* the engine was asked to start it   */ \
    X(RUNNING,     "running",    true,  true)                                           \
    X(PREEMPTED,   "preempted",  true,  true)  /* told to stop; goes back to queued  */ \
    X(COMPLETED,   "completed",  false, false)                                          \
    X(FAILED,      "failed",     false, false)                                          \
    X(CANCELED,    "canceled",   false, false)
/* clang-format on */
enum acre_job_state {
#define X(name, text, live, holds) ACRE_JOB_##name,
    ACRE_JOB_STATES(X)
#undef X
        ACRE_JOB_STATE_COUNT,
};
const char *acre_job_state_name(enum acre_job_state state);
bool acre_job_state_parse(struct acre_str text, enum acre_job_state *ret_state);
bool acre_job_state_is_live(enum acre_job_state state);
bool acre_job_state_holds(enum acre_job_state state);

enum acre_job_priority {
    ACRE_PRIORITY_LOW = 1,
    ACRE_PRIORITY_NORMAL = 2,
    ACRE_PRIORITY_HIGH = 3,
    ACRE_PRIORITY_CRITICAL = 4,
};

#define ACRE_DEPENDENCIES(X)                                                                       \
    X(AFTER, "after")         /* has started, or ended */                                          \
    X(AFTER_OK, "after-ok")   /* completed; when it fails this job is canceled */                  \
    X(AFTER_ANY, "after-any") /* ended, however */
enum acre_dependency_kind {
#define X(name, text) ACRE_DEPENDENCY_##name,
    ACRE_DEPENDENCIES(X)
#undef X
};
const char *acre_dependency_name(enum acre_dependency_kind kind);

struct acre_dependency {
    uint64_t job;
    enum acre_dependency_kind kind;
    enum acre_job_state state; /* of that job, when the scheduler no longer knows it */
};

enum {
    ACRE_JOB_DEPENDENCIES_MAX = 64,
    ACRE_JOB_RETRIES_MAX = 100,
    ACRE_JOB_ARRAY_MAX = 100000, /* members of one array */
};

struct acre_job_spec {
    uint64_t id;                 /* chosen by the caller, larger than every earlier one */
    uint32_t user;               /* names of acre_ledger_names, as all below */
    uint32_t project;            /* who is charged */
    uint32_t name;               /* 0: none; the scheduler takes it for as long as it has the job */
    struct acre_request request; /* owner, tenant, expires_ms and pending are the scheduler's */
    enum acre_job_priority priority;
    uint64_t estimate_ms; /* 0: unknown */
    uint64_t limit_ms;    /* 0: none */
    uint64_t begin_ms;    /* not before; 0: at once */
    uint32_t max_retries;
    bool held;
    bool fixed;          /* never preempted (an interactive shell) */
    bool smaller_on_oom; /* the retry after an out-of-memory asks for half of each share */
    uint64_t array;      /* id of the array's first job; 0: none */
    uint32_t array_index;
    uint32_t array_limit; /* at most so many of the array run at once; 0: no limit */
    uint32_t bytes;       /* kept to start it; of all members of an array together */
    const struct acre_dependency *dependencies;
    uint32_t dependency_count;
};

/* How a run ended, as the engine saw it. */
#define ACRE_EXIT_KINDS(X)                                                                         \
    X(CODE, "exited")                 /* code: the exit status */                                  \
    X(SIGNAL, "killed")               /* code: the signal */                                       \
    X(TIME_LIMIT, "time limit")       /* the supervisor ended it; code: the signal */              \
    X(OUT_OF_MEMORY, "out of memory") /* host memory, or the GPU watchdog */                       \
    X(DEVICE_BUSY, "device busy")     /* the GPU refused the process */                            \
    X(NOT_STARTED, "not started")     /* never ran: text says why */                               \
    X(LOST, "lost")                   /* gone without a trace: node or supervisor died */
enum acre_exit_kind {
#define X(name, text) ACRE_EXIT_##name,
    ACRE_EXIT_KINDS(X)
#undef X
};
const char *acre_exit_kind_name(enum acre_exit_kind kind);

struct acre_job_exit {
    enum acre_exit_kind kind;
    int code;
    uint64_t peak_ram_mib;
    uint64_t peak_gpu_mib; /* largest sum over its processes; ACRE_UNKNOWN: nobody measured */
    uint64_t cpu_ms;
    uint64_t log_bytes;     /* it wrote to its logs */
    uint32_t gpu_use_milli; /* mean utilisation of its devices; UINT32_MAX: unknown */
};

/* One job as it stands; everything that must survive a restart. */
struct acre_job {
    struct acre_job_spec spec; /* request as it is now (a retry may have made it smaller);
                                  dependencies: those still open */
    enum acre_job_state state;
    uint32_t attempt; /* runs begun, 1 is the first; names the run together with the id */
    uint32_t retries; /* used up */
    uint32_t preemptions;
    bool canceling; /* told to end; canceled when it has */
    uint64_t submitted_ms;
    uint64_t eligible_ms;   /* waits from here on: released, dependencies met, begin reached */
    uint64_t not_before_ms; /* back-off of a retry */
    uint64_t scheduled_ms, started_ms, ended_ms; /* of the last attempt */
    uint64_t run_ms;                             /* of earlier attempts */
    uint64_t allocation;                         /* in the ledger, while it holds GPUs */
    uint64_t preempted_for;                      /* the job it made room for; 0: none */
    struct acre_job_exit exit;                   /* of the last attempt that ended */
};

#endif
