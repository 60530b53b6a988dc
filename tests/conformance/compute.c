/* compute.c - the conformance suite of the compute runtime: one back end, one isolation, TAP.
 *
 *   compute --backend cpu [--isolation process] [--seed N] [NAME...]
 *   compute --backend cuda --soak 1000000 --threads 8 [--only ring]
 *
 * Cases are compared with plain C in the test itself, to the tolerances stated there, on random
 * data from a seed that is printed. A back end that is absent skips all, with its reason. NAMEs
 * select cases that begin so. The runner is the one built with it, or $ACRE_RUNNER. */
#include "conformance/compute_suite.h"

#include "core/clock.h"
#include "core/opt.h"

#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CASES_MAX = 512, THREADS_MAX = 64 };

struct arguments {
    const char *backend, *isolation, *runner, *scratch, *only;
    uint64_t device, seed, soak, threads;
    bool list;
};

#define AT(member) offsetof(struct arguments, member)
/* clang-format off */
static const struct acre_opt rows[] = {
    {"backend", 'b', ACRE_OPT_CHOICE, AT(backend), "NAME", "back end under test",
     .choices = "cpu,opencl,cuda,hip"},
    {"isolation", 'i', ACRE_OPT_CHOICE, AT(isolation), "HOW", "where contexts live",
     .choices = "auto,process,none"},
    {"device", 'd', ACRE_OPT_COUNT, AT(device), "N", "which of its devices", .max = 1023},
    {"seed", 's', ACRE_OPT_COUNT, AT(seed), "N", "of the random data; 0: from the clock",
     .max = UINT64_MAX},
    {"runner", 0, ACRE_OPT_STRING, AT(runner), "FILE", .help = "as $ACRE_RUNNER"},
    {"scratch", 0, ACRE_OPT_STRING, AT(scratch), "DIR", .help = "for files; default: $TMPDIR"},
    {"soak", 0, ACRE_OPT_COUNT, AT(soak), "N", "N mixed operations instead of the cases",
     .max = UINT64_MAX},
    {"threads", 't', ACRE_OPT_COUNT, AT(threads), "N", "that soak", .min = 1, .max = THREADS_MAX},
    {"only", 0, ACRE_OPT_STRING, AT(only), "NAME",
     .help = "operation of the soak; a race is on purpose"},
    {"list", 'l', ACRE_OPT_FLAG, AT(list), NULL, .help = "print the names"},
};
/* clang-format on */

static const struct acre_command command = {
    .name = "compute",
    .summary = "Check the compute runtime on one back end",
    .usage = "compute --backend NAME [options] [CASE...]",
    .options = rows,
    .option_count = ACRE_COUNT(rows),
    .max_arguments = UINT32_MAX,
};

static const struct suite *const suites[] = {
    &compute_devices_suite, &compute_copy_suite,      &compute_launch_suite, &compute_math_suite,
    &compute_atomic_suite,  &compute_source_suite,    &compute_stream_suite, &compute_graph_suite,
    &compute_ring_suite,    &compute_pool_suite,      &compute_batch_suite,  &compute_storage_suite,
    &compute_auto_suite,    &compute_cache_suite,     &compute_refuse_suite, &compute_fault_suite,
    &compute_loss_suite,    &compute_ring_time_suite,
};

/* The reason in a child's words: opening a driver here would spoil the cases, which fork. */
static bool is_absent(char *reason, size_t size) {
    int ends[2];
    if (pipe(ends) != 0) {
        return false;
    }
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        struct acre_compute_options options = kit_options();
        struct acre_compute *compute = NULL;
        struct acre_error err = {0};
        const char *why = NULL;
        if (acre_compute_open(&options, &compute, &err) == 0) {
            why = acre_compute_absent(compute, kit_choice.backend);
        }
        ssize_t written = why != NULL ? write(ends[1], why, strlen(why)) : 0;
        _exit(written < 0);
    }
    close(ends[1]);
    ssize_t length = read(ends[0], reason, size - 1);
    reason[length > 0 ? length : 0] = '\0';
    close(ends[0]);
    waitpid(child, NULL, 0);
    return length > 0;
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *where) {
    (void)status;
    (void)kind;
    (void)where;
    return remove(path);
}

