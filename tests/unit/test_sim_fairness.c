/* Fairness: Jain's index, and satisfaction against the max-min fair division. */
#include "sim/fairness.h"

#include "support/test.h"

static void jain_is_one_for_equals_and_one_in_n_for_a_monopoly(void) {
    CHECK_NEAR(jain_index((const double[]){1, 1, 1, 1}, 4), 1, 1e-12);
    CHECK_NEAR(jain_index((const double[]){5, 0, 0, 0}, 4), 0.25, 1e-12);
    CHECK_NEAR(jain_index((const double[]){1, 2, 3}, 3), 36.0 / 42, 1e-12);
    CHECK_NEAR(jain_index(NULL, 0), 1, 0);
    CHECK_NEAR(jain_index((const double[]){0, 0}, 2), 1, 0);
}

/* One period of `ms` in which each tenant holds and waits for so much. */
struct period {
    uint64_t ms;
    int64_t held[3], waiting[3];
};

static double jain_of(const struct period *periods, size_t count) {
    struct fairness *fairness = fairness_create(3, 12);
    for (size_t p = 0; p < count; p++) {
        for (uint32_t t = 0; t < 3; t++) {
            fairness_add(fairness, t, periods[p].held[t]);
            fairness_want(fairness, t, periods[p].waiting[t]);
        }
        fairness_pass(fairness, periods[p].ms);
        for (uint32_t t = 0; t < 3; t++) {
            fairness_add(fairness, t, -periods[p].held[t]);
            fairness_want(fairness, t, -periods[p].waiting[t]);
        }
    }
    double jain = fairness_jain(fairness);
    fairness_destroy(fairness);
    return jain;
}

static void everybody_served_is_fair_however_unequal_the_demands(void) {
    const struct period all = {100, {1, 2, 9}, {0, 0, 0}};
    CHECK_NEAR(jain_of(&all, 1), 1, 1e-12);
    const struct period idle = {100, {0, 0, 12}, {0, 0, 50}}; /* nobody else asks */
    CHECK_NEAR(jain_of(&idle, 1), 1, 1e-12);
}

static void what_is_beyond_the_fair_part_counts_nothing(void) {
    /* fair: 4 each; got 0/4, 0/4, 4/4 */
    const struct period monopoly = {100, {0, 0, 12}, {4, 4, 0}};
    CHECK_NEAR(jain_of(&monopoly, 1), 1.0 / 3, 1e-12);
    /* fair: 2 as asked, 5, 5; got 2/2, 4/5, 5/5 */
    const struct period near = {100, {2, 4, 6}, {0, 10, 10}};
    double sum = 1 + 0.8 + 1, squares = 1 + 0.64 + 1;
    CHECK_NEAR(jain_of(&near, 1), sum * sum / (3 * squares), 1e-12);
}

static void periods_weigh_by_their_length_and_demand(void) {
    /* tenant 0: owed 100 x 6, then 300 x 6; got 0, then all: 1800 / 2400 */
    const struct period two[] = {{100, {0, 12, 0}, {6, 0, 0}}, {300, {6, 6, 0}, {0, 0, 0}}};
    double sum = 0.75 + 1, squares = 0.5625 + 1;
    CHECK_NEAR(jain_of(two, 2), sum * sum / (2 * squares), 1e-12);
}

#define TEST(name)                                                                                 \
    { #name, name, 0 }
static const struct acre_test tests[] = {
    TEST(jain_is_one_for_equals_and_one_in_n_for_a_monopoly),
    TEST(everybody_served_is_fair_however_unequal_the_demands),
    TEST(what_is_beyond_the_fair_part_counts_nothing),
    TEST(periods_weigh_by_their_length_and_demand),
};

ACRE_TEST_MAIN(tests)
