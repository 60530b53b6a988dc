/* The pool alone (GPU-2): blocks come from a counter, streams are numbers that a test moves. The
 * random tests keep a shadow of who may touch which bytes, by what the test itself did. */
#include "support/test.h"

#include "compute/memory/pool.h"
#include "core/rand.h"

#include <stdlib.h>

enum { STREAMS = 8, MIB = 1 << 20, LIVE_MAX = 400, FREED_MAX = 4096 };

struct rig {
    _Atomic uint64_t words[STREAMS];
    uint64_t issued[STREAMS];
    struct memory_pool *pool;
    uint64_t next_region;
};

static void open_rig(struct rig *rig, uint64_t limit_bytes, bool only_past) {
    memset(rig, 0, sizeof(*rig));
    struct pool_options options = {.words = rig->words,
                                   .stream_max = STREAMS,
                                   .limit_bytes = limit_bytes,
                                   .block_min_bytes = 4 * MIB,
                                   .block_max_bytes = 64 * MIB,
                                   .only_past = only_past};
    REQUIRE_EQ(pool_create(&options, &rig->pool, NULL), 0);
}

/* As the front does it, with a driver that has enough. */
static int take(struct rig *rig, uint32_t stream, uint64_t bytes, struct chunk **ret_chunk) {
    int r = pool_alloc(rig->pool, stream, bytes, ret_chunk);
    if (r != ACRE_ENOFIT) {
        return r;
    }
    struct pool_region region = {.handle = rig->next_region + 1};
    r = pool_reserve(rig->pool, bytes, false, &region.bytes);
    if (r == 0) {
        rig->next_region++;
        *ret_chunk = pool_add(rig->pool, &region, bytes);
    }
    return r;
}

static void drop(struct rig *rig, uint32_t stream, struct chunk *chunk) {
    struct pool_point point = {.stream = stream, .sequence = rig->issued[stream]};
    pool_free(rig->pool, chunk, point, NULL, 0);
}

static struct pool_report report_of(struct rig *rig) {
    struct pool_report report;
    pool_check(rig->pool);
    pool_report(rig->pool, &report);
    return report;
}

static void freed_memory_is_one_piece_again(void) {
    struct rig rig;
    open_rig(&rig, UINT64_C(1) << 40, false);
    static struct chunk *chunks[1000];
    for (size_t i = 0; i < ACRE_COUNT(chunks); i++) {
        REQUIRE_EQ(take(&rig, 0, 1 + i % 3000, &chunks[i]), 0);
        CHECK_U64(pool_range(chunks[i]).offset % POOL_GRANULE_BYTES, 0);
    }
    CHECK_U64(report_of(&rig).blocks, 1);
    for (size_t i = 0; i < ACRE_COUNT(chunks); i++) { /* not in order */
        drop(&rig, 0, chunks[i * 7 % ACRE_COUNT(chunks)]);
    }
    struct pool_report report = report_of(&rig);
    CHECK_U64(report.used_bytes, 0);
    CHECK_U64(report.largest_free_bytes, 4 * MIB);
    CHECK_U64(report.free_bytes, report.reserved_bytes);
    CHECK_U64(report.allocations, 1000);
    CHECK_U64(report.hits, 999);
    CHECK_U64(report.frees, 1000);
    struct pool_region region;
    CHECK(pool_pop(rig.pool, 0, &region));
    CHECK_U64(region.bytes, 4 * MIB);
    CHECK(!pool_pop(rig.pool, 0, &region));
    CHECK_U64(report_of(&rig).reserved_bytes, 0);
    pool_destroy(rig.pool);
}

