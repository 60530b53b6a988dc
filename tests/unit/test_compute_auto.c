/* test_compute_auto.c - automatic calls on the CPU, and on the CPU in a runner as a device: each
 * variant, what is refused, what is kept, what happens when the device fails. */
#include "core/file.h"
#include "support/auto_kit.h"
#include "support/tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* --- variants ------------------------------------------------------------------------------- */

static int go(struct bench *bench, enum cost_variant variant, const struct auto_call *call) {
    pthread_mutex_lock(&bench->automatic->lock);
    int r = auto_prepare(bench->automatic, variant, call, &bench->err);
    r = r == 0 ? auto_go(bench->automatic, variant, call, &bench->err) : r;
    pthread_mutex_unlock(&bench->automatic->lock);
    return r;
}

static void variants_all_give_the_same(void) { /* GPU-4 */
    static const uint32_t sizes[] = {1, 3, 255, 256, 257, 1000, 100003, 1000, 2, ITEMS_MAX};
    static const struct acre_context_options devices[] = {
        {.isolation = ACRE_CONTEXT_ISOLATION_NONE}, {.isolation = ACRE_CONTEXT_ISOLATION_PROCESS}};
    for (size_t d = 0; d < ACRE_COUNT(devices); d++) {
        struct bench bench;
        open_bench(&bench, "", &devices[d]);
        make_auto(&bench);
        for (size_t i = 0; i < ACRE_COUNT(sizes); i++) {
            uint32_t n = sizes[i];
            uint32_t possible = auto_possible(bench.automatic, n, COST_MEMORY_PLAIN);
            CHECK((possible & BIT(COST_RING)) == 0);
            CHECK_EQ((possible & BIT(COST_PIECES)) != 0, n * 12 >= 1 << 20);
            for (uint32_t v = 0; v < COST_VARIANTS_COUNT; v++) {
                acre_test_context("%s, %u items, device %zu",
                                  cost_variant_name((enum cost_variant)v), n, d);
                if ((possible & BIT(v)) != 0) {
                    fill(&bench, n);
                    void *arrays[] = {bench.a, bench.b, bench.c};
                    struct auto_call call = {n, arrays, values_of(0)};
                    CHECK_EQ(go(&bench, (enum cost_variant)v, &call), 0);
                    check_answer(&bench, bench.c, n);
                }
            }
        }
        acre_test_context("%s", "");
        close_bench(&bench);
    }
}

static void graphs_see_other_values_and_numbers(void) {
    struct bench bench;
    open_bench(&bench, "", NULL);
    make_auto(&bench);
    static const uint32_t sizes[] = {300, 300, 301, 511, 300};
    for (size_t i = 0; i < ACRE_COUNT(sizes); i++) {
        float k = i % 2 == 0 ? 2 : 0.5f;
        struct acre_arg values[] = {ACRE_F32(k), ACRE_U64(0)};
        fill(&bench, 512);
        void *arrays[] = {bench.a, bench.b, bench.c};
        CHECK_EQ(acre_auto_run_by(bench.automatic, ACRE_WAY_GRAPH, sizes[i], arrays, values, 2,
                                  &bench.err),
                 0);
        for (uint32_t j = 0; j < 512; j++) {
            bench.expected[j] = j < sizes[i] ? bench.a[j] * k + bench.b[j] : -1;
        }
        check_answer(&bench, bench.c, 512);
    }
    CHECK(bench.automatic->graphs[9].graph != NULL);
    CHECK(bench.automatic->graphs[8].graph == NULL);
    close_bench(&bench);
}

