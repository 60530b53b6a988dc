/* test_engine_mps.c - ENG-1: MPS control daemons are started, watched, restarted, adopted, stopped.
 *
 * The control program is a double (support/mps_double.c); processes, sockets, pid files, access
 * lists and signals are real. */
#include "engine/mps.h"
#include "support/test.h"
#include "support/tree.h"

#include "core/file.h"
#include "engine/ask.h"
#include "engine/mps_place.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define GPU "GPU-11111111-2222-3333-4444-555555555555"

enum { GUARD_MS = 20000, LOOK_MS = 2 };

struct bench {
    struct tree tree;
    struct acre_loop *loop;
    struct acre_mps *mps;
    char directory[96];
    struct acre_mps_place place;
    uint32_t ready, failed, lost;
    char text[ACRE_ERROR_TEXT_MAX];
    bool (*condition)(struct bench *bench);
    uint64_t guard_ms;
    pid_t pid;
};

static void on_lost(void *context, const char *device, const char *text) {
    struct bench *bench = context;
    CHECK_STR(device, GPU);
    CHECK_HAS(text, "MPS daemon of " GPU);
    bench->lost++;
    snprintf(bench->text, sizeof(bench->text), "%s", text);
}

static void on_ready(void *context, int result, const struct acre_error *err) {
    struct bench *bench = context;
    if (result == 0) {
        bench->ready++;
    } else {
        bench->failed++;
        CHECK_EQ(err->code, result);
        snprintf(bench->text, sizeof(bench->text), "%s", err->text);
    }
}

static void open_mps(struct bench *bench, uint64_t check_ms, uint64_t answer_ms) {
    struct acre_mps_options options = {.directory = bench->directory,
                                       .program = MPS_DOUBLE,
                                       .sink = {on_lost, bench},
                                       .multiuser = true,
                                       .check_ms = check_ms,
                                       .answer_ms = answer_ms};
    struct acre_error err = {0};
    CHECK_EQ(acre_mps_create(&options, bench->loop, &bench->mps, &err), 0);
    REQUIRE(bench->mps != NULL);
}

static void setup(struct bench *bench, uint64_t check_ms, uint64_t answer_ms) {
    *bench = (struct bench){.tree = tree_create(NULL)};
    snprintf(bench->directory, sizeof(bench->directory), "%s/mps", bench->tree.root);
    REQUIRE_EQ(acre_loop_create(&bench->loop, NULL), 0);
    REQUIRE_EQ(acre_mps_place_init(&bench->place, bench->directory, GPU, NULL), 0);
    open_mps(bench, check_ms, answer_ms);
}

static void look(void *context) {
    struct bench *bench = context;
    bench->guard_ms += LOOK_MS;
    if (bench->condition(bench) || bench->guard_ms > GUARD_MS) {
        acre_loop_stop(bench->loop);
    }
}

static void run_until(struct bench *bench, bool (*condition)(struct bench *), const char *what) {
    struct acre_timer *timer = acre_loop_timer(bench->loop, 0, LOOK_MS, look, bench);
    bench->condition = condition;
    bench->guard_ms = 0;
    acre_loop_run(bench->loop);
    acre_timer_cancel(timer);
    acre_test_context("%s", what);
    REQUIRE(condition(bench));
    acre_test_context("%s", "");
}

static bool one_ready(struct bench *bench) {
    return bench->ready == 1;
}
static bool two_ready(struct bench *bench) {
    return bench->ready == 2;
}
static bool one_failed(struct bench *bench) {
    return bench->failed == 1;
}
static bool one_lost(struct bench *bench) {
    return bench->lost == 1;
}
static bool is_up(struct bench *bench) {
    return acre_mps_place_daemon(&bench->place) != 0 &&
           acre_mps_place_daemon(&bench->place) != bench->pid;
}
static bool is_down(struct bench *bench) {
    uint32_t lost;
    return acre_mps_count(bench->mps, &lost) == 0;
}
static bool is_gone(struct bench *bench) {
    return !acre_mps_place_owns(&bench->place, bench->pid);
}

