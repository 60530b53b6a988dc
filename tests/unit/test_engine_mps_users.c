/* test_engine_mps_users.c - SEC-2: who holds a share may connect to the MPS daemon, and no more.
 *
 * The daemon is root's, its directories are in a public place, and it writes through links. The
 * users are real processes with uids of their own, so most of it needs root. */
#include "support/mps_rig.h"
#include "support/test.h"

#include "core/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ALICE = 61001, MALLORY = 61002, CAROL = 61003 };
#define PID_FILE "nvidia-cuda-mps-control.pid"

static const char secret[] = "root's own words\n";

static void need_root(void) {
    if (geteuid() != 0) {
        acre_test_skip("needs root: processes of other users");
    }
}

/* A file of root's that nobody else can write, next to the directory of the daemons. */
static void put_secret(const struct mps_rig *rig) {
    tree_put(&rig->tree, "secret", secret);
    REQUIRE(chmod(tree_path(&rig->tree, "secret"), 0644) == 0);
}

static void check_secret(const struct mps_rig *rig) {
    char text[256];
    CHECK_STR(acre_file_peek(tree_path(&rig->tree, "secret"), text, sizeof(text)), secret);
    CHECK(access(tree_path(&rig->tree, "made"), F_OK) != 0); /* nothing was made through a link */
}

/* --- what a user tries; each returns how many attempts worked --- */

static const char *const pipe_names[] = {"control_lock", PID_FILE};
static const char *const log_names[] = {"control.log", "server.log"};

static int link_in(const struct mps_rig *rig, const char *directory, const char *name,
                   const char *target) {
    char path[256], to[128];
    snprintf(path, sizeof(path), "%s/%s", directory, name);
    snprintf(to, sizeof(to), "%s/%s", rig->tree.root, target);
    return symlink(to, path) == 0;
}

static int plant(const struct mps_rig *rig) {
    int worked = link_in(rig, rig->paths.pipe, "made_lock", "made");
    worked += link_in(rig, rig->paths.pipe, pipe_names[0], "made");
    worked += link_in(rig, rig->paths.pipe, pipe_names[1], "secret");
    worked += link_in(rig, rig->paths.log, log_names[0], "secret");
    worked += link_in(rig, rig->paths.log, log_names[1], "secret");
    return worked;
}

static int connect_to(const struct mps_rig *rig) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    int length =
        snprintf(address.sun_path, sizeof(address.sun_path), "%s/control", rig->paths.pipe);
    return length > 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
}

/* List, make, change, remove, rename in both directories. */
static int meddle(const struct mps_rig *rig) {
    int worked = plant(rig);
    const char *const directories[] = {rig->paths.pipe, rig->paths.log};
    for (size_t i = 0; i < ACRE_COUNT(directories); i++) {
        static const char *const names[] = {"control", "control_privileged", "control_lock",
                                            PID_FILE,  "control.log",        "server.log",
                                            "log",     "new-of-ours"};
        worked += opendir(directories[i]) != NULL;
        worked += chmod(directories[i], 0777) == 0;
        for (size_t k = 0; k < ACRE_COUNT(names); k++) {
            char path[256], other[256];
            snprintf(path, sizeof(path), "%s/%s", directories[i], names[k]);
            snprintf(other, sizeof(other), "%s/other", directories[i]);
            worked += open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0644) >= 0;
            worked += truncate(path, 0) == 0;
            worked += unlink(path) == 0;
            worked += rename(path, other) == 0;
        }
    }
    return worked;
}

static int reach_logs(const struct mps_rig *rig) {
    char path[256];
    snprintf(path, sizeof(path), "%s/control.log", rig->paths.log);
    return access(rig->paths.log, X_OK) == 0 || access(path, F_OK) == 0;
}

static bool can_connect(const struct mps_rig *rig, uid_t user) {
    return mps_rig_as(rig, user, connect_to) != 0;
}

static mode_t mode_of(const char *path) {
    struct stat info;
    REQUIRE(lstat(path, &info) == 0);
    return info.st_mode & 07777;
}

