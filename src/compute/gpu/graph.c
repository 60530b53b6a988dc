/* graph.c - recorded work as one graph of the driver.
 *
 * Nodes are made one by one with their dependencies, not by capturing a stream: the shape is known,
 * and the handles of the launches are needed, because an update changes a launch in place. A fill
 * that takes several steps becomes a chain of nodes; nodes that wait for it wait for the last. The
 * graph is uploaded when it is made, so that its first launch costs the same as the others. */
#include "compute/gpu/entries.h"
#include "compute/gpu/seat.h"

#include <stdlib.h>

struct gpu_graph {
    struct gpu_link link;
    gpu_handle graph;
    gpu_handle made; /* what is launched */
    uint32_t count;
    struct gpu_node {
        gpu_handle node; /* the last of it */
        enum node_kind kind;
    } nodes[];
};

static int add_launch(const struct gpu_seat *seat, const struct native_launch *launch,
                      const struct gpu_graph *graph, const gpu_handle *after, size_t count,
                      gpu_handle *ret_node, struct acre_error *err) {
    struct gpu_args args;
    int r = gpu_args_make(launch, &args, err);
    if (r < 0) {
        return r;
    }
    struct gpu_grid_node node = {.function = gpu_kernel_of(launch->kernel)->function,
                                 .grid = &launch->grid,
                                 .args = args.pointers};
    return seat->gpu->vendor->node_launch(seat->gpu, ret_node, graph->graph, after, count, &node);
}

static int add_copy(const struct gpu_seat *seat, const struct native_copy *copy,
                    const struct gpu_graph *graph, const gpu_handle *after, size_t count,
                    gpu_handle *ret_node) {
    return seat->gpu->vendor->node_copy(
        seat->gpu, ret_node, graph->graph, after, count, seat->context,
        gpu_region_at(copy->to, copy->to_offset, copy->bytes),
        gpu_region_at(copy->from, copy->from_offset, copy->bytes), (size_t)copy->bytes);
}

static int add_fill(const struct gpu_seat *seat, const struct native_fill *fill,
                    const struct gpu_graph *graph, const gpu_handle *after, size_t count,
                    gpu_handle *ret_node) {
    const struct gpu *gpu = seat->gpu;
    struct gpu_step steps[GPU_STEPS_MAX];
    uint32_t step_count =
        gpu_fill_steps(gpu_region_of(fill->to)->address + (uintptr_t)fill->to_offset, fill, steps);
    gpu_handle last = 0;
    int code = 0;
    for (uint32_t i = 0; i < step_count && code == 0; i++) {
        const struct gpu_step *step = &steps[i];
        gpu_handle before = last;
        const gpu_handle *from = i == 0 ? after : &before;
        size_t from_count = i == 0 ? count : 1;
        code =
            step->element_bytes == 0
                ? gpu->vendor->node_copy(gpu, &last, graph->graph, from, from_count, seat->context,
                                         step->to, step->from, step->count)
                : gpu->vendor->node_set(gpu, &last, graph->graph, from, from_count, seat->context,
                                        step->to, step->value, step->element_bytes, step->count);
    }
    *ret_node = last;
    return code;
}

/* 0, ACRE_E* (with the text) or a code of the driver. */
static int add_node(const struct gpu_seat *seat, const struct native_node *from,
                    struct gpu_graph *graph, uint32_t index, gpu_handle *after,
                    struct acre_error *err) {
    struct gpu_node *to = &graph->nodes[index];
    to->kind = from->kind;
    for (uint32_t i = 0; i < from->after_count; i++) {
        ACRE_ASSERT(from->after[i] < index);
        after[i] = graph->nodes[from->after[i]].node;
    }
    switch (from->kind) {
    case ACRE_NODE_LAUNCH:
        return add_launch(seat, &from->launch, graph, after, from->after_count, &to->node, err);
    case ACRE_NODE_COPY:
        return add_copy(seat, &from->copy, graph, after, from->after_count, &to->node);
    case ACRE_NODE_FILL:
    default:
        return add_fill(seat, &from->fill, graph, after, from->after_count, &to->node);
    }
}

static int add_nodes(struct gpu_seat *seat, const struct native_node *nodes,
                     struct gpu_graph *graph, struct acre_error *err) {
    gpu_handle *after = calloc(graph->count, sizeof(*after)); /* fewer than nodes */
    if (after == NULL) {
        return acre_fail(err, ACRE_ENOMEM, "graph of %u nodes", graph->count);
    }
    int r = 0;
    uint32_t index = 0;
    for (; index < graph->count && r == 0; index++) {
        ACRE_ASSERT(nodes[index].after_count <= index);
        r = add_node(seat, &nodes[index], graph, index, after, err);
    }
    free(after);
    if (r > 0) {
        r = gpu_fail(seat->gpu, seat, r, "graph", err);
    }
    return r == 0 ? 0 : acre_fail_in(err, r, "node %u", index - 1);
}

