/* The portable dialect (GPU-1): its words on every compiler that is here, lines numbered as the
 * user does, kernels under their own names; and every example of docs/kernels.md. */
#include "compute/ring/ring.h"
#include "compute/source/dialect.h"
#include "core/file.h"
#include "support/compilers.h"
#include "support/opencl_rig.h"

#include <stdio.h>
#include <stdlib.h>

enum { TEXT_MAX_BYTES = 1 << 20 };

typedef int compile_function(const char *text, struct acre_buf *log, struct acre_buf *out);

static const struct compiler {
    const char *backend;
    enum acre_language language;
    const char *fence;
    compile_function *compile;
} cuda = {"cuda", ACRE_LANGUAGE_CUDA, "```c cuda\n", compile_cuda},
  hip = {"hip", ACRE_LANGUAGE_HIP, "```c hip\n", compile_hip},
  opencl = {"opencl", ACRE_LANGUAGE_OPENCL, "```c opencl\n", compile_opencl};

static struct acre_buf text, said, made;

/* The system's compiler, through the back end. */
static int compile_cpu(const char *source, struct acre_buf *log, struct acre_buf *out) {
    const struct backend *table = &backend_cpu;
    void *self, *seat;
    struct acre_error err = {0};
    REQUIRE_EQ(table->open(&self, &err), 0);
    REQUIRE_EQ(table->seat_open(self, 0, &seat, &err), 0);
    const struct native_source native = {.text = source, .length = strlen(source), .options = ""};
    int r = table->compile(seat, &native, out, log, &err);
    table->seat_close(seat);
    table->close(self);
    if (r < 0 && r != ACRE_EINVALID) {
        acre_buf_puts(log, err.text);
    }
    return r == 0 ? 0 : r == ACRE_EINVALID ? 1 : -1;
}

static const struct compiler cpu = {"cpu", ACRE_LANGUAGE_AUTO, "```c cpu\n", compile_cpu};

/* As acre_program_build does it. */
static int build(const struct compiler *compiler, const struct acre_source *source) {
    struct acre_str view = acre_str_from(source->text);
    enum acre_language language =
        source->language == ACRE_LANGUAGE_AUTO ? language_of(view) : source->language;
    struct signature *all = NULL;
    uint32_t count = 0;
    struct acre_error err = {0};
    acre_buf_clear(&text);
    acre_buf_clear(&said);
    acre_buf_clear(&made);
    int r = signatures_read(source->name, view, language, &all, &count, &err);
    r = r == 0 ? dialect_write(compiler->backend, source, language, all, count, &text, &err) : r;
    signatures_free(all, count);
    CHECK_STR(err.text, "");
    REQUIRE_EQ(r, 0);
    return compiler->compile(text.data, &said, &made);
}

static void begin(void) {
    acre_buf_init(&text, TEXT_MAX_BYTES);
    acre_buf_init(&said, TEXT_MAX_BYTES);
    acre_buf_init(&made, TEXT_MAX_BYTES);
}

static void end(void) {
    acre_buf_finish(&text);
    acre_buf_finish(&said);
    acre_buf_finish(&made);
}

static void need(const struct compiler *compiler) {
    static const struct acre_source nothing = {.text = "kernel void f() {}", .name = "k"};
    begin();
    if (build(compiler, &nothing) < 0) {
        acre_test_skip("no compiler for %s: %s", compiler->backend, said.data);
    }
}

/* --- examples ------------------------------------------------------------------------------- */

/* Compile each block of the page that begins with `fence`; how many there were. */
static uint32_t compile_blocks(const struct compiler *compiler, const char *page, const char *fence,
                               enum acre_language language) {
    uint32_t blocks = 0;
    const char *at = page;
    while ((at = strstr(at, fence)) != NULL) {
        at += strlen(fence);
        const char *end_of = strstr(at, "```");
        REQUIRE(end_of != NULL);
        char *block = acre_calloc((size_t)(end_of - at) + 1, 1);
        memcpy(block, at, (size_t)(end_of - at));
        const struct acre_source source = {.text = block, .name = "example", .language = language};
        acre_test_context("%s: %.60s", compiler->backend, block);
        int r = build(compiler, &source);
        CHECK_STR(said.data, ""); /* not even a warning */
        CHECK_EQ(r, 0);
        if (compiler == &cuda) {
            CHECK_HAS(made.data, ".entry ");
        }
        free(block);
        at = end_of;
        blocks++;
    }
    return blocks;
}

