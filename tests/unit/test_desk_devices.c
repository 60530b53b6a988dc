/* Devices that are drained, reserved or partly taken by others, as operators ask for it. */
#include "desk/commands.h"
#include "support/desk_kit.h"

#include "support/test.h"

#include <stdlib.h>
#include <string.h>

static struct acre_reservation_spec next_minute(struct desk_kit *kit, uint32_t count) {
    uint64_t now_ms = acre_desk_now(kit->desk);
    return (struct acre_reservation_spec){.device_count = count,
                                          .milli = 1000,
                                          .start_ms = now_ms + 60000,
                                          .end_ms = now_ms + 120000};
}

/* ALC-8: without names, the first devices that are free in that window. */
static void a_reservation_without_names_takes_the_first_free_devices(void) {
    struct desk_kit kit = {0};
    struct acre_error err = {0};
    struct acre_reservation got;
    uint64_t id = 0;
    desk_kit_start(&kit);
    uint64_t now_ms = acre_desk_now(kit.desk);
    acre_desk_drain_device(kit.desk, 1, "fan");
    struct acre_reservation_spec spec = next_minute(&kit, 2);
    REQUIRE_EQ(acre_desk_reserve(kit.desk, "ada", &spec, now_ms, &id, &err), 0);
    REQUIRE(acre_ledger_find_reservation(acre_desk_ledger(kit.desk), id, &got));
    REQUIRE(got.device_count == 2);
    CHECK_U64(got.devices[0], 0);
    CHECK_U64(got.devices[1], 2);
    CHECK_EQ(acre_desk_reserve(kit.desk, "ada", &spec, now_ms, &id, &err), ACRE_ECONFLICT);
    CHECK_STR(err.text, "gpus: 2 asked for, but only 1 of 4 are free in that period");
    desk_kit_finish(&kit);
}

/* DEV-6: what others use is counted from the first report on, as far as there is memory to use. */
static void memory_that_others_use_counts_from_the_first_report(void) {
    static const struct {
        uint64_t memory_mib, sampled_ms, foreign_mib, expect_mib;
    } rows[] = {
        {81920, 5, 3000, 3000}, {1000, 5, 3000, 1000},
        {1, 5, 3000, 1},        {0, 5, 3000, 0}, /* nobody knows how much it has */
        {81920, 0, 3000, 0},    {81920, 5, ACRE_UNKNOWN, 0},
    };
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct desk_kit kit = {0};
        struct acre_ledger_device device;
        acre_test_context("row %zu", i);
        desk_kit_prepare(&kit);
        kit.devices[1][1].memory_mib = rows[i].memory_mib;
        kit.devices[1][1].live = (struct acre_device_live){.sampled_ms = rows[i].sampled_ms,
                                                           .foreign_mib = rows[i].foreign_mib};
        desk_kit_start(&kit);
        acre_ledger_device_info(acre_desk_ledger(kit.desk), 3, &device);
        CHECK_U64(device.foreign_mib, rows[i].expect_mib);
        desk_kit_finish(&kit);
    }
}

static const struct acre_test tests[] = {
    {"a_reservation_without_names_takes_the_first_free_devices",
     a_reservation_without_names_takes_the_first_free_devices, 0},
    {"memory_that_others_use_counts_from_the_first_report",
     memory_that_others_use_counts_from_the_first_report, 0},
};
ACRE_TEST_MAIN(tests)
