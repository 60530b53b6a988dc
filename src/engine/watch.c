/* watch.c - sums and small state machines: one per run and device, one per device.
 *
 * A reading is spread over the devices first: each process on a device belongs to a run, to an MPS
 * server, to no run of ours (foreign), or is what an ended run left. Then each run is judged by
 * its sums, and each device by its rest: what is in use there and belongs to none of the living.
 * The rest of an idle device is its baseline. After a run has ended the rest must be back at it; so
 * a leak is found also while others run on the same device.
 *
 * Drivers do not always name processes (containers, virtual machines). A device that never listed
 * one of ours is judged only while no run is on it, and limits are not policed there.
 *
 * Over a limit means by more than the tolerance, under it again means at the limit or below: in
 * between nothing changes, so a value that trembles around the limit is reported once. */
#include "engine/watch.h"

#include "core/names.h"
#include "core/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PIDS_MAX = 4096,  /* remembered of one run; MPS allows 60 clients, a whole GPU some hundreds */
    CHURN_FACTOR = 4, /* ends of other runs postpone the judgement at most to so many return_ms */
};

struct pid_list {
    int64_t *items;
    uint32_t count, capacity;
};

struct watched_device {
    uint64_t baseline_mib; /* or unknown */
    bool lists;            /* a process of ours was listed here once */
    bool awaited;          /* runs have ended, their memory is to come back */
    bool quarantined;
    uint64_t first_end_ms, last_end_ms; /* of the runs awaited */
    struct acre_run ended;              /* the last of them */
    struct pid_list left;               /* their processes */
    uint32_t live;                      /* runs on it */

    /* of the reading */
    uint64_t used_mib, use_milli; /* or unknown */
    uint64_t owned_mib;           /* of living runs, servers and foreign processes */
    uint64_t left_mib, foreign_mib;
    bool exact; /* all its processes said how much */
};

enum excess_stage { FINE, WARNED, TERMINATED, KILLED };

struct share { /* of a run on a device */
    uint32_t device;
    uint64_t limit_mib; /* 0: none */
    uint64_t used_mib;
    enum excess_stage stage;
    uint64_t since_ms; /* in this stage */
};

struct watched_run {
    struct acre_run name;
    struct share *shares;
    uint32_t share_count;
    struct pid_list pids;
    bool read;         /* a process of it was seen */
    uint64_t used_mib; /* of the reading, over all devices */
    uint64_t peak_mib;
    uint64_t use_sum, use_ms, last_ms;
};

struct acre_watchdog {
    struct acre_watchdog_options options;
    struct acre_names *names;
    struct watched_device *devices; /* by name id - 1 */
    uint32_t device_count;
    struct watched_run *runs;
    uint32_t run_count, run_capacity;
    struct acre_watchdog_pid *pids; /* sorted copy of the reading's */
    uint32_t pid_capacity;
};

struct acre_watchdog_options acre_watchdog_defaults(void) {
    return (struct acre_watchdog_options){
        .tolerance_mib = 64, .warn_ms = 10000, .grace_ms = 30000, .return_ms = 30000};
}

static uint64_t add(uint64_t a, uint64_t b) {
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) || sum == ACRE_UNKNOWN ? ACRE_UNKNOWN - 1 : sum;
}

static uint64_t since(uint64_t now_ms, uint64_t then_ms) {
    return now_ms > then_ms ? now_ms - then_ms : 0;
}

static bool has_pid(const struct pid_list *list, int64_t pid) {
    for (uint32_t i = 0; i < list->count; i++) {
        if (list->items[i] == pid) {
            return true;
        }
    }
    return false;
}

static void add_pid(struct pid_list *list, int64_t pid) {
    if (list->count >= PIDS_MAX || has_pid(list, pid)) {
        return;
    }
    list->items = acre_grow(list->items, list->count, &list->capacity, sizeof(list->items[0]));
    list->items[list->count++] = pid;
}

struct acre_watchdog *acre_watchdog_create(const struct acre_watchdog_options *options) {
    struct acre_watchdog *watchdog = acre_calloc(1, sizeof(*watchdog));
    watchdog->options = *options;
    watchdog->names = acre_names_create();
    return watchdog;
}

