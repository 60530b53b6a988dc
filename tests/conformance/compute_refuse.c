/* compute_refuse.c - bad input: refused before the device sees it, with a text that names what was
 * wrong and what is accepted; nothing leaked; the next good call works. */
#include "conformance/compute_suite.h"

#include <stdio.h>
#include <stdlib.h>

enum { N = 100 };

/* What each case starts and ends with: `add` on three buffers. */
struct bench {
    struct kit kit;
    struct acre_kernel *add;
    struct acre_buffer a, b, c;
    struct kit_held held;
};

static void set_up(struct bench *bench) {
    static const float ones[N];
    kit_open(&bench->kit);
    bench->add = kit_kernel(&bench->kit, "add");
    bench->a = kit_data(&bench->kit, ones, sizeof(ones));
    bench->b = kit_data(&bench->kit, ones, sizeof(ones));
    bench->c = kit_data(&bench->kit, ones, sizeof(ones));
    OK(acre_stream_sync(bench->kit.stream, ACRE_FOREVER, ERR));
    bench->held = kit_held(bench->kit.context);
}

/* Nothing leaked, nothing ran, and a good launch does. */
static void finish(struct bench *bench) {
    float back[N];
    struct kit *kit = &bench->kit;
    acre_test_context("%s", "");
    kit_get(kit, back, bench->c, sizeof(back));
    for (size_t i = 0; i < N; i++) {
        REQUIRE(back[i] == 0);
    }
    CHECK_HELD(kit->context, &bench->held);
    OK(acre_fill(kit->stream, bench->a, 0, sizeof(back), 0x3f800000, 4, ERR)); /* 1.0f */
    OK(acre_launch(
        kit->stream, bench->add, acre_grid_for(N),
        ARGS(ACRE_BUFFER(bench->a), ACRE_BUFFER(bench->b), ACRE_BUFFER(bench->c), ACRE_U32(N)),
        ERR));
    kit_get(kit, back, bench->c, sizeof(back));
    CHECK(back[0] == 1 && back[N - 1] == 1);
    kit_free(kit, bench->a);
    kit_free(kit, bench->b);
    kit_free(kit, bench->c);
    kit_close(kit);
}

static void refused_wrong_argument_count(void) {
    struct bench bench;
    set_up(&bench);
    struct acre_arg args[6] = {ACRE_BUFFER(bench.a), ACRE_BUFFER(bench.b), ACRE_BUFFER(bench.c),
                               ACRE_U32(N),          ACRE_U32(N),          ACRE_U32(N)};
    for (uint32_t count = 0; count < 6; count++) {
        if (count != 4) {
            char given[16];
            snprintf(given, sizeof(given), "%u", count);
            FAILS(acre_launch(bench.kit.stream, bench.add, acre_grid_for(N), args, count, ERR),
                  ACRE_EINVALID, "add", given, "4");
        }
    }
    FAILS(acre_launch(bench.kit.stream, bench.add, acre_grid_for(N), NULL, 0, ERR), ACRE_EINVALID,
          "add");
    finish(&bench);
}

