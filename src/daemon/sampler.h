/* sampler.h - reading this machine's GPUs regularly, on a thread of its own.
 *
 * Reading may take long (a driver that hangs, a GPU that fell off the bus), so the loop never does
 * it. Each round is handed to `deliver` on the loop's thread: values only, nothing shared. Slow
 * when nothing runs; at once when something starts. */
#ifndef ACRE_DAEMON_SAMPLER_H
#define ACRE_DAEMON_SAMPLER_H

#include "core/loop.h"
#include "device/health.h"
#include "engine/machine.h"
#include "engine/watch.h"

struct acre_devices;
struct acre_sampler;

enum { ACRE_SAMPLE_XIDS_MAX = 8 };

/* One device in one round. */
struct acre_sampled_device {
    uint32_t device; /* of the inventory */
    struct acre_device_live live;
    struct acre_health_sample health; /* its xids are below */
    uint32_t xids[ACRE_SAMPLE_XIDS_MAX];
};

struct acre_sampled_round {
    uint64_t monotonic_ms;
    struct acre_sampled_device *devices;
    uint32_t device_count;
    struct acre_watchdog_process *processes; /* `device`: its id */
    uint32_t process_count;
};

struct acre_sampler_options {
    struct acre_loop *loop;
    struct acre_devices *devices; /* its own from now on; closed with it */
    uint32_t *map;                /* index there -> index in the inventory, UINT32_MAX: none; own */
    uint64_t busy_ms;             /* between rounds while runs use GPUs */
    uint64_t idle_ms;
    void (*deliver)(void *context, const struct acre_sampled_round *round);
    void *context;
};

int acre_sampler_start(const struct acre_sampler_options *options,
                       struct acre_sampler **ret_sampler, struct acre_error *err);
/* Waits for a round under way. NULL is fine. */
void acre_sampler_stop(struct acre_sampler *sampler);
/* Do runs use GPUs? True after false: a round at once. */
void acre_sampler_set_busy(struct acre_sampler *sampler, bool busy);

#endif
