/* graph.c - recorded work as one graph of the driver.
 *
 * Nodes are made one by one with their dependencies, not by capturing a stream: the shape is known,
 * and the handles of the launches are wanted, since an update changes a launch in place. A fill
 * that takes several steps becomes a chain of nodes; whoever waits for it waits for the last. The
 * graph is uploaded when it is made, so that its first launch costs what the others do. */
#include "compute/gpu/entries.h"
#include "compute/gpu/place.h"

#include <stdlib.h>

struct gpu_graph {
    struct gpu_link link;
    gpu_handle graph;
    gpu_handle made; /* what is launched */
    uint32_t count;
    struct gpu_node {
        gpu_handle node; /* the last of it */
        enum acre_node_kind kind;
    } nodes[];
};

static int add_launch(const struct gpu_place *place, const struct acre_native_launch *launch,
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
    return place->gpu->vendor->node_launch(place->gpu, ret_node, graph->graph, after, count, &node);
}

static int add_copy(const struct gpu_place *place, const struct acre_native_copy *copy,
                    const struct gpu_graph *graph, const gpu_handle *after, size_t count,
                    gpu_handle *ret_node) {
    return place->gpu->vendor->node_copy(
        place->gpu, ret_node, graph->graph, after, count, place->context,
        gpu_region_at(copy->to, copy->to_offset, copy->bytes),
        gpu_region_at(copy->from, copy->from_offset, copy->bytes), (size_t)copy->bytes);
}

static int add_fill(const struct gpu_place *place, const struct acre_native_fill *fill,
                    const struct gpu_graph *graph, const gpu_handle *after, size_t count,
                    gpu_handle *ret_node) {
    const struct gpu *gpu = place->gpu;
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
                ? gpu->vendor->node_copy(gpu, &last, graph->graph, from, from_count, place->context,
                                         step->to, step->from, step->count)
                : gpu->vendor->node_set(gpu, &last, graph->graph, from, from_count, place->context,
                                        step->to, step->value, step->element_bytes, step->count);
    }
    *ret_node = last;
    return code;
}

/* 0, ACRE_E* (with the text) or a code of the driver. */
static int add_node(const struct gpu_place *place, const struct acre_native_node *from,
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
        return add_launch(place, &from->launch, graph, after, from->after_count, &to->node, err);
    case ACRE_NODE_COPY:
        return add_copy(place, &from->copy, graph, after, from->after_count, &to->node);
    case ACRE_NODE_FILL:
    default:
        return add_fill(place, &from->fill, graph, after, from->after_count, &to->node);
    }
}

static int add_nodes(struct gpu_place *place, const struct acre_native_node *nodes,
                     struct gpu_graph *graph, struct acre_error *err) {
    gpu_handle *after = calloc(graph->count, sizeof(*after)); /* fewer than nodes */
    if (after == NULL) {
        return acre_fail(err, ACRE_ENOMEM, "graph of %u nodes", graph->count);
    }
    int r = 0;
    uint32_t index = 0;
    for (; index < graph->count && r == 0; index++) {
        ACRE_ASSERT(nodes[index].after_count <= index);
        r = add_node(place, &nodes[index], graph, index, after, err);
    }
    free(after);
    if (r > 0) {
        r = gpu_fail(place->gpu, place, r, "graph", err);
    }
    return r == 0 ? 0 : acre_fail_in(err, r, "node %u", index - 1);
}

/* Instantiated, and on the device. The side stream is idle, so nothing of it is waited for; but the
 * driver waits for resident kernels by itself, which the front keeps away meanwhile (graph.c). */
static int make(struct gpu_place *place, struct gpu_graph *graph, struct acre_error *err) {
    const struct gpu *gpu = place->gpu;
    const char *call = gpu->names->graph_make;
    int code = gpu->driver.graph_make(&graph->made, graph->graph, 0);
    if (code == 0 && gpu->driver.graph_upload != NULL) {
        call = gpu->names->graph_upload;
        code = gpu->driver.graph_upload(graph->made, place->side);
        code = code == 0 ? gpu->driver.stream_wait(place->side) : code;
    }
    return code == 0 ? 0 : gpu_fail(gpu, place, code, call, err);
}

