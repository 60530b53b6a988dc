/* Every kernel of the conformance suite, and the kernels of a ring around each of its handlers,
 * with the vendors' own compilers: HIPRTC for gfx90a, NVRTC for sm_90 (GPU-1; issue 4, "real HIPRTC
 * compilation of the suite's kernels"). No device is needed. Each compiler is used in a process of
 * its own, as every test is; where one is not installed its tests are skipped with the reason. */
#include "conformance/compute_kernels.h"

#include "compute/gpu/cuda_rtc.h"
#include "compute/gpu/hip.h"
#include "compute/gpu/image.h"
#include "compute/gpu/seat.h"
#include "compute/ring/ring.h"
#include "compute/source/dialect.h"

#include "support/test.h"

#include <stdio.h>

enum { TEXT_MAX = 1 << 20, BINARY_MAX = 16 << 20, TIMEOUT_S = 100 };

struct compiler {
    const char *backend;
    bool keeps_kernels; /* rings have the resident kernel too */
    struct hip *hip;
    struct cuda_rtc cuda;
};

static struct compiler open_hip(void) {
    struct compiler compiler = {.backend = "hip"};
    struct acre_error err = {0};
    int r = hip_load(&compiler.hip, &err);
    if (r == ACRE_EUNAVAILABLE) {
        acre_test_skip("%s", err.text);
    }
    REQUIRE_EQ(r, 0);
    if (!compiler.hip->has_rtc) {
        acre_test_skip("HIPRTC: %s", compiler.hip->rtc_absent);
    }
    return compiler;
}

static struct compiler open_cuda(void) {
    struct compiler compiler = {.backend = "cuda", .keeps_kernels = true};
    struct acre_error err = {0};
    int r = cuda_rtc_load(&compiler.cuda, 0, &err);
    if (r == ACRE_EUNAVAILABLE) {
        acre_test_skip("%s", err.text);
    }
    REQUIRE_EQ(r, 0);
    return compiler;
}

static void close_compiler(struct compiler *compiler) {
    if (compiler->hip != NULL) {
        gpu_close(compiler->hip);
    }
}

/* The kernels of the list, separated by blanks, are in the code, each with the parameters that were
 * read (where the code tells): a prelude may make of a kernel a function that is compiled and
 * dropped. Returns how many. */
static uint32_t check_kernels(const struct compiler *compiler, const struct acre_buf *binary,
                              const char *list, const struct signature *all, uint32_t all_count) {
    struct acre_buf kernels;
    gpu_image_kernels(binary->data, binary->length, &kernels);
    uint32_t count = 0;
    for (const char *at = list; *at != '\0'; count++) {
        char name[64];
        size_t length = strcspn(at, " ");
        snprintf(name, sizeof(name), "%.*s", (int)length, at);
        acre_test_context("kernel '%s'", name);
        const char *kernel = gpu_image_find(&kernels, name);
        REQUIRE(kernel != NULL);
        CHECK_STR(kernel, name); /* no name of C++ */
        for (uint32_t i = 0; i < all_count; i++) {
            if (strcmp(all[i].name, name) == 0) {
                CHECK_U64(gpu_image_parameters(kernel),
                          compiler->hip != NULL ? GPU_IMAGE_UNCOUNTED : all[i].count);
            }
        }
        at += length + (at[length] == ' ');
    }
    acre_buf_finish(&kernels);
    return count;
}

/* As a program is built: signatures, the dialect of the back end, its compiler. */
static uint32_t compile(struct compiler *compiler, const char *name, const char *text,
                        const char *kernels) {
    struct signature *all = NULL;
    uint32_t count = 0;
    struct acre_error err = {0};
    struct acre_source source = {.text = text, .name = name, .language = ACRE_LANGUAGE_PORTABLE};
    struct acre_buf out, binary, log;
    acre_buf_init(&out, TEXT_MAX);
    acre_buf_init(&binary, BINARY_MAX);
    acre_buf_init(&log, TEXT_MAX);
    acre_test_context("%s", name);
    REQUIRE_EQ(signatures_read(name, acre_str_from(text), source.language, &all, &count, &err), 0);
    REQUIRE_EQ(dialect_write(compiler->backend, &source, source.language, all, count, &out, &err),
               0);
    struct native_source native = {.text = out.data, .length = out.length, .options = ""};
    int r = compiler->hip != NULL
                ? hiprtc_compile(&compiler->hip->rtc, "gfx90a", &native, &binary, &log, &err)
                : cuda_rtc_compile(&compiler->cuda, 90, &native, &binary, &log, &err);
    if (r < 0) {
        fprintf(stderr, "%s: %s\n%s\n", name, err.text, log.data);
    }
    REQUIRE_EQ(r, 0);
    CHECK_STR(log.data, ""); /* no warnings in anybody's face either */
    uint32_t seen = check_kernels(compiler, &binary, kernels, all, count);
    signatures_free(all, count);
    acre_buf_finish(&out);
    acre_buf_finish(&binary);
    acre_buf_finish(&log);
    return seen == count ? count : 0;
}

static void compile_sources(struct compiler *compiler) {
    REQUIRE(compute_source_count > 0);
    for (size_t i = 0; i < compute_source_count; i++) {
        const struct compute_source *source = &compute_sources[i];
        uint32_t count = compile(compiler, source->name, source->text, source->kernels);
        acre_test_context("%s", source->name);
        CHECK(count > 0); /* and the list names them all */
    }
    close_compiler(compiler);
}

static void compile_rings(struct compiler *compiler) {
    static const struct {
        const char *name, *text;
    } rows[] = {{"twice", compute_handler_twice},
                {"thrice", compute_handler_thrice},
                {"state", compute_handler_state},
                {"hang", compute_handler_hang}};
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct acre_buf text;
        acre_buf_init(&text, TEXT_MAX);
        REQUIRE_EQ(ring_source_write(rows[i].text, "handle", compiler->keeps_kernels, &text), 0);
        CHECK(compile(compiler, rows[i].name, text.data,
                      compiler->keeps_kernels ? "acre_ring acre_ring_probe acre_ring_batch"
                                              : "acre_ring_batch") > 0);
        acre_buf_finish(&text);
    }
    close_compiler(compiler);
}

static void the_suite_compiles_with_hiprtc(void) { /* GPU-1 */
    struct compiler compiler = open_hip();
    compile_sources(&compiler);
}

static void rings_compile_with_hiprtc(void) {
    struct compiler compiler = open_hip();
    compile_rings(&compiler);
}

static void the_suite_compiles_with_nvrtc(void) { /* GPU-1 */
    struct compiler compiler = open_cuda();
    compile_sources(&compiler);
}

static void rings_compile_with_nvrtc(void) {
    struct compiler compiler = open_cuda();
    compile_rings(&compiler);
}

static const struct acre_test tests[] = {
    {"the_suite_compiles_with_hiprtc", the_suite_compiles_with_hiprtc, TIMEOUT_S},
    {"rings_compile_with_hiprtc", rings_compile_with_hiprtc, TIMEOUT_S},
    {"the_suite_compiles_with_nvrtc", the_suite_compiles_with_nvrtc, TIMEOUT_S},
    {"rings_compile_with_nvrtc", rings_compile_with_nvrtc, TIMEOUT_S},
};
ACRE_TEST_MAIN(tests)
