/* Calls of a driver that wait for every kernel are made in a quiet scope (quiet.h), whatever leads
 * to them. The CPU's own table, with each such slot looked at before it is called. */
#include "compute/context.h"
#include "compute/inner.h"
#include "support/test.h"

#include <acre/compute.h>
#include <acre/graph.h>

enum { MIB = 1 << 20, STACK_BYTES = 4096 };

static struct acre_context *watched;
static const struct backend *own; /* the table behind the one that looks */
static struct seen {
    uint32_t inside, outside; /* calls of slots that need a scope */
    uint32_t launches, quiet_launches;
    uint32_t created, destroyed; /* graphs */
} seen;

static void look(void) {
    *(atomic_load(&watched->ring_pauses) > 0 ? &seen.inside : &seen.outside) += 1;
}

static int load(void *seat, const void *binary, size_t length, uint64_t *ret_module,
                struct acre_error *err) {
    look();
    return own->load(seat, binary, length, ret_module, err);
}

static void unload(void *seat, uint64_t module) {
    look();
    own->unload(seat, module);
}

static void region_destroy(void *seat, uint64_t region) {
    look();
    own->region_destroy(seat, region);
}

static int kernel(void *seat, uint64_t module, const char *name, uint64_t *ret_kernel,
                  struct kernel_facts *ret_facts, struct acre_error *err) {
    int r = own->kernel(seat, module, name, ret_kernel, ret_facts, err);
    ret_facts->stack_bytes = r == 0 ? STACK_BYTES : 0;
    return r;
}

static int launch(void *seat, uint64_t stream, const struct native_launch *work,
                  struct acre_error *err) {
    seen.launches++;
    seen.quiet_launches += atomic_load(&watched->ring_pauses) > 0;
    return own->launch(seat, stream, work, err);
}

/* Graphs that do nothing, and that cannot be changed. */
static int graph_create(void *seat, const struct native_node *nodes, uint32_t count,
                        uint64_t *ret_graph, struct acre_error *err) {
    (void)seat, (void)nodes, (void)count, (void)err;
    look();
    *ret_graph = ++seen.created;
    return 0;
}

static int graph_update(void *seat, uint64_t graph, uint32_t node, const struct native_launch *work,
                        struct acre_error *err) {
    (void)seat, (void)graph, (void)node, (void)work;
    return acre_fail(err, ACRE_EUNSUPPORTED, "it stays as it is");
}

static int graph_launch(void *seat, uint64_t stream, uint64_t graph, struct acre_error *err) {
    (void)seat, (void)stream, (void)graph, (void)err;
    return 0;
}

static void graph_destroy(void *seat, uint64_t graph) {
    (void)seat, (void)graph;
    look();
    seen.destroyed++;
}

static const char source_text[] = "kernel void set(global uint *p, uint value) { p[0] = value; }";

struct bench {
    struct acre_compute *compute;
    struct acre_context *context;
    struct acre_stream *stream;
    struct backend table;
    struct acre_error err;
};

#define OK(call)                                                                                   \
    do {                                                                                           \
        int result_ = (call);                                                                      \
        acre_test_context("%s", result_ < 0 ? bench->err.text : "");                               \
        REQUIRE_EQ(result_, 0);                                                                    \
    } while (0)

static void open_bench(struct bench *bench, uint64_t limit_bytes) {
    *bench = (struct bench){0};
    struct acre_compute_options options = {.backends = "cpu", .cache = ""};
    OK(acre_compute_open(&options, &bench->compute, &bench->err));
    struct acre_context_options of = {.memory_limit_bytes = limit_bytes};
    OK(acre_context_open(bench->compute, 0, &of, &bench->context, &bench->err));
    watched = bench->context;
    own = watched->table;
    seen = (struct seen){0};
    bench->table = *own;
    bench->table.load = load;
    bench->table.unload = unload;
    bench->table.region_destroy = region_destroy;
    bench->table.kernel = kernel;
    bench->table.launch = launch;
    bench->table.graph_create = graph_create;
    bench->table.graph_update = graph_update;
    bench->table.graph_launch = graph_launch;
    bench->table.graph_destroy = graph_destroy;
    bench->compute->devices[0].capabilities |= ACRE_CAN_GRAPH;
    watched->table = &bench->table;
    OK(acre_stream_create(bench->context, &bench->stream, &bench->err));
}

/* `inside` more calls of such slots since the last time, none of them out of a scope. */
static void check_seen(uint32_t inside) {
    CHECK_U64(seen.outside, 0);
    CHECK_U64(seen.inside, inside);
    seen.inside = seen.outside = 0;
}

static struct acre_kernel *build(struct bench *bench, struct acre_program **ret_program) {
    struct acre_source source = {.text = source_text};
    struct acre_kernel *found = NULL;
    OK(acre_program_build(bench->context, &source, ret_program, NULL, &bench->err));
    OK(acre_kernel_find(*ret_program, "set", &found, &bench->err));
    return found;
}

