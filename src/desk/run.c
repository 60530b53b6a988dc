/* run.c - from committed decisions to engines, and from engines' facts to the scheduler.
 *
 * Every action names a run by (job, attempt) and is repeated after a crash, so it is looked at
 * again before it is carried out: a job that was canceled meanwhile is not started. If the engine
 * does not know a run that should be ended, it is reported to the scheduler as ended. */
#include "desk/commands.h"

#include "desk/inner.h"
#include "desk/symptom.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    GRACE_MS = 10000, /* between SIGTERM and SIGKILL, unless the job asks otherwise */
    RUN_ARENA_MAX_BYTES = 16 << 20,
    OVER_TEXT_MAX = 64,
};

/* --- small tables --------------------------------------------------------------------------- */

/* Where `job` is in the sorted list, or would be. */
static uint32_t index_of(const uint64_t *jobs, uint32_t count, uint64_t job) {
    uint32_t low = 0;
    while (low < count) {
        uint32_t middle = low + (count - low) / 2;
        if (jobs[middle] < job) {
            low = middle + 1;
        } else {
            count = middle;
        }
    }
    return low;
}

bool acre_desk_is_external(const struct acre_desk *desk, uint64_t job) {
    uint32_t at = index_of(desk->external, desk->external_count, job);
    return at < desk->external_count && desk->external[at] == job;
}

bool acre_desk_find_external(const struct acre_desk *desk, const char *user, const char *name,
                             uint64_t *ret_job) {
    const struct acre_names *names = acre_ledger_names(desk->ledger);
    uint32_t user_id = acre_names_find(names, acre_str_from(user));
    uint32_t name_id = acre_names_find(names, acre_str_from(name));
    for (uint32_t i = 0; i < desk->external_count; i++) {
        struct acre_job job;
        if (acre_sched_find(desk->sched, desk->external[i], &job) &&
            acre_job_state_is_live(job.state) && job.spec.user == user_id &&
            job.spec.name == name_id) {
            *ret_job = job.spec.id;
            return true;
        }
    }
    return false;
}

void desk_add_external(struct acre_desk *desk, uint64_t job) {
    uint32_t at = index_of(desk->external, desk->external_count, job);
    if (at < desk->external_count && desk->external[at] == job) {
        return;
    }
    desk->external = acre_grow(desk->external, desk->external_count, &desk->external_capacity,
                               sizeof(*desk->external));
    memmove(&desk->external[at + 1], &desk->external[at],
            (desk->external_count - at) * sizeof(*desk->external));
    desk->external[at] = job;
    desk->external_count++;
}

const char *acre_desk_exit_text(const struct acre_desk *desk, uint64_t job) {
    uint32_t at = acre_map_get(&desk->text_of_job, job);
    return at != ACRE_MAP_NONE ? desk->texts[at].text : "";
}

static void forget_text(struct acre_desk *desk, uint64_t job) {
    uint32_t at = acre_map_get(&desk->text_of_job, job);
    if (at == ACRE_MAP_NONE) {
        return;
    }
    const struct desk_text *last = &desk->texts[--desk->text_count];
    acre_map_put(&desk->text_of_job, last->job, at);
    desk->texts[at] = *last;
    acre_map_remove(&desk->text_of_job, job);
}

void desk_set_text(struct acre_desk *desk, uint64_t job, const char *text) {
    if (text[0] == '\0') {
        forget_text(desk, job);
        return;
    }
    uint32_t at = acre_map_get(&desk->text_of_job, job);
    if (at == ACRE_MAP_NONE) {
        desk->texts =
            acre_grow(desk->texts, desk->text_count, &desk->text_capacity, sizeof(*desk->texts));
        at = desk->text_count++;
        acre_map_put(&desk->text_of_job, job, at);
        desk->texts[at].job = job;
    }
    snprintf(desk->texts[at].text, sizeof(desk->texts[at].text), "%s", text);
}

