/* Bad input: refused with the field, the value and what is accepted; afterwards the ledger is
 * sound and nothing has changed. Integer overflow is tried everywhere a number goes in. */
#include "support/ledger_kit.h"

#include <stdio.h>
#include <stdlib.h>

#define AMOUNT_MAX_TEXT "2147483647"

static void requests_out_of_range(void) { /* ALC-1, ALC-2, ALC-5 */
    static const struct {
        struct acre_request request;
        const char *says;
    } cases[] = {
        {{.replicas = 0, .gpus = 1, .milli = 500},
         "replicas: 0 is out of range; accepted: 1 to 4096"},
        {{.replicas = 4097, .gpus = 1, .milli = 500}, "replicas: 4097 is out of range"},
        {{.replicas = UINT32_MAX, .gpus = 1, .milli = 500}, "replicas: 4294967295 is out of range"},
        {{.replicas = 65537, .gpus = 1, .milli = 500}, "replicas: 65537 is out of range"},
        {{.replicas = 1, .gpus = 65, .milli = 500}, "gpus: 65 is out of range; accepted: 0 to 64"},
        {{.replicas = 1, .gpus = UINT32_MAX, .milli = 500}, "gpus: 4294967295 is out of range"},
        {{.replicas = 1, .gpus = 1, .milli = 1001},
         "milli: 1001 is out of range; accepted: 0 to 1000"},
        {{.replicas = 1, .gpus = 1, .milli = UINT32_MAX}, "milli: 4294967295 is out of range"},
        {{.replicas = 1, .gpus = 1, .mib = UINT64_C(1) << 63},
         "mib: 9223372036854775808 is out of range; accepted: 0 to " AMOUNT_MAX_TEXT},
        {{.replicas = 1, .gpus = 1, .mib = UINT64_C(1) << 31}, "mib: 2147483648 is out of range"},
        {{.replicas = 1, .gpus = 1, .mib = (UINT64_C(1) << 32) + 1}, "mib: 4294967297 is out"},
        {{.replicas = 1, .gpus = 1, .milli = 500, .mib = UINT64_MAX},
         "mib: 18446744073709551615 is out of range"},
        {{.replicas = 1, .cpu_milli = UINT64_C(1) << 31},
         "cpu_milli: 2147483648 is out of range; accepted: 0 to " AMOUNT_MAX_TEXT},
        {{.replicas = 1, .cpu_milli = UINT64_MAX}, "cpu_milli: 18446744073709551615 is out"},
        {{.replicas = 1, .ram_mib = UINT64_C(1) << 63},
         "ram_mib: 9223372036854775808 is out of range; accepted: 0 to " AMOUNT_MAX_TEXT},
        {{.replicas = 1, .gpus = 1, .milli = 500, .ram_mib = UINT64_MAX}, "ram_mib: 184467"},
        {{.replicas = 1, .gpus = 1, .milli = 500, .isolation = ACRE_ISOLATION_COUNT},
         "isolation: 4 is out of range; accepted: 0 to 3"},
        {{.replicas = 1, .gpus = 1, .milli = 500, .strategy = ACRE_STRATEGY_COUNT},
         "strategy: 7 is out of range; accepted: 0 to 6"},
        {{.replicas = 1}, "the request is empty; ask for gpus, cpu_milli or ram_mib"},
        {{.replicas = 1, .gpus = 1},
         "milli and mib are both 0; ask for a share (1 to 1000) or for memory"},
        {{.replicas = 1, .gpus = 1, .exclusive = true},
         "milli and mib are both 0; ask for a share (1 to 1000) or for memory"},
        {{.replicas = 1, .milli = 500},
         "gpus: 0, but a share or memory of a GPU is given; ask for at least 1 GPU"},
        {{.replicas = 1, .mib = 500, .cpu_milli = 1},
         "gpus: 0, but a share or memory of a GPU is given; ask for at least 1 GPU"},
        {{.replicas = 1, .gpus = 1, .milli = 500, .expires_ms = KIT_NOW_MS},
         "expires_ms: 1000 is not in the future (now 1000); accepted: a later time, or 0 for "
         "never"},
        {{.replicas = 1, .gpus = 1, .milli = 500, .expires_ms = 1},
         "expires_ms: 1 is not in the future (now 1000); accepted: a later time, or 0 for never"},
        {{.replicas = UINT32_MAX,
          .gpus = UINT32_MAX,
          .milli = UINT32_MAX,
          .mib = UINT64_MAX,
          .cpu_milli = UINT64_MAX,
          .ram_mib = UINT64_MAX,
          .vendor = UINT32_MAX,
          .owner = UINT64_MAX,
          .tenant = UINT32_MAX,
          .expires_ms = UINT64_MAX,
          .reservation = UINT64_MAX},
         "is out of range"},
    };
    struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_DEFAULT, "500 0|0 300+300");
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        acre_test_context("case %zu: %s", i, cases[i].says);
        KIT_REFUSED(ledger, cases[i].request, ACRE_EINVALID, cases[i].says);
    }
    kit_destroy(ledger);
}

