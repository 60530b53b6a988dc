/* compute_auto.c - the automatic choice: every way gives the same answers; costs are told, and
 * kept. Factors are powers of two, so that a * k + b has one rounding, fused or not: exact. */
#include "conformance/compute_suite.h"

#include <stdio.h>
#include <stdlib.h>

/* A context on the device and one on the CPU. */
struct pair {
    struct kit kit;
    struct acre_compute *compute;
    struct acre_context *cpu;
    struct acre_source source;
    struct acre_auto_options options;
};

static void open_pair(struct pair *pair, const char *kernel, const struct acre_auto_array *arrays,
                      uint32_t array_count) {
    kit_open(&pair->kit);
    struct acre_compute_options how = kit_options();
    how.backends = "cpu";
    OK(acre_compute_open(&how, &pair->compute, ERR));
    OK(acre_context_open(pair->compute, 0, NULL, &pair->cpu, ERR));
    pair->source = (struct acre_source){.text = kit_source(kernel)->text, .name = "batches.acl"};
    pair->options = (struct acre_auto_options){.device = pair->kit.context,
                                               .cpu = pair->cpu,
                                               .source = &pair->source,
                                               .kernel = kernel,
                                               .arrays = arrays,
                                               .array_count = array_count,
                                               .learned = ""};
}

static void close_pair(struct pair *pair) {
    acre_compute_close(pair->compute);
    kit_close(&pair->kit);
}

static const struct acre_auto_array axpy_arrays[] = {{4, 0}, {4, 0}, {0, 4}};
static const uint32_t sizes[] = {1, 7, 256, 1000, 65537, 300000};

struct data {
    float *a, *b, *c, *expected;
};

static struct data make_data(struct kit *kit, uint32_t n) {
    struct data data = {malloc(n * 4), malloc(n * 4), malloc(n * 4), malloc(n * 4)};
    REQUIRE(data.a != NULL && data.b != NULL && data.c != NULL && data.expected != NULL);
    kit_random_floats(kit, data.a, n, -100, 100);
    kit_random_floats(kit, data.b, n, -100, 100);
    for (uint32_t i = 0; i < n; i++) {
        data.c[i] = -1;
        data.expected[i] = data.a[i] * 0.25f + data.b[i];
    }
    return data;
}

static void free_data(struct data *data) {
    free(data->a);
    free(data->b);
    free(data->c);
    free(data->expected);
}

static void ways_all_give_the_same(void) { /* GPU-4 */
    struct pair pair;
    open_pair(&pair, "axpy", axpy_arrays, 3);
    struct acre_auto *automatic = NULL;
    OK(acre_auto_create(&pair.options, &automatic, ERR));
    struct acre_arg k = ACRE_F32(0.25f);
    uint32_t gone[ACRE_WAY_COUNT] = {0};
    for (size_t i = 0; i < ACRE_COUNT(sizes); i++) {
        for (int way = 0; way < ACRE_WAY_COUNT; way++) {
            uint32_t n = sizes[i];
            struct data data = make_data(&pair.kit, n);
            void *arrays[] = {data.a, data.b, data.c};
            struct acre_error *err = ERR;
            int r = acre_auto_run_by(automatic, (enum acre_way)way, n, arrays, &k, 1, err);
            acre_test_context("%s, %u items: %s", acre_way_name((enum acre_way)way), n, err->text);
            CHECK(r == 0 || (r == ACRE_EUNSUPPORTED && err->text[0] != '\0'));
            if (r == 0) {
                CHECK_SAME(data.c, data.expected, n * 4);
                gone[way]++;
            }
            free_data(&data);
        }
    }
    acre_test_context("%s", "");
    CHECK_EQ(gone[ACRE_WAY_LAUNCH], ACRE_COUNT(sizes));
    CHECK_EQ(gone[ACRE_WAY_GRAPH], ACRE_COUNT(sizes));
    CHECK_EQ(gone[ACRE_WAY_CPU], ACRE_COUNT(sizes));
    printf("ring went %u of %zu sizes\n", gone[ACRE_WAY_RING], ACRE_COUNT(sizes));
    acre_auto_destroy(automatic);
    close_pair(&pair);
}

static void choice_learns_costs(void) {
    struct pair pair;
    open_pair(&pair, "axpy", axpy_arrays, 3);
    char learned[256];
    snprintf(learned, sizeof(learned), "%s/learned", kit_choice.scratch);
    pair.options.learned = learned;
    struct acre_arg k = ACRE_F32(0.25f);
    struct acre_auto_cost costs[64];
    for (int round = 0; round < 2; round++) { /* the second knows what the first learned */
        struct acre_auto *automatic = NULL;
        OK(acre_auto_create(&pair.options, &automatic, ERR));
        uint32_t count = acre_auto_costs(automatic, costs, 64);
        CHECK_EQ(count > 0, round == 1);
        for (uint32_t i = 0; i < 60; i++) {
            uint32_t n = sizes[i % 4];
            struct data data = make_data(&pair.kit, n);
            void *arrays[] = {data.a, data.b, data.c};
            enum acre_way way = ACRE_WAY_COUNT;
            OK(acre_auto_run(automatic, n, arrays, &k, 1, &way, ERR));
            CHECK(way < ACRE_WAY_COUNT);
            CHECK_SAME(data.c, data.expected, n * 4);
            free_data(&data);
        }
        count = acre_auto_costs(automatic, costs, 64);
        CHECK(count >= 3 && count <= 64);
        uint64_t calls = 0;
        for (uint32_t i = 0; i < count; i++) {
            CHECK(costs[i].chosen < ACRE_WAY_COUNT);
            CHECK(i == 0 || costs[i].items > costs[i - 1].items);
            for (int way = 0; way < ACRE_WAY_COUNT; way++) {
                calls += costs[i].calls[way];
                CHECK(costs[i].calls[way] == 0 || costs[i].us[way] > 0);
            }
        }
        CHECK(calls >= 60);
        acre_auto_destroy(automatic);
    }
    acre_auto_destroy(NULL);
    close_pair(&pair);
}

