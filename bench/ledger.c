/* ledger.c - what one allocation, release, gang and best-node query cost, by cluster size.
 *
 *   build/bench/ledger --devices 100000 --json
 *
 * A cluster of nodes with 8 devices is filled to 80 % with a mix of shares (tenths of a device,
 * whole ones, pairs), each with CPU and RAM in proportion, by the default strategy. Then, at that
 * load, random allocations are released and new ones made, each call timed by itself (less what
 * reading the clock costs). Gangs of 64 whole devices are placed and released in between. The
 * best-node query runs over a capacity table of as many nodes. --varied-cpu draws CPU and RAM at
 * random instead: then nearly every node is in a state of its own, the worst case for the index
 * (docs/design/003-shapes.md). */
#include "ledger/ledger.h"
#include "bench.h"

#include "core/rand.h"
#include "ledger/capacity.h"
#include "ledger/nodes.h"

#include <stdio.h>
#include <stdlib.h>

enum { DEVICES_PER_NODE = 8, GANGS = 200, MEMORY_MIB = 81559 };

struct options {
    bool json; /* bench_main's */
    uint64_t devices;
    uint64_t operations;
    uint64_t seed;
    bool varied_cpu;
};

static void add_nodes(struct acre_ledger *ledger, uint64_t devices) {
    for (uint64_t n = 0; n * DEVICES_PER_NODE < devices; n++) {
        char node_name[32];
        char ids[DEVICES_PER_NODE][48];
        struct acre_device_spec specs[DEVICES_PER_NODE];
        snprintf(node_name, sizeof(node_name), "gpu-%05u", (unsigned)n);
        for (unsigned d = 0; d < DEVICES_PER_NODE; d++) {
            snprintf(ids[d], sizeof(ids[d]), "GPU-%08x-5d2c-4bd1-9d2f-%012x", (unsigned)n, d);
            specs[d] = (struct acre_device_spec){
                .id = ids[d], .model = "H100", .vendor = "nvidia", .memory_mib = MEMORY_MIB};
        }
        struct acre_node_spec spec = {.name = node_name,
                                      .cpu_milli = 128000,
                                      .ram_mib = 1 << 20,
                                      .devices = specs,
                                      .device_count = DEVICES_PER_NODE};
        uint32_t node;
        struct acre_error err = {0};
        if (acre_ledger_add_node(ledger, &spec, &node, &err) < 0) {
            bench_fail("%s", err.text);
        }
    }
}

static struct acre_request random_request(struct acre_rand *rand, const struct options *options) {
    struct acre_request request = {.replicas = 1, .gpus = 1};
    uint64_t kind = acre_rand_below(rand, 20);
    if (kind < 13) {
        request.milli = (uint32_t)(1 + acre_rand_below(rand, 9)) * 100;
    } else {
        request.milli = 1000;
        request.gpus = kind < 19 ? 1 : 2;
    }
    uint64_t milli = (uint64_t)request.milli * request.gpus;
    request.cpu_milli = milli * 12;
    request.ram_mib = milli * 100;
    if (options->varied_cpu) {
        request.cpu_milli = 1000 << acre_rand_below(rand, 4);
        request.ram_mib = 4096 << acre_rand_below(rand, 4);
    }
    return request;
}

struct live {
    uint64_t id;
    uint64_t milli;
};

struct state {
    struct acre_ledger *ledger;
    struct acre_rand rand;
    struct live *live;
    size_t live_count, live_capacity;
    uint64_t used_milli, capacity_milli;
    struct bench_times allocate, release, gang;
};

static bool allocate_one(struct state *state, const struct options *options, bool timed) {
    struct acre_request request = random_request(&state->rand, options);
    uint64_t id;
    double start_ns = bench_now_ns();
    int r = acre_ledger_allocate(state->ledger, &request, 1, &id, NULL);
    double taken_ns = bench_now_ns() - start_ns;
    if (timed) {
        state->allocate.ns[state->allocate.count++] = taken_ns;
    }
    if (r < 0) {
        return false;
    }
    if (state->live_count == state->live_capacity) {
        state->live_capacity = 2 * state->live_capacity + 1024;
        state->live = acre_realloc(state->live, state->live_capacity, sizeof(*state->live));
    }
    uint64_t milli = (uint64_t)request.milli * request.gpus;
    state->live[state->live_count++] = (struct live){id, milli};
    state->used_milli += milli;
    return true;
}

static void release_one(struct state *state) {
    size_t at = acre_rand_below(&state->rand, state->live_count);
    struct live live = state->live[at];
    state->live[at] = state->live[--state->live_count];
    double start_ns = bench_now_ns();
    acre_ledger_release(state->ledger, live.id, ACRE_ALLOCATION_COMPLETED, 1, NULL);
    state->release.ns[state->release.count++] = bench_now_ns() - start_ns;
    state->used_milli -= live.milli;
}

static void gang_one(struct state *state) {
    struct acre_request request = {
        .replicas = 64, .gpus = 1, .milli = 1000, .cpu_milli = 12000, .ram_mib = 100000};
    uint64_t id;
    double start_ns = bench_now_ns();
    int r = acre_ledger_allocate(state->ledger, &request, 1, &id, NULL);
    double taken_ns = bench_now_ns() - start_ns;
    if (r == 0) {
        state->gang.ns[state->gang.count++] = taken_ns;
        acre_ledger_release(state->ledger, id, ACRE_ALLOCATION_COMPLETED, 1, NULL);
    }
}

