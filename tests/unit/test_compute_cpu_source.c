/* Portable kernels on the CPU: the words of the dialect, barriers, messages, modules (GPU-1). */
#include "core/rand.h"
#include "support/cpu_rig.h"
#include "support/test.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

static const struct backend *const table = &backend_cpu;

/* A rig, a program and one stream on word 0. */
struct bench {
    struct cpu_rig rig;
    struct cpu_rig_program program;
    uint64_t stream, value;
};

static void bench_init(struct bench *bench, const char *text) {
    *bench = (struct bench){0};
    cpu_rig_init(&bench->rig);
    bench->stream = cpu_rig_stream(&bench->rig, 0);
    int r = cpu_rig_build(&bench->rig, "test.k", text, "", &bench->program);
    if (r < 0) {
        acre_test_context("%s\n%s", bench->program.err.text, bench->program.log);
        REQUIRE_EQ(r, 0);
    }
    CHECK_STR(bench->program.log, "");
}

static void bench_finish(struct bench *bench) {
    table->unload(bench->rig.seat, bench->program.module);
    cpu_rig_finish(&bench->rig);
}

/* Launch and wait. Values are all of 4 bytes. */
static void bench_run(struct bench *bench, const char *name, struct acre_grid grid,
                      const struct native_region *buffers, uint32_t buffer_count,
                      const uint32_t *values, uint32_t value_count) {
    struct native_arg args[16];
    _Alignas(16) uint8_t extra[256] = {0};
    uint32_t count = 0;
    for (uint32_t i = 0; i < buffer_count; i++) {
        args[count++] = cpu_rig_buffer(&buffers[i], 0);
    }
    for (uint32_t i = 0; i < value_count; i++) {
        memcpy(extra + i * 16, &values[i], 4);
        args[count++] =
            (struct native_arg){.kind = ACRE_NATIVE_VALUE, .bytes = 4, .region = i * 16};
    }
    struct native_launch launch = {.kernel =
                                       cpu_rig_kernel(&bench->rig, bench->program.module, name),
                                   .grid = grid,
                                   .args = args,
                                   .arg_count = count,
                                   .extra = extra,
                                   .extra_bytes = value_count * 16};
    struct acre_error err;
    cpu_rig_require(table->launch(bench->rig.seat, bench->stream, &launch, &err), &err);
    cpu_rig_sync(&bench->rig, bench->stream, 0, ++bench->value);
}

static void *host(const struct native_region *region) {
    return (void *)(uintptr_t)region->address;
}

/* --- ids ------------------------------------------------------------------------------------- */

/* Three ways to the same, so that rows, groups and fibers each find every item once. */
static const char ids[] =
    "kernel void rows(global uint *out) {\n"
    "    ulong i = global_id(0) + global_size(0) * (global_id(1) + global_size(1) * "
    "global_id(2));\n"
    "    out[i] += (uint)(global_id(0) + 1000 * global_id(1) + 1000000 * global_id(2)) + 1;\n"
    "}\n"
    "kernel void groups(global uint *out) {\n"
    "    ulong x = group_id(0) * local_size(0) + local_id(0);\n"
    "    ulong y = group_id(1) * local_size(1) + local_id(1);\n"
    "    ulong z = group_id(2) * local_size(2) + local_id(2);\n"
    "    ulong i = x + group_count(0) * local_size(0) * (y + group_count(1) * local_size(1) * z);\n"
    "    if (x == global_id(0) && y == global_id(1) && z == global_id(2)) {\n"
    "        out[i] += (uint)(x + 1000 * y + 1000000 * z) + 1;\n"
    "    }\n"
    "}\n"
    "kernel void fibers(global uint *out) {\n"
    "    ulong x = group_id(0) * local_size(0) + local_id(0);\n"
    "    ulong y = group_id(1) * local_size(1) + local_id(1);\n"
    "    ulong z = group_id(2) * local_size(2) + local_id(2);\n"
    "    barrier();\n"
    "    ulong i = x + global_size(0) * (y + global_size(1) * z);\n"
    "    if (x == global_id(0) && y == global_id(1) && z == global_id(2)) {\n"
    "        out[i] += (uint)(x + 1000 * y + 1000000 * z) + 1;\n"
    "    }\n"
    "}\n"
    "kernel void ints(global uint *out) {\n"
    "    int x = (int)global_id(0), y = (int)global_id(1), z = (int)global_id(2);\n"
    "    int i = x + (int)global_size(0) * (y + (int)global_size(1) * z);\n"
    "    out[i] += (uint)(x + 1000 * y + 1000000 * z) + 1;\n"
    "}\n";

