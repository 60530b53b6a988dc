/* guard.c - each round of readings goes to the inventory, the watchdog, the health of each device
 * and the scheduler, in this order.
 *
 * Drains made here carry a reason that says who made them, so that they are taken back by the one
 * who made them and nobody else: an operator's drain stays. */
#include "daemon/guard.h"

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

struct acre_guard {
    struct acre_desk *desk;
    struct acre_sampler *sampler;
    struct acre_watchdog *watchdog;
    struct acre_health_policy policy;
    struct acre_health *health; /* by device; those read here were there at the start */
    struct watched *runs;
    uint32_t run_count, run_capacity;
    struct acre_watchdog_pid *pids;
    uint32_t pid_count, pid_capacity;
};

struct acre_guard *acre_guard_create(void) {
    struct acre_guard *guard = acre_calloc(1, sizeof(*guard));
    struct acre_watchdog_options options = acre_watchdog_defaults();
    guard->watchdog = acre_watchdog_create(&options);
    guard->policy = acre_health_policy_default();
    return guard;
}

void acre_guard_destroy(struct acre_guard *guard) {
    if (guard == NULL) {
        return;
    }
    acre_watchdog_destroy(guard->watchdog);
    free(guard->health);
    free(guard->runs);
    free(guard->pids);
    free(guard);
}

/* A device that was drained for its health before a restart is judged anew, and comes back when it
 * passes its probes. */
void acre_guard_set(struct acre_guard *guard, struct acre_desk *desk,
                    struct acre_sampler *sampler) {
    guard->desk = desk;
    guard->sampler = sampler;
    uint64_t now_ms = acre_desk_now(desk);
    uint32_t count = acre_ledger_device_count(acre_desk_ledger(desk));
    guard->health = acre_calloc(count + 1U, sizeof(*guard->health));
    for (uint32_t d = 0; d < count; d++) {
        struct acre_ledger_device device;
        acre_ledger_device_info(acre_desk_ledger(desk), d, &device);
        acre_health_init(&guard->health[d], now_ms);
        if (device.drained && strncmp(device.reason, BY_HEALTH, strlen(BY_HEALTH)) == 0) {
            guard->health[d].state = ACRE_HEALTH_DRAINING;
            guard->health[d].since_ms = now_ms;
            guard->health[d].probe_from_ms = now_ms + guard->policy.cool_down_ms;
        }
    }
}

static void note(const char *message, const char *device, const char *reason) {
    acre_log(ACRE_LOG_WARN, message, {"device", device}, {"reason", reason});
}

/* --- runs ----------------------------------------------------------------------------------- */

static struct watched *find_run(const struct acre_guard *guard, struct acre_run run) {
    for (uint32_t i = 0; i < guard->run_count; i++) {
        if (guard->runs[i].run.job == run.job && guard->runs[i].run.attempt == run.attempt) {
            return &guard->runs[i];
        }
    }
    return NULL;
}

void acre_guard_begin(void *context, struct acre_run run, const struct acre_run_device *devices,
                      uint32_t count) {
    struct acre_guard *guard = context;
    bool real = false;
    for (uint32_t i = 0; i < count; i++) {
        real = real || !devices[i].simulated;
    }
    if (!real || find_run(guard, run) != NULL) {
        return;
    }
    guard->runs =
        acre_grow(guard->runs, guard->run_count, &guard->run_capacity, sizeof(*guard->runs));
    guard->runs[guard->run_count++] = (struct watched){.run = run};
    acre_watchdog_begin(guard->watchdog, run, devices, count);
    acre_sampler_set_busy(guard->sampler, true);
}

void acre_guard_end(void *context, struct acre_run run, struct acre_job_exit *exit) {
    struct acre_guard *guard = context;
    struct watched *watched = find_run(guard, run);
    if (watched == NULL) {
        return;
    }
    struct acre_clock clock = acre_clock_real();
    struct acre_watchdog_use use;
    acre_watchdog_end(guard->watchdog, run, acre_clock_monotonic_ns(&clock) / 1000000, &use);
    exit->peak_gpu_mib = use.peak_mib == ACRE_UNKNOWN ? ACRE_UNKNOWN : use.peak_mib;
    exit->gpu_use_milli = use.mean_milli == ACRE_UNKNOWN ? UINT32_MAX : (uint32_t)use.mean_milli;
    if (watched->over_memory && exit->kind == ACRE_EXIT_SIGNAL) {
        exit->kind = ACRE_EXIT_OUT_OF_MEMORY;
    }
    *watched = guard->runs[--guard->run_count];
    acre_sampler_set_busy(guard->sampler,
                          guard->run_count > 0 || acre_watchdog_waits(guard->watchdog));
}

