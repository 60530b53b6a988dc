/* trace.c - reads recorded nodes and tasks strictly.
 *
 * One pass over each text, a row at a time, into an array that doubles. Names are interned, so a
 * repeated node is one whose name already has an id; only then are the nodes searched. */
#include "sim/trace.h"

#include "core/csv.h"
#include "core/file.h"
#include "core/units.h"

#include <stdlib.h>

enum {
    FILE_MAX_BYTES = 256 << 20, /* three million tasks */
    ROWS_MAX = 4 << 20,
    NODE_GPUS_MAX = 64, /* what a ledger node may have */
    NODE_NAME_MAX = 128,
    MODEL_NAME_MAX = 64,
};

enum { NODE_NAME, NODE_CPU, NODE_RAM, NODE_GPUS, NODE_MODEL, NODE_COLUMNS };
static const char *const node_columns[NODE_COLUMNS] = {"sn", "cpu_milli", "memory_mib", "gpu",
                                                       "model"};

enum { TASK_CPU, TASK_RAM, TASK_GPUS, TASK_MILLI, TASK_MODELS, TASK_COLUMNS };
static const char *const task_columns[TASK_COLUMNS] = {"cpu_milli", "memory_mib", "num_gpu",
                                                       "gpu_milli", "gpu_spec"};

static int read_u32(const struct acre_csv *csv, uint32_t column, uint64_t max, uint32_t *ret_value,
                    struct acre_error *err) {
    uint64_t value;
    int r = acre_csv_u64(csv, column, 0, max, &value, err);
    if (r == 0) {
        *ret_value = (uint32_t)value;
    }
    return r;
}

static int check_name(const struct acre_csv *csv, uint32_t column, struct acre_str name, size_t max,
                      struct acre_error *err) {
    if (acre_str_is_name(name, max)) {
        return 0;
    }
    char shown[64];
    return acre_csv_fail(csv, column, err,
                         "'%s' is not a valid name; accepted: 1 to %zu letters, digits and -_./:@+",
                         acre_str_show(name, shown, sizeof(shown)), max);
}

static int parse_node(struct acre_trace *trace, const struct acre_csv *csv, struct trace_node *node,
                      struct acre_error *err) {
    struct acre_str name = acre_csv_cell(csv, NODE_NAME);
    struct acre_str model = acre_csv_cell(csv, NODE_MODEL);
    int r = check_name(csv, NODE_NAME, name, NODE_NAME_MAX, err);
    if (r == 0 && model.length > 0) {
        r = check_name(csv, NODE_MODEL, model, MODEL_NAME_MAX, err);
    }
    if (r < 0) {
        return r;
    }
    uint32_t known = acre_names_count(trace->names);
    node->name = acre_names_intern(trace->names, name);
    node->model = acre_names_intern(trace->names, model);
    if (node->name <= known) {
        for (uint32_t i = 0; i < trace->node_count; i++) {
            if (trace->nodes[i].name == node->name) {
                char shown[64];
                return acre_csv_fail(csv, NODE_NAME, err, "node '%s' appears twice",
                                     acre_str_show(name, shown, sizeof(shown)));
            }
        }
    }
    r = read_u32(csv, NODE_CPU, INT32_MAX, &node->cpu_milli, err);
    if (r == 0) {
        r = read_u32(csv, NODE_RAM, INT32_MAX, &node->ram_mib, err);
    }
    return r == 0 ? read_u32(csv, NODE_GPUS, NODE_GPUS_MAX, &node->gpus, err) : r;
}

static int parse_models(struct acre_trace *trace, const struct acre_csv *csv,
                        struct trace_task *task, struct acre_error *err) {
    struct acre_str list = {0};
    if (csv->wanted > TASK_MODELS) {
        list = acre_csv_cell(csv, TASK_MODELS);
    }
    if (list.length == 0) {
        return 0;
    }
    struct acre_split split = acre_split_begin(list, '|');
    struct acre_str model;
    uint32_t count = 0;
    while (acre_split_next(&split, &model)) {
        if (count == ACRE_REQUEST_MODELS_MAX) {
            char shown[64];
            return acre_csv_fail(
                csv, TASK_MODELS, err, "'%s' lists too many models; accepted: at most %d",
                acre_str_show(list, shown, sizeof(shown)), ACRE_REQUEST_MODELS_MAX);
        }
        int r = check_name(csv, TASK_MODELS, model, MODEL_NAME_MAX, err);
        if (r < 0) {
            return r;
        }
        task->models[count++] = acre_names_intern(trace->names, model);
    }
    return 0;
}

