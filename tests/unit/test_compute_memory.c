/* Memory of a context as a whole (GPU-2): report, pressure, limits, an exhausted device, trim, and
 * what `debug` finds. */
#include "support/seat_double.h"
#include "support/test.h"

#include "compute/memory/buffer.h"

#include <stdlib.h>

enum { MIB = 1 << 20 };

/* Linked with --wrap=calloc: the host has no more memory for what the front itself keeps. Large
 * pieces are the double's device memory. */
static int callocs_left = -1; /* -1: no end */
void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);

void *__wrap_calloc(size_t count, size_t size) {
    if (callocs_left < 0 || count * size >= MIB) {
        return __real_calloc(count, size);
    }
    callocs_left -= callocs_left > 0;
    return callocs_left > 0 ? __real_calloc(count, size) : NULL;
}

struct rig {
    struct acre_compute *compute;
    struct acre_context *context;
    struct acre_stream *a, *b;
};

static struct rig open_rig(const struct double_options *options) {
    struct rig rig = {.compute = double_open(options, 1)};
    rig.context = double_context(rig.compute, 0);
    REQUIRE_EQ(acre_stream_create(rig.context, &rig.a, NULL), 0);
    REQUIRE_EQ(acre_stream_create(rig.context, &rig.b, NULL), 0);
    return rig;
}

static struct acre_buffer make(struct acre_stream *stream, uint64_t bytes) {
    struct acre_buffer buffer = {0};
    REQUIRE_EQ(acre_buffer_alloc(stream, ACRE_MEMORY_DEVICE, bytes, &buffer, NULL), 0);
    return buffer;
}

static void report_adds_up(void) {
    struct rig rig = open_rig(&(struct double_options){.limit_bytes = 2048ULL * MIB});
    struct acre_buffer buffers[4];
    for (size_t i = 0; i < 4; i++) {
        buffers[i] = make(rig.a, 8 * MIB - 100); /* in whole granules: 8 MiB */
    }
    CHECK_EQ(acre_buffer_free(rig.a, buffers[0], NULL), 0);
    CHECK_EQ(acre_buffer_free(rig.a, buffers[2], NULL), 0);
    struct acre_buffer pinned;
    REQUIRE_EQ(acre_buffer_alloc(rig.a, ACRE_MEMORY_PINNED, 1, &pinned, NULL), 0);
    struct acre_memory_report report;
    acre_memory_report(rig.context, &report);
    CHECK_U64(report.limit_bytes, 2048ULL * MIB);
    CHECK_U64(report.used_bytes, 16 * MIB);
    CHECK_U64(report.peak_bytes, 32 * MIB);
    CHECK_U64(report.reserved_bytes, 32 * MIB);
    CHECK_U64(report.largest_free_bytes, 8 * MIB);
    CHECK_NEAR(report.fragmentation, 0.5, 1e-9);
    CHECK_U64(report.blocks, 1);
    CHECK_U64(report.allocations, 5);
    CHECK_U64(report.frees, 2);
    CHECK_U64(report.hits, 3); /* the first of each kind went to the driver */
    CHECK_U64(report.pinned_bytes, 256);
    CHECK_EQ(report.pressure, ACRE_PRESSURE_HEALTHY);
    CHECK_EQ(acre_memory_trim(rig.context, 0, NULL), 0); /* in use: stays */
    CHECK_EQ(acre_buffer_free(rig.a, buffers[1], NULL), 0);
    CHECK_EQ(acre_buffer_free(rig.a, buffers[3], NULL), 0);
    acre_memory_report(rig.context, &report);
    CHECK_NEAR(report.fragmentation, 0, 1e-9);
    CHECK_U64(report.reserved_bytes, 32 * MIB);                 /* cached */
    CHECK_EQ(acre_memory_trim(rig.context, 32 * MIB, NULL), 0); /* as much may stay */
    acre_memory_report(rig.context, &report);
    CHECK_U64(report.reserved_bytes, 32 * MIB);
    CHECK_EQ(acre_memory_trim(rig.context, 32 * MIB - 1, NULL), 0);
    acre_memory_report(rig.context, &report);
    CHECK_U64(report.reserved_bytes, 0);
    CHECK_U64(double_counts(rig.context).device_bytes, 0);
    double_close(rig.compute);
}

