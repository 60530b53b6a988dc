/* copy.c - copies between host and device, between buffers and between contexts, and fills.
 *
 * Devices copy at full speed only from and to registered memory. Other host memory goes through
 * pinned pieces: the host fills one while the device empties the previous ones (copying out: the
 * device fills some ahead while the host empties one). Pieces are chunks of a separate heap, freed
 * in the order of the stream that uses them. When the heap is full, a stream waits for its own
 * oldest piece, so that memory is bounded and no stream waits for another.
 *
 * Two contexts have no common order except the host's: such a copy waits for its end. If the back
 * end can share one context's memory with another on the same device, large copies go directly;
 * others are read and written in pieces. */
#include "compute/context.h"
#include "compute/graph.h"
#include "compute/memory/buffer_inner.h"
#include "compute/process.h"
#include "compute/quiet.h"
#include "compute/stream.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    PIECE_BYTES = 1 << 20,
    AHEAD = 4,                   /* pieces on their way to the host */
    STAGING_MAX_BYTES = 8 << 22, /* 32 pieces under way; more streams than that get one each */
    DIRECT_MIN_BYTES = 4 << 20,  /* below, making memory known costs more than it saves */
};

struct staging {
    pthread_mutex_t lock; /* of the stream: held while someone uses it */
    struct acre_stream *stream;
};

/* --- pieces --------------------------------------------------------------------------------- */

int staging_create(struct acre_context *context, struct acre_error *err) {
    struct staging *staging = calloc(1, sizeof(*staging));
    if (staging == NULL) {
        return acre_fail(err, ACRE_ENOMEM, "staging");
    }
    pthread_mutex_init(&staging->lock, NULL);
    context->staging = staging;
    return 0;
}

void staging_destroy(struct acre_context *context) {
    if (context->staging != NULL) { /* its stream was destroyed with the others */
        pthread_mutex_destroy(&context->staging->lock);
        free(context->staging);
        context->staging = NULL;
    }
}

int staging_stream(struct acre_context *context, struct acre_stream **ret_stream,
                   struct acre_error *err) {
    struct staging *staging = context->staging;
    pthread_mutex_lock(&staging->lock);
    int r = staging->stream == NULL ? acre_stream_create(context, &staging->stream, err) : 0;
    if (r < 0) {
        pthread_mutex_unlock(&staging->lock);
        return r;
    }
    *ret_stream = staging->stream;
    return 0;
}

void staging_stream_done(struct acre_context *context) {
    pthread_mutex_unlock(&context->staging->lock);
}

/* Wait for the oldest piece of this stream; entered before and after, unless it fails. */
static int staging_wait(struct acre_stream *stream, uint64_t sequence, struct acre_error *err) {
    int r = stream_signal(stream, err);
    stream_leave(stream, r);
    r = r == 0 ? word_wait(stream->context, stream->word_index, sequence, ACRE_FOREVER, err) : r;
    return r == 0 ? stream_enter(stream, err) : r;
}

int staging_take(struct acre_stream *stream, uint64_t bytes, struct chunk **ret_chunk,
                 struct acre_error *err) {
    struct acre_context *context = stream->context;
    struct memory_heap *heap = &context->buffers->heaps[HEAP_STAGING];
    for (;;) {
        struct pool_point point;
        struct pool_report report;
        pthread_mutex_lock(&context->lock);
        int r = pool_alloc(heap->pool, stream->word_index, bytes, ret_chunk);
        bool must_wait = false;
        if (r == ACRE_ENOFIT) {
            pool_report(heap->pool, &report);
            must_wait = report.reserved_bytes >= STAGING_MAX_BYTES &&
                        pool_pending(heap->pool, stream->word_index, 0, &point);
        }
        pthread_mutex_unlock(&context->lock);
        if (r == 0) {
            return 0;
        }
        if (!must_wait) {
            break;
        }
        r = staging_wait(stream, point.sequence, err);
        if (r < 0) {
            return r;
        }
    }
    int r = heap_take(heap, stream->word_index, bytes, false, ret_chunk, err);
    if (r < 0) {
        acre_fail_in(err, r, "staging: %" PRIu64 " bytes of pinned memory", bytes);
        stream_leave(stream, r);
    }
    return r;
}

