/* The life of a runner: how it dies, that it is explained, that nothing else dies with it or stays
 * behind, and what it costs (GPU-6). */
#include "core/file.h"
#include "core/futex.h"
#include "core/spin.h"
#include "support/remote_rig.h"
#include "support/test.h"
#include "support/tree.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- death ---------------------------------------------------------------------------------- */

static const struct {
    const char *kernel;
    const char *why;
} deaths[] = {
    {"crash", "the runner was killed by signal 11 (Segmentation fault)"},
    {"abort", "the runner was killed by signal 6 (Aborted)"},
    {"fault", "a kernel read or wrote outside its memory (DOUBLE_ERROR_ADDRESS)"},
};

static void a_death_is_explained_and_survived(void) { /* GPU-6 */
    struct rig rig = rig_open("double", 1);
    struct rig other = rig_open("double", 1);
    for (size_t i = 0; i < ACRE_COUNT(deaths); i++) {
        struct acre_error err = {0};
        CHECK_EQ(rig_launch(&rig, deaths[i].kernel, &err), 0);
        CHECK_EQ(rig_reach(&rig, &err), ACRE_EUNAVAILABLE);
        CHECK_HAS(err.text, deaths[i].why);
        /* So does everything else. */
        uint64_t a, b;
        CHECK_EQ(rig.table->memory(rig.seat, &a, &b, &err), ACRE_EUNAVAILABLE);
        CHECK_HAS(err.text, deaths[i].why);
        CHECK_EQ(rig_add(&rig, rig.host, NUMBERS_AT, 1, 1, &err), ACRE_EUNAVAILABLE);
        CHECK_HAS(err.text, deaths[i].why);
        CHECK_EQ(rig.table->stream_create(rig.seat, 1, 0, &a, &err), ACRE_EUNAVAILABLE);
        rig_check_works(&other);
        rig_restart(&rig);
        rig_check_works(&rig);
    }
    rig_close(&rig);
    rig_close(&other);
}

struct waiting {
    struct rig *rig;
    int result;
    struct acre_error err;
};

static void *fill_ring(void *argument) {
    struct waiting *waiting = argument;
    struct rig *rig = waiting->rig;
    do { /* until the queue is full, and then until the end */
        waiting->result = rig_add(rig, rig->host, NUMBERS_AT, 1, 1, &waiting->err);
    } while (waiting->result == 0);
    return NULL;
}

static void *ask_behind(void *argument) {
    struct waiting *waiting = argument;
    struct rig *rig = waiting->rig;
    waiting->result = rig->table->profile(rig->seat, rig->stream, false, &waiting->err);
    return NULL;
}

enum { WAITING = 8 };

struct crowd {
    pthread_t threads[WAITING];
    struct waiting waiting[WAITING];
};

/* Behind a kernel that never ends. */
static void crowd_gather(struct crowd *crowd, struct rig *rig) {
    struct acre_error err = {0};
    CHECK_EQ(rig_launch(rig, "hang", &err), 0);
    CHECK_EQ(rig->table->signal(rig->seat, rig->stream, ++rig->issued, &err), 0);
    for (size_t i = 0; i < WAITING; i++) {
        crowd->waiting[i] = (struct waiting){.rig = rig};
        REQUIRE_EQ(pthread_create(&crowd->threads[i], NULL, i < 2 ? fill_ring : ask_behind,
                                  &crowd->waiting[i]),
                   0);
    }
    const struct remote *remote = rig->seat;
    while (atomic_load(&remote->shared->room_wanted) == 0) { /* until they wait */
        acre_test_rest();
    }
    CHECK_U64(atomic_load(rig->words), 0);
}

static void crowd_leaves(struct crowd *crowd, const char *why) {
    for (size_t i = 0; i < WAITING; i++) {
        pthread_join(crowd->threads[i], NULL);
        CHECK_EQ(crowd->waiting[i].result, ACRE_EUNAVAILABLE);
        CHECK_STR(crowd->waiting[i].err.text, why);
    }
}

