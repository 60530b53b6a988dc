/* memory_heap.h - the pools of a context and the driver below them: one for each kind of memory.
 *
 * A heap allocates blocks from the back end when its pool is full and returns them on request. The
 * pool is under context->lock; the back end is called without it. The gate is held (entered) where
 * a comment says so. */
#ifndef ACRE_COMPUTE_MEMORY_MEMORY_HEAP_H
#define ACRE_COMPUTE_MEMORY_MEMORY_HEAP_H

#include "compute/memory/pool.h"
#include "compute/quiet.h"

struct memory_heap {
    struct acre_context *context;
    enum acre_memory kind;
    struct memory_pool *pool;
};

int heap_init(struct memory_heap *heap, struct acre_context *context, enum acre_memory kind,
              uint64_t block_min_bytes, uint64_t block_max_bytes, struct acre_error *err);
/* Gives all blocks back; the seat is still open. */
void heap_finish(struct memory_heap *heap, const struct quiet *quiet);
/* After a loss, gate written: device blocks are gone, host blocks get regions of the new seat. */
int heap_rebuild(struct memory_heap *heap, struct acre_error *err);

/* Entered, and entered still when it returns 0; not when it fails. May wait for what was freed and
 * give cached blocks back before it fails (the gate is free meanwhile: resolve afterwards). The
 * text says how much is held, by how many (`*buffers`, under context->lock), and what is free.
 * `quiet` is begun where blocks had to be given back: the caller ends it when it has left. */
int heap_alloc(struct memory_heap *heap, struct acre_stream *stream, uint64_t bytes,
               const uint32_t *buffers, struct quiet *quiet, struct chunk **ret_chunk,
               struct acre_error *err);
/* The same without waiting; no text. ACRE_ENOFIT: the limit is in the way of a block. */
int heap_take(struct memory_heap *heap, uint32_t stream, uint64_t bytes, bool exact,
              struct chunk **ret_chunk, struct acre_error *err);
/* A chunk was freed at this moment of the stream: see that others hear of it some time. Gate held;
 * the stream has a handle. */
void heap_freed(struct acre_stream *stream, uint64_t bytes);
/* Wait a while for what was freed while streams still used it. Not entered: that may need the
 * context to be made anew. */
void heap_settle(struct memory_heap *heap, uint32_t timeout_ms);
/* Give back what is free. Entered. */
void heap_trim(struct memory_heap *heap, const struct quiet *quiet, uint64_t keep_bytes);

#endif
