/* record.c - the two JSON texts of a job's row.
 *
 * Both are tables of numbers plus a few lists. A field equal to its default is not written, so
 * that a trivial job's detail is some ten bytes: it is rewritten at every change of state, and a
 * short text is what makes group commit cheap. Reading trusts nothing: a row that was edited by
 * hand is refused with the job's id and the field, never half understood. */
#include "desk/record.h"

#include "ledger/nodes.h"

#include <string.h>

/* Numbers of the spec: key, place, most that is accepted when it is read back. */
/* clang-format off */
#define SPEC_NUMBERS(X)                                                    \
    /* key               member                 type      default  most */ \
    X("nodes",           request.replicas,      uint32_t, 1,       ACRE_REQUEST_REPLICAS_MAX) \
    X("gpus",            request.gpus,          uint32_t, 1,       64)     \
    X("share_milli",     request.milli,         uint32_t, 0,       1000)   \
    X("gpu_memory_mib",  request.mib,           uint64_t, 0,       UINT32_MAX) \
    X("cpu_milli",       request.cpu_milli,     uint64_t, 0,       UINT32_MAX) \
    X("ram_mib",         request.ram_mib,       uint64_t, 0,       UINT32_MAX) \
    X("reservation",     request.reservation,   uint64_t, 0,       INT64_MAX) \
    X("estimate_ms",     estimate_ms,           uint64_t, 0,       INT64_MAX) \
    X("time_limit_ms",   limit_ms,              uint64_t, 0,       INT64_MAX) \
    X("begin_ms",        begin_ms,              uint64_t, 0,       INT64_MAX) \
    X("max_retries",     max_retries,           uint32_t, 0,       ACRE_JOB_RETRIES_MAX) \
    X("array_limit",     array_limit,           uint32_t, 0,       ACRE_JOB_ARRAY_MAX)
#define SPEC_FLAGS(X)                                                      \
    X("exclusive",       request.exclusive)                                \
    X("fixed",           fixed)                                            \
    X("smaller_on_oom",  smaller_on_oom)
#define RECIPE_NUMBERS(X)                                                  \
    X("warn_ms",         warn_ms,               uint64_t, 0,       INT64_MAX) \
    X("grace_ms",        grace_ms,              uint64_t, 0,       INT64_MAX) \
    X("warn_signal",     warn_signal,           int,      0,       64)
#define RECIPE_FLAGS(X)                                                    \
    X("no_network",      no_network)                                       \
    X("external",        external)
#define DETAIL_NUMBERS(X)                                                  \
    X("array_index",     spec.array_index,      uint32_t, 0,       UINT32_MAX) \
    X("retries",         retries,               uint32_t, 0,       ACRE_JOB_RETRIES_MAX) \
    X("preemptions",     preemptions,           uint32_t, 0,       UINT32_MAX) \
    X("eligible_ms",     eligible_ms,           uint64_t, 0,       INT64_MAX) \
    X("not_before_ms",   not_before_ms,         uint64_t, 0,       INT64_MAX) \
    X("scheduled_ms",    scheduled_ms,          uint64_t, 0,       INT64_MAX) \
    X("run_ms",          run_ms,                uint64_t, 0,       INT64_MAX) \
    X("preempted_for",   preempted_for,         uint64_t, 0,       INT64_MAX)
#define DETAIL_FLAGS(X)                                                    \
    X("held",            spec.held)                                        \
    X("canceling",       canceling)
/* clang-format on */

#define WRITE_NUMBER(key, member, type, absent, most)                                              \
    if (from->member != (type)(absent)) {                                                          \
        acre_json_put_u64(json, key, (uint64_t)from->member);                                      \
    }
#define WRITE_FLAG(key, member)                                                                    \
    if (from->member) {                                                                            \
        acre_json_put_bool(json, key, true);                                                       \
    }