/* The spec of an array goes with its last job. */
static void forget_spec(struct acre_desk *desk, uint64_t job, uint64_t array) {
    if (array == 0 || acre_sched_members(desk->sched, array) == 0) {
        specs_remove(desk->specs, array != 0 ? array : job);
    }
}

void desk_forget_job(struct acre_desk *desk, uint64_t job) {
    struct acre_job found;
    uint64_t array = acre_sched_find(desk->sched, job, &found) ? found.spec.array : 0;
    acre_sched_drop(desk->sched, job);
    forget_spec(desk, job, array);
    desk_set_text(desk, job, "");
    uint32_t at = index_of(desk->external, desk->external_count, job);
    if (at < desk->external_count && desk->external[at] == job) {
        desk->external_count--;
        memmove(&desk->external[at], &desk->external[at + 1],
                (desk->external_count - at) * sizeof(*desk->external));
    }
}

/* --- facts ---------------------------------------------------------------------------------- */

/* Its devices are given back at once: note for the record where it was. */
static void keep_last_parts(struct acre_desk *desk, uint64_t id) {
    struct acre_job job;
    struct acre_buf text;
    acre_buf_init(&text, ACRE_RECORD_DETAIL_MAX);
    if (acre_sched_find(desk->sched, id, &job) &&
        acre_record_write_parts(desk->ledger, &job, &text)) {
        desk->last_parts = acre_grow(desk->last_parts, desk->last_count, &desk->last_capacity,
                                     sizeof(*desk->last_parts));
        const char *kept = acre_arena_strndup(desk->arena, text.data, text.length);
        desk->last_parts[desk->last_count++] = (struct desk_last_parts){id, {kept, text.length}};
    }
    acre_buf_finish(&text);
}

/* A run is ended with the reservation it drew on; the engine knows only that it was told to. */
static void name_reservation(const struct acre_desk *desk, uint64_t id, char text[OVER_TEXT_MAX]) {
    struct acre_job job;
    struct acre_reservation reservation;
    if (!acre_sched_find(desk->sched, id, &job) || job.spec.request.reservation == 0) {
        return;
    }
    uint64_t drawn_on = job.spec.request.reservation;
    if (!acre_ledger_find_reservation(desk->ledger, drawn_on, &reservation) ||
        reservation.state != ACRE_RESERVATION_ACTIVE) {
        snprintf(text, OVER_TEXT_MAX, "its reservation %llu has ended",
                 (unsigned long long)drawn_on);
    }
}

static void tell_exit(struct acre_desk *desk, struct acre_run run, struct acre_job_exit *end,
                      const char *text) {
    keep_last_parts(desk, run.job);
    if (desk->sink.end != NULL) {
        desk->sink.end(desk->sink.context, run, end);
    }
    char over[OVER_TEXT_MAX] = "";
    if (text[0] == '\0' && end->kind == ACRE_EXIT_SIGNAL) {
        name_reservation(desk, run.job, over);
    }
    desk_set_text(desk, run.job, text[0] != '\0' ? text : over);
    desk->touched = true;
    acre_sched_exited(desk->sched, run.job, run.attempt, end, acre_desk_now(desk));
}

/* The end of a run that nobody measured. */
static void tell_unmeasured(struct acre_desk *desk, struct acre_run run, enum acre_exit_kind kind,
                            int code, const char *text) {
    struct acre_job_exit end = {.kind = kind,
                                .code = code,
                                .peak_ram_mib = ACRE_UNKNOWN,
                                .peak_gpu_mib = ACRE_UNKNOWN,
                                .cpu_ms = ACRE_UNKNOWN,
                                .gpu_use_milli = UINT32_MAX};
    tell_exit(desk, run, &end, text);
}

