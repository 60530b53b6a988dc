/* hip_abi.h - what HIP has beyond symbols.h: functions, numbers, layouts, each written once.
 *
 * No AMD header is included. If they are installed (Debian: libamdhip64-dev), a test compares all
 * of this, and HIP's column of symbols.h, with them (test_compute_hip_abi.c). Correct for HIP 5.2
 * to 6.3; where 5 and 6 differ, the comment says so. Tables only. */
#ifndef ACRE_COMPUTE_GPU_HIP_ABI_H
#define ACRE_COMPUTE_GPU_HIP_ABI_H

#include "compute/gpu/symbols.h"

struct hip_uuid { /* hipUUID: of the 16 bytes AMD fills in text, "f1b0a8e2c45d7712" */
    char bytes[16];
};

/* hipDeviceProp_t is 792 bytes in HIP 5 and 1472 in HIP 6, which keeps the old function beside the
 * new one. Of both we read one member. */
enum { HIP_PROPERTIES_BYTES = 4096, HIP_ARCH_BYTES = 256 };
enum hip_offset { HIP_ARCH_AT_5 = 396, HIP_ARCH_AT_6 = 1160 }; /* of gcnArchName */

typedef void hip_callback(gpu_handle stream, int status, void *user);

/* clang-format off */
#define HIP_SYMBOLS(X)                                                                             \
    /* need  member             symbol                        result        arguments           */ \
    X(true,  error_name,        "hipGetErrorName",            const char *, (int))                 \
    X(true,  runtime_version,   "hipRuntimeGetVersion",       int,          (int *))               \
    X(true,  set_device,        "hipSetDevice",               int,          (int))                 \
    X(true,  enable_peer,       "hipDeviceEnablePeerAccess",  int,          (int, unsigned))       \
    X(false, uuid,              "hipDeviceGetUuid",           int,                                 \
      (struct hip_uuid *, int))                                                                    \
    X(true,  properties_5,      "hipGetDeviceProperties",     int,          (void *, int))         \
    X(false, properties_6,      "hipGetDevicePropertiesR0600", int,         (void *, int))         \
    X(true,  stream_query,      "hipStreamQuery",             int,          (gpu_handle stream))   \
    X(true,  copy,              "hipMemcpyAsync",             int,                                 \
      (uintptr_t, uintptr_t, size_t, int kind, gpu_handle stream))                                 \
    X(true,  wait64,            "hipStreamWaitValue64",       int,                                 \
      (gpu_handle stream, uintptr_t, uint64_t value, unsigned flags, uint64_t mask))               \
    X(true,  add_callback,      "hipStreamAddCallback",       int,                                 \
      (gpu_handle stream, hip_callback *, void *, unsigned flags))

#define HIPRTC_SYMBOLS(X)                                                                          \
    /* need  member       symbol                      result        arguments                   */ \
    X(true,  error_name,  "hiprtcGetErrorString",     const char *, (int))                         \
    X(true,  version,     "hiprtcVersion",            int,          (int *, int *))                \
    X(true,  create,      "hiprtcCreateProgram",      int,                                         \
      (gpu_handle *, const char *, const char *name, int, const char **, const char **))           \
    X(true,  compile,     "hiprtcCompileProgram",     int,                                         \
      (gpu_handle, int, const char **))                                                            \
    X(true,  destroy,     "hiprtcDestroyProgram",     int,          (gpu_handle *))                \
    X(true,  log_size,    "hiprtcGetProgramLogSize",  int,          (gpu_handle, size_t *))        \
    X(true,  log,         "hiprtcGetProgramLog",      int,          (gpu_handle, char *))          \
    X(true,  code_size,   "hiprtcGetCodeSize",        int,          (gpu_handle, size_t *))        \
    X(true,  code,        "hiprtcGetCode",            int,          (gpu_handle, char *))