#define READ_NUMBER(key, member, type, absent, most)                                               \
    number = (uint64_t)(absent);                                                                   \
    if (r == 0) {                                                                                  \
        r = acre_json_get_u64(object, key, false, 0, (most), &number, err);                        \
    }                                                                                              \
    to->member = (type)number;
#define READ_FLAG(key, member)                                                                     \
    to->member = false;                                                                            \
    if (r == 0) {                                                                                  \
        r = acre_json_get_bool(object, key, false, &to->member, err);                              \
    }

static const char *const exit_kinds[] = {
#define X(name, text) text,
    ACRE_EXIT_KINDS(X)
#undef X
};

static const char *const dependency_kinds[] = {
#define X(name, text) text,
    ACRE_DEPENDENCIES(X)
#undef X
};

static bool find_word(const char *text, const char *const *words, size_t count, int *ret_index) {
    for (size_t i = 0; i < count; i++) {
        if (strcmp(words[i], text) == 0) {
            *ret_index = (int)i;
            return true;
        }
    }
    return false;
}

static bool parse_exit_kind(const char *text, enum acre_exit_kind *ret_kind) {
    int index = 0;
    bool found = find_word(text, exit_kinds, ACRE_COUNT(exit_kinds), &index);
    if (found) {
        *ret_kind = (enum acre_exit_kind)index;
    }
    return found;
}

static bool parse_dependency(const char *text, enum acre_dependency_kind *ret_kind) {
    int index = 0;
    bool found = find_word(text, dependency_kinds, ACRE_COUNT(dependency_kinds), &index);
    if (found) {
        *ret_kind = (enum acre_dependency_kind)index;
    }
    return found;
}

/* --- writing -------------------------------------------------------------------------------- */

/* A value of the request's body, which was checked: strings, lists and maps of strings. */
static void write_value(struct acre_json *json, const json_t *value) {
    if (json_is_string(value)) {
        acre_json_str(json, (struct acre_str){json_string_value(value), json_string_length(value)});
    } else if (json_is_array(value)) {
        acre_json_array(json);
        for (size_t i = 0; i < json_array_size(value); i++) {
            write_value(json, json_array_get(value, i));
        }
        acre_json_array_end(json);
    } else {
        ACRE_ASSERT(json_is_object(value));
        const char *key;
        json_t *item;
        acre_json_object(json);
        json_object_foreach((json_t *)value, key, item) {
            acre_json_key(json, key);
            write_value(json, item);
        }
        acre_json_object_end(json);
    }
}

static void write_names(struct acre_json *json, const char *key, const struct acre_names *names,
                        const uint32_t *ids, uint32_t max) {
    if (ids[0] == 0) {
        return;
    }
    acre_json_key(json, key);
    acre_json_array(json);
    for (uint32_t i = 0; i < max && ids[i] != 0; i++) {
        acre_json_string(json, acre_names_text(names, ids[i]));
    }
    acre_json_array_end(json);
}

static void write_ask(struct acre_json *json, const struct acre_names *names,
                      const struct acre_job_spec *from) {
    SPEC_NUMBERS(WRITE_NUMBER)
    SPEC_FLAGS(WRITE_FLAG)
    if (from->request.isolation != ACRE_ISOLATION_NONE) {
        acre_json_put_string(json, "isolation", isolation_name(from->request.isolation));
    }
    if (from->request.vendor != 0) {
        acre_json_put_string(json, "vendor", acre_names_text(names, from->request.vendor));
    }
    write_names(json, "models", names, from->request.models, ACRE_REQUEST_MODELS_MAX);
    write_names(json, "labels", names, from->request.labels, ACRE_REQUEST_LABELS_MAX);
}