static void blocks_grow_and_large_requests_have_their_own(void) {
    struct rig rig;
    open_rig(&rig, UINT64_C(1) << 40, false);
    static const struct {
        uint64_t request, block;
    } steps[] = {{1, 4 * MIB},         {4 * MIB - 256, 4 * MIB}, /* half of the next or more: own */
                 {1 * MIB, 8 * MIB},   {8 * MIB, 8 * MIB},
                 {6 * MIB, 32 * MIB},  {100 * MIB + 1, 102 * MIB},
                 {30 * MIB, 64 * MIB}, {64 * MIB, 64 * MIB}};
    uint64_t reserved = 0;
    for (size_t i = 0; i < ACRE_COUNT(steps); i++) {
        acre_test_context("step %zu", i);
        uint64_t block;
        REQUIRE_EQ(pool_reserve(rig.pool, steps[i].request, false, &block), 0);
        CHECK_U64(block, steps[i].block);
        struct pool_region region = {.handle = i + 1, .bytes = block};
        pool_add(rig.pool, &region, steps[i].request);
        reserved += block;
        CHECK_U64(report_of(&rig).reserved_bytes, reserved);
    }
    uint64_t block;
    REQUIRE_EQ(pool_reserve(rig.pool, 1, true, &block), 0);
    CHECK_U64(block, 2 * MIB); /* exact: no more than drivers give */
    pool_unreserve(rig.pool, block);
    CHECK_U64(report_of(&rig).reserved_bytes, reserved);
    pool_destroy(rig.pool);
}

/* What would fit when all that was freed has come, and what never would. */
static void room_to_come_is_told(void) {
    struct rig rig;
    open_rig(&rig, 8 * MIB, false);
    CHECK(pool_would_fit(rig.pool, 8 * MIB));
    CHECK(!pool_would_fit(rig.pool, 8 * MIB + 1));
    CHECK(!pool_would_fit(rig.pool, UINT64_MAX));
    struct chunk *chunks[8];
    for (uint32_t i = 0; i < ACRE_COUNT(chunks); i++) { /* four to a block */
        struct pool_region region = {.handle = i + 1, .bytes = 4 * MIB};
        uint64_t block_bytes;
        if (i % 4 == 0) {
            REQUIRE_EQ(pool_reserve(rig.pool, 4 * MIB, true, &block_bytes), 0);
            REQUIRE_EQ(block_bytes, 4 * MIB);
            chunks[i] = pool_add(rig.pool, &region, MIB);
        } else {
            REQUIRE_EQ(pool_alloc(rig.pool, 0, MIB, &chunks[i]), 0);
        }
    }
    CHECK(!pool_would_fit(rig.pool, 1));
    rig.issued[0] = rig.issued[1] = 1;
    drop(&rig, 0, chunks[1]);
    drop(&rig, 1, chunks[2]); /* both are pending, side by side */
    drop(&rig, 0, chunks[5]);
    CHECK(pool_would_fit(rig.pool, 2 * MIB));
    CHECK(!pool_would_fit(rig.pool, 2 * MIB + 1));
    for (size_t i = 4; i < ACRE_COUNT(chunks); i++) {
        if (i != 5) {
            drop(&rig, 1, chunks[i]); /* a block as a whole: there may be another instead */
        }
    }
    CHECK(pool_would_fit(rig.pool, 4 * MIB));
    CHECK(!pool_would_fit(rig.pool, 4 * MIB + 1));
    pool_destroy(rig.pool);
}

static void limit_is_hard(void) { /* GPU-2 */
    struct rig rig;
    open_rig(&rig, 10 * MIB, false);
    struct chunk *a, *b, *c;
    CHECK_EQ(take(&rig, 0, 10 * MIB + 1, &a), ACRE_ELIMIT);
    CHECK_EQ(take(&rig, 0, UINT64_MAX, &a), ACRE_ELIMIT);
    CHECK_EQ(take(&rig, 0, UINT64_MAX - 255, &a), ACRE_ELIMIT);
    REQUIRE_EQ(take(&rig, 0, 6 * MIB, &a), 0);
    REQUIRE_EQ(take(&rig, 0, 4 * MIB, &b), 0); /* the block is cut to what is left */
    CHECK_EQ(take(&rig, 0, 1, &c), ACRE_ELIMIT);
    CHECK_U64(report_of(&rig).reserved_bytes, 10 * MIB);
    drop(&rig, 0, a);
    CHECK_EQ(take(&rig, 0, 7 * MIB, &c), ACRE_ELIMIT);
    uint64_t block; /* within the limit of use, but what is reserved is in the way */
    CHECK_EQ(pool_reserve(rig.pool, 1, false, &block), ACRE_ELIMIT);
    REQUIRE_EQ(take(&rig, 0, 6 * MIB, &c), 0);
    drop(&rig, 0, b);
    drop(&rig, 0, c);
    CHECK_U64(report_of(&rig).peak_bytes, 10 * MIB);
    pool_destroy(rig.pool);
}