static void finish_run(struct watched_run *run) {
    free(run->shares);
    free(run->pids.items);
}

void acre_watchdog_destroy(struct acre_watchdog *watchdog) {
    if (watchdog == NULL) {
        return;
    }
    for (uint32_t i = 0; i < watchdog->run_count; i++) {
        finish_run(&watchdog->runs[i]);
    }
    for (uint32_t i = 0; i < watchdog->device_count; i++) {
        free(watchdog->devices[i].left.items);
    }
    acre_names_destroy(watchdog->names);
    free(watchdog->runs);
    free(watchdog->devices);
    free(watchdog->pids);
    free(watchdog);
}

static uint32_t get_device(struct acre_watchdog *watchdog, const char *id) {
    uint32_t index = acre_names_intern(watchdog->names, acre_str_from(id)) - 1;
    ACRE_ASSERT(index != UINT32_MAX); /* devices have names */
    if (index >= watchdog->device_count) {
        watchdog->devices =
            acre_realloc(watchdog->devices, index + 1, sizeof(watchdog->devices[0]));
        watchdog->devices[index] = (struct watched_device){.baseline_mib = ACRE_UNKNOWN,
                                                           .used_mib = ACRE_UNKNOWN,
                                                           .use_milli = ACRE_UNKNOWN,
                                                           .exact = true};
        watchdog->device_count = index + 1;
    }
    return index;
}

static struct watched_run *find_run(const struct acre_watchdog *watchdog, struct acre_run name) {
    for (uint32_t i = 0; i < watchdog->run_count; i++) {
        const struct acre_run *other = &watchdog->runs[i].name;
        if (other->job == name.job && other->attempt == name.attempt) {
            return &watchdog->runs[i];
        }
    }
    return NULL;
}

static struct share *find_share(const struct watched_run *run, uint32_t device) {
    for (uint32_t i = 0; i < run->share_count; i++) {
        if (run->shares[i].device == device) {
            return &run->shares[i];
        }
    }
    return NULL;
}

void acre_watchdog_begin(struct acre_watchdog *watchdog, struct acre_run name,
                         const struct acre_run_device *devices, uint32_t count) {
    if (find_run(watchdog, name) != NULL) {
        return;
    }
    struct watched_run run = {.name = name, .shares = acre_calloc(count + 1, sizeof(*run.shares))};
    for (uint32_t i = 0; i < count; i++) {
        if (devices[i].simulated) {
            continue;
        }
        uint32_t device = get_device(watchdog, devices[i].id);
        struct share *share = find_share(&run, device);
        if (share == NULL) {
            share = &run.shares[run.share_count++];
            *share = (struct share){.device = device, .limit_mib = devices[i].mib};
            watchdog->devices[device].live++;
        } else { /* two members on one device; no limit for one is none for both */
            bool none = share->limit_mib == 0 || devices[i].mib == 0;
            share->limit_mib = none ? 0 : add(share->limit_mib, devices[i].mib);
        }
    }
    if (run.share_count == 0) {
        finish_run(&run);
        return;
    }
    watchdog->runs = acre_grow(watchdog->runs, watchdog->run_count, &watchdog->run_capacity,
                               sizeof(watchdog->runs[0]));
    watchdog->runs[watchdog->run_count++] = run;
}

/* From now on the device waits for what the run had there. */
static void await(struct watched_device *device, const struct watched_run *run, uint64_t now_ms) {
    if (!device->awaited) {
        device->first_end_ms = now_ms;
    }
    device->awaited = true;
    device->last_end_ms = now_ms;
    device->ended = run->name;
    for (uint32_t i = 0; i < run->pids.count; i++) {
        add_pid(&device->left, run->pids.items[i]);
    }
}

void acre_watchdog_end(struct acre_watchdog *watchdog, struct acre_run name, uint64_t now_ms,
                       struct acre_watchdog_use *ret_use) {
    struct watched_run *run = find_run(watchdog, name);
    struct acre_watchdog_use use = {ACRE_UNKNOWN, ACRE_UNKNOWN};
    if (run != NULL) {
        use.peak_mib = run->read ? run->peak_mib : ACRE_UNKNOWN;
        use.mean_milli = run->use_ms > 0 ? run->use_sum / run->use_ms : ACRE_UNKNOWN;
        for (uint32_t i = 0; i < run->share_count; i++) {
            struct watched_device *device = &watchdog->devices[run->shares[i].device];
            device->live--;
            await(device, run, now_ms);
        }
        finish_run(run);
        *run = watchdog->runs[--watchdog->run_count];
    }
    if (ret_use != NULL) {
        *ret_use = use;
    }
}

