/* Drawing on an active reservation (ALC-8): its devices and no more, by the rules of any device. */
#include "support/ledger_kit.h"

/* A ledger with one active reservation of these devices until 9000. */
static struct acre_ledger *with_reservation(const char *cluster, const uint32_t *devices,
                                            uint32_t count, uint32_t milli,
                                            enum acre_isolation isolation, uint64_t *ret_id) {
    struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_DEFAULT, cluster);
    struct acre_reservation_spec spec = {.user = kit_name(ledger, "ann"),
                                         .devices = devices,
                                         .device_count = count,
                                         .milli = milli,
                                         .isolation = isolation,
                                         .start_ms = KIT_NOW_MS,
                                         .end_ms = 9000};
    struct acre_error err = {0};
    acre_ledger_reserve(ledger, &spec, KIT_NOW_MS, ret_id, &err);
    CHECK_STR(err.text, "");
    KIT_SOUND(ledger);
    return ledger;
}

static struct acre_request within(struct acre_request request, uint64_t reservation) {
    request.reservation = reservation;
    return request;
}

static void only_those_who_name_it_draw_on_it(void) {
    static const uint32_t devices[] = {1, 2};
    uint64_t id;
    struct acre_ledger *ledger = with_reservation("0 0 0", devices, 2, 1000, 0, &id);
    KIT_PLACED(ledger, kit_share(500), "a/0");
    KIT_PLACED(ledger, kit_share(500), "a/0");
    KIT_REFUSED(ledger, kit_share(500), ACRE_ENOFIT, "full");
    uint64_t drawn = KIT_PLACED(ledger, within(kit_share(500), id), "a/1");
    struct acre_allocation allocation;
    REQUIRE(acre_ledger_find(ledger, drawn, &allocation));
    CHECK_U64(allocation.reservation, id);
    CHECK_EQ(kit_row(ledger, "a/1").milli_used, 1000); /* the reservation's, not twice */
    CHECK_EQ(kit_row(ledger, "a/1").allocations, 1);
    KIT_PLACED(ledger, within(kit_whole(1), id), "a/2");
    KIT_PLACED(ledger, within(kit_whole(1), id), "-");
    KIT_PLACED(ledger, within(kit_share(500), id), "a/1");
    KIT_PLACED(ledger, within(kit_share(100), id), "-");
    KIT_RELEASE(ledger, drawn);
    KIT_PLACED(ledger, within(kit_memory(40000), id), "a/1");
    kit_destroy(ledger);
}

static void it_must_be_there_and_active(void) {
    struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_DEFAULT, "0");
    KIT_REFUSED(ledger, within(kit_share(100), 1), ACRE_ENOTFOUND, "there is no reservation 1");
    uint32_t device = 0;
    struct acre_reservation_spec spec = {.user = 1,
                                         .devices = &device,
                                         .device_count = 1,
                                         .milli = 1000,
                                         .start_ms = 2000,
                                         .end_ms = 3000};
    uint64_t id;
    REQUIRE_EQ(acre_ledger_reserve(ledger, &spec, KIT_NOW_MS, &id, NULL), 0);
    KIT_REFUSED(ledger, within(kit_share(100), id), ACRE_ECONFLICT,
                "reservation 1 is pending, not active");
    acre_ledger_tick(ledger, 2000);
    KIT_TAKE(ledger, within(kit_share(100), id));
    acre_ledger_tick(ledger, 3000);
    KIT_REFUSED(ledger, within(kit_share(100), id), ACRE_ECONFLICT,
                "reservation 1 is completed, not active");
    KIT_REFUSED(ledger, within(kit_share(100), UINT64_MAX), ACRE_ENOTFOUND, "18446744073709551615");
    kit_destroy(ledger);
}

static void its_end_ends_what_was_drawn(void) {
    static const uint32_t devices[] = {0};
    for (int cancelled = 0; cancelled < 2; cancelled++) {
        uint64_t id;
        struct acre_ledger *ledger = with_reservation("0", devices, 1, 1000, 0, &id);
        struct acre_request request = within(kit_share(300), id);
        request.cpu_milli = 1000;
        uint64_t open_ended = KIT_TAKE(ledger, request);
        request.expires_ms = 5000;
        uint64_t short_one = KIT_TAKE(ledger, request);
        request.expires_ms = 20000;
        uint64_t long_one = KIT_TAKE(ledger, request);
        struct acre_allocation allocation;
        CHECK_EQ(acre_ledger_tick(ledger, 5000), 1);
        CHECK(!acre_ledger_find(ledger, short_one, &allocation));
        CHECK_EQ(acre_ledger_extend(ledger, long_one, 30000, 5000, NULL), 0);
        if (cancelled) {
            CHECK_EQ(acre_ledger_cancel_reservation(ledger, id, 6000, NULL), 0);
        } else {
            CHECK(acre_ledger_tick(ledger, 9000) >= 1);
        }
        KIT_SOUND(ledger);
        CHECK(!acre_ledger_find(ledger, open_ended, &allocation));
        CHECK(!acre_ledger_find(ledger, long_one, &allocation));
        struct acre_ledger_node node;
        acre_ledger_node_info(ledger, 0, &node);
        CHECK_EQ(node.cpu_free_milli, KIT_CPU_MILLI);
        CHECK_EQ(acre_ledger_tick(ledger, 40000), 0);
        KIT_TAKE(ledger, kit_whole(1));
        kit_destroy(ledger);
    }
}

