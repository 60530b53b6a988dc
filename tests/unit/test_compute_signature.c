/* Kernel signatures (GPU-1): what is read from sources in four languages, and what is refused. */
#include "compute/source/signature.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define P ACRE_LANGUAGE_PORTABLE
#define C ACRE_LANGUAGE_CUDA
#define H ACRE_LANGUAGE_HIP
#define O ACRE_LANGUAGE_OPENCL
#define A ACRE_LANGUAGE_AUTO

/* "add(B4c B4 U4)": Buffer, Local, Signed, Unsigned, Float, Vector, sTruct, with its bytes; c: the
 * kernel does not write it. Kernels are separated by ';'. */
static void encode(const struct signature *all, uint32_t count, struct acre_buf *out) {
    static const char kinds[] = "BLSUFVT";
    for (uint32_t i = 0; i < count; i++) {
        acre_buf_printf(out, "%s%s(", i > 0 ? ";" : "", all[i].name);
        for (uint32_t j = 0; j < all[i].count; j++) {
            const struct parameter *p = &all[i].parameters[j];
            acre_buf_printf(out, "%s%c%u%s", j > 0 ? " " : "", kinds[p->kind], p->bytes,
                            p->is_const ? "c" : "");
        }
        acre_buf_putc(out, ')');
    }
}

