/* turn.c - one turn of the loop, from events to the commit, and what follows from it.
 *
 * The turn: let the scheduler decide on what commands and facts changed; then write each job that
 * changed once, however many events it had, and the audit rows of all events; hand the batch to
 * the store. While it is being synced the next turns gather and hand over theirs: the store makes
 * one transaction of all that waits, so a commit costs the same for one job or a thousand.
 *
 * The end of a commit: answers in the order of their turns, then the events, then the actions.
 * Sequence numbers of turns say which answers a commit sets free; `seen` is the last turn that
 * changed anything, and what any answer given now must wait for. */
#include "desk/inner.h"

#include "core/units.h"
#include "ledger/reservation.h"
#include "sched/why.h"

#include <stdio.h>
#include <stdlib.h>

enum { TEXT_MAX = 256 };

/* What one commit carries. */
struct desk_turn {
    struct acre_desk *desk;
    uint64_t sequence;
    uint64_t epoch; /* of the core it came from */
    uint64_t began_ns;
    struct desk_events events;
    struct desk_actions actions;
    bool is_probe;
};

/* --- what the scheduler tells --------------------------------------------------------------- */

void desk_changed(struct acre_desk *desk) {
    desk->touched = true;
    desk->dirty = true;
    if (desk->batch == NULL) {
        desk->batch = acre_batch_create();
    }
}

void desk_event(void *context, const struct acre_sched_event *event) {
    struct acre_desk *desk = context;
    struct desk_events *events = &desk->events;
    events->items =
        acre_grow(events->items, events->count, &events->capacity, sizeof(*events->items));
    struct acre_job job = {0};
    acre_sched_find(desk->sched, event->job, &job);
    if (event->kind == ACRE_SCHED_CANCELED && event->other != 0 && job.attempt == 0) {
        char text[TEXT_MAX];
        snprintf(text, sizeof(text), "job %llu, which it was waiting for, did not complete",
                 (unsigned long long)event->other);
        desk_set_text(desk, event->job, text);
    }
    events->items[events->count++] = (struct desk_event){
        .told = {.event = *event,
                 .state = job.state,
                 .attempt = job.attempt,
                 .user = job.spec.user,
                 .project = job.spec.project},
        .actor = desk->actor,
        .origin = desk->origin,
    };
    desk_changed(desk);
}

void desk_action(void *context, const struct acre_sched_action *action) {
    struct acre_desk *desk = context;
    struct desk_actions *actions = &desk->actions;
    actions->items =
        acre_grow(actions->items, actions->count, &actions->capacity, sizeof(*actions->items));
    actions->items[actions->count++] = *action;
    desk_changed(desk); /* it must follow a commit */
}

/* --- rows ----------------------------------------------------------------------------------- */

/* Rows come in the order of events, and so do the places: the next one is mostly the one. */
static struct acre_str find_last_parts(struct acre_desk *desk, uint64_t job) {
    for (uint32_t i = 0; i < desk->last_count; i++) {
        uint32_t at = (desk->last_found + i) % desk->last_count;
        if (desk->last_parts[at].job == job) {
            desk->last_found = at + 1;
            return desk->last_parts[at].parts;
        }
    }
    return (struct acre_str){0};
}

/* Ids only grow, and so do those of rows that are new. */
static const struct desk_submission *find_submitted(struct acre_desk *desk, uint64_t job) {
    const struct desk_submission *found = &desk->submissions[desk->submission_found];
    while (desk->submission_found < desk->submission_count && job >= found->first + found->count) {
        desk->submission_found++;
        found++;
    }
    ACRE_ASSERT(desk->submission_found < desk->submission_count && job >= found->first);
    return found;
}

/* The first of an array has the spec, the others point at it. */
static void add_spec(struct acre_desk *desk, struct acre_store_job *row) {
    const struct desk_submission *submission = find_submitted(desk, row->id);
    if (row->id == submission->first) {
        row->spec = (struct acre_str){submission->text, submission->length};
    } else {
        row->spec_id = submission->first;
    }
}

