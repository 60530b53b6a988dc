/* compute_copy.c - copies and fills: every kind of memory, every way, odd sizes and offsets.
 *
 * Expectations are host arrays on which the same is done with memcpy and loops; around what is
 * written there are guard bytes that must not change. All exact. */
#include "conformance/compute_suite.h"

#include <stdlib.h>

static const uint64_t sizes[] = {1, 2, 3, 7, 255, 256, 257, 4095, 4097, 65536, 1000003};
static const enum acre_memory kinds[] = {ACRE_MEMORY_DEVICE, ACRE_MEMORY_PINNED,
                                         ACRE_MEMORY_MAPPED};
static const char *const kind_names[] = {"device", "pinned", "mapped"};

/* In and out again, with offsets, through plain host memory. */
static void copies_of_every_kind_and_size(void) {
    struct kit kit;
    kit_open(&kit);
    enum { ROOM = 1 << 20 };
    uint8_t *data = malloc(ROOM);
    uint8_t *image = malloc(ROOM); /* what the buffer should hold */
    uint8_t *back = malloc(ROOM);
    REQUIRE(data != NULL && image != NULL && back != NULL);
    for (size_t k = 0; k < ACRE_COUNT(kinds); k++) {
        struct acre_buffer buffer = kit_buffer(&kit, kinds[k], ROOM);
        kit_random(&kit, image, ROOM);
        OK(acre_copy_in(kit.stream, buffer, 0, image, ROOM, ERR));
        for (size_t i = 0; i < ACRE_COUNT(sizes); i++) {
            uint64_t offset = acre_rand_below(&kit.rand, ROOM - sizes[i] + 1);
            acre_test_context("%s, %llu bytes at %llu", kind_names[k], (unsigned long long)sizes[i],
                              (unsigned long long)offset);
            kit_random(&kit, data, sizes[i]);
            OK(acre_copy_in(kit.stream, buffer, offset, data, sizes[i], ERR));
            memcpy(image + offset, data, sizes[i]);
            memset(data, 0xee, sizes[i]); /* may be reused at once */
            OK(acre_copy_out(kit.stream, back, buffer, offset, sizes[i], ERR));
            CHECK_SAME(back, image + offset, sizes[i]);
        }
        kit_get(&kit, back, buffer, ROOM);
        CHECK_SAME(back, image, ROOM);
        uint64_t bytes = 0;
        OK(acre_buffer_size(kit.context, buffer, &bytes, ERR));
        CHECK_U64(bytes, ROOM);
        kit_free(&kit, buffer);
    }
    free(data);
    free(image);
    free(back);
    kit_close(&kit);
}

/* Pinned and mapped memory as the host's side of a copy: used where it is, at any offset. */
static void copies_from_host_buffers(void) {
    struct kit kit;
    kit_open(&kit);
    enum { ROOM = 300000, BYTES = 123457 };
    uint8_t *expected = malloc(BYTES);
    REQUIRE(expected != NULL);
    for (size_t k = 1; k < ACRE_COUNT(kinds); k++) {
        acre_test_context("%s", kind_names[k]);
        struct acre_buffer from = kit_buffer(&kit, kinds[k], ROOM);
        struct acre_buffer to = kit_buffer(&kit, kinds[k], ROOM);
        struct acre_buffer device = kit_buffer(&kit, ACRE_MEMORY_DEVICE, ROOM);
        uint8_t *in = acre_buffer_host(kit.context, from);
        uint8_t *out = acre_buffer_host(kit.context, to);
        REQUIRE(in != NULL && out != NULL && in != out);
        kit_random(&kit, in, ROOM);
        memcpy(expected, in + 33, BYTES);
        memset(out, 0x11, ROOM);
        OK(acre_copy_in(kit.stream, device, 77, in + 33, BYTES, ERR));
        OK(acre_copy_out(kit.stream, out + 5, device, 77, BYTES, ERR));
        OK(acre_stream_sync(kit.stream, ACRE_FOREVER, ERR));
        CHECK_SAME(out + 5, expected, BYTES);
        CHECK_EQ(out[4], 0x11);
        CHECK_EQ(out[5 + BYTES], 0x11);
        kit_free(&kit, from);
        kit_free(&kit, to);
        kit_free(&kit, device);
    }
    free(expected);
    kit_close(&kit);
}

