/* compute_calls.c - what one call costs: a launch, a graph, the ring's round trip and its rate, a
 * buffer from the pool. Each answer is looked at, so that nothing is timed that did not happen. */
#include "compute.h"

#include "core/rand.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* --- launches and graphs -------------------------------------------------------------------- */

struct steps {
    struct acre_buffer counter, out;
    const uint32_t *word; /* where the host sees `out` */
    uint32_t expected;
    uint32_t count; /* of one call */
    struct acre_graph *graph;
};

static int open_steps(struct compute_bench *bench, struct steps *steps, struct acre_error *err) {
    *steps = (struct steps){.count = 1};
    int r = acre_buffer_alloc(bench->stream, ACRE_MEMORY_DEVICE, 64, &steps->counter, err);
    r = r == 0 ? acre_buffer_alloc(bench->stream, ACRE_MEMORY_MAPPED, 64, &steps->out, err) : r;
    r = r == 0 ? acre_fill(bench->stream, steps->counter, 0, 64, 0, 4, err) : r;
    r = r == 0 ? acre_stream_sync(bench->stream, COMPUTE_PATIENCE_MS, err) : r;
    steps->word = r == 0 ? acre_buffer_host(bench->context, steps->out) : NULL;
    return r;
}

static void close_steps(struct compute_bench *bench, struct steps *steps) {
    acre_graph_destroy(steps->graph);
    if (steps->out.id != 0) {
        acre_buffer_free(bench->stream, steps->out, NULL);
    }
    if (steps->counter.id != 0) {
        acre_buffer_free(bench->stream, steps->counter, NULL);
    }
}

static int start_steps(struct compute_bench *bench, const struct steps *steps,
                       struct acre_error *err) {
    static const struct acre_grid grid = {.groups = {1, 1, 1}, .group = {32, 1, 1}};
    int r = 0;
    for (uint32_t i = 0; i < steps->count && r == 0; i++) {
        const struct acre_arg args[] = {ACRE_BUFFER(steps->counter), ACRE_BUFFER(steps->out),
                                        ACRE_U32(i + 1 == steps->count)};
        r = acre_launch(bench->stream, bench->tick, grid, args, 3, err);
    }
    return r;
}

static int see_steps(struct compute_bench *bench, struct steps *steps, struct acre_error *err) {
    int r = acre_stream_sync(bench->stream, COMPUTE_PATIENCE_MS, err);
    steps->expected += steps->count;
    uint32_t seen = __atomic_load_n(steps->word, __ATOMIC_ACQUIRE);
    if (r == 0 && seen != steps->expected) {
        r = acre_fail(err, ACRE_ECORRUPT, "counter: %u, not %u", seen, steps->expected);
    }
    return r;
}

static int launch_by_acre(struct compute_bench *bench, void *user, struct acre_error *err) {
    int r = start_steps(bench, user, err);
    return r == 0 ? see_steps(bench, user, err) : r;
}

static int launch_raw(struct compute_bench *bench, void *user, struct acre_error *err) {
    return bench->raw->launch(bench->raw_self, ((struct steps *)user)->count, err);
}

static int graph_by_acre(struct compute_bench *bench, void *user, struct acre_error *err) {
    struct steps *steps = user;
    int r = acre_graph_launch(steps->graph, bench->stream, err);
    return r == 0 ? see_steps(bench, steps, err) : r;
}

static int graph_raw(struct compute_bench *bench, void *user, struct acre_error *err) {
    (void)user;
    return bench->raw->graph(bench->raw_self, err);
}