static void make_scratch(const char *under) {
    const char *base = under != NULL ? under : getenv("TMPDIR");
    snprintf(kit_choice.scratch, sizeof(kit_choice.scratch), "%s/acre-compute-XXXXXX",
             base != NULL ? base : "/tmp");
    if (mkdtemp(kit_choice.scratch) == NULL) {
        printf("Bail out! no scratch directory %s\n", kit_choice.scratch);
        exit(1);
    }
}

/* The cases that begin with one of these names; all when there is none. */
static size_t choose(char **chosen, int chosen_count, struct acre_test *to) {
    size_t count = 0;
    for (size_t i = 0; i < ACRE_COUNT(suites); i++) {
        for (size_t j = 0; j < suites[i]->count; j++) {
            const struct acre_test *test = &suites[i]->tests[j];
            bool is_chosen = chosen_count == 0;
            for (int k = 0; k < chosen_count; k++) {
                is_chosen = is_chosen || strncmp(test->name, chosen[k], strlen(chosen[k])) == 0;
            }
            if (is_chosen && count < CASES_MAX) {
                to[count++] = *test;
            }
        }
    }
    return count;
}

static int run_cases(int chosen_count, char **chosen, char *program) {
    static struct acre_test tests[CASES_MAX];
    size_t count = choose(chosen, chosen_count, tests);
    char *argv[] = {program, NULL};
    return acre_test_main(tests, count, 1, argv);
}

static enum acre_context_isolation isolation_of(const char *text) {
    return strcmp(text, "process") == 0 ? ACRE_CONTEXT_ISOLATION_PROCESS
           : strcmp(text, "none") == 0  ? ACRE_CONTEXT_ISOLATION_NONE
                                        : ACRE_CONTEXT_ISOLATION_AUTO;
}

static void list_cases(void) {
    static struct acre_test tests[CASES_MAX];
    size_t count = choose(NULL, 0, tests);
    for (size_t i = 0; i < count; i++) {
        puts(tests[i].name);
    }
}

static int run(const struct arguments *arguments, int count, char **names, char *program) {
    struct acre_clock clock = acre_clock_real();
    kit_choice.backend = arguments->backend;
    kit_choice.isolation = isolation_of(arguments->isolation);
    kit_choice.device = (uint32_t)arguments->device;
    kit_choice.seed = arguments->seed != 0 ? arguments->seed : acre_clock_wall_ms(&clock);
    setenv("ACRE_RUNNER", arguments->runner != NULL ? arguments->runner : RUNNER,
           arguments->runner != NULL);
    make_scratch(arguments->scratch);
    char reason[512];
    int result = 0;
    if (is_absent(reason, sizeof(reason))) {
        printf("1..0 # SKIP %s: %s\n", kit_choice.backend, reason);
    } else if (arguments->soak > 0) {
        printf("# seed %" PRIu64 "\n", kit_choice.seed);
        struct compute_soak_options options = {arguments->soak, (uint32_t)arguments->threads,
                                               arguments->only};
        result = compute_soak(&options, program);
    } else {
        printf("# backend %s, isolation %s, seed %" PRIu64 "\n", kit_choice.backend,
               arguments->isolation, kit_choice.seed);
        result = run_cases(count, names, program);
    }
    nftw(kit_choice.scratch, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return result;
}

int main(int argc, char **argv) {
    struct arguments arguments = {.backend = "cpu", .isolation = "auto", .threads = 8};
    struct acre_error err = {0};
    int count = 0;
    int r = acre_opt_parse(&command, argc - 1, argv + 1, &arguments, &count, &err);
    if (r == ACRE_ENOTFOUND) {
        struct acre_buf help;
        acre_buf_init(&help, 1 << 16);
        acre_opt_help(&command, &help);
        fwrite(help.data, 1, help.length, stdout);
        acre_buf_finish(&help);
        return 0;
    }
    if (r < 0) {
        fprintf(stderr, "%s\n", err.text);
        return acre_error_exit(r);
    }
    if (arguments.list) {
        list_cases();
        return 0;
    }
    return run(&arguments, count, argv + 1, argv[0]);
}
