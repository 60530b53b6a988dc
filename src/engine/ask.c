/* ask.c - one child, watched through its pidfd, with files in memory as input and output.
 *
 * Output goes to a file in memory of fixed size, not to a pipe: the program can neither block nor
 * be killed by it, and one that leaves a daemon running does not keep us waiting for the end of a
 * stream. The file's position is shared with the program, so it shows how much was written. */
#include "engine/ask.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REAP_MS = 100 }; /* from SIGKILL to the end; a process stuck in the kernel is left behind */

struct ask {
    pid_t pid;
    int pidfd;
    int output_fd;
    struct acre_watch *watch;
    struct acre_timer *timer;
    ask_done *done;
    void *context;
};

/* Anonymous memory with `text` in it, to be read from the start. */
static int make_input(const char *text) {
    int fd = memfd_create("acre-ask-input", MFD_CLOEXEC);
    size_t length = strlen(text);
    if (fd >= 0 && (write(fd, text, length) != (ssize_t)length || lseek(fd, 0, SEEK_SET) != 0)) {
        close(fd);
        return -1;
    }
    return fd;
}

static int make_output(void) {
    int fd = memfd_create("acre-ask-output", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd >= 0 && (ftruncate(fd, ACRE_ASK_OUTPUT_MAX) != 0 ||
                    fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) != 0)) {
        close(fd);
        return -1;
    }
    return fd;
}

static int spawn(const char *const *argv, const char *const *env, int input_fd, int output_fd,
                 pid_t *ret_pid) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input_fd, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output_fd, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output_fd, STDERR_FILENO);
    posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
    posix_spawn_file_actions_addchdir_np(&actions, "/");
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    /* The interface lacks a const that its meaning has. */
    int errnum = posix_spawn(ret_pid, argv[0], &actions, &attributes,
                             (char *const *)(uintptr_t)argv, (char *const *)(uintptr_t)env);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return errnum;
}

/* Collect the child; false when it has not ended. */
static bool reap(const struct ask *ask, int *ret_exit_code) {
    int status;
    if (waitpid(ask->pid, &status, WNOHANG) != ask->pid) {
        return false;
    }
    *ret_exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return true;
}

static void destroy(struct ask *ask) {
    acre_watch_cancel(ask->watch);
    acre_timer_cancel(ask->timer);
    if (ask->pidfd >= 0) {
        close(ask->pidfd);
    }
    close(ask->output_fd);
    free(ask);
}

/* Tell the answer; the question is gone before, so that `done` may ask the next one. */
static void finish(struct ask *ask, int result, int exit_code) {
    ask_done *done = ask->done;
    void *context = ask->context;
    off_t written = lseek(ask->output_fd, 0, SEEK_CUR);
    size_t length = written > 0 ? ACRE_MIN((size_t)written, (size_t)ACRE_ASK_OUTPUT_MAX) : 0;
    char *output = acre_calloc(1, length + 1);
    ssize_t got = pread(ask->output_fd, output, length, 0);
    destroy(ask);
    done(context, result, exit_code, (struct acre_str){output, got > 0 ? (size_t)got : 0});
    free(output);
}

static void kill_child(const struct ask *ask, int *ret_exit_code) {
    struct pollfd ended = {.fd = ask->pidfd, .events = POLLIN};
    kill(-ask->pid, SIGKILL); /* its session */
    kill(ask->pid, SIGKILL);
    poll(&ended, 1, REAP_MS);
    reap(ask, ret_exit_code);
}

static void on_end(void *context) {
    struct ask *ask = context;
    int exit_code;
    if (reap(ask, &exit_code)) {
        finish(ask, 0, exit_code);
    }
}

static void on_timeout(void *context) {
    struct ask *ask = context;
    int exit_code = 128 + SIGKILL;
    ask->timer = NULL; /* gone by itself */
    kill_child(ask, &exit_code);
    finish(ask, ACRE_ETIMEOUT, exit_code);
}

void ask_cancel(struct ask *ask) {
    if (ask != NULL) {
        int exit_code;
        kill_child(ask, &exit_code);
        destroy(ask);
    }
}

static int watch(struct ask *ask, struct acre_loop *loop, uint64_t timeout_ms,
                 struct acre_error *err) {
    ask->pidfd = (int)syscall(SYS_pidfd_open, ask->pid, 0);
    if (ask->pidfd < 0) {
        return acre_fail_errno(err, errno, "pidfd_open");
    }
    ask->watch = acre_loop_watch(loop, ask->pidfd, on_end, ask, err);
    if (ask->watch == NULL) {
        return err != NULL ? err->code : ACRE_EIO;
    }
    ask->timer = acre_loop_timer(loop, timeout_ms, 0, on_timeout, ask);
    return 0;
}

int ask_start(struct acre_loop *loop, const char *const *argv, const char *const *env,
              const char *input, uint64_t timeout_ms, ask_done *done, void *context,
              struct ask **ret_ask, struct acre_error *err) {
    ACRE_ASSERT(done != NULL && argv[0] != NULL);
    struct ask *ask = acre_calloc(1, sizeof(*ask));
    *ask = (struct ask){.pidfd = -1, .done = done, .context = context};
    int input_fd = make_input(input);
    ask->output_fd = make_output();
    int r = 0;
    if (input_fd < 0 || ask->output_fd < 0) {
        r = acre_fail_errno(err, errno, "memfd_create");
    } else {
        int errnum = spawn(argv, env, input_fd, ask->output_fd, &ask->pid);
        r = errnum != 0 ? acre_fail_errno(err, errnum, "%s", argv[0])
                        : watch(ask, loop, timeout_ms, err);
    }
    if (input_fd >= 0) {
        close(input_fd);
    }
    if (r < 0) {
        if (ask->pid > 0) {
            int exit_code;
            kill_child(ask, &exit_code);
        }
        destroy(ask);
        return r;
    }
    *ret_ask = ask;
    return 0;
}
