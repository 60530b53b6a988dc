/* The CPU back end through its table: order, threads, waiting, times (GPU-1, GPU-3). */
#include "compute/cpu/cpu.h"
#include "core/rand.h"
#include "support/cpu_rig.h"
#include "support/test.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static const struct backend *const table = &backend_cpu;

enum { MIB = 1 << 20 };

/* --- native kernels -------------------------------------------------------------------------- */

static uint64_t item_of(const struct acre_groups *groups, uint64_t group) {
    return group * groups->group[0];
}

/* "void add(global uint *data, uint value)" */
static void add_native(const struct acre_groups *groups, const void *const *arguments) {
    uint32_t *data = (uint32_t *)(uintptr_t)arguments[0];
    uint32_t value = *(const uint32_t *)arguments[1];
    for (uint64_t i = item_of(groups, groups->first); i < item_of(groups, groups->end); i++) {
        data[i] += value;
    }
}

static void launch_add(struct cpu_rig *rig, uint64_t stream, uint64_t kernel,
                       const struct native_region *data, uint64_t offset, uint32_t groups,
                       uint32_t value) {
    _Alignas(16) uint8_t extra[16] = {0};
    memcpy(extra, &value, sizeof(value));
    struct native_arg args[] = {cpu_rig_buffer(data, offset),
                                {.kind = ACRE_NATIVE_VALUE, .bytes = 4, .region = 0}};
    struct native_launch launch = {.kernel = kernel,
                                   .grid = {{groups, 1, 1}, {64, 1, 1}},
                                   .args = args,
                                   .arg_count = 2,
                                   .extra = extra,
                                   .extra_bytes = 16};
    struct acre_error err;
    cpu_rig_require(table->launch(rig->seat, stream, &launch, &err), &err);
    memset(extra, 0xff, sizeof(extra)); /* the caller's again */
}

/* --- tests ----------------------------------------------------------------------------------- */

static void it_describes_the_machine(void) {
    struct cpu_rig rig;
    cpu_rig_init(&rig);
    CHECK_EQ(table->count(rig.self), 1);
    struct acre_compute_device device;
    table->describe(rig.self, 0, &device);
    CHECK_STR(device.backend, "cpu");
    CHECK(device.name[0] != '\0' && device.identity[0] != '\0');
    CHECK(device.units >= 1 && device.group_max == 1024 && device.local_bytes >= 16384);
    CHECK((device.capabilities & ACRE_CAN_NATIVE) != 0);
    uint64_t available = 0;
    uint64_t total = 0;
    CHECK_EQ(table->memory(rig.seat, &available, &total, NULL), 0);
    CHECK(available > 0 && available <= total && total == device.memory_bytes);
    CHECK_EQ(table->check(rig.seat, NULL), 0);
    cpu_rig_finish(&rig);
}

static void more_memory_than_there_is_is_refused(void) {
    struct cpu_rig rig;
    cpu_rig_init(&rig);
    uint64_t available = 0;
    uint64_t total = 0;
    REQUIRE_EQ(table->memory(rig.seat, &available, &total, NULL), 0);
    const uint64_t sizes[] = {total + 1, total * 16, UINT64_MAX / 2, UINT64_MAX};
    for (size_t i = 0; i < ACRE_COUNT(sizes); i++) {
        struct acre_error err;
        struct native_region region;
        CHECK_EQ(table->region_create(rig.seat, ACRE_MEMORY_DEVICE, sizes[i], NULL, &region, &err),
                 ACRE_ENOMEM);
        CHECK_HAS(err.text, "available");
    }
    cpu_rig_finish(&rig);
}

