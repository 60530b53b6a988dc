/* policy.c - the rules of the queue: `policy show`, `policy set`, and quotas, which are rows of it.
 *
 * Values are sent as JSON where they are JSON (true, 3, [..]) and as text where they are not
 * ("7d", fair-share): the daemon knows the keys and says what it accepts. */
#include "cli/cli.h"
#include "cli/common.h"
#include "cli/show.h"
#include "core/file.h"

#include <string.h>

enum { POLICY_MAX_BYTES = 256 << 10 };

struct options {
    struct acre_common common;
    const char *file;
};

static int run_show(int argument_count, char **arguments, void *target) {
    (void)argument_count;
    (void)arguments;
    return acre_cli_ask(target, "GET", "/policy", NULL, acre_show_policy, NULL);
}

static int read_file(const char *path, json_t **ret_body, struct acre_error *err) {
    struct acre_buf text;
    json_t *root = NULL;
    acre_buf_init(&text, POLICY_MAX_BYTES);
    int r = acre_file_read(path, POLICY_MAX_BYTES, &text, err);
    if (r == 0) {
        r = acre_json_parse(path, (struct acre_str){text.data, text.length}, POLICY_MAX_BYTES,
                            &root, err);
    }
    acre_buf_finish(&text);
    if (r == 0 && !json_is_object(root)) {
        json_decref(root);
        r = acre_fail(err, ACRE_EINVALID, "%s: is not an object; accepted: {\"policy\": ...}",
                      path);
    }
    if (r == 0) {
        *ret_body = root;
    }
    return r;
}

static int add_value(json_t *body, const char *key, const char *text, struct acre_error *err) {
    json_t *value = json_loads(text, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);
    value = value != NULL ? value : json_string(text);
    if (value == NULL || json_object_set_new(body, key, value) < 0) {
        char shown[64];
        return acre_fail(err, ACRE_EINVALID, "%s: is not UTF-8 text",
                         acre_str_show(acre_str_from(key), shown, sizeof(shown)));
    }
    return 0;
}

/* "KEY=VALUE" into the body. */
static int add_pair(json_t *body, const char *pair, struct acre_error *err) {
    size_t length = strcspn(pair, "=");
    char key[64], shown[64];
    if (pair[length] != '=' || !acre_str_copy(key, sizeof(key), (struct acre_str){pair, length}) ||
        length == 0) {
        return acre_fail(err, ACRE_EINVALID, "'%s' is no setting; accepted: KEY=VALUE",
                         acre_str_show(acre_str_from(pair), shown, sizeof(shown)));
    }
    return add_value(body, key, pair + length + 1, err);
}

static int run_set(int argument_count, char **arguments, void *target) {
    const struct options *options = target;
    struct acre_error err = {0};
    json_t *body = NULL;
    if (argument_count == 0 && options->file == NULL) {
        acre_fail(&err, ACRE_EINVALID, "nothing to set; give KEY=VALUE or --file FILE");
        return acre_cli_fail(&err);
    }
    int r = options->file != NULL ? read_file(options->file, &body, &err) : 0;
    body = body != NULL ? body : json_object();
    for (int i = 0; i < argument_count && r == 0; i++) {
        r = add_pair(body, arguments[i], &err);
    }
    if (r < 0) {
        json_decref(body);
        return acre_cli_fail(&err);
    }
    return acre_cli_ask(&options->common, "PUT", "/policy", body, acre_show_policy, NULL);
}

struct quota_options {
    struct acre_common common;
    const char *gpus, *memory, *running, *queued, *hours;
    bool soft;
};

static int run_quota_list(int argument_count, char **arguments, void *target) {
    (void)argument_count;
    (void)arguments;
    return acre_cli_ask(target, "GET", "/quotas", NULL, acre_show_quotas, NULL);
}

static void show_done(const struct acre_show *view, const json_t *answer) {
    if (acre_answer_at(answer, "quotas") != NULL) {
        acre_show_quotas(view, answer);
    } else {
        acre_buf_puts(view->out, "done\n");
    }
}

static int run_quota_set(int argument_count, char **arguments, void *target) {
    (void)argument_count;
    const struct quota_options *options = target;
    const struct {
        const char *key, *text;
    } values[] = {{"gpus", options->gpus},
                  {"memory", options->memory},
                  {"running", options->running},
                  {"queued", options->queued},
                  {"gpu_hours", options->hours}};
    struct acre_error err = {0};
    char path[ACRE_PATH_MAX];
    if (acre_cli_path(path, "/quotas/", arguments[0], "", &err) < 0) {
        return acre_cli_fail(&err);
    }
    json_t *body = json_object();
    int r = 0;
    for (size_t i = 0; i < ACRE_COUNT(values) && r == 0; i++) {
        if (values[i].text != NULL) {
            r = add_value(body, values[i].key, values[i].text, &err);
        }
    }
    if (r == 0 && json_object_size(body) == 0) {
        r = acre_fail(&err, ACRE_EINVALID, "no limit is given; --help lists what can be limited");
    }
    if (r < 0) {
        json_decref(body);
        return acre_cli_fail(&err);
    }
    json_object_set_new(body, "soft", json_boolean(options->soft));
    return acre_cli_ask(&options->common, "PUT", path, body, show_done, NULL);
}

