/* jobs.c - jobs one by one: show, cancel, hold, release, priority, why. */
#include "api/jobs.h"

#include "api/budget.h"
#include "api/handlers.h"
#include "desk/commands.h"

#include <stdio.h>
#include <string.h>

const struct field jobs_priority_fields[] = {
    {.name = "priority",
     .kinds = ACRE_KIND_INTEGER | ACRE_KIND_STRING,
     .required = true,
     .min = 1,
     .max = 4,
     .words = acre_submit_priorities,
     .help = "4 requires the operator role"},
    {0},
};

void jobs_write_live(struct acre_api *api, struct acre_call *call, const struct acre_job *job,
                     bool explain, struct acre_json *json) {
    struct acre_desk *desk = api->desk;
    struct job_view view = {.now_ms = acre_desk_now(desk),
                            .exit_text = acre_desk_exit_text(desk, job->spec.id),
                            .simulated = acre_api_is_simulated(api)};
    struct acre_why why;
    struct acre_when when;
    if (explain && !acre_job_state_holds(job->state) && acre_job_state_is_live(job->state)) {
        if (acre_desk_why(desk, job->spec.id, &why, NULL) == 0) {
            view.why = &why;
        }
        if (acre_desk_when(desk, job->spec.id, &when, NULL) == 0) {
            view.when = &when;
        }
    }
    struct acre_recipe recipe = {.directory = ""};
    json_t *spec = NULL;
    bool known = acre_desk_parsed_spec(desk, job->spec.id, &spec, NULL) == 0 &&
                 acre_record_read_recipe(spec, &recipe, NULL) == 0;
    view_live(&view, acre_desk_ledger(desk), job, &recipe, call->arena);
    view.command = known ? view.command : NULL;
    view_write(&view, json);
}

/* --- ended jobs ----------------------------------------------------------------------------- */

struct showing {
    struct acre_api *api;
    struct acre_call *call;
    struct acre_json *json;
    struct acre_error *err;
    int result;
};

int jobs_read_row(struct acre_api *api, struct acre_arena *arena, const struct acre_store_job *row,
                  struct acre_recorded_job *ret_recorded, struct acre_error *err) {
    json_t *shared = NULL;
    int r = 0;
    if (row->spec_id != 0) {
        r = acre_desk_parsed_spec(api->desk, row->spec_id, &shared, err);
    }
    return r == 0 ? acre_record_read_job(row, shared, NULL, arena, ret_recorded, err) : r;
}

int jobs_write_row(struct acre_api *api, struct acre_call *call, const struct acre_store_job *row,
                   struct acre_json *json, struct acre_error *err) {
    struct acre_recorded_job recorded;
    int r = jobs_read_row(api, call->arena, row, &recorded, err);
    if (r < 0) {
        return r;
    }
    struct job_view view = {.now_ms = acre_desk_now(api->desk),
                            .simulated = acre_api_is_simulated(api)};
    view_recorded(&view, row, &recorded, call->arena);
    view_write(&view, json);
    json_decref(recorded.spec);
    return 0;
}

static bool show_row(void *context, const struct acre_store_job *row) {
    struct showing *showing = context;
    acre_json_key(showing->json, "job");
    showing->result = jobs_write_row(showing->api, showing->call, row, showing->json, showing->err);
    return false;
}

/* "job": JOB of `id`, live or ended. ACRE_ENOTFOUND: nothing was written. */
static int write_job(struct acre_api *api, struct acre_call *call, uint64_t id,
                     struct acre_json *json, struct acre_error *err) {
    struct acre_job job;
    if (acre_sched_find(acre_desk_sched(api->desk), id, &job)) {
        acre_json_key(json, "job");
        jobs_write_live(api, call, &job, true, json);
        return 0;
    }
    struct showing showing = {.api = api, .call = call, .json = json, .err = err};
    int r = acre_store_job(acre_desk_store(api->desk), id, show_row, &showing, err);
    if (r == ACRE_ENOTFOUND) {
        return acre_fail(err, ACRE_ENOTFOUND, "there is no job %llu", (unsigned long long)id);
    }
    return r < 0 ? r : showing.result;
}

static void answer(struct acre_api *api, struct acre_call *call, uint64_t id, int status) {
    struct acre_reply reply;
    struct acre_error err = {0};
    struct acre_json *json = acre_reply_begin(&reply);
    if (write_job(api, call, id, json, &err) < 0) {
        acre_reply_drop(&reply);
        acre_api_fail(api, call, &err);
        return;
    }
    acre_reply_send(api, call, &reply, status);
}

struct job_owner {
    struct acre_arena *arena;
    const char *name;
    uint32_t attempt;
    bool live;
};

static bool read_owner(void *context, const struct acre_store_job *row) {
    struct job_owner *owner = context;
    owner->name = acre_arena_strndup(owner->arena, row->user, strlen(row->user));
    owner->attempt = row->attempt;
    owner->live = row->live;
    return false;
}

int jobs_owner(struct acre_api *api, struct acre_call *call, uint64_t id, const char **ret_owner,
               uint32_t *ret_attempt, bool *ret_live, struct acre_error *err) {
    struct acre_job job;
    if (acre_sched_find(acre_desk_sched(api->desk), id, &job)) {
        *ret_owner = acre_names_text(acre_desk_names(api->desk), job.spec.user);
        *ret_attempt = job.attempt;
        *ret_live = acre_job_state_is_live(job.state);
        return 0;
    }
    struct job_owner owner = {.arena = call->arena};
    int r = acre_store_job(acre_desk_store(api->desk), id, read_owner, &owner, err);
    if (r == ACRE_ENOTFOUND) {
        return acre_fail(err, ACRE_ENOTFOUND, "there is no job %llu", (unsigned long long)id);
    }
    if (r == 0) {
        *ret_owner = owner.name;
        *ret_attempt = owner.attempt;
        *ret_live = owner.live;
    }
    return r;
}

