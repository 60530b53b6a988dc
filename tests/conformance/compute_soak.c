/* compute_soak.c - N mixed operations from T threads; every content is checked, and at the end the
 * device has all of its memory back.
 *
 * Each thread has a stream and buffers whose words all have one known value; an operation changes
 * the buffer and the value alike. Programs, one ring and the context are shared by all. What each
 * thread does depends on the seed only; how threads interleave does not.
 *
 * One operation can be all there is. Two are there only then: each has a hazard on purpose, of as
 * many bytes every time, for compute-sanitizer's racecheck to report (scripts/gpu). */
#include "conformance/compute_suite.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    HELD = 8,
    WORDS_MAX = 1 << 15,
    RING_WORDS = 8,
    KINDS = 3,
    CALL_MS = 60000,
    LONG_MS = 20000,
    IDLE_MS = 5
};
enum { TELL_S = 10 };

struct worker {
    struct kit *kit;
    struct acre_ring *ring;
    struct acre_kernel *affine, *scan, *race;
    uint64_t operations, seed;
    pthread_t thread;
    struct acre_stream *stream;
    struct acre_rand rand;
    uint32_t *words; /* WORDS_MAX */
    struct holding {
        struct acre_buffer buffer;
        enum acre_memory kind;
        uint32_t count, value;
    } held[HELD];
    uint64_t done[16]; /* by operation */
};

static struct compute_soak_options asked;
static _Atomic uint64_t reached; /* operations of all workers */

static uint32_t below(struct worker *self, uint32_t bound) {
    return (uint32_t)acre_rand_below(&self->rand, bound);
}

static void verify(struct worker *self, struct holding *holding) {
    OK(acre_copy_out(self->stream, self->words, holding->buffer, 0, holding->count * 4, ERR));
    for (uint32_t i = 0; i < holding->count; i++) {
        if (self->words[i] != holding->value) {
            acre_test_context("word %u of %u, kind %d, seed %" PRIu64, i, holding->count,
                              (int)holding->kind, kit_choice.seed);
            REQUIRE_EQ(self->words[i], holding->value);
        }
    }
}

static void drop(struct worker *self, struct holding *holding) {
    verify(self, holding);
    OK(acre_buffer_free(self->stream, holding->buffer, ERR));
    holding->buffer.id = 0;
}

static void make(struct worker *self, struct holding *holding) {
    holding->count = 1 + (below(self, WORDS_MAX - 1) >> below(self, 14));
    holding->kind = below(self, 8) == 0 ? (enum acre_memory)below(self, KINDS) : ACRE_MEMORY_DEVICE;
    holding->value = (uint32_t)acre_rand_next(&self->rand);
    OK(acre_buffer_alloc(self->stream, holding->kind, holding->count * 4, &holding->buffer, ERR));
    OK(acre_fill(self->stream, holding->buffer, 0, holding->count * 4, holding->value, 4, ERR));
}

static void change(struct worker *self, struct holding *holding) {
    uint32_t factor = (uint32_t)acre_rand_next(&self->rand) | 1;
    OK(acre_launch(
        self->stream, self->affine, acre_grid_for(holding->count),
        ARGS(ACRE_BUFFER(holding->buffer), ACRE_U32(factor), ACRE_U32(7), ACRE_U32(holding->count)),
        ERR));
    holding->value = holding->value * factor + 7;
}

/* --- operations: each leaves contents and values in step ------------------------------------ */

static void renew(struct worker *self, struct holding *holding) {
    drop(self, holding);
    make(self, holding);
}

static void refill(struct worker *self, struct holding *holding) {
    holding->value = (uint32_t)acre_rand_next(&self->rand);
    OK(acre_fill(self->stream, holding->buffer, 0, holding->count * 4, holding->value, 4, ERR));
}

static void copy_in(struct worker *self, struct holding *holding) {
    holding->value = (uint32_t)acre_rand_next(&self->rand);
    for (uint32_t i = 0; i < holding->count; i++) {
        self->words[i] = holding->value;
    }
    OK(acre_copy_in(self->stream, holding->buffer, 0, self->words, holding->count * 4, ERR));
}

static void copy_across(struct worker *self, struct holding *holding) {
    struct holding *from = &self->held[below(self, HELD)];
    if (from != holding && from->count >= holding->count) {
        OK(acre_copy(self->stream, holding->buffer, 0, from->buffer, 0, holding->count * 4, ERR));
        holding->value = from->value;
    }
}

