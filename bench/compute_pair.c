/* compute_pair.c - both sides in turn: acre, raw, acre, raw ... so that what changes on the machine
 * in the meantime (clocks, neighbours) changes for both. Medians are compared. */
#include "compute.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t compute_pick(const struct compute_bench *bench, uint64_t full, uint64_t small) {
    return bench->is_full ? full : small;
}

/* --- memory of both sides ------------------------------------------------------------------- */

static int reserve_acre(struct compute_bench *bench, const struct compute_memory *memory,
                        struct acre_error *err) {
    int r = 0;
    for (size_t i = 0; i < ACRE_COUNT(bench->device_memory) && r == 0; i++) {
        uint64_t bytes = memory->device_bytes[i];
        if (bytes > 0) {
            struct acre_buffer *buffer = &bench->device_memory[i];
            r = acre_buffer_alloc(bench->stream, ACRE_MEMORY_DEVICE, bytes, buffer, err);
            r = r == 0 ? acre_fill(bench->stream, *buffer, 0, bytes, 0x3f800000, 4, err) : r;
        }
    }
    for (size_t i = 0; i < ACRE_COUNT(bench->host_memory) && r == 0; i++) {
        if (memory->host_bytes[i] > 0) {
            r = acre_buffer_alloc(bench->stream, ACRE_MEMORY_PINNED, memory->host_bytes[i],
                                  &bench->host_memory[i], err);
            bench->host[i] =
                r == 0 ? acre_buffer_host(bench->context, bench->host_memory[i]) : NULL;
        }
    }
    return r == 0 ? acre_stream_sync(bench->stream, COMPUTE_PATIENCE_MS, err) : r;
}

static void fill_host(float *floats, uint64_t bytes) {
    for (uint64_t i = 0; floats != NULL && i < bytes / sizeof(float); i++) {
        floats[i] = (float)(i % 4096);
    }
}

int compute_reserve(struct compute_bench *bench, const struct compute_memory *memory,
                    struct acre_error *err) {
    int r = reserve_acre(bench, memory, err);
    r = r == 0 && bench->raw != NULL ? bench->raw->reserve(bench->raw_self, memory, err) : r;
    if (r < 0) {
        compute_release(bench);
        return r;
    }
    fill_host(bench->host[0], memory->host_bytes[0]);
    if (bench->raw != NULL) {
        fill_host(bench->raw->host(bench->raw_self, 0), memory->host_bytes[0]);
    }
    return 0;
}

static void free_all(struct compute_bench *bench, struct acre_buffer *buffers, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (buffers[i].id != 0) {
            acre_buffer_free(bench->stream, buffers[i], NULL);
            buffers[i].id = 0;
        }
    }
}

void compute_release(struct compute_bench *bench) {
    free_all(bench, bench->device_memory, ACRE_COUNT(bench->device_memory));
    free_all(bench, bench->host_memory, ACRE_COUNT(bench->host_memory));
    memset(bench->host, 0, sizeof(bench->host));
    acre_stream_sync(bench->stream, COMPUTE_PATIENCE_MS, NULL);
    acre_memory_trim(bench->context, 0, NULL);
    if (bench->raw != NULL) {
        bench->raw->release(bench->raw_self);
    }
}

/* --- rounds --------------------------------------------------------------------------------- */

static int run_round(struct compute_bench *bench, const struct compute_pair *pair,
                     const struct compute_side *side, struct bench_times *times,
                     struct acre_error *err) {
    int r = side->enter != NULL ? side->enter(bench, pair->user, err) : 0;
    if (r < 0) {
        return r;
    }
    for (uint32_t i = 0; i < pair->warm && r == 0; i++) {
        r = side->call(bench, pair->user, err);
    }
    for (uint32_t i = 0; i < pair->calls && r == 0; i++) {
        double start_ns = bench_now_ns();
        r = side->call(bench, pair->user, err);
        times->ns[times->count++] = bench_now_ns() - start_ns;
    }
    if (side->leave != NULL) {
        side->leave(bench, pair->user);
    }
    return r;
}

static double in_units(const struct compute_figure *figure, double ns) {
    return figure->unit_ns > 0 ? ns / figure->unit_ns : figure->amount / ns;
}

/* The median and what 99 of 100 are better than: the slow end, of rates too. */
static void take(const struct compute_figure *figure, struct bench_times *times, double *ret_p50,
                 double *ret_p99) {
    double clock_ns = bench_clock_ns();
    for (size_t i = 0; i < times->count; i++) {
        times->ns[i] = ACRE_MAX(times->ns[i] - clock_ns, 1.0);
    }
    bench_sort(times->ns, times->count);
    *ret_p50 = in_units(figure, times->ns[times->count / 2]);
    *ret_p99 = in_units(figure, times->ns[times->count * 99 / 100]);
}

void compute_measure(struct compute_bench *bench, const struct compute_pair *pair,
                     struct compute_figure figure) {
    struct acre_error err = {0};
    size_t room = (size_t)pair->rounds * pair->calls;
    struct bench_times acre = {.ns = acre_calloc(room, sizeof(double))};
    struct bench_times raw = {.ns = acre_calloc(room, sizeof(double))};
    bool has_raw = bench->raw != NULL && pair->raw.call != NULL;
    int r = 0;
    for (uint32_t i = 0; i < pair->rounds && r == 0; i++) {
        r = run_round(bench, pair, &pair->acre, &acre, &err);
        r = r == 0 && has_raw ? run_round(bench, pair, &pair->raw, &raw, &err) : r;
    }
    if (r < 0) {
        compute_fail(bench, figure, &err);
    } else {
        figure.raw = figure.raw_p99 = -1;
        figure.samples = (uint32_t)acre.count;
        take(&figure, &acre, &figure.acre, &figure.p99);
        if (has_raw) {
            take(&figure, &raw, &figure.raw, &figure.raw_p99);
        }
        compute_keep(bench, figure);
    }
    free(acre.ns);
    free(raw.ns);
}

void compute_keep(struct compute_bench *bench, struct compute_figure figure) {
    ACRE_ASSERT(bench->count < COMPUTE_FIGURES_MAX);
    bench->figures[bench->count++] = figure;
}

void compute_fail(struct compute_bench *bench, struct compute_figure figure,
                  const struct acre_error *err) {
    figure.has_failed = true;
    figure.acre = figure.raw = figure.p99 = figure.raw_p99 = -1;
    snprintf(figure.note, sizeof(figure.note), "%s", err->text);
    fprintf(stderr, "bench: %s: %s\n", figure.name, err->text);
    compute_keep(bench, figure);
}
