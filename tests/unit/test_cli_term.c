/* Tables fit the terminal, and pipes get everything (UI-2). */
#include "cli/term.h"

#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define COLUMN(name, is_right, its_rank, shrinks_to)                                               \
    { .heading = name, .right = is_right, .rank = its_rank, .shrink_to = shrinks_to }
static const struct table_column columns[] = {
    COLUMN("DEVICE", false, 0, 10), COLUMN("MODEL", false, 0, 6), COLUMN("MEMORY", true, 0, 0),
    COLUMN("DRIVER", false, 6, 0),  COLUMN("CLOCK", true, 9, 0),  COLUMN("GHOST", true, 0, 0),
    COLUMN("STATE", false, 0, 0),
};

static struct text_table *make_table(void) {
    struct text_table *table = table_create(columns, ACRE_COUNT(columns));
    static const char *const rows[][7] = {
        {"GPU-5d2b31a1-0000-c1f0", "NVIDIA H200", "139.8 GiB", "nvml", "1980 MHz", "-", "ok"},
        {"cpu", "Intel", "8 GiB", "cpu", "-", "-", "lost"},
    };
    for (size_t r = 0; r < ACRE_COUNT(rows); r++) {
        table_row(table);
        for (size_t c = 0; c < ACRE_COUNT(rows[r]); c++) {
            table_cell(table, c == 6 ? ACRE_COLOUR_GREEN : ACRE_COLOUR_NONE, rows[r][c]);
        }
    }
    return table;
}

static void print(struct acre_buf *out, uint32_t width, bool colour) {
    struct text_table *table = make_table();
    struct term term = {.is_terminal = width > 0, .colour = colour, .width = width};
    acre_buf_init(out, 1 << 16);
    table_print(table, &term, out);
    table_destroy(table);
}

static void pipes_get_every_column_whole(void) {
    struct acre_buf out;
    print(&out, 0, false);
    CHECK_STR(out.data,
              "DEVICE                  MODEL           MEMORY  DRIVER     CLOCK  GHOST  STATE\n"
              "GPU-5d2b31a1-0000-c1f0  NVIDIA H200  139.8 GiB  nvml    1980 MHz      -  ok\n"
              "cpu                     Intel            8 GiB  cpu            -      -  lost\n");
    acre_buf_finish(&out);
}

static void a_wide_terminal_hides_what_nobody_knows(void) {
    struct acre_buf out;
    print(&out, 100, false);
    CHECK_STR(out.data, "DEVICE                  MODEL           MEMORY  DRIVER     CLOCK  STATE\n"
                        "GPU-5d2b31a1-0000-c1f0  NVIDIA H200  139.8 GiB  nvml    1980 MHz  ok\n"
                        "cpu                     Intel            8 GiB  cpu            -  lost\n");
    acre_buf_finish(&out);
}

static void a_narrow_one_drops_luxuries_then_cuts_then_drops(void) {
    struct acre_buf out;
    print(&out, 62, false);
    CHECK_STR(out.data, "DEVICE                  MODEL           MEMORY  DRIVER  STATE\n"
                        "GPU-5d2b31a1-0000-c1f0  NVIDIA H200  139.8 GiB  nvml    ok\n"
                        "cpu                     Intel            8 GiB  cpu     lost\n");
    acre_buf_finish(&out);
    print(&out, 46, false);
    CHECK_STR(out.data, "DEVICE      MODEL        MEMORY  DRIVER  STATE\n"
                        "GPU-5d..f0  NVID..00  139.8 GiB  nvml    ok\n"
                        "cpu         Intel         8 GiB  cpu     lost\n");
    acre_buf_finish(&out);
    print(&out, 40, false);
    CHECK_STR(out.data, "DEVICE          MODEL      MEMORY  STATE\n"
                        "GPU-5d2b..c1f0  NVI..0  139.8 GiB  ok\n"
                        "cpu             Intel       8 GiB  lost\n");
    acre_buf_finish(&out);
}

static void no_line_passes_the_width_it_can_reach(void) {
    for (uint32_t width = 40; width < 100; width++) {
        struct acre_buf out;
        print(&out, width, false);
        acre_test_context("width %u", width);
        for (const char *p = out.data; *p != '\0';) {
            const char *end = strchr(p, '\n');
            REQUIRE(end != NULL);
            CHECK((size_t)(end - p) <= width);
            p = end + 1;
        }
        CHECK_HAS(out.data, "STATE"); /* rank 0 stays */
        acre_buf_finish(&out);
    }
}

static void cuts_keep_head_and_tail(void) {
    struct acre_buf out;
    print(&out, 48, false);
    CHECK_HAS(out.data, "GPU-");
    CHECK_HAS(out.data, "..");
    CHECK_HAS(out.data, "f0  ");
    acre_buf_finish(&out);
}

