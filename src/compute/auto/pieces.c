/* pieces.c - large host arrays through a kernel, in pieces that overlap.
 *
 * Each context has some slots (a piece of device memory for each array, and pinned memory where the
 * user's is not), which take the next piece from a counter that all contexts share, and three
 * streams: one copies in, one computes, one copies out, each after the one before. So either
 * direction of the bus always has its next copy ready. (With one stream per slot for all three, an
 * H200 lost a sixth of its bus bandwidth, apparently to the signal after each piece:
 * docs/benchmarks/compute.md.) A faster device returns sooner and takes more. One thread drives the
 * slots of a context, with helpers for the copies it makes itself.
 *
 * After the first failure no more pieces are taken. Pieces in flight are waited for, so that
 * nothing writes to the user's arrays afterwards. */
#include "compute/auto/pieces.h"

#include "compute/auto/crew.h"
#include "compute/context.h"
#include "compute/memory/buffer.h"
#include "compute/program.h"
#include "compute/stream.h"
#include "core/clock.h"
#include "core/cpus.h"
#include "core/thread.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    SLOTS = 4,
    DEPTH = 3,              /* pieces under way for each slot */
    PIECE_BYTES = 32 << 20, /* two thirds of a millisecond on the bus: far above what one costs */
    PIECE_BYTES_FEW = 4 << 20, /* not less for the sake of more pieces than the slots need */
    PIECES_MANY = 16,          /* so that the first copy in and the last one out weigh little */
    PIECE_ITEMS_MIN = 256,
    TIMINGS_AT_ONCE = 64,
    HELPED_BYTES = 32 << 20, /* below, threads that help to copy plain memory cost too much */
};

enum piece_stage { IN, RUN, OUT, STAGES };

struct work {
    const struct pieces *pieces;
    uint64_t piece_items;
    uint32_t slot_count;
    uint32_t helpers; /* of each context, where the user's memory is plain */
    bool is_profiled;
    _Atomic uint64_t next; /* item */
    _Atomic uint64_t taken;
    _Atomic bool has_failed;
    pthread_mutex_t lock; /* the rest */
    int result;
    uint64_t failed_item;
    struct acre_error failure;
    double kernel_us; /* of `timed_items` */
    uint64_t timed_items;
};

/* An array's buffers in a slot. */
struct piece_buffers {
    struct acre_buffer device;
    struct acre_buffer staged_in, staged_out; /* pinned; none: the user's memory is */
};

struct piece_slot {
    struct piece_buffers spots[PIECES_ARRAYS_MAX];
    struct acre_event empty; /* its last piece is out */
};

/* Items under way. */
struct piece {
    uint64_t first, count;
    struct acre_event ends[STAGES];
};

/* One context's part of it. */
struct drive {
    struct work *work;
    struct acre_kernel *kernel;
    struct acre_context *context;
    struct acre_stream *streams[STAGES];
    struct piece_slot slots[PIECES_SLOTS_MAX];
    struct piece pieces[PIECES_SLOTS_MAX * DEPTH];
    uint64_t begun, ended; /* pieces, counted */
    uint32_t ahead;        /* as many may be under way */
    bool is_staged;        /* through pinned memory, by the crew */
    struct crew crew;
    uint64_t timed_items; /* of those that were measured */
    pthread_t thread;
};

static void fail_at(struct work *work, uint64_t item, int result, const struct acre_error *err) {
    atomic_store(&work->has_failed, true);
    pthread_mutex_lock(&work->lock);
    if (work->result == 0 || item < work->failed_item) {
        work->result = result;
        work->failed_item = item;
        work->failure = *err;
    }
    pthread_mutex_unlock(&work->lock);
}

/* --- slots ------------------------------------------------------------------------------------ */

/* Pinned memory for one side of an array, where the user's is plain. */
static int pin_side(struct drive *drive, const void *host, uint32_t item_bytes,
                    struct acre_buffer *ret_staged, struct acre_error *err) {
    struct buffer_range range;
    if (host == NULL ||
        buffer_of_host(drive->context, host, drive->work->pieces->items * item_bytes, &range)) {
        return 0;
    }
    drive->ahead = drive->work->slot_count;
    drive->is_staged = true;
    return acre_buffer_alloc(drive->streams[IN], ACRE_MEMORY_PINNED,
                             drive->work->piece_items * item_bytes, ret_staged, err);
}

