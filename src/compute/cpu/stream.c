/* stream.c - queue work on a stream of the CPU.
 *
 * Waking a worker and learning its result takes longer than a small copy or launch. So the calling
 * thread itself does work that is known to be short, if the stream has nothing else in progress:
 * the order is the same, and the result is there when the call returns. Known to be short means few
 * bytes, or a kernel for which few items cannot take long (no loop in its source) or never did
 * (measured). Everything else goes to the workers. */
#include "compute/cpu/cpu.h"
#include "core/clock.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    AT_ONCE_BYTES = 16384,
    AT_ONCE_NS = 2000, /* about what handing over costs */
    MEASURE_EACH = 16, /* launches at once: the clock costs as much as a small one */
};

static struct cpu_stream *stream_of(uint64_t handle) {
    return (struct cpu_stream *)(uintptr_t)handle;
}

static struct cpu_region *region_of(uint64_t handle) {
    return (struct cpu_region *)(uintptr_t)handle;
}

/* Nothing is under way, and all it did is visible here: pairs with end_task's release. */
static bool is_at_rest(struct cpu_stream *stream) {
    cpu_pool_see(&stream->seat->pool); /* and what other streams told */
    return atomic_load_explicit(&stream->pending, memory_order_acquire) == 0;
}

static void run_at_once(struct cpu_stream *stream, struct cpu_task *task) {
    if (!stream->is_profiled) {
        cpu_task_run(NULL, task, 0, task->units);
        return;
    }
    task->stream = stream;
    task->queued_ns = task->begun_ns = acre_monotonic_ns();
    cpu_task_run(NULL, task, 0, task->units);
    cpu_task_record(task, acre_monotonic_ns());
}

/* A copy of the task with `extra` bytes behind it, in the queue of the stream. */
static int give(struct cpu_stream *stream, const struct cpu_task *task, struct acre_error *err) {
    struct cpu_pool *pool = &stream->seat->pool;
    int r = cpu_pool_start(pool, err);
    if (r < 0) {
        return r;
    }
    struct cpu_task *copy = malloc(sizeof(*copy));
    if (copy == NULL) {
        return acre_fail(err, ACRE_ENOMEM, "cpu: a task");
    }
    memcpy(copy, task, sizeof(*copy));
    copy->queued_ns = stream->is_profiled ? acre_monotonic_ns() : 0;
    cpu_pool_give(pool, stream, copy);
    return 0;
}

static uint64_t pieces(uint64_t bytes) {
    return bytes / CPU_PIECE_BYTES + (bytes % CPU_PIECE_BYTES != 0);
}

static const char *direction(const struct cpu_region *to, const struct cpu_region *from) {
    bool to_device = to->kind == ACRE_MEMORY_DEVICE;
    bool from_device = from->kind == ACRE_MEMORY_DEVICE;
    return to_device == from_device ? "copy" : to_device ? "copy in" : "copy out";
}

int cpu_copy(void *seat, uint64_t stream, const struct native_copy *copy, struct acre_error *err) {
    (void)seat;
    struct cpu_stream *at = stream_of(stream);
    struct cpu_region *to = region_of(copy->to);
    struct cpu_region *from = region_of(copy->from);
    struct cpu_task task = {.kind = CPU_COPY,
                            .units = pieces(copy->bytes),
                            .copy = {.to = to->base + copy->to_offset,
                                     .from = from->base + copy->from_offset,
                                     .bytes = copy->bytes,
                                     .label = direction(to, from)}};
    if (copy->bytes <= AT_ONCE_BYTES && is_at_rest(at)) {
        run_at_once(at, &task);
        return 0;
    }
    return give(at, &task, err);
}

int cpu_fill(void *seat, uint64_t stream, const struct native_fill *fill, struct acre_error *err) {
    (void)seat;
    struct cpu_stream *at = stream_of(stream);
    uint64_t bits = (uint64_t)fill->pattern_bytes * 8;
    uint64_t pattern = bits < 64 ? fill->pattern & ((UINT64_C(1) << bits) - 1) : fill->pattern;
    for (; bits < 64; bits *= 2) {
        pattern |= pattern << bits;
    }
    struct cpu_task task = {.kind = CPU_FILL,
                            .units = pieces(fill->bytes),
                            .fill = {.to = region_of(fill->to)->base + fill->to_offset,
                                     .bytes = fill->bytes,
                                     .pattern = pattern}};
    if (fill->bytes <= AT_ONCE_BYTES && is_at_rest(at)) {
        run_at_once(at, &task);
        return 0;
    }
    return give(at, &task, err);
}