struct levels {
    enum acre_pressure seen[16];
    uint32_t count;
    struct acre_stream *stream;
    struct acre_buffer victim; /* freed when it becomes critical */
};

static void note_level(void *user, struct acre_context *context, enum acre_pressure level) {
    struct levels *levels = user;
    REQUIRE(levels->count < ACRE_COUNT(levels->seen));
    levels->seen[levels->count++] = level;
    if (level == ACRE_PRESSURE_CRITICAL && levels->victim.id != 0) {
        struct acre_buffer victim = levels->victim;
        levels->victim.id = 0;
        CHECK_EQ(acre_buffer_free(levels->stream, victim, NULL), 0);
        CHECK_EQ(acre_memory_trim(context, 0, NULL), 0);
    }
}

static void pressure_is_told_when_it_changes(void) {
    struct rig rig = open_rig(&(struct double_options){.limit_bytes = 100 * MIB});
    struct levels levels = {.stream = rig.a};
    acre_memory_on_pressure(rig.context, note_level, &levels);
    /* Steps of use, in percent of the limit, and the level after each. */
    static const struct {
        int percent; /* negative: free the last */
        enum acre_pressure level;
    } steps[] = {{49, ACRE_PRESSURE_HEALTHY},  {1, ACRE_PRESSURE_WARNING},
                 {29, ACRE_PRESSURE_WARNING},  {1, ACRE_PRESSURE_CRITICAL},
                 {20, ACRE_PRESSURE_CRITICAL}, {-1, ACRE_PRESSURE_CRITICAL},
                 {-1, ACRE_PRESSURE_WARNING},  {-1, ACRE_PRESSURE_WARNING},
                 {-1, ACRE_PRESSURE_HEALTHY},  {-1, ACRE_PRESSURE_HEALTHY}};
    struct acre_buffer stack[8];
    uint32_t depth = 0;
    for (size_t i = 0; i < ACRE_COUNT(steps); i++) {
        acre_test_context("step %zu", i);
        if (steps[i].percent > 0) {
            stack[depth++] = make(rig.a, (uint64_t)steps[i].percent * MIB);
        } else {
            CHECK_EQ(acre_buffer_free(rig.a, stack[--depth], NULL), 0);
        }
        struct acre_memory_report report;
        acre_memory_report(rig.context, &report);
        CHECK_EQ(report.pressure, steps[i].level);
    }
    static const enum acre_pressure expect[] = {ACRE_PRESSURE_WARNING, ACRE_PRESSURE_CRITICAL,
                                                ACRE_PRESSURE_WARNING, ACRE_PRESSURE_HEALTHY};
    acre_test_context("%s", "");
    REQUIRE_EQ(levels.count, ACRE_COUNT(expect));
    for (size_t i = 0; i < ACRE_COUNT(expect); i++) {
        CHECK_EQ(levels.seen[i], expect[i]);
    }
    levels.victim = make(rig.a, 60 * MIB);
    struct acre_buffer buffer = make(rig.a, 30 * MIB); /* the function frees the other one */
    CHECK_EQ(levels.seen[levels.count - 1], ACRE_PRESSURE_HEALTHY);
    acre_memory_on_pressure(rig.context, NULL, NULL);
    uint32_t count = levels.count;
    make(rig.a, 60 * MIB);
    CHECK_U64(levels.count, count);
    CHECK_EQ(acre_buffer_free(rig.a, buffer, NULL), 0);
    double_close(rig.compute);
}

