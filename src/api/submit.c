/* submit.c - the fields of a submission, and what they mean together.
 *
 * Types, ranges and unknown names are the table's and were checked by the router. This file checks
 * what involves several fields: GPUs as a number, a fraction, by memory or not at all; one of
 * command and script; dependencies that must exist; the range of an array. */
#include "api/submit.h"

#include "api/annotations.h"
#include "core/units.h"

#include <ctype.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

enum {
    GPUS_MAX = 64, /* of one node: what the ledger holds */
    NAME_MAX_BYTES = 64,
    ENVIRONMENT_MAX = 1024,
    ARGUMENTS_MAX = 4096,
    SCRIPT_MAX_BYTES = 1 << 20,
    COMMAND_MAX_BYTES = 128 << 10, /* the kernel takes that much in one argument */
    DIRECTORY_MAX_BYTES = 4095,
};
#define CPUS_MAX 65536.0
#define GB_MAX   (1024.0 * 1024.0)

const char *const acre_submit_priorities[] = {"low", "normal", "high", "critical", NULL};
const char *const submit_isolations[] = {
#define X(name, text) text,
    ACRE_ISOLATIONS(X)
#undef X
        NULL,
};
static const char *const signals[] = {"HUP",  "INT",  "QUIT", "USR1",  "USR2",
                                      "TERM", "CONT", "PWR",  "WINCH", NULL};
static const int signal_numbers[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGUSR1, SIGUSR2,
                                     SIGTERM, SIGCONT, SIGPWR,  SIGWINCH};