/* All is allocated on the stream that copies in, which the others follow. */
static int slot_open(struct drive *drive, struct piece_slot *slot, struct acre_error *err) {
    const struct pieces *pieces = drive->work->pieces;
    int r = 0;
    for (uint32_t i = 0; i < pieces->array_count && r == 0; i++) {
        const struct pieces_array *array = &pieces->arrays[i];
        struct piece_buffers *spot = &slot->spots[i];
        uint64_t bytes = drive->work->piece_items * ACRE_MAX(array->in_bytes, array->out_bytes);
        r = acre_buffer_alloc(drive->streams[IN], ACRE_MEMORY_DEVICE, bytes, &spot->device, err);
        r = r == 0 ? pin_side(drive, array->in, array->in_bytes, &spot->staged_in, err) : r;
        r = r == 0 ? pin_side(drive, array->out, array->out_bytes, &spot->staged_out, err) : r;
    }
    return r;
}

static void slot_close(struct drive *drive, struct piece_slot *slot) {
    for (uint32_t i = 0; i < drive->work->pieces->array_count; i++) {
        const struct piece_buffers *spot = &slot->spots[i];
        const struct acre_buffer buffers[] = {spot->device, spot->staged_in, spot->staged_out};
        for (size_t j = 0; j < ACRE_COUNT(buffers); j++) {
            if (buffers[j].id != 0) {
                acre_buffer_free(drive->streams[IN], buffers[j], NULL);
            }
        }
    }
}

/* Times of its kernels, once it is idle. */
static void read_times(struct drive *drive) {
    struct acre_timing timings[TIMINGS_AT_ONCE];
    uint32_t count = 0;
    double us = 0;
    if (acre_stream_timings(drive->streams[RUN], timings, TIMINGS_AT_ONCE, &count, NULL) < 0) {
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        us += timings[i].running_us;
    }
    pthread_mutex_lock(&drive->work->lock);
    drive->work->kernel_us += us;
    drive->work->timed_items += drive->timed_items;
    pthread_mutex_unlock(&drive->work->lock);
}

static int drive_open(struct drive *drive, struct acre_error *err) {
    drive->ahead = drive->work->slot_count * DEPTH;
    int r = 0;
    for (uint32_t i = 0; i < STAGES && r == 0; i++) {
        r = acre_stream_create(drive->context, &drive->streams[i], err);
    }
    for (uint32_t i = 0; i < drive->work->slot_count && r == 0; i++) {
        r = slot_open(drive, &drive->slots[i], err);
    }
    crew_open(&drive->crew, drive->is_staged ? drive->work->helpers : 0);
    return r;
}

static void drive_close(struct drive *drive) {
    crew_close(&drive->crew);
    if (drive->timed_items > 0 && !atomic_load(&drive->work->has_failed)) {
        read_times(drive);
    }
    for (uint32_t i = 0; i < drive->work->slot_count; i++) {
        slot_close(drive, &drive->slots[i]);
    }
    for (uint32_t i = 0; i < STAGES; i++) {
        acre_stream_destroy(drive->streams[i]);
    }
}

/* --- a piece ---------------------------------------------------------------------------------- */

static int copy_in(struct drive *drive, const struct piece_slot *slot, const struct piece *piece,
                   uint32_t index, struct acre_error *err) {
    const struct pieces_array *array = &drive->work->pieces->arrays[index];
    const struct piece_buffers *spot = &slot->spots[index];
    if (array->in == NULL) {
        return 0;
    }
    const uint8_t *from = (const uint8_t *)array->in + piece->first * array->in_bytes;
    uint64_t bytes = piece->count * array->in_bytes;
    if (spot->staged_in.id != 0) {
        void *staged = acre_buffer_host(drive->context, spot->staged_in);
        crew_copy(&drive->crew, staged, from, bytes);
        from = staged;
    }
    return acre_copy_in(drive->streams[IN], spot->device, 0, from, bytes, err);
}

static int copy_out(struct drive *drive, const struct piece_slot *slot, const struct piece *piece,
                    uint32_t index, struct acre_error *err) {
    const struct pieces_array *array = &drive->work->pieces->arrays[index];
    const struct piece_buffers *spot = &slot->spots[index];
    if (array->out == NULL) {
        return 0;
    }
    uint8_t *to = spot->staged_out.id != 0
                      ? acre_buffer_host(drive->context, spot->staged_out)
                      : (uint8_t *)array->out + piece->first * array->out_bytes;
    return acre_copy_out(drive->streams[OUT], to, spot->device, 0, piece->count * array->out_bytes,
                         err);
}

