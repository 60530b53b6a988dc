/* The scheduler under faults: some seeds in every run of the tests, those that once failed by
 * name, and the same seed twice does the same. `make sim SEEDS=5000` is the long run. */
#include "sim/faults.h"

#include "support/test.h"

static void run_seed(uint64_t seed, uint32_t steps, struct acre_faults_counts *counts) {
    struct acre_error err = {0};
    struct acre_faults_options options = {.seed = seed, .steps = steps};
    int r = acre_faults_run(&options, counts, &err);
    acre_test_context("%s", err.text);
    REQUIRE_EQ(r, 0);
}

static void nothing_is_lost_or_doubled_under_faults(void) {
    struct acre_faults_counts counts = {0};
    for (uint64_t seed = 1; seed <= 60; seed++) {
        run_seed(seed, 400, &counts);
    }
    /* that the faults were there at all */
    CHECK(counts.crashes > 0 && counts.failed_commits > 0 && counts.lost_messages > 0);
    CHECK(counts.repeated_messages > 0 && counts.clock_jumps > 0 && counts.vanished_nodes > 0);
    CHECK(counts.preemptions > 0 && counts.completed > 0 && counts.failed > 0);
    /* what was not acknowledged before a crash is gone, the rest has its end */
    CHECK(counts.completed + counts.failed + counts.canceled <= counts.submitted);
}

static void a_seed_does_the_same_twice(void) {
    for (uint64_t seed = 100; seed < 110; seed++) {
        struct acre_faults_counts first = {0}, second = {0};
        run_seed(seed, 400, &first);
        run_seed(seed, 400, &second);
        CHECK_U64(first.fingerprint, second.fingerprint);
    }
}

#define TEST(name)                                                                                 \
    { #name, name, 0 }
static const struct acre_test tests[] = {
    TEST(nothing_is_lost_or_doubled_under_faults),
    TEST(a_seed_does_the_same_twice),
};

ACRE_TEST_MAIN(tests)