/* The handlers of the page, with the kernels that call them. */
static void compile_handlers(const struct compiler *compiler, const char *page) {
    const char *at = strstr(page, "```c handler\n");
    REQUIRE(at != NULL);
    at += strlen("```c handler\n");
    const char *end_of = strstr(at, "```");
    REQUIRE(end_of != NULL);
    for (int is_resident = 0; is_resident <= (compiler == &cuda); is_resident++) {
        struct acre_buf block, whole;
        acre_buf_init(&block, TEXT_MAX_BYTES);
        acre_buf_init(&whole, TEXT_MAX_BYTES);
        acre_buf_append(&block, at, (size_t)(end_of - at));
        REQUIRE_EQ(ring_source_write(block.data, "handle", is_resident, &whole), 0);
        const struct acre_source source = {
            .text = whole.data, .name = "example", .language = ACRE_LANGUAGE_PORTABLE};
        acre_test_context("%s: handler", compiler->backend);
        int r = build(compiler, &source);
        CHECK_STR(said.data, "");
        CHECK_EQ(r, 0);
        acre_buf_finish(&block);
        acre_buf_finish(&whole);
    }
}

static void compile_page(const struct compiler *compiler) {
    struct acre_buf page;
    struct acre_error err = {0};
    need(compiler);
    acre_buf_init(&page, TEXT_MAX_BYTES);
    REQUIRE_EQ(acre_file_read(ACRE_SOURCE "/docs/kernels.md", TEXT_MAX_BYTES, &page, &err), 0);
    CHECK(compile_blocks(compiler, page.data, "```c portable\n", ACRE_LANGUAGE_AUTO) >= 5);
    compile_handlers(compiler, page.data);
    uint32_t plain = compile_blocks(compiler, page.data, compiler->fence, ACRE_LANGUAGE_AUTO);
    CHECK(plain >= 1 || compiler == &hip || compiler == &cpu);
    acre_buf_finish(&page);
    end();
}

static void examples_compile_as_cuda(void) { /* GPU-1 */
    compile_page(&cuda);
}

static void examples_compile_on_the_cpu(void) { /* GPU-1 */
    compile_page(&cpu);
}

static void examples_compile_as_hip(void) { /* GPU-1 */
    compile_page(&hip);
}

static void examples_compile_as_opencl(void) { /* GPU-1 */
    compile_page(&opencl);
}

/* --- lines ---------------------------------------------------------------------------------- */

static void check_lines(const struct compiler *compiler, const char *position) {
    static const struct acre_source sources[] = {
        {.text = "// one\nkernel void f(global int *a) {\n    a[0] = nowhere;\n}\n",
         .name = "my kernel.c"},
        {.text = "kernel void g(constant int *a) {}\n\n kernel broken;", .name = "a\"b\\c\nd"},
    };
    need(compiler);
    CHECK_EQ(build(compiler, &sources[0]), 1);
    CHECK_HAS(said.data, position);
    CHECK_HAS(said.data, "nowhere");
    end();
}

static void cuda_messages_have_the_users_lines(void) { /* GPU-1 */
    check_lines(&cuda, "my kernel.c(3)");
}

static void cpu_messages_have_the_users_lines(void) { /* GPU-1 */
    check_lines(&cpu, "my kernel.c:3:");
}

static void hip_messages_have_the_users_lines(void) { /* GPU-1 */
    check_lines(&hip, "my kernel.c:3:12");
}

static void opencl_messages_have_the_users_lines(void) { /* GPU-1 */
    check_lines(&opencl, "my kernel.c:3:12");
}

/* --- names ---------------------------------------------------------------------------------- */

static void plain_cuda_kernels_keep_their_names(void) { /* GPU-1 */
    static const struct {
        const char *source, *entry;
    } rows[] = {
        {"__global__ void plain(int *a) { *a = 1; }", ".entry plain("},
        {"extern \"C\" __global__ void plain(int *a) { *a = 1; }", ".entry plain("},
        {"extern \"C\" {\n__global__ void plain(int *a) { *a = 1; }\n}", ".entry plain("},
        {"namespace n {\n__global__ void plain(int *a) { *a = 1; }\n}", ".entry plain("},
        {"void __launch_bounds__(64) __global__ plain(int *a) { *a = 1; }", ".entry plain("},
        {"__global__ void plain(int *a);\n__global__ void plain(int *a) { *a = 1; }",
         ".entry plain("},
        {"template <class T> __device__ T one() { return 1; }\n"
         "__global__ void plain(int *a) { *a = one<int>(); }",
         ".entry plain("},
        {"#ifdef NEVER\n__global__ void other() {}\n#endif\n"
         "__global__ void plain(int *a) { *a = 1; }",
         ".entry plain("},
        {"#ifdef NEVER\nextern \"C\" __global__ void plain(int *a) {}\n#else\n"
         "__global__ void plain(int *a) { *a = 1; }\n#endif",
         ".entry plain("},
        {"kernel void mine(global int *a) { *a = 1; }", ".entry mine("},
        {"#define OUT global int *\nkernel void mine(OUT a) { *a = 1; }", ".entry mine("},
    };
    need(&cuda);
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        const struct acre_source source = {.text = rows[i].source, .name = "k"};
        acre_test_context("%s", rows[i].source);
        int r = build(&cuda, &source);
        CHECK_STR(said.data, "");
        CHECK_EQ(r, 0);
        CHECK_HAS(made.data, rows[i].entry);
    }
    end();
}

