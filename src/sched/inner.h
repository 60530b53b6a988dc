/* inner.h - what the files of the scheduler ask of each other. Private to src/sched; core thread
 * only. Indexes (of jobs, lines ...) stay good where pointers to records do not: adding a record
 * may move all of its kind. */
#ifndef ACRE_SCHED_INNER_H
#define ACRE_SCHED_INNER_H

#include "sched/state.h"

/* records.c: new ones are zeroed, with NONE in every index. */
uint32_t job_add(struct acre_sched *sched, uint64_t id);
void job_remove(struct acre_sched *sched, uint32_t job);
uint32_t run_add(struct acre_sched *sched);
uint32_t edge_add(struct acre_sched *sched);
void edge_remove(struct acre_sched *sched, uint32_t edge);
uint32_t line_add(struct acre_sched *sched, uint32_t account, uint32_t class);
uint32_t line_find(const struct acre_sched *sched, uint32_t account, uint32_t class);
void line_remove(struct acre_sched *sched, uint32_t line);
/* The class of a request, made when new; one more job is of it. */
uint32_t class_take(struct acre_sched *sched, const struct acre_request *request);
void class_give(struct acre_sched *sched, uint32_t class);
uint32_t class_find(const struct acre_sched *sched, const struct acre_request *request);
/* The array that a job belongs to; one more member lives. */
uint32_t array_take(struct acre_sched *sched, const struct acre_job_spec *spec);
void array_give(struct acre_sched *sched, uint32_t array);
struct owner *owner_at(struct acre_sched *sched, uint32_t account);
struct account_load request_load(const struct acre_sched *sched,
                                 const struct acre_request *request);

/* transition.c */
enum transition {
    MOVE_PLACE,
    MOVE_DISPATCH,
    MOVE_START,
    MOVE_PREEMPT,
    MOVE_REQUEUE,
    MOVE_COMPLETE,
    MOVE_FAIL,
    MOVE_CANCEL,
    MOVE_COUNT,
};
/* False, and nothing changed: not from this state. */
bool job_move(struct acre_sched *sched, struct job *job, enum transition event);
void tell(struct acre_sched *sched, enum acre_sched_event_kind kind, uint64_t now_ms, uint64_t job,
          uint64_t other);
void act(struct acre_sched *sched, enum acre_sched_action_kind kind, const struct job *job);

/* order.c */
extern const struct tree_kind order_by_key;   /* jobs: in_order links, key then id */
extern const struct tree_kind order_by_id;    /* jobs: in_order links */
extern const struct tree_kind line_by_key;    /* jobs: in_line links, key then id; duration */
extern const struct tree_kind lines_by_first; /* lines: in_class links, as filed; least duration */
bool line_is_before(const struct acre_sched *sched, uint32_t a, uint32_t b);
bool order_before(const struct acre_sched *sched, uint32_t a, uint32_t b); /* jobs in order */
int64_t order_key(const struct acre_sched *sched, const struct job *job);
struct tree *order_of(struct acre_sched *sched, const struct job *job);
/* The ranking of accounts is always in order: one comes in, holds more or less, time passes. */
void rank_enter(struct acre_sched *sched, uint32_t account, uint64_t now_ms);
void rank_change(struct acre_sched *sched, uint32_t account, int64_t milli);
void order_rank(struct acre_sched *sched, uint64_t now_ms);

/* queue.c */
/* Put a queued job where it must stand now, after job.stand of another place was left. */
void queue_enter(struct acre_sched *sched, uint32_t job, uint64_t now_ms);
void queue_leave(struct acre_sched *sched, uint32_t job);
void queue_again(struct acre_sched *sched, uint32_t job, uint64_t now_ms); /* leave and enter */
/* Into the order of the policy. */
void order_enter(struct acre_sched *sched, uint32_t job, uint64_t now_ms);
void queue_promise(struct acre_sched *sched, uint32_t job); /* STAND_LINE to STAND_PROMISED */
/* The class's line with the first job; NONE: there is none. */
uint32_t class_first(struct acre_sched *sched, uint32_t class);
/* The first as filed with a job that takes at most so long; NONE: there is none. */
uint32_t class_first_within(struct acre_sched *sched, uint32_t class, uint32_t most_s);
void line_park(struct acre_sched *sched, uint32_t line, uint32_t blocker);
void lines_unpark(struct acre_sched *sched, uint32_t blocker);
void lines_unpark_owner(struct acre_sched *sched, const struct job *job); /* user and project */
uint32_t blocker_of(struct acre_sched *sched, bool project, uint32_t name);
void array_leave(struct acre_sched *sched, uint32_t array); /* one less is open */
void arrays_fill(struct acre_sched *sched, uint64_t now_ms);
void class_open(struct acre_sched *sched, uint32_t class);
uint32_t plan_duration(const struct acre_sched *sched, const struct job *job);
uint64_t duration_ms(const struct job *job);

