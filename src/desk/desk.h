/* desk.h - where commands become events, events a commit, and commits answers and actions.
 *
 * The desk owns ledger, scheduler and store. A command is applied to the core at once; what it
 * changed goes into the batch of the loop's turn. At the end of the turn the scheduler decides, the
 * rows that changed are added, and the batch is committed. An answer leaves when everything it saw
 * is on disk; then events are reported, and only then engines are asked to act. So no one ever
 * hears of a change that a crash could undo, and a crash between commit and action repeats the
 * action.
 *
 * When a commit fails (disk full, I/O), everything that waits is answered with the reason, the core
 * is thrown away and read again, and the desk refuses changes until a probe succeeds.
 *
 * Loop thread only. */
#ifndef ACRE_DESK_DESK_H
#define ACRE_DESK_DESK_H

#include "core/clock.h"
#include "desk/inventory.h"
#include "engine/engine.h"
#include "sched/sched.h"
#include "sched/why.h"
#include "store/store.h"

struct acre_desk;

/* What happened, and how the job stood then. */
struct acre_desk_event {
    struct acre_sched_event event;
    enum acre_job_state state;
    uint32_t attempt;
    uint32_t user, project; /* names of the ledger */
};

/* What the desk tells after the commit. */
struct acre_desk_sink {
    void (*event)(void *context, const struct acre_desk_event *event);
    /* A run is about to start (or is adopted), and has ended: for whoever watches its devices. The
     * end may be filled in with what was measured. NULL: nobody watches. */
    void (*begin)(void *context, struct acre_run run, const struct acre_run_device *devices,
                  uint32_t count);
    void (*end)(void *context, struct acre_run run, struct acre_job_exit *exit);
    /* Something people should know; `err` NULL: it works again. */
    void (*trouble)(void *context, const char *what, const struct acre_error *err);
    void *context;
};

struct acre_desk_options {
    struct acre_loop *loop;
    const struct acre_clock *clock;
    const char *store_url;
    const struct acre_policy *policy; /* until one is set through the API; NULL: default */
    struct acre_desk_sink sink;
    const char *logs_directory; /* for output that engines deliver; NULL: it is not kept */
    uint64_t probe_ms;          /* between tries after a failed commit; 0: 1,000 */
};

/* Opens the store (its errors). */
int acre_desk_create(const struct acre_desk_options *options, struct acre_desk **ret_desk,
                     struct acre_error *err);
/* What is decided is committed; answers that wait are given up; engines are closed, jobs run on.
 * NULL is fine. */
void acre_desk_destroy(struct acre_desk *desk);

/* Open an engine: it reports the nodes it has. Before the load; its errors. */
int acre_desk_add_engine(struct acre_desk *desk, const struct acre_engine_driver *driver,
                         const struct acre_engine_options *options, struct acre_error *err);
/* What the engines can contain and what they cannot, one line each. */
void acre_desk_describe_engines(struct acre_desk *desk, struct acre_buf *out);
/* Read the store: everything is in its place, and nothing runs yet. */
int acre_desk_load(struct acre_desk *desk, struct acre_error *err);
/* Go: adopt what runs, reap what nobody knows, schedule. From now on the desk acts at the end of
 * every turn of the loop. */
void acre_desk_start(struct acre_desk *desk);

/* --- reading: what is changed is changed through commands.h ----------------------------------- */

const struct acre_sched *acre_desk_sched(const struct acre_desk *desk);
const struct acre_ledger *acre_desk_ledger(const struct acre_desk *desk);
const struct acre_names *acre_desk_names(const struct acre_desk *desk); /* the ledger's */
struct acre_store *acre_desk_store(struct acre_desk *desk);
const struct acre_inventory *acre_desk_inventory(const struct acre_desk *desk);
const struct acre_policy *acre_desk_policy(const struct acre_desk *desk);
/* As acre_sched_why and acre_sched_when, now. */
int acre_desk_why(struct acre_desk *desk, uint64_t job, struct acre_why *ret_why,
                  struct acre_error *err);
