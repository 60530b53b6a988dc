/* compute_loss.c - a context that is lost: who waits is told, once each and why; who tries again
 * works again; what is not lost is not damaged. Some is the CPU's only, here or in a runner. */
#include "conformance/compute_suite.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* --- what who waits is told ----------------------------------------------------------------- */

/* A machine that is busy must not take what is honest for hung. */
static uint32_t limit_ms(void) {
    return kit_is("cuda") || kit_is("hip") ? 300 : 800;
}

/* In this process a kernel stays when it is given up: it must be ended from here. */
static void needs_an_end(void) {
    if (!kit_is_isolated() && !kit_is("cpu")) {
        acre_test_skip("only the CPU's kernels are given up in this process");
    }
}

/* `endless` on memory of the host, which can end it. */
struct endless {
    struct acre_buffer buffer;
    volatile uint32_t *word;
};

static void begin_endless(struct kit *kit, struct endless *endless) {
    endless->buffer = kit_buffer(kit, ACRE_MEMORY_MAPPED, 64);
    endless->word = acre_buffer_host(kit->context, endless->buffer);
    endless->word[0] = 0;
    RUN(kit, "endless", kit_grid(1, 1), ACRE_BUFFER(endless->buffer));
}

static void end_endless(struct kit *kit, struct endless *endless) {
    endless->word[0] = 1234567;
    if (kit_is_isolated()) {
        kit_free(kit, endless->buffer);
        kit_close(kit);
    } else { /* nothing works there any more */
        CHECK_EQ(acre_context_close(kit->context), 0);
        acre_compute_close(kit->compute);
    }
}

/* They come one by one: who reads at once may see some of them. */
static void check_fired(int fd, uint64_t expected) {
    struct pollfd watch = {.fd = fd, .events = POLLIN};
    uint64_t sum = 0, count = 0;
    while (sum < expected && poll(&watch, 1, 10000) == 1) {
        CHECK_EQ(read(fd, &count, sizeof(count)), 8);
        sum += count;
    }
    CHECK_U64(sum, expected);
}

