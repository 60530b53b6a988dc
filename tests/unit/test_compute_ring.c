/* Rings whose device rests: its circuit is open (GPU-6). The breaker is told of failures, and its
 * minute is over when the test says so. For each back end that is here, in this process and in a
 * runner's: on a GPU the ring is a resident kernel, elsewhere a worker. And how long calls wait. */
#include "compute/quiet.h"
#include "compute/ring/inner.h"
#include "compute/runner/remote.h"
#include "core/clock.h"
#include "support/test.h"

#include <acre/compute.h>
#include <acre/ring.h>

#include <stdio.h>
#include <stdlib.h>

static const char source_text[] =
    "handler void handle(local const uint *in, local uint *out, global uint *state, uint lane,\n"
    "                    uint lanes) {\n"
    "    while (in[0] == 1000000 && ((volatile global uint *)state)[0] == 0) {\n"
    "    }\n" /* until the test says so */
    "    if (lane == 0) {\n"
    "        out[0] = in[0] * 2 + 1;\n"
    "    }\n"
    "}\n";
enum { WAITS = 1000000 };

struct bench {
    struct acre_compute *compute;
    struct acre_context *context;
    struct acre_ring *ring;
    struct acre_error err;
};

static const struct way {
    const char *backend;
    enum acre_context_isolation isolation;
} ways[] = {{"cpu", ACRE_CONTEXT_ISOLATION_NONE},
            {"cpu", ACRE_CONTEXT_ISOLATION_PROCESS},
            {"cuda", ACRE_CONTEXT_ISOLATION_PROCESS}};

#define OK(call)                                                                                   \
    do {                                                                                           \
        int result_ = (call);                                                                      \
        acre_test_context("%s", result_ < 0 ? bench->err.text : "");                               \
        REQUIRE_EQ(result_, 0);                                                                    \
    } while (0)

/* False: no such device here. */
static bool open_bench(struct bench *bench, const struct way *way) {
    *bench = (struct bench){0};
    setenv("ACRE_RUNNER", RUNNER, 1);
    struct acre_compute_options options = {.backends = way->backend, .cache = ""};
    OK(acre_compute_open(&options, &bench->compute, &bench->err));
    if (acre_compute_count(bench->compute) == 0) {
        printf("%s: %s\n", way->backend, acre_compute_absent(bench->compute, way->backend));
        acre_compute_close(bench->compute);
        return false;
    }
    struct acre_context_options of = {.isolation = way->isolation};
    OK(acre_context_open(bench->compute, 0, &of, &bench->context, &bench->err));
    struct acre_source source = {.text = source_text};
    struct acre_ring_options ring = {.in_words = 1, .out_words = 1, .slots = 4, .hang_ms = 20000};
    OK(acre_ring_create(bench->context, &source, &ring, &bench->ring, &bench->err));
    return true;
}

static void close_bench(struct bench *bench) {
    acre_compute_close(bench->compute);
}

static void check_call(struct bench *bench, uint32_t in) {
    uint32_t out = 0;
    OK(acre_ring_call(bench->ring, &in, &out, 20000, &bench->err));
    CHECK_U64(out, in * 2 + 1);
}

static void open_circuit(struct bench *bench) {
    for (int i = 0; i < 1000 && breaker_state(&bench->context->breaker) == BREAKER_CLOSED; i++) {
        breaker_tell(&bench->context->breaker, acre_monotonic_ns() / 1000000, false);
    }
    REQUIRE_EQ(breaker_state(&bench->context->breaker), BREAKER_OPEN);
    /* What makes a resident kernel need a launch: it leaves for a moment. */
    struct quiet quiet;
    quiet_begin(&quiet, bench->context);
    quiet_end(&quiet);
}

/* The minute is over. */
static void let_try(struct bench *bench) {
    struct breaker *breaker = &bench->context->breaker;
    pthread_mutex_lock(&breaker->lock);
    breaker->opened_ms -= 60000;
    pthread_mutex_unlock(&breaker->lock);
}

static void check_refused(struct bench *bench) {
    uint32_t in = 1;
    uint32_t out = 0;
    CHECK_EQ(acre_ring_call(bench->ring, &in, &out, 20000, &bench->err), ACRE_EUNAVAILABLE);
    CHECK_HAS(bench->err.text, "handle");
    CHECK_HAS(bench->err.text, "the context rests for another ");
    CHECK_HAS(bench->err.text, " s, because ");
}

