/* test_engine_local.c - the local engine when things go wrong around it, and what it gives runs.
 * ENG-1; must-show: running jobs survive, their exit codes arrive, nothing is started twice. */
#include "engine/mps_process.h"
#include "engine/visible.h"
#include "support/engine_rig.h"
#include "support/test.h"
#include "support/tree.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TURNS_MAX = 20000 }; /* of 5 ms, for what never happens: a busy machine may be slow */

static void open_rig(struct rig *rig) {
    rig_init(rig, &acre_engine_local);
    rig_open(rig);
}

/* ---- the daemon dies ---- */

/* A "daemon": starts runs, waits until the first `begun` have begun, and is there to be killed. */
static pid_t fork_daemon(struct rig *rig, uint64_t jobs, const char *script, uint64_t begun) {
    int ends[2];
    REQUIRE_EQ(pipe(ends), 0);
    pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        close(ends[0]);
        rig_open(rig);
        for (uint64_t job = 1; job <= jobs; job++) {
            rig_run(rig, job, script);
        }
        for (uint64_t job = 1; job <= begun; job++) {
            rig_wait_start(rig, job);
        }
        if (write(ends[1], "r", 1) == 1) {
            pause();
        }
        _exit(0);
    }
    close(ends[1]);
    char ready;
    REQUIRE_EQ(read(ends[0], &ready, 1), 1);
    close(ends[0]);
    return pid;
}

static void kill_daemon(pid_t pid) {
    REQUIRE_EQ(kill(pid, SIGKILL), 0);
    REQUIRE_EQ(waitpid(pid, NULL, 0), pid);
}

/* The loop of the parent is not the child's: made after the fork. */
static void init_unopened(struct rig *rig) {
    rig_init(rig, &acre_engine_local);
    rig->keep = true;
}

static void runs_survive_kill_9_of_the_daemon(void) {
    struct rig rig;
    init_unopened(&rig);
    pid_t daemon = fork_daemon(&rig, 4, "sleep 0.5; exit $((ACRE_JOB_ID + 20))", 4);
    kill_daemon(daemon);
    rig_open(&rig);
    for (uint64_t job = 1; job <= 4; job++) {
        rig.driver->adopt(rig.engine, (struct acre_run){job, 1});
    }
    CHECK_EQ(rig.driver->reap(rig.engine), 0);
    for (uint64_t job = 1; job <= 4; job++) {
        rig_expect(&rig, job, ACRE_RUN_EXITED, (int)job + 20);
        CHECK_EQ(rig.seen[job].started, 1);
    }
    rig_finish(&rig);
}

/* Killed with starts still on their way: each run happens once or not at all, and which of the
 * two is known. */
static void a_start_that_was_on_its_way_is_known_or_never_was(void) {
    struct rig rig;
    init_unopened(&rig);
    pid_t daemon = fork_daemon(&rig, 40, "echo once; exit 6", 1);
    kill_daemon(daemon);
    rig_open(&rig);
    uint32_t ran = 0;
    for (uint64_t job = 1; job <= 40; job++) {
        rig.driver->adopt(rig.engine, (struct acre_run){job, 1});
    }
    for (uint64_t job = 1; job <= 40; job++) {
        const struct rig_seen *seen = rig_wait_exit(&rig, job);
        acre_test_context("job %" PRIu64 " ending %d", job, (int)seen->result.ending);
        bool lost = seen->result.ending == ACRE_RUN_LOST;
        CHECK(lost || (seen->result.ending == ACRE_RUN_EXITED && seen->result.code == 6));
        CHECK_STR(rig_output(&rig, job, 1), lost ? "" : "once\n");
        ran += !lost;
    }
    CHECK(ran > 0);
    rig_finish(&rig);
}

static void two_engines_on_one_state_are_refused(void) {
    struct rig rig;
    open_rig(&rig);
    struct acre_error err = {0};
    struct acre_engine_sink sink = {0};
    void *second = NULL;
    CHECK_EQ(acre_engine_local.open(&(struct acre_engine_options){.own = &rig.local}, rig.loop,
                                    &sink, &second, &err),
             ACRE_ECONFLICT);
    CHECK_HAS(err.text, "in use by process");
    rig_finish(&rig);
}

