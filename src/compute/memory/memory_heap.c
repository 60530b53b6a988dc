/* memory_heap.c - blocks from the driver, and what is tried before an allocation fails.
 *
 * Blocks are allocated without the lock: room in the limit is reserved first, so several threads
 * may each allocate one and none exceeds the limit. If the driver has no block of the preferred
 * size, one of the required size will do. If it does not have that either: wait for freed memory
 * that is still in use, return free blocks, and try again. Another thread may take what came free,
 * so this repeats as long as more will come and the limit leaves room.
 *
 * Memory that one stream freed is available to others only after a signal. A signal for each free
 * would cost more than the free, so a stream signals when enough was freed since its last one. */
#include "compute/memory/memory_heap.h"

#include "compute/context.h"
#include "compute/stream.h"
#include "core/clock.h"
#include "core/units.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    WAIT_MS = 10000, /* for memory that was freed and is still used */
    MOMENT_MS = 1,
    VAIN_MAX = 16, /* tries where room is seen and not found */
    FREED_WEIGHT_MAX = 1 << 20,
    FREED_WEIGHT_EACH = FREED_WEIGHT_MAX / 64,
};

/* What pools count to; more than any machine has. */
#define HOST_LIMIT_BYTES (UINT64_C(1) << 47)

/* --- blocks --------------------------------------------------------------------------------- */

static int block_take(struct memory_heap *heap, uint64_t bytes, struct pool_region *ret_region,
                      struct acre_error *err) {
    struct acre_context *context = heap->context;
    void *host = NULL;
    int r = heap->kind != ACRE_MEMORY_DEVICE ? context_map(context, bytes, &host, err) : 0;
    if (r < 0) {
        return r;
    }
    struct native_region region;
    r = context->table->region_create(context->seat, heap->kind, bytes, host, &region, err);
    if (r < 0) {
        if (host != NULL) {
            context_unmap(context, host, bytes);
        }
        return r;
    }
    *ret_region = (struct pool_region){.handle = region.handle, .host = host, .bytes = bytes};
    return 0;
}

static void block_give(struct memory_heap *heap, const struct quiet *quiet,
                       const struct pool_region *region) {
    struct acre_context *context = heap->context;
    atomic_fetch_add(&context->regions_gone, 1); /* before its handle may come back */
    quiet_region_destroy(quiet, region->handle);
    if (region->host != NULL) {
        context_unmap(context, region->host, region->bytes);
    }
}

static int reserve(struct memory_heap *heap, uint64_t bytes, bool exact,
                   uint64_t *ret_block_bytes) {
    pthread_mutex_lock(&heap->context->lock);
    int r = pool_reserve(heap->pool, bytes, exact, ret_block_bytes);
    pthread_mutex_unlock(&heap->context->lock);
    return r == ACRE_ELIMIT ? ACRE_ENOFIT : r;
}

static void unreserve(struct memory_heap *heap, uint64_t block_bytes) {
    pthread_mutex_lock(&heap->context->lock);
    pool_unreserve(heap->pool, block_bytes);
    pthread_mutex_unlock(&heap->context->lock);
}

static int grow(struct memory_heap *heap, uint64_t bytes, bool exact, struct chunk **ret_chunk,
                struct acre_error *err) {
    uint64_t block_bytes;
    int r = reserve(heap, bytes, exact, &block_bytes);
    if (r < 0) {
        return r;
    }
    struct pool_region region;
    r = block_take(heap, block_bytes, &region, err);
    if (r < 0) {
        unreserve(heap, block_bytes);
        return r == ACRE_ENOMEM && !exact ? grow(heap, bytes, true, ret_chunk, err) : r;
    }
    pthread_mutex_lock(&heap->context->lock);
    *ret_chunk = pool_add(heap->pool, &region, bytes);
    pthread_mutex_unlock(&heap->context->lock);
    return 0;
}

