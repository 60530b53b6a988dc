/* Times as people read them, and RFC 3339 as programs write it (UI-2). */
#include "cli/when.h"
#include "core/clock.h"

#include "support/test.h"

#include <stdlib.h>
#include <time.h>

static void wire_times_are_read_exactly(void) {
    static const struct {
        const char *text;
        uint64_t ms;
    } cases[] = {
        {"1970-01-01T00:00:00Z", 0},
        {"1970-01-01T00:00:00.001Z", 1},
        {"2026-11-15T02:30:00.123Z", UINT64_C(1794709800123)},
        {"2026-11-15T03:30:00.123+01:00", UINT64_C(1794709800123)},
        {"2026-11-14T21:00:00.123-05:30", UINT64_C(1794709800123)},
        {"2024-02-29T00:00:00Z", UINT64_C(1709164800000)},
        {"2000-02-29T12:00:00Z", UINT64_C(951825600000)},
        {"9999-12-31T23:59:59.999Z", UINT64_C(253402300799999)},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        uint64_t ms = 1;
        acre_test_context("%s", cases[i].text);
        CHECK(when_parse(cases[i].text, &ms));
        CHECK_U64(ms, cases[i].ms);
    }
    for (uint64_t at = 1; at < UINT64_C(253402300799999); at = at * 3 + 7) { /* and back */
        char text[25];
        uint64_t ms = 0;
        CHECK(when_parse(acre_format_time(at, text), &ms));
        CHECK_U64(ms, at);
    }
}

static void what_is_no_time_is_refused(void) {
    static const char *const texts[] = {
        "",
        "now",
        "2026-11-15",
        "2026-11-15T02:30:00",
        "2026-11-15 02:30:00Z",
        "2026-13-15T02:30:00Z",
        "2026-00-15T02:30:00Z",
        "2026-02-29T02:30:00Z",
        "1900-02-29T02:30:00Z",
        "2026-11-31T02:30:00Z",
        "2026-11-00T02:30:00Z",
        "2026-11-15T24:30:00Z",
        "2026-11-15T02:60:00Z",
        "2026-11-15T02:30:61Z",
        "2026-11-15T02:30:00.12Z",
        "2026-11-15T02:30:00Zx",
        "2026-11-15T02:30:00+1:00",
        "2026-11-15T02:30:00+24:00",
        "1969-12-31T23:59:59Z",
        "1970-01-01T00:00:00+01:00",
        "-026-11-15T02:30:00Z",
    };
    for (size_t i = 0; i < ACRE_COUNT(texts); i++) {
        uint64_t ms = 42;
        acre_test_context("%s", texts[i]);
        CHECK(!when_parse(texts[i], &ms));
        CHECK_U64(ms, 42);
    }
}

static void spans_show_two_units(void) {
    static const struct {
        uint64_t ms;
        const char *span, *about;
    } cases[] = {
        {0, "0s", "0s"},
        {999, "0s", "1s"},
        {45000, "45s", "45s"},
        {65000, "1m05s", "65s"},
        {299000, "4m59s", "5m"},
        {3600000, "1h00m", "60m"},
        {5400000 + 1, "1h30m", "1h30m"},
        {86399999, "23h59m", "24h00m"},
        {97200000, "1d3h", "27h00m"},
        {UINT64_C(86400000) * 12, "12d", "12d"},
        {UINT64_MAX, "213503982334d", NULL},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        char text[ACRE_WHEN_MAX];
        CHECK_STR(when_span(cases[i].ms, text, sizeof(text)), cases[i].span);
        if (cases[i].about != NULL) {
            CHECK_STR(when_about(cases[i].ms, text, sizeof(text)), cases[i].about);
        }
    }
}

static void times_are_told_from_now(void) {
    const uint64_t now = UINT64_C(1794709800000);
    char text[2 * ACRE_WHEN_MAX];
    setenv("TZ", "UTC", 1);
    tzset();
    CHECK_STR(when_relative(now, now, text, sizeof(text)), "now");
    CHECK_STR(when_relative(now + 999, now, text, sizeof(text)), "now");
    CHECK_STR(when_relative(now - 65000, now, text, sizeof(text)), "65s ago");
    CHECK_STR(when_relative(now + 65000, now, text, sizeof(text)), "in 65s");
    CHECK_STR(when_clock(now - 1000, now, text, sizeof(text)), "02:29:59");
    CHECK_STR(when_clock(now - UINT64_C(86400000), now, text, sizeof(text)), "Nov 14 02:30");
    CHECK_STR(when_clock(0, now, text, sizeof(text)), "1970-01-01");
    CHECK_STR(when_both(now - 65000, now, text, sizeof(text)), "02:28:55 (65s ago)");
    setenv("TZ", "UTC-3", 1); /* people live in places */
    tzset();
    CHECK_STR(when_clock(now, now, text, sizeof(text)), "05:30:00");
}

static const struct acre_test tests[] = {
    {"wire_times_are_read_exactly", wire_times_are_read_exactly, 0},
    {"what_is_no_time_is_refused", what_is_no_time_is_refused, 0},
    {"spans_show_two_units", spans_show_two_units, 0},
    {"times_are_told_from_now", times_are_told_from_now, 0},
};

ACRE_TEST_MAIN(tests)
