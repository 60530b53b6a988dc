/* A place in a runner: its table, its failures, its death and its return (GPU-6), with a back end
 * that misbehaves as it is told (support/runner_double.c). */
#include "compute/remote_inner.h"
#include "support/test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- a place and a stream ------------------------------------------------------------------- */

struct rig {
    const struct acre_backend *table;
    void *place;
    _Atomic uint64_t *words; /* of host memory: 512 words, then numbers */
    uint32_t *numbers;
    uint64_t host; /* region */
    uint64_t stream;
    uint64_t issued;
};
enum { HOST_BYTES = 1 << 16, NUMBERS_AT = 4096 };

static void make(struct rig *rig) {
    struct acre_error err = {0};
    struct acre_region region;
    int r = rig->table->region_create(rig->place, ACRE_MEMORY_MAPPED, HOST_BYTES,
                                      (void *)rig->words, &region, &err);
    acre_test_context("%s", err.text);
    REQUIRE_EQ(r, 0);
    rig->host = region.handle;
    rig->issued = 0;
    atomic_store(rig->words, 0);
    REQUIRE_EQ(rig->table->stream_create(rig->place, rig->host, 0, &rig->stream, &err), 0);
    acre_test_context("%s", "");
}

static struct rig rig_open(void) {
    struct rig rig = {0};
    struct acre_error err = {0};
    setenv("ACRE_RUNNER", RUNNER_DOUBLE, 1);
    int r = acre_remote_open("double", 1, &rig.place, &err);
    acre_test_context("%s", err.text);
    REQUIRE_EQ(r, 0);
    rig.table = acre_remote_table(rig.place);
    void *host;
    REQUIRE_EQ(acre_remote_map(rig.place, HOST_BYTES, &host, &err), 0);
    rig.words = host;
    rig.numbers = (void *)((uint8_t *)host + NUMBERS_AT);
    make(&rig);
    return rig;
}

static void rig_close(struct rig *rig) {
    rig->table->place_close(rig->place);
}

static uint64_t find(struct rig *rig, const char *name) {
    struct acre_error err = {0};
    struct acre_kernel_facts facts;
    uint64_t module, kernel = 0;
    REQUIRE_EQ(rig->table->load(rig->place, "kkk", 3, &module, &err), 0);
    REQUIRE_EQ(rig->table->kernel(rig->place, module, name, &kernel, &facts, &err), 0);
    CHECK_EQ(facts.local_bytes, 3);
    return kernel;
}

static struct acre_native_launch launch_of(uint64_t kernel) {
    return (struct acre_native_launch){.kernel = kernel, .grid = {{1, 1, 1}, {1, 1, 1}}};
}

static int launch(struct rig *rig, const char *name, struct acre_error *err) {
    struct acre_native_launch native = launch_of(find(rig, name));
    return rig->table->launch(rig->place, rig->stream, &native, err);
}

static int add(struct rig *rig, uint64_t region, uint64_t offset, uint64_t count, uint32_t value,
               struct acre_error *err) {
    uint8_t extra[16] = {0};
    memcpy(extra, &value, sizeof(value));
    const struct acre_native_arg args[] = {
        {.kind = ACRE_NATIVE_BUFFER, .region = region, .offset = offset, .length = 4 * count},
        {.kind = ACRE_NATIVE_VALUE, .bytes = 4}};
    struct acre_native_launch native = launch_of(1);
    native.args = args;
    native.arg_count = 2;
    native.extra = extra;
    native.extra_bytes = sizeof(extra);
    return rig->table->launch(rig->place, rig->stream, &native, err);
}

/* Signal and wait for it, or for the runner's end. */
static int reach(struct rig *rig, struct acre_error *err) {
    int r = rig->table->signal(rig->place, rig->stream, ++rig->issued, err);
    struct pollfd fd = {.fd = acre_remote_pidfd(rig->place), .events = POLLIN};
    while (r == 0 && atomic_load(rig->words) < rig->issued) {
        if (poll(&fd, 1, 0) == 1) {
            return rig->table->check(rig->place, err);
        }
    }
    return r == 0 ? rig->table->stream_error(rig->place, rig->stream, err) : r;
}

static void await_end(struct rig *rig) {
    struct pollfd fd = {.fd = acre_remote_pidfd(rig->place), .events = POLLIN};
    REQUIRE_EQ(poll(&fd, 1, 20000), 1);
}

static void restart(struct rig *rig) {
    struct acre_error err = {0};
    int r = acre_remote_restart(rig->place, &err);
    acre_test_context("%s", err.text);
    REQUIRE_EQ(r, 0);
    make(rig);
}

