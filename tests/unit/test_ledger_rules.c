/* Policies: what a request may ask for (ALC-9; vector B2). */
#include "ledger/rules.h"
#include "support/test.h"

static void defaults_are_those_of_the_header(void) {
    struct acre_rules rules;
    struct acre_error err = {0};
    REQUIRE_EQ(rules_load("x", ACRE_STR("{}"), &rules, &err), 0);
    CHECK_U64(rules.min_milli, 100);
    CHECK_U64(rules.max_milli, 1000);
    CHECK_U64(rules.isolation_mask, 15);
    CHECK_U64(rules.max_allocations_per_device, 10);
    CHECK(rules.sharing_allowed);
    /* The example in rules.h says the same. */
    REQUIRE_EQ(rules_load("x",
                          ACRE_STR("{\"min_milli\": 100, \"max_milli\": 1000, "
                                   "\"sharing_allowed\": true, \"isolation\": [\"none\", "
                                   "\"time-slicing\", \"mps\", \"mig\"], "
                                   "\"max_allocations_per_device\": 10}"),
                          &rules, &err),
               0);
    struct acre_rules expect = *rules_default();
    CHECK(rules.min_milli == expect.min_milli && rules.max_milli == expect.max_milli &&
          rules.isolation_mask == expect.isolation_mask &&
          rules.max_allocations_per_device == expect.max_allocations_per_device &&
          rules.sharing_allowed == expect.sharing_allowed);
}

static void every_key_is_read(void) {
    struct acre_rules rules;
    REQUIRE_EQ(rules_load("x",
                          ACRE_STR("{\"min_milli\":200,\"max_milli\":200,\"sharing_allowed\":"
                                   "false,\"isolation\":[\"mig\",\"none\"],"
                                   "\"max_allocations_per_device\":255}"),
                          &rules, NULL),
               0);
    CHECK_U64(rules.min_milli, 200);
    CHECK_U64(rules.max_milli, 200);
    CHECK_U64(rules.isolation_mask, 1 << ACRE_ISOLATION_MIG | 1 << ACRE_ISOLATION_NONE);
    CHECK_U64(rules.max_allocations_per_device, 255);
    CHECK(!rules.sharing_allowed);
    REQUIRE_EQ(rules_load("x", ACRE_STR("{\"isolation\":null,\"min_milli\":null}"), &rules, NULL),
               0);
    CHECK_U64(rules.isolation_mask, 15);
    CHECK_U64(rules.min_milli, 100);
}

static void bad_rules_are_refused_and_change_nothing(void) {
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"", "rules.json"},
        {"[]", "rules.json: not an object; accepted: {\"name\": value, ...}"},
        {"{\"min_milli\":99}", "rules.json: min_milli"},
        {"{\"min_milli\":1001}", "100 to 1000"},
        {"{\"min_milli\":-1}", "min_milli"},
        {"{\"min_milli\":100.5}", "min_milli"},
        {"{\"min_milli\":\"100\"}", "min_milli"},
        {"{\"max_milli\":2000}", "max_milli: '2000'"}, /* B2: 2.0 */
        {"{\"max_milli\":99999999999999999999}", "rules.json"},
        {"{\"min_milli\":600,\"max_milli\":500}",
         "min_milli: 600; accepted: at most max_milli 500"},
        {"{\"max_allocations_per_device\":0}", "1 to 255"},
        {"{\"max_allocations_per_device\":256}", "1 to 255"},
        {"{\"sharing_allowed\":1}", "true or false"},
        {"{\"isolation\":[]}", "a list with at least one of none"},
        {"{\"isolation\":\"mps\"}", "a list with at least one of none"},
        {"{\"isolation\":[\"none\",\"vgpu\"]}", "isolation[1]: 'vgpu'; accepted: none"},
        {"{\"isolation\":[7]}", "isolation[0]: ''"},
        {"{\"isolation\":[\"mps\",\"mps\"]}", "rules.json: isolation[1]: 'mps' appears twice"},
        {"{\"min_fraction\":100}", "min_fraction"},
        {"{\"min_milli\":100,\"min_milli\":100}", "duplicate"},
        {"{\"min_milli\":100", "rules.json"},
        {"{} {}", "rules.json"},
    };
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        acre_test_context("%s", rows[i].text);
        struct acre_rules rules = {.min_milli = 77};
        struct acre_error err = {0};
        CHECK_EQ(rules_load("rules.json", acre_str_from(rows[i].text), &rules, &err),
                 ACRE_EINVALID);
        CHECK_HAS(err.text, rows[i].says);
        CHECK_U64(rules.min_milli, 77);
    }
    static char large[ACRE_RULES_BYTES_MAX + 1];
    memset(large, ' ', sizeof(large));
    struct acre_rules rules;
    struct acre_error err;
    CHECK_EQ(rules_load("x", (struct acre_str){large, sizeof(large)}, &rules, &err), ACRE_ELIMIT);
}

static void requests_are_judged_with_numbers(void) {
    static const struct {
        uint32_t milli;
        bool shared;
        enum acre_isolation isolation;
        const char *says; /* NULL: allowed */
    } rows[] = {
        {200, true, ACRE_ISOLATION_NONE, NULL},
        {500, true, ACRE_ISOLATION_MPS, NULL},
        {0, true, ACRE_ISOLATION_NONE, NULL}, /* by memory: no share to judge */
        {199, true, ACRE_ISOLATION_NONE,
         "the policy does not allow a share of 0.199; allowed: 0.2 to 0.5"},
        {501, true, ACRE_ISOLATION_NONE,
         "the policy does not allow a share of 0.501; allowed: 0.2 to 0.5"},
        {1000, false, ACRE_ISOLATION_NONE, "a share of 1"},
        {300, true, ACRE_ISOLATION_MIG,
         "the policy does not allow isolation 'mig'; allowed: none, mps"},
        {300, true, ACRE_ISOLATION_TIME_SLICING, "isolation 'time-slicing'"},
    };
    struct acre_rules rules = *rules_default();
    rules.min_milli = 200;
    rules.max_milli = 500;
    rules.isolation_mask = 1 << ACRE_ISOLATION_NONE | 1 << ACRE_ISOLATION_MPS;
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        acre_test_context("row %zu", i);
        struct acre_error err = {0};
        CHECK_EQ(rules_check(&rules, rows[i].milli, rows[i].isolation, rows[i].shared, &err),
                 rows[i].says == NULL ? 0 : ACRE_EDENIED);
        CHECK_HAS(err.text, rows[i].says == NULL ? "" : rows[i].says);
    }
    rules = *rules_default();
    rules.sharing_allowed = false;
    struct acre_error err;
    CHECK_EQ(rules_check(&rules, 1000, ACRE_ISOLATION_NONE, true, &err), ACRE_EDENIED);
    CHECK_HAS(err.text, "sharing");
    CHECK_EQ(rules_check(&rules, 1000, ACRE_ISOLATION_NONE, false, &err), 0);
    CHECK_EQ(rules_check(&rules, 1000, ACRE_ISOLATION_NONE, false, NULL), 0);
}

static const struct acre_test tests[] = {
    {"defaults_are_those_of_the_header", defaults_are_those_of_the_header, 0},
    {"every_key_is_read", every_key_is_read, 0},
    {"bad_rules_are_refused_and_change_nothing", bad_rules_are_refused_and_change_nothing, 0},
    {"requests_are_judged_with_numbers", requests_are_judged_with_numbers, 0},
};

ACRE_TEST_MAIN(tests)
