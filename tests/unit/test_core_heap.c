/* The heap: known sequences, and random ones against an array that is searched. */
#include "core/heap.h"
#include "core/rand.h"
#include "support/test.h"

enum { ITEMS = 200, STEPS = 100000 };

struct item {
    uint32_t key, id;
};

static bool has_smaller_key(const void *a, const void *b, const void *context) {
    (void)context;
    return ((const struct item *)a)->key < ((const struct item *)b)->key;
}

static const struct acre_heap_kind plain = {sizeof(struct item), has_smaller_key, NULL};

static void items_come_out_in_order(void) {
    static const struct {
        uint32_t count, keys[8], sorted[8];
    } rows[] = {
        {0, {0}, {0}},
        {1, {7}, {7}},
        {2, {2, 1}, {1, 2}},
        {3, {3, 3, 3}, {3, 3, 3}},
        {5, {1, 2, 3, 4, 5}, {1, 2, 3, 4, 5}},
        {5, {5, 4, 3, 2, 1}, {1, 2, 3, 4, 5}},
        {8, {4, 0, 9, 0, UINT32_MAX, 4, 1, 7}, {0, 0, 1, 4, 4, 7, 9, UINT32_MAX}},
    };
    for (size_t r = 0; r < ACRE_COUNT(rows); r++) {
        for (unsigned built = 0; built < 2; built++) {
            acre_test_context("row %zu, %s", r, built ? "built" : "pushed");
            struct item items[8];
            uint32_t count = 0;
            for (uint32_t i = 0; i < rows[r].count; i++) {
                struct item item = {rows[r].keys[i], i};
                if (built) {
                    items[count++] = item;
                } else {
                    acre_heap_push(&plain, items, &count, &item, NULL);
                }
            }
            if (built) {
                acre_heap_build(&plain, items, count, NULL);
            }
            for (uint32_t i = 0; i < rows[r].count; i++) {
                CHECK_EQ(items[0].key, rows[r].sorted[i]);
                acre_heap_remove_first(&plain, items, &count, NULL);
            }
            CHECK_EQ(count, 0);
        }
    }
}

/* A heap of numbers, ordered by what they stand for and found by their positions. */
struct world {
    uint32_t heap[ITEMS], count;
    uint32_t keys[ITEMS], positions[ITEMS];
    bool is_in[ITEMS];
};

static bool stands_before(const void *a, const void *b, const void *context) {
    const struct world *world = context;
    uint32_t x, y;
    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    return world->keys[x] < world->keys[y];
}

static void note_position(const void *item, uint32_t at, void *context) {
    struct world *world = context;
    uint32_t number;
    memcpy(&number, item, sizeof(number));
    world->positions[number] = at;
}

static const struct acre_heap_kind numbers = {sizeof(uint32_t), stands_before, note_position};

static void check_world(const struct world *world) {
    uint32_t count = 0, least = UINT32_MAX;
    for (uint32_t i = 0; i < ITEMS; i++) {
        if (world->is_in[i]) {
            count++;
            least = ACRE_MIN(least, world->keys[i]);
            REQUIRE(world->positions[i] < world->count);
            REQUIRE_EQ(world->heap[world->positions[i]], i);
        }
    }
    REQUIRE_EQ(world->count, count);
    REQUIRE(count == 0 || world->keys[world->heap[0]] == least);
    for (uint32_t at = 1; at < world->count; at++) {
        REQUIRE(world->keys[world->heap[(at - 1) / 2]] <= world->keys[world->heap[at]]);
    }
}

static void change(struct world *world, struct acre_rand *rand, uint32_t key_limit) {
    uint32_t i = (uint32_t)acre_rand_below(rand, ITEMS);
    uint32_t key = (uint32_t)acre_rand_below(rand, key_limit);
    if (!world->is_in[i]) {
        world->keys[i] = key;
        acre_heap_push(&numbers, world->heap, &world->count, &i, world);
        world->is_in[i] = true;
        return;
    }
    switch (acre_rand_below(rand, 4)) {
    case 0:
        acre_heap_remove(&numbers, world->heap, &world->count, world->positions[i], world);
        world->is_in[i] = false;
        break;
    case 1:
        world->is_in[world->heap[0]] = false;
        acre_heap_remove_first(&numbers, world->heap, &world->count, world);
        break;
    case 2:
        world->keys[i] = key;
        acre_heap_replace(&numbers, world->heap, world->count, world->positions[i], &i, world);
        break;
    default: /* all keys at once */
        for (uint32_t n = 0; key % 64 == 0 && n < ITEMS; n++) {
            world->keys[n] = (uint32_t)acre_rand_below(rand, key_limit);
        }
        acre_heap_build(&numbers, world->heap, world->count, world);
        break;
    }
}

static void it_does_what_a_search_does(void) {
    static const uint32_t key_limits[] = {2, 50, UINT32_MAX}; /* many equal, some, none */
    for (size_t k = 0; k < ACRE_COUNT(key_limits); k++) {
        struct world world = {0};
        struct acre_rand rand;
        acre_rand_seed(&rand, k);
        for (uint32_t step = 0; step < STEPS; step++) {
            acre_test_context("keys below %u, step %u", key_limits[k], step);
            change(&world, &rand, key_limits[k]);
            if (step % 16 == 0) {
                check_world(&world);
            }
        }
        check_world(&world);
    }
}

static void items_that_are_equal_come_out_the_same_way_every_time(void) {
    uint32_t first[ITEMS];
    for (unsigned turn = 0; turn < 2; turn++) {
        struct item items[ITEMS];
        uint32_t count = 0;
        for (uint32_t i = 0; i < ITEMS; i++) {
            acre_heap_push(&plain, items, &count, &(struct item){i % 3, i}, NULL);
        }
        for (uint32_t i = 0; i < ITEMS; i++) {
            if (turn == 1) {
                CHECK_EQ(items[0].id, first[i]);
            }
            first[i] = items[0].id;
            acre_heap_remove_first(&plain, items, &count, NULL);
        }
    }
}

static const struct acre_test tests[] = {
    {"items_come_out_in_order", items_come_out_in_order, 0},
    {"it_does_what_a_search_does", it_does_what_a_search_does, 0},
    {"items_that_are_equal_come_out_the_same_way_every_time",
     items_that_are_equal_come_out_the_same_way_every_time, 0},
};
ACRE_TEST_MAIN(tests)
