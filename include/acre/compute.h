/* compute.h - kernels on GPUs and CPUs through one interface: all of it.
 *
 *   context.h    devices; a tenant's place on one; streams and events
 *   memory.h     buffers, copies, the pool's report
 *   kernel.h     programs, kernels, launches, times
 *   parameter.h  what the kernels of a program take
 *   graph.h      work recorded and launched as a whole
 *   ring.h       a resident kernel that answers messages
 *   pipeline.h   large arrays through a kernel in overlapping pieces
 *   auto.h       the cheapest way to run a call, learned
 *   storage.h    files to and from the device
 *   cache.h      the directory of compiled programs
 *
 * docs/compute.md is a page to start with. */
#ifndef ACRE_COMPUTE_H
#define ACRE_COMPUTE_H

#include <acre/auto.h>
#include <acre/cache.h>
#include <acre/context.h>
#include <acre/graph.h>
#include <acre/kernel.h>
#include <acre/memory.h>
#include <acre/parameter.h>
#include <acre/pipeline.h>
#include <acre/ring.h>
#include <acre/storage.h>

#endif
