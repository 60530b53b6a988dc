/* compute_batch.c - pipelines: the plan of GRN-3, sizes, pieces, order, several contexts, the item
 * that failed. Answers depend on the item's number in the whole, so that a piece in the wrong
 * place is found. All exact. */
#include "conformance/compute_suite.h"

#include <stdio.h>
#include <stdlib.h>

static void plans_follow_the_rule(void) { /* GRN-3 */
    const uint64_t mib = KIT_MIB;
    const struct {
        uint64_t items;
        uint32_t in, out;
        uint64_t available, part, parts;
    } rows[] = {
        {700000000, 4, 4, 6000 * mib, 629145600, 2}, /* 629,145,600 + 70,854,400 */
        {629145600, 4, 4, 6000 * mib, 629145600, 1},
        {629145601, 4, 4, 6000 * mib, 629145600, 2},
        {1, 4, 4, 6000 * mib, 629145600, 1},
        {0, 4, 4, 6000 * mib, 629145600, 0},
        {1000, 1, 0, 1000, 800, 2},
        {1000, 1, 1, 640, 256, 4},
        {10, 0, 8, 80 * mib, 8388608, 1},
    };
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct acre_pipeline_plan plan = {0};
        acre_test_context("row %zu", i);
        OK(acre_pipeline_plan(rows[i].items, rows[i].in, rows[i].out, rows[i].available, &plan,
                              ERR));
        CHECK_U64(plan.items, rows[i].items);
        /* A part of a whole that fits may be told as the whole. */
        CHECK(plan.part_items == rows[i].part ||
              (rows[i].parts <= 1 && plan.part_items == rows[i].items));
        CHECK_U64(plan.parts, rows[i].parts);
    }
}

static void plans_that_cannot_be_are_refused(void) { /* GRN-3 */
    struct acre_pipeline_plan plan = {.items = 77};
    FAILS(acre_pipeline_plan(1000, 4, 4, 0, &plan, ERR), ACRE_ENOFIT, "256");
    FAILS(acre_pipeline_plan(1000, 4, 4, 1000, &plan, ERR), ACRE_ENOFIT, "256");
    FAILS(acre_pipeline_plan(1000, UINT32_MAX, UINT32_MAX, 1 << 30, &plan, ERR), ACRE_ENOFIT,
          "256");
    FAILS(acre_pipeline_plan(1000, 0, 0, 1 << 30, &plan, ERR), ACRE_EINVALID, "");
    CHECK_U64(plan.items, 77);
    OK(acre_pipeline_plan(UINT64_MAX, 1, 1, UINT64_MAX, &plan, ERR)); /* nothing overflows */
    CHECK(plan.parts >= 2 && plan.parts <= 3);
}

struct run {
    struct kit *kit;
    struct acre_kernel *kernels[4];
    struct acre_program *programs[4];
    struct acre_context *contexts[4];
    uint32_t count;
};

/* batch() over `items` random words, checked; the host's memory is plain or pinned. */
static void run_batch(struct run *run, uint64_t items, uint64_t piece_bytes, uint32_t slots,
                      bool is_pinned) {
    struct kit *kit = run->kit;
    size_t bytes = items * 4;
    struct acre_buffer pinned[2] = {{0}, {0}};
    uint32_t *in = NULL;
    uint32_t *out = NULL;
    if (is_pinned) {
        pinned[0] = kit_buffer(kit, ACRE_MEMORY_PINNED, bytes + 8);
        pinned[1] = kit_buffer(kit, ACRE_MEMORY_PINNED, bytes + 8);
        in = acre_buffer_host(kit->context, pinned[0]);
        out = acre_buffer_host(kit->context, pinned[1]);
    } else {
        in = malloc(bytes + 8);
        out = malloc(bytes + 8);
    }
    REQUIRE(in != NULL && out != NULL);
    kit_random(kit, in, bytes);
    out[items] = 0xcafe;
    struct acre_pipeline pipeline = {.kernels = run->kernels,
                                     .kernel_count = run->count,
                                     .in = in,
                                     .out = out,
                                     .items = items,
                                     .in_bytes = 4,
                                     .out_bytes = 4,
                                     .piece_bytes = piece_bytes,
                                     .slots = slots};
    struct acre_pipeline_report report = {0};
    OK(acre_pipeline_run(&pipeline, &report, ERR));
    for (uint64_t i = 0; i < items; i++) {
        if (out[i] != in[i] * 3 + (uint32_t)i) {
            acre_test_context("item %llu of %llu", (unsigned long long)i,
                              (unsigned long long)items);
            CHECK_U64(out[i], in[i] * 3 + (uint32_t)i);
            break;
        }
    }
    CHECK_U64(out[items], 0xcafe);
    CHECK((report.pieces == 0) == (items == 0));
    CHECK(piece_bytes == 0 || report.pieces >= items * 8 / (piece_bytes * 2));
    CHECK_U64(report.failed_item, UINT64_MAX);
    CHECK(report.kernel_efficiency <= 1.01); /* < 0: unknown */
    CHECK(report.seconds >= 0);
    OK(acre_pipeline_run(&pipeline, NULL, ERR)); /* again, no report */
    if (is_pinned) {
        kit_free(kit, pinned[0]);
        kit_free(kit, pinned[1]);
    } else {
        free(in);
        free(out);
    }
}