static void a_stream_works_in_order(void) {
    struct cpu_rig rig;
    cpu_rig_init(&rig);
    uint64_t stream = cpu_rig_stream(&rig, 3);
    uint64_t kernel = cpu_rig_native(&rig, add_native);
    enum { GROUPS = 4096, ITEMS = GROUPS * 64 };
    struct native_region a = cpu_rig_region(&rig, ITEMS * 4);
    struct native_region b = cpu_rig_region(&rig, ITEMS * 4);
    const uint32_t *seen = (const uint32_t *)(uintptr_t)b.address;
    for (uint32_t round = 1; round <= 20; round++) {
        cpu_rig_fill(&rig, stream, &a, 0, ITEMS * 4, round, 4);
        launch_add(&rig, stream, kernel, &a, 0, GROUPS, 7);
        launch_add(&rig, stream, kernel, &a, 0, GROUPS / 2, 1);
        cpu_rig_copy(&rig, stream, &b, 0, &a, 0, ITEMS * 4);
        cpu_rig_fill(&rig, stream, &a, 0, ITEMS * 4, 0, 4);
        cpu_rig_sync(&rig, stream, 3, round);
        uint32_t wrong = 0;
        for (uint32_t i = 0; i < ITEMS; i++) {
            wrong += seen[i] != round + 7 + (i < ITEMS / 2);
        }
        CHECK_EQ(wrong, 0);
    }
    table->stream_destroy(rig.seat, stream);
    cpu_rig_finish(&rig);
}

static void patterns_fill_from_their_first_byte(void) {
    static const struct {
        uint64_t offset, bytes, pattern;
        uint32_t pattern_bytes;
    } rows[] = {
        {0, 1, 0x5a, 1},
        {3, 7, 0xffffffffffffff5a, 1},
        {5, 6, 0x1234, 2},
        {1, 12, 0xdeadbeef, 4},
        {2, 24, 0x0123456789abcdef, 8},
        {9, 600000, 0x01020304, 4},
        {0, 3 * MIB + 8, 0x0123456789abcdef, 8},
        {4, 3 * MIB, 0, 8},
    };
    struct cpu_rig rig;
    cpu_rig_init(&rig);
    uint64_t stream = cpu_rig_stream(&rig, 0);
    struct native_region region = cpu_rig_region(&rig, 4 * MIB);
    const uint8_t *bytes = (const uint8_t *)(uintptr_t)region.address;
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        acre_test_context("row %zu", i);
        cpu_rig_fill(&rig, stream, &region, 0, 4 * MIB, 0xee, 1);
        cpu_rig_fill(&rig, stream, &region, rows[i].offset, rows[i].bytes, rows[i].pattern,
                     rows[i].pattern_bytes);
        cpu_rig_sync(&rig, stream, 0, i + 1);
        uint32_t wrong = 0;
        for (uint64_t at = 0; at < 4 * MIB; at++) {
            uint64_t in = at - rows[i].offset;
            bool is_outside = at < rows[i].offset || in >= rows[i].bytes;
            uint64_t shifted = rows[i].pattern >> in % rows[i].pattern_bytes * 8;
            uint64_t want = is_outside ? 0xee : shifted & 0xff;
            wrong += bytes[at] != want;
        }
        CHECK_EQ(wrong, 0);
    }
    cpu_rig_finish(&rig);
}

/* "void flag(global uint *flag)": ends when the flag is set. */
static void wait_native(const struct acre_groups *groups, const void *const *arguments) {
    (void)groups;
    const _Atomic uint32_t *flag = (const _Atomic uint32_t *)arguments[0];
    while (atomic_load(flag) == 0) {
        acre_test_rest();
    }
}

static void launch_wait(struct cpu_rig *rig, uint64_t stream, uint64_t kernel,
                        const struct native_region *flag) {
    struct native_arg args[] = {cpu_rig_buffer(flag, 0)};
    struct native_launch launch = {
        .kernel = kernel, .grid = {{1, 1, 1}, {1, 1, 1}}, .args = args, .arg_count = 1};
    struct acre_error err;
    cpu_rig_require(table->launch(rig->seat, stream, &launch, &err), &err);
}

/* Work too large for the caller, on a stream of its own: streams are taken in the order they were
 * given work, so all that came before have been looked at when it is done. */
