/* What would fit if some of what is held were gone, and keeping that place from others (outlook.h);
 * and the verbs beside it that the scheduler needs: could it ever fit, could it on this node. */
#include "ledger/outlook.h"
#include "support/ledger_kit.h"

#include <stdio.h>
#include <stdlib.h>

enum { HOLDERS = 4 };

/* Who holds what, what is asked for, how many of them must go (0: it fits, -1: never). */
static const struct {
    const char *cluster;
    struct {
        uint32_t replicas, gpus, milli;
    } held[HOLDERS], asked;
    int gone;
    const char *where;
} rows[] = {
    {"0 0", {{1, 1, 1000}, {1, 1, 1000}}, {1, 1, 1000}, 1, "a/0"},
    {"0 0", {{1, 1, 1000}, {1, 1, 1000}}, {1, 2, 1000}, 2, "a/0 a/1"},
    {"0 0", {{1, 1, 1000}}, {1, 1, 1000}, 0, "a/1"},
    {"0 0", {{1, 1, 500}, {1, 1, 600}}, {1, 1, 800}, 1, "a/0"},
    {"0|0", {{1, 1, 1000}, {1, 1, 1000}}, {2, 1, 1000}, 2, "a/0 b/0"},
    {"0|0", {{1, 1, 1000}}, {2, 1, 1000}, 1, "a/0 b/0"},
    {"0 0|0 0", {{2, 2, 1000}}, {1, 2, 1000}, 1, "a/0 a/1"},
    {"0|x", {{1, 1, 1000}}, {2, 1, 1000}, -1, ""},
    {"300", {{1, 1, 500}}, {1, 1, 800}, -1, ""},
};

static struct acre_request request_of(uint32_t replicas, uint32_t gpus, uint32_t milli) {
    return replicas > 1 || gpus > 1 ? kit_gang(replicas, gpus, milli) : kit_share(milli);
}

/* Under a veil the books are not those of the allocations: the kit's own checks would say so. */
static bool has_room(struct acre_ledger *ledger, struct acre_request request) {
    struct acre_part parts[HOLDERS];
    uint32_t count;
    return acre_ledger_plan(ledger, &request, KIT_NOW_MS, parts, HOLDERS, &count, NULL) == 0;
}

static uint64_t take_veiled(struct acre_ledger *ledger, struct acre_request request) {
    uint64_t id = 0;
    REQUIRE_EQ(acre_ledger_allocate(ledger, &request, KIT_NOW_MS, &id, NULL), 0);
    return id;
}

static void check_place(const struct acre_ledger *ledger, struct acre_outlook *outlook,
                        const char *where) {
    uint32_t count;
    acre_outlook_choose(outlook);
    const struct acre_part *parts = acre_outlook_parts(outlook, &count);
    char text[KIT_TEXT_MAX] = "";
    for (uint32_t i = 0; i < count; i++) {
        struct acre_ledger_device device;
        acre_ledger_device_info(ledger, parts[i].device, &device);
        size_t length = strlen(text);
        snprintf(text + length, sizeof(text) - length, "%s%s", i > 0 ? " " : "", device.id);
    }
    CHECK_STR(text, where);
}

static void giving_back_says_when_it_fits_and_where(void) {
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        acre_test_context("row %zu", i);
        struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_FIRST_FIT, rows[i].cluster);
        uint64_t ids[HOLDERS];
        uint32_t count = 0;
        for (; count < HOLDERS && rows[i].held[count].gpus > 0; count++) {
            ids[count] =
                KIT_TAKE(ledger, request_of(rows[i].held[count].replicas, rows[i].held[count].gpus,
                                            rows[i].held[count].milli));
        }
        struct acre_request asked =
            request_of(rows[i].asked.replicas, rows[i].asked.gpus, rows[i].asked.milli);
        char *before = kit_snapshot(ledger);
        struct acre_outlook *outlook = acre_outlook_create(ledger, &asked);
        REQUIRE(outlook != NULL);
        uint32_t gone = 0;
        while (!acre_outlook_fits(outlook) && gone < count) {
            acre_outlook_give(outlook, ids[gone++]);
        }
        CHECK_EQ(acre_outlook_fits(outlook) ? (int)gone : -1, rows[i].gone);
        if (acre_outlook_fits(outlook)) {
            check_place(ledger, outlook, rows[i].where);
            CHECK(acre_outlook_stands(outlook));
        }
        char *after = kit_snapshot(ledger);
        CHECK_STR(after, before); /* nobody was touched */
        free(before);
        free(after);
        CHECK(acre_outlook_bytes(outlook) > 0);
        acre_outlook_destroy(outlook);
        kit_destroy(ledger);
    }
}

