/* dialect_mark.c - declarations added to a C source so that the compiler reveals its types.
 *
 * Only the compiler knows the type of a value: macros end, names change meaning further down, and
 * everything may be inside an #if. So names for these types are put before each kernel, which still
 * mean the same at the end, where the CPU's entries use them.
 *
 * OpenCL drivers do not report the size of a value, and some accept any size. But all of them
 * report the group size a kernel requires, which may be any constant: so empty kernels are put at
 * the end, with the size in digits. No device refuses a group of 6 x 6 x 6. */
#include "compute/source/dialect_text.h"

#include <stdio.h>

enum { COLUMN_MAX = 1000, SIZE_MAX_BYTES = DIALECT_SIZES - 1 };

static bool is_value(const struct parameter *parameter) {
    return parameter->kind != PARAMETER_BUFFER && parameter->kind != PARAMETER_LOCAL;
}

static void write_marks(const struct signature *kernel, struct acre_buf *out) {
    for (uint32_t i = 0; i < kernel->count; i++) {
        if (is_value(&kernel->parameters[i])) {
            acre_buf_printf(out, "typedef %s " DIALECT_TYPE_NAME ";\n", kernel->parameters[i].type,
                            i, kernel->name);
        }
    }
    if (kernel->is_conditional) {
        acre_buf_printf(out, "#define acre_has_%s\n", kernel->name);
    }
}

void dialect_marked(const char *name, struct acre_str text, const struct signature *all,
                    uint32_t count, struct acre_buf *out) {
    size_t written = 0, column = 0;
    uint32_t line = 1;
    struct declaration declaration = {0};
    dialect_line(name, 1, out);
    for (size_t at = 0; dialect_declaration(all, count, at, &declaration);
         at = declaration.offset + 1) {
        if (!declaration.has_body) {
            continue;
        }
        acre_buf_append(out, text.data + written, declaration.offset - written);
        for (; written < declaration.offset; written++) {
            bool is_end = text.data[written] == '\n';
            line += is_end;
            column = is_end ? 0 : column + 1;
        }
        acre_buf_puts(out, "\n");
        write_marks(declaration.kernel, out);
        dialect_line(name, line, out);
        /* Messages have the user's columns, within reason. */
        acre_buf_printf(out, "%*s", (int)ACRE_MIN(column, (size_t)COLUMN_MAX), "");
    }
    acre_buf_append(out, text.data + written, text.length - written);
}

void dialect_if_there(const struct signature *kernel, struct acre_buf *out) {
    if (kernel->is_conditional) {
        acre_buf_printf(out, "#ifdef acre_has_%s\n", kernel->name);
    }
}

void dialect_end_if(const struct signature *kernel, struct acre_buf *out) {
    acre_buf_puts(out, kernel->is_conditional ? "#endif\n" : "");
}

static void write_size(const struct signature *kernel, uint32_t index, struct acre_buf *out) {
    char type[SIGNATURE_NAME_MAX + 32];
    uint32_t unit = 1;
    snprintf(type, sizeof(type), DIALECT_TYPE_NAME, index, kernel->name);
    for (uint32_t part = 0; part < DIALECT_SIZE_PARTS; part++) {
        acre_buf_puts(out, "__kernel __attribute__((reqd_work_group_size(");
        for (uint32_t digit = 0; digit < 3; digit++, unit *= DIALECT_SIZE_BASE) {
            acre_buf_printf(out, "%s(sizeof(%s) < %d ? sizeof(%s) : %d) / %u %% %d + 1",
                            digit > 0 ? ", " : "", type, SIZE_MAX_BYTES, type, SIZE_MAX_BYTES, unit,
                            DIALECT_SIZE_BASE);
        }
        acre_buf_printf(out, "))) void " DIALECT_SIZE_NAME "(void) {}\n", index, part,
                        kernel->name);
    }
}

/* Of the types that have a name: the others are as long as everybody knows. */
void dialect_sizes(const struct signature *all, uint32_t count, struct acre_buf *out) {
    for (uint32_t i = 0; i < count; i++) {
        acre_buf_puts(out, "\n");
        dialect_if_there(&all[i], out);
        for (uint32_t k = 0; k < all[i].count; k++) {
            const struct parameter *parameter = &all[i].parameters[k];
            if (is_value(parameter) && parameter->is_named) {
                write_size(&all[i], k, out);
            }
        }
        dialect_end_if(&all[i], out);
    }
}