static void arrays_in_mapped_memory_are_used_where_they_are(void) {
    struct bench bench;
    open_bench(&bench, "", NULL);
    make_auto(&bench);
    enum { N = 5000 };
    fill(&bench, N);
    struct acre_buffer all;
    REQUIRE_EQ(acre_buffer_alloc(bench.stream, ACRE_MEMORY_MAPPED, 3 * N * 4 + 64, &all, NULL), 0);
    float *host = acre_buffer_host(bench.device, all);
    void *arrays[] = {host, host + N, host + 2 * N + 16};
    memcpy(arrays[0], bench.a, N * 4);
    memcpy(arrays[1], bench.b, N * 4);
    struct auto_call call = {N, arrays, values_of(0)};
    CHECK_EQ(auto_memory(bench.automatic, &call), COST_MEMORY_MAPPED);
    CHECK_EQ(go(&bench, COST_MAPPED, &call), 0);
    check_answer(&bench, arrays[2], N);
    CHECK_U64(bench.automatic->mapped.buffer.id, 0); /* nothing to copy to */
    CHECK((auto_possible(bench.automatic, UINT32_MAX, COST_MEMORY_MAPPED) & BIT(COST_MAPPED)) != 0);
    CHECK((auto_possible(bench.automatic, UINT32_MAX, COST_MEMORY_PLAIN) & BIT(COST_MAPPED)) == 0);
    arrays[2] = bench.c; /* one of them plain */
    CHECK_EQ(auto_memory(bench.automatic, &call), COST_MEMORY_PLAIN);
    CHECK_EQ(go(&bench, COST_MAPPED, &call), 0);
    check_answer(&bench, bench.c, N);
    struct acre_buffer pinned;
    REQUIRE_EQ(acre_buffer_alloc(bench.stream, ACRE_MEMORY_PINNED, N * 4, &pinned, NULL), 0);
    arrays[2] = acre_buffer_host(bench.device, pinned);
    CHECK_EQ(auto_memory(bench.automatic, &call), COST_MEMORY_PINNED);
    for (uint32_t i = 0; i < 40; i++) {
        memset(arrays[2], 0, N * 4);
        CHECK_EQ(acre_auto_run(bench.automatic, N, arrays, values_of(0), 2, NULL, NULL), 0);
        check_answer(&bench, arrays[2], N);
    }
    CHECK_EQ(acre_buffer_free(bench.stream, all, NULL), 0);
    CHECK_EQ(acre_buffer_free(bench.stream, pinned, NULL), 0);
    close_bench(&bench);
}

/* --- functions ------------------------------------------------------------------------------ */

static const void *_Atomic native_saw;
static _Atomic uint32_t native_calls, native_elsewhere;
static pthread_t native_home;

static void native_axpy(const struct acre_groups *groups, const void *const *arguments) {
    const float *a = arguments[0], *b = arguments[1];
    float *c = (float *)(uintptr_t)arguments[2];
    float k = *(const float *)arguments[3];
    uint32_t n = *(const uint32_t *)arguments[5]; /* `away` is not looked at */
    atomic_store(&native_saw, (const void *)c);
    atomic_fetch_add(&native_calls, 1);
    atomic_fetch_add(&native_elsewhere, !pthread_equal(pthread_self(), native_home));
    for (uint64_t group = groups->first; group < groups->end; group++) {
        for (uint64_t j = 0; j < groups->group[0]; j++) {
            uint64_t i = group * groups->group[0] + j;
            if (i < n) {
                c[i] = a[i] * k + b[i];
            }
        }
    }
}

