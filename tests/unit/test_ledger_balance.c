/* Load balancing between devices (CAP-9; vectors A16..A22). */
#include "ledger/balance.h"
#include "support/test.h"

#include <math.h>

enum { GIB = 1024 };

static struct acre_balance_load load_of(double queue, uint64_t available_mib, double utilisation) {
    return (struct acre_balance_load){.queue = queue,
                                      .predicted_queue = queue,
                                      .utilisation = utilisation,
                                      .available_mib = available_mib,
                                      .total_mib = 8 * GIB};
}

static struct acre_balance_request request_of(enum acre_balance_strategy strategy) {
    return (struct acre_balance_request){strategy, ACRE_BALANCE_MAX_UTILISATION, 0,
                                         ACRE_BALANCE_NO_DEVICE};
}

static struct acre_balance_choice must_choose(const struct acre_balance_load *loads, uint32_t count,
                                              struct acre_balance_request request,
                                              uint32_t *cursor) {
    struct acre_balance_choice choice = {.device = 99};
    uint32_t unused = 0;
    REQUIRE_EQ(acre_balance_choose(loads, count, &request, cursor != NULL ? cursor : &unused,
                                   &choice, NULL),
               0);
    CHECK(choice.reason != NULL && choice.reason[0] != '\0');
    return choice;
}

/* A16 */
static void round_robin_takes_turns_and_skips_back_pressure(void) {
    struct acre_balance_load loads[3] = {load_of(.5, 4 * GIB, .5), load_of(.5, 4 * GIB, .5),
                                         load_of(.99, 4 * GIB, .5)};
    static const uint32_t free_turns[] = {0, 1, 2, 0, 1, 2};
    static const uint32_t without_one[] = {0, 2, 0, 2, 0, 2};
    uint32_t cursor = 0;
    for (size_t i = 0; i < ACRE_COUNT(free_turns); i++) {
        struct acre_balance_choice choice =
            must_choose(loads, 3, request_of(ACRE_BALANCE_ROUND_ROBIN), &cursor);
        CHECK_U64(choice.device, free_turns[i]);
        CHECK_NEAR(choice.score, .5, 0);
        CHECK_U64(choice.candidates, 3);
        CHECK(!choice.is_fallback);
    }
    loads[1].back_pressure = true;
    for (size_t i = 0; i < ACRE_COUNT(without_one); i++) {
        struct acre_balance_choice choice =
            must_choose(loads, 3, request_of(ACRE_BALANCE_ROUND_ROBIN), &cursor);
        CHECK_U64(choice.device, without_one[i]);
    }
    cursor = UINT32_MAX; /* a turn of a larger node */
    CHECK_U64(must_choose(loads, 3, request_of(ACRE_BALANCE_ROUND_ROBIN), &cursor).device, 0);
    loads[0].back_pressure = loads[2].back_pressure = true;
    struct acre_balance_choice none =
        must_choose(loads, 3, request_of(ACRE_BALANCE_ROUND_ROBIN), &cursor);
    CHECK(none.is_fallback);
    CHECK_U64(none.device, 0);
}

/* A17 */
static void least_loaded_is_below_the_threshold_or_a_marked_fallback(void) {
    static const struct {
        double queues[3], max_queue;
        uint32_t device, candidates;
        double score;
        bool fallback;
    } rows[] = {
        {{.7, .3, .5}, .8, 1, 3, .7, false},  {{.2, .5, .8}, .9, 0, 3, .8, false},
        {{.9, .85, .5}, .8, 2, 1, .5, false}, {{.95, .95, .95}, .8, 0, 0, 0, true},
        {{.8, .8, .8}, .8, 0, 0, 0, true}, /* strictly below */
        {{.4, .4, .4}, .8, 0, 3, .6, false},
    };
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        acre_test_context("row %zu", i);
        struct acre_balance_load loads[3];
        for (int k = 0; k < 3; k++) {
            loads[k] = load_of(rows[i].queues[k], 4 * GIB, .5);
        }
        struct acre_balance_request request = request_of(ACRE_BALANCE_LEAST_LOADED);
        request.max_queue = rows[i].max_queue;
        struct acre_balance_choice choice = must_choose(loads, 3, request, NULL);
        CHECK_U64(choice.device, rows[i].device);
        CHECK_NEAR(choice.score, rows[i].score, 1e-12);
        CHECK_U64(choice.candidates, rows[i].candidates);
        CHECK_EQ(choice.is_fallback, rows[i].fallback);
        if (rows[i].fallback) {
            CHECK_HAS(choice.reason, "threshold");
        }
    }
}