int acre_desk_when(struct acre_desk *desk, uint64_t job, struct acre_when *ret_when,
                   struct acre_error *err);
int acre_desk_log_path(struct acre_desk *desk, struct acre_run run, int stream, char *path,
                       size_t size, struct acre_error *err);
/* Processes of a run; of job 0: the engine's own servers on GPUs. Returns how many there are. */
uint32_t acre_desk_pids(struct acre_desk *desk, struct acre_run run, int64_t *pids, uint32_t max);
/* Wall time that never goes back. */
uint64_t acre_desk_now(struct acre_desk *desk);
bool acre_desk_is_paused(const struct acre_desk *desk);
/* Why a node takes nothing new (drained, or lost); "" for none. */
const char *acre_desk_node_reason(const struct acre_desk *desk, uint32_t node);
/* Is this a live job that runs elsewhere? Which one of this user's has that name? */
bool acre_desk_is_external(const struct acre_desk *desk, uint64_t job);
bool acre_desk_find_external(const struct acre_desk *desk, const char *user, const char *name,
                             uint64_t *ret_job);

/* --- recording ------------------------------------------------------------------------------ */

/* Who is asking: stands in the audit trail next to what the following calls change, until this is
 * called again or the turn ends. NULL: the scheduler itself. Borrowed. */
void acre_desk_set_actor(struct acre_desk *desk, const char *actor, const char *origin);

/* 0; ACRE_ENOMEM (disk full) or ACRE_EUNAVAILABLE while nothing can be written: the reason. */
int acre_desk_writable(const struct acre_desk *desk, struct acre_error *err);
/* ACRE_EUNAVAILABLE while not even reading works. */
int acre_desk_readable(const struct acre_desk *desk, struct acre_error *err);

/* The batch of this turn, for rows of the caller's own. Whoever waits for the answer sees it. */
struct acre_batch *acre_desk_batch(struct acre_desk *desk);
/* One row of the audit trail, by the actor. It goes with the turn, but no answer waits for it
 * alone. */
void acre_desk_audit(struct acre_desk *desk, const char *action, const char *target,
                     const char *result, const char *detail);

/* How to start a job, from memory or the store. ACRE_ENOTFOUND: not there (yet). The text is good
 * until the next call. */
int acre_desk_spec(struct acre_desk *desk, uint64_t job, struct acre_str *ret_text,
                   struct acre_error *err);
/* The same, parsed; members of an array one after the other cost one parse. Borrowed, likewise. */
int acre_desk_parsed_spec(struct acre_desk *desk, uint64_t job, json_t **ret_spec,
                          struct acre_error *err);
size_t acre_desk_parsed_bytes(const struct acre_desk *desk);                 /* of the last one */
const char *acre_desk_exit_text(const struct acre_desk *desk, uint64_t job); /* "" for none */

/* Something that waits until everything seen so far is durable: the caller's, until it is called.
 */
struct acre_desk_waiter {
    /* NULL: it is durable. Otherwise it could not be recorded, and why. */
    void (*done)(struct acre_desk_waiter *waiter, const struct acre_error *err);
    struct acre_desk_waiter *next; /* these two are the desk's */
    uint64_t sequence;
};
/* Is it durable already? Then nothing need wait. */
bool acre_desk_is_durable(const struct acre_desk *desk);
void acre_desk_wait(struct acre_desk *desk, struct acre_desk_waiter *waiter);

struct acre_desk_timings {
    uint64_t turns, commits, failures;
    uint64_t pass_last_us, pass_max_us;
    uint64_t commit_last_us, commit_max_us;
    uint32_t waiting; /* answers */
};
void acre_desk_timings(const struct acre_desk *desk, struct acre_desk_timings *ret_timings);

#endif
