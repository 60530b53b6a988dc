/* parameter.h - what a built program has: its kernels, and what they take.
 *
 * As the source says it; the texts live as long as the program. Any thread. */
#ifndef ACRE_PARAMETER_H
#define ACRE_PARAMETER_H

#include <acre/kernel.h>

#ifdef __cplusplus
extern "C" {
#endif

enum acre_parameter_kind {
    ACRE_PARAMETER_BUFFER, /* a pointer to global or constant memory */
    ACRE_PARAMETER_LOCAL,  /* a pointer to local memory (OpenCL) */
    ACRE_PARAMETER_SIGNED,
    ACRE_PARAMETER_UNSIGNED,
    ACRE_PARAMETER_FLOAT,
    ACRE_PARAMETER_VECTOR, /* float4 and the like */
    ACRE_PARAMETER_STRUCT,
};

struct acre_parameter {
    enum acre_parameter_kind kind;
    uint32_t bytes;   /* of a value; of what a pointer points to; 0: unknown */
    bool is_const;    /* the kernel does not write what it points to */
    const char *name; /* "": it has none */
    const char *type; /* "global const float *" */
};

/* In the order of the source; NULL: past the last. */
ACRE_API struct acre_kernel *acre_program_kernel(struct acre_program *program, uint32_t index);
ACRE_API const char *acre_kernel_name(const struct acre_kernel *kernel);
/* False: past the last. */
ACRE_API bool acre_kernel_parameter(const struct acre_kernel *kernel, uint32_t index,
                                    struct acre_parameter *ret_parameter);

#ifdef __cplusplus
}
#endif

#endif