/* --- the text ------------------------------------------------------------------------------- */

/* What comes behind the prelude. */
static const char *written(const char *backend, const char *name, const char *from) {
    const struct acre_source source = {.text = from, .name = name};
    acre_buf_clear(&text);
    REQUIRE_EQ(dialect_write(backend, &source, ACRE_LANGUAGE_PORTABLE, NULL, 0, &text, NULL), 0);
    const char *at = strstr(text.data, "#line 1 ");
    return at != NULL ? at : "no #line";
}

static void pointers_lose_the_words_cuda_does_not_want(void) { /* GPU-1 */
    /* clang-format off */
    static const struct { const char *from, *to; } rows[] = {
        {"global float *p;", "       float *p;"},
        {"local float *p;", "      float *p;"},
        {"local float t[4];", "local float t[4];"},
        {"f(local int *a, constant int *b)", "f(      int *a, const    int *b)"},
        {"constant float t[2] = {1, 2};", "constant float t[2] = {1, 2};"},
        {"constant const float *p", "         const float *p"},
        {"const constant float *p", "const          float *p"},
        {"(local int *)x * 2", "(      int *)x * 2"},
        {"local int n; a * b", "local int n; a * b"},
        {"/* local int *p */ \"global int *p\"", "/* local int *p */ \"global int *p\""},
        {"local unsigned long long int volatile *p", "      unsigned long long int volatile *p"},
        {"local struct s *p", "      struct s *p"},
        {"localized *p, globals", "localized *p, globals"},
        {"#define P(t) global t *\nP(int) p;", "#define P(t)        t *\nP(int) p;"},
        {"#define A local int a[4]\n#ifdef global\n", "#define A local int a[4]\n#ifdef global\n"},
        {"#error don't global\nglobal", "#error don't global\n      "},
        {"f(local float t[18][18])", "f(      float t[18][18])"},
        {"f(local float (*rows)[18])", "f(      float (*rows)[18])"},
        {"f(int n, constant float t[4])", "f(int n, const    float t[4])"},
        {"f(constant const float t[4])", "f(         const float t[4])"},
        {"f(); local float t[4];", "f(); local float t[4];"},
        {"#ifdef A\nit's\n#endif\nglobal int *p", "#ifdef A\nit's\n#endif\n       int *p"},
    };
    /* clang-format on */
    begin();
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        char expect[256];
        snprintf(expect, sizeof(expect), "#line 1 \"k\"\n%s", rows[i].to);
        CHECK_STR(written("cuda", "k", rows[i].from), expect);
        CHECK_EQ(strlen(rows[i].from), strlen(rows[i].to));
        snprintf(expect, sizeof(expect), "#line 1 \"kernel\"\n%s", rows[i].from);
        CHECK_STR(written("opencl", NULL, rows[i].from), expect);
    }
    CHECK_STR(written("opencl", "a\"b\\c\nd", ""), "#line 1 \"a?b?c?d\"\n");
    end();
}

/* Of types with a name, which stand for themselves beside the kernel. */
static void sizes_of_structs_are_written_for_opencl(void) { /* GPU-1 */
    static const struct {
        const char *text, *type; /* "": none */
    } rows[] = {
        {"kernel void f(struct s p) {}", "typedef struct s acre_type_0_f;"},
        {"kernel void f(global struct s *p, int n, float4 v) {}", ""},
        {"kernel void f(REAL p) {}\n#undef REAL\n", "typedef REAL acre_type_0_f;"},
        {"#define REAL cell\nkernel void f(const REAL p) {}", "typedef const cell acre_type_0_f;"},
        {"typedef float real;\nkernel void f(real p) {}", "typedef real acre_type_0_f;"},
        {"kernel void f(struct a_name_that_is_longer_than_what_anybody_would_write_for_it p) {}",
         "typedef struct a_name_that_is_longer_than_what_anybody_would_write_for_it "
         "acre_type_0_f;"},
        {"kernel void f(struct s);\n#if A\nkernel void f(struct s p) {}\n#endif\n",
         "#if A\n\ntypedef struct s acre_type_0_f;\n#define acre_has_f\n"},
    };
    begin();
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        acre_test_context("%s", rows[i].text);
        struct acre_source source = {.text = rows[i].text};
        struct signature *all = NULL;
        uint32_t count = 0;
        struct acre_error err = {0};
        REQUIRE_EQ(signatures_read("k", acre_str_from(source.text), ACRE_LANGUAGE_PORTABLE, &all,
                                   &count, &err),
                   0);
        acre_buf_clear(&text);
        CHECK_EQ(dialect_write("opencl", &source, ACRE_LANGUAGE_PORTABLE, all, count, &text, &err),
                 0);
        CHECK_HAS(text.data, rows[i].type);
        CHECK_EQ(strstr(text.data, "acre_size_0_1_f(void)") != NULL, rows[i].type[0] != '\0');
        signatures_free(all, count);
    }
    end();
}

