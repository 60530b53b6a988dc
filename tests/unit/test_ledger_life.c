/* The life of an allocation: pending, active, extended, ended, expired; found and walked. */
#include "support/ledger_kit.h"

#include "core/rand.h"

#include <stdlib.h>

static void everything_asked_is_shown(void) { /* ALC-6 */
    struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_DEFAULT, "0 0|0");
    struct acre_request request = kit_gang(2, 1, 300);
    request.owner = UINT64_C(0xfedcba9876543210);
    request.tenant = kit_name(ledger, "research");
    request.isolation = ACRE_ISOLATION_MPS;
    request.expires_ms = 7777;
    request.pending = true;
    uint64_t id = KIT_TAKE(ledger, request);
    struct acre_allocation a;
    REQUIRE(acre_ledger_find(ledger, id, &a));
    CHECK_U64(a.id, id);
    CHECK_U64(a.owner, UINT64_C(0xfedcba9876543210));
    CHECK_EQ(a.tenant, request.tenant);
    CHECK_EQ(a.status, ACRE_ALLOCATION_PENDING);
    CHECK_EQ(a.isolation, ACRE_ISOLATION_MPS);
    CHECK(!a.exclusive);
    CHECK_U64(a.created_ms, KIT_NOW_MS);
    CHECK_U64(a.expires_ms, 7777);
    CHECK_U64(a.reservation, 0);
    CHECK_EQ(a.part_count, 2);
    kit_destroy(ledger);
}

static void pending_becomes_active_once(void) { /* ALC-6 */
    struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_DEFAULT, "0");
    struct acre_request request = kit_share(300);
    request.pending = true;
    uint64_t id = KIT_TAKE(ledger, request);
    CHECK_EQ(kit_row(ledger, "a/0").milli_used, 300); /* pending holds its share */
    CHECK_EQ(acre_ledger_activate(ledger, id, 2000, NULL), 0);
    struct acre_allocation a;
    REQUIRE(acre_ledger_find(ledger, id, &a));
    CHECK_EQ(a.status, ACRE_ALLOCATION_ACTIVE);
    CHECK_EQ(acre_ledger_activate(ledger, id, 2000, NULL), ACRE_ECONFLICT);
    request.pending = false;
    REQUIRE(acre_ledger_find(ledger, KIT_TAKE(ledger, request), &a));
    CHECK_EQ(a.status, ACRE_ALLOCATION_ACTIVE);
    kit_destroy(ledger);
}

static void an_end_releases_at_its_time_and_not_before(void) { /* ALC-6: expiry releases */
    struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_DEFAULT, "0");
    struct acre_request request = kit_share(600);
    request.expires_ms = 5000;
    uint64_t id = KIT_TAKE(ledger, request);
    KIT_REFUSED(ledger, request, ACRE_ENOFIT, "no room now");
    CHECK_EQ(acre_ledger_tick(ledger, 4999), 0);
    struct acre_allocation a;
    CHECK(acre_ledger_find(ledger, id, &a));
    CHECK_EQ(acre_ledger_tick(ledger, 5000), 1);
    CHECK(!acre_ledger_find(ledger, id, &a));
    CHECK_EQ(kit_row(ledger, "a/0").milli_used, 0);
    CHECK_EQ(acre_ledger_tick(ledger, 5000), 0);
    request.expires_ms = UINT64_MAX;
    id = KIT_TAKE(ledger, request);
    CHECK_EQ(acre_ledger_tick(ledger, UINT64_MAX - 1), 0);
    CHECK_EQ(acre_ledger_tick(ledger, UINT64_MAX), 1);
    kit_destroy(ledger);
}

static void many_ends_in_any_order(void) { /* each at its time, whatever the order of asking */
    enum { COUNT = 500 };
    struct acre_ledger *ledger = kit_create(ACRE_STRATEGY_DEFAULT);
    kit_add(ledger, "a", 64, KIT_MEMORY_MIB);
    uint64_t ends[COUNT];
    uint64_t ids[COUNT];
    struct acre_rand rand;
    acre_rand_seed(&rand, 1);
    for (int i = 0; i < COUNT; i++) {
        struct acre_request request = kit_share(100);
        ends[i] = request.expires_ms = 2000 + acre_rand_below(&rand, 300);
        ids[i] = KIT_TAKE(ledger, request);
    }
    for (uint64_t now_ms = 2000; now_ms <= 2300; now_ms += 7) {
        acre_ledger_tick(ledger, now_ms);
        KIT_SOUND(ledger);
        for (int i = 0; i < COUNT; i++) {
            struct acre_allocation a;
            CHECK_EQ(acre_ledger_find(ledger, ids[i], &a), ends[i] > now_ms);
        }
    }
    kit_destroy(ledger);
}

