/* machine.c - from what device drivers answer to what an engine reports. */
#include "engine/machine.h"

#include "core/clock.h"
#include "device/device.h"
#include "device/node.h"
#include "device/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t known_or(bool known, uint64_t value) {
    return known ? value : ACRE_UNKNOWN;
}

struct acre_device_live acre_machine_live(const struct acre_device_sample *sample) {
#define FIELD(name) known_or(ACRE_HAS(sample, ACRE_SAMPLE, name), (uint64_t)sample->name)
    struct acre_device_live live = {
        .sampled_ms = sample->sampled_ms,
        .used_mib = FIELD(memory_used_mib),
        .foreign_mib = FIELD(memory_foreign_mib),
        .utilization_pct = FIELD(utilization_gpu_pct),
        .temperature_c = ACRE_HAS(sample, ACRE_SAMPLE, temperature_c) && sample->temperature_c >= 0
                             ? (uint64_t)sample->temperature_c
                             : ACRE_UNKNOWN,
        .power_mw = FIELD(power_mw),
        .processes = FIELD(processes),
    };
#undef FIELD
    if (ACRE_HAS(sample, ACRE_SAMPLE, state)) {
        acre_str_copy(live.state, sizeof(live.state), acre_str_from(sample->state));
    }
    return live;
}

/* Islands are numbers of one machine; the ledger keeps them apart by node. */
static uint32_t island_of(const struct acre_device_info *info, uint32_t index) {
    return ACRE_HAS(info, ACRE_INFO, island) ? (uint32_t)info->island : index + 1000U;
}

static struct acre_engine_device describe(const struct acre_device_info *info, uint32_t index) {
    return (struct acre_engine_device){
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
    };
}

static bool is_usable(const struct acre_device_info *info) {
    bool divided = ACRE_HAS(info, ACRE_INFO, divided) && info->divided;
    return !divided && strcmp(info->kind, "cpu") != 0;
}

/* What the file says is in use, and how warm: once, it does not change. */
static void read_simulated(struct acre_devices *devices, uint64_t now_ms,
                           struct acre_device_live *lives) {
    uint32_t count = acre_devices_count(devices);
    struct acre_device_reading *readings = acre_calloc(count + 1U, sizeof(*readings));
    acre_devices_read(devices, now_ms, NULL, 0, readings);
    for (uint32_t i = 0; i < count; i++) {
        lives[i] = acre_machine_live(&readings[i].sample);
        acre_device_reading_finish(&readings[i]);
    }
    free(readings);
}

static void report(const struct acre_device_options *options, const char *const *labels,
                   uint32_t label_count, acre_machine_found *found, void *context) {
    struct acre_clock clock = acre_clock_real();
    uint64_t now_ms = acre_clock_wall_ms(&clock);
    struct acre_devices *devices = acre_devices_open(options);
    uint32_t count = acre_devices_count(devices);
    struct acre_engine_device *list = acre_calloc(count + 1U, sizeof(*list));
    struct acre_device_live *lives = acre_calloc(count + 1U, sizeof(*lives));
    bool simulated = options->sim != NULL;
    if (simulated) {
        read_simulated(devices, now_ms, lives);
    }
    uint32_t usable = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct acre_device_info *device = acre_devices_info(devices, i);
        if (is_usable(device)) {
            list[usable] = describe(device, i);
            list[usable].simulated = simulated;
            list[usable++].live = lives[i];
        }
    }
    struct acre_node_info info;
    acre_node_read(options, now_ms, &info);
    struct acre_engine_node node = {
        .name = ACRE_HAS(&info, ACRE_NODE, name) ? info.name : "localhost",
        .cpu_milli = ACRE_HAS(&info, ACRE_NODE, cpu_milli) ? info.cpu_milli : 0,
        .ram_mib = ACRE_HAS(&info, ACRE_NODE, ram_total_mib) ? info.ram_total_mib : 0,
        .labels = labels,
        .label_count = label_count,
        .devices = list,
        .device_count = usable,
        .simulated = simulated,
    };
    found(context, &node);
    free(lives);
    free(list);
    acre_devices_close(devices);
}

void acre_machine_here(acre_machine_found *found, void *context) {
    struct acre_device_options options = {.telemetry_only = true};
    report(&options, NULL, 0, found, context);
}

int acre_machine_simulated(const char *path, acre_machine_found *found, void *context,
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
        report(&options, pointers, node->label_count, found, context);
    }
    acre_sim_destroy(cluster);
    return 0;
}
