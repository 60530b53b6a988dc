/* Launches and graphs of them: what they say of buffers, and what comes of refusals. The device is
 * a double that takes launches and does nothing for them. */
#include "support/seat_double.h"
#include "support/test.h"

#include "compute/context.h"
#include "compute/graph.h"
#include "compute/memory/buffer.h"
#include "compute/program.h"

#include <string.h>

enum { MIB = 1 << 20, LIMIT = 10 * MIB, LARGE = 8 * MIB }; /* one large buffer fits, not two */

static struct {
    int launch, check; /* what they answer */
    bool is_stiff;     /* a graph's second launch stays as it is */
    uint32_t created, updated, destroyed;
    uint32_t values[2]; /* of the last graph that was created */
} driver;

static int take_native(void *seat, acre_native_function *function, uint64_t *ret_kernel,
                       struct acre_error *err) {
    (void)seat, (void)function, (void)err;
    *ret_kernel = 1;
    return 0;
}

static void drop_native(void *seat, uint64_t kernel) {
    (void)seat;
    CHECK_U64(kernel, 1);
}

static int take_launch(void *seat, uint64_t stream, const struct native_launch *launch,
                       struct acre_error *err) {
    (void)seat, (void)stream, (void)launch;
    return driver.launch == 0 ? 0 : acre_fail(err, driver.launch, "told to refuse");
}

static int check_seat(void *seat, struct acre_error *err) {
    (void)seat;
    return driver.check == 0 ? 0 : acre_fail(err, driver.check, "a kernel faulted");
}

static int create_graph(void *seat, const struct native_node *nodes, uint32_t count,
                        uint64_t *ret_graph, struct acre_error *err) {
    (void)seat, (void)err;
    REQUIRE_EQ(count, 2);
    for (uint32_t i = 0; i < count; i++) {
        const struct native_launch *launch = &nodes[i].launch;
        memcpy(&driver.values[i], launch->extra + launch->args[1].region, sizeof(uint32_t));
    }
    *ret_graph = ++driver.created;
    return 0;
}

static int update_graph(void *seat, uint64_t graph, uint32_t node,
                        const struct native_launch *launch, struct acre_error *err) {
    (void)seat, (void)graph, (void)launch;
    driver.updated++;
    return driver.is_stiff && node == 1 ? acre_fail(err, ACRE_EINTERNAL, "told to refuse") : 0;
}

static void destroy_graph(void *seat, uint64_t graph) {
    (void)seat, (void)graph;
    driver.destroyed++;
}

struct rig {
    struct acre_compute *compute;
    struct acre_context *context;
    struct backend table;
    struct acre_stream *a, *b;
    struct acre_program *program;
    struct acre_kernel *kernel;
    struct acre_buffer buffer;
};

static void nothing(const struct acre_groups *groups, const void *const *arguments) {
    (void)groups, (void)arguments;
}

static void open_rig(struct rig *rig) {
    memset(&driver, 0, sizeof(driver));
    *rig = (struct rig){.compute = double_open(&(struct double_options){.limit_bytes = LIMIT}, 1)};
    rig->context = double_context(rig->compute, 0);
    rig->compute->devices[0].group_max = 1024;
    rig->table = *rig->context->table;
    rig->table.native = take_native;
    rig->table.native_destroy = drop_native;
    rig->table.launch = take_launch;
    rig->table.check = check_seat;
    rig->table.graph_create = create_graph;
    rig->table.graph_update = update_graph;
    rig->table.graph_destroy = destroy_graph;
    rig->context->table = &rig->table;
    REQUIRE_EQ(acre_stream_create(rig->context, &rig->a, NULL), 0);
    REQUIRE_EQ(acre_stream_create(rig->context, &rig->b, NULL), 0);
    REQUIRE_EQ(acre_program_native(rig->context, "void f(global uint *p, uint n)", nothing,
                                   &rig->program, NULL),
               0);
    REQUIRE_EQ(acre_kernel_find(rig->program, "f", &rig->kernel, NULL), 0);
    REQUIRE_EQ(acre_buffer_alloc(rig->a, ACRE_MEMORY_DEVICE, LARGE, &rig->buffer, NULL), 0);
}

static void close_rig(struct rig *rig) {
    acre_program_destroy(rig->program);
    double_close(rig->compute);
}

static int launch(struct rig *rig, struct acre_stream *stream, uint32_t value) {
    const struct acre_arg args[] = {ACRE_BUFFER(rig->buffer), ACRE_U32(value)};
    return acre_launch(stream, rig->kernel, acre_grid_for(1), args, 2, NULL);
}

