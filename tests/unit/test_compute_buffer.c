/* Buffers of a context (GPU-2): ids, owners, streams. The device is a double that moves as told. */
#include "support/seat_double.h"
#include "support/test.h"

#include "compute/memory/buffer.h"
#include "core/clock.h"
#include "core/rand.h"

#include <acre/graph.h>
#include <acre/storage.h>

#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { MIB = 1 << 20, WORKERS = 4 };

struct rig {
    struct acre_compute *compute;
    struct acre_context *context;
    struct acre_stream *a, *b;
};

static struct rig open_rig(const struct double_options *options) {
    struct rig rig = {.compute = double_open(options, 2)};
    rig.context = double_context(rig.compute, 0);
    REQUIRE_EQ(acre_stream_create(rig.context, &rig.a, NULL), 0);
    REQUIRE_EQ(acre_stream_create(rig.context, &rig.b, NULL), 0);
    return rig;
}

static struct acre_buffer make(struct acre_stream *stream, uint64_t bytes) {
    struct acre_buffer buffer = {0};
    struct acre_error err = {0};
    int r = acre_buffer_alloc(stream, ACRE_MEMORY_DEVICE, bytes, &buffer, &err);
    acre_test_context("%s", err.text);
    REQUIRE_EQ(r, 0);
    return buffer;
}

static struct buffer_range range_of(struct acre_context *context, struct acre_buffer buffer) {
    struct buffer_range range = {0};
    REQUIRE_EQ(buffer_resolve(context, buffer, 0, 0, "test", &range, NULL), 0);
    return range;
}

/* Something for the device to do with it. */
static void use(struct acre_stream *stream, struct acre_buffer buffer) {
    REQUIRE_EQ(acre_fill(stream, buffer, 0, 8, 1, 8, NULL), 0);
}

static bool is_same_range(struct acre_context *context, struct buffer_range a,
                          struct acre_buffer buffer) {
    struct buffer_range b = range_of(context, buffer);
    return a.region == b.region && a.offset == b.offset;
}

static void stale_ids_are_told_from_live_ones(void) {
    struct rig rig = open_rig(&(struct double_options){0});
    struct acre_stream *other;
    REQUIRE_EQ(acre_stream_create(double_context(rig.compute, 1), &other, NULL), 0);
    struct acre_buffer freed = make(rig.a, 100);
    CHECK_EQ(acre_buffer_free(rig.a, freed, NULL), 0);
    struct acre_buffer live = make(rig.a, 100); /* in the same slot */
    struct acre_buffer foreign = make(other, 100);
    const struct {
        struct acre_buffer buffer;
        uint64_t offset, bytes;
        int expect;
        const char *text;
    } rows[] = {
        {live, 0, 100, 0, ""},
        {live, 100, 0, 0, ""},
        {live, 1, 100, ACRE_EINVALID, "reach past the end of the buffer; its size is 100"},
        {live, 101, 0, ACRE_EINVALID, "offset 101"},
        {live, UINT64_MAX, 2, ACRE_EINVALID, "reach past the end"},
        {live, 2, UINT64_MAX, ACRE_EINVALID, "reach past the end"},
        {freed, 0, 1, ACRE_ENOTFOUND, "argument 7: the buffer was freed"},
        {{0}, 0, 1, ACRE_ENOTFOUND, "no buffer"},
        {{live.id + 1}, 0, 1, ACRE_ENOTFOUND, "freed"},
        {{live.id + (UINT64_C(1) << 30)}, 0, 1, ACRE_ENOTFOUND, "freed"},
        {{live.id | UINT64_C(0x3fffff) << 30}, 0, 1, ACRE_ENOTFOUND, "freed"},
        {foreign, 0, 1, ACRE_EINVALID, "another context (tenant 'test' on Double)"},
        {{UINT64_MAX}, 0, 1, ACRE_ENOTFOUND, "the buffer's context does not exist or was closed"},
        {{UINT64_C(5) << 52 | 1},
         0,
         1,
         ACRE_ENOTFOUND,
         "the buffer's context does not exist or was closed"},
    };
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        acre_test_context("row %zu", i);
        struct acre_error err = {0};
        struct buffer_range range;
        CHECK_EQ(buffer_resolve(rig.context, rows[i].buffer, rows[i].offset, rows[i].bytes,
                                "argument 7", &range, &err),
                 rows[i].expect);
        CHECK_HAS(err.text, rows[i].text);
    }
    CHECK(live.id != freed.id);
    struct acre_error err = {0};
    CHECK_EQ(acre_buffer_free(rig.a, freed, &err), ACRE_ENOTFOUND);
    CHECK_EQ(acre_buffer_free(rig.a, foreign, &err), ACRE_EINVALID);
    uint64_t bytes = 0;
    CHECK_EQ(acre_buffer_size(rig.context, live, &bytes, NULL), 0);
    CHECK_U64(bytes, 100);
    CHECK_EQ(acre_buffer_size(rig.context, freed, &bytes, NULL), ACRE_ENOTFOUND);
    CHECK(acre_buffer_host(rig.context, live) == NULL);
    double_close(rig.compute);
}