static int run_quota_remove(int argument_count, char **arguments, void *target) {
    (void)argument_count;
    struct acre_error err = {0};
    char path[ACRE_PATH_MAX];
    if (acre_cli_path(path, "/quotas/", arguments[0], "", &err) < 0) {
        return acre_cli_fail(&err);
    }
    return acre_cli_ask(target, "DELETE", path, NULL, show_done, NULL);
}

static const struct acre_opt set_rows[] = {
    {.name = "file",
     .letter = 'f',
     .kind = ACRE_OPT_STRING,
     .offset = offsetof(struct options, file),
     .value = "FILE.json",
     .help = "settings from a file; KEY=VALUE arguments win over it"},
};

#define AT(field) offsetof(struct quota_options, field)
/* clang-format off */
static const struct acre_opt quota_rows[] = {
    {.name = "gpus", .kind = ACRE_OPT_STRING, .offset = AT(gpus), .value = "N",
     .help = "held at once, like 4 or 0.5"},
    {.name = "gpu-memory", .kind = ACRE_OPT_STRING, .offset = AT(memory), .value = "SIZE",
     .help = "held at once, like 160GiB"},
    {.name = "running", .kind = ACRE_OPT_STRING, .offset = AT(running), .value = "N",
     .help = "jobs that run at once"},
    {.name = "queued", .kind = ACRE_OPT_STRING, .offset = AT(queued), .value = "N",
     .help = "jobs that wait; more are refused"},
    {.name = "gpu-hours", .kind = ACRE_OPT_STRING, .offset = AT(hours), .value = "N",
     .help = "used lately (as 'acre usage' counts)"},
    {.name = "soft", .kind = ACRE_OPT_FLAG, .offset = AT(soft),
     .help = "may be passed while nobody else wants the GPUs"},
};
/* clang-format on */

#define SHARED .shared = acre_common_rows, .shared_count = ACRE_COMMON_ROWS

const struct acre_command acre_command_policy_show = {
    .name = "policy show",
    .summary = "the rules of the queue",
    .usage = "acre policy [show] [options]",
    .details = "Example:\n"
               "  acre policy show",
    SHARED,
    .run = run_show,
    .options_size = sizeof(struct acre_common),
};

const struct acre_command acre_command_policy_set = {
    .name = "policy set",
    .summary = "change the rules of the queue",
    .usage = "acre policy set [options] KEY=VALUE...",
    .details =
        "What is not named keeps its value; lists (quotas, shares) are replaced whole. Needs\n"
        "an administrator. The queue goes on by the new rules at once.\n"
        "\n"
        "Examples:\n"
        "  acre policy set policy=priority preempt_grace=10s\n"
        "  acre policy set 'shares=[{\"who\": \"project:vision\", \"weight\": 3}]'",
    .options = set_rows,
    .option_count = ACRE_COUNT(set_rows),
    SHARED,
    .max_arguments = UINT32_MAX,
    .run = run_set,
    .options_size = sizeof(struct options),
};

const struct acre_command acre_command_quota_list = {
    .name = "quota list",
    .summary = "who may hold how much",
    .usage = "acre quota [list] [options]",
    .details = "Example:\n"
               "  acre quota list",
    SHARED,
    .run = run_quota_list,
    .options_size = sizeof(struct acre_common),
};

const struct acre_command acre_command_quota_set = {
    .name = "quota set",
    .summary = "limit a user or a project",
    .usage = "acre quota set [options] user:NAME|project:NAME",
    .details = "user:* and project:* are for those not named. Needs an administrator.\n"
               "\n"
               "Example:\n"
               "  acre quota set --gpus 4 --running 8 --soft 'user:*'",
    .options = quota_rows,
    .option_count = ACRE_COUNT(quota_rows),
    SHARED,
    .min_arguments = 1,
    .max_arguments = 1,
    .run = run_quota_set,
    .options_size = sizeof(struct quota_options),
};

const struct acre_command acre_command_quota_remove = {
    .name = "quota remove",
    .summary = "lift a limit",
    .usage = "acre quota remove [options] user:NAME|project:NAME",
    .details = "Example:\n"
               "  acre quota remove 'user:*'",
    SHARED,
    .min_arguments = 1,
    .max_arguments = 1,
    .run = run_quota_remove,
    .options_size = sizeof(struct acre_common),
};
