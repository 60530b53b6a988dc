/* stream.c - streams and the work queued on them: copies, fills, launches, signals, waits.
 *
 * The launch is the hot path: handles are addresses, the arguments' pointers are built on the
 * stack, and then there is one driver call. No lock, no allocation, no lookup. For a signal, the
 * device writes 8 bytes to host memory; the driver orders the write after all earlier work and its
 * results (the default flags: with a barrier).
 *
 * Streams do not wait for the driver's default stream, which is not used here. */
#include "compute/gpu/entries.h"
#include "compute/gpu/seat.h"

#include <stdlib.h>
#include <unistd.h>

enum { STREAM_NON_BLOCKING = 1, WRITE_WITH_BARRIER = 0 };

/* A lane with the fewest streams. What is queued waits only for signals that were queued before it,
 * so streams that share a lane cannot wait for each other for ever. */
static int take_lane(struct gpu_seat *seat, struct gpu_stream *stream, struct acre_error *err) {
    const struct gpu *gpu = seat->gpu;
    pthread_mutex_lock(&seat->lock);
    uint32_t lane = 0;
    for (uint32_t i = 1; i < seat->lane_count; i++) {
        lane = seat->lanes[i].users < seat->lanes[lane].users ? i : lane;
    }
    int code = seat->lanes[lane].stream != 0
                   ? 0
                   : gpu->driver.stream_create(&seat->lanes[lane].stream, STREAM_NON_BLOCKING);
    if (code == 0) {
        seat->lanes[lane].users++;
        stream->lane = lane;
        stream->stream = seat->lanes[lane].stream;
    }
    pthread_mutex_unlock(&seat->lock);
    return code == 0 ? 0 : gpu_fail(gpu, seat, code, gpu->names->stream_create, err);
}

static void leave_lane(struct gpu_seat *seat, const struct gpu_stream *stream) {
    pthread_mutex_lock(&seat->lock);
    seat->lanes[stream->lane].users--;
    pthread_mutex_unlock(&seat->lock);
}

static bool is_alone(const struct gpu_seat *seat) {
    bool is_alone = true;
    for (const struct gpu_seat *other = seat->gpu->seats; other != NULL; other = other->next) {
        is_alone = is_alone && (other == seat || other->index != seat->index);
    }
    return is_alone;
}

static int take_queue(struct gpu_seat *seat, struct acre_error *err) {
    struct gpu *gpu = seat->gpu;
    int r = 0;
    pthread_mutex_lock(&gpu->lock);
    if (gpu->queues != 0 && seat->residents == seat->residents_max) {
        r = acre_fail(err, ACRE_ELIMIT,
                      "no queue is left for another resident kernel (at most %u of %u)",
                      seat->residents_max, gpu->queues);
    } else if (gpu->queues != 0 && !is_alone(seat)) {
        r = acre_fail(err, ACRE_ELIMIT,
                      "another context of this process uses the device and shares its queues");
    } else {
        seat->residents++;
    }
    pthread_mutex_unlock(&gpu->lock);
    return r;
}

static void leave_queue(struct gpu_seat *seat) {
    pthread_mutex_lock(&seat->gpu->lock);
    seat->residents--;
    pthread_mutex_unlock(&seat->gpu->lock);
}

int gpu_stream_own(void *self, uint64_t handle, struct acre_error *err) {
    struct gpu_seat *seat = self;
    const struct gpu *gpu = seat->gpu;
    struct gpu_stream *stream = gpu_stream_of(handle);
    gpu_handle own;
    int r = gpu_enter(seat, err);
    if (r < 0 || stream->lane == GPU_LANES) {
        return r;
    }
    r = take_queue(seat, err);
    if (r < 0) {
        return r;
    }
    int code = gpu->driver.stream_create(&own, STREAM_NON_BLOCKING);
    if (code != 0) {
        leave_queue(seat);
        return gpu_fail(gpu, seat, code, gpu->names->stream_create, err);
    }
    leave_lane(seat, stream);
    stream->lane = GPU_LANES;
    stream->stream = own;
    return 0;
}

int gpu_stream_create(void *self, uint64_t word_region, uint64_t word_offset, uint64_t *ret_stream,
                      struct acre_error *err) {
    struct gpu_seat *seat = self;
    const struct gpu_region *words = gpu_region_of(word_region);
    ACRE_ASSERT(words->kind == ACRE_MEMORY_MAPPED && word_offset % sizeof(uint64_t) == 0 &&
                word_offset < words->bytes);
    int r = gpu_enter(seat, err);
    if (r < 0) {
        return r;
    }
    struct gpu_stream *stream = calloc(1, sizeof(*stream));
    if (stream == NULL) {
        return acre_fail(err, ACRE_ENOMEM, "stream");
    }
    stream->word = words->address + (uintptr_t)word_offset;
    r = take_lane(seat, stream, err);
    if (r < 0) {
        free(stream);
        return r;
    }
    gpu_link_in(seat, &seat->streams, &stream->link);
    *ret_stream = (uint64_t)(uintptr_t)stream;
    return 0;
}