static void write_recipe(struct acre_json *json, const struct acre_recipe *from) {
    if (from->command != NULL) {
        acre_json_key(json, "command");
        write_value(json, from->command);
    }
    if (from->script != NULL) {
        acre_json_put_string(json, "script", from->script);
    }
    if (from->environment != NULL && json_object_size(from->environment) > 0) {
        acre_json_key(json, "environment");
        write_value(json, from->environment);
    }
    if (from->directory[0] != '\0') {
        acre_json_put_string(json, "directory", from->directory);
    }
    RECIPE_NUMBERS(WRITE_NUMBER)
    RECIPE_FLAGS(WRITE_FLAG)
}

int acre_record_write_spec(const struct acre_names *names, const struct acre_job_spec *spec,
                           const struct acre_recipe *recipe, struct acre_buf *out) {
    struct acre_json json;
    acre_json_begin(&json, out, false);
    acre_json_object(&json);
    write_recipe(&json, recipe);
    write_ask(&json, names, spec);
    acre_json_object_end(&json);
    return acre_json_end(&json);
}

void acre_record_write_after(const struct acre_job_spec *spec, struct acre_json *json) {
    acre_json_key(json, "after");
    acre_json_array(json);
    for (uint32_t i = 0; i < spec->dependency_count; i++) {
        acre_json_object(json);
        acre_json_put_u64(json, "job", spec->dependencies[i].job);
        acre_json_put_string(json, "kind", acre_dependency_name(spec->dependencies[i].kind));
        acre_json_object_end(json);
    }
    acre_json_array_end(json);
}

static void write_exit(struct acre_json *json, const struct acre_job *job, const char *text) {
    bool ran = job->attempt > 0;
    acre_json_key(json, "exit");
    acre_json_object(json);
    acre_json_put_string(json, "kind",
                         acre_exit_kind_name(ran ? job->exit.kind : ACRE_EXIT_NOT_STARTED));
    acre_json_key(json, "code");
    acre_json_i64(json, job->exit.code);
    if (text[0] != '\0') {
        acre_json_put_string(json, "text", text);
    }
    if (ran && job->exit.peak_ram_mib != ACRE_UNKNOWN) {
        acre_json_put_u64(json, "peak_ram_mib", job->exit.peak_ram_mib);
    }
    if (ran && job->exit.peak_gpu_mib != ACRE_UNKNOWN) {
        acre_json_put_u64(json, "peak_gpu_mib", job->exit.peak_gpu_mib);
    }
    if (ran && job->exit.cpu_ms != ACRE_UNKNOWN) {
        acre_json_put_u64(json, "cpu_ms", job->exit.cpu_ms);
    }
    if (ran && job->exit.log_bytes > 0) {
        acre_json_put_u64(json, "log_bytes", job->exit.log_bytes);
    }
    if (ran && job->exit.gpu_use_milli != UINT32_MAX) {
        acre_json_put_u64(json, "gpu_use_milli", job->exit.gpu_use_milli);
    }
    acre_json_object_end(json);
}

static void write_part(struct acre_json *json, const struct acre_ledger *ledger,
                       const struct acre_part *part) {
    struct acre_ledger_node node;
    acre_ledger_node_info(ledger, part->node, &node);
    acre_json_object(json);
    acre_json_put_string(json, "node", node.name);
    if (part->device != ACRE_DEVICE_NONE) {
        struct acre_ledger_device device;
        acre_ledger_device_info(ledger, part->device, &device);
        acre_json_put_string(json, "device", device.id);
        acre_json_put_u64(json, "milli", part->milli);
        acre_json_put_u64(json, "mib", part->mib);
    }
    if (part->cpu_milli != 0) {
        acre_json_put_u64(json, "cpu_milli", part->cpu_milli);
    }
    if (part->ram_mib != 0) {
        acre_json_put_u64(json, "ram_mib", part->ram_mib);
    }
    if (part->by_share) {
        acre_json_put_bool(json, "by_share", true);
    }
    acre_json_object_end(json);
}

