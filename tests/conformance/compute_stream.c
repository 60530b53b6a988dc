/* compute_stream.c - streams, events, eventfds, times.
 *
 * A gate (compute_kit.h) holds a stream until the host lets it go on, so that "not yet" is a fact
 * and no race. */
#include "conformance/compute_suite.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { N = 1000 };

static struct acre_stream *another_stream(struct kit *kit) {
    struct acre_stream *stream = NULL;
    OK(acre_stream_create(kit->context, &stream, ERR));
    return stream;
}

static void streams_work_in_order(void) {
    struct kit kit;
    kit_open(&kit);
    static uint32_t data[N], back[N];
    kit_random(&kit, data, sizeof(data));
    struct acre_buffer a = kit_data(&kit, data, sizeof(data));
    struct acre_buffer b = kit_buffer(&kit, ACRE_MEMORY_DEVICE, sizeof(data));
    for (uint32_t i = 0; i < 100; i++) { /* multiply and add do not commute */
        RUN(&kit, "affine", acre_grid_for(N), ACRE_BUFFER(a), ACRE_U32(2 * i + 3), ACRE_U32(i),
            ACRE_U32(N));
        OK(acre_copy(kit.stream, b, 0, a, 0, sizeof(data), ERR));
        RUN(&kit, "increment", acre_grid_for(N), ACRE_BUFFER(b), ACRE_U32(N));
        OK(acre_copy(kit.stream, a, 0, b, 0, sizeof(data), ERR));
        for (uint32_t j = 0; j < N; j++) {
            data[j] = data[j] * (2 * i + 3) + i + 1;
        }
    }
    kit_get(&kit, back, a, sizeof(back));
    CHECK_SAME(back, data, sizeof(data));
    kit_free(&kit, a);
    kit_free(&kit, b);
    kit_close(&kit);
}

static void streams_do_not_wait_for_each_other(void) {
    struct kit kit;
    kit_open(&kit);
    struct acre_stream *held = another_stream(&kit);
    struct acre_buffer buffer = kit_buffer(&kit, ACRE_MEMORY_DEVICE, N * 4);
    (void)kit_kernel(&kit, "gate");
    struct kit_gate gate;
    kit_gate_close(&kit, held, &gate);
    kit_gate_open_in(&gate, 8000);
    static uint32_t back[N];
    OK(acre_fill(kit.stream, buffer, 0, N * 4, 5, 4, ERR));
    RUN(&kit, "increment", acre_grid_for(N), ACRE_BUFFER(buffer), ACRE_U32(N));
    kit_get(&kit, back, buffer, sizeof(back));
    CHECK_U64(back[N - 1], 6);
    struct acre_event event;
    OK(acre_event_record(held, &event, ERR));
    CHECK_EQ(acre_event_wait(event, 0, NULL), ACRE_ETIMEOUT); /* the other is still held */
    kit_gate_open(&gate);
    OK(acre_stream_sync(held, 20000, ERR));
    kit_gate_finish(&gate);
    kit_free(&kit, buffer);
    acre_stream_destroy(held);
    acre_stream_destroy(NULL);
    kit_close(&kit);
}

static void events_come_when_their_work_is_done(void) {
    struct kit kit;
    kit_open(&kit);
    struct kit_gate gate;
    struct acre_event before;
    struct acre_event after;
    OK(acre_stream_sync(kit.stream, ACRE_FOREVER, ERR));
    OK(acre_event_record(kit.stream, &before, ERR));
    kit_gate_close(&kit, kit.stream, &gate);
    OK(acre_event_record(kit.stream, &after, ERR));
    OK(acre_event_wait(before, 5000, ERR));
    FAILS(acre_event_wait(after, 0, ERR), ACRE_ETIMEOUT, "");
    double begun = kit_seconds();
    FAILS(acre_event_wait(after, 50, ERR), ACRE_ETIMEOUT, "50");
    double waited = kit_seconds() - begun;
    CHECK(waited >= 0.045 && waited < 10);
    FAILS(acre_stream_sync(kit.stream, 10, ERR), ACRE_ETIMEOUT, "10");
    kit_gate_open(&gate);
    OK(acre_event_wait(after, 20000, ERR));
    OK(acre_event_wait(after, 0, ERR)); /* and stays so */
    OK(acre_event_wait(before, 0, ERR));
    OK(acre_stream_sync(kit.stream, ACRE_FOREVER, ERR));
    kit_gate_finish(&gate);
    struct acre_event never = {0};
    FAILS(acre_event_wait(never, 0, ERR), ACRE_EINVALID, "event");
    FAILS(acre_stream_after(kit.stream, never, ERR), ACRE_EINVALID, "event");
    kit_close(&kit);
}