/* The head needs 0.6 when the 0.5 are gone: 0.1 of what is free now, the other 0.4 are anybody's.
 */
static void a_veil_takes_what_is_missing_and_no_more(void) {
    struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_FIRST_FIT, "0");
    uint64_t run = KIT_TAKE(ledger, kit_share(500));
    struct acre_request head = kit_share(600);
    struct acre_outlook *outlook = acre_outlook_create(ledger, &head);
    CHECK(acre_outlook_give(outlook, run));
    acre_outlook_choose(outlook);
    char *before = kit_snapshot(ledger);
    acre_outlook_veil(outlook);
    CHECK(!has_room(ledger, kit_share(500)));
    uint64_t beside = take_veiled(ledger, kit_share(400));
    acre_outlook_unveil(outlook);
    CHECK(acre_outlook_stands(outlook));
    KIT_RELEASE(ledger, beside);
    char *after = kit_snapshot(ledger);
    CHECK_STR(after, before);
    /* Once it is gone the place is all of the head's 0.6. */
    KIT_RELEASE(ledger, run);
    acre_outlook_veil(outlook);
    CHECK(!has_room(ledger, kit_share(500)));
    acre_outlook_unveil(outlook);
    KIT_TAKE(ledger, kit_share(500));
    CHECK(!acre_outlook_stands(outlook)); /* somebody was faster */
    free(before);
    free(after);
    acre_outlook_destroy(outlook);
    kit_destroy(ledger);
}

static void a_veil_over_a_whole_device_takes_all_of_it(void) {
    struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_FIRST_FIT, "0 0");
    uint64_t run = KIT_TAKE(ledger, kit_share(300));
    struct acre_request head = kit_whole(2);
    struct acre_outlook *outlook = acre_outlook_create(ledger, &head);
    CHECK(acre_outlook_give(outlook, run));
    acre_outlook_choose(outlook);
    acre_outlook_veil(outlook);
    CHECK(!has_room(ledger, kit_share(100)));
    CHECK(!has_room(ledger, kit_memory(100)));
    acre_outlook_unveil(outlook);
    KIT_TAKE(ledger, kit_share(100));
    acre_outlook_destroy(outlook);
    kit_destroy(ledger);
}

static void a_veil_keeps_memory_cpu_and_other_kinds_away(void) {
    struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_FIRST_FIT, "0@10000");
    struct acre_request run = kit_memory(40000);
    run.cpu_milli = 4000;
    run.isolation = ACRE_ISOLATION_MPS;
    uint64_t id = KIT_TAKE(ledger, run);
    struct acre_request head = kit_memory(60000);
    head.cpu_milli = 8000;
    struct acre_outlook *outlook = acre_outlook_create(ledger, &head);
    CHECK(acre_outlook_give(outlook, id));
    acre_outlook_choose(outlook);
    acre_outlook_veil(outlook);
    run.cpu_milli = 0;
    run.mib = 1000;
    CHECK(!has_room(ledger, run)); /* the kind will be another */
    CHECK(!has_room(ledger, kit_cpu(3000, 0)));
    take_veiled(ledger, kit_cpu(2000, 0));
    acre_outlook_unveil(outlook);
    CHECK(acre_outlook_stands(outlook));
    acre_outlook_destroy(outlook);
    kit_destroy(ledger);
}