static void write_job(struct acre_desk *desk, const struct acre_job *job, bool is_new) {
    const struct acre_names *names = acre_ledger_names(desk->ledger);
    acre_buf_clear(&desk->detail);
    acre_record_write_detail(desk->ledger, job, acre_desk_exit_text(desk, job->spec.id),
                             find_last_parts(desk, job->spec.id), &desk->detail);
    struct acre_store_job row = {
        .id = job->spec.id,
        .user = acre_names_text(names, job->spec.user),
        .project = acre_names_text(names, job->spec.project),
        .name = acre_names_text(names, job->spec.name),
        .state = acre_job_state_name(job->state),
        .live = acre_job_state_is_live(job->state),
        .priority = (uint32_t)job->spec.priority,
        .array = job->spec.array,
        .attempt = job->attempt,
        .submitted_ms = job->submitted_ms,
        .started_ms = job->started_ms,
        .ended_ms = job->ended_ms,
        .detail = {desk->detail.data, desk->detail.length},
    };
    if (is_new) {
        add_spec(desk, &row);
        acre_batch_add_job(desk->batch, &row);
    } else {
        acre_batch_update_job(desk->batch, &row);
    }
}

/* A run has ended: what its account was charged. */
static void write_account(struct acre_desk *desk, const struct acre_job *job, uint64_t now_ms) {
    struct acre_usage usage;
    uint64_t key = (uint64_t)job->spec.project << 32 | job->spec.user;
    if (key == 0 || !acre_map_add(&desk->accounts, key, 0) ||
        !acre_sched_find_usage(desk->sched, job->spec.project, job->spec.user, now_ms, &usage)) {
        return;
    }
    const struct acre_names *names = acre_ledger_names(desk->ledger);
    struct acre_store_account row = {
        .project = acre_names_text(names, usage.project),
        .user = acre_names_text(names, usage.user),
        .charged_ms = usage.charged_ms,
        .use = usage.stored_use,
        .at_ms = usage.stored_at_ms,
    };
    acre_batch_put_account(desk->batch, &row);
}

/* Which events stand in the audit trail, and which of them end a run. */
static const struct {
    bool is_audited, ends_run;
} kinds[] = {
    [ACRE_SCHED_SUBMITTED] = {true, false},   [ACRE_SCHED_SCHEDULED] = {true, false},
    [ACRE_SCHED_DISPATCHED] = {false, false}, [ACRE_SCHED_STARTED] = {true, false},
    [ACRE_SCHED_COMPLETED] = {true, true},    [ACRE_SCHED_FAILED] = {true, true},
    [ACRE_SCHED_CANCELING] = {true, false},   [ACRE_SCHED_CANCELED] = {true, true},
    [ACRE_SCHED_PREEMPTED] = {true, false},   [ACRE_SCHED_RECLAIMED] = {true, false},
    [ACRE_SCHED_IDLE] = {true, false},        [ACRE_SCHED_REQUEUED] = {true, true},
    [ACRE_SCHED_HELD] = {true, false},        [ACRE_SCHED_RELEASED] = {true, false},
    [ACRE_SCHED_PRIORITY] = {true, false},    [ACRE_SCHED_CHANGED] = {false, false},
};

static bool ends_job(enum acre_sched_event_kind kind) {
    return kind == ACRE_SCHED_COMPLETED || kind == ACRE_SCHED_FAILED || kind == ACRE_SCHED_CANCELED;
}

/* Where it was placed: the first devices by name, and how many more. */
static void describe_place(const struct acre_desk *desk, const struct acre_job *job,
                           struct acre_buf *out) {
    struct acre_allocation allocation;
    if (job->allocation == 0 || !acre_ledger_find(desk->ledger, job->allocation, &allocation)) {
        return;
    }
    uint32_t shown = ACRE_MIN(allocation.part_count, 4U);
    for (uint32_t i = 0; i < shown; i++) {
        const struct acre_part *part = &allocation.parts[i];
        struct acre_ledger_node node;
        acre_ledger_node_info(desk->ledger, part->node, &node);
        acre_buf_printf(out, "%s%s", i > 0 ? ", " : "", node.name);
        if (part->device != ACRE_DEVICE_NONE) {
            struct acre_ledger_device device;
            acre_ledger_device_info(desk->ledger, part->device, &device);
            char share[24];
            acre_buf_printf(out, " %s", device.id);
            if (part->milli < 1000) {
                acre_buf_printf(out, " (%s of it)",
                                acre_format_milli(part->milli, share, sizeof(share)));
            }
        }
    }
    if (allocation.part_count > shown) {
        acre_buf_printf(out, " and %u more", allocation.part_count - shown);
    }
}

