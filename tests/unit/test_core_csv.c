/* CSV: exact columns, whole lines, and errors that say where. */
#include "core/csv.h"
#include "support/dies.h"
#include "support/test.h"

#include <stdio.h>

static const char *const wanted[] = {"name", "gpus"};

static void columns_are_found_in_any_order(void) {
    static const char *const texts[] = {
        "name,gpus\nn1,8\nn2,0\n",
        "gpus,name\n8,n1\n0,n2\n",
        "x,gpus,y,name,z\n,8,,n1,\n1,0,2,n2,3\n",
        "name,gpus\r\nn1,8\r\nn2,0\r\n",
        "name,gpus\r\nn1,8\nn2,0\r\n",
    };
    for (size_t i = 0; i < ACRE_COUNT(texts); i++) {
        acre_test_context("text %zu", i);
        struct acre_csv csv;
        struct acre_error err = {0};
        uint64_t gpus = 99;
        REQUIRE_EQ(acre_csv_begin(&csv, "f.csv", acre_str_from(texts[i]), wanted, 2, &err), 0);
        CHECK_EQ(acre_csv_next(&csv, &err), 1);
        CHECK_EQ(csv.line, 2);
        CHECK(acre_str_is(acre_csv_cell(&csv, 0), "n1"));
        CHECK_EQ(acre_csv_u64(&csv, 1, 0, 16, &gpus, &err), 0);
        CHECK_U64(gpus, 8);
        CHECK_EQ(acre_csv_next(&csv, &err), 1);
        CHECK(acre_str_is(acre_csv_cell(&csv, 0), "n2"));
        CHECK_EQ(acre_csv_u64(&csv, 1, 0, 16, &gpus, &err), 0);
        CHECK_U64(gpus, 0);
        CHECK_EQ(acre_csv_next(&csv, &err), 0);
        CHECK_EQ(acre_csv_next(&csv, &err), 0);
    }
}

static void a_header_alone_is_an_empty_table(void) {
    struct acre_csv csv;
    CHECK_EQ(acre_csv_begin(&csv, "f.csv", ACRE_STR("name,gpus\n"), wanted, 2, NULL), 0);
    CHECK_EQ(acre_csv_next(&csv, NULL), 0);
}

static void empty_fields_are_fields(void) {
    struct acre_csv csv;
    static const char *const one[] = {"name"};
    REQUIRE_EQ(acre_csv_begin(&csv, "f.csv", ACRE_STR("name\n\nx\n"), one, 1, NULL), 0);
    CHECK_EQ(acre_csv_next(&csv, NULL), 1);
    CHECK_EQ(acre_csv_cell(&csv, 0).length, 0);
    CHECK_EQ(acre_csv_next(&csv, NULL), 1);
    CHECK(acre_str_is(acre_csv_cell(&csv, 0), "x"));
}

static void bad_headers_are_refused(void) {
    const struct {
        struct acre_str text;
        const char *says;
    } cases[] = {
        {ACRE_STR(""), "f.csv:1: the file is empty; accepted: a header line"},
        {ACRE_STR("name,gpus"), "f.csv:1: the file is truncated"},
        {ACRE_STR("\n"), "f.csv:1: column 'name' is missing; the header is ''"},
        {ACRE_STR("gpus\n"), "f.csv:1: column 'name' is missing; the header is 'gpus'"},
        {ACRE_STR("name,gpu\n"), "f.csv:1: column 'gpus' is missing; the header is 'name,gpu'"},
        {ACRE_STR("Name,gpus\n"), "column 'name' is missing"},
        {ACRE_STR("name ,gpus\n"), "column 'name' is missing"},
        {ACRE_STR("\xef\xbb\xbfname,gpus\n"), "the header is '\\xef\\xbb\\xbfname,gpus'"},
        {ACRE_STR("name;gpus\n"), "the header is 'name;gpus'"},
        {ACRE_STR("name,gpus,name\n"), "f.csv:1: column 'name' appears twice"},
        {ACRE_STR("\"name\",gpus\n"),
         "f.csv:1: invalid character '\"' at byte 1; accepted: plain text"},
        {ACRE_STR("name,gp\0us\n"), "f.csv:1: invalid character '\\x00' at byte 8"},
        {ACRE_STR("name,gpus\rx\n"), "f.csv:1: invalid character '\\r' at byte 10"},
        {ACRE_STR("a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v,w,x,y,z,1,2,3,4,5,6,name,gpus\n"),
         "f.csv:1: 34 columns; accepted: at most 32"},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        acre_test_context("case %zu", i);
        struct acre_csv csv;
        struct acre_error err = {0};
        CHECK_EQ(acre_csv_begin(&csv, "f.csv", cases[i].text, wanted, 2, &err), ACRE_EINVALID);
        CHECK_HAS(err.text, cases[i].says);
        CHECK_EQ(acre_csv_begin(&csv, "f.csv", cases[i].text, wanted, 2, NULL), ACRE_EINVALID);
    }
}