static void on_started(void *context, struct acre_run run, uint64_t now_ms, int64_t pid) {
    struct acre_desk *desk = ((struct desk_engine *)context)->desk;
    (void)now_ms; /* the engine's clock may differ from what was told before */
    (void)pid;
    if (desk->state == DESK_OPEN) { /* else it is told again when the store works */
        desk->touched = true;
        acre_sched_started(desk->sched, run.job, run.attempt, acre_desk_now(desk));
    }
}

/* A run that failed by itself may have said that its GPU was full or taken. */
static const char *look_closer(struct acre_desk *desk, struct acre_run run,
                               struct acre_job_exit *end, const char *text) {
    char path[PATH_MAX];
    const char *words = "";
    for (int stream = 2; stream >= 1 && end->kind == ACRE_EXIT_CODE && end->code != 0; stream--) {
        if (acre_desk_log_path(desk, run, stream, path, sizeof(path), NULL) == 0) {
            end->kind = symptom_of_file(path, &words);
        }
    }
    return words[0] != '\0' ? words : text;
}

static void on_exited(void *context, struct acre_run run, const struct acre_run_result *result) {
    static const enum acre_exit_kind kinds[] = {
        [ACRE_RUN_EXITED] = ACRE_EXIT_CODE,
        [ACRE_RUN_SIGNALED] = ACRE_EXIT_SIGNAL,
        [ACRE_RUN_TIME_LIMIT] = ACRE_EXIT_TIME_LIMIT,
        [ACRE_RUN_OUT_OF_MEMORY] = ACRE_EXIT_OUT_OF_MEMORY,
        [ACRE_RUN_NOT_STARTED] = ACRE_EXIT_NOT_STARTED,
        [ACRE_RUN_LOST] = ACRE_EXIT_LOST,
    };
    struct acre_desk *desk = ((struct desk_engine *)context)->desk;
    if (desk->state != DESK_OPEN) {
        return; /* the engine keeps its record until it is told to forget it */
    }
    struct acre_job_exit end = {.kind = kinds[result->ending],
                                .code = result->code,
                                .peak_ram_mib = result->peak_ram_mib,
                                .peak_gpu_mib = ACRE_UNKNOWN,
                                .cpu_ms = result->cpu_ms,
                                .log_bytes = result->log_bytes,
                                .gpu_use_milli = UINT32_MAX};
    tell_exit(desk, run, &end, look_closer(desk, run, &end, result->text));
}

static void on_node(void *context, const struct acre_engine_node *node) {
    desk_put_node(context, node);
}

static void on_node_lost(void *context, const char *name, const char *why) {
    desk_lose_node(context, name, why);
}

static void on_output(void *context, struct acre_run run, int stream, uint64_t offset,
                      const void *bytes, size_t length) {
    desk_keep_output(((struct desk_engine *)context)->desk, run, stream, offset, bytes, length);
}

struct acre_engine_sink desk_engine_sink(struct desk_engine *engine) {
    return (struct acre_engine_sink){.started = on_started,
                                     .exited = on_exited,
                                     .node = on_node,
                                     .node_lost = on_node_lost,
                                     .output = on_output,
                                     .context = engine};
}

void acre_desk_end_external(struct acre_desk *desk, uint64_t job, int code) {
    struct acre_job found;
    if (!acre_desk_is_external(desk, job) || !acre_sched_find(desk->sched, job, &found)) {
        return;
    }
    tell_unmeasured(desk, (struct acre_run){job, found.attempt}, ACRE_EXIT_CODE, code, "");
}

/* --- starting ------------------------------------------------------------------------------- */

static const char **new_list(struct acre_arena *arena, size_t count) {
    return acre_arena_alloc(arena, (count + 1) * sizeof(char *));
}

/* The words after "#!", as the kernel reads them: a program and one argument. "/bin/sh" when there
 * are none. The script comes on standard input. */
