/* compute_pool.c - the pool: reuse, numbers, limits, pressure, trimming, canaries, and that no two
 * buffers ever share a byte, whoever allocates and frees them. */
#include "conformance/compute_suite.h"

#include <stdio.h>
#include <stdlib.h>

static struct acre_memory_report report_of(struct acre_context *context) {
    struct acre_memory_report report;
    acre_memory_report(context, &report);
    return report;
}

static void pool_reuses_what_was_freed(void) { /* GPU-2 */
    struct kit kit;
    kit_open(&kit);
    kit_free(&kit, kit_buffer(&kit, ACRE_MEMORY_DEVICE, 1 << 20));
    struct acre_memory_report before = report_of(kit.context);
    for (int i = 0; i < 1000; i++) {
        kit_free(&kit, kit_buffer(&kit, ACRE_MEMORY_DEVICE, 1 << 20));
    }
    struct acre_memory_report after = report_of(kit.context);
    CHECK_U64(after.allocations - before.allocations, 1000);
    CHECK_U64(after.frees - before.frees, 1000);
    CHECK_U64(after.hits - before.hits, 1000); /* none reached the driver */
    CHECK_U64(after.reserved_bytes, before.reserved_bytes);
    CHECK_U64(after.blocks, before.blocks);
    CHECK_U64(after.used_bytes, 0);
    kit_close(&kit);
}

static void pool_counts_right(void) { /* GPU-2 */
    struct kit kit;
    kit_open_with(&kit, (struct acre_context_options){.memory_limit_bytes = 256 * KIT_MIB});
    struct acre_memory_report report = report_of(kit.context);
    CHECK_U64(report.limit_bytes, 256 * KIT_MIB);
    CHECK_U64(report.used_bytes, 0);
    CHECK_EQ(report.pressure, ACRE_PRESSURE_HEALTHY);
    struct acre_buffer buffers[10];
    uint64_t asked = 0;
    for (uint32_t i = 0; i < 10; i++) {
        buffers[i] = kit_buffer(&kit, ACRE_MEMORY_DEVICE, (i + 1) * 100000);
        asked += (i + 1) * 100000;
        report = report_of(kit.context);
        CHECK(report.used_bytes >= asked && report.used_bytes <= asked + (i + 1) * 65536);
        CHECK(report.reserved_bytes >= report.used_bytes);
        CHECK(report.peak_bytes >= report.used_bytes);
        CHECK(report.fragmentation >= 0 && report.fragmentation <= 1);
        CHECK(report.blocks > 0);
    }
    uint64_t peak = report.peak_bytes;
    for (uint32_t i = 0; i < 10; i += 2) {
        kit_free(&kit, buffers[i]);
    }
    OK(acre_stream_sync(kit.stream, ACRE_FOREVER, ERR));
    report = report_of(kit.context);
    CHECK(report.used_bytes < asked);
    CHECK_U64(report.peak_bytes, peak);
    CHECK(report.largest_free_bytes > 0);
    for (uint32_t i = 1; i < 10; i += 2) {
        kit_free(&kit, buffers[i]);
    }
    struct acre_buffer pinned = kit_buffer(&kit, ACRE_MEMORY_PINNED, 1 << 20);
    CHECK(report_of(kit.context).pinned_bytes >= (1 << 20));
    CHECK_U64(report_of(kit.context).used_bytes, 0); /* the host's is not the device's */
    kit_free(&kit, pinned);
    kit_close(&kit);
}

static void pool_holds_tenants_to_their_limit(void) { /* GPU-2 */
    struct kit kit;
    kit_open_with(
        &kit, (struct acre_context_options){.tenant = "small", .memory_limit_bytes = 64 * KIT_MIB});
    struct acre_buffer buffers[64];
    uint32_t count = 0;
    int r = 0;
    struct acre_buffer buffer;
    FAILS(acre_buffer_alloc(kit.stream, ACRE_MEMORY_DEVICE, 65 * KIT_MIB, &buffer, ERR),
          ACRE_ELIMIT, "small");
    while (count < 64) {
        r = acre_buffer_alloc(kit.stream, ACRE_MEMORY_DEVICE, 4 * KIT_MIB, &buffers[count], ERR);
        if (r < 0) {
            break;
        }
        count++;
    }
    CHECK(count >= 14 && count <= 16); /* 64 / 4, less what rounding takes */
    FAILS(acre_buffer_alloc(kit.stream, ACRE_MEMORY_DEVICE, 4 * KIT_MIB, &buffer, ERR), ACRE_ELIMIT,
          "small", "buffer");
    CHECK_EQ(r, ACRE_ELIMIT);
    CHECK_EQ(report_of(kit.context).pressure, ACRE_PRESSURE_CRITICAL);
    struct acre_context *other = kit_context(&kit, (struct acre_context_options){.tenant = "b"});
    struct acre_stream *stream = NULL; /* another tenant has its own */
    OK(acre_stream_create(other, &stream, ERR));
    OK(acre_buffer_alloc(stream, ACRE_MEMORY_DEVICE, 8 * KIT_MIB, &buffer, ERR));
    acre_context_close(other);
    kit_free(&kit, buffers[--count]); /* room for one again */
    OK(acre_buffer_alloc(kit.stream, ACRE_MEMORY_DEVICE, 4 * KIT_MIB, &buffers[count], ERR));
    count++;
    while (count > 0) {
        kit_free(&kit, buffers[--count]);
    }
    kit_close(&kit);
}

