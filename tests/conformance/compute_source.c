/* compute_source.c - sources: portable, plain, not compiling; what the compiler said. */
#include "conformance/compute_suite.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static struct acre_program *build_text(struct kit *kit, const char *text, const char *options,
                                       enum acre_language language) {
    struct acre_source source = {
        .text = text, .name = "text.acl", .options = options, .language = language};
    struct acre_program *program = NULL;
    OK(acre_program_build(kit->context, &source, &program, NULL, ERR));
    return program;
}

static void sources_of_the_suite_all_compile(void) {
    struct kit kit;
    kit_open(&kit);
    for (size_t i = 0; i < compute_source_count; i++) {
        const struct compute_source *source = &compute_sources[i];
        if ((kit.facts->capabilities & source->needs) != source->needs) {
            continue;
        }
        acre_test_context("%s", source->name);
        struct acre_build_report report = {0};
        struct acre_program *program = NULL;
        OK(acre_program_build(kit.context,
                              &(struct acre_source){.text = source->text, .name = source->name},
                              &program, &report, ERR));
        CHECK(report.log != NULL);
        CHECK(report.build_ms >= 0);
        acre_build_report_finish(&report);
        char names[256];
        snprintf(names, sizeof(names), "%s", source->kernels);
        char *rest = names;
        for (char *name; (name = strsep(&rest, " ")) != NULL;) {
            struct acre_kernel *kernel = NULL;
            OK(acre_kernel_find(program, name, &kernel, ERR));
            CHECK(kernel != NULL);
        }
        acre_program_destroy(program);
    }
    acre_program_destroy(NULL);
    kit_close(&kit);
}

static const char plain_opencl[] =
    "__kernel void plain(__global const float4 *in, __global float4 *out, const float4 add,\n"
    "                    __local float4 *temporary, uint n) {\n"
    "    uint i = get_global_id(0);\n"
    "    uint l = get_local_id(0);\n"
    "    temporary[l] = i < n ? in[i] : (float4)(0);\n"
    "    barrier(CLK_LOCAL_MEM_FENCE);\n"
    "    if (i < n) {\n"
    "        out[i] = temporary[l] + add;\n"
    "    }\n"
    "}\n";
/* CUDA and HIP; names as C++ mangles them are found by their plain names. */
static const char plain_cuda[] =
    "__device__ float4 plus(float4 a, float4 b) {\n"
    "    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);\n"
    "}\n"
    "__global__ void plain(const float4 *in, float4 *__restrict__ out, const float4 add,\n"
    "                      unsigned int n) {\n"
    "    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    if (i < n) {\n"
    "        out[i] = plus(in[i], add);\n"
    "    }\n"
    "}\n"
    "extern \"C\" __global__ void plain_c(int *out) {\n"
    "    *out = 1;\n"
    "}\n";

/* The language of its own; vectors by value; local memory as an argument where there is such. */
static void sources_plain_of_its_own_language(void) {
    struct kit kit;
    kit_open(&kit);
    if (kit_is("cpu")) {
        acre_test_skip("the CPU's own kernels are C functions: native_functions_are_kernels");
    }
    enum { COUNT = 1000 };
    static float in[COUNT * 4], out[COUNT * 4];
    float add[4] __attribute__((aligned(16)));
    kit_random_floats(&kit, in, COUNT * 4, -1, 1);
    kit_random_floats(&kit, add, 4, -1, 1);
    const char *text = kit_is("opencl") ? plain_opencl : plain_cuda;
    struct acre_program *program = build_text(&kit, text, NULL, ACRE_LANGUAGE_AUTO);
    struct acre_kernel *kernel = NULL;
    OK(acre_kernel_find(program, "plain", &kernel, ERR));
    struct acre_buffer from = kit_data(&kit, in, sizeof(in));
    struct acre_buffer to = kit_buffer(&kit, ACRE_MEMORY_DEVICE, sizeof(out));
    if (kit_is("opencl")) {
        OK(acre_launch(kit.stream, kernel, kit_grid(16, 64),
                       ARGS(ACRE_BUFFER(from), ACRE_BUFFER(to), ACRE_BYTES(add, 16),
                            ACRE_LOCAL(64 * 16), ACRE_U32(COUNT)),
                       ERR));
        FAILS(acre_launch(kit.stream, kernel, kit_grid(16, 64),
                          ARGS(ACRE_BUFFER(from), ACRE_BUFFER(to), ACRE_BYTES(add, 16),
                               ACRE_LOCAL(0), ACRE_U32(COUNT)),
                          ERR),
              ACRE_EINVALID, "plain", "temporary");
    } else {
        OK(acre_launch(
            kit.stream, kernel, kit_grid(16, 64),
            ARGS(ACRE_BUFFER(from), ACRE_BUFFER(to), ACRE_BYTES(add, 16), ACRE_U32(COUNT)), ERR));
        OK(acre_kernel_find(program, "plain_c", &kernel, ERR));
    }
    kit_get(&kit, out, to, sizeof(out));
    for (size_t i = 0; i < COUNT * 4; i++) {
        in[i] += add[i % 4];
    }
    CHECK_SAME(out, in, sizeof(in));
    acre_program_destroy(program);
    kit_free(&kit, from);
    kit_free(&kit, to);
    kit_close(&kit);
}