/* Freed on the stream that made it, the memory is there for the next one. */
static void check_frees(struct rig *rig) {
    struct acre_buffer next = {0};
    struct acre_error err = {0};
    CHECK_EQ(acre_buffer_free(rig->a, rig->buffer, NULL), 0);
    int r = acre_buffer_alloc(rig->b, ACRE_MEMORY_DEVICE, LARGE, &next, &err);
    acre_test_context("%s", err.text);
    CHECK_EQ(r, 0);
}

static void recording_is_no_use_of_a_buffer(void) {
    struct rig rig;
    struct acre_graph *graph = NULL;
    open_rig(&rig);
    double_start(rig.context);
    REQUIRE_EQ(acre_graph_begin(rig.b, NULL), 0);
    CHECK_EQ(launch(&rig, rig.b, 1), 0);
    REQUIRE_EQ(acre_graph_end(rig.b, &graph, NULL), 0);
    CHECK_EQ(acre_graph_launch(graph, rig.a, NULL), 0);
    acre_graph_destroy(graph);
    check_frees(&rig);
    close_rig(&rig);
}

static void a_refused_launch_is_no_use_of_a_buffer(void) {
    struct rig rig;
    open_rig(&rig);
    double_start(rig.context);
    const struct acre_arg args[] = {ACRE_BUFFER(rig.buffer), ACRE_F32(1)};
    struct acre_error err = {0};
    CHECK_EQ(acre_launch(rig.b, rig.kernel, acre_grid_for(1), args, 2, &err), ACRE_EINVALID);
    CHECK_HAS(err.text, "argument 2 'n'");
    check_frees(&rig);
    close_rig(&rig);
}

/* A graph finds one of its buffers freed: the others are not used by the launch. */
static void a_refused_graph_is_no_use_of_a_buffer(void) {
    struct rig rig;
    struct acre_graph *graph = NULL;
    struct acre_buffer small = {0};
    open_rig(&rig);
    double_start(rig.context);
    REQUIRE_EQ(acre_buffer_alloc(rig.a, ACRE_MEMORY_DEVICE, 256, &small, NULL), 0);
    REQUIRE_EQ(acre_graph_begin(rig.a, NULL), 0);
    CHECK_EQ(acre_fill(rig.a, rig.buffer, 0, 4, 0, 4, NULL), 0);
    CHECK_EQ(acre_fill(rig.a, small, 0, 4, 0, 4, NULL), 0);
    REQUIRE_EQ(acre_graph_end(rig.a, &graph, NULL), 0);
    CHECK_EQ(acre_buffer_free(rig.a, small, NULL), 0);
    CHECK_EQ(acre_graph_launch(graph, rig.b, NULL), ACRE_ENOTFOUND);
    acre_graph_destroy(graph);
    check_frees(&rig);
    close_rig(&rig);
}

static void what_the_back_end_refuses_is_waited_for_no_longer_than_its_stream(void) {
    struct rig rig;
    open_rig(&rig);
    double_start(rig.context);
    driver.launch = ACRE_EINVALID;
    CHECK_EQ(launch(&rig, rig.b, 1), ACRE_EINVALID);
    CHECK_EQ(acre_stream_sync(rig.b, ACRE_FOREVER, NULL), 0);
    check_frees(&rig);
    close_rig(&rig);
}

static void a_group_is_refused_with_its_size(void) {
    static const struct {
        uint32_t group[3];
        const char *text;
    } rows[] = {{{1025, 1, 1}, "the group has 1025 work items; accepted: at most 1024"},
                {{100000, 1, 1}, "the group has 100000 work items"},
                {{70000, 2, 0}, "the group has 140000 work items"},
                {{UINT32_MAX, UINT32_MAX, UINT32_MAX}, "the group has 18446744073709551615"}};
    struct rig rig;
    open_rig(&rig);
    const struct acre_arg args[] = {ACRE_BUFFER(rig.buffer), ACRE_U32(1)};
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct acre_grid grid = {.groups = {1}};
        struct acre_error err = {0};
        memcpy(grid.group, rows[i].group, sizeof(grid.group));
        CHECK_EQ(acre_launch(rig.a, rig.kernel, grid, args, 2, &err), ACRE_EINVALID);
        CHECK_HAS(err.text, rows[i].text);
    }
    close_rig(&rig);
}

