/* Views, splitting, names, and outside bytes made safe to show. */
#include "core/rand.h"
#include "core/str.h"
#include "support/test.h"

static void views_compare_by_bytes(void) {
    CHECK(acre_str_equal(acre_str_from(NULL), acre_str_from("")));
    CHECK(acre_str_equal((struct acre_str){NULL, 0}, acre_str_from("")));
    CHECK(acre_str_is(ACRE_STR("gpu"), "gpu"));
    CHECK(!acre_str_is(ACRE_STR("gpu"), "gpus"));
    CHECK(!acre_str_is(ACRE_STR("gpu"), "gpU"));
    CHECK(!acre_str_is(ACRE_STR("gpu\0"), "gpu")); /* four bytes, not three */
    CHECK_EQ(ACRE_STR("abc").length, 3);
}

static void trim_takes_blanks_and_tabs_only(void) {
    static const char *const cases[][2] = {
        {"", ""},          {" ", ""},          {"\t \t", ""},   {"a", "a"},
        {" a b\t", "a b"}, {"\na\n", "\na\n"}, {"a\r ", "a\r"},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        acre_test_context("case %zu", i);
        CHECK(acre_str_is(acre_str_trim(acre_str_from(cases[i][0])), cases[i][1]));
    }
}

static void split_gives_every_part(void) {
    static const struct {
        const char *text;
        const char *parts[5]; /* NULL ends */
    } cases[] = {
        {"", {""}},      {"a", {"a"}},           {"a,b", {"a", "b"}},  {"a,,b", {"a", "", "b"}},
        {",", {"", ""}}, {",a,", {"", "a", ""}}, {"a b;c", {"a b;c"}},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        acre_test_context("'%s'", cases[i].text);
        struct acre_split split = acre_split_begin(acre_str_from(cases[i].text), ',');
        struct acre_str part;
        size_t count = 0;
        while (acre_split_next(&split, &part)) {
            REQUIRE(count < 4 && cases[i].parts[count] != NULL);
            CHECK(acre_str_is(part, cases[i].parts[count]));
            count++;
        }
        CHECK(cases[i].parts[count] == NULL);
        CHECK(!acre_split_next(&split, &part));
    }
    struct acre_split split = acre_split_begin((struct acre_str){NULL, 0}, ',');
    struct acre_str part;
    CHECK(acre_split_next(&split, &part));
    CHECK_EQ(part.length, 0);
}

static void copy_fits_or_writes_nothing(void) {
    char to[4] = "xyz";
    CHECK(!acre_str_copy(to, sizeof(to), ACRE_STR("abcd")));
    CHECK_STR(to, "xyz");
    CHECK(acre_str_copy(to, sizeof(to), ACRE_STR("abc")));
    CHECK_STR(to, "abc");
    CHECK(acre_str_copy(to, sizeof(to), (struct acre_str){NULL, 0}));
    CHECK_STR(to, "");
    CHECK(!acre_str_copy(to, 0, ACRE_STR("")));
}

static void names_are_plain_words(void) {
    const struct {
        struct acre_str text;
        bool good;
    } cases[] = {
        {ACRE_STR("gpu-node_01.rack/3:a@b+c"), true},
        {ACRE_STR("NVIDIA H200"), true},
        {ACRE_STR("x"), true},
        {ACRE_STR("1234567890123456789012345678901234567890"), true}, /* 40 bytes */
        {ACRE_STR("12345678901234567890123456789012345678901"), false},
        {ACRE_STR(""), false},
        {ACRE_STR(" x"), false},
        {ACRE_STR("x "), false},
        {ACRE_STR(" "), false},
        {ACRE_STR("a\tb"), false},
        {ACRE_STR("a\nb"), false},
        {ACRE_STR("a\0b"), false},
        {ACRE_STR("a'b"), false},
        {ACRE_STR("a\"b"), false},
        {ACRE_STR("a,b"), false},
        {ACRE_STR("a\\b"), false},
        {ACRE_STR("a;b"), false},
        {ACRE_STR("\xc3\xa9"), false},
        {ACRE_STR("a\x7f"), false},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        acre_test_context("case %zu", i);
        CHECK_EQ(acre_str_is_name(cases[i].text, 40), cases[i].good);
    }
}

