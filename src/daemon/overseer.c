/* overseer.c - passes each round of readings to the inventory, the watchdog, the health of each
 * device and the scheduler, in this order.
 *
 * The reason of a drain says which part made it, and only that part lifts it: an operator's drain
 * stays. */
#include "daemon/overseer.h"

#include "core/log.h"
#include "desk/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BY_HEALTH   "unhealthy: "
#define BY_WATCHDOG "quarantine: "

enum { RUN_PIDS_MAX = 4096 };

struct watched {
    struct acre_run run;
    bool over_memory; /* ended because it used more than its share */
};

struct overseer {
    struct acre_desk *desk;
    struct sampler *sampler;
    struct acre_watchdog *watchdog;
    struct acre_health_policy policy;
    struct acre_health *health; /* by device; those read here were there at the start */
    struct watched *runs;
    uint32_t run_count, run_capacity;
    struct acre_watchdog_pid *pids;
    uint32_t pid_count, pid_capacity;
};

struct overseer *overseer_create(void) {
    struct overseer *overseer = acre_calloc(1, sizeof(*overseer));
    struct acre_watchdog_options options = acre_watchdog_defaults();
    overseer->watchdog = acre_watchdog_create(&options);
    overseer->policy = acre_health_policy_default();
    return overseer;
}

void overseer_destroy(struct overseer *overseer) {
    if (overseer == NULL) {
        return;
    }
    acre_watchdog_destroy(overseer->watchdog);
    free(overseer->health);
    free(overseer->runs);
    free(overseer->pids);
    free(overseer);
}

/* A device that was drained for its health before a restart is judged anew, and comes back when it
 * passes its probes. */
void overseer_set(struct overseer *overseer, struct acre_desk *desk, struct sampler *sampler) {
    overseer->desk = desk;
    overseer->sampler = sampler;
    uint64_t now_ms = acre_desk_now(desk);
    uint32_t count = acre_ledger_device_count(acre_desk_ledger(desk));
    overseer->health = acre_calloc(count + 1U, sizeof(*overseer->health));
    for (uint32_t d = 0; d < count; d++) {
        struct acre_ledger_device device;
        acre_ledger_device_info(acre_desk_ledger(desk), d, &device);
        acre_health_init(&overseer->health[d], now_ms);
        if (device.drained && strncmp(device.reason, BY_HEALTH, strlen(BY_HEALTH)) == 0) {
            overseer->health[d].state = ACRE_HEALTH_DRAINING;
            overseer->health[d].since_ms = now_ms;
            overseer->health[d].probe_from_ms = now_ms + overseer->policy.cool_down_ms;
        }
    }
}

static void note(const char *message, const char *device, const char *reason) {
    acre_log(ACRE_LOG_WARN, message, {"device", device}, {"reason", reason});
}

/* --- runs ----------------------------------------------------------------------------------- */

static struct watched *find_run(const struct overseer *overseer, struct acre_run run) {
    for (uint32_t i = 0; i < overseer->run_count; i++) {
        if (overseer->runs[i].run.job == run.job && overseer->runs[i].run.attempt == run.attempt) {
            return &overseer->runs[i];
        }
    }
    return NULL;
}

void overseer_begin(void *context, struct acre_run run, const struct acre_run_device *devices,
                    uint32_t count) {
    struct overseer *overseer = context;
    bool real = false;
    for (uint32_t i = 0; i < count; i++) {
        real = real || !devices[i].simulated;
    }
    if (!real || find_run(overseer, run) != NULL) {
        return;
    }
    overseer->runs = acre_grow(overseer->runs, overseer->run_count, &overseer->run_capacity,
                               sizeof(*overseer->runs));
    overseer->runs[overseer->run_count++] = (struct watched){.run = run};
    acre_watchdog_begin(overseer->watchdog, run, devices, count);
    sampler_set_busy(overseer->sampler, true);
}

