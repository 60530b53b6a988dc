/* launch.h - a launch, checked and resolved. */
#ifndef ACRE_COMPUTE_LAUNCH_H
#define ACRE_COMPUTE_LAUNCH_H

#include "compute/quiet.h"
#include "compute/source/signature.h"

struct launch {
    struct native_launch native; /* points into the two below */
    struct native_arg args[ACRE_ARGS_MAX];
    uint8_t extra[ACRE_EXTRA_MAX];
};

/* Whether an argument may stand for the parameter `index`, but for the buffer it names. Pure. */
int launch_check_arg(const struct signature *signature, uint32_t index, const struct acre_arg *arg,
                     struct acre_error *err);
/* Gate held. Everything that can be wrong with a launch is found here. */
int launch_make(struct acre_context *context, struct acre_kernel *kernel, struct acre_grid grid,
                const struct acre_arg *args, uint32_t count, struct launch *ret_launch,
                struct acre_error *err);

/* Around a launch, not entered: the first kernel that needs more stack than all before it is
 * launched and waited for in a quiet scope. `stack_end` returns `result`, that of the launch, or
 * why the wait could not be made. */
void stack_begin(struct quiet *quiet, struct acre_context *context, uint32_t bytes);
int stack_end(struct quiet *quiet, struct acre_stream *stream, uint32_t bytes, int result,
              struct acre_error *err);

#endif
