/* What is learnt: how long jobs run, and how wrong estimates of starts are (POL-4, POL-9). */
#include "core/rand.h"
#include "sched/forecast.h"
#include "support/test.h"

#define MIN_MS  UINT64_C(60000)
#define HOUR_MS UINT64_C(3600000)
#define NOW_MS  UINT64_C(1700000000000)

static struct acre_job_spec spec(uint32_t user, uint32_t name, uint64_t estimate_ms,
                                 uint64_t limit_ms) {
    return (struct acre_job_spec){.user = user,
                                  .project = 9,
                                  .name = name,
                                  .estimate_ms = estimate_ms,
                                  .limit_ms = limit_ms,
                                  .request = {.replicas = 1, .gpus = 1, .milli = 1000}};
}

/* With nothing learnt: the estimate, else the limit, else the default. */
static const struct {
    uint64_t estimate_ms, limit_ms, expected_ms;
} unlearnt[] = {
    {5 * MIN_MS, 0, 5 * MIN_MS},
    {0, 7 * MIN_MS, 7 * MIN_MS},
    {5 * MIN_MS, 7 * MIN_MS, 5 * MIN_MS},
    {9 * MIN_MS, 7 * MIN_MS, 7 * MIN_MS}, /* the limit ends it */
    {0, 0, HOUR_MS},
};

static void what_is_asked_is_believed_at_first(void) {
    struct forecast *forecast = forecast_create(NULL);
    for (size_t i = 0; i < ACRE_COUNT(unlearnt); i++) {
        acre_test_context("row %zu", i);
        struct acre_job_spec job = spec(1, 2, unlearnt[i].estimate_ms, unlearnt[i].limit_ms);
        CHECK_U64(forecast_run_ms(forecast, &job, HOUR_MS), unlearnt[i].expected_ms);
    }
    forecast_destroy(forecast);
    forecast_destroy(NULL);
}

static void two_runs_of_a_name_say_more(void) {
    struct forecast *forecast = forecast_create(NULL);
    struct acre_job_spec job = spec(1, 2, HOUR_MS, 0), other = spec(1, 3, HOUR_MS, 0);
    forecast_ended(forecast, &job, 10 * MIN_MS);
    forecast_ended(forecast, &job, 20 * MIN_MS);
    CHECK_U64(forecast_run_ms(forecast, &job, HOUR_MS), 15 * MIN_MS);
    forecast_ended(forecast, &job, 30 * MIN_MS);
    CHECK_U64(forecast_run_ms(forecast, &job, HOUR_MS), 25 * MIN_MS);
    job.limit_ms = 12 * MIN_MS;
    CHECK_U64(forecast_run_ms(forecast, &job, HOUR_MS), 12 * MIN_MS);
    /* Another name: three runs took a third of their estimate, (1 + 3 * 1/3) / 4. */
    CHECK_U64(forecast_run_ms(forecast, &other, HOUR_MS), HOUR_MS / 2);
    struct acre_job_spec stranger = spec(4, 2, HOUR_MS, 0);
    CHECK_U64(forecast_run_ms(forecast, &stranger, HOUR_MS), HOUR_MS);
    forecast_destroy(forecast);
}

static void runs_that_asked_nothing_are_learnt_too(void) {
    struct forecast *forecast = forecast_create(NULL);
    struct acre_job_spec job = spec(1, 0, 0, 0);
    forecast_ended(forecast, &job, 4 * HOUR_MS);
    CHECK_U64(forecast_run_ms(forecast, &job, MIN_MS), MIN_MS); /* one is no habit */
    for (int i = 0; i < 40; i++) {
        forecast_ended(forecast, &job, 4 * HOUR_MS);
    }
    uint64_t run_ms = forecast_run_ms(forecast, &job, MIN_MS);
    CHECK(run_ms > 3 * HOUR_MS && run_ms <= 4 * HOUR_MS);
    for (int i = 0; i < 40; i++) {
        forecast_ended(forecast, &job, 0);
    }
    run_ms = forecast_run_ms(forecast, &job, MIN_MS); /* habits change */
    CHECK(run_ms >= 1 && run_ms < HOUR_MS);
    forecast_ended(forecast, &job, UINT64_MAX);
    CHECK(forecast_run_ms(forecast, &job, MIN_MS) < UINT64_MAX / 2);
    forecast_destroy(forecast);
}

static void one_monster_does_not_spoil_an_account(void) {
    struct forecast *forecast = forecast_create(NULL);
    struct acre_job_spec job = spec(1, 0, MIN_MS, 0);
    forecast_ended(forecast, &job, 1000 * HOUR_MS);
    CHECK(forecast_run_ms(forecast, &job, HOUR_MS) <= 8 * MIN_MS);
    forecast_destroy(forecast);
}