static void each_way(void (*check)(struct bench *bench)) {
    for (size_t i = 0; i < ACRE_COUNT(ways); i++) {
        struct bench bench;
        if (open_bench(&bench, &ways[i])) {
            check_call(&bench, 1);
            check(&bench);
            close_bench(&bench);
        }
    }
}

static void check_return(struct bench *bench) {
    struct acre_ring_report report;
    for (uint32_t i = 1; i <= 3; i++) {
        open_circuit(bench);
        check_refused(bench);
        check_refused(bench);
        acre_ring_report(bench->ring, &report);
        CHECK(!report.is_running);
        CHECK_U64(report.hangs, 0);
        let_try(bench);
        for (uint32_t j = 0; j < 10; j++) {
            check_call(bench, j);
        }
        acre_ring_report(bench->ring, &report);
        CHECK(report.is_running);
        CHECK_U64(report.restarts, i);
        CHECK_EQ(breaker_state(&bench->context->breaker), BREAKER_CLOSED);
    }
}

static void rings_come_back_when_the_circuit_closes(void) { /* GPU-6 */
    each_way(check_return);
}

/* Slots of messages that were refused are free again, whoever collects them, and when. */
static void check_posted(struct bench *bench) {
    open_circuit(bench);
    uint64_t tickets[4];
    uint32_t count = 0;
    uint32_t in = 7;
    uint32_t out = 0;
    while (count < ACRE_COUNT(tickets) &&
           acre_ring_post(bench->ring, &in, 0, &tickets[count], &bench->err) == 0) {
        count++;
    }
    printf("%u posted\n", count);
    for (uint32_t i = 0; i < count / 2; i++) {
        CHECK_EQ(acre_ring_collect(bench->ring, tickets[i], &out, 20000, &bench->err),
                 ACRE_EUNAVAILABLE);
        CHECK_HAS(bench->err.text, "the context rests for another ");
    }
    let_try(bench);
    check_call(bench, 3);
    for (uint32_t i = count / 2; i < count; i++) {
        CHECK_EQ(acre_ring_collect(bench->ring, tickets[i], &out, 20000, &bench->err),
                 ACRE_EUNAVAILABLE);
        CHECK_HAS(bench->err.text, "the context rests for another ");
    }
    for (uint32_t i = 0; i < 20; i++) {
        check_call(bench, i);
    }
}

static void what_was_posted_is_told(void) { /* GPU-6 */
    each_way(check_posted);
}

/* Posted, and refused: the worker comes to it when the circuit is open. It is back after that. */
static uint64_t post_refused(struct bench *bench) {
    uint32_t in = 7;
    uint64_t ticket = 0;
    struct quiet quiet;
    quiet_begin(&quiet, bench->context);
    OK(acre_ring_post(bench->ring, &in, 20000, &ticket, &bench->err));
    open_circuit(bench);
    quiet_end(&quiet);
    check_refused(bench);
    let_try(bench);
    check_call(bench, 3);
    return ticket;
}

static void check_told(struct bench *bench, uint64_t ticket, const char *says) {
    uint32_t out = 0;
    CHECK_EQ(acre_ring_collect(bench->ring, ticket, &out, 20000, &bench->err), ACRE_EUNAVAILABLE);
    CHECK_HAS(bench->err.text, says);
}

/* What was refused in an earlier rest is still that, whatever came after: another rest, a loss. */
static void check_told_late(struct bench *bench) {
    uint64_t tickets[4];
    for (uint32_t i = 0; i < 3; i++) {
        tickets[i] = post_refused(bench);
    }
    check_told(bench, tickets[0], "the context rests for another ");
    check_told(bench, tickets[1], "the context rests for another ");
    if (bench->context->is_remote) {
        uint32_t in = WAITS;
        OK(acre_ring_post(bench->ring, &in, 20000, &tickets[3], &bench->err));
        remote_end(bench->context->seat, "told to");
        check_told(bench, tickets[3], "told to");
        tickets[0] = post_refused(bench);
        check_told(bench, tickets[0], "the context rests for another ");
    }
    check_told(bench, tickets[2], "the context rests for another ");
}

static void what_was_refused_is_told_late(void) { /* GPU-6 */
    each_way(check_told_late);
}

