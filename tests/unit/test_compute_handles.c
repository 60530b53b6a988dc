/* Handles of the library: missing, destroyed, of another context, of another process (GPU-1). */
#include "support/remote_rig.h"
#include "support/test.h"

#include <acre/compute.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static const char add[] = "kernel void add(global uint *a, uint by) { a[global_id(0)] += by; }\n";
static const char twice[] =
    "handler void handle(local const uint *in, local uint *out, global uint *state, uint lane,\n"
    "                    uint lanes) {\n    out[0] = in[0] * 2;\n}\n";

/* One of each handle, on the CPU: in this process, or in a runner. */
struct all {
    struct acre_compute *compute;
    struct acre_context *context;
    struct acre_stream *stream;
    struct acre_program *program;
    struct acre_kernel *kernel;
    struct acre_graph *graph;
    struct acre_ring *ring;
    struct acre_buffer buffer;
};

static const struct acre_grid grid = {{1, 1, 1}, {4, 1, 1}};

static void require(int r, const struct acre_error *err) {
    if (r != 0) {
        acre_test_context("%s", err->text);
    }
    REQUIRE_EQ(r, 0);
}

static void open_context(struct all *all, enum acre_context_isolation isolation) {
    const struct acre_compute_options options = {.backends = "cpu", .cache = ""};
    const struct acre_context_options how = {.isolation = isolation, .kernel_limit_ms = 30000};
    struct acre_error err = {0};
    setenv("ACRE_RUNNER", RUNNER, 1);
    *all = (struct all){0};
    require(acre_compute_open(&options, &all->compute, &err), &err);
    require(acre_context_open(all->compute, 0, &how, &all->context, &err), &err);
    require(acre_stream_create(all->context, &all->stream, &err), &err);
}

static void open_all(struct all *all, enum acre_context_isolation isolation) {
    const struct acre_source source = {.text = add}, handler = {.text = twice};
    const struct acre_ring_options ring = {.in_words = 1, .out_words = 1, .slots = 4};
    struct acre_error err = {0};
    open_context(all, isolation);
    require(acre_program_build(all->context, &source, &all->program, NULL, &err), &err);
    require(acre_kernel_find(all->program, "add", &all->kernel, &err), &err);
    require(acre_buffer_alloc(all->stream, ACRE_MEMORY_DEVICE, 16, &all->buffer, &err), &err);
    require(acre_fill(all->stream, all->buffer, 0, 16, 0, 4, &err), &err);
    require(acre_ring_create(all->context, &handler, &ring, &all->ring, &err), &err);
    const struct acre_arg args[] = {ACRE_BUFFER(all->buffer), ACRE_U32(1)};
    require(acre_graph_begin(all->stream, &err), &err);
    require(acre_launch(all->stream, all->kernel, grid, args, 2, &err), &err);
    require(acre_graph_end(all->stream, &all->graph, &err), &err);
}

/* `times` additions so far, by launches and graphs. */
static void check_works(const struct all *all, uint32_t times) {
    const struct acre_arg args[] = {ACRE_BUFFER(all->buffer), ACRE_U32(1)};
    uint32_t answer = 0, numbers[4] = {0}, question = 21;
    struct acre_error err = {0};
    require(acre_launch(all->stream, all->kernel, grid, args, 2, &err), &err);
    require(acre_graph_launch(all->graph, all->stream, &err), &err);
    require(acre_copy_out(all->stream, numbers, all->buffer, 0, 16, &err), &err);
    REQUIRE_EQ(numbers[3], times + 2);
    require(acre_ring_call(all->ring, &question, &answer, 20000, &err), &err);
    REQUIRE_EQ(answer, 42);
}

/* --- success --------------------------------------------------------------------------------- */

