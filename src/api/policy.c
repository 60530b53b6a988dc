/* policy.c - the rules of the queue, read and replaced at run time (POL-10), and usage by user and
 * project.
 *
 * A change is merged into a copy, checked as a whole, then put into force and into the store in one
 * turn. Quotas are rows of the policy with routes of their own. */
#include "sched/policy.h"

#include "api/api.h"
#include "api/handlers.h"
#include "desk/commands.h"
#include "sched/why.h"

#include <stdlib.h>
#include <string.h>

/* What the keys mean and which values they take is the policy's own business (sched/policy.h). */
const struct field policy_fields[] = {
    {.name = "policy",
     .kinds = ACRE_KIND_STRING,
     .help = "fair-share, priority, fcfs, sjf or gang"},
    {.name = "backfill", .kinds = ACRE_KIND_BOOL},
    {.name = "preemption", .kinds = ACRE_KIND_BOOL},
    {.name = "half_life", .kinds = ACRE_KIND_DURATION, .help = "of recorded usage"},
    {.name = "priority_age", .kinds = ACRE_KIND_DURATION},
    {.name = "preempt_min_run", .kinds = ACRE_KIND_DURATION},
    {.name = "preempt_grace", .kinds = ACRE_KIND_DURATION},
    {.name = "retry_base", .kinds = ACRE_KIND_DURATION},
    {.name = "retry_max", .kinds = ACRE_KIND_DURATION},
    {.name = "default_estimate", .kinds = ACRE_KIND_DURATION},
    {.name = "idle", .kinds = ACRE_KIND_STRING, .help = "on-pressure, always or never"},
    {.name = "idle_below", .kinds = ACRE_KIND_NUMBER},
    {.name = "idle_after", .kinds = ACRE_KIND_DURATION},
    {.name = "idle_warn", .kinds = ACRE_KIND_DURATION},
    {.name = "private_processes",
     .kinds = ACRE_KIND_BOOL,
     .help = "jobs see only their own processes"},
    {.name = "max_queued_jobs", .kinds = ACRE_KIND_INTEGER, .help = "per user: waiting jobs"},
    {.name = "max_queued_size",
     .kinds = ACRE_KIND_MEMORY,
     .help = "per user: commands, scripts and environments of jobs that have not ended"},
    {.name = "max_array", .kinds = ACRE_KIND_INTEGER, .help = "members of one array"},
    {.name = "max_names",
     .kinds = ACRE_KIND_INTEGER,
     .help = "per user: different names of jobs that have not ended"},
    {.name = "max_tokens", .kinds = ACRE_KIND_INTEGER, .help = "per user"},
    {.name = "max_followers",
     .kinds = ACRE_KIND_INTEGER,
     .help = "per user: logs and event streams followed at once"},
    {.name = "max_connections",
     .kinds = ACRE_KIND_INTEGER,
     .help = "per user on the socket, per address over TCP"},
    {.name = "max_logs",
     .kinds = ACRE_KIND_MEMORY,
     .help = "per user: all logs; the oldest are removed first"},
    {.name = "max_grace",
     .kinds = ACRE_KIND_DURATION,
     .help = "the most time a job may have between SIGTERM and SIGKILL"},
    {.name = "default_memory",
     .kinds = ACRE_KIND_NUMBER,
     .help = "share of the node's memory for a job submitted without --memory"},
    {.name = "quotas", .kinds = ACRE_KIND_ARRAY, .help = "replaced as a whole"},
    {.name = "shares", .kinds = ACRE_KIND_ARRAY, .help = "replaced as a whole"},
    {.name = "policy_config",
     .kinds = ACRE_KIND_OBJECT,
     .help = "the whole policy as an object, as older clients send it"},
    {0},
};

static void answer_policy(struct acre_api *api, struct acre_call *call) {
    struct acre_buf body;
    struct acre_json json;
    acre_buf_init(&body, ACRE_POLICY_BYTES_MAX);
    acre_json_begin(&json, &body, false);
    acre_policy_write(acre_desk_policy(api->desk), &json);
    acre_json_end(&json);
    acre_api_answer(api, call->exchange, 200, "application/json", &body);
    acre_buf_finish(&body);
}

void handle_policy(void *context, struct acre_call *call) {
    answer_policy(context, call);
}

/* Merge `changes` into the policy and put it into force; false: refused and answered. */
static bool change_policy(struct acre_api *api, struct acre_call *call, const json_t *changes,
                          const char *what) {
    struct acre_error err = {0};
    if (!acre_api_may_change(api, call)) {
        return false;
    }
    struct acre_policy *policy = acre_calloc(1, sizeof(*policy));
    int r = acre_policy_read(changes, acre_desk_policy(api->desk), policy, &err);
    if (r == 0) {
        acre_desk_set_policy(api->desk, policy, what);
    } else {
        acre_api_fail(api, call, &err);
    }
    free(policy);
    return r == 0;
}

void handle_policy_put(void *context, struct acre_call *call) {
    const json_t *inner = json_object_get(call->body, "policy_config");
    json_t *empty = json_object();
    const json_t *changes = inner != NULL ? inner : call->body != NULL ? call->body : empty;
    if (change_policy(context, call, changes, "policy")) {
        answer_policy(context, call);
    }
    json_decref(empty);
}

/* --- quotas --------------------------------------------------------------------------------- */

