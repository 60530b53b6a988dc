/* memory.h - buffers, copies, and what the pool behind them holds.
 *
 * A buffer is a number, not a pointer: one that was freed, or belongs to another context, is told
 * from a live one and refused. Device buffers come from a caching pool of the context: allocating
 * and freeing are ordered with the stream they are given, and rarely reach the driver. */
#ifndef ACRE_MEMORY_H
#define ACRE_MEMORY_H

#include <acre/context.h>

#ifdef __cplusplus
extern "C" {
#endif

struct acre_buffer {
    uint64_t id; /* 0: none */
};

enum acre_memory {
    ACRE_MEMORY_DEVICE, /* the device's own */
    ACRE_MEMORY_PINNED, /* the host's, which the device copies from and to at full speed */
    ACRE_MEMORY_MAPPED, /* the host's, which kernels read and write where it is */
};

/* ACRE_ENOMEM: the device has no more; ACRE_ELIMIT: the context may not have more (the texts say
 * how much is held, by how many buffers, and what is free). Contents are undefined. Another stream
 * may use it after an event of this one (acre_stream_after). */
ACRE_API int acre_buffer_alloc(struct acre_stream *stream, enum acre_memory kind, uint64_t bytes,
                               struct acre_buffer *ret_buffer, struct acre_error *err);
/* After what the stream was given so far, and what other streams were that use it. ACRE_ENOTFOUND:
 * freed before; ACRE_ECORRUPT (contexts with `debug`): something wrote before or after it; it is
 * freed all the same. */
ACRE_API int acre_buffer_free(struct acre_stream *stream, struct acre_buffer buffer,
                              struct acre_error *err);
/* Where the host sees it, until it is freed; NULL: device memory, or no live buffer. */
ACRE_API void *acre_buffer_host(struct acre_context *context, struct acre_buffer buffer);
ACRE_API int acre_buffer_size(struct acre_context *context, struct acre_buffer buffer,
                              uint64_t *ret_bytes, struct acre_error *err);

/* Between host memory and a buffer. Host memory inside a pinned or mapped buffer is used where it
 * is and must stay until the copy is done; any other may be reused when the call returns (copy_out
 * waits for its data then). */
ACRE_API int acre_copy_in(struct acre_stream *stream, struct acre_buffer to, uint64_t to_offset,
                          const void *from, uint64_t bytes, struct acre_error *err);
ACRE_API int acre_copy_out(struct acre_stream *stream, void *to, struct acre_buffer from,
                           uint64_t from_offset, uint64_t bytes, struct acre_error *err);
/* Between buffers; of two contexts too (through the host where devices have no path). Overlapping
 * parts of one buffer are refused. */
ACRE_API int acre_copy(struct acre_stream *stream, struct acre_buffer to, uint64_t to_offset,
                       struct acre_buffer from, uint64_t from_offset, uint64_t bytes,
                       struct acre_error *err);
/* A pattern of 1, 2, 4 or 8 bytes, over and over; `bytes` is a multiple of it. */
ACRE_API int acre_fill(struct acre_stream *stream, struct acre_buffer to, uint64_t to_offset,
                       uint64_t bytes, uint64_t pattern, uint32_t pattern_bytes,
                       struct acre_error *err);

enum acre_pressure { ACRE_PRESSURE_HEALTHY, ACRE_PRESSURE_WARNING, ACRE_PRESSURE_CRITICAL };

struct acre_memory_report {
    uint64_t limit_bytes;    /* what the context may have */
    uint64_t used_bytes;     /* in buffers */
    uint64_t peak_bytes;     /* most of it so far */
    uint64_t reserved_bytes; /* taken from the driver */
    uint64_t largest_free_bytes;
    uint64_t allocations, frees, hits; /* hits: without the driver */
    double fragmentation;              /* 1 - largest free / all free; 0: one piece */
    uint32_t blocks;                   /* of the driver */
    enum acre_pressure pressure;       /* of used / limit: < 50 %, < 80 %, more */
    uint64_t pinned_bytes;             /* in pinned and mapped buffers */
};

ACRE_API void acre_memory_report(struct acre_context *context,
                                 struct acre_memory_report *ret_report);
/* Give free blocks back to the driver until at most `keep_bytes` are reserved; for work that still
 * uses what was freed it waits some milliseconds. ACRE_ECORRUPT: see acre_buffer_free, here for all
 * buffers. */
ACRE_API int acre_memory_trim(struct acre_context *context, uint64_t keep_bytes,
                              struct acre_error *err);
/* Called by the thread whose allocation or free changes the level; one function a context. It may
 * free and trim, not allocate. NULL: none. */
typedef void acre_pressure_function(void *user, struct acre_context *context,
                                    enum acre_pressure level);
ACRE_API void acre_memory_on_pressure(struct acre_context *context,
                                      acre_pressure_function *function, void *user);

#ifdef __cplusplus
}
#endif

#endif
