/* sched_play.h - a scheduler in virtual time over a small cluster, with random jobs that take
 * exactly as long as they said, and a second opinion about what it does.
 *
 * sched_play.c is the world: it submits, starts, ends and interferes as its seed says.
 * sched_oracle.c is the opinion: it looks through the public interface alone, asks a ledger of its
 * own, built anew from the allocations each time, and knows no classes, lines or shadows. What it
 * does not agree with ends the test with everything that runs and waits. One thread. */
#ifndef ACRE_TEST_SCHED_PLAY_H
#define ACRE_TEST_SCHED_PLAY_H

#include "core/rand.h"
#include "sched/why.h"
#include "support/ledger_kit.h"

enum { PLAY_JOBS_MAX = 48, PLAY_PARTS_MAX = 64 };
#define PLAY_START_MS UINT64_C(1700000000000)

struct mjob {
    struct acre_job_spec spec;
    struct acre_dependency dependencies[2];
    uint64_t run_ms;          /* what it takes */
    uint64_t end_ms;          /* of the run there is; 0: none */
    uint32_t attempt;         /* of that run */
    bool fails;               /* its first run does */
    bool was_promised;        /* others yielded for it */
    bool submitted, refused;  /* refused: never part of it */
    uint64_t preempted_by[4]; /* the last ones it yielded to */
};

struct play {
    struct acre_rand rand;
    const char *cluster;
    struct acre_policy policy;
    struct acre_ledger *ledger;
    struct acre_sched *sched;
    uint64_t now_ms;
    bool plain;                          /* nobody interferes */
    bool is_cut;                         /* a run ended before its time in this moment */
    struct mjob jobs[PLAY_JOBS_MAX + 1]; /* by id */
    uint32_t job_count;
    struct acre_sched_action actions[256];
    uint32_t action_count;
    uint64_t placed[PLAY_JOBS_MAX * 2]; /* since the last look */
    uint32_t placed_count;
    uint64_t victims[PLAY_JOBS_MAX]; /* told to yield in this pass */
    uint64_t victim_for[PLAY_JOBS_MAX];
    uint32_t victim_count;
};

/* Everything as it stands, by the public interface. */
struct view {
    struct acre_job
        jobs[PLAY_JOBS_MAX]; /* running first, then the queue in order, then the others */
    uint32_t count;
    bool eligible[PLAY_JOBS_MAX];
    bool promised[PLAY_JOBS_MAX];
    bool any_preempted;
};

/* Seeded; the policy is JSON over the default. */
struct play *play_create(uint64_t seed, const char *policy);
void play_destroy(struct play *play);
uint64_t play_below(struct play *play, uint64_t bound);
struct acre_ledger *play_make_cluster(const char *text);
void play_submit(struct play *play);
/* Hold, release, cancel, a new priority: or nothing. */
void play_disturb(struct play *play);
void play_end_runs(struct play *play); /* whose time has come */
bool play_act(struct play *play);      /* what the scheduler asked for; false: nothing */

/* After every pass, before its actions: who was told to yield (POL-2). */
void oracle_check_victims(struct play *play);
/* When a moment is over: order, backfill, quotas, times, answers. */
void oracle_check(struct play *play);
/* Over a hard quota with the least it can hold? */
bool oracle_is_over_hard(const struct play *play, const struct acre_job_spec *spec);
_Noreturn void oracle_blame(const struct play *play, const char *what, uint64_t a, uint64_t b);

#endif
