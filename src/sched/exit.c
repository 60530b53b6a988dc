/* exit.c - facts from engines: dispatched, started, exited; and how a job goes on from there.
 *
 * A fact names its run by job and attempt. One that does not fit (another attempt, a state without
 * devices, said before) is dropped without a word: messages come late and twice.
 *
 * What an exit means, first row that holds:
 *
 *     asked to end by its owner      canceled
 *     asked to yield                 back to the queue with its age, whatever the exit code: a job
 *                                    that saves its state on the signal usually exits with 0
 *     exited with 0                  completed
 *     lost                           back to the queue after a back-off; not its fault, so it uses
 *                                    up no retry, but no job runs more than LOST_ATTEMPTS_MAX times
 *     time limit                     failed
 *     anything else                  a retry after a back-off if one is left, else failed
 *
 * Back-off is policy.retry_base_ms, doubling with every retry up to policy.retry_max_ms. */
#include "sched/inner.h"

enum { LOST_ATTEMPTS_MAX = 100 };

static struct job *find_run(const struct acre_sched *sched, uint64_t id, uint32_t attempt) {
    struct job *job = job_find(sched, id);
    return job != NULL && job->stand == STAND_HOLDING && job_run(sched, job)->attempt == attempt
               ? job
               : NULL;
}

void acre_sched_dispatched(struct acre_sched *sched, uint64_t id, uint32_t attempt,
                           uint64_t now_ms) {
    struct job *job = find_run(sched, id, attempt);
    if (job != NULL && job_move(sched, job, MOVE_DISPATCH)) {
        tell(sched, ACRE_SCHED_DISPATCHED, now_ms, id, 0);
    }
}

void acre_sched_started(struct acre_sched *sched, uint64_t id, uint32_t attempt, uint64_t now_ms) {
    struct job *job = find_run(sched, id, attempt);
    if (job == NULL || job_run(sched, job)->started_ms != 0 || !job_move(sched, job, MOVE_START)) {
        return;
    }
    uint32_t index = job_index(sched, job);
    job_run(sched, job)->started_ms = ACRE_MAX(now_ms, UINT64_C(1));
    acre_ledger_activate(sched->ledger, job_run(sched, job)->allocation, now_ms, NULL);
    if (job->state == ACRE_JOB_RUNNING) {
        job_expect(sched, index, now_ms + duration_ms(job));
    }
    forecast_started(sched->forecast, id, now_ms);
    tell(sched, ACRE_SCHED_STARTED, now_ms, id, 0);
    depend_moved(sched, index, now_ms);
}

/* Leave wherever it stands; it is in no tree afterwards. */
static void leave(struct acre_sched *sched, uint32_t index, bool failed, uint64_t now_ms) {
    struct job *job = &sched->jobs[index];
    if (job->stand == STAND_HOLDING) {
        parts_give(sched, index, failed, now_ms);
        return;
    }
    if (job->stand == STAND_PROMISED) {
        promise_drop(sched, job->id);
    }
    queue_leave(sched, index);
    accounts_unqueue(sched->accounts, job->account);
    forecast_forget(sched->forecast, job->id);
    forecast_changed(sched->forecast);
}

void job_end(struct acre_sched *sched, uint32_t index, enum transition event, uint64_t other,
             uint64_t now_ms) {
    static const enum acre_sched_event_kind kinds[] = {
        [MOVE_COMPLETE] = ACRE_SCHED_COMPLETED,
        [MOVE_FAIL] = ACRE_SCHED_FAILED,
        [MOVE_CANCEL] = ACRE_SCHED_CANCELED,
    };
    bool held = sched->jobs[index].stand == STAND_HOLDING;
    ACRE_ASSERT(event == MOVE_COMPLETE || event == MOVE_FAIL || event == MOVE_CANCEL);
    ACRE_ASSERT(sched->jobs[index].stand != STAND_ENDED);
    depend_drop(sched, index);
    leave(sched, index, event != MOVE_COMPLETE, now_ms);
    if (sched->jobs[index].run == NONE) {
        uint32_t run = run_add(sched); /* when it ended is kept there */
        sched->jobs[index].run = run;
    }
    struct job *job = &sched->jobs[index];
    job_run(sched, job)->ended_ms = now_ms;
    bool moved = job_move(sched, job, event);
    ACRE_ASSERT(moved);
    job->stand = STAND_ENDED;
    tell(sched, kinds[event], now_ms, job->id, other);
    if (held) {
        act(sched, ACRE_ACTION_FORGET, job);
    }
    depend_moved(sched, index, now_ms);
}

