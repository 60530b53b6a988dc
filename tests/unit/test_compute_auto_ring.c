/* test_compute_auto_ring.c - kernels as handlers of rings: which can be, that they compile for the
 * device that keeps them, and that they do there what the kernels do. */
#include "compute/auto/resident.h"
#include "compute/ring/ring.h"
#include "compute/source/dialect.h"
#include "support/auto_kit.h"
#include "support/compilers.h"

/* The text that the compiler gets for a ring with this handler. */
static void write_ring(const struct acre_auto *automatic, struct acre_buf *out) {
    struct acre_buf handler, whole;
    acre_buf_init(&handler, 1 << 20);
    acre_buf_init(&whole, 1 << 20);
    REQUIRE_EQ(auto_ring_source(automatic, &handler), 0);
    CHECK(strstr(handler.data, "kernel") == NULL);
    REQUIRE_EQ(ring_source_write(handler.data, "acre_auto_handle", true, &whole), 0);
    struct acre_source text = {.text = whole.data, .language = ACRE_LANGUAGE_PORTABLE};
    struct signature *all = NULL;
    uint32_t count = 0;
    struct acre_error err = {0};
    REQUIRE_EQ(signatures_read("ring", acre_str_from(whole.data), ACRE_LANGUAGE_PORTABLE, &all,
                               &count, &err),
               0);
    REQUIRE_EQ(dialect_write("cuda", &text, ACRE_LANGUAGE_PORTABLE, all, count, out, &err), 0);
    signatures_free(all, count);
    acre_buf_finish(&handler);
    acre_buf_finish(&whole);
}

static void kernels_compile_as_handlers(void) { /* GPU-4 */
    static const struct acre_auto_array mixed[] = {{4, 4}, {4, 0}, {0, 4}};
    static const struct acre_auto_array turn[] = {{16, 16}};
    static const struct {
        const char *kernel;
        const struct acre_auto_array *arrays;
        uint32_t count, items, in_words, out_words;
    } rows[] = {{"axpy", axpy_arrays, 3, 32, 1 + 3 + 64, 32},
                {"mixed", mixed, 3, 32, 1 + 1 + 2 + 4 + 1 + 64, 64},
                {"turn", turn, 1, 23, 1 + 1 + 92, 92}};
    struct bench bench;
    open_bench(&bench, "", NULL);
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        acre_test_context("%s", rows[i].kernel);
        bench.options.kernel = rows[i].kernel;
        bench.options.arrays = rows[i].arrays;
        bench.options.array_count = rows[i].count;
        REQUIRE_EQ(acre_auto_create(&bench.options, &bench.automatic, &bench.err), 0);
        CHECK_EQ(bench.automatic->ring.items_max, rows[i].items);
        CHECK_EQ(bench.automatic->ring.in_words, rows[i].in_words);
        CHECK_EQ(bench.automatic->ring.out_words, rows[i].out_words);
        struct acre_buf text, log, out;
        acre_buf_init(&text, 1 << 20);
        acre_buf_init(&log, 1 << 20);
        acre_buf_init(&out, 1 << 24);
        write_ring(bench.automatic, &text);
        int r = compile_cuda(text.data, &log, &out);
        if (r < 0) {
            acre_test_skip("%s", log.data);
        }
        acre_test_context("%s: %s", rows[i].kernel, log.data);
        CHECK_EQ(r, 0);
        CHECK_HAS(out.data, "acre_ring");
        acre_buf_finish(&text);
        acre_buf_finish(&log);
        acre_buf_finish(&out);
        acre_auto_destroy(bench.automatic);
        bench.automatic = NULL;
    }
    close_bench(&bench);
}

/* The handler's lanes one after the other, on the CPU: the work items of a kernel of one item are
 * told that they are lanes. */
static void drive_lanes(struct bench *bench, uint32_t *in, uint32_t *out) {
    struct acre_buf text;
    acre_buf_init(&text, 1 << 20);
    acre_buf_puts(&text, "static uint own_lane;\n"
                         "#undef global_id\n"
                         "#define global_id(d) ((ulong)own_lane)\n");
    REQUIRE_EQ(auto_ring_source(bench->automatic, &text), 0);
    acre_buf_puts(&text, "kernel void drive(global uint *in, global uint *out) {\n"
                         "    for (uint i = 0; i < 32; i++) {\n"
                         "        own_lane = i;\n"
                         "        acre_auto_handle(in, out, in, i, 32);\n"
                         "    }\n"
                         "}\n");
    struct acre_source whole = {.text = text.data, .language = ACRE_LANGUAGE_PORTABLE};
    struct acre_program *program = NULL;
    struct acre_kernel *kernel = NULL;
    int r = acre_program_build(bench->device, &whole, &program, NULL, &bench->err);
    acre_test_context("%s", bench->err.text);
    REQUIRE_EQ(r, 0);
    REQUIRE_EQ(acre_kernel_find(program, "drive", &kernel, NULL), 0);
    struct acre_buffer both;
    uint64_t bytes = RING_WORDS_MAX * sizeof(uint32_t);
    REQUIRE_EQ(acre_buffer_alloc(bench->stream, ACRE_MEMORY_MAPPED, 2 * bytes, &both, NULL), 0);
    uint8_t *host = acre_buffer_host(bench->device, both);
    memcpy(host, in, bytes);
    struct acre_grid one = {.groups = {1}, .group = {1}};
    struct acre_arg args[] = {ACRE_BUFFER(both), ACRE_BUFFER_AT(both, bytes)};
    CHECK_EQ(acre_launch(bench->stream, kernel, one, args, 2, NULL), 0);
    CHECK_EQ(acre_stream_sync(bench->stream, ACRE_FOREVER, NULL), 0);
    memcpy(out, host + bytes, bytes);
    CHECK_EQ(acre_buffer_free(bench->stream, both, NULL), 0);
    acre_program_destroy(program);
    acre_buf_finish(&text);
}

