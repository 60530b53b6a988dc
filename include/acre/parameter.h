/* parameter.h - the kernels of a built program and their parameters.
 *
 * As declared in the source; the strings live as long as the program. Any thread. */
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
    uint32_t bytes;   /* size of the value, or of what the pointer points to; 0: unknown */
    bool is_const;    /* the kernel does not write through the pointer */
    const char *name; /* "": none */
    const char *type; /* "global const float *" */
};

/* In the order of the source. NULL: no such kernel. */
ACRE_API struct acre_kernel *acre_program_kernel(struct acre_program *program, uint32_t index);
ACRE_API const char *acre_kernel_name(const struct acre_kernel *kernel);
/* False: no such parameter. */
ACRE_API bool acre_kernel_parameter(const struct acre_kernel *kernel, uint32_t index,
                                    struct acre_parameter *ret_parameter);
/* The only group size it may be launched with, if its source sets one (OpenCL's
 * reqd_work_group_size); zeros: any that the device accepts. This loads the kernel, and returns
 * ACRE_E* if that fails. */
ACRE_API int acre_kernel_group(struct acre_kernel *kernel, uint32_t ret_group[3],
                               struct acre_error *err);

#ifdef __cplusplus
}
#endif

#endif
