/* test_api_specs.c - the specs of the jobs submitted last: what stays, and what makes room. */
#include "desk/specs.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

enum { COUNT = 16, BYTES = 1000 };

static struct acre_str text_of(size_t length) {
    static char bytes[2 * BYTES];
    memset(bytes, 'x', sizeof(bytes));
    return (struct acre_str){bytes, length};
}

static bool has(const struct specs *specs, uint64_t job) {
    struct acre_str text;
    return specs_find(specs, job, &text);
}

static void the_last_ones_are_there(void) {
    struct specs *specs = specs_create(COUNT, BYTES);
    for (uint64_t job = 1; job <= 3 * COUNT; job++) {
        specs_put(specs, job, text_of(10));
    }
    for (uint64_t job = 1; job <= 3 * COUNT; job++) {
        acre_test_context("job %d", (int)job);
        CHECK_EQ(has(specs, job), job > 2 * COUNT);
    }
    specs_destroy(specs);
}

static void the_oldest_make_room(void) {
    struct specs *specs = specs_create(COUNT, BYTES);
    for (uint64_t job = 1; job <= 4; job++) {
        specs_put(specs, job, text_of(300));
    }
    CHECK(!has(specs, 1) && has(specs, 2) && has(specs, 4));
    specs_put(specs, 5, text_of(BYTES + 1));
    CHECK(!has(specs, 5)); /* larger than everything */
    specs_put(specs, 6, text_of(BYTES));
    CHECK(has(specs, 6) && !has(specs, 4));
    specs_destroy(specs);
}

/* Arrays have one spec each, so ids jump; what they leave behind must not keep the room. */
static void jumps_leave_nothing_behind(void) {
    static const uint64_t steps[] = {1, COUNT - 1, COUNT, COUNT + 1, 1000};
    for (size_t i = 0; i < ACRE_COUNT(steps); i++) {
        acre_test_context("steps of %d", (int)steps[i]);
        struct specs *specs = specs_create(COUNT, BYTES);
        for (uint64_t turn = 0; turn < 20; turn++) {
            uint64_t job = 1 + turn * steps[i];
            specs_put(specs, job, text_of(BYTES / 4));
            CHECK(has(specs, job));
        }
        specs_destroy(specs);
    }
}

static const struct acre_test tests[] = {
    {"the_last_ones_are_there", the_last_ones_are_there, 0},
    {"the_oldest_make_room", the_oldest_make_room, 0},
    {"jumps_leave_nothing_behind", jumps_leave_nothing_behind, 0},
};

ACRE_TEST_MAIN(tests)