static void an_end_can_move(void) { /* ALC-6: modified */
    struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_DEFAULT, "0");
    struct acre_request request = kit_share(600);
    request.expires_ms = 5000;
    uint64_t id = KIT_TAKE(ledger, request);
    static const struct {
        uint64_t expires_ms, tick_ms;
        bool there;
    } moves[] = {
        {6000, 5999, true},                        /* later */
        {6500, 6499, true},    {6400, 6399, true}, /* earlier again */
        {0, 90000, true},                          /* never */
        {95000, 94999, true},                      /* an end again */
        {95000, 94999, true},                      /* the same end twice */
        {95000, 95000, false},
    };
    for (size_t i = 0; i < ACRE_COUNT(moves); i++) {
        acre_test_context("move %zu", i);
        CHECK_EQ(acre_ledger_extend(ledger, id, moves[i].expires_ms, 2000, NULL), 0);
        struct acre_allocation a;
        REQUIRE(acre_ledger_find(ledger, id, &a));
        CHECK_U64(a.expires_ms, moves[i].expires_ms);
        CHECK_EQ(acre_ledger_tick(ledger, moves[i].tick_ms), moves[i].there ? 0 : 1);
        CHECK_EQ(acre_ledger_find(ledger, id, &a), moves[i].there);
        KIT_SOUND(ledger);
    }
    kit_destroy(ledger);
}

static void ends_that_moved_are_not_kept(void) { /* memory stays bounded */
    struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_DEFAULT, "0");
    struct acre_request request = kit_share(600);
    request.expires_ms = 5000;
    uint64_t id = KIT_TAKE(ledger, request);
    for (uint64_t i = 0; i < 1000; i++) {
        CHECK_EQ(acre_ledger_extend(ledger, id, 5000 + i, 2000, NULL), 0);
    }
    size_t bytes = acre_ledger_bytes(ledger);
    for (uint64_t i = 0; i < 100000; i++) {
        acre_ledger_extend(ledger, id, 6000 + i % 1000, 2000, NULL);
    }
    CHECK_U64(acre_ledger_bytes(ledger), bytes);
    CHECK_EQ(acre_ledger_tick(ledger, 6998), 0);
    CHECK_EQ(acre_ledger_tick(ledger, 6999), 1);
    kit_destroy(ledger);
}

static void release_frees_at_once(void) { /* ALC-6, ALC-10 */
    static const enum acre_allocation_status outcomes[] = {ACRE_ALLOCATION_COMPLETED,
                                                           ACRE_ALLOCATION_FAILED};
    for (size_t i = 0; i < ACRE_COUNT(outcomes); i++) {
        struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_DEFAULT, "0 300|0 0");
        char *before = kit_snapshot(ledger);
        struct acre_request request = kit_gang(3, 1, 700);
        request.isolation = ACRE_ISOLATION_MPS;
        request.cpu_milli = 100;
        uint64_t id = KIT_TAKE(ledger, request);
        CHECK_EQ(acre_ledger_release(ledger, id, outcomes[i], 2000, NULL), 0);
        KIT_SOUND(ledger);
        char *after = kit_snapshot(ledger);
        CHECK_STR(after, before);
        free(before);
        free(after);
        KIT_TAKE(ledger, kit_whole(1)); /* no kind is left on the devices */
        kit_destroy(ledger);
    }
}

static void all_live_ones_are_walked_once(void) { /* fixed order, none twice */
    enum { COUNT = 2500 };                        /* more than two pages of records */
    struct acre_ledger *ledger = kit_create(ACRE_STRATEGY_FIRST_FIT);
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    for (size_t i = 0; i < ACRE_COUNT(names); i++) {
        kit_add(ledger, names[i], 64, KIT_MEMORY_MIB);
    }
    uint64_t ids[COUNT];
    for (int i = 0; i < COUNT; i++) {
        struct acre_request request = kit_share(100);
        request.owner = (uint64_t)i;
        REQUIRE_EQ(acre_ledger_allocate(ledger, &request, KIT_NOW_MS, &ids[i], NULL), 0);
    }
    KIT_SOUND(ledger);
    for (int i = 0; i < COUNT; i += 3) {
        REQUIRE_EQ(acre_ledger_release(ledger, ids[i], ACRE_ALLOCATION_COMPLETED, 1, NULL), 0);
    }
    KIT_SOUND(ledger);
    bool seen[COUNT] = {false};
    uint32_t count = 0;
    uint32_t cursor = 0;
    for (struct acre_allocation a; acre_ledger_walk(ledger, &cursor, &a); count++) {
        REQUIRE(a.owner < COUNT);
        CHECK(!seen[a.owner]);
        seen[a.owner] = true;
        CHECK_U64(a.id, ids[a.owner]);
    }
    CHECK_EQ(count, COUNT - (COUNT + 2) / 3);
    for (int i = 0; i < COUNT; i++) {
        struct acre_allocation a;
        CHECK_EQ(acre_ledger_find(ledger, ids[i], &a), i % 3 != 0);
        CHECK_EQ(seen[i], i % 3 != 0);
    }
    kit_destroy(ledger);
}

static const struct acre_test tests[] = {
    {"everything_asked_is_shown", everything_asked_is_shown, 0},
    {"pending_becomes_active_once", pending_becomes_active_once, 0},
    {"an_end_releases_at_its_time_and_not_before", an_end_releases_at_its_time_and_not_before, 0},
    {"many_ends_in_any_order", many_ends_in_any_order, 0},
    {"an_end_can_move", an_end_can_move, 0},
    {"ends_that_moved_are_not_kept", ends_that_moved_are_not_kept, 0},
    {"release_frees_at_once", release_frees_at_once, 0},
    {"all_live_ones_are_walked_once", all_live_ones_are_walked_once, 0},
};
ACRE_TEST_MAIN(tests)
