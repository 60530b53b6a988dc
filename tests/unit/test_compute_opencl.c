/* OpenCL back end, through its table, on whatever OpenCL device there is (PoCL everywhere): memory,
 * kernels, order of streams. GPU-1, GPU-2; each in both ways of having device memory. */
#include "support/opencl_rig.h"

#include "core/rand.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

static const struct backend *const cl = &backend_opencl;

static const char kernels[] =
    "kernel void add(global const float *a, global const float *b, global float *c, uint n) {\n"
    "    size_t i = get_global_id(0);\n"
    "    if (i < n) { c[i] = a[i] + b[i]; }\n"
    "}\n"
    "kernel void where(global ulong *out) {\n"
    "    size_t w = get_global_size(0), h = get_global_size(1);\n"
    "    size_t x = get_global_id(0), y = get_global_id(1), z = get_global_id(2);\n"
    "    out[(z * h + y) * w + x] = get_group_id(2) * 1000000 + get_group_id(1) * 10000 +\n"
    "        get_group_id(0) * 100 + get_local_id(2) * 16 + get_local_id(1) * 4 + "
    "get_local_id(0);\n"
    "}\n"
    "kernel void total(global const int *in, global int *out, local int *part) {\n"
    "    size_t l = get_local_id(0);\n"
    "    part[l] = in[get_global_id(0)];\n"
    "    for (size_t rest = get_local_size(0) / 2; rest > 0; rest /= 2) {\n"
    "        barrier(CLK_LOCAL_MEM_FENCE);\n"
    "        if (l < rest) { part[l] += part[l + rest]; }\n"
    "    }\n"
    "    if (l == 0) { atomic_add(out, part[0]); }\n"
    "}\n"
    "kernel void advance(global uint *at, uint from) { if (at[0] == from) { at[0] = from + 1; } }\n"
    "kernel void slow(global uint *at, uint rounds) {\n"
    "    uint x = at[0];\n"
    "    for (uint i = 0; i < rounds; i++) { x = x * 1664525u + 1013904223u; }\n"
    "    at[1] = x; at[0] += 1;\n"
    "}\n"
    "kernel void is_null(global const int *maybe, global int *out) { out[0] = maybe == 0; }\n";

static struct acre_grid grid(uint32_t groups, uint32_t group) {
    return (struct acre_grid){.groups = {groups, 1, 1}, .group = {group, 1, 1}};
}

static void launch(struct rig *rig, uint32_t stream, const struct rig_launch *launched) {
    struct acre_error err = {0};
    int r = cl->launch(rig->seat, rig->streams[stream], &launched->native, &err);
    if (r < 0) {
        acre_test_context("launch: %s", err.text);
    }
    REQUIRE(r == 0);
}

/* The test, once for each way of having memory. */
static void for_memories(void (*run)(struct rig *rig), uint32_t streams) {
    for (size_t i = 0; i < ACRE_COUNT(rig_memories); i++) {
        struct rig rig = rig_open(rig_memories[i], streams);
        acre_test_context("%s", rig_memories[i]);
        run(&rig);
        rig_close(&rig);
        acre_test_context("%s", "");
    }
}

/* --- devices -------------------------------------------------------------------------------- */

static void devices_describe_themselves(void) {
    struct rig rig = rig_open("svm", 0);
    REQUIRE(cl->count(rig.self) > 0);
    for (uint32_t i = 0; i < cl->count(rig.self); i++) {
        struct acre_compute_device device = {0};
        cl->describe(rig.self, i, &device);
        CHECK(device.name[0] != '\0');
        CHECK_HAS(device.identity, "OpenCL ");
        CHECK(strlen(device.identity) < sizeof(device.identity));
        CHECK(device.memory_bytes > 0 && device.units > 0);
        CHECK(device.group_max > 0 && device.local_bytes > 0);
        CHECK((device.capabilities & ACRE_CAN_SOURCE) != 0);
        CHECK((device.capabilities & ~cl->capabilities) == 0);
    }
    rig_close(&rig);
}