static const char *const *script_argv(const char *script, struct acre_arena *arena) {
    const char **argv = new_list(arena, 3);
    struct acre_split lines = acre_split_begin(acre_str_from(script), '\n');
    struct acre_str line = {0};
    acre_split_next(&lines, &line);
    argv[0] = "/bin/sh";
    if (line.length < 2 || line.data[0] != '#' || line.data[1] != '!') {
        return argv;
    }
    line = acre_str_trim((struct acre_str){line.data + 2, line.length - 2});
    size_t first = 0;
    while (first < line.length && line.data[first] != ' ' && line.data[first] != '\t') {
        first++;
    }
    struct acre_str rest = acre_str_trim((struct acre_str){line.data + first, line.length - first});
    if (first > 0) {
        argv[0] = acre_arena_strndup(arena, line.data, first);
    }
    if (rest.length > 0) {
        argv[1] = acre_arena_strndup(arena, rest.data, rest.length);
    }
    return argv;
}

static const char *const *make_argv(const struct acre_recipe *recipe, struct acre_arena *arena) {
    if (recipe->script != NULL) {
        return script_argv(recipe->script, arena);
    }
    if (json_is_array(recipe->command)) {
        size_t count = json_array_size(recipe->command);
        const char **argv = new_list(arena, count);
        for (size_t i = 0; i < count; i++) {
            argv[i] = json_string_value(json_array_get(recipe->command, i));
        }
        return argv;
    }
    const char **argv = new_list(arena, 3);
    argv[0] = "/bin/sh";
    argv[1] = "-c";
    argv[2] = json_string_value(recipe->command);
    return argv;
}

static const char *const *make_env(const struct acre_desk *desk, const struct acre_job *job,
                                   const struct acre_recipe *recipe, struct acre_arena *arena) {
    const struct acre_names *names = acre_ledger_names(desk->ledger);
    const char **env = new_list(arena, json_object_size(recipe->environment) + 8);
    uint32_t count = 0;
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)recipe->environment, key, value) {
        env[count++] = acre_arena_printf(arena, "%s=%s", key, json_string_value(value));
    }
    env[count++] = acre_arena_printf(arena, "ACRE_JOB_ID=%llu", (unsigned long long)job->spec.id);
    env[count++] =
        acre_arena_printf(arena, "ACRE_JOB_NAME=%s", acre_names_text(names, job->spec.name));
    env[count++] = acre_arena_printf(arena, "ACRE_ATTEMPT=%u", job->attempt);
    env[count++] = acre_arena_printf(arena, "ACRE_USER=%s", acre_names_text(names, job->spec.user));
    env[count++] =
        acre_arena_printf(arena, "ACRE_PROJECT=%s", acre_names_text(names, job->spec.project));
    if (job->spec.array != 0) {
        env[count++] =
            acre_arena_printf(arena, "ACRE_ARRAY_ID=%llu", (unsigned long long)job->spec.array);
        env[count++] = acre_arena_printf(arena, "ACRE_ARRAY_INDEX=%u", job->spec.array_index);
    }
    return env;
}

/* Devices and nodes of the run from the allocation's parts, which come member by member. */
static void add_devices(const struct acre_desk *desk, const struct acre_job *job,
                        const struct acre_allocation *allocation, struct acre_arena *arena,
                        struct acre_run_spec *run) {
    const struct acre_request *request = &job->spec.request;
    uint32_t each = ACRE_MAX(request->gpus, 1U); /* parts of a member */
    struct acre_run_device *devices =
        acre_arena_alloc(arena, (allocation->part_count + 1U) * sizeof(*devices));
    const char **nodes = new_list(arena, request->replicas);
    for (uint32_t i = 0; i < allocation->part_count; i++) {
        const struct acre_part *part = &allocation->parts[i];
        uint32_t member = i / each;
        if (i % each == 0 && member < request->replicas) {
            nodes[member] = inventory_node(desk->inventory, part->node)->name;
        }
        if (part->device == ACRE_DEVICE_NONE) {
            continue;
        }
        const struct acre_engine_device *device = inventory_device(desk->inventory, part->device);
        devices[run->device_count++] = (struct acre_run_device){
            .id = device->id,
            .vendor = device->vendor,
            .pci = device->pci,
            .milli = part->milli,
            .mib = part->milli == 1000 && part->by_share ? 0 : part->mib,
            .isolation = isolation_name(request->isolation),
            .member = member,
            .units = device->units,
            .simulated = device->simulated,
        };
    }
    run->devices = devices;
    run->nodes = nodes;
    run->members = request->replicas;
}