static void an_unlearnt_interval_holds_its_middle(void) {
    struct forecast *forecast = forecast_create(NULL);
    const uint64_t planned_ms[] = {0, 1000, MIN_MS, HOUR_MS, 100 * HOUR_MS, 100000 * HOUR_MS};
    for (size_t i = 0; i < ACRE_COUNT(planned_ms); i++) {
        struct forecast_wait wait = forecast_wait(forecast, planned_ms[i]);
        CHECK(wait.least_ms <= wait.middle_ms && wait.middle_ms <= wait.most_ms);
        CHECK(wait.most_ms > planned_ms[i]);
        CHECK(wait.least_ms <= planned_ms[i]);
        /* In the middle: the plan itself. */
        CHECK_NEAR((double)wait.middle_ms, (double)planned_ms[i],
                   0.1 * ((double)planned_ms[i] + 30000));
    }
    forecast_destroy(forecast);
}

/* Waits that are r times what was planned, log-normal: nine in ten of later ones are inside. */
static void intervals_are_calibrated_by_experience(void) {
    static const struct {
        double low, high; /* actual / planned */
    } worlds[] = {{0.1, 0.5}, {0.9, 1.1}, {1.0, 6.0}};
    for (size_t world = 0; world < ACRE_COUNT(worlds); world++) {
        acre_test_context("world %zu", world);
        struct forecast *forecast = forecast_create(NULL);
        struct acre_rand rand;
        acre_rand_seed(&rand, world + 1);
        uint32_t inside = 0, seen = 0;
        double width = 0;
        for (uint64_t job = 1; job <= 3000; job++) {
            uint64_t planned_ms = 10 * MIN_MS + acre_rand_below(&rand, 50 * HOUR_MS);
            double factor = worlds[world].low +
                            (worlds[world].high - worlds[world].low) * acre_rand_unit(&rand);
            uint64_t actual_ms = (uint64_t)((double)planned_ms * factor);
            struct forecast_wait wait = forecast_wait(forecast, planned_ms);
            if (job > 1000) {
                seen++;
                inside += wait.least_ms <= actual_ms && actual_ms <= wait.most_ms;
                width += (double)(wait.most_ms - wait.least_ms) / (double)planned_ms;
            }
            forecast_estimated(forecast, job, NOW_MS, NOW_MS + planned_ms);
            forecast_estimated(forecast, job, NOW_MS, 0); /* the first one counts */
            forecast_started(forecast, job, NOW_MS + actual_ms);
        }
        CHECK_U64(forecast_compared(forecast), 3000);
        double part = (double)inside / seen;
        CHECK(part > 0.86 && part < 0.97);
        CHECK(width / seen < 1.3 * (worlds[world].high - worlds[world].low)); /* not by width */
        forecast_destroy(forecast);
    }
}

static void what_was_forgotten_is_not_compared(void) {
    struct forecast *forecast = forecast_create(NULL);
    for (uint64_t job = 1; job <= 100; job++) {
        forecast_estimated(forecast, job, NOW_MS, NOW_MS + HOUR_MS);
    }
    for (uint64_t job = 1; job <= 100; job += 2) {
        forecast_forget(forecast, job);
    }
    forecast_forget(forecast, 12345);
    for (uint64_t job = 1; job <= 101; job++) {
        forecast_started(forecast, job, NOW_MS + HOUR_MS);
        forecast_started(forecast, job, NOW_MS + HOUR_MS); /* a second run is no start */
    }
    CHECK_U64(forecast_compared(forecast), 50);
    forecast_destroy(forecast);
}

static void memory_is_bounded(void) {
    struct forecast *forecast = forecast_create(NULL);
    for (uint64_t job = 1; job <= 200000; job++) {
        struct acre_job_spec row = spec((uint32_t)job, (uint32_t)job, 1, 0);
        forecast_estimated(forecast, job, NOW_MS, NOW_MS);
        forecast_ended(forecast, &row, 1);
        forecast_submitted(forecast, job);
    }
    CHECK(forecast_bytes(forecast) < 8 * 1024 * 1024);
    forecast_destroy(forecast);
}

static const struct acre_test tests[] = {
    {"what_is_asked_is_believed_at_first", what_is_asked_is_believed_at_first, 0},
    {"two_runs_of_a_name_say_more", two_runs_of_a_name_say_more, 0},
    {"runs_that_asked_nothing_are_learnt_too", runs_that_asked_nothing_are_learnt_too, 0},
    {"one_monster_does_not_spoil_an_account", one_monster_does_not_spoil_an_account, 0},
    {"an_unlearnt_interval_holds_its_middle", an_unlearnt_interval_holds_its_middle, 0},
    {"intervals_are_calibrated_by_experience", intervals_are_calibrated_by_experience, 0},
    {"what_was_forgotten_is_not_compared", what_was_forgotten_is_not_compared, 0},
    {"memory_is_bounded", memory_is_bounded, 0},
};

ACRE_TEST_MAIN(tests)