static void the_largest_amounts_do_not_overflow(void) { /* ALC-10 */
    struct acre_ledger *ledger = kit_create(ACRE_STRATEGY_DEFAULT);
    struct acre_device_spec devices[64] = {0};
    char ids[64][8];
    for (uint32_t i = 0; i < 64; i++) {
        snprintf(ids[i], sizeof(ids[i]), "d%u", i);
        devices[i] = (struct acre_device_spec){
            .id = ids[i], .memory_mib = INT32_MAX, .island = UINT32_MAX - i};
    }
    struct acre_node_spec node = {.name = "a",
                                  .cpu_milli = INT32_MAX,
                                  .ram_mib = INT32_MAX,
                                  .devices = devices,
                                  .device_count = 64};
    uint32_t index;
    REQUIRE_EQ(acre_ledger_add_node(ledger, &node, &index, NULL), 0);
    struct acre_request request = kit_gang(1, 64, 0);
    request.mib = INT32_MAX;
    request.cpu_milli = INT32_MAX;
    request.ram_mib = INT32_MAX;
    request.expires_ms = UINT64_MAX;
    request.owner = UINT64_MAX;
    request.tenant = UINT32_MAX;
    for (int strategy = ACRE_STRATEGY_LEAST_WASTE; strategy < ACRE_STRATEGY_COUNT; strategy++) {
        acre_test_context("%s", acre_strategy_name((enum acre_strategy)strategy));
        request.strategy = (enum acre_strategy)strategy;
        uint64_t id = KIT_TAKE(ledger, request);
        struct acre_allocation allocation;
        REQUIRE(acre_ledger_find(ledger, id, &allocation));
        CHECK_EQ(allocation.part_count, 64);
        CHECK_EQ(allocation.parts[63].mib, INT32_MAX);
        CHECK_EQ(allocation.parts[63].milli, 1000);
        KIT_REFUSED(ledger, kit_cpu(1, 0), ACRE_ENOFIT, "no room now");
        KIT_RELEASE(ledger, id);
    }
    request = kit_gang(4096, 1, 0); /* 4096 * (2^31-1) MiB, and as much RAM */
    request.mib = INT32_MAX;
    request.ram_mib = INT32_MAX;
    KIT_REFUSED(ledger, request, ACRE_ENOFIT, "room for 1 of 4096 members");
    request = kit_gang(1023, 64, 1000);
    KIT_REFUSED(ledger, request, ACRE_ENOFIT, "room for 1 of 1023 members");
    request = kit_gang(1024, 64, 1000);
    KIT_REFUSED(
        ledger, request, ACRE_EINVALID,
        "replicas x gpus: 1024 x 64 devices are too many; accepted: at most 65535 in one request");
    request = kit_gang(4096, 64, 1000);
    KIT_REFUSED(ledger, request, ACRE_EINVALID, "replicas x gpus: 4096 x 64 devices");
    kit_destroy(ledger);
}

