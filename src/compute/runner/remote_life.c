/* remote_life.c - a runner's process: start, watch, explain, kill, restart.
 *
 * It is spawned with one descriptor, a socket, which carries the others. Its pidfd is opened right
 * after the spawn; when the greeting is answered, the runner was alive all the time, so the pidfd
 * is the right one. Waiting callers notice its death through the pidfd, and only that pidfd is
 * reaped: other children of the program are not our business. If the program reaps ours (or ignores
 * SIGCHLD), only the reason is lost.
 *
 * Shared memory, and what was mapped in it, outlives runners: a new one gets the same. */
#include "compute/runner/remote_inner.h"
#include "core/clock.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum {
    READY_LIMIT_MS = 120000, /* drivers of many devices take their time */
    END_LIMIT_MS = 10000,    /* end_limit_ms: drivers clean up */
    BYE_LIMIT_MS = 2000,
    CLEAN_LIMIT_MS = 600000, /* after its bye: a tool in it, as compute-sanitizer, has much to do */
};

/* --- the program ---------------------------------------------------------------------------- */

/* `name` in the directory of the file `of`. */
static bool take_near(char *path, const char *of, const char *name) {
    const char *slash = strrchr(of, '/');
    int length =
        slash != NULL ? snprintf(path, PATH_MAX, "%.*s/%s", (int)(slash - of), of, name) : PATH_MAX;
    return length < PATH_MAX && access(path, X_OK) == 0;
}

/* Next to the library, or where an installation has its programs. */
static bool take_of_library(char *path) {
    static const char *const names[] = {"acre-runner", ACRE_RUNNER_RELATIVE, "../bin/acre-runner"};
    Dl_info library;
    if (dladdr((const void *)&backend_remote, &library) == 0 || library.dli_fname == NULL) {
        return false;
    }
    for (size_t i = 0; i < ACRE_COUNT(names); i++) {
        if (take_near(path, library.dli_fname, names[i])) {
            return true;
        }
    }
    return false;
}

static int find_program(char path[PATH_MAX], struct acre_error *err) {
    const char *named = secure_getenv("ACRE_RUNNER");
    if (named != NULL && named[0] != '\0') {
        if (strlen(named) < PATH_MAX && access(named, X_OK) == 0) {
            snprintf(path, PATH_MAX, "%s", named);
            return 0;
        }
        return acre_fail(err, ACRE_ENOTFOUND, "ACRE_RUNNER: '%s' cannot be executed", named);
    }
    char self[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    self[length > 0 ? length : 0] = '\0';
    if (take_near(path, self, "acre-runner") || take_of_library(path)) {
        return 0;
    }
    snprintf(path, PATH_MAX, "%s", ACRE_RUNNER_PATH);
    if (access(path, X_OK) == 0) {
        return 0;
    }
    return acre_fail(err, ACRE_ENOTFOUND,
                     "acre-runner was not found next to '%s', next to the library, in %s relative "
                     "to it, or at %s; set ACRE_RUNNER to its path",
                     self, ACRE_RUNNER_RELATIVE, path);
}

/* What a runner's environment has besides ours. A kernel that stays would hold up what is loaded
 * later, and streams that share a queue with it (gpu/seat.h). Each queue costs: with 32 a context
 * takes 0.4 s longer to make, and a trap is told after 3 to 8 s (docs/benchmarks/compute.md). */
static const char *const runner_environment[] = {"CUDA_MODULE_LOADING=EAGER",
                                                 "CUDA_DEVICE_MAX_CONNECTIONS=10"};

static bool is_set_for_runners(const char *variable) {
    for (size_t i = 0; i < ACRE_COUNT(runner_environment); i++) {
        size_t length = strcspn(runner_environment[i], "=") + 1;
        if (strncmp(variable, runner_environment[i], length) == 0) {
            return true;
        }
    }
    return false;
}

static char **make_environment(void) {
    size_t count = 0;
    while (environ != NULL && environ[count] != NULL) {
        count++;
    }
    size_t kept = 0;
    char **environment = calloc(count + ACRE_COUNT(runner_environment) + 1, sizeof(*environment));
    for (size_t i = 0; environment != NULL && i < count; i++) {
        if (!is_set_for_runners(environ[i])) {
            environment[kept++] = environ[i];
        }
    }
    for (size_t i = 0; environment != NULL && i < ACRE_COUNT(runner_environment); i++) {
        environment[kept++] = (char *)(uintptr_t)runner_environment[i]; /* spawn only reads it */
    }
    return environment;
}

/* Nothing of ours but standard error, to which its standard output goes too. */
static int set_files(posix_spawn_file_actions_t *actions, int socket) {
    int error = posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDONLY, 0);
    int flags = fcntl(2, F_GETFD);
    if (error == 0 && (flags < 0 || (flags & FD_CLOEXEC) != 0)) { /* none, or a file of ours */
        error = posix_spawn_file_actions_addopen(actions, 2, "/dev/null", O_WRONLY, 0);
    }
    error = error == 0 ? posix_spawn_file_actions_adddup2(actions, 2, 1) : error;
    error = error == 0 ? posix_spawn_file_actions_adddup2(actions, socket, WIRE_SOCKET_FD) : error;
    return error == 0 ? posix_spawn_file_actions_addclosefrom_np(actions, WIRE_SOCKET_FD + 1)
                      : error;
}

