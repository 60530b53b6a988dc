/* packing.c - the experiment's tasks, its arrivals and its figures. */
#include "sim/packing.h"

#include "core/rand.h"
#include "ledger/nodes.h"
#include "sim/packer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INFLATION_PCT = 130, PROGRESS_EVERY = 256 };

/* The real ledger. Device memory is left unknown: the traces do not have it. */
struct ledger_packer {
    struct acre_ledger *ledger;
    uint32_t *names; /* the trace's names in the ledger */
};

static void *ledger_create(const struct acre_trace *trace, const struct packer *packer,
                           uint64_t seed) {
    (void)seed;
    struct acre_rules rules = *acre_rules_default();
    rules.min_milli = 1; /* the traces have shares below a tenth */
    rules.max_allocations_per_device = 255;
    struct acre_ledger_options options = {.strategy = packer->strategy, .rules = &rules};
    struct acre_ledger *ledger = acre_ledger_create(&options);
    for (uint32_t i = 0; i < trace->node_count; i++) {
        const struct acre_trace_node *node = &trace->nodes[i];
        struct acre_device_spec devices[64];
        char ids[64][32];
        for (uint32_t d = 0; d < node->gpus; d++) {
            snprintf(ids[d], sizeof(ids[d]), "%u/%u", i, d);
            devices[d] = (struct acre_device_spec){
                .id = ids[d], .model = acre_names_text(trace->names, node->model)};
        }
        struct acre_node_spec spec = {
            .name = acre_names_text(trace->names, node->name),
            .cpu_milli = node->cpu_milli,
            .ram_mib = node->ram_mib,
            .devices = devices,
            .device_count = node->gpus,
        };
        uint32_t index;
        int r = acre_ledger_add_node(ledger, &spec, &index, NULL);
        ACRE_ASSERT(r == 0); /* the trace was checked when it was read */
    }
    struct ledger_packer *self = acre_calloc(1, sizeof(*self));
    uint32_t name_count = acre_names_count(trace->names) + 1;
    self->ledger = ledger;
    self->names = acre_calloc(name_count, sizeof(*self->names));
    for (uint32_t i = 1; i < name_count; i++) {
        struct acre_str text = acre_str_from(acre_names_text(trace->names, i));
        self->names[i] = acre_names_intern(acre_ledger_names(ledger), text);
    }
    return self;
}

static bool ledger_place(void *context, const struct acre_trace_task *task) {
    struct ledger_packer *self = context;
    struct acre_request request = {
        .replicas = 1,
        .gpus = task->gpus,
        .milli = task->milli,
        .cpu_milli = task->cpu_milli,
        .ram_mib = task->ram_mib,
    };
    for (uint32_t i = 0; i < ACRE_REQUEST_MODELS_MAX; i++) {
        request.models[i] = self->names[task->models[i]];
    }
    uint64_t id;
    return acre_ledger_allocate(self->ledger, &request, 0, &id, NULL) == 0;
}

static void ledger_destroy(void *context) {
    struct ledger_packer *self = context;
    acre_ledger_destroy(self->ledger);
    free(self->names);
    free(self);
}

#define LEDGER_PACKER(name, meaning, strategy)                                                     \
    { name, meaning, strategy, ledger_create, ledger_place, ledger_destroy }

static const struct packer ledger_packers[] = {
    LEDGER_PACKER("least-fragmentation", "Acre's default: keeps most room usable for the mix",
                  ACRE_STRATEGY_LEAST_WASTE),
    LEDGER_PACKER("first-fit", "first node and device in order", ACRE_STRATEGY_FIRST_FIT),
    LEDGER_PACKER("tightest", "the ledger's best-fit: least of the device left over",
                  ACRE_STRATEGY_BEST_FIT),
    LEDGER_PACKER("worst-fit", "emptiest device", ACRE_STRATEGY_WORST_FIT),
    LEDGER_PACKER("round-robin", "next node after the last one used", ACRE_STRATEGY_ROUND_ROBIN),
    LEDGER_PACKER("load-balanced", "lowest load of a device", ACRE_STRATEGY_LOAD_BALANCED),
};

static const struct packer *const packers[] = {
    &ledger_packers[0], &ledger_packers[1], &ledger_packers[2],
    &ledger_packers[3], &ledger_packers[4], &ledger_packers[5],
    &packer_best_fit,   &packer_fgd,        &packer_random,
};

const struct acre_packing_strategy *acre_packing_strategies(void) {
    static struct acre_packing_strategy rows[ACRE_COUNT(packers) + 1];
    for (size_t i = 0; i < ACRE_COUNT(packers); i++) {
        rows[i] = (struct acre_packing_strategy){packers[i]->name, packers[i]->meaning};
    }
    return rows;
}

