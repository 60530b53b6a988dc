/* buffer_inner.h - what buffer.c, copy.c, guard.c and pressure.c share: the table, the heaps.
 *
 * An id is 12 bits of the context's number, 22 of the slot, 30 of the slot's generation, which is
 * odd while the slot is taken. */
#ifndef ACRE_COMPUTE_MEMORY_BUFFER_INNER_H
#define ACRE_COMPUTE_MEMORY_BUFFER_INNER_H

#include "compute/memory/buffer.h"
#include "compute/memory/memory_heap.h"

enum {
    SLOT_BITS = 22,
    GENERATION_BITS = 30,
    SLOTS_MAX = 1 << SLOT_BITS,
    SEGMENT_SLOTS = 4096,
    SEGMENTS_MAX = SLOTS_MAX / SEGMENT_SLOTS,
    USERS_MAX = 4,
    GUARD_BYTES = POOL_GRANULE_BYTES, /* before a buffer, and at least so many after it */
};

/* Read without a lock: by whoever has the id, between two looks at the generation. Each member is
 * released after the generation became even and before it becomes odd again. */
struct buffer_slot {
    atomic_uint generation;
    atomic_uint kind;
    atomic_uint epoch; /* it was made in: device memory of another one is lost */
    atomic_bool is_crowded;
    _Atomic uint64_t region, offset, bytes;
    void *_Atomic host;
    _Atomic uint64_t users[USERS_MAX]; /* streams and their last work with it; 0: none */
    _Atomic uint64_t born;             /* where it was allocated, as a user */
    struct chunk *chunk;               /* NULL: lost. This and the next: context->lock */
    uint32_t next_free;
};

enum heap_name { HEAP_DEVICE, HEAP_PINNED, HEAP_MAPPED, HEAP_STAGING, HEAPS }; /* as acre_memory */

struct buffers {
    struct memory_heap heaps[HEAPS];
    struct buffer_slot *_Atomic segments[SEGMENTS_MAX];
    uint32_t slot_count; /* ever taken; 0 is not used */
    uint32_t free_slot;  /* list; 0: none */
    uint32_t live;
    enum acre_pressure level;
    uint64_t warning_bytes, critical_bytes;
    uint32_t *host_slots; /* of pinned and mapped buffers, in order of addresses */
    uint32_t host_count, host_capacity;
    /* Where host blocks have been: most plain memory is not between these. */
    _Atomic uintptr_t host_low, host_high;
    /* For buffers with more users than fit: each stream's last work with any such buffer. */
    _Atomic uint64_t *crowd;
};

/* The slot of a live id of this context; NULL: none. Lock-free. */
struct buffer_slot *slot_find(const struct acre_context *context, struct acre_buffer buffer);
/* The number-th slot's buffer (id 0: none now); false: there are not so many. context->lock held.
 */
bool slot_id(const struct acre_context *context, uint32_t number, struct acre_buffer *ret_buffer);

/* The moment it was allocated: its guards are there then. False: no live buffer. */
bool buffer_born(const struct acre_context *context, struct acre_buffer buffer,
                 struct pool_point *ret_point);

/* --- pressure.c ------------------------------------------------------------------------------- */

/* Has the level changed? context->lock held. Tell then, without lock and gate. */
bool pressure_update(struct acre_context *context);
void pressure_tell(struct acre_context *context);

/* --- guard.c: canaries and poison of contexts with `debug` -------------------------------------
 */

/* What a buffer of `bytes` takes, with its guards. */
uint64_t guard_bytes(uint64_t bytes);
/* Fill the guards around a new buffer: chunk `range`, `bytes` of it the user's; a signal tells when
 * they are there. Entered. */
int guard_arm(struct acre_stream *stream, const struct pool_range *range, uint64_t bytes,
              struct acre_error *err);
/* ACRE_ECORRUPT: something wrote before or after the buffer. Not entered; waits. */
int guard_check(struct acre_stream *stream, struct acre_buffer buffer, struct acre_error *err);
/* Overwrite a buffer that is about to be freed. Entered; nobody uses it any more. */
int guard_poison(struct acre_stream *stream, const struct buffer_range *range,
                 struct acre_error *err);

/* --- copy.c: pinned pieces ---------------------------------------------------------------------
 */

int staging_create(struct acre_context *context, struct acre_error *err);
void staging_destroy(struct acre_context *context);
/* Entered, also when it returns 0 (resolve afterwards); not when it fails. */
int staging_take(struct acre_stream *stream, uint64_t bytes, struct chunk **ret_chunk,
                 struct acre_error *err);
/* Done with it when the stream has come to that number. */
void staging_put(struct acre_stream *stream, struct chunk *chunk, uint64_t sequence);
/* A stream of the context's own, for one thread at a time: lock and unlock it. */
int staging_stream(struct acre_context *context, struct acre_stream **ret_stream,
                   struct acre_error *err);
void staging_stream_done(struct acre_context *context);

#endif
