/* when.c - when a job starts: what the plan says, and what experience says about such plans.
 *
 * The plan (plan.c) is made on request, when something has changed since. Making it costs
 * 5 us a job, 25 where one in ten is a gang, so a large one is kept for 1 ms a job in it: that
 * bounds the cost to a few hundredths of the time. Jobs submitted meanwhile are added after the
 * others, which costs what one job costs. For jobs further back than the plan reaches, the answer
 * is how fast the queue moves before him, with an interval twice as wide.
 *
 * The interval is what the forecast's memory of errors makes of the planned wait. */
#include "sched/why.h"

#include "sched/inner.h"
#include "sched/plan.h"

enum { SMALL = 1024 }; /* plans of so many jobs are made whenever something changed */

static void refresh(struct acre_sched *sched, uint64_t now_ms) {
    struct plan *plan = forecast_plan(sched->forecast);
    bool is_old = plan->is_stale || now_ms >= plan->good_until_ms || now_ms < plan->built_ms;
    bool may_wait = plan->timeline != NULL && plan->entry_count >= SMALL &&
                    now_ms >= plan->built_ms && now_ms - plan->built_ms < plan->entry_count;
    if (plan->timeline == NULL || (is_old && !may_wait)) {
        plan_make(sched, now_ms);
    } else if (plan->joined_count > 0) {
        plan_add_joined(sched, now_ms);
    }
}

/* Behind what is planned one by one: at the pace of the queue before it. */
static bool extrapolate(const struct acre_sched *sched, const struct plan *plan,
                        const struct job *job, uint64_t *ret_start_ms) {
    uint32_t ahead = order_has(job) ? order_ahead(sched, job) : 0;
    if (!order_has(job) || plan->queued_count == 0 || ahead < plan->queued_count) {
        return false;
    }
    double pace_ms = (double)(plan->last_start_ms - plan->built_ms) / plan->queued_count;
    *ret_start_ms = plan->built_ms + (uint64_t)(pace_ms * (ahead + 1.0));
    return true;
}

static struct acre_when from_plan(struct acre_sched *sched, const struct job *job,
                                  uint64_t now_ms) {
    const struct plan *plan = forecast_plan(sched->forecast);
    const struct plan_entry *entry = plan_find(plan, job->id);
    uint64_t start_ms = entry != NULL ? entry->start_ms : 0;
    if (entry == NULL && !extrapolate(sched, plan, job, &start_ms)) {
        return (struct acre_when){.known = false};
    }
    /* Until then it is certain that it waits; what experience widens is the rest. */
    uint64_t floor_ms = ACRE_MAX(ACRE_MAX(job->begin_ms, job->not_before_ms), now_ms);
    start_ms = ACRE_MAX(start_ms, floor_ms);
    forecast_estimated(sched->forecast, job->id, now_ms, start_ms);
    struct forecast_wait wait = forecast_wait(sched->forecast, start_ms - floor_ms);
    uint64_t widen = entry == NULL ? 2 : 1;
    return (struct acre_when){
        .known = true,
        .start_ms = floor_ms + wait.middle_ms,
        .earliest_ms = floor_ms + wait.least_ms / widen,
        .latest_ms = floor_ms + wait.most_ms * widen,
    };
}

int acre_sched_when(struct acre_sched *sched, uint64_t id, uint64_t now_ms,
                    struct acre_when *ret_when, struct acre_error *err) {
    const struct job *job = job_find(sched, id);
    if (job == NULL) {
        return acre_fail(err, ACRE_ENOTFOUND, "job %llu is not in the queue",
                         (unsigned long long)id);
    }
    const struct run *run = job_run(sched, job);
    bool waits = job->stand < STAND_HOLDING;
    if (!waits) {
        uint64_t started_ms = run == NULL ? 0 : ACRE_MAX(run->started_ms, run->scheduled_ms);
        *ret_when = (struct acre_when){
            .known = started_ms > 0,
            .start_ms = started_ms,
            .earliest_ms = started_ms,
            .latest_ms = started_ms,
        };
        return 0;
    }
    if (job->stand == STAND_HELD || sched->paused) {
        *ret_when = (struct acre_when){.known = false};
        return 0;
    }
    refresh(sched, now_ms);
    *ret_when = from_plan(sched, job_find(sched, id), now_ms);
    return 0;
}
