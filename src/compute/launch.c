/* launch.c - check a launch against the kernel's signature, resolve it, and queue it.
 *
 * Everything a user can get wrong is found here, before the device sees it: a back end gets valid
 * handles, values and a grid it can run. */
#include "compute/launch.h"

#include "compute/context.h"
#include "compute/graph.h"
#include "compute/memory/buffer.h"
#include "compute/process.h"
#include "compute/program.h"
#include "compute/stream.h"

#include <acre/parameter.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { GROUPS_X_MAX = INT32_MAX, GROUPS_YZ_MAX = 65535, VALUE_ALIGN = 16, STACK_WAIT_MS = 10000 };

struct acre_grid acre_grid_for(uint64_t items) {
    uint64_t groups = items / 256 + (items % 256 != 0);
    return (struct acre_grid){.groups = {(uint32_t)ACRE_MIN(groups, (uint64_t)UINT32_MAX), 1, 1},
                              .group = {256, 1, 1}};
}

int acre_kernel_group(struct acre_kernel *kernel, uint32_t ret_group[3], struct acre_error *err) {
    int r = kernel_check(kernel, err);
    r = r == 0 ? kernel_ready(kernel, err) : r;
    if (r < 0) {
        return r;
    }
    struct acre_context *context = kernel_context(kernel);
    context_read(context); /* a context that starts again reads the facts again */
    memcpy(ret_group, kernel->facts.group, sizeof(kernel->facts.group));
    pthread_rwlock_unlock(&context->gate);
    return 0;
}

static const char axes[] = "xyz";

/* A compiler may count on the group that the source names. */
static int check_required(const struct acre_kernel *kernel, const struct acre_grid *grid,
                          struct acre_error *err) {
    const uint32_t *only = kernel->facts.group;
    const uint32_t *group = grid->group;
    return only[0] == 0 || memcmp(group, only, sizeof(grid->group)) == 0
               ? 0
               : acre_fail(
                     err, ACRE_EINVALID,
                     "kernel '%s': the group is %u x %u x %u; the source requires %u x %u x %u",
                     kernel->signature.name, group[0], group[1], group[2], only[0], only[1],
                     only[2]);
}

static int check_grid(const struct acre_kernel *kernel, struct acre_grid *grid,
                      struct acre_error *err) {
    uint64_t items = 1;
    const struct acre_context *context = kernel_context(kernel);
    for (size_t i = 0; i < 3; i++) {
        if (i > 0) {
            grid->groups[i] += grid->groups[i] == 0;
            grid->group[i] += grid->group[i] == 0;
        }
        uint32_t max = i == 0 ? GROUPS_X_MAX : GROUPS_YZ_MAX;
        if (grid->groups[i] == 0 || grid->groups[i] > max) {
            return acre_fail(err, ACRE_EINVALID,
                             "kernel '%s': grid.groups %c: %u; accepted: 1 to %u",
                             kernel->signature.name, axes[i], grid->groups[i], max);
        }
        if (grid->group[i] == 0) {
            return acre_fail(err, ACRE_EINVALID,
                             "kernel '%s': grid.group %c: 0; accepted: 1 or more",
                             kernel->signature.name, axes[i]);
        }
        if (__builtin_mul_overflow(items, grid->group[i], &items)) {
            items = UINT64_MAX;
        }
    }
    int r = check_required(kernel, grid, err);
    if (r < 0) {
        return r;
    }
    uint32_t max =
        kernel->facts.group_max != 0 ? kernel->facts.group_max : context_device(context)->group_max;
    if (items > max) {
        return acre_fail(err, ACRE_EINVALID,
                         "kernel '%s': the group has %" PRIu64
                         " work items; accepted: at most %u on this device",
                         kernel->signature.name, items, max);
    }
    return 0;
}

static const char *const arg_kinds[] = {"a buffer", "an integer", "a floating-point number",
                                        "bytes", "local memory"};

