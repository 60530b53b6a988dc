/* Programs (GPU-1): built by a real compiler (OpenCL's), kept on disk, loaded again after a loss.
 * Back ends are counted through a copy of their table, and an epoch passes without a runner being
 * killed, by counting it up. */
#include "compute/cache.h"
#include "compute/cpu/cpu.h"
#include "compute/program.h"
#include "support/opencl_rig.h"
#include "support/tree.h"

#include <acre/parameter.h>
#include <stdio.h>
#include <stdlib.h>

/* --- a context that counts ------------------------------------------------------------------ */

static struct {
    const struct backend *real;
    atomic_uint compiled, loaded, unloaded, asked;
    atomic_int refuse_loads; /* so many of the next */
    atomic_int refusal;      /* ACRE_E*; 0: ACRE_ECORRUPT */
} counts;

static int compile(void *seat, const struct native_source *source, struct acre_buf *binary,
                   struct acre_buf *log, struct acre_error *err) {
    counts.compiled++;
    return counts.real->compile(seat, source, binary, log, err);
}

static int load(void *seat, const void *binary, size_t length, uint64_t *ret_module,
                struct acre_error *err) {
    counts.loaded++;
    if (counts.refuse_loads > 0) {
        counts.refuse_loads--;
        return counts.refusal != 0 ? acre_fail(err, counts.refusal, "not now")
                                   : acre_fail(err, ACRE_ECORRUPT, "not such bytes");
    }
    return counts.real->load(seat, binary, length, ret_module, err);
}

static void unload(void *seat, uint64_t module) {
    counts.unloaded++;
    counts.real->unload(seat, module);
}

static int kernel(void *seat, uint64_t module, const char *name, uint64_t *ret_kernel,
                  struct kernel_facts *ret_facts, struct acre_error *err) {
    counts.asked++;
    return counts.real->kernel(seat, module, name, ret_kernel, ret_facts, err);
}

struct bench {
    struct tree tree;
    struct backend table;
    struct acre_compute *compute;
    struct acre_context *context;
};

static struct bench *bench_open(const struct backend *real) {
    struct bench *bench = acre_calloc(1, sizeof(*bench));
    struct acre_error err = {0};
    bench->tree = tree_create(NULL);
    const struct acre_compute_options options = {.backends = real->name,
                                                 .cache = tree_path(&bench->tree, "cache")};
    const struct acre_context_options here = {.isolation = ACRE_CONTEXT_ISOLATION_NONE};
    REQUIRE_EQ(acre_compute_open(&options, &bench->compute, &err), 0);
    if (acre_compute_count(bench->compute) == 0) {
        acre_test_skip("%s", acre_compute_absent(bench->compute, real->name));
    }
    REQUIRE_EQ(acre_context_open(bench->compute, 0, &here, &bench->context, &err), 0);
    counts.real = real;
    bench->table = *real;
    bench->table.compile = compile;
    bench->table.load = load;
    bench->table.unload = unload;
    bench->table.kernel = kernel;
    bench->context->table = &bench->table;
    return bench;
}

static void bench_close(struct bench *bench) {
    programs_destroy(bench->context);
    CHECK(bench->context->programs == NULL);
    acre_compute_close(bench->compute);
    tree_erase(&bench->tree);
    free(bench);
}

static const struct acre_source good = {
    .text = "kernel void add(global const float *a, global float *b, uint n) {\n"
            "    if (global_id(0) < n) { b[global_id(0)] += a[global_id(0)]; }\n"
            "}\n"
            "#ifdef NEVER\n"
            "kernel void hidden(int n) {}\n"
            "#endif\n"
            "kernel void zero(global float *b) { b[global_id(0)] = 0.0f; }\n",
    .name = "good.c"};

static struct acre_program *build(struct bench *bench, const struct acre_source *source,
                                  struct acre_build_report *ret_report) {
    struct acre_program *program = NULL;
    struct acre_error err = {0};
    int r = acre_program_build(bench->context, source, &program, ret_report, &err);
    CHECK_STR(err.text, "");
    REQUIRE_EQ(r, 0);
    return program;
}

/* --- building ------------------------------------------------------------------------------- */

