/* compute_math.c - the functions of the dialect against the C library in double precision.
 *
 * How far each may be off is in compute_kernels.h, in units in the last place of the result
 * (ULP): |got - exact| / 2^(exponent of exact - 23), at least the smallest normal number's. */
#include "conformance/compute_suite.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 4096 };

struct function {
    const char *name;
    double (*one)(double);
    double (*two)(double, double);
    double ulps, low, high;
};

static const struct function unary[] = {
#define X(name, ulps, low, high) {#name, name, NULL, ulps, low, high},
    COMPUTE_UNARY(X)
#undef X
};
static const struct function binary[] = {
#define X(name, ulps, low, high) {#name, NULL, name, ulps, low, high},
    COMPUTE_BINARY(X)
#undef X
};
static const struct function unary_double[] = {
#define X(name, ulps, low, high) {#name, name, NULL, ulps, low, high},
    COMPUTE_UNARY_DOUBLE(X)
#undef X
};

/* How many units in the last place of a number with `digits` bits. */
static double ulps_of(double got, double exact, int digits, double smallest) {
    if (isnan(got) || isnan(exact)) {
        return isnan(got) && isnan(exact) ? 0 : HUGE_VAL;
    }
    if (got == exact) {
        return 0;
    }
    double size = fmax(fabs(exact), smallest);
    int exponent;
    frexp(size, &exponent);
    return fabs(got - exact) / ldexp(1, exponent - digits);
}

/* The worst of all items of one function; shows the argument it was at. */
struct worst {
    double ulps, a, b, got, exact;
};

static void note(struct worst *worst, double ulps, double a, double b, double got, double exact) {
    if (!(ulps <= worst->ulps)) {
        *worst = (struct worst){ulps, a, b, got, exact};
    }
}

static void judge(const struct function *function, const struct worst *worst) {
    acre_test_context("%s(%.9g, %.9g) is %.9g, exactly %.9g: %.3g ULP, accepted %g; seed %llu",
                      function->name, worst->a, worst->b, worst->got, worst->exact, worst->ulps,
                      function->ulps, (unsigned long long)kit_choice.seed);
    /* Half a unit is the rounding of the exact answer itself. */
    CHECK(worst->ulps <= function->ulps + 0.5);
    acre_test_context("%s", "");
}

static void math_of_one_float(void) {
    struct kit kit;
    kit_open(&kit);
    enum { COUNT = COMPUTE_UNARY_COUNT };
    static float in[COUNT][N], out[COUNT][N];
    for (size_t f = 0; f < COUNT; f++) {
        kit_random_floats(&kit, in[f], N, unary[f].low, unary[f].high);
        in[f][0] = (float)unary[f].low;
        in[f][1] = (float)unary[f].high;
    }
    struct acre_buffer from = kit_data(&kit, in, sizeof(in));
    struct acre_buffer to = kit_buffer(&kit, ACRE_MEMORY_DEVICE, sizeof(out));
    RUN(&kit, "unary", acre_grid_for(N), ACRE_BUFFER(from), ACRE_BUFFER(to), ACRE_U32(N));
    kit_get(&kit, out, to, sizeof(out));
    for (size_t f = 0; f < COUNT; f++) {
        struct worst worst = {0};
        for (size_t i = 0; i < N; i++) {
            double exact = unary[f].one((double)in[f][i]);
            double got = (double)out[f][i];
            note(&worst, ulps_of(got, exact, FLT_MANT_DIG, (double)FLT_MIN), (double)in[f][i], 0,
                 got, exact);
        }
        judge(&unary[f], &worst);
    }
    kit_free(&kit, from);
    kit_free(&kit, to);
    kit_close(&kit);
}

static void math_of_two_floats(void) {
    struct kit kit;
    kit_open(&kit);
    enum { COUNT = COMPUTE_BINARY_COUNT };
    static float a[COUNT + 2][N], b[COUNT + 2][N], out[COUNT + 2][N];
    static const struct function divide = {.name = "/", .ulps = 2.5};
    static const struct function fused = {.name = "fma", .ulps = 0};
    for (size_t f = 0; f < COUNT + 2; f++) {
        double low = f < COUNT ? binary[f].low : 1;
        double high = f < COUNT ? binary[f].high : 1000;
        kit_random_floats(&kit, a[f], N, low, high);
        kit_random_floats(&kit, b[f], N, low, f == COMPUTE_BINARY_pow ? 5 : high);
    }
    struct acre_buffer da = kit_data(&kit, a, sizeof(a));
    struct acre_buffer db = kit_data(&kit, b, sizeof(b));
    struct acre_buffer to = kit_buffer(&kit, ACRE_MEMORY_DEVICE, sizeof(out));
    RUN(&kit, "binary", acre_grid_for(N), ACRE_BUFFER(da), ACRE_BUFFER(db), ACRE_BUFFER(to),
        ACRE_U32(N));
    kit_get(&kit, out, to, sizeof(out));
    const float *flat = &a[0][0];
    for (size_t f = 0; f < COUNT + 2; f++) {
        struct worst worst = {0};
        const struct function *function = f < COUNT ? &binary[f] : f == COUNT ? &divide : &fused;
        for (size_t i = 0; i < N; i++) {
            double x = (double)a[f][i];
            double y = (double)b[f][i];
            double exact = f < COUNT    ? binary[f].two(x, y)
                           : f == COUNT ? x / y
                                        : (double)fmaf(a[f][i], b[f][i], flat[f * N + i - 1]);
            note(&worst, ulps_of((double)out[f][i], exact, FLT_MANT_DIG, (double)FLT_MIN), x, y,
                 (double)out[f][i], exact);
        }
        judge(function, &worst);
    }
    kit_free(&kit, da);
    kit_free(&kit, db);
    kit_free(&kit, to);
    kit_close(&kit);
}

