/* Fields of bodies and queries (API-2): every bad value is refused with its field, itself and what
 * is accepted; nothing unknown passes. */
#include "api/field.h"
#include "support/test.h"

#include <stdio.h>

static const char *const words[] = {"low", "normal", "high", NULL};

static const struct field fields[] = {
    {.name = "command",
     .kinds = ACRE_KIND_STRING | ACRE_KIND_STRINGS,
     .required = true,
     .max_length = 20},
    {.name = "gpus", .kinds = ACRE_KIND_NUMBER, .min = 0.1, .max = 64},
    {.name = "count", .kinds = ACRE_KIND_INTEGER},
    {.name = "offset", .kinds = ACRE_KIND_INTEGER, .min = -100, .max = 100},
    {.name = "priority",
     .kinds = ACRE_KIND_INTEGER | ACRE_KIND_STRING,
     .min = 1,
     .max = 4,
     .words = words},
    {.name = "hold", .kinds = ACRE_KIND_BOOL},
    {.name = "environment", .kinds = ACRE_KIND_MAP, .max_length = 2},
    {.name = "limit", .kinds = ACRE_KIND_DURATION},
    {.name = "memory", .kinds = ACRE_KIND_MEMORY},
    {.name = "begin", .kinds = ACRE_KIND_TIME | ACRE_KIND_DURATION},
    {.name = "policy", .kinds = ACRE_KIND_OBJECT},
    {.name = "rows", .kinds = ACRE_KIND_ARRAY},
    {0},
};

static int check(const char *text, struct acre_error *err) {
    json_t *body = NULL;
    REQUIRE_EQ(acre_json_parse("body", acre_str_from(text), 1 << 20, &body, err), 0);
    int r = fields_check_body(fields, body, err);
    json_decref(body);
    return r;
}

static void good_bodies_pass(void) {
    static const char *const bodies[] = {
        "{\"command\":\"x\"}",
        "{\"command\":[]}",
        "{\"command\":[\"a\",\"b\"],\"gpus\":0.1}",
        "{\"command\":\"x\",\"gpus\":64,\"count\":0}",
        "{\"command\":\"x\",\"count\":9007199254740992}",
        "{\"command\":\"x\",\"offset\":-100}",
        "{\"command\":\"x\",\"priority\":4}",
        "{\"command\":\"x\",\"priority\":\"high\",\"hold\":false}",
        "{\"command\":\"x\",\"environment\":{\"A\":\"1\",\"B\":\"\"}}",
        "{\"command\":\"x\",\"limit\":0.5}",
        "{\"command\":\"x\",\"limit\":\"2h30m\"}",
        "{\"command\":\"x\",\"memory\":1,\"policy\":{\"a\":[1]}}",
        "{\"command\":\"x\",\"memory\":\"20GiB\",\"rows\":[1,{}]}",
        "{\"command\":\"x\",\"begin\":\"2026-11-15T02:30:00Z\"}",
        "{\"command\":\"x\",\"begin\":\"10m\"}",
        "{\"command\":\"x\",\"gpus\":null,\"hold\":null,\"environment\":null}",
    };
    for (size_t i = 0; i < ACRE_COUNT(bodies); i++) {
        struct acre_error err = {0};
        acre_test_context("%s", bodies[i]);
        CHECK_EQ(check(bodies[i], &err), 0);
        CHECK_STR(err.text, "");
    }
}

