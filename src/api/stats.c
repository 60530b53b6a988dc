/* stats.c - numbers about the whole: counts, waits, throughput, use of GPUs; and what programs ask
 * before anything else: version, health, the description of the API. */
#include "api/stats.h"

#include "api/handlers.h"
#include "api/openapi.h"
#include "api/view.h"

#include <string.h>

enum {
    OPENAPI_MAX_BYTES = 4 << 20,
    COUNT_RARELY = 50, /* at most a fiftieth of the time goes into counting */
};
#define DAY_MS  (UINT64_C(24) * 3600 * 1000)
#define HOUR_MS (UINT64_C(3600) * 1000)

/* Ended jobs are counted by walking their rows. With a long history that takes a while, during
 * which nobody else is served: so what was counted is good for a time that is long beside what
 * counting took. */
static int count_ended(struct acre_api *api, struct stats *stats, struct acre_error *err) {
    struct acre_store *store = acre_desk_store(api->desk);
    uint64_t now_ms = acre_desk_now(api->desk);
    struct acre_ended *counted = &api->ended;
    if (counted->counted_ms == 0 || now_ms >= counted->again_ms) {
        struct acre_job_statistics hour;
        struct acre_clock clock = acre_clock_real();
        uint64_t began_ns = acre_clock_monotonic_ns(&clock);
        uint64_t day_ms = now_ms > DAY_MS ? now_ms - DAY_MS : 0;
        int r = acre_store_statistics(store, day_ms, &counted->day, err);
        if (r == 0) {
            r = acre_store_statistics(store, now_ms > HOUR_MS ? now_ms - HOUR_MS : 0, &hour, err);
        }
        if (r < 0) {
            return r;
        }
        uint64_t took_ms = (acre_clock_monotonic_ns(&clock) - began_ns) / 1000000;
        counted->last_hour = hour.completed + hour.failed + hour.canceled;
        counted->counted_ms = now_ms;
        counted->again_ms = now_ms + took_ms * COUNT_RARELY;
    }
    stats->ended = counted->day;
    stats->ended_last_hour = counted->last_hour;
    return 0;
}

int stats_read(struct acre_api *api, struct stats *ret_stats, struct acre_error *err) {
    struct stats stats = {.window_ms = DAY_MS};
    acre_sched_counts(acre_desk_sched(api->desk), &stats.counts);
    const struct acre_ledger *ledger = acre_desk_ledger(api->desk);
    stats.gpus = acre_ledger_device_count(ledger);
    for (uint32_t d = 0; d < stats.gpus; d++) {
        struct acre_ledger_device device;
        acre_ledger_device_info(ledger, d, &device);
        stats.used_milli += device.milli_used;
        stats.free_gpus += device.largest_milli == 1000;
        stats.busy_gpus += device.milli_used > 0;
        stats.drained += device.drained;
    }
    int r = count_ended(api, &stats, err);
    if (r == 0) {
        *ret_stats = stats;
    }
    return r;
}

static void write_counts(const struct stats *stats, struct acre_json *json) {
    acre_json_key(json, "jobs");
    acre_json_object(json);
    for (int i = 0; i < ACRE_JOB_STATE_COUNT; i++) {
        enum acre_job_state state = (enum acre_job_state)i;
        uint64_t count = acre_job_state_is_live(state) ? stats->counts.jobs[i]
                         : state == ACRE_JOB_COMPLETED ? stats->ended.completed
                         : state == ACRE_JOB_FAILED    ? stats->ended.failed
                                                       : stats->ended.canceled;
        acre_json_put_u64(json, acre_job_state_name(state), count);
    }
    acre_json_put_u64(json, "held", stats->counts.held);
    acre_json_put_u64(json, "waiting_dependency", stats->counts.waiting_dependency);
    acre_json_put_u64(json, "waiting_begin", stats->counts.waiting_begin);
    acre_json_put_u64(json, "waiting_retry", stats->counts.waiting_retry);
    acre_json_put_u64(json, "eligible", stats->counts.eligible);
    acre_json_object_end(json);
}

static void write_ended(const struct stats *stats, struct acre_json *json) {
    const struct acre_job_statistics *ended = &stats->ended;
    uint64_t judged = ended->completed + ended->failed;
    bool any = judged + ended->canceled > 0;
    acre_json_put_u64(json, "window_ms", stats->window_ms);
    acre_json_key(json, "wait_ms");
    acre_json_object(json);
    view_put_known(json, "mean", any ? ended->wait_mean_ms : ACRE_UNKNOWN);
    view_put_known(json, "p50", any ? ended->wait_p50_ms : ACRE_UNKNOWN);
    view_put_known(json, "p90", any ? ended->wait_p90_ms : ACRE_UNKNOWN);
    view_put_known(json, "p99", any ? ended->wait_p99_ms : ACRE_UNKNOWN);
    acre_json_object_end(json);
    view_put_known(json, "run_mean_ms", any ? ended->run_mean_ms : ACRE_UNKNOWN);
    acre_json_put_u64(json, "jobs_last_hour", stats->ended_last_hour);
    if (judged > 0) {
        acre_json_put_double(json, "success_rate", (double)ended->completed / (double)judged, 4);
    } else {
        acre_json_put_null(json, "success_rate");
    }
}