/* A18: the scores .695, .500, .255 one by one, then together */
static void weighted_adds_queue_memory_and_utilisation(void) {
    struct acre_balance_load loads[3] = {load_of(.2, 6 * GIB, .5), load_of(.5, 4 * GIB, .5),
                                         load_of(.7, 2 * GIB, .8)};
    static const double expect[] = {.695, .500, .255};
    for (uint32_t i = 0; i < 3; i++) {
        struct acre_balance_choice one =
            must_choose(&loads[i], 1, request_of(ACRE_BALANCE_WEIGHTED), NULL);
        CHECK_NEAR(one.score, expect[i], 1e-12);
    }
    struct acre_balance_choice choice =
        must_choose(loads, 3, request_of(ACRE_BALANCE_WEIGHTED), NULL);
    CHECK_U64(choice.device, 0);
    CHECK_U64(choice.candidates, 3);
    loads[0].available_mib = 100; /* too little for 500 */
    struct acre_balance_request request = request_of(ACRE_BALANCE_WEIGHTED);
    request.min_mib = 500;
    choice = must_choose(loads, 3, request, NULL);
    CHECK_U64(choice.device, 1);
    CHECK_U64(choice.candidates, 2);
    loads[1].queue = .8; /* at the maximum is within it */
    loads[2].back_pressure = true;
    choice = must_choose(loads, 3, request, NULL);
    CHECK_U64(choice.device, 1);
    loads[1].queue = .81;
    choice = must_choose(loads, 3, request, NULL);
    CHECK(choice.is_fallback);
    struct acre_balance_load unknown = {.queue = .5, .utilisation = .5}; /* no memory known */
    CHECK_NEAR(must_choose(&unknown, 1, request_of(ACRE_BALANCE_WEIGHTED), NULL).score, .35, 1e-12);
}

/* A19: queues of 4096 places hold 1638, 2048 and 2457 */
static void adaptive_looks_a_minute_ahead(void) {
    struct acre_balance_load loads[3] = {load_of(1638 / 4096.0, 4 * GIB, .5),
                                         load_of(2048 / 4096.0, 4 * GIB, .5),
                                         load_of(2457 / 4096.0, 4 * GIB, .5)};
    static const double predicted[] = {.7, .5, .4};
    static const double expect[] = {.37003, .5, .50004};
    for (int i = 0; i < 3; i++) {
        loads[i].predicted_queue = predicted[i];
        loads[i].trend = 1 - i;
        struct acre_balance_choice one =
            must_choose(&loads[i], 1, request_of(ACRE_BALANCE_ADAPTIVE), NULL);
        CHECK_NEAR(one.score, expect[i], 5e-6);
    }
    struct acre_balance_choice choice =
        must_choose(loads, 3, request_of(ACRE_BALANCE_ADAPTIVE), NULL);
    CHECK_U64(choice.device, 2);
    loads[2].predicted_queue = .81; /* over the maximum in a minute: passed over */
    choice = must_choose(loads, 3, request_of(ACRE_BALANCE_ADAPTIVE), NULL);
    CHECK_U64(choice.device, 1);
    CHECK_U64(choice.candidates, 2);
    struct acre_balance_load worst = {1, .8, 1, 1, 0, 8, false}; /* .06 - .1 */
    CHECK_NEAR(must_choose(&worst, 1, request_of(ACRE_BALANCE_ADAPTIVE), NULL).score, 0, 0);
    worst.predicted_queue = 1;
    CHECK(must_choose(&worst, 1, request_of(ACRE_BALANCE_ADAPTIVE), NULL).is_fallback);
}

