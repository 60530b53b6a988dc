/* seat.h - a seat of a GPU back end and everything made in it: what the files of this directory
 * share.
 *
 * Handles are the addresses of these structs, so queueing work needs no lookup and no lock. A seat
 * keeps lists of what was made in it (under `lock`), so that closing it frees the rest, and the
 * code of the first fault after which nothing works. */
#ifndef ACRE_COMPUTE_GPU_SEAT_H
#define ACRE_COMPUTE_GPU_SEAT_H

#include "compute/gpu/gpu.h"

#include <stdatomic.h>

/* Streams of the driver for all of a seat's but resident ones, which own theirs. A driver has only
 * so many queues (gpu->queues): streams with work beyond them share one behind our back, and wait
 * for ever for a resident kernel that has it. So lanes, residents and the side stream together are
 * no more than the queues. */
enum { GPU_LANES = 16, GPU_RESIDENTS = 3 }; /* at most */

/* What the structs of regions, streams, modules and graphs begin with. */
struct gpu_link {
    struct gpu_link *next, *before;
};

struct gpu_seat {
    struct gpu *gpu;
    struct gpu_seat *next; /* of gpu->seats, under its lock */
    uint32_t index;        /* in gpu->devices */
    int device;
    gpu_handle context;
    gpu_handle side;    /* a stream with no work of the front: uploads, base of the clocks */
    atomic_int lasting; /* code of the driver; 0: works */
    pthread_mutex_t lock;
    struct gpu_link regions, streams, modules, graphs; /* heads of circles */
    struct {
        gpu_handle stream; /* of the driver; NULL: not made yet */
        uint32_t users;
    } lanes[GPU_LANES]; /* stream.c */
    uint32_t lane_count;
    uint32_t residents, residents_max; /* streams that own one of the driver's; under gpu->lock */
};

struct gpu_region {
    struct gpu_link link;
    enum acre_memory kind;
    bool is_imported;
    uintptr_t address; /* as the device sees it */
    void *host;        /* NULL: device memory */
    uint64_t bytes;    /* 0: imported, not told */
};

struct gpu_stream {
    struct gpu_link link;
    gpu_handle stream;
    uint32_t lane;  /* of the seat's, which it shares; GPU_LANES: its own */
    uintptr_t word; /* of signals, as the device sees it */
    bool is_profiled;
    struct gpu_profile *profile; /* NULL: never was */
};

struct gpu_module {
    struct gpu_link link;
    gpu_handle module;
    struct acre_buf listed;     /* its kernels, as the compiler has them (image.h) */
    struct gpu_kernel *kernels; /* list, under the seat's lock */
};

struct gpu_kernel {
    struct gpu_kernel *next;
    gpu_handle function;
    char name[48]; /* for times and messages */
};

static inline struct gpu_region *gpu_region_of(uint64_t handle) {
    return (struct gpu_region *)(uintptr_t)handle;
}

static inline struct gpu_stream *gpu_stream_of(uint64_t handle) {
    return (struct gpu_stream *)(uintptr_t)handle;
}

static inline struct gpu_kernel *gpu_kernel_of(uint64_t handle) {
    return (struct gpu_kernel *)(uintptr_t)handle;
}

/* For copies: host memory by the host's address, which both drivers know to be pinned. */
static inline uintptr_t gpu_region_at(uint64_t handle, uint64_t offset, uint64_t bytes) {
    const struct gpu_region *region = gpu_region_of(handle);
    ACRE_ASSERT(region->bytes == 0 || (offset <= region->bytes && bytes <= region->bytes - offset));
    uintptr_t base = region->host != NULL ? (uintptr_t)region->host : region->address;
    return base + (uintptr_t)offset;
}

/* --- gpu.c ---------------------------------------------------------------------------------- */

void gpu_link_in(struct gpu_seat *seat, struct gpu_link *head, struct gpu_link *link);
void gpu_link_out(struct gpu_seat *seat, struct gpu_link *link);

/* --- stream.c --------------------------------------------------------------------------- */

/* The arguments of a launch as drivers take them. */
struct gpu_args {
    uintptr_t addresses[ACRE_ARGS_MAX];
    void *pointers[ACRE_ARGS_MAX];
};
int gpu_args_make(const struct native_launch *launch, struct gpu_args *args,
                  struct acre_error *err);
const char *gpu_copy_name(const struct native_copy *copy); /* for times */

/* A fill as drivers do it. They know patterns of 1, 2 and 4 bytes at multiples of these; any other
 * is written once, in parts, and then doubled by copies. */
struct gpu_step {
    uintptr_t to;
    uintptr_t from;         /* copies */
    unsigned value;         /* sets */
    unsigned element_bytes; /* 0: a copy */
    size_t count;           /* elements; bytes of a copy */
};
enum { GPU_STEPS_MAX = 64 };
uint32_t gpu_fill_steps(uintptr_t to, const struct native_fill *fill,
                        struct gpu_step steps[GPU_STEPS_MAX]);

/* --- profile.c -------------------------------------------------------------------------- */

/* Around each piece of work of a stream that is profiled; kept when `end` has succeeded. */
int gpu_profile_begin(struct gpu_seat *seat, struct gpu_stream *stream, const char *name,
                      uint64_t bytes, struct acre_error *err);
int gpu_profile_end(struct gpu_seat *seat, struct gpu_stream *stream, struct acre_error *err);
void gpu_profile_free(struct gpu_seat *seat, struct gpu_stream *stream); /* its events */

#endif
