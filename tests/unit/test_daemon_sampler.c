/* The sampler: GPUs are read on a thread of its own and handed over on the loop's. */
#include "daemon/sampler.h"

#include "desk/inventory.h"
#include "device/device.h"
#include "support/test.h"

#include <stdlib.h>

struct seen {
    struct acre_loop *loop;
    uint32_t rounds, wanted, devices, processes;
    struct acre_device_live live;
    uint32_t valid;
};

static void deliver(void *context, const struct sampled_round *round) {
    struct seen *seen = context;
    seen->rounds++;
    seen->devices = round->device_count;
    seen->processes = round->process_count;
    if (round->device_count > 0) {
        seen->live = round->devices[0].live;
        seen->valid = round->devices[0].health.valid;
    }
    if (seen->rounds >= seen->wanted) {
        acre_loop_stop(seen->loop);
    }
}

static void keep_alive(void *context) {
    (void)context;
}

/* Rounds come while runs use GPUs, and the first at once; what NVML says arrives. */
static void rounds_arrive_with_what_the_driver_says(void) {
    static const char *const nvml[] = {NVML_DOUBLE, NULL};
    setenv("ACRE_NVML_DOUBLE", "gpus 2", 1);
    struct acre_device_options where = {
        .sysfs_root = "/nonexistent", .nvml_sonames = nvml, .telemetry_only = true};
    struct acre_devices *devices = acre_devices_open(&where);
    REQUIRE(acre_devices_count(devices) == 2);
    uint32_t *map = acre_calloc(2, sizeof(*map));
    map[0] = UINT32_MAX; /* not looked after */
    map[1] = 0;

    struct seen seen = {.wanted = 3};
    REQUIRE_EQ(acre_loop_create(&seen.loop, NULL), 0);
    struct acre_timer *timer = acre_loop_timer(seen.loop, 20000, 0, keep_alive, NULL);
    struct sampler_options options = {.loop = seen.loop,
                                      .devices = devices,
                                      .map = map,
                                      .busy_ms = 5,
                                      .idle_ms = 60000,
                                      .deliver = deliver,
                                      .context = &seen};
    struct sampler *sampler = NULL;
    REQUIRE_EQ(sampler_start(&options, &sampler, NULL), 0);
    sampler_set_busy(sampler, true);
    acre_loop_run(seen.loop);
    CHECK_U64(seen.rounds, 3);
    CHECK_U64(seen.devices, 1);
    CHECK(seen.live.sampled_ms > 0);
    CHECK(seen.live.used_mib != ACRE_UNKNOWN);
    CHECK((seen.valid & ACRE_HEALTH_TEMPERATURE) != 0);
    sampler_set_busy(sampler, false);
    acre_timer_cancel(timer);
    sampler_stop(sampler);
    acre_loop_destroy(seen.loop);
}

static const struct acre_test tests[] = {
    {"rounds_arrive_with_what_the_driver_says", rounds_arrive_with_what_the_driver_says, 0},
};
ACRE_TEST_MAIN(tests)