static void without_a_driver_the_reason_is_told(void) {
    void *self = NULL;
    struct acre_error err = {0};
    setenv("OCL_ICD_VENDORS", "/nonexistent", 1);
    int r = cl->open(&self, &err);
    CHECK_EQ(r, ACRE_EUNAVAILABLE);
    CHECK(err.text[0] != '\0');
    CHECK(self == NULL);
}

static void memory_counts_what_is_taken(void) {
    struct rig rig = rig_open("svm", 0);
    uint64_t before, after, total, total_after;
    REQUIRE(cl->memory(rig.seat, &before, &total, NULL) == 0);
    uint64_t region = rig_region(&rig, ACRE_MEMORY_DEVICE, 1 << 20, NULL);
    REQUIRE(cl->memory(rig.seat, &after, &total_after, NULL) == 0);
    CHECK_U64(before - after, 1 << 20);
    CHECK_U64(total, total_after);
    cl->region_destroy(rig.seat, region);
    REQUIRE(cl->memory(rig.seat, &after, &total, NULL) == 0);
    CHECK_U64(before, after);
    rig_close(&rig);
}

static void run_exhausted(struct rig *rig) {
    uint64_t free_bytes, total;
    REQUIRE(cl->memory(rig->seat, &free_bytes, &total, NULL) == 0);
    static const uint64_t shifts[] = {0, 20};
    for (size_t i = 0; i < ACRE_COUNT(shifts); i++) {
        struct native_region region = {.handle = 7};
        struct acre_error err = {0};
        uint64_t bytes = (total << shifts[i]) + RIG_PAGE;
        CHECK_EQ(cl->region_create(rig->seat, ACRE_MEMORY_DEVICE, bytes, NULL, &region, &err),
                 ACRE_ENOMEM);
        CHECK_HAS(err.text, "bytes; the device has");
        CHECK_U64(region.handle, 7);
    }
    struct native_region regions[64]; /* pieces that the driver gives one by one */
    uint32_t count = 0;
    while (count < ACRE_COUNT(regions) &&
           cl->region_create(rig->seat, ACRE_MEMORY_DEVICE, total / 8, NULL, &regions[count],
                             NULL) == 0) {
        count++;
    }
    CHECK(count > 0 && count <= 8);
    while (count > 0) {
        cl->region_destroy(rig->seat, regions[--count].handle);
    }
    uint64_t region = rig_region(rig, ACRE_MEMORY_DEVICE, RIG_PAGE, NULL); /* others go on */
    cl->region_destroy(rig->seat, region);
    CHECK_EQ(cl->check(rig->seat, NULL), 0);
}

static void more_than_there_is_is_refused(void) {
    setenv("POCL_MEMORY_LIMIT", "1", 1); /* GiB: malloc may be told to write all that it gives */
    for_memories(run_exhausted, 1);
}

/* --- copies and fills ----------------------------------------------------------------------- */

enum { COPY_BYTES = 600 << 10, COPY_SHIFT = 136 }; /* more than two pieces of scratch */

static const enum acre_memory all_kinds[] = {ACRE_MEMORY_DEVICE, ACRE_MEMORY_PINNED,
                                             ACRE_MEMORY_MAPPED};

struct block {
    uint64_t region;
    void *host; /* NULL: device */
};

static struct block block_create(struct rig *rig, enum acre_memory kind) {
    struct block block = {.host = kind != ACRE_MEMORY_DEVICE ? rig_pages(COPY_BYTES) : NULL};
    block.region = rig_region(rig, kind, COPY_BYTES, block.host);
    return block;
}

static void block_destroy(struct rig *rig, struct block *block) {
    cl->region_destroy(rig->seat, block->region);
    if (block->host != NULL) {
        munmap(block->host, COPY_BYTES);
    }
}