static void run_load(struct state *state, const struct options *options) {
    while (state->used_milli * 10 < state->capacity_milli * 8 &&
           allocate_one(state, options, false)) {
    }
    /* Churn once over before measuring, so that the state is a lived-in one. */
    for (size_t i = 0; i < state->live_count; i++) {
        release_one(state);
        allocate_one(state, options, false);
    }
    state->release.count = 0;
    for (uint64_t i = 0; i < options->operations; i++) {
        release_one(state);
        while (state->used_milli * 10 < state->capacity_milli * 8 &&
               state->allocate.count < options->operations) {
            if (!allocate_one(state, options, true)) {
                break;
            }
        }
        if (i % (options->operations / GANGS + 1) == 0) {
            gang_one(state);
        }
    }
}

/* Reports as the nodes of this cluster would make them, and the best node for random minima. */
static void time_best_node(const struct options *options, struct acre_rand *rand,
                           struct acre_json *json) {
    struct acre_capacity *capacity = acre_capacity_create(ACRE_CAPACITY_LAPSE_MS);
    uint32_t nodes = (uint32_t)((options->devices + DEVICES_PER_NODE - 1) / DEVICES_PER_NODE);
    for (uint32_t i = 0; i < nodes; i++) {
        struct acre_capacity_report report = {
            .device_count = DEVICES_PER_NODE,
            .queue_depth = (uint32_t)acre_rand_below(rand, 12),
            .total_mib = DEVICES_PER_NODE * MEMORY_MIB,
            .time_ms = 1,
        };
        for (uint32_t d = 0; d < DEVICES_PER_NODE; d++) {
            uint64_t free_mib = acre_rand_below(rand, MEMORY_MIB + 1);
            report.available_mib += free_mib;
            report.largest_device_available_mib =
                ACRE_MAX(report.largest_device_available_mib, free_mib);
        }
        int r = acre_capacity_report(capacity, i, &report, 1, NULL);
        ACRE_ASSERT(r == 0);
    }
    struct bench_times times = {acre_calloc(options->operations, sizeof(double)), 0};
    for (uint64_t i = 0; i < options->operations; i++) {
        uint32_t node;
        uint64_t min_mib = acre_rand_below(rand, MEMORY_MIB);
        double start_ns = bench_now_ns();
        acre_capacity_best(capacity, min_mib, 1, &node, NULL);
        times.ns[times.count++] = bench_now_ns() - start_ns;
    }
    bench_put_times(json, "best_node_ns", &times, 1);
    free(times.ns);
    acre_capacity_destroy(capacity);
}

static void run(const void *context, struct acre_json *json) {
    const struct options *options = context;
    struct state state = {.ledger = acre_ledger_create(NULL)};
    acre_rand_seed(&state.rand, options->seed);
    state.capacity_milli = options->devices * 1000;
    state.allocate.ns = acre_calloc(options->operations, sizeof(double));
    state.release.ns = acre_calloc(options->operations + options->devices * 10, sizeof(double));
    state.gang.ns = acre_calloc(GANGS + 1, sizeof(double));
    add_nodes(state.ledger, options->devices);
    run_load(&state, options);
    acre_json_put_u64(json, "devices", options->devices);
    acre_json_put_u64(json, "nodes", acre_ledger_node_count(state.ledger));
    acre_json_put_u64(json, "allocations", state.live_count);
    acre_json_put_double(json, "load", (double)state.used_milli / (double)state.capacity_milli, 4);
    bench_put_times(json, "allocate_ns", &state.allocate, 1);
    bench_put_times(json, "release_ns", &state.release, 1);
    if (state.gang.count > 0) {
        bench_put_times(json, "gang64_ns", &state.gang, 1);
    }
    time_best_node(options, &state.rand, json);
    acre_json_put_double(json, "bytes_per_device",
                         (double)acre_ledger_bytes(state.ledger) / (double)options->devices, 1);
    acre_ledger_destroy(state.ledger);
    free(state.live);
    free(state.allocate.ns);
    free(state.release.ns);
    free(state.gang.ns);
}

static const struct acre_opt rows[] = {
    {.name = "devices",
     .kind = ACRE_OPT_COUNT,
     .offset = offsetof(struct options, devices),
     .value = "N",
     .help = "devices, 8 to a node",
     .min = 64,
     .max = 10000000},
    {.name = "operations",
     .kind = ACRE_OPT_COUNT,
     .offset = offsetof(struct options, operations),
     .value = "N",
     .help = "releases to time",
     .min = 1000,
     .max = 100000000},
    {.name = "seed",
     .kind = ACRE_OPT_COUNT,
     .offset = offsetof(struct options, seed),
     .value = "N",
     .help = "seed of the random mix",
     .max = UINT64_MAX},
    {.name = "varied-cpu",
     .kind = ACRE_OPT_FLAG,
     .offset = offsetof(struct options, varied_cpu),
     .help = "CPU and RAM drawn at random instead of in proportion"},
};

static const struct options defaults = {.devices = 100000, .operations = 200000, .seed = 1};

static const struct acre_command command = {
    .name = "ledger",
    .summary = "time the ledger",
    .usage = "ledger [options]",
    .options = rows,
    .option_count = ACRE_COUNT(rows),
    .options_size = sizeof(struct options),
    .defaults = &defaults,
};

int main(int argc, char **argv) {
    return bench_main(&command, argc, argv, run);
}