static void describe(const struct acre_desk *desk, const struct acre_desk_event *told,
                     const struct acre_job *job, struct acre_buf *out) {
    acre_buf_clear(out);
    if (told->event.kind == ACRE_SCHED_SCHEDULED) {
        describe_place(desk, job, out);
    } else if (kinds[told->event.kind].ends_run && job->attempt > 0) {
        acre_buf_printf(out, "attempt %u: %s %d", told->attempt,
                        acre_exit_kind_name(job->exit.kind), job->exit.code);
    } else if (told->event.kind == ACRE_SCHED_PRIORITY) {
        acre_buf_printf(out, "priority %d", (int)job->spec.priority);
    }
    if (told->event.other != 0) {
        acre_buf_printf(out, "%sfor job %llu", out->length > 0 ? "; " : "",
                        (unsigned long long)told->event.other);
    }
}

static void write_audit(struct acre_desk *desk, const struct desk_event *event,
                        const struct acre_job *job, struct acre_buf *text) {
    char target[32];
    snprintf(target, sizeof(target), "job:%llu", (unsigned long long)event->told.event.job);
    describe(desk, &event->told, job, text);
    struct acre_store_audit row = {.at_ms = event->told.event.now_ms,
                                   .actor = event->actor,
                                   .origin = event->origin,
                                   .action = acre_sched_event_name(event->told.event.kind),
                                   .target = target,
                                   .result = "ok",
                                   .detail = text->data != NULL ? text->data : ""};
    acre_batch_audit(desk->batch, &row);
}

/* Every job that had an event is written once, as it is now; every event is audited. */
static void write_rows(struct acre_desk *desk) {
    struct acre_buf text;
    acre_buf_init(&text, TEXT_MAX + ACRE_ERROR_TEXT_MAX);
    acre_map_clear(&desk->rows);
    acre_map_clear(&desk->accounts);
    for (uint32_t i = 0; i < desk->events.count; i++) {
        const struct desk_event *event = &desk->events.items[i];
        enum acre_sched_event_kind kind = event->told.event.kind;
        struct acre_job job;
        if (!acre_sched_find(desk->sched, event->told.event.job, &job)) {
            continue;
        }
        if (acre_map_add(&desk->rows, job.spec.id, 0)) {
            write_job(desk, &job, kind == ACRE_SCHED_SUBMITTED);
        }
        if (kinds[kind].ends_run) {
            write_account(desk, &job, event->told.event.now_ms);
        }
        if (kinds[kind].is_audited) {
            write_audit(desk, event, &job, &text);
        }
    }
    acre_buf_finish(&text);
}

/* --- the commit ----------------------------------------------------------------------------- */

static void call_waiters(struct acre_desk *desk) {
    while (desk->waiters != NULL && desk->waiters->sequence <= desk->committed) {
        struct acre_desk_waiter *waiter = desk->waiters;
        desk->waiters = waiter->next;
        if (desk->waiters == NULL) {
            desk->last_waiter = &desk->waiters;
        }
        desk->waiting--;
        waiter->done(waiter, NULL);
    }
}

void desk_fail_waiters(struct acre_desk *desk, const struct acre_error *err) {
    struct acre_error shown = {0};
    acre_fail(&shown, err->code == ACRE_ENOMEM ? ACRE_ENOMEM : ACRE_EUNAVAILABLE,
              "cannot record the change, so nothing was changed: %s", err->text);
    struct acre_desk_waiter *waiter = desk->waiters;
    desk->waiters = NULL;
    desk->last_waiter = &desk->waiters;
    desk->waiting = 0;
    while (waiter != NULL) {
        struct acre_desk_waiter *next = waiter->next;
        waiter->done(waiter, &shown);
        waiter = next;
    }
}

/* What was kept for this turn is written, or of no use any more. */
static void reset_arena(struct acre_desk *desk) {
    desk->last_count = 0;
    desk->last_found = 0;
    while (desk->submission_count > 0) {
        free(desk->submissions[--desk->submission_count].text);
    }
    desk->submission_found = 0;
    acre_arena_reset(desk->arena);
    acre_desk_set_actor(desk, NULL, NULL);
}

static void drop_turn(struct acre_desk *desk) {
    acre_batch_destroy(desk->batch);
    desk->batch = NULL;
    desk->events.count = 0;
    desk->actions.count = 0;
    desk->dirty = false;
    desk->touched = false;
    desk->seen = desk->committed;
    reset_arena(desk);
}

