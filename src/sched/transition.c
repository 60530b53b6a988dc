/* transition.c - the life of a job as one table, and reporting each step.
 *
 * Everything that changes a state goes through job_move, which also keeps the counts; what the
 * table does not have cannot happen. Facts that come late find no row and are ignored by their
 * callers, commands are answered ACRE_ECONFLICT. */
#include "sched/inner.h"

/* clang-format off */
#define TRANSITIONS(X)                                  \
    /* from        event     to                       */ \
    X(QUEUED,     PLACE,    SCHEDULED)                  \
    X(QUEUED,     CANCEL,   CANCELED)                   \
    X(SCHEDULED,  DISPATCH, ALLOCATING)                 \
    X(SCHEDULED,  START,    RUNNING)                    \
    X(ALLOCATING, START,    RUNNING)                    \
    X(PREEMPTED,  START,    PREEMPTED)                  \
    X(SCHEDULED,  PREEMPT,  PREEMPTED)                  \
    X(ALLOCATING, PREEMPT,  PREEMPTED)                  \
    X(RUNNING,    PREEMPT,  PREEMPTED)                  \
    X(SCHEDULED,  REQUEUE,  QUEUED)                     \
    X(SCHEDULED,  COMPLETE, COMPLETED)                  \
    X(SCHEDULED,  FAIL,     FAILED)                     \
    X(SCHEDULED,  CANCEL,   CANCELED)                   \
    X(ALLOCATING, REQUEUE,  QUEUED)                     \
    X(ALLOCATING, COMPLETE, COMPLETED)                  \
    X(ALLOCATING, FAIL,     FAILED)                     \
    X(ALLOCATING, CANCEL,   CANCELED)                   \
    X(RUNNING,    REQUEUE,  QUEUED)                     \
    X(RUNNING,    COMPLETE, COMPLETED)                  \
    X(RUNNING,    FAIL,     FAILED)                     \
    X(RUNNING,    CANCEL,   CANCELED)                   \
    X(PREEMPTED,  REQUEUE,  QUEUED)                     \
    X(PREEMPTED,  COMPLETE, COMPLETED)                  \
    X(PREEMPTED,  FAIL,     FAILED)                     \
    X(PREEMPTED,  CANCEL,   CANCELED)
/* clang-format on */

/* 1 + the state after; 0: cannot happen. */
static const uint8_t table[ACRE_JOB_STATE_COUNT][MOVE_COUNT] = {
#define X(from, event, to) [ACRE_JOB_##from][MOVE_##event] = 1 + ACRE_JOB_##to,
    TRANSITIONS(X)
#undef X
};

bool job_move(struct acre_sched *sched, struct job *job, enum transition event) {
    ACRE_ASSERT(job->state < ACRE_JOB_STATE_COUNT && (unsigned)event < MOVE_COUNT);
    if (table[job->state][event] == 0) {
        return false;
    }
    enum acre_job_state to = (enum acre_job_state)(table[job->state][event] - 1);
    ACRE_ASSERT(sched->counts.jobs[job->state] > 0);
    sched->counts.jobs[job->state]--;
    job->state = (uint8_t)to;
    if (acre_job_state_is_live(to)) {
        sched->counts.jobs[to]++;
    }
    return true;
}

void tell(struct acre_sched *sched, enum acre_sched_event_kind kind, uint64_t now_ms, uint64_t job,
          uint64_t other) {
    ACRE_ASSERT(job != 0);
    if (sched->event != NULL) {
        struct acre_sched_event event = {kind, now_ms, job, other};
        sched->event(sched->context, &event);
    }
}

void act(struct acre_sched *sched, enum acre_sched_action_kind kind, const struct job *job) {
    ACRE_ASSERT(job->run != NONE && job_run(sched, job)->attempt > 0);
    if (sched->action != NULL) {
        struct acre_sched_action action = {kind, job->id, job_run(sched, job)->attempt};
        sched->action(sched->context, &action);
    }
}