/* What follows `after` happens behind the event of the other stream; the call does not wait. */
static void streams_wait_for_events_of_others(void) {
    struct kit kit;
    kit_open(&kit);
    struct acre_stream *first = another_stream(&kit);
    struct acre_stream *second = another_stream(&kit);
    static uint32_t back[N];
    struct acre_buffer buffer = kit_buffer(&kit, ACRE_MEMORY_DEVICE, sizeof(back));
    OK(acre_fill(kit.stream, buffer, 0, sizeof(back), 1, 4, ERR));
    (void)kit_kernel(&kit, "gate");
    OK(acre_stream_sync(kit.stream, ACRE_FOREVER, ERR));
    struct kit_gate gate;
    kit_gate_close(&kit, first, &gate);
    RUN_ON(first, &kit, "affine", acre_grid_for(N), ACRE_BUFFER(buffer), ACRE_U32(10), ACRE_U32(0),
           ACRE_U32(N));
    struct acre_event event;
    struct acre_event done;
    OK(acre_event_record(first, &event, ERR));
    kit_gate_open_in(&gate, 8000);
    OK(acre_stream_after(second, event, ERR));
    RUN_ON(second, &kit, "increment", acre_grid_for(N), ACRE_BUFFER(buffer), ACRE_U32(N));
    OK(acre_event_record(second, &done, ERR));
    CHECK_EQ(acre_event_wait(event, 0, NULL), ACRE_ETIMEOUT); /* nothing waited for the gate */
    CHECK_EQ(acre_event_wait(done, 20, NULL), ACRE_ETIMEOUT);
    kit_gate_open(&gate);
    OK(acre_event_wait(done, 20000, ERR));
    OK(acre_copy_out(second, back, buffer, 0, sizeof(back), ERR));
    CHECK_U64(back[0], 11); /* (1 * 10) + 1, not (1 + 1) * 10 */
    CHECK_U64(back[N - 1], 11);
    kit_gate_finish(&gate);
    kit_free(&kit, buffer);
    acre_stream_destroy(first);
    acre_stream_destroy(second);
    kit_close(&kit);
}

static void streams_wait_for_events_of_other_contexts(void) {
    struct kit kit;
    kit_open(&kit);
    struct acre_context *context = kit_context(&kit, (struct acre_context_options){0});
    struct acre_stream *stream = NULL;
    struct acre_buffer there;
    uint32_t word = 3;
    uint32_t got = 0;
    OK(acre_stream_create(context, &stream, ERR));
    OK(acre_buffer_alloc(stream, ACRE_MEMORY_DEVICE, 4, &there, ERR));
    struct acre_buffer here = kit_data(&kit, &word, 4);
    RUN(&kit, "affine", kit_grid(1, 1), ACRE_BUFFER(here), ACRE_U32(5), ACRE_U32(2), ACRE_U32(1));
    struct acre_event event;
    OK(acre_event_record(kit.stream, &event, ERR));
    OK(acre_stream_after(stream, event, ERR));
    OK(acre_copy(stream, there, 0, here, 0, 4, ERR));
    OK(acre_copy_out(stream, &got, there, 0, 4, ERR));
    CHECK_U64(got, 17);
    OK(acre_buffer_free(stream, there, ERR));
    kit_free(&kit, here);
    acre_context_close(context);
    kit_close(&kit);
}

