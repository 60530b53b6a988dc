/* churn.c - measure what a strategy refuses while tasks come and go.
 *
 *   build/bench/churn --nodes N.csv --tasks T.csv --load 95 --strategy least-fragmentation --json
 *
 * Tasks of the list arrive at random (Poisson) and stay for a random time (exponential), such that
 * they would keep `load` percent of all GPUs busy if none were refused. The same seed gives the
 * same arrivals and stays to every strategy. The first third is not counted: the cluster fills
 * then. */
#include "bench.h"

#include "core/rand.h"
#include "sim/trace_ledger.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct options {
    bool json; /* bench_main's */
    const char *nodes;
    const char *tasks;
    const char *strategy;
    uint64_t load_pct;
    uint64_t arrivals;
    uint64_t seed;
};

/* A task that runs; the heap is ordered by when it leaves. */
struct stay {
    double leaves_at;
    uint64_t allocation;
    uint64_t milli;
};

struct churn {
    const struct acre_trace *trace;
    struct acre_ledger *ledger;
    uint32_t *names; /* the trace's names in the ledger */
    struct stay *stays;
    size_t count, capacity;
    double now;
    double used_milli;
    double used_time; /* integral of used_milli over time */
};

struct tally {
    double asked_milli, refused_milli;
    double asked_multi, refused_multi; /* of tasks with more than one GPU */
};

