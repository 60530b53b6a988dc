/* command.c - cancel, hold, release, priority: what people do to jobs. */
#include "sched/inner.h"

static int no_job(uint64_t id, struct acre_error *err) {
    return acre_fail(err, ACRE_ENOTFOUND, "there is no live job %llu", (unsigned long long)id);
}

/* The live job of this id. */
static int find_live(const struct acre_sched *sched, uint64_t id, struct job **ret_job,
                     struct acre_error *err) {
    struct job *job = job_find(sched, id);
    if (job == NULL || job->stand == STAND_ENDED) {
        return no_job(id, err);
    }
    *ret_job = job;
    return 0;
}

static int find_queued(const struct acre_sched *sched, uint64_t id, const char *what,
                       struct job **ret_job, struct acre_error *err) {
    struct job *job = NULL;
    int r = find_live(sched, id, &job, err);
    if (r < 0) {
        return r;
    }
    if (job->state != ACRE_JOB_QUEUED) {
        return acre_fail(err, ACRE_ECONFLICT, "job %llu is %s; only queued jobs can %s",
                         (unsigned long long)id,
                         acre_job_state_name((enum acre_job_state)job->state), what);
    }
    *ret_job = job;
    return 0;
}

int acre_sched_cancel(struct acre_sched *sched, uint64_t id, uint64_t now_ms,
                      struct acre_error *err) {
    struct job *job = NULL;
    int r = find_live(sched, id, &job, err);
    if (r < 0) {
        return r;
    }
    if (job->state == ACRE_JOB_QUEUED || job->state == ACRE_JOB_SCHEDULED) {
        job_end(sched, job_index(sched, job), MOVE_CANCEL, 0, now_ms);
        depend_settle(sched, now_ms);
        return 0;
    }
    struct run *run = job_run(sched, job);
    if (!job->canceling) {
        job->canceling = true;
        run->stop_ms = 0; /* no second signal when the grace of a preemption ends */
        tell(sched, ACRE_SCHED_CANCELING, now_ms, id, 0);
        act(sched, ACRE_ACTION_TERMINATE, job);
        job_expect(sched, job_index(sched, job), now_ms + UNWIND_MS);
        forecast_changed(sched->forecast);
    } else {
        run->killed = true;
        act(sched, ACRE_ACTION_KILL, job);
    }
    return 0;
}

int acre_sched_hold(struct acre_sched *sched, uint64_t id, uint64_t now_ms,
                    struct acre_error *err) {
    struct job *job = NULL;
    int r = find_queued(sched, id, "be held", &job, err);
    if (r < 0) {
        return r;
    }
    if (job->held) {
        return acre_fail(err, ACRE_ECONFLICT, "job %llu is already held", (unsigned long long)id);
    }
    if (job->stand == STAND_PROMISED) {
        promise_drop(sched, id);
    }
    uint32_t index = job_index(sched, job);
    queue_leave(sched, index);
    job->held = true;
    job->eligible_ms = 0;
    queue_enter(sched, index, now_ms);
    forecast_forget(sched->forecast, id);
    tell(sched, ACRE_SCHED_HELD, now_ms, id, 0);
    return 0;
}

int acre_sched_release(struct acre_sched *sched, uint64_t id, uint64_t now_ms,
                       struct acre_error *err) {
    struct job *job = NULL;
    int r = find_queued(sched, id, "be released", &job, err);
    if (r < 0) {
        return r;
    }
    if (!job->held) {
        return acre_fail(err, ACRE_ECONFLICT, "job %llu is not held", (unsigned long long)id);
    }
    uint32_t index = job_index(sched, job);
    queue_leave(sched, index);
    job->held = false;
    queue_enter(sched, index, now_ms);
    forecast_changed(sched->forecast);
    tell(sched, ACRE_SCHED_RELEASED, now_ms, id, 0);
    return 0;
}

int acre_sched_set_priority(struct acre_sched *sched, uint64_t id, enum acre_job_priority priority,
                            uint64_t now_ms, struct acre_error *err) {
    if (priority < ACRE_PRIORITY_LOW || priority > ACRE_PRIORITY_CRITICAL) {
        return acre_fail(err, ACRE_EINVALID, "priority: %d is out of range; accepted: %d to %d",
                         (int)priority, ACRE_PRIORITY_LOW, ACRE_PRIORITY_CRITICAL);
    }
    struct job *job = NULL;
    int r = find_queued(sched, id, "change their priority", &job, err);
    if (r < 0) {
        return r;
    }
    if (job->priority == priority) {
        return 0; /* nothing changes, and nothing is recorded */
    }
    uint32_t index = job_index(sched, job);
    if (job->stand == STAND_PROMISED) {
        job->priority = (uint8_t)priority; /* its turn has come: the place is kept */
    } else {
        queue_leave(sched, index);
        job->priority = (uint8_t)priority;
        queue_enter(sched, index, now_ms);
    }
    forecast_forget(sched->forecast, id);
    tell(sched, ACRE_SCHED_PRIORITY, now_ms, id, 0);
    return 0;
}
