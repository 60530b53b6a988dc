/* Sizes, durations, shares and counts are read strictly and written so that they read back. */
#include "core/rand.h"
#include "core/units.h"
#include "support/test.h"

#include <inttypes.h>

static void sizes_that_are_accepted(void) {
    static const struct {
        const char *text;
        uint64_t mib;
    } cases[] = {
        {"1", 1},
        {"512", 512},
        {"0512", 512},
        {"512MiB", 512},
        {"1024KiB", 1},
        {"2047KiB", 1},
        {"80GiB", 81920},
        {"1.5GiB", 1536},
        {"0.5GiB", 512},
        {"0.001GiB", 1},
        {"1.999999GiB", 2047},
        {"2TiB", 2097152},
        {"0.25TiB", 262144},
        {"16GB", 15258}, /* 16e9 / 2^20 = 15258.78 */
        {"1.5TB", 1430511},
        {"1049KB", 1}, /* 1,049,000 bytes; a MiB is 1,048,576 */
        {"2MB", 1},
        {"1048576TiB", ACRE_MIB_MAX},
        {"1099511627776", ACRE_MIB_MAX},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        acre_test_context("'%s'", cases[i].text);
        struct acre_error err = {0};
        uint64_t mib = 0;
        CHECK_EQ(acre_parse_mib("gpu-memory", cases[i].text, &mib, &err), 0);
        CHECK_U64(mib, cases[i].mib);
        CHECK_EQ(err.code, 0);
        CHECK_EQ(acre_parse_mib("gpu-memory", cases[i].text, &mib, NULL), 0);
    }
}

static void sizes_that_are_refused(void) { /* ALC-5: every bad value, with what is accepted */
    static const char *const cases[] = {
        "",
        "-1",
        "+1",
        " 1",
        "1 ",
        "1 GiB",
        "0x10",
        "1e3",
        "half",
        "GiB",
        "0",
        "0MiB",
        "0GiB",
        "0.0GiB",
        "0.0001GiB", /* 0.1 MiB */
        "1023KiB",   /* less than a MiB */
        "1MB",       /* 0.95 MiB */
        "1.5",       /* decimals need a unit that can hold them */
        "1.5MiB",
        "1.5KiB",
        "1.GiB",
        ".5GiB",
        "1.2.3GiB",
        "1.0000001GiB", /* seven decimals */
        "1gib",
        "1GIB",
        "1G",
        "1B",
        "1PiB",
        "1MiBs",
        "1MiB\n",
        "1,5GiB",
        "1048577TiB", /* 1 EiB + 1 TiB */
        "1048576.000001TiB",
        "1099511627777",
        "9223372036854775808", /* 2^63 */
        "18446744073709551615",
        "18446744073709551616", /* 2^64 */
        "18446744073709551616GiB",
        "17592186044417MiB", /* 2^64 bytes + 1 MiB wraps to 1 MiB */
        "16777217TiB",
        "1234567890123456789012345678901234567890",
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        acre_test_context("'%s'", cases[i]);
        struct acre_error err = {0};
        uint64_t mib = 77;
        CHECK_EQ(acre_parse_mib("gpu-memory", cases[i], &mib, &err), ACRE_EINVALID);
        CHECK_EQ(err.code, ACRE_EINVALID);
        CHECK_U64(mib, 77);
        CHECK_HAS(err.text, "gpu-memory: '");
        CHECK_HAS(err.text,
                  "' is not a valid size; accepted: 1 MiB to 1 EiB, e.g. 512MiB or 80GiB");
        CHECK_EQ(acre_parse_mib("gpu-memory", cases[i], &mib, NULL), ACRE_EINVALID);
    }
}

static void the_value_is_shown_safely(void) {
    struct acre_error err = {0};
    uint64_t mib;
    acre_parse_mib("gpu-memory", "-1", &mib, &err);
    CHECK_STR(err.text, "gpu-memory: '-1' is not a valid size; accepted: 1 MiB to 1 EiB, "
                        "e.g. 512MiB or 80GiB");
    acre_parse_mib("gpu-memory", "\x1b[2J\n", &mib, &err);
    CHECK_HAS(err.text, "'\\x1b[2J\\n'");
    char big[4000];
    memset(big, '9', sizeof(big) - 1);
    big[sizeof(big) - 1] = '\0';
    acre_parse_mib("gpu-memory", big, &mib, &err);
    CHECK_HAS(err.text, "999...' is not a valid size");
    CHECK_HAS(err.text, "80GiB");
}

