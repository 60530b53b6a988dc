/* test_engine_cu.c - ENG-1: shares of an AMD GPU get compute units that do not overlap. */
#include "engine/cu.h"
#include "support/test.h"

#include "core/rand.h"

#include <stdio.h>
#include <stdlib.h>

static void takes_the_lowest_free_pairs(void) {
    static const struct {
        const char *held[3];
        uint32_t units, milli;
        int result;
        const char *ranges;
    } rows[] = {
        {{NULL}, 304, 1000, 0, "0-303"},
        {{NULL}, 304, 500, 0, "0-151"},
        {{"0-151"}, 304, 500, 0, "152-303"},
        {{"30-59"}, 304, 100, 0, "0-29"},
        {{"20-39"}, 304, 200, 0, "0-19,40-79"},
        {{"0-1", "4-5", "8-9"}, 12, 500, 0, "2-3,6-7,10-11"},
        {{"3"}, 8, 250, 0, "0-1"}, /* one unit takes its pair */
        {{"0"}, 8, 250, 0, "2-3"},
        {{NULL}, 304, 1, 0, "0-1"}, /* never none */
        {{NULL}, 305, 1000, 0, "0-303"},
        {{""}, 304, 500, ACRE_EINVALID, "0"},
        {{"0-151", "152-303"},
         304,
         100,
         ACRE_ENOFIT,
         "30 compute units asked for, but only 0 of 304 are free"},
        {{"0-9"}, 12, 500, ACRE_ENOFIT, "6 compute units asked for, but only 2 of 12 are free"},
        {{NULL}, 1, 500, ACRE_EINVALID, "accepted: 1 to 1000 of 2 to 1024"},
        {{NULL}, 1025, 500, ACRE_EINVALID, "of 1025 compute units"},
        {{NULL}, 304, 0, ACRE_EINVALID, "0 thousandths"},
        {{NULL}, 304, 1001, ACRE_EINVALID, "1001 thousandths"},
        {{"5-3"}, 304, 100, ACRE_EINVALID, "'5-3'"},
        {{"0-304"}, 304, 100, ACRE_EINVALID, "ranges below 304"},
        {{"0-1-2"}, 304, 100, ACRE_EINVALID, "'0-1-2'"},
        {{"a\x1b"}, 304, 100, ACRE_EINVALID, "'a\\x1b'"},
        {{"0-"}, 304, 100, ACRE_EINVALID, "'0-'"},
        {{"0-3,,4"}, 304, 100, ACRE_EINVALID, "'0-3,,4'"},
        {{"99999999999"}, 304, 100, ACRE_EINVALID, "'99999999999'"},
    };
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        char ranges[ACRE_CU_RANGES_TEXT] = "kept";
        struct acre_error err = {0};
        uint32_t held = 0;
        while (held < 3 && rows[i].held[held] != NULL) {
            held++;
        }
        acre_test_context("row %zu: %u of %u", i, rows[i].milli, rows[i].units);
        CHECK_EQ(cu_take(rows[i].held, held, rows[i].units, rows[i].milli, ranges, &err),
                 rows[i].result);
        if (rows[i].result == 0) {
            CHECK_STR(ranges, rows[i].ranges);
        } else {
            CHECK_HAS(err.text, rows[i].ranges);
            CHECK_STR(ranges, "kept");
        }
    }
}

/* Shares that the ledger lets in (sum at most 1000) always get their units, and never shared ones.
 */
static void shares_that_add_up_always_fit(void) {
    enum { SLOTS = 10 };
    static char ranges[SLOTS][ACRE_CU_RANGES_TEXT];
    uint32_t milli[SLOTS] = {0};
    struct acre_rand rand;
    acre_rand_seed(&rand, 7);
    for (uint32_t step = 0; step < 3000; step++) {
        uint32_t slot = (uint32_t)acre_rand_below(&rand, SLOTS), sum = 0, held_count = 0;
        const char *held[SLOTS];
        milli[slot] = 0;
        for (uint32_t i = 0; i < SLOTS; i++) {
            sum += milli[i];
            if (milli[i] > 0) {
                held[held_count++] = ranges[i];
            }
        }
        uint32_t wanted = 100 + (uint32_t)acre_rand_below(&rand, 901);
        if (sum + wanted > 1000) {
            continue;
        }
        acre_test_context("step %u", step);
        REQUIRE_EQ(cu_take(held, held_count, 304, wanted, ranges[slot], NULL), 0);
        milli[slot] = wanted;
        bool taken[304] = {false};
        for (uint32_t i = 0; i < SLOTS; i++) {
            uint32_t units = 0;
            for (char *p = ranges[i]; milli[i] > 0 && *p != '\0'; p += *p == ',') {
                unsigned long first = strtoul(p, &p, 10), last = strtoul(p + 1, &p, 10);
                for (; first <= last; first++, units++) {
                    REQUIRE(first < 304 && !taken[first]);
                    taken[first] = true;
                }
            }
            REQUIRE(milli[i] == 0 || units == 152 * milli[i] / 1000 * 2);
        }
    }
}

static const struct acre_test tests[] = {
    {"takes_the_lowest_free_pairs", takes_the_lowest_free_pairs, 0},
    {"shares_that_add_up_always_fit", shares_that_add_up_always_fit, 0},
};
ACRE_TEST_MAIN(tests)
