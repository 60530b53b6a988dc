/* submit_body.c - turns options and a command, or a script with directives, into a JSON request.
 *
 * This checks values only for typing errors; the daemon decides what fits and what is allowed. Two
 * tables do the work: the rows (what people type) and the members (their names in JSON). */
#include "cli/submit.h"

#include "cli/directive.h"
#include "cli/when.h"
#include "cli/yaml.h"
#include "core/file.h"
#include "core/json.h"
#include "core/units.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SCRIPT_MAX_BYTES = 512 << 10, /* the body it travels in may have 1 MiB */
    ANNOTATIONS_MAX_BYTES = 256 << 10,
    GPUS_MAX = 64, /* of one node */
    NODES_MAX = 10000,
};

extern char **environ;

static int check_gpus(const char *field, const char *value, struct acre_error *err) {
    uint64_t whole;
    uint32_t milli;
    bool fraction = strchr(value, '.') != NULL;
    if (fraction ? acre_parse_milli(field, value, 100, 1000, &milli, NULL) == 0
                 : acre_parse_count(field, value, 0, GPUS_MAX, &whole, NULL) == 0) {
        return 0;
    }
    char shown[64];
    return acre_fail(err, ACRE_EINVALID,
                     "%s: '%s' is not a number of GPUs; accepted: whole numbers from 0 to %d, or a "
                     "fraction from 0.1 to 1.0",
                     field, acre_str_show(acre_str_from(value), shown, sizeof(shown)), GPUS_MAX);
}

static int check_size(const char *field, const char *value, struct acre_error *err) {
    uint64_t mib;
    return acre_parse_mib(field, value, &mib, err);
}

static int check_nodes(const char *field, const char *value, struct acre_error *err) {
    uint64_t count;
    return acre_parse_count(field, value, 1, NODES_MAX, &count, err);
}

static int check_count(const char *field, const char *value, struct acre_error *err) {
    uint64_t count;
    return acre_parse_count(field, value, 0, INT32_MAX, &count, err);
}

static int check_cpus(const char *field, const char *value, struct acre_error *err) {
    uint32_t milli;
    return acre_parse_milli(field, value, 1, 10000000, &milli, err);
}

static int check_env(const char *field, const char *value, struct acre_error *err) {
    size_t length = strcspn(value, "=");
    bool good = length > 0 && (value[0] < '0' || value[0] > '9');
    for (size_t i = 0; i < length; i++) {
        char c = value[i];
        good = good && ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                        (c >= '0' && c <= '9') || c == '_');
    }
    char shown[64];
    acre_str_show(acre_str_from(value), shown, sizeof(shown));
    if (!good) {
        return acre_fail(
            err, ACRE_EINVALID,
            "%s: '%s' is not a variable; accepted: NAME=VALUE, or NAME to pass on yours", field,
            shown);
    }
    if (value[length] == '\0' && getenv(value) == NULL) {
        return acre_fail(err, ACRE_EINVALID,
                         "%s: %s is not set in your environment; give it as %s=VALUE", field, shown,
                         shown);
    }
    return 0;
}

#define AT(field) offsetof(struct submit_options, field)
#define TEXT(row_name, row_letter, row_field, row_value, row_check, row_help)                      \
    {                                                                                              \
        .name = row_name, .letter = row_letter, .kind = ACRE_OPT_STRING, .offset = AT(row_field),  \
        .value = row_value, .check = row_check, .help = row_help                                   \
    }
#define LIST(row_name, row_letter, row_field, row_value, row_check, row_help)                      \
    {                                                                                              \
        .name = row_name, .letter = row_letter, .kind = ACRE_OPT_LIST, .offset = AT(row_field),    \
        .value = row_value, .check = row_check, .help = row_help                                   \
    }
#define FLAG(row_name, row_field, row_help)                                                        \
    { .name = row_name, .kind = ACRE_OPT_FLAG, .offset = AT(row_field), .help = row_help }