static void a_state_that_cannot_be_written_is_refused(void) {
    struct rig rig;
    rig_init(&rig, &acre_engine_local);
    static const char *const bad[] = {"/proc/acre-state", "/dev/null", "/nonexistent/a/b"};
    for (size_t i = 0; i < ACRE_COUNT(bad); i++) {
        struct acre_error err = {0};
        struct acre_engine_sink sink = {0};
        void *engine = NULL;
        rig.local.state_directory = bad[i];
        CHECK(acre_engine_local.open(&(struct acre_engine_options){.own = &rig.local}, rig.loop,
                                     &sink, &engine, &err) < 0);
        CHECK_HAS(err.text, bad[i]);
    }
    rig_finish(&rig);
}

/* Whoever started the daemon and reads its output sees the end, whatever runs on. */
static void nothing_of_the_daemons_is_kept_open(void) {
    struct rig rig;
    int ends[2];
    init_unopened(&rig);
    REQUIRE_EQ(pipe(ends), 0); /* not close-on-exec, on purpose */
    pid_t daemon = fork_daemon(&rig, 1, "sleep 1000", 1);
    close(ends[1]);
    kill_daemon(daemon);
    char byte;
    CHECK_EQ(read(ends[0], &byte, 1), 0);
    rig_open(&rig);
    CHECK_EQ(rig.driver->reap(rig.engine), 1);
    rig_turn(&rig, 100);
    rig_finish(&rig);
}

/* ---- helpers die ---- */

/* The process whose parent is `parent`; 0: none. */
static pid_t child_of(pid_t parent) {
    char path[64], text[256] = "";
    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)parent, (int)parent);
    FILE *file = fopen(path, "re");
    REQUIRE(file != NULL);
    size_t got = fread(text, 1, sizeof(text) - 1, file);
    text[got] = '\0';
    fclose(file);
    return (pid_t)strtol(text, NULL, 10);
}

static pid_t parent_of(int64_t pid) {
    char path[64], text[512] = "";
    snprintf(path, sizeof(path), "/proc/%" PRId64 "/stat", pid);
    FILE *file = fopen(path, "re");
    REQUIRE(file != NULL && fgets(text, sizeof(text), file) != NULL);
    fclose(file);
    return (pid_t)strtol(strrchr(text, ')') + 4, NULL, 10);
}

/* Dead and not yet waited for is not running. */
static bool is_running(int64_t pid) {
    char path[64], text[512] = "";
    snprintf(path, sizeof(path), "/proc/%" PRId64 "/stat", pid);
    FILE *file = fopen(path, "re");
    bool found = file != NULL && fgets(text, sizeof(text), file) != NULL;
    if (file != NULL) {
        fclose(file);
    }
    return found && strstr(text, ") Z ") == NULL;
}

static void a_spawner_that_dies_is_replaced(void) {
    struct rig rig;
    open_rig(&rig);
    rig_run(&rig, 1, "sleep 0.5; exit 8");
    rig_wait_start(&rig, 1);
    pid_t spawner = child_of(getpid());
    CHECK(spawner > 0 && spawner != parent_of(rig.seen[1].pid));
    CHECK_EQ(kill(spawner, SIGKILL), 0);
    rig_run(&rig, 2, "exit 9"); /* may be in the dead one's socket */
    rig_expect(&rig, 2, ACRE_RUN_EXITED, 9);
    rig_expect(&rig, 1, ACRE_RUN_EXITED, 8);
    CHECK(child_of(getpid()) != spawner);
    rig_finish(&rig);
}

/* Nobody supervises it any more: it is ended, and told as lost. */
static void a_run_whose_supervisor_is_killed_is_lost(void) {
    struct rig rig;
    open_rig(&rig);
    for (uint64_t job = 1; job <= 2; job++) { /* a spawner's child, and an adopted one */
        rig_run(&rig, job, "(setsid sleep 1000 &) ; exec sleep 1000");
        int64_t pid = rig_wait_start(&rig, job)->pid;
        if (job == 2) {
            rig_close(&rig);
            rig_open(&rig);
            rig.driver->adopt(rig.engine, (struct acre_run){2, 1});
            rig_turn(&rig, 50);
        }
        REQUIRE_EQ(kill(parent_of(pid), SIGKILL), 0);
        rig_wait_exit(&rig, job);
        CHECK_EQ((int)rig.seen[job].result.ending, ACRE_RUN_LOST);
        CHECK_HAS(rig.seen[job].result.text, "supervisor");
        for (int i = 0; i < TURNS_MAX && is_running(pid); i++) { /* without cgroups: it is dying */
            rig_turn(&rig, 5);
        }
        CHECK(!is_running(pid));
    }
    rig_finish(&rig);
}

static void keep_text(void *context, struct acre_run run, const struct acre_run_result *result) {
    struct rig *rig = context;
    rig->seen[run.job].result = *result;
}