static int spawn(const char *path, int socket, pid_t *ret_pid) {
    char name[] = "acre-runner";
    char *const argv[] = {name, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    char **environment = make_environment();
    if (environment == NULL) {
        return ENOMEM;
    }
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    /* A session of its own: what a terminal sends to the program is the program's to handle. */
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
    int error = set_files(&actions, socket);
    if (error == 0) {
        error = posix_spawn(ret_pid, path, &actions, &attributes, argv, environment);
    }
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    free(environment);
    return error;
}

/* --- its end -------------------------------------------------------------------------------- */

/* Lock held. */
static void explain(struct remote *remote, const siginfo_t *info) {
    const struct wire_shared *shared = remote->shared;
    if (remote->why[0] != '\0') {
        return; /* we ended it */
    }
    if (atomic_load(&shared->end_state) == WIRE_END_TOLD) {
        snprintf(remote->why, sizeof(remote->why), "%.*s", (int)sizeof(shared->end.text) - 1,
                 shared->end.text);
    } else if (info->si_pid == 0) {
        snprintf(remote->why, sizeof(remote->why),
                 "the runner ended; the reason is unknown because this program reaps its child "
                 "processes");
    } else if (info->si_code == CLD_EXITED) {
        snprintf(remote->why, sizeof(remote->why), "the runner exited with code %d",
                 info->si_status);
    } else {
        snprintf(remote->why, sizeof(remote->why), "the runner was killed by signal %d (%s)%s",
                 info->si_status, strsignal(info->si_status),
                 info->si_status == SIGKILL ? ", perhaps because memory ran out" : "");
    }
}

/* Lock held. Whether it has ended, after `timeout_ms` at most; then it is collected. */
static bool collect(struct remote *remote, int timeout_ms) {
    if (remote->pidfd < 0 || atomic_load(&remote->ended)) {
        return true;
    }
    struct pollfd fd = {.fd = remote->pidfd, .events = POLLIN};
    uint64_t until_ns = acre_monotonic_ns() + (uint64_t)timeout_ms * 1000000;
    while (poll(&fd, 1, timeout_ms) < 0) {
        if (errno != EINTR || acre_monotonic_ns() > until_ns) {
            return false;
        }
    }
    if ((fd.revents & POLLIN) == 0) {
        return false;
    }
    siginfo_t info = {0};
    while (waitid(P_PIDFD, (id_t)remote->pidfd, &info, WEXITED | WNOHANG) < 0 && errno == EINTR) {
    }
    explain(remote, &info);
    atomic_store(&remote->ended, true);
    return true;
}

int remote_refuse(struct remote *remote, struct acre_error *err) {
    pthread_mutex_lock(&remote->lock);
    int r = acre_fail(err, ACRE_EUNAVAILABLE, "%s", remote->why);
    pthread_mutex_unlock(&remote->lock);
    return r;
}

int remote_look(struct remote *remote, struct acre_error *err) {
    pthread_mutex_lock(&remote->lock);
    bool has_ended = collect(remote, 0) || remote->why[0] != '\0';
    pthread_mutex_unlock(&remote->lock);
    return has_ended ? remote_refuse(remote, err) : 0;
}

void remote_sleep(const struct remote *remote, int fd) {
    uint64_t count;
    struct pollfd fds[] = {{.fd = fd, .events = POLLIN}, {.fd = remote->pidfd, .events = POLLIN}};
    if (poll(fds, ACRE_COUNT(fds), -1) > 0 && fds[0].revents != 0) {
        ssize_t got = read(fd, &count, sizeof(count));
        (void)got; /* cleared by another: fine */
    }
}

/* Who sleeps looks again. */
static void wake_all(const struct remote *remote) {
    uint64_t one = 1;
    ssize_t written = write(remote->room_fd, &one, sizeof(one));
    for (size_t i = 0; i < WIRE_SLOTS; i++) {
        written = write(remote->answer_fds[i], &one, sizeof(one));
    }
    (void)written; /* full: then it wakes already */
}

/* Lock held. Kill it if it runs, and have it gone; false: it stays, in the driver. Then nobody
 * waits for it any longer, nor will: `why` is what they are told. */
static bool end(struct remote *remote, const char *why) {
    if (collect(remote, 0)) {
        return true;
    }
    if (remote->why[0] != '\0') {
        return false; /* killed before, and waited for */
    }
    snprintf(remote->why, sizeof(remote->why), "%s", why);
    syscall(SYS_pidfd_send_signal, remote->pidfd, SIGKILL, NULL, 0);
    bool is_gone = collect(remote, remote->end_limit_ms);
    if (!is_gone) {
        wake_all(remote);
    }
    return is_gone;
}

void remote_end(void *seat, const char *why) {
    struct remote *remote = seat;
    pthread_mutex_lock(&remote->lock);
    end(remote, why);
    pthread_mutex_unlock(&remote->lock);
}

/* The number goes first: a child that is forked in between must not close another file by it. */
static void close_fd(int *fd) {
    int number = *fd;
    *fd = -1;
    if (number >= 0) {
        close(number);
    }
}

/* --- its beginning -------------------------------------------------------------------------- */

static void set_table(struct backend *table, uint64_t can) {
    *table = backend_remote;
    table->stream_own = can & WIRE_CAN_OWN ? table->stream_own : NULL;
    table->wait = can & WIRE_CAN_WAIT ? table->wait : NULL;
    table->compile = can & WIRE_CAN_COMPILE ? table->compile : NULL;
    table->transfer = can & WIRE_CAN_TRANSFER ? table->transfer : NULL;
    if ((can & WIRE_CAN_GRAPH) == 0) {
        table->graph_create = NULL;
        table->graph_update = NULL;
        table->graph_launch = NULL;
        table->graph_destroy = NULL;
    }
    if ((can & WIRE_CAN_PROFILE) == 0) {
        table->profile = NULL;
        table->timings = NULL;
    }
    if ((can & WIRE_CAN_EXPORT) == 0) {
        table->region_export = NULL;
        table->region_import = NULL;
    }
}

/* The runner's next note; -ETIMEDOUT: none came. */
static int hear(struct remote *remote, int timeout_ms, struct wire_note *ret_note) {
    /* Its pidfd too: a child of the program may have a copy of its end of the socket. */
    struct pollfd ready[] = {{.fd = remote->socket, .events = POLLIN},
                             {.fd = remote->pidfd, .events = POLLIN}};
    int fds[WIRE_FDS];
    uint32_t count = 0;
    int polled;
    do {
        polled = poll(ready, ACRE_COUNT(ready), timeout_ms);
    } while (polled < 0 && errno == EINTR);
    if (polled == 0) {
        return -ETIMEDOUT;
    }
    int r = wire_receive(remote->socket, ret_note, MSG_DONTWAIT, fds, &count);
    for (uint32_t i = 0; i < count && r == 0; i++) {
        close(fds[i]);
    }
    return r;
}

static int greet(struct remote *remote, struct acre_error *err) {
    struct wire_note note = {.magic = WIRE_MAGIC,
                             .kind = WIRE_NOTE_HELLO,
                             .device = remote->device,
                             .number = (uint64_t)getpid()};
    memcpy(note.backend, remote->backend, sizeof(note.backend));
    int fds[WIRE_FDS] = {remote->shared_fd, remote->host_fd, remote->room_fd};
    memcpy(fds + 3, remote->answer_fds, sizeof(remote->answer_fds));
    int r = wire_send(remote->socket, &note, fds, WIRE_FDS);
    r = r == 0 ? hear(remote, READY_LIMIT_MS, &note) : r;
    if (r == -ETIMEDOUT) {
        return acre_fail(err, ACRE_ETIMEOUT, "the runner is not ready after %d s",
                         READY_LIMIT_MS / 1000);
    }
    if (r < 0 || note.kind != WIRE_NOTE_READY) {
        pthread_mutex_lock(&remote->lock);
        bool has_ended = collect(remote, BYE_LIMIT_MS);
        r = acre_fail(err, ACRE_EUNAVAILABLE, "the runner did not start: %s%s",
                      has_ended ? remote->why : "it does not speak this version's protocol: ",
                      has_ended ? "" : remote->program);
        pthread_mutex_unlock(&remote->lock);
        return r;
    }
    if (note.error.code != 0) {
        bool is_known = strcmp(acre_error_name(note.error.code), "UNKNOWN") != 0;
        return acre_fail(err, is_known ? note.error.code : ACRE_EINTERNAL, "%s", note.error.text);
    }
    if (remote->table.name == NULL) { /* a later runner can the same, and others read it */
        set_table(&remote->table, note.number);
    }
    return 0;
}

/* Nobody else looks at it: the runner before has ended, and callers see `ended`. */
static void clear_shared(struct remote *remote) {
    struct wire_shared *shared = remote->shared;
    madvise(shared, sizeof(*shared), MADV_REMOVE); /* all zero, and nothing held */
    shared->magic = WIRE_MAGIC;
    pthread_mutex_lock(&remote->queue_lock);
    remote->head = remote->tail = 0;
    remote_forget_eventfds(remote);
    pthread_mutex_unlock(&remote->queue_lock);
}

static int start(struct remote *remote, struct acre_error *err) {
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0) {
        return acre_fail_errno(err, errno, "socket of a runner");
    }
    /* Above the number it gets there, so that it is not closed by its own copy. */
    int theirs = fcntl(sockets[1], F_DUPFD_CLOEXEC, WIRE_SOCKET_FD + 1);
    close(sockets[1]);
    remote->socket = sockets[0];
    int error = theirs < 0 ? errno : spawn(remote->program, theirs, &remote->pid);
    close_fd(&theirs);
    if (error != 0) {
        return acre_fail_errno(err, error, "%s", remote->program);
    }
    int pidfd = (int)syscall(SYS_pidfd_open, remote->pid, 0);
    error = errno;
    pthread_mutex_lock(&remote->lock);
    remote->pidfd = pidfd;
    pthread_mutex_unlock(&remote->lock);
    if (pidfd < 0) {
        kill(remote->pid, SIGKILL);
        waitpid(remote->pid, NULL, 0);
        return acre_fail_errno(err, error, "pidfd of a runner");
    }
    pthread_mutex_lock(&remote->lock);
    remote->why[0] = '\0';
    pthread_mutex_unlock(&remote->lock);
    clear_shared(remote);
    atomic_store(&remote->ended, false);
    int r = greet(remote, err);
    if (r < 0) {
        remote_end(remote, err != NULL ? err->text : "the runner did not start");
    }
    return r;
}

