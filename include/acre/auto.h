/* auto.h - run a call on host arrays in the cheapest way.
 *
 * The ways, in the order they are considered: ring (a resident kernel), graph (copy, kernel and
 * copy, recorded), launch (the same steps one by one; large calls as a pipeline), cpu. Each call
 * teaches the library what a way costs for that kernel, device and size, and it keeps what it
 * learned. It takes the cheapest way, and now and then tries another that may have become cheaper.
 * Any number of threads may call at once; calls that use the device take turns. */
#ifndef ACRE_AUTO_H
#define ACRE_AUTO_H

#include <acre/kernel.h>

#ifdef __cplusplus
extern "C" {
#endif

struct acre_auto;

enum acre_way { ACRE_WAY_RING, ACRE_WAY_GRAPH, ACRE_WAY_LAUNCH, ACRE_WAY_CPU, ACRE_WAY_COUNT };

struct acre_auto_array {
    uint32_t in_bytes;  /* bytes per item that the kernel reads; 0: it does not read the array */
    uint32_t out_bytes; /* bytes per item that it writes; if both are set, they must be equal */
};

struct acre_auto_options {
    struct acre_context *device;      /* NULL: CPU only */
    struct acre_context *cpu;         /* NULL: device only */
    const struct acre_source *source; /* portable; a kernel f(arrays..., values..., uint n) */
    const char *kernel;
    acre_native_function *native; /* the same kernel for the CPU; NULL: compile the source */
    const struct acre_auto_array *arrays;
    uint32_t array_count;
    const char *learned; /* file for what it learns; NULL: in the cache directory; "": none */
};

/* The options are copied; the contexts stay the caller's and must outlive the object.
 * ACRE_EINVALID: the options or the kernel's parameters do not fit; ACRE_ENOTFOUND: no such kernel.
 */
ACRE_API int acre_auto_create(const struct acre_auto_options *options, struct acre_auto **ret_auto,
                              struct acre_error *err);
/* Saves what was learned. The contexts must still be open. NULL is fine. */
ACRE_API void acre_auto_destroy(struct acre_auto *automatic);
/* Waits for the result. `arrays` are host memory, in the order of the options, aligned for their
 * element type. If the CPU context is lost during the call (kernel_limit_ms), the call fails; its
 * kernel is not stopped and may use the arrays until that context is closed. */
ACRE_API int acre_auto_run(struct acre_auto *automatic, uint32_t items, void *const *arrays,
                           const struct acre_arg *values, uint32_t value_count,
                           enum acre_way *ret_way, /* NULL: not wanted */
                           struct acre_error *err);
/* The same, but only in the given way. ACRE_EUNSUPPORTED: not possible; the text says why. */
ACRE_API int acre_auto_run_by(struct acre_auto *automatic, enum acre_way way, uint32_t items,
                              void *const *arrays, const struct acre_arg *values,
                              uint32_t value_count, struct acre_error *err);

struct acre_auto_cost {
    uint32_t items; /* for sizes from this to twice this */
    uint64_t calls[ACRE_WAY_COUNT];
    double us[ACRE_WAY_COUNT]; /* cost of a call; < 0: unknown */
    enum acre_way chosen;
    char reason[ACRE_WAY_COUNT][96]; /* why a way is not possible; "": it is */
};
/* What was learned, smallest sizes first. Returns the number of rows, at most `max`. */
ACRE_API uint32_t acre_auto_costs(struct acre_auto *automatic, struct acre_auto_cost *ret_costs,
                                  uint32_t max);
/* Why the saved file is not used (damaged, or from another kernel); "": it is used, or there is
 * none. Valid until the object is destroyed. */
ACRE_API const char *acre_auto_note(struct acre_auto *automatic);
ACRE_API const char *acre_way_name(enum acre_way way); /* "ring" */

#ifdef __cplusplus
}
#endif

#endif
