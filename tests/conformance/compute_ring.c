/* compute_ring.c - rings: called, posted, collected, from many threads, stopped, reloaded, hung.
 *
 * Messages are 8 words; the handler answers 2 x + 1 for each (another one 3 x + 1). All exact.
 * Whether the kernel stays on the device or a worker launches it is printed and not judged. */
#include "conformance/compute_suite.h"

#include <stdio.h>
#include <stdlib.h>

enum { WORDS = 8, HANG_MS = 20000 /* the machine may be busy: as long as calls wait */ };

static struct acre_ring *start_ring(struct kit *kit, const char *text,
                                    struct acre_ring_options options) {
    struct acre_ring *ring = NULL;
    struct acre_source source = {.text = text, .name = "handler.acl"};
    options.in_words = options.in_words != 0 ? options.in_words : WORDS;
    options.out_words = options.out_words != 0 ? options.out_words : WORDS;
    options.hang_ms = options.hang_ms != 0 ? options.hang_ms : HANG_MS;
    OK(acre_ring_create(kit->context, &source, &options, &ring, ERR));
    REQUIRE(ring != NULL);
    struct acre_ring_report report;
    acre_ring_report(ring, &report);
    CHECK(report.is_running);
    CHECK((report.path == ACRE_RING_RESIDENT) == (report.reason[0] == '\0'));
    printf("%s%s%s\n", report.path == ACRE_RING_RESIDENT ? "resident" : "worker",
           report.reason[0] != '\0' ? ": " : "", report.reason);
    return ring;
}

static void make_message(uint32_t *message, uint32_t number) {
    for (uint32_t i = 0; i < WORDS; i++) {
        message[i] = number * 2654435761u + i;
    }
}

/* Whether the answer to message `number` is that of this factor. */
static bool is_answer(const uint32_t *answer, uint32_t number, uint32_t factor) {
    uint32_t message[WORDS];
    make_message(message, number);
    for (uint32_t i = 0; i < WORDS; i++) {
        if (answer[i] != message[i] * factor + 1) {
            return false;
        }
    }
    return true;
}

static void check_call(struct acre_ring *ring, uint32_t number, uint32_t factor) {
    uint32_t message[WORDS];
    uint32_t answer[WORDS] = {0};
    make_message(message, number);
    OK(acre_ring_call(ring, message, answer, 20000, ERR));
    acre_test_context("message %u", number);
    CHECK(is_answer(answer, number, factor));
    acre_test_context("%s", "");
}

static void rings_answer_calls(void) { /* GPU-4 */
    struct kit kit;
    kit_open(&kit);
    struct acre_ring *ring = start_ring(&kit, compute_handler_twice, (struct acre_ring_options){0});
    for (uint32_t i = 0; i < 500; i++) {
        check_call(ring, i, 2);
    }
    struct acre_ring_report report;
    do { /* its pulse comes with every so many looks at the mailbox */
        acre_ring_report(ring, &report);
    } while (report.path == ACRE_RING_RESIDENT && report.beats == 0);
    CHECK_U64(report.posted, 500);
    CHECK_U64(report.answered, 500);
    CHECK_EQ(report.hangs, 0);
    CHECK_EQ(report.restarts, 0);
    CHECK_EQ(report.reloads, 0);
    acre_ring_destroy(ring);
    acre_ring_destroy(NULL);
    kit_close(&kit);
}

static void rings_take_messages_of_all_sizes(void) {
    static const uint32_t sizes[] = {1, 2, 31, 32, 33, 95, 96};
    struct kit kit;
    kit_open(&kit);
    for (size_t i = 0; i < ACRE_COUNT(sizes); i++) {
        uint32_t words = sizes[i];
        char text[600];
        snprintf(text, sizeof(text),
                 "handler void other(local const uint *in, local uint *out, global uint *state,\n"
                 "                   uint lane, uint lanes) {\n"
                 "    for (uint i = lane; i < %uu; i += lanes) {\n"
                 "        out[i] = in[%uu - 1u - i] + i;\n"
                 "    }\n"
                 "    lane_sync();\n"
                 "    if (lane == 0u) {\n" /* what the others wrote is there */
                 "        out[0] += %uu > 1u ? out[%uu - 1u] : 0u;\n"
                 "    }\n"
                 "}\n",
                 words, words, words, words);
        struct acre_ring *ring =
            start_ring(&kit, text,
                       (struct acre_ring_options){
                           .handler = "other", .in_words = words, .out_words = words, .slots = 4});
        uint32_t in[96];
        uint32_t out[97];
        for (int round = 0; round < 20; round++) {
            kit_random(&kit, in, sizeof(in));
            out[words] = 0xabcdef;
            OK(acre_ring_call(ring, in, out, 20000, ERR));
            for (uint32_t j = 0; j < words; j++) {
                acre_test_context("word %u of %u", j, words);
                uint32_t last = words > 1 && j == 0 ? in[0] + words - 1 : 0;
                REQUIRE_EQ(out[j], in[words - 1 - j] + j + last);
            }
            CHECK_U64(out[words], 0xabcdef);
        }
        acre_ring_destroy(ring);
    }
    kit_close(&kit);
}