static void success_leaves_the_error_alone(void) {
    const struct acre_compute_options options = {.backends = "cpu", .cache = ""};
    static const enum acre_context_isolation ways[] = {ACRE_CONTEXT_ISOLATION_NONE,
                                                       ACRE_CONTEXT_ISOLATION_PROCESS};
    setenv("ACRE_RUNNER", RUNNER, 1);
    for (size_t i = 0; i < ACRE_COUNT(ways); i++) {
        const struct acre_context_options how = {.isolation = ways[i]};
        struct acre_error err = {.code = 7, .text = "mine"};
        struct acre_compute *compute = NULL;
        struct acre_context *context = NULL;
        acre_test_context("isolation %d", (int)ways[i]);
        REQUIRE_EQ(acre_compute_open(&options, &compute, &err), 0);
        REQUIRE_EQ(acre_context_open(compute, 0, &how, &context, &err), 0);
        CHECK_EQ(err.code, 7);
        CHECK_STR(err.text, "mine");
        acre_compute_close(compute);
    }
}

/* --- NULL ------------------------------------------------------------------------------------ */

static void check_refused(int r, const struct acre_error *err, int code, const char *part) {
    REQUIRE_EQ(r, code);
    CHECK_HAS(err->text, part);
    REQUIRE(strstr(err->text, part) != NULL); /* a child ends with it, and so its status says it */
}

