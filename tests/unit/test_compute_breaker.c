/* The circuit breaker of a device (GPU-6): ratio 0.5 over 2 minutes, at least 10 calls, open for
 * 1 minute, then one call tries; and a context's options for it. Time is the test's. */
#include "support/test.h"

#include "compute/breaker.h"
#include "compute/context.h"
#include "core/clock.h"

#include <acre/compute.h>

#include <sched.h>

enum { SECOND = 1000, START = 1000000007 };

/* `calls` calls of which the last `failures` fail, all at once. */
static void tell(struct breaker *breaker, uint64_t now_ms, uint32_t calls, uint32_t failures) {
    for (uint32_t i = 0; i < calls; i++) {
        breaker_tell(breaker, now_ms, i < calls - failures);
    }
}

static void opens_at_half_of_ten_calls(void) {
    static const struct {
        uint32_t calls, failures;
        enum breaker_state expect;
    } rows[] = {{9, 9, BREAKER_CLOSED},      {10, 4, BREAKER_CLOSED},   {10, 5, BREAKER_OPEN},
                {10, 10, BREAKER_OPEN},      {1, 1, BREAKER_CLOSED},    {10, 0, BREAKER_CLOSED},
                {100, 49, BREAKER_CLOSED},   {100, 50, BREAKER_OPEN},   {1000, 10, BREAKER_CLOSED},
                {1000, 499, BREAKER_CLOSED}, {1000, 500, BREAKER_OPEN}, {0, 0, BREAKER_CLOSED}};
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        acre_test_context("%u of %u", rows[i].failures, rows[i].calls);
        struct breaker breaker;
        breaker_init(&breaker, 0, 0);
        tell(&breaker, START, rows[i].calls, rows[i].failures);
        CHECK_EQ(breaker_state(&breaker), rows[i].expect);
        breaker_finish(&breaker);
    }
}

static void failures_count_for_two_minutes(void) {
    static const struct {
        uint64_t later_ms;
        enum breaker_state expect;
    } rows[] = {{0, BREAKER_OPEN},
                {60 * SECOND, BREAKER_OPEN},
                {109 * SECOND, BREAKER_OPEN},
                {121 * SECOND, BREAKER_CLOSED}, /* only the last five are seen */
                {24 * 3600 * SECOND, BREAKER_CLOSED}};
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        acre_test_context("%llu ms later", (unsigned long long)rows[i].later_ms);
        struct breaker breaker;
        breaker_init(&breaker, 0, 0);
        tell(&breaker, START, 9, 9);
        CHECK_EQ(breaker_state(&breaker), BREAKER_CLOSED);
        tell(&breaker, START + rows[i].later_ms, 5, 5);
        CHECK_EQ(breaker_state(&breaker), rows[i].expect);
        breaker_finish(&breaker);
    }
}

static void open_refuses_for_a_minute_and_says_why(void) {
    struct breaker breaker;
    struct acre_error err = {0};
    breaker_init(&breaker, 0, 0);
    CHECK_EQ(breaker_ask(&breaker, START, &err), 0);
    tell(&breaker, START, 12, 12); /* the last two end after it has opened */
    CHECK_EQ(breaker_ask(&breaker, START, &err), ACRE_EUNAVAILABLE);
    CHECK_HAS(err.text, "60 s");
    CHECK_HAS(err.text, "12 of its last 12 calls failed");
    CHECK_EQ(breaker_ask(&breaker, START + 59 * SECOND + 999, &err), ACRE_EUNAVAILABLE);
    CHECK_HAS(err.text, "for another 1 s");
    CHECK_EQ(breaker_state(&breaker), BREAKER_OPEN);
    CHECK_EQ(breaker_ask(&breaker, START + 60 * SECOND, &err), 0);
    CHECK_EQ(breaker_state(&breaker), BREAKER_HALF_OPEN);
    breaker_finish(&breaker);
}