static const char long_name[] =
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
_Static_assert(sizeof(long_name) - 1 == 129, "one more than is accepted");
static const struct acre_device_spec twice[] = {{.id = "n/0"}, {.id = "n/0"}};
static const struct acre_device_spec taken[] = {{.id = "a/0"}};
static const struct acre_device_spec bad_id[] = {{.id = "n/0"}, {.id = "n\n1"}};
static const struct acre_device_spec no_id[] = {{.id = NULL}};
static const struct acre_device_spec memory[] = {{.id = "n/0", .memory_mib = 1ULL << 63}};
static const struct acre_device_spec memory31[] = {{.id = "n/0", .memory_mib = 1ULL << 31}};
static const struct acre_device_spec step[] = {{.id = "n/0", .step_milli = 1001}};
static const struct acre_device_spec many[65] = {{.id = "n/0"}};
static const char *const no_label[] = {"zone=a", ""};
static const struct {
    struct acre_node_spec spec;
    int code;
    const char *says;
} bad_nodes[] = {
    {{.name = "a"}, ACRE_EEXISTS, "node 'a' already exists"},
    {{.name = ""},
     ACRE_EINVALID,
     "'' is not a node name; accepted: 1 to 128 letters, digits and -_./:@+"},
    {{.name = NULL},
     ACRE_EINVALID,
     "'' is not a node name; accepted: 1 to 128 letters, digits and -_./:@+"},
    {{.name = "bad\nname"},
     ACRE_EINVALID,
     "'bad\\nname' is not a node name; accepted: 1 to 128 letters, digits and -_./:@+"},
    {{.name = long_name},
     ACRE_EINVALID,
     "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...' is not a "
     "node name; accepted: 1 to 128 letters, digits and -_./:@+"},
    {{.name = "n", .cpu_milli = 1ULL << 31},
     ACRE_EINVALID,
     "cpu_milli 2147483648 or ram_mib 0 is out of range; accepted: 0 to " AMOUNT_MAX_TEXT},
    {{.name = "n", .ram_mib = UINT64_MAX}, ACRE_EINVALID, "ram_mib 18446744073709551615"},
    {{.name = "n", .devices = many, .device_count = 65},
     ACRE_EINVALID,
     "node 'n': 65 devices are too many; accepted: 0 to 64"},
    {{.name = "n", .devices = many, .device_count = UINT32_MAX},
     ACRE_EINVALID,
     "node 'n': 4294967295 devices are too many; accepted: 0 to 64"},
    {{.name = "n", .devices = twice, .device_count = 2},
     ACRE_EEXISTS,
     "node 'n': device 'n/0' already exists"},
    {{.name = "n", .devices = taken, .device_count = 1},
     ACRE_EEXISTS,
     "node 'n': device 'a/0' already exists"},
    {{.name = "n", .devices = bad_id, .device_count = 2},
     ACRE_EINVALID,
     "node 'n': device 1: 'n\\n1' is not an id; accepted: 1 to 128 letters, digits and -_./:@+"},
    {{.name = "n", .devices = no_id, .device_count = 1},
     ACRE_EINVALID,
     "node 'n': device 0: '' is not an id; accepted: 1 to 128 letters, digits and -_./:@+"},
    {{.name = "n", .devices = memory, .device_count = 1},
     ACRE_EINVALID,
     "memory_mib: 9223372036854775808 is out of range; accepted: 0 to " AMOUNT_MAX_TEXT},
    {{.name = "n", .devices = memory31, .device_count = 1}, ACRE_EINVALID, "2147483648 is out"},
    {{.name = "n", .devices = step, .device_count = 1},
     ACRE_EINVALID,
     "step_milli: 1001 is out of range; accepted: 0 to 1000"},
    {{.name = "n", .labels = no_label, .label_count = 2}, ACRE_EINVALID, "label"},
};