static void launch(struct worker *self, struct holding *holding) {
    if (holding->kind != ACRE_MEMORY_PINNED) { /* which kernels do not see */
        change(self, holding);
    }
}

/* Sums within groups of equal words, through local memory. */
static void add_up(struct worker *self, struct holding *holding) {
    enum { GROUP = 256 };
    uint32_t groups = holding->count / GROUP;
    if (groups == 0 || holding->kind == ACRE_MEMORY_PINNED) {
        return;
    }
    struct acre_grid grid = {.groups = {groups}, .group = {GROUP}};
    OK(acre_launch(self->stream, self->scan, grid,
                   ARGS(ACRE_BUFFER(holding->buffer), ACRE_BUFFER(holding->buffer)), ERR));
    uint32_t bytes = groups * GROUP * 4;
    OK(acre_copy_out(self->stream, self->words, holding->buffer, 0, bytes, ERR));
    for (uint32_t i = 0; i < groups * GROUP; i++) {
        REQUIRE_EQ(self->words[i], holding->value * (i % GROUP + 1));
    }
    OK(acre_fill(self->stream, holding->buffer, 0, bytes, holding->value, 4, ERR));
}

/* What comes of it is not looked at. */
static void race(struct worker *self, struct holding *holding) {
    enum { GROUP = 256 };
    struct acre_grid grid = {.groups = {1}, .group = {GROUP}};
    struct acre_buffer buffer;
    (void)holding;
    OK(acre_buffer_alloc(self->stream, ACRE_MEMORY_DEVICE, GROUP * 4UL, &buffer, ERR));
    OK(acre_fill(self->stream, buffer, 0, GROUP * 4UL, 0, 4, ERR));
    OK(acre_launch(self->stream, self->race, grid, ARGS(ACRE_BUFFER(buffer), ACRE_BUFFER(buffer)),
                   ERR));
    OK(acre_buffer_free(self->stream, buffer, ERR));
}

static void replay(struct worker *self, struct holding *holding) {
    if (holding->kind == ACRE_MEMORY_PINNED) {
        return;
    }
    struct acre_graph *graph = NULL;
    uint32_t value = holding->value;
    OK(acre_graph_begin(self->stream, ERR));
    OK(acre_fill(self->stream, holding->buffer, 0, holding->count * 4, value + 1, 4, ERR));
    holding->value = value + 1;
    change(self, holding);
    change(self, holding);
    OK(acre_graph_end(self->stream, &graph, ERR));
    OK(acre_graph_launch(graph, self->stream, ERR));
    OK(acre_graph_launch(graph, self->stream, ERR)); /* begins with a fill: the same again */
    acre_graph_destroy(graph);
}

static void wait_event(struct worker *self, struct holding *holding) {
    struct acre_event event;
    (void)holding;
    OK(acre_event_record(self->stream, &event, ERR));
    int r = acre_event_wait(event, 0, ERR);
    REQUIRE(r == 0 || r == ACRE_ETIMEOUT);
    if (acre_event_wait(event, LONG_MS, ERR) < 0) {
        pthread_setname_np(pthread_self(), "waits-long"); /* scripts/gpu looks at it */
    }
    OK(acre_event_wait(event, CALL_MS, ERR));
}

static void side_stream(struct worker *self, struct holding *holding) {
    struct acre_stream *side = NULL;
    struct acre_event event;
    OK(acre_stream_create(self->kit->context, &side, ERR));
    OK(acre_event_record(self->stream, &event, ERR));
    OK(acre_stream_after(side, event, ERR));
    OK(acre_fill(side, holding->buffer, 0, holding->count * 4, holding->value ^ 1, 4, ERR));
    holding->value ^= 1;
    OK(acre_event_record(side, &event, ERR));
    OK(acre_stream_after(self->stream, event, ERR));
    acre_stream_destroy(side);
}

static void race_in_ring(struct worker *self, struct holding *holding) {
    uint32_t words[2 * RING_WORDS] = {0};
    (void)holding;
    OK(acre_ring_call(self->ring, words, words + RING_WORDS, CALL_MS, ERR));
}

