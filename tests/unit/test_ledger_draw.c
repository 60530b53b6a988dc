/* Drawing on an active reservation (ALC-8): its devices and no more, by the rules of any device. */
#include "support/ledger_kit.h"

#include <stdlib.h>

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

/* What is drawn on the reservation, summed over all its devices. */
static void sum_drawn(const struct acre_ledger *ledger, uint64_t reservation, uint64_t *ret_milli,
                      uint64_t *ret_mib) {
    *ret_milli = 0;
    *ret_mib = 0;
    uint32_t cursor = 0;
    for (struct acre_allocation a; acre_ledger_walk(ledger, &cursor, &a);) {
        for (uint32_t i = 0; i < a.part_count && a.reservation == reservation; i++) {
            *ret_milli += a.parts[i].milli;
            *ret_mib += a.parts[i].mib;
        }
    }
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

static void a_part_of_a_device_is_divided_exactly(void) { /* ALC-1, within a share */
    static const uint32_t devices[] = {0};
    static const struct {
        const char *what;
        uint32_t reserved_milli;
        struct {
            uint32_t milli;
            uint64_t mib;
            bool fits;
        } steps[6];
    } cases[] = {
        {"five tenths of a half",
         500,
         {{100, 0, true},
          {100, 0, true},
          {100, 0, true},
          {100, 0, true},
          {100, 0, true},
          {100, 0, false}}},
        {"two quarters", 500, {{250, 0, true}, {251, 0, false}, {250, 0, true}}},
        {"by memory", 500, {{0, 40780, false}, {0, 40779, true}, {0, 1, false}}},
        {"much memory, then a share",
         500,
         {{100, 32000, true}, {108, 0, false}, {107, 0, true}, {100, 40000, false}}},
        {"all memory, then a share", 500, {{100, 40779, true}, {100, 0, false}}},
        {"all share, no memory", 500, {{500, 1, true}, {0, 1, false}}},
        {"more than is reserved", 300, {{301, 0, false}, {1000, 0, false}, {300, 0, true}}},
        {"ten tenths of all",
         1000,
         {{300, 0, true}, {300, 0, true}, {300, 0, true}, {101, 0, false}, {100, 0, true}}},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        uint64_t id;
        struct acre_ledger *ledger =
            with_reservation("0", devices, 1, cases[i].reserved_milli, 0, &id);
        for (size_t s = 0; s < ACRE_COUNT(cases[i].steps); s++) {
            acre_test_context("%s, step %zu", cases[i].what, s);
            struct acre_request request =
                within(kit_both(cases[i].steps[s].milli, cases[i].steps[s].mib), id);
            if (request.milli == 0 && request.mib == 0) {
                break;
            }
            KIT_PLACED(ledger, request, cases[i].steps[s].fits ? "a/0" : "-");
            uint64_t milli;
            uint64_t mib;
            sum_drawn(ledger, id, &milli, &mib);
            CHECK(milli <= cases[i].reserved_milli);
            CHECK(mib <= (uint64_t)KIT_MEMORY_MIB * cases[i].reserved_milli / 1000);
        }
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

static void whoever_draws_first_sets_the_kind(void) { /* ALC-4: whatever kind came first stays */
    static const uint32_t devices[] = {0};
    uint64_t id;
    struct acre_ledger *ledger = with_reservation("0", devices, 1, 1000, ACRE_ISOLATION_NONE, &id);
    struct acre_request mps = within(kit_share(300), id);
    mps.isolation = ACRE_ISOLATION_MPS;
    uint64_t first = 0;
    if (acre_ledger_allocate(ledger, &mps, KIT_NOW_MS, &first, NULL) == 0) {
        KIT_PLACED(ledger, within(kit_share(300), id), "-");
        KIT_PLACED(ledger, mps, "a/0");
    } else { /* a reservation may also insist on its own kind */
        KIT_PLACED(ledger, within(kit_share(300), id), "a/0");
        KIT_PLACED(ledger, mps, "-");
    }
    kit_destroy(ledger);
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
    KIT_REFUSED(ledger, request, ACRE_ENOFIT, "reservation 1 has room for only 0 of 1 members");
    KIT_REFUSED(ledger, kit_cpu(1001, 0), ACRE_ENOFIT, "no room now");
    KIT_PLACED(ledger, within(kit_cpu(1000, 10), id), "a");
    KIT_RELEASE(ledger, drawn);
    KIT_TAKE(ledger, kit_cpu(3000, 0));
    kit_destroy(ledger);
}

static void a_drained_device_of_it_takes_nothing_new(void) { /* nodes.h */
    static const uint32_t devices[] = {0, 1};
    uint64_t id;
    struct acre_ledger *ledger = with_reservation("0|0", devices, 2, 1000, 0, &id);
    uint64_t drawn = KIT_PLACED(ledger, within(kit_share(300), id), "a/0");
    REQUIRE_EQ(acre_ledger_drain_device(ledger, 0, "hot", NULL), 0);
    KIT_PLACED(ledger, within(kit_share(300), id), "b/0");
    REQUIRE_EQ(acre_ledger_drain_node(ledger, 1, true, NULL), 0);
    KIT_PLACED(ledger, within(kit_share(300), id), "-");
    REQUIRE_EQ(acre_ledger_undrain_device(ledger, 0, NULL), 0);
    KIT_PLACED(ledger, within(kit_share(300), id), "a/0");
    KIT_RELEASE(ledger, drawn);
    kit_destroy(ledger);
}

static void foreign_memory_counts_within_it(void) { /* DEV-6 */
    static const uint32_t devices[] = {0};
    uint64_t id;
    struct acre_ledger *ledger = with_reservation("0", devices, 1, 1000, 0, &id);
    REQUIRE_EQ(acre_ledger_set_foreign(ledger, 0, 80000, NULL), 0);
    KIT_PLACED(ledger, within(kit_whole(1), id), "-");
    KIT_PLACED(ledger, within(kit_share(500), id), "-");
    KIT_PLACED(ledger, within(kit_memory(1560), id), "-");
    KIT_PLACED(ledger, within(kit_memory(1559), id), "a/0");
    kit_destroy(ledger);
}

static void a_replayed_part_is_checked_against_it(void) { /* ACRE_ECONFLICT: does not fit */
    static const uint32_t devices[] = {0};
    uint64_t id;
    struct acre_ledger *ledger = with_reservation("0 0", devices, 1, 500, 0, &id);
    static const struct {
        const char *what;
        struct acre_part part;
        bool fits;
    } cases[] = {
        {"more than it has", {.milli = 501, .mib = 1}, false},
        {"more memory than it has", {.milli = 100, .mib = 40780}, false},
        {"a device it has not", {.device = 1, .milli = 100, .mib = 1}, false},
        {"a device nobody has", {.device = 77, .milli = 100, .mib = 1}, false},
        {"what it has", {.milli = 300, .mib = 20000}, true},
        {"more than is left", {.milli = 201, .mib = 1}, false},
        {"more memory than is left", {.milli = 100, .mib = 20780}, false},
        {"all that is left", {.milli = 200, .mib = 20779}, true},
        {"nothing is left", {.milli = 1, .mib = 0}, false},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        acre_test_context("%s", cases[i].what);
        char *before = kit_snapshot(ledger);
        struct acre_request request = within(kit_share(100), id);
        uint64_t placed;
        int r =
            acre_ledger_place(ledger, &request, &cases[i].part, 1, 0, KIT_NOW_MS, &placed, NULL);
        CHECK_EQ(r == 0, cases[i].fits);
        char *after = kit_snapshot(ledger);
        CHECK_EQ(strcmp(before, after) == 0, !cases[i].fits);
        free(before);
        free(after);
        KIT_SOUND(ledger);
    }
    kit_destroy(ledger);
}

static const struct acre_test tests[] = {
    {"only_those_who_name_it_draw_on_it", only_those_who_name_it_draw_on_it, 0},
    {"it_must_be_there_and_active", it_must_be_there_and_active, 0},
    {"its_end_ends_what_was_drawn", its_end_ends_what_was_drawn, 0},
    {"a_part_of_a_device_is_divided_exactly", a_part_of_a_device_is_divided_exactly, 0},
    {"kinds_do_not_mix_within_it", kinds_do_not_mix_within_it, 0},
    {"whoever_draws_first_sets_the_kind", whoever_draws_first_sets_the_kind, 0},
    {"exclusive_within_it", exclusive_within_it, 0},
    {"gangs_within_it", gangs_within_it, 0},
    {"cpu_and_ram_are_taken_of_the_node", cpu_and_ram_are_taken_of_the_node, 0},
    {"a_drained_device_of_it_takes_nothing_new", a_drained_device_of_it_takes_nothing_new, 0},
    {"foreign_memory_counts_within_it", foreign_memory_counts_within_it, 0},
    {"a_replayed_part_is_checked_against_it", a_replayed_part_is_checked_against_it, 0},
};
ACRE_TEST_MAIN(tests)
