/* shell.h - the imperative shell around the core, reduced to what matters for faults: events are
 * gathered, committed, and only then acted upon; a restart rebuilds the core from what was
 * committed. Pure. */
#ifndef ACRE_SIM_SHELL_H
#define ACRE_SIM_SHELL_H

#include "sched/sched.h"
#include "sim/world.h"

enum {
    ACRE_SHELL_NODES = 4,
    ACRE_SHELL_GPUS = 4,       /* a node */
    ACRE_SHELL_JOBS_MAX = 512, /* a simulation */
};

/* A job as it is on disk. */
struct acre_shell_row {
    bool there;
    struct acre_job job;
    struct acre_dependency dependencies[ACRE_JOB_DEPENDENCIES_MAX];
    struct acre_part parts[ACRE_WORLD_PARTS_MAX];
    uint32_t part_count;
};

struct acre_shell {
    struct acre_ledger *ledger;
    struct acre_sched *sched;
    struct acre_policy policy;         /* on disk */
    struct acre_shell_row *rows;       /* on disk, by id */
    bool *dirty;                       /* by id: changed since the last commit */
    bool *node_down;                   /* by node */
    struct acre_sched_action *waiting; /* for the commit */
    uint32_t waiting_count;
    struct acre_sched_action *due; /* committed, to be carried out */
    uint32_t due_count;
    uint32_t action_capacity;
    uint64_t last_job;
    uint64_t fingerprint;
    uint64_t preemptions;
};

void acre_shell_init(struct acre_shell *shell);
void acre_shell_finish(struct acre_shell *shell);

/* What the process knew is gone; it starts again from the rows and asks the world. */
int acre_shell_restart(struct acre_shell *shell, struct acre_world *world, uint64_t now_ms,
                       struct acre_error *err);
/* All changes are on disk; their actions are due. */
void acre_shell_commit(struct acre_shell *shell);
bool acre_shell_is_dirty(const struct acre_shell *shell);
/* The next action due; false when there is none. */
bool acre_shell_next_action(struct acre_shell *shell, struct acre_sched_action *ret_action);
void acre_shell_set_node(struct acre_shell *shell, uint32_t node, bool down);

/* sched and ledger, and that every live job on disk is in the queue. ACRE_EINTERNAL. */
int acre_shell_check(const struct acre_shell *shell, struct acre_error *err);

#endif
