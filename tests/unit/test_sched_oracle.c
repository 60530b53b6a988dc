/* The scheduler against a slow and obvious second opinion (POL-2, POL-3, POL-6, POL-7, POL-9): see
 * support/sched_play.h. ACRE_SEED=n replays one seed, ACRE_SEEDS=n runs so many. */
#include "support/sched_play.h"

#include <stdlib.h>

enum { SETTLE_MAX = 40, MOMENTS_MAX = 4000, SEEDS = 700 };

#define SLOW_AGE "\"priority_age\": \"10m\", \"preempt_min_run\": \"30s\", \"idle\": \"never\""
static const char *const policies[] = {
    "{\"policy\": \"fcfs\", \"backfill\": false, \"preemption\": false, " SLOW_AGE "}",
    "{\"policy\": \"fcfs\", \"backfill\": true, \"preemption\": false, " SLOW_AGE "}",
    "{\"policy\": \"priority\", \"backfill\": false, \"preemption\": false, " SLOW_AGE "}",
    "{\"policy\": \"priority\", \"backfill\": true, \"preemption\": false, " SLOW_AGE "}",
    "{\"policy\": \"priority\", \"backfill\": true, \"preemption\": true, " SLOW_AGE "}",
    "{\"policy\": \"priority\", \"backfill\": false, \"preemption\": true, " SLOW_AGE "}",
    "{\"policy\": \"sjf\", \"backfill\": true, \"preemption\": false, " SLOW_AGE "}",
    "{\"policy\": \"gang\", \"backfill\": true, \"preemption\": false, " SLOW_AGE "}",
    "{\"policy\": \"gang\", \"backfill\": false, \"preemption\": false, " SLOW_AGE "}",
    "{\"policy\": \"fair-share\", \"backfill\": true, \"preemption\": false, " SLOW_AGE "}",
    "{\"policy\": \"fair-share\", \"backfill\": true, \"preemption\": true, " SLOW_AGE "}",
    "{\"policy\": \"fcfs\", \"backfill\": true, \"preemption\": true, " SLOW_AGE
    ", \"quotas\": [{\"who\": \"user:u0\", \"gpus\": 2, \"running\": 2}, "
    "{\"who\": \"user:u1\", \"gpus\": 1, \"soft\": true}]}",
    "{\"policy\": \"fair-share\", \"backfill\": true, \"preemption\": false, " SLOW_AGE
    ", \"quotas\": [{\"who\": \"user:*\", \"gpus\": 2, \"memory\": \"100GiB\"}]}",
    "{\"policy\": \"priority\", \"backfill\": true, \"preemption\": true, " SLOW_AGE
    ", \"quotas\": [{\"who\": \"project:p0\", \"gpus\": 2, \"soft\": true}]}",
};

static void settle(struct play *play) {
    uint32_t rounds = 0;
    do {
        acre_sched_pass(play->sched, play->now_ms, 0);
        oracle_check_victims(play);
        if (++rounds >= SETTLE_MAX) {
            oracle_blame(play, "does not settle", rounds, 0);
        }
    } while (play_act(play) || acre_sched_next_ms(play->sched) <= play->now_ms);
    struct acre_error err = {0};
    if (acre_sched_check(play->sched, &err) < 0) {
        CHECK_STR(err.text, "");
        REQUIRE(false);
    }
}

static uint64_t next_moment(const struct play *play, uint64_t next_submit_ms) {
    uint64_t at_ms = ACRE_MIN(next_submit_ms, acre_sched_next_ms(play->sched));
    for (uint32_t id = 1; id <= play->job_count; id++) {
        if (play->jobs[id].end_ms != 0) {
            at_ms = ACRE_MIN(at_ms, play->jobs[id].end_ms);
        }
    }
    return at_ms;
}

static void run_play(struct play *play, uint32_t jobs) {
    uint64_t next_submit_ms = play->now_ms;
    for (uint32_t i = 0; i < MOMENTS_MAX; i++) {
        play_end_runs(play);
        if (play->now_ms >= next_submit_ms) {
            play_submit(play);
            bool more = play->job_count < jobs;
            next_submit_ms = more ? play->now_ms + 1000 * play_below(play, 40) : UINT64_MAX;
        }
        if (!play->plain) {
            play_disturb(play);
        }
        settle(play);
        if (play->now_ms != next_submit_ms) {
            oracle_check(play);
        }
        uint64_t at_ms = next_moment(play, next_submit_ms);
        if (at_ms == UINT64_MAX) {
            break;
        }
        REQUIRE(at_ms >= play->now_ms);
        play->now_ms = at_ms;
    }
    for (uint32_t id = 1; id <= play->job_count; id++) {
        struct acre_job job;
        acre_sched_release(play->sched, id, play->now_ms, NULL);
        if (play->plain && play->jobs[id].submitted && acre_sched_find(play->sched, id, &job) &&
            acre_job_state_is_live(job.state)) {
            if (!oracle_is_over_hard(play, &job.spec)) {
                oracle_blame(play, "waits for ever", id, 0);
            }
        }
    }
}

static void run_seed(uint64_t seed) {
    acre_test_context("ACRE_SEED=%llu", (unsigned long long)seed);
    struct play *play = play_create(seed, policies[seed % ACRE_COUNT(policies)]);
    run_play(play, 5 + (uint32_t)play_below(play, PLAY_JOBS_MAX - 5));
    play_destroy(play);
}

static void the_model_agrees(void) {
    const char *seed = getenv("ACRE_SEED");
    const char *seeds = getenv("ACRE_SEEDS");
    if (seed != NULL) {
        run_seed(strtoull(seed, NULL, 10));
        return;
    }
    uint64_t count = seeds != NULL ? strtoull(seeds, NULL, 10) : SEEDS;
    for (uint64_t i = 0; i < count; i++) {
        run_seed(i);
    }
}

static const struct acre_test tests[] = {
    {"the_model_agrees", the_model_agrees, 600},
};

ACRE_TEST_MAIN(tests)
