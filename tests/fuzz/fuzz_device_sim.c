/* Any bytes as a simulated cluster: parsed or refused with a reason, and then walked. */
#include "device/sim.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void walk(const struct acre_sim_cluster *cluster) {
    ACRE_ASSERT(acre_sim_node_count(cluster) > 0);
    for (uint32_t n = 0; n < acre_sim_node_count(cluster); n++) {
        const struct acre_sim_node *node = acre_sim_node(cluster, n);
        ACRE_ASSERT(node->device_count <= ACRE_SIM_DEVICES_MAX);
        for (uint32_t d = 0; d < node->device_count; d++) {
            uint32_t in_group = 0;
            const struct acre_sim_group *group = acre_sim_device(cluster, node, d, &in_group);
            ACRE_ASSERT(in_group < group->count && group->memory_mib > 0);
            ACRE_ASSERT(group->used_mib <= group->memory_mib && strlen(group->model) > 0);
        }
        const struct acre_sim_label *labels = acre_sim_labels(cluster, node);
        for (uint32_t i = 0; i < node->label_count; i++) {
            ACRE_ASSERT(strlen(labels[i].key) > 0 && strlen(labels[i].value) > 0);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct acre_sim_cluster *cluster = NULL;
    struct acre_error err = {0};
    int r = acre_sim_parse("fuzz", (struct acre_str){(const char *)data, size}, &cluster, &err);
    if (r == 0) {
        walk(cluster);
    } else {
        ACRE_ASSERT(cluster == NULL && err.code == r && err.text[0] != '\0');
    }
    acre_sim_destroy(cluster);
    return 0;
}
