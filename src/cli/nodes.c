/* nodes.c - `acre nodes` and `acre balance`: where is room, which node is best, what is overloaded.
 *
 * The daemon decides; here the options become the keys of a query. */
#include "cli/cli.h"
#include "cli/common.h"
#include "cli/show.h"
#include "core/str.h"
#include "core/units.h"

#include <string.h>

struct options {
    struct common common;
    bool best, capacity, cpu;
    const char *memory, *model, *vendor, *near;
    const char *node, *strategy, *affinity, *last; /* of balance */
    struct acre_opt_list labels;
};

static int check_size(const char *field, const char *value, struct acre_error *err) {
    uint64_t mib;
    return acre_parse_mib(field, value, &mib, err);
}

/* A list with all its pages, shown. */
static int show_list(const struct common *common, const char *path, const char *key,
                     show_function *view, show_function *brief) {
    struct session session;
    if (!session_open(&session, common)) {
        return session.result;
    }
    json_t *answer = session_list(&session, path, key, 0);
    if (answer != NULL) {
        session_show(&session, answer, view, brief);
        json_decref(answer);
    }
    session_close(&session);
    return session.result;
}

static int ask_best(const struct options *options) {
    char path[ACRE_PATH_MAX];
    struct acre_error err = {0};
    struct acre_buf labels;
    acre_buf_init(&labels, ACRE_PATH_MAX);
    for (uint32_t i = 0; i < options->labels.count; i++) {
        acre_buf_printf(&labels, "%s%s", i > 0 ? "," : "", options->labels.items[i]);
    }
    const struct filter filters[] = {
        {"memory", options->memory}, {"model", options->model},
        {"vendor", options->vendor}, {"label", labels.length > 0 ? labels.data : NULL},
        {"near", options->near},     {"cpu", options->cpu ? "true" : NULL},
    };
    int r = cli_query(path, "/cluster/best", filters, ACRE_COUNT(filters), &err);
    acre_buf_finish(&labels);
    return r < 0 ? cli_fail(&err)
                 : cli_ask(&options->common, "GET", path, NULL, show_best, show_best_name);
}

static int run_nodes(int argument_count, char **arguments, void *target) {
    (void)argument_count;
    (void)arguments;
    const struct options *options = target;
    const struct {
        const char *name;
        bool given;
    } wishes[] = {
        {"memory", options->memory != NULL}, {"model", options->model != NULL},
        {"vendor", options->vendor != NULL}, {"label", options->labels.count > 0},
        {"near", options->near != NULL},     {"cpu", options->cpu},
    };
    struct acre_error err = {0};
    for (size_t i = 0; i < ACRE_COUNT(wishes) && !options->best; i++) {
        if (wishes[i].given) {
            acre_fail(&err, ACRE_EINVALID, "--%s says which node is best; add --best",
                      wishes[i].name);
            return cli_fail(&err);
        }
    }
    if (options->best && options->capacity) {
        acre_fail(&err, ACRE_EINVALID, "--capacity and --best: choose one of them");
        return cli_fail(&err);
    }
    if (options->best) {
        return ask_best(options);
    }
    return options->capacity
               ? show_list(&options->common, "/cluster/capacity", "nodes", show_capacity,
                           show_node_names)
               : show_list(&options->common, "/nodes", "nodes", show_nodes, show_node_names);
}

static int run_balance(int argument_count, char **arguments, void *target) {
    (void)argument_count;
    (void)arguments;
    const struct options *options = target;
    char path[ACRE_PATH_MAX];
    struct acre_error err = {0};
    bool chooses = options->memory != NULL || options->affinity != NULL || options->last != NULL;
    if (chooses && options->strategy == NULL) {
        acre_fail(&err, ACRE_EINVALID,
                  "--memory, --affinity and --last are for choosing a GPU; add --strategy");
        return cli_fail(&err);
    }
    const struct filter filters[] = {
        {"node", options->node},     {"strategy", options->strategy},
        {"memory", options->memory}, {"affinity", options->affinity},
        {"last", options->last},
    };
    int r = cli_query(path, "/cluster/balance", filters, ACRE_COUNT(filters), &err);
    return r < 0 ? cli_fail(&err)
                 : show_list(&options->common, path, "gpus", show_balance,
                             options->strategy != NULL ? show_choice_id : show_gpu_ids);
}

