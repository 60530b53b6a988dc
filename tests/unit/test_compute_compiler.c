/* The program that compiles kernels for the CPU: one that hangs, one that changes, none (GPU-1). */
#include "support/cpu_rig.h"
#include "support/test.h"
#include "support/tree.h"

#include <acre/compute.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static const char one[] = "kernel void f(global int *a) { a[0] = 1; }\n";

/* --- time ------------------------------------------------------------------------------------ */

/* Whether the process is there and no zombie, which waits for its new parent only. */
static bool runs(pid_t pid) {
    char path[64], state = 'Z';
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    if (file != NULL && fscanf(file, "%*d %*s %c", &state) != 1) {
        state = 'Z';
    }
    if (file != NULL) {
        fclose(file);
    }
    return state != 'Z';
}

static uint32_t count_files(const char *directory) {
    DIR *dir = opendir(directory);
    REQUIRE(dir != NULL);
    uint32_t count = 0;
    for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        count += entry->d_name[0] != '.';
    }
    closedir(dir);
    return count;
}

static void put_compiler(const struct tree *tree, const char *text) {
    tree_put(tree, "bin/cc", text);
    REQUIRE_EQ(chmod(tree_path(tree, "bin/cc"), 0755), 0);
    char path[160];
    snprintf(path, sizeof(path), "%s:/usr/bin:/bin", tree_path(tree, "bin"));
    setenv("PATH", path, 1);
    tree_make_directory(tree, "tmp");
    setenv("TMPDIR", tree_path(tree, "tmp"), 1);
}

static void a_compiler_that_hangs_is_ended(void) {
    struct tree tree = tree_create(NULL);
    char script[256], line[32] = "";
    snprintf(script, sizeof(script),
             "#!/bin/sh\necho half > $TMPDIR/half.s\necho about to hang\nsleep 1000 &\n"
             "echo $! > %s\nwait",
             tree_path(&tree, "sleeper"));
    put_compiler(&tree, script);
    setenv("ACRE_COMPILE_LIMIT_S", "1", 1);
    struct cpu_rig rig;
    struct cpu_rig_program program;
    cpu_rig_init(&rig);
    uint32_t files = acre_test_open_files();
    CHECK_EQ(cpu_rig_build(&rig, "k", one, "", &program), ACRE_ETIMEOUT);
    CHECK_HAS(program.err.text, "/bin/cc was killed after 1 s");
    CHECK_HAS(program.err.text, "ACRE_COMPILE_LIMIT_S");
    CHECK_STR(program.log, "about to hang\n");
    CHECK_EQ(count_files(tree_path(&tree, "tmp")), 0);
    CHECK_EQ(acre_test_open_files(), files);
    FILE *file = fopen(tree_path(&tree, "sleeper"), "re");
    REQUIRE(file != NULL && fgets(line, sizeof(line), file) != NULL);
    fclose(file);
    CHECK(!runs((pid_t)strtol(line, NULL, 10)));
    cpu_rig_finish(&rig);
    tree_erase(&tree);
}

/* What goes on behind it holds its end of the pipe, and nothing else. */
static void a_compiler_that_leaves_a_process_behind_has_ended(void) {
    struct tree tree = tree_create(NULL);
    char line[32] = "", script[256];
    snprintf(script, sizeof(script), "#!/bin/sh\nsleep 1000 &\necho $! > %s\necho no >&2\nexit 1",
             tree_path(&tree, "sleeper"));
    put_compiler(&tree, script);
    struct cpu_rig rig;
    struct cpu_rig_program program;
    cpu_rig_init(&rig);
    CHECK_EQ(cpu_rig_build(&rig, "k", one, "", &program), ACRE_EINVALID);
    CHECK_STR(program.err.text, "no");
    FILE *file = fopen(tree_path(&tree, "sleeper"), "re");
    REQUIRE(file != NULL && fgets(line, sizeof(line), file) != NULL);
    fclose(file);
    kill((pid_t)strtol(line, NULL, 10), SIGKILL);
    cpu_rig_finish(&rig);
    tree_erase(&tree);
}

