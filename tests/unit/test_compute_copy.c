/* Copies and fills (GPU-3): host, buffers, two contexts; in pieces, bounded, in order. */
#include "support/seat_double.h"
#include "support/test.h"

#include "compute/graph.h"
#include "compute/memory/buffer.h"
#include "core/rand.h"

#include <stdlib.h>

enum { MIB = 1 << 20 };

struct rig {
    struct acre_compute *compute;
    struct acre_context *context, *other;
    struct acre_stream *stream, *far;
};

static struct rig open_rig(const struct double_options *options) {
    struct rig rig = {.compute = double_open(options, 2)};
    rig.context = double_context(rig.compute, 0);
    rig.other = double_context(rig.compute, 1);
    REQUIRE_EQ(acre_stream_create(rig.context, &rig.stream, NULL), 0);
    REQUIRE_EQ(acre_stream_create(rig.other, &rig.far, NULL), 0);
    return rig;
}

static struct acre_buffer make(struct acre_stream *stream, enum acre_memory kind, uint64_t bytes) {
    struct acre_buffer buffer = {0};
    REQUIRE_EQ(acre_buffer_alloc(stream, kind, bytes, &buffer, NULL), 0);
    return buffer;
}

static uint8_t *noise(uint64_t bytes, uint64_t seed) {
    struct acre_rand rand;
    acre_rand_seed(&rand, seed);
    uint8_t *data = malloc(bytes + 8);
    REQUIRE(data != NULL);
    for (uint64_t i = 0; i < bytes; i += 8) {
        uint64_t word = acre_rand_next(&rand);
        memcpy(data + i, &word, 8);
    }
    return data;
}

static const uint64_t sizes[] = {1,   7,       4096,         65536,   65537,       MIB - 1,
                                 MIB, MIB + 1, 5 * MIB + 13, 9 * MIB, 40 * MIB + 3};

static void plain_memory_goes_there_and_back(void) {
    struct rig rig = open_rig(&(struct double_options){0});
    double_start(rig.context);
    for (size_t i = 0; i < ACRE_COUNT(sizes); i++) {
        acre_test_context("%llu bytes", (unsigned long long)sizes[i]);
        uint8_t *data = noise(sizes[i], i);
        uint8_t *back = calloc(1, sizes[i]);
        uint8_t *given = malloc(sizes[i]);
        REQUIRE(back != NULL && given != NULL);
        memcpy(given, data, sizes[i]);
        struct acre_buffer buffer = make(rig.stream, ACRE_MEMORY_DEVICE, sizes[i] + 5);
        CHECK_EQ(acre_copy_in(rig.stream, buffer, 5, given, sizes[i], NULL), 0);
        memset(given, 0, sizes[i]); /* it may be used again at once */
        CHECK_EQ(acre_copy_out(rig.stream, back, buffer, 5, sizes[i], NULL), 0);
        CHECK(memcmp(data, back, sizes[i]) == 0);
        CHECK_EQ(acre_buffer_free(rig.stream, buffer, NULL), 0);
        free(data);
        free(back);
        free(given);
    }
    double_close(rig.compute);
}

static void pinned_memory_is_used_where_it_is(void) {
    struct rig rig = open_rig(&(struct double_options){0});
    struct acre_buffer pinned = make(rig.stream, ACRE_MEMORY_PINNED, 3 * MIB);
    struct acre_buffer mapped = make(rig.stream, ACRE_MEMORY_MAPPED, 3 * MIB);
    struct acre_buffer device = make(rig.stream, ACRE_MEMORY_DEVICE, 3 * MIB);
    uint8_t *from = acre_buffer_host(rig.context, pinned);
    uint8_t *to = acre_buffer_host(rig.context, mapped);
    memset(from, 1, 3 * MIB);
    memset(to, 0, 3 * MIB);
    uint32_t regions = double_counts(rig.context).regions;
    CHECK_EQ(acre_copy_in(rig.stream, device, 0, from + 100, 2 * MIB, NULL), 0);
    CHECK_EQ(acre_copy_out(rig.stream, to + 7, device, 10, MIB, NULL), 0); /* does not wait */
    from[110] = 2; /* before the copy is done: seen by it */
    CHECK_EQ(to[7], 0);
    CHECK_U64(double_counts(rig.context).copies, 2);
    CHECK_U64(double_counts(rig.context).regions, regions); /* no pieces */
    double_run(rig.context, NULL, UINT32_MAX);
    CHECK_EQ(to[6], 0);
    CHECK_EQ(to[7], 2);
    CHECK_EQ(to[8], 1);
    CHECK_EQ(to[7 + MIB - 1], 1);
    CHECK_EQ(to[7 + MIB], 0);
    double_close(rig.compute);
}