int heap_take(struct memory_heap *heap, uint32_t stream, uint64_t bytes, bool exact,
              struct chunk **ret_chunk, struct acre_error *err) {
    pthread_mutex_lock(&heap->context->lock);
    int r = pool_alloc(heap->pool, stream, bytes, ret_chunk);
    pthread_mutex_unlock(&heap->context->lock);
    return r == ACRE_ENOFIT ? grow(heap, bytes, exact, ret_chunk, err) : r;
}

void heap_trim(struct memory_heap *heap, const struct quiet *quiet, uint64_t keep_bytes) {
    for (;;) {
        struct pool_region region;
        pthread_mutex_lock(&heap->context->lock);
        bool has = pool_pop(heap->pool, keep_bytes, &region);
        pthread_mutex_unlock(&heap->context->lock);
        if (!has) {
            return;
        }
        block_give(heap, quiet, &region);
    }
}

/* --- when there is no room ------------------------------------------------------------------ */

/* It will come: a signal for it is under way. context->lock held. */
static bool is_signaled(const struct acre_context *context, struct pool_point point) {
    for (struct acre_stream *stream = context->streams; stream != NULL; stream = stream->next) {
        if (stream->word_index == point.stream) {
            return !stream->is_resident && atomic_load(&stream->watched) >= point.sequence;
        }
    }
    return false;
}

void heap_settle(struct memory_heap *heap, uint32_t timeout_ms) {
    struct acre_context *context = heap->context;
    uint64_t end_ns = acre_monotonic_ns() + UINT64_C(1000000) * timeout_ms;
    uint32_t number = 0;
    for (;;) {
        struct pool_point point;
        pthread_mutex_lock(&context->lock);
        bool has = pool_pending(heap->pool, UINT32_MAX, number, &point);
        bool will_come = has && is_signaled(context, point);
        pthread_mutex_unlock(&context->lock);
        if (has && !will_come) {
            stream_nudge(context, point.stream);
            pthread_mutex_lock(&context->lock);
            will_come = is_signaled(context, point);
            pthread_mutex_unlock(&context->lock);
        }
        uint64_t now = acre_monotonic_ns();
        if (!has || now >= end_ns) {
            return;
        }
        if (!will_come) {
            number++;
        } else if (word_wait(context, point.stream, point.sequence,
                             (int)((end_ns - now) / 1000000 + 1), NULL) < 0) {
            return;
        } else {
            number = 0;
        }
    }
}

/* Something that was freed will come, unless its stream stays (a ring's). context->lock held. */
static bool is_coming(const struct memory_heap *heap) {
    struct pool_point point;
    for (uint32_t i = 0; pool_pending(heap->pool, UINT32_MAX, i, &point); i++) {
        const struct acre_stream *stream = heap->context->streams;
        while (stream != NULL && stream->word_index != point.stream) {
            stream = stream->next;
        }
        if (stream != NULL && !stream->is_resident) {
            return true;
        }
    }
    return false;
}

/* Whether it may go better the next time. A driver that has none is asked again only when there is
 * more to give back to it. */
static bool may_come(struct memory_heap *heap, uint64_t bytes, int code, uint32_t *vain) {
    struct pool_report report;
    pthread_mutex_lock(&heap->context->lock);
    pool_report(heap->pool, &report);
    uint64_t in_blocks = report.used_bytes + report.free_bytes + report.pending_bytes;
    bool is_taken = report.reserved_bytes > in_blocks; /* a block, and not yet cut */
    bool fits = pool_would_fit(heap->pool, bytes);
    bool comes = fits && is_coming(heap);
    pthread_mutex_unlock(&heap->context->lock);
    if (comes || code != ACRE_ENOFIT) {
        return comes;
    }
    /* It came in the meantime, or is among more that are too small than a pool looks at. */
    return is_taken || (fits && report.pending_bytes == 0 && ++*vain <= VAIN_MAX);
}

