/* restore.c - a live job put back as it was recorded, after a restart.
 *
 * A queued job enters the queue as if it had just become what it is. A job that holds devices takes
 * exactly its parts again under its old allocation. One that was scheduled comes back as
 * allocating: its engine may have been asked before that could be recorded, so a cancel must ask
 * it, too. Its engine may not have carried out the last action, so the next pass repeats
 * it (engines know a run by its token and do nothing twice). Promises are not recorded: who was
 * promised a place waits in the order again. */
#include "sched/inner.h"

static int check(const struct acre_sched *sched, const struct acre_job *job, uint32_t part_count,
                 struct acre_error *err) {
    unsigned long long id = job->spec.id;
    if (job->state >= ACRE_JOB_STATE_COUNT || !acre_job_state_is_live(job->state)) {
        return acre_fail(err, ACRE_EINVALID, "state: job %llu has already ended", id);
    }
    int r = spec_check(sched, &job->spec, UINT64_MAX, err); /* the clock may have gone back */
    if (r < 0) {
        return acre_fail_in(err, r, "job %llu", id);
    }
    if (job->retries > ACRE_JOB_RETRIES_MAX ||
        job->spec.dependency_count > ACRE_JOB_DEPENDENCIES_MAX) {
        return acre_fail(err, ACRE_EINVALID,
                         "job %llu has %u retries and %u dependencies; accepted: at most %d and %d",
                         id, job->retries, job->spec.dependency_count, ACRE_JOB_RETRIES_MAX,
                         ACRE_JOB_DEPENDENCIES_MAX);
    }
    bool holds = acre_job_state_holds(job->state);
    if (holds != (part_count > 0) || (holds && job->attempt == 0)) {
        return acre_fail(err, ACRE_EINVALID, "job %llu is %s but has %u parts and %u attempts", id,
                         acre_job_state_name(job->state), part_count, job->attempt);
    }
    return 0;
}

static void fill_run(struct acre_sched *sched, uint32_t index, const struct acre_job *job) {
    if (job->attempt == 0) {
        return;
    }
    uint32_t at = run_add(sched);
    sched->jobs[index].run = at;
    struct run *run = &sched->runs[at];
    run->attempt = job->attempt;
    run->preemptions = job->preemptions;
    run->scheduled_ms = job->scheduled_ms;
    run->started_ms = job->started_ms;
    run->ended_ms = job->ended_ms;
    run->run_ms = job->run_ms;
    run->preempted_for = job->preempted_for;
    run->exit = job->exit;
}

static void repeat(struct acre_sched *sched, uint64_t job) {
    sched->repeat = acre_grow(sched->repeat, sched->repeat_count, &sched->repeat_capacity,
                              sizeof(*sched->repeat));
    sched->repeat[sched->repeat_count++] = job;
}

int acre_sched_restore(struct acre_sched *sched, const struct acre_job *job,
                       const struct acre_part *parts, uint32_t part_count, uint64_t now_ms,
                       struct acre_error *err) {
    int r = check(sched, job, part_count, err);
    if (r < 0) {
        return r;
    }
    bool holds = acre_job_state_holds(job->state);
    uint64_t allocation = 0;
    struct acre_request request = job->spec.request;
    request.owner = job->spec.id;
    request.tenant = job->spec.project;
    request.pending = job->started_ms == 0;
    request.expires_ms = job->spec.limit_ms != 0 ? job->scheduled_ms + job->spec.limit_ms : 0;
    request.overstays = true;
    if (holds) {
        r = acre_ledger_place(sched->ledger, &request, parts, part_count, job->allocation, now_ms,
                              &allocation, err);
    } else if (class_find(sched, &request) == ACRE_MAP_NONE) {
        r = acre_ledger_could_fit(sched->ledger, &request, err);
        r = r == ACRE_EINVALID ? r : 0; /* what no longer fits or may not be waits and says so */
    }
    if (r < 0) {
        return acre_fail_in(err, r, "job %llu", (unsigned long long)job->spec.id);
    }
    uint32_t index = job_make(sched, &job->spec);
    struct job *made = &sched->jobs[index];
    made->retries = (uint8_t)job->retries;
    made->canceling = job->canceling;
    made->submitted_ms = job->submitted_ms;
    made->eligible_ms = job->eligible_ms;
    made->not_before_ms = job->not_before_ms;
    made->state = job->state == ACRE_JOB_SCHEDULED ? ACRE_JOB_ALLOCATING : (uint8_t)job->state;
    sched->counts.jobs[made->state]++;
    fill_run(sched, index, job);
    if (!holds) {
        accounts_queue(sched->accounts, made->account);
        queue_enter(sched, index, now_ms);
        return 0;
    }
    made->duration_s = plan_duration(sched, made);
    parts_take(sched, index, allocation, parts, part_count, job->scheduled_ms, now_ms);
    if (job->started_ms != 0) {
        job_expect(sched, index, job->started_ms + duration_ms(made));
    }
    repeat(sched, job->spec.id);
    return 0;
}

/* Actions that were told before a restart, and may not have been carried out. */
void restore_repeat(struct acre_sched *sched) {
    for (uint32_t i = 0; i < sched->repeat_count; i++) {
        const struct job *job = job_find(sched, sched->repeat[i]);
        if (job != NULL && job->stand == STAND_HOLDING) {
            bool must_end = job->canceling || job->state == ACRE_JOB_PREEMPTED;
            if (must_end) {
                act(sched, ACRE_ACTION_TERMINATE, job);
            } else if (job->state == ACRE_JOB_ALLOCATING) {
                act(sched, ACRE_ACTION_START, job);
            }
        }
    }
    sched->repeat_count = 0;
}