static void one_call_tries(void) {
    struct breaker breaker;
    struct acre_error err = {0};
    uint64_t now = START;
    breaker_init(&breaker, 0, 0);
    tell(&breaker, now, 10, 10);
    for (int i = 0; i < 3; i++) { /* it fails: another minute, each time */
        now += 60 * SECOND;
        CHECK_EQ(breaker_ask(&breaker, now, NULL), 0);
        CHECK_EQ(breaker_ask(&breaker, now, &err), ACRE_EUNAVAILABLE);
        CHECK_HAS(err.text, "one call tests whether the device works again");
        breaker_tell(&breaker, now, false);
        CHECK_EQ(breaker_state(&breaker), BREAKER_OPEN);
        CHECK_EQ(breaker_ask(&breaker, now + 59 * SECOND, NULL), ACRE_EUNAVAILABLE);
    }
    now += 60 * SECOND;
    CHECK_EQ(breaker_ask(&breaker, now, NULL), 0);
    breaker_tell(&breaker, now, true);
    CHECK_EQ(breaker_state(&breaker), BREAKER_CLOSED);
    tell(&breaker, now, 8, 8); /* what was before is forgotten: 8 calls are too few */
    CHECK_EQ(breaker_state(&breaker), BREAKER_CLOSED);
    CHECK_EQ(breaker_ask(&breaker, now, NULL), 0);
    tell(&breaker, now, 2, 2);
    CHECK_EQ(breaker_state(&breaker), BREAKER_OPEN);
    breaker_finish(&breaker);
}

static void a_try_that_says_nothing_leaves_it_to_the_next(void) {
    struct breaker breaker;
    breaker_init(&breaker, 0, 0);
    tell(&breaker, START, 10, 10);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(breaker_ask(&breaker, START + 60 * SECOND, NULL), 0);
        CHECK_EQ(breaker_ask(&breaker, START + 60 * SECOND, NULL), ACRE_EUNAVAILABLE);
        breaker_pass(&breaker);
        CHECK_EQ(breaker_state(&breaker), BREAKER_HALF_OPEN);
    }
    CHECK_EQ(breaker_ask(&breaker, START + 60 * SECOND, NULL), 0);
    breaker_tell(&breaker, START + 60 * SECOND, true);
    CHECK_EQ(breaker_state(&breaker), BREAKER_CLOSED);
    breaker_finish(&breaker);
}

static void a_look_takes_no_try(void) {
    struct breaker breaker;
    struct acre_error err = {0};
    breaker_init(&breaker, 0, 0);
    CHECK_EQ(breaker_look(&breaker, START, &err), 0);
    tell(&breaker, START, 10, 10);
    CHECK_EQ(breaker_look(&breaker, START + 59 * SECOND, &err), ACRE_EUNAVAILABLE);
    CHECK_HAS(err.text, "for another 1 s");
    CHECK_EQ(breaker_look(&breaker, START + 60 * SECOND, &err), 0);
    CHECK_EQ(breaker_look(&breaker, START + 60 * SECOND, &err), 0);
    CHECK_EQ(breaker_state(&breaker), BREAKER_OPEN);
    CHECK_EQ(breaker_ask(&breaker, START + 60 * SECOND, &err), 0);
    CHECK_EQ(breaker_look(&breaker, START + 60 * SECOND, &err), ACRE_EUNAVAILABLE);
    CHECK_HAS(err.text, "one call tests whether the device works again");
    breaker_finish(&breaker);
}

static void late_ends_move_nothing_while_open(void) {
    struct breaker breaker;
    breaker_init(&breaker, 0, 0);
    tell(&breaker, START, 10, 10);
    tell(&breaker, START + SECOND, 100, 0); /* calls that were under way */
    CHECK_EQ(breaker_state(&breaker), BREAKER_OPEN);
    tell(&breaker, START + 30 * SECOND, 100, 100);
    CHECK_EQ(breaker_ask(&breaker, START + 60 * SECOND, NULL), 0); /* not put off */
    breaker_finish(&breaker);
}

static void its_owner_chooses_when_and_how_long(void) {
    static const struct {
        uint32_t rest_ms, calls_min, failures;
        enum breaker_state expect;
    } rows[] = {{500, 3, 2, BREAKER_CLOSED},
                {500, 3, 3, BREAKER_OPEN},
                {3600 * SECOND, 1, 1, BREAKER_OPEN},
                {UINT32_MAX, 10, 10, BREAKER_OPEN},
                {500, UINT32_MAX, 100000, BREAKER_CLOSED}};
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        acre_test_context("row %zu", i);
        struct breaker breaker;
        uint64_t end_ms = START + (uint64_t)rows[i].rest_ms;
        breaker_init(&breaker, rows[i].rest_ms, rows[i].calls_min);
        tell(&breaker, START, rows[i].failures, rows[i].failures);
        CHECK_EQ(breaker_state(&breaker), rows[i].expect);
        if (rows[i].expect == BREAKER_OPEN) {
            CHECK_EQ(breaker_ask(&breaker, end_ms - 1, NULL), ACRE_EUNAVAILABLE);
            CHECK_EQ(breaker_ask(&breaker, end_ms, NULL), 0);
            breaker_tell(&breaker, end_ms, false); /* for as long again */
            CHECK_EQ(breaker_ask(&breaker, end_ms + rows[i].rest_ms - 1, NULL), ACRE_EUNAVAILABLE);
            CHECK_EQ(breaker_ask(&breaker, end_ms + rows[i].rest_ms, NULL), 0);
        }
        breaker_finish(&breaker);
    }
}

