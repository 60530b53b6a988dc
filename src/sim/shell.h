/* shell.h - the imperative shell around the core, reduced to what matters for faults: it collects
 * events, commits them, and only then acts on them; a restart rebuilds the core from what was
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
struct shell_row {
    bool there;
    struct acre_job job;
    struct acre_dependency dependencies[ACRE_JOB_DEPENDENCIES_MAX];
    struct acre_part parts[ACRE_WORLD_PARTS_MAX];
    uint32_t part_count;
};

struct shell {
    struct acre_ledger *ledger;
    struct acre_sched *sched;
    struct acre_policy policy;         /* on disk */
    struct shell_row *rows;            /* on disk, by id */
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

void shell_init(struct shell *shell);
void shell_finish(struct shell *shell);

/* What the process knew is gone; it starts again from the rows and asks the world. */
int shell_restart(struct shell *shell, struct fault_world *world, uint64_t now_ms,
                  struct acre_error *err);
/* All changes are on disk; their actions are due. */
void shell_commit(struct shell *shell);
bool shell_is_dirty(const struct shell *shell);
/* The next action due; false when there is none. */
bool shell_next_action(struct shell *shell, struct acre_sched_action *ret_action);
void shell_set_node(struct shell *shell, uint32_t node, bool down);

/* sched and ledger, and that every live job on disk is in the queue. ACRE_EINTERNAL. */
int shell_check(const struct shell *shell, struct acre_error *err);

#endif