static void pool_tells_that_there_is_no_more(void) {
    static const uint64_t sizes[] = {UINT64_C(1) << 50, UINT64_MAX, UINT64_MAX - 4095};
    struct kit kit;
    kit_open(&kit);
    struct kit_held before = kit_held(kit.context);
    struct acre_buffer buffer = {0};
    for (size_t i = 0; i < ACRE_COUNT(sizes); i++) {
        for (int kind = 0; kind < 3; kind++) {
            acre_test_context("%#llx bytes of kind %d", (unsigned long long)sizes[i], kind);
            struct acre_error *err = ERR;
            int r = acre_buffer_alloc(kit.stream, (enum acre_memory)kind, sizes[i], &buffer, err);
            CHECK(r == ACRE_ENOMEM || r == ACRE_ELIMIT);
            CHECK(err->text[0] != '\0');
            CHECK_U64(buffer.id, 0);
        }
    }
    FAILS(acre_buffer_alloc(kit.stream, ACRE_MEMORY_DEVICE, 0, &buffer, ERR), ACRE_EINVALID, "0");
    FAILS(acre_buffer_alloc(kit.stream, (enum acre_memory)9, 64, &buffer, ERR), ACRE_EINVALID, "9");
    CHECK_HELD(kit.context, &before);
    kit_free(&kit, kit_buffer(&kit, ACRE_MEMORY_DEVICE, 4096)); /* the next works */
    kit_close(&kit);
}

struct pressed {
    enum acre_pressure levels[16];
    uint32_t count;
    struct acre_context *context;
    struct acre_stream *stream;
    struct acre_buffer spare; /* freed when it becomes critical */
};

static void on_pressure(void *user, struct acre_context *context, enum acre_pressure level) {
    struct pressed *self = user;
    CHECK(context == self->context);
    if (self->count < ACRE_COUNT(self->levels)) {
        self->levels[self->count++] = level;
    }
    if (level == ACRE_PRESSURE_CRITICAL && self->spare.id != 0) {
        struct acre_buffer spare = self->spare;
        self->spare.id = 0;
        OK(acre_buffer_free(self->stream, spare, ERR));
        OK(acre_memory_trim(context, 0, ERR));
    }
}

static void pool_tells_of_pressure(void) { /* GPU-2: < 50 %, < 80 %, more */
    struct kit kit;
    kit_open_with(&kit, (struct acre_context_options){.memory_limit_bytes = 100 * KIT_MIB});
    struct pressed pressed = {.context = kit.context, .stream = kit.stream};
    acre_memory_on_pressure(kit.context, on_pressure, &pressed);
    struct acre_buffer a = kit_buffer(&kit, ACRE_MEMORY_DEVICE, 40 * KIT_MIB);
    CHECK_EQ(pressed.count, 0);
    struct acre_buffer b = kit_buffer(&kit, ACRE_MEMORY_DEVICE, 20 * KIT_MIB); /* 60 % */
    REQUIRE_EQ(pressed.count, 1);
    CHECK_EQ(pressed.levels[0], ACRE_PRESSURE_WARNING);
    CHECK_EQ(report_of(kit.context).pressure, ACRE_PRESSURE_WARNING);
    struct acre_buffer c = kit_buffer(&kit, ACRE_MEMORY_DEVICE, 25 * KIT_MIB); /* 85 % */
    REQUIRE_EQ(pressed.count, 2);
    CHECK_EQ(pressed.levels[1], ACRE_PRESSURE_CRITICAL);
    kit_free(&kit, a); /* 45 % */
    REQUIRE_EQ(pressed.count, 3);
    CHECK_EQ(pressed.levels[2], ACRE_PRESSURE_HEALTHY);
    pressed.spare = b;                                      /* let go of from within */
    a = kit_buffer(&kit, ACRE_MEMORY_DEVICE, 40 * KIT_MIB); /* 85 %, then 65 % */
    CHECK_U64(pressed.spare.id, 0);
    CHECK(pressed.count >= 4);
    CHECK_EQ(report_of(kit.context).pressure, ACRE_PRESSURE_WARNING);
    acre_memory_on_pressure(kit.context, NULL, NULL);
    uint32_t count = pressed.count;
    kit_free(&kit, a);
    kit_free(&kit, c);
    CHECK_EQ(pressed.count, count);
    kit_close(&kit);
}