static void script(const struct bench *bench, const char *name, const char *text) {
    char path[160];
    snprintf(path, sizeof(path), "mps/%s.log/%s", GPU, name);
    tree_put(&bench->tree, path, text);
}

static void take(struct bench *bench, uint64_t holder, uid_t user) {
    struct acre_error err = {0};
    CHECK_EQ(acre_mps_take(bench->mps, GPU, holder, user, on_ready, bench, &err), 0);
    CHECK_STR(err.text, "");
}

static void teardown(struct bench *bench) {
    pid_t pid = acre_mps_place_daemon(&bench->place);
    if (pid > 0) {
        kill(pid, SIGKILL);
    }
    acre_mps_destroy(bench->mps);
    acre_loop_destroy(bench->loop);
    tree_erase(&bench->tree);
}

static void read_log(const struct bench *bench, char *text, size_t size) {
    char path[192];
    struct acre_buf buf;
    snprintf(path, sizeof(path), "%s/control.log", bench->place.log);
    acre_buf_init(&buf, 4096);
    REQUIRE_EQ(acre_file_read(path, 4096, &buf, NULL), 0);
    snprintf(text, size, "%s", buf.data);
    acre_buf_finish(&buf);
}

static void the_first_share_starts_it_and_the_last_stops_it(void) {
    struct bench bench;
    setup(&bench, 1000, 5000);
    char pipe_path[108], log_path[120], text[512];
    take(&bench, 1, geteuid());
    CHECK_U64(bench.ready, 0); /* not before it answers */
    run_until(&bench, one_ready, "ready");
    pid_t pid = acre_mps_place_daemon(&bench.place);
    CHECK(pid > 0);
    acre_mps_paths(bench.mps, GPU, pipe_path, log_path);
    CHECK_STR(pipe_path, bench.place.pipe);
    CHECK_STR(log_path, bench.place.log);
    read_log(&bench, text, sizeof(text));
    CHECK_STR(text,
              geteuid() == 0 ? "-d -multiuser-server device " GPU "\n" : "-d device " GPU "\n");
    take(&bench, 2, geteuid()); /* joins: no second daemon */
    run_until(&bench, two_ready, "second holder");
    CHECK_EQ(acre_mps_place_daemon(&bench.place), pid);
    acre_mps_give(bench.mps, GPU, 1);
    acre_mps_give(bench.mps, GPU, 7); /* unknown: nothing */
    acre_mps_give(bench.mps, "GPU-12345678", 1);
    uint32_t lost;
    CHECK_U64(acre_mps_count(bench.mps, &lost), 1);
    acre_mps_give(bench.mps, GPU, 2);
    bench.pid = pid;
    run_until(&bench, is_down, "down");
    CHECK(is_gone(&bench));
    CHECK_U64(bench.lost, 0);
    teardown(&bench);
}

static void taking_again_while_it_quits_starts_it_anew(void) {
    struct bench bench;
    setup(&bench, 1000, 5000);
    take(&bench, 1, geteuid());
    run_until(&bench, one_ready, "ready");
    bench.pid = acre_mps_place_daemon(&bench.place);
    acre_mps_give(bench.mps, GPU, 1);
    take(&bench, 2, geteuid());
    run_until(&bench, two_ready, "ready again");
    CHECK(is_up(&bench)); /* another process */
    teardown(&bench);
}

static void given_back_before_it_is_up_means_not_told_and_stopped(void) {
    struct bench bench;
    setup(&bench, 1000, 5000);
    take(&bench, 1, geteuid());
    acre_mps_give(bench.mps, GPU, 1);
    run_until(&bench, is_down, "down");
    CHECK_U64(bench.ready + bench.failed, 0);
    CHECK_EQ(acre_mps_place_daemon(&bench.place), 0);
    teardown(&bench);
}