/* Work gives the right result. */
static void check_works(struct rig *rig) {
    struct acre_error err = {0};
    rig->numbers[0] = 5;
    CHECK_EQ(add(rig, rig->host, NUMBERS_AT, 1, 7, &err), 0);
    CHECK_EQ(reach(rig, &err), 0);
    CHECK_EQ(rig->numbers[0], 12);
}

/* --- the table ------------------------------------------------------------------------------ */

static void queued_calls_do_what_they_say_in_order(void) {
    struct rig rig = rig_open();
    struct acre_error err = {0};
    struct acre_region device;
    REQUIRE_EQ(rig.table->region_create(rig.place, ACRE_MEMORY_DEVICE, 4096, NULL, &device, &err),
               0);
    struct acre_native_fill fill = {
        .to = device.handle, .bytes = 4096, .pattern = 3, .pattern_bytes = 4};
    struct acre_native_copy copy = {.to = rig.host,
                                    .to_offset = NUMBERS_AT,
                                    .from = device.handle,
                                    .from_offset = 0,
                                    .bytes = 4096};
    CHECK_EQ(rig.table->fill(rig.place, rig.stream, &fill, &err), 0);
    CHECK_EQ(add(&rig, device.handle, 0, 1024, 4, &err), 0);
    CHECK_EQ(rig.table->copy(rig.place, rig.stream, &copy, &err), 0);
    CHECK_EQ(add(&rig, rig.host, NUMBERS_AT + 4, 1, 100, &err), 0);
    CHECK_EQ(reach(&rig, &err), 0);
    CHECK_EQ(rig.numbers[0], 7);
    CHECK_EQ(rig.numbers[1], 107);
    CHECK_EQ(rig.numbers[1023], 7);
    rig.table->region_destroy(rig.place, device.handle);
    uint64_t regions, total;
    CHECK_EQ(rig.table->memory(rig.place, &regions, &total, &err), 0);
    CHECK_EQ(regions, 1);
    CHECK_EQ(total, 4096); /* it was started with CUDA_MODULE_LOADING=EAGER */
    CHECK(rig.table->wait == NULL && rig.table->native == NULL);
    CHECK_EQ(rig.table->check(rig.place, &err), 0);
    rig.table->stream_destroy(rig.place, rig.stream);
    rig_close(&rig);
}

/* More than the ring holds, with the largest messages there are: it is waited for. */
static void a_full_ring_is_waited_for(void) {
    struct rig rig = rig_open();
    struct acre_error err = {0};
    static uint8_t extra[ACRE_EXTRA_MAX];
    struct acre_native_arg args[ACRE_ARGS_MAX] = {
        {.kind = ACRE_NATIVE_BUFFER, .region = rig.host, .offset = NUMBERS_AT, .length = 4},
        {.kind = ACRE_NATIVE_VALUE, .bytes = 4, .region = ACRE_EXTRA_MAX - 4}};
    const uint32_t one = 1;
    memcpy(extra + ACRE_EXTRA_MAX - 4, &one, sizeof(one));
    struct acre_native_launch native = launch_of(1);
    native.args = args;
    native.extra = extra;
    native.extra_bytes = ACRE_EXTRA_MAX;
    rig.numbers[0] = 0;
    for (uint32_t i = 0; i < 3000; i++) {
        native.arg_count = 2 + i % (ACRE_ARGS_MAX - 1);
        REQUIRE_EQ(rig.table->launch(rig.place, rig.stream, &native, &err), 0);
    }
    CHECK_EQ(reach(&rig, &err), 0);
    CHECK_EQ(rig.numbers[0], 3000);
    rig_close(&rig);
}

static void programs_travel_whole(void) {
    struct rig rig = rig_open();
    struct acre_error err = {0};
    size_t length = (3 << 20) + 5;
    char *text = malloc(length + 1);
    REQUIRE(text != NULL);
    memset(text, 'k', length);
    text[length] = '\0';
    const char *const names[] = {"one", "two"};
    struct acre_native_source source = {
        .text = text, .length = length, .options = "-O", .kernels = names, .kernel_count = 2};
    struct acre_buf binary, log;
    acre_buf_init(&binary, 1 << 24);
    acre_buf_init(&log, 1 << 16);
    CHECK_EQ(rig.table->compile(rig.place, &source, &binary, &log, &err), 0);
    REQUIRE_EQ(binary.length, length);
    CHECK_EQ(memcmp(binary.data, text, length), 0);
    CHECK_STR(log.data, "one(-O)two(-O)");
    uint64_t module = 0;
    CHECK_EQ(rig.table->load(rig.place, binary.data, binary.length, &module, &err), 0);
    CHECK_EQ(module, length);
    rig.table->unload(rig.place, module);

    acre_buf_clear(&log);
    acre_buf_clear(&binary);
    source.text = "bad";
    source.length = 3;
    CHECK_EQ(rig.table->compile(rig.place, &source, &binary, &log, &err), ACRE_EINVALID);
    CHECK_STR(err.text, "kernel:1: bad");
    CHECK_STR(log.data, "kernel:1: bad");
    CHECK_EQ(binary.length, 0);
    CHECK_EQ(rig.table->load(rig.place, "", 0, &module, &err), ACRE_ECORRUPT);
    CHECK_STR(err.text, "0 bytes without a k");
    struct acre_kernel_facts facts;
    uint64_t kernel;
    CHECK_EQ(rig.table->kernel(rig.place, 1, "none", &kernel, &facts, &err), ACRE_ENOTFOUND);
    acre_buf_finish(&binary);
    acre_buf_finish(&log);
    free(text);
    rig_close(&rig);
}

