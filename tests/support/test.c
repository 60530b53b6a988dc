/* test.c - runs each test in a child process and prints TAP.
 *
 * The child writes its failures to a pipe; the parent turns them into TAP comments. A skip
 * travels as the first line "SKIP reason". Exit codes: 0 passed, 1 failed, 77 skipped. */
#include "support/test.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXIT_PASSED = 0, EXIT_FAILED = 1, EXIT_SKIPPED = 77, EXIT_UNCHECKED = 78 };
enum { SHOWN_FAILURES_MAX = 20, CHECKS_MAX = 3 };
/* A test's seconds are for two quiet processors. What hangs is found as well with more of them, and
 * a machine that does other things, or a sanitizer, makes no test fail. */
enum { DEFAULT_S = 60, PATIENCE = 5 };

static _Atomic unsigned failures; /* of all threads */
static _Thread_local char context[256];
static char skip_reason[256];

static void show_failure(const char *file, int line) {
    if (atomic_fetch_add(&failures, 1) >= SHOWN_FAILURES_MAX) {
        return;
    }
    const char *base = strrchr(file, '/');
    fprintf(stderr, "%s:%d%s%s: ", base != NULL ? base + 1 : file, line,
            context[0] != '\0' ? " with " : "", context);
}

static void end_if(bool fatal) {
    if (fatal) {
        fflush(stderr);
        _exit(EXIT_FAILED);
    }
}

void acre_test_skip(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(skip_reason, sizeof(skip_reason), format, arguments);
    va_end(arguments);
    fprintf(stderr, "SKIP %s\n", skip_reason);
    fflush(stderr);
    _exit(failures > 0 ? EXIT_FAILED : EXIT_SKIPPED);
}

void acre_test_rest(void) {
    poll(NULL, 0, 1);
}

uint32_t acre_test_open_files(void) {
    uint32_t count = 0;
    DIR *directory = opendir("/proc/self/fd");
    REQUIRE(directory != NULL);
    while (readdir(directory) != NULL) {
        count++;
    }
    closedir(directory);
    return count;
}

void acre_test_context(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(context, sizeof(context), format, arguments);
    va_end(arguments);
}

void acre_check(bool ok, bool fatal, const char *text, const char *file, int line) {
    if (!ok) {
        show_failure(file, line);
        fprintf(stderr, "not true: %s\n", text);
        end_if(fatal);
    }
}

void acre_check_i64(int64_t a, int64_t b, bool fatal, const char *ta, const char *tb,
                    const char *file, int line) {
    if (a != b) {
        show_failure(file, line);
        fprintf(stderr, "%s is %" PRId64 ", expected %s = %" PRId64 "\n", ta, a, tb, b);
        end_if(fatal);
    }
}

void acre_check_u64(uint64_t a, uint64_t b, bool fatal, const char *ta, const char *tb,
                    const char *file, int line) {
    if (a != b) {
        show_failure(file, line);
        fprintf(stderr, "%s is %" PRIu64 ", expected %s = %" PRIu64 "\n", ta, a, tb, b);
        end_if(fatal);
    }
}

void acre_check_near(double a, double b, double tolerance, const char *ta, const char *tb,
                     const char *file, int line) {
    if (!(fabs(a - b) <= tolerance)) {
        show_failure(file, line);
        fprintf(stderr, "%s is %.12g, expected %s = %.12g within %g\n", ta, a, tb, b, tolerance);
    }
}

void acre_check_str(const char *a, const char *b, bool fatal, const char *ta, const char *tb,
                    const char *file, int line) {
    if (a == NULL || b == NULL ? a != b : strcmp(a, b) != 0) {
        show_failure(file, line);
        fprintf(stderr, "%s is \"%s\", expected %s = \"%s\"\n", ta, a != NULL ? a : "(null)", tb,
                b != NULL ? b : "(null)");
        end_if(fatal);
    }
}

void acre_check_has(const char *text, const char *part, const char *file, int line) {
    if (text == NULL || strstr(text, part) == NULL) {
        show_failure(file, line);
        fprintf(stderr, "\"%s\" does not contain \"%s\"\n", text != NULL ? text : "(null)", part);
    }
}