/* Until the first of what was freed comes, or for a moment: others take or give back a block then,
 * and nobody tells when that is done. Not entered. */
static void wait_a_moment(struct memory_heap *heap, const struct acre_stream *stream) {
    struct acre_context *context = heap->context;
    struct pool_point point = {.stream = stream->word_index, .sequence = UINT64_MAX};
    pthread_mutex_lock(&context->lock);
    pool_pending(heap->pool, UINT32_MAX, 0, &point);
    pthread_mutex_unlock(&context->lock);
    word_wait(context, point.stream, point.sequence, MOMENT_MS, NULL);
}

static const char *show_bytes(uint64_t bytes, char *text, size_t size) {
    if (bytes < 1 << 20) {
        snprintf(text, size, "%" PRIu64 " bytes", bytes);
        return text;
    }
    return acre_format_mib(bytes >> 20, text, size);
}

static uint64_t limit_of(const struct memory_heap *heap) {
    return heap->kind == ACRE_MEMORY_DEVICE ? ACRE_MIN(heap->context->limit_bytes, HOST_LIMIT_BYTES)
                                            : HOST_LIMIT_BYTES;
}

static int refuse(struct memory_heap *heap, int code, uint64_t bytes, const uint32_t *buffer_count,
                  const char *driver, struct acre_error *err) {
    struct acre_context *context = heap->context;
    struct pool_report report;
    pthread_mutex_lock(&context->lock);
    pool_report(heap->pool, &report);
    uint32_t buffers = *buffer_count;
    pthread_mutex_unlock(&context->lock);
    const char *const whose[] = {context_device(context)->name, "pinned memory", "mapped memory"};
    char asked[32], held[32], cached[32], largest[32], limit[32];
    show_bytes(bytes, asked, sizeof(asked));
    show_bytes(report.used_bytes, held, sizeof(held));
    show_bytes(report.free_bytes + report.pending_bytes, cached, sizeof(cached));
    show_bytes(report.largest_free_bytes, largest, sizeof(largest));
    if (code == ACRE_ELIMIT || code == ACRE_ENOFIT) {
        return acre_fail(err, ACRE_ELIMIT,
                         "%s: cannot allocate %" PRIu64
                         " bytes (%s): the limit of tenant '%s' is %s, of which %u buffer%s hold%s "
                         "%s; %s free in the pool (largest piece %s)",
                         whose[heap->kind], bytes, asked, context->tenant,
                         show_bytes(limit_of(heap), limit, sizeof(limit)), buffers,
                         buffers == 1 ? "" : "s", buffers == 1 ? "s" : "", held, cached, largest);
    }
    char text[256] = "";
    uint64_t free_bytes, total_bytes;
    if (context->table->memory(context->seat, &free_bytes, &total_bytes, NULL) == 0) {
        char has[32], total[32];
        snprintf(text, sizeof(text), ", %s of %s free on the device",
                 show_bytes(free_bytes, has, sizeof(has)),
                 show_bytes(total_bytes, total, sizeof(total)));
    }
    return acre_fail(
        err, ACRE_ENOMEM,
        "%s: out of memory for %" PRIu64 " bytes (%s): %u buffer%s hold%s %s; %s free in "
        "the pool (largest piece %s)%s%s%s",
        whose[heap->kind], bytes, asked, buffers, buffers == 1 ? "" : "s", buffers == 1 ? "s" : "",
        held, cached, largest, text, driver[0] != '\0' ? "; " : "", driver);
}

/* Leave, wait for what was freed, and enter in a quiet scope; 0: entered. */
static int wait_for_more(struct memory_heap *heap, struct acre_stream *stream, uint64_t waited_ns,
                         struct quiet *quiet, struct acre_error *err) {
    stream_signal(stream, NULL); /* what it freed itself */
    stream_leave(stream, 0);
    quiet_end(quiet); /* of the try before this one */
    if (waited_ns > 0) {
        wait_a_moment(heap, stream);
    }
    heap_settle(heap, WAIT_MS - (uint32_t)(waited_ns / 1000000));
    quiet_begin(quiet, heap->context);
    return stream_enter(stream, err);
}

