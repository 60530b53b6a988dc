/* view.c - the JOB object. One writer; what differs is where the strings come from. */
#include "api/view.h"

#include "core/clock.h"
#include "ledger/nodes.h"

#include <string.h>

enum { COMMAND_SHOWN_MAX = 200 };

/* Control characters would break lines of tables and logs; they are shown, not sent. */
static const char *one_line(struct acre_str text, struct acre_arena *arena) {
    char shown[COMMAND_SHOWN_MAX];
    acre_str_show_text(text, shown, sizeof(shown));
    return acre_arena_strndup(arena, shown, strlen(shown));
}

static struct acre_str value_text(const json_t *value) {
    return (struct acre_str){json_string_value(value), json_string_length(value)};
}

static struct acre_str first_line(const char *script) {
    struct acre_split lines = acre_split_begin(acre_str_from(script), '\n');
    struct acre_str line = {0};
    while (acre_split_next(&lines, &line)) {
        line = acre_str_trim(line);
        if (line.length > 0 && line.data[0] != '#') {
            return line;
        }
    }
    return ACRE_STR("(script)");
}

/* The command in one line, at most 200 bytes: argv joined, the first line of a script. */
static const char *command_of(const struct acre_recipe *recipe, struct acre_arena *arena) {
    if (recipe->external) {
        return "(external)";
    }
    if (recipe->script != NULL) {
        return one_line(first_line(recipe->script), arena);
    }
    if (json_is_string(recipe->command)) {
        return one_line(value_text(recipe->command), arena);
    }
    struct acre_buf joined;
    acre_buf_init(&joined, ACRE_RECORD_SPEC_MAX);
    for (size_t i = 0; i < json_array_size(recipe->command) && joined.length < COMMAND_SHOWN_MAX;
         i++) {
        struct acre_str word = value_text(json_array_get(recipe->command, i));
        acre_buf_puts(&joined, i > 0 ? " " : "");
        acre_buf_append(&joined, word.data, word.length);
    }
    const char *shown = one_line((struct acre_str){joined.data, joined.length}, arena);
    acre_buf_finish(&joined);
    return shown;
}

static void copy_names(const char **to, const struct acre_names *names, const uint32_t *ids,
                       uint32_t max) {
    for (uint32_t i = 0; i < max && ids[i] != 0; i++) {
        to[i] = acre_names_text(names, ids[i]);
    }
}

static void copy_parts(struct job_view *view, const struct acre_ledger *ledger,
                       const struct acre_job *job, struct acre_arena *arena) {
    struct acre_allocation allocation;
    if (job->allocation == 0 || !acre_ledger_find(ledger, job->allocation, &allocation)) {
        return;
    }
    struct acre_recorded_part *parts =
        acre_arena_alloc(arena, (allocation.part_count + 1U) * sizeof(*parts));
    for (uint32_t i = 0; i < allocation.part_count; i++) {
        const struct acre_part *part = &allocation.parts[i];
        struct acre_ledger_node node;
        acre_ledger_node_info(ledger, part->node, &node);
        parts[i] =
            (struct acre_recorded_part){.node = node.name, .milli = part->milli, .mib = part->mib};
        if (part->device != ACRE_DEVICE_NONE) {
            struct acre_ledger_device device;
            acre_ledger_device_info(ledger, part->device, &device);
            parts[i].device = device.id;
        }
    }
    view->parts = parts;
    view->part_count = allocation.part_count;
}

void view_live(struct job_view *view, const struct acre_ledger *ledger, const struct acre_job *job,
               const struct acre_recipe *recipe, struct acre_arena *arena) {
    const struct acre_names *names = acre_ledger_names((struct acre_ledger *)ledger);
    view->job = job;
    view->user = acre_names_text(names, job->spec.user);
    view->project = acre_names_text(names, job->spec.project);
    view->name = acre_names_text(names, job->spec.name);
    view->vendor = acre_names_text(names, job->spec.request.vendor);
    copy_names(view->models, names, job->spec.request.models, ACRE_REQUEST_MODELS_MAX);
    copy_names(view->labels, names, job->spec.request.labels, ACRE_REQUEST_LABELS_MAX);
    copy_parts(view, ledger, job, arena);
    view->command = command_of(recipe, arena);
    view->external = recipe->external;
    view->exited = acre_record_has_exit(job, view->exit_text);
}

static void copy_strings(const char **to, const json_t *list, uint32_t max,
                         struct acre_arena *arena) {
    for (uint32_t i = 0; i < max && i < json_array_size(list); i++) {
        struct acre_str text = value_text(json_array_get(list, i));
        to[i] = acre_arena_strndup(arena, text.data, text.length);
    }
}