static void kernels_are_found_by_name(void) { /* GPU-1 */
    struct bench *bench = bench_open(&backend_opencl);
    struct acre_build_report report;
    struct acre_program *program = build(bench, &good, &report);
    struct acre_kernel *found = NULL;
    struct acre_error err = {0};
    CHECK_STR(report.log, "");
    CHECK_STR(report.cache, "");
    CHECK(!report.was_cached && report.build_ms > 0);
    acre_build_report_finish(&report);
    CHECK(report.log == NULL);
    REQUIRE_EQ(acre_kernel_find(program, "add", &found, &err), 0);
    CHECK_STR(found->signature.name, "add");
    CHECK_EQ(found->signature.count, 3);
    CHECK(found->facts.group_max > 0);
    CHECK(kernel_context(found) == bench->context);
    found = NULL;
    CHECK_EQ(acre_kernel_find(program, "mul\n", &found, &err), ACRE_ENOTFOUND);
    CHECK_STR(err.text, "no kernel 'mul\\n' in the program; its kernels: add, zero");
    CHECK_EQ(acre_kernel_find(program, NULL, &found, &err), ACRE_ENOTFOUND);
    CHECK_EQ(acre_kernel_find(program, "hidden", &found, &err), ACRE_ENOTFOUND);
    CHECK_STR(err.text, "kernel 'hidden' is in the source (line 5), but was not compiled; "
                        "is it inside an #if?");
    CHECK(found == NULL);
    acre_program_destroy(program);
    acre_program_destroy(NULL);
    CHECK_EQ(counts.unloaded, 1);
    bench_close(bench);
}

static void what_a_program_has_is_listed(void) { /* GPU-1 */
    static const struct {
        enum acre_parameter_kind kind;
        uint32_t bytes;
        bool is_const;
        const char *name, *type;
    } rows[] = {
        {ACRE_PARAMETER_BUFFER, 4, true, "a", "global const float *"},
        {ACRE_PARAMETER_BUFFER, 4, false, "b", "global float *"},
        {ACRE_PARAMETER_UNSIGNED, 4, false, "n", "uint"},
    };
    struct bench *bench = bench_open(&backend_opencl);
    struct acre_program *program = build(bench, &good, NULL);
    struct acre_kernel *add = acre_program_kernel(program, 0);
    REQUIRE(add != NULL && acre_program_kernel(program, 1) != NULL);
    CHECK_STR(acre_kernel_name(add), "add");
    CHECK_STR(acre_kernel_name(acre_program_kernel(program, 1)), "zero"); /* not the hidden one */
    CHECK(acre_program_kernel(program, 2) == NULL);
    struct acre_parameter parameter;
    for (uint32_t i = 0; i < ACRE_COUNT(rows); i++) {
        REQUIRE(acre_kernel_parameter(add, i, &parameter));
        CHECK_EQ(parameter.kind, rows[i].kind);
        CHECK_U64(parameter.bytes, rows[i].bytes);
        CHECK_EQ(parameter.is_const, rows[i].is_const);
        CHECK_STR(parameter.name, rows[i].name);
        CHECK_STR(parameter.type, rows[i].type);
    }
    CHECK(!acre_kernel_parameter(add, ACRE_COUNT(rows), &parameter));
    acre_program_destroy(program);
    bench_close(bench);
}

static void what_was_compiled_is_not_compiled_again(void) { /* GPU-1 */
    struct bench *bench = bench_open(&backend_opencl);
    struct acre_build_report first, second;
    build(bench, &good, &first);
    CHECK_EQ(counts.compiled, 1);
    build(bench, &good, &second);
    CHECK_EQ(counts.compiled, 1);
    CHECK(!first.was_cached && second.was_cached);
    CHECK_STR(second.cache, "");
    struct acre_source other = good;
    other.options = "-DNEVER";
    struct acre_kernel *found;
    struct acre_program *program = build(bench, &other, NULL);
    CHECK_EQ(counts.compiled, 2);
    CHECK_EQ(acre_kernel_find(program, "hidden", &found, NULL), 0);
    snprintf(bench->compute->devices[0].identity, sizeof(bench->compute->devices[0].identity),
             "another driver");
    build(bench, &good, NULL);
    CHECK_EQ(counts.compiled, 3);
    acre_build_report_finish(&first);
    acre_build_report_finish(&second);
    bench_close(bench);
}

