/* Who yields: the smallest sufficient set, or nobody (POL-2). */
#include "core/rand.h"
#include "sched/victims.h"
#include "support/test.h"

#include <stdlib.h>

/* A model of "fits": victims free GPUs on their node; the job needs `need` on one node, on
 * `members` nodes. Nodes without a number share one pool (node 0). */
struct model {
    const struct victim *candidates; /* sorted by the choice: looked up by job */
    const uint32_t *node_of_job;     /* by job id */
    uint32_t nodes;
    uint64_t need_milli;
    uint32_t members;
    uint32_t calls;
};

static bool model_fits(void *context, const uint32_t *chosen, uint32_t count) {
    struct model *model = context;
    uint64_t free_milli[16] = {0};
    model->calls++;
    for (uint32_t i = 0; i < count; i++) {
        REQUIRE(i == 0 || chosen[i] > chosen[i - 1]);
        const struct victim *victim = &model->candidates[chosen[i]];
        free_milli[model->node_of_job[victim->job]] += victim->size_milli;
    }
    uint32_t members = 0;
    for (uint32_t node = 0; node < model->nodes; node++) {
        members += free_milli[node] >= model->need_milli;
    }
    return members >= model->members;
}

/* The vectors of the issue: sizes of victims, need, how many yield. */
static const struct {
    uint32_t sizes[3];
    uint32_t need, yield;
} vectors[] = {
    {{5, 0, 0}, 5, 1}, {{5, 5, 0}, 6, 2},  {{3, 0, 0}, 10, 0},
    {{5, 5, 5}, 5, 1}, {{3, 3, 3}, 10, 0}, {{1, 2, 9}, 9, 1},
};

static void sets_are_minimal_and_all_or_nothing(void) {
    for (size_t i = 0; i < ACRE_COUNT(vectors); i++) {
        acre_test_context("row %zu", i);
        struct victim candidates[3];
        uint32_t nodes[4] = {0}, chosen[3], count = 0;
        for (uint32_t j = 0; j < 3 && vectors[i].sizes[j] > 0; j++) {
            candidates[count++] = (struct victim){
                .job = j + 1, .size_milli = vectors[i].sizes[j] * 1000, .priority = 1};
        }
        struct model model = {candidates, nodes, 1, vectors[i].need * 1000, 1, 0};
        CHECK_EQ(victims_choose(candidates, count, model_fits, &model, chosen), vectors[i].yield);
    }
}

static void nobody_to_yield_is_nobody(void) {
    CHECK_EQ(victims_choose(NULL, 0, model_fits, NULL, NULL), 0);
}

/* Over quota, then lowest priority, then youngest, then largest, then newest. */
static void the_order_is_the_preference(void) {
    const struct victim sorted[] = {
        {.job = 1, .over_quota = true, .priority = 4, .run_ms = 900, .size_milli = 1000},
        {.job = 2, .priority = 1, .run_ms = 900, .size_milli = 1000},
        {.job = 3, .priority = 2, .run_ms = 10, .size_milli = 1000},
        {.job = 4, .priority = 2, .run_ms = 20, .size_milli = 8000},
        {.job = 6, .priority = 2, .run_ms = 20, .size_milli = 1000},
        {.job = 5, .priority = 2, .run_ms = 20, .size_milli = 1000},
    };
    enum { COUNT = ACRE_COUNT(sorted) };
    struct acre_rand rand;
    acre_rand_seed(&rand, 3);
    for (int round = 0; round < 20; round++) {
        struct victim candidates[COUNT];
        memcpy(candidates, sorted, sizeof(sorted));
        acre_rand_shuffle(&rand, candidates, COUNT, sizeof(candidates[0]));
        uint32_t nodes[8] = {0}, chosen[COUNT];
        struct model model = {candidates, nodes, 1, 1000, 1, 0};
        REQUIRE_EQ(victims_choose(candidates, COUNT, model_fits, &model, chosen), 1);
        CHECK_U64(candidates[chosen[0]].job, 1);
        for (int i = 0; i < COUNT; i++) {
            CHECK_U64(candidates[i].job, sorted[i].job);
        }
    }
}

/* The best by brute force: fewest, then the least preferred member as preferred as can be, and so
 * on: that is the smallest number when the set is read as bits. 0: none. */
static uint32_t best_by_force(struct model *model, uint32_t count) {
    uint32_t best = 0;
    for (uint32_t bits = 1; bits < 1U << count; bits++) {
        uint32_t chosen[16], size = 0;
        for (uint32_t i = 0; i < count; i++) {
            if ((bits & 1U << i) != 0) {
                chosen[size++] = i;
            }
        }
        if (model_fits(model, chosen, size) &&
            (best == 0 || size < (uint32_t)__builtin_popcount(best))) {
            best = bits;
        }
    }
    return best;
}

