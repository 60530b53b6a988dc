/* idle.c - GPUs that are held and not used (POL-8).
 *
 * A run whose samples stay below policy.idle_below_milli is idle from the first of them on. Its
 * owner is warned policy.idle_warn_ms before policy.idle_after_ms is over. After that it must
 * yield: always, or only when a waiting job would fit into what it and other idle runs give back.
 * Those who waited longest in the order are asked first; for each of them idle runs are given back
 * in an outlook, longest idle first, until it fits; runs that are not on its place are spared. If
 * all of them are not enough, no run is disturbed. The place is then promised as in preempt.c. */
#include "sched/inner.h"

#include <stdlib.h>

enum {
    AGAIN_MS = 1000,  /* between two looks for somebody who waits */
    ORDER_MAX = 256,  /* jobs looked at in order, */
    CLASSES_MAX = 32, /* of so many different classes */
};

static bool is_idle(const struct acre_sched *sched, const struct job *job) {
    const struct run *run = job_run(sched, job);
    return job->state == ACRE_JOB_RUNNING && run->idle_warned && !job->fixed && !job->canceling;
}

void acre_sched_sampled(struct acre_sched *sched, uint64_t id, uint32_t attempt, uint32_t use_milli,
                        uint64_t now_ms) {
    struct job *job = job_find(sched, id);
    const struct acre_policy *policy = &sched->policy;
    if (job == NULL || job->state != ACRE_JOB_RUNNING || job_run(sched, job)->attempt != attempt) {
        return;
    }
    struct run *run = job_run(sched, job);
    if (use_milli >= policy->idle_below_milli || policy->idle == ACRE_IDLE_NEVER) {
        run->idle_since_ms = 0;
        run->idle_warned = false;
        return;
    }
    if (run->idle_since_ms == 0) {
        run->idle_since_ms = ACRE_MAX(now_ms, UINT64_C(1));
    }
    uint64_t after_ms = policy->idle_after_ms > policy->idle_warn_ms
                            ? policy->idle_after_ms - policy->idle_warn_ms
                            : 0;
    if (run->idle_warned || job->fixed || now_ms < run->idle_since_ms ||
        now_ms - run->idle_since_ms < after_ms) {
        return;
    }
    run->idle_warned = true;
    run->reclaim_ms = now_ms + policy->idle_warn_ms;
    if (!run->is_listed) { /* it may have been warned before, and worked since */
        run->is_listed = true;
        sched->idle =
            acre_grow(sched->idle, sched->idle_count, &sched->idle_capacity, sizeof(*sched->idle));
        sched->idle[sched->idle_count++] = id;
    }
    timer_set(sched, run->reclaim_ms, id);
    tell(sched, ACRE_SCHED_IDLE, now_ms, id, 0);
}

struct ripe {
    uint64_t since_ms, job, allocation;
};

static int longest_first(const void *a, const void *b) {
    const struct ripe *x = a;
    const struct ripe *y = b;
    if (x->since_ms != y->since_ms) {
        return x->since_ms < y->since_ms ? -1 : 1;
    }
    return (x->job > y->job) - (x->job < y->job);
}

/* Those whose time is up, longest idle first; the others that still idle stay on the list. */
static struct ripe *collect(struct acre_sched *sched, uint64_t now_ms, uint32_t *ret_count) {
    struct ripe *ripe = acre_calloc(sched->idle_count, sizeof(*ripe));
    uint32_t count = 0;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < sched->idle_count; i++) {
        const struct job *job = job_find(sched, sched->idle[i]);
        struct run *run = job != NULL ? job_run(sched, job) : NULL;
        if (run == NULL || !is_idle(sched, job)) {
            if (run != NULL) {
                run->is_listed = false;
            }
            continue;
        }
        sched->idle[kept++] = job->id;
        if (run->reclaim_ms <= now_ms) {
            ripe[count++] = (struct ripe){run->idle_since_ms, job->id, run->allocation};
        }
    }
    sched->idle_count = kept;
    qsort(ripe, count, sizeof(*ripe), longest_first);
    *ret_count = count;
    return ripe;
}

/* Let this job have the place of idle runs, if they are enough. */
static bool reclaim_for(struct acre_sched *sched, uint32_t index, const struct ripe *ripe,
                        uint32_t count, uint64_t now_ms) {
    struct acre_outlook *outlook =
        acre_outlook_create(sched->ledger, &sched->classes[sched->jobs[index].class].request);
    bool fits = false;
    for (uint32_t i = 0; outlook != NULL && i < count && !fits; i++) {
        fits = acre_outlook_give(outlook, ripe[i].allocation);
    }
    if (!fits) {
        acre_outlook_destroy(outlook);
        return false;
    }
    acre_outlook_choose(outlook);
    uint32_t given_count, part_count;
    const uint64_t *given = acre_outlook_given(outlook, &given_count);
    const struct acre_part *parts = acre_outlook_parts(outlook, &part_count);
    if (!may_hold(sched, &sched->jobs[index], parts, part_count, now_ms)) {
        acre_outlook_destroy(outlook);
        return false;
    }
    promise_make(sched, index, outlook, given_count);
    for (uint32_t i = 0, j = 0; i < count && j < given_count; i++) {
        if (ripe[i].allocation == given[j]) {
            uint32_t idle = job_index(sched, job_find(sched, ripe[i].job));
            preempt_tell(sched, idle, sched->jobs[index].id, true, now_ms);
            j++;
        }
    }
    return true;
}

/* The first in order whom the idle runs would help; one at a time, the next look finds the next. */
static void reclaim_on_pressure(struct acre_sched *sched, const struct ripe *ripe, uint32_t count,
                                uint64_t now_ms) {
    uint32_t seen[CLASSES_MAX];
    uint32_t seen_count = 0;
    uint64_t cursor = 0;
    promises_veil(sched);
    for (uint32_t i = 0; i < ORDER_MAX && seen_count < CLASSES_MAX; i++) {
        const struct job *job = order_walk(sched, &cursor);
        if (job == NULL) {
            break;
        }
        bool is_new = job->stand == STAND_LINE && sched->lines[job->line].blocker == NONE;
        for (uint32_t j = 0; j < seen_count && is_new; j++) {
            is_new = seen[j] != job->class;
        }
        if (!is_new) {
            continue;
        }
        seen[seen_count++] = job->class;
        if (reclaim_for(sched, job_index(sched, job), ripe, count, now_ms)) {
            break;
        }
    }
    promises_unveil(sched);
}

void idle_reclaim(struct acre_sched *sched, uint64_t now_ms) {
    if (sched->idle_count == 0) {
        return;
    }
    if (now_ms < sched->idle_again_ms) { /* the pass before this one may have set a later wake */
        sched->wake_ms = ACRE_MIN(sched->wake_ms, sched->idle_again_ms);
        return;
    }
    uint32_t count;
    struct ripe *ripe = collect(sched, now_ms, &count);
    if (count > 0 && sched->policy.idle == ACRE_IDLE_ALWAYS) {
        for (uint32_t i = 0; i < count; i++) {
            preempt_tell(sched, job_index(sched, job_find(sched, ripe[i].job)), 0, true, now_ms);
        }
    } else if (count > 0 && sched->policy.idle == ACRE_IDLE_ON_PRESSURE &&
               sched->counts.eligible > 0) {
        sched->idle_again_ms = now_ms + AGAIN_MS;
        sched->wake_ms = ACRE_MIN(sched->wake_ms, sched->idle_again_ms);
        reclaim_on_pressure(sched, ripe, count, now_ms);
    }
    free(ripe);
}
