/* xid.c - the policy table, one row per code, in order of code.
 *
 * Which codes are an application's own fault follows the list of the Kubernetes device plugin (13,
 * 31, 43, 45, 68, 109), plus 94: the driver contained the error to the application that saw it. */
#include "device/xid.h"

/* clang-format off */
static const struct xid table[] = {
    { 8,   ACRE_XID_APPLICATION, "GPU stopped processing"},
    { 13,  ACRE_XID_APPLICATION, "graphics engine exception"},
    { 31,  ACRE_XID_APPLICATION, "GPU memory page fault"},
    { 32,  ACRE_XID_APPLICATION, "invalid or corrupted push buffer"},
    { 43,  ACRE_XID_APPLICATION, "GPU stopped processing"},
    { 45,  ACRE_XID_APPLICATION, "channel cleaned up after an earlier error"},
    { 48,  ACRE_XID_HARDWARE,    "double-bit ECC error"},
    { 54,  ACRE_XID_HARDWARE,    "auxiliary power is not connected"},
    { 62,  ACRE_XID_HARDWARE,    "internal micro-controller halt"},
    { 63,  ACRE_XID_HARDWARE,    "ECC page retired or row remapped: reset needed"},
    { 64,  ACRE_XID_HARDWARE,    "ECC page retirement or row remapping failed"},
    { 68,  ACRE_XID_APPLICATION, "video decoder exception"},
    { 69,  ACRE_XID_APPLICATION, "graphics engine class error"},
    { 74,  ACRE_XID_HARDWARE,    "NVLink error"},
    { 79,  ACRE_XID_HARDWARE,    "GPU has fallen off the bus"},
    { 92,  ACRE_XID_HARDWARE,    "high rate of single-bit ECC errors"},
    { 94,  ACRE_XID_APPLICATION, "contained ECC error"},
    { 95,  ACRE_XID_HARDWARE,    "uncontained ECC error"},
    { 109, ACRE_XID_APPLICATION, "context switch timeout"},
    { 119, ACRE_XID_HARDWARE,    "GSP firmware did not answer"},
    { 120, ACRE_XID_HARDWARE,    "GSP firmware error"},
    { 140, ACRE_XID_HARDWARE,    "unrecovered ECC error"},
};
/* clang-format on */

const struct xid *xid_find(uint32_t code) {
    for (size_t i = 0; i < ACRE_COUNT(table); i++) {
        if (table[i].code == code) {
            return &table[i];
        }
    }
    return NULL;
}
