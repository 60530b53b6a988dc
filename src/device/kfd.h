/* kfd.h - the AMD compute driver's view: GPU nodes, partitions, xGMI links, processes.
 *
 * Read from <sysfs>/class/kfd/kfd. One thread at a time (the caller's acre_sysfs). */
#ifndef ACRE_DEVICE_KFD_H
#define ACRE_DEVICE_KFD_H

#include "core/error.h"
#include "device/sysfs.h"

enum { ACRE_KFD_NODES_MAX = 1024 }; /* 128 GPUs in CPX; the largest node seen has 66 */

struct kfd_node {
    uint32_t number; /* directory name */
    uint32_t gpu_id; /* never 0 here */
    uint32_t domain, bus, device;
    uint32_t function; /* the partition's number, not a PCI function, when a GPU is divided */
    uint32_t simds, simds_per_cu;
    uint32_t xcds;         /* 0: the kernel does not say */
    uint32_t gfx_version;  /* 90402 is gfx942 */
    uint64_t memory_bytes; /* 0: the kernel does not say */
};

/* Read the GPU nodes; nodes that are damaged are noted and left out. Returns how many. */
uint32_t kfd_read(struct acre_sysfs *fs, struct kfd_node *ret_nodes, uint32_t max);

/* Visit every xGMI link of a node. */
typedef void kfd_visit(void *context, uint32_t node_from, uint32_t node_to);
void kfd_xgmi(struct acre_sysfs *fs, uint32_t node_number, kfd_visit *visit, void *context);

/* Device memory a process holds on a GPU; 0 or ACRE_ENOTFOUND and its like. */
int kfd_process_bytes(struct acre_sysfs *fs, uint32_t pid, uint32_t gpu_id, uint64_t *ret_bytes);

/* 90402 -> "gfx942", 90010 -> "gfx90a", 110000 -> "gfx1100". */
char *kfd_gfx_name(uint32_t gfx_version, char *text, size_t size);

#endif
