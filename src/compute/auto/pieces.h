/* pieces.h - arrays of items through a kernel, in overlapping pieces. Pipelines and automatic calls
 * share it. */
#ifndef ACRE_COMPUTE_AUTO_PIECES_H
#define ACRE_COMPUTE_AUTO_PIECES_H

#include "compute/inner.h"

#include <acre/pipeline.h>

enum { PIECES_ARRAYS_MAX = 16, PIECES_SLOTS_MAX = 16, PIECES_KERNELS_MAX = 64 };

struct pieces_array {
    const void *in;    /* NULL: not read */
    void *out;         /* NULL: not written; with `in`: one buffer, read and written */
    uint32_t in_bytes; /* of an item */
    uint32_t out_bytes;
};

struct pieces {
    struct acre_kernel *const *kernels; /* one for each context */
    uint32_t kernel_count;
    const struct pieces_array *arrays;
    uint32_t array_count;
    uint64_t items;
    bool tells_first;            /* f(arrays..., uint n, ulong first, more...) */
    const struct acre_arg *more; /* otherwise f(arrays..., more..., uint n) */
    uint32_t more_count;
    uint64_t piece_bytes; /* of the larger direction; 0: chosen */
    uint32_t slots;       /* of each context; 0: chosen */
};

/* Checks numbers and sizes. Waits for the end; as acre_pipeline_run. */
int pieces_run(const struct pieces *pieces, struct acre_pipeline_report *ret_report,
               struct acre_error *err);

#endif
