/* dialect_cpu.c - portable source made into C: the prelude, the source, and an entry a kernel.
 *
 * Kernels stay as they are written. Their names become macros while the source is read, which add
 * a parameter (the item) to the definition: the compiler's messages keep lines and columns. An
 * entry takes groups and runs their items:
 *   - in plain loops, x innermost, where no item waits for another. They are unordered by
 *     definition, which the loop says, and so the compiler vectorises it. Where the kernel cannot
 *     tell groups apart a row of groups is one long loop. The index is kept in 32 bits while that
 *     is enough, in the type that the kernel puts it in: conversions that could wrap would forbid
 *     vectors.
 *   - as fibers, where the kernel meets barriers (cpu_fiber.h). */
#include "compute/dialect_cpu.h"
#include "compute/dialect_text.h"

#include <stdlib.h>
#include <string.h>

enum { COLUMN_MAX = 1000 };

static const char *value_type(const struct parameter *parameter) {
    static const char *const names[3][4] = {
        {"signed char", "short", "int", "long"},
        {"unsigned char", "unsigned short", "unsigned int", "unsigned long"},
        {NULL, NULL, "float", "double"},
    };
    uint32_t row = parameter->kind - PARAMETER_SIGNED;
    uint32_t column = 0;
    while (column < 4 && (1U << column) != parameter->bytes) {
        column++;
    }
    return column < 4 ? names[row][column] : NULL;
}

static bool is_pointer(const struct parameter *parameter) {
    return parameter->kind == PARAMETER_BUFFER || parameter->kind == PARAMETER_LOCAL;
}

/* In C; NULL: has none. */
static const char *type_of(const struct parameter *parameter) {
    if (parameter->kind == PARAMETER_VECTOR || parameter->kind == PARAMETER_STRUCT) {
        /* As long as it was not cut. */
        return strlen(parameter->type) < sizeof(parameter->type) - 1 ? parameter->type : NULL;
    }
    return is_pointer(parameter) ? "void *" : value_type(parameter);
}

/* How argument `index` is read from `array`; false: its type has no C. */
static bool write_argument(const struct parameter *parameter, uint32_t index, const char *array,
                           struct acre_buf *out) {
    const char *type = type_of(parameter);
    if (is_pointer(parameter)) {
        acre_buf_printf(out, "(void *)%s[%u]", array, index);
    } else if (type != NULL) {
        acre_buf_printf(out, "*(const %s *)%s[%u]", type, array, index);
    }
    return type != NULL;
}

static bool write_arguments(const struct signature *signature, const char *array,
                            struct acre_buf *out) {
    bool is_known = true;
    for (uint32_t i = 0; i < signature->count && is_known; i++) {
        acre_buf_puts(out, ", ");
        is_known = write_argument(&signature->parameters[i], i, array, out);
    }
    return is_known;
}

static const char *index_type(uint8_t traits) {
    return (traits & CPU_UINT_INDEX) != 0  ? "uint"
           : (traits & CPU_INT_INDEX) != 0 ? "int"
                                           : "ulong";
}

/* Values are read once, before the loops: what kernels write might be them, for all C knows. */
static bool write_loops(const struct signature *signature, uint8_t traits, struct acre_buf *out) {
    const char *name = signature->name;
    bool is_known = true;
    acre_buf_printf(out,
                    "acre_seen void acre_entry_%s(const struct acre_groups *acre_g,"
                    " const void *const *acre_a) {\n",
                    name);
    for (uint32_t i = 0; i < signature->count && is_known; i++) {
        acre_buf_printf(out, "    const __auto_type acre_p%u = ", i);
        is_known = write_argument(&signature->parameters[i], i, "acre_a", out);
        acre_buf_puts(out, ";\n");
    }
    acre_buf_printf(out, "    acre_each(%d, %s, acre_kernel_%s(acre_item",
                    (traits & CPU_NEEDS_GROUP) == 0, index_type(traits), name);
    for (uint32_t i = 0; i < signature->count; i++) {
        acre_buf_printf(out, ", acre_p%u", i);
    }
    acre_buf_puts(out, "))\n}\n");
    return is_known;
}

