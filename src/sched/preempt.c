/* preempt.c - making room for the head at the cost of others (POL-2), as a transaction.
 *
 * Only the head of the queue may ask, only of runs with a lower priority or that passed a soft
 * quota which their owner still passes (not of those he had within it: they would preempt back),
 * only of those that ran long enough and are not fixed; a job goes with all its members. A run that
 * waited for its place as long as the difference of priorities is worth (ageing) yields only when
 * the head has waited so much, too: so every run gets longer turns, and ends. Who must go is
 * decided in an outlook next to the books: the smallest set that makes the head fit (victims.h),
 * or none. Then the place is promised: the head leaves its line, the victims get the checkpoint
 * signal and, after the grace, SIGTERM; what they give back is veiled in every pass until the last
 * one has ended and the head takes exactly that place.
 *
 * With many candidates those are kept that stand on the place where the head fits first, taking
 * them in the order of who yields first: so the work does not grow with the cluster. */
#include "sched/inner.h"

#include "sched/victims.h"

#include <stdlib.h>

enum {
    LOOK_MAX = 512,    /* runs looked at */
    EXACT_MAX = 96,    /* candidates among which the smallest set is looked for */
    AGAIN_MS = 1000,   /* between two attempts for the same head */
    PROMISES_MAX = 32, /* a pass veils each */
};

struct victim_choice {
    struct acre_sched *sched;
    struct acre_outlook *outlook;
    struct victim *victims;
    uint32_t count;
    uint64_t
        young_ms; /* when the next one has run or its head waited long enough; UINT64_MAX: none */
};

struct promise *promise_of(const struct acre_sched *sched, uint64_t job) {
    for (uint32_t i = 0; i < sched->promise_count; i++) {
        if (sched->promises[i].job == job) {
            return &sched->promises[i];
        }
    }
    return NULL;
}

void promise_make(struct acre_sched *sched, uint32_t index, struct acre_outlook *outlook,
                  uint32_t waiting_for) {
    ACRE_ASSERT(outlook != NULL && promise_of(sched, sched->jobs[index].id) == NULL);
    sched->promises = acre_grow(sched->promises, sched->promise_count, &sched->promise_capacity,
                                sizeof(*sched->promises));
    sched->promises[sched->promise_count++] =
        (struct promise){sched->jobs[index].id, waiting_for, outlook};
    queue_promise(sched, index);
    sched->is_dirty = true; /* there is another head */
    sched->shadow.is_stale = true;
}

void promise_drop(struct acre_sched *sched, uint64_t job) {
    struct promise *promise = promise_of(sched, job);
    ACRE_ASSERT(promise != NULL);
    uint32_t count;
    const struct acre_part *parts = acre_outlook_parts(promise->outlook, &count);
    note_freed(sched, parts, count);
    acre_outlook_destroy(promise->outlook);
    *promise = sched->promises[--sched->promise_count];
}

void promises_veil(struct acre_sched *sched) {
    for (uint32_t i = 0; i < sched->promise_count; i++) {
        acre_outlook_veil(sched->promises[i].outlook);
    }
}

void promises_unveil(struct acre_sched *sched) {
    for (uint32_t i = 0; i < sched->promise_count; i++) {
        acre_outlook_unveil(sched->promises[i].outlook);
    }
}

/* And what is promised to others of its user or project. */
static struct account_load with_promised(const struct acre_sched *sched, const struct job *job,
                                         struct account_load load) {
    for (uint32_t i = 0; i < sched->promise_count && sched->policy.quota_count > 0; i++) {
        const struct job *other = job_find(sched, sched->promises[i].job);
        if (other == job || (other->user != job->user && other->project != job->project)) {
            continue;
        }
        uint32_t count;
        const struct acre_part *parts = acre_outlook_parts(sched->promises[i].outlook, &count);
        struct account_load promised = load_of_parts(parts, count);
        load.milli += promised.milli;
        load.mib += promised.mib;
    }
    return load;
}

bool quota_is_promised(const struct acre_sched *sched, const struct job *job,
                       struct account_load load, uint64_t now_ms) {
    struct account_load sum = with_promised(sched, job, load);
    struct quota_hit hit;
    return (sum.milli != load.milli || sum.mib != load.mib) &&
           accounts_may_run(sched->accounts, job->account, sum, now_ms, &hit) ==
               ACRE_QUOTA_OVER_HARD;
}

bool may_hold(const struct acre_sched *sched, const struct job *job, const struct acre_part *parts,
              uint32_t count, uint64_t now_ms) {
    struct quota_hit hit;
    struct account_load load = with_promised(sched, job, load_of_parts(parts, count));
    return accounts_may_run(sched->accounts, job->account, load, now_ms, &hit) == ACRE_QUOTA_WITHIN;
}