/* GPU-1: a file cut short, and a sound file that the driver refuses. */
static void damaged_entries_are_rebuilt(void) {
    struct bench *bench = bench_open(&backend_opencl);
    struct acre_build_report report;
    struct acre_cache_entry *entries = NULL;
    uint32_t count = 0;
    char path[256];
    build(bench, &good, NULL);
    REQUIRE_EQ(acre_cache_list(bench->compute->cache, &entries, &count, NULL), 0);
    REQUIRE_EQ(count, 1);
    CHECK_STR(entries[0].name, "good.c");
    snprintf(path, sizeof(path), "cache/%s", entries[0].file);
    tree_put(&bench->tree, path, "not what it was");
    build(bench, &good, &report);
    CHECK_EQ(counts.compiled, 2);
    CHECK(!report.was_cached);
    CHECK_HAS(report.cache, "damaged and rebuilt: ");
    acre_build_report_finish(&report);
    counts.refuse_loads = 1;
    build(bench, &good, &report);
    CHECK_EQ(counts.compiled, 3);
    CHECK_STR(report.cache, "damaged and rebuilt: not such bytes");
    acre_build_report_finish(&report);
    build(bench, &good, &report);
    CHECK(report.was_cached);
    CHECK_EQ(counts.compiled, 3);
    acre_build_report_finish(&report);
    free(entries);
    bench_close(bench);
}

static void entries_go_only_when_their_bytes_are_refused(void) { /* GPU-1 */
    static const struct {
        int refusal;
        bool stays;
    } rows[] = {{ACRE_ENOMEM, true},    {ACRE_EUNAVAILABLE, true}, {ACRE_ETIMEOUT, true},
                {ACRE_EIO, true},       {ACRE_EINTERNAL, true},    {ACRE_ELIMIT, true},
                {ACRE_ECORRUPT, false}, {ACRE_EINVALID, false},    {ACRE_EUNSUPPORTED, false}};
    struct bench *bench = bench_open(&backend_opencl);
    build(bench, &good, NULL);
    unsigned compiled = 1;
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct acre_build_report report;
        struct acre_program *program = NULL;
        struct acre_error err = {0};
        acre_test_context("%s", acre_error_name(rows[i].refusal));
        counts.refusal = rows[i].refusal;
        counts.refuse_loads = 1;
        CHECK_EQ(acre_program_build(bench->context, &good, &program, &report, &err),
                 rows[i].stays ? rows[i].refusal : 0);
        CHECK_STR(rows[i].stays ? err.text : report.cache,
                  rows[i].stays ? "not now" : "damaged and rebuilt: not now");
        CHECK(!report.was_cached);
        acre_build_report_finish(&report);
        CHECK_EQ(counts.refuse_loads, 0);
        compiled += !rows[i].stays;
        build(bench, &good, &report);
        CHECK(report.was_cached);
        CHECK_STR(report.cache, "");
        CHECK_EQ(counts.compiled, compiled);
        acre_build_report_finish(&report);
    }
    bench_close(bench);
}

static void without_a_cache_programs_are_built(void) { /* GPU-1 */
    static const struct {
        const char *directory, *expect;
    } rows[] = {
        {"", "off: "},
        {"file", "not cached: "},
        {"file/below", "not cached: "},
    };
    struct bench *bench = bench_open(&backend_opencl);
    tree_put(&bench->tree, "file", "in the way");
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct acre_build_report report;
        const char *directory = rows[i].directory;
        acre_test_context("'%s'", directory);
        free(bench->compute->cache);
        bench->compute->cache =
            acre_strdup(directory[0] != '\0' ? tree_path(&bench->tree, directory) : "");
        build(bench, &good, &report);
        CHECK(!report.was_cached);
        CHECK_HAS(report.cache, rows[i].expect);
        acre_build_report_finish(&report);
    }
    CHECK_EQ(counts.compiled, 3);
    bench_close(bench);
}