/* clang-format off */
static const struct { enum acre_language language; const char *text, *expect; } good[] = {
    /* the portable dialect */
    {P, "kernel void add(global const float *a, global float *b, uint n) {}", "add(B4c B4 U4)"},
    {P, "kernel void f(constant int *table, long x) {}", "f(B4c S8)"},
    {P, "kernel void f() {}", "f()"},
    {P, "kernel void f(void) {}", "f()"},
    {P, "kernel void f(global void *p) {}", "f(B0)"},
    {P, "float g(float x) { return x; }\nkernel void f(float x) { g(x); }", "f(F4)"},
    {P, "kernel void a(int x) {}\nkernel void b(uint y) {}", "a(S4);b(U4)"},
    {P, "struct s { int a; };\nkernel void f(struct s v, global struct s *p) {}", "f(T0 B0)"},
    {P, "typedef float real;\nkernel void f(real x, global real *p) {}", "f(F4 B4)"},
    {P, "typedef struct { int a; } pair;\nkernel void f(pair v) {}", "f(T0)"},
    {P, "kernel void f(uchar a, ushort b, ulong c, char d, short e, double g) {}",
        "f(U1 U2 U8 S1 S2 F8)"},
    {P, "kernel void f(float4 v, global const float4 *p, uint2 u) {}", "f(V16 B16c V8)"},
    {P, "constant float table[2] = {1, 2};\nkernel void f(int n) {}", "f(S4)"},
    {P, "#if 0\nkernel void off() {} don't\n#if 1\n#endif\n#endif\nkernel void on() {}", "on()"},
    {P, "#if 0\nkernel void off() {\n#else\nkernel void on() {\n#endif\n}", "on()"},
    {P, "#define CONV(kernel, x) ((kernel)[x])\nkernel void f() {}", "f()"},
    {P, "#define N 16 /* of a kernel,\n   say */\nkernel void f() {}", "f()"},
    {P, "// kernel void no() {}\n/* kernel void no() {} */ kernel void f() {}", "f()"},
    {P, "int x = '}'; char *s = \"kernel void no() {}\"; kernel void f() {}", "f()"},
    {P, "kernel void f(int);\nkernel void f(int a) {}", "f(S4)"},
    {P, "kernel void f(global float a[], global int b[16]) {}", "f(B4 B4)"},
    {P, "kernel void f(enum color c) {}", "f(S4)"},
    {P, "kernel void f(volatile global int *c) {}", "f(B4)"},
    {P, "", ""},
    {P, "#define REAL float\nkernel void f(REAL x, global const REAL *p) {}", "f(F4 B4c)"},
    {P, "#define N 16 // of them\n#define REAL float // single\nkernel void f(REAL x) {}", "f(F4)"},
    {P, "#define WORD unsigned int\n#define WORDS const WORD *\nkernel void f(global WORDS p) {}",
        "f(B4c)"},
    {P, "#ifdef D\n#define REAL double\n#else\n#define REAL float\n#endif\n"
        "kernel void f(REAL x) {}", "f(T0)"},
    {P, "#ifndef REAL\n#define REAL float\n#endif\nkernel void f(REAL x) {}", "f(T0)"},
    {P, "#define REAL float\n#undef REAL\n#define REAL double\nkernel void f(REAL x) {}", "f(F8)"},
    {P, "#ifdef D\ntypedef double real;\n#else\n#define real float\n#endif\n"
        "kernel void f(real x) {}", "f(T0)"},
    {P, "#ifdef D\n#define float double\n#endif\nkernel void f(float x) {}", "f(T0)"},
    {P, "#ifdef S\ntypedef struct { int a, b; } T;\n#else\ntypedef int T;\n#endif\n"
        "kernel void f(T x) {}", "f(T0)"},
    {P, "#define CELL struct cell\nkernel void f(CELL x) {}", "f(T0)"},
    {P, "kernel void f(global float *, uint);\nkernel void f(global float *o, uint n) {}",
        "f(B4 U4)"},
    {P, "#define A A\nkernel void f(A x) {}", "f(T0)"},
    {P, "#ifdef D\ntypedef double real;\n#else\ntypedef float real;\n#endif\n"
        "kernel void f(real x, global real *p) {}", "f(T0 B0)"},
    {P, "typedef float real;\ntypedef float real;\nkernel void f(real x) {}", "f(F4)"},
    {P, "typedef float real, *pointer, row[4];\nkernel void f(real x, global real *p) {}",
        "f(F4 B4)"},
    {P, "#ifdef NEVER\nit's not \"here\n#endif\nkernel void f(int n) {}", "f(S4)"},
    {P, "kernel void f(int n) {\n#ifdef NEVER\ndon't\n#endif\n}\nkernel void g() {}", "f(S4);g()"},
    {P, "#if 0 /* not now */\nkernel void no() {}\n#endif\nkernel void f() {}", "f()"},
    {P, "#if 0\r\nkernel void no() {}\r\n#endif\r\nkernel void f() {}\r\n", "f()"},
    {P, "#if 0 // a\nno {\n#elif X\nkernel void f() {}\n#endif\nkernel void g() {}", "f();g()"},
    {P, "kernel void f(int n) {\n#if A\nif (n) {\n#elif B\nif (n > 1) {\n#else\nwhile (n) {\n"
        "#endif\n} }\nkernel void g() {}", "f(S4);g()"},
    {P, "float h(float x) {\n#if A\nif (x > 0) {\n#else\n{\n#endif\n} return x; }\n"
        "kernel void g() {}", "g()"},
    {P, "kernel void f(int n)\n#if A\n{}\n#else\n{ n++; }\n#endif\nkernel void g() {}",
        "f(S4);g()"},
    {P, "kernel void f(int sizes, global ulong *my_size_t, uint n) {}", "f(S4 B8 U4)"},
    {P, "typedef uint my_size_t;\nkernel void f(my_size_t n) {}", "f(U4)"},
    {P, "#if A\nkernel void f(int n) { n = 1; }\n#else\nkernel void f(int n) {}\n#endif", "f(S4)"},
    {P, "int kernels; float f(float kernel_size) { return 1; }", ""},
    /* CUDA, HIP */
    {C, "extern \"C\" __global__ void f(const float *a, float *b, int n) {}", "f(B4c B4 S4)"},
    {C, "extern \"C\" {\n__global__ void f(int n) {}\n}\n", "f(S4)"},
    {C, "__global__ void __launch_bounds__(256, 2) f(int *a) {}", "f(B4)"},
    {C, "__global__ __launch_bounds__(256) void f(int *a) {}", "f(B4)"},
    {C, "__launch_bounds__(256) __global__ void f(int *a) {}", "f(B4)"},
    {C, "void __global__ f(int *a) {}", "f(B4)"},
    {C, "__global__ void f(const float *__restrict__ a, float *const b) {}", "f(B4c B4)"},
    {C, "__global__ void f(float const *a, unsigned long long n, unsigned u) {}", "f(B4c U8 U4)"},
    {C, "__global__ void f(long long int a, long unsigned b, short int c) {}", "f(S8 U8 S2)"},
    {C, "__global__ void f(size_t n, std::size_t m, uint64_t k, int8_t i) {}", "f(U8 U8 U8 S1)"},
    {C, "__global__ void f(float3 v, double2 d, uchar4 c, longlong2 l, float1 o) {}",
        "f(V12 V16 V4 V16 V4)"},
    {C, "__global__ void f(bool b, char c, signed char s, unsigned char u) {}", "f(U1 S1 S1 U1)"},
    {C, "__global__ void f(struct item *p, item q, const item *r) {}", "f(B0 T0 B0c)"},
    {C, "__global__ void f(int **p) {}", "f(B8)"},
    {C, "__global__ void f(Matrix<float, 3> m, Matrix<int, (2 > 1)> *p) {}", "f(T0 B0)"},
    {C, "__global__ void f(const __grid_constant__ Big b) {}", "f(T0)"},
    {C, "__global__ void f(int n = 3, float x = g(1, 2)) {}", "f(S4 F4)"},
    {C, "__global__ void f(__half h, half2 v, __nv_bfloat16 b) {}", "f(F2 V4 F2)"},
    {C, "__global__ void f(m::uint a, T::real b, std::uint32_t c, ::cuda::std::int8_t d) {}",
        "f(T0 T0 U4 S1)"},
    {C, "enum G : short { A };\n__global__ void f(enum G g) {}", "f(T0)"},
    {C, "struct half { double z; };\n__global__ void f(half a, __half b) {}", "f(T0 F2)"},
    {C, "struct half one;\nclass uint : public a { int b; };\n__global__ void f(half a, uint b) {}",
        "f(F2 T0)"},
    {C, "namespace a { namespace b::c {\n__global__ void f(int n) {}\n} }", "f(S4)"},
    {C, "template <typename T> __device__ T g(T x) { return x; }\n__global__ void f(int n) {}",
        "f(S4)"},
    {C, "const char *s = R\"x(__global__ void no() { )\" )x\";\n__global__ void f() {}", "f()"},
    {C, "int million = 1'000'000; __global__ void f() {}", "f()"},
    {C, "[[deprecated]] __global__ void f(int a) {}", "f(S4)"},
    {C, "typedef float *pointer; __global__ void f(pointer p, pointer *q) {}", "f(B4 B8)"},
    {C, "typedef int (*callback)(int); __global__ void f(int n) {}", "f(S4)"},
    {C, "extern __shared__ float s[]; __global__ void f(int n) { if (n) { } }", "f(S4)"},
    {C, "__global__ void f(unsigned\\\n int n) {}", "f(U4)"},
    {C, "__global__ void f(int a) {}\n#define SIZE 4\n__global__ void g(int b) {}", "f(S4);g(S4)"},
    {C, "__global__ void f(float constant, int global, float *local, int *private) {}",
        "f(F4 S4 B4 B4)"},
    {C, "__global__ void f(int pipe, int generic, int read_only, const int *write_only) {}",
        "f(S4 S4 S4 B4c)"},
    {C, "__global__ void f([[maybe_unused]] int a, int b [[maybe_unused]], float c[4]) {}",
        "f(S4 S4 B4)"},
    {C, "#define RESTRICT __restrict__\n__global__ void f(const float * RESTRICT a) {}", "f(B4c)"},
    {C, "#ifdef X\n#define RESTRICT __restrict__\n#else\n#define RESTRICT\n#endif\n"
        "__global__ void f(const float * RESTRICT a, int n) {}", "f(B4c S4)"},
    {C, "#define restrict __restrict__\n__global__ void f(float * restrict a) {}", "f(B4)"},
    {C, "#define FLOATS float *\n__global__ void f(FLOATS a, const FLOATS b) {}", "f(B4 B4c)"},
    {C, "using real = float;\nusing reals = const real *;\nusing namespace std;\n"
        "__global__ void f(real x, reals p) {}", "f(F4 B4)"},
    {C, "typedef float real, *preal;\n__global__ void f(real x, preal p) {}", "f(F4 B4)"},
    {C, "typedef float *preal, real;\n__global__ void f(real x, preal p) {}", "f(F4 B4)"},
    {H, "#include <hip/hip_runtime.h>\n__global__ void f(float *x, uint32_t n) {}", "f(B4 U4)"},
    /* OpenCL */
    {O, "__kernel void f(__global const float *a, __local float *s, uint n) {}", "f(B4c L4 U4)"},
    {O, "kernel void f(global float *a, local int *s, constant int *t) {}", "f(B4 L4 B4c)"},
    {O, "__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void f(int n) {}", "f(S4)"},
    {O, "__attribute__((vec_type_hint(float4))) __kernel void f(int n) {}", "f(S4)"},
    {O, "__kernel void f(float3 v, float16 w, __global char3 *p) {}", "f(V16 V64 B4)"},
    {O, "__kernel void f(const __global float *restrict a, __private int n) {}", "f(B4c S4)"},
    {O, "__kernel void f(half h, __global half *p) {}", "f(F2 B2)"},
    {O, "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n__kernel void f(double d) {}", "f(F8)"},
    /* by its words */
    {A, "__global__ void f(int n) {}", "f(S4)"},
    {A, "__kernel void f(__local int *n) {}", "f(L4)"},
    {A, "kernel void f(int n) { int i = global_id(0); }", "f(S4)"},
};