static int launch(struct drive *drive, const struct piece_slot *slot, const struct piece *piece,
                  struct acre_error *err) {
    const struct pieces *pieces = drive->work->pieces;
    struct acre_stream *run = drive->streams[RUN];
    struct acre_arg args[ACRE_ARGS_MAX];
    uint32_t count = 0;
    for (uint32_t i = 0; i < pieces->array_count; i++) {
        args[count++] = ACRE_BUFFER(slot->spots[i].device);
    }
    if (pieces->tells_first) {
        args[count++] = ACRE_U32((uint32_t)piece->count);
        args[count++] = ACRE_U64(piece->first);
    }
    for (uint32_t i = 0; i < pieces->more_count; i++) {
        args[count++] = pieces->more[i];
    }
    if (!pieces->tells_first) {
        args[count++] = ACRE_U32((uint32_t)piece->count);
    }
    bool is_timed = drive->work->is_profiled && drive->begun < drive->work->slot_count &&
                    acre_stream_profile(run, true, NULL) == 0;
    int r = acre_launch(run, drive->kernel, acre_grid_for(piece->count), args, count, err);
    if (is_timed) {
        drive->timed_items += piece->count;
        acre_stream_profile(run, false, NULL);
    }
    return r;
}

/* The stage is given; what the next one is given comes after it. */
static int end_stage(struct drive *drive, struct piece *piece, enum piece_stage stage,
                     struct acre_error *err) {
    int r = acre_event_record(drive->streams[stage], &piece->ends[stage], err);
    return r == 0 && stage + 1 < STAGES
               ? acre_stream_after(drive->streams[stage + 1], piece->ends[stage], err)
               : r;
}

static int begin_piece(struct drive *drive, struct piece *piece, struct acre_error *err) {
    struct piece_slot *slot = &drive->slots[drive->begun % drive->work->slot_count];
    uint32_t arrays = drive->work->pieces->array_count;
    int r =
        slot->empty.stream != NULL ? acre_stream_after(drive->streams[IN], slot->empty, err) : 0;
    for (uint32_t i = 0; i < arrays && r == 0; i++) {
        r = copy_in(drive, slot, piece, i, err);
    }
    r = r == 0 ? end_stage(drive, piece, IN, err) : r;
    r = r == 0 ? launch(drive, slot, piece, err) : r;
    r = r == 0 ? end_stage(drive, piece, RUN, err) : r;
    for (uint32_t i = 0; i < arrays && r == 0; i++) {
        r = copy_out(drive, slot, piece, i, err);
    }
    r = r == 0 ? end_stage(drive, piece, OUT, err) : r;
    if (r == 0) {
        slot->empty = piece->ends[OUT];
        drive->begun++;
    }
    return r;
}

static struct piece *piece_at(struct drive *drive, uint64_t number) {
    return &drive->pieces[number % ACRE_COUNT(drive->pieces)];
}

/* The oldest piece under way is done. */
static int end_piece(struct drive *drive) {
    const struct pieces *pieces = drive->work->pieces;
    const struct piece_slot *slot = &drive->slots[drive->ended % drive->work->slot_count];
    const struct piece *piece = piece_at(drive, drive->ended++);
    struct acre_error err = {0};
    int r = 0;
    for (uint32_t i = 0; i < STAGES; i++) { /* all, also behind a failure */
        int waited = acre_event_wait(piece->ends[i], ACRE_FOREVER, r == 0 ? &err : NULL);
        r = r == 0 ? waited : r;
    }
    for (uint32_t i = 0; i < pieces->array_count && r == 0; i++) {
        const struct pieces_array *array = &pieces->arrays[i];
        if (array->out != NULL && slot->spots[i].staged_out.id != 0) {
            crew_copy(&drive->crew, (uint8_t *)array->out + piece->first * array->out_bytes,
                      acre_buffer_host(drive->context, slot->spots[i].staged_out),
                      piece->count * array->out_bytes);
        }
    }
    if (r < 0) {
        fail_at(drive->work, piece->first, r, &err);
    }
    return r;
}

static bool take_piece(struct work *work, struct piece *piece) {
    uint64_t items = work->pieces->items;
    uint64_t first =
        atomic_load(&work->has_failed) ? items : atomic_fetch_add(&work->next, work->piece_items);
    if (first >= items) {
        return false;
    }
    piece->first = first;
    piece->count = ACRE_MIN(work->piece_items, items - first);
    atomic_fetch_add(&work->taken, 1);
    return true;
}

