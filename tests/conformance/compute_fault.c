/* compute_fault.c - kernels that fault or never end, and a device without memory left: detected,
 * explained, recovered; a second tenant goes on. In a process of its own only (elsewhere the test
 * itself would be lost). How long recovery took is printed and must stay below 2 s. */
#include "conformance/compute_suite.h"

#include <stdio.h>
#include <stdlib.h>

enum { N = 10000 };

/* Two seconds are the promise of a GPU; on the host's cores all that is tested beside it counts. */
static double recovery_max_ms(void) {
    return kit_is("cpu") || kit_is("opencl") ? 20000 : 2000;
}

/* --- the second tenant ---------------------------------------------------------------------- */

struct tenant {
    struct kit *kit;
    struct acre_context *context;
    struct acre_kernel *affine;
    atomic_bool stop;
    atomic_uint rounds, wrong;
    pthread_t thread;
};

/* Launches whose answers are checked, one after the other, until told to stop. */
static void *live(void *user) {
    struct tenant *self = user;
    struct acre_stream *stream = NULL;
    struct acre_buffer buffer;
    uint32_t *back = malloc(N * 4);
    REQUIRE(back != NULL);
    OK(acre_stream_create(self->context, &stream, ERR));
    OK(acre_buffer_alloc(stream, ACRE_MEMORY_DEVICE, N * 4, &buffer, ERR));
    OK(acre_fill(stream, buffer, 0, N * 4, 1, 4, ERR));
    uint32_t expected = 1;
    while (!atomic_load(&self->stop)) {
        OK(acre_launch(stream, self->affine, acre_grid_for(N),
                       ARGS(ACRE_BUFFER(buffer), ACRE_U32(3), ACRE_U32(1), ACRE_U32(N)), ERR));
        OK(acre_copy_out(stream, back, buffer, 0, N * 4, ERR));
        expected = expected * 3 + 1;
        for (uint32_t i = 0; i < N; i++) {
            if (back[i] != expected) {
                atomic_fetch_add(&self->wrong, 1);
                break;
            }
        }
        atomic_fetch_add(&self->rounds, 1);
    }
    OK(acre_buffer_free(stream, buffer, ERR));
    acre_stream_destroy(stream);
    free(back);
    return NULL;
}

static void start_tenant(struct kit *kit, struct tenant *tenant) {
    *tenant = (struct tenant){.kit = kit};
    struct acre_program *program = NULL;
    tenant->context = kit_context(kit, (struct acre_context_options){.tenant = "second"});
    tenant->affine = kit_kernel_in(tenant->context, "affine", &program);
    REQUIRE_EQ(pthread_create(&tenant->thread, NULL, live, tenant), 0);
    double begun = kit_seconds();
    while (atomic_load(&tenant->rounds) == 0 && kit_seconds() - begun < 20) {
        kit_pass(1);
    }
    CHECK(atomic_load(&tenant->rounds) > 0);
}

/* It went on all the time: also after `rounds` were done. */
static void stop_tenant(struct tenant *tenant, uint32_t rounds) {
    double begun = kit_seconds();
    while (atomic_load(&tenant->rounds) == rounds && kit_seconds() - begun < 20) {
        kit_pass(1);
    }
    CHECK(atomic_load(&tenant->rounds) > rounds);
    atomic_store(&tenant->stop, true);
    pthread_join(tenant->thread, NULL);
    CHECK_U64(atomic_load(&tenant->wrong), 0);
    struct acre_context_report report;
    acre_context_report(tenant->context, &report);
    CHECK_EQ(report.rebuilt, 0);
    CHECK_EQ(report.lost, 0);
    printf("the second tenant did %u rounds\n", atomic_load(&tenant->rounds));
    acre_context_close(tenant->context);
}

/* --- before and after a fault --------------------------------------------------------------- */

struct scene {
    struct kit kit;
    struct tenant tenant;
    struct acre_buffer device, pinned;
    struct acre_kernel *affine;
    uint32_t *host;
};