static void check_stopped(struct bench *bench) {
    open_circuit(bench);
    check_refused(bench);
    CHECK_EQ(acre_ring_start(bench->ring, &bench->err), ACRE_ECONFLICT);
    CHECK_HAS(bench->err.text, "rests");
    OK(acre_ring_stop(bench->ring, &bench->err));
    let_try(bench);
    uint32_t in = 1;
    uint32_t out = 0;
    CHECK_EQ(acre_ring_call(bench->ring, &in, &out, 0, &bench->err), ACRE_ECONFLICT);
    OK(acre_ring_start(bench->ring, &bench->err));
    check_call(bench, 5);
}

static void rings_that_rest_can_be_stopped(void) {
    each_way(check_stopped);
}

static void check_trier(struct bench *bench) {
    open_circuit(bench);
    check_refused(bench);
    struct breaker *breaker = &bench->context->breaker;
    /* A minute later another call tries first, and fails: another minute. */
    REQUIRE_EQ(breaker_ask(breaker, acre_monotonic_ns() / 1000000 + 60000, NULL), 0);
    uint32_t in = 1;
    uint32_t out = 0;
    CHECK_EQ(acre_ring_call(bench->ring, &in, &out, 20000, &bench->err), ACRE_EUNAVAILABLE);
    CHECK_HAS(bench->err.text, "one call tests whether the device works again");
    breaker_tell(breaker, acre_monotonic_ns() / 1000000, false);
    check_refused(bench);
    let_try(bench);
    check_call(bench, 9);
    CHECK_EQ(breaker_state(breaker), BREAKER_CLOSED);
}

static void rings_wait_for_who_tries(void) { /* GPU-6 */
    each_way(check_trier);
}

/* The context is lost while its circuit is open: it is made anew, and the ring rests. */
static void rings_come_back_after_a_loss_in_a_rest(void) { /* GPU-6 */
    for (size_t i = 0; i < ACRE_COUNT(ways); i++) {
        struct bench bench;
        if (ways[i].isolation == ACRE_CONTEXT_ISOLATION_NONE || !open_bench(&bench, &ways[i])) {
            continue;
        }
        check_call(&bench, 1);
        open_circuit(&bench);
        check_refused(&bench);
        remote_end(bench.context->seat, "told to");
        struct acre_context_report report = {0};
        for (int j = 0; j < 20000 && report.rebuilt == 0; j++) {
            acre_test_rest();
            acre_context_report(bench.context, &report);
        }
        CHECK_U64(report.rebuilt, 1);
        check_refused(&bench);
        let_try(&bench);
        check_call(&bench, 2);
        close_bench(&bench);
    }
}

/* A message that was given and lost was not refused: what comes next may take its time on the way
 * to the device (a new runner compiles and loads everything again). */
static void a_slow_launch_after_a_loss_is_waited_for(void) { /* GPU-4 */
    enum { HANG_MS = 300 };
    const struct way way = {"cpu", ACRE_CONTEXT_ISOLATION_PROCESS};
    struct bench both, *bench = &both;
    REQUIRE(open_bench(bench, &way));
    acre_ring_destroy(bench->ring);
    struct acre_source source = {.text = source_text};
    struct acre_ring_options options = {
        .in_words = 1, .out_words = 1, .slots = 4, .hang_ms = HANG_MS};
    OK(acre_ring_create(bench->context, &source, &options, &bench->ring, &bench->err));
    struct acre_ring *ring = bench->ring;
    uint32_t message = WAITS, answer = 0;
    CHECK_EQ(acre_ring_call(ring, &message, &answer, 20000, &bench->err), ACRE_EUNAVAILABLE);
    CHECK_HAS(bench->err.text, "took longer than 300 ms");
    check_call(bench, 2);
    /* The same again, and then a launch that does not get through for long: for that the worker
     * needs the lock, and it has said that it is at a batch before. */
    CHECK_EQ(acre_ring_call(ring, &message, &answer, 20000, &bench->err), ACRE_EUNAVAILABLE);
    struct acre_ring_report report = {0};
    for (int i = 0; i < 20000 && report.restarts < 2; i++) {
        acre_test_rest();
        acre_ring_report(ring, &report);
    }
    uint64_t ticket = 0;
    message = 3;
    pthread_mutex_lock(&bench->context->rings_lock);
    int r = acre_ring_post(ring, &message, 20000, &ticket, &bench->err);
    uint64_t begun_ns = acre_monotonic_ns();
    while (acre_monotonic_ns() - begun_ns < UINT64_C(4000000) * HANG_MS) {
        acre_test_rest();
    }
    pthread_mutex_unlock(&bench->context->rings_lock);
    OK(r);
    OK(acre_ring_collect(ring, ticket, &answer, 20000, &bench->err));
    CHECK_U64(answer, 7);
    close_bench(bench);
}