static void let_workers_look(struct cpu_rig *rig, uint64_t stream, uint32_t word, uint64_t value,
                             const struct native_region *scratch) {
    cpu_rig_fill(rig, stream, scratch, 0, MIB, value, 8);
    cpu_rig_sync(rig, stream, word, value);
}

/* A stream that waits holds no thread: hundreds may wait for one, and others go on. */
static void streams_wait_for_words_of_others(void) {
    struct cpu_rig rig;
    cpu_rig_init(&rig);
    struct acre_error err;
    struct native_region flag = cpu_rig_region(&rig, 4096);
    struct native_region data = cpu_rig_region(&rig, 64 * 4);
    uint64_t wait_kernel = cpu_rig_native(&rig, wait_native);
    uint64_t add_kernel = cpu_rig_native(&rig, add_native);
    uint64_t first = cpu_rig_stream(&rig, 0);
    launch_wait(&rig, first, wait_kernel, &flag);
    cpu_rig_require(table->signal(rig.seat, first, 1, &err), &err);
    enum { CHAIN = 300 };
    for (uint32_t i = 1; i <= CHAIN; i++) {
        uint64_t stream = cpu_rig_stream(&rig, i);
        cpu_rig_require(table->wait(rig.seat, stream, rig.words_region, (i - 1) * 8, 1, &err),
                        &err);
        launch_add(&rig, stream, add_kernel, &data, 0, 1, 1);
        cpu_rig_require(table->signal(rig.seat, stream, 1, &err), &err);
    }
    uint64_t other = cpu_rig_stream(&rig, CHAIN + 1);
    struct native_region scratch = cpu_rig_region(&rig, MIB);
    let_workers_look(&rig, other, CHAIN + 1, 1, &scratch);
    CHECK_U64(atomic_load(&rig.words[1]), 0);
    CHECK_EQ(*(const uint32_t *)(uintptr_t)data.address, 0);
    atomic_store((_Atomic uint32_t *)(uintptr_t)flag.address, 1);
    cpu_rig_await(&rig, CHAIN, 1);
    CHECK_EQ(*(const uint32_t *)(uintptr_t)data.address, CHAIN);
    cpu_rig_finish(&rig);
}

/* A word that only the host writes is found too. */
static void streams_wait_for_words_of_the_host(void) {
    struct cpu_rig rig;
    cpu_rig_init(&rig);
    struct acre_error err;
    uint64_t stream = cpu_rig_stream(&rig, 0);
    cpu_rig_require(table->wait(rig.seat, stream, rig.words_region, 100 * 8, 5, &err), &err);
    cpu_rig_require(table->signal(rig.seat, stream, 1, &err), &err);
    uint64_t other = cpu_rig_stream(&rig, 1);
    struct native_region scratch = cpu_rig_region(&rig, MIB);
    let_workers_look(&rig, other, 1, 1, &scratch);
    CHECK_U64(atomic_load(&rig.words[0]), 0);
    atomic_store(&rig.words[100], 4);
    let_workers_look(&rig, other, 1, 2, &scratch);
    CHECK_U64(atomic_load(&rig.words[0]), 0);
    atomic_store(&rig.words[100], 6);
    cpu_rig_await(&rig, 0, 1);
    cpu_rig_finish(&rig);
}

static void notify_comes_after_the_work_before_it(void) {
    struct cpu_rig rig;
    cpu_rig_init(&rig);
    struct acre_error err;
    int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    REQUIRE(fd >= 0);
    uint64_t count = 0;
    struct native_region flag = cpu_rig_region(&rig, 4096);
    uint64_t kernel = cpu_rig_native(&rig, wait_native);
    uint64_t stream = cpu_rig_stream(&rig, 0);
    launch_wait(&rig, stream, kernel, &flag);
    cpu_rig_require(table->notify(rig.seat, stream, fd, &err), &err);
    cpu_rig_require(table->signal(rig.seat, stream, 1, &err), &err);
    CHECK(eventfd_read(fd, &count) < 0 && errno == EAGAIN);
    atomic_store((_Atomic uint32_t *)(uintptr_t)flag.address, 1);
    cpu_rig_await(&rig, 0, 1);
    CHECK_EQ(eventfd_read(fd, &count), 0);
    CHECK_U64(count, 1);
    cpu_rig_require(table->notify(rig.seat, stream, fd, &err),
                    &err); /* of an idle stream: at once */
    CHECK_EQ(eventfd_read(fd, &count), 0);
    close(fd);
    cpu_rig_finish(&rig);
}