/* Whoever waits for room or for an answer comes back with the reason. */
static void an_ended_runner_lets_everybody_go(void) {
    struct rig rig = rig_open("double", 1);
    struct acre_error err = {0};
    struct crowd crowd;
    crowd_gather(&crowd, &rig);
    remote_end(rig.seat, "kernel 'hang' ran longer than 5 ms");
    crowd_leaves(&crowd, "kernel 'hang' ran longer than 5 ms");
    CHECK_EQ(rig.table->check(rig.seat, &err), ACRE_EUNAVAILABLE);
    CHECK_STR(err.text, "kernel 'hang' ran longer than 5 ms");
    rig.numbers[100] = 77;
    rig_restart(&rig);
    CHECK_EQ(rig.numbers[100], 77); /* host memory stays */
    rig_check_works(&rig);
    /* Running or not, it is started anew. */
    rig_restart(&rig);
    rig_check_works(&rig);
    rig_close(&rig);
}

/* A driver may hold a killed process for ever. Here an eventfd stands for its pidfd: the signal
 * does not reach it, and nothing tells of its death. */
static void a_runner_that_stays_lets_everybody_go(void) {
    struct rig rig = rig_open("double", 1);
    struct acre_error err = {0};
    struct remote *remote = rig.seat;
    struct crowd crowd;
    crowd_gather(&crowd, &rig);
    int real = dup(remote->pidfd);
    int silent = eventfd(0, EFD_CLOEXEC);
    REQUIRE(real >= 0 && silent >= 0);
    REQUIRE_EQ(dup2(silent, remote->pidfd), remote->pidfd);
    remote->end_limit_ms = 10;
    remote_end(rig.seat, "kernel 'hang' ran longer than 5 ms");
    crowd_leaves(&crowd, "kernel 'hang' ran longer than 5 ms");
    CHECK_EQ(rig.table->check(rig.seat, &err), ACRE_EUNAVAILABLE);
    CHECK_STR(err.text, "kernel 'hang' ran longer than 5 ms");
    CHECK_EQ(remote_restart(rig.seat, &err), ACRE_EUNAVAILABLE);
    CHECK_HAS(err.text, "does not end");
    /* It goes at last. */
    REQUIRE_EQ(dup2(real, remote->pidfd), remote->pidfd);
    kill(remote->pid, SIGKILL);
    rig_await_end(&rig);
    rig_restart(&rig);
    rig_check_works(&rig);
    rig_close(&rig);
    close(real);
    close(silent);
}

static void a_hung_runner_is_closed(void) {
    struct rig rig = rig_open("double", 1);
    struct acre_error err = {0};
    CHECK_EQ(rig_launch(&rig, "hang", &err), 0);
    struct pollfd fd = {.fd = dup(remote_pidfd(rig.seat)), .events = POLLIN};
    CHECK_EQ(poll(&fd, 1, 0), 0);
    rig_close(&rig);
    CHECK_EQ(poll(&fd, 1, 0), 1); /* gone */
    close(fd.fd);
}

/* A message that makes no sense ends the runner, with its reason. */
static void a_damaged_ring_ends_the_runner(void) {
    struct rig rig = rig_open("double", 1);
    struct acre_error err = {0};
    struct remote *remote = rig.seat;
    struct wire_message *message = (void *)remote->shared->queue;
    *message = (struct wire_message){.bytes = 32, .op = WIRE_SIGNAL, .stream = 999};
    atomic_store(&remote->shared->head, 32);
    atomic_store(&remote->shared->queue_sleeps, 0);
    acre_futex_wake(&remote->shared->queue_sleeps, 1, ACRE_FUTEX_SHARED);
    rig_await_end(&rig);
    CHECK_EQ(rig.table->check(rig.seat, &err), ACRE_EUNAVAILABLE);
    CHECK_STR(err.text, "a message for an unknown stream");
    rig_restart(&rig);
    rig_check_works(&rig);
    rig_close(&rig);
}