static void utf8_is_checked_strictly(void) {
    const struct {
        struct acre_str text;
        size_t length;
    } cases[] = {
        {ACRE_STR(""), 0},
        {ACRE_STR("a"), 1},
        {ACRE_STR("\0"), 1},
        {ACRE_STR("\x7f"), 1},
        {ACRE_STR("\x80"), 0},     /* a continuation alone */
        {ACRE_STR("\xc2\x80"), 2}, /* U+0080 */
        {ACRE_STR("\xc0\x80"), 0}, /* NUL, overlong */
        {ACRE_STR("\xc1\xbf"), 0}, /* overlong */
        {ACRE_STR("\xc3"), 0},     /* cut */
        {ACRE_STR("\xc3z"), 0},
        {ACRE_STR("\xc3\xa9z"), 2},
        {ACRE_STR("\xe0\xa0\x80"), 3}, /* U+0800 */
        {ACRE_STR("\xe0\x9f\xbf"), 0}, /* overlong */
        {ACRE_STR("\xe2\x82\xac"), 3}, /* euro */
        {ACRE_STR("\xe2\x82"), 0},
        {ACRE_STR("\xed\x9f\xbf"), 3},     /* U+D7FF */
        {ACRE_STR("\xed\xa0\x80"), 0},     /* a surrogate */
        {ACRE_STR("\xee\x80\x80"), 3},     /* U+E000 */
        {ACRE_STR("\xf0\x90\x80\x80"), 4}, /* U+10000 */
        {ACRE_STR("\xf0\x8f\xbf\xbf"), 0}, /* overlong */
        {ACRE_STR("\xf4\x8f\xbf\xbf"), 4}, /* U+10FFFF */
        {ACRE_STR("\xf4\x90\x80\x80"), 0},
        {ACRE_STR("\xf5\x80\x80\x80"), 0},
        {ACRE_STR("\xff"), 0},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        acre_test_context("case %zu", i);
        CHECK_EQ(acre_str_utf8(cases[i].text), cases[i].length);
    }
}

static void hidden_bytes_are_made_visible(void) {
    const struct {
        struct acre_str text;
        const char *shown;
    } cases[] = {
        {ACRE_STR(""), ""},
        {ACRE_STR("80GiB"), "80GiB"},
        {ACRE_STR("a b'c\"d"), "a b'c\"d"},
        {ACRE_STR("a\nb\rc\td"), "a\\nb\\rc\\td"},
        {ACRE_STR("a\\nb"), "a\\\\nb"}, /* not to be taken for a new line */
        {ACRE_STR("\x1b[2J"), "\\x1b[2J"},
        {ACRE_STR("a\0b"), "a\\x00b"},
        {ACRE_STR("\x7f"), "\\x7f"},
        {ACRE_STR("caf\xc3\xa9 \xe2\x82\xac"), "caf\xc3\xa9 \xe2\x82\xac"},
        {ACRE_STR("\xc2\x9b"), "\\xc2\\x9b"},          /* CSI as one character */
        {ACRE_STR("\xe2\x80\xae"), "\\xe2\\x80\\xae"}, /* right-to-left override */
        {ACRE_STR("\xef\xbb\xbf"
                  "a"),
         "\\xef\\xbb\\xbfa"}, /* byte-order mark */
        {ACRE_STR("\xff\xc3z"), "\\xff\\xc3z"},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        char out[64];
        acre_test_context("case %zu", i);
        CHECK_STR(acre_str_show(cases[i].text, out, sizeof(out)), cases[i].shown);
    }
}

static void texts_keep_their_backslashes(void) {
    const struct {
        struct acre_str text;
        const char *shown;
    } cases[] = {
        {ACRE_STR("grep '\\.c$'"), "grep '\\.c$'"},
        {ACRE_STR("a\\x1b[2J\\nb"), "a\\x1b[2J\\nb"},
        {ACRE_STR("\\"), "\\"},
        {ACRE_STR("\x1b[2J\n"), "\\x1b[2J\\n"}, /* and what was not is, still */
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        char out[32], again[32];
        acre_test_context("case %zu", i);
        CHECK_STR(acre_str_show_text(cases[i].text, out, sizeof(out)), cases[i].shown);
        CHECK_STR(acre_str_show_text(acre_str_from(out), again, sizeof(again)), out);
    }
}