static void unmake(struct gpu_place *place, struct gpu_graph *graph) {
    const struct gpu_driver *driver = &place->gpu->driver;
    if (gpu_enter(place, NULL) == 0) {
        if (graph->made != 0) {
            driver->graph_unmake(graph->made);
        }
        if (graph->graph != 0) {
            driver->graph_destroy(graph->graph);
        }
    }
    free(graph);
}

int gpu_graph_create(void *self, const struct acre_native_node *nodes, uint32_t count,
                     uint64_t *ret_graph, struct acre_error *err) {
    struct gpu_place *place = self;
    const struct gpu *gpu = place->gpu;
    ACRE_ASSERT(count > 0);
    if (gpu->driver.graph_make == NULL || gpu->vendor->node_launch == NULL) {
        return acre_fail(err, ACRE_EUNSUPPORTED, "this driver has no graphs");
    }
    int r = gpu_enter(place, err);
    if (r < 0) {
        return r;
    }
    struct gpu_graph *graph = calloc(1, sizeof(*graph) + count * sizeof(graph->nodes[0]));
    if (graph == NULL) {
        return acre_fail(err, ACRE_ENOMEM, "graph of %u nodes", count);
    }
    graph->count = count;
    int code = gpu->driver.graph_create(&graph->graph, 0);
    r = code == 0 ? add_nodes(place, nodes, graph, err)
                  : gpu_fail(gpu, place, code, gpu->names->graph_create, err);
    r = r == 0 ? make(place, graph, err) : r;
    if (r < 0) {
        unmake(place, graph);
        return r;
    }
    gpu_link_in(place, &place->graphs, &graph->link);
    *ret_graph = (uint64_t)(uintptr_t)graph;
    return 0;
}

int gpu_graph_update(void *self, uint64_t handle, uint32_t node,
                     const struct acre_native_launch *launch, struct acre_error *err) {
    struct gpu_place *place = self;
    const struct gpu_graph *graph = (const struct gpu_graph *)(uintptr_t)handle;
    if (node >= graph->count || graph->nodes[node].kind != ACRE_NODE_LAUNCH) {
        return acre_fail(err, ACRE_EINVALID, "node %u is no launch of this graph", node);
    }
    struct gpu_args args;
    int r = gpu_args_make(launch, &args, err);
    r = r == 0 ? gpu_enter(place, err) : r;
    if (r < 0) {
        return r;
    }
    struct gpu_grid_node to = {.function = gpu_kernel_of(launch->kernel)->function,
                               .grid = &launch->grid,
                               .args = args.pointers};
    int code =
        place->gpu->vendor->node_update(place->gpu, graph->made, graph->nodes[node].node, &to);
    return code == 0 ? 0 : gpu_fail(place->gpu, place, code, "update of a graph", err);
}

int gpu_graph_launch(void *self, uint64_t stream_handle, uint64_t handle, struct acre_error *err) {
    struct gpu_place *place = self;
    struct gpu_stream *stream = gpu_stream_of(stream_handle);
    const struct gpu_graph *graph = (const struct gpu_graph *)(uintptr_t)handle;
    int r = gpu_enter(place, err);
    if (r == 0 && stream->is_profiled) {
        r = gpu_profile_begin(place, stream, "graph", 0, err);
    }
    if (r < 0) {
        return r;
    }
    int code = place->gpu->driver.graph_launch(graph->made, stream->stream);
    if (code != 0) {
        return gpu_fail(place->gpu, place, code, place->gpu->names->graph_launch, err);
    }
    return stream->is_profiled ? gpu_profile_end(place, stream, err) : 0;
}

void gpu_graph_destroy(void *self, uint64_t handle) {
    struct gpu_place *place = self;
    struct gpu_graph *graph = (struct gpu_graph *)(uintptr_t)handle;
    gpu_link_out(place, &graph->link);
    unmake(place, graph);
}