/* A20 */
static void affinity_holds_until_its_device_is_full(void) {
    static const struct {
        double queue;
        bool back_pressure;
        uint64_t min_mib;
        bool expect;
    } rows[] = {
        {.5, false, 0, true},
        {.79, false, 0, true},
        {.8, false, 0, false},
        {.95, false, 0, false},
        {.5, true, 0, false},
        {.5, false, 4 * GIB, true},
        {.5, false, 4 * GIB + 1, false},
    };
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        acre_test_context("row %zu", i);
        struct acre_balance_load loads[3] = {load_of(.3, 8 * GIB, .1), load_of(.2, 8 * GIB, .1),
                                             load_of(rows[i].queue, 4 * GIB, .9)};
        loads[2].back_pressure = rows[i].back_pressure;
        for (int strategy = 0; strategy < ACRE_BALANCE_STRATEGY_COUNT; strategy++) {
            struct acre_balance_request request = request_of((enum acre_balance_strategy)strategy);
            request.affinity = 2;
            request.min_mib = rows[i].min_mib;
            uint32_t cursor = 0;
            struct acre_balance_choice choice = must_choose(loads, 3, request, &cursor);
            CHECK_EQ(choice.device == 2, rows[i].expect);
            CHECK_EQ(choice.score == 1, rows[i].expect);
            CHECK(!choice.is_fallback);
        }
    }
}

static void bad_loads_are_refused_by_field(void) {
    static const struct {
        struct acre_balance_load load;
        const char *says;
    } rows[] = {
        {{.queue = 1.5}, "device 1: queue 1.5; accepted: 0 to 1"},
        {{.predicted_queue = -0.1}, "predicted_queue -0.1"},
        {{.utilisation = (double)NAN}, "utilisation nan"},
        {{.available_mib = 9, .total_mib = 8}, "available_mib 9; accepted: at most total_mib 8"},
    };
    struct acre_balance_request request = request_of(ACRE_BALANCE_WEIGHTED);
    struct acre_balance_choice choice = {.device = 77};
    struct acre_balance_advice advice = {.max = 77};
    struct acre_error err;
    uint32_t cursor = 0;
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct acre_balance_load loads[2] = {load_of(.5, 1, .5), rows[i].load};
        CHECK_EQ(acre_balance_choose(loads, 2, &request, &cursor, &choice, &err), ACRE_EINVALID);
        CHECK_HAS(err.text, rows[i].says);
        CHECK_EQ(acre_balance_advise(loads, 2, NULL, 0, &advice, &err), ACRE_EINVALID);
        CHECK_HAS(err.text, rows[i].says);
    }
    struct acre_balance_load good = load_of(.5, 1, .5);
    CHECK_EQ(acre_balance_choose(&good, 0, &request, &cursor, &choice, &err), ACRE_EINVALID);
    CHECK_HAS(err.text, "no devices");
    request.affinity = 1;
    CHECK_EQ(acre_balance_choose(&good, 1, &request, &cursor, &choice, &err), ACRE_EINVALID);
    CHECK_HAS(err.text, "affinity 1; accepted: 0 to 0");
    CHECK_U64(choice.device, 77);
    CHECK_NEAR(advice.max, 77, 0);
    CHECK_STR(acre_balance_strategy_name(ACRE_BALANCE_ROUND_ROBIN), "round-robin");
    CHECK_STR(acre_balance_strategy_name(ACRE_BALANCE_AFFINITY_FIRST), "affinity-first");
}

