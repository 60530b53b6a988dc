/* region.c - regions of an OpenCL seat, and copies between them.
 *
 * Three kinds of memory, one interface:
 *   shared virtual memory   addresses; copies and fills by address
 *   buffer objects          parts for kernels are sub-buffers, kept in a small direct-mapped cache:
 *                           a launch whose buffers have not moved creates none
 *   host memory             copied in seat. A copy within host memory, or a fill of it, must
 *                           happen in stream order, so it goes through a piece of the stream's
 *                           device memory where addresses will not do. */
#include "compute/opencl/seat.h"

#include <inttypes.h>
#include <stdlib.h>

/* --- regions -------------------------------------------------------------------------------- */

static int refuse(const struct opencl_seat *seat, uint64_t bytes, const char *call,
                  const char *answer, struct acre_error *err) {
    return acre_fail(err, ACRE_ENOMEM,
                     "%s: %s for %" PRIu64 " bytes; the device has %" PRIu64
                     " bytes and allocates at most %" PRIu64 " at once",
                     call, answer, bytes, seat->total_bytes, seat->alloc_max_bytes);
}

static int make_buffer(struct opencl_seat *seat, struct opencl_region *region, uint64_t flags,
                       struct acre_error *err) {
    int32_t code = OPENCL_SUCCESS;
    opencl_mem mem = seat->api->create_buffer(seat->context, OPENCL_MEM_READ_WRITE | flags,
                                              region->bytes, region->base, &code);
    if (code != OPENCL_SUCCESS) {
        char name[32];
        int r = opencl_fail(err, code, "clCreateBuffer");
        return r != ACRE_ENOMEM ? r
                                : refuse(seat, region->bytes, "clCreateBuffer",
                                         opencl_error_name(code, name), err);
    }
    region->mem = mem;
    return 0;
}

static int make_memory(struct opencl_seat *seat, struct opencl_region *region,
                       struct acre_error *err) {
    if (region->kind != ACRE_MEMORY_DEVICE) {
        region->is_svm = seat->has_system_svm;
        bool is_reached = region->kind == ACRE_MEMORY_MAPPED && seat->is_cpu && !region->is_svm;
        return is_reached ? make_buffer(seat, region, OPENCL_MEM_USE_HOST_PTR, err) : 0;
    }
    if (!seat->has_svm) {
        return make_buffer(seat, region, 0, err);
    }
    region->base =
        region->bytes <= seat->alloc_max_bytes
            ? seat->api->svm_alloc(seat->context, OPENCL_MEM_READ_WRITE, region->bytes, 0)
            : NULL;
    region->is_svm = true;
    return region->base != NULL ? 0 : refuse(seat, region->bytes, "clSVMAlloc", "no memory", err);
}

int opencl_region_make(struct opencl_seat *seat, enum acre_memory kind, uint64_t bytes, void *host,
                       struct opencl_region **ret_region, struct acre_error *err) {
    ACRE_ASSERT(bytes > 0 && (kind == ACRE_MEMORY_DEVICE) == (host == NULL));
    struct opencl_region *region = calloc(1, sizeof(*region));
    if (region == NULL) {
        return acre_fail(err, ACRE_ENOMEM, "region");
    }
    region->kind = kind;
    region->bytes = bytes;
    region->base = host;
    int r = make_memory(seat, region, err);
    if (r < 0) {
        free(region);
        return r;
    }
    pthread_mutex_init(&region->lock, NULL);
    *ret_region = region;
    return 0;
}

void opencl_region_free(struct opencl_seat *seat, struct opencl_region *region) {
    for (size_t i = 0; i < OPENCL_PARTS_CACHED; i++) {
        if (region->parts[i].mem != NULL) {
            seat->api->release_mem(region->parts[i].mem);
        }
    }
    if (region->mem != NULL) {
        seat->api->release_mem(region->mem);
    }
    if (region->kind == ACRE_MEMORY_DEVICE && region->base != NULL) {
        seat->api->svm_free(seat->context, region->base);
    }
    pthread_mutex_destroy(&region->lock);
    free(region);
}

/* Drivers that share the host's memory would give more than there is. */
static bool take(struct opencl_seat *seat, uint64_t bytes) {
    pthread_mutex_lock(&seat->lock);
    bool has_room = bytes <= seat->total_bytes - seat->used_bytes;
    seat->used_bytes += has_room ? bytes : 0;
    pthread_mutex_unlock(&seat->lock);
    return has_room;
}

static void give_back(struct opencl_seat *seat, uint64_t bytes) {
    pthread_mutex_lock(&seat->lock);
    seat->used_bytes -= bytes;
    pthread_mutex_unlock(&seat->lock);
}

static uint64_t taken_by(enum acre_memory kind, uint64_t bytes) {
    return kind == ACRE_MEMORY_DEVICE ? bytes : 0;
}