uint32_t promises_keep(struct acre_sched *sched, uint64_t now_ms) {
    uint32_t placed = 0;
    for (uint32_t i = sched->promise_count; i-- > 0;) {
        const struct promise *promise = &sched->promises[i];
        if (promise->waiting_for > 0) {
            continue;
        }
        uint32_t index = job_index(sched, job_find(sched, promise->job));
        uint32_t count;
        const struct acre_part *parts = acre_outlook_parts(promise->outlook, &count);
        bool fits = acre_outlook_stands(promise->outlook) &&
                    may_hold(sched, &sched->jobs[index], parts, count, now_ms) &&
                    job_place(sched, index, parts, count, now_ms);
        promise_drop(sched, promise->job);
        placed += fits;
        if (!fits) { /* taken from outside, drained, or its owner has come to his quota since */
            queue_again(sched, index, now_ms);
        }
    }
    return placed;
}

static bool may_yield(const struct victim_choice *choice, const struct job *job, uint64_t now_ms) {
    const struct run *run = job_run(choice->sched, job);
    uint64_t since_ms = run->started_ms != 0 ? run->started_ms : run->scheduled_ms;
    bool is_there = job->state == ACRE_JOB_RUNNING || job->state == ACRE_JOB_ALLOCATING;
    return is_there && !job->fixed && !job->canceling && now_ms >= since_ms;
}

/* When the head has waited as much more as its priority lacks to what the run had waited for its
 * place: a job that has come to its turn by waiting would else be stopped by every new one. */
static uint64_t outranked_ms(const struct acre_sched *sched, const struct job *job,
                             const struct job *head) {
    const struct run *run = job_run(sched, job);
    uint64_t age_ms = sched->policy.priority_age_ms;
    uint64_t waited_ms =
        run->scheduled_ms > job->eligible_ms ? run->scheduled_ms - job->eligible_ms : 0;
    uint64_t ahead_ms = head->priority > job->priority
                            ? ACRE_MIN(age_ms, UINT64_MAX / 8) * (head->priority - job->priority)
                            : 0;
    return waited_ms < ahead_ms ? 0 : head->eligible_ms + (waited_ms - ahead_ms);
}

static void look_at(struct victim_choice *choice, const struct job *head, uint32_t index,
                    bool over_quota, uint64_t now_ms) {
    struct acre_sched *sched = choice->sched;
    const struct job *job = &sched->jobs[index];
    if (!may_yield(choice, job, now_ms)) {
        return;
    }
    const struct run *run = job_run(sched, job);
    uint64_t outranked = over_quota ? 0 : outranked_ms(sched, job, head);
    if (outranked > now_ms) {
        choice->young_ms = ACRE_MIN(choice->young_ms, outranked);
        return;
    }
    uint64_t since_ms = run->started_ms != 0 ? run->started_ms : run->scheduled_ms;
    uint64_t run_ms = now_ms - since_ms;
    if (run_ms < sched->policy.preempt_min_run_ms) {
        choice->young_ms = ACRE_MIN(choice->young_ms, since_ms + sched->policy.preempt_min_run_ms);
        return;
    }
    choice->victims[choice->count++] = (struct victim){
        .job = job->id,
        .size_milli = run->load.milli,
        .run_ms = run_ms,
        .priority = job->priority,
        .over_quota = over_quota,
    };
}

/* Those who could yield to a job of this priority, likeliest first. */
static void collect(struct victim_choice *choice, const struct job *head, uint64_t now_ms) {
    struct acre_sched *sched = choice->sched;
    uint32_t left = LOOK_MAX;
    bool head_is_over = accounts_over_soft(sched->accounts, head->account, now_ms);
    for (uint32_t p = ACRE_PRIORITY_LOW; p <= ACRE_PRIORITY_CRITICAL; p++) {
        bool is_lower = p < head->priority;
        if (!is_lower && (head_is_over || sched->policy.quota_count == 0)) {
            break;
        }
        for (uint32_t at = sched->newest[p]; at != NONE && left > 0;
             at = job_run(sched, &sched->jobs[at])->older, left--) {
            bool is_over = job_run(sched, &sched->jobs[at])->is_extra &&
                           accounts_over_soft(sched->accounts, sched->jobs[at].account, now_ms);
            if (is_lower || is_over) {
                look_at(choice, head, at, is_over, now_ms);
            }
        }
    }
}

static uint64_t allocation_of(const struct acre_sched *sched, uint64_t job) {
    return job_run(sched, job_find(sched, job))->allocation;
}

static bool fits_without(void *context, const uint32_t *chosen, uint32_t count) {
    struct victim_choice *choice = context;
    acre_outlook_reset(choice->outlook);
    for (uint32_t i = 0; i < count; i++) {
        acre_outlook_give(choice->outlook,
                          allocation_of(choice->sched, choice->victims[chosen[i]].job));
    }
    return acre_outlook_fits(choice->outlook);
}

