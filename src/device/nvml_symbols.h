/* nvml_symbols.h - every NVML symbol Acre calls, written once: whether it is required, its member
 * in struct nvml_api, its name in the library and its arguments. Private to nvml*.c and its test
 * double. */
#ifndef ACRE_DEVICE_NVML_SYMBOLS_H
#define ACRE_DEVICE_NVML_SYMBOLS_H

#include "device/nvml_abi.h"

/* clang-format off */
#define NVML_SYMBOLS(X)                                                                           \
    /* required, member, symbol, arguments */                                                     \
    X(true,  init,             "nvmlInit_v2", (void))                                             \
    X(true,  shutdown,         "nvmlShutdown", (void))                                            \
    X(true,  driver_version,   "nvmlSystemGetDriverVersion", (char *, unsigned))                  \
    X(false, library_version,  "nvmlSystemGetNVMLVersion", (char *, unsigned))                    \
    X(false, cuda_version,     "nvmlSystemGetCudaDriverVersion_v2", (int *))                      \
    X(true,  count,            "nvmlDeviceGetCount_v2", (unsigned *))                             \
    X(true,  by_index,         "nvmlDeviceGetHandleByIndex_v2", (unsigned, nvml_device *))        \
    X(true,  uuid,             "nvmlDeviceGetUUID", (nvml_device, char *, unsigned))              \
    X(true,  pci,              "nvmlDeviceGetPciInfo_v3", (nvml_device, struct nvml_pci *))       \
    X(true,  name,             "nvmlDeviceGetName", (nvml_device, char *, unsigned))              \
    X(false, serial,           "nvmlDeviceGetSerial", (nvml_device, char *, unsigned))            \
    X(false, architecture,     "nvmlDeviceGetArchitecture", (nvml_device, unsigned *))            \
    X(false, capability,       "nvmlDeviceGetCudaComputeCapability", (nvml_device, int *, int *)) \
    X(false, attributes,       "nvmlDeviceGetAttributes_v2",                                      \
                             (nvml_device, struct nvml_attributes *))                             \
    X(true,  memory,           "nvmlDeviceGetMemoryInfo", (nvml_device, struct nvml_memory *))    \
    X(false, memory_v2,        "nvmlDeviceGetMemoryInfo_v2",                                      \
                             (nvml_device, struct nvml_memory_v2 *))                              \
    X(false, utilization,      "nvmlDeviceGetUtilizationRates",                                   \
                             (nvml_device, struct nvml_utilization *))                            \
    X(false, temperature,      "nvmlDeviceGetTemperature", (nvml_device, unsigned, unsigned *))   \
    X(false, temperature_v,    "nvmlDeviceGetTemperatureV",                                       \
                             (nvml_device, struct nvml_temperature *))                            \
    X(false, threshold,        "nvmlDeviceGetTemperatureThreshold",                               \
                             (nvml_device, unsigned, unsigned *))                                 \
    X(false, fields,           "nvmlDeviceGetFieldValues",                                        \
                             (nvml_device, int, struct nvml_field *))                             \
    X(false, power,            "nvmlDeviceGetPowerUsage", (nvml_device, unsigned *))              \
    X(false, power_limit,      "nvmlDeviceGetEnforcedPowerLimit", (nvml_device, unsigned *))      \
    X(false, power_range,      "nvmlDeviceGetPowerManagementLimitConstraints",                    \
                             (nvml_device, unsigned *, unsigned *))                               \
    X(false, clock,            "nvmlDeviceGetClockInfo", (nvml_device, unsigned, unsigned *))     \
    X(false, clock_max,        "nvmlDeviceGetMaxClockInfo", (nvml_device, unsigned, unsigned *))  \
    X(false, throttle,         "nvmlDeviceGetCurrentClocksEventReasons",                          \
                             (nvml_device, unsigned long long *))                                 \
    X(false, throttle_old,     "nvmlDeviceGetCurrentClocksThrottleReasons",                       \
                             (nvml_device, unsigned long long *))                                 \
    X(false, ecc_mode,         "nvmlDeviceGetEccMode", (nvml_device, unsigned *, unsigned *))     \
    X(false, ecc_errors,       "nvmlDeviceGetTotalEccErrors",                                     \
                             (nvml_device, unsigned, unsigned, unsigned long long *))             \
    X(false, retired,          "nvmlDeviceGetRetiredPages",                                       \
                             (nvml_device, unsigned, unsigned *, unsigned long long *))           \
    X(false, retire_pending,   "nvmlDeviceGetRetiredPagesPendingStatus",                          \
                             (nvml_device, unsigned *))                                           \
    X(false, remapped,         "nvmlDeviceGetRemappedRows",                                       \
                             (nvml_device, unsigned *, unsigned *, unsigned *, unsigned *))       \
    X(false, event_set_create, "nvmlEventSetCreate", (nvml_event_set *))                          \
    X(false, event_set_free,   "nvmlEventSetFree", (nvml_event_set))                              \
    X(false, event_register,   "nvmlDeviceRegisterEvents",                                        \
                             (nvml_device, unsigned long long, nvml_event_set))                   \
    X(false, event_wait,       "nvmlEventSetWait_v2",                                             \
                             (nvml_event_set, struct nvml_event *, unsigned))                     \
    X(false, compute_v3,       "nvmlDeviceGetComputeRunningProcesses_v3",                         \
                             (nvml_device, unsigned *, struct nvml_process *))                    \
    X(false, compute_v2,       "nvmlDeviceGetComputeRunningProcesses_v2",                         \
                             (nvml_device, unsigned *, struct nvml_process *))                    \
    X(false, graphics_v3,      "nvmlDeviceGetGraphicsRunningProcesses_v3",                        \
                             (nvml_device, unsigned *, struct nvml_process *))                    \
    X(false, graphics_v2,      "nvmlDeviceGetGraphicsRunningProcesses_v2",                        \
                             (nvml_device, unsigned *, struct nvml_process *))                    \
    X(false, mps_v3,           "nvmlDeviceGetMPSComputeRunningProcesses_v3",                      \
                             (nvml_device, unsigned *, struct nvml_process *))                    \
    X(false, mps_v2,           "nvmlDeviceGetMPSComputeRunningProcesses_v2",                      \
                             (nvml_device, unsigned *, struct nvml_process *))                    \
    X(false, mig_mode,         "nvmlDeviceGetMigMode", (nvml_device, unsigned *, unsigned *))     \
    X(false, mig_max,          "nvmlDeviceGetMaxMigDeviceCount", (nvml_device, unsigned *))       \
    X(false, mig_by_index,     "nvmlDeviceGetMigDeviceHandleByIndex",                             \
                             (nvml_device, unsigned, nvml_device *))                              \
    X(false, gpu_instance,     "nvmlDeviceGetGpuInstanceId", (nvml_device, unsigned *))           \
    X(false, compute_instance, "nvmlDeviceGetComputeInstanceId", (nvml_device, unsigned *))       \
    X(false, link_state,       "nvmlDeviceGetNvLinkState", (nvml_device, unsigned, unsigned *))   \
    X(false, link_version,     "nvmlDeviceGetNvLinkVersion", (nvml_device, unsigned, unsigned *)) \
    X(false, link_remote,      "nvmlDeviceGetNvLinkRemotePciInfo_v2",                             \
                             (nvml_device, unsigned, struct nvml_pci *))                          \
    X(false, link_remote_type, "nvmlDeviceGetNvLinkRemoteDeviceType",                             \
                             (nvml_device, unsigned, unsigned *))                                 \
    X(false, pcie_gen,         "nvmlDeviceGetCurrPcieLinkGeneration", (nvml_device, unsigned *))  \
    X(false, pcie_width,       "nvmlDeviceGetCurrPcieLinkWidth", (nvml_device, unsigned *))       \
    X(false, pcie_gen_max,     "nvmlDeviceGetMaxPcieLinkGeneration", (nvml_device, unsigned *))   \
    X(false, pcie_width_max,   "nvmlDeviceGetMaxPcieLinkWidth", (nvml_device, unsigned *))        \
    X(false, ancestor,         "nvmlDeviceGetTopologyCommonAncestor",                             \
                             (nvml_device, nvml_device, unsigned *))                              \
    X(false, persistence,      "nvmlDeviceGetPersistenceMode", (nvml_device, unsigned *))         \
    X(false, compute_mode,     "nvmlDeviceGetComputeMode", (nvml_device, unsigned *))
/* clang-format on */

enum nvml_symbol {
#define X(required, member, symbol, arguments) NVML_SYMBOL_##member,
    NVML_SYMBOLS(X)
#undef X
        NVML_SYMBOL_COUNT
};

struct nvml_api {
#define X(required, member, symbol, arguments) int(*member) arguments;
    NVML_SYMBOLS(X)
#undef X
};

#endif