static void pipelines_of_all_sizes(void) { /* GRN-3 */
    static const struct {
        uint64_t items, piece_bytes;
        uint32_t slots;
        bool is_pinned;
    } rows[] = {{0, 0, 0, false},           {1, 0, 0, false},         {1, 4096, 1, true},
                {257, 0, 0, true},          {100003, 0, 0, false},    {100003, 4096, 3, false},
                {100003, 4096, 3, true},    {100003, 65536, 1, true}, {1000000, 100000, 2, false},
                {3000001, 1 << 20, 4, true}};
    struct kit kit;
    kit_open(&kit);
    struct run run = {.kit = &kit, .kernels = {kit_kernel(&kit, "batch")}, .count = 1};
    struct kit_held before = kit_held(kit.context);
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        acre_test_context("%llu items, pieces of %llu, %u slots, %s",
                          (unsigned long long)rows[i].items,
                          (unsigned long long)rows[i].piece_bytes, rows[i].slots,
                          rows[i].is_pinned ? "pinned" : "plain");
        run_batch(&run, rows[i].items, rows[i].piece_bytes, rows[i].slots, rows[i].is_pinned);
    }
    struct kit_held after = kit_held(kit.context);
    CHECK_U64(after.used_bytes, before.used_bytes);
    CHECK_EQ(after.buffers, before.buffers);
    kit_close(&kit);
}

static void pipelines_over_several_contexts(void) { /* GPU-5 */
    struct kit kit;
    kit_open(&kit);
    struct run run = {.kit = &kit, .kernels = {kit_kernel(&kit, "batch")}, .count = 3};
    for (uint32_t i = 1; i < run.count; i++) {
        run.contexts[i] = kit_context(&kit, (struct acre_context_options){.tenant = "more"});
        run.kernels[i] = kit_kernel_in(run.contexts[i], "batch", &run.programs[i]);
    }
    run_batch(&run, 500009, 32768, 2, false);
    run_batch(&run, 500009, 32768, 2, true); /* pinned by one of them */
    run_batch(&run, 1, 0, 0, false);
    for (uint32_t i = 1; i < run.count; i++) {
        acre_context_close(run.contexts[i]); /* with its program */
    }
    kit_close(&kit);
}

static void pipelines_with_values_and_other_widths(void) {
    struct kit kit;
    kit_open(&kit);
    enum { ITEMS = 70001 };
    uint8_t *in = malloc(ITEMS);
    uint64_t *out = malloc(ITEMS * sizeof(uint64_t));
    REQUIRE(in != NULL && out != NULL);
    kit_random(&kit, in, ITEMS);
    struct acre_kernel *kernel = kit_kernel(&kit, "widen");
    struct acre_arg more = ACRE_U32(12345);
    struct acre_pipeline pipeline = {.kernels = &kernel,
                                     .kernel_count = 1,
                                     .in = in,
                                     .out = out,
                                     .items = ITEMS,
                                     .in_bytes = 1,
                                     .out_bytes = 8,
                                     .more = &more,
                                     .more_count = 1,
                                     .piece_bytes = 10000};
    OK(acre_pipeline_run(&pipeline, NULL, ERR));
    for (uint64_t i = 0; i < ITEMS; i++) {
        REQUIRE_EQ(out[i], (i << 16) + in[i] + 12345);
    }
    free(in);
    free(out);
    kit_close(&kit);
}