/* Whose process is whose, of all runs and of the engine's servers. */
static void collect_pids(struct acre_guard *guard) {
    int64_t *pids = acre_calloc(RUN_PIDS_MAX, sizeof(*pids));
    guard->pid_count = 0;
    for (uint32_t i = 0; i <= guard->run_count; i++) {
        struct acre_run run = i < guard->run_count ? guard->runs[i].run : (struct acre_run){0};
        uint32_t count = acre_desk_pids(guard->desk, run, pids, RUN_PIDS_MAX);
        for (uint32_t p = 0; p < ACRE_MIN(count, (uint32_t)RUN_PIDS_MAX); p++) {
            guard->pids = acre_grow(guard->pids, guard->pid_count, &guard->pid_capacity,
                                    sizeof(*guard->pids));
            guard->pids[guard->pid_count++] = (struct acre_watchdog_pid){pids[p], run};
        }
    }
    free(pids);
}

/* --- devices -------------------------------------------------------------------------------- */

/* Drain, or take back a drain of our own. */
static void set_drained(struct acre_guard *guard, uint32_t device, bool drained, const char *by,
                        const char *why) {
    struct acre_ledger_device info;
    char reason[256];
    acre_ledger_device_info(acre_desk_ledger(guard->desk), device, &info);
    if (acre_desk_writable(guard->desk, NULL) < 0 ||
        (!drained && strncmp(info.reason, by, strlen(by)) != 0) || (drained && info.drained)) {
        return;
    }
    snprintf(reason, sizeof(reason), "%s%s", by, why);
    acre_desk_drain_device(guard->desk, device, drained ? reason : NULL);
    note(drained ? "GPU drained" : "GPU returned", info.id, reason);
}

static void on_watchdog(void *context, const struct acre_watchdog_event *event) {
    struct acre_guard *guard = context;
    struct watched *watched = find_run(guard, event->run);
    uint32_t device = 0;
    switch (event->kind) {
    case ACRE_WATCHDOG_WARN:
        note("a job uses more GPU memory than its share", event->device, event->text);
        acre_desk_signal(guard->desk, event->run, ACRE_RUN_CHECKPOINT);
        break;
    case ACRE_WATCHDOG_FINE:
        break;
    case ACRE_WATCHDOG_TERMINATE:
    case ACRE_WATCHDOG_KILL:
        note("a job is ended for its GPU memory", event->device, event->text);
        if (watched != NULL) {
            watched->over_memory = true;
        }
        acre_desk_signal(guard->desk, event->run,
                         event->kind == ACRE_WATCHDOG_KILL ? ACRE_RUN_KILL : ACRE_RUN_TERMINATE);
        break;
    case ACRE_WATCHDOG_QUARANTINE:
    case ACRE_WATCHDOG_RESTORED:
        if (acre_ledger_find_device(acre_desk_ledger(guard->desk), event->device, &device)) {
            set_drained(guard, device, event->kind == ACRE_WATCHDOG_QUARANTINE, BY_WATCHDOG,
                        event->text);
        }
        break;
    }
}

static void judge_health(struct acre_guard *guard, const struct acre_sampled_device *sampled,
                         uint64_t now_ms) {
    struct acre_health *health = &guard->health[sampled->device];
    struct acre_ledger_device info;
    acre_ledger_device_info(acre_desk_ledger(guard->desk), sampled->device, &info);
    enum acre_health_action action =
        acre_health_observe(health, &guard->policy, &sampled->health, now_ms);
    if (action == ACRE_HEALTH_NOTHING) {
        action = acre_health_tick(health, info.allocations == 0, now_ms);
    }
    if (action == ACRE_HEALTH_PROBE) { /* the probe is a reading without a fault */
        bool passed =
            strcmp(sampled->live.state, "lost") != 0 && acre_health_is_good(&sampled->health);
        action = acre_health_probed(health, &guard->policy, passed, "its readings are bad", now_ms);
    }
    if (action == ACRE_HEALTH_DRAIN) {
        set_drained(guard, sampled->device, true, BY_HEALTH, health->reason);
    } else if (action == ACRE_HEALTH_RETURN) {
        set_drained(guard, sampled->device, false, BY_HEALTH, "");
    }
}

