/* pipeline.c - large host arrays through a kernel, in pieces that overlap.
 *
 * Each context has some lanes (a stream, a piece of device memory for either side, and pinned
 * memory where the user's is not). A lane takes the next piece from a counter that all share,
 * queues copy, kernel and copy, and goes on when these are done; meanwhile the other lanes are in
 * other stages, so both directions of the bus and the device are busy at once. A faster device
 * comes back sooner and takes more. One thread drives the lanes of a context in turn.
 *
 * The first failure stops the taking of pieces; what is under way is waited for, so that nothing
 * writes to the user's arrays afterwards. */
#include <acre/pipeline.h>

#include "compute/buffer.h"
#include "compute/context.h"
#include "compute/program.h"
#include "compute/stream.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    LANES = 4,
    LANES_MAX = 16,
    PIECE_BYTES = 16 << 20, /* a third of a millisecond on the bus: far above what a piece costs */
    PART_ITEMS_MIN = 256,
    ARGS_MAX = 32,
    CONTEXTS_OF_ONE_MAX = 64,
    TIMINGS_AT_ONCE = 64,
};

/* --- the plan --------------------------------------------------------------------------------- */

int acre_pipeline_plan(uint64_t items, uint32_t in_bytes, uint32_t out_bytes,
                       uint64_t available_bytes, struct acre_pipeline_plan *ret_plan,
                       struct acre_error *err) {
    uint64_t item_bytes = (uint64_t)in_bytes + out_bytes;
    if (item_bytes == 0) {
        return acre_fail(err, ACRE_EINVALID, "in_bytes and out_bytes: both 0; accepted: 1 or more");
    }
    uint64_t usable = available_bytes / 5 * 4 + available_bytes % 5 * 4 / 5;
    if (usable / item_bytes < PART_ITEMS_MIN) {
        return acre_fail(err, ACRE_ENOFIT,
                         "%d items of %" PRIu64 " bytes do not fit into 80 %% of %" PRIu64
                         " bytes of device memory",
                         PART_ITEMS_MIN, item_bytes, available_bytes);
    }
    uint64_t part = ACRE_MAX(usable / item_bytes, (uint64_t)PART_ITEMS_MIN);
    *ret_plan = (struct acre_pipeline_plan){
        .items = items, .part_items = part, .parts = items / part + (items % part != 0)};
    return 0;
}

/* --- lanes ------------------------------------------------------------------------------------ */

struct work {
    const struct acre_pipeline *pipeline;
    uint64_t piece_items;
    uint32_t lane_count;
    bool is_profiled;
    _Atomic uint64_t next; /* item */
    _Atomic uint64_t pieces;
    _Atomic bool has_failed;
    pthread_mutex_t lock; /* the rest */
    int result;
    uint64_t failed_item;
    struct acre_error failure;
    double kernel_us;
    bool has_times;
};

struct lane {
    struct acre_stream *stream;
    struct acre_buffer in, out;               /* device */
    struct acre_buffer staged_in, staged_out; /* pinned; none: the user's memory is */
    struct acre_event done;                   /* stream NULL: nothing under way */
    uint64_t first, count;                    /* items under way */
};

/* One context's part of it. */
struct drive {
    struct work *work;
    struct acre_kernel *kernel;
    struct acre_context *context;
    struct lane lanes[LANES_MAX];
    pthread_t thread;
};

static int fail_at(struct work *work, uint64_t item, int result, const struct acre_error *err) {
    atomic_store(&work->has_failed, true);
    pthread_mutex_lock(&work->lock);
    if (work->result == 0 || item < work->failed_item) {
        work->result = result;
        work->failed_item = item;
        work->failure = *err;
    }
    pthread_mutex_unlock(&work->lock);
    return result;
}

static bool is_pinned(struct acre_context *context, const void *host, uint64_t bytes) {
    struct place_of place;
    return buffer_of_host(context, host, bytes, &place);
}

static int alloc(struct lane *lane, enum acre_memory kind, uint64_t bytes,
                 struct acre_buffer *ret_buffer, struct acre_error *err) {
    return bytes == 0 ? 0 : acre_buffer_alloc(lane->stream, kind, bytes, ret_buffer, err);
}

