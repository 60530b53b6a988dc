/* JSON is read strictly and written so that it reads back. */
#include "core/json.h"
#include "core/rand.h"
#include "support/dies.h"
#include "support/test.h"

#include <math.h>

static json_t *parse(const char *text) {
    struct acre_error err = {0};
    json_t *root = NULL;
    acre_test_context("%s", text);
    REQUIRE_EQ(acre_json_parse("j", acre_str_from(text), 10000, &root, &err), 0);
    acre_test_context("%s", "");
    return root;
}

static void documents_that_are_refused(void) {
    const struct {
        struct acre_str text;
        const char *says;
    } cases[] = {
        {ACRE_STR(""), "j:1:0: '[' or '{' expected"},
        {(struct acre_str){NULL, 0}, "j:1:0: "},
        {ACRE_STR("1"), "'[' or '{' expected"},
        {ACRE_STR("{\"a\":1"), "j:1:"},
        {ACRE_STR("{\"a\":1}x"), "j:1:8: end of file expected near 'x'"},
        {ACRE_STR("{\"a\":1}{}"), "end of file expected"},
        {ACRE_STR("{\"a\":1,\"a\":2}"), "duplicate object key"},
        {ACRE_STR("{\"b\":{\"a\":1,\"a\":1}}"), "duplicate object key"},
        {ACRE_STR("{\n\"a\":\nnope}"), "j:3:4: invalid token near 'nope'"},
        {ACRE_STR("[\"a\\u0000b\"]"), "\\\\u0000 is not allowed"},
        {ACRE_STR("[\"a\0b\"]"), "control character 0x0"},
        {ACRE_STR("[1,]"), "j:1:4: "},
        {ACRE_STR("[01]"), "j:1:"},
        {ACRE_STR("[+1]"), "j:1:"},
        {ACRE_STR("[NaN]"), "j:1:"},
        {ACRE_STR("['a']"), "j:1:"},
        {ACRE_STR("[\"\xff\"]"), "unable to decode byte 0xff"},
        {ACRE_STR("[\"\\ud800\"]"), "invalid Unicode"},
        {ACRE_STR("[9223372036854775808]"), "too big integer"},
        {ACRE_STR("[-9223372036854775809]"), "too big negative integer"},
        {ACRE_STR("[1e999]"), "real number overflow"},
        {ACRE_STR("[\x1b]"), "\\x1b"}, /* quoted, but not as it is */
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        acre_test_context("case %zu", i);
        struct acre_error err = {0};
        json_t *root = NULL;
        CHECK_EQ(acre_json_parse("j", cases[i].text, 10000, &root, &err), ACRE_EINVALID);
        CHECK_HAS(err.text, cases[i].says);
        CHECK(root == NULL);
        CHECK_EQ(acre_json_parse("j", cases[i].text, 10000, &root, NULL), ACRE_EINVALID);
    }
}

static void size_is_limited(void) {
    struct acre_error err = {0};
    json_t *root = NULL;
    CHECK_EQ(acre_json_parse("j", ACRE_STR("[1,2]"), 4, &root, &err), ACRE_ELIMIT);
    CHECK_STR(err.text, "j: 5 bytes; accepted: at most 4");
    CHECK(root == NULL);
    CHECK_EQ(acre_json_parse("j", ACRE_STR("[1,2]"), 5, &root, &err), 0);
    json_decref(root);
    CHECK_EQ(acre_json_parse("\x1b[2J", ACRE_STR("[1,2]"), 4, &root, &err), ACRE_ELIMIT);
    CHECK_HAS(err.text, "\\x1b[2J: 5 bytes");
}

