/* compute_cuda_trouble.c - the CUDA back end on a real GPU when things go wrong, stay long, or
 * must be fast: faults of kernels, exhausted memory, resident kernels, many threads, cost of calls.
 *
 * As compute_cuda.c: TAP, skips with the reason where there is no GPU. GPU-3, GPU-4, GPU-6. */
#include "support/gpu_kit.h"

#include "compute/gpu/seat.h"

#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define TABLE (&backend_cuda)

enum { MIB = 1 << 20, GIB = 1 << 30 };

static const char source[] =
    "extern \"C\" __global__ void outside(unsigned *a) { a[1ull << 40] = 1; }\n"
    "extern \"C\" __global__ void crooked(unsigned *a) { *(unsigned *)((char *)a + 1) = 1; }\n"
    "extern \"C\" __global__ void trapped(unsigned *a) { a[0] = 1; __trap(); }\n"
    "extern \"C\" __global__ void stay(volatile unsigned *flag) { while (flag[0] == 0) {} }\n"
    "extern \"C\" __global__ void doubtful(unsigned *a) { assert(a == nullptr); }\n"
    "extern \"C\" __global__ void count(unsigned *a, unsigned by) { atomicAdd(a, by); }\n";

static const struct acre_grid one = {.groups = {1, 1, 1}, .group = {1, 1, 1}};

/* Launch the kernel, wait until the seat says that it is lost, and see what it says then. */
static void fault(const char *name, const char *words) {
    struct kit kit;
    kit_open(&kit, TABLE);
    uint64_t kernel = kit_kernel(&kit, source, name);
    struct native_region device = kit_device(&kit, 4096);
    KIT_OK(&kit, TABLE->check(kit.seat, &kit.err));
    uint64_t begun_ns = kit_now_ns();
    KIT_OK(&kit, kit_launch(&kit, 0, kernel, one, &device, 1, NULL, 0));
    TABLE->signal(kit.seat, kit.streams[0], 1, NULL);
    int r = 0;
    while (r == 0) { /* a trap is told after seconds; the test's own limit ends what never is */
        r = TABLE->check(kit.seat, &kit.err);
    }
    fprintf(stderr, "after %.1f ms: %s\n", (double)(kit_now_ns() - begun_ns) / 1e6, kit.err.text);
    REQUIRE_EQ(r, ACRE_EUNAVAILABLE);
    CHECK_HAS(kit.err.text, words);
    CHECK_U64(atomic_load(&kit.words[0]), 0); /* what came after it never happens */
    /* Nothing works any more, and says so; check() does not forget. */
    struct native_region more;
    CHECK_EQ(TABLE->region_create(kit.seat, ACRE_MEMORY_DEVICE, 4096, NULL, &more, &kit.err),
             ACRE_EUNAVAILABLE);
    CHECK_EQ(kit_launch(&kit, 0, kernel, one, &device, 1, NULL, 0), ACRE_EUNAVAILABLE);
    CHECK_EQ(TABLE->check(kit.seat, &kit.err), ACRE_EUNAVAILABLE);
    kit_close(&kit); /* ends, and does not hang */
}

static void a_kernel_outside_its_memory_is_told(void) {
    fault("outside", "outside its memory");
}

static void a_kernel_at_a_crooked_address_is_told(void) {
    fault("crooked", "misaligned address");
}

static void a_kernel_that_traps_is_told(void) {
    fault("trapped", "trap");
}

static void a_failed_assert_is_told(void) {
    fault("doubtful", "assert");
}

