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

/* Answers in[1] when state[0] has come to in[0]; some day in any case. */
static const char handler_waits[] =
    "handler void handle(local const uint *in, local uint *out, global uint *state, uint lane,\n"
    "                    uint lanes) {\n"
    "    global volatile uint *word = state;\n"
    "    for (uint i = 0; word[0] < in[0] && i < 0xfffffff0u; i++) {\n"
    "    }\n"
    "    if (lane == 0u) {\n"
    "        out[0] = in[1];\n"
    "    }\n"
    "}\n";

/* The same, and never. */
static const char handler_hangs[] =
    "handler void handle(local const uint *in, local uint *out, global uint *state, uint lane,\n"
    "                    uint lanes) {\n"
    "    global volatile uint *word = state;\n"
    "    while (word[0] < in[0]) {\n"
    "    }\n"
    "    if (lane == 0u) {\n"
    "        out[0] = in[1];\n"
    "    }\n"
    "}\n";

static struct acre_buffer make_state(struct kit *kit, uint32_t **ret_word) {
    struct acre_buffer state = kit_buffer(kit, ACRE_MEMORY_MAPPED, 64);
    *ret_word = acre_buffer_host(kit->context, state);
    REQUIRE(*ret_word != NULL);
    **ret_word = 0;
    OK(acre_stream_sync(kit->stream, 20000, ERR));
    return state;
}

static void check_no_hang(struct acre_ring *ring) {
    struct acre_ring_report report;
    acre_ring_report(ring, &report);
    CHECK_EQ(report.hangs, 0);
    CHECK_EQ(report.restarts, 0);
    CHECK(report.is_running);
}

/* A ring whose handler waits until the word of its state is as large as a message says. */
struct waiting {
    struct kit kit;
    struct acre_buffer state;
    uint32_t *word;
    struct acre_ring *ring;
};

static void waiting_open(struct waiting *waiting, struct acre_ring_options options) {
    kit_open(&waiting->kit);
    waiting->state = options.state = make_state(&waiting->kit, &waiting->word);
    waiting->ring = start_ring(&waiting->kit, handler_waits, options);
}

static void waiting_close(struct waiting *waiting) {
    check_no_hang(waiting->ring);
    acre_ring_destroy(waiting->ring);
    kit_free(&waiting->kit, waiting->state);
    kit_close(&waiting->kit);
}

enum { FAST = 64, SLOW = 10, EACH_MS = 140, HANG_MS = 1000 };

static void run_fast(struct acre_ring *ring) {
    uint64_t tickets[FAST];
    uint32_t answer = 0;
    for (uint32_t i = 0; i < 100; i++) {
        for (uint32_t j = 0; j < FAST; j++) {
            OK(acre_ring_post(ring, (uint32_t[]){0, j}, 20000, &tickets[j], ERR));
        }
        for (uint32_t j = 0; j < FAST; j++) {
            OK(acre_ring_collect(ring, tickets[j], &answer, 20000, ERR));
        }
    }
}

/* Of the first that was not answered; 0: all were. */
static int run_slow(struct acre_ring *ring, uint32_t *word) {
    uint64_t tickets[SLOW];
    uint32_t answer = 0;
    int r = 0;
    for (uint32_t i = 0; i < SLOW; i++) {
        OK(acre_ring_post(ring, (uint32_t[]){i + 1, i}, 20000, &tickets[i], ERR));
        kit_pass(i == 0 ? 1 : 0); /* behind the first, which is still quick, the others gather */
    }
    for (uint32_t i = 1; i <= SLOW; i++) {
        kit_pass(i == 1 ? 0 : EACH_MS);
        __atomic_store_n(word, i, __ATOMIC_SEQ_CST);
    }
    for (uint32_t i = 0; i < SLOW && r == 0; i++) {
        r = acre_ring_collect(ring, tickets[i], &answer, 20000, ERR);
        CHECK(r < 0 || answer == i);
    }
    return r;
}

/* Many quick ones let a worker take many at once; then slow ones come, of which one alone is far
 * from a hang and all together are not. How slow they are does not depend on the machine, but one
 * that is very busy may keep a single one waiting for so long: then it is tried again. */