static void a_dead_daemon_is_told_and_started_again(void) {
    struct bench bench;
    setup(&bench, 50, 5000);
    take(&bench, 1, geteuid());
    run_until(&bench, one_ready, "ready");
    bench.pid = acre_mps_place_daemon(&bench.place);
    kill(bench.pid, SIGKILL);
    run_until(&bench, one_lost, "lost");
    CHECK_HAS(bench.text, "died");
    run_until(&bench, is_up, "up again");
    uint32_t lost;
    CHECK_U64(acre_mps_count(bench.mps, &lost), 1);
    CHECK_U64(lost, 1);
    CHECK_U64(bench.ready, 1); /* told once */
    teardown(&bench);
}

static void a_silent_daemon_is_killed_and_started_again(void) {
    struct bench bench;
    setup(&bench, 20, 500);
    take(&bench, 1, geteuid());
    run_until(&bench, one_ready, "ready");
    bench.pid = acre_mps_place_daemon(&bench.place);
    script(&bench, "fault", "mute");
    run_until(&bench, one_lost, "lost");
    CHECK_HAS(bench.text, "no longer answers");
    script(&bench, "fault", "");
    run_until(&bench, is_up, "up again");
    CHECK(is_gone(&bench));
    teardown(&bench);
}

static void a_stubborn_daemon_is_killed(void) {
    struct bench bench;
    setup(&bench, 1000, 300);
    take(&bench, 1, geteuid());
    run_until(&bench, one_ready, "ready");
    bench.pid = acre_mps_place_daemon(&bench.place);
    script(&bench, "fault", "stubborn");
    acre_mps_give(bench.mps, GPU, 1);
    run_until(&bench, is_down, "down");
    CHECK(is_gone(&bench));
    teardown(&bench);
}

static void what_does_not_start_is_told_with_its_reason(void) {
    static const struct {
        const char *fault, *text;
    } rows[] = {
        {"refuse", "start: exit code 1: An instance of this daemon is already running"},
        {"nameless", "its daemon is not there"},
        {"mortal", "MPS of " GPU},
        {"mute", "get_server_list: no answer in time"},
        {"babble", "get_server_list: exit code 0: Server not found"},
    };
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct bench bench;
        setup(&bench, 1000, 1000);
        script(&bench, "fault", rows[i].fault);
        take(&bench, 1, geteuid());
        run_until(&bench, one_failed, rows[i].fault);
        acre_test_context("%s", rows[i].fault);
        CHECK_HAS(bench.text, rows[i].text);
        script(&bench, "fault", "");
        take(&bench, 2, geteuid()); /* mended: the next one gets it, once the last is gone */
        run_until(&bench, one_ready, "mended");
        CHECK_U64(bench.failed, 1);
        teardown(&bench);
    }
}

static void a_later_process_adopts_it(void) {
    struct bench bench;
    setup(&bench, 1000, 5000);
    take(&bench, 1, geteuid());
    run_until(&bench, one_ready, "ready");
    pid_t pid = acre_mps_place_daemon(&bench.place);
    acre_mps_destroy(bench.mps);
    CHECK_EQ(acre_mps_place_daemon(&bench.place), pid); /* runs on */
    open_mps(&bench, 1000, 5000);
    take(&bench, 1, geteuid());
    run_until(&bench, two_ready, "adopted");
    CHECK_EQ(acre_mps_place_daemon(&bench.place), pid);
    CHECK(!acre_mps_reap(bench.mps, GPU)); /* held */
    acre_mps_give(bench.mps, GPU, 1);
    run_until(&bench, is_down, "down");
    CHECK_EQ(acre_mps_place_daemon(&bench.place), 0);
    teardown(&bench);
}

static void a_daemon_that_nobody_holds_is_reaped(void) {
    struct bench bench;
    setup(&bench, 1000, 5000);
    take(&bench, 1, geteuid());
    run_until(&bench, one_ready, "ready");
    bench.pid = acre_mps_place_daemon(&bench.place);
    acre_mps_destroy(bench.mps);
    open_mps(&bench, 1000, 5000);
    CHECK(acre_mps_reap(bench.mps, GPU));
    run_until(&bench, is_down, "down");
    CHECK(is_gone(&bench));
    CHECK(!acre_mps_reap(bench.mps, GPU));
    teardown(&bench);
}