static void refused_wrong_argument_kind_and_size(void) {
    struct bench bench;
    set_up(&bench);
    struct acre_arg good[] = {ACRE_BUFFER(bench.a), ACRE_BUFFER(bench.b), ACRE_BUFFER(bench.c),
                              ACRE_U32(N)};
    uint8_t bytes[64] = {0};
    const struct {
        uint32_t at;
        struct acre_arg arg;
        const char *name, *accepted;
    } rows[] = {
        {0, ACRE_U32(1), "'a'", "float"},
        {2, ACRE_F32(1), "'c'", "float"},
        {1, ACRE_U64(0x7f0000001000), "'b'", "float"}, /* an address is no buffer */
        {2, ACRE_LOCAL(64), "'c'", "float"},
        {3, ACRE_BUFFER(bench.a), "'n'", "uint"},
        {3, ACRE_F32(100), "'n'", "uint"},
        {3, ACRE_U64(100), "'n'", "4 bytes"},
        {3, ACRE_ARG_OF(INTEGER, 2, .u32 = 100), "'n'", "4 bytes"},
        {3, ACRE_ARG_OF(INTEGER, 0, .u32 = 100), "'n'", "4 bytes"},
        {3, ACRE_BYTES(bytes, 64), "'n'", "4 bytes"},
        {3, ACRE_BYTES(NULL, 4), "'n'", "uint"},
        {3, ACRE_LOCAL(4), "'n'", "uint"},
        {3, (struct acre_arg){.kind = 77, .bytes = 4}, "'n'", "uint"},
    };
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct acre_arg args[4];
        char number[16];
        memcpy(args, good, sizeof(args));
        args[rows[i].at] = rows[i].arg;
        acre_test_context("row %zu", i);
        snprintf(number, sizeof(number), "argument %u", rows[i].at + 1);
        FAILS(acre_launch(bench.kit.stream, bench.add, acre_grid_for(N), args, 4, ERR),
              ACRE_EINVALID, "add", number, rows[i].name, rows[i].accepted);
    }
    finish(&bench);
}

/* Their size is known to the compiler alone; and to what it left in the cache. */
static void refused_structs_of_another_size(void) {
    struct {
        float x;
        uint32_t n;
    } pair = {3, 2};
    uint8_t bytes[64] = {0};
    const uint32_t sizes[] = {1, 4, 7, 9, 12, 16, 64};
    for (size_t round = 0; round < 2; round++) {
        struct bench bench;
        set_up(&bench);
        struct acre_kernel *pairs = kit_kernel(&bench.kit, "pairs");
        bench.held = kit_held(bench.kit.context); /* with its program */
        for (size_t k = 0; k < ACRE_COUNT(sizes); k++) {
            acre_test_context("%u bytes", sizes[k]);
            FAILS(acre_launch(bench.kit.stream, pairs, kit_grid(1, 1),
                              ARGS(ACRE_BUFFER(bench.a), ACRE_BYTES(bytes, sizes[k])), ERR),
                  ACRE_EINVALID, "'pairs'", "argument 2", "'p'", "struct pair (8 bytes)");
        }
        float power = 0;
        OK(acre_launch(bench.kit.stream, pairs, kit_grid(1, 1),
                       ARGS(ACRE_BUFFER(bench.a), ACRE_BYTES(&pair, sizeof(pair))), ERR));
        kit_get(&bench.kit, &power, bench.a, sizeof(power));
        CHECK_NEAR((double)power, 9, 0);
        finish(&bench);
    }
}

static void refused_grids(void) {
    struct bench bench;
    set_up(&bench);
    uint32_t group_max = bench.kit.facts->group_max;
    const struct {
        struct acre_grid grid;
        const char *what;
    } rows[] = {
        {{{0, 1, 1}, {64, 1, 1}}, "groups"},
        {{{1, 1, 1}, {0, 1, 1}}, "group"},
        {{{0, 0, 0}, {0, 0, 0}}, "group"},
        {{{UINT32_MAX, 1, 1}, {256, 1, 1}}, "groups"},
        {{{1, UINT32_MAX, 1}, {1, 1, 1}}, "groups"},
        {{{1, 1, UINT32_MAX}, {1, 1, 1}}, "groups"},
        {{{1, 1, 1}, {group_max + 1, 1, 1}}, "group"},
        {{{1, 1, 1}, {group_max, 2, 1}}, "group"},
        {{{1, 1, 1}, {UINT32_MAX, UINT32_MAX, UINT32_MAX}}, "group"},
        {{{1, 1, 1}, {65536, 65536, 1}}, "group"}, /* 2^32: 0 where it wraps */
    };
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        acre_test_context("row %zu", i);
        FAILS(acre_launch(bench.kit.stream, bench.add, rows[i].grid,
                          ARGS(ACRE_BUFFER(bench.a), ACRE_BUFFER(bench.b), ACRE_BUFFER(bench.c),
                               ACRE_U32(N)),
                          ERR),
              ACRE_EINVALID, "add", rows[i].what, "accepted");
    }
    finish(&bench);
}