static void exhausted_memory_is_refused_and_all_goes_on(void) {
    struct kit kit;
    kit_open(&kit, TABLE);
    uint64_t unused = 0;
    uint64_t total = 0;
    uint64_t later = 0;
    KIT_OK(&kit, TABLE->memory(kit.seat, &unused, &total, &kit.err));
    struct native_region region;
    CHECK_EQ(
        TABLE->region_create(kit.seat, ACRE_MEMORY_DEVICE, total + MIB, NULL, &region, &kit.err),
        ACRE_ENOMEM);
    fprintf(stderr, "%s\n", kit.err.text);
    KIT_OK(&kit, TABLE->check(kit.seat, &kit.err));
    region = kit_device(&kit, GIB);
    KIT_OK(&kit, TABLE->memory(kit.seat, &later, &total, &kit.err));
    CHECK(unused - later >= GIB);
    TABLE->region_destroy(kit.seat, region.handle);
    KIT_OK(&kit, TABLE->memory(kit.seat, &later, &total, &kit.err));
    CHECK(later + 8 * MIB >= unused);
    CHECK(kit_sync(&kit, 0));
    kit_close(&kit);
}

static void host_memory_is_made_known_once(void) {
    struct kit kit;
    kit_open(&kit, TABLE);
    struct native_region again;
    CHECK_EQ(TABLE->region_create(kit.seat, ACRE_MEMORY_MAPPED, 4096, (void *)kit.words, &again,
                                  &kit.err),
             ACRE_ECONFLICT);
    fprintf(stderr, "%s\n", kit.err.text);
    CHECK(kit_sync(&kit, 0));
    kit_close(&kit);
}

static void closing_a_place_gives_all_back(void) {
    struct kit kit;
    kit_open(&kit, TABLE);
    uint64_t before = 0;
    uint64_t after = 0;
    uint64_t total = 0;
    KIT_OK(&kit, TABLE->memory(kit.seat, &before, &total, &kit.err));
    void *second = NULL;
    KIT_OK(&kit, TABLE->seat_open(kit.self, 0, &second, &kit.err));
    struct native_region region;
    KIT_OK(&kit, TABLE->region_create(second, ACRE_MEMORY_DEVICE, GIB, NULL, &region, &kit.err));
    TABLE->seat_close(second);
    KIT_OK(&kit, TABLE->memory(kit.seat, &after, &total, &kit.err));
    CHECK(after + 16 * MIB >= before);
    CHECK(kit_sync(&kit, 0));
    kit_close(&kit);
}

/* On a stream of its own, until its flag is set. */
static void keep(struct kit *kit, uint32_t stream, uint64_t kernel, struct native_region flag) {
    KIT_OK(kit, TABLE->stream_own(kit->seat, kit->streams[stream], &kit->err));
    KIT_OK(kit, kit_launch(kit, stream, kernel, one, &flag, 1, NULL, 0));
}