static void choice_with_one_side_only(void) {
    struct pair pair;
    open_pair(&pair, "axpy", axpy_arrays, 3);
    struct acre_arg k = ACRE_F32(0.25f);
    for (int side = 0; side < 2; side++) {
        struct acre_auto_options options = pair.options;
        options.device = side == 0 ? NULL : options.device;
        options.cpu = side == 1 ? NULL : options.cpu;
        struct acre_auto *automatic = NULL;
        OK(acre_auto_create(&options, &automatic, ERR));
        for (uint32_t i = 0; i < 10; i++) {
            struct data data = make_data(&pair.kit, 1000);
            void *arrays[] = {data.a, data.b, data.c};
            enum acre_way way = ACRE_WAY_COUNT;
            OK(acre_auto_run(automatic, 1000, arrays, &k, 1, &way, ERR));
            CHECK_EQ(way == ACRE_WAY_CPU, side == 0);
            CHECK_SAME(data.c, data.expected, 4000);
            free_data(&data);
        }
        struct data data = make_data(&pair.kit, 10);
        void *arrays[] = {data.a, data.b, data.c};
        enum acre_way missing = side == 0 ? ACRE_WAY_LAUNCH : ACRE_WAY_CPU;
        FAILS(acre_auto_run_by(automatic, missing, 10, arrays, &k, 1, ERR), ACRE_EUNSUPPORTED, "");
        free_data(&data);
        acre_auto_destroy(automatic);
    }
    close_pair(&pair);
}

static void choice_in_place_and_of_nothing(void) {
    static const struct acre_auto_array arrays[] = {{4, 4}};
    struct pair pair;
    open_pair(&pair, "in_place", arrays, 1);
    struct acre_auto *automatic = NULL;
    OK(acre_auto_create(&pair.options, &automatic, ERR));
    struct acre_arg more = ACRE_U32(9);
    static uint32_t data[5000], expected[5000];
    void *at = data;
    for (int way = 0; way < ACRE_WAY_COUNT; way++) {
        kit_random(&pair.kit, data, sizeof(data));
        for (size_t i = 0; i < 5000; i++) {
            expected[i] = data[i] * 5 + 9;
        }
        int r = acre_auto_run_by(automatic, (enum acre_way)way, 5000, &at, &more, 1, ERR);
        acre_test_context("%s", acre_way_name((enum acre_way)way));
        CHECK(r == 0 || r == ACRE_EUNSUPPORTED);
        if (r == 0) {
            CHECK_SAME(data, expected, sizeof(data));
        }
    }
    acre_test_context("%s", "");
    memcpy(expected, data, sizeof(data));
    OK(acre_auto_run(automatic, 0, &at, &more, 1, NULL, ERR));
    CHECK_SAME(data, expected, sizeof(data));
    acre_auto_destroy(automatic);
    close_pair(&pair);
}

static void choice_bad_input_is_refused(void) {
    static const struct acre_auto_array unequal[] = {{4, 8}, {4, 0}, {0, 4}};
    struct pair pair;
    open_pair(&pair, "axpy", axpy_arrays, 3);
    struct acre_auto *automatic = NULL;
    struct acre_auto_options options = pair.options;
    options.kernel = "nobody";
    FAILS(acre_auto_create(&options, &automatic, ERR), ACRE_ENOTFOUND, "nobody", "axpy");
    options = pair.options;
    options.arrays = unequal;
    CHECK_EQ(acre_auto_create(&options, &automatic, ERR), ACRE_EINVALID);
    options = pair.options;
    options.device = NULL;
    options.cpu = NULL;
    CHECK_EQ(acre_auto_create(&options, &automatic, ERR), ACRE_EINVALID);
    CHECK(automatic == NULL);
    OK(acre_auto_create(&pair.options, &automatic, ERR));
    struct data data = make_data(&pair.kit, 100);
    void *arrays[] = {data.a, data.b, data.c};
    struct acre_arg wrong = ACRE_U32(1);
    FAILS(acre_auto_run(automatic, 100, arrays, &wrong, 1, NULL, ERR), ACRE_EINVALID, "axpy");
    FAILS(acre_auto_run(automatic, 100, arrays, &wrong, 0, NULL, ERR), ACRE_EINVALID, "axpy");
    struct acre_arg k = ACRE_F32(0.25f);
    OK(acre_auto_run(automatic, 100, arrays, &k, 1, NULL, ERR));
    CHECK_SAME(data.c, data.expected, 400);
    free_data(&data);
    acre_auto_destroy(automatic);
    CHECK_STR(acre_way_name(ACRE_WAY_RING), "ring");
    CHECK_STR(acre_way_name(ACRE_WAY_GRAPH), "graph");
    CHECK_STR(acre_way_name(ACRE_WAY_LAUNCH), "launch");
    CHECK_STR(acre_way_name(ACRE_WAY_CPU), "cpu");
    close_pair(&pair);
}

static const struct acre_test tests[] = {
    TEST(ways_all_give_the_same),      TEST(choice_learns_costs),
    TEST(choice_with_one_side_only),   TEST(choice_in_place_and_of_nothing),
    TEST(choice_bad_input_is_refused),
};
SUITE(compute_auto_suite, tests);