static void graphs_are_made_changed_and_replayed(void) {
    struct rig rig = rig_open();
    struct acre_error err = {0};
    uint8_t extra[16] = {2};
    const struct acre_native_arg args[] = {
        {.kind = ACRE_NATIVE_BUFFER, .region = rig.host, .offset = NUMBERS_AT, .length = 4},
        {.kind = ACRE_NATIVE_VALUE, .bytes = 4}};
    struct acre_native_launch native = launch_of(1);
    native.args = args;
    native.arg_count = 2;
    native.extra = extra;
    native.extra_bytes = sizeof(extra);
    const uint32_t after[] = {0, 1};
    const struct acre_native_node nodes[] = {
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
    REQUIRE_EQ(rig.table->graph_create(rig.place, nodes, 3, &graph, &err), 0);
    CHECK_EQ(rig.table->graph_launch(rig.place, rig.stream, graph, &err), 0);
    /* The launch before goes first. */
    extra[0] = 9;
    CHECK_EQ(rig.table->graph_update(rig.place, graph, 1, &native, &err), 0);
    CHECK_EQ(rig.table->graph_update(rig.place, graph, 0, &native, &err), ACRE_EINVALID);
    CHECK_STR(err.text, "node 0 is no launch");
    CHECK_EQ(reach(&rig, &err), 0);
    CHECK_EQ(rig.numbers[2], 42);
    CHECK_EQ(rig.numbers[3], 40);
    CHECK_EQ(rig.table->graph_launch(rig.place, rig.stream, graph, &err), 0);
    CHECK_EQ(reach(&rig, &err), 0);
    CHECK_EQ(rig.numbers[2], 49);
    rig.table->graph_destroy(rig.place, graph);
    CHECK_EQ(rig.table->graph_create(rig.place, nodes, 0, &graph, &err), ACRE_ELIMIT);
    rig_close(&rig);
}

static void times_files_and_tickets_come_back(void) {
    struct rig rig = rig_open();
    struct acre_error err = {0};
    CHECK_EQ(rig.table->profile(rig.place, rig.stream, true, &err), 0);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(add(&rig, rig.host, NUMBERS_AT, 1, 1, &err), 0);
    }
    struct acre_timing timings[8];
    uint32_t count = 0;
    CHECK_EQ(rig.table->timings(rig.place, rig.stream, timings, 8, &count, &err), 0);
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
    CHECK_EQ(rig.table->transfer(rig.place, file, 4, rig.host, NUMBERS_AT, 4, false, how, &err), 0);
    CHECK_STR(how, "plain");
    CHECK_EQ(memcmp(rig.numbers, "efgh", 4), 0);
    CHECK_EQ(rig.table->transfer(rig.place, "none", 4, rig.host, 0, 4, false, how, &err),
             ACRE_ENOTFOUND);
    close(fd);
    unlink(file);
    rmdir(directory);

    uint8_t ticket[64];
    struct acre_region region = {0};
    CHECK_EQ(rig.table->region_export(rig.place, 77, ticket, &err), 0);
    CHECK_EQ(rig.table->region_import(rig.place, ticket, &region, &err), 0);
    CHECK_EQ(region.handle, 77);
    ticket[63] = 0;
    CHECK_EQ(rig.table->region_import(rig.place, ticket, &region, &err), ACRE_EINVALID);
    rig_close(&rig);
}

/* Each eventfd is added to, also one that took the number of another. */
static void notices_reach_their_eventfds(void) {
    struct rig rig = rig_open();
    struct acre_error err = {0};
    int fds[100];
    for (int i = 0; i < 100; i++) {
        fds[i] = eventfd(0, EFD_CLOEXEC);
        REQUIRE(fds[i] >= 0);
    }
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 100; i++) {
            CHECK_EQ(rig.table->notify(rig.place, rig.stream, fds[i], &err), 0);
            CHECK_EQ(rig.table->notify(rig.place, rig.stream, fds[i], &err), 0);
        }
        CHECK_EQ(reach(&rig, &err), 0);
        for (int i = 0; i < 100; i++) {
            uint64_t count = 0;
            CHECK_EQ(read(fds[i], &count, sizeof(count)), 8);
            CHECK_EQ(count, 2);
            close(fds[i]);
            fds[i] = eventfd(0, EFD_CLOEXEC);
        }
    }
    CHECK(rig.table->notify(rig.place, rig.stream, 9999, &err) < 0);
    CHECK_HAS(err.text, "eventfd 9999");
    rig_close(&rig);
}