static void run_copies(struct rig *rig) {
    uint8_t *sent = malloc(COPY_BYTES);
    uint8_t *got = malloc(COPY_BYTES);
    struct acre_rand random;
    acre_rand_seed(&random, 7);
    for (size_t i = 0; i < COPY_BYTES; i++) {
        sent[i] = (uint8_t)acre_rand_next(&random);
    }
    for (size_t i = 0; i < ACRE_COUNT(all_kinds) * ACRE_COUNT(all_kinds); i++) {
        struct block from = block_create(rig, all_kinds[i / ACRE_COUNT(all_kinds)]);
        struct block to = block_create(rig, all_kinds[i % ACRE_COUNT(all_kinds)]);
        acre_test_context("kind %d to kind %d", all_kinds[i / 3], all_kinds[i % 3]);
        rig_write(rig, from.region, 0, sent, COPY_BYTES);
        struct native_fill zero = {to.region, 0, COPY_BYTES, 0, 1};
        struct native_copy copy = {to.region, 8, from.region, COPY_SHIFT, COPY_BYTES - 200};
        REQUIRE(cl->fill(rig->seat, rig->streams[0], &zero, NULL) == 0);
        REQUIRE(cl->copy(rig->seat, rig->streams[0], &copy, NULL) == 0);
        rig_sync(rig, 0);
        rig_read(rig, to.region, 0, got, COPY_BYTES);
        CHECK(memcmp(got + 8, sent + COPY_SHIFT, COPY_BYTES - 200) == 0);
        CHECK(got[7] == 0 && got[COPY_BYTES - 192] == 0);
        block_destroy(rig, &from);
        block_destroy(rig, &to);
    }
    free(sent);
    free(got);
}

static void copies_move_bytes_between_all_kinds(void) { /* GPU-2 */
    for_memories(run_copies, 1);
}

static void run_fills(struct rig *rig) {
    static const uint64_t pattern = UINT64_C(0x8877665544332211);
    uint8_t *got = malloc(COPY_BYTES);
    for (size_t i = 0; i < ACRE_COUNT(all_kinds); i++) {
        struct block block = block_create(rig, all_kinds[i]);
        for (uint32_t size = 1; size <= 8; size *= 2) {
            acre_test_context("kind %d, pattern of %u", all_kinds[i], size);
            struct native_fill zero = {block.region, 0, COPY_BYTES, 0, 8};
            struct native_fill fill = {block.region, 64, COPY_BYTES - 128, pattern, size};
            REQUIRE(cl->fill(rig->seat, rig->streams[0], &zero, NULL) == 0);
            REQUIRE(cl->fill(rig->seat, rig->streams[0], &fill, NULL) == 0);
            rig_sync(rig, 0);
            rig_read(rig, block.region, 0, got, COPY_BYTES);
            size_t wrong = 0;
            for (size_t j = 0; j < COPY_BYTES; j++) {
                bool is_in = j >= 64 && j < COPY_BYTES - 64;
                wrong += got[j] != (is_in ? (uint8_t)(pattern >> j % size * 8) : 0);
            }
            CHECK_U64(wrong, 0);
        }
        block_destroy(rig, &block);
    }
    free(got);
}

static void fills_repeat_patterns_of_every_size(void) {
    for_memories(run_fills, 1);
}

/* --- kernels -------------------------------------------------------------------------------- */

static void run_add(struct rig *rig) {
    enum { N = 10000 };
    uint32_t n = N;
    uint64_t module = rig_load(rig, kernels);
    uint64_t region = rig_region(rig, ACRE_MEMORY_DEVICE, 3 * 65536, NULL);
    float *values = malloc(3 * 65536);
    struct acre_rand random;
    acre_rand_seed(&random, 11);
    for (size_t i = 0; i < 2 * 16384; i++) {
        values[i] = (float)(acre_rand_next(&random) % 1000);
    }
    rig_write(rig, region, 0, values, 2 * 65536);
    struct rig_launch added;
    rig_launch_begin(&added, rig_kernel(rig, module, "add"), grid((N + 63) / 64, 64));
    rig_launch_buffer(&added, region, 0, 4 * N); /* parts of one region, at offsets */
    rig_launch_buffer(&added, region, 65536, 4 * N);
    rig_launch_buffer(&added, region, 2 * 65536, 4 * N);
    rig_launch_value(&added, &n, sizeof(n));
    for (int i = 0; i < 3; i++) { /* the second finds its parts */
        launch(rig, 0, &added);
    }
    rig_sync(rig, 0);
    float *got = malloc(4 * N);
    rig_read(rig, region, 2 * 65536, got, 4 * N);
    size_t wrong = 0;
    for (size_t i = 0; i < N; i++) {
        wrong += got[i] != values[i] + values[16384 + i];
    }
    CHECK_U64(wrong, 0);
    free(got);
    free(values);
    cl->region_destroy(rig->seat, region);
    cl->unload(rig->seat, module);
}

