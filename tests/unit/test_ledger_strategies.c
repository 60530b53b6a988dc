/* Where a request goes when several places would do (ALC-3): cluster, request, answer. */
#include "support/ledger_kit.h"

#include <stdio.h>

#define FIRST    ACRE_STRATEGY_FIRST_FIT
#define BEST     ACRE_STRATEGY_BEST_FIT
#define WORST    ACRE_STRATEGY_WORST_FIT
#define BALANCED ACRE_STRATEGY_LOAD_BALANCED
#define LEAST    ACRE_STRATEGY_LEAST_WASTE

struct row {
    const char *what;
    enum acre_strategy strategy;
    const char *cluster;
    uint32_t gpus, milli; /* of one replica; no gpus: 1000 milli-CPU */
    const char *where;
};

static void run_rows(const struct row *rows, size_t count) {
    for (size_t i = 0; i < count; i++) {
        acre_test_context("%s: %s in [%s]", acre_strategy_name(rows[i].strategy), rows[i].what,
                          rows[i].cluster);
        struct acre_request request =
            rows[i].gpus > 0 ? kit_gang(1, rows[i].gpus, rows[i].milli) : kit_cpu(1000, 0);
        struct acre_ledger *ledger = kit_cluster(rows[i].strategy, rows[i].cluster);
        KIT_PLACED(ledger, request, rows[i].where);
        kit_destroy(ledger);
        /* The same when the request names the strategy and the ledger has another. */
        request.strategy = rows[i].strategy;
        ledger = kit_cluster(rows[i].strategy == FIRST ? WORST : FIRST, rows[i].cluster);
        KIT_PLACED(ledger, request, rows[i].where);
        kit_destroy(ledger);
    }
}

static void first_fit_takes_the_first(void) { /* ALC-3 */
    static const struct row rows[] = {
        {"the first device", FIRST, "500 0|0 0", 1, 300, "a/0"},
        {"the first that fits", FIRST, "800 0|0 0", 1, 300, "a/1"},
        {"the first node that fits", FIRST, "800 900|0 300", 1, 300, "b/0"},
        {"not a drained one", FIRST, "x 800|0", 1, 300, "b/0"},
        {"not another kind", FIRST, "100p 100t|100 0", 1, 300, "b/0"},
        {"the first in order, whatever its island", FIRST, "900 0/0 0", 1, 300, "a/1"},
        {"a whole one", FIRST, "100 100|100 0|0", 1, 1000, "b/1"},
        {"two on one node", FIRST, "100 0|0|0 100 0", 2, 1000, "c/0 c/2"},
        {"CPU alone", FIRST, "0@500|0@8000", 0, 0, "b"},
        {"nowhere", FIRST, "800|900", 1, 300, "-"},
    };
    run_rows(rows, ACRE_COUNT(rows));
}

static void best_fit_takes_the_tightest(void) { /* ALC-3: least of the device left over */
    static const struct row rows[] = {
        {"least left over", BEST, "0 500|300 600", 1, 300, "b/1"},
        {"an exact fit", BEST, "600 0|700 500", 1, 300, "b/0"},
        {"ties to the fuller node", BEST, "500 0|500 500", 1, 300, "b/0"},
        {"ties to the node with less CPU", BEST, "500@8000|500@4000", 1, 300, "b/0"},
        {"ties to the first node", BEST, "500|500", 1, 300, "a/0"},
        {"ties to the first device", BEST, "0 500 500", 1, 300, "a/1"},
        {"whole on the fuller node", BEST, "0 500|0", 1, 1000, "b/0"},
        {"whole in the island with fewer idle", BEST, "0 0/0 500", 1, 1000, "a/2"},
        {"two of several", BEST, "0 500 300 0", 2, 300, "a/1 a/2"},
        {"CPU alone where least is left", BEST, "0@8000|0@4000", 0, 0, "b"},
        {"nowhere", BEST, "800|900", 1, 300, "-"},
    };
    run_rows(rows, ACRE_COUNT(rows));
}

static void worst_fit_takes_the_emptiest(void) { /* ALC-3 */
    static const struct row rows[] = {
        {"most free", WORST, "500 300|400 600", 1, 100, "a/1"},
        {"ties to the emptier node", WORST, "0 500|0 0", 1, 100, "b/0"},
        {"ties to the first node", WORST, "0 0|0 0", 1, 100, "a/0"},
        {"ties in the island with fewer idle", WORST, "0 0/0 500", 1, 100, "a/2"},
        {"ties to the first island", WORST, "100 0/0 100", 1, 100, "a/1"},
        {"nowhere", WORST, "950|950", 1, 100, "-"},
    };
    run_rows(rows, ACRE_COUNT(rows));
}