static void bad_rows_are_refused_with_their_line(void) {
    const struct {
        struct acre_str text;
        const char *says;
    } cases[] = {
        {ACRE_STR("name,gpus\nn1,8\nn2,4"), "f.csv:3: the file is truncated"},
        {ACRE_STR("name,gpus\nn1,8\nn2,"), "f.csv:3: the file is truncated"},
        {ACRE_STR("name,gpus\nn1,8\nn2\n"), "f.csv:3: 1 fields; accepted: 2"},
        {ACRE_STR("name,gpus\nn1,8\nn2,4,5\n"), "f.csv:3: 3 fields; accepted: 2"},
        {ACRE_STR("name,gpus\nn1,8\n\n"), "f.csv:3: 1 fields; accepted: 2"},
        {ACRE_STR("name,gpus\r\nn1,8\r\nn2\r\n"), "f.csv:3: 1 fields; accepted: 2"},
        {ACRE_STR("name,gpus\nn1,8\n\"n2\",4\n"), "f.csv:3: invalid character '\"' at byte 1"},
        {ACRE_STR("name,gpus\nn1,8\nn\0,4\n"), "f.csv:3: invalid character '\\x00' at byte 2"},
        {ACRE_STR("name,gpus\nn1,8\nn2,4\x1b\n"), "f.csv:3: invalid character '\\x1b' at byte 5"},
        {ACRE_STR("name,gpus\nn1,8\nn2,4\r\r\n"), "f.csv:3: invalid character '\\r' at byte 5"},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        acre_test_context("case %zu", i);
        struct acre_csv csv;
        struct acre_error err = {0};
        REQUIRE_EQ(acre_csv_begin(&csv, "f.csv", cases[i].text, wanted, 2, &err), 0);
        CHECK_EQ(acre_csv_next(&csv, &err), 1);
        CHECK_EQ(acre_csv_next(&csv, &err), ACRE_EINVALID);
        CHECK_HAS(err.text, cases[i].says);
    }
}

static void wide_rows_are_refused_not_overrun(void) {
    char text[512] = "name,gpus\n";
    size_t length = strlen(text);
    memset(text + length, ',', 400);
    text[length + 400] = '\n';
    struct acre_csv csv;
    struct acre_error err = {0};
    REQUIRE_EQ(acre_csv_begin(&csv, "f.csv", acre_str_from(text), wanted, 2, &err), 0);
    CHECK_EQ(acre_csv_next(&csv, &err), ACRE_EINVALID);
    CHECK_HAS(err.text, "f.csv:2: 401 fields; accepted: 2");
}

