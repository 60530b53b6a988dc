/* mps_rig.c - MPS daemons of a double, watched and asked by one process. */
#include "support/mps_rig.h"

#include "core/file.h"
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GUARD_MS = 120000, LOOK_MS = 2, NO_USER = 255, PROGRAM_MAX = 64 << 20 };

static void on_lost(void *context, const char *device, const char *text) {
    struct mps_rig *rig = context;
    CHECK_STR(device, MPS_GPU);
    CHECK_HAS(text, "MPS daemon of " MPS_GPU);
    rig->lost++;
    snprintf(rig->text, sizeof(rig->text), "%s", text);
}

static void on_ready(void *context, int result, const struct acre_error *err) {
    struct mps_rig *rig = context;
    if (result == 0) {
        rig->ready++;
    } else {
        rig->failed++;
        CHECK_EQ(err->code, result);
        snprintf(rig->text, sizeof(rig->text), "%s", err->text);
    }
}

void mps_rig_open(struct mps_rig *rig, uint64_t check_ms, uint64_t answer_ms) {
    struct mps_options options = {.directory = rig->directory,
                                  .program = MPS_DOUBLE,
                                  .sink = {on_lost, rig},
                                  .multiuser = true,
                                  .check_ms = check_ms,
                                  .answer_ms = answer_ms};
    struct acre_error err = {0};
    CHECK_EQ(mps_create(&options, rig->loop, &rig->mps, &err), 0);
    CHECK_STR(err.text, "");
    REQUIRE(rig->mps != NULL);
}

void mps_rig_init(struct mps_rig *rig, uint64_t check_ms, uint64_t answer_ms) {
    *rig = (struct mps_rig){.tree = tree_create(NULL)};
    REQUIRE(chmod(rig->tree.root, 0711) == 0);
    snprintf(rig->directory, sizeof(rig->directory), "%s/mps", rig->tree.root);
    REQUIRE_EQ(acre_loop_create(&rig->loop, NULL), 0);
    REQUIRE_EQ(mps_paths_init(&rig->paths, rig->directory, MPS_GPU, NULL), 0);
    mps_rig_open(rig, check_ms, answer_ms);
}

void mps_rig_finish(struct mps_rig *rig) {
    pid_t pid = mps_rig_daemon(rig);
    if (pid > 0) {
        kill(pid, SIGKILL);
    }
    mps_destroy(rig->mps);
    acre_loop_destroy(rig->loop);
    tree_erase(&rig->tree);
}

static void look(void *context) {
    struct mps_rig *rig = context;
    rig->guard_ms += LOOK_MS;
    if (rig->condition(rig) || rig->guard_ms > GUARD_MS) {
        acre_loop_stop(rig->loop);
    }
}

void mps_rig_wait(struct mps_rig *rig, bool (*condition)(struct mps_rig *rig), const char *what) {
    struct acre_timer *timer = acre_loop_timer(rig->loop, 0, LOOK_MS, look, rig);
    rig->condition = condition;
    rig->guard_ms = 0;
    acre_loop_run(rig->loop);
    acre_timer_cancel(timer);
    acre_test_context("%s; last text: %s", what, rig->text);
    REQUIRE(condition(rig));
    acre_test_context("%s", "");
}

bool mps_rig_is_ready(struct mps_rig *rig) {
    return rig->ready == 1;
}

bool mps_rig_is_twice(struct mps_rig *rig) {
    return rig->ready == 2;
}

bool mps_rig_has_failed(struct mps_rig *rig) {
    return rig->failed == 1;
}

bool mps_rig_has_lost(struct mps_rig *rig) {
    return rig->lost == 1;
}

bool mps_rig_is_down(struct mps_rig *rig) {
    uint32_t lost;
    return mps_count(rig->mps, &lost) == 0;
}

bool mps_rig_is_other(struct mps_rig *rig) {
    pid_t pid = mps_rig_daemon(rig);
    return pid != 0 && pid != rig->pid;
}

void mps_rig_take(struct mps_rig *rig, uint64_t holder, uid_t user) {
    struct acre_error err = {0};
    CHECK_EQ(mps_take(rig->mps, MPS_GPU, holder, user, on_ready, rig, &err), 0);
    CHECK_STR(err.text, "");
}

pid_t mps_rig_daemon(const struct mps_rig *rig) {
    return mps_process_find(&rig->paths, MPS_DOUBLE);
}

bool mps_rig_lives(pid_t pid) {
    char path[64], text[512];
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    const char *name_end = strrchr(acre_file_peek(path, text, sizeof(text)), ')');
    return name_end != NULL && strncmp(name_end, ") Z", 3) != 0;
}

void mps_rig_script(const struct mps_rig *rig, const char *name, const char *text) {
    char path[160];
    snprintf(path, sizeof(path), "mps/%s.script/%s", MPS_GPU, name);
    tree_put(&rig->tree, path, text);
}

static void become(uid_t user) {
    if (user != geteuid() &&
        (setgroups(0, NULL) != 0 || setgid((gid_t)user) != 0 || setuid(user) != 0)) {
        _exit(NO_USER);
    }
}

int mps_rig_as(const struct mps_rig *rig, uid_t user, int (*act)(const struct mps_rig *rig)) {
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        become(user);
        _exit(act(rig));
    }
    int status;
    REQUIRE_EQ(waitpid(child, &status, 0), child);
    REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) != NO_USER);
    return WEXITSTATUS(status);
}

/* The double where users can reach it, wherever the build is. */
static void copy_double(const struct mps_rig *rig, char path[128]) {
    struct acre_buf program;
    snprintf(path, 128, "%s/mps_double", rig->tree.root);
    acre_buf_init(&program, PROGRAM_MAX);
    REQUIRE_EQ(acre_file_read(MPS_DOUBLE, PROGRAM_MAX, &program, NULL), 0);
    REQUIRE_EQ(acre_file_write(path, program.data, program.length, NULL), 0);
    REQUIRE_EQ(chmod(path, 0755), 0);
    acre_buf_finish(&program);
}

pid_t mps_rig_spawn(const struct mps_rig *rig, uid_t user, bool is_daemon) {
    char path[128] = "/bin/sleep";
    if (is_daemon) {
        copy_double(rig, path);
    }
    char pipe_line[160], log_line[160];
    snprintf(pipe_line, sizeof(pipe_line), "CUDA_MPS_PIPE_DIRECTORY=%s", rig->paths.pipe);
    snprintf(log_line, sizeof(log_line), "CUDA_MPS_LOG_DIRECTORY=%s", rig->paths.log);
    int ends[2]; /* closed by the exec: from then on it has its environment */
    char byte;
    REQUIRE_EQ(pipe2(ends, O_CLOEXEC), 0);
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        char *const env[] = {pipe_line, log_line, NULL};
        become(user);
        execle(path, path, is_daemon ? "-d" : "600", (char *)NULL, env);
        _exit(127);
    }
    close(ends[1]);
    REQUIRE_EQ(read(ends[0], &byte, 1), 0);
    close(ends[0]);
    return child;
}
