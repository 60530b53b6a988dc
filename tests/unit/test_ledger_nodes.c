/* Nodes and devices: how they are found and shown, drained, and what others' processes take. */
#include "support/ledger_kit.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

static void nodes_and_devices_are_found_by_name(void) {
    struct acre_ledger *ledger = kit_create(ACRE_STRATEGY_DEFAULT);
    uint32_t index = 4711;
    CHECK(!acre_ledger_find_node(ledger, "a", &index));
    CHECK(!acre_ledger_find_device(ledger, "a/0", &index));
    CHECK_EQ(kit_add(ledger, "a", 2, 81559), 0);
    CHECK_EQ(kit_add(ledger, "b", 0, 0), 1);
    CHECK_EQ(kit_add(ledger, "c", 1, 0), 2);
    CHECK_EQ(acre_ledger_node_count(ledger), 3);
    CHECK_EQ(acre_ledger_device_count(ledger), 3);
    static const struct {
        const char *name;
        bool is_node, is_device;
        uint32_t index;
    } cases[] = {
        {"a", true, false, 0},     {"b", true, false, 1},   {"c", true, false, 2},
        {"a/0", false, true, 0},   {"a/1", false, true, 1}, {"c/0", false, true, 2},
        {"H100", false, false, 0}, {"d", false, false, 0},  {"", false, false, 0},
        {"A", false, false, 0},    {"a/", false, false, 0},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        acre_test_context("'%s'", cases[i].name);
        CHECK_EQ(acre_ledger_find_node(ledger, cases[i].name, &index), cases[i].is_node);
        CHECK_EQ(acre_ledger_find_device(ledger, cases[i].name, &index), cases[i].is_device);
        if (cases[i].is_node || cases[i].is_device) {
            CHECK_EQ(index, cases[i].index);
        }
    }
    kit_destroy(ledger);
    acre_ledger_destroy(NULL);
}

static void a_name_may_be_a_node_and_a_device(void) { /* two kinds of things, two name spaces */
    struct acre_ledger *ledger = kit_create(ACRE_STRATEGY_DEFAULT);
    struct acre_device_spec device = {.id = "same", .model = "same", .memory_mib = 10};
    kit_add_devices(ledger, "same", &device, 1);
    uint32_t index;
    CHECK(acre_ledger_find_node(ledger, "same", &index));
    CHECK(acre_ledger_find_device(ledger, "same", &index));
    kit_destroy(ledger);
}

static void what_is_shown_is_what_was_given(void) { /* CAP-1, DEV-1 */
    struct acre_ledger *ledger = kit_create(ACRE_STRATEGY_DEFAULT);
    struct acre_device_spec devices[] = {
        {.id = "GPU-1", .model = "H100", .vendor = "nvidia", .memory_mib = 81559, .island = 9},
        {.id = "0000:0a:00.0", .model = "MI300X", .vendor = "amd", .memory_mib = 196592},
        {.id = "GPU-2"},
    };
    uint32_t node = kit_add_devices(ledger, "host.example:1", devices, 3);
    struct acre_ledger_node info;
    acre_ledger_node_info(ledger, node, &info);
    CHECK_STR(info.name, "host.example:1");
    CHECK_EQ(info.first_device, 0);
    CHECK_EQ(info.device_count, 3);
    CHECK_EQ(info.cpu_milli, KIT_CPU_MILLI);
    CHECK_EQ(info.cpu_free_milli, KIT_CPU_MILLI);
    CHECK_EQ(info.ram_mib, KIT_RAM_MIB);
    CHECK_EQ(info.ram_free_mib, KIT_RAM_MIB);
    CHECK(!info.drained);
    for (uint32_t i = 0; i < 3; i++) { /* in the order given, whatever the ledger sorts by */
        struct acre_ledger_device row;
        acre_ledger_device_info(ledger, i, &row);
        CHECK_STR(row.id, devices[i].id);
        CHECK_STR(row.model, devices[i].model != NULL ? devices[i].model : "");
        CHECK_EQ(row.node, node);
        CHECK_EQ(row.memory_mib, devices[i].memory_mib);
        CHECK_EQ(row.foreign_mib, 0);
        CHECK_EQ(row.milli_used, 0);
        CHECK_EQ(row.allocations, 0);
        CHECK_EQ(row.largest_milli, 1000);
        CHECK(!row.drained);
        CHECK_STR(row.reason, "");
    }
    kit_destroy(ledger);
}

