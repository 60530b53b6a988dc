/* test_compute_auto_cost.c - the cost model: on simulated costs it ends near the best of each size,
 * after a bounded number of other calls; as text it is what it was. */
#include "compute/auto/cost.h"
#include "core/rand.h"
#include "support/test.h"

#include <stdio.h>

#define BIT(variant) (UINT32_C(1) << (variant))

static void tell(struct costs *costs, uint32_t bucket, enum cost_variant variant, double us) {
    costs_tell(costs, bucket, (struct cost_choice){.variant = variant, .is_measured = true}, us);
}

static void buckets_are_quarters_of_octaves(void) { /* GPU-4 */
    static const struct {
        uint32_t items, bucket, from;
    } rows[] = {{1, 0, 1},
                {2, 4, 2},
                {3, 6, 3},
                {4, 8, 4},
                {5, 9, 5},
                {7, 11, 7},
                {8, 12, 8},
                {9, 12, 8},
                {1000, 39, 896},
                {1024, 40, 1024},
                {1279, 40, 1024},
                {1280, 41, 1280},
                {UINT32_MAX, 127, 3758096384}};
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        acre_test_context("%u items", rows[i].items);
        uint32_t bucket = cost_bucket(rows[i].items, COST_MEMORY_PLAIN);
        CHECK_EQ(bucket, rows[i].bucket);
        CHECK_EQ(cost_bucket_items(bucket), rows[i].from);
        CHECK_EQ(cost_bucket(rows[i].items, COST_MEMORY_MAPPED), rows[i].bucket + 2 * COST_SIZES);
        CHECK_EQ(cost_bucket_items(rows[i].bucket + COST_SIZES), rows[i].from);
    }
    acre_test_context("%s", "");
    for (uint32_t n = 1; n < UINT32_MAX / 2; n += 1 + n / 7) {
        CHECK(cost_bucket_items(cost_bucket(n, COST_MEMORY_PLAIN)) <= n);
        CHECK(cost_bucket(n + 1, COST_MEMORY_PLAIN) >= cost_bucket(n, COST_MEMORY_PLAIN));
    }
}

static void variants_belong_to_ways(void) {
    uint32_t all = 0;
    for (int way = 0; way < ACRE_WAY_COUNT; way++) {
        uint32_t mask = cost_way_variants((enum acre_way)way);
        CHECK(mask != 0 && (mask & all) == 0);
        all |= mask;
    }
    CHECK_EQ(all, BIT(COST_VARIANTS_COUNT) - 1);
    CHECK_EQ(cost_variant_way(COST_PIECES), ACRE_WAY_LAUNCH);
    CHECK_STR(cost_variant_name(COST_ALL), "all");
}

/* --- simulated ------------------------------------------------------------------------------ */

/* us = fixed + items * each, for sizes from min to max (0: none). */
struct curve {
    double fixed_us, each_ns;
    uint32_t min, max;
};

/* What was measured on a large GPU, roughly; on a laptop's; a CPU that always wins; and one where
 * all is nearly the same. */
static const struct {
    const char *name;
    struct curve curves[COST_VARIANTS_COUNT];
} machines[] = {
    {"large",
     {[COST_RING] = {2.6, 1, 0, 32},
      [COST_GRAPH] = {11, 1, 0, 1000000},
      [COST_MAPPED] = {8.4, 0.8, 0, 1300000},
      [COST_COPIED] = {25, 0.55, 0, 20000000},
      [COST_PIECES] = {300, 0.26, 90000, 0},
      [COST_ONE] = {0.03, 1.1, 0, 0},
      [COST_ALL] = {6, 0.3, 0, 0}}},
    {"small",
     {[COST_GRAPH] = {40, 2, 0, 1000000},
      [COST_MAPPED] = {30, 3, 0, 1300000},
      [COST_COPIED] = {90, 1.5, 0, 20000000},
      [COST_PIECES] = {900, 0.4, 90000, 0},
      [COST_ONE] = {0.05, 3, 0, 0},
      [COST_ALL] = {20, 1.9, 0, 0}}},
    {"processor",
     {[COST_MAPPED] = {50, 3, 0, 1300000},
      [COST_COPIED] = {90, 3, 0, 0},
      [COST_ONE] = {0.05, 1, 0, 0}}},
    {"alike",
     {[COST_GRAPH] = {10, 1, 0, 1000000},
      [COST_MAPPED] = {10.5, 1.02, 0, 0},
      [COST_COPIED] = {10.2, 1.04, 0, 0},
      [COST_ONE] = {9.9, 1.05, 0, 0}}},
};