/* Each of them, whichever the compiler takes. */
static void all_branches_of_a_plain_kernel_are_c(void) { /* GPU-1 */
    static const struct acre_source source = {.text = "#ifdef A\n"
                                                      "extern \"C\" __global__ void f() {}\n"
                                                      "#else\n"
                                                      "extern __global__ void g();\n"
                                                      "__global__ void f() {}\n"
                                                      "#endif\n"
                                                      "__global__ void g() {}\n",
                                              .name = "k"};
    struct signature *all = NULL;
    uint32_t count = 0;
    begin();
    REQUIRE_EQ(
        signatures_read("k", acre_str_from(source.text), ACRE_LANGUAGE_CUDA, &all, &count, NULL),
        0);
    acre_buf_clear(&text);
    CHECK_EQ(dialect_write("cuda", &source, ACRE_LANGUAGE_CUDA, all, count, &text, NULL), 0);
    CHECK_STR(text.data, "#line 1 \"k\"\n"
                         "#ifdef A\n"
                         "extern \"C\" __global__ void f() {}\n"
                         "#else\n"
                         "extern \"C\"  __global__ void g();\n"
                         "extern \"C\" __global__ void f() {}\n"
                         "#endif\n"
                         "extern \"C\" __global__ void g() {}\n");
    signatures_free(all, count);
    end();
}

static void sources_of_others_are_refused(void) { /* GPU-1 */
    static const struct {
        const char *backend;
        enum acre_language language;
        const char *expect;
    } rows[] = {
        {"opencl", ACRE_LANGUAGE_CUDA,
         "k is written in CUDA, which back end cuda accepts; back end opencl accepts the "
         "portable dialect or OpenCL"},
        {"cuda", ACRE_LANGUAGE_HIP, "back end hip accepts"},
        {"hip", ACRE_LANGUAGE_OPENCL, "back end opencl accepts"},
        {"cpu", ACRE_LANGUAGE_CUDA, "back end cpu accepts the portable dialect"},
    };
    begin();
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        const struct acre_source source = {.text = "", .name = "k"};
        struct acre_error err = {0};
        CHECK_EQ(dialect_write(rows[i].backend, &source, rows[i].language, NULL, 0, &text, &err),
                 ACRE_EUNSUPPORTED);
        CHECK_HAS(err.text, rows[i].expect);
        CHECK_EQ(text.length, 0);
    }
    end();
}

static void a_text_too_long_is_told(void) { /* GPU-1 */
    const struct acre_source source = {.text = "kernel void f() {}", .name = "k"};
    struct acre_buf small;
    struct acre_error err = {0};
    acre_buf_init(&small, 100);
    CHECK_EQ(dialect_write("cuda", &source, ACRE_LANGUAGE_PORTABLE, NULL, 0, &small, &err),
             ACRE_ELIMIT);
    CHECK_HAS(err.text, "more than 100 bytes");
    acre_buf_finish(&small);
}

static const struct acre_test tests[] = {
    {"examples_compile_as_cuda", examples_compile_as_cuda, 120},
    {"examples_compile_on_the_cpu", examples_compile_on_the_cpu, 120},
    {"examples_compile_as_hip", examples_compile_as_hip, 120},
    {"examples_compile_as_opencl", examples_compile_as_opencl, 120},
    {"cuda_messages_have_the_users_lines", cuda_messages_have_the_users_lines, 0},
    {"cpu_messages_have_the_users_lines", cpu_messages_have_the_users_lines, 0},
    {"hip_messages_have_the_users_lines", hip_messages_have_the_users_lines, 0},
    {"opencl_messages_have_the_users_lines", opencl_messages_have_the_users_lines, 0},
    {"plain_cuda_kernels_keep_their_names", plain_cuda_kernels_keep_their_names, 120},
    {"pointers_lose_the_words_cuda_does_not_want", pointers_lose_the_words_cuda_does_not_want, 0},
    {"all_branches_of_a_plain_kernel_are_c", all_branches_of_a_plain_kernel_are_c, 0},
    {"sizes_of_structs_are_written_for_opencl", sizes_of_structs_are_written_for_opencl, 0},
    {"sources_of_others_are_refused", sources_of_others_are_refused, 0},
    {"a_text_too_long_is_told", a_text_too_long_is_told, 0},
};

int main(int argc, char **argv) {
    return rig_main(tests, ACRE_COUNT(tests), argc, argv);
}
