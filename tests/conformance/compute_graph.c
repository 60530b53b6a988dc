/* compute_graph.c - graphs: recorded, replayed, updated, refused. Behaviour only: whether an
 * executable is shared cannot be seen, that arguments are those of each recording can. */
#include "conformance/compute_suite.h"

#include <stdio.h>
#include <stdlib.h>

enum { N = 2000, BYTES = N * 4 };
static uint32_t data[N], back[N];

static void check_all(struct kit *kit, struct acre_buffer buffer, uint32_t expected) {
    kit_get(kit, back, buffer, BYTES);
    for (uint32_t i = 0; i < N; i++) {
        if (back[i] != expected) {
            acre_test_context("item %u", i);
            CHECK_U64(back[i], expected);
            return;
        }
    }
}

/* p = p * factor + more, `count` times, recorded. */
static struct acre_graph *record_affine(struct kit *kit, struct acre_buffer buffer, uint32_t count,
                                        uint32_t factor, uint32_t more) {
    struct acre_graph *graph = NULL;
    (void)kit_kernel(kit, "affine");
    OK(acre_graph_begin(kit->stream, ERR));
    for (uint32_t i = 0; i < count; i++) {
        RUN(kit, "affine", acre_grid_for(N), ACRE_BUFFER(buffer), ACRE_U32(factor),
            ACRE_U32(more + i), ACRE_U32(N));
    }
    OK(acre_graph_end(kit->stream, &graph, ERR));
    REQUIRE(graph != NULL);
    return graph;
}

static uint32_t affine_of(uint32_t value, uint32_t count, uint32_t factor, uint32_t more) {
    for (uint32_t i = 0; i < count; i++) {
        value = value * factor + more + i;
    }
    return value;
}

static void graphs_replay_what_was_recorded(void) {
    struct kit kit;
    kit_open(&kit);
    struct acre_buffer buffer = kit_buffer(&kit, ACRE_MEMORY_DEVICE, BYTES);
    OK(acre_fill(kit.stream, buffer, 0, BYTES, 1, 4, ERR));
    struct acre_graph *graph = record_affine(&kit, buffer, 20, 3, 5);
    check_all(&kit, buffer, 1); /* recording did nothing */
    uint32_t expected = 1;
    for (int i = 0; i < 100; i++) {
        OK(acre_graph_launch(graph, kit.stream, ERR));
        expected = affine_of(expected, 20, 3, 5);
    }
    check_all(&kit, buffer, expected);
    struct acre_stream *other = NULL; /* of the same context: any will do */
    OK(acre_stream_create(kit.context, &other, ERR));
    OK(acre_graph_launch(graph, other, ERR));
    OK(acre_stream_sync(other, ACRE_FOREVER, ERR));
    check_all(&kit, buffer, affine_of(expected, 20, 3, 5));
    acre_stream_destroy(other);
    acre_graph_destroy(graph);
    acre_graph_destroy(NULL);
    kit_free(&kit, buffer);
    kit_close(&kit);
}

static void graphs_take_other_arguments(void) {
    struct kit kit;
    kit_open(&kit);
    struct acre_buffer a = kit_buffer(&kit, ACRE_MEMORY_DEVICE, BYTES);
    struct acre_buffer b = kit_buffer(&kit, ACRE_MEMORY_DEVICE, BYTES);
    OK(acre_fill(kit.stream, a, 0, BYTES, 1, 4, ERR));
    OK(acre_fill(kit.stream, b, 0, BYTES, 100, 4, ERR));
    struct acre_graph *graph = record_affine(&kit, a, 3, 2, 0);
    OK(acre_graph_launch(graph, kit.stream, ERR)); /* under way when it is updated */
    OK(acre_graph_update(graph, 1, acre_grid_for(N),
                         ARGS(ACRE_BUFFER(a), ACRE_U32(7), ACRE_U32(9), ACRE_U32(N)), ERR));
    uint32_t expected = affine_of(1, 3, 2, 0);
    check_all(&kit, a, expected);
    OK(acre_graph_launch(graph, kit.stream, ERR));
    expected = ((expected * 2) * 7 + 9) * 2 + 2;
    check_all(&kit, a, expected);
    for (uint32_t node = 0; node < 3; node++) { /* another buffer, and half of it */
        OK(acre_graph_update(graph, node, acre_grid_for(N / 2),
                             ARGS(ACRE_BUFFER(b), ACRE_U32(1), ACRE_U32(1), ACRE_U32(N / 2)), ERR));
    }
    OK(acre_graph_launch(graph, kit.stream, ERR));
    check_all(&kit, a, expected);
    kit_get(&kit, back, b, BYTES);
    CHECK_U64(back[0], 103);
    CHECK_U64(back[N / 2 - 1], 103);
    CHECK_U64(back[N / 2], 100);
    acre_graph_destroy(graph);
    kit_free(&kit, a);
    kit_free(&kit, b);
    kit_close(&kit);
}

