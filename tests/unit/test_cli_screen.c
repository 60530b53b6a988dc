/* What others wrote cannot command a terminal, however it is cut. */
#include "cli/screen.h"

#include "support/test.h"

static const char logs[] = "\n\t\r\b";

/* In pieces of so many bytes. */
static void show(const char *controls, struct acre_str text, size_t piece, struct acre_buf *out) {
    struct screen screen;
    screen_init(&screen, controls);
    acre_buf_clear(out);
    for (size_t at = 0; at < text.length; at += piece) {
        struct acre_str part = {text.data + at, ACRE_MIN(piece, text.length - at)};
        screen_put(&screen, part, out);
    }
    screen_end(&screen, out);
}

#define CASE(in, out)                                                                              \
    { {in, sizeof(in) - 1}, out }
static const struct {
    struct acre_str in;
    const char *out;
} cases[] = {
    CASE("", ""),
    CASE("plain \\ text\n\ttab 10%\r20%\bx", "plain \\ text\n\ttab 10%\r20%\bx"),
    CASE("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"),
    CASE("\033[31mred\033[0m \033[1;38:2:9mx\033[m", "\033[31mred\033[0m \033[1;38:2:9mx\033[m"),
    CASE("\033[31mred", "\033[31mred\033[0m"), /* and no further */
    CASE("\033[2J\033[H", "\\x1b[2J\\x1b[H"),
    CASE("\033[>4;2m\033[?1m\033[ m", "\\x1b[>4;2m\\x1b[?1m\\x1b[ m"),
    CASE("\033]0;title\007", "\\x1b]0;title\\x07"),
    CASE("\033P$q\033\\", "\\x1bP$q\\x1b\\"),
    CASE("\033\033[1m", "\\x1b\033[1m\033[0m"),
    CASE("\033[1\033[2J", "\\x1b[1\\x1b[2J"),
    CASE("\033[11111111111111111111111111111111m", "\033[11111111111111111111111111111111m\033[0m"),
    CASE("\033[111111111111111111111111111111111m", "\\x1b[111111111111111111111111111111111m"),
    CASE("a\033", "a\\x1b"),
    CASE("a\033[1;", "a\\x1b[1;"),
    CASE("a\xe2\x82", "a\\xe2\\x82"),
    CASE("\x9b"
         "2J\xc2\x9b"
         "2J",
         "\\x9b2J\\xc2\\x9b2J"),
    CASE("\xe2\x80\xae \x7f\x0e\x05", "\\xe2\\x80\\xae \\x7f\\x0e\\x05"),
    CASE("\xc3(\xff\xc0\xaf", "\\xc3(\\xff\\xc0\\xaf"),
    {{"a\0b", 3}, "a\\x00b"},
};

static void only_text_colours_and_a_few_controls_pass(void) {
    struct acre_buf out;
    acre_buf_init(&out, 4096);
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        for (size_t piece = 1; piece <= cases[i].in.length + 1; piece++) {
            acre_test_context("case %zu in pieces of %zu", i, piece);
            show(logs, cases[i].in, piece, &out);
            CHECK_STR(out.length > 0 ? out.data : "", cases[i].out);
        }
    }
    acre_buf_finish(&out);
}

static void the_caller_says_which_controls(void) {
    struct acre_buf out;
    acre_buf_init(&out, 4096);
    show("\n\t", ACRE_STR("a\rb\b\n\t"), 64, &out);
    CHECK_STR(out.data, "a\\rb\\x08\n\t");
    acre_buf_finish(&out);
}

static void what_is_whole_is_shown_at_once(void) {
    struct screen screen;
    struct acre_buf out;
    acre_buf_init(&out, 4096);
    screen_init(&screen, logs);
    screen_put(&screen, ACRE_STR("question? "), &out);
    CHECK_STR(out.data, "question? ");
    screen_put(&screen, ACRE_STR("\033[3"), &out);
    CHECK_STR(out.data, "question? ");
    screen_put(&screen, ACRE_STR("1mx"), &out);
    CHECK_STR(out.data, "question? \033[31mx");
    acre_buf_finish(&out);
}

static const struct acre_test tests[] = {
    {"only_text_colours_and_a_few_controls_pass", only_text_colours_and_a_few_controls_pass, 0},
    {"the_caller_says_which_controls", the_caller_says_which_controls, 0},
    {"what_is_whole_is_shown_at_once", what_is_whole_is_shown_at_once, 0},
};

ACRE_TEST_MAIN(tests)