static void rings_take_slow_messages_after_fast_ones(void) { /* GPU-4 */
    enum { TRIES = 3 };
    for (uint32_t try = 1;; try++) {
        struct waiting waiting;
        waiting_open(&waiting, (struct acre_ring_options){.slots = FAST, .hang_ms = HANG_MS});
        run_fast(waiting.ring);
        int r = run_slow(waiting.ring, waiting.word);
        if (r == 0 || try == TRIES) {
            OK(r);
            waiting_close(&waiting);
            return;
        }
        acre_context_close(waiting.kit.context);
        acre_compute_close(waiting.kit.compute);
    }
}

/* A message that waits for workers of the CPU, who are at kernels of the same context. */
static void rings_wait_behind_other_kernels(void) {
    if (!kit_is("cpu")) {
        acre_test_skip("on other devices kernels do not wait for each other's groups");
    }
    enum { STREAMS_MAX = 512, SHORT_MS = 250 };
    static struct kit_gate gates[STREAMS_MAX];
    struct acre_stream *streams[STREAMS_MAX];
    struct kit kit;
    kit_open(&kit);
    uint32_t count = ACRE_MIN(kit.facts->units, (uint32_t)STREAMS_MAX);
    (void)kit_kernel(&kit, "gate");
    struct acre_ring *ring =
        start_ring(&kit, compute_handler_slow, (struct acre_ring_options){.hang_ms = SHORT_MS});
    for (uint32_t i = 0; i < count; i++) {
        OK(acre_stream_create(kit.context, &streams[i], ERR));
        kit_gate_close(&kit, streams[i], &gates[i]);
    }
    uint64_t ticket = 0;
    uint32_t answer = 0;
    OK(acre_ring_post(ring, (uint32_t[]){0, 77}, 20000, &ticket, ERR));
    kit_pass(4 * SHORT_MS);
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

/* --- rings nobody calls ----------------------------------------------------------------------- */

enum { IDLE_MS = 20 };

static void call_once(struct acre_ring *ring, uint32_t value) {
    uint32_t answer = 0;
    OK(acre_ring_call(ring, (uint32_t[]){0, value}, &answer, 20000, ERR));
    CHECK_EQ(answer, value);
}

/* Until its kernel has left the device; a ring of a worker has none. How often it left. */
static uint32_t await_nap(struct acre_ring *ring) {
    struct acre_ring_report report;
    double begun = kit_seconds();
    acre_ring_report(ring, &report);
    while (report.is_resident && kit_seconds() - begun < 20) {
        kit_pass(1);
        acre_ring_report(ring, &report);
    }
    CHECK(!report.is_resident);
    CHECK(report.is_running);
    return report.naps;
}

static void rings_leave_when_nobody_calls(void) {
    enum { ROUNDS = 10 };
    struct kit kit;
    kit_open(&kit);
    struct acre_ring *ring =
        start_ring(&kit, handler_waits, (struct acre_ring_options){.idle_ms = IDLE_MS});
    for (uint32_t i = 0; i < ROUNDS; i++) {
        await_nap(ring);
        call_once(ring, i);
    }
    await_nap(ring); /* stopped, started and given another handler in its sleep */
    OK(acre_ring_stop(ring, ERR));
    OK(acre_ring_start(ring, ERR));
    call_once(ring, ROUNDS);
    uint32_t naps = await_nap(ring);
    struct acre_source source = {.text = handler_waits, .name = "again.acl"};
    OK(acre_ring_reload(ring, &source, ERR));
    CHECK_EQ(await_nap(ring), naps);
    call_once(ring, ROUNDS + 1);
    struct acre_ring_report report;
    acre_ring_report(ring, &report);
    CHECK(report.path == ACRE_RING_RESIDENT ? naps > ROUNDS : naps == 0);
    CHECK_EQ(report.restarts, 1);
    CHECK_EQ(report.hangs, 0);
    CHECK_EQ(report.answered, ROUNDS + 2);
    acre_ring_destroy(ring);
    kit_close(&kit);
}

struct caller {
    pthread_t thread;
    struct acre_ring *ring;
    uint32_t number;
};

static void *call_now_and_then(void *user) {
    const struct caller *self = user;
    struct acre_rand rand;
    acre_rand_seed(&rand, kit_choice.seed + self->number);
    for (uint32_t i = 0; i < 200; i++) {
        call_once(self->ring, self->number * 1000 + i);
        kit_pass((int)acre_rand_below(&rand, 4));
    }
    return NULL;
}

/* Who calls when the kernel is just about to leave is answered all the same. */
static void rings_leave_and_lose_nobody(void) {
    struct caller callers[4];
    struct kit kit;
    kit_open(&kit);
    struct acre_ring *ring =
        start_ring(&kit, handler_waits, (struct acre_ring_options){.idle_ms = 1});
    for (uint32_t i = 0; i < ACRE_COUNT(callers); i++) {
        callers[i] = (struct caller){.ring = ring, .number = i};
        REQUIRE_EQ(pthread_create(&callers[i].thread, NULL, call_now_and_then, &callers[i]), 0);
    }
    for (uint32_t i = 0; i < ACRE_COUNT(callers); i++) {
        pthread_join(callers[i].thread, NULL);
    }
    struct acre_ring_report report;
    acre_ring_report(ring, &report);
    CHECK_EQ(report.answered, ACRE_COUNT(callers) * 200);
    check_no_hang(ring);
    printf("%u naps\n", report.naps);
    acre_ring_destroy(ring);
    kit_close(&kit);
}

/* A kernel that has to wait for room on the device does not hang. */
static void rings_wait_for_room_on_the_device(void) {
    enum { SHORT_MS = 250 };
    struct kit kit;
    struct kit_gate gate;
    kit_open(&kit);
    struct acre_ring *ring = start_ring(
        &kit, handler_waits, (struct acre_ring_options){.hang_ms = SHORT_MS, .idle_ms = IDLE_MS});
    struct acre_ring_report report;
    acre_ring_report(ring, &report);
    if (report.path == ACRE_RING_RESIDENT) {
        await_nap(ring);
        struct acre_grid all = {.groups = {kit.facts->units * 2}, .group = {kit.facts->group_max}};
        kit_gate_close_by(&kit, kit.stream, all, &gate);
        uint64_t ticket = 0;
        uint32_t answer = 0;
        OK(acre_ring_post(ring, (uint32_t[]){0, 77}, 20000, &ticket, ERR));
        kit_pass(4 * SHORT_MS);
        kit_gate_open(&gate);
        OK(acre_ring_collect(ring, ticket, &answer, 20000, ERR));
        CHECK_EQ(answer, 77);
        check_no_hang(ring);
        OK(acre_stream_sync(kit.stream, 20000, ERR));
        kit_gate_finish(&gate);
    }
    acre_ring_destroy(ring);
    kit_close(&kit);
    if (report.path != ACRE_RING_RESIDENT) {
        acre_test_skip("no kernel stays here: %s", report.reason);
    }
}

/* Calls that were given up leave their slots when they are answered, however long a hang may be. */
static void rings_have_slots_of_given_up_calls_again(void) {
    struct waiting waiting;
    waiting_open(&waiting, (struct acre_ring_options){.slots = 2, .hang_ms = 120000});
    uint32_t answer = 0;
    for (uint32_t i = 0; i < 2; i++) {
        FAILS(acre_ring_call(waiting.ring, (uint32_t[]){1, i}, &answer, 1, ERR), ACRE_ETIMEOUT,
              "handle");
    }
    FAILS(acre_ring_call(waiting.ring, (uint32_t[]){0, 9}, &answer, 1, ERR), ACRE_ETIMEOUT,
          "2 slots");
    __atomic_store_n(waiting.word, 1, __ATOMIC_SEQ_CST);
    for (uint32_t i = 0; i < 4; i++) {
        acre_test_context("call %u", i);
        OK(acre_ring_call(waiting.ring, (uint32_t[]){0, i}, &answer, 8000, ERR));
        CHECK_EQ(answer, i);
    }
    acre_test_context("%s", "");
    waiting_close(&waiting);
}

/* They are free at once when all is answered, before who watches looks again. */
static void rings_wait_for_no_given_up_call(void) {
    struct waiting waiting;
    waiting_open(&waiting, (struct acre_ring_options){.slots = 2, .hang_ms = 120000});
    for (uint32_t i = 1; i <= 20; i++) {
        struct acre_ring_report report = {0};
        uint64_t ticket = 0;
        uint32_t answer = 0;
        acre_test_context("turn %u", i);
        FAILS(acre_ring_call(waiting.ring, (uint32_t[]){i, 0}, &answer, 1, ERR), ACRE_ETIMEOUT,
              "handle");
        __atomic_store_n(waiting.word, i, __ATOMIC_SEQ_CST);
        OK(acre_ring_call(waiting.ring, (uint32_t[]){0, i}, &answer, 20000, ERR));
        CHECK_EQ(answer, i);
        for (acre_ring_report(waiting.ring, &report); report.answered < report.posted;) {
            acre_ring_report(waiting.ring, &report);
        }
        OK(acre_ring_post(waiting.ring, (uint32_t[]){0, i}, 0, &ticket, ERR));
        OK(acre_ring_collect(waiting.ring, ticket, &answer, 20000, ERR));
        CHECK_EQ(answer, i);
    }
    acre_test_context("%s", "");
    waiting_close(&waiting);
}

/* Nothing is given to the device, and nothing hangs: what waits is told, and the stop is over. */
static void rings_without_their_state_stop(void) {
    struct waiting waiting;
    waiting_open(&waiting, (struct acre_ring_options){.hang_ms = 4000});
    uint32_t answer = 0;
    uint64_t ticket = 0;
    OK(acre_ring_call(waiting.ring, (uint32_t[]){0, 3}, &answer, 20000, ERR));
    kit_free(&waiting.kit, waiting.state);
    OK(acre_memory_trim(waiting.kit.context, 0, ERR)); /* a resident kernel has to come back */
    if (acre_ring_post(waiting.ring, (uint32_t[]){0, 4}, 20000, &ticket, ERR) == 0) {
        (void)acre_ring_stop(waiting.ring, ERR); /* it may have failed before */
        FAILS(acre_ring_collect(waiting.ring, ticket, &answer, 20000, ERR), ACRE_EUNAVAILABLE,
              "freed");
    }
    acre_ring_destroy(waiting.ring);
    kit_close(&waiting.kit);
}

/* --- the process is stopped ----------------------------------------------------------------- */

/* Who watches looks eight times within the limit, and counts a quarter of it for a stop at most. */
enum { LIMIT_MS = 1000, STOPPED_MS = 1200, LOOK_MS = LIMIT_MS / 8 + 10 };

/* Stopped and continued by a child, as a debugger or a shell does. */
static void be_stopped(void) {
    pid_t self = getpid();
    kit_pass(LOOK_MS); /* what is under way has been seen */
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        kill(self, SIGSTOP);
        kit_pass(STOPPED_MS);
        kill(self, SIGCONT);
        _exit(0);
    }
    REQUIRE_EQ(waitpid(child, NULL, 0), child);
    kit_pass(20); /* it is looked at again */
}