void overseer_end(void *context, struct acre_run run, struct acre_job_exit *exit) {
    struct overseer *overseer = context;
    struct watched *watched = find_run(overseer, run);
    if (watched == NULL) {
        return;
    }
    struct acre_clock clock = acre_clock_real();
    struct acre_watchdog_use use;
    acre_watchdog_end(overseer->watchdog, run, acre_clock_monotonic_ns(&clock) / 1000000, &use);
    exit->peak_gpu_mib = use.peak_mib == ACRE_UNKNOWN ? ACRE_UNKNOWN : use.peak_mib;
    exit->gpu_use_milli = use.mean_milli == ACRE_UNKNOWN ? UINT32_MAX : (uint32_t)use.mean_milli;
    if (watched->over_memory && exit->kind == ACRE_EXIT_SIGNAL) {
        exit->kind = ACRE_EXIT_OUT_OF_MEMORY;
    }
    *watched = overseer->runs[--overseer->run_count];
    sampler_set_busy(overseer->sampler,
                     overseer->run_count > 0 || acre_watchdog_waits(overseer->watchdog));
}

/* Whose process is whose, of all runs and of the engine's servers. */
static void collect_pids(struct overseer *overseer) {
    int64_t *pids = acre_calloc(RUN_PIDS_MAX, sizeof(*pids));
    overseer->pid_count = 0;
    for (uint32_t i = 0; i <= overseer->run_count; i++) {
        struct acre_run run =
            i < overseer->run_count ? overseer->runs[i].run : (struct acre_run){0};
        uint32_t count = acre_desk_pids(overseer->desk, run, pids, RUN_PIDS_MAX);
        for (uint32_t p = 0; p < ACRE_MIN(count, (uint32_t)RUN_PIDS_MAX); p++) {
            overseer->pids = acre_grow(overseer->pids, overseer->pid_count, &overseer->pid_capacity,
                                       sizeof(*overseer->pids));
            overseer->pids[overseer->pid_count++] = (struct acre_watchdog_pid){pids[p], run};
        }
    }
    free(pids);
}

/* --- devices -------------------------------------------------------------------------------- */

/* Drain, or take back a drain of our own. */
static void set_drained(struct overseer *overseer, uint32_t device, bool drained, const char *by,
                        const char *why) {
    struct acre_ledger_device info;
    char reason[256];
    acre_ledger_device_info(acre_desk_ledger(overseer->desk), device, &info);
    if (acre_desk_writable(overseer->desk, NULL) < 0 ||
        (!drained && strncmp(info.reason, by, strlen(by)) != 0) || (drained && info.drained)) {
        return;
    }
    snprintf(reason, sizeof(reason), "%s%s", by, why);
    acre_desk_drain_device(overseer->desk, device, drained ? reason : NULL);
    note(drained ? "GPU drained" : "GPU back in service", info.id, reason);
}

static void on_watchdog(void *context, const struct acre_watchdog_event *event) {
    struct overseer *overseer = context;
    struct watched *watched = find_run(overseer, event->run);
    uint32_t device = 0;
    switch (event->kind) {
    case ACRE_WATCHDOG_WARN:
        note("a job uses more GPU memory than its share", event->device, event->text);
        acre_desk_signal(overseer->desk, event->run, ACRE_RUN_CHECKPOINT);
        break;
    case ACRE_WATCHDOG_FINE:
        break;
    case ACRE_WATCHDOG_TERMINATE:
    case ACRE_WATCHDOG_KILL:
        note("ending a job that uses too much GPU memory", event->device, event->text);
        if (watched != NULL) {
            watched->over_memory = true;
        }
        acre_desk_signal(overseer->desk, event->run,
                         event->kind == ACRE_WATCHDOG_KILL ? ACRE_RUN_KILL : ACRE_RUN_TERMINATE);
        break;
    case ACRE_WATCHDOG_QUARANTINE:
    case ACRE_WATCHDOG_RESTORED:
        if (acre_ledger_find_device(acre_desk_ledger(overseer->desk), event->device, &device)) {
            set_drained(overseer, device, event->kind == ACRE_WATCHDOG_QUARANTINE, BY_WATCHDOG,
                        event->text);
        }
        break;
    }
}

static void judge_health(struct overseer *overseer, const struct sampled_device *sampled,
                         uint64_t now_ms) {
    struct acre_health *health = &overseer->health[sampled->device];
    struct acre_ledger_device info;
    acre_ledger_device_info(acre_desk_ledger(overseer->desk), sampled->device, &info);
    enum acre_health_action action =
        acre_health_observe(health, &overseer->policy, &sampled->health, now_ms);
    if (action == ACRE_HEALTH_NOTHING) {
        action = acre_health_tick(health, info.allocations == 0, now_ms);
    }
    if (action == ACRE_HEALTH_PROBE) { /* the probe is a reading without a fault */
        bool passed =
            strcmp(sampled->live.state, "lost") != 0 && acre_health_is_good(&sampled->health);
        action =
            acre_health_probed(health, &overseer->policy, passed, "its readings are bad", now_ms);
    }
    if (action == ACRE_HEALTH_DRAIN) {
        set_drained(overseer, sampled->device, true, BY_HEALTH, health->reason);
    } else if (action == ACRE_HEALTH_RETURN) {
        set_drained(overseer, sampled->device, false, BY_HEALTH, "");
    }
}

