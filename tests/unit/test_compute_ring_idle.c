/* Resident kernels that leave the device while nobody calls, and that have to wait for room on it
 * (GPU-4). On the CPU rings have workers, so the kernel that stays is the test's own: one lane that
 * does what acre_ring does (compute/ring/source.c), which takes a thread of the device for itself.
 */
#include "compute/quiet.h"
#include "compute/ring/inner.h"
#include "compute/stream.h"
#include "core/clock.h"
#include "core/rand.h"
#include "support/test.h"

#include <acre/compute.h>
#include <acre/ring.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

enum { SLOTS = 4, WAIT_MS = 20000 };

static const char handler_text[] =
    "handler void handle(local const uint *in, local uint *out, global uint *state, uint lane,\n"
    "                    uint lanes) {\n"
    "    out[0] = in[0] * 2u + 1u;\n"
    "}\n";

static const char resident_text[] =
    "kernel void acre_ring(global uint *control, global const uint *in, global uint *out,\n"
    "                      global uint *state, uint in_vectors, uint out_vectors, uint mask) {\n"
    "    global volatile uint *words = control;\n"
    "    global const volatile uint *asked = in;\n"
    "    global volatile uint *answers = out;\n"
    "    if (local_id(0) == 0u) {\n"
    "        uint next = words[NEXT];\n"
    "        words[BEATS] = words[BEATS] + 1u;\n"
    "        while (words[STOP] == 0u) {\n"
    "            uint at = (next & mask) * 4u;\n"
    "            if (asked[at + 3u] == next) {\n"
    "                answers[at] = asked[at] * 2u + 1u;\n"
    "                answers[at + 3u] = next;\n"
    "                next++;\n"
    "            }\n"
    "        }\n"
    "        words[NEXT] = next;\n"
    "    }\n"
    "}\n"
    "kernel void gate(global volatile uint *word) {\n"
    "    while (word[0] == 0u) {\n"
    "    }\n"
    "}\n";

struct bench {
    struct acre_compute *compute;
    struct acre_context *context;
    struct acre_program *program;
    struct acre_ring *ring;
    struct acre_error err;
};

static void ok(const struct bench *bench, int result) {
    acre_test_context("%s", result < 0 ? bench->err.text : "");
    REQUIRE_EQ(result, 0);
}

/* The ring of a worker is made one of a kernel that stays. */
static void make_resident(struct bench *bench) {
    struct acre_ring *ring = bench->ring;
    char options[100];
    snprintf(options, sizeof(options), "-DSTOP=%du -DNEXT=%du -DBEATS=%du", RING_STOP, RING_NEXT,
             RING_BEATS);
    struct acre_source source = {.text = resident_text, .options = options};
    ok(bench, acre_program_build(bench->context, &source, &bench->program, NULL, &bench->err));
    ring_worker_stop(ring);
    ring_watcher_stop(ring);
    ring->has_worker = ring->has_watcher = false;
    atomic_store(&ring->watcher_ends, false);
    pthread_mutex_lock(&bench->context->rings_lock);
    ring->path = ACRE_RING_RESIDENT;
    ring->is_proven = true;
    atomic_store(&ring->stream->is_resident, true);
    ok(bench, acre_kernel_find(bench->program, "acre_ring", &ring->kernel, &bench->err));
    ok(bench, ring_serve(ring, &bench->err));
    pthread_mutex_unlock(&bench->context->rings_lock);
    ok(bench, ring_threads_start(ring, &bench->err));
}

static void open_bench(struct bench *bench, enum acre_context_isolation isolation, uint32_t hang_ms,
                       uint32_t idle_ms) {
    *bench = (struct bench){0};
    setenv("ACRE_RUNNER", RUNNER, 1);
    struct acre_compute_options options = {.backends = "cpu", .cache = ""};
    ok(bench, acre_compute_open(&options, &bench->compute, &bench->err));
    struct acre_context_options of = {.isolation = isolation};
    ok(bench, acre_context_open(bench->compute, 0, &of, &bench->context, &bench->err));
    struct acre_source source = {.text = handler_text};
    struct acre_ring_options shape = {
        .in_words = 1, .out_words = 1, .slots = SLOTS, .hang_ms = hang_ms, .idle_ms = idle_ms};
    ok(bench, acre_ring_create(bench->context, &source, &shape, &bench->ring, &bench->err));
    make_resident(bench);
}