/* A job inside a reservation ends with it. */
static uint64_t limit_of(struct acre_desk *desk, const struct acre_job *job) {
    struct acre_reservation reservation;
    uint64_t limit_ms = job->spec.limit_ms;
    uint64_t id = job->spec.request.reservation;
    if (id != 0 && acre_ledger_find_reservation(desk->ledger, id, &reservation)) {
        uint64_t now_ms = acre_desk_now(desk);
        uint64_t left_ms = reservation.end_ms > now_ms ? reservation.end_ms - now_ms : 1;
        limit_ms = limit_ms != 0 ? ACRE_MIN(limit_ms, left_ms) : left_ms;
    }
    return limit_ms;
}

static int start_run(struct acre_desk *desk, const struct acre_job *job, struct acre_run run,
                     struct acre_arena *arena, struct acre_error *err) {
    struct acre_recipe recipe;
    struct acre_allocation allocation;
    json_t *parsed = NULL;
    int r = acre_desk_parsed_spec(desk, job->spec.id, &parsed, err);
    if (r == 0) {
        r = acre_record_read_recipe(parsed, &recipe, err);
    }
    const struct desk_engine *engine = r == 0 ? desk_engine_of(desk, job, err) : NULL;
    if (engine == NULL) {
        return r < 0 ? r : ACRE_ECONFLICT;
    }
    acre_ledger_find(desk->ledger, job->allocation, &allocation);
    const struct acre_request *request = &job->spec.request;
    struct acre_run_spec spec = {
        .run = run,
        .user = acre_names_text(acre_ledger_names(desk->ledger), job->spec.user),
        .argv = make_argv(&recipe, arena),
        .env = make_env(desk, job, &recipe, arena),
        .directory = recipe.directory,
        .cpu_milli = request->cpu_milli * request->replicas,
        .ram_mib = request->ram_mib * request->replicas,
        .limit_ms = limit_of(desk, job),
        .warn_ms = recipe.warn_ms,
        /* It may have been accepted under another policy. */
        .grace_ms = ACRE_MIN(recipe.grace_ms != 0 ? recipe.grace_ms : (uint64_t)GRACE_MS,
                             desk->policy->limits.grace_ms),
        .warn_signal = recipe.warn_signal != 0 ? recipe.warn_signal : SIGUSR1,
        .no_network = recipe.no_network,
        .private_processes = desk->policy->private_processes,
        .stdin_text = recipe.script,
    };
    add_devices(desk, job, &allocation, arena, &spec);
    if (desk->sink.begin != NULL) {
        desk->sink.begin(desk->sink.context, run, spec.devices, spec.device_count);
    }
    return engine->driver->start(engine->self, &spec, err);
}

void desk_adopt_run(struct acre_desk *desk, const struct acre_job *job) {
    struct acre_run run = {job->spec.id, job->attempt};
    struct acre_allocation allocation;
    if (desk->sink.begin != NULL && acre_ledger_find(desk->ledger, job->allocation, &allocation)) {
        struct acre_run_spec spec = {.run = run};
        struct acre_arena *arena = acre_arena_create(RUN_ARENA_MAX_BYTES);
        add_devices(desk, job, &allocation, arena, &spec);
        desk->sink.begin(desk->sink.context, run, spec.devices, spec.device_count);
        acre_arena_destroy(arena);
    }
    const struct desk_engine *engine = desk_engine_of(desk, job, NULL);
    ACRE_ASSERT(engine != NULL); /* it holds what it was started on */
    engine->driver->adopt(engine->self, run);
}