struct collector {
    struct bench *bench;
    uint64_t ticket;
    uint64_t begun_ns; /* when it made room */
};

enum { CALL_MS = 2000, ROOM_AFTER_MS = 1500 };

static void *collect_late(void *user) {
    struct collector *self = user;
    uint64_t begun_ns = acre_monotonic_ns();
    while (acre_monotonic_ns() - begun_ns < UINT64_C(1000000) * ROOM_AFTER_MS) {
        acre_test_rest();
    }
    uint32_t out = 0;
    self->begun_ns = acre_monotonic_ns();
    CHECK_EQ(acre_ring_collect(self->bench->ring, self->ticket, &out, 20000, NULL), 0);
    return NULL;
}

/* The ring is full until most of the time is over: what is left is for the answer, which does not
 * come. Twice the time would be over that much later. */
static void check_deadline(struct bench *bench) {
    struct collector collector = {.bench = bench};
    uint64_t tickets[4];
    uint32_t in = 2;
    uint32_t out = 0;
    for (size_t i = 0; i < ACRE_COUNT(tickets); i++) {
        OK(acre_ring_post(bench->ring, &in, 20000, &tickets[i], &bench->err));
    }
    collector.ticket = tickets[0];
    pthread_t thread;
    REQUIRE_EQ(pthread_create(&thread, NULL, collect_late, &collector), 0);
    in = WAITS;
    CHECK_EQ(acre_ring_call(bench->ring, &in, &out, CALL_MS, &bench->err), ACRE_ETIMEOUT);
    uint64_t end_ns = acre_monotonic_ns();
    pthread_join(thread, NULL);
    CHECK(end_ns - collector.begun_ns < UINT64_C(1000000) * CALL_MS);
    uint32_t *state = acre_buffer_host(bench->context, bench->ring->state);
    __atomic_store_n(state, 1, __ATOMIC_SEQ_CST);
    for (size_t i = 1; i < ACRE_COUNT(tickets); i++) {
        OK(acre_ring_collect(bench->ring, tickets[i], &out, 20000, &bench->err));
    }
    check_call(bench, 3);
}

static void calls_have_one_deadline(void) {
    each_way(check_deadline);
}

/* --- many producers, many collectors ---------------------------------------------------------- */

static const char counting_text[] =
    "handler void handle(local const uint *in, local uint *out, global uint *state, uint lane,\n"
    "                    uint lanes) {\n"
    "    if (lane == 0) {\n"
    "        out[0] = in[0];\n"
    "        out[1] = state[0];\n" /* how many were handled before it */
    "        state[0] = state[0] + 1;\n"
    "    }\n"
    "}\n";

enum { PRODUCERS = 4, COLLECTORS = 4, EACH = 500, POSTS = PRODUCERS * EACH, MANY_SLOTS = 16 };

struct crowd {
    struct acre_ring *ring;
    pthread_mutex_t lock;
    pthread_cond_t more;
    uint64_t tickets[2 * POSTS]; /* each twice: two threads will ask for it */
    uint32_t posted, taken;
    atomic_uint collected[POSTS]; /* by message */
    atomic_uint turn[POSTS];      /* in which it was handled */
    atomic_uint refused, others;
};

struct crowd_producer {
    struct crowd *crowd;
    uint32_t first;
};

static void *post_each(void *user) {
    struct crowd_producer *self = user;
    struct crowd *crowd = self->crowd;
    for (uint32_t i = self->first; i < self->first + EACH; i++) {
        uint64_t ticket = 0;
        CHECK_EQ(acre_ring_post(crowd->ring, &i, 60000, &ticket, NULL), 0);
        pthread_mutex_lock(&crowd->lock);
        crowd->tickets[crowd->posted++] = ticket;
        crowd->tickets[crowd->posted++] = ticket;
        pthread_cond_broadcast(&crowd->more);
        pthread_mutex_unlock(&crowd->lock);
    }
    return NULL;
}