/* --- threads -------------------------------------------------------------------------------- */

static void *compile_slowly(void *argument) {
    struct rig *rig = argument;
    struct acre_error err = {0};
    struct acre_native_source source = {.text = "slow", .length = 4, .options = ""};
    struct acre_buf binary, log;
    acre_buf_init(&binary, 64);
    acre_buf_init(&log, 64);
    CHECK_EQ(rig->table->compile(rig->place, &source, &binary, &log, &err), 0);
    CHECK_EQ(binary.length, 4);
    acre_buf_finish(&binary);
    acre_buf_finish(&log);
    return NULL;
}

/* It ends only when the work given meanwhile is done. */
static void a_slow_call_holds_up_nobody(void) {
    struct rig rig = rig_open();
    struct acre_error err = {0};
    pthread_t threads[2];
    for (size_t i = 0; i < ACRE_COUNT(threads); i++) {
        REQUIRE_EQ(pthread_create(&threads[i], NULL, compile_slowly, &rig), 0);
    }
    check_works(&rig);
    uint64_t a, b;
    CHECK_EQ(rig.table->memory(rig.place, &a, &b, &err), 0);
    CHECK_EQ(launch(&rig, "open", &err), 0);
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
    REQUIRE_EQ(rig->table->stream_create(rig->place, rig->host, 8 * (1 + worker->index),
                                         &rig->stream, &err),
               0);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        REQUIRE_EQ(add(rig, rig->host, at, 1, 1, &err), 0);
        if (i % 64 == 0) {
            REQUIRE_EQ(reach(rig, &err), 0);
            CHECK_EQ(rig->numbers[worker->index], i + 1);
            CHECK_EQ(rig->table->memory(rig->place, &a, &b, &err), 0);
        }
    }
    CHECK_EQ(reach(rig, &err), 0);
    CHECK_EQ(rig->numbers[worker->index], ROUNDS);
    rig->table->stream_destroy(rig->place, rig->stream);
    return NULL;
}

static void many_threads_have_their_streams(void) {
    struct rig rig = rig_open();
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
    struct rig rig = rig_open();
    struct acre_error err = {0};
    rig.numbers[0] = 1;
    CHECK_EQ(launch(&rig, "refuse", &err), 0);
    add(&rig, rig.host, NUMBERS_AT, 1, 1, NULL); /* may be told here already */
    uint64_t other = 0;
    CHECK_EQ(rig.table->stream_create(rig.place, rig.host, 8, &other, &err), 0);
    int r = reach(&rig, &err);
    CHECK(r == ACRE_EINVALID || r == 0);
    if (r < 0) {
        CHECK_STR(err.text, "doubleLaunch: DOUBLE_ERROR_CONFIGURATION");
    }
    CHECK_EQ(rig.numbers[0], 1);
    CHECK_EQ(rig.table->stream_error(rig.place, rig.stream, &err), 0);
    CHECK_EQ(rig.table->stream_error(rig.place, other, &err), 0);
    check_works(&rig);

    /* Told by the wait when nothing else was called between. */
    CHECK_EQ(launch(&rig, "refuse", &err), 0);
    CHECK_EQ(reach(&rig, &err), ACRE_EINVALID);
    /* Told by the next call otherwise. */
    CHECK_EQ(launch(&rig, "refuse", &err), 0);
    CHECK_EQ(rig.table->profile(rig.place, rig.stream, false, &err), 0); /* it has been given */
    CHECK_EQ(add(&rig, rig.host, NUMBERS_AT, 1, 1, &err), ACRE_EINVALID);
    check_works(&rig);
    rig_close(&rig);
}