static uint32_t possible_of(const struct curve *curves, uint32_t items) {
    uint32_t possible = 0;
    for (uint32_t i = 0; i < COST_VARIANTS_COUNT; i++) {
        bool is = curves[i].fixed_us > 0 && items >= curves[i].min &&
                  (curves[i].max == 0 || items <= curves[i].max);
        possible |= is ? BIT(i) : 0;
    }
    return possible;
}

static double true_us(const struct curve *curve, uint32_t items) {
    return curve->fixed_us + items * curve->each_ns / 1e3;
}

static double best_us(const struct curve *curves, uint32_t items) {
    uint32_t possible = possible_of(curves, items);
    double best = 1e300;
    for (uint32_t i = 0; i < COST_VARIANTS_COUNT; i++) {
        if ((possible & BIT(i)) != 0 && true_us(&curves[i], items) < best) {
            best = true_us(&curves[i], items);
        }
    }
    return best;
}

/* A call on a machine with noise: some per cent always, much more now and then. Its true cost. */
static double call(struct costs *costs, const struct curve *curves, uint32_t items,
                   struct acre_rand *rand) {
    uint32_t bucket = cost_bucket(items, COST_MEMORY_PLAIN);
    struct cost_choice choice = costs_choose(costs, bucket, possible_of(curves, items));
    double us = true_us(&curves[choice.variant], items);
    costs_count(costs, bucket, choice.variant, 1, false);
    if (choice.is_measured) {
        double noise = 1 + 0.04 * acre_rand_unit(rand);
        noise *= acre_rand_below(rand, 50) == 0 ? 12 : 1;
        costs_tell(costs, bucket, choice, us * noise);
    }
    return us;
}

static void choices_end_near_the_best(void) { /* GPU-4 */
    enum { CALLS = 2000, TRIED_MAX = 3 * (COST_VARIANTS_COUNT - 1) };
    static struct costs costs;
    for (size_t m = 0; m < ACRE_COUNT(machines); m++) {
        struct acre_rand rand;
        acre_rand_seed(&rand, 7 + m);
        costs_init(&costs);
        for (double size = 1; size < 1.1e8; size = size < 8 ? size + 1 : size * 1.31) {
            uint32_t items = (uint32_t)size;
            acre_test_context("%s, %u items", machines[m].name, items);
            double best = best_us(machines[m].curves, items);
            uint32_t worse = 0;
            double sum = 0;
            for (uint32_t i = 0; i < CALLS; i++) {
                double us = call(&costs, machines[m].curves, items, &rand);
                worse += us > 1.1 * best;
                sum += i >= CALLS / 2 ? us : 0;
            }
            /* Each other one is tried three times, and then every 512th call goes to the second. */
            CHECK(worse <= TRIED_MAX + CALLS / 512);
            CHECK(sum / (CALLS / 2) <= 1.1 * best);
        }
    }
}

static void sizes_nearby_spare_tries(void) {
    static struct costs costs;
    const struct curve *curves = machines[0].curves;
    struct acre_rand rand;
    acre_rand_seed(&rand, 1);
    costs_init(&costs);
    for (uint32_t i = 0; i < 40; i++) {
        call(&costs, curves, 8, &rand);
    }
    uint32_t near = cost_bucket(12, COST_MEMORY_PLAIN), far = cost_bucket(32, COST_MEMORY_PLAIN);
    uint32_t possible = possible_of(curves, 8);
    for (uint32_t i = 0; i < 40; i++) {
        struct cost_choice choice = costs_choose(&costs, near, possible);
        CHECK_EQ(choice.variant, COST_ONE); /* the others took 80 times as long */
        costs_tell(&costs, near, choice, 0.04);
    }
    CHECK_EQ(costs_choose(&costs, far, possible).variant, COST_RING); /* two octaves: not known */
}

