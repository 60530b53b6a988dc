/* The timeline: everybody at the earliest time he fits without moving anybody (POL-9). */
#include "core/rand.h"
#include "sched/timeline.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>

#define NOW_MS UINT64_C(1000000)
#define MIN_MS UINT64_C(60000)
#define ALL(n) ((UINT64_C(1) << (n)) - 1)

enum { CPU = 64000, RAM = 256000 };

/* Nodes of `gpus` idle devices, all of kind 0. */
static struct timeline *cluster(uint32_t nodes, uint32_t gpus) {
    struct timeline *timeline = timeline_create(NOW_MS);
    uint16_t free_milli[ACRE_TIMELINE_SLOTS_MAX];
    for (uint32_t i = 0; i < gpus; i++) {
        free_milli[i] = 1000;
    }
    for (uint32_t i = 0; i < nodes; i++) {
        CHECK_EQ(timeline_add_node(timeline, 0, free_milli, gpus, CPU, RAM), i);
    }
    return timeline;
}

static void occupy(struct timeline *timeline, uint32_t node, uint64_t slots, uint32_t milli,
                   uint64_t minutes) {
    struct timeline_use held = {
        .node = node, .slots = slots, .milli = milli, .until_ms = NOW_MS + minutes * MIN_MS};
    timeline_occupy(timeline, &held);
}

/* When it starts, in minutes from now; -1: never. */
static int64_t fit(struct timeline *timeline, uint32_t replicas, uint32_t gpus, uint32_t milli,
                   uint64_t minutes) {
    struct timeline_need need = {.slots = ALL(8), .milli = milli, .serves = true};
    struct timeline_ask ask = {.replicas = replicas,
                               .gpus = gpus,
                               .duration_ms = minutes * MIN_MS,
                               .needs = &need,
                               .kind_count = 1};
    uint64_t start_ms;
    if (!timeline_fit(timeline, &ask, NULL, &start_ms)) {
        return -1;
    }
    return (int64_t)((start_ms - NOW_MS) / MIN_MS);
}

static void an_idle_cluster_starts_now(void) {
    struct timeline *timeline = cluster(2, 8);
    CHECK_EQ(fit(timeline, 1, 8, 1000, 60), 0);
    CHECK_EQ(fit(timeline, 1, 8, 1000, 60), 0);
    CHECK_EQ(fit(timeline, 1, 8, 1000, 60), 60);
    CHECK_EQ(fit(timeline, 1, 0, 0, 60), 0); /* CPU only */
    timeline_destroy(timeline);
}

/* 4 + 4 free on two nodes are not 8 on one: judged per node, not by a sum. */
static void free_gpus_of_two_nodes_are_not_one_node(void) {
    struct timeline *timeline = cluster(2, 8);
    occupy(timeline, 0, ALL(4), 1000, 30);
    occupy(timeline, 1, ALL(4), 1000, 50);
    CHECK_EQ(fit(timeline, 1, 8, 1000, 10), 30);
    CHECK_EQ(fit(timeline, 1, 4, 1000, 30), 0); /* behind it, but in time before it */
    timeline_destroy(timeline);
}

/* CAP-3: two devices 60 % used never host 0.8. */
static void shares_of_two_devices_are_not_one_share(void) {
    struct timeline *timeline = cluster(1, 2);
    struct timeline_need need = {.slots = ALL(2), .milli = 800, .serves = true};
    struct timeline_ask ask = {
        .replicas = 1, .gpus = 1, .duration_ms = MIN_MS, .needs = &need, .kind_count = 1};
    occupy(timeline, 0, 1, 600, 20);
    occupy(timeline, 0, 2, 600, 10);
    uint64_t start_ms;
    REQUIRE(timeline_fit(timeline, &ask, NULL, &start_ms));
    CHECK_U64(start_ms, NOW_MS + 10 * MIN_MS);
    need.milli = 400;
    REQUIRE(timeline_fit(timeline, &ask, NULL, &start_ms));
    CHECK_U64(start_ms, NOW_MS);
    timeline_destroy(timeline);
}

