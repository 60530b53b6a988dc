/* plan.c - everything that runs and waits, put on a timeline.
 *
 * What runs ends when its forecast says (and half as long again as it has run when it is past
 * that), what is reserved is kept, and the queue follows in the order of the policy, each
 * job at the earliest time it fits without moving an earlier one. Jobs that may not start yet
 * follow, by id: after their begin time, their dependencies, their array's turn.
 *
 * A hard quota is a small timeline of its own (a purse): what its owner may hold at once is a node,
 * and a job starts when it fits there and on a real one. EXACT_MAX jobs are planned one by one, and
 * no more than SEARCHES_MAX searches of nodes are made. */
#include "sched/plan.h"

#include "ledger/nodes.h"
#include "ledger/reservation.h"
#include "ledger/supply.h"

#include <stdlib.h>
#include <string.h>

enum {
    EXACT_MAX = 10000,
    SEARCHES_MAX = 2000000, /* some 300 ns each; gangs on large clusters may need that many */
    GRACE_MS = 1000,        /* what a run that was told to end still takes, at least */
    PARTIES = 2,            /* a user and a project */
};

/* What making a plan needs besides the scheduler. */
struct maker {
    struct acre_sched *sched;
    struct plan *plan;
    uint64_t now_ms;
    struct timeline_need *needs; /* by class, then kind; filled when `is_known` */
    bool *is_known;              /* by class */
    uint32_t class_count, kind_count;
};

void plan_finish(struct plan *plan) {
    for (uint32_t i = 0; i < plan->gate_count; i++) {
        free(plan->gates[i].ends_ms);
    }
    timeline_destroy(plan->timeline);
    timeline_destroy(plan->purses);
    acre_map_finish(&plan->purse_of_party);
    acre_map_finish(&plan->entry_of_job);
    free(plan->purse);
    free(plan->gates);
    free(plan->entries);
    free(plan->joined);
    *plan = (struct plan){.is_stale = true};
}

size_t plan_bytes(const struct plan *plan) {
    size_t bytes = acre_map_bytes(&plan->purse_of_party) + acre_map_bytes(&plan->entry_of_job) +
                   plan->purse_capacity * sizeof(*plan->purse) +
                   plan->gate_capacity * sizeof(*plan->gates) +
                   plan->entry_capacity * sizeof(*plan->entries) +
                   plan->joined_capacity * sizeof(*plan->joined);
    for (uint32_t i = 0; i < plan->gate_count; i++) {
        bytes += plan->gates[i].capacity * sizeof(*plan->gates[i].ends_ms);
    }
    if (plan->timeline != NULL) {
        bytes += timeline_bytes(plan->timeline) + timeline_bytes(plan->purses);
    }
    return bytes;
}

const struct plan_entry *plan_find(const struct plan *plan, uint64_t job) {
    uint32_t at = acre_map_get(&plan->entry_of_job, job);
    return at != ACRE_MAP_NONE ? &plan->entries[at] : NULL;
}

static void add_entry(struct plan *plan, uint64_t job, uint64_t start_ms, uint64_t end_ms) {
    ACRE_ASSERT(job != 0 && start_ms <= end_ms);
    plan->entries =
        acre_grow(plan->entries, plan->entry_count, &plan->entry_capacity, sizeof(*plan->entries));
    plan->entries[plan->entry_count] = (struct plan_entry){start_ms, end_ms};
    acre_map_put(&plan->entry_of_job, job, plan->entry_count++);
}

/* When a job that holds GPUs is expected to give them back. */
static uint64_t expected_end_ms(const struct acre_sched *sched, const struct job *job,
                                uint64_t now_ms) {
    const struct run *run = job_run(sched, job);
    ACRE_ASSERT(run != NULL);
    if (job->state == ACRE_JOB_PREEMPTED || job->canceling) {
        return ACRE_MAX(run->stop_ms, now_ms) + GRACE_MS;
    }
    uint64_t begun_ms =
        run->started_ms > 0 && job->state == ACRE_JOB_RUNNING ? run->started_ms : run->scheduled_ms;
    uint64_t elapsed_ms = now_ms > begun_ms ? now_ms - begun_ms : 0;
    uint64_t run_ms = job_predicted_ms(sched, job);
    if (run_ms <= elapsed_ms) {
        run_ms = elapsed_ms + elapsed_ms / 2 + GRACE_MS;
        run_ms = job->limit_ms > 0 ? ACRE_MIN(run_ms, job->limit_ms) : run_ms;
    }
    return begun_ms + ACRE_MAX(run_ms, elapsed_ms + GRACE_MS);
}

