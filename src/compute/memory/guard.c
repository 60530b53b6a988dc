/* guard.c - canaries around the buffers of a context with `debug`, and poison in what is freed.
 *
 * A buffer has a granule before it and one or more after it, beginning with the very byte behind
 * its last, all of one value. Before it is freed (and by trim) these are brought to the host and
 * looked at, after all its stream was given; a byte that is something else was written by someone
 * who went over the edge. What is freed is overwritten, so that who reads it later notices. */
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
    struct acre_native_fill work = {
        .to = region, .to_offset = offset, .bytes = bytes, .pattern = value, .pattern_bytes = 1};
    int r = context->table->fill(context->place, stream->handle, &work, err);
    if (r == 0) {
        stream_issue(stream);
    }
    return r;
}

int guard_arm(struct acre_stream *stream, const struct pool_place *place, uint64_t bytes,
              struct acre_error *err) {
    uint64_t rear = GUARD_BYTES + bytes;
    int r = 0;
    if (place->host != NULL) { /* nothing under way uses it: see `only_past` */
        memset(place->host, CANARY, GUARD_BYTES);
        memset((char *)place->host + rear, CANARY, place->bytes - rear);
    } else {
        r = fill(stream, place->region, place->offset, GUARD_BYTES, CANARY, err);
        r = r == 0 ? fill(stream, place->region, place->offset + rear, place->bytes - rear, CANARY,
                          err)
                   : r;
    }
    return r == 0 ? stream_signal(stream, err) : r;
}

int guard_poison(struct acre_stream *stream, const struct place_of *place, struct acre_error *err) {
    return fill(stream, place->region, place->offset, place->bytes, POISON, err);
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
    return broken == 0
               ? 0
               : acre_fail(err, ACRE_ECORRUPT,
                           "a buffer of %" PRIu64 " bytes: %" PRIu64 " of the %" PRIu64
                           " bytes %s were overwritten, the nearest %" PRIu64 " bytes from it",
                           guards->bytes, broken, count,
                           is_front ? "before its start" : "after its end", first);
}

/* Entered. */
static int find(struct acre_context *context, struct acre_buffer buffer, struct guards *ret_guards,
                struct acre_error *err) {
    struct place_of place;
    int r = buffer_resolve(context, buffer, 0, 0, "buffer", &place, err);
    if (r < 0) {
        return r;
    }
    *ret_guards = (struct guards){
        .region = place.region,
        .front = place.offset - GUARD_BYTES,
        .rear = place.offset + place.bytes,
        .rear_bytes = chunk_bytes(place.bytes) - GUARD_BYTES - place.bytes,
        .host = place.host != NULL ? (const uint8_t *)place.host - GUARD_BYTES : NULL,
        .bytes = place.bytes};
    return 0;
}

/* Both guards to a piece of pinned memory, one behind the other. Entered. */
static int fetch(struct acre_stream *stream, const struct guards *guards,
                 const struct pool_place *piece, struct acre_error *err) {
    struct acre_context *context = stream->context;
    struct acre_native_copy work = {.to = piece->region,
                                    .to_offset = piece->offset,
                                    .from = guards->region,
                                    .from_offset = guards->front,
                                    .bytes = GUARD_BYTES};
    int r = context->table->copy(context->place, stream->handle, &work, err);
    work.to_offset += GUARD_BYTES;
    work.from_offset = guards->rear;
    work.bytes = guards->rear_bytes;
    return r == 0 ? context->table->copy(context->place, stream->handle, &work, err) : r;
}

/* Trim looks at buffers that others may free at any time: once this stream is known as a user,
 * their memory stays until it has come. Entered. */
static int hold(struct acre_stream *stream, struct acre_buffer buffer, struct guards *ret_guards,
                struct acre_error *err) {
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
    struct pool_place piece = pool_place(chunk);
    struct guards guards;
    r = hold(stream, buffer, &guards, err);
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