static void the_trend_compares_the_halves_of_the_history(void) {
    static const struct {
        const char *what;
        double history[5];
        uint32_t count;
        double now;
        int direction;
        double predicted;
    } rows[] = {
        {"no history", {0}, 0, .4, 0, .4},
        {"one sample", {.9}, 1, .4, 0, .4},
        {"rising", {.2, .2, .4, .4}, 4, .4, 1, .6},
        {"falling", {.6, .6, .4, .4}, 4, .4, -1, .2},
        {"inside the band", {.40, .44}, 2, .4, 0, .48},
        {"odd: the younger half is larger", {.1, .1, .4, .4, .4}, 5, .4, 1, .7},
        {"clamped above", {.2, .9}, 2, .9, 1, 1},
        {"clamped below", {.9, .2}, 2, .2, -1, 0},
    };
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        acre_test_context("%s", rows[i].what);
        struct acre_balance_trend trend =
            acre_balance_trend(rows[i].history, rows[i].count, rows[i].now);
        CHECK_EQ(trend.direction, rows[i].direction);
        CHECK_NEAR(trend.predicted, rows[i].predicted, 1e-12);
    }
}

/* A21 */
static void load_score_follows_the_vectors(void) {
    struct acre_balance_load load = {
        .queue = .5, .utilisation = .6, .available_mib = 60, .total_mib = 100};
    CHECK_NEAR(acre_balance_load_score(&load), .5, 1e-12);
    load = (struct acre_balance_load){0, 0, 0, .2, 80, 100, false}; /* A22 */
    CHECK_NEAR(acre_balance_load_score(&load), .12, 1e-12);
    load = (struct acre_balance_load){1, 0, 0, .8, 20, 100, false};
    CHECK_NEAR(acre_balance_load_score(&load), .88, 1e-12);
    load = (struct acre_balance_load){.queue = .5, .utilisation = .6};
    CHECK_NEAR(acre_balance_load_score(&load), .38, 1e-12); /* memory unknown is not full */
}

/* A device with this load score: queue, utilisation and memory alike. */
static struct acre_balance_load even_load(double score) {
    return (struct acre_balance_load){
        .queue = score,
        .utilisation = score,
        .available_mib = (uint64_t)lround((1 - score) * 100000),
        .total_mib = 100000,
    };
}

/* A22, and each threshold from both sides */
static void rebalancing_is_advised_by_threshold(void) {
    static const struct {
        const char *what;
        double scores[4];
        uint32_t count;
        enum acre_balance_urgency urgency;
        bool rebalance;
        const char *reason;
        uint32_t moves;
    } rows[] = {
        {"no device", {0}, 0, ACRE_BALANCE_URGENCY_NONE, false, "too few devices", 0},
        {"one device", {1}, 1, ACRE_BALANCE_URGENCY_NONE, false, "too few devices", 0},
        {"all equal", {.5, .5, .5}, 3, ACRE_BALANCE_URGENCY_NONE, false, "balanced", 0},
        {"A22", {.12, .88, .5}, 3, ACRE_BALANCE_URGENCY_HIGH, true, "large", 1},
        {"one full", {1, .5, .5}, 3, ACRE_BALANCE_URGENCY_CRITICAL, true, "overloaded", 1},
        {"below .9", {.89, .5}, 2, ACRE_BALANCE_URGENCY_MEDIUM, true, "moderate", 1},
        {"over .9", {.91, .9}, 2, ACRE_BALANCE_URGENCY_CRITICAL, true, "overloaded", 0},
        {"difference of .41", {.2, .61}, 2, ACRE_BALANCE_URGENCY_HIGH, true, "large", 1},
        {"deviation .16", {.2, .52}, 2, ACRE_BALANCE_URGENCY_MEDIUM, true, "moderate", 1},
        {"deviation .14", {.2, .48}, 2, ACRE_BALANCE_URGENCY_LOW, false, "minor", 0},
        {"deviation .06", {.2, .32}, 2, ACRE_BALANCE_URGENCY_LOW, false, "minor", 0},
        {"deviation .04", {.2, .28}, 2, ACRE_BALANCE_URGENCY_NONE, false, "balanced", 0},
        {"two over, two under", {.8, .1, .7, .2}, 4, ACRE_BALANCE_URGENCY_HIGH, true, "large", 2},
        {"three over, one under", {.7, .7, .7, .1}, 4, ACRE_BALANCE_URGENCY_HIGH, true, "large", 3},
    };
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        acre_test_context("%s", rows[i].what);
        struct acre_balance_load loads[4];
        for (int k = 0; k < 4; k++) {
            loads[k] = even_load(rows[i].scores[k]);
        }
        struct acre_balance_move moves[4];
        struct acre_balance_advice advice;
        REQUIRE_EQ(acre_balance_advise(loads, rows[i].count, moves, 4, &advice, NULL), 0);
        CHECK_EQ(advice.urgency, rows[i].urgency);
        CHECK_EQ(advice.rebalance, rows[i].rebalance);
        CHECK_HAS(advice.reason, rows[i].reason);
        CHECK_U64(advice.move_count, rows[i].moves);
        CHECK_NEAR(advice.improvement, rows[i].rebalance ? (advice.max - advice.min) / 2 : 0,
                   1e-12);
    }
}

