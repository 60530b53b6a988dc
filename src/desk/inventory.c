/* inventory.c - two growing tables and the strings they name. */
#include "desk/inventory.h"

#include "core/arena.h"

#include <stdlib.h>
#include <string.h>

struct acre_inventory {
    struct acre_arena *strings;
    struct acre_inventory_node *nodes;
    struct acre_inventory_device *devices;
    uint32_t node_count, node_capacity;
    uint32_t device_count, device_capacity;
    bool simulated;
};

struct acre_inventory *acre_inventory_create(void) {
    struct acre_inventory *inventory = acre_calloc(1, sizeof(*inventory));
    inventory->strings = acre_arena_create(SIZE_MAX);
    return inventory;
}

void acre_inventory_destroy(struct acre_inventory *inventory) {
    if (inventory == NULL) {
        return;
    }
    acre_arena_destroy(inventory->strings);
    free(inventory->nodes);
    free(inventory->devices);
    free(inventory);
}

static const char *copy(struct acre_inventory *inventory, const char *text) {
    return text != NULL ? acre_arena_strndup(inventory->strings, text, strlen(text)) : "";
}

void acre_inventory_add_node(struct acre_inventory *inventory,
                             const struct acre_inventory_node *node) {
    inventory->nodes = acre_grow(inventory->nodes, inventory->node_count, &inventory->node_capacity,
                                 sizeof(*inventory->nodes));
    const char **labels =
        acre_arena_alloc(inventory->strings, (node->label_count + 1U) * sizeof(*labels));
    for (uint32_t i = 0; i < node->label_count; i++) {
        labels[i] = copy(inventory, node->labels[i]);
    }
    struct acre_inventory_node *to = &inventory->nodes[inventory->node_count++];
    *to = *node;
    to->name = copy(inventory, node->name);
    to->labels = labels;
    to->first_device = inventory->device_count;
    to->device_count = 0;
    inventory->simulated |= node->simulated;
}

void acre_inventory_add_device(struct acre_inventory *inventory,
                               const struct acre_inventory_device *device) {
    ACRE_ASSERT(inventory->node_count > 0);
    inventory->devices = acre_grow(inventory->devices, inventory->device_count,
                                   &inventory->device_capacity, sizeof(*inventory->devices));
    struct acre_inventory_device *to = &inventory->devices[inventory->device_count++];
    *to = *device;
    to->id = copy(inventory, device->id);
    to->model = copy(inventory, device->model);
    to->vendor = copy(inventory, device->vendor);
    to->pci = copy(inventory, device->pci);
    to->driver = copy(inventory, device->driver);
    to->node = inventory->node_count - 1;
    inventory->nodes[to->node].device_count++;
    inventory->simulated |= device->simulated;
}

void acre_inventory_set_live(struct acre_inventory *inventory, uint32_t device,
                             const struct acre_device_live *live) {
    ACRE_ASSERT(device < inventory->device_count);
    inventory->devices[device].live = *live;
}

uint32_t acre_inventory_nodes(const struct acre_inventory *inventory) {
    return inventory->node_count;
}

uint32_t acre_inventory_devices(const struct acre_inventory *inventory) {
    return inventory->device_count;
}

const struct acre_inventory_node *acre_inventory_node(const struct acre_inventory *inventory,
                                                      uint32_t index) {
    ACRE_ASSERT(index < inventory->node_count);
    return &inventory->nodes[index];
}

const struct acre_inventory_device *acre_inventory_device(const struct acre_inventory *inventory,
                                                          uint32_t index) {
    ACRE_ASSERT(index < inventory->device_count);
    return &inventory->devices[index];
}

bool acre_inventory_is_simulated(const struct acre_inventory *inventory) {
    return inventory->simulated;
}

int acre_inventory_fill(const struct acre_inventory *inventory, struct acre_ledger *ledger,
                        struct acre_error *err) {
    int r = 0;
    struct acre_device_spec *specs = acre_calloc(inventory->device_count + 1U, sizeof(*specs));
    for (uint32_t n = 0; n < inventory->node_count && r == 0; n++) {
        const struct acre_inventory_node *node = &inventory->nodes[n];
        for (uint32_t d = 0; d < node->device_count; d++) {
            const struct acre_inventory_device *device =
                &inventory->devices[node->first_device + d];
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
        uint32_t index = 0;
        r = acre_ledger_add_node(ledger, &spec, &index, err);
        ACRE_ASSERT(r < 0 || index == n);
    }
    free(specs);
    for (uint32_t d = 0; d < inventory->device_count && r == 0; d++) {
        const struct acre_inventory_device *device = &inventory->devices[d];
        bool known =
            device->live.sampled_ms != 0 && device->live.foreign_mib != ACRE_INVENTORY_UNKNOWN;
        if (known && device->memory_mib != 0) {
            r = acre_ledger_set_foreign(
                ledger, d, ACRE_MIN(device->live.foreign_mib, device->memory_mib), err);
        }
    }
    return r;
}