/* What it took beside the stop counts as it should: on a machine that is too busy, all of it. */
static void check_not_taken_for_hung(int result, double begun) {
    double awake_ms = (kit_seconds() - begun) * 1e3 - STOPPED_MS;
    if (result != 0 && awake_ms > LIMIT_MS / 2) {
        acre_test_skip("busy for %.0f of %d ms", awake_ms, LIMIT_MS);
    }
    OK(result);
}

static void rings_stopped_with_the_process_do_not_hang(void) {
    struct waiting waiting;
    waiting_open(&waiting, (struct acre_ring_options){.hang_ms = LIMIT_MS});
    uint32_t answer = 0;
    uint64_t ticket = 0;
    OK(acre_ring_call(waiting.ring, (uint32_t[]){0, 5}, &answer, 20000, ERR));
    CHECK_EQ(answer, 5);
    double begun = kit_seconds();
    OK(acre_ring_post(waiting.ring, (uint32_t[]){1, 6}, 20000, &ticket, ERR));
    be_stopped();
    __atomic_store_n(waiting.word, 1, __ATOMIC_SEQ_CST);
    check_not_taken_for_hung(acre_ring_collect(waiting.ring, ticket, &answer, 20000, ERR), begun);
    CHECK_EQ(answer, 6);
    waiting_close(&waiting);
}