/* clang-format off */
const struct field submit_fields[] = {
    {.name = "command", .kinds = ACRE_KIND_STRING | ACRE_KIND_STRINGS,
     .max_length = COMMAND_MAX_BYTES,
     .help = "text for /bin/sh -c, or a list: program and arguments"},
    {.name = "script", .kinds = ACRE_KIND_STRING, .max_length = SCRIPT_MAX_BYTES,
     .help = "a script to run instead of a command; its first line names the interpreter"},
    {.name = "name", .kinds = ACRE_KIND_STRING, .max_length = NAME_MAX_BYTES},
    {.name = "project", .kinds = ACRE_KIND_STRING, .max_length = NAME_MAX_BYTES,
     .help = "project to charge (default: yours)"},
    {.name = "environment", .kinds = ACRE_KIND_MAP, .max_length = ENVIRONMENT_MAX,
     .help = "variables to add to a clean environment"},
    {.name = "directory", .kinds = ACRE_KIND_STRING, .max_length = DIRECTORY_MAX_BYTES,
     .help = "working directory, an absolute path (default: your home)"},
    {.name = "gpus", .kinds = ACRE_KIND_NUMBER, .max = ACRE_FIELD_NUMBER_MAX,
     .help = "GPUs on each node: 1 to 64, or 0.1 to 0.999 of one; 0 only with cpus or memory "
             "(default: 1)"},
    {.name = "gpu_count", .kinds = ACRE_KIND_NUMBER, .max = ACRE_FIELD_NUMBER_MAX,
     .help = "another name for gpus"},
    {.name = "gpu_memory", .kinds = ACRE_KIND_MEMORY, .help = "memory of each GPU"},
    {.name = "memory_gb", .kinds = ACRE_KIND_NUMBER, .max = GB_MAX,
     .help = "another name for gpu_memory, in GiB"},
    {.name = "nodes", .kinds = ACRE_KIND_INTEGER, .min = 1, .max = ACRE_REQUEST_REPLICAS_MAX,
     .help = "members of a gang, each with its own GPUs; all start together"},
    {.name = "cpus", .kinds = ACRE_KIND_NUMBER, .max = CPUS_MAX,
     .help = "CPUs on each node, like 1.5"},
    {.name = "memory", .kinds = ACRE_KIND_MEMORY, .help = "RAM on each node"},
    {.name = "model", .kinds = ACRE_KIND_STRING | ACRE_KIND_STRINGS,
     .help = "any of these GPU models"},
    {.name = "vendor", .kinds = ACRE_KIND_STRING, .max_length = NAME_MAX_BYTES},
    {.name = "labels", .kinds = ACRE_KIND_STRINGS, .max_length = ACRE_REQUEST_LABELS_MAX,
     .help = "node labels that must all match, like zone=a"},
    {.name = "priority", .kinds = ACRE_KIND_INTEGER | ACRE_KIND_STRING, .min = 1, .max = 4,
     .words = acre_submit_priorities, .help = "4 requires the operator role (default: 2)"},
    {.name = "estimate", .kinds = ACRE_KIND_DURATION, .help = "expected run time"},
    {.name = "estimated_duration", .kinds = ACRE_KIND_DURATION,
     .help = "another name for estimate"},
    {.name = "time_limit", .kinds = ACRE_KIND_DURATION,
     .help = "time limit: the job is ended after this"},
    {.name = "max_retries", .kinds = ACRE_KIND_INTEGER, .max = ACRE_JOB_RETRIES_MAX},
    {.name = "isolation", .kinds = ACRE_KIND_STRING, .words = submit_isolations},
    {.name = "exclusive", .kinds = ACRE_KIND_BOOL, .help = "do not share its GPUs with other jobs"},
    {.name = "annotations", .kinds = ACRE_KIND_OBJECT,
     .help = "Kubernetes annotations: kaiwo.ai/gpu-fraction, gpu-memory (MiB), gpu-sharing, "
             "gpu-isolation, amd.com/gpu, nvidia.com/gpu; or a whole manifest"},
    {.name = "hold", .kinds = ACRE_KIND_BOOL, .help = "keep it from starting until it is released"},
    {.name = "begin", .kinds = ACRE_KIND_TIME | ACRE_KIND_DURATION,
     .help = "do not start before this: a time, or a duration from now"},
    {.name = "after", .kinds = ACRE_KIND_STRINGS, .max_length = ACRE_JOB_DEPENDENCIES_MAX,
     .help = "jobs to wait for: 12 (started), ok:12 (completed), any:12 (ended)"},
    {.name = "array", .kinds = ACRE_KIND_STRING, .max_length = 64,
     .help = "0-9 submits ten jobs, 0-9%2 runs at most two of them at once"},
    {.name = "network", .kinds = ACRE_KIND_BOOL, .help = "false: no network"},
    {.name = "smaller_on_oom", .kinds = ACRE_KIND_BOOL,
     .help = "when a run is out of GPU memory, retry with half of each share"},
    {.name = "reservation", .kinds = ACRE_KIND_INTEGER, .min = 1, .max = ACRE_FIELD_NUMBER_MAX},
    {.name = "preemptible", .kinds = ACRE_KIND_BOOL, .help = "default: true"},
    {.name = "warn", .kinds = ACRE_KIND_DURATION,
     .help = "how long before the time limit to send warn_signal"},
    {.name = "warn_signal", .kinds = ACRE_KIND_STRING, .words = signals, .help = "default: USR1"},
    {.name = "grace", .kinds = ACRE_KIND_DURATION,
     .help = "time between SIGTERM and SIGKILL; at most max_grace in the policy"},
    {0},
};
/* clang-format on */

static int find_word(const char *const *words, const char *text) {
    int i = 0;
    while (words[i] != NULL && strcmp(words[i], text) != 0) {
        i++;
    }
    return words[i] != NULL ? i : -1;
}

static const json_t *get(const json_t *body, const char *key) {
    const json_t *value = json_object_get(body, key);
    return json_is_null(value) ? NULL : value;
}

static bool flag(const json_t *body, const char *key, bool absent) {
    const json_t *value = get(body, key);
    return value != NULL ? json_is_true(value) : absent;
}

