/* world.h - what is outside of the core in a fault simulation: runs on nodes, and messages about
 * them under way. Pure. The engine's promises hold here as in the real one: a run is started at
 * most once by its token, and what it tells may come late, twice or never until it is asked. */
#ifndef ACRE_SIM_WORLD_H
#define ACRE_SIM_WORLD_H

#include "core/rand.h"
#include "sched/job.h"

enum { ACRE_WORLD_PARTS_MAX = 64 };

struct acre_world_run {
    uint64_t job;
    uint32_t attempt;
    bool alive;
    uint64_t end_ms;
    struct acre_job_exit exit; /* as it will be, or was */
    struct acre_part parts[ACRE_WORLD_PARTS_MAX];
    uint32_t part_count;
};

struct acre_world_message {
    bool exited; /* else started */
    uint64_t job;
    uint32_t attempt;
    struct acre_job_exit exit;
};

struct acre_world {
    struct acre_world_run *runs;
    uint32_t run_count, run_capacity;
    struct acre_world_message *messages;
    uint32_t message_count, message_capacity;
};

void acre_world_finish(struct acre_world *world);

struct acre_world_run *acre_world_find(struct acre_world *world, uint64_t job, uint32_t attempt);
/* Start it unless it was; its `started` message goes out either way. */
void acre_world_start(struct acre_world *world, const struct acre_world_run *run);
/* End what is due; each tells. */
void acre_world_move(struct acre_world *world, uint64_t now_ms);
void acre_world_kill(struct acre_world *world, struct acre_world_run *run, int signal);
/* Everything on the node is gone without a word of its own. */
void acre_world_lose_node(struct acre_world *world, uint32_t node);
/* Tell again how a run stands; one that was never started, or is gone without a record, is lost. */
void acre_world_ask(struct acre_world *world, uint64_t job, uint32_t attempt);
/* Take a message out, any of them. */
bool acre_world_take(struct acre_world *world, struct acre_rand *rand,
                     struct acre_world_message *ret_message);
void acre_world_tell(struct acre_world *world, const struct acre_world_message *message);

/* ACRE_EINTERNAL: two runs of one job are alive, or a device is used for more than it is. */
int acre_world_check(const struct acre_world *world, uint32_t devices, struct acre_error *err);

#endif
