/* test_engine_late.c - runs that do not end when they should are ended, and none is called over
 * while a process of it lives. */
#include "core/file.h"
#include "engine/local_late.h"
#include "engine/pids.h"
#include "support/engine_rig.h"
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MARGIN_MS = 200 };

static void open_rig(struct rig *rig) {
    rig_init(rig, &acre_engine_local);
    rig->local.margin_ms = MARGIN_MS;
    rig_open(rig);
}

/* The supervisor of the run whose first process this is. */
static pid_t parent_of(int64_t pid) {
    char path[64], text[512];
    snprintf(path, sizeof(path), "/proc/%" PRId64 "/stat", pid);
    const char *after = strrchr(acre_file_peek(path, text, sizeof(text)), ')');
    REQUIRE(after != NULL);
    return (pid_t)strtol(after + 4, NULL, 10);
}

static bool is_there(int64_t pid) {
    char path[64], text[512];
    snprintf(path, sizeof(path), "/proc/%" PRId64 "/stat", pid);
    const char *after = strrchr(acre_file_peek(path, text, sizeof(text)), ')');
    return after != NULL && after[2] != 'Z';
}

/* The kernel lets go of a process's locks and group a moment before it counts as dead. */
static bool is_gone_soon(int64_t pid) {
    struct pollfd process = {.fd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0), .events = POLLIN};
    bool gone = process.fd < 0 ? errno == ESRCH : poll(&process, 1, 60000) == 1;
    if (process.fd >= 0) {
        close(process.fd);
    }
    return gone;
}

/* ---- supervisors that do not react ---- */

static void a_supervisor_that_does_not_react_is_killed_with_its_run(void) {
    static const struct {
        enum acre_run_signal signal;
        uint64_t limit_ms;
        enum run_ending ending;
    } cases[] = {
        {ACRE_RUN_KILL, 0, ACRE_RUN_SIGNALED},
        {ACRE_RUN_TERMINATE, 0, ACRE_RUN_SIGNALED},
        {ACRE_RUN_CHECKPOINT, 3000, ACRE_RUN_TIME_LIMIT},
    };
    struct rig rig;
    open_rig(&rig);
    for (uint64_t i = 0; i < ACRE_COUNT(cases); i++) {
        acre_test_context("case %d", (int)i);
        struct acre_run_spec spec = rig_spec(&rig, i, "sleep 1000");
        spec.limit_ms = cases[i].limit_ms;
        spec.grace_ms = 100;
        rig_start(&rig, &spec);
        int64_t pid = rig_wait_start(&rig, i)->pid;
        pid_t supervisor = parent_of(pid);
        REQUIRE_EQ(kill(supervisor, SIGSTOP), 0);
        rig_signal(&rig, i, cases[i].signal);
        rig_expect(&rig, i, cases[i].ending, SIGKILL);
        CHECK_HAS(rig.seen[i].result.text, "the daemon killed the run");
        CHECK(is_gone_soon(pid));
        CHECK(is_gone_soon(supervisor));
    }
    rig_finish(&rig);
}

static void a_supervisor_that_reacts_is_left_alone(void) {
    struct rig rig;
    open_rig(&rig);
    struct acre_run_spec spec = rig_spec(&rig, 1,
                                         "trap 'sleep 0.3; exit 7' TERM; echo ready; "
                                         "while :; do sleep 0.05; done");
    spec.grace_ms = 20000;
    rig_start(&rig, &spec);
    rig_wait_output(&rig, 1, "ready");
    rig_signal(&rig, 1, ACRE_RUN_TERMINATE);
    rig_expect(&rig, 1, ACRE_RUN_EXITED, 7);
    CHECK_STR(rig.seen[1].result.text, "");
    rig_finish(&rig);
}

/* A supervisor stopped before, and a daemon started since: the plan is in the record. */
static void a_new_daemon_knows_when_a_run_should_have_ended(void) {
    struct rig rig;
    open_rig(&rig);
    struct acre_run_spec spec = rig_spec(&rig, 1, "sleep 1000");
    spec.limit_ms = 3000;
    spec.grace_ms = 100;
    rig_start(&rig, &spec);
    int64_t pid = rig_wait_start(&rig, 1)->pid;
    REQUIRE_EQ(kill(parent_of(pid), SIGSTOP), 0);
    rig_close(&rig);
    rig_open(&rig);
    rig.driver->adopt(rig.engine, spec.run);
    rig_expect(&rig, 1, ACRE_RUN_TIME_LIMIT, SIGKILL);
    CHECK(is_gone_soon(pid));
    rig_finish(&rig);
}

