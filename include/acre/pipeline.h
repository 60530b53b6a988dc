/* pipeline.h - large host arrays through a kernel, in pieces that overlap.
 *
 * While one piece computes, the next is copied to the device and the previous one back. Several
 * contexts (devices) can share the work: each takes the next piece when it is free. Memory use is
 * at most piece size x slots. Each result goes to its item's index, so the order is kept.
 * The kernel is called as f(global const IN *in, global OUT *out, uint n, ulong first, ...more):
 * n items, the first of which is item `first` of the whole. A side of 0 bytes has no parameter. */
#ifndef ACRE_PIPELINE_H
#define ACRE_PIPELINE_H

#include <acre/kernel.h>

#ifdef __cplusplus
extern "C" {
#endif

struct acre_pipeline_plan {
    uint64_t items;      /* in all */
    uint64_t part_items; /* items per part; a part fits into device memory (GRN-3) */
    uint64_t parts;
};

/* Splits the items into parts that fit into device memory: usable = 80 % of `available_bytes`, a
 * part = max(256, usable / (in + out)). ACRE_ENOFIT: not even 256 items fit. */
ACRE_API int acre_pipeline_plan(uint64_t items, uint32_t in_bytes, uint32_t out_bytes,
                                uint64_t available_bytes, struct acre_pipeline_plan *ret_plan,
                                struct acre_error *err);

struct acre_pipeline {
    struct acre_kernel *const *kernels; /* one for each context, on a GPU or the CPU */
    uint32_t kernel_count;
    const void *in; /* pinned buffers are copied at full speed, other memory is staged */
    void *out;
    uint64_t items;
    uint32_t in_bytes, out_bytes; /* of one item; 0: none */
    const struct acre_arg *more;  /* arguments after those four; values only */
    uint32_t more_count;
    uint64_t piece_bytes; /* 0: chosen automatically */
    uint32_t slots;       /* pieces on each device at once, at most 16; 0: chosen automatically */
};

struct acre_pipeline_report {
    uint64_t pieces;
    double seconds;
    double items_per_ms, mb_per_s; /* mb_per_s: in + out */
    double kernel_efficiency;      /* fraction of the time that kernels ran; < 0: unknown */
    uint64_t failed_item;          /* first item of the piece that failed; UINT64_MAX: none */
};

/* Waits for the end. The first failure stops the rest and is returned; the report is filled even if
 * the run fails. */
ACRE_API int acre_pipeline_run(const struct acre_pipeline *pipeline,
                               struct acre_pipeline_report *ret_report, /* NULL: not wanted */
                               struct acre_error *err);

#ifdef __cplusplus
}
#endif

#endif