/* --- a reading, spread --- */

static int compare_pids(const void *a, const void *b) {
    int64_t left = ((const struct acre_watchdog_pid *)a)->pid;
    int64_t right = ((const struct acre_watchdog_pid *)b)->pid;
    return left < right ? -1 : left > right;
}

static void sort_pids(struct acre_watchdog *watchdog, const struct acre_watchdog_reading *reading) {
    if (reading->pid_count > watchdog->pid_capacity) {
        watchdog->pid_capacity = reading->pid_count;
        watchdog->pids =
            acre_realloc(watchdog->pids, watchdog->pid_capacity, sizeof(watchdog->pids[0]));
    }
    if (reading->pid_count > 0) {
        memcpy(watchdog->pids, reading->pids, reading->pid_count * sizeof(watchdog->pids[0]));
        qsort(watchdog->pids, reading->pid_count, sizeof(watchdog->pids[0]), compare_pids);
    }
}

static const struct acre_watchdog_pid *find_owner(const struct acre_watchdog *watchdog,
                                                  uint32_t count, int64_t pid) {
    struct acre_watchdog_pid key = {.pid = pid};
    return count > 0 ? bsearch(&key, watchdog->pids, count, sizeof(key), compare_pids) : NULL;
}

static void clear_reading(struct acre_watchdog *watchdog) {
    for (uint32_t i = 0; i < watchdog->device_count; i++) {
        struct watched_device *device = &watchdog->devices[i];
        device->used_mib = ACRE_UNKNOWN;
        device->use_milli = ACRE_UNKNOWN;
        device->owned_mib = device->left_mib = device->foreign_mib = 0;
        device->exact = true;
    }
    for (uint32_t i = 0; i < watchdog->run_count; i++) {
        struct watched_run *run = &watchdog->runs[i];
        run->used_mib = 0;
        for (uint32_t k = 0; k < run->share_count; k++) {
            run->shares[k].used_mib = 0;
        }
    }
}

static void spread_process(struct acre_watchdog *watchdog, uint32_t pid_count,
                           const struct acre_watchdog_process *process) {
    const struct acre_watchdog_pid *owner = find_owner(watchdog, pid_count, process->pid);
    struct watched_run *run =
        owner != NULL && owner->run.job != 0 ? find_run(watchdog, owner->run) : NULL;
    uint32_t index = get_device(watchdog, process->device);
    struct watched_device *device = &watchdog->devices[index];
    uint64_t mib = process->mib != ACRE_UNKNOWN ? process->mib : 0;
    device->exact = device->exact && process->mib != ACRE_UNKNOWN;
    if (run == NULL && has_pid(&device->left, process->pid)) {
        device->left_mib = add(device->left_mib, mib);
        return;
    }
    device->owned_mib = add(device->owned_mib, mib);
    if (run != NULL) {
        struct share *share = find_share(run, index);
        if (share != NULL) {
            share->used_mib = add(share->used_mib, mib);
        }
        run->used_mib = add(run->used_mib, mib);
        run->read = run->read || process->mib != ACRE_UNKNOWN;
        add_pid(&run->pids, process->pid);
        device->lists = true;
    } else if (owner == NULL) {
        device->foreign_mib = add(device->foreign_mib, mib);
    }
}

static void spread(struct acre_watchdog *watchdog, const struct acre_watchdog_reading *reading) {
    clear_reading(watchdog);
    sort_pids(watchdog, reading);
    for (uint32_t i = 0; i < reading->level_count; i++) {
        const struct acre_watchdog_level *level = &reading->levels[i];
        uint32_t index = get_device(watchdog, level->device); /* may move the table */
        struct watched_device *device = &watchdog->devices[index];
        device->used_mib = level->used_mib;
        device->use_milli = level->use_milli != ACRE_UNKNOWN
                                ? ACRE_MIN(level->use_milli, UINT64_C(1000))
                                : ACRE_UNKNOWN;
    }
    for (uint32_t i = 0; i < reading->process_count; i++) {
        spread_process(watchdog, reading->pid_count, &reading->processes[i]);
    }
}