void compute_launch(struct compute_bench *bench) {
    struct compute_figure figure = {.name = "launch",
                                    .what =
                                        "one small kernel, call to result seen by the host; raw: "
                                        "launch, and wait for the stream",
                                    .unit = "us",
                                    .unit_ns = 1000,
                                    .limit_kind = COMPUTE_RATIO_MOST,
                                    .limit = 1.15};
    struct acre_error err = {0};
    struct steps steps;
    if (open_steps(bench, &steps, &err) < 0) {
        compute_fail(bench, figure, &err);
    } else {
        struct compute_pair pair = {.acre = {.call = launch_by_acre},
                                    .raw = {.call = launch_raw},
                                    .user = &steps,
                                    .rounds = (uint32_t)compute_pick(bench, 20, 4),
                                    .calls = (uint32_t)compute_pick(bench, 500, 50),
                                    .warm = 20};
        compute_measure(bench, &pair, figure);
    }
    close_steps(bench, &steps);
}

static int record(struct compute_bench *bench, struct steps *steps, struct acre_error *err) {
    steps->count = COMPUTE_STEPS;
    int r = acre_graph_begin(bench->stream, err);
    if (r < 0) {
        return r;
    }
    r = start_steps(bench, steps, err);
    int ended = acre_graph_end(bench->stream, &steps->graph, r == 0 ? err : NULL);
    return r == 0 ? ended : r;
}

void compute_graph(struct compute_bench *bench) {
    struct compute_figure figure = {.name = "graph",
                                    .what = "20 kernels replayed as a graph",
                                    .unit = "us",
                                    .unit_ns = 1000,
                                    .limit_kind = COMPUTE_RATIO_MOST,
                                    .limit = 1.15};
    struct compute_figure without = {.name = "graph: 20 launches",
                                     .what = "the same without a graph",
                                     .unit = "us",
                                     .unit_ns = 1000};
    struct acre_error err = {0};
    struct steps steps;
    int r = open_steps(bench, &steps, &err);
    r = r == 0 ? record(bench, &steps, &err) : r;
    if (r < 0) {
        compute_fail(bench, figure, &err);
    } else {
        bool has_graph = bench->raw != NULL && bench->raw->graph != NULL;
        struct compute_pair pair = {.acre = {.call = graph_by_acre},
                                    .raw = {.call = has_graph ? graph_raw : launch_raw},
                                    .user = &steps,
                                    .rounds = (uint32_t)compute_pick(bench, 20, 3),
                                    .calls = (uint32_t)compute_pick(bench, 200, 20),
                                    .warm = 10};
        if (!has_graph) {
            snprintf(figure.note, sizeof(figure.note), "raw: 20 launches, there are no graphs");
        }
        compute_measure(bench, &pair, figure);
        pair.acre.call = launch_by_acre;
        pair.raw.call = launch_raw;
        compute_measure(bench, &pair, without);
    }
    close_steps(bench, &steps);
}

/* --- the ring ------------------------------------------------------------------------------- */

struct calls {
    struct acre_ring *ring;
    uint32_t number;
    uint32_t producers, count; /* of one sample of the rate */
};

static int start_ring(struct compute_bench *bench, void *user, struct acre_error *err) {
    (void)bench;
    return acre_ring_start(((struct calls *)user)->ring, err);
}

static void stop_ring(struct compute_bench *bench, void *user) {
    (void)bench;
    acre_ring_stop(((struct calls *)user)->ring, NULL);
}

static int check_answer(uint32_t in, uint32_t out, struct acre_error *err) {
    return out == in + 1 ? 0 : acre_fail(err, ACRE_ECORRUPT, "the ring: %u to %u", in, out);
}

static int call_by_acre(struct compute_bench *bench, void *user, struct acre_error *err) {
    struct calls *calls = user;
    uint32_t in = calls->number++;
    uint32_t out = 0;
    (void)bench;
    int r = acre_ring_call(calls->ring, &in, &out, COMPUTE_PATIENCE_MS, err);
    return r == 0 ? check_answer(in, out, err) : r;
}

static int start_mailbox(struct compute_bench *bench, void *user, struct acre_error *err) {
    (void)user;
    return bench->raw->ring_start(bench->raw_self, err);
}

static void stop_mailbox(struct compute_bench *bench, void *user) {
    (void)user;
    bench->raw->ring_stop(bench->raw_self);
}

