/* nodes.c - from what drivers say to what the inventory holds.
 *
 * Only drivers that open no compute library are asked: they answer in milliseconds, and the daemon
 * never touches a compute context. A device that is divided is left out; its slices are listed. */
#include "daemon/nodes.h"

#include "core/clock.h"
#include "daemon/sampler.h"
#include "desk/inventory.h"
#include "device/device.h"
#include "device/node.h"
#include "device/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Islands are numbers of one machine; the ledger keeps them apart by node. */
static uint32_t island_of(const struct acre_device_info *info, uint32_t index) {
    return ACRE_HAS(info, ACRE_INFO, island) ? (uint32_t)info->island : index + 1000U;
}

static void add_device(struct acre_inventory *inventory, const struct acre_device_info *info,
                       uint32_t index, bool simulated) {
    struct acre_inventory_device device = {
        .id = info->id,
        .model = ACRE_HAS(info, ACRE_INFO, model) ? info->model : "",
        .vendor = ACRE_HAS(info, ACRE_INFO, vendor) ? info->vendor : "",
        .pci = ACRE_HAS(info, ACRE_INFO, pci_id) ? info->pci_id : "",
        .driver = ACRE_HAS(info, ACRE_INFO, driver) ? info->driver : "",
        .memory_mib = ACRE_HAS(info, ACRE_INFO, memory_total_mib) ? info->memory_total_mib : 0,
        .island = island_of(info, index),
        .step_milli =
            ACRE_HAS(info, ACRE_INFO, share_step_milli) ? (uint32_t)info->share_step_milli : 0,
        .units = ACRE_HAS(info, ACRE_INFO, compute_units) ? (uint32_t)info->compute_units : 0,
        .is_mig = ACRE_HAS(info, ACRE_INFO, kind) && strcmp(info->kind, "mig") == 0,
        .simulated = simulated,
    };
    acre_inventory_add_device(inventory, &device);
}

static bool is_usable(const struct acre_device_info *info) {
    bool divided = ACRE_HAS(info, ACRE_INFO, divided) && info->divided;
    return !divided && strcmp(info->kind, "cpu") != 0;
}

static void add_node(struct acre_inventory *inventory, const struct acre_device_options *options,
                     const struct acre_devices *devices, const char *const *labels,
                     uint32_t label_count, uint32_t *map) {
    struct acre_clock clock = acre_clock_real();
    struct acre_node_info info;
    acre_node_read(options, acre_clock_wall_ms(&clock), &info);
    bool simulated = options->sim != NULL;
    struct acre_inventory_node node = {
        .name = ACRE_HAS(&info, ACRE_NODE, name) ? info.name : "localhost",
        .cpu_milli = ACRE_HAS(&info, ACRE_NODE, cpu_milli) ? info.cpu_milli : 0,
        .ram_mib = ACRE_HAS(&info, ACRE_NODE, ram_total_mib) ? info.ram_total_mib : 0,
        .labels = labels,
        .label_count = label_count,
        .simulated = simulated,
    };
    acre_inventory_add_node(inventory, &node);
    for (uint32_t i = 0; i < acre_devices_count(devices); i++) {
        const struct acre_device_info *device = acre_devices_info(devices, i);
        if (is_usable(device)) {
            if (map != NULL) {
                map[i] = acre_inventory_devices(inventory);
            }
            add_device(inventory, device, i, simulated);
        }
    }
}

void acre_nodes_here(struct acre_inventory *inventory, struct acre_devices **ret_devices,
                     uint32_t **ret_map) {
    struct acre_device_options options = {.telemetry_only = true};
    struct acre_devices *devices = acre_devices_open(&options);
    uint32_t count = acre_devices_count(devices);
    uint32_t *map = acre_calloc(count + 1U, sizeof(*map));
    memset(map, 0xff, (count + 1U) * sizeof(*map)); /* not looked after */
    add_node(inventory, &options, devices, NULL, 0, map);
    *ret_devices = devices;
    *ret_map = map;
}

void acre_nodes_close(struct acre_devices *devices) {
    acre_devices_close(devices);
}

/* What the file says is in use, and how warm: once, it does not change. */
static void read_simulated(struct acre_inventory *inventory, struct acre_devices *devices,
                           uint32_t first) {
    struct acre_clock clock = acre_clock_real();
    uint32_t count = acre_devices_count(devices);
    struct acre_device_reading *readings = acre_calloc(count + 1U, sizeof(*readings));
    acre_devices_read(devices, acre_clock_wall_ms(&clock), NULL, 0, readings);
    for (uint32_t i = 0; i < count; i++) {
        struct acre_device_live live = acre_sampler_live(&readings[i].sample);
        acre_inventory_set_live(inventory, first + i, &live);
        acre_device_reading_finish(&readings[i]);
    }
    free(readings);
}

int acre_nodes_simulated(struct acre_inventory *inventory, const char *path,
                         struct acre_error *err) {
    struct acre_sim_cluster *cluster = NULL;
    int r = acre_sim_load(path, &cluster, err);
    if (r < 0) {
        return r;
    }
    for (uint32_t n = 0; n < acre_sim_node_count(cluster); n++) {
        const struct acre_sim_node *node = acre_sim_node(cluster, n);
        const struct acre_sim_label *labels = acre_sim_labels(cluster, node);
        char texts[ACRE_SIM_LABELS_MAX][2 * ACRE_SIM_NAME_MAX + 2];
        const char *pointers[ACRE_SIM_LABELS_MAX];
        for (uint32_t i = 0; i < node->label_count; i++) {
            snprintf(texts[i], sizeof(texts[i]), "%s=%s", labels[i].key, labels[i].value);
            pointers[i] = texts[i];
        }
        struct acre_device_options options = {.sim = cluster, .sim_node = n};
        struct acre_devices *devices = acre_devices_open(&options);
        uint32_t first = acre_inventory_devices(inventory);
        add_node(inventory, &options, devices, pointers, node->label_count, NULL);
        read_simulated(inventory, devices, first);
        acre_devices_close(devices);
    }
    acre_sim_destroy(cluster);
    return 0;
}