static int lane_open(struct drive *drive, struct lane *lane, struct acre_error *err) {
    const struct acre_pipeline *pipeline = drive->work->pipeline;
    uint64_t in_bytes = drive->work->piece_items * pipeline->in_bytes;
    uint64_t out_bytes = drive->work->piece_items * pipeline->out_bytes;
    int r = acre_stream_create(drive->context, &lane->stream, err);
    r = r == 0 ? alloc(lane, ACRE_MEMORY_DEVICE, in_bytes, &lane->in, err) : r;
    r = r == 0 ? alloc(lane, ACRE_MEMORY_DEVICE, out_bytes, &lane->out, err) : r;
    if (r == 0 && !is_pinned(drive->context, pipeline->in, pipeline->items * pipeline->in_bytes)) {
        r = alloc(lane, ACRE_MEMORY_PINNED, in_bytes, &lane->staged_in, err);
    }
    if (r == 0 &&
        !is_pinned(drive->context, pipeline->out, pipeline->items * pipeline->out_bytes)) {
        r = alloc(lane, ACRE_MEMORY_PINNED, out_bytes, &lane->staged_out, err);
    }
    if (r == 0 && drive->work->is_profiled) {
        acre_stream_profile(lane->stream, true, NULL); /* without it there are no times */
    }
    return r;
}

/* Times of its kernels, once it is idle. */
static void read_times(struct drive *drive, struct lane *lane) {
    struct acre_timing timings[TIMINGS_AT_ONCE];
    uint32_t count = TIMINGS_AT_ONCE;
    double us = 0;
    bool has_times = false;
    while (count == TIMINGS_AT_ONCE &&
           acre_stream_timings(lane->stream, timings, TIMINGS_AT_ONCE, &count, NULL) == 0) {
        for (uint32_t i = 0; i < count; i++) {
            bool is_kernel = strcmp(timings[i].name, drive->kernel->signature.name) == 0;
            us += is_kernel ? timings[i].running_us : 0;
            has_times = true;
        }
    }
    pthread_mutex_lock(&drive->work->lock);
    drive->work->kernel_us += us;
    drive->work->has_times = drive->work->has_times || has_times;
    pthread_mutex_unlock(&drive->work->lock);
}

static void lane_close(struct drive *drive, struct lane *lane) {
    if (lane->stream == NULL) {
        return;
    }
    if (drive->work->is_profiled && !atomic_load(&drive->work->has_failed)) {
        read_times(drive, lane);
    }
    const struct acre_buffer buffers[] = {lane->in, lane->out, lane->staged_in, lane->staged_out};
    for (size_t i = 0; i < ACRE_COUNT(buffers); i++) {
        if (buffers[i].id != 0) {
            acre_buffer_free(lane->stream, buffers[i], NULL);
        }
    }
    acre_stream_destroy(lane->stream);
}

/* --- pieces ----------------------------------------------------------------------------------- */

static int launch(struct drive *drive, struct lane *lane, struct acre_error *err) {
    const struct acre_pipeline *pipeline = drive->work->pipeline;
    struct acre_arg args[ARGS_MAX];
    uint32_t count = 0;
    if (pipeline->in_bytes > 0) {
        args[count++] = ACRE_BUFFER(lane->in);
    }
    if (pipeline->out_bytes > 0) {
        args[count++] = ACRE_BUFFER(lane->out);
    }
    args[count++] = ACRE_U32((uint32_t)lane->count);
    args[count++] = ACRE_U64(lane->first);
    for (uint32_t i = 0; i < pipeline->more_count; i++) {
        args[count++] = pipeline->more[i];
    }
    return acre_launch(lane->stream, drive->kernel, acre_grid_for(lane->count), args, count, err);
}

static int begin_piece(struct drive *drive, struct lane *lane, struct acre_error *err) {
    const struct acre_pipeline *pipeline = drive->work->pipeline;
    const uint8_t *in = (const uint8_t *)pipeline->in + lane->first * pipeline->in_bytes;
    uint8_t *out = (uint8_t *)pipeline->out + lane->first * pipeline->out_bytes;
    uint64_t in_bytes = lane->count * pipeline->in_bytes;
    uint64_t out_bytes = lane->count * pipeline->out_bytes;
    if (lane->staged_in.id != 0) {
        void *staged = acre_buffer_host(drive->context, lane->staged_in);
        memcpy(staged, in, in_bytes);
        in = staged;
    }
    if (lane->staged_out.id != 0) {
        out = acre_buffer_host(drive->context, lane->staged_out);
    }
    int r = in_bytes > 0 ? acre_copy_in(lane->stream, lane->in, 0, in, in_bytes, err) : 0;
    r = r == 0 ? launch(drive, lane, err) : r;
    if (r == 0 && out_bytes > 0) {
        r = acre_copy_out(lane->stream, out, lane->out, 0, out_bytes, err);
    }
    return r == 0 ? acre_event_record(lane->stream, &lane->done, err) : r;
}