static void depth_is_limited_before_parsing(void) {
    static char text[300000];
    struct acre_error err = {0};
    json_t *root = NULL;
    for (size_t depth = ACRE_JSON_DEPTH_MAX - 1; depth <= ACRE_JSON_DEPTH_MAX + 1; depth++) {
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        int r = acre_json_parse("j", (struct acre_str){text, depth * 2}, 1000, &root, &err);
        CHECK_EQ(r, depth <= ACRE_JSON_DEPTH_MAX ? 0 : ACRE_ELIMIT);
        if (r == 0) {
            json_decref(root);
        }
    }
    CHECK_STR(err.text, "j:1:33: nested too deeply; accepted: at most 32 levels");
    memset(text, '[', sizeof(text));
    text[10] = '\n';
    CHECK_EQ(acre_json_parse("j", (struct acre_str){text, sizeof(text)}, SIZE_MAX, &root, &err),
             ACRE_ELIMIT);
    CHECK_HAS(err.text, "j:2:23: nested too deep");
}

static void brackets_inside_strings_have_no_depth(void) {
    static char text[1000] = "[\"\\\"";
    size_t length = strlen(text);
    memset(text + length, '[', 500);
    memcpy(text + length + 500, "\\\\\"]", 5);
    json_t *root = parse(text);
    CHECK_EQ(json_string_length(json_array_get(root, 0)), 502);
    json_decref(root);
    root =
        parse("[[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],"
              "[],[],[],[],[],[],[],[]]"); /* 35 beside each other */
    json_decref(root);
    struct acre_error err = {0};
    CHECK_EQ(acre_json_parse("j", ACRE_STR("]]]["), 100, &root, &err), ACRE_EINVALID);
    CHECK_EQ(acre_json_parse("j", ACRE_STR("[\"\\"), 100, &root, &err), ACRE_EINVALID);
}

static void numbers_are_whole_and_fit(void) {
    static const struct {
        const char *text;
        uint64_t min, max;
        int expect;
        uint64_t value;
        const char *says;
    } cases[] = {
        {"{\"n\":0}", 0, 8, 0, 0, ""},
        {"{\"n\":8}", 0, 8, 0, 8, ""},
        {"{\"n\":9223372036854775807}", 0, UINT64_MAX, 0, INT64_MAX, ""},
        {"{\"n\":9}", 0, 8, ACRE_EINVALID, 0,
         "n: '9' is out of range; accepted: whole numbers from 0 to 8"},
        {"{\"n\":0}", 1, 8, ACRE_EINVALID, 0, "n: '0' is out of range; accepted: whole"},
        {"{\"n\":-1}", 0, UINT64_MAX, ACRE_EINVALID, 0, "n: '-1' is out of range"},
        {"{\"n\":1.0}", 0, 8, ACRE_EINVALID, 0, "n: '1.0' is a real number"},
        {"{\"n\":1e0}", 0, 8, ACRE_EINVALID, 0, "is a real number"},
        {"{\"n\":\"1\"}", 0, 8, ACRE_EINVALID, 0, "n: '1' is a string"},
        {"{\"n\":true}", 0, 8, ACRE_EINVALID, 0, "n: 'true' is a boolean"},
        {"{\"n\":[1]}", 0, 8, ACRE_EINVALID, 0, "n: is an array; accepted"},
        {"{\"n\":{}}", 0, 8, ACRE_EINVALID, 0, "n: is an object; accepted"},
        {"{\"n\":null}", 0, 8, ACRE_EINVALID, 0, "n: is null; accepted: whole numbers"},
        {"{}", 0, 8, ACRE_EINVALID, 0, "n: is missing; accepted: whole numbers from 0 to 8"},
        {"[]", 0, 8, ACRE_EINVALID, 0, "n: not inside an object"},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        json_t *root = parse(cases[i].text);
        struct acre_error err = {0};
        uint64_t value = 77;
        acre_test_context("%s", cases[i].text);
        CHECK_EQ(acre_json_get_u64(root, "n", true, cases[i].min, cases[i].max, &value, &err),
                 cases[i].expect);
        CHECK_U64(value, cases[i].expect == 0 ? cases[i].value : 77);
        CHECK_HAS(err.text, cases[i].says);
        json_decref(root);
    }
}