static uint64_t task_milli(const struct acre_trace_task *task) {
    return (uint64_t)task->gpus * task->milli;
}

/* Indexes of the tasks in order of arrival. */
static uint32_t *draw_arrivals(const struct acre_trace *trace, struct acre_rand *rand,
                               uint32_t *ret_count) {
    uint64_t target = trace->gpu_milli * INFLATION_PCT / 100;
    uint64_t sum = 0;
    uint32_t count = trace->task_count;
    uint32_t capacity = 2 * count;
    uint32_t *arrivals = acre_calloc(capacity, sizeof(*arrivals));
    for (uint32_t i = 0; i < count; i++) {
        arrivals[i] = i;
        sum += task_milli(&trace->tasks[i]);
    }
    while (sum < target) {
        if (count == capacity) {
            capacity *= 2;
            arrivals = acre_realloc(arrivals, capacity, sizeof(*arrivals));
        }
        uint32_t clone = (uint32_t)acre_rand_below(rand, trace->task_count);
        arrivals[count++] = clone;
        sum += task_milli(&trace->tasks[clone]);
    }
    while (sum > target) {
        uint32_t at = (uint32_t)acre_rand_below(rand, count);
        uint64_t milli = task_milli(&trace->tasks[arrivals[at]]);
        if (sum - milli < target) {
            break;
        }
        sum -= milli;
        arrivals[at] = arrivals[--count];
    }
    acre_rand_shuffle(rand, arrivals, count, sizeof(*arrivals));
    *ret_count = count;
    return arrivals;
}

/* One seed; fills the curve in % and returns the end. */
static double run_seed(const struct acre_trace *trace, const struct packer *packer,
                       const struct acre_packing_options *options, uint32_t number, double *curve) {
    struct acre_rand rand;
    uint64_t seed = options->first_seed + number;
    acre_rand_seed(&rand, seed);
    uint32_t count;
    uint32_t *arrivals = draw_arrivals(trace, &rand, &count);
    void *self = packer->create(trace, packer, seed);
    uint64_t arrived = 0;
    uint64_t allocated = 0;
    uint32_t filled = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct acre_trace_task *task = &trace->tasks[arrivals[i]];
        arrived += task_milli(task);
        allocated += packer->place(self, task) ? task_milli(task) : 0;
        while (filled < ACRE_PACKING_CURVE && arrived * 100 >= filled * trace->gpu_milli) {
            curve[filled++] = 100.0 * (double)allocated / (double)trace->gpu_milli;
        }
        if (options->progress != NULL && (i % PROGRESS_EVERY == 0 || i + 1 == count)) {
            options->progress(options->context, number, i + 1, count);
        }
    }
    double end = 100.0 * (double)allocated / (double)trace->gpu_milli;
    while (filled < ACRE_PACKING_CURVE) {
        curve[filled++] = end;
    }
    packer->destroy(self);
    free(arrivals);
    return end;
}

static void spread_add(struct acre_packing_spread *spread, double value, uint32_t number,
                       uint32_t seeds) {
    spread->mean += value / seeds;
    spread->min = number == 0 ? value : ACRE_MIN(spread->min, value);
    spread->max = number == 0 ? value : ACRE_MAX(spread->max, value);
}

static const struct packer *find_packer(const char *name, struct acre_error *err) {
    char accepted[256] = "";
    for (size_t i = 0; i < ACRE_COUNT(packers); i++) {
        if (strcmp(packers[i]->name, name) == 0) {
            return packers[i];
        }
        size_t used = strlen(accepted);
        snprintf(accepted + used, sizeof(accepted) - used, "%s%s", i > 0 ? ", " : "",
                 packers[i]->name);
    }
    char shown[80];
    acre_fail(err, ACRE_EINVALID, "strategy: '%s' is not known; accepted: %s",
              acre_str_show(acre_str_from(name), shown, sizeof(shown)), accepted);
    return NULL;
}

int acre_packing_run(const struct acre_trace *trace, const struct acre_packing_options *options,
                     struct acre_packing_result *ret_result, struct acre_error *err) {
    ACRE_ASSERT(options->seeds > 0);
    const struct packer *packer = find_packer(options->strategy, err);
    if (packer == NULL) {
        return ACRE_EINVALID;
    }
    struct acre_packing_result result = {.strategy = packer->name, .seeds = options->seeds};
    for (uint32_t number = 0; number < options->seeds; number++) {
        double curve[ACRE_PACKING_CURVE];
        double end = run_seed(trace, packer, options, number, curve);
        spread_add(&result.at_100, curve[100], number, options->seeds);
        spread_add(&result.end, end, number, options->seeds);
        for (uint32_t i = 0; i < ACRE_PACKING_CURVE; i++) {
            result.curve[i] += curve[i] / options->seeds;
        }
    }
    *ret_result = result;
    return 0;
}