/* Killed while idle by somebody else: the next call that is queued may notice, check() does. */
static void a_killed_runner_is_noticed(void) {
    struct rig rig = rig_open("double", 1);
    struct acre_error err = {0};
    kill(((struct remote *)rig.seat)->pid, SIGKILL);
    rig_await_end(&rig);
    CHECK_EQ(rig.table->check(rig.seat, &err), ACRE_EUNAVAILABLE);
    CHECK_HAS(err.text, "the runner was killed by signal 9 (Killed)");
    rig_close(&rig);
}

/* A program that ignores its children, or collects them all, loses the reason and nothing else. */
static void children_of_the_program_are_not_our_business(void) {
    struct rig rig = rig_open("double", 1);
    struct acre_error err = {0};
    signal(SIGCHLD, SIG_IGN);
    CHECK_EQ(rig_launch(&rig, "crash", &err), 0);
    rig_await_end(&rig);
    CHECK_EQ(rig.table->check(rig.seat, &err), ACRE_EUNAVAILABLE);
    CHECK_HAS(err.text, "the runner ended; the reason is unknown");
    rig_restart(&rig);
    rig_check_works(&rig);
    signal(SIGCHLD, SIG_DFL);
    pid_t child = fork();
    if (child == 0) {
        _exit(7);
    }
    rig_restart(&rig);
    rig_close(&rig);
    int status = 0;
    CHECK_EQ(waitpid(-1, &status, 0), child); /* ours is collected, theirs is not */
    CHECK_EQ(WEXITSTATUS(status), 7);
}

/* --- compiled kernels ----------------------------------------------------------------------- */

/* In acre-runner itself: C of the CPU's back end, OpenCL C (of PoCL), CUDA where there is a GPU. */
#define ENTRY     "__attribute__((visibility(\"default\"))) void acre_entry_"
#define ARGUMENTS "(const void *groups, const void *const *a) "
static const char cpu_source[] = /* clang-format off */
    ENTRY "crash" ARGUMENTS "{ *(volatile int *volatile)0 = 1; }\n"
    ENTRY "never" ARGUMENTS "{ for (;;) { __asm__ volatile(\"\"); } }\n"
    ENTRY "add" ARGUMENTS "{ *(unsigned *)a[0] += *(const unsigned *)a[1]; }\n";
static const char opencl_source[] =
    "kernel void crash(void) { *(volatile global int *)8 = 1; }\n"
    "kernel void never(void) { volatile int i = 1; while (i) { } }\n"
    "kernel void add(global uint *to, uint value) { *to += value; }\n";
static const char cuda_source[] =
    "extern \"C\" __global__ void crash(void) { *(volatile int *)8 = 1; }\n"
    "extern \"C\" __global__ void never(void) { volatile int i = 1; while (i) { } }\n"
    "extern \"C\" __global__ void add(unsigned *to, unsigned value) { *to += value; }\n";
/* clang-format on */
static const char *const kernel_names[] = {"add", "crash", "never"};
enum { ADD, CRASH, NEVER, KERNELS };

/* Compiled and loaded in the runner. */
static void build(struct rig *rig, const char *text, uint64_t ret_kernels[KERNELS]) {
    struct acre_error err = {0};
    struct native_source source = {.text = text,
                                   .length = strlen(text),
                                   .options = "",
                                   .kernels = kernel_names,
                                   .kernel_count = KERNELS};
    struct acre_buf binary, log;
    acre_buf_init(&binary, 1 << 24);
    acre_buf_init(&log, 1 << 16);
    int r = rig->table->compile(rig->seat, &source, &binary, &log, &err);
    if (r == ACRE_EUNAVAILABLE || r == ACRE_EUNSUPPORTED) {
        acre_test_skip("%s", err.text); /* no compiler here */
    }
    acre_test_context("%s %s", err.text, log.data);
    REQUIRE_EQ(r, 0);
    uint64_t module = 0;
    r = rig->table->load(rig->seat, binary.data, binary.length, &module, &err);
    acre_test_context("%s", err.text);
    REQUIRE_EQ(r, 0);
    for (size_t i = 0; i < KERNELS; i++) {
        struct kernel_facts facts;
        REQUIRE_EQ(
            rig->table->kernel(rig->seat, module, kernel_names[i], &ret_kernels[i], &facts, &err),
            0);
    }
    acre_test_context("%s", "");
    acre_buf_finish(&binary);
    acre_buf_finish(&log);
}