static void *collect_each(void *user) {
    struct crowd *crowd = user;
    for (;;) {
        pthread_mutex_lock(&crowd->lock);
        while (crowd->taken == crowd->posted && crowd->taken < 2 * POSTS) {
            pthread_cond_wait(&crowd->more, &crowd->lock);
        }
        bool is_over = crowd->taken == 2 * POSTS;
        uint64_t ticket = is_over ? 0 : crowd->tickets[crowd->taken++];
        pthread_cond_broadcast(&crowd->more);
        pthread_mutex_unlock(&crowd->lock);
        if (is_over) {
            return NULL;
        }
        uint32_t out[2] = {POSTS, 0};
        int r = acre_ring_collect(crowd->ring, ticket, out, 60000, NULL);
        if (r == 0 && out[0] < POSTS) {
            atomic_fetch_add(&crowd->collected[out[0]], 1);
            atomic_store(&crowd->turn[out[0]], out[1]);
        } else {
            atomic_fetch_add(r == ACRE_ENOTFOUND ? &crowd->refused : &crowd->others, 1);
        }
    }
}

/* What ring.h promises of threads: a ticket is answered once, whoever collects it, and messages of
 * one thread are handled in its order. */
static void check_crowd(struct bench *bench) {
    struct crowd *crowd = calloc(1, sizeof(*crowd));
    REQUIRE(crowd != NULL);
    pthread_mutex_init(&crowd->lock, NULL);
    pthread_cond_init(&crowd->more, NULL);
    struct acre_source source = {.text = counting_text};
    struct acre_ring_options options = {
        .in_words = 1, .out_words = 2, .slots = MANY_SLOTS, .hang_ms = 60000};
    OK(acre_ring_create(bench->context, &source, &options, &crowd->ring, &bench->err));
    struct crowd_producer producers[PRODUCERS];
    pthread_t threads[PRODUCERS + COLLECTORS];
    for (uint32_t i = 0; i < PRODUCERS + COLLECTORS; i++) {
        bool posts = i < PRODUCERS;
        if (posts) {
            producers[i] = (struct crowd_producer){.crowd = crowd, .first = i * EACH};
        }
        void *user = posts ? (void *)&producers[i] : crowd;
        REQUIRE_EQ(pthread_create(&threads[i], NULL, posts ? post_each : collect_each, user), 0);
    }
    for (uint32_t i = 0; i < PRODUCERS + COLLECTORS; i++) {
        pthread_join(threads[i], NULL);
    }
    uint32_t not_once = 0, not_in_order = 0;
    for (uint32_t i = 0; i < POSTS; i++) {
        not_once += atomic_load(&crowd->collected[i]) != 1;
        not_in_order +=
            i % EACH != 0 && atomic_load(&crowd->turn[i]) <= atomic_load(&crowd->turn[i - 1]);
    }
    CHECK_U64(not_once, 0);
    CHECK_U64(not_in_order, 0);
    CHECK_U64(atomic_load(&crowd->refused), POSTS); /* the second to ask */
    CHECK_U64(atomic_load(&crowd->others), 0);
    acre_ring_destroy(crowd->ring);
    pthread_cond_destroy(&crowd->more);
    pthread_mutex_destroy(&crowd->lock);
    free(crowd);
}

static void any_thread_posts_and_any_thread_collects(void) { /* GPU-4 */
    each_way(check_crowd);
}

static const struct acre_test tests[] = {
    {"any_thread_posts_and_any_thread_collects", any_thread_posts_and_any_thread_collects, 300},
    {"calls_have_one_deadline", calls_have_one_deadline, 300},
    {"rings_come_back_when_the_circuit_closes", rings_come_back_when_the_circuit_closes, 300},
    {"what_was_posted_is_told", what_was_posted_is_told, 300},
    {"what_was_refused_is_told_late", what_was_refused_is_told_late, 300},
    {"rings_that_rest_can_be_stopped", rings_that_rest_can_be_stopped, 300},
    {"rings_wait_for_who_tries", rings_wait_for_who_tries, 300},
    {"rings_come_back_after_a_loss_in_a_rest", rings_come_back_after_a_loss_in_a_rest, 300},
    {"a_slow_launch_after_a_loss_is_waited_for", a_slow_launch_after_a_loss_is_waited_for, 300},
};
ACRE_TEST_MAIN(tests)