void view_recorded(struct job_view *view, const struct acre_store_job *row,
                   const struct acre_recorded_job *recorded, struct acre_arena *arena) {
    struct acre_str vendor = value_text(json_object_get(recorded->spec, "vendor"));
    view->job = &recorded->job;
    view->user = row->user;
    view->project = row->project;
    view->name = row->name;
    view->vendor = acre_arena_strndup(arena, vendor.data, vendor.length);
    copy_strings(view->models, json_object_get(recorded->spec, "models"), ACRE_REQUEST_MODELS_MAX,
                 arena);
    copy_strings(view->labels, json_object_get(recorded->spec, "labels"), ACRE_REQUEST_LABELS_MAX,
                 arena);
    view->parts = recorded->parts;
    view->part_count = recorded->part_count;
    view->exit_text = recorded->exit_text;
    view->exited = recorded->exited;
    view->command = command_of(&recorded->recipe, arena);
    view->external = recorded->recipe.external;
}

/* --- writing -------------------------------------------------------------------------------- */

void view_put_time(struct acre_json *json, const char *key, uint64_t wall_ms) {
    char text[25];
    acre_json_put_string(json, key, wall_ms != 0 ? acre_format_time(wall_ms, text) : NULL);
}

void view_put_known(struct acre_json *json, const char *key, uint64_t value) {
    if (value == ACRE_UNKNOWN) {
        acre_json_put_null(json, key);
    } else {
        acre_json_put_u64(json, key, value);
    }
}

static void put_strings(struct acre_json *json, const char *key, const char *const *items,
                        uint32_t max) {
    acre_json_key(json, key);
    acre_json_array(json);
    for (uint32_t i = 0; i < max && items[i] != NULL; i++) {
        acre_json_string(json, items[i]);
    }
    acre_json_array_end(json);
}

static void write_request(const struct job_view *view, struct acre_json *json) {
    const struct acre_request *request = &view->job->spec.request;
    acre_json_key(json, "request");
    acre_json_object(json);
    acre_json_put_u64(json, "nodes", request->replicas);
    acre_json_put_u64(json, "gpus", request->gpus);
    acre_json_put_u64(json, "share_milli", request->milli);
    acre_json_put_u64(json, "gpu_memory_mib", request->mib);
    acre_json_put_u64(json, "cpu_milli", request->cpu_milli);
    acre_json_put_u64(json, "ram_mib", request->ram_mib);
    acre_json_put_string(json, "isolation", isolation_name(request->isolation));
    acre_json_put_bool(json, "exclusive", request->exclusive);
    acre_json_put_string(json, "vendor", view->vendor[0] != '\0' ? view->vendor : NULL);
    put_strings(json, "models", view->models, ACRE_REQUEST_MODELS_MAX);
    put_strings(json, "labels", view->labels, ACRE_REQUEST_LABELS_MAX);
    if (request->reservation != 0) {
        acre_json_put_u64(json, "reservation", request->reservation);
    } else {
        acre_json_put_null(json, "reservation");
    }
    acre_json_object_end(json);
}

static void write_allocation(const struct job_view *view, struct acre_json *json) {
    acre_json_key(json, "allocation");
    acre_json_array(json);
    for (uint32_t i = 0; i < view->part_count; i++) {
        acre_json_object(json);
        acre_json_put_string(json, "node", view->parts[i].node);
        acre_json_put_string(json, "gpu", view->parts[i].device);
        acre_json_put_u64(json, "share_milli", view->parts[i].milli);
        acre_json_put_u64(json, "memory_mib", view->parts[i].mib);
        acre_json_object_end(json);
    }
    acre_json_array_end(json);
}

static void write_exit(const struct job_view *view, struct acre_json *json) {
    static const struct acre_job_exit never = {.kind = ACRE_EXIT_NOT_STARTED,
                                               .peak_ram_mib = ACRE_UNKNOWN,
                                               .peak_gpu_mib = ACRE_UNKNOWN,
                                               .cpu_ms = ACRE_UNKNOWN,
                                               .gpu_use_milli = UINT32_MAX};
    const struct acre_job_exit *from = view->job->attempt > 0 ? &view->job->exit : &never;
    acre_json_key(json, "exit");
    if (!view->exited) {
        acre_json_null(json);
        return;
    }
    acre_json_object(json);
    acre_json_put_string(json, "kind", acre_exit_kind_name(from->kind));
    acre_json_key(json, "code");
    if (from->kind == ACRE_EXIT_NOT_STARTED || from->kind == ACRE_EXIT_LOST) {
        acre_json_null(json); /* a 0 would be taken for success */
    } else {
        acre_json_i64(json, from->code);
    }
    acre_json_put_string(json, "text", view->exit_text);
    view_put_known(json, "peak_ram_mib", from->peak_ram_mib);
    view_put_known(json, "peak_gpu_mib", from->peak_gpu_mib);
    view_put_known(json, "cpu_ms", from->cpu_ms);
    view_put_known(json, "gpu_use_milli",
                   from->gpu_use_milli == UINT32_MAX ? ACRE_UNKNOWN : from->gpu_use_milli);
    acre_json_object_end(json);
}

