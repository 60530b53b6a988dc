/* test_engine_mps.c - ENG-1: MPS control daemons are started, watched, restarted, adopted, stopped.
 *
 * By one user; what others may and may not is in test_engine_mps_users.c. */
#include "engine/mps.h"
#include "support/mps_rig.h"
#include "support/test.h"

#include "core/file.h"
#include "engine/ask.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define GPU MPS_GPU

static bool is_gone(struct mps_rig *rig) {
    return !mps_rig_lives(rig->pid);
}

static void read_log(const struct mps_rig *rig, char *text, size_t size) {
    char path[192];
    struct acre_buf buf;
    snprintf(path, sizeof(path), "%s/control.log", rig->paths.log);
    acre_buf_init(&buf, 4096);
    REQUIRE_EQ(acre_file_read(path, 4096, &buf, NULL), 0);
    snprintf(text, size, "%s", buf.data);
    acre_buf_finish(&buf);
}

static void the_first_share_starts_it_and_the_last_stops_it(void) {
    struct mps_rig rig;
    mps_rig_init(&rig, 1000, 5000);
    char pipe_path[108], text[512];
    mps_rig_take(&rig, 1, geteuid());
    CHECK_U64(rig.ready, 0); /* not before it answers */
    mps_rig_wait(&rig, mps_rig_is_ready, "ready");
    pid_t pid = mps_rig_daemon(&rig);
    CHECK(pid > 0);
    mps_pipe(rig.mps, GPU, pipe_path);
    CHECK_STR(pipe_path, rig.paths.pipe);
    read_log(&rig, text, sizeof(text));
    CHECK_STR(text,
              geteuid() == 0 ? "-d -multiuser-server device " GPU "\n" : "-d device " GPU "\n");
    mps_rig_take(&rig, 2, geteuid()); /* joins: no second daemon */
    mps_rig_wait(&rig, mps_rig_is_twice, "second holder");
    CHECK_EQ(mps_rig_daemon(&rig), pid);
    mps_give(rig.mps, GPU, 1);
    mps_give(rig.mps, GPU, 7); /* unknown: nothing */
    mps_give(rig.mps, "GPU-12345678", 1);
    uint32_t lost;
    CHECK_U64(mps_count(rig.mps, &lost), 1);
    mps_give(rig.mps, GPU, 2);
    rig.pid = pid;
    mps_rig_wait(&rig, mps_rig_is_down, "down");
    CHECK(is_gone(&rig));
    CHECK_U64(rig.lost, 0);
    mps_rig_finish(&rig);
}

static void taking_again_while_it_quits_starts_it_anew(void) {
    struct mps_rig rig;
    mps_rig_init(&rig, 1000, 5000);
    mps_rig_take(&rig, 1, geteuid());
    mps_rig_wait(&rig, mps_rig_is_ready, "ready");
    rig.pid = mps_rig_daemon(&rig);
    mps_give(rig.mps, GPU, 1);
    mps_rig_take(&rig, 2, geteuid());
    mps_rig_wait(&rig, mps_rig_is_twice, "ready again");
    CHECK(mps_rig_is_other(&rig)); /* another process */
    mps_rig_finish(&rig);
}

static void given_back_before_it_is_up_means_not_told_and_stopped(void) {
    struct mps_rig rig;
    mps_rig_init(&rig, 1000, 5000);
    mps_rig_take(&rig, 1, geteuid());
    mps_give(rig.mps, GPU, 1);
    mps_rig_wait(&rig, mps_rig_is_down, "down");
    CHECK_U64(rig.ready + rig.failed, 0);
    CHECK_EQ(mps_rig_daemon(&rig), 0);
    mps_rig_finish(&rig);
}

static void a_dead_daemon_is_told_and_started_again(void) {
    struct mps_rig rig;
    mps_rig_init(&rig, 50, 5000);
    mps_rig_take(&rig, 1, geteuid());
    mps_rig_wait(&rig, mps_rig_is_ready, "ready");
    rig.pid = mps_rig_daemon(&rig);
    kill(rig.pid, SIGKILL);
    mps_rig_wait(&rig, mps_rig_has_lost, "lost");
    CHECK_HAS(rig.text, "died");
    mps_rig_wait(&rig, mps_rig_is_other, "up again");
    uint32_t lost;
    CHECK_U64(mps_count(rig.mps, &lost), 1);
    CHECK_U64(lost, 1);
    CHECK_U64(rig.ready, 1); /* told once */
    mps_rig_finish(&rig);
}

static void a_silent_daemon_is_killed_and_started_again(void) {
    struct mps_rig rig;
    mps_rig_init(&rig, 20, 2000);
    mps_rig_take(&rig, 1, geteuid());
    mps_rig_wait(&rig, mps_rig_is_ready, "ready");
    rig.pid = mps_rig_daemon(&rig);
    mps_rig_script(&rig, "fault", "mute");
    mps_rig_wait(&rig, mps_rig_has_lost, "lost");
    CHECK_HAS(rig.text, "no longer answers");
    mps_rig_script(&rig, "fault", "");
    mps_rig_wait(&rig, mps_rig_is_other, "up again");
    CHECK(is_gone(&rig));
    mps_rig_finish(&rig);
}