int opencl_region_create(void *in, enum acre_memory kind, uint64_t bytes, void *host,
                         struct native_region *ret_region, struct acre_error *err) {
    struct opencl_seat *seat = in;
    struct opencl_region *region = NULL;
    if (!take(seat, taken_by(kind, bytes))) {
        return refuse(seat, bytes, "device memory", "out of memory", err);
    }
    int r = opencl_region_make(seat, kind, bytes, host, &region, err);
    if (r < 0) {
        give_back(seat, taken_by(kind, bytes));
        return r;
    }
    pthread_mutex_lock(&seat->lock);
    opencl_link_add(&seat->regions, &region->link);
    pthread_mutex_unlock(&seat->lock);
    *ret_region = (struct native_region){.handle = (uintptr_t)region,
                                         .address = region->is_svm ? (uintptr_t)region->base : 0};
    return 0;
}

void opencl_region_destroy(void *in, uint64_t handle) {
    struct opencl_seat *seat = in;
    struct opencl_region *region = (struct opencl_region *)(uintptr_t)handle;
    pthread_mutex_lock(&seat->lock);
    opencl_link_remove(&region->link);
    pthread_mutex_unlock(&seat->lock);
    uint64_t bytes = taken_by(region->kind, region->bytes);
    opencl_region_free(seat, region);
    give_back(seat, bytes);
}

/* --- parts ---------------------------------------------------------------------------------- */

static int make_part(struct opencl_seat *seat, struct opencl_region *region, uint64_t offset,
                     uint64_t length, opencl_mem *ret_part, struct acre_error *err) {
    struct opencl_sub_range range = {.origin = offset, .size = length};
    int32_t code = OPENCL_SUCCESS;
    opencl_mem part = seat->api->create_sub_buffer(region->mem, OPENCL_MEM_READ_WRITE,
                                                   OPENCL_BUFFER_CREATE_TYPE_REGION, &range, &code);
    if (code != OPENCL_SUCCESS) {
        return opencl_fail(err, code, "clCreateSubBuffer");
    }
    *ret_part = part;
    return 0;
}

int opencl_region_part(struct opencl_seat *seat, struct opencl_region *region, uint64_t offset,
                       uint64_t length, opencl_mem *ret_part, struct acre_error *err) {
    ACRE_ASSERT(length > 0 && offset < region->bytes && length <= region->bytes - offset);
    if (region->mem == NULL) {
        return acre_fail(err, ACRE_EUNSUPPORTED,
                         "kernels on this device cannot use host memory; accepted: device memory");
    }
    if (offset % seat->part_align_bytes != 0) {
        return acre_fail(err, ACRE_EUNSUPPORTED,
                         "it starts at byte %" PRIu64
                         " of its block; accepted: multiples of %u on this device",
                         offset, seat->part_align_bytes);
    }
    uint64_t key = offset / seat->part_align_bytes ^ length / seat->part_align_bytes * 31;
    struct opencl_part *slot = &region->parts[key % OPENCL_PARTS_CACHED];
    pthread_mutex_lock(&region->lock);
    int r = 0;
    if (slot->mem == NULL || slot->offset != offset || slot->length != length) {
        opencl_mem part = NULL;
        r = make_part(seat, region, offset, length, &part, err);
        if (r == 0 && slot->mem != NULL) {
            seat->api->release_mem(slot->mem); /* launches that use it hold it */
        }
        if (r == 0) {
            *slot = (struct opencl_part){.offset = offset, .length = length, .mem = part};
        }
    }
    if (r == 0) {
        seat->api->retain_mem(slot->mem);
        *ret_part = slot->mem;
    }
    pthread_mutex_unlock(&region->lock);
    return r;
}

/* --- copies --------------------------------------------------------------------------------- */

struct side { /* of a copy */
    const struct opencl_region *region;
    uint64_t offset;
};

static struct side side_of(uint64_t handle, uint64_t offset, uint64_t bytes) {
    const struct opencl_region *region = (const struct opencl_region *)(uintptr_t)handle;
    ACRE_ASSERT(offset <= region->bytes && bytes <= region->bytes - offset);
    return (struct side){region, offset};
}

static bool is_host(struct side side) {
    return side.region->kind != ACRE_MEMORY_DEVICE;
}

static char *address(struct side side) {
    return side.region->base + side.offset;
}

static int ended(struct opencl_seat *seat, struct opencl_stream *stream, int32_t code,
                 const char *call, opencl_event event, const char *name, uint64_t bytes,
                 struct acre_error *err) {
    if (code != OPENCL_SUCCESS) {
        return opencl_fail(err, code, call);
    }
    opencl_measured_keep(seat, stream, event, name, bytes);
    return 0;
}