/* Notices of what is lost come too, one each; those that had come do not come again. */
static void check_notices_of_a_loss(struct kit *kit, void (*lose)(struct kit *kit), int code) {
    int fds[2] = {eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    struct endless endless;
    REQUIRE(fds[0] >= 0 && fds[1] >= 0);
    (void)kit_kernel(kit, "endless");
    for (int i = 0; i < 5; i++) {
        OK(acre_stream_notify(kit->stream, fds[i % 2], ERR));
    }
    OK(acre_stream_sync(kit->stream, 20000, ERR));
    check_fired(fds[0], 3);
    check_fired(fds[1], 2);
    begin_endless(kit, &endless);
    for (int i = 0; i < 7; i++) {
        OK(acre_stream_notify(kit->stream, fds[i == 3], ERR));
    }
    lose(kit);
    check_fired(fds[0], 6);
    check_fired(fds[1], 1);
    CHECK_EQ(acre_stream_sync(kit->stream, 20000, ERR), code);
    if (kit_is_isolated()) { /* and goes on */
        OK(acre_stream_notify(kit->stream, fds[1], ERR));
        OK(acre_stream_sync(kit->stream, 20000, ERR));
        check_fired(fds[1], 1);
        uint64_t count = 0;
        CHECK_EQ(read(fds[0], &count, sizeof(count)), -1);
    }
    end_endless(kit, &endless);
    close(fds[0]);
    close(fds[1]);
}

static void lose_by_limit(struct kit *kit) {
    (void)kit; /* the keeper does */
}

static void kill_runner(struct kit *kit) {
    (void)kit;
    pid_t runner = kit_runner();
    REQUIRE(runner > 0);
    REQUIRE_EQ(kill(runner, SIGKILL), 0);
}

static void faults_of_endless_kernels_notify(void) { /* GPU-6 */
    needs_an_end();
    struct kit kit;
    kit_open_with(&kit, (struct acre_context_options){.kernel_limit_ms = limit_ms()});
    check_notices_of_a_loss(&kit, lose_by_limit, ACRE_ETIMEOUT);
}

static void faults_of_killed_runners_notify(void) { /* GPU-6 */
    kit_needs_isolation();
    struct kit kit;
    kit_open(&kit);
    check_notices_of_a_loss(&kit, kill_runner, ACRE_EUNAVAILABLE);
}

/* A context that is lost in this process says why, as often as it is asked, for ever. */
static void faults_here_keep_their_reason(void) {
    if (kit_is_isolated() || !kit_is("cpu")) {
        acre_test_skip("of the CPU in this process");
    }
    struct kit kit;
    struct endless endless;
    struct acre_stream *other = NULL;
    struct acre_event event;
    struct acre_context_report report;
    kit_open_with(&kit, (struct acre_context_options){.kernel_limit_ms = limit_ms()});
    OK(acre_stream_create(kit.context, &other, ERR));
    begin_endless(&kit, &endless);
    FAILS(acre_stream_sync(kit.stream, 20000, ERR), ACRE_ETIMEOUT, "endless");
    for (int i = 0; i < 5; i++) {
        acre_test_context("look %d", i);
        FAILS(acre_event_record(other, &event, ERR), ACRE_ETIMEOUT, "endless");
        acre_context_report(kit.context, &report);
        CHECK_HAS(report.failure, "endless");
        kit_pass((int)limit_ms() / 8); /* the keeper looks that often */
    }
    acre_test_context("%s", "");
    end_endless(&kit, &endless);
}

/* --- functions ------------------------------------------------------------------------------ */

struct release {
    _Atomic uint32_t *word;
    atomic_bool is_over, was_needed;
};

static void wait_for_word(const struct acre_groups *groups, const void *const *arguments) {
    const _Atomic uint32_t *word = arguments[0];
    (void)groups;
    while (atomic_load(word) != 0) {
    }
}

static void *release_late(void *user) {
    struct release *self = user;
    double begun = kit_seconds();
    while (!atomic_load(&self->is_over) && kit_seconds() - begun < 10) {
        kit_pass(5);
    }
    atomic_store(&self->was_needed, !atomic_load(&self->is_over));
    atomic_store(self->word, 0);
    return NULL;
}

/* Short so far, so that it could run where it is given; then it never ends. */
static void faults_of_functions_that_were_short(void) {
    if (kit_is_isolated() || !kit_is("cpu")) {
        acre_test_skip("functions are the CPU's, in this process");
    }
    struct kit kit;
    struct acre_program *program = NULL;
    struct acre_kernel *kernel = NULL;
    kit_open_with(&kit, (struct acre_context_options){.kernel_limit_ms = limit_ms()});
    OK(acre_program_native(kit.context, "void waits(global uint *word)", wait_for_word, &program,
                           ERR));
    OK(acre_kernel_find(program, "waits", &kernel, ERR));
    struct acre_buffer buffer = kit_buffer(&kit, ACRE_MEMORY_MAPPED, 64);
    struct release release = {.word = acre_buffer_host(kit.context, buffer)};
    atomic_store(release.word, 0);
    for (int i = 0; i < 50; i++) {
        OK(acre_launch(kit.stream, kernel, kit_grid(1, 1), ARGS(ACRE_BUFFER(buffer)), ERR));
        OK(acre_stream_sync(kit.stream, 20000, ERR));
    }
    atomic_store(release.word, 1);
    pthread_t thread;
    REQUIRE_EQ(pthread_create(&thread, NULL, release_late, &release), 0);
    OK(acre_launch(kit.stream, kernel, kit_grid(1, 1), ARGS(ACRE_BUFFER(buffer)), ERR));
    CHECK(!atomic_load(&release.was_needed)); /* the launch came back by itself */
    FAILS(acre_stream_sync(kit.stream, 20000, ERR), ACRE_ETIMEOUT, "waits");
    atomic_store(&release.is_over, true);
    pthread_join(thread, NULL);
    CHECK(!atomic_load(&release.was_needed));
    CHECK_EQ(acre_context_close(kit.context), 0);
    acre_compute_close(kit.compute);
}

/* --- the CPU in a runner -------------------------------------------------------------------- */

static void needs_the_cpu_in_a_runner(void) {
    if (!kit_is("cpu") || !kit_is_isolated()) {
        acre_test_skip("of the CPU in a process of its own");
    }
}

static struct acre_program *build_text(struct kit *kit, const char *text) {
    struct acre_source source = {
        .text = text, .name = "here.acl", .language = ACRE_LANGUAGE_PORTABLE};
    struct acre_program *program = NULL;
    OK(acre_program_build(kit->context, &source, &program, NULL, ERR));
    return program;
}

/* Calls that need more stack than an item has end the runner, and damage no other item. */
static void faults_of_deep_calls(void) {
    needs_the_cpu_in_a_runner();
    static const char text[] =
        "static __attribute__((noinline)) uint deep(uint n, uint item) {\n"
        "    volatile uint words[4000];\n"
        "    for (uint i = 0; i < 8u; i++) {\n" /* the rest is perhaps another item's */
        "        words[i] = item;\n"
        "    }\n"
        "    return n > 0u ? deep(n - 1u, item) + words[n] : words[7];\n"
        "}\n"
        "kernel void dive(global uint *out, uint n) {\n"
        "    uint item = (uint)local_id(0);\n"
        "    volatile uint mine[64];\n"
        "    for (uint i = 0; i < 64u; i++) {\n"
        "        mine[i] = item;\n"
        "    }\n"
        "    barrier();\n"
        "    n = item > 0u ? n : 0u;\n" /* below the first is no item */
        "    uint sum = deep(n, item);\n"
        "    barrier();\n"
        "    uint wrong = sum != item * (n + 1u);\n"
        "    for (uint i = 0; i < 64u; i++) {\n"
        "        wrong += mine[i] != item;\n"
        "    }\n"
        "    out[item] = wrong;\n"
        "}\n";
    enum { ITEMS = 64 };
    struct kit kit;
    struct acre_kernel *kernel = NULL;
    kit_open(&kit);
    struct acre_program *program = build_text(&kit, text);
    OK(acre_kernel_find(program, "dive", &kernel, ERR));
    struct acre_buffer buffer = kit_buffer(&kit, ACRE_MEMORY_MAPPED, ITEMS * 4);
    const uint32_t *wrong = acre_buffer_host(kit.context, buffer);
    /* 16,000 bytes each; a stack has a little less than 65,536. */
    static const struct {
        uint32_t calls;
        int expected;
    } rows[] = {{1, 0}, {3, 0}, {5, ACRE_EUNAVAILABLE}, {2, 0}, {8, ACRE_EUNAVAILABLE}};
    for (size_t row = 0; row < ACRE_COUNT(rows); row++) {
        acre_test_context("%u calls", rows[row].calls);
        OK(acre_fill(kit.stream, buffer, 0, ITEMS * 4, 0, 4, ERR));
        OK(acre_launch(kit.stream, kernel, kit_grid(1, ITEMS),
                       ARGS(ACRE_BUFFER(buffer), ACRE_U32(rows[row].calls - 1)), ERR));
        CHECK_EQ(acre_stream_sync(kit.stream, 20000, ERR), rows[row].expected);
        for (uint32_t i = 0; i < ITEMS; i++) {
            CHECK_U64(wrong[i], 0);
        }
    }
    acre_test_context("%s", "");
    struct acre_context_report report;
    acre_context_report(kit.context, &report);
    CHECK_HAS(report.failure, "signal 11");
    acre_program_destroy(program);
    kit_free(&kit, buffer);
    kit_close(&kit);
}

/* A launch that the runner refuses is told by who waits for it, whatever was freed between. */
static void faults_told_late_survive_frees(void) {
    needs_the_cpu_in_a_runner();
    for (int debug = 0; debug < 2; debug++) {
        struct kit kit;
        struct acre_kernel *kernel = NULL;
        acre_test_context("debug %d", debug);
        kit_open_with(&kit, (struct acre_context_options){.debug = debug == 1});
        struct acre_program *program =
            build_text(&kit, "kernel void one(global uint *p) {\n    p[0] = 7u;\n}\n");
        OK(acre_kernel_find(program, "one", &kernel, ERR));
        struct acre_buffer used = kit_buffer(&kit, ACRE_MEMORY_DEVICE, 1024);
        struct acre_buffer other = kit_buffer(&kit, ACRE_MEMORY_DEVICE, 1024);
        OK(acre_stream_sync(kit.stream, 20000, ERR));
        struct acre_grid grid = {.groups = {INT32_MAX, 65535, 65535}, .group = {1024, 1, 1}};
        OK(acre_launch(kit.stream, kernel, grid, ARGS(ACRE_BUFFER(used)), ERR));
        kit_free(&kit, other);
        FAILS(acre_stream_sync(kit.stream, 20000, ERR), ACRE_EINVALID, "group");
        OK(acre_stream_sync(kit.stream, 20000, ERR)); /* once */
        kit_free(&kit, used);
        acre_program_destroy(program);
        kit_close(&kit);
    }
}

/* --- many who try again at once ------------------------------------------------------------- */

struct crowd {
    atomic_bool is_over;
    atomic_uint worked, failed;
};

struct one {
    struct crowd *crowd;
    struct acre_stream *stream;
    pthread_t thread;
};

static void *retry(void *user) {
    struct one *self = user;
    struct crowd *crowd = self->crowd;
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    REQUIRE(fd >= 0);
    while (!atomic_load(&crowd->is_over)) {
        struct acre_buffer buffer;
        int r = acre_buffer_alloc(self->stream, ACRE_MEMORY_DEVICE, 4096, &buffer, NULL);
        if (r == 0) {
            r = acre_stream_notify(self->stream, fd, NULL);
            int freed = acre_buffer_free(self->stream, buffer, NULL);
            r = r == 0 ? freed : r;
        }
        atomic_fetch_add(r == 0 ? &crowd->worked : &crowd->failed, 1);
    }
    close(fd);
    return NULL;
}

static bool comes_to(const atomic_uint *count, uint32_t wanted, double limit_s) {
    double begun = kit_seconds();
    while (atomic_load(count) < wanted && kit_seconds() - begun < limit_s) {
        kit_pass(1);
    }
    return atomic_load(count) >= wanted;
}

/* One death is one failure, however many find it: the circuit stays closed, and the context is made
 * anew while they go on. */
static void faults_beside_many_that_retry(void) { /* GPU-6 */
    kit_needs_isolation();
    enum { THREADS = 12, ROUNDS = 200 };
    struct kit kit;
    struct one all[THREADS];
    struct acre_context_report report;
    kit_open(&kit);
    struct crowd crowd = {0};
    for (size_t i = 0; i < THREADS; i++) {
        all[i].crowd = &crowd;
        OK(acre_stream_create(kit.context, &all[i].stream, ERR));
    }
    for (size_t i = 0; i < THREADS; i++) {
        REQUIRE_EQ(pthread_create(&all[i].thread, NULL, retry, &all[i]), 0);
    }
    CHECK(comes_to(&crowd.worked, ROUNDS, 20));
    double begun = kit_seconds();
    kill_runner(&kit);
    do { /* perhaps before any call finds that it is gone */
        kit_pass(1);
        acre_context_report(kit.context, &report);
    } while (report.rebuilt == 0 && kit_seconds() - begun < 15);
    CHECK(comes_to(&crowd.worked, atomic_load(&crowd.worked) + ROUNDS, 15));
    printf("works again after %.0f ms, %u failed\n", (kit_seconds() - begun) * 1e3,
           atomic_load(&crowd.failed));
    atomic_store(&crowd.is_over, true);
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(all[i].thread, NULL);
        acre_stream_destroy(all[i].stream);
    }
    acre_context_report(kit.context, &report);
    CHECK_EQ(report.rebuilt, 1);
    kit_close(&kit);
}

static const struct acre_test tests[] = {
    TEST(faults_of_endless_kernels_notify),
    TEST(faults_of_killed_runners_notify),
    TEST(faults_here_keep_their_reason),
    TEST(faults_of_functions_that_were_short),
    TEST(faults_of_deep_calls),
    TEST(faults_told_late_survive_frees),
    TEST(faults_beside_many_that_retry),
};
SUITE(compute_loss_suite, tests);
