/* replay.c - `acre simulate replay`: reports how long recorded jobs would have waited, by policy.
 */
#include "cli/cli.h"
#include "cli/term.h"

#include "cli/simulation.h"
#include "core/json.h"
#include "core/units.h"
#include "sim/plot.h"
#include "sim/replay.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { POLICIES_MAX = 16, OUTPUT_MAX_BYTES = 1 << 20 };

struct replay_options {
    const char *trace;
    const char *nodes;
    const char *policy;
    const char *estimates;
    const char *plot;
    bool json;
    bool quiet;
};

struct replay_run {
    struct acre_replay_result result;
    double wall_s;
};

/* All runs of one call. */
struct replay_runs {
    const struct acre_job_trace *trace;
    const struct replay_options *given;
    struct progress progress;
    struct acre_replay_options options;
    struct replay_run runs[POLICIES_MAX];
    size_t count;
};

static void show_progress(void *context, uint32_t submitted, uint32_t jobs) {
    struct replay_runs *all = context;
    progress_show(&all->progress, "%3u %% of %u jobs", (unsigned)((uint64_t)submitted * 100 / jobs),
                  jobs);
}

/* "64x8" */
static int parse_nodes(const char *text, struct acre_replay_options *options,
                       struct acre_error *err) {
    struct acre_split split = acre_split_begin(acre_str_from(text), 'x');
    struct acre_str part;
    uint64_t values[2];
    uint32_t count = 0;
    char number[16], shown[64];
    while (acre_split_next(&split, &part)) {
        if (count == 2 || !acre_str_copy(number, sizeof(number), part) ||
            acre_parse_count("nodes", number, 1, count == 0 ? 100000 : 64, &values[count], NULL) <
                0) {
            count = 0;
            break;
        }
        count++;
    }
    if (count != 2) {
        return acre_fail(
            err, ACRE_EINVALID,
            "--nodes: invalid '%s'; accepted: NODESxGPUS, such as 64x8, up to 100000x64",
            acre_str_show(acre_str_from(text), shown, sizeof(shown)));
    }
    options->nodes = (uint32_t)values[0];
    options->gpus_per_node = (uint32_t)values[1];
    return 0;
}

static int find_policy(const char *name, const struct acre_replay_policy **ret_policy,
                       struct acre_error *err) {
    char names[160] = "", shown[64];
    for (size_t i = 0; acre_replay_policy(i) != NULL; i++) {
        const struct acre_replay_policy *policy = acre_replay_policy(i);
        if (strcmp(name, policy->name) == 0) {
            *ret_policy = policy;
            return 0;
        }
        size_t used = strlen(names);
        snprintf(names + used, sizeof(names) - used, "%s%s", i == 0 ? "" : ", ", policy->name);
    }
    return acre_fail(err, ACRE_EINVALID, "--policy: unknown policy '%s'; accepted: %s",
                     acre_str_show(acre_str_from(name), shown, sizeof(shown)), names);
}

static enum acre_replay_estimates estimates_of(const char *text) {
    static const char *const names[] = {
#define X(name, text) [ACRE_REPLAY_##name] = (text),
        ACRE_REPLAY_ESTIMATES(X)
#undef X
    };
    uint32_t at = 0;
    while (strcmp(names[at], text) != 0) { /* one of the choices: opt.c has checked */
        at++;
    }
    return (enum acre_replay_estimates)at;
}

static int run_one(void *context, size_t index, const char *name, struct acre_error *err) {
    struct replay_runs *all = context;
    int r = find_policy(name, &all->options.policy, err);
    if (r < 0) {
        return r;
    }
    progress_begin(&all->progress, name, all->given->quiet);
    r = acre_replay_run(all->trace, &all->options, &all->runs[index].result, err);
    all->runs[index].wall_s = progress_end(&all->progress);
    return r;
}

static void put_times(struct acre_json *json, const char *key,
                      const struct acre_replay_times *times) {
    acre_json_key(json, key);
    acre_json_object(json);
    acre_json_put_double(json, "mean", times->mean_s, 1);
    acre_json_put_double(json, "p50", times->p50_s, 1);
    acre_json_put_double(json, "p99", times->p99_s, 1);
    acre_json_put_double(json, "max", times->max_s, 1);
    acre_json_object_end(json);
}