static void numbers_are_checked_with_file_line_and_column(void) {
    static const struct {
        const char *cell;
        int expect;
        uint64_t value;
        const char *says;
    } cases[] = {
        {"0", 0, 0, ""},
        {"16", 0, 16, ""},
        {"17", ACRE_EINVALID, 0,
         "f.csv:2: column 'gpus': '17' is not a valid count; accepted: whole numbers from 0 to 16"},
        {"-1", ACRE_EINVALID, 0, "f.csv:2: column 'gpus': '-1' is not a valid count"},
        {"", ACRE_EINVALID, 0, "f.csv:2: column 'gpus': '' is not a valid count"},
        {" 8", ACRE_EINVALID, 0, "column 'gpus': ' 8' is not a valid count"},
        {"8.0", ACRE_EINVALID, 0, "column 'gpus': '8.0' is not a valid count"},
        {"18446744073709551624", ACRE_EINVALID, 0, "'18446744073709551624' is not a valid count"},
        {"000000000000000000000000000000000000000000000000000000000000000000000000000001",
         ACRE_EINVALID, 0, "000...' is not a valid count"},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        char text[256];
        acre_test_context("'%s'", cases[i].cell);
        snprintf(text, sizeof(text), "name,gpus\nn1,%s\n", cases[i].cell);
        struct acre_csv csv;
        struct acre_error err = {0};
        uint64_t value = 99;
        REQUIRE_EQ(acre_csv_begin(&csv, "f.csv", acre_str_from(text), wanted, 2, &err), 0);
        REQUIRE_EQ(acre_csv_next(&csv, &err), 1);
        CHECK_EQ(acre_csv_u64(&csv, 1, 0, 16, &value, &err), cases[i].expect);
        CHECK_U64(value, cases[i].expect == 0 ? cases[i].value : 99);
        CHECK_HAS(err.text, cases[i].says);
        CHECK_EQ(acre_csv_u64(&csv, 1, 0, 16, &value, NULL), cases[i].expect);
    }
}

static void callers_add_errors_of_their_own(void) {
    struct acre_csv csv;
    struct acre_error err = {0};
    REQUIRE_EQ(acre_csv_begin(&csv, "f.csv", ACRE_STR("name,gpus\nn1,8\n"), wanted, 2, &err), 0);
    REQUIRE_EQ(acre_csv_next(&csv, &err), 1);
    CHECK_EQ(acre_csv_fail(&csv, 0, &err, "'%s' appears twice", "n1"), ACRE_EINVALID);
    CHECK_STR(err.text, "f.csv:2: column 'name': 'n1' appears twice");
    CHECK_EQ(acre_csv_fail(&csv, 0, NULL, "x"), ACRE_EINVALID);
}

static void file_names_are_shown_safely(void) {
    struct acre_csv csv;
    struct acre_error err = {0};
    CHECK_EQ(acre_csv_begin(&csv, "\x1b[2J\n", ACRE_STR(""), wanted, 2, &err), ACRE_EINVALID);
    CHECK_HAS(err.text, "\\x1b[2J\\n:1: the file is empty");
}

static void texts_that_could_wrap_the_line_number_are_refused(void) {
    if (sizeof(size_t) <= 4) {
        acre_test_skip("sizes have 32 bits here");
    }
    struct acre_csv csv;
    struct acre_error err = {0};
    struct acre_str huge = {"name", (size_t)UINT32_MAX + 1}; /* never read */
    CHECK_EQ(acre_csv_begin(&csv, "f.csv", huge, wanted, 2, &err), ACRE_ELIMIT);
    CHECK_HAS(err.text, "less than 4 GiB");
}

static void ask_for_a_column_not_wanted(void) {
    struct acre_csv csv;
    acre_csv_begin(&csv, "f.csv", ACRE_STR("name,gpus\nn1,8\n"), wanted, 2, NULL);
    acre_csv_next(&csv, NULL);
    acre_csv_cell(&csv, 2);
}

static void columns_not_wanted_assert(void) {
    CHECK(acre_dies(ask_for_a_column_not_wanted));
}

static const struct acre_test tests[] = {
    {"columns_are_found_in_any_order", columns_are_found_in_any_order, 0},
    {"a_header_alone_is_an_empty_table", a_header_alone_is_an_empty_table, 0},
    {"empty_fields_are_fields", empty_fields_are_fields, 0},
    {"bad_headers_are_refused", bad_headers_are_refused, 0},
    {"bad_rows_are_refused_with_their_line", bad_rows_are_refused_with_their_line, 0},
    {"wide_rows_are_refused_not_overrun", wide_rows_are_refused_not_overrun, 0},
    {"numbers_are_checked_with_file_line_and_column", numbers_are_checked_with_file_line_and_column,
     0},
    {"callers_add_errors_of_their_own", callers_add_errors_of_their_own, 0},
    {"file_names_are_shown_safely", file_names_are_shown_safely, 0},
    {"texts_that_could_wrap_the_line_number_are_refused",
     texts_that_could_wrap_the_line_number_are_refused, 0},
    {"columns_not_wanted_assert", columns_not_wanted_assert, 0},
};

ACRE_TEST_MAIN(tests)