static void long_values_are_cut_between_characters(void) {
    static const struct {
        const char *text;
        size_t size;
        const char *shown;
    } cases[] = {
        {"abcdefgh", 9, "abcdefgh"},
        {"abcdefgh", 8, "abcd..."},
        {"abcdefgh", 5, "a..."},
        {"abcdefgh", 4, "..."},
        {"abcdefgh", 3, ".."},
        {"abcdefgh", 1, ""},
        {"ab\n\n\n", 8, "ab\\n..."},
        {"ab\n\n\n", 9, "ab\\n\\n\\n"},
        {"\xe2\x82\xac\xe2\x82\xac", 6, "..."},
        {"\xe2\x82\xac\xe2\x82\xac", 7, "\xe2\x82\xac\xe2\x82\xac"},
        {"a\xe2\x82\xac\xe2\x82\xac", 7, "a..."},
        {"abc", 4, "abc"},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        char out[16];
        acre_test_context("case %zu", i);
        memset(out, '#', sizeof(out));
        CHECK_STR(acre_str_show(acre_str_from(cases[i].text), out, cases[i].size), cases[i].shown);
        CHECK_EQ(out[cases[i].size], '#');
    }
}

static void shown_values_are_always_plain_text(void) {
    struct acre_rand rand;
    acre_rand_seed(&rand, 3);
    for (int round = 0; round < 20000; round++) {
        char bytes[24], out[32];
        size_t length = acre_rand_below(&rand, sizeof(bytes) + 1);
        for (size_t i = 0; i < length; i++) {
            bytes[i] = (char)acre_rand_next(&rand);
        }
        size_t size = 1 + acre_rand_below(&rand, sizeof(out));
        acre_str_show((struct acre_str){bytes, length}, out, size);
        acre_test_context("seed 3 round %d", round);
        REQUIRE(strlen(out) < size);
        struct acre_str rest = acre_str_from(out);
        while (rest.length > 0) {
            size_t step = acre_str_utf8(rest);
            REQUIRE(step > 0);
            CHECK((unsigned char)rest.data[0] >= ' ' && rest.data[0] != 0x7f);
            rest.data += step;
            rest.length -= step;
        }
    }
}

static void the_hash_never_changes(void) {
    /* FNV-1a of "", "a" and "foobar" from the published vectors, folded by x ^ x >> 32. */
    static const struct {
        const char *text;
        uint64_t fnv;
    } cases[] = {
        {"", UINT64_C(0xcbf29ce484222325)},
        {"a", UINT64_C(0xaf63dc4c8601ec8c)},
        {"foobar", UINT64_C(0x85944171f73967e8)},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        CHECK_U64(acre_hash_bytes(cases[i].text, strlen(cases[i].text)),
                  cases[i].fnv ^ cases[i].fnv >> 32);
    }
}

static const struct acre_test tests[] = {
    {"views_compare_by_bytes", views_compare_by_bytes, 0},
    {"trim_takes_blanks_and_tabs_only", trim_takes_blanks_and_tabs_only, 0},
    {"split_gives_every_part", split_gives_every_part, 0},
    {"copy_fits_or_writes_nothing", copy_fits_or_writes_nothing, 0},
    {"names_are_plain_words", names_are_plain_words, 0},
    {"utf8_is_checked_strictly", utf8_is_checked_strictly, 0},
    {"hidden_bytes_are_made_visible", hidden_bytes_are_made_visible, 0},
    {"texts_keep_their_backslashes", texts_keep_their_backslashes, 0},
    {"long_values_are_cut_between_characters", long_values_are_cut_between_characters, 0},
    {"shown_values_are_always_plain_text", shown_values_are_always_plain_text, 0},
    {"the_hash_never_changes", the_hash_never_changes, 0},
};

ACRE_TEST_MAIN(tests)
