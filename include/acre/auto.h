/* auto.h - a call on host arrays, run in the cheapest way there is.
 *
 * Ways, in the order they are considered: ring (a resident kernel), graph (recorded copy, kernel,
 * copy), launch (the same, one by one; large ones as a pipeline), cpu. What each costs is learned
 * for each kernel, device and size as calls are made, and kept; the cheapest is taken, and now and
 * then another is tried where it might have become cheaper. Any number of
 * threads may call at once; those that use the device take turns. */
#ifndef ACRE_AUTO_H
#define ACRE_AUTO_H

#include <acre/kernel.h>

#ifdef __cplusplus
extern "C" {
#endif

struct acre_auto;

enum acre_way { ACRE_WAY_RING, ACRE_WAY_GRAPH, ACRE_WAY_LAUNCH, ACRE_WAY_CPU, ACRE_WAY_COUNT };

struct acre_auto_array {
    uint32_t in_bytes;  /* of one item, read by the kernel; 0: not read */
    uint32_t out_bytes; /* of one item, written; both: read and written, and equal */
};

struct acre_auto_options {
    struct acre_context *device;      /* NULL: CPU only */
    struct acre_context *cpu;         /* NULL: device only */
    const struct acre_source *source; /* a kernel f(arrays..., values..., uint n): portable */
    const char *kernel;
    acre_native_function *native; /* the same for the CPU; NULL: compiled from the source */
    const struct acre_auto_array *arrays;
    uint32_t array_count;
    const char *learned; /* file of what was learned; NULL: in the cache directory; "": none */
};

ACRE_API int acre_auto_create(const struct acre_auto_options *options, struct acre_auto **ret_auto,
                              struct acre_error *err);
/* Keeps what was learned. The contexts are still open; NULL is fine. */
ACRE_API void acre_auto_destroy(struct acre_auto *automatic);
/* Waits for the answer. `arrays` are host memory, in the order of the options, aligned as what they
 * hold. When the CPU's context is lost meanwhile (kernel_limit_ms) the call fails, and its kernel,
 * which is not ended, may use the arrays until that context is closed. */
ACRE_API int acre_auto_run(struct acre_auto *automatic, uint32_t items, void *const *arrays,
                           const struct acre_arg *values, uint32_t value_count,
                           enum acre_way *ret_way, /* NULL: not wanted */
                           struct acre_error *err);
/* The same by one way only. ACRE_EUNSUPPORTED says why it cannot be gone. */
ACRE_API int acre_auto_run_by(struct acre_auto *automatic, enum acre_way way, uint32_t items,
                              void *const *arrays, const struct acre_arg *values,
                              uint32_t value_count, struct acre_error *err);

struct acre_auto_cost {
    uint32_t items; /* sizes from this on, to twice as many */
    uint64_t calls[ACRE_WAY_COUNT];
    double us[ACRE_WAY_COUNT]; /* learned; < 0: unknown */
    enum acre_way chosen;
    char reason[ACRE_WAY_COUNT][96]; /* why a way is not there; "" */
};
/* What was learned, smallest sizes first; returns how many there are, `max` at most. */
ACRE_API uint32_t acre_auto_costs(struct acre_auto *automatic, struct acre_auto_cost *ret_costs,
                                  uint32_t max);
/* Why what was learned before is not used (the file is damaged, or of another kernel); "". */
ACRE_API const char *acre_auto_note(struct acre_auto *automatic);
ACRE_API const char *acre_way_name(enum acre_way way); /* "ring" */

#ifdef __cplusplus
}
#endif

#endif