static void pool_trims(void) {
    struct kit kit;
    kit_open(&kit);
    struct acre_buffer kept = kit_buffer(&kit, ACRE_MEMORY_DEVICE, 1 << 20);
    OK(acre_fill(kit.stream, kept, 0, 1 << 20, 0x5a, 1, ERR));
    for (int i = 0; i < 3; i++) {
        struct acre_buffer buffer = kit_buffer(&kit, ACRE_MEMORY_DEVICE, 40 * KIT_MIB);
        struct acre_buffer other = kit_buffer(&kit, ACRE_MEMORY_DEVICE, 50 * KIT_MIB);
        kit_free(&kit, buffer);
        kit_free(&kit, other);
    }
    OK(acre_stream_sync(kit.stream, ACRE_FOREVER, ERR));
    uint64_t reserved = report_of(kit.context).reserved_bytes;
    CHECK(reserved >= 91 * KIT_MIB);
    OK(acre_memory_trim(kit.context, UINT64_MAX, ERR)); /* enough already */
    CHECK_U64(report_of(kit.context).reserved_bytes, reserved);
    OK(acre_memory_trim(kit.context, 0, ERR));
    struct acre_memory_report report = report_of(kit.context);
    CHECK(report.reserved_bytes < reserved);
    CHECK(report.reserved_bytes >= report.used_bytes);
    uint8_t last = 0;
    OK(acre_copy_out(kit.stream, &last, kept, (1 << 20) - 1, 1, ERR));
    CHECK_EQ(last, 0x5a); /* what is in use stays */
    kit_free(&kit, kept);
    OK(acre_stream_sync(kit.stream, ACRE_FOREVER, ERR));
    OK(acre_memory_trim(kit.context, 0, ERR));
    CHECK_U64(report_of(kit.context).reserved_bytes, 0);
    CHECK_EQ(report_of(kit.context).blocks, 0);
    kit_close(&kit);
}

static void pool_canaries_find_overruns(void) {
    struct kit kit;
    kit_open_with(&kit, (struct acre_context_options){.debug = true});
    enum { WORDS = 1000 };
    struct acre_buffer fine = kit_buffer(&kit, ACRE_MEMORY_DEVICE, WORDS * 4);
    struct acre_buffer over = kit_buffer(&kit, ACRE_MEMORY_DEVICE, WORDS * 4);
    struct acre_buffer under = kit_buffer(&kit, ACRE_MEMORY_DEVICE, WORDS * 4);
    RUN(&kit, "put", kit_grid(1, 1), ACRE_BUFFER(fine), ACRE_U64(WORDS - 1), ACRE_U32(1));
    RUN(&kit, "put", kit_grid(1, 1), ACRE_BUFFER(over), ACRE_U64(WORDS), ACRE_U32(1));
    RUN(&kit, "put", kit_grid(1, 1), ACRE_BUFFER(under), ACRE_U64(UINT64_MAX), ACRE_U32(1));
    kit_free(&kit, fine);
    FAILS(acre_buffer_free(kit.stream, over, ERR), ACRE_ECORRUPT, "4000"); /* its size */
    FAILS(acre_buffer_free(kit.stream, under, ERR), ACRE_ECORRUPT, "4000");
    /* Told, and freed all the same: kit_close finds no buffer left. */
    struct acre_buffer next = kit_buffer(&kit, ACRE_MEMORY_DEVICE, WORDS * 4);
    kit_free(&kit, next);
    kit_close(&kit);
}

struct owner {
    struct kit *kit;
    struct acre_kernel *affine;
    uint64_t seed;
    uint32_t rounds;
    pthread_t thread;
};