/* While a kernel stays on stream 1, everything ordinary works on stream 0. */
static void all_ordinary_work_goes_on_beside_a_resident_kernel(void) {
    struct kit kit;
    kit_open(&kit, TABLE);
    kit_stream(&kit, 1);
    uint64_t stay = kit_kernel(&kit, source, "stay");
    uint64_t count = kit_kernel(&kit, source, "count");
    void *flag = NULL;
    void *host = NULL;
    struct native_region flag_region = kit_host(&kit, ACRE_MEMORY_MAPPED, 4096, &flag);
    struct native_region pinned = kit_host(&kit, ACRE_MEMORY_PINNED, MIB, &host);
    struct native_region device = kit_device(&kit, MIB);
    struct kit_launch_room room;
    uint32_t by = 3;
    const struct native_node node = {
        .kind = ACRE_NODE_LAUNCH, .launch = kit_launch_make(&room, count, one, &device, 1, &by, 1)};
    uint64_t graph = 0;
    KIT_OK(&kit, TABLE->graph_create(kit.seat, &node, 1, &graph, &kit.err));
    struct native_fill clear = {.to = device.handle, .bytes = MIB, .pattern_bytes = 4};
    int fd = eventfd(0, EFD_CLOEXEC);

    keep(&kit, 1, stay, flag_region);
    KIT_OK(&kit, TABLE->signal(kit.seat, kit.streams[1], 1, &kit.err));
    KIT_OK(&kit, TABLE->fill(kit.seat, kit.streams[0], &clear, &kit.err));
    CHECK(kit_sync(&kit, 0));
    fprintf(stderr, "fill: done\n");
    KIT_OK(&kit, kit_launch(&kit, 0, count, one, &device, 1, &by, 1));
    CHECK(kit_sync(&kit, 0));
    fprintf(stderr, "launch: done\n");
    KIT_OK(&kit, TABLE->graph_launch(kit.seat, kit.streams[0], graph, &kit.err));
    CHECK(kit_sync(&kit, 0));
    by = 4;
    struct native_launch other = kit_launch_make(&room, count, one, &device, 1, &by, 1);
    KIT_OK(&kit, TABLE->graph_update(kit.seat, graph, 0, &other, &kit.err));
    KIT_OK(&kit, TABLE->graph_launch(kit.seat, kit.streams[0], graph, &kit.err));
    CHECK(kit_sync(&kit, 0));
    fprintf(stderr, "graph: done\n");
    kit_copy(&kit, 0, pinned, device, MIB);
    KIT_OK(&kit, TABLE->notify(kit.seat, kit.streams[0], fd, &kit.err));
    CHECK(kit_sync(&kit, 0));
    struct pollfd polled = {.fd = fd, .events = POLLIN};
    CHECK_EQ(poll(&polled, 1, KIT_WAIT_MS), 1);
    fprintf(stderr, "copy, notify: done\n");
    CHECK_U64(*(uint32_t *)host, 3 + 3 + 4);
    KIT_OK(&kit, TABLE->check(kit.seat, &kit.err));
    kit_stream(&kit, 2);
    CHECK(kit_sync(&kit, 2));
    fprintf(stderr, "check, new stream: done\n");
    KIT_OK(&kit, TABLE->profile(kit.seat, kit.streams[2], true, &kit.err));
    KIT_OK(&kit, kit_launch(&kit, 2, count, one, &device, 1, &by, 1));
    CHECK(kit_sync(&kit, 2));
    struct acre_timing timing;
    uint32_t told = 0;
    KIT_OK(&kit, TABLE->timings(kit.seat, kit.streams[2], &timing, 1, &told, &kit.err));
    CHECK_U64(told, 1);
    fprintf(stderr, "profile: done\n");

    CHECK_U64(atomic_load(&kit.words[1]), 0);
    *(volatile uint32_t *)flag = 1;
    CHECK(kit_wait(&kit, 1, 1));
    close(fd);
    kit_close(&kit);
}

/* What the front may do only after it has paused a resident kernel, unless these pass. */
static void memory_and_graphs_are_made_beside_a_resident_kernel(void) {
    struct kit kit;
    kit_open(&kit, TABLE);
    kit_stream(&kit, 1);
    uint64_t stay = kit_kernel(&kit, source, "stay");
    uint64_t count = kit_kernel(&kit, source, "count");
    void *flag = NULL;
    void *host = NULL;
    struct native_region flag_region = kit_host(&kit, ACRE_MEMORY_MAPPED, 4096, &flag);
    keep(&kit, 1, stay, flag_region);
    struct native_region device = kit_device(&kit, 64 * MIB);
    fprintf(stderr, "device memory: allocated\n");
    struct kit_launch_room room;
    uint32_t by = 3;
    const struct native_node node = {
        .kind = ACRE_NODE_LAUNCH, .launch = kit_launch_make(&room, count, one, &device, 1, &by, 1)};
    uint64_t graph = 0;
    KIT_OK(&kit, TABLE->graph_create(kit.seat, &node, 1, &graph, &kit.err));
    fprintf(stderr, "graph: made\n");
    KIT_OK(&kit, TABLE->graph_launch(kit.seat, kit.streams[0], graph, &kit.err));
    CHECK(kit_sync(&kit, 0));
    TABLE->graph_destroy(kit.seat, graph);
    fprintf(stderr, "graph: launched and destroyed\n");
    kit_host(&kit, ACRE_MEMORY_PINNED, 64 * MIB, &host);
    fprintf(stderr, "host memory: registered\n");
    kit_stream(&kit, 2);
    TABLE->stream_destroy(kit.seat, kit.streams[2]);
    fprintf(stderr, "stream: made and destroyed\n");
    *(volatile uint32_t *)flag = 1;
    CHECK(kit_sync(&kit, 1));
    kit_close(&kit);
}