/* POL-6's sense: later ones fill holes only where nobody is moved. */
static void a_hole_is_filled_only_by_what_fits_it(void) {
    struct timeline *timeline = cluster(1, 8);
    occupy(timeline, 0, ALL(6), 1000, 30);
    CHECK_EQ(fit(timeline, 1, 8, 1000, 60), 30); /* the head */
    CHECK_EQ(fit(timeline, 1, 2, 1000, 31), 90); /* would delay it */
    CHECK_EQ(fit(timeline, 1, 2, 1000, 30), 0);  /* does not */
    CHECK_EQ(fit(timeline, 1, 2, 1000, 30), 90); /* the hole is full */
    CHECK_EQ(fit(timeline, 1, 1, 1000, 5), 90);
    timeline_destroy(timeline);
}

static void not_before_and_never_are_kept(void) {
    struct timeline *timeline = cluster(1, 2);
    struct timeline_need need = {.slots = 2, .milli = 1000, .serves = true};
    struct timeline_ask ask = {.replicas = 1,
                               .gpus = 1,
                               .duration_ms = MIN_MS,
                               .not_before_ms = NOW_MS + 7,
                               .needs = &need,
                               .kind_count = 1};
    uint64_t start_ms = 1;
    struct timeline_spot where;
    REQUIRE(timeline_fit(timeline, &ask, &where, &start_ms));
    CHECK_U64(start_ms, NOW_MS + 7);
    CHECK_U64(where.slots, 2); /* the one device that serves */
    ask.gpus = 2;
    CHECK(!timeline_fit(timeline, &ask, NULL, &start_ms));
    ask.gpus = 1;
    struct timeline_use forever = {
        .node = 0, .slots = 2, .milli = 1000, .until_ms = ACRE_TIMELINE_NEVER};
    timeline_occupy(timeline, &forever); /* a device that is drained */
    CHECK(!timeline_fit(timeline, &ask, NULL, &start_ms));
    need.serves = false;
    CHECK(!timeline_fit(timeline, &ask, NULL, &start_ms));
    CHECK_U64(start_ms, NOW_MS + 7); /* not touched by what failed */
    timeline_destroy(timeline);
}

static void cpu_and_ram_are_waited_for(void) {
    struct timeline *timeline = cluster(1, 8);
    struct timeline_use held = {
        .node = 0, .cpu_milli = CPU - 1000, .ram_mib = 10, .until_ms = NOW_MS + 5 * MIN_MS};
    timeline_occupy(timeline, &held);
    struct timeline_need need = {.slots = ALL(8), .milli = 1000, .serves = true};
    struct timeline_ask ask = {.replicas = 1,
                               .gpus = 1,
                               .cpu_milli = 1001,
                               .duration_ms = MIN_MS,
                               .needs = &need,
                               .kind_count = 1};
    uint64_t start_ms;
    REQUIRE(timeline_fit(timeline, &ask, NULL, &start_ms));
    CHECK_U64(start_ms, NOW_MS + 5 * MIN_MS);
    ask.cpu_milli = 1000, ask.ram_mib = RAM - 9;
    REQUIRE(timeline_fit(timeline, &ask, NULL, &start_ms));
    CHECK_U64(start_ms, NOW_MS + 5 * MIN_MS);
    ask.ram_mib = RAM - 10;
    ask.gpus = 0, need.slots = 0, need.milli = 0;
    REQUIRE(timeline_fit(timeline, &ask, NULL, &start_ms));
    CHECK_U64(start_ms, NOW_MS);
    timeline_destroy(timeline);
}

/* Members of a gang start together (POL-5). */
static void a_gang_starts_when_all_members_have_room(void) {
    struct timeline *timeline = cluster(3, 8);
    occupy(timeline, 0, ALL(8), 1000, 10);
    occupy(timeline, 1, ALL(8), 1000, 20);
    occupy(timeline, 2, ALL(8), 1000, 30);
    CHECK_EQ(fit(timeline, 2, 8, 1000, 5), 20);
    CHECK_EQ(fit(timeline, 3, 8, 1000, 5), 30);
    CHECK_EQ(fit(timeline, 4, 4, 1000, 5), 25);
    CHECK_EQ(fit(timeline, 2, 4, 1000, 10), 10); /* both on the first node, in the hole */
    CHECK_EQ(fit(timeline, 4, 8, 1000, 5), -1);
    CHECK_EQ(fit(timeline, 12, 1, 500, 5), 35);
    timeline_destroy(timeline);
}

