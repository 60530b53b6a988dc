/* cuda.h - what the files of the CUDA back end share. Internal to cuda*.c and their tests. */
#ifndef ACRE_COMPUTE_GPU_CUDA_H
#define ACRE_COMPUTE_GPU_CUDA_H

#include "compute/gpu/cuda_abi.h"
#include "compute/gpu/cuda_file.h"
#include "compute/gpu/cuda_rtc.h"
#include "compute/gpu/gpu.h"

struct cuda {
    struct gpu gpu; /* first: what the entries of this room are given */
    struct cuda_driver own;
    struct cuda_rtc rtc;
    bool has_rtc;
    char rtc_absent[256];
    struct cuda_file file; /* opened under gpu.lock */
};

/* "GPU-" and the usual groups. */
void cuda_uuid_write(const struct cuda_uuid *uuid, char *out, size_t size);

/* Graphs and modules (cuda_graph.c): struct gpu_vendor says what each does. */
int cuda_node_launch(const struct gpu *gpu, gpu_handle *ret_node, gpu_handle graph,
                     const gpu_handle *after, size_t count, const struct gpu_grid_node *node);
int cuda_node_copy(const struct gpu *gpu, gpu_handle *ret_node, gpu_handle graph,
                   const gpu_handle *after, size_t count, gpu_handle context, uintptr_t to,
                   uintptr_t from, size_t bytes);
int cuda_node_set(const struct gpu *gpu, gpu_handle *ret_node, gpu_handle graph,
                  const gpu_handle *after, size_t count, gpu_handle context, uintptr_t to,
                  unsigned value, unsigned element_bytes, size_t elements);
int cuda_node_update(const struct gpu *gpu, gpu_handle made, gpu_handle node,
                     const struct gpu_grid_node *launch);
int cuda_module_ready(const struct gpu *gpu, gpu_handle module);

#endif