#define HIP_NUMBERS(X)                                                                             \
    /* ours                      theirs                                       value             */ \
    X(HIP_UNITS,                 "hipDeviceAttributeMultiprocessorCount",     63)                  \
    X(HIP_GROUP_MAX,             "hipDeviceAttributeMaxThreadsPerBlock",      56)                  \
    X(HIP_LOCAL_BYTES,           "hipDeviceAttributeMaxSharedMemoryPerBlock", 74)                  \
    X(HIP_COPY_ANY,              "hipMemcpyDefault",                          4)                   \
    X(HIP_WAIT_AT_LEAST,         "hipStreamWaitValueGte",                     0)                   \
    X(HIP_NO_MEMORY,             "hipErrorOutOfMemory",                       2)                   \
    X(HIP_NOT_READY,             "hipErrorNotReady",                          600)                 \
    X(HIP_PEER_ALREADY,          "hipErrorPeerAccessAlreadyEnabled",          704)                 \
    X(HIPRTC_NO_MEMORY,          "HIPRTC_ERROR_OUT_OF_MEMORY",                1)                   \
    X(HIPRTC_BAD_OPTION,         "HIPRTC_ERROR_INVALID_OPTION",               5)                   \
    X(HIPRTC_DOES_NOT_COMPILE,   "HIPRTC_ERROR_COMPILATION",                  6)

/* A kernel that touches what is not mapped does not come back as a code: AMD's runtime prints
 * "Memory access fault by GPU node" and aborts the process. Hence no row for it that would be met
 * in practice; those with `lasting` are what it may answer instead. */
#define HIP_FAULTS(X)                                                                              \
    /* name                                   code  ours         lasting, words */                 \
    X("hipErrorInvalidValue",                  1,    INVALID,     false, NULL)                     \
    X("hipErrorOutOfMemory",                   2,    NOMEM,       false,                           \
      "the device is out of memory")                                                               \
    X("hipErrorNotInitialized",                3,    UNAVAILABLE, true,  NULL)                     \
    X("hipErrorDeinitialized",                 4,    UNAVAILABLE, true,                            \
      "the driver has shut down")                                                                  \
    X("hipErrorInvalidConfiguration",          9,    INVALID,     false,                           \
      "the device does not support this grid or group")                                            \
    X("hipErrorNoDevice",                      100,  UNAVAILABLE, false,                           \
      "HIP finds no usable AMD GPU")                                                               \
    X("hipErrorInvalidDevice",                 101,  UNAVAILABLE, false,                           \
      "HIP finds no usable AMD GPU")                                                               \
    X("hipErrorInvalidImage",                  200,  CORRUPT,     false, "not compiled code")      \
    X("hipErrorInvalidContext",                201,  UNAVAILABLE, false, NULL)                     \
    X("hipErrorNoBinaryForGpu",                209,  CORRUPT,     false,                           \
      "compiled for another GPU")                                                                  \
    X("hipErrorECCNotCorrectable",             214,  UNAVAILABLE, true,                            \
      "the device's memory is damaged")                                                            \
    X("hipErrorInvalidKernelFile",             218,  CORRUPT,     false, "not compiled code")      \
    X("hipErrorSharedObjectInitFailed",        303,  CORRUPT,     false, "not compiled code")      \
    X("hipErrorInvalidHandle",                 400,  INVALID,     false, NULL)                     \
    X("hipErrorIllegalState",                  401,  UNAVAILABLE, true,  NULL)                     \
    X("hipErrorNotFound",                      500,  NOTFOUND,    false, NULL)                     \
    X("hipErrorIllegalAddress",                700,  UNAVAILABLE, true,                            \
      "a kernel read or wrote outside its memory")                                                 \
    X("hipErrorLaunchOutOfResources",          701,  INVALID,     false,                           \
      "the kernel needs more registers or local memory than a group can have")                     \
    X("hipErrorLaunchTimeOut",                 702,  UNAVAILABLE, true,                            \
      "a kernel ran too long for the driver")                                                      \
    X("hipErrorContextIsDestroyed",            709,  UNAVAILABLE, true,  NULL)                     \
    X("hipErrorAssert",                        710,  UNAVAILABLE, true,                            \
      "an assert in a kernel failed")                                                              \
    X("hipErrorHostMemoryAlreadyRegistered",   712,  CONFLICT,    false, NULL)                     \
    X("hipErrorHostMemoryNotRegistered",       713,  INVALID,     false, NULL)                     \
    X("hipErrorLaunchFailure",                 719,  UNAVAILABLE, true,  "a kernel failed")        \
    X("hipErrorNotSupported",                  801,  UNSUPPORTED, false, NULL)                     \
    X("hipErrorRuntimeMemory",                 1052, NOMEM,       false, NULL)                     \
    X("hipErrorRuntimeOther",                  1053, UNAVAILABLE, true,  NULL)
/* clang-format on */

enum hip_number {
#define X(ours, theirs, value) ours = (value),
    HIP_NUMBERS(X)
#undef X
};

#endif