static void grids_for_items(void) {
    struct acre_grid grid = acre_grid_for(0);
    CHECK_EQ(grid.group[0], 256);
    CHECK_EQ(acre_grid_for(1).groups[0], 1);
    CHECK_EQ(acre_grid_for(256).groups[0], 1);
    CHECK_EQ(acre_grid_for(257).groups[0], 2);
    CHECK_U64(acre_grid_for(UINT64_C(1) << 39).groups[0], UINT32_C(1) << 31);
    CHECK(acre_grid_for(UINT64_MAX).groups[0] > INT32_MAX); /* which a launch refuses */
}

/* Every call that takes a buffer; `code` and `part` for each. */
static void try_everywhere(struct bench *bench, struct acre_buffer bad, int code,
                           const char *part) {
    struct kit *kit = &bench->kit;
    struct acre_stream *stream = kit->stream;
    uint32_t word = 0;
    uint64_t bytes = 99;
    FAILS(acre_copy_in(stream, bad, 0, &word, 4, ERR), code, part);
    FAILS(acre_copy_out(stream, &word, bad, 0, 4, ERR), code, part);
    FAILS(acre_fill(stream, bad, 0, 4, 0, 4, ERR), code, part);
    FAILS(acre_buffer_free(stream, bad, ERR), code, part);
    FAILS(acre_buffer_size(kit->context, bad, &bytes, ERR), code, part);
    FAILS(acre_launch(
              stream, bench->add, acre_grid_for(N),
              ARGS(ACRE_BUFFER(bench->a), ACRE_BUFFER(bench->b), ACRE_BUFFER(bad), ACRE_U32(N)),
              ERR),
          code, "add", "argument 3", "'c'", part);
    CHECK(acre_buffer_host(kit->context, bad) == NULL);
    CHECK_U64(bytes, 99);
    CHECK_U64(word, 0);
}

static void refused_freed_and_unknown_buffers(void) {
    struct bench bench;
    set_up(&bench);
    for (int kind = 0; kind < 3; kind++) {
        struct acre_buffer gone = kit_buffer(&bench.kit, (enum acre_memory)kind, 4096);
        kit_free(&bench.kit, gone);
        acre_test_context("freed, kind %d", kind);
        try_everywhere(&bench, gone, ACRE_ENOTFOUND, "freed");
        FAILS(acre_copy(bench.kit.stream, bench.a, 0, gone, 0, 4, ERR), ACRE_ENOTFOUND, "freed");
        FAILS(acre_copy(bench.kit.stream, gone, 0, bench.a, 0, 4, ERR), ACRE_ENOTFOUND, "freed");
    }
    OK(acre_stream_sync(bench.kit.stream, ACRE_FOREVER, ERR));
    acre_test_context("%s", "none");
    try_everywhere(&bench, (struct acre_buffer){0}, ACRE_ENOTFOUND, "buffer");
    acre_test_context("%s", "never was");
    for (int i = 0; i < 50; i++) {
        uint64_t id = acre_rand_next(&bench.kit.rand);
        struct acre_error *err = ERR;
        int r = acre_buffer_free(bench.kit.stream, (struct acre_buffer){id}, err);
        CHECK(r == ACRE_ENOTFOUND || r == ACRE_EINVALID);
        CHECK(err->text[0] != '\0');
    }
    bench.held = kit_held(bench.kit.context); /* pinned memory may be kept for the next */
    finish(&bench);
}

