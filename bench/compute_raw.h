/* compute_raw.h - a driver without acre, as a table: what bench/compute compares acre with.
 *
 * The calls are those of a plain, careful program. One thread. */
#ifndef ACRE_BENCH_COMPUTE_RAW_H
#define ACRE_BENCH_COMPUTE_RAW_H

#include "core/error.h"

enum {
    COMPUTE_STEPS = 20,  /* kernels of a graph */
    COMPUTE_GROUP = 256, /* work items of a group, of kernels over arrays */
    COMPUTE_TILE = 16,   /* of the matrix multiplication: groups of 16 x 16 */
    COMPUTE_STREAMS = 4, /* of the pipeline written by hand */
    COMPUTE_MIB = 1 << 20,
    COMPUTE_PIECE_BYTES = 16 * COMPUTE_MIB,
};

/* The kernels, in the portable dialect; a raw driver puts a few definitions before them. */
extern const char compute_text[];
extern const char compute_handler[]; /* of the ring: one word, answered by that word + 1 */

/* What a figure works on: the same for both sides. */
struct compute_memory {
    uint64_t device_bytes[3];
    uint64_t host_bytes[2]; /* pinned */
};

/* Every call waits for its end. NULL: the driver has no such thing; the figure stands alone. */
struct compute_raw {
    const char *name;
    int (*open)(void **ret_self, struct acre_error *err);
    void (*close)(void *self);
    int (*reserve)(void *self, const struct compute_memory *memory, struct acre_error *err);
    void (*release)(void *self);
    void *(*host)(void *self, uint32_t index); /* of what was reserved */
    /* tick() so many times; the counter is seen in host memory, and is right. */
    int (*launch)(void *self, uint32_t count, struct acre_error *err);
    int (*graph)(void *self, struct acre_error *err); /* COMPUTE_STEPS of them, as a graph */
    int (*ring_start)(void *self, struct acre_error *err);
    int (*ring_call)(void *self, struct acre_error *err); /* a word there, that word + 1 back */
    void (*ring_stop)(void *self);
    int (*alloc)(void *self, bool is_pooled, uint64_t bytes, uintptr_t *ret_at,
                 struct acre_error *err);
    int (*free)(void *self, bool is_pooled, uintptr_t at, struct acre_error *err);
    int (*add)(void *self, uint32_t items, struct acre_error *err);      /* device: 0 + 1 -> 2 */
    int (*multiply)(void *self, uint32_t width, struct acre_error *err); /* likewise, matrices */
    int (*copy)(void *self, bool is_in, uint64_t bytes, struct acre_error *err); /* host 0 */
    int (*batch)(void *self, const float *in, float *out, uint64_t items, struct acre_error *err);
    int (*compile)(void *self, const char *text, struct acre_error *err);    /* loaded, unloaded */
    int (*load)(void *self, int fd, uint64_t bytes, struct acre_error *err); /* to device 0 */
};

extern const struct compute_raw compute_raw_cuda;
extern const struct compute_raw compute_raw_opencl;
extern const struct compute_raw compute_raw_cpu;

#endif