static int call_mailbox(struct compute_bench *bench, void *user, struct acre_error *err) {
    (void)user;
    return bench->raw->ring_call(bench->raw_self, err);
}

/* Left stopped: started for each round. The path it goes is the note. */
static int open_ring(struct compute_bench *bench, struct calls *calls, char *note,
                     struct acre_error *err) {
    *calls = (struct calls){0};
    const struct acre_source source = {.text = compute_handler, .name = "handler"};
    const struct acre_ring_options options = {.in_words = 1, .out_words = 1};
    int r = acre_ring_create(bench->context, &source, &options, &calls->ring, err);
    if (r < 0) {
        return r;
    }
    struct acre_ring_report report;
    acre_ring_report(calls->ring, &report);
    snprintf(note, COMPUTE_NOTE_MAX, "%s%s%s",
             report.path == ACRE_RING_RESIDENT ? "resident" : "worker",
             report.reason[0] != '\0' ? ": " : "", report.reason);
    r = acre_ring_stop(calls->ring, err);
    if (r < 0) {
        acre_ring_destroy(calls->ring);
        calls->ring = NULL;
    }
    return r;
}

void compute_ring(struct compute_bench *bench) {
    struct compute_figure figure = {.name = "ring",
                                    .what =
                                        "round trip of a resident kernel; raw: a bare mailbox, one "
                                        "word polled by one thread",
                                    .unit = "us",
                                    .unit_ns = 1000,
                                    .limit_kind = COMPUTE_RATIO_MOST,
                                    .limit = 1.3};
    struct acre_error err = {0};
    struct calls calls;
    if (open_ring(bench, &calls, figure.note, &err) < 0) {
        compute_fail(bench, figure, &err);
        return;
    }
    struct compute_pair pair = {
        .acre = {.call = call_by_acre, .enter = start_ring, .leave = stop_ring},
        .user = &calls,
        .rounds = (uint32_t)compute_pick(bench, 10, 3),
        .calls = (uint32_t)compute_pick(bench, 5000, 100),
        .warm = 100};
    if (bench->raw != NULL && bench->raw->ring_start != NULL) {
        pair.raw = (struct compute_side){
            .call = call_mailbox, .enter = start_mailbox, .leave = stop_mailbox};
    }
    compute_measure(bench, &pair, figure);
    acre_ring_destroy(calls.ring);
}

/* --- the rate of the ring ------------------------------------------------------------------- */

enum { WINDOW = 128 }; /* under way of one producer; four of them leave the 1024 slots free */

struct producer {
    struct acre_ring *ring;
    uint32_t count;
    int result;
    struct acre_error err;
};

/* Posts and collects in order, as many under way as the window holds. Slots are given in order:
 * the next one may be that of an answer not collected yet, by this producer or by one that sleeps.
 * So who holds answers never waits for a slot but collects. */
static void *produce(void *user) {
    struct producer *producer = user;
    uint64_t tickets[WINDOW];
    uint32_t posted = 0;
    int r = 0;
    for (uint32_t collected = 0; collected < producer->count && r == 0;) {
        if (posted < producer->count && posted - collected < WINDOW) {
            int patience_ms = posted == collected ? COMPUTE_PATIENCE_MS : 0;
            r = acre_ring_post(producer->ring, &posted, patience_ms, &tickets[posted % WINDOW],
                               &producer->err);
            if (r == 0) {
                posted++;
                continue;
            }
            if (r != ACRE_ETIMEOUT || patience_ms > 0) {
                break;
            }
        }
        uint32_t out = 0;
        r = acre_ring_collect(producer->ring, tickets[collected % WINDOW], &out,
                              COMPUTE_PATIENCE_MS, &producer->err);
        r = r == 0 ? check_answer(collected, out, &producer->err) : r;
        collected++;
    }
    producer->result = r;
    return NULL;
}