static void rings_collect_in_any_order(void) {
    struct kit kit;
    kit_open(&kit);
    enum { COUNT = 64 };
    struct acre_ring *ring =
        start_ring(&kit, compute_handler_twice, (struct acre_ring_options){.slots = COUNT});
    for (int round = 0; round < 5; round++) {
        struct {
            uint64_t ticket;
            uint32_t number;
        } posted[COUNT];
        uint32_t message[WORDS];
        uint32_t answer[WORDS];
        for (uint32_t i = 0; i < COUNT; i++) {
            posted[i].number = (uint32_t)acre_rand_next(&kit.rand);
            make_message(message, posted[i].number);
            OK(acre_ring_post(ring, message, 20000, &posted[i].ticket, ERR));
            memset(message, 0, sizeof(message));
        }
        acre_rand_shuffle(&kit.rand, posted, COUNT, sizeof(posted[0]));
        for (uint32_t i = 0; i < COUNT; i++) {
            OK(acre_ring_collect(ring, posted[i].ticket, answer, 20000, ERR));
            CHECK(is_answer(answer, posted[i].number, 2));
        }
        CHECK_EQ(acre_ring_collect(ring, posted[7].ticket, answer, 0, ERR), ACRE_ENOTFOUND);
    }
    uint32_t answer[WORDS];
    CHECK_EQ(acre_ring_collect(ring, UINT64_MAX - 5, answer, 0, ERR), ACRE_ENOTFOUND);
    acre_ring_destroy(ring);
    kit_close(&kit);
}

static void rings_that_are_full_say_so(void) {
    struct kit kit;
    kit_open(&kit);
    struct acre_ring *ring =
        start_ring(&kit, compute_handler_twice, (struct acre_ring_options){.slots = 8});
    uint64_t tickets[9];
    uint32_t message[WORDS];
    uint32_t answer[WORDS];
    for (uint32_t i = 0; i < 8; i++) { /* answered or not: taken until collected */
        make_message(message, i);
        OK(acre_ring_post(ring, message, 20000, &tickets[i], ERR));
    }
    make_message(message, 8);
    FAILS(acre_ring_post(ring, message, 0, &tickets[8], ERR), ACRE_ETIMEOUT, "8");
    FAILS(acre_ring_post(ring, message, 30, &tickets[8], ERR), ACRE_ETIMEOUT, "8");
    OK(acre_ring_collect(ring, tickets[0], answer, 20000, ERR));
    CHECK(is_answer(answer, 0, 2));
    OK(acre_ring_post(ring, message, 20000, &tickets[8], ERR));
    for (uint32_t i = 1; i < 9; i++) {
        OK(acre_ring_collect(ring, tickets[i], answer, 20000, ERR));
        CHECK(is_answer(answer, i, 2));
    }
    acre_ring_destroy(ring);
    kit_close(&kit);
}

struct producer {
    struct acre_ring *ring;
    uint32_t first, count;
    atomic_uint *wrong;
    atomic_uint *thrice; /* answers of the second handler */
    struct tally *tally; /* NULL: not wanted; else it goes on until that is over */
    pthread_t thread;
};

/* How far producers have come, for who sleeps until then: beside a loop of yields others may not
 * run for seconds. */
struct tally {
    atomic_bool is_over;
    pthread_mutex_t lock;
    pthread_cond_t more;
    uint32_t posted; /* and answered */
};

