/* local_state.h - what the files of the local engine share: its runs and its spawner.
 *
 * Included by local*.c only. Loop thread only. */
#ifndef ACRE_ENGINE_LOCAL_STATE_H
#define ACRE_ENGINE_LOCAL_STATE_H

#include "engine/local.h"
#include "engine/log_room.h"
#include "engine/login.h"
#include "engine/mps.h"
#include "engine/runs.h"
#include "engine/shim_wire.h"
#include "engine/visible.h"

enum { ACRE_LOCAL_LOGINS = 64, ACRE_LOCAL_WINDOW = 64 };

enum local_stage {
    ACRE_LOCAL_WAITING, /* for an MPS daemon */
    ACRE_LOCAL_QUEUED,  /* for the spawner */
    ACRE_LOCAL_SENT,    /* to the spawner */
    ACRE_LOCAL_RUNNING, /* its supervisor lives, as far as we know */
    ACRE_LOCAL_ENDED,
};

struct local_run {
    struct acre_run run; /* first: runs.h */
    enum local_stage stage;
    int64_t shim_pid, pid; /* 0: not known yet */
    uint64_t started_ms;
    bool wanted;                     /* started here or adopted; others are ended by reap */
    bool told;                       /* `started` */
    bool orphan;                     /* not a child of our spawner */
    uint8_t signals;                 /* asked for before there was a supervisor: bits */
    struct acre_run_result *result;  /* ENDED */
    struct acre_buf message;         /* until the spawner has counted it */
    char *mps_devices;               /* one a line; NULL: none */
    uint32_t mps_waiting;            /* answers still to come */
    char *cu_list;                   /* "device ranges" a line; NULL: none */
    uint64_t begun_ms;               /* monotonic; as its supervisor said */
    uint64_t limit_ms, grace_ms;     /* likewise */
    bool plan_known;                 /* it did say them */
    struct acre_timer *late;         /* local_late.c: when its end must have been told */
    uint64_t ordered_ms, limited_ms; /* that, monotonic: told to, as its plan says; 0: no such */
    bool told_to_end;                /* by a signal */
    bool overdue;                    /* it was not: its processes were killed from here */
    bool was_empty;                  /* when that was last done, there were none */
    bool supervisor_gone;            /* without a word; processes or its lock may be left */
    bool left_behind;                /* there were processes */
    uint8_t late_tries;
    struct acre_timer *again; /* local_late.c: it has a lock and has not said a word */
    uint8_t again_tries;
    struct acre_watch *watch; /* of a supervisor that is not the spawner's child */
    int watch_fd;
    struct local *owner;
    struct local_run *queue_next; /* QUEUED */
};

struct local_queue {
    struct local_run *first, **last;
};

/* A fact that is told in the next turn of the loop. */
struct local_fact {
    struct local_fact *next;
    struct acre_run run;
    bool started, exited;
};

struct local {
    struct acre_loop *loop;
    struct acre_engine_sink sink;
    char *state_path, *program, *run_as;
    bool allow_root, is_root;
    uid_t min_uid;
    uint64_t log_max_bytes;
    struct acre_engine_limits limits;
    struct log_room *log_room;
    uint64_t margin_ms; /* 0: the default */
    uint32_t pids_max;
    const struct visible_roots *roots;
    struct cgroup cgroup;
    struct acre_buf filter;
    char filter_lack[160];       /* "" or why there is no filter */
    int lock, state, runs, logs; /* descriptors */

    struct runs known; /* struct local_run */
    struct local_queue queued;
    struct acre_run sent[ACRE_LOCAL_WINDOW]; /* a ring: not yet counted by the spawner */
    uint32_t sent_first, in_flight;

    int spawner; /* socket; -1: none */
    pid_t spawner_pid;
    uint32_t spawner_failures; /* since it last said anything */
    struct acre_watch *spawner_watch;
    int facts; /* the FIFO */
    struct acre_watch *facts_watch;

    struct local_fact *to_tell, **to_tell_last;
    struct acre_timer *telling;
    struct {
        char user[64];
        uint64_t until_ms;
        struct login login;
    } logins[ACRE_LOCAL_LOGINS];
    size_t login_count;
    struct mps *mps; /* made when first needed */
    char *mps_directory, *mps_program;
};

/* local_runs.c: the table of runs, and their files. */
static inline struct local_run *acre_local_at(const struct local *self, uint32_t at) {
    return (struct local_run *)self->known.all[at];
}
struct local_run *local_find(const struct local *self, struct acre_run run);
struct local_run *local_add(struct local *self, struct acre_run run);
void local_remove(struct local *self, struct local_run *run); /* and its record */
void local_free_runs(struct local *self);

enum local_found {
    ACRE_LOCAL_ABSENT, /* no record */
    ACRE_LOCAL_LIVE,   /* its supervisor lives; the fact is STARTED or NONE */
    ACRE_LOCAL_OVER,   /* the fact is EXITED */
    ACRE_LOCAL_DEAD,   /* a record, no supervisor, no end */
};
enum local_found local_look(const struct local *self, struct acre_run run, struct fact *ret_fact);

/* local_spawn.c: the spawner and what is sent to it. */
int local_open_spawner(struct local *self, struct acre_error *err);
void local_close_spawner(struct local *self);
void local_enqueue(struct local *self, struct local_run *run);

/* local_prepare.c: from a spec to the message for the spawner. */
int local_prepare(struct local *self, const struct acre_run_spec *spec, struct acre_buf *message,
                  uid_t *ret_user, struct acre_error *err);

/* local_facts.c: what is told, and finding out what is true. */
void local_read_facts(struct local *self);
void local_learn(struct local_run *run, const struct fact *fact);
/* What the engine knows of the run, to the sink, in the next turn. */
void local_tell(struct local *self, struct acre_run run, bool started, bool exited);
void local_not_started(struct local *self, struct local_run *run, const char *text);
/* Look at its record: ended, lost, or (then it is watched) alive. */
void local_check(struct local *self, struct local_run *run);
bool local_send_signal(struct local *self, struct local_run *run, int value);
bool local_is_live(const struct local *self, const struct local_run *run);
void local_kill_supervisor(struct local *self, struct local_run *run);

#endif
