/* depend.c - jobs that wait for other jobs.
 *
 * An open dependency is an edge in two lists: what the waiter needs, and who needs the target. When
 * the target starts or ends its list is walked once; met edges go, and a waiter without any stands
 * in line. A dependency that can no longer be met dooms the waiter; doomed jobs are canceled from a
 * list and not by recursion, so a chain of a hundred thousand jobs costs no stack. Jobs depend on
 * smaller ids only, hence never in circles. */
#include "sched/inner.h"

enum verdict { OPEN, MET, FAILED };

static enum verdict judge(enum acre_dependency_kind kind, enum acre_job_state state,
                          bool has_started) {
    if (acre_job_state_is_live(state)) {
        return kind == ACRE_DEPENDENCY_AFTER && has_started ? MET : OPEN;
    }
    return kind == ACRE_DEPENDENCY_AFTER_OK && state != ACRE_JOB_COMPLETED ? FAILED : MET;
}

static enum verdict judge_known(const struct acre_sched *sched, const struct job *target,
                                enum acre_dependency_kind kind) {
    bool has_started =
        target->state == ACRE_JOB_RUNNING ||
        (target->state == ACRE_JOB_PREEMPTED && job_run(sched, target)->started_ms != 0);
    return judge(kind, (enum acre_job_state)target->state, has_started);
}

static enum verdict judge_given(const struct acre_sched *sched,
                                const struct acre_dependency *dependency) {
    const struct job *target = job_find(sched, dependency->job);
    return target != NULL ? judge_known(sched, target, dependency->kind)
                          : judge(dependency->kind, dependency->state, false);
}

int depend_check(const struct acre_sched *sched, const struct acre_job_spec *spec,
                 struct acre_error *err) {
    if (spec->dependency_count > ACRE_JOB_DEPENDENCIES_MAX) {
        return acre_fail(err, ACRE_EINVALID, "after: %u jobs are too many; accepted: at most %d",
                         spec->dependency_count, ACRE_JOB_DEPENDENCIES_MAX);
    }
    for (uint32_t i = 0; i < spec->dependency_count; i++) {
        const struct acre_dependency *dependency = &spec->dependencies[i];
        unsigned long long id = dependency->job;
        if (dependency->kind > ACRE_DEPENDENCY_AFTER_ANY) {
            return acre_fail(err, ACRE_EINVALID,
                             "after: unknown kind %u; accepted: after, ok or any",
                             dependency->kind);
        }
        if (id == 0 || id >= spec->id) {
            return acre_fail(err, ACRE_EINVALID,
                             "after: job %llu is not older than this job; accepted: an earlier job",
                             id);
        }
        bool is_known = job_find(sched, id) != NULL;
        if (!is_known && (dependency->state >= ACRE_JOB_STATE_COUNT ||
                          acre_job_state_is_live(dependency->state))) {
            return acre_fail(err, ACRE_EINVALID, "after: there is no job %llu", id);
        }
        if (judge_given(sched, dependency) == FAILED) {
            return acre_fail(err, ACRE_ECONFLICT,
                             "after: job %llu did not complete, so this job would never start; use "
                             "'any:%llu' or submit that job again",
                             id, id);
        }
    }
    return 0;
}

static void doom(struct acre_sched *sched, uint64_t job, uint64_t because) {
    sched->doomed = acre_grow(sched->doomed, sched->doomed_count, &sched->doomed_capacity,
                              sizeof(*sched->doomed));
    sched->doomed[sched->doomed_count++] = (struct doomed){job, because};
}

void depend_add(struct acre_sched *sched, uint32_t index, const struct acre_job_spec *spec) {
    ACRE_ASSERT(sched->jobs[index].id == spec->id && sched->jobs[index].needs == NONE);
    ACRE_ASSERT(spec->dependency_count <= ACRE_JOB_DEPENDENCIES_MAX);
    for (uint32_t i = spec->dependency_count; i-- > 0;) {
        const struct acre_dependency *dependency = &spec->dependencies[i];
        enum verdict verdict = judge_given(sched, dependency);
        if (verdict == FAILED) {
            doom(sched, spec->id, dependency->job);
        }
        struct job *target = verdict == OPEN ? job_find(sched, dependency->job) : NULL;
        if (target == NULL) {
            continue;
        }
        uint32_t at = edge_add(sched);
        sched->edges[at] = (struct edge){
            .waiter = index,
            .target = job_index(sched, target),
            .next_need = sched->jobs[index].needs,
            .next_by = target->needed_by,
            .previous_by = NONE,
            .kind = (uint8_t)dependency->kind,
        };
        if (target->needed_by != NONE) {
            sched->edges[target->needed_by].previous_by = at;
        }
        target->needed_by = at;
        sched->jobs[index].needs = at;
    }
}

/* Out of the target's list; the waiter's is the caller's. */
static void unlink_by(struct acre_sched *sched, uint32_t at) {
    const struct edge *edge = &sched->edges[at];
    if (edge->previous_by != NONE) {
        sched->edges[edge->previous_by].next_by = edge->next_by;
    } else {
        sched->jobs[edge->target].needed_by = edge->next_by;
    }
    if (edge->next_by != NONE) {
        sched->edges[edge->next_by].previous_by = edge->previous_by;
    }
}

void depend_drop(struct acre_sched *sched, uint32_t index) {
    struct job *job = &sched->jobs[index];
    while (job->needs != NONE) {
        uint32_t at = job->needs;
        job->needs = sched->edges[at].next_need;
        unlink_by(sched, at);
        edge_remove(sched, at);
    }
}

static void remove_need(struct acre_sched *sched, uint32_t at) {
    uint32_t *link = &sched->jobs[sched->edges[at].waiter].needs;
    while (*link != at) {
        ACRE_ASSERT(*link != NONE);
        link = &sched->edges[*link].next_need;
    }
    *link = sched->edges[at].next_need;
    unlink_by(sched, at);
    edge_remove(sched, at);
}

/* The target is in this state now: settle the edges for which that is enough. */
void depend_moved(struct acre_sched *sched, uint32_t index, uint64_t now_ms) {
    uint32_t next;
    for (uint32_t at = sched->jobs[index].needed_by; at != NONE; at = next) {
        struct edge edge = sched->edges[at];
        next = edge.next_by;
        enum verdict verdict =
            judge_known(sched, &sched->jobs[index], (enum acre_dependency_kind)edge.kind);
        uint64_t waiter = sched->jobs[edge.waiter].id;
        if (verdict == OPEN) {
            continue;
        }
        remove_need(sched, at);
        if (verdict == FAILED) {
            doom(sched, waiter, sched->jobs[index].id);
            continue;
        }
        if (sched->jobs[edge.waiter].needs == NONE) {
            queue_again(sched, edge.waiter, now_ms);
        }
        tell(sched, ACRE_SCHED_CHANGED, now_ms, waiter, sched->jobs[index].id);
    }
    ACRE_ASSERT(sched->jobs[index].stand != STAND_ENDED || sched->jobs[index].needed_by == NONE);
}

void depend_settle(struct acre_sched *sched, uint64_t now_ms) {
    while (sched->doomed_count > 0) {
        struct doomed doomed = sched->doomed[--sched->doomed_count];
        const struct job *job = job_find(sched, doomed.job);
        if (job != NULL && job->state == ACRE_JOB_QUEUED) {
            uint32_t index = job_index(sched, job);
            job_end(sched, index, MOVE_CANCEL, doomed.because, now_ms);
        }
    }
}