static void bad_bodies_are_refused_by_field_value_and_range(void) {
    static const struct {
        const char *body, *text;
    } rows[] = {
        {"[]", "body: not an object; accepted: {\"field\": ...}"},
        {"{}", "command: required; accepted: a string of at most 20 bytes, or a list of at most 20 "
               "strings"},
        {"{\"command\":null}", "command: required; accepted: a string of at most 20 bytes, or a "
                               "list of at most 20 strings"},
        {"{\"command\":7}", "command: '7' is not valid; accepted: a string of at most 20 bytes, or "
                            "a list of at most 20 strings"},
        {"{\"command\":\"123456789012345678901\"}", "command: '123456789012345678901' is not"},
        {"{\"command\":[1]}", "command: '[...]' is not valid; accepted: a string of at most 20 "
                              "bytes, or a list of at most 20 strings"},
        {"{\"command\":{}}", "command: '{...}' is not valid; accepted: a string of at most 20 "
                             "bytes, or a list of at most 20 strings"},
        {"{\"command\":\"x\",\"gpus\":0.05}",
         "gpus: '0.05' is not valid; accepted: a number from 0.1 to 64"},
        {"{\"command\":\"x\",\"gpus\":1000000000}",
         "gpus: '1000000000' is not valid; accepted: a number from 0.1 to 64"},
        {"{\"command\":\"x\",\"gpus\":\"1\"}",
         "gpus: '1' is not valid; accepted: a number from 0.1 to 64"},
        {"{\"command\":\"x\",\"gpus\":true}", "gpus: 'true' is not valid"},
        {"{\"command\":\"x\",\"count\":-1}",
         "count: '-1' is not valid; accepted: a whole number from 0 to 9007199254740992"},
        {"{\"command\":\"x\",\"count\":1.5}", "count: '1.5' is not valid"},
        {"{\"command\":\"x\",\"count\":9223372036854775807}", "count: '9223372036854775807'"},
        {"{\"command\":\"x\",\"offset\":-101}", "offset: '-101' is not valid; accepted: a whole "
                                                "number from -100 to 100"},
        {"{\"command\":\"x\",\"priority\":5}",
         "priority: '5' is not valid; accepted: low, normal, high, or a whole number from 1 to "
         "4"},
        {"{\"command\":\"x\",\"priority\":\"urgent\"}", "priority: 'urgent' is not valid"},
        {"{\"command\":\"x\",\"hold\":1}", "hold: '1' is not valid; accepted: true or false"},
        {"{\"command\":\"x\",\"environment\":{\"A\":1}}", "environment: '{...}' is not valid"},
        {"{\"command\":\"x\",\"environment\":{\"A\":\"\",\"B\":\"\",\"C\":\"\"}}",
         "environment: '{...}' is not valid; accepted: an object of at most 2 strings"},
        {"{\"command\":\"x\",\"environment\":[]}", "environment: '[...]' is not valid"},
        {"{\"command\":\"x\",\"limit\":-1}", "limit: '-1' is not valid; accepted: a duration"},
        {"{\"command\":\"x\",\"limit\":1e300}", "limit: '1e300' is not valid"},
        {"{\"command\":\"x\",\"limit\":\"2 hours\"}", "limit: '2 hours' is not valid"},
        {"{\"command\":\"x\",\"memory\":0}", "memory: '0' is not valid; accepted: a size like"},
        {"{\"command\":\"x\",\"memory\":1.5}", "memory: '1.5' is not valid"},
        {"{\"command\":\"x\",\"memory\":\"much\"}", "memory: 'much' is not valid"},
        {"{\"command\":\"x\",\"begin\":\"tomorrow\"}", "begin: 'tomorrow' is not valid"},
        {"{\"command\":\"x\",\"policy\":[]}", "policy: '[...]' is not valid; accepted: an "
                                              "object"},
        {"{\"command\":\"x\",\"rows\":{}}", "rows: '{...}' is not valid; accepted: a list"},
        {"{\"command\":\"x\",\"cmd\":1}", "cmd: unknown field; accepted: command, gpus, "},
        {"{\"\\u001b[2J\":1}", "\\x1b[2J: unknown field"},
        {"{\"command\":\"\\u001b[2Jxxxxxxxxxxxxxxxxxxxx\"}", "command: '\\x1b[2Jxxx"},
    };
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct acre_error err = {0};
        acre_test_context("%s", rows[i].body);
        CHECK_EQ(check(rows[i].body, &err), ACRE_EINVALID);
        CHECK_EQ(strncmp(err.text, rows[i].text, strlen(rows[i].text)), 0);
        CHECK_HAS(err.text, rows[i].text);
    }
}

static void a_table_without_fields_accepts_nothing(void) {
    struct acre_error err = {0};
    json_t *body = json_object();
    CHECK_EQ(fields_check_body(NULL, body, &err), 0);
    CHECK_EQ(fields_check_body(NULL, NULL, &err), 0);
    json_object_set_new(body, "x", json_true());
    CHECK_EQ(fields_check_body(NULL, body, &err), ACRE_EINVALID);
    CHECK_STR(err.text, "x: unknown field; accepted: none");
    json_decref(body);
    CHECK_EQ(fields_check_body(fields, NULL, &err), ACRE_EINVALID);
    CHECK_HAS(err.text, "command: required; accepted: a string of at most 20 bytes, or a list of "
                        "at most 20 strings");
}

static const struct field *find(const char *name) {
    const struct field *field = fields;
    while (strcmp(field->name, name) != 0) {
        field++;
    }
    return field;
}

static void texts_of_a_query_are_checked_like_values(void) {
    static const struct {
        const char *field, *text;
        bool ok;
    } rows[] = {
        {"command", "x", true},
        {"command", "123456789012345678901", false},
        {"gpus", "0.5", true},
        {"gpus", "0.05", false},
        {"gpus", "1e1", false},
        {"gpus", "1.2.3", false},
        {"gpus", "nan", false},
        {"gpus", "0x10", false},
        {"gpus", "", false},
        {"gpus", "-", false},
        {"count", "0", true},
        {"count", "9007199254740992", true},
        {"count", "9007199254740994", false},
        {"count", "1.0", false},
        {"count", "+1", false},
        {"count", " 1", false},
        {"count", "1 ", false},
        {"count", "99999999999999999999999999999999999999", false},
        {"offset", "-100", true},
        {"offset", "--1", false},
        {"priority", "low", true},
        {"priority", "3", true},
        {"priority", "lowest", false},
        {"hold", "1", true},
        {"hold", "false", true},
        {"hold", "yes", false},
        {"limit", "90", true},
        {"limit", "90s", true},
        {"limit", "99999999999999999999s", false},
        {"memory", "512", true},
        {"memory", "2GiB", true},
        {"memory", "-2GiB", false},
        {"begin", "2026-11-15T02:30:00+01:00", true},
        {"begin", "2026-11-31T02:30:00Z", false},
    };
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct acre_error err = {0};
        acre_test_context("%s=%s", rows[i].field, rows[i].text);
        int r = field_check_text(find(rows[i].field), rows[i].text, &err);
        CHECK_EQ(r, rows[i].ok ? 0 : ACRE_EINVALID);
        if (!rows[i].ok) {
            CHECK_HAS(err.text, rows[i].field);
            CHECK_HAS(err.text, "accepted: ");
        }
    }
}

