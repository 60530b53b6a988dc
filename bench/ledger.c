/* ledger.c - what one allocation, release, gang and best-node query cost, by cluster size.
 *
 *   build/bench/ledger --devices 100000 --json
 *
 * A cluster of nodes with 8 devices is filled to 80 % with a mix of shares (tenths of a device,
 * whole ones, pairs), each with CPU and RAM in proportion, by the default strategy. Then, at that
 * load, random allocations are released and new ones made, each call timed by itself with the
 * time-stamp counter. Gangs of 64 whole devices are placed and released in between. The node
 * query runs over the capacity table of the same nodes. */
#include "ledger/ledger.h"
#include "core/json.h"
#include "core/opt.h"
#include "core/rand.h"
#include "ledger/nodes.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { DEVICES_PER_NODE = 8, GANGS = 200 };

struct options {
    uint64_t devices;
    uint64_t operations;
    uint64_t seed;
    bool varied_cpu;
    bool json;
};

struct samples {
    double *ns;
    size_t count;
};

static double now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static void put_samples(struct acre_json *json, const char *key, struct samples *samples,
                        double timer_ns) {
    double sum = 0;
    for (size_t i = 0; i < samples->count; i++) {
        samples->ns[i] = samples->ns[i] > timer_ns ? samples->ns[i] - timer_ns : 0;
        sum += samples->ns[i];
    }
    qsort(samples->ns, samples->count, sizeof(*samples->ns), compare_doubles);
    acre_json_key(json, key);
    acre_json_object(json);
    acre_json_put_double(json, "mean", sum / (double)samples->count, 1);
    acre_json_put_double(json, "p50", samples->ns[samples->count / 2], 1);
    acre_json_put_double(json, "p999", samples->ns[samples->count * 999 / 1000], 1);
    acre_json_object_end(json);
}

/* What one pair of clock readings costs, to be taken off each sample. */
static double timer_cost_ns(void) {
    double least = 1e9;
    for (int i = 0; i < 10000; i++) {
        double start = now_ns();
        double taken = now_ns() - start;
        least = taken < least ? taken : least;
    }
    return least;
}

static void add_nodes(struct acre_ledger *ledger, uint64_t devices) {
    for (uint64_t n = 0; n * DEVICES_PER_NODE < devices; n++) {
        char node_name[32];
        char ids[DEVICES_PER_NODE][48];
        struct acre_device_spec specs[DEVICES_PER_NODE];
        snprintf(node_name, sizeof(node_name), "gpu-%05u", (unsigned)n);
        for (unsigned d = 0; d < DEVICES_PER_NODE; d++) {
            snprintf(ids[d], sizeof(ids[d]), "GPU-%08x-5d2c-4bd1-9d2f-%012x", (unsigned)n, d);
            specs[d] = (struct acre_device_spec){
                .id = ids[d], .model = "H100", .vendor = "nvidia", .memory_mib = 81559};
        }
        struct acre_node_spec spec = {.name = node_name,
                                      .cpu_milli = 128000,
                                      .ram_mib = 1 << 20,
                                      .devices = specs,
                                      .device_count = DEVICES_PER_NODE};
        uint32_t node;
        struct acre_error err = {0};
        if (acre_ledger_add_node(ledger, &spec, &node, &err) < 0) {
            fprintf(stderr, "%s\n", err.text);
            exit(1);
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
    struct samples allocate, release, gang;
};

static bool allocate_one(struct state *state, const struct options *options, bool timed) {
    struct acre_request request = random_request(&state->rand, options);
    uint64_t id;
    double start = now_ns();
    int r = acre_ledger_allocate(state->ledger, &request, 1, &id, NULL);
    double taken = now_ns() - start;
    if (timed) {
        state->allocate.ns[state->allocate.count++] = taken;
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
    double start = now_ns();
    acre_ledger_release(state->ledger, live.id, ACRE_ALLOCATION_COMPLETED, 1, NULL);
    state->release.ns[state->release.count++] = now_ns() - start;
    state->used_milli -= live.milli;
}

static void gang_one(struct state *state) {
    struct acre_request request = {
        .replicas = 64, .gpus = 1, .milli = 1000, .cpu_milli = 12000, .ram_mib = 100000};
    uint64_t id;
    double start = now_ns();
    int r = acre_ledger_allocate(state->ledger, &request, 1, &id, NULL);
    double taken = now_ns() - start;
    if (r == 0) {
        state->gang.ns[state->gang.count++] = taken;
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
    {.name = "json",
     .kind = ACRE_OPT_FLAG,
     .offset = offsetof(struct options, json),
     .help = "one line of JSON"},
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
    struct options options;
    struct acre_error err = {0};
    int positional;
    struct acre_buf out;
    acre_buf_init(&out, 1 << 20);
    int r = acre_opt_parse(&command, argc - 1, argv + 1, &options, &positional, &err);
    if (r == ACRE_ENOTFOUND) {
        acre_opt_help(&command, &out);
        fputs(out.data, stdout);
        acre_buf_finish(&out);
        return 0;
    }
    if (r < 0) {
        fprintf(stderr, "ledger: %s\n", err.text);
        return acre_error_exit(r);
    }
    struct state state = {.ledger = acre_ledger_create(NULL)};
    acre_rand_seed(&state.rand, options.seed);
    state.capacity_milli = options.devices * 1000;
    state.allocate.ns = acre_calloc(options.operations, sizeof(double));
    state.release.ns = acre_calloc(options.operations + options.devices * 10, sizeof(double));
    state.gang.ns = acre_calloc(GANGS + 1, sizeof(double));
    double timer_ns = timer_cost_ns();
    add_nodes(state.ledger, options.devices);
    run_load(&state, &options);

    struct acre_json json;
    acre_json_begin(&json, &out, !options.json);
    acre_json_object(&json);
    acre_json_put_u64(&json, "devices", options.devices);
    acre_json_put_u64(&json, "nodes", acre_ledger_node_count(state.ledger));
    acre_json_put_u64(&json, "allocations", state.live_count);
    acre_json_put_double(&json, "load", (double)state.used_milli / (double)state.capacity_milli, 4);
    put_samples(&json, "allocate_ns", &state.allocate, timer_ns);
    put_samples(&json, "release_ns", &state.release, timer_ns);
    if (state.gang.count > 0) {
        put_samples(&json, "gang64_ns", &state.gang, timer_ns);
    }
    acre_json_put_double(&json, "bytes_per_device",
                         (double)acre_ledger_bytes(state.ledger) / (double)options.devices, 1);
    acre_json_object_end(&json);
    acre_json_end(&json);
    puts(out.data);
    acre_buf_finish(&out);
    acre_ledger_destroy(state.ledger);
    free(state.live);
    free(state.allocate.ns);
    free(state.release.ns);
    free(state.gang.ns);
    return 0;
}
