/* capacity.c - how long a report and a best-of take, and what a node costs in memory (CAP-8).
 *
 *   build/bench/capacity --nodes 12500 --json
 *
 * Nodes have 1 to 8 devices of five sizes, loaded at random. */
#include "bench.h"

#include "core/rand.h"
#include "ledger/capacity.h"

#include <stdlib.h>

struct options {
    bool json; /* bench_main's */
    uint64_t nodes;
    uint64_t operations;
    uint64_t seed;
};

static const struct acre_opt rows[] = {
    {.name = "nodes",
     .kind = ACRE_OPT_COUNT,
     .offset = offsetof(struct options, nodes),
     .value = "N",
     .help = "number of nodes that report",
     .min = 1,
     .max = ACRE_CAPACITY_NODES_MAX},
    {.name = "operations",
     .kind = ACRE_OPT_COUNT,
     .offset = offsetof(struct options, operations),
     .value = "N",
     .help = "number of calls to time",
     .min = 1000,
     .max = 100000000},
    {.name = "seed",
     .kind = ACRE_OPT_COUNT,
     .offset = offsetof(struct options, seed),
     .value = "N",
     .help = "seed of the random load",
     .min = 0,
     .max = UINT64_MAX},
};

static const struct options defaults = {.nodes = 12500, .operations = 1000000, .seed = 1};

static const struct acre_command command = {
    .name = "capacity",
    .summary = "time reports and best-of over many nodes",
    .usage = "capacity [options]",
    .options = rows,
    .option_count = ACRE_COUNT(rows),
    .options_size = sizeof(struct options),
    .defaults = &defaults,
};

struct bench {
    struct acre_capacity *capacity;
    struct acre_rand rand;
    uint64_t nodes;
    uint64_t now_ms;
    uint64_t reports;
    uint64_t found; /* keeps the answers alive, and says how often there was one */
};

struct input {
    uint32_t node;
    uint64_t min_mib;
    struct acre_capacity_report report;
};

static struct input next_input(struct bench *bench) {
    static const uint64_t sizes_mib[] = {16384, 24576, 40960, 81920, 143771};
    struct acre_rand *rand = &bench->rand;
    struct input input = {.node = (uint32_t)acre_rand_below(rand, bench->nodes),
                          .min_mib = acre_rand_below(rand, 100000)};
    uint64_t size_mib = sizes_mib[input.node % ACRE_COUNT(sizes_mib)];
    input.report.device_count = 1 + input.node % 8;
    input.report.queue_depth = (uint32_t)acre_rand_below(rand, 16);
    for (uint32_t i = 0; i < input.report.device_count; i++) {
        uint64_t free_mib = acre_rand_below(rand, size_mib + 1);
        input.report.total_mib += size_mib;
        input.report.available_mib += free_mib;
        input.report.largest_device_available_mib =
            ACRE_MAX(input.report.largest_device_available_mib, free_mib);
    }
    return input;
}

static void do_report(struct bench *bench, const struct input *input) {
    struct acre_capacity_report report = input->report;
    /* As many calls a second as nodes reporting every 30 s make. */
    bench->now_ms += ++bench->reports % (bench->nodes / 30000 + 1) == 0;
    report.time_ms = bench->now_ms;
    int r = acre_capacity_report(bench->capacity, input->node, &report, bench->now_ms, NULL);
    ACRE_ASSERT(r == 0);
}

static void do_best(struct bench *bench, const struct input *input) {
    uint32_t node;
    bench->found +=
        acre_capacity_best(bench->capacity, input->min_mib, bench->now_ms, &node, NULL) == 0;
}

static void do_reserve(struct bench *bench, const struct input *input) {
    uint64_t token;
    if (acre_capacity_reserve(bench->capacity, input->node, 1024, bench->now_ms, &token, NULL) ==
        0) {
        bench->found += acre_capacity_cancel(bench->capacity, token, bench->now_ms) == 0;
    }
}

typedef void operation(struct bench *bench, const struct input *input);

static void measure(struct bench *bench, const char *key, operation *run, uint64_t operations,
                    struct acre_json *json) {
    struct bench_times times = {acre_calloc(operations, sizeof(double)), 0};
    for (uint64_t i = 0; i < operations; i++) {
        struct input input = next_input(bench);
        double start_ns = bench_now_ns();
        run(bench, &input);
        times.ns[times.count++] = bench_now_ns() - start_ns;
    }
    bench_put_times(json, key, &times, 1);
    free(times.ns);
}

static void fill(struct bench *bench) {
    for (uint32_t node = 0; node < bench->nodes; node++) {
        struct input input = next_input(bench);
        input.node = node;
        do_report(bench, &input);
    }
}

static void run(const void *context, struct acre_json *json) {
    const struct options *options = context;
    struct bench bench = {.capacity = acre_capacity_create(ACRE_CAPACITY_LAPSE_MS),
                          .nodes = options->nodes,
                          .now_ms = 1000000};
    acre_rand_seed(&bench.rand, options->seed);
    fill(&bench);
    acre_json_put_u64(json, "nodes", options->nodes);
    acre_json_put_double(json, "bytes_per_node",
                         (double)acre_capacity_bytes(bench.capacity) / (double)options->nodes, 1);
    measure(&bench, "report_ns", do_report, options->operations, json);
    measure(&bench, "best_node_ns", do_best, options->operations, json);
    measure(&bench, "reserve_cancel_ns", do_reserve, options->operations, json);
    acre_capacity_destroy(bench.capacity);
}

int main(int argc, char **argv) {
    return bench_main(&command, argc, argv, run);
}
