/* Vendor libraries: the first that opens fills the table; what is missing is named. */
#include "core/dl.h"
#include "support/test.h"

/* DL_FULL and DL_OLD are the paths of the two libraries built beside this test. */

struct table {
    int (*one)(void);
    int (*two)(void);
    int untouched;
};

#define ROW(field, required)                                                                       \
    { "acre_test_" #field, offsetof(struct table, field), required }

static const struct acre_dl_symbol both[] = {ROW(one, true), ROW(two, true)};
static const struct acre_dl_symbol two_optional[] = {ROW(one, true), ROW(two, false)};

static int nothing(void) {
    return -1;
}

static void the_table_is_filled_from_the_first_that_opens(void) {
    static const char *const sonames[] = {"libacre-nowhere.so.1", DL_FULL, DL_OLD, NULL};
    struct table table = {.untouched = 7};
    struct acre_error err = {0};
    const char *soname = NULL;
    REQUIRE_EQ(acre_dl_load(sonames, both, ACRE_COUNT(both), &table, &soname, &err), 0);
    CHECK_STR(soname, DL_FULL);
    CHECK_EQ(table.one(), 1);
    CHECK_EQ(table.two(), 2);
    CHECK_EQ(table.untouched, 7);
    REQUIRE_EQ(acre_dl_load(sonames, both, ACRE_COUNT(both), &table, NULL, NULL), 0);
}

static void missing_optional_symbols_stay_null(void) {
    static const char *const sonames[] = {DL_OLD, NULL};
    struct table table = {nothing, nothing, 7};
    struct acre_error err = {0};
    REQUIRE_EQ(acre_dl_load(sonames, two_optional, 2, &table, NULL, &err), 0);
    CHECK_EQ(table.one(), 10);
    CHECK(table.two == NULL);
}

static void a_missing_required_symbol_is_named(void) {
    static const char *const sonames[] = {DL_OLD, DL_FULL, NULL};
    struct table table = {nothing, nothing, 7};
    struct acre_error err = {0};
    const char *soname = "unchanged";
    CHECK_EQ(acre_dl_load(sonames, both, ACRE_COUNT(both), &table, &soname, &err),
             ACRE_EUNSUPPORTED);
    CHECK_HAS(err.text, DL_OLD);
    CHECK_HAS(err.text, "'acre_test_two'");
    CHECK(table.one == NULL && table.two == NULL);
    CHECK_EQ(table.untouched, 7);
    CHECK_STR(soname, "unchanged");
    CHECK_EQ(acre_dl_load(sonames, both, ACRE_COUNT(both), &table, NULL, NULL), ACRE_EUNSUPPORTED);
}

static void what_each_library_answered_is_told(void) { /* DEV-5 */
    static const char *const sonames[] = {"libacre-nowhere.so.1", "/dev/null", NULL};
    struct table table = {nothing, nothing, 7};
    struct acre_error err = {0};
    CHECK_EQ(acre_dl_load(sonames, both, ACRE_COUNT(both), &table, NULL, &err), ACRE_EUNAVAILABLE);
    CHECK_EQ(err.code, ACRE_EUNAVAILABLE);
    CHECK_HAS(err.text, "libacre-nowhere.so.1: cannot open shared object file");
    CHECK_HAS(err.text, "; /dev/null: ");
    CHECK(table.one == NULL && table.two == NULL);
    CHECK_EQ(acre_dl_load(sonames, both, ACRE_COUNT(both), &table, NULL, NULL), ACRE_EUNAVAILABLE);
}

static void no_soname_at_all_is_an_answer_too(void) {
    static const char *const sonames[] = {NULL};
    struct table table = {0};
    struct acre_error err = {0};
    CHECK_EQ(acre_dl_load(sonames, both, ACRE_COUNT(both), &table, NULL, &err), ACRE_EUNAVAILABLE);
    CHECK_STR(err.text, "no library to try");
}

static void many_answers_do_not_overrun(void) {
    static char names[40][64];
    const char *sonames[41] = {0};
    for (size_t i = 0; i < 40; i++) {
        memset(names[i], 'x', sizeof(names[i]) - 1);
        sonames[i] = names[i];
    }
    struct table table = {0};
    struct acre_error err = {0};
    CHECK_EQ(acre_dl_load(sonames, both, ACRE_COUNT(both), &table, NULL, &err), ACRE_EUNAVAILABLE);
    CHECK_HAS(err.text, "xxx: cannot open");
}

static const struct acre_test tests[] = {
    {"the_table_is_filled_from_the_first_that_opens", the_table_is_filled_from_the_first_that_opens,
     0},
    {"missing_optional_symbols_stay_null", missing_optional_symbols_stay_null, 0},
    {"a_missing_required_symbol_is_named", a_missing_required_symbol_is_named, 0},
    {"what_each_library_answered_is_told", what_each_library_answered_is_told, 0},
    {"no_soname_at_all_is_an_answer_too", no_soname_at_all_is_an_answer_too, 0},
    {"many_answers_do_not_overrun", many_answers_do_not_overrun, 0},
};

ACRE_TEST_MAIN(tests)
