/* replay.h - submits recorded jobs to our own scheduler in virtual time.
 *
 * Pure except for the progress call. The scheduler, the ledger and the policies are the daemon's;
 * only the engine (a run lasts as long as recorded) and the clock are simulated. A preempted job
 * resumes where it stopped, as a job with checkpoints would. */
#ifndef ACRE_SIM_REPLAY_H
#define ACRE_SIM_REPLAY_H

#include "sched/policy.h"
#include "sim/job_trace.h"

/* The policies by the names people know them by, from 0 on; NULL past the last. */
struct acre_replay_policy {
    const char *name;
    const char *meaning;
    enum acre_policy_kind kind;
    bool backfill;
    bool preemption;
};
const struct acre_replay_policy *acre_replay_policy(size_t index);

/* What the scheduler is told of a job's duration. */
#define ACRE_REPLAY_ESTIMATES(X)                                                                   \
    X(TRUE, "true")   /* the duration itself */                                                    \
    X(ROUGH, "rough") /* 1 to 5 times the duration, by the job's number: what users do */          \
    X(NONE, "none")   /* nothing */
enum acre_replay_estimates {
#define X(name, text) ACRE_REPLAY_##name,
    ACRE_REPLAY_ESTIMATES(X)
#undef X
};

struct acre_replay_options {
    const struct acre_replay_policy *policy;
    uint32_t nodes;
    uint32_t gpus_per_node; /* 1 ... 64 */
    enum acre_replay_estimates estimates;
    void (*progress)(void *context, uint32_t submitted, uint32_t jobs);
    void *context;
};

struct acre_replay_times {
    double mean_s, p50_s, p99_s, max_s;
};

enum { ACRE_REPLAY_CURVE = 400 }; /* points of the curve over time */

struct acre_replay_result {
    const char *policy;
    uint32_t jobs;
    uint32_t never; /* refused: could not run on these nodes */
    uint32_t preemptions;
    uint64_t passes;
    double load; /* GPU time asked for / GPU time there was, first to last submission */
    double use;  /* GPU time given / GPU time there was, first to last submission */
    double makespan_days;
    struct acre_replay_times wait, completion;
    char longest_wait[65]; /* cluster of the job that waited longest */
    double jain;          /* over clusters: what it got of what max-min fairness would have given */
    double jain_slowdown; /* over clusters: mean of (wait + run) / max(run, 1 min) */
    /* The estimate that every 64th job got when it was submitted and could not start at once.
     */
    uint32_t estimates;
    double eta_median_abs_s, eta_p90_abs_s, eta_mean_s; /* actual minus estimated start */
    double eta_inside; /* part of the starts inside their interval; 0.9 is what is promised */
    double waiting_curve[ACRE_REPLAY_CURVE]; /* queued GPUs / GPUs, over the time of submissions */
};

/* ACRE_EINVALID: nodes or GPUs out of range. */
int acre_replay_run(const struct acre_job_trace *trace, const struct acre_replay_options *options,
                    struct acre_replay_result *ret_result, struct acre_error *err);

#endif
