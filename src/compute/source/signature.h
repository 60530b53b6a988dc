/* signature.h - a kernel's parameters, read from its source.
 *
 * Understands the portable dialect, CUDA, HIP and OpenCL: comments, preprocessor lines, strings,
 * attributes, qualifiers in any order, pointers, scalars under all their names, vectors (float4),
 * and structs by value, whose size it cannot know. Pure. */
#ifndef ACRE_COMPUTE_SOURCE_SIGNATURE_H
#define ACRE_COMPUTE_SOURCE_SIGNATURE_H

#include "core/buf.h"
#include "core/str.h"

#include <acre/kernel.h>

enum {
    SIGNATURE_PARAMETERS_MAX = 64,
    SIGNATURE_NAME_MAX = 128,
    SIGNATURE_DECLARATIONS_MAX = 16, /* declarations of one kernel */
    SIGNATURES_MAX = 256,            /* kernels of one source */
    SOURCE_MAX_BYTES = 4 << 20,
};

enum parameter_kind {
    PARAMETER_BUFFER, /* a pointer to global or constant memory */
    PARAMETER_LOCAL,  /* a pointer to local memory (OpenCL) */
    PARAMETER_SIGNED,
    PARAMETER_UNSIGNED,
    PARAMETER_FLOAT,
    PARAMETER_VECTOR, /* float4 and the like: `bytes` long */
    PARAMETER_STRUCT, /* any size */
};

struct parameter {
    enum parameter_kind kind;
    uint16_t bytes; /* of a value; of what a pointer points to, 0: unknown */
    bool is_const;  /* the kernel does not write what it points to */
    bool is_named;  /* its type has a name that the text gave it */
    char name[48];  /* "" when it has none */
    char type[128]; /* as written, but for macros: "global const float *" */
};

struct signature {
    char name[SIGNATURE_NAME_MAX];
    uint32_t line; /* in the source, from 1 */
    /* Where its declaration begins there; and others of the same name (forward declarations, the
     * branches of an #if), in order. Whether each is extern "C" (CUDA, HIP), and has a body. */
    uint32_t offsets[SIGNATURE_DECLARATIONS_MAX];
    bool are_c[SIGNATURE_DECLARATIONS_MAX], have_bodies[SIGNATURE_DECLARATIONS_MAX];
    uint32_t declarations;
    bool is_conditional; /* all bodies are under an #if: perhaps it is not there */
    uint32_t count;
    struct parameter *parameters;
};

/* Which language a text is in, by its words. */
enum acre_language language_of(struct acre_str text);

/* All kernels of a text (AUTO: language_of). ACRE_EINVALID names the line and what was not
 * understood; ACRE_ELIMIT: too long, too many. Free with signatures_free. */
int signatures_read(const char *name, struct acre_str text, enum acre_language language,
                    struct signature **ret_all, uint32_t *ret_count, struct acre_error *err);
/* One signature alone, as acre_program_native takes it. */
int signature_read(struct acre_str text, struct signature *ret_signature, struct acre_error *err);
void signatures_free(struct signature *all, uint32_t count);

/* "void add(global const float *a, uint n)", for messages. */
void signature_write(const struct signature *signature, struct acre_buf *out);

#endif