/* Memory of processes that are not ours, as the ledger counts it before placing (DEV-6). */
static void count_foreign(struct overseer *overseer, const struct sampled_device *sampled) {
    struct acre_ledger_device info;
    struct acre_device_live live = sampled->live;
    acre_ledger_device_info(acre_desk_ledger(overseer->desk), sampled->device, &info);
    uint64_t mib = acre_watchdog_foreign_mib(overseer->watchdog, info.id);
    live.foreign_mib = mib == ACRE_UNKNOWN ? ACRE_UNKNOWN : mib;
    snprintf(live.health, sizeof(live.health), "%s",
             acre_health_state_name(overseer->health[sampled->device].state));
    acre_desk_set_live(overseer->desk, sampled->device, &live);
    uint64_t counted = mib == ACRE_UNKNOWN ? 0 : ACRE_MIN(mib, info.memory_mib);
    if (counted != info.foreign_mib) {
        acre_desk_set_foreign(overseer->desk, sampled->device, counted);
    }
}

/* How much each run uses its devices, as far as nobody shares them (POL-8). */
static void tell_use(struct overseer *overseer, const struct sampled_round *round) {
    const struct acre_sched *sched = acre_desk_sched(overseer->desk);
    for (uint32_t i = 0; i < overseer->run_count; i++) {
        struct acre_job job;
        struct acre_allocation allocation;
        uint64_t sum_milli = 0;
        uint32_t count = 0;
        if (!acre_sched_find(sched, overseer->runs[i].run.job, &job) ||
            !acre_ledger_find(acre_desk_ledger(overseer->desk), job.allocation, &allocation)) {
            continue;
        }
        for (uint32_t p = 0; p < allocation.part_count; p++) {
            for (uint32_t d = 0; d < round->device_count; d++) {
                const struct sampled_device *device = &round->devices[d];
                if (device->device == allocation.parts[p].device &&
                    allocation.parts[p].milli == 1000 &&
                    device->live.utilization_pct != ACRE_UNKNOWN) {
                    sum_milli += device->live.utilization_pct * 10;
                    count++;
                }
            }
        }
        if (count > 0 && count == allocation.part_count) {
            acre_desk_sampled(overseer->desk, overseer->runs[i].run, (uint32_t)(sum_milli / count));
        }
    }
}

void overseer_round(void *context, const struct sampled_round *round) {
    struct overseer *overseer = context;
    if (overseer->desk == NULL || acre_desk_readable(overseer->desk, NULL) < 0) {
        return;
    }
    const struct acre_inventory *inventory = acre_desk_inventory(overseer->desk);
    struct acre_watchdog_level *levels = acre_calloc(round->device_count + 1U, sizeof(*levels));
    for (uint32_t i = 0; i < round->device_count; i++) {
        const struct acre_device_live *live = &round->devices[i].live;
        levels[i] = (struct acre_watchdog_level){
            .device = inventory_device(inventory, round->devices[i].device)->id,
            .used_mib = live->used_mib,
            .use_milli =
                live->utilization_pct == ACRE_UNKNOWN ? ACRE_UNKNOWN : live->utilization_pct * 10};
    }
    collect_pids(overseer);
    struct acre_watchdog_reading reading = {.now_ms = round->monotonic_ms,
                                            .levels = levels,
                                            .level_count = round->device_count,
                                            .processes = round->processes,
                                            .process_count = round->process_count,
                                            .pids = overseer->pids,
                                            .pid_count = overseer->pid_count};
    acre_watchdog_step(overseer->watchdog, &reading, on_watchdog, overseer);
    uint64_t now_ms = acre_desk_now(overseer->desk);
    for (uint32_t i = 0; i < round->device_count; i++) {
        count_foreign(overseer, &round->devices[i]);
        judge_health(overseer, &round->devices[i], now_ms);
    }
    tell_use(overseer, round);
    free(levels);
    sampler_set_busy(overseer->sampler,
                     overseer->run_count > 0 || acre_watchdog_waits(overseer->watchdog));
}