/* Pinned memory of a copy that is under way is not given to another. */
static void pinned_memory_waits_for_its_copy(void) {
    struct rig rig = open_rig(&(struct double_options){0});
    struct acre_buffer device = make(rig.stream, ACRE_MEMORY_DEVICE, 64);
    struct acre_buffer pinned = make(rig.stream, ACRE_MEMORY_PINNED, 64);
    const void *host = acre_buffer_host(rig.context, pinned);
    CHECK_EQ(acre_copy_in(rig.stream, device, 0, host, 64, NULL), 0);
    CHECK_EQ(acre_buffer_free(rig.stream, pinned, NULL), 0);
    struct acre_buffer next = make(rig.stream, ACRE_MEMORY_PINNED, 64);
    CHECK(acre_buffer_host(rig.context, next) != host);
    double_close(rig.compute);
}

static void staging_is_bounded_while_the_device_is_busy(void) {
    struct rig rig = open_rig(&(struct double_options){0});
    uint8_t *data = noise(16 * MIB, 1);
    struct acre_buffer device = make(rig.stream, ACRE_MEMORY_DEVICE, 16 * MIB);
    CHECK_EQ(acre_copy_in(rig.stream, device, 0, data, 16 * MIB, NULL), 0); /* nothing moves yet */
    double_start(rig.context);
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(acre_copy_in(rig.stream, device, 0, data, 16 * MIB, NULL), 0);
    }
    CHECK(double_counts(rig.context).host_bytes <= 40 * MIB);
    for (int i = 0; i < 20000; i++) {
        CHECK_EQ(acre_copy_in(rig.stream, device, 0, data, 100, NULL), 0);
    }
    CHECK(double_counts(rig.context).host_bytes <= 40 * MIB);
    CHECK_EQ(acre_stream_sync(rig.stream, ACRE_FOREVER, NULL), 0);
    CHECK_EQ(acre_memory_trim(rig.context, 0, NULL), 0);
    CHECK_U64(double_counts(rig.context).host_bytes, WORDS_MAX * sizeof(uint64_t));
    free(data);
    double_close(rig.compute);
}

static void bad_copies_are_refused(void) {
    struct rig rig = open_rig(&(struct double_options){0});
    struct acre_buffer a = make(rig.stream, ACRE_MEMORY_DEVICE, 100);
    struct acre_buffer b = make(rig.stream, ACRE_MEMORY_DEVICE, 100);
    struct acre_buffer far = make(rig.far, ACRE_MEMORY_DEVICE, 100);
    struct acre_buffer gone = make(rig.stream, ACRE_MEMORY_DEVICE, 100);
    CHECK_EQ(acre_buffer_free(rig.stream, gone, NULL), 0);
    const struct {
        struct acre_buffer to;
        uint64_t to_offset;
        struct acre_buffer from;
        uint64_t from_offset, bytes;
        int expect;
        const char *text;
    } rows[] = {
        {a, 0, b, 0, 100, 0, ""},
        {a, 100, b, 100, 0, 0, ""},
        {a, 0, a, 50, 50, 0, ""},
        {a, 0, a, 49, 50, ACRE_EINVALID, "overlap"},
        {a, 49, a, 0, 50, ACRE_EINVALID, "overlap"},
        {a, 1, b, 0, 100, ACRE_EINVALID, "copy: to: 100 bytes at offset 1 reach past the end"},
        {a, 0, b, 1, 100, ACRE_EINVALID, "copy: from: 100 bytes at offset 1 reach past the end"},
        {gone, 0, b, 0, 1, ACRE_ENOTFOUND, "copy: to: the buffer was freed"},
        {a, 0, gone, 0, 1, ACRE_ENOTFOUND, "copy: from: the buffer was freed"},
        {a, 0, {0}, 0, 1, ACRE_ENOTFOUND, "copy: from: no buffer"},
        {far, 0, far, 50, 10, ACRE_EINVALID, "copy: to: the buffer belongs to another context"},
        {a, 0, far, 90, 11, ACRE_EINVALID, "copy: from: 11 bytes at offset 90 reach past the end"},
        {far, 0, gone, 0, 1, ACRE_EINVALID, "copy: to: the buffer belongs to another context"},
    };
    struct acre_error err;
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        acre_test_context("row %zu", i);
        err.text[0] = '\0';
        CHECK_EQ(acre_copy(rig.stream, rows[i].to, rows[i].to_offset, rows[i].from,
                           rows[i].from_offset, rows[i].bytes, &err),
                 rows[i].expect);
        CHECK_HAS(err.text, rows[i].text);
    }
    uint8_t host[200] = {0};
    CHECK_EQ(acre_copy_in(rig.stream, a, 0, host, 101, &err), ACRE_EINVALID);
    CHECK_HAS(err.text, "copy_in: to: 101 bytes");
    CHECK_EQ(acre_copy_in(rig.stream, a, 0, NULL, 1, &err), ACRE_EINVALID);
    CHECK_HAS(err.text, "copy_in: from: NULL");
    CHECK_EQ(acre_copy_in(rig.stream, far, 0, host, 1, &err), ACRE_EINVALID);
    CHECK_EQ(acre_copy_out(rig.stream, NULL, a, 0, 1, &err), ACRE_EINVALID);
    CHECK_EQ(acre_copy_out(rig.stream, host, gone, 0, 1, &err), ACRE_ENOTFOUND);
    CHECK_EQ(acre_copy_out(rig.stream, host, a, 99, 2, &err), ACRE_EINVALID);
    CHECK_EQ(acre_copy_in(rig.stream, a, 100, NULL, 0, &err), 0);
    CHECK_EQ(acre_copy_out(rig.stream, NULL, a, 0, 0, &err), 0);
    double_close(rig.compute);
}