/* What a device has when nothing of ours is on it. */
static uint16_t idle_milli(const struct acre_ledger_device *device) {
    if (device->drained) {
        return 0;
    }
    if (device->foreign_mib == 0 || device->memory_mib == 0) {
        return 1000;
    }
    uint64_t foreign = ((uint64_t)device->foreign_mib * 1000 + device->memory_mib - 1);
    return (uint16_t)(1000 - ACRE_MIN(foreign / device->memory_mib, (uint64_t)1000));
}

static void add_nodes(struct maker *maker) {
    const struct acre_ledger *ledger = maker->sched->ledger;
    for (uint32_t i = 0; i < acre_ledger_node_count(ledger); i++) {
        struct acre_ledger_node node;
        acre_ledger_node_info(ledger, i, &node);
        uint16_t free_milli[ACRE_TIMELINE_SLOTS_MAX] = {0};
        for (uint32_t k = 0; k < node.device_count && !node.drained; k++) {
            struct acre_ledger_device device;
            acre_ledger_device_info(ledger, node.first_device + k, &device);
            free_milli[acre_ledger_slot_of(ledger, node.first_device + k)] = idle_milli(&device);
        }
        uint32_t added = timeline_add_node(
            maker->plan->timeline, acre_ledger_kind_of(ledger, i), free_milli, node.device_count,
            node.drained ? 0 : node.cpu_milli, node.drained ? 0 : node.ram_mib);
        ACRE_ASSERT(added == i);
    }
}

static void occupy_device(struct maker *maker, uint32_t device, uint32_t milli, uint64_t from_ms,
                          uint64_t until_ms) {
    struct acre_ledger_device info;
    acre_ledger_device_info(maker->sched->ledger, device, &info);
    struct timeline_use use = {
        .node = info.node,
        .slots = UINT64_C(1) << acre_ledger_slot_of(maker->sched->ledger, device),
        .milli = milli,
        .from_ms = from_ms,
        .until_ms = until_ms,
    };
    timeline_occupy(maker->plan->timeline, &use);
}

/* A part that asked for memory may need a larger share of it than of the device. */
static uint32_t part_milli(const struct acre_ledger *ledger, const struct acre_part *part) {
    struct acre_ledger_device device;
    acre_ledger_device_info(ledger, part->device, &device);
    if (part->by_share || device.memory_mib == 0) {
        return part->milli;
    }
    uint64_t share = ((uint64_t)part->mib * 1000 + device.memory_mib - 1) / device.memory_mib;
    return (uint32_t)ACRE_MIN(ACRE_MAX(share, (uint64_t)part->milli), (uint64_t)1000);
}

static void hold_parts(struct maker *maker, const struct acre_allocation *allocation,
                       uint64_t until_ms) {
    for (uint32_t i = 0; i < allocation->part_count; i++) {
        const struct acre_part *part = &allocation->parts[i];
        bool on_device = part->device != ACRE_DEVICE_NONE;
        struct timeline_use use = {
            .node = part->node,
            .slots = on_device
                         ? UINT64_C(1) << acre_ledger_slot_of(maker->sched->ledger, part->device)
                         : 0,
            .milli = on_device ? part_milli(maker->sched->ledger, part) : 0,
            .cpu_milli = part->cpu_milli,
            .ram_mib = part->ram_mib,
            .until_ms = until_ms,
        };
        timeline_occupy(maker->plan->timeline, &use);
    }
}

static struct gate *gate_of(struct maker *maker, uint32_t array) {
    for (uint32_t i = 0; i < maker->plan->gate_count; i++) {
        if (maker->plan->gates[i].array == array) {
            return &maker->plan->gates[i];
        }
    }
    maker->plan->gates = acre_grow(maker->plan->gates, maker->plan->gate_count,
                                   &maker->plan->gate_capacity, sizeof(*maker->plan->gates));
    maker->plan->gates[maker->plan->gate_count] = (struct gate){.array = array};
    return &maker->plan->gates[maker->plan->gate_count++];
}

/* A member of a limited array ends: another may begin. Kept sorted. */
static void note_end(struct maker *maker, const struct job *job, uint64_t end_ms) {
    if (job->array == NONE || maker->sched->arrays[job->array].limit == 0) {
        return;
    }
    struct gate *gate = gate_of(maker, job->array);
    gate->ends_ms = acre_grow(gate->ends_ms, gate->count, &gate->capacity, sizeof(*gate->ends_ms));
    uint32_t at = gate->count++;
    for (; at > gate->next && gate->ends_ms[at - 1] > end_ms; at--) {
        gate->ends_ms[at] = gate->ends_ms[at - 1];
    }
    gate->ends_ms[at] = end_ms;
}

