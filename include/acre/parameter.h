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
/* The only group it may be launched with, where its source names one (reqd_work_group_size of
 * OpenCL); zeros: any that the device takes. It is loaded for that: ACRE_E* if it cannot be. */
ACRE_API int acre_kernel_group(struct acre_kernel *kernel, uint32_t ret_group[3],
                               struct acre_error *err);

#ifdef __cplusplus
}
#endif

#endif