/* Keep the candidates that stand where the head fits first; false: it does not fit at all. */
static bool keep_nearest(struct victim_choice *choice) {
    acre_outlook_reset(choice->outlook);
    bool fits = false;
    for (uint32_t i = 0; i < choice->count && !fits; i++) {
        fits = acre_outlook_give(choice->outlook,
                                 allocation_of(choice->sched, choice->victims[i].job));
    }
    if (!fits) {
        return false;
    }
    acre_outlook_choose(choice->outlook);
    uint32_t given_count;
    const uint64_t *given = acre_outlook_given(choice->outlook, &given_count);
    uint32_t kept = 0;
    for (uint32_t i = 0, j = 0; i < choice->count && j < given_count; i++) {
        if (allocation_of(choice->sched, choice->victims[i].job) == given[j]) {
            choice->victims[kept++] = choice->victims[i]; /* both are in the same order */
            j++;
        }
    }
    choice->count = kept;
    return true;
}

void preempt_tell(struct acre_sched *sched, uint32_t index, uint64_t other, bool reclaim,
                  uint64_t now_ms) {
    struct job *job = &sched->jobs[index];
    struct run *run = job_run(sched, job);
    bool moved = job_move(sched, job, MOVE_PREEMPT);
    ACRE_ASSERT(moved);
    run->preemptions++;
    run->preempted_for = other;
    run->reclaimed = reclaim;
    run->stop_ms = ACRE_MAX(now_ms + sched->policy.preempt_grace_ms, UINT64_C(1));
    timer_set(sched, run->stop_ms, job->id);
    job_expect(sched, index, run->stop_ms + UNWIND_MS);
    tell(sched, reclaim ? ACRE_SCHED_RECLAIMED : ACRE_SCHED_PREEMPTED, now_ms, job->id, other);
    act(sched, ACRE_ACTION_CHECKPOINT, job);
    forecast_changed(sched->forecast);
}

/* Choose among the candidates and carry it out; false: nobody was disturbed. */
static bool decide(struct victim_choice *choice, uint32_t head, uint64_t now_ms) {
    struct acre_sched *sched = choice->sched;
    if (choice->count == 0 || (choice->count > EXACT_MAX && !keep_nearest(choice))) {
        return false;
    }
    uint32_t *chosen = acre_calloc(choice->count, sizeof(*chosen));
    uint32_t count = victims_choose(choice->victims, choice->count, fits_without, choice, chosen);
    if (count > 0) {
        bool fits = fits_without(choice, chosen, count);
        ACRE_ASSERT(fits);
        acre_outlook_choose(choice->outlook);
        uint32_t part_count;
        const struct acre_part *parts = acre_outlook_parts(choice->outlook, &part_count);
        count = may_hold(sched, &sched->jobs[head], parts, part_count, now_ms) ? count : 0;
    }
    if (count > 0) {
        promise_make(sched, head, choice->outlook, count);
        for (uint32_t i = 0; i < count; i++) {
            const struct job *victim = job_find(sched, choice->victims[chosen[i]].job);
            preempt_tell(sched, job_index(sched, victim), sched->jobs[head].id, false, now_ms);
        }
    }
    free(chosen);
    return count > 0;
}

bool preempt_is_due(const struct acre_sched *sched, uint64_t now_ms) {
    return sched->policy.preemption && (now_ms >= sched->preempting.again_ms ||
                                        sched->newest_priority > sched->preempting.priority);
}

void preempt_later(struct acre_sched *sched) {
    if (sched->policy.preemption && sched->counts.eligible > sched->promise_count) {
        sched->wake_ms = ACRE_MIN(sched->wake_ms, sched->preempting.again_ms);
    }
}

void preempt_for(struct acre_sched *sched, uint32_t head, uint64_t now_ms) {
    const struct job *job = &sched->jobs[head];
    if (!preempt_is_due(sched, now_ms)) {
        preempt_later(sched);
        return;
    }
    if (job->stand != STAND_LINE || sched->promise_count == PROMISES_MAX) {
        return;
    }
    sched->preempting = (struct preempting){job->priority, now_ms + AGAIN_MS};
    sched->newest_priority = 0;
    struct victim_choice choice = {.sched = sched, .young_ms = UINT64_MAX};
    choice.victims = acre_calloc(LOOK_MAX, sizeof(*choice.victims));
    collect(&choice, job, now_ms);
    promises_veil(sched); /* those places are not to be had */
    choice.outlook = choice.count > 0
                         ? acre_outlook_create(sched->ledger, &sched->classes[job->class].request)
                         : NULL;
    if (choice.outlook != NULL && !decide(&choice, head, now_ms)) {
        acre_outlook_destroy(choice.outlook);
    }
    promises_unveil(sched);
    free(choice.victims);
    if (choice.young_ms != UINT64_MAX) {
        sched->wake_ms = ACRE_MIN(sched->wake_ms, ACRE_MAX(choice.young_ms, now_ms + AGAIN_MS));
    }
}