static void functions_get_the_arrays_themselves(void) {
    struct bench bench;
    open_bench(&bench, "", NULL);
    bench.options.native = native_axpy;
    bench.options.device = NULL;
    make_auto(&bench);
    native_home = pthread_self();
    static const uint32_t sizes[] = {1, 255, 1000, ITEMS_MAX};
    for (size_t i = 0; i < ACRE_COUNT(sizes); i++) {
        for (uint32_t v = COST_ONE; v <= COST_ALL; v++) {
            uint32_t n = sizes[i];
            fill(&bench, n);
            void *arrays[] = {bench.a, bench.b, bench.c};
            struct auto_call call = {n, arrays, values_of(0)};
            atomic_store(&native_calls, 0);
            atomic_store(&native_elsewhere, 0);
            acre_test_context("%s, %u items", cost_variant_name((enum cost_variant)v), n);
            CHECK_EQ(go(&bench, (enum cost_variant)v, &call), 0);
            check_answer(&bench, bench.c, n);
            CHECK(atomic_load(&native_saw) == bench.c);
            CHECK(v == COST_ALL ||
                  (atomic_load(&native_calls) == 1 && atomic_load(&native_elsewhere) == 0));
        }
    }
    CHECK(atomic_load(&native_calls) > 1); /* a million items by all threads */
    acre_test_context("%s", "");
    enum acre_way way = ACRE_WAY_COUNT;
    void *arrays[] = {bench.a, bench.b, bench.c};
    for (uint32_t i = 0; i < 1000; i++) { /* most of them without a choice */
        fill(&bench, 5);
        CHECK_EQ(acre_auto_run(bench.automatic, 5, arrays, values_of(0), 2, &way, NULL), 0);
        CHECK_EQ(way, ACRE_WAY_CPU);
        check_answer(&bench, bench.c, 5);
    }
    struct acre_auto_cost cost;
    REQUIRE_EQ(acre_auto_costs(bench.automatic, &cost, 1), 1);
    CHECK_U64(cost.calls[ACRE_WAY_CPU], 1000);
    CHECK_EQ(cost.items, 4);
    CHECK_STR(cost.reason[ACRE_WAY_CPU], "");
    CHECK_HAS(cost.reason[ACRE_WAY_RING], "device: no context was given");
    close_bench(&bench);
}

/* --- refused -------------------------------------------------------------------------------- */

static void bad_options_are_refused_by_name(void) {
    static const struct acre_auto_array odd[] = {{3, 0}, {4, 0}, {0, 4}};
    static const struct acre_auto_array written[] = {{4, 4}, {4, 0}, {0, 4}};
    static const struct acre_auto_array none[] = {{0, 0}, {4, 0}, {0, 4}};
    static const struct acre_auto_array huge[] = {{0x40000000, 0}, {0x40000000, 0}, {0, 4}};
    static const struct acre_auto_array four[] = {{4, 0}, {4, 0}, {0, 4}, {4, 0}};
    static const struct acre_source signed_number = {
        .text = "kernel void axpy(global const float *a, global float *b, global float *c, int n)"
                "{ if (global_id(0) < n) { c[0] = a[0] + b[0]; } }"};
    static const struct acre_source bare = {.text = NULL};
    static const struct acre_source broken = {
        .text = "kernel void axpy(global const float *a, global float *b, global float *c, uint n)"
                "{ nonsense }"};
    const struct {
        const struct acre_source *source;
        const char *kernel;
        const struct acre_auto_array *arrays;
        uint32_t count;
        const char *says;
    } rows[] = {
        {&auto_source, "axpy", odd, 3,
         "array 1 'a': an item has 3 bytes; accepted: multiples of 4"},
        {&auto_source, "axpy", written, 3, "array 1 'a' is const, but out_bytes is 4"},
        {&auto_source, "axpy", none, 3, "array 1 'a': in_bytes is 0 and out_bytes is 0"},
        {&auto_source, "axpy", huge, 3, "an item has 2147483652 bytes in all"},
        {&auto_source, "axpy", four, 4,
         "parameter 4 'k' is float; the first 4 parameters must be arrays"},
        {&auto_source, "axpy", four, 2, "parameter 3 'c' is global float *; accepted: a value"},
        {&auto_source, "axpy", NULL, 3, "array_count"},
        {&auto_source, "axpy", four, 17, "array_count: 17; accepted: 1 to 16"},
        {&auto_source, "turn", four, 4, "kernel 'turn' has 3 parameters; required: 4 arrays"},
        {&signed_number, "axpy", axpy_arrays, 3, "parameter 4 'n' is int; accepted: uint"},
        {&bare, "axpy", axpy_arrays, 3, "source: must not be NULL"},
        {&auto_source, NULL, axpy_arrays, 3, "kernel: must not be NULL"},
        {&broken, "axpy", axpy_arrays, 3, "nonsense"},
    };
    struct bench bench;
    open_bench(&bench, "", NULL);
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        acre_test_context("row %zu", i);
        struct acre_auto_options options = bench.options;
        options.source = rows[i].source;
        options.kernel = rows[i].kernel;
        options.arrays = rows[i].arrays;
        options.array_count = rows[i].count;
        CHECK_EQ(acre_auto_create(&options, &bench.automatic, &bench.err), ACRE_EINVALID);
        CHECK_HAS(bench.err.text, rows[i].says);
        CHECK(bench.automatic == NULL);
    }
    acre_test_context("%s", "");
    struct acre_context *apart = NULL;
    struct acre_context_options isolated = {.isolation = ACRE_CONTEXT_ISOLATION_PROCESS};
    REQUIRE_EQ(acre_context_open(bench.compute, 0, &isolated, &apart, &bench.err), 0);
    struct acre_auto_options options = bench.options;
    options.cpu = apart;
    CHECK_EQ(acre_auto_create(&options, &bench.automatic, &bench.err), ACRE_EINVALID);
    CHECK_HAS(bench.err.text, "in a separate process");
    close_bench(&bench);
}