static void put_run(struct acre_json *json, const struct replay_run *run) {
    const struct acre_replay_result *result = &run->result;
    acre_json_object(json);
    acre_json_put_string(json, "policy", result->policy);
    acre_json_put_u64(json, "jobs", result->jobs);
    acre_json_put_u64(json, "never_fit", result->never);
    acre_json_put_u64(json, "preemptions", result->preemptions);
    acre_json_put_u64(json, "passes", result->passes);
    acre_json_put_double(json, "load", result->load, 4);
    acre_json_put_double(json, "use", result->use, 4);
    acre_json_put_double(json, "makespan_days", result->makespan_days, 2);
    put_times(json, "wait_s", &result->wait);
    put_times(json, "completion_s", &result->completion);
    acre_json_put_string(json, "longest_wait_cluster", result->longest_wait);
    acre_json_put_double(json, "jain", result->jain, 4);
    acre_json_put_double(json, "jain_slowdown", result->jain_slowdown, 4);
    acre_json_key(json, "start_estimate");
    acre_json_object(json);
    acre_json_put_u64(json, "jobs", result->estimates);
    acre_json_put_double(json, "median_abs_error_s", result->eta_median_abs_s, 1);
    acre_json_put_double(json, "p90_abs_error_s", result->eta_p90_abs_s, 1);
    acre_json_put_double(json, "mean_error_s", result->eta_mean_s, 1);
    acre_json_put_double(json, "inside_interval", result->eta_inside, 4);
    acre_json_object_end(json);
    acre_json_put_double(json, "wall_s", run->wall_s, 2);
    acre_json_object_end(json);
}

static void print_json(const struct replay_run *runs, size_t count, struct acre_buf *out) {
    struct acre_json json;
    acre_json_begin(&json, out, true);
    acre_json_array(&json);
    for (size_t i = 0; i < count; i++) {
        put_run(&json, &runs[i]);
    }
    acre_json_array_end(&json);
    acre_json_end(&json);
    acre_buf_putc(out, '\n');
}

static void put_number(struct text_table *table, double value, int decimals, const char *unit) {
    char text[32];
    snprintf(text, sizeof(text), "%.*f%s", decimals, value, unit);
    table_cell(table, ACRE_COLOUR_NONE, text);
}

static void put_seconds(struct text_table *table, double seconds) {
    char text[32];
    uint64_t ms = (uint64_t)(seconds + 0.5) * 1000;
    table_cell(table, ACRE_COLOUR_NONE, acre_format_duration(ms, text, sizeof(text)));
}

static void print_table(const struct replay_run *runs, size_t count, struct acre_buf *out) {
    static const struct table_column columns[] = {
        {.heading = "POLICY"},
        {.heading = "MEAN WAIT", .right = true},
        {.heading = "P50", .right = true, .rank = 5},
        {.heading = "P99", .right = true},
        {.heading = "MAX", .right = true},
        {.heading = "MEAN DONE", .right = true, .rank = 4},
        {.heading = "USE", .right = true, .rank = 3},
        {.heading = "JAIN", .right = true},
        {.heading = "ETA ERR P50", .right = true, .rank = 2},
        {.heading = "P90", .right = true, .rank = 2},
        {.heading = "INSIDE", .right = true, .rank = 2},
        {.heading = "WALL", .right = true, .rank = 1},
    };
    struct term term = term_detect(STDOUT_FILENO);
    struct text_table *table = table_create(columns, ACRE_COUNT(columns));
    for (size_t i = 0; i < count; i++) {
        const struct acre_replay_result *result = &runs[i].result;
        table_row(table);
        table_cell(table, ACRE_COLOUR_BOLD, result->policy);
        put_seconds(table, result->wait.mean_s);
        put_seconds(table, result->wait.p50_s);
        put_seconds(table, result->wait.p99_s);
        put_seconds(table, result->wait.max_s);
        put_seconds(table, result->completion.mean_s);
        put_number(table, result->use, 3, "");
        put_number(table, result->jain, 4, "");
        put_seconds(table, result->eta_median_abs_s);
        put_seconds(table, result->eta_p90_abs_s);
        put_number(table, result->eta_inside, 2, "");
        put_number(table, runs[i].wall_s, 1, " s");
    }
    if (count > 0) {
        acre_buf_printf(out, "%u jobs; load during submission: %.2f of capacity\n\n",
                        runs[0].result.jobs, runs[0].result.load);
    }
    table_print(table, &term, out);
    table_destroy(table);
}

static int write_plot(const char *path, const struct acre_job_trace *trace,
                      const struct replay_run *runs, size_t count, struct acre_error *err) {
    struct acre_replay_result results[POLICIES_MAX];
    for (size_t i = 0; i < count; i++) {
        results[i] = runs[i].result;
    }
    uint64_t span_ms = trace->jobs[trace->count - 1].submit_ms - trace->jobs[0].submit_ms;
    struct acre_buf svg;
    acre_buf_init(&svg, OUTPUT_MAX_BYTES);
    int r = acre_replay_plot(results, count, ACRE_MAX((double)span_ms / 86400e3, 0.01), &svg);
    r = write_picture(path, &svg, r, err);
    acre_buf_finish(&svg);
    return r;
}