/* Memory of processes that are not ours, as the ledger counts it before placing (DEV-6). */
static void count_foreign(struct acre_guard *guard, const struct acre_sampled_device *sampled) {
    struct acre_ledger_device info;
    struct acre_device_live live = sampled->live;
    acre_ledger_device_info(acre_desk_ledger(guard->desk), sampled->device, &info);
    uint64_t mib = acre_watchdog_foreign_mib(guard->watchdog, info.id);
    live.foreign_mib = mib == ACRE_UNKNOWN ? ACRE_UNKNOWN : mib;
    snprintf(live.health, sizeof(live.health), "%s",
             acre_health_state_name(guard->health[sampled->device].state));
    acre_desk_set_live(guard->desk, sampled->device, &live);
    uint64_t counted = mib == ACRE_UNKNOWN ? 0 : ACRE_MIN(mib, info.memory_mib);
    if (counted != info.foreign_mib) {
        acre_desk_set_foreign(guard->desk, sampled->device, counted);
    }
}

/* How much each run uses its devices, as far as nobody shares them (POL-8). */
static void tell_use(struct acre_guard *guard, const struct acre_sampled_round *round) {
    const struct acre_sched *sched = acre_desk_sched(guard->desk);
    for (uint32_t i = 0; i < guard->run_count; i++) {
        struct acre_job job;
        struct acre_allocation allocation;
        uint64_t sum_milli = 0;
        uint32_t count = 0;
        if (!acre_sched_find(sched, guard->runs[i].run.job, &job) ||
            !acre_ledger_find(acre_desk_ledger(guard->desk), job.allocation, &allocation)) {
            continue;
        }
        for (uint32_t p = 0; p < allocation.part_count; p++) {
            for (uint32_t d = 0; d < round->device_count; d++) {
                const struct acre_sampled_device *device = &round->devices[d];
                if (device->device == allocation.parts[p].device &&
                    allocation.parts[p].milli == 1000 &&
                    device->live.utilization_pct != ACRE_UNKNOWN) {
                    sum_milli += device->live.utilization_pct * 10;
                    count++;
                }
            }
        }
        if (count > 0 && count == allocation.part_count) {
            acre_desk_sampled(guard->desk, guard->runs[i].run, (uint32_t)(sum_milli / count));
        }
    }
}

void acre_guard_round(void *context, const struct acre_sampled_round *round) {
    struct acre_guard *guard = context;
    if (guard->desk == NULL || acre_desk_readable(guard->desk, NULL) < 0) {
        return;
    }
    const struct acre_inventory *inventory = acre_desk_inventory(guard->desk);
    struct acre_watchdog_level *levels = acre_calloc(round->device_count + 1U, sizeof(*levels));
    for (uint32_t i = 0; i < round->device_count; i++) {
        const struct acre_device_live *live = &round->devices[i].live;
        levels[i] = (struct acre_watchdog_level){
            .device = acre_inventory_device(inventory, round->devices[i].device)->id,
            .used_mib = live->used_mib,
            .use_milli =
                live->utilization_pct == ACRE_UNKNOWN ? ACRE_UNKNOWN : live->utilization_pct * 10};
    }
    collect_pids(guard);
    struct acre_watchdog_reading reading = {.now_ms = round->monotonic_ms,
                                            .levels = levels,
                                            .level_count = round->device_count,
                                            .processes = round->processes,
                                            .process_count = round->process_count,
                                            .pids = guard->pids,
                                            .pid_count = guard->pid_count};
    acre_watchdog_step(guard->watchdog, &reading, on_watchdog, guard);
    uint64_t now_ms = acre_desk_now(guard->desk);
    for (uint32_t i = 0; i < round->device_count; i++) {
        count_foreign(guard, &round->devices[i]);
        judge_health(guard, &round->devices[i], now_ms);
    }
    tell_use(guard, round);
    free(levels);
    acre_sampler_set_busy(guard->sampler,
                          guard->run_count > 0 || acre_watchdog_waits(guard->watchdog));
}
