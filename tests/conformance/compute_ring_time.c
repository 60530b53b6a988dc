/* compute_ring_time.c - rings and time: what is slow, behind other work, given up or stopped with
 * the whole process is no hang, and holds nothing up for longer than it takes. */
#include "conformance/compute_suite.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static struct acre_ring *start_ring(struct kit *kit, const char *text,
                                    struct acre_ring_options options) {
    struct acre_ring *ring = NULL;
    struct acre_source source = {.text = text, .name = "handler.acl"};
    options.in_words = 2;
    options.out_words = 1;
    OK(acre_ring_create(kit->context, &source, &options, &ring, ERR));
    REQUIRE(ring != NULL);
    return ring;
}

static void check_no_hang(struct acre_ring *ring) {
    struct acre_ring_report report;
    acre_ring_report(ring, &report);
    CHECK_EQ(report.hangs, 0);
    CHECK_EQ(report.restarts, 0);
    CHECK(report.is_running);
}

/* Rounds of the slow handler that take so long, as fast as they are now. */
static uint32_t rounds_for(struct acre_ring *ring, double seconds) {
    uint32_t message[2] = {1000000, 1};
    uint32_t answer = 0;
    double took = 0;
    while (took < seconds / 8 && message[0] < UINT32_MAX / 16) {
        double begun = kit_seconds();
        OK(acre_ring_call(ring, message, &answer, 20000, ERR));
        took = kit_seconds() - begun;
        message[0] *= took < seconds / 8 ? 2 : 1;
    }
    return (uint32_t)(message[0] * (seconds / took));
}

/* Many quick ones let a worker take many at once; then slow ones come, of which one alone is far
 * from a hang and all together are not. */
static void rings_take_slow_messages_after_fast_ones(void) { /* GPU-4 */
    enum { FAST = 64, SLOW = 12, HANG_MS = 800 };
    struct kit kit;
    kit_open(&kit);
    struct acre_ring *ring = start_ring(
        &kit, compute_handler_slow, (struct acre_ring_options){.slots = FAST, .hang_ms = HANG_MS});
    uint32_t rounds = rounds_for(ring, 0.1);
    uint64_t tickets[FAST];
    uint32_t answer = 0;
    for (uint32_t i = 0; i < 100 * FAST; i += FAST) {
        for (uint32_t j = 0; j < FAST; j++) {
            OK(acre_ring_post(ring, (uint32_t[]){1, j}, 20000, &tickets[j], ERR));
        }
        for (uint32_t j = 0; j < FAST; j++) {
            OK(acre_ring_collect(ring, tickets[j], &answer, 20000, ERR));
        }
    }
    double begun = kit_seconds();
    for (uint32_t i = 0; i <= SLOW; i++) { /* behind the first the others gather */
        uint32_t message[] = {i == 0 ? rounds / 20 : rounds, i};
        OK(acre_ring_post(ring, message, 20000, &tickets[i], ERR));
    }
    for (uint32_t i = 0; i <= SLOW; i++) {
        acre_test_context("message %u of %u rounds", i, rounds);
        OK(acre_ring_collect(ring, tickets[i], &answer, 20000, ERR));
    }
    printf("%u messages of %u rounds in %.2f s\n", SLOW, rounds, kit_seconds() - begun);
    check_no_hang(ring);
    acre_ring_destroy(ring);
    kit_close(&kit);
}

/* A message that waits for workers of the CPU, who are at kernels of the same context. */
static void rings_wait_behind_other_kernels(void) {
    if (!kit_is("cpu")) {
        acre_test_skip("on other devices kernels do not wait for each other's groups");
    }
    enum { STREAMS_MAX = 512, HANG_MS = 250 };
    static struct kit_gate gates[STREAMS_MAX];
    struct acre_stream *streams[STREAMS_MAX];
    struct kit kit;
    kit_open(&kit);
    uint32_t count = ACRE_MIN(kit.facts->units, (uint32_t)STREAMS_MAX);
    (void)kit_kernel(&kit, "gate");
    struct acre_ring *ring =
        start_ring(&kit, compute_handler_slow, (struct acre_ring_options){.hang_ms = HANG_MS});
    for (uint32_t i = 0; i < count; i++) {
        OK(acre_stream_create(kit.context, &streams[i], ERR));
        kit_gate_close(&kit, streams[i], &gates[i]);
    }
    uint64_t ticket = 0;
    uint32_t answer = 0;
    OK(acre_ring_post(ring, (uint32_t[]){0, 77}, 20000, &ticket, ERR));
    kit_pass(4 * HANG_MS);
    for (uint32_t i = 0; i < count; i++) {
        kit_gate_open(&gates[i]);
    }
    OK(acre_ring_collect(ring, ticket, &answer, 20000, ERR));
    CHECK_EQ(answer, 77);
    check_no_hang(ring);
    for (uint32_t i = 0; i < count; i++) {
        OK(acre_stream_sync(streams[i], 20000, ERR));
        kit_gate_finish(&gates[i]);
        acre_stream_destroy(streams[i]);
    }
    acre_ring_destroy(ring);
    kit_close(&kit);
}