/* Whether a value of this kind may stand for the parameter. */
static bool kind_fits(const struct parameter *parameter, const struct acre_arg *arg) {
    switch (parameter->kind) {
    case PARAMETER_BUFFER:
        return arg->kind == ACRE_ARG_BUFFER;
    case PARAMETER_LOCAL:
        return arg->kind == ACRE_ARG_LOCAL && arg->bytes > 0;
    case PARAMETER_SIGNED:
    case PARAMETER_UNSIGNED:
        return arg->kind == ACRE_ARG_INTEGER || arg->kind == ACRE_ARG_BYTES;
    case PARAMETER_FLOAT:
        return arg->kind == ACRE_ARG_FLOAT || arg->kind == ACRE_ARG_BYTES;
    case PARAMETER_VECTOR:
    case PARAMETER_STRUCT:
        return arg->kind == ACRE_ARG_BYTES;
    default:
        return false;
    }
}

static int refuse_arg(const struct signature *signature, uint32_t index, const struct acre_arg *arg,
                      uint32_t bytes, struct acre_error *err) {
    const struct parameter *parameter = &signature->parameters[index];
    const char *given =
        arg->kind < ACRE_COUNT(arg_kinds) ? arg_kinds[arg->kind] : "an unknown kind";
    return acre_fail(err, ACRE_EINVALID,
                     "kernel '%s': argument %u '%s' is %s of %u bytes; accepted: %s"
                     " (%u bytes)",
                     signature->name, index + 1, parameter->name, given, arg->bytes,
                     parameter->type, bytes);
}

int launch_check_arg(const struct signature *signature, uint32_t index, const struct acre_arg *arg,
                     struct acre_error *err) {
    const struct parameter *parameter = &signature->parameters[index];
    bool is_value = arg->kind != ACRE_ARG_BUFFER && arg->kind != ACRE_ARG_LOCAL;
    bool any_size = parameter->kind == PARAMETER_STRUCT;
    if (!kind_fits(parameter, arg) ||
        (is_value && (arg->bytes == 0 || (!any_size && arg->bytes != parameter->bytes) ||
                      (arg->kind == ACRE_ARG_BYTES && arg->pointer == NULL)))) {
        return refuse_arg(signature, index, arg, parameter->bytes, err);
    }
    return 0;
}

/* A struct is as long as the compiler says, where that is known. */
static int check_struct(const struct acre_kernel *kernel, uint32_t index,
                        const struct acre_arg *arg, struct acre_error *err) {
    uint32_t bytes = kernel->facts.value_bytes[index];
    return kernel->signature.parameters[index].kind != PARAMETER_STRUCT || bytes == 0 ||
                   bytes == arg->bytes
               ? 0
               : refuse_arg(&kernel->signature, index, arg, bytes, err);
}

static int resolve_buffer(const struct acre_kernel *kernel, uint32_t index,
                          const struct acre_arg *arg, struct native_arg *to,
                          struct acre_error *err) {
    const struct parameter *parameter = &kernel->signature.parameters[index];
    char what[SIGNATURE_NAME_MAX + 80];
    snprintf(what, sizeof(what), "kernel '%s': argument %u '%s'", kernel->signature.name, index + 1,
             parameter->name);
    struct buffer_range range;
    struct acre_context *context = kernel_context(kernel);
    int r = buffer_resolve(context, arg->buffer, arg->offset, 1, what, &range, err);
    if (r < 0) {
        return r;
    }
    if (range.kind == ACRE_MEMORY_PINNED) {
        return acre_fail(err, ACRE_EINVALID,
                         "%s: kernels cannot use pinned memory; accepted: device or mapped memory",
                         what);
    }
    if (parameter->bytes > 1 && arg->offset % parameter->bytes != 0) {
        return acre_fail(err, ACRE_EINVALID, "%s: offset %" PRIu64 "; accepted: multiples of %u",
                         what, arg->offset, parameter->bytes);
    }
    *to = (struct native_arg){.kind = ACRE_NATIVE_BUFFER,
                              .region = range.region,
                              .offset = range.offset + arg->offset,
                              .length = range.bytes - arg->offset};
    return 0;
}