static void probe(void *context) {
    struct acre_desk *desk = context;
    if (desk->in_flight > 0) {
        return;
    }
    acre_store_resume(desk->store);
    char now[24];
    snprintf(now, sizeof(now), "%llu", (unsigned long long)acre_desk_now(desk));
    acre_batch_destroy(desk->batch);
    desk->batch = acre_batch_create();
    acre_batch_put_setting(desk->batch, "probe", acre_str_from(now));
    desk_commit(desk, true);
}

/* The store refused. What the core believes was never written: it goes, and with it everything
 * that waits. */
static void break_down(struct acre_desk *desk, const struct acre_error *err) {
    desk->timings.failures++;
    desk->fault = *err;
    desk->state = DESK_BROKEN;
    desk_fail_waiters(desk, err);
    drop_turn(desk);
    desk_unload(desk);
    struct acre_error again = {0};
    if (desk_load(desk, &again) < 0) {
        desk->state = DESK_BLIND;
    }
    desk->probe = acre_loop_timer(desk->options.loop, desk->options.probe_ms,
                                  desk->options.probe_ms, probe, desk);
    if (desk->sink.trouble != NULL) {
        desk->sink.trouble(desk->sink.context, "cannot record changes", err);
    }
}

/* A probe was written: read everything anew and go on, as after a restart. */
static void recover(struct acre_desk *desk) {
    struct acre_error err = {0};
    drop_turn(desk);
    desk_unload(desk);
    if (desk_load(desk, &err) < 0) {
        desk->state = DESK_BLIND;
        desk->fault = err;
        return; /* the next probe tries again */
    }
    acre_timer_cancel(desk->probe);
    desk->probe = NULL;
    desk->state = DESK_OPEN;
    if (desk->sink.trouble != NULL) {
        desk->sink.trouble(desk->sink.context, "recording works again", NULL);
    }
    desk_adopt(desk);
}

static void follow_up(struct acre_desk *desk, const struct desk_turn *turn) {
    for (uint32_t i = 0; i < turn->events.count && turn->epoch == desk->epoch; i++) {
        const struct acre_desk_event *told = &turn->events.items[i].told;
        if (desk->sink.event != NULL) {
            desk->sink.event(desk->sink.context, told);
        }
        if (ends_job(told->event.kind)) {
            desk_forget_job(desk, told->event.job);
        }
    }
    bool may_act = desk->state == DESK_OPEN; /* else the next start acts */
    for (uint32_t i = 0; i < turn->actions.count && turn->epoch == desk->epoch && may_act; i++) {
        desk_act(desk, &turn->actions.items[i]);
    }
}

static void committed(void *context, int code, const struct acre_error *err) {
    struct desk_turn *turn = context;
    struct acre_desk *desk = turn->desk;
    struct acre_clock clock = acre_clock_real();
    uint64_t took_us = (acre_clock_monotonic_ns(&clock) - turn->began_ns) / 1000;
    desk->in_flight--;
    desk->timings.commits++;
    desk->timings.commit_last_us = took_us;
    desk->timings.commit_max_us = ACRE_MAX(desk->timings.commit_max_us, took_us);
    if (code < 0) {
        if (desk->state == DESK_OPEN || desk->state == DESK_IDLE) {
            break_down(desk, err);
        } else if (turn->is_probe) {
            desk->fault = *err;
        }
    } else {
        desk->committed = turn->sequence;
        call_waiters(desk);
        if (turn->is_probe) {
            recover(desk);
        } else {
            follow_up(desk, turn);
        }
    }
    free(turn->events.items);
    free(turn->actions.items);
    free(turn);
}

void desk_commit(struct acre_desk *desk, bool is_probe) {
    desk_remember_nodes(desk);
    if (desk->batch == NULL) {
        if (desk->events.count == 0) { /* else they still point there */
            reset_arena(desk);         /* refused changes put their callers there */
        }
        return;
    }
    struct acre_clock clock = acre_clock_real();
    struct desk_turn *turn = acre_calloc(1, sizeof(*turn));
    if (!is_probe) {
        write_rows(desk);
    }
    *turn = (struct desk_turn){.desk = desk,
                               .sequence = desk->sequence++,
                               .epoch = desk->epoch,
                               .began_ns = acre_clock_monotonic_ns(&clock),
                               .events = desk->events,
                               .actions = desk->actions,
                               .is_probe = is_probe};
    desk->events = (struct desk_events){0};
    desk->actions = (struct desk_actions){0};
    if (desk->dirty) {
        desk->seen = turn->sequence;
    }
    desk->dirty = false;
    struct acre_batch *batch = desk->batch;
    desk->batch = NULL;
    desk->in_flight++;
    acre_store_commit(desk->store, batch, committed, turn);
    reset_arena(desk);
}