static void handlers_do_what_kernels_do(void) { /* GPU-4 */
    static const struct acre_auto_array mixed[] = {{4, 4}, {4, 0}, {0, 4}};
    static const uint32_t sizes[] = {1, 7, 32};
    struct bench bench;
    open_bench(&bench, "", NULL);
    uint32_t in[RING_WORDS_MAX], out[RING_WORDS_MAX];
    for (size_t i = 0; i < ACRE_COUNT(sizes); i++) {
        bench.options.kernel = "axpy";
        bench.options.arrays = axpy_arrays;
        make_auto(&bench);
        fill(&bench, 32);
        void *arrays[] = {bench.a, bench.b, bench.c};
        struct auto_call call = {sizes[i], arrays, values_of(0)};
        auto_ring_pack(bench.automatic, &call, in);
        drive_lanes(&bench, in, out);
        auto_ring_unpack(bench.automatic, &call, out);
        check_answer(&bench, bench.c, sizes[i]);
        CHECK(sizes[i] == 32 || bench.c[sizes[i]] == -1.0f);
        acre_auto_destroy(bench.automatic);
        bench.options.kernel = "mixed";
        bench.options.arrays = mixed;
        make_auto(&bench);
        uint8_t bytes[128];
        int32_t numbers[32];
        uint32_t sums[33] = {0};
        for (uint32_t j = 0; j < 32; j++) {
            bytes[4 * j] = (uint8_t)j;
            bytes[4 * j + 1] = 77;
            numbers[j] = -(int32_t)j;
        }
        float four[4] = {1, 2, 3000, 4};
        uint8_t small = 200;
        int16_t less = -5;
        struct acre_arg values[] = {ACRE_BYTES(&small, 1), ACRE_F64(1e6), ACRE_BYTES(four, 16),
                                    ACRE_BYTES(&less, 2)};
        void *others[] = {bytes, numbers, sums};
        struct auto_call other = {sizes[i], others, values};
        auto_ring_pack(bench.automatic, &other, in);
        drive_lanes(&bench, in, out);
        auto_ring_unpack(bench.automatic, &other, out);
        for (uint32_t j = 0; j < sizes[i]; j++) {
            CHECK_EQ(bytes[4 * j], (uint8_t)(j + 200));
            CHECK_EQ(bytes[4 * j + 1], 77);
            CHECK_EQ(sums[j], 1000000 + 3000 - 5 - j);
        }
        CHECK_EQ(sums[sizes[i]], 0);
        acre_auto_destroy(bench.automatic);
        bench.automatic = NULL;
    }
    close_bench(&bench);
}

static void kernels_that_are_no_handlers_say_why(void) {
#define TAKES(text) "kernel void f(" text ", uint n) { }"
    static const struct {
        const char *text;
        struct acre_auto_array array;
        const char *says;
    } rows[] = {
        {"kernel void f(global float *p, uint n) { local float x[4]; x[0] = 1; p[0] = x[0]; }",
         {4, 4},
         "local memory or barriers"},
        {"kernel void f(global float *p, uint n) { barrier(); p[0] = 1; }",
         {4, 4},
         "local memory or barriers"},
        {TAKES("global uchar *p"), {1, 1}, "items must be multiples of 4 bytes"},
        {TAKES("global double *p"), {8, 8}, "at most 4 bytes"},
        {TAKES("global uint *p"), {388, 388}, "does not fit"},
        {TAKES("global const uint *p"), {4, 0}, "does not fit"}, /* no answer */
        {TAKES("global uint *p"), {4, 4}, ""},
    };
    struct bench bench;
    open_bench(&bench, "", NULL);
    bench.compute->devices[0].capabilities |= ACRE_CAN_RING; /* it cannot, as the ring will find */
    bench.options.kernel = "f";
    bench.options.array_count = 1;
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct acre_source text = {.text = rows[i].text};
        bench.options.source = &text;
        bench.options.arrays = &rows[i].array;
        make_auto(&bench);
        acre_test_context("row %zu", i);
        CHECK_HAS(bench.automatic->reason[COST_RING], rows[i].says);
        CHECK_EQ((bench.automatic->present & BIT(COST_RING)) != 0, rows[i].says[0] == '\0');
        void *array = bench.a;
        for (uint32_t j = 0; j < 2; j++) {
            CHECK_EQ(
                acre_auto_run_by(bench.automatic, ACRE_WAY_RING, 5, &array, NULL, 0, &bench.err),
                ACRE_EUNSUPPORTED);
        }
        CHECK_EQ(acre_auto_run(bench.automatic, 5, &array, NULL, 0, NULL, NULL), 0);
        CHECK(bench.automatic->reason[COST_RING][0] != '\0');
        CHECK((bench.automatic->present & BIT(COST_RING)) == 0);
        acre_auto_destroy(bench.automatic);
        bench.automatic = NULL;
    }
    acre_test_context("%s", "");
    close_bench(&bench);
}

static const struct acre_test tests[] = {
    {"kernels_compile_as_handlers", kernels_compile_as_handlers, 0},
    {"handlers_do_what_kernels_do", handlers_do_what_kernels_do, 0},
    {"kernels_that_are_no_handlers_say_why", kernels_that_are_no_handlers_say_why, 0},
};
ACRE_TEST_MAIN(tests)