static void nodes_that_are_refused(void) { /* duplicate node, unknown device, sizes */
    struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_DEFAULT, "500 0|0");
    char *before = kit_snapshot(ledger);
    for (size_t i = 0; i < ACRE_COUNT(bad_nodes); i++) {
        acre_test_context("case %zu", i);
        struct acre_error err = {0};
        uint32_t node = 4711;
        CHECK_EQ(acre_ledger_add_node(ledger, &bad_nodes[i].spec, &node, &err), bad_nodes[i].code);
        CHECK_EQ(err.code, bad_nodes[i].code);
        CHECK_HAS(err.text, bad_nodes[i].says);
        CHECK_EQ(node, 4711);
        CHECK_EQ(acre_ledger_add_node(ledger, &bad_nodes[i].spec, &node, NULL), bad_nodes[i].code);
        char *after = kit_snapshot(ledger);
        CHECK_STR(after, before);
        free(after);
        KIT_SOUND(ledger);
    }
    uint32_t index;
    CHECK(!acre_ledger_find_node(ledger, "n", &index));
    CHECK(!acre_ledger_find_device(ledger, "n/0", &index));
    free(before);
    kit_destroy(ledger);
}

static void indexes_nobody_has(void) { /* unknown device, unknown node */
    struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_DEFAULT, "500 0|0");
    char *before = kit_snapshot(ledger);
    static const uint32_t indexes[] = {3, 4, INT32_MAX, UINT32_MAX};
    for (size_t i = 0; i < ACRE_COUNT(indexes); i++) {
        acre_test_context("index %u", indexes[i]);
        struct acre_error err = {0};
        CHECK_EQ(acre_ledger_drain_device(ledger, indexes[i], "hot", &err), ACRE_ENOTFOUND);
        CHECK_HAS(err.text, "; there are 3 devices");
        CHECK_EQ(acre_ledger_undrain_device(ledger, indexes[i], &err), ACRE_ENOTFOUND);
        CHECK_EQ(acre_ledger_set_foreign(ledger, indexes[i], 1, &err), ACRE_ENOTFOUND);
        CHECK_EQ(acre_ledger_drain_node(ledger, indexes[i], true, &err), ACRE_ENOTFOUND);
        CHECK_HAS(err.text, "; there are 2 nodes");
    }
    static const uint64_t foreign_mib[] = {KIT_MEMORY_MIB + 1, 1ULL << 32, 1ULL << 63, UINT64_MAX};
    for (size_t i = 0; i < ACRE_COUNT(foreign_mib); i++) {
        struct acre_error err = {0};
        CHECK_EQ(acre_ledger_set_foreign(ledger, 0, foreign_mib[i], &err), ACRE_EINVALID);
        CHECK_HAS(err.text, "device 'a/0': foreign memory");
        CHECK_HAS(err.text, "MiB is out of range; accepted: 0 to 81559 MiB");
    }
    char *after = kit_snapshot(ledger);
    CHECK_STR(after, before);
    free(after);
    free(before);
    kit_destroy(ledger);
}

