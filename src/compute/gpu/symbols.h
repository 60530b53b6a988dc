/* symbols.h - the functions that CUDA's driver and HIP share, each written once.
 *
 * A row is: needed or not, our name, the symbol of libcuda.so.1, the one of libamdhip64, and the
 * arguments, which agree as far as registers go. Handles are numbers: pointers and 64-bit addresses
 * use the same registers on every machine these drivers exist for. Results are the driver's (0:
 * done). A vendor's X turns the rows into rows for acre_dl_load: its own column, the offset of
 * gpu.driver.member in its own struct, and `required`. Correct for CUDA 11.7 to 13 and HIP 5.2 to
 * 6.3 (which has host_function since 5.3). */
#ifndef ACRE_COMPUTE_GPU_SYMBOLS_H
#define ACRE_COMPUTE_GPU_SYMBOLS_H

#include "core/base.h"

typedef uintptr_t gpu_handle; /* context, stream, event, module, function, graph, node */

struct gpu_ticket { /* CUipcMemHandle, hipIpcMemHandle_t: passed by value */
    char bytes[64];
};

/* clang-format off */
#define GPU_SYMBOLS(X)                                                                            \
    /* need  member            CUDA                            HIP                           */   \
    X(true,  init,             "cuInit",                       "hipInit",                         \
      (unsigned flags))                                                                           \
    X(true,  driver_version,   "cuDriverGetVersion",           "hipDriverGetVersion", (int *))    \
    X(true,  device_count,     "cuDeviceGetCount",             "hipGetDeviceCount", (int *))      \
    X(true,  device_get,       "cuDeviceGet",                  "hipDeviceGet", (int *, int))      \
    X(true,  device_name,      "cuDeviceGetName",              "hipDeviceGetName",                \
      (char *, int length, int device))                                                           \
    X(true,  device_memory,    "cuDeviceTotalMem_v2",          "hipDeviceTotalMem",               \
      (size_t *, int device))                                                                     \
    X(true,  device_attribute, "cuDeviceGetAttribute",         "hipDeviceGetAttribute",           \
      (int *, int attribute, int device))                                                         \
    X(true,  can_peer,         "cuDeviceCanAccessPeer",        "hipDeviceCanAccessPeer",          \
      (int *, int device, int peer))                                                              \
    X(true,  memory_info,      "cuMemGetInfo_v2",              "hipMemGetInfo",                   \
      (size_t *ret_free, size_t *ret_total))                                                      \
    X(true,  alloc,            "cuMemAlloc_v2",                "hipMalloc",                       \
      (uintptr_t *, size_t))                                                                      \
    X(true,  free,             "cuMemFree_v2",                 "hipFree", (uintptr_t))            \
    X(true,  host_register,    "cuMemHostRegister_v2",         "hipHostRegister",                 \
      (void *, size_t, unsigned flags))                                                           \
    X(true,  host_unregister,  "cuMemHostUnregister",          "hipHostUnregister", (void *))     \
    X(true,  host_address,     "cuMemHostGetDevicePointer_v2", "hipHostGetDevicePointer",         \
      (uintptr_t *, void *, unsigned flags))                                                      \
    X(true,  stream_create,    "cuStreamCreate",               "hipStreamCreateWithFlags",        \
      (gpu_handle *, unsigned flags))                                                             \
    X(true,  stream_destroy,   "cuStreamDestroy_v2",           "hipStreamDestroy", (gpu_handle))  \
    X(true,  stream_wait,      "cuStreamSynchronize",          "hipStreamSynchronize",            \
      (gpu_handle))                                                                               \
    X(true,  set8,             "cuMemsetD8Async",              "hipMemsetD8Async",                \
      (uintptr_t, unsigned char, size_t count, gpu_handle stream))                                \
    X(true,  set16,            "cuMemsetD16Async",             "hipMemsetD16Async",               \
      (uintptr_t, unsigned short, size_t count, gpu_handle stream))                               \
    X(true,  set32,            "cuMemsetD32Async",             "hipMemsetD32Async",               \
      (uintptr_t, unsigned, size_t count, gpu_handle stream))                                     \
    X(true,  launch,           "cuLaunchKernel",               "hipModuleLaunchKernel",           \
      (gpu_handle function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,      \
       unsigned bz, unsigned local_bytes, gpu_handle stream, void **args, void **extra))          \
    X(true,  write64,          "cuStreamWriteValue64_v2",      "hipStreamWriteValue64",           \
      (gpu_handle stream, uintptr_t, uint64_t value, unsigned flags))                             \
    X(false, host_function,    "cuLaunchHostFunc",             "hipLaunchHostFunc",               \
      (gpu_handle stream, void (*)(void *), void *))                                              \
    X(true,  event_create,     "cuEventCreate",                "hipEventCreateWithFlags",         \
      (gpu_handle *, unsigned flags))                                                             \
    X(true,  event_destroy,    "cuEventDestroy_v2",            "hipEventDestroy", (gpu_handle))   \
    X(true,  event_record,     "cuEventRecord",                "hipEventRecord",                  \
      (gpu_handle event, gpu_handle stream))                                                      \
    X(true,  event_wait,       "cuEventSynchronize",           "hipEventSynchronize",             \
      (gpu_handle))                                                                               \
    X(true,  event_between,    "cuEventElapsedTime",           "hipEventElapsedTime",             \
      (float *ret_ms, gpu_handle start, gpu_handle end))                                          \
    X(true,  module_load,      "cuModuleLoadDataEx",           "hipModuleLoadDataEx",             \
      (gpu_handle *, const void *, unsigned count, int *options, void **values))                  \
    X(true,  module_unload,    "cuModuleUnload",               "hipModuleUnload", (gpu_handle))   \
    X(true,  module_function,  "cuModuleGetFunction",          "hipModuleGetFunction",            \
      (gpu_handle *, gpu_handle module, const char *))                                            \
    X(true,  function_fact,    "cuFuncGetAttribute",           "hipFuncGetAttribute",             \
      (int *, int attribute, gpu_handle function))                                                \
    X(false, ticket_make,      "cuIpcGetMemHandle",            "hipIpcGetMemHandle",              \
      (struct gpu_ticket *, uintptr_t))                                                           \
    X(false, ticket_open,      "cuIpcOpenMemHandle_v2",        "hipIpcOpenMemHandle",             \
      (uintptr_t *, struct gpu_ticket, unsigned flags))                                           \
    X(false, ticket_close,     "cuIpcCloseMemHandle",          "hipIpcCloseMemHandle",            \
      (uintptr_t))                                                                                \
    X(false, graph_create,     "cuGraphCreate",                "hipGraphCreate",                  \
      (gpu_handle *, unsigned flags))                                                             \
    X(false, graph_destroy,    "cuGraphDestroy",               "hipGraphDestroy", (gpu_handle))   \
    X(false, graph_make,       "cuGraphInstantiateWithFlags",  "hipGraphInstantiateWithFlags",    \
      (gpu_handle *ret_made, gpu_handle graph, unsigned long long flags))                         \
    X(false, graph_upload,     "cuGraphUpload",                "hipGraphUpload",                  \
      (gpu_handle made, gpu_handle stream))                                                       \
    X(false, graph_launch,     "cuGraphLaunch",                "hipGraphLaunch",                  \
      (gpu_handle made, gpu_handle stream))                                                       \
    X(false, graph_unmake,     "cuGraphExecDestroy",           "hipGraphExecDestroy",             \
      (gpu_handle made))
/* clang-format on */

struct gpu_driver {
#define X(required, member, cuda, hip, arguments) int(*member) arguments;
    GPU_SYMBOLS(X)
#undef X
};

struct gpu_names {
#define X(required, member, cuda, hip, arguments) const char *member;
    GPU_SYMBOLS(X)
#undef X
};

#endif
