/* api.c - the path from a route to the desk and back: the caller, refusals, answers. */
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
    ACTION_BYTES = 32,   /* of a record about a refusal */
    TARGET_BYTES = 96,
    DETAIL_BYTES = 256,
    BODIES_KIB = 8 << 10, /* of large bodies, at once and in a minute */
    BODIES_KEYS = 4096,   /* users */
};

static int identify(void *context, struct acre_exchange *exchange,
                    const struct acre_http_request *request, struct api_user *ret_user,
                    struct acre_error *err) {
    struct acre_api *api = context;
    return auth_identify(api->auth, exchange, request, ret_user, err);
}

static uint64_t monotonic_ms(void *context) {
    struct acre_api *api = context;
    return acre_clock_monotonic_ns(api->clock) / 1000000;
}

static bool is_change(const char *method) {
    return strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0;
}

/* --- refusals ------------------------------------------------------------------------------- */

static void set_actor(struct acre_api *api, const char *user, const char *address) {
    char actor[ACRE_AUTH_NAME_MAX + 8];
    snprintf(actor, sizeof(actor), "user:%s", user != NULL ? user : "");
    acre_desk_set_actor(api->desk, user != NULL ? actor : "nobody", address);
}

static void write_sum(void *context, const struct refusals_sum *sum) {
    struct acre_api *api = context;
    char detail[DETAIL_BYTES];
    char took[32];
    uint64_t now_ms = monotonic_ms(api);
    acre_format_span((now_ms - api->refusals_ms) / 1000 * 1000, took, sizeof(took));
    bool is_user = sum->user != NULL && sum->user[0] != '\0';
    const char *by = is_user                   ? sum->user
                     : sum->address[0] != '\0' ? sum->address
                     : sum->user != NULL       ? "other users"
                                               : "other addresses";
    snprintf(detail, sizeof(detail),
             "%llu more refused %s by %s within %s, not recorded one by one",
             (unsigned long long)sum->more, sum->more == 1 ? "request" : "requests", by, took);
    set_actor(api, is_user ? sum->user : NULL, sum->address);
    acre_desk_audit(api->desk, "requests", "", "refused", detail);
}

void acre_api_sum_refusals(struct acre_api *api) {
    refusals_turn(api->refusals, write_sum, api);
    acre_desk_set_actor(api->desk, NULL, NULL);
}

static void end_minute(void *context) {
    struct acre_api *api = context;
    api->refusals_timer = NULL; /* gone when this returns */
    if (acre_desk_writable(api->desk, NULL) == 0) {
        acre_api_sum_refusals(api);
    } else { /* nothing can be recorded now: a longer minute */
        api->refusals_timer =
            acre_loop_timer(api->loop, ACRE_REFUSALS_MINUTE_MS, 0, end_minute, api);
    }
}

/* Recorded while the caller has records left this minute, else counted. Paths and texts are cut, so
 * that a record has at most some 600 bytes. */
static void audit_refusal(struct acre_api *api, const struct acre_http_request *request,
                          const char *user, const struct acre_error *err) {
    char action[ACTION_BYTES];
    char target[TARGET_BYTES];
    char detail[DETAIL_BYTES];
    if (api->refusals_timer == NULL) {
        api->refusals_ms = monotonic_ms(api);
        api->refusals_timer =
            acre_loop_timer(api->loop, ACRE_REFUSALS_MINUTE_MS, 0, end_minute, api);
    }
    if (!refusals_note(api->refusals, user, request->peer->address)) {
        return;
    }
    acre_str_show(acre_str_from(request->path), target, sizeof(target));
    snprintf(action, sizeof(action), "%s request", request->method);
    snprintf(detail, sizeof(detail), "%s", err->text);
    set_actor(api, user, request->peer->address);
    acre_desk_audit(api->desk, action, target, acre_error_name(err->code), detail);
}

/* Requests refused before their handler. Those over a rate limit are not recorded, nor are paths
 * that do not exist and were asked for by strangers: they say nothing about any user. */
static void refused(void *context, const struct acre_http_request *request,
                    const struct api_user *user, int status, const struct acre_error *err) {
    struct acre_api *api = context;
    bool is_nothing = user == NULL && (status == 404 || status == 405);
    if (status != 429 && !is_nothing && (is_change(request->method) || status == 401)) {
        audit_refusal(api, request, user != NULL ? user->name : NULL, err);
    }
}

/* -------------------------------------------------------------------------------------------- */

static void make_router(struct acre_api *api) {
    router_destroy(api->router);
    struct router_options options = {.routes = acre_routes,
                                     .count = acre_route_count,
                                     .authenticate = identify,
                                     .refused = refused,
                                     .context = api,
                                     .requests = api->requests,
                                     .strangers = api->strangers,
                                     .guesses = api->guesses,
                                     .bodies = api->bodies,
                                     .now_ms = monotonic_ms};
    api->router = router_create(&options);
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
    api->logs_notify = -1;
    api->refusals = refusals_create();
    api->bodies = limit_create(&(struct acre_limit_options){
        .keys = BODIES_KEYS, .burst = BODIES_KIB, .per_minute = BODIES_KIB});
    acre_api_set_limits(api, &options->limits);
    return api;
}

void acre_api_destroy(struct acre_api *api) {
    if (api == NULL) {
        return;
    }
    router_destroy(api->router);
    limit_destroy(api->requests);
    limit_destroy(api->strangers);
    limit_destroy(api->guesses);
    limit_destroy(api->records.limit);
    limit_destroy(api->members.limit);
    limit_destroy(api->bodies);
    acre_timer_cancel(api->refusals_timer);
    refusals_destroy(api->refusals);
    free(api);
}