static void bad_calls_are_refused_by_name(void) {
    struct bench bench;
    open_bench(&bench, "", NULL);
    make_auto(&bench);
    void *good[] = {bench.a, bench.b, bench.c};
    void *missing[] = {bench.a, NULL, bench.c};
    void *odd[] = {bench.a, bench.b, (char *)bench.c + 2};
    const struct {
        void *const *arrays;
        const struct acre_arg *values;
        uint32_t count;
        const char *says;
    } rows[] = {
        {missing, values_of(0), 2, "kernel 'axpy': array 2 'b' is NULL"},
        {NULL, values_of(0), 2, "array 1 'a' is NULL"},
        {odd, values_of(0), 2, "array 3 'c' is at"},
        {good, values_of(0), 1, "1 values; accepted: 2"},
        {good, NULL, 2, "0 values; accepted: 2"},
        {good, (struct acre_arg[]){ACRE_U32(1), ACRE_U64(0)}, 2, "argument 4 'k' is an integer"},
        {good, (struct acre_arg[]){ACRE_F32(1), ACRE_U32(0)}, 2, "argument 5 'away'"},
    };
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        acre_test_context("row %zu", i);
        for (int by = 0; by < 2; by++) {
            int r = by == 0 ? acre_auto_run(bench.automatic, 9, rows[i].arrays, rows[i].values,
                                            rows[i].count, NULL, &bench.err)
                            : acre_auto_run_by(bench.automatic, ACRE_WAY_CPU, 9, rows[i].arrays,
                                               rows[i].values, rows[i].count, &bench.err);
            CHECK_EQ(r, ACRE_EINVALID);
            CHECK_HAS(bench.err.text, rows[i].says);
        }
    }
    acre_test_context("%s", "");
    CHECK_EQ(
        acre_auto_run_by(bench.automatic, ACRE_WAY_COUNT, 9, good, values_of(0), 2, &bench.err),
        ACRE_EINVALID);
    CHECK_EQ(acre_auto_run_by(bench.automatic, ACRE_WAY_RING, 9, good, values_of(0), 2, &bench.err),
             ACRE_EUNSUPPORTED);
    CHECK_HAS(bench.err.text,
              "kernel 'axpy' cannot run by ring: the device cannot keep a kernel resident");
    CHECK_EQ(acre_auto_run_by(bench.automatic, ACRE_WAY_GRAPH, 1 << 30, good, values_of(0), 2,
                              &bench.err),
             ACRE_EUNSUPPORTED);
    CHECK_HAS(bench.err.text, "1073741824 items; accepted: at most");
    CHECK_EQ(acre_auto_run(bench.automatic, 0, NULL, values_of(0), 2, NULL, NULL), 0);
    CHECK_STR(acre_way_name(ACRE_WAY_COUNT), "none");
    close_bench(&bench);
}

/* --- when the device cannot ----------------------------------------------------------------- */

