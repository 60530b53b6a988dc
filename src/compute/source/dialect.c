/* dialect.c - preludes, and the few changes to the text itself.
 *
 * OpenCL C has the words of the dialect or functions for them. For CUDA and HIP the words are
 * macros and small functions, and three of them need a look at the text. `local` and `constant`
 * before an array say where it is; before a pointer they say where it points to, which CUDA does
 * not accept. It never accepts `global`, and a macro of that name would break __global__, which is
 * itself a macro that contains the word. These words are overwritten with blanks, byte for byte, so
 * that lines and columns stay.
 *
 * Functions without a keyword are meant for the device: NVRTC has an option for that (cuda_rtc.c),
 * clang (HIPRTC) a pragma. Kernels get extern "C", so that they can be found by name: in the
 * dialect by the macro, in plain CUDA and HIP by putting it before their declarations, whose
 * positions the signatures give. The alternative, lowered names (nvrtcAddNameExpression), would
 * have to be kept with each binary, on disk too, and differ between back ends. */
#include "compute/source/dialect_text.h"

#include "compute/backend.h"

#include <string.h>

enum { POINTER_TOKENS_MAX = 16, NAME_SHOWN = 128 };

/* clang-format off */
static const char *const cuda_prelude[] = {
    "typedef unsigned char uchar;\n"
    "typedef unsigned short ushort;\n"
    "typedef unsigned int uint;\n"
    "typedef unsigned long ulong;\n"
    "#define ACRE_FUNCTION __device__ __forceinline__\n"
    "ACRE_FUNCTION ulong acre_x(uint d, uint x, uint y, uint z) {\n"
    "    return d == 0 ? x : d == 1 ? y : z;\n"
    "}\n"
    "#define ACRE_ID(name, of)                            \\\n"
    "    ACRE_FUNCTION ulong name(uint d) {               \\\n"
    "        return acre_x(d, of.x, of.y, of.z);          \\\n"
    "    }\n"
    "ACRE_ID(local_id, threadIdx)\n"
    "ACRE_ID(group_id, blockIdx)\n"
    "ACRE_ID(local_size, blockDim)\n"
    "ACRE_ID(group_count, gridDim)\n"
    "#undef ACRE_ID\n"
    "ACRE_FUNCTION ulong global_id(uint d) {\n"
    "    return group_id(d) * local_size(d) + local_id(d);\n"
    "}\n"
    "ACRE_FUNCTION ulong global_size(uint d) {\n"
    "    return group_count(d) * local_size(d);\n"
    "}\n"
    "ACRE_FUNCTION void barrier() {\n"
    "    __syncthreads();\n"
    "}\n",
    "#define ACRE_ATOMIC(name, of, type)                          \\\n"
    "    ACRE_FUNCTION type name(volatile type *p, type value) {  \\\n"
    "        return of((type *)p, value);                         \\\n"
    "    }\n"
    "#define ACRE_ATOMICS(name, of) ACRE_ATOMIC(name, of, int) ACRE_ATOMIC(name, of, uint)\n"
    "ACRE_ATOMICS(atomic_add, atomicAdd)\n"
    "ACRE_ATOMICS(atomic_sub, atomicSub)\n"
    "ACRE_ATOMICS(atomic_min, atomicMin)\n"
    "ACRE_ATOMICS(atomic_max, atomicMax)\n"
    "ACRE_ATOMICS(atomic_and, atomicAnd)\n"
    "ACRE_ATOMICS(atomic_or, atomicOr)\n"
    "ACRE_ATOMICS(atomic_xor, atomicXor)\n"
    "ACRE_ATOMICS(atomic_exchange, atomicExch)\n"
    "ACRE_ATOMIC(atomic_add_float, atomicAdd, float)\n"
    "#undef ACRE_ATOMICS\n"
    "#undef ACRE_ATOMIC\n"
    "ACRE_FUNCTION int atomic_compare(volatile int *p, int expected, int value) {\n"
    "    return atomicCAS((int *)p, expected, value);\n"
    "}\n"
    "ACRE_FUNCTION uint atomic_compare(volatile uint *p, uint expected, uint value) {\n"
    "    return atomicCAS((uint *)p, expected, value);\n"
    "}\n",
    "ACRE_FUNCTION uint as_uint(float x) { return __float_as_uint(x); }\n"
    "ACRE_FUNCTION uint as_uint(int x) { return (uint)x; }\n"
    "ACRE_FUNCTION uint as_uint(uint x) { return x; }\n"
    "ACRE_FUNCTION float as_float(uint x) { return __uint_as_float(x); }\n"
    "ACRE_FUNCTION float as_float(int x) { return __int_as_float(x); }\n"
    "ACRE_FUNCTION float as_float(float x) { return x; }\n"
    "ACRE_FUNCTION int popcount(int x) { return __popc((uint)x); }\n"
    "ACRE_FUNCTION uint popcount(uint x) { return (uint)__popc(x); }\n"
    "ACRE_FUNCTION long popcount(long x) { return __popcll((unsigned long long)x); }\n"
    "ACRE_FUNCTION ulong popcount(ulong x) { return (ulong)__popcll(x); }\n"
    "ACRE_FUNCTION int clz(int x) { return __clz(x); }\n"
    "ACRE_FUNCTION uint clz(uint x) { return (uint)__clz((int)x); }\n"
    "ACRE_FUNCTION long clz(long x) { return __clzll(x); }\n"
    "ACRE_FUNCTION ulong clz(ulong x) { return (ulong)__clzll((long long)x); }\n"
    "template <typename T> ACRE_FUNCTION T clamp(T x, T low, T high) {\n"
    "    return x < low ? low : x > high ? high : x;\n"
    "}\n"
    "#define kernel extern \"C\" __global__\n"
    "#define local __shared__\n"
    "#define constant __constant__\n"
    "#define restrict __restrict__\n"
    /* Of rings: a handler is a function that 32 lanes of one warp call. */
    "#define handler static\n"
    "#ifdef __HIP__\n"
    "#define lane_sync() __builtin_amdgcn_wave_barrier()\n"
    "#else\n"
    "#define lane_sync() __syncwarp()\n"
    "#endif\n",
    NULL};

