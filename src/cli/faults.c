/* faults.c - `acre simulate faults`: runs the scheduler under crashes, lost messages and failing
 * disks, seed by seed. */
#include "cli/cli.h"

#include "cli/simulation.h"
#include "core/json.h"
#include "sim/faults.h"

enum { OUTPUT_MAX_BYTES = 4 << 20 };

struct faults_options {
    uint64_t seeds;
    uint64_t first_seed;
    uint64_t steps;
    bool story;
    bool json;
    bool quiet;
};

static const struct {
    const char *name;
    size_t offset;
} rows[] = {
    {"steps", offsetof(struct acre_faults_counts, steps)},
    {"crashes", offsetof(struct acre_faults_counts, crashes)},
    {"failed_commits", offsetof(struct acre_faults_counts, failed_commits)},
    {"lost_messages", offsetof(struct acre_faults_counts, lost_messages)},
    {"repeated_messages", offsetof(struct acre_faults_counts, repeated_messages)},
    {"clock_jumps", offsetof(struct acre_faults_counts, clock_jumps)},
    {"vanished_nodes", offsetof(struct acre_faults_counts, vanished_nodes)},
    {"submitted", offsetof(struct acre_faults_counts, submitted)},
    {"runs", offsetof(struct acre_faults_counts, runs)},
    {"preemptions", offsetof(struct acre_faults_counts, preemptions)},
    {"completed", offsetof(struct acre_faults_counts, completed)},
    {"failed", offsetof(struct acre_faults_counts, failed)},
    {"canceled", offsetof(struct acre_faults_counts, canceled)},
};

static uint64_t value_of(const struct acre_faults_counts *counts, size_t row) {
    return *(const uint64_t *)(const void *)((const char *)counts + rows[row].offset);
}

static void print_counts(const struct faults_options *options,
                         const struct acre_faults_counts *counts, double wall_s,
                         struct acre_buf *out) {
    if (!options->json) {
        acre_buf_printf(out, "%lu seed%s clean in %.1f s:", (unsigned long)options->seeds,
                        options->seeds == 1 ? "" : "s", wall_s);
        for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
            acre_buf_puts(out, i == 0 ? " " : ", ");
            for (const char *c = rows[i].name; *c != '\0'; c++) {
                acre_buf_putc(out, *c == '_' ? ' ' : *c); /* the names are keys of the JSON */
            }
            acre_buf_printf(out, " %lu", (unsigned long)value_of(counts, i));
        }
        acre_buf_putc(out, '\n');
        return;
    }
    struct acre_json json;
    acre_json_begin(&json, out, true);
    acre_json_object(&json);
    acre_json_put_u64(&json, "seeds", options->seeds);
    acre_json_put_u64(&json, "first_seed", options->first_seed);
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        acre_json_put_u64(&json, rows[i].name, value_of(counts, i));
    }
    acre_json_put_double(&json, "wall_s", wall_s, 2);
    acre_json_object_end(&json);
    acre_json_end(&json);
    acre_buf_putc(out, '\n');
}

static int run_seeds(const struct faults_options *options, struct progress *progress,
                     struct acre_faults_counts *counts, struct acre_buf *story,
                     struct acre_error *err) {
    int r = 0;
    for (uint64_t i = 0; r == 0 && i < options->seeds; i++) {
        acre_buf_clear(story);
        struct acre_faults_options one = {
            .seed = options->first_seed + i,
            .steps = (uint32_t)options->steps,
            .story = options->story ? story : NULL,
        };
        r = acre_faults_run(&one, counts, err);
        progress_show(progress, "%lu of %lu seeds", (unsigned long)i + 1,
                      (unsigned long)options->seeds);
    }
    return r;
}

static int run_faults(int argument_count, char **arguments, void *context) {
    (void)argument_count;
    (void)arguments;
    const struct faults_options *options = context;
    struct acre_faults_counts counts = {0};
    struct progress progress;
    struct acre_error err = {0};
    struct acre_buf out;
    acre_buf_init(&out, OUTPUT_MAX_BYTES);
    progress_begin(&progress, "faults", options->quiet);
    int r = run_seeds(options, &progress, &counts, &out, &err);
    double wall_s = progress_end(&progress);
    if (r == 0) {
        acre_buf_clear(&out);
        print_counts(options, &counts, wall_s, &out);
    }
    int code = cli_write(&out); /* or the story of the seed that failed */
    acre_buf_finish(&out);
    return r < 0 ? cli_fail(&err) : code;
}

static const struct acre_opt fault_rows[] = {
    {.name = "seeds",
     .kind = ACRE_OPT_COUNT,
     .offset = offsetof(struct faults_options, seeds),
     .value = "N",
     .help = "number of seeds (default: 100)",
     .min = 1,
     .max = 100000000},
    {.name = "first-seed",
     .kind = ACRE_OPT_COUNT,
     .offset = offsetof(struct faults_options, first_seed),
     .value = "N",
     .help = "the first seed (default: 1)",
     .max = UINT64_MAX / 2},
    {.name = "steps",
     .kind = ACRE_OPT_COUNT,
     .offset = offsetof(struct faults_options, steps),
     .value = "N",
     .help = "steps per seed before the faults stop (default: 600)",
     .min = 1,
     .max = 1000000},
    {.name = "story",
     .kind = ACRE_OPT_FLAG,
     .offset = offsetof(struct faults_options, story),
     .help = "print the steps of a seed that fails"},
    {.name = "json",
     .kind = ACRE_OPT_FLAG,
     .offset = offsetof(struct faults_options, json),
     .help = "print JSON"},
    {.name = "quiet",
     .letter = 'q',
     .kind = ACRE_OPT_FLAG,
     .offset = offsetof(struct faults_options, quiet),
     .help = "show no progress"},
};

static const struct faults_options fault_defaults = {.seeds = 100, .first_seed = 1, .steps = 600};

const struct acre_command command_simulate_faults = {
    .name = "simulate faults",
    .summary = "test the scheduler under crashes, lost messages and failing disks",
    .usage = "acre simulate faults [--seeds N] [options]",
    .details =
        "Drives the daemon's scheduler and ledger through random work and random faults: a\n"
        "crash between any two steps, commits that fail, messages that arrive late, twice or\n"
        "never, a clock that jumps, nodes that disappear and return. Every invariant is checked\n"
        "after every step; when the faults stop, every job must end. A seed does the same\n"
        "thing on every machine; a seed that fails is printed.\n"
        "\n"
        "Examples:\n"
        "  acre simulate faults --seeds 50\n"
        "  acre simulate faults --first-seed 4711 --seeds 1 --story\n",
    .options = fault_rows,
    .option_count = ACRE_COUNT(fault_rows),
    .run = run_faults,
    .options_size = sizeof(struct faults_options),
    .defaults = &fault_defaults,
};
