/* Backfill never delays the head (POL-6): played at random in virtual time.
 *
 * First come, first served, every run within its limit: then the head can only begin earlier than
 * it was first told, whatever passes it. ACRE_SEED=n replays one seed. */
#include "core/rand.h"
#include "support/ledger_kit.h"

#include "sched/state.h"

#include <stdlib.h>

enum { SEEDS = 40, JOBS = 150, RUNS_MAX = 256 };
#define START_MS UINT64_C(1700000000000)

struct play {
    struct acre_rand rand;
    struct acre_ledger *ledger;
    struct acre_sched *sched;
    uint64_t now_ms;
    uint64_t ends_ms[JOBS + 1]; /* of those that run; 0: not yet */
    uint64_t told_ms[JOBS + 1]; /* when the head begins at the latest */
    uint32_t passed;            /* jobs placed while an earlier one waited */
};

static void on_action(void *context, const struct acre_sched_action *action) {
    struct play *play = context;
    struct acre_job job;
    if (action->kind != ACRE_ACTION_START) {
        return;
    }
    REQUIRE(acre_sched_find(play->sched, action->job, &job));
    uint64_t most = job.spec.limit_ms;
    play->ends_ms[action->job] =
        play->now_ms + most - acre_rand_below(&play->rand, 2) * acre_rand_below(&play->rand, most);
    if (play->told_ms[action->job] != 0) {
        CHECK(play->now_ms <= play->told_ms[action->job]);
    }
    play->passed += play->sched->shadow.head != 0 && play->sched->shadow.head < action->job;
}

static struct acre_request random_request(struct play *play) {
    switch (acre_rand_below(&play->rand, 8)) {
    case 0:
        return kit_whole(4);
    case 1:
        return kit_gang(2, 3, 1000);
    case 2:
        return kit_whole(2);
    case 3:
        return kit_cpu(1000 * (1 + acre_rand_below(&play->rand, 40)), 0);
    case 4:
        return kit_memory(1024 * (1 + acre_rand_below(&play->rand, 79)));
    default: {
        struct acre_request request =
            kit_share(100 * (1 + (uint32_t)acre_rand_below(&play->rand, 10)));
        request.cpu_milli = 1000 * acre_rand_below(&play->rand, 20);
        return request;
    }
    }
}

static void submit(struct play *play, uint64_t id) {
    struct acre_job_spec spec = {
        .id = id,
        .user = kit_name(play->ledger, "ada"),
        .project = kit_name(play->ledger, "red"),
        .request = random_request(play),
        .priority = ACRE_PRIORITY_NORMAL,
        .limit_ms = 1000 * (1 + acre_rand_below(&play->rand, 500)),
    };
    struct acre_error err = {0};
    acre_sched_submit(play->sched, &spec, play->now_ms, &err);
    CHECK_STR(err.text, "");
}

static void pass(struct play *play) {
    do {
        acre_sched_pass(play->sched, play->now_ms, 0);
    } while (acre_sched_next_ms(play->sched) <= play->now_ms);
    const struct shadow *shadow = &play->sched->shadow;
    if (shadow->head != 0 && shadow->is_complete && !shadow->is_stale) {
        uint64_t told_ms = play->told_ms[shadow->head];
        CHECK(told_ms == 0 || shadow->start_ms <= told_ms);
        play->told_ms[shadow->head] = shadow->start_ms;
    }
}

/* The next run that ends; 0: none runs. */
static uint64_t next_end(const struct play *play) {
    uint64_t next = 0;
    for (uint64_t id = 1; id <= JOBS; id++) {
        if (play->ends_ms[id] != 0 && (next == 0 || play->ends_ms[id] < play->ends_ms[next])) {
            next = id;
        }
    }
    return next;
}

static void end(struct play *play, uint64_t id) {
    struct acre_job_exit exit = {.kind = ACRE_EXIT_CODE};
    play->now_ms = play->ends_ms[id];
    play->ends_ms[id] = 0;
    acre_sched_exited(play->sched, id, 1, &exit, play->now_ms);
}

static uint32_t run_seed(uint64_t seed) {
    acre_test_context("ACRE_SEED=%llu", (unsigned long long)seed);
    struct play play = {.now_ms = START_MS};
    struct acre_policy policy = *acre_policy_default();
    policy.kind = ACRE_POLICY_FCFS;
    policy.preemption = false;
    acre_rand_seed(&play.rand, seed);
    play.ledger = kit_cluster(ACRE_STRATEGY_DEFAULT, "0 0 0 0|0 0 0 0@20000|0 0 0");
    struct acre_sched_options options = {
        .ledger = play.ledger, .policy = &policy, .action = on_action, .context = &play};
    play.sched = acre_sched_create(&options);
    for (uint64_t id = 1; id <= JOBS; id++) {
        submit(&play, id);
        pass(&play);
        uint64_t then_ms = play.now_ms + acre_rand_below(&play.rand, 20000);
        for (uint64_t next; (next = next_end(&play)) != 0 && play.ends_ms[next] <= then_ms;) {
            end(&play, next);
            pass(&play);
        }
        play.now_ms = then_ms;
    }
    for (uint64_t next; (next = next_end(&play)) != 0;) {
        end(&play, next);
        pass(&play);
    }
    struct acre_sched_counts counts;
    acre_sched_counts(play.sched, &counts);
    CHECK_U64(counts.jobs[ACRE_JOB_QUEUED], 0);
    acre_sched_destroy(play.sched);
    kit_destroy(play.ledger);
    return play.passed;
}

static void nothing_that_passes_delays_the_head(void) {
    const char *seed = getenv("ACRE_SEED");
    if (seed != NULL) {
        run_seed(strtoull(seed, NULL, 10));
        return;
    }
    uint32_t passed = 0;
    for (uint64_t i = 0; i < SEEDS; i++) {
        passed += run_seed(i);
    }
    CHECK(passed > SEEDS * 10); /* and many did pass */
}

static const struct acre_test tests[] = {
    {"nothing_that_passes_delays_the_head", nothing_that_passes_delays_the_head, 60},
};

ACRE_TEST_MAIN(tests)