static void graphs_hold_copies_and_fills(void) {
    struct kit kit;
    kit_open(&kit);
    kit_random(&kit, data, BYTES);
    struct acre_buffer from = kit_data(&kit, data, BYTES);
    struct acre_buffer to = kit_buffer(&kit, ACRE_MEMORY_DEVICE, BYTES);
    struct acre_buffer host = kit_buffer(&kit, ACRE_MEMORY_PINNED, BYTES);
    struct acre_graph *graph = NULL;
    (void)kit_kernel(&kit, "increment");
    OK(acre_graph_begin(kit.stream, ERR));
    OK(acre_fill(kit.stream, to, 0, BYTES, 0x01010101, 4, ERR));
    OK(acre_copy(kit.stream, to, 400, from, 800, 4000, ERR));
    RUN(&kit, "increment", acre_grid_for(N), ACRE_BUFFER(to), ACRE_U32(N));
    OK(acre_copy(kit.stream, host, 0, to, 0, BYTES, ERR));
    OK(acre_fill(kit.stream, to, 0, 8, 7, 8, ERR));
    OK(acre_graph_end(kit.stream, &graph, ERR));
    const uint32_t *seen = acre_buffer_host(kit.context, host);
    for (int round = 0; round < 5; round++) {
        kit_random(&kit, data, BYTES); /* another each time */
        OK(acre_copy_in(kit.stream, from, 0, data, BYTES, ERR));
        OK(acre_graph_launch(graph, kit.stream, ERR));
        OK(acre_stream_sync(kit.stream, ACRE_FOREVER, ERR));
        for (uint32_t i = 0; i < N; i++) {
            uint32_t was = i >= 100 && i < 1100 ? data[i + 100] : 0x01010101;
            acre_test_context("round %d, item %u", round, i);
            REQUIRE_EQ(seen[i], was + 1);
        }
    }
    uint64_t first = 0;
    kit_get(&kit, &first, to, 8);
    CHECK_U64(first, 7);
    acre_graph_destroy(graph);
    kit_free(&kit, from);
    kit_free(&kit, to);
    kit_free(&kit, host);
    kit_close(&kit);
}

/* A diamond: one stream forks into another and joins it again. */
static void graphs_of_two_streams(void) {
    struct kit kit;
    kit_open(&kit);
    struct acre_stream *side = NULL;
    OK(acre_stream_create(kit.context, &side, ERR));
    struct acre_buffer a = kit_buffer(&kit, ACRE_MEMORY_DEVICE, BYTES);
    struct acre_buffer b = kit_buffer(&kit, ACRE_MEMORY_DEVICE, BYTES);
    struct acre_graph *graph = NULL;
    struct acre_event fork;
    struct acre_event join;
    OK(acre_fill(kit.stream, a, 0, BYTES, 1, 4, ERR));
    (void)kit_kernel(&kit, "affine");
    OK(acre_stream_sync(kit.stream, ACRE_FOREVER, ERR));
    OK(acre_graph_begin(kit.stream, ERR));
    RUN(&kit, "increment", acre_grid_for(N), ACRE_BUFFER(a), ACRE_U32(N));
    OK(acre_event_record(kit.stream, &fork, ERR));
    OK(acre_stream_after(side, fork, ERR)); /* joins the recording */
    OK(acre_copy(side, b, 0, a, 0, BYTES, ERR));
    RUN_ON(side, &kit, "affine", acre_grid_for(N), ACRE_BUFFER(b), ACRE_U32(10), ACRE_U32(3),
           ACRE_U32(N));
    OK(acre_event_record(side, &join, ERR));
    OK(acre_stream_after(kit.stream, join, ERR));
    RUN(&kit, "scramble", acre_grid_for(N), ACRE_BUFFER(b), ACRE_BUFFER(a), ACRE_U32(77),
        ACRE_U32(N));
    OK(acre_graph_end(kit.stream, &graph, ERR));
    uint32_t expected[N];
    for (uint32_t i = 0; i < N; i++) {
        expected[i] = 1;
    }
    for (int round = 0; round < 10; round++) {
        OK(acre_graph_launch(graph, kit.stream, ERR));
        for (uint32_t i = 0; i < N; i++) {
            expected[i] = ((expected[i] + 1) * 10 + 3) * 2654435761u ^ (77 + i);
        }
    }
    kit_get(&kit, back, a, BYTES);
    CHECK_SAME(back, expected, BYTES);
    OK(acre_fill(side, b, 0, BYTES, 4, 4, ERR)); /* both streams work again */
    OK(acre_stream_sync(side, ACRE_FOREVER, ERR));
    check_all(&kit, b, 4);
    acre_graph_destroy(graph);
    acre_stream_destroy(side);
    kit_free(&kit, a);
    kit_free(&kit, b);
    kit_close(&kit);
}

