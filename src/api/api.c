/* api.c - the way from a route to the desk and back: who asks, what is refused, how it is told. */
#include "api/api.h"

#include "api/logs.h"
#include "api/view.h"
#include "core/units.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PAGE_DEFAULT = 100,
    ANSWER_BYTES = 1800, /* one job */
};

static int identify(void *context, struct acre_exchange *exchange,
                    const struct acre_http_request *request, struct acre_api_user *ret_user,
                    struct acre_error *err) {
    struct acre_api *api = context;
    return acre_auth_identify(api->auth, exchange, request, ret_user, err);
}

static bool is_change(const char *method) {
    return strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0;
}

static void audit_refusal(struct acre_api *api, const struct acre_http_request *request,
                          const char *user, const struct acre_error *err) {
    char actor[ACRE_AUTH_NAME_MAX + 8];
    char action[96];
    char shown[96];
    snprintf(actor, sizeof(actor), "user:%s", user != NULL ? user : "");
    acre_str_show(acre_str_from(request->path), shown, sizeof(shown));
    snprintf(action, sizeof(action), "%s request", request->method);
    acre_desk_set_actor(api->desk, user != NULL ? actor : "nobody", request->peer->address);
    acre_desk_audit(api->desk, action, shown, acre_error_name(err->code), err->text);
}

/* Requests turned away before their handler. Those over a limit are not recorded: a flood of them
 * must not become a flood of the disk. */
static void refused(void *context, const struct acre_http_request *request,
                    const struct acre_api_user *user, int status, const struct acre_error *err) {
    struct acre_api *api = context;
    if (status != 429 && (is_change(request->method) || status == 401)) {
        audit_refusal(api, request, user != NULL ? user->name : NULL, err);
    }
}

static uint64_t monotonic_ms(void *context) {
    struct acre_api *api = context;
    return acre_clock_monotonic_ns(api->clock) / 1000000;
}

static void make_router(struct acre_api *api) {
    acre_router_destroy(api->router);
    struct acre_router_options options = {.routes = acre_routes,
                                          .count = acre_route_count,
                                          .authenticate = identify,
                                          .refused = refused,
                                          .context = api,
                                          .requests = api->requests,
                                          .guesses = api->guesses,
                                          .now_ms = monotonic_ms};
    api->router = acre_router_create(&options);
}

struct acre_api *acre_api_create(const struct acre_api_options *options) {
    struct acre_api *api = acre_calloc(1, sizeof(*api));
    api->loop = options->loop;
    api->clock = options->clock;
    api->store_url = options->store_url;
    api->desk = options->desk;
    api->auth = options->auth;
    api->sse = options->sse;
    api->logs_directory = options->logs_directory;
    api->started_ms = acre_clock_wall_ms(options->clock);
    acre_api_set_limits(api, &options->requests, &options->guesses);
    return api;
}

void acre_api_destroy(struct acre_api *api) {
    if (api == NULL) {
        return;
    }
    acre_router_destroy(api->router);
    acre_limit_destroy(api->requests);
    acre_limit_destroy(api->guesses);
    free(api);
}

void acre_api_set_limits(struct acre_api *api, const struct acre_limit_options *requests,
                         const struct acre_limit_options *guesses) {
    acre_limit_destroy(api->requests);
    acre_limit_destroy(api->guesses);
    api->requests = acre_limit_create(requests);
    api->guesses = acre_limit_create(guesses);
    make_router(api);
}

void acre_api_handle(void *context, struct acre_exchange *exchange,
                     const struct acre_http_request *request) {
    struct acre_api *api = context;
    acre_router_handle(api->router, exchange, request);
    /* Runs that end later in this turn are not the caller's doing. */
    acre_desk_set_actor(api->desk, NULL, NULL);
}