static void the_limit_of_a_compiler_is_a_number(void) {
    struct cpu_rig rig;
    struct cpu_rig_program program;
    cpu_rig_init(&rig);
    setenv("ACRE_COMPILE_LIMIT_S", "soon", 1);
    CHECK_EQ(cpu_rig_build(&rig, "k", one, "", &program), ACRE_EINVALID);
    CHECK_HAS(program.err.text, "ACRE_COMPILE_LIMIT_S: 'soon'");
    setenv("ACRE_COMPILE_LIMIT_S", "0", 1); /* none */
    CHECK_EQ(cpu_rig_build(&rig, "k", one, "", &program), 0);
    cpu_rig_finish(&rig);
}

/* --- the cache ------------------------------------------------------------------------------- */

static int build(struct acre_context *context, const char *text, struct acre_build_report *report,
                 struct acre_error *err) {
    const struct acre_source source = {.text = text};
    struct acre_program *program = NULL;
    int r = acre_program_build(context, &source, &program, report, err);
    acre_build_report_finish(&(struct acre_build_report){.log = report->log});
    report->log = NULL;
    return r;
}

/* As a program of its own would, with what is in PATH now. */
static int build_again(const char *cache, const char *text, struct acre_build_report *report,
                       struct acre_error *err) {
    struct acre_compute *compute = NULL;
    struct acre_context *context = NULL;
    const struct acre_compute_options options = {.backends = "cpu", .cache = cache};
    cpu_rig_require(acre_compute_open(&options, &compute, err), err);
    cpu_rig_require(acre_context_open(compute, 0, NULL, &context, err), err);
    int r = build(context, text, report, err);
    acre_compute_close(compute);
    return r;
}

/* A compiler like the system's, but another. */
static const char wrapper[] = "#!/bin/sh\nexec gcc \"$@\"";

static void a_cached_program_needs_no_compiler(void) {
    struct tree tree = tree_create(NULL);
    struct acre_build_report report;
    struct acre_error err = {0};
    char cache[128], with[256];
    snprintf(cache, sizeof(cache), "%s", tree_path(&tree, "cache"));
    snprintf(with, sizeof(with), "%s", getenv("PATH"));
    CHECK_EQ(build_again(cache, one, &report, &err), 0);
    CHECK(!report.was_cached);

    setenv("PATH", "/proc", 1);
    CHECK_EQ(build_again(cache, one, &report, &err), 0);
    CHECK(report.was_cached);
    CHECK_STR(err.text, "");
    /* Another source, or the same with other options, was never compiled. */
    CHECK_EQ(build_again(cache, "kernel void f(global int *a) { a[0] = 2; }\n", &report, &err),
             ACRE_EUNSUPPORTED);
    CHECK_HAS(err.text, "no compiler");

    /* A compiler that is there has its own. */
    err = (struct acre_error){0};
    setenv("PATH", with, 1);
    put_compiler(&tree, wrapper);
    CHECK_EQ(build_again(cache, one, &report, &err), 0);
    CHECK(!report.was_cached);
    CHECK_EQ(build_again(cache, one, &report, &err), 0);
    CHECK(report.was_cached);
    CHECK_EQ(count_files(cache), 2);

    /* The one before has its own still. */
    setenv("PATH", with, 1);
    CHECK_EQ(build_again(cache, one, &report, &err), 0);
    CHECK(report.was_cached);
    tree_erase(&tree);
}

static const struct acre_test tests[] = {
    {"a_compiler_that_hangs_is_ended", a_compiler_that_hangs_is_ended, 0},
    {"a_compiler_that_leaves_a_process_behind_has_ended",
     a_compiler_that_leaves_a_process_behind_has_ended, 0},
    {"the_limit_of_a_compiler_is_a_number", the_limit_of_a_compiler_is_a_number, 0},
    {"a_cached_program_needs_no_compiler", a_cached_program_needs_no_compiler, 0},
};

ACRE_TEST_MAIN(tests)
