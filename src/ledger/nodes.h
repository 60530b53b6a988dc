/* nodes.h - the ledger's nodes and devices: what they are, and which of them take work.
 *
 * Core thread only. An index handed out stays good for the life of the ledger. */
#ifndef ACRE_LEDGER_NODES_H
#define ACRE_LEDGER_NODES_H

#include "ledger/ledger.h"

struct acre_device_spec {
    const char *id;      /* UUID or PCI id, unique in the ledger */
    const char *model;   /* "H100"; NULL or "": unknown, matches no model constraint */
    const char *vendor;  /* "nvidia" */
    uint64_t memory_mib; /* 0: unknown; then only requests without memory fit */
    uint32_t island;     /* devices with one number are linked fast (NVLink, xGMI) */
    uint32_t step_milli; /* shares come in steps: 0 any, 125 CPX eighths, 1000 whole only */
    bool is_mig;         /* a hardware slice: taken whole, by isolation mig or any other */
    bool exclusive_only; /* sharing is off on this device */
};

struct acre_node_spec {
    const char *name;
    uint64_t cpu_milli;
    uint64_t ram_mib;
    const char *const *labels; /* "key=value" */
    uint32_t label_count;
    const struct acre_device_spec *devices;
    uint32_t device_count;
};

/* ACRE_EEXISTS: a node or device of that name is there; ACRE_EINVALID: a bad field. */
int acre_ledger_add_node(struct acre_ledger *ledger, const struct acre_node_spec *spec,
                         uint32_t *ret_node, struct acre_error *err);

uint32_t acre_ledger_node_count(const struct acre_ledger *ledger);
uint32_t acre_ledger_device_count(const struct acre_ledger *ledger);
bool acre_ledger_find_node(const struct acre_ledger *ledger, const char *name, uint32_t *ret_node);
bool acre_ledger_find_device(const struct acre_ledger *ledger, const char *id,
                             uint32_t *ret_device);

struct acre_ledger_node {
    const char *name;
    uint32_t first_device, device_count; /* indexes [first, first + count) */
    uint32_t cpu_milli, cpu_free_milli;
    uint32_t ram_mib, ram_free_mib;
    bool drained;
};
struct acre_ledger_device {
    const char *id;
    const char *model;
    uint32_t node;
    uint32_t memory_mib; /* 0: unknown */
    uint32_t foreign_mib;
    uint32_t milli_used;
    uint32_t allocations;
    uint32_t largest_milli; /* the largest share a new request could get now */
    uint32_t free_mib;      /* memory that a new request could get with it; 0 when unknown */
    bool drained;
    const char *reason; /* why drained; "" when not */
};
void acre_ledger_node_info(const struct acre_ledger *ledger, uint32_t node,
                           struct acre_ledger_node *ret_info);
void acre_ledger_device_info(const struct acre_ledger *ledger, uint32_t device,
                             struct acre_ledger_device *ret_info);

/* A drained device or node takes nothing new; what is there stays. The reason is shown to
 * whoever asks why. ACRE_ENOTFOUND: no such index. Draining twice changes the reason. */
int acre_ledger_drain_device(struct acre_ledger *ledger, uint32_t device, const char *reason,
                             struct acre_error *err);
int acre_ledger_undrain_device(struct acre_ledger *ledger, uint32_t device, struct acre_error *err);
int acre_ledger_drain_node(struct acre_ledger *ledger, uint32_t node, bool drained,
                           struct acre_error *err);

/* Memory held on the device by processes that are not ours (DEV-6): counted before placing, and
 * a device with any is not whole. ACRE_EINVALID above the device's memory. */
int acre_ledger_set_foreign(struct acre_ledger *ledger, uint32_t device, uint64_t mib,
                            struct acre_error *err);

/* Memory held by the whole ledger, in bytes. */
size_t acre_ledger_bytes(const struct acre_ledger *ledger);

/* Check every invariant of ALC-10 and that the indexes agree with the books. For tests and the
 * simulator: it walks everything. ACRE_EINTERNAL with the first thing found wrong. */
int acre_ledger_check(const struct acre_ledger *ledger, struct acre_error *err);

#endif
