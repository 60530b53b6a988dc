/* compute_atomic.c - atomics of global and local memory: what many write at once adds up. Whole
 * numbers exactly; sums of floats to the rounding of any order. */
#include "conformance/compute_suite.h"

#include <math.h>
#include <stdlib.h>

enum { N = 50000 };
static uint32_t data[N], back[N];

static void atomics_count_histograms(void) {
    static const char *const kernels[] = {"histogram", "histogram_local"};
    struct kit kit;
    kit_open(&kit);
    uint32_t expected[64] = {0};
    uint32_t bins[64];
    kit_random(&kit, data, sizeof(data));
    for (size_t i = 0; i < N; i++) {
        expected[data[i] % 64]++;
    }
    struct acre_buffer in = kit_data(&kit, data, sizeof(data));
    struct acre_buffer out = kit_buffer(&kit, ACRE_MEMORY_DEVICE, sizeof(bins));
    for (size_t k = 0; k < ACRE_COUNT(kernels); k++) {
        acre_test_context("%s", kernels[k]);
        OK(acre_fill(kit.stream, out, 0, sizeof(bins), 0, 4, ERR));
        RUN(&kit, kernels[k], acre_grid_for(N), ACRE_BUFFER(in), ACRE_BUFFER(out), ACRE_U32(N));
        kit_get(&kit, bins, out, sizeof(bins));
        CHECK_SAME(bins, expected, sizeof(expected));
    }
    kit_free(&kit, in);
    kit_free(&kit, out);
    kit_close(&kit);
}

static void atomics_find_extremes(void) {
    struct kit kit;
    kit_open(&kit);
    int32_t expected[3] = {INT32_MAX, INT32_MIN, 0};
    uint32_t expected_bits[6] = {UINT32_MAX, 0, UINT32_MAX, 0, 0, 0};
    int32_t got[3] = {INT32_MAX, INT32_MIN, 0};
    uint32_t got_bits[6];
    kit_random(&kit, data, sizeof(data));
    for (size_t i = 0; i < N; i++) {
        data[i] |= 0x10; /* bits that and/or can keep */
        data[i] &= ~0x20u;
        int32_t value = (int32_t)data[i];
        expected[0] = ACRE_MIN(expected[0], value);
        expected[1] = ACRE_MAX(expected[1], value);
        expected[2] = (int32_t)((uint32_t)expected[2] + data[i]);
        expected_bits[0] = ACRE_MIN(expected_bits[0], data[i]);
        expected_bits[1] = ACRE_MAX(expected_bits[1], data[i]);
        expected_bits[2] &= data[i];
        expected_bits[3] |= data[i];
        expected_bits[4] ^= data[i];
        expected_bits[5] -= data[i];
    }
    memcpy(got_bits, (uint32_t[6]){UINT32_MAX, 0, UINT32_MAX, 0, 0, 0}, sizeof(got_bits));
    struct acre_buffer in = kit_data(&kit, data, sizeof(data));
    struct acre_buffer a = kit_data(&kit, got, sizeof(got));
    struct acre_buffer b = kit_data(&kit, got_bits, sizeof(got_bits));
    RUN(&kit, "extremes", acre_grid_for(N), ACRE_BUFFER(in), ACRE_BUFFER(a), ACRE_U32(N));
    RUN(&kit, "bits", acre_grid_for(N), ACRE_BUFFER(in), ACRE_BUFFER(b), ACRE_U32(N));
    kit_get(&kit, got, a, sizeof(got));
    kit_get(&kit, got_bits, b, sizeof(got_bits));
    CHECK_SAME(got, expected, sizeof(expected));
    CHECK_SAME(got_bits, expected_bits, sizeof(expected_bits));
    kit_free(&kit, in);
    kit_free(&kit, a);
    kit_free(&kit, b);
    kit_close(&kit);
}