static void write_gpus(const struct stats *stats, struct acre_json *json) {
    acre_json_key(json, "gpus");
    acre_json_object(json);
    acre_json_put_u64(json, "total", stats->gpus);
    acre_json_put_u64(json, "free", stats->free_gpus);
    acre_json_put_u64(json, "busy", stats->busy_gpus);
    acre_json_put_u64(json, "drained", stats->drained);
    acre_json_put_u64(json, "used_milli", stats->used_milli);
    acre_json_object_end(json);
}

static void write_server(struct acre_api *api, struct acre_json *json) {
    struct acre_desk_timings timings;
    struct acre_http_counts counts = {0};
    acre_desk_timings(api->desk, &timings);
    acre_json_key(json, "scheduler");
    acre_json_object(json);
    acre_json_put_u64(json, "passes", timings.turns);
    acre_json_put_u64(json, "pass_last_us", timings.pass_last_us);
    acre_json_put_u64(json, "pass_max_us", timings.pass_max_us);
    acre_json_put_u64(json, "commits", timings.commits);
    acre_json_put_u64(json, "commit_last_us", timings.commit_last_us);
    acre_json_put_u64(json, "commit_max_us", timings.commit_max_us);
    acre_json_put_u64(json, "commit_failures", timings.failures);
    acre_json_put_u64(json, "bytes", acre_sched_bytes(acre_desk_sched(api->desk)));
    acre_json_put_bool(json, "paused", acre_desk_is_paused(api->desk));
    acre_json_object_end(json);
    if (api->http != NULL) {
        acre_http_counts(api->http, &counts);
    }
    acre_json_key(json, "http");
    acre_json_object(json);
    acre_json_put_u64(json, "requests", counts.requests);
    acre_json_put_u64(json, "refused", counts.refused);
    acre_json_put_u64(json, "timed_out", counts.timed_out);
    acre_json_put_u64(json, "connections", counts.connections);
    acre_json_put_u64(json, "streams", counts.streams);
    acre_json_object_end(json);
}

void handle_stats(void *context, struct acre_call *call) {
    struct acre_api *api = context;
    struct stats stats;
    struct acre_error err = {0};
    if (stats_read(api, &stats, &err) < 0) {
        acre_api_fail(api, call, &err);
        return;
    }
    struct acre_reply reply;
    struct acre_json *json = acre_reply_begin(&reply);
    view_put_time(json, "at", acre_desk_now(api->desk));
    view_put_time(json, "started", api->started_ms);
    acre_json_put_string(json, "policy", acre_policy_name(acre_desk_policy(api->desk)->kind));
    acre_json_put_bool(json, "simulated", acre_api_is_simulated(api));
    write_counts(&stats, json);
    write_ended(&stats, json);
    write_gpus(&stats, json);
    write_server(api, json);
    acre_reply_send(api, call, &reply, 200);
}

/* --- before anything else ------------------------------------------------------------------- */

void handle_version(void *context, struct acre_call *call) {
    struct acre_reply reply;
    struct acre_json *json = acre_reply_begin(&reply);
    acre_json_put_string(json, "version", ACRE_VERSION);
    acre_reply_send(context, call, &reply, 200);
}

void handle_live(void *context, struct acre_call *call) {
    (void)context;
    struct acre_buf body;
    acre_buf_init(&body, 64);
    acre_buf_puts(&body, "{\"live\":true}\n");
    acre_http_answer(call->exchange, 200, "application/json", &body); /* waits for nothing */
    acre_buf_finish(&body);
}

void handle_ready(void *context, struct acre_call *call) {
    struct acre_api *api = context;
    struct acre_error err = {0};
    if (api->stopping) {
        acre_fail(&err, ACRE_EUNAVAILABLE, "the server is stopping");
    }
    if (api->stopping || acre_desk_writable(api->desk, &err) < 0) {
        acre_problem_answer_as(call->exchange, 503, &err);
        return;
    }
    struct acre_buf body;
    acre_buf_init(&body, 64);
    acre_buf_puts(&body, "{\"ready\":true}\n");
    acre_http_answer(call->exchange, 200, "application/json", &body);
    acre_buf_finish(&body);
}

void handle_openapi(void *context, struct acre_call *call) {
    (void)context;
    struct acre_buf body;
    acre_buf_init(&body, OPENAPI_MAX_BYTES);
    int r = openapi_write(acre_routes, acre_route_count, ACRE_VERSION, &body);
    ACRE_ASSERT(r == 0);
    acre_http_answer(call->exchange, 200, "application/json", &body);
    acre_buf_finish(&body);
}
