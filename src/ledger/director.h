/* director.h - which node a placement goes to (CAP-7).
 *
 * In this order: the local node, if it is wanted and fits, even when a remote one is better; the
 * best node with a device that fits; where allowed, a CPU node (the local one if it is one, else
 * the shortest queue); else a refusal that says why. The place is reserved in the same call, so
 * a herd of placements between two reports spreads out; the caller commits the token when
 * the placement is made and cancels it when not.
 *
 * Labels and models are the caller's knowledge, asked through `facts`: a node must have all the
 * labels and at least one of the models. Models say which GPU, so a CPU node needs labels only.
 * Pure; one thread at a time. It knows nodes, not devices: the ledger chooses the device. */
#ifndef ACRE_LEDGER_DIRECTOR_H
#define ACRE_LEDGER_DIRECTOR_H

#include "ledger/capacity.h"

struct acre_director_facts {
    const void *context;
    bool (*has_label)(const void *context, uint32_t node, uint32_t label);
    bool (*has_model)(const void *context, uint32_t node, uint32_t model);
};

struct acre_director_request {
    uint64_t min_mib;    /* free on one device */
    uint32_t local_node; /* preferred; ACRE_CAPACITY_NO_NODE: no preference */
    const uint32_t *labels;
    uint32_t label_count;
    const uint32_t *models;
    uint32_t model_count; /* 0: any */
    bool cpu_allowed;
};

enum { ACRE_DIRECTOR_WHY_MAX = 256 };

struct acre_director_answer {
    uint32_t node;
    bool is_local;
    bool is_cpu;
    uint64_t token;                  /* of acre_capacity_reserve */
    char why[ACRE_DIRECTOR_WHY_MAX]; /* of a CPU node: why no GPU; else "" */
};

/* `facts` may be NULL when the request has no labels and no models; then no node is walked.
 * ACRE_ENOFIT: nothing fits; the text has the numbers. Nothing is reserved then. */
int acre_director_choose(struct acre_capacity *capacity, const struct acre_director_facts *facts,
                         const struct acre_director_request *request, uint64_t now_ms,
                         struct acre_director_answer *ret_answer, struct acre_error *err);

#endif