/* The options of a context: a short rest ends by itself, and the first call after it works. */
static void a_context_rests_as_its_options_say(void) {
    struct acre_compute *compute;
    struct acre_context *context;
    struct acre_error err = {0};
    struct acre_compute_options only = {.backends = "cpu", .cache = ""};
    struct acre_context_options options = {.rest_ms = 300, .rest_calls = 2};
    REQUIRE_EQ(acre_compute_open(&only, &compute, &err), 0);
    REQUIRE_EQ(acre_context_open(compute, 0, &options, &context, &err), 0);
    uint64_t begun_ms = acre_monotonic_ns() / 1000000;
    context_tell(context, ACRE_EUNAVAILABLE);
    CHECK_EQ(context_look(context, &err), 0);
    context_tell(context, ACRE_EUNAVAILABLE);
    struct acre_stream *stream = NULL;
    CHECK_EQ(acre_stream_create(context, &stream, &err), ACRE_EUNAVAILABLE);
    CHECK_HAS(err.text, "the context rests for another 1 s, because 2 of its last 2 calls failed");
    int r = ACRE_EUNAVAILABLE;
    uint64_t now_ms = begun_ms;
    while (r == ACRE_EUNAVAILABLE && now_ms < begun_ms + 30 * SECOND) {
        sched_yield();
        r = acre_stream_create(context, &stream, &err);
        now_ms = acre_monotonic_ns() / 1000000;
    }
    CHECK_EQ(r, 0);
    CHECK(now_ms >= begun_ms + 300);
    CHECK_EQ(breaker_state(&context->breaker), BREAKER_CLOSED);
    acre_compute_close(compute);
}

/* Many threads: exactly one of them tries. */
enum { ASKERS = 8 };

struct asker {
    struct breaker *breaker;
    int result;
};

static void *ask(void *argument) {
    struct asker *asker = argument;
    asker->result = breaker_ask(asker->breaker, START + 60 * SECOND, NULL);
    return NULL;
}

static void one_of_many_threads_tries(void) {
    struct breaker breaker;
    breaker_init(&breaker, 0, 0);
    tell(&breaker, START, 10, 10);
    pthread_t threads[ASKERS];
    struct asker askers[ASKERS];
    for (size_t i = 0; i < ASKERS; i++) {
        askers[i] = (struct asker){.breaker = &breaker};
        REQUIRE_EQ(pthread_create(&threads[i], NULL, ask, &askers[i]), 0);
    }
    uint32_t tries = 0;
    for (size_t i = 0; i < ASKERS; i++) {
        pthread_join(threads[i], NULL);
        tries += askers[i].result == 0;
    }
    CHECK_U64(tries, 1);
    breaker_finish(&breaker);
}

static const struct acre_test tests[] = {
    {"opens_at_half_of_ten_calls", opens_at_half_of_ten_calls, 0},
    {"failures_count_for_two_minutes", failures_count_for_two_minutes, 0},
    {"open_refuses_for_a_minute_and_says_why", open_refuses_for_a_minute_and_says_why, 0},
    {"one_call_tries", one_call_tries, 0},
    {"a_try_that_says_nothing_leaves_it_to_the_next", a_try_that_says_nothing_leaves_it_to_the_next,
     0},
    {"a_look_takes_no_try", a_look_takes_no_try, 0},
    {"late_ends_move_nothing_while_open", late_ends_move_nothing_while_open, 0},
    {"its_owner_chooses_when_and_how_long", its_owner_chooses_when_and_how_long, 0},
    {"a_context_rests_as_its_options_say", a_context_rests_as_its_options_say, 0},
    {"one_of_many_threads_tries", one_of_many_threads_tries, 0},
};

ACRE_TEST_MAIN(tests)
