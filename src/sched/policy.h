/* policy.h - the rules of the queue as one value: read from JSON, checked, printed as JSON.
 *
 * Pure; any thread. It says what the rules are; sched.h applies them. */
#ifndef ACRE_SCHED_POLICY_H
#define ACRE_SCHED_POLICY_H

#include "core/error.h"
#include "core/json.h"

/* clang-format off */
#define ACRE_POLICIES(X)                                                                        \
    /* name       text          order of the queue                                           */ \
    X(FAIR_SHARE, "fair-share", "lowest usage for its share first, then priority and age")      \
    X(PRIORITY,   "priority",   "highest priority first; waiting raises it; lower ones yield")  \
    X(FCFS,       "fcfs",       "first come, first served")                                     \
    X(SJF,        "sjf",        "shortest estimate first; waiting raises it")                   \
    X(GANG,       "gang",       "most GPUs first; waiting raises it")
/* clang-format on */
enum acre_policy_kind {
#define X(name, text, meaning) ACRE_POLICY_##name,
    ACRE_POLICIES(X)
#undef X
        ACRE_POLICY_COUNT,
};
const char *acre_policy_name(enum acre_policy_kind kind);

enum acre_idle_mode { ACRE_IDLE_ON_PRESSURE, ACRE_IDLE_ALWAYS, ACRE_IDLE_NEVER };

enum {
    ACRE_POLICY_SHARES_MAX = 256, /* projects and users with a share of their own */
    ACRE_POLICY_QUOTAS_MAX = 256,
    ACRE_POLICY_NAME_MAX = 64,
    ACRE_POLICY_BYTES_MAX = 256 * 1024,
    ACRE_POLICY_JOBS_MAX = 100 * 1000 * 1000, /* of limits: more than any daemon holds */
};

/* Who may use how much at once. 0 in a field: no limit. Whom: "user:ada", "project:vision",
 * "user:*" or "project:*" for those not named. */
struct acre_quota {
    char who[ACRE_POLICY_NAME_MAX + 16];
    uint64_t gpu_milli; /* held at once */
    uint64_t gpu_mib;
    uint32_t running;
    uint32_t queued; /* live jobs that do not run; always hard: a submission above it is refused */
    uint64_t gpu_hours; /* decayed use, over the half-life window */
    bool soft;          /* may be passed while nobody else wants it; first to be preempted */
};

struct acre_share {
    char who[ACRE_POLICY_NAME_MAX + 16]; /* "project:vision" or "user:ada" */
    uint32_t weight;                     /* 1 when not named */
};

/* What one user may take of the daemon itself, so that nobody can fill its memory or its disk, or
 * shut the others out. Operators and administrators are not held to them. */
struct acre_user_limits {
    uint32_t queued_jobs;  /* live jobs that do not run: 10,000 */
    uint64_t queued_mib;   /* live jobs were submitted with; an array's counts once: 64 MiB */
    uint32_t array;        /* members of one array: 1,000 (it is made in one step: others wait) */
    uint32_t names;        /* distinct names of live jobs: 10,000 */
    uint32_t tokens;       /* that are good: 100 */
    uint32_t followers;    /* logs and events followed at once: 128 */
    uint32_t connections;  /* of one user on the socket, or from one address: 200 */
    uint64_t logs_mib;     /* of all runs together; the oldest ended ones go first: 10 GiB */
    uint64_t grace_ms;     /* the most a job may ask for between SIGTERM and SIGKILL: 10 min */
    uint32_t memory_milli; /* of the machine's RAM, for a job that does not say: half */
};

struct acre_policy {
    enum acre_policy_kind kind;
    bool backfill; /* EASY: later jobs pass if they do not delay the head's reservation */
    bool preemption;
    uint64_t half_life_ms;        /* of recorded use: 7 d */
    uint64_t priority_age_ms;     /* waiting so long is worth one level of priority: 24 h */
    uint64_t preempt_min_run_ms;  /* a job that runs for less is not preempted: 1 min */
    uint64_t preempt_grace_ms;    /* between the checkpoint signal and SIGTERM: 30 s */
    uint64_t retry_base_ms;       /* first back-off: 10 s, doubling */
    uint64_t retry_max_ms;        /* 30 min */
    uint64_t default_estimate_ms; /* of a job without estimate and limit: 1 h */
    enum acre_idle_mode idle;
    uint32_t idle_below_milli; /* utilisation: 50 = 5 % */
    uint64_t idle_after_ms;    /* 10 min */
    uint64_t idle_warn_ms;     /* warned so long before: 2 min */
    bool private_processes;    /* jobs see no processes but their own */
    struct acre_user_limits limits;
    struct acre_quota quotas[ACRE_POLICY_QUOTAS_MAX];
    uint32_t quota_count;
    struct acre_share shares[ACRE_POLICY_SHARES_MAX];
    uint32_t share_count;
};

const struct acre_policy *acre_policy_default(void);

/* {"policy": "fair-share", "backfill": true, "preemption": true, "half_life": "7d", ...,
 *  "max_queued_jobs": 10000, "max_logs": "10GiB", "max_grace": "10m", "default_memory": 0.5, ...,
 *  "quotas": [{"who": "user:*", "gpus": 4, "memory": "160GiB", "running": 8, "queued": 1000,
 *              "gpu_hours": 500, "soft": true}],
 *  "shares": [{"who": "project:vision", "weight": 3}]}
 * Every key is optional and keeps its value of `base`; lists are replaced whole. Unknown keys,
 * wrong types, numbers out of range, a name twice: ACRE_EINVALID naming key, value and choices. */
int acre_policy_read(const json_t *object, const struct acre_policy *base,
                     struct acre_policy *ret_policy, struct acre_error *err);
int acre_policy_load(const char *name, struct acre_str text, const struct acre_policy *base,
                     struct acre_policy *ret_policy, struct acre_error *err);
void acre_policy_write(const struct acre_policy *policy, struct acre_json *json); /* an object */

#endif