void gpu_stream_destroy(void *self, uint64_t handle) {
    struct gpu_seat *seat = self;
    struct gpu_stream *stream = gpu_stream_of(handle);
    gpu_link_out(seat, &stream->link);
    if (gpu_enter(seat, NULL) == 0) {
        gpu_profile_free(seat, stream);
        if (stream->lane == GPU_LANES) {
            seat->gpu->driver.stream_destroy(stream->stream);
        }
    }
    if (stream->lane < GPU_LANES) {
        leave_lane(seat, stream);
    } else {
        leave_queue(seat);
    }
    free(stream->profile);
    free(stream);
}

/* --- copies and fills ----------------------------------------------------------------------- */

const char *gpu_copy_name(const struct native_copy *copy) {
    bool to_host = gpu_region_of(copy->to)->host != NULL;
    bool from_host = gpu_region_of(copy->from)->host != NULL;
    return to_host == from_host ? "copy" : to_host ? "copy out" : "copy in";
}

int gpu_copy(void *self, uint64_t handle, const struct native_copy *copy, struct acre_error *err) {
    struct gpu_seat *seat = self;
    struct gpu_stream *stream = gpu_stream_of(handle);
    uintptr_t to = gpu_region_at(copy->to, copy->to_offset, copy->bytes);
    uintptr_t from = gpu_region_at(copy->from, copy->from_offset, copy->bytes);
    int r = gpu_enter(seat, err);
    if (r == 0 && stream->is_profiled) {
        r = gpu_profile_begin(seat, stream, gpu_copy_name(copy), copy->bytes, err);
    }
    if (r < 0) {
        return r;
    }
    int code = seat->gpu->vendor->copy(seat->gpu, to, from, (size_t)copy->bytes, stream->stream);
    if (code != 0) {
        return gpu_fail(seat->gpu, seat, code, "copy", err);
    }
    return stream->is_profiled ? gpu_profile_end(seat, stream, err) : 0;
}

/* The largest unit that drivers can set at this address and the pattern is made of. */
static unsigned unit_of(uintptr_t to, uint32_t pattern_bytes) {
    unsigned unit = ACRE_MIN(pattern_bytes, 4U);
    while (to % unit != 0) {
        unit /= 2;
    }
    return unit;
}

static unsigned part_of(uint64_t pattern, unsigned unit, uint32_t index) {
    return (unsigned)(pattern >> (8 * unit * index) & (UINT64_MAX >> (64 - 8 * unit)));
}

uint32_t gpu_fill_steps(uintptr_t to, const struct native_fill *fill,
                        struct gpu_step steps[GPU_STEPS_MAX]) {
    uint32_t size = fill->pattern_bytes;
    ACRE_ASSERT((size == 1 || size == 2 || size == 4 || size == 8) && fill->bytes % size == 0);
    if (fill->bytes == 0) {
        return 0;
    }
    unsigned unit = unit_of(to, size);
    bool is_even = true; /* all parts are the same */
    for (uint32_t i = 0; i < size / unit; i++) {
        unsigned part = part_of(fill->pattern, unit, i);
        is_even &= part == part_of(fill->pattern, unit, 0);
        steps[i] = (struct gpu_step){
            .to = to + i * unit, .value = part, .element_bytes = unit, .count = 1};
    }
    if (is_even) {
        steps[0].count = (size_t)(fill->bytes / unit);
        return 1;
    }
    uint32_t count = size / unit;
    for (uint64_t have = size; have < fill->bytes; have *= 2) {
        steps[count++] = (struct gpu_step){.to = to + (uintptr_t)have,
                                           .from = to,
                                           .count = (size_t)ACRE_MIN(have, fill->bytes - have)};
    }
    return count;
}

static int take_step(const struct gpu *gpu, const struct gpu_step *step, gpu_handle stream) {
    switch (step->element_bytes) {
    case 1:
        return gpu->driver.set8(step->to, (unsigned char)step->value, step->count, stream);
    case 2:
        return gpu->driver.set16(step->to, (unsigned short)step->value, step->count, stream);
    case 4:
        return gpu->driver.set32(step->to, step->value, step->count, stream);
    default:
        return gpu->vendor->copy(gpu, step->to, step->from, step->count, stream);
    }
}

int gpu_fill(void *self, uint64_t handle, const struct native_fill *fill, struct acre_error *err) {
    struct gpu_seat *seat = self;
    struct gpu_stream *stream = gpu_stream_of(handle);
    struct gpu_step steps[GPU_STEPS_MAX];
    uint32_t count =
        gpu_fill_steps(gpu_region_of(fill->to)->address + (uintptr_t)fill->to_offset, fill, steps);
    int r = gpu_enter(seat, err);
    if (r == 0 && stream->is_profiled) {
        r = gpu_profile_begin(seat, stream, "fill", fill->bytes, err);
    }
    if (r < 0) {
        return r;
    }
    for (uint32_t i = 0; i < count; i++) {
        int code = take_step(seat->gpu, &steps[i], stream->stream);
        if (code != 0) {
            return gpu_fail(seat->gpu, seat, code, "fill", err);
        }
    }
    return stream->is_profiled ? gpu_profile_end(seat, stream, err) : 0;
}