static void kernels_stopped_with_the_process_do_not_hang(void) {
    struct kit kit;
    struct kit_gate gate;
    kit_open_with(&kit, (struct acre_context_options){.kernel_limit_ms = LIMIT_MS});
    (void)kit_kernel(&kit, "gate");
    double begun = kit_seconds();
    kit_gate_close(&kit, kit.stream, &gate);
    struct acre_event event; /* from here on it is watched */
    OK(acre_event_record(kit.stream, &event, ERR));
    be_stopped();
    kit_gate_open(&gate);
    check_not_taken_for_hung(acre_event_wait(event, 20000, ERR), begun);
    struct acre_context_report report;
    acre_context_report(kit.context, &report);
    CHECK_STR(report.failure, "");
    CHECK_EQ(report.rebuilt, 0);
    kit_gate_finish(&gate);
    kit_close(&kit);
}

/* The fourth of a context is no resident one anywhere. */
static void rings_that_hang_are_destroyed(void) { /* before the hang was noticed */
    kit_needs_isolation();
    struct kit kit;
    kit_open(&kit);
    uint32_t *word;
    struct acre_buffer state = make_state(&kit, &word);
    const struct acre_ring_options options = {.hang_ms = 1000, .state = state};
    const uint32_t message[] = {1, 7};
    uint32_t answer = 0;
    struct acre_ring *ring = start_ring(&kit, handler_hangs, options);
    CHECK(acre_ring_call(ring, message, &answer, 100, ERR) < 0);
    acre_ring_destroy(ring);
    *word = 1;
    ring = start_ring(&kit, handler_waits, (struct acre_ring_options){.state = state});
    OK(acre_ring_call(ring, message, &answer, 60000, ERR));
    CHECK_EQ(answer, 7);
    acre_ring_destroy(ring);
    kit_free(&kit, state);
    kit_close(&kit);
}