static void start(struct acre_desk *desk, struct acre_run run) {
    struct acre_job job;
    uint64_t now_ms = acre_desk_now(desk);
    if (!acre_sched_find(desk->sched, run.job, &job) || job.attempt != run.attempt ||
        job.canceling || (job.state != ACRE_JOB_SCHEDULED && job.state != ACRE_JOB_ALLOCATING)) {
        return; /* canceled meanwhile */
    }
    acre_sched_dispatched(desk->sched, run.job, run.attempt, now_ms);
    if (acre_desk_is_external(desk, run.job)) {
        acre_sched_started(desk->sched, run.job, run.attempt, now_ms);
        return;
    }
    struct acre_error err = {0};
    struct acre_arena *arena = acre_arena_create(RUN_ARENA_MAX_BYTES);
    if (start_run(desk, &job, run, arena, &err) < 0) {
        tell_unmeasured(desk, run, ACRE_EXIT_NOT_STARTED, 0, err.text);
    }
    acre_arena_destroy(arena);
}

/* ACRE_ENOTFOUND: no engine knows it. What ran inside a reservation that is over holds nothing any
 * more, and still runs: then every engine is asked. */
static int signal_run(struct acre_desk *desk, struct acre_run run, enum acre_run_signal signal,
                      struct acre_error *err) {
    struct acre_job job;
    const struct desk_engine *engine =
        acre_sched_find(desk->sched, run.job, &job) ? desk_engine_of(desk, &job, NULL) : NULL;
    if (engine != NULL) {
        return engine->driver->signal(engine->self, run, signal, err);
    }
    int r = ACRE_ENOTFOUND;
    for (uint32_t i = 0; i < desk->engine_count && r == ACRE_ENOTFOUND; i++) {
        r = desk->engines[i].driver->signal(desk->engines[i].self, run, signal, err);
    }
    return r;
}

void acre_desk_signal(struct acre_desk *desk, struct acre_run run, enum acre_run_signal signal) {
    signal_run(desk, run, signal, NULL);
}

/* --- ending --------------------------------------------------------------------------------- */

static void end_run(struct acre_desk *desk, struct acre_run run, enum acre_run_signal signal) {
    if (acre_desk_is_external(desk, run.job)) {
        if (signal != ACRE_RUN_CHECKPOINT) { /* nobody to wait for: its devices come back at once */
            tell_unmeasured(desk, run, ACRE_EXIT_SIGNAL, SIGTERM, "");
        }
        return;
    }
    struct acre_error err = {0};
    int r = signal_run(desk, run, signal, &err);
    if (r == ACRE_ENOTFOUND && signal != ACRE_RUN_CHECKPOINT) {
        tell_unmeasured(desk, run, ACRE_EXIT_LOST, 0, "the engine does not know this run");
    } else if (r < 0 && r != ACRE_ENOTFOUND && desk->sink.trouble != NULL) {
        desk->sink.trouble(desk->sink.context, "cannot signal a run", &err);
    }
}

void desk_act(struct acre_desk *desk, const struct acre_sched_action *action) {
    struct acre_run run = {action->job, action->attempt};
    switch (action->kind) {
    case ACRE_ACTION_START:
        start(desk, run);
        break;
    case ACRE_ACTION_CHECKPOINT:
        end_run(desk, run, ACRE_RUN_CHECKPOINT);
        break;
    case ACRE_ACTION_TERMINATE:
        end_run(desk, run, ACRE_RUN_TERMINATE);
        break;
    case ACRE_ACTION_KILL:
        end_run(desk, run, ACRE_RUN_KILL);
        break;
    case ACRE_ACTION_FORGET:
        if (!acre_desk_is_external(desk, action->job)) {
            desk_forget_run(desk, run);
        }
        break;
    }
}