static int run_here(const struct acre_test *test) {
    failures = 0;
    context[0] = '\0';
    test->run();
    fflush(stdout);
    fflush(stderr);
    return failures > 0 ? EXIT_FAILED : EXIT_PASSED;
}

/* Print what the child said as TAP comments; keep the reason of a skip. True: the leak checker
 * itself broke down, as it does at times over a thread that is just ending. */
static bool relay_output(int fd) {
    FILE *from = fdopen(fd, "r");
    char line[4096];
    bool has_broken = false;
    skip_reason[0] = '\0';
    while (from != NULL && fgets(line, sizeof(line), from) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "SKIP ", 5) == 0) {
            snprintf(skip_reason, sizeof(skip_reason), "%s", line + 5);
        } else {
            printf("# %s\n", line);
            fflush(stdout); /* a run that takes long is looked at */
            has_broken |= strstr(line, "LeakSanitizer has encountered a fatal error") != NULL;
        }
    }
    if (from != NULL) {
        fclose(from);
    }
    return has_broken;
}

static int run_forked(const struct acre_test *test, char *why, size_t why_size) {
    int ends[2];
    if (pipe(ends) != 0) {
        snprintf(why, why_size, "pipe: %s", strerror(errno));
        return EXIT_FAILED;
    }
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        alarm(PATIENCE * (test->timeout_s != 0 ? test->timeout_s : DEFAULT_S));
        exit(run_here(test)); /* exit, not _exit: leak checkers and coverage run at exit */
    }
    close(ends[1]);
    bool is_unchecked = relay_output(ends[0]);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (is_unchecked) {
        return EXIT_UNCHECKED;
    }
    if (WIFSIGNALED(status)) {
        snprintf(why, why_size, "%s",
                 WTERMSIG(status) == SIGALRM ? "timed out" : strsignal(WTERMSIG(status)));
        return EXIT_FAILED;
    }
    return WEXITSTATUS(status);
}

/* Why this test is left out where it runs now (scripts/test --emulated); NULL: it is not. The
 * environment has a line "name reason" for each that is. */
static const char *left_out(const char *name) {
    const char *line = getenv("ACRE_TEST_LEAVE_OUT");
    size_t length = strlen(name);
    while (line != NULL && !(strncmp(line, name, length) == 0 && line[length] == ' ')) {
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
    return line != NULL ? line + length + 1 : NULL;
}

int acre_test_main(const struct acre_test *tests, size_t count, int argc, char **argv) {
    bool nofork = getenv("ACRE_TEST_NOFORK") != NULL;
    unsigned failed = 0;
    unsigned number = 0;
    if (argc < 2) {
        printf("1..%zu\n", count);
    }
    for (size_t i = 0; i < count; i++) {
        if (argc >= 2 && strcmp(argv[1], tests[i].name) != 0) {
            continue;
        }
        const char *reason = left_out(tests[i].name);
        if (reason != NULL) {
            printf("ok %u - %s # SKIP %.*s\n", ++number, tests[i].name, (int)strcspn(reason, "\n"),
                   reason);
            continue;
        }
        char why[128] = "";
        int result = EXIT_UNCHECKED;
        for (unsigned j = 0; j < CHECKS_MAX && result == EXIT_UNCHECKED; j++) {
            result = nofork ? run_here(&tests[i]) : run_forked(&tests[i], why, sizeof(why));
        }
        bool ok = result == EXIT_PASSED || result == EXIT_SKIPPED;
        if (why[0] != '\0') {
            printf("# %s\n", why);
        }
        printf("%s %u - %s%s%s\n", ok ? "ok" : "not ok", ++number, tests[i].name,
               result == EXIT_SKIPPED ? " # SKIP " : "", result == EXIT_SKIPPED ? skip_reason : "");
        fflush(stdout);
        failed += !ok;
    }
    if (argc >= 2) {
        printf("1..%u\n", number);
    }
    return failed > 0;
}