static void set_scene(struct scene *scene, struct acre_context_options options) {
    kit_needs_isolation();
    options.tenant = "first";
    kit_open_with(&scene->kit, options);
    struct kit *kit = &scene->kit;
    start_tenant(kit, &scene->tenant);
    scene->device = kit_buffer(kit, ACRE_MEMORY_DEVICE, N * 4);
    scene->pinned = kit_buffer(kit, ACRE_MEMORY_PINNED, N * 4);
    scene->host = acre_buffer_host(kit->context, scene->pinned);
    scene->affine = kit_kernel(kit, "affine");
    (void)kit_kernel(kit, "wild"); /* built before, so that only the fault is timed */
    for (uint32_t i = 0; i < N; i++) {
        scene->host[i] = i;
    }
    OK(acre_fill(kit->stream, scene->device, 0, N * 4, 0, 4, ERR));
    OK(acre_stream_sync(kit->stream, ACRE_FOREVER, ERR));
}

/* The next good thing: a new buffer from what is in pinned memory, a kernel built before. */
static void check_works_again(struct scene *scene) {
    struct kit *kit = &scene->kit;
    uint32_t *back = malloc(N * 4);
    REQUIRE(back != NULL);
    struct acre_buffer next = kit_buffer(kit, ACRE_MEMORY_DEVICE, N * 4);
    OK(acre_copy_in(kit->stream, next, 0, scene->host, N * 4, ERR));
    OK(acre_launch(kit->stream, scene->affine, acre_grid_for(N),
                   ARGS(ACRE_BUFFER(next), ACRE_U32(2), ACRE_U32(5), ACRE_U32(N)), ERR));
    kit_get(kit, back, next, N * 4);
    for (uint32_t i = 0; i < N; i++) {
        REQUIRE_EQ(back[i], i * 2 + 5);
    }
    kit_free(kit, next);
    free(back);
}

/* `launched` was given to the stream: it fails, and is told so; then everything is as promised. */
static void check_recovery(struct scene *scene, const char *kernel, int code) {
    struct kit *kit = &scene->kit;
    struct acre_error *err = ERR;
    double begun = kit_seconds();
    int r = acre_stream_sync(kit->stream, 20000, err);
    double told_ms = (kit_seconds() - begun) * 1e3;
    printf("%s told after %.0f ms: %s\n", acre_error_name(r), told_ms, err->text);
    CHECK_EQ(r, code);
    if (code == ACRE_ETIMEOUT) {
        CHECK_HAS(err->text, kernel);
    }
    begun = kit_seconds();
    uint32_t word = 0;
    FAILS(acre_copy_out(kit->stream, &word, scene->device, 0, 4, ERR), ACRE_EUNAVAILABLE, "lost");
    FAILS(acre_launch(kit->stream, scene->affine, acre_grid_for(N),
                      ARGS(ACRE_BUFFER(scene->device), ACRE_U32(2), ACRE_U32(5), ACRE_U32(N)), ERR),
          ACRE_EUNAVAILABLE, "affine", "lost");
    struct acre_context_report report;
    acre_context_report(kit->context, &report);
    CHECK_EQ(report.rebuilt, 1);
    CHECK(report.lost >= 1);
    CHECK(report.failure[0] != '\0');
    for (uint32_t i = 0; i < N; i++) {
        REQUIRE_EQ(scene->host[i], i); /* pinned memory is as it was */
    }
    check_works_again(scene);
    double recovered_ms = (kit_seconds() - begun) * 1e3;
    printf("recovered after %.0f ms; failure: %s\n", recovered_ms, report.failure);
    CHECK(recovered_ms < recovery_max_ms());
    kit_free(kit, scene->device); /* a lost one can be given back */
    acre_context_report(kit->context, &report);
    CHECK_EQ(report.lost, 0);
}

static void end_scene(struct scene *scene) {
    stop_tenant(&scene->tenant, atomic_load(&scene->tenant.rounds));
    kit_free(&scene->kit, scene->pinned);
    kit_close(&scene->kit);
}

static void faults_out_of_bounds(void) { /* GPU-6 */
    struct scene scene;
    set_scene(&scene, (struct acre_context_options){0});
    RUN(&scene.kit, "wild", kit_grid(1, 32), ACRE_BUFFER(scene.device),
        ACRE_U64(UINT64_C(1) << 43));
    check_recovery(&scene, "wild", ACRE_EUNAVAILABLE);
    end_scene(&scene);
}