static void call_ring(struct worker *self, struct holding *holding) {
    uint32_t in[RING_WORDS];
    uint32_t out[RING_WORDS];
    (void)holding;
    for (uint32_t i = 0; i < RING_WORDS; i++) {
        in[i] = (uint32_t)acre_rand_next(&self->rand);
    }
    OK(acre_ring_call(self->ring, in, out, CALL_MS, ERR));
    for (uint32_t i = 0; i < RING_WORDS; i++) {
        REQUIRE_EQ(out[i], in[i] * 2 + 1);
    }
}

static void build(struct worker *self, struct holding *holding) {
    struct acre_program *program = NULL;
    struct acre_kernel *kernel = kit_kernel_in(self->kit->context, "scramble", &program);
    (void)holding;
    REQUIRE(kernel != NULL);
    acre_program_destroy(program);
}

static void refused(struct worker *self, struct holding *holding) {
    REQUIRE_EQ(acre_launch(self->stream, self->affine, acre_grid_for(0),
                           ARGS(ACRE_BUFFER(holding->buffer)), ERR),
               ACRE_EINVALID);
    REQUIRE_EQ(acre_fill(self->stream, holding->buffer, 4, holding->count * 4, 0, 4, ERR),
               ACRE_EINVALID);
}

static const struct {
    const char *name;
    uint32_t of_1000;
    void (*run)(struct worker *, struct holding *);
} operations[] = {
    {"renew", 200, renew},    {"verify", 100, verify},    {"fill", 100, refill},
    {"copy_in", 80, copy_in}, {"copy", 100, copy_across}, {"launch", 230, launch},
    {"local", 20, add_up},    {"graph", 20, replay},      {"event", 60, wait_event},
    {"side", 8, side_stream}, {"ring", 50, call_ring},    {"build", 1, build},
    {"refused", 31, refused}, {"race", 0, race},          {"ring-race", 0, race_in_ring},
};

static uint32_t weights[ACRE_COUNT(operations)];

/* Of all, or of the one that is asked for. False: there is none of that name. */
static bool weigh(void) {
    bool is_known = asked.only == NULL;
    for (size_t i = 0; i < ACRE_COUNT(operations); i++) {
        bool is_it = asked.only != NULL && strcmp(asked.only, operations[i].name) == 0;
        weights[i] = asked.only == NULL ? operations[i].of_1000 : is_it;
        is_known |= is_it;
    }
    return is_known;
}

static bool is_ring(size_t which) {
    return operations[which].run == call_ring || operations[which].run == race_in_ring;
}

/* Of all that are chosen: those of a ring, or the others. */
static uint32_t weight_of(bool is_of_ring) {
    uint32_t sum = 0;
    for (size_t i = 0; i < ACRE_COUNT(operations); i++) {
        sum += is_ring(i) == is_of_ring ? weights[i] : 0;
    }
    return sum;
}

static size_t pick(struct worker *self) {
    uint32_t dice = below(self, weight_of(true) + weight_of(false));
    size_t which = 0;
    while (dice >= weights[which]) {
        dice -= weights[which];
        which++;
    }
    return which;
}

static void *work(void *user) {
    struct worker *self = user;
    size_t held = weight_of(false) > 0 ? HELD : 0;
    acre_rand_seed(&self->rand, self->seed);
    self->words = calloc(WORDS_MAX, 4);
    REQUIRE(self->words != NULL);
    OK(acre_stream_create(self->kit->context, &self->stream, ERR));
    for (size_t i = 0; i < held; i++) {
        make(self, &self->held[i]);
    }
    for (uint64_t i = 0; i < self->operations; i++) {
        size_t which = pick(self);
        operations[which].run(self, &self->held[below(self, HELD)]);
        self->done[which]++;
        atomic_fetch_add_explicit(&reached, 1, memory_order_relaxed);
    }
    for (size_t i = 0; i < held; i++) {
        drop(self, &self->held[i]);
    }
    acre_stream_destroy(self->stream);
    free(self->words);
    return NULL;
}