static void items_know_where_they_are(void) {
    static const char *const names[] = {"rows", "groups", "fibers", "ints"};
    static const struct acre_grid grids[] = {
        {{1, 1, 1}, {1, 1, 1}},   {{1, 1, 1}, {17, 1, 1}},   {{9, 1, 1}, {64, 1, 1}},
        {{3, 5, 2}, {4, 3, 2}},   {{1, 7, 1}, {1, 128, 1}},  {{2, 2, 9}, {1, 1, 64}},
        {{300, 3, 1}, {1, 1, 1}}, {{2, 1, 1}, {1024, 1, 1}}, {{40, 20, 1}, {16, 16, 1}},
    };
    struct bench bench;
    bench_init(&bench, ids);
    enum { MAX = 40 * 20 * 256 };
    struct native_region out = cpu_rig_region(&bench.rig, MAX * 4);
    for (size_t i = 0; i < ACRE_COUNT(grids) * ACRE_COUNT(names); i++) {
        const char *name = names[i % ACRE_COUNT(names)];
        const struct acre_grid *grid = &grids[i / ACRE_COUNT(names)];
        acre_test_context("%s, grid %zu", name, i / ACRE_COUNT(names));
        memset(host(&out), 0, MAX * 4);
        bench_run(&bench, name, *grid, &out, 1, NULL, 0);
        uint32_t size[3];
        for (uint32_t d = 0; d < 3; d++) {
            size[d] = grid->groups[d] * grid->group[d];
        }
        uint32_t wrong = 0;
        for (uint32_t at = 0; at < MAX; at++) {
            uint32_t x = at % size[0];
            uint32_t y = at / size[0] % size[1];
            uint32_t z = at / size[0] / size[1];
            uint32_t want = z < size[2] ? x + 1000 * y + 1000000 * z + 1 : 0;
            wrong += ((uint32_t *)host(&out))[at] != want;
        }
        CHECK_EQ(wrong, 0);
    }
    bench_finish(&bench);
}

/* --- local memory and barriers --------------------------------------------------------------- */

static const char sums[] =
    "#define GROUP 256\n"
    "#define TOGETHER barrier()\n"
    "float pair(local float *partial, ulong a, ulong b) {\n"
    "    local const float *p = partial;\n"
    "    return p[a] + p[b];\n"
    "}\n"
    "kernel void sum(global const float *in, global float *out, uint n) {\n"
    "    local float partial[GROUP];\n"
    "    ulong me = local_id(0);\n"
    "    partial[me] = global_id(0) < n ? in[global_id(0)] : 0.0f;\n"
    "    TOGETHER;\n"
    "    for (uint half = GROUP / 2; half > 0; half /= 2) {\n"
    "        if (me < half) { partial[me] = pair(partial, me, me + half); }\n"
    "        TOGETHER;\n"
    "    }\n"
    "    if (me == 0) { out[group_id(0)] = partial[0]; }\n"
    "}\n";

static void groups_meet_at_barriers(void) {
    enum { GROUPS = 100, N = GROUPS * 256 - 77 };
    struct bench bench;
    bench_init(&bench, sums);
    struct native_region buffers[2] = {cpu_rig_region(&bench.rig, GROUPS * 1024),
                                       cpu_rig_region(&bench.rig, 4096)};
    float *in = host(&buffers[0]);
    for (uint32_t i = 0; i < GROUPS * 256; i++) {
        in[i] = (float)(i % 97);
    }
    for (uint32_t round = 0; round < 3; round++) {
        bench_run(&bench, "sum", (struct acre_grid){{GROUPS, 1, 1}, {256, 1, 1}}, buffers, 2,
                  &(uint32_t){N}, 1);
        for (uint32_t g = 0; g < GROUPS; g++) {
            float want = 0;
            for (uint32_t i = g * 256; i < (g + 1) * 256 && i < N; i++) {
                want += in[i];
            }
            CHECK_NEAR((double)((float *)host(&buffers[1]))[g], (double)want, 0.0);
        }
    }
    bench_finish(&bench);
}

/* An item that has ended is not waited for; the others' barriers still hold. */
static void items_may_end_before_others(void) {
    struct bench bench;
    bench_init(&bench, "kernel void ends(global uint *out) {\n"
                       "    local uint last;\n"
                       "    ulong me = local_id(0);\n"
                       "    for (uint i = 0; i < 64; i++) {\n"
                       "        if (i == me) { last = i; }\n"
                       "        barrier();\n"
                       "        out[me] += last;\n"
                       "        barrier();\n"
                       "        if (i == me) { return; }\n"
                       "    }\n"
                       "}\n");
    struct native_region out = cpu_rig_region(&bench.rig, 4096);
    bench_run(&bench, "ends", (struct acre_grid){{1, 1, 1}, {64, 1, 1}}, &out, 1, NULL, 0);
    for (uint32_t i = 0; i < 64; i++) {
        CHECK_EQ(((uint32_t *)host(&out))[i], i * (i + 1) / 2);
    }
    bench_finish(&bench);
}

