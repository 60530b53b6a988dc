/* xid.h - what NVIDIA's XID error codes mean for the GPU that reported them (CAP-10).
 *
 * Errors of an application are counted and never held against the device: a wrong pointer in a
 * user's kernel is no reason to take a GPU away. Errors of the hardware, the bus or the firmware
 * drain that GPU, and only that one. Codes that are not in the table are counted as unknown: what
 * we do not know does not count against a device. Pure; any thread. */
#ifndef ACRE_DEVICE_XID_H
#define ACRE_DEVICE_XID_H

#include "core/base.h"

enum acre_xid_class {
    ACRE_XID_UNKNOWN,
    ACRE_XID_APPLICATION,
    ACRE_XID_HARDWARE,
};

struct acre_xid {
    uint32_t code;
    enum acre_xid_class class;
    const char *text;
};

/* NULL: not in the table. */
const struct acre_xid *acre_xid_find(uint32_t code);

#endif