static void faults_trap(void) { /* GPU-6 */
    struct scene scene;
    set_scene(&scene, (struct acre_context_options){0});
    bool is_gpu = kit_is("cuda") || kit_is("hip");
    struct acre_source source = {
        .text = "kernel void trap(global uint *p, uint n) {\n    if (p[0] != n) {\n"
                "        TRAP;\n    }\n}\n",
        .name = "trap.acl",
        .language = ACRE_LANGUAGE_PORTABLE,
        .options = is_gpu ? "-DTRAP=__trap()" : "-DTRAP=__builtin_trap()"};
    struct acre_program *program = NULL;
    struct acre_kernel *kernel = NULL;
    OK(acre_program_build(scene.kit.context, &source, &program, NULL, ERR));
    OK(acre_kernel_find(program, "trap", &kernel, ERR));
    OK(acre_launch(scene.kit.stream, kernel, kit_grid(1, 1),
                   ARGS(ACRE_BUFFER(scene.device), ACRE_U32(1)), ERR));
    check_recovery(&scene, "trap", ACRE_EUNAVAILABLE);
    acre_program_destroy(program);
    end_scene(&scene);
}

static void faults_endless(void) { /* GPU-6 */
    struct scene scene;
    /* A busy machine must not take the honest kernels of a CPU for hung ones. */
    bool is_gpu = kit_is("cuda") || kit_is("hip");
    set_scene(&scene, (struct acre_context_options){.kernel_limit_ms = is_gpu ? 400 : 1500});
    RUN(&scene.kit, "endless", kit_grid(1, 1), ACRE_BUFFER(scene.device));
    check_recovery(&scene, "endless", ACRE_ETIMEOUT);
    end_scene(&scene);
}

/* Closing waits for what was given, but not for ever: the limit holds until all of it is over. */
static void faults_endless_and_closed(void) { /* GPU-6 */
    struct scene scene;
    set_scene(&scene, (struct acre_context_options){.kernel_limit_ms = 400});
    RUN(&scene.kit, "endless", kit_grid(1, 1), ACRE_BUFFER(scene.device));
    acre_context_close(scene.kit.context);
    stop_tenant(&scene.tenant, atomic_load(&scene.tenant.rounds));
    acre_compute_close(scene.kit.compute);
}

static void faults_again_and_again(void) {
    struct scene scene;
    set_scene(&scene, (struct acre_context_options){0});
    for (uint32_t i = 1; i <= 4; i++) {
        struct acre_buffer buffer = kit_buffer(&scene.kit, ACRE_MEMORY_DEVICE, 4096);
        RUN(&scene.kit, "wild", kit_grid(1, 1), ACRE_BUFFER(buffer), ACRE_U64(UINT64_C(1) << 43));
        CHECK_EQ(acre_stream_sync(scene.kit.stream, 20000, ERR), ACRE_EUNAVAILABLE);
        struct acre_context_report report;
        check_works_again(&scene);
        acre_context_report(scene.kit.context, &report);
        CHECK_EQ(report.rebuilt, i);
        kit_free(&scene.kit, buffer);
    }
    kit_free(&scene.kit, scene.device);
    end_scene(&scene);
}

