/* dialect_text.h - what dialect.c and dialect_cpu*.c share. Pure. */
#ifndef ACRE_COMPUTE_SOURCE_DIALECT_TEXT_H
#define ACRE_COMPUTE_SOURCE_DIALECT_TEXT_H

#include "compute/source/dialect.h"
#include "compute/source/lexer.h"

/* `#line 1 "name"`: from here on compilers count as the user does. */
void dialect_line(const char *name, uint32_t line, struct acre_buf *out);
/* Whether the declaration that goes on here has a '*' before it has a name's end; and whether it
 * says const. It is looked at so far only, so that the whole stays linear. */
bool dialect_points(struct lexer lexer, bool *ret_is_const);

/* One declaration of a kernel. */
struct declaration {
    const struct signature *kernel;
    size_t offset;
    bool is_c, has_body;
};
/* The first one at or behind `from`, of all kernels; false: there is none. */
bool dialect_declaration(const struct signature *all, uint32_t count, size_t from,
                         struct declaration *ret_declaration);

/* --- dialect_mark.c: for languages that are C ------------------------------------------------- */

/* The type of a kernel's value as it is where the kernel stands: parameter, kernel. */
#define DIALECT_TYPE_NAME "acre_type_%u_%s"
/* The text, with such types before each body, and a mark that a kernel under an #if is there. */
void dialect_marked(const char *name, struct acre_str text, const struct signature *all,
                    uint32_t count, struct acre_buf *out);
/* Around what is only for a kernel that is there. */
void dialect_if_there(const struct signature *kernel, struct acre_buf *out);
void dialect_end_if(const struct signature *kernel, struct acre_buf *out);
/* Behind the text, for OpenCL, whose drivers need not tell: how long its structs are. */
void dialect_sizes(const struct signature *all, uint32_t count, struct acre_buf *out);

#endif
