/* load.c - rebuilds the core from the store: at start, and after a failed commit.
 *
 * Reservations that hold devices come first (jobs may draw on them), then live jobs in order of
 * their ids, then reservations still to come: a job that overran into one keeps its place. A job
 * whose devices no longer exist goes back to the queue, and its processes, which no run adopts,
 * are reaped. Engines are asked only after everything is in its place. */
#include "desk/inner.h"

#include "ledger/reservation.h"
#include "sched/why.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PAGE = 1000, /* rows a read */
    LOAD_ARENA_MAX_BYTES = 256 << 20,
    DEVICES_MAX = UINT16_MAX,
};

struct load {
    struct acre_desk *desk;
    struct acre_arena *arena;
    struct acre_error *err;
    uint64_t last_id;
    uint32_t count;
    bool active; /* reservations: which ones */
    int result;
};

void desk_unload(struct acre_desk *desk) {
    acre_sched_destroy(desk->sched);
    acre_ledger_destroy(desk->ledger);
    desk->sched = NULL;
    desk->ledger = NULL;
    desk->capacity.is_old = true;
    desk->external_count = 0;
    desk->text_count = 0;
    acre_map_finish(&desk->text_of_job);
    desk->holding_count = 0;
    for (uint32_t i = 0; i < inventory_nodes(desk->inventory); i++) {
        desk_set_node_reason(desk, i, "");
    }
}

static void add_holding(struct acre_desk *desk, uint64_t job) {
    desk->holding = acre_grow(desk->holding, desk->holding_count, &desk->holding_capacity,
                              sizeof(*desk->holding));
    desk->holding[desk->holding_count++] = job;
}

/* Its place is gone: it waits again, as after a loss. */
static int requeue(struct load *load, struct acre_job *job) {
    struct acre_desk *desk = load->desk;
    if (job->canceling) {
        add_holding(desk, job->spec.id); /* desk_adopt cancels it, with its event */
    }
    job->state = ACRE_JOB_QUEUED;
    job->canceling = false;
    job->preempted_for = 0;
    int r = acre_sched_restore(desk->sched, job, NULL, 0, acre_desk_now(desk), load->err);
    if (r == 0) {
        struct acre_sched_event event = {
            .kind = ACRE_SCHED_REQUEUED, .now_ms = desk->now_ms, .job = job->spec.id};
        desk_event(desk, &event);
    }
    return r;
}

static int put_back(struct load *load, const struct acre_store_job *row,
                    struct acre_recorded_job *recorded) {
    struct acre_desk *desk = load->desk;
    struct acre_job *job = &recorded->job;
    uint64_t newest_ms = ACRE_MAX(job->submitted_ms, ACRE_MAX(job->scheduled_ms, job->started_ms));
    desk->now_ms = ACRE_MAX(desk->now_ms, newest_ms); /* time does not go back over a restart */
    if (recorded->recipe.external) {
        desk_add_external(desk, row->id);
    }
    desk_set_text(desk, row->id, recorded->exit_text);
    if (!acre_job_state_holds(job->state)) {
        return acre_sched_restore(desk->sched, job, NULL, 0, acre_desk_now(desk), load->err);
    }
    struct acre_part *parts =
        acre_arena_alloc(load->arena, (recorded->part_count + 1U) * sizeof(*parts));
    struct acre_error why = {0};
    int r = acre_record_find_parts(desk->ledger, recorded, parts, &why);
    if (r == 0) {
        r = acre_sched_restore(desk->sched, job, parts, recorded->part_count, acre_desk_now(desk),
                               &why);
    }
    if (r == 0) {
        add_holding(desk, row->id);
    } else if (r == ACRE_ENOTFOUND || r == ACRE_ECONFLICT || r == ACRE_ENOFIT) {
        if (desk->sink.trouble != NULL) {
            desk->sink.trouble(desk->sink.context, "a job lost its devices", &why);
        }
        r = requeue(load, job);
    } else {
        acre_fail(load->err, r, "%s", why.text);
    }
    return r;
}

static int restore_job(struct load *load, const struct acre_store_job *row) {
    struct acre_desk *desk = load->desk;
    struct acre_names *names = acre_ledger_names(desk->ledger);
    struct acre_recorded_job recorded;
    json_t *shared = NULL;
    int r = 0;
    if (row->spec_id != 0) {
        r = acre_desk_parsed_spec(desk, row->spec_id, &shared, load->err);
        r = r < 0 ? acre_fail_in(load->err, r, "job %llu", (unsigned long long)row->id) : 0;
    }
    if (r == 0) {
        r = acre_record_read_job(row, shared, names, load->arena, &recorded, load->err);
    }
    if (r < 0) {
        return r;
    }
    recorded.job.spec.bytes = (uint32_t)(shared != NULL ? desk->parsed_bytes : row->spec.length);
    r = put_back(load, row, &recorded);
    acre_names_give(names, recorded.job.spec.name);
    json_decref(recorded.spec);
    return r;
}