static int pipeline_by_acre(struct compute_bench *bench, void *user, struct acre_error *err) {
    enum { PRODUCERS_MAX = 4 };
    const struct calls *calls = user;
    struct producer producers[PRODUCERS_MAX] = {0};
    pthread_t threads[PRODUCERS_MAX];
    uint32_t started = 1;
    int r = 0;
    (void)bench;
    ACRE_ASSERT(calls->producers <= PRODUCERS_MAX);
    for (uint32_t i = 0; i < calls->producers; i++) {
        producers[i] =
            (struct producer){.ring = calls->ring, .count = calls->count / calls->producers};
    }
    for (; started < calls->producers && r == 0; started++) {
        int code = pthread_create(&threads[started], NULL, produce, &producers[started]);
        if (code != 0) {
            r = acre_fail_errno(err, code, "cannot start a producer thread");
            break;
        }
    }
    produce(&producers[0]);
    for (uint32_t i = 0; i < started; i++) {
        if (i > 0) {
            pthread_join(threads[i], NULL);
        }
        if (r == 0 && producers[i].result < 0) {
            r = producers[i].result;
            *err = producers[i].err;
        }
    }
    return r;
}

static int launches_raw(struct compute_bench *bench, void *user, struct acre_error *err) {
    return bench->raw->launch(bench->raw_self, ((struct calls *)user)->count, err);
}

void compute_ring_rate(struct compute_bench *bench) {
    static const uint32_t producers[] = {1, 4};
    for (size_t i = 0; i < ACRE_COUNT(producers); i++) {
        struct compute_figure figure = {.what = "small calls, many under way; raw: as launches",
                                        .unit = "calls/s",
                                        .limit_kind = COMPUTE_LEAST,
                                        .limit = 1e6};
        snprintf(figure.name, sizeof(figure.name), "ring rate, %u producer%s", producers[i],
                 producers[i] > 1 ? "s" : "");
        struct acre_error err = {0};
        struct calls calls;
        if (open_ring(bench, &calls, figure.note, &err) < 0) {
            compute_fail(bench, figure, &err);
            continue;
        }
        calls.producers = producers[i];
        calls.count = (uint32_t)compute_pick(bench, 200000, 2000);
        figure.amount = calls.count * 1e9;
        struct compute_pair pair = {
            .acre = {.call = pipeline_by_acre, .enter = start_ring, .leave = stop_ring},
            .raw = {.call = launches_raw},
            .user = &calls,
            .rounds = (uint32_t)compute_pick(bench, 7, 2),
            .calls = 1};
        compute_measure(bench, &pair, figure);
        acre_ring_destroy(calls.ring);
    }
}

/* --- the pool ------------------------------------------------------------------------------- */

enum { LIVE = 64, SMALLEST_SHIFT = 8, LARGEST_SHIFT = 26 };

/* Mixed: one of 64 live buffers is replaced by another of a random size, 256 B to 64 MiB. */
struct memory_pool {
    struct acre_rand rand[2]; /* acre's, raw's: the same numbers */
    struct acre_buffer live[LIVE];
    uintptr_t raw_live[LIVE];
    uint64_t bytes; /* 0: mixed */
    bool is_pooled; /* raw: the driver's own pool */
};

static int allocate_by_acre(struct compute_bench *bench, void *user, struct acre_error *err) {
    struct memory_pool *pool = user;
    struct acre_buffer buffer;
    int r = acre_buffer_alloc(bench->stream, ACRE_MEMORY_DEVICE, pool->bytes, &buffer, err);
    return r == 0 ? acre_buffer_free(bench->stream, buffer, err) : r;
}

static int allocate_raw(struct compute_bench *bench, void *user, struct acre_error *err) {
    const struct memory_pool *pool = user;
    uintptr_t at = 0;
    int r = bench->raw->alloc(bench->raw_self, pool->is_pooled, pool->bytes, &at, err);
    return r == 0 ? bench->raw->free(bench->raw_self, pool->is_pooled, at, err) : r;
}