static void fills_repeat_their_pattern(void) {
    struct rig rig = open_rig(&(struct double_options){0});
    double_start(rig.context);
    struct acre_buffer buffer = make(rig.stream, ACRE_MEMORY_DEVICE, 64);
    static const struct {
        uint64_t offset, bytes, pattern;
        uint32_t pattern_bytes;
        int expect;
    } rows[] = {
        {0, 64, 0x11, 1, 0},
        {2, 4, 0x2233, 2, 0},
        {8, 8, 0x44556677, 4, 0},
        {16, 16, UINT64_C(0x8899aabbccddeeff), 8, 0},
        {64, 0, 0, 8, 0},
        {0, 64, 0, 0, ACRE_EINVALID},
        {0, 64, 0, 3, ACRE_EINVALID},
        {0, 64, 0, 16, ACRE_EINVALID},
        {0, 63, 0, 2, ACRE_EINVALID},
        {1, 62, 0, 2, ACRE_EINVALID},
        {0, 65, 0, 1, ACRE_EINVALID},
        {UINT64_MAX - 7, 16, 0, 8, ACRE_EINVALID},
    };
    uint8_t expect[64] = {0};
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        acre_test_context("row %zu", i);
        CHECK_EQ(acre_fill(rig.stream, buffer, rows[i].offset, rows[i].bytes, rows[i].pattern,
                           rows[i].pattern_bytes, NULL),
                 rows[i].expect);
        for (uint64_t j = 0; rows[i].expect == 0 && j < rows[i].bytes; j++) {
            expect[rows[i].offset + j] =
                (uint8_t)(rows[i].pattern >> 8 * (j % rows[i].pattern_bytes));
        }
    }
    uint8_t seen[64];
    CHECK_EQ(acre_copy_out(rig.stream, seen, buffer, 0, 64, NULL), 0);
    CHECK(memcmp(seen, expect, 64) == 0);
    double_close(rig.compute);
}

static void contexts_copy_through_the_host(void) { /* GPU-5 */
    for (int is_importing = 0; is_importing < 2; is_importing++) {
        struct rig rig = open_rig(&(struct double_options){.is_importing = is_importing != 0});
        double_start(rig.context);
        double_start(rig.other);
        for (size_t i = 0; i < ACRE_COUNT(sizes); i++) {
            acre_test_context("%llu bytes, importing %d", (unsigned long long)sizes[i],
                              is_importing);
            uint8_t *data = noise(sizes[i], i);
            uint8_t *back = calloc(1, sizes[i]);
            REQUIRE(back != NULL);
            struct acre_buffer here = make(rig.stream, ACRE_MEMORY_DEVICE, sizes[i] + 3);
            struct acre_buffer there = make(rig.far, ACRE_MEMORY_DEVICE, sizes[i] + 9);
            struct acre_buffer again = make(rig.stream, ACRE_MEMORY_DEVICE, sizes[i]);
            CHECK_EQ(acre_copy_in(rig.stream, here, 3, data, sizes[i], NULL), 0);
            CHECK_EQ(acre_copy(rig.stream, there, 9, here, 3, sizes[i], NULL), 0);
            CHECK_EQ(acre_copy_out(rig.far, back, there, 9, sizes[i], NULL), 0);
            CHECK(memcmp(data, back, sizes[i]) == 0);
            CHECK_EQ(acre_copy(rig.stream, again, 0, there, 9, sizes[i], NULL), 0);
            memset(back, 0, sizes[i]);
            CHECK_EQ(acre_copy_out(rig.stream, back, again, 0, sizes[i], NULL), 0);
            CHECK(memcmp(data, back, sizes[i]) == 0);
            CHECK_EQ(acre_buffer_free(rig.stream, here, NULL), 0);
            CHECK_EQ(acre_buffer_free(rig.stream, again, NULL), 0);
            CHECK_EQ(acre_buffer_free(rig.far, there, NULL), 0);
            free(data);
            free(back);
        }
        uint32_t imports = double_counts(rig.context).imports + double_counts(rig.other).imports;
        CHECK_U64(imports, is_importing != 0 ? 6 : 0); /* the three large ones, each way */
        double_close(rig.compute);
    }
}