static void sources_of_another_language_are_refused(void) {
    struct kit kit;
    kit_open(&kit);
    struct acre_program *program = NULL;
    struct acre_source foreign = {.text = kit_is("opencl") ? plain_cuda : plain_opencl,
                                  .name = "foreign"};
    int r = acre_program_build(kit.context, &foreign, &program, NULL, ERR);
    if (kit_is("cpu") && r == 0) { /* it may take OpenCL; CUDA it cannot */
        acre_program_destroy(program);
        program = NULL;
        foreign.text = plain_cuda;
    }
    FAILS(acre_program_build(kit.context, &foreign, &program, NULL, ERR), ACRE_EUNSUPPORTED,
          kit_is("opencl") || strcmp(foreign.text, plain_cuda) == 0 ? "cuda" : "opencl");
    CHECK(program == NULL);
    kit_close(&kit);
}

static void sources_take_options(void) {
    struct kit kit;
    kit_open(&kit);
    struct acre_program *program =
        build_text(&kit, "kernel void answer(global uint *out) {\n    out[0] = VALUE + MORE;\n}\n",
                   "-DVALUE=40 -DMORE=2", ACRE_LANGUAGE_PORTABLE);
    struct acre_kernel *kernel = NULL;
    OK(acre_kernel_find(program, "answer", &kernel, ERR));
    struct acre_buffer out = kit_buffer(&kit, ACRE_MEMORY_DEVICE, 4);
    OK(acre_launch(kit.stream, kernel, kit_grid(1, 1), ARGS(ACRE_BUFFER(out)), ERR));
    uint32_t got = 0;
    kit_get(&kit, &got, out, 4);
    CHECK_U64(got, 42);
    acre_program_destroy(program);
    kit_free(&kit, out);
    kit_close(&kit);
}

/* "name:3" or "name(3)", as compilers write positions. */
static bool has_position(const char *text, const char *name, int line) {
    char positions[2][64];
    snprintf(positions[0], sizeof(positions[0]), "%s:%d", name, line);
    snprintf(positions[1], sizeof(positions[1]), "%s(%d)", name, line);
    return strstr(text, positions[0]) != NULL || strstr(text, positions[1]) != NULL;
}

