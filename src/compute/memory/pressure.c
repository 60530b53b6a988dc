/* pressure.c - report a context's memory, watch its pressure, and return cached memory.
 *
 * The thread that changes what is used computes the level under the lock, and calls the user's
 * function afterwards without lock or gate, so that it may free and trim. In between another thread
 * may change the level again; each call reports the level at that time. */
#include "compute/context.h"
#include "compute/memory/buffer_inner.h"
#include "compute/process.h"

enum { SETTLE_MS = 20 }; /* a trim waits so long for work that still uses what was freed */

/* --- pressure ------------------------------------------------------------------------------- */

static enum acre_pressure level_of(const struct buffers *buffers) {
    uint64_t used = pool_used(buffers->heaps[HEAP_DEVICE].pool);
    return used < buffers->warning_bytes    ? ACRE_PRESSURE_HEALTHY
           : used < buffers->critical_bytes ? ACRE_PRESSURE_WARNING
                                            : ACRE_PRESSURE_CRITICAL;
}

bool pressure_update(struct acre_context *context) {
    struct buffers *buffers = context->buffers;
    enum acre_pressure level = level_of(buffers);
    bool has_changed = level != buffers->level;
    buffers->level = level;
    return has_changed;
}

void pressure_tell(struct acre_context *context) {
    pthread_mutex_lock(&context->lock);
    acre_pressure_function *function = context->on_pressure;
    void *user = context->pressure_user;
    enum acre_pressure level = context->buffers->level;
    pthread_mutex_unlock(&context->lock);
    if (function != NULL) {
        function(user, context, level);
    }
}

void acre_memory_on_pressure(struct acre_context *context, acre_pressure_function *function,
                             void *user) {
    if (context_check(context, NULL) < 0) {
        return;
    }
    pthread_mutex_lock(&context->lock);
    context->on_pressure = function;
    context->pressure_user = user;
    pthread_mutex_unlock(&context->lock);
}

/* --- report --------------------------------------------------------------------------------- */

void acre_memory_report(struct acre_context *context, struct acre_memory_report *ret_report) {
    if (context_check(context, NULL) < 0) {
        *ret_report = (struct acre_memory_report){0};
        return;
    }
    struct buffers *buffers = context->buffers;
    struct pool_report pools[HEAPS];
    pthread_mutex_lock(&context->lock);
    for (size_t i = 0; i < HEAPS; i++) {
        pool_report(buffers->heaps[i].pool, &pools[i]);
    }
    enum acre_pressure level = level_of(buffers);
    pthread_mutex_unlock(&context->lock);
    const struct pool_report *device = &pools[HEAP_DEVICE];
    struct acre_memory_report report = {.limit_bytes = context->limit_bytes,
                                        .used_bytes = device->used_bytes,
                                        .peak_bytes = device->peak_bytes,
                                        .reserved_bytes = device->reserved_bytes,
                                        .largest_free_bytes = device->largest_free_bytes,
                                        .blocks = device->blocks,
                                        .pressure = level};
    if (device->free_bytes > 0) {
        report.fragmentation = 1 - (double)device->largest_free_bytes / (double)device->free_bytes;
    }
    for (size_t i = 0; i < HEAPS; i++) {
        if (i != HEAP_STAGING) { /* nobody asked for those */
            report.allocations += pools[i].allocations;
            report.frees += pools[i].frees;
            report.hits += pools[i].hits;
        }
        report.pinned_bytes += i != HEAP_DEVICE ? pools[i].used_bytes : 0;
    }
    *ret_report = report;
}

/* --- trim ----------------------------------------------------------------------------------- */

/* The canaries of all buffers there are. Not entered. */
static int check_all(struct acre_context *context, struct acre_error *err) {
    struct acre_stream *stream;
    int r = staging_stream(context, &stream, err);
    if (r < 0) {
        return r;
    }
    for (uint32_t number = 1; r == 0; number++) {
        struct acre_buffer buffer;
        pthread_mutex_lock(&context->lock);
        bool has = slot_id(context, number, &buffer);
        pthread_mutex_unlock(&context->lock);
        if (!has) {
            break;
        }
        r = buffer.id != 0 ? guard_check(stream, buffer, err) : 0;
        r = r == ACRE_ECORRUPT ? r : 0; /* others: freed or lost meanwhile */
    }
    staging_stream_done(context);
    return r;
}

int acre_memory_trim(struct acre_context *context, uint64_t keep_bytes, struct acre_error *err) {
    int r = context_check(context, err);
    if (r < 0) {
        return r;
    }
    int found = context->debug ? check_all(context, err) : 0;
    for (size_t i = 0; i < HEAPS; i++) {
        heap_settle(&context->buffers->heaps[i], SETTLE_MS);
    }
    struct quiet quiet;
    quiet_begin(&quiet, context);
    r = context_enter(context, err);
    for (size_t i = 0; i < HEAPS && r == 0; i++) {
        heap_trim(&context->buffers->heaps[i], &quiet, keep_bytes);
    }
    if (r == 0) {
        context_pass(context); /* a driver does not say how giving back went */
    }
    quiet_end(&quiet);
    return r < 0 ? r : found;
}