/* Buffers filled with what only this thread knows, kept for a while, looked at before they go. */
static void *own(void *user) {
    struct owner *self = user;
    enum { HELD = 16 };
    struct {
        struct acre_buffer buffer;
        uint32_t words, value;
    } held[HELD] = {0};
    struct acre_rand rand;
    struct acre_stream *stream = NULL;
    uint32_t *back = malloc(200000 * 4);
    REQUIRE(back != NULL);
    acre_rand_seed(&rand, self->seed);
    OK(acre_stream_create(self->kit->context, &stream, ERR));
    for (uint32_t i = 0; i < self->rounds + HELD; i++) {
        uint32_t at = i < self->rounds ? (uint32_t)acre_rand_below(&rand, HELD) : i % HELD;
        if (held[at].buffer.id != 0) {
            OK(acre_copy_out(stream, back, held[at].buffer, 0, held[at].words * 4, ERR));
            for (uint32_t j = 0; j < held[at].words; j++) {
                REQUIRE_EQ(back[j], held[at].value);
            }
            OK(acre_buffer_free(stream, held[at].buffer, ERR));
            held[at].buffer.id = 0;
        }
        if (i < self->rounds) {
            uint32_t words =
                1 + (uint32_t)(acre_rand_next(&rand) >> (47 + acre_rand_below(&rand, 14)));
            uint32_t value = (uint32_t)acre_rand_next(&rand);
            OK(acre_buffer_alloc(stream, ACRE_MEMORY_DEVICE, words * 4, &held[at].buffer, ERR));
            OK(acre_fill(stream, held[at].buffer, 0, words * 4, value, 4, ERR));
            OK(acre_launch(
                stream, self->affine, acre_grid_for(words),
                ARGS(ACRE_BUFFER(held[at].buffer), ACRE_U32(3), ACRE_U32(1), ACRE_U32(words)),
                ERR));
            held[at].words = words;
            held[at].value = value * 3 + 1;
        }
    }
    acre_stream_destroy(stream);
    free(back);
    return NULL;
}

static void pool_never_gives_memory_twice(void) { /* GPU-2: never two owners for one buffer */
    struct kit kit;
    kit_open(&kit);
    struct owner owners[4];
    for (uint32_t i = 0; i < 4; i++) {
        owners[i] = (struct owner){.kit = &kit,
                                   .affine = kit_kernel(&kit, "affine"),
                                   .seed = kit_choice.seed + i,
                                   .rounds = 300};
        REQUIRE_EQ(pthread_create(&owners[i].thread, NULL, own, &owners[i]), 0);
    }
    for (uint32_t i = 0; i < 4; i++) {
        pthread_join(owners[i].thread, NULL);
    }
    kit_close(&kit);
}

/* Freed on one stream while another still works on it: nobody gets it before that is done. */
static void pool_waits_for_other_streams(void) {
    struct kit kit;
    kit_open(&kit);
    struct acre_stream *slow = NULL;
    OK(acre_stream_create(kit.context, &slow, ERR));
    enum { WORDS = 100000 };
    static uint32_t back[WORDS];
    (void)kit_kernel(&kit, "gate");
    struct acre_buffer buffer = kit_buffer(&kit, ACRE_MEMORY_DEVICE, sizeof(back));
    OK(acre_stream_sync(kit.stream, ACRE_FOREVER, ERR));
    struct kit_gate gate;
    kit_gate_close(&kit, slow, &gate);
    OK(acre_fill(slow, buffer, 0, sizeof(back), 0xbad, 4, ERR)); /* behind the gate */
    kit_gate_open_in(&gate, 1000);
    kit_free(&kit, buffer);
    struct acre_buffer next = kit_buffer(&kit, ACRE_MEMORY_DEVICE, sizeof(back));
    OK(acre_fill(kit.stream, next, 0, sizeof(back), 0x900d, 4, ERR));
    OK(acre_stream_sync(kit.stream, ACRE_FOREVER, ERR));
    kit_gate_open(&gate);
    OK(acre_stream_sync(slow, 20000, ERR));
    kit_get(&kit, back, next, sizeof(back));
    CHECK_U64(back[0], 0x900d);
    CHECK_U64(back[WORDS - 1], 0x900d);
    kit_gate_finish(&gate);
    kit_free(&kit, next);
    acre_stream_destroy(slow);
    kit_close(&kit);
}

/* A small buffer leaves what remains of a small limit to others. */
static void pool_keeps_room_under_small_limits(void) {          /* GPU-2 */
    static const uint64_t limits[] = {8, 16, 41, 64, 100, 256}; /* MiB */
    for (size_t i = 0; i < ACRE_COUNT(limits); i++) {
        acre_test_context("%llu MiB", (unsigned long long)limits[i]);
        struct kit kit;
        uint64_t limit = limits[i] * KIT_MIB;
        kit_open_with(&kit, (struct acre_context_options){.memory_limit_bytes = limit});
        struct acre_buffer small = kit_buffer(&kit, ACRE_MEMORY_DEVICE, 1024);
        struct acre_buffer large = kit_buffer(&kit, ACRE_MEMORY_DEVICE, limit * 7 / 8);
        CHECK(report_of(kit.context).reserved_bytes <= limit);
        kit_free(&kit, large);
        kit_free(&kit, small);
        kit_close(&kit);
    }
}