/* Posts in bursts and collects; any answer of either handler is right. */
static void *produce(void *user) {
    struct producer *self = user;
    enum { BURST = 16 };
    for (uint32_t i = 0;
         self->tally != NULL ? !atomic_load(&self->tally->is_over) : i < self->count; i += BURST) {
        uint64_t tickets[BURST];
        uint32_t message[WORDS];
        uint32_t answer[WORDS];
        for (uint32_t j = 0; j < BURST; j++) {
            make_message(message, self->first + i + j);
            OK(acre_ring_post(self->ring, message, 20000, &tickets[j], ERR));
        }
        for (uint32_t j = 0; j < BURST; j++) {
            OK(acre_ring_collect(self->ring, tickets[j], answer, 20000, ERR));
            bool is_twice = is_answer(answer, self->first + i + j, 2);
            bool is_thrice = is_answer(answer, self->first + i + j, 3);
            atomic_fetch_add(self->thrice, is_thrice);
            atomic_fetch_add(self->wrong, !is_twice && !is_thrice);
        }
        if (self->tally != NULL) {
            pthread_mutex_lock(&self->tally->lock);
            self->tally->posted += BURST;
            pthread_cond_broadcast(&self->tally->more);
            pthread_mutex_unlock(&self->tally->lock);
        }
    }
    return NULL;
}

static void start_producers(struct producer *producers, size_t count, struct producer pattern) {
    for (size_t i = 0; i < count; i++) {
        producers[i] = pattern;
        producers[i].first = (uint32_t)i * 1000000;
        REQUIRE_EQ(pthread_create(&producers[i].thread, NULL, produce, &producers[i]), 0);
    }
}

static void rings_have_many_producers(void) {
    struct kit kit;
    kit_open(&kit);
    struct acre_ring *ring =
        start_ring(&kit, compute_handler_twice, (struct acre_ring_options){.slots = 256});
    struct producer producers[8];
    atomic_uint wrong = 0;
    atomic_uint thrice = 0;
    double begun = kit_seconds();
    start_producers(
        producers, 8,
        (struct producer){.ring = ring, .count = 1600, .wrong = &wrong, .thrice = &thrice});
    for (size_t i = 0; i < 8; i++) {
        pthread_join(producers[i].thread, NULL);
    }
    printf("%.0f messages/s\n", 8 * 1600 / (kit_seconds() - begun));
    struct acre_ring_report report;
    acre_ring_report(ring, &report);
    CHECK_U64(atomic_load(&wrong), 0);
    CHECK_U64(atomic_load(&thrice), 0);
    CHECK_U64(report.posted, 8 * 1600);
    CHECK_U64(report.answered, 8 * 1600);
    acre_ring_destroy(ring);
    kit_close(&kit);
}

/* Until so many more are answered, and `count` (NULL: nothing) is as many. */
static void await_more(struct tally *tally, uint32_t more, const atomic_uint *count,
                       uint32_t wanted) {
    pthread_mutex_lock(&tally->lock);
    uint32_t seen = tally->posted;
    while (tally->posted < seen + more || (count != NULL && atomic_load(count) < wanted)) {
        pthread_cond_wait(&tally->more, &tally->lock);
    }
    pthread_mutex_unlock(&tally->lock);
}

static void rings_reload_under_load(void) { /* nothing posted is lost */
    struct kit kit;
    kit_open(&kit);
    struct acre_ring *ring =
        start_ring(&kit, compute_handler_twice, (struct acre_ring_options){.slots = 256});
    struct producer producers[4];
    atomic_uint wrong = 0;
    atomic_uint thrice = 0;
    struct tally tally = {0};
    pthread_mutex_init(&tally.lock, NULL);
    pthread_cond_init(&tally.more, NULL);
    start_producers(
        producers, 4,
        (struct producer){.ring = ring, .wrong = &wrong, .thrice = &thrice, .tally = &tally});
    struct acre_source next = {.text = compute_handler_thrice, .name = "next.acl"};
    struct acre_source broken = {.text = "handler void handle(oh no\n", .name = "broken.acl"};
    await_more(&tally, 100, NULL, 0);
    OK(acre_ring_reload(ring, &next, ERR));
    FAILS(acre_ring_reload(ring, &broken, ERR), ACRE_EINVALID, "broken.acl");
    struct acre_source foreign = next;
    foreign.language = ACRE_LANGUAGE_OPENCL;
    FAILS(acre_ring_reload(ring, &foreign, ERR), ACRE_EINVALID, "portable");
    await_more(&tally, 0, &thrice, 100);
    OK(acre_ring_reload(ring, &next, ERR)); /* the same again, under way */
    await_more(&tally, 100, NULL, 0);
    atomic_store(&tally.is_over, true);
    for (size_t i = 0; i < 4; i++) {
        pthread_join(producers[i].thread, NULL);
    }
    CHECK_U64(atomic_load(&wrong), 0);
    CHECK(tally.posted > atomic_load(&thrice)); /* both handlers answered */
    check_call(ring, 5, 3);                     /* the broken one did not replace it */
    struct acre_source first = {.text = compute_handler_twice, .name = "first.acl"};
    OK(acre_ring_reload(ring, &first, ERR));
    check_call(ring, 6, 2);
    struct acre_ring_report report;
    acre_ring_report(ring, &report);
    CHECK_EQ(report.reloads, 3);
    CHECK_U64(report.answered, tally.posted + 2);
    printf("%u of %u answers by the second handler\n", atomic_load(&thrice), tally.posted);
    pthread_cond_destroy(&tally.more);
    pthread_mutex_destroy(&tally.lock);
    acre_ring_destroy(ring);
    kit_close(&kit);
}

