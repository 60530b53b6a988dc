/* node.h - the machine around the devices: name, CPUs, memory.
 *
 * One thread at a time. */
#ifndef ACRE_DEVICE_NODE_H
#define ACRE_DEVICE_NODE_H

#include "device/device.h"

/* Read the node that `options` describe: this machine, or the simulated node. What cannot be
 * read stays unknown. */
void acre_node_read(const struct acre_device_options *options, uint64_t now_ms,
                    struct acre_node_info *ret_node);

/* CPUs online (from <sysfs>/devices/system/cpu/online) and RAM (from <proc>/meminfo), shared
 * with the CPU driver. Each returns 0 or an error, leaving the output untouched. */
struct acre_sysfs;
int acre_node_cpus(struct acre_sysfs *sys, uint64_t *ret_count);
int acre_node_ram(struct acre_sysfs *proc, uint64_t *ret_total_mib, uint64_t *ret_available_mib);

#endif