static void copies_between_all_kinds(void) {
    struct kit kit;
    kit_open(&kit);
    enum { ROOM = 70001, BYTES = 50003 };
    static uint8_t data[ROOM], back[ROOM], image[ROOM];
    for (size_t a = 0; a < ACRE_COUNT(kinds); a++) {
        for (size_t b = 0; b < ACRE_COUNT(kinds); b++) {
            acre_test_context("%s to %s", kind_names[a], kind_names[b]);
            struct acre_buffer from = kit_buffer(&kit, kinds[a], ROOM);
            struct acre_buffer to = kit_buffer(&kit, kinds[b], ROOM);
            kit_random(&kit, data, ROOM);
            kit_random(&kit, image, ROOM);
            OK(acre_copy_in(kit.stream, from, 0, data, ROOM, ERR));
            OK(acre_copy_in(kit.stream, to, 0, image, ROOM, ERR));
            OK(acre_copy(kit.stream, to, 9001, from, 13, BYTES, ERR));
            memcpy(image + 9001, data + 13, BYTES);
            kit_get(&kit, back, to, ROOM);
            CHECK_SAME(back, image, ROOM);
            kit_free(&kit, from);
            kit_free(&kit, to);
        }
    }
    kit_close(&kit);
}

static void copies_within_one_buffer(void) {
    struct kit kit;
    kit_open(&kit);
    enum { BYTES = 40000 };
    static uint8_t data[BYTES], back[BYTES];
    kit_random(&kit, data, BYTES);
    struct acre_buffer buffer = kit_data(&kit, data, BYTES);
    OK(acre_copy(kit.stream, buffer, 20000, buffer, 0, 20000, ERR)); /* side by side is fine */
    memcpy(data + 20000, data, 20000);
    static const uint64_t overlapping[][3] = {
        {100, 100, 1}, {0, 1, 100}, {1, 0, 100}, {19999, 0, 20000}, {0, 0, BYTES}};
    for (size_t i = 0; i < ACRE_COUNT(overlapping); i++) {
        const uint64_t *row = overlapping[i];
        acre_test_context("row %zu", i);
        FAILS(acre_copy(kit.stream, buffer, row[0], buffer, row[1], row[2], ERR), ACRE_EINVALID,
              "overlap");
    }
    kit_get(&kit, back, buffer, BYTES);
    CHECK_SAME(back, data, BYTES);
    kit_free(&kit, buffer);
    kit_close(&kit);
}

static void copies_of_nothing_do_nothing(void) {
    struct kit kit;
    kit_open(&kit);
    uint32_t word = 0xfeedbeef;
    uint32_t back = 0;
    struct acre_buffer a = kit_data(&kit, &word, sizeof(word));
    struct acre_buffer b = kit_data(&kit, &word, sizeof(word));
    OK(acre_copy_in(kit.stream, a, 0, &back, 0, ERR));
    OK(acre_copy_in(kit.stream, a, 4, NULL, 0, ERR)); /* at the very end, of nothing */
    OK(acre_copy_out(kit.stream, &back, a, 4, 0, ERR));
    OK(acre_copy(kit.stream, a, 4, b, 4, 0, ERR));
    OK(acre_fill(kit.stream, a, 4, 0, 0, 4, ERR));
    CHECK_U64(back, 0);
    kit_get(&kit, &back, a, sizeof(back));
    CHECK_U64(back, word);
    kit_free(&kit, a);
    kit_free(&kit, b);
    kit_close(&kit);
}

static void copies_of_much(void) { /* more than the staging ring holds */
    struct kit kit;
    kit_open(&kit);
    size_t bytes = (size_t)96 * KIT_MIB + 4321;
    uint64_t *data = malloc(bytes + 8);
    uint64_t *back = malloc(bytes + 8);
    REQUIRE(data != NULL && back != NULL);
    kit_random(&kit, data, bytes);
    struct acre_buffer buffer = kit_data(&kit, data, bytes);
    struct acre_buffer other = kit_buffer(&kit, ACRE_MEMORY_DEVICE, bytes);
    OK(acre_copy(kit.stream, other, 0, buffer, 0, bytes, ERR));
    kit_get(&kit, back, other, bytes);
    CHECK_SAME(back, data, bytes);
    kit_free(&kit, buffer);
    kit_free(&kit, other);
    free(data);
    free(back);
    kit_close(&kit);
}