static void kernels_take_buffers_at_offsets(void) { /* GPU-1 */
    for_memories(run_add, 1);
}

static void run_mapped(struct rig *rig) {
    uint64_t module = rig_load(rig, kernels);
    uint32_t from = 41;
    uint32_t *host = rig_pages(2 * RIG_PAGE);
    uint64_t region = rig_region(rig, ACRE_MEMORY_MAPPED, 2 * RIG_PAGE, host);
    host[1024] = 41;
    struct rig_launch step;
    rig_launch_begin(&step, rig_kernel(rig, module, "advance"), grid(1, 1));
    rig_launch_buffer(&step, region, RIG_PAGE, RIG_PAGE);
    rig_launch_value(&step, &from, sizeof(from));
    launch(rig, 0, &step);
    rig_sync(rig, 0);
    CHECK_U64(host[1024], 42);
    cl->region_destroy(rig->seat, region);
    munmap(host, 2 * RIG_PAGE);
}

static void kernels_write_mapped_memory_where_it_is(void) {
    for_memories(run_mapped, 1);
}

static void run_dimensions(struct rig *rig) {
    static const struct acre_grid grids[] = {{{5, 1, 1}, {4, 1, 1}},
                                             {{3, 4, 1}, {4, 2, 1}},
                                             {{2, 3, 4}, {2, 2, 2}},
                                             {{1, 1, 3}, {1, 1, 2}}};
    uint64_t module = rig_load(rig, kernels);
    uint64_t kernel = rig_kernel(rig, module, "where");
    uint64_t region = rig_region(rig, ACRE_MEMORY_DEVICE, RIG_PAGE, NULL);
    for (size_t i = 0; i < ACRE_COUNT(grids); i++) {
        const struct acre_grid *g = &grids[i];
        struct rig_launch where;
        rig_launch_begin(&where, kernel, *g);
        rig_launch_buffer(&where, region, 0, RIG_PAGE);
        launch(rig, 0, &where);
        rig_sync(rig, 0);
        uint64_t got[RIG_PAGE / 8];
        rig_read(rig, region, 0, got, sizeof(got));
        uint32_t size[3];
        for (int d = 0; d < 3; d++) {
            size[d] = g->groups[d] * g->group[d];
        }
        for (uint32_t at = 0; at < size[0] * size[1] * size[2]; at++) {
            uint32_t p[3] = {at % size[0], at / size[0] % size[1], at / size[0] / size[1]};
            acre_test_context("grid %zu at %u %u %u", i, p[0], p[1], p[2]);
            CHECK_U64(got[at], p[2] / g->group[2] * 1000000 + p[1] / g->group[1] * 10000 +
                                   p[0] / g->group[0] * 100 + p[2] % g->group[2] * 16 +
                                   p[1] % g->group[1] * 4 + p[0] % g->group[0]);
        }
    }
    cl->region_destroy(rig->seat, region);
}

static void grids_have_one_to_three_dimensions(void) {
    for_memories(run_dimensions, 1);
}