static void bad_requests_are_refused(void) {
    struct rig rig = open_rig(&(struct double_options){.limit_bytes = 10 * MIB});
    struct acre_buffer buffer = {.id = 42};
    struct acre_error err = {0};
    CHECK_EQ(acre_buffer_alloc(rig.a, ACRE_MEMORY_DEVICE, 0, &buffer, &err), ACRE_EINVALID);
    CHECK_HAS(err.text, "bytes: 0");
    CHECK_EQ(acre_buffer_alloc(rig.a, (enum acre_memory)3, 1, &buffer, &err), ACRE_EINVALID);
    CHECK_HAS(err.text, "unknown kind 3");
    static const uint64_t too_large[] = {10 * MIB + 1, UINT64_C(1) << 47, UINT64_MAX,
                                         UINT64_MAX - 255};
    for (size_t i = 0; i < ACRE_COUNT(too_large); i++) {
        CHECK_EQ(acre_buffer_alloc(rig.a, ACRE_MEMORY_DEVICE, too_large[i], &buffer, &err),
                 ACRE_ELIMIT);
        CHECK_HAS(err.text, "the limit of tenant 'test' is 10 MiB");
    }
    CHECK_EQ(acre_buffer_alloc(rig.a, ACRE_MEMORY_PINNED, UINT64_C(1) << 46, &buffer, &err),
             ACRE_ENOMEM);
    CHECK_U64(buffer.id, 42);
    CHECK_U64(double_counts(rig.context).regions, 1); /* the words */
    double_close(rig.compute);
}

static void freeing_is_ordered_with_the_stream(void) {
    struct rig rig = open_rig(&(struct double_options){.limit_bytes = 64 * MIB});
    struct acre_buffer all = make(rig.a, 32 * MIB);
    struct buffer_range range = range_of(rig.context, all);
    use(rig.a, all);
    CHECK_EQ(acre_buffer_free(rig.a, all, NULL), 0);
    struct acre_buffer b = make(rig.b, 16 * MIB); /* a's work has not come: another block */
    CHECK(range_of(rig.context, b).region != range.region);
    struct acre_buffer a = make(rig.a, 16 * MIB); /* its own: at once */
    CHECK(is_same_range(rig.context, range, a));
    /* Not used by a, freed on b: a's work before it may still use the memory. */
    CHECK_EQ(acre_buffer_free(rig.b, a, NULL), 0);
    struct acre_buffer c = make(rig.b, 16 * MIB);
    CHECK(range_of(rig.context, c).region != range.region);
    double_run(rig.context, rig.a, UINT32_MAX); /* with the signal that so large a free sends */
    struct acre_buffer d = make(rig.b, 32 * MIB);
    CHECK(is_same_range(rig.context, range, d));
    double_close(rig.compute);
}

static void freeing_waits_for_other_users(void) {
    struct rig rig = open_rig(&(struct double_options){0});
    struct acre_buffer buffer = make(rig.a, 32 * MIB);
    struct buffer_range range = range_of(rig.context, buffer);
    use(rig.b, buffer);
    struct acre_event event;
    REQUIRE_EQ(acre_event_record(rig.b, &event, NULL), 0);
    CHECK_EQ(acre_buffer_free(rig.a, buffer, NULL), 0);
    struct acre_buffer early = make(rig.a, 32 * MIB); /* not even its own stream */
    CHECK(range_of(rig.context, early).region != range.region);
    double_run(rig.context, rig.b, UINT32_MAX);
    struct acre_buffer late = make(rig.a, 32 * MIB);
    CHECK(is_same_range(rig.context, range, late));
    double_close(rig.compute);
}