static bool either(const json_t *body, const char *key, const char *alias, const json_t **ret_value,
                   const char **ret_key, int *ret_code, struct acre_error *err) {
    const json_t *value = get(body, key);
    const json_t *other = get(body, alias);
    *ret_key = value != NULL ? key : alias;
    *ret_value = value != NULL ? value : other;
    if (value != NULL && other != NULL) {
        *ret_code = acre_fail(err, ACRE_EINVALID, "%s: also given as %s; accepted: one of the two",
                              alias, key);
        return false;
    }
    return *ret_value != NULL;
}

/* --- what runs ------------------------------------------------------------------------------ */

static int check_argv(const json_t *list, struct acre_error *err) {
    if (json_string_length(json_array_get(list, 0)) == 0) {
        return acre_fail(err, ACRE_EINVALID,
                         "command: the program is missing; accepted: a program and at most %d "
                         "arguments",
                         ARGUMENTS_MAX - 1);
    }
    if (json_array_size(list) > ARGUMENTS_MAX) {
        return acre_fail(err, ACRE_EINVALID,
                         "command: %zu arguments are too many; accepted: at most %d",
                         json_array_size(list) - 1, ARGUMENTS_MAX - 1);
    }
    return 0;
}

static int check_environment(const json_t *map, struct acre_error *err) {
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)map, key, value) {
        bool good = isalpha((unsigned char)key[0]) || key[0] == '_';
        for (const char *c = key; *c != '\0' && good; c++) {
            good = isalnum((unsigned char)*c) || *c == '_';
        }
        if (!good) {
            char shown[80];
            return acre_fail(err, ACRE_EINVALID,
                             "environment: '%s' is not a variable name; accepted: letters, digits "
                             "and '_', not starting with a digit",
                             acre_str_show(acre_str_from(key), shown, sizeof(shown)));
        }
    }
    return 0;
}

/* Nobody's job, an operator's neither, may put off its own end for long. */
static int read_grace(const json_t *value, uint64_t max_ms, uint64_t *ret_ms,
                      struct acre_error *err) {
    uint64_t grace_ms = 0;
    field_duration(value, &grace_ms);
    if (grace_ms > max_ms) {
        char asked[32], most[32];
        return acre_fail(err, ACRE_EINVALID,
                         "grace: %s is too long; accepted: at most %s (max_grace in the policy)",
                         acre_format_duration(grace_ms, asked, sizeof(asked)),
                         acre_format_duration(max_ms, most, sizeof(most)));
    }
    *ret_ms = grace_ms;
    return 0;
}

static int read_recipe(const json_t *body, uint64_t max_grace_ms, struct acre_recipe *to,
                       struct acre_error *err) {
    *to = (struct acre_recipe){.directory = ""};
    to->command = get(body, "command");
    to->script = json_string_value(get(body, "script"));
    to->environment = get(body, "environment");
    to->no_network = !flag(body, "network", true);
    field_duration(get(body, "warn"), &to->warn_ms);
    if (read_grace(get(body, "grace"), max_grace_ms, &to->grace_ms, err) < 0) {
        return ACRE_EINVALID;
    }
    if ((to->command != NULL) == (to->script != NULL)) {
        return acre_fail(err, ACRE_EINVALID, "command: %s; accepted: either command or script",
                         to->command != NULL ? "given together with script" : "absent");
    }
    const char *text = to->script != NULL ? to->script : json_string_value(to->command);
    if (!json_is_array(to->command) && strspn(text, " \t\r\n\f\v") == strlen(text)) {
        return acre_fail(err, ACRE_EINVALID, "%s: empty; accepted: something to run",
                         to->script != NULL ? "script" : "command");
    }
    if (json_is_array(to->command) && check_argv(to->command, err) < 0) {
        return ACRE_EINVALID;
    }
    const json_t *directory = get(body, "directory");
    if (directory != NULL) {
        to->directory = json_string_value(directory);
        if (to->directory[0] != '/') {
            char shown[80];
            return acre_fail(
                err, ACRE_EINVALID,
                "directory: '%s' is not an absolute path; accepted: a path that starts with /",
                acre_str_show(acre_str_from(to->directory), shown, sizeof(shown)));
        }
    }
    const json_t *warn_signal = get(body, "warn_signal");
    if (warn_signal != NULL) {
        to->warn_signal = signal_numbers[find_word(signals, json_string_value(warn_signal))];
    }
    return check_environment(to->environment, err);
}