bool acre_record_write_parts(const struct acre_ledger *ledger, const struct acre_job *job,
                             struct acre_buf *out) {
    struct acre_allocation allocation;
    struct acre_json json;
    if (job->allocation == 0 || !acre_ledger_find(ledger, job->allocation, &allocation)) {
        return false;
    }
    acre_json_begin(&json, out, false);
    acre_json_array(&json);
    for (uint32_t i = 0; i < allocation.part_count; i++) {
        write_part(&json, ledger, &allocation.parts[i]);
    }
    acre_json_array_end(&json);
    return acre_json_end(&json) == 0;
}

/* What it holds; of one that has ended, what it held. */
static void write_parts(struct acre_json *json, const struct acre_ledger *ledger,
                        const struct acre_job *job, struct acre_str parts) {
    struct acre_buf text;
    acre_buf_init(&text, ACRE_RECORD_DETAIL_MAX);
    if (acre_record_write_parts(ledger, job, &text)) {
        acre_json_key(json, "parts");
        acre_json_raw(json, (struct acre_str){text.data, text.length});
    } else if (parts.length > 0 && !acre_job_state_is_live(job->state)) {
        acre_json_key(json, "parts");
        acre_json_raw(json, parts);
    }
    acre_buf_finish(&text);
}

bool acre_record_has_exit(const struct acre_job *job, const char *exit_text) {
    return job->ended_ms != 0 && (job->attempt > 0 || exit_text[0] != '\0');
}

int acre_record_write_detail(const struct acre_ledger *ledger, const struct acre_job *job,
                             const char *exit_text, struct acre_str parts, struct acre_buf *out) {
    const struct acre_job *from = job;
    struct acre_json writer;
    struct acre_json *json = &writer;
    acre_json_begin(json, out, false);
    acre_json_object(json);
    DETAIL_NUMBERS(WRITE_NUMBER)
    DETAIL_FLAGS(WRITE_FLAG)
    if (job->spec.smaller_on_oom) { /* the request may have become smaller */
        acre_json_put_u64(json, "share_milli", job->spec.request.milli);
        acre_json_put_u64(json, "gpu_memory_mib", job->spec.request.mib);
    }
    if (job->spec.dependency_count > 0) {
        acre_record_write_after(&job->spec, json);
    }
    write_parts(json, ledger, job, parts);
    if (acre_record_has_exit(job, exit_text)) {
        write_exit(json, job, exit_text);
    }
    acre_json_object_end(json);
    return acre_json_end(json);
}

/* --- reading -------------------------------------------------------------------------------- */

/* What was read is not what was written: somebody changed the file. */
static int corrupt(struct acre_error *err) {
    if (err != NULL) {
        err->code = ACRE_ECORRUPT;
    }
    return ACRE_ECORRUPT;
}

static int read_recipe(const json_t *object, struct acre_recipe *to, struct acre_error *err) {
    int r = 0;
    uint64_t number = 0;
    *to = (struct acre_recipe){.directory = ""};
    RECIPE_NUMBERS(READ_NUMBER)
    RECIPE_FLAGS(READ_FLAG)
    to->command = json_object_get(object, "command");
    to->environment = json_object_get(object, "environment");
    if (r == 0) {
        r = acre_json_get_string(object, "script", false, ACRE_RECORD_SPEC_MAX, &to->script, err);
    }
    if (r == 0) {
        r = acre_json_get_string(object, "directory", false, 4096, &to->directory, err);
    }
    if (r == 0 && to->command != NULL && !json_is_string(to->command) &&
        !json_is_array(to->command)) {
        r = acre_fail(err, ACRE_EINVALID, "command: neither a string nor a list");
    }
    if (r == 0 && to->environment != NULL && !json_is_object(to->environment)) {
        r = acre_fail(err, ACRE_EINVALID, "environment: not an object");
    }
    return r;
}

int acre_record_read_recipe(const json_t *spec, struct acre_recipe *ret_recipe,
                            struct acre_error *err) {
    return read_recipe(spec, ret_recipe, err) < 0 ? corrupt(err) : 0;
}

