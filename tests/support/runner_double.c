/* runner_double.c - a runner with one small back end, which does what its kernels are named: for
 * the tests of what is between a caller and a back end.
 *
 * Work is done where it is given, so nothing is pending but what never ends. Kernels: "add" (a
 * buffer of 32-bit numbers, a number to add), "crash", "abort", "hang", "fault" (nothing works any
 * more, found by check alone), "refuse" (the launch fails), "open" (lets "slow" sources compile).
 * A source is compiled to itself; "bad" is not. Where DOUBLE_FILES names a directory, "hang" makes
 * a file "hangs" there, and a seat takes long to close, as with a tool in the process, and makes a
 * file "cleaned" in the end. */
#include "compute/runner/runner.h"
#include "core/futex.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const kernels[] = {"",     "add",   "crash",  "abort",
                                      "hang", "fault", "refuse", "open"};
enum { ADD = 1, CRASH, ABORT, HANG, FAULT, REFUSE, OPEN };

struct region {
    uint8_t *bytes;
    uint64_t size;
    bool is_own;
};

struct stream {
    _Atomic uint64_t *word;
    uint32_t done;
    bool is_profiled;
};

struct graph {
    uint32_t count;
    struct native_node nodes[];
};

struct made { /* before each thing of a seat */
    struct made *next, *previous;
};

struct seat {
    struct made made; /* circle of them */
    atomic_bool is_faulty;
    atomic_int regions;
    pthread_mutex_t lock;
    pthread_cond_t opened;
    bool is_open;
};

static void *pointer(uint64_t handle) {
    return (void *)(uintptr_t)handle; // NOLINT
}

static void *make(struct seat *seat, size_t bytes) {
    struct made *made = acre_calloc(1, sizeof(*made) + bytes);
    pthread_mutex_lock(&seat->lock);
    *made = (struct made){.next = &seat->made, .previous = seat->made.previous};
    made->previous->next = made;
    seat->made.previous = made;
    pthread_mutex_unlock(&seat->lock);
    return made + 1;
}

static void unmake(struct seat *seat, void *thing) {
    struct made *made = (struct made *)thing - 1;
    pthread_mutex_lock(&seat->lock);
    made->previous->next = made->next;
    made->next->previous = made->previous;
    pthread_mutex_unlock(&seat->lock);
    free(made);
}

static int double_open(void **ret_self, struct acre_error *err) {
    if (getenv("DOUBLE_ABSENT") != NULL) {
        return acre_fail(err, ACRE_EUNAVAILABLE, "no double here: %s", getenv("DOUBLE_ABSENT"));
    }
    *ret_self = NULL;
    return 0;
}

static void double_close(void *self) {
    (void)self;
}

static uint32_t double_count(void *self) {
    (void)self;
    return 2;
}

static int double_seat_open(void *self, uint32_t device, void **ret_seat, struct acre_error *err) {
    (void)self, (void)device, (void)err;
    struct seat *seat = acre_calloc(1, sizeof(*seat));
    pthread_mutex_init(&seat->lock, NULL);
    pthread_cond_init(&seat->opened, NULL);
    seat->made = (struct made){&seat->made, &seat->made};
    *ret_seat = seat;
    return 0;
}

static void leave_file(const char *name) {
    const char *directory = getenv("DOUBLE_FILES");
    char path[PATH_MAX];
    if (directory != NULL) {
        snprintf(path, sizeof(path), "%s/%s", directory, name);
        close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    }
}

static void double_seat_close(void *seat) {
    enum { CLEANS_MS = 3500 }; /* longer than a runner with work under way is waited for */
    struct seat *self = seat;
    while (self->made.next != &self->made) {
        unmake(self, self->made.next + 1);
    }
    free(seat);
    if (getenv("DOUBLE_FILES") != NULL) {
        poll(NULL, 0, CLEANS_MS);
        leave_file("cleaned");
    }
}

static int double_check(void *seat, struct acre_error *err) {
    return atomic_load(&((struct seat *)seat)->is_faulty)
               ? acre_fail(err, ACRE_EUNAVAILABLE,
                           "a kernel read or wrote outside its memory (DOUBLE_ERROR_ADDRESS)")
               : 0;
}