static void refused_buffers_of_another_context(void) {
    struct bench bench;
    set_up(&bench);
    struct acre_context *context = kit_context(&bench.kit, (struct acre_context_options){0});
    struct acre_stream *stream = NULL;
    struct acre_buffer foreign;
    OK(acre_stream_create(context, &stream, ERR));
    OK(acre_buffer_alloc(stream, ACRE_MEMORY_DEVICE, 4096, &foreign, ERR));
    bench.held = kit_held(bench.kit.context);
    try_everywhere(&bench, foreign, ACRE_EINVALID, "context");
    struct acre_program *program = NULL;
    struct acre_kernel *kernel = kit_kernel_in(context, "add", &program);
    FAILS(acre_launch(
              bench.kit.stream, kernel, acre_grid_for(N),
              ARGS(ACRE_BUFFER(bench.a), ACRE_BUFFER(bench.b), ACRE_BUFFER(bench.c), ACRE_U32(N)),
              ERR),
          ACRE_EINVALID, "add");
    OK(acre_buffer_free(stream, foreign, ERR)); /* is still whole */
    acre_program_destroy(program);
    bench.held.files = kit_held(bench.kit.context).files;
    finish(&bench);
    /* kit_close closed the other context with its runtime. */
}

static void refused_offsets_past_the_end(void) {
    struct bench bench;
    set_up(&bench);
    static uint8_t data[1000];
    struct acre_stream *stream = bench.kit.stream;
    static const uint64_t rows[][2] = {/* offset, bytes; the buffer has 400 */
                                       {0, 401},
                                       {400, 1},
                                       {399, 2},
                                       {401, 0},
                                       {UINT64_MAX, 1},
                                       {UINT64_MAX, 2},
                                       {1, UINT64_MAX},
                                       {UINT64_MAX - 100, 200},
                                       {UINT64_C(1) << 63, UINT64_C(1) << 63}};
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        uint64_t at = rows[i][0];
        uint64_t bytes = rows[i][1];
        acre_test_context("row %zu", i);
        FAILS(acre_copy_in(stream, bench.c, at, data, bytes, ERR), ACRE_EINVALID, "400");
        FAILS(acre_copy_out(stream, data, bench.c, at, bytes, ERR), ACRE_EINVALID, "400");
        FAILS(acre_copy(stream, bench.c, at, bench.a, 0, bytes, ERR), ACRE_EINVALID, "400");
        FAILS(acre_copy(stream, bench.a, 0, bench.c, at, bytes, ERR), ACRE_EINVALID, "400");
        FAILS(acre_fill(stream, bench.c, at, bytes, 0, 1, ERR), ACRE_EINVALID, "400");
    }
    struct acre_arg args[] = {ACRE_BUFFER(bench.a), ACRE_BUFFER(bench.b),
                              ACRE_BUFFER_AT(bench.c, 400), ACRE_U32(0)};
    FAILS(acre_launch(stream, bench.add, kit_grid(1, 1), args, 4, ERR), ACRE_EINVALID, "add", "'c'",
          "400");
    args[2] = ACRE_BUFFER_AT(bench.c, 2); /* no address of a float */
    FAILS(acre_launch(stream, bench.add, kit_grid(1, 1), args, 4, ERR), ACRE_EINVALID, "add", "'c'",
          "2", "4");
    finish(&bench);
}

static void refused_pinned_memory_in_kernels(void) {
    struct bench bench;
    set_up(&bench);
    struct acre_buffer pinned = kit_buffer(&bench.kit, ACRE_MEMORY_PINNED, 4096);
    FAILS(acre_launch(
              bench.kit.stream, bench.add, acre_grid_for(N),
              ARGS(ACRE_BUFFER(bench.a), ACRE_BUFFER(bench.b), ACRE_BUFFER(pinned), ACRE_U32(N)),
              ERR),
          ACRE_EINVALID, "add", "'c'", "pinned", "mapped");
    kit_free(&bench.kit, pinned);
    bench.held = kit_held(bench.kit.context);
    finish(&bench);
}

