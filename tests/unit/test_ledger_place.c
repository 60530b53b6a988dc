/* Taking exactly these parts: committing a plan, replaying a log. All of them or none. */
#include "support/ledger_kit.h"

#include <stdlib.h>

static struct acre_part part_of(uint32_t node, uint32_t device, uint32_t milli) {
    return (struct acre_part){.node = node,
                              .device = device,
                              .milli = milli,
                              .mib = (uint32_t)((uint64_t)KIT_MEMORY_MIB * milli / 1000),
                              .by_share = true};
}

static void a_plan_can_be_committed(void) { /* CAP-7: reserve, then commit */
    for (int strategy = ACRE_STRATEGY_LEAST_WASTE; strategy < ACRE_STRATEGY_COUNT; strategy++) {
        acre_test_context("%s", acre_strategy_name((enum acre_strategy)strategy));
        struct acre_ledger *ledger =
            kit_cluster((enum acre_strategy)strategy, "500 0 0|0 0/0 0|300p 0");
        struct acre_request request = kit_gang(3, 2, 1000);
        request.cpu_milli = 1500;
        struct acre_part parts[6];
        uint32_t count = 0;
        char *before = kit_snapshot(ledger);
        REQUIRE_EQ(acre_ledger_plan(ledger, &request, KIT_NOW_MS, parts, 6, &count, NULL), 0);
        char *after = kit_snapshot(ledger); /* a plan takes nothing */
        CHECK_STR(after, before);
        REQUIRE_EQ(count, 6);
        uint64_t id = 0;
        REQUIRE_EQ(acre_ledger_place(ledger, &request, parts, count, 0, KIT_NOW_MS, &id, NULL), 0);
        struct acre_allocation allocation;
        REQUIRE(acre_ledger_find(ledger, id, &allocation));
        CHECK_EQ(allocation.part_count, 6);
        for (uint32_t i = 0; i < 6; i++) {
            CHECK(kit_same_part(&allocation.parts[i], &parts[i]));
            CHECK_EQ(parts[i].cpu_milli, i % 2 == 0 ? 1500 : 0);
        }
        KIT_SOUND(ledger);
        struct acre_error err = {0}; /* the same plan again: its devices are gone */
        CHECK_EQ(acre_ledger_place(ledger, &request, parts, count, 0, KIT_NOW_MS, &id, &err),
                 ACRE_ECONFLICT);
        CHECK_HAS(err.text, "device 'b/0' has 0.0 of it free; this needs 1.0");
        KIT_RELEASE(ledger, id);
        free(after);
        after = kit_snapshot(ledger);
        CHECK_STR(after, before);
        free(before);
        free(after);
        kit_destroy(ledger);
    }
}

static void a_log_can_be_replayed(void) { /* STO-1: the same ids, owners, times and states */
    struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_DEFAULT, "0 0|0 0@8000");
    struct acre_ledger *copy = kit_cluster(ACRE_STRATEGY_DEFAULT, "0 0|0 0@8000");
    struct acre_request requests[] = {kit_share(300), kit_memory(9000), kit_gang(2, 1, 1000),
                                      kit_cpu(1000, 500)};
    for (size_t i = 0; i < ACRE_COUNT(requests); i++) {
        requests[i].owner = 100 + i;
        requests[i].tenant = kit_name(ledger, "research");
        requests[i].expires_ms = i == 1 ? 9000 : 0;
        requests[i].pending = i == 2;
        uint64_t id = KIT_TAKE(ledger, requests[i]);
        struct acre_allocation allocation;
        REQUIRE(acre_ledger_find(ledger, id, &allocation));
        struct acre_part parts[2];
        memcpy(parts, allocation.parts, allocation.part_count * sizeof(parts[0]));
        uint64_t same = 0;
        REQUIRE_EQ(acre_ledger_place(copy, &requests[i], parts, allocation.part_count, id,
                                     KIT_NOW_MS, &same, NULL),
                   0);
        CHECK_U64(same, id);
        KIT_SOUND(copy);
    }
    char *original = kit_snapshot(ledger);
    char *replayed = kit_snapshot(copy);
    CHECK_STR(replayed, original);
    free(original);
    free(replayed);
    CHECK_EQ(acre_ledger_tick(copy, 9000), 1); /* ends are replayed too */
    kit_destroy(ledger);
    kit_destroy(copy);
}