static void launch_add(struct rig *rig, uint64_t kernel) {
    struct acre_error err = {0};
    uint8_t extra[16] = {5};
    const struct native_arg args[] = {
        {.kind = ACRE_NATIVE_BUFFER, .region = rig->host, .offset = NUMBERS_AT, .length = 4},
        {.kind = ACRE_NATIVE_VALUE, .bytes = 4}};
    struct native_launch add = rig_launch_of(kernel);
    add.args = args;
    add.arg_count = ACRE_COUNT(args);
    add.extra = extra;
    add.extra_bytes = sizeof(extra);
    rig->numbers[0] = 1;
    CHECK_EQ(rig->table->launch(rig->seat, rig->stream, &add, &err), 0);
    CHECK_EQ(rig_reach(rig, &err), 0);
    CHECK_EQ(rig->numbers[0], 6);
}

/* A kernel that reads NULL, and one that never ends: the runner goes, the caller stays. */
static void check_deaths(const char *backend, const char *source, const char *why) {
    struct rig rig = rig_open(backend, 0);
    struct rig other = rig_open("double", 0);
    for (uint32_t i = CRASH; i <= NEVER; i++) {
        struct acre_error err = {0};
        uint64_t kernels[KERNELS];
        build(&rig, source, kernels);
        launch_add(&rig, kernels[ADD]);
        struct native_launch bad = rig_launch_of(kernels[i]);
        CHECK_EQ(rig.table->launch(rig.seat, rig.stream, &bad, &err), 0);
        if (i == NEVER) {
            struct pollfd fd = {.fd = remote_pidfd(rig.seat), .events = POLLIN};
            CHECK_EQ(poll(&fd, 1, 50), 0);
            remote_end(rig.seat, "kernel 'never' ran longer than 50 ms");
        }
        CHECK_EQ(rig_reach(&rig, &err), ACRE_EUNAVAILABLE);
        CHECK_HAS(err.text, i == CRASH ? why : "'never' ran longer");
        rig_check_works(&other);
        uint64_t begun_ns = acre_monotonic_ns();
        rig_restart(&rig);
        fprintf(stderr, "# after '%s': started again in %.1f ms\n", kernel_names[i],
                (double)(acre_monotonic_ns() - begun_ns) / 1e6);
    }
    rig_close(&rig);
    rig_close(&other);
}

static void kernels_of_the_cpu_end_their_runner_only(void) { /* GPU-6 */
    check_deaths("cpu", cpu_source, "signal 11 (Segmentation fault)");
}

static void kernels_of_opencl_end_their_runner_only(void) { /* GPU-6 */
    check_deaths("opencl", opencl_source, "signal 11 (Segmentation fault)");
}

static void kernels_of_cuda_end_their_runner_only(void) { /* GPU-6 */
    check_deaths("cuda", cuda_source, "outside its memory");
}

/* --- parents and leaks ---------------------------------------------------------------------- */

/* Runners take long to clean up from now on; "cleaned" is there when one has done so. */
static struct tree clean_slowly(void) {
    struct tree tree = tree_create(NULL);
    setenv("DOUBLE_FILES", tree.root, 1);
    return tree;
}

static void check_cleaned(const struct tree *tree, bool is_cleaned) {
    CHECK_EQ(access(tree_path(tree, "cleaned"), F_OK), is_cleaned ? 0 : -1);
    tree_erase(tree);
    unsetenv("DOUBLE_FILES");
}