static void limit_counts_what_is_cached(void) {
    struct rig rig = open_rig(&(struct double_options){.limit_bytes = 64 * MIB});
    struct acre_buffer a = make(rig.a, 30 * MIB);
    struct acre_buffer b = make(rig.a, 30 * MIB);
    CHECK_EQ(acre_buffer_free(rig.a, a, NULL), 0);
    struct acre_buffer c = {0};
    struct acre_error err = {0};
    /* What is free is in the way of one larger block: given back, and taken again. */
    CHECK_EQ(acre_buffer_free(rig.a, b, NULL), 0);
    CHECK_EQ(acre_buffer_alloc(rig.a, ACRE_MEMORY_DEVICE, 50 * MIB, &c, &err), 0);
    CHECK_EQ(acre_buffer_alloc(rig.a, ACRE_MEMORY_DEVICE, 15 * MIB, &a, &err), ACRE_ELIMIT);
    CHECK_HAS(err.text, "the limit of tenant 'test' is 64 MiB, of which 1 buffer holds 50 MiB");
    CHECK(double_counts(rig.context).device_bytes <= 64 * MIB);
    double_close(rig.compute);
}

static void exhausted_device_is_emptied_of_what_is_cached(void) {
    struct rig rig = open_rig(&(struct double_options){.memory_bytes = 100 * MIB});
    struct acre_buffer held = make(rig.a, 40 * MIB);
    struct acre_buffer cached = make(rig.a, 40 * MIB);
    CHECK_EQ(acre_buffer_free(rig.a, cached, NULL), 0);
    struct acre_buffer buffer = {0};
    struct acre_error err = {0};
    CHECK_EQ(acre_buffer_alloc(rig.a, ACRE_MEMORY_DEVICE, 60 * MIB, &buffer, &err), 0);
    CHECK_U64(double_counts(rig.context).device_bytes, 100 * MIB);
    CHECK_EQ(acre_buffer_free(rig.a, buffer, NULL), 0);
    /* More than there can be, though the limit allows it: the driver's word is last. */
    double_refuse_above(rig.context, 50 * MIB);
    CHECK_EQ(acre_memory_trim(rig.context, 0, NULL), 0);
    CHECK_EQ(acre_buffer_alloc(rig.a, ACRE_MEMORY_DEVICE, 55 * MIB, &buffer, &err), ACRE_ENOMEM);
    CHECK_HAS(err.text, "Double: out of memory for 57671680 bytes (55 MiB): 1 buffer holds 40 MiB");
    CHECK_HAS(err.text, "60 MiB of 100 MiB free on the device");
    CHECK_HAS(err.text, "double: no memory");
    /* A block of the size it must have, when the size it would like is refused. */
    double_refuse_above(rig.context, 2 * MIB);
    CHECK_EQ(acre_buffer_alloc(rig.a, ACRE_MEMORY_DEVICE, 100, &buffer, &err), 0);
    CHECK_EQ(acre_buffer_free(rig.a, held, NULL), 0);
    double_close(rig.compute);
}

static void exhausted_device_waits_for_what_was_freed(void) {
    struct rig rig = open_rig(&(struct double_options){.memory_bytes = 64 * MIB});
    struct acre_buffer all = make(rig.a, 64 * MIB);
    CHECK_EQ(acre_fill(rig.a, all, 0, 64 * MIB, 1, 8, NULL), 0);
    CHECK_EQ(acre_buffer_free(rig.a, all, NULL), 0); /* its work has not come */
    double_start(rig.context);
    struct acre_buffer buffer = make(rig.b, 60 * MIB);
    CHECK_EQ(acre_buffer_free(rig.b, buffer, NULL), 0);
    double_close(rig.compute);
}

