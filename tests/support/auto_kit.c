/* auto_kit.c - see auto_kit.h. Data are whole numbers and the factor a power of two, so that
 * answers are exact on every device. */
#include "support/auto_kit.h"

#include <stdlib.h>

static const char source_text[] =
    "kernel void axpy(global const float *a, global const float *b, global float *c, float k,\n"
    "                 ulong away, uint n) {\n"
    "    ulong i = global_id(0);\n"
    "    if (i < n) {\n"
    "        c[i + away] = a[i] * k + b[i];\n"
    "    }\n"
    "}\n"
    "kernel void turn(global uint4 *p, uint by, uint n) {\n"
    "    ulong i = global_id(0);\n"
    "    if (i < n) {\n"
    "        uint4 v = p[i];\n"
    "        v.x += by;\n"
    "        v.w ^= v.x;\n"
    "        p[i] = v;\n"
    "    }\n"
    "}\n"
    "kernel void mixed(global uchar *bytes, global const int *in, global uint *sum, uchar small,\n"
    "                  double wide, float4 four, short less, uint n) {\n"
    "    ulong i = global_id(0);\n"
    "    if (i < n) {\n"
    "        bytes[4 * i] += small;\n"
    "        sum[i] = (uint)(in[i] + (int)wide + (int)four.z + less);\n"
    "    }\n"
    "}\n";
const struct acre_source auto_source = {.text = source_text, .name = "auto.acl"};
const struct acre_auto_array axpy_arrays[3] = {{4, 0}, {4, 0}, {0, 4}};

void open_bench(struct bench *bench, const char *cache, const struct acre_context_options *device) {
    setenv("ACRE_RUNNER", RUNNER, 1);
    *bench = (struct bench){0};
    acre_rand_seed(&bench->rand, 42);
    struct acre_compute_options options = {.backends = "cpu", .cache = cache};
    REQUIRE_EQ(acre_compute_open(&options, &bench->compute, &bench->err), 0);
    REQUIRE_EQ(acre_context_open(bench->compute, 0, device, &bench->device, &bench->err), 0);
    REQUIRE_EQ(acre_context_open(bench->compute, 0, NULL, &bench->cpu, &bench->err), 0);
    REQUIRE_EQ(acre_stream_create(bench->device, &bench->stream, &bench->err), 0);
    bench->options = (struct acre_auto_options){.device = bench->device,
                                                .cpu = bench->cpu,
                                                .source = &auto_source,
                                                .kernel = "axpy",
                                                .arrays = axpy_arrays,
                                                .array_count = 3,
                                                .learned = ""};
    float **arrays[] = {&bench->a, &bench->b, &bench->c, &bench->expected};
    for (size_t i = 0; i < ACRE_COUNT(arrays); i++) {
        *arrays[i] = malloc(ITEMS_MAX * sizeof(float));
        REQUIRE(*arrays[i] != NULL);
    }
}

void make_auto(struct bench *bench) {
    int r = acre_auto_create(&bench->options, &bench->automatic, &bench->err);
    acre_test_context("%s", bench->err.text);
    REQUIRE_EQ(r, 0);
    acre_test_context("%s", "");
}

void close_bench(struct bench *bench) {
    acre_auto_destroy(bench->automatic);
    struct acre_context_report report;
    acre_context_report(bench->device, &report);
    CHECK_EQ(report.buffers, 0);
    acre_compute_close(bench->compute);
    free(bench->a);
    free(bench->b);
    free(bench->c);
    free(bench->expected);
}

void fill(struct bench *bench, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        bench->a[i] = (float)acre_rand_below(&bench->rand, 4096);
        bench->b[i] = (float)acre_rand_below(&bench->rand, 4096);
        bench->c[i] = -1;
        bench->expected[i] = bench->a[i] * 0.25f + bench->b[i];
    }
}

const struct acre_arg *values_of(uint64_t away) {
    static _Thread_local struct acre_arg values[2];
    values[0] = ACRE_F32(0.25f);
    values[1] = ACRE_U64(away);
    return values;
}

void check_answer(struct bench *bench, const float *c, uint32_t n) {
    CHECK(memcmp(c, bench->expected, n * sizeof(float)) == 0);
}