static void rings_stop_and_start(void) {
    struct kit kit;
    kit_open(&kit);
    struct acre_ring *ring =
        start_ring(&kit, compute_handler_twice, (struct acre_ring_options){.slots = 32});
    struct acre_ring_report report;
    uint64_t tickets[16];
    uint32_t message[WORDS];
    uint32_t answer[WORDS];
    for (uint32_t i = 0; i < 16; i++) {
        make_message(message, i);
        OK(acre_ring_post(ring, message, 20000, &tickets[i], ERR));
    }
    OK(acre_ring_stop(ring, ERR));
    acre_ring_report(ring, &report);
    CHECK(!report.is_running);
    CHECK_U64(report.answered, 16); /* what was posted is answered first */
    FAILS(acre_ring_post(ring, message, 0, &tickets[0], ERR), ACRE_ECONFLICT, "stopped");
    FAILS(acre_ring_call(ring, message, answer, 0, ERR), ACRE_ECONFLICT, "stopped");
    for (uint32_t i = 0; i < 16; i++) { /* also by a ring that does not run */
        OK(acre_ring_collect(ring, tickets[i], answer, 20000, ERR));
        CHECK(is_answer(answer, i, 2));
    }
    OK(acre_ring_start(ring, ERR));
    check_call(ring, 99, 2);
    for (uint32_t i = 0; i < 5; i++) {
        OK(acre_ring_stop(ring, ERR));
        OK(acre_ring_start(ring, ERR));
        check_call(ring, i, 2);
    }
    acre_ring_report(ring, &report);
    CHECK(report.is_running);
    acre_ring_destroy(ring);
    kit_close(&kit);
}

static void rings_keep_state(void) {
    struct kit kit;
    kit_open(&kit);
    uint32_t words[4] = {1000, 0, 0, 0};
    struct acre_buffer state = kit_data(&kit, words, sizeof(words));
    OK(acre_stream_sync(kit.stream, ACRE_FOREVER, ERR));
    struct acre_ring *ring =
        start_ring(&kit, compute_handler_state,
                   (struct acre_ring_options){.in_words = 1, .out_words = 1, .state = state});
    uint32_t sum = 1000;
    for (uint32_t i = 0; i < 100; i++) {
        uint32_t answer = 0;
        OK(acre_ring_call(ring, &i, &answer, 20000, ERR));
        CHECK_U64(answer, sum);
        sum += i;
    }
    acre_ring_destroy(ring);
    kit_get(&kit, words, state, sizeof(words));
    CHECK_U64(words[0], sum);
    kit_free(&kit, state);
    kit_close(&kit);
}

/* Three nodes: what drivers make room for when they make a graph of it. */
static void record_and_replay(struct kit *kit, struct acre_buffer buffer, uint32_t value) {
    struct acre_kernel *kernel = kit_kernel(kit, "increment");
    struct acre_arg args[] = {ACRE_BUFFER(buffer), ACRE_U32(1)};
    struct acre_graph *graph = NULL;
    uint32_t back = 0;
    OK(acre_graph_begin(kit->stream, ERR));
    OK(acre_fill(kit->stream, buffer, 0, 4096, value, 4, ERR));
    OK(acre_launch(kit->stream, kernel, acre_grid_for(1), args, 2, ERR));
    OK(acre_launch(kit->stream, kernel, acre_grid_for(1), args, 2, ERR));
    OK(acre_graph_end(kit->stream, &graph, ERR));
    OK(acre_graph_launch(graph, kit->stream, ERR));
    kit_get(kit, &back, buffer, sizeof(back));
    CHECK_U64(back, value + 2);
    acre_graph_destroy(graph);
}

