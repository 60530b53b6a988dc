/* compute_bulk.c - where the hardware should be the limit: large kernels, copies, the pipeline over
 * host arrays, files; and compiling. What was computed is looked at after the rounds. */
#include "compute.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- kernels as long as the device takes ----------------------------------------------------- */

struct arrays {
    uint32_t size; /* items, or the width of the matrices */
    bool is_in;
    uint64_t bytes;
    const float *in, *raw_in; /* of the pipeline */
    float *out, *raw_out;
};

static int run_on_arrays(struct compute_bench *bench, struct acre_kernel *kernel, uint32_t size,
                         struct acre_grid grid, struct acre_error *err) {
    const struct acre_arg args[] = {ACRE_BUFFER(bench->device_memory[0]),
                                    ACRE_BUFFER(bench->device_memory[1]),
                                    ACRE_BUFFER(bench->device_memory[2]), ACRE_U32(size)};
    int r = acre_launch(bench->stream, kernel, grid, args, 4, err);
    return r == 0 ? acre_stream_sync(bench->stream, COMPUTE_PATIENCE_MS, err) : r;
}

static int add_by_acre(struct compute_bench *bench, void *user, struct acre_error *err) {
    uint32_t items = ((struct arrays *)user)->size;
    return run_on_arrays(bench, bench->add, items, acre_grid_for(items), err);
}

static int add_raw(struct compute_bench *bench, void *user, struct acre_error *err) {
    return bench->raw->add(bench->raw_self, ((struct arrays *)user)->size, err);
}

static int multiply_by_acre(struct compute_bench *bench, void *user, struct acre_error *err) {
    uint32_t width = ((struct arrays *)user)->size;
    uint32_t groups = width / COMPUTE_TILE;
    return run_on_arrays(
        bench, bench->multiply, width,
        (struct acre_grid){.groups = {groups, groups, 1}, .group = {COMPUTE_TILE, COMPUTE_TILE, 1}},
        err);
}

static int multiply_raw(struct compute_bench *bench, void *user, struct acre_error *err) {
    return bench->raw->multiply(bench->raw_self, ((struct arrays *)user)->size, err);
}

/* Everything was made of ones: first and last of the result are `expected`. */
static int check_result(struct compute_bench *bench, uint64_t items, float expected,
                        struct acre_error *err) {
    float ends[2] = {0, 0};
    for (uint32_t i = 0; i < 2; i++) {
        uint64_t at = i == 0 ? 0 : (items - 1) * sizeof(float);
        int r =
            acre_copy_out(bench->stream, &ends[i], bench->device_memory[2], at, sizeof(float), err);
        if (r < 0) {
            return r;
        }
        if (ends[i] != expected) {
            return acre_fail(err, ACRE_ECORRUPT, "item %llu is %g, not %g",
                             (unsigned long long)(at / sizeof(float)), (double)ends[i],
                             (double)expected);
        }
    }
    return 0;
}

static void measure_kernel(struct compute_bench *bench, struct compute_pair pair, uint64_t items,
                           float expected, struct compute_figure figure) {
    struct acre_error err = {0};
    uint64_t bytes = items * sizeof(float);
    const struct compute_memory memory = {.device_bytes = {bytes, bytes, bytes}};
    int r = compute_reserve(bench, &memory, &err);
    if (r < 0) {
        compute_fail(bench, figure, &err);
        return;
    }
    r = pair.acre.call(bench, pair.user, &err);
    r = r == 0 ? check_result(bench, items, expected, &err) : r;
    if (r < 0) {
        compute_fail(bench, figure, &err);
    } else {
        compute_measure(bench, &pair, figure);
    }
    compute_release(bench);
}

