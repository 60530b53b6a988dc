/* Rate limits (SEC-1): a burst, then a steady rate, for each key by itself; a full table forgets
 * the quiet ones. Time is passed in. */
#include "api/limit.h"
#include "support/dies.h"
#include "support/test.h"

#include <stdio.h>

static struct acre_limit *create(uint32_t keys, uint32_t burst, uint32_t per_minute) {
    struct acre_limit_options options = {.keys = keys, .burst = burst, .per_minute = per_minute};
    return limit_create(&options);
}

static void a_burst_is_followed_by_the_rate(void) {
    struct acre_limit *limit = create(8, 3, 60); /* one a second */
    struct acre_str key = ACRE_STR("user:ada");
    static const struct {
        uint64_t now_ms, wait_ms;
    } rows[] = {
        {5000, 0},    {5000, 0},  {5000, 0},    {5000, 1000}, {5001, 999},
        {5999, 1},    {6000, 0},  {6000, 1000}, {8000, 0},    {8000, 0},
        {8000, 1000}, {20000, 0}, {20000, 0},   {20000, 0},   {20000, 1000}, /* never more than 3 */
    };
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        acre_test_context("row %zu", i);
        CHECK_U64(limit_take(limit, key, rows[i].now_ms), rows[i].wait_ms);
    }
    limit_destroy(limit);
    limit_destroy(NULL);
}

static void keys_do_not_share(void) {
    struct acre_limit *limit = create(1024, 1, 1);
    char name[128];
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof(name), "user:%d", i);
        CHECK_U64(limit_take(limit, acre_str_from(name), 7), 0);
    }
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof(name), "user:%d", i);
        CHECK_U64(limit_take(limit, acre_str_from(name), 7), 60000);
    }
    /* long keys that differ only at their end */
    char other[128];
    memset(name, 'x', sizeof(name));
    memset(other, 'x', sizeof(other));
    other[127] = 'y';
    CHECK_U64(limit_take(limit, (struct acre_str){name, 128}, 7), 0);
    CHECK_U64(limit_take(limit, (struct acre_str){other, 128}, 7), 0);
    CHECK_U64(limit_take(limit, (struct acre_str){name, 128}, 7), 60000);
    CHECK_U64(limit_take(limit, (struct acre_str){NULL, 0}, 7), 0);
    limit_destroy(limit);
}

/* Thousands of addresses cannot free one that is held back: they push out each other. */
static void a_full_table_forgets_the_one_that_loses_least(void) {
    struct acre_limit *limit = create(8, 10, 60);
    struct acre_str held = ACRE_STR("address:10.0.0.1");
    for (int i = 0; i < 10; i++) {
        CHECK_U64(limit_take(limit, held, 0), 0);
    }
    CHECK_U64(limit_take(limit, held, 0), 1000);
    for (int i = 0; i < 5000; i++) {
        char name[64];
        snprintf(name, sizeof(name), "address:10.1.%d.%d", i / 256, i % 256);
        CHECK_U64(limit_take(limit, acre_str_from(name), 0), 0);
    }
    CHECK_U64(limit_take(limit, held, 0), 1000);
    limit_destroy(limit);
}

static void the_long_run_obeys_the_rate(void) {
    static const struct {
        uint32_t burst, per_minute;
    } rows[] = {{1, 1}, {5, 60}, {100, 6000}, {1000, 100000000}, {1000000, 7}};
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct acre_limit *limit = create(1, rows[i].burst, rows[i].per_minute);
        uint64_t taken = 0;
        for (uint64_t ms = 0; ms < 10 * 60000; ms += 10) { /* ten minutes, four tries a time */
            for (int j = 0; j < 4; j++) {
                taken += limit_take(limit, ACRE_STR("k"), ms) == 0;
            }
        }
        uint64_t most = rows[i].burst + (uint64_t)rows[i].per_minute * 10;
        acre_test_context("%u a minute", rows[i].per_minute);
        CHECK(taken <= most);
        CHECK(taken + 2 >= ACRE_MIN(most, (uint64_t)4 * 60000));
        limit_destroy(limit);
    }
}

static void create_without_rate(void) {
    create(8, 1, 0);
}

static void create_without_keys(void) {
    create(0, 1, 1);
}

static void nonsense_is_a_programmers_error(void) {
    CHECK(acre_dies(create_without_rate));
    CHECK(acre_dies(create_without_keys));
}

static void many_at_once_are_asked_for_then_charged(void) {
    struct acre_limit_options options = {.keys = 8, .burst = 100, .per_minute = 60};
    struct acre_limit *limit = limit_create(&options);
    CHECK_U64(limit_ask(limit, ACRE_STR("a"), 100, 1000), 0);
    CHECK_U64(limit_ask(limit, ACRE_STR("a"), 101, 1000), 1000);
    limit_charge(limit, ACRE_STR("a"), 90, 1000);
    CHECK_U64(limit_ask(limit, ACRE_STR("a"), 10, 1000), 0);
    CHECK_U64(limit_ask(limit, ACRE_STR("a"), 40, 1000), 30000);
    limit_charge(limit, ACRE_STR("a"), 40, 1000); /* too many: none */
    CHECK_U64(limit_ask(limit, ACRE_STR("a"), 10, 1000), 0);
    CHECK_U64(limit_ask(limit, ACRE_STR("a"), 40, 31000), 0);
    CHECK_U64(limit_ask(limit, ACRE_STR("b"), 100, 1000), 0);
    CHECK(limit_ask(limit, ACRE_STR("b"), UINT32_MAX, 1000) > 0);
    limit_destroy(limit);
}

static const struct acre_test tests[] = {
    {"many_at_once_are_asked_for_then_charged", many_at_once_are_asked_for_then_charged, 0},
    {"a_burst_is_followed_by_the_rate", a_burst_is_followed_by_the_rate, 0},
    {"keys_do_not_share", keys_do_not_share, 0},
    {"a_full_table_forgets_the_one_that_loses_least", a_full_table_forgets_the_one_that_loses_least,
     0},
    {"the_long_run_obeys_the_rate", the_long_run_obeys_the_rate, 0},
    {"nonsense_is_a_programmers_error", nonsense_is_a_programmers_error, 0},
};

ACRE_TEST_MAIN(tests)