static void rings_beside_other_work(void) { /* allocation, building and launching go on */
    struct kit kit;
    kit_open(&kit);
    struct acre_ring *ring = start_ring(&kit, compute_handler_twice, (struct acre_ring_options){0});
    for (uint32_t i = 0; i < 10; i++) {
        check_call(ring, i, 2);
        uint32_t bytes = (i + 1) * 3 * KIT_MIB; /* more than the pool has at hand */
        struct acre_buffer buffer = kit_buffer(&kit, ACRE_MEMORY_DEVICE, bytes);
        OK(acre_fill(kit.stream, buffer, 0, bytes, i, 4, ERR));
        if (i % 2 == 0) { /* of two programs, each loaded beside the ring */
            RUN(&kit, "increment", acre_grid_for(1), ACRE_BUFFER(buffer), ACRE_U32(1));
        } else {
            RUN(&kit, "in_place", acre_grid_for(1), ACRE_BUFFER(buffer), ACRE_U32(1), ACRE_U32(1));
        }
        check_call(ring, i + 100, 2);
        record_and_replay(&kit, buffer, i);
        check_call(ring, i + 200, 2);
        kit_free(&kit, buffer);
        OK(acre_memory_trim(kit.context, 0, ERR));
    }
    struct acre_stream *streams[40]; /* more than a driver has queues */
    for (size_t i = 0; i < ACRE_COUNT(streams); i++) {
        OK(acre_stream_create(kit.context, &streams[i], ERR));
        struct acre_buffer buffer = kit_buffer(&kit, ACRE_MEMORY_DEVICE, 4096);
        OK(acre_stream_sync(kit.stream, 20000, ERR));
        OK(acre_fill(streams[i], buffer, 0, 4096, i, 4, ERR));
        OK(acre_stream_sync(streams[i], 20000, ERR));
        kit_free(&kit, buffer);
    }
    for (size_t i = 0; i < ACRE_COUNT(streams); i++) {
        acre_stream_destroy(streams[i]);
    }
    check_call(ring, 300, 2);
    acre_ring_destroy(ring);
    kit_close(&kit);
}

/* A stream that always has work under way; each round waits for the work of the one before. */
struct busy {
    struct acre_stream *stream;
    struct acre_buffer buffer;
    struct acre_event before;
};

static void keep_busy(struct kit *kit, struct busy *busy) {
    struct acre_event event;
    OK(acre_launch(busy->stream, kit_kernel(kit, "busy"), kit_grid(1, 64),
                   ARGS(ACRE_BUFFER(busy->buffer), ACRE_U32(20000)), ERR));
    OK(acre_event_record(busy->stream, &event, ERR));
    OK(acre_event_wait(busy->before, 20000, ERR));
    busy->before = event;
}

/* More streams with work than a driver has queues, and more rings than it can keep apart. */
static void rings_beside_streams_that_never_rest(void) {
    enum { STREAMS = 20, RINGS = 5, ROUNDS = 8 };
    struct kit kit;
    struct busy busy[STREAMS];
    struct acre_ring *rings[RINGS];
    kit_open(&kit);
    for (size_t i = 0; i < STREAMS; i++) {
        busy[i].buffer = kit_buffer(&kit, ACRE_MEMORY_DEVICE, 256);
        OK(acre_stream_create(kit.context, &busy[i].stream, ERR));
        OK(acre_event_record(busy[i].stream, &busy[i].before, ERR));
    }
    OK(acre_stream_sync(kit.stream, 20000, ERR));
    for (uint32_t made = 0; made < RINGS; made++) {
        for (uint32_t i = 0; i < ROUNDS * STREAMS; i++) {
            keep_busy(&kit, &busy[i % STREAMS]);
        }
        rings[made] = start_ring(&kit, compute_handler_twice, (struct acre_ring_options){0});
        for (uint32_t i = 0; i < ROUNDS * STREAMS; i++) {
            keep_busy(&kit, &busy[i % STREAMS]);
            check_call(rings[i % (made + 1)], i, 2);
        }
    }
    struct acre_ring_report first;
    struct acre_ring_report last;
    acre_ring_report(rings[0], &first);
    acre_ring_report(rings[RINGS - 1], &last);
    CHECK_EQ(last.path, ACRE_RING_WORKER);
    acre_ring_destroy(rings[0]); /* what it had is another's now */
    rings[0] = start_ring(&kit, compute_handler_twice, (struct acre_ring_options){0});
    acre_ring_report(rings[0], &last);
    CHECK_EQ(last.path, first.path);
    for (size_t i = 0; i < STREAMS; i++) {
        keep_busy(&kit, &busy[i]);
        OK(acre_stream_sync(busy[i].stream, 20000, ERR));
        acre_stream_destroy(busy[i].stream);
        kit_free(&kit, busy[i].buffer);
    }
    for (size_t i = 0; i < RINGS; i++) {
        acre_ring_destroy(rings[i]);
    }
    kit_close(&kit);
}