const struct field quota_fields[] = {
    {.name = "gpus", .kinds = ACRE_KIND_NUMBER, .help = "held at once"},
    {.name = "memory", .kinds = ACRE_KIND_MEMORY, .help = "GPU memory held at once"},
    {.name = "running", .kinds = ACRE_KIND_INTEGER, .help = "jobs running at once"},
    {.name = "queued", .kinds = ACRE_KIND_INTEGER, .help = "waiting jobs; always a hard limit"},
    {.name = "gpu_hours", .kinds = ACRE_KIND_NUMBER, .help = "decayed usage"},
    {.name = "soft",
     .kinds = ACRE_KIND_BOOL,
     .help = "may be exceeded while no one else is waiting"},
    {0},
};

/* The policy as JSON, to change a part of it with the same reader. */
static json_t *policy_json(struct acre_api *api) {
    struct acre_buf text;
    struct acre_json writer;
    json_t *root = NULL;
    acre_buf_init(&text, ACRE_POLICY_BYTES_MAX);
    acre_json_begin(&writer, &text, false);
    acre_policy_write(acre_desk_policy(api->desk), &writer);
    acre_json_end(&writer);
    int r = acre_json_parse("policy", (struct acre_str){text.data, text.length},
                            ACRE_POLICY_BYTES_MAX, &root, NULL);
    ACRE_ASSERT(r == 0);
    acre_buf_finish(&text);
    return root;
}

static size_t find_quota(const json_t *quotas, const char *who) {
    size_t i = 0;
    while (i < json_array_size(quotas) &&
           strcmp(json_string_value(json_object_get(json_array_get(quotas, i), "who")), who) != 0) {
        i++;
    }
    return i;
}

static void answer_quotas(struct acre_api *api, struct acre_call *call) {
    json_t *policy = policy_json(api);
    char *text = json_dumps(json_object_get(policy, "quotas"), JSON_COMPACT);
    struct acre_buf body;
    acre_buf_init(&body, ACRE_ANSWER_MAX_BYTES);
    acre_buf_printf(&body, "{\"quotas\":%s}\n", text != NULL ? text : "[]");
    acre_api_answer(api, call->exchange, 200, "application/json", &body);
    acre_buf_finish(&body);
    free(text);
    json_decref(policy);
}

void handle_quotas(void *context, struct acre_call *call) {
    answer_quotas(context, call);
}

/* Put the list back with one row changed, added or (quota NULL) removed. */
static void change_quota(struct acre_api *api, struct acre_call *call, json_t *quota) {
    const char *who = call_parameter(call, "who");
    json_t *policy = policy_json(api);
    json_t *quotas = json_object_get(policy, "quotas");
    json_t *changes = json_object();
    size_t at = find_quota(quotas, who);
    bool found = at < json_array_size(quotas);
    if (quota == NULL && !found) {
        char shown[100];
        struct acre_error err = {0};
        acre_fail(&err, ACRE_ENOTFOUND, "'%s' has no quota",
                  acre_str_show(acre_str_from(who), shown, sizeof(shown)));
        acre_api_fail(api, call, &err);
    } else {
        if (quota == NULL) {
            json_array_remove(quotas, at);
        } else if (found) {
            json_array_set(quotas, at, quota);
        } else {
            json_array_append(quotas, quota);
        }
        json_object_set(changes, "quotas", quotas);
        if (change_policy(api, call, changes, "quotas")) {
            answer_quotas(api, call);
        }
    }
    json_decref(changes);
    json_decref(policy);
}

void handle_quota_put(void *context, struct acre_call *call) {
    json_t *quota = call->body != NULL ? json_copy(call->body) : json_object();
    json_object_set_new(quota, "who", json_string(call_parameter(call, "who")));
    change_quota(context, call, quota);
    json_decref(quota);
}

void handle_quota_delete(void *context, struct acre_call *call) {
    change_quota(context, call, NULL);
}

/* --- usage ---------------------------------------------------------------------------------- */

void handle_usage(void *context, struct acre_call *call) {
    struct acre_api *api = context;
    const struct acre_names *names = acre_desk_names(api->desk);
    struct acre_reply reply;
    struct acre_json *json = acre_reply_begin(&reply);
    struct acre_usage usage;
    uint32_t cursor = 0;
    uint64_t now_ms = acre_desk_now(api->desk);
    acre_json_key(json, "accounts");
    acre_json_array(json);
    while (acre_sched_usage(acre_desk_sched(api->desk), now_ms, &cursor, &usage)) {
        acre_json_object(json);
        acre_json_put_string(json, "project", acre_names_text(names, usage.project));
        acre_json_put_string(json, "user", acre_names_text(names, usage.user));
        acre_json_put_double(json, "gpu_hours", usage.gpu_hours, 3);
        acre_json_put_double(json, "charged_gpu_hours",
                             (double)usage.charged_ms / (1000.0 * 3600.0 * 1000.0), 3);
        acre_json_put_double(json, "share", usage.share, 6);
        acre_json_put_double(json, "used", usage.used, 6);
        acre_json_put_double(json, "factor", usage.factor, 6);
        acre_json_put_u64(json, "held_milli", usage.held_milli);
        acre_json_put_u64(json, "running", usage.running);
        acre_json_put_u64(json, "queued", usage.queued);
        acre_json_object_end(json);
    }
    acre_json_array_end(json);
    acre_reply_send(api, call, &reply, 200);
}
