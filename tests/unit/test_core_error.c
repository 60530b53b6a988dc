/* Errors: one table gives code, name, HTTP status, exit code and message. */
#include "core/error.h"
#include "support/test.h"

#include <errno.h>
#include <stdio.h>

static void codes_are_unique_and_complete(void) {
    static const int codes[] = {
#define X(name, code, http, exit, message) code,
        ACRE_ERRORS(X)
#undef X
    };
    for (size_t i = 0; i < ACRE_COUNT(codes); i++) {
        CHECK(codes[i] < 0);
        CHECK(acre_error_http(codes[i]) >= 400 && acre_error_http(codes[i]) < 600);
        CHECK(acre_error_exit(codes[i]) > 0 && acre_error_exit(codes[i]) < 128);
        CHECK(strlen(acre_error_message(codes[i])) > 3);
        for (size_t j = 0; j < i; j++) {
            CHECK(codes[i] != codes[j]);
        }
    }
}

static void success_and_unknown_codes_have_answers(void) {
    CHECK_STR(acre_error_name(0), "OK");
    CHECK_EQ(acre_error_http(0), 200);
    CHECK_EQ(acre_error_exit(0), 0);
    CHECK_STR(acre_error_name(-999), "UNKNOWN");
    CHECK_EQ(acre_error_http(-999), 500);
    CHECK_EQ(acre_error_exit(-999), 70);
    CHECK_STR(acre_error_message(-999), "unknown error");
    CHECK_STR(acre_error_name(ACRE_ENOFIT), "NOFIT");
}

static void fail_fills_text_and_takes_null(void) {
    struct acre_error err = {0};
    CHECK_EQ(acre_fail(&err, ACRE_EINVALID, "gpus: %d", 7), ACRE_EINVALID);
    CHECK_STR(err.text, "gpus: 7");
    CHECK_EQ(err.code, ACRE_EINVALID);
    CHECK_EQ(acre_fail(NULL, ACRE_EIO, "x"), ACRE_EIO);
}

static void fail_in_puts_context_before_and_keeps_the_code(void) {
    struct acre_error err = {0};
    acre_fail(&err, ACRE_ENOTFOUND, "no node 'x'");
    CHECK_EQ(acre_fail_in(&err, ACRE_EINVALID, "line %d", 3), ACRE_ENOTFOUND);
    CHECK_STR(err.text, "line 3: no node 'x'");
    CHECK_EQ(acre_fail_in(NULL, ACRE_EINVALID, "line"), ACRE_EINVALID);
}

static void long_texts_are_cut_not_overrun(void) {
    struct acre_error err = {0};
    char big[2000];
    memset(big, 'x', sizeof(big) - 1);
    big[sizeof(big) - 1] = '\0';
    acre_fail(&err, ACRE_EINVALID, "%s", big);
    CHECK_EQ(strlen(err.text), ACRE_ERROR_TEXT_MAX - 1);
    acre_fail_in(&err, ACRE_EINVALID, "%s", big);
    CHECK_EQ(strlen(err.text), ACRE_ERROR_TEXT_MAX - 1);
}

static void errno_becomes_ours(void) {
    static const struct {
        int errnum, code;
    } cases[] = {
        {ENOENT, ACRE_ENOTFOUND}, {ENOTDIR, ACRE_ENOTFOUND}, {EACCES, ACRE_EDENIED},
        {EEXIST, ACRE_EEXISTS},   {ENOMEM, ACRE_ENOMEM},     {ETIMEDOUT, ACRE_ETIMEOUT},
        {EIO, ACRE_EIO},          {EISDIR, ACRE_EIO},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        struct acre_error err = {0};
        CHECK_EQ(acre_fail_errno(&err, cases[i].errnum, "open %s", "/x"), cases[i].code);
        CHECK_HAS(err.text, "open /x: ");
        CHECK_HAS(err.text, strerror(cases[i].errnum));
    }
}

static const struct acre_test tests[] = {
    {"codes_are_unique_and_complete", codes_are_unique_and_complete, 0},
    {"success_and_unknown_codes_have_answers", success_and_unknown_codes_have_answers, 0},
    {"fail_fills_text_and_takes_null", fail_fills_text_and_takes_null, 0},
    {"fail_in_puts_context_before_and_keeps_the_code",
     fail_in_puts_context_before_and_keeps_the_code, 0},
    {"long_texts_are_cut_not_overrun", long_texts_are_cut_not_overrun, 0},
    {"errno_becomes_ours", errno_becomes_ours, 0},
};

ACRE_TEST_MAIN(tests)
