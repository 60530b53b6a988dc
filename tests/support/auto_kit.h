/* auto_kit.h - an automatic call under test: two contexts on the CPU, one of which is the device.
 */
#ifndef ACRE_TEST_AUTO_KIT_H
#define ACRE_TEST_AUTO_KIT_H

#include "compute/auto/inner.h"
#include "core/rand.h"
#include "support/test.h"

#include <acre/compute.h>

#define BIT(variant) (UINT32_C(1) << (variant))

enum { ITEMS_MAX = 1 << 20 };

/* Kernels: axpy (faults where `away` is large), turn, mixed. */
extern const struct acre_source auto_source;
extern const struct acre_auto_array axpy_arrays[3];

struct bench {
    struct acre_compute *compute;
    struct acre_context *device, *cpu;
    struct acre_stream *stream;       /* of the device */
    struct acre_auto_options options; /* for axpy; change them, then make_auto */
    struct acre_auto *automatic;
    struct acre_rand rand;
    struct acre_error err;
    float *a, *b, *c, *expected;
};

void open_bench(struct bench *bench, const char *cache, const struct acre_context_options *device);
void make_auto(struct bench *bench);
void close_bench(struct bench *bench); /* checks that no buffer is left */
/* Other data, and what axpy with 0.25 makes of it: exact, fused or not. */
void fill(struct bench *bench, uint32_t n);
void check_answer(struct bench *bench, const float *c, uint32_t n);
/* Of axpy; this thread's until the next. */
const struct acre_arg *values_of(uint64_t away);

#endif