static void a_drained_device_takes_nothing_new(void) { /* CAP-10; what is there stays */
    for (int strategy = ACRE_STRATEGY_LEAST_WASTE; strategy < ACRE_STRATEGY_COUNT; strategy++) {
        acre_test_context("%s", acre_strategy_name((enum acre_strategy)strategy));
        struct acre_ledger *ledger = kit_cluster((enum acre_strategy)strategy, "0 0");
        uint64_t id = KIT_PLACED(ledger, kit_share(500), "a/0");
        CHECK_EQ(acre_ledger_drain_device(ledger, 0, "temperature 91 C", NULL), 0);
        KIT_SOUND(ledger);
        struct acre_ledger_device row = kit_row(ledger, "a/0");
        CHECK(row.drained);
        CHECK_STR(row.reason, "temperature 91 C");
        CHECK_EQ(row.milli_used, 500);
        CHECK_EQ(row.largest_milli, 0);
        KIT_PLACED(ledger, kit_share(500), "a/1");
        KIT_PLACED(ledger, kit_share(500), "a/1");
        KIT_REFUSED(ledger, kit_share(500), ACRE_ENOFIT, "full or drained");
        CHECK_EQ(acre_ledger_drain_device(ledger, 0, "XID 79", NULL), 0); /* again: new reason */
        CHECK_STR(kit_row(ledger, "a/0").reason, "XID 79");
        KIT_RELEASE(ledger, id);
        KIT_REFUSED(ledger, kit_share(500), ACRE_ENOFIT, "full or drained");
        CHECK_EQ(acre_ledger_undrain_device(ledger, 0, NULL), 0);
        CHECK_STR(kit_row(ledger, "a/0").reason, "");
        CHECK(!kit_row(ledger, "a/0").drained);
        KIT_PLACED(ledger, kit_whole(1), "a/0");
        CHECK_EQ(acre_ledger_undrain_device(ledger, 0, NULL), 0);     /* again: nothing happens */
        CHECK_EQ(acre_ledger_drain_device(ledger, 0, NULL, NULL), 0); /* no reason is one too */
        CHECK_STR(kit_row(ledger, "a/0").reason, "");
        kit_destroy(ledger);
    }
}

static void a_drained_node_takes_nothing_new(void) {
    for (int strategy = ACRE_STRATEGY_LEAST_WASTE; strategy < ACRE_STRATEGY_COUNT; strategy++) {
        acre_test_context("%s", acre_strategy_name((enum acre_strategy)strategy));
        struct acre_ledger *ledger = kit_cluster((enum acre_strategy)strategy, "0 0|0 0");
        uint64_t id = KIT_TAKE(ledger, kit_share(500));
        struct acre_allocation allocation;
        REQUIRE(acre_ledger_find(ledger, id, &allocation));
        uint32_t node = allocation.parts[0].node;
        const char *other = node == 0 ? "b/0 b/1" : "a/0 a/1";
        CHECK_EQ(acre_ledger_drain_node(ledger, node, true, NULL), 0);
        CHECK_EQ(acre_ledger_drain_node(ledger, node, true, NULL), 0);
        KIT_SOUND(ledger);
        struct acre_ledger_node info;
        acre_ledger_node_info(ledger, node, &info);
        CHECK(info.drained);
        struct acre_ledger_device row;
        acre_ledger_device_info(ledger, info.first_device + 1, &row);
        CHECK(row.drained);
        CHECK_EQ(row.largest_milli, 0);
        KIT_PLACED(ledger, kit_whole(2), other);
        KIT_REFUSED(ledger, kit_share(100), ACRE_ENOFIT, "full or drained");
        KIT_RELEASE(ledger, id);
        CHECK_EQ(acre_ledger_set_foreign(ledger, info.first_device, 100, NULL), 0);
        CHECK_EQ(acre_ledger_drain_device(ledger, info.first_device + 1, "hot", NULL), 0);
        KIT_SOUND(ledger);
        CHECK_EQ(acre_ledger_drain_node(ledger, node, false, NULL), 0);
        CHECK_EQ(acre_ledger_drain_node(ledger, node, false, NULL), 0);
        KIT_SOUND(ledger); /* all that changed meanwhile is seen */
        KIT_REFUSED(ledger, kit_whole(1), ACRE_ENOFIT, "no room now");
        KIT_PLACED(ledger, kit_share(500), node == 0 ? "a/0" : "b/0");
        kit_destroy(ledger);
    }
}

