/* test_compute_cuda_rtc.c - NVRTC: which architecture is asked for, real compilations, real logs.
 *
 * No GPU is needed to compile; NVRTC is, and where it is not installed those tests are skipped. */
#include "compute/gpu/cuda_rtc.h"
#include "compute/gpu/image.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>

static void the_architecture_is_the_gpus_or_the_nearest_it_runs(void) { /* GPU-1 */
    static const int known[] = {75, 80, 86, 87, 89, 90, 100, 120};
    static const struct {
        int device, arch;
        bool is_ptx;
    } rows[] = {{75, 75, false},   {86, 86, false},   {88, 87, false},   {90, 90, false},
                {95, 90, false},   {100, 100, false}, {103, 100, false}, {110, 100, true},
                {121, 120, false}, {130, 120, true}};
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        acre_test_context("sm_%d", rows[i].device);
        struct cuda_target target = {0};
        struct acre_error err;
        REQUIRE_EQ(cuda_target_choose(known, ACRE_COUNT(known), rows[i].device, &target, &err), 0);
        CHECK_EQ(target.arch, rows[i].arch);
        CHECK_EQ(target.is_ptx, rows[i].is_ptx);
    }
}

static void a_gpu_older_than_all_is_refused_by_name(void) { /* GPU-1 */
    static const int known[] = {75, 80};
    struct cuda_target target = {.arch = -1};
    struct acre_error err = {0};
    CHECK_EQ(cuda_target_choose(known, 2, 70, &target, &err), ACRE_EUNSUPPORTED);
    CHECK_HAS(err.text, "sm_70");
    CHECK_HAS(err.text, "sm_75");
    CHECK_EQ(target.arch, -1);
}

/* --- with NVRTC ----------------------------------------------------------------------------- */

struct build {
    struct cuda_rtc rtc;
    struct acre_buf binary, log;
    struct acre_error err;
};

static void begin(struct build *build) {
    *build = (struct build){0};
    int r = cuda_rtc_load(&build->rtc, 0, &build->err);
    if (r == ACRE_EUNAVAILABLE) {
        acre_test_skip("%s", build->err.text);
    }
    REQUIRE_EQ(r, 0);
    acre_buf_init(&build->binary, 16 << 20);
    acre_buf_init(&build->log, 1 << 20);
}

static int compile(struct build *build, int arch, const char *text, const char *options) {
    struct native_source source = {.text = text, .length = strlen(text), .options = options};
    acre_buf_clear(&build->binary);
    acre_buf_clear(&build->log);
    return cuda_rtc_compile(&build->rtc, arch, &source, &build->binary, &build->log, &build->err);
}

static void finish(struct build *build) {
    acre_buf_finish(&build->binary);
    acre_buf_finish(&build->log);
}

static const char good[] =
    "float twice(float x) { return 2 * x; }\n" /* no __device__: helpers need none */
    "extern \"C\" __global__ void first(float *a, unsigned n) {\n"
    "    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    if (i < n) a[i] = twice(a[i]) * FACTOR;\n"
    "}\n"
    "__global__ void second(float *a, int n) { a[n] = 0; }\n"
    "__device__ __noinline__ int helper(int n) { return n * 3; }\n"
    "template <class T> __global__ void third(T *a) { a[0] = helper(1); }\n"
    "template __global__ void third<int>(int *);\n";

static void sources_become_machine_code(void) { /* GPU-1 */
    struct build build;
    begin(&build);
    int r = compile(&build, 90, good, " -DFACTOR=3   --use_fast_math ");
    if (r != 0) {
        fprintf(stderr, "%s\n%s\n", build.err.text, build.log.data);
    }
    REQUIRE_EQ(r, 0);
    CHECK(build.binary.length > 500);
    CHECK(memcmp(build.binary.data,
                 "\x7f"
                 "ELF",
                 4) == 0);
    CHECK_EQ(gpu_image_check(build.binary.data, build.binary.length, &build.err), 0);
    finish(&build);
}

static void kernels_are_found_by_the_name_they_were_written_with(void) { /* GPU-1 */
    struct build build;
    begin(&build);
    for (int pass = 0; pass < 2; pass++) { /* machine code, and the text for newer GPUs */
        acre_test_context("%s", pass == 0 ? "machine code" : "PTX");
        REQUIRE_EQ(compile(&build, pass == 0 ? 90 : 990, good, "-DFACTOR=3"), 0);
        REQUIRE_EQ(gpu_image_check(build.binary.data, build.binary.length, &build.err), 0);
        CHECK_EQ(build.binary.data[0] == '\x7f', pass == 0);
        struct acre_buf kernels;
        gpu_image_kernels(build.binary.data, build.binary.length, &kernels);
        const char *second = gpu_image_find(&kernels, "second");
        CHECK_STR(second, "_Z6secondPfi");
        CHECK_U64(gpu_image_parameters(second), 2);
        CHECK_STR(gpu_image_find(&kernels, "first"), "first"); /* extern "C" */
        CHECK(gpu_image_find(&kernels, "secon") == NULL);
        CHECK(gpu_image_find(&kernels, "helper") == NULL); /* no kernel */
        acre_buf_finish(&kernels);
    }
    finish(&build);
}

