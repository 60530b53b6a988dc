/* profile.c - timings of a stream's work: two driver events around each piece.
 *
 * Events use the device's clock, calls the host's. One more event, on a stream without work, is
 * recorded and waited for between two reads of the host's clock: that pairs the clocks to within
 * half of the narrowest of a few such windows. The driver returns distances in milliseconds as
 * floats (24 bits), so the clocks are paired again whenever the timings have been read: the
 * distances stay short, and exact to about a microsecond.
 *
 * Only the newest pieces are kept; older ones are overwritten. */
#include "compute/gpu/entries.h"
#include "compute/gpu/seat.h"
#include "core/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { KEPT_MAX = 1024, PAIRINGS = 3, EVENT_TIMED = 0 };

struct gpu_profile {
    gpu_handle base; /* event; and when it was, by the host */
    uint64_t base_ns;
    uint32_t first, count; /* of the pieces */
    struct profile_piece {
        gpu_handle start, end; /* made when first used, then used again */
        uint64_t called_ns;
        uint64_t bytes;
        char name[48];
    } pieces[KEPT_MAX];
};

static int pair_clocks(const struct gpu_seat *seat, struct gpu_profile *profile) {
    const struct gpu_driver *driver = &seat->gpu->driver;
    uint64_t best_ns = UINT64_MAX;
    for (int i = 0; i < PAIRINGS; i++) {
        gpu_handle event;
        int code = driver->event_create(&event, EVENT_TIMED);
        if (code != 0) {
            return code;
        }
        uint64_t before_ns = acre_monotonic_ns();
        code = driver->event_record(event, seat->side);
        code = code == 0 ? driver->event_wait(event) : code;
        uint64_t window_ns = acre_monotonic_ns() - before_ns;
        gpu_handle loser = event;
        if (code == 0 && window_ns < best_ns) {
            loser = profile->base;
            profile->base = event;
            profile->base_ns = before_ns + window_ns / 2;
            best_ns = window_ns;
        }
        if (loser != 0) {
            driver->event_destroy(loser);
        }
        if (code != 0) {
            return code;
        }
    }
    return 0;
}

int gpu_profile(void *self, uint64_t handle, bool on, struct acre_error *err) {
    struct gpu_seat *seat = self;
    struct gpu_stream *stream = gpu_stream_of(handle);
    if (!on) {
        stream->is_profiled = false; /* what was measured can still be read */
        return 0;
    }
    int r = gpu_enter(seat, err);
    if (r < 0) {
        return r;
    }
    if (stream->profile == NULL) {
        stream->profile = calloc(1, sizeof(*stream->profile));
        if (stream->profile == NULL) {
            return acre_fail(err, ACRE_ENOMEM, "profile");
        }
    }
    if (stream->profile->count == 0) {
        int code = pair_clocks(seat, stream->profile);
        if (code != 0) {
            return gpu_fail(seat->gpu, seat, code, seat->gpu->names->event_record, err);
        }
    }
    stream->is_profiled = true;
    return 0;
}

int gpu_profile_begin(struct gpu_seat *seat, struct gpu_stream *stream, const char *name,
                      uint64_t bytes, struct acre_error *err) {
    const struct gpu *gpu = seat->gpu;
    struct gpu_profile *profile = stream->profile;
    uint64_t called_ns = acre_monotonic_ns();
    if (profile->count == KEPT_MAX) {
        profile->first = (profile->first + 1) % KEPT_MAX;
        profile->count--;
    }
    struct profile_piece *piece = &profile->pieces[(profile->first + profile->count) % KEPT_MAX];
    int code = 0;
    if (piece->start == 0) {
        code = gpu->driver.event_create(&piece->start, EVENT_TIMED);
    }
    if (code == 0 && piece->end == 0) {
        code = gpu->driver.event_create(&piece->end, EVENT_TIMED);
    }
    code = code == 0 ? gpu->driver.event_record(piece->start, stream->stream) : code;
    if (code != 0) {
        return gpu_fail(gpu, seat, code, gpu->names->event_record, err);
    }
    piece->called_ns = called_ns;
    piece->bytes = bytes;
    snprintf(piece->name, sizeof(piece->name), "%s", name);
    return 0;
}

int gpu_profile_end(struct gpu_seat *seat, struct gpu_stream *stream, struct acre_error *err) {
    const struct gpu *gpu = seat->gpu;
    struct gpu_profile *profile = stream->profile;
    const struct profile_piece *piece =
        &profile->pieces[(profile->first + profile->count) % KEPT_MAX];
    int code = gpu->driver.event_record(piece->end, stream->stream);
    if (code != 0) {
        return gpu_fail(gpu, seat, code, gpu->names->event_record, err);
    }
    profile->count++;
    return 0;
}

static int measure(const struct gpu *gpu, const struct gpu_profile *profile,
                   const struct profile_piece *piece, struct acre_timing *ret_timing) {
    float running_ms = 0;
    float started_ms = 0;
    int code = gpu->driver.event_wait(piece->end);
    code = code == 0 ? gpu->driver.event_between(&running_ms, piece->start, piece->end) : code;
    code = code == 0 ? gpu->driver.event_between(&started_ms, profile->base, piece->start) : code;
    if (code != 0) {
        return code;
    }
    double called_us = (double)(int64_t)(piece->called_ns - profile->base_ns) / 1e3;
    double queued_us = (double)started_ms * 1e3 - called_us;
    *ret_timing = (struct acre_timing){.bytes = piece->bytes,
                                       .queued_us = queued_us > 0 ? queued_us : 0,
                                       .running_us = (double)running_ms * 1e3};
    snprintf(ret_timing->name, sizeof(ret_timing->name), "%s", piece->name);
    return 0;
}

int gpu_timings(void *self, uint64_t handle, struct acre_timing *ret_timings, uint32_t max,
                uint32_t *ret_count, struct acre_error *err) {
    struct gpu_seat *seat = self;
    struct gpu_profile *profile = gpu_stream_of(handle)->profile;
    int r = gpu_enter(seat, err);
    if (r < 0) {
        return r;
    }
    uint32_t told = 0;
    uint32_t count = profile != NULL ? ACRE_MIN(profile->count, max) : 0;
    int code = 0;
    for (; told < count && code == 0; told++) {
        code = measure(seat->gpu, profile, &profile->pieces[(profile->first + told) % KEPT_MAX],
                       &ret_timings[told]);
    }
    if (code == 0 && told > 0) {
        profile->first = (profile->first + told) % KEPT_MAX;
        profile->count -= told;
        code = profile->count == 0 ? pair_clocks(seat, profile) : 0;
    }
    if (code != 0) {
        return gpu_fail(seat->gpu, seat, code, seat->gpu->names->event_between, err);
    }
    *ret_count = told;
    return 0;
}

void gpu_profile_free(struct gpu_seat *seat, struct gpu_stream *stream) {
    struct gpu_profile *profile = stream->profile;
    const struct gpu_driver *driver = &seat->gpu->driver;
    if (profile == NULL) {
        return;
    }
    for (size_t i = 0; i < KEPT_MAX; i++) {
        gpu_handle events[] = {profile->pieces[i].start, profile->pieces[i].end};
        for (size_t j = 0; j < ACRE_COUNT(events); j++) {
            if (events[j] != 0) {
                driver->event_destroy(events[j]);
            }
        }
    }
    if (profile->base != 0) {
        driver->event_destroy(profile->base);
    }
}
