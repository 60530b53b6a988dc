/* when.c - when a job starts: a plan of everything that runs and waits, and what experience says
 * about such plans.
 *
 * The plan is conservative: what runs ends when its forecast says (and half as long again as it has
 * run when it is past that), what is reserved is kept, and the queue is put behind it in the order
 * of the policy, each job at the earliest time it fits without moving an earlier one. Jobs that may
 * not start yet follow, by id: after their begin time, their dependencies, their array's turn.
 *
 * It is made when somebody asks and something has changed since. Making it costs about 10 us a job,
 * so a large one is kept for 1 ms a job in it, which bounds the cost to a hundredth of the time;
 * jobs submitted meanwhile are put behind the others, which costs what one job costs. EXACT_MAX
 * jobs are planned one by one, and no more than SEARCHES_MAX searches of nodes are made; who is
 * further back is told by how fast the queue moves before him, with an interval twice as wide.
 *
 * The interval is what the forecast's memory of errors makes of the planned wait. */
#include "sched/why.h"

#include "ledger/nodes.h"
#include "ledger/reservation.h"
#include "ledger/supply.h"
#include "sched/inner.h"
#include "sched/plan.h"

#include <stdlib.h>
#include <string.h>

enum {
    EXACT_MAX = 10000,
    SEARCHES_MAX = 2000000, /* some 300 ns each; gangs on large clusters may need that many */
    SMALL = 1024,           /* plans of so many jobs are made whenever something changed */
    GRACE_MS = 1000,        /* what a run that was told to end still takes, at least */
};

/* What making a plan needs besides the scheduler. */
struct maker {
    struct acre_sched *sched;
    struct acre_plan *plan;
    uint64_t now_ms;
    struct acre_timeline_need *needs; /* by class, then kind; filled when `is_known` */
    bool *is_known;                   /* by class */
    uint32_t class_count, kind_count;
    struct gate *gates;
    uint32_t gate_count, gate_capacity;
};

/* An array of which only so many run at once: when its members end, soonest first. */
struct gate {
    uint32_t array;
    uint32_t next; /* the end that lets the next one in */
    uint32_t count, capacity;
    uint64_t *ends_ms;
};

static uint64_t predicted_ms(const struct acre_sched *sched, const struct job *job) {
    struct acre_job_spec spec;
    job_show_spec(sched, job, &spec);
    return acre_forecast_run_ms(sched->forecast, &spec, sched->policy.default_estimate_ms);
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
    uint64_t run_ms = predicted_ms(sched, job);
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
        uint32_t added = acre_timeline_add_node(
            maker->plan->timeline, acre_ledger_kind_of(ledger, i), free_milli, node.device_count,
            node.drained ? 0 : node.cpu_milli, node.drained ? 0 : node.ram_mib);
        ACRE_ASSERT(added == i);
    }
}

static void hold_device(struct maker *maker, uint32_t device, uint32_t milli, uint64_t from_ms,
                        uint64_t until_ms) {
    struct acre_ledger_device info;
    acre_ledger_device_info(maker->sched->ledger, device, &info);
    struct acre_timeline_hold hold = {
        .node = info.node,
        .slots = UINT64_C(1) << acre_ledger_slot_of(maker->sched->ledger, device),
        .milli = milli,
        .from_ms = from_ms,
        .until_ms = until_ms,
    };
    acre_timeline_hold(maker->plan->timeline, &hold);
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
        struct acre_timeline_hold hold = {
            .node = part->node,
            .slots = on_device
                         ? UINT64_C(1) << acre_ledger_slot_of(maker->sched->ledger, part->device)
                         : 0,
            .milli = on_device ? part_milli(maker->sched->ledger, part) : 0,
            .cpu_milli = part->cpu_milli,
            .ram_mib = part->ram_mib,
            .until_ms = until_ms,
        };
        acre_timeline_hold(maker->plan->timeline, &hold);
    }
}