static void foreign_memory_is_counted_before_placing(void) { /* DEV-6 */
    static const struct {
        uint64_t foreign_mib;
        uint32_t largest_milli;
        uint64_t largest_mib;
    } cases[] = {
        {0, 1000, 81559},    {1, 999, 81558},     {81, 999, 81478}, {82, 998, 81477},
        {40779, 500, 40780}, {40780, 499, 40779}, {81558, 0, 1},    {81559, 0, 0},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        acre_test_context("%llu MiB", (unsigned long long)cases[i].foreign_mib);
        struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_DEFAULT, "0");
        CHECK_EQ(acre_ledger_set_foreign(ledger, 0, cases[i].foreign_mib, NULL), 0);
        KIT_SOUND(ledger);
        struct acre_ledger_device row = kit_row(ledger, "a/0");
        CHECK_EQ(row.foreign_mib, cases[i].foreign_mib);
        CHECK_EQ(row.largest_milli, cases[i].largest_milli);
        CHECK_EQ(row.milli_used, 0);
        if (cases[i].foreign_mib > 0) {
            KIT_REFUSED(ledger, kit_whole(1), ACRE_ENOFIT, "no room now");
            struct acre_request alone = kit_share(100);
            alone.exclusive = true;
            KIT_REFUSED(ledger, alone, ACRE_ENOFIT, "no room now");
            KIT_REFUSED(ledger, kit_memory(cases[i].largest_mib + 1), ACRE_ENOFIT,
                        cases[i].largest_milli > 0 ? "on a, and the most free memory of a GPU is"
                                                   : "full");
        }
        if (cases[i].largest_milli >= 100 && cases[i].largest_milli < 1000) {
            KIT_REFUSED(ledger, kit_share(cases[i].largest_milli + 1), ACRE_ENOFIT, "no room now");
            KIT_RELEASE(ledger, KIT_TAKE(ledger, kit_share(cases[i].largest_milli)));
        }
        if (cases[i].largest_mib > 0) {
            KIT_RELEASE(ledger, KIT_TAKE(ledger, kit_memory(cases[i].largest_mib)));
        }
        CHECK_EQ(acre_ledger_set_foreign(ledger, 0, 0, NULL), 0);
        KIT_TAKE(ledger, kit_whole(1));
        kit_destroy(ledger);
    }
}

static void foreign_memory_may_come_where_work_is(void) { /* DEV-6: nothing is taken away */
    struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_DEFAULT, "0");
    uint64_t share = KIT_TAKE(ledger, kit_share(500));
    uint64_t memory = KIT_TAKE(ledger, kit_memory(20000));
    CHECK_EQ(acre_ledger_set_foreign(ledger, 0, KIT_MEMORY_MIB, NULL), 0);
    KIT_SOUND(ledger);
    CHECK_EQ(kit_row(ledger, "a/0").largest_milli, 0);
    CHECK_EQ(kit_row(ledger, "a/0").milli_used, 746);
    KIT_REFUSED(ledger, kit_memory(1), ACRE_ENOFIT, "no room now");
    KIT_RELEASE(ledger, share);
    KIT_REFUSED(ledger, kit_memory(1), ACRE_ENOFIT, "no room now");
    CHECK_EQ(acre_ledger_set_foreign(ledger, 0, 61558, NULL), 0);
    KIT_TAKE(ledger, kit_memory(1));
    KIT_RELEASE(ledger, memory);
    kit_destroy(ledger);
}

static void nodes_may_come_at_any_time(void) { /* each index built before knows the new ones */
    for (int strategy = ACRE_STRATEGY_LEAST_WASTE; strategy < ACRE_STRATEGY_COUNT; strategy++) {
        acre_test_context("%s", acre_strategy_name((enum acre_strategy)strategy));
        struct acre_ledger *ledger = kit_create((enum acre_strategy)strategy);
        for (uint32_t i = 0; i < 150; i++) { /* beyond 64 and 128: the order grows */
            char name[16];
            snprintf(name, sizeof(name), "n%u", i);
            kit_add(ledger, name, 1, 10000 + i % 7); /* several builds, and of each several */
            struct acre_allocation allocation;
            REQUIRE(acre_ledger_find(ledger, KIT_TAKE(ledger, kit_whole(1)), &allocation));
            CHECK_EQ(allocation.parts[0].node, i);
            KIT_REFUSED(ledger, kit_whole(1), ACRE_ENOFIT, "full");
        }
        kit_destroy(ledger);
    }
}

