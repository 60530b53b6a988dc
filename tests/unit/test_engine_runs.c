/* The runs an engine knows: against an array that is searched, while runs come and go. */
#include "core/rand.h"
#include "engine/runs.h"
#include "support/test.h"

enum { RUNS = 200, STEPS = 50000 };

struct record {
    struct acre_run run;
    bool is_known;
};

static void check_all(const struct runs *runs, struct record *records) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < RUNS; i++) {
        struct record *expected = records[i].is_known ? &records[i] : NULL;
        REQUIRE(runs_find(runs, records[i].run) == expected);
        count += records[i].is_known;
    }
    REQUIRE_EQ(runs->count, count);
    for (uint32_t i = 0; i < runs->count; i++) {
        REQUIRE(runs_find(runs, *runs->all[i]) == runs->all[i]);
    }
}

static void runs_come_and_go(void) {
    struct runs runs = {0};
    struct record records[RUNS] = {0};
    struct acre_rand rand;
    acre_rand_seed(&rand, 7);
    for (uint32_t i = 0; i < RUNS; i++) { /* three attempts a job */
        records[i].run = (struct acre_run){.job = 1 + i / 3, .attempt = 1 + i % 3};
    }
    for (uint32_t step = 0; step < STEPS; step++) {
        struct record *record = &records[acre_rand_below(&rand, RUNS)];
        acre_test_context("step %u", step);
        if (record->is_known) {
            REQUIRE(runs_remove(&runs, record->run) == record);
        } else {
            REQUIRE(runs_remove(&runs, record->run) == NULL);
            runs_add(&runs, &record->run);
        }
        record->is_known = !record->is_known;
        if (step % 100 == 0) {
            check_all(&runs, records);
        }
    }
    check_all(&runs, records);
    runs_finish(&runs);
    CHECK(runs_find(&runs, records[0].run) == NULL);
}

/* From the end, as the header says: all are seen, though those seen are removed. */
static void runs_are_removed_while_walking(void) {
    struct runs runs = {0};
    struct record records[RUNS] = {0};
    for (uint32_t i = 0; i < RUNS; i++) {
        records[i].run = (struct acre_run){.job = 1 + i, .attempt = 1};
        runs_add(&runs, &records[i].run);
    }
    uint32_t seen = 0;
    for (uint32_t i = runs.count; i-- > 0;) {
        struct record *record = (struct record *)runs.all[i];
        seen += !record->is_known;
        record->is_known = true;
        if (record->run.job % 2 == 0) {
            runs_remove(&runs, record->run);
        }
    }
    CHECK_EQ(seen, RUNS);
    CHECK_EQ(runs.count, RUNS / 2);
    runs_finish(&runs);
}

static const struct acre_test tests[] = {
    {"runs_come_and_go", runs_come_and_go, 0},
    {"runs_are_removed_while_walking", runs_are_removed_while_walking, 0},
};
ACRE_TEST_MAIN(tests)