static int read_names(const json_t *object, const char *key, struct acre_names *names,
                      uint32_t *ids, uint32_t max, struct acre_error *err) {
    const json_t *list = json_object_get(object, key);
    if (list == NULL || names == NULL) {
        return 0;
    }
    if (!json_is_array(list) || json_array_size(list) > max) {
        return acre_fail(err, ACRE_EINVALID, "%s: not a list of at most %u names", key, max);
    }
    for (uint32_t i = 0; i < json_array_size(list); i++) {
        const char *text = json_string_value(json_array_get(list, i));
        ids[i] = acre_names_intern(names, acre_str_from(text));
    }
    return 0;
}

static int read_ask(const json_t *object, struct acre_names *names, struct acre_job_spec *to,
                    struct acre_error *err) {
    int r = 0;
    uint64_t number = 0;
    const char *text = "";
    SPEC_NUMBERS(READ_NUMBER)
    SPEC_FLAGS(READ_FLAG)
    if (r == 0) {
        r = acre_json_get_string(object, "isolation", false, 32, &text, err);
    }
    if (r == 0 && text[0] != '\0' &&
        !isolation_parse(acre_str_from(text), &to->request.isolation)) {
        r = acre_fail(err, ACRE_EINVALID, "isolation: unknown value");
    }
    text = "";
    if (r == 0) {
        r = acre_json_get_string(object, "vendor", false, 128, &text, err);
    }
    if (r == 0 && names != NULL) {
        to->request.vendor = acre_names_intern(names, acre_str_from(text));
    }
    if (r == 0) {
        r = read_names(object, "models", names, to->request.models, ACRE_REQUEST_MODELS_MAX, err);
    }
    if (r == 0) {
        r = read_names(object, "labels", names, to->request.labels, ACRE_REQUEST_LABELS_MAX, err);
    }
    return r;
}

static int read_dependencies(const json_t *object, struct acre_arena *arena,
                             struct acre_job_spec *to, struct acre_error *err) {
    const json_t *list = json_object_get(object, "after");
    size_t count = json_array_size(list);
    if (list == NULL) {
        return 0;
    }
    if (!json_is_array(list) || count > ACRE_JOB_DEPENDENCIES_MAX) {
        return acre_fail(err, ACRE_EINVALID, "after: not a list of at most %d jobs",
                         ACRE_JOB_DEPENDENCIES_MAX);
    }
    struct acre_dependency *items = acre_arena_alloc(arena, (count + 1) * sizeof(*items));
    for (size_t i = 0; i < count; i++) {
        const json_t *item = json_array_get(list, i);
        const char *kind = "";
        int r = acre_json_get_u64(item, "job", true, 1, INT64_MAX, &items[i].job, err);
        if (r == 0) {
            r = acre_json_get_string(item, "kind", true, 32, &kind, err);
        }
        if (r == 0 && !parse_dependency(kind, &items[i].kind)) {
            r = acre_fail(err, ACRE_EINVALID, "after: unknown kind");
        }
        if (r < 0) {
            return r;
        }
    }
    to->dependencies = items;
    to->dependency_count = (uint32_t)count;
    return 0;
}