/* What a quota allows, in a field of a node; 0 is no limit. */
static uint32_t allowed(uint64_t amount) {
    return amount == 0 ? UINT32_MAX : (uint32_t)ACRE_MIN(amount, (uint64_t)UINT32_MAX - 1);
}

/* The purse of the job's user or project; NONE: no hard quota. */
static uint32_t purse_of(struct maker *maker, const struct job *job, bool of_project) {
    struct plan *plan = maker->plan;
    uint32_t party;
    uint64_t below_ms;
    const struct acre_quota *quota = accounts_hard_quota(
        maker->sched->accounts, job->account, of_project, maker->now_ms, &party, &below_ms);
    if (quota == NULL) {
        return NONE;
    }
    uint32_t at = acre_map_get(&plan->purse_of_party, party + UINT64_C(1));
    if (at == ACRE_MAP_NONE) {
        uint16_t jobs = (uint16_t)ACRE_MIN(allowed(quota->running), (uint32_t)UINT16_MAX);
        plan->purse =
            acre_grow(plan->purse, plan->purse_count, &plan->purse_capacity, sizeof(*plan->purse));
        at = timeline_add_node(plan->purses, 0, &jobs, 1, allowed(quota->gpu_milli),
                               allowed(quota->gpu_mib));
        plan->purse[plan->purse_count++] = (struct purse){.not_before_ms = below_ms};
        acre_map_put(&plan->purse_of_party, party + UINT64_C(1), at);
    }
    return at;
}

/* It takes of its owner's purses what it holds. */
static void spend(struct maker *maker, const struct job *job, struct account_load load,
                  uint64_t start_ms, uint64_t end_ms) {
    for (int i = 0; i < PARTIES; i++) {
        uint32_t at = purse_of(maker, job, i != 0);
        if (at != NONE) {
            struct timeline_use use = {
                .node = at,
                .slots = 1, /* one more job */
                .milli = 1,
                .cpu_milli = (uint32_t)ACRE_MIN(load.milli, (uint64_t)UINT32_MAX),
                .ram_mib = (uint32_t)ACRE_MIN(load.mib, (uint64_t)UINT32_MAX),
                .from_ms = start_ms,
                .until_ms = end_ms,
            };
            timeline_occupy(maker->plan->purses, &use);
        }
    }
}

/* When this purse has enough for it. */
static uint64_t look_in_purse(struct maker *maker, uint32_t at, struct account_load load,
                              uint64_t duration_ms, uint64_t not_before_ms) {
    static const struct timeline_need one_job = {.slots = 1, .milli = 1, .serves = true};
    struct purse *purse = &maker->plan->purse[at];
    bool as_much = load.milli >= purse->load.milli && load.mib >= purse->load.mib &&
                   duration_ms >= purse->duration_ms;
    uint64_t bound_ms = ACRE_MAX(as_much ? purse->start_ms : 0, purse->not_before_ms);
    struct timeline_ask ask = {
        .replicas = 1,
        .gpus = 1,
        .cpu_milli = (uint32_t)ACRE_MIN(load.milli, (uint64_t)UINT32_MAX),
        .ram_mib = (uint32_t)ACRE_MIN(load.mib, (uint64_t)UINT32_MAX),
        .duration_ms = duration_ms,
        .not_before_ms = ACRE_MAX(bound_ms, not_before_ms),
        .needs = &one_job,
        .kind_count = 1,
    };
    uint64_t start_ms = timeline_earliest_on(maker->plan->purses, at, &ask);
    if (not_before_ms <= ACRE_MAX(bound_ms, maker->now_ms) && start_ms != ACRE_TIMELINE_NEVER) {
        purse->load = load;
        purse->duration_ms = duration_ms;
        purse->start_ms = start_ms;
    }
    return start_ms;
}

/* When its owner's hard quotas have room for it; ACRE_TIMELINE_NEVER. */
static uint64_t within_quotas(struct maker *maker, const struct job *job, uint64_t duration_ms,
                              uint64_t not_before_ms) {
    struct account_load load = maker->sched->classes[job->class].load;
    uint64_t before_ms;
    do { /* the one may allow it only when the other no longer does */
        before_ms = not_before_ms;
        for (int i = 0; i < PARTIES && not_before_ms != ACRE_TIMELINE_NEVER; i++) {
            uint32_t at = purse_of(maker, job, i != 0);
            if (at != NONE) {
                not_before_ms = look_in_purse(maker, at, load, duration_ms, not_before_ms);
            }
        }
    } while (not_before_ms != before_ms && not_before_ms != ACRE_TIMELINE_NEVER);
    return not_before_ms;
}