static void rings_that_hang_in_a_worker_are_told(void) {
    kit_needs_isolation();
    struct kit kit;
    kit_open(&kit);
    uint32_t *word;
    struct acre_buffer state = make_state(&kit, &word);
    struct acre_ring *rings[4];
    for (size_t i = 0; i < ACRE_COUNT(rings); i++) {
        rings[i] = start_ring(&kit, i < 3 ? handler_waits : handler_hangs,
                              (struct acre_ring_options){.hang_ms = 1000, .state = state});
    }
    struct acre_ring_report report;
    acre_ring_report(rings[3], &report);
    CHECK_EQ(report.path, ACRE_RING_WORKER);
    uint32_t answer;
    OK(acre_ring_call(rings[3], (uint32_t[]){0, 17}, &answer, 20000, ERR));
    CHECK_EQ(answer, 17);
    FAILS(acre_ring_call(rings[3], (uint32_t[]){1, 18}, &answer, 20000, ERR), ACRE_EUNAVAILABLE,
          "took longer than 1000 ms");
    for (size_t i = 0; i < ACRE_COUNT(rings); i++) { /* all are back */
        OK(acre_ring_call(rings[i], (uint32_t[]){0, 19}, &answer, 20000, ERR));
        CHECK_EQ(answer, 19);
        acre_ring_destroy(rings[i]);
    }
    kit_free(&kit, state);
    kit_close(&kit);
}

static const struct acre_test tests[] = {
    TEST(rings_that_hang_are_destroyed),
    TEST(rings_that_hang_in_a_worker_are_told),
    TEST(rings_take_slow_messages_after_fast_ones),
    TEST(rings_wait_behind_other_kernels),
    TEST(rings_leave_when_nobody_calls),
    TEST(rings_leave_and_lose_nobody),
    TEST(rings_wait_for_room_on_the_device),
    TEST(rings_have_slots_of_given_up_calls_again),
    TEST(rings_wait_for_no_given_up_call),
    TEST(rings_without_their_state_stop),
    TEST(rings_stopped_with_the_process_do_not_hang),
    TEST(kernels_stopped_with_the_process_do_not_hang),
};
SUITE(compute_ring_time_suite, tests);