static int run_replay(int argument_count, char **arguments, void *context) {
    (void)argument_count;
    (void)arguments;
    const struct replay_options *options = context;
    struct acre_error err = {0};
    struct acre_job_trace *trace;
    if (job_trace_load(options->trace, &trace, &err) < 0) {
        return cli_fail(&err);
    }
    struct replay_runs all = {.trace = trace, .given = options};
    all.options.estimates = estimates_of(options->estimates);
    all.options.progress = show_progress;
    all.options.context = &all;
    int r = parse_nodes(options->nodes, &all.options, &err);
    if (r == 0) {
        r = each_name("policy", options->policy, POLICIES_MAX, run_one, &all, &all.count, &err);
    }
    if (r < 0) {
        job_trace_destroy(trace);
        return cli_fail(&err);
    }
    if (options->plot != NULL) {
        r = write_plot(options->plot, trace, all.runs, all.count, &err);
    }
    job_trace_destroy(trace);
    struct acre_buf out;
    acre_buf_init(&out, OUTPUT_MAX_BYTES);
    (options->json ? print_json : print_table)(all.runs, all.count, &out);
    int code = cli_write(&out);
    acre_buf_finish(&out);
    return r < 0 ? cli_fail(&err) : code; /* minutes of work are shown, picture or not */
}

static const struct acre_opt replay_rows[] = {
    {.name = "trace",
     .kind = ACRE_OPT_STRING,
     .offset = offsetof(struct replay_options, trace),
     .value = "FILE",
     .help = "CSV of jobs, sorted by time: timestamp,duration,num_gpus,cluster",
     .required = true},
    {.name = "nodes",
     .kind = ACRE_OPT_STRING,
     .offset = offsetof(struct replay_options, nodes),
     .value = "NxG",
     .help = "cluster of N nodes with G GPUs each (default: 64x8)"},
    {.name = "policy",
     .letter = 'p',
     .kind = ACRE_OPT_STRING,
     .offset = offsetof(struct replay_options, policy),
     .value = "NAME,...",
     .help = "one or more of fcfs, easy, fair-share, sjf, priority, gang (default: fair-share)"},
    {.name = "estimates",
     .kind = ACRE_OPT_CHOICE,
     .offset = offsetof(struct replay_options, estimates),
     .value = "HOW",
     .help = "duration estimates for the scheduler; rough ones are 1 to 5 times as long",
     .choices = "true,rough,none"},
    {.name = "plot",
     .kind = ACRE_OPT_STRING,
     .offset = offsetof(struct replay_options, plot),
     .value = "FILE.svg",
     .help = "plot the waiting GPUs over time"},
    {.name = "json",
     .kind = ACRE_OPT_FLAG,
     .offset = offsetof(struct replay_options, json),
     .help = "print JSON"},
    {.name = "quiet",
     .letter = 'q',
     .kind = ACRE_OPT_FLAG,
     .offset = offsetof(struct replay_options, quiet),
     .help = "show no progress"},
};

static const struct replay_options replay_defaults = {
    .nodes = "64x8",
    .policy = "fair-share",
    .estimates = "true",
};

const struct acre_command command_simulate_replay = {
    .name = "simulate replay",
    .summary = "replay recorded jobs and report how long they would have waited, by policy",
    .usage = "acre simulate replay --trace FILE [--nodes 64x8] [--policy NAME,...] [options]",
    .details =
        "Submits recorded jobs at their recorded times and with their durations to the daemon's\n"
        "own scheduler, in virtual time. Reports wait and completion times, GPU utilization,\n"
        "Jain's fairness index between the virtual clusters (1: all got the same fraction of\n"
        "what max-min fairness would have given them), and the error of the start estimates\n"
        "that jobs got when they were submitted.\n"
        "\n"
        "A trace has no priorities: for the policy 'priority', one job in ten gets high and two\n"
        "in ten get low, by their number. Preempted jobs resume where they stopped.\n"
        "\n"
        "Examples:\n"
        "  acre simulate replay --trace examples/small-jobs.csv --nodes 2x8 \\\n"
        "      --policy fcfs,easy,fair-share,sjf,priority\n"
        "  acre simulate replay --trace examples/small-jobs.csv --nodes 2x8 --estimates none\n",
    .options = replay_rows,
    .option_count = ACRE_COUNT(replay_rows),
    .run = run_replay,
    .options_size = sizeof(struct replay_options),
    .defaults = &replay_defaults,
};