static void a_device_that_fails_is_left_for_the_cpu(void) { /* GPU-6 */
    struct bench bench;
    struct acre_context_options isolated = {.isolation = ACRE_CONTEXT_ISOLATION_PROCESS};
    open_bench(&bench, "", &isolated);
    bench.options.native = native_axpy;
    make_auto(&bench);
    enum { N = 3000 };
    void *arrays[] = {bench.a, bench.b, bench.c};
    uint64_t far = UINT64_C(1) << 42; /* the kernel faults, the function does not look */
    CHECK_EQ(acre_auto_run_by(bench.automatic, ACRE_WAY_LAUNCH, N, arrays, values_of(far), 2,
                              &bench.err),
             ACRE_EUNAVAILABLE);
    for (uint32_t i = 0; i < 50; i++) {
        enum acre_way way = ACRE_WAY_COUNT;
        fill(&bench, N);
        CHECK_EQ(acre_auto_run(bench.automatic, N, arrays, values_of(far), 2, &way, &bench.err), 0);
        CHECK_EQ(way, ACRE_WAY_CPU);
        check_answer(&bench, bench.c, N);
    }
    struct acre_auto_cost cost;
    REQUIRE_EQ(acre_auto_costs(bench.automatic, &cost, 1), 1);
    CHECK(cost.reason[ACRE_WAY_LAUNCH][0] != '\0');
    CHECK(cost.reason[ACRE_WAY_GRAPH][0] != '\0');
    CHECK_STR(cost.reason[ACRE_WAY_CPU], "");
    /* Asked for by name it is tried again: it was made anew. */
    fill(&bench, N);
    CHECK_EQ(
        acre_auto_run_by(bench.automatic, ACRE_WAY_GRAPH, N, arrays, values_of(0), 2, &bench.err),
        0);
    check_answer(&bench, bench.c, N);
    REQUIRE_EQ(acre_auto_costs(bench.automatic, &cost, 1), 1);
    CHECK_STR(cost.reason[ACRE_WAY_GRAPH], "");
    close_bench(&bench);
}

static void a_device_without_memory_goes_in_pieces(void) {
    struct bench bench;
    struct acre_context_options small = {.memory_limit_bytes = 4 << 20};
    open_bench(&bench, "", &small);
    bench.options.cpu = NULL;
    make_auto(&bench);
    void *arrays[] = {bench.a, bench.b, bench.c};
    for (uint32_t i = 0; i < 12; i++) {
        fill(&bench, ITEMS_MAX);
        CHECK_EQ(
            acre_auto_run(bench.automatic, ITEMS_MAX, arrays, values_of(0), 2, NULL, &bench.err),
            0);
        check_answer(&bench, bench.c, ITEMS_MAX);
    }
    CHECK(bench.automatic->reason[COST_COPIED][0] != '\0');
    CHECK_EQ(acre_auto_run_by(bench.automatic, ACRE_WAY_GRAPH, ITEMS_MAX, arrays, values_of(0), 2,
                              &bench.err),
             ACRE_ELIMIT);
    close_bench(&bench);
}

static void one_side_without_a_compiler_is_left_out(void) {
    static const struct acre_source opencl = {
        .text = "__kernel void axpy(__global const float *a, __global const float *b,\n"
                "                   __global float *c, float k, ulong away, uint n) {}\n"};
    struct bench bench;
    open_bench(&bench, "", NULL);
    bench.options.source = &opencl; /* the CPU takes no OpenCL */
    CHECK_EQ(acre_auto_create(&bench.options, &bench.automatic, &bench.err), ACRE_EUNSUPPORTED);
    bench.options.native = native_axpy;
    make_auto(&bench);
    fill(&bench, 100);
    void *arrays[] = {bench.a, bench.b, bench.c};
    CHECK_EQ(acre_auto_run(bench.automatic, 100, arrays, values_of(0), 2, NULL, &bench.err), 0);
    check_answer(&bench, bench.c, 100);
    CHECK_EQ(acre_auto_run_by(bench.automatic, ACRE_WAY_LAUNCH, 100, arrays, values_of(0), 2,
                              &bench.err),
             ACRE_EUNSUPPORTED);
    close_bench(&bench);
}

/* --- what was learned ----------------------------------------------------------------------- */