static void load_is_seven_tenths_share_and_three_allocations(void) { /* ALC-3, seed formula */
    static const struct row rows[] = {
        {"0.24 against 0.20", BALANCED, "300|100+100", 1, 100, "b/0"},
        {"0.17 against 0.20", BALANCED, "200|100+100", 1, 100, "a/0"},
        {"0.31 against 0.30", BALANCED, "400|100+100+100", 1, 100, "b/0"},
        {"0.38 against 0.50", BALANCED, "500|100+100+100+100+100", 1, 100, "a/0"},
        {"within a node", BALANCED, "400 100+100+100 350", 1, 100, "a/2"},
        {"idle first", BALANCED, "100 0|100 100", 1, 100, "a/1"},
        {"ties to the emptier node", BALANCED, "100 500|100 100", 1, 100, "b/0"},
        {"nowhere", BALANCED, "950|950", 1, 100, "-"},
    };
    run_rows(rows, ACRE_COUNT(rows));
}

static void least_fragmentation_starts_as_best_fit(void) { /* nothing was asked for yet */
    static const struct row rows[] = {
        {"the tighter device", LEAST, "0 500", 1, 300, "a/1"},
        {"the fuller node", LEAST, "500 0|500 500", 1, 300, "b/0"},
        {"the first", LEAST, "0 0|0 0", 1, 300, "a/0"},
        {"nowhere", LEAST, "800|900", 1, 300, "-"},
    };
    run_rows(rows, ACRE_COUNT(rows));
}

static void least_fragmentation_keeps_room_for_what_is_asked(void) { /* ALC-3: the default */
    struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_DEFAULT, "0 0|600 0|0 0");
    /* People ask for whole devices: a share goes where it breaks none, though it fits anywhere. */
    for (int i = 0; i < 200; i++) {
        KIT_RELEASE(ledger, KIT_TAKE(ledger, kit_whole(1)));
    }
    KIT_PLACED(ledger, kit_share(300), "b/0");
    KIT_PLACED(ledger, kit_share(100), "b/0");
    for (int i = 0; i < 5; i++) { /* and five whole ones still fit */
        KIT_TAKE(ledger, kit_whole(1));
    }
    KIT_REFUSED(ledger, kit_share(100), ACRE_ENOFIT, "full");
    kit_destroy(ledger);
}

static void the_last_ties_go_to_the_build_that_came_first(void) { /* shape.h: then the profile */
    static const char *const rack[] = {"rack=1"};
    static const enum acre_strategy strategies[] = {LEAST, BEST, WORST, BALANCED};
    for (size_t i = 0; i < ACRE_COUNT(strategies); i++) {
        acre_test_context("%s", acre_strategy_name(strategies[i]));
        struct acre_ledger *ledger = kit_create(strategies[i]);
        for (uint32_t n = 0; n < 4; n++) { /* a and c, b and d are of one build */
            struct acre_device_spec device = {.id = (const char *[]){"a/0", "b/0", "c/0", "d/0"}[n],
                                              .memory_mib = 1000};
            struct acre_node_spec node = {.name = (const char *[]){"a", "b", "c", "d"}[n],
                                          .labels = rack,
                                          .label_count = n % 2,
                                          .devices = &device,
                                          .device_count = 1};
            uint32_t index;
            REQUIRE_EQ(acre_ledger_add_node(ledger, &node, &index, NULL), 0);
        }
        static const char *const order[] = {"a/0", "c/0", "b/0", "d/0"};
        for (size_t n = 0; n < ACRE_COUNT(order); n++) {
            KIT_PLACED(ledger, kit_whole(1), order[n]);
        }
        kit_destroy(ledger);
    }
}

static void round_robin_goes_round(void) { /* ALC-3: next node after the last one used */
    struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_ROUND_ROBIN, "0 0|0|0|0");
    static const char *const round[] = {"a/0", "b/0", "c/0", "d/0", "a/0", "b/0"};
    for (size_t i = 0; i < ACRE_COUNT(round); i++) {
        acre_test_context("turn %zu", i);
        KIT_PLACED(ledger, kit_share(300), round[i]);
    }
    KIT_PLACED(ledger, kit_whole(1), "a/1"); /* c and d are not idle */
    KIT_PLACED(ledger, kit_share(400), "b/0");
    KIT_PLACED(ledger, kit_share(400), "c/0");
    KIT_PLACED(ledger, kit_share(400), "d/0");
    KIT_PLACED(ledger, kit_share(400), "a/0");
    KIT_PLACED(ledger, kit_share(300), "c/0"); /* b is full */
    KIT_PLACED(ledger, kit_share(900), "-");   /* a refusal does not move it */
    KIT_PLACED(ledger, kit_share(300), "d/0");
    kit_destroy(ledger);
}

static void round_robin_follows_any_use(void) { /* "the last one used", by whatever strategy */
    struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_ROUND_ROBIN, "0|0|0");
    struct acre_request best = kit_share(100);
    best.strategy = BEST;
    KIT_PLACED(ledger, best, "a/0");
    KIT_PLACED(ledger, kit_share(100), "b/0");
    KIT_PLACED(ledger, kit_share(100), "c/0");
    struct acre_part parts[1];
    uint32_t count;
    struct acre_request request = kit_share(100);
    REQUIRE_EQ(acre_ledger_plan(ledger, &request, KIT_NOW_MS, parts, 1, &count, NULL), 0);
    CHECK_EQ(parts[0].node, 0);
    REQUIRE_EQ(acre_ledger_plan(ledger, &request, KIT_NOW_MS, parts, 1, &count, NULL), 0);
    CHECK_EQ(parts[0].node, 0); /* a plan uses nothing */
    kit_destroy(ledger);
}

