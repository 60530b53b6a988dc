/* kernel.h - programs, kernels, launches, timings.
 *
 * Source is either in the portable dialect (docs/kernels.md: kernel, global, local, global_id,
 * barrier, atomics), which compiles on every back end, or plain CUDA, HIP or OpenCL, which compiles
 * only on its own. Signatures are read from the source, so launches check their arguments. */
#ifndef ACRE_KERNEL_H
#define ACRE_KERNEL_H

#include <acre/arg.h>

#ifdef __cplusplus
extern "C" {
#endif

struct acre_program;
struct acre_kernel; /* belongs to its program and lives as long */

enum acre_language {
    ACRE_LANGUAGE_AUTO, /* __global__: CUDA or HIP; __kernel: OpenCL; otherwise portable */
    ACRE_LANGUAGE_PORTABLE,
    ACRE_LANGUAGE_CUDA,
    ACRE_LANGUAGE_HIP,
    ACRE_LANGUAGE_OPENCL,
};

/* The back end that compiles sources in this language; NULL: any. */
ACRE_API const char *acre_language_backend(enum acre_language language);

struct acre_source {
    const char *text;
    const char *name;    /* for messages; NULL: "kernel" */
    const char *options; /* compiler options, separated by spaces; NULL: none */
    enum acre_language language;
};

struct acre_build_report {
    char *log; /* the compiler's full output, with the source's line numbers; "": none */
    bool was_cached;
    double build_ms;
    char cache[160]; /* "": cached; otherwise why not (read-only, full, damaged and rebuilt) */
};

/* ACRE_EINVALID: it does not compile; the error text has the first message, the report has all.
 * The report (NULL: not wanted) is filled on success and on failure; free it with
 * acre_build_report_finish. */
ACRE_API int acre_program_build(struct acre_context *context, const struct acre_source *source,
                                struct acre_program **ret_program,
                                struct acre_build_report *ret_report, struct acre_error *err);
ACRE_API void acre_build_report_finish(struct acre_build_report *report);
/* Wait for its launches first. NULL is fine. */
ACRE_API void acre_program_destroy(struct acre_program *program);
/* ACRE_ENOTFOUND: the text lists the program's kernels. */
ACRE_API int acre_kernel_find(struct acre_program *program, const char *name,
                              struct acre_kernel **ret_kernel, struct acre_error *err);

/* A C function as a kernel, on a device with ACRE_CAN_NATIVE. Several threads call it, each for
 * some of the groups. `arguments` follow the signature ("void add(global const float *a, uint n)"):
 * each points to the buffer's memory or to the value. */
struct acre_groups {
    uint64_t first, end; /* group numbers: x varies fastest, then y, then z */
    uint32_t groups[3], group[3];
};
typedef void acre_native_function(const struct acre_groups *groups, const void *const *arguments);
ACRE_API int acre_program_native(struct acre_context *context, const char *signature,
                                 acre_native_function *function, struct acre_program **ret_program,
                                 struct acre_error *err);

/* --- launches ------------------------------------------------------------------------------- */

struct acre_grid {
    uint32_t groups[3]; /* y and z: 0 means 1 */
    uint32_t group[3];  /* work items in a group; y and z: 0 means 1 */
};

/* A grid that covers `items` in groups of 256. */
ACRE_API struct acre_grid acre_grid_for(uint64_t items);
/* ACRE_EINVALID: the kernel or the device does not accept this grid or these arguments;
 * ACRE_ENOTFOUND: a buffer was freed. Waiting on the stream returns the kernel's result. */
ACRE_API int acre_launch(struct acre_stream *stream, struct acre_kernel *kernel,
                         struct acre_grid grid, const struct acre_arg *args, uint32_t count,
                         struct acre_error *err);

/* --- timings -------------------------------------------------------------------------------- */

struct acre_timing {
    char name[48];     /* the kernel's, or "copy in", "copy out", "copy", "fill", "graph" */
    uint64_t bytes;    /* of a copy */
    double queued_us;  /* from the call to the start */
    double running_us; /* on the device */
};

/* Measures every piece of work on this stream from now on, at a few microseconds each. */
ACRE_API int acre_stream_profile(struct acre_stream *stream, bool on, struct acre_error *err);
/* Waits for the stream, then returns its timings, oldest first, each only once. Timings that are
 * not collected are dropped in time: a stream on a GPU keeps the last 1024. ACRE_EUNSUPPORTED: the
 * device cannot measure. */
ACRE_API int acre_stream_timings(struct acre_stream *stream, struct acre_timing *ret_timings,
                                 uint32_t max, uint32_t *ret_count, struct acre_error *err);

#ifdef __cplusplus
}
#endif

#endif
