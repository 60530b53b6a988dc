/* take.c - a job takes its devices and gives them back.
 *
 * The one place where the ledger's books, the accounts, the list by priority (who could yield) and
 * the order of expected ends change together. */
#include "sched/inner.h"

static void list_push(struct acre_sched *sched, uint32_t index) {
    const struct job *job = &sched->jobs[index];
    struct run *run = job_run(sched, job);
    uint32_t *first = &sched->newest[job->priority];
    run->older = *first;
    run->newer = NONE;
    if (*first != NONE) {
        job_run(sched, &sched->jobs[*first])->newer = index;
    }
    *first = index;
}

static void list_remove(struct acre_sched *sched, uint32_t index) {
    const struct job *job = &sched->jobs[index];
    struct run *run = job_run(sched, job);
    if (run->newer != NONE) {
        job_run(sched, &sched->jobs[run->newer])->older = run->older;
    } else {
        sched->newest[job->priority] = run->older;
    }
    if (run->older != NONE) {
        job_run(sched, &sched->jobs[run->older])->newer = run->newer;
    }
    run->newer = run->older = NONE;
}

void parts_take(struct acre_sched *sched, uint32_t index, uint64_t allocation,
                const struct acre_part *parts, uint32_t count, uint64_t since_ms, uint64_t now_ms) {
    struct job *job = &sched->jobs[index];
    struct run *run = job_run(sched, job);
    ACRE_ASSERT(allocation != 0 && count > 0);
    ACRE_ASSERT(run != NULL && run->allocation == 0 && job->stand != STAND_HOLDING);
    run->allocation = allocation;
    run->load = load_of_parts(parts, count);
    job->stand = STAND_HOLDING;
    job->key = (int64_t)ACRE_MIN(since_ms + duration_ms(job), (uint64_t)INT64_MAX);
    if (job->array != NONE) {
        sched->arrays[job->array].open++;
    }
    tree_insert(&order_by_id, sched, &sched->holding, index);
    tree_insert(&line_by_key, sched, &sched->ends, index);
    list_push(sched, index);
    struct quota_hit hit;
    run->is_extra = sched->policy.quota_count > 0 &&
                    accounts_may_run(sched->accounts, job->account, run->load, now_ms, &hit) !=
                        ACRE_QUOTA_WITHIN;
    accounts_take(sched->accounts, job->account, run->load, since_ms, now_ms);
    rank_change(sched, job->account, (int64_t)run->load.milli);
}

void job_expect(struct acre_sched *sched, uint32_t index, uint64_t end_ms) {
    ACRE_ASSERT(sched->jobs[index].stand == STAND_HOLDING);
    tree_remove(&line_by_key, sched, &sched->ends, index);
    sched->jobs[index].key = (int64_t)ACRE_MIN(end_ms, (uint64_t)INT64_MAX);
    tree_insert(&line_by_key, sched, &sched->ends, index);
    sched->shadow.is_stale = true;
}

/* Nodes where there is more room than before. */
void note_freed(struct acre_sched *sched, const struct acre_part *parts, uint32_t count) {
    for (uint32_t i = 0; i < count && !sched->all_changed; i++) {
        bool is_known = false;
        for (uint32_t j = 0; j < sched->freed_count && !is_known; j++) {
            is_known = sched->freed[j] == parts[i].node;
        }
        if (is_known) {
            continue;
        }
        if (sched->freed_count == FREED_MAX) {
            sched->all_changed = true;
            break;
        }
        sched->freed[sched->freed_count++] = parts[i].node;
    }
    sched->is_dirty = true;
    sched->shadow.is_stale = true;
}

void parts_give(struct acre_sched *sched, uint32_t index, bool failed, uint64_t now_ms) {
    struct job *job = &sched->jobs[index];
    struct run *run = job_run(sched, job);
    ACRE_ASSERT(job->stand == STAND_HOLDING && run->allocation != 0);
    struct acre_allocation held;
    if (acre_ledger_find(sched->ledger, run->allocation, &held)) {
        note_freed(sched, held.parts, held.part_count);
        acre_ledger_release(sched->ledger, run->allocation,
                            failed ? ACRE_ALLOCATION_FAILED : ACRE_ALLOCATION_COMPLETED, now_ms,
                            NULL);
    }
    run->allocation = 0;
    tree_remove(&order_by_id, sched, &sched->holding, index);
    tree_remove(&line_by_key, sched, &sched->ends, index);
    list_remove(sched, index);
    if (job->array != NONE) {
        array_leave(sched, job->array);
    }
    accounts_release(sched->accounts, job->account, run->load, run->scheduled_ms, now_ms);
    rank_change(sched, job->account, -(int64_t)run->load.milli);
    lines_unpark_owner(sched, job);
    run->idle_since_ms = 0;
    run->idle_warned = false;
    run->stop_ms = 0;
    run->killed = false;
    if (run->preempted_for != 0) {
        struct promise *promise = promise_of(sched, run->preempted_for);
        if (promise != NULL && promise->waiting_for > 0) {
            promise->waiting_for--;
        }
    }
    forecast_changed(sched->forecast);
}