static void rings_bad_options_are_refused(void) {
    static const struct {
        struct acre_ring_options options;
        const char *part;
    } rows[] = {
        {{.in_words = 0, .out_words = 1}, "in_words"},
        {{.in_words = 97, .out_words = 1}, "97"},
        {{.in_words = 1, .out_words = 0}, "out_words"},
        {{.in_words = 1, .out_words = 1000}, "1000"},
        {{.in_words = 1, .out_words = 1, .slots = 3}, "slots"},
        {{.in_words = 1, .out_words = 1, .slots = 1 << 20}, "slots"},
        {{.in_words = 1, .out_words = 1, .warps = 65}, "warps"},
        {{.in_words = 1, .out_words = 1, .handler = "nobody"}, "nobody"},
        {{.in_words = 1, .out_words = 1, .handler = "no body"}, "accepted"},
        {{.in_words = 1, .out_words = 1, .state = {12345}}, "state"},
    };
    struct kit kit;
    kit_open(&kit);
    struct kit_held before = kit_held(kit.context);
    struct acre_ring *ring = NULL;
    struct acre_source source = {.text = compute_handler_twice, .name = "handler.acl"};
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct acre_error *err = ERR;
        acre_test_context("row %zu", i);
        CHECK(acre_ring_create(kit.context, &source, &rows[i].options, &ring, err) < 0);
        CHECK_HAS(err->text, rows[i].part);
        CHECK(ring == NULL);
    }
    source.text = "handler void handle(local const uint *in, local uint *out, global uint *state,\n"
                  "                    uint lane, uint lanes) {\n    nonsense;\n}\n";
    struct acre_ring_options fine = {.in_words = 1, .out_words = 1};
    FAILS(acre_ring_create(kit.context, &source, &fine, &ring, ERR), ACRE_EINVALID, "nonsense");
    source.text = NULL;
    FAILS(acre_ring_create(kit.context, &source, &fine, &ring, ERR), ACRE_EINVALID, "source");
    CHECK_HELD(kit.context, &before);
    kit_close(&kit);
}

/* Until one call is answered: PoCL compiles during the first, which a busy machine makes long. */
static void warm_up(struct acre_ring *ring) {
    uint32_t message[WORDS] = {0};
    uint32_t answer[WORDS];
    int r = -1;
    for (int i = 0; i < 5 && r < 0; i++) {
        r = acre_ring_call(ring, message, answer, 60000, ERR);
    }
    OK(r);
}

static void rings_that_hang_are_restarted(void) { /* GPU-4 */
    kit_needs_isolation();
    struct kit kit;
    kit_open(&kit);
    struct acre_ring *ring =
        start_ring(&kit, compute_handler_hang, (struct acre_ring_options){.hang_ms = 2000});
    warm_up(ring);
    check_call(ring, 1, 2);
    struct acre_ring_report before;
    acre_ring_report(ring, &before);
    uint32_t message[WORDS] = {0xdead};
    uint32_t answer[WORDS];
    double begun = kit_seconds();
    struct acre_error *err = ERR;
    int r = acre_ring_call(ring, message, answer, 60000, err);
    double noticed_s = kit_seconds() - begun;
    printf("hang seen after %.0f ms: %s (%s)\n", noticed_s * 1e3, err->text, acre_error_name(r));
    CHECK((r == ACRE_ETIMEOUT || r == ACRE_EUNAVAILABLE) && noticed_s < 30);
    begun = kit_seconds();
    warm_up(ring); /* it was restarted by itself */
    printf("answers again after %.0f ms\n", (kit_seconds() - begun) * 1e3);
    struct acre_ring_report report;
    acre_ring_report(ring, &report);
    CHECK(report.hangs > before.hangs && report.restarts > before.restarts);
    for (int i = 0; i < 1000 && !report.is_running; i++, acre_ring_report(ring, &report)) {
        check_call(ring, 3, 2); /* noted a moment after it answers */
    }
    CHECK(report.is_running);
    acre_ring_destroy(ring);
    kit_close(&kit);
}