/* --- before, while and after it runs --- */

static void links_planted_before_it_starts_are_not_followed(void) {
    need_root();
    struct mps_rig rig;
    mps_rig_init(&rig, 1000, 5000);
    put_secret(&rig);
    mps_rig_script(&rig, "fault", "wait"); /* before it makes its files */
    mps_rig_take(&rig, 1, MALLORY);
    CHECK_EQ(mps_rig_as(&rig, MALLORY, meddle), 0);
    CHECK_EQ(mps_rig_as(&rig, MALLORY, plant), 0); /* last: meddling removes what it made */
    mps_rig_script(&rig, "fault", "");
    mps_rig_wait(&rig, mps_rig_is_ready, "ready");
    check_secret(&rig);
    mps_rig_finish(&rig);
}

static void a_holder_may_connect_and_nothing_else(void) {
    need_root();
    struct mps_rig rig;
    mps_rig_init(&rig, 1000, 5000);
    put_secret(&rig);
    mps_rig_take(&rig, 1, MALLORY);
    mps_rig_wait(&rig, mps_rig_is_ready, "ready");
    CHECK(can_connect(&rig, MALLORY));
    CHECK(!can_connect(&rig, ALICE));
    CHECK_EQ(mps_rig_as(&rig, MALLORY, meddle), 0);
    CHECK_EQ(mps_rig_as(&rig, MALLORY, reach_logs), 0);
    CHECK_EQ(mps_rig_as(&rig, ALICE, meddle), 0);
    check_secret(&rig);
    mps_rig_finish(&rig);
}

static void access_is_that_of_those_who_hold_shares_now(void) {
    need_root();
    struct mps_rig rig;
    mps_rig_init(&rig, 1000, 5000);
    mps_rig_take(&rig, 1, ALICE);
    mps_rig_wait(&rig, mps_rig_is_ready, "ready");
    mps_rig_take(&rig, 2, MALLORY);
    mps_rig_take(&rig, 3, MALLORY);
    CHECK(can_connect(&rig, ALICE));
    CHECK(can_connect(&rig, MALLORY));
    CHECK(!can_connect(&rig, CAROL));
    mps_give(rig.mps, MPS_GPU, 2);
    CHECK(can_connect(&rig, MALLORY)); /* the other share */
    mps_give(rig.mps, MPS_GPU, 3);
    CHECK(!can_connect(&rig, MALLORY));
    CHECK(can_connect(&rig, ALICE));
    mps_give(rig.mps, MPS_GPU, 1);
    CHECK(!can_connect(&rig, ALICE)); /* while it is still there */
    mps_rig_wait(&rig, mps_rig_is_down, "down");
    CHECK_EQ(mps_rig_as(&rig, MALLORY, meddle), 0);
    CHECK_EQ(mode_of(rig.paths.pipe), 0700);
    CHECK_EQ(mode_of(rig.paths.log), 0700);
    mps_rig_finish(&rig);
}

static void access_ends_with_a_daemon_that_is_lost(void) {
    need_root();
    struct mps_rig rig;
    mps_rig_init(&rig, 50, 5000);
    put_secret(&rig);
    mps_rig_take(&rig, 1, MALLORY);
    mps_rig_wait(&rig, mps_rig_is_ready, "ready");
    mps_rig_script(&rig, "fault", "wait");
    rig.pid = mps_rig_daemon(&rig);
    kill(rig.pid, SIGKILL);
    mps_rig_wait(&rig, mps_rig_has_lost, "lost");
    CHECK_EQ(mps_rig_as(&rig, MALLORY, meddle), 0);
    mps_rig_script(&rig, "fault", "");
    mps_rig_wait(&rig, mps_rig_is_other, "started again");
    check_secret(&rig);
    mps_rig_finish(&rig);
}