/* Doubles, calls of the library and large frames survive the switches. */
static void fibers_keep_what_is_theirs(void) {
    struct bench bench;
    bench_init(&bench, "kernel void keep(global double *out) {\n"
                       "    double mine[64];\n"
                       "    double x = (double)local_id(0), y = sin(x);\n"
                       "    for (int i = 0; i < 64; i++) { mine[i] = x * i; }\n"
                       "    barrier();\n"
                       "    double s = y;\n"
                       "    for (int i = 0; i < 64; i++) { s += mine[i]; barrier(); }\n"
                       "    out[local_id(0)] = s - sin(x);\n"
                       "}\n");
    struct native_region out = cpu_rig_region(&bench.rig, 8192);
    bench_run(&bench, "keep", (struct acre_grid){{1, 1, 1}, {1024, 1, 1}}, &out, 1, NULL, 0);
    for (uint32_t i = 0; i < 1024; i++) {
        CHECK_NEAR(((double *)host(&out))[i], i * 2016.0, 1e-6);
    }
    bench_finish(&bench);
}

/* As in the languages of GPUs, whatever the processor makes of a plain char. */
static void chars_have_a_sign(void) {
    struct bench bench;
    bench_init(&bench, "kernel void sign(global const char *in, global int *out) {\n"
                       "    out[global_id(0)] = in[global_id(0)];\n"
                       "}\n");
    struct native_region buffers[] = {cpu_rig_region(&bench.rig, 256),
                                      cpu_rig_region(&bench.rig, 1024)};
    for (int i = 0; i < 256; i++) {
        ((unsigned char *)host(&buffers[0]))[i] = (unsigned char)i;
    }
    bench_run(&bench, "sign", (struct acre_grid){{1, 1, 1}, {256, 1, 1}}, buffers, 2, NULL, 0);
    for (int i = 0; i < 256; i++) {
        CHECK_EQ(((int32_t *)host(&buffers[1]))[i], i < 128 ? i : i - 256);
    }
    bench_finish(&bench);
}

/* --- words ----------------------------------------------------------------------------------- */

static void atomics_lose_nothing(void) {
    struct bench bench;
    bench_init(&bench,
               "kernel void count(global uint *u, global int *i, global float *f) {\n"
               "    uint me = (uint)global_id(0);\n"
               "    atomic_add(&u[0], 1u); atomic_sub(&u[1], 1u);\n"
               "    atomic_min(&i[0], -(int)me); atomic_max(&i[1], (int)me);\n"
               "    atomic_or(&u[2], 1u << me % 32); atomic_and(&u[3], ~(1u << me % 32));\n"
               "    atomic_xor(&u[4], me);\n"
               "    uint old = u[5];\n"
               "    while (true) {\n"
               "        uint seen = atomic_compare(&u[5], old, old + 2);\n"
               "        if (seen == old) { break; }\n"
               "        old = seen;\n"
               "    }\n"
               "    u[8 + me] = atomic_exchange(&u[6], me + 1);\n"
               "    atomic_add_float(&f[0], 0.5f);\n"
               "}\n"
               "kernel void tally(global const uint *in, global uint *out) {\n"
               "    local uint bins[8];\n"
               "    if (local_id(0) < 8) { bins[local_id(0)] = 0; }\n"
               "    barrier();\n"
               "    atomic_add(&bins[in[global_id(0)] % 8], 1u);\n"
               "    barrier();\n"
               "    if (local_id(0) < 8) { atomic_add(&out[local_id(0)], bins[local_id(0)]); }\n"
               "}\n");
    enum { N = 64 * 1024 };
    struct native_region buffers[3] = {cpu_rig_region(&bench.rig, N * 4 + 4096),
                                       cpu_rig_region(&bench.rig, 4096),
                                       cpu_rig_region(&bench.rig, 4096)};
    uint32_t *u = host(&buffers[0]);
    const int32_t *i = host(&buffers[1]);
    u[3] = UINT32_MAX;
    struct acre_grid grid = {{N / 64, 1, 1}, {64, 1, 1}};
    bench_run(&bench, "count", grid, buffers, 3, NULL, 0);
    CHECK_EQ(u[0], N);
    CHECK_EQ(u[1], (uint32_t)-N);
    CHECK_EQ(u[2], UINT32_MAX);
    CHECK_EQ(u[3], 0);
    CHECK_EQ(u[4], 0);
    CHECK_EQ(u[5], 2 * N);
    CHECK_EQ(i[0], -(N - 1));
    CHECK_EQ(i[1], N - 1);
    CHECK_NEAR((double)*(float *)host(&buffers[2]), N / 2, 0);
    uint64_t all = u[6]; /* each value was put in once, and taken out once or is there */
    for (uint32_t k = 0; k < N; k++) {
        all += u[8 + k];
        u[8 + k] = k * 7;
    }
    CHECK_U64(all, (uint64_t)N * (N + 1) / 2);
    memset(host(&buffers[2]), 0, 4096);
    struct native_region pair[2] = {buffers[0], buffers[2]};
    memset(u, 0, 32);
    bench_run(&bench, "tally", grid, pair, 2, NULL, 0);
    uint32_t counted = 0;
    for (uint32_t k = 0; k < 8; k++) {
        counted += ((uint32_t *)host(&buffers[2]))[k];
    }
    CHECK_EQ(counted, N);
    bench_finish(&bench);
}