static int read_exit(const json_t *object, struct acre_arena *arena,
                     struct acre_recorded_job *recorded, struct acre_error *err) {
    struct acre_job_exit *to = &recorded->job.exit;
    const char *kind = "";
    const char *text = "";
    uint64_t use_milli = UINT32_MAX;
    to->peak_ram_mib = ACRE_UNKNOWN;
    to->peak_gpu_mib = ACRE_UNKNOWN;
    to->cpu_ms = ACRE_UNKNOWN;
    int r = acre_json_get_string(object, "kind", true, 32, &kind, err);
    if (r == 0 && !parse_exit_kind(kind, &to->kind)) {
        r = acre_fail(err, ACRE_EINVALID, "exit: unknown kind");
    }
    if (r == 0) {
        r = acre_json_get_string(object, "text", false, 4096, &text, err);
    }
    if (r == 0) {
        r = acre_json_get_u64(object, "peak_ram_mib", false, 0, INT64_MAX, &to->peak_ram_mib, err);
    }
    if (r == 0) {
        r = acre_json_get_u64(object, "peak_gpu_mib", false, 0, INT64_MAX, &to->peak_gpu_mib, err);
    }
    if (r == 0) {
        r = acre_json_get_u64(object, "cpu_ms", false, 0, INT64_MAX, &to->cpu_ms, err);
    }
    if (r == 0) {
        r = acre_json_get_u64(object, "log_bytes", false, 0, INT64_MAX, &to->log_bytes, err);
    }
    if (r == 0) {
        r = acre_json_get_u64(object, "gpu_use_milli", false, 0, UINT32_MAX, &use_milli, err);
    }
    to->code = (int)json_integer_value(json_object_get(object, "code"));
    to->gpu_use_milli = (uint32_t)use_milli;
    recorded->exit_text = acre_arena_strndup(arena, text, strlen(text));
    recorded->exited = true;
    return r;
}

static int read_part(const json_t *object, struct acre_arena *arena, struct acre_recorded_part *to,
                     struct acre_error *err) {
    const char *node = "";
    const char *device = NULL;
    uint64_t numbers[4] = {0};
    static const char *const keys[] = {"milli", "mib", "cpu_milli", "ram_mib"};
    int r = acre_json_get_string(object, "node", true, 256, &node, err);
    if (r == 0) {
        r = acre_json_get_string(object, "device", false, 256, &device, err);
    }
    for (size_t i = 0; i < ACRE_COUNT(keys) && r == 0; i++) {
        r = acre_json_get_u64(object, keys[i], false, 0, UINT32_MAX, &numbers[i], err);
    }
    bool by_share = false;
    if (r == 0) {
        r = acre_json_get_bool(object, "by_share", false, &by_share, err);
    }
    if (r < 0) {
        return r;
    }
    *to = (struct acre_recorded_part){
        .node = acre_arena_strndup(arena, node, strlen(node)),
        .device = device != NULL ? acre_arena_strndup(arena, device, strlen(device)) : NULL,
        .milli = (uint32_t)numbers[0],
        .mib = (uint32_t)numbers[1],
        .cpu_milli = (uint32_t)numbers[2],
        .ram_mib = (uint32_t)numbers[3],
        .by_share = by_share,
    };
    return 0;
}

static int read_parts(const json_t *object, struct acre_arena *arena,
                      struct acre_recorded_job *recorded, struct acre_error *err) {
    const json_t *list = json_object_get(object, "parts");
    if (list == NULL) {
        return 0;
    }
    if (!json_is_array(list)) {
        return acre_fail(err, ACRE_EINVALID, "parts: not a list");
    }
    size_t count = json_array_size(list);
    recorded->parts = acre_arena_alloc(arena, (count + 1) * sizeof(*recorded->parts));
    for (size_t i = 0; i < count; i++) {
        int r = read_part(json_array_get(list, i), arena, &recorded->parts[i], err);
        if (r < 0) {
            return r;
        }
    }
    recorded->part_count = (uint32_t)count;
    return 0;
}

static int read_detail(const json_t *object, struct acre_arena *arena,
                       struct acre_recorded_job *recorded, struct acre_error *err) {
    struct acre_job *to = &recorded->job;
    int r = 0;
    uint64_t number = 0;
    DETAIL_NUMBERS(READ_NUMBER)
    DETAIL_FLAGS(READ_FLAG)
    number = to->spec.request.milli;
    if (r == 0) {
        r = acre_json_get_u64(object, "share_milli", false, 0, 1000, &number, err);
        to->spec.request.milli = (uint32_t)number;
    }
    if (r == 0) {
        r = acre_json_get_u64(object, "gpu_memory_mib", false, 0, UINT32_MAX, &to->spec.request.mib,
                              err);
    }
    if (r == 0) {
        r = read_dependencies(object, arena, &to->spec, err);
    }
    if (r == 0) {
        r = read_parts(object, arena, recorded, err);
    }
    const json_t *ending = json_object_get(object, "exit");
    if (r == 0 && ending != NULL) {
        r = read_exit(ending, arena, recorded, err);
    }
    return r;
}