/* Jobs run on while no process of ours is there, and may start others. */
static void users_keep_their_access_over_a_restart(void) {
    need_root();
    struct mps_rig rig;
    mps_rig_init(&rig, 1000, 5000);
    mps_rig_take(&rig, 1, ALICE);
    mps_rig_take(&rig, 2, MALLORY);
    mps_rig_wait(&rig, mps_rig_is_twice, "ready");
    mps_destroy(rig.mps);
    CHECK(can_connect(&rig, ALICE));
    mps_rig_open(&rig, 1000, 5000);
    rig.ready = 0;
    mps_rig_take(&rig, 1, ALICE); /* the other job has ended */
    CHECK(can_connect(&rig, ALICE));
    mps_rig_wait(&rig, mps_rig_is_ready, "adopted");
    CHECK(can_connect(&rig, ALICE));
    CHECK(!can_connect(&rig, MALLORY));
    mps_destroy(rig.mps);
    mps_rig_open(&rig, 1000, 5000);
    CHECK(mps_reap(rig.mps, MPS_GPU)); /* hers, too */
    CHECK(!can_connect(&rig, ALICE));
    mps_rig_wait(&rig, mps_rig_is_down, "down");
    mps_rig_finish(&rig);
}

static void many_users_are_let_in_by_name(void) {
    need_root();
    struct mps_rig rig;
    mps_rig_init(&rig, 1000, 5000);
    mps_rig_take(&rig, 1, ALICE);
    mps_rig_wait(&rig, mps_rig_is_ready, "ready");
    for (uint32_t i = 0; i < 200; i++) {
        mps_rig_take(&rig, 2 + i, 62000 + i);
    }
    CHECK(can_connect(&rig, ALICE));
    CHECK(can_connect(&rig, 62199));
    CHECK(!can_connect(&rig, MALLORY));
    CHECK_EQ(mps_rig_as(&rig, 62199, meddle), 0);
    mps_rig_finish(&rig);
}

/* A file system that keeps no access lists, seen by this test alone. */
static void mount_without_lists(const char *path) {
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("ramfs", path, "ramfs", 0, NULL) != 0) {
        acre_test_skip("no ramfs here: %s", strerror(errno));
    }
}

static void without_access_lists_others_pass_through_while_it_runs(void) {
    need_root();
    struct mps_rig rig;
    mps_rig_init(&rig, 1000, 5000);
    mount_without_lists(rig.directory);
    REQUIRE(chmod(rig.directory, 0711) == 0);
    mps_rig_take(&rig, 1, ALICE);
    mps_rig_wait(&rig, mps_rig_is_ready, "ready");
    CHECK(can_connect(&rig, ALICE));
    CHECK_EQ(mode_of(rig.paths.pipe), 0711);
    CHECK_EQ(mode_of(rig.paths.log), 0700);
    CHECK_EQ(mps_rig_as(&rig, ALICE, meddle), 0);
    CHECK_EQ(mps_rig_as(&rig, MALLORY, meddle), 0);
    mps_give(rig.mps, MPS_GPU, 1);
    CHECK_EQ(mode_of(rig.paths.pipe), 0700);
    mps_rig_wait(&rig, mps_rig_is_down, "down");
    umount2(rig.directory, MNT_DETACH);
    mps_rig_finish(&rig);
}

/* --- what is there already --- */

static void what_an_earlier_start_left_does_not_survive(void) {
    struct mps_rig rig;
    mps_rig_init(&rig, 1000, 5000);
    put_secret(&rig);
    tree_put(&rig.tree, "mps/" MPS_GPU "/below/further/file", "old");
    tree_put(&rig.tree, "mps/" MPS_GPU ".log/control.log.1", "old");
    plant(&rig);
    chmod(rig.paths.pipe, 01777);
    chmod(rig.paths.log, 01777);
    mps_rig_take(&rig, 1, geteuid());
    mps_rig_wait(&rig, mps_rig_is_ready, "ready");
    check_secret(&rig);
    CHECK(access(tree_path(&rig.tree, "mps/" MPS_GPU "/below"), F_OK) != 0);
    CHECK(access(tree_path(&rig.tree, "mps/" MPS_GPU "/made_lock"), F_OK) != 0);
    CHECK(access(tree_path(&rig.tree, "mps/" MPS_GPU ".log/control.log.1"), F_OK) != 0);
    CHECK_EQ(mode_of(rig.paths.pipe), 0700);
    CHECK_EQ(mode_of(rig.paths.log), 0700);
    mps_rig_finish(&rig);
}