static void bad_requests_are_refused_by_name(void) {
    struct rig rig = rig_open();
    struct acre_error err = {0};
    struct acre_region region;
    static uint8_t elsewhere[4096];
    CHECK_EQ(
        rig.table->region_create(rig.place, ACRE_MEMORY_PINNED, 4096, elsewhere, &region, &err),
        ACRE_EINVALID);
    CHECK_HAS(err.text, "not shared with the runner");
    CHECK_EQ(rig.table->region_create(rig.place, ACRE_MEMORY_PINNED, HOST_BYTES + 1,
                                      (void *)rig.words, &region, &err),
             ACRE_EINVALID);
    CHECK_EQ(rig.table->region_create(rig.place, ACRE_MEMORY_DEVICE, UINT64_C(1) << 40, NULL,
                                      &region, &err),
             ACRE_ENOMEM);
    CHECK_STR(err.text, "doubleAlloc: DOUBLE_ERROR_OUT_OF_MEMORY");
    uint64_t number;
    CHECK_EQ(rig.table->stream_create(rig.place, 12345, 0, &number, &err), ACRE_EINVALID);
    CHECK_EQ(rig.table->stream_create(rig.place, rig.host, HOST_BYTES, &number, &err),
             ACRE_EINVALID);
    CHECK_EQ(rig.table->load(rig.place, rig.words, (size_t)WIRE_PAYLOAD_MAX + 1, &number, &err),
             ACRE_ELIMIT);
    void *host;
    CHECK_EQ(acre_remote_map(rig.place, UINT64_MAX, &host, &err), ACRE_ENOMEM);
    check_works(&rig);
    rig_close(&rig);
}

static void a_runner_that_cannot_start_says_why(void) {
    struct acre_error err = {0};
    void *place;
    setenv("ACRE_RUNNER", "/none", 1);
    CHECK_EQ(acre_remote_open("double", 0, &place, &err), ACRE_ENOTFOUND);
    CHECK_STR(err.text, "ACRE_RUNNER: '/none' cannot be executed");
    setenv("ACRE_RUNNER", "/bin/false", 1);
    CHECK_EQ(acre_remote_open("double", 0, &place, &err), ACRE_EUNAVAILABLE);
    CHECK_STR(err.text, "the runner did not start: the runner exited with code 1");
    setenv("ACRE_RUNNER", RUNNER_DOUBLE, 1);
    CHECK_EQ(acre_remote_open("triple", 0, &place, &err), ACRE_EUNSUPPORTED);
    CHECK_STR(err.text, "this runner has no back end 'triple'");
    CHECK_EQ(acre_remote_open("double", 2, &place, &err), ACRE_ENOTFOUND);
    CHECK_STR(err.text, "device 2 of double: there are 2");
    setenv("DOUBLE_ABSENT", "on holiday", 1);
    CHECK_EQ(acre_remote_open("double", 0, &place, &err), ACRE_EUNAVAILABLE);
    CHECK_STR(err.text, "no double here: on holiday");
    unsetenv("ACRE_RUNNER");
    CHECK_EQ(acre_remote_open("double", 0, &place, &err), ACRE_ENOTFOUND);
    CHECK_HAS(err.text, "acre-runner: not beside '");
}

/* --- death ---------------------------------------------------------------------------------- */

static const struct {
    const char *kernel;
    const char *why;
} deaths[] = {
    {"crash", "the runner was ended by signal 11 (Segmentation fault)"},
    {"abort", "the runner was ended by signal 6 (Aborted)"},
    {"fault", "a kernel read or wrote outside its memory (DOUBLE_ERROR_ADDRESS)"},
};

static void a_death_is_explained_and_survived(void) { /* GPU-6 */
    struct rig rig = rig_open();
    struct rig other = rig_open();
    for (size_t i = 0; i < ACRE_COUNT(deaths); i++) {
        struct acre_error err = {0};
        CHECK_EQ(launch(&rig, deaths[i].kernel, &err), 0);
        uint64_t begun_ns = wire_now_ns();
        CHECK_EQ(reach(&rig, &err), ACRE_EUNAVAILABLE);
        CHECK_HAS(err.text, deaths[i].why);
        CHECK((wire_now_ns() - begun_ns) / 1000000 < 1500);
        /* So does everything else. */
        uint64_t a, b;
        CHECK_EQ(rig.table->memory(rig.place, &a, &b, &err), ACRE_EUNAVAILABLE);
        CHECK_HAS(err.text, deaths[i].why);
        CHECK_EQ(add(&rig, rig.host, NUMBERS_AT, 1, 1, &err), ACRE_EUNAVAILABLE);
        CHECK_HAS(err.text, deaths[i].why);
        CHECK_EQ(rig.table->stream_create(rig.place, 1, 0, &a, &err), ACRE_EUNAVAILABLE);
        check_works(&other);
        restart(&rig);
        check_works(&rig);
    }
    rig_close(&rig);
    rig_close(&other);
}

struct waiting {
    struct rig *rig;
    int result;
    struct acre_error err;
};

static void *fill_ring(void *argument) {
    struct waiting *waiting = argument;
    struct rig *rig = waiting->rig;
    do { /* until the ring is full, and then until the end */
        waiting->result = add(rig, rig->host, NUMBERS_AT, 1, 1, &waiting->err);
    } while (waiting->result == 0);
    return NULL;
}