/* The last of three parts; the first two fit and take 1000 milli-CPU and 1 MiB of node a. */
static const struct {
    const char *what;
    struct acre_part last;
    int code;
    const char *says;
} bad_last_parts[] = {
    {"no room",
     {.device = 1, .milli = 501},
     ACRE_ECONFLICT,
     "device 'a/1' has 0.5 of it free; this needs 0.501"},
    {"nothing asked",
     {.device = 0, .milli = 0},
     ACRE_ECONFLICT,
     "device 'a/0' has 0.9 of it free; this needs 0.0"},
    {"too much",
     {.device = 0, .milli = UINT32_MAX},
     ACRE_ECONFLICT,
     "device 'a/0' has 0.9 of it free; this needs 4294967.295"},
    {"too much memory",
     {.device = 0, .milli = 100, .mib = KIT_MEMORY_MIB},
     ACRE_ECONFLICT,
     "device 'a/0' has too little of its 79.6 GiB free for 79.6 GiB"},
    {"overflowing memory",
     {.device = 0, .milli = 100, .mib = UINT32_MAX},
     ACRE_ECONFLICT,
     "device 'a/0' has too little of its 79.6 GiB free for 3.9 PiB"},
    {"another kind",
     {.device = 2, .milli = 100, .by_share = true},
     ACRE_ECONFLICT,
     "device 'a/2' is shared with another isolation (mps)"},
    {"too much CPU",
     {.device = 0, .milli = 100, .cpu_milli = 63001, .by_share = true},
     ACRE_ECONFLICT,
     "node 'a' has 63 CPUs and 262143 MiB of RAM free; this needs 63.001 CPUs and 0 MiB"},
    {"overflowing CPU",
     {.device = ACRE_DEVICE_NONE, .cpu_milli = UINT32_MAX},
     ACRE_ECONFLICT,
     "node 'a' has 63 CPUs and 262143 MiB of RAM free; this needs 4294967.295 CPUs and 0 MiB"},
    {"too much RAM",
     {.device = ACRE_DEVICE_NONE, .ram_mib = KIT_RAM_MIB},
     ACRE_ECONFLICT,
     "node 'a' has 63 CPUs and 262143 MiB of RAM free; this needs 0 CPUs and 262144 MiB"},
    {"unknown node", {.node = 2, .device = 0, .milli = 100}, ACRE_ENOTFOUND, "there are 2"},
    {"unknown node by far", {.node = UINT32_MAX, .device = 0, .milli = 100}, ACRE_ENOTFOUND, ""},
    {"unknown device", {.device = 4, .milli = 100}, ACRE_ENOTFOUND, "device 4 is not on node 0"},
    {"a device of another node", {.device = 3, .milli = 100}, ACRE_ENOTFOUND, "device 3 is not"},
};

static void the_last_part_decides(void) { /* ACRE_ECONFLICT: then none was taken */
    for (size_t i = 0; i < ACRE_COUNT(bad_last_parts); i++) {
        acre_test_context("%s", bad_last_parts[i].what);
        struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_DEFAULT, "0 500 500p|0");
        char *before = kit_snapshot(ledger);
        struct acre_request request = kit_gang(3, 1, 100);
        struct acre_part parts[3] = {part_of(0, 0, 100), part_of(1, 3, 100),
                                     bad_last_parts[i].last};
        parts[0].cpu_milli = 1000;
        parts[0].ram_mib = 1;
        uint64_t id = 4711;
        struct acre_error err = {0};
        CHECK_EQ(acre_ledger_place(ledger, &request, parts, 3, 99, KIT_NOW_MS, &id, &err),
                 bad_last_parts[i].code);
        CHECK_EQ(err.code, bad_last_parts[i].code);
        CHECK_HAS(err.text, bad_last_parts[i].says);
        CHECK_U64(id, 4711);
        char *after = kit_snapshot(ledger);
        CHECK_STR(after, before);
        KIT_SOUND(ledger);
        parts[2] = part_of(1, 3, 300); /* and with a last part that fits, under the same id */
        CHECK_EQ(acre_ledger_place(ledger, &request, parts, 3, 99, KIT_NOW_MS, &id, NULL), 0);
        CHECK_U64(id, 99);
        CHECK_EQ(kit_row(ledger, "b/0").milli_used, 400);
        free(before);
        free(after);
        kit_destroy(ledger);
    }
}