static void programs_come_and_go_in_a_scope(void) {
    struct bench self;
    struct bench *bench = &self;
    struct acre_program *program;
    open_bench(bench, 0);
    build(bench, &program);
    check_seen(1);
    acre_program_destroy(program);
    check_seen(1);
    build(bench, &program);
    acre_compute_close(bench->compute); /* and with their context */
    CHECK_U64(seen.outside, 0);
}

static void memory_is_given_back_in_a_scope(void) {
    struct bench self;
    struct bench *bench = &self;
    struct acre_buffer a, b;
    open_bench(bench, 64 * MIB);
    OK(acre_buffer_alloc(bench->stream, ACRE_MEMORY_DEVICE, 40 * MIB, &a, &bench->err));
    OK(acre_buffer_alloc(bench->stream, ACRE_MEMORY_PINNED, 1, &b, &bench->err));
    OK(acre_buffer_free(bench->stream, a, &bench->err));
    check_seen(0);
    /* What is free is in the way of a larger block. */
    OK(acre_buffer_alloc(bench->stream, ACRE_MEMORY_DEVICE, 50 * MIB, &a, &bench->err));
    check_seen(1);
    CHECK_U64(atomic_load(&bench->context->ring_pauses), 0);
    CHECK_EQ(acre_buffer_alloc(bench->stream, ACRE_MEMORY_DEVICE, 50 * MIB, &a, &bench->err),
             ACRE_ELIMIT);
    check_seen(0);
    CHECK_U64(atomic_load(&bench->context->ring_pauses), 0);
    OK(acre_buffer_free(bench->stream, a, &bench->err));
    OK(acre_buffer_free(bench->stream, b, &bench->err));
    OK(acre_memory_trim(bench->context, 0, &bench->err));
    check_seen(2);
    OK(acre_buffer_alloc(bench->stream, ACRE_MEMORY_DEVICE, 1, &a, &bench->err));
    acre_compute_close(bench->compute); /* with a block, and the words of its streams */
    CHECK_U64(seen.outside, 0);
    CHECK(seen.inside >= 2);
}

static struct acre_graph *record(struct bench *bench, struct acre_kernel *set,
                                 struct acre_buffer buffer, uint32_t value) {
    struct acre_grid one = {.groups = {1}, .group = {1}};
    struct acre_arg args[] = {ACRE_BUFFER(buffer), ACRE_U32(value)};
    struct acre_graph *graph = NULL;
    OK(acre_graph_begin(bench->stream, &bench->err));
    OK(acre_launch(bench->stream, set, one, args, 2, &bench->err));
    OK(acre_graph_end(bench->stream, &graph, &bench->err));
    OK(acre_graph_launch(graph, bench->stream, &bench->err));
    return graph;
}

static void graphs_come_and_go_in_a_scope(void) {
    struct bench self;
    struct bench *bench = &self;
    struct acre_program *program;
    struct acre_buffer buffer;
    open_bench(bench, 0);
    struct acre_kernel *set = build(bench, &program);
    OK(acre_buffer_alloc(bench->stream, ACRE_MEMORY_DEVICE, 4, &buffer, &bench->err));
    seen = (struct seen){0};
    acre_graph_destroy(record(bench, set, buffer, 1)); /* idle: for the next of its shape */
    check_seen(1);
    CHECK_U64(seen.created, 1);
    /* Which needs another value, and this driver changes none. */
    struct acre_graph *second = record(bench, set, buffer, 2);
    check_seen(2);
    CHECK_U64(seen.created, 2);
    CHECK_U64(seen.destroyed, 1);
    acre_graph_destroy(second);
    acre_compute_close(bench->compute);
    CHECK_U64(seen.outside, 0);
    CHECK_U64(seen.destroyed, seen.created);
}

static void only_a_growing_stack_needs_a_scope(void) {
    struct bench self;
    struct bench *bench = &self;
    struct acre_program *program;
    struct acre_buffer buffer;
    open_bench(bench, 0);
    struct acre_kernel *set = build(bench, &program);
    OK(acre_buffer_alloc(bench->stream, ACRE_MEMORY_DEVICE, 4, &buffer, &bench->err));
    struct acre_grid one = {.groups = {1}, .group = {1}};
    struct acre_arg args[] = {ACRE_BUFFER(buffer), ACRE_U32(1)};
    for (uint32_t i = 1; i <= 3; i++) {
        OK(acre_launch(bench->stream, set, one, args, 2, &bench->err));
        CHECK_U64(seen.launches, i);
        CHECK_U64(seen.quiet_launches, 1);
    }
    acre_compute_close(bench->compute);
}

static const struct acre_test tests[] = {
    {"programs_come_and_go_in_a_scope", programs_come_and_go_in_a_scope, 0},
    {"memory_is_given_back_in_a_scope", memory_is_given_back_in_a_scope, 0},
    {"graphs_come_and_go_in_a_scope", graphs_come_and_go_in_a_scope, 0},
    {"only_a_growing_stack_needs_a_scope", only_a_growing_stack_needs_a_scope, 0},
};

ACRE_TEST_MAIN(tests)