static void a_seat_closes_with_work_under_way(void) {
    struct cpu_rig rig;
    cpu_rig_init(&rig);
    struct acre_error err;
    uint64_t kernel = cpu_rig_native(&rig, add_native);
    for (uint32_t i = 0; i < 8; i++) {
        uint64_t stream = cpu_rig_stream(&rig, i);
        struct native_region data = cpu_rig_region(&rig, 4 * MIB);
        if (i % 2 != 0) { /* for ever */
            cpu_rig_require(table->wait(rig.seat, stream, rig.words_region, (i - 1) * 8, 99, &err),
                            &err);
        }
        for (uint32_t k = 0; k < 20; k++) {
            launch_add(&rig, stream, kernel, &data, 0, 1, 1);
            cpu_rig_fill(&rig, stream, &data, 2 * MIB, 2 * MIB, 1, 1);
        }
    }
    cpu_rig_finish(&rig); /* no leak, no crash */
}

static void times_are_told_once_and_in_order(void) {
    struct cpu_rig rig;
    cpu_rig_init(&rig);
    struct acre_error err;
    uint64_t stream = cpu_rig_stream(&rig, 0);
    uint64_t kernel = cpu_rig_native(&rig, add_native);
    struct native_region a = cpu_rig_region(&rig, 2 * MIB);
    cpu_rig_fill(&rig, stream, &a, 0, 2 * MIB, 0, 1); /* before: not told */
    cpu_rig_require(table->profile(rig.seat, stream, true, &err), &err);
    cpu_rig_fill(&rig, stream, &a, 0, 2 * MIB, 0, 1);
    cpu_rig_copy(&rig, stream, &a, 0, &a, MIB, 4096);
    launch_add(&rig, stream, kernel, &a, 0, 64, 1);
    cpu_rig_sync(&rig, stream, 0, 1);
    struct acre_timing timings[8];
    uint32_t count = 0;
    cpu_rig_require(table->timings(rig.seat, stream, timings, 2, &count, &err), &err);
    REQUIRE_EQ(count, 2);
    CHECK_STR(timings[0].name, "fill");
    CHECK_STR(timings[1].name, "copy");
    CHECK_U64(timings[1].bytes, 4096);
    CHECK(timings[0].running_us > 0 && timings[0].queued_us >= 0);
    cpu_rig_require(table->timings(rig.seat, stream, timings, 8, &count, &err), &err);
    REQUIRE_EQ(count, 1);
    CHECK_STR(timings[0].name, "native");
    cpu_rig_require(table->timings(rig.seat, stream, timings, 8, &count, &err), &err);
    CHECK_EQ(count, 0);
    cpu_rig_finish(&rig);
}

/* "void visit(global uint *seen)": counts visits of each group. */
static void visit_native(const struct acre_groups *groups, const void *const *arguments) {
    _Atomic uint32_t *seen = (_Atomic uint32_t *)(uintptr_t)arguments[0];
    for (uint64_t i = groups->first; i < groups->end; i++) {
        atomic_fetch_add(&seen[i], 1);
    }
}