/* Sixteen streams, one resident: none of the others is held up behind it. */
static void no_stream_waits_behind_a_resident_kernel(void) {
    struct kit kit;
    kit_open(&kit, TABLE);
    uint64_t stay = kit_kernel(&kit, source, "stay");
    uint64_t count = kit_kernel(&kit, source, "count");
    void *flag = NULL;
    struct native_region flag_region = kit_host(&kit, ACRE_MEMORY_MAPPED, 4096, &flag);
    struct native_region device = kit_device(&kit, 4096);
    for (uint32_t i = 1; i < KIT_STREAMS; i++) {
        kit_stream(&kit, i);
    }
    uint32_t by = 1;
    keep(&kit, 0, stay, flag_region);
    uint32_t held = 0;
    for (uint32_t i = 1; i < KIT_STREAMS && held == 0; i++) {
        KIT_OK(&kit, kit_launch(&kit, i, count, one, &device, 1, &by, 1));
        if (!kit_sync(&kit, i)) {
            held = i;
        }
    }
    const char *connections = getenv("CUDA_DEVICE_MAX_CONNECTIONS");
    fprintf(stderr, "CUDA_DEVICE_MAX_CONNECTIONS: %s\n",
            connections != NULL ? connections : "not set");
    CHECK_U64(held, 0);
    *(volatile uint32_t *)flag = 1;
    CHECK(kit_sync(&kit, 0));
    kit_close(&kit);
}

/* --- threads -------------------------------------------------------------------------------- */

enum { THREADS = 8, LAUNCHES = 5000 };

struct worker {
    struct kit *kit;
    uint32_t stream;
    uint64_t kernel;
    struct native_region device;
    int result;
};

static void *work(void *user) {
    struct worker *worker = user;
    struct kit *kit = worker->kit;
    struct kit_launch_room room;
    uint32_t by = 1;
    struct native_launch launch =
        kit_launch_make(&room, worker->kernel, one, &worker->device, 1, &by, 1);
    struct acre_error err;
    for (uint32_t i = 0; i < LAUNCHES && worker->result == 0; i++) {
        worker->result = TABLE->launch(kit->seat, kit->streams[worker->stream], &launch, &err);
        if (worker->result == 0 && i % 50 == 49) {
            worker->result = TABLE->signal(kit->seat, kit->streams[worker->stream], i + 1, &err);
        }
    }
    return NULL;
}

