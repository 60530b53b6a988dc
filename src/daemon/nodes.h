/* nodes.h - which nodes and devices the daemon looks after: this machine, or simulated ones.
 *
 * One thread at a time. What is found is poured into an inventory once, at start. */
#ifndef ACRE_DAEMON_NODES_H
#define ACRE_DAEMON_NODES_H

#include "core/error.h"

#include <stdint.h>

struct acre_inventory;
struct acre_devices;

/* This machine: its name, CPUs and RAM, and the GPUs that NVML or the kernel know. The device
 * indexes of the inventory are those of `ret_devices`' (by `ret_map`), which the caller
 * closes. Finding no GPU is not an error. */
void acre_nodes_here(struct acre_inventory *inventory, struct acre_devices **ret_devices,
                     uint32_t **ret_map);
void acre_nodes_close(struct acre_devices *devices); /* NULL is fine */
/* The nodes of a file, labelled simulated. Its errors name the file and the line. */
int acre_nodes_simulated(struct acre_inventory *inventory, const char *path,
                         struct acre_error *err);

#endif