static void run_total(struct rig *rig) {
    enum { N = 4096 };
    int values[N];
    int expected = 0;
    struct acre_rand random;
    acre_rand_seed(&random, 13);
    for (size_t i = 0; i < N; i++) {
        values[i] = (int)(acre_rand_next(&random) % 2000) - 1000;
        expected += values[i];
    }
    uint64_t module = rig_load(rig, kernels);
    uint64_t in = rig_region(rig, ACRE_MEMORY_DEVICE, sizeof(values), NULL);
    uint64_t out = rig_region(rig, ACRE_MEMORY_DEVICE, RIG_PAGE, NULL);
    rig_write(rig, in, 0, values, sizeof(values));
    struct native_fill zero = {out, 0, RIG_PAGE, 0, 4};
    REQUIRE(cl->fill(rig->seat, rig->streams[0], &zero, NULL) == 0);
    struct rig_launch total;
    rig_launch_begin(&total, rig_kernel(rig, module, "total"), grid(N / 64, 64));
    rig_launch_buffer(&total, in, 0, sizeof(values));
    rig_launch_buffer(&total, out, 0, RIG_PAGE);
    rig_launch_local(&total, 64 * sizeof(int));
    launch(rig, 0, &total);
    rig_sync(rig, 0);
    int got;
    rig_read(rig, out, 0, &got, sizeof(got));
    CHECK_EQ(got, expected);
}

static void local_memory_barriers_and_atomics_work(void) {
    for_memories(run_total, 1);
}

static void run_null(struct rig *rig) {
    uint64_t module = rig_load(rig, kernels);
    uint64_t region = rig_region(rig, ACRE_MEMORY_DEVICE, RIG_PAGE, NULL);
    struct rig_launch is_null;
    rig_launch_begin(&is_null, rig_kernel(rig, module, "is_null"), grid(1, 1));
    rig_launch_buffer(&is_null, 0, 0, 0);
    rig_launch_buffer(&is_null, region, 0, RIG_PAGE);
    launch(rig, 0, &is_null);
    rig_sync(rig, 0);
    int got = 7;
    rig_read(rig, region, 0, &got, sizeof(got));
    CHECK_EQ(got, 1);
}

static void no_region_is_a_null_pointer(void) {
    for_memories(run_null, 1);
}

/* --- order ---------------------------------------------------------------------------------- */

static void launch_step(struct rig *rig, uint32_t stream, uint64_t kernel, uint64_t region,
                        uint32_t from) {
    struct rig_launch step;
    rig_launch_begin(&step, kernel, grid(1, 1));
    rig_launch_buffer(&step, region, 0, RIG_PAGE);
    rig_launch_value(&step, &from, sizeof(from));
    launch(rig, stream, &step);
}

static void wait_for(struct rig *rig, uint32_t stream, uint32_t other, uint64_t value) {
    REQUIRE(cl->wait(rig->seat, rig->streams[stream], rig->words_region, other * 8, value, NULL) ==
            0);
}

static uint32_t first_of(struct rig *rig, uint64_t region) {
    uint32_t value = 0;
    rig_read(rig, region, 0, &value, sizeof(value));
    return value;
}

static uint64_t zeroed(struct rig *rig) {
    uint64_t region = rig_region(rig, ACRE_MEMORY_DEVICE, RIG_PAGE, NULL);
    struct native_fill zero = {region, 0, RIG_PAGE, 0, 8};
    REQUIRE(cl->fill(rig->seat, rig->streams[0], &zero, NULL) == 0);
    rig_sync(rig, 0);
    return region;
}

/* Each step works only after the one before it. */
static void run_in_order(struct rig *rig) {
    uint64_t region = zeroed(rig);
    uint64_t step = rig_kernel(rig, rig_load(rig, kernels), "advance");
    for (uint32_t i = 0; i < 200; i++) {
        launch_step(rig, 0, step, region, i);
        if (i % 3 == 0) {
            rig_signal(rig, 0);
        }
    }
    rig_sync(rig, 0);
    CHECK_U64(first_of(rig, region), 200);
}

static void a_stream_works_in_order(void) {
    for_memories(run_in_order, 1);
}

/* Two streams hand a counter to and fro; half of the waits come before their signals. */
static void run_across(struct rig *rig) {
    uint64_t region = zeroed(rig);
    uint64_t step = rig_kernel(rig, rig_load(rig, kernels), "advance");
    rig_sync(rig, 1);
    uint64_t first[2] = {rig->signaled[0], rig->signaled[1]};
    for (uint32_t round = 0; round < 50; round++) {
        wait_for(rig, 1, 0, first[0] + round + 1); /* not given yet */
        launch_step(rig, 0, step, region, 2 * round);
        rig_signal(rig, 0);
        launch_step(rig, 1, step, region, 2 * round + 1);
        rig_signal(rig, 1);
        wait_for(rig, 0, 1, first[1] + round + 1);
    }
    rig_sync(rig, 0);
    rig_sync(rig, 1);
    CHECK_U64(first_of(rig, region), 100);
    wait_for(rig, 1, 0, 1); /* long past */
    rig_sync(rig, 1);
}