/* What others find under a veil is what is free, less what the head needs beyond those that go. */
static void a_veil_leaves_all_that_the_head_does_not_need(void) {
    enum { FREE_MIB = KIT_MEMORY_MIB - 40000 };
    static const struct {
        struct {
            uint32_t milli;
            uint64_t mib, cpu_milli, ram_mib;
        } goes, head, rest; /* rest: the most that others get; one more is refused */
    } veils[] = {
        {{500, 0, 0, 0}, {700, 0, 0, 0}, {300, 0, 0, 0}},
        {{500, 0, 0, 0}, {400, 0, 0, 0}, {500, 0, 0, 0}},
        {{100, 40000, 0, 0}, {200, 60000, 0, 0}, {100, FREE_MIB - 20000, 0, 0}},
        {{200, 40000, 0, 0}, {200, 30000, 0, 0}, {100, FREE_MIB, 0, 0}},
        {{100, 0, 4000, 0}, {100, 0, 10000, 0}, {0, 0, KIT_CPU_MILLI - 10000, 0}},
        {{100, 0, 4000, 0}, {100, 0, 4000, 0}, {0, 0, KIT_CPU_MILLI - 4000, 0}},
        {{100, 0, 0, 5000}, {100, 0, 0, 9000}, {0, 0, 0, KIT_RAM_MIB - 9000}},
        {{100, 0, 0, 5000}, {100, 0, 0, 3000}, {0, 0, 0, KIT_RAM_MIB - 5000}},
    };
    for (size_t i = 0; i < ACRE_COUNT(veils); i++) {
        acre_test_context("row %zu", i);
        struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_FIRST_FIT, "0");
        struct acre_request goes = kit_both(veils[i].goes.milli, veils[i].goes.mib);
        goes.cpu_milli = veils[i].goes.cpu_milli;
        goes.ram_mib = veils[i].goes.ram_mib;
        struct acre_request head = kit_both(veils[i].head.milli, veils[i].head.mib);
        head.cpu_milli = veils[i].head.cpu_milli;
        head.ram_mib = veils[i].head.ram_mib;
        struct acre_request rest = kit_cpu(veils[i].rest.cpu_milli, veils[i].rest.ram_mib);
        rest.gpus = veils[i].rest.milli > 0;
        rest.milli = veils[i].rest.milli;
        rest.mib = veils[i].rest.mib;
        uint64_t id = KIT_TAKE(ledger, goes);
        struct acre_outlook *outlook = acre_outlook_create(ledger, &head);
        CHECK(acre_outlook_give(outlook, id));
        acre_outlook_choose(outlook);
        acre_outlook_veil(outlook);
        CHECK(has_room(ledger, rest));
        struct acre_request more = rest;
        uint64_t *scarce = rest.mib > 0       ? &more.mib
                           : rest.ram_mib > 0 ? &more.ram_mib
                                              : &more.cpu_milli;
        more.milli += rest.mib == 0 && rest.milli > 0;
        *scarce += rest.mib > 0 || rest.milli == 0;
        CHECK(!has_room(ledger, more));
        acre_outlook_unveil(outlook);
        acre_outlook_destroy(outlook);
        kit_destroy(ledger);
    }
}

/* ALC-4: kinds of sharing never meet, and a device that all have left has no kind. */
static void a_device_given_back_whole_takes_any_kind(void) {
    static const enum acre_isolation kinds[] = {ACRE_ISOLATION_NONE, ACRE_ISOLATION_TIME_SLICING,
                                                ACRE_ISOLATION_MPS};
    for (size_t i = 0; i < ACRE_COUNT(kinds); i++) {
        for (size_t j = 0; j < ACRE_COUNT(kinds); j++) {
            acre_test_context("%s, then %s", isolation_name(kinds[i]), isolation_name(kinds[j]));
            struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_FIRST_FIT, "0");
            struct acre_request held = kit_share(300);
            held.isolation = kinds[i];
            uint64_t first = KIT_TAKE(ledger, held), second = KIT_TAKE(ledger, held);
            struct acre_request asked = kit_share(500);
            asked.isolation = kinds[j];
            struct acre_outlook *outlook = acre_outlook_create(ledger, &asked);
            CHECK_EQ(acre_outlook_give(outlook, first), i == j);
            CHECK(acre_outlook_give(outlook, second));
            acre_outlook_destroy(outlook);
            kit_destroy(ledger);
        }
    }
}

/* Those that must go are those that hold something on a node of the place, with any of their
 * parts. */
