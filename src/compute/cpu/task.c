/* task.c - what the tasks of a stream do, and how long they take.
 *
 * Everything that can be divided is a number of units: groups of a launch, pieces of a copy or
 * fill. The time per work item of a kernel is learned, quickly upwards and slowly downwards, so
 * that a launch goes to too many threads rather than to too few. */
#include "compute/cpu/cpu.h"
#include "core/futex.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

enum {
    BYTES_A_NS = 8,      /* of a copy on one core, roughly: only decides who does it */
    TIMINGS_MAX = 65536, /* of a stream, kept until they are asked for */
};

static void fill(char *to, uint64_t bytes, uint64_t pattern) {
    if (pattern == (pattern & 0xff) * UINT64_C(0x0101010101010101)) {
        memset(to, (int)(pattern & 0xff), bytes);
        return;
    }
    uint64_t whole = bytes / 8 * 8;
    for (uint64_t i = 0; i < whole; i += 8) {
        memcpy(to + i, &pattern, 8);
    }
    memcpy(to + whole, &pattern, bytes - whole);
}

/* Kernels that meet barriers get this thread's fibers, LOCAL arguments its memory: one group at a
 * time runs on it. */
static void launch(struct cpu_worker *worker, struct cpu_task *task, uint64_t first, uint64_t end) {
    struct cpu_kernel *kernel = task->launch.kernel;
    const struct acre_grid *grid = &task->launch.grid;
    struct acre_groups groups = {.first = first, .end = end};
    memcpy(groups.groups, grid->groups, sizeof(groups.groups));
    memcpy(groups.group, grid->group, sizeof(groups.group));
    const void *const *args = task->launch.args;
    const void *own[ACRE_ARGS_MAX];
    if (task->launch.locals != 0) {
        for (uint32_t i = 0; i < task->launch.arg_count; i++) {
            bool is_local = (task->launch.locals >> i & 1) != 0;
            own[i] = is_local ? worker->local + (uintptr_t)args[i] : args[i];
        }
        args = own;
    }
    if (kernel->bind != NULL) {
        struct cpu_fibers_call call;
        cpu_fibers_call_init(&call, worker->fibers);
        kernel->bind(&call);
        kernel->function(&groups, args);
        kernel->bind(NULL);
        return;
    }
    kernel->function(&groups, args);
}

void cpu_task_run(struct cpu_worker *worker, struct cpu_task *task, uint64_t first, uint64_t end) {
    uint64_t at = first * CPU_PIECE_BYTES; /* of copies and fills */
    switch (task->kind) {
    case CPU_COPY:
        memcpy(task->copy.to + at, task->copy.from + at,
               ACRE_MIN((end - first) * CPU_PIECE_BYTES, task->copy.bytes - at));
        break;
    case CPU_FILL:
        fill(task->fill.to + at, ACRE_MIN((end - first) * CPU_PIECE_BYTES, task->fill.bytes - at),
             task->fill.pattern);
        break;
    case CPU_LAUNCH:
        launch(worker, task, first, end);
        break;
    case CPU_NOTIFY:
        atomic_fetch_add_explicit(&task->stream->seat->pool.told, 1, memory_order_release);
        while (eventfd_write(task->fd, 1) < 0 && errno == EINTR) {
        }
        break;
    case CPU_SIGNAL:
    case CPU_WAIT:
        break;
    }
}

uint64_t cpu_task_estimate_ns(const struct cpu_task *task) {
    if (task->kind == CPU_COPY) {
        return task->copy.bytes / BYTES_A_NS;
    }
    if (task->kind == CPU_FILL) {
        return task->fill.bytes / BYTES_A_NS;
    }
    if (task->kind != CPU_LAUNCH) {
        return 0;
    }
    uint64_t item_ps = atomic_load_explicit(&task->launch.kernel->item_ps, memory_order_relaxed);
    uint64_t all_ps;
    if (item_ps == 0 || __builtin_mul_overflow(item_ps, task->launch.items, &all_ps)) {
        return UINT64_MAX;
    }
    return all_ps / 1000;
}

void cpu_task_measured(struct cpu_task *task, uint64_t units, uint64_t ns) {
    if (task->kind != CPU_LAUNCH || units == 0) {
        return;
    }
    uint64_t items = ACRE_MAX(task->launch.items / task->units, 1) * units;
    uint64_t ps = ns * 1000 / items + 1;
    _Atomic uint64_t *item_ps = &task->launch.kernel->item_ps;
    uint64_t old = atomic_load_explicit(item_ps, memory_order_relaxed);
    uint64_t now = ps >= old ? ps : old - (old - ps) / 4;
    if (now != old) {
        atomic_store_explicit(item_ps, now, memory_order_relaxed);
    }
}

static const char *name_of(const struct cpu_task *task) {
    switch (task->kind) {
    case CPU_COPY:
        return task->copy.label;
    case CPU_FILL:
        return "fill";
    case CPU_LAUNCH:
        return task->launch.kernel->name;
    case CPU_SIGNAL:
    case CPU_WAIT:
    case CPU_NOTIFY:
        break;
    }
    return NULL;
}

void cpu_task_record(struct cpu_task *task, uint64_t end_ns) {
    struct cpu_stream *stream = task->stream;
    const char *name = name_of(task);
    if (task->queued_ns == 0 || name == NULL || stream->timing_count == TIMINGS_MAX) {
        return;
    }
    if (stream->timing_count == stream->timing_capacity) {
        uint32_t capacity = ACRE_MAX(2 * stream->timing_capacity, 64U);
        void *larger = reallocarray(stream->timings, capacity, sizeof(*stream->timings));
        if (larger == NULL) {
            return;
        }
        stream->timings = larger;
        stream->timing_capacity = capacity;
    }
    struct acre_timing *timing = &stream->timings[stream->timing_count++];
    *timing = (struct acre_timing){
        .bytes = task->kind == CPU_COPY ? task->copy.bytes : 0,
        .queued_us = (double)(task->begun_ns - task->queued_ns) / 1e3,
        .running_us = (double)(end_ns - task->begun_ns) / 1e3,
    };
    snprintf(timing->name, sizeof(timing->name), "%s", name);
}

void cpu_signal(struct cpu_stream *stream, uint64_t value) {
    struct cpu_pool *pool = &stream->seat->pool;
    _Atomic uint64_t *word = stream->word;
    atomic_fetch_add_explicit(&pool->told, 1, memory_order_release);
    uint64_t old = atomic_load_explicit(word, memory_order_relaxed);
    while (old < value && !atomic_compare_exchange_weak(word, &old, value)) {
    }
    /* Shared, not private: whoever sleeps on it may be another process. */
    acre_futex_wake(acre_futex_low_half(word), ACRE_FUTEX_ALL, ACRE_FUTEX_SHARED);
    cpu_pool_wake_parked(pool);
}