static bool visit_job(void *context, const struct acre_store_job *row) {
    struct load *load = context;
    load->last_id = row->id;
    load->count++;
    load->result = restore_job(load, row);
    acre_arena_reset(load->arena);
    return load->result == 0;
}

static int load_jobs(struct load *load) {
    struct acre_job_filter filter = {.live_only = true, .limit = PAGE};
    do {
        load->count = 0;
        int r = acre_store_jobs(load->desk->store, &filter, visit_job, load, load->err);
        if (r < 0 || load->result < 0) {
            return r < 0 ? r : load->result;
        }
        filter.after_id = load->last_id;
    } while (load->count == PAGE);
    return 0;
}

static bool visit_account(void *context, const struct acre_store_account *row) {
    struct load *load = context;
    struct acre_names *names = acre_ledger_names(load->desk->ledger);
    struct acre_usage usage = {.project = acre_names_intern(names, acre_str_from(row->project)),
                               .user = acre_names_intern(names, acre_str_from(row->user)),
                               .charged_ms = row->charged_ms,
                               .stored_use = row->use,
                               .stored_at_ms = row->at_ms};
    acre_sched_restore_usage(load->desk->sched, &usage);
    return true;
}

static bool visit_drain(void *context, const struct acre_store_drain *row) {
    struct load *load = context;
    struct acre_ledger *ledger = load->desk->ledger;
    uint32_t index = 0;
    if (strncmp(row->target, "node:", 5) == 0 &&
        acre_ledger_find_node(ledger, row->target + 5, &index)) {
        acre_ledger_drain_node(ledger, index, true, NULL);
        desk_set_node_reason(load->desk, index, row->reason);
    } else if (strncmp(row->target, "device:", 7) == 0 &&
               acre_ledger_find_device(ledger, row->target + 7, &index)) {
        acre_ledger_drain_device(ledger, index, row->reason, NULL);
    }
    return true; /* one that is not here now stays drained should it come back */
}

static int restore_reservation(struct load *load, const struct acre_store_reservation *row,
                               enum acre_reservation_state state) {
    struct acre_ledger *ledger = load->desk->ledger;
    json_t *detail = NULL;
    uint64_t milli = 0;
    const char *isolation = "";
    int r = acre_json_parse("reservation", row->detail, ACRE_RECORD_DETAIL_MAX, &detail, load->err);
    if (r == 0) {
        r = acre_json_get_u64(detail, "share_milli", true, 1, 1000, &milli, load->err);
    }
    if (r == 0) {
        r = acre_json_get_string(detail, "isolation", true, 32, &isolation, load->err);
    }
    const json_t *list = json_object_get(detail, "devices");
    struct acre_reservation from = {
        .id = row->id,
        .user = acre_names_intern(acre_ledger_names(ledger), acre_str_from(row->user)),
        .state = state,
        .milli = (uint32_t)milli,
        .start_ms = row->start_ms,
        .end_ms = row->end_ms};
    isolation_parse(acre_str_from(isolation), &from.isolation);
    size_t count = ACRE_MIN(json_array_size(list), (size_t)DEVICES_MAX);
    uint32_t *devices = acre_arena_alloc(load->arena, (count + 1) * sizeof(*devices));
    for (size_t i = 0; i < count; i++) {
        const char *id = json_string_value(json_array_get(list, i));
        if (id != NULL && acre_ledger_find_device(ledger, id, &devices[from.device_count])) {
            from.device_count++; /* those that are gone are not reserved */
        }
    }
    from.devices = devices;
    json_decref(detail);
    if (r == 0 && from.device_count > 0) {
        r = acre_ledger_restore_reservation(ledger, &from, acre_desk_now(load->desk), load->err);
    }
    return r == ACRE_ECONFLICT ? 0 : r; /* its devices are taken: it is over */
}

static bool visit_reservation(void *context, const struct acre_store_reservation *row) {
    struct load *load = context;
    bool is_active = strcmp(row->state, acre_reservation_state_name(ACRE_RESERVATION_ACTIVE)) == 0;
    bool is_pending =
        strcmp(row->state, acre_reservation_state_name(ACRE_RESERVATION_PENDING)) == 0;
    if (load->active ? is_active : is_pending) {
        load->result = restore_reservation(
            load, row, is_active ? ACRE_RESERVATION_ACTIVE : ACRE_RESERVATION_PENDING);
    }
    acre_arena_reset(load->arena);
    return load->result == 0;
}