static void *ask_behind(void *argument) {
    struct waiting *waiting = argument;
    struct rig *rig = waiting->rig;
    waiting->result = rig->table->profile(rig->place, rig->stream, false, &waiting->err);
    return NULL;
}

/* A kernel that never ends: whoever waits for room or for an answer comes back with the reason. */
static void an_ended_runner_lets_everybody_go(void) {
    struct rig rig = rig_open();
    struct acre_error err = {0};
    CHECK_EQ(launch(&rig, "hang", &err), 0);
    CHECK_EQ(rig.table->signal(rig.place, rig.stream, ++rig.issued, &err), 0);
    pthread_t threads[8];
    struct waiting waiting[8];
    for (size_t i = 0; i < ACRE_COUNT(threads); i++) {
        waiting[i] = (struct waiting){.rig = &rig};
        REQUIRE_EQ(pthread_create(&threads[i], NULL, i < 2 ? fill_ring : ask_behind, &waiting[i]),
                   0);
    }
    const struct remote *remote = rig.place;
    while (atomic_load(&remote->shared->room_wanted) == 0) { /* until they wait */
        sched_yield();
    }
    CHECK_U64(atomic_load(rig.words), 0);
    acre_remote_end(rig.place, "kernel 'hang' ran longer than 5 ms");
    for (size_t i = 0; i < ACRE_COUNT(threads); i++) {
        pthread_join(threads[i], NULL);
        CHECK_EQ(waiting[i].result, ACRE_EUNAVAILABLE);
        CHECK_STR(waiting[i].err.text, "kernel 'hang' ran longer than 5 ms");
    }
    CHECK_EQ(rig.table->check(rig.place, &err), ACRE_EUNAVAILABLE);
    CHECK_STR(err.text, "kernel 'hang' ran longer than 5 ms");
    rig.numbers[100] = 77;
    restart(&rig);
    CHECK_EQ(rig.numbers[100], 77); /* host memory stays */
    check_works(&rig);
    /* Running or not, it is started anew. */
    restart(&rig);
    check_works(&rig);
    rig_close(&rig);
}

static void a_hung_runner_is_closed(void) {
    struct rig rig = rig_open();
    struct acre_error err = {0};
    CHECK_EQ(launch(&rig, "hang", &err), 0);
    uint64_t begun_ns = wire_now_ns();
    rig_close(&rig);
    CHECK((wire_now_ns() - begun_ns) / 1000000 < 1500);
}

/* A message that makes no sense ends the runner, with its reason. */
static void a_damaged_ring_ends_the_runner(void) {
    struct rig rig = rig_open();
    struct acre_error err = {0};
    struct remote *remote = rig.place;
    struct wire_message *message = (void *)remote->shared->ring;
    *message = (struct wire_message){.bytes = 32, .op = WIRE_SIGNAL, .stream = 999};
    atomic_store(&remote->shared->head, 32);
    atomic_store(&remote->shared->queue_sleeps, 0);
    wire_futex_wake(&remote->shared->queue_sleeps);
    await_end(&rig);
    CHECK_EQ(rig.table->check(rig.place, &err), ACRE_EUNAVAILABLE);
    CHECK_STR(err.text, "a message for a stream that is not there");
    restart(&rig);
    check_works(&rig);
    rig_close(&rig);
}

/* Killed while idle by somebody else: the next call that is queued may notice, check() does. */
static void a_killed_runner_is_noticed(void) {
    struct rig rig = rig_open();
    struct acre_error err = {0};
    kill(((struct remote *)rig.place)->pid, SIGKILL);
    await_end(&rig);
    CHECK_EQ(rig.table->check(rig.place, &err), ACRE_EUNAVAILABLE);
    CHECK_HAS(err.text, "the runner was ended by signal 9 (Killed)");
    rig_close(&rig);
}

/* A program that ignores its children, or collects them all, loses the reason and nothing else. */
static void children_of_the_program_are_not_our_business(void) {
    struct rig rig = rig_open();
    struct acre_error err = {0};
    signal(SIGCHLD, SIG_IGN);
    CHECK_EQ(launch(&rig, "crash", &err), 0);
    await_end(&rig);
    CHECK_EQ(rig.table->check(rig.place, &err), ACRE_EUNAVAILABLE);
    CHECK_HAS(err.text, "the runner ended; how is not known");
    restart(&rig);
    check_works(&rig);
    signal(SIGCHLD, SIG_DFL);
    pid_t child = fork();
    if (child == 0) {
        _exit(7);
    }
    restart(&rig);
    rig_close(&rig);
    int status = 0;
    CHECK_EQ(waitpid(-1, &status, 0), child); /* ours is collected, theirs is not */
    CHECK_EQ(WEXITSTATUS(status), 7);
}

/* --- parents and leaks ---------------------------------------------------------------------- */