/* Make room, take the next piece and begin it. False: no more. */
static bool step(struct drive *drive) {
    if (drive->begun - drive->ended == drive->ahead && end_piece(drive) < 0) {
        return false;
    }
    struct piece *piece = piece_at(drive, drive->begun);
    if (!take_piece(drive->work, piece)) {
        return false;
    }
    struct acre_error err = {0};
    int r = begin_piece(drive, piece, &err);
    if (r < 0) {
        fail_at(drive->work, piece->first, r, &err);
    }
    return r == 0;
}

static void *run_drive(void *argument) {
    struct drive *drive = argument;
    struct acre_error err = {0};
    int r = drive_open(drive, &err);
    if (r < 0) {
        fail_at(drive->work, 0, r, &err);
    }
    while (r == 0 && step(drive)) {
    }
    while (drive->ended < drive->begun) {
        end_piece(drive);
    }
    drive_close(drive);
    return NULL;
}

/* --- the whole -------------------------------------------------------------------------------- */

static int check(const struct pieces *pieces, uint32_t *ret_in, uint32_t *ret_out,
                 struct acre_error *err) {
    if (pieces->kernel_count == 0 || pieces->kernel_count > PIECES_KERNELS_MAX) {
        return acre_fail(err, ACRE_EINVALID, "kernel_count: %u; accepted: 1 to %d",
                         pieces->kernel_count, PIECES_KERNELS_MAX);
    }
    if (pieces->slots > PIECES_SLOTS_MAX) {
        return acre_fail(err, ACRE_EINVALID, "slots: %u; accepted: 0 to %d", pieces->slots,
                         PIECES_SLOTS_MAX);
    }
    if (pieces->more_count > ACRE_ARGS_MAX - PIECES_ARRAYS_MAX - 2) {
        return acre_fail(err, ACRE_EINVALID, "more_count: %u; accepted: 0 to %d",
                         pieces->more_count, ACRE_ARGS_MAX - PIECES_ARRAYS_MAX - 2);
    }
    uint64_t in = 0;
    uint64_t out = 0;
    for (uint32_t i = 0; i < pieces->array_count; i++) {
        const struct pieces_array *array = &pieces->arrays[i];
        if (pieces->items > 0 && ((array->in_bytes > 0 && array->in == NULL) ||
                                  (array->out_bytes > 0 && array->out == NULL))) {
            return acre_fail(err, ACRE_EINVALID,
                             "array %u: NULL; accepted: memory for %" PRIu64 " items", i + 1,
                             pieces->items);
        }
        in += array->in_bytes;
        out += array->out_bytes;
    }
    uint64_t ignored;
    if (in + out == 0 || in + out > UINT32_MAX ||
        __builtin_mul_overflow(in + out, pieces->items, &ignored)) {
        return acre_fail(err, ACRE_EINVALID,
                         "%" PRIu64 " items of %" PRIu64
                         " bytes; accepted: at least 1 byte per item, less than 2^64 bytes in all",
                         pieces->items, in + out);
    }
    *ret_in = (uint32_t)in;
    *ret_out = (uint32_t)out;
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
    r = context->table->memory(context->seat, &free_bytes, &total_bytes, err);
    if (r < 0) {
        context_leave(context, r);
        return r;
    }
    context_pass(context); /* numbers are told by devices that do no work, too */
    struct acre_memory_report report;
    acre_memory_report(context, &report);
    uint64_t cached = report.reserved_bytes - ACRE_MIN(report.used_bytes, report.reserved_bytes);
    uint64_t within = report.limit_bytes - ACRE_MIN(report.used_bytes, report.limit_bytes);
    *ret_bytes = ACRE_MIN(within, free_bytes + cached);
    return 0;
}

/* Pieces that fit into each device, and leave each slot something to do. */
static int size_pieces(struct work *work, uint32_t in_bytes, uint32_t out_bytes,
                       struct acre_error *err) {
    const struct pieces *pieces = work->pieces;
    uint64_t wanted = pieces->piece_bytes != 0 ? pieces->piece_bytes : PIECE_BYTES;
    uint64_t piece = ACRE_MAX(wanted / ACRE_MAX(in_bytes, out_bytes), (uint64_t)1);
    if (pieces->piece_bytes == 0) {
        uint64_t few = ACRE_MAX((uint64_t)PIECE_BYTES_FEW / ACRE_MAX(in_bytes, out_bytes),
                                pieces->items / ((uint64_t)PIECES_MANY * pieces->kernel_count));
        uint64_t shared = pieces->items / ((uint64_t)work->slot_count * pieces->kernel_count);
        piece = ACRE_MIN(piece, ACRE_MIN(few, ACRE_MAX(shared, (uint64_t)PIECE_ITEMS_MIN)));
    }
    for (uint32_t i = 0; i < pieces->kernel_count; i++) {
        uint64_t bytes;
        struct acre_pipeline_plan plan;
        int r = available(kernel_context(pieces->kernels[i]), &bytes, err);
        r = r == 0 ? acre_pipeline_plan(pieces->items, in_bytes, out_bytes, bytes, &plan, err) : r;
        if (r < 0) {
            return r;
        }
        piece = ACRE_MIN(piece, ACRE_MAX(plan.part_items / work->slot_count, (uint64_t)1));
    }
    work->piece_items = ACRE_MIN(piece, (uint64_t)UINT32_MAX);
    return 0;
}