static void booleans_are_true_or_false(void) {
    static const struct {
        const char *text;
        int expect;
        bool value;
        const char *says;
    } cases[] = {
        {"{\"b\":true}", 0, true, ""},
        {"{\"b\":false}", 0, false, ""},
        {"{\"b\":1}", ACRE_EINVALID, false, "b: '1' is an integer; accepted: true or false"},
        {"{\"b\":\"true\"}", ACRE_EINVALID, false, "b: 'true' is a string"},
        {"{}", ACRE_EINVALID, false, "b: is missing; accepted: true or false"},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        json_t *root = parse(cases[i].text);
        struct acre_error err = {0};
        bool value = !cases[i].value;
        acre_test_context("%s", cases[i].text);
        CHECK_EQ(acre_json_get_bool(root, "b", true, &value, &err), cases[i].expect);
        CHECK_EQ(value, cases[i].expect == 0 ? cases[i].value : !cases[i].value);
        CHECK_HAS(err.text, cases[i].says);
        json_decref(root);
    }
}

static void strings_have_a_maximum(void) {
    static const struct {
        const char *text;
        const char *value; /* NULL: refused */
        const char *says;
    } cases[] = {
        {"{\"s\":\"\"}", "", ""},
        {"{\"s\":\"abcd\"}", "abcd", ""},
        {"{\"s\":\"\\u00e9\\u00e9\"}", "\xc3\xa9\xc3\xa9", ""},
        {"{\"s\":\"abcde\"}", NULL,
         "s: 'abcde' has 5 bytes; accepted: a string of at most 4 bytes"},
        {"{\"s\":5}", NULL, "s: '5' is an integer; accepted: a string"},
        {"{\"s\":null}", NULL, "s: is null"},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        json_t *root = parse(cases[i].text);
        struct acre_error err = {0};
        const char *value = "kept";
        acre_test_context("%s", cases[i].text);
        CHECK_EQ(acre_json_get_string(root, "s", true, 4, &value, &err),
                 cases[i].value != NULL ? 0 : ACRE_EINVALID);
        CHECK_STR(value, cases[i].value != NULL ? cases[i].value : "kept");
        CHECK_HAS(err.text, cases[i].says);
        json_decref(root);
    }
}

static void optional_keys_leave_what_was_there(void) {
    static const char *const texts[] = {"{}", "{\"k\":null}"};
    for (size_t i = 0; i < ACRE_COUNT(texts); i++) {
        json_t *root = parse(texts[i]);
        uint64_t number = 7;
        bool flag = true;
        const char *string = "kept";
        CHECK_EQ(acre_json_get_u64(root, "k", false, 0, 8, &number, NULL), 0);
        CHECK_EQ(acre_json_get_bool(root, "k", false, &flag, NULL), 0);
        CHECK_EQ(acre_json_get_string(root, "k", false, 8, &string, NULL), 0);
        CHECK_U64(number, 7);
        CHECK(flag);
        CHECK_STR(string, "kept");
        json_decref(root);
    }
    json_t *root = parse("{\"k\":[]}"); /* there, but wrong: refused all the same */
    uint64_t number = 7;
    CHECK_EQ(acre_json_get_u64(root, "k", false, 0, 8, &number, NULL), ACRE_EINVALID);
    json_decref(root);
}

static void unknown_keys_are_named_with_the_known_ones(void) {
    static const char *const known[] = {"gpus", "memory"};
    struct acre_error err = {0};
    json_t *root = parse("{\"memory\":1,\"gpus\":2}");
    CHECK_EQ(acre_json_only_keys(root, known, 2, &err), 0);
    json_decref(root);
    root = parse("{}");
    CHECK_EQ(acre_json_only_keys(root, known, 2, &err), 0);
    json_decref(root);
    root = parse("{\"gpus\":2,\"gpu\\n\":1}");
    CHECK_EQ(acre_json_only_keys(root, known, 2, &err), ACRE_EINVALID);
    CHECK_STR(err.text, "gpu\\n: unknown key; accepted: gpus, memory");
    CHECK_EQ(acre_json_only_keys(root, known, 2, NULL), ACRE_EINVALID);
    const char *many[100];
    for (size_t i = 0; i < ACRE_COUNT(many); i++) {
        many[i] = "a-rather-long-name";
    }
    CHECK_EQ(acre_json_only_keys(root, many, ACRE_COUNT(many), &err), ACRE_EINVALID);
    CHECK_HAS(err.text, "a-rather-long-name, ...");
    json_decref(root);
}

