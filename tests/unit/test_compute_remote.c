/* A seat in a runner: its table, many callers, and work that is refused late (GPU-1, GPU-6), with
 * a back end that misbehaves as it is told (support/runner_double.c). */
#include "core/spin.h"
#include "support/remote_rig.h"
#include "support/test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- the table ------------------------------------------------------------------------------ */

static void queued_calls_do_what_they_say_in_order(void) {
    struct rig rig = rig_open("double", 1);
    struct acre_error err = {0};
    struct native_region device;
    REQUIRE_EQ(rig.table->region_create(rig.seat, ACRE_MEMORY_DEVICE, 4096, NULL, &device, &err),
               0);
    struct native_fill fill = {
        .to = device.handle, .bytes = 4096, .pattern = 3, .pattern_bytes = 4};
    struct native_copy copy = {.to = rig.host,
                               .to_offset = NUMBERS_AT,
                               .from = device.handle,
                               .from_offset = 0,
                               .bytes = 4096};
    CHECK_EQ(rig.table->fill(rig.seat, rig.stream, &fill, &err), 0);
    CHECK_EQ(rig_add(&rig, device.handle, 0, 1024, 4, &err), 0);
    CHECK_EQ(rig.table->copy(rig.seat, rig.stream, &copy, &err), 0);
    CHECK_EQ(rig_add(&rig, rig.host, NUMBERS_AT + 4, 1, 100, &err), 0);
    CHECK_EQ(rig_reach(&rig, &err), 0);
    CHECK_EQ(rig.numbers[0], 7);
    CHECK_EQ(rig.numbers[1], 107);
    CHECK_EQ(rig.numbers[1023], 7);
    rig.table->region_destroy(rig.seat, device.handle);
    uint64_t regions, total;
    CHECK_EQ(rig.table->memory(rig.seat, &regions, &total, &err), 0);
    CHECK_EQ(regions, 1);
    CHECK_EQ(total, 4096); /* it was started with CUDA_MODULE_LOADING=EAGER */
    CHECK(rig.table->wait == NULL && rig.table->native == NULL);
    CHECK_EQ(rig.table->check(rig.seat, &err), 0);
    rig.table->stream_destroy(rig.seat, rig.stream);
    rig_close(&rig);
}

/* More than the queue holds, with the largest messages there are: it is waited for. */
static void a_full_ring_is_waited_for(void) {
    struct rig rig = rig_open("double", 1);
    struct acre_error err = {0};
    static uint8_t extra[ACRE_EXTRA_MAX];
    struct native_arg args[ACRE_ARGS_MAX] = {
        {.kind = ACRE_NATIVE_BUFFER, .region = rig.host, .offset = NUMBERS_AT, .length = 4},
        {.kind = ACRE_NATIVE_VALUE, .bytes = 4, .region = ACRE_EXTRA_MAX - 4}};
    const uint32_t one = 1;
    memcpy(extra + ACRE_EXTRA_MAX - 4, &one, sizeof(one));
    struct native_launch native = rig_launch_of(1);
    native.args = args;
    native.extra = extra;
    native.extra_bytes = ACRE_EXTRA_MAX;
    rig.numbers[0] = 0;
    for (uint32_t i = 0; i < 3000; i++) {
        native.arg_count = 2 + i % (ACRE_ARGS_MAX - 1);
        REQUIRE_EQ(rig.table->launch(rig.seat, rig.stream, &native, &err), 0);
    }
    CHECK_EQ(rig_reach(&rig, &err), 0);
    CHECK_EQ(rig.numbers[0], 3000);
    rig_close(&rig);
}

