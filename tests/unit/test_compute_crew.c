/* test_compute_crew.c - copies that several threads make together. */
#include "compute/auto/crew.h"
#include "core/rand.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 8 << 20, ROOM = 64 };

static uint8_t *make(uint64_t seed) {
    struct acre_rand rand;
    uint8_t *bytes = malloc(MOST_BYTES + 2 * ROOM);
    REQUIRE(bytes != NULL);
    acre_rand_seed(&rand, seed);
    for (size_t i = 0; i < MOST_BYTES + 2 * ROOM; i += 8) {
        uint64_t word = acre_rand_next(&rand);
        memcpy(bytes + i, &word, 8);
    }
    return bytes;
}

/* What was asked for is copied, from and to odd addresses, and nothing beside it. */
static void check_copy(struct crew *crew, uint64_t bytes, uint64_t seed) {
    uint8_t *from = make(seed);
    uint8_t *to = make(seed + 1);
    uint8_t *before = make(seed + 1);
    uint64_t at = seed % ROOM;
    crew_copy(crew, to + at, from + seed % 7, bytes);
    acre_test_context("%llu bytes, %u helpers", (unsigned long long)bytes, crew->helper_count);
    CHECK(memcmp(to + at, from + seed % 7, bytes) == 0);
    CHECK(memcmp(to, before, at) == 0);
    CHECK(memcmp(to + at + bytes, before + at + bytes, MOST_BYTES + 2 * ROOM - at - bytes) == 0);
    free(from);
    free(to);
    free(before);
}

static void crews_of_all_sizes_copy(void) {
    static const uint64_t sizes[] = {0,       1,           4095,          (1 << 20) - 1,
                                     1 << 20, 1234567 * 3, (7 << 20) + 1, MOST_BYTES};
    for (uint32_t helpers = 0; helpers <= CREW_HELPERS_MAX; helpers += helpers < 2 ? 1 : 5) {
        struct crew crew;
        crew_open(&crew, helpers);
        CHECK_EQ(crew.helper_count, helpers);
        for (size_t i = 0; i < ACRE_COUNT(sizes); i++) {
            check_copy(&crew, sizes[i], helpers * 100 + i);
        }
        crew_close(&crew);
    }
}

/* One right after the other, so that helpers come late to some. */
static void copies_follow_each_other(void) {
    enum { BYTES = 1 << 20, COPIES = 500 };
    uint8_t *from = make(1);
    uint8_t *to = make(2);
    struct crew crew;
    crew_open(&crew, 3);
    for (uint32_t i = 0; i < COPIES; i++) {
        memset(from, (int)(i & 255), BYTES);
        crew_copy(&crew, to, from, BYTES);
        CHECK(memcmp(to, from, BYTES) == 0);
    }
    crew_close(&crew);
    free(from);
    free(to);
}

static const struct acre_test tests[] = {
    {"crews_of_all_sizes_copy", crews_of_all_sizes_copy, 0},
    {"copies_follow_each_other", copies_follow_each_other, 0},
};
ACRE_TEST_MAIN(tests)