static void a_change_is_noticed(void) {
    static struct costs costs;
    costs_init(&costs);
    uint32_t bucket = cost_bucket(1000, COST_MEMORY_PLAIN);
    uint32_t possible = BIT(COST_ONE) | BIT(COST_COPIED);
    double one_us = 10;
    double copied_us = 14;
    uint32_t left_at = 0, back_at = 0;
    for (uint32_t i = 0; i < 200000 && back_at == 0; i++) {
        one_us = left_at == 0 && i == 1000 ? 30 : one_us; /* it becomes slower ... */
        if (left_at != 0 && i == left_at + 1000) {
            one_us = 11; /* ... and cheaper again, and the other somewhat dearer */
            copied_us = 15;
        }
        struct cost_choice choice = costs_choose(&costs, bucket, possible);
        if (choice.is_measured) {
            costs_tell(&costs, bucket, choice, choice.variant == COST_ONE ? one_us : copied_us);
        }
        left_at = left_at == 0 && i > 20 && choice.variant == COST_COPIED && !choice.is_measured
                      ? i
                      : left_at;
        back_at =
            left_at != 0 && i > left_at + 1000 && choice.variant == COST_ONE && !choice.is_measured
                ? i
                : back_at;
    }
    CHECK(left_at > 1000 && left_at < 1000 + 16 * 16);
    CHECK(back_at > 0); /* by the calls of the second, one in 512 */
}

static void outliers_count_little_unless_they_stay(void) {
    static struct costs costs;
    const struct cost *cost = &costs.all[0][COST_ONE];
    costs_init(&costs);
    for (uint32_t i = 0; i < 3; i++) {
        tell(&costs, 0, COST_ONE, 10 + i);
    }
    CHECK_NEAR(cost->us, 10, 1e-9); /* the least of three */
    double us = 10;
    for (uint32_t i = 0; i < 8; i++) {
        tell(&costs, 0, COST_ONE, 1e9);
        us += (i < 2 ? 0.25 : 3) * us / 8;
        CHECK_NEAR(cost->us, us, 1e-6);
    }
    tell(&costs, 0, COST_ONE, us);
    tell(&costs, 0, COST_ONE, 2 * us);
    CHECK_NEAR(cost->us, us + us / 32, 1e-6); /* counted from the start */
    tell(&costs, 1, COST_ONE, 0);             /* a clock that stood still */
    CHECK(costs.all[1][COST_ONE].us > 0);
}

static void the_second_is_believed_when_it_is_faster(void) {
    static struct costs costs;
    costs_init(&costs);
    struct cost_choice second = {.variant = COST_ALL, .is_measured = true, .is_trial = true};
    for (uint32_t i = 0; i < 3; i++) {
        tell(&costs, 0, COST_ALL, 20);
    }
    costs_tell(&costs, 0, second, 12);
    CHECK_NEAR(costs.all[0][COST_ALL].us, 12, 1e-9);
    costs_tell(&costs, 0, second, 14);
    CHECK_NEAR(costs.all[0][COST_ALL].us, 12.25, 1e-9);
}

