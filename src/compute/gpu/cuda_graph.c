/* cuda_graph.c - nodes of CUDA's graphs, and kernels brought to the device when a module loads.
 *
 * A copy of n bytes is a three-dimensional copy of one row; addresses are "unified", so the driver
 * finds out which side is the host. The pitch is left out: it is limited to 2 GiB, and a single row
 * needs none. Drivers before CUDA 12 know only version 1 of a launch node, which is the beginning
 * of version 2. */
#include "compute/gpu/cuda.h"

#include <stdlib.h>

static const struct cuda *cuda_of(const struct gpu *gpu) {
    return (const struct cuda *)gpu;
}

static struct cuda_launch_node launch_node(const struct gpu_grid_node *from) {
    const uint32_t *groups = from->grid->groups;
    const uint32_t *group = from->grid->group;
    return (struct cuda_launch_node){.function = from->function,
                                     .groups = {groups[0], groups[1], groups[2]},
                                     .group = {group[0], group[1], group[2]},
                                     .args = from->args};
}

int cuda_node_launch(const struct gpu *gpu, gpu_handle *ret_node, gpu_handle graph,
                     const gpu_handle *after, size_t count, const struct gpu_grid_node *node) {
    struct cuda_launch_node launch = launch_node(node);
    return cuda_of(gpu)->own.node_launch(ret_node, graph, after, count, &launch);
}

int cuda_node_update(const struct gpu *gpu, gpu_handle made, gpu_handle node,
                     const struct gpu_grid_node *to) {
    struct cuda_launch_node launch = launch_node(to);
    return cuda_of(gpu)->own.node_update(made, node, &launch);
}

int cuda_node_copy(const struct gpu *gpu, gpu_handle *ret_node, gpu_handle graph,
                   const gpu_handle *after, size_t count, gpu_handle context, uintptr_t to,
                   uintptr_t from, size_t bytes) {
    struct cuda_copy_node copy = {.from = {.type = CUDA_MEMORY_UNIFIED, .device = from},
                                  .to = {.type = CUDA_MEMORY_UNIFIED, .device = to},
                                  .width_bytes = bytes,
                                  .height = 1,
                                  .depth = 1};
    return cuda_of(gpu)->own.node_copy(ret_node, graph, after, count, &copy, context);
}

int cuda_node_set(const struct gpu *gpu, gpu_handle *ret_node, gpu_handle graph,
                  const gpu_handle *after, size_t count, gpu_handle context, uintptr_t to,
                  unsigned value, unsigned element_bytes, size_t elements) {
    struct cuda_set_node set = {
        .to = to, .value = value, .element_bytes = element_bytes, .width = elements, .height = 1};
    return cuda_of(gpu)->own.node_set(ret_node, graph, after, count, &set, context);
}

int cuda_module_ready(const struct gpu *gpu, gpu_handle module) {
    const struct cuda_driver *own = &cuda_of(gpu)->own;
    unsigned count = 0;
    if (own->function_count == NULL || own->function_list == NULL || own->function_load == NULL) {
        return 0; /* an older driver: CUDA_MODULE_LOADING=EAGER of the runner has to do */
    }
    int code = own->function_count(&count, module);
    if (code != 0 || count == 0) {
        return code;
    }
    gpu_handle *functions = calloc(count, sizeof(*functions));
    if (functions == NULL) {
        return 2; /* CUDA_ERROR_OUT_OF_MEMORY */
    }
    code = own->function_list(functions, count, module);
    for (unsigned i = 0; i < count && code == 0; i++) {
        code = own->function_load(functions[i]);
    }
    free(functions);
    return code;
}