static int resolve_arg(const struct acre_kernel *kernel, uint32_t index, const struct acre_arg *arg,
                       struct launch *launch, struct acre_error *err) {
    struct native_arg *to = &launch->args[index];
    int r = launch_check_arg(&kernel->signature, index, arg, err);
    r = r == 0 ? check_struct(kernel, index, arg, err) : r;
    if (r < 0) {
        return r;
    }
    if (arg->kind == ACRE_ARG_BUFFER) {
        return resolve_buffer(kernel, index, arg, to, err);
    }
    if (arg->kind == ACRE_ARG_LOCAL) {
        *to = (struct native_arg){.kind = ACRE_NATIVE_LOCAL, .bytes = arg->bytes};
        return 0;
    }
    if (arg->bytes > ACRE_EXTRA_MAX - launch->native.extra_bytes) {
        return acre_fail(err, ACRE_ELIMIT, "kernel '%s': the values have more than %d bytes",
                         kernel->signature.name, ACRE_EXTRA_MAX);
    }
    *to = (struct native_arg){
        .kind = ACRE_NATIVE_VALUE, .bytes = arg->bytes, .region = launch->native.extra_bytes};
    uint32_t room = (arg->bytes + VALUE_ALIGN - 1) / VALUE_ALIGN * VALUE_ALIGN;
    uint8_t *value = launch->extra + launch->native.extra_bytes;
    memcpy(value, arg->kind == ACRE_ARG_BYTES ? arg->pointer : (const void *)&arg->u64, arg->bytes);
    memset(value + arg->bytes, 0, room - arg->bytes); /* launches are compared (graph.c) */
    launch->native.extra_bytes += room;
    return 0;
}

/* What the kernel declares and what it is given, against what a group can have. */
static int check_local(const struct acre_kernel *kernel, const struct acre_arg *args,
                       uint32_t count, struct acre_error *err) {
    const struct acre_compute_device *device = context_device(kernel_context(kernel));
    uint64_t bytes = kernel->facts.local_bytes;
    bool is_given = false;
    for (uint32_t i = 0; i < count; i++) {
        is_given |= args[i].kind == ACRE_ARG_LOCAL;
        bytes += args[i].kind == ACRE_ARG_LOCAL ? args[i].bytes : 0;
    }
    return !is_given || device->local_bytes == 0 || bytes <= device->local_bytes
               ? 0
               : acre_fail(err, ACRE_EINVALID,
                           "kernel '%s': %" PRIu64 " bytes of local memory; accepted: at most "
                           "%" PRIu64 " on %s",
                           kernel->signature.name, bytes, (uint64_t)device->local_bytes,
                           device->name);
}

static int refuse_context(const struct acre_kernel *kernel, const struct acre_context *context,
                          struct acre_error *err) {
    const struct acre_context *other = kernel_context(kernel);
    return acre_fail(
        err, ACRE_EINVALID,
        "kernel '%s' was built in context %u (tenant '%s', %s), but the stream belongs to context "
        "%u (tenant '%s', %s); build the kernel in the stream's context",
        kernel->signature.name, other->number, other->tenant, context_device(other)->name,
        context->number, context->tenant, context_device(context)->name);
}

int launch_make(struct acre_context *context, struct acre_kernel *kernel, struct acre_grid grid,
                const struct acre_arg *args, uint32_t count, struct launch *ret_launch,
                struct acre_error *err) {
    if (kernel_context(kernel) != context) {
        return refuse_context(kernel, context, err);
    }
    if (count != kernel->signature.count) {
        return acre_fail(err, ACRE_EINVALID, "kernel '%s': %u arguments; accepted: %u",
                         kernel->signature.name, count, kernel->signature.count);
    }
    struct native_launch *native = &ret_launch->native;
    *native = (struct native_launch){.grid = grid,
                                     .is_limited = context->kernel_limit_ms > 0,
                                     .args = ret_launch->args,
                                     .arg_count = count,
                                     .extra = ret_launch->extra};
    int r = kernel_handle(kernel, &native->kernel, err);
    r = r == 0 ? check_grid(kernel, &native->grid, err) : r;
    r = r == 0 ? check_local(kernel, args, count, err) : r;
    for (uint32_t i = 0; i < count && r == 0; i++) {
        r = resolve_arg(kernel, i, &args[i], ret_launch, err);
    }
    native->extra_bytes = ACRE_MIN(native->extra_bytes, (uint32_t)ACRE_EXTRA_MAX);
    return r;
}

