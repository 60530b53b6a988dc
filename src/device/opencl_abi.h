/* opencl_abi.h - the part of OpenCL's binary interface that opencl.c uses. Private to it.
 *
 * From the public OpenCL registry: handles are pointers, cl_int is 32 bits, cl_ulong 64. */
#ifndef ACRE_DEVICE_OPENCL_ABI_H
#define ACRE_DEVICE_OPENCL_ABI_H

#include "core/base.h"

typedef struct opencl_platform_opaque *opencl_platform;
typedef struct opencl_device_opaque *opencl_device;

enum {
    OPENCL_SUCCESS = 0,
    OPENCL_DEVICE_NOT_FOUND = -1,
    OPENCL_PLATFORM_NOT_FOUND = -1001, /* the loader is there, no driver is */
    OPENCL_PLATFORM_NAME = 0x0902,
    OPENCL_DEVICE_TYPE = 0x1000,
    OPENCL_COMPUTE_UNITS = 0x1002,
    OPENCL_CLOCK_MAX_MHZ = 0x100C,
    OPENCL_MEMORY_BYTES = 0x101F,
    OPENCL_DEVICE_AVAILABLE = 0x1027,
    OPENCL_DEVICE_NAME = 0x102B,
    OPENCL_DEVICE_VENDOR = 0x102C,
    OPENCL_DRIVER_VERSION = 0x102D,
    OPENCL_DEVICE_VERSION = 0x102F,
    OPENCL_DEVICE_EXTENSIONS = 0x1030,
    OPENCL_PCI_KHR = 0x410F, /* extension cl_khr_pci_bus_info */
    OPENCL_PCI_BUS_NV = 0x4008,
    OPENCL_PCI_SLOT_NV = 0x4009,
    OPENCL_PCI_DOMAIN_NV = 0x400A,
    OPENCL_TYPE_CPU = 1 << 1,
};
#define OPENCL_TYPE_ALL UINT64_C(0xFFFFFFFF)

struct opencl_pci {
    uint32_t domain, bus, device, function;
};
_Static_assert(sizeof(struct opencl_pci) == 16, "ABI");

/* clang-format off */
#define OPENCL_SYMBOLS(X)                                                                   \
    /* required  field          symbol               arguments                           */ \
    X(true,      platforms,     "clGetPlatformIDs",  (uint32_t, opencl_platform *, uint32_t *)) \
    X(true,      platform_info, "clGetPlatformInfo", (opencl_platform, uint32_t, size_t, void *, \
                                                      size_t *))                            \
    X(true,      devices,       "clGetDeviceIDs",    (opencl_platform, uint64_t, uint32_t,  \
                                                      opencl_device *, uint32_t *))         \
    X(true,      device_info,   "clGetDeviceInfo",   (opencl_device, uint32_t, size_t, void *, \
                                                      size_t *))
/* clang-format on */

#endif