static const struct { enum acre_language language; const char *text, *expect; } bad[] = {
    {P, "kernel int f() {}", "k:1: kernel 'f': expected 'void'"},
    {P, "kernel void", "k:1: expected a kernel's name instead of end of text"},
    {P, "kernel void (int n) {}", "expected 'void', the kernel's name"},
    {P, "kernel void f(int n", "kernel 'f': the '(' before its parameters is never closed"},
    {P, "kernel void f(int n;", "the '(' before its parameters is never closed"},
    {P, "kernel void f(int n) ", "expected '{' after the parameters, not end of text"},
    {P, "kernel void f(int n) = 3;", "expected '{' after the parameters, not '='"},
    {P, "\n\nkernel void f() {\n", "k:3: kernel 'f': the '{' is never closed"},
    {P, "kernel void f(int n,) {}", "parameter 2: before ')': a parameter without a type"},
    {P, "kernel void f(int n m) {}", "parameter 1: unexpected 'm' after a parameter's name"},
    {P, "kernel void f(3) {}", "parameter 1: expected a parameter instead of '3'"},
    {P, "kernel void f(void x) {}", "parameter 1: before ')': a parameter of type void"},
    {P, "kernel void f(int, ...) {}", "parameter 2: unexpected '.' in a parameter"},
    {P, "kernel void f(float *a) {}", "the pointer has no address space; put global or constant"},
    {P, "kernel void f(local float *a) {}", "declare a 'local' array in the kernel"},
    {P, "kernel void f(global float **a) {}", "a pointer to a pointer is not portable"},
    {P, "kernel void f(float3 v) {}", "use vectors of 2 or 4"},
    {P, "kernel void f(bool b) {}", "use int, uint, long or ulong"},
    {P, "kernel void f(size_t n) {}", "use int, uint, long or ulong"},
    {P, "typedef uint my_size_t;\nkernel void f(global my_size_t *p, const size_t n) {}",
        "use int, uint, long or ulong"},
    {P, "kernel void f(int a,\n#ifdef X\nint b,\n#endif\nint c) {}", "k:2: kernel 'f': "
        "'#ifdef X' among the parameters; put the #if around the whole kernel"},
    {P, "#if A\nkernel void f(int a) {\n#else\nkernel void f(int a, int b) {\n#endif\n}",
        "k:3: kernel 'f': '#else' in a body that began in the previous branch"},
    {P, "#ifdef X\nchar *s = R\"x( it's\n#endif\nkernel void f() {}", "unterminated"},
    {P, "#define MANY const const const const const const const const const\n"
        "#define MORE MANY MANY MANY MANY MANY MANY MANY MANY\nkernel void f(MORE int a) {}",
        "the macro 'MORE' has too many words"},
    {P, "kernel void f(constant int n) {}", "only pointers can be local or constant"},
    {P, "void kernel f() {}", "unexpected 'kernel' at the start of a kernel's declaration"},
    {P, "kernel void f(int a) {}\nkernel void f(float a) {}", "k:2: kernel 'f' has other parameters"
        " than on line 1"},
    {P, "int x;\n#define K(n) kernel void n()\nK(f) {}", "k:2: the macro 'K(n)' hides a kernel"},
    {P, "#define KERNEL kernel\nKERNEL void f() {}", "k:1: the macro 'KERNEL' hides a kernel"},
    {P, "kernel void NAME(f)(int a) {}", "is the kernel's name a macro?"},
    {P, "kernel void f(PTR float *a) {}", "'float' after a type (is a word before it a macro?)"},
    {P, "kernel void f(PTR(float) a) {}", "(or is a word before it a macro?)"},
    {P, "kernel void f() {}\n}", "k:2: unmatched '}'"},
    {P, "/* kernel void f() {}", "k:1: unterminated comment"},
    {P, "\nchar *s = \"abc\nkernel void f() {}", "k:2: unterminated string"},
    {P, "char c = 'a\n;", "k:1: unterminated character"},
    {P, "typedef int x[ kernel void f() {}", "the '[' is never closed"},
    {P, "kernel void f(unsigned float x) {}", "no such type"},
    {P, "kernel void f(short char x) {}", "no such type"},
    {P, "kernel void f(long long long x) {}", "no such type"},
    {P, "kernel void f(struct { int a; } x) {}", "expected the name of a type instead of '{'"},
    {C, "template <typename T> __global__ void f(T *a) {}", "kernel 'f': is a template"},
    {C, "template <> __global__ void f<int>(int *a) {}", "is a template; write one kernel for"},
    {C, "#define ARGS float *o, int n\n__global__ void f(ARGS) {}",
        "k:2: kernel 'f', parameter 1: the macro 'ARGS' stands for more than a type"},
    {C, "#define R int &\n__global__ void f(R n) {}", "stands for more than a type"},
    {P, "typedef float3 v;\nkernel void f(v a) {}", "vectors of three"},
    {P, "typedef size_t n;\ntypedef n m;\nkernel void f(m a) {}", "size of bool and size_t"},
    {P, "typedef bool flag;\nkernel void f(flag a) {}", "the size of bool and size_t differs"},
    {P, "typedef local float *shared;\nkernel void f(shared a) {}", "is not portable"},
    {P, "#define NODE struct node *\nkernel void f(global NODE n) {}", "for more than a type"},
    {C, "static __global__ void f(int a) {}", "is static, so it cannot be found"},
    {C, "__global__ void f(float &x) {}", "references are not supported; use a pointer or a value"},
    {C, "__global__ void f(void (*g)(int)) {}", "kernels cannot take functions"},
    {C, "__global__ void f(cudaTextureObject_t t) {}", "textures, samplers, pipes"},
    {C, "#define K __global__\nK void f(int a) {}", "k:1: the macro 'K' hides a kernel"},
    {C, "#ifdef X\n#define BOTH \\\n  extern \"C\" __global__\n#endif", "k:2: the macro 'BOTH'"},
    {C, "namespace a {\n__global__ void f() {}", "end of text inside a namespace or extern block"},
    {C, "const char *s = R\"x( )\";", "unterminated string"},
    {C, "__global__ void f(Matrix<float m) {}", "the '<' is never closed"},
    {O, "__kernel void f(read_only image2d_t i) {}", "images, textures, samplers"},
    {O, "__kernel void f(sampler_t s) {}", "images, textures, samplers"},
    {O, "#define K __kernel void\nK f(int a) {}", "k:1: the macro 'K' hides a kernel"},
};
/* clang-format on */