static void sources_that_do_not_compile_say_where(void) {
    static const struct {
        const char *text;
        int line;
        const char *about; /* what the compiler must name */
    } rows[] = {
        {"kernel void f(global uint *p) {\n    p[0] = 1;\n    p[1] = nothing_known;\n}\n", 3,
         "nothing_known"},
        {"kernel void f(global uint *p) {\n    p[0] = 1\n}\n", 0, ";"},
        {"\n\n\n#define GOOD 1\n\nkernel void f(global uint *p) {\n    p[0] = GOOD;\n"
         "    no_such_function_at_all(p);\n}\n",
         8, "no_such_function_at_all"},
        {"kernel void f(global uint *p) {\n#error \"stop here\"\n}\n", 2, "stop here"},
    };
    struct kit kit;
    kit_open(&kit);
    struct kit_held before = kit_held(kit.context);
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        acre_test_context("row %zu", i);
        struct acre_program *program = NULL;
        struct acre_build_report report = {0};
        struct acre_source source = {.text = rows[i].text, .name = "wrong.acl"};
        struct acre_error *err = ERR;
        int r = acre_program_build(kit.context, &source, &program, &report, err);
        CHECK_EQ(r, ACRE_EINVALID);
        CHECK(program == NULL);
        CHECK_HAS(err->text, "wrong.acl");
        CHECK_HAS(report.log, rows[i].about);
        acre_test_context("row %zu: %.180s", i, report.log);
        CHECK(rows[i].line == 0 || has_position(report.log, "wrong.acl", rows[i].line));
        CHECK(rows[i].line == 0 || has_position(err->text, "wrong.acl", rows[i].line));
        CHECK(strstr(report.log, kit_choice.scratch) == NULL); /* no names of temporary files */
        CHECK(!report.was_cached);
        acre_build_report_finish(&report);
    }
    CHECK_HELD(kit.context, &before);
    (void)kit_kernel(&kit, "add"); /* the next good one works */
    kit_close(&kit);
}

/* By name, by tag, by a macro that is gone at the end, under an #if; as long as a compiler says. */
static void sources_with_structs_tell_their_size(void) {
    static const char text[] =
        "typedef struct { float x; uchar tail[5]; } cell;\n"
        "struct grain { double d; char c; };\n"
        "#define CELL cell\n"
        "kernel void take(global float *out, const cell a, struct grain b, CELL c) {\n"
        "    out[0] = a.x + a.tail[4] + b.c + c.x;\n"
        "}\n"
        "#undef CELL\n"
        "#ifdef NEVER\n"
        "kernel void other(global float *out, struct nowhere n) { out[0] = n.x; }\n"
        "#endif\n";
    struct {
        float x;
        uint8_t tail[5];
    } cell = {1, {0, 0, 0, 0, 20}};
    struct {
        double d;
        int8_t c;
    } grain = {0, 100};
    struct kit kit;
    kit_open(&kit);
    if ((kit.facts->capabilities & ACRE_CAN_DOUBLE) == 0) {
        acre_test_skip("no doubles here");
    }
    struct acre_buffer out = kit_buffer(&kit, ACRE_MEMORY_DEVICE, 4);
    struct acre_program *program = build_text(&kit, text, NULL, ACRE_LANGUAGE_AUTO);
    struct acre_kernel *take = NULL;
    OK(acre_kernel_find(program, "take", &take, ERR));
    const struct acre_arg good[] = {ACRE_BUFFER(out), ACRE_BYTES(&cell, sizeof(cell)),
                                    ACRE_BYTES(&grain, sizeof(grain)),
                                    ACRE_BYTES(&cell, sizeof(cell))};
    for (uint32_t i = 1; i < ACRE_COUNT(good); i++) {
        struct acre_arg args[ACRE_COUNT(good)];
        memcpy(args, good, sizeof(args));
        args[i].bytes--;
        char accepted[32];
        snprintf(accepted, sizeof(accepted), "(%u bytes)", good[i].bytes);
        FAILS(acre_launch(kit.stream, take, kit_grid(1, 1), args, ACRE_COUNT(args), ERR),
              ACRE_EINVALID, "'take'", accepted);
    }
    float sum = 0;
    OK(acre_launch(kit.stream, take, kit_grid(1, 1), good, ACRE_COUNT(good), ERR));
    kit_get(&kit, &sum, out, sizeof(sum));
    CHECK_NEAR((double)sum, 122, 0);
    acre_program_destroy(program);
    kit_free(&kit, out);
    kit_close(&kit);
}

