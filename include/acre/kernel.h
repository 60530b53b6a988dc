/* kernel.h - programs, kernels, launches, times.
 *
 * Source is in the portable dialect (docs/kernels.md: kernel, global, local, global_id, barrier,
 * atomics), which compiles on every back end, or plain CUDA, HIP or OpenCL, which compiles on
 * its own. Signatures are read from the source, so that arguments are checked before a launch. */
#ifndef ACRE_KERNEL_H
#define ACRE_KERNEL_H

#include <acre/memory.h>

#ifdef __cplusplus
extern "C" {
#endif

struct acre_program;
struct acre_kernel; /* its program's: lives as long */

enum acre_language {
    ACRE_LANGUAGE_AUTO, /* by its words: __global__ CUDA or HIP, __kernel OpenCL; else portable */
    ACRE_LANGUAGE_PORTABLE,
    ACRE_LANGUAGE_CUDA,
    ACRE_LANGUAGE_HIP,
    ACRE_LANGUAGE_OPENCL,
};

struct acre_source {
    const char *text;
    const char *name;    /* in messages; NULL: "kernel" */
    const char *options; /* for the compiler, separated by spaces; NULL: none */
    enum acre_language language;
};

struct acre_build_report {
    char *log; /* all the compiler said, lines numbered as in the source; "": nothing */
    bool was_cached;
    double build_ms;
    char cache[160]; /* "": kept; else why not (read-only, full, damaged and rebuilt) */
};

/* ACRE_EINVALID: it does not compile; the text has the first message, the report all of them.
 * The report (NULL: not wanted) is filled in both cases and freed with acre_build_report_finish. */
ACRE_API int acre_program_build(struct acre_context *context, const struct acre_source *source,
                                struct acre_program **ret_program,
                                struct acre_build_report *ret_report, struct acre_error *err);
ACRE_API void acre_build_report_finish(struct acre_build_report *report);
/* What was launched of it was waited for; NULL is fine. */
ACRE_API void acre_program_destroy(struct acre_program *program);
/* ACRE_ENOTFOUND lists the kernels there are. */
ACRE_API int acre_kernel_find(struct acre_program *program, const char *name,
                              struct acre_kernel **ret_kernel, struct acre_error *err);

/* A C function as a kernel of a context with ACRE_CAN_NATIVE. It is called from several threads,
 * each with some of the groups; `arguments` are what the signature names ("void add(global const
 * float *a, uint n)"): where a buffer is, or where the value is. */
struct acre_groups {
    uint64_t first, end; /* numbers of groups: x first, then y, then z */
    uint32_t groups[3], group[3];
};
typedef void acre_native_function(const struct acre_groups *groups, const void *const *arguments);
ACRE_API int acre_program_native(struct acre_context *context, const char *signature,
                                 acre_native_function *function, struct acre_program **ret_program,
                                 struct acre_error *err);

/* --- launches ------------------------------------------------------------------------------- */

enum acre_arg_kind {
    ACRE_ARG_BUFFER,
    ACRE_ARG_INTEGER, /* signed or not */
    ACRE_ARG_FLOAT,
    ACRE_ARG_BYTES, /* vectors, structs */
    ACRE_ARG_LOCAL, /* so much local memory (OpenCL) */
};

struct acre_arg {
    uint32_t kind;
    uint32_t bytes; /* of the value; of local memory */
    union {
        struct {
            struct acre_buffer buffer;
            uint64_t offset;
        };
        const void *pointer; /* BYTES */
        int32_t i32;
        uint32_t u32;
        int64_t i64;
        uint64_t u64;
        float f32;
        double f64;
    };
};

#define ACRE_ARG_OF(kind_, bytes_, ...)                                                            \
    ((struct acre_arg){.kind = ACRE_ARG_##kind_, .bytes = (bytes_), __VA_ARGS__})
#define ACRE_BUFFER_AT(handle, at) ACRE_ARG_OF(BUFFER, 0, .buffer = (handle), .offset = (at))
#define ACRE_BUFFER(handle)        ACRE_BUFFER_AT(handle, 0)
#define ACRE_I32(value)            ACRE_ARG_OF(INTEGER, 4, .i32 = (value))
#define ACRE_U32(value)            ACRE_ARG_OF(INTEGER, 4, .u32 = (value))
#define ACRE_I64(value)            ACRE_ARG_OF(INTEGER, 8, .i64 = (value))
#define ACRE_U64(value)            ACRE_ARG_OF(INTEGER, 8, .u64 = (value))
#define ACRE_F32(value)            ACRE_ARG_OF(FLOAT, 4, .f32 = (value))
#define ACRE_F64(value)            ACRE_ARG_OF(FLOAT, 8, .f64 = (value))
#define ACRE_BYTES(at, size)       ACRE_ARG_OF(BYTES, size, .pointer = (at))
#define ACRE_LOCAL(size)           ACRE_ARG_OF(LOCAL, size, .u64 = 0)

struct acre_grid {
    uint32_t groups[3]; /* y and z: 0 means 1 */
    uint32_t group[3];  /* work items of a group; likewise */
};

/* The grid that covers `items` in groups of 256. */
ACRE_API struct acre_grid acre_grid_for(uint64_t items);
/* ACRE_EINVALID: grid or arguments are not what the kernel and the device take; ACRE_ENOTFOUND: a
 * buffer was freed. How the kernel fared is told by who waits for the stream. */
ACRE_API int acre_launch(struct acre_stream *stream, struct acre_kernel *kernel,
                         struct acre_grid grid, const struct acre_arg *args, uint32_t count,
                         struct acre_error *err);

/* --- times ---------------------------------------------------------------------------------- */

struct acre_timing {
    char name[48];     /* of the kernel; "copy in", "copy out", "copy", "fill", "graph" */
    uint64_t bytes;    /* of copies */
    double queued_us;  /* between call and start */
    double running_us; /* on the device */
};

/* Measure each piece of work of this stream from now on (costs a few microseconds each). */
ACRE_API int acre_stream_profile(struct acre_stream *stream, bool on, struct acre_error *err);
/* Waits for the stream; oldest first, each told once. What nobody asks for is not kept for ever: of
 * a stream on a GPU the last 1024. ACRE_EUNSUPPORTED: the device measures no times. */
ACRE_API int acre_stream_timings(struct acre_stream *stream, struct acre_timing *ret_timings,
                                 uint32_t max, uint32_t *ret_count, struct acre_error *err);

#ifdef __cplusplus
}
#endif

#endif