static void words_mean_what_they_say(void) {
    struct bench bench;
    bench_init(&bench,
               "constant float powers[3] = { 1.0f, 10.0f, 100.0f };\n"
               "inline float twice(float x) { return 2 * x; }\n"
               "kernel void words(global uint *u, global float *f, global double *d) {\n"
               "    u[0] = popcount(0xf0fu); u[1] = clz(1u); u[2] = clz(0u);\n"
               "    u[3] = (uint)clz(1ul); u[4] = (uint)popcount(~0ul);\n"
               "    u[5] = as_uint(1.0f); u[6] = min(3u, 2u); u[7] = max(3u, 2u);\n"
               "    u[8] = clamp(9u, 1u, 5u); u[9] = (uint)min(-1, 1);\n"
               "    u[10] = sizeof(ulong) * 1000 + sizeof(uint) * 100 + sizeof(ushort) * 10\n"
               "        + sizeof(uchar);\n"
               "    u[11] = sizeof(sqrt(1.0f)); u[12] = sizeof(sqrt(1.0));\n"
               "    u[13] = (uint)(max(min(-5, 3), clamp(-9, -7, 7)) + 100);\n"
               "    f[0] = as_float(0x40490fdbu); f[1] = sqrt(2.0f); f[2] = pow(2.0f, 10.0f);\n"
               "    f[3] = fma(2.0f, 3.0f, 4.0f); f[4] = twice(powers[2]); f[5] = fabs(-1.5f);\n"
               "    f[6] = clamp(0.5f, 1.0f, 2.0f); f[7] = atan2(1.0f, 1.0f);\n"
               "    f[8] = fmin(1.0f, 2.0f) + floor(2.7f);\n"
               "    float4 v = { 1, 2, 3, 4 }; f[9] = v.x + v.w;\n"
               "    d[0] = sin(1.0); d[1] = exp(1.0); d[2] = min(1.5, 2.5);\n"
               "}\n");
    static const uint32_t want[] = {8, 31, 32,         63,   64, 0x3f800000, 2,
                                    3, 5,  UINT32_MAX, 8421, 4,  8,          95};
    static const float floats[] = {3.14159274f, 1.41421356f, 1024,         10, 200,
                                   1.5f,        1,           0.785398163f, 3,  5};
    static const double doubles[] = {0.8414709848078965, 2.718281828459045, 1.5};
    struct native_region buffers[3] = {cpu_rig_region(&bench.rig, 4096),
                                       cpu_rig_region(&bench.rig, 4096),
                                       cpu_rig_region(&bench.rig, 4096)};
    bench_run(&bench, "words", (struct acre_grid){{1, 1, 1}, {1, 1, 1}}, buffers, 3, NULL, 0);
    for (size_t i = 0; i < ACRE_COUNT(want); i++) {
        acre_test_context("u[%zu]", i);
        CHECK_U64(((uint32_t *)host(&buffers[0]))[i], want[i]);
    }
    for (size_t i = 0; i < ACRE_COUNT(floats); i++) {
        acre_test_context("f[%zu]", i);
        CHECK_NEAR((double)((float *)host(&buffers[1]))[i], (double)floats[i], 1e-6);
    }
    for (size_t i = 0; i < ACRE_COUNT(doubles); i++) {
        acre_test_context("d[%zu]", i);
        CHECK_NEAR(((double *)host(&buffers[2]))[i], doubles[i], 1e-15);
    }
    bench_finish(&bench);
}