int remote_restart(void *seat, struct acre_error *err) {
    struct remote *remote = seat;
    pthread_mutex_lock(&remote->lock);
    bool is_gone = end(remote, "the runner is being restarted");
    pthread_mutex_unlock(&remote->lock);
    if (!is_gone) {
        return acre_fail(err, ACRE_EUNAVAILABLE, "the previous runner (process %d) does not end",
                         (int)remote->pid);
    }
    remote_drain(remote); /* who waits looks at this pidfd, and at slots that are cleared now */
    pthread_mutex_lock(&remote->lock); /* others may look whether it has ended */
    close_fd(&remote->socket);
    close_fd(&remote->pidfd);
    pthread_mutex_unlock(&remote->lock);
    return start(remote, err);
}

/* --- the seat ------------------------------------------------------------------------------ */

static int make_file(const char *name, off_t bytes, int seals, struct acre_error *err) {
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || ftruncate(fd, bytes) < 0 || fcntl(fd, F_ADD_SEALS, seals) < 0) {
        int error = errno;
        close_fd(&fd);
        return acre_fail_errno(err, error, "shared memory of a runner");
    }
    return fd;
}

static int make_shared(struct remote *remote, struct acre_error *err) {
    remote->shared_fd = make_file("acre-runner", sizeof(struct wire_shared),
                                  F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, err);
    if (remote->shared_fd < 0) {
        return remote->shared_fd;
    }
    remote->host_fd = make_file("acre-host", 0, F_SEAL_SHRINK | F_SEAL_SEAL, err);
    if (remote->host_fd < 0) {
        return remote->host_fd;
    }
    for (uint32_t i = 0; i < WIRE_SLOTS + 1; i++) {
        int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (fd < 0) {
            return acre_fail_errno(err, errno, "eventfd of a runner");
        }
        *(i < WIRE_SLOTS ? &remote->answer_fds[i] : &remote->room_fd) = fd;
    }
    void *shared = wire_map(remote->shared_fd, 0, sizeof(struct wire_shared));
    if (shared == MAP_FAILED) {
        return acre_fail_errno(err, errno, "shared memory of a runner");
    }
    remote->shared = shared;
    return 0;
}