/* The truth, kept as a plain list of what is held. */
struct book {
    struct timeline_use holds[512];
    uint32_t count;
    uint32_t nodes, gpus;
};

static uint32_t free_at(const struct book *book, uint32_t node, uint32_t slot, uint64_t at_ms) {
    uint32_t used = 0;
    for (uint32_t i = 0; i < book->count; i++) {
        const struct timeline_use *held = &book->holds[i];
        if (held->node == node && (held->slots >> slot & 1) != 0 && held->from_ms <= at_ms &&
            at_ms < held->until_ms) {
            used += held->milli;
        }
    }
    return used >= 1000 ? 0 : 1000 - used;
}

static bool slot_serves(const struct book *book, uint32_t node, uint32_t slot, uint32_t milli,
                        uint64_t start_ms, uint64_t ms) {
    if (free_at(book, node, slot, start_ms) < milli) {
        return false;
    }
    for (uint32_t i = 0; i < book->count; i++) { /* what is free shrinks only where one begins */
        uint64_t from_ms = book->holds[i].from_ms;
        if (from_ms > start_ms && from_ms < start_ms + ms &&
            free_at(book, node, slot, from_ms) < milli) {
            return false;
        }
    }
    return true;
}

static uint32_t members_at(const struct book *book, const struct timeline_ask *ask,
                           uint64_t start_ms) {
    uint32_t members = 0;
    for (uint32_t node = 0; node < book->nodes; node++) {
        uint32_t shares = 0; /* whole devices, or as many shares as fit on each */
        for (uint32_t slot = 0; slot < book->gpus; slot++) {
            uint32_t milli = ask->needs[0].milli;
            uint32_t on_slot = 0;
            while (
                slot_serves(book, node, slot, milli * (on_slot + 1), start_ms, ask->duration_ms)) {
                on_slot++;
            }
            shares += on_slot;
        }
        members += shares / ask->gpus;
    }
    return members;
}

static uint64_t earliest_by_force(const struct book *book, const struct timeline_ask *ask) {
    uint64_t best_ms = UINT64_MAX;
    uint64_t from_ms = ACRE_MAX(NOW_MS, ask->not_before_ms);
    for (uint32_t i = 0; i <= book->count; i++) { /* room grows only where one ends */
        uint64_t at_ms = i == book->count ? from_ms : book->holds[i].until_ms;
        if (at_ms >= from_ms && at_ms < best_ms && members_at(book, ask, at_ms) >= ask->replicas) {
            best_ms = at_ms;
        }
    }
    return best_ms;
}

static void random_places_are_the_earliest(void) {
    for (uint64_t seed = 1; seed <= 60; seed++) {
        acre_test_context("seed %d", (int)seed);
        struct acre_rand rand;
        acre_rand_seed(&rand, seed);
        struct book book = {.nodes = 1 + (uint32_t)acre_rand_below(&rand, 4),
                            .gpus = 1 + (uint32_t)acre_rand_below(&rand, 4)};
        struct timeline *timeline = cluster(book.nodes, book.gpus);
        bool whole_only = seed % 3 == 0;
        for (int step = 0; step < 60; step++) {
            uint32_t gang = acre_rand_below(&rand, 4) == 0 ? 2 : 1;
            bool whole = whole_only || gang > 1 || acre_rand_below(&rand, 2) == 0;
            struct timeline_need need = {
                .slots = ALL(book.gpus),
                .milli = whole ? 1000 : 100 * (1 + (uint32_t)acre_rand_below(&rand, 9)),
                .serves = true};
            struct timeline_ask ask = {
                .replicas = gang,
                .gpus = whole ? 1 + (uint32_t)acre_rand_below(&rand, book.gpus) : 1,
                .duration_ms = 1 + acre_rand_below(&rand, step % 2 == 0 ? 300000 : 20000000),
                .not_before_ms =
                    acre_rand_below(&rand, 5) == 0 ? NOW_MS + acre_rand_below(&rand, 900000) : 0,
                .needs = &need,
                .kind_count = 1};
            uint64_t expected_ms = earliest_by_force(&book, &ask);
            uint64_t start_ms = UINT64_MAX;
            struct timeline_spot spots[2];
            bool placed = timeline_fit(timeline, &ask, spots, &start_ms);
            REQUIRE(placed == (expected_ms != UINT64_MAX));
            CHECK_U64(start_ms, expected_ms);
            for (uint32_t i = 0; placed && i < gang; i++) {
                REQUIRE_EQ(__builtin_popcountll(spots[i].slots), (int)ask.gpus);
                for (uint32_t slot = 0; slot < book.gpus; slot++) {
                    REQUIRE((spots[i].slots >> slot & 1) == 0 ||
                            slot_serves(&book, spots[i].node, slot, need.milli, start_ms,
                                        ask.duration_ms));
                }
                book.holds[book.count++] =
                    (struct timeline_use){.node = spots[i].node,
                                          .slots = spots[i].slots,
                                          .milli = need.milli,
                                          .from_ms = start_ms,
                                          .until_ms = start_ms + ask.duration_ms};
            }
        }
        timeline_destroy(timeline);
    }
}