static void rings_without_their_state_say_so(void) { /* and nothing else is lost */
    struct kit kit;
    kit_open(&kit);
    struct acre_buffer state = kit_buffer(&kit, ACRE_MEMORY_DEVICE, 16);
    OK(acre_stream_sync(kit.stream, 20000, ERR));
    struct acre_ring *ring = start_ring(
        &kit, compute_handler_twice, (struct acre_ring_options){.state = state, .hang_ms = 1000});
    check_call(ring, 1, 2);
    kit_free(&kit, state);
    OK(acre_memory_trim(kit.context, 0, ERR)); /* a resident kernel has to come back */
    uint32_t message[WORDS] = {0};
    uint32_t answer[WORDS];
    FAILS(acre_ring_call(ring, message, answer, 20000, ERR), ACRE_EUNAVAILABLE, "handle", "freed");
    FAILS(acre_ring_call(ring, message, answer, 0, ERR), ACRE_EUNAVAILABLE, "handle", "freed");
    FAILS(acre_ring_stop(ring, ERR), ACRE_ECONFLICT, "handle");
    struct acre_ring_report report;
    acre_ring_report(ring, &report);
    CHECK(!report.is_running);
    CHECK_EQ(report.hangs, 0);
    struct acre_context_report whole;
    acre_context_report(kit.context, &whole);
    CHECK_STR(whole.failure, "");
    acre_ring_destroy(ring);
    kit_close(&kit);
}

struct restless {
    struct acre_context *context;
    struct acre_ring *ring;
    atomic_bool is_over;
    pthread_mutex_t lock;
    pthread_cond_t more; /* answered, or started */
    uint32_t answered, started;
};

static void count_answer(struct restless *all) {
    pthread_mutex_lock(&all->lock);
    all->answered++;
    pthread_cond_broadcast(&all->more);
    pthread_mutex_unlock(&all->lock);
}

/* Asleep, and not in a loop of yields, beside which others may not run for seconds. */
static void await_answers(struct restless *all, uint32_t count) {
    pthread_mutex_lock(&all->lock);
    uint32_t seen = all->answered;
    while (all->answered < seen + count && !atomic_load(&all->is_over)) {
        pthread_cond_wait(&all->more, &all->lock);
    }
    pthread_mutex_unlock(&all->lock);
}

static void count_start(struct restless *all) {
    pthread_mutex_lock(&all->lock);
    all->started++;
    pthread_cond_broadcast(&all->more);
    pthread_mutex_unlock(&all->lock);
}

static void await_start(struct restless *all, uint32_t seen) {
    pthread_mutex_lock(&all->lock);
    while (all->started == seen && !atomic_load(&all->is_over)) {
        pthread_cond_wait(&all->more, &all->lock);
    }
    pthread_mutex_unlock(&all->lock);
}

/* What a stop refuses was not posted; what was posted is answered. */
static void *call_on(void *user) {
    struct restless *all = user;
    for (uint32_t i = 0; !atomic_load(&all->is_over); i++) {
        pthread_mutex_lock(&all->lock);
        uint32_t started = all->started;
        pthread_mutex_unlock(&all->lock);
        uint32_t message[WORDS];
        uint32_t answer[WORDS];
        make_message(message, i);
        struct acre_error *err = ERR;
        int r = acre_ring_call(all->ring, message, answer, 20000, err);
        if (r != 0) {
            CHECK_EQ(r, ACRE_ECONFLICT);
            CHECK_HAS(err->text, "stopped");
            await_start(all, started);
        } else {
            CHECK(is_answer(answer, i, 2));
            count_answer(all);
        }
    }
    return NULL;
}

static void *stop_and_start(void *user) {
    struct restless *all = user;
    for (uint32_t i = 0; i < 50; i++) {
        int r = acre_ring_stop(all->ring, ERR);
        CHECK(r == 0 || r == ACRE_ECONFLICT); /* stopped by another */
        r = acre_ring_start(all->ring, ERR);
        CHECK(r == 0 || r == ACRE_ECONFLICT);
        count_start(all);
        await_answers(all, 3); /* calls are under way */
    }
    return NULL;
}

static void load_one(struct acre_context *context) {
    struct acre_program *program = NULL;
    REQUIRE(kit_kernel_in(context, "scramble", &program) != NULL);
    acre_program_destroy(program);
}

/* Programs are loaded meanwhile, for which resident kernels leave and come back. */
static void *load_on(void *user) {
    struct restless *all = user;
    while (!atomic_load(&all->is_over)) {
        load_one(all->context);
        await_answers(all, 1);
    }
    return NULL;
}

static void *stop(void *user) {
    OK(acre_ring_stop(user, ERR));
    return NULL;
}

