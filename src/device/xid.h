/* xid.h - what NVIDIA's XID error codes mean for the GPU that reported them (CAP-10).
 *
 * Application errors are counted and never held against the device: a wrong pointer in a user's
 * kernel is no reason to take a GPU away. Errors of the hardware, the bus or the firmware drain
 * that GPU, and only that one. Codes that are not in the table count as unknown, and not against
 * the device. Pure; any thread. */
#ifndef ACRE_DEVICE_XID_H
#define ACRE_DEVICE_XID_H

#include "core/base.h"

enum xid_cause {
    ACRE_XID_UNKNOWN,
    ACRE_XID_APPLICATION,
    ACRE_XID_HARDWARE,
};

struct xid {
    uint32_t code;
    enum xid_cause cause;
    const char *text;
};

/* NULL: not in the table. */
const struct xid *xid_find(uint32_t code);

#endif