/* timer.c */
void timer_set(struct acre_sched *sched, uint64_t at_ms, uint64_t job);
void timers_run(struct acre_sched *sched, uint64_t now_ms);

enum { UNWIND_MS = 10000 }; /* from SIGTERM to exit, for plans */
/* take.c: a job takes and gives back its devices */
void parts_take(struct acre_sched *sched, uint32_t job, uint64_t allocation,
                const struct acre_part *parts, uint32_t count, uint64_t since_ms, uint64_t now_ms);
void parts_give(struct acre_sched *sched, uint32_t job, bool failed, uint64_t now_ms);
void job_expect(struct acre_sched *sched, uint32_t job, uint64_t end_ms); /* a new expected end */
void note_freed(struct acre_sched *sched, const struct acre_part *parts, uint32_t count);

/* depend.c */
int depend_check(const struct acre_sched *sched, const struct acre_job_spec *spec,
                 struct acre_error *err);
void depend_add(struct acre_sched *sched, uint32_t job, const struct acre_job_spec *spec);
void depend_drop(struct acre_sched *sched, uint32_t job); /* it no longer waits for anybody */
void depend_moved(struct acre_sched *sched, uint32_t job, uint64_t now_ms); /* started, ended */
/* Cancel those whose dependency failed, and theirs. */
void depend_settle(struct acre_sched *sched, uint64_t now_ms);

/* submit.c: every number of a spec within its range; the record of a job, standing nowhere yet */
int spec_check(const struct acre_sched *sched, const struct acre_job_spec *spec,
               uint64_t begin_max_ms, struct acre_error *err);
uint32_t job_make(struct acre_sched *sched, const struct acre_job_spec *spec);

/* exit.c */
void job_end(struct acre_sched *sched, uint32_t job, enum transition event, uint64_t other,
             uint64_t now_ms);
void job_requeue(struct acre_sched *sched, uint32_t job, uint64_t not_before_ms, uint64_t now_ms);

/* pass.c */
bool job_place(struct acre_sched *sched, uint32_t job, const struct acre_part *parts,
               uint32_t count, uint64_t now_ms);
struct acre_request job_request(const struct acre_sched *sched, const struct job *job,
                                uint64_t now_ms);
struct acre_part *parts_room(struct acre_sched *sched, uint32_t count);

/* backfill.c: see there */
void shadow_look(struct acre_sched *sched, uint32_t head, uint64_t now_ms);
void shadow_drop(struct acre_sched *sched);

/* preempt.c */
bool preempt_is_due(const struct acre_sched *sched, uint64_t now_ms);
void preempt_later(struct acre_sched *sched); /* a pass will come when it is */
void preempt_for(struct acre_sched *sched, uint32_t head, uint64_t now_ms);
/* Tell a run to stop and go back to the queue, for `other` (0: none). */
void preempt_tell(struct acre_sched *sched, uint32_t job, uint64_t other, bool reclaim,
                  uint64_t now_ms);
void promise_make(struct acre_sched *sched, uint32_t job, struct acre_outlook *outlook,
                  uint32_t waiting_for);
/* Is the quota it would take promised to others of its owner? May he hold these parts, too? */
bool quota_is_promised(const struct acre_sched *sched, const struct job *job,
                       struct account_load load, uint64_t now_ms);
bool may_hold(const struct acre_sched *sched, const struct job *job, const struct acre_part *parts,
              uint32_t count, uint64_t now_ms);
struct promise *promise_of(const struct acre_sched *sched, uint64_t job); /* NULL: none */
void promise_drop(struct acre_sched *sched, uint64_t job);
uint32_t promises_keep(struct acre_sched *sched, uint64_t now_ms); /* returns how many placed */
void promises_veil(struct acre_sched *sched);
void promises_unveil(struct acre_sched *sched); /* one made since was never veiled: fine */

/* idle.c */
void idle_reclaim(struct acre_sched *sched, uint64_t now_ms);

void restore_repeat(struct acre_sched *sched); /* what a crash may have left undone */

#endif
