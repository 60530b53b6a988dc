/* trace_ledger.c - converts a trace's tables to the ledger's. */
#include "sim/trace_ledger.h"

#include <stdio.h>

static void add_node(struct acre_ledger *ledger, const struct acre_trace *trace, uint32_t number) {
    const struct trace_node *node = &trace->nodes[number];
    struct acre_device_spec devices[64];
    char ids[64][32];
    for (uint32_t d = 0; d < node->gpus; d++) {
        snprintf(ids[d], sizeof(ids[d]), "%u/%u", number, d);
        devices[d] = (struct acre_device_spec){.id = ids[d],
                                               .model = acre_names_text(trace->names, node->model)};
    }
    struct acre_node_spec spec = {
        .name = acre_names_text(trace->names, node->name),
        .cpu_milli = node->cpu_milli,
        .ram_mib = node->ram_mib,
        .devices = devices,
        .device_count = node->gpus,
    };
    uint32_t index;
    int r = acre_ledger_add_node(ledger, &spec, &index, NULL);
    ACRE_ASSERT(r == 0); /* the trace was checked when it was read */
}

struct acre_ledger *trace_ledger(const struct acre_trace *trace, enum acre_strategy strategy,
                                 uint32_t **ret_names) {
    struct acre_rules rules = *rules_default();
    rules.min_milli = 1; /* the traces have shares below a tenth */
    rules.max_allocations_per_device = ACRE_RULES_ALLOCATIONS_MAX;
    struct acre_ledger_options options = {.strategy = strategy, .rules = &rules};
    struct acre_ledger *ledger = acre_ledger_create(&options);
    for (uint32_t i = 0; i < trace->node_count; i++) {
        add_node(ledger, trace, i);
    }
    uint32_t name_count = acre_names_count(trace->names) + 1;
    uint32_t *names = acre_calloc(name_count, sizeof(*names));
    for (uint32_t i = 1; i < name_count; i++) {
        struct acre_str text = acre_str_from(acre_names_text(trace->names, i));
        names[i] = acre_names_intern(acre_ledger_names(ledger), text);
    }
    *ret_names = names;
    return ledger;
}

struct acre_request trace_request(const struct trace_task *task, const uint32_t *names) {
    struct acre_request request = {
        .replicas = 1,
        .gpus = task->gpus,
        .milli = task->milli,
        .cpu_milli = task->cpu_milli,
        .ram_mib = task->ram_mib,
    };
    for (uint32_t i = 0; i < ACRE_REQUEST_MODELS_MAX; i++) {
        request.models[i] = names[task->models[i]];
    }
    return request;
}