static void a_loss_during_a_copy_is_told(void) { /* GPU-6 */
    struct rig rig = open_rig(&(struct double_options){0});
    struct acre_buffer device = make(rig.stream, ACRE_MEMORY_DEVICE, 100);
    struct acre_error err = {0};
    uint8_t host[100] = {0};
    CHECK_EQ(acre_copy_in(rig.stream, device, 0, host, 100, NULL), 0);
    double_lose(rig.context);
    CHECK_EQ(acre_copy_out(rig.stream, host, device, 0, 100, &err), ACRE_EUNAVAILABLE);
    CHECK_HAS(err.text, "copy_out: from: the buffer was lost");
    double_start(rig.context);
    struct acre_buffer fresh = make(rig.stream, ACRE_MEMORY_DEVICE, 100);
    memset(host, 9, 100);
    CHECK_EQ(acre_copy_in(rig.stream, fresh, 0, host, 100, NULL), 0); /* pieces are known anew */
    memset(host, 0, 100);
    CHECK_EQ(acre_copy_out(rig.stream, host, fresh, 0, 100, NULL), 0);
    CHECK_EQ(host[99], 9);
    double_close(rig.compute);
}

static void recording_takes_copies_between_buffers_only(void) {
    struct rig rig = open_rig(&(struct double_options){0});
    double_start(rig.context);
    struct acre_buffer a = make(rig.stream, ACRE_MEMORY_DEVICE, 64);
    struct acre_buffer b = make(rig.stream, ACRE_MEMORY_DEVICE, 64);
    struct acre_buffer far = make(rig.far, ACRE_MEMORY_DEVICE, 64);
    uint8_t host[64] = {0};
    struct acre_error err = {0};
    REQUIRE_EQ(acre_graph_begin(rig.stream, NULL), 0);
    CHECK_EQ(acre_fill(rig.stream, a, 0, 64, 3, 1, NULL), 0);
    CHECK_EQ(acre_copy(rig.stream, b, 0, a, 0, 64, NULL), 0);
    CHECK_EQ(acre_copy_in(rig.stream, a, 0, host, 64, &err), ACRE_EUNSUPPORTED);
    CHECK_HAS(err.text, "records a graph");
    CHECK_EQ(acre_copy_out(rig.stream, host, a, 0, 64, &err), ACRE_EUNSUPPORTED);
    CHECK_EQ(acre_copy(rig.stream, far, 0, a, 0, 64, &err), ACRE_EUNSUPPORTED);
    CHECK_EQ(acre_copy(rig.stream, a, 0, a, 1, 60, &err), ACRE_EINVALID);
    CHECK_U64(double_counts(rig.context).copies, 0);
    struct acre_graph *graph;
    REQUIRE_EQ(acre_graph_end(rig.stream, &graph, NULL), 0);
    CHECK_EQ(acre_graph_launch(graph, rig.stream, NULL), 0);
    CHECK_EQ(acre_copy_out(rig.stream, host, b, 0, 64, NULL), 0);
    CHECK_EQ(host[0], 3);
    CHECK_EQ(host[63], 3);
    CHECK_EQ(acre_buffer_free(rig.stream, a, NULL), 0);
    CHECK_EQ(acre_graph_launch(graph, rig.stream, NULL), ACRE_ENOTFOUND);
    acre_graph_destroy(graph);
    graphs_destroy(rig.context);
    double_close(rig.compute);
}

static const struct acre_test tests[] = {
    {"plain_memory_goes_there_and_back", plain_memory_goes_there_and_back, 0},
    {"pinned_memory_is_used_where_it_is", pinned_memory_is_used_where_it_is, 0},
    {"pinned_memory_waits_for_its_copy", pinned_memory_waits_for_its_copy, 0},
    {"staging_is_bounded_while_the_device_is_busy", staging_is_bounded_while_the_device_is_busy, 0},
    {"bad_copies_are_refused", bad_copies_are_refused, 0},
    {"fills_repeat_their_pattern", fills_repeat_their_pattern, 0},
    {"contexts_copy_through_the_host", contexts_copy_through_the_host, 0},
    {"a_loss_during_a_copy_is_told", a_loss_during_a_copy_is_told, 0},
    {"recording_takes_copies_between_buffers_only", recording_takes_copies_between_buffers_only, 0},
};

ACRE_TEST_MAIN(tests)
