/* opencl_double.c - a library with OpenCL's binary interface that answers from a script: test
 * equipment for opencl.c. The environment variable ACRE_OPENCL_DOUBLE holds words:
 *
 *   none      clGetPlatformIDs answers -1001
 *   broken    clGetDeviceIDs answers -6
 *   khr / nv  devices tell their PCI address by the Khronos or the NVIDIA extension
 *   away      devices are not available
 *
 * One platform, three devices: a GPU at 0000:10:00.0 (as nvml_double's first), its equal at
 * 0000:77:00.0, and a CPU. */
#include "device/opencl_abi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

struct _cl_device_id {
    uint64_t type;
    uint32_t bus;
    const char *name;
};

static struct _cl_device_id devices[] = {{1 << 2, 0x10, "Double GPU"},
                                         {1 << 2, 0x77, "Double GPU"},
                                         {OPENCL_DEVICE_TYPE_CPU, 0, "Double CPU"}};

static bool scripted(const char *word) {
    const char *script = getenv("ACRE_OPENCL_DOUBLE");
    return script != NULL && strstr(script, word) != NULL;
}

static int32_t give(const void *value, size_t length, size_t size, void *to, size_t *ret_length) {
    if (size < length) {
        return -30;
    }
    memcpy(to, value, length);
    if (ret_length != NULL) {
        *ret_length = length;
    }
    return OPENCL_SUCCESS;
}

int32_t clGetPlatformIDs(uint32_t max, opencl_platform *platforms, uint32_t *count) {
    if (scripted("none")) {
        return OPENCL_PLATFORM_NOT_FOUND_KHR;
    }
    *count = 1;
    platforms[0] = max > 0 ? (opencl_platform)devices : NULL;
    return OPENCL_SUCCESS;
}

int32_t clGetPlatformInfo(opencl_platform platform, uint32_t what, size_t size, void *to,
                          size_t *ret_length) {
    (void)platform;
    (void)what;
    return scripted("broken") ? -32 : give("Double", sizeof("Double"), size, to, ret_length);
}

int32_t clGetDeviceIDs(opencl_platform platform, uint64_t type, uint32_t max, opencl_device *to,
                       uint32_t *count) {
    (void)platform;
    (void)type;
    if (scripted("broken")) {
        return -6;
    }
    *count = ACRE_COUNT(devices);
    for (uint32_t i = 0; i < *count && i < max; i++) {
        to[i] = &devices[i];
    }
    return OPENCL_SUCCESS;
}

static int32_t give_text(const char *text, size_t size, void *to, size_t *ret_length) {
    return give(text, strlen(text) + 1, size, to, ret_length);
}

static int32_t give_u32(uint32_t value, size_t size, void *to, size_t *ret_length) {
    return give(&value, sizeof(value), size, to, ret_length);
}

static int32_t give_u64(uint64_t value, size_t size, void *to, size_t *ret_length) {
    return give(&value, sizeof(value), size, to, ret_length);
}

int32_t clGetDeviceInfo(opencl_device device, uint32_t what, size_t size, void *to,
                        size_t *ret_length) {
    struct opencl_pci pci = {0, device->bus, 0, 0};
    switch (what) {
    case OPENCL_DEVICE_TYPE:
        return give_u64(device->type, size, to, ret_length);
    case OPENCL_DEVICE_MAX_COMPUTE_UNITS:
        return give_u32(96, size, to, ret_length);
    case OPENCL_DEVICE_MAX_CLOCK_FREQUENCY:
        return give_u32(0, size, to, ret_length);
    case OPENCL_DEVICE_GLOBAL_MEM_SIZE:
        return give_u64(UINT64_C(16) << 30, size, to, ret_length);
    case OPENCL_DEVICE_AVAILABLE:
        return give_u32(!scripted("away"), size, to, ret_length);
    case OPENCL_DEVICE_NAME:
        return give_text(device->name, size, to, ret_length);
    case OPENCL_DEVICE_VENDOR:
        return give_text("Double Inc.", size, to, ret_length);
    case OPENCL_DRIVER_VERSION:
        return give_text("1.2.3", size, to, ret_length);
    case OPENCL_DEVICE_VERSION:
        return give_text("OpenCL 3.0", size, to, ret_length);
    case OPENCL_DEVICE_EXTENSIONS:
        return give_text(scripted("khr")  ? "cl_khr_fp64 cl_khr_pci_bus_info"
                         : scripted("nv") ? "cl_nv_device_attribute_query"
                                          : "cl_khr_fp64",
                         size, to, ret_length);
    case OPENCL_DEVICE_PCI_BUS_INFO_KHR:
        return give(&pci, sizeof(pci), size, to, ret_length);
    case OPENCL_DEVICE_PCI_BUS_ID_NV:
        return give_u32(device->bus, size, to, ret_length);
    case OPENCL_DEVICE_PCI_SLOT_ID_NV:
    case OPENCL_DEVICE_PCI_DOMAIN_ID_NV:
        return give_u32(0, size, to, ret_length);
    default:
        return -30;
    }
}
