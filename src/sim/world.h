/* world.h - what is outside the core in a fault simulation: runs on nodes, and messages about them
 * in flight. Pure. This keeps the promises of the real engine: a token starts a run at most once,
 * and its messages may arrive late, twice or never until it is asked. */
#ifndef ACRE_SIM_WORLD_H
#define ACRE_SIM_WORLD_H

#include "core/rand.h"
#include "sched/job.h"

enum { ACRE_WORLD_PARTS_MAX = 64 };

struct world_run {
    uint64_t job;
    uint32_t attempt;
    bool alive;
    uint64_t end_ms;
    struct acre_job_exit exit; /* as it will be, or was */
    struct acre_part parts[ACRE_WORLD_PARTS_MAX];
    uint32_t part_count;
};

struct world_message {
    bool exited; /* else started */
    uint64_t job;
    uint32_t attempt;
    struct acre_job_exit exit;
};

struct fault_world {
    struct world_run *runs;
    uint32_t run_count, run_capacity;
    struct world_message *messages;
    uint32_t message_count, message_capacity;
};

void world_finish(struct fault_world *world);

struct world_run *world_find(struct fault_world *world, uint64_t job, uint32_t attempt);
/* Start it unless it was; its `started` message goes out either way. */
void world_start(struct fault_world *world, const struct world_run *run);
/* End what is due; each tells. */
void world_move(struct fault_world *world, uint64_t now_ms);
void world_kill(struct fault_world *world, struct world_run *run, int signal);
/* Everything on the node is gone without a word of its own. */
void world_lose_node(struct fault_world *world, uint32_t node);
/* Tell again how a run stands; one that was never started, or is gone without a record, is lost. */
void world_ask(struct fault_world *world, uint64_t job, uint32_t attempt);
/* Take a message out, any of them. */
bool world_take(struct fault_world *world, struct acre_rand *rand,
                struct world_message *ret_message);
void world_tell(struct fault_world *world, const struct world_message *message);

/* ACRE_EINTERNAL: two runs of one job are alive, or a device is used for more than it is. */
int world_check(const struct fault_world *world, uint32_t devices, struct acre_error *err);

#endif
