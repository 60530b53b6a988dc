/* Random numbers: the published vectors, no bias, and the same everywhere. */
#include "core/rand.h"
#include "support/dies.h"
#include "support/test.h"

static void seeding_is_splitmix64(void) {
    struct acre_rand rand;
    acre_rand_seed(&rand, 0);
    CHECK_U64(rand.state[0], UINT64_C(0xe220a8397b1dcdaf));
    CHECK_U64(rand.state[1], UINT64_C(0x6e789e6aa1b965f4));
    CHECK_U64(rand.state[2], UINT64_C(0x06c45d188009454f));
    CHECK_U64(rand.state[3], UINT64_C(0xf88bb8a8724c81ec));
}

static void the_sequence_is_xoshiro256_star_star(void) {
    static const uint64_t expect[] = {
        UINT64_C(11520),
        UINT64_C(0),
        UINT64_C(1509978240),
        UINT64_C(1215971899390074240),
        UINT64_C(1216172134540287360),
        UINT64_C(607988272756665600),
        UINT64_C(16172922978634559625),
        UINT64_C(8476171486693032832),
        UINT64_C(10595114339597558777),
        UINT64_C(2904607092377533576),
    };
    struct acre_rand rand = {{1, 2, 3, 4}};
    for (size_t i = 0; i < ACRE_COUNT(expect); i++) {
        CHECK_U64(acre_rand_next(&rand), expect[i]);
    }
}

static void the_same_seed_gives_the_same_numbers(void) {
    struct acre_rand a, b, c;
    acre_rand_seed(&a, 42);
    acre_rand_seed(&b, 42);
    acre_rand_seed(&c, 43);
    unsigned differ = 0;
    for (int i = 0; i < 100; i++) {
        uint64_t value = acre_rand_next(&a);
        CHECK_U64(value, acre_rand_next(&b));
        differ += value != acre_rand_next(&c);
    }
    CHECK(differ > 90);
}

static void numbers_stay_below_their_bound_and_reach_all_of_it(void) {
    struct acre_rand rand;
    acre_rand_seed(&rand, 7);
    for (uint64_t bound = 1; bound <= 20; bound++) {
        unsigned counts[20] = {0};
        for (int i = 0; i < 4000; i++) {
            uint64_t value = acre_rand_below(&rand, bound);
            REQUIRE(value < bound);
            counts[value]++;
        }
        acre_test_context("seed 7 bound %u", (unsigned)bound);
        for (uint64_t i = 0; i < bound; i++) { /* six standard deviations */
            CHECK_NEAR(counts[i], 4000.0 / (double)bound, 6 * 64.0);
            CHECK(counts[i] > 0);
        }
    }
    static const uint64_t large[] = {UINT64_C(1) << 63, (UINT64_C(1) << 63) + 1, UINT64_MAX};
    for (size_t i = 0; i < ACRE_COUNT(large); i++) {
        for (int j = 0; j < 1000; j++) {
            CHECK(acre_rand_below(&rand, large[i]) < large[i]);
        }
    }
}

/* With 3 * 2^62 a plain remainder would give the lowest third half of all draws. */
static void large_bounds_are_not_biased(void) {
    struct acre_rand rand;
    acre_rand_seed(&rand, 8);
    uint64_t bound = UINT64_C(3) << 62;
    int low = 0;
    for (int i = 0; i < 30000; i++) {
        low += acre_rand_below(&rand, bound) < bound / 3;
    }
    CHECK_NEAR(low, 10000, 500);
}

static void draw_below_zero(void) {
    struct acre_rand rand;
    acre_rand_seed(&rand, 1);
    acre_rand_below(&rand, 0);
}

static void a_bound_of_zero_asserts(void) {
    CHECK(acre_dies(draw_below_zero));
}

static void the_unit_interval_is_half_open_and_even(void) {
    struct acre_rand rand;
    acre_rand_seed(&rand, 11);
    double sum = 0;
    for (int i = 0; i < 100000; i++) {
        double value = acre_rand_unit(&rand);
        REQUIRE(value >= 0 && value < 1);
        sum += value;
    }
    CHECK_NEAR(sum / 100000, 0.5, 0.006);
    struct acre_rand ones = {{0, UINT64_C(0x4fc71c71c71c71c7), 0, 0}}; /* next is 2^64 - 1 */
    CHECK(acre_rand_unit(&ones) < 1.0);
}

static void shuffles_keep_every_item_and_use_every_order(void) {
    struct acre_rand rand;
    acre_rand_seed(&rand, 13);
    unsigned orders[6] = {0};
    for (int i = 0; i < 6000; i++) {
        int items[3] = {0, 1, 2};
        acre_rand_shuffle(&rand, items, 3, sizeof(items[0]));
        CHECK_EQ(items[0] + items[1] + items[2], 3);
        CHECK_EQ(items[0] * items[1] * items[2], 0);
        orders[items[0] * 2 + (items[1] > items[2])]++;
    }
    for (size_t i = 0; i < 6; i++) {
        CHECK_NEAR(orders[i], 1000, 180);
    }
    acre_rand_shuffle(&rand, NULL, 0, 8);
    acre_rand_shuffle(&rand, orders, 1, sizeof(orders[0]));
}

static void large_items_move_whole(void) {
    enum { COUNT = 20 };
    struct item {
        unsigned char bytes[150];
    } items[COUNT];
    bool seen[COUNT] = {0};
    for (int i = 0; i < COUNT; i++) {
        memset(items[i].bytes, i, sizeof(items[i].bytes));
    }
    struct acre_rand rand;
    acre_rand_seed(&rand, 17);
    acre_rand_shuffle(&rand, items, COUNT, sizeof(items[0]));
    for (int i = 0; i < COUNT; i++) {
        unsigned char first = items[i].bytes[0];
        for (size_t j = 0; j < sizeof(items[i].bytes); j++) {
            CHECK_EQ(items[i].bytes[j], first);
        }
        CHECK(!seen[first]);
        seen[first] = true;
    }
}

static const struct acre_test tests[] = {
    {"seeding_is_splitmix64", seeding_is_splitmix64, 0},
    {"the_sequence_is_xoshiro256_star_star", the_sequence_is_xoshiro256_star_star, 0},
    {"the_same_seed_gives_the_same_numbers", the_same_seed_gives_the_same_numbers, 0},
    {"numbers_stay_below_their_bound_and_reach_all_of_it",
     numbers_stay_below_their_bound_and_reach_all_of_it, 0},
    {"large_bounds_are_not_biased", large_bounds_are_not_biased, 0},
    {"a_bound_of_zero_asserts", a_bound_of_zero_asserts, 0},
    {"the_unit_interval_is_half_open_and_even", the_unit_interval_is_half_open_and_even, 0},
    {"shuffles_keep_every_item_and_use_every_order", shuffles_keep_every_item_and_use_every_order,
     0},
    {"large_items_move_whole", large_items_move_whole, 0},
};

ACRE_TEST_MAIN(tests)