static void programs_travel_whole(void) {
    struct rig rig = rig_open("double", 1);
    struct acre_error err = {0};
    size_t length = (3 << 20) + 5;
    char *text = malloc(length + 1);
    REQUIRE(text != NULL);
    memset(text, 'k', length);
    text[length] = '\0';
    const char *const names[] = {"one", "two"};
    struct native_source source = {
        .text = text, .length = length, .options = "-O", .kernels = names, .kernel_count = 2};
    struct acre_buf binary, log;
    acre_buf_init(&binary, 1 << 24);
    acre_buf_init(&log, 1 << 16);
    CHECK_EQ(rig.table->compile(rig.seat, &source, &binary, &log, &err), 0);
    REQUIRE_EQ(binary.length, length);
    CHECK_EQ(memcmp(binary.data, text, length), 0);
    CHECK_STR(log.data, "one(-O)two(-O)");
    uint64_t module = 0;
    CHECK_EQ(rig.table->load(rig.seat, binary.data, binary.length, &module, &err), 0);
    CHECK_EQ(module, length);
    rig.table->unload(rig.seat, module);

    acre_buf_clear(&log);
    acre_buf_clear(&binary);
    source.text = "bad";
    source.length = 3;
    CHECK_EQ(rig.table->compile(rig.seat, &source, &binary, &log, &err), ACRE_EINVALID);
    CHECK_STR(err.text, "kernel:1: bad");
    CHECK_STR(log.data, "kernel:1: bad");
    CHECK_EQ(binary.length, 0);
    CHECK_EQ(rig.table->load(rig.seat, "", 0, &module, &err), ACRE_ECORRUPT);
    CHECK_STR(err.text, "0 bytes without a k");
    struct kernel_facts facts;
    uint64_t kernel;
    CHECK_EQ(rig.table->kernel(rig.seat, 1, "none", &kernel, &facts, &err), ACRE_ENOTFOUND);
    acre_buf_finish(&binary);
    acre_buf_finish(&log);
    free(text);
    rig_close(&rig);
}

static void graphs_are_made_changed_and_replayed(void) {
    struct rig rig = rig_open("double", 1);
    struct acre_error err = {0};
    uint8_t extra[16] = {2};
    const struct native_arg args[] = {
        {.kind = ACRE_NATIVE_BUFFER, .region = rig.host, .offset = NUMBERS_AT, .length = 4},
        {.kind = ACRE_NATIVE_VALUE, .bytes = 4}};
    struct native_launch native = rig_launch_of(1);
    native.args = args;
    native.arg_count = 2;
    native.extra = extra;
    native.extra_bytes = sizeof(extra);
    const uint32_t after[] = {0, 1};
    const struct native_node nodes[] = {
        {.kind = ACRE_NODE_FILL,
         .fill = {.to = rig.host,
                  .to_offset = NUMBERS_AT,
                  .bytes = 8,
                  .pattern = 40,
                  .pattern_bytes = 4}},
        {.kind = ACRE_NODE_LAUNCH, .launch = native, .after = after, .after_count = 1},
        {.kind = ACRE_NODE_COPY,
         .copy = {.to = rig.host,
                  .to_offset = NUMBERS_AT + 8,
                  .from = rig.host,
                  .from_offset = NUMBERS_AT,
                  .bytes = 8},
         .after = after,
         .after_count = 2}};
    uint64_t graph = 0;
    REQUIRE_EQ(rig.table->graph_create(rig.seat, nodes, 3, &graph, &err), 0);
    CHECK_EQ(rig.table->graph_launch(rig.seat, rig.stream, graph, &err), 0);
    /* The launch before goes first. */
    extra[0] = 9;
    CHECK_EQ(rig.table->graph_update(rig.seat, graph, 1, &native, &err), 0);
    CHECK_EQ(rig.table->graph_update(rig.seat, graph, 0, &native, &err), ACRE_EINVALID);
    CHECK_STR(err.text, "node 0 is no launch");
    CHECK_EQ(rig_reach(&rig, &err), 0);
    CHECK_EQ(rig.numbers[2], 42);
    CHECK_EQ(rig.numbers[3], 40);
    CHECK_EQ(rig.table->graph_launch(rig.seat, rig.stream, graph, &err), 0);
    CHECK_EQ(rig_reach(&rig, &err), 0);
    CHECK_EQ(rig.numbers[2], 49);
    rig.table->graph_destroy(rig.seat, graph);
    CHECK_EQ(rig.table->graph_create(rig.seat, nodes, 0, &graph, &err), ACRE_ELIMIT);
    rig_close(&rig);
}

