/* commands.h - everything that people, handlers and watchers can change, one call each.
 *
 * A command does the whole thing: ledger, scheduler, the rows of the store, the audit trail (by the
 * actor of acre_desk_set_actor), and that the scheduler looks again. What it changed is durable
 * with the turn (acre_desk_wait). A command that fails has changed nothing. Loop thread only. */
#ifndef ACRE_DESK_COMMANDS_H
#define ACRE_DESK_COMMANDS_H

#include "desk/desk.h"
#include "desk/record.h"
#include "ledger/reservation.h"

/* --- jobs ----------------------------------------------------------------------------------- */

/* What is submitted: `count` jobs that differ by array_index alone (first, first + 1 ...). */
struct acre_submission {
    const char *user, *project; /* who is charged */
    const char *name;           /* NULL or "": none */
    struct acre_job_spec spec;  /* its user, project, name, id and bytes are given by the desk; an
                                   array's `array` is not 0 */
    struct acre_recipe recipe;  /* borrowed */
    struct acre_dependency dependencies[ACRE_JOB_DEPENDENCIES_MAX]; /* room for the spec's */
    uint32_t count;
    bool limited; /* its user is held to the limits of the policy */
};

/* All or none. `text` is their spec (acre_record_write_spec), kept once for all of them. */
int acre_desk_submit(struct acre_desk *desk, struct acre_submission *submission,
                     struct acre_str text, uint64_t *ret_first_id, struct acre_error *err);
/* The same for one external job, which takes its devices now or not at all. */
int acre_desk_allocate(struct acre_desk *desk, struct acre_submission *submission,
                       struct acre_str text, struct acre_job *ret_job, struct acre_error *err);
/* Could it be placed now? Fills nothing; ACRE_ENOFIT says why not. */
int acre_desk_may_place(struct acre_desk *desk, const struct acre_request *request,
                        struct acre_error *err);

/* As acre_sched_cancel and so on. */
int acre_desk_cancel(struct acre_desk *desk, uint64_t job, struct acre_error *err);
int acre_desk_hold(struct acre_desk *desk, uint64_t job, struct acre_error *err);
int acre_desk_release(struct acre_desk *desk, uint64_t job, struct acre_error *err);
int acre_desk_set_priority(struct acre_desk *desk, uint64_t job, enum acre_job_priority priority,
                           struct acre_error *err);
/* An external job has ended. */
void acre_desk_end_external(struct acre_desk *desk, uint64_t job, int code);

/* --- rules ---------------------------------------------------------------------------------- */

/* `what` changed ("policy", "quotas"), for the audit trail. */
void acre_desk_set_policy(struct acre_desk *desk, const struct acre_policy *policy,
                          const char *what);
void acre_desk_pause(struct acre_desk *desk, bool paused);

/* --- devices -------------------------------------------------------------------------------- */

/* Nothing new is placed there; `reason` NULL: it is again. */
void acre_desk_drain_device(struct acre_desk *desk, uint32_t device, const char *reason);
void acre_desk_drain_node(struct acre_desk *desk, uint32_t node, const char *reason);

/* Reserve for `user`. `spec->devices` NULL: the first `device_count` that are free in that window.
 * `now_ms` is the one that the spec's times were made with. */
int acre_desk_reserve(struct acre_desk *desk, const char *user,
                      const struct acre_reservation_spec *spec, uint64_t now_ms, uint64_t *ret_id,
                      struct acre_error *err);
int acre_desk_unreserve(struct acre_desk *desk, uint64_t id, struct acre_error *err);

/* --- what is measured ----------------------------------------------------------------------- */

/* Current readings of a device. */
void acre_desk_set_live(struct acre_desk *desk, uint32_t device,
                        const struct acre_device_live *live);
/* Memory that processes which are not ours use on a device. */
void acre_desk_set_foreign(struct acre_desk *desk, uint32_t device, uint64_t mib);
/* Mean use of its GPUs by a run since the last time. */
void acre_desk_sampled(struct acre_desk *desk, struct acre_run run, uint32_t use_milli);
/* Warn or end a run that misbehaves, as a watchdog does; the job's state follows from its end. */
void acre_desk_signal(struct acre_desk *desk, struct acre_run run, enum acre_run_signal signal);

#endif