/* GPU-1: files that are no part of the key may be others the next time. */
static void sources_with_files_of_their_own_are_built_each_time(void) {
    static const struct {
        const char *text, *options; /* '@' is the directory of v.h */
        bool is_kept;
    } rows[] = {
        {"#include \"v.h\"\n", "-I@", false},
        {"#include <v.h>\n", "-I@", false},
        {"#include <v.h>\n", "-O1 -isystem@", false},
        {"  #  include \"v.h\"\n", "-I@", false},
        {"#define HEADER \"v.h\"\n#include HEADER\n", "-iquote@", false},
        {"#include </dev/null>\n", "", false},
        {"#inc\\\nlude \"v.h\"\n", "-I@", false},
        {"#if __has_include(\"v.h\")\n#endif\n", "", false},
        {"", "-include@/v.h", false},
        {"", "--include=@/v.h", false},
        {"", "-DA\t-include@/v.h", false},
        {"", "-Wp,-imacros,@/v.h", false},
        {"", "-I@", true},
        {"", " -fno-inline  -finline-limit=9 -w ", true},
        {"#include <stddef.h>\n", "-fno-inline -DX=-I", true},
        {"// #include \"v.h\"\n", "-I@", true},
    };
    struct bench *bench = bench_open(&backend_cpu);
    tree_put(&bench->tree, "v.h", "#define VALUE 1");
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        char text[256], options[256];
        const char *at = strchr(rows[i].options, '@');
        size_t before = at != NULL ? (size_t)(at - rows[i].options) : strlen(rows[i].options);
        snprintf(text, sizeof(text), "%skernel void f%zu(global int *a) { a[0] = 1; }\n",
                 rows[i].text, i);
        snprintf(options, sizeof(options), "%.*s%s%s", (int)before, rows[i].options,
                 at != NULL ? bench->tree.root : "", at != NULL ? at + 1 : "");
        const struct acre_source source = {.text = text, .name = "k", .options = options};
        struct acre_build_report first, second;
        acre_test_context("%s%s", text, options);
        build(bench, &source, &first);
        build(bench, &source, &second);
        CHECK_STR(first.cache,
                  rows[i].is_kept ? "" : "off: the source includes files that may change");
        CHECK_EQ(second.was_cached, rows[i].is_kept);
        CHECK_EQ(counts.compiled, rows[i].is_kept ? 1 : 2);
        counts.compiled = 0;
        acre_build_report_finish(&first);
        acre_build_report_finish(&second);
    }
    struct acre_build_report report;
    REQUIRE_EQ(setenv("CPATH", bench->tree.root, 1), 0);
    build(
        bench,
        &(struct acre_source){.text = "#include <v.h>\nkernel void f(global int *a) { a[0] = 1; }"},
        &report);
    CHECK_HAS(report.cache, "off");
    acre_build_report_finish(&report);
    bench_close(bench);
}

static void a_byte_order_mark_is_no_part_of_a_source(void) { /* GPU-1 */
    struct bench *bench = bench_open(&backend_cpu);
    const struct acre_source source = {
        .text = "\xef\xbb\xbfkernel void f(global int *a) { a[0] = 1; }\n"};
    struct acre_kernel *found;
    CHECK_EQ(acre_kernel_find(build(bench, &source, NULL), "f", &found, NULL), 0);
    bench_close(bench);
}

static void kernels_under_an_if_are_there_or_not(void) { /* GPU-1 */
    static const struct acre_source source = {
        .text = "#ifdef NEVER\n"
                "it's not here\n"
                "#endif\n"
                "#ifdef NEVER\n"
                "kernel void off(global int *a) { nowhere(a); }\n"
                "#elif 1\n"
                "kernel void either(global int *a) { a[0] = 1; }\n"
                "#else\n"
                "kernel void either(global int *a) { a[0] = 2; }\n"
                "#endif\n"};
    struct bench *bench = bench_open(&backend_cpu);
    struct acre_program *program = build(bench, &source, NULL);
    struct acre_kernel *found;
    struct acre_error err = {0};
    CHECK_EQ(acre_kernel_find(program, "either", &found, &err), 0);
    CHECK_EQ(acre_kernel_find(program, "off", &found, &err), ACRE_ENOTFOUND);
    CHECK_HAS(err.text, "kernel 'off' is in the source (line 5), but was not compiled");
    bench_close(bench);
}