/* clang-format off */
const struct acre_opt submit_option_rows[ACRE_SUBMIT_ROWS] = {
    TEXT("gpus", 'g', gpus, "N|0.X", check_gpus, "whole GPUs, or a fraction of one (default: 1)"),
    TEXT("gpu-memory", 0, gpu_memory, "SIZE", check_size, "memory on each GPU, such as 20GiB"),
    TEXT("nodes", 'N', nodes, "N", check_nodes,
         "members of a gang, each with --gpus; all start together or not at all (default: 1)"),
    TEXT("cpus", 'c', cpus, "N", check_cpus, "CPUs for each member, such as 4 or 1.5"),
    TEXT("memory", 'm', memory, "SIZE", check_size, "RAM for each member, such as 32GiB"),
    TEXT("model", 0, model, "NAME,...", NULL, "only GPUs of these models"),
    LIST("label", 'l', labels, "KEY=VALUE", NULL, "only nodes with this label; repeatable"),
    {.name = "priority", .letter = 'p', .kind = ACRE_OPT_CHOICE, .offset = AT(priority),
     .value = "LEVEL", .choices = "low,normal,high,critical,1,2,3,4",
     .help = "priority (default: normal)"},
    TEXT("time", 't', time, "TIME", when_check_span,
         "time limit, such as 2h30m (default: none)"),
    TEXT("estimate", 'e', estimate, "TIME", when_check_span,
         "expected run time; jobs with good estimates start sooner"),
    TEXT("retries", 'r', retries, "N", check_count,
         "restart it up to N times if it fails (default: 0)"),
    {.name = "isolation", .kind = ACRE_OPT_CHOICE, .offset = AT(isolation), .value = "KIND",
     .choices = "none,time-slicing,mps,mig", .help = "how to isolate jobs that share a GPU"},
    FLAG("exclusive", exclusive, "do not share its GPUs with other jobs"),
    TEXT("annotations", 0, annotations, "FILE", NULL,
         "Kubernetes annotations or a manifest, YAML or JSON; - is standard input"),
    FLAG("hold", hold, "keep it waiting until 'acre release'"),
    TEXT("begin", 'b', begin, "TIME", when_check_time,
         "earliest start: a delay (2h) or a time"),
    LIST("after", 0, after, "[ok:|any:]JOB", NULL,
         "wait until JOB has started, with ok: succeeded, with any: ended; repeatable"),
    TEXT("array", 'a', array, "FIRST-LAST[%MOST]", NULL,
         "one job per index (ACRE_ARRAY_INDEX), at most MOST at a time"),
    TEXT("name", 'n', name, "NAME", NULL, "name shown in the queue (default: the script's name)"),
    TEXT("project", 'P', project, "NAME", NULL, "project to charge"),
    TEXT("directory", 'C', directory, "DIR", NULL,
         "working directory (default: this one, or your home if the daemon is remote)"),
    LIST("env", 'E', env, "NAME[=VALUE]", check_env,
         "set an environment variable, or pass on yours; repeatable"),
    FLAG("export", export_all, "pass on your whole environment except ACRE_TOKEN"),
    FLAG("no-network", no_network, "run without network access"),
    TEXT("reservation", 'R', reservation, "ID", check_count, "run inside this reservation"),
    TEXT("warn", 0, warn, "TIME", when_check_span,
         "send a signal this long before the time limit"),
    TEXT("warn-signal", 0, warn_signal, "NAME", NULL,
         "the signal to send, such as TERM (default: USR1)"),
    TEXT("grace", 0, grace, "TIME", when_check_span,
         "time between SIGTERM and SIGKILL; at most the policy's max_grace"),
    FLAG("smaller-on-oom", smaller_on_oom, "request half the share after running out of memory"),
    FLAG("no-preempt", no_preempt, "never preempt this job (for interactive work)"),
    FLAG("wait", wait, "wait until it ends, and exit with its status"),
};

/* How a member of the request is made of an option. */
enum form { FORM_TEXT, FORM_NUMBER, FORM_NAMES, FORM_LIST, FORM_TRUE, FORM_FALSE };
static const struct { const char *key; enum form form; size_t offset; } members[] = {
    {"gpus", FORM_NUMBER, AT(gpus)},
    {"gpu_memory", FORM_TEXT, AT(gpu_memory)},
    {"nodes", FORM_NUMBER, AT(nodes)},
    {"cpus", FORM_NUMBER, AT(cpus)},
    {"memory", FORM_TEXT, AT(memory)},
    {"model", FORM_NAMES, AT(model)},
    {"labels", FORM_LIST, AT(labels)},
    {"priority", FORM_NUMBER, AT(priority)},
    {"time_limit", FORM_TEXT, AT(time)},
    {"estimate", FORM_TEXT, AT(estimate)},
    {"max_retries", FORM_NUMBER, AT(retries)},
    {"isolation", FORM_TEXT, AT(isolation)},
    {"exclusive", FORM_TRUE, AT(exclusive)},
    {"hold", FORM_TRUE, AT(hold)},
    {"begin", FORM_TEXT, AT(begin)},
    {"after", FORM_LIST, AT(after)},
    {"array", FORM_TEXT, AT(array)},
    {"name", FORM_TEXT, AT(name)},
    {"project", FORM_TEXT, AT(project)},
    {"network", FORM_FALSE, AT(no_network)},
    {"reservation", FORM_NUMBER, AT(reservation)},
    {"warn", FORM_TEXT, AT(warn)},
    {"warn_signal", FORM_TEXT, AT(warn_signal)},
    {"grace", FORM_TEXT, AT(grace)},
    {"smaller_on_oom", FORM_TRUE, AT(smaller_on_oom)},
    {"preemptible", FORM_FALSE, AT(no_preempt)},
};
/* clang-format on */