static struct gate *gate_of(struct maker *maker, uint32_t array) {
    for (uint32_t i = 0; i < maker->gate_count; i++) {
        if (maker->gates[i].array == array) {
            return &maker->gates[i];
        }
    }
    maker->gates =
        acre_grow(maker->gates, maker->gate_count, &maker->gate_capacity, sizeof(*maker->gates));
    maker->gates[maker->gate_count] = (struct gate){.array = array};
    return &maker->gates[maker->gate_count++];
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
        acre_plan_add(maker->plan, job->id, start_ms, end_ms);
        maker->plan->running_count++;
        maker->plan->good_until_ms = ACRE_MIN(maker->plan->good_until_ms, end_ms);
        note_end(maker, job, end_ms);
    }
}

static void add_reservations(struct maker *maker) {
    struct acre_reservation reservation;
    for (uint64_t id = 0; acre_ledger_next_reservation(maker->sched->ledger, id, &reservation);
         id = reservation.id) {
        for (uint32_t i = 0;
             reservation.state == ACRE_RESERVATION_PENDING && i < reservation.device_count; i++) {
            hold_device(maker, reservation.devices[i], reservation.milli, reservation.start_ms,
                        reservation.end_ms);
        }
    }
}

/* What a class needs of every kind of node: worked out once. */
static const struct acre_timeline_need *needs_of(struct maker *maker, uint32_t class) {
    ACRE_ASSERT(class < maker->class_count);
    struct acre_timeline_need *needs = &maker->needs[(size_t) class * maker->kind_count];
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
    uint64_t start_ms, run_ms = predicted_ms(maker->sched, job);
    if (request->reservation != 0) {
        if (!start_in_reservation(maker, request->reservation, not_before_ms, &start_ms)) {
            return false;
        }
    } else {
        struct acre_timeline_ask ask = {
            .replicas = request->replicas,
            .gpus = request->gpus,
            .cpu_milli = (uint32_t)request->cpu_milli,
            .ram_mib = (uint32_t)request->ram_mib,
            .duration_ms = run_ms,
            .not_before_ms = not_before_ms,
            .needs = needs_of(maker, job->class),
            .kind_count = maker->kind_count,
        };
        if (!acre_timeline_place(maker->plan->timeline, &ask, NULL, &start_ms)) {
            return false;
        }
    }
    acre_plan_add(maker->plan, job->id, start_ms, start_ms + run_ms);
    note_end(maker, job, start_ms + run_ms);
    return true;
}

static bool has_room(const struct maker *maker) {
    return maker->plan->entry_count - maker->plan->running_count < EXACT_MAX &&
           acre_timeline_searches(maker->plan->timeline) < SEARCHES_MAX;
}

static void add_queued(struct maker *maker) {
    struct acre_plan *plan = maker->plan;
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
        const struct plan_entry *entry = acre_plan_find(maker->plan, sched->jobs[edge->target].id);
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
        .plan = acre_forecast_plan(sched->forecast),
        .now_ms = now_ms,
        .class_count = sched->class_limit,
        .kind_count = acre_ledger_kind_count(sched->ledger),
    };
    size_t count = (size_t)maker->class_count * maker->kind_count;
    maker->needs = acre_calloc(ACRE_MAX(count, (size_t)1), sizeof(*maker->needs));
    maker->is_known = acre_calloc(ACRE_MAX(maker->class_count, 1U), sizeof(*maker->is_known));
}

static void maker_finish(struct maker *maker) {
    for (uint32_t i = 0; i < maker->gate_count; i++) {
        free(maker->gates[i].ends_ms);
    }
    free(maker->gates);
    free(maker->needs);
    free(maker->is_known);
}

