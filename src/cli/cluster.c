/* cluster.c - lists, drains and undrains the devices of the daemon's cluster. Nodes are nodes.c. */
#include "cli/cluster.h"

#include "cli/cli.h"
#include "cli/common.h"
#include "cli/show.h"
#include "core/str.h"

struct cluster_options {
    struct common common;
    const char *reason;
    bool gpu;
};

int cluster_gpus(const struct common *common) {
    return cli_ask(common, "GET", "/gpus", NULL, show_gpus_table, show_gpu_ids);
}

static void say(const struct show *view, const json_t *answer, const char *what) {
    char shown[ACRE_SHOW_TEXT_MAX];
    const char *name = answer_string(answer, "node.name", answer_string(answer, "gpu.id", "-"));
    acre_buf_printf(view->out, "%s %s\n",
                    acre_str_show_text(acre_str_from(name), shown, sizeof(shown)), what);
}

static void show_drained(const struct show *view, const json_t *answer) {
    say(view, answer, "drained: running jobs continue, no new ones start");
}

static void show_undrained(const struct show *view, const json_t *answer) {
    say(view, answer, "accepts jobs again");
}

/* Each argument is a node, or a GPU with --gpu. */
static int change(int count, char **names, const struct cluster_options *options, const char *verb,
                  show_function *view) {
    struct session_question question = {.method = "POST",
                                        .before = options->gpu ? "/gpus/" : "/nodes/",
                                        .after = verb,
                                        .body = json_object(),
                                        .view = view};
    struct acre_error err = {0};
    int r = body_put_text(question.body, "reason", options->reason, &err);
    int status = r < 0 ? cli_fail(&err) : cli_ask_each(&options->common, &question, count, names);
    json_decref(question.body);
    return status;
}

static int run_drain(int count, char **names, void *target) {
    return change(count, names, target, "/drain", show_drained);
}

static int run_undrain(int count, char **names, void *target) {
    return change(count, names, target, "/undrain", show_undrained);
}

#define AT(field) offsetof(struct cluster_options, field)
static const struct acre_opt rows[] = {
    {.name = "gpu",
     .kind = ACRE_OPT_FLAG,
     .offset = AT(gpu),
     .help = "NAME is a GPU, as 'acre gpus --cluster' lists it, not a node"},
    {.name = "reason",
     .letter = 'r',
     .kind = ACRE_OPT_STRING,
     .offset = AT(reason),
     .value = "TEXT",
     .help = "why, shown in 'acre nodes' and 'acre gpus'"},
};

const struct acre_command command_drain = {
    .name = "drain",
    .summary = "start no new jobs on a node or a GPU",
    .usage = "acre drain [options] NAME...",
    .details = "Jobs that are running there continue. Requires the operator role.\n"
               "\n"
               "Example:\n"
               "  acre drain --reason 'new fan on Monday' gpu-b",
    .options = rows,
    .option_count = ACRE_COUNT(rows),
    .shared = common_rows,
    .shared_count = ACRE_COMMON_ROWS,
    .min_arguments = 1,
    .max_arguments = UINT32_MAX,
    .takes = "nodes",
    .run = run_drain,
    .options_size = sizeof(struct cluster_options),
};

const struct acre_command command_undrain = {
    .name = "undrain",
    .summary = "use a drained node or GPU again",
    .usage = "acre undrain [options] NAME...",
    .details = "Example:\n"
               "  acre undrain gpu-b",
    .options = rows,
    .option_count = 1, /* no reason is needed for good news */
    .shared = common_rows,
    .shared_count = ACRE_COMMON_ROWS,
    .min_arguments = 1,
    .max_arguments = UINT32_MAX,
    .takes = "nodes",
    .run = run_undrain,
    .options_size = sizeof(struct cluster_options),
};
