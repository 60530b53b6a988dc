/* sampler.h - reads this machine's GPUs regularly, on its own thread.
 *
 * Reading may take long (a driver that hangs, a GPU that fell off the bus), so the loop never does
 * it. Each round is passed to `deliver` on the loop's thread: values only, nothing shared. It reads
 * rarely while nothing runs, and immediately when a job starts. */
#ifndef ACRE_DAEMON_SAMPLER_H
#define ACRE_DAEMON_SAMPLER_H

#include "core/loop.h"
#include "device/health.h"
#include "engine/machine.h"
#include "engine/watch.h"

struct acre_devices;
struct sampler;

enum { ACRE_SAMPLE_XIDS_MAX = 8 };

/* One device in one round. */
struct sampled_device {
    uint32_t device; /* of the inventory */
    struct acre_device_live live;
    struct acre_health_sample health; /* its xids are below */
    uint32_t xids[ACRE_SAMPLE_XIDS_MAX];
};

struct sampled_round {
    uint64_t monotonic_ms;
    struct sampled_device *devices;
    uint32_t device_count;
    struct acre_watchdog_process *processes; /* `device`: its id */
    uint32_t process_count;
};

struct sampler_options {
    struct acre_loop *loop;
    struct acre_devices *devices; /* its own from now on; closed with it */
    uint32_t *map;                /* index there -> index in the inventory, UINT32_MAX: none; own */
    uint64_t busy_ms;             /* between rounds while runs use GPUs */
    uint64_t idle_ms;
    void (*deliver)(void *context, const struct sampled_round *round);
    void *context;
};

int sampler_start(const struct sampler_options *options, struct sampler **ret_sampler,
                  struct acre_error *err);
/* Waits for a round under way. NULL is fine. */
void sampler_stop(struct sampler *sampler);
/* Do runs use GPUs? True after false: a round at once. */
void sampler_set_busy(struct sampler *sampler, bool busy);

#endif
