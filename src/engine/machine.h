/* machine.h - what this machine has, or what a file says that simulated ones have.
 *
 * Only drivers that open no compute library are asked: they answer in milliseconds, and the daemon
 * never touches a compute context. One thread at a time. */
#ifndef ACRE_ENGINE_MACHINE_H
#define ACRE_ENGINE_MACHINE_H

#include "core/error.h"
#include "engine/node.h"

struct acre_device_sample;

typedef void acre_machine_found(void *context, const struct acre_engine_node *node);

/* This machine: its name, CPUs and RAM, and the GPUs that NVML or the kernel know. A device that is
 * divided is left out; its slices are listed. Finding no GPU is not an error. */
void acre_machine_here(acre_machine_found *found, void *context);
/* The nodes of a file, marked as simulated. Its errors name the file and the line. */
int acre_machine_simulated(const char *path, acre_machine_found *found, void *context,
                           struct acre_error *err);

/* A driver's sample as a reading. Any thread. */
struct acre_device_live acre_machine_live(const struct acre_device_sample *sample);

#endif