/* Every kind of value arrives; a struct and a vector too; no parameter is fine. */
static void values_arrive(void) {
    struct bench bench;
    bench_init(&bench,
               "struct box { int a; double b; };\n"
               "kernel void nothing(void) { }\n"
               "kernel void none() { }\n"
               "kernel void values(global double *out, char a, uchar b, short c, ushort d, int e,\n"
               "                   uint f, long g, ulong h, float i, double j, struct box k,\n"
               "                   float4 l) {\n"
               "    out[0] = a; out[1] = b; out[2] = c; out[3] = d; out[4] = e; out[5] = f;\n"
               "    out[6] = (double)g; out[7] = (double)h; out[8] = i; out[9] = j;\n"
               "    out[10] = k.a; out[11] = k.b; out[12] = l.x; out[13] = l.w;\n"
               "}\n");
    struct native_region out = cpu_rig_region(&bench.rig, 4096);
    bench_run(&bench, "nothing", (struct acre_grid){{1, 1, 1}, {1, 1, 1}}, NULL, 0, NULL, 0);
    bench_run(&bench, "none", (struct acre_grid){{3, 1, 1}, {5, 1, 1}}, NULL, 0, NULL, 0);
    struct box {
        int a;
        double b;
    } box = {-11, 12.5};
    const int8_t a = -1;
    const uint8_t b = 200;
    const int16_t c = -300;
    const uint16_t d = 40000;
    const int32_t e = -5;
    const uint32_t f = 4000000000;
    const int64_t g = -7;
    const uint64_t h = 8;
    const float i = 9.5f;
    const double j = 10.25;
    const float l[4] = {1, 2, 3, 4};
    const struct {
        const void *at;
        uint32_t bytes;
    } values[] = {{&a, 1}, {&b, 1}, {&c, 2}, {&d, 2}, {&e, 4},    {&f, 4},
                  {&g, 8}, {&h, 8}, {&i, 4}, {&j, 8}, {&box, 16}, {l, 16}};
    _Alignas(16) uint8_t extra[256] = {0};
    struct native_arg args[13] = {cpu_rig_buffer(&out, 0)};
    for (uint32_t k = 0; k < ACRE_COUNT(values); k++) {
        memcpy(extra + k * 16, values[k].at, values[k].bytes);
        args[1 + k] = (struct native_arg){
            .kind = ACRE_NATIVE_VALUE, .bytes = values[k].bytes, .region = k * 16};
    }
    struct native_launch launch = {.kernel =
                                       cpu_rig_kernel(&bench.rig, bench.program.module, "values"),
                                   .grid = {{1, 1, 1}, {1, 1, 1}},
                                   .args = args,
                                   .arg_count = 13,
                                   .extra = extra,
                                   .extra_bytes = 12 * 16};
    struct acre_error err;
    cpu_rig_require(table->launch(bench.rig.seat, bench.stream, &launch, &err), &err);
    cpu_rig_sync(&bench.rig, bench.stream, 0, ++bench.value);
    static const double want[] = {-1, 200, -300,  40000, -5,   4e9, -7,
                                  8,  9.5, 10.25, -11,   12.5, 1,   4};
    for (size_t k = 0; k < ACRE_COUNT(want); k++) {
        acre_test_context("out[%zu]", k);
        CHECK_NEAR(((double *)host(&out))[k], want[k], 0);
    }
    bench_finish(&bench);
}

/* GPU-1: a function's parameter may be an array, which is a pointer. */
static void arrays_are_given_to_functions(void) {
    struct bench bench;
    bench_init(&bench, "float sum(local float t[4], constant float by[4]) {\n"
                       "    return t[0] * by[0] + t[3] * by[3];\n"
                       "}\n"
                       "float corner(local float (*rows)[4]) { return rows[1][3]; }\n"
                       "kernel void f(global float *out, constant float *by) {\n"
                       "    local float t[4];\n"
                       "    local float rows[2][4];\n"
                       "    t[local_id(0)] = (float)local_id(0) + 1.0f;\n"
                       "    rows[1][local_id(0)] = 10.0f;\n"
                       "    barrier();\n"
                       "    out[local_id(0)] = sum(t, by) + corner(rows);\n"
                       "}\n");
    struct native_region regions[2] = {cpu_rig_region(&bench.rig, 4096),
                                       cpu_rig_region(&bench.rig, 4096)};
    float *by = host(&regions[1]);
    by[0] = 2;
    by[3] = 3;
    bench_run(&bench, "f", (struct acre_grid){{1, 1, 1}, {4, 1, 1}}, regions, 2, NULL, 0);
    for (size_t i = 0; i < 4; i++) {
        CHECK_NEAR((double)((float *)host(&regions[0]))[i], 1 * 2 + 4 * 3 + 10, 0);
    }
    bench_finish(&bench);
}