static void sources_that_require_a_group_get_no_other(void) {
    static const char text[] = "__kernel __attribute__((reqd_work_group_size(8, 2, 1)))\n"
                               "void fixed(__global uint *out) { out[0] = get_local_size(1); }\n"
                               "__kernel void open(__global uint *out) { out[0] = 5; }\n";
    static const struct acre_grid good = {.groups = {2}, .group = {8, 2}};
    static const uint32_t others[][3] = {{16, 1, 1}, {2, 8, 1}, {8, 2, 2}, {1 << 20, 1, 1}};
    struct kit kit;
    kit_open(&kit);
    if (!kit_is("opencl")) {
        acre_test_skip("only OpenCL has it");
    }
    struct acre_buffer out = kit_buffer(&kit, ACRE_MEMORY_DEVICE, 4);
    struct acre_program *program = build_text(&kit, text, NULL, ACRE_LANGUAGE_AUTO);
    struct acre_kernel *fixed = NULL, *open = NULL;
    uint32_t group[3] = {1, 1, 1}, got = 0;
    OK(acre_kernel_find(program, "fixed", &fixed, ERR));
    OK(acre_kernel_find(program, "open", &open, ERR));
    OK(acre_kernel_group(open, group, ERR));
    CHECK(group[0] == 0 && group[1] == 0 && group[2] == 0);
    OK(acre_kernel_group(fixed, group, ERR));
    CHECK(group[0] == 8 && group[1] == 2 && group[2] == 1);
    for (size_t i = 0; i < ACRE_COUNT(others); i++) {
        struct acre_grid grid = {.groups = {1},
                                 .group = {others[i][0], others[i][1], others[i][2]}};
        FAILS(acre_launch(kit.stream, fixed, grid, ARGS(ACRE_BUFFER(out)), ERR), ACRE_EINVALID,
              "'fixed'", "the source requires 8 x 2 x 1");
    }
    OK(acre_launch(kit.stream, fixed, good, ARGS(ACRE_BUFFER(out)), ERR));
    kit_get(&kit, &got, out, sizeof(got));
    CHECK_EQ(got, 2);
    acre_program_destroy(program);
    kit_free(&kit, out);
    kit_close(&kit);
}

static void sources_without_kernels_are_refused(void) {
    static const char *const texts[] = {"", "   \n\n", "// kernel void f(int x) {}\n",
                                        "static uint f(uint x) {\n    return x;\n}\n"};
    struct kit kit;
    kit_open(&kit);
    struct acre_program *program = NULL;
    for (size_t i = 0; i < ACRE_COUNT(texts); i++) {
        acre_test_context("'%s'", texts[i]);
        struct acre_source source = {.text = texts[i], .name = "empty.acl"};
        FAILS(acre_program_build(kit.context, &source, &program, NULL, ERR), ACRE_EINVALID,
              "empty.acl", "kernel");
        CHECK(program == NULL);
    }
    struct acre_source nothing = {0};
    FAILS(acre_program_build(kit.context, &nothing, &program, NULL, ERR), ACRE_EINVALID, "");
    kit_close(&kit);
}

static void sources_kernels_missing_are_listed(void) {
    struct kit kit;
    kit_open(&kit);
    struct acre_program *program = NULL;
    struct acre_kernel *kernel = kit_kernel_in(kit.context, "add", &program);
    struct acre_kernel *none = NULL;
    FAILS(acre_kernel_find(program, "subtract", &none, ERR), ACRE_ENOTFOUND, "subtract", "add",
          "increment", "affine");
    FAILS(acre_kernel_find(program, "", &none, ERR), ACRE_ENOTFOUND, "add");
    FAILS(acre_kernel_find(program, "ad", &none, ERR), ACRE_ENOTFOUND, "ad", "add");
    CHECK(none == NULL && kernel != NULL);
    acre_program_destroy(program);
    kit_close(&kit);
}

static const struct acre_test tests[] = {
    TEST(sources_of_the_suite_all_compile),          TEST(sources_plain_of_its_own_language),
    TEST(sources_of_another_language_are_refused),   TEST(sources_take_options),
    TEST(sources_that_do_not_compile_say_where),     TEST(sources_without_kernels_are_refused),
    TEST(sources_kernels_missing_are_listed),        TEST(sources_with_structs_tell_their_size),
    TEST(sources_that_require_a_group_get_no_other),
};
SUITE(compute_source_suite, tests);