static void a_device_that_rested_works_again(void) { /* GPU-6 */
    struct rig rig = open_rig(&(struct double_options){0});
    double_start(rig.context);
    struct acre_buffer buffer = make(rig.a, 8);
    for (int i = 0; i < 10; i++) { /* two minutes ago, long enough to try again */
        breaker_tell(&rig.context->breaker, 1, false);
    }
    CHECK_EQ(breaker_state(&rig.context->breaker), BREAKER_OPEN);
    /* The caller's mistake says nothing of the device, and keeps nobody from trying. */
    CHECK_EQ(acre_fill(rig.a, (struct acre_buffer){0}, 0, 8, 1, 8, NULL), ACRE_ENOTFOUND);
    CHECK_EQ(breaker_state(&rig.context->breaker), BREAKER_HALF_OPEN);
    CHECK_EQ(acre_fill(rig.a, buffer, 0, 8, 1, 8, NULL), 0); /* tries */
    CHECK_EQ(acre_stream_sync(rig.a, ACRE_FOREVER, NULL), 0);
    CHECK_EQ(acre_buffer_free(rig.a, buffer, NULL), 0);
    double_close(rig.compute);
}

/* --- debug ---------------------------------------------------------------------------------- */

/* Write over the edge, as a kernel would. */
static void damage(struct rig *rig, struct acre_buffer buffer, int64_t at, uint64_t bytes) {
    struct buffer_range range;
    CHECK_EQ(acre_stream_sync(rig->a, ACRE_FOREVER, NULL), 0);
    REQUIRE_EQ(buffer_resolve(rig->context, buffer, 0, 0, "", &range, NULL), 0);
    memset(double_memory(rig->context, range.region, (uint64_t)((int64_t)range.offset + at)), 0,
           bytes);
}

static void writes_over_the_edge_are_found(void) {
    static const struct {
        int64_t at;
        uint64_t bytes;
        const char *text; /* NULL: fine */
    } rows[] = {
        {0, 1000, NULL},
        {1000, 1,
         "1 of the 280 bytes after the end of a buffer of 1000 bytes was overwritten, the nearest "
         "0 bytes away"},
        {1010, 4,
         "4 of the 280 bytes after the end of a buffer of 1000 bytes were overwritten, the nearest "
         "10 bytes"},
        {1279, 1, "the nearest 279 bytes"},
        {-1, 1,
         "1 of the 256 bytes before the start of a buffer of 1000 bytes was overwritten, the "
         "nearest 0 bytes"},
        {-256, 8,
         "8 of the 256 bytes before the start of a buffer of 1000 bytes were overwritten, the "
         "nearest 248 bytes"},
    };
    for (int kind = ACRE_MEMORY_DEVICE; kind <= ACRE_MEMORY_MAPPED; kind++) {
        struct rig rig = open_rig(&(struct double_options){.debug = true});
        double_start(rig.context);
        for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
            acre_test_context("row %zu, kind %d", i, kind);
            struct acre_buffer buffer;
            struct acre_error err = {0};
            REQUIRE_EQ(acre_buffer_alloc(rig.a, (enum acre_memory)kind, 1000, &buffer, NULL), 0);
            damage(&rig, buffer, rows[i].at, rows[i].bytes);
            int expect = rows[i].text != NULL ? ACRE_ECORRUPT : 0;
            CHECK_EQ(acre_memory_trim(rig.context, 0, &err), expect);
            CHECK_HAS(err.text, rows[i].text != NULL ? rows[i].text : "");
            err.text[0] = '\0';
            CHECK_EQ(acre_buffer_free(rig.b, buffer, &err), expect);
            CHECK_HAS(err.text, rows[i].text != NULL ? rows[i].text : "");
            CHECK_EQ(acre_buffer_free(rig.b, buffer, &err), ACRE_ENOTFOUND); /* it is freed */
        }
        double_close(rig.compute);
    }
}

