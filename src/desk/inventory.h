/* inventory.h - the nodes and devices that engines have reported: what they are, current readings.
 *
 * Indexes are the order of the first report and stay good; the ledger has the same. Loop thread
 * only. It holds no allocation: that is the ledger's. */
#ifndef ACRE_DESK_INVENTORY_H
#define ACRE_DESK_INVENTORY_H

#include "engine/node.h"
#include "ledger/nodes.h"

struct inventory_node {
    const char *name;
    uint64_t cpu_milli, ram_mib;
    const char *const *labels; /* "key=value" */
    uint32_t label_count;
    uint32_t first_device, device_count;
    uint32_t engine; /* the one that has it: an index of the desk's */
    bool simulated;
    bool is_lost;
    char why_lost[120];
};

struct acre_inventory;

struct acre_inventory *inventory_create(void);
void inventory_destroy(struct acre_inventory *inventory); /* NULL is fine */

/* A node as its engine reports it, copied. A new one gets the next index. One that is known is no
 * longer lost, and its readings are new. ACRE_ECONFLICT: it is another engine's, or has other
 * devices than before; nothing changed. */
int inventory_put(struct acre_inventory *inventory, uint32_t engine,
                  const struct acre_engine_node *node, uint32_t *ret_index, struct acre_error *err);
/* Take back the node that was added last. */
void inventory_undo(struct acre_inventory *inventory);
void inventory_lose(struct acre_inventory *inventory, uint32_t node, const char *why);
void inventory_set_live(struct acre_inventory *inventory, uint32_t device,
                        const struct acre_device_live *live);

uint32_t inventory_nodes(const struct acre_inventory *inventory);
uint32_t inventory_devices(const struct acre_inventory *inventory);
const struct inventory_node *inventory_node(const struct acre_inventory *inventory, uint32_t index);
const struct acre_engine_device *inventory_device(const struct acre_inventory *inventory,
                                                  uint32_t index);
bool inventory_find_node(const struct acre_inventory *inventory, const char *name,
                         uint32_t *ret_index);
bool inventory_find_device(const struct acre_inventory *inventory, const char *id,
                           uint32_t *ret_index);
bool inventory_is_simulated(const struct acre_inventory *inventory); /* any of it */

/* Add one node, the next, to the ledger: its index is the same there. */
int inventory_fill(const struct acre_inventory *inventory, uint32_t node,
                   struct acre_ledger *ledger, struct acre_error *err);

#endif