static void a_plan_changes_no_later_answer(void) { /* the same calls, the same answers */
    for (int planned = 0; planned < 2; planned++) {
        acre_test_context(planned ? "with a plan" : "without");
        struct acre_ledger *ledger = kit_cluster(BEST, "0|0|0");
        struct acre_request first = kit_share(100);
        first.strategy = FIRST;
        struct acre_part parts[1];
        uint32_t count;
        if (planned) {
            REQUIRE_EQ(acre_ledger_plan(ledger, &first, KIT_NOW_MS, parts, 1, &count, NULL), 0);
        }
        KIT_PLACED(ledger, kit_share(100), "a/0");
        struct acre_request round = kit_share(100);
        round.strategy = ACRE_STRATEGY_ROUND_ROBIN;
        KIT_PLACED(ledger, round, "b/0");
        kit_destroy(ledger);
    }
}

static void cpu_alone_by_worst_fit_and_balance(void) { /* most CPU free, as a part of all */
    static const enum acre_strategy strategies[] = {WORST, BALANCED};
    for (size_t i = 0; i < ACRE_COUNT(strategies); i++) {
        acre_test_context("%s", acre_strategy_name(strategies[i]));
        struct acre_ledger *ledger = kit_cluster(strategies[i], "0@8000|0@4000");
        KIT_PLACED(ledger, kit_cpu(1000, 0), "b"); /* both all free: the one with less */
        KIT_PLACED(ledger, kit_cpu(1000, 0), "a"); /* 8/8 against 3/4 */
        KIT_PLACED(ledger, kit_cpu(1000, 0), "a"); /* 7/8 against 3/4 */
        KIT_PLACED(ledger, kit_cpu(1000, 0), "b"); /* 6/8 against 3/4: the one with less */
        kit_destroy(ledger);
    }
}

static void a_balanced_gang_counts_its_own_members(void) { /* ALC-3: allocations/10 */
    struct acre_ledger *ledger = kit_cluster(BALANCED, "100 0");
    /* 0.10 against 0: the idle one; then 0.10 against 0.10: the first. */
    KIT_PLACED(ledger, kit_gang(2, 1, 100), "a/1 a/0");
    kit_destroy(ledger);
}

static void every_strategy_is_complete(void) { /* what fits somewhere is placed somewhere */
    for (int strategy = ACRE_STRATEGY_DEFAULT; strategy < ACRE_STRATEGY_COUNT; strategy++) {
        acre_test_context("%s", acre_strategy_name((enum acre_strategy)strategy));
        struct acre_ledger *ledger =
            kit_cluster((enum acre_strategy)strategy, "900 x 400p|1000|300 1000/700t");
        KIT_PLACED(ledger, kit_share(700), "c/0");
        struct acre_request request = kit_share(300);
        request.isolation = ACRE_ISOLATION_TIME_SLICING;
        KIT_PLACED(ledger, request, "c/2");
        request = kit_share(600);
        request.isolation = ACRE_ISOLATION_MPS;
        KIT_PLACED(ledger, request, "a/2");
        KIT_PLACED(ledger, kit_share(100), "a/0");
        KIT_REFUSED(ledger, kit_share(100), ACRE_ENOFIT, "no room now");
        kit_destroy(ledger);
    }
}

static const struct acre_test tests[] = {
    {"first_fit_takes_the_first", first_fit_takes_the_first, 0},
    {"best_fit_takes_the_tightest", best_fit_takes_the_tightest, 0},
    {"worst_fit_takes_the_emptiest", worst_fit_takes_the_emptiest, 0},
    {"load_is_seven_tenths_share_and_three_allocations",
     load_is_seven_tenths_share_and_three_allocations, 0},
    {"least_fragmentation_starts_as_best_fit", least_fragmentation_starts_as_best_fit, 0},
    {"least_fragmentation_keeps_room_for_what_is_asked",
     least_fragmentation_keeps_room_for_what_is_asked, 0},
    {"the_last_ties_go_to_the_build_that_came_first", the_last_ties_go_to_the_build_that_came_first,
     0},
    {"round_robin_goes_round", round_robin_goes_round, 0},
    {"round_robin_follows_any_use", round_robin_follows_any_use, 0},
    {"a_plan_changes_no_later_answer", a_plan_changes_no_later_answer, 0},
    {"cpu_alone_by_worst_fit_and_balance", cpu_alone_by_worst_fit_and_balance, 0},
    {"a_balanced_gang_counts_its_own_members", a_balanced_gang_counts_its_own_members, 0},
    {"every_strategy_is_complete", every_strategy_is_complete, 0},
};
ACRE_TEST_MAIN(tests)