static void shares_and_memory_to_the_last_mib(void) { /* ALC-10: half of 81559 is 40779.5 */
    static const struct {
        uint32_t mib;
        int expect;
    } cases[] = {{40779, 0}, {40780, ACRE_ECONFLICT}};
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_DEFAULT, "500");
        struct acre_request request = kit_both(100, cases[i].mib);
        struct acre_part part = {.milli = 100, .mib = cases[i].mib};
        uint64_t id;
        CHECK_EQ(acre_ledger_place(ledger, &request, &part, 1, 0, KIT_NOW_MS, &id, NULL),
                 cases[i].expect);
        kit_destroy(ledger);
    }
}

static void a_failed_place_leaves_the_next_id(void) { /* a failed call has changed nothing */
    struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_DEFAULT, "0");
    uint64_t first = KIT_TAKE(ledger, kit_share(500));
    struct acre_request request = kit_share(600);
    struct acre_part part = part_of(0, 0, 600);
    uint64_t id;
    CHECK_EQ(acre_ledger_place(ledger, &request, &part, 1, 5000, KIT_NOW_MS, &id, NULL),
             ACRE_ECONFLICT);
    CHECK_EQ(acre_ledger_place(ledger, &request, &part, 1, 0, KIT_NOW_MS, &id, NULL),
             ACRE_ECONFLICT);
    CHECK_U64(KIT_TAKE(ledger, kit_share(500)), first + 1);
    kit_destroy(ledger);
}

static void ids_are_never_given_twice(void) { /* ALC-6 */
    struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_DEFAULT, "0 0");
    struct acre_request request = kit_share(100);
    struct acre_part part = part_of(0, 0, 100);
    uint64_t id;
    struct acre_error err = {0};
    REQUIRE_EQ(acre_ledger_place(ledger, &request, &part, 1, 41, KIT_NOW_MS, &id, NULL), 0);
    CHECK_EQ(acre_ledger_place(ledger, &request, &part, 1, 41, KIT_NOW_MS, &id, &err),
             ACRE_EEXISTS);
    CHECK_HAS(err.text, "allocation 41 is already in the ledger");
    CHECK_U64(KIT_TAKE(ledger, request), 42);
    REQUIRE_EQ(acre_ledger_place(ledger, &request, &part, 1, 7, KIT_NOW_MS, &id, NULL), 0);
    CHECK_U64(KIT_TAKE(ledger, request), 43); /* an old id does not set the counter back */
    KIT_RELEASE(ledger, 43);
    CHECK_U64(KIT_TAKE(ledger, request), 44);
    kit_destroy(ledger);
}

static void the_last_ids_do_not_wrap(void) { /* overflow: an id beyond the last is refused */
    enum { COUNT = 5 };
    static const uint64_t largest[] = {UINT64_MAX, UINT64_MAX - 1, UINT64_MAX - 2, INT64_MAX};
    for (size_t i = 0; i < ACRE_COUNT(largest); i++) {
        acre_test_context("id %llu", (unsigned long long)largest[i]);
        struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_DEFAULT, "0 0");
        struct acre_request request = kit_share(100);
        struct acre_part part = part_of(0, 0, 100);
        uint64_t ids[COUNT] = {0}; /* 0: refused */
        acre_ledger_place(ledger, &request, &part, 1, largest[i], KIT_NOW_MS, &ids[0], NULL);
        for (int more = 1; more < COUNT; more++) {
            acre_ledger_allocate(ledger, &request, KIT_NOW_MS, &ids[more], NULL);
            for (int before = 0; before < more; before++) {
                CHECK(ids[more] == 0 || ids[more] != ids[before]);
            }
        }
        for (int one = 0; one < COUNT; one++) {
            struct acre_allocation there;
            CHECK_EQ(acre_ledger_find(ledger, ids[one], &there), ids[one] != 0);
            acre_ledger_release(ledger, ids[one], ACRE_ALLOCATION_COMPLETED, 1, NULL);
            CHECK(!acre_ledger_find(ledger, ids[one], &there));
        }
        kit_destroy(ledger);
    }
}

