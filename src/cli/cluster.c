/* cluster.c - nodes and devices of the daemon's cluster: list, drain, undrain. */
#include "cli/cluster.h"

#include "cli/cli.h"
#include "cli/common.h"
#include "cli/show.h"
#include "core/str.h"

struct options {
    struct acre_common common;
    const char *reason;
    bool gpu;
};

int acre_cluster_gpus(const struct acre_common *common) {
    return acre_cli_ask(common, "GET", "/gpus", NULL, acre_show_gpus_table, acre_show_gpu_ids);
}

static int run_nodes(int argument_count, char **arguments, void *target) {
    (void)argument_count;
    (void)arguments;
    const struct options *options = target;
    return acre_cli_ask(&options->common, "GET", "/nodes", NULL, acre_show_nodes,
                        acre_show_node_names);
}

static void say(const struct acre_show *view, const json_t *answer, const char *what) {
    char shown[ACRE_SHOW_TEXT_MAX];
    const char *name =
        acre_answer_text(answer, "node.name", acre_answer_text(answer, "gpu.id", "-"));
    acre_buf_printf(view->out, "%s %s\n",
                    acre_str_show_text(acre_str_from(name), shown, sizeof(shown)), what);
}

static void show_drained(const struct acre_show *view, const json_t *answer) {
    say(view, answer, "drained: what runs goes on, nothing new begins");
}

static void show_undrained(const struct acre_show *view, const json_t *answer) {
    say(view, answer, "takes jobs again");
}

/* Each argument is a node, or a GPU with --gpu. */
static int change(int count, char **names, const struct options *options, const char *verb,
                  acre_show_function *view) {
    struct acre_question question = {.method = "POST",
                                     .before = options->gpu ? "/gpus/" : "/nodes/",
                                     .after = verb,
                                     .body = json_object(),
                                     .view = view};
    struct acre_error err = {0};
    int r = acre_body_put_text(question.body, "reason", options->reason, &err);
    int status =
        r < 0 ? acre_cli_fail(&err) : acre_cli_ask_each(&options->common, &question, count, names);
    json_decref(question.body);
    return status;
}

static int run_drain(int count, char **names, void *target) {
    return change(count, names, target, "/drain", show_drained);
}

static int run_undrain(int count, char **names, void *target) {
    return change(count, names, target, "/undrain", show_undrained);
}

#define AT(field) offsetof(struct options, field)
static const struct acre_opt rows[] = {
    {.name = "gpu",
     .kind = ACRE_OPT_FLAG,
     .offset = AT(gpu),
     .help = "the names are of GPUs (as 'acre gpus --cluster' shows them), not of nodes"},
    {.name = "reason",
     .letter = 'r',
     .kind = ACRE_OPT_STRING,
     .offset = AT(reason),
     .value = "TEXT",
     .help = "shown to everybody who asks"},
};

const struct acre_command acre_command_nodes = {
    .name = "nodes",
    .summary = "the machines of the cluster and what is free",
    .usage = "acre nodes [options]",
    .details = "Example:\n"
               "  acre nodes",
    .shared = acre_common_rows,
    .shared_count = ACRE_COMMON_ROWS,
    .run = run_nodes,
    .options_size = sizeof(struct options),
};

const struct acre_command acre_command_drain = {
    .name = "drain",
    .summary = "start nothing new on a node or a GPU",
    .usage = "acre drain [options] NAME...",
    .details = "What runs there goes on to its end. Needs an operator.\n"
               "\n"
               "Example:\n"
               "  acre drain --reason 'new fan on Monday' gpu-b",
    .options = rows,
    .option_count = ACRE_COUNT(rows),
    .shared = acre_common_rows,
    .shared_count = ACRE_COMMON_ROWS,
    .min_arguments = 1,
    .max_arguments = UINT32_MAX,
    .takes = "nodes",
    .run = run_drain,
    .options_size = sizeof(struct options),
};

const struct acre_command acre_command_undrain = {
    .name = "undrain",
    .summary = "use a drained node or GPU again",
    .usage = "acre undrain [options] NAME...",
    .details = "Example:\n"
               "  acre undrain gpu-b",
    .options = rows,
    .option_count = 1, /* no reason is needed for good news */
    .shared = acre_common_rows,
    .shared_count = ACRE_COMMON_ROWS,
    .min_arguments = 1,
    .max_arguments = UINT32_MAX,
    .takes = "nodes",
    .run = run_undrain,
    .options_size = sizeof(struct options),
};
