/* program.h - kernels as the front knows them: signature, module of the current epoch. */
#ifndef ACRE_COMPUTE_PROGRAM_H
#define ACRE_COMPUTE_PROGRAM_H

#include "compute/inner.h"
#include "compute/source/signature.h"

struct acre_kernel {
    struct acre_program *program;
    struct signature signature; /* name, parameters */
    uint64_t handle;            /* of `epoch` */
    atomic_uint epoch;          /* 0: not loaded yet */
    struct kernel_facts facts;
};

/* See that it is loaded in the present epoch: before the gate is taken, since resident kernels must
 * leave for it. Any thread. */
int kernel_ready(struct acre_kernel *kernel, struct acre_error *err);
/* The kernel's handle. Gate held for reading. ACRE_E*: lost after kernel_ready. */
int kernel_handle(struct acre_kernel *kernel, uint64_t *ret_handle, struct acre_error *err);
/* Given, and of this process: as process.h. */
int kernel_check(const struct acre_kernel *kernel, struct acre_error *err);
struct acre_context *kernel_context(const struct acre_kernel *kernel);
/* Of a context that closes. */
void programs_destroy(struct acre_context *context);

#endif