static bool can_spare_one(struct model *model, const uint32_t *chosen, uint32_t count) {
    for (uint32_t skip = 0; skip < count && count > 1; skip++) {
        uint32_t rest[64], size = 0;
        for (uint32_t i = 0; i < count; i++) {
            if (i != skip) {
                rest[size++] = chosen[i];
            }
        }
        if (model_fits(model, rest, size)) {
            return true;
        }
    }
    return false;
}

static void random_choices_equal_brute_force(void) {
    struct acre_rand rand;
    acre_rand_seed(&rand, 11);
    uint32_t exact = 0, larger = 0, none = 0;
    for (int round = 0; round < 4000; round++) {
        acre_test_context("round %d", round);
        uint32_t count = 1 + (uint32_t)acre_rand_below(&rand, 10);
        struct victim candidates[10];
        uint32_t nodes[11], chosen[10];
        for (uint32_t i = 0; i < count; i++) {
            candidates[i] = (struct victim){
                .job = i + 1,
                .size_milli = 500 * (1 + acre_rand_below(&rand, 6)),
                .run_ms = acre_rand_below(&rand, 5),
                .priority = 1 + (uint32_t)acre_rand_below(&rand, 2),
                .over_quota = acre_rand_below(&rand, 5) == 0,
            };
            nodes[i + 1] = (uint32_t)acre_rand_below(&rand, 3);
        }
        struct model model = {.candidates = candidates,
                              .node_of_job = nodes,
                              .nodes = 3,
                              .need_milli = 500 * (1 + acre_rand_below(&rand, 12)),
                              .members = 1 + (uint32_t)acre_rand_below(&rand, 2)};
        uint32_t size = victims_choose(candidates, count, model_fits, &model, chosen);
        CHECK(model.calls <= 512 + 26 * (size + 1));
        uint32_t best = best_by_force(&model, count);
        uint32_t best_size = (uint32_t)__builtin_popcount(best);
        if (best == 0) {
            CHECK_EQ(size, 0);
            none++;
            continue;
        }
        REQUIRE(size > 0);
        REQUIRE(model_fits(&model, chosen, size));
        CHECK(!can_spare_one(&model, chosen, size));
        if (best_size <= 3) {
            uint32_t bits = 0;
            for (uint32_t i = 0; i < size; i++) {
                bits |= 1U << chosen[i];
            }
            CHECK_U64(bits, best);
            exact++;
        } else {
            CHECK(size >= best_size);
            larger++;
        }
    }
    acre_test_context("%s", "");
    CHECK(exact > 1000 && larger > 50 && none > 500); /* the test saw all three */
}

/* Many candidates: few calls, nobody in vain, and large ones instead of many small ones. */
static void many_candidates_cost_few_calls(void) {
    enum { COUNT = 4000 };
    struct victim *candidates = acre_calloc(COUNT, sizeof(*candidates));
    uint32_t *nodes = acre_calloc(COUNT + 1, sizeof(*nodes));
    uint32_t *chosen = acre_calloc(COUNT, sizeof(*chosen));
    for (uint32_t i = 0; i < COUNT; i++) {
        candidates[i] = (struct victim){
            .job = i + 1, .size_milli = i < 3990 ? 100 : 8000, .run_ms = i, .priority = 1};
    }
    struct model model = {candidates, nodes, 1, 36000, 1, 0};
    uint32_t size = victims_choose(candidates, COUNT, model_fits, &model, chosen);
    CHECK_EQ(size, 5); /* five of 8 GPUs instead of 360 tenths */
    CHECK(model.calls < 512 + 26 * 6);
    CHECK(!can_spare_one(&model, chosen, size));
    model.need_milli = 400 * 1000 + 80 * 1000;
    CHECK_EQ(victims_choose(candidates, COUNT, model_fits, &model, chosen), 0);
    free(candidates);
    free(nodes);
    free(chosen);
}

static const struct acre_test tests[] = {
    {"sets_are_minimal_and_all_or_nothing", sets_are_minimal_and_all_or_nothing, 0},
    {"nobody_to_yield_is_nobody", nobody_to_yield_is_nobody, 0},
    {"the_order_is_the_preference", the_order_is_the_preference, 0},
    {"random_choices_equal_brute_force", random_choices_equal_brute_force, 0},
    {"many_candidates_cost_few_calls", many_candidates_cost_few_calls, 0},
};

ACRE_TEST_MAIN(tests)