static void a_stubborn_daemon_is_killed(void) {
    struct mps_rig rig;
    mps_rig_init(&rig, 1000, 2000);
    mps_rig_take(&rig, 1, geteuid());
    mps_rig_wait(&rig, mps_rig_is_ready, "ready");
    rig.pid = mps_rig_daemon(&rig);
    mps_rig_script(&rig, "fault", "stubborn");
    mps_give(rig.mps, GPU, 1);
    mps_rig_wait(&rig, mps_rig_is_down, "down");
    CHECK(is_gone(&rig));
    mps_rig_finish(&rig);
}

static void what_does_not_start_is_told_with_its_reason(void) {
    static const struct {
        const char *fault, *text;
    } rows[] = {
        {"refuse", "start: exit code 1: An instance of this daemon is already running"},
        {"absent", "its daemon is not running (logs in "},
        {"mortal", "MPS of " GPU},
        {"mute", "MPS of GPU-11111111-2222-3333-4444-555555555555: get_server_list: no answer "
                 "within the time limit"},
        {"babble", "get_server_list: exit code 0: Server not found"},
    };
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct mps_rig rig;
        mps_rig_init(&rig, 1000, 2000);
        mps_rig_script(&rig, "fault", rows[i].fault);
        mps_rig_take(&rig, 1, geteuid());
        mps_rig_wait(&rig, mps_rig_has_failed, rows[i].fault);
        acre_test_context("%s", rows[i].fault);
        CHECK_HAS(rig.text, rows[i].text);
        mps_rig_script(&rig, "fault", "");
        mps_rig_take(&rig, 2, geteuid()); /* mended: the next one gets it, once the last is gone */
        mps_rig_wait(&rig, mps_rig_is_ready, "mended");
        CHECK_U64(rig.failed, 1);
        mps_rig_finish(&rig);
    }
}

static void a_later_process_adopts_it(void) {
    struct mps_rig rig;
    mps_rig_init(&rig, 1000, 5000);
    mps_rig_take(&rig, 1, geteuid());
    mps_rig_wait(&rig, mps_rig_is_ready, "ready");
    pid_t pid = mps_rig_daemon(&rig);
    mps_destroy(rig.mps);
    CHECK_EQ(mps_rig_daemon(&rig), pid); /* runs on */
    mps_rig_open(&rig, 1000, 5000);
    mps_rig_take(&rig, 1, geteuid());
    mps_rig_wait(&rig, mps_rig_is_twice, "adopted");
    CHECK_EQ(mps_rig_daemon(&rig), pid);
    CHECK(!mps_reap(rig.mps, GPU)); /* held */
    mps_give(rig.mps, GPU, 1);
    mps_rig_wait(&rig, mps_rig_is_down, "down");
    CHECK_EQ(mps_rig_daemon(&rig), 0);
    mps_rig_finish(&rig);
}

static void a_daemon_that_nobody_holds_is_reaped(void) {
    struct mps_rig rig;
    mps_rig_init(&rig, 1000, 5000);
    mps_rig_take(&rig, 1, geteuid());
    mps_rig_wait(&rig, mps_rig_is_ready, "ready");
    rig.pid = mps_rig_daemon(&rig);
    mps_destroy(rig.mps);
    mps_rig_open(&rig, 1000, 5000);
    CHECK(mps_reap(rig.mps, GPU));
    mps_rig_wait(&rig, mps_rig_is_down, "down");
    CHECK(is_gone(&rig));
    CHECK(!mps_reap(rig.mps, GPU));
    mps_rig_finish(&rig);
}

/* A pid file that names a process of somebody else is stale: nothing is done to that process. */
static void a_stale_pid_file_harms_nobody(void) {
    struct mps_rig rig;
    mps_rig_init(&rig, 1000, 5000);
    pid_t other = fork();
    REQUIRE(other >= 0);
    if (other == 0) {
        pause();
        _exit(0);
    }
    char text[32];
    snprintf(text, sizeof(text), "%d\n", (int)other);
    tree_put(&rig.tree, "mps/" GPU "/nvidia-cuda-mps-control.pid", text);
    CHECK_EQ(mps_rig_daemon(&rig), 0);
    CHECK(!mps_reap(rig.mps, GPU));
    mps_rig_take(&rig, 1, geteuid());
    mps_rig_wait(&rig, mps_rig_is_ready, "ready");
    CHECK(mps_rig_daemon(&rig) != other);
    CHECK_EQ(waitpid(other, NULL, WNOHANG), 0); /* lives */
    kill(other, SIGKILL);
    waitpid(other, NULL, 0);
    mps_rig_finish(&rig);
}

