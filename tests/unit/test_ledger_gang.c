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

static void fewest_nodes_and_the_last_is_tightest(void) { /* ALC-7 */
    static const struct row rows[] = {
        {"roomiest first, then what holds the rest", "0|0 0 0|0 0", 5, 1, 1000, 0,
         "b/0 b/1 b/2 c/0 c/1"},
        {"the last is the tightest", "0 0 0|0 0|0", 4, 1, 1000, 0, "a/0 a/1 a/2 c/0"},
        {"equal nodes in order, one of them for the rest", "0 0|0 0|0 0", 5, 1, 1000, 0,
         "a/0 a/1 b/0 b/1 c/0"},
        {"equal nodes, all full", "0 0|0 0|0 0", 6, 1, 1000, 0, "a/0 a/1 b/0 b/1 c/0 c/1"},
        {"equal nodes, less than two of them", "0 0 0|0 0 0|0", 4, 1, 1000, 0, "a/0 a/1 a/2 c/0"},
        {"the rest in a roomier node when no other is left", "0 0 0|0 0 0", 4, 1, 1000, 0,
         "a/0 a/1 a/2 b/0"},
        {"members of two", "0 0 0|0 0|0 0", 3, 2, 1000, 0, "b/0 b/1 c/0 c/1 a/0 a/1"},
        {"members of two, four on a node", "0 0|0 0 0 0", 3, 2, 1000, 0, "b/0 b/1 b/2 b/3 a/0 a/1"},
        {"CPU decides how many a node holds", "0 0 0 0@2000|0 0 0 0@3000", 4, 1, 1000, 1000,
         "b/0 b/1 b/2 a/0"},
        {"shares", "500 0|700", 4, 1, 500, 0, "-"},
        {"shares of several devices", "500|500|500", 3, 1, 500, 0, "a/0 b/0 c/0"},
        {"CPU alone", "0@3000|0@2000|0@2500", 5, 0, 0, 1000, "a a a b b"},
        {"drained ones are not counted", "0 x|x|0 0", 3, 1, 1000, 0, "c/0 c/1 a/0"},
        {"one too many", "0 0|0 0", 5, 1, 1000, 0, "-"},
    };
    for (int strategy = ACRE_STRATEGY_LEAST_WASTE; strategy < ACRE_STRATEGY_COUNT; strategy++) {
        run_rows(rows, ACRE_COUNT(rows), (enum acre_strategy)strategy);
    }
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

static void a_gang_too_keeps_to_the_shares_a_device_takes(void) { /* ALC-9 */
    uint32_t max = rules_default()->max_allocations_per_device;
    for (int strategy = ACRE_STRATEGY_LEAST_WASTE; strategy < ACRE_STRATEGY_COUNT; strategy++) {
        acre_test_context("%s", acre_strategy_name((enum acre_strategy)strategy));
        struct acre_ledger *ledger = kit_cluster((enum acre_strategy)strategy, "0 0");
        struct acre_request request = kit_gang(2 * max, 1, 0);
        request.mib = 10;
        uint64_t id = KIT_TAKE(ledger, request);
        CHECK_EQ(kit_row(ledger, "a/0").allocations, max);
        CHECK_EQ(kit_row(ledger, "a/1").allocations, max);
        KIT_RELEASE(ledger, id);
        request.replicas = 2 * max + 1;
        KIT_REFUSED(ledger, request, ACRE_ENOFIT, "no room now");
        kit_destroy(ledger);
    }
}

static void a_gang_by_share_keeps_to_it_too(void) { /* ALC-9: three to a device */
    struct acre_rules rules = *rules_default();
    rules.max_allocations_per_device = 3;
    struct acre_ledger_options options = {.strategy = ACRE_STRATEGY_FIRST_FIT, .rules = &rules};
    struct acre_ledger *ledger = acre_ledger_create(&options);
    kit_add(ledger, "a", 2, KIT_MEMORY_MIB);
    KIT_PLACED(ledger, kit_share(300), "a/0");
    KIT_PLACED(ledger, kit_gang(4, 1, 200), "a/0 a/0 a/1 a/1");
    KIT_PLACED(ledger, kit_gang(2, 1, 200), "-");
    KIT_PLACED(ledger, kit_gang(1, 1, 200), "a/1");
    kit_destroy(ledger);
}

static void equal_nodes_are_used_in_order(void) { /* however they came into their state */
    enum { NODES = 60, LEFT = 40 };
    struct acre_ledger *ledger = kit_create(ACRE_STRATEGY_DEFAULT);
    for (uint32_t i = 0; i < NODES; i++) {
        char name[16];
        snprintf(name, sizeof(name), "n%02u", i);
        kit_add(ledger, name, 2, KIT_MEMORY_MIB);
    }
    for (uint32_t i = 0; i < NODES; i++) { /* out and in again, in another order */
        uint32_t node = i * 37 % NODES;
        REQUIRE_EQ(acre_ledger_drain_node(ledger, node, true, NULL), 0);
    }
    for (uint32_t i = 0; i < NODES; i++) {
        uint32_t node = i * 23 % NODES;
        REQUIRE_EQ(acre_ledger_drain_node(ledger, node, false, NULL), 0);
        KIT_SOUND(ledger);
    }
    for (uint32_t i = 0; i < NODES - LEFT; i++) {
        uint32_t node = i * 41 % NODES;
        REQUIRE_EQ(acre_ledger_drain_node(ledger, node, true, NULL), 0);
        KIT_SOUND(ledger);
    }
    struct acre_allocation gang;
    REQUIRE(acre_ledger_find(ledger, KIT_TAKE(ledger, kit_gang(2 * LEFT - 1, 1, 1000)), &gang));
    for (uint32_t i = 1; i < gang.part_count; i++) {
        CHECK(gang.parts[i].device > gang.parts[i - 1].device);
    }
    KIT_TAKE(ledger, kit_whole(1));
    KIT_REFUSED(ledger, kit_whole(1), ACRE_ENOFIT, "no room now");
    kit_destroy(ledger);
}

static void the_largest_gang(void) { /* request.h: 4096 members */
    struct acre_ledger *ledger = kit_create(ACRE_STRATEGY_DEFAULT);
    for (uint32_t i = 0; i < 64; i++) {
        char name[16];
        snprintf(name, sizeof(name), "n%02u", i);
        kit_add(ledger, name, 64, KIT_MEMORY_MIB);
    }
    struct acre_request request = kit_gang(4096, 1, 1000);
    uint64_t id = KIT_TAKE(ledger, request);
    struct acre_allocation gang;
    REQUIRE(acre_ledger_find(ledger, id, &gang));
    REQUIRE_EQ(gang.part_count, 4096);
    for (uint32_t i = 0; i < 4096; i++) { /* node after node, device after device */
        CHECK_EQ(gang.parts[i].device, i);
    }
    KIT_REFUSED(ledger, kit_share(100), ACRE_ENOFIT, "full");
    KIT_RELEASE(ledger, id);
    REQUIRE_EQ(acre_ledger_drain_device(ledger, 4095, "hot", NULL), 0);
    KIT_REFUSED(ledger, request, ACRE_ENOFIT, "room for 4095 of 4096 members");
    request.replicas = 4095;
    KIT_TAKE(ledger, request);
    kit_destroy(ledger);
}

static const struct acre_test tests[] = {
    {"one_island_then_one_node_then_few", one_island_then_one_node_then_few, 0},
    {"in_order_strategies_take_nodes_in_order", in_order_strategies_take_nodes_in_order, 0},
    {"fewest_nodes_and_the_last_is_tightest", fewest_nodes_and_the_last_is_tightest, 0},
    {"cpu_and_ram_are_on_the_first_part_of_each_member",
     cpu_and_ram_are_on_the_first_part_of_each_member, 0},
    {"ten_tenths_of_one_device", ten_tenths_of_one_device, 0},
    {"a_gang_too_keeps_to_the_shares_a_device_takes", a_gang_too_keeps_to_the_shares_a_device_takes,
     0},
    {"a_gang_by_share_keeps_to_it_too", a_gang_by_share_keeps_to_it_too, 0},
    {"equal_nodes_are_used_in_order", equal_nodes_are_used_in_order, 0},
    {"the_largest_gang", the_largest_gang, 0},
};
ACRE_TEST_MAIN(tests)