static void freed_memory_is_poisoned(void) {
    struct rig rig = open_rig(&(struct double_options){.debug = true});
    double_start(rig.context);
    struct acre_buffer buffer = make(rig.a, 100);
    struct buffer_range range;
    REQUIRE_EQ(buffer_resolve(rig.context, buffer, 0, 100, "", &range, NULL), 0);
    CHECK_EQ(acre_fill(rig.a, buffer, 0, 100, 1, 1, NULL), 0);
    CHECK_EQ(acre_stream_sync(rig.a, ACRE_FOREVER, NULL), 0);
    const uint8_t *memory = double_memory(rig.context, range.region, range.offset);
    CHECK_EQ(memory[0], 1);
    CHECK_EQ(acre_buffer_free(rig.a, buffer, NULL), 0);
    CHECK_EQ(acre_stream_sync(rig.a, ACRE_FOREVER, NULL), 0);
    CHECK_EQ(memory[0], 0xDB);
    CHECK_EQ(memory[99], 0xDB);
    CHECK_EQ(memory[100], 0xA5); /* the canary behind it */
    double_close(rig.compute);
}

static void debug_survives_a_loss(void) {
    struct rig rig = open_rig(&(struct double_options){.debug = true});
    struct acre_buffer buffer = make(rig.a, 100);
    double_lose(rig.context);
    double_start(rig.context);
    CHECK_EQ(acre_memory_trim(rig.context, 0, NULL), 0);
    CHECK_EQ(acre_buffer_free(rig.a, buffer, NULL), 0);
    CHECK_EQ(acre_buffer_free(rig.a, make(rig.a, 100), NULL), 0);
    double_close(rig.compute);
}

/* A block is given back to the driver in a quiet scope, which begins before the gate is taken: so
 * one that could not be kept must not be taken. ThreadSanitizer knows the order of these locks
 * from the first trim, and reports a block that is given back within the gate. */
static void host_without_memory_takes_no_block(void) {
    struct rig rig = open_rig(&(struct double_options){0});
    struct acre_error err = {0};
    struct acre_buffer buffer = {0};
    CHECK_EQ(acre_memory_trim(rig.context, 0, NULL), 0);
    uint32_t created = double_counts(rig.context).created;
    int r = ACRE_ENOMEM;
    int refused = 0;
    for (; r < 0 && refused < 10; refused += r < 0) {
        acre_test_context("%d callocs", refused);
        callocs_left = refused + 1;
        r = acre_buffer_alloc(rig.a, ACRE_MEMORY_DEVICE, MIB, &buffer, &err);
        callocs_left = -1;
        CHECK_EQ(r, r < 0 ? ACRE_ENOMEM : 0);
        CHECK_U64(double_counts(rig.context).created, created + (r == 0));
    }
    CHECK_EQ(r, 0);
    CHECK(refused >= 2); /* for chunks, and for the block */
    struct acre_memory_report report;
    acre_memory_report(rig.context, &report);
    CHECK_U64(report.used_bytes, MIB);
    CHECK_U64(report.blocks, 1);
    CHECK_EQ(acre_buffer_free(rig.a, buffer, NULL), 0);
    double_close(rig.compute);
}

static const struct acre_test tests[] = {
    {"report_adds_up", report_adds_up, 0},
    {"pressure_is_told_when_it_changes", pressure_is_told_when_it_changes, 0},
    {"limit_counts_what_is_cached", limit_counts_what_is_cached, 0},
    {"exhausted_device_is_emptied_of_what_is_cached", exhausted_device_is_emptied_of_what_is_cached,
     0},
    {"exhausted_device_waits_for_what_was_freed", exhausted_device_waits_for_what_was_freed, 0},
    {"host_without_memory_takes_no_block", host_without_memory_takes_no_block, 0},
    {"a_device_that_rested_works_again", a_device_that_rested_works_again, 0},
    {"writes_over_the_edge_are_found", writes_over_the_edge_are_found, 0},
    {"freed_memory_is_poisoned", freed_memory_is_poisoned, 0},
    {"debug_survives_a_loss", debug_survives_a_loss, 0},
};

ACRE_TEST_MAIN(tests)