/* --- launches ------------------------------------------------------------------------------- */

/* Pointers to what the arguments are; LOCAL ones become offsets in a worker's local memory. */
static int resolve(const struct native_launch *launch, const uint8_t *extra, struct cpu_task *task,
                   const void **args, struct acre_error *err) {
    uint64_t local_bytes = 0;
    for (uint32_t i = 0; i < launch->arg_count; i++) {
        const struct native_arg *arg = &launch->args[i];
        switch ((enum native_kind)arg->kind) {
        case ACRE_NATIVE_BUFFER:
            args[i] = region_of(arg->region)->base + arg->offset;
            break;
        case ACRE_NATIVE_VALUE:
            args[i] = extra + arg->region;
            break;
        case ACRE_NATIVE_LOCAL:
            args[i] = (const void *)(uintptr_t)local_bytes;
            task->launch.locals |= UINT64_C(1) << i;
            local_bytes += ((uint64_t)arg->bytes + 63) / 64 * 64;
            break;
        }
    }
    if (local_bytes > CPU_LOCAL_MAX_BYTES) {
        return acre_fail(err, ACRE_ELIMIT,
                         "cpu: %" PRIu64 " bytes of local memory; accepted: at most %d",
                         local_bytes, CPU_LOCAL_MAX_BYTES);
    }
    task->launch.args = args;
    return 0;
}

static bool is_short(const struct cpu_task *task, bool is_limited) {
    const struct cpu_kernel *kernel = task->launch.kernel;
    return kernel->bind == NULL && task->launch.locals == 0 &&
           (kernel->is_bounded || (!kernel->is_source && !is_limited)) &&
           cpu_task_estimate_ns(task) <= AT_ONCE_NS;
}

static void launch_at_once(struct cpu_stream *stream, struct cpu_task *task) {
    struct cpu_kernel *kernel = task->launch.kernel;
    if (atomic_fetch_add_explicit(&kernel->runs, 1, memory_order_relaxed) % MEASURE_EACH != 0) {
        run_at_once(stream, task);
        return;
    }
    uint64_t begun_ns = acre_monotonic_ns();
    run_at_once(stream, task);
    cpu_task_measured(task, task->units, acre_monotonic_ns() - begun_ns);
}

/* The arguments and their values travel behind the task. */
static int launch_later(struct cpu_stream *stream, const struct cpu_task *task,
                        const struct native_launch *launch, struct acre_error *err) {
    struct cpu_pool *pool = &stream->seat->pool;
    int r = cpu_pool_start(pool, err);
    if (r == 0 && task->launch.locals != 0) {
        r = cpu_pool_equip(pool, false, true, err);
    }
    if (r < 0) {
        return r;
    }
    size_t args_bytes = (launch->arg_count * sizeof(void *) + 15) / 16 * 16;
    struct cpu_task *copy = NULL;
    size_t head_bytes = (sizeof(*copy) + 15) / 16 * 16;
    copy = malloc(head_bytes + args_bytes + launch->extra_bytes);
    if (copy == NULL) {
        return acre_fail(err, ACRE_ENOMEM, "cpu: a launch");
    }
    const void **args = (const void **)(void *)((char *)copy + head_bytes);
    uint8_t *extra = (uint8_t *)copy + head_bytes + args_bytes;
    memcpy(copy, task, sizeof(*copy));
    if (launch->extra_bytes > 0) {
        memcpy(extra, launch->extra, launch->extra_bytes);
    }
    copy->launch.locals = 0;
    r = resolve(launch, extra, copy, args, err);
    ACRE_ASSERT(r == 0); /* it was once */
    copy->queued_ns = stream->is_profiled ? acre_monotonic_ns() : 0;
    cpu_pool_give(pool, stream, copy);
    return 0;
}