static void a_crowd_of_users_is_waited_for(void) {
    struct rig rig = open_rig(&(struct double_options){0});
    struct acre_stream *streams[8];
    struct acre_buffer buffer = make(rig.a, 32 * MIB);
    struct buffer_range range = range_of(rig.context, buffer);
    for (size_t i = 0; i < ACRE_COUNT(streams); i++) {
        struct acre_event event;
        REQUIRE_EQ(acre_stream_create(rig.context, &streams[i], NULL), 0);
        use(streams[i], buffer);
        REQUIRE_EQ(acre_event_record(streams[i], &event, NULL), 0);
    }
    CHECK_EQ(acre_buffer_free(rig.a, buffer, NULL), 0);
    for (size_t i = 0; i < ACRE_COUNT(streams); i++) {
        acre_test_context("user %zu", i);
        struct acre_buffer early = make(rig.a, 32 * MIB);
        CHECK(range_of(rig.context, early).region != range.region);
        double_run(rig.context, streams[i], UINT32_MAX);
    }
    struct acre_buffer late = make(rig.a, 32 * MIB);
    CHECK(is_same_range(rig.context, range, late));
    double_close(rig.compute);
}

static void streams_that_are_gone_hold_nothing(void) {
    struct rig rig = open_rig(&(struct double_options){0});
    double_start(rig.context);
    struct acre_stream *stream;
    struct acre_buffer buffer = make(rig.a, 32 * MIB);
    struct buffer_range range = range_of(rig.context, buffer);
    for (int i = 0; i < 20; i++) { /* each with the same word */
        REQUIRE_EQ(acre_stream_create(rig.context, &stream, NULL), 0);
        use(stream, buffer);
        acre_stream_destroy(stream);
    }
    CHECK_EQ(acre_buffer_free(rig.a, buffer, NULL), 0);
    REQUIRE_EQ(acre_stream_create(rig.context, &stream, NULL), 0);
    struct acre_buffer again = make(stream, 32 * MIB);
    CHECK(is_same_range(rig.context, range, again));
    double_close(rig.compute);
}

static void small_frees_do_not_signal_each(void) {
    struct rig rig = open_rig(&(struct double_options){0});
    for (int i = 0; i < 640; i++) {
        struct acre_buffer buffer = make(rig.a, 256);
        use(rig.a, buffer);
        CHECK_EQ(acre_buffer_free(rig.a, buffer, NULL), 0);
    }
    uint32_t signals = double_counts(rig.context).signals;
    CHECK(signals >= 9 && signals <= 11);
    struct acre_buffer buffer = make(rig.a, MIB);
    use(rig.a, buffer);
    CHECK_EQ(acre_buffer_free(rig.a, buffer, NULL), 0);
    CHECK_U64(double_counts(rig.context).signals, signals + 1);
    double_close(rig.compute);
}

static void host_memory_is_found_by_its_address(void) {
    struct rig rig = open_rig(&(struct double_options){0});
    struct acre_buffer buffers[64];
    struct acre_error err = {0};
    for (size_t i = 0; i < ACRE_COUNT(buffers); i++) {
        enum acre_memory kind = i % 2 == 0 ? ACRE_MEMORY_PINNED : ACRE_MEMORY_MAPPED;
        REQUIRE_EQ(acre_buffer_alloc(rig.a, kind, 1000 * i + 1, &buffers[i], &err), 0);
        uint8_t *host = acre_buffer_host(rig.context, buffers[i]);
        REQUIRE(host != NULL);
        memset(host, (int)i, 1000 * i + 1);
    }
    for (size_t i = 0; i < ACRE_COUNT(buffers); i++) {
        acre_test_context("buffer %zu", i);
        const uint8_t *host = acre_buffer_host(rig.context, buffers[i]);
        uint64_t bytes = 1000 * i + 1;
        CHECK(host[0] == i && host[bytes - 1] == i);
        struct buffer_range range;
        REQUIRE(buffer_of_host(rig.context, host + bytes / 2, 1, &range));
        CHECK(range.host == host + bytes / 2);
        CHECK_U64(range.bytes, bytes - bytes / 2);
        CHECK_EQ(*double_memory(rig.context, range.region, range.offset), (int64_t)i);
        CHECK_U64(buffer_at_host(rig.context, host, bytes).id, buffers[i].id);
        CHECK_U64(buffer_at_host(rig.context, host, bytes + 1).id, 0); /* not whole */
        CHECK_U64(buffer_at_host(rig.context, host + bytes, 1).id, 0);
    }
    const uint8_t *gone = acre_buffer_host(rig.context, buffers[10]);
    CHECK_EQ(acre_buffer_free(rig.a, buffers[10], NULL), 0);
    CHECK_U64(buffer_at_host(rig.context, gone, 1).id, 0);
    CHECK(acre_buffer_host(rig.context, buffers[10]) == NULL);
    int local = 0;
    CHECK_U64(buffer_at_host(rig.context, &local, sizeof(local)).id, 0);
    CHECK_U64(buffer_at_host(rig.context, NULL, 0).id, 0);
    double_close(rig.compute);
}