/* --- launches ------------------------------------------------------------------------------- */

int gpu_args_make(const struct native_launch *launch, struct gpu_args *args,
                  struct acre_error *err) {
    ACRE_ASSERT(launch->arg_count <= ACRE_ARGS_MAX);
    for (uint32_t i = 0; i < launch->arg_count; i++) {
        const struct native_arg *arg = &launch->args[i];
        if (arg->kind == ACRE_NATIVE_BUFFER) {
            args->addresses[i] = gpu_region_of(arg->region)->address + (uintptr_t)arg->offset;
            args->pointers[i] = &args->addresses[i];
        } else if (arg->kind == ACRE_NATIVE_VALUE) {
            ACRE_ASSERT(arg->region < ACRE_EXTRA_MAX);
            args->pointers[i] = (void *)(uintptr_t)(launch->extra + arg->region);
        } else {
            return acre_fail(err, ACRE_EUNSUPPORTED,
                             "kernel '%s': argument %u is local memory; accepted: buffers and "
                             "values (on this device, declare local arrays in the kernel)",
                             gpu_kernel_of(launch->kernel)->name, i + 1);
        }
    }
    return 0;
}

int gpu_launch(void *self, uint64_t handle, const struct native_launch *launch,
               struct acre_error *err) {
    struct gpu_seat *seat = self;
    struct gpu_stream *stream = gpu_stream_of(handle);
    const struct gpu_kernel *kernel = gpu_kernel_of(launch->kernel);
    struct gpu_args args; /* not zeroed: only what is used is written */
    int r = gpu_args_make(launch, &args, err);
    r = r == 0 ? gpu_enter(seat, err) : r;
    if (r == 0 && stream->is_profiled) {
        r = gpu_profile_begin(seat, stream, kernel->name, 0, err);
    }
    if (r < 0) {
        return r;
    }
    const uint32_t *groups = launch->grid.groups;
    const uint32_t *group = launch->grid.group;
    int code = seat->gpu->driver.launch(kernel->function, groups[0], groups[1], groups[2], group[0],
                                        group[1], group[2], 0, stream->stream, args.pointers, NULL);
    if (code != 0) {
        r = gpu_fail(seat->gpu, seat, code, seat->gpu->names->launch, err);
        return acre_fail_in(err, r, "kernel '%s'", kernel->name);
    }
    return stream->is_profiled ? gpu_profile_end(seat, stream, err) : 0;
}

/* --- signals -------------------------------------------------------------------------------- */

int gpu_signal(void *self, uint64_t handle, uint64_t value, struct acre_error *err) {
    struct gpu_seat *seat = self;
    const struct gpu_stream *stream = gpu_stream_of(handle);
    int r = gpu_enter(seat, err);
    if (r < 0) {
        return r;
    }
    int code = seat->gpu->driver.write64(stream->stream, stream->word, value, WRITE_WITH_BARRIER);
    return code == 0 ? 0 : gpu_fail(seat->gpu, seat, code, seat->gpu->names->write64, err);
}

int gpu_wait(void *self, uint64_t handle, uint64_t word_region, uint64_t word_offset,
             uint64_t value, struct acre_error *err) {
    struct gpu_seat *seat = self;
    const struct gpu_vendor *vendor = seat->gpu->vendor;
    if (vendor->wait64 == NULL) {
        return acre_fail(err, ACRE_EUNSUPPORTED, "streams of this device cannot wait for memory");
    }
    int r = gpu_enter(seat, err);
    if (r < 0) {
        return r;
    }
    uintptr_t address = gpu_region_of(word_region)->address + (uintptr_t)word_offset;
    int code = vendor->wait64(seat->gpu, gpu_stream_of(handle)->stream, address, value);
    return code == 0 ? 0 : gpu_fail(seat->gpu, seat, code, "wait of a stream", err);
}

/* On a thread of the driver; calls of the driver are forbidden here. */
static void add_one(void *user) {
    uint64_t one = 1;
    /* The counter of an eventfd is full after 2^64 - 2 of these: nobody is told less for it. */
    ssize_t written = write((int)(intptr_t)user, &one, sizeof(one));
    (void)written;
}

int gpu_notify(void *self, uint64_t handle, int event_fd, struct acre_error *err) {
    struct gpu_seat *seat = self;
    int r = gpu_enter(seat, err);
    if (r < 0) {
        return r;
    }
    const struct gpu_vendor *vendor = seat->gpu->vendor;
    gpu_handle stream = gpu_stream_of(handle)->stream;
    void *user = (void *)(intptr_t)event_fd;
    int code = vendor->host_function != NULL
                   ? vendor->host_function(seat->gpu, stream, add_one, user)
                   : seat->gpu->driver.host_function(stream, add_one, user);
    return code == 0 ? 0 : gpu_fail(seat->gpu, seat, code, seat->gpu->names->host_function, err);
}