static void run_some(struct bench *bench, uint32_t n, uint32_t calls) {
    void *arrays[] = {bench->a, bench->b, bench->c};
    for (uint32_t i = 0; i < calls; i++) {
        fill(bench, n);
        CHECK_EQ(acre_auto_run(bench->automatic, n, arrays, values_of(0), 2, NULL, NULL), 0);
        check_answer(bench, bench->c, n);
    }
}

static void what_was_learned_is_kept_below_the_cache(void) {
    struct tree tree = tree_create(NULL);
    struct bench bench;
    open_bench(&bench, tree_path(&tree, "cache"), NULL);
    bench.options.learned = NULL;
    for (uint32_t round = 0; round < 2; round++) {
        struct acre_auto_cost costs[8];
        make_auto(&bench);
        CHECK_STR(acre_auto_note(bench.automatic), "");
        CHECK_EQ(acre_auto_costs(bench.automatic, costs, 8), round == 0 ? 0 : 1);
        run_some(&bench, 700, 30);
        REQUIRE_EQ(acre_auto_costs(bench.automatic, costs, 8), 1);
        uint64_t calls = 0;
        for (int way = 0; way < ACRE_WAY_COUNT; way++) {
            calls += costs[0].calls[way];
        }
        CHECK_U64(calls, 30 * (round + 1));
        CHECK_HAS(bench.automatic->learned, "/cache/learned/");
        acre_auto_destroy(bench.automatic);
        bench.automatic = NULL;
    }
    bench.options.kernel = "turn"; /* another kernel, another file */
    bench.options.arrays = (struct acre_auto_array[]){{16, 16}};
    bench.options.array_count = 1;
    make_auto(&bench);
    struct acre_auto_cost cost;
    CHECK_EQ(acre_auto_costs(bench.automatic, &cost, 1), 0);
    CHECK_STR(acre_auto_note(bench.automatic), "");
    close_bench(&bench);
    tree_erase(&tree);
}

static void a_damaged_file_is_left_out_and_said(void) {
    struct tree tree = tree_create(NULL);
    struct bench bench;
    char path[200];
    snprintf(path, sizeof(path), "%s", tree_path(&tree, "some.costs"));
    open_bench(&bench, "", NULL);
    bench.options.learned = path;
    make_auto(&bench);
    run_some(&bench, 10, 20);
    acre_auto_destroy(bench.automatic);
    struct acre_buf text;
    acre_buf_init(&text, COST_TEXT_MAX_BYTES);
    REQUIRE_EQ(acre_file_read(path, COST_TEXT_MAX_BYTES, &text, NULL), 0);
    CHECK_HAS(text.data, "\nkernel axpy\ndevice cpu ");
    REQUIRE_EQ(truncate(path, (off_t)text.length - 6), 0);
    struct acre_auto_cost cost;
    make_auto(&bench);
    CHECK_HAS(acre_auto_note(bench.automatic), "line ");
    CHECK_EQ(acre_auto_costs(bench.automatic, &cost, 1), 0);
    run_some(&bench, 10, 20);
    acre_auto_destroy(bench.automatic);
    make_auto(&bench); /* it was written anew */
    CHECK_STR(acre_auto_note(bench.automatic), "");
    CHECK_EQ(acre_auto_costs(bench.automatic, &cost, 1), 1);
    acre_auto_destroy(bench.automatic);
    bench.options.device = NULL; /* the same name for something else */
    make_auto(&bench);
    CHECK_HAS(acre_auto_note(bench.automatic), "the costs are for 'axpy' on other devices");
    CHECK_EQ(acre_auto_costs(bench.automatic, &cost, 1), 0);
    acre_buf_finish(&text);
    close_bench(&bench);
    tree_erase(&tree);
}

/* --- many threads --------------------------------------------------------------------------- */