static void memory_is_accounted_for(void) { /* acre_ledger_bytes: against the heap's own count */
    struct mallinfo2 before = mallinfo2();
    struct acre_ledger *ledger = kit_create(ACRE_STRATEGY_DEFAULT);
    size_t empty = acre_ledger_bytes(ledger);
    for (uint32_t i = 0; i < 2000; i++) {
        char name[16];
        snprintf(name, sizeof(name), "node-%u", i);
        kit_add(ledger, name, 8, 80000 + i % 3);
    }
    size_t idle = acre_ledger_bytes(ledger);
    CHECK(idle > empty);
    CHECK(idle - empty < 256 * 16000); /* the figure, without allocations */
    for (int round = 0; round < 3; round++) {
        uint64_t ids[5000];
        for (int i = 0; i < 5000; i++) {
            struct acre_request request = kit_share(100 + 50 * (uint32_t)(i % 7));
            request.models[0] = i % 2 ? kit_name(ledger, "H100") : 0;
            request.expires_ms = i % 3 ? 5000 : 0;
            REQUIRE_EQ(acre_ledger_allocate(ledger, &request, KIT_NOW_MS, &ids[i], NULL), 0);
        }
        for (int i = 0; i < 5000 && round < 2; i++) {
            REQUIRE_EQ(acre_ledger_release(ledger, ids[i], ACRE_ALLOCATION_COMPLETED, 1, NULL), 0);
        }
    }
    size_t used = acre_ledger_bytes(ledger);
    struct mallinfo2 after = mallinfo2();
    size_t heap = after.uordblks + after.hblkhd - before.uordblks - before.hblkhd;
    CHECK(used > idle);
    if (after.uordblks > 0) { /* sanitizers keep their own heap and say 0 */
        CHECK_NEAR((double)used / (double)heap, 1.0, 0.05);
    }
    KIT_SOUND(ledger);
    kit_destroy(ledger);
}

static void memory_does_not_grow_with_use(void) { /* churn in one state of the cluster */
    struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_DEFAULT, "0 0 0 0|0 0 0 0");
    size_t bytes = 0;
    for (uint32_t i = 0; i < 60000; i++) {
        struct acre_request request = kit_share(100 + 100 * (i % 3));
        request.cpu_milli = 100 + i % 5000; /* thousands of states, most never seen again */
        uint64_t id;
        REQUIRE_EQ(acre_ledger_allocate(ledger, &request, KIT_NOW_MS, &id, NULL), 0);
        REQUIRE_EQ(acre_ledger_release(ledger, id, ACRE_ALLOCATION_COMPLETED, 1, NULL), 0);
        if (i == 30000) {
            bytes = acre_ledger_bytes(ledger);
        }
    }
    CHECK(acre_ledger_bytes(ledger) <= bytes + bytes / 10);
    kit_destroy(ledger);
}

static const struct acre_test tests[] = {
    {"nodes_and_devices_are_found_by_name", nodes_and_devices_are_found_by_name, 0},
    {"a_name_may_be_a_node_and_a_device", a_name_may_be_a_node_and_a_device, 0},
    {"what_is_shown_is_what_was_given", what_is_shown_is_what_was_given, 0},
    {"a_drained_device_takes_nothing_new", a_drained_device_takes_nothing_new, 0},
    {"a_drained_node_takes_nothing_new", a_drained_node_takes_nothing_new, 0},
    {"foreign_memory_is_counted_before_placing", foreign_memory_is_counted_before_placing, 0},
    {"foreign_memory_may_come_where_work_is", foreign_memory_may_come_where_work_is, 0},
    {"nodes_may_come_at_any_time", nodes_may_come_at_any_time, 0},
    {"memory_is_accounted_for", memory_is_accounted_for, 0},
    {"memory_does_not_grow_with_use", memory_does_not_grow_with_use, 0},
};
ACRE_TEST_MAIN(tests)