static void a_program_that_is_no_supervisor_fails_the_runs(void) {
    struct rig rig;
    rig_init(&rig, &acre_engine_local);
    rig.local.program = "/bin/false";
    struct acre_error err = {0};
    struct acre_engine_sink sink = {.exited = keep_text, .context = &rig};
    /* Whether it ends before or after it was greeted is a matter of luck. */
    if (acre_engine_local.open(&(struct acre_engine_options){.own = &rig.local}, rig.loop, &sink,
                               &rig.engine, &err) == 0) {
        rig_run(&rig, 1, "exit 0");
        for (int i = 0; i < TURNS_MAX && rig.seen[1].result.text[0] == '\0'; i++) {
            rig_turn(&rig, 5);
        }
        CHECK_EQ((int)rig.seen[1].result.ending, ACRE_RUN_NOT_STARTED);
        snprintf(err.text, sizeof(err.text), "%s", rig.seen[1].result.text);
    }
    CHECK_HAS(err.text, " supervisors");
    rig_finish(&rig);
    void *engine = NULL;
    rig_init(&rig, &acre_engine_local);
    rig.local.program = "/nonexistent/shim";
    CHECK(acre_engine_local.open(&(struct acre_engine_options){.own = &rig.local}, rig.loop, &sink,
                                 &engine, &err) < 0);
    CHECK_HAS(err.text, "/nonexistent/shim");
    rig_finish(&rig);
}

/* ---- accounts ---- */

static void accounts_are_found_or_refused(void) {
    if (geteuid() != 0) {
        acre_test_skip("choosing accounts needs root");
    }
    static const struct {
        const char *user, *run_as;
        bool allow_root;
        uid_t min_uid;
        const char *text; /* of the refusal, or what `id -un` says */
        bool runs;
    } rows[] = {
        {"nobody", NULL, false, 0, "nobody\n", true},
        {"nosuchuser", NULL, false, 0, "no account named nosuchuser", false},
        {"nosuchuser", "nobody", false, 0, "nobody\n", true},
        {"root", NULL, false, 0,
         "account root is root; start the daemon with --allow-root to run jobs as root", false},
        {"nobody", "root", false, 0,
         "account root is root; start the daemon with --allow-root to run jobs as root", false},
        {"root", NULL, true, 1000, "root\n", true},
        {"daemon", NULL, true, 1000,
         "user daemon: uid 1 is below --min-uid 1000: system accounts may not run jobs", false},
        {"daemon", NULL, false, 1, "daemon\n", true},
        {"nobody", "daemon", false, 1000, "daemon\n", true}, /* named: then it is meant */
        {"nobody", NULL, false, 1000, "nobody\n", true},
        {"../../etc", NULL, false, 0, "no account named ../../etc", false},
        {"", NULL, false, 0, "no account named", false},
        {"a-name-that-is-much-longer-than-any-account-can-have-on-any-machine-anywhere", NULL,
         false, 0, "too long", false},
    };
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct rig rig;
        acre_test_context("user '%s' run_as '%s'", rows[i].user,
                          rows[i].run_as != NULL ? rows[i].run_as : "");
        rig_init(&rig, &acre_engine_local);
        rig.local.run_as = rows[i].run_as;
        rig.local.allow_root = rows[i].allow_root;
        rig.local.min_uid = rows[i].min_uid;
        rig_open(&rig);
        rig.user = rows[i].user;
        rig_run(&rig, 1, "id -un");
        rig_wait_exit(&rig, 1);
        if (rows[i].runs) {
            rig_expect(&rig, 1, ACRE_RUN_EXITED, 0);
            CHECK_STR(rig_output(&rig, 1, 1), rows[i].text);
        } else {
            rig_expect(&rig, 1, ACRE_RUN_NOT_STARTED, 0);
            CHECK_HAS(rig.seen[1].result.text, rows[i].text);
        }
        rig_finish(&rig);
    }
}