static void times_files_and_tickets_come_back(void) {
    struct rig rig = rig_open("double", 1);
    struct acre_error err = {0};
    CHECK_EQ(rig.table->profile(rig.seat, rig.stream, true, &err), 0);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(rig_add(&rig, rig.host, NUMBERS_AT, 1, 1, &err), 0);
    }
    struct acre_timing timings[8];
    uint32_t count = 0;
    CHECK_EQ(rig.table->timings(rig.seat, rig.stream, timings, 8, &count, &err), 0);
    REQUIRE_EQ(count, 3);
    CHECK_STR(timings[2].name, "work");
    CHECK_EQ(timings[2].bytes, 2);

    char file[] = "remote-XXXXXX";
    char directory[] = "/tmp/acre-remote-XXXXXX";
    REQUIRE(mkdtemp(directory) != NULL);
    REQUIRE_EQ(chdir(directory), 0); /* the runner is elsewhere */
    int fd = mkstemp(file);
    REQUIRE(fd >= 0);
    REQUIRE_EQ(write(fd, "abcdefgh", 8), 8);
    char how[96];
    CHECK_EQ(rig.table->transfer(rig.seat, file, 4, rig.host, NUMBERS_AT, 4, false, how, &err), 0);
    CHECK_STR(how, "plain");
    CHECK_EQ(memcmp(rig.numbers, "efgh", 4), 0);
    CHECK_EQ(rig.table->transfer(rig.seat, "none", 4, rig.host, 0, 4, false, how, &err),
             ACRE_ENOTFOUND);
    close(fd);
    unlink(file);
    rmdir(directory);

    uint8_t ticket[64];
    struct native_region region = {0};
    CHECK_EQ(rig.table->region_export(rig.seat, 77, ticket, &err), 0);
    CHECK_EQ(rig.table->region_import(rig.seat, ticket, &region, &err), 0);
    CHECK_EQ(region.handle, 77);
    ticket[63] = 0;
    CHECK_EQ(rig.table->region_import(rig.seat, ticket, &region, &err), ACRE_EINVALID);
    rig_close(&rig);
}

/* Each eventfd is added to, also one that took the number of another. */
static void notices_reach_their_eventfds(void) {
    struct rig rig = rig_open("double", 1);
    struct acre_error err = {0};
    int fds[100];
    for (int i = 0; i < 100; i++) {
        fds[i] = eventfd(0, EFD_CLOEXEC);
        REQUIRE(fds[i] >= 0);
    }
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 100; i++) {
            CHECK_EQ(rig.table->notify(rig.seat, rig.stream, fds[i], &err), 0);
            CHECK_EQ(rig.table->notify(rig.seat, rig.stream, fds[i], &err), 0);
        }
        CHECK_EQ(rig_reach(&rig, &err), 0);
        for (int i = 0; i < 100; i++) {
            uint64_t count = 0;
            CHECK_EQ(read(fds[i], &count, sizeof(count)), 8);
            CHECK_EQ(count, 2);
            rig.table->forget(rig.seat, fds[i]);
            close(fds[i]);
            fds[i] = eventfd(0, EFD_CLOEXEC);
        }
    }
    rig.table->forget(rig.seat, fds[0]); /* it was never sent */
    CHECK(rig.table->notify(rig.seat, rig.stream, 9999, &err) < 0);
    CHECK_HAS(err.text, "eventfd 9999");
    rig_close(&rig);
}

/* With a back end whose streams do (the double's do their work at once). */
static void streams_wait_for_each_other(void) {
    struct rig rig = rig_open("cpu", 0);
    struct acre_error err = {0};
    uint64_t second = 0;
    if (rig.table->wait == NULL) {
        acre_test_skip("streams of the CPU do not wait");
    }
    REQUIRE_EQ(rig.table->stream_create(rig.seat, rig.host, 8, &second, &err), 0);
    struct native_fill fill = {
        .to = rig.host, .to_offset = NUMBERS_AT, .bytes = 4, .pattern = 9, .pattern_bytes = 4};
    rig.numbers[0] = 0;
    CHECK_EQ(rig.table->wait(rig.seat, second, rig.host, 0, 1, &err), 0);
    CHECK_EQ(rig.table->fill(rig.seat, second, &fill, &err), 0);
    CHECK_EQ(rig.table->signal(rig.seat, second, 1, &err), 0);
    CHECK_EQ(rig.table->check(rig.seat, &err), 0);
    CHECK_U64(atomic_load(rig.words + 1), 0);
    CHECK_EQ(rig.numbers[0], 0);
    CHECK_EQ(rig_reach(&rig, &err), 0);
    while (atomic_load(rig.words + 1) < 1) {
        acre_cpu_relax();
    }
    CHECK_EQ(rig.numbers[0], 9);
    rig_close(&rig);
}