static void make_plan(struct acre_sched *sched, uint64_t now_ms) {
    struct maker maker;
    maker_init(&maker, sched, now_ms);
    struct acre_plan *plan = maker.plan;
    acre_plan_finish(plan);
    plan->timeline = acre_timeline_create(now_ms);
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

/* Put those who came since behind the others. */
static void add_joined(struct acre_sched *sched, uint64_t now_ms) {
    struct maker maker;
    maker_init(&maker, sched, now_ms);
    for (uint32_t i = 0; i < maker.plan->joined_count && has_room(&maker); i++) {
        const struct job *job = job_find(sched, maker.plan->joined[i]);
        if (job == NULL || acre_plan_find(maker.plan, job->id) != NULL) {
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

static void refresh(struct acre_sched *sched, uint64_t now_ms) {
    struct acre_plan *plan = acre_forecast_plan(sched->forecast);
    bool is_old = plan->is_stale || now_ms >= plan->good_until_ms || now_ms < plan->built_ms;
    bool may_wait = plan->timeline != NULL && plan->entry_count >= SMALL &&
                    now_ms >= plan->built_ms && now_ms - plan->built_ms < plan->entry_count;
    if (plan->timeline == NULL || (is_old && !may_wait)) {
        make_plan(sched, now_ms);
    } else if (plan->joined_count > 0) {
        add_joined(sched, now_ms);
    }
}

/* Behind what is planned one by one: at the pace of the queue before it. */
static bool extrapolate(const struct acre_sched *sched, const struct acre_plan *plan,
                        const struct job *job, uint64_t *ret_start_ms) {
    bool in_order = job->stand == STAND_LINE || job->stand == STAND_PROMISED;
    uint32_t ahead = in_order ? order_ahead(sched, job) : 0;
    if (!in_order || plan->queued_count == 0 || ahead < plan->queued_count) {
        return false;
    }
    double pace_ms = (double)(plan->last_start_ms - plan->built_ms) / plan->queued_count;
    *ret_start_ms = plan->built_ms + (uint64_t)(pace_ms * (ahead + 1.0));
    return true;
}

static struct acre_when from_plan(struct acre_sched *sched, const struct job *job,
                                  uint64_t now_ms) {
    const struct acre_plan *plan = acre_forecast_plan(sched->forecast);
    const struct plan_entry *entry = acre_plan_find(plan, job->id);
    uint64_t start_ms = entry != NULL ? entry->start_ms : 0;
    if (entry == NULL && !extrapolate(sched, plan, job, &start_ms)) {
        return (struct acre_when){.known = false};
    }
    start_ms = ACRE_MAX(start_ms, now_ms);
    acre_forecast_estimated(sched->forecast, job->id, now_ms, start_ms);
    struct acre_forecast_wait wait = acre_forecast_wait(sched->forecast, start_ms - now_ms);
    uint64_t floor_ms = ACRE_MAX(ACRE_MAX(job->begin_ms, job->not_before_ms), now_ms);
    uint64_t widen = entry == NULL ? 2 : 1;
    return (struct acre_when){
        .known = true,
        .start_ms = ACRE_MAX(now_ms + wait.middle_ms, floor_ms),
        .earliest_ms = ACRE_MAX(now_ms + wait.least_ms / widen, floor_ms),
        .latest_ms = ACRE_MAX(now_ms + wait.most_ms * widen, floor_ms),
    };
}

int acre_sched_when(struct acre_sched *sched, uint64_t id, uint64_t now_ms,
                    struct acre_when *ret_when, struct acre_error *err) {
    const struct job *job = job_find(sched, id);
    if (job == NULL) {
        return acre_fail(err, ACRE_ENOTFOUND, "job %llu: not in the queue", (unsigned long long)id);
    }
    const struct run *run = job_run(sched, job);
    bool waits = job->stand < STAND_HOLDING;
    if (!waits) {
        uint64_t started_ms = run == NULL ? 0 : ACRE_MAX(run->started_ms, run->scheduled_ms);
        *ret_when = (struct acre_when){
            .known = started_ms > 0,
            .start_ms = started_ms,
            .earliest_ms = started_ms,
            .latest_ms = started_ms,
        };
        return 0;
    }
    if (job->stand == STAND_HELD || sched->paused) {
        *ret_when = (struct acre_when){.known = false};
        return 0;
    }
    refresh(sched, now_ms);
    *ret_when = from_plan(sched, job_find(sched, id), now_ms);
    return 0;
}
