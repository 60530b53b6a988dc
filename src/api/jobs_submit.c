/* jobs_submit.c - POST /jobs: from the body to a job in the queue and its id in the answer.
 *
 * This is the hot path: the body is parsed once, its spec written once, and the answer is made from
 * what is at hand instead of being read back. */
#include "api/jobs.h"

#include "api/budget.h"
#include "api/handlers.h"
#include "sched/burden.h"

#include <stdlib.h>
#include <string.h>

/* Where a dependency stands. */
static bool read_state(void *context, const struct acre_store_job *row) {
    enum acre_job_state *state = context;
    acre_job_state_parse(acre_str_from(row->state), state);
    return false;
}

static bool find_job(void *context, uint64_t job, enum acre_job_state *ret_state) {
    struct acre_api *api = context;
    struct acre_job found;
    if (acre_sched_find(acre_desk_sched(api->desk), job, &found)) {
        *ret_state = found.state;
        return true;
    }
    return acre_store_job(acre_desk_store(api->desk), job, read_state, ret_state, NULL) == 0;
}

/* Who submits, who is charged, and whether that is allowed. */
static int fill_owner(struct acre_api *api, struct acre_call *call,
                      struct acre_submission *submission, struct acre_error *err) {
    int r = jobs_may_have(call, submission->spec.priority, err);
    if (r == 0 && submission->project != NULL) {
        r = auth_may_charge(call, submission->project, err);
    }
    submission->user = call->user.name;
    submission->spec.user =
        acre_names_find(acre_desk_names(api->desk), acre_str_from(call->user.name));
    submission->project = submission->project != NULL ? submission->project : call->user.project;
    submission->limited = budget_limits(call);
    return r;
}

/* If those that wait are too many as well, that is the better reason. */
static int check_budget(struct acre_api *api, const struct acre_call *call,
                        const struct acre_submission *submission, struct record_cost cost,
                        struct acre_error *err) {
    struct acre_error better;
    int r = budget_check(api, call, cost, err);
    if (r < 0 && acre_sched_within_limits(acre_desk_sched(api->desk), &submission->spec,
                                          submission->count, &better) < 0) {
        *err = better;
    }
    return r;
}

/* The spec as it is kept, and what that costs its user; refused when they cannot pay. */
static int write_spec(struct acre_api *api, const struct acre_call *call,
                      const struct acre_submission *submission, struct acre_buf *text,
                      struct record_cost *ret_cost, struct acre_error *err) {
    if (acre_record_write_spec(acre_desk_names(api->desk), &submission->spec, &submission->recipe,
                               text) < 0) {
        return acre_fail(
            err, ACRE_ELIMIT,
            "the job is too large: more than %d bytes with its command, script and environment",
            ACRE_RECORD_SPEC_MAX);
    }
    *ret_cost = (struct record_cost){
        .kib = submission->count * ACRE_JOB_KIB + (uint32_t)(text->length >> 10),
        .members = submission->count,
    };
    return check_budget(api, call, submission, *ret_cost, err);
}

/* Into the queue; `ret_job`: or, if it is not NULL, onto its devices now or not at all. */
static int submit(struct acre_api *api, struct acre_call *call, struct acre_submission *submission,
                  struct acre_job *ret_job, uint64_t *ret_first, struct acre_error *err) {
    struct record_cost cost;
    struct acre_buf text;
    acre_buf_init(&text, ACRE_RECORD_SPEC_MAX);
    int r = fill_owner(api, call, submission, err);
    if (r == 0) {
        r = write_spec(api, call, submission, &text, &cost, err);
    }
    if (r == 0) {
        struct acre_str spec = {text.data, text.length};
        r = ret_job != NULL ? acre_desk_allocate(api->desk, submission, spec, ret_job, err)
                            : acre_desk_submit(api->desk, submission, spec, ret_first, err);
        if (r == 0 || (ret_job != NULL && r == ACRE_ENOFIT)) { /* then its end is recorded, too */
            budget_pay(api, call, cost);
        }
    }
    acre_buf_finish(&text);
    return r;
}

int jobs_allocate(struct acre_api *api, struct acre_call *call, struct acre_submission *submission,
                  struct acre_job *ret_job, struct acre_error *err) {
    return submit(api, call, submission, ret_job, NULL, err);
}

static int check_array(struct acre_api *api, const struct acre_call *call, uint32_t count,
                       struct acre_error *err) {
    uint32_t max = acre_desk_policy(api->desk)->limits.array;
    if (count > max && budget_limits(call)) {
        return acre_fail(err, ACRE_ELIMIT,
                         "array: %u members are too many; accepted: at most %u (max_array in the "
                         "policy). Submit it in parts",
                         count, max);
    }
    return 0;
}

static int submit_body(struct acre_api *api, struct acre_call *call,
                       struct acre_submission *submission, uint64_t *ret_first,
                       struct acre_error *err) {
    struct submit_context context = {
        .names = acre_desk_names(api->desk),
        .inventory = acre_desk_inventory(api->desk),
        .now_ms = acre_desk_now(api->desk),
        .max_grace_ms = acre_desk_policy(api->desk)->limits.grace_ms,
        .find = find_job,
        .find_context = api,
    };
    int r = submit_read(call->body, &context, submission, err);
    if (r == 0) {
        r = check_array(api, call, submission->count, err);
    }
    return r == 0 ? submit(api, call, submission, NULL, ret_first, err) : r;
}

/* {"job": JOB} of the job just submitted. */
static void answer_one(struct acre_api *api, struct acre_call *call,
                       const struct acre_submission *submission, uint64_t id) {
    struct acre_job job;
    struct acre_reply reply;
    struct acre_json *json = acre_reply_begin(&reply);
    bool found = acre_sched_find(acre_desk_sched(api->desk), id, &job);
    ACRE_ASSERT(found);
    struct job_view view = {.now_ms = acre_desk_now(api->desk),
                            .exit_text = "",
                            .simulated = acre_api_is_simulated(api)};
    view_live(&view, acre_desk_ledger(api->desk), &job, &submission->recipe, call->arena);
    acre_json_key(json, "job");
    view_write(&view, json);
    acre_reply_send(api, call, &reply, 201);
}

/* {"array": ID, "jobs": [ids]} */
static void answer_array(struct acre_api *api, struct acre_call *call, uint64_t first,
                         uint32_t count) {
    struct acre_reply reply;
    struct acre_json *json = acre_reply_begin(&reply);
    acre_json_put_u64(json, "array", first);
    acre_json_key(json, "jobs");
    acre_json_array(json);
    for (uint32_t i = 0; i < count; i++) {
        acre_json_u64(json, first + i);
    }
    acre_json_array_end(json);
    acre_reply_send(api, call, &reply, 201);
}

void handle_jobs_submit(void *context, struct acre_call *call) {
    struct acre_api *api = context;
    struct acre_error err = {0};
    uint64_t first = 0;
    if (!acre_api_may_change(api, call)) {
        return;
    }
    struct acre_submission submission;
    if (submit_body(api, call, &submission, &first, &err) < 0) {
        acre_api_fail(api, call, &err);
    } else if (submission.spec.array != 0) {
        answer_array(api, call, first, submission.count);
    } else {
        answer_one(api, call, &submission, first);
    }
}