/* Events before the fault have come; those behind it tell of it; graphs are made anew. */
static void faults_and_what_was_under_way(void) {
    struct scene scene;
    set_scene(&scene, (struct acre_context_options){0});
    struct kit *kit = &scene.kit;
    struct acre_stream *other = NULL;
    struct acre_event before;
    struct acre_event behind;
    struct acre_graph *graph = NULL;
    OK(acre_stream_create(kit->context, &other, ERR));
    struct acre_buffer mapped = kit_buffer(kit, ACRE_MEMORY_MAPPED, 4096);
    uint32_t *word = acre_buffer_host(kit->context, mapped);
    OK(acre_graph_begin(kit->stream, ERR));
    RUN(kit, "affine", kit_grid(1, 1), ACRE_BUFFER(mapped), ACRE_U32(2), ACRE_U32(1), ACRE_U32(1));
    OK(acre_graph_end(kit->stream, &graph, ERR));
    word[0] = 1;
    OK(acre_graph_launch(graph, kit->stream, ERR));
    OK(acre_event_record(kit->stream, &before, ERR));
    OK(acre_event_wait(before, 20000, ERR));
    CHECK_U64(word[0], 3);
    struct kit_gate gate;
    (void)kit_kernel(kit, "wild"); /* loaded before the stream is held */
    kit_gate_close(kit, kit->stream, &gate);
    RUN(kit, "wild", kit_grid(1, 1), ACRE_BUFFER(scene.device), ACRE_U64(UINT64_C(1) << 43));
    OK(acre_event_record(kit->stream, &behind, ERR));
    kit_gate_open(&gate);
    CHECK_EQ(acre_event_wait(behind, 20000, ERR), ACRE_EUNAVAILABLE);
    CHECK_EQ(acre_event_wait(behind, 0, ERR), ACRE_EUNAVAILABLE); /* for ever */
    OK(acre_event_wait(before, 0, ERR));
    OK(acre_graph_launch(graph, kit->stream, ERR)); /* its buffer is the host's, and there */
    OK(acre_stream_sync(kit->stream, 20000, ERR));
    CHECK_U64(word[0], 7);
    OK(acre_graph_launch(graph, other, ERR)); /* a stream that had nothing to do with it */
    OK(acre_stream_sync(other, 20000, ERR));
    CHECK_U64(word[0], 15);
    acre_graph_destroy(graph);
    acre_stream_destroy(other);
    kit_gate_finish(&gate);
    kit_free(kit, mapped);
    kit_free(kit, scene.device);
    end_scene(&scene);
}

/* Buffers until there is no more; what is said names what is held; then all goes on. On a GPU the
 * device's own memory is used up, elsewhere that of a limit (the machine's would be too much). */
static void faults_exhausted(void) {
    struct scene scene;
    bool is_gpu = kit_is("cuda") || kit_is("hip");
    uint64_t piece = is_gpu ? UINT64_C(1) << 32 : 16 * KIT_MIB;
    set_scene(&scene, (struct acre_context_options){
                          .memory_limit_bytes =
                              is_gpu ? UINT64_C(1) << 42 /* the driver says no */ : 256 * KIT_MIB});
    enum { BUFFERS_MAX = 512 };
    struct acre_buffer buffers[BUFFERS_MAX];
    uint32_t count = 0;
    int r = 0;
    char said[ACRE_ERROR_TEXT_MAX] = "";
    while (count < BUFFERS_MAX && r == 0) {
        struct acre_error *err = ERR;
        r = acre_buffer_alloc(scene.kit.stream, ACRE_MEMORY_DEVICE, piece, &buffers[count], err);
        count += r == 0;
        snprintf(said, sizeof(said), "%s", err->text);
    }
    printf("%u buffers, then %s: %s\n", count, acre_error_name(r), said);
    CHECK(r == ACRE_ENOMEM || r == ACRE_ELIMIT);
    CHECK(count > 2 && count < BUFFERS_MAX);
    CHECK_HAS(said, "buffers");
    uint32_t rounds = atomic_load(&scene.tenant.rounds);
    double begun = kit_seconds();
    while (count > 0) {
        kit_free(&scene.kit, buffers[--count]);
    }
    check_works_again(&scene);
    printf("recovered after %.0f ms\n", (kit_seconds() - begun) * 1e3);
    CHECK((kit_seconds() - begun) * 1e3 < recovery_max_ms());
    struct acre_context_report report;
    acre_context_report(scene.kit.context, &report);
    CHECK_EQ(report.rebuilt, 0); /* nothing was lost */
    kit_free(&scene.kit, scene.device);
    stop_tenant(&scene.tenant, rounds);
    kit_free(&scene.kit, scene.pinned);
    kit_close(&scene.kit);
}

static const struct acre_test tests[] = {
    TEST(faults_out_of_bounds),   TEST(faults_trap),
    TEST(faults_endless),         TEST(faults_endless_and_closed),
    TEST(faults_again_and_again), TEST(faults_and_what_was_under_way),
    TEST(faults_exhausted),
};
SUITE(compute_fault_suite, tests);