void acre_api_set_http(struct acre_api *api, struct acre_http *http) {
    api->http = http;
}

void acre_api_stop(struct acre_api *api) {
    api->stopping = true;
}

void acre_api_set_limits(struct acre_api *api, const struct acre_api_limits *limits) {
    limit_destroy(api->requests);
    limit_destroy(api->strangers);
    limit_destroy(api->guesses);
    api->requests = limit_create(&limits->requests);
    api->strangers = limit_create(&limits->strangers);
    api->guesses = limit_create(&limits->guesses);
    make_router(api);
}

uint32_t acre_api_peer_max(void *context) {
    const struct acre_api *api = context;
    return acre_desk_policy(api->desk)->limits.connections;
}

bool acre_api_knows_uid(void *context, uint32_t uid) {
    const struct acre_api *api = context;
    return auth_knows_uid(api->auth, uid);
}

void acre_api_handle(void *context, struct acre_exchange *exchange,
                     const struct acre_http_request *request) {
    struct acre_api *api = context;
    router_handle(api->router, exchange, request);
    /* Runs that end later in this turn are not the caller's doing. */
    acre_desk_set_actor(api->desk, NULL, NULL);
}

void acre_api_event(void *context, const struct acre_desk_event *event) {
    struct acre_api *api = context;
    const struct acre_names *names = acre_desk_names(api->desk);
    struct acre_buf text;
    struct acre_json json;
    acre_buf_init(&text, 4096);
    acre_json_begin(&json, &text, false);
    acre_json_object(&json);
    acre_json_put_u64(&json, "seq", acre_sse_last_id(api->sse) + 1);
    view_put_time(&json, "at", event->event.now_ms);
    acre_json_put_string(&json, "kind", acre_sched_event_name(event->event.kind));
    acre_json_put_u64(&json, "job", event->event.job);
    acre_json_put_string(&json, "state", acre_job_state_name(event->state));
    acre_json_put_u64(&json, "attempt", event->attempt);
    acre_json_put_string(&json, "user", acre_names_text(names, event->user));
    acre_json_put_string(&json, "project", acre_names_text(names, event->project));
    view_put_known(&json, "other", event->event.other != 0 ? event->event.other : ACRE_UNKNOWN);
    acre_json_object_end(&json);
    if (acre_json_end(&json) == 0) {
        acre_sse_publish(api->sse, "job", event->event.job,
                         (struct acre_str){text.data, text.length});
    }
    acre_buf_finish(&text);
    if (!acre_job_state_holds(event->state) && event->attempt > 0) {
        logs_ended(api, event->event.job, event->attempt);
    } else if (!acre_job_state_is_live(event->state)) {
        logs_ended(api, event->event.job, UINT32_MAX); /* it never ran */
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

/* An answer that waits for the commit of what it says. */
struct answer {
    struct acre_desk_waiter waiter; /* first: the desk knows nothing else of it */
    struct acre_exchange *exchange;
    int status;
    const char *content_type;
    struct acre_buf body;
};

static void send_answer(struct acre_desk_waiter *waiter, const struct acre_error *err) {
    struct answer *answer = (struct answer *)waiter;
    if (err != NULL) {
        acre_problem_answer(answer->exchange, err);
    } else {
        acre_http_answer(answer->exchange, answer->status, answer->content_type, &answer->body);
    }
    acre_buf_finish(&answer->body);
    free(answer);
}

void acre_api_answer(struct acre_api *api, struct acre_exchange *exchange, int status,
                     const char *content_type, struct acre_buf *body) {
    if (acre_desk_is_durable(api->desk)) {
        acre_http_answer(exchange, status, content_type, body);
        return;
    }
    struct answer *answer = acre_calloc(1, sizeof(*answer));
    *answer = (struct answer){.waiter.done = send_answer,
                              .exchange = exchange,
                              .status = status,
                              .content_type = content_type,
                              .body = *body};
    acre_buf_init(body, body->max); /* taken */
    acre_desk_wait(api->desk, &answer->waiter);
}

void acre_reply_send(struct acre_api *api, struct acre_call *call, struct acre_reply *reply,
                     int status) {
    acre_json_object_end(&reply->json);
    if (acre_json_end(&reply->json) < 0) {
        acre_problem_fail(call->exchange, ACRE_ELIMIT, "the answer is longer than %d bytes",
                          ACRE_ANSWER_MAX_BYTES);
    } else {
        acre_buf_putc(&reply->buf, '\n');
        acre_api_answer(api, call->exchange, status, "application/json", &reply->buf);
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
    return inventory_is_simulated(acre_desk_inventory(api->desk));
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
                     call->user.name, role_name(call->user.role));
}

bool acre_page_read(struct acre_api *api, struct acre_call *call, struct acre_page *ret_page) {
    struct acre_page page = {.limit = (uint32_t)call_query_i64(call, "limit", PAGE_DEFAULT)};
    const char *cursor = call_query(call, "cursor");
    if (cursor != NULL &&
        acre_parse_count("cursor", cursor, 0, UINT64_MAX, &page.after, NULL) < 0) {
        struct acre_error err = {0};
        char shown[40];
        acre_fail(&err, ACRE_EINVALID,
                  "cursor: '%s' is not a cursor; accepted: the 'next' of a page",
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