/* A daemon without root: its own jobs run, others' do not, and it says what it cannot do. */
static void without_root_only_ones_own_jobs_run(void) {
    struct rig rig;
    rig_init(&rig, &acre_engine_local);
    if (geteuid() == 0) {
        rig_become(&rig, 65534);
    }
    const char *own = rig.user;
    char expected[128];
    rig_open(&rig);
    rig_run(&rig, 1, "(setsid sleep 1000 &); id -un; grep NoNewPrivs /proc/self/status; exit 3");
    rig_expect(&rig, 1, ACRE_RUN_EXITED, 3);
    snprintf(expected, sizeof(expected), "%s\nNoNewPrivs:\t1\n", own);
    CHECK_STR(rig_output(&rig, 1, 1), expected);
    rig.user = "daemon";
    rig_run(&rig, 2, "id -un");
    rig_expect(&rig, 2, ACRE_RUN_NOT_STARTED, 0);
    CHECK_HAS(rig.seen[2].result.text,
              "account daemon: a daemon that is not root runs jobs only as its own user (uid ");
    rig.user = own;
    struct acre_run_spec spec = rig_spec(&rig, 3, "true");
    spec.no_network = true;
    rig_start(&rig, &spec);
    rig_expect(&rig, 3, ACRE_RUN_NOT_STARTED, 0);
    CHECK_HAS(rig.seen[3].result.text,
              "network: only a daemon that runs as root can cut a job off the network");
    struct acre_buf text;
    acre_buf_init(&text, 4096);
    rig.driver->describe(rig.engine, &text);
    CHECK_HAS(text.data, "RAM: NOT limited");
    CHECK_HAS(text.data, "devices: NOT filtered");
    CHECK_HAS(text.data, "only jobs of this user");
    acre_buf_finish(&text);
    rig_finish(&rig);
}

/* ---- what runs get ---- */

static void commands_and_directories_are_checked_as_the_user(void) {
    static const struct {
        const char *command, *directory, *text;
    } rows[] = {
        {"nosuchcommand", "/", "nosuchcommand: not found in PATH"},
        {"/etc/passwd", "/", "/etc/passwd: "},
        {"/nonexistent", "/", "/nonexistent: No such file"},
        {"true", "/nonexistent/dir", "working directory /nonexistent/dir"},
        {"a\nb", "/", "a\\nb: not found"},
        {"true", "/tmp/nowhere", "working directory /tmp/nowhere: "},
    };
    struct rig rig;
    open_rig(&rig);
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct acre_run_spec spec = rig_spec(&rig, i + 1, "");
        const char *argv[] = {rows[i].command, NULL};
        spec.argv = argv;
        spec.directory = rows[i].directory;
        rig_start(&rig, &spec);
        rig_expect(&rig, i + 1, ACRE_RUN_NOT_STARTED, 0);
        CHECK_HAS(rig.seen[i + 1].result.text, rows[i].text);
    }
    rig_finish(&rig);
}

static void input_text_reaches_every_member(void) {
    struct rig rig;
    open_rig(&rig);
    struct acre_run_spec spec = rig_spec(&rig, 1, "");
    const char *argv[] = {"sh", NULL};
    spec.argv = argv;
    spec.members = 2;
    spec.stdin_text = "echo rank $ACRE_RANK of $ACRE_MEMBERS\nexit 0\n";
    rig_start(&rig, &spec);
    rig_expect(&rig, 1, ACRE_RUN_EXITED, 0);
    CHECK_HAS(rig_output(&rig, 1, 1), "rank 0 of 2\n");
    CHECK_HAS(rig_output(&rig, 1, 1), "rank 1 of 2\n");
    spec = rig_spec(&rig, 2, "cat; echo end");
    rig_start(&rig, &spec);
    rig_expect(&rig, 2, ACRE_RUN_EXITED, 0);
    CHECK_STR(rig_output(&rig, 2, 1), "end\n");
    rig_finish(&rig);
}

static void the_first_member_that_fails_ends_the_gang(void) {
    struct rig rig;
    open_rig(&rig);
    struct acre_run_spec spec =
        rig_spec(&rig, 1, "test $ACRE_RANK = 1 && exit 7; echo $ACRE_RANK; exec sleep 1000");
    spec.members = 3;
    rig_start(&rig, &spec);
    rig_expect(&rig, 1, ACRE_RUN_EXITED, 7);
    spec = rig_spec(&rig, 2, "exit 0");
    spec.members = 4;
    rig_start(&rig, &spec);
    rig_expect(&rig, 2, ACRE_RUN_EXITED, 0);
    rig_finish(&rig);
}

static void a_start_of_any_size_arrives(void) {
    struct rig rig;
    open_rig(&rig);
    char *big = acre_calloc(120001, 1);
    memset(big, 'x', 120000);
    memcpy(big, "BIG=", 4);
    struct acre_run_spec spec = rig_spec(&rig, 1, "echo ${#BIG}");
    const char *env[] = {big, NULL};
    spec.env = env;
    rig_start(&rig, &spec);
    rig_expect(&rig, 1, ACRE_RUN_EXITED, 0);
    CHECK_STR(rig_output(&rig, 1, 1), "119996\n");
    free(big);
    rig_finish(&rig);
}