/* A side of 0 bytes has no parameter: nothing goes in, or nothing comes out. */
static void pipelines_of_one_side(void) {
    struct kit kit;
    kit_open(&kit);
    enum { ITEMS = 100001 };
    uint32_t *out = calloc(ITEMS, 4);
    REQUIRE(out != NULL);
    struct acre_kernel *kernel = kit_kernel(&kit, "generate");
    struct acre_pipeline pipeline = {.kernels = &kernel,
                                     .kernel_count = 1,
                                     .out = out,
                                     .items = ITEMS,
                                     .out_bytes = 4,
                                     .piece_bytes = 50000};
    OK(acre_pipeline_run(&pipeline, NULL, ERR));
    for (uint32_t i = 0; i < ITEMS; i++) {
        REQUIRE_EQ(out[i], i * 7);
    }
    free(out);
    kit_close(&kit);
}

static void pipelines_that_cannot_run_are_refused(void) {
    struct kit kit;
    kit_open(&kit);
    static uint32_t in[1000], out[1000];
    struct acre_kernel *right = kit_kernel(&kit, "batch");
    struct acre_kernel *wrong = kit_kernel(&kit, "increment");
    struct acre_arg more = ACRE_BUFFER((struct acre_buffer){1});
    const struct acre_pipeline base = {.kernels = &right,
                                       .kernel_count = 1,
                                       .in = in,
                                       .out = out,
                                       .items = 1000,
                                       .in_bytes = 4,
                                       .out_bytes = 4};
    struct acre_pipeline_report report;
    struct kit_held before = kit_held(kit.context);
    struct acre_pipeline pipeline = base;
    pipeline.kernels = &wrong;
    FAILS(acre_pipeline_run(&pipeline, &report, ERR), ACRE_EINVALID, "increment");
    pipeline = base;
    pipeline.kernel_count = 0;
    CHECK_EQ(acre_pipeline_run(&pipeline, &report, ERR), ACRE_EINVALID);
    pipeline = base;
    pipeline.in = NULL;
    CHECK_EQ(acre_pipeline_run(&pipeline, &report, ERR), ACRE_EINVALID);
    pipeline = base;
    pipeline.items = UINT64_MAX; /* no array is that long */
    CHECK_EQ(acre_pipeline_run(&pipeline, &report, ERR), ACRE_EINVALID);
    pipeline = base;
    pipeline.more = &more; /* one too many, and no value */
    pipeline.more_count = 1;
    CHECK_EQ(acre_pipeline_run(&pipeline, &report, ERR), ACRE_EINVALID);
    CHECK_HELD(kit.context, &before);
    OK(acre_pipeline_run(&base, &report, ERR));
    CHECK_U64(out[999], in[999] * 3 + 999);
    kit_close(&kit);
}

static void pipelines_tell_the_item_that_failed(void) { /* GRN-3: first failure aborts */
    kit_needs_isolation();
    struct kit kit;
    kit_open(&kit);
    enum { ITEMS = 200000, PIECE = 20000, BAD = 123456 };
    uint32_t *data = calloc(ITEMS, 4);
    uint32_t *out = calloc(ITEMS, 4);
    REQUIRE(data != NULL && out != NULL);
    struct acre_kernel *kernel = kit_kernel(&kit, "stumble");
    struct acre_arg more = ACRE_U64(BAD);
    struct acre_pipeline pipeline = {.kernels = &kernel,
                                     .kernel_count = 1,
                                     .in = data,
                                     .out = out,
                                     .items = ITEMS,
                                     .in_bytes = 4,
                                     .out_bytes = 4,
                                     .more = &more,
                                     .more_count = 1,
                                     .piece_bytes = PIECE * 4,
                                     .slots = 1};
    struct acre_pipeline_report report = {0};
    struct acre_error *err = ERR;
    int r = acre_pipeline_run(&pipeline, &report, err);
    printf("%s: %s\n", acre_error_name(r), err->text);
    CHECK_EQ(r, ACRE_EUNAVAILABLE);
    /* The piece with the item, or one that was under way beside it. */
    CHECK(report.failed_item <= BAD);
    CHECK(report.failed_item + 8 * PIECE > BAD);
    more = ACRE_U64(UINT64_MAX); /* no such item */
    OK(acre_pipeline_run(&pipeline, &report, ERR));
    CHECK_U64(report.failed_item, UINT64_MAX);
    CHECK_U64(out[ITEMS - 1], 1);
    free(data);
    free(out);
    kit_close(&kit);
}