/* --- runs --- */

/* Time-weighted; the first reading has next to no weight, unless it stays the only one. */
static void note_use(const struct acre_watchdog *watchdog, struct watched_run *run,
                     uint64_t now_ms) {
    uint64_t passed_ms = run->last_ms > 0 ? since(now_ms, run->last_ms) : 1;
    run->last_ms = now_ms;
    for (uint32_t i = 0; i < run->share_count; i++) {
        const struct watched_device *device = &watchdog->devices[run->shares[i].device];
        if (device->use_milli != ACRE_UNKNOWN && device->live == 1) {
            run->use_sum = add(run->use_sum, device->use_milli * ACRE_MIN(passed_ms, UINT32_MAX));
            run->use_ms = add(run->use_ms, ACRE_MIN(passed_ms, UINT32_MAX));
        }
    }
    run->peak_mib = ACRE_MAX(run->peak_mib, run->used_mib);
}

static void enter(struct share *share, enum excess_stage stage, uint64_t now_ms) {
    share->stage = stage;
    share->since_ms = now_ms;
}

/* What to say now about the share; false: nothing. */
static bool judge(const struct acre_watchdog_options *options, struct share *share, uint64_t now_ms,
                  enum acre_watchdog_kind *ret_kind) {
    bool over =
        share->limit_mib > 0 && share->used_mib > add(share->limit_mib, options->tolerance_mib);
    bool under = share->used_mib <= share->limit_mib;
    uint64_t passed_ms = since(now_ms, share->since_ms);
    if (share->stage == FINE && over) {
        enter(share, WARNED, now_ms);
        *ret_kind = ACRE_WATCHDOG_WARN;
    } else if (share->stage == WARNED && under) {
        enter(share, FINE, now_ms);
        *ret_kind = ACRE_WATCHDOG_FINE;
    } else if (share->stage == WARNED && over && passed_ms >= options->warn_ms) {
        enter(share, TERMINATED, now_ms);
        *ret_kind = ACRE_WATCHDOG_TERMINATE;
    } else if (share->stage == TERMINATED && over && passed_ms >= options->grace_ms) {
        enter(share, KILLED, now_ms);
        *ret_kind = ACRE_WATCHDOG_KILL;
    } else {
        return false;
    }
    return true;
}

static void judge_run(struct acre_watchdog *watchdog, struct watched_run *run, uint64_t now_ms,
                      acre_watchdog_tell *tell, void *context) {
    static const char *const what[] = {
        [ACRE_WATCHDOG_WARN] = "over its GPU memory limit",
        [ACRE_WATCHDOG_FINE] = "within its GPU memory limit again",
        [ACRE_WATCHDOG_TERMINATE] = "stayed over its GPU memory limit, asked to end",
        [ACRE_WATCHDOG_KILL] = "still over its GPU memory limit, killed",
    };
    for (uint32_t i = 0; i < run->share_count; i++) {
        struct share *share = &run->shares[i];
        enum acre_watchdog_kind kind;
        if (!judge(&watchdog->options, share, now_ms, &kind)) {
            continue;
        }
        struct acre_watchdog_event event = {.kind = kind,
                                            .run = run->name,
                                            .device =
                                                acre_names_text(watchdog->names, share->device + 1),
                                            .used_mib = share->used_mib,
                                            .limit_mib = share->limit_mib};
        char used[32], limit[32];
        snprintf(event.text, sizeof(event.text), "%s: %s of %s on %s", what[kind],
                 acre_format_mib(event.used_mib, used, sizeof(used)),
                 acre_format_mib(event.limit_mib, limit, sizeof(limit)), event.device);
        tell(context, &event);
    }
}

/* --- devices --- */

/* Can what the living use be told from the rest? */
static bool attributable(const struct watched_device *device) {
    return device->live == 0 || device->lists;
}

/* What is in use and belongs to none of the living; unknown where that cannot be told. */
static uint64_t rest_of(const struct watched_device *device) {
    if (device->used_mib == ACRE_UNKNOWN || !device->exact || !attributable(device)) {
        return ACRE_UNKNOWN;
    }
    return since(device->used_mib, device->owned_mib); /* never below 0 */
}