static void own_stream_reuses_at_once_others_when_it_has_come(void) { /* GPU-2 */
    struct rig rig;
    open_rig(&rig, UINT64_C(1) << 40, false);
    struct chunk *all, *chunk;
    REQUIRE_EQ(take(&rig, 0, 4 * MIB, &all), 0);
    rig.issued[0] = 5; /* a kernel that uses it is under way */
    drop(&rig, 0, all);
    CHECK_EQ(pool_alloc(rig.pool, 1, 256, &chunk), ACRE_ENOFIT);
    REQUIRE_EQ(pool_alloc(rig.pool, 0, 3 * MIB, &chunk), 0);
    CHECK_U64(pool_range(chunk).offset, 0);
    CHECK_EQ(pool_alloc(rig.pool, 1, 256, &all), ACRE_ENOFIT); /* the rest still waits */
    CHECK_U64(report_of(&rig).pending_bytes, MIB);
    rig.words[0] = 4;
    CHECK_EQ(pool_alloc(rig.pool, 1, 256, &all), ACRE_ENOFIT);
    rig.words[0] = 5;
    CHECK_EQ(pool_alloc(rig.pool, 1, 256, &all), 0);
    CHECK_U64(pool_range(all).offset, 3 * MIB);
    struct pool_point point;
    CHECK(!pool_pending(rig.pool, UINT32_MAX, 0, &point));
    pool_destroy(rig.pool);
}

static void memory_of_the_host_waits_for_its_own_stream_too(void) {
    struct rig rig;
    open_rig(&rig, UINT64_C(1) << 40, true);
    struct chunk *chunk;
    REQUIRE_EQ(take(&rig, 0, 4 * MIB, &chunk), 0);
    rig.issued[0] = 5;
    drop(&rig, 0, chunk);
    CHECK_EQ(pool_alloc(rig.pool, 0, 256, &chunk), ACRE_ENOFIT);
    struct pool_point point = {0};
    REQUIRE(pool_pending(rig.pool, 0, 0, &point));
    CHECK_U64(point.sequence, 5);
    CHECK(!pool_pending(rig.pool, 1, 0, &point));
    rig.words[0] = 5;
    CHECK_EQ(pool_alloc(rig.pool, 0, 256, &chunk), 0);
    CHECK_U64(report_of(&rig).pending_bytes, 0);
    pool_destroy(rig.pool);
}

static void memory_others_use_waits_for_all_of_them(void) {
    struct rig rig;
    open_rig(&rig, UINT64_C(1) << 40, false);
    struct chunk *chunk;
    REQUIRE_EQ(take(&rig, 0, 4 * MIB, &chunk), 0);
    struct pool_point *more = calloc(2, sizeof(*more));
    more[0] = (struct pool_point){.stream = 1, .sequence = 7};
    more[1] = (struct pool_point){.stream = 2, .sequence = 9};
    pool_free(rig.pool, chunk, (struct pool_point){.stream = 0, .sequence = 3}, more, 2);
    static const struct {
        uint64_t words[3];
        uint32_t waits_for; /* stream; STREAMS: none */
    } steps[] = {{{0, 0, 0}, 0}, {{3, 0, 0}, 2}, {{3, 6, 9}, 1}, {{3, 7, 9}, STREAMS}};
    for (size_t i = 0; i < ACRE_COUNT(steps); i++) {
        acre_test_context("step %zu", i);
        for (size_t s = 0; s < 3; s++) {
            rig.words[s] = steps[i].words[s];
        }
        struct pool_point point = {.stream = STREAMS};
        CHECK_EQ(pool_pending(rig.pool, UINT32_MAX, 0, &point), steps[i].waits_for < STREAMS);
        CHECK_U64(point.stream, steps[i].waits_for);
        int r = pool_alloc(rig.pool, 0, 4 * MIB, &chunk); /* not even the stream that freed it */
        CHECK_EQ(r, steps[i].waits_for < STREAMS ? ACRE_ENOFIT : 0);
        pool_check(rig.pool);
    }
    pool_destroy(rig.pool);
}

