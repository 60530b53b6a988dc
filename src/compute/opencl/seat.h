/* seat.h - what the files of the OpenCL back end share. Private to it.
 *
 * Locks: seat->lock protects the lists and counts of the seat and everything that completions
 * touch. The driver calls completions, perhaps holding locks of its own, so OpenCL is never called
 * with seat->lock held. Completions never take region->lock or a clone's lock. */
#ifndef ACRE_COMPUTE_OPENCL_SEAT_H
#define ACRE_COMPUTE_OPENCL_SEAT_H

#include "compute/backend.h"
#include "compute/opencl/abi.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
    OPENCL_PARTS_CACHED = 64, /* sub-buffers of a region: live buffers of a block, mostly */
    OPENCL_CLONES = 8,        /* of a kernel: streams that can launch it at the same time */
    OPENCL_SCRATCH_BYTES = 1 << 18,
};

struct opencl_link { /* in a circle with its list; first in what it links */
    struct opencl_link *next, *previous;
};

struct opencl_seat {
    const struct opencl_api *api;
    opencl_device device;
    opencl_context context;
    bool has_svm;        /* device regions are shared virtual memory, else buffer objects */
    bool has_system_svm; /* kernels reach any host memory */
    bool is_cpu;         /* buffer objects over host memory are that memory */
    uint64_t total_bytes, alloc_max_bytes;
    uint32_t part_align_bytes; /* where sub-buffers may begin */
    int cache_fd;              /* PoCL's directory of programs; -1: another driver's */

    pthread_mutex_t lock;
    pthread_cond_t quiet;      /* completions_due became 0 */
    uint32_t completions_due;  /* registered with the driver, not yet through */
    struct opencl_link due;    /* signals under way */
    struct opencl_link wanted; /* waits for signals that nobody has given yet */
    struct opencl_link streams, regions, modules;
    uint32_t streams_made;
    uint64_t used_bytes;
    int failed; /* ACRE_E* */
    char failure[160];
};

struct opencl_part {
    uint64_t offset, length;
    opencl_mem mem; /* NULL: none */
};

struct opencl_region {
    struct opencl_link link;
    enum acre_memory kind;
    uint64_t bytes;
    char *base;     /* SVM or host memory; NULL: a buffer object alone */
    bool is_svm;    /* kernels take addresses in it */
    opencl_mem mem; /* NULL: none */
    pthread_mutex_t lock;
    struct opencl_part parts[OPENCL_PARTS_CACHED];
};

struct opencl_measured {
    opencl_event event;
    char name[48];
    uint64_t bytes;
};

struct opencl_stream {
    struct opencl_link link;
    uint32_t number;
    opencl_queue queues[2]; /* in order; the second measures and is made when asked for */
    bool is_measured;
    struct opencl_region *scratch; /* for host memory that only copies reach; NULL: none yet */
    struct opencl_measured *measured;
    uint32_t measured_count, measured_room;
    /* Of completions, under seat->lock. */
    _Atomic uint64_t *word;
    uint64_t reached;     /* last value stored to the word */
    uint64_t completions; /* so far */
    struct opencl_link notices;
    uint32_t refs; /* the seat's, and one for each completion due */
};

/* opencl.c */
int opencl_fail(struct acre_error *err, int32_t code, const char *call);
const char *opencl_error_name(int32_t code, char text[32]);
void opencl_link_add(struct opencl_link *list, struct opencl_link *link); /* at the end */
void opencl_link_remove(struct opencl_link *link);

/* pocl_cache.c. A descriptor of PoCL's directory of programs; -1: none. */
int pocl_cache_open(const struct acre_opencl_query *query, opencl_platform platform);
/* Be in it, alone or with others that are not; waits. To be released, whatever it is. */
int pocl_cache_enter(const struct opencl_seat *seat, bool is_alone);
void pocl_cache_leave(int entered);

/* region.c: as in backend.h */
int opencl_region_make(struct opencl_seat *seat, enum acre_memory kind, uint64_t bytes, void *host,
                       struct opencl_region **ret_region, struct acre_error *err);
void opencl_region_free(struct opencl_seat *seat, struct opencl_region *region);
int opencl_region_create(void *seat, enum acre_memory kind, uint64_t bytes, void *host,
                         struct native_region *ret_region, struct acre_error *err);
void opencl_region_destroy(void *seat, uint64_t region);
/* A buffer object for [offset, offset + length): release_mem it after use. */
int opencl_region_part(struct opencl_seat *seat, struct opencl_region *region, uint64_t offset,
                       uint64_t length, opencl_mem *ret_part, struct acre_error *err);
int opencl_copy(void *seat, uint64_t stream, const struct native_copy *copy,
                struct acre_error *err);
int opencl_fill(void *seat, uint64_t stream, const struct native_fill *fill,
                struct acre_error *err);

/* stream.c: as in backend.h */
int opencl_stream_create(void *seat, uint64_t word_region, uint64_t word_offset,
                         uint64_t *ret_stream, struct acre_error *err);
void opencl_stream_destroy(void *seat, uint64_t stream);
int opencl_signal(void *seat, uint64_t stream, uint64_t value, struct acre_error *err);
int opencl_wait(void *seat, uint64_t stream, uint64_t word_region, uint64_t word_offset,
                uint64_t value, struct acre_error *err);
int opencl_notify(void *seat, uint64_t stream, int event_fd, struct acre_error *err);
/* End all that completions still hold: for a seat that closes. */
void opencl_completions_end(struct opencl_seat *seat);

/* profile.c */
int opencl_profile(void *seat, uint64_t stream, bool on, struct acre_error *err);
int opencl_timings(void *seat, uint64_t stream, struct acre_timing *ret_timings, uint32_t max,
                   uint32_t *ret_count, struct acre_error *err);
opencl_queue opencl_stream_queue(const struct opencl_stream *stream);
/* Where the event of the next piece of work goes: NULL, unless it is measured. Then keep it. */
opencl_event *opencl_measure(const struct opencl_stream *stream, opencl_event *event);
void opencl_measured_keep(struct opencl_seat *seat, struct opencl_stream *stream,
                          opencl_event event, const char *name, uint64_t bytes);
void opencl_measured_drop(struct opencl_seat *seat, struct opencl_stream *stream);

/* module.c: as in backend.h */
int opencl_compile(void *seat, const struct native_source *source, struct acre_buf *binary,
                   struct acre_buf *log, struct acre_error *err);
int opencl_load(void *seat, const void *binary, size_t length, uint64_t *ret_module,
                struct acre_error *err);
void opencl_unload(void *seat, uint64_t module);
int opencl_kernel(void *seat, uint64_t module, const char *name, uint64_t *ret_kernel,
                  struct kernel_facts *ret_facts, struct acre_error *err);
int opencl_launch(void *seat, uint64_t stream, const struct native_launch *launch,
                  struct acre_error *err);

#endif