void staging_put(struct acre_stream *stream, struct chunk *chunk, uint64_t sequence) {
    struct acre_context *context = stream->context;
    struct pool_point point = {.stream = stream->word_index, .sequence = sequence};
    pthread_mutex_lock(&context->lock);
    pool_free(context->buffers->heaps[HEAP_STAGING].pool, chunk, point, NULL, 0);
    pthread_mutex_unlock(&context->lock);
}

/* --- work ----------------------------------------------------------------------------------- */

/* Part of a buffer, and what messages call it. */
struct span {
    struct acre_buffer buffer;
    uint64_t offset;
    const char *what;
};

/* Entered. */
static int queue_copy(struct acre_stream *stream, const struct native_copy *copy,
                      struct acre_error *err) {
    struct acre_context *context = stream->context;
    int r = context->table->copy(context->seat, stream->handle, copy, err);
    stream_issue(stream); /* also when refused: the buffers' users wait for this number */
    return r;
}

/* Where two buffers of the stream's context are, for a copy. Entered. */
static int resolve_both(struct acre_stream *stream, const struct span *to, const struct span *from,
                        uint64_t bytes, struct native_copy *ret_copy, struct acre_error *err) {
    struct acre_context *context = stream->context;
    struct buffer_range target, source;
    int r = buffer_resolve(context, to->buffer, to->offset, bytes, to->what, &target, err);
    r = r == 0
            ? buffer_resolve(context, from->buffer, from->offset, bytes, from->what, &source, err)
            : r;
    if (r < 0) {
        return r;
    }
    uint64_t apart =
        to->offset > from->offset ? to->offset - from->offset : from->offset - to->offset;
    if (to->buffer.id == from->buffer.id && apart < bytes) {
        return acre_fail(err, ACRE_EINVALID,
                         "copy: %" PRIu64 " bytes from offset %" PRIu64 " to offset %" PRIu64
                         " of the same buffer; the ranges must not overlap",
                         bytes, from->offset, to->offset);
    }
    *ret_copy = (struct native_copy){.to = target.region,
                                     .to_offset = target.offset + to->offset,
                                     .from = source.region,
                                     .from_offset = source.offset + from->offset,
                                     .bytes = bytes};
    return 0;
}

/* Between two buffers of the stream's context. Entered. */
static int copy_here(struct acre_stream *stream, const struct span *to, const struct span *from,
                     const struct native_copy *copy, struct acre_error *err) {
    uint64_t bytes = copy->bytes;
    if (bytes == 0) {
        return 0;
    }
    if (stream->recording != NULL) {
        struct graph_copy node = {.to = to->buffer,
                                  .from = from->buffer,
                                  .to_offset = to->offset,
                                  .from_offset = from->offset,
                                  .bytes = bytes};
        return recording_copy(stream, &node, err);
    }
    buffer_used(stream->context, to->buffer, stream);
    buffer_used(stream->context, from->buffer, stream);
    return queue_copy(stream, copy, err);
}

static int copy_entering(struct acre_stream *stream, const struct span *to, const struct span *from,
                         uint64_t bytes, struct acre_error *err) {
    int r = stream_enter(stream, err);
    if (r < 0) {
        return r;
    }
    struct native_copy copy;
    r = resolve_both(stream, to, from, bytes, &copy, err);
    if (r < 0) {
        stream_pass(stream);
        return r;
    }
    r = copy_here(stream, to, from, &copy, err);
    stream_leave(stream, r);
    return r;
}

/* --- plain memory --------------------------------------------------------------------------- */