static void every_group_runs_once(void) {
    static const struct acre_grid grids[] = {
        {{1, 1, 1}, {1, 1, 1}},    {{7, 1, 1}, {64, 1, 1}},     {{1, 9, 1}, {1, 1024, 1}},
        {{3, 5, 7}, {4, 4, 4}},    {{100000, 1, 1}, {1, 1, 1}}, {{17, 13, 101}, {8, 8, 1}},
        {{1, 1, 50000}, {2, 1, 1}}};
    struct cpu_rig rig;
    cpu_rig_init(&rig);
    struct native_region region = cpu_rig_region(&rig, 100000 * 4);
    const uint32_t *seen = (const uint32_t *)(uintptr_t)region.address;
    uint64_t stream = cpu_rig_stream(&rig, 0);
    uint64_t kernel = cpu_rig_native(&rig, visit_native);
    for (uint32_t i = 0; i < ACRE_COUNT(grids) * 3; i++) {
        struct acre_grid grid = grids[i % ACRE_COUNT(grids)];
        acre_test_context("grid %u", i);
        cpu_rig_fill(&rig, stream, &region, 0, 100000 * 4, 0, 4);
        struct native_arg args[] = {cpu_rig_buffer(&region, 0)};
        struct native_launch launch = {
            .kernel = kernel, .grid = grid, .args = args, .arg_count = 1};
        struct acre_error err;
        cpu_rig_require(table->launch(rig.seat, stream, &launch, &err), &err);
        cpu_rig_sync(&rig, stream, 0, i + 1);
        uint32_t count = grid.groups[0] * grid.groups[1] * grid.groups[2];
        uint32_t wrong = 0;
        for (uint32_t k = 0; k < 100000; k++) {
            wrong += seen[k] != (k < count);
        }
        CHECK_EQ(wrong, 0);
    }
    cpu_rig_finish(&rig);
}

static void bad_grids_are_refused(void) {
    static const struct acre_grid grids[] = {
        {{1, 1, 1}, {1025, 1, 1}},
        {{1, 1, 1}, {64, 64, 1}},
        {{UINT32_MAX, UINT32_MAX, UINT32_MAX}, {1, 1, 1}},
        {{INT32_MAX, 65535, 65535}, {1024, 1, 1}},
    };
    struct cpu_rig rig;
    cpu_rig_init(&rig);
    uint64_t stream = cpu_rig_stream(&rig, 0);
    uint64_t kernel = cpu_rig_native(&rig, visit_native);
    for (size_t i = 0; i < ACRE_COUNT(grids); i++) {
        struct native_launch launch = {.kernel = kernel, .grid = grids[i]};
        struct acre_error err;
        CHECK_EQ(table->launch(rig.seat, stream, &launch, &err), ACRE_EINVALID);
        CHECK_HAS(err.text, "accepted");
    }
    cpu_rig_finish(&rig);
}

/* "void tally(local uint *mine, global uint *sums)": local memory is its group's alone. */
static void tally_native(const struct acre_groups *groups, const void *const *arguments) {
    uint32_t *mine = (uint32_t *)(uintptr_t)arguments[0];
    uint32_t *other = (uint32_t *)(uintptr_t)arguments[2];
    uint32_t *sums = (uint32_t *)(uintptr_t)arguments[1];
    for (uint64_t i = groups->first; i < groups->end; i++) {
        for (uint32_t k = 0; k < 250; k++) {
            mine[k] = (uint32_t)i;
            other[k] = 1;
        }
        sums[i] = 0;
        for (uint32_t k = 0; k < 250; k++) {
            sums[i] += mine[k] + other[k];
        }
    }
}