/* What takes a stream, with one that is bad. */
static void try_stream(struct all *all, struct acre_stream *bad, int code, const char *part) {
    struct acre_error err = {0};
    struct acre_event event;
    struct acre_graph *graph;
    struct acre_timing timing;
    struct acre_buffer buffer;
    uint32_t number = 0;
    const struct acre_arg args[] = {ACRE_BUFFER(all->buffer), ACRE_U32(1)};
#define TRY(call)                                                                                  \
    err.text[0] = '\0';                                                                            \
    acre_test_context("%s", #call);                                                                \
    check_refused(call, &err, code, part)
    TRY(acre_event_record(bad, &event, &err));
    TRY(acre_stream_sync(bad, 0, &err));
    TRY(acre_stream_after(bad, (struct acre_event){bad, 1}, &err));
    TRY(acre_stream_notify(bad, 0, &err));
    TRY(acre_stream_profile(bad, true, &err));
    TRY(acre_stream_timings(bad, &timing, 1, &number, &err));
    TRY(acre_buffer_alloc(bad, ACRE_MEMORY_DEVICE, 16, &buffer, &err));
    TRY(acre_buffer_free(bad, all->buffer, &err));
    TRY(acre_copy_in(bad, all->buffer, 0, &number, 4, &err));
    TRY(acre_copy_out(bad, &number, all->buffer, 0, 4, &err));
    TRY(acre_copy(bad, all->buffer, 0, all->buffer, 8, 4, &err));
    TRY(acre_fill(bad, all->buffer, 0, 4, 0, 4, &err));
    TRY(acre_storage_read(bad, "/dev/zero", 0, all->buffer, 0, 4, ACRE_STORAGE_AUTO, NULL, &err));
    TRY(acre_storage_write(bad, "/dev/null", 0, all->buffer, 0, 4, ACRE_STORAGE_AUTO, NULL, &err));
    TRY(acre_launch(bad, all->kernel, grid, args, 2, &err));
    TRY(acre_graph_begin(bad, &err));
    TRY(acre_graph_end(bad, &graph, &err));
    TRY(acre_graph_launch(all->graph, bad, &err));
}

/* The other handles, likewise. */
static void try_others(struct all *bad, int code) {
    struct acre_error err = {0};
    struct acre_context *context;
    struct acre_stream *stream;
    struct acre_program *program;
    struct acre_kernel *kernel;
    struct acre_ring *ring;
    uint64_t number = 0;
    uint32_t word = 0, group[3];
    const char *part = "";
    const struct acre_source source = {.text = add};
    const struct acre_ring_options options = {.in_words = 1, .out_words = 1};
    const struct acre_auto_options automatic = {.cpu = bad->context, .source = &source};
    const struct acre_pipeline pipeline = {.kernels = &bad->kernel, .kernel_count = 1};
    part = "compute: ";
    TRY(acre_context_open(bad->compute, 0, NULL, &context, &err));
    part = "context: ";
    TRY(acre_stream_create(bad->context, &stream, &err));
    TRY(acre_program_build(bad->context, &source, &program, NULL, &err));
    TRY(acre_program_native(bad->context, "void f()", NULL, &program, &err));
    TRY(acre_buffer_size(bad->context, bad->buffer, &number, &err));
    TRY(acre_memory_trim(bad->context, 0, &err));
    TRY(acre_ring_create(bad->context, &source, &options, &ring, &err));
    part = bad->context == NULL ? "device and cpu are both NULL" : "context: ";
    TRY(acre_auto_create(&automatic, &(struct acre_auto *){NULL}, &err));
    part = "kernel: ";
    TRY(acre_kernel_group(bad->kernel, group, &err));
    TRY(acre_pipeline_run(&pipeline, NULL, &err));
    part = "graph: ";
    TRY(acre_graph_launch(bad->graph, bad->stream, &err));
    TRY(acre_graph_update(bad->graph, 0, grid, NULL, 0, &err));
    part = "ring: ";
    TRY(acre_ring_stop(bad->ring, &err));
    TRY(acre_ring_start(bad->ring, &err));
    TRY(acre_ring_reload(bad->ring, &source, &err));
    TRY(acre_ring_post(bad->ring, &word, 0, &number, &err));
    TRY(acre_ring_collect(bad->ring, 1, &word, 0, &err));
    TRY(acre_ring_call(bad->ring, &word, &word, 0, &err));
    if (bad->program == NULL) { /* what was built is only read */
        part = "program: must not be NULL";
        TRY(acre_kernel_find(bad->program, "add", &kernel, &err));
    }
    CHECK(acre_buffer_host(bad->context, bad->buffer) == NULL);
}

static void null_handles_are_named(void) {
    struct all all, none = {0};
    struct acre_error err = {0};
    open_all(&all, ACRE_CONTEXT_ISOLATION_NONE);
    try_stream(&all, NULL, ACRE_EINVALID, "stream: must not be NULL");
    none.stream = all.stream;
    try_others(&none, ACRE_EINVALID);
    check_refused(acre_launch(all.stream, NULL, grid, NULL, 0, &err), &err, ACRE_EINVALID,
                  "kernel: must not be NULL");
    check_refused(acre_program_build(all.context, NULL, &all.program, NULL, &err), &err,
                  ACRE_EINVALID, "source: must not be NULL");
    check_refused(
        acre_ring_create(all.context, &(struct acre_source){.text = add}, NULL, &all.ring, &err),
        &err, ACRE_EINVALID, "options: must not be NULL");
    check_refused(acre_auto_create(NULL, &(struct acre_auto *){NULL}, &err), &err, ACRE_EINVALID,
                  "options: must not be NULL");
    check_refused(acre_auto_run(NULL, 1, NULL, NULL, 0, NULL, &err), &err, ACRE_EINVALID,
                  "automatic: must not be NULL");
    check_refused(acre_auto_run_by(NULL, ACRE_WAY_CPU, 1, NULL, NULL, 0, &err), &err, ACRE_EINVALID,
                  "automatic: must not be NULL");
    check_refused(acre_pipeline_run(NULL, NULL, &err), &err, ACRE_EINVALID, "pipeline: NULL");
    check_works(&all, 0);
    acre_compute_close(all.compute);
}

static void what_returns_no_code_takes_null_too(void) {
    struct acre_context_report context = {.rebuilt = 9};
    struct acre_memory_report memory = {.blocks = 9};
    struct acre_ring_report ring = {.hangs = 9};
    struct acre_parameter parameter;
    acre_compute_close(NULL);
    CHECK_EQ(acre_context_close(NULL), 0);
    acre_stream_destroy(NULL);
    acre_program_destroy(NULL);
    acre_graph_destroy(NULL);
    acre_ring_destroy(NULL);
    acre_auto_destroy(NULL);
    acre_build_report_finish(NULL);
    acre_memory_on_pressure(NULL, NULL, NULL);
    CHECK_EQ(acre_compute_count(NULL), 0);
    CHECK(acre_compute_device(NULL, 0) == NULL);
    CHECK(acre_compute_absent(NULL, "cpu") == NULL);
    CHECK(acre_program_kernel(NULL, 0) == NULL);
    CHECK_STR(acre_kernel_name(NULL), "");
    CHECK(!acre_kernel_parameter(NULL, 0, &parameter));
    CHECK_EQ(acre_auto_costs(NULL, NULL, 0), 0);
    CHECK_STR(acre_auto_note(NULL), "");
    acre_context_report(NULL, &context);
    CHECK_EQ(context.rebuilt, 0);
    CHECK_HAS(context.failure, "context: must not be NULL");
    acre_memory_report(NULL, &memory);
    CHECK_EQ(memory.blocks, 0);
    acre_ring_report(NULL, &ring);
    CHECK_EQ(ring.hangs, 0);
}

/* --- after the end --------------------------------------------------------------------------- */

static void a_destroyed_stream_says_so(void) {
    struct all all;
    struct acre_stream *stream = NULL, *more = NULL;
    struct acre_event event;
    struct acre_error err = {0};
    open_all(&all, ACRE_CONTEXT_ISOLATION_NONE);
    require(acre_stream_create(all.context, &stream, &err), &err);
    require(acre_event_record(stream, &event, &err), &err);
    acre_stream_destroy(stream);
    try_stream(&all, stream, ACRE_EINVALID, "stream: already destroyed");
    check_refused(acre_event_wait(event, 0, &err), &err, ACRE_EINVALID,
                  "event: stream: already destroyed");
    check_refused(acre_stream_after(all.stream, event, &err), &err, ACRE_EINVALID,
                  "event: stream: already destroyed");
    acre_stream_destroy(stream);
    for (uint32_t i = 0; i < 100; i++) { /* the last ones are kept, not all */
        require(acre_stream_create(all.context, &more, &err), &err);
        acre_stream_destroy(more);
    }
    check_refused(acre_stream_sync(more, 0, &err), &err, ACRE_EINVALID, "destroyed");
    check_works(&all, 0);
    acre_compute_close(all.compute);
}

static void a_context_closes_once(void) {
    static const enum acre_context_isolation ways[] = {ACRE_CONTEXT_ISOLATION_NONE,
                                                       ACRE_CONTEXT_ISOLATION_PROCESS};
    for (size_t i = 0; i < ACRE_COUNT(ways); i++) {
        struct all all;
        open_context(&all, ways[i]);
        CHECK_EQ(acre_context_close(all.context), 0);
        CHECK_EQ(acre_context_close(all.context), ACRE_EINVALID);
        acre_compute_close(all.compute);
        open_context(&all, ways[i]);
        acre_compute_close(all.compute);
        CHECK_EQ(acre_context_close(all.context), ACRE_EINVALID); /* closed with its runtime */
    }
}

static void a_kernel_of_another_context_is_named(void) {
    struct all all;
    struct acre_context *other = NULL;
    struct acre_stream *stream = NULL;
    struct acre_error err = {0};
    const struct acre_context_options how = {.tenant = "beta"};
    open_all(&all, ACRE_CONTEXT_ISOLATION_NONE);
    const struct acre_arg args[] = {ACRE_BUFFER(all.buffer), ACRE_U32(1)};
    require(acre_context_open(all.compute, 0, &how, &other, &err), &err);
    require(acre_stream_create(other, &stream, &err), &err);
    CHECK_EQ(acre_launch(stream, all.kernel, grid, args, 2, &err), ACRE_EINVALID);
    CHECK_HAS(err.text, "kernel 'add' was built in context 1");
    CHECK_HAS(err.text, "in context 1 (tenant 'default'");
    CHECK_HAS(err.text, "to context 2 (tenant 'beta'");
    acre_compute_close(all.compute);
}

/* --- fork ------------------------------------------------------------------------------------ */

/* TSan ends a process that starts threads after a fork of one that had several. */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define CHILD_HAS_NO_THREADS
#endif
#endif

/* A runtime of its own works in a child. */
static void check_own(void) {
#ifdef CHILD_HAS_NO_THREADS
    return;
#endif
    struct all all;
    open_all(&all, ACRE_CONTEXT_ISOLATION_NONE);
    check_works(&all, 0);
    acre_compute_close(all.compute);
}

static void be_child(struct all *all, uint32_t files) {
    static const char parents[] = "belongs to the parent process";
    struct acre_context_report report;
    struct acre_error err = {0};
    try_stream(all, all->stream, ACRE_ECONFLICT, parents);
    try_others(all, ACRE_ECONFLICT);
    check_refused(acre_event_wait((struct acre_event){all->stream, 1}, 0, &err), &err,
                  ACRE_ECONFLICT, parents);
    acre_context_report(all->context, &report);
    REQUIRE(strstr(report.failure, parents) != NULL);
    acre_ring_destroy(all->ring);
    acre_graph_destroy(all->graph);
    acre_program_destroy(all->program);
    acre_stream_destroy(all->stream);
    acre_test_context("%s", "");
    acre_compute_close(all->compute);
    REQUIRE_EQ(acre_test_open_files(), files); /* its copies are closed */
    check_own();
}

static void await_child(pid_t child) {
    int status = -1;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    CHECK_EQ(status, 0);
}

static void try_fork(enum acre_context_isolation isolation) {
    struct all all;
    uint32_t files = acre_test_open_files();
    open_all(&all, isolation);
    check_works(&all, 0);
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        be_child(&all, files);
        _exit(0);
    }
    await_child(child);
    check_works(&all, 2);
    CHECK_EQ(acre_context_close(all.context), 0); /* its keeper ends, by its own word */
    acre_compute_close(all.compute);
    CHECK_EQ(acre_test_open_files(), files);
}