static void free_calls_end_at_a_measurement(void) {
    static struct costs costs;
    costs_init(&costs);
    uint32_t possible = BIT(COST_ONE) | BIT(COST_ALL);
    CHECK_EQ(costs_free_calls(&costs, 3, possible, COST_ONE), 0);
    for (uint32_t i = 0; i < 6; i++) {
        struct cost_choice choice = costs_choose(&costs, 3, possible);
        CHECK(choice.is_measured);
        costs_tell(&costs, 3, choice, choice.variant == COST_ONE ? 1 : 1.2);
    }
    CHECK_EQ(costs_free_calls(&costs, 3, possible, COST_ALL), 0); /* not the cheapest */
    for (uint32_t i = 0; i < 100; i++) {
        uint32_t calls = costs_free_calls(&costs, 3, possible, COST_ONE);
        costs_count(&costs, 3, COST_ONE, calls, true);
        struct cost_choice choice = costs_choose(&costs, 3, possible);
        CHECK(choice.is_measured);
        CHECK_EQ(choice.variant, i % 32 == 31 ? COST_ALL : COST_ONE);
    }
    CHECK_U64(costs.all[3][COST_ONE].calls, 15 * 100);
}

static void each_hopeless_elsewhere_is_tried_all_the_same(void) {
    static struct costs costs;
    costs_init(&costs);
    for (uint32_t i = 0; i < 3; i++) {
        tell(&costs, 40, COST_ONE, 1);
        tell(&costs, 40, COST_ALL, 9);
        tell(&costs, 42, COST_ONE, 9);
        tell(&costs, 42, COST_ALL, 1);
    }
    struct cost_choice choice = costs_choose(&costs, 41, BIT(COST_ONE) | BIT(COST_ALL));
    CHECK(choice.is_measured);
    CHECK_EQ(choice.variant, COST_ONE);
}

static void reports_are_by_octaves(void) {
    static struct costs costs;
    struct acre_auto_cost report[40];
    costs_init(&costs);
    CHECK_EQ(costs_report(&costs, report, 40), 0);
    tell(&costs, cost_bucket(1024, COST_MEMORY_PLAIN), COST_COPIED, 10);
    tell(&costs, cost_bucket(1024, COST_MEMORY_PLAIN), COST_MAPPED, 8);
    tell(&costs, cost_bucket(1800, COST_MEMORY_PINNED), COST_COPIED, 12);
    tell(&costs, cost_bucket(2048, COST_MEMORY_PLAIN), COST_ALL, 5);
    tell(&costs, cost_bucket(2048, COST_MEMORY_PLAIN), COST_MAPPED, 7);
    costs_count(&costs, cost_bucket(1024, COST_MEMORY_PLAIN), COST_COPIED, 3, false);
    costs_count(&costs, cost_bucket(1900, COST_MEMORY_PINNED), COST_MAPPED, 4, false);
    REQUIRE_EQ(costs_report(&costs, report, 40), 2);
    CHECK_EQ(report[0].items, 1024);
    CHECK_NEAR(report[0].us[ACRE_WAY_LAUNCH], 10, 1e-9); /* of 8 and 12 */
    CHECK(report[0].us[ACRE_WAY_CPU] < 0);
    CHECK_U64(report[0].calls[ACRE_WAY_LAUNCH], 7);
    CHECK_EQ(report[0].chosen, ACRE_WAY_LAUNCH);
    CHECK_EQ(report[1].items, 2048);
    CHECK_EQ(report[1].chosen, ACRE_WAY_CPU);
    CHECK_STR(report[1].reason[ACRE_WAY_RING], "");
    CHECK_EQ(costs_report(&costs, report, 1), 1);
}

/* --- as text -------------------------------------------------------------------------------- */

static const struct cost_owner owner = {.key = UINT64_C(0x0123456789abcdef),
                                        .kernel = "axpy",
                                        .device = "cuda NVIDIA H200",
                                        .cpu = "cpu Some Cores (R)"};