static int end_piece(struct drive *drive, struct lane *lane, struct acre_error *err) {
    if (lane->done.stream == NULL) {
        return 0;
    }
    const struct acre_pipeline *pipeline = drive->work->pipeline;
    int r = acre_event_wait(lane->done, ACRE_FOREVER, err);
    lane->done.stream = NULL;
    if (r == 0 && lane->staged_out.id != 0) {
        memcpy((uint8_t *)pipeline->out + lane->first * pipeline->out_bytes,
               acre_buffer_host(drive->context, lane->staged_out),
               lane->count * pipeline->out_bytes);
    }
    return r;
}

static bool take_piece(struct work *work, struct lane *lane) {
    uint64_t first = atomic_load(&work->has_failed)
                         ? work->pipeline->items
                         : atomic_fetch_add(&work->next, work->piece_items);
    if (first >= work->pipeline->items) {
        return false;
    }
    lane->first = first;
    lane->count = ACRE_MIN(work->piece_items, work->pipeline->items - first);
    atomic_fetch_add(&work->pieces, 1);
    return true;
}

static void *run_drive(void *argument) {
    struct drive *drive = argument;
    struct work *work = drive->work;
    struct acre_error err = {0};
    int r = 0;
    for (uint32_t i = 0; i < work->lane_count && r == 0; i++) {
        r = lane_open(drive, &drive->lanes[i], &err);
    }
    if (r < 0) {
        fail_at(work, 0, r, &err);
    }
    bool is_over = r < 0;
    for (uint32_t i = 0; !is_over; i = (i + 1) % work->lane_count) {
        struct lane *lane = &drive->lanes[i];
        r = end_piece(drive, lane, &err);
        if (r < 0) {
            fail_at(work, lane->first, r, &err);
        }
        is_over = r < 0 || !take_piece(work, lane);
        if (!is_over) {
            r = begin_piece(drive, lane, &err);
            if (r < 0) {
                fail_at(work, lane->first, r, &err);
                is_over = true;
            }
        }
    }
    for (uint32_t i = 0; i < work->lane_count; i++) {
        struct lane *lane = &drive->lanes[i];
        r = end_piece(drive, lane, &err);
        if (r < 0) {
            fail_at(work, lane->first, r, &err);
        }
    }
    for (uint32_t i = 0; i < work->lane_count; i++) {
        lane_close(drive, &drive->lanes[i]);
    }
    return NULL;
}

/* --- the whole -------------------------------------------------------------------------------- */

static int check(const struct acre_pipeline *pipeline, struct acre_error *err) {
    if (pipeline->kernel_count == 0 || pipeline->kernel_count > CONTEXTS_OF_ONE_MAX) {
        return acre_fail(err, ACRE_EINVALID, "pipeline: kernel_count: %u; accepted: 1 to %d",
                         pipeline->kernel_count, CONTEXTS_OF_ONE_MAX);
    }
    if (pipeline->streams > LANES_MAX) {
        return acre_fail(err, ACRE_EINVALID, "pipeline: streams: %u; accepted: 0 to %d",
                         pipeline->streams, LANES_MAX);
    }
    if (pipeline->more_count > ARGS_MAX - 4) {
        return acre_fail(err, ACRE_EINVALID, "pipeline: more_count: %u; accepted: 0 to %d",
                         pipeline->more_count, ARGS_MAX - 4);
    }
    uint64_t item_bytes = (uint64_t)pipeline->in_bytes + pipeline->out_bytes;
    uint64_t ignored;
    if (item_bytes == 0 || __builtin_mul_overflow(item_bytes, pipeline->items, &ignored)) {
        return acre_fail(err, ACRE_EINVALID,
                         "pipeline: %" PRIu64 " items of %" PRIu64 " bytes; accepted: 1 byte or "
                         "more each, 2^64 in all",
                         pipeline->items, item_bytes);
    }
    for (uint32_t i = 0; i < pipeline->more_count; i++) {
        if (pipeline->more[i].kind == ACRE_ARG_BUFFER && pipeline->kernel_count > 1) {
            return acre_fail(err, ACRE_EINVALID,
                             "pipeline: argument %u of more is a buffer, which is of one context "
                             "only; accepted: values",
                             i + 1);
        }
    }
    return 0;
}

/* What a context could still have on its device. */
static int available(struct acre_context *context, uint64_t *ret_bytes, struct acre_error *err) {
    uint64_t free_bytes = 0;
    uint64_t total_bytes = 0;
    int r = context_enter(context, err);
    if (r < 0) {
        return r;
    }
    r = context->table->memory(context->place, &free_bytes, &total_bytes, err);
    context_leave(context, r);
    if (r < 0) {
        return r;
    }
    struct acre_memory_report report;
    acre_memory_report(context, &report);
    uint64_t cached = report.reserved_bytes - ACRE_MIN(report.used_bytes, report.reserved_bytes);
    uint64_t within = report.limit_bytes - ACRE_MIN(report.used_bytes, report.limit_bytes);
    *ret_bytes = ACRE_MIN(within, free_bytes + cached);
    return 0;
}