static void sources_are_read(void) { /* GPU-1 */
    CHECK(ACRE_COUNT(good) + ACRE_COUNT(bad) >= 100);
    for (size_t i = 0; i < ACRE_COUNT(good); i++) {
        acre_test_context("%s", good[i].text);
        struct signature *all = NULL;
        uint32_t count = 0;
        struct acre_error err = {0};
        struct acre_buf out;
        acre_buf_init(&out, 4096);
        int r =
            signatures_read("k", acre_str_from(good[i].text), good[i].language, &all, &count, &err);
        CHECK_STR(err.text, "");
        CHECK_EQ(r, 0);
        encode(all, count, &out);
        CHECK_STR(out.data, good[i].expect);
        acre_buf_finish(&out);
        signatures_free(all, count);
    }
}

static void bad_sources_are_refused_with_line_and_reason(void) { /* GPU-1 */
    for (size_t i = 0; i < ACRE_COUNT(bad); i++) {
        acre_test_context("%s", bad[i].text);
        struct signature *all = NULL;
        uint32_t count = 77;
        struct acre_error err = {0};
        int r =
            signatures_read("k", acre_str_from(bad[i].text), bad[i].language, &all, &count, &err);
        CHECK_EQ(r, ACRE_EINVALID);
        CHECK_EQ(err.code, ACRE_EINVALID);
        CHECK_HAS(err.text, bad[i].expect);
        CHECK(all == NULL && count == 77);
        r = signatures_read("k", acre_str_from(bad[i].text), bad[i].language, &all, &count, NULL);
        CHECK_EQ(r, ACRE_EINVALID);
    }
}