static void stays_push(struct churn *churn, struct stay stay) {
    if (churn->count == churn->capacity) {
        churn->capacity = 2 * churn->capacity + 1024;
        churn->stays = acre_realloc(churn->stays, churn->capacity, sizeof(*churn->stays));
    }
    size_t at = churn->count++;
    while (at > 0 && churn->stays[(at - 1) / 2].leaves_at > stay.leaves_at) {
        churn->stays[at] = churn->stays[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    churn->stays[at] = stay;
}

static struct stay stays_pop(struct churn *churn) {
    struct stay first = churn->stays[0];
    struct stay last = churn->stays[--churn->count];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < churn->count; at = child) {
        if (child + 1 < churn->count &&
            churn->stays[child + 1].leaves_at < churn->stays[child].leaves_at) {
            child++;
        }
        if (churn->stays[child].leaves_at >= last.leaves_at) {
            break;
        }
        churn->stays[at] = churn->stays[child];
    }
    churn->stays[at] = last;
    return first;
}

static void advance(struct churn *churn, double to) {
    while (churn->count > 0 && churn->stays[0].leaves_at <= to) {
        struct stay stay = stays_pop(churn);
        churn->used_time += churn->used_milli * (stay.leaves_at - churn->now);
        churn->now = stay.leaves_at;
        churn->used_milli -= (double)stay.milli;
        acre_ledger_release(churn->ledger, stay.allocation, ACRE_ALLOCATION_COMPLETED, 0, NULL);
    }
    churn->used_time += churn->used_milli * (to - churn->now);
    churn->now = to;
}

static void arrive(struct churn *churn, const struct trace_task *task, double stays_for,
                   struct tally *tally) {
    struct acre_request request = trace_request(task, churn->names);
    uint64_t milli = (uint64_t)task->gpus * task->milli;
    uint64_t id;
    bool placed = acre_ledger_allocate(churn->ledger, &request, 0, &id, NULL) == 0;
    if (placed) {
        stays_push(churn, (struct stay){churn->now + stays_for, id, milli});
        churn->used_milli += (double)milli;
    }
    double refused = placed ? 0 : (double)milli;
    tally->asked_milli += (double)milli;
    tally->refused_milli += refused;
    tally->asked_multi += task->gpus > 1 ? (double)milli : 0;
    tally->refused_multi += task->gpus > 1 ? refused : 0;
}

static double exponential(struct acre_rand *rand, double mean) {
    return -mean * log(1 - acre_rand_unit(rand));
}

static void run_churn(struct churn *churn, const struct options *options, struct acre_json *json) {
    const struct acre_trace *trace = churn->trace;
    double mean_milli = 0;
    for (uint32_t i = 0; i < trace->task_count; i++) {
        mean_milli += (double)trace->tasks[i].gpus * trace->tasks[i].milli / trace->task_count;
    }
    /* One arrival per unit of time: then Little's law gives the mean stay. */
    double mean_stay = (double)options->load_pct / 100 * (double)trace->gpu_milli / mean_milli;
    struct acre_rand rand;
    acre_rand_seed(&rand, options->seed);
    struct tally tally = {0};
    double counted_from = 0;
    for (uint64_t i = 0; i < options->arrivals; i++) {
        double gap = exponential(&rand, 1);
        double stays_for = exponential(&rand, mean_stay);
        uint64_t which = acre_rand_below(&rand, trace->task_count);
        advance(churn, churn->now + gap);
        if (i == options->arrivals / 3) {
            tally = (struct tally){0};
            churn->used_time = 0;
            counted_from = churn->now;
        }
        arrive(churn, &trace->tasks[which], stays_for, &tally);
    }
    double span = (churn->now - counted_from) * (double)trace->gpu_milli;
    acre_json_put_double(json, "allocated_pct", 100 * churn->used_time / span, 2);
    acre_json_put_double(json, "refused_pct", 100 * tally.refused_milli / tally.asked_milli, 3);
    if (tally.asked_multi > 0) {
        acre_json_put_double(json, "refused_multi_gpu_pct",
                             100 * tally.refused_multi / tally.asked_multi, 3);
    }
}

static void run(const void *context, struct acre_json *json) {
    const struct options *options = context;
    struct acre_error err = {0};
    struct acre_trace *trace = NULL;
    enum acre_strategy strategy;
    if (acre_strategy_parse("--strategy", options->strategy, &strategy, &err) < 0 ||
        trace_load(options->nodes, options->tasks, &trace, &err) < 0) {
        bench_fail("%s", err.text);
    }
    struct churn churn = {.trace = trace};
    churn.ledger = trace_ledger(trace, strategy, &churn.names);
    acre_json_put_string(json, "strategy", acre_strategy_name(strategy));
    acre_json_put_u64(json, "load_pct", options->load_pct);
    acre_json_put_u64(json, "arrivals", options->arrivals);
    run_churn(&churn, options, json);
    acre_ledger_destroy(churn.ledger);
    trace_destroy(trace);
    free(churn.names);
    free(churn.stays);
}

#define AT(field) offsetof(struct options, field)
static const struct acre_opt rows[] = {
    {"nodes", 0, ACRE_OPT_STRING, AT(nodes), "FILE", "nodes, CSV", 0, 0, NULL, true, NULL},
    {"tasks", 0, ACRE_OPT_STRING, AT(tasks), "FILE", "tasks, CSV", 0, 0, NULL, true, NULL},
    {"strategy", 's', ACRE_OPT_STRING, AT(strategy), "NAME", "a strategy of the ledger", 0, 0, NULL,
     false, NULL},
    {"load", 0, ACRE_OPT_COUNT, AT(load_pct), "PCT", "offered load", 1, 1000, NULL, false, NULL},
    {"arrivals", 0, ACRE_OPT_COUNT, AT(arrivals), "N", "total number of tasks", 100, 100000000,
     NULL, false, NULL},
    {"seed", 0, ACRE_OPT_COUNT, AT(seed), "N", "seed of arrivals and durations", 0, UINT64_MAX,
     NULL, false, NULL},
};

static const struct options defaults = {
    .strategy = "least-fragmentation", .load_pct = 95, .arrivals = 60000, .seed = 1};

static const struct acre_command command = {
    .name = "churn",
    .summary = "measure what a strategy refuses while tasks come and go",
    .usage = "churn --nodes FILE --tasks FILE [options]",
    .options = rows,
    .option_count = ACRE_COUNT(rows),
    .options_size = sizeof(struct options),
    .defaults = &defaults,
};

int main(int argc, char **argv) {
    return bench_main(&command, argc, argv, run);
}