/* The time limit counts from the start. One that took long had an earlier deadline before. */
static void a_late_start_moves_the_deadline(void) {
    enum { LONG_MS = 100000 };
    struct rig rig;
    open_rig(&rig);
    struct acre_run_spec spec = rig_spec(&rig, 1, "sleep 1000");
    spec.limit_ms = LONG_MS;
    rig_start(&rig, &spec);
    rig_wait_start(&rig, 1);
    struct local_run *run = local_find(rig.engine, spec.run);
    REQUIRE(run != NULL);
    run->begun_ms -= LONG_MS; /* as reported while it was starting */
    local_expect_limit(run);
    run->begun_ms += LONG_MS;
    local_expect_limit(run);
    rig_turn(&rig, 2 * MARGIN_MS + spec.grace_ms);
    CHECK(!run->overdue);
    rig_signal(&rig, 1, ACRE_RUN_KILL);
    rig_expect(&rig, 1, ACRE_RUN_SIGNALED, SIGKILL);
    CHECK_STR(rig.seen[1].result.text, "");
    rig_finish(&rig);
}

/* ---- supervisors that are gone while their lock is not ---- */

/* A copy of the supervisor's descriptor of the record, with the lock: as a child of it has one. */
static int share_lock(const struct rig *rig, pid_t supervisor, uint64_t job) {
    char wanted[128], link[64], target[128];
    snprintf(wanted, sizeof(wanted), "%s/" ACRE_RUNS_DIRECTORY "/%" PRIu64 ".1", rig->state, job);
    int process = (int)syscall(SYS_pidfd_open, supervisor, 0), copy = -1;
    for (int fd = 0; fd < 256 && copy < 0; fd++) {
        snprintf(link, sizeof(link), "/proc/%d/fd/%d", (int)supervisor, fd);
        ssize_t length = readlink(link, target, sizeof(target) - 1);
        target[length > 0 ? length : 0] = '\0';
        if (strcmp(target, wanted) == 0) {
            copy = (int)syscall(SYS_pidfd_getfd, process, fd, 0);
        }
    }
    close(process);
    if (copy < 0) {
        acre_test_skip("descriptors of other processes cannot be copied here");
    }
    return copy;
}

static void a_run_whose_lock_outlives_its_supervisor_ends(void) {
    struct rig rig;
    open_rig(&rig);
    for (uint64_t i = 0; i < 2; i++) {
        bool adopted = i == 1;
        acre_test_context("%s", adopted ? "adopted" : "of this daemon");
        struct acre_run_spec spec = rig_spec(&rig, i, "sleep 1000");
        rig_start(&rig, &spec);
        int64_t pid = rig_wait_start(&rig, i)->pid;
        pid_t supervisor = parent_of(pid);
        int lock = share_lock(&rig, supervisor, i);
        if (adopted) {
            rig_close(&rig);
            rig_open(&rig);
            rig.driver->adopt(rig.engine, spec.run);
            rig_turn(&rig, 10);
        }
        REQUIRE_EQ(kill(supervisor, SIGKILL), 0);
        for (int turn = 0; turn < 20000 && (is_there(supervisor) || is_there(pid)); turn++) {
            rig_turn(&rig, 5);
        }
        rig_turn(&rig, 100); /* the daemon has heard of it, and has looked */
        CHECK_EQ(rig.seen[i].exited, 0);
        CHECK(is_gone_soon(pid));
        close(lock);
        rig_expect(&rig, i, ACRE_RUN_LOST, 0);
    }
    rig_finish(&rig);
}