static void the_logs_of_the_last_start_are_kept_aside(void) {
    struct mps_rig rig;
    mps_rig_init(&rig, 1000, 5000);
    for (uint32_t i = 1; i <= 2; i++) {
        mps_rig_take(&rig, i, geteuid());
        mps_rig_wait(&rig, i == 1 ? mps_rig_is_ready : mps_rig_is_twice, "ready");
        mps_give(rig.mps, MPS_GPU, i);
        mps_rig_wait(&rig, mps_rig_is_down, "down");
    }
    char text[256];
    CHECK_HAS(acre_file_peek(tree_path(&rig.tree, "mps/" MPS_GPU ".log.old/control.log"), text,
                             sizeof(text)),
              "device " MPS_GPU);
    CHECK_EQ(mode_of(tree_path(&rig.tree, "mps/" MPS_GPU ".log.old")), 0700);
    mps_rig_finish(&rig);
}

static void refuse(struct mps_rig *rig, int code, const char *text) {
    struct acre_error err = {0};
    CHECK_EQ(mps_take(rig->mps, MPS_GPU, 1, geteuid(), NULL, NULL, &err), code);
    CHECK_HAS(err.text, text);
    CHECK(mps_rig_is_down(rig));
}

static void what_cannot_be_cleaned_is_not_used(void) {
    struct mps_rig rig;
    char path[512] = "mps/" MPS_GPU;
    mps_rig_init(&rig, 1000, 5000);
    for (int i = 0; i < 40; i++) {
        strncat(path, "/deep", sizeof(path) - strlen(path) - 1);
    }
    tree_make_directory(&rig.tree, path);
    refuse(&rig, ACRE_ELIMIT, "remove it by hand");
    tree_delete(&rig.tree, "mps/" MPS_GPU);
    tree_put(&rig.tree, "mps/" MPS_GPU, "a file");
    refuse(&rig, ACRE_EDENIED, "is not a directory");
    tree_delete(&rig.tree, "mps/" MPS_GPU);
    REQUIRE(symlink(rig.tree.root, rig.paths.pipe) == 0);
    refuse(&rig, ACRE_EDENIED, "is not a directory");
    tree_delete(&rig.tree, "mps/" MPS_GPU);
    if (geteuid() == 0) {
        tree_make_directory(&rig.tree, "mps/" MPS_GPU ".log");
        REQUIRE(chown(rig.paths.log, MALLORY, MALLORY) == 0);
        refuse(&rig, ACRE_EDENIED,
               "/mps/GPU-11111111-2222-3333-4444-555555555555.log belongs to uid 61002; accepted: "
               "uid 0, which runs the daemon");
        tree_delete(&rig.tree, "mps/" MPS_GPU ".log");
    }
    mps_rig_take(&rig, 1, geteuid());
    mps_rig_wait(&rig, mps_rig_is_ready, "ready");
    mps_rig_finish(&rig);
}

static void the_directory_of_all_is_ours_and_no_link(void) {
    struct mps_rig rig;
    mps_rig_init(&rig, 1000, 5000);
    mps_destroy(rig.mps);
    rig.mps = NULL;
    struct acre_error err = {0};
    struct mps_options options = {.directory = rig.directory, .program = MPS_DOUBLE};
    tree_delete(&rig.tree, "mps");
    tree_make_directory(&rig.tree, "elsewhere");
    REQUIRE(symlink(tree_path(&rig.tree, "elsewhere"), rig.directory) == 0);
    CHECK_EQ(mps_create(&options, rig.loop, &rig.mps, &err), ACRE_EDENIED);
    CHECK_HAS(err.text, "is not a directory");
    tree_delete(&rig.tree, "mps");
    tree_make_directory(&rig.tree, "mps");
    if (geteuid() == 0) {
        REQUIRE(chown(rig.directory, MALLORY, MALLORY) == 0);
        CHECK_EQ(mps_create(&options, rig.loop, &rig.mps, &err), ACRE_EDENIED);
        CHECK_HAS(err.text, "/mps belongs to uid 61002; accepted: uid 0, which runs the daemon");
        REQUIRE(chown(rig.directory, 0, 0) == 0);
    }
    REQUIRE(chmod(rig.directory, 0777) == 0);
    REQUIRE_EQ(mps_create(&options, rig.loop, &rig.mps, &err), 0);
    CHECK_EQ(mode_of(rig.directory), 0711);
    mps_rig_finish(&rig);
}