static void a_warning_reaches_who_expects_it_and_kills_nobody(void) {
    struct rig rig;
    open_rig(&rig);
    struct acre_run_spec spec =
        rig_spec(&rig, 1, "trap 'echo warned' USR1; echo ready; while :; do sleep 0.02; done");
    spec.limit_ms = 2700;
    spec.warn_ms = 1500;
    rig_start(&rig, &spec);
    spec = rig_spec(&rig, 2, "exec sleep 1000");
    spec.limit_ms = 2700;
    spec.warn_ms = 1500;
    rig_start(&rig, &spec);
    spec = rig_spec(&rig, 3,
                    "trap 'echo saved; exit 0' USR2; echo ready; while :; do sleep 0.02; "
                    "done");
    spec.warn_signal = SIGUSR2;
    rig_start(&rig, &spec);
    rig_wait_output(&rig, 3, "ready");
    rig_signal(&rig, 3, ACRE_RUN_CHECKPOINT);
    rig_expect(&rig, 3, ACRE_RUN_EXITED, 0);
    CHECK_HAS(rig_output(&rig, 3, 1), "saved");
    rig_expect(&rig, 1, ACRE_RUN_TIME_LIMIT, SIGTERM);
    CHECK_STR(rig_output(&rig, 1, 1), "ready\nwarned\n");
    rig_expect(&rig, 2, ACRE_RUN_TIME_LIMIT, SIGTERM);
    uint64_t took_ms = rig.seen[2].result.ended_ms - rig.seen[2].result.started_ms;
    CHECK(took_ms >= 2699);
    rig_finish(&rig);
}

static void logs_are_bounded_and_counted(void) {
    struct rig rig;
    rig_init(&rig, &acre_engine_local);
    rig.local.log_max_bytes = 100000;
    rig_open(&rig);
    rig_run(&rig, 1,
            "i=0; while [ $i -lt 100 ]; do head -c 10000 /dev/zero; i=$((i+1)); done; "
            "echo problem >&2; echo last");
    rig_expect(&rig, 1, ACRE_RUN_EXITED, 0);
    CHECK_U64(rig.seen[1].result.log_bytes, 1000000 + 8 + 5);
    char path[128];
    struct stat newest, older;
    snprintf(path, sizeof(path), "%s/logs/1.1.out", rig.state);
    REQUIRE_EQ(stat(path, &newest), 0);
    CHECK_EQ(newest.st_mode & 0777, 0600);
    snprintf(path, sizeof(path), "%s/logs/1.1.out.1", rig.state);
    REQUIRE_EQ(stat(path, &older), 0);
    CHECK(newest.st_size <= 100000 + 65536 && older.st_size <= 100000 + 65536);
    char gone[96];
    snprintf(gone, sizeof(gone), "too much output: the first %lld bytes were not kept",
             1000000LL + 5 - newest.st_size - older.st_size);
    CHECK_STR(rig.seen[1].result.text, gone);
    CHECK_STR(rig_output(&rig, 1, 2), "problem\n");
    rig_run(&rig, 2, "true");
    rig_expect(&rig, 2, ACRE_RUN_EXITED, 0);
    char none[64] = "x";
    CHECK_EQ(rig.driver->log_path(rig.engine, (struct acre_run){2, 1}, 1, none, sizeof(none), NULL),
             0);
    CHECK_STR(none, ""); /* silent jobs leave nothing */
    rig_finish(&rig);
}

/* ---- shares of a GPU ---- */

#define GPU "GPU-11111111-2222-3333-4444-555555555555"

/* The control program is a double (support/mps_double.c), the device nodes are links to /dev/null
 * and /dev/zero; the rest is real. */
static void open_mps_rig(struct rig *rig, struct tree *tree, struct visible_roots *roots) {
    static const char *const nodes[] = {"dev/nvidia0", "dev/nvidiactl", "dev/nvidia-uvm"};
    *tree = tree_create(NULL);
    tree_put(tree, "proc/driver/nvidia/gpus/0000:5d:00.0/information", "Device Minor: \t 0\n");
    tree_make_directory(tree, "dev");
    for (size_t i = 0; i < ACRE_COUNT(nodes); i++) {
        REQUIRE_EQ(symlink(i == 0 ? "/dev/null" : "/dev/zero", tree_path(tree, nodes[i])), 0);
    }
    static char paths[4][128];
    snprintf(paths[0], sizeof(paths[0]), "%s/proc", tree->root);
    snprintf(paths[1], sizeof(paths[1]), "%s/sys", tree->root);
    snprintf(paths[2], sizeof(paths[2]), "%s/dev", tree->root);
    snprintf(paths[3], sizeof(paths[3]), "%s/mps", tree->root);
    *roots = (struct visible_roots){paths[0], paths[1], paths[2]};
    rig_init(rig, &acre_engine_local);
    rig->local.mps_directory = paths[3];
    rig->local.mps_program = MPS_DOUBLE;
    rig->local.roots = roots;
    rig_open(rig);
}