bool jobs_own(struct acre_api *api, struct acre_call *call, uint64_t id) {
    struct acre_job job;
    struct acre_error err = {0};
    const char *owner = "";
    uint32_t attempt = 0;
    bool live = false;
    char what[40];
    snprintf(what, sizeof(what), "job %llu", (unsigned long long)id);
    int r = jobs_owner(api, call, id, &owner, &attempt, &live, &err);
    if (r == 0) {
        r = acre_api_owns(call, owner, what, &err);
    }
    if (r == 0 && !live) {
        r = acre_fail(&err, ACRE_ECONFLICT, "job %llu has already ended", (unsigned long long)id);
    }
    if (r == 0 && !acre_sched_find(acre_desk_sched(api->desk), id, &job)) {
        r = acre_fail(&err, ACRE_EINTERNAL,
                      "job %llu is in the store but not in the scheduler; try again",
                      (unsigned long long)id);
    }
    if (r < 0) {
        acre_api_fail(api, call, &err);
        return false;
    }
    return acre_api_may_change(api, call);
}

int jobs_may_have(const struct acre_call *call, enum acre_job_priority priority,
                  struct acre_error *err) {
    if (priority == ACRE_PRIORITY_CRITICAL && call->user.role < ACRE_ROLE_OPERATOR) {
        return acre_fail(err, ACRE_EDENIED,
                         "priority: 4 requires the operator role; accepted: 1 to 3");
    }
    return 0;
}

/* --- changes -------------------------------------------------------------------------------- */

/* A command about one job that the caller owns, and the job as it is then. */
static void change(struct acre_api *api, struct acre_call *call, uint64_t id, int status,
                   int (*command)(struct acre_desk *, uint64_t, struct acre_error *)) {
    struct acre_error err = {0};
    if (command(api->desk, id, &err) < 0) {
        acre_api_fail(api, call, &err);
        return;
    }
    answer(api, call, id, status);
}

static void set_priority(struct acre_api *api, struct acre_call *call, uint64_t id) {
    struct acre_error err = {0};
    enum acre_job_priority priority = submit_priority(json_object_get(call->body, "priority"));
    if (!jobs_own(api, call, id) || !budget_take(api, call, 1)) {
        return;
    }
    int r = jobs_may_have(call, priority, &err);
    if (r == 0) {
        r = acre_desk_set_priority(api->desk, id, priority, &err);
    }
    if (r < 0) {
        acre_api_fail(api, call, &err);
        return;
    }
    answer(api, call, id, 200);
}

/* --- routes --------------------------------------------------------------------------------- */

static bool read_id(struct acre_api *api, struct acre_call *call, uint64_t *ret_id) {
    struct acre_error err = {0};
    if (call_id(call, "id", ret_id, &err) < 0) {
        acre_api_fail(api, call, &err);
        return false;
    }
    return true;
}

void handle_job_show(void *context, struct acre_call *call) {
    uint64_t id = 0;
    if (read_id(context, call, &id)) {
        answer(context, call, id, 200);
    }
}

void handle_job_cancel(void *context, struct acre_call *call) {
    uint64_t id = 0;
    if (read_id(context, call, &id) && jobs_own(context, call, id)) {
        change(context, call, id, 202, acre_desk_cancel);
    }
}

void handle_job_hold(void *context, struct acre_call *call) {
    uint64_t id = 0;
    if (read_id(context, call, &id) && jobs_own(context, call, id) &&
        budget_take(context, call, 1)) {
        change(context, call, id, 200, acre_desk_hold);
    }
}

void handle_job_release(void *context, struct acre_call *call) {
    uint64_t id = 0;
    if (read_id(context, call, &id) && jobs_own(context, call, id) &&
        budget_take(context, call, 1)) {
        change(context, call, id, 200, acre_desk_release);
    }
}

void handle_job_priority(void *context, struct acre_call *call) {
    uint64_t id = 0;
    if (read_id(context, call, &id)) {
        set_priority(context, call, id);
    }
}

void handle_job_why(void *context, struct acre_call *call) {
    struct acre_api *api = context;
    uint64_t id = 0;
    struct acre_why why;
    struct acre_when when;
    struct acre_error err = {0};
    if (!read_id(api, call, &id)) {
        return;
    }
    struct acre_job job;
    bool live =
        acre_sched_find(acre_desk_sched(api->desk), id, &job) && acre_job_state_is_live(job.state);
    const char *owner = "";
    uint32_t attempt = 0;
    if (!live && jobs_owner(api, call, id, &owner, &attempt, &live, &err) < 0) {
        acre_api_fail(api, call, &err);
        return;
    }
    bool waits = live && acre_desk_why(api->desk, id, &why, &err) == 0;
    bool known = live && acre_desk_when(api->desk, id, &when, &err) == 0;
    struct acre_reply reply;
    struct acre_json *json = acre_reply_begin(&reply);
    acre_json_key(json, "why");
    view_write_why(json, waits ? &why : NULL);
    acre_json_key(json, "when");
    view_write_when(json, known ? &when : NULL);
    acre_reply_send(api, call, &reply, 200);
}
