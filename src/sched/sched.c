/* sched.c - making and ending a scheduler, and what may be asked of it. */
#include "sched/inner.h"

#include "ledger/supply.h"
#include "sched/burden.h"

#include <stdlib.h>

struct acre_sched *acre_sched_create(const struct acre_sched_options *options) {
    ACRE_ASSERT(options->ledger != NULL);
    struct acre_sched *sched = acre_calloc(1, sizeof(*sched));
    sched->ledger = options->ledger;
    sched->policy = options->policy != NULL ? *options->policy : *acre_policy_default();
    sched->accounts = accounts_create(acre_ledger_names(options->ledger), &sched->policy);
    sched->forecast = forecast_create(acre_ledger_names(options->ledger));
    sched->burdens = acre_burdens_create();
    sched->event = options->event;
    sched->action = options->action;
    sched->context = options->context;
    sched->job_free = sched->run_free = sched->edge_free = sched->array_free = NONE;
    sched->class_free = sched->line_free = NONE;
    struct tree *trees[] = {&sched->order, &sched->aside, &sched->holding, &sched->ends};
    for (size_t i = 0; i < ACRE_COUNT(trees); i++) {
        trees[i]->root = TREE_NONE;
    }
    for (size_t i = 0; i < ACRE_COUNT(sched->newest); i++) {
        sched->newest[i] = NONE;
    }
    sched->blockers =
        acre_grow(NULL, sched->blocker_count, &sched->blocker_capacity, sizeof(*sched->blockers));
    for (uint32_t i = 0; i < BLOCKER_FIRST_NAMED; i++) {
        sched->blockers[sched->blocker_count++] = (struct blocker){NONE};
    }
    sched->shown = acre_calloc(ACRE_JOB_DEPENDENCIES_MAX, sizeof(*sched->shown));
    sched->wake_ms = UINT64_MAX;
    shadow_drop(sched);
    return sched;
}

void acre_sched_destroy(struct acre_sched *sched) {
    if (sched == NULL) {
        return;
    }
    while (sched->promise_count > 0) {
        promise_drop(sched, sched->promises[0].job);
    }
    for (uint32_t i = 0; i < sched->job_limit; i++) {
        if (sched->jobs[i].id != 0) {
            acre_names_give(acre_ledger_names(sched->ledger), sched->jobs[i].name);
        }
    }
    shadow_drop(sched);
    accounts_destroy(sched->accounts);
    forecast_destroy(sched->forecast);
    acre_burdens_destroy(sched->burdens);
    acre_map_finish(&sched->job_of_id);
    acre_map_finish(&sched->array_of_id);
    acre_map_finish(&sched->class_of_hash);
    acre_map_finish(&sched->line_of_pair);
    acre_map_finish(&sched->blocker_of_name);
    void *const arrays[] = {
        sched->jobs,     sched->runs,     sched->edges,   sched->arrays, sched->classes,
        sched->lines,    sched->owners,   sched->ranking, sched->parts,  sched->open_lines,
        sched->blockers, sched->promises, sched->timers,  sched->doomed, sched->due_arrays,
        sched->idle,     sched->repeat,   sched->shown,
    };
    for (size_t i = 0; i < ACRE_COUNT(arrays); i++) {
        free(arrays[i]);
    }
    free(sched);
}

size_t acre_sched_bytes(const struct acre_sched *sched) {
    size_t bytes = sizeof(*sched) + accounts_bytes(sched->accounts) +
                   forecast_bytes(sched->forecast) + acre_burdens_bytes(sched->burdens);
    const struct acre_map *maps[] = {&sched->job_of_id, &sched->array_of_id, &sched->class_of_hash,
                                     &sched->line_of_pair, &sched->blocker_of_name};
    for (size_t i = 0; i < ACRE_COUNT(maps); i++) {
        bytes += acre_map_bytes(maps[i]);
    }
    const struct {
        size_t count, size;
    } arrays[] = {
        {sched->job_capacity, sizeof(struct job)},
        {sched->run_capacity, sizeof(struct run)},
        {sched->edge_capacity, sizeof(struct edge)},
        {sched->array_capacity, sizeof(struct array)},
        {sched->class_capacity, sizeof(struct job_class)},
        {sched->line_capacity, sizeof(struct line)},
        {sched->owner_capacity, sizeof(struct owner) + sched->open_words * sizeof(uint64_t)},
        {sched->ranking_capacity, sizeof(uint32_t)},
        {sched->part_capacity, sizeof(struct acre_part)},
        {sched->blocker_capacity, sizeof(struct blocker)},
        {sched->promise_capacity, sizeof(struct promise)},
        {sched->timer_capacity, sizeof(struct timer)},
        {sched->doomed_capacity, sizeof(struct doomed)},
        {sched->due_array_capacity, sizeof(uint64_t)},
        {sched->idle_capacity, sizeof(uint64_t)},
        {sched->repeat_capacity, sizeof(uint64_t)},
        {ACRE_JOB_DEPENDENCIES_MAX, sizeof(struct acre_dependency)},
    };
    for (size_t i = 0; i < ACRE_COUNT(arrays); i++) {
        bytes += arrays[i].count * arrays[i].size;
    }
    for (uint32_t i = 0; i < sched->promise_count; i++) {
        bytes += acre_outlook_bytes(sched->promises[i].outlook);
    }
    return bytes + (sched->shadow.outlook != NULL ? acre_outlook_bytes(sched->shadow.outlook) : 0);
}