static void times_are_read_to_the_millisecond(void) {
    static const struct {
        const char *text;
        uint64_t ms; /* UINT64_MAX: refused */
    } rows[] = {
        {"1970-01-01T00:00:00Z", 0},
        {"1970-01-01T00:00:00.001Z", 1},
        {"1970-01-01T01:00:00+01:00", 0},
        {"2000-02-29T12:34:56Z", 951827696000},
        {"2026-11-15T02:30:00.123Z", 1794709800123},
        {"2026-11-15t02:30:00.1239z", 1794709800123},
        {"2026-11-14 21:30:00.5-05:00", 1794709800500},
        {"9999-12-31T23:59:59Z", 253402300799000},
        {"1970-01-01T00:00:00+00:01", UINT64_MAX},
        {"1969-12-31T23:59:59Z", UINT64_MAX},
        {"2001-02-29T00:00:00Z", UINT64_MAX},
        {"1900-02-29T00:00:00Z", UINT64_MAX},
        {"2026-13-01T00:00:00Z", UINT64_MAX},
        {"2026-00-01T00:00:00Z", UINT64_MAX},
        {"2026-01-00T00:00:00Z", UINT64_MAX},
        {"2026-01-01T24:00:00Z", UINT64_MAX},
        {"2026-01-01T00:60:00Z", UINT64_MAX},
        {"2026-01-01T00:00:60Z", UINT64_MAX},
        {"2026-01-01T00:00:00", UINT64_MAX},
        {"2026-01-01T00:00:00.Z", UINT64_MAX},
        {"2026-01-01T00:00:00Zx", UINT64_MAX},
        {"2026-01-01T00:00:00+0100", UINT64_MAX},
        {"2026-01-01T00:00:00+24:00", UINT64_MAX},
        {"2026-01-01", UINT64_MAX},
        {"26-01-01T00:00:00Z", UINT64_MAX},
        {"", UINT64_MAX},
    };
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        uint64_t ms = UINT64_MAX;
        acre_test_context("%s", rows[i].text);
        CHECK(field_time_text(rows[i].text, &ms) == (rows[i].ms != UINT64_MAX));
        CHECK_U64(ms, rows[i].ms);
    }
}

static void values_are_read_in_their_units(void) {
    json_t *body = NULL;
    uint64_t value = 7;
    const char *text = "{\"a\":1.5,\"b\":\"1h\",\"c\":2048,\"d\":\"1GiB\",\"e\":true,"
                       "\"f\":\"1970-01-01T00:00:01Z\"}";
    REQUIRE_EQ(acre_json_parse("body", acre_str_from(text), 1024, &body, NULL), 0);
    CHECK(field_duration(json_object_get(body, "a"), &value));
    CHECK_U64(value, 1500);
    CHECK(field_duration(json_object_get(body, "b"), &value));
    CHECK_U64(value, 3600000);
    CHECK(field_memory(json_object_get(body, "c"), &value));
    CHECK_U64(value, 2048);
    CHECK(field_memory(json_object_get(body, "d"), &value));
    CHECK_U64(value, 1024);
    CHECK(field_time(json_object_get(body, "f"), &value));
    CHECK_U64(value, 1000);
    CHECK(field_duration_text("90", &value));
    CHECK_U64(value, 90000);
    value = 7;
    CHECK(!field_duration(json_object_get(body, "e"), &value));
    CHECK(!field_duration(NULL, &value));
    CHECK(!field_memory(json_object_get(body, "e"), &value));
    CHECK(!field_memory(NULL, &value));
    CHECK(!field_time(json_object_get(body, "a"), &value));
    CHECK_U64(value, 7);
    json_decref(body);
}

static const struct acre_test tests[] = {
    {"good_bodies_pass", good_bodies_pass, 0},
    {"bad_bodies_are_refused_by_field_value_and_range",
     bad_bodies_are_refused_by_field_value_and_range, 0},
    {"a_table_without_fields_accepts_nothing", a_table_without_fields_accepts_nothing, 0},
    {"texts_of_a_query_are_checked_like_values", texts_of_a_query_are_checked_like_values, 0},
    {"times_are_read_to_the_millisecond", times_are_read_to_the_millisecond, 0},
    {"values_are_read_in_their_units", values_are_read_in_their_units, 0},
};

ACRE_TEST_MAIN(tests)