/* The environment stands in for figures: what the runner was started with. */
static int double_memory(void *seat, uint64_t *ret_free, uint64_t *ret_total,
                         struct acre_error *err) {
    (void)err;
    const char *eager = getenv("CUDA_MODULE_LOADING");
    *ret_free = (uint64_t)atomic_load(&((struct seat *)seat)->regions);
    *ret_total = eager != NULL && strcmp(eager, "EAGER") == 0 ? 4096 : 0;
    return 0;
}

static int double_region_create(void *seat, enum acre_memory kind, uint64_t bytes, void *host,
                                struct native_region *ret_region, struct acre_error *err) {
    if (kind == ACRE_MEMORY_DEVICE && bytes > UINT64_C(1) << 30) {
        return acre_fail(err, ACRE_ENOMEM, "doubleAlloc: DOUBLE_ERROR_OUT_OF_MEMORY");
    }
    struct region *region = make(seat, sizeof(*region));
    *region = (struct region){.bytes = host, .size = bytes, .is_own = host == NULL};
    if (host == NULL) {
        region->bytes = make(seat, bytes);
    }
    atomic_fetch_add(&((struct seat *)seat)->regions, 1);
    ret_region->handle = (uintptr_t)region;
    ret_region->address = (uintptr_t)region->bytes;
    return 0;
}

static void double_region_destroy(void *seat, uint64_t handle) {
    struct region *region = pointer(handle);
    atomic_fetch_sub(&((struct seat *)seat)->regions, 1);
    if (region->is_own) {
        unmake(seat, region->bytes);
    }
    unmake(seat, region);
}

static int double_stream_create(void *seat, uint64_t word_region, uint64_t word_offset,
                                uint64_t *ret_stream, struct acre_error *err) {
    (void)err;
    struct stream *stream = make(seat, sizeof(*stream));
    stream->word = (void *)(((struct region *)pointer(word_region))->bytes + word_offset);
    *ret_stream = (uintptr_t)stream;
    return 0;
}

static void double_stream_destroy(void *seat, uint64_t stream) {
    unmake(seat, pointer(stream));
}

static int double_copy(void *seat, uint64_t stream, const struct native_copy *copy,
                       struct acre_error *err) {
    (void)seat, (void)err;
    const struct region *to = pointer(copy->to);
    const struct region *from = pointer(copy->from);
    memmove(to->bytes + copy->to_offset, from->bytes + copy->from_offset, copy->bytes);
    ((struct stream *)pointer(stream))->done++;
    return 0;
}

static int double_fill(void *seat, uint64_t stream, const struct native_fill *fill,
                       struct acre_error *err) {
    (void)seat, (void)err;
    const struct region *to = pointer(fill->to);
    for (uint64_t i = 0; i < fill->bytes; i += fill->pattern_bytes) {
        memcpy(to->bytes + fill->to_offset + i, &fill->pattern, fill->pattern_bytes);
    }
    ((struct stream *)pointer(stream))->done++;
    return 0;
}

static void add(const struct native_launch *launch) {
    const struct native_arg *args = launch->args;
    const struct region *region = pointer(args[0].region);
    uint32_t *numbers = (void *)(region->bytes + args[0].offset);
    uint32_t value;
    memcpy(&value, launch->extra + args[1].region, sizeof(value));
    for (uint64_t i = 0; i < args[0].length / sizeof(*numbers); i++) {
        numbers[i] += value;
    }
}

__attribute__((no_sanitize("undefined"))) static void crash(void) {
    volatile int *volatile nowhere = NULL;
    *nowhere = 1; // NOLINT
}

static int double_launch(void *seat, uint64_t stream, const struct native_launch *launch,
                         struct acre_error *err) {
    struct seat *self = seat;
    switch (launch->kernel) {
    case ADD:
        add(launch);
        break;
    case CRASH:
        crash();
        break;
    case ABORT:
        abort();
    case HANG:
        leave_file("hangs");
        for (;;) {
            pause();
        }
    case FAULT:
        atomic_store(&self->is_faulty, true);
        break;
    case REFUSE:
        return acre_fail(err, ACRE_EINVALID, "doubleLaunch: DOUBLE_ERROR_CONFIGURATION");
    default: /* OPEN */
        pthread_mutex_lock(&self->lock);
        self->is_open = true;
        pthread_cond_broadcast(&self->opened);
        pthread_mutex_unlock(&self->lock);
        break;
    }
    ((struct stream *)pointer(stream))->done++;
    return 0;
}