static void a_place_names_all_that_hold_something_on_its_nodes(void) {
    struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_FIRST_FIT, "0|0 0|0");
    static const struct acre_part parts[] = {
        {.node = 0, .device = 0, .milli = 1000, .mib = KIT_MEMORY_MIB}, /* a/0 and b/0 */
        {.node = 1, .device = 1, .milli = 1000, .mib = KIT_MEMORY_MIB},
        {.node = 2, .device = 3, .milli = 1000, .mib = KIT_MEMORY_MIB}, /* c/0 */
    };
    struct acre_request pair = kit_gang(2, 1, 1000), one = kit_whole(1);
    uint64_t across = 0, elsewhere = 0;
    REQUIRE_EQ(acre_ledger_place(ledger, &pair, parts, 2, 0, KIT_NOW_MS, &across, NULL), 0);
    REQUIRE_EQ(acre_ledger_place(ledger, &one, &parts[2], 1, 0, KIT_NOW_MS, &elsewhere, NULL), 0);
    struct acre_request asked = kit_whole(2); /* on b alone */
    struct acre_outlook *outlook = acre_outlook_create(ledger, &asked);
    CHECK(!acre_outlook_stands(outlook)); /* none is chosen */
    acre_outlook_give(outlook, elsewhere);
    REQUIRE(acre_outlook_give(outlook, across));
    acre_outlook_choose(outlook);
    uint32_t count;
    const uint64_t *given = acre_outlook_given(outlook, &count);
    REQUIRE_EQ(count, 1);
    CHECK_U64(given[0], across);
    CHECK(acre_outlook_stands(outlook));
    acre_outlook_destroy(outlook);
    kit_destroy(ledger);
}

static void requests_without_an_outlook_have_none(void) {
    struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_FIRST_FIT, "0");
    struct acre_request bad = kit_share(1);
    CHECK(acre_outlook_create(ledger, &bad) == NULL);
    struct acre_request reserved = kit_share(500);
    reserved.reservation = 1;
    CHECK(acre_outlook_create(ledger, &reserved) == NULL);
    acre_outlook_destroy(NULL);
    struct acre_request plain = kit_share(500);
    struct acre_outlook *outlook = acre_outlook_create(ledger, &plain);
    CHECK(acre_outlook_give(outlook, 99)); /* no such allocation: it fits anyway */
    acre_outlook_destroy(outlook);
    kit_destroy(ledger);
}

static void could_fit_judges_an_idle_cluster(void) {
    static const struct {
        const char *cluster;
        uint32_t replicas, gpus, milli;
        int code;
    } asks[] = {
        {"1000 1000", 1, 2, 1000, 0},  {"1000 1000", 1, 3, 1000, ACRE_ENOFIT},
        {"x x|0", 3, 1, 1000, 0},      {"0 0|0", 4, 1, 1000, ACRE_ENOFIT},
        {"0", 10, 1, 100, 0},          {"0", 11, 1, 100, ACRE_ENOFIT},
        {"0", 1, 1, 50, ACRE_EDENIED}, {"0", 1, 65, 1000, ACRE_EINVALID},
    };
    for (size_t i = 0; i < ACRE_COUNT(asks); i++) {
        acre_test_context("row %zu", i);
        struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_FIRST_FIT, asks[i].cluster);
        struct acre_request request = kit_gang(asks[i].replicas, asks[i].gpus, asks[i].milli);
        struct acre_error err = {0};
        CHECK_EQ(acre_ledger_could_fit(ledger, &request, &err), asks[i].code);
        if (asks[i].code == ACRE_ENOFIT) {
            CHECK_HAS(err.text, "never fits");
        }
        kit_destroy(ledger);
    }
}

