/* dialect_cpu.c - portable source made into C: the prelude, the source, and an entry per kernel.
 *
 * Kernels stay as written. While the source is read, their names are macros that add a parameter
 * (the item) to the definition: the compiler's messages keep lines and columns. An entry takes
 * groups and runs their items:
 *   - in plain loops, x innermost, if no item waits for another. Items are unordered by definition;
 *     the loop says so, and the compiler vectorizes it. If the kernel cannot distinguish groups, a
 *     row of groups is one long loop. The index stays in 32 bits while that is enough, in the type
 *     that the kernel stores it in: conversions that could wrap would prevent vectorization.
 *   - as fibers, if the kernel has barriers (cpu/fiber.h). */
#include "compute/source/dialect_cpu.h"
#include "compute/source/dialect_text.h"

#include <stdlib.h>
#include <string.h>

static bool is_pointer(const struct parameter *parameter) {
    return parameter->kind == PARAMETER_BUFFER || parameter->kind == PARAMETER_LOCAL;
}

/* How argument `index` is read from `array`. */
static void write_argument(const struct signature *signature, uint32_t index, const char *array,
                           struct acre_buf *out) {
    if (is_pointer(&signature->parameters[index])) {
        acre_buf_printf(out, "(void *)%s[%u]", array, index);
    } else {
        acre_buf_printf(out, "*(const " DIALECT_TYPE_NAME " *)%s[%u]", index, signature->name,
                        array, index);
    }
}

static const char *index_type(uint8_t traits) {
    return (traits & CPU_UINT_INDEX) != 0  ? "uint"
           : (traits & CPU_INT_INDEX) != 0 ? "int"
                                           : "ulong";
}

/* Values are read once, before the loops: what kernels write might be them, for all C knows. */
static void write_loops(const struct signature *signature, uint8_t traits, struct acre_buf *out) {
    const char *name = signature->name;
    acre_buf_printf(out,
                    "acre_seen void acre_entry_%s(const struct acre_groups *acre_g,"
                    " const void *const *acre_a) {\n",
                    name);
    for (uint32_t i = 0; i < signature->count; i++) {
        acre_buf_printf(out, "    const __auto_type acre_p%u = ", i);
        write_argument(signature, i, "acre_a", out);
        acre_buf_puts(out, ";\n");
    }
    acre_buf_printf(out, "    acre_each(%d, %s, acre_kernel_%s(acre_item",
                    (traits & CPU_NEEDS_GROUP) == 0, index_type(traits), name);
    for (uint32_t i = 0; i < signature->count; i++) {
        acre_buf_printf(out, ", acre_p%u", i);
    }
    acre_buf_puts(out, "))\n}\n");
}

static void write_fibers(const struct signature *signature, struct acre_buf *out) {
    const char *name = signature->name;
    acre_buf_printf(out,
                    "static void acre_item_%s(const void *acre_c, unsigned acre_i) {\n"
                    "    const struct acre_spot *acre_s = acre_c;\n"
                    "    acre_kernel_%s(acre_item_at(acre_s, acre_i)",
                    name, name);
    for (uint32_t i = 0; i < signature->count; i++) {
        acre_buf_puts(out, ", ");
        write_argument(signature, i, "acre_s->arguments", out);
    }
    acre_buf_printf(out,
                    ");\n}\n"
                    "acre_seen void acre_entry_%s(const struct acre_groups *acre_g,"
                    " const void *const *acre_a) {\n"
                    "    acre_each_fiber(acre_g, acre_a, acre_item_%s);\n}\n",
                    name, name);
}

/* struct entry_facts of cpu/module.c. */
static void write_facts(const struct signature *signature, uint8_t traits, struct acre_buf *out) {
    acre_buf_printf(out, "acre_seen const unsigned acre_facts_%s[] = { %d, %d, %u", signature->name,
                    (traits & CPU_HAS_BARRIER) != 0, (traits & CPU_HAS_LOOP) == 0,
                    signature->count);
    for (uint32_t i = 0; i < signature->count; i++) {
        if (is_pointer(&signature->parameters[i])) {
            acre_buf_puts(out, ", 0");
        } else {
            acre_buf_printf(out, ", sizeof(" DIALECT_TYPE_NAME ")", i, signature->name);
        }
    }
    acre_buf_puts(out, " };\n");
}

static void write_entry(const struct signature *signature, uint8_t traits, struct acre_buf *out) {
    write_facts(signature, traits, out);
    if ((traits & CPU_HAS_BARRIER) != 0) {
        write_fibers(signature, out);
    } else {
        write_loops(signature, traits, out);
    }
}

/* The name as a macro that gives its definition a parameter more. */
static void write_name(const struct signature *signature, struct acre_buf *out) {
    acre_buf_printf(out, "#define %s(...) acre_kernel_%s(const struct acre_item acre_item%s)\n",
                    signature->name, signature->name, signature->count > 0 ? ", __VA_ARGS__" : "");
}

int dialect_write_cpu(const struct acre_source *source, const struct signature *all, uint32_t count,
                      struct acre_buf *out, struct acre_error *err) {
    const char *options = source->options != NULL ? source->options : "";
    size_t length = strlen(source->text);
    uint8_t traits[SIGNATURES_MAX];
    ACRE_ASSERT(count <= SIGNATURES_MAX);
    char *text = strdup(source->text);
    if (text == NULL) {
        return acre_fail(err, ACRE_ENOMEM, "source of %zu bytes", length);
    }
    int r = cpu_source_read(text, length, options, all, count, traits, err);
    if (r < 0) {
        free(text);
        return r;
    }
    for (uint32_t i = 0; i < count; i++) {
        if ((traits[i] & CPU_HAS_BARRIER) != 0) {
            acre_buf_puts(out, DIALECT_CPU_FIBERS);
            break;
        }
    }
    dialect_prelude_cpu(out);
    for (uint32_t i = 0; i < count; i++) {
        write_name(&all[i], out);
    }
    dialect_marked(source->name, (struct acre_str){text, length}, all, count, out);
    free(text);
    acre_buf_puts(out, "\n");
    for (uint32_t i = 0; i < count; i++) {
        acre_buf_printf(out, "#undef %s\n", all[i].name);
        dialect_if_there(&all[i], out);
        dialect_line(source->name, all[i].line, out); /* what is wrong with the whole of it */
        write_entry(&all[i], traits[i], out);
        dialect_end_if(&all[i], out);
    }
    if (acre_buf_failed(out)) {
        r = acre_fail(err, ACRE_ELIMIT, "source: longer than %zu bytes with its entries", out->max);
    }
    return r;
}