void view_write_why(struct acre_json *json, const struct acre_why *why) {
    if (why == NULL) {
        acre_json_null(json);
        return;
    }
    acre_json_object(json);
    acre_json_put_string(json, "reason", acre_reason_name(why->reason));
    acre_json_put_string(json, "text", why->text);
    acre_json_put_string(json, "advice", why->advice);
    view_put_known(json, "position", why->position != 0 ? why->position : ACRE_UNKNOWN);
    acre_json_put_u64(json, "ahead", why->ahead);
    view_put_known(json, "other", why->other != 0 ? why->other : ACRE_UNKNOWN);
    bool numbers = why->unit != NULL && why->unit[0] != '\0';
    view_put_known(json, "asked", numbers ? why->asked : ACRE_UNKNOWN);
    view_put_known(json, "available", numbers ? why->available : ACRE_UNKNOWN);
    acre_json_put_string(json, "unit", numbers ? why->unit : NULL);
    acre_json_object_end(json);
}

void view_write_when(struct acre_json *json, const struct acre_when *when) {
    if (when == NULL) {
        acre_json_null(json);
        return;
    }
    acre_json_object(json);
    acre_json_put_bool(json, "known", when->known);
    view_put_time(json, "start", when->known ? when->start_ms : 0);
    view_put_time(json, "earliest", when->known ? when->earliest_ms : 0);
    view_put_time(json, "latest", when->known ? when->latest_ms : 0);
    acre_json_object_end(json);
}

static uint64_t since(uint64_t from_ms, uint64_t to_ms) {
    return from_ms != 0 && to_ms > from_ms ? to_ms - from_ms : 0;
}

/* From when it could have started until it did, or ended without, or now. */
static uint64_t wait_ms(const struct job_view *view) {
    const struct acre_job *job = view->job;
    uint64_t until_ms = job->started_ms != 0 ? job->started_ms : job->ended_ms;
    return since(job->eligible_ms, until_ms != 0 ? until_ms : view->now_ms);
}

static uint64_t run_ms(const struct job_view *view) {
    const struct acre_job *job = view->job;
    bool runs = job->started_ms != 0 && job->ended_ms == 0;
    uint64_t last_ms = since(job->started_ms, runs ? view->now_ms : job->ended_ms);
    bool ended = !acre_job_state_is_live(job->state);
    return job->run_ms + (runs || ended ? last_ms : 0);
}

static void write_times(const struct job_view *view, struct acre_json *json) {
    const struct acre_job *job = view->job;
    view_put_time(json, "submitted", job->submitted_ms);
    view_put_time(json, "eligible", job->eligible_ms);
    view_put_time(json, "begin", job->spec.begin_ms);
    view_put_time(json, "started", job->started_ms);
    view_put_time(json, "ended", job->ended_ms);
    view_put_known(json, "estimate_ms",
                   job->spec.estimate_ms != 0 ? job->spec.estimate_ms : ACRE_UNKNOWN);
    view_put_known(json, "time_limit_ms",
                   job->spec.limit_ms != 0 ? job->spec.limit_ms : ACRE_UNKNOWN);
    acre_json_put_u64(json, "wait_ms", wait_ms(view));
    acre_json_put_u64(json, "run_ms", run_ms(view));
}

static void write_array(const struct acre_job_spec *spec, struct acre_json *json) {
    acre_json_key(json, "array");
    if (spec->array == 0) {
        acre_json_null(json);
        return;
    }
    acre_json_object(json);
    acre_json_put_u64(json, "id", spec->array);
    acre_json_put_u64(json, "index", spec->array_index);
    acre_json_object_end(json);
}

void view_write(const struct job_view *view, struct acre_json *json) {
    const struct acre_job *job = view->job;
    acre_json_object(json);
    acre_json_put_u64(json, "id", job->spec.id);
    acre_json_put_string(json, "name", view->name[0] != '\0' ? view->name : NULL);
    acre_json_put_string(json, "user", view->user);
    acre_json_put_string(json, "project", view->project);
    acre_json_put_string(json, "state", acre_job_state_name(job->state));
    acre_json_put_u64(json, "priority", (uint64_t)job->spec.priority);
    write_times(view, json);
    acre_json_put_u64(json, "attempt", job->attempt);
    acre_json_put_u64(json, "retries", job->retries);
    acre_json_put_u64(json, "max_retries", job->spec.max_retries);
    acre_json_put_u64(json, "preemptions", job->preemptions);
    acre_json_put_string(json, "command", view->command);
    acre_json_put_bool(json, "external", view->external);
    write_request(view, json);
    acre_json_put_bool(json, "held", job->spec.held);
    acre_record_write_after(&job->spec, json);
    write_array(&job->spec, json);
    acre_json_put_bool(json, "canceling", job->canceling);
    write_allocation(view, json);
    write_exit(view, json);
    acre_json_key(json, "why");
    view_write_why(json, view->why);
    acre_json_key(json, "when");
    view_write_when(json, view->when);
    acre_json_put_bool(json, "simulated", view->simulated);
    acre_json_object_end(json);
}