/* --- what it asks for ----------------------------------------------------------------------- */

#define GPUS_ACCEPTED                                                                              \
    "accepted: 1 to 64 whole GPUs on each node, or 0.1 to 0.999 of one GPU in steps of 0.001; "    \
    "0 only with cpus or memory"

static int read_gpus(const json_t *body, struct acre_request *to, struct acre_error *err) {
    const json_t *value = NULL;
    const char *key = NULL;
    int r = 0;
    to->gpus = 1;
    to->milli = to->mib != 0 ? 0 : 1000; /* by memory alone */
    if (!either(body, "gpus", "gpu_count", &value, &key, &r, err)) {
        return r;
    }
    double number = json_number_value(value);
    double milli = round(number * 1000.0);
    bool is_whole = number == floor(number);
    if (is_whole && number >= 1 && number <= GPUS_MAX) {
        to->gpus = (uint32_t)number;
        to->milli = 1000;
        return 0;
    }
    if (number == 0.0 && (to->cpu_milli != 0 || to->ram_mib != 0) && to->mib == 0) {
        to->gpus = 0;
        to->milli = 0;
        return 0;
    }
    if (!is_whole && milli >= 100 && milli < 1000 && fabs(number * 1000.0 - milli) < 1e-6) {
        to->milli = (uint32_t)milli;
        return 0;
    }
    return acre_fail(err, ACRE_EINVALID, "%s: %.15g; " GPUS_ACCEPTED, key, number);
}

static int read_memory(const json_t *body, struct acre_request *to, struct acre_error *err) {
    const json_t *value = NULL;
    const char *key = NULL;
    int r = 0;
    if (either(body, "gpu_memory", "memory_gb", &value, &key, &r, err)) {
        if (strcmp(key, "memory_gb") == 0) {
            to->mib = (uint64_t)ceil(json_number_value(value) * 1024.0);
        } else {
            field_memory(value, &to->mib);
        }
        if (to->mib == 0 || to->mib > UINT32_MAX) {
            r = acre_fail(err, ACRE_EINVALID,
                          "%s: %llu MiB is out of range; accepted: 1 MiB to 4 PiB", key,
                          (unsigned long long)to->mib);
        }
    }
    field_memory(get(body, "memory"), &to->ram_mib);
    if (r == 0 && to->ram_mib > UINT32_MAX) {
        r = acre_fail(err, ACRE_EINVALID,
                      "memory: %llu MiB is out of range; accepted: less than 4 PiB",
                      (unsigned long long)to->ram_mib);
    }
    return r;
}

static int check_name(const char *field, const char *text, struct acre_error *err) {
    if (!acre_str_is_name(acre_str_from(text), NAME_MAX_BYTES)) {
        char shown[80];
        return acre_fail(err, ACRE_EINVALID,
                         "%s: '%s' is not a name; accepted: 1 to %d letters, digits and -_./:@+",
                         field, acre_str_show(acre_str_from(text), shown, sizeof(shown)),
                         NAME_MAX_BYTES);
    }
    return 0;
}

/* The vendor of a device that is here, in upper or lower case: no other could serve it, and no
 * other is remembered. */
static int read_vendor(const char *text, const struct submit_context *context, uint32_t *ret_id,
                       struct acre_error *err) {
    int r = check_name("vendor", text, err);
    uint32_t count = inventory_devices(context->inventory);
    uint32_t d = 0;
    while (r == 0 && d < count &&
           strcasecmp(inventory_device(context->inventory, d)->vendor, text) != 0) {
        d++;
    }
    if (r == 0 && d == count) {
        char shown[80];
        r = acre_fail(err, ACRE_ENOFIT, "vendor: no GPU here is from '%s'",
                      acre_str_show(acre_str_from(text), shown, sizeof(shown)));
    }
    *ret_id = 0;
    if (r == 0) {
        const char *here = inventory_device(context->inventory, d)->vendor;
        *ret_id = acre_names_find(context->names, acre_str_from(here));
    }
    return r;
}