/* As the keeper does with a kernel that ran too long, while a launch waits for its stack. */
static void local_memory_is_refused_with_what_there_is(void) {
    struct rig rig;
    struct acre_program *program = NULL;
    struct acre_kernel *kernel = NULL;
    open_rig(&rig);
    rig.compute->devices[0].local_bytes = 1000;
    REQUIRE_EQ(acre_program_native(rig.context, "void l(local int *a, local int *b)", nothing,
                                   &program, NULL),
               0);
    REQUIRE_EQ(acre_kernel_find(program, "l", &kernel, NULL), 0);
    kernel->facts.local_bytes = 100;
    for (uint32_t bytes = 500; bytes <= 501; bytes++) {
        const struct acre_arg args[] = {ACRE_LOCAL(400), ACRE_LOCAL(bytes)};
        struct acre_error err = {0};
        CHECK_EQ(acre_launch(rig.a, kernel, acre_grid_for(1), args, 2, &err),
                 bytes == 500 ? 0 : ACRE_EINVALID);
        CHECK_HAS(err.text, bytes == 500 ? ""
                                         : "kernel 'l': 1001 bytes of local memory; accepted: at "
                                           "most 1000 on ");
    }
    double_run(rig.context, NULL, UINT32_MAX);
    acre_program_destroy(program);
    close_rig(&rig);
}

static void *lose(void *argument) {
    struct acre_context *context = argument;
    while (double_counts(context).signals == 0) {
        acre_test_rest();
    }
    double_lose_by(context, ACRE_ETIMEOUT);
    return NULL;
}

static void a_loss_while_a_stack_grows_is_told(void) { /* GPU-6 */
    struct rig rig;
    pthread_t thread;
    struct acre_error err = {0};
    open_rig(&rig);
    rig.kernel->facts.stack_bytes = 64;
    REQUIRE_EQ(pthread_create(&thread, NULL, lose, rig.context), 0);
    CHECK_EQ(launch(&rig, rig.a, 1), 0); /* accepted */
    pthread_join(thread, NULL);
    CHECK_U64(atomic_load(&rig.context->stack_bytes), 0); /* of the new seat */
    CHECK_EQ(acre_stream_sync(rig.a, ACRE_FOREVER, &err), ACRE_ETIMEOUT);
    CHECK_HAS(err.text, "it was told to");
    CHECK_EQ(acre_stream_sync(rig.a, ACRE_FOREVER, NULL), 0); /* once */
    close_rig(&rig);
}

static struct acre_event launch_and_record(struct rig *rig) {
    struct acre_event event;
    open_rig(rig);
    CHECK_EQ(launch(rig, rig->a, 1), 0);
    CHECK_EQ(acre_event_record(rig->a, &event, NULL), 0);
    return event;
}

/* In this process nobody else notices that the device is gone. */
static void a_look_finds_a_seat_that_failed(void) { /* GPU-6 */
    struct rig rig;
    struct acre_event event = launch_and_record(&rig);
    struct acre_error err = {0};
    CHECK_EQ(acre_event_wait(event, 0, &err), ACRE_ETIMEOUT);
    driver.check = ACRE_EUNAVAILABLE;
    CHECK_EQ(acre_event_wait(event, 0, &err), ACRE_EUNAVAILABLE);
    CHECK_HAS(err.text, "a kernel faulted");
    close_rig(&rig);
}

/* A runner that cannot be started again is tried again and again: it was lost once. */
static void a_loss_that_stays_is_one_failure(void) { /* GPU-6 */
    struct rig rig;
    open_rig(&rig);
    for (int i = 0; i < 20; i++) {
        context_lose(rig.context, ACRE_EUNAVAILABLE, "it is gone");
        CHECK_EQ(atomic_load(&rig.context->failed), ACRE_EUNAVAILABLE);
    }
    CHECK_EQ(breaker_state(&rig.context->breaker), BREAKER_CLOSED);
    close_rig(&rig);
}

/* A look has an end, and those that have the gate may be long: so the loss waits. */
static void a_look_does_not_wait_for_the_gate(void) { /* GPU-6 */
    struct rig rig;
    struct acre_event event = launch_and_record(&rig);
    struct acre_error err = {0};
    driver.check = ACRE_EUNAVAILABLE;
    pthread_rwlock_rdlock(&rig.context->gate);
    CHECK_EQ(acre_event_wait(event, 5, &err), ACRE_ETIMEOUT);
    pthread_rwlock_unlock(&rig.context->gate);
    CHECK_EQ(acre_event_wait(event, 0, &err), ACRE_EUNAVAILABLE);
    close_rig(&rig);
}

static struct acre_graph *record(struct rig *rig, uint32_t first, uint32_t second) {
    struct acre_graph *graph = NULL;
    REQUIRE_EQ(acre_graph_begin(rig->a, NULL), 0);
    CHECK_EQ(launch(rig, rig->a, first), 0);
    CHECK_EQ(launch(rig, rig->a, second), 0);
    REQUIRE_EQ(acre_graph_end(rig->a, &graph, NULL), 0);
    return graph;
}

