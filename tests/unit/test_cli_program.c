/* The program itself: exit codes, JSON, watching, and what it says without a GPU (Must show 2). */
#include "core/file.h"
#include "core/json.h"
#include "core/str.h"

#include "support/test.h"

#include <errno.h>
#include <pty.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

struct run {
    pid_t pid;
    int from;
    int exit;
    struct acre_buf out; /* standard output and error */
};

static void start_on(struct run *run, char *const *arguments, int reader, int writer) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, writer, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, writer, STDERR_FILENO);
    posix_spawn_file_actions_addclose(&actions, reader);
    acre_buf_init(&run->out, 16 << 20);
    run->from = reader;
    REQUIRE(posix_spawn(&run->pid, ACRE_PROGRAM, &actions, NULL, arguments, environ) == 0);
    posix_spawn_file_actions_destroy(&actions);
    close(writer);
}

static void start(struct run *run, char *const *arguments) {
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    start_on(run, arguments, ends[0], ends[1]);
}

/* Read until `lines` line ends were seen, or the end. */
static void read_lines(struct run *run, uint32_t lines) {
    char piece[65536];
    uint32_t seen = 0;
    ssize_t got;
    while (seen < lines && (got = read(run->from, piece, sizeof(piece))) > 0) {
        for (ssize_t i = 0; i < got; i++) {
            seen += piece[i] == '\n';
        }
        acre_buf_append(&run->out, piece, (size_t)got);
    }
}

static void end(struct run *run) {
    int status = 0;
    read_lines(run, UINT32_MAX);
    while (waitpid(run->pid, &status, 0) < 0 && errno == EINTR) {
    }
    close(run->from);
    run->exit = WIFEXITED(status) ? WEXITSTATUS(status) : 1000;
}

static struct run run_program(char *const *arguments) {
    struct run run = {0};
    start(&run, arguments);
    end(&run);
    return run;
}

#define RUN(...) run_program((char *const[]){(char *)(uintptr_t) "acre", __VA_ARGS__, NULL})
#define W(text)  ((char *)(uintptr_t)(text))

static void exit_codes_and_texts(void) {
    static const struct {
        const char *words[5];
        int exit;
        const char *text;
    } cases[] = {
        {{"version"}, 0, "acre " ACRE_VERSION},
        {{"--version"}, 0, "acre " ACRE_VERSION},
        {{"help"}, 0, "Jobs:"},
        {{"--help"}, 0, "doctor"},
        {{"help", "gpus"}, 0, "--sim FILE"},
        {{"gpus", "--help"}, 0, "--interval TIME"},
        {{"help", "nothing"}, 2, "nothing"},
        {{"gpu"}, 2, "did you mean 'gpus'"},
        {{"gpus", "--jsn"}, 2, "--json"},
        {{"gpus", "--interval", "5"}, 2, "interval"},
        {{"gpus", "--count", "0"}, 2, "count"},
        {{"gpus", "--sim", "/nonexistent"}, 4, "/nonexistent"},
        {{"gpus", "--sim", "/tmp"}, 2, "is a directory"},
        {{"gpus", "--sim", ACRE_TEST_DATA "/mi250x.tree"}, 2, "mi250x.tree:4: 'class/drm"},
        {{"gpus", "extra"}, 2, "extra"},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        char *arguments[7] = {W("acre")};
        for (size_t w = 0; w < 5 && cases[i].words[w] != NULL; w++) {
            arguments[w + 1] = W(cases[i].words[w]);
        }
        struct run run = run_program(arguments);
        acre_test_context("%s %s", cases[i].words[0], cases[i].words[1]);
        CHECK_EQ(run.exit, cases[i].exit);
        CHECK_HAS(run.out.data, cases[i].text);
        acre_buf_finish(&run.out);
    }
    struct run run = run_program((char *const[]){W("acre"), NULL});
    CHECK_EQ(run.exit, 2);
    CHECK_HAS(run.out.data, "Usage:");
    acre_buf_finish(&run.out);
}