static void a_child_has_no_share_in_a_runtime(void) {
    try_fork(ACRE_CONTEXT_ISOLATION_NONE);
}

static void a_child_has_no_share_in_a_runner(void) {
    try_fork(ACRE_CONTEXT_ISOLATION_PROCESS);
}

struct busy {
    struct all *all;
    _Atomic bool is_over;
    _Atomic uint64_t rounds;
};

static void *be_busy(void *argument) {
    struct busy *busy = argument;
    struct acre_stream *stream = NULL;
    struct acre_buffer buffer;
    struct acre_error err = {0};
    while (!busy->is_over) {
        require(acre_stream_create(busy->all->context, &stream, &err), &err);
        require(acre_buffer_alloc(stream, ACRE_MEMORY_PINNED, 1 << 20, &buffer, &err), &err);
        require(acre_buffer_free(stream, buffer, &err), &err);
        acre_stream_destroy(stream);
        busy->rounds++;
    }
    return NULL;
}

/* Locks that another thread held at the fork are never free in the child: it takes none. */
static void a_child_closes_whatever_the_parent_was_doing(void) {
    struct all all;
    struct busy busy = {.all = &all};
    pthread_t thread;
    open_context(&all, ACRE_CONTEXT_ISOLATION_PROCESS);
    REQUIRE_EQ(pthread_create(&thread, NULL, be_busy, &busy), 0);
    for (uint32_t i = 0; i < 50; i++) {
        uint64_t rounds = busy.rounds;
        pid_t child = fork();
        REQUIRE(child >= 0);
        if (child == 0) {
            struct acre_error err = {0};
            bool is_refused = acre_stream_sync(all.stream, 0, &err) == ACRE_ECONFLICT;
            acre_compute_close(all.compute);
            _exit(is_refused ? 0 : 1);
        }
        await_child(child);
        while (busy.rounds == rounds) { /* it goes on */
            acre_test_rest();
        }
    }
    busy.is_over = true;
    pthread_join(thread, NULL);
    acre_compute_close(all.compute);
}

static const struct acre_test tests[] = {
    {"success_leaves_the_error_alone", success_leaves_the_error_alone, 0},
    {"null_handles_are_named", null_handles_are_named, 0},
    {"what_returns_no_code_takes_null_too", what_returns_no_code_takes_null_too, 0},
    {"a_destroyed_stream_says_so", a_destroyed_stream_says_so, 0},
    {"a_context_closes_once", a_context_closes_once, 0},
    {"a_kernel_of_another_context_is_named", a_kernel_of_another_context_is_named, 0},
    {"a_child_has_no_share_in_a_runtime", a_child_has_no_share_in_a_runtime, 0},
    {"a_child_has_no_share_in_a_runner", a_child_has_no_share_in_a_runner, 0},
    {"a_child_closes_whatever_the_parent_was_doing", a_child_closes_whatever_the_parent_was_doing,
     0},
};

ACRE_TEST_MAIN(tests)