/* Everybody in order steps out; returns them. */
static uint32_t *leave_order(struct acre_sched *sched, uint32_t *ret_count) {
    uint32_t count = 0;
    uint32_t *again = acre_calloc(ACRE_MAX(sched->job_limit, 1U), sizeof(*again));
    for (uint32_t i = 0; i < sched->job_limit; i++) {
        const struct job *job = &sched->jobs[i];
        if (job->id == 0 || !order_has(job)) {
            continue;
        }
        again[count++] = i;
        if (job->stand == STAND_PROMISED) {
            tree_remove(&order_by_key, sched, order_of(sched, job), i);
        } else {
            queue_leave(sched, i);
        }
    }
    for (uint32_t i = 0; i < sched->ranking_count; i++) {
        sched->owners[sched->ranking[i]].is_ranked = false;
    }
    sched->ranking_count = 0;
    *ret_count = count;
    return again;
}

void acre_sched_set_policy(struct acre_sched *sched, const struct acre_policy *policy,
                           uint64_t now_ms) {
    const struct acre_policy *old = &sched->policy;
    bool same_order = old->kind == policy->kind &&
                      old->priority_age_ms == policy->priority_age_ms &&
                      old->default_estimate_ms == policy->default_estimate_ms;
    uint32_t count = 0;
    uint32_t *again = same_order ? NULL : leave_order(sched, &count);
    sched->policy = *policy;
    accounts_set_policy(sched->accounts, policy, now_ms);
    sched->ranked_ms = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (sched->jobs[again[i]].stand == STAND_PROMISED) {
            order_enter(sched, again[i], now_ms);
        } else {
            queue_enter(sched, again[i], now_ms);
        }
    }
    free(again);
    for (uint32_t i = 0; i < sched->blocker_count; i++) {
        lines_unpark(sched, i);
    }
    order_rank(sched, now_ms);
    sched->preempting = (struct preempting){0};
    acre_sched_ledger_changed(sched);
}

void acre_sched_ledger_changed(struct acre_sched *sched) {
    uint32_t kinds = acre_ledger_kind_count(sched->ledger);
    ACRE_ASSERT(kinds >= sched->kind_count);
    if (kinds != sched->kind_count) { /* other hardware: a request may take less of it */
        sched->kind_count = kinds;
        for (uint32_t i = 0; i < sched->class_limit; i++) {
            if (sched->classes[i].jobs > 0) {
                sched->classes[i].load = request_load(sched, &sched->classes[i].request);
            }
        }
    }
    sched->all_changed = true;
    sched->is_dirty = true;
    sched->shadow.is_stale = true;
    forecast_changed(sched->forecast);
}

void acre_sched_pause(struct acre_sched *sched, bool paused) {
    sched->paused = paused;
}

bool acre_sched_find(const struct acre_sched *sched, uint64_t id, struct acre_job *ret_job) {
    const struct job *job = job_find(sched, id);
    if (job != NULL) {
        job_show(sched, job, ret_job);
    }
    return job != NULL;
}

uint32_t acre_sched_members(const struct acre_sched *sched, uint64_t array) {
    uint32_t at = acre_map_get(&sched->array_of_id, array);
    return at != ACRE_MAP_NONE ? sched->arrays[at].members : 0;
}

void acre_sched_drop(struct acre_sched *sched, uint64_t id) {
    const struct job *job = job_find(sched, id);
    if (job == NULL || job->stand != STAND_ENDED) {
        return;
    }
    acre_burden_remove(sched, job);
    class_give(sched, job->class);
    if (job->array != NONE) {
        array_give(sched, job->array);
    }
    job_remove(sched, job_index(sched, job));
}

/* The cursor: which of the three in its top bits, the place in it below. */
enum { WALK_HOLDING, WALK_ORDER, WALK_ASIDE, WALK_END, WALK_SHIFT = 62 };
#define WALK_POSITION ((UINT64_C(1) << WALK_SHIFT) - 1)

bool acre_sched_walk(const struct acre_sched *sched, uint64_t *cursor, struct acre_job *ret_job) {
    void *trees = (void *)(uintptr_t)sched; /* only read */
    for (uint64_t part = *cursor >> WALK_SHIFT; part < WALK_END; part++) {
        uint64_t position = part == *cursor >> WALK_SHIFT ? *cursor & WALK_POSITION : 0;
        const struct job *job = NULL;
        if (part == WALK_ORDER) {
            job = order_walk(sched, &position);
        } else {
            const struct tree *tree = part == WALK_HOLDING ? &sched->holding : &sched->aside;
            uint32_t at = tree_at(&order_by_id, trees, tree, (uint32_t)position++);
            job = at != TREE_NONE ? &sched->jobs[at] : NULL;
        }
        if (job != NULL) {
            *cursor = part << WALK_SHIFT | position;
            job_show(sched, job, ret_job);
            return true;
        }
    }
    *cursor = (uint64_t)WALK_END << WALK_SHIFT;
    return false;
}

void acre_sched_counts(const struct acre_sched *sched, struct acre_sched_counts *ret_counts) {
    *ret_counts = sched->counts;
}