static void allocations_nobody_has(void) {
    struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_DEFAULT, "0");
    uint64_t gone = KIT_TAKE(ledger, kit_share(500));
    KIT_RELEASE(ledger, gone);
    uint64_t id = KIT_TAKE(ledger, kit_share(500));
    const uint64_t ids[] = {0, gone, id + 1, UINT64_MAX};
    char *before = kit_snapshot(ledger);
    for (size_t i = 0; i < ACRE_COUNT(ids); i++) {
        struct acre_error err = {0};
        struct acre_allocation allocation;
        CHECK(!acre_ledger_find(ledger, ids[i], &allocation));
        CHECK_EQ(acre_ledger_release(ledger, ids[i], ACRE_ALLOCATION_COMPLETED, 1, &err),
                 ACRE_ENOTFOUND);
        CHECK_HAS(err.text, "there is no live allocation");
        CHECK_EQ(acre_ledger_activate(ledger, ids[i], 1, &err), ACRE_ENOTFOUND);
        CHECK_EQ(acre_ledger_extend(ledger, ids[i], 5000, 1, &err), ACRE_ENOTFOUND);
    }
    static const int outcomes[] = {ACRE_ALLOCATION_PENDING, ACRE_ALLOCATION_ACTIVE,
                                   ACRE_ALLOCATION_EXPIRED, 77};
    for (size_t i = 0; i < ACRE_COUNT(outcomes); i++) {
        struct acre_error err = {0};
        enum acre_allocation_status outcome = (enum acre_allocation_status)outcomes[i];
        CHECK_EQ(acre_ledger_release(ledger, id, outcome, 1, &err), ACRE_EINVALID);
        CHECK_HAS(err.text, "accepted: completed or failed");
    }
    struct acre_error err = {0};
    CHECK_EQ(acre_ledger_activate(ledger, id, 1, &err), ACRE_ECONFLICT);
    CHECK_HAS(err.text, "allocation 2 is already active");
    CHECK_EQ(acre_ledger_extend(ledger, id, KIT_NOW_MS, KIT_NOW_MS, &err), ACRE_EINVALID);
    CHECK_HAS(
        err.text,
        "expires_ms: 1000 is not in the future (now 1000); accepted: a later time, or 0 for never");
    char *after = kit_snapshot(ledger);
    CHECK_STR(after, before);
    free(after);
    free(before);
    kit_destroy(ledger);
}

static void a_plan_needs_room_for_its_parts(void) {
    struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_DEFAULT, "0 0 0 0");
    struct acre_request request = kit_gang(2, 2, 1000);
    CHECK_EQ(acre_request_parts(&request), 4);
    struct acre_part parts[4];
    uint32_t count = 4711;
    struct acre_error err = {0};
    CHECK_EQ(acre_ledger_plan(ledger, &request, KIT_NOW_MS, parts, 3, &count, &err), ACRE_ELIMIT);
    CHECK_HAS(err.text, "parts: the request has 4 parts, but there is room for 3");
    CHECK_EQ(count, 4711);
    CHECK_EQ(acre_ledger_plan(ledger, &request, KIT_NOW_MS, parts, 4, &count, &err), 0);
    CHECK_EQ(count, 4);
    kit_destroy(ledger);
}

static void strategies_by_name(void) { /* ALC-3 */
    for (int i = 0; i < ACRE_STRATEGY_COUNT; i++) {
        enum acre_strategy strategy = ACRE_STRATEGY_COUNT;
        const char *name = acre_strategy_name((enum acre_strategy)i);
        CHECK_EQ(acre_strategy_parse("strategy", name, &strategy, NULL), 0);
        CHECK_EQ(strategy, i);
    }
    static const char *const bad[] = {"", "bestfit", "Best-Fit", "best-fit ", "\x1b[31m"};
    for (size_t i = 0; i < ACRE_COUNT(bad); i++) {
        struct acre_error err = {0};
        enum acre_strategy strategy = ACRE_STRATEGY_COUNT;
        CHECK_EQ(acre_strategy_parse("strategy", bad[i], &strategy, &err), ACRE_EINVALID);
        CHECK_EQ(strategy, ACRE_STRATEGY_COUNT);
        CHECK_HAS(err.text, "strategy: '");
        CHECK_HAS(err.text, "accepted: default, least-fragmentation, first-fit, best-fit");
        CHECK(strchr(err.text, '\x1b') == NULL);
    }
}

static const struct acre_test tests[] = {
    {"requests_out_of_range", requests_out_of_range, 0},
    {"the_largest_amounts_do_not_overflow", the_largest_amounts_do_not_overflow, 0},
    {"nodes_that_are_refused", nodes_that_are_refused, 0},
    {"indexes_nobody_has", indexes_nobody_has, 0},
    {"allocations_nobody_has", allocations_nobody_has, 0},
    {"a_plan_needs_room_for_its_parts", a_plan_needs_room_for_its_parts, 0},
    {"strategies_by_name", strategies_by_name, 0},
};
ACRE_TEST_MAIN(tests)