/* --- stacks --------------------------------------------------------------------------------- */

void stack_begin(struct quiet *quiet, struct acre_context *context, uint32_t bytes) {
    if (bytes > atomic_load_explicit(&context->stack_bytes, memory_order_relaxed)) {
        quiet_begin(quiet, context);
    }
}

/* Wait for a launch that needs that much: from now on no other has to. */
static int stack_grown(struct acre_stream *stream, uint32_t bytes, struct acre_error *err) {
    struct acre_context *context = stream->context;
    uint32_t epoch = stream->epoch;
    if (!stream->is_resident) { /* that one does not end; others come back after it */
        int r = stream_enter(stream, err);
        if (r < 0) {
            return r;
        }
        r = stream_signal(stream, err);
        uint64_t sequence = stream->issued;
        epoch = stream->epoch;
        stream_leave(stream, r);
        /* How the work went is for those who wait for it: it was accepted. */
        if (r < 0 || word_wait(context, stream->word_index, sequence, STACK_WAIT_MS, NULL) < 0) {
            return r;
        }
    }
    context_read(context);
    if (atomic_load(&context->epoch) == epoch) { /* a new seat begins with none */
        atomic_store(&context->stack_bytes, bytes);
    }
    pthread_rwlock_unlock(&context->gate);
    return 0;
}

int stack_end(struct quiet *quiet, struct acre_stream *stream, uint32_t bytes, int result,
              struct acre_error *err) {
    if (quiet->context != NULL) {
        result = result == 0 ? stack_grown(stream, bytes, err) : result;
        quiet_end(quiet);
    }
    return result;
}

/* --- launches ------------------------------------------------------------------------------- */

/* Nothing can be wrong any more but the back end. Entered. */
static int give(struct acre_stream *stream, const struct acre_kernel *kernel,
                const struct native_launch *launch, const struct acre_arg *args,
                struct acre_error *err) {
    struct acre_context *context = stream->context;
    for (uint32_t i = 0; i < launch->arg_count; i++) {
        if (args[i].kind == ACRE_ARG_BUFFER) {
            buffer_used(context, args[i].buffer, stream);
        }
    }
    int r = context->table->launch(context->seat, stream->handle, launch, err);
    if (r < 0) {
        stream_issue(stream); /* who waits for the number the buffers have now hears of it */
        return r;
    }
    return stream_launched(stream, kernel, err);
}

static int queue_launch(struct acre_stream *stream, struct acre_kernel *kernel,
                        struct acre_grid grid, const struct acre_arg *args, uint32_t count,
                        struct acre_error *err) {
    int r = stream_enter(stream, err);
    if (r < 0) {
        return r;
    }
    struct launch launch;
    r = launch_make(stream->context, kernel, grid, args, count, &launch, err);
    if (r < 0) {
        stream_pass(stream);
        return r;
    }
    if (stream->recording != NULL) {
        struct graph_call call = {.kernel = kernel, .grid = grid, .args = args, .count = count};
        r = recording_launch(stream, &call, err);
    } else {
        r = give(stream, kernel, &launch.native, args, err);
    }
    stream_leave(stream, r);
    return r;
}

int acre_launch(struct acre_stream *stream, struct acre_kernel *kernel, struct acre_grid grid,
                const struct acre_arg *args, uint32_t count, struct acre_error *err) {
    int r = stream_check(stream, err);
    if (r == 0 && kernel == NULL) {
        r = process_refuse("kernel", NULL, err);
    }
    r = r == 0 ? kernel_ready(kernel, err) : r;
    if (r < 0) {
        return r;
    }
    struct quiet quiet = {0};
    if (stream->recording == NULL) {
        stack_begin(&quiet, stream->context, kernel->facts.stack_bytes);
    }
    r = queue_launch(stream, kernel, grid, args, count, err);
    return stack_end(&quiet, stream, kernel->facts.stack_bytes, r, err);
}