int heap_alloc(struct memory_heap *heap, struct acre_stream *stream, uint64_t bytes,
               const uint32_t *buffers, struct quiet *quiet, struct chunk **ret_chunk,
               struct acre_error *err) {
    struct acre_error driver = {0};
    uint64_t begun_ns = 0;
    uint32_t vain = 0;
    int r = heap_take(heap, stream->word_index, bytes, false, ret_chunk, &driver);
    while (r == ACRE_ENOMEM || r == ACRE_ENOFIT) {
        uint64_t now = acre_monotonic_ns();
        uint64_t waited_ns = begun_ns != 0 ? now - begun_ns : 0;
        if (begun_ns != 0 &&
            (waited_ns >= WAIT_MS * UINT64_C(1000000) || !may_come(heap, bytes, r, &vain))) {
            break;
        }
        begun_ns = begun_ns != 0 ? begun_ns : now;
        int e = wait_for_more(heap, stream, waited_ns, quiet, err);
        if (e < 0) {
            return e;
        }
        heap_trim(heap, quiet, 0);
        r = heap_take(heap, stream->word_index, bytes, true, ret_chunk, &driver);
    }
    if (r == ACRE_ENOMEM || r == ACRE_ENOFIT || r == ACRE_ELIMIT) {
        r = refuse(heap, r, bytes, buffers, driver.text, err);
    } else if (r < 0) {
        acre_fail(err, r, "%s", driver.text);
    }
    if (r < 0) {
        stream_leave(stream, r);
    }
    return r;
}

void heap_freed(struct acre_stream *stream, uint64_t bytes) {
    if (stream->signaled == stream->issued) {
        stream->freed_weight = 0;
        return;
    }
    stream->freed_weight += FREED_WEIGHT_EACH + ACRE_MIN(bytes, (uint64_t)FREED_WEIGHT_MAX);
    if (stream->freed_weight >= FREED_WEIGHT_MAX && stream_signal(stream, NULL) == 0) {
        stream->freed_weight = 0;
    }
}

/* --- life ----------------------------------------------------------------------------------- */

int heap_init(struct memory_heap *heap, struct acre_context *context, enum acre_memory kind,
              uint64_t block_min_bytes, uint64_t block_max_bytes, struct acre_error *err) {
    *heap = (struct memory_heap){.context = context, .kind = kind};
    struct pool_options options = {.words = context->words,
                                   .stream_max = WORDS_MAX,
                                   .limit_bytes =
                                       limit_of(heap) / POOL_GRANULE_BYTES * POOL_GRANULE_BYTES,
                                   .block_min_bytes = block_min_bytes,
                                   .block_max_bytes = block_max_bytes,
                                   .only_past = kind != ACRE_MEMORY_DEVICE};
    return pool_create(&options, &heap->pool, err);
}

void heap_finish(struct memory_heap *heap, const struct quiet *quiet) {
    struct pool_region region;
    while (heap->pool != NULL && pool_pop_any(heap->pool, &region)) {
        block_give(heap, quiet, &region);
    }
    pool_destroy(heap->pool);
    heap->pool = NULL;
}

int heap_rebuild(struct memory_heap *heap, struct acre_error *err) {
    struct acre_context *context = heap->context;
    struct pool_region gone;
    while (heap->kind == ACRE_MEMORY_DEVICE && pool_pop_any(heap->pool, &gone)) {
    }
    struct pool_region *block;
    for (uint32_t i = 0; pool_renew(heap->pool, i, &block); i++) {
        struct native_region region;
        int r = context->table->region_create(context->seat, heap->kind, block->bytes, block->host,
                                              &region, err);
        if (r < 0) {
            return r;
        }
        block->handle = region.handle;
    }
    return 0;
}