static json_t *parse(const char *text) {
    json_error_t error;
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    acre_test_context("%s", error.text);
    REQUIRE(root != NULL);
    acre_test_context("%s", "");
    return root;
}

static void the_doctor_tells_the_truth(void) { /* DEV-5 */
    struct run run = RUN(W("doctor"));
    CHECK(run.exit == 0 || run.exit == 9);
    CHECK_HAS(run.out.data, "verdict: ");
    CHECK_HAS(run.out.data, "libnvidia-ml.so.1");
    CHECK(strchr(run.out.data, '\033') == NULL);
    acre_buf_finish(&run.out);
    run = RUN(W("doctor"), W("--json"));
    json_t *root = parse(run.out.data);
    CHECK(json_array_size(json_object_get(root, "findings")) >= 6);
    CHECK(json_string_value(json_object_get(root, "verdict")) != NULL);
    CHECK_EQ(run.exit, json_integer_value(json_object_get(root, "problems")) > 0 ? 9 : 0);
    json_decref(root);
    acre_buf_finish(&run.out);
}

static void this_machine_is_listed(void) {
    struct run run = RUN(W("gpus"), W("--json"));
    CHECK_EQ(run.exit, 0);
    json_t *root = parse(run.out.data);
    json_t *node = json_array_get(json_object_get(root, "nodes"), 0);
    json_t *devices = json_object_get(node, "devices");
    CHECK(json_array_size(devices) >= 1); /* the CPU at least */
    CHECK(json_is_false(json_object_get(root, "simulated")));
    CHECK(json_integer_value(json_object_get(node, "ram_total_mib")) > 0);
    size_t i;
    json_t *device;
    bool gpu = false;
    json_array_foreach(devices, i, device) {
        CHECK(json_is_false(json_object_get(device, "simulated")));
        gpu = gpu || strcmp(json_string_value(json_object_get(device, "kind")), "cpu") != 0;
    }
    json_decref(root);
    acre_buf_finish(&run.out);
    run = RUN(W("gpus"), W("--processes"));
    CHECK_EQ(run.exit, 0);
    CHECK_HAS(run.out.data, "DEVICE");
    if (!gpu) {
        CHECK_HAS(run.out.data, "No GPU found. 'acre doctor' shows");
    }
    acre_buf_finish(&run.out);
}

static void every_simulated_thing_says_so(void) { /* DEV-4, Must show 2 */
    struct run run = RUN(W("gpus"), W("--sim"), W(ACRE_EXAMPLE), W("--json"));
    CHECK_EQ(run.exit, 0);
    json_t *root = parse(run.out.data);
    CHECK(json_is_true(json_object_get(root, "simulated")));
    size_t n, d;
    json_t *node, *device;
    size_t count = 0;
    json_array_foreach(json_object_get(root, "nodes"), n, node) {
        CHECK(json_is_true(json_object_get(node, "simulated")));
        json_array_foreach(json_object_get(node, "devices"), d, device) {
            CHECK(json_is_true(json_object_get(device, "simulated")));
            count++;
        }
    }
    CHECK_U64(count, 12);
    json_decref(root);
    acre_buf_finish(&run.out);
    run = RUN(W("gpus"), W("--sim"), W(ACRE_EXAMPLE));
    CHECK_HAS(run.out.data, "simulated: 2 nodes, 12 devices");
    CHECK_HAS(run.out.data, "sim:gpu-b/3");
    CHECK(strchr(run.out.data, '\033') == NULL);
    acre_buf_finish(&run.out);
}

static void watching_writes_one_document_a_line(void) {
    struct run run = RUN(W("gpus"), W("--sim"), W(ACRE_EXAMPLE), W("--json"), W("--watch"),
                         W("--interval"), W("10ms"), W("--count"), W("3"));
    CHECK_EQ(run.exit, 0);
    struct acre_split lines =
        acre_split_begin((struct acre_str){run.out.data, run.out.length}, '\n');
    struct acre_str line;
    uint32_t count = 0;
    while (acre_split_next(&lines, &line)) {
        if (line.length > 0) {
            json_t *root = json_loadb(line.data, line.length, 0, NULL);
            CHECK(root != NULL);
            json_decref(root);
            count++;
        }
    }
    CHECK_U64(count, 3);
    acre_buf_finish(&run.out);
}