/* A child opens a place, makes it hang or not, and is killed: so is the runner, even when a child
 * of that child still has its socket. */
static void a_runner_never_outlives_its_parent(void) {
    for (int hangs = 0; hangs < 2; hangs++) {
        int pipes[2];
        REQUIRE_EQ(pipe(pipes), 0);
        pid_t parent = fork();
        REQUIRE(parent >= 0);
        if (parent == 0) {
            struct rig rig = rig_open();
            pid_t pids[2] = {((struct remote *)rig.place)->pid, fork()};
            if (pids[1] == 0) {
                for (;;) {
                    pause();
                }
            }
            if (hangs) {
                launch(&rig, "hang", NULL);
            }
            if (write(pipes[1], pids, sizeof(pids)) != sizeof(pids)) {
                _exit(1);
            }
            for (;;) {
                pause();
            }
        }
        pid_t pids[2];
        REQUIRE_EQ(read(pipes[0], pids, sizeof(pids)), (ssize_t)sizeof(pids));
        int pidfd = pidfd_open(pids[0], 0);
        REQUIRE(pidfd >= 0);
        kill(parent, SIGKILL);
        struct pollfd fd = {.fd = pidfd, .events = POLLIN};
        CHECK_EQ(poll(&fd, 1, 5000), 1);
        kill(pids[1], SIGKILL);
        waitpid(parent, NULL, 0);
        close(pidfd);
        close(pipes[0]);
        close(pipes[1]);
    }
}

static uint32_t count_fds(void) {
    uint32_t count = 0;
    DIR *directory = opendir("/proc/self/fd");
    REQUIRE(directory != NULL);
    while (readdir(directory) != NULL) {
        count++;
    }
    closedir(directory);
    return count;
}

static uint64_t resident_pages(void) {
    unsigned long long size, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    REQUIRE(file != NULL);
    REQUIRE_EQ(fscanf(file, "%llu %llu", &size, &resident), 2);
    fclose(file);
    return resident;
}

static void a_thousand_restarts_leak_nothing(void) {
    struct rig rig = rig_open();
    uint64_t begun_ns = wire_now_ns();
    uint32_t fds = 0;
    uint64_t pages = 0;
    const uint32_t rounds = 1000;
    for (uint32_t i = 0; i < rounds; i++) {
        if (i % 3 == 0) {
            launch(&rig, "hang", NULL);
        }
        restart(&rig);
        if (i % 100 == 0) {
            check_works(&rig);
        }
        if (i == 99) {
            fds = count_fds();
            pages = resident_pages();
        }
    }
    CHECK_EQ(count_fds(), fds);
    CHECK(resident_pages() < pages + 256);
    fprintf(stderr, "# a restart takes %.2f ms\n",
            (double)(wire_now_ns() - begun_ns) / 1e6 / rounds);
    rig_close(&rig);
}

static void host_memory_is_given_back(void) {
    struct rig rig = rig_open();
    struct acre_error err = {0};
    const uint64_t bytes = 8 << 20;
    for (uint32_t i = 0; i < 32; i++) {
        void *host;
        struct acre_region region;
        REQUIRE_EQ(acre_remote_map(rig.place, bytes, &host, &err), 0);
        CHECK_EQ((uintptr_t)host % (2 << 20), 0);
        REQUIRE_EQ(
            rig.table->region_create(rig.place, ACRE_MEMORY_PINNED, bytes, host, &region, &err), 0);
        struct acre_native_fill fill = {
            .to = region.handle, .bytes = bytes, .pattern = i + 1, .pattern_bytes = 8};
        CHECK_EQ(rig.table->fill(rig.place, rig.stream, &fill, &err), 0);
        CHECK_EQ(reach(&rig, &err), 0);
        CHECK_U64(((uint64_t *)host)[bytes / 8 - 1], i + 1);
        rig.table->region_destroy(rig.place, region.handle);
        acre_remote_unmap(rig.place, host, bytes);
    }
    struct stat facts;
    REQUIRE_EQ(fstat(((struct remote *)rig.place)->host_fd, &facts), 0);
    CHECK((uint64_t)facts.st_blocks * 512 < bytes);
    rig_close(&rig);
}

/* --- time ----------------------------------------------------------------------------------- */

static uint64_t cpu_ticks(pid_t pid) {
    char path[64];
    char text[1024] = "";
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "r");
    REQUIRE(file != NULL);
    REQUIRE(fgets(text, sizeof(text), file) != NULL);
    fclose(file);
    unsigned long long user = 0, system = 0;
    const char *rest = strrchr(text, ')');
    REQUIRE(rest != NULL);
    REQUIRE_EQ(
        sscanf(rest, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &user, &system), 2);
    return user + system;
}

