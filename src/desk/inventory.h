/* inventory.h - the nodes and devices this daemon looks after: what they are, and how they feel.
 *
 * Filled once by the daemon (this machine, or simulated nodes), read by handlers, and poured into
 * every new ledger, whose indexes are the order of adding. Live values come from the sampler;
 * unknown is ACRE_INVENTORY_UNKNOWN. Loop thread only. It holds no allocation: that is the
 * ledger's. */
#ifndef ACRE_DESK_INVENTORY_H
#define ACRE_DESK_INVENTORY_H

#include "ledger/nodes.h"

#define ACRE_INVENTORY_UNKNOWN UINT64_MAX

/* How a device feels, as last read. */
struct acre_device_live {
    uint64_t sampled_ms; /* wall clock; 0: never */
    uint64_t used_mib, foreign_mib;
    uint64_t utilization_pct;
    uint64_t temperature_c; /* below 0: unknown */
    uint64_t power_mw;
    uint64_t processes;
    char state[16]; /* "ok", "lost"; "": unknown */
    char health[16];
};

struct acre_inventory_device {
    const char *id, *model, *vendor, *pci, *driver;
    uint64_t memory_mib; /* 0: unknown */
    uint32_t island, step_milli;
    uint32_t units; /* AMD: compute units; 0: unknown */
    uint32_t node;
    bool is_mig, exclusive_only, simulated;
    struct acre_device_live live;
};

struct acre_inventory_node {
    const char *name;
    uint64_t cpu_milli, ram_mib;
    const char *const *labels; /* "key=value" */
    uint32_t label_count;
    uint32_t first_device, device_count;
    bool simulated;
};

struct acre_inventory;

struct acre_inventory *acre_inventory_create(void);
void acre_inventory_destroy(struct acre_inventory *inventory); /* NULL is fine */

/* Copied. The devices added after a node are its own. */
void acre_inventory_add_node(struct acre_inventory *inventory,
                             const struct acre_inventory_node *node);
void acre_inventory_add_device(struct acre_inventory *inventory,
                               const struct acre_inventory_device *device);
void acre_inventory_set_live(struct acre_inventory *inventory, uint32_t device,
                             const struct acre_device_live *live);

uint32_t acre_inventory_nodes(const struct acre_inventory *inventory);
uint32_t acre_inventory_devices(const struct acre_inventory *inventory);
const struct acre_inventory_node *acre_inventory_node(const struct acre_inventory *inventory,
                                                      uint32_t index);
const struct acre_inventory_device *acre_inventory_device(const struct acre_inventory *inventory,
                                                          uint32_t index);
bool acre_inventory_is_simulated(const struct acre_inventory *inventory); /* any of it */

/* Add all nodes to an empty ledger: the indexes are the same there. */
int acre_inventory_fill(const struct acre_inventory *inventory, struct acre_ledger *ledger,
                        struct acre_error *err);

#endif
