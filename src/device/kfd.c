/* kfd.c - /sys/class/kfd/kfd: topology/nodes and proc.
 *
 * In CPX and similar modes every partition is a separate node: the same domain, bus and device in
 * location_id, with the partition's number in the three function bits. These nodes, not the drm
 * cards, show which partitions exist: the kernel keeps spare xcp cards in every mode. */
#include "device/kfd.h"

#include "device/value.h"

#include <inttypes.h>
#include <stdio.h>

enum { LINK_XGMI = 11, LINKS_MAX = 1024 };

static const char nodes_path[] = "class/kfd/kfd/topology/nodes";

/* A number in "key value" lines; false leaves 0. */
static bool find(struct acre_str text, const char *key, uint64_t max, uint32_t *ret_value) {
    uint64_t value = 0;
    if (value_find_u64(text, key, ' ', max, &value, NULL) < 0) {
        return false;
    }
    *ret_value = (uint32_t)value;
    return true;
}

static bool read_node(struct acre_sysfs *fs, uint32_t number, struct kfd_node *ret_node) {
    struct kfd_node node = {.number = number};
    uint64_t value = 0;
    sysfs_at(fs, "%s/%u/gpu_id", nodes_path, number);
    if (sysfs_u64(fs, UINT32_MAX, &value) < 0 || value == 0) {
        return false; /* a CPU */
    }
    node.gpu_id = (uint32_t)value;
    struct acre_str text;
    uint32_t location = 0;
    sysfs_at(fs, "%s/%u/properties", nodes_path, number);
    if (sysfs_text(fs, &text) < 0) {
        return false;
    }
    if (!find(text, "location_id", 0xffff, &location) ||
        !find(text, "domain", UINT32_MAX, &node.domain)) {
        struct acre_error err = {0};
        acre_fail(&err, ACRE_EINVALID, "GPU node %u has no valid location_id and domain", number);
        sysfs_note(fs, &err);
        return false;
    }
    node.bus = location >> 8;
    node.device = location >> 3 & 0x1f;
    node.function = location & 7;
    find(text, "simd_count", UINT32_MAX, &node.simds);
    find(text, "simd_per_cu", 1024, &node.simds_per_cu);
    find(text, "num_xcc", 64, &node.xcds);
    find(text, "gfx_target_version", 9999999, &node.gfx_version);
    sysfs_at(fs, "%s/%u/mem_banks/0/properties", nodes_path, number);
    if (sysfs_text(fs, &text) == 0) {
        value_find_u64(text, "size_in_bytes", ' ', UINT64_MAX, &node.memory_bytes, NULL);
    }
    *ret_node = node;
    return true;
}

uint32_t kfd_read(struct acre_sysfs *fs, struct kfd_node *ret_nodes, uint32_t max) {
    uint32_t numbers[ACRE_KFD_NODES_MAX];
    sysfs_at(fs, "%s", nodes_path);
    uint32_t found = sysfs_numbers(fs, "", numbers, ACRE_COUNT(numbers));
    uint32_t count = 0;
    for (uint32_t i = 0; i < found && count < max; i++) {
        count += read_node(fs, numbers[i], &ret_nodes[count]);
    }
    return count;
}

void kfd_xgmi(struct acre_sysfs *fs, uint32_t node_number, kfd_visit *visit, void *context) {
    uint32_t numbers[LINKS_MAX];
    sysfs_at(fs, "%s/%u/io_links", nodes_path, node_number);
    uint32_t found = sysfs_numbers(fs, "", numbers, ACRE_COUNT(numbers));
    for (uint32_t i = 0; i < found; i++) {
        struct acre_str text;
        uint32_t type = 0;
        uint32_t from = 0;
        uint32_t to = 0;
        sysfs_at(fs, "%s/%u/io_links/%u/properties", nodes_path, node_number, numbers[i]);
        if (sysfs_text(fs, &text) == 0 && find(text, "type", UINT32_MAX, &type) &&
            type == LINK_XGMI && find(text, "node_from", UINT32_MAX, &from) &&
            find(text, "node_to", UINT32_MAX, &to)) {
            visit(context, from, to);
        }
    }
}

int kfd_process_bytes(struct acre_sysfs *fs, uint32_t pid, uint32_t gpu_id, uint64_t *ret_bytes) {
    sysfs_at(fs, "class/kfd/kfd/proc/%u/vram_%u", pid, gpu_id);
    return sysfs_u64(fs, UINT64_MAX, ret_bytes);
}

char *kfd_gfx_name(uint32_t gfx_version, char *text, size_t size) {
    snprintf(text, size, "gfx%u%x%x", gfx_version / 10000, gfx_version / 100 % 100,
             gfx_version % 100);
    return text;
}