/* A number as one; words ("high") stay text. Checked before, so strtod cannot surprise. */
static json_t *number_or_text(const char *text) {
    if (text[0] < '0' || text[0] > '9') {
        return json_string(text);
    }
    return strchr(text, '.') != NULL ? json_real(strtod(text, NULL))
                                     : json_integer(strtoll(text, NULL, 10));
}

static int add_names(json_t *body, const char *key, const char *text, struct acre_error *err) {
    int r = body_put_text(body, key, text, err); /* good as a whole is good in parts */
    if (r < 0 || text == NULL) {
        return r;
    }
    struct acre_split split = acre_split_begin(acre_str_from(text), ',');
    struct acre_str name;
    json_t *names = json_array();
    while (acre_split_next(&split, &name)) {
        name = acre_str_trim(name);
        json_array_append_new(names, json_stringn(name.data, name.length));
    }
    json_object_set_new(body, key, names);
    return 0;
}

static int add_member(json_t *body, const char *key, enum form form, const void *at,
                      struct acre_error *err) {
    if (form == FORM_LIST) {
        return body_put_list(body, key, at, err);
    }
    if (form == FORM_TRUE || form == FORM_FALSE) {
        if (*(const bool *)at) {
            json_object_set_new(body, key, json_boolean(form == FORM_TRUE));
        }
        return 0;
    }
    const char *text = *(const char *const *)at;
    if (form == FORM_NUMBER && text != NULL) {
        json_object_set_new(body, key, number_or_text(text));
        return 0;
    }
    return form == FORM_NAMES ? add_names(body, key, text, err)
                              : body_put_text(body, key, text, err);
}

static int add_members(json_t *body, const struct submit_options *options, struct acre_error *err) {
    int r = 0;
    for (size_t i = 0; i < ACRE_COUNT(members) && r == 0; i++) {
        const void *at = (const char *)options + members[i].offset;
        r = add_member(body, members[i].key, members[i].form, at, err);
    }
    return r;
}

static int read_input(struct acre_buf *text, struct acre_error *err) {
    char piece[4096];
    ssize_t length;
    while ((length = read(STDIN_FILENO, piece, sizeof(piece))) > 0) {
        acre_buf_append(text, piece, (size_t)length);
    }
    if (length < 0) {
        return acre_fail_errno(err, errno, "standard input");
    }
    return acre_buf_failed(text) ? acre_fail(err, ACRE_ELIMIT, "standard input: more than %d KiB",
                                             ANNOTATIONS_MAX_BYTES >> 10)
                                 : 0;
}

/* A file that begins with { is JSON, any other YAML. The daemon says what it means. */
static int add_annotations(json_t *body, const struct submit_options *options,
                           struct acre_error *err) {
    const char *path = options->annotations;
    struct acre_buf text;
    json_t *root = NULL;
    if (path == NULL) {
        return 0;
    }
    bool is_input = strcmp(path, "-") == 0;
    acre_buf_init(&text, ANNOTATIONS_MAX_BYTES);
    int r =
        is_input ? read_input(&text, err) : acre_file_read(path, ANNOTATIONS_MAX_BYTES, &text, err);
    if (r == 0) {
        struct acre_str view = acre_str_trim((struct acre_str){text.data, text.length});
        const char *name = is_input ? "standard input" : path;
        r = view.length > 0 && view.data[0] == '{'
                ? acre_json_parse(name, view, ANNOTATIONS_MAX_BYTES, &root, err)
                : yaml_parse(name, (struct acre_str){text.data, text.length}, &root, err);
    }
    acre_buf_finish(&text);
    if (r < 0) {
        return acre_fail_in(err, r, "--annotations");
    }
    return json_object_set_new(body, "annotations", root);
}

static int set_variable(json_t *object, const char *assignment, struct acre_error *err) {
    size_t length = strcspn(assignment, "=");
    char name[256];
    if (!acre_str_copy(name, sizeof(name), (struct acre_str){assignment, length})) {
        return acre_fail(err, ACRE_EINVALID,
                         "--env: a variable's name may have at most %zu bytes; this one has %zu",
                         sizeof(name) - 1, length);
    }
    const char *value = assignment[length] == '=' ? assignment + length + 1 : getenv(name);
    return body_put_text(object, name, value, err);
}