static void languages_are_told_by_their_words(void) { /* GPU-1 */
    static const struct {
        const char *text;
        enum acre_language expect;
    } rows[] = {
        {"__global__ void f() {}", C},
        {"#include <hip/hip_runtime.h>\n__global__ void f() {}", H},
        {"__global__ void f() { int i = hipThreadIdx_x; }", H},
        {"__global__ void f() { float hipass = 1; hipster(hip, hip_row); }", C},
        {"#ifdef NEVER\nit's\n#endif\n__global__ void f() { hipThreadIdx_x; }", H},
        {"__kernel void f() {}", O},
        {"kernel void f() { int i = get_global_id(0); }", O},
        {"kernel void f() { int i = global_id(0); }", P},
        {"// __global__\nkernel void f() {}", P},
        {"kernel void f() {} /* never ends", P},
        {"", P},
    };
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        acre_test_context("%s", rows[i].text);
        CHECK_EQ(language_of(acre_str_from(rows[i].text)), rows[i].expect);
    }
}

static void offsets_in_the_source_are_right(void) { /* GPU-1 */
    static const char text[] = "int x;\n"
                               "/* a\n b */ __global__ void\n"
                               "f(int a) {}\n"
                               "extern \"C\" __global__ void g() {}\n";
    struct signature *all = NULL;
    uint32_t count = 0;
    REQUIRE_EQ(signatures_read("k", ACRE_STR(text), C, &all, &count, NULL), 0);
    REQUIRE_EQ(count, 2);
    CHECK_EQ(all[0].line, 4);
    CHECK(strncmp(text + all[0].offsets[0], "__global__ void\nf", 17) == 0);
    CHECK(!all[0].are_c[0]);
    CHECK_EQ(all[1].line, 5);
    CHECK(strncmp(text + all[1].offsets[0], "extern \"C\"", 10) == 0);
    CHECK(all[1].are_c[0]);
    signatures_free(all, count);
}

