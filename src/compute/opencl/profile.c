/* profile.c - how long the pieces of a stream's work took, by the driver's own clock.
 *
 * Whether a queue measures is decided when it is created. A stream to be measured gets a second
 * queue, and continues there after the work in the first (and back). Each measured piece keeps its
 * event until it is collected; past a limit, further pieces are not kept. */
#include "compute/opencl/seat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MEASURED_MAX = 1 << 16 }; /* pieces not asked for yet: some 20 MiB with their events */

opencl_queue opencl_stream_queue(const struct opencl_stream *stream) {
    return stream->queues[stream->is_measured];
}

opencl_event *opencl_measure(const struct opencl_stream *stream, opencl_event *event) {
    return stream->is_measured ? event : NULL;
}

static bool has_room(struct opencl_stream *stream) {
    if (stream->measured_count < stream->measured_room) {
        return true;
    }
    uint32_t room = ACRE_MAX(2 * stream->measured_room, 64U);
    struct opencl_measured *measured =
        room <= MEASURED_MAX ? reallocarray(stream->measured, room, sizeof(*measured)) : NULL;
    if (measured == NULL) {
        return false;
    }
    stream->measured = measured;
    stream->measured_room = room;
    return true;
}

void opencl_measured_keep(struct opencl_seat *seat, struct opencl_stream *stream,
                          opencl_event event, const char *name, uint64_t bytes) {
    if (event == NULL) {
        return;
    }
    if (!has_room(stream)) {
        seat->api->release_event(event);
        return;
    }
    struct opencl_measured *kept = &stream->measured[stream->measured_count++];
    *kept = (struct opencl_measured){.event = event, .bytes = bytes};
    snprintf(kept->name, sizeof(kept->name), "%s", name);
}

void opencl_measured_drop(struct opencl_seat *seat, struct opencl_stream *stream) {
    for (uint32_t i = 0; i < stream->measured_count; i++) {
        seat->api->release_event(stream->measured[i].event);
    }
    stream->measured_count = 0;
}

/* The other queue goes on after what this one holds. */
static int32_t chain(struct opencl_seat *seat, opencl_queue from, opencl_queue to,
                     const char **ret_call) {
    const struct opencl_api *api = seat->api;
    opencl_event event = NULL;
    *ret_call = "clEnqueueMarkerWithWaitList";
    int32_t code = api->marker(from, 0, NULL, &event);
    if (code != OPENCL_SUCCESS) {
        return code;
    }
    *ret_call = "clFlush";
    code = api->flush(from);
    if (code == OPENCL_SUCCESS) {
        *ret_call = "clEnqueueBarrierWithWaitList";
        code = api->barrier(to, 1, &event, NULL);
    }
    api->release_event(event);
    return code;
}

int opencl_profile(void *in, uint64_t on, bool is_on, struct acre_error *err) {
    struct opencl_seat *seat = in;
    struct opencl_stream *stream = (struct opencl_stream *)(uintptr_t)on;
    if (stream->is_measured == is_on) {
        return 0;
    }
    int32_t code = OPENCL_SUCCESS;
    if (stream->queues[1] == NULL) {
        opencl_queue queue = seat->api->create_queue(seat->context, seat->device,
                                                     OPENCL_QUEUE_PROFILING_ENABLE, &code);
        if (code != OPENCL_SUCCESS) {
            return opencl_fail(err, code, "clCreateCommandQueue");
        }
        stream->queues[1] = queue;
    }
    const char *call;
    code = chain(seat, stream->queues[stream->is_measured], stream->queues[is_on], &call);
    if (code != OPENCL_SUCCESS) {
        return opencl_fail(err, code, call);
    }
    stream->is_measured = is_on;
    return 0;
}

static bool read_times(const struct opencl_api *api, opencl_event event, uint64_t times_ns[3]) {
    static const uint32_t whats[3] = {OPENCL_PROFILING_COMMAND_QUEUED,
                                      OPENCL_PROFILING_COMMAND_START, OPENCL_PROFILING_COMMAND_END};
    for (size_t i = 0; i < ACRE_COUNT(whats); i++) {
        if (api->event_times(event, whats[i], sizeof(times_ns[i]), &times_ns[i], NULL) !=
            OPENCL_SUCCESS) {
            return false;
        }
    }
    return true;
}

static double us_between(uint64_t begin_ns, uint64_t end_ns) {
    return end_ns > begin_ns ? (double)(end_ns - begin_ns) / 1000 : 0;
}

int opencl_timings(void *in, uint64_t on, struct acre_timing *ret_timings, uint32_t max,
                   uint32_t *ret_count, struct acre_error *err) {
    (void)err;
    struct opencl_seat *seat = in;
    struct opencl_stream *stream = (struct opencl_stream *)(uintptr_t)on;
    uint32_t told = 0;
    uint32_t used = 0;
    for (; used < stream->measured_count && told < max; used++) {
        const struct opencl_measured *measured = &stream->measured[used];
        uint64_t times_ns[3];
        if (read_times(seat->api, measured->event, times_ns)) { /* work that failed has none */
            struct acre_timing *timing = &ret_timings[told++];
            *timing = (struct acre_timing){.bytes = measured->bytes,
                                           .queued_us = us_between(times_ns[0], times_ns[1]),
                                           .running_us = us_between(times_ns[1], times_ns[2])};
            memcpy(timing->name, measured->name, sizeof(timing->name));
        }
        seat->api->release_event(measured->event);
    }
    stream->measured_count -= used;
    if (used > 0) {
        memmove(stream->measured, stream->measured + used,
                stream->measured_count * sizeof(*stream->measured));
    }
    *ret_count = told;
    return 0;
}
