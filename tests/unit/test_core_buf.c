/* Buffers grow to their maximum and not a byte further, and a failure sticks. */
#include "core/buf.h"
#include "core/rand.h"
#include "support/dies.h"
#include "support/test.h"

#include <stdlib.h>

static void a_new_buffer_is_empty_text(void) {
    static const size_t maxima[] = {0, 1, 63, 64, 65, 1 << 20, SIZE_MAX};
    for (size_t i = 0; i < ACRE_COUNT(maxima); i++) {
        struct acre_buf buf;
        acre_buf_init(&buf, maxima[i]);
        CHECK_STR(buf.data, "");
        CHECK_EQ(buf.length, 0);
        CHECK(!acre_buf_failed(&buf));
        CHECK_EQ(acre_buf_append(&buf, NULL, 0), 0);
        CHECK_EQ(acre_buf_putc(&buf, 'x'), maxima[i] == 0 ? ACRE_ELIMIT : 0);
        acre_buf_finish(&buf);
        CHECK(buf.data == NULL);
    }
}

static void each_way_to_append_ends_with_a_nul(void) {
    struct acre_buf buf;
    acre_buf_init(&buf, 1000);
    CHECK_EQ(acre_buf_append(&buf, "abcd", 2), 0);
    CHECK_EQ(acre_buf_puts(&buf, "-"), 0);
    CHECK_EQ(acre_buf_putc(&buf, 'c'), 0);
    CHECK_EQ(acre_buf_printf(&buf, "%d%s", 42, "!"), 0);
    CHECK_STR(buf.data, "ab-c42!");
    CHECK_EQ(buf.length, 7);
    CHECK_EQ(acre_buf_append(&buf, "\0x", 2), 0);
    CHECK_EQ(buf.length, 9);
    CHECK_EQ(buf.data[9], '\0');
    acre_buf_finish(&buf);
}

static void the_maximum_is_exact(void) {
    for (size_t max = 1; max <= 300; max++) {
        struct acre_buf buf;
        acre_buf_init(&buf, max);
        acre_test_context("max %zu", max);
        for (size_t i = 0; i < max; i++) {
            CHECK_EQ(acre_buf_putc(&buf, 'x'), 0);
        }
        CHECK(buf.capacity <= max + 1);
        CHECK_EQ(acre_buf_putc(&buf, 'y'), ACRE_ELIMIT);
        CHECK_EQ(buf.length, max);
        CHECK_EQ(strlen(buf.data), max);
        acre_buf_finish(&buf);
    }
}

static void a_failure_changes_nothing_and_sticks(void) {
    struct acre_buf buf;
    acre_buf_init(&buf, 5);
    CHECK_EQ(acre_buf_puts(&buf, "abc"), 0);
    CHECK_EQ(acre_buf_puts(&buf, "def"), ACRE_ELIMIT);
    CHECK_STR(buf.data, "abc");
    CHECK(acre_buf_failed(&buf));
    CHECK_EQ(acre_buf_putc(&buf, 'd'), ACRE_ELIMIT); /* would fit: no hole in the text */
    CHECK_EQ(acre_buf_printf(&buf, "%d", 1), ACRE_ELIMIT);
    CHECK_EQ(acre_buf_append(&buf, "", SIZE_MAX), ACRE_ELIMIT);
    CHECK_STR(buf.data, "abc");
    acre_buf_clear(&buf);
    CHECK(!acre_buf_failed(&buf));
    CHECK_STR(buf.data, "");
    CHECK_EQ(acre_buf_printf(&buf, "%s", "123456"), ACRE_ELIMIT);
    CHECK_STR(buf.data, "");
    acre_buf_clear(&buf);
    CHECK_EQ(acre_buf_printf(&buf, "%s", "12345"), 0);
    CHECK_STR(buf.data, "12345");
    acre_buf_finish(&buf);
}

static void lengths_near_the_largest_do_not_wrap(void) {
    struct acre_buf buf;
    acre_buf_init(&buf, SIZE_MAX);
    CHECK_EQ(acre_buf_puts(&buf, "abc"), 0);
    CHECK_EQ(acre_buf_append(&buf, "", SIZE_MAX - 2), ACRE_ELIMIT);
    CHECK_STR(buf.data, "abc");
    acre_buf_finish(&buf);
}

static void random_appends_agree_with_a_plain_copy(void) {
    enum { MAX = 5000 };
    static char expect[MAX];
    struct acre_rand rand;
    acre_rand_seed(&rand, 9);
    for (int round = 0; round < 50; round++) {
        struct acre_buf buf;
        size_t length = 0;
        acre_buf_init(&buf, MAX);
        acre_test_context("seed 9 round %d", round);
        for (;;) {
            char piece[200];
            size_t size = acre_rand_below(&rand, sizeof(piece) + 1);
            memset(piece, 'a' + (int)acre_rand_below(&rand, 26), size);
            int r = acre_buf_append(&buf, piece, size);
            if (length + size > MAX) {
                CHECK_EQ(r, ACRE_ELIMIT);
                break;
            }
            CHECK_EQ(r, 0);
            memcpy(expect + length, piece, size);
            length += size;
        }
        CHECK_EQ(buf.length, length);
        CHECK(memcmp(buf.data, expect, length) == 0);
        acre_buf_finish(&buf);
    }
}

static void base_allocations_abort_instead_of_failing(void) {
    char *text = acre_strdup("abc");
    text = acre_realloc(text, 10, 2);
    CHECK_STR(text, "abc");
    free(text);
    int *zeros = acre_calloc(4, sizeof(int));
    CHECK_EQ(zeros[0] + zeros[3], 0);
    free(zeros);
}

/* Under a sanitizer let the allocator fail, as it does elsewhere, instead of ending the
 * process in its own way. */
const char *__asan_default_options(void);
const char *__tsan_default_options(void);
const char *__asan_default_options(void) {
    return "allocator_may_return_null=1";
}

const char *__tsan_default_options(void) {
    return "allocator_may_return_null=1";
}

static void overflow_realloc(void) {
    void *volatile memory = acre_realloc(NULL, SIZE_MAX / 2, 4);
    (void)memory;
}

static void a_size_that_overflows_aborts(void) {
    CHECK(acre_dies(overflow_realloc));
}

static const struct acre_test tests[] = {
    {"a_new_buffer_is_empty_text", a_new_buffer_is_empty_text, 0},
    {"each_way_to_append_ends_with_a_nul", each_way_to_append_ends_with_a_nul, 0},
    {"the_maximum_is_exact", the_maximum_is_exact, 0},
    {"a_failure_changes_nothing_and_sticks", a_failure_changes_nothing_and_sticks, 0},
    {"lengths_near_the_largest_do_not_wrap", lengths_near_the_largest_do_not_wrap, 0},
    {"random_appends_agree_with_a_plain_copy", random_appends_agree_with_a_plain_copy, 0},
    {"base_allocations_abort_instead_of_failing", base_allocations_abort_instead_of_failing, 0},
    {"a_size_that_overflows_aborts", a_size_that_overflows_aborts, 0},
};

ACRE_TEST_MAIN(tests)