static void branches_are_declarations_of_one_kernel(void) { /* GPU-1 */
    static const char text[] = "#ifdef A\n"
                               "extern \"C\" __global__ void f(int a) {}\n"
                               "#else\n"
                               "__global__ void f(int a) { a++; }\n"
                               "#endif\n"
                               "__global__ void g() {}\n";
    struct signature *all = NULL;
    uint32_t count = 0;
    REQUIRE_EQ(signatures_read("k", ACRE_STR(text), C, &all, &count, NULL), 0);
    REQUIRE_EQ(count, 2);
    REQUIRE_EQ(all[0].declarations, 2);
    CHECK(all[0].is_conditional && all[0].are_c[0] && !all[0].are_c[1]);
    CHECK(strncmp(text + all[0].offsets[1], "__global__ void f(int a) { a++", 30) == 0);
    CHECK(!all[1].is_conditional && all[1].declarations == 1);
    signatures_free(all, count);
}

static void signatures_are_written_as_people_write_them(void) { /* GPU-1 */
    static const struct {
        const char *text, *expect;
    } rows[] = {
        {"void add(global const float *a, uint n)", "void add(global const float *a, uint n)"},
        {"kernel void add ( global  const float* a,unsigned long long n ) ;",
         "void add(global const float *a, unsigned long long n)"},
        {"void f()", "void f()"},
        {"void f(size_t n, struct s v)", "void f(size_t n, struct s v)"},
        {"void f(float *)", "void f(float *)"},
        {"void f(std::vector<int> v)", "void f(std::vector<...> v)"},
        {"void f(int thisIsAVeryLongNameOfATypeThatGoesOnForMoreThanRoom)",
         "void f(int thisIsAVeryLongNameOfATypeThatGoesOnForMoreT...)"},
    };
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        acre_test_context("%s", rows[i].text);
        struct signature signature;
        struct acre_error err = {0};
        int r = signature_read(acre_str_from(rows[i].text), &signature, &err);
        CHECK_STR(err.text, "");
        REQUIRE_EQ(r, 0);
        struct acre_buf out;
        acre_buf_init(&out, 4096);
        signature_write(&signature, &out);
        CHECK_STR(out.data, rows[i].expect);
        acre_buf_finish(&out);
        free(signature.parameters);
    }
    struct signature signature = {.line = 99};
    struct acre_error err = {0};
    CHECK_EQ(signature_read(ACRE_STR("void f() {}"), &signature, &err), ACRE_EINVALID);
    CHECK_HAS(err.text, "signature:1: kernel 'f': unexpected '{' after the signature");
    CHECK_EQ(signature_read(ACRE_STR("add"), &signature, &err), ACRE_EINVALID);
    CHECK_EQ(signature.line, 99);
}