static void start_share(struct rig *rig, uint64_t job, const char *script) {
    static const struct acre_run_device device = {.id = GPU,
                                                  .vendor = "nvidia",
                                                  .pci = "0000:5d:00.0",
                                                  .milli = 500,
                                                  .mib = 1000,
                                                  .isolation = "mps"};
    struct acre_run_spec spec = rig_spec(rig, job, script);
    spec.devices = &device;
    spec.device_count = 1;
    rig_start(rig, &spec);
}

static bool has_mps_daemon(const struct tree *tree) {
    struct mps_paths place;
    char directory[128];
    snprintf(directory, sizeof(directory), "%s/mps", tree->root);
    REQUIRE_EQ(mps_paths_init(&place, directory, GPU, NULL), 0);
    return mps_process_find(&place, MPS_DOUBLE) != 0;
}

static void wait_without_mps_daemon(struct rig *rig, const struct tree *tree) {
    for (int i = 0; i < TURNS_MAX && has_mps_daemon(tree); i++) {
        rig_turn(rig, 5);
    }
    CHECK(!has_mps_daemon(tree));
}

static void a_share_holds_its_mps_daemon_also_over_a_restart(void) {
    struct rig rig;
    struct tree tree;
    struct visible_roots roots;
    open_mps_rig(&rig, &tree, &roots);
    start_share(&rig, 1, "env | grep -E 'CUDA|MPS'; echo ready; exec sleep 1000");
    rig_wait_output(&rig, 1, "ready");
    CHECK_HAS(rig_output(&rig, 1, 1), "CUDA_MPS_PIPE_DIRECTORY=");
    CHECK_HAS(rig_output(&rig, 1, 1), "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=50");
    CHECK(has_mps_daemon(&tree));
    rig_close(&rig);
    rig_open(&rig);
    rig.driver->adopt(rig.engine, (struct acre_run){1, 1});
    CHECK_EQ(rig.driver->reap(rig.engine), 0);
    rig_turn(&rig, 100);
    CHECK(has_mps_daemon(&tree)); /* it is in use still */
    rig_signal(&rig, 1, ACRE_RUN_KILL);
    rig_expect(&rig, 1, ACRE_RUN_SIGNALED, SIGKILL);
    wait_without_mps_daemon(&rig, &tree);
    rig_finish(&rig);
    tree_erase(&tree);
}

/* The last share ended while no daemon of ours was there to see it. */
static void an_mps_daemon_without_shares_does_not_outlive_a_restart(void) {
    struct rig rig;
    struct tree tree;
    struct visible_roots roots;
    open_mps_rig(&rig, &tree, &roots);
    char list[128];
    snprintf(list, sizeof(list), "%s/runs/1.1.mps", rig.state);
    start_share(&rig, 1, "exec sleep 1000");
    int64_t pid = rig_wait_start(&rig, 1)->pid;
    struct pollfd supervisor = {.fd = (int)syscall(SYS_pidfd_open, parent_of(pid), 0),
                                .events = POLLIN};
    REQUIRE(supervisor.fd >= 0);
    rig_close(&rig);
    CHECK_EQ(kill((pid_t)pid, SIGKILL), 0);
    CHECK_EQ(poll(&supervisor, 1, 20000), 1);
    close(supervisor.fd);
    CHECK(has_mps_daemon(&tree));
    CHECK_EQ(access(list, F_OK), 0);
    rig_open(&rig);
    rig.driver->adopt(rig.engine, (struct acre_run){1, 1});
    CHECK_EQ(rig.driver->reap(rig.engine), 0);
    rig_expect(&rig, 1, ACRE_RUN_SIGNALED, SIGKILL);
    wait_without_mps_daemon(&rig, &tree);
    CHECK(access(list, F_OK) != 0);
    rig_finish(&rig);
    tree_erase(&tree);
}