static void sentences_are_cut_at_the_end_and_get_room_first(void) {
    static const struct table_column two[] = {
        {.heading = "NAME", .shrink_to = 4},
        {.heading = "X", .rank = 1},
        {.heading = "WHY", .shrink_to = 6, .cut_end = true},
    };
    struct text_table *table = table_create(two, ACRE_COUNT(two));
    struct term term = {.is_terminal = true, .width = 20};
    struct acre_buf out;
    table_row(table);
    table_cell(table, ACRE_COLOUR_NONE, "a name of many words");
    table_cell(table, ACRE_COLOUR_NONE, "0123456789");
    table_cell(table, ACRE_COLOUR_NONE, "it asks for more than there is");
    acre_buf_init(&out, 1 << 16);
    table_print(table, &term, &out);
    CHECK_STR(out.data, "NAME  WHY\na ..  it asks for ..\n");
    acre_buf_finish(&out);
    table_destroy(table);
}

static void a_picture_is_redrawn_within_the_screen(void) {
    struct term term = {.is_terminal = true, .width = 80, .height = 3};
    struct acre_buf picture, out;
    acre_buf_init(&picture, 1 << 16);
    acre_buf_init(&out, 1 << 16);
    uint32_t lines = ACRE_TERM_CLEAR;
    acre_buf_puts(&picture, "one\ntwo\nthree\n");
    term_redraw(&term, &picture, &lines, &out);
    CHECK_STR(out.data, "\033[H\033[2Jone\033[K\ntwo\033[K\n\033[J");
    acre_buf_clear(&out);
    term_redraw(&term, &picture, &lines, &out);
    CHECK_STR(out.data, "\033[Hone\033[K\ntwo\033[K\n\033[J");
    acre_buf_clear(&out);
    acre_buf_clear(&picture);
    acre_buf_puts(&picture, "one\n");
    lines = 0;
    term_redraw(&term, &picture, &lines, &out);
    CHECK_STR(out.data, "one\033[K\n\033[J");
    CHECK_U64(lines, 1);
    acre_buf_clear(&out);
    acre_buf_puts(&picture, "two\n");
    term_redraw(&term, &picture, &lines, &out);
    CHECK_STR(out.data, "\033[1Aone\033[K\ntwo\033[K\n\033[J");
    CHECK_U64(lines, 2);
    acre_buf_finish(&picture);
    acre_buf_finish(&out);
}

static void colours_only_where_wanted(void) {
    struct acre_buf out;
    print(&out, 100, true);
    CHECK_HAS(out.data, "\033[32mok\033[0m");
    CHECK_HAS(out.data, "\033[1mDEVICE\033[0m");
    acre_buf_finish(&out);
    print(&out, 100, false);
    CHECK(strchr(out.data, '\033') == NULL);
    acre_buf_finish(&out);
}

static void characters_are_counted_not_bytes(void) {
    static const struct table_column two[] = {COLUMN("A", false, 0, 4), COLUMN("B", false, 0, 0)};
    struct text_table *table = table_create(two, 2);
    struct term wide = {0};
    struct term narrow = {.is_terminal = true, .width = 9};
    struct acre_buf out;
    table_row(table);
    table_cell(table, ACRE_COLOUR_NONE, "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9");
    table_cell(table, ACRE_COLOUR_NONE, "xyz");
    table_row(table); /* missing cells are empty */
    CHECK_U64(table_rows(table), 2);
    acre_buf_init(&out, 4096);
    table_print(table, &wide, &out);
    CHECK_STR(out.data,
              "A       B\n\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9  xyz\n        \n");
    acre_buf_clear(&out);
    table_print(table, &narrow, &out);
    CHECK_HAS(out.data, "\xc3\xa9\xc3\xa9..  xyz\n");
    acre_buf_finish(&out);
    table_destroy(table);
    table_destroy(NULL);
}

static void texts_wrap_at_blanks(void) {
    struct term term = {.is_terminal = true, .width = 16};
    struct acre_buf out;
    acre_buf_init(&out, 4096);
    term_wrap(&term, &out, 4, "one two three averyverylongword x");
    CHECK_STR(out.data, "one two\n    three\n    averyverylongword\n    x\n");
    acre_buf_clear(&out);
    term.width = 0;
    term_wrap(&term, &out, 4, "one two");
    CHECK_STR(out.data, "one two\n");
    acre_buf_finish(&out);
}

static void a_file_is_no_terminal(void) {
    FILE *file = tmpfile();
    REQUIRE(file != NULL);
    struct term term = term_detect(fileno(file));
    CHECK(!term.is_terminal && !term.colour);
    CHECK_U64(term.width, 0);
    fclose(file);
}

#define TEST(name)                                                                                 \
    { #name, name, 0 }
static const struct acre_test tests[] = {
    TEST(pipes_get_every_column_whole),
    TEST(a_wide_terminal_hides_what_nobody_knows),
    TEST(a_narrow_one_drops_luxuries_then_cuts_then_drops),
    TEST(no_line_passes_the_width_it_can_reach),
    TEST(cuts_keep_head_and_tail),
    TEST(sentences_are_cut_at_the_end_and_get_room_first),
    TEST(a_picture_is_redrawn_within_the_screen),
    TEST(colours_only_where_wanted),
    TEST(characters_are_counted_not_bytes),
    TEST(texts_wrap_at_blanks),
    TEST(a_file_is_no_terminal),
};

ACRE_TEST_MAIN(tests)