static void streams_notify_by_eventfd(void) {
    struct kit kit;
    kit_open(&kit);
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    REQUIRE(fd >= 0);
    struct pollfd watch = {.fd = fd, .events = POLLIN};
    struct kit_gate gate;
    kit_gate_close(&kit, kit.stream, &gate);
    OK(acre_stream_notify(kit.stream, fd, ERR));
    CHECK_EQ(poll(&watch, 1, 30), 0); /* not yet */
    kit_gate_open(&gate);
    CHECK_EQ(poll(&watch, 1, 20000), 1);
    uint64_t count = 0;
    CHECK_EQ(read(fd, &count, sizeof(count)), 8);
    CHECK_U64(count, 1);
    for (int i = 0; i < 5; i++) { /* one each */
        OK(acre_stream_notify(kit.stream, fd, ERR));
    }
    OK(acre_stream_sync(kit.stream, ACRE_FOREVER, ERR));
    uint64_t all = 0;
    while (all < 5 && poll(&watch, 1, 5000) == 1 && read(fd, &count, sizeof(count)) == 8) {
        all += count;
    }
    CHECK_U64(all, 5);
    CHECK_EQ(poll(&watch, 1, 0), 0);
    kit_gate_finish(&gate);
    close(fd);
    FAILS(acre_stream_notify(kit.stream, -1, ERR), ACRE_EINVALID, "-1");
    kit_close(&kit);
}

static void *stream_of_a_thread(void *user) {
    struct kit *kit = user;
    struct acre_stream *stream = another_stream(kit);
    struct acre_kernel *kernel = kit_kernel(kit, "affine"); /* built before */
    struct acre_buffer buffer;
    OK(acre_buffer_alloc(stream, ACRE_MEMORY_DEVICE, N * 4, &buffer, ERR));
    uint32_t expected = 1;
    uint32_t back[N];
    OK(acre_fill(stream, buffer, 0, N * 4, 1, 4, ERR));
    for (uint32_t i = 1; i < 50; i++) {
        OK(acre_launch(stream, kernel, acre_grid_for(N),
                       ARGS(ACRE_BUFFER(buffer), ACRE_U32(i), ACRE_U32(i), ACRE_U32(N)), ERR));
        expected = expected * i + i;
    }
    OK(acre_copy_out(stream, back, buffer, 0, sizeof(back), ERR));
    for (uint32_t i = 0; i < N; i++) {
        REQUIRE_EQ(back[i], expected);
    }
    OK(acre_buffer_free(stream, buffer, ERR));
    acre_stream_destroy(stream);
    return NULL;
}

static void streams_of_many_threads(void) {
    struct kit kit;
    kit_open(&kit);
    (void)kit_kernel(&kit, "affine");
    pthread_t threads[8];
    for (size_t i = 0; i < ACRE_COUNT(threads); i++) {
        REQUIRE_EQ(pthread_create(&threads[i], NULL, stream_of_a_thread, &kit), 0);
    }
    for (size_t i = 0; i < ACRE_COUNT(threads); i++) {
        pthread_join(threads[i], NULL);
    }
    kit_close(&kit);
}

static void streams_come_and_go(void) {
    struct kit kit;
    kit_open(&kit);
    struct kit_held before = kit_held(kit.context);
    struct acre_buffer buffer = kit_buffer(&kit, ACRE_MEMORY_DEVICE, 4096);
    for (int i = 0; i < 300; i++) {
        struct acre_stream *stream = another_stream(&kit);
        OK(acre_fill(stream, buffer, 0, 4096, (uint64_t)i, 8, ERR));
        acre_stream_destroy(stream); /* waits for it */
    }
    uint64_t last = 0;
    OK(acre_copy_out(kit.stream, &last, buffer, 4088, 8, ERR));
    CHECK_U64(last, 299);
    kit_free(&kit, buffer);
    OK(acre_stream_sync(kit.stream, ACRE_FOREVER, ERR));
    CHECK_HELD(kit.context, &before);
    kit_close(&kit);
}

static void check_timings(const struct acre_timing *timings, uint32_t count) {
    static const char *const names[] = {"copy in", "fill", "busy", "copy", "copy out"};
    REQUIRE_EQ(count, ACRE_COUNT(names));
    for (uint32_t i = 0; i < count; i++) {
        acre_test_context("%s: queued %.1f us, running %.1f us, %llu bytes", timings[i].name,
                          timings[i].queued_us, timings[i].running_us,
                          (unsigned long long)timings[i].bytes);
        CHECK_STR(timings[i].name, names[i]);
        CHECK(timings[i].queued_us >= 0 && timings[i].queued_us < 60e6);
        CHECK(timings[i].running_us >= 0 && timings[i].running_us < 60e6);
        CHECK(strncmp(names[i], "copy", 4) != 0 || timings[i].bytes == 65536);
    }
    CHECK(timings[2].running_us > 0);
    acre_test_context("%s", "");
}