/* The same shape again and again: each has its own arguments, also when they take turns. */
static void graphs_of_one_shape_keep_apart(void) {
    struct kit kit;
    kit_open(&kit);
    enum { GRAPHS = 20 };
    struct acre_buffer buffers[GRAPHS];
    struct acre_graph *graphs[GRAPHS];
    uint32_t expected[GRAPHS];
    for (uint32_t i = 0; i < GRAPHS; i++) {
        buffers[i] = kit_buffer(&kit, ACRE_MEMORY_DEVICE, BYTES);
        OK(acre_fill(kit.stream, buffers[i], 0, BYTES, i, 4, ERR));
        graphs[i] = record_affine(&kit, buffers[i], 4, i + 1, i);
        expected[i] = i;
    }
    for (int round = 0; round < 200; round++) {
        uint32_t i = (uint32_t)acre_rand_below(&kit.rand, GRAPHS);
        OK(acre_graph_launch(graphs[i], kit.stream, ERR));
        expected[i] = affine_of(expected[i], 4, i + 1, i);
    }
    acre_graph_destroy(graphs[3]);
    graphs[3] = record_affine(&kit, buffers[3], 4, 5, 6);
    OK(acre_graph_launch(graphs[3], kit.stream, ERR));
    expected[3] = affine_of(expected[3], 4, 5, 6);
    for (uint32_t i = 0; i < GRAPHS; i++) {
        check_all(&kit, buffers[i], expected[i]);
        acre_graph_destroy(graphs[i]);
        kit_free(&kit, buffers[i]);
    }
    kit_close(&kit);
}

static void graphs_recorded_wrongly_are_refused(void) {
    struct kit kit;
    kit_open(&kit);
    struct acre_graph *graph = NULL;
    uint32_t word = 9;
    struct acre_buffer buffer = kit_data(&kit, &word, 4);
    struct acre_kernel *kernel = kit_kernel(&kit, "increment");
    FAILS(acre_graph_end(kit.stream, &graph, ERR), ACRE_ECONFLICT, "record");
    OK(acre_graph_begin(kit.stream, ERR));
    FAILS(acre_graph_begin(kit.stream, ERR), ACRE_ECONFLICT, "record");
    FAILS(acre_stream_sync(kit.stream, 0, ERR), ACRE_ECONFLICT, "record");
    CHECK(acre_copy_in(kit.stream, buffer, 0, &word, 4, ERR) < 0); /* only between buffers */
    CHECK(acre_copy_out(kit.stream, &word, buffer, 0, 4, ERR) < 0);
    FAILS(acre_launch(kit.stream, kernel, kit_grid(1, 1), ARGS(ACRE_BUFFER(buffer)), ERR),
          ACRE_EINVALID, "increment");
    FAILS(acre_launch(kit.stream, kernel, kit_grid(0, 1), ARGS(ACRE_BUFFER(buffer), ACRE_U32(1)),
                      ERR),
          ACRE_EINVALID, "grid");
    RUN(&kit, "increment", kit_grid(1, 1), ACRE_BUFFER(buffer), ACRE_U32(1));
    OK(acre_graph_end(kit.stream, &graph, ERR)); /* what was refused is not in it */
    OK(acre_graph_launch(graph, kit.stream, ERR));
    kit_get(&kit, &word, buffer, 4);
    CHECK_U64(word, 10);
    acre_graph_destroy(graph);
    kit_free(&kit, buffer);
    kit_close(&kit);
}

