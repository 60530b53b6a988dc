/* What follows from readings: strangers' memory is counted before placing (DEV-6), limits are
 * enforced, sick devices leave service and come back (CAP-10), use is recorded (JOB-6, POL-8). */
#include "daemon/overseer.h"

#include "desk/commands.h"
#include "support/desk_kit.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>

enum { GPU = 1 }; /* of the kit's devices, the one that is looked at first */

struct rig {
    struct desk_kit kit;
    struct overseer *overseer;
    uint64_t monotonic_ms;
    struct sampled_device device;
    struct acre_watchdog_process processes[4];
    uint32_t process_count;
};

static void start(struct rig *rig) {
    rig->kit.real = true;
    rig->kit.begin = overseer_begin;
    rig->kit.end = overseer_end;
    desk_kit_prepare(&rig->kit);
    rig->overseer = overseer_create();
    rig->kit.watcher = rig->overseer;
    desk_kit_start(&rig->kit);
    overseer_set(rig->overseer, rig->kit.desk, NULL);
    rig->device = (struct sampled_device){
        .device = GPU,
        .live = {.sampled_ms = 1,
                 .used_mib = 500,
                 .foreign_mib = ACRE_UNKNOWN,
                 .utilization_pct = 0,
                 .temperature_c = 40,
                 .power_mw = 100000,
                 .processes = 0,
                 .state = "ok"},
        .health = {.valid = ACRE_HEALTH_TEMPERATURE | ACRE_HEALTH_MAX_TEMPERATURE,
                   .temperature_c = 40,
                   .max_temperature_c = 90}};
    struct acre_clock clock = acre_clock_real();
    rig->monotonic_ms =
        acre_clock_monotonic_ns(&clock) / 1000000; /* ends of runs are timed by it */
}

static void finish(struct rig *rig) {
    desk_kit_finish(&rig->kit);
    overseer_destroy(rig->overseer);
}

/* One reading, `after_ms` later, and what the desk makes of it. */
static void sample(struct rig *rig, uint64_t after_ms) {
    struct sampled_device devices[1] = {rig->device};
    rig->monotonic_ms += after_ms;
    acre_clock_advance(&rig->kit.clock, after_ms);
    devices[0].health.xids = devices[0].xids;
    struct sampled_round round = {.monotonic_ms = rig->monotonic_ms,
                                  .devices = devices,
                                  .device_count = 1,
                                  .processes = rig->processes,
                                  .process_count = rig->process_count};
    overseer_round(rig->overseer, &round);
    desk_kit_turns(&rig->kit, 5);
}

static struct acre_ledger_device info(struct rig *rig) {
    struct acre_ledger_device device;
    acre_ledger_device_info(acre_desk_ledger(rig->kit.desk), rig->device.device, &device);
    return device;
}

static void strangers_memory_is_counted(void) {
    struct rig *rig = acre_calloc(1, sizeof(*rig));
    start(rig);
    rig->processes[0] =
        (struct acre_watchdog_process){.pid = 4711, .device = "sim:gpu-a/1", .mib = 3000};
    rig->process_count = 1;
    rig->device.live.used_mib = 3500;
    sample(rig, 1000);
    CHECK_U64(info(rig).foreign_mib, 3000);
    const struct acre_engine_device *shown =
        inventory_device(acre_desk_inventory(rig->kit.desk), GPU);
    CHECK_U64(shown->live.foreign_mib, 3000);
    CHECK_U64(shown->live.used_mib, 3500);
    CHECK_STR(shown->live.health, acre_health_state_name(ACRE_HEALTH_HEALTHY));
    rig->process_count = 0;
    rig->device.live.used_mib = 500;
    sample(rig, 1000);
    CHECK_U64(info(rig).foreign_mib, 0);
    finish(rig);
    free(rig);
}

/* A hardware fault drains at once, with the reason; good readings bring the device back. */
static void a_sick_device_leaves_and_comes_back(void) {
    struct rig *rig = acre_calloc(1, sizeof(*rig));
    start(rig);
    rig->device.health.valid |= ACRE_HEALTH_XIDS;
    rig->device.health.xid_count = 1;
    rig->device.xids[0] = 79; /* fell off the bus */
    sample(rig, 1000);
    CHECK(info(rig).drained);
    CHECK_HAS(info(rig).reason, "unhealthy: ");
    rig->device.health.valid &= ~(uint32_t)ACRE_HEALTH_XIDS;
    rig->device.health.xid_count = 0;
    for (int i = 0; i < 200 && info(rig).drained; i++) {
        sample(rig, 60000);
    }
    CHECK(!info(rig).drained);
    finish(rig);
    free(rig);
}