static int add_environment(json_t *body, const struct submit_options *options,
                           struct acre_error *err) {
    if (!options->export_all && options->env.count == 0) {
        return 0;
    }
    json_t *object = json_object();
    json_object_set_new(body, "environment", object);
    for (char **at = environ; options->export_all && *at != NULL; at++) {
        bool is_token = strncmp(*at, "ACRE_TOKEN=", 11) == 0; /* would be kept with the job */
        if (!is_token && check_env("", *at, NULL) == 0) {     /* bash exports functions oddly */
            set_variable(object, *at, NULL); /* nobody named it: what cannot go stays here */
        }
    }
    int r = 0;
    for (uint32_t i = 0; i < options->env.count && r == 0; i++) {
        r = set_variable(object, options->env.items[i], err);
    }
    return r;
}

/* Here, unless the daemon may be on another machine; a relative one begins here. */
static int add_directory(json_t *body, const struct submit_options *options,
                         struct acre_error *err) {
    struct server_address server;
    const char *named = options->directory;
    char here[PATH_MAX], whole[2 * PATH_MAX];
    if (named != NULL && named[0] == '/') {
        return body_put_text(body, "directory", named, err);
    }
    struct server_options wanted = common_server(&options->common);
    int r = server_find(&wanted, &server, err);
    if (r < 0 || (named == NULL && server.socket[0] == '\0')) {
        return r;
    }
    if (getcwd(here, sizeof(here)) == NULL) {
        return acre_fail_errno(err, errno, "the current directory");
    }
    snprintf(whole, sizeof(whole), "%s%s%s", here, named != NULL ? "/" : "",
             named != NULL ? named : "");
    return body_put_text(body, "directory", whole, err);
}

static int add_command(json_t *body, int count, char **words, struct acre_error *err) {
    json_t *argv = json_array();
    json_object_set_new(body, "command", argv);
    for (int i = 0; i < count; i++) {
        if (json_array_append_new(argv, json_string(words[i])) < 0) {
            return acre_fail(err, ACRE_EINVALID, "word %d of the command is not valid UTF-8",
                             i + 1);
        }
    }
    return count > 0 && words[0][0] != '\0'
               ? 0
               : acre_fail(err, ACRE_EINVALID, "no command after --; use: -- COMMAND [ARG...]");
}

static int add_script(json_t *body, const struct acre_command *command,
                      struct submit_options *options, const char *path, struct acre_arena *arena,
                      struct acre_error *err) {
    struct acre_buf text;
    struct submit_options *directives = acre_calloc(1, sizeof(*directives));
    acre_buf_init(&text, SCRIPT_MAX_BYTES);
    int r = acre_file_read(path, SCRIPT_MAX_BYTES, &text, err);
    if (r == ACRE_ENOTFOUND) {
        r = acre_fail(err, r, "%s: no such script; to run a command, use: acre %s [options] -- %s",
                      path, command->name, path);
    } else if (r == 0 && (text.length < 3 || memcmp(text.data, "#!", 2) != 0)) {
        r = acre_fail(err, ACRE_EINVALID,
                      "%s: not a script (it does not start with #!); to run a command, use: "
                      "acre %s [options] -- %s",
                      path, command->name, path);
    }
    if (r == 0) {
        struct acre_str view = {text.data, text.length};
        r = directive_read(path, view, command, directives, arena, err);
    }
    if (r == 0) {
        const char *slash = strrchr(path, '/');
        directives->name = directives->name != NULL
                               ? directives->name
                               : acre_arena_printf(arena, "%s", slash != NULL ? slash + 1 : path);
        directive_under(command, options, directives);
        bool plain = memchr(text.data, '\0', text.length) == NULL;
        json_t *script = plain ? json_stringn(text.data, text.length) : NULL;
        r = script != NULL ? json_object_set_new(body, "script", script)
                           : acre_fail(err, ACRE_EINVALID, "%s: not valid UTF-8", path);
    }
    free(directives);
    acre_buf_finish(&text);
    return r;
}

json_t *submit_write_body(const struct acre_command *command, struct submit_options *options,
                          int argument_count, char **arguments, struct acre_arena *arena,
                          struct acre_error *err) {
    json_t *body = json_object();
    int r;
    if (strcmp(arguments[0], "--") == 0) {
        r = add_command(body, argument_count - 1, arguments + 1, err);
    } else if (argument_count > 1) {
        char shown[64];
        r = acre_fail(err, ACRE_EINVALID,
                      "'%s': a script takes no arguments; to run a command, use: acre %s "
                      "[options] -- %s ...",
                      acre_str_show(acre_str_from(arguments[1]), shown, sizeof(shown)),
                      command->name, arguments[0]);
    } else {
        r = add_script(body, command, options, arguments[0], arena, err);
    }
    if (r == 0) {
        r = add_directory(body, options, err);
    }
    if (r == 0) {
        r = add_environment(body, options, err);
    }
    if (r == 0) {
        r = add_annotations(body, options, err);
    }
    if (r == 0) {
        r = add_members(body, options, err);
    }
    if (r < 0) {
        json_decref(body);
        return NULL;
    }
    return body;
}
