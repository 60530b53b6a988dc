/* Traces: nodes, an empty line, tasks. What is accepted is in range and can be packed by every
 * strategy; refusals name the file. */
#include "fuzz.h"
#include "sim/packing.h"

enum { ARRIVALS_FEW = 64, NODES_FEW = 8 };

static void check_nodes(const struct acre_trace *trace) {
    uint64_t milli = 0;
    for (uint32_t i = 0; i < trace->node_count; i++) {
        const struct trace_node *node = &trace->nodes[i];
        ACRE_ASSERT(acre_names_text(trace->names, node->name)[0] != '\0');
        ACRE_ASSERT(node->model <= acre_names_count(trace->names));
        ACRE_ASSERT(node->cpu_milli <= INT32_MAX && node->ram_mib <= INT32_MAX && node->gpus <= 64);
        milli += 1000 * (uint64_t)node->gpus;
        for (uint32_t j = 0; i < NODES_FEW && j < i; j++) {
            ACRE_ASSERT(trace->nodes[j].name != node->name);
        }
    }
    ACRE_ASSERT(milli > 0 && milli == trace->gpu_milli);
}

/* Returns the sum of the GPU requests. */
static uint64_t check_tasks(const struct acre_trace *trace) {
    uint64_t milli = 0;
    for (uint32_t i = 0; i < trace->task_count; i++) {
        const struct trace_task *task = &trace->tasks[i];
        ACRE_ASSERT(task->cpu_milli <= INT32_MAX && task->ram_mib <= INT32_MAX);
        ACRE_ASSERT(task->gpus <= 64 && task->milli <= 1000);
        ACRE_ASSERT(task->gpus > 0 ? task->milli > 0 : task->milli == 0);
        ACRE_ASSERT(task->gpus <= 1 || task->milli == 1000);
        ACRE_ASSERT(task->gpus > 0 || task->cpu_milli > 0 || task->ram_mib > 0);
        milli += (uint64_t)task->gpus * task->milli;
        bool ended = false;
        for (uint32_t m = 0; m < ACRE_REQUEST_MODELS_MAX; m++) {
            ACRE_ASSERT(task->models[m] <= acre_names_count(trace->names));
            ACRE_ASSERT(!ended || task->models[m] == 0);
            ended = task->models[m] == 0;
        }
    }
    ACRE_ASSERT(milli > 0);
    return milli;
}

static void pack(const struct acre_trace *trace, size_t choice) {
    size_t count = 0;
    while (acre_packing_strategy(count) != NULL) {
        count++;
    }
    struct acre_packing_options options = {
        .strategy = acre_packing_strategy(choice % count)->name, .seeds = 1, .first_seed = choice};
    struct acre_packing_result result;
    int r = acre_packing_run(trace, &options, &result, NULL);
    ACRE_ASSERT(r == 0 && result.at_100.mean >= 0 && result.at_100.mean <= result.end.mean &&
                result.end.mean <= 100);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *text = (const char *)data;
    const char *empty = size > 0 ? memmem(text, size, "\n\n", 2) : NULL;
    size_t cut = empty != NULL ? (size_t)(empty + 1 - text) : size;
    struct acre_str nodes = {text, cut};
    struct acre_str tasks = {text + ACRE_MIN(cut + 1, size), size - ACRE_MIN(cut + 1, size)};
    struct acre_trace *trace = NULL;
    struct acre_error err = {0};
    int r = trace_parse("nodes", nodes, "tasks", tasks, &trace, &err);
    if (r < 0) {
        acre_fuzz_check_error(&err, r);
        ACRE_ASSERT(trace == NULL);
        ACRE_ASSERT(strncmp(err.text, "nodes:", 6) == 0 || strncmp(err.text, "tasks:", 6) == 0);
        return 0;
    }
    check_nodes(trace);
    uint64_t milli = check_tasks(trace);
    bool few = trace->node_count <= NODES_FEW && trace->task_count <= ARRIVALS_FEW &&
               trace->gpu_milli * trace->task_count / milli <= ARRIVALS_FEW;
    if (few) {
        pack(trace, size);
    }
    trace_destroy(trace);
    return 0;
}
