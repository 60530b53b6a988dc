/* What there is of what a request needs, in numbers (POL-9: every number comes from the books). */
#include "ledger/supply.h"
#include "support/ledger_kit.h"

#include <stdio.h>

enum asks { SHARE_300, SHARE_500, SHARE_800, WHOLE_1, WHOLE_2, GANG_2x2, MEMORY_HALF };

static struct acre_request ask(enum asks which) {
    switch (which) {
    case SHARE_300:
        return kit_share(300);
    case SHARE_500:
        return kit_share(500);
    case SHARE_800:
        return kit_share(800);
    case WHOLE_1:
        return kit_whole(1);
    case WHOLE_2:
        return kit_whole(2);
    case GANG_2x2:
        return kit_gang(2, 2, 1000);
    case MEMORY_HALF:
        break;
    }
    return kit_memory(KIT_MEMORY_MIB / 2);
}

static const struct {
    const char *cluster;
    enum asks ask;
    uint32_t devices, asked, free, largest, fitting, most, members;
    const char *largest_at, *most_at;
} rows[] = {
    /* Two devices 60 % used: in sum 0.8 is free, on no device (CAP-3). */
    {"600 600", SHARE_800, 2, 800, 800, 400, 0, 0, 0, "a", ""},
    {"600|600", SHARE_300, 2, 300, 800, 400, 2, 1, 2, "a", "a"},
    {"0 1000|300 0", WHOLE_1, 4, 1000, 2700, 1000, 2, 1, 2, "a", "a"},
    {"0 1000|0 0", WHOLE_2, 4, 1000, 3000, 1000, 3, 2, 1, NULL, "b"},
    {"0 0 0 1000|0 0", GANG_2x2, 6, 1000, 5000, 1000, 5, 3, 2, "a", "a"},
    {"x 0|1000", WHOLE_1, 3, 1000, 1000, 1000, 1, 1, 1, "a", "a"},
    {"1000|1000", SHARE_500, 2, 500, 0, 0, 0, 0, 0, "", ""},
    {"0|500", MEMORY_HALF, 2, 500, 1500, 1000, 2, 1, 3, "a", "a"},
};

static void numbers_are_those_of_the_books(void) {
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        acre_test_context("row %zu", i);
        struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_DEFAULT, rows[i].cluster);
        struct acre_request request = ask(rows[i].ask);
        struct acre_supply supply;
        REQUIRE_EQ(acre_ledger_supply(ledger, &request, &supply, NULL), 0);
        CHECK_EQ(supply.devices, rows[i].devices);
        CHECK_EQ(supply.asked_milli, rows[i].asked);
        CHECK_U64(supply.free_milli, rows[i].free);
        CHECK_EQ(supply.largest_milli, rows[i].largest);
        CHECK_EQ(supply.fitting, rows[i].fitting);
        CHECK_EQ(supply.most_fitting, rows[i].most);
        CHECK_U64(supply.members, rows[i].members);
        if (rows[i].largest_at != NULL) { /* NULL: either */
            CHECK_STR(supply.largest_at, rows[i].largest_at);
        }
        CHECK_STR(supply.most_at, rows[i].most_at);
        kit_destroy(ledger);
    }
}

static void what_is_wrong_is_refused(void) {
    struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_DEFAULT, "0");
    struct acre_request request = kit_share(50);
    struct acre_supply supply;
    struct acre_error err;
    uint64_t slots;
    uint32_t milli;
    CHECK_EQ(acre_ledger_supply(ledger, &request, &supply, &err), ACRE_EDENIED);
    CHECK(!acre_ledger_kind_serves(ledger, &request, 0, &slots, &milli));
    kit_destroy(ledger);
}

