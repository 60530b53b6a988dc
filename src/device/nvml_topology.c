/* nvml_topology.c - NVLink ends read once at open, pairs compared on request.
 *
 * For each pair the closest connection is kept: direct NVLinks, else a common NVSwitch, else the
 * PCIe ancestor that NVML names. Slices are not listed: they are where their parent is. */
#include "device/nvml.h"

#include <string.h>

void nvml_read_links(struct nvml *nv, struct nvml_gpu *gpu) {
    uint64_t active_links = 0;
    bool answered = false;
    for (unsigned i = 0; i < NVML_LINKS_MAX && nv->api.link_state != NULL; i++) {
        unsigned active = 0;
        if (nv->api.link_state(gpu->handle, i, &active) != NVML_SUCCESS) {
            break; /* past the last link, or none at all */
        }
        answered = true;
        if (active == 0) {
            continue;
        }
        active_links++;
        unsigned value = 0;
        if (active_links == 1 && NVML_ASK(nv, gpu, link_version, i, &value)) {
            ACRE_PUT(&gpu->info, ACRE_INFO, nvlink_version, value);
        }
        struct nvml_link *link = &gpu->links[gpu->link_count++];
        link->is_switch =
            NVML_ASK(nv, gpu, link_remote_type, i, &value) && value == NVML_REMOTE_SWITCH;
        struct nvml_pci pci = {0};
        if (NVML_ASK(nv, gpu, link_remote, i, &pci)) {
            pci_id_format(pci.domain, pci.bus, pci.device, 0, link->pci_id);
        }
    }
    if (answered) {
        ACRE_PUT(&gpu->info, ACRE_INFO, nvlinks, active_links);
    }
}

static uint32_t count_links(const struct nvml_gpu *from, const char *to_pci_id) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < from->link_count; i++) {
        bool hit = to_pci_id == NULL
                       ? from->links[i].is_switch
                       : !from->links[i].is_switch && strcmp(from->links[i].pci_id, to_pci_id) == 0;
        count += hit;
    }
    return count;
}

/* False: NVML does not say how they are connected. */
static bool connect(struct nvml *nv, uint32_t a, uint32_t b, struct acre_device_link *ret_link) {
    static const struct {
        unsigned level;
        enum link_kind kind;
    } ancestors[] = {
        {0, ACRE_LINK_BOARD},      {10, ACRE_LINK_PCIE_SWITCH}, {20, ACRE_LINK_PCIE_SWITCHES},
        {30, ACRE_LINK_PCIE_HOST}, {40, ACRE_LINK_NUMA},        {50, ACRE_LINK_SYSTEM},
    };
    struct nvml_gpu *x = &nv->gpus[a];
    struct nvml_gpu *y = &nv->gpus[b];
    *ret_link = (struct acre_device_link){.a = a, .b = b, .kind = ACRE_LINK_NVLINK};
    ret_link->count = ACRE_HAS(&y->info, ACRE_INFO, pci_id) ? count_links(x, y->info.pci_id) : 0;
    if (ret_link->count > 0) {
        return true;
    }
    ret_link->kind = ACRE_LINK_NVSWITCH;
    ret_link->count = ACRE_MIN(count_links(x, NULL), count_links(y, NULL));
    if (ret_link->count > 0) {
        return true;
    }
    unsigned level = 0;
    if (!NVML_ASK(nv, x, ancestor, y->handle, &level)) {
        return false;
    }
    for (size_t i = 0; i < ACRE_COUNT(ancestors); i++) {
        if (ancestors[i].level == level) {
            ret_link->kind = ancestors[i].kind;
            return true;
        }
    }
    return false;
}

int nvml_links(void *self, struct acre_link_list *list, struct acre_error *err) {
    struct nvml *nv = self;
    (void)err;
    for (uint32_t a = 0; a < nv->count; a++) {
        for (uint32_t b = a + 1; b < nv->count; b++) {
            struct acre_device_link link;
            if (!nv->gpus[a].slice && !nv->gpus[b].slice && connect(nv, a, b, &link)) {
                link_list_add(list, link);
            }
        }
    }
    return 0;
}