static void a_share_without_mps_is_not_started(void) {
    struct rig rig;
    struct tree tree;
    struct visible_roots roots;
    open_mps_rig(&rig, &tree, &roots);
    rig_close(&rig);
    rig.local.mps_program = "/nonexistent/mps";
    rig_open(&rig);
    start_share(&rig, 1, "exit 0");
    rig_expect(&rig, 1, ACRE_RUN_NOT_STARTED, 0);
    CHECK_HAS(rig.seen[1].result.text, "/nonexistent/mps");
    rig_finish(&rig);
    tree_erase(&tree);
}

/* One AMD GPU of 304 units, as ROCm's tree shows it; its nodes are links to /dev/null. */
static void open_cu_rig(struct rig *rig, struct tree *tree, struct visible_roots *roots) {
    static char paths[3][128];
    *tree = tree_create(NULL);
    tree_put(tree, "sys/class/kfd/kfd/topology/nodes/0/gpu_id", "11\n");
    tree_put(tree, "sys/class/kfd/kfd/topology/nodes/0/properties",
             "location_id 1280\ndomain 0\ndrm_render_minor 128\n");
    tree_make_directory(tree, "dev/dri");
    REQUIRE_EQ(symlink("/dev/null", tree_path(tree, "dev/kfd")), 0);
    REQUIRE_EQ(symlink("/dev/null", tree_path(tree, "dev/dri/renderD128")), 0);
    snprintf(paths[0], sizeof(paths[0]), "%s/proc", tree->root);
    snprintf(paths[1], sizeof(paths[1]), "%s/sys", tree->root);
    snprintf(paths[2], sizeof(paths[2]), "%s/dev", tree->root);
    *roots = (struct visible_roots){paths[0], paths[1], paths[2]};
    rig_init(rig, &acre_engine_local);
    rig->local.roots = roots;
    rig_open(rig);
}

static void start_amd(struct rig *rig, uint64_t job, uint32_t milli, const char *isolation) {
    struct acre_run_device device = {.id = "GPU-1122334455667701",
                                     .vendor = "amd",
                                     .pci = "0000:05:00.0",
                                     .milli = milli,
                                     .isolation = isolation,
                                     .units = 304};
    struct acre_run_spec spec =
        rig_spec(rig, job, "echo mask=$HSA_CU_MASK; echo ready; exec sleep 1000");
    spec.devices = &device;
    spec.device_count = 1;
    rig_start(rig, &spec);
}

static void expect_mask(struct rig *rig, uint64_t job, const char *mask) {
    char line[64];
    snprintf(line, sizeof(line), "mask=%s\n", mask);
    rig_wait_output(rig, job, "ready");
    CHECK_HAS(rig_output(rig, job, 1), line);
}

static void kill_run(struct rig *rig, uint64_t job) {
    rig_signal(rig, job, ACRE_RUN_KILL);
    rig_expect(rig, job, ACRE_RUN_SIGNALED, SIGKILL);
}

static void shares_of_an_amd_gpu_never_meet_also_over_a_restart(void) {
    struct rig rig;
    struct tree tree;
    struct visible_roots roots;
    char list[128];
    open_cu_rig(&rig, &tree, &roots);
    snprintf(list, sizeof(list), "%s/runs/1.1.cu", rig.state);
    start_amd(&rig, 1, 500, "mps");
    start_amd(&rig, 2, 250, "mps");
    expect_mask(&rig, 1, "0:0-151");
    expect_mask(&rig, 2, "0:152-227");
    CHECK_EQ(access(list, F_OK), 0);
    rig_close(&rig);
    rig_open(&rig);
    rig.driver->adopt(rig.engine, (struct acre_run){1, 1});
    rig.driver->adopt(rig.engine, (struct acre_run){2, 1});
    CHECK_EQ(rig.driver->reap(rig.engine), 0);
    start_amd(&rig, 3, 500, "mps"); /* more than is left */
    rig_expect(&rig, 3, ACRE_RUN_NOT_STARTED, 0);
    CHECK_HAS(rig.seen[3].result.text,
              "GPU-1122334455667701: 152 compute units asked for, but only 76 of 304 are free");
    kill_run(&rig, 1);
    CHECK(access(list, F_OK) != 0);
    start_amd(&rig, 4, 600, "mps");
    expect_mask(&rig, 4, "0:0-151,228-257");
    start_amd(&rig, 5, 500, "time-slicing"); /* takes turns on the whole */
    expect_mask(&rig, 5, "");
    for (uint64_t job = 2; job <= 5; job++) {
        if (job != 3) {
            kill_run(&rig, job);
        }
    }
    rig_finish(&rig);
    tree_erase(&tree);
}