static void waits_order_streams(void) {
    for_memories(run_across, 2);
}

/* Waiting for an early signal is not waiting for a later one, which would wait for us. */
static void waits_are_for_the_signal_asked_for(void) {
    struct rig rig = rig_open("svm", 2);
    uint64_t region = zeroed(&rig);
    uint64_t module = rig_load(&rig, kernels);
    uint32_t rounds = 20000000;
    struct rig_launch slow;
    rig_launch_begin(&slow, rig_kernel(&rig, module, "slow"), grid(1, 1));
    rig_launch_buffer(&slow, region, 0, RIG_PAGE);
    rig_launch_value(&slow, &rounds, sizeof(rounds));
    launch(&rig, 0, &slow);
    uint64_t early = rig.signaled[0] + 1;
    rig_signal(&rig, 0);                       /* early */
    wait_for(&rig, 0, 1, rig.signaled[1] + 1); /* of the other stream, to come */
    rig_signal(&rig, 0);                       /* late: after the other stream */
    wait_for(&rig, 1, 0, early);
    rig_signal(&rig, 1);
    rig_reach(&rig, 0, early + 1);
    rig_reach(&rig, 1, rig.signaled[1]);
    CHECK_U64(first_of(&rig, region), 1);
    rig_close(&rig);
}

static void notify_adds_one_after_all_before_it(void) {
    struct rig rig = rig_open("svm", 1);
    uint64_t region = zeroed(&rig);
    uint64_t step = rig_kernel(&rig, rig_load(&rig, kernels), "advance");
    int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    for (uint32_t i = 0; i < 3; i++) {
        launch_step(&rig, 0, step, region, i);
        REQUIRE(cl->notify(rig.seat, rig.streams[0], fd, NULL) == 0);
    }
    uint64_t sum = 0;
    while (sum < 3) {
        struct pollfd waits = {.fd = fd, .events = POLLIN};
        REQUIRE(poll(&waits, 1, 30000) == 1);
        uint64_t count = 0;
        REQUIRE(read(fd, &count, sizeof(count)) == sizeof(count));
        sum += count;
    }
    CHECK_U64(sum, 3);
    CHECK_U64(first_of(&rig, region), 3);
    close(fd);
    rig_close(&rig);
}

struct worker {
    struct rig *rig;
    uint32_t stream;
    uint64_t kernel, region;
};

static void *work(void *argument) {
    const struct worker *worker = argument;
    for (uint32_t i = 0; i < 100; i++) {
        launch_step(worker->rig, worker->stream, worker->kernel, worker->region, i);
        if (i % 10 == 9) {
            rig_sync(worker->rig, worker->stream);
        }
    }
    return NULL;
}

/* More streams than clones of a kernel: some share one. */
static void run_threads(struct rig *rig) {
    enum { THREADS = 12 };
    uint64_t kernel = rig_kernel(rig, rig_load(rig, kernels), "advance");
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    for (uint32_t i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){rig, i, kernel, zeroed(rig)};
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        CHECK_U64(first_of(rig, workers[i].region), 100);
    }
}

static void threads_launch_one_kernel_on_their_streams(void) {
    for_memories(run_threads, 12);
}

/* --- times ---------------------------------------------------------------------------------- */

static void check_timings(struct rig *rig, const char *const *names, uint32_t count, uint32_t max) {
    struct acre_timing timings[16];
    uint32_t got = 0;
    REQUIRE(cl->timings(rig->seat, rig->streams[0], timings, max, &got, NULL) == 0);
    REQUIRE_EQ(got, count);
    for (uint32_t i = 0; i < count; i++) {
        CHECK_STR(timings[i].name, names[i]);
        CHECK(timings[i].running_us > 0 && timings[i].queued_us >= 0);
        CHECK_U64(timings[i].bytes, strcmp(names[i], "advance") == 0 ? 0 : RIG_PAGE);
    }
}

