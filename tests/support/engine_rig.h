/* engine_rig.h - an engine under test: opened, crashed, opened again; facts collected by run.
 *
 * Waiting is for conditions, with a deadline that fails the test. For the local engine the rig
 * has a state directory and a cgroup name of its own, both removed in the end. */
#ifndef ACRE_TEST_ENGINE_RIG_H
#define ACRE_TEST_ENGINE_RIG_H

#include "core/loop.h"
#include "engine/fake.h"
#include "engine/local.h"

enum { RIG_RUNS = 64 };

struct rig_seen {
    uint32_t started, exited; /* how often */
    bool in_order;            /* no end before the first beginning, unless it never began */
    int64_t pid;
    uint64_t started_ms;
    struct acre_run_result result;
};

struct rig {
    const struct acre_engine_driver *driver;
    struct acre_loop *loop;
    void *engine;
    const char *user;           /* whom jobs belong to */
    struct local_options local; /* set what differs before rig_open */
    struct fake_world *world;
    char state[64], cgroup[64];
    char shared[64], program[80];   /* of rig_become */
    struct rig_seen seen[RIG_RUNS]; /* by job number; the latest attempt */
    const struct rig_seen *waits_for;
    bool waits_for_start, timed_out, keep; /* keep: do not forget ended runs */
};

/* `driver` local or fake. Skips the test where jobs cannot be run as anybody. */
void rig_init(struct rig *rig, const struct acre_engine_driver *driver);
void rig_open(struct rig *rig);  /* also again, after rig_close */
void rig_close(struct rig *rig); /* jobs run on */
void rig_finish(struct rig *rig);
/* As root, before rig_open: this process is `user` from now on, for good. The supervisors' program
 * is copied to where that user can reach it, wherever the build is. */
void rig_become(struct rig *rig, uid_t user);

/* `sh -c script` as job `job`, attempt 1, with small limits. */
struct acre_run_spec rig_spec(struct rig *rig, uint64_t job, const char *script);
void rig_start(struct rig *rig, const struct acre_run_spec *spec);
void rig_run(struct rig *rig, uint64_t job, const char *script); /* both, with defaults */
void rig_signal(struct rig *rig, uint64_t job, enum acre_run_signal signal);

const struct rig_seen *rig_wait_start(struct rig *rig, uint64_t job);
const struct rig_seen *rig_wait_exit(struct rig *rig, uint64_t job); /* with a deadline */
void rig_turn(struct rig *rig, uint64_t ms);                         /* let the loop run so long */

/* Run it and check how it ended. */
void rig_expect(struct rig *rig, uint64_t job, enum run_ending ending, int code);

/* What the job wrote so far, until the next call; "" : nothing. */
const char *rig_output(struct rig *rig, uint64_t job, int stream);
/* Wait until the job has written `part`. */
void rig_wait_output(struct rig *rig, uint64_t job, const char *part);

#endif