static void kinds_say_which_devices_serve(void) {
    struct acre_ledger *ledger = kit_create(ACRE_STRATEGY_DEFAULT);
    const struct acre_device_spec mixed[] = {
        {.model = "A100", .memory_mib = 40000},
        {.model = "H100", .memory_mib = 80000},
        {.model = "A100", .memory_mib = 40000},
    };
    uint32_t a = kit_add_devices(ledger, "a", mixed, 3), b = kit_add(ledger, "b", 2, 80000);
    uint32_t c = kit_add_devices(ledger, "c", mixed, 3);
    CHECK_EQ(acre_ledger_kind_count(ledger), 2);
    CHECK_EQ(acre_ledger_kind_of(ledger, a), acre_ledger_kind_of(ledger, c));
    CHECK(acre_ledger_kind_of(ledger, a) != acre_ledger_kind_of(ledger, b));
    struct acre_request request = kit_share(300);
    request.models[0] = kit_name(ledger, "A100");
    uint64_t slots;
    uint32_t milli;
    REQUIRE(
        acre_ledger_kind_serves(ledger, &request, acre_ledger_kind_of(ledger, a), &slots, &milli));
    CHECK_EQ(milli, 300);
    for (uint32_t i = 0; i < 3; i++) {
        char id[8];
        snprintf(id, sizeof(id), "c/%u", i);
        uint32_t slot = acre_ledger_slot_of(ledger, kit_device(ledger, id));
        CHECK_EQ((slots >> slot & 1) != 0, i != 1);
    }
    CHECK(
        !acre_ledger_kind_serves(ledger, &request, acre_ledger_kind_of(ledger, b), &slots, &milli));
    struct acre_request memory =
        kit_memory(20000); /* half of the smaller, a quarter of the other */
    REQUIRE(
        acre_ledger_kind_serves(ledger, &memory, acre_ledger_kind_of(ledger, a), &slots, &milli));
    CHECK_EQ(milli, 500);
    CHECK_U64(slots, 7);
    REQUIRE(
        acre_ledger_kind_serves(ledger, &memory, acre_ledger_kind_of(ledger, b), &slots, &milli));
    CHECK_EQ(milli, 250);
    struct acre_request both = kit_both(100, 60000);
    REQUIRE(acre_ledger_kind_serves(ledger, &both, acre_ledger_kind_of(ledger, b), &slots, &milli));
    CHECK_EQ(milli, 750); /* memory is the scarcer part */
    struct acre_request cpu = kit_cpu(1000, 1);
    REQUIRE(acre_ledger_kind_serves(ledger, &cpu, acre_ledger_kind_of(ledger, b), &slots, &milli));
    CHECK_U64(slots, 0);
    kit_destroy(ledger);
}

/* CAP-3: devices that could never serve it are in none of the numbers. */
static void other_hardware_is_not_counted(void) {
    static const struct {
        const char *model; /* NULL: any */
        uint32_t gpus;
        uint64_t mib;
        uint32_t devices, fitting;
    } asks[] = {
        {NULL, 1, 0, 7, 7}, {"A100", 1, 0, 2, 2},     {"H100", 1, 0, 5, 5},
        {"L4", 1, 0, 0, 0}, {NULL, 1, 60000, 5, 5},   {NULL, 3, 0, 4, 4},
        {NULL, 5, 0, 0, 0}, {"A100", 2, 60000, 0, 0},
    };
    struct acre_ledger *ledger = kit_create(ACRE_STRATEGY_DEFAULT);
    const struct acre_device_spec small[] = {{.model = "A100", .memory_mib = 40000},
                                             {.model = "A100", .memory_mib = 40000}};
    const struct acre_device_spec one[] = {{.model = "H100", .memory_mib = 80000}};
    const struct acre_device_spec large[] = {one[0], one[0], one[0], one[0]};
    kit_add_devices(ledger, "a", small, 2);
    kit_add_devices(ledger, "b", large, 4);
    kit_add_devices(ledger, "c", one, 1);
    for (size_t i = 0; i < ACRE_COUNT(asks); i++) {
        acre_test_context("row %zu", i);
        struct acre_request request = kit_gang(1, asks[i].gpus, 100);
        request.mib = asks[i].mib;
        request.models[0] = asks[i].model != NULL ? kit_name(ledger, asks[i].model) : 0;
        struct acre_supply supply;
        REQUIRE_EQ(acre_ledger_supply(ledger, &request, &supply, NULL), 0);
        CHECK_EQ(supply.devices, asks[i].devices);
        CHECK_EQ(supply.fitting, asks[i].fitting);
        CHECK_U64(supply.free_milli, asks[i].devices * 1000U);
        CHECK_EQ(supply.asked_milli > 0, asks[i].devices > 0);
    }
    kit_destroy(ledger);
}

static const struct acre_test tests[] = {
    {"numbers_are_those_of_the_books", numbers_are_those_of_the_books, 0},
    {"other_hardware_is_not_counted", other_hardware_is_not_counted, 0},
    {"what_is_wrong_is_refused", what_is_wrong_is_refused, 0},
    {"kinds_say_which_devices_serve", kinds_say_which_devices_serve, 0},
};

ACRE_TEST_MAIN(tests)
