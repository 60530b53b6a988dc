/* inventory.c - two growing tables and the strings they name. */
#include "desk/inventory.h"

#include "core/arena.h"
#include "core/map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct acre_inventory {
    struct acre_arena *strings;
    struct inventory_node *nodes;
    struct acre_engine_device *devices;
    uint32_t node_count, node_capacity;
    uint32_t device_count, device_capacity;
    struct acre_map by_name; /* hashes of names: indexes of nodes */
};

struct acre_inventory *inventory_create(void) {
    struct acre_inventory *inventory = acre_calloc(1, sizeof(*inventory));
    inventory->strings = acre_arena_create(SIZE_MAX);
    return inventory;
}

void inventory_destroy(struct acre_inventory *inventory) {
    if (inventory == NULL) {
        return;
    }
    acre_arena_destroy(inventory->strings);
    free(inventory->nodes);
    free(inventory->devices);
    acre_map_finish(&inventory->by_name);
    free(inventory);
}

static const char *copy(struct acre_inventory *inventory, const char *text) {
    return text != NULL ? acre_arena_strndup(inventory->strings, text, strlen(text)) : "";
}

static void add_device(struct acre_inventory *inventory, const struct acre_engine_device *device) {
    inventory->devices = acre_grow(inventory->devices, inventory->device_count,
                                   &inventory->device_capacity, sizeof(*inventory->devices));
    struct acre_engine_device *to = &inventory->devices[inventory->device_count++];
    *to = *device;
    to->id = copy(inventory, device->id);
    to->model = copy(inventory, device->model);
    to->vendor = copy(inventory, device->vendor);
    to->pci = copy(inventory, device->pci);
    to->driver = copy(inventory, device->driver);
}

static uint64_t name_key(const char *name) {
    uint64_t hash = acre_hash_bytes(name, strlen(name));
    return hash != 0 ? hash : 1;
}

static void add_node(struct acre_inventory *inventory, uint32_t engine,
                     const struct acre_engine_node *node) {
    inventory->nodes = acre_grow(inventory->nodes, inventory->node_count, &inventory->node_capacity,
                                 sizeof(*inventory->nodes));
    const char **labels =
        acre_arena_alloc(inventory->strings, (node->label_count + 1U) * sizeof(*labels));
    for (uint32_t i = 0; i < node->label_count; i++) {
        labels[i] = copy(inventory, node->labels[i]);
    }
    inventory->nodes[inventory->node_count++] = (struct inventory_node){
        .name = copy(inventory, node->name),
        .cpu_milli = node->cpu_milli,
        .ram_mib = node->ram_mib,
        .labels = labels,
        .label_count = node->label_count,
        .first_device = inventory->device_count,
        .device_count = node->device_count,
        .engine = engine,
        .simulated = node->simulated,
    };
    for (uint32_t i = 0; i < node->device_count; i++) {
        add_device(inventory, &node->devices[i]);
    }
    acre_map_put(&inventory->by_name, name_key(node->name), inventory->node_count - 1);
}

/* The same devices as before, in the same order? */
static bool has_same_devices(const struct acre_inventory *inventory,
                             const struct inventory_node *known,
                             const struct acre_engine_node *node) {
    bool same = known->device_count == node->device_count;
    for (uint32_t i = 0; same && i < node->device_count; i++) {
        same = strcmp(inventory->devices[known->first_device + i].id, node->devices[i].id) == 0;
    }
    return same;
}

int inventory_put(struct acre_inventory *inventory, uint32_t engine,
                  const struct acre_engine_node *node, uint32_t *ret_index,
                  struct acre_error *err) {
    uint32_t index = 0;
    if (!inventory_find_node(inventory, node->name, &index)) {
        add_node(inventory, engine, node);
        *ret_index = inventory->node_count - 1;
        return 0;
    }
    struct inventory_node *known = &inventory->nodes[index];
    if (known->engine != engine) {
        return acre_fail(err, ACRE_ECONFLICT, "node '%s' already belongs to another engine",
                         node->name);
    }
    if (!has_same_devices(inventory, known, node)) {
        return acre_fail(err, ACRE_ECONFLICT,
                         "the GPUs of node '%s' have changed (%u before, %u now); restart 'acre "
                         "serve' to use them",
                         node->name, known->device_count, node->device_count);
    }
    known->is_lost = false;
    for (uint32_t i = 0; i < node->device_count; i++) {
        inventory->devices[known->first_device + i].live = node->devices[i].live;
    }
    *ret_index = index;
    return 0;
}