int remote_open(const char *backend, uint32_t device, void **ret_seat, struct acre_error *err) {
    struct remote *remote = calloc(1, sizeof(*remote));
    if (remote == NULL) {
        return acre_fail(err, ACRE_ENOMEM, "runner");
    }
    remote->shared_fd = remote->host_fd = remote->room_fd = remote->socket = remote->pidfd = -1;
    memset(remote->answer_fds, 0xff, sizeof(remote->answer_fds));
    snprintf(remote->backend, sizeof(remote->backend), "%s", backend);
    remote->device = device;
    remote->end_limit_ms = END_LIMIT_MS;
    pthread_mutex_init(&remote->queue_lock, NULL);
    pthread_mutex_init(&remote->slot_lock, NULL);
    pthread_mutex_init(&remote->lock, NULL);
    pthread_cond_init(&remote->slot_freed, NULL);
    atomic_store(&remote->ended, true);
    int r = find_program(remote->program, err);
    r = r < 0 ? r : make_shared(remote, err);
    r = r < 0 ? r : start(remote, err);
    if (r < 0) {
        remote_close(remote);
        return r;
    }
    *ret_seat = remote;
    return 0;
}

/* Lock held. One that answers is given its time to end by itself: killed, it would keep to itself
 * what a tool in it has found. */