/* Messages that take long, though none too long; a load, for which a resident kernel leaves; a
 * stop: all are answered, and nobody takes it for a hang. */
static void rings_answer_what_a_load_interrupts(void) {
    enum { MESSAGES = 64, ROUNDS = 16000000, MAY_TAKE_MS = 1000 };
    struct kit kit;
    struct acre_ring_report report;
    uint64_t tickets[MESSAGES];
    kit_open(&kit);
    load_one(kit.context); /* quick from now on */
    struct acre_ring *ring =
        start_ring(&kit, compute_handler_slow,
                   (struct acre_ring_options){
                       .in_words = 2, .out_words = 1, .slots = MESSAGES, .hang_ms = MAY_TAKE_MS});
    double begun = kit_seconds();
    for (uint32_t i = 0; i < MESSAGES; i++) {
        uint32_t message[] = {ROUNDS, i};
        OK(acre_ring_post(ring, message, 20000, &tickets[i], ERR));
    }
    pthread_t thread;
    REQUIRE_EQ(pthread_create(&thread, NULL, stop, ring), 0);
    do {
        acre_ring_report(ring, &report);
    } while (report.is_running);
    uint64_t answered = report.answered;
    load_one(kit.context);
    pthread_join(thread, NULL);
    acre_ring_report(ring, &report);
    printf("%u answered when it was to stop, %u after %.1f s\n", (uint32_t)answered,
           (uint32_t)report.answered, kit_seconds() - begun);
    CHECK_U64(report.answered, MESSAGES);
    CHECK_EQ(report.hangs, 0);
    CHECK_EQ(report.restarts, 0);
    uint32_t factor = 1; /* of so many rounds at once */
    uint32_t sum = 0;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        factor *= 1664525u;
        sum = sum * 1664525u + 1013904223u;
    }
    for (uint32_t i = 0; i < MESSAGES; i++) {
        uint32_t answer = 0;
        OK(acre_ring_collect(ring, tickets[i], &answer, 20000, ERR));
        CHECK_EQ(answer, i * factor + sum);
    }
    acre_ring_destroy(ring);
    kit_close(&kit);
}

static void rings_stop_and_start_under_load(void) {
    struct kit kit;
    kit_open(&kit);
    struct acre_ring *ring =
        start_ring(&kit, compute_handler_twice, (struct acre_ring_options){.slots = 8});
    struct restless all = {.context = kit.context, .ring = ring};
    pthread_mutex_init(&all.lock, NULL);
    pthread_cond_init(&all.more, NULL);
    void *(*const roles[])(void *) = {stop_and_start, stop_and_start, call_on, call_on,
                                      call_on,        call_on,        load_on};
    pthread_t threads[ACRE_COUNT(roles)];
    for (size_t i = 0; i < ACRE_COUNT(roles); i++) {
        REQUIRE_EQ(pthread_create(&threads[i], NULL, roles[i], &all), 0);
    }
    for (size_t i = 0; i < ACRE_COUNT(roles); i++) {
        if (roles[i] != stop_and_start) { /* those have ended */
            pthread_mutex_lock(&all.lock);
            atomic_store(&all.is_over, true);
            pthread_cond_broadcast(&all.more);
            pthread_mutex_unlock(&all.lock);
        }
        pthread_join(threads[i], NULL);
    }
    acre_ring_start(ring, ERR);
    check_call(ring, 7, 2);
    struct acre_ring_report report;
    acre_ring_report(ring, &report);
    CHECK(report.is_running);
    CHECK_EQ(report.hangs, 0);
    CHECK_U64(report.answered, report.posted);
    printf("%u calls answered\n", all.answered);
    pthread_cond_destroy(&all.more);
    pthread_mutex_destroy(&all.lock);
    acre_ring_destroy(ring);
    kit_close(&kit);
}

static const struct acre_test tests[] = {
    TEST(rings_answer_calls),
    TEST(rings_take_messages_of_all_sizes),
    TEST(rings_collect_in_any_order),
    TEST(rings_that_are_full_say_so),
    TEST(rings_have_many_producers),
    TEST(rings_reload_under_load),
    TEST(rings_stop_and_start),
    TEST(rings_keep_state),
    TEST(rings_beside_other_work),
    TEST(rings_beside_streams_that_never_rest),
    TEST(rings_bad_options_are_refused),
    TEST(rings_that_hang_are_restarted),
    TEST(rings_without_their_state_say_so),
    TEST(rings_answer_what_a_load_interrupts),
    TEST(rings_stop_and_start_under_load),
};
SUITE(compute_ring_suite, tests);