/* Calls that were given up leave their slots when they are answered, however long a hang may be. */
static void rings_have_slots_of_given_up_calls_again(void) {
    struct kit kit;
    kit_open(&kit);
    struct acre_ring *ring = start_ring(&kit, compute_handler_slow,
                                        (struct acre_ring_options){.slots = 2, .hang_ms = 120000});
    uint32_t rounds = rounds_for(ring, 0.05);
    uint32_t answer = 0;
    for (uint32_t i = 0; i < 2; i++) {
        int r = acre_ring_call(ring, (uint32_t[]){rounds, i}, &answer, 0, ERR);
        CHECK(r == ACRE_ETIMEOUT || r == 0); /* it may have been quick */
    }
    for (uint32_t i = 0; i < 4; i++) {
        acre_test_context("call %u", i);
        OK(acre_ring_call(ring, (uint32_t[]){0, i}, &answer, 8000, ERR));
        CHECK_EQ(answer, i);
    }
    check_no_hang(ring);
    acre_ring_destroy(ring);
    kit_close(&kit);
}

/* --- the process is stopped ----------------------------------------------------------------- */

/* Stopped and continued by a child, as a debugger or a shell does. */
static void be_stopped(int ms) {
    pid_t self = getpid();
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        kill(self, SIGSTOP);
        kit_pass(ms);
        kill(self, SIGCONT);
        _exit(0);
    }
    REQUIRE_EQ(waitpid(child, NULL, 0), child);
}

/* Who watches looks eight times within the limit. */
enum { LIMIT_MS = 800, STOPPED_MS = 1000, LOOK_MS = 120 };

static void rings_stopped_with_the_process_do_not_hang(void) {
    static const char text[] = "handler void handle(local const uint *in, local uint *out, global "
                               "uint *state, uint lane,\n"
                               "                    uint lanes) {\n"
                               "    uint i = 0u;\n"
                               "    while (atomic_add(&state[0], 0u) == 0u && i < in[1]) {\n"
                               "        i++;\n"
                               "    }\n"
                               "    if (lane == 0u) {\n"
                               "        out[0] = in[0];\n"
                               "    }\n"
                               "}\n";
    struct kit kit;
    kit_open(&kit);
    struct acre_buffer state = kit_buffer(&kit, ACRE_MEMORY_MAPPED, 64);
    uint32_t *word = acre_buffer_host(kit.context, state);
    word[0] = 1;
    OK(acre_stream_sync(kit.stream, 20000, ERR));
    struct acre_ring *ring =
        start_ring(&kit, text, (struct acre_ring_options){.state = state, .hang_ms = LIMIT_MS});
    uint32_t answer = 0;
    uint64_t ticket = 0;
    OK(acre_ring_call(ring, (uint32_t[]){5, UINT32_MAX}, &answer, 20000, ERR));
    CHECK_EQ(answer, 5);
    __atomic_store_n(word, 0, __ATOMIC_SEQ_CST);
    OK(acre_ring_post(ring, (uint32_t[]){6, UINT32_MAX}, 20000, &ticket, ERR));
    kit_pass(LOOK_MS);
    be_stopped(STOPPED_MS);
    kit_pass(LOOK_MS);
    __atomic_store_n(word, 1, __ATOMIC_SEQ_CST);
    OK(acre_ring_collect(ring, ticket, &answer, 20000, ERR));
    CHECK_EQ(answer, 6);
    check_no_hang(ring);
    acre_ring_destroy(ring);
    kit_free(&kit, state);
    kit_close(&kit);
}

static void kernels_stopped_with_the_process_do_not_hang(void) {
    struct kit kit;
    struct kit_gate gate;
    kit_open_with(&kit, (struct acre_context_options){.kernel_limit_ms = LIMIT_MS});
    (void)kit_kernel(&kit, "gate");
    kit_gate_close(&kit, kit.stream, &gate);
    struct acre_event event; /* from here on it is watched */
    OK(acre_event_record(kit.stream, &event, ERR));
    kit_pass(LOOK_MS);
    be_stopped(STOPPED_MS);
    kit_pass(LOOK_MS);
    kit_gate_open(&gate);
    OK(acre_event_wait(event, 20000, ERR));
    struct acre_context_report report;
    acre_context_report(kit.context, &report);
    CHECK_STR(report.failure, "");
    CHECK_EQ(report.rebuilt, 0);
    kit_gate_finish(&gate);
    kit_close(&kit);
}

static const struct acre_test tests[] = {
    TEST(rings_take_slow_messages_after_fast_ones),
    TEST(rings_wait_behind_other_kernels),
    TEST(rings_have_slots_of_given_up_calls_again),
    TEST(rings_stopped_with_the_process_do_not_hang),
    TEST(kernels_stopped_with_the_process_do_not_hang),
};
SUITE(compute_ring_time_suite, tests);