static void refused_without_wanting_the_text(void) { /* err may be NULL everywhere */
    struct bench bench;
    set_up(&bench);
    struct acre_stream *stream = bench.kit.stream;
    struct acre_buffer none = {0};
    struct acre_kernel *kernel = NULL;
    struct acre_program *program = NULL;
    struct acre_graph *graph = NULL;
    struct acre_source wrong = {.text = "kernel void f(global uint *p) {\n    oops\n}\n"};
    CHECK_EQ(acre_buffer_free(stream, none, NULL), ACRE_ENOTFOUND);
    CHECK_EQ(acre_copy_in(stream, none, 0, &none, 1, NULL), ACRE_ENOTFOUND);
    CHECK_EQ(acre_launch(stream, bench.add, acre_grid_for(0), NULL, 0, NULL), ACRE_EINVALID);
    CHECK_EQ(acre_graph_end(stream, &graph, NULL), ACRE_ECONFLICT);
    CHECK_EQ(acre_program_build(bench.kit.context, &wrong, &program, NULL, NULL), ACRE_EINVALID);
    program = bench.kit.programs[0];
    REQUIRE(program != NULL);
    CHECK_EQ(acre_kernel_find(program, "nobody", &kernel, NULL), ACRE_ENOTFOUND);
    finish(&bench);
}

/* A context that is closed leaves its number to the next; its ids say nothing there. */
static void refused_ids_of_a_closed_context(void) {
    static const char secret[64] = "of the second";
    struct kit kit;
    kit_open(&kit);
    for (int kind = 0; kind < 3; kind++) {
        acre_test_context("kind %d", kind);
        struct acre_stream *stream = NULL;
        struct acre_buffer stale[4], own[4];
        struct acre_context *context =
            kit_context(&kit, (struct acre_context_options){.tenant = "first"});
        OK(acre_stream_create(context, &stream, ERR));
        for (size_t i = 0; i < ACRE_COUNT(stale); i++) {
            OK(acre_buffer_alloc(stream, (enum acre_memory)kind, 64, &stale[i], ERR));
        }
        acre_context_close(context);
        context = kit_context(&kit, (struct acre_context_options){.tenant = "second"});
        OK(acre_stream_create(context, &stream, ERR));
        for (size_t i = 0; i < ACRE_COUNT(own); i++) {
            OK(acre_buffer_alloc(stream, (enum acre_memory)kind, 64, &own[i], ERR));
            OK(acre_copy_in(stream, own[i], 0, secret, sizeof(secret), ERR));
        }
        for (size_t i = 0; i < ACRE_COUNT(stale); i++) {
            char got[64] = "";
            FAILS(acre_copy_out(stream, got, stale[i], 0, 64, ERR), ACRE_ENOTFOUND, "buffer");
            FAILS(acre_fill(stream, stale[i], 0, 64, 0, 4, ERR), ACRE_ENOTFOUND, "buffer");
            FAILS(acre_buffer_free(stream, stale[i], ERR), ACRE_ENOTFOUND, "buffer");
            CHECK(acre_buffer_host(context, stale[i]) == NULL);
            CHECK_STR(got, "");
        }
        for (size_t i = 0; i < ACRE_COUNT(own); i++) {
            char got[64] = "";
            OK(acre_copy_out(stream, got, own[i], 0, 64, ERR));
            CHECK_STR(got, secret);
            OK(acre_buffer_free(stream, own[i], ERR));
        }
        acre_context_close(context);
    }
    kit_close(&kit);
}

static const struct acre_test tests[] = {
    TEST(refused_wrong_argument_count),
    TEST(refused_wrong_argument_kind_and_size),
    TEST(refused_structs_of_another_size),
    TEST(refused_grids),
    TEST(grids_for_items),
    TEST(refused_freed_and_unknown_buffers),
    TEST(refused_buffers_of_another_context),
    TEST(refused_offsets_past_the_end),
    TEST(refused_pinned_memory_in_kernels),
    TEST(refused_without_wanting_the_text),
    TEST(refused_ids_of_a_closed_context),
};
SUITE(compute_refuse_suite, tests);