static void an_idle_runner_uses_no_processor(void) {
    struct rig rig = rig_open();
    check_works(&rig);
    pid_t pid = ((struct remote *)rig.place)->pid;
    struct pollfd fd = {.fd = acre_remote_pidfd(rig.place), .events = POLLIN};
    CHECK_EQ(poll(&fd, 1, 100), 0);
    uint64_t before = cpu_ticks(pid);
    CHECK_EQ(poll(&fd, 1, 1000), 0); /* nothing comes for a second */
    CHECK(cpu_ticks(pid) - before <= 1);
    rig_close(&rig);
}

static int compare(const void *a, const void *b) {
    return (*(const uint64_t *)a > *(const uint64_t *)b) -
           (*(const uint64_t *)a < *(const uint64_t *)b);
}

/* Not asserted: how long a launch and its signal take to be seen by the caller, beside what the
 * same work takes in the runner (nothing). */
static void report_hand_over(void) {
    struct rig rig = rig_open();
    struct acre_error err = {0};
    static uint64_t ns[20000];
    uint64_t queued_ns = 0;
    for (size_t i = 0; i < ACRE_COUNT(ns); i++) {
        uint64_t begun_ns = wire_now_ns();
        REQUIRE_EQ(add(&rig, rig.host, NUMBERS_AT, 1, 1, &err), 0);
        REQUIRE_EQ(rig.table->signal(rig.place, rig.stream, ++rig.issued, &err), 0);
        queued_ns += wire_now_ns() - begun_ns;
        while (atomic_load_explicit(rig.words, memory_order_acquire) < rig.issued) {
            wire_pause();
        }
        ns[i] = wire_now_ns() - begun_ns;
    }
    qsort(ns, ACRE_COUNT(ns), sizeof(ns[0]), compare);
    uint64_t begun_ns = wire_now_ns();
    const uint32_t many = 200000;
    for (uint32_t i = 0; i < many; i++) {
        REQUIRE_EQ(add(&rig, rig.host, NUMBERS_AT, 1, 1, &err), 0);
    }
    CHECK_EQ(reach(&rig, &err), 0);
    double seconds = (double)(wire_now_ns() - begun_ns) / 1e9;
    fprintf(stderr,
            "# launch + signal seen: p50 %.2f us, p99 %.2f us (both calls: %.2f us); "
            "%.2f million launches/s\n",
            (double)ns[ACRE_COUNT(ns) / 2] / 1e3, (double)ns[ACRE_COUNT(ns) * 99 / 100] / 1e3,
            (double)queued_ns / (double)ACRE_COUNT(ns) / 1e3, many / seconds / 1e6);
    rig_close(&rig);
}

static const struct acre_test tests[] = {
    {"queued_calls_do_what_they_say_in_order", queued_calls_do_what_they_say_in_order, 0},
    {"a_full_ring_is_waited_for", a_full_ring_is_waited_for, 0},
    {"programs_travel_whole", programs_travel_whole, 0},
    {"graphs_are_made_changed_and_replayed", graphs_are_made_changed_and_replayed, 0},
    {"times_files_and_tickets_come_back", times_files_and_tickets_come_back, 0},
    {"notices_reach_their_eventfds", notices_reach_their_eventfds, 0},
    {"a_slow_call_holds_up_nobody", a_slow_call_holds_up_nobody, 0},
    {"many_threads_have_their_streams", many_threads_have_their_streams, 0},
    {"a_refused_launch_is_told_and_stops_its_stream", a_refused_launch_is_told_and_stops_its_stream,
     0},
    {"bad_requests_are_refused_by_name", bad_requests_are_refused_by_name, 0},
    {"a_runner_that_cannot_start_says_why", a_runner_that_cannot_start_says_why, 0},
    {"a_death_is_explained_and_survived", a_death_is_explained_and_survived, 0},
    {"an_ended_runner_lets_everybody_go", an_ended_runner_lets_everybody_go, 0},
    {"a_hung_runner_is_closed", a_hung_runner_is_closed, 0},
    {"a_damaged_ring_ends_the_runner", a_damaged_ring_ends_the_runner, 0},
    {"a_killed_runner_is_noticed", a_killed_runner_is_noticed, 0},
    {"children_of_the_program_are_not_our_business", children_of_the_program_are_not_our_business,
     0},
    {"a_runner_never_outlives_its_parent", a_runner_never_outlives_its_parent, 0},
    {"a_thousand_restarts_leak_nothing", a_thousand_restarts_leak_nothing, 100},
    {"host_memory_is_given_back", host_memory_is_given_back, 0},
    {"an_idle_runner_uses_no_processor", an_idle_runner_uses_no_processor, 0},
    {"report_hand_over", report_hand_over, 0},
};
ACRE_TEST_MAIN(tests)