static const char *const opencl_prelude[] = {
    "#ifdef cl_khr_fp64\n"
    "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n"
    "#endif\n"
    "#define global_id(d) ((ulong)get_global_id(d))\n"
    "#define local_id(d) ((ulong)get_local_id(d))\n"
    "#define group_id(d) ((ulong)get_group_id(d))\n"
    "#define global_size(d) ((ulong)get_global_size(d))\n"
    "#define local_size(d) ((ulong)get_local_size(d))\n"
    "#define group_count(d) ((ulong)get_num_groups(d))\n"
    "#define barrier() barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)\n"
    "#undef atomic_exchange\n" /* C11's, which is another */
    "#define atomic_exchange(p, value) atomic_xchg(p, value)\n"
    "#define atomic_compare(p, expected, value) atomic_cmpxchg(p, expected, value)\n"
    "#define handler static\n"
    "#define lane_sync() ((void)0)\n" /* one lane */
    /* OpenCL adds no floats: take the old bits, and try until nobody came between. */
    "#define ACRE_ADD_FLOAT(space)                                                         \\\n"
    "    static float __attribute__((overloadable)) atomic_add_float(volatile space float *p, \\\n"
    "                                                                float value) {        \\\n"
    "        volatile space uint *bits = (volatile space uint *)p;                         \\\n"
    "        uint old = *bits, seen;                                                       \\\n"
    "        while ((seen = atomic_cmpxchg(bits, old, as_uint(as_float(old) + value))) !=  \\\n"
    "               old) {                                                                 \\\n"
    "            old = seen;                                                               \\\n"
    "        }                                                                             \\\n"
    "        return as_float(old);                                                         \\\n"
    "    }\n"
    "ACRE_ADD_FLOAT(global)\n"
    "ACRE_ADD_FLOAT(local)\n"
    "#undef ACRE_ADD_FLOAT\n",
    NULL};
/* clang-format on */

struct dialect { /* of a back end that takes a language of its own, too */
    enum acre_language plain;
    const char *const *prelude;
    const char *before, *after; /* around a text in the dialect */
    bool is_cplusplus;
};