/* One piece to the device. Not entered. */
static int write_piece(struct acre_stream *stream, const struct span *to, const void *from,
                       uint64_t bytes, struct acre_error *err) {
    struct acre_context *context = stream->context;
    int r = stream_enter(stream, err);
    struct chunk *chunk;
    r = r == 0 ? staging_take(stream, bytes, &chunk, err) : r;
    if (r < 0) {
        return r;
    }
    struct buffer_range target;
    struct pool_range piece = pool_range(chunk);
    r = buffer_resolve(context, to->buffer, to->offset, bytes, to->what, &target, err);
    if (r == 0) {
        memcpy(piece.host, from, bytes);
        buffer_used(context, to->buffer, stream);
        struct native_copy copy = {.to = target.region,
                                   .to_offset = target.offset + to->offset,
                                   .from = piece.region,
                                   .from_offset = piece.offset,
                                   .bytes = bytes};
        r = queue_copy(stream, &copy, err);
    }
    staging_put(stream, chunk, stream->issued);
    heap_freed(stream, bytes);
    stream_leave(stream, r);
    return r;
}

/* The whole range is good, before anything of it is copied. */
static int check(struct acre_context *context, const struct span *span, uint64_t bytes,
                 struct acre_error *err) {
    struct buffer_range range;
    return buffer_resolve(context, span->buffer, span->offset, bytes, span->what, &range, err);
}

static int write_all(struct acre_stream *stream, struct span to, const void *from, uint64_t bytes,
                     struct acre_error *err) {
    int r = check(stream->context, &to, bytes, err);
    for (uint64_t done = 0; done < bytes && r == 0;) {
        uint64_t part = ACRE_MIN(bytes - done, (uint64_t)PIECE_BYTES);
        r = write_piece(stream, &to, (const char *)from + done, part, err);
        to.offset += part;
        done += part;
    }
    return r;
}

struct copy_piece { /* on its way to the host */
    struct chunk *chunk;
    uint64_t sequence, bytes;
};

/* Queue one piece to the host. Not entered. */
static int read_piece(struct acre_stream *stream, const struct span *from, uint64_t bytes,
                      struct copy_piece *ret_piece, struct acre_error *err) {
    struct acre_context *context = stream->context;
    int r = stream_enter(stream, err);
    struct chunk *chunk;
    r = r == 0 ? staging_take(stream, bytes, &chunk, err) : r;
    if (r < 0) {
        return r;
    }
    struct buffer_range source;
    struct pool_range piece = pool_range(chunk);
    r = buffer_resolve(context, from->buffer, from->offset, bytes, from->what, &source, err);
    if (r == 0) {
        buffer_used(context, from->buffer, stream);
        struct native_copy copy = {.to = piece.region,
                                   .to_offset = piece.offset,
                                   .from = source.region,
                                   .from_offset = source.offset + from->offset,
                                   .bytes = bytes};
        r = queue_copy(stream, &copy, err);
        r = r == 0 ? stream_signal(stream, err) : r;
    }
    if (r == 0) {
        *ret_piece =
            (struct copy_piece){.chunk = chunk, .sequence = stream->issued, .bytes = bytes};
    } else {
        staging_put(stream, chunk, stream->issued);
    }
    stream_leave(stream, r);
    return r;
}

/* Where what was read goes: memory, or another context. */
struct sink {
    char *memory;
    struct acre_stream *stream; /* of the other context; NULL: memory */
    struct span to;
};

static int drain(struct sink *sink, const void *host, uint64_t bytes, struct acre_error *err) {
    if (sink->stream == NULL) {
        memcpy(sink->memory, host, bytes);
        sink->memory += bytes;
        return 0;
    }
    int r = write_piece(sink->stream, &sink->to, host, bytes, err);
    sink->to.offset += bytes;
    return r;
}

