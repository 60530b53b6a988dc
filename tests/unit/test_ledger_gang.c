/* Gangs (ALC-7): all parts or none; one island, then one node, then the fewest nodes. */
#include "support/ledger_kit.h"

#include <stdio.h>
#include <stdlib.h>

struct row {
    const char *what;
    const char *cluster;
    uint32_t replicas, gpus, milli;
    uint64_t cpu_milli;
    const char *where;
};

/* Rules of topology hold for every strategy; these clusters leave none of them a choice. */
static void run_rows(const struct row *rows, size_t count, enum acre_strategy strategy) {
    for (size_t i = 0; i < count; i++) {
        acre_test_context("%s: %s: %u x %u x %u in [%s]", acre_strategy_name(strategy),
                          rows[i].what, rows[i].replicas, rows[i].gpus, rows[i].milli,
                          rows[i].cluster);
        struct acre_ledger *ledger = kit_cluster(strategy, rows[i].cluster);
        struct acre_request request =
            kit_gang(rows[i].replicas, rows[i].gpus, rows[i].gpus > 0 ? rows[i].milli : 0);
        request.cpu_milli = rows[i].cpu_milli;
        char *before = kit_snapshot(ledger);
        uint64_t id = KIT_PLACED(ledger, request, rows[i].where);
        if (id != 0) {
            struct acre_allocation gang;
            REQUIRE(acre_ledger_find(ledger, id, &gang));
            CHECK_EQ(gang.part_count, acre_request_parts(&request));
            KIT_RELEASE(ledger, id);
        }
        char *after = kit_snapshot(ledger); /* refused or released: as it was */
        CHECK_STR(after, before);
        free(before);
        free(after);
        kit_destroy(ledger);
    }
}

static void one_island_then_one_node_then_few(void) { /* ALC-7 */
    static const struct row rows[] = {
        {"in one island", "500 0/0 0", 1, 2, 1000, 0, "a/2 a/3"},
        {"in the island that holds all", "0 0/0 0 0", 1, 3, 1000, 0, "a/2 a/3 a/4"},
        {"one island of another node", "0/0|0 0", 1, 2, 1000, 0, "b/0 b/1"},
        {"across islands if it must", "0/0|0", 1, 2, 1000, 0, "a/0 a/1"},
        {"across islands, fewest", "0/0 0/0", 1, 3, 1000, 0, "a/1 a/2 a/0"},
        {"members in one island", "0 500/0 0|0", 2, 1, 1000, 0, "a/2 a/3"},
        {"members on one node", "0/0|0", 2, 1, 1000, 0, "a/0 a/1"},
        {"members on one node of several", "0|0 0|0", 2, 1, 1000, 0, "b/0 b/1"},
        {"members of two, an island each", "0 0/0 0", 2, 2, 1000, 0, "a/0 a/1 a/2 a/3"},
        {"members of two never part an island", "0 0/0 0/0", 2, 2, 1000, 0, "a/0 a/1 a/2 a/3"},
        {"nothing for part of it", "0 0|0", 4, 1, 1000, 0, "-"},
        {"nothing for a member that does not fit", "0|0", 1, 2, 1000, 0, "-"},
        {"CPU for all or none", "0 0@1500", 2, 1, 500, 1000, "-"},
    };
    for (int strategy = ACRE_STRATEGY_LEAST_WASTE; strategy < ACRE_STRATEGY_COUNT; strategy++) {
        if (strategy != ACRE_STRATEGY_FIRST_FIT && strategy != ACRE_STRATEGY_ROUND_ROBIN) {
            run_rows(rows, ACRE_COUNT(rows), (enum acre_strategy)strategy);
        }
    }
}

static void in_order_strategies_take_nodes_in_order(void) { /* ALC-3: the node comes first */
    static const struct row rows[] = {
        {"the first node, across islands", "0/0|0 0", 1, 2, 1000, 0, "a/0 a/1"},
        {"in one island of the first node", "0/0 0|0 0", 1, 2, 1000, 0, "a/1 a/2"},
        {"the first node that holds all", "0|0 0 0|0 0", 2, 1, 1000, 0, "b/0 b/1"},
    };
    run_rows(rows, ACRE_COUNT(rows), ACRE_STRATEGY_FIRST_FIT);
    run_rows(rows, ACRE_COUNT(rows), ACRE_STRATEGY_ROUND_ROBIN);
}

static void cpu_and_ram_are_on_the_first_part_of_each_member(void) { /* ledger.h */
    struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_DEFAULT, "0 0 0 0");
    struct acre_request request = kit_gang(2, 2, 1000);
    request.cpu_milli = 3000;
    request.ram_mib = 512;
    struct acre_allocation gang;
    REQUIRE(acre_ledger_find(ledger, KIT_TAKE(ledger, request), &gang));
    REQUIRE_EQ(gang.part_count, 4);
    for (uint32_t i = 0; i < 4; i++) {
        CHECK_EQ(gang.parts[i].cpu_milli, i % 2 == 0 ? 3000 : 0);
        CHECK_EQ(gang.parts[i].ram_mib, i % 2 == 0 ? 512 : 0);
    }
    struct acre_ledger_node node;
    acre_ledger_node_info(ledger, 0, &node);
    CHECK_EQ(node.cpu_free_milli, KIT_CPU_MILLI - 6000);
    CHECK_EQ(node.ram_free_mib, KIT_RAM_MIB - 1024);
    kit_destroy(ledger);
}

static void ten_tenths_of_one_device(void) { /* ALC-1: rounding is once, not per member */
    struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_DEFAULT, "0|0");
    KIT_PLACED(ledger, kit_gang(10, 1, 100), "a/0 a/0 a/0 a/0 a/0 a/0 a/0 a/0 a/0 a/0");
    CHECK_EQ(kit_row(ledger, "a/0").largest_milli, 0);
    KIT_PLACED(ledger, kit_gang(3, 1, 333), "b/0 b/0 b/0");
    CHECK_EQ(kit_row(ledger, "b/0").largest_milli, 1);
    kit_destroy(ledger);
}

static const struct acre_test tests[] = {
    {"one_island_then_one_node_then_few", one_island_then_one_node_then_few, 0},
    {"in_order_strategies_take_nodes_in_order", in_order_strategies_take_nodes_in_order, 0},
    {"cpu_and_ram_are_on_the_first_part_of_each_member",
     cpu_and_ram_are_on_the_first_part_of_each_member, 0},
    {"ten_tenths_of_one_device", ten_tenths_of_one_device, 0},
};
ACRE_TEST_MAIN(tests)
