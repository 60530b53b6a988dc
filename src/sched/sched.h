/* sched.h - the queue: who goes next, who waits and why, who must yield.
 *
 * Pure: no I/O, no clock (callers pass now_ms), no threads, no randomness; the same calls in the
 * same order give the same events and actions. Core thread only. It decides; the ledger accounts;
 * engines start and stop. A failed call has changed nothing.
 *
 * Every change is reported as an event, in order, before the call returns: the caller commits them
 * (the job's row as acre_sched_find shows it then), and only then carries out the actions reported
 * with them. Facts from engines name a run by (job, attempt) and may come late, twice or never:
 * what does not fit the job's state is ignored. */
#ifndef ACRE_SCHED_SCHED_H
#define ACRE_SCHED_SCHED_H

#include "sched/job.h"
#include "sched/policy.h"

struct acre_sched;

/* clang-format off */
#define ACRE_SCHED_EVENTS(X)                                                              \
    /* name        text                what happened to the job (its row has changed)  */ \
    X(SUBMITTED,   "job submitted")                                                       \
    X(SCHEDULED,   "job scheduled")    /* has a place                                  */ \
    X(DISPATCHED,  "job launched")     /* committed; the engine is being asked         */ \
    X(STARTED,     "job started")                                                         \
    X(COMPLETED,   "job completed")                                                       \
    X(FAILED,      "job failed")                                                          \
    X(CANCELING,   "job canceling")    /* was holding GPUs; told to end                */ \
    X(CANCELED,    "job canceled")                                                        \
    X(PREEMPTED,   "job preempted")    /* other: the job it makes room for             */ \
    X(RECLAIMED,   "job reclaimed")    /* idle too long; told to end, goes back        */ \
    X(IDLE,        "job idle")         /* its owner is to be warned                    */ \
    X(REQUEUED,    "job requeued")     /* after preemption, loss or a failed run       */ \
    X(HELD,        "job held")                                                            \
    X(RELEASED,    "job released")                                                        \
    X(PRIORITY,    "job priority")                                                        \
    X(CHANGED,     "job changed")      /* another field (a dependency met, a smaller request) */
/* clang-format on */
enum acre_sched_event_kind {
#define X(name, text) ACRE_SCHED_##name,
    ACRE_SCHED_EVENTS(X)
#undef X
};
const char *acre_sched_event_name(enum acre_sched_event_kind kind);

struct acre_sched_event {
    enum acre_sched_event_kind kind;
    uint64_t now_ms;
    uint64_t job;
    uint64_t other; /* 0: none */
};

#define ACRE_SCHED_ACTIONS(X)                                                                      \
    X(START, "start")           /* run (job, attempt) on its allocation */                         \
    X(CHECKPOINT, "checkpoint") /* the warning signal; TERMINATE comes after the grace */          \
    X(TERMINATE, "terminate")   /* SIGTERM, and SIGKILL after the engine's own grace */            \
    X(KILL, "kill")             /* at once, the whole tree */                                      \
    X(FORGET, "forget")         /* its end is recorded: the engine may drop its record */
enum acre_sched_action_kind {
#define X(name, text) ACRE_ACTION_##name,
    ACRE_SCHED_ACTIONS(X)
#undef X
};
struct acre_sched_action {
    enum acre_sched_action_kind kind;
    uint64_t job;
    uint32_t attempt;
};

struct acre_sched_options {
    struct acre_ledger *ledger;       /* borrowed; nodes may be added later */
    const struct acre_policy *policy; /* NULL: the default; copied */
    void (*event)(void *context, const struct acre_sched_event *event);
    void (*action)(void *context, const struct acre_sched_action *action);
    void *context;
};

struct acre_sched *acre_sched_create(const struct acre_sched_options *options);
void acre_sched_destroy(struct acre_sched *sched); /* NULL is fine; the ledger stays */

/* Commands. ACRE_EINVALID (a bad field), ACRE_ENOFIT (could never run here: the reason),
 * ACRE_EDENIED (hard quota, with the numbers), ACRE_ENOTFOUND (no live job of that id: ask the
 * record), ACRE_ECONFLICT (not in this state). */
