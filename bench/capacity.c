/* capacity.c - how long a report and a best-of take, and what a node costs in memory (CAP-8).
 *
 *   capacity [--nodes N] [--operations N] [--seed N]      one JSON object on standard output
 *
 * Nodes have 1 to 8 devices of five sizes, loaded at random. Means come from one timing of the
 * whole loop; percentiles from a second loop that times every call, so they include the clock's
 * own cost, which is given as clock_ns. */
#include "ledger/capacity.h"
#include "core/json.h"
#include "core/opt.h"
#include "core/rand.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct options {
    uint64_t nodes;
    uint64_t operations;
    uint64_t seed;
};

static const struct acre_opt rows[] = {
    {.name = "nodes",
     .kind = ACRE_OPT_COUNT,
     .offset = offsetof(struct options, nodes),
     .value = "N",
     .help = "how many nodes report",
     .min = 1,
     .max = ACRE_CAPACITY_NODES_MAX},
    {.name = "operations",
     .kind = ACRE_OPT_COUNT,
     .offset = offsetof(struct options, operations),
     .value = "N",
     .help = "how many calls are timed",
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

static const struct options defaults = {12500, 1000000, 1};

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

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

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

static void do_nothing(struct bench *bench, const struct input *input) {
    bench->found += input->node;
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

static int compare_u64(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

enum { BATCH = 4096 };

/* Inputs are made outside the timed part, a batch at a time. */
static void measure(struct bench *bench, const char *key, operation *run, uint64_t operations,
                    struct acre_json *json) {
    static struct input inputs[BATCH];
    uint64_t batches = (operations + BATCH - 1) / BATCH;
    uint64_t *times_ns = acre_calloc(batches * BATCH, sizeof(*times_ns));
    uint64_t total_ns = 0;
    for (uint64_t b = 0; b < 2 * batches; b++) {
        for (size_t i = 0; i < BATCH; i++) {
            inputs[i] = next_input(bench);
        }
        uint64_t begin_ns = now_ns();
        if (b % 2 == 0) {
            for (size_t i = 0; i < BATCH; i++) {
                run(bench, &inputs[i]);
            }
            total_ns += now_ns() - begin_ns;
            continue;
        }
        for (size_t i = 0; i < BATCH; i++) {
            run(bench, &inputs[i]);
            uint64_t end_ns = now_ns();
            times_ns[b / 2 * BATCH + i] = end_ns - begin_ns;
            begin_ns = end_ns;
        }
    }
    qsort(times_ns, batches * BATCH, sizeof(*times_ns), compare_u64);
    acre_json_key(json, key);
    acre_json_object(json);
    acre_json_put_double(json, "mean", (double)total_ns / (double)(batches * BATCH), 1);
    acre_json_put_u64(json, "p50", times_ns[batches * BATCH / 2]);
    acre_json_put_u64(json, "p999", times_ns[batches * BATCH / 1000 * 999]);
    acre_json_object_end(json);
    free(times_ns);
}

static void fill(struct bench *bench) {
    for (uint32_t node = 0; node < bench->nodes; node++) {
        struct input input = next_input(bench);
        input.node = node;
        do_report(bench, &input);
    }
}

int main(int argc, char **argv) {
    struct options options = defaults;
    struct acre_error err;
    int arguments;
    int r = acre_opt_parse(&command, argc - 1, argv + 1, &options, &arguments, &err);
    if (r < 0) {
        fprintf(stderr, "capacity: %s\n", err.text);
        return acre_error_exit(r);
    }
    struct bench bench = {.capacity = acre_capacity_create(ACRE_CAPACITY_LAPSE_MS),
                          .nodes = options.nodes,
                          .now_ms = 1000000};
    acre_rand_seed(&bench.rand, options.seed);
    fill(&bench);
    struct acre_buf buf;
    struct acre_json json;
    acre_buf_init(&buf, 4096);
    acre_json_begin(&json, &buf, true);
    acre_json_object(&json);
    acre_json_put_u64(&json, "nodes", options.nodes);
    acre_json_put_double(&json, "bytes_per_node",
                         (double)acre_capacity_bytes(bench.capacity) / (double)options.nodes, 1);
    measure(&bench, "clock_ns", do_nothing, options.operations, &json);
    measure(&bench, "report_ns", do_report, options.operations, &json);
    measure(&bench, "best_node_ns", do_best, options.operations, &json);
    measure(&bench, "reserve_cancel_ns", do_reserve, options.operations, &json);
    acre_json_object_end(&json);
    if (acre_json_end(&json) == 0) {
        printf("%s\n", buf.data);
    }
    acre_buf_finish(&buf);
    acre_capacity_destroy(bench.capacity);
    return 0;
}