static void print_json(const struct worker *workers, uint32_t threads, uint64_t all, double seconds,
                       const struct acre_memory_report *memory, const char *ring) {
    printf("{\"name\": \"compute_soak\", \"backend\": \"%s\", \"isolation\": \"%s\", "
           "\"threads\": %u, \"operations\": %" PRIu64 ", \"seconds\": %.2f, "
           "\"operations_per_s\": %.0f, \"errors\": 0, \"used_bytes\": %" PRIu64
           ", \"reserved_bytes\": %" PRIu64 ", \"peak_bytes\": %" PRIu64 ", \"seed\": %" PRIu64
           ", \"ring_path\": \"%s\"",
           kit_choice.backend, kit_is_isolated() ? "process" : "none", threads, all, seconds,
           (double)all / seconds, memory->used_bytes, memory->reserved_bytes, memory->peak_bytes,
           kit_choice.seed, ring);
    for (size_t i = 0; i < ACRE_COUNT(operations); i++) {
        uint64_t sum = 0;
        for (uint32_t j = 0; j < threads; j++) {
            sum += workers[j].done[i];
        }
        printf(", \"%s\": %" PRIu64, operations[i].name, sum);
    }
    printf("}\n");
}

static struct acre_ring *make_ring(struct acre_context *context) {
    struct acre_ring *ring = NULL;
    bool is_racing = asked.only != NULL && strcmp(asked.only, "ring-race") == 0;
    struct acre_source source = {.text = is_racing ? compute_handler_race : compute_handler_twice,
                                 .name = "handler.acl"};
    struct acre_ring_options options = {
        .in_words = RING_WORDS, .out_words = RING_WORDS, .hang_ms = CALL_MS, .idle_ms = IDLE_MS};
    OK(acre_ring_create(context, &source, &options, &ring, ERR));
    return ring;
}

static const char *path_of(struct acre_ring *ring) {
    struct acre_ring_report report = {0};
    if (ring == NULL) {
        return "none";
    }
    acre_ring_report(ring, &report);
    return report.path == ACRE_RING_RESIDENT ? "resident" : "worker";
}

/* Until the thread ends; how far all are is told meanwhile. */
static void join(pthread_t thread, double begun) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += TELL_S;
    while (pthread_timedjoin_np(thread, NULL, &until) == ETIMEDOUT) {
        printf("%" PRIu64 " of %" PRIu64 " operations after %.0f s\n", atomic_load(&reached),
               asked.operations, kit_seconds() - begun);
        fflush(stdout);
        until.tv_sec += TELL_S;
    }
}

static void soak(void) {
    struct kit kit;
    kit_open(&kit);
    uint32_t threads = asked.threads;
    uint64_t all = asked.operations;
    struct worker model = {.kit = &kit,
                           .affine = kit_kernel(&kit, "affine"),
                           .scan = kit_kernel(&kit, "scan"),
                           .race = kit_kernel(&kit, "race")};
    model.ring = weight_of(true) > 0 ? make_ring(kit.context) : NULL;
    const char *path = path_of(model.ring);
    struct worker *workers = calloc(threads, sizeof(*workers));
    REQUIRE(workers != NULL);
    double begun = kit_seconds();
    for (uint32_t i = 0; i < threads; i++) {
        workers[i] = model;
        workers[i].operations = all / threads + (i < all % threads);
        workers[i].seed = kit_choice.seed * 1000 + i;
        REQUIRE_EQ(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (uint32_t i = 0; i < threads; i++) {
        join(workers[i].thread, begun);
    }
    double seconds = kit_seconds() - begun;
    acre_ring_destroy(model.ring);
    OK(acre_stream_sync(kit.stream, ACRE_FOREVER, ERR));
    OK(acre_memory_trim(kit.context, 0, ERR));
    struct acre_memory_report memory;
    struct acre_context_report report;
    acre_memory_report(kit.context, &memory);
    acre_context_report(kit.context, &report);
    CHECK_U64(memory.used_bytes, 0);
    CHECK_U64(memory.reserved_bytes, 0); /* device memory back to the start */
    CHECK_U64(memory.blocks, 0);
    CHECK_EQ(report.rebuilt, 0);
    print_json(workers, threads, all, seconds, &memory, path);
    free(workers);
    kit_close(&kit);
}

int compute_soak(const struct compute_soak_options *options, char *program) {
    enum { DAY_S = 24 * 3600 };
    static const struct acre_test tests[] = {{"soak", soak, DAY_S}};
    char *argv[] = {program, NULL};
    asked = *options;
    if (!weigh()) {
        fprintf(stderr, "--only: '%s' is no operation; accepted:", asked.only);
        for (size_t i = 0; i < ACRE_COUNT(operations); i++) {
            fprintf(stderr, " %s", operations[i].name);
        }
        fprintf(stderr, "\n");
        return 2;
    }
    return acre_test_main(tests, 1, 1, argv);
}