/* `before`, a number when there is an `after`, `after`; so many times; then the tail. */
static int read_many(const char *before, const char *after, size_t times, const char *tail,
                     uint32_t *ret_count, struct acre_error *err) {
    struct acre_buf text;
    acre_buf_init(&text, 16 << 20);
    for (size_t i = 0; i < times; i++) {
        acre_buf_puts(&text, before);
        if (after != NULL) {
            acre_buf_printf(&text, "%zu%s", i, after);
        }
    }
    acre_buf_puts(&text, tail);
    struct signature *all = NULL;
    *ret_count = 0;
    int r =
        signatures_read("k", (struct acre_str){text.data, text.length}, C, &all, ret_count, err);
    signatures_free(all, r == 0 ? *ret_count : 0);
    acre_buf_finish(&text);
    return r;
}

static void limits_are_told(void) { /* GPU-1 */
    struct acre_error err = {0};
    uint32_t count;
    CHECK_EQ(read_many("__global__ void f", "() {}\n", SIGNATURES_MAX, "", &count, &err), 0);
    CHECK_EQ(count, SIGNATURES_MAX);
    CHECK_EQ(read_many("__global__ void f", "() {}\n", SIGNATURES_MAX + 1, "", &count, &err),
             ACRE_ELIMIT);
    CHECK_HAS(err.text, "k:257: more than 256 kernels");
    CHECK_EQ(read_many("#\n\n\n\n", NULL, SOURCE_MAX_BYTES / 4, "", &count, &err), ACRE_ELIMIT);
    CHECK_HAS(err.text, "accepted: at most 4194304");
    char text[4096] = "__global__ void f(int a0";
    size_t length = strlen(text);
    for (int i = 1; i < SIGNATURE_PARAMETERS_MAX; i++) {
        length += (size_t)snprintf(text + length, sizeof(text) - length, ", int a%d", i);
    }
    CHECK_EQ(read_many("", NULL, 0, (snprintf(text + length, sizeof(text) - length, ") {}"), text),
                       &count, &err),
             0);
    snprintf(text + length, sizeof(text) - length, ", int more) {}");
    CHECK_EQ(read_many("", NULL, 0, text, &count, &err), ACRE_ELIMIT);
    CHECK_HAS(err.text, "kernel 'f' has more than 64 parameters");
    snprintf(text, sizeof(text), "__global__ void %0128d() {}", 1);
    memset(text + 16, 'n', 128);
    CHECK_EQ(read_many("", NULL, 0, text, &count, &err), ACRE_ELIMIT);
    CHECK_HAS(err.text, "a kernel's name is longer than 127 bytes");
    CHECK_EQ(read_many("__global__ void f();", NULL, SIGNATURE_DECLARATIONS_MAX, "", &count, &err),
             0);
    CHECK_EQ(
        read_many("__global__ void f();", NULL, SIGNATURE_DECLARATIONS_MAX + 1, "", &count, &err),
        ACRE_ELIMIT);
    CHECK_HAS(err.text, "kernel 'f' is declared more than 16 times");
    CHECK_EQ(read_many("#define m", " float\n", 1000, "", &count, &err), 0);
    CHECK_EQ(read_many("namespace n", " { ", 257, "", &count, &err), ACRE_ELIMIT);
    CHECK_HAS(err.text, "namespaces nested more than 256 deep");
}