/* GPU-1: a kernel under an #if has an entry only where it is compiled, and its place in messages
 * stays the user's. */
static void kernels_under_an_if_are_compiled_or_not(void) {
    static const char text[] = "#ifdef WIDE\n"
                               "kernel void f(global int *a) { a[0] = 2; }\n"
                               "kernel void wide(global int *a) { a[1] = 2; }\n"
                               "#else\n"
                               "kernel void f(global int *a) { a[0] = 1; }\n"
                               "  kernel void narrow(global int *a) { a[1] = WRONG; }\n"
                               "#endif\n";
    static const struct {
        const char *options;
        int expect;
        const char *message;
    } rows[] = {{"-DWIDE", 0, ""}, {"-DWRONG=1", 0, ""}, {"", ACRE_EINVALID, "k:6:46"}};
    struct cpu_rig rig;
    cpu_rig_init(&rig);
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct cpu_rig_program program;
        acre_test_context("'%s'", rows[i].options);
        CHECK_EQ(cpu_rig_build(&rig, "k", text, rows[i].options, &program), rows[i].expect);
        CHECK_HAS(program.err.text, rows[i].message);
    }
    cpu_rig_finish(&rig);
}

/* --- messages -------------------------------------------------------------------------------- */

static void compilers_lines_are_those_of_the_source(void) {
    static const struct {
        const char *text, *options, *where, *what;
    } rows[] = {
        {"kernel void f(global float *a) {\n\n    a[0] = nonsense;\n}\n", "", "bad.k:3",
         "nonsense"},
        {"/* a\n * b */\nkernel void f(\n    global float *a,\n    uint n) {\n    a[0] = n +;\n}\n",
         "", "bad.k:6", "expected expression"},
        {"float g(float x) {\n    return missing(x);\n}\nkernel void f(global float *a) {\n"
         "    a[0] = g(1.0f);\n}\n",
         "", "bad.k:2", "missing"},
        {"float g(float x) {\n    return x + global_id(0) + global_size(1);\n}\n"
         "kernel void f(global float *a) {\n    a[global_id(0)] = g(1.0f);\n}\n",
         "", "bad.k:2:16", "global_id() works only in the kernel itself"},
        {"kernel void f(global float *a) {\n    a[0] = sin(a);\n}\n", "", "bad.k:2", "error"},
        {"kernel void f(global float *a) { a[0] = SIZE; }\n", "-DSIZE=%", "", "expected"},
        {"kernel void f(global float *a) {\n    local float b[100000];\n    b[local_id(0)] = 0;\n"
         "    barrier();\n    a[0] = b[0];\n}\n",
         "", "", "the local arrays have 4000"},
        {"kernel void f(global float *a, uint n) {\n    float b[20000];\n"
         "    for (uint i = 0; i < 20000; i++) { b[i] = a[i]; }\n    barrier();\n"
         "    a[0] = b[n];\n}\n",
         "", "bad.k", "frame"},
        {"kernel void f(global float *a) { a[0] = 1; }\n", "file.o", "", "options: 'file.o'"},
        {"kernel void f(global float *a) { a[0] = 1; }\n", "-o/tmp/x", "", "options: '-o/tmp/x'"},
    };
    struct cpu_rig rig;
    cpu_rig_init(&rig);
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct cpu_rig_program program;
        acre_test_context("row %zu", i);
        CHECK_EQ(cpu_rig_build(&rig, "bad.k", rows[i].text, rows[i].options, &program),
                 ACRE_EINVALID);
        CHECK_HAS(program.err.text, rows[i].where);
        CHECK_HAS(program.err.text, rows[i].what);
        CHECK(strstr(program.log, "'acre_item'") == NULL);
        CHECK(strstr(program.log, "kernel.c:") == NULL);
    }
    cpu_rig_finish(&rig);
}

static void options_reach_the_compiler(void) {
    struct cpu_rig rig;
    struct cpu_rig_program program;
    cpu_rig_init(&rig);
    CHECK_EQ(cpu_rig_build(&rig, "k", "kernel void f(global int *a) { a[0] = SIZE + MORE; }\n",
                           "  -DSIZE=40   -DMORE=2 ", &program),
             0);
    cpu_rig_finish(&rig);
}