static void durations_that_are_accepted(void) {
    static const struct {
        const char *text;
        uint64_t ms;
    } cases[] = {
        {"0s", 0},
        {"1ms", 1},
        {"1500ms", 1500},
        {"90s", 90000},
        {"90m", 5400000},
        {"1h30m", 5400000},
        {"1h90m", 9000000},
        {"7d", 604800000},
        {"1d2h3m4s5ms", 93784005},
        {"1d5ms", 86400005},
        {"36600d", ACRE_DURATION_MAX_MS},
        {"3162240000000ms", ACRE_DURATION_MAX_MS},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        acre_test_context("'%s'", cases[i].text);
        struct acre_error err = {0};
        uint64_t ms = 7;
        CHECK_EQ(acre_parse_duration("time-limit", cases[i].text, &ms, &err), 0);
        CHECK_U64(ms, cases[i].ms);
    }
}

static void durations_that_are_refused(void) {
    static const char *const cases[] = {
        "",
        "90", /* of what? */
        "s",
        "-1s",
        "+1s",
        " 1s",
        "1s ",
        "1 s",
        "1.5h",
        "1e3s",
        "0x10s",
        "1w",
        "1y",
        "1S",
        "1H",
        "1sec",
        "1h30",
        "1h 30m",
        "30m1h", /* ascending */
        "1h1h",  /* twice */
        "1ms1s",
        "1smsm",
        "36601d",
        "36600d1ms",
        "18446744073709551615ms",
        "213503982335d", /* 2^64 ms and a little */
        "1234567890123456789012345678901234567890s",
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        acre_test_context("'%s'", cases[i]);
        struct acre_error err = {0};
        uint64_t ms = 77;
        CHECK_EQ(acre_parse_duration("time-limit", cases[i], &ms, &err), ACRE_EINVALID);
        CHECK_U64(ms, 77);
        CHECK_HAS(err.text, "time-limit: '");
        CHECK_HAS(err.text, "' is not a valid duration; accepted: ");
        CHECK_HAS(err.text, "1h30m");
    }
}

static void shares_that_are_accepted(void) { /* ALC-1: tenths are exact */
    static const struct {
        const char *text;
        uint32_t milli;
    } cases[] = {
        {"0.1", 100},   {"0.2", 200},    {"0.3", 300},  {"0.4", 400},   {"0.5", 500},
        {"0.6", 600},   {"0.7", 700},    {"0.8", 800},  {"0.9", 900},   {"1", 1000},
        {"1.0", 1000},  {"1.000", 1000}, {"0.25", 250}, {"0.333", 333}, {"0.101", 101},
        {"0.999", 999}, {"0.10", 100},   {"00.5", 500},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        acre_test_context("'%s'", cases[i].text);
        struct acre_error err = {0};
        uint32_t milli = 0;
        CHECK_EQ(acre_parse_milli("gpu-fraction", cases[i].text, 100, 1000, &milli, &err), 0);
        CHECK_U64(milli, cases[i].milli);
    }
}

static void shares_that_are_refused(void) { /* ALC-1, ALC-5 */
    static const char *const cases[] = {
        "",
        "0",
        "0.0",
        "0.05",
        "0.099",
        "1.001",
        "1.5",
        "2",
        "0.1234",
        "half",
        ".5",
        "1.",
        "-0.5",
        "+1",
        " 0.5",
        "0.5 ",
        "0,5",
        "1e-1",
        "0x1",
        "nan",
        "inf",
        "50%",
        "0.5.5",
        "18446744073709552", /* times 1000 wraps to 384 */
        "18446744073709551616",
        "1234567890123456789012345678901234567890",
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        acre_test_context("'%s'", cases[i]);
        struct acre_error err = {0};
        uint32_t milli = 77;
        CHECK_EQ(acre_parse_milli("gpu-fraction", cases[i], 100, 1000, &milli, &err),
                 ACRE_EINVALID);
        CHECK_U64(milli, 77);
        CHECK_HAS(err.text, "gpu-fraction: '");
        CHECK_HAS(err.text, "accepted: 0.1 to 1.0 in steps of 0.001");
    }
}

static void a_share_has_the_range_of_its_caller(void) {
    struct acre_error err = {0};
    uint32_t milli = 0;
    CHECK_EQ(acre_parse_milli("cpus", "0.001", 0, UINT32_MAX, &milli, &err), 0);
    CHECK_U64(milli, 1);
    CHECK_EQ(acre_parse_milli("cpus", "4294967.295", 0, UINT32_MAX, &milli, &err), 0);
    CHECK_U64(milli, UINT32_MAX);
    CHECK_EQ(acre_parse_milli("cpus", "4294967.296", 0, UINT32_MAX, &milli, &err), ACRE_EINVALID);
    CHECK_HAS(err.text, "accepted: 0.0 to 4294967.295 in steps");
    CHECK_EQ(acre_parse_milli("cpus", "0.24", 250, 500, &milli, &err), ACRE_EINVALID);
    CHECK_HAS(err.text, "accepted: 0.25 to 0.5 in steps");
}