#define AT(field) offsetof(struct options, field)
#define TEXT(row_name, row_letter, row_field, row_value, row_check, row_help)                      \
    {                                                                                              \
        .name = row_name, .letter = row_letter, .kind = ACRE_OPT_STRING, .offset = AT(row_field),  \
        .value = row_value, .check = row_check, .help = row_help                                   \
    }
#define FLAG(row_name, row_field, row_help)                                                        \
    { .name = row_name, .kind = ACRE_OPT_FLAG, .offset = AT(row_field), .help = row_help }

/* clang-format off */
static const struct acre_opt node_rows[] = {
    FLAG("capacity", capacity, "each node's report: GPU memory, jobs, score"),
    FLAG("best", best, "only the best node to place on, and why it is"),
    TEXT("memory", 'm', memory, "SIZE", check_size,
         "with --best: this much free on one GPU, like 20GiB"),
    TEXT("model", 0, model, "NAME,...", NULL, "with --best: a GPU of one of these models"),
    TEXT("vendor", 0, vendor, "NAME", NULL, "with --best: a GPU of this vendor, like nvidia"),
    {.name = "label", .letter = 'l', .kind = ACRE_OPT_LIST, .offset = AT(labels),
     .value = "KEY=VALUE", .help = "with --best: a node with this label; repeatable"},
    TEXT("near", 0, near, "NODE", NULL, "with --best: this node, if it fits"),
    FLAG("cpu", cpu, "with --best: a node without GPUs if no GPU fits"),
};

static const struct acre_opt balance_rows[] = {
    TEXT("node", 0, node, "NODE", NULL, "only the GPUs of this node (default: all)"),
    {.name = "strategy", .letter = 's', .kind = ACRE_OPT_CHOICE, .offset = AT(strategy),
     .value = "NAME", .choices = "round-robin,least-loaded,weighted,adaptive,affinity-first",
     .help = "also choose a GPU for the next piece of work"},
    TEXT("memory", 'm', memory, "SIZE", check_size,
         "with --strategy: this much free on it, like 20GiB"),
    TEXT("affinity", 0, affinity, "GPU", NULL, "with --strategy: this one, while it is not full"),
    TEXT("last", 0, last, "GPU", NULL, "with --strategy round-robin: the one chosen last"),
};
/* clang-format on */

const struct acre_command command_nodes = {
    .name = "nodes",
    .summary = "list the nodes of the cluster and what is free, or name the best one",
    .usage = "acre nodes [options]",
    .details =
        "A node's score is the percentage of its GPU memory that is free, less 2 for each job\n"
        "there, at most 20. The best node has the highest score of those where one GPU has enough\n"
        "memory free; then the fewest jobs. Asking takes nothing: 'acre submit' places jobs by\n"
        "itself.\n"
        "\n"
        "Examples:\n"
        "  acre nodes\n"
        "  acre nodes --capacity\n"
        "  acre nodes --best --memory 20GiB --model h100",
    .options = node_rows,
    .option_count = ACRE_COUNT(node_rows),
    .shared = common_rows,
    .shared_count = ACRE_COMMON_ROWS,
    .run = run_nodes,
    .options_size = sizeof(struct options),
};

const struct acre_command command_balance = {
    .name = "balance",
    .summary = "show how evenly the GPUs are loaded, and advise what to move",
    .usage = "acre balance [options]",
    .details =
        "The load of a GPU is 0.4 of the share that jobs hold, 0.3 of its utilization and 0.3 of\n"
        "its memory in use, so a GPU that one job uses fully has a load of 1. A GPU that does not\n"
        "report its utilization has no load, and is not judged. Nothing is moved: the advice is\n"
        "for people, and for programs that spread work over GPUs themselves.\n"
        "\n"
        "Examples:\n"
        "  acre balance\n"
        "  acre balance --strategy least-loaded --memory 20GiB",
    .options = balance_rows,
    .option_count = ACRE_COUNT(balance_rows),
    .shared = common_rows,
    .shared_count = ACRE_COMMON_ROWS,
    .run = run_balance,
    .options_size = sizeof(struct options),
};