static uint32_t count_temporaries(const char *directory) {
    DIR *dir = opendir(directory);
    REQUIRE(dir != NULL);
    uint32_t count = 0;
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        count += entry->d_name[0] != '.';
    }
    closedir(dir);
    return count;
}

static void nothing_stays_of_a_compilation(void) {
    char directory[] = "/tmp/acre-test-XXXXXX";
    REQUIRE(mkdtemp(directory) != NULL);
    setenv("TMPDIR", directory, 1);
    struct cpu_rig rig;
    struct cpu_rig_program program;
    cpu_rig_init(&rig);
    CHECK_EQ(cpu_rig_build(&rig, "k", "kernel void f(global int *a) { a[0] = 1; }\n", "", &program),
             0);
    CHECK_EQ(cpu_rig_build(&rig, "k", "kernel void f(global int *a) { a[0] = ; }\n", "", &program),
             ACRE_EINVALID);
    CHECK_EQ(count_temporaries(directory), 0);
    setenv("TMPDIR", "/proc/nowhere", 1);
    CHECK(cpu_rig_build(&rig, "k", "kernel void f(global int *a) { a[0] = 1; }\n", "", &program) <
          0);
    CHECK_HAS(program.err.text, "/proc/nowhere");
    cpu_rig_finish(&rig);
    rmdir(directory);
}

/* What does not fit is noticed when the file is closed: the reason is the system's. */
static void a_full_disk_is_told(void) {
    static const char text[] = "void acre_entry_f(const void *groups, const void *const *a) {}\n";
    struct cpu_rig rig;
    cpu_rig_init(&rig);
    struct native_source source = {.text = text, .length = sizeof(text) - 1, .options = "-O0"};
    struct acre_buf binary, log;
    acre_buf_init(&binary, 1 << 20);
    acre_buf_init(&log, 4096);
    struct rlimit limit;
    REQUIRE_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
    const struct rlimit small = {.rlim_cur = 10, .rlim_max = limit.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    REQUIRE_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    errno = 0;
    struct acre_error err = {0};
    int r = table->compile(rig.seat, &source, &binary, &log, &err);
    setrlimit(RLIMIT_FSIZE, &limit);
    CHECK_EQ(r, ACRE_EIO);
    CHECK_HAS(err.text, "/kernel.c: File too large");
    acre_buf_finish(&binary);
    acre_buf_finish(&log);
    cpu_rig_finish(&rig);
}

static void without_a_compiler_it_says_so(void) {
    setenv("PATH", "/proc", 1);
    struct cpu_rig rig;
    struct cpu_rig_program program;
    cpu_rig_init(&rig);
    struct acre_compute_device device;
    table->describe(rig.self, 0, &device);
    CHECK_EQ(device.capabilities & ACRE_CAN_SOURCE, 0);
    CHECK_EQ(cpu_rig_build(&rig, "k", "kernel void f(global int *a) { a[0] = 1; }\n", "", &program),
             ACRE_EUNSUPPORTED);
    CHECK_HAS(program.err.text, "PATH");
    cpu_rig_finish(&rig);
}

/* Whichever is found first: kernels mean the same. */
static void every_compiler_will_do(void) {
    static const char *const compilers[] = {"/usr/bin/gcc", "/usr/bin/clang"};
    char directory[] = "/tmp/acre-test-XXXXXX";
    char link[64];
    REQUIRE(mkdtemp(directory) != NULL);
    snprintf(link, sizeof(link), "%s/cc", directory);
    char path[64];
    snprintf(path, sizeof(path), "%s:/usr/bin:/bin", directory); /* they look for an assembler */
    setenv("PATH", path, 1);
    uint32_t found = 0;
    for (size_t i = 0; i < ACRE_COUNT(compilers); i++) {
        if (access(compilers[i], X_OK) < 0) {
            continue;
        }
        REQUIRE_EQ(symlink(compilers[i], link), 0);
        acre_test_context("%s", compilers[i]);
        items_know_where_they_are();
        groups_meet_at_barriers();
        words_mean_what_they_say();
        atomics_lose_nothing();
        values_arrive();
        compilers_lines_are_those_of_the_source();
        unlink(link);
        found++;
    }
    rmdir(directory);
    if (found == 0) {
        acre_test_skip("neither gcc nor clang in /usr/bin");
    }
}

/* --- modules --------------------------------------------------------------------------------- */

static void damaged_bytes_are_refused(void) {
    struct cpu_rig rig;
    cpu_rig_init(&rig);
    struct acre_error err;
    struct acre_buf binary;
    struct acre_buf log;
    acre_buf_init(&binary, 1 << 20);
    acre_buf_init(&log, 4096);
    static const char text[] =
        "__attribute__((visibility(\"default\"))) void acre_entry_f(void) {}";
    struct native_source source = {.text = text, .length = sizeof(text) - 1, .options = ""};
    cpu_rig_require(table->compile(rig.seat, &source, &binary, &log, &err), &err);
    uint64_t module = 0;
    for (size_t length = 0; length < binary.length; length += 1 + binary.length / 50) {
        CHECK_EQ(table->load(rig.seat, binary.data, length, &module, &err), ACRE_ECORRUPT);
    }
    for (size_t at = 0; at < binary.length; at += 1 + binary.length / 100) {
        binary.data[at] = (char)(binary.data[at] ^ 0x10);
        CHECK_EQ(table->load(rig.seat, binary.data, binary.length, &module, &err), ACRE_ECORRUPT);
        binary.data[at] = (char)(binary.data[at] ^ 0x10);
    }
    cpu_rig_require(table->load(rig.seat, binary.data, binary.length, &module, &err), &err);
    uint64_t kernel = 0;
    struct kernel_facts facts;
    CHECK_EQ(table->kernel(rig.seat, module, "f", &kernel, &facts, &err), 0);
    CHECK_EQ(facts.group_max, 1024);
    CHECK_EQ(table->kernel(rig.seat, module, "g", &kernel, &facts, &err), ACRE_ENOTFOUND);
    CHECK_HAS(err.text, "'g'");
    acre_buf_finish(&binary);
    acre_buf_finish(&log);
    cpu_rig_finish(&rig);
}

/* Modules with the same names in them do not meet. */
static void modules_are_apart(void) {
    struct cpu_rig rig;
    cpu_rig_init(&rig);
    uint64_t stream = cpu_rig_stream(&rig, 0);
    struct native_region out = cpu_rig_region(&rig, 4096);
    struct cpu_rig_program programs[4];
    uint64_t value = 0;
    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < 4; i++) {
            char option[32];
            snprintf(option, sizeof(option), "-DVALUE=%u", 10 * round + i);
            REQUIRE_EQ(cpu_rig_build(&rig, "k",
                                     "int value(void) { return VALUE; }\n"
                                     "kernel void f(global int *a) { a[0] = value(); }\n",
                                     option, &programs[i]),
                       0);
        }
        for (uint32_t i = 0; i < 4; i++) {
            struct native_arg arg = cpu_rig_buffer(&out, 0);
            struct native_launch launch = {.kernel = cpu_rig_kernel(&rig, programs[i].module, "f"),
                                           .grid = {{1, 1, 1}, {1, 1, 1}},
                                           .args = &arg,
                                           .arg_count = 1};
            struct acre_error err;
            cpu_rig_require(table->launch(rig.seat, stream, &launch, &err), &err);
            cpu_rig_sync(&rig, stream, 0, ++value);
            CHECK_EQ(*(int *)host(&out), (int)(10 * round + i));
        }
        for (uint32_t i = 0; i < 4; i++) {
            table->unload(rig.seat, programs[i].module);
        }
    }
    cpu_rig_finish(&rig);
}