static int double_signal(void *seat, uint64_t stream, uint64_t value, struct acre_error *err) {
    (void)err;
    _Atomic uint64_t *word = ((struct stream *)pointer(stream))->word;
    if (!atomic_load(&((struct seat *)seat)->is_faulty)) { /* a faulty device does nothing more */
        atomic_store(word, value);
        acre_futex_wake(acre_futex_low_half(word), ACRE_FUTEX_ALL, ACRE_FUTEX_SHARED);
    }
    return 0;
}

static int double_notify(void *seat, uint64_t stream, int event_fd, struct acre_error *err) {
    (void)seat, (void)stream;
    uint64_t one = 1;
    return write(event_fd, &one, sizeof(one)) == sizeof(one)
               ? 0
               : acre_fail_errno(err, errno, "eventfd");
}

static int double_compile(void *seat, const struct native_source *source, struct acre_buf *binary,
                          struct acre_buf *log, struct acre_error *err) {
    struct seat *self = seat;
    if (strcmp(source->text, "bad") == 0) {
        acre_buf_puts(log, "kernel:1: bad");
        return acre_fail(err, ACRE_EINVALID, "kernel:1: bad");
    }
    pthread_mutex_lock(&self->lock);
    while (strcmp(source->text, "slow") == 0 && !self->is_open) {
        pthread_cond_wait(&self->opened, &self->lock);
    }
    pthread_mutex_unlock(&self->lock);
    acre_buf_append(binary, source->text, source->length);
    for (uint32_t i = 0; i < source->kernel_count; i++) {
        acre_buf_printf(log, "%s(%s)", source->kernels[i], source->options);
    }
    return 0;
}

static int double_load(void *seat, const void *binary, size_t length, uint64_t *ret_module,
                       struct acre_error *err) {
    (void)seat;
    if (length == 0 || memchr(binary, 'k', length) == NULL) {
        return acre_fail(err, ACRE_ECORRUPT, "%zu bytes without a k", length);
    }
    *ret_module = length;
    return 0;
}

static void double_unload(void *seat, uint64_t module) {
    (void)seat, (void)module;
}

static int double_kernel(void *seat, uint64_t module, const char *name, uint64_t *ret_kernel,
                         struct kernel_facts *ret_facts, struct acre_error *err) {
    (void)seat;
    for (uint64_t i = 1; i < ACRE_COUNT(kernels); i++) {
        if (strcmp(kernels[i], name) == 0) {
            *ret_kernel = i;
            *ret_facts = (struct kernel_facts){
                .group_max = 1024, .local_bytes = (uint32_t)module, .registers = 32};
            return 0;
        }
    }
    return acre_fail(err, ACRE_ENOTFOUND, "no kernel '%s'", name);
}

static struct native_launch keep(const struct native_launch *launch) {
    struct native_launch kept = *launch;
    void *args = acre_calloc(launch->arg_count + 1, sizeof(*launch->args));
    void *extra = acre_calloc(1, launch->extra_bytes + 1);
    memcpy(args, launch->args, launch->arg_count * sizeof(*launch->args));
    memcpy(extra, launch->extra, launch->extra_bytes);
    kept.args = args;
    kept.extra = extra;
    return kept;
}

static int double_graph_create(void *seat, const struct native_node *nodes, uint32_t count,
                               uint64_t *ret_graph, struct acre_error *err) {
    (void)seat, (void)err;
    struct graph *graph = acre_calloc(1, sizeof(*graph) + count * sizeof(*nodes));
    graph->count = count;
    for (uint32_t i = 0; i < count; i++) {
        graph->nodes[i] = nodes[i];
        if (nodes[i].kind == ACRE_NODE_LAUNCH) {
            graph->nodes[i].launch = keep(&nodes[i].launch);
        }
    }
    *ret_graph = (uintptr_t)graph;
    return 0;
}

static void drop(struct native_node *node) {
    if (node->kind == ACRE_NODE_LAUNCH) {
        free((void *)(uintptr_t)node->launch.args);
        free((void *)(uintptr_t)node->launch.extra);
    }
}

static int double_graph_update(void *seat, uint64_t handle, uint32_t node,
                               const struct native_launch *launch, struct acre_error *err) {
    (void)seat;
    struct graph *graph = pointer(handle);
    if (node >= graph->count || graph->nodes[node].kind != ACRE_NODE_LAUNCH) {
        return acre_fail(err, ACRE_EINVALID, "node %u is no launch", node);
    }
    drop(&graph->nodes[node]);
    graph->nodes[node].launch = keep(launch);
    return 0;
}

