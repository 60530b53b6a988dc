/* state.h - what a desk is made of. Private to src/desk. */
#ifndef ACRE_DESK_STATE_H
#define ACRE_DESK_STATE_H

#include "core/map.h"
#include "desk/desk.h"
#include "desk/record.h"
#include "desk/specs.h"
#include "ledger/capacity.h"

struct desk_event {
    struct acre_desk_event told;
    const char *actor, *origin; /* in the arena of the turn */
};

struct desk_events {
    struct desk_event *items;
    uint32_t count, capacity;
};

struct desk_actions {
    struct acre_sched_action *items;
    uint32_t count, capacity;
};

/* The spec of jobs submitted in this turn: consecutive ids, one text. Until their rows are written
 * it is nowhere else: `specs` forgets what is too much for it. */
struct desk_submission {
    uint64_t first;
    uint32_t count;
    char *text;
    size_t length;
};

/* What a job held when its run ended, in this turn. */
struct desk_last_parts {
    uint64_t job;
    struct acre_str parts; /* in the arena of the turn */
};

/* What an engine said about the end of a job that is still here. */
struct desk_text {
    uint64_t job;
    char text[160];
};

/* What is known of nodes and devices beyond the ledger (capacity.c). */
struct desk_capacity {
    struct acre_capacity *table;
    bool is_old;        /* something may have changed since the nodes reported last */
    uint64_t made_ms;   /* when they did */
    uint64_t *heard_ms; /* by node: its last readings; 0: it has none that are repeated */
    uint32_t node_count;
    uint16_t *history; /* by device, in milli: a ring of the last samples */
    uint32_t device_count;
    uint32_t ticks; /* the ring's position */
    struct acre_timer *timer;
};

enum { DESK_ENGINES_MAX = 8 };

struct desk_engine {
    struct acre_desk *desk;
    const struct acre_engine_driver *driver;
    void *self;
    uint32_t index;
};

enum desk_state {
    DESK_IDLE,   /* not started */
    DESK_OPEN,   /* at work */
    DESK_BROKEN, /* a commit failed: read only, probing */
    DESK_BLIND,  /* and not even reading worked */
    DESK_CLOSED, /* the last commit is under way; nothing is acted upon */
};

struct acre_desk {
    struct acre_desk_options options;
    struct acre_desk_sink sink;
    enum desk_state state;
    struct acre_error fault; /* while broken */
    struct acre_store *store;
    struct acre_ledger *ledger;
    struct acre_sched *sched;
    struct acre_policy *policy;
    char **node_reasons; /* by node, of operators; NULL: not drained */
    struct acre_inventory *inventory;
    struct desk_capacity capacity;
    struct desk_engine engines[DESK_ENGINES_MAX];
    uint32_t engine_count;
    bool nodes_changed;       /* those that are remembered */
    uint64_t epoch, next_job; /* the epoch counts cores */
    bool paused;

    uint64_t now_ms, skew_ms; /* the clock went back by so much */
    struct acre_timer *timer, *probe;
    uint64_t timer_at_ms;     /* UINT64_MAX: there is no timer */
    uint64_t reservations_ms; /* when the next one begins or ends */

    const char *actor, *origin; /* in the arena */
    struct acre_arena *arena;   /* of this turn */
    struct acre_batch *batch;   /* of this turn; NULL: nothing to write yet */
    struct desk_events events;
    struct desk_actions actions;
    bool touched;      /* the scheduler has something to think about */
    bool dirty;        /* this turn changed something answers must wait for */
    uint64_t sequence; /* of this turn */
    uint64_t seen;     /* the last turn that changed something */
    uint64_t committed;
    uint32_t in_flight; /* commits */
    struct acre_desk_waiter *waiters, **last_waiter;
    uint32_t waiting;

    struct specs *specs;
    struct acre_buf spec_text;        /* what acre_desk_spec read last */
    json_t *parsed;                   /* the spec that was parsed last; NULL: none */
    uint64_t parsed_id, parsed_bytes; /* the job that has it, and how long it is */
    struct acre_buf detail;
    struct acre_map rows, accounts; /* sets, of this turn: job ids; project and user */
    uint64_t *external;             /* live jobs that run elsewhere */
    uint32_t external_count, external_capacity;
    struct desk_submission *submissions; /* of this turn */
    uint32_t submission_count, submission_capacity, submission_found;
    struct desk_last_parts *last_parts; /* of this turn */
    uint32_t last_count, last_capacity, last_found;
    struct desk_text *texts;
    struct acre_map text_of_job; /* places in `texts` */
    uint32_t text_count, text_capacity;
    uint64_t *holding; /* jobs that held devices when the store was read */
    uint32_t holding_count, holding_capacity;
    struct acre_desk_timings timings;
};

#endif