/* Until the program sleeps. ThreadSanitizer (clang 14) loses a signal that comes while a process
 * begins its first call that waits. */
static void wait_until_asleep(pid_t pid) {
    char path[64], text[1024];
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    const char *after = NULL;
    while ((after = strrchr(acre_file_peek(path, text, sizeof(text)), ')')) != NULL &&
           strncmp(after, ") S", 3) != 0) {
        acre_test_rest();
    }
    REQUIRE(after != NULL);
}

static void signals_end_the_watch(void) {
    static const int signals[] = {SIGINT, SIGTERM};
    for (size_t i = 0; i < ACRE_COUNT(signals); i++) {
        struct run run = {0};
        start(&run, (char *const[]){W("acre"), W("gpus"), W("--sim"), W(ACRE_EXAMPLE), W("--json"),
                                    W("--watch"), W("--interval"), W("1h"), NULL});
        read_lines(&run, 1); /* it is up and has drawn */
        wait_until_asleep(run.pid);
        REQUIRE(kill(run.pid, signals[i]) == 0);
        end(&run);
        CHECK_EQ(run.exit, 0);
        acre_buf_finish(&run.out);
    }
}

static void on_terminal(struct run *run, const char *no_colour) {
    int master, slave;
    struct winsize size = {.ws_row = 8, .ws_col = 80};
    if (openpty(&master, &slave, NULL, NULL, &size) != 0) {
        acre_test_skip("no pseudo-terminals here: %s", strerror(errno));
    }
    setenv("TERM", "xterm", 1);
    setenv("NO_COLOR", no_colour, 1);
    *run = (struct run){0};
    start_on(run,
             (char *const[]){W("acre"), W("gpus"), W("--sim"), W(ACRE_EXAMPLE), W("--watch"),
                             W("--interval"), W("10ms"), W("--count"), W("2"), NULL},
             master, slave);
    end(run);
    CHECK_EQ(run->exit, 0);
}

static void a_terminal_is_redrawn_in_place(void) {
    struct run run;
    on_terminal(&run, "");
    CHECK_HAS(run.out.data, "\033[H\033[2J");
    CHECK_HAS(run.out.data, "\033[33msimulated:");
    CHECK_HAS(run.out.data + 8, "\033[H\033[33msimulated:");
    uint32_t lines = 0;
    for (const char *p = run.out.data; *p != '\0'; p++) {
        lines += *p == '\n';
    }
    CHECK_U64(lines, 2 * 7); /* two pictures of at most height - 1 lines */
    acre_buf_finish(&run.out);
    on_terminal(&run, "1");
    CHECK(strstr(run.out.data, "\033[33m") == NULL);
    acre_buf_finish(&run.out);
}

static void a_reader_that_leaves_is_no_error(void) {
    struct run run = {0};
    start(&run, (char *const[]){W("acre"), W("gpus"), W("--sim"), W(ACRE_EXAMPLE), W("--json"),
                                W("--watch"), W("--interval"), W("10ms"), NULL});
    read_lines(&run, 1);
    close(run.from);
    int status = 0;
    REQUIRE(waitpid(run.pid, &status, 0) == run.pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    acre_buf_finish(&run.out);
}

#define TEST(name)                                                                                 \
    { #name, name, 60 }
static const struct acre_test tests[] = {
    TEST(exit_codes_and_texts),
    TEST(the_doctor_tells_the_truth),
    TEST(this_machine_is_listed),
    TEST(every_simulated_thing_says_so),
    TEST(watching_writes_one_document_a_line),
    TEST(signals_end_the_watch),
    TEST(a_terminal_is_redrawn_in_place),
    TEST(a_reader_that_leaves_is_no_error),
};

ACRE_TEST_MAIN(tests)
