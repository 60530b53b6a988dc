/* cuda_abi.h - the part of CUDA's binary interface that HIP does not share: driver and NVRTC.
 *
 * The shared part is in symbols.h. These are our own declarations; a test compares them with
 * NVIDIA's headers if installed. Versioned names are those that a program built against CUDA 13
 * calls; all except the ones marked not needed exist since CUDA 11.7. */
#ifndef ACRE_COMPUTE_GPU_CUDA_ABI_H
#define ACRE_COMPUTE_GPU_CUDA_ABI_H

#include "compute/gpu/symbols.h"

enum cuda_value {
    CUDA_MAX_THREADS_PER_BLOCK = 1, /* attributes of devices */
    CUDA_MAX_SHARED_PER_BLOCK = 8,
    CUDA_MULTIPROCESSORS = 16,
    CUDA_MAP_HOST_MEMORY = 19,
    CUDA_CAPABILITY_MAJOR = 75,
    CUDA_CAPABILITY_MINOR = 76,
    CUDA_WAIT_GEQ = 0, /* flag of cuStreamWaitValue64 */
    CUDA_MEMORY_UNIFIED = 4,
    CUDA_PEER_ALREADY_ENABLED = 704,
    NVRTC_COMPILATION = 6,
    NVRTC_INVALID_OPTION = 5,
    NVRTC_OUT_OF_MEMORY = 1,
};

struct cuda_uuid {
    uint8_t bytes[16];
};

struct cuda_launch_node { /* CUDA_KERNEL_NODE_PARAMS_v2; version 1 is its beginning */
    gpu_handle function;
    unsigned groups[3], group[3];
    unsigned local_bytes;
    void **args, **extra;
    gpu_handle kernel, context;
};

struct cuda_copy_side {
    size_t x_bytes, y, z, level;
    int type;
    uintptr_t host, device, array, reserved;
    size_t pitch, height;
};

struct cuda_copy_node { /* CUDA_MEMCPY3D_v2 */
    struct cuda_copy_side from, to;
    size_t width_bytes, height, depth;
};

struct cuda_set_node { /* CUDA_MEMSET_NODE_PARAMS_v1 */
    uintptr_t to;
    size_t pitch;
    unsigned value, element_bytes;
    size_t width, height;
};

/* clang-format off */
#define CUDA_SYMBOLS(X)                                                                           \
    /* need  member          symbol                             arguments */                      \
    X(true,  context_retain, "cuDevicePrimaryCtxRetain",        (gpu_handle *, int device))       \
    X(true,  context_release,"cuDevicePrimaryCtxRelease_v2",    (int device))                     \
    X(true,  context_get,    "cuCtxGetCurrent",                 (gpu_handle *))                   \
    X(true,  context_set,    "cuCtxSetCurrent",                 (gpu_handle))                     \
    X(true,  peer_enable,    "cuCtxEnablePeerAccess",           (gpu_handle, unsigned flags))     \
    X(true,  stream_context, "cuStreamGetCtx",                  (gpu_handle, gpu_handle *))       \
    X(true,  device_uuid,    "cuDeviceGetUuid_v2",              (struct cuda_uuid *, int device)) \
    X(true,  code_name,      "cuGetErrorName",                  (int code, const char **))        \
    X(true,  copy,           "cuMemcpyAsync",                                                     \
      (uintptr_t to, uintptr_t from, size_t bytes, gpu_handle stream))                            \
    X(true,  wait64,         "cuStreamWaitValue64_v2",                                            \
      (gpu_handle stream, uintptr_t, uint64_t value, unsigned flags))                             \
    X(false, node_copy,      "cuGraphAddMemcpyNode",                                              \
      (gpu_handle *, gpu_handle graph, const gpu_handle *after, size_t count,                     \
       const struct cuda_copy_node *, gpu_handle context))                                        \
    X(false, node_set,       "cuGraphAddMemsetNode",                                              \
      (gpu_handle *, gpu_handle graph, const gpu_handle *after, size_t count,                     \
       const struct cuda_set_node *, gpu_handle context))                                         \
    X(false, node_launch,    "cuGraphAddKernelNode_v2",         /* since 12.0 */                  \
      (gpu_handle *, gpu_handle graph, const gpu_handle *after, size_t count,                     \
       const struct cuda_launch_node *))                                                          \
    X(false, node_update,    "cuGraphExecKernelNodeSetParams_v2", /* since 12.0 */                \
      (gpu_handle made, gpu_handle node, const struct cuda_launch_node *))                        \
    X(false, node_launch_v1, "cuGraphAddKernelNode",                                              \
      (gpu_handle *, gpu_handle graph, const gpu_handle *after, size_t count,                     \
       const struct cuda_launch_node *))                                                          \
    X(false, node_update_v1, "cuGraphExecKernelNodeSetParams",                                    \
      (gpu_handle made, gpu_handle node, const struct cuda_launch_node *))                        \
    X(false, function_count, "cuModuleGetFunctionCount",        /* these three since 12.4 */      \
      (unsigned *, gpu_handle module))                                                            \
    X(false, function_list,  "cuModuleEnumerateFunctions",                                        \
      (gpu_handle *, unsigned count, gpu_handle module))                                          \
    X(false, function_load,  "cuFuncLoad",                      (gpu_handle function))            \
    X(false, parameter,      "cuFuncGetParamInfo",              /* since 12.4 */                  \
      (gpu_handle function, size_t index, size_t *ret_offset, size_t *ret_bytes))

/* libnvrtc. All answer an nvrtcResult, but for the last, which is a text. */
#define NVRTC_SYMBOLS(X)                                                                          \
    X(true,  version,       "nvrtcVersion",              (int *ret_major, int *ret_minor))        \
    X(true,  arch_count,    "nvrtcGetNumSupportedArchs", (int *))                                 \
    X(true,  archs,         "nvrtcGetSupportedArchs",    (int *))                                 \
    X(true,  create,        "nvrtcCreateProgram",                                                 \
      (gpu_handle *, const char *text, const char *name, int count, const char *const *headers,   \
       const char *const *names))                                                                 \
    X(true,  destroy,       "nvrtcDestroyProgram",       (gpu_handle *))                          \
    X(true,  compile,       "nvrtcCompileProgram",                                                \
      (gpu_handle, int count, const char *const *options))                                        \
    X(true,  log_size,      "nvrtcGetProgramLogSize",    (gpu_handle, size_t *))                  \
    X(true,  log,           "nvrtcGetProgramLog",        (gpu_handle, char *))                    \
    X(true,  cubin_size,    "nvrtcGetCUBINSize",         (gpu_handle, size_t *))                  \
    X(true,  cubin,         "nvrtcGetCUBIN",             (gpu_handle, char *))                    \
    X(true,  ptx_size,      "nvrtcGetPTXSize",           (gpu_handle, size_t *))                  \
    X(true,  ptx,           "nvrtcGetPTX",               (gpu_handle, char *))
/* clang-format on */

struct cuda_driver {
#define X(required, member, symbol, arguments) int(*member) arguments;
    CUDA_SYMBOLS(X)
#undef X
};

struct nvrtc_library {
#define X(required, member, symbol, arguments) int(*member) arguments;
    NVRTC_SYMBOLS(X)
#undef X
    const char *(*text)(int result); /* nvrtcGetErrorString */
};

#endif
