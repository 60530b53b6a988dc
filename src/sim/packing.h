/* packing.h - measures how full a cluster gets when tasks arrive one by one.
 *
 * The experiment of "Beware of Fragmentation" (ATC'23): for each seed, shuffle the task list, with
 * random tasks cloned or removed until the GPU requests sum to 130 % of the cluster's GPUs. Tasks
 * never leave; one that does not fit is skipped, but counts as arrived. Pure except for the
 * progress call; the ledger, or a published rule (baseline.c), chooses the places. */
#ifndef ACRE_SIM_PACKING_H
#define ACRE_SIM_PACKING_H

#include "sim/trace.h"

enum { ACRE_PACKING_CURVE = 131 }; /* allocated % at 0 ... 130 % arrived */

struct acre_packing_options {
    const char *strategy; /* one of acre_packing_strategy */
    uint32_t seeds;
    uint64_t first_seed;
    void (*progress)(void *context, uint32_t seed, uint32_t arrived, uint32_t tasks);
    void *context;
};

struct acre_packing_spread {
    double mean, min, max;
};

struct acre_packing_result {
    const char *strategy;
    uint32_t seeds;
    struct acre_packing_spread at_100; /* % of GPU capacity, when 100 % had arrived */
    struct acre_packing_spread end;    /* when all had */
    double curve[ACRE_PACKING_CURVE];  /* mean over seeds */
};

/* The strategies, from 0 on; NULL past the last. */
struct acre_packing_strategy {
    const char *name;
    const char *meaning;
};
const struct acre_packing_strategy *acre_packing_strategy(size_t index);

/* ACRE_EINVALID: unknown strategy. ACRE_ELIMIT: the tasks ask for so little that millions of
 * clones would not fill the cluster. */
int acre_packing_run(const struct acre_trace *trace, const struct acre_packing_options *options,
                     struct acre_packing_result *ret_result, struct acre_error *err);

#endif