/* Instantiated, and on the device. The side stream is idle, so nothing of it is waited for; but the
 * driver waits for resident kernels by itself, which the front keeps away meanwhile (graph.c). */
static int make(struct gpu_seat *seat, struct gpu_graph *graph, struct acre_error *err) {
    const struct gpu *gpu = seat->gpu;
    const char *call = gpu->names->graph_make;
    int code = gpu->driver.graph_make(&graph->made, graph->graph, 0);
    if (code == 0 && gpu->driver.graph_upload != NULL) {
        call = gpu->names->graph_upload;
        code = gpu->driver.graph_upload(graph->made, seat->side);
        code = code == 0 ? gpu->driver.stream_wait(seat->side) : code;
    }
    return code == 0 ? 0 : gpu_fail(gpu, seat, code, call, err);
}

static void unmake(struct gpu_seat *seat, struct gpu_graph *graph) {
    const struct gpu_driver *driver = &seat->gpu->driver;
    if (gpu_enter(seat, NULL) == 0) {
        if (graph->made != 0) {
            driver->graph_unmake(graph->made);
        }
        if (graph->graph != 0) {
            driver->graph_destroy(graph->graph);
        }
    }
    free(graph);
}

int gpu_graph_create(void *self, const struct native_node *nodes, uint32_t count,
                     uint64_t *ret_graph, struct acre_error *err) {
    struct gpu_seat *seat = self;
    const struct gpu *gpu = seat->gpu;
    ACRE_ASSERT(count > 0);
    if (gpu->driver.graph_make == NULL || gpu->vendor->node_launch == NULL) {
        return acre_fail(err, ACRE_EUNSUPPORTED, "this driver does not support graphs");
    }
    int r = gpu_enter(seat, err);
    if (r < 0) {
        return r;
    }
    struct gpu_graph *graph = calloc(1, sizeof(*graph) + count * sizeof(graph->nodes[0]));
    if (graph == NULL) {
        return acre_fail(err, ACRE_ENOMEM, "graph of %u nodes", count);
    }
    graph->count = count;
    int code = gpu->driver.graph_create(&graph->graph, 0);
    r = code == 0 ? add_nodes(seat, nodes, graph, err)
                  : gpu_fail(gpu, seat, code, gpu->names->graph_create, err);
    r = r == 0 ? make(seat, graph, err) : r;
    if (r < 0) {
        unmake(seat, graph);
        return r;
    }
    gpu_link_in(seat, &seat->graphs, &graph->link);
    *ret_graph = (uint64_t)(uintptr_t)graph;
    return 0;
}

int gpu_graph_update(void *self, uint64_t handle, uint32_t node, const struct native_launch *launch,
                     struct acre_error *err) {
    struct gpu_seat *seat = self;
    const struct gpu_graph *graph = (const struct gpu_graph *)(uintptr_t)handle;
    if (node >= graph->count || graph->nodes[node].kind != ACRE_NODE_LAUNCH) {
        return acre_fail(err, ACRE_EINVALID, "node %u of this graph is not a kernel launch", node);
    }
    struct gpu_args args;
    int r = gpu_args_make(launch, &args, err);
    r = r == 0 ? gpu_enter(seat, err) : r;
    if (r < 0) {
        return r;
    }
    struct gpu_grid_node to = {.function = gpu_kernel_of(launch->kernel)->function,
                               .grid = &launch->grid,
                               .args = args.pointers};
    int code = seat->gpu->vendor->node_update(seat->gpu, graph->made, graph->nodes[node].node, &to);
    return code == 0 ? 0 : gpu_fail(seat->gpu, seat, code, "update of a graph", err);
}

int gpu_graph_launch(void *self, uint64_t stream_handle, uint64_t handle, struct acre_error *err) {
    struct gpu_seat *seat = self;
    struct gpu_stream *stream = gpu_stream_of(stream_handle);
    const struct gpu_graph *graph = (const struct gpu_graph *)(uintptr_t)handle;
    int r = gpu_enter(seat, err);
    if (r == 0 && stream->is_profiled) {
        r = gpu_profile_begin(seat, stream, "graph", 0, err);
    }
    if (r < 0) {
        return r;
    }
    int code = seat->gpu->driver.graph_launch(graph->made, stream->stream);
    if (code != 0) {
        return gpu_fail(seat->gpu, seat, code, seat->gpu->names->graph_launch, err);
    }
    return stream->is_profiled ? gpu_profile_end(seat, stream, err) : 0;
}

void gpu_graph_destroy(void *self, uint64_t handle) {
    struct gpu_seat *seat = self;
    struct gpu_graph *graph = (struct gpu_graph *)(uintptr_t)handle;
    gpu_link_out(seat, &graph->link);
    unmake(seat, graph);
}