/* It does when this returns. */
static void make_hang(struct rig *rig, const struct tree *tree) {
    struct acre_error err = {0};
    REQUIRE_EQ(rig_launch(rig, "hang", &err), 0);
    while (access(tree_path(tree, "hangs"), F_OK) != 0) {
        acre_test_rest();
    }
}

/* A child opens a seat, makes it hang or not, and is killed: so is the runner, even when a child
 * of that child still has its socket. It cleans up, unless it hangs. */
static void a_runner_never_outlives_its_parent(void) {
    for (int hangs = 0; hangs < 2; hangs++) {
        int pipes[2];
        struct tree tree = clean_slowly();
        REQUIRE_EQ(pipe(pipes), 0);
        pid_t parent = fork();
        REQUIRE(parent >= 0);
        if (parent == 0) {
            struct rig rig = rig_open("double", 1);
            pid_t pids[2] = {((struct remote *)rig.seat)->pid, fork()};
            if (pids[1] == 0) {
                for (;;) {
                    pause();
                }
            }
            if (hangs) {
                make_hang(&rig, &tree);
            }
            if (write(pipes[1], pids, sizeof(pids)) != sizeof(pids)) {
                _exit(1);
            }
            for (;;) {
                pause();
            }
        }
        pid_t pids[2];
        REQUIRE_EQ(read(pipes[0], pids, sizeof(pids)), (ssize_t)sizeof(pids));
        int pidfd = pidfd_open(pids[0], 0);
        REQUIRE(pidfd >= 0);
        kill(parent, SIGKILL);
        struct pollfd fd = {.fd = pidfd, .events = POLLIN};
        CHECK_EQ(poll(&fd, 1, 20000), 1);
        check_cleaned(&tree, !hangs);
        kill(pids[1], SIGKILL);
        waitpid(parent, NULL, 0);
        close(pidfd);
        close(pipes[0]);
        close(pipes[1]);
    }
}

static void a_closed_runner_cleans_up_unless_it_hangs(void) {
    for (int hangs = 0; hangs < 2; hangs++) {
        struct tree tree = clean_slowly();
        struct rig rig = rig_open("double", 1);
        if (hangs) {
            make_hang(&rig, &tree);
        }
        rig_close(&rig);
        check_cleaned(&tree, !hangs);
    }
}

static uint64_t resident_pages(void) {
    unsigned long long size, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    REQUIRE(file != NULL);
    REQUIRE_EQ(fscanf(file, "%llu %llu", &size, &resident), 2);
    fclose(file);
    return resident;
}

static void a_thousand_restarts_leak_nothing(void) {
    struct rig rig = rig_open("double", 1);
    uint64_t begun_ns = acre_monotonic_ns();
    uint32_t fds = 0;
    uint64_t pages = 0;
#if defined(__SANITIZE_THREAD__) /* which starts slowly */
    const uint32_t rounds = 200;
#else
    const uint32_t rounds = 1000;
#endif
    for (uint32_t i = 0; i < rounds; i++) {
        if (i % 3 == 0) {
            rig_launch(&rig, "hang", NULL);
        }
        rig_restart(&rig);
        if (i % 100 == 0) {
            rig_check_works(&rig);
        }
        if (i == 99) {
            fds = acre_test_open_files();
            pages = resident_pages();
        }
    }
    CHECK_EQ(acre_test_open_files(), fds);
#if !defined(__SANITIZE_ADDRESS__) /* which keeps what was freed for a while */
    CHECK(resident_pages() < pages + 256);
#endif
    CHECK(pages > 0);
    fprintf(stderr, "# a restart takes %.2f ms\n",
            (double)(acre_monotonic_ns() - begun_ns) / 1e6 / rounds);
    rig_close(&rig);
}

