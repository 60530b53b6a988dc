/* Log lines: logfmt that no value can break out of. */
#include "core/log.h"
#include "core/str.h"
#include "support/test.h"

#include <stdio.h>
#include <unistd.h>

static void levels_have_names(void) {
    static const struct {
        const char *text;
        bool good;
        enum acre_log_level level;
    } cases[] = {
        {"debug", true, ACRE_LOG_DEBUG}, {"info", true, ACRE_LOG_INFO},
        {"warn", true, ACRE_LOG_WARN},   {"error", true, ACRE_LOG_ERROR},
        {"none", true, ACRE_LOG_NONE},   {"INFO", false, ACRE_LOG_NONE},
        {"", false, ACRE_LOG_NONE},      {"inf", false, ACRE_LOG_NONE},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        enum acre_log_level level = ACRE_LOG_NONE;
        acre_test_context("'%s'", cases[i].text);
        CHECK_EQ(acre_log_level_parse(cases[i].text, &level), cases[i].good);
        CHECK_EQ(level, cases[i].level);
    }
}

static void the_level_decides_what_is_written(void) {
    for (int set = ACRE_LOG_DEBUG; set <= ACRE_LOG_NONE; set++) {
        acre_log_set_level((enum acre_log_level)set);
        for (int level = ACRE_LOG_DEBUG; level < ACRE_LOG_NONE; level++) {
            CHECK_EQ(acre_log_enabled((enum acre_log_level)level), level >= set);
        }
        CHECK(!acre_log_enabled(ACRE_LOG_NONE));
    }
}

static const char *format(char line[512], const char *message, const char *value) {
    struct acre_log_pair pair = {"k", value};
    return acre_log_format(line, 512, 0, ACRE_LOG_WARN, message, &pair, 1);
}

static void values_are_quoted_when_they_must_be(void) {
    static const struct {
        const char *value, *shown;
    } cases[] = {
        {"gpu-3", "gpu-3"},
        {"42", "42"},
        {"a/b:c,d;e'f", "a/b:c,d;e'f"},
        {"", "\"\""},
        {NULL, "\"\""},
        {"two words", "\"two words\""},
        {"a=b", "\"a=b\""},
        {"say \"hi\"", "\"say \\\"hi\\\"\""},
        {"back\\slash", "\"back\\\\slash\""},
        {"line\nlevel=error", "\"line\\nlevel=error\""},
        {"\x1b[31m", "\"\\x1b[31m\""},
        {"\x7f", "\"\\x7f\""},
        {"caf\xc3\xa9", "\"caf\xc3\xa9\""},
        {"\xff", "\"\\xff\""},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        char line[512], expect[512];
        acre_test_context("case %zu", i);
        snprintf(expect, sizeof(expect), "ts=1970-01-01T00:00:00.000Z level=warn msg=started k=%s",
                 cases[i].shown);
        CHECK_STR(format(line, "started", cases[i].value), expect);
    }
}

static void a_line_holds_all_its_fields_in_order(void) {
    char line[512];
    const struct acre_log_pair pairs[] = {{"job", "42"}, {"node", "gpu-3"}};
    acre_log_format(line, sizeof(line), UINT64_C(1794709800123), ACRE_LOG_INFO, "job started",
                    pairs, 2);
    CHECK_STR(line, "ts=2026-11-15T02:30:00.123Z level=info msg=\"job started\" job=42 node=gpu-3");
    acre_log_format(line, sizeof(line), 0, ACRE_LOG_ERROR, "x", NULL, 0);
    CHECK_STR(line, "ts=1970-01-01T00:00:00.000Z level=error msg=x");
}

/* At every length: inside its memory, valid UTF-8, an even number of quotes. */
static void cut_lines_stay_well_formed(void) {
    const struct acre_log_pair pairs[] = {{"a", "b c \xe2\x82\xac\n"}, {"d", "\"\\"}, {"e", "f"}};
    char whole[512];
    acre_log_format(whole, sizeof(whole), 0, ACRE_LOG_DEBUG, "two words", pairs, 3);
    for (size_t size = 1; size <= strlen(whole) + 1; size++) {
        char line[512];
        acre_test_context("size %zu", size);
        memset(line, '#', sizeof(line));
        acre_log_format(line, size, 0, ACRE_LOG_DEBUG, "two words", pairs, 3);
        REQUIRE(strlen(line) < size);
        CHECK_EQ(line[size], '#');
        bool quoted = false;
        for (const char *p = line; *p != '\0'; p++) {
            quoted ^= *p == '"';
            p += *p == '\\';
        }
        CHECK(!quoted);
        for (struct acre_str rest = acre_str_from(line); rest.length > 0;) {
            size_t step = acre_str_utf8(rest);
            REQUIRE(step > 0);
            rest.data += step;
            rest.length -= step;
        }
    }
    char line[512];
    acre_log_format(line, strlen(whole) + 1, 0, ACRE_LOG_DEBUG, "two words", pairs, 3);
    CHECK_STR(line, whole);
}

static void written_lines_reach_standard_error_whole(void) {
    int ends[2];
    REQUIRE_EQ(pipe(ends), 0);
    int kept = dup(STDERR_FILENO);
    dup2(ends[1], STDERR_FILENO);
    acre_log_set_level(ACRE_LOG_WARN);
    acre_log(ACRE_LOG_INFO, "not written", {"k", "v"});
    acre_log(ACRE_LOG_WARN, "low memory", {"node", "gpu-3"}, {"free_mib", "12"});
    static char big[10000];
    memset(big, 'x', sizeof(big) - 1);
    acre_log(ACRE_LOG_ERROR, "big one", {"value", big});
    dup2(kept, STDERR_FILENO);
    close(ends[1]);
    static char text[16384];
    size_t length = 0;
    for (ssize_t got; (got = read(ends[0], text + length, sizeof(text) - 1 - length)) > 0;) {
        length += (size_t)got;
    }
    char *second = strchr(text, '\n');
    REQUIRE(second != NULL);
    *second++ = '\0';
    CHECK_EQ(strncmp(text, "ts=20", 5), 0);
    CHECK_HAS(text, " level=warn msg=\"low memory\" node=gpu-3 free_mib=12");
    CHECK_HAS(second, "level=error msg=\"big one\"");
    CHECK_EQ(text[length - 1], '\n');
    CHECK(strlen(second) <= 4096);
}

static const struct acre_test tests[] = {
    {"levels_have_names", levels_have_names, 0},
    {"the_level_decides_what_is_written", the_level_decides_what_is_written, 0},
    {"values_are_quoted_when_they_must_be", values_are_quoted_when_they_must_be, 0},
    {"a_line_holds_all_its_fields_in_order", a_line_holds_all_its_fields_in_order, 0},
    {"cut_lines_stay_well_formed", cut_lines_stay_well_formed, 0},
    {"written_lines_reach_standard_error_whole", written_lines_reach_standard_error_whole, 0},
};

ACRE_TEST_MAIN(tests)