static void write_sample(struct acre_json *json) {
    acre_json_object(json);
    acre_json_put_string(json, "name", "gpu-3");
    acre_json_put_u64(json, "mib", UINT64_MAX);
    acre_json_put_double(json, "share", 0.25, 3);
    acre_json_put_bool(json, "live", true);
    acre_json_put_null(json, "power");
    acre_json_put_string(json, "none", NULL);
    acre_json_key(json, "list");
    acre_json_array(json);
    acre_json_i64(json, INT64_MIN);
    acre_json_bool(json, false);
    acre_json_str(json, (struct acre_str){"abc", 2});
    acre_json_array(json);
    acre_json_array_end(json);
    acre_json_object(json);
    acre_json_object_end(json);
    acre_json_null(json);
    acre_json_array_end(json);
    acre_json_object_end(json);
}

static void documents_are_written_compact_or_pretty(void) {
    struct acre_buf buf;
    struct acre_json json;
    acre_buf_init(&buf, 10000);
    acre_json_begin(&json, &buf, false);
    write_sample(&json);
    CHECK_EQ(acre_json_end(&json), 0);
    CHECK_STR(buf.data, "{\"name\":\"gpu-3\",\"mib\":18446744073709551615,\"share\":0.250,"
                        "\"live\":true,\"power\":null,\"none\":null,"
                        "\"list\":[-9223372036854775808,false,\"ab\",[],{},null]}");
    acre_buf_clear(&buf);
    acre_json_begin(&json, &buf, true);
    write_sample(&json);
    CHECK_EQ(acre_json_end(&json), 0);
    CHECK_STR(buf.data, "{\n  \"name\": \"gpu-3\",\n  \"mib\": 18446744073709551615,\n"
                        "  \"share\": 0.250,\n  \"live\": true,\n  \"power\": null,\n"
                        "  \"none\": null,\n  \"list\": [\n    -9223372036854775808,\n"
                        "    false,\n    \"ab\",\n    [],\n    {},\n    null\n  ]\n}");
    acre_buf_finish(&buf);
}