/* --- time ----------------------------------------------------------------------------------- */

/* Start and end reservations whose time has come, and record what became of them. */
static void tick_reservations(struct acre_desk *desk, uint64_t now_ms) {
    if (desk->reservations_ms > now_ms) {
        return;
    }
    struct acre_reservation reservation;
    struct acre_map *state_of = &desk->accounts; /* free between turns */
    acre_map_clear(state_of);
    for (uint64_t id = 0; acre_ledger_next_reservation(desk->ledger, id, &reservation);) {
        id = reservation.id;
        bool live = reservation.state == ACRE_RESERVATION_PENDING ||
                    reservation.state == ACRE_RESERVATION_ACTIVE;
        if (live) {
            acre_map_put(state_of, id, (uint32_t)reservation.state);
        }
    }
    if (state_of->count > 0 && acre_ledger_tick(desk->ledger, now_ms) > 0) {
        for (uint64_t id = 0; acre_ledger_next_reservation(desk->ledger, id, &reservation);) {
            id = reservation.id;
            uint32_t before = acre_map_get(state_of, id);
            if (before != ACRE_MAP_NONE && before != (uint32_t)reservation.state) {
                desk_put_reservation(desk, id);
            }
        }
        desk->touched = true;
    }
    desk_note_reservations(desk, now_ms);
}

void desk_note_reservations(struct acre_desk *desk, uint64_t now_ms) {
    struct acre_reservation reservation;
    uint64_t next_ms = UINT64_MAX;
    for (uint64_t id = 0; acre_ledger_next_reservation(desk->ledger, id, &reservation);) {
        id = reservation.id;
        if (reservation.state == ACRE_RESERVATION_PENDING) {
            /* One that could not start looks again whenever something happens. */
            uint64_t at_ms = reservation.start_ms > now_ms ? reservation.start_ms : now_ms;
            next_ms = ACRE_MIN(next_ms, at_ms);
        } else if (reservation.state == ACRE_RESERVATION_ACTIVE) {
            next_ms = ACRE_MIN(next_ms, reservation.end_ms);
        }
    }
    desk->reservations_ms = next_ms;
}

static void wake(void *context) {
    struct acre_desk *desk = context;
    desk->timer = NULL; /* it is gone when this returns */
    desk->timer_at_ms = UINT64_MAX;
    desk->touched = true; /* the turn that ends now does the work */
}

void desk_arm(struct acre_desk *desk) {
    uint64_t now_ms = acre_desk_now(desk);
    uint64_t at_ms = acre_sched_next_ms(desk->sched);
    if (desk->reservations_ms > now_ms) {
        at_ms = ACRE_MIN(at_ms, desk->reservations_ms);
    }
    if (at_ms == desk->timer_at_ms) {
        return;
    }
    acre_timer_cancel(desk->timer);
    desk->timer = NULL;
    desk->timer_at_ms = at_ms;
    if (at_ms != UINT64_MAX) {
        uint64_t delay_ms = at_ms > now_ms ? at_ms - now_ms : 1; /* never at once: no busy loop */
        desk->timer = acre_loop_timer(desk->options.loop, delay_ms, 0, wake, desk);
    }
}

void desk_turn(void *context) {
    struct acre_desk *desk = context;
    if (desk->state != DESK_OPEN) {
        drop_turn(desk);
        return;
    }
    if (desk->touched) {
        desk->touched = false;
        desk->capacity.is_old = true;
        uint64_t now_ms = acre_desk_now(desk);
        acre_desk_set_actor(desk, NULL, NULL); /* what comes now is the scheduler's */
        tick_reservations(desk, now_ms);
        struct acre_clock clock = acre_clock_real();
        uint64_t began_ns = acre_clock_monotonic_ns(&clock);
        acre_sched_pass(desk->sched, now_ms, 0);
        uint64_t took_us = (acre_clock_monotonic_ns(&clock) - began_ns) / 1000;
        desk->timings.turns++;
        desk->timings.pass_last_us = took_us;
        desk->timings.pass_max_us = ACRE_MAX(desk->timings.pass_max_us, took_us);
        desk->touched = false; /* by the pass's own events */
        desk_arm(desk);
    }
    desk_commit(desk, false);
}
