/* cluster.h - a trace's nodes as a ledger, and its tasks as requests. Pure. */
#ifndef ACRE_SIM_CLUSTER_H
#define ACRE_SIM_CLUSTER_H

#include "ledger/nodes.h"
#include "sim/trace.h"

/* A ledger with the trace's nodes. Device memory is left unknown: the traces do not have it.
 * `ret_names` receives the trace's names in the ledger, for the caller to free. */
struct acre_ledger *acre_cluster_create(const struct acre_trace *trace, enum acre_strategy strategy,
                                        uint32_t **ret_names);
struct acre_request acre_cluster_request(const struct acre_trace_task *task, const uint32_t *names);

#endif