/* Half of the processors copy, the caller's among them. */
static uint32_t count_helpers(const struct pieces *pieces, uint32_t item_bytes) {
    uint32_t threads = acre_cpu_count() / 2 / pieces->kernel_count;
    return threads < 2 || pieces->items < HELPED_BYTES / item_bytes
               ? 0
               : ACRE_MIN(threads - 1, (uint32_t)CREW_HELPERS_MAX);
}

static void run_all(struct work *work, struct drive *drives) {
    uint32_t count = work->pieces->kernel_count;
    uint32_t started = 1; /* the first one is this thread's */
    for (; started < count; started++) {
        int error =
            acre_thread_start(&drives[started].thread, "acre-drive", run_drive, &drives[started]);
        if (error != 0) {
            struct acre_error err = {0};
            fail_at(work, 0, acre_fail_errno(&err, error, "thread"), &err);
            break;
        }
    }
    run_drive(&drives[0]);
    for (uint32_t i = 1; i < started; i++) {
        pthread_join(drives[i].thread, NULL);
    }
}

static void write_report(const struct work *work, double item_bytes, double seconds,
                         struct acre_pipeline_report *report) {
    const struct pieces *pieces = work->pieces;
    double us_all = work->timed_items > 0
                        ? work->kernel_us / (double)work->timed_items * (double)pieces->items
                        : 0;
    double share = us_all / (seconds * 1e6 * pieces->kernel_count);
    *report = (struct acre_pipeline_report){
        .pieces = atomic_load(&work->taken),
        .seconds = seconds,
        .items_per_ms = (double)pieces->items / (seconds * 1e3),
        .mb_per_s = (double)pieces->items * item_bytes / (seconds * 1e6),
        .kernel_efficiency = work->timed_items > 0 ? ACRE_MIN(share, 1.0) : -1,
        .failed_item = work->result < 0 ? work->failed_item : UINT64_MAX};
}

int pieces_run(const struct pieces *pieces, struct acre_pipeline_report *ret_report,
               struct acre_error *err) {
    uint32_t in_bytes = 0;
    uint32_t out_bytes = 0;
    int r = check(pieces, &in_bytes, &out_bytes, err);
    if (r < 0) {
        return r;
    }
    struct work work = {.pieces = pieces,
                        .slot_count = pieces->slots != 0 ? pieces->slots : SLOTS,
                        .helpers = count_helpers(pieces, in_bytes + out_bytes),
                        .is_profiled = ret_report != NULL,
                        .failed_item = UINT64_MAX};
    r = pieces->items > 0 ? size_pieces(&work, in_bytes, out_bytes, err) : 0;
    if (r < 0) {
        return r;
    }
    struct drive *drives = calloc(pieces->kernel_count, sizeof(*drives));
    if (drives == NULL) {
        return acre_fail(err, ACRE_ENOMEM, "out of host memory for the slots");
    }
    pthread_mutex_init(&work.lock, NULL);
    for (uint32_t i = 0; i < pieces->kernel_count; i++) {
        drives[i].work = &work;
        drives[i].kernel = pieces->kernels[i];
        drives[i].context = kernel_context(pieces->kernels[i]);
    }
    uint64_t begun_ns = acre_monotonic_ns();
    if (pieces->items > 0) {
        run_all(&work, drives);
    }
    double seconds = (double)ACRE_MAX(acre_monotonic_ns() - begun_ns, (uint64_t)1) / 1e9;
    if (ret_report != NULL) {
        write_report(&work, (double)in_bytes + out_bytes, seconds, ret_report);
    }
    pthread_mutex_destroy(&work.lock);
    free(drives);
    return work.result < 0
               ? acre_fail(err, work.result, "in the piece that starts at item %" PRIu64 ": %s",
                           work.failed_item, work.failure.text)
               : 0;
}