/* Who drains it takes it back: a drain by an operator is not the overseer's to undo. */
static void an_operators_drain_stays(void) {
    struct rig *rig = acre_calloc(1, sizeof(*rig));
    start(rig);
    acre_desk_drain_device(rig->kit.desk, GPU, "new fan");
    rig->device.health.valid |= ACRE_HEALTH_XIDS;
    rig->device.health.xid_count = 1;
    rig->device.xids[0] = 79;
    sample(rig, 1000);
    CHECK_STR(info(rig).reason, "new fan");
    rig->device.health.xid_count = 0;
    for (int i = 0; i < 50; i++) {
        sample(rig, 60000);
    }
    CHECK(info(rig).drained);
    finish(rig);
    free(rig);
}

static bool has_failed(struct desk_kit *kit) {
    return desk_kit_told(kit, ACRE_SCHED_FAILED, 0) > 0;
}

static bool is_running(struct desk_kit *kit) {
    return desk_kit_told(kit, ACRE_SCHED_STARTED, 0) > 0;
}

static bool keep_exit(void *context, const struct acre_store_job *row) {
    snprintf(context, 256, "%.*s", (int)row->detail.length, row->detail.data);
    return false;
}

/* Over its limit: warned, terminated, recorded as out of memory with the peak that was seen. */
static void a_job_over_its_memory_is_ended(void) {
    struct rig *rig = acre_calloc(1, sizeof(*rig));
    uint64_t id = 0;
    rig->kit.run_ms = 100000;
    rig->kit.milli = 500;
    rig->kit.mib = 1000;
    rig->kit.pids[0] = 77;
    start(rig);
    rig->device.device = 0; /* where the first job goes */
    sample(rig, 1000);      /* what is in use there before */
    REQUIRE_EQ(desk_kit_submit(&rig->kit, 1, 1, &id, NULL), 0);
    desk_kit_until(&rig->kit, is_running);
    struct acre_job job;
    struct acre_allocation held;
    REQUIRE(acre_sched_find(acre_desk_sched(rig->kit.desk), id, &job));
    REQUIRE(acre_ledger_find(acre_desk_ledger(rig->kit.desk), job.allocation, &held));
    REQUIRE(held.parts[0].device == rig->device.device);
    rig->kit.pid_job = id;
    rig->processes[0] =
        (struct acre_watchdog_process){.pid = 77, .device = info(rig).id, .mib = 5000};
    rig->process_count = 1;
    rig->device.live.used_mib = 5500;
    rig->device.live.utilization_pct = 70;
    for (int i = 0; i < 100 && !has_failed(&rig->kit); i++) {
        sample(rig, 2000);
    }
    REQUIRE(has_failed(&rig->kit));
    char detail[256] = "";
    REQUIRE_EQ(acre_store_job(acre_desk_store(rig->kit.desk), id, keep_exit, detail, NULL), 0);
    CHECK_HAS(detail, "\"kind\":\"out of memory\"");
    CHECK_HAS(detail, "\"peak_gpu_mib\":5000");
    CHECK_HAS(detail, "\"gpu_use_milli\":7");
    /* What it left does not come back: the device is not given to the next one. */
    rig->kit.pid_job = 0;
    for (int i = 0; i < 100 && !info(rig).drained; i++) {
        sample(rig, 2000);
    }
    CHECK_HAS(info(rig).reason, "quarantine: ");
    rig->process_count = 0;
    rig->device.live.used_mib = 500;
    for (int i = 0; i < 10 && info(rig).drained; i++) {
        sample(rig, 2000);
    }
    CHECK(!info(rig).drained);
    finish(rig);
    free(rig);
}

static const struct acre_test tests[] = {
    {"strangers_memory_is_counted", strangers_memory_is_counted, 0},
    {"a_sick_device_leaves_and_comes_back", a_sick_device_leaves_and_comes_back, 0},
    {"an_operators_drain_stays", an_operators_drain_stays, 0},
    {"a_job_over_its_memory_is_ended", a_job_over_its_memory_is_ended, 0},
};
ACRE_TEST_MAIN(tests)