static const struct dialect dialects[] = {
    {ACRE_LANGUAGE_CUDA, cuda_prelude, "", "", true},
    {ACRE_LANGUAGE_HIP, cuda_prelude, "#pragma clang force_cuda_host_device begin\n",
     "\n#pragma clang force_cuda_host_device end\n", true},
    {ACRE_LANGUAGE_OPENCL, opencl_prelude, "", "", false},
};

static const char *const language_names[] = {"", "the portable dialect", "CUDA", "HIP", "OpenCL"};

static const struct dialect *dialect_of(const char *backend) {
    const struct backend *table = backend_find(acre_str_from(backend));
    for (size_t i = 0; i < ACRE_COUNT(dialects) && table != NULL; i++) {
        if (dialects[i].plain == table->language) {
            return &dialects[i];
        }
    }
    return NULL;
}

void dialect_prelude(const char *backend, struct acre_buf *out) {
    const struct dialect *dialect = dialect_of(backend);
    for (const char *const *part = dialect != NULL ? dialect->prelude : NULL;
         part != NULL && *part != NULL; part++) {
        acre_buf_puts(out, *part);
    }
}

void dialect_line(const char *name, uint32_t line, struct acre_buf *out) {
    name = name != NULL ? name : "kernel";
    acre_buf_printf(out, "#line %u \"", line);
    for (size_t i = 0; name[i] != '\0' && i < NAME_SHOWN; i++) {
        bool is_odd = (unsigned char)name[i] < ' ' || name[i] == '"' || name[i] == '\\';
        acre_buf_putc(out, is_odd ? '?' : name[i]);
    }
    acre_buf_puts(out, "\"\n");
}

bool dialect_points(struct lexer lexer, bool *ret_is_const) {
    struct source_token token;
    for (size_t i = 0; i < POINTER_TOKENS_MAX && lexer_next(&lexer, &token, NULL) == 0; i++) {
        *ret_is_const |= token_is(&token, "const");
        if (token_is(&token, "*")) {
            return true;
        }
        if (token_is(&token, "(") && i > 0) { /* local float (*rows)[18] */
            return lexer_next(&lexer, &token, NULL) == 0 && token_is(&token, "*");
        }
        if (token.kind != TOKEN_WORD) {
            return false;
        }
    }
    return false;
}

/* What a word is replaced by: as long as it is, or NULL to keep it. */
static const char *replacement(const struct lexer *lexer, const struct source_token *token,
                               bool was_const, bool is_parameter) {
    bool is_const = was_const;
    if (token_is(token, "global")) {
        return "      ";
    }
    if (token_is(token, "local")) {
        return is_parameter || dialect_points(*lexer, &is_const) ? "     " : NULL;
    }
    if (token_is(token, "constant") && (dialect_points(*lexer, &is_const) || is_parameter)) {
        return is_const ? "        " : "const   ";
    }
    return NULL;
}

/* `local float *p` becomes `      float *p`, `constant float *p` becomes `const    float *p`; in
 * macros too, which is one call of itself deep. */
static void write_cplusplus(struct acre_str text, bool is_macro, struct acre_buf *out) {
    struct lexer lexer = lexer_begin("", text);
    struct source_token token = {.kind = TOKEN_END};
    size_t written = 0;
    uint32_t parens = 0; /* in them an array is a parameter: `local float tile[18][18]` points */
    bool was_const = false;
    lexer.in_line = is_macro;
    while (lexer_next(&lexer, &token, NULL) == 0 && token.kind != TOKEN_END) {
        parens += token_is(&token, "(");
        parens -= token_is(&token, ")") && parens > 0;
        const char *other = replacement(&lexer, &token, was_const, parens > 0);
        struct acre_str rest;
        bool is_define = token.kind == TOKEN_DIRECTIVE &&
                         acre_str_is(directive_word(token.text, &rest), "define");
        if (other != NULL || is_define) {
            acre_buf_append(out, text.data + written, token.offset - written);
            written = token.offset + token.text.length;
        }
        if (other != NULL) {
            acre_buf_puts(out, other);
        } else if (is_define) {
            write_cplusplus(token.text, true, out);
        }
        was_const = token_is(&token, "const");
    }
    acre_buf_append(out, text.data + written, text.length - written);
}