static void a_loss_takes_device_memory_only(void) { /* GPU-6 */
    struct rig rig = open_rig(&(struct double_options){0});
    struct acre_buffer device = make(rig.a, 100);
    struct acre_buffer more = make(rig.a, 40 * MIB);
    struct acre_buffer pinned;
    REQUIRE_EQ(acre_buffer_alloc(rig.a, ACRE_MEMORY_PINNED, 4096, &pinned, NULL), 0);
    memset(acre_buffer_host(rig.context, pinned), 7, 4096);
    use(rig.a, device);
    double_lose(rig.context);
    uint32_t live, lost;
    buffers_count(rig.context, &live, &lost);
    CHECK_U64(live, 3);
    CHECK_U64(lost, 2);
    struct acre_error err = {0};
    struct buffer_range range;
    CHECK_EQ(buffer_resolve(rig.context, device, 0, 1, "out", &range, &err), ACRE_EUNAVAILABLE);
    CHECK_HAS(err.text, "out: the buffer was lost with its context: it was told to");
    struct acre_memory_report report;
    acre_memory_report(rig.context, &report);
    CHECK_U64(report.used_bytes, 0);
    CHECK_U64(report.reserved_bytes, 0);
    CHECK_EQ(buffer_resolve(rig.context, pinned, 0, 4096, "in", &range, &err), 0);
    CHECK_EQ(*double_memory(rig.context, range.region, range.offset), 7); /* in the new region */
    CHECK_EQ(acre_buffer_free(rig.b, device, NULL), 0);
    CHECK_EQ(acre_buffer_free(rig.b, device, NULL), ACRE_ENOTFOUND);
    CHECK_EQ(acre_buffer_free(rig.a, pinned, NULL), 0);
    struct acre_buffer fresh = make(rig.a, 100);
    use(rig.a, fresh);
    buffers_count(rig.context, &live, &lost);
    CHECK_U64(live, 2);
    CHECK_U64(lost, 1);
    CHECK_EQ(acre_buffer_free(rig.a, more, NULL), 0);
    CHECK_EQ(acre_buffer_free(rig.a, fresh, NULL), 0);
    double_close(rig.compute);
}

/* --- threads: each tags what it has, and looks whether the tag stays ------------------------- */

struct worker {
    struct rig *rig;
    uint64_t seed;
    uint32_t wrong;
    int error;
    pthread_t thread;
};

enum { HAVE = 24, ROUNDS = 1500 };

struct had {
    struct acre_buffer buffer;
    uint64_t bytes, tag;
};

/* Fill on one stream; read back on another, and free there or on the first without waiting. */
static int turn(struct worker *worker, struct acre_rand *rand, struct acre_stream *streams[2],
                struct acre_buffer seen, struct had *had) {
    struct acre_context *context = worker->rig->context;
    int r = 0;
    if (had->buffer.id == 0) {
        had->bytes = 8 * (1 + acre_rand_below(rand, UINT64_C(1) << acre_rand_below(rand, 14)));
        had->tag = acre_rand_next(rand);
        r = acre_buffer_alloc(streams[0], ACRE_MEMORY_DEVICE, had->bytes, &had->buffer, NULL);
        return r == 0 ? acre_fill(streams[0], had->buffer, 0, had->bytes, had->tag, 8, NULL) : r;
    }
    uint64_t at = 8 * acre_rand_below(rand, had->bytes / 8);
    struct acre_event event;
    r = acre_event_record(streams[0], &event, NULL);
    r = r == 0 ? acre_stream_after(streams[1], event, NULL) : r;
    if (acre_rand_below(rand, 2) == 0) {
        uint64_t tag = 0;
        r = r == 0 ? acre_copy_out(streams[1], &tag, had->buffer, at, 8, NULL) : r;
        worker->wrong += tag != had->tag;
    } else { /* read later than it is freed */
        r = r == 0 ? acre_copy(streams[1], seen, 0, had->buffer, at, 8, NULL) : r;
        r = r == 0 ? acre_buffer_free(streams[acre_rand_below(rand, 2)], had->buffer, NULL) : r;
        r = r == 0 ? acre_stream_sync(streams[1], ACRE_FOREVER, NULL) : r;
        uint64_t tag = *(uint64_t *)acre_buffer_host(context, seen);
        worker->wrong += tag != had->tag;
        had->buffer.id = 0;
        return r;
    }
    r = r == 0 ? acre_buffer_free(streams[acre_rand_below(rand, 2)], had->buffer, NULL) : r;
    had->buffer.id = 0;
    return r;
}

