/* backend.h - what a back end does: one const table for each.
 *
 * The front (the other files here) checks arguments, keeps pools and remembers; a back end does
 * the raw operation, once. Everything it creates is a number that the front only passes on (0:
 * none), so that the same table works in this process or, through remote.c, in a runner. A seat is
 * one opened device: a context of the driver.
 *
 * Calls for one stream come one at a time; all others may come from several threads at once.
 * Functions marked "queued" return when the work is accepted: it happens later, in stream order,
 * and check() and every wait report its failure. All other functions are done when they return.
 * Texts name what the driver said ("cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY"). */
#ifndef ACRE_COMPUTE_BACKEND_H
#define ACRE_COMPUTE_BACKEND_H

#include "compute/native.h"
#include "core/buf.h"
#include "core/str.h"

/* In a device's identity, before its compiler: compiled code runs wherever the part before it is
 * the same. */
#define ACRE_IDENTITY_COMPILER "; compiler: "

struct backend {
    const char *name;            /* "cuda" */
    const char *what;            /* for people */
    enum acre_language language; /* of plain sources it takes; PORTABLE: of none */
    enum acre_language also;     /* kernels in this one are its own, unless the source says what
                                  * they are; AUTO: none */
    uint32_t capabilities;       /* most it can have; a device's are in its description */
    bool wakes;    /* who waits for a word (FUTEX_WAKE) when it signals; a GPU cannot */
    bool is_local; /* contexts are in the caller's process, unless asked otherwise; else: a runner's
                    */

    /* Load the libraries and list devices. ACRE_EUNAVAILABLE: none here, with the reason. */
    int (*open)(void **ret_self, struct acre_error *err);
    void (*close)(void *self); /* seats are closed; libraries stay loaded */
    uint32_t (*count)(void *self);
    void (*describe)(void *self, uint32_t device, struct acre_compute_device *ret_device);

    int (*seat_open)(void *self, uint32_t device, void **ret_seat, struct acre_error *err);
    void (*seat_close)(void *seat); /* frees all that was made in it */
    /* In a child of the process that opened it, instead: give up the child's copies of descriptors
     * and mappings, and nothing that is shared. NULL: there are none. */
    void (*seat_let_go)(void *seat);
    /* 0, or why nothing works any more in this seat (a kernel faulted, the driver is gone). */
    int (*check)(void *seat, struct acre_error *err);
    int (*memory)(void *seat, uint64_t *ret_free, uint64_t *ret_total, struct acre_error *err);

    /* Device memory; or, for PINNED and MAPPED, `host` (of this process, whole pages) made known to
     * the device. Destroying waits for nothing: the front knows that nobody uses it. */
    int (*region_create)(void *seat, enum acre_memory kind, uint64_t bytes, void *host,
                         struct native_region *ret_region, struct acre_error *err);
    void (*region_destroy)(void *seat, uint64_t region);

    /* `word` is where signals of this stream go: 8 bytes in a MAPPED region. */
    int (*stream_create)(void *seat, uint64_t word_region, uint64_t word_offset,
                         uint64_t *ret_stream, struct acre_error *err);
    void (*stream_destroy)(void *seat, uint64_t stream); /* idle */
    /* A kernel will stay on this stream, new and idle: no other may wait behind it. NULL: none
     * would. */
    int (*stream_own)(void *seat, uint64_t stream, struct acre_error *err);

    /* Queued. */
    int (*copy)(void *seat, uint64_t stream, const struct native_copy *copy,
                struct acre_error *err);
    int (*fill)(void *seat, uint64_t stream, const struct native_fill *fill,
                struct acre_error *err);
    int (*launch)(void *seat, uint64_t stream, const struct native_launch *launch,
                  struct acre_error *err);
    /* Queued: the stream's word becomes `value` (they only grow), visible to the host after all
     * that the work before it wrote. */
    int (*signal)(void *seat, uint64_t stream, uint64_t value, struct acre_error *err);
    /* Queued: wait until the word there is at least `value`. NULL: cannot. */
    int (*wait)(void *seat, uint64_t stream, uint64_t word_region, uint64_t word_offset,
                uint64_t value, struct acre_error *err);
    /* Queued: add 1 to the eventfd, before a signal behind it is seen. The caller closes it only
     * when that has been seen and `forget` was called. */
    int (*notify)(void *seat, uint64_t stream, int event_fd, struct acre_error *err);
    /* The eventfd is about to be closed. Any thread. NULL: nothing is kept of it. */
    void (*forget)(void *seat, int event_fd);

