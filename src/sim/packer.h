/* packer.h - the interface of what places tasks in the packing experiment. Private to src/sim. */
#ifndef ACRE_SIM_PACKER_H
#define ACRE_SIM_PACKER_H

#include "sim/packing.h"

struct packer {
    struct acre_packing_strategy about;
    enum acre_strategy strategy; /* of the ledger's packers */
    void *(*create)(const struct acre_trace *trace, const struct packer *packer, uint64_t seed);
    bool (*place)(void *self, const struct trace_task *task);
    void (*destroy)(void *self);
};

/* The rules published with the experiment (baseline.c). */
extern const struct packer packer_best_fit, packer_fgd, packer_random;

#endif
