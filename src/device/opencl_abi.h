/* opencl_abi.h - the OpenCL queries that only the device list needs: a device's place on the bus.
 *
 * Extensions of Khronos and NVIDIA, from the public OpenCL registry. Private to opencl.c. */
#ifndef ACRE_DEVICE_OPENCL_ABI_H
#define ACRE_DEVICE_OPENCL_ABI_H

#include "opencl/query.h"

enum {
    OPENCL_DEVICE_PCI_BUS_INFO_KHR = 0x410F, /* extension cl_khr_pci_bus_info */
    OPENCL_DEVICE_PCI_BUS_ID_NV = 0x4008,
    OPENCL_DEVICE_PCI_SLOT_ID_NV = 0x4009,
    OPENCL_DEVICE_PCI_DOMAIN_ID_NV = 0x400A,
};

struct opencl_pci {
    uint32_t domain, bus, device, function;
};
_Static_assert(sizeof(struct opencl_pci) == 16, "ABI");

#endif