static void stream_merges_what_it_freed_before_it_takes_a_block(void) {
    struct rig rig;
    open_rig(&rig, UINT64_C(1) << 40, false);
    struct chunk *chunks[4];
    for (size_t i = 0; i < 4; i++) {
        REQUIRE_EQ(take(&rig, 0, MIB, &chunks[i]), 0);
    }
    static const size_t order[] = {2, 0, 3, 1}; /* each at another moment */
    for (size_t i = 0; i < 4; i++) {
        rig.issued[0]++;
        drop(&rig, 0, chunks[order[i]]);
    }
    struct chunk *chunk;
    REQUIRE_EQ(pool_alloc(rig.pool, 0, 4 * MIB, &chunk), 0);
    CHECK_U64(report_of(&rig).blocks, 1);
    drop(&rig, 0, chunk);
    CHECK_EQ(pool_alloc(rig.pool, 1, 4 * MIB, &chunk), ACRE_ENOFIT);
    rig.words[0] = 4;
    CHECK_EQ(pool_alloc(rig.pool, 1, 4 * MIB, &chunk), 0);
    pool_destroy(rig.pool);
}

static void fragmentation_is_seen(void) {
    struct rig rig;
    open_rig(&rig, UINT64_C(1) << 40, false);
    struct chunk *chunks[4];
    for (size_t i = 0; i < 4; i++) {
        REQUIRE_EQ(take(&rig, 0, MIB, &chunks[i]), 0);
    }
    drop(&rig, 0, chunks[0]);
    drop(&rig, 0, chunks[2]);
    struct pool_report report = report_of(&rig);
    CHECK_U64(report.free_bytes, 2 * MIB);
    CHECK_U64(report.largest_free_bytes, MIB);
    struct pool_region region;
    CHECK(!pool_pop(rig.pool, 0, &region)); /* not free as a whole */
    pool_destroy(rig.pool);
}

static void lost_blocks_leave_nothing_behind(void) {
    struct rig rig;
    open_rig(&rig, UINT64_C(1) << 40, false);
    struct chunk *chunks[64];
    for (size_t i = 0; i < ACRE_COUNT(chunks); i++) {
        REQUIRE_EQ(take(&rig, 0, MIB, &chunks[i]), 0);
    }
    rig.issued[0] = 1;
    for (size_t i = 0; i < ACRE_COUNT(chunks); i += 3) {
        struct pool_point *more = i % 2 == 0 ? calloc(1, sizeof(*more)) : NULL;
        if (more != NULL) {
            *more = (struct pool_point){.stream = 1, .sequence = 1};
        }
        pool_free(rig.pool, chunks[i], (struct pool_point){.stream = 0, .sequence = 1}, more,
                  more != NULL);
    }
    struct pool_region *seen;
    CHECK(pool_renew(rig.pool, 0, &seen));
    CHECK(!pool_renew(rig.pool, report_of(&rig).blocks, &seen));
    struct pool_region region;
    uint32_t popped = 0;
    while (pool_pop_any(rig.pool, &region)) {
        popped++;
    }
    CHECK(popped > 1);
    struct pool_report report = report_of(&rig);
    CHECK_U64(report.used_bytes + report.pending_bytes + report.reserved_bytes, 0);
    REQUIRE_EQ(take(&rig, 0, MIB, &chunks[0]), 0);
    pool_destroy(rig.pool);
}

/* --- random --------------------------------------------------------------------------------- */