/* Hundreds of them under way, each to an eventfd of its own, while others come and go. */
static void notices_under_way_keep_their_eventfds(void) {
    struct rig rig = rig_open("cpu", 0);
    struct acre_error err = {0};
    uint64_t second = 0;
    enum { NOTICES = 400, OTHERS = 20000 };
    REQUIRE_EQ(rig.table->stream_create(rig.seat, rig.host, 8, &second, &err), 0);
    CHECK_EQ(rig.table->wait(rig.seat, second, rig.host, 0, 1, &err), 0);
    int fds[NOTICES];
    for (int i = 0; i < NOTICES; i++) {
        fds[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        REQUIRE(fds[i] >= 0);
        REQUIRE_EQ(rig.table->notify(rig.seat, second, fds[i], &err), 0);
    }
    int other = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    for (int i = 0; i < OTHERS; i++) { /* at once: nothing is before them */
        REQUIRE_EQ(rig.table->notify(rig.seat, rig.stream, other, &err), 0);
        rig.table->forget(rig.seat, other);
    }
    CHECK_EQ(rig.table->signal(rig.seat, second, 1, &err), 0);
    CHECK_EQ(rig_reach(&rig, &err), 0);
    while (atomic_load(rig.words + 1) < 1) {
        acre_cpu_relax();
    }
    for (int i = 0; i < NOTICES; i++) {
        uint64_t count = 0;
        CHECK_EQ(read(fds[i], &count, sizeof(count)), 8);
        CHECK_U64(count, 1);
        close(fds[i]);
    }
    uint64_t count = 0;
    CHECK_EQ(read(other, &count, sizeof(count)), 8);
    CHECK_U64(count, OTHERS);
    close(other);
    rig_close(&rig);
}

/* --- threads -------------------------------------------------------------------------------- */

static void *compile_slowly(void *argument) {
    struct rig *rig = argument;
    struct acre_error err = {0};
    struct native_source source = {.text = "slow", .length = 4, .options = ""};
    struct acre_buf binary, log;
    acre_buf_init(&binary, 64);
    acre_buf_init(&log, 64);
    CHECK_EQ(rig->table->compile(rig->seat, &source, &binary, &log, &err), 0);
    CHECK_EQ(binary.length, 4);
    acre_buf_finish(&binary);
    acre_buf_finish(&log);
    return NULL;
}

/* It ends only when the work given meanwhile is done. */
static void a_slow_call_holds_up_nobody(void) {
    struct rig rig = rig_open("double", 1);
    struct acre_error err = {0};
    pthread_t threads[2];
    for (size_t i = 0; i < ACRE_COUNT(threads); i++) {
        REQUIRE_EQ(pthread_create(&threads[i], NULL, compile_slowly, &rig), 0);
    }
    rig_check_works(&rig);
    uint64_t a, b;
    CHECK_EQ(rig.table->memory(rig.seat, &a, &b, &err), 0);
    CHECK_EQ(rig_launch(&rig, "open", &err), 0);
    for (size_t i = 0; i < ACRE_COUNT(threads); i++) {
        pthread_join(threads[i], NULL);
    }
    rig_close(&rig);
}

enum { THREADS = 8, ROUNDS = 2000 };

struct worker {
    struct rig rig;
    uint32_t index;
};

static void *work_alone(void *argument) {
    struct worker *worker = argument;
    struct rig *rig = &worker->rig;
    struct acre_error err = {0};
    uint64_t at = NUMBERS_AT + 4 * worker->index;
    uint64_t a, b;
    rig->words += 1 + worker->index;
    REQUIRE_EQ(rig->table->stream_create(rig->seat, rig->host, 8 * (1 + worker->index),
                                         &rig->stream, &err),
               0);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        REQUIRE_EQ(rig_add(rig, rig->host, at, 1, 1, &err), 0);
        if (i % 64 == 0) {
            REQUIRE_EQ(rig_reach(rig, &err), 0);
            CHECK_EQ(rig->numbers[worker->index], i + 1);
            CHECK_EQ(rig->table->memory(rig->seat, &a, &b, &err), 0);
        }
    }
    CHECK_EQ(rig_reach(rig, &err), 0);
    CHECK_EQ(rig->numbers[worker->index], ROUNDS);
    rig->table->stream_destroy(rig->seat, rig->stream);
    return NULL;
}

