/* sim_driver.c - a simulated node as an ordinary device driver.
 *
 * Every device says simulated; what the file does not give stays unknown. Its memory in use belongs
 * to no process that Acre knows, so it shows as foreign, as it would on a real device. */
#include "device/device.h"
#include "device/sim.h"

#include <stdlib.h>

struct sim {
    const struct acre_sim_cluster *cluster; /* borrowed */
    const struct acre_sim_node *node;
};

static int sim_open(const struct acre_device_options *options, void **ret_self,
                    struct acre_error *err) {
    if (options->sim == NULL) {
        return acre_fail(err, ACRE_EUNAVAILABLE, "simulated devices need --sim FILE");
    }
    if (options->sim_node >= acre_sim_node_count(options->sim)) {
        return acre_fail(err, ACRE_ENOTFOUND, "no simulated node %u; the file has %u",
                         options->sim_node, acre_sim_node_count(options->sim));
    }
    struct sim *sim = acre_calloc(1, sizeof(*sim));
    sim->cluster = options->sim;
    sim->node = acre_sim_node(options->sim, options->sim_node);
    *ret_self = sim;
    return 0;
}

static void sim_close(void *self) {
    free(self);
}

static uint32_t sim_count(const void *self) {
    return ((const struct sim *)self)->node->device_count;
}

/* NULL: no such device. */
static const struct acre_sim_group *find(const struct sim *sim, uint32_t index,
                                         struct acre_error *err) {
    uint32_t in_group = 0;
    if (index >= sim->node->device_count) {
        acre_fail(err, ACRE_ENOTFOUND, "sim: no device %u on %s; there are %u", index,
                  sim->node->name, sim->node->device_count);
        return NULL;
    }
    return acre_sim_device(sim->cluster, sim->node, index, &in_group);
}

static int sim_info(void *self, uint32_t index, struct acre_device_info *ret_info,
                    struct acre_error *err) {
    struct sim *sim = self;
    const struct acre_sim_group *group = find(sim, index, err);
    if (group == NULL) {
        return ACRE_ENOTFOUND;
    }
    struct acre_device_info info = {0};
    char id[ACRE_COLUMN_TEXT_MAX];
    acre_sim_device_id(sim->node, index, id, sizeof(id));
    ACRE_PUT_TEXT(&info, ACRE_INFO, id, acre_str_from(id));
    ACRE_PUT(&info, ACRE_INFO, simulated, true);
    ACRE_PUT_TEXT(&info, ACRE_INFO, driver, ACRE_STR("sim"));
    ACRE_PUT_TEXT(&info, ACRE_INFO, kind, ACRE_STR("gpu"));
    ACRE_PUT(&info, ACRE_INFO, divided, false);
    ACRE_PUT_TEXT(&info, ACRE_INFO, vendor, acre_str_from(group->vendor));
    ACRE_PUT_TEXT(&info, ACRE_INFO, model, acre_str_from(group->model));
    ACRE_PUT(&info, ACRE_INFO, memory_total_mib, group->memory_mib);
    *ret_info = info;
    return 0;
}

static int sim_sample(void *self, uint32_t index, struct acre_device_sample *ret_sample,
                      struct acre_error *err) {
    const struct acre_sim_group *group = find(self, index, err);
    if (group == NULL) {
        return ACRE_ENOTFOUND;
    }
    struct acre_device_sample sample = {0};
    ACRE_PUT_TEXT(&sample, ACRE_SAMPLE, state, group->lost ? ACRE_STR("lost") : ACRE_STR("ok"));
    if (group->lost) {
        ACRE_PUT_TEXT(&sample, ACRE_SAMPLE, reason, ACRE_STR("lost in the simulation file"));
        *ret_sample = sample;
        return 0;
    }
    ACRE_PUT(&sample, ACRE_SAMPLE, memory_used_mib, group->used_mib);
    ACRE_PUT(&sample, ACRE_SAMPLE, memory_free_mib, group->memory_mib - group->used_mib);
    if ((group->given & ACRE_SIM_UTILIZATION) != 0) {
        ACRE_PUT(&sample, ACRE_SAMPLE, utilization_gpu_pct, group->utilization_pct);
    }
    if ((group->given & ACRE_SIM_TEMPERATURE) != 0) {
        ACRE_PUT(&sample, ACRE_SAMPLE, temperature_c, group->temperature_c);
    }
    if ((group->given & ACRE_SIM_POWER) != 0) {
        ACRE_PUT(&sample, ACRE_SAMPLE, power_mw, (uint64_t)group->power_w * 1000);
    }
    if ((group->given & ACRE_SIM_POWER_LIMIT) != 0) {
        ACRE_PUT(&sample, ACRE_SAMPLE, power_limit_mw, (uint64_t)group->power_limit_w * 1000);
    }
    *ret_sample = sample;
    return 0;
}

static int sim_processes(void *self, uint32_t index, struct acre_process_list *list,
                         struct acre_error *err) {
    (void)list; /* the file knows no processes: an empty list, so all use is unattributed */
    return find(self, index, err) != NULL ? 0 : ACRE_ENOTFOUND;
}

static int sim_links(void *self, struct acre_link_list *list, struct acre_error *err) {
    struct sim *sim = self;
    (void)err;
    const struct acre_sim_group *group = acre_sim_groups(sim->cluster, sim->node);
    uint32_t first = 0;
    for (uint32_t g = 0; g < sim->node->group_count; g++, group++) {
        for (uint32_t i = 0; i < group->count; i++) {
            for (uint32_t j = i + 1; j < group->count; j++) {
                if (group->island > 0 && i / group->island == j / group->island) {
                    link_list_add(list, (struct acre_device_link){first + i, first + j,
                                                                  ACRE_LINK_SIMULATED, 0});
                }
            }
        }
        first += group->count;
    }
    return 0;
}

const struct acre_device_driver acre_driver_sim = {
    .name = "sim",
    .what = "simulated devices from a file",
    .telemetry = true,
    .open = sim_open,
    .close = sim_close,
    .count = sim_count,
    .info = sim_info,
    .sample = sim_sample,
    .processes = sim_processes,
    .links = sim_links,
};