/* A pid file that names a process of somebody else is stale: nothing is done to that process. */
static void a_stale_pid_file_harms_nobody(void) {
    struct bench bench;
    setup(&bench, 1000, 5000);
    pid_t other = fork();
    REQUIRE(other >= 0);
    if (other == 0) {
        pause();
        _exit(0);
    }
    char text[32];
    snprintf(text, sizeof(text), "%d\n", (int)other);
    tree_put(&bench.tree, "mps/" GPU "/nvidia-cuda-mps-control.pid", text);
    CHECK_EQ(acre_mps_place_daemon(&bench.place), 0);
    CHECK(!acre_mps_reap(bench.mps, GPU));
    take(&bench, 1, geteuid());
    run_until(&bench, one_ready, "ready");
    CHECK(acre_mps_place_daemon(&bench.place) != other);
    CHECK_EQ(waitpid(other, NULL, WNOHANG), 0); /* lives */
    kill(other, SIGKILL);
    waitpid(other, NULL, 0);
    teardown(&bench);
}

static void servers_are_known_and_end_with_their_daemon(void) {
    struct bench bench;
    setup(&bench, 20, 5000);
    char variable[160], text[64];
    snprintf(variable, sizeof(variable), "CUDA_MPS_PIPE_DIRECTORY=%s", bench.place.pipe);
    pid_t server = fork();
    REQUIRE(server >= 0);
    if (server == 0) {
        char *const env[] = {variable, NULL};
        execle("/bin/sleep", "sleep", "60", (char *)NULL, env);
        _exit(127);
    }
    snprintf(text, sizeof(text), "%d\n1\n", (int)server); /* 1 is not its process */
    script(&bench, "servers", text);
    take(&bench, 1, geteuid());
    run_until(&bench, one_ready, "ready");
    int64_t pids[4] = {0};
    CHECK_U64(acre_mps_servers(bench.mps, pids, 4), 2);
    CHECK_EQ(pids[0], server);
    CHECK_U64(acre_mps_servers(bench.mps, pids, 1), 2);
    bench.pid = acre_mps_place_daemon(&bench.place);
    kill(bench.pid, SIGKILL);
    run_until(&bench, one_lost, "lost");
    int status = 0;
    CHECK_EQ(waitpid(server, &status, 0), server);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    teardown(&bench);
}

/* Can a process of that user open the socket's directory? */
static bool can_enter(const struct bench *bench, uid_t user) {
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        char path[160];
        snprintf(path, sizeof(path), "%s/control", bench->place.pipe);
        if (setgid(65533) != 0 || setuid(user) != 0) {
            _exit(2);
        }
        _exit(access(path, R_OK | W_OK) == 0 ? 0 : 1);
    }
    int status;
    REQUIRE_EQ(waitpid(child, &status, 0), child);
    REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) != 2);
    return WEXITSTATUS(status) == 0;
}

static void only_the_holders_users_may_enter(void) {
    if (geteuid() != 0) {
        acre_test_skip("needs root");
    }
    struct bench bench;
    setup(&bench, 1000, 5000);
    REQUIRE(chmod(bench.tree.root, 0711) == 0);
    take(&bench, 1, 50001);
    run_until(&bench, one_ready, "ready");
    struct stat info;
    REQUIRE(stat(bench.place.pipe, &info) == 0);
    CHECK_EQ(info.st_uid, 0);
    if ((info.st_mode & 0007) != 0) {
        teardown(&bench);
        acre_test_skip("no access lists on this file system");
    }
    CHECK(can_enter(&bench, 50001));
    CHECK(!can_enter(&bench, 50002));
    take(&bench, 2, 50002);
    CHECK(can_enter(&bench, 50001));
    CHECK(can_enter(&bench, 50002));
    CHECK(!can_enter(&bench, 50003));
    acre_mps_give(bench.mps, GPU, 1);
    CHECK(!can_enter(&bench, 50001));
    CHECK(can_enter(&bench, 50002));
    teardown(&bench);
}