static void times_are_measured(void) {
    struct kit kit;
    kit_open(&kit);
    struct acre_timing timings[16];
    uint32_t count = 99;
    int r = acre_stream_profile(kit.stream, true, ERR);
    if (r == ACRE_EUNSUPPORTED) {
        acre_test_skip("%s cannot tell times", kit.facts->name);
    }
    OK(r);
    OK(acre_stream_profile(kit.stream, false, ERR));
    struct acre_buffer host = kit_buffer(&kit, ACRE_MEMORY_PINNED, 65536);
    struct acre_buffer a = kit_buffer(&kit, ACRE_MEMORY_DEVICE, 65536);
    struct acre_buffer b = kit_buffer(&kit, ACRE_MEMORY_DEVICE, 65536);
    void *at = acre_buffer_host(kit.context, host);
    (void)kit_kernel(&kit, "busy");
    OK(acre_stream_timings(kit.stream, timings, 16, &count, ERR));
    OK(acre_stream_profile(kit.stream, true, ERR));
    OK(acre_copy_in(kit.stream, a, 0, at, 65536, ERR));
    OK(acre_fill(kit.stream, b, 0, 65536, 0, 4, ERR));
    RUN(&kit, "busy", kit_grid(64, 256), ACRE_BUFFER(a), ACRE_U32(200));
    OK(acre_copy(kit.stream, b, 0, a, 0, 65536, ERR));
    OK(acre_copy_out(kit.stream, at, b, 0, 65536, ERR));
    OK(acre_stream_timings(kit.stream, timings, 16, &count, ERR));
    check_timings(timings, count);
    OK(acre_stream_timings(kit.stream, timings, 16, &count, ERR));
    CHECK_EQ(count, 0); /* each is told once */
    OK(acre_stream_profile(kit.stream, false, ERR));
    OK(acre_fill(kit.stream, b, 0, 65536, 0, 4, ERR));
    OK(acre_stream_timings(kit.stream, timings, 16, &count, ERR));
    CHECK_EQ(count, 0);
    kit_free(&kit, host);
    kit_free(&kit, a);
    kit_free(&kit, b);
    kit_close(&kit);
}

static void check_no_eventfd(struct kit *kit, int fd) {
    char number[32];
    snprintf(number, sizeof(number), "event_fd: %d ", fd);
    FAILS(acre_stream_notify(kit->stream, fd, ERR), ACRE_EINVALID, number, "accepted: an eventfd");
}

static void notices_are_for_eventfds_only(void) {
    struct kit kit;
    kit_open(&kit);
    char path[256];
    snprintf(path, sizeof(path), "%s/no-eventfd", kit_choice.scratch);
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    int ends[2];
    REQUIRE(file >= 0);
    REQUIRE_EQ(pipe2(ends, O_CLOEXEC), 0);
    check_no_eventfd(&kit, file);
    check_no_eventfd(&kit, ends[0]);
    check_no_eventfd(&kit, ends[1]);
    close(ends[0]);
    check_no_eventfd(&kit, ends[0]);
    OK(acre_stream_sync(kit.stream, ACRE_FOREVER, ERR));
    CHECK_EQ(lseek(file, 0, SEEK_END), 0); /* nothing was written */
    struct acre_graph *graph = NULL;
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    uint64_t count = 0;
    REQUIRE(fd >= 0);
    OK(acre_graph_begin(kit.stream, ERR));
    FAILS(acre_stream_notify(kit.stream, fd, ERR), ACRE_EUNSUPPORTED, "recording a graph",
          "notify on");
    OK(acre_graph_end(kit.stream, &graph, ERR));
    OK(acre_graph_launch(graph, kit.stream, ERR));
    OK(acre_stream_sync(kit.stream, ACRE_FOREVER, ERR));
    CHECK_EQ(read(fd, &count, sizeof(count)), -1);
    OK(acre_stream_notify(kit.stream, fd, ERR)); /* after it */
    struct pollfd watch = {.fd = fd, .events = POLLIN};
    CHECK_EQ(poll(&watch, 1, 20000), 1);
    CHECK_EQ(read(fd, &count, sizeof(count)), 8);
    CHECK_U64(count, 1);
    acre_graph_destroy(graph);
    close(fd);
    close(file);
    close(ends[1]);
    kit_close(&kit);
}

