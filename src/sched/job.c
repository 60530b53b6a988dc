/* job.c - the names of states, dependencies and exits, and one job as others see it. */
#include "sched/inner.h"

static const struct {
    const char *text;
    bool live, holds;
} states[] = {
#define X(name, text, live, holds) {text, live, holds},
    ACRE_JOB_STATES(X)
#undef X
};

static const char *const dependency_names[] = {
#define X(name, text) text,
    ACRE_DEPENDENCIES(X)
#undef X
};

static const char *const exit_names[] = {
#define X(name, text) text,
    ACRE_EXIT_KINDS(X)
#undef X
};

static const char *const event_names[] = {
#define X(name, text) text,
    ACRE_SCHED_EVENTS(X)
#undef X
};

const char *acre_job_state_name(enum acre_job_state state) {
    return states[state].text;
}

bool acre_job_state_parse(struct acre_str text, enum acre_job_state *ret_state) {
    for (size_t i = 0; i < ACRE_COUNT(states); i++) {
        if (acre_str_is(text, states[i].text)) {
            *ret_state = (enum acre_job_state)i;
            return true;
        }
    }
    return false;
}

bool acre_job_state_is_live(enum acre_job_state state) {
    return states[state].live;
}

bool acre_job_state_holds(enum acre_job_state state) {
    return states[state].holds;
}

const char *acre_dependency_name(enum acre_dependency_kind kind) {
    return dependency_names[kind];
}

const char *acre_exit_kind_name(enum acre_exit_kind kind) {
    return exit_names[kind];
}

const char *acre_sched_event_name(enum acre_sched_event_kind kind) {
    return event_names[kind];
}

struct job *job_find(const struct acre_sched *sched, uint64_t id) {
    uint32_t at = acre_map_get(&sched->job_of_id, id);
    return at != ACRE_MAP_NONE ? &sched->jobs[at] : NULL;
}

void job_show_spec(const struct acre_sched *sched, const struct job *job,
                   struct acre_job_spec *ret_spec) {
    const struct array *array = job->array != NONE ? &sched->arrays[job->array] : NULL;
    *ret_spec = (struct acre_job_spec){
        .id = job->id,
        .user = job->user,
        .project = job->project,
        .name = job->name,
        .request = sched->classes[job->class].request,
        .priority = (enum acre_job_priority)job->priority,
        .estimate_ms = job->estimate_ms,
        .limit_ms = job->limit_ms,
        .begin_ms = job->begin_ms,
        .max_retries = job->max_retries,
        .held = job->held,
        .fixed = job->fixed,
        .smaller_on_oom = job->smaller_on_oom,
        .array = array != NULL ? array->id : 0,
        .array_index = job->array_index,
        .array_limit = array != NULL ? array->limit : 0,
        .bytes = job->bytes,
    };
    ret_spec->request.owner = job->id;
    ret_spec->request.tenant = job->project;
}

uint64_t job_predicted_ms(const struct acre_sched *sched, const struct job *job) {
    struct acre_job_spec spec;
    job_show_spec(sched, job, &spec);
    return forecast_run_ms(sched->forecast, &spec, sched->policy.default_estimate_ms);
}

void job_show(const struct acre_sched *sched, const struct job *job, struct acre_job *ret_job) {
    *ret_job = (struct acre_job){
        .state = (enum acre_job_state)job->state,
        .retries = job->retries,
        .canceling = job->canceling,
        .submitted_ms = job->submitted_ms,
        .eligible_ms = job->eligible_ms,
        .not_before_ms = job->not_before_ms,
    };
    job_show_spec(sched, job, &ret_job->spec);
    uint32_t count = 0;
    for (uint32_t at = job->needs; at != NONE; at = sched->edges[at].next_need) {
        const struct edge *edge = &sched->edges[at];
        sched->shown[count++] = (struct acre_dependency){
            .job = sched->jobs[edge->target].id,
            .kind = (enum acre_dependency_kind)edge->kind,
            .state = (enum acre_job_state)sched->jobs[edge->target].state,
        };
    }
    ret_job->spec.dependencies = count > 0 ? sched->shown : NULL;
    ret_job->spec.dependency_count = count;
    const struct run *run = job_run(sched, job);
    if (run != NULL) {
        ret_job->attempt = run->attempt;
        ret_job->preemptions = run->preemptions;
        ret_job->scheduled_ms = run->scheduled_ms;
        ret_job->started_ms = run->started_ms;
        ret_job->ended_ms = run->ended_ms;
        ret_job->run_ms = run->run_ms;
        ret_job->allocation = run->allocation;
        ret_job->preempted_for = run->preempted_for;
        ret_job->exit = run->exit;
    }
}