/* A text in the dialect, as it stands behind the prelude. */
static void write_portable(const struct dialect *dialect, const char *name, struct acre_str text,
                           struct acre_buf *out) {
    acre_buf_puts(out, dialect->before);
    dialect_line(name, 1, out);
    write_cplusplus(text, false, out);
    acre_buf_puts(out, dialect->after);
}

bool dialect_declaration(const struct signature *all, uint32_t count, size_t from,
                         struct declaration *ret_declaration) {
    struct declaration declaration = {.offset = SIZE_MAX};
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < all[i].declarations; k++) {
            if (all[i].offsets[k] >= from && all[i].offsets[k] < declaration.offset) {
                declaration = (struct declaration){&all[i], all[i].offsets[k], all[i].are_c[k],
                                                   all[i].have_bodies[k]};
            }
        }
    }
    *ret_declaration = declaration;
    return declaration.kernel != NULL;
}

/* The text of a back end's own language; with extern "C" for kernels that have none. */
static void write_plain(const char *name, struct acre_str text, const struct signature *all,
                        uint32_t count, struct acre_buf *out) {
    size_t written = 0;
    struct declaration declaration = {0};
    dialect_line(name, 1, out);
    for (size_t at = 0; dialect_declaration(all, count, at, &declaration);
         at = declaration.offset + 1) {
        ACRE_ASSERT(declaration.offset >= written && declaration.offset <= text.length);
        acre_buf_append(out, text.data + written, declaration.offset - written);
        acre_buf_puts(out, declaration.is_c ? "" : "extern \"C\" ");
        written = declaration.offset;
        struct lexer lexer =
            lexer_begin("", (struct acre_str){text.data + written, text.length - written});
        struct source_token token;
        if (!declaration.is_c && lexer_next(&lexer, &token, NULL) == 0 &&
            token_is(&token, "extern")) {
            written += token.text.length; /* it says that already */
        }
    }
    acre_buf_append(out, text.data + written, text.length - written);
}

static int refuse_language(const char *backend, const char *name, enum acre_language language,
                           struct acre_error *err) {
    const struct dialect *dialect = dialect_of(backend);
    const char *taker = acre_language_backend(language);
    char shown[NAME_SHOWN];
    return acre_fail(
        err, ACRE_EUNSUPPORTED,
        "%s is written in %s, which back end %s accepts; back end %s accepts the portable "
        "dialect%s%s",
        acre_str_show(acre_str_from(name != NULL ? name : "kernel"), shown, sizeof(shown)),
        language_names[language], taker != NULL ? taker : "", backend,
        dialect != NULL ? " or " : "", dialect != NULL ? language_names[dialect->plain] : "");
}

int dialect_write(const char *backend, const struct acre_source *source,
                  enum acre_language language, const struct signature *all, uint32_t count,
                  struct acre_buf *out, struct acre_error *err) {
    ACRE_ASSERT(language != ACRE_LANGUAGE_AUTO && language <= ACRE_LANGUAGE_OPENCL);
    const struct dialect *dialect = dialect_of(backend);
    struct acre_str text = acre_str_from(source->text);
    bool is_portable = language == ACRE_LANGUAGE_PORTABLE;
    if (!is_portable && (dialect == NULL || dialect->plain != language)) {
        return refuse_language(backend, source->name, language, err);
    }
    if (dialect == NULL) {
        return dialect_write_cpu(source, all, count, out, err);
    }
    if (is_portable) {
        dialect_prelude(backend, out);
    }
    if (!dialect->is_cplusplus) {
        dialect_marked(source->name, text, all, count, out);
        dialect_sizes(all, count, out);
    } else if (is_portable) {
        write_portable(dialect, source->name, text, out);
    } else {
        write_plain(source->name, text, all, count, out);
    }
    return acre_buf_failed(out)
               ? acre_fail(err, ACRE_ELIMIT, "a source of more than %zu bytes", out->max)
               : 0;
}