/* Of the processor's time, which a busy machine does not lengthen: the least of some. */
static uint64_t least_ns(const char *before, const char *after, size_t count) {
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < 2; i++) {
        struct timespec begin, end;
        uint32_t kernels;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
        read_many(before, after, count, "", &kernels, NULL);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
        uint64_t ns = (uint64_t)((end.tv_sec - begin.tv_sec) * INT64_C(1000000000) + end.tv_nsec -
                                 begin.tv_nsec);
        least = ACRE_MIN(least, ns);
    }
    return least;
}

/* Each of these made a careless reader look at the rest of the text again and again. */
static void reading_takes_linear_time(void) { /* GPU-1 */
    static const struct {
        const char *before, *after;
    } pieces[] = {
        {"typedef x[ ", NULL},
        {"typedef x< ", NULL},
        {"/* ", NULL},
        {"\"", NULL},
        {"R\"x( ", NULL},
        {"#if 0\n", NULL},
        {"template < ", NULL},
        {"((((", NULL},
        {"{{{{", NULL},
        {"[", NULL},
        {"typedef int t", ";"},
        {"#define A(kernel) kernel\n", NULL},
        {"'", NULL},
        {"a, ", NULL},
        {"__global__ void f();", NULL},
        {"#if A\n'\\'", NULL},
        {"#define A const\n", NULL},
        {"#define a", " float\n"},
        {"__global__ void g(){}\n#if A\n", NULL},
    };
    for (size_t i = 0; i < ACRE_COUNT(pieces); i++) {
        const char *before = pieces[i].before;
        size_t count = SOURCE_MAX_BYTES / 4 / (strlen(before) + 1);
        acre_test_context("%s", before);
        uint64_t part_ns = least_ns(before, pieces[i].after, count / 8);
        uint64_t whole_ns = least_ns(before, pieces[i].after, count);
        CHECK(whole_ns < 24 * part_ns + 1000000); /* 8 times; 64 if each looks at all */
    }
}

static const struct acre_test tests[] = {
    {"sources_are_read", sources_are_read, 0},
    {"bad_sources_are_refused_with_line_and_reason", bad_sources_are_refused_with_line_and_reason,
     0},
    {"languages_are_told_by_their_words", languages_are_told_by_their_words, 0},
    {"offsets_in_the_source_are_right", offsets_in_the_source_are_right, 0},
    {"branches_are_declarations_of_one_kernel", branches_are_declarations_of_one_kernel, 0},
    {"signatures_are_written_as_people_write_them", signatures_are_written_as_people_write_them, 0},
    {"limits_are_told", limits_are_told, 0},
    {"reading_takes_linear_time", reading_takes_linear_time, 120},
};

ACRE_TEST_MAIN(tests)