static void close_bench(struct bench *bench) {
    acre_ring_destroy(bench->ring);
    acre_program_destroy(bench->program);
    acre_compute_close(bench->compute);
}

static void check_call(struct bench *bench, uint32_t in) {
    uint32_t out = 0;
    ok(bench, acre_ring_call(bench->ring, &in, &out, WAIT_MS, &bench->err));
    CHECK_U64(out, in * 2 + 1);
}

/* How often it has left by then. */
static uint32_t await_nap(struct bench *bench) {
    struct acre_ring_report report;
    uint64_t end_ns = acre_monotonic_ns() + WAIT_MS * UINT64_C(1000000);
    do {
        acre_test_rest();
        acre_ring_report(bench->ring, &report);
    } while (report.is_resident && acre_monotonic_ns() < end_ns);
    CHECK(!report.is_resident);
    CHECK(report.is_running);
    return report.naps;
}

static const enum acre_context_isolation ways[] = {ACRE_CONTEXT_ISOLATION_NONE,
                                                   ACRE_CONTEXT_ISOLATION_PROCESS};

static void a_ring_leaves_when_nobody_calls_and_comes_back(void) {
    for (size_t i = 0; i < ACRE_COUNT(ways); i++) {
        struct bench bench;
        open_bench(&bench, ways[i], WAIT_MS, 10);
        for (uint32_t j = 0; j < 20; j++) {
            await_nap(&bench);
            check_call(&bench, j);
        }
        uint32_t naps = await_nap(&bench);
        CHECK(naps >= 20);
        struct quiet quiet; /* which is no reason to come back */
        quiet_begin(&quiet, bench.context);
        quiet_end(&quiet);
        CHECK_U64(await_nap(&bench), naps);
        check_call(&bench, 20);
        struct acre_ring_report report;
        acre_ring_report(bench.ring, &report);
        CHECK_U64(report.answered, 21);
        CHECK_U64(report.restarts, 0);
        CHECK_U64(report.hangs, 0);
        close_bench(&bench);
    }
}

static void a_ring_that_left_can_be_stopped_and_started(void) {
    for (size_t i = 0; i < ACRE_COUNT(ways); i++) {
        struct bench now;
        struct bench *bench = &now;
        open_bench(bench, ways[i], WAIT_MS, 10);
        await_nap(bench);
        ok(bench, acre_ring_stop(bench->ring, &bench->err));
        uint32_t in = 1;
        uint32_t out = 0;
        CHECK_EQ(acre_ring_call(bench->ring, &in, &out, WAIT_MS, &bench->err), ACRE_ECONFLICT);
        ok(bench, acre_ring_start(bench->ring, &bench->err));
        check_call(bench, 1);
        await_nap(bench);
        uint64_t ticket = 0; /* what is posted to it in its sleep is answered before it stops */
        ok(bench, acre_ring_post(bench->ring, &in, WAIT_MS, &ticket, &bench->err));
        ok(bench, acre_ring_stop(bench->ring, &bench->err));
        ok(bench, acre_ring_collect(bench->ring, ticket, &out, WAIT_MS, &bench->err));
        CHECK_U64(out, 3);
        close_bench(bench);
    }
}

static void a_ring_without_a_limit_stays(void) {
    struct bench bench;
    open_bench(&bench, ACRE_CONTEXT_ISOLATION_NONE, WAIT_MS, 0);
    check_call(&bench, 1);
    poll(NULL, 0, 300);
    struct acre_ring_report report;
    acre_ring_report(bench.ring, &report);
    CHECK(report.is_resident);
    CHECK_U64(report.naps, 0);
    close_bench(&bench);
}

struct caller {
    pthread_t thread;
    struct bench *bench;
    uint32_t number;
};

static void *call_now_and_then(void *user) {
    const struct caller *self = user;
    struct acre_rand rand;
    struct acre_error err = {0};
    acre_rand_seed(&rand, self->number);
    for (uint32_t i = 0; i < 150; i++) {
        uint32_t in = self->number * 1000 + i;
        uint32_t out = 0;
        CHECK_EQ(acre_ring_call(self->bench->ring, &in, &out, WAIT_MS, &err), 0);
        CHECK_U64(out, in * 2 + 1);
        poll(NULL, 0, (int)acre_rand_below(&rand, 5));
    }
    return NULL;
}