static int read_all(struct acre_stream *stream, struct span from, uint64_t bytes, struct sink *sink,
                    struct acre_error *err) {
    struct copy_piece pieces[AHEAD];
    uint32_t first = 0;
    uint32_t count = 0;
    int r = check(stream->context, &from, bytes, err);
    for (uint64_t queued = 0; r == 0 && (queued < bytes || count > 0);) {
        if (queued < bytes && count < AHEAD) {
            uint64_t part = ACRE_MIN(bytes - queued, (uint64_t)PIECE_BYTES);
            r = read_piece(stream, &from, part, &pieces[(first + count) % AHEAD], err);
            count += r == 0;
            from.offset += part;
            queued += part;
            continue;
        }
        struct copy_piece *piece = &pieces[first];
        r = stream_wait(stream, piece->sequence, ACRE_FOREVER, err);
        r = r == 0 ? drain(sink, pool_range(piece->chunk).host, piece->bytes, err) : r;
        staging_put(stream, piece->chunk, piece->sequence);
        first = (first + 1) % AHEAD;
        count--;
    }
    for (; count > 0; count--, first = (first + 1) % AHEAD) {
        staging_put(stream, pieces[first].chunk, pieces[first].sequence);
    }
    return r;
}

static int refuse_recording(const char *what, struct acre_error *err) {
    return acre_fail(err, ACRE_EUNSUPPORTED,
                     "%s: a stream that records a graph copies only between buffers; use acre_copy "
                     "with a pinned or mapped buffer",
                     what);
}

static int check_host(const char *what, const void *host, uint64_t bytes, struct acre_error *err) {
    if (host == NULL && bytes > 0) {
        return acre_fail(err, ACRE_EINVALID, "%s: NULL; accepted: memory of %" PRIu64 " bytes",
                         what, bytes);
    }
    return 0;
}

/* Host memory that is part of a buffer, as that. */
static struct span span_of_host(struct acre_context *context, const void *host, uint64_t bytes,
                                const char *what) {
    struct span span = {.buffer = buffer_at_host(context, host, bytes), .what = what};
    if (span.buffer.id != 0) {
        const char *begin = acre_buffer_host(context, span.buffer);
        span.offset = begin != NULL ? (uint64_t)((const char *)host - begin) : 0;
    }
    return span;
}

int acre_copy_in(struct acre_stream *stream, struct acre_buffer to, uint64_t to_offset,
                 const void *from, uint64_t bytes, struct acre_error *err) {
    int r = stream_check(stream, err);
    if (r < 0) {
        return r;
    }
    struct span target = {.buffer = to, .offset = to_offset, .what = "copy_in: to"};
    if (stream->recording != NULL) {
        return refuse_recording("copy_in", err);
    }
    r = check_host("copy_in: from", from, bytes, err);
    if (r < 0) {
        return r;
    }
    struct span source = span_of_host(stream->context, from, bytes, "copy_in: from");
    return source.buffer.id != 0 ? copy_entering(stream, &target, &source, bytes, err)
                                 : write_all(stream, target, from, bytes, err);
}

int acre_copy_out(struct acre_stream *stream, void *to, struct acre_buffer from,
                  uint64_t from_offset, uint64_t bytes, struct acre_error *err) {
    int r = stream_check(stream, err);
    if (r < 0) {
        return r;
    }
    struct span source = {.buffer = from, .offset = from_offset, .what = "copy_out: from"};
    if (stream->recording != NULL) {
        return refuse_recording("copy_out", err);
    }
    r = check_host("copy_out: to", to, bytes, err);
    if (r < 0) {
        return r;
    }
    struct span target = span_of_host(stream->context, to, bytes, "copy_out: to");
    if (target.buffer.id != 0) {
        return copy_entering(stream, &target, &source, bytes, err);
    }
    struct sink sink = {.memory = to};
    return read_all(stream, source, bytes, &sink, err);
}

/* --- two contexts --------------------------------------------------------------------------- */

/* Memory of another context, made known to the seat that a stream's context had in `epoch`. */
struct import {
    uint64_t region, offset;
    uint32_t epoch;
};

