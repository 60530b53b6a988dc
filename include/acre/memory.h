/* memory.h - buffers, copies, and the memory pool they come from.
 *
 * A buffer is a number, not a pointer, so one that was freed or belongs to another context is
 * detected and refused. Device buffers come from a caching pool of the context: allocating and
 * freeing are ordered with the stream they are given and rarely reach the driver. */
#ifndef ACRE_MEMORY_H
#define ACRE_MEMORY_H

#include <acre/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

struct acre_buffer {
    uint64_t id; /* 0: none */
};

enum acre_memory {
    ACRE_MEMORY_DEVICE, /* device memory */
    ACRE_MEMORY_PINNED, /* host memory that the device copies from and to at full speed */
    ACRE_MEMORY_MAPPED, /* host memory that kernels read and write in place */
};

/* ACRE_ENOMEM: the device is out of memory; ACRE_ELIMIT: the context's limit is reached. The text
 * says how much is in use, by how many buffers, and how much is free. Contents are undefined.
 * Another stream may use the buffer after an event of this one (acre_stream_after). */
ACRE_API int acre_buffer_alloc(struct acre_stream *stream, enum acre_memory kind, uint64_t bytes,
                               struct acre_buffer *ret_buffer, struct acre_error *err);
/* Takes effect after all work queued so far on this stream, and on others that use the buffer.
 * ACRE_ENOTFOUND: already freed; ACRE_ECORRUPT (contexts with `debug`): something wrote just before
 * or after the buffer, which is freed all the same. */
ACRE_API int acre_buffer_free(struct acre_stream *stream, struct acre_buffer buffer,
                              struct acre_error *err);
/* Its address on the host, valid until it is freed. NULL: device memory, or not a live buffer. */
ACRE_API void *acre_buffer_host(struct acre_context *context, struct acre_buffer buffer);
/* ACRE_ENOTFOUND: freed. */
ACRE_API int acre_buffer_size(struct acre_context *context, struct acre_buffer buffer,
                              uint64_t *ret_bytes, struct acre_error *err);

/* Between host memory and a buffer. Host memory inside a pinned or mapped buffer is used in place
 * and must stay valid until the copy is done. Any other host memory may be reused when the call
 * returns (so acre_copy_out waits for its data). */
ACRE_API int acre_copy_in(struct acre_stream *stream, struct acre_buffer to, uint64_t to_offset,
                          const void *from, uint64_t bytes, struct acre_error *err);
ACRE_API int acre_copy_out(struct acre_stream *stream, void *to, struct acre_buffer from,
                           uint64_t from_offset, uint64_t bytes, struct acre_error *err);
/* Between buffers, also of two contexts (through the host if the devices have no direct path). If
 * both are the same buffer, the ranges must not overlap. */
ACRE_API int acre_copy(struct acre_stream *stream, struct acre_buffer to, uint64_t to_offset,
                       struct acre_buffer from, uint64_t from_offset, uint64_t bytes,
                       struct acre_error *err);
/* Repeats a pattern of 1, 2, 4 or 8 bytes; `bytes` must be a multiple of its size. */
ACRE_API int acre_fill(struct acre_stream *stream, struct acre_buffer to, uint64_t to_offset,
                       uint64_t bytes, uint64_t pattern, uint32_t pattern_bytes,
                       struct acre_error *err);

enum acre_pressure { ACRE_PRESSURE_HEALTHY, ACRE_PRESSURE_WARNING, ACRE_PRESSURE_CRITICAL };

struct acre_memory_report {
    uint64_t limit_bytes;    /* the context's limit */
    uint64_t used_bytes;     /* in buffers now */
    uint64_t peak_bytes;     /* most ever in buffers */
    uint64_t reserved_bytes; /* allocated from the driver */
    uint64_t largest_free_bytes;
    uint64_t allocations, frees, hits; /* hits: allocations served without the driver */
    double fragmentation;              /* 1 - largest free / all free; 0: one piece */
    uint32_t blocks;                   /* allocations held from the driver */
    enum acre_pressure pressure;       /* by used / limit: below 50 %, below 80 %, above */
    uint64_t pinned_bytes;             /* in pinned and mapped buffers */
};

ACRE_API void acre_memory_report(struct acre_context *context,
                                 struct acre_memory_report *ret_report);
/* Returns free blocks to the driver until at most `keep_bytes` are reserved. Waits a few
 * milliseconds for work that still uses freed memory. ACRE_ECORRUPT: as for acre_buffer_free, but
 * checks all buffers. */
ACRE_API int acre_memory_trim(struct acre_context *context, uint64_t keep_bytes,
                              struct acre_error *err);
/* Called by the thread whose allocation or free changes the level; one function per context. It may
 * free and trim, but not allocate. NULL: none. */
typedef void acre_pressure_function(void *user, struct acre_context *context,
                                    enum acre_pressure level);
ACRE_API void acre_memory_on_pressure(struct acre_context *context,
                                      acre_pressure_function *function, void *user);

#ifdef __cplusplus
}
#endif

#endif