static void a_part_without_a_device_has_no_share(void) { /* CPU and RAM alone */
    static const struct acre_part bad[] = {
        {.device = ACRE_DEVICE_NONE, .milli = 500, .cpu_milli = 100},
        {.device = ACRE_DEVICE_NONE, .milli = 500, .cpu_milli = 100, .by_share = true},
        {.device = ACRE_DEVICE_NONE, .mib = 500, .cpu_milli = 100},
    };
    for (size_t i = 0; i < ACRE_COUNT(bad); i++) {
        acre_test_context("part %zu", i);
        struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_DEFAULT, "0 300");
        struct acre_request request = kit_cpu(100, 0);
        struct acre_error err = {0};
        uint64_t id;
        CHECK_EQ(acre_ledger_place(ledger, &request, &bad[i], 1, 0, KIT_NOW_MS, &id, &err),
                 ACRE_EINVALID);
        CHECK_HAS(err.text, "device: none");
        struct acre_part good = {.device = ACRE_DEVICE_NONE, .cpu_milli = 100};
        REQUIRE_EQ(acre_ledger_place(ledger, &request, &good, 1, 0, KIT_NOW_MS, &id, &err), 0);
        KIT_RELEASE(ledger, id);
        CHECK_EQ(kit_row(ledger, "a/1").milli_used, 300);
        kit_destroy(ledger);
    }
}

static void parts_must_be_as_many_as_asked(void) {
    struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_DEFAULT, "0 0 0");
    struct acre_request request = kit_gang(1, 2, 500);
    const struct acre_part parts[3] = {part_of(0, 0, 500), part_of(0, 1, 500), part_of(0, 2, 500)};
    static const uint32_t counts[] = {0, 1, 3};
    for (size_t i = 0; i < ACRE_COUNT(counts); i++) {
        struct acre_error err = {0};
        uint64_t id;
        CHECK_EQ(acre_ledger_place(ledger, &request, parts, counts[i], 0, KIT_NOW_MS, &id, &err),
                 ACRE_EINVALID);
        CHECK_HAS(err.text, "given, but the request has 2");
    }
    request.milli = 1001;
    struct acre_error err = {0};
    uint64_t id;
    CHECK_EQ(acre_ledger_place(ledger, &request, parts, 2, 0, KIT_NOW_MS, &id, &err),
             ACRE_EINVALID);
    CHECK_HAS(err.text, "milli: 1001");
    kit_destroy(ledger);
}

static void a_replayed_share_may_be_on_a_drained_device(void) { /* books.c: what was, was */
    struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_DEFAULT, "x 0");
    REQUIRE_EQ(acre_ledger_drain_node(ledger, 0, true, NULL), 0);
    struct acre_request request = kit_share(400);
    struct acre_part part = part_of(0, 0, 400);
    uint64_t id;
    REQUIRE_EQ(acre_ledger_place(ledger, &request, &part, 1, 0, KIT_NOW_MS, &id, NULL), 0);
    KIT_SOUND(ledger);
    KIT_REFUSED(ledger, kit_share(100), ACRE_ENOFIT, "drained");
    REQUIRE_EQ(acre_ledger_drain_node(ledger, 0, false, NULL), 0);
    KIT_PLACED(ledger, kit_share(400), "a/1");
    REQUIRE_EQ(acre_ledger_undrain_device(ledger, 0, NULL), 0);
    KIT_PLACED(ledger, kit_share(600), "a/0");
    KIT_RELEASE(ledger, id);
    kit_destroy(ledger);
}

