/* jobs_list.c - lists of jobs: live ones in the order of the queue, or all of them, newest first.
 *
 * The queue is walked in memory; a filter may pass over many jobs, so one request looks at a
 * bounded number of them and hands back a cursor even when its page is not full; so it does when
 * the jobs were submitted with much. History is read from the store, which filters by index. */
#include "api/jobs.h"

#include "api/handlers.h"

#include <string.h>

enum {
    LOOKED_AT_MAX = 20000,
    READ_MAX_BYTES = 4 << 20, /* of specs, to show one line of each: some 20 ms */
    EXPLAINED_MAX = 200000,   /* jobs in a queue whose lists say why and when: a forecast of more
                                 takes too long to make while others wait */
};

static const char *const states[] = {
#define X(name, text, live, holds) text,
    ACRE_JOB_STATES(X)
#undef X
        NULL,
};

const struct field jobs_list_fields[] = {
    {.name = "state", .kinds = ACRE_KIND_STRING, .words = states},
    {.name = "user", .kinds = ACRE_KIND_STRING, .max_length = 64},
    {.name = "project", .kinds = ACRE_KIND_STRING, .max_length = 64},
    {.name = "name", .kinds = ACRE_KIND_STRING, .max_length = 64},
    {.name = "array",
     .kinds = ACRE_KIND_INTEGER,
     .min = 1,
     .max = ACRE_FIELD_NUMBER_MAX,
     .help = "only members of this array"},
    {.name = "all", .kinds = ACRE_KIND_BOOL, .help = "also jobs that have ended, newest first"},
    ACRE_PAGE_FIELDS,
    {0},
};

struct jobs_filter {
    const char *state, *user, *project, *name;
    uint64_t array;
};

static struct jobs_filter read_wanted(const struct acre_call *call) {
    return (struct jobs_filter){.state = call_query(call, "state"),
                                .user = call_query(call, "user"),
                                .project = call_query(call, "project"),
                                .name = call_query(call, "name"),
                                .array = (uint64_t)call_query_i64(call, "array", 0)};
}

static bool is_wanted(const struct jobs_filter *wanted, const struct acre_names *names,
                      const struct acre_job *job) {
    return (wanted->state == NULL || strcmp(wanted->state, acre_job_state_name(job->state)) == 0) &&
           (wanted->user == NULL ||
            strcmp(wanted->user, acre_names_text(names, job->spec.user)) == 0) &&
           (wanted->project == NULL ||
            strcmp(wanted->project, acre_names_text(names, job->spec.project)) == 0) &&
           (wanted->name == NULL ||
            strcmp(wanted->name, acre_names_text(names, job->spec.name)) == 0) &&
           (wanted->array == 0 || wanted->array == job->spec.array);
}

static void list_live(struct acre_api *api, struct acre_call *call, const struct acre_page *page) {
    struct acre_reply reply;
    struct acre_json *json = acre_reply_begin(&reply);
    const struct acre_names *names = acre_desk_names(api->desk);
    struct jobs_filter wanted = read_wanted(call);
    struct acre_sched_counts counts;
    struct acre_job job;
    uint64_t cursor = page->after;
    uint32_t shown = 0;
    uint32_t looked_at = 0;
    uint64_t array = 0;
    size_t bytes = 0;
    bool more = true;
    acre_sched_counts(acre_desk_sched(api->desk), &counts);
    bool explain = counts.jobs[ACRE_JOB_QUEUED] <= EXPLAINED_MAX;
    acre_json_key(json, "jobs");
    acre_json_array(json);
    while (shown < page->limit && looked_at++ < LOOKED_AT_MAX && bytes < READ_MAX_BYTES) {
        more = acre_sched_walk(acre_desk_sched(api->desk), &cursor, &job);
        if (!more) {
            break;
        }
        if (is_wanted(&wanted, names, &job)) {
            bytes += job.spec.array == 0 || job.spec.array != array ? job.spec.bytes : 0;
            array = job.spec.array; /* members one after the other are read once */
            jobs_write_live(api, call, &job, explain, json);
            shown++;
        }
    }
    acre_json_array_end(json);
    acre_page_write(json, more, cursor);
    acre_reply_send(api, call, &reply, 200);
}

struct jobs_listing {
    struct acre_api *api;
    struct acre_call *call;
    struct acre_json *json;
    uint64_t last_id;
    size_t bytes;     /* of specs that were read */
    uint64_t spec_id; /* the last shared one */
    bool is_cut;      /* there may be more */
    uint32_t count;
    int result;
    struct acre_error err;
};

/* A job that is live, or whose last change is not on disk yet, is shown as it is in memory. */
static bool list_row(void *context, const struct acre_store_job *row) {
    struct jobs_listing *listing = context;
    struct acre_job job;
    listing->last_id = row->id;
    listing->count++;
    listing->bytes += row->spec.length;
    if (acre_sched_find(acre_desk_sched(listing->api->desk), row->id, &job)) {
        jobs_write_live(listing->api, listing->call, &job, false, listing->json);
    } else {
        listing->result =
            jobs_write_row(listing->api, listing->call, row, listing->json, &listing->err);
    }
    if (row->spec_id != 0 && row->spec_id != listing->spec_id) { /* shared, and read for this one */
        listing->spec_id = row->spec_id;
        listing->bytes += acre_desk_parsed_bytes(listing->api->desk);
    }
    listing->is_cut = listing->bytes >= READ_MAX_BYTES;
    return listing->result == 0 && !listing->is_cut;
}

static void list_all(struct acre_api *api, struct acre_call *call, const struct acre_page *page) {
    struct acre_reply reply;
    struct acre_json *json = acre_reply_begin(&reply);
    struct jobs_filter wanted = read_wanted(call);
    struct acre_job_filter filter = {.user = wanted.user,
                                     .project = wanted.project,
                                     .state = wanted.state,
                                     .name = wanted.name,
                                     .array = wanted.array,
                                     .after_id = page->after,
                                     .newest_first = true,
                                     .limit = page->limit};
    struct jobs_listing listing = {.api = api, .call = call, .json = json};
    acre_json_key(json, "jobs");
    acre_json_array(json);
    int r = acre_store_jobs(acre_desk_store(api->desk), &filter, list_row, &listing, &listing.err);
    if (r < 0 || listing.result < 0) {
        acre_reply_drop(&reply);
        acre_api_fail(api, call, &listing.err);
        return;
    }
    acre_json_array_end(json);
    bool more = listing.count == page->limit || listing.is_cut;
    acre_page_write(json, more && listing.last_id > 1, listing.last_id);
    acre_reply_send(api, call, &reply, 200);
}

void handle_jobs_list(void *context, struct acre_call *call) {
    struct acre_api *api = context;
    struct acre_page page;
    enum acre_job_state state = ACRE_JOB_QUEUED;
    const char *wanted = call_query(call, "state");
    if (!acre_page_read(api, call, &page)) {
        return;
    }
    bool ended = wanted != NULL && acre_job_state_parse(acre_str_from(wanted), &state) &&
                 !acre_job_state_is_live(state);
    bool all = call_query_bool(call, "all") || ended;
    (all ? list_all : list_live)(api, call, &page);
}