static void eight_threads_work_at_once(void) {
    struct kit kit;
    kit_open(&kit, TABLE);
    uint64_t kernel = kit_kernel(&kit, source, "count");
    struct native_region device = kit_device(&kit, 4096);
    void *host = NULL;
    struct native_region pinned = kit_host(&kit, ACRE_MEMORY_PINNED, 4096, &host);
    struct native_fill clear = {.to = device.handle, .bytes = 4096, .pattern_bytes = 4};
    KIT_OK(&kit, TABLE->fill(kit.seat, kit.streams[0], &clear, &kit.err));
    REQUIRE(kit_sync(&kit, 0));
    pthread_t threads[THREADS];
    struct worker workers[THREADS];
    uint64_t begun_ns = kit_now_ns();
    for (uint32_t i = 0; i < THREADS; i++) {
        kit_stream(&kit, i + 1);
        workers[i] = (struct worker){&kit, i + 1, kernel, device, 0};
        REQUIRE_EQ(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        CHECK_EQ(workers[i].result, 0);
        CHECK(kit_wait(&kit, i + 1, LAUNCHES));
    }
    fprintf(stderr, "%.2f us per launch overall\n",
            (double)(kit_now_ns() - begun_ns) / 1e3 / (THREADS * LAUNCHES));
    kit_copy(&kit, 0, pinned, device, 4);
    REQUIRE(kit_sync(&kit, 0));
    CHECK_U64(*(uint32_t *)host, THREADS * LAUNCHES);
    kit_close(&kit);
}

/* --- cost ----------------------------------------------------------------------------------- */

enum { ROUNDS = 20000 };

static int compare(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static double median_us(uint64_t *times) {
    qsort(times, ROUNDS, sizeof(*times), compare);
    return (double)times[ROUNDS / 2] / 1e3;
}

/* Launch, signal, see the word: by the table, and by the driver's bare calls, taking turns. */
static void a_call_costs_what_the_driver_costs(void) {
    struct kit kit;
    kit_open(&kit, TABLE);
    uint64_t kernel = kit_kernel(&kit, source, "count");
    struct native_region device = kit_device(&kit, 4096);
    static uint64_t ours[ROUNDS];
    static uint64_t raw[ROUNDS];
    struct kit_launch_room room;
    uint32_t by = 0;
    struct native_launch launch = kit_launch_make(&room, kernel, one, &device, 1, &by, 1);
    const struct gpu_seat *seat = kit.seat;
    const struct gpu_driver *driver = &seat->gpu->driver;
    const struct gpu_stream *stream = gpu_stream_of(kit.streams[0]);
    gpu_handle function = gpu_kernel_of(kernel)->function;
    uintptr_t address = (uintptr_t)device.address;
    void *args[] = {&address, &by};
    uint64_t value = 0;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        uint64_t begun_ns = kit_now_ns();
        TABLE->launch(kit.seat, kit.streams[0], &launch, NULL);
        TABLE->signal(kit.seat, kit.streams[0], ++value, NULL);
        while (atomic_load_explicit(&kit.words[0], memory_order_acquire) < value) {
        }
        uint64_t middle_ns = kit_now_ns();
        driver->launch(function, 1, 1, 1, 1, 1, 1, 0, stream->stream, args, NULL);
        driver->write64(stream->stream, stream->word, ++value, 0);
        while (atomic_load_explicit(&kit.words[0], memory_order_acquire) < value) {
        }
        ours[i] = middle_ns - begun_ns;
        raw[i] = kit_now_ns() - middle_ns;
    }
    double ours_us = median_us(ours);
    double raw_us = median_us(raw);
    fprintf(stderr,
            "call to result: %.2f us by the table (p99 %.2f), %.2f us raw (p99 %.2f): "
            "%.3f times\n",
            ours_us, (double)ours[ROUNDS * 99 / 100] / 1e3, raw_us,
            (double)raw[ROUNDS * 99 / 100] / 1e3, ours_us / raw_us);
    CHECK(ours_us <= raw_us * 1.1);
    kit_close(&kit);
}

static const struct acre_test tests[] = {
    {"a_kernel_outside_its_memory_is_told", a_kernel_outside_its_memory_is_told, 0},
    {"a_kernel_at_a_crooked_address_is_told", a_kernel_at_a_crooked_address_is_told, 0},
    {"a_kernel_that_traps_is_told", a_kernel_that_traps_is_told, 0},
    {"a_failed_assert_is_told", a_failed_assert_is_told, 0},
    {"exhausted_memory_is_refused_and_all_goes_on", exhausted_memory_is_refused_and_all_goes_on, 0},
    {"host_memory_is_made_known_once", host_memory_is_made_known_once, 0},
    {"closing_a_place_gives_all_back", closing_a_place_gives_all_back, 0},
    {"all_ordinary_work_goes_on_beside_a_resident_kernel",
     all_ordinary_work_goes_on_beside_a_resident_kernel, 120},
    {"memory_and_graphs_are_made_beside_a_resident_kernel",
     memory_and_graphs_are_made_beside_a_resident_kernel, 30},
    {"no_stream_waits_behind_a_resident_kernel", no_stream_waits_behind_a_resident_kernel, 60},
    {"eight_threads_work_at_once", eight_threads_work_at_once, 0},
    {"a_call_costs_what_the_driver_costs", a_call_costs_what_the_driver_costs, 0},
};
ACRE_TEST_MAIN(tests)