static void run_profile(struct rig *rig) {
    static const char *const names[] = {"fill", "advance", "copy", "copy out", "copy in"};
    void *pages = rig_pages(RIG_PAGE);
    uint64_t host = rig_region(rig, ACRE_MEMORY_PINNED, RIG_PAGE, pages);
    uint64_t regions[] = {zeroed(rig), zeroed(rig)};
    uint64_t step = rig_kernel(rig, rig_load(rig, kernels), "advance");
    check_timings(rig, names, 0, 16);
    launch_step(rig, 0, step, regions[0], 0); /* before: not measured */
    REQUIRE(cl->profile(rig->seat, rig->streams[0], true, NULL) == 0);
    REQUIRE(cl->profile(rig->seat, rig->streams[0], true, NULL) == 0);
    struct native_fill fill = {regions[1], 0, RIG_PAGE, 5, 4};
    REQUIRE(cl->fill(rig->seat, rig->streams[0], &fill, NULL) == 0);
    launch_step(rig, 0, step, regions[0], 1);
    const struct native_copy copies[] = {{regions[1], 0, regions[0], 0, RIG_PAGE},
                                         {host, 0, regions[1], 0, RIG_PAGE},
                                         {regions[1], 0, host, 0, RIG_PAGE}};
    for (size_t i = 0; i < ACRE_COUNT(copies); i++) {
        REQUIRE(cl->copy(rig->seat, rig->streams[0], &copies[i], NULL) == 0);
    }
    REQUIRE(cl->profile(rig->seat, rig->streams[0], false, NULL) == 0);
    launch_step(rig, 0, step, regions[0], 2); /* after: in order, not measured */
    rig_sync(rig, 0);
    check_timings(rig, names, 2, 2); /* oldest first, each once */
    check_timings(rig, names + 2, 3, 16);
    check_timings(rig, names, 0, 16);
    CHECK_U64(first_of(rig, regions[0]), 3);
    CHECK_U64(first_of(rig, regions[1]), 2);
    cl->region_destroy(rig->seat, host);
    munmap(pages, RIG_PAGE);
}

static void measured_work_tells_its_times_once(void) {
    for_memories(run_profile, 1);
}

static const struct acre_test tests[] = {
    {"devices_describe_themselves", devices_describe_themselves, 0},
    {"without_a_driver_the_reason_is_told", without_a_driver_the_reason_is_told, 0},
    {"memory_counts_what_is_taken", memory_counts_what_is_taken, 0},
    {"more_than_there_is_is_refused", more_than_there_is_is_refused, 0},
    {"copies_move_bytes_between_all_kinds", copies_move_bytes_between_all_kinds, 0},
    {"fills_repeat_patterns_of_every_size", fills_repeat_patterns_of_every_size, 0},
    {"kernels_take_buffers_at_offsets", kernels_take_buffers_at_offsets, 0},
    {"kernels_write_mapped_memory_where_it_is", kernels_write_mapped_memory_where_it_is, 0},
    {"grids_have_one_to_three_dimensions", grids_have_one_to_three_dimensions, 0},
    {"local_memory_barriers_and_atomics_work", local_memory_barriers_and_atomics_work, 0},
    {"no_region_is_a_null_pointer", no_region_is_a_null_pointer, 0},
    {"a_stream_works_in_order", a_stream_works_in_order, 0},
    {"waits_order_streams", waits_order_streams, 0},
    {"waits_are_for_the_signal_asked_for", waits_are_for_the_signal_asked_for, 0},
    {"notify_adds_one_after_all_before_it", notify_adds_one_after_all_before_it, 0},
    {"threads_launch_one_kernel_on_their_streams", threads_launch_one_kernel_on_their_streams, 0},
    {"measured_work_tells_its_times_once", measured_work_tells_its_times_once, 0},
};

int main(int argc, char **argv) {
    return rig_main(tests, ACRE_COUNT(tests), argc, argv);
}