static void say_bye(struct remote *remote) {
    struct wire_note note = {.magic = WIRE_MAGIC, .kind = WIRE_NOTE_BYE};
    if (wire_send(remote->socket, &note, NULL, 0) == 0 && hear(remote, BYE_LIMIT_MS, &note) == 0 &&
        note.kind == WIRE_NOTE_BYE) {
        collect(remote, CLEAN_LIMIT_MS);
    }
}

static void close_all(struct remote *remote) {
    int *const fds[] = {&remote->shared_fd, &remote->host_fd, &remote->room_fd, &remote->socket,
                        &remote->pidfd};
    for (size_t i = 0; i < ACRE_COUNT(fds); i++) {
        close_fd(fds[i]);
    }
    for (size_t i = 0; i < WIRE_SLOTS; i++) {
        close_fd(&remote->answer_fds[i]);
    }
}

void remote_let_go(void *seat) {
    struct remote *remote = seat;
    if (pthread_mutex_trylock(&remote->lock) != 0) {
        return; /* somebody was changing them */
    }
    for (const struct remote_map *map = remote->maps; map != NULL; map = map->next) {
        munmap(map->host, map->bytes);
    }
    munmap(remote->shared, sizeof(*remote->shared));
    close_all(remote);
}

void remote_close(void *seat) {
    struct remote *remote = seat;
    pthread_mutex_lock(&remote->lock);
    if (!collect(remote, 0)) {
        say_bye(remote);
    }
    end(remote, "closed");
    pthread_mutex_unlock(&remote->lock);
    remote_forget_eventfds(remote);
    while (remote->maps != NULL) {
        remote_unmap(remote, remote->maps->host, remote->maps->bytes);
    }
    if (remote->shared != NULL) {
        munmap(remote->shared, sizeof(*remote->shared));
    }
    close_all(remote);
    pthread_cond_destroy(&remote->slot_freed);
    pthread_mutex_destroy(&remote->lock);
    pthread_mutex_destroy(&remote->slot_lock);
    pthread_mutex_destroy(&remote->queue_lock);
    free(remote);
}

bool remote_has_ended(void *seat) {
    return remote_look(seat, NULL) < 0;
}

int remote_pidfd(void *seat) {
    return ((struct remote *)seat)->pidfd;
}

const struct backend *remote_table(void *seat) {
    return &((struct remote *)seat)->table;
}