static bool write_fibers(const struct signature *signature, struct acre_buf *out) {
    const char *name = signature->name;
    acre_buf_printf(out,
                    "static void acre_item_%s(const void *acre_c, unsigned acre_i) {\n"
                    "    const struct acre_spot *acre_s = acre_c;\n"
                    "    acre_kernel_%s(acre_item_at(acre_s, acre_i)",
                    name, name);
    bool is_known = write_arguments(signature, "acre_s->arguments", out);
    acre_buf_printf(out,
                    ");\n}\n"
                    "acre_seen void acre_entry_%s(const struct acre_groups *acre_g,"
                    " const void *const *acre_a) {\n"
                    "    acre_each_fiber(acre_g, acre_a, acre_item_%s);\n}\n",
                    name, name);
    return is_known;
}

/* struct entry_facts of cpu_module.c. */
static bool write_facts(const struct signature *signature, uint8_t traits, struct acre_buf *out) {
    acre_buf_printf(out, "acre_seen const unsigned acre_facts_%s[] = { %d, %d, %u", signature->name,
                    (traits & CPU_HAS_BARRIER) != 0, (traits & CPU_HAS_LOOP) == 0,
                    signature->count);
    bool is_known = true;
    for (uint32_t i = 0; i < signature->count && is_known; i++) {
        const char *type = type_of(&signature->parameters[i]);
        is_known = type != NULL;
        acre_buf_printf(out, ", sizeof(%s)", is_known ? type : "");
    }
    acre_buf_puts(out, " };\n");
    return is_known;
}

static int write_entry(const struct signature *signature, uint8_t traits, struct acre_buf *out,
                       struct acre_error *err) {
    bool is_known = write_facts(signature, traits, out) &&
                    ((traits & CPU_HAS_BARRIER) != 0 ? write_fibers(signature, out)
                                                     : write_loops(signature, traits, out));
    if (!is_known) {
        return acre_fail(err, ACRE_EUNSUPPORTED,
                         "line %u: kernel '%s': a parameter's type has no equal in C",
                         signature->line, signature->name);
    }
    return 0;
}

/* The name as a macro that gives its definition a parameter more. */
static void write_name(const struct signature *signature, struct acre_buf *out) {
    acre_buf_printf(out, "#define %s(...) acre_kernel_%s(const struct acre_item acre_item%s)\n",
                    signature->name, signature->name, signature->count > 0 ? ", __VA_ARGS__" : "");
}

/* The text; kernels under an #if leave a mark that they are there. */
static void write_text(const struct acre_source *source, struct acre_str text,
                       const struct signature *all, uint32_t count, struct acre_buf *out) {
    size_t written = 0, column = 0;
    uint32_t line = 1;
    struct place place = {0};
    dialect_line(source->name, 1, out);
    for (size_t at = 0; dialect_place(all, count, at, &place); at = place.offset + 1) {
        if (!place.kernel->is_conditional) {
            continue;
        }
        acre_buf_append(out, text.data + written, place.offset - written);
        for (; written < place.offset; written++) {
            bool is_end = text.data[written] == '\n';
            line += is_end;
            column = is_end ? 0 : column + 1;
        }
        acre_buf_printf(out, "\n#define acre_has_%s\n", place.kernel->name);
        dialect_line(source->name, line, out);
        /* Messages have the user's columns, within reason. */
        acre_buf_printf(out, "%*s", (int)ACRE_MIN(column, (size_t)COLUMN_MAX), "");
    }
    acre_buf_append(out, text.data + written, text.length - written);
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
    write_text(source, (struct acre_str){text, length}, all, count, out);
    free(text);
    acre_buf_puts(out, "\n");
    for (uint32_t i = 0; i < count && r == 0; i++) {
        acre_buf_printf(out, "#undef %s\n", all[i].name);
        if (all[i].is_conditional) { /* its mark says whether */
            acre_buf_printf(out, "#ifdef acre_has_%s\n", all[i].name);
        }
        dialect_line(source->name, all[i].line, out); /* what is wrong with the whole of it */
        r = write_entry(&all[i], traits[i], out, err);
        acre_buf_puts(out, all[i].is_conditional ? "#endif\n" : "");
    }
    if (r == 0 && acre_buf_failed(out)) {
        r = acre_fail(err, ACRE_ELIMIT, "source: longer than %zu bytes with its entries", out->max);
    }
    return r;
}
