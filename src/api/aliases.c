/* aliases.c - the routes and shapes that earlier clients know (API-1): the same queue and the same
 * ledger underneath, other names on the wire. Times there are seconds, memory is GiB, ids are
 * strings; unknown is null here too.
 *
 * An allocation without a command is a job that runs elsewhere: it is scheduled, charged and
 * recorded as any other, no engine starts it, and it ends when its owner says so. */
#include "api/cluster.h"
#include "api/handlers.h"
#include "api/jobs.h"
#include "api/stats.h"
#include "desk/commands.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- GPUs ----------------------------------------------------------------------------------- */

static void put_gib(struct acre_json *json, const char *key, uint64_t mib) {
    if (mib == ACRE_UNKNOWN) {
        acre_json_put_null(json, key);
    } else {
        acre_json_put_double(json, key, (double)mib / 1024.0, 3);
    }
}

static void write_gpu(struct acre_api *api, uint32_t index, uint32_t number,
                      const struct holders *holders, struct acre_json *json) {
    const struct acre_engine_device *known =
        inventory_device(acre_desk_inventory(api->desk), index);
    bool read = known->live.sampled_ms != 0;
    uint32_t first = cluster_first_holder(holders, index);
    const struct holder *holder = &holders->items[first];
    bool held = first < holders->count && holder->device == index;
    char owner[24];
    snprintf(owner, sizeof(owner), "%llu", (unsigned long long)(held ? holder->owner : 0));
    acre_json_object(json);
    acre_json_put_u64(json, "id", number);
    acre_json_put_string(json, "uuid", known->id);
    put_gib(json, "memoryTotal", known->memory_mib != 0 ? known->memory_mib : ACRE_UNKNOWN);
    put_gib(json, "memoryUsed", read ? known->live.used_mib : ACRE_UNKNOWN);
    view_put_known(json, "utilization", read ? known->live.utilization_pct : ACRE_UNKNOWN);
    view_put_known(json, "temperature", read ? known->live.temperature_c : ACRE_UNKNOWN);
    acre_json_put_string(json, "allocatedTo", held ? owner : NULL);
    acre_json_put_bool(json, "simulated", known->simulated);
    acre_json_object_end(json);
}

static void write_node(struct acre_api *api, uint32_t index, const struct holders *holders,
                       struct acre_json *json) {
    const struct inventory_node *node = inventory_node(acre_desk_inventory(api->desk), index);
    const char *model =
        node->device_count > 0
            ? inventory_device(acre_desk_inventory(api->desk), node->first_device)->model
            : "";
    acre_json_object(json);
    acre_json_put_string(json, "nodeId", node->name);
    acre_json_put_string(json, "hostname", node->name);
    acre_json_put_u64(json, "gpuCount", node->device_count);
    acre_json_put_string(json, "gpuType", model[0] != '\0' ? model : NULL);
    acre_json_put_bool(json, "simulated", node->simulated);
    acre_json_key(json, "gpus");
    acre_json_array(json);
    for (uint32_t i = 0; i < node->device_count; i++) {
        write_gpu(api, node->first_device + i, i, holders, json);
    }
    acre_json_array_end(json);
    acre_json_object_end(json);
}

void handle_gpu_status(void *context, struct acre_call *call) {
    struct acre_api *api = context;
    struct acre_error err = {0};
    struct stats stats;
    if (stats_read(api, &stats, &err) < 0) {
        acre_api_fail(api, call, &err);
        return;
    }
    struct holders holders = cluster_holders(api, call->arena);
    struct acre_reply reply;
    struct acre_json *json = acre_reply_begin(&reply);
    acre_json_key(json, "gpuResources");
    acre_json_object(json);
    acre_json_put_u64(json, "totalGpus", stats.gpus);
    acre_json_put_u64(json, "availableGpus", stats.free_gpus);
    acre_json_put_u64(json, "allocatedGpus", stats.busy_gpus);
    acre_json_put_bool(json, "simulated", acre_api_is_simulated(api));
    acre_json_key(json, "nodes");
    acre_json_array(json);
    for (uint32_t i = 0; i < acre_ledger_node_count(acre_desk_ledger(api->desk)); i++) {
        write_node(api, i, &holders, json);
    }
    acre_json_array_end(json);
    acre_json_object_end(json);
    acre_json_put_null(json, "rayCluster"); /* jobs do not run on Ray here */
    acre_reply_send(api, call, &reply, 200);
}