static void add_running(struct maker *maker) {
    const struct acre_sched *sched = maker->sched;
    struct acre_allocation allocation;
    uint32_t cursor = 0;
    while (acre_ledger_walk(sched->ledger, &cursor, &allocation)) {
        const struct job *job = job_find(sched, allocation.owner);
        const struct run *run = job != NULL ? job_run(sched, job) : NULL;
        if (run == NULL || job->stand != STAND_HOLDING || run->allocation != allocation.id) {
            uint64_t until_ms =
                allocation.expires_ms > 0 ? allocation.expires_ms : ACRE_TIMELINE_NEVER;
            if (allocation.reservation == 0) { /* else it is part of what the reservation holds */
                hold_parts(maker, &allocation, until_ms);
            }
            continue;
        }
        uint64_t end_ms = expected_end_ms(sched, job, maker->now_ms);
        if (allocation.reservation == 0) {
            hold_parts(maker, &allocation, end_ms);
        }
        uint64_t start_ms = run->started_ms > 0 ? run->started_ms : maker->now_ms;
        add_entry(maker->plan, job->id, start_ms, end_ms);
        maker->plan->running_count++;
        maker->plan->good_until_ms = ACRE_MIN(maker->plan->good_until_ms, end_ms);
        note_end(maker, job, end_ms);
        spend(maker, job, run->load, 0, end_ms);
    }
}

static void add_reservations(struct maker *maker) {
    struct acre_reservation reservation;
    for (uint64_t id = 0; acre_ledger_next_reservation(maker->sched->ledger, id, &reservation);
         id = reservation.id) {
        for (uint32_t i = 0;
             reservation.state == ACRE_RESERVATION_PENDING && i < reservation.device_count; i++) {
            occupy_device(maker, reservation.devices[i], reservation.milli, reservation.start_ms,
                          reservation.end_ms);
        }
    }
}

/* What a class needs of every kind of node: worked out once. */
static const struct timeline_need *needs_of(struct maker *maker, uint32_t class) {
    ACRE_ASSERT(class < maker->class_count);
    struct timeline_need *needs = &maker->needs[(size_t) class * maker->kind_count];
    if (!maker->is_known[class]) {
        for (uint32_t kind = 0; kind < maker->kind_count; kind++) {
            needs[kind].serves =
                acre_ledger_kind_serves(maker->sched->ledger, &maker->sched->classes[class].request,
                                        kind, &needs[kind].slots, &needs[kind].milli);
        }
        maker->is_known[class] = true;
    }
    return needs;
}

/* A job that draws on a reservation waits for that, not for room in the rest of the cluster. */
static bool start_in_reservation(const struct maker *maker, uint64_t id, uint64_t not_before_ms,
                                 uint64_t *ret_start_ms) {
    struct acre_reservation reservation;
    if (!acre_ledger_find_reservation(maker->sched->ledger, id, &reservation) ||
        (reservation.state != ACRE_RESERVATION_PENDING &&
         reservation.state != ACRE_RESERVATION_ACTIVE)) {
        return false;
    }
    *ret_start_ms = ACRE_MAX(ACRE_MAX(reservation.start_ms, maker->now_ms), not_before_ms);
    return *ret_start_ms < reservation.end_ms;
}

static bool plan_job(struct maker *maker, const struct job *job, uint64_t not_before_ms) {
    const struct acre_request *request = &maker->sched->classes[job->class].request;
    uint64_t start_ms, run_ms = job_predicted_ms(maker->sched, job);
    not_before_ms = within_quotas(maker, job, run_ms, not_before_ms);
    if (not_before_ms == ACRE_TIMELINE_NEVER) {
        return false;
    }
    if (request->reservation != 0) {
        if (!start_in_reservation(maker, request->reservation, not_before_ms, &start_ms)) {
            return false;
        }
    } else {
        struct timeline_ask ask = {
            .replicas = request->replicas,
            .gpus = request->gpus,
            .cpu_milli = (uint32_t)request->cpu_milli,
            .ram_mib = (uint32_t)request->ram_mib,
            .duration_ms = run_ms,
            .not_before_ms = not_before_ms,
            .needs = needs_of(maker, job->class),
            .kind_count = maker->kind_count,
        };
        if (!timeline_fit(maker->plan->timeline, &ask, NULL, &start_ms)) {
            return false;
        }
    }
    add_entry(maker->plan, job->id, start_ms, start_ms + run_ms);
    note_end(maker, job, start_ms + run_ms);
    spend(maker, job, maker->sched->classes[job->class].load, start_ms, start_ms + run_ms);
    return true;
}