/* One that was killed before its first word, when a child of it lives on. */
static void a_run_that_never_says_a_word_ends_with_its_lock(void) {
    struct rig rig;
    open_rig(&rig);
    const struct local *engine = rig.engine;
    int record = openat(engine->runs, "1.1", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    REQUIRE(record >= 0);
    REQUIRE_EQ(flock(record, LOCK_EX | LOCK_NB), 0);
    rig.driver->adopt(rig.engine, (struct acre_run){1, 1});
    rig_turn(&rig, 100);
    CHECK_EQ(rig.seen[1].exited, 0);
    close(record);
    rig_expect(&rig, 1, ACRE_RUN_LOST, 0);
    rig_finish(&rig);
}

/* Another supervisor is lost in the moment when this run has a record and no lock yet. */
static void a_run_that_is_just_being_started_is_not_lost(void) {
    struct rig rig;
    open_rig(&rig);
    struct local *engine = rig.engine;
    REQUIRE_EQ(kill(engine->spawner_pid, SIGSTOP), 0);
    rig_run(&rig, 1, "exit 3");
    struct local_run *run = local_find(engine, (struct acre_run){1, 1});
    REQUIRE(run != NULL && run->stage == ACRE_LOCAL_SENT);
    int record = openat(engine->runs, "1.1", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    REQUIRE(record >= 0);
    local_check(engine, run);
    CHECK_EQ((int)run->stage, (int)ACRE_LOCAL_SENT);
    close(record);
    REQUIRE_EQ(unlinkat(engine->runs, "1.1", 0), 0);
    REQUIRE_EQ(kill(engine->spawner_pid, SIGCONT), 0);
    rig_expect(&rig, 1, ACRE_RUN_EXITED, 3);
    rig_finish(&rig);
}

struct prying {
    const struct local *engine;
    atomic_bool stop;
};

/* Look at each record as soon as it is there, as the daemon does now and then. */
static void *pry(void *context) {
    struct prying *prying = context;
    struct fact fact;
    for (uint64_t i = 0; i < RIG_RUNS && !atomic_load(&prying->stop);) {
        i += local_look(prying->engine, (struct acre_run){i, 1}, &fact) != ACRE_LOCAL_ABSENT;
    }
    return NULL;
}

static void looking_at_a_record_does_not_keep_a_run_from_its_start(void) {
    struct rig rig;
    open_rig(&rig);
    rig.keep = true;
    struct prying prying = {.engine = rig.engine};
    pthread_t threads[2];
    for (size_t i = 0; i < ACRE_COUNT(threads); i++) {
        REQUIRE_EQ(pthread_create(&threads[i], NULL, pry, &prying), 0);
    }
    for (uint64_t i = 0; i < RIG_RUNS; i++) {
        rig_run(&rig, i, "exit 3");
    }
    for (uint64_t i = 0; i < RIG_RUNS; i++) {
        acre_test_context("run %d", (int)i);
        rig_expect(&rig, i, ACRE_RUN_EXITED, 3);
    }
    atomic_store(&prying.stop, true);
    for (size_t i = 0; i < ACRE_COUNT(threads); i++) {
        pthread_join(threads[i], NULL);
    }
    rig_finish(&rig);
}

/* ---- processes that do not end ---- */

static void write_file(const char *directory, const char *name, const char *text) {
    char path[160];
    snprintf(path, sizeof(path), "%s/%s", directory, name);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    REQUIRE(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
}

static uint64_t cpu_ms(void) {
    struct timespec used;
    REQUIRE_EQ(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used), 0);
    return (uint64_t)used.tv_sec * 1000 + (uint64_t)used.tv_nsec / 1000000;
}

/* A frozen process is as good as one that hangs in a driver: SIGKILL waits. */
static void check_frozen(bool adopted) {
    char freezer[96], number[24];
    snprintf(freezer, sizeof(freezer), "/sys/fs/cgroup/freezer/acre-test-%d", (int)getpid());
    if (geteuid() != 0 || mkdir(freezer, 0755) != 0) {
        acre_test_skip("needs root and the freezer of cgroup v1");
    }
    struct rig rig;
    open_rig(&rig);
    rig_run(&rig, 1, "sleep 1000");
    int64_t pid = rig_wait_start(&rig, 1)->pid;
    if (adopted) {
        rig_close(&rig);
        rig_open(&rig);
        rig.driver->adopt(rig.engine, (struct acre_run){1, 1});
        rig_turn(&rig, 10);
    }
    snprintf(number, sizeof(number), "%" PRId64, pid);
    write_file(freezer, "cgroup.procs", number);
    write_file(freezer, "freezer.state", "FROZEN");
    REQUIRE_EQ(kill(parent_of(pid), SIGKILL), 0);
    uint64_t before_ms = cpu_ms();
    rig_turn(&rig, 2500);               /* longer than anything that could give up */
    CHECK(cpu_ms() - before_ms < 1000); /* waiting is no work */
    CHECK_EQ(rig.seen[1].exited, 0);
    CHECK(is_there(pid));
    write_file(freezer, "freezer.state", "THAWED");
    rig_expect(&rig, 1, ACRE_RUN_LOST, 0);
    CHECK_HAS(rig.seen[1].result.text,
              "its supervisor died; the processes it had started were killed");
    CHECK(is_gone_soon(pid));
    rig_finish(&rig);
    rmdir(freezer);
}

static void a_run_is_not_over_while_a_process_of_it_lives(void) {
    check_frozen(false);
}

static void an_adopted_run_that_does_not_end_is_waited_for_in_peace(void) {
    check_frozen(true);
}

/* ---- directories that hang ---- */

/* A file system whose server never answers, as any user may have one. */
static int mount_hanging(const char *path) {
    int fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    char options[96];
    snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other",
             fuse);
    if (geteuid() != 0 || fuse < 0 || mount("acre-test", path, "fuse", 0, options) != 0) {
        rmdir(path);
        acre_test_skip("needs root and FUSE: %s", strerror(errno));
    }
    return fuse;
}

static void a_directory_that_hangs_does_not_keep_a_run(void) {
    char path[64], inner[80];
    snprintf(path, sizeof(path), "/tmp/acre-hang-%d", (int)getpid());
    snprintf(inner, sizeof(inner), "%s/inner", path);
    REQUIRE(mkdir(path, 0755) == 0);
    int fuse = mount_hanging(path);
    struct rig rig;
    open_rig(&rig);
    struct acre_run_spec spec = rig_spec(&rig, 1, "sleep 1000");
    spec.directory = inner;
    rig_start(&rig, &spec);
    rig_signal(&rig, 1, ACRE_RUN_KILL);
    const struct rig_seen *seen = rig_wait_exit(&rig, 1);
    CHECK(seen->result.ending == ACRE_RUN_NOT_STARTED || seen->result.ending == ACRE_RUN_SIGNALED);
    rig_finish(&rig);
    close(fuse);
    umount2(path, MNT_DETACH);
    rmdir(path);
}

/* ---- signals ---- */

struct lists {
    int64_t first[3], then[3];
    uint32_t asked;
};

static uint32_t list(void *context, int64_t *pids, uint32_t max) {
    struct lists *lists = context;
    REQUIRE(max >= 3);
    memcpy(pids, lists->asked++ == 0 ? lists->first : lists->then, sizeof(lists->first));
    return 3;
}

static void a_process_that_left_the_list_gets_no_signal(void) {
    pid_t pids[3];
    for (size_t i = 0; i < ACRE_COUNT(pids); i++) {
        pids[i] = fork();
        REQUIRE(pids[i] >= 0);
        while (pids[i] == 0) {
            pause();
        }
    }
    /* The second is on the first list only, as when its number was somebody else's before. */
    struct lists lists = {.first = {pids[2], pids[1], pids[0]}, .then = {pids[0], 1, pids[2]}};
    CHECK_EQ(pids_signal(list, NULL, &lists, SIGKILL), 3);
    int status = 0;
    for (size_t i = 0; i < ACRE_COUNT(pids); i += 2) {
        CHECK_EQ(waitpid(pids[i], &status, 0), pids[i]);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    }
    CHECK_EQ(waitpid(pids[1], &status, WNOHANG), 0);
    kill(pids[1], SIGKILL);
    waitpid(pids[1], &status, 0);
}

static const struct acre_test tests[] = {
    {"a_supervisor_that_does_not_react_is_killed_with_its_run",
     a_supervisor_that_does_not_react_is_killed_with_its_run, 0},
    {"a_supervisor_that_reacts_is_left_alone", a_supervisor_that_reacts_is_left_alone, 0},
    {"a_new_daemon_knows_when_a_run_should_have_ended",
     a_new_daemon_knows_when_a_run_should_have_ended, 0},
    {"a_late_start_moves_the_deadline", a_late_start_moves_the_deadline, 0},
    {"a_run_whose_lock_outlives_its_supervisor_ends", a_run_whose_lock_outlives_its_supervisor_ends,
     0},
    {"a_run_that_never_says_a_word_ends_with_its_lock",
     a_run_that_never_says_a_word_ends_with_its_lock, 0},
    {"a_run_that_is_just_being_started_is_not_lost", a_run_that_is_just_being_started_is_not_lost,
     0},
    {"looking_at_a_record_does_not_keep_a_run_from_its_start",
     looking_at_a_record_does_not_keep_a_run_from_its_start, 0},
    {"a_run_is_not_over_while_a_process_of_it_lives", a_run_is_not_over_while_a_process_of_it_lives,
     0},
    {"an_adopted_run_that_does_not_end_is_waited_for_in_peace",
     an_adopted_run_that_does_not_end_is_waited_for_in_peace, 0},
    {"a_directory_that_hangs_does_not_keep_a_run", a_directory_that_hangs_does_not_keep_a_run, 0},
    {"a_process_that_left_the_list_gets_no_signal", a_process_that_left_the_list_gets_no_signal, 0},
};

ACRE_TEST_MAIN(tests)