static void text_is_read_as_it_was_written(void) {
    static struct costs costs, again;
    struct cost_owner read = {0};
    struct acre_error err = {0};
    struct acre_buf text;
    costs_init(&costs);
    for (uint32_t i = 0; i < COST_BUCKETS; i += 3) {
        for (uint32_t j = 0; j <= i % COST_VARIANTS_COUNT; j++) {
            tell(&costs, i, (enum cost_variant)j, 0.25 * (i + 1) * (j + 1));
            costs_count(&costs, i, (enum cost_variant)j, i * 7, false);
        }
    }
    acre_buf_init(&text, COST_TEXT_MAX_BYTES);
    costs_write(&costs, &owner, &text);
    REQUIRE(!acre_buf_failed(&text));
    REQUIRE_EQ(costs_read((struct acre_str){text.data, text.length}, &read, &again, &err), 0);
    CHECK_U64(read.key, owner.key);
    CHECK_STR(read.kernel, owner.kernel);
    CHECK_STR(read.device, owner.device);
    CHECK_STR(read.cpu, owner.cpu);
    for (uint32_t i = 0; i < COST_BUCKETS; i++) {
        for (uint32_t j = 0; j < COST_VARIANTS_COUNT; j++) {
            CHECK_NEAR(again.all[i][j].us, costs.all[i][j].us, 1e-6);
            CHECK_EQ(again.all[i][j].tries, costs.all[i][j].tries);
            CHECK_U64(again.all[i][j].calls, costs.all[i][j].us < 0 ? 0 : costs.all[i][j].calls);
        }
    }
    acre_buf_finish(&text);
}

static void the_longest_text_fits(void) {
    static struct costs costs;
    struct acre_buf text;
    costs_init(&costs);
    for (uint32_t i = 0; i < COST_BUCKETS; i++) {
        for (uint32_t j = 0; j < COST_VARIANTS_COUNT; j++) {
            costs.all[i][j] = (struct cost){.us = 1e300, .tries = 3, .calls = UINT64_MAX};
        }
    }
    acre_buf_init(&text, COST_TEXT_MAX_BYTES);
    costs_write(&costs, &owner, &text);
    CHECK(!acre_buf_failed(&text));
    struct cost_owner read;
    CHECK_EQ(costs_read((struct acre_str){text.data, text.length}, &read, &costs, NULL), 0);
    acre_buf_finish(&text);
}

#define HEAD                                                                                       \
    "acre-costs 1\nkey 0123456789abcdef\nkernel k\ndevice d\ncpu none\n# what the columns are\n"

static void damaged_text_is_refused_by_its_line(void) {
    static const struct {
        const char *text, *says; /* NULL: right */
    } rows[] = {
        {HEAD "end\n", NULL},
        {HEAD "0 one 1000 3 17\nend\n", NULL},
        {HEAD "383 all 1000000000000000000 1 0\nend\n", NULL},
        {"", "line 1"},
        {"acre-costs 2\n", "line 1: unexpected 'acre-costs 2'"},
        {"acre-costs 1\nkey 0123\n", "line 2"},
        {"acre-costs 1\nkey 0123456789abcdeg\n", "line 2"},
        {"acre-costs 1\nkey 0123456789abcdef\nkernel \nend\n", "line 3"},
        {HEAD, "line 7"},
        {HEAD "0 one 1000 3 17\n", "line 8"},
        {HEAD "end", "line 7"},
        {HEAD "end\n\n", "line 7"},
        {HEAD "end\nmore", "line 7"},
        {HEAD "0 one 1000 3\nend\n", "line 7: unexpected '0 one 1000 3'"},
        {HEAD "0 one 1000 3 17 4\nend\n", "line 7"},
        {HEAD "0 one 1000  3 17\nend\n", "line 7"},
        {HEAD "384 one 1000 3 17\nend\n", "line 7"},
        {HEAD "0 two 1000 3 17\nend\n", "line 7"},
        {HEAD "0 one -1 3 17\nend\n", "line 7"},
        {HEAD "0 one 0 3 17\nend\n", "line 7"},
        {HEAD "0 one 1000 4 17\nend\n", "line 7"},
        {HEAD "0 one 1000 0 17\nend\n", "line 7"},
        {HEAD "0 one 1000000000000000001 3 17\nend\n", "line 7"},
        {HEAD "0 one 99999999999999999999999 3 17\nend\n", "line 7"},
        {HEAD "0 one 1000 3 17\n0 one 1000 3 17\nend\n", "line 8"},
        {HEAD "0 one 1000 3 17\r\nend\n", "line 7"},
    };
    static struct costs costs;
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        acre_test_context("row %zu: %s", i, rows[i].text);
        struct acre_error err = {0};
        struct cost_owner read = {.key = 1};
        int r = costs_read(acre_str_from(rows[i].text), &read, &costs, &err);
        CHECK_EQ(r, rows[i].says == NULL ? 0 : ACRE_ECORRUPT);
        if (rows[i].says != NULL) {
            CHECK_HAS(err.text, rows[i].says);
            CHECK_U64(read.key, 1);
            CHECK(costs.all[0][COST_ONE].us < 0);
        }
    }
}

