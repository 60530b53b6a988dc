/* nvml_abi.h - the part of NVML's binary interface that nvml.c uses, as facts: codes, layouts,
 * symbol names. Private to nvml*.c and its test double; no vendor header is needed.
 *
 * Checked against the NVML 13 header by size and offset (the asserts below state what was
 * found). Enums are passed as int-sized; a version word is sizeof(struct) | version << 24.
 *
 * nvmlDeviceGet*RunningProcesses_v3: drivers 535.43 to 535.86 wrote 32-byte entries through the
 * symbol that has 24-byte ones before and after; nvml_live.c uses _v2 there. */
#ifndef ACRE_DEVICE_NVML_ABI_H
#define ACRE_DEVICE_NVML_ABI_H

#include "core/base.h"

typedef struct nvml_device_opaque *nvml_device;
typedef struct nvml_event_set_opaque *nvml_event_set;

/* clang-format off */
#define NVML_CODES(X)                                                                         \
    /* name                     code  what it means, and what to do                        */ \
    X(SUCCESS,                  0,    "success")                                              \
    X(UNINITIALIZED,            1,    "NVML is not initialized")                              \
    X(INVALID_ARGUMENT,         2,    "invalid argument")                                     \
    X(NOT_SUPPORTED,            3,    "not supported by this device")                         \
    X(NO_PERMISSION,            4,    "no permission: check the modes of /dev/nvidia*")       \
    X(NOT_FOUND,                6,    "not found")                                            \
    X(INSUFFICIENT_SIZE,        7,    "buffer too small")                                     \
    X(INSUFFICIENT_POWER,       8,    "a power cable is not attached to the GPU")             \
    X(DRIVER_NOT_LOADED,        9,    "the NVIDIA kernel driver is not loaded: modprobe nvidia") \
    X(TIMEOUT,                  10,   "no event within the timeout")                          \
    X(IRQ_ISSUE,                11,   "the kernel found an interrupt problem with a GPU")     \
    X(LIBRARY_NOT_FOUND,        12,   "a library NVML needs was not found")                   \
    X(FUNCTION_NOT_FOUND,       13,   "this NVML does not implement the function")            \
    X(CORRUPTED_INFOROM,        14,   "the GPU's infoROM is corrupted")                       \
    X(GPU_IS_LOST,              15,   "the GPU is lost: it fell off the bus, reboot the node") \
    X(RESET_REQUIRED,           16,   "the GPU must be reset: nvidia-smi --gpu-reset")        \
    X(OPERATING_SYSTEM,         17,   "the device is blocked by the operating system or a cgroup") \
    X(LIB_RM_VERSION_MISMATCH,  18,                                                           \
      "library and driver versions differ: reload the driver or reboot")                      \
    X(IN_USE,                   19,   "the GPU is in use")                                    \
    X(MEMORY,                   20,   "out of memory")                                        \
    X(NO_DATA,                  21,   "no data")                                              \
    X(ARGUMENT_VERSION_MISMATCH, 25,  "this NVML does not know the structure's version")      \
    X(DEPRECATED,               26,   "deprecated")                                           \
    X(NOT_READY,                27,   "not ready")                                            \
    X(GPU_NOT_FOUND,            28,   "no GPU was found")                                     \
    X(UNKNOWN,                  999,  "internal driver error")
/* clang-format on */

enum nvml_code {
#define X(name, code, text) NVML_##name = (code),
    NVML_CODES(X)
#undef X
};

enum {
    NVML_TEXT_MAX = 96, /* UUID and name, v2 sizes */
    NVML_LINKS_MAX = 36,
    NVML_TEMPERATURE_GPU = 0,
    NVML_THRESHOLD_SHUTDOWN = 0,
    NVML_THRESHOLD_SLOWDOWN = 1,
    NVML_CLOCK_SM = 1,
    NVML_CLOCK_MEM = 2,
    NVML_ERROR_CORRECTED = 0,
    NVML_ERROR_UNCORRECTED = 1,
    NVML_ECC_VOLATILE = 0,
    NVML_ECC_AGGREGATE = 1,
    NVML_RETIRED_SINGLE_BIT = 0,
    NVML_RETIRED_DOUBLE_BIT = 1,
    NVML_REMOTE_GPU = 0,
    NVML_REMOTE_SWITCH = 2,
    NVML_FIELD_MEMORY_TEMPERATURE = 82,
    NVML_EVENT_XID = 0x8,
};
#define NVML_NO_INSTANCE UINT32_MAX /* process outside MIG */
#define NVML_NO_MEMORY   UINT64_MAX /* the process's use is not available */

struct nvml_pci {
    char bus_id_legacy[16];
    unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
    char bus_id[32];
};
struct nvml_memory {
    unsigned long long total, free, used;
};
struct nvml_memory_v2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
};
struct nvml_utilization {
    unsigned gpu, memory;
};
struct nvml_process { /* v2 and v3 */
    unsigned pid;
    unsigned long long used_bytes;
    unsigned gpu_instance, compute_instance;
};
struct nvml_attributes {
    unsigned multiprocessors, copy_engines, decoders, encoders, jpeg_engines, ofa_engines;
    unsigned gpu_slices, compute_slices;
    unsigned long long memory_mib;
};
struct nvml_event {
    nvml_device device;
    unsigned long long type, data;
    unsigned gpu_instance, compute_instance;
};
struct nvml_field {
    unsigned field, scope;
    long long timestamp_us, latency_us;
    int value_type, code;
    union {
        unsigned u32;
        unsigned long long u64;
        double f64;
    } value;
};
struct nvml_temperature {
    unsigned version;
    int sensor, celsius;
};

#define NVML_VERSION(type, number) ((unsigned)sizeof(type) | (unsigned)(number) << 24)

_Static_assert(sizeof(struct nvml_pci) == 68 && offsetof(struct nvml_pci, bus_id) == 36, "ABI");
_Static_assert(sizeof(struct nvml_memory) == 24, "ABI");
_Static_assert(sizeof(struct nvml_memory_v2) == 40, "ABI");
_Static_assert(offsetof(struct nvml_memory_v2, used) == 32, "ABI");
_Static_assert(sizeof(struct nvml_process) == 24, "ABI");
_Static_assert(offsetof(struct nvml_process, gpu_instance) == 16, "ABI");
_Static_assert(sizeof(struct nvml_attributes) == 40, "ABI");
_Static_assert(sizeof(struct nvml_event) == 32 && offsetof(struct nvml_event, data) == 16, "ABI");
_Static_assert(sizeof(struct nvml_field) == 40 && offsetof(struct nvml_field, code) == 28, "ABI");
_Static_assert(sizeof(struct nvml_temperature) == 12, "ABI");
_Static_assert(NVML_VERSION(struct nvml_memory_v2, 2) == 0x02000028, "ABI");

#endif