struct live {
    struct chunk *chunk;
    struct pool_range range;
    uint64_t used_at[STREAMS]; /* last number of work that uses it */
};

struct freed { /* still used by work that has not come */
    struct pool_range range;
    uint64_t until[STREAMS];
    uint32_t stream;
    bool is_shared;
};

struct shadow {
    struct rig rig;
    struct acre_rand rand;
    struct live live[LIVE_MAX];
    struct freed freed[FREED_MAX];
    uint32_t live_count, freed_count;
    bool only_past;
};

static bool overlap(struct pool_range a, struct pool_range b) {
    return a.region == b.region && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

/* Nobody else has these bytes, and whoever had them is done or earlier on the same stream. */
static void check_owner(struct shadow *shadow, struct pool_range range, uint32_t stream) {
    for (uint32_t i = 0; i < shadow->live_count; i++) {
        REQUIRE(!overlap(shadow->live[i].range, range));
    }
    for (uint32_t i = 0; i < shadow->freed_count; i++) {
        const struct freed *freed = &shadow->freed[i];
        for (uint32_t s = 0; s < STREAMS && overlap(freed->range, range); s++) {
            bool is_own = s == stream && !shadow->only_past;
            REQUIRE(shadow->rig.words[s] >= freed->until[s] || is_own);
        }
    }
}

static void play_alloc(struct shadow *shadow) {
    uint32_t stream = (uint32_t)acre_rand_below(&shadow->rand, STREAMS);
    uint64_t bytes =
        1 + acre_rand_below(&shadow->rand, UINT64_C(1) << acre_rand_below(&shadow->rand, 22));
    struct live live = {0};
    int r = take(&shadow->rig, stream, bytes, &live.chunk);
    if (r == ACRE_ELIMIT) {
        return;
    }
    REQUIRE_EQ(r, 0);
    live.range = pool_range(live.chunk);
    CHECK(live.range.bytes >= bytes);
    check_owner(shadow, live.range, stream);
    /* Even when its stream does nothing with it: what it was given before may still use it. */
    shadow->rig.issued[stream] += acre_rand_below(&shadow->rand, 2);
    live.used_at[stream] = shadow->rig.issued[stream];
    shadow->live[shadow->live_count++] = live;
}

static void play_free(struct shadow *shadow) {
    uint32_t at = (uint32_t)acre_rand_below(&shadow->rand, shadow->live_count);
    uint32_t stream = (uint32_t)acre_rand_below(&shadow->rand, STREAMS);
    struct live live = shadow->live[at];
    shadow->live[at] = shadow->live[--shadow->live_count];
    struct freed freed = {.range = live.range, .stream = stream};
    struct pool_point more[STREAMS];
    uint32_t count = 0;
    for (uint32_t s = 0; s < STREAMS; s++) {
        freed.until[s] = s == stream ? shadow->rig.issued[s] : live.used_at[s];
        if (s != stream && live.used_at[s] > shadow->rig.words[s]) {
            more[count++] = (struct pool_point){.stream = s, .sequence = live.used_at[s]};
        }
    }
    struct pool_point *given = count > 0 ? calloc(count, sizeof(*given)) : NULL;
    if (given != NULL) {
        memcpy(given, more, count * sizeof(*given));
    }
    pool_free(shadow->rig.pool, live.chunk,
              (struct pool_point){.stream = stream, .sequence = shadow->rig.issued[stream]}, given,
              count);
    if (shadow->freed_count < FREED_MAX) {
        shadow->freed[shadow->freed_count++] = freed;
    }
}

static void play_move(struct shadow *shadow) {
    uint32_t s = (uint32_t)acre_rand_below(&shadow->rand, STREAMS);
    uint64_t left = shadow->rig.issued[s] - shadow->rig.words[s];
    shadow->rig.words[s] += acre_rand_below(&shadow->rand, left + 1);
    for (uint32_t i = 0; i < shadow->freed_count;) {
        bool is_done = true;
        for (uint32_t t = 0; t < STREAMS; t++) {
            is_done = is_done && shadow->rig.words[t] >= shadow->freed[i].until[t];
        }
        if (is_done) {
            shadow->freed[i] = shadow->freed[--shadow->freed_count];
        } else {
            i++;
        }
    }
}

static void play(uint64_t seed, bool only_past, uint64_t limit_bytes, uint32_t steps) {
    static struct shadow shadow;
    memset(&shadow, 0, sizeof(shadow));
    acre_test_context("seed %llu", (unsigned long long)seed);
    open_rig(&shadow.rig, limit_bytes, only_past);
    shadow.only_past = only_past;
    acre_rand_seed(&shadow.rand, seed);
    for (uint32_t i = 0; i < steps; i++) {
        uint64_t what = acre_rand_below(&shadow.rand, 100);
        if (what < 45 && shadow.live_count < LIVE_MAX) {
            play_alloc(&shadow);
        } else if (what < 80 && shadow.live_count > 0) {
            play_free(&shadow);
        } else if (what < 90 && shadow.live_count > 0) { /* another stream uses it */
            uint32_t s = (uint32_t)acre_rand_below(&shadow.rand, STREAMS);
            uint32_t at = (uint32_t)acre_rand_below(&shadow.rand, shadow.live_count);
            shadow.live[at].used_at[s] = ++shadow.rig.issued[s];
        } else if (what < 97) {
            play_move(&shadow);
        } else if (what < 98) {
            struct pool_region region;
            pool_pop(shadow.rig.pool, 0, &region);
        } else if (i % 16 == 0) {
            pool_check(shadow.rig.pool);
        }
    }
    while (shadow.live_count > 0) {
        play_free(&shadow);
    }
    for (uint32_t s = 0; s < STREAMS; s++) {
        shadow.rig.words[s] = shadow.rig.issued[s];
    }
    struct pool_report report = report_of(&shadow.rig);
    CHECK_U64(report.used_bytes + report.pending_bytes, 0);
    struct pool_region region;
    while (pool_pop(shadow.rig.pool, 0, &region)) {
    }
    CHECK_U64(report_of(&shadow.rig).reserved_bytes, 0); /* all merged, all given back */
    pool_destroy(shadow.rig.pool);
}

static void never_two_owners(void) { /* GPU-2 */
    for (uint64_t seed = 1; seed <= 40; seed++) {
        play(seed, false, UINT64_C(1) << 40, 8000);
    }
}

static void never_two_owners_with_little_room(void) {
    for (uint64_t seed = 100; seed <= 140; seed++) {
        play(seed, false, 12 * MIB, 8000);
    }
}

static void never_two_owners_of_host_memory(void) {
    for (uint64_t seed = 200; seed <= 220; seed++) {
        play(seed, true, 64 * MIB, 8000);
    }
}

static const struct acre_test tests[] = {
    {"freed_memory_is_one_piece_again", freed_memory_is_one_piece_again, 0},
    {"blocks_grow_and_large_requests_have_their_own", blocks_grow_and_large_requests_have_their_own,
     0},
    {"room_to_come_is_told", room_to_come_is_told, 0},
    {"limit_is_hard", limit_is_hard, 0},
    {"own_stream_reuses_at_once_others_when_it_has_come",
     own_stream_reuses_at_once_others_when_it_has_come, 0},
    {"memory_of_the_host_waits_for_its_own_stream_too",
     memory_of_the_host_waits_for_its_own_stream_too, 0},
    {"memory_others_use_waits_for_all_of_them", memory_others_use_waits_for_all_of_them, 0},
    {"stream_merges_what_it_freed_before_it_takes_a_block",
     stream_merges_what_it_freed_before_it_takes_a_block, 0},
    {"fragmentation_is_seen", fragmentation_is_seen, 0},
    {"lost_blocks_leave_nothing_behind", lost_blocks_leave_nothing_behind, 0},
    {"never_two_owners", never_two_owners, 0},
    {"never_two_owners_with_little_room", never_two_owners_with_little_room, 0},
    {"never_two_owners_of_host_memory", never_two_owners_of_host_memory, 0},
};

ACRE_TEST_MAIN(tests)