static void *work(void *argument) {
    struct worker *worker = argument;
    struct acre_rand rand;
    struct acre_stream *streams[2] = {NULL};
    struct acre_buffer seen;
    struct had had[HAVE] = {0};
    acre_rand_seed(&rand, worker->seed);
    int r = acre_stream_create(worker->rig->context, &streams[0], NULL);
    r = r == 0 ? acre_stream_create(worker->rig->context, &streams[1], NULL) : r;
    r = r == 0 ? acre_buffer_alloc(streams[0], ACRE_MEMORY_MAPPED, 8, &seen, NULL) : r;
    for (uint32_t i = 0; i < ROUNDS && r == 0; i++) {
        r = turn(worker, &rand, streams, seen, &had[acre_rand_below(&rand, HAVE)]);
        if (r == 0 && acre_rand_below(&rand, 200) == 0) {
            r = acre_memory_trim(worker->rig->context, 0, NULL);
        }
    }
    for (uint32_t i = 0; i < HAVE && r == 0; i++) {
        r = had[i].buffer.id != 0 ? acre_buffer_free(streams[0], had[i].buffer, NULL) : 0;
    }
    r = r == 0 ? acre_buffer_free(streams[1], seen, NULL) : r;
    acre_stream_destroy(streams[0]);
    acre_stream_destroy(streams[1]);
    worker->error = r;
    return NULL;
}