static void strings_are_escaped_and_mended(void) {
    const struct {
        struct acre_str value;
        const char *written;
    } cases[] = {
        {ACRE_STR(""), "\"\""},
        {ACRE_STR("a\"b\\c/d"), "\"a\\\"b\\\\c/d\""},
        {ACRE_STR("\n\r\t\b\f"), "\"\\n\\r\\t\\b\\f\""},
        {ACRE_STR("\x01\x1f\x7f"), "\"\\u0001\\u001f\\u007f\""},
        {ACRE_STR("a\0b"), "\"a\\u0000b\""},
        {ACRE_STR("caf\xc3\xa9"), "\"caf\xc3\xa9\""},
        {ACRE_STR("\xff"), "\"\xef\xbf\xbd\""},
        {ACRE_STR("a\xe2\x82"), "\"a\xef\xbf\xbd\xef\xbf\xbd\""},
        {ACRE_STR("\xed\xa0\x80"), "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        struct acre_buf buf;
        struct acre_json json;
        acre_test_context("case %zu", i);
        acre_buf_init(&buf, 1000);
        acre_json_begin(&json, &buf, false);
        acre_json_str(&json, cases[i].value);
        CHECK_EQ(acre_json_end(&json), 0);
        CHECK_STR(buf.data, cases[i].written);
        acre_buf_finish(&buf);
    }
}

static void doubles_have_the_decimals_asked_for(void) {
    static const struct {
        double value;
        int decimals;
        const char *written;
    } cases[] = {
        {0, 0, "0"},
        {95.23, 2, "95.23"},
        {2.0 / 3, 3, "0.667"},
        {-1.5, 1, "-1.5"},
        {1e15, 1, "1000000000000000.0"},
        {(double)NAN, 2, "null"},
        {(double)INFINITY, 2, "null"},
        {-(double)INFINITY, 2, "null"},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        struct acre_buf buf;
        struct acre_json json;
        acre_buf_init(&buf, 1000);
        acre_json_begin(&json, &buf, false);
        acre_json_double(&json, cases[i].value, cases[i].decimals);
        CHECK_EQ(acre_json_end(&json), 0);
        CHECK_STR(buf.data, cases[i].written);
        acre_buf_finish(&buf);
    }
}

static void a_full_buffer_is_told_at_the_end(void) {
    struct acre_buf buf;
    struct acre_json json;
    acre_buf_init(&buf, 20);
    acre_json_begin(&json, &buf, false);
    write_sample(&json);
    CHECK_EQ(acre_json_end(&json), ACRE_ELIMIT);
    CHECK(buf.length <= 20);
    acre_buf_finish(&buf);
}

/* Random bytes as strings, random shapes: jansson must read what was written. */
static void write_random(struct acre_json *json, struct acre_rand *rand, int depth) {
    char bytes[12];
    size_t length = acre_rand_below(rand, sizeof(bytes));
    for (size_t i = 0; i < length; i++) {
        bytes[i] = (char)(1 + acre_rand_below(rand, 255));
    }
    bytes[length] = '\0';
    uint64_t count = acre_rand_below(rand, 4);
    switch (acre_rand_below(rand, depth < 5 ? 6 : 4)) {
    case 0:
        acre_json_i64(json, (int64_t)acre_rand_next(rand));
        break;
    case 1:
        acre_json_double(json, acre_rand_unit(rand) * 1000, (int)acre_rand_below(rand, 9));
        break;
    case 2:
        acre_json_bool(json, true);
        break;
    case 3:
        acre_json_string(json, bytes);
        break;
    case 4:
        acre_json_array(json);
        while (count-- > 0) {
            write_random(json, rand, depth + 1);
        }
        acre_json_array_end(json);
        break;
    default:
        acre_json_object(json);
        while (count-- > 0) {
            char key[2] = {(char)('a' + count), '\0'};
            acre_json_key(json, key);
            write_random(json, rand, depth + 1);
        }
        acre_json_object_end(json);
        break;
    }
}

static void what_is_written_reads_back(void) {
    struct acre_rand rand;
    acre_rand_seed(&rand, 21);
    for (int round = 0; round < 3000; round++) {
        struct acre_buf buf;
        struct acre_json json;
        acre_buf_init(&buf, 1 << 20);
        acre_json_begin(&json, &buf, round % 2 == 0);
        acre_json_array(&json);
        write_random(&json, &rand, 0);
        write_random(&json, &rand, 0);
        acre_json_array_end(&json);
        REQUIRE_EQ(acre_json_end(&json), 0);
        struct acre_error err = {0};
        json_t *root = NULL;
        int r = acre_json_parse("j", (struct acre_str){buf.data, buf.length}, 1 << 20, &root, &err);
        acre_test_context("seed 21 round %d: %s", round, err.text);
        REQUIRE_EQ(r, 0);
        CHECK_EQ(json_array_size(root), 2);
        json_decref(root);
        acre_buf_finish(&buf);
    }
}

static struct acre_json misused;

static void begin_misuse(void) {
    static struct acre_buf buf;
    acre_buf_init(&buf, 1000);
    acre_json_begin(&misused, &buf, false);
}

static void value_without_key(void) {
    begin_misuse();
    acre_json_object(&misused);
    acre_json_u64(&misused, 1);
}

static void key_in_array(void) {
    begin_misuse();
    acre_json_array(&misused);
    acre_json_key(&misused, "k");
}

static void key_after_key(void) {
    begin_misuse();
    acre_json_object(&misused);
    acre_json_key(&misused, "k");
    acre_json_key(&misused, "k");
}

static void key_without_value(void) {
    begin_misuse();
    acre_json_object(&misused);
    acre_json_key(&misused, "k");
    acre_json_object_end(&misused);
}

static void wrong_end(void) {
    begin_misuse();
    acre_json_object(&misused);
    acre_json_array_end(&misused);
}

static void end_of_nothing(void) {
    begin_misuse();
    acre_json_array_end(&misused);
}

static void two_documents(void) {
    begin_misuse();
    acre_json_null(&misused);
    acre_json_null(&misused);
}

static void left_open(void) {
    begin_misuse();
    acre_json_array(&misused);
    acre_json_end(&misused);
}

static void nothing_written(void) {
    begin_misuse();
    acre_json_end(&misused);
}

static void too_deep(void) {
    begin_misuse();
    for (int i = 0; i <= ACRE_JSON_DEPTH_MAX; i++) {
        acre_json_array(&misused);
    }
}

static void misuse_of_the_writer_asserts(void) {
    static const struct {
        const char *name;
        void (*function)(void);
    } cases[] = {
        {"value_without_key", value_without_key},
        {"key_in_array", key_in_array},
        {"key_after_key", key_after_key},
        {"key_without_value", key_without_value},
        {"wrong_end", wrong_end},
        {"end_of_nothing", end_of_nothing},
        {"two_documents", two_documents},
        {"left_open", left_open},
        {"nothing_written", nothing_written},
        {"too_deep", too_deep},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        acre_test_context("%s", cases[i].name);
        CHECK(acre_dies(cases[i].function));
    }
}

static void what_is_json_already_is_written_as_it_is(void) {
    struct acre_buf buf;
    struct acre_json json;
    acre_buf_init(&buf, 256);
    acre_json_begin(&json, &buf, false);
    acre_json_object(&json);
    acre_json_key(&json, "a");
    acre_json_raw(&json, ACRE_STR("[1,{\"b\":2}]"));
    acre_json_put_u64(&json, "c", 3);
    acre_json_object_end(&json);
    REQUIRE_EQ(acre_json_end(&json), 0);
    CHECK_STR(buf.data, "{\"a\":[1,{\"b\":2}],\"c\":3}");
    acre_buf_finish(&buf);
}

static const struct acre_test tests[] = {
    {"documents_that_are_refused", documents_that_are_refused, 0},
    {"size_is_limited", size_is_limited, 0},
    {"depth_is_limited_before_parsing", depth_is_limited_before_parsing, 0},
    {"brackets_inside_strings_have_no_depth", brackets_inside_strings_have_no_depth, 0},
    {"numbers_are_whole_and_fit", numbers_are_whole_and_fit, 0},
    {"booleans_are_true_or_false", booleans_are_true_or_false, 0},
    {"strings_have_a_maximum", strings_have_a_maximum, 0},
    {"optional_keys_leave_what_was_there", optional_keys_leave_what_was_there, 0},
    {"unknown_keys_are_named_with_the_known_ones", unknown_keys_are_named_with_the_known_ones, 0},
    {"documents_are_written_compact_or_pretty", documents_are_written_compact_or_pretty, 0},
    {"strings_are_escaped_and_mended", strings_are_escaped_and_mended, 0},
    {"doubles_have_the_decimals_asked_for", doubles_have_the_decimals_asked_for, 0},
    {"a_full_buffer_is_told_at_the_end", a_full_buffer_is_told_at_the_end, 0},
    {"what_is_written_reads_back", what_is_written_reads_back, 0},
    {"misuse_of_the_writer_asserts", misuse_of_the_writer_asserts, 0},
    {"what_is_json_already_is_written_as_it_is", what_is_json_already_is_written_as_it_is, 0},
};

ACRE_TEST_MAIN(tests)