/* ACRE_EUNSUPPORTED: cannot. */
static int import_begin(struct acre_stream *stream, struct acre_context *other,
                        const struct span *span, uint64_t bytes, struct import *ret_import) {
    struct acre_context *context = stream->context;
    if (context->device != other->device || context->table->region_import == NULL ||
        other->table->region_export == NULL || bytes < DIRECT_MIN_BYTES) {
        return ACRE_EUNSUPPORTED;
    }
    uint8_t ticket[64];
    struct buffer_range range;
    int r = context_enter(other, NULL);
    if (r < 0) {
        return r;
    }
    r = buffer_resolve(other, span->buffer, span->offset, bytes, span->what, &range, NULL);
    if (r < 0) {
        context_pass(other);
        return r;
    }
    r = range.kind == ACRE_MEMORY_DEVICE
            ? other->table->region_export(other->seat, range.region, ticket, NULL)
            : ACRE_EUNSUPPORTED;
    context_leave(other, r);
    if (r < 0) {
        return r;
    }
    struct quiet quiet;
    quiet_begin(&quiet, context);
    r = stream_enter(stream, NULL);
    if (r == 0) {
        struct native_region region;
        r = quiet_region_import(&quiet, ticket, &region, NULL);
        if (r == 0) {
            *ret_import = (struct import){.region = region.handle,
                                          .offset = range.offset + span->offset,
                                          .epoch = atomic_load(&context->epoch)};
        }
        stream_leave(stream, r);
    }
    quiet_end(&quiet);
    return r;
}

static void import_end(struct acre_context *context, const struct import *import) {
    struct quiet quiet;
    quiet_begin(&quiet, context);
    context_read(context); /* not entered: it is given back also while the circuit is open */
    if (atomic_load(&context->epoch) == import->epoch && atomic_load(&context->failed) == 0) {
        quiet_region_destroy(&quiet, import->region);
    }
    pthread_rwlock_unlock(&context->gate);
    quiet_end(&quiet);
}

/* Queue the copy and its signal; the number to wait for. ACRE_EUNSUPPORTED: the import was lost
 * with the seat it was made for. */
static int queue_direct(struct acre_stream *stream, const struct import *far,
                        const struct span *near, uint64_t bytes, bool is_far_target,
                        uint64_t *ret_sequence, struct acre_error *err) {
    struct acre_context *context = stream->context;
    struct buffer_range range;
    int r = stream_enter(stream, err);
    if (r < 0) {
        return r;
    }
    bool is_lost = atomic_load(&context->epoch) != far->epoch;
    r = is_lost
            ? ACRE_EUNSUPPORTED
            : buffer_resolve(context, near->buffer, near->offset, bytes, near->what, &range, err);
    if (r < 0) {
        stream_pass(stream);
        return r;
    }
    struct native_copy copy = {.bytes = bytes,
                               .to = range.region,
                               .to_offset = range.offset + near->offset,
                               .from = far->region,
                               .from_offset = far->offset};
    if (is_far_target) {
        copy = (struct native_copy){.bytes = bytes,
                                    .to = copy.from,
                                    .to_offset = copy.from_offset,
                                    .from = copy.to,
                                    .from_offset = copy.to_offset};
    }
    buffer_used(context, near->buffer, stream);
    r = queue_copy(stream, &copy, err);
    r = r == 0 ? stream_signal(stream, err) : r;
    *ret_sequence = stream->issued;
    stream_leave(stream, r);
    return r;
}

/* Copy with the far buffer's memory made known here; ACRE_EUNSUPPORTED: it cannot be, for whatever
 * reason, and nothing was given to the stream. */
static int copy_direct(struct acre_stream *stream, struct acre_context *other,
                       const struct span *near, const struct span *far, uint64_t bytes,
                       bool is_far_target, struct acre_error *err) {
    struct import import = {0};
    if (import_begin(stream, other, far, bytes, &import) < 0) {
        return ACRE_EUNSUPPORTED;
    }
    uint64_t sequence = 0;
    int r = queue_direct(stream, &import, near, bytes, is_far_target, &sequence, err);
    r = r == 0 ? stream_wait(stream, sequence, ACRE_FOREVER, err) : r;
    import_end(stream->context, &import);
    return r;
}