static void play(struct rig *rig) {
    struct worker workers[WORKERS];
    for (uint32_t i = 0; i < WORKERS; i++) {
        workers[i] = (struct worker){.rig = rig, .seed = 77 + i};
        REQUIRE_EQ(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (uint32_t i = 0; i < WORKERS; i++) {
        pthread_join(workers[i].thread, NULL);
        acre_test_context("seed %u", 77 + i);
        CHECK_EQ(workers[i].error, 0);
        CHECK_U64(workers[i].wrong, 0);
    }
    struct acre_memory_report report;
    CHECK_EQ(acre_memory_trim(rig->context, 0, NULL), 0);
    acre_memory_report(rig->context, &report);
    CHECK_U64(report.used_bytes, 0);
    CHECK_U64(report.reserved_bytes, 0);
    CHECK_U64(report.pinned_bytes, 0);
    CHECK_U64(report.allocations, report.frees);
}

static void tags_stay_with_many_threads(void) { /* GPU-2: never two owners */
    struct rig rig = open_rig(&(struct double_options){.memory_bytes = 256 * MIB, .seed = 5});
    double_start(rig.context);
    play(&rig);
    double_close(rig.compute);
}

static void tags_stay_on_the_cpu(bool debug) {
    struct acre_compute_options options = {.backends = "cpu", .cache = ""};
    struct acre_context_options how = {.memory_limit_bytes = 256 * MIB, .debug = debug};
    struct rig rig = {0};
    REQUIRE_EQ(acre_compute_open(&options, &rig.compute, NULL), 0);
    REQUIRE_EQ(acre_context_open(rig.compute, 0, &how, &rig.context, NULL), 0);
    play(&rig);
    acre_compute_close(rig.compute);
}

static void tags_stay_with_many_threads_on_the_cpu(void) {
    tags_stay_on_the_cpu(false);
}

static void tags_and_canaries_stay_on_the_cpu(void) {
    tags_stay_on_the_cpu(true);
}

/* --- a kernel of this process that is past its limit cannot be ended ------------------------ */

static atomic_bool may_end, has_ended;

static void linger(const struct acre_groups *groups, const void *const *arguments) {
    (void)groups;
    while (!atomic_load(&may_end)) {
        acre_test_rest();
    }
    memset((void *)(uintptr_t)arguments[0], 1, MIB); /* its memory is still there */
    atomic_store(&has_ended, true);
}

static void *let_end(void *unused) {
    (void)unused;
    poll(NULL, 0, 50); /* closing comes first; were it not to, the case would pass all the same */
    atomic_store(&may_end, true);
    return NULL;
}

/* A context whose kernel runs longer than it may. */
static struct rig open_lingering(void) {
    struct rig rig = {0};
    const struct acre_compute_options options = {.backends = "cpu", .cache = ""};
    const struct acre_context_options how = {.kernel_limit_ms = 20};
    struct acre_program *program;
    struct acre_kernel *kernel;
    struct acre_error err = {0};
    REQUIRE_EQ(acre_compute_open(&options, &rig.compute, NULL), 0);
    REQUIRE_EQ(acre_context_open(rig.compute, 0, &how, &rig.context, NULL), 0);
    REQUIRE_EQ(acre_stream_create(rig.context, &rig.a, NULL), 0);
    REQUIRE_EQ(
        acre_program_native(rig.context, "void linger(global char *p)", linger, &program, NULL), 0);
    REQUIRE_EQ(acre_kernel_find(program, "linger", &kernel, NULL), 0);
    struct acre_buffer buffer = make(rig.a, MIB);
    const struct acre_grid one = {.groups = {1}, .group = {1}};
    CHECK_EQ(acre_launch(rig.a, kernel, one, &ACRE_BUFFER(buffer), 1, NULL), 0);
    CHECK_EQ(acre_stream_sync(rig.a, ACRE_FOREVER, &err), ACRE_ETIMEOUT);
    CHECK_HAS(err.text, "kernel 'linger' ran longer than 20 ms");
    return rig;
}

static void closing_waits_for_a_kernel_that_was_given_up(void) { /* GPU-6 */
    struct rig rig = open_lingering();
    pthread_t thread;
    REQUIRE_EQ(pthread_create(&thread, NULL, let_end, NULL), 0);
    CHECK_EQ(acre_context_close(rig.context), 0);
    CHECK(atomic_load(&has_ended));
    acre_compute_close(rig.compute);
    pthread_join(thread, NULL);
}

static uint32_t count_threads(void) {
    DIR *tasks = opendir("/proc/self/task");
    REQUIRE(tasks != NULL);
    uint32_t count = 0;
    for (const struct dirent *entry = readdir(tasks); entry != NULL; entry = readdir(tasks)) {
        count += entry->d_name[0] != '.';
    }
    closedir(tasks);
    return count;
}

/* It never ends, as far as the runtime knows: what it uses stays, and goes when it does end. */
static void closing_leaves_a_kernel_that_never_ends(void) { /* GPU-6 */
    pthread_t thread; /* the first: sanitizers start theirs with it */
    REQUIRE_EQ(pthread_create(&thread, NULL, let_end, NULL), 0);
    pthread_join(thread, NULL);
    uint32_t threads = count_threads();
    for (int is_destroyed = 0; is_destroyed < 2; is_destroyed++) {
        acre_test_context("stream destroyed before: %d", is_destroyed);
        atomic_store(&may_end, false);
        atomic_store(&has_ended, false);
        struct rig rig = open_lingering();
        if (is_destroyed) {
            acre_stream_destroy(rig.a);
        }
        CHECK_EQ(acre_context_close(rig.context), ACRE_ETIMEOUT);
        acre_compute_close(rig.compute);
        CHECK(!atomic_load(&has_ended));
        CHECK(count_threads() > threads);
        atomic_store(&may_end, true);
        while (count_threads() > threads) {
            acre_test_rest();
        }
        CHECK(atomic_load(&has_ended));
    }
}

static enum breaker_state circuit(const struct rig *rig) {
    return breaker_state(&rig->context->breaker);
}

/* The circuit opens, and its minute is over: one call may try. */
static void open_circuit(struct rig *rig) {
    struct breaker *breaker = &rig->context->breaker;
    for (int i = 0; i < 100 && circuit(rig) == BREAKER_CLOSED; i++) {
        breaker_tell(breaker, acre_monotonic_ns() / 1000000, false);
    }
    REQUIRE_EQ(circuit(rig), BREAKER_OPEN);
    breaker->opened_ms -= 60000;
}

/* The loss was one failure of the device; a user who finds it buffer by buffer adds none. */
static void lost_buffers_do_not_open_the_circuit(void) { /* GPU-6 */
    struct rig rig = open_rig(&(struct double_options){0});
    struct acre_buffer lost = make(rig.a, 4096);
    struct acre_graph *graph;
    REQUIRE_EQ(acre_graph_begin(rig.b, NULL), 0);
    use(rig.b, lost);
    REQUIRE_EQ(acre_graph_end(rig.b, &graph, NULL), 0);
    double_lose(rig.context);
    for (uint32_t i = 0; i < 20; i++) {
        struct acre_error err = {0};
        CHECK_EQ(acre_fill(rig.a, lost, 0, 8, 1, 8, &err), ACRE_EUNAVAILABLE);
        CHECK_HAS(err.text, "lost with its context");
        CHECK_EQ(acre_copy(rig.a, lost, 0, lost, 8, 8, &err), ACRE_EUNAVAILABLE);
        CHECK_EQ(acre_graph_launch(graph, rig.b, &err), ACRE_EUNAVAILABLE);
        CHECK_HAS(err.text, "lost with its context");
    }
    CHECK_EQ(circuit(&rig), BREAKER_CLOSED);
    struct acre_buffer fresh = make(rig.a, 4096);
    open_circuit(&rig);
    CHECK_EQ(acre_fill(rig.a, lost, 0, 8, 1, 8, NULL), ACRE_EUNAVAILABLE);
    CHECK_EQ(circuit(&rig), BREAKER_HALF_OPEN); /* that was no try */
    CHECK_EQ(acre_fill(rig.a, fresh, 0, 8, 1, 8, NULL), 0);
    CHECK_EQ(circuit(&rig), BREAKER_CLOSED);
    acre_graph_destroy(graph);
    double_close(rig.compute);
}

static void calls_that_ask_nothing_of_the_device_do_not_try_it(void) { /* GPU-6 */
    struct rig rig = open_rig(&(struct double_options){0});
    struct acre_buffer buffer = make(rig.a, 4096);
    open_circuit(&rig);
    CHECK_EQ(acre_storage_read(rig.a, "/nowhere", 0, buffer, 0, 8, ACRE_STORAGE_STAGED, NULL, NULL),
             ACRE_ENOTFOUND);
    CHECK_EQ(circuit(&rig), BREAKER_HALF_OPEN);
    CHECK_EQ(acre_memory_trim(rig.context, 0, NULL), 0);
    CHECK_EQ(circuit(&rig), BREAKER_HALF_OPEN);
    use(rig.a, buffer);
    CHECK_EQ(circuit(&rig), BREAKER_CLOSED);
    double_close(rig.compute);
}

static const struct acre_test tests[] = {
    {"stale_ids_are_told_from_live_ones", stale_ids_are_told_from_live_ones, 0},
    {"bad_requests_are_refused", bad_requests_are_refused, 0},
    {"freeing_is_ordered_with_the_stream", freeing_is_ordered_with_the_stream, 0},
    {"freeing_waits_for_other_users", freeing_waits_for_other_users, 0},
    {"a_crowd_of_users_is_waited_for", a_crowd_of_users_is_waited_for, 0},
    {"streams_that_are_gone_hold_nothing", streams_that_are_gone_hold_nothing, 0},
    {"small_frees_do_not_signal_each", small_frees_do_not_signal_each, 0},
    {"host_memory_is_found_by_its_address", host_memory_is_found_by_its_address, 0},
    {"a_loss_takes_device_memory_only", a_loss_takes_device_memory_only, 0},
    {"tags_stay_with_many_threads", tags_stay_with_many_threads, 0},
    {"tags_stay_with_many_threads_on_the_cpu", tags_stay_with_many_threads_on_the_cpu, 0},
    {"tags_and_canaries_stay_on_the_cpu", tags_and_canaries_stay_on_the_cpu, 0},
    {"closing_waits_for_a_kernel_that_was_given_up", closing_waits_for_a_kernel_that_was_given_up,
     0},
    {"closing_leaves_a_kernel_that_never_ends", closing_leaves_a_kernel_that_never_ends, 60},
    {"lost_buffers_do_not_open_the_circuit", lost_buffers_do_not_open_the_circuit, 0},
    {"calls_that_ask_nothing_of_the_device_do_not_try_it",
     calls_that_ask_nothing_of_the_device_do_not_try_it, 0},
};

ACRE_TEST_MAIN(tests)