static int double_graph_launch(void *seat, uint64_t stream, uint64_t handle,
                               struct acre_error *err) {
    const struct graph *graph = pointer(handle);
    int r = 0;
    for (uint32_t i = 0; i < graph->count && r == 0; i++) {
        const struct native_node *node = &graph->nodes[i];
        r = node->kind == ACRE_NODE_LAUNCH ? double_launch(seat, stream, &node->launch, err)
            : node->kind == ACRE_NODE_COPY ? double_copy(seat, stream, &node->copy, err)
                                           : double_fill(seat, stream, &node->fill, err);
    }
    return r;
}

static void double_graph_destroy(void *seat, uint64_t handle) {
    (void)seat;
    struct graph *graph = pointer(handle);
    for (uint32_t i = 0; i < graph->count; i++) {
        drop(&graph->nodes[i]);
    }
    free(graph);
}

static int double_profile(void *seat, uint64_t stream, bool on, struct acre_error *err) {
    (void)seat, (void)err;
    *(struct stream *)pointer(stream) =
        (struct stream){.word = ((struct stream *)pointer(stream))->word, .is_profiled = on};
    return 0;
}

static int double_timings(void *seat, uint64_t stream, struct acre_timing *ret_timings,
                          uint32_t max, uint32_t *ret_count, struct acre_error *err) {
    (void)seat, (void)err;
    const struct stream *self = pointer(stream);
    uint32_t count = ACRE_MIN(self->done, max);
    for (uint32_t i = 0; i < count; i++) {
        ret_timings[i] = (struct acre_timing){.name = "work", .bytes = i};
    }
    *ret_count = self->is_profiled ? count : 0;
    return 0;
}

static int double_transfer(void *seat, const char *file, uint64_t file_offset, uint64_t handle,
                           uint64_t region_offset, uint64_t bytes, bool is_write, char *how,
                           struct acre_error *err) {
    (void)seat;
    const struct region *region = pointer(handle);
    int fd = open(file, is_write ? O_WRONLY | O_CREAT | O_CLOEXEC : O_RDONLY | O_CLOEXEC, 0600);
    if (fd < 0) {
        return acre_fail_errno(err, errno, "%s", file);
    }
    uint8_t *at = region->bytes + region_offset;
    ssize_t done = is_write ? pwrite(fd, at, bytes, (off_t)file_offset)
                            : pread(fd, at, bytes, (off_t)file_offset);
    close(fd);
    snprintf(how, 96, "plain");
    return done == (ssize_t)bytes ? 0 : acre_fail(err, ACRE_EIO, "%s: short", file);
}

static int double_export(void *seat, uint64_t region, uint8_t ret_ticket[64],
                         struct acre_error *err) {
    (void)seat, (void)err;
    memset(ret_ticket, 7, 64);
    memcpy(ret_ticket, &region, sizeof(region));
    return 0;
}

static int double_import(void *seat, const uint8_t ticket[64], struct native_region *ret_region,
                         struct acre_error *err) {
    (void)seat;
    memcpy(&ret_region->handle, ticket, sizeof(ret_region->handle));
    ret_region->address = 1;
    return ticket[63] == 7 ? 0 : acre_fail(err, ACRE_EINVALID, "no such ticket");
}

static const struct backend double_backend = {
    .name = "double",
    .open = double_open,
    .close = double_close,
    .count = double_count,
    .seat_open = double_seat_open,
    .seat_close = double_seat_close,
    .check = double_check,
    .memory = double_memory,
    .region_create = double_region_create,
    .region_destroy = double_region_destroy,
    .stream_create = double_stream_create,
    .stream_destroy = double_stream_destroy,
    .copy = double_copy,
    .fill = double_fill,
    .launch = double_launch,
    .signal = double_signal,
    .notify = double_notify,
    .compile = double_compile,
    .load = double_load,
    .unload = double_unload,
    .kernel = double_kernel,
    .graph_create = double_graph_create,
    .graph_update = double_graph_update,
    .graph_launch = double_graph_launch,
    .graph_destroy = double_graph_destroy,
    .profile = double_profile,
    .timings = double_timings,
    .transfer = double_transfer,
    .region_export = double_export,
    .region_import = double_import,
};

int main(void) {
    static const struct backend *const tables[] = {&double_backend};
    return runner_run(tables, ACRE_COUNT(tables));
}