/* The device was busy when it was tried, and is not any more: some day that is found. */
static void what_was_worse_is_tried_again(void) {
    static struct costs costs;
    static const double worse_us[] = {160, 400, 3000};
    for (size_t row = 0; row < ACRE_COUNT(worse_us); row++) {
        costs_init(&costs);
        uint32_t bucket = cost_bucket(1000, COST_MEMORY_PLAIN);
        uint32_t last = 0; /* of the last thousand, by the device */
        enum { CALLS = 600000 };
        for (uint32_t i = 0; i < CALLS; i++) {
            struct cost_choice choice =
                costs_choose(&costs, bucket, BIT(COST_COPIED) | BIT(COST_ONE));
            bool is_device = choice.variant == COST_COPIED;
            double us = !is_device ? 100 : i < 10 ? worse_us[row] : 5;
            costs_count(&costs, bucket, choice.variant, 1, false);
            if (choice.is_measured) {
                costs_tell(&costs, bucket, choice, us);
            }
            last += is_device && i >= CALLS - 1000;
        }
        acre_test_context("%.0f us at first: %u of the last 1000", worse_us[row], last);
        CHECK(last > 900);
    }
}

/* That costs little where nothing has changed. */
static void trying_again_costs_little(void) {
    static struct costs costs;
    costs_init(&costs);
    uint32_t bucket = cost_bucket(1000, COST_MEMORY_PLAIN);
    enum { CALLS = 200000 };
    double all_us = 0;
    for (uint32_t i = 0; i < CALLS; i++) {
        struct cost_choice choice = costs_choose(&costs, bucket, BIT(COST_COPIED) | BIT(COST_ONE));
        double us = choice.variant == COST_ONE ? 1 : 30;
        all_us += us;
        costs_count(&costs, bucket, choice.variant, 1, false);
        if (choice.is_measured) {
            costs_tell(&costs, bucket, choice, us);
        }
    }
    CHECK(all_us < 1.02 * CALLS);
}

static const struct acre_test tests[] = {
    {"buckets_are_quarters_of_octaves", buckets_are_quarters_of_octaves, 0},
    {"variants_belong_to_ways", variants_belong_to_ways, 0},
    {"choices_end_near_the_best", choices_end_near_the_best, 0},
    {"sizes_nearby_spare_tries", sizes_nearby_spare_tries, 0},
    {"a_change_is_noticed", a_change_is_noticed, 0},
    {"outliers_count_little_unless_they_stay", outliers_count_little_unless_they_stay, 0},
    {"the_second_is_believed_when_it_is_faster", the_second_is_believed_when_it_is_faster, 0},
    {"free_calls_end_at_a_measurement", free_calls_end_at_a_measurement, 0},
    {"each_hopeless_elsewhere_is_tried_all_the_same", each_hopeless_elsewhere_is_tried_all_the_same,
     0},
    {"reports_are_by_octaves", reports_are_by_octaves, 0},
    {"text_is_read_as_it_was_written", text_is_read_as_it_was_written, 0},
    {"the_longest_text_fits", the_longest_text_fits, 0},
    {"damaged_text_is_refused_by_its_line", damaged_text_is_refused_by_its_line, 0},
    {"what_was_worse_is_tried_again", what_was_worse_is_tried_again, 0},
    {"trying_again_costs_little", trying_again_costs_little, 0},
};
ACRE_TEST_MAIN(tests)