static void kinds_do_not_mix_within_it(void) { /* ALC-4 */
    static const uint32_t devices[] = {0};
    static const struct {
        const char *what;
        uint32_t reserved_milli;
        enum acre_isolation reserved, first, second;
        bool first_fits, second_fits;
    } cases[] = {
        {"a share as reserved", 500, ACRE_ISOLATION_MPS, ACRE_ISOLATION_MPS, ACRE_ISOLATION_MPS,
         true, true},
        {"a share of another kind", 500, ACRE_ISOLATION_MPS, ACRE_ISOLATION_NONE,
         ACRE_ISOLATION_MPS, false, true},
        {"a whole device, one kind", 1000, ACRE_ISOLATION_MPS, ACRE_ISOLATION_MPS,
         ACRE_ISOLATION_MPS, true, true},
        {"a whole device, two kinds", 1000, ACRE_ISOLATION_MPS, ACRE_ISOLATION_MPS,
         ACRE_ISOLATION_NONE, true, false},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        acre_test_context("%s", cases[i].what);
        uint64_t id;
        struct acre_ledger *ledger =
            with_reservation("0", devices, 1, cases[i].reserved_milli, cases[i].reserved, &id);
        struct acre_request request = within(kit_share(100), id);
        request.isolation = cases[i].first;
        KIT_PLACED(ledger, request, cases[i].first_fits ? "a/0" : "-");
        request.isolation = cases[i].second;
        KIT_PLACED(ledger, request, cases[i].second_fits ? "a/0" : "-");
        request.exclusive = true; /* never beside others */
        KIT_PLACED(ledger, request, "-");
        kit_destroy(ledger);
    }
}

static void exclusive_within_it(void) {
    static const uint32_t devices[] = {0, 1};
    uint64_t id;
    struct acre_ledger *ledger = with_reservation("0 0", devices, 2, 1000, 0, &id);
    struct acre_request alone = within(kit_share(100), id);
    alone.exclusive = true;
    uint64_t first = KIT_PLACED(ledger, alone, "a/0");
    KIT_PLACED(ledger, within(kit_share(100), id), "a/1");
    KIT_PLACED(ledger, alone, "-");
    KIT_RELEASE(ledger, first);
    KIT_PLACED(ledger, alone, "a/0");
    kit_destroy(ledger);
}

static void gangs_within_it(void) { /* ALC-7: all or none, over its nodes in its order */
    static const uint32_t devices[] = {3, 0, 1};
    uint64_t id;
    struct acre_ledger *ledger = with_reservation("0 0 0|0 0", devices, 3, 1000, 0, &id);
    KIT_PLACED(ledger, within(kit_gang(4, 1, 1000), id), "-");
    uint64_t gang = KIT_PLACED(ledger, within(kit_gang(3, 1, 1000), id), "b/0 a/0 a/1");
    KIT_PLACED(ledger, within(kit_share(100), id), "-");
    KIT_RELEASE(ledger, gang);
    KIT_PLACED(ledger, within(kit_whole(3), id), "-"); /* no node of it has three */
    KIT_PLACED(ledger, within(kit_whole(2), id), "a/0 a/1");
    KIT_PLACED(ledger, within(kit_gang(2, 1, 500), id), "b/0 b/0");
    kit_destroy(ledger);
}

static void cpu_and_ram_are_taken_of_the_node(void) {
    static const uint32_t devices[] = {0};
    uint64_t id;
    struct acre_ledger *ledger = with_reservation("0@4000", devices, 1, 1000, 0, &id);
    struct acre_request request = within(kit_share(300), id);
    request.cpu_milli = 3000;
    uint64_t drawn = KIT_TAKE(ledger, request);
    KIT_REFUSED(ledger, request, ACRE_ENOFIT, "reservation 1 has room for 0 of 1 members");
    KIT_REFUSED(ledger, kit_cpu(1001, 0), ACRE_ENOFIT, "no room now");
    KIT_PLACED(ledger, within(kit_cpu(1000, 10), id), "a");
    KIT_RELEASE(ledger, drawn);
    KIT_TAKE(ledger, kit_cpu(3000, 0));
    kit_destroy(ledger);
}

static const struct acre_test tests[] = {
    {"only_those_who_name_it_draw_on_it", only_those_who_name_it_draw_on_it, 0},
    {"it_must_be_there_and_active", it_must_be_there_and_active, 0},
    {"its_end_ends_what_was_drawn", its_end_ends_what_was_drawn, 0},
    {"kinds_do_not_mix_within_it", kinds_do_not_mix_within_it, 0},
    {"exclusive_within_it", exclusive_within_it, 0},
    {"gangs_within_it", gangs_within_it, 0},
    {"cpu_and_ram_are_taken_of_the_node", cpu_and_ram_are_taken_of_the_node, 0},
};
ACRE_TEST_MAIN(tests)