void compute_device_bound(struct compute_bench *bench) {
    struct compute_figure figure = {.name = "device-bound, add",
                                    .what = "vector add in device memory (256 Mi floats)",
                                    .unit = "ms",
                                    .unit_ns = 1e6,
                                    .limit_kind = COMPUTE_RATIO_MOST,
                                    .limit = 1.02};
    struct arrays arrays = {.size = (uint32_t)compute_pick(bench, 256 << 20, 1 << 20)};
    struct compute_pair pair = {.acre = {.call = add_by_acre},
                                .raw = {.call = add_raw},
                                .user = &arrays,
                                .rounds = (uint32_t)compute_pick(bench, 20, 3),
                                .calls = (uint32_t)compute_pick(bench, 10, 3),
                                .warm = 2};
    if (!bench->is_full) {
        figure.what = "vector add in device memory (1 Mi floats)";
    }
    measure_kernel(bench, pair, arrays.size, 2.0f, figure);
    snprintf(figure.name, sizeof(figure.name), "device-bound, matrices");
    figure.what = bench->is_full ? "3072 x 3072 matrices multiplied in tiles"
                                 : "128 x 128 matrices multiplied in tiles";
    arrays.size = (uint32_t)compute_pick(bench, 3072, 128);
    pair.acre.call = multiply_by_acre;
    pair.raw.call = multiply_raw;
    pair.calls = (uint32_t)compute_pick(bench, 3, 3);
    measure_kernel(bench, pair, (uint64_t)arrays.size * arrays.size, (float)arrays.size, figure);
}

/* --- copies --------------------------------------------------------------------------------- */

static int copy_by_acre(struct compute_bench *bench, void *user, struct acre_error *err) {
    const struct arrays *arrays = user;
    struct acre_buffer device = bench->device_memory[0];
    int r = arrays->is_in
                ? acre_copy_in(bench->stream, device, 0, bench->host[0], arrays->bytes, err)
                : acre_copy_out(bench->stream, bench->host[0], device, 0, arrays->bytes, err);
    return r == 0 ? acre_stream_sync(bench->stream, COMPUTE_PATIENCE_MS, err) : r;
}

static int copy_raw(struct compute_bench *bench, void *user, struct acre_error *err) {
    const struct arrays *arrays = user;
    return bench->raw->copy(bench->raw_self, arrays->is_in, arrays->bytes, err);
}

void compute_copy(struct compute_bench *bench) {
    struct compute_figure figure = {.name = "copy in",
                                    .what = bench->is_full ? "1 GiB, pinned memory to the device"
                                                           : "16 MiB to the device",
                                    .unit = "GB/s"};
    struct acre_error err = {0};
    struct arrays arrays = {.is_in = true, .bytes = compute_pick(bench, 1024, 16) * COMPUTE_MIB};
    const struct compute_memory memory = {.device_bytes = {arrays.bytes},
                                          .host_bytes = {arrays.bytes}};
    figure.amount = (double)arrays.bytes;
    if (compute_reserve(bench, &memory, &err) < 0) {
        compute_fail(bench, figure, &err);
        return;
    }
    struct compute_pair pair = {.acre = {.call = copy_by_acre},
                                .raw = {.call = copy_raw},
                                .user = &arrays,
                                .rounds = (uint32_t)compute_pick(bench, 10, 3),
                                .calls = 2,
                                .warm = 1};
    compute_measure(bench, &pair, figure);
    arrays.is_in = false;
    snprintf(figure.name, sizeof(figure.name), "copy out");
    figure.what = bench->is_full ? "1 GiB, the device to pinned memory" : "16 MiB from the device";
    compute_measure(bench, &pair, figure);
    compute_release(bench);
}

/* --- the pipeline --------------------------------------------------------------------------- */

static int batch_by_acre(struct compute_bench *bench, void *user, struct acre_error *err) {
    const struct arrays *arrays = user;
    const struct acre_pipeline pipeline = {.kernels = &bench->batch,
                                           .kernel_count = 1,
                                           .in = arrays->in,
                                           .out = arrays->out,
                                           .items = arrays->bytes / sizeof(float),
                                           .in_bytes = sizeof(float),
                                           .out_bytes = sizeof(float)};
    return acre_pipeline_run(&pipeline, NULL, err);
}

static int batch_raw(struct compute_bench *bench, void *user, struct acre_error *err) {
    const struct arrays *arrays = user;
    return bench->raw->batch(bench->raw_self, arrays->raw_in, arrays->raw_out,
                             arrays->bytes / sizeof(float), err);
}