static void host_memory_is_given_back(void) {
    struct rig rig = rig_open("double", 1);
    struct acre_error err = {0};
    const uint64_t bytes = 8 << 20;
    for (uint32_t i = 0; i < 32; i++) {
        void *host;
        struct native_region region;
        REQUIRE_EQ(remote_map_host(rig.seat, bytes, &host, &err), 0);
        CHECK_EQ((uintptr_t)host % (2 << 20), 0);
        REQUIRE_EQ(
            rig.table->region_create(rig.seat, ACRE_MEMORY_PINNED, bytes, host, &region, &err), 0);
        struct native_fill fill = {
            .to = region.handle, .bytes = bytes, .pattern = i + 1, .pattern_bytes = 8};
        CHECK_EQ(rig.table->fill(rig.seat, rig.stream, &fill, &err), 0);
        CHECK_EQ(rig_reach(&rig, &err), 0);
        CHECK_U64(((uint64_t *)host)[bytes / 8 - 1], i + 1);
        rig.table->region_destroy(rig.seat, region.handle);
        remote_unmap(rig.seat, host, bytes);
    }
    struct stat facts;
    REQUIRE_EQ(fstat(((struct remote *)rig.seat)->host_fd, &facts), 0);
    CHECK((uint64_t)facts.st_blocks * 512 < bytes);
    rig_close(&rig);
}

/* --- time ----------------------------------------------------------------------------------- */

static uint64_t cpu_ticks(pid_t pid) {
    char path[64];
    char text[1024];
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    unsigned long long user = 0, system = 0;
    const char *rest = strrchr(acre_file_peek(path, text, sizeof(text)), ')');
    REQUIRE(rest != NULL);
    REQUIRE_EQ(
        sscanf(rest, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &user, &system), 2);
    return user + system;
}

static bool is_asleep(const struct wire_shared *shared) {
    bool sleeps = atomic_load(&shared->queue_sleeps) != 0;
    for (size_t i = 0; i < WIRE_SLOTS; i++) {
        sleeps = sleeps && atomic_load(&shared->slots[i].runner_sleeps) != 0;
    }
    return sleeps;
}

static void an_idle_runner_uses_no_processor(void) {
    struct rig rig = rig_open("double", 1);
    rig_check_works(&rig);
    pid_t pid = ((struct remote *)rig.seat)->pid;
    struct pollfd fd = {.fd = remote_pidfd(rig.seat), .events = POLLIN};
    while (!is_asleep(((struct remote *)rig.seat)->shared)) {
        acre_test_rest();
    }
    uint64_t before = cpu_ticks(pid);
    CHECK_EQ(poll(&fd, 1, 1000), 0); /* nothing comes for a second */
    CHECK(cpu_ticks(pid) - before <= 1);
    rig_close(&rig);
}

static int compare(const void *a, const void *b) {
    return (*(const uint64_t *)a > *(const uint64_t *)b) -
           (*(const uint64_t *)a < *(const uint64_t *)b);
}

enum { HAND_OVERS = 20000, LAUNCHES = 200000 };

/* How long a launch and its signal take to be seen by the caller. Printed, not asserted. */
static void report(struct rig *rig, uint64_t kernel, const char *what) {
    struct acre_error err = {0};
    static uint64_t ns[HAND_OVERS];
    uint64_t queued_ns = 0;
    uint8_t extra[16] = {1};
    const struct native_arg args[] = {
        {.kind = ACRE_NATIVE_BUFFER, .region = rig->host, .offset = NUMBERS_AT, .length = 4},
        {.kind = ACRE_NATIVE_VALUE, .bytes = 4}};
    struct native_launch add = rig_launch_of(kernel);
    add.args = args;
    add.arg_count = ACRE_COUNT(args);
    add.extra = extra;
    add.extra_bytes = sizeof(extra);
    rig->numbers[0] = 0;
    for (size_t i = 0; i < HAND_OVERS; i++) {
        uint64_t begun_ns = acre_monotonic_ns();
        REQUIRE_EQ(rig->table->launch(rig->seat, rig->stream, &add, &err), 0);
        REQUIRE_EQ(rig->table->signal(rig->seat, rig->stream, ++rig->issued, &err), 0);
        queued_ns += acre_monotonic_ns() - begun_ns;
        while (atomic_load_explicit(rig->words, memory_order_acquire) < rig->issued) {
            acre_cpu_relax();
        }
        ns[i] = acre_monotonic_ns() - begun_ns;
    }
    CHECK_EQ(rig->numbers[0], HAND_OVERS);
    qsort(ns, HAND_OVERS, sizeof(ns[0]), compare);
    uint64_t begun_ns = acre_monotonic_ns();
    for (uint32_t i = 0; i < LAUNCHES; i++) {
        REQUIRE_EQ(rig->table->launch(rig->seat, rig->stream, &add, &err), 0);
    }
    CHECK_EQ(rig_reach(rig, &err), 0);
    double seconds = (double)(acre_monotonic_ns() - begun_ns) / 1e9;
    fprintf(stderr,
            "# %s: launch + signal seen: p50 %.2f us, p99 %.2f us (both calls: %.2f us); "
            "%.2f million launches/s\n",
            what, (double)ns[HAND_OVERS / 2] / 1e3, (double)ns[HAND_OVERS * 99 / 100] / 1e3,
            (double)queued_ns / HAND_OVERS / 1e3, LAUNCHES / seconds / 1e6);
}