/* What has the number when the notice fires is not what it was given for. */
static void notices_reach_what_was_open_when_given(void) {
    struct kit kit;
    kit_open(&kit);
    char path[256];
    snprintf(path, sizeof(path), "%s/victim", kit_choice.scratch);
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    REQUIRE(file >= 0 && fd >= 0 && copy >= 0);
    (void)kit_kernel(&kit, "gate");
    struct kit_gate gate;
    kit_gate_close(&kit, kit.stream, &gate);
    OK(acre_stream_notify(kit.stream, fd, ERR));
    OK(acre_stream_notify(kit.stream, fd, ERR));
    REQUIRE_EQ(dup3(file, fd, O_CLOEXEC), fd); /* the number is the file's now */
    check_no_eventfd(&kit, fd);
    kit_gate_open(&gate);
    OK(acre_stream_sync(kit.stream, 20000, ERR));
    struct pollfd watch = {.fd = copy, .events = POLLIN};
    uint64_t all = 0;
    uint64_t count = 0;
    while (all < 2 && poll(&watch, 1, 5000) == 1 && read(copy, &count, sizeof(count)) == 8) {
        all += count;
    }
    CHECK_U64(all, 2);
    CHECK_EQ(lseek(file, 0, SEEK_END), 0);
    kit_gate_finish(&gate);
    close(copy);
    close(file);
    close(fd);
    kit_close(&kit);
}

/* Those that are done move to the front; the others share a queue with a kernel that is not. */
static int sort_out(struct acre_stream **streams, int count) {
    int done = 0;
    for (int i = 0; i < count; i++) {
        if (acre_stream_sync(streams[i], 100, ERR) == 0) {
            struct acre_stream *stream = streams[i];
            streams[i] = streams[done];
            streams[done++] = stream;
        }
    }
    return done;
}

/* Many streams that take turns, each with notices for all of many eventfds, take none from who
 * waits behind a kernel. */
static void notices_of_others_take_none_away(void) {
    enum { STREAMS = 40, NOTICES = 17000 };
    struct kit kit;
    kit_open(&kit);
    struct acre_stream *streams[STREAMS];
    int own = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int fds[STREAMS];
    uint64_t count = 0;
    REQUIRE(own >= 0);
    for (int i = 0; i < STREAMS; i++) {
        streams[i] = another_stream(&kit);
        fds[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        REQUIRE(fds[i] >= 0);
    }
    (void)kit_kernel(&kit, "gate");
    struct kit_gate gate;
    kit_gate_close(&kit, kit.stream, &gate);
    OK(acre_stream_notify(kit.stream, own, ERR));
    for (int i = 0; i < STREAMS; i++) {
        OK(acre_stream_notify(streams[i], fds[i], ERR));
    }
    int others = sort_out(streams, STREAMS);
    REQUIRE(others > STREAMS / 2);
    for (int i = STREAMS; i < NOTICES; i++) {
        OK(acre_stream_notify(streams[i % others], fds[i / others % STREAMS], ERR));
    }
    for (int i = 0; i < others; i++) {
        OK(acre_stream_sync(streams[i], 20000, ERR));
    }
    CHECK_EQ(read(own, &count, sizeof(count)), -1);
    kit_gate_open(&gate);
    OK(acre_stream_sync(kit.stream, 20000, ERR));
    CHECK_EQ(read(own, &count, sizeof(count)), 8);
    CHECK_U64(count, 1);
    uint64_t all = 0;
    for (int i = others; i < STREAMS; i++) {
        OK(acre_stream_sync(streams[i], 20000, ERR));
    }
    for (int i = 0; i < STREAMS; i++) {
        all += read(fds[i], &count, sizeof(count)) == 8 ? count : 0;
        acre_stream_destroy(streams[i]);
        close(fds[i]);
    }
    CHECK_U64(all, NOTICES);
    kit_gate_finish(&gate);
    close(own);
    kit_close(&kit);
}

static const struct acre_test tests[] = {
    TEST(streams_work_in_order),
    TEST(streams_do_not_wait_for_each_other),
    TEST(events_come_when_their_work_is_done),
    TEST(streams_wait_for_events_of_others),
    TEST(streams_wait_for_events_of_other_contexts),
    TEST(streams_notify_by_eventfd),
    TEST(streams_of_many_threads),
    TEST(streams_come_and_go),
    TEST(times_are_measured),
    TEST(notices_are_for_eventfds_only),
    TEST(notices_reach_what_was_open_when_given),
    TEST(notices_of_others_take_none_away),
};
SUITE(compute_stream_suite, tests);