/* Every 65537th item from the last one down: host 0 was i % 4096. */
static int check_batch(const float *out, uint64_t items, struct acre_error *err) {
    for (uint64_t i = items - 1; i < items; i -= 65537) { /* wraps round, past all items */
        float expected = (float)(i % 4096) * 2.0f + 1.0f;
        if (out[i] != expected) {
            return acre_fail(err, ACRE_ECORRUPT, "item %llu is %g, not %g", (unsigned long long)i,
                             (double)out[i], (double)expected);
        }
    }
    return 0;
}

static int try_batch(struct compute_bench *bench, struct arrays *arrays, struct acre_error *err) {
    uint64_t items = arrays->bytes / sizeof(float);
    int r = batch_by_acre(bench, arrays, err);
    r = r == 0 ? check_batch(arrays->out, items, err) : r;
    if (r == 0 && bench->raw != NULL) {
        r = batch_raw(bench, arrays, err);
        r = r == 0 ? check_batch(arrays->raw_out, items, err) : r;
        r = r < 0 ? acre_fail_in(err, r, "raw") : 0;
    }
    return r;
}

static void measure_batch(struct compute_bench *bench, struct arrays *arrays,
                          struct compute_figure figure) {
    struct acre_error err = {0};
    figure.unit = "GB/s";
    figure.amount = (double)arrays->bytes;
    if (try_batch(bench, arrays, &err) < 0) {
        compute_fail(bench, figure, &err);
        return;
    }
    const struct compute_pair pair = {.acre = {.call = batch_by_acre},
                                      .raw = {.call = batch_raw},
                                      .user = arrays,
                                      .rounds = (uint32_t)compute_pick(bench, 7, 2),
                                      .calls = 1};
    compute_measure(bench, &pair, figure);
}

static void batch_pinned(struct compute_bench *bench) {
    struct arrays arrays = {.bytes = compute_pick(bench, 4096, 64) * COMPUTE_MIB};
    const struct compute_figure figure = {
        .name = "batch",
        .what = bench->is_full ? "4 GiB in and 4 GiB out, pinned, each way; raw: overlapped by hand"
                               : "64 MiB in and 64 MiB out, each way",
        .limit_kind = COMPUTE_RATIO_LEAST,
        .limit = 0.95};
    const uint64_t slots = COMPUTE_STREAMS * (uint64_t)COMPUTE_PIECE_BYTES;
    const struct compute_memory memory = {.device_bytes = {slots, slots},
                                          .host_bytes = {arrays.bytes, arrays.bytes}};
    struct acre_error err = {0};
    if (compute_reserve(bench, &memory, &err) < 0) {
        compute_fail(bench, figure, &err);
        return;
    }
    arrays.in = bench->host[0];
    arrays.out = bench->host[1];
    if (bench->raw != NULL) {
        arrays.raw_in = bench->raw->host(bench->raw_self, 0);
        arrays.raw_out = bench->raw->host(bench->raw_self, 1);
    }
    measure_batch(bench, &arrays, figure);
    compute_release(bench);
}

static void batch_plain(struct compute_bench *bench) {
    struct arrays arrays = {.bytes = compute_pick(bench, 1024, 64) * COMPUTE_MIB};
    const struct compute_figure figure = {
        .name = "batch, plain",
        .what = bench->is_full ? "1 GiB in and 1 GiB out, not pinned; raw: the driver copies that"
                               : "64 MiB in and 64 MiB out, not pinned"};
    const uint64_t slots = COMPUTE_STREAMS * (uint64_t)COMPUTE_PIECE_BYTES;
    const struct compute_memory memory = {.device_bytes = {slots, slots}};
    struct acre_error err = {0};
    float *in = malloc(arrays.bytes);
    float *out = calloc(1, arrays.bytes);
    int r = in == NULL || out == NULL ? acre_fail(&err, ACRE_ENOMEM, "the arrays")
                                      : compute_reserve(bench, &memory, &err);
    if (r == 0) {
        for (uint64_t i = 0; i < arrays.bytes / sizeof(float); i++) {
            in[i] = (float)(i % 4096);
        }
        arrays.in = arrays.raw_in = in;
        arrays.out = arrays.raw_out = out;
        measure_batch(bench, &arrays, figure);
        compute_release(bench);
    } else {
        compute_fail(bench, figure, &err);
    }
    free(in);
    free(out);
}

void compute_batch(struct compute_bench *bench) {
    batch_pinned(bench);
    batch_plain(bench);
}
