/* rocm.c - /sys/class/kfd/kfd/topology/nodes: CPUs and GPUs, numbered without gaps.
 *
 * A node with gpu_id 0 is a CPU. location_id holds bus, device and, in the three function bits,
 * the number of the partition; whole GPUs have 0 there. */
#include "engine/rocm.h"

#include "core/str.h"
#include "core/units.h"
#include "engine/lines.h"

#include <stdio.h>
#include <string.h>

enum { NODES_MAX = 1024, PARTITIONS_MAX = 8, PATH_BYTES = 256, SHOWN = 40 };

struct address {
    unsigned domain, bus, device;
};

static int node_number(const char *sys_root, uint32_t node, const char *file, const char *key,
                       uint32_t *ret_number) {
    char path[PATH_BYTES];
    snprintf(path, sizeof(path), "%s/class/kfd/kfd/topology/nodes/%u/%s", sys_root, node, file);
    return lines_number(path, key, ' ', ret_number, NULL);
}

static bool is_at(const char *sys_root, uint32_t node, const struct address *address,
                  uint32_t xcp) {
    uint32_t location = 0, domain = 0;
    if (node_number(sys_root, node, "properties", "location_id", &location) < 0 ||
        node_number(sys_root, node, "properties", "domain", &domain) < 0) {
        return false;
    }
    return domain == address->domain && location >> 8 == address->bus &&
           (location >> 3 & 0x1f) == address->device && (location & 7) == xcp;
}

bool rocm_partition(const char *id, uint32_t *ret_xcp) {
    static const char mark[] = "/xcp";
    const char *slash = strrchr(id, '/');
    uint64_t number;
    if (slash == NULL || strncmp(slash, mark, sizeof(mark) - 1) != 0 ||
        acre_parse_count("partition", slash + sizeof(mark) - 1, 0, PARTITIONS_MAX - 1, &number,
                         NULL) < 0) {
        return false;
    }
    *ret_xcp = (uint32_t)number;
    return true;
}

int rocm_find(const char *sys_root, const char *pci, uint32_t xcp, struct rocm_gpu *ret_gpu,
              struct acre_error *err) {
    struct address address;
    unsigned function;
    char shown[SHOWN];
    acre_str_show(acre_str_from(pci), shown, sizeof(shown));
    if (sscanf(pci, "%8x:%2x:%2x.%1x", &address.domain, &address.bus, &address.device, &function) !=
        4) {
        return acre_fail(err, ACRE_EINVALID,
                         "'%s' is not a PCI address; accepted: one like 0000:05:00.0", shown);
    }
    struct rocm_gpu gpu = {0};
    uint32_t gpu_id = 0;
    for (uint32_t node = 0;
         node < NODES_MAX && node_number(sys_root, node, "gpu_id", "", &gpu_id) == 0; node++) {
        if (gpu_id != 0 && is_at(sys_root, node, &address, xcp)) {
            node_number(sys_root, node, "properties", "drm_render_minor", &gpu.render_minor);
            *ret_gpu = gpu;
            return 0;
        }
        gpu.index += gpu_id != 0;
    }
    return acre_fail(err, ACRE_ENOTFOUND,
                     "no GPU at %s (partition %u) in %s/class/kfd/kfd/topology/nodes", shown, xcp,
                     sys_root);
}