static void *run_thread(void *argument) {
    struct bench *bench = argument;
    static const uint32_t sizes[] = {1, 30, 700, 5000};
    float *data = malloc(3 * 5000 * sizeof(float));
    REQUIRE(data != NULL);
    void *arrays[] = {data, data + 5000, data + 10000};
    for (uint32_t i = 0; i < 400; i++) {
        uint32_t n = sizes[i % ACRE_COUNT(sizes)];
        for (uint32_t j = 0; j < n; j++) {
            data[j] = (float)(i + j);
            data[5000 + j] = (float)j;
            data[10000 + j] = -1;
        }
        struct acre_error err = {0};
        CHECK_EQ(acre_auto_run(bench->automatic, n, arrays, values_of(0), 2, NULL, &err), 0);
        bool is_right = true;
        for (uint32_t j = 0; j < n; j++) {
            is_right = is_right && data[10000 + j] == (float)(i + j) * 0.25f + (float)j;
        }
        CHECK(is_right);
    }
    free(data);
    return NULL;
}

static void threads_share_one(void) {
    enum { THREADS = 4 };
    struct bench bench;
    open_bench(&bench, "", NULL);
    make_auto(&bench);
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        REQUIRE_EQ(pthread_create(&threads[i], NULL, run_thread, &bench), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    struct acre_auto_cost costs[8];
    uint32_t count = acre_auto_costs(bench.automatic, costs, 8);
    uint64_t calls = 0;
    for (uint32_t i = 0; i < count; i++) {
        for (int way = 0; way < ACRE_WAY_COUNT; way++) {
            calls += costs[i].calls[way];
        }
    }
    CHECK_U64(calls, THREADS * 400);
    close_bench(&bench);
}

static atomic_bool hold;

static void hang_native(const struct acre_groups *groups, const void *const *arguments) {
    (void)groups;
    (void)arguments;
    while (atomic_load(&hold)) {
    }
}

static void lose_by_hang(struct acre_context *context) {
    struct acre_error err = {0};
    struct acre_stream *stream;
    struct acre_program *program;
    struct acre_kernel *kernel;
    struct acre_grid one = {.groups = {1, 1, 1}, .group = {1, 1, 1}};
    struct acre_arg value = ACRE_U32(0);
    REQUIRE_EQ(acre_stream_create(context, &stream, &err), 0);
    REQUIRE_EQ(acre_program_native(context, "void hang(uint n)", hang_native, &program, &err), 0);
    REQUIRE_EQ(acre_kernel_find(program, "hang", &kernel, &err), 0);
    atomic_store(&hold, true);
    REQUIRE_EQ(acre_launch(stream, kernel, one, &value, 1, &err), 0);
    CHECK_EQ(acre_stream_sync(stream, 20000, &err), ACRE_ETIMEOUT);
    atomic_store(&hold, false);
}

/* So that all cores are the best for so many items. */
static void teach_all(struct bench *bench, uint32_t items) {
    enum { COST_TIMES = 20 };
    uint32_t bucket = cost_bucket(items, COST_MEMORY_PLAIN);
    for (uint32_t i = 0; i < COST_TIMES * COST_VARIANTS_COUNT; i++) {
        struct cost_choice choice = {.variant = i % COST_VARIANTS_COUNT, .is_measured = true};
        costs_tell(&bench->automatic->costs, bucket, choice, choice.variant == COST_ALL ? 1 : 1000);
    }
}

static void a_cpu_that_is_lost_is_left_for_the_device(void) { /* GPU-6 */
    struct bench bench;
    struct acre_context_options isolated = {.isolation = ACRE_CONTEXT_ISOLATION_PROCESS};
    struct acre_context_options limited = {.isolation = ACRE_CONTEXT_ISOLATION_NONE,
                                           .kernel_limit_ms = 600};
    struct acre_context *cpu = NULL;
    open_bench(&bench, "", &isolated);
    REQUIRE_EQ(acre_context_open(bench.compute, 0, &limited, &cpu, &bench.err), 0);
    bench.options.cpu = cpu;
    make_auto(&bench);
    enum { N = 3000 };
    teach_all(&bench, N);
    void *arrays[] = {bench.a, bench.b, bench.c};
    for (uint32_t i = 0; i < 60; i++) {
        enum acre_way way = ACRE_WAY_COUNT;
        acre_test_context("call %u: %s", i, bench.err.text);
        fill(&bench, N);
        CHECK_EQ(acre_auto_run(bench.automatic, N, arrays, values_of(0), 2, &way, &bench.err), 0);
        check_answer(&bench, bench.c, N);
        CHECK(i != 5 || way == ACRE_WAY_CPU);
        if (i == 19) {
            lose_by_hang(cpu);
        }
    }
    acre_test_context("%s", "");
    close_bench(&bench);
}

static void held_axpy(const struct acre_groups *groups, const void *const *arguments) {
    while (atomic_load(&hold)) {
    }
    native_axpy(groups, arguments);
}

/* The kernel of a CPU that is lost goes on, and writes into the arrays: no device may have answered
 * meanwhile. The next call goes to the device. */
static void a_kernel_that_is_given_up_fails_its_call(void) { /* GPU-6 */
    struct bench bench;
    struct acre_context_options isolated = {.isolation = ACRE_CONTEXT_ISOLATION_PROCESS};
    struct acre_context_options limited = {.isolation = ACRE_CONTEXT_ISOLATION_NONE,
                                           .kernel_limit_ms = 200};
    struct acre_context *cpu = NULL;
    open_bench(&bench, "", &isolated);
    REQUIRE_EQ(acre_context_open(bench.compute, 0, &limited, &cpu, &bench.err), 0);
    bench.options.cpu = cpu;
    bench.options.native = held_axpy;
    make_auto(&bench);
    enum { N = 3000 };
    teach_all(&bench, N);
    bench.automatic->present &= ~BIT(COST_ONE); /* whose kernel nobody gives up */
    void *arrays[] = {bench.a, bench.b, bench.c};
    fill(&bench, N);
    atomic_store(&hold, true);
    int r = 0;
    for (uint32_t i = 0; i < 200 && r == 0; i++) {
        r = acre_auto_run(bench.automatic, N, arrays, values_of(0), 2, NULL, &bench.err);
        CHECK(r < 0 || atomic_load(&cpu->failed) == 0);
    }
    CHECK_EQ(r, ACRE_ETIMEOUT);
    CHECK_HAS(bench.err.text, "ran longer than");
    atomic_store(&hold, false);
    enum acre_way way = ACRE_WAY_CPU;
    float *fresh = acre_calloc(N, sizeof(*fresh));
    arrays[2] = fresh; /* the other one is not ours before the kernel has ended */
    CHECK_EQ(acre_auto_run(bench.automatic, N, arrays, values_of(0), 2, &way, &bench.err), 0);
    CHECK(way != ACRE_WAY_CPU);
    check_answer(&bench, fresh, N);
    free(fresh);
    close_bench(&bench);
}

static const struct acre_test tests[] = {
    {"variants_all_give_the_same", variants_all_give_the_same, 0},
    {"graphs_see_other_values_and_numbers", graphs_see_other_values_and_numbers, 0},
    {"arrays_in_mapped_memory_are_used_where_they_are",
     arrays_in_mapped_memory_are_used_where_they_are, 0},
    {"functions_get_the_arrays_themselves", functions_get_the_arrays_themselves, 0},
    {"bad_options_are_refused_by_name", bad_options_are_refused_by_name, 0},
    {"bad_calls_are_refused_by_name", bad_calls_are_refused_by_name, 0},
    {"a_device_that_fails_is_left_for_the_cpu", a_device_that_fails_is_left_for_the_cpu, 0},
    {"a_device_without_memory_goes_in_pieces", a_device_without_memory_goes_in_pieces, 0},
    {"one_side_without_a_compiler_is_left_out", one_side_without_a_compiler_is_left_out, 0},
    {"what_was_learned_is_kept_below_the_cache", what_was_learned_is_kept_below_the_cache, 0},
    {"a_damaged_file_is_left_out_and_said", a_damaged_file_is_left_out_and_said, 0},
    {"threads_share_one", threads_share_one, 0},
    {"a_cpu_that_is_lost_is_left_for_the_device", a_cpu_that_is_lost_is_left_for_the_device, 0},
    {"a_kernel_that_is_given_up_fails_its_call", a_kernel_that_is_given_up_fails_its_call, 0},
};
ACRE_TEST_MAIN(tests)