static void many_threads_have_their_streams(void) {
    struct rig rig = rig_open("double", 1);
    pthread_t threads[THREADS];
    struct worker workers[THREADS];
    for (uint32_t i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.rig = rig, .index = i};
        REQUIRE_EQ(pthread_create(&threads[i], NULL, work_alone, &workers[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    rig_close(&rig);
}

/* --- failures ------------------------------------------------------------------------------- */

/* A refused launch is told once; what came behind it was not done, what comes after is. */
static void a_refused_launch_is_told_and_stops_its_stream(void) {
    struct rig rig = rig_open("double", 1);
    struct acre_error err = {0};
    rig.numbers[0] = 1;
    CHECK_EQ(rig_launch(&rig, "refuse", &err), 0);
    rig_add(&rig, rig.host, NUMBERS_AT, 1, 1, NULL); /* may be told here already */
    uint64_t other = 0;
    CHECK_EQ(rig.table->stream_create(rig.seat, rig.host, 8, &other, &err), 0);
    int r = rig_reach(&rig, &err);
    CHECK(r == ACRE_EINVALID || r == 0);
    if (r < 0) {
        CHECK_STR(err.text, "doubleLaunch: DOUBLE_ERROR_CONFIGURATION");
    }
    CHECK_EQ(rig.numbers[0], 1);
    CHECK_EQ(rig.table->stream_error(rig.seat, rig.stream, &err), 0);
    CHECK_EQ(rig.table->stream_error(rig.seat, other, &err), 0);
    rig_check_works(&rig);

    /* Told by the wait when nothing else was called between. */
    CHECK_EQ(rig_launch(&rig, "refuse", &err), 0);
    CHECK_EQ(rig_reach(&rig, &err), ACRE_EINVALID);
    /* Told by the next call otherwise. */
    CHECK_EQ(rig_launch(&rig, "refuse", &err), 0);
    CHECK_EQ(rig.table->profile(rig.seat, rig.stream, false, &err), 0); /* it has been given */
    CHECK_EQ(rig_add(&rig, rig.host, NUMBERS_AT, 1, 1, &err), ACRE_EINVALID);
    rig_check_works(&rig);
    rig_close(&rig);
}

static void bad_requests_are_refused_by_name(void) {
    struct rig rig = rig_open("double", 1);
    struct acre_error err = {0};
    struct native_region region;
    static uint8_t elsewhere[4096];
    CHECK_EQ(rig.table->region_create(rig.seat, ACRE_MEMORY_PINNED, 4096, elsewhere, &region, &err),
             ACRE_EINVALID);
    CHECK_HAS(err.text, "not shared with the runner");
    CHECK_EQ(rig.table->region_create(rig.seat, ACRE_MEMORY_PINNED, HOST_BYTES + 1,
                                      (void *)rig.words, &region, &err),
             ACRE_EINVALID);
    CHECK_EQ(rig.table->region_create(rig.seat, ACRE_MEMORY_DEVICE, UINT64_C(1) << 40, NULL,
                                      &region, &err),
             ACRE_ENOMEM);
    CHECK_STR(err.text, "doubleAlloc: DOUBLE_ERROR_OUT_OF_MEMORY");
    uint64_t number;
    CHECK_EQ(rig.table->stream_create(rig.seat, 12345, 0, &number, &err), ACRE_EINVALID);
    CHECK_EQ(rig.table->stream_create(rig.seat, rig.host, HOST_BYTES, &number, &err),
             ACRE_EINVALID);
    CHECK_EQ(rig.table->load(rig.seat, rig.words, (size_t)WIRE_PAYLOAD_MAX + 1, &number, &err),
             ACRE_ELIMIT);
    void *host;
    CHECK_EQ(remote_map_host(rig.seat, UINT64_MAX, &host, &err), ACRE_ENOMEM);
    rig_check_works(&rig);
    rig_close(&rig);
}

static void a_runner_that_cannot_start_says_why(void) {
    struct acre_error err = {0};
    void *seat;
    setenv("ACRE_RUNNER", "/none", 1);
    CHECK_EQ(remote_open("double", 0, &seat, &err), ACRE_ENOTFOUND);
    CHECK_STR(err.text, "ACRE_RUNNER: '/none' cannot be executed");
    setenv("ACRE_RUNNER", "/bin/false", 1);
    CHECK_EQ(remote_open("double", 0, &seat, &err), ACRE_EUNAVAILABLE);
    CHECK_STR(err.text, "the runner did not start: the runner exited with code 1");
    char stranger[] = "/tmp/acre-stranger-XXXXXX"; /* it answers, and stays */
    static const char script[] = "#!/bin/sh\nprintf x >&3\nexec sleep 30\n";
    int fd = mkstemp(stranger);
    REQUIRE_EQ(write(fd, script, sizeof(script) - 1), (ssize_t)sizeof(script) - 1);
    fchmod(fd, 0700);
    close(fd);
    setenv("ACRE_RUNNER", stranger, 1);
    CHECK_EQ(remote_open("double", 0, &seat, &err), ACRE_EUNAVAILABLE);
    CHECK_HAS(err.text, "it does not speak this version's protocol");
    CHECK_HAS(err.text, stranger);
    unlink(stranger);
    setenv("ACRE_RUNNER", RUNNER_DOUBLE, 1);
    CHECK_EQ(remote_open("triple", 0, &seat, &err), ACRE_EUNSUPPORTED);
    CHECK_STR(err.text, "this runner has no back end 'triple'");
    CHECK_EQ(remote_open("double", 2, &seat, &err), ACRE_ENOTFOUND);
    CHECK_STR(err.text, "no device 2 of double; it has 2");
    setenv("DOUBLE_ABSENT", "on holiday", 1);
    CHECK_EQ(remote_open("double", 0, &seat, &err), ACRE_EUNAVAILABLE);
    CHECK_STR(err.text, "no double here: on holiday");
    unsetenv("ACRE_RUNNER");
    CHECK_EQ(remote_open("double", 0, &seat, &err), ACRE_ENOTFOUND);
    CHECK_HAS(err.text, "acre-runner was not found next to '");
}

/* --- restarts ------------------------------------------------------------------------------- */

struct asker {
    struct rig *rig;
    atomic_bool *is_over;
    atomic_bool has_ended;
    pthread_t thread;
};

static void *ask_on(void *argument) {
    struct asker *asker = argument;
    while (!atomic_load(asker->is_over)) {
        asker->rig->table->check(asker->rig->seat, NULL); /* it may be gone just now */
    }
    atomic_store(&asker->has_ended, true);
    return NULL;
}

/* Whoever asks while the runner is made anew has an answer, of the one before or of the next. */
static void questions_are_answered_across_restarts(void) { /* GPU-6 */
    enum { ASKERS = 6, RESTARTS = 150, LIMIT_MS = 1500 };
    struct rig rig = rig_open("double", 1);
    struct acre_error err = {0};
    atomic_bool is_over = false;
    struct asker askers[ASKERS];
    for (size_t i = 0; i < ASKERS; i++) {
        askers[i] = (struct asker){.rig = &rig, .is_over = &is_over};
        REQUIRE_EQ(pthread_create(&askers[i].thread, NULL, ask_on, &askers[i]), 0);
    }
    uint64_t end_ns = acre_monotonic_ns() + LIMIT_MS * UINT64_C(1000000);
    uint32_t restarts = 0;
    for (; restarts < RESTARTS && acre_monotonic_ns() < end_ns; restarts++) {
        kill(((struct remote *)rig.seat)->pid, SIGKILL);
        REQUIRE_EQ(remote_restart(rig.seat, &err), 0);
    }
    atomic_store(&is_over, true);
    acre_test_context("%u restarts", restarts);
    end_ns = acre_monotonic_ns() + UINT64_C(10000000000);
    for (size_t i = 0; i < ASKERS; i++) {
        while (!atomic_load(&askers[i].has_ended) && acre_monotonic_ns() < end_ns) {
            acre_test_rest();
        }
        REQUIRE(atomic_load(&askers[i].has_ended)); /* else it waits for ever */
        pthread_join(askers[i].thread, NULL);
    }
    CHECK_EQ(rig.table->check(rig.seat, &err), 0);
    rig_close(&rig);
}

/* --- a program without standard files ------------------------------------------------------- */

/* "1 -> ...; 2 -> ..." of a runner that is started without them. */
static void tell_files(int to) {
    char text[600] = "";
    size_t length = 0;
    void *seat = NULL;
    struct acre_error err = {0};
    for (int fd = 0; fd < 3; fd++) {
        close(fd);
    }
    int r = remote_open("double", 1, &seat, &err);
    if (r < 0) {
        length = (size_t)snprintf(text, sizeof(text), "%s", err.text);
    }
    for (int fd = 1; fd < 3 && r == 0; fd++) {
        char path[64];
        char file[200] = "";
        snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)((struct remote *)seat)->pid, fd);
        ssize_t bytes = readlink(path, file, sizeof(file) - 1);
        length += (size_t)snprintf(text + length, sizeof(text) - length, "%d -> %s; ", fd,
                                   bytes > 0 ? file : "none");
    }
    ssize_t written = write(to, text, length);
    if (r == 0) {
        remote_table(seat)->seat_close(seat);
    }
    _exit(written == (ssize_t)length ? 0 : 1);
}

/* What has their numbers then is memory or a socket of ours: none of the runner's business. */
static void a_runner_writes_to_no_file_of_ours(void) {
    int ends[2];
    char text[600] = "";
    setenv("ACRE_RUNNER", RUNNER_DOUBLE, 1);
    REQUIRE_EQ(pipe2(ends, O_CLOEXEC), 0);
    int out = fcntl(ends[1], F_DUPFD_CLOEXEC, 100);
    REQUIRE(out >= 0);
    close(ends[1]);
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        tell_files(out);
    }
    close(out);
    ssize_t length = read(ends[0], text, sizeof(text) - 1);
    CHECK(length > 0);
    CHECK_STR(text, "1 -> /dev/null; 2 -> /dev/null; ");
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    close(ends[0]);
}