static void check_doubles(struct kit *kit) {
    enum { COUNT = COMPUTE_UNARY_DOUBLE_COUNT };
    static double in[COUNT][N], out[COUNT][N];
    for (size_t f = 0; f < COUNT; f++) {
        for (size_t i = 0; i < N; i++) {
            double span = unary_double[f].high - unary_double[f].low;
            in[f][i] = unary_double[f].low + span * acre_rand_unit(&kit->rand);
        }
    }
    struct acre_buffer from = kit_data(kit, in, sizeof(in));
    struct acre_buffer to = kit_buffer(kit, ACRE_MEMORY_DEVICE, sizeof(out));
    RUN(kit, "unary_double", acre_grid_for(N), ACRE_BUFFER(from), ACRE_BUFFER(to), ACRE_U32(N));
    kit_get(kit, out, to, sizeof(out));
    for (size_t f = 0; f < COUNT; f++) {
        struct worst worst = {0};
        for (size_t i = 0; i < N; i++) {
            double exact = unary_double[f].one(in[f][i]); /* itself within one */
            note(&worst, ulps_of(out[f][i], exact, DBL_MANT_DIG, DBL_MIN), in[f][i], 0, out[f][i],
                 exact);
        }
        judge(&unary_double[f], &worst);
    }
    kit_free(kit, from);
    kit_free(kit, to);
}

static void math_of_doubles(void) {
    struct kit kit;
    kit_open(&kit);
    if ((kit.facts->capabilities & ACRE_CAN_DOUBLE) == 0) {
        acre_test_skip("%s has no 64-bit floating point", kit.facts->name);
    }
    struct acre_buffer out = kit_buffer(&kit, ACRE_MEMORY_DEVICE, 2 * sizeof(double));
    double x = acre_rand_unit(&kit.rand);
    double got[2];
    RUN(&kit, "doubles", kit_grid(1, 1), ACRE_BUFFER(out), ACRE_F64(x), ACRE_F32(0.25f));
    kit_get(&kit, got, out, sizeof(got));
    CHECK_NEAR(got[0], x * 2 + 0.25, 0); /* times two is exact: one rounding, fused or not */
    CHECK_NEAR(got[1], fma(x, x, -1), 0);
    kit_free(&kit, out);
    check_doubles(&kit);
    kit_close(&kit);
}

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static void math_of_whole_numbers(void) {
    static const uint32_t edges[] = {0, 1, 2, UINT32_MAX, 0x80000000, 0x7fffffff, 1000, 0xfffffc18};
    struct kit kit;
    kit_open(&kit);
    static uint32_t in[N], out[N][10];
    for (size_t i = 0; i < N; i++) {
        /* As floats these stay what they are: no NaN, which might be made another one. */
        in[i] = (uint32_t)acre_rand_next(&kit.rand) >> acre_rand_below(&kit.rand, 32);
        in[i] = isnan(float_of(in[i])) ? 7 : in[i];
    }
    memcpy(in, edges, sizeof(edges));
    in[3] = 0xff000000;
    in[5] = 0x7f000000;
    in[7] = 0xc0000000;
    struct acre_buffer from = kit_data(&kit, in, sizeof(in));
    struct acre_buffer to = kit_buffer(&kit, ACRE_MEMORY_DEVICE, sizeof(out));
    RUN(&kit, "whole", acre_grid_for(N), ACRE_BUFFER(from), ACRE_BUFFER(to), ACRE_U32(N));
    kit_get(&kit, out, to, sizeof(out));
    for (size_t i = 0; i < N; i++) {
        uint32_t a = in[i];
        uint32_t b = in[N - 1 - i];
        int32_t sa = (int32_t)a;
        int32_t sb = (int32_t)b;
        uint32_t expected[10] = {
            (uint32_t)__builtin_popcount(a),
            a != 0 ? (uint32_t)__builtin_clz(a) : 32,
            ACRE_MIN(a, b),
            ACRE_MAX(a, b),
            (uint32_t)ACRE_MIN(sa, sb),
            (uint32_t)ACRE_MAX(sa, sb),
            ACRE_MIN(ACRE_MAX(a, 1000u), 3000000000u),
            (uint32_t)ACRE_MIN(ACRE_MAX(sa, -1000), 1000),
            a,
            bits_of(fminf(fmaxf((float)sa, -1.0f), 1.0f)),
        };
        for (size_t k = 0; k < 10; k++) {
            acre_test_context("item %zu: %#x and %#x, answer %zu", i, a, b, k);
            CHECK_U64(out[i][k], expected[k]);
        }
    }
    kit_free(&kit, from);
    kit_free(&kit, to);
    kit_close(&kit);
}

static const struct acre_test tests[] = {
    TEST(math_of_one_float),
    TEST(math_of_two_floats),
    TEST(math_of_doubles),
    TEST(math_of_whole_numbers),
};
SUITE(compute_math_suite, tests);
