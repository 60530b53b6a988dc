/* trace_ledger.h - turns a trace's nodes into a ledger, and its tasks into requests. Pure. */
#ifndef ACRE_SIM_TRACE_LEDGER_H
#define ACRE_SIM_TRACE_LEDGER_H

#include "ledger/nodes.h"
#include "sim/trace.h"

/* A ledger with the trace's nodes. Device memory is left unknown: the traces do not have it.
 * `ret_names` receives the trace's names in the ledger, for the caller to free. */
struct acre_ledger *trace_ledger(const struct acre_trace *trace, enum acre_strategy strategy,
                                 uint32_t **ret_names);
struct acre_request trace_request(const struct trace_task *task, const uint32_t *names);

#endif
