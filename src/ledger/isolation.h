/* isolation.h - how two allocations on one GPU are kept apart (ALC-4).
 *
 * Names as in annotations, requests and policies. Pure; any thread. */
#ifndef ACRE_LEDGER_ISOLATION_H
#define ACRE_LEDGER_ISOLATION_H

#include "core/str.h"

/* clang-format off */
#define ACRE_ISOLATIONS(X)                                             \
    /* name          text            what keeps them apart          */ \
    X(NONE,          "none")         /* nothing                     */ \
    X(TIME_SLICING,  "time-slicing") /* turns on the whole GPU      */ \
    X(MPS,           "mps")          /* CUDA MPS or its equivalent  */ \
    X(MIG,           "mig")          /* a hardware slice each       */
/* clang-format on */

enum acre_isolation {
#define X(name, text) ACRE_ISOLATION_##name,
    ACRE_ISOLATIONS(X)
#undef X
        ACRE_ISOLATION_COUNT
};

#define ACRE_ISOLATION_CHOICES "none, time-slicing, mps or mig"

const char *isolation_name(enum acre_isolation isolation);
/* Exact, lower case. False: no such isolation, and the output is untouched. */
bool isolation_parse(struct acre_str text, enum acre_isolation *ret_isolation);

#endif
