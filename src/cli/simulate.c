/* simulate.c - `acre simulate packing`: measures how full a cluster gets, by strategy. */
#include "cli/cli.h"
#include "cli/term.h"

#include "cli/simulation.h"
#include "core/json.h"
#include "sim/packing.h"
#include "sim/plot.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { STRATEGIES_MAX = 16, OUTPUT_MAX_BYTES = 1 << 20 };

struct packing_options {
    const char *nodes;
    const char *tasks;
    const char *strategy;
    uint64_t seeds;
    uint64_t first_seed;
    const char *plot;
    bool json;
    bool quiet;
};

struct packing_run {
    struct acre_packing_result result;
    double wall_s;
};

/* All runs of one call. */
struct packing_runs {
    const struct acre_trace *trace;
    const struct packing_options *options;
    struct progress progress;
    struct packing_run runs[STRATEGIES_MAX];
    size_t count;
};

static void show_progress(void *context, uint32_t seed, uint32_t arrived, uint32_t tasks) {
    struct packing_runs *all = context;
    progress_show(&all->progress, "seed %u of %u, %3u %%", seed + 1, (unsigned)all->options->seeds,
                  (unsigned)((uint64_t)arrived * 100 / tasks));
}

static void put_spread(struct acre_json *json, const char *key,
                       const struct acre_packing_spread *spread) {
    acre_json_key(json, key);
    acre_json_object(json);
    acre_json_put_double(json, "mean", spread->mean, 3);
    acre_json_put_double(json, "min", spread->min, 3);
    acre_json_put_double(json, "max", spread->max, 3);
    acre_json_object_end(json);
}

static void put_run(struct acre_json *json, const struct packing_run *run) {
    acre_json_object(json);
    acre_json_put_string(json, "strategy", run->result.strategy);
    acre_json_put_u64(json, "seeds", run->result.seeds);
    put_spread(json, "allocated_pct_at_100", &run->result.at_100);
    put_spread(json, "allocated_pct_end", &run->result.end);
    acre_json_put_double(json, "wall_s", run->wall_s, 3);
    acre_json_object_end(json);
}

static void print_json(const struct packing_run *runs, size_t count, struct acre_buf *out) {
    struct acre_json json;
    acre_json_begin(&json, out, true);
    if (count == 1) {
        put_run(&json, &runs[0]);
    } else {
        acre_json_array(&json);
        for (size_t i = 0; i < count; i++) {
            put_run(&json, &runs[i]);
        }
        acre_json_array_end(&json);
    }
    acre_json_end(&json);
    acre_buf_putc(out, '\n');
}

static void put_spread_cells(struct text_table *table, const struct acre_packing_spread *spread) {
    char text[32];
    snprintf(text, sizeof(text), "%.2f", spread->mean);
    table_cell(table, ACRE_COLOUR_BOLD, text);
    snprintf(text, sizeof(text), "%.2f-%.2f", spread->min, spread->max);
    table_cell(table, ACRE_COLOUR_NONE, text);
}

static void print_table(const struct packing_run *runs, size_t count, struct acre_buf *out) {
    static const struct table_column columns[] = {
        {.heading = "STRATEGY"},
        {.heading = "SEEDS", .right = true, .rank = 2},
        {.heading = "AT 100 %", .right = true},
        {.heading = "MIN-MAX", .right = true},
        {.heading = "AT END", .right = true},
        {.heading = "MIN-MAX", .right = true},
        {.heading = "WALL", .right = true, .rank = 1},
    };
    struct term term = term_detect(STDOUT_FILENO);
    struct text_table *table = table_create(columns, ACRE_COUNT(columns));
    for (size_t i = 0; i < count; i++) {
        const struct acre_packing_result *result = &runs[i].result;
        char text[32];
        table_row(table);
        table_cell(table, ACRE_COLOUR_NONE, result->strategy);
        snprintf(text, sizeof(text), "%u", result->seeds);
        table_cell(table, ACRE_COLOUR_NONE, text);
        put_spread_cells(table, &result->at_100);
        put_spread_cells(table, &result->end);
        snprintf(text, sizeof(text), "%.2f s", runs[i].wall_s);
        table_cell(table, ACRE_COLOUR_NONE, text);
    }
    acre_buf_puts(out,
                  "% of GPU capacity allocated when 100 % had been requested, and at the end\n\n");
    table_print(table, &term, out);
    table_destroy(table);
}

static int write_plot(const char *path, const struct packing_run *runs, size_t count,
                      struct acre_error *err) {
    struct acre_packing_result results[STRATEGIES_MAX];
    for (size_t i = 0; i < count; i++) {
        results[i] = runs[i].result;
    }
    struct acre_buf svg;
    acre_buf_init(&svg, OUTPUT_MAX_BYTES);
    int r = acre_packing_plot(results, count, &svg);
    r = write_picture(path, &svg, r, err);
    acre_buf_finish(&svg);
    return r;
}