/* "zone=a": a name, '=', a value. Those that no node has are not remembered. */
static int read_labels(const json_t *list, const struct acre_names *names, uint32_t *ids,
                       struct acre_error *err) {
    for (size_t i = 0; i < json_array_size(list); i++) {
        struct acre_str text = acre_str_from(json_string_value(json_array_get(list, i)));
        const char *equals = memchr(text.data, '=', text.length);
        size_t before = equals != NULL ? (size_t)(equals - text.data) : 0;
        struct acre_str key = {text.data, before};
        struct acre_str value = {text.data + before + 1, text.length - before - 1};
        if (equals == NULL || !acre_str_is_name(key, NAME_MAX_BYTES) ||
            !acre_str_is_name(value, NAME_MAX_BYTES)) {
            char shown[80];
            return acre_fail(err, ACRE_EINVALID,
                             "labels: '%s' is not a label; accepted: KEY=VALUE, like zone=a",
                             acre_str_show(text, shown, sizeof(shown)));
        }
        ids[i] = acre_names_find(names, text);
        if (ids[i] == 0) {
            char shown[80];
            return acre_fail(err, ACRE_ENOFIT, "labels: no node has the label '%s'",
                             acre_str_show(text, shown, sizeof(shown)));
        }
    }
    return 0;
}

/* Add the models whose name is, or contains, the text. */
static int add_models(const char *text, const struct submit_context *context, uint32_t *ids,
                      uint32_t *count, struct acre_error *err) {
    char known[200] = "";
    size_t used = 0;
    uint32_t before = *count;
    const char *last = "";
    for (uint32_t d = 0; d < inventory_devices(context->inventory); d++) {
        const char *model = inventory_device(context->inventory, d)->model;
        if (strcmp(model, last) == 0) {
            continue; /* a node's devices are mostly alike */
        }
        last = model;
        if (used < sizeof(known) && strstr(known, model) == NULL) {
            used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s",
                                     used > 0 ? ", " : "", model);
        }
        uint32_t id = acre_names_find(context->names, acre_str_from(model));
        bool is_new = id != 0 && text[0] != '\0' && strcasestr(model, text) != NULL;
        for (uint32_t i = 0; i < *count && is_new; i++) {
            is_new = ids[i] != id;
        }
        if (is_new && *count < ACRE_REQUEST_MODELS_MAX) {
            ids[(*count)++] = id;
        }
    }
    if (*count == before) {
        char shown[80];
        return acre_fail(err, ACRE_ENOFIT, "model: no GPU here is a '%s'; available: %s",
                         acre_str_show(acre_str_from(text), shown, sizeof(shown)),
                         used > 0 ? known : "no GPUs");
    }
    return 0;
}

static int read_models(const json_t *value, const struct submit_context *context, uint32_t *ids,
                       struct acre_error *err) {
    uint32_t count = 0;
    if (json_is_string(value)) {
        return add_models(json_string_value(value), context, ids, &count, err);
    }
    int r = 0;
    for (size_t i = 0; i < json_array_size(value) && r == 0; i++) {
        r = add_models(json_string_value(json_array_get(value, i)), context, ids, &count, err);
    }
    return r;
}