void inventory_undo(struct acre_inventory *inventory) {
    ACRE_ASSERT(inventory->node_count > 0);
    const struct inventory_node *last = &inventory->nodes[--inventory->node_count];
    inventory->device_count = last->first_device;
    acre_map_remove(&inventory->by_name, name_key(last->name));
}

void inventory_lose(struct acre_inventory *inventory, uint32_t node, const char *why) {
    ACRE_ASSERT(node < inventory->node_count);
    struct inventory_node *lost = &inventory->nodes[node];
    lost->is_lost = true;
    snprintf(lost->why_lost, sizeof(lost->why_lost), "%s", why);
}

void inventory_set_live(struct acre_inventory *inventory, uint32_t device,
                        const struct acre_device_live *live) {
    ACRE_ASSERT(device < inventory->device_count);
    inventory->devices[device].live = *live;
}

uint32_t inventory_nodes(const struct acre_inventory *inventory) {
    return inventory->node_count;
}

uint32_t inventory_devices(const struct acre_inventory *inventory) {
    return inventory->device_count;
}

const struct inventory_node *inventory_node(const struct acre_inventory *inventory,
                                            uint32_t index) {
    ACRE_ASSERT(index < inventory->node_count);
    return &inventory->nodes[index];
}

const struct acre_engine_device *inventory_device(const struct acre_inventory *inventory,
                                                  uint32_t index) {
    ACRE_ASSERT(index < inventory->device_count);
    return &inventory->devices[index];
}

bool inventory_find_node(const struct acre_inventory *inventory, const char *name,
                         uint32_t *ret_index) {
    uint32_t at = acre_map_get(&inventory->by_name, name_key(name));
    bool found = at != ACRE_MAP_NONE && strcmp(inventory->nodes[at].name, name) == 0;
    if (found) {
        *ret_index = at;
    }
    return found;
}

bool inventory_find_device(const struct acre_inventory *inventory, const char *id,
                           uint32_t *ret_index) {
    for (uint32_t i = 0; i < inventory->device_count; i++) {
        if (strcmp(inventory->devices[i].id, id) == 0) {
            *ret_index = i;
            return true;
        }
    }
    return false;
}

bool inventory_is_simulated(const struct acre_inventory *inventory) {
    bool simulated = false;
    for (uint32_t i = 0; i < inventory->node_count && !simulated; i++) {
        simulated = inventory->nodes[i].simulated;
    }
    return simulated;
}

static int add_to_ledger(const struct acre_inventory *inventory, uint32_t index,
                         struct acre_ledger *ledger, struct acre_error *err) {
    const struct inventory_node *node = &inventory->nodes[index];
    struct acre_device_spec *specs = acre_calloc(node->device_count + 1U, sizeof(*specs));
    for (uint32_t d = 0; d < node->device_count; d++) {
        const struct acre_engine_device *device = &inventory->devices[node->first_device + d];
        specs[d] = (struct acre_device_spec){.id = device->id,
                                             .model = device->model,
                                             .vendor = device->vendor,
                                             .memory_mib = device->memory_mib,
                                             .island = device->island,
                                             .step_milli = device->step_milli,
                                             .is_mig = device->is_mig,
                                             .exclusive_only = device->exclusive_only};
    }
    struct acre_node_spec spec = {.name = node->name,
                                  .cpu_milli = node->cpu_milli,
                                  .ram_mib = node->ram_mib,
                                  .labels = node->labels,
                                  .label_count = node->label_count,
                                  .devices = specs,
                                  .device_count = node->device_count};
    uint32_t added = 0;
    int r = acre_ledger_add_node(ledger, &spec, &added, err);
    ACRE_ASSERT(r < 0 || added == index);
    free(specs);
    return r;
}

int inventory_fill(const struct acre_inventory *inventory, uint32_t node,
                   struct acre_ledger *ledger, struct acre_error *err) {
    const struct inventory_node *known = inventory_node(inventory, node);
    int r = add_to_ledger(inventory, node, ledger, err);
    for (uint32_t d = 0; d < known->device_count && r == 0; d++) {
        const struct acre_engine_device *device = &inventory->devices[known->first_device + d];
        bool is_read = device->live.sampled_ms != 0 && device->live.foreign_mib != ACRE_UNKNOWN;
        if (is_read && device->memory_mib != 0) {
            r = acre_ledger_set_foreign(ledger, known->first_device + d,
                                        ACRE_MIN(device->live.foreign_mib, device->memory_mib),
                                        err);
        }
    }
    if (r == 0 && known->is_lost) {
        r = acre_ledger_drain_node(ledger, node, true, err);
    }
    return r;
}
