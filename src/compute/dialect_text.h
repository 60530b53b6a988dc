/* dialect_text.h - what dialect.c and dialect_cpu*.c share. Pure. */
#ifndef ACRE_COMPUTE_DIALECT_TEXT_H
#define ACRE_COMPUTE_DIALECT_TEXT_H

#include "compute/dialect.h"
#include "compute/lexer.h"

/* `#line 1 "name"`: from here on compilers count as the user does. */
void dialect_line(const char *name, uint32_t line, struct acre_buf *out);
/* Whether the declaration that goes on here has a '*' before it has a name's end; and whether it
 * says const. It is looked at so far only, so that the whole stays linear. */
bool dialect_points(struct lexer lexer, bool *ret_is_const);

/* One declaration of a kernel. */
struct place {
    const struct signature *kernel;
    size_t offset;
    bool is_c;
};
/* The first one at or behind `from`, of all kernels; false: there is none. */
bool dialect_place(const struct signature *all, uint32_t count, size_t from,
                   struct place *ret_place);

/* For OpenCL, whose drivers need not tell: a program says how long the structs are that its kernels
 * take by value (dialect_size.c). */
void dialect_sizes(struct acre_str text, const struct signature *all, uint32_t count,
                   struct acre_buf *out);

#endif
