/* dialect_cpu_prelude.c - the words of the portable dialect, in C.
 *
 * No system header is included: so kernels may use every name that C has not taken, and no
 * development package is needed. Functions of <math.h> are chosen by the type of their argument, as
 * in GPU languages. A kernel gets one more parameter, acre_item, which says which item it is; the
 * compiler vectorizes loops over items with everything inlined. */
#include "compute/source/dialect_cpu.h"

/* clang-format off */
static const char *const prelude[] = {
    "typedef unsigned char uchar; typedef unsigned short ushort;\n"
    "typedef unsigned int uint; typedef unsigned long ulong; typedef unsigned long size_t;\n"
    "#define bool _Bool\n"
    "#define true 1\n"
    "#define false 0\n"
    "#define kernel static inline __attribute__((always_inline))\n"
    "#define handler static inline\n" /* of rings, which have one lane here */
    "#define lane_sync() ((void)0)\n"
    "#define global\n"
    "#define constant const\n"
    "#define local static __thread __attribute__((aligned(16)))\n"
    "struct acre_groups { ulong first, end; uint groups[3], group[3]; };\n"
    "struct acre_item { ulong at[3], in[3], of[3], size[3], count[3]; };\n"
    "#define acre_axis(a, d) ((d) == 0 ? (a)[0] : (d) == 1 ? (a)[1] : (a)[2])\n"
    "#define global_id(d) acre_axis(acre_item.at, d)\n"
    "#define local_id(d) acre_axis(acre_item.in, d)\n"
    "#define group_id(d) acre_axis(acre_item.of, d)\n"
    "#define local_size(d) acre_axis(acre_item.size, d)\n"
    "#define group_count(d) acre_axis(acre_item.count, d)\n"
    "#define global_size(d) (local_size(d) * group_count(d))\n",

    "#define acre_vector(T)\\\n"
    "    typedef struct __attribute__((aligned(2 * sizeof(T)))) { T x, y; } T##2;\\\n"
    "    typedef struct __attribute__((aligned(4 * sizeof(T)))) { T x, y, z, w; } T##4;\n"
    "acre_vector(char) acre_vector(uchar) acre_vector(short) acre_vector(ushort)\n"
    "acre_vector(int) acre_vector(uint) acre_vector(long) acre_vector(ulong)\n"
    "acre_vector(float) acre_vector(double)\n",

    /* As in cpu/fiber.h. */
    "struct acre_fibers;\n"
    "struct acre_call {\n"
    "    struct acre_fibers *fibers;\n"
    "    void (*run)(struct acre_fibers *, uint, void (*)(const void *, uint), const void *);\n"
    "    void (*barrier)(struct acre_fibers *);\n"
    "};\n"
    "static __thread const struct acre_call *acre_call;\n"
    "#define acre_seen __attribute__((visibility(\"default\")))\n"
    "acre_seen void acre_bind(const struct acre_call *call) { acre_call = call; }\n"
    "static __attribute__((noinline, unused)) void acre_barrier(void)\n"
    "    { acre_call->barrier(acre_call->fibers); }\n"
    "#define barrier() acre_barrier()\n",

    "#define atomic_add(p, v) __atomic_fetch_add(p, v, __ATOMIC_RELAXED)\n"
    "#define atomic_sub(p, v) __atomic_fetch_sub(p, v, __ATOMIC_RELAXED)\n"
    "#define atomic_and(p, v) __atomic_fetch_and(p, v, __ATOMIC_RELAXED)\n"
    "#define atomic_or(p, v) __atomic_fetch_or(p, v, __ATOMIC_RELAXED)\n"
    "#define atomic_xor(p, v) __atomic_fetch_xor(p, v, __ATOMIC_RELAXED)\n"
    "#define atomic_exchange(p, v) __atomic_exchange_n(p, v, __ATOMIC_RELAXED)\n"
    "#define acre_atomic(p, v, better) (__extension__({ __typeof__(p) acre_p = (p);\\\n"
    "    __typeof__(*acre_p + 0) acre_v = (v);\\\n"
    "    __typeof__(*acre_p + 0) acre_o = __atomic_load_n(acre_p, __ATOMIC_RELAXED);\\\n"
    "    while ((better) && !__atomic_compare_exchange_n(acre_p, &acre_o, acre_v, 1,\\\n"
    "        __ATOMIC_RELAXED, __ATOMIC_RELAXED)) { } acre_o; }))\n"
    "#define atomic_min(p, v) acre_atomic(p, v, acre_v < acre_o)\n"
    "#define atomic_max(p, v) acre_atomic(p, v, acre_v > acre_o)\n"
    "#define atomic_compare(p, expected, v) (__extension__({ __typeof__(p) acre_p = (p);\\\n"
    "    __typeof__(*acre_p + 0) acre_o = (expected);\\\n"
    "    __atomic_compare_exchange_n(acre_p, &acre_o, v, 0, __ATOMIC_RELAXED,\\\n"
    "        __ATOMIC_RELAXED); acre_o; }))\n"
    "static inline float acre_from_bits(uint u)\n"
    "    { float f; __builtin_memcpy(&f, &u, 4); return f; }\n"
    "static inline uint acre_to_bits(float f)\n"
    "    { uint u; __builtin_memcpy(&u, &f, 4); return u; }\n"
    "static inline float acre_same_float(float x) { return x; }\n"
    "static inline uint acre_same_uint(uint x) { return x; }\n"
    "#define as_float(x) _Generic((x), float: acre_same_float, default: acre_from_bits)(x)\n"
    "#define as_uint(x) _Generic((x), float: acre_to_bits, default: acre_same_uint)(x)\n"
    "static inline float atomic_add_float(volatile float *p, float v) {\n"
    "    volatile uint *u = (volatile uint *)p; uint old = __atomic_load_n(u, __ATOMIC_RELAXED);\n"
    "    while (!__atomic_compare_exchange_n(u, &old, acre_to_bits(acre_from_bits(old) + v), 1,\n"
    "        __ATOMIC_RELAXED, __ATOMIC_RELAXED)) { }\n"
    "    return acre_from_bits(old);\n"
    "}\n",

    "#define acre_bits(T, N, W, S)\\\n"
    "    static inline T acre_clz_##N(T x) { return x == 0 ? W : (T)__builtin_clz##S(x); }\\\n"
    "    static inline T acre_popcount_##N(T x) { return (T)__builtin_popcount##S(x); }\n"
    "acre_bits(int, i, 32, ) acre_bits(uint, u, 32, ) acre_bits(long, l, 64, l)\n"
    "acre_bits(ulong, ul, 64, l)\n"
    "#define acre_integer(F, x) _Generic((x) + 0, uint: acre_##F##_u, long: acre_##F##_l,\\\n"
    "    ulong: acre_##F##_ul, default: acre_##F##_i)(x)\n"
    "#define clz(x) acre_integer(clz, x)\n"
    "#define popcount(x) acre_integer(popcount, x)\n"
    "#define acre_pair(T, N)\\\n"
    "    static inline T acre_min_##N(T a, T b) { return b < a ? b : a; }\\\n"
    "    static inline T acre_max_##N(T a, T b) { return a < b ? b : a; }\\\n"
    "    static inline T acre_clamp_##N(T x, T a, T b) {\\\n"
    "        x = x < a ? a : x; return b < x ? b : x; }\n"
    "acre_pair(int, i) acre_pair(uint, u) acre_pair(long, l) acre_pair(ulong, ul)\n"
    "acre_pair(float, f) acre_pair(double, d)\n"
    "#define acre_kind(F, x) _Generic((x), int: acre_##F##_i, uint: acre_##F##_u,\\\n"
    "    long: acre_##F##_l, ulong: acre_##F##_ul, float: acre_##F##_f, double: acre_##F##_d)\n"
    "#define min(a, b) acre_kind(min, (a) + (b))(a, b)\n"
    "#define max(a, b) acre_kind(max, (a) + (b))(a, b)\n"
    "#define clamp(x, a, b) acre_kind(clamp, (x) + (a) + (b))(x, a, b)\n"
    "#define abs(x) _Generic((x), long: __builtin_labs, float: __builtin_fabsf,\\\n"
    "    double: __builtin_fabs, default: __builtin_abs)(x)\n"
    "#define isnan(x) __builtin_isnan(x)\n"
    "#define isinf(x) __builtin_isinf_sign(x)\n"
    "#define isfinite(x) __builtin_isfinite(x)\n"
    "#define signbit(x) __builtin_signbit(x)\n"
    "#define INFINITY __builtin_inff()\n"
    "#define NAN __builtin_nanf(\"\")\n",

    "#define acre_real(F, t) _Generic((t), float: __builtin_##F##f, default: __builtin_##F)\n"
    "#define ldexp(x, n) acre_real(ldexp, x)(x, n)\n"
    "#define fma(x, y, z) acre_real(fma, (x) + (y) + (z))(x, y, z)\n",

    /* Spots: which group, or how long a row of groups, a turn of the loop is about. All of it is
     * copied to where no kernel writes, and the place in the group is so computed that the
     * compiler sees group_id * local_size + local_id to be global_id. */
    "struct acre_spot { const void *const *arguments;\n"
    "    ulong of[3], size[3], count[3], groups, from, to; };\n"
    "#define acre_inline static inline __attribute__((always_inline))\n"
    "acre_inline void acre_begin(struct acre_spot *s, const struct acre_groups *g) {\n"
    "    s->size[0] = g->group[0]; s->size[1] = g->group[1]; s->size[2] = g->group[2];\n"
    "    s->count[0] = g->groups[0]; s->count[1] = g->groups[1]; s->count[2] = g->groups[2];\n"
    "}\n"
    "acre_inline void acre_locate(struct acre_spot *s, ulong number, ulong end, int is_row) {\n"
    "    ulong yz = number / s->count[0];\n"
    "    s->of[0] = number - yz * s->count[0];\n"
    "    s->of[2] = yz / s->count[1]; s->of[1] = yz - s->of[2] * s->count[1];\n"
    "    s->groups = is_row ? s->count[0] - s->of[0] : 1;\n"
    "    s->groups = s->groups < end - number ? s->groups : end - number;\n"
    "    s->from = s->of[0] * s->size[0]; s->to = s->from + s->groups * s->size[0];\n"
    "}\n"
    "#ifdef __clang__\n"
    "#pragma clang diagnostic ignored \"-Wpass-failed\"\n"
    "#define acre_unordered _Pragma(\"clang loop vectorize(assume_safety)\")\n"
    "#else\n"
    "#define acre_unordered _Pragma(\"GCC ivdep\")\n"
    "#endif\n"
    "#define acre_line(T, call) acre_unordered\\\n"
    "    for (T acre_x = (T)acre_s.from; acre_x < (T)acre_s.to; acre_x++) {\\\n"
    "        const struct acre_item acre_item = { { acre_x, acre_ay, acre_az },\\\n"
    "            { acre_x - (T)acre_s.of[0] * (T)acre_s.size[0], acre_y, acre_z },\\\n"
    "            { acre_s.of[0], acre_s.of[1], acre_s.of[2] },\\\n"
    "            { acre_s.size[0], acre_s.size[1], acre_s.size[2] },\\\n"
    "            { acre_s.count[0], acre_s.count[1], acre_s.count[2] } }; call; }\n"
    "#define acre_each(is_row, T, call)\\\n"
    "    struct acre_spot acre_s; acre_begin(&acre_s, acre_g);\\\n"
    "    const ulong acre_end = acre_g->end;\\\n"
    "    for (ulong acre_n = acre_g->first; acre_n < acre_end; acre_n += acre_s.groups) {\\\n"
    "        acre_locate(&acre_s, acre_n, acre_end, is_row);\\\n"
    "        for (ulong acre_z = 0; acre_z < acre_s.size[2]; acre_z++)\\\n"
    "        for (ulong acre_y = 0; acre_y < acre_s.size[1]; acre_y++) {\\\n"
    "            const ulong acre_ay = acre_s.of[1] * acre_s.size[1] + acre_y;\\\n"
    "            const ulong acre_az = acre_s.of[2] * acre_s.size[2] + acre_z;\\\n"
    "            if (sizeof(T) == 8 || acre_s.to <= 0x7fffffff) { acre_line(T, call) }\\\n"
    "            else { acre_line(ulong, call) } } }\n",

    "acre_inline struct acre_item acre_item_at(const struct acre_spot *s, uint index) {\n"
    "    const ulong *n = s->size; ulong yz = index / (uint)n[0];\n"
    "    ulong x = index - yz * n[0], z = (uint)yz / (uint)n[1], y = yz - z * n[1];\n"
    "    return (struct acre_item){\n"
    "        { s->from + x, s->of[1] * n[1] + y, s->of[2] * n[2] + z }, { x, y, z },\n"
    "        { s->of[0], s->of[1], s->of[2] }, { n[0], n[1], n[2] },\n"
    "        { s->count[0], s->count[1], s->count[2] } };\n"
    "}\n"
    "static inline void acre_each_fiber(const struct acre_groups *g, const void *const *a,\n"
    "    void (*item)(const void *, uint)) {\n"
    "    struct acre_spot s = { .arguments = a };\n"
    "    acre_begin(&s, g);\n"
    "    for (ulong n = g->first; n < g->end; n++) {\n"
    "        acre_locate(&s, n, g->end, 0);\n"
    "        acre_call->run(acre_call->fibers, s.size[0] * s.size[1] * s.size[2], item, &s);\n"
    "    }\n"
    "}\n",
};

static const char *const of_one[] = {
    "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh",
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "logb", "sqrt", "cbrt", "fabs",
    "floor", "ceil", "trunc", "round", "rint", "nearbyint", "erf", "erfc", "tgamma", "lgamma",
};
static const char *const of_two[] = {
    "pow", "atan2", "fmod", "remainder", "fmin", "fmax", "fdim", "hypot", "copysign", "nextafter",
};
/* clang-format on */

void dialect_prelude_cpu(struct acre_buf *out) {
    for (size_t i = 0; i < ACRE_COUNT(prelude); i++) {
        acre_buf_puts(out, prelude[i]);
    }
    for (size_t i = 0; i < ACRE_COUNT(of_one); i++) {
        acre_buf_printf(out, "#define %s(x) acre_real(%s, x)(x)\n", of_one[i], of_one[i]);
    }
    for (size_t i = 0; i < ACRE_COUNT(of_two); i++) {
        acre_buf_printf(out, "#define %s(x, y) acre_real(%s, (x) + (y))(x, y)\n", of_two[i],
                        of_two[i]);
    }
}