static void local_arguments_are_memory_of_the_group(void) {
    struct cpu_rig rig;
    cpu_rig_init(&rig);
    struct acre_error err;
    enum { GROUPS = 20000 };
    struct native_region sums = cpu_rig_region(&rig, GROUPS * 4);
    uint64_t stream = cpu_rig_stream(&rig, 0);
    struct native_arg args[] = {{.kind = ACRE_NATIVE_LOCAL, .bytes = 1000},
                                cpu_rig_buffer(&sums, 0),
                                {.kind = ACRE_NATIVE_LOCAL, .bytes = 1000}};
    struct native_launch launch = {.kernel = cpu_rig_native(&rig, tally_native),
                                   .grid = {{GROUPS, 1, 1}, {1, 1, 1}},
                                   .args = args,
                                   .arg_count = 3};
    cpu_rig_require(table->launch(rig.seat, stream, &launch, &err), &err);
    cpu_rig_sync(&rig, stream, 0, 1);
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < GROUPS; i++) {
        wrong += ((const uint32_t *)(uintptr_t)sums.address)[i] != 250 * i + 250;
    }
    CHECK_EQ(wrong, 0);
    args[0].bytes = 1 << 20;
    CHECK_EQ(table->launch(rig.seat, stream, &launch, &err), ACRE_ELIMIT);
    CHECK_HAS(err.text, "local memory");
    cpu_rig_finish(&rig);
}

/* --- many threads ---------------------------------------------------------------------------- */

struct user {
    struct cpu_rig *rig;
    pthread_t thread;
    uint32_t number;
    uint64_t kernel;
    uint32_t rounds;
    uint32_t wrong;
};

/* Each has a stream and a region of its own, mixes small and large work, and waits for the stream
 * of the next user's past now and then. */
static void *use(void *argument) {
    struct user *user = argument;
    struct cpu_rig *rig = user->rig;
    struct acre_rand rand;
    acre_rand_seed(&rand, user->number + 1);
    uint64_t stream = cpu_rig_stream(rig, user->number);
    struct native_region data = cpu_rig_region(rig, 2 * MIB);
    uint32_t *view = (uint32_t *)(uintptr_t)data.address;
    uint32_t expect = 0;
    cpu_rig_fill(rig, stream, &data, 0, 2 * MIB, 0, 4);
    for (uint32_t round = 1; round <= user->rounds; round++) {
        uint32_t value = (uint32_t)acre_rand_below(&rand, 1000);
        switch (acre_rand_below(&rand, 5)) {
        case 0:
            launch_add(rig, stream, user->kernel, &data, 0, 1, value);
            expect += value;
            break;
        case 1:
            launch_add(rig, stream, user->kernel, &data, 0, 1024, value);
            expect += value;
            break;
        case 2:
            cpu_rig_copy(rig, stream, &data, MIB, &data, 0, 4 << acre_rand_below(&rand, 18));
            break;
        case 3: {
            struct acre_error err;
            uint32_t next = (user->number + 1) % 8;
            uint64_t past = atomic_load(&rig->words[next]);
            cpu_rig_require(table->wait(rig->seat, stream, rig->words_region, next * 8, past, &err),
                            &err);
            break;
        }
        default:
            cpu_rig_fill(rig, stream, &data, 0, 4096, value, 4);
            expect = value;
            break;
        }
        if (acre_rand_below(&rand, 4) == 0 || round == user->rounds) {
            cpu_rig_sync(rig, stream, user->number, round);
            user->wrong += view[0] != expect || view[63] != expect;
        }
    }
    table->stream_destroy(rig->seat, stream);
    table->region_destroy(rig->seat, data.handle);
    return NULL;
}

static void many_threads_mix_work(void) {
    struct cpu_rig rig;
    cpu_rig_init(&rig);
    enum { USERS = 8 };
    struct user users[USERS];
    uint64_t kernel = cpu_rig_native(&rig, add_native);
    for (uint32_t i = 0; i < USERS; i++) {
        users[i] = (struct user){.rig = &rig, .number = i, .kernel = kernel, .rounds = 800};
        REQUIRE_EQ(pthread_create(&users[i].thread, NULL, use, &users[i]), 0);
    }
    for (uint32_t i = 0; i < USERS; i++) {
        pthread_join(users[i].thread, NULL);
        CHECK_EQ(users[i].wrong, 0);
    }
    cpu_rig_finish(&rig);
}

/* --- stacks --------------------------------------------------------------------------------- */