int acre_sched_submit(struct acre_sched *sched, const struct acre_job_spec *spec, uint64_t now_ms,
                      struct acre_error *err);
int acre_sched_cancel(struct acre_sched *sched, uint64_t job, uint64_t now_ms,
                      struct acre_error *err);
int acre_sched_hold(struct acre_sched *sched, uint64_t job, uint64_t now_ms,
                    struct acre_error *err);
int acre_sched_release(struct acre_sched *sched, uint64_t job, uint64_t now_ms,
                       struct acre_error *err);
int acre_sched_set_priority(struct acre_sched *sched, uint64_t job, enum acre_job_priority priority,
                            uint64_t now_ms, struct acre_error *err);
void acre_sched_set_policy(struct acre_sched *sched, const struct acre_policy *policy,
                           uint64_t now_ms);
/* The ledger changed from outside (a node came, a device was drained or freed, a reservation). */
void acre_sched_ledger_changed(struct acre_sched *sched);
/* Paused: nothing new is placed; what runs goes on. */
void acre_sched_pause(struct acre_sched *sched, bool paused);

/* Facts from engines. */
void acre_sched_dispatched(struct acre_sched *sched, uint64_t job, uint32_t attempt,
                           uint64_t now_ms);
void acre_sched_started(struct acre_sched *sched, uint64_t job, uint32_t attempt, uint64_t now_ms);
void acre_sched_exited(struct acre_sched *sched, uint64_t job, uint32_t attempt,
                       const struct acre_job_exit *exit, uint64_t now_ms);
/* Mean GPU utilisation of the run since the last sample (POL-8). */
void acre_sched_sampled(struct acre_sched *sched, uint64_t job, uint32_t attempt,
                        uint32_t use_milli, uint64_t now_ms);

/* Decide: place what can be placed, plan preemptions. Cheap when nothing changed since the last
 * one. Returns how many jobs were placed. Call it after commands and facts, and when
 * acre_sched_next_ms says so. Looks at `tries_max` distinct requests at most (0: no limit). */
uint32_t acre_sched_pass(struct acre_sched *sched, uint64_t now_ms, uint32_t tries_max);
/* When something happens by itself (a begin time, a back-off, a grace, ageing that matters);
 * UINT64_MAX: never. acre_sched_pass at that time handles it. */
uint64_t acre_sched_next_ms(const struct acre_sched *sched);

/* Put back a live job as it was recorded: queued ones wait again, others take exactly `parts`
 * again (ACRE_ECONFLICT when they no longer fit: the caller decides). No event is told. Jobs come
 * in order of id. */
int acre_sched_restore(struct acre_sched *sched, const struct acre_job *job,
                       const struct acre_part *parts, uint32_t part_count, uint64_t now_ms,
                       struct acre_error *err);

/* False: no such job. An ended job is found until acre_sched_drop. */
bool acre_sched_find(const struct acre_sched *sched, uint64_t job, struct acre_job *ret_job);
/* How many jobs of this array are found. */
uint32_t acre_sched_members(const struct acre_sched *sched, uint64_t array);
/* Let go of an ended job (its row is committed). */
void acre_sched_drop(struct acre_sched *sched, uint64_t job);
/* Live jobs in the order they would be considered: running ones first, by id, then the queue in
 * policy order, then those who may not start yet, by id. Start with *cursor 0; false at the end.
 * The cursor is good until a change. */
bool acre_sched_walk(const struct acre_sched *sched, uint64_t *cursor, struct acre_job *ret_job);

struct acre_sched_counts {
    uint32_t jobs[ACRE_JOB_STATE_COUNT]; /* live states only */
    uint32_t held, waiting_dependency, waiting_begin, waiting_retry;
    uint32_t eligible; /* queued and may start now */
};
void acre_sched_counts(const struct acre_sched *sched, struct acre_sched_counts *ret_counts);

size_t acre_sched_bytes(const struct acre_sched *sched); /* memory held, the ledger's not counted */
/* Every invariant, for tests and the simulator: it walks everything. ACRE_EINTERNAL. */
int acre_sched_check(const struct acre_sched *sched, struct acre_error *err);

#endif
