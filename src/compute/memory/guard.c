/* guard.c - canaries around the buffers of a context with `debug`, and poison in freed memory.
 *
 * A buffer has a granule before it and one or more after it, starting at the first byte after its
 * end, all filled with one value. Before the buffer is freed (and by trim), after all work queued
 * on its stream, these are copied to the host and checked: a byte with another value was written
 * out of bounds. Freed memory is overwritten, so that later reads are noticed. */
#include "compute/memory/buffer_inner.h"
#include "compute/stream.h"

#include <inttypes.h>
#include <string.h>

enum { CANARY = 0xA5, POISON = 0xDB };

struct guards { /* of one buffer: parts of its region */
    uint64_t region;
    uint64_t front, rear; /* offsets */
    uint64_t rear_bytes;
    const uint8_t *host; /* the front one; NULL: device memory */
    uint64_t bytes;      /* of the buffer between them */
};

static uint64_t chunk_bytes(uint64_t bytes) {
    uint64_t all = bytes + 2 * (uint64_t)GUARD_BYTES;
    return (all + POOL_GRANULE_BYTES - 1) / POOL_GRANULE_BYTES * POOL_GRANULE_BYTES;
}

uint64_t guard_bytes(uint64_t bytes) {
    return bytes > UINT64_MAX - 4 * GUARD_BYTES ? bytes : chunk_bytes(bytes);
}

static int fill(struct acre_stream *stream, uint64_t region, uint64_t offset, uint64_t bytes,
                uint8_t value, struct acre_error *err) {
    struct acre_context *context = stream->context;
    struct native_fill work = {
        .to = region, .to_offset = offset, .bytes = bytes, .pattern = value, .pattern_bytes = 1};
    int r = context->table->fill(context->seat, stream->handle, &work, err);
    if (r == 0) {
        stream_issue(stream);
    }
    return r;
}

int guard_arm(struct acre_stream *stream, const struct pool_range *range, uint64_t bytes,
              struct acre_error *err) {
    uint64_t rear = GUARD_BYTES + bytes;
    int r = 0;
    if (range->host != NULL) { /* nothing under way uses it: see `only_past` */
        memset(range->host, CANARY, GUARD_BYTES);
        memset((char *)range->host + rear, CANARY, range->bytes - rear);
    } else {
        r = fill(stream, range->region, range->offset, GUARD_BYTES, CANARY, err);
        r = r == 0 ? fill(stream, range->region, range->offset + rear, range->bytes - rear, CANARY,
                          err)
                   : r;
    }
    return r == 0 ? stream_signal(stream, err) : r;
}

int guard_poison(struct acre_stream *stream, const struct buffer_range *range,
                 struct acre_error *err) {
    return fill(stream, range->region, range->offset, range->bytes, POISON, err);
}

static int look(const uint8_t *guard, uint64_t count, const struct guards *guards, bool is_front,
                struct acre_error *err) {
    uint64_t first = count;
    uint64_t broken = 0;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t at = is_front ? count - 1 - i : i; /* from the buffer's edge outwards */
        if (guard[at] != CANARY) {
            first = ACRE_MIN(first, i);
            broken++;
        }
    }
    return broken == 0 ? 0
                       : acre_fail(err, ACRE_ECORRUPT,
                                   "%" PRIu64 " of the %" PRIu64 " bytes %s of a buffer of %" PRIu64
                                   " bytes %s overwritten, the nearest %" PRIu64 " bytes away",
                                   broken, count, is_front ? "before the start" : "after the end",
                                   guards->bytes, broken == 1 ? "was" : "were", first);
}

/* Entered. */
static int find(struct acre_context *context, struct acre_buffer buffer, struct guards *ret_guards,
                struct acre_error *err) {
    struct buffer_range range;
    int r = buffer_resolve(context, buffer, 0, 0, "buffer", &range, err);
    if (r < 0) {
        return r;
    }
    *ret_guards = (struct guards){
        .region = range.region,
        .front = range.offset - GUARD_BYTES,
        .rear = range.offset + range.bytes,
        .rear_bytes = chunk_bytes(range.bytes) - GUARD_BYTES - range.bytes,
        .host = range.host != NULL ? (const uint8_t *)range.host - GUARD_BYTES : NULL,
        .bytes = range.bytes};
    return 0;
}

/* Both guards to a piece of pinned memory, one behind the other. Entered. */
static int fetch(struct acre_stream *stream, const struct guards *guards,
                 const struct pool_range *piece, struct acre_error *err) {
    struct acre_context *context = stream->context;
    struct native_copy work = {.to = piece->region,
                               .to_offset = piece->offset,
                               .from = guards->region,
                               .from_offset = guards->front,
                               .bytes = GUARD_BYTES};
    int r = context->table->copy(context->seat, stream->handle, &work, err);
    work.to_offset += GUARD_BYTES;
    work.from_offset = guards->rear;
    work.bytes = guards->rear_bytes;
    return r == 0 ? context->table->copy(context->seat, stream->handle, &work, err) : r;
}

/* Trim looks at buffers that others may free at any time: once this stream is known as a user,
 * their memory stays until it has come. Entered. */
static int find_used(struct acre_stream *stream, struct acre_buffer buffer,
                     struct guards *ret_guards, struct acre_error *err) {
    struct acre_context *context = stream->context;
    pthread_mutex_lock(&context->lock);
    buffer_used(context, buffer, stream);
    pthread_mutex_unlock(&context->lock);
    return find(context, buffer, ret_guards, err);
}

/* What was brought to the host, unless the buffer was freed meanwhile. Not entered. */
static int judge(struct acre_context *context, struct acre_buffer buffer,
                 const struct guards *guards, const uint8_t *piece, struct acre_error *err) {
    const uint8_t *front = guards->host != NULL ? guards->host : piece;
    const uint8_t *rear = front + GUARD_BYTES + (guards->host != NULL ? guards->bytes : 0);
    int r = ACRE_ENOTFOUND;
    pthread_mutex_lock(&context->lock);
    if (slot_find(context, buffer) != NULL) {
        r = look(front, GUARD_BYTES, guards, true, err);
        r = r == 0 ? look(rear, guards->rear_bytes, guards, false, err) : r;
    }
    pthread_mutex_unlock(&context->lock);
    return r;
}

int guard_check(struct acre_stream *stream, struct acre_buffer buffer, struct acre_error *err) {
    struct acre_context *context = stream->context;
    struct pool_point born;
    if (!buffer_born(context, buffer, &born)) {
        return ACRE_ENOTFOUND;
    }
    int r = word_wait(context, born.stream, born.sequence, ACRE_FOREVER, err);
    r = r == 0 ? stream_enter(stream, err) : r;
    if (r < 0) {
        return r;
    }
    struct chunk *chunk;
    r = staging_take(stream, 3 * GUARD_BYTES, &chunk, err);
    if (r < 0) {
        return r;
    }
    struct pool_range piece = pool_range(chunk);
    struct guards guards;
    r = find_used(stream, buffer, &guards, err);
    bool is_there = r == 0; /* else it was freed, or lost before */
    if (is_there && guards.host == NULL) {
        r = fetch(stream, &guards, &piece, err);
    }
    uint64_t sequence = stream_issue(stream); /* whatever was queued: those who wait for it hear */
    int signal = stream_signal(stream, err);
    r = r == 0 ? signal : r;
    stream_leave(stream, is_there ? r : signal);
    r = r == 0 ? stream_wait(stream, sequence, ACRE_FOREVER, err) : r;
    r = r == 0 ? judge(context, buffer, &guards, piece.host, err) : r;
    staging_put(stream, chunk, sequence);
    return r;
}