static uint32_t count_maps(void) {
    FILE *file = fopen("/proc/self/maps", "re");
    REQUIRE(file != NULL);
    uint32_t lines = 0;
    for (int c = fgetc(file); c != EOF; c = fgetc(file)) {
        lines += c == '\n';
    }
    fclose(file);
    return lines;
}

/* The maps of a process are few: on a large machine tripwires leave most to others, and all that
 * come have some. */
static void guards_leave_maps_to_others(void) {
    enum { POOLS = 6, CORES = 64, MAPS = 65530 };
    struct cpu_pool pools[POOLS];
    struct cpu_tripwires tripwires;
    struct acre_error err = {0};
    FILE *file = fopen("/proc/sys/vm/max_map_count", "re");
    uint32_t limit = MAPS;
    if (file != NULL) {
        CHECK_EQ(fscanf(file, "%u", &limit), 1);
        fclose(file);
    }
    if (limit < MAPS) {
        acre_test_skip("a process has %u maps", limit);
    }
    uint32_t before = count_maps();
    cpu_tripwires_init(&tripwires);
    uint32_t left = atomic_load(&tripwires.left);
    CHECK(left > 0 && left <= limit / 8);
    for (int round = 0; round < 2; round++) { /* what is given back is had again */
        uint32_t last = before;
        for (size_t i = 0; i < POOLS; i++) {
            acre_test_context("round %d, pool %zu", round, i);
            cpu_rig_require(cpu_pool_init(&pools[i], CORES, &tripwires, &err), &err);
            cpu_rig_require(cpu_pool_equip(&pools[i], true, false, &err), &err);
            uint32_t now = count_maps();
            CHECK(now >= last + 2 * CORES);
            last = now;
        }
        CHECK(last <= before + limit / 2); /* a quarter; sanitizers have as many beside */
        for (size_t i = 0; i < POOLS; i++) {
            cpu_pool_end(&pools[i]);
            cpu_pool_finish(&pools[i]);
        }
        CHECK_EQ(atomic_load(&tripwires.left), left);
    }
}

#if defined(__clang__) /* as in fiber.c: sanitizers know the stack of a thread alone */
#define PLAIN __attribute__((disable_sanitizer_instrumentation))
#else
#define PLAIN __attribute__((no_sanitize("address", "thread", "undefined")))
#endif

enum { TOUCHED_ITEMS = 4, TOUCHED_BYTES = 48 << 10 };

struct touched {
    struct cpu_fibers_call call;
    uintptr_t lowest[TOUCHED_ITEMS]; /* of what the item has on its stack */
    uint32_t kept[TOUCHED_ITEMS];
};

/* Most of a stack is the item's, and it is so after the others had their turn. */
PLAIN static void touch_stack(const void *context, uint32_t index) {
    struct touched *touched = *(struct touched *const *)context;
    volatile char room[TOUCHED_BYTES];
    for (size_t i = 0; i < sizeof(room); i++) {
        room[i] = (char)(index + i);
    }
    touched->lowest[index] = (uintptr_t)room;
    touched->call.barrier(touched->call.fibers);
    for (size_t i = 0; i < sizeof(room); i++) {
        touched->kept[index] += room[i] == (char)(index + i);
    }
}

static bool is_readable(int to, uintptr_t address) {
    bool is = write(to, (const void *)address, 1) == 1;
    CHECK(is || errno == EFAULT);
    return is;
}