/* Pieces and slots are planned to fit the limit, and do. */
static void pipelines_fit_small_limits(void) { /* GRN-3 */
    static const struct {
        uint64_t limit_mib;
        uint32_t slots;
    } rows[] = {{8, 0}, {17, 2}, {29, 1}, {32, 5}, {41, 3}, {68, 3}, {100, 4}};
    enum { ITEMS = 24 * KIT_MIB };
    struct kit kit;
    kit_open(&kit);
    uint32_t *out = malloc(ITEMS * sizeof(*out));
    REQUIRE(out != NULL);
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        acre_test_context("%llu MiB, %u slots", (unsigned long long)rows[i].limit_mib,
                          rows[i].slots);
        struct acre_context *context = kit_context(
            &kit, (struct acre_context_options){.memory_limit_bytes = rows[i].limit_mib * KIT_MIB});
        struct acre_program *program = NULL;
        struct acre_kernel *kernel = kit_kernel_in(context, "generate", &program);
        /* A little more than fits at once. */
        uint64_t items = ACRE_MIN(rows[i].limit_mib * KIT_MIB / 3, (uint64_t)ITEMS);
        struct acre_pipeline pipeline = {.kernels = &kernel,
                                         .kernel_count = 1,
                                         .out = out,
                                         .items = items,
                                         .out_bytes = 4,
                                         .slots = rows[i].slots,
                                         .piece_bytes = 64 * KIT_MIB};
        out[items - 1] = 0;
        OK(acre_pipeline_run(&pipeline, NULL, ERR));
        CHECK_U64(out[1], 7);
        CHECK_U64(out[items - 1], (uint32_t)(items - 1) * 7);
        acre_context_close(context);
    }
    free(out);
    kit_close(&kit);
}

/* A report says what became of the call, also of one that was refused; nothing to do is done. */
static void pipelines_report_when_nothing_is_done(void) {
    struct kit kit;
    kit_open(&kit);
    static uint32_t in[10], out[10];
    struct acre_kernel *right = kit_kernel(&kit, "batch");
    const struct acre_pipeline base = {
        .kernels = &right, .kernel_count = 1, .in_bytes = 4, .out_bytes = 4};
    struct acre_pipeline rows[] = {base, base, base};
    rows[0].items = 10; /* of no arrays */
    rows[1].kernel_count = 0;
    rows[2].slots = 1000;
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct acre_pipeline_report report;
        memset(&report, 0x55, sizeof(report));
        acre_test_context("row %zu", i);
        if (i > 0) {
            rows[i].items = 10;
            rows[i].in = in;
            rows[i].out = out;
        }
        CHECK_EQ(acre_pipeline_run(&rows[i], &report, ERR), ACRE_EINVALID);
        CHECK_U64(report.failed_item, UINT64_MAX);
        CHECK_U64(report.pieces, 0);
        CHECK(report.seconds == 0);
    }
    acre_test_context("%s", "no items");
    struct acre_pipeline_report report;
    memset(&report, 0x55, sizeof(report));
    OK(acre_pipeline_run(&base, &report, ERR));
    CHECK_U64(report.failed_item, UINT64_MAX);
    CHECK_U64(report.pieces, 0);
    kit_close(&kit);
}

static const struct acre_test tests[] = {
    TEST(plans_follow_the_rule),
    TEST(plans_that_cannot_be_are_refused),
    TEST(pipelines_of_all_sizes),
    TEST(pipelines_over_several_contexts),
    TEST(pipelines_with_values_and_other_widths),
    TEST(pipelines_of_one_side),
    TEST(pipelines_that_cannot_run_are_refused),
    TEST(pipelines_tell_the_item_that_failed),
    TEST(pipelines_fit_small_limits),
    TEST(pipelines_report_when_nothing_is_done),
};
SUITE(compute_batch_suite, tests);
