/* packing.c - runs the packing experiment: tasks, arrivals and results.
 *
 * A strategy is a row: how to build a cluster from the trace, and how to place a task on it. The
 * arrivals are indexes into the trace's tasks, drawn and shuffled by the seed alone, so that every
 * strategy sees the same ones. */
#include "sim/packing.h"

#include "core/rand.h"
#include "sim/packer.h"
#include "sim/trace_ledger.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    INFLATION_PCT = 130,
    PROGRESS_EVERY = 256,
    ARRIVALS_MAX = 16 << 20, /* four times the longest list; 64 MiB of indexes */
};

/* The real ledger. */
struct ledger_packer {
    struct acre_ledger *ledger;
    uint32_t *names; /* the trace's names in the ledger */
};

static void *ledger_create(const struct acre_trace *trace, const struct packer *packer,
                           uint64_t seed) {
    (void)seed;
    struct ledger_packer *self = acre_calloc(1, sizeof(*self));
    self->ledger = trace_ledger(trace, packer->strategy, &self->names);
    return self;
}

static bool ledger_place(void *context, const struct trace_task *task) {
    struct ledger_packer *self = context;
    struct acre_request request = trace_request(task, self->names);
    uint64_t id;
    int r = acre_ledger_allocate(self->ledger, &request, 0, &id, NULL);
    ACRE_ASSERT(r == 0 || r == ACRE_ENOFIT); /* so were the tasks */
    return r == 0;
}

static void ledger_destroy(void *context) {
    struct ledger_packer *self = context;
    acre_ledger_destroy(self->ledger);
    free(self->names);
    free(self);
}

#define LEDGER_PACKER(name, meaning, strategy)                                                     \
    { {name, meaning}, strategy, ledger_create, ledger_place, ledger_destroy }

static const struct packer ledger_packers[] = {
    LEDGER_PACKER("least-fragmentation",
                  "Acre's default: keeps the most room usable for the mix of requests",
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

const struct acre_packing_strategy *acre_packing_strategy(size_t index) {
    return index < ACRE_COUNT(packers) ? &packers[index]->about : NULL;
}

static uint64_t task_milli(const struct trace_task *task) {
    return (uint64_t)task->gpus * task->milli;
}

struct arrivals {
    uint32_t *tasks; /* indexes, in order of arrival */
    uint32_t count;
};

static int add_clones(const struct acre_trace *trace, struct acre_rand *rand,
                      uint64_t missing_milli, struct arrivals *arrivals, struct acre_error *err) {
    uint32_t capacity = arrivals->count;
    uint64_t sum = 0;
    while (sum < missing_milli) {
        if (arrivals->count == ARRIVALS_MAX) {
            return acre_fail(err, ACRE_ELIMIT,
                             "the tasks are too small: %d of them request less than %d %% of the "
                             "cluster's GPUs",
                             ARRIVALS_MAX, INFLATION_PCT);
        }
        arrivals->tasks =
            acre_grow(arrivals->tasks, arrivals->count, &capacity, sizeof(*arrivals->tasks));
        uint32_t clone = (uint32_t)acre_rand_below(rand, trace->task_count);
        arrivals->tasks[arrivals->count++] = clone;
        sum += task_milli(&trace->tasks[clone]);
    }
    return 0;
}

/* Until the next one to go would be one too many. */
static void remove_some(const struct acre_trace *trace, struct acre_rand *rand,
                        uint64_t surplus_milli, struct arrivals *arrivals) {
    while (surplus_milli > 0) {
        uint32_t at = (uint32_t)acre_rand_below(rand, arrivals->count);
        uint64_t milli = task_milli(&trace->tasks[arrivals->tasks[at]]);
        if (milli > surplus_milli) {
            return;
        }
        surplus_milli -= milli;
        arrivals->tasks[at] = arrivals->tasks[--arrivals->count];
    }
}

static int draw_arrivals(const struct acre_trace *trace, struct acre_rand *rand,
                         struct arrivals *ret_arrivals, struct acre_error *err) {
    uint64_t target = trace->gpu_milli * INFLATION_PCT / 100;
    uint64_t sum = 0;
    struct arrivals arrivals = {acre_calloc(trace->task_count, sizeof(*arrivals.tasks)),
                                trace->task_count};
    for (uint32_t i = 0; i < arrivals.count; i++) {
        arrivals.tasks[i] = i;
        sum += task_milli(&trace->tasks[i]);
    }
    int r = 0;
    if (sum < target) {
        r = add_clones(trace, rand, target - sum, &arrivals, err);
    } else {
        remove_some(trace, rand, sum - target, &arrivals);
    }
    if (r < 0) {
        free(arrivals.tasks);
        return r;
    }
    acre_rand_shuffle(rand, arrivals.tasks, arrivals.count, sizeof(*arrivals.tasks));
    *ret_arrivals = arrivals;
    return 0;
}

/* One seed; fills the curve, in %. */
static int run_seed(const struct acre_trace *trace, const struct packer *packer,
                    const struct acre_packing_options *options, uint32_t number, double *curve,
                    double *ret_end, struct acre_error *err) {
    struct acre_rand rand;
    uint64_t seed = options->first_seed + number;
    acre_rand_seed(&rand, seed);
    struct arrivals arrivals;
    int r = draw_arrivals(trace, &rand, &arrivals, err);
    if (r < 0) {
        return r;
    }
    void *self = packer->create(trace, packer, seed);
    uint64_t arrived = 0;
    uint64_t allocated = 0;
    uint32_t filled = 0;
    for (uint32_t i = 0; i < arrivals.count; i++) {
        const struct trace_task *task = &trace->tasks[arrivals.tasks[i]];
        arrived += task_milli(task);
        allocated += packer->place(self, task) ? task_milli(task) : 0;
        while (filled < ACRE_PACKING_CURVE && arrived * 100 >= filled * trace->gpu_milli) {
            curve[filled++] = 100.0 * (double)allocated / (double)trace->gpu_milli;
        }
        if (options->progress != NULL && (i % PROGRESS_EVERY == 0 || i + 1 == arrivals.count)) {
            options->progress(options->context, number, i + 1, arrivals.count);
        }
    }
    double end = 100.0 * (double)allocated / (double)trace->gpu_milli;
    while (filled < ACRE_PACKING_CURVE) {
        curve[filled++] = end;
    }
    packer->destroy(self);
    free(arrivals.tasks);
    *ret_end = end;
    return 0;
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
        if (strcmp(packers[i]->about.name, name) == 0) {
            return packers[i];
        }
        size_t used = strlen(accepted);
        snprintf(accepted + used, sizeof(accepted) - used, "%s%s", i > 0 ? ", " : "",
                 packers[i]->about.name);
    }
    char shown[80];
    acre_fail(err, ACRE_EINVALID, "unknown strategy '%s'; accepted: %s",
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
    struct acre_packing_result result = {.strategy = packer->about.name, .seeds = options->seeds};
    for (uint32_t number = 0; number < options->seeds; number++) {
        double curve[ACRE_PACKING_CURVE];
        double end;
        int r = run_seed(trace, packer, options, number, curve, &end, err);
        if (r < 0) {
            return r;
        }
        spread_add(&result.at_100, curve[100], number, options->seeds);
        spread_add(&result.end, end, number, options->seeds);
        for (uint32_t i = 0; i < ACRE_PACKING_CURVE; i++) {
            result.curve[i] += curve[i] / options->seeds;
        }
    }
    *ret_result = result;
    return 0;
}