static void moves_pair_the_most_with_the_least_loaded(void) {
    struct acre_balance_load loads[5] = {even_load(.8), even_load(.1), even_load(.7), even_load(.2),
                                         even_load(.45)};
    struct acre_balance_move moves[4];
    struct acre_balance_advice advice;
    REQUIRE_EQ(acre_balance_advise(loads, 5, moves, 4, &advice, NULL), 0);
    CHECK_NEAR(advice.mean, .45, 1e-9);
    CHECK_NEAR(advice.max, .8, 1e-9);
    CHECK_NEAR(advice.min, .1, 1e-9);
    CHECK_NEAR(advice.deviation, 0.272029, 1e-6);
    REQUIRE_EQ(advice.move_count, 2);
    CHECK_U64(moves[0].from, 0);
    CHECK_U64(moves[0].to, 1);
    CHECK_NEAR(moves[0].reduction, .175, 1e-9);
    CHECK_U64(moves[1].from, 2);
    CHECK_U64(moves[1].to, 3);
    REQUIRE_EQ(acre_balance_advise(loads, 5, moves, 1, &advice, NULL), 0); /* room for one */
    CHECK_U64(advice.move_count, 1);
    /* Three over, one under: all go there, in order of load, equal loads by number. */
    loads[0] = loads[2] = loads[3] = even_load(.7);
    REQUIRE_EQ(acre_balance_advise(loads, 4, moves, 4, &advice, NULL), 0);
    REQUIRE_EQ(advice.move_count, 3);
    CHECK(moves[0].to == 1 && moves[1].to == 1 && moves[2].to == 1);
    CHECK(moves[0].from == 0 && moves[1].from == 2 && moves[2].from == 3);
    /* One far over, nobody far enough under: nobody has room. */
    for (int i = 0; i < 5; i++) {
        loads[i] = even_load(i == 0 ? .95 : .6);
    }
    loads[0] = even_load(.95);
    REQUIRE_EQ(acre_balance_advise(loads, 5, moves, 4, &advice, NULL), 0);
    CHECK_EQ(advice.urgency, ACRE_BALANCE_URGENCY_CRITICAL);
    CHECK_U64(advice.move_count, 0);
}

static const struct acre_test tests[] = {
    {"round_robin_takes_turns_and_skips_back_pressure",
     round_robin_takes_turns_and_skips_back_pressure, 0},
    {"least_loaded_is_below_the_threshold_or_a_marked_fallback",
     least_loaded_is_below_the_threshold_or_a_marked_fallback, 0},
    {"weighted_adds_queue_memory_and_utilisation", weighted_adds_queue_memory_and_utilisation, 0},
    {"adaptive_looks_a_minute_ahead", adaptive_looks_a_minute_ahead, 0},
    {"affinity_holds_until_its_device_is_full", affinity_holds_until_its_device_is_full, 0},
    {"bad_loads_are_refused_by_field", bad_loads_are_refused_by_field, 0},
    {"the_trend_compares_the_halves_of_the_history", the_trend_compares_the_halves_of_the_history,
     0},
    {"load_score_follows_the_vectors", load_score_follows_the_vectors, 0},
    {"rebalancing_is_advised_by_threshold", rebalancing_is_advised_by_threshold, 0},
    {"moves_pair_the_most_with_the_least_loaded", moves_pair_the_most_with_the_least_loaded, 0},
};

ACRE_TEST_MAIN(tests)