static void counts_are_whole_and_within_their_range(void) {
    static const struct {
        const char *text;
        uint64_t min, max;
        int expect;
        uint64_t value;
    } cases[] = {
        {"0", 0, 8, 0, 0},
        {"8", 0, 8, 0, 8},
        {"08", 0, 8, 0, 8},
        {"9", 0, 8, ACRE_EINVALID, 0},
        {"0", 1, 8, ACRE_EINVALID, 0},
        {"18446744073709551615", 0, UINT64_MAX, 0, UINT64_MAX},
        {"18446744073709551616", 0, UINT64_MAX, ACRE_EINVALID, 0},
        {"18446744073709551625", 0, UINT64_MAX, ACRE_EINVALID, 0},
        {"9223372036854775808", 0, INT64_MAX, ACRE_EINVALID, 0},
        {"1234567890123456789012345678901234567890", 0, UINT64_MAX, ACRE_EINVALID, 0},
        {"", 0, 8, ACRE_EINVALID, 0},
        {"-1", 0, 8, ACRE_EINVALID, 0},
        {"+1", 0, 8, ACRE_EINVALID, 0},
        {" 1", 0, 8, ACRE_EINVALID, 0},
        {"1 ", 0, 8, ACRE_EINVALID, 0},
        {"0x1", 0, 8, ACRE_EINVALID, 0},
        {"1e0", 0, 8, ACRE_EINVALID, 0},
        {"1.0", 0, 8, ACRE_EINVALID, 0},
        {"half", 0, 8, ACRE_EINVALID, 0},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        acre_test_context("'%s'", cases[i].text);
        struct acre_error err = {0};
        uint64_t value = 77;
        CHECK_EQ(acre_parse_count("gpus", cases[i].text, cases[i].min, cases[i].max, &value, &err),
                 cases[i].expect);
        CHECK_U64(value, cases[i].expect == 0 ? cases[i].value : 77);
    }
    struct acre_error err = {0};
    uint64_t value;
    acre_parse_count("gpus", "9", 1, 8, &value, &err);
    CHECK_STR(err.text, "gpus: '9' is not a valid count; accepted: whole numbers from 1 to 8");
    CHECK_EQ(acre_parse_count("limit", "x", 1, UINT64_MAX, &value, &err), ACRE_EINVALID);
    CHECK_STR(err.text, "limit: 'x' is not a valid count; accepted: whole numbers from 1");
}

static void sizes_are_written_short_and_never_rounded_up(void) {
    static const struct {
        uint64_t mib;
        const char *text;
    } cases[] = {
        {0, "0 MiB"},
        {1, "1 MiB"},
        {512, "512 MiB"},
        {1023, "1023 MiB"},
        {1024, "1 GiB"},
        {1025, "1.0 GiB"},
        {1536, "1.5 GiB"},
        {81920, "80 GiB"},
        {143771, "140.4 GiB"},
        {1048575, "1023.9 GiB"},
        {1048576, "1 TiB"},
        {UINT64_C(1) << 30, "1 PiB"},
        {ACRE_MIB_MAX, "1 EiB"},
        {UINT64_MAX, "16777215.9 EiB"},
    };
    char text[32];
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        CHECK_STR(acre_format_mib(cases[i].mib, text, sizeof(text)), cases[i].text);
    }
    CHECK_STR(acre_format_mib(81920, text, 4), "80 ");
}

static void durations_are_written_exactly(void) {
    static const struct {
        uint64_t ms;
        const char *text;
    } cases[] = {
        {0, "0s"},          {1, "1ms"},        {1500, "1s500ms"},         {90000, "1m30s"},
        {5400000, "1h30m"}, {604800000, "7d"}, {93784005, "1d2h3m4s5ms"},
    };
    char text[64];
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        CHECK_STR(acre_format_duration(cases[i].ms, text, sizeof(text)), cases[i].text);
    }
    CHECK_STR(acre_format_duration(93784005, text, 6), "1d2h3");
    CHECK_STR(acre_format_duration(0, text, 2), "0");
    acre_format_duration(UINT64_MAX, text, sizeof(text));
    CHECK_STR(text, "213503982334d14h25m51s615ms");
}