int cpu_launch(void *seat, uint64_t stream, const struct native_launch *launch,
               struct acre_error *err) {
    (void)seat;
    ACRE_ASSERT(launch->arg_count <= ACRE_ARGS_MAX);
    struct cpu_stream *at = stream_of(stream);
    const struct acre_grid *grid = &launch->grid;
    uint64_t group = (uint64_t)grid->group[0] * grid->group[1] * grid->group[2];
    uint64_t groups;
    struct cpu_task task = {.kind = CPU_LAUNCH,
                            .launch = {.kernel = (struct cpu_kernel *)(uintptr_t)launch->kernel,
                                       .grid = *grid,
                                       .arg_count = launch->arg_count}};
    if (group > CPU_GROUP_MAX ||
        __builtin_mul_overflow((uint64_t)grid->groups[0] * grid->groups[1],
                               (uint64_t)grid->groups[2], &groups) ||
        __builtin_mul_overflow(groups, group, &task.launch.items) ||
        task.launch.items > UINT64_MAX / 2) {
        return acre_fail(err, ACRE_EINVALID,
                         "cpu: grid of %u x %u x %u groups of %" PRIu64
                         " items; accepted: fewer than 2^63 items, at most %d in a group",
                         grid->groups[0], grid->groups[1], grid->groups[2], group, CPU_GROUP_MAX);
    }
    task.units = groups;
    const void *args[ACRE_ARGS_MAX];
    int r = resolve(launch, launch->extra, &task, args, err);
    if (r < 0) {
        return r;
    }
    if (is_short(&task, launch->is_limited) && is_at_rest(at)) {
        launch_at_once(at, &task);
        return 0;
    }
    return launch_later(at, &task, launch, err);
}

/* --- order ---------------------------------------------------------------------------------- */

int cpu_signal_later(void *seat, uint64_t stream, uint64_t value, struct acre_error *err) {
    (void)seat;
    struct cpu_stream *at = stream_of(stream);
    if (is_at_rest(at)) {
        cpu_signal(at, value);
        return 0;
    }
    return give(at, &(struct cpu_task){.kind = CPU_SIGNAL, .value = value}, err);
}

int cpu_wait(void *seat, uint64_t stream, uint64_t word_region, uint64_t word_offset,
             uint64_t value, struct acre_error *err) {
    struct cpu_seat *here = seat;
    struct cpu_stream *at = stream_of(stream);
    _Atomic uint64_t *word =
        (_Atomic uint64_t *)(void *)(region_of(word_region)->base + word_offset);
    if (atomic_load_explicit(word, memory_order_acquire) >= value) {
        return 0; /* it stays so: nothing to wait for, now or later */
    }
    struct cpu_task task = {.kind = CPU_WAIT, .wait = {.word = word, .value = value}};
    pthread_mutex_lock(&here->lock);
    const struct cpu_stream *writer = here->streams;
    while (writer != NULL && writer->word != word) {
        writer = writer->next;
    }
    task.wait.is_foreign = writer == NULL;
    pthread_mutex_unlock(&here->lock);
    return give(at, &task, err);
}

int cpu_notify(void *seat, uint64_t stream, int event_fd, struct acre_error *err) {
    (void)seat;
    struct cpu_stream *at = stream_of(stream);
    struct cpu_task task = {.kind = CPU_NOTIFY, .stream = at, .fd = event_fd};
    if (is_at_rest(at)) {
        cpu_task_run(NULL, &task, 0, 0);
        return 0;
    }
    return give(at, &task, err);
}

/* --- times ---------------------------------------------------------------------------------- */

int cpu_profile(void *seat, uint64_t stream, bool on, struct acre_error *err) {
    (void)seat;
    (void)err;
    stream_of(stream)->is_profiled = on;
    return 0;
}

int cpu_timings(void *seat, uint64_t stream, struct acre_timing *ret_timings, uint32_t max,
                uint32_t *ret_count, struct acre_error *err) {
    (void)seat;
    struct cpu_stream *at = stream_of(stream);
    if (!is_at_rest(at)) {
        return acre_fail(err, ACRE_ECONFLICT,
                         "cpu: the stream still has work; wait for it before you read its timings");
    }
    uint32_t count = ACRE_MIN(max, at->timing_count);
    if (count > 0) {
        memcpy(ret_timings, at->timings, count * sizeof(*ret_timings));
        memmove(at->timings, at->timings + count,
                (at->timing_count - count) * sizeof(*at->timings));
    }
    at->timing_count -= count;
    *ret_count = count;
    return 0;
}