static void one_node_can_be_asked(void) {
    struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_FIRST_FIT, "500 0@2000|0 0|x");
    static const struct {
        uint32_t gpus, milli;
        uint64_t cpu_milli;
        bool on[3];
    } asks[] = {
        {1, 500, 0, {true, true, false}},   {2, 500, 0, {true, true, false}},
        {2, 600, 0, {false, true, false}},  {1, 1000, 0, {true, true, false}},
        {2, 1000, 0, {false, true, false}}, {1, 100, 3000, {false, true, false}},
        {3, 100, 0, {false, false, false}},
    };
    for (size_t i = 0; i < ACRE_COUNT(asks); i++) {
        for (uint32_t node = 0; node < 3; node++) {
            acre_test_context("row %zu node %u", i, node);
            struct acre_request request = kit_gang(1, asks[i].gpus, asks[i].milli);
            request.cpu_milli = asks[i].cpu_milli;
            struct acre_part parts[4];
            uint32_t count = 0;
            CHECK_EQ(acre_ledger_may_fit_on(ledger, &request, node), asks[i].on[node]);
            int r = acre_ledger_plan_on(ledger, &request, &node, 1, parts, 4, &count, NULL);
            CHECK_EQ(r, asks[i].on[node] ? 0 : ACRE_ENOFIT);
            CHECK_U64(count, asks[i].on[node] ? asks[i].gpus : 0);
        }
    }
    struct acre_request wide = kit_gang(2, 4, 100);
    struct acre_part parts[4];
    uint32_t count;
    uint32_t node = 0;
    CHECK_EQ(acre_ledger_plan_on(ledger, &wide, &node, 1, parts, 4, &count, NULL), ACRE_ELIMIT);
    wide = kit_share(1);
    CHECK_EQ(acre_ledger_plan_on(ledger, &wide, &node, 1, parts, 4, &count, NULL), ACRE_EDENIED);
    CHECK(!acre_ledger_may_fit_on(ledger, &wide, 1));
    kit_destroy(ledger);
}

/* A node with a device reserved for later may fit what ends in time: nobody can tell without. */
static void a_reserved_node_may_fit(void) {
    struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_FIRST_FIT, "0");
    uint32_t device = 0;
    uint64_t id;
    struct acre_reservation_spec spec = {.user = kit_name(ledger, "ada"),
                                         .devices = &device,
                                         .device_count = 1,
                                         .milli = 1000,
                                         .start_ms = KIT_NOW_MS + 1000,
                                         .end_ms = KIT_NOW_MS + 2000};
    REQUIRE_EQ(acre_ledger_reserve(ledger, &spec, KIT_NOW_MS, &id, NULL), 0);
    struct acre_request request = kit_whole(1);
    CHECK(acre_ledger_may_fit_on(ledger, &request, 0));
    request.reservation = id;
    CHECK(acre_ledger_may_fit_on(ledger, &request, 0));
    kit_destroy(ledger);
}

/* What overstays is expected to end, and is held until it is released; a window may be reserved
 * behind it. */
static void what_overstays_is_held_until_released(void) {
    struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_FIRST_FIT, "0");
    struct acre_request request = kit_whole(1);
    request.expires_ms = KIT_NOW_MS + 1000;
    request.overstays = true;
    uint64_t id = KIT_TAKE(ledger, request);
    CHECK_U64(acre_ledger_tick(ledger, KIT_NOW_MS + 5000), 0);
    struct acre_allocation held;
    CHECK(acre_ledger_find(ledger, id, &held));
    KIT_RELEASE(ledger, id);
    acre_ledger_expect(ledger, &request);
    kit_destroy(ledger);
}

static const struct acre_test tests[] = {
    {"giving_back_says_when_it_fits_and_where", giving_back_says_when_it_fits_and_where, 0},
    {"a_veil_takes_what_is_missing_and_no_more", a_veil_takes_what_is_missing_and_no_more, 0},
    {"a_veil_over_a_whole_device_takes_all_of_it", a_veil_over_a_whole_device_takes_all_of_it, 0},
    {"a_veil_keeps_memory_cpu_and_other_kinds_away", a_veil_keeps_memory_cpu_and_other_kinds_away,
     0},
    {"a_veil_leaves_all_that_the_head_does_not_need", a_veil_leaves_all_that_the_head_does_not_need,
     0},
    {"a_device_given_back_whole_takes_any_kind", a_device_given_back_whole_takes_any_kind, 0},
    {"a_place_names_all_that_hold_something_on_its_nodes",
     a_place_names_all_that_hold_something_on_its_nodes, 0},
    {"requests_without_an_outlook_have_none", requests_without_an_outlook_have_none, 0},
    {"could_fit_judges_an_idle_cluster", could_fit_judges_an_idle_cluster, 0},
    {"one_node_can_be_asked", one_node_can_be_asked, 0},
    {"a_reserved_node_may_fit", a_reserved_node_may_fit, 0},
    {"what_overstays_is_held_until_released", what_overstays_is_held_until_released, 0},
};

ACRE_TEST_MAIN(tests)
