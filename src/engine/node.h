/* node.h - a machine that an engine can start runs on, as the engine reports it.
 *
 * Plain values with borrowed strings; any thread may make one. */
#ifndef ACRE_ENGINE_NODE_H
#define ACRE_ENGINE_NODE_H

#include "core/base.h"

/* Current readings of a device; ACRE_UNKNOWN for what nobody answered. */
struct acre_device_live {
    uint64_t sampled_ms; /* wall clock; 0: never */
    uint64_t used_mib, foreign_mib;
    uint64_t utilization_pct;
    uint64_t temperature_c; /* below 0: unknown */
    uint64_t power_mw;
    uint64_t processes;
    char state[16]; /* "ok", "lost"; "": unknown */
    char health[16];
};

/* One GPU, or one hardware slice of it. NULL stands for "". */
struct acre_engine_device {
    const char *id, *model, *vendor, *pci, *driver;
    uint64_t memory_mib; /* 0: unknown */
    uint32_t island, step_milli;
    uint32_t units; /* AMD: compute units; 0: unknown */
    bool is_mig, exclusive_only;
    bool simulated; /* no hardware behind it */
    struct acre_device_live live;
};

struct acre_engine_node {
    const char *name;
    uint64_t cpu_milli, ram_mib;
    const char *const *labels; /* "key=value" */
    uint32_t label_count;
    const struct acre_engine_device *devices;
    uint32_t device_count;
    bool simulated;
};

#endif
