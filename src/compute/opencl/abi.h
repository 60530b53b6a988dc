/* abi.h - the part of OpenCL's binary interface that the back end uses. Private to it.
 *
 * From the public OpenCL registry, versions 1.2 and (optional) 2.0; names are its own with OPENCL_
 * for CL_. tests/unit/test_compute_opencl_abi.c compares every row with the installed headers. */
#ifndef ACRE_COMPUTE_OPENCL_ABI_H
#define ACRE_COMPUTE_OPENCL_ABI_H

#include "compute/opencl/symbols.h"

struct opencl_sub_range { /* cl_buffer_region */
    size_t origin, size;
};

/* clang-format off */
/* What drivers answer, and what that is for us. */
#define OPENCL_ERRORS(X)                                        \
    X(DEVICE_NOT_AVAILABLE,                      -2, UNAVAILABLE) \
    X(COMPILER_NOT_AVAILABLE,                    -3, UNSUPPORTED) \
    X(MEM_OBJECT_ALLOCATION_FAILURE,             -4, NOMEM)       \
    X(OUT_OF_RESOURCES,                          -5, NOMEM)       \
    X(OUT_OF_HOST_MEMORY,                        -6, NOMEM)       \
    X(PROFILING_INFO_NOT_AVAILABLE,              -7, UNAVAILABLE) \
    X(MEM_COPY_OVERLAP,                          -8, INVALID)     \
    X(BUILD_PROGRAM_FAILURE,                    -11, INVALID)     \
    X(MAP_FAILURE,                              -12, NOMEM)       \
    X(MISALIGNED_SUB_BUFFER_OFFSET,             -13, INVALID)     \
    X(EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, -14, INTERNAL)   \
    X(INVALID_VALUE,                            -30, INVALID)     \
    X(INVALID_DEVICE,                           -33, UNAVAILABLE) \
    X(INVALID_CONTEXT,                          -34, INTERNAL)    \
    X(INVALID_QUEUE_PROPERTIES,                 -35, UNSUPPORTED) \
    X(INVALID_COMMAND_QUEUE,                    -36, INTERNAL)    \
    X(INVALID_HOST_PTR,                         -37, INVALID)     \
    X(INVALID_MEM_OBJECT,                       -38, INVALID)     \
    X(INVALID_BINARY,                           -42, CORRUPT)     \
    X(INVALID_BUILD_OPTIONS,                    -43, INVALID)     \
    X(INVALID_PROGRAM,                          -44, INTERNAL)    \
    X(INVALID_PROGRAM_EXECUTABLE,               -45, CORRUPT)     \
    X(INVALID_KERNEL_NAME,                      -46, NOTFOUND)    \
    X(INVALID_KERNEL_DEFINITION,                -47, INVALID)     \
    X(INVALID_KERNEL,                           -48, INTERNAL)    \
    X(INVALID_ARG_INDEX,                        -49, INVALID)     \
    X(INVALID_ARG_VALUE,                        -50, INVALID)     \
    X(INVALID_ARG_SIZE,                         -51, INVALID)     \
    X(INVALID_KERNEL_ARGS,                      -52, INVALID)     \
    X(INVALID_WORK_DIMENSION,                   -53, INVALID)     \
    X(INVALID_WORK_GROUP_SIZE,                  -54, INVALID)     \
    X(INVALID_WORK_ITEM_SIZE,                   -55, INVALID)     \
    X(INVALID_GLOBAL_OFFSET,                    -56, INVALID)     \
    X(INVALID_EVENT_WAIT_LIST,                  -57, INTERNAL)    \
    X(INVALID_EVENT,                            -58, INTERNAL)    \
    X(INVALID_OPERATION,                        -59, UNSUPPORTED) \
    X(INVALID_BUFFER_SIZE,                      -61, NOMEM)       \
    X(INVALID_GLOBAL_WORK_SIZE,                 -63, INVALID)     \
    X(INVALID_PROPERTY,                         -64, UNSUPPORTED)

#define OPENCL_CONSTANTS(X)               \
    X(COMPLETE,                      0)      \
    X(CONTEXT_PLATFORM,              0x1084) \
    X(DEVICE_MAX_WORK_GROUP_SIZE,    0x1004) \
    X(DEVICE_MAX_MEM_ALLOC_SIZE,     0x1010) \
    X(DEVICE_MEM_BASE_ADDR_ALIGN,    0x1019) \
    X(DEVICE_LOCAL_MEM_SIZE,         0x1023) \
    X(DEVICE_COMPILER_AVAILABLE,     0x1028) \
    X(DEVICE_DOUBLE_FP_CONFIG,       0x1032) \
    X(DEVICE_SVM_CAPABILITIES,       0x1053) \
    X(DEVICE_SVM_COARSE_GRAIN_BUFFER, 1 << 0) \
    X(DEVICE_SVM_FINE_GRAIN_SYSTEM,  1 << 2) \
    X(QUEUE_PROFILING_ENABLE,        1 << 1) \
    X(MEM_READ_WRITE,                1 << 0) \
    X(MEM_USE_HOST_PTR,              1 << 3) \
    X(BUFFER_CREATE_TYPE_REGION,     0x1220) \
    X(PROGRAM_BINARY_SIZES,          0x1165) \
    X(PROGRAM_BINARIES,              0x1166) \
    X(PROGRAM_BUILD_LOG,             0x1183) \
    X(KERNEL_WORK_GROUP_SIZE,        0x11B0) \
    X(KERNEL_COMPILE_WORK_GROUP_SIZE, 0x11B1) \
    X(KERNEL_LOCAL_MEM_SIZE,         0x11B2) \
    X(PROFILING_COMMAND_QUEUED,      0x1280) \
    X(PROFILING_COMMAND_START,       0x1282) \
    X(PROFILING_COMMAND_END,         0x1283)
/* clang-format on */

enum {
#define X(name, value) OPENCL_##name = (value),
    OPENCL_CONSTANTS(X)
#undef X
#define X(name, value, ours) OPENCL_##name = (value),
        OPENCL_ERRORS(X)
#undef X
};

struct opencl_api {
    struct acre_opencl_query query;
#define X(required, result, member, symbol, arguments) result(*member) arguments;
    OPENCL_SYMBOLS(X)
#undef X
};

#endif