static void bad_input_is_refused(void) {
    struct bench bench;
    setup(&bench, 1000, 5000);
    struct acre_error err = {0};
    static const char *const bad[] = {"",          "0", "GPU-../../etc", "GPU-1", "0000:3b:00.0",
                                      "GPU-\n1234"};
    for (size_t i = 0; i < ACRE_COUNT(bad); i++) {
        acre_test_context("%s", bad[i]);
        CHECK_EQ(acre_mps_take(bench.mps, bad[i], 1, 0, NULL, NULL, &err), ACRE_EINVALID);
        CHECK_HAS(err.text, "accepted: a UUID");
    }
    acre_mps_destroy(bench.mps);
    char longest[120] = "/tmp/";
    memset(longest + 5, 'x', 60);
    struct acre_mps_options options = {.directory = longest, .program = "/no/such/program"};
    CHECK_EQ(acre_mps_create(&options, bench.loop, &bench.mps, &err), ACRE_ELIMIT);
    CHECK_HAS(err.text, "accepted: up to 47 bytes");
    options.directory = "relative";
    CHECK_EQ(acre_mps_create(&options, bench.loop, &bench.mps, &err), ACRE_EINVALID);
    options.directory = "/no/such/directory";
    CHECK_EQ(acre_mps_create(&options, bench.loop, &bench.mps, &err), ACRE_ENOTFOUND);
    options.directory = bench.directory;
    REQUIRE_EQ(acre_mps_create(&options, bench.loop, &bench.mps, &err), 0);
    CHECK_EQ(acre_mps_take(bench.mps, GPU, 1, geteuid(), on_ready, &bench, &err),
             ACRE_EUNAVAILABLE);
    CHECK_HAS(err.text, "no program /no/such/program");
    uint32_t lost;
    CHECK_U64(acre_mps_count(bench.mps, &lost), 0);
    teardown(&bench);
}

static void server_lists_are_parsed_strictly(void) {
    static const struct {
        const char *text;
        bool ok;
        uint32_t count;
    } rows[] = {{"", true, 0},         {"12\n", true, 1},   {"12\n 34\n\n", true, 2},
                {"nothing", false, 0}, {"12 34", false, 0}, {"99999999999\n", false, 0}};
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        int64_t pids[ACRE_MPS_SERVERS];
        uint32_t count = 0;
        acre_test_context("'%s'", rows[i].text);
        CHECK_EQ(acre_mps_parse_servers(rows[i].text, strlen(rows[i].text), pids, &count),
                 rows[i].ok);
        CHECK_U64(count, rows[i].count);
    }
}

/* --- ask.h --- */

struct question {
    struct acre_loop *loop;
    int result, exit_code;
    char output[128];
    size_t length;
    uint32_t answers;
};

static void on_answer(void *context, int result, int exit_code, struct acre_str output) {
    struct question *question = context;
    question->result = result;
    question->exit_code = exit_code;
    question->length = output.length;
    question->answers++;
    snprintf(question->output, sizeof(question->output), "%.*s", (int)output.length, output.data);
}

static void a_program_is_asked_within_its_time(void) {
    static const struct {
        const char *shell, *input;
        uint64_t timeout_ms;
        int result, exit_code;
        const char *output;
    } rows[] = {
        {"cat", "hello\n", 10000, 0, 0, "hello\n"},
        {"echo out; echo err >&2; exit 3", "", 10000, 0, 3, "out\nerr\n"},
        {"kill -9 $$", "", 10000, 0, 137, ""},
        {"echo begun; exec sleep 60", "", 200, ACRE_ETIMEOUT, 137, "begun\n"},
        {"sleep 60 & echo parent gone", "", 10000, 0, 0, "parent gone\n"},
        {"printenv ONLY; printenv HOME", "", 10000, 0, 1, "this\n"},
    };
    struct question question = {0};
    REQUIRE_EQ(acre_loop_create(&question.loop, NULL), 0);
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        const char *const argv[] = {"/bin/sh", "-c", rows[i].shell, NULL};
        const char *const env[] = {"PATH=/usr/bin:/bin", "ONLY=this", NULL};
        struct acre_ask *ask;
        acre_test_context("%s", rows[i].shell);
        question.answers = 0;
        REQUIRE_EQ(acre_ask_start(question.loop, argv, env, rows[i].input, rows[i].timeout_ms,
                                  on_answer, &question, &ask, NULL),
                   0);
        CHECK_U64(question.answers, 0);
        acre_loop_run(question.loop);
        CHECK_U64(question.answers, 1);
        CHECK_EQ(question.result, rows[i].result);
        CHECK_EQ(question.exit_code, rows[i].exit_code);
        CHECK_STR(question.output, rows[i].output);
    }
    acre_loop_destroy(question.loop);
}

