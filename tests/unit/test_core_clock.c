/* Clocks: virtual ones move only by hand, real ones agree with the machine. */
#include "core/clock.h"
#include "support/dies.h"
#include "support/test.h"

#include <time.h>

static void a_virtual_clock_moves_only_by_hand(void) {
    struct acre_clock clock = acre_clock_virtual(1000);
    CHECK_U64(acre_clock_wall_ms(&clock), 1000);
    CHECK_U64(acre_clock_monotonic_ns(&clock), 1000000000);
    acre_clock_advance(&clock, 0);
    CHECK_U64(acre_clock_wall_ms(&clock), 1000);
    acre_clock_advance(&clock, 250);
    CHECK_U64(acre_clock_wall_ms(&clock), 1250);
    CHECK_U64(acre_clock_monotonic_ns(&clock), 1250000000);
}

static void the_real_clock_is_the_machines(void) {
    struct acre_clock clock = acre_clock_real();
    uint64_t before_ms = (uint64_t)time(NULL) * 1000;
    uint64_t wall_ms = acre_clock_wall_ms(&clock);
    CHECK(wall_ms + 1000 >= before_ms); /* time() may be a tick behind */
    CHECK(wall_ms <= before_ms + 60000);
    uint64_t last_ns = acre_clock_monotonic_ns(&clock);
    for (int i = 0; i < 1000; i++) {
        uint64_t now_ns = acre_clock_monotonic_ns(&clock);
        CHECK(now_ns >= last_ns);
        last_ns = now_ns;
    }
}

static void advance_a_real_clock(void) {
    struct acre_clock clock = acre_clock_real();
    acre_clock_advance(&clock, 1);
}

static void advance_past_the_end(void) {
    struct acre_clock clock = acre_clock_virtual(UINT64_MAX);
    acre_clock_advance(&clock, 1);
}

static void read_past_the_end(void) {
    struct acre_clock clock = acre_clock_virtual(UINT64_MAX);
    acre_clock_monotonic_ns(&clock);
}

static void misuse_asserts(void) {
    CHECK(acre_dies(advance_a_real_clock));
    CHECK(acre_dies(advance_past_the_end));
    CHECK(acre_dies(read_past_the_end));
}

static void times_are_written_in_utc(void) {
    static const struct {
        uint64_t ms;
        const char *text;
    } cases[] = {
        {0, "1970-01-01T00:00:00.000Z"},
        {1, "1970-01-01T00:00:00.001Z"},
        {UINT64_C(951782400000), "2000-02-29T00:00:00.000Z"},
        {UINT64_C(1794709800123), "2026-11-15T02:30:00.123Z"},
        {UINT64_C(4107542399999), "2100-02-28T23:59:59.999Z"},
        {UINT64_C(4107542400000), "2100-03-01T00:00:00.000Z"},
        {UINT64_C(253402300799999), "9999-12-31T23:59:59.999Z"},
        {UINT64_C(253402300800000), "9999-12-31T23:59:59.999Z"},
        {UINT64_MAX, "9999-12-31T23:59:59.999Z"},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        char text[25];
        CHECK_STR(acre_format_time(cases[i].ms, text), cases[i].text);
    }
}

static const struct acre_test tests[] = {
    {"a_virtual_clock_moves_only_by_hand", a_virtual_clock_moves_only_by_hand, 0},
    {"the_real_clock_is_the_machines", the_real_clock_is_the_machines, 0},
    {"misuse_asserts", misuse_asserts, 0},
    {"times_are_written_in_utc", times_are_written_in_utc, 0},
};

ACRE_TEST_MAIN(tests)