/* The columns that both sides know. */
static int read_columns(const struct acre_store_job *row, struct acre_names *names,
                        struct acre_job *to, struct acre_error *err) {
    if (!acre_job_state_parse(acre_str_from(row->state), &to->state)) {
        return acre_fail(err, ACRE_EINVALID, "state: unknown value");
    }
    to->spec.id = row->id;
    to->spec.array = row->array;
    to->spec.priority = (enum acre_job_priority)row->priority;
    to->attempt = row->attempt;
    to->submitted_ms = row->submitted_ms;
    to->started_ms = row->started_ms;
    to->ended_ms = row->ended_ms;
    if (names != NULL) {
        to->spec.user = acre_names_intern(names, acre_str_from(row->user));
        to->spec.project = acre_names_intern(names, acre_str_from(row->project));
    }
    return 0;
}

int acre_record_read_job(const struct acre_store_job *row, json_t *spec, struct acre_names *names,
                         struct acre_arena *arena, struct acre_recorded_job *ret_recorded,
                         struct acre_error *err) {
    struct acre_recorded_job recorded = {.exit_text = "", .spec = json_incref(spec)};
    json_t *detail = NULL;
    int r = 0;
    if (spec == NULL) {
        r = acre_json_parse("spec", row->spec, ACRE_RECORD_SPEC_MAX, &recorded.spec, err);
    }
    if (r == 0) {
        r = acre_json_parse("detail", row->detail, ACRE_RECORD_DETAIL_MAX, &detail, err);
    }
    if (r == 0) {
        r = read_columns(row, names, &recorded.job, err);
    }
    if (r == 0) {
        r = read_recipe(recorded.spec, &recorded.recipe, err);
    }
    if (r == 0) {
        r = read_ask(recorded.spec, names, &recorded.job.spec, err);
    }
    if (r == 0) {
        r = read_detail(detail, arena, &recorded, err);
    }
    json_decref(detail);
    if (r < 0) {
        json_decref(recorded.spec);
        acre_fail_in(err, r, "job %llu in the store", (unsigned long long)row->id);
        return corrupt(err);
    }
    if (names != NULL) {
        recorded.job.spec.name = acre_names_take(names, acre_str_from(row->name));
    }
    *ret_recorded = recorded;
    return 0;
}

int acre_record_find_parts(const struct acre_ledger *ledger,
                           const struct acre_recorded_job *recorded, struct acre_part *ret_parts,
                           struct acre_error *err) {
    for (uint32_t i = 0; i < recorded->part_count; i++) {
        const struct acre_recorded_part *part = &recorded->parts[i];
        struct acre_part *to = &ret_parts[i];
        *to = (struct acre_part){.device = ACRE_DEVICE_NONE,
                                 .milli = part->milli,
                                 .mib = part->mib,
                                 .cpu_milli = part->cpu_milli,
                                 .ram_mib = part->ram_mib,
                                 .by_share = part->by_share};
        if (!acre_ledger_find_node(ledger, part->node, &to->node)) {
            return acre_fail(err, ACRE_ENOTFOUND, "node '%s' no longer exists", part->node);
        }
        if (part->device != NULL && !acre_ledger_find_device(ledger, part->device, &to->device)) {
            return acre_fail(err, ACRE_ENOTFOUND, "device '%s' no longer exists", part->device);
        }
    }
    return 0;
}