/* Used last on a stream that was given nothing since, freed on another: that one has it again, and
 * a trim gives it back, though nobody comes back to the first. */
static void pool_has_back_what_idle_streams_used(void) {
    enum { BYTES = 48 * KIT_MIB };
    struct kit kit;
    kit_open_with(&kit, (struct acre_context_options){.memory_limit_bytes = 64 * KIT_MIB});
    struct acre_stream *user = NULL;
    OK(acre_stream_create(kit.context, &user, ERR));
    struct acre_buffer buffer;
    OK(acre_buffer_alloc(user, ACRE_MEMORY_DEVICE, BYTES, &buffer, ERR));
    OK(acre_fill(user, buffer, 0, BYTES, 1, 1, ERR));
    kit_free(&kit, buffer);
    buffer = kit_buffer(&kit, ACRE_MEMORY_DEVICE, BYTES); /* no room for two */
    OK(acre_stream_sync(kit.stream, ACRE_FOREVER, ERR));
    OK(acre_fill(user, buffer, 0, BYTES, 2, 1, ERR));
    kit_free(&kit, buffer);
    double begun = kit_seconds();
    do { /* the fill may be under way for a while */
        OK(acre_memory_trim(kit.context, 0, ERR));
    } while (report_of(kit.context).reserved_bytes >= BYTES && kit_seconds() - begun < 10);
    CHECK(report_of(kit.context).reserved_bytes < BYTES);
    acre_stream_destroy(user);
    kit_close(&kit);
}

enum { SHARERS = 2, SHARER_ROUNDS = 1000 };

/* Never more than one buffer at a time, of half of what there is; by two streams in turn, so
 * that what one freed is the other's only when it is over. */
static void *share_memory(void *user) {
    struct kit *kit = user;
    struct acre_stream *streams[2] = {NULL, NULL};
    struct acre_error err = {0};
    int r = acre_stream_create(kit->context, &streams[0], &err);
    r = r == 0 ? acre_stream_create(kit->context, &streams[1], &err) : r;
    for (uint32_t i = 0; i < SHARER_ROUNDS && r == 0; i++) {
        struct acre_stream *stream = streams[i % 2];
        struct acre_buffer buffer;
        r = acre_buffer_alloc(stream, ACRE_MEMORY_DEVICE, KIT_MIB, &buffer, &err);
        for (uint32_t k = 0; k < 4 && r == 0; k++) {
            r = acre_fill(stream, buffer, 0, KIT_MIB, 1, 4, &err);
        }
        r = r == 0 ? acre_buffer_free(stream, buffer, &err) : r;
        if (r == 0 && i % 16 < 2) { /* or the others have their turn when this one ends */
            r = acre_stream_sync(stream, ACRE_FOREVER, &err);
        }
    }
    acre_test_context("%s", err.text);
    CHECK_EQ(r, 0);
    acre_stream_destroy(streams[0]);
    acre_stream_destroy(streams[1]);
    return NULL;
}

/* There is always room for everyone: who waits is not refused because another was faster. */
static void pool_refuses_nobody_while_there_is_room(void) { /* GPU-2 */
    struct kit kit;
    kit_open_with(&kit, (struct acre_context_options){.memory_limit_bytes = SHARERS * KIT_MIB});
    pthread_t threads[SHARERS];
    for (size_t i = 0; i < SHARERS; i++) {
        REQUIRE_EQ(pthread_create(&threads[i], NULL, share_memory, &kit), 0);
    }
    for (size_t i = 0; i < SHARERS; i++) {
        pthread_join(threads[i], NULL);
    }
    kit_close(&kit);
}

static const struct acre_test tests[] = {
    TEST(pool_reuses_what_was_freed),
    TEST(pool_counts_right),
    TEST(pool_holds_tenants_to_their_limit),
    TEST(pool_tells_that_there_is_no_more),
    TEST(pool_tells_of_pressure),
    TEST(pool_trims),
    TEST(pool_canaries_find_overruns),
    TEST(pool_never_gives_memory_twice),
    TEST(pool_waits_for_other_streams),
    TEST(pool_keeps_room_under_small_limits),
    TEST(pool_refuses_nobody_while_there_is_room),
    TEST(pool_has_back_what_idle_streams_used),
};
SUITE(compute_pool_suite, tests);
