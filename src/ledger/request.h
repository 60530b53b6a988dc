/* request.h - what a user or job asks for, in the ledger's units.
 *
 * A request is for `replicas` equal members, placed all or none; each member takes `gpus`
 * devices of one node, `milli` and/or `mib` of each, and CPU and RAM of that node. Names (models,
 * labels) are ids of acre_ledger_names. Pure; any thread. */
#ifndef ACRE_LEDGER_REQUEST_H
#define ACRE_LEDGER_REQUEST_H

#include "core/error.h"
#include "ledger/isolation.h"

enum {
    ACRE_REQUEST_REPLICAS_MAX = 4096, /* a gang over 4096 nodes; 512 nodes of 8 */
    ACRE_REQUEST_MODELS_MAX = 8,
    ACRE_REQUEST_LABELS_MAX = 8,
};

/* Where a request goes when several places would do (ALC-3). */
/* clang-format off */
#define ACRE_STRATEGIES(X)                                                                     \
    /* name          text                   meaning                                         */ \
    X(LEAST_WASTE,   "least-fragmentation", "keeps most room usable for similar requests")     \
    X(FIRST_FIT,     "first-fit",           "first node and device that fit")                  \
    X(BEST_FIT,      "best-fit",            "tightest fit: least of the device left free")     \
    X(WORST_FIT,     "worst-fit",           "emptiest device")                                 \
    X(ROUND_ROBIN,   "round-robin",         "next node after the last one used")               \
    X(LOAD_BALANCED, "load-balanced",       "lowest 0.7 share used + 0.3 allocations/10")
/* clang-format on */

enum acre_strategy {
    ACRE_STRATEGY_DEFAULT, /* the ledger's */
#define X(name, text, meaning) ACRE_STRATEGY_##name,
    ACRE_STRATEGIES(X)
#undef X
        ACRE_STRATEGY_COUNT,
};

const char *acre_strategy_name(enum acre_strategy strategy);
int acre_strategy_parse(const char *field, const char *text, enum acre_strategy *ret_strategy,
                        struct acre_error *err);

struct acre_request {
    uint32_t replicas; /* 1 ... ACRE_REQUEST_REPLICAS_MAX */
    uint32_t gpus;     /* devices a replica: 0 (CPU only) ... 64 */
    uint32_t milli;    /* of each device: 0 (by memory alone) or 1 ... 1000 */
    uint64_t mib;      /* of each device; 0: in proportion to milli */
    uint64_t cpu_milli;
    uint64_t ram_mib;
    bool exclusive; /* sharing off: each device is taken alone and whole */
    enum acre_isolation isolation;
    enum acre_strategy strategy;
    uint32_t vendor;                          /* 0: any */
    uint32_t models[ACRE_REQUEST_MODELS_MAX]; /* any of these; 0 ends the list */
    uint32_t labels[ACRE_REQUEST_LABELS_MAX]; /* all of these; 0 ends the list */

    uint64_t owner; /* the caller's id: a job, a silo */
    uint32_t tenant;
    uint64_t expires_ms;  /* 0: open-ended */
    bool overstays;       /* expires_ms is when it should end; only a release ends it */
    uint64_t reservation; /* draw on this active reservation; 0: on free devices */
    bool pending;         /* keep it; acre_ledger_activate makes it active */
};

/* How many parts a placement of this request has. */
uint32_t acre_request_parts(const struct acre_request *request);

#endif