/* 10,000 jobs on 64 nodes of 8: the work a job costs stays small. */
static void a_long_queue_costs_little(void) {
    enum { JOBS = 10000 };
    struct timeline *timeline = cluster(64, 8);
    struct acre_rand rand;
    acre_rand_seed(&rand, 5);
    uint64_t last_ms = 0;
    for (int i = 0; i < JOBS; i++) {
        uint64_t roll = acre_rand_below(&rand, 10);
        struct timeline_need need = {
            .slots = ALL(8),
            .milli = roll < 3 ? 100 * (1 + (uint32_t)acre_rand_below(&rand, 9)) : 1000,
            .serves = true};
        struct timeline_ask ask = {
            .replicas = 1,
            .gpus = roll < 7 ? 1 : 1U << acre_rand_below(&rand, 4),
            .duration_ms = MIN_MS * (1 + acre_rand_below(&rand, roll % 2 == 0 ? 60 : 3000)),
            .needs = &need,
            .kind_count = 1};
        uint64_t start_ms;
        REQUIRE(timeline_fit(timeline, &ask, NULL, &start_ms));
        last_ms = ACRE_MAX(last_ms, start_ms);
    }
    CHECK(last_ms > NOW_MS + 1000 * MIN_MS);
    CHECK(timeline_searches(timeline) < (uint64_t)JOBS * 32);
    CHECK(timeline_bytes(timeline) < 8 * 1024 * 1024);
    timeline_destroy(timeline);
}

/* 512 devices on 64 nodes come free one a minute, a node's own an hour apart: a gang begins when
 * the last device that it needs has come free. */
static void a_gang_waits_for_as_many_ends_as_it_has_members(void) {
    static const struct {
        uint32_t replicas;
        int64_t minute;
    } gangs[] = {{2, 2}, {64, 64}, {65, 65}, {300, 300}, {511, 511}, {512, 512}, {513, -1}};
    for (size_t i = 0; i < ACRE_COUNT(gangs); i++) {
        acre_test_context("%u members", gangs[i].replicas);
        struct timeline *timeline = cluster(64, 8);
        for (uint32_t device = 0; device < 512; device++) {
            occupy(timeline, device % 64, UINT64_C(1) << device / 64, 1000, device + 1);
        }
        CHECK_EQ(fit(timeline, gangs[i].replicas, 1, 1000, 1), gangs[i].minute);
        timeline_destroy(timeline);
    }
}

static const struct acre_test tests[] = {
    {"an_idle_cluster_starts_now", an_idle_cluster_starts_now, 0},
    {"free_gpus_of_two_nodes_are_not_one_node", free_gpus_of_two_nodes_are_not_one_node, 0},
    {"shares_of_two_devices_are_not_one_share", shares_of_two_devices_are_not_one_share, 0},
    {"a_hole_is_filled_only_by_what_fits_it", a_hole_is_filled_only_by_what_fits_it, 0},
    {"not_before_and_never_are_kept", not_before_and_never_are_kept, 0},
    {"cpu_and_ram_are_waited_for", cpu_and_ram_are_waited_for, 0},
    {"a_gang_starts_when_all_members_have_room", a_gang_starts_when_all_members_have_room, 0},
    {"random_places_are_the_earliest", random_places_are_the_earliest, 0},
    {"a_long_queue_costs_little", a_long_queue_costs_little, 0},
    {"a_gang_waits_for_as_many_ends_as_it_has_members",
     a_gang_waits_for_as_many_ends_as_it_has_members, 0},
};

ACRE_TEST_MAIN(tests)