static int load_reservations(struct load *load, bool active) {
    load->active = active;
    int r = acre_store_reservations(load->desk->store, visit_reservation, load, load->err);
    return r < 0 ? r : load->result;
}

int desk_read_setting(struct acre_desk *desk, const char *name, struct acre_buf *value,
                      struct acre_error *err) {
    struct acre_error reason = {0};
    int r = acre_store_setting(desk->store, name, value, &reason);
    if (r == 0 || r == ACRE_ENOTFOUND) {
        return 0;
    }
    return acre_fail(err, r, "%s", reason.text);
}

static int load_policy(struct acre_desk *desk, struct acre_error *err) {
    const struct acre_policy *base =
        desk->options.policy != NULL ? desk->options.policy : acre_policy_default();
    struct acre_buf text;
    acre_buf_init(&text, ACRE_POLICY_BYTES_MAX);
    int r = desk_read_setting(desk, "policy", &text, err);
    if (r == 0 && text.length > 0) {
        r = acre_policy_load("policy in the store", (struct acre_str){text.data, text.length}, base,
                             desk->policy, err);
    } else {
        *desk->policy = *base;
    }
    acre_buf_finish(&text);
    return r;
}

static int load_paused(struct acre_desk *desk, struct acre_error *err) {
    struct acre_buf text;
    acre_buf_init(&text, 16);
    int r = desk_read_setting(desk, "paused", &text, err);
    desk->paused = r == 0 && strcmp(text.data, "true") == 0;
    acre_sched_pause(desk->sched, desk->paused);
    acre_buf_finish(&text);
    return r;
}

static int load_rest(struct load *load) {
    struct acre_desk *desk = load->desk;
    int r = acre_store_accounts(desk->store, visit_account, load, load->err);
    if (r == 0) {
        r = acre_store_drains(desk->store, visit_drain, load, load->err);
    }
    if (r == 0) {
        r = load_reservations(load, true);
    }
    if (r == 0) {
        r = load_jobs(load);
    }
    if (r == 0) {
        r = load_reservations(load, false);
    }
    if (r == 0) {
        r = load_paused(desk, load->err);
    }
    return r;
}

int desk_load(struct acre_desk *desk, struct acre_error *err) {
    struct acre_ledger_options ledger = {0};
    struct load load = {.desk = desk, .err = err, .arena = acre_arena_create(LOAD_ARENA_MAX_BYTES)};
    desk->epoch++;
    desk->ledger = acre_ledger_create(&ledger);
    int r = 0;
    for (uint32_t i = 0; i < inventory_nodes(desk->inventory) && r == 0; i++) {
        r = inventory_fill(desk->inventory, i, desk->ledger, err);
    }
    if (r == 0) {
        r = load_policy(desk, err);
    }
    struct acre_sched_options sched = {.ledger = desk->ledger,
                                       .policy = r == 0 ? desk->policy : acre_policy_default(),
                                       .event = desk_event,
                                       .action = desk_action,
                                       .context = desk};
    desk->sched = acre_sched_create(&sched);
    if (r == 0) {
        r = load_rest(&load);
    }
    desk->next_job = ACRE_MAX(desk->next_job, acre_store_last_job(desk->store) + 1);
    desk_note_reservations(desk, acre_desk_now(desk));
    acre_arena_destroy(load.arena);
    return r;
}

/* Ask for each run that is believed to be live, and again for those whose start may not have been
 * asked for. Signals are repeated by the scheduler itself, with its first pass. */
void desk_adopt(struct acre_desk *desk) {
    desk_limit_engines(desk);
    for (uint32_t i = 0; i < desk->holding_count; i++) {
        struct acre_job job;
        if (!acre_sched_find(desk->sched, desk->holding[i], &job)) {
            continue;
        }
        if (!acre_job_state_holds(job.state)) { /* it was being canceled and lost its place */
            acre_sched_cancel(desk->sched, job.spec.id, acre_desk_now(desk), NULL);
        } else if (job.state == ACRE_JOB_ALLOCATING && !job.canceling) {
            struct acre_sched_action start = {ACRE_ACTION_START, job.spec.id, job.attempt};
            desk_act(desk, &start); /* engines start nothing twice */
        } else if (!acre_desk_is_external(desk, job.spec.id)) {
            desk_adopt_run(desk, &job);
        }
    }
    desk->holding_count = 0;
    for (uint32_t i = 0; i < desk->engine_count; i++) {
        desk->engines[i].driver->reap(desk->engines[i].self);
    }
    desk->touched = true;
}
