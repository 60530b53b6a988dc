/* events.c - GET /events: what happens to jobs, as it happens, after it is durable. */
#include "api/followers.h"
#include "api/handlers.h"

const struct field events_fields[] = {
    {.name = "job",
     .kinds = ACRE_KIND_INTEGER,
     .min = 1,
     .max = ACRE_FIELD_NUMBER_MAX,
     .help = "only events of this job"},
    {.name = "last_event_id",
     .kinds = ACRE_KIND_STRING,
     .max_length = 24,
     .help = "same as the header Last-Event-ID: only events after this one"},
    {0},
};

static void gone(void *context) {
    follow_end(context);
}

void handle_events(void *context, struct acre_call *call) {
    struct acre_api *api = context;
    struct acre_error err = {0};
    uint64_t job = (uint64_t)call_query_i64(call, "job", 0);
    struct acre_follow_count *count = follow_begin(api, call);
    if (count != NULL && acre_sse_follow(api->sse, call->exchange, job, gone, count, &err) < 0) {
        follow_end(count);
        acre_api_fail(api, call, &err);
    }
}