static void tell_device(struct acre_watchdog *watchdog, uint32_t index, uint64_t rest_mib,
                        enum acre_watchdog_kind kind, acre_watchdog_tell *tell, void *context) {
    const struct watched_device *device = &watchdog->devices[index];
    bool known = device->baseline_mib != ACRE_UNKNOWN && rest_mib != ACRE_UNKNOWN;
    struct acre_watchdog_event event = {
        .kind = kind,
        .run = device->ended,
        .device = acre_names_text(watchdog->names, index + 1),
        .used_mib = known ? rest_mib : device->left_mib,
        .limit_mib = known ? device->baseline_mib : 0,
    };
    char used[32], before[32], left[32];
    if (kind == ACRE_WATCHDOG_RESTORED) {
        snprintf(event.text, sizeof(event.text), "GPU memory of %s is free again: %s in use",
                 event.device, acre_format_mib(event.used_mib, used, sizeof(used)));
    } else {
        snprintf(event.text, sizeof(event.text),
                 "GPU memory was not freed on %s after job %" PRIu64
                 ": %s in use, %s before (%s held by its processes)",
                 event.device, event.run.job, acre_format_mib(event.used_mib, used, sizeof(used)),
                 acre_format_mib(event.limit_mib, before, sizeof(before)),
                 acre_format_mib(device->left_mib, left, sizeof(left)));
    }
    tell(context, &event);
}

static void settle(struct watched_device *device) {
    device->awaited = false;
    device->quarantined = false;
    device->left.count = 0;
}

static void judge_device(struct acre_watchdog *watchdog, uint32_t index, uint64_t now_ms,
                         acre_watchdog_tell *tell, void *context) {
    struct watched_device *device = &watchdog->devices[index];
    uint64_t rest_mib = rest_of(device);
    uint64_t tolerance_mib = watchdog->options.tolerance_mib;
    uint64_t return_ms = watchdog->options.return_ms;
    if (!device->awaited) {
        if (device->live == 0 && rest_mib != ACRE_UNKNOWN) {
            device->baseline_mib = rest_mib;
        }
        return;
    }
    bool judged = rest_mib != ACRE_UNKNOWN && device->baseline_mib != ACRE_UNKNOWN;
    bool back =
        device->left_mib == 0 && (!judged || rest_mib <= add(device->baseline_mib, tolerance_mib));
    bool churned = device->lists && since(now_ms, device->first_end_ms) / CHURN_FACTOR >= return_ms;
    bool due = churned || since(now_ms, device->last_end_ms) >= return_ms;
    if (back && (judged || (due && attributable(device)))) {
        if (device->quarantined) {
            tell_device(watchdog, index, rest_mib, ACRE_WATCHDOG_RESTORED, tell, context);
        }
        settle(device);
    } else if (!back && due && !device->quarantined) {
        device->quarantined = true;
        tell_device(watchdog, index, rest_mib, ACRE_WATCHDOG_QUARANTINE, tell, context);
    }
}

void acre_watchdog_step(struct acre_watchdog *watchdog, const struct acre_watchdog_reading *reading,
                        acre_watchdog_tell *tell, void *context) {
    spread(watchdog, reading);
    for (uint32_t i = 0; i < watchdog->run_count; i++) {
        note_use(watchdog, &watchdog->runs[i], reading->now_ms);
        judge_run(watchdog, &watchdog->runs[i], reading->now_ms, tell, context);
    }
    for (uint32_t i = 0; i < watchdog->device_count; i++) {
        judge_device(watchdog, i, reading->now_ms, tell, context);
    }
}

uint64_t acre_watchdog_foreign_mib(const struct acre_watchdog *watchdog, const char *device) {
    uint32_t id = acre_names_find(watchdog->names, acre_str_from(device));
    return id > 0 && id <= watchdog->device_count ? watchdog->devices[id - 1].foreign_mib : 0;
}

bool acre_watchdog_waits(const struct acre_watchdog *watchdog) {
    for (uint32_t i = 0; i < watchdog->device_count; i++) {
        if (watchdog->devices[i].awaited) {
            return true;
        }
    }
    return false;
}