static void a_gpu_newer_than_nvrtc_gets_text_for_the_driver(void) { /* GPU-1 */
    struct build build;
    begin(&build);
    REQUIRE_EQ(compile(&build, 990, good, "-DFACTOR=3"), 0);
    CHECK_HAS(build.binary.data, ".target");
    CHECK_EQ(build.binary.data[build.binary.length - 1], '\0'); /* its NUL is part of it */
    REQUIRE_EQ(compile(&build, 90, good, "-DFACTOR=3 --gpu-architecture=compute_80"), 0);
    CHECK_HAS(build.binary.data, "sm_80"); /* asked for by the source's own options */
    finish(&build);
}

static void messages_name_the_users_lines(void) { /* GPU-1 */
    static const struct {
        const char *text, *options, *says;
    } rows[] = {
        {"__global__ void f(float *a) {\n    a[0] = ;\n}\n", "", "kernel(2): error"},
        {"\n\n#line 7 \"mine.cu\"\n__global__ void f() { g(); }\n", "", "mine.cu(7): error"},
        {"__global__ void f() {}\n", "--no-such-option", "no-such-option"},
        {"__global__ void f(int *b) { __shared__ int a[1 << 20]; a[threadIdx.x] = b[0];\n"
         "    __syncthreads(); b[threadIdx.x] = a[threadIdx.x + b[1]]; }\n",
         "", "shared"},
    };
    struct build build;
    begin(&build);
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        acre_test_context("row %zu", i);
        CHECK_EQ(compile(&build, 90, rows[i].text, rows[i].options), ACRE_EINVALID);
        CHECK_HAS(build.log.data, rows[i].says);
        CHECK_HAS(build.err.text, rows[i].says);
        CHECK_U64(build.binary.length, 0);
    }
    finish(&build);
}

static void warnings_are_in_the_log_of_what_compiles(void) { /* GPU-1 */
    struct build build;
    begin(&build);
    REQUIRE_EQ(compile(&build, 90, "__global__ void f() {\n    int unused;\n}\n", ""), 0);
    CHECK_HAS(build.log.data, "kernel(2): warning");
    finish(&build);
}

static void headers_of_the_toolkit_are_found(void) { /* GPU-1 */
    struct build build;
    begin(&build);
    if (build.rtc.include[0][0] == '\0') {
        acre_test_skip("NVRTC is here without CUDA's headers");
    }
    int r = compile(&build, 90,
                    "#include <cuda_fp16.h>\n#include <cuda/std/cstdint>\n"
                    "__global__ void f(__half *a) { a[0] = __float2half(1.0f); }\n",
                    "");
    if (r != 0) {
        fprintf(stderr, "%s\n", build.log.data);
    }
    CHECK_EQ(r, 0);
    finish(&build);
}

static void too_many_options_and_too_much_code_are_refused(void) { /* GPU-1 */
    struct build build;
    begin(&build);
    struct acre_buf options;
    acre_buf_init(&options, 4096);
    for (int i = 0; i < 70; i++) {
        acre_buf_puts(&options, "-DA ");
    }
    CHECK_EQ(compile(&build, 90, good, options.data), ACRE_ELIMIT);
    CHECK_HAS(build.err.text, "options");
    acre_buf_finish(&options);
    acre_buf_finish(&build.binary);
    acre_buf_init(&build.binary, 100);
    CHECK_EQ(compile(&build, 90, good, "-DFACTOR=3"), ACRE_ELIMIT);
    CHECK_HAS(build.err.text, "100");
    finish(&build);
}

static const struct acre_test tests[] = {
    {"the_architecture_is_the_gpus_or_the_nearest_it_runs",
     the_architecture_is_the_gpus_or_the_nearest_it_runs, 0},
    {"a_gpu_older_than_all_is_refused_by_name", a_gpu_older_than_all_is_refused_by_name, 0},
    {"sources_become_machine_code", sources_become_machine_code, 0},
    {"kernels_are_found_by_the_name_they_were_written_with",
     kernels_are_found_by_the_name_they_were_written_with, 0},
    {"a_gpu_newer_than_nvrtc_gets_text_for_the_driver",
     a_gpu_newer_than_nvrtc_gets_text_for_the_driver, 0},
    {"messages_name_the_users_lines", messages_name_the_users_lines, 0},
    {"warnings_are_in_the_log_of_what_compiles", warnings_are_in_the_log_of_what_compiles, 0},
    {"headers_of_the_toolkit_are_found", headers_of_the_toolkit_are_found, 0},
    {"too_many_options_and_too_much_code_are_refused",
     too_many_options_and_too_much_code_are_refused, 0},
};
ACRE_TEST_MAIN(tests)
