/* gpu_place.h - a place of a GPU back end and all that is made in it; the entries of its table.
 *
 * Handles given to the front are the addresses of these structs: nothing is looked up, and no lock
 * is taken, when work is queued. A place keeps lists of what was made in it (under `lock`), so that
 * closing it frees the rest, and the code of the first fault after which nothing works. */
#ifndef ACRE_COMPUTE_GPU_PLACE_H
#define ACRE_COMPUTE_GPU_PLACE_H

#include "compute/gpu.h"

#include <stdatomic.h>

/* Everything that is made in a place begins with it. */
struct gpu_link {
    struct gpu_link *next, *before;
};

struct gpu_place {
    struct gpu *gpu;
    struct gpu_place *next; /* of gpu->places, under its lock */
    uint32_t index;         /* in gpu->devices */
    int device;
    gpu_handle context;
    gpu_handle side;    /* a stream that is always idle: uploads, base of the clocks */
    atomic_int lasting; /* code of the driver; 0: works */
    pthread_mutex_t lock;
    struct gpu_link regions, streams, modules, graphs; /* heads of rings */
};

struct gpu_region {
    struct gpu_link link;
    enum acre_memory kind;
    bool is_imported;
    uintptr_t address; /* as the device sees it */
    void *host;        /* NULL: device memory */
    uint64_t bytes;    /* 0: imported, not told */
};

struct gpu_profile; /* gpu_profile.c */

struct gpu_stream {
    struct gpu_link link;
    gpu_handle stream;
    uintptr_t word;              /* of signals, as the device sees it */
    struct gpu_profile *profile; /* NULL: off */
};

struct gpu_module {
    struct gpu_link link;
    gpu_handle module;
    struct gpu_kernel *kernels; /* list */
};

struct gpu_kernel {
    struct gpu_kernel *next;
    gpu_handle function;
    char name[48]; /* for times */
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

/* What a launch is made of, resolved onto the caller's stack. */
struct gpu_args {
    uintptr_t addresses[ACRE_ARGS_MAX];
    void *pointers[ACRE_ARGS_MAX];
};
int gpu_args_make(const struct acre_native_launch *launch, struct gpu_args *ret_args,
                  struct acre_error *err);

/* --- helpers (gpu.c) ------------------------------------------------------------------------ */

void gpu_link_in(struct gpu_place *place, struct gpu_link *head, struct gpu_link *link);
void gpu_link_out(struct gpu_place *place, struct gpu_link *link);

/* --- times (gpu_profile.c) ------------------------------------------------------------------ */

/* Around a piece of work of a stream that is profiled: returns the number to end with. */
int gpu_profile_begin(struct gpu_place *place, struct gpu_stream *stream, const char *name,
                      uint64_t bytes, struct acre_error *err);
int gpu_profile_end(struct gpu_place *place, struct gpu_stream *stream, struct acre_error *err);
void gpu_profile_free(struct gpu_place *place, struct gpu_stream *stream);

/* --- fills ---------------------------------------------------------------------------------- */

#endif