static const struct acre_test tests[] = {
    {"items_know_where_they_are", items_know_where_they_are, 0},
    {"groups_meet_at_barriers", groups_meet_at_barriers, 0},
    {"items_may_end_before_others", items_may_end_before_others, 0},
    {"fibers_keep_what_is_theirs", fibers_keep_what_is_theirs, 0},
    {"chars_have_a_sign", chars_have_a_sign, 0},
    {"atomics_lose_nothing", atomics_lose_nothing, 0},
    {"words_mean_what_they_say", words_mean_what_they_say, 0},
    {"values_arrive", values_arrive, 0},
    {"arrays_are_given_to_functions", arrays_are_given_to_functions, 0},
    {"kernels_under_an_if_are_compiled_or_not", kernels_under_an_if_are_compiled_or_not, 0},
    {"compilers_lines_are_those_of_the_source", compilers_lines_are_those_of_the_source, 0},
    {"options_reach_the_compiler", options_reach_the_compiler, 0},
    {"nothing_stays_of_a_compilation", nothing_stays_of_a_compilation, 0},
    {"a_full_disk_is_told", a_full_disk_is_told, 0},
    {"without_a_compiler_it_says_so", without_a_compiler_it_says_so, 0},
    {"every_compiler_will_do", every_compiler_will_do, 0},
    {"damaged_bytes_are_refused", damaged_bytes_are_refused, 0},
    {"modules_are_apart", modules_are_apart, 0},
};
ACRE_TEST_MAIN(tests)