static uint64_t random_bytes(struct acre_rand *rand, uint32_t *ret_slot) {
    uint64_t bits = acre_rand_next(rand);
    uint32_t shift = SMALLEST_SHIFT + (uint32_t)(bits >> 8) % (LARGEST_SHIFT - SMALLEST_SHIFT);
    *ret_slot = bits % LIVE;
    return (UINT64_C(1) << shift) + ((bits >> 16) & ((UINT64_C(1) << shift) - 1));
}

static int replace_by_acre(struct compute_bench *bench, void *user, struct acre_error *err) {
    struct memory_pool *pool = user;
    uint32_t slot;
    uint64_t bytes = random_bytes(&pool->rand[0], &slot);
    struct acre_buffer *at = &pool->live[slot];
    int r = at->id != 0 ? acre_buffer_free(bench->stream, *at, err) : 0;
    at->id = 0;
    return r == 0 ? acre_buffer_alloc(bench->stream, ACRE_MEMORY_DEVICE, bytes, at, err) : r;
}

static int replace_raw(struct compute_bench *bench, void *user, struct acre_error *err) {
    struct memory_pool *pool = user;
    uint32_t slot;
    uint64_t bytes = random_bytes(&pool->rand[1], &slot);
    uintptr_t *at = &pool->raw_live[slot];
    int r = *at != 0 ? bench->raw->free(bench->raw_self, true, *at, err) : 0;
    *at = 0;
    return r == 0 ? bench->raw->alloc(bench->raw_self, true, bytes, at, err) : r;
}

static void empty_pool(struct compute_bench *bench, struct memory_pool *pool) {
    for (size_t i = 0; i < LIVE; i++) {
        if (pool->live[i].id != 0) {
            acre_buffer_free(bench->stream, pool->live[i], NULL);
        }
        if (pool->raw_live[i] != 0) {
            bench->raw->free(bench->raw_self, true, pool->raw_live[i], NULL);
        }
    }
}

void compute_pool(struct compute_bench *bench) {
    struct memory_pool pool = {.bytes = COMPUTE_MIB, .is_pooled = true};
    acre_rand_seed(&pool.rand[0], 7);
    pool.rand[1] = pool.rand[0];
    struct compute_figure figure = {.name = "pool, 1 MiB",
                                    .what =
                                        "allocate and free; raw: the driver's pool, if it has one",
                                    .unit = "us",
                                    .unit_ns = 1000,
                                    .limit_kind = COMPUTE_MOST,
                                    .limit = 1.0};
    struct compute_pair pair = {.acre = {.call = allocate_by_acre},
                                .raw = {.call = allocate_raw},
                                .user = &pool,
                                .rounds = (uint32_t)compute_pick(bench, 20, 4),
                                .calls = (uint32_t)compute_pick(bench, 2000, 200),
                                .warm = 100};
    compute_measure(bench, &pair, figure);
    snprintf(figure.name, sizeof(figure.name), "pool, mixed");
    figure.what = "256 B to 64 MiB, one of 64 live replaced; raw: the driver's pool, if any";
    pair.acre.call = replace_by_acre;
    pair.raw.call = replace_raw;
    pair.warm = 1000;
    compute_measure(bench, &pair, figure);
    empty_pool(bench, &pool);
    snprintf(figure.name, sizeof(figure.name), "pool, 1 MiB, no pool");
    figure.what = "allocate and free; raw: without a pool (CUDA: cuMemAlloc, cuMemFree)";
    pool.is_pooled = false;
    pair = (struct compute_pair){.acre = {.call = allocate_by_acre},
                                 .raw = {.call = allocate_raw},
                                 .user = &pool,
                                 .rounds = (uint32_t)compute_pick(bench, 10, 2),
                                 .calls = (uint32_t)compute_pick(bench, 50, 20),
                                 .warm = 5};
    compute_measure(bench, &pair, figure);
    acre_stream_sync(bench->stream, COMPUTE_PATIENCE_MS, NULL);
    acre_memory_trim(bench->context, 0, NULL);
}