static void graphs_used_wrongly_are_refused(void) {
    struct kit kit;
    kit_open(&kit);
    struct acre_context *context = kit_context(&kit, (struct acre_context_options){0});
    struct acre_stream *foreign = NULL;
    OK(acre_stream_create(context, &foreign, ERR));
    struct acre_buffer buffer = kit_buffer(&kit, ACRE_MEMORY_DEVICE, BYTES);
    OK(acre_fill(kit.stream, buffer, 0, BYTES, 1, 4, ERR));
    struct acre_graph *graph = record_affine(&kit, buffer, 2, 3, 0);
    CHECK_EQ(acre_graph_launch(graph, foreign, ERR), ACRE_EINVALID);
    struct acre_arg good[] = {ACRE_BUFFER(buffer), ACRE_U32(1), ACRE_U32(1), ACRE_U32(N)};
    struct acre_arg bad[] = {ACRE_BUFFER(buffer), ACRE_F32(1), ACRE_U32(1), ACRE_U32(N)};
    FAILS(acre_graph_update(graph, 2, acre_grid_for(N), good, 4, ERR), ACRE_EINVALID, "2");
    FAILS(acre_graph_update(graph, 0, acre_grid_for(N), good, 3, ERR), ACRE_EINVALID, "affine", "3",
          "4");
    FAILS(acre_graph_update(graph, 0, acre_grid_for(N), bad, 4, ERR), ACRE_EINVALID, "factor");
    FAILS(acre_graph_update(graph, 0, acre_grid_for(0), good, 4, ERR), ACRE_EINVALID, "grid");
    OK(acre_graph_launch(graph, kit.stream, ERR)); /* as it was recorded */
    check_all(&kit, buffer, affine_of(1, 2, 3, 0));
    kit_free(&kit, buffer);
    CHECK_EQ(acre_graph_launch(graph, kit.stream, ERR), ACRE_ENOTFOUND); /* its buffer is freed */
    acre_graph_destroy(graph);
    acre_context_close(context);
    kit_close(&kit);
}

static void graphs_dropped_and_empty(void) {
    struct kit kit;
    kit_open(&kit);
    struct acre_stream *stream = NULL;
    struct acre_graph *graph = NULL;
    OK(acre_stream_create(kit.context, &stream, ERR));
    OK(acre_graph_begin(stream, ERR));
    acre_stream_destroy(stream); /* while it records */
    OK(acre_graph_begin(kit.stream, ERR));
    OK(acre_graph_end(kit.stream, &graph, ERR));
    OK(acre_graph_launch(graph, kit.stream, ERR));
    OK(acre_stream_sync(kit.stream, ACRE_FOREVER, ERR));
    acre_graph_destroy(graph);
    kit_close(&kit);
}

static void graphs_take_no_events_of_earlier_ones(void) {
    struct kit kit;
    kit_open(&kit);
    struct acre_stream *side = NULL;
    struct acre_graph *graphs[3] = {NULL};
    struct acre_event events[3];
    struct acre_event join;
    OK(acre_stream_create(kit.context, &side, ERR));
    for (size_t i = 0; i < ACRE_COUNT(graphs); i++) {
        OK(acre_graph_begin(kit.stream, ERR));
        OK(acre_event_record(kit.stream, &events[i], ERR));
        for (size_t before = 0; before < i; before++) {
            acre_test_context("graph %zu, event of graph %zu", i, before);
            FAILS(acre_stream_after(side, events[before], ERR), ACRE_ECONFLICT, "another graph");
            FAILS(acre_stream_after(kit.stream, events[before], ERR), ACRE_ECONFLICT,
                  "another graph");
        }
        OK(acre_stream_after(side, events[i], ERR)); /* its own joins it */
        OK(acre_event_record(side, &join, ERR));
        OK(acre_stream_after(kit.stream, join, ERR));
        OK(acre_graph_end(kit.stream, &graphs[i], ERR));
    }
    acre_test_context("%s", "");
    for (size_t i = 0; i < ACRE_COUNT(graphs); i++) {
        OK(acre_graph_launch(graphs[i], kit.stream, ERR));
        OK(acre_stream_sync(kit.stream, 20000, ERR));
        acre_graph_destroy(graphs[i]);
    }
    acre_stream_destroy(side);
    kit_close(&kit);
}

static const struct acre_test tests[] = {
    TEST(graphs_replay_what_was_recorded),       TEST(graphs_take_other_arguments),
    TEST(graphs_hold_copies_and_fills),          TEST(graphs_of_two_streams),
    TEST(graphs_of_one_shape_keep_apart),        TEST(graphs_recorded_wrongly_are_refused),
    TEST(graphs_used_wrongly_are_refused),       TEST(graphs_dropped_and_empty),
    TEST(graphs_take_no_events_of_earlier_ones),
};
SUITE(compute_graph_suite, tests);