static void servers_are_known_and_end_with_their_daemon(void) {
    struct mps_rig rig;
    mps_rig_init(&rig, 20, 5000);
    char text[64];
    pid_t server = mps_rig_spawn(&rig, geteuid(), false);
    snprintf(text, sizeof(text), "%d\n1\n", (int)server); /* 1 is not its process */
    mps_rig_script(&rig, "servers", text);
    mps_rig_take(&rig, 1, geteuid());
    mps_rig_wait(&rig, mps_rig_is_ready, "ready");
    int64_t pids[4] = {0};
    CHECK_U64(mps_servers(rig.mps, pids, 4), 1);
    CHECK_EQ(pids[0], server);
    CHECK_U64(mps_servers(rig.mps, NULL, 0), 1);
    rig.pid = mps_rig_daemon(&rig);
    kill(rig.pid, SIGKILL);
    mps_rig_wait(&rig, mps_rig_has_lost, "lost");
    int status = 0;
    CHECK_EQ(waitpid(server, &status, 0), server);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    mps_rig_finish(&rig);
}

static void bad_input_is_refused(void) {
    struct mps_rig rig;
    mps_rig_init(&rig, 1000, 5000);
    struct acre_error err = {0};
    static const char *const bad[] = {"",          "0", "GPU-../../etc", "GPU-1", "0000:3b:00.0",
                                      "GPU-\n1234"};
    for (size_t i = 0; i < ACRE_COUNT(bad); i++) {
        acre_test_context("%s", bad[i]);
        CHECK_EQ(mps_take(rig.mps, bad[i], 1, 0, NULL, NULL, &err), ACRE_EINVALID);
        CHECK_HAS(err.text, "' is not a UUID; accepted: one like GPU-1234abcd-...");
    }
    mps_destroy(rig.mps);
    char longest[120] = "/tmp/";
    memset(longest + 5, 'x', 60);
    struct mps_options options = {.directory = longest, .program = "/no/such/program"};
    CHECK_EQ(mps_create(&options, rig.loop, &rig.mps, &err), ACRE_ELIMIT);
    CHECK_HAS(err.text,
              "MPS directory '/tmp/xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx' "
              "is too long for sockets; accepted: at most 47 bytes");
    options.directory = "relative";
    CHECK_EQ(mps_create(&options, rig.loop, &rig.mps, &err), ACRE_EINVALID);
    options.directory = "/no/such/directory";
    CHECK_EQ(mps_create(&options, rig.loop, &rig.mps, &err), ACRE_ENOTFOUND);
    options.directory = rig.directory;
    REQUIRE_EQ(mps_create(&options, rig.loop, &rig.mps, &err), 0);
    CHECK_EQ(mps_take(rig.mps, GPU, 1, geteuid(), NULL, NULL, &err), ACRE_EUNAVAILABLE);
    CHECK_HAS(err.text,
              "MPS: cannot find the program /no/such/program in PATH or "
              "/usr/bin:/usr/local/bin:/usr/local/nvidia/bin (it comes with the NVIDIA driver)");
    uint32_t lost;
    CHECK_U64(mps_count(rig.mps, &lost), 0);
    mps_rig_finish(&rig);
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
        CHECK_EQ(mps_parse_servers(rows[i].text, strlen(rows[i].text), pids, &count), rows[i].ok);
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
        struct ask *ask;
        acre_test_context("%s", rows[i].shell);
        question.answers = 0;
        REQUIRE_EQ(ask_start(question.loop, argv, env, rows[i].input, rows[i].timeout_ms, on_answer,
                             &question, &ask, NULL),
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
    struct ask *ask = NULL;
    struct acre_error err = {0};
    REQUIRE_EQ(acre_loop_create(&question.loop, NULL), 0);
    const char *const env[] = {"PATH=/usr/bin:/bin", NULL};
    const char *const flood[] = {"/bin/sh", "-c", "head -c 1000000 /dev/zero", NULL};
    REQUIRE_EQ(ask_start(question.loop, flood, env, "", 10000, on_answer, &question, &ask, NULL),
               0);
    acre_loop_run(question.loop);
    CHECK_U64(question.answers, 1);
    CHECK_U64(question.length, ACRE_ASK_OUTPUT_MAX);
    const char *const sleeper[] = {"/bin/sleep", "60", NULL};
    REQUIRE_EQ(ask_start(question.loop, sleeper, env, "", 10000, on_answer, &question, &ask, NULL),
               0);
    ask_cancel(ask);
    ask_cancel(NULL);
    acre_loop_run(question.loop);
    CHECK_U64(question.answers, 1);
    CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD); /* no zombie left */
    const char *const nothing[] = {"/no/such/program", NULL};
    CHECK_EQ(ask_start(question.loop, nothing, env, "", 10, on_answer, &question, &ask, &err),
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
    {"bad_input_is_refused", bad_input_is_refused, 0},
    {"server_lists_are_parsed_strictly", server_lists_are_parsed_strictly, 0},
    {"a_program_is_asked_within_its_time", a_program_is_asked_within_its_time, 0},
    {"output_is_bounded_and_questions_can_be_dropped",
     output_is_bounded_and_questions_can_be_dropped, 0},
};
ACRE_TEST_MAIN(tests)