static bool has_room(const struct maker *maker) {
    return maker->plan->entry_count - maker->plan->running_count < EXACT_MAX &&
           timeline_searches(maker->plan->timeline) < SEARCHES_MAX;
}

static void add_queued(struct maker *maker) {
    struct plan *plan = maker->plan;
    uint64_t cursor = 0;
    const struct job *job;
    while (has_room(maker) && (job = order_walk(maker->sched, &cursor)) != NULL) {
        plan->queued_count++;
        if (plan_job(maker, job, 0)) {
            plan->last_start_ms =
                ACRE_MAX(plan->last_start_ms, plan->entries[plan->entry_count - 1].start_ms);
        }
    }
}

/* When all that it depends on has happened; false: nobody can tell. */
static bool after_dependencies(const struct maker *maker, const struct job *job,
                               uint64_t *not_before_ms) {
    const struct acre_sched *sched = maker->sched;
    for (uint32_t at = job->needs; at != NONE; at = sched->edges[at].next_need) {
        const struct edge *edge = &sched->edges[at];
        const struct plan_entry *entry = plan_find(maker->plan, sched->jobs[edge->target].id);
        if (entry == NULL) {
            return false;
        }
        uint64_t met_ms = edge->kind == ACRE_DEPENDENCY_AFTER ? entry->start_ms : entry->end_ms;
        *not_before_ms = ACRE_MAX(*not_before_ms, met_ms);
    }
    return true;
}

/* A job that may not start yet: when it may, and then when it fits. */
static void plan_aside(struct maker *maker, const struct job *job) {
    uint64_t not_before_ms = ACRE_MAX(job->begin_ms, job->not_before_ms);
    if (job->stand == STAND_HELD || !after_dependencies(maker, job, &not_before_ms)) {
        return;
    }
    if (job->array != NONE && maker->sched->arrays[job->array].limit > 0) {
        struct gate *gate = gate_of(maker, job->array);
        if (gate->next < gate->count) {
            not_before_ms = ACRE_MAX(not_before_ms, gate->ends_ms[gate->next]);
            gate->next++;
        }
    }
    plan_job(maker, job, not_before_ms);
}

static void add_aside(struct maker *maker) {
    struct acre_sched *sched = maker->sched;
    for (uint32_t rank = 0; has_room(maker); rank++) {
        uint32_t job = tree_at(&order_by_id, sched, &sched->aside, rank);
        if (job == TREE_NONE) {
            break;
        }
        plan_aside(maker, &sched->jobs[job]);
    }
}

static void maker_init(struct maker *maker, struct acre_sched *sched, uint64_t now_ms) {
    *maker = (struct maker){
        .sched = sched,
        .plan = forecast_plan(sched->forecast),
        .now_ms = now_ms,
        .class_count = sched->class_limit,
        .kind_count = acre_ledger_kind_count(sched->ledger),
    };
    size_t count = (size_t)maker->class_count * maker->kind_count;
    maker->needs = acre_calloc(ACRE_MAX(count, (size_t)1), sizeof(*maker->needs));
    maker->is_known = acre_calloc(ACRE_MAX(maker->class_count, 1U), sizeof(*maker->is_known));
}

static void maker_finish(struct maker *maker) {
    free(maker->needs);
    free(maker->is_known);
}

void plan_make(struct acre_sched *sched, uint64_t now_ms) {
    struct maker maker;
    maker_init(&maker, sched, now_ms);
    struct plan *plan = maker.plan;
    plan_finish(plan);
    plan->timeline = timeline_create(now_ms);
    plan->purses = timeline_create(now_ms);
    plan->built_ms = now_ms;
    plan->last_start_ms = now_ms;
    plan->good_until_ms = UINT64_MAX;
    plan->is_stale = false;
    add_nodes(&maker);
    add_running(&maker);
    add_reservations(&maker);
    add_queued(&maker);
    add_aside(&maker);
    maker_finish(&maker);
}

void plan_add_joined(struct acre_sched *sched, uint64_t now_ms) {
    struct maker maker;
    maker_init(&maker, sched, now_ms);
    for (uint32_t i = 0; i < maker.plan->joined_count && has_room(&maker); i++) {
        const struct job *job = job_find(sched, maker.plan->joined[i]);
        if (job == NULL || plan_find(maker.plan, job->id) != NULL) {
            continue;
        }
        if (job->stand == STAND_LINE) {
            maker.plan->queued_count++;
            plan_job(&maker, job, now_ms);
        } else if (job->stand < STAND_LINE) {
            plan_aside(&maker, job);
        }
    }
    maker.plan->joined_count = 0;
    maker_finish(&maker);
}