static void a_program_may_have_no_kernel_left(void) { /* GPU-1 */
    static const struct acre_source source = {.text =
                                                  "#ifdef NEVER\nkernel void off() { }\n#endif\n"};
    struct bench *bench = bench_open(&backend_cpu);
    struct acre_kernel *found;
    struct acre_error err = {0};
    CHECK_EQ(acre_kernel_find(build(bench, &source, NULL), "on", &found, &err), ACRE_ENOTFOUND);
    CHECK_STR(err.text, "no kernel 'on' in the program; none of its kernels was compiled");
    bench_close(bench);
}

/* --- what cannot be built ------------------------------------------------------------------- */

static void bad_sources_are_refused(void) { /* GPU-1 */
    static const struct {
        struct acre_source source;
        int expect;
        const char *text;
        bool is_the_compilers;
    } rows[] = {
        {{.text = NULL}, ACRE_EINVALID, "source.text: must not be NULL", false},
        {{.text = "kernel void f() {}", .language = (enum acre_language)9},
         ACRE_EINVALID,
         "unknown source.language 9; accepted: 0 to 4",
         false},
        {{.text = "int x;", .name = "x.c"},
         ACRE_EINVALID,
         "x.c has no kernel; expected 'kernel void name(...)'",
         false},
        {{.text = "__global__ void f() {}"},
         ACRE_EUNSUPPORTED,
         "kernel is written in CUDA, which back end cuda accepts; back end opencl accepts the "
         "portable dialect or OpenCL",
         false},
        {{.text = "kernel void f(bool b) {}", .name = "b.c"},
         ACRE_EINVALID,
         "b.c:1: kernel 'f', parameter 1: ",
         false},
        {{.text = "// one\n// two\nkernel void f() { nowhere(); }\n", .name = "c.c"},
         ACRE_EINVALID,
         "c.c:3:19: ",
         true},
        {{.text = "__kernel void f() { get_local_id(0) }\n", .name = "d.cl"},
         ACRE_EINVALID,
         "d.cl:1:",
         true},
    };
    struct bench *bench = bench_open(&backend_opencl);
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct acre_program *program = NULL;
        struct acre_build_report report = {0};
        struct acre_error err = {0};
        acre_test_context("row %zu", i);
        CHECK_EQ(acre_program_build(bench->context, &rows[i].source, &program, &report, &err),
                 rows[i].expect);
        CHECK_EQ(err.code, rows[i].expect);
        CHECK_HAS(err.text, rows[i].text);
        CHECK(program == NULL && report.log != NULL && report.build_ms > 0);
        CHECK_EQ(strstr(report.log, "error") != NULL, rows[i].is_the_compilers);
        acre_build_report_finish(&report);
    }
    CHECK(bench->context->programs == NULL);
    bench_close(bench);
}

static void modules_that_do_not_load_leave_nothing(void) { /* GPU-1 */
    struct bench *bench = bench_open(&backend_opencl);
    struct acre_program *program = NULL;
    struct acre_error err = {0};
    counts.refuse_loads = 2;
    CHECK_EQ(acre_program_build(bench->context, &good, &program, NULL, &err), ACRE_ECORRUPT);
    CHECK_STR(err.text, "not such bytes");
    CHECK(program == NULL && bench->context->programs == NULL);
    counts.refuse_loads = 0;
    build(bench, &good, NULL);
    CHECK_EQ(counts.compiled, 2); /* what did not load was not kept */
    bench_close(bench);
}

static void a_lost_context_builds_nothing(void) { /* GPU-6 */
    struct bench *bench = bench_open(&backend_opencl);
    struct acre_program *kept = build(bench, &good, NULL), *program = NULL;
    struct acre_error err = {0};
    snprintf(bench->context->failure, sizeof(bench->context->failure), "the runner died");
    atomic_store(&bench->context->failed, ACRE_EUNAVAILABLE);
    CHECK_EQ(acre_program_build(bench->context, &good, &program, NULL, &err), ACRE_EUNAVAILABLE);
    CHECK_HAS(err.text, "the runner died");
    CHECK(program == NULL);
    acre_program_destroy(kept);
    CHECK_EQ(counts.unloaded, 0); /* there is nobody to tell */
    atomic_store(&bench->context->failed, 0);
    bench_close(bench);
}

/* --- after a loss --------------------------------------------------------------------------- */

enum { THREADS = 8 };