void job_requeue(struct acre_sched *sched, uint32_t index, uint64_t not_before_ms,
                 uint64_t now_ms) {
    struct job *job = &sched->jobs[index];
    struct run *run = job_run(sched, job);
    ACRE_ASSERT(job->stand == STAND_HOLDING && run->attempt > 0);
    if (run->started_ms != 0 && now_ms > run->started_ms) {
        run->run_ms += now_ms - run->started_ms;
    }
    run->ended_ms = now_ms;
    parts_give(sched, index, true, now_ms);
    bool moved = job_move(sched, job, MOVE_REQUEUE);
    ACRE_ASSERT(moved);
    job->not_before_ms = not_before_ms;
    uint64_t other = run->preempted_for;
    run->preempted_for = 0;
    accounts_queue(sched->accounts, job->account);
    queue_enter(sched, index, now_ms);
    tell(sched, ACRE_SCHED_REQUEUED, now_ms, sched->jobs[index].id, other);
    act(sched, ACRE_ACTION_FORGET, &sched->jobs[index]);
}

/* The n-th back-off, from 1. */
static uint64_t backoff_ms(const struct acre_policy *policy, uint32_t n) {
    uint64_t ms = policy->retry_base_ms;
    for (uint32_t i = 1; i < n && ms < policy->retry_max_ms; i++) {
        ms = ms > UINT64_MAX / 2 ? UINT64_MAX : 2 * ms;
    }
    return ACRE_MIN(ms, policy->retry_max_ms);
}

/* Half of each share, if that may be asked for (ALC-9) and fits the hardware. */
static void ask_for_less(struct acre_sched *sched, struct job *job, uint64_t now_ms) {
    struct acre_request smaller = sched->classes[job->class].request;
    smaller.milli /= 2;
    smaller.mib /= 2;
    if (smaller.gpus == 0 || smaller.exclusive ||
        acre_ledger_could_fit(sched->ledger, &smaller, NULL) < 0) {
        return;
    }
    uint32_t old = job->class;
    job->class = class_take(sched, &smaller);
    class_give(sched, old);
    tell(sched, ACRE_SCHED_CHANGED, now_ms, job->id, 0);
}

static void try_again(struct acre_sched *sched, uint32_t index, const struct acre_job_exit *exit,
                      uint64_t now_ms) {
    struct job *job = &sched->jobs[index];
    job->retries++;
    uint64_t wait_ms = backoff_ms(&sched->policy, job->retries);
    if (exit->kind == ACRE_EXIT_OUT_OF_MEMORY && job->smaller_on_oom) {
        ask_for_less(sched, job, now_ms);
    }
    job_requeue(sched, index, now_ms + wait_ms, now_ms);
}

static void learn(struct acre_sched *sched, const struct job *job, uint64_t now_ms) {
    const struct run *run = job_run(sched, job);
    if (run->started_ms != 0 && now_ms >= run->started_ms) {
        struct acre_job_spec spec;
        job_show_spec(sched, job, &spec);
        forecast_ended(sched->forecast, &spec, now_ms - run->started_ms);
    }
}

void acre_sched_exited(struct acre_sched *sched, uint64_t id, uint32_t attempt,
                       const struct acre_job_exit *exit, uint64_t now_ms) {
    struct job *job = find_run(sched, id, attempt);
    if (job == NULL || exit->kind > ACRE_EXIT_LOST) {
        return;
    }
    uint32_t index = job_index(sched, job);
    struct run *run = job_run(sched, job);
    run->exit = *exit;
    if (job->canceling) {
        job_end(sched, index, MOVE_CANCEL, 0, now_ms);
    } else if (job->state == ACRE_JOB_PREEMPTED) {
        /* One that was idle with nobody waiting would idle again at once. */
        bool wait = run->reclaimed && run->preempted_for == 0;
        uint64_t wait_ms = wait ? backoff_ms(&sched->policy, run->preemptions) : 0;
        job_requeue(sched, index, now_ms + wait_ms, now_ms);
    } else if (exit->kind == ACRE_EXIT_CODE && exit->code == 0) {
        learn(sched, job, now_ms);
        job_end(sched, index, MOVE_COMPLETE, 0, now_ms);
    } else if (exit->kind == ACRE_EXIT_LOST && run->attempt < LOST_ATTEMPTS_MAX) {
        job_requeue(sched, index, now_ms + backoff_ms(&sched->policy, run->attempt), now_ms);
    } else if (exit->kind != ACRE_EXIT_TIME_LIMIT && exit->kind != ACRE_EXIT_LOST &&
               job->retries < job->max_retries) {
        try_again(sched, index, exit, now_ms);
    } else {
        learn(sched, job, now_ms);
        job_end(sched, index, MOVE_FAIL, 0, now_ms);
    }
    depend_settle(sched, now_ms);
}
