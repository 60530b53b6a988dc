/* desk_kit.h - a desk with a store in memory and an engine that only pretends, on a real loop.
 *
 * Two nodes of two GPUs. Failures end the test. One thread. */
#ifndef ACRE_TEST_DESK_KIT_H
#define ACRE_TEST_DESK_KIT_H

#include "desk/desk.h"

#include "engine/fake.h"

enum { KIT_EVENTS_MAX = 4096, KIT_WALL_MS = 1700000000, KIT_NODES = 2, KIT_DEVICES = 2 };

struct desk_kit {
    const char *url; /* of the store; NULL: "memory:" */
    bool on_disk;    /* a SQLite file of its own instead */
    char folder[64], file_url[96];
    uint64_t run_ms;       /* of each run, in the loop's time */
    struct fake_plan plan; /* what else becomes of each run */
    bool slow_probe;       /* between tries after a failed commit: the default */
    bool remembers_nodes;  /* its engine, over restarts */
    bool two_engines;      /* the second node is that of another engine, "other" */
    const char *logs_directory;
    bool real;      /* the devices pretend to be real ones */
    uint32_t milli; /* of each device that jobs ask for; 0: all of it */
    uint64_t mib;
    bool limited;    /* its jobs are those of a user who is held to the limits of the policy */
    int64_t pids[4]; /* what the engine says are the processes of `pid_job` */
    uint64_t pid_job;
    void (*alter)(struct acre_engine_driver *driver); /* before it is opened */
    void (*started)(struct desk_kit *kit, const struct acre_run_spec *spec); /* by an engine */
    /* Whoever watches runs, as in struct acre_desk_sink. */
    void *watcher;
    void (*begin)(void *context, struct acre_run run, const struct acre_run_device *devices,
                  uint32_t count);
    void (*end)(void *context, struct acre_run run, struct acre_job_exit *exit);

    struct acre_engine_driver driver, second; /* the fake one, with pids */
    struct acre_clock clock;
    struct acre_loop *loop;
    struct acre_engine_node nodes[KIT_NODES]; /* that the engine has when it is opened */
    struct acre_engine_device devices[KIT_NODES][KIT_DEVICES];
    uint32_t node_count;
    char ids[KIT_NODES][KIT_DEVICES][32];
    struct acre_desk *desk;
    struct fake_world *world, *second_world;       /* second: NULL without two engines */
    struct acre_desk_event events[KIT_EVENTS_MAX]; /* told after their commit */
    uint32_t event_count;
    uint32_t troubles, recoveries;
    char trouble[200]; /* the last one */
};

void desk_kit_prepare(struct desk_kit *kit); /* loop, nodes, world; start does it too */
void desk_kit_start(struct desk_kit *kit);
/* Close desk and engine; runs go on in the world. */
void desk_kit_stop(struct desk_kit *kit);
void desk_kit_finish(struct desk_kit *kit);

/* Submit `count` jobs that ask for `gpus`; returns what the desk answered. */
int desk_kit_submit(struct desk_kit *kit, uint32_t gpus, uint32_t count, uint64_t *ret_id,
                    struct acre_error *err);
/* Run the loop until the function says true, for ten seconds at most. */
void desk_kit_until(struct desk_kit *kit, bool (*is_done)(struct desk_kit *kit));
void desk_kit_turns(struct desk_kit *kit, uint32_t ms); /* for so long */
uint32_t desk_kit_told(const struct desk_kit *kit, enum acre_sched_event_kind kind, uint64_t job);
/* The job's state as the store has it. */
const char *desk_kit_stored(struct desk_kit *kit, uint64_t job);

#endif