struct asker {
    pthread_t thread;
    struct acre_kernel *kernels[2];
    uint64_t handles[2];
    pthread_barrier_t *together;
};

/* As a launch does it: loaded first, then found with the gate held. */
static int find_handle(struct acre_kernel *kernel, uint64_t *ret_handle, struct acre_error *err) {
    struct acre_context *context = kernel_context(kernel);
    int r = kernel_ready(kernel, err);
    if (r == 0) {
        pthread_rwlock_rdlock(&context->gate);
        r = kernel_handle(kernel, ret_handle, err);
        pthread_rwlock_unlock(&context->gate);
    }
    return r;
}

static void *ask(void *user) {
    struct asker *asker = user;
    pthread_barrier_wait(asker->together);
    for (int i = 0; i < 2; i++) {
        if (find_handle(asker->kernels[i], &asker->handles[i], NULL) < 0 ||
            asker->kernels[i]->facts.group_max == 0) {
            asker->handles[i] = 0;
        }
    }
    return NULL;
}

static void a_lost_module_is_loaded_once_by_whoever_needs_it(void) { /* GPU-6 */
    struct bench *bench = bench_open(&backend_opencl);
    struct acre_program *program = build(bench, &good, NULL);
    struct acre_kernel *kernels[2];
    pthread_barrier_t together;
    pthread_barrier_init(&together, NULL, THREADS);
    REQUIRE_EQ(acre_kernel_find(program, "add", &kernels[0], NULL), 0);
    REQUIRE_EQ(acre_kernel_find(program, "zero", &kernels[1], NULL), 0);
    for (uint32_t epoch = 2; epoch < 12; epoch++) {
        struct asker askers[THREADS];
        acre_test_context("epoch %u", epoch);
        counts.loaded = counts.asked = 0;
        pthread_rwlock_wrlock(&bench->context->gate);
        atomic_store(&bench->context->epoch, epoch);
        pthread_rwlock_unlock(&bench->context->gate);
        for (int i = 0; i < THREADS; i++) {
            askers[i] = (struct asker){.kernels = {kernels[0], kernels[1]}, .together = &together};
            REQUIRE(pthread_create(&askers[i].thread, NULL, ask, &askers[i]) == 0);
        }
        for (int i = 0; i < THREADS; i++) {
            pthread_join(askers[i].thread, NULL);
            CHECK(askers[i].handles[0] != 0 && askers[i].handles[1] != 0);
            CHECK_U64(askers[i].handles[0], askers[0].handles[0]);
            CHECK_U64(askers[i].handles[1], askers[0].handles[1]);
        }
        CHECK_EQ(counts.loaded, 1);
        CHECK_EQ(counts.asked, 2);
        CHECK_EQ(counts.compiled, 1);
    }
    uint64_t handle = 77;
    struct acre_error err = {0};
    atomic_store(&bench->context->epoch, 12);
    counts.refuse_loads = 1;
    CHECK_EQ(find_handle(kernels[0], &handle, &err), ACRE_ECORRUPT);
    CHECK_U64(handle, 77);
    CHECK_EQ(find_handle(kernels[0], &handle, &err), 0); /* and is tried again */
    pthread_barrier_destroy(&together);
    bench_close(bench);
}

/* --- native --------------------------------------------------------------------------------- */

static void nothing(const struct acre_groups *groups, const void *const *arguments) {
    (void)groups;
    (void)arguments;
}

static void c_functions_are_kernels_of_the_cpu(void) { /* GPU-1 */
    struct bench *bench = bench_open(&backend_cpu);
    struct acre_program *program = NULL;
    struct acre_kernel *found;
    struct acre_error err = {0};
    uint64_t handle = 0;
    int r = acre_program_native(bench->context, "void add(global const float *a, uint n)", nothing,
                                &program, &err);
    CHECK_STR(err.text, "");
    REQUIRE_EQ(r, 0);
    REQUIRE_EQ(acre_kernel_find(program, "add", &found, &err), 0);
    CHECK_EQ(found->signature.count, 2);
    CHECK_EQ(find_handle(found, &handle, &err), 0);
    CHECK(handle != 0);
    acre_program_destroy(program);
    CHECK_EQ(counts.loaded + counts.unloaded, 0);
    program = NULL;
    CHECK_EQ(acre_program_native(bench->context, "add", nothing, &program, &err), ACRE_EINVALID);
    CHECK_EQ(acre_program_native(bench->context, NULL, nothing, &program, &err), ACRE_EINVALID);
    CHECK_EQ(acre_program_native(bench->context, "void f()", NULL, &program, &err), ACRE_EINVALID);
    bench->table.native = NULL; /* as a GPU, or a runner */
    CHECK_EQ(acre_program_native(bench->context, "void f()", nothing, &program, &err),
             ACRE_EUNSUPPORTED);
    CHECK_HAS(err.text, "a CPU context in this process");
    bench->table.compile = NULL;
    CHECK_EQ(acre_program_build(bench->context, &good, &program, NULL, &err), ACRE_EUNSUPPORTED);
    CHECK_HAS(err.text, "cannot compile source");
    CHECK(program == NULL);
    bench_close(bench);
}

