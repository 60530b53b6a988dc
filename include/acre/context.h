/* context.h - devices, contexts, streams, events.
 *
 * A runtime knows the devices of this machine. A context is one tenant's place on one device;
 * streams, buffers, programs, graphs and rings belong to a context. On a GPU a context lives in a
 * process of its own (the runner) unless asked otherwise: a kernel that faults or never ends is
 * lost with that process and nothing else. The context is then made anew by itself, its device
 * buffers are lost (ACRE_EUNAVAILABLE, whatever uses them), programs and pinned memory stay.
 *
 * Any thread may call anything, with two exceptions: one stream is used by one thread at a time,
 * and what is closed or destroyed is used by nobody else any more. Work on a stream happens in
 * order, later than the call; a call that fails has changed nothing. */
#ifndef ACRE_CONTEXT_H
#define ACRE_CONTEXT_H

#include <acre/acre.h>

#ifdef __cplusplus
extern "C" {
#endif

struct acre_compute;
struct acre_context;
struct acre_stream;

/* --- devices -------------------------------------------------------------------------------- */

struct acre_compute_options {
    const char *backends; /* "cuda,cpu": these, in this order; NULL: cuda, hip, opencl, cpu */
    const char *cache;    /* directory of compiled programs; "": none; NULL: $XDG_CACHE_HOME/acre,
                           * or ~/.cache/acre */
};

enum acre_capability {
    ACRE_CAN_GRAPH = 1 << 0,  /* replays recorded work as a whole; others: step by step */
    ACRE_CAN_RING = 1 << 1,   /* may keep a kernel resident (probed when the ring starts) */
    ACRE_CAN_SOURCE = 1 << 2, /* compiles kernels from source */
    ACRE_CAN_NATIVE = 1 << 3, /* runs C functions as kernels (the CPU, in this process) */
    ACRE_CAN_DOUBLE = 1 << 4, /* 64-bit floating point */
    ACRE_CAN_ATOMIC64 = 1 << 5,
    ACRE_CAN_STORAGE = 1 << 6, /* files straight to the device (cuFile) */
};

struct acre_compute_device {
    char backend[16];   /* "cuda" */
    char name[96];      /* "NVIDIA H200" */
    char uuid[64];      /* "GPU-..."; "": the back end does not tell */
    char identity[160]; /* what compiled code depends on: architecture, compiler, driver */
    uint64_t memory_bytes;
    uint32_t units;        /* multiprocessors, compute units, cores */
    uint32_t group_max;    /* work items of one group */
    uint32_t local_bytes;  /* of one group */
    uint32_t capabilities; /* of enum acre_capability */
};

ACRE_API int acre_compute_open(const struct acre_compute_options *options, /* NULL: defaults */
                               struct acre_compute **ret_compute, struct acre_error *err);
ACRE_API void acre_compute_close(struct acre_compute *compute); /* its contexts too; NULL is fine */
ACRE_API uint32_t acre_compute_count(const struct acre_compute *compute);
/* Devices are numbered from 0, in the order of their back ends; NULL: past the last. */
ACRE_API const struct acre_compute_device *acre_compute_device(const struct acre_compute *compute,
                                                               uint32_t device);
/* Why a back end has no device here; NULL: it has, or was not asked for. */
ACRE_API const char *acre_compute_absent(const struct acre_compute *compute, const char *backend);

/* --- contexts ------------------------------------------------------------------------------- */

enum acre_context_isolation {
    ACRE_CONTEXT_ISOLATION_AUTO,
    ACRE_CONTEXT_ISOLATION_PROCESS,
    ACRE_CONTEXT_ISOLATION_NONE
};

struct acre_context_options {
    const char *tenant;                    /* in reports and errors; NULL: "default" */
    uint64_t memory_limit_bytes;           /* of device memory; 0: what the device has */
    enum acre_context_isolation isolation; /* AUTO: PROCESS, but NONE for the CPU */
    /* When work waits and nothing of the context has ended for so long, the kernel that runs is
     * ended, or with NONE, where it cannot be, the context lost; 0: no limit. While other streams
     * of the context go on, one that does not end is not noticed: give it a context of its own. */
    uint32_t kernel_limit_ms;
    bool debug; /* canaries around buffers, small blocks, freed memory poisoned; slow */
};

struct acre_context_report {
    bool is_isolated;
    uint32_t rebuilt;       /* how often */
    char failure[256];      /* of the last time; "" */
    uint32_t buffers, lost; /* live; of these, lost with a context */
};

ACRE_API int acre_context_open(struct acre_compute *compute, uint32_t device,
                               const struct acre_context_options *options, /* NULL: defaults */
                               struct acre_context **ret_context, struct acre_error *err);
/* And all it holds; NULL is fine. Waits for what was given: with no kernel_limit_ms for ever, where
 * that never ends. With NONE, where a kernel was given up but not ended, for two seconds more; then
 * ACRE_ETIMEOUT: the kernel keeps its thread, and the context's memory, which it may still use, is
 * left behind until it ends by itself. */
ACRE_API int acre_context_close(struct acre_context *context);
ACRE_API void acre_context_report(struct acre_context *context,
                                  struct acre_context_report *ret_report);

/* --- streams and events --------------------------------------------------------------------- */

/* A moment in a stream: everything given to it before. Copied freely, never freed; of use as long
 * as its stream lives. */
struct acre_event {
    struct acre_stream *stream;
    uint64_t sequence;
};

enum { ACRE_FOREVER = -1 };

ACRE_API int acre_stream_create(struct acre_context *context, struct acre_stream **ret_stream,
                                struct acre_error *err);
ACRE_API void acre_stream_destroy(struct acre_stream *stream); /* waits for it; NULL is fine */
ACRE_API int acre_event_record(struct acre_stream *stream, struct acre_event *ret_event,
                               struct acre_error *err);
/* 0: it has come; ACRE_ETIMEOUT: not within `timeout_ms` (0: only a look; ACRE_FOREVER); other
 * codes: the work before it failed. */
ACRE_API int acre_event_wait(struct acre_event event, int timeout_ms, struct acre_error *err);
/* The same for everything given to the stream so far. */
ACRE_API int acre_stream_sync(struct acre_stream *stream, int timeout_ms, struct acre_error *err);
/* Later work of `stream` waits for the event, which may be of any stream. One of another context
 * is waited for in this call: devices do not see each other's. */
ACRE_API int acre_stream_after(struct acre_stream *stream, struct acre_event event,
                               struct acre_error *err);
/* When everything given so far is done or lost, 1 is added to the eventfd: for poll loops. Which of
 * the two, acre_event_wait and acre_stream_sync tell. Where the context is lost around that moment
 * it may be added twice. The descriptor may be closed at once, since a copy is kept: at least until
 * then, at most until the context is closed. So take it out of an epoll set first, which tells of
 * a file for as long as anyone has it open. */
ACRE_API int acre_stream_notify(struct acre_stream *stream, int event_fd, struct acre_error *err);

#ifdef __cplusplus
}
#endif

#endif