static int read_request(const json_t *body, const struct submit_context *context,
                        struct acre_request *to, struct acre_error *err) {
    *to = (struct acre_request){.replicas = 1};
    const json_t *nodes = get(body, "nodes");
    if (nodes != NULL) {
        to->replicas = (uint32_t)json_integer_value(nodes);
    }
    const json_t *cpus = get(body, "cpus");
    to->cpu_milli = cpus != NULL ? (uint64_t)ceil(json_number_value(cpus) * 1000.0) : 0;
    const json_t *isolation = get(body, "isolation");
    if (isolation != NULL) {
        isolation_parse(acre_str_from(json_string_value(isolation)), &to->isolation);
    }
    to->exclusive = flag(body, "exclusive", false);
    to->reservation = (uint64_t)json_integer_value(get(body, "reservation"));
    int r = read_memory(body, to, err);
    if (r == 0) {
        r = read_gpus(body, to, err);
    }
    const char *vendor = json_string_value(get(body, "vendor"));
    const json_t *annotations = get(body, "annotations");
    if (r == 0 && annotations != NULL) {
        struct acre_annotation annotation;
        r = annotations_read(annotations, &annotation, err);
        if (r == 0) {
            r = annotations_put(&annotation, body, to, err);
            vendor = vendor != NULL ? vendor : annotations_vendor(&annotation);
        }
    }
    if (r == 0 && vendor != NULL) {
        r = read_vendor(vendor, context, &to->vendor, err);
    }
    if (r == 0) {
        r = read_models(get(body, "model"), context, to->models, err);
    }
    if (r == 0) {
        r = read_labels(get(body, "labels"), context->names, to->labels, err);
    }
    return r;
}

/* --- when and how often --------------------------------------------------------------------- */

static int read_times(const json_t *body, uint64_t now_ms, struct acre_job_spec *to,
                      struct acre_error *err) {
    const json_t *value = NULL;
    const char *key = NULL;
    int r = 0;
    if (either(body, "estimate", "estimated_duration", &value, &key, &r, err)) {
        field_duration(value, &to->estimate_ms);
    }
    field_duration(get(body, "time_limit"), &to->limit_ms);
    const json_t *begin = get(body, "begin");
    uint64_t from_now_ms = 0;
    if (begin != NULL && !field_time(begin, &to->begin_ms) && field_duration(begin, &from_now_ms)) {
        to->begin_ms = now_ms + from_now_ms;
    }
    if (to->begin_ms <= now_ms) {
        to->begin_ms = 0; /* it is past: at once */
    }
    return r;
}

enum acre_job_priority submit_priority(const json_t *value) {
    if (json_is_string(value)) {
        return (enum acre_job_priority)(
            find_word(acre_submit_priorities, json_string_value(value)) + 1);
    }
    return json_is_integer(value) ? (enum acre_job_priority)json_integer_value(value)
                                  : ACRE_PRIORITY_NORMAL;
}

#define AFTER_ACCEPTED "accepted: the id of a job, ok:ID or any:ID"

static int read_dependency(const char *text, submit_find *find, void *context,
                           struct acre_dependency *to, struct acre_error *err) {
    static const struct {
        const char *prefix;
        enum acre_dependency_kind kind;
    } kinds[] = {{"ok:", ACRE_DEPENDENCY_AFTER_OK},
                 {"any:", ACRE_DEPENDENCY_AFTER_ANY},
                 {"after:", ACRE_DEPENDENCY_AFTER}};
    const char *number = text;
    to->kind = ACRE_DEPENDENCY_AFTER;
    for (size_t i = 0; i < ACRE_COUNT(kinds); i++) {
        size_t length = strlen(kinds[i].prefix);
        if (strncmp(text, kinds[i].prefix, length) == 0) {
            to->kind = kinds[i].kind;
            number = text + length;
        }
    }
    if (acre_parse_count("after", number, 1, INT64_MAX, &to->job, NULL) < 0) {
        char shown[40];
        return acre_fail(err, ACRE_EINVALID, "after: '%s'; " AFTER_ACCEPTED,
                         acre_str_show(acre_str_from(text), shown, sizeof(shown)));
    }
    if (!find(context, to->job, &to->state)) {
        return acre_fail(err, ACRE_ENOTFOUND, "after: there is no job %llu",
                         (unsigned long long)to->job);
    }
    return 0;
}

