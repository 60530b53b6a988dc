/* capacity.h - what each node has and what is free there, and which one is best (CAP-1 to CAP-9).
 *
 * A node's report is made of what the daemon knows: its devices, their memory, what the ledger has
 * not given and no other program uses, and how many jobs hold something there (running, or placed
 * and about to start; jobs that wait stand in the queue of the cluster, not of a node). It is made
 * again every 30 s and whenever something has changed. A node whose devices are read again and
 * again is as old as its last reading: it becomes stale when readings stop. All others are as new
 * as the ledger. A lost node has no report.
 *
 * Loop thread only. Nothing here places anything: the ledger does, and is exact. */
#ifndef ACRE_DESK_CAPACITY_H
#define ACRE_DESK_CAPACITY_H

#include "desk/desk.h"
#include "ledger/balance.h"
#include "ledger/director.h"

/* False: the node has no report (lost, or silent for five minutes). */
bool acre_desk_capacity(struct acre_desk *desk, uint32_t node, struct acre_capacity_view *ret_view);
struct acre_capacity_stats acre_desk_capacity_stats(struct acre_desk *desk);
/* Of a report: "cuda", "hip", "opencl", "cpu", "mixed" or "unknown". */
const char *acre_desk_backend_name(uint32_t backend);

/* What is asked for; texts are borrowed. */
struct acre_best_request {
    uint64_t min_mib; /* free on one device, which also has the model and the vendor */
    const char *const *models;
    uint32_t model_count; /* 0: any; part of the name is enough: "h100" */
    const char *vendor;   /* NULL: any; upper and lower case are the same */
    const char *const *labels;
    uint32_t label_count;
    uint32_t near; /* preferred if it fits; ACRE_CAPACITY_NO_NODE: none */
    bool cpu_allowed;
};

/* The director's choice, without taking the place. ACRE_ENOFIT: the text has the numbers. */
int acre_desk_best_node(struct acre_desk *desk, const struct acre_best_request *request,
                        struct acre_director_answer *ret_answer, struct acre_error *err);

/* How loaded a device is. `queue` is the share of it that is given to jobs; the prediction comes
 * from the last two minutes. */
struct acre_device_load {
    struct acre_balance_load load; /* utilisation 0 when it is not known */
    bool has_utilisation;
    bool has_memory;
    bool drained; /* it takes nothing: neither advice nor choice include it */
};
void acre_desk_device_load(struct acre_desk *desk, uint32_t device,
                           struct acre_device_load *ret_load);

#endif
