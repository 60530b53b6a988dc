/* arrays.c - what is asked of all live members of an array at once: cancel, hold, release,
 * priority. Those it does not apply to (running ones, to hold) are left as they are. */
#include "api/budget.h"
#include "api/handlers.h"
#include "api/jobs.h"
#include "desk/commands.h"

#include <stdio.h>

/* What is done to a member: a command, or (NULL) a new priority. */
struct member_change {
    int (*command)(struct acre_desk *desk, uint64_t job, struct acre_error *err);
    enum acre_job_priority priority;
};

static int apply(const struct member_change *change, struct acre_desk *desk, uint64_t job,
                 struct acre_error *err) {
    return change->command != NULL ? change->command(desk, job, err)
                                   : acre_desk_set_priority(desk, job, change->priority, err);
}

/* A walk over the members the scheduler has: their numbers grow by one, with gaps where some have
 * been dropped. */
struct members {
    const struct acre_sched *sched;
    uint64_t array, next;
    uint32_t left;
};

static struct members members_of(struct acre_api *api, uint64_t array) {
    const struct acre_sched *sched = acre_desk_sched(api->desk);
    return (struct members){sched, array, array, acre_sched_members(sched, array)};
}

static bool next_live(struct members *members, struct acre_job *ret_member) {
    while (members->left > 0) {
        if (acre_sched_find(members->sched, members->next++, ret_member) &&
            ret_member->spec.array == members->array) {
            members->left--;
            if (acre_job_state_is_live(ret_member->state)) {
                return true;
            }
        }
    }
    return false;
}

static bool see(void *context, const struct acre_store_job *row) {
    (void)row;
    *(bool *)context = true;
    return false;
}

/* No member is live: was there ever such an array? */
static int fail_without_member(struct acre_api *api, uint64_t array, struct acre_error *err) {
    struct acre_job_filter filter = {.array = array, .limit = 1};
    bool seen = false;
    int r = acre_store_jobs(acre_desk_store(api->desk), &filter, see, &seen, err);
    if (r < 0) {
        return r;
    }
    return seen ? acre_fail(err, ACRE_ECONFLICT, "all jobs of array %llu have already ended",
                            (unsigned long long)array)
                : acre_fail(err, ACRE_ENOTFOUND, "there is no array %llu",
                            (unsigned long long)array);
}

/* Do it to every member it applies to, and list those. When it applies to none: the reason. */
static int change_members(struct acre_api *api, uint64_t array, const struct member_change *change,
                          struct acre_json *json, struct acre_error *err) {
    struct members members = members_of(api, array);
    struct acre_job member;
    uint32_t changed = 0;
    acre_json_put_u64(json, "array", array);
    acre_json_key(json, "jobs");
    acre_json_array(json);
    while (next_live(&members, &member)) {
        if (apply(change, api->desk, member.spec.id, err) == 0) {
            acre_json_u64(json, member.spec.id);
            changed++;
        }
    }
    acre_json_array_end(json);
    return changed > 0 ? 0 : err->code;
}

/* May the caller change this array? Its members have one owner. */
static int own(struct acre_api *api, struct acre_call *call, uint64_t array,
               struct acre_error *err) {
    struct members members = members_of(api, array);
    struct acre_job member;
    if (!next_live(&members, &member)) {
        return fail_without_member(api, array, err);
    }
    char what[40];
    snprintf(what, sizeof(what), "array %llu", (unsigned long long)array);
    const struct acre_names *names = acre_desk_names(api->desk);
    return acre_api_owns(call, acre_names_text(names, member.spec.user), what, err);
}

static void change_array(struct acre_api *api, struct acre_call *call, int status,
                         const struct member_change *change) {
    struct acre_error err = {0};
    uint64_t array = 0;
    int r = call_id(call, "id", &array, &err);
    if (r == 0) {
        r = own(api, call, array, &err);
    }
    if (r == 0 && change->command == NULL) {
        r = jobs_may_have(call, change->priority, &err);
    }
    if (r < 0) {
        acre_api_fail(api, call, &err);
        return;
    }
    uint32_t count = acre_sched_members(acre_desk_sched(api->desk), array);
    bool is_free = change->command == acre_desk_cancel;
    if (!acre_api_may_change(api, call) || !(is_free || budget_take(api, call, count))) {
        return;
    }
    struct acre_reply reply;
    struct acre_json *json = acre_reply_begin(&reply);
    if (change_members(api, array, change, json, &err) < 0) {
        acre_reply_drop(&reply);
        acre_api_fail(api, call, &err);
        return;
    }
    acre_reply_send(api, call, &reply, status);
}

void handle_array_cancel(void *context, struct acre_call *call) {
    change_array(context, call, 202, &(struct member_change){.command = acre_desk_cancel});
}

void handle_array_hold(void *context, struct acre_call *call) {
    change_array(context, call, 200, &(struct member_change){.command = acre_desk_hold});
}

void handle_array_release(void *context, struct acre_call *call) {
    change_array(context, call, 200, &(struct member_change){.command = acre_desk_release});
}

void handle_array_priority(void *context, struct acre_call *call) {
    const json_t *priority = json_object_get(call->body, "priority");
    change_array(context, call, 200,
                 &(struct member_change){.priority = submit_priority(priority)});
}