/* The stream is of one of the two contexts; `other` is the other one. */
static int copy_across(struct acre_stream *stream, struct acre_context *other,
                       const struct span *to, const struct span *from, uint64_t bytes,
                       struct acre_error *err) {
    struct acre_context *context = stream->context;
    bool is_far_target = slot_find(other, to->buffer) != NULL;
    int r = check(is_far_target ? other : context, to, bytes, err);
    r = r == 0 ? check(is_far_target ? context : other, from, bytes, err) : r;
    if (r < 0 || bytes == 0) {
        return r;
    }
    r = copy_direct(stream, other, is_far_target ? from : to, is_far_target ? to : from, bytes,
                    is_far_target, err);
    if (r != ACRE_EUNSUPPORTED) {
        return r;
    }
    struct acre_stream *helper;
    r = staging_stream(other, &helper, err);
    if (r < 0) {
        return r;
    }
    struct sink sink = {.stream = is_far_target ? helper : stream, .to = *to};
    r = read_all(is_far_target ? stream : helper, *from, bytes, &sink, err);
    if (r == 0 && is_far_target) {
        r = acre_stream_sync(helper, ACRE_FOREVER, err);
    }
    staging_stream_done(other);
    return r;
}

int acre_copy(struct acre_stream *stream, struct acre_buffer to, uint64_t to_offset,
              struct acre_buffer from, uint64_t from_offset, uint64_t bytes,
              struct acre_error *err) {
    int r = stream_check(stream, err);
    if (r < 0) {
        return r;
    }
    struct acre_context *context = stream->context;
    struct span target = {.buffer = to, .offset = to_offset, .what = "copy: to"};
    struct span source = {.buffer = from, .offset = from_offset, .what = "copy: from"};
    bool is_to_here = slot_find(context, to) != NULL;
    bool is_from_here = slot_find(context, from) != NULL;
    if (is_to_here != is_from_here) {
        struct acre_buffer far = is_to_here ? from : to;
        struct acre_context *other = buffer_context(context->compute, far);
        if (other != NULL && other != context && slot_find(other, far) != NULL) {
            return stream->recording != NULL
                       ? refuse_recording("copy", err)
                       : copy_across(stream, other, &target, &source, bytes, err);
        }
    }
    return copy_entering(stream, &target, &source, bytes, err);
}

/* --- fills ---------------------------------------------------------------------------------- */

int acre_fill(struct acre_stream *stream, struct acre_buffer to, uint64_t to_offset, uint64_t bytes,
              uint64_t pattern, uint32_t pattern_bytes, struct acre_error *err) {
    int r = stream_check(stream, err);
    if (r < 0) {
        return r;
    }
    if (pattern_bytes != 1 && pattern_bytes != 2 && pattern_bytes != 4 && pattern_bytes != 8) {
        return acre_fail(err, ACRE_EINVALID, "fill: pattern_bytes: %u; accepted: 1, 2, 4 or 8",
                         pattern_bytes);
    }
    if (bytes % pattern_bytes != 0 || to_offset % pattern_bytes != 0) {
        return acre_fail(err, ACRE_EINVALID,
                         "fill: %" PRIu64 " bytes at offset %" PRIu64
                         "; both must be multiples of pattern_bytes (%u)",
                         bytes, to_offset, pattern_bytes);
    }
    struct acre_context *context = stream->context;
    r = stream_enter(stream, err);
    if (r < 0) {
        return r;
    }
    struct buffer_range range;
    r = buffer_resolve(context, to, to_offset, bytes, "fill: to", &range, err);
    if (r < 0) {
        stream_pass(stream);
        return r;
    }
    if (bytes > 0 && stream->recording != NULL) {
        struct graph_fill node = {.to = to,
                                  .to_offset = to_offset,
                                  .bytes = bytes,
                                  .pattern = pattern,
                                  .pattern_bytes = pattern_bytes};
        r = recording_fill(stream, &node, err);
    } else if (bytes > 0) {
        struct native_fill fill = {.to = range.region,
                                   .to_offset = range.offset + to_offset,
                                   .bytes = bytes,
                                   .pattern = pattern,
                                   .pattern_bytes = pattern_bytes};
        buffer_used(context, to, stream);
        r = context->table->fill(context->seat, stream->handle, &fill, err);
        stream_issue(stream); /* also when refused, as in queue_copy */
    }
    stream_leave(stream, r);
    return r;
}
