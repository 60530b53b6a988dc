/* Arenas: zeroed, aligned, apart from each other, limited, freed at once. */
#include "core/arena.h"
#include "core/rand.h"
#include "support/dies.h"
#include "support/test.h"

static void memory_is_zeroed_aligned_and_apart(void) {
    enum { COUNT = 2000 };
    static struct {
        unsigned char *memory;
        size_t size;
    } parts[COUNT];
    struct acre_rand rand;
    acre_rand_seed(&rand, 5);
    struct acre_arena *arena = acre_arena_create(SIZE_MAX);
    for (int turn = 0; turn < 2; turn++) { /* the second one reuses dirty memory */
        for (size_t i = 0; i < COUNT; i++) {
            parts[i].size = acre_rand_below(&rand, i % 50 == 0 ? 20000 : 100);
            parts[i].memory = acre_arena_alloc(arena, parts[i].size);
            REQUIRE(parts[i].memory != NULL);
            CHECK_EQ((uintptr_t)parts[i].memory % 16, 0);
            for (size_t j = 0; j < parts[i].size; j++) {
                REQUIRE(parts[i].memory[j] == 0);
            }
            memset(parts[i].memory, (int)(i % 255) + 1, parts[i].size);
        }
        for (size_t i = 0; i < COUNT; i++) {
            for (size_t j = 0; j < parts[i].size; j++) {
                REQUIRE(parts[i].memory[j] == i % 255 + 1);
            }
        }
        acre_arena_reset(arena);
        CHECK_EQ(acre_arena_used(arena), 0);
    }
    acre_arena_destroy(arena);
    acre_arena_destroy(NULL);
}

static void empty_allocations_have_addresses_of_their_own(void) {
    struct acre_arena *arena = acre_arena_create(1000);
    void *first = acre_arena_alloc(arena, 0);
    void *second = acre_arena_alloc(arena, 0);
    CHECK(first != NULL && second != NULL && first != second);
    acre_arena_destroy(arena);
}

static void the_maximum_is_kept(void) {
    struct acre_arena *arena = acre_arena_create(100); /* six times 16 */
    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; i < 6; i++) {
            CHECK(acre_arena_try(arena, 10) != NULL);
        }
        CHECK_EQ(acre_arena_used(arena), 96);
        CHECK(acre_arena_try(arena, 1) == NULL);
        CHECK_EQ(acre_arena_used(arena), 96);
        acre_arena_reset(arena);
        CHECK(acre_arena_try(arena, 97) == NULL);
        CHECK(acre_arena_try(arena, 96) != NULL);
        acre_arena_reset(arena);
    }
    CHECK(acre_arena_try(arena, SIZE_MAX) == NULL);
    CHECK(acre_arena_try(arena, SIZE_MAX - 16) == NULL);
    CHECK_EQ(acre_arena_used(arena), 0);
    acre_arena_destroy(arena);
    struct acre_arena *none = acre_arena_create(0);
    CHECK(acre_arena_try(none, 0) == NULL);
    acre_arena_reset(none);
    acre_arena_destroy(none);
}

static void pass_the_maximum(void) {
    struct acre_arena *arena = acre_arena_create(100);
    acre_arena_alloc(arena, 101);
}

static void alloc_asserts_at_the_maximum(void) {
    CHECK(acre_dies(pass_the_maximum));
}

static void texts_are_copied_and_formatted(void) {
    struct acre_arena *arena = acre_arena_create(100000);
    char *copy = acre_arena_strndup(arena, "gpu-node", 3);
    CHECK_STR(copy, "gpu");
    CHECK_STR(acre_arena_strndup(arena, NULL, 0), "");
    CHECK_STR(acre_arena_printf(arena, "%s=%d", "gpus", 8), "gpus=8");
    char *wide = acre_arena_printf(arena, "%20000d", 7);
    CHECK_EQ(strlen(wide), 20000);
    CHECK_STR(copy, "gpu");
    acre_arena_destroy(arena);
}

static const struct acre_test tests[] = {
    {"memory_is_zeroed_aligned_and_apart", memory_is_zeroed_aligned_and_apart, 0},
    {"empty_allocations_have_addresses_of_their_own", empty_allocations_have_addresses_of_their_own,
     0},
    {"the_maximum_is_kept", the_maximum_is_kept, 0},
    {"alloc_asserts_at_the_maximum", alloc_asserts_at_the_maximum, 0},
    {"texts_are_copied_and_formatted", texts_are_copied_and_formatted, 0},
};

ACRE_TEST_MAIN(tests)