/* arm64 has pages of up to 64 KiB: a tripwire of less would take some of the stack above it. */
static void guards_are_whole_pages(void) {
    enum { STEP = 4096 };
    static const uint32_t pages[] = {4096, 16384, 65536};
    for (size_t i = 0; i < ACRE_COUNT(pages); i++) {
        struct cpu_tripwires tripwires = {.left = TOUCHED_ITEMS, .page_bytes = pages[i]};
        struct cpu_fibers *fibers = cpu_fibers_create(TOUCHED_ITEMS, &tripwires, TOUCHED_ITEMS);
        struct touched touched = {0}, *context = &touched;
        int ends[2];
        REQUIRE(fibers != NULL && pipe(ends) == 0);
        CHECK_EQ(atomic_load(&tripwires.left), 0);
        cpu_fibers_call_init(&touched.call, fibers);
        touched.call.run(fibers, TOUCHED_ITEMS, touch_stack, &context);
        for (uint32_t j = 0; j < TOUCHED_ITEMS; j++) {
            acre_test_context("pages of %u bytes, item %u", pages[i], j);
            CHECK_EQ(touched.kept[j], TOUCHED_BYTES);
            uintptr_t at = touched.lowest[j] / STEP * STEP;
            while (is_readable(ends[1], at) && at > touched.lowest[j] - CPU_FIBER_STACK_BYTES) {
                at -= STEP;
            }
            uint32_t tripwire_bytes = 0;
            for (; tripwire_bytes <= pages[i] && !is_readable(ends[1], at); at -= STEP) {
                tripwire_bytes += STEP;
            }
            CHECK(j == 0 ? tripwire_bytes >= pages[i] : tripwire_bytes == pages[i]);
        }
        close(ends[0]);
        close(ends[1]);
        cpu_fibers_destroy(fibers);
        CHECK_EQ(atomic_load(&tripwires.left), TOUCHED_ITEMS);
    }
}

/* Kernels compiled for one kind of processor may not run on another: they are kept apart. */
static void processors_are_kept_apart(void) {
    static const char *const texts[] = {
        "processor\t: 0\nflags\t\t: fpu sse2 avx2\n",
        "processor\t: 0\nflags\t\t: fpu sse2 avx2 avx512f\n",
        "processor\t: 0\nFeatures\t: fp asimd atomics\nCPU implementer\t: 0x41\nCPU part\t: "
        "0xd0c\n",
        "processor\t: 0\nFeatures\t: fp asimd atomics\nCPU implementer\t: 0x41\nCPU part\t: "
        "0xd4f\n",
        "processor\t: 0\nFeatures\t: fp asimd atomics\nCPU implementer\t: 0x46\nCPU part\t: "
        "0xd4f\n",
        "processor\t: 0\nFeatures\t: fp asimd sve2\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f\n",
    };
    for (size_t i = 0; i < ACRE_COUNT(texts); i++) {
        uint64_t one = cpu_features(acre_str_from(texts[i]));
        CHECK_U64(one, cpu_features(acre_str_from(texts[i])));
        for (size_t j = 0; j < i; j++) {
            acre_test_context("%zu and %zu", j, i);
            CHECK(one != cpu_features(acre_str_from(texts[j])));
        }
    }
}

static const struct acre_test tests[] = {
    {"it_describes_the_machine", it_describes_the_machine, 0},
    {"more_memory_than_there_is_is_refused", more_memory_than_there_is_is_refused, 0},
    {"a_stream_works_in_order", a_stream_works_in_order, 0},
    {"patterns_fill_from_their_first_byte", patterns_fill_from_their_first_byte, 0},
    {"streams_wait_for_words_of_others", streams_wait_for_words_of_others, 0},
    {"streams_wait_for_words_of_the_host", streams_wait_for_words_of_the_host, 0},
    {"notify_comes_after_the_work_before_it", notify_comes_after_the_work_before_it, 0},
    {"a_seat_closes_with_work_under_way", a_seat_closes_with_work_under_way, 0},
    {"times_are_told_once_and_in_order", times_are_told_once_and_in_order, 0},
    {"every_group_runs_once", every_group_runs_once, 0},
    {"bad_grids_are_refused", bad_grids_are_refused, 0},
    {"local_arguments_are_memory_of_the_group", local_arguments_are_memory_of_the_group, 0},
    {"many_threads_mix_work", many_threads_mix_work, 0},
    {"guards_leave_maps_to_others", guards_leave_maps_to_others, 0},
    {"guards_are_whole_pages", guards_are_whole_pages, 0},
    {"processors_are_kept_apart", processors_are_kept_apart, 0},
};
ACRE_TEST_MAIN(tests)