/* Pieces that fit into each device, and leave each lane several to do. */
static int size_pieces(const struct acre_pipeline *pipeline, struct work *work,
                       struct acre_error *err) {
    uint64_t larger = ACRE_MAX(pipeline->in_bytes, pipeline->out_bytes);
    uint64_t wanted = pipeline->piece_bytes != 0 ? pipeline->piece_bytes : PIECE_BYTES;
    uint64_t piece = ACRE_MAX(wanted / larger, (uint64_t)1);
    if (pipeline->piece_bytes == 0) {
        uint64_t shared = pipeline->items / ((uint64_t)work->lane_count * pipeline->kernel_count);
        piece = ACRE_MIN(piece, ACRE_MAX(shared, (uint64_t)PART_ITEMS_MIN));
    }
    for (uint32_t i = 0; i < pipeline->kernel_count; i++) {
        uint64_t bytes;
        struct acre_pipeline_plan plan;
        int r = available(kernel_context(pipeline->kernels[i]), &bytes, err);
        r = r == 0 ? acre_pipeline_plan(pipeline->items, pipeline->in_bytes, pipeline->out_bytes,
                                        bytes, &plan, err)
                   : r;
        if (r < 0) {
            return r;
        }
        piece = ACRE_MIN(piece, ACRE_MAX(plan.part_items / work->lane_count, (uint64_t)1));
    }
    work->piece_items = ACRE_MIN(piece, (uint64_t)UINT32_MAX);
    return 0;
}

static void run_all(struct work *work, struct drive *drives) {
    uint32_t count = work->pipeline->kernel_count;
    uint32_t started = 1; /* the first one is this thread's */
    for (; started < count; started++) {
        int error = pthread_create(&drives[started].thread, NULL, run_drive, &drives[started]);
        if (error != 0) {
            struct acre_error err = {0};
            fail_at(work, 0, acre_fail_errno(&err, error, "pipeline: thread"), &err);
            break;
        }
    }
    run_drive(&drives[0]);
    for (uint32_t i = 1; i < started; i++) {
        pthread_join(drives[i].thread, NULL);
    }
}

static void write_report(const struct work *work, double seconds,
                         struct acre_pipeline_report *report) {
    const struct acre_pipeline *pipeline = work->pipeline;
    double bytes = (double)pipeline->items * ((double)pipeline->in_bytes + pipeline->out_bytes);
    double share = work->kernel_us / (seconds * 1e6 * pipeline->kernel_count);
    *report = (struct acre_pipeline_report){
        .pieces = atomic_load(&work->pieces),
        .seconds = seconds,
        .items_per_ms = (double)pipeline->items / (seconds * 1e3),
        .mb_per_s = bytes / (seconds * 1e6),
        .kernel_efficiency = work->has_times ? ACRE_MIN(share, 1.0) : -1,
        .failed_item = work->result < 0 ? work->failed_item : UINT64_MAX};
}

int acre_pipeline_run(const struct acre_pipeline *pipeline, struct acre_pipeline_report *ret_report,
                      struct acre_error *err) {
    int r = check(pipeline, err);
    if (r < 0) {
        return r;
    }
    struct work work = {.pipeline = pipeline,
                        .lane_count = pipeline->streams != 0 ? pipeline->streams : LANES,
                        .is_profiled = ret_report != NULL,
                        .failed_item = UINT64_MAX};
    r = size_pieces(pipeline, &work, err);
    if (r < 0) {
        return r;
    }
    struct drive *drives = calloc(pipeline->kernel_count, sizeof(*drives));
    if (drives == NULL) {
        return acre_fail(err, ACRE_ENOMEM, "pipeline");
    }
    pthread_mutex_init(&work.lock, NULL);
    for (uint32_t i = 0; i < pipeline->kernel_count; i++) {
        drives[i].work = &work;
        drives[i].kernel = pipeline->kernels[i];
        drives[i].context = kernel_context(pipeline->kernels[i]);
    }
    uint64_t begun_ns = now_ns();
    if (pipeline->items > 0) {
        run_all(&work, drives);
    }
    double seconds = (double)ACRE_MAX(now_ns() - begun_ns, (uint64_t)1) / 1e9;
    if (ret_report != NULL) {
        write_report(&work, seconds, ret_report);
    }
    pthread_mutex_destroy(&work.lock);
    free(drives);
    if (work.result < 0) {
        return acre_fail(err, work.result, "pipeline: items from %" PRIu64 " on: %s",
                         work.failed_item, work.failure.text);
    }
    return 0;
}
