/* trace.h - reads recorded clusters and task lists, in the CSV format of the openb traces.
 *
 *   nodes: sn,cpu_milli,memory_mib,gpu,model
 *   tasks: name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec (further columns are ignored)
 *
 * gpu_milli is 1000 for whole devices; a share of one device has num_gpu 1 and gpu_milli below
 * 1000. gpu_spec is a list of allowed models, "V100M16|V100M32", empty (or no such column) for any.
 * Reading files is the only I/O; parsing is pure. */
#ifndef ACRE_SIM_TRACE_H
#define ACRE_SIM_TRACE_H

#include "core/names.h"
#include "ledger/request.h"

struct trace_node {
    uint32_t name; /* of acre_trace.names, as all names here */
    uint32_t model;
    uint32_t cpu_milli;
    uint32_t ram_mib;
    uint32_t gpus;
};

struct trace_task {
    uint32_t cpu_milli;
    uint32_t ram_mib;
    uint32_t gpus;
    uint32_t milli;                           /* of each; 0 when there are none */
    uint32_t models[ACRE_REQUEST_MODELS_MAX]; /* any of these; 0 ends the list */
};

struct acre_trace {
    struct acre_names *names;
    struct trace_node *nodes;
    struct trace_task *tasks;
    uint32_t node_count;
    uint32_t task_count;
    uint64_t gpu_milli; /* of all nodes */
};

/* Parse both texts; the names are for messages. On failure nothing is returned. */
int trace_parse(const char *nodes_name, struct acre_str nodes, const char *tasks_name,
                struct acre_str tasks, struct acre_trace **ret_trace, struct acre_error *err);
int trace_load(const char *nodes_path, const char *tasks_path, struct acre_trace **ret_trace,
               struct acre_error *err);
void trace_destroy(struct acre_trace *trace); /* NULL is fine */

#endif
