/* compute.h - run kernels on GPUs and CPUs through one interface. Includes all of it:
 *
 *   context.h    devices, contexts
 *   stream.h     streams, events
 *   memory.h     buffers, copies, the memory pool's report
 *   arg.h        arguments of a kernel: ACRE_BUFFER, ACRE_F32 and the like
 *   kernel.h     programs, kernels, launches, timings
 *   parameter.h  the parameters of a program's kernels
 *   graph.h      work recorded once and launched as a whole
 *   ring.h       a resident kernel that answers messages
 *   pipeline.h   large arrays through a kernel in overlapping pieces
 *   auto.h       the cheapest way to run a call, learned
 *   storage.h    files to and from the device
 *   cache.h      the directory of compiled programs
 *
 * Start with docs/compute.md. */
#ifndef ACRE_COMPUTE_H
#define ACRE_COMPUTE_H

#include <acre/arg.h>
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
#include <acre/stream.h>

#endif
