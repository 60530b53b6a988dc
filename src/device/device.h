/* device.h - which devices are here and their current readings: the driver interface, and the set
 * of all devices of one node.
 *
 * A driver is a const table. The set asks the drivers in order (vendor libraries first, the CPU as
 * the last resort), lists each physical device once (by PCI id, first driver wins) and names it by
 * UUID or PCI id, never by index: an index is only a position in this list, until close. One thread
 * at a time per set. It opens no compute context and changes no device. */
#ifndef ACRE_DEVICE_DEVICE_H
#define ACRE_DEVICE_DEVICE_H

#include "device/column.h"
#include "device/topology.h"

struct acre_sim_cluster;

struct acre_device_options {
    const char *sysfs_root;             /* NULL: "/sys" */
    const char *proc_root;              /* NULL: "/proc" */
    const char *const *nvml_sonames;    /* NULL-terminated; NULL: the vendor's */
    const char *const *opencl_sonames;  /* likewise */
    const struct acre_sim_cluster *sim; /* not NULL: simulated devices instead of real ones */
    uint32_t sim_node;
    bool telemetry_only; /* only drivers that open no compute library: quick, and light */
};

enum {
    ACRE_DEVICES_MAX = 1024,    /* one node: 64 GPUs of 8 slices, twice */
    ACRE_PROCESSES_MAX = 16384, /* on one device; MPS allows 60, time slicing some hundreds */
};

struct acre_process_list {
    struct acre_device_process *items;
    uint32_t count;
    uint32_t capacity;
};

struct acre_device_driver {
    const char *name;
    const char *what; /* one line for people */
    bool last_resort; /* asked only when nothing before it found a GPU */
    bool telemetry;   /* opens no compute library */

    /* Mandatory. open: ACRE_EUNAVAILABLE when library or hardware is absent, ACRE_EUNSUPPORTED
     * when the library lacks a symbol; the text says what was tried and what it answered.
     * info and sample: ACRE_ENOTFOUND for an index past count. A device that stopped answering
     * is a sample with state and reason, not an error. */
    int (*open)(const struct acre_device_options *options, void **ret_self, struct acre_error *err);
    void (*close)(void *self);
    uint32_t (*count)(const void *self);
    int (*info)(void *self, uint32_t index, struct acre_device_info *ret_info,
                struct acre_error *err);
    int (*sample)(void *self, uint32_t index, struct acre_device_sample *ret_sample,
                  struct acre_error *err);

    /* Optional. poll: once before a round of samples. processes: appends to the list; user and
     * command are filled in by the set. links: positions are this driver's. notes: what was
     * odd, one line each, "" when nothing. */
    void (*poll)(void *self);
    int (*processes)(void *self, uint32_t index, struct acre_process_list *list,
                     struct acre_error *err);
    int (*links)(void *self, struct acre_link_list *list, struct acre_error *err);
    const char *(*notes)(const void *self);
};

/* In the order they are asked. */
extern const struct acre_device_driver acre_driver_nvml;
extern const struct acre_device_driver acre_driver_amdgpu;
extern const struct acre_device_driver acre_driver_opencl;
extern const struct acre_device_driver acre_driver_cpu;
extern const struct acre_device_driver acre_driver_sim; /* only on request */

struct acre_devices;

/* Ask every driver. Finding nothing is not an error: acre_devices_attempts says why. */
struct acre_devices *acre_devices_open(const struct acre_device_options *options);
void acre_devices_close(struct acre_devices *devices); /* NULL is fine */

uint32_t acre_devices_count(const struct acre_devices *devices);
const struct acre_device_info *acre_devices_info(const struct acre_devices *devices,
                                                 uint32_t index);
const struct acre_device_link *acre_devices_links(const struct acre_devices *devices,
                                                  uint32_t *ret_count);

/* What one driver answered. */
struct acre_device_attempt {
    const struct acre_device_driver *driver;
    int code; /* 0 or what open answered */
    struct acre_error err;
    uint32_t found;  /* devices it listed */
    uint32_t listed; /* of these, not listed by an earlier driver */
    bool skipped;    /* a last resort that was not needed, or no telemetry when only that counts */
    uint64_t open_us;
    const char *notes; /* "" when nothing was odd */
};
const struct acre_device_attempt *acre_devices_attempts(const struct acre_devices *devices,
                                                        uint32_t *ret_count);

/* A full live reading of one device: sample, processes, and what is not ours (DEV-6). */
struct acre_device_reading {
    struct acre_device_sample sample;
    struct acre_process_list processes;
};
void acre_device_reading_finish(struct acre_device_reading *reading);

/* Read every device into readings[count], whose memory is reused (start with zeroes).
 * `known_pids` are processes Acre started. */
void acre_devices_read(struct acre_devices *devices, uint64_t now_ms, const uint64_t *known_pids,
                       uint32_t known_count, struct acre_device_reading *readings);

/* Append a zeroed process; ACRE_ELIMIT past ACRE_PROCESSES_MAX. */
int acre_process_list_add(struct acre_process_list *list, struct acre_device_process **ret_process,
                          struct acre_error *err);

#endif