/* Who calls when the kernel is about to leave is answered all the same; and so beside pauses. */
static void callers_and_naps_do_not_miss_each_other(void) {
    for (size_t i = 0; i < ACRE_COUNT(ways); i++) {
        struct bench bench;
        struct caller callers[3];
        open_bench(&bench, ways[i], WAIT_MS, 1);
        for (uint32_t j = 0; j < ACRE_COUNT(callers); j++) {
            callers[j] = (struct caller){.bench = &bench, .number = j + 1};
            REQUIRE_EQ(pthread_create(&callers[j].thread, NULL, call_now_and_then, &callers[j]), 0);
        }
        for (uint32_t j = 0; j < 50; j++) {
            struct quiet quiet;
            quiet_begin(&quiet, bench.context);
            quiet_end(&quiet);
            poll(NULL, 0, 5);
        }
        for (uint32_t j = 0; j < ACRE_COUNT(callers); j++) {
            pthread_join(callers[j].thread, NULL);
        }
        CHECK(await_nap(&bench) > 0);
        struct acre_ring_report report;
        acre_ring_report(bench.ring, &report);
        CHECK_U64(report.answered, ACRE_COUNT(callers) * 150);
        CHECK_U64(report.restarts, 0);
        CHECK_U64(report.hangs, 0);
        printf("%u naps\n", report.naps);
        close_bench(&bench);
    }
}

/* Kernels have all threads of the device: the ring's cannot begin, which is no hang of a message.
 */
static void a_kernel_that_waits_for_room_does_not_hang(void) {
    enum { STREAMS_MAX = 512, HANG_MS = 500 };
    static struct acre_stream *streams[STREAMS_MAX];
    struct bench now;
    struct bench *bench = &now;
    open_bench(bench, ACRE_CONTEXT_ISOLATION_NONE, HANG_MS, 10);
    uint32_t count = acre_compute_device(bench->compute, 0)->units;
    REQUIRE(count <= STREAMS_MAX);
    struct acre_kernel *gate;
    struct acre_buffer word;
    ok(bench, acre_kernel_find(bench->program, "gate", &gate, &bench->err));
    await_nap(bench);
    for (uint32_t i = 0; i < count; i++) {
        ok(bench, acre_stream_create(bench->context, &streams[i], &bench->err));
    }
    ok(bench, acre_buffer_alloc(streams[0], ACRE_MEMORY_MAPPED, 64, &word, &bench->err));
    uint32_t *host = acre_buffer_host(bench->context, word);
    __atomic_store_n(host, 0, __ATOMIC_SEQ_CST);
    for (uint32_t i = 0; i < count; i++) {
        struct acre_grid one = {.groups = {1}, .group = {1}};
        ok(bench, acre_launch(streams[i], gate, one, &ACRE_BUFFER(word), 1, &bench->err));
    }
    uint32_t in = 4;
    uint32_t out = 0;
    uint64_t ticket = 0;
    ok(bench, acre_ring_post(bench->ring, &in, WAIT_MS, &ticket, &bench->err));
    poll(NULL, 0, 4 * HANG_MS);
    __atomic_store_n(host, 1, __ATOMIC_SEQ_CST);
    ok(bench, acre_ring_collect(bench->ring, ticket, &out, WAIT_MS, &bench->err));
    CHECK_U64(out, 9);
    struct acre_ring_report report;
    acre_ring_report(bench->ring, &report);
    CHECK_U64(report.hangs, 0);
    CHECK_U64(report.restarts, 0);
    for (uint32_t i = 0; i < count; i++) {
        ok(bench, acre_stream_sync(streams[i], WAIT_MS, &bench->err));
    }
    ok(bench, acre_buffer_free(streams[0], word, &bench->err));
    close_bench(bench);
}

static const struct acre_test tests[] = {
    {"a_ring_leaves_when_nobody_calls_and_comes_back",
     a_ring_leaves_when_nobody_calls_and_comes_back, 0},
    {"a_ring_that_left_can_be_stopped_and_started", a_ring_that_left_can_be_stopped_and_started, 0},
    {"a_ring_without_a_limit_stays", a_ring_without_a_limit_stays, 0},
    {"callers_and_naps_do_not_miss_each_other", callers_and_naps_do_not_miss_each_other, 0},
    {"a_kernel_that_waits_for_room_does_not_hang", a_kernel_that_waits_for_room_does_not_hang, 0},
};
ACRE_TEST_MAIN(tests)