/* --- jobs that run elsewhere ---------------------------------------------------------------- */

const struct field allocate_fields[] = {
    {.name = "job_id",
     .kinds = ACRE_KIND_STRING | ACRE_KIND_INTEGER,
     .required = true,
     .max_length = 64,
     .help = "your name for it, which becomes the job's name; another user may use the same one"},
    {.name = "gpu_count", .kinds = ACRE_KIND_INTEGER, .required = true, .min = 1, .max = 64},
    {.name = "memory_gb", .kinds = ACRE_KIND_NUMBER, .max = 1024.0 * 1024.0, .help = "of each GPU"},
    {.name = "priority", .kinds = ACRE_KIND_INTEGER, .min = 1, .max = 4},
    {0},
};

const struct field gpu_release_fields[] = {
    {.name = "job_id",
     .kinds = ACRE_KIND_STRING | ACRE_KIND_INTEGER,
     .required = true,
     .max_length = 64},
    {0},
};

static const char *const outcomes[] = {"completed", "failed", NULL};

const struct field complete_fields[] = {
    {.name = "status", .kinds = ACRE_KIND_STRING, .words = outcomes, .help = "default: completed"},
    {.name = "exit_code", .kinds = ACRE_KIND_INTEGER, .max = 255},
    {0},
};

static const char *text_of(const struct acre_call *call, const char *key) {
    const json_t *value = json_object_get(call->body, key);
    return json_is_integer(value)
               ? acre_arena_printf(call->arena, "%lld", (long long)json_integer_value(value))
               : json_string_value(value);
}

static void write_allocated(struct acre_api *api, struct acre_call *call, const char *name,
                            const struct acre_job *job, struct acre_json *json) {
    struct job_view view = {.exit_text = ""};
    struct acre_recipe recipe = {.external = true, .directory = ""};
    char id[24];
    view_live(&view, acre_desk_ledger(api->desk), job, &recipe, call->arena);
    snprintf(id, sizeof(id), "%llu", (unsigned long long)job->spec.id);
    acre_json_put_string(json, "job_id", name);
    acre_json_put_string(json, "id", id);
    acre_json_put_string(json, "state", acre_job_state_name(job->state));
    view_put_time(json, "allocationTime", job->scheduled_ms);
    acre_json_put_bool(json, "simulated", acre_api_is_simulated(api));
    acre_json_key(json, "allocatedGpus");
    acre_json_array(json);
    for (uint32_t i = 0; i < view.part_count; i++) {
        acre_json_object(json);
        acre_json_put_string(json, "nodeId", view.parts[i].node);
        acre_json_put_string(json, "gpuId", view.parts[i].device);
        put_gib(json, "memoryGb", view.parts[i].mib);
        acre_json_object_end(json);
    }
    acre_json_array_end(json);
}

/* Take it now or not at all: what does not fit is not left in the queue. */
static int allocate(struct acre_api *api, struct acre_call *call, const char *name,
                    struct acre_job *ret_job, struct acre_error *err) {
    uint64_t mib =
        (uint64_t)ceil(json_number_value(json_object_get(call->body, "memory_gb")) * 1024.0);
    struct acre_submission submission = {
        .name = name,
        .spec = {.request = {.replicas = 1,
                             .gpus = (uint32_t)json_integer_value(
                                 json_object_get(call->body, "gpu_count")),
                             .milli = 1000,
                             .mib = mib},
                 .priority = submit_priority(json_object_get(call->body, "priority")),
                 .fixed = true},
        .recipe = {.external = true, .directory = ""},
        .count = 1};
    int r = acre_desk_may_place(api->desk, &submission.spec.request, err);
    return r == 0 ? jobs_allocate(api, call, &submission, ret_job, err) : r;
}

void handle_gpu_allocate(void *context, struct acre_call *call) {
    struct acre_api *api = context;
    struct acre_error err = {0};
    struct acre_job job;
    const char *name = text_of(call, "job_id");
    uint64_t id = 0;
    if (!acre_api_may_change(api, call)) {
        return;
    }
    int r = 0;
    if (!acre_str_is_name(acre_str_from(name), 64)) {
        char shown[80];
        r = acre_fail(&err, ACRE_EINVALID,
                      "job_id: '%s' is not a name; accepted: letters, digits and -_./:@+",
                      acre_str_show(acre_str_from(name), shown, sizeof(shown)));
    } else if (acre_desk_find_external(api->desk, call->user.name, name, &id)) {
        r = acre_fail(&err, ACRE_EEXISTS, "job_id: your '%s' already holds GPUs, as job %llu", name,
                      (unsigned long long)id);
    }
    if (r == 0) {
        r = allocate(api, call, name, &job, &err);
    }
    if (r < 0) {
        acre_api_fail(api, call, &err);
        return;
    }
    struct acre_reply reply;
    write_allocated(api, call, name, &job, acre_reply_begin(&reply));
    acre_reply_send(api, call, &reply, 200);
}

