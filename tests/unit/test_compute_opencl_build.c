/* OpenCL: many threads of many processes build one program at the same moment (GPU-1; issue 4, "two
 * processes may share it"). The cache of the driver is empty when they begin: PoCL, which keeps
 * programs as directories of files, would read what another is just writing, and end the process.
 */
#include "support/opencl_rig.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROCESSES = 4, THREADS = 4, ROUNDS = 3, ITEMS = 64 };

static const struct backend *const cl = &backend_opencl;

struct builder {
    struct rig *rig;
    uint32_t number, process;
    pthread_t thread;
    char failure[256];
};

/* Another program in each round; the same in all threads of all processes. */
static void write_source(uint32_t round, char *text, size_t size) {
    snprintf(text, size,
             "kernel void one(global uint *out) { out[get_global_id(0)] = %uu; }\n"
             "kernel void two(global uint *out) { local uint l[64]; l[get_local_id(0)] = %uu;\n"
             "    barrier(CLK_LOCAL_MEM_FENCE); out[get_global_id(0)] = l[0]; }\n",
             round + 1, round + 2);
}

static int compile(struct rig *rig, uint32_t round, struct acre_buf *binary,
                   struct acre_error *err) {
    char text[512];
    write_source(round, text, sizeof(text));
    const char *names[] = {"one", "two"};
    struct native_source source = {
        .text = text, .length = strlen(text), .options = "", .kernels = names, .kernel_count = 2};
    struct acre_buf log;
    acre_buf_init(&log, 1 << 16);
    int r = cl->compile(rig->seat, &source, binary, &log, err);
    acre_buf_finish(&log);
    return r;
}

/* Groups of another size in each process: PoCL compiles the kernel once more for it. */
static int launch(struct builder *builder, uint64_t module, uint32_t round,
                  struct acre_error *err) {
    struct rig *rig = builder->rig;
    uint64_t kernel = 0;
    struct kernel_facts facts;
    int r = cl->kernel(rig->seat, module, round % 2 == 0 ? "one" : "two", &kernel, &facts, err);
    if (r < 0) {
        return r;
    }
    uint32_t group = 1U << (builder->process + builder->number % 2);
    struct rig_launch launched;
    uint64_t region = rig_region(rig, ACRE_MEMORY_DEVICE, ITEMS * 4, NULL);
    rig_launch_begin(&launched, kernel,
                     (struct acre_grid){.groups = {ITEMS / group, 1, 1}, .group = {group, 1, 1}});
    rig_launch_buffer(&launched, region, 0, ITEMS * 4);
    r = cl->launch(rig->seat, rig->streams[builder->number], &launched.native, err);
    rig_sync(rig, builder->number);
    uint32_t *out = rig_pages(RIG_PAGE);
    uint64_t host = rig_region(rig, ACRE_MEMORY_PINNED, RIG_PAGE, out);
    struct native_copy copy = {.to = host, .from = region, .bytes = ITEMS * 4};
    r = r < 0 ? r : cl->copy(rig->seat, rig->streams[builder->number], &copy, err);
    rig_sync(rig, builder->number);
    for (uint32_t i = 0; i < ITEMS && r == 0; i++) {
        uint32_t expected = round % 2 == 0 ? round + 1 : round + 2;
        r = out[i] == expected
                ? 0
                : acre_fail(err, ACRE_EINTERNAL, "item %u is %u, not %u", i, out[i], expected);
    }
    cl->region_destroy(rig->seat, host);
    cl->region_destroy(rig->seat, region);
    munmap(out, RIG_PAGE);
    return r;
}

static void *build(void *argument) {
    struct builder *builder = argument;
    for (uint32_t round = 0; round < ROUNDS && builder->failure[0] == '\0'; round++) {
        struct acre_error err = {0};
        struct acre_buf binary;
        acre_buf_init(&binary, 16 << 20);
        uint64_t module = 0;
        int r = compile(builder->rig, round, &binary, &err);
        if (r == 0) {
            r = cl->load(builder->rig->seat, binary.data, binary.length, &module, &err);
        }
        if (r == 0) {
            r = launch(builder, module, round, &err);
            cl->unload(builder->rig->seat, module);
        }
        if (r < 0) {
            snprintf(builder->failure, sizeof(builder->failure), "round %u: %.200s", round,
                     err.text);
        }
        acre_buf_finish(&binary);
    }
    return NULL;
}

/* A process of its own. Returns how many of its threads failed. */
static int run_process(uint32_t process, int gate) {
    struct rig rig = rig_open("svm", THREADS);
    struct builder builders[THREADS] = {0};
    char go;
    ssize_t got = read(gate, &go, 1); /* its end: all are ready */
    int failed = got != 0;
    for (uint32_t i = 0; i < THREADS; i++) {
        builders[i] = (struct builder){.rig = &rig, .number = i, .process = process};
        REQUIRE(pthread_create(&builders[i].thread, NULL, build, &builders[i]) == 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_join(builders[i].thread, NULL);
        if (builders[i].failure[0] != '\0') {
            fprintf(stderr, "process %u, thread %u: %s\n", process, i, builders[i].failure);
            failed++;
        }
    }
    rig_close(&rig);
    return failed;
}

static void one_program_is_built_by_many_at_once(void) { /* GPU-1 */
    int gate[2];
    REQUIRE(pipe(gate) == 0);
    pid_t children[PROCESSES];
    for (uint32_t i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            close(gate[1]);
            _exit(run_process(i, gate[0]));
        }
        REQUIRE(children[i] > 0);
    }
    close(gate[0]);
    close(gate[1]);
    uint32_t skipped = 0;
    for (uint32_t i = 0; i < PROCESSES; i++) {
        int status = 0;
        REQUIRE(waitpid(children[i], &status, 0) == children[i]);
        acre_test_context("process %u", i);
        skipped += WIFEXITED(status) && WEXITSTATUS(status) == 77;
        CHECK(WIFEXITED(status)); /* and not by a signal */
        CHECK(!WIFEXITED(status) || WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 77);
    }
    if (skipped == PROCESSES) {
        acre_test_skip("no OpenCL device");
    }
}

static const struct acre_test tests[] = {
    {"one_program_is_built_by_many_at_once", one_program_is_built_by_many_at_once, 300},
};

int main(int argc, char **argv) {
    return rig_main(tests, ACRE_COUNT(tests), argc, argv);
}