static void shares_are_written_with_what_decimals_they_need(void) {
    static const struct {
        uint64_t milli;
        const char *text;
    } cases[] = {
        {0, "0.0"},          {1, "0.001"},
        {10, "0.01"},        {100, "0.1"},
        {250, "0.25"},       {333, "0.333"},
        {1000, "1.0"},       {1010, "1.01"},
        {8000000, "8000.0"}, {UINT64_MAX, "18446744073709551.615"},
    };
    char text[32];
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        CHECK_STR(acre_format_milli(cases[i].milli, text, sizeof(text)), cases[i].text);
    }
    CHECK_STR(acre_format_milli(333, text, 4), "0.3");
}

static void spans_are_rounded_up_for_people(void) {
    static const struct {
        uint64_t ms;
        const char *text;
    } cases[] = {
        {0, "0 s"},
        {1, "1 ms"},
        {999, "999 ms"},
        {1000, "1 s"},
        {1001, "2 s"},
        {59001, "1 min"},
        {200000, "3 min 20 s"},
        {599001, "10 min"},
        {600000, "10 min"},
        {600001, "11 min"},
        {3540000, "59 min"},
        {3540001, "1 h"},
        {7500000, "2 h 5 min"},
        {86340001, "1 day"},
        {86400000, "1 day"},
        {86400001, "1 day 1 h"},
        {273600000, "3 days 4 h"},
        {UINT64_MAX, "213503982334 days 14 h"},
    };
    char text[32];
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        CHECK_STR(acre_format_span(cases[i].ms, text, sizeof(text)), cases[i].text);
    }
    CHECK_STR(acre_format_span(7500000, text, 4), "2 h");
}

static void counts_and_amounts_agree_with_their_noun(void) {
    char text[40];
    CHECK_STR(acre_format_count(0, "job", text, sizeof(text)), "0 jobs");
    CHECK_STR(acre_format_count(1, "job", text, sizeof(text)), "1 job");
    CHECK_STR(acre_format_count(2, "job", text, sizeof(text)), "2 jobs");
    CHECK_STR(acre_format_amount(0, "GPU", text, sizeof(text)), "0 GPUs");
    CHECK_STR(acre_format_amount(1000, "GPU", text, sizeof(text)), "1 GPU");
    CHECK_STR(acre_format_amount(500, "GPU", text, sizeof(text)), "0.5 GPUs");
    CHECK_STR(acre_format_amount(4501, "CPU", text, sizeof(text)), "4.501 CPUs");
    CHECK_STR(acre_format_amount(8000, "GPU", text, 4), "8 G");
}

static void what_is_written_reads_back(void) {
    struct acre_rand rand;
    acre_rand_seed(&rand, 1);
    for (int i = 0; i < 20000; i++) {
        char text[64];
        uint64_t ms = acre_rand_below(&rand, ACRE_DURATION_MAX_MS) >> acre_rand_below(&rand, 41);
        uint64_t ms_again = 0;
        acre_format_duration(ms, text, sizeof(text));
        acre_test_context("seed 1 round %d '%s'", i, text);
        CHECK_EQ(acre_parse_duration("d", text, &ms_again, NULL), 0);
        CHECK_U64(ms_again, ms);
        uint32_t milli = (uint32_t)acre_rand_below(&rand, 1001), milli_again = 0;
        acre_format_milli(milli, text, sizeof(text));
        CHECK_EQ(acre_parse_milli("m", text, 0, 1000, &milli_again, NULL), 0);
        CHECK_U64(milli_again, milli);
    }
}

static const struct acre_test tests[] = {
    {"sizes_that_are_accepted", sizes_that_are_accepted, 0},
    {"sizes_that_are_refused", sizes_that_are_refused, 0},
    {"the_value_is_shown_safely", the_value_is_shown_safely, 0},
    {"durations_that_are_accepted", durations_that_are_accepted, 0},
    {"durations_that_are_refused", durations_that_are_refused, 0},
    {"shares_that_are_accepted", shares_that_are_accepted, 0},
    {"shares_that_are_refused", shares_that_are_refused, 0},
    {"a_share_has_the_range_of_its_caller", a_share_has_the_range_of_its_caller, 0},
    {"counts_are_whole_and_within_their_range", counts_are_whole_and_within_their_range, 0},
    {"sizes_are_written_short_and_never_rounded_up", sizes_are_written_short_and_never_rounded_up,
     0},
    {"durations_are_written_exactly", durations_are_written_exactly, 0},
    {"shares_are_written_with_what_decimals_they_need",
     shares_are_written_with_what_decimals_they_need, 0},
    {"spans_are_rounded_up_for_people", spans_are_rounded_up_for_people, 0},
    {"counts_and_amounts_agree_with_their_noun", counts_and_amounts_agree_with_their_noun, 0},
    {"what_is_written_reads_back", what_is_written_reads_back, 0},
};

ACRE_TEST_MAIN(tests)