static void a_graph_has_its_own_arguments_when_none_can_be_taken_over(void) {
    struct rig rig;
    open_rig(&rig);
    rig.compute->devices[0].capabilities = ACRE_CAN_GRAPH;
    struct acre_graph *graph = record(&rig, 1, 2);
    acre_graph_destroy(record(&rig, 1, 2));
    acre_graph_destroy(graph);
    CHECK_U64(driver.created, 2);
    driver.is_stiff = true;
    graph = record(&rig, 3, 4); /* tries both of the idle ones, before and while it may create */
    CHECK_U64(driver.updated, 4);
    CHECK_U64(driver.destroyed, 2);
    CHECK_U64(driver.created, 3);
    CHECK_U64(driver.values[0], 3);
    CHECK_U64(driver.values[1], 4);
    driver.is_stiff = false;
    acre_graph_destroy(graph);
    graph = record(&rig, 3, 5); /* taken over, with one update */
    CHECK_U64(driver.updated, 5);
    CHECK_U64(driver.created, 3);
    acre_graph_destroy(graph);
    graph = record(&rig, 3, 5); /* as it is */
    CHECK_U64(driver.updated, 5);
    acre_graph_destroy(graph);
    struct quiet quiet;
    quiet_begin(&quiet, rig.context);
    graphs_forget(&quiet);
    quiet_end(&quiet);
    CHECK_U64(driver.destroyed, 3);
    close_rig(&rig);
}

/* All of its memory back to the driver, and as much again: at the same handle. */
static void change_region(struct rig *rig) {
    struct buffer_range before = {0};
    struct buffer_range after = {0};
    CHECK_EQ(buffer_resolve(rig->context, rig->buffer, 0, 0, "", &before, NULL), 0);
    CHECK_EQ(acre_buffer_free(rig->a, rig->buffer, NULL), 0);
    CHECK_EQ(acre_stream_sync(rig->a, ACRE_FOREVER, NULL), 0);
    CHECK_EQ(acre_memory_trim(rig->context, 0, NULL), 0);
    REQUIRE_EQ(acre_buffer_alloc(rig->a, ACRE_MEMORY_DEVICE, LARGE, &rig->buffer, NULL), 0);
    CHECK_EQ(buffer_resolve(rig->context, rig->buffer, 0, 0, "", &after, NULL), 0);
    CHECK_U64(after.region, before.region);
}

/* An executable has addresses: one of a region that is gone serves no graph of another that has its
 * handle, whether it was idle when the region went or not. */
static void a_graph_of_another_region_is_another(void) {
    struct rig rig;
    open_rig(&rig);
    double_start(rig.context);
    rig.compute->devices[0].capabilities = ACRE_CAN_GRAPH;
    for (uint32_t i = 1; i <= 4; i++) {
        acre_graph_destroy(record(&rig, 1, 2));
        CHECK_U64(driver.created, i);
        struct acre_graph *graph = record(&rig, 1, 2); /* of the same region: taken over */
        CHECK_U64(driver.created, i);
        if (i % 2 == 0) {
            acre_graph_destroy(graph);
        }
        change_region(&rig);
        if (i % 2 != 0) {
            acre_graph_destroy(graph);
        }
    }
    graphs_destroy(rig.context);
    CHECK_U64(driver.destroyed, driver.created);
    close_rig(&rig);
}

static const struct acre_test tests[] = {
    {"recording_is_no_use_of_a_buffer", recording_is_no_use_of_a_buffer, 0},
    {"a_refused_launch_is_no_use_of_a_buffer", a_refused_launch_is_no_use_of_a_buffer, 0},
    {"a_refused_graph_is_no_use_of_a_buffer", a_refused_graph_is_no_use_of_a_buffer, 0},
    {"what_the_back_end_refuses_is_waited_for_no_longer_than_its_stream",
     what_the_back_end_refuses_is_waited_for_no_longer_than_its_stream, 0},
    {"a_group_is_refused_with_its_size", a_group_is_refused_with_its_size, 0},
    {"local_memory_is_refused_with_what_there_is", local_memory_is_refused_with_what_there_is, 0},
    {"a_loss_while_a_stack_grows_is_told", a_loss_while_a_stack_grows_is_told, 0},
    {"a_look_finds_a_seat_that_failed", a_look_finds_a_seat_that_failed, 0},
    {"a_loss_that_stays_is_one_failure", a_loss_that_stays_is_one_failure, 0},
    {"a_look_does_not_wait_for_the_gate", a_look_does_not_wait_for_the_gate, 20},
    {"a_graph_has_its_own_arguments_when_none_can_be_taken_over",
     a_graph_has_its_own_arguments_when_none_can_be_taken_over, 0},
    {"a_graph_of_another_region_is_another", a_graph_of_another_region_is_another, 0},
};

ACRE_TEST_MAIN(tests)