void acre_api_event(void *context, const struct acre_desk_event *event) {
    struct acre_api *api = context;
    const struct acre_names *names = acre_ledger_names(acre_desk_ledger(api->desk));
    struct acre_buf text;
    struct acre_json json;
    acre_buf_init(&text, 4096);
    acre_json_begin(&json, &text, false);
    acre_json_object(&json);
    acre_json_put_u64(&json, "seq", acre_sse_last_id(api->sse) + 1);
    acre_view_put_time(&json, "at", event->event.now_ms);
    acre_json_put_string(&json, "kind", acre_sched_event_name(event->event.kind));
    acre_json_put_u64(&json, "job", event->event.job);
    acre_json_put_string(&json, "state", acre_job_state_name(event->state));
    acre_json_put_u64(&json, "attempt", event->attempt);
    acre_json_put_string(&json, "user", acre_names_text(names, event->user));
    acre_json_put_string(&json, "project", acre_names_text(names, event->project));
    acre_view_put_known(&json, "other",
                        event->event.other != 0 ? event->event.other : ACRE_UNKNOWN);
    acre_json_object_end(&json);
    if (acre_json_end(&json) == 0) {
        acre_sse_publish(api->sse, "job", event->event.job,
                         (struct acre_str){text.data, text.length});
    }
    acre_buf_finish(&text);
    if (!acre_job_state_holds(event->state) && event->attempt > 0) {
        acre_logs_ended(api, event->event.job, event->attempt);
    } else if (!acre_job_state_is_live(event->state)) {
        acre_logs_ended(api, event->event.job, UINT32_MAX); /* it never ran */
    }
}

/* --- for handlers --------------------------------------------------------------------------- */

struct acre_json *acre_reply_begin(struct acre_reply *reply) {
    acre_buf_init(&reply->buf, ACRE_ANSWER_MAX_BYTES);
    acre_buf_reserve(&reply->buf, ANSWER_BYTES);
    acre_json_begin(&reply->json, &reply->buf, false);
    acre_json_object(&reply->json);
    return &reply->json;
}

void acre_reply_send(struct acre_api *api, struct acre_call *call, struct acre_reply *reply,
                     int status) {
    acre_json_object_end(&reply->json);
    if (acre_json_end(&reply->json) < 0) {
        acre_problem_fail(call->exchange, ACRE_ELIMIT, "the answer is longer than %d bytes",
                          ACRE_ANSWER_MAX_BYTES);
    } else {
        acre_buf_putc(&reply->buf, '\n');
        acre_desk_answer(api->desk, call->exchange, status, "application/json", &reply->buf);
    }
    acre_buf_finish(&reply->buf);
}

void acre_reply_drop(struct acre_reply *reply) {
    acre_buf_finish(&reply->buf);
}

void acre_api_fail(struct acre_api *api, struct acre_call *call, const struct acre_error *err) {
    if (is_change(call->request->method)) {
        audit_refusal(api, call->request, call->user.name, err);
    }
    acre_problem_answer(call->exchange, err);
}

bool acre_api_may_change(struct acre_api *api, struct acre_call *call) {
    struct acre_error err = {0};
    if (acre_desk_writable(api->desk, &err) < 0) {
        acre_problem_answer(call->exchange, &err);
        return false;
    }
    char actor[ACRE_AUTH_NAME_MAX + 8];
    snprintf(actor, sizeof(actor), "user:%s", call->user.name);
    acre_desk_set_actor(api->desk, actor, call->request->peer->address);
    return true;
}

bool acre_api_is_simulated(const struct acre_api *api) {
    return acre_inventory_is_simulated(acre_desk_inventory(api->desk));
}

void acre_api_audit(struct acre_api *api, const char *action, const char *target,
                    const char *detail) {
    acre_desk_audit(api->desk, action, target, "ok", detail);
}

int acre_api_owns(const struct acre_call *call, const char *owner, const char *what,
                  struct acre_error *err) {
    if (call->user.role >= ACRE_ROLE_OPERATOR || strcmp(call->user.name, owner) == 0) {
        return 0;
    }
    return acre_fail(err, ACRE_EDENIED, "%s belongs to '%s'; you are '%s' (%s)", what, owner,
                     call->user.name, acre_role_name(call->user.role));
}

bool acre_page_read(struct acre_api *api, struct acre_call *call, struct acre_page *ret_page) {
    struct acre_page page = {.limit = (uint32_t)acre_call_query_i64(call, "limit", PAGE_DEFAULT)};
    const char *cursor = acre_call_query(call, "cursor");
    if (cursor != NULL &&
        acre_parse_count("cursor", cursor, 0, UINT64_MAX, &page.after, NULL) < 0) {
        struct acre_error err = {0};
        char shown[40];
        acre_fail(&err, ACRE_EINVALID, "cursor: '%s'; accepted: the 'next' of a page",
                  acre_str_show(acre_str_from(cursor), shown, sizeof(shown)));
        acre_api_fail(api, call, &err);
        return false;
    }
    *ret_page = page;
    return true;
}

void acre_page_write(struct acre_json *json, bool more, uint64_t after) {
    char text[24];
    snprintf(text, sizeof(text), "%llu", (unsigned long long)after);
    acre_json_put_string(json, "next", more ? text : NULL);
}