/* What is forgotten leaves nothing but its logs. */
static void a_forgotten_run_leaves_only_logs(void) {
    struct rig rig;
    open_rig(&rig);
    rig_run(&rig, 1, "echo x");
    rig_expect(&rig, 1, ACRE_RUN_EXITED, 0);
    char path[128];
    snprintf(path, sizeof(path), "%s/runs/1.1", rig.state);
    CHECK(access(path, F_OK) != 0);
    snprintf(path, sizeof(path), "%s/logs/1.1.out", rig.state);
    CHECK_EQ(access(path, F_OK), 0);
    rig_finish(&rig);
}

/* Two of them are over the limit: the older one goes, although nobody told how much they wrote. */
static void logs_of_lost_runs_count(void) {
    struct rig rig;
    open_rig(&rig);
    rig.driver->limit(rig.engine, &(struct acre_engine_limits){.logs_mib = 1});
    for (uint64_t i = 1; i <= 2; i++) {
        rig_run(&rig, i, "echo $PPID; head -c 700000 /dev/zero; echo >&2; sleep 1000");
        for (int turn = 0; turn < TURNS_MAX && rig_output(&rig, i, 2)[0] == '\0'; turn++) {
            rig_turn(&rig, 5); /* until it has written all */
        }
        REQUIRE_EQ(kill((pid_t)strtol(rig_output(&rig, i, 1), NULL, 10), SIGKILL), 0);
        rig_expect(&rig, i, ACRE_RUN_LOST, 0);
    }
    for (int turn = 0; turn < TURNS_MAX && rig_output(&rig, 1, 2)[0] != '\0'; turn++) {
        rig_turn(&rig, 5);
    }
    CHECK_STR(rig_output(&rig, 1, 2), "");
    CHECK(rig_output(&rig, 2, 2)[0] != '\0');
    rig_finish(&rig);
}

static const struct acre_test tests[] = {
    {"runs_survive_kill_9_of_the_daemon", runs_survive_kill_9_of_the_daemon, 0},
    {"a_start_that_was_on_its_way_is_known_or_never_was",
     a_start_that_was_on_its_way_is_known_or_never_was, 0},
    {"nothing_of_the_daemons_is_kept_open", nothing_of_the_daemons_is_kept_open, 0},
    {"two_engines_on_one_state_are_refused", two_engines_on_one_state_are_refused, 0},
    {"a_state_that_cannot_be_written_is_refused", a_state_that_cannot_be_written_is_refused, 0},
    {"a_spawner_that_dies_is_replaced", a_spawner_that_dies_is_replaced, 0},
    {"a_run_whose_supervisor_is_killed_is_lost", a_run_whose_supervisor_is_killed_is_lost, 0},
    {"a_program_that_is_no_supervisor_fails_the_runs",
     a_program_that_is_no_supervisor_fails_the_runs, 0},
    {"accounts_are_found_or_refused", accounts_are_found_or_refused, 0},
    {"without_root_only_ones_own_jobs_run", without_root_only_ones_own_jobs_run, 0},
    {"commands_and_directories_are_checked_as_the_user",
     commands_and_directories_are_checked_as_the_user, 0},
    {"input_text_reaches_every_member", input_text_reaches_every_member, 0},
    {"the_first_member_that_fails_ends_the_gang", the_first_member_that_fails_ends_the_gang, 0},
    {"a_start_of_any_size_arrives", a_start_of_any_size_arrives, 0},
    {"a_warning_reaches_who_expects_it_and_kills_nobody",
     a_warning_reaches_who_expects_it_and_kills_nobody, 0},
    {"logs_are_bounded_and_counted", logs_are_bounded_and_counted, 0},
    {"a_share_holds_its_mps_daemon_also_over_a_restart",
     a_share_holds_its_mps_daemon_also_over_a_restart, 0},
    {"an_mps_daemon_without_shares_does_not_outlive_a_restart",
     an_mps_daemon_without_shares_does_not_outlive_a_restart, 0},
    {"a_share_without_mps_is_not_started", a_share_without_mps_is_not_started, 0},
    {"shares_of_an_amd_gpu_never_meet_also_over_a_restart",
     shares_of_an_amd_gpu_never_meet_also_over_a_restart, 0},
    {"a_forgotten_run_leaves_only_logs", a_forgotten_run_leaves_only_logs, 0},
    {"logs_of_lost_runs_count", logs_of_lost_runs_count, 0},
};

ACRE_TEST_MAIN(tests)