/* --- which process it is --- */

static pid_t pid_in_file(const struct mps_rig *rig) {
    char text[32];
    const char *path = tree_path(&rig->tree, "mps/" MPS_GPU "/" PID_FILE);
    return (pid_t)strtol(acre_file_peek(path, text, sizeof(text)), NULL, 10);
}

static bool has_pid(struct mps_rig *rig) {
    return pid_in_file(rig) > 0;
}

static void kill_daemon(const struct mps_rig *rig) {
    pid_t pid = mps_rig_daemon(rig);
    REQUIRE(pid > 0);
    kill(pid, SIGKILL);
}

/* His list of servers names a process of another user, whose environment is that of her job. */
static void a_daemon_of_another_user_is_not_adopted(void) {
    need_root();
    struct mps_rig rig;
    mps_rig_init(&rig, 20, 5000);
    tree_make_directory(&rig.tree, "mps/" MPS_GPU);
    tree_make_directory(&rig.tree, "mps/" MPS_GPU ".log");
    chmod(rig.paths.pipe, 01777); /* as earlier versions left them */
    chmod(rig.paths.log, 01777);
    pid_t victim = mps_rig_spawn(&rig, ALICE, false);
    char text[32];
    snprintf(text, sizeof(text), "%d\n", (int)victim);
    mps_rig_script(&rig, "servers", text);
    CHECK_EQ(waitpid(mps_rig_spawn(&rig, MALLORY, true), NULL, 0) > 0, true);
    mps_rig_wait(&rig, has_pid, "his daemon");
    pid_t his = pid_in_file(&rig);
    CHECK_EQ(mps_rig_daemon(&rig), 0);
    CHECK(!mps_reap(rig.mps, MPS_GPU));
    mps_rig_take(&rig, 1, MALLORY);
    mps_rig_wait(&rig, mps_rig_is_ready, "ready");
    struct stat info;
    snprintf(text, sizeof(text), "/proc/%d", (int)mps_rig_daemon(&rig));
    REQUIRE(stat(text, &info) == 0);
    CHECK_EQ(info.st_uid, 0);
    kill_daemon(&rig);
    mps_rig_wait(&rig, mps_rig_has_lost, "lost");
    CHECK(mps_rig_lives(victim));
    kill(his, SIGKILL);
    kill(victim, SIGKILL);
    waitpid(victim, NULL, 0);
    mps_rig_finish(&rig);
}

static void only_servers_of_ours_are_counted_and_killed(void) {
    need_root();
    struct mps_rig rig;
    mps_rig_init(&rig, 20, 5000);
    pid_t server = mps_rig_spawn(&rig, geteuid(), false);
    pid_t victim = mps_rig_spawn(&rig, ALICE, false);
    char text[64];
    snprintf(text, sizeof(text), "%d\n%d\n1\n", (int)victim, (int)server);
    mps_rig_script(&rig, "servers", text);
    mps_rig_take(&rig, 1, ALICE);
    mps_rig_wait(&rig, mps_rig_is_ready, "ready");
    int64_t pids[4] = {0};
    CHECK_U64(mps_servers(rig.mps, pids, 4), 1);
    CHECK_EQ(pids[0], server);
    kill_daemon(&rig);
    mps_rig_wait(&rig, mps_rig_has_lost, "lost");
    int status = 0;
    CHECK_EQ(waitpid(server, &status, 0), server);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    CHECK(mps_rig_lives(victim));
    kill(victim, SIGKILL);
    waitpid(victim, NULL, 0);
    mps_rig_finish(&rig);
}