/* End the external job `id` and say so. */
static void release(struct acre_api *api, struct acre_call *call, const char *name, uint64_t id,
                    int code) {
    struct acre_job job;
    if (!jobs_own(api, call, id)) {
        return;
    }
    acre_desk_end_external(api->desk, id, code);
    acre_sched_find(acre_desk_sched(api->desk), id, &job);
    struct acre_reply reply;
    struct acre_json *json = acre_reply_begin(&reply);
    char text[24];
    snprintf(text, sizeof(text), "%llu", (unsigned long long)id);
    acre_json_put_string(json, "job_id", name);
    acre_json_put_string(json, "id", text);
    acre_json_put_string(json, "state", acre_job_state_name(job.state));
    acre_json_put_bool(json, "released", true);
    acre_reply_send(api, call, &reply, 200);
}

void handle_gpu_release(void *context, struct acre_call *call) {
    struct acre_api *api = context;
    struct acre_error err = {0};
    const char *name = text_of(call, "job_id");
    uint64_t id = 0;
    if (!acre_desk_find_external(api->desk, call->user.name, name, &id)) {
        char shown[80];
        acre_fail(&err, ACRE_ENOTFOUND, "job_id: you have no allocation named '%s'",
                  acre_str_show(acre_str_from(name), shown, sizeof(shown)));
        acre_api_fail(api, call, &err);
        return;
    }
    release(api, call, name, id, 0);
}

void handle_job_complete(void *context, struct acre_call *call) {
    struct acre_api *api = context;
    struct acre_error err = {0};
    struct acre_job job;
    uint64_t id = 0;
    const json_t *code = json_object_get(call->body, "exit_code");
    const char *status = json_string_value(json_object_get(call->body, "status"));
    int r = call_id(call, "id", &id, &err);
    bool found = r == 0 && acre_sched_find(acre_desk_sched(api->desk), id, &job);
    if (r == 0 && found && !acre_desk_is_external(api->desk, id)) {
        r = acre_fail(&err, ACRE_ECONFLICT,
                      "job %llu runs on this cluster and ends by itself; cancel it to end it now",
                      (unsigned long long)id);
    }
    if (r < 0) {
        acre_api_fail(api, call, &err);
        return;
    }
    int failed = status != NULL && strcmp(status, "failed") == 0 ? 1 : 0;
    const char *name = found ? acre_names_text(acre_desk_names(api->desk), job.spec.name) : "";
    release(api, call, name, id, code != NULL ? (int)json_integer_value(code) : failed);
}

/* --- the queue ------------------------------------------------------------------------------ */

static void put_seconds(struct acre_json *json, const char *key, bool known, uint64_t ms) {
    if (known) {
        acre_json_put_double(json, key, (double)ms / 1000.0, 3);
    } else {
        acre_json_put_null(json, key);
    }
}

static void write_statistics(const struct stats *stats, struct acre_json *json) {
    const struct acre_job_statistics *ended = &stats->ended;
    bool any = ended->completed + ended->failed + ended->canceled > 0;
    acre_json_put_u64(json, "totalQueued", stats->counts.jobs[ACRE_JOB_QUEUED]);
    put_seconds(json, "averageWaitTime", any, ended->wait_mean_ms);
    acre_json_put_u64(json, "queueThroughput", stats->ended_last_hour);
}

