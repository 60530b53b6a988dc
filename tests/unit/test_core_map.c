/* The map: against plain arrays, with keys that crowd and with keys far apart. */
#include "core/map.h"
#include "core/rand.h"
#include "support/test.h"

enum { KEYS = 500, STEPS = 200000 };

static void check_all(const struct acre_map *map, const uint64_t *keys, const uint32_t *values) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < KEYS; i++) {
        CHECK_EQ(acre_map_get(map, keys[i]), values[i]);
        count += values[i] != ACRE_MAP_NONE;
    }
    CHECK_EQ(map->count, count);
}

static void it_does_what_arrays_do(void) {
    static const uint64_t strides[] = {1, 64, UINT64_C(1) << 32, UINT64_C(0x9E3779B97F4A7C15)};
    for (size_t s = 0; s < ACRE_COUNT(strides); s++) {
        struct acre_map map = {0};
        struct acre_rand rand;
        uint64_t keys[KEYS];
        uint32_t values[KEYS];
        acre_rand_seed(&rand, s);
        for (uint32_t i = 0; i < KEYS; i++) {
            keys[i] = (i + 1) * strides[s];
            values[i] = ACRE_MAP_NONE;
        }
        for (uint32_t step = 0; step < STEPS; step++) {
            uint32_t i = (uint32_t)acre_rand_below(&rand, KEYS);
            if (values[i] != ACRE_MAP_NONE && acre_rand_below(&rand, 2) == 0) {
                acre_map_remove(&map, keys[i]);
                values[i] = ACRE_MAP_NONE;
            } else if (acre_rand_below(&rand, 2) == 0) {
                CHECK_EQ(acre_map_add(&map, keys[i], step), values[i] == ACRE_MAP_NONE);
                values[i] = values[i] == ACRE_MAP_NONE ? step : values[i];
            } else {
                values[i] = step;
                acre_map_put(&map, keys[i], step);
            }
            if (step % 1000 == 0) {
                check_all(&map, keys, values);
            }
        }
        check_all(&map, keys, values);
        acre_map_finish(&map);
        CHECK_U64(acre_map_bytes(&map), 0);
    }
}

static void an_empty_one_has_nothing(void) {
    struct acre_map map = {0};
    CHECK_EQ(acre_map_get(&map, 7), ACRE_MAP_NONE);
    acre_map_put(&map, 7, 1);
    CHECK_EQ(acre_map_get(&map, 0), ACRE_MAP_NONE); /* 0 is no key, though empty slots have it */
    acre_map_finish(&map);
    CHECK_EQ(acre_map_get(&map, 7), ACRE_MAP_NONE);
}

static void a_set_has_each_key_once(void) {
    struct acre_map set = {0};
    CHECK(acre_map_add(&set, 7, 0));
    CHECK(!acre_map_add(&set, 7, 0));
    CHECK(acre_map_add(&set, UINT64_MAX, 0));
    CHECK_EQ(set.count, 2);
    acre_map_finish(&set);
}

/* Emptying costs in proportion to what was put in, so a large map that held little shrinks. */
static void a_map_is_cleared(void) {
    static const struct {
        uint32_t first, then; /* keys put in before the first clear, and before the second */
        bool shrinks;         /* by the second */
    } rows[] = {{0, 0, false},        {1, 1, false},    {40, 1, false},
                {10000, 9000, false}, {10000, 1, true}, {10000, 0, true}};
    for (size_t r = 0; r < ACRE_COUNT(rows); r++) {
        acre_test_context("row %zu", r);
        struct acre_map map = {0};
        uint32_t counts[] = {rows[r].first, rows[r].then};
        size_t bytes[2];
        for (size_t turn = 0; turn < ACRE_COUNT(counts); turn++) {
            for (uint64_t key = 1; key <= counts[turn]; key++) {
                CHECK(acre_map_add(&map, key, (uint32_t)key));
            }
            acre_map_clear(&map);
            CHECK_EQ(map.count, 0);
            CHECK_EQ(acre_map_get(&map, 1), ACRE_MAP_NONE);
            bytes[turn] = acre_map_bytes(&map);
        }
        CHECK_EQ(bytes[1] < bytes[0], rows[r].shrinks);
        acre_map_put(&map, 5, 6);
        CHECK_EQ(acre_map_get(&map, 5), 6);
        acre_map_finish(&map);
    }
}

static const struct acre_test tests[] = {
    {"it_does_what_arrays_do", it_does_what_arrays_do, 0},
    {"an_empty_one_has_nothing", an_empty_one_has_nothing, 0},
    {"a_set_has_each_key_once", a_set_has_each_key_once, 0},
    {"a_map_is_cleared", a_map_is_cleared, 0},
};
ACRE_TEST_MAIN(tests)