/* Whatever stands in the pid file, a later process finds the daemon by its socket. */
static void the_pid_file_is_not_believed(void) {
    static const char *const texts[] = {"1\n", "", "999999999\n", "nonsense", NULL};
    for (size_t i = 0; i < ACRE_COUNT(texts); i++) {
        struct mps_rig rig;
        mps_rig_init(&rig, 1000, 5000);
        acre_test_context("%s", texts[i] != NULL ? texts[i] : "a link");
        mps_rig_take(&rig, 1, geteuid());
        mps_rig_wait(&rig, mps_rig_is_ready, "ready");
        pid_t pid = mps_rig_daemon(&rig);
        CHECK(pid > 0);
        mps_destroy(rig.mps);
        if (texts[i] != NULL) {
            tree_put(&rig.tree, "mps/" MPS_GPU "/" PID_FILE, texts[i]);
        } else {
            tree_delete(&rig.tree, "mps/" MPS_GPU "/" PID_FILE);
            REQUIRE(symlink("/proc/1/stat", tree_path(&rig.tree, "mps/" MPS_GPU "/" PID_FILE)) ==
                    0);
        }
        mps_rig_open(&rig, 1000, 5000);
        CHECK_EQ(mps_rig_daemon(&rig), pid);
        mps_rig_take(&rig, 1, geteuid());
        mps_rig_wait(&rig, mps_rig_is_twice, "adopted");
        CHECK_EQ(mps_rig_daemon(&rig), pid);
        mps_rig_finish(&rig);
    }
}

/* One that listens before it forks: the socket names the parent, which has gone. */
static void a_daemon_whose_parent_listened_is_known(void) {
    struct mps_rig rig;
    mps_rig_init(&rig, 1000, 5000);
    mps_rig_script(&rig, "fault", "early");
    mps_rig_take(&rig, 1, geteuid());
    mps_rig_wait(&rig, mps_rig_is_ready, "ready");
    CHECK(mps_rig_daemon(&rig) > 0);
    mps_give(rig.mps, MPS_GPU, 1);
    mps_rig_wait(&rig, mps_rig_is_down, "down");
    mps_rig_finish(&rig);
}

static const struct acre_test tests[] = {
    {"links_planted_before_it_starts_are_not_followed",
     links_planted_before_it_starts_are_not_followed, 0},
    {"a_holder_may_connect_and_nothing_else", a_holder_may_connect_and_nothing_else, 0},
    {"access_is_that_of_those_who_hold_shares_now", access_is_that_of_those_who_hold_shares_now, 0},
    {"access_ends_with_a_daemon_that_is_lost", access_ends_with_a_daemon_that_is_lost, 0},
    {"users_keep_their_access_over_a_restart", users_keep_their_access_over_a_restart, 0},
    {"many_users_are_let_in_by_name", many_users_are_let_in_by_name, 0},
    {"without_access_lists_others_pass_through_while_it_runs",
     without_access_lists_others_pass_through_while_it_runs, 0},
    {"what_an_earlier_start_left_does_not_survive", what_an_earlier_start_left_does_not_survive, 0},
    {"the_logs_of_the_last_start_are_kept_aside", the_logs_of_the_last_start_are_kept_aside, 0},
    {"what_cannot_be_cleaned_is_not_used", what_cannot_be_cleaned_is_not_used, 0},
    {"the_directory_of_all_is_ours_and_no_link", the_directory_of_all_is_ours_and_no_link, 0},
    {"a_daemon_of_another_user_is_not_adopted", a_daemon_of_another_user_is_not_adopted, 0},
    {"only_servers_of_ours_are_counted_and_killed", only_servers_of_ours_are_counted_and_killed, 0},
    {"the_pid_file_is_not_believed", the_pid_file_is_not_believed, 0},
    {"a_daemon_whose_parent_listened_is_known", a_daemon_whose_parent_listened_is_known, 0},
};
ACRE_TEST_MAIN(tests)
