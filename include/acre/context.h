/* context.h - devices and contexts. What a context works with is in the other headers.
 *
 * A runtime knows the devices of this machine. A context is one tenant's place on one device;
 * streams, buffers, programs, graphs and rings belong to a context. By default a context on a GPU
 * runs in its own process (the runner), so a kernel that faults or never ends takes down only that
 * process. The context is then rebuilt automatically: its device buffers are lost, and every call
 * that uses them fails with ACRE_EUNAVAILABLE; programs and pinned memory stay.
 *
 * Any thread may call any function, with two exceptions: only one thread at a time may use a
 * stream, and no thread may use an object that is being closed or destroyed. Work on a stream runs
 * in order, after the call returns. A failed call has changed nothing.
 *
 * A NULL handle gives ACRE_EINVALID, and the text names the parameter. Using what was closed or
 * destroyed is undefined, with two exceptions, both ACRE_EINVALID: closing a context twice, and the
 * last 32 streams that an open context destroyed.
 *
 * A runtime belongs to the process that opened it. A child made by fork() cannot use it
 * (ACRE_ECONFLICT); closing it there gives up the child's copies of descriptors and memory, and the
 * parent does not notice. The child may open its own runtime. */
#ifndef ACRE_CONTEXT_H
#define ACRE_CONTEXT_H

#include <acre/acre.h>

#ifdef __cplusplus
extern "C" {
#endif

struct acre_compute;
struct acre_context;

/* --- devices -------------------------------------------------------------------------------- */

struct acre_compute_options {
    const char *backends; /* "cuda,cpu": these, in this order; NULL: all, as acre_backend_name */
    const char *cache;    /* directory for compiled programs; "": none; NULL: $XDG_CACHE_HOME/acre
                           * or ~/.cache/acre */
};

enum acre_capability {
    ACRE_CAN_GRAPH = 1 << 0,  /* launches a graph as a whole; without it: step by step */
    ACRE_CAN_RING = 1 << 1,   /* may keep a kernel resident (probed when the ring starts) */
    ACRE_CAN_SOURCE = 1 << 2, /* compiles kernels from source */
    ACRE_CAN_NATIVE = 1 << 3, /* runs C functions as kernels (the CPU, in this process) */
    ACRE_CAN_DOUBLE = 1 << 4, /* 64-bit floating point */
    ACRE_CAN_ATOMIC64 = 1 << 5,
    ACRE_CAN_STORAGE = 1 << 6, /* reads files straight into device memory (cuFile) */
};

struct acre_compute_device {
    char backend[16];   /* "cuda" */
    char name[96];      /* "NVIDIA H200" */
    char uuid[64];      /* "GPU-..."; "": the back end does not report one */
    char identity[160]; /* what compiled code depends on: architecture, compiler, driver */
    uint64_t memory_bytes;
    uint32_t units;        /* multiprocessors, compute units, cores */
    uint32_t group_max;    /* most work items in a group */
    uint32_t local_bytes;  /* local memory of a group */
    uint32_t capabilities; /* bits of enum acre_capability */
};

/* ACRE_EINVALID: an unknown back end. A back end without a device is not an error
 * (acre_compute_absent). The caller closes the runtime. */
ACRE_API int acre_compute_open(const struct acre_compute_options *options, /* NULL: defaults */
                               struct acre_compute **ret_compute, struct acre_error *err);
ACRE_API void acre_compute_close(struct acre_compute *compute); /* and its contexts; NULL is fine */
ACRE_API uint32_t acre_compute_count(const struct acre_compute *compute);
/* Devices are numbered from 0, in the order of their back ends. NULL: no such device. Valid until
 * the runtime is closed, like the text of acre_compute_absent. */
ACRE_API const struct acre_compute_device *acre_compute_device(const struct acre_compute *compute,
                                                               uint32_t device);
/* "cuda", "hip", "opencl", "cpu", from number 0 on; NULL: there are no more. */
ACRE_API const char *acre_backend_name(uint32_t number);
/* Why a back end has no device here. NULL: it has one, or was not asked for. */
ACRE_API const char *acre_compute_absent(const struct acre_compute *compute, const char *backend);

/* --- contexts ------------------------------------------------------------------------------- */

enum acre_context_isolation {
    ACRE_CONTEXT_ISOLATION_AUTO,
    ACRE_CONTEXT_ISOLATION_PROCESS,
    ACRE_CONTEXT_ISOLATION_NONE
};

struct acre_context_options {
    const char *tenant;                    /* for reports and errors; NULL: "default" */
    uint64_t memory_limit_bytes;           /* of device memory; 0: all the device has */
    enum acre_context_isolation isolation; /* AUTO: PROCESS; NONE for back end "cpu" */
    /* If work is pending and no stream of the context progresses for this long, the running kernel
     * is killed; with NONE, where that is impossible, the context is lost. 0: no limit. A hung
     * stream goes undetected while others progress: give it its own context. */
    uint32_t kernel_limit_ms;
    bool debug; /* canaries around buffers, small blocks, freed memory poisoned; slow */
    /* A context that keeps failing rests: for `rest_ms`, every call that needs the device fails at
     * once with ACRE_EUNAVAILABLE, and the text says for how much longer. Then one call is tried:
     * if it succeeds, all calls go through again; if it fails, the context rests again. It rests
     * when at least `rest_calls` calls were counted within two minutes and at least half of them
     * failed. Device failures count (losing the context is one), and so do waits for work that
     * succeeded; mistakes of the caller do not. */
    uint32_t rest_ms;    /* 0: 60,000 */
    uint32_t rest_calls; /* 0: 10; UINT32_MAX: it never rests */
};

struct acre_context_report {
    bool is_isolated;
    uint32_t rebuilt;       /* how many times */
    char failure[256];      /* the last failure; "": none */
    uint32_t buffers, lost; /* buffers not freed; of these, lost when the context was rebuilt */
};

/* ACRE_EINVALID: no such device, or bad options; ACRE_EUNAVAILABLE: the machine has no device, or
 * the device or its runner does not start; ACRE_ENOTFOUND: acre-runner was not found. */
ACRE_API int acre_context_open(struct acre_compute *compute, uint32_t device,
                               const struct acre_context_options *options, /* NULL: defaults */
                               struct acre_context **ret_context, struct acre_error *err);
/* Closes the context and everything in it; NULL is fine; ACRE_EINVALID: closed before. Waits for
 * queued work: forever, if that never ends and there is no kernel_limit_ms. With NONE, if a kernel
 * was given up but still runs, waits two more seconds and returns ACRE_ETIMEOUT: the kernel keeps
 * its thread, and the context's memory, which it may still use, is freed only when it ends by
 * itself. */
ACRE_API int acre_context_close(struct acre_context *context);
ACRE_API void acre_context_report(struct acre_context *context,
                                  struct acre_context_report *ret_report);

#ifdef __cplusplus
}
#endif

#endif