static int parse_task(struct acre_trace *trace, const struct acre_csv *csv, struct trace_task *task,
                      struct acre_error *err) {
    *task = (struct trace_task){0};
    int r = read_u32(csv, TASK_CPU, INT32_MAX, &task->cpu_milli, err);
    if (r == 0) {
        r = read_u32(csv, TASK_RAM, INT32_MAX, &task->ram_mib, err);
    }
    if (r == 0) {
        r = read_u32(csv, TASK_GPUS, NODE_GPUS_MAX, &task->gpus, err);
    }
    if (r == 0) {
        r = read_u32(csv, TASK_MILLI, 1000, &task->milli, err);
    }
    if (r < 0) {
        return r;
    }
    if (task->gpus == 0 ? task->milli != 0 : task->milli == 0) {
        return acre_csv_fail(csv, TASK_MILLI, err,
                             "%u with num_gpu %u; accepted: 0 without GPUs, 1 to 1000 with them",
                             task->milli, task->gpus);
    }
    if (task->gpus > 1 && task->milli != 1000) {
        return acre_csv_fail(csv, TASK_MILLI, err, "%u with num_gpu %u; accepted: 1000",
                             task->milli, task->gpus);
    }
    if (task->gpus == 0 && task->cpu_milli == 0 && task->ram_mib == 0) {
        return acre_csv_fail(csv, TASK_CPU, err,
                             "0 with memory_mib 0 and num_gpu 0; accepted: one of them above 0");
    }
    return parse_models(trace, csv, task, err);
}

static int parse_nodes(struct acre_trace *trace, const char *name, struct acre_str text,
                       struct acre_error *err) {
    struct acre_csv csv;
    uint32_t capacity = 0;
    int r = acre_csv_begin(&csv, name, text, node_columns, NODE_COLUMNS, err);
    while (r >= 0 && (r = acre_csv_next(&csv, err)) > 0) {
        if (trace->node_count == ROWS_MAX) {
            return acre_fail(err, ACRE_ELIMIT, "%s: more than %d nodes", name, ROWS_MAX);
        }
        trace->nodes = acre_grow(trace->nodes, trace->node_count, &capacity, sizeof(*trace->nodes));
        r = parse_node(trace, &csv, &trace->nodes[trace->node_count], err);
        if (r == 0) {
            trace->gpu_milli += 1000 * (uint64_t)trace->nodes[trace->node_count++].gpus;
        }
    }
    if (r == 0 && trace->gpu_milli == 0) {
        return acre_fail(err, ACRE_EINVALID,
                         "%s: column 'gpu' is 0 in every row; at least one node needs a GPU", name);
    }
    return r;
}

/* Some lists have no model constraints at all, and no column for them. */
static int begin_tasks(struct acre_csv *csv, const char *name, struct acre_str text,
                       struct acre_error *err) {
    int r = acre_csv_begin(csv, name, text, task_columns, TASK_MODELS, err);
    bool with_models = false;
    for (uint32_t i = 0; r == 0 && i < csv->columns; i++) { /* the fields are the header's now */
        with_models |= acre_str_is(csv->cells[i], task_columns[TASK_MODELS]);
    }
    return with_models ? acre_csv_begin(csv, name, text, task_columns, TASK_COLUMNS, err) : r;
}

static int parse_tasks(struct acre_trace *trace, const char *name, struct acre_str text,
                       struct acre_error *err) {
    struct acre_csv csv;
    uint32_t capacity = 0;
    bool any_gpu = false;
    int r = begin_tasks(&csv, name, text, err);
    while (r >= 0 && (r = acre_csv_next(&csv, err)) > 0) {
        if (trace->task_count == ROWS_MAX) {
            return acre_fail(err, ACRE_ELIMIT, "%s: more than %d tasks", name, ROWS_MAX);
        }
        trace->tasks = acre_grow(trace->tasks, trace->task_count, &capacity, sizeof(*trace->tasks));
        r = parse_task(trace, &csv, &trace->tasks[trace->task_count], err);
        if (r == 0) {
            any_gpu |= trace->tasks[trace->task_count++].gpus > 0;
        }
    }
    if (r == 0 && !any_gpu) {
        return acre_fail(err, ACRE_EINVALID,
                         "%s: column 'num_gpu' is 0 in every row; at least one task needs a GPU",
                         name);
    }
    return r;
}

int trace_parse(const char *nodes_name, struct acre_str nodes, const char *tasks_name,
                struct acre_str tasks, struct acre_trace **ret_trace, struct acre_error *err) {
    struct acre_trace *trace = acre_calloc(1, sizeof(*trace));
    trace->names = acre_names_create();
    int r = parse_nodes(trace, nodes_name, nodes, err);
    if (r == 0) {
        r = parse_tasks(trace, tasks_name, tasks, err);
    }
    if (r < 0) {
        trace_destroy(trace);
        return r;
    }
    *ret_trace = trace;
    return 0;
}

int trace_load(const char *nodes_path, const char *tasks_path, struct acre_trace **ret_trace,
               struct acre_error *err) {
    struct acre_buf nodes;
    struct acre_buf tasks;
    acre_buf_init(&nodes, FILE_MAX_BYTES);
    acre_buf_init(&tasks, FILE_MAX_BYTES);
    int r = acre_file_read(nodes_path, FILE_MAX_BYTES, &nodes, err);
    if (r == 0) {
        r = acre_file_read(tasks_path, FILE_MAX_BYTES, &tasks, err);
    }
    if (r == 0) {
        r = trace_parse(nodes_path, (struct acre_str){nodes.data, nodes.length}, tasks_path,
                        (struct acre_str){tasks.data, tasks.length}, ret_trace, err);
    }
    acre_buf_finish(&nodes);
    acre_buf_finish(&tasks);
    return r;
}

void trace_destroy(struct acre_trace *trace) {
    if (trace != NULL) {
        acre_names_destroy(trace->names);
        free(trace->nodes);
        free(trace->tasks);
        free(trace);
    }
}