static void copies_between_two_contexts(void) {
    struct kit kit;
    kit_open(&kit);
    struct acre_context *second = kit_context(&kit, (struct acre_context_options){.tenant = "b"});
    struct acre_stream *stream = NULL;
    OK(acre_stream_create(second, &stream, ERR));
    enum { BYTES = 3000001 };
    uint8_t *data = malloc(BYTES);
    uint8_t *back = calloc(1, BYTES);
    REQUIRE(data != NULL && back != NULL);
    kit_random(&kit, data, BYTES);
    for (size_t k = 0; k < ACRE_COUNT(kinds); k++) {
        acre_test_context("to %s", kind_names[k]);
        struct acre_buffer here = kit_data(&kit, data, BYTES);
        struct acre_buffer there;
        OK(acre_buffer_alloc(stream, kinds[k], BYTES, &there, ERR));
        /* Given to the stream of the one, then to that of the other. */
        struct acre_event ready;
        OK(acre_event_record(kit.stream, &ready, ERR));
        OK(acre_stream_after(stream, ready, ERR));
        OK(acre_copy(stream, there, 1000, here, 0, BYTES - 1000, ERR));
        OK(acre_stream_sync(stream, ACRE_FOREVER, ERR));
        OK(acre_copy(kit.stream, here, 500, there, 1000, BYTES - 1000, ERR));
        kit_get(&kit, back, here, BYTES);
        CHECK_SAME(back, data, 500);
        CHECK_SAME(back + 500, data, BYTES - 1000);
        kit_free(&kit, here);
        OK(acre_buffer_free(stream, there, ERR));
    }
    free(data);
    free(back);
    acre_context_close(second);
    kit_close(&kit);
}

static void fills_of_every_width(void) {
    static const uint32_t widths[] = {1, 2, 4, 8};
    struct kit kit;
    kit_open(&kit);
    enum { ROOM = 40000 };
    static uint8_t image[ROOM], back[ROOM];
    for (size_t k = 0; k < ACRE_COUNT(kinds); k++) {
        struct acre_buffer buffer = kit_buffer(&kit, kinds[k], ROOM);
        kit_random(&kit, image, ROOM);
        OK(acre_copy_in(kit.stream, buffer, 0, image, ROOM, ERR));
        for (size_t i = 0; i < 4 * ACRE_COUNT(widths); i++) {
            uint32_t width = widths[i % 4];
            uint64_t count = 1 + acre_rand_below(&kit.rand, 2000);
            uint64_t offset = acre_rand_below(&kit.rand, 1000) * width;
            uint64_t pattern = acre_rand_next(&kit.rand);
            acre_test_context("%s, %u bytes %llu times at %llu", kind_names[k], width,
                              (unsigned long long)count, (unsigned long long)offset);
            OK(acre_fill(kit.stream, buffer, offset, count * width, pattern, width, ERR));
            for (uint64_t j = 0; j < count; j++) {
                memcpy(image + offset + j * width, &pattern, width);
            }
            kit_get(&kit, back, buffer, ROOM);
            CHECK_SAME(back, image, ROOM);
        }
        kit_free(&kit, buffer);
    }
    kit_close(&kit);
}

static void fills_that_cannot_be_are_refused(void) {
    struct kit kit;
    kit_open(&kit);
    uint64_t word = 42;
    struct acre_buffer buffer = kit_buffer(&kit, ACRE_MEMORY_DEVICE, 1024);
    OK(acre_fill(kit.stream, buffer, 0, 1024, word, 8, ERR));
    FAILS(acre_fill(kit.stream, buffer, 0, 1024, 1, 3, ERR), ACRE_EINVALID, "3", "1, 2, 4");
    FAILS(acre_fill(kit.stream, buffer, 0, 1024, 1, 0, ERR), ACRE_EINVALID, "0", "1, 2, 4");
    FAILS(acre_fill(kit.stream, buffer, 0, 1023, 1, 8, ERR), ACRE_EINVALID, "1023", "8");
    FAILS(acre_fill(kit.stream, buffer, 4, 1016, 1, 8, ERR), ACRE_EINVALID, "4", "8");
    FAILS(acre_fill(kit.stream, buffer, 8, 1024, 1, 8, ERR), ACRE_EINVALID, "1024");
    FAILS(acre_fill(kit.stream, buffer, UINT64_MAX - 7, 8, 1, 8, ERR), ACRE_EINVALID, "1024");
    OK(acre_copy_out(kit.stream, &word, buffer, 1016, 8, ERR));
    CHECK_U64(word, 42);
    kit_free(&kit, buffer);
    kit_close(&kit);
}

static const struct acre_test tests[] = {
    TEST(copies_of_every_kind_and_size),    TEST(copies_from_host_buffers),
    TEST(copies_between_all_kinds),         TEST(copies_within_one_buffer),
    TEST(copies_of_nothing_do_nothing),     TEST(copies_of_much),
    TEST(copies_between_two_contexts),      TEST(fills_of_every_width),
    TEST(fills_that_cannot_be_are_refused),
};
SUITE(compute_copy_suite, tests);