static const struct acre_test tests[] = {
    {"queued_calls_do_what_they_say_in_order", queued_calls_do_what_they_say_in_order, 0},
    {"a_full_ring_is_waited_for", a_full_ring_is_waited_for, 0},
    {"programs_travel_whole", programs_travel_whole, 0},
    {"graphs_are_made_changed_and_replayed", graphs_are_made_changed_and_replayed, 0},
    {"times_files_and_tickets_come_back", times_files_and_tickets_come_back, 0},
    {"notices_reach_their_eventfds", notices_reach_their_eventfds, 0},
    {"notices_under_way_keep_their_eventfds", notices_under_way_keep_their_eventfds, 0},
    {"streams_wait_for_each_other", streams_wait_for_each_other, 0},
    {"a_slow_call_holds_up_nobody", a_slow_call_holds_up_nobody, 0},
    {"many_threads_have_their_streams", many_threads_have_their_streams, 0},
    {"a_refused_launch_is_told_and_stops_its_stream", a_refused_launch_is_told_and_stops_its_stream,
     0},
    {"bad_requests_are_refused_by_name", bad_requests_are_refused_by_name, 0},
    {"a_runner_that_cannot_start_says_why", a_runner_that_cannot_start_says_why, 0},
    {"questions_are_answered_across_restarts", questions_are_answered_across_restarts, 0},
    {"a_runner_writes_to_no_file_of_ours", a_runner_writes_to_no_file_of_ours, 0},
};
ACRE_TEST_MAIN(tests)