static int read_dependencies(const json_t *body, submit_find *find, void *context,
                             struct acre_submission *to, struct acre_error *err) {
    const json_t *list = get(body, "after");
    int r = 0;
    for (size_t i = 0; i < json_array_size(list) && r == 0; i++) {
        r = read_dependency(json_string_value(json_array_get(list, i)), find, context,
                            &to->dependencies[i], err);
    }
    to->spec.dependencies = to->dependencies;
    to->spec.dependency_count = (uint32_t)json_array_size(list);
    return r;
}

/* "0-9", "0-9%2" */
static int read_array(const json_t *body, struct acre_submission *to, struct acre_error *err) {
    const char *text = json_string_value(get(body, "array"));
    to->count = 1;
    if (text == NULL) {
        return 0;
    }
    char first[24] = "";
    char last[24] = "";
    char limit[24] = "";
    uint64_t numbers[3] = {0};
    struct acre_str whole = acre_str_from(text);
    struct acre_str range = whole;
    const char *percent = strchr(text, '%');
    bool good = true;
    if (percent != NULL) {
        range.length = (size_t)(percent - text);
        good = acre_str_copy(limit, sizeof(limit), acre_str_from(percent + 1));
    }
    const char *dash = memchr(range.data, '-', range.length);
    size_t before = dash != NULL ? (size_t)(dash - range.data) : 0;
    good =
        good && dash != NULL &&
        acre_str_copy(first, sizeof(first), (struct acre_str){range.data, before}) &&
        acre_str_copy(last, sizeof(last), (struct acre_str){dash + 1, range.length - before - 1}) &&
        acre_parse_count("array", first, 0, UINT32_MAX, &numbers[0], NULL) == 0 &&
        acre_parse_count("array", last, numbers[0], UINT32_MAX, &numbers[1], NULL) == 0 &&
        numbers[1] - numbers[0] < ACRE_JOB_ARRAY_MAX &&
        (percent == NULL ||
         acre_parse_count("array", limit, 1, ACRE_JOB_ARRAY_MAX, &numbers[2], NULL) == 0);
    if (!good) {
        char shown[80];
        return acre_fail(err, ACRE_EINVALID,
                         "array: '%s' is not a range; accepted: FIRST-LAST or FIRST-LAST%%LIMIT, "
                         "at most %d jobs",
                         acre_str_show(whole, shown, sizeof(shown)), ACRE_JOB_ARRAY_MAX);
    }
    to->spec.array = UINT64_MAX; /* its id is given with the first job's */
    to->spec.array_index = (uint32_t)numbers[0];
    to->spec.array_limit = (uint32_t)numbers[2];
    to->count = (uint32_t)(numbers[1] - numbers[0] + 1);
    return 0;
}

int submit_read(const json_t *body, const struct submit_context *context,
                struct acre_submission *ret_submission, struct acre_error *err) {
    struct acre_submission *to = ret_submission;
    memset(&to->spec, 0, sizeof(to->spec));
    to->project = json_string_value(get(body, "project"));
    to->name = json_string_value(get(body, "name"));
    to->spec.max_retries = (uint32_t)json_integer_value(get(body, "max_retries"));
    to->spec.priority = submit_priority(json_object_get(body, "priority"));
    to->spec.held = flag(body, "hold", false);
    to->spec.fixed = !flag(body, "preemptible", true);
    to->spec.smaller_on_oom = flag(body, "smaller_on_oom", false);
    int r = read_recipe(body, context->max_grace_ms, &to->recipe, err);
    if (r == 0) {
        r = read_request(body, context, &to->spec.request, err);
    }
    if (r == 0) {
        r = read_times(body, context->now_ms, &to->spec, err);
    }
    if (r == 0) {
        r = read_dependencies(body, context->find, context->find_context, to, err);
    }
    if (r == 0) {
        r = read_array(body, to, err);
    }
    if (r == 0 && to->name != NULL && to->name[0] != '\0') {
        r = check_name("name", to->name, err);
    }
    if (r == 0 && to->project != NULL) {
        r = check_name("project", to->project, err);
    }
    return r;
}