static int by_value(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* All that was put in comes out once: what was there first, and all but the last. */
static void atomics_exchange_loses_nothing(void) {
    struct kit kit;
    kit_open(&kit);
    static uint32_t all[N + 1];
    uint32_t first = 0xabcd0123;
    kit_random(&kit, data, sizeof(data));
    struct acre_buffer in = kit_data(&kit, data, sizeof(data));
    struct acre_buffer slot = kit_data(&kit, &first, sizeof(first));
    struct acre_buffer got = kit_buffer(&kit, ACRE_MEMORY_DEVICE, sizeof(data));
    RUN(&kit, "exchange", acre_grid_for(N), ACRE_BUFFER(in), ACRE_BUFFER(slot), ACRE_BUFFER(got),
        ACRE_U32(N));
    kit_get(&kit, all, got, sizeof(data));
    kit_get(&kit, &all[N], slot, sizeof(all[N]));
    static uint32_t expected[N + 1];
    memcpy(expected, data, sizeof(data));
    expected[N] = first;
    qsort(all, N + 1, sizeof(all[0]), by_value);
    qsort(expected, N + 1, sizeof(expected[0]), by_value);
    CHECK_SAME(all, expected, sizeof(expected));
    kit_free(&kit, in);
    kit_free(&kit, slot);
    kit_free(&kit, got);
    kit_close(&kit);
}

static void atomics_compare_adds_up(void) {
    struct kit kit;
    kit_open(&kit);
    enum { FEW = 5000 }; /* every one of them may have to try again */
    uint32_t sum = 17;
    uint32_t expected = sum;
    kit_random(&kit, data, sizeof(data));
    for (size_t i = 0; i < FEW; i++) {
        expected += data[i];
    }
    struct acre_buffer in = kit_data(&kit, data, sizeof(data));
    struct acre_buffer out = kit_data(&kit, &sum, sizeof(sum));
    RUN(&kit, "compare", acre_grid_for(FEW), ACRE_BUFFER(in), ACRE_BUFFER(out), ACRE_U32(FEW));
    kit_get(&kit, &sum, out, sizeof(sum));
    CHECK_U64(sum, expected);
    kit_free(&kit, in);
    kit_free(&kit, out);
    kit_close(&kit);
}

static void atomics_give_each_ticket_once(void) {
    struct kit kit;
    kit_open(&kit);
    uint32_t next = 0;
    struct acre_buffer counter = kit_data(&kit, &next, sizeof(next));
    struct acre_buffer owners = kit_buffer(&kit, ACRE_MEMORY_DEVICE, sizeof(back));
    OK(acre_fill(kit.stream, owners, 0, sizeof(back), UINT32_MAX, 4, ERR));
    RUN(&kit, "tickets", acre_grid_for(N), ACRE_BUFFER(counter), ACRE_BUFFER(owners), ACRE_U32(N));
    kit_get(&kit, back, owners, sizeof(back));
    kit_get(&kit, &next, counter, sizeof(next));
    CHECK_U64(next, N);
    qsort(back, N, sizeof(back[0]), by_value);
    for (uint32_t i = 0; i < N; i++) {
        REQUIRE_EQ(back[i], i);
    }
    kit_free(&kit, counter);
    kit_free(&kit, owners);
    kit_close(&kit);
}

static void atomics_add_floats(void) {
    struct kit kit;
    kit_open(&kit);
    static float reals[N];
    float sum = 0;
    double exact = 0;
    kit_random_floats(&kit, reals, N, 0, 1);
    for (size_t i = 0; i < N; i++) {
        exact += (double)reals[i];
    }
    struct acre_buffer in = kit_data(&kit, reals, sizeof(reals));
    struct acre_buffer out = kit_data(&kit, &sum, sizeof(sum));
    RUN(&kit, "float_sum", acre_grid_for(N), ACRE_BUFFER(in), ACRE_BUFFER(out), ACRE_U32(N));
    kit_get(&kit, &sum, out, sizeof(sum));
    /* N roundings of at most 2^-24 of the sum each, in any order. */
    CHECK_NEAR((double)sum, exact, exact * N * ldexp(1, -24));
    kit_free(&kit, in);
    kit_free(&kit, out);
    kit_close(&kit);
}

static const struct acre_test tests[] = {
    TEST(atomics_count_histograms),       TEST(atomics_find_extremes),
    TEST(atomics_exchange_loses_nothing), TEST(atomics_compare_adds_up),
    TEST(atomics_give_each_ticket_once),  TEST(atomics_add_floats),
};
SUITE(compute_atomic_suite, tests);