static int run_one(void *context, size_t index, const char *strategy, struct acre_error *err) {
    struct packing_runs *all = context;
    struct acre_packing_options packing = {
        .strategy = strategy,
        .seeds = (uint32_t)all->options->seeds,
        .first_seed = all->options->first_seed,
        .progress = show_progress,
        .context = all,
    };
    progress_begin(&all->progress, strategy, all->options->quiet);
    int r = acre_packing_run(all->trace, &packing, &all->runs[index].result, err);
    all->runs[index].wall_s = progress_end(&all->progress);
    return r;
}

static int run_packing(int argument_count, char **arguments, void *context) {
    (void)argument_count;
    (void)arguments;
    const struct packing_options *options = context;
    struct acre_error err = {0};
    struct acre_trace *trace;
    if (trace_load(options->nodes, options->tasks, &trace, &err) < 0) {
        return cli_fail(&err);
    }
    struct packing_runs all = {.trace = trace, .options = options};
    int r =
        each_name("strategy", options->strategy, STRATEGIES_MAX, run_one, &all, &all.count, &err);
    trace_destroy(trace);
    if (r < 0) {
        return cli_fail(&err);
    }
    if (options->plot != NULL) {
        r = write_plot(options->plot, all.runs, all.count, &err);
    }
    struct acre_buf out;
    acre_buf_init(&out, OUTPUT_MAX_BYTES);
    (options->json ? print_json : print_table)(all.runs, all.count, &out);
    int code = cli_write(&out);
    acre_buf_finish(&out);
    return r < 0 ? cli_fail(&err) : code; /* minutes of work are shown, picture or not */
}

static const struct acre_opt packing_rows[] = {
    {.name = "nodes",
     .kind = ACRE_OPT_STRING,
     .offset = offsetof(struct packing_options, nodes),
     .value = "FILE",
     .help = "CSV of nodes: sn,cpu_milli,memory_mib,gpu,model",
     .required = true},
    {.name = "tasks",
     .kind = ACRE_OPT_STRING,
     .offset = offsetof(struct packing_options, tasks),
     .value = "FILE",
     .help = "CSV of tasks: cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec",
     .required = true},
    {.name = "strategy",
     .letter = 's',
     .kind = ACRE_OPT_STRING,
     .offset = offsetof(struct packing_options, strategy),
     .value = "NAME,...",
     .help = "one or more strategies (default: least-fragmentation)"},
    {.name = "seeds",
     .kind = ACRE_OPT_COUNT,
     .offset = offsetof(struct packing_options, seeds),
     .value = "N",
     .help = "number of shuffles (default: 10)",
     .min = 1,
     .max = 1000},
    {.name = "first-seed",
     .kind = ACRE_OPT_COUNT,
     .offset = offsetof(struct packing_options, first_seed),
     .value = "N",
     .help = "seed of the first shuffle (default: 42)",
     .max = UINT32_MAX},
    {.name = "plot",
     .kind = ACRE_OPT_STRING,
     .offset = offsetof(struct packing_options, plot),
     .value = "FILE.svg",
     .help = "plot allocated against requested capacity"},
    {.name = "json",
     .kind = ACRE_OPT_FLAG,
     .offset = offsetof(struct packing_options, json),
     .help = "print JSON"},
    {.name = "quiet",
     .letter = 'q',
     .kind = ACRE_OPT_FLAG,
     .offset = offsetof(struct packing_options, quiet),
     .help = "show no progress"},
};

static const struct packing_options packing_defaults = {
    .strategy = "least-fragmentation",
    .seeds = 10,
    .first_seed = 42,
};

const struct acre_command command_simulate_packing = {
    .name = "simulate packing",
    .summary = "measure how full a cluster gets, by placement strategy",
    .usage = "acre simulate packing --nodes FILE --tasks FILE [options]",
    .details =
        "Repeats the packing experiment of the FGD paper (ATC'23). For each seed it shuffles the\n"
        "task list, with random tasks cloned or removed until the list requests 130 % of the\n"
        "GPU capacity. Tasks arrive once and never leave; one that does not fit is skipped.\n"
        "Reports the share of GPU capacity allocated when 100 % had been requested, and at the\n"
        "end.\n"
        "\n"
        "Strategies: least-fragmentation (the default), first-fit, tightest, worst-fit,\n"
        "round-robin and load-balanced are the ledger's own; best-fit, fgd and random are\n"
        "the rules published with the experiment, for comparison.\n"
        "\n"
        "Example:\n"
        "  acre simulate packing --nodes examples/small-nodes.csv \\\n"
        "      --tasks examples/small-tasks.csv -s least-fragmentation,fgd,best-fit\n",
    .options = packing_rows,
    .option_count = ACRE_COUNT(packing_rows),
    .run = run_packing,
    .options_size = sizeof(struct packing_options),
    .defaults = &packing_defaults,
};