/* One command: anything but host to host without addresses. */
static int copy_piece(struct opencl_seat *seat, struct opencl_stream *stream, struct side to,
                      struct side from, uint64_t bytes, struct acre_error *err) {
    const struct opencl_api *api = seat->api;
    opencl_queue queue = opencl_stream_queue(stream);
    opencl_event event = NULL;
    opencl_event *measure = opencl_measure(stream, &event);
    const char *name = is_host(to) == is_host(from) ? "copy" : is_host(to) ? "copy out" : "copy in";
    int32_t code;
    const char *call;
    if (seat->has_svm) {
        call = "clEnqueueSVMMemcpy";
        code = api->svm_copy(queue, false, address(to), address(from), bytes, 0, NULL, measure);
    } else if (is_host(to)) {
        call = "clEnqueueReadBuffer";
        code = api->read(queue, from.region->mem, false, from.offset, bytes, address(to), 0, NULL,
                         measure);
    } else if (is_host(from)) {
        call = "clEnqueueWriteBuffer";
        code = api->write(queue, to.region->mem, false, to.offset, bytes, address(from), 0, NULL,
                          measure);
    } else {
        call = "clEnqueueCopyBuffer";
        code = api->copy(queue, from.region->mem, to.region->mem, from.offset, to.offset, bytes, 0,
                         NULL, measure);
    }
    return ended(seat, stream, code, call, event, name, bytes, err);
}

static int need_scratch(struct opencl_seat *seat, struct opencl_stream *stream,
                        struct acre_error *err) {
    return stream->scratch != NULL
               ? 0
               : opencl_region_make(seat, ACRE_MEMORY_DEVICE, OPENCL_SCRATCH_BYTES, NULL,
                                    &stream->scratch, err);
}

int opencl_copy(void *in, uint64_t on, const struct native_copy *copy, struct acre_error *err) {
    struct opencl_seat *seat = in;
    struct opencl_stream *stream = (struct opencl_stream *)(uintptr_t)on;
    struct side to = side_of(copy->to, copy->to_offset, copy->bytes);
    struct side from = side_of(copy->from, copy->from_offset, copy->bytes);
    if (seat->has_svm || !is_host(to) || !is_host(from)) {
        return copy_piece(seat, stream, to, from, copy->bytes, err);
    }
    int r = need_scratch(seat, stream, err);
    for (uint64_t done = 0; done < copy->bytes && r == 0; done += OPENCL_SCRATCH_BYTES) {
        uint64_t bytes = ACRE_MIN(copy->bytes - done, (uint64_t)OPENCL_SCRATCH_BYTES);
        struct side scratch = {stream->scratch, 0};
        r = copy_piece(seat, stream, scratch, (struct side){from.region, from.offset + done}, bytes,
                       err);
        r = r == 0 ? copy_piece(seat, stream, (struct side){to.region, to.offset + done}, scratch,
                                bytes, err)
                   : r;
    }
    return r;
}

static int fill_piece(struct opencl_seat *seat, struct opencl_stream *stream, struct side to,
                      uint64_t bytes, const struct native_fill *fill, struct acre_error *err) {
    const struct opencl_api *api = seat->api;
    opencl_queue queue = opencl_stream_queue(stream);
    opencl_event event = NULL;
    opencl_event *measure = opencl_measure(stream, &event);
    int32_t code;
    if (to.region->is_svm) {
        code = api->svm_fill(queue, address(to), &fill->pattern, fill->pattern_bytes, bytes, 0,
                             NULL, measure);
    } else {
        code = api->fill(queue, to.region->mem, &fill->pattern, fill->pattern_bytes, to.offset,
                         bytes, 0, NULL, measure);
    }
    return ended(seat, stream, code,
                 to.region->is_svm ? "clEnqueueSVMMemFill" : "clEnqueueFillBuffer", event, "fill",
                 bytes, err);
}

int opencl_fill(void *in, uint64_t on, const struct native_fill *fill, struct acre_error *err) {
    struct opencl_seat *seat = in;
    struct opencl_stream *stream = (struct opencl_stream *)(uintptr_t)on;
    struct side to = side_of(fill->to, fill->to_offset, fill->bytes);
    if (to.region->is_svm || !is_host(to)) {
        return fill_piece(seat, stream, to, fill->bytes, fill, err);
    }
    int r = need_scratch(seat, stream, err);
    struct side scratch = {stream->scratch, 0};
    uint64_t filled = ACRE_MIN(fill->bytes, (uint64_t)OPENCL_SCRATCH_BYTES);
    r = r == 0 ? fill_piece(seat, stream, scratch, filled, fill, err) : r;
    for (uint64_t done = 0; done < fill->bytes && r == 0; done += filled) {
        r = copy_piece(seat, stream, (struct side){to.region, to.offset + done}, scratch,
                       ACRE_MIN(fill->bytes - done, filled), err);
    }
    return r;
}