static void output_is_bounded_and_questions_can_be_dropped(void) {
    struct question question = {0};
    struct acre_ask *ask = NULL;
    struct acre_error err = {0};
    REQUIRE_EQ(acre_loop_create(&question.loop, NULL), 0);
    const char *const env[] = {"PATH=/usr/bin:/bin", NULL};
    const char *const flood[] = {"/bin/sh", "-c", "head -c 1000000 /dev/zero", NULL};
    REQUIRE_EQ(
        acre_ask_start(question.loop, flood, env, "", 10000, on_answer, &question, &ask, NULL), 0);
    acre_loop_run(question.loop);
    CHECK_U64(question.answers, 1);
    CHECK_U64(question.length, ACRE_ASK_OUTPUT_MAX);
    const char *const sleeper[] = {"/bin/sleep", "60", NULL};
    REQUIRE_EQ(
        acre_ask_start(question.loop, sleeper, env, "", 10000, on_answer, &question, &ask, NULL),
        0);
    acre_ask_cancel(ask);
    acre_ask_cancel(NULL);
    acre_loop_run(question.loop);
    CHECK_U64(question.answers, 1);
    CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD); /* no zombie left */
    const char *const nothing[] = {"/no/such/program", NULL};
    CHECK_EQ(acre_ask_start(question.loop, nothing, env, "", 10, on_answer, &question, &ask, &err),
             ACRE_ENOTFOUND);
    CHECK_HAS(err.text, "/no/such/program");
    acre_loop_destroy(question.loop);
}

static const struct acre_test tests[] = {
    {"the_first_share_starts_it_and_the_last_stops_it",
     the_first_share_starts_it_and_the_last_stops_it, 0},
    {"taking_again_while_it_quits_starts_it_anew", taking_again_while_it_quits_starts_it_anew, 0},
    {"given_back_before_it_is_up_means_not_told_and_stopped",
     given_back_before_it_is_up_means_not_told_and_stopped, 0},
    {"a_dead_daemon_is_told_and_started_again", a_dead_daemon_is_told_and_started_again, 0},
    {"a_silent_daemon_is_killed_and_started_again", a_silent_daemon_is_killed_and_started_again, 0},
    {"a_stubborn_daemon_is_killed", a_stubborn_daemon_is_killed, 0},
    {"what_does_not_start_is_told_with_its_reason", what_does_not_start_is_told_with_its_reason, 0},
    {"a_later_process_adopts_it", a_later_process_adopts_it, 0},
    {"a_daemon_that_nobody_holds_is_reaped", a_daemon_that_nobody_holds_is_reaped, 0},
    {"a_stale_pid_file_harms_nobody", a_stale_pid_file_harms_nobody, 0},
    {"servers_are_known_and_end_with_their_daemon", servers_are_known_and_end_with_their_daemon, 0},
    {"only_the_holders_users_may_enter", only_the_holders_users_may_enter, 0},
    {"bad_input_is_refused", bad_input_is_refused, 0},
    {"server_lists_are_parsed_strictly", server_lists_are_parsed_strictly, 0},
    {"a_program_is_asked_within_its_time", a_program_is_asked_within_its_time, 0},
    {"output_is_bounded_and_questions_can_be_dropped",
     output_is_bounded_and_questions_can_be_dropped, 0},
};
ACRE_TEST_MAIN(tests)