static void write_queued(struct acre_api *api, const struct acre_job *job, uint64_t now_ms,
                         struct acre_json *json) {
    const struct acre_names *names = acre_desk_names(api->desk);
    struct acre_when when = {0};
    char id[24];
    snprintf(id, sizeof(id), "%llu", (unsigned long long)job->spec.id);
    const char *name = acre_names_text(names, job->spec.name);
    bool known = acre_desk_when(api->desk, job->spec.id, &when, NULL) == 0 && when.known;
    acre_json_object(json);
    acre_json_put_string(json, "id", id);
    acre_json_put_string(json, "runId", name[0] != '\0' ? name : id);
    acre_json_put_string(json, "user", acre_names_text(names, job->spec.user));
    acre_json_put_u64(json, "priority", (uint64_t)job->spec.priority);
    acre_json_put_double(json, "requestedGpus",
                         (double)job->spec.request.replicas * job->spec.request.gpus *
                             (job->spec.request.milli != 0 ? job->spec.request.milli : 1000) /
                             1000.0,
                         3);
    view_put_time(json, "queuedAt", job->submitted_ms);
    put_seconds(json, "estimatedWaitTime", known,
                when.start_ms > now_ms ? when.start_ms - now_ms : 0);
    acre_json_object_end(json);
}

void handle_queue(void *context, struct acre_call *call) {
    struct acre_api *api = context;
    struct acre_error err = {0};
    struct stats stats;
    struct acre_page page;
    if (!acre_page_read(api, call, &page)) {
        return;
    }
    if (stats_read(api, &stats, &err) < 0) {
        acre_api_fail(api, call, &err);
        return;
    }
    struct acre_reply reply;
    struct acre_json *json = acre_reply_begin(&reply);
    struct acre_job job;
    uint64_t cursor = page.after;
    uint64_t now_ms = acre_desk_now(api->desk);
    uint32_t shown = 0;
    bool more = true;
    acre_json_key(json, "queuedJobs");
    acre_json_array(json);
    while (shown < page.limit) {
        more = acre_sched_walk(acre_desk_sched(api->desk), &cursor, &job);
        if (!more) {
            break;
        }
        if (job.state == ACRE_JOB_QUEUED) {
            write_queued(api, &job, now_ms, json);
            shown++;
        }
    }
    acre_json_array_end(json);
    acre_json_key(json, "statistics");
    acre_json_object(json);
    write_statistics(&stats, json);
    acre_json_object_end(json);
    acre_page_write(json, more, cursor);
    acre_reply_send(api, call, &reply, 200);
}

void handle_queue_statistics(void *context, struct acre_call *call) {
    struct acre_api *api = context;
    struct acre_error err = {0};
    struct stats stats;
    if (stats_read(api, &stats, &err) < 0) {
        acre_api_fail(api, call, &err);
        return;
    }
    struct acre_reply reply;
    struct acre_json *json = acre_reply_begin(&reply);
    write_statistics(&stats, json);
    acre_json_put_u64(json, "totalRunning", stats.counts.jobs[ACRE_JOB_RUNNING]);
    acre_json_put_u64(json, "totalCompleted", stats.ended.completed);
    acre_json_put_u64(json, "totalFailed", stats.ended.failed);
    acre_json_put_u64(json, "totalCanceled", stats.ended.canceled);
    acre_reply_send(api, call, &reply, 200);
}

/* --- the orchestrator ----------------------------------------------------------------------- */

static void answer_orchestrator(struct acre_api *api, struct acre_call *call) {
    struct acre_reply reply;
    struct acre_json *json = acre_reply_begin(&reply);
    struct acre_sched_counts counts;
    acre_sched_counts(acre_desk_sched(api->desk), &counts);
    acre_json_put_bool(json, "running", !acre_desk_is_paused(api->desk));
    acre_json_put_string(json, "policy", acre_policy_name(acre_desk_policy(api->desk)->kind));
    acre_json_put_u64(json, "queuedJobs", counts.jobs[ACRE_JOB_QUEUED]);
    acre_json_put_u64(json, "runningJobs", counts.jobs[ACRE_JOB_RUNNING]);
    view_put_time(json, "startedAt", api->started_ms);
    acre_json_put_string(json, "version", ACRE_VERSION);
    acre_json_put_bool(json, "simulated", acre_api_is_simulated(api));
    acre_reply_send(api, call, &reply, 200);
}

void handle_orchestrator(void *context, struct acre_call *call) {
    answer_orchestrator(context, call);
}

static void set_paused(struct acre_api *api, struct acre_call *call, bool paused) {
    if (acre_api_may_change(api, call)) {
        acre_desk_pause(api->desk, paused);
        answer_orchestrator(api, call);
    }
}

void handle_orchestrator_start(void *context, struct acre_call *call) {
    set_paused(context, call, false);
}

void handle_orchestrator_stop(void *context, struct acre_call *call) {
    set_paused(context, call, true);
}
