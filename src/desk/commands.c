/* commands.c - what is asked about jobs and rules: from the call to core, rows and audit trail. */
#include "desk/commands.h"

#include "desk/inner.h"
#include "sched/burden.h"

#include <stdlib.h>
#include <string.h>

/* --- jobs ----------------------------------------------------------------------------------- */

/* Take back what was submitted in this call: it is in no batch yet. */
static void undo_submit(struct acre_desk *desk, uint64_t first, uint64_t end, uint32_t events,
                        uint32_t actions) {
    for (uint64_t id = end; id-- > first;) {
        acre_sched_cancel(desk->sched, id, acre_desk_now(desk), NULL);
        acre_sched_drop(desk->sched, id);
    }
    desk->events.count = events;
    desk->actions.count = actions; /* the ids are used up: the scheduler takes none twice */
}

static void keep_submission(struct acre_desk *desk, uint64_t first, uint32_t count,
                            struct acre_str text) {
    desk->submissions = acre_grow(desk->submissions, desk->submission_count,
                                  &desk->submission_capacity, sizeof(*desk->submissions));
    struct desk_submission *to = &desk->submissions[desk->submission_count++];
    *to = (struct desk_submission){.first = first, .count = count, .length = text.length};
    to->text = acre_calloc(text.length + 1, 1);
    memcpy(to->text, text.data, text.length);
}

/* Every member, until one is refused. */
static int submit_members(struct acre_desk *desk, struct acre_submission *submission,
                          uint64_t now_ms, struct acre_error *err) {
    struct acre_job_spec *spec = &submission->spec;
    uint64_t first = desk->next_job;
    uint32_t first_index = spec->array_index;
    bool is_array = spec->array != 0;
    uint32_t events = desk->events.count;
    uint32_t actions = desk->actions.count;
    int r = 0;
    for (uint32_t i = 0; i < submission->count && r == 0; i++) {
        spec->id = desk->next_job;
        spec->array = is_array ? first : 0;
        spec->array_index = first_index + i;
        r = acre_sched_submit(desk->sched, spec, now_ms, err);
        desk->next_job += r == 0;
    }
    if (r < 0) {
        undo_submit(desk, first, desk->next_job, events, actions);
    }
    return r;
}

int acre_desk_submit(struct acre_desk *desk, struct acre_submission *submission,
                     struct acre_str text, uint64_t *ret_first_id, struct acre_error *err) {
    ACRE_ASSERT(submission->count > 0 && text.length <= UINT32_MAX);
    ACRE_ASSERT(submission->user != NULL && submission->project != NULL);
    struct acre_names *names = acre_ledger_names(desk->ledger);
    struct acre_job_spec *spec = &submission->spec;
    uint64_t first = desk->next_job;
    int r = acre_desk_writable(desk, err);
    spec->user = acre_names_intern(names, acre_str_from(submission->user));
    spec->project = acre_names_intern(names, acre_str_from(submission->project));
    spec->name = acre_names_take(names, acre_str_from(submission->name));
    spec->bytes = (uint32_t)text.length;
    if (r == 0 && submission->limited) {
        r = acre_sched_within_limits(desk->sched, spec, submission->count, err);
    }
    if (r == 0) {
        r = submit_members(desk, submission, acre_desk_now(desk), err);
    }
    acre_names_give(names, spec->name); /* the scheduler has it, or nobody does */
    if (r < 0) {
        return r;
    }
    if (submission->recipe.external) {
        desk_add_external(desk, first);
    }
    specs_put(desk->specs, first, text);
    keep_submission(desk, first, submission->count, text);
    desk_changed(desk);
    *ret_first_id = first;
    return 0;
}

int acre_desk_may_place(struct acre_desk *desk, const struct acre_request *request,
                        struct acre_error *err) {
    uint32_t count = acre_request_parts(request);
    struct acre_part *parts = acre_calloc(count + 1U, sizeof(*parts));
    int r = acre_ledger_plan(desk->ledger, request, acre_desk_now(desk), parts, count, &count, err);
    free(parts);
    return r;
}

int acre_desk_allocate(struct acre_desk *desk, struct acre_submission *submission,
                       struct acre_str text, struct acre_job *ret_job, struct acre_error *err) {
    ACRE_ASSERT(submission->recipe.external && submission->count == 1);
    uint64_t id = 0;
    int r = acre_desk_submit(desk, submission, text, &id, err);
    if (r < 0) {
        return r;
    }
    uint64_t now_ms = acre_desk_now(desk);
    acre_sched_pass(desk->sched, now_ms, 0);
    bool found = acre_sched_find(desk->sched, id, ret_job);
    if (!found || !acre_job_state_holds(ret_job->state)) {
        acre_sched_cancel(desk->sched, id, now_ms, NULL);
        return acre_fail(err, ACRE_ENOFIT,
                         "gpu_count: the GPUs are free, but other jobs are ahead in the queue");
    }
    return 0;
}

int acre_desk_cancel(struct acre_desk *desk, uint64_t job, struct acre_error *err) {
    return acre_sched_cancel(desk->sched, job, acre_desk_now(desk), err);
}

int acre_desk_hold(struct acre_desk *desk, uint64_t job, struct acre_error *err) {
    return acre_sched_hold(desk->sched, job, acre_desk_now(desk), err);
}

int acre_desk_release(struct acre_desk *desk, uint64_t job, struct acre_error *err) {
    return acre_sched_release(desk->sched, job, acre_desk_now(desk), err);
}

int acre_desk_set_priority(struct acre_desk *desk, uint64_t job, enum acre_job_priority priority,
                           struct acre_error *err) {
    return acre_sched_set_priority(desk->sched, job, priority, acre_desk_now(desk), err);
}

void acre_desk_sampled(struct acre_desk *desk, struct acre_run run, uint32_t use_milli) {
    acre_sched_sampled(desk->sched, run.job, run.attempt, use_milli, acre_desk_now(desk));
    desk->touched = true;
}

/* --- rules ---------------------------------------------------------------------------------- */

void acre_desk_set_policy(struct acre_desk *desk, const struct acre_policy *policy,
                          const char *what) {
    struct acre_buf text;
    struct acre_json json;
    acre_buf_init(&text, ACRE_POLICY_BYTES_MAX);
    acre_json_begin(&json, &text, false);
    acre_policy_write(policy, &json);
    int r = acre_json_end(&json);
    ACRE_ASSERT(r == 0); /* it was read from no more than that */
    *desk->policy = *policy;
    acre_sched_set_policy(desk->sched, policy, acre_desk_now(desk));
    desk_limit_engines(desk);
    acre_batch_put_setting(acre_desk_batch(desk), "policy",
                           (struct acre_str){text.data, text.length});
    acre_desk_audit(desk, "policy changed", what, "ok", acre_policy_name(policy->kind));
    acre_buf_finish(&text);
}

void acre_desk_pause(struct acre_desk *desk, bool paused) {
    desk->paused = paused;
    acre_sched_pause(desk->sched, paused);
    acre_batch_put_setting(acre_desk_batch(desk), "paused",
                           paused ? ACRE_STR("true") : ACRE_STR("false"));
    acre_desk_audit(desk, paused ? "scheduling stopped" : "scheduling started", "orchestrator",
                    "ok", "");
}
