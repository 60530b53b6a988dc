/* policy.c - the scheduling policy: `policy show`, `policy set`, and its quotas.
 *
 * Values that parse as JSON (true, 3, [..]) are sent as JSON, others ("7d", fair-share) as text:
 * the daemon knows the keys and reports what it accepts. */
#include "cli/cli.h"
#include "cli/common.h"
#include "cli/show.h"
#include "core/file.h"

#include <string.h>

enum { POLICY_MAX_BYTES = 256 << 10 };

struct policy_options {
    struct common common;
    const char *file;
};

static int run_show(int argument_count, char **arguments, void *target) {
    (void)argument_count;
    (void)arguments;
    return cli_ask(target, "GET", "/policy", NULL, show_policy, NULL);
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
        r = acre_fail(err, ACRE_EINVALID, "%s: not a JSON object; accepted: {\"policy\": ...}",
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
        return acre_fail(err, ACRE_EINVALID, "%s: not valid UTF-8",
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
        return acre_fail(err, ACRE_EINVALID, "'%s' is not a setting; accepted: KEY=VALUE",
                         acre_str_show(acre_str_from(pair), shown, sizeof(shown)));
    }
    return add_value(body, key, pair + length + 1, err);
}

static int run_set(int argument_count, char **arguments, void *target) {
    const struct policy_options *options = target;
    struct acre_error err = {0};
    json_t *body = NULL;
    if (argument_count == 0 && options->file == NULL) {
        acre_fail(&err, ACRE_EINVALID, "nothing to set; give KEY=VALUE or --file FILE.json");
        return cli_fail(&err);
    }
    int r = options->file != NULL ? read_file(options->file, &body, &err) : 0;
    body = body != NULL ? body : json_object();
    for (int i = 0; i < argument_count && r == 0; i++) {
        r = add_pair(body, arguments[i], &err);
    }
    if (r < 0) {
        json_decref(body);
        return cli_fail(&err);
    }
    return cli_ask(&options->common, "PUT", "/policy", body, show_policy, NULL);
}

struct quota_options {
    struct common common;
    const char *gpus, *memory, *running, *queued, *hours;
    bool soft;
};

static int run_quota_list(int argument_count, char **arguments, void *target) {
    (void)argument_count;
    (void)arguments;
    return cli_ask(target, "GET", "/quotas", NULL, show_quotas, NULL);
}

static void show_done(const struct show *view, const json_t *answer) {
    if (answer_at(answer, "quotas") != NULL) {
        show_quotas(view, answer);
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
    if (cli_path(path, "/quotas/", arguments[0], "", &err) < 0) {
        return cli_fail(&err);
    }
    json_t *body = json_object();
    int r = 0;
    for (size_t i = 0; i < ACRE_COUNT(values) && r == 0; i++) {
        if (values[i].text != NULL) {
            r = add_value(body, values[i].key, values[i].text, &err);
        }
    }
    if (r == 0 && json_object_size(body) == 0) {
        r = acre_fail(&err, ACRE_EINVALID, "no limit given; --help lists what can be limited");
    }
    if (r < 0) {
        json_decref(body);
        return cli_fail(&err);
    }
    json_object_set_new(body, "soft", json_boolean(options->soft));
    return cli_ask(&options->common, "PUT", path, body, show_done, NULL);
}

static int run_quota_remove(int argument_count, char **arguments, void *target) {
    (void)argument_count;
    struct acre_error err = {0};
    char path[ACRE_PATH_MAX];
    if (cli_path(path, "/quotas/", arguments[0], "", &err) < 0) {
        return cli_fail(&err);
    }
    return cli_ask(target, "DELETE", path, NULL, show_done, NULL);
}

static const struct acre_opt set_rows[] = {
    {.name = "file",
     .letter = 'f',
     .kind = ACRE_OPT_STRING,
     .offset = offsetof(struct policy_options, file),
     .value = "FILE.json",
     .help = "read settings from a file; KEY=VALUE arguments override it"},
};

#define AT(field) offsetof(struct quota_options, field)
/* clang-format off */
static const struct acre_opt quota_rows[] = {
    {.name = "gpus", .kind = ACRE_OPT_STRING, .offset = AT(gpus), .value = "N",
     .help = "GPUs held at once, such as 4 or 0.5"},
    {.name = "gpu-memory", .kind = ACRE_OPT_STRING, .offset = AT(memory), .value = "SIZE",
     .help = "GPU memory held at once, such as 160GiB"},
    {.name = "running", .kind = ACRE_OPT_STRING, .offset = AT(running), .value = "N",
     .help = "running jobs"},
    {.name = "queued", .kind = ACRE_OPT_STRING, .offset = AT(queued), .value = "N",
     .help = "waiting jobs; more are refused"},
    {.name = "gpu-hours", .kind = ACRE_OPT_STRING, .offset = AT(hours), .value = "N",
     .help = "recent GPU hours, as counted by 'acre usage'"},
    {.name = "soft", .kind = ACRE_OPT_FLAG, .offset = AT(soft),
     .help = "allow more while no other user wants the GPUs"},
};
/* clang-format on */

#define SHARED .shared = common_rows, .shared_count = ACRE_COMMON_ROWS

const struct acre_command command_policy_show = {
    .name = "policy show",
    .summary = "show the scheduling policy",
    .usage = "acre policy [show] [options]",
    .details = "Examples:\n"
               "  acre policy show\n"
               "  acre policy show --json",
    SHARED,
    .run = run_show,
    .options_size = sizeof(struct common),
};

const struct acre_command command_policy_set = {
    .name = "policy set",
    .summary = "change the scheduling policy",
    .usage = "acre policy set [options] KEY=VALUE...",
    .details =
        "Settings that are not named keep their values; lists (quotas, shares) are replaced as\n"
        "a whole. The new policy takes effect immediately. Requires the admin role.\n"
        "\n"
        "Examples:\n"
        "  acre policy set policy=priority preempt_grace=10s\n"
        "  acre policy set 'shares=[{\"who\": \"project:vision\", \"weight\": 3}]'",
    .options = set_rows,
    .option_count = ACRE_COUNT(set_rows),
    SHARED,
    .max_arguments = UINT32_MAX,
    .run = run_set,
    .options_size = sizeof(struct policy_options),
};

const struct acre_command command_quota_list = {
    .name = "quota list",
    .summary = "list the quotas of users and projects",
    .usage = "acre quota [list] [options]",
    .details = "Examples:\n"
               "  acre quota list\n"
               "  acre quota list --json",
    SHARED,
    .run = run_quota_list,
    .options_size = sizeof(struct common),
};

const struct acre_command command_quota_set = {
    .name = "quota set",
    .summary = "set the quota of a user or a project",
    .usage = "acre quota set [options] user:NAME|project:NAME",
    .details = "user:* and project:* apply to those without a quota of their own. Requires the "
               "admin\nrole.\n"
               "\n"
               "Examples:\n"
               "  acre quota set --gpus 4 --running 8 --soft 'user:*'\n"
               "  acre quota set --gpu-hours 100 project:vision",
    .options = quota_rows,
    .option_count = ACRE_COUNT(quota_rows),
    SHARED,
    .min_arguments = 1,
    .max_arguments = 1,
    .run = run_quota_set,
    .options_size = sizeof(struct quota_options),
};

const struct acre_command command_quota_remove = {
    .name = "quota remove",
    .summary = "remove the quota of a user or a project",
    .usage = "acre quota remove [options] user:NAME|project:NAME",
    .details = "Example:\n"
               "  acre quota remove 'user:*'",
    SHARED,
    .min_arguments = 1,
    .max_arguments = 1,
    .run = run_quota_remove,
    .options_size = sizeof(struct common),
};
