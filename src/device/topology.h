/* topology.h - which devices are close to one another: links between pairs, and islands.
 *
 * Pure; any thread. */
#ifndef ACRE_DEVICE_TOPOLOGY_H
#define ACRE_DEVICE_TOPOLOGY_H

#include "core/error.h"
#include "device/tables.h"

/* clang-format off */
#define ACRE_LINKS(X)                                                          \
    /* kind          name           island: the pair is one                  */ \
    X(NVLINK,        "nvlink",      true)  /* direct */                          \
    X(NVSWITCH,      "nvswitch",    true)  /* both ends on the switch */         \
    X(XGMI,          "xgmi",        true)                                        \
    X(BOARD,         "board",       false) /* two GPUs on one board */           \
    X(PCIE_SWITCH,   "pcie-switch", false) /* one PCIe switch between */         \
    X(PCIE_SWITCHES, "pcie-tree",   false) /* several, no host bridge */         \
    X(PCIE_HOST,     "pcie-host",   false) /* through one host bridge */         \
    X(NUMA,          "numa",        false) /* same NUMA node */                  \
    X(SYSTEM,        "system",      false) /* across sockets */                  \
    X(SIMULATED,     "simulated",   true)
/* clang-format on */

enum link_kind {
#define X(kind, name, island) ACRE_LINK_##kind,
    ACRE_LINKS(X)
#undef X
        ACRE_LINK_COUNT
};

struct acre_device_link {
    uint32_t a, b; /* positions, a < b */
    enum link_kind kind;
    uint32_t count; /* of parallel links; 0: unknown */
};

struct acre_link_list {
    struct acre_device_link *items;
    uint32_t count;
    uint32_t capacity;
};

const char *link_name(enum link_kind kind);

void link_list_add(struct acre_link_list *list, struct acre_device_link link);
void link_list_finish(struct acre_link_list *list);

/* Fill island and island_kind of `infos`: first the groups joined by NVLink, NVSwitch or xGMI;
 * then, for devices in none, those of one NUMA node. Slices take their parent's island. A
 * device with neither keeps island unknown. Islands are numbered in order of first device. */
void islands_assign(struct acre_device_info *infos, uint32_t count,
                    const struct acre_device_link *links, uint32_t link_count);

#endif