static void report_of_the_double(void) {
    struct rig rig = rig_open("double", 0);
    report(&rig, rig_find(&rig, "add"), "double, in a runner");
    rig_close(&rig);
}

/* What the runner costs, with real work: the same beside it in this process. */
static void report_of(const struct backend *table, const char *source) {
    uint64_t kernels[KERNELS];
    char what[64];
    struct rig here = rig_open_here(table);
    build(&here, source, kernels);
    snprintf(what, sizeof(what), "%s, in this process", table->name);
    report(&here, kernels[ADD], what);
    rig_close(&here);
    struct rig there = rig_open(table->name, 0);
    build(&there, source, kernels);
    snprintf(what, sizeof(what), "%s, in a runner", table->name);
    report(&there, kernels[ADD], what);
    rig_close(&there);
}

static void report_of_the_cpu(void) {
    report_of(&backend_cpu, cpu_source);
}

static void report_of_cuda(void) {
    report_of(&backend_cuda, cuda_source);
}

static const struct acre_test tests[] = {
    {"a_death_is_explained_and_survived", a_death_is_explained_and_survived, 0},
    {"an_ended_runner_lets_everybody_go", an_ended_runner_lets_everybody_go, 0},
    {"a_runner_that_stays_lets_everybody_go", a_runner_that_stays_lets_everybody_go, 0},
    {"a_hung_runner_is_closed", a_hung_runner_is_closed, 0},
    {"a_damaged_ring_ends_the_runner", a_damaged_ring_ends_the_runner, 0},
    {"a_killed_runner_is_noticed", a_killed_runner_is_noticed, 0},
    {"children_of_the_program_are_not_our_business", children_of_the_program_are_not_our_business,
     0},
    {"kernels_of_the_cpu_end_their_runner_only", kernels_of_the_cpu_end_their_runner_only, 0},
    {"kernels_of_opencl_end_their_runner_only", kernels_of_opencl_end_their_runner_only, 0},
    {"kernels_of_cuda_end_their_runner_only", kernels_of_cuda_end_their_runner_only, 0},
    {"a_runner_never_outlives_its_parent", a_runner_never_outlives_its_parent, 0},
    {"a_closed_runner_cleans_up_unless_it_hangs", a_closed_runner_cleans_up_unless_it_hangs, 0},
    {"a_thousand_restarts_leak_nothing", a_thousand_restarts_leak_nothing, 100},
    {"host_memory_is_given_back", host_memory_is_given_back, 0},
    {"an_idle_runner_uses_no_processor", an_idle_runner_uses_no_processor, 0},
    {"report_of_the_double", report_of_the_double, 0},
    {"report_of_the_cpu", report_of_the_cpu, 0},
    {"report_of_cuda", report_of_cuda, 0},
};
ACRE_TEST_MAIN(tests)