static void c_functions_go_with_their_programs(void) {
    struct bench *bench = bench_open(&backend_cpu);
    const struct cpu_seat *seat = bench->context->seat;
    struct acre_stream *stream = NULL;
    struct acre_program *programs[3];
    const struct acre_grid grid = {.groups = {100}, .group = {64}};
    REQUIRE_EQ(acre_stream_create(bench->context, &stream, NULL), 0);
    for (size_t i = 0; i < ACRE_COUNT(programs); i++) {
        struct acre_kernel *kernel = NULL;
        REQUIRE_EQ(
            acre_program_native(bench->context, "void none(uint n)", nothing, &programs[i], NULL),
            0);
        REQUIRE_EQ(acre_kernel_find(programs[i], "none", &kernel, NULL), 0);
        CHECK_EQ(acre_launch(stream, kernel, grid, &ACRE_U32(1), 1, NULL), 0);
    }
    CHECK_EQ(acre_stream_sync(stream, ACRE_FOREVER, NULL), 0);
    static const size_t order[] = {1, 2, 0}; /* the middle, the first and the last of a list */
    for (size_t i = 0; i < ACRE_COUNT(order); i++) {
        uint32_t count = 0;
        for (const struct cpu_kernel *kernel = seat->natives; kernel != NULL;
             kernel = kernel->next) {
            count++;
        }
        CHECK_EQ(count, ACRE_COUNT(order) - i);
        acre_program_destroy(programs[order[i]]);
    }
    CHECK(seat->natives == NULL);
    acre_stream_destroy(stream);
    bench_close(bench);
}

static const struct acre_test tests[] = {
    {"kernels_are_found_by_name", kernels_are_found_by_name, 0},
    {"what_a_program_has_is_listed", what_a_program_has_is_listed, 0},
    {"what_was_compiled_is_not_compiled_again", what_was_compiled_is_not_compiled_again, 0},
    {"damaged_entries_are_rebuilt", damaged_entries_are_rebuilt, 0},
    {"entries_go_only_when_their_bytes_are_refused", entries_go_only_when_their_bytes_are_refused,
     0},
    {"without_a_cache_programs_are_built", without_a_cache_programs_are_built, 0},
    {"sources_with_files_of_their_own_are_built_each_time",
     sources_with_files_of_their_own_are_built_each_time, 0},
    {"a_byte_order_mark_is_no_part_of_a_source", a_byte_order_mark_is_no_part_of_a_source, 0},
    {"kernels_under_an_if_are_there_or_not", kernels_under_an_if_are_there_or_not, 0},
    {"a_program_may_have_no_kernel_left", a_program_may_have_no_kernel_left, 0},
    {"bad_sources_are_refused", bad_sources_are_refused, 0},
    {"modules_that_do_not_load_leave_nothing", modules_that_do_not_load_leave_nothing, 0},
    {"a_lost_context_builds_nothing", a_lost_context_builds_nothing, 0},
    {"a_lost_module_is_loaded_once_by_whoever_needs_it",
     a_lost_module_is_loaded_once_by_whoever_needs_it, 0},
    {"c_functions_are_kernels_of_the_cpu", c_functions_are_kernels_of_the_cpu, 0},
    {"c_functions_go_with_their_programs", c_functions_go_with_their_programs, 0},
};

int main(int argc, char **argv) {
    return rig_main(tests, ACRE_COUNT(tests), argc, argv);
}