    /* The first queued call of the stream that was accepted and then refused, since this was last
     * asked; nothing that was queued behind it was done. To be asked when a signal has come; any
     * thread. NULL: queued calls are refused at once. */
    int (*stream_error)(void *seat, uint64_t stream, struct acre_error *err);

    /* Compile to bytes that `load` takes, in any process on the same device and driver. The log is
     * appended, compiled or not. ACRE_EINVALID: it does not compile. NULL: no sources. */
    int (*compile)(void *seat, const struct native_source *source, struct acre_buf *binary,
                   struct acre_buf *log, struct acre_error *err);
    /* All of its kernels are on the device when this returns. ACRE_ECORRUPT: not such bytes. */
    int (*load)(void *seat, const void *binary, size_t length, uint64_t *ret_module,
                struct acre_error *err);
    void (*unload)(void *seat, uint64_t module);
    int (*kernel)(void *seat, uint64_t module, const char *name, uint64_t *ret_kernel,
                  struct kernel_facts *ret_facts, struct acre_error *err);
    /* A C function as a kernel; NULL: cannot (and never in a runner). */
    int (*native)(void *seat, acre_native_function *function, uint64_t *ret_kernel,
                  struct acre_error *err);
    void (*native_destroy)(void *seat, uint64_t kernel); /* of `native`; no launch is under way */

    /* NULL, all four: the front replays node by node. `update` changes a launch in place. */
    int (*graph_create)(void *seat, const struct native_node *nodes, uint32_t count,
                        uint64_t *ret_graph, struct acre_error *err);
    int (*graph_update)(void *seat, uint64_t graph, uint32_t node,
                        const struct native_launch *launch, struct acre_error *err);
    int (*graph_launch)(void *seat, uint64_t stream, uint64_t graph, /* queued */
                        struct acre_error *err);
    void (*graph_destroy)(void *seat, uint64_t graph);

    /* Times of each piece of work of the stream, while on. `timings` for an idle stream. NULL both:
     * cannot. */
    int (*profile)(void *seat, uint64_t stream, bool on, struct acre_error *err);
    int (*timings)(void *seat, uint64_t stream, struct acre_timing *ret_timings, uint32_t max,
                   uint32_t *ret_count, struct acre_error *err);

    /* A file straight to (is_write: from) a device region; `how` has room for 96 bytes. NULL:
     * cannot. ACRE_EUNSUPPORTED: not this file. */
    int (*transfer)(void *seat, const char *file, uint64_t file_offset, uint64_t region,
                    uint64_t region_offset, uint64_t bytes, bool is_write, char *how,
                    struct acre_error *err);
    /* A region of another process on the same device. NULL both: cannot. */
    int (*region_export)(void *seat, uint64_t region, uint8_t ret_ticket[64],
                         struct acre_error *err);
    int (*region_import)(void *seat, const uint8_t ticket[64], struct native_region *ret_region,
                         struct acre_error *err);
};

/* All back ends, in the order in which their devices are listed: the one place that names them. A
 * new one is a room with its table, backend_NAME, and a row here; what others must know of it
 * is in that table. The CPU is last. */
#define ACRE_BACKENDS(X) X(cuda) X(hip) X(opencl) X(cpu)

#define ACRE_BACKEND_DECLARE(name) extern const struct backend backend_##name;
ACRE_BACKENDS(ACRE_BACKEND_DECLARE)
#undef ACRE_BACKEND_DECLARE

#define ACRE_BACKEND_ONE(name) +1
enum { ACRE_BACKEND_COUNT = 0 ACRE_BACKENDS(ACRE_BACKEND_ONE) };
#undef ACRE_BACKEND_ONE

extern const struct backend *const all_backends[ACRE_BACKEND_COUNT]; /* backends.c */
const struct backend *backend_find(struct acre_str name);            /* NULL: none */
/* "cuda, hip, ...", for messages; returns `text`. */
const char *backend_name_list(char *text, size_t size);

#endif