static void an_exclusive_part_takes_all(void) { /* ALC-4: else others could come beside it */
    struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_DEFAULT, "0 300");
    struct acre_request request = kit_share(400);
    request.exclusive = true;
    struct acre_error err = {0};
    uint64_t id;
    struct acre_part part = part_of(0, 0, 400);
    CHECK_EQ(acre_ledger_place(ledger, &request, &part, 1, 0, KIT_NOW_MS, &id, &err),
             ACRE_ECONFLICT);
    CHECK_HAS(err.text, "device 'a/0' is exclusive, but this takes only 0.4 of it");
    part = part_of(0, 1, 1000);
    CHECK_EQ(acre_ledger_place(ledger, &request, &part, 1, 0, KIT_NOW_MS, &id, &err),
             ACRE_ECONFLICT);
    part = part_of(0, 0, 1000);
    CHECK_EQ(acre_ledger_place(ledger, &request, &part, 1, 0, KIT_NOW_MS, &id, &err), 0);
    kit_destroy(ledger);
}

static void a_reservation_nobody_has_is_refused(void) { /* ALC-8: replay cannot invent one */
    struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_DEFAULT, "0 0");
    struct acre_request request = kit_share(400);
    struct acre_part part = part_of(0, 0, 400);
    request.reservation = 12;
    uint64_t id = 4711;
    struct acre_error err = {0};
    CHECK_EQ(acre_ledger_place(ledger, &request, &part, 1, 0, KIT_NOW_MS, &id, &err),
             ACRE_ENOTFOUND);
    CHECK_HAS(err.text, "there is no reservation 12");
    CHECK_U64(id, 4711);
    kit_destroy(ledger);
}

static void a_device_counts_at_most_255_shares(void) { /* its counter is a byte */
    struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_DEFAULT, "0");
    struct acre_request request = kit_memory(1);
    struct acre_part part = {.milli = 1, .mib = 1};
    uint64_t id;
    for (int i = 0; i < 255; i++) {
        REQUIRE_EQ(acre_ledger_place(ledger, &request, &part, 1, 0, KIT_NOW_MS, &id, NULL), 0);
    }
    struct acre_error err = {0};
    CHECK_EQ(acre_ledger_place(ledger, &request, &part, 1, 0, KIT_NOW_MS, &id, &err), ACRE_ELIMIT);
    CHECK_HAS(err.text, "device 'a/0' already has 255 allocations, the most it may have");
    CHECK_EQ(kit_row(ledger, "a/0").allocations, 255);
    kit_destroy(ledger);
}

static const struct acre_test tests[] = {
    {"a_plan_can_be_committed", a_plan_can_be_committed, 0},
    {"a_log_can_be_replayed", a_log_can_be_replayed, 0},
    {"the_last_part_decides", the_last_part_decides, 0},
    {"shares_and_memory_to_the_last_mib", shares_and_memory_to_the_last_mib, 0},
    {"a_failed_place_leaves_the_next_id", a_failed_place_leaves_the_next_id, 0},
    {"ids_are_never_given_twice", ids_are_never_given_twice, 0},
    {"the_last_ids_do_not_wrap", the_last_ids_do_not_wrap, 0},
    {"a_part_without_a_device_has_no_share", a_part_without_a_device_has_no_share, 0},
    {"parts_must_be_as_many_as_asked", parts_must_be_as_many_as_asked, 0},
    {"a_replayed_share_may_be_on_a_drained_device", a_replayed_share_may_be_on_a_drained_device, 0},
    {"an_exclusive_part_takes_all", an_exclusive_part_takes_all, 0},
    {"a_reservation_nobody_has_is_refused", a_reservation_nobody_has_is_refused, 0},
    {"a_device_counts_at_most_255_shares", a_device_counts_at_most_255_shares, 0},
};
ACRE_TEST_MAIN(tests)
