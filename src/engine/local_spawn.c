/* local_spawn.c - starting the spawner, feeding it, and replacing it should it die.
 *
 * At most ACRE_LOCAL_WINDOW starts are in the socket at a time; the rest waits here in order. The
 * spawner's notes count those it has taken over. If it dies, the starts it had not yet counted are
 * looked up one by one: those with a record run (their supervisors live on), the others are sent to
 * the next spawner. A spawner that cannot be started makes the waiting runs fail, with the reason.
 */
#include "engine/local_state.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ABOVE_FIXED_FDS = 16, SPAWNER_FAILURES_MAX = 3 };

/* ---- queues ---- */

static void push(struct local_queue *queue, struct local_run *run) {
    run->queue_next = NULL;
    if (queue->first == NULL) {
        queue->last = &queue->first;
    }
    *queue->last = run;
    queue->last = &run->queue_next;
}

static struct local_run *pop(struct local_queue *queue) {
    struct local_run *run = queue->first;
    if (run != NULL) {
        queue->first = run->queue_next;
        run->queue_next = NULL;
    }
    return run;
}

/* The oldest start that the spawner has not counted yet. NULL: forgotten meanwhile. */
static struct local_run *take_sent(struct local *self) {
    struct acre_run run = self->sent[self->sent_first];
    self->sent_first = (self->sent_first + 1) % ACRE_LOCAL_WINDOW;
    self->in_flight--;
    return local_find(self, run);
}

static void open_or_fail(struct local *self) {
    struct acre_error err = {0};
    if (local_open_spawner(self, &err) < 0) {
        for (struct local_run *run; (run = pop(&self->queued)) != NULL;) {
            local_not_started(self, run, err.text);
        }
    }
}

/* ---- sending ---- */

/* A long start goes through a memory file; what is sent is the run's name and the descriptor. */
static ssize_t send_file(int socket, const struct local_run *run) {
    int fd = memfd_create("start", MFD_CLOEXEC);
    size_t done = 0;
    while (fd >= 0 && done < run->message.length) {
        ssize_t wrote = write(fd, run->message.data + done, run->message.length - done);
        if (wrote < 0) {
            break;
        }
        done += (size_t)wrote;
    }
    ssize_t sent = -1;
    if (fd >= 0 && done == run->message.length) {
        union {
            struct cmsghdr header;
            char bytes[CMSG_SPACE(sizeof(int))];
        } control = {.bytes = {0}};
        struct acre_run name = run->run;
        struct iovec part = {.iov_base = &name, .iov_len = sizeof(name)};
        struct msghdr message = {.msg_iov = &part,
                                 .msg_iovlen = 1,
                                 .msg_control = control.bytes,
                                 .msg_controllen = sizeof(control.bytes)};
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(header), &fd, sizeof(fd));
        sent = sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    if (fd >= 0) {
        int error = errno;
        close(fd);
        errno = error;
    }
    return sent;
}

static void flush(struct local *self) {
    while (self->spawner >= 0 && self->in_flight < ACRE_LOCAL_WINDOW &&
           self->queued.first != NULL) {
        struct local_run *run = self->queued.first;
        ssize_t sent = run->message.length <= ACRE_WIRE_INLINE_MAX
                           ? send(self->spawner, run->message.data, run->message.length,
                                  MSG_DONTWAIT | MSG_NOSIGNAL)
                           : send_file(self->spawner, run);
        if (sent < 0) {
            return; /* full, or gone: a note or the end of the socket comes */
        }
        pop(&self->queued);
        run->stage = ACRE_LOCAL_SENT;
        self->sent[(self->sent_first + self->in_flight) % ACRE_LOCAL_WINDOW] = run->run;
        self->in_flight++;
    }
}

void local_enqueue(struct local *self, struct local_run *run) {
    run->stage = ACRE_LOCAL_QUEUED;
    push(&self->queued, run);
    if (self->spawner < 0) {
        open_or_fail(self); /* it was given up; maybe things are better now */
    }
    flush(self);
}

/* ---- the process ---- */

static void find_program(const struct local *self, char path[PATH_MAX]) {
    if (self->program != NULL) {
        snprintf(path, PATH_MAX, "%s", self->program);
        return;
    }
    ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
    path[length > 0 ? length : 0] = '\0';
    char *name = strrchr(path, '/');
    if (name != NULL && (size_t)(name - path) + sizeof("/acre-shim") <= PATH_MAX) {
        memcpy(name, "/acre-shim", sizeof("/acre-shim"));
        if (access(path, X_OK) == 0) {
            return;
        }
    }
    snprintf(path, PATH_MAX, "/proc/self/exe");
}

/* Our descriptors to their fixed numbers: from copies above all of those, so that none is
 * overwritten before it was copied. */
static int spawn(struct local *self, int theirs) {
    const int from[3] = {theirs, self->state, self->lock};
    int above[3] = {-1, -1, -1};
    char path[PATH_MAX];
    char *const argv[] = {(char[]){"acre"}, (char[]){"shim"}, NULL};
    char *const environment[] = {NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    sigemptyset(&none);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSID);
    int error = 0;
    for (int i = 0; i < 3 && error == 0; i++) {
        above[i] = fcntl(from[i], F_DUPFD_CLOEXEC, ABOVE_FIXED_FDS);
        error = above[i] < 0
                    ? errno
                    : posix_spawn_file_actions_adddup2(&actions, above[i], ACRE_WIRE_SOCKET_FD + i);
    }
    if (error == 0) {
        find_program(self, path);
        error = posix_spawn(&self->spawner_pid, path, &actions, &attributes, argv, environment);
    }
    for (int i = 0; i < 3; i++) {
        if (above[i] >= 0) {
            close(above[i]);
        }
    }
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return error;
}

static int greet(struct local *self) {
    struct acre_wire_hello hello;
    memset(&hello, 0, sizeof(hello)); /* padding too: it travels */
    hello.magic = ACRE_WIRE_MAGIC;
    hello.filter_bytes = (uint32_t)self->filter.length;
    hello.cgroup = self->cgroup;
    hello.log_max_bytes = self->log_max_bytes;
    hello.is_root = self->is_root;
    struct iovec parts[2] = {{&hello, sizeof(hello)}, {self->filter.data, self->filter.length}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    return sendmsg(self->spawner, &message, MSG_NOSIGNAL) >= 0 ? 0 : errno;
}

static void on_spawner(void *context);

int local_open_spawner(struct local *self, struct acre_error *err) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        return acre_fail_errno(err, errno, "spawner");
    }
    int error = spawn(self, ends[1]);
    close(ends[1]);
    if (error != 0) {
        close(ends[0]);
        return acre_fail_errno(err, error, "spawner %s",
                               self->program != NULL ? self->program : "(this program)");
    }
    self->spawner = ends[0];
    self->in_flight = 0;
    error = greet(self);
    self->spawner_watch =
        error == 0 ? acre_loop_watch(self->loop, self->spawner, on_spawner, self, err) : NULL;
    if (self->spawner_watch == NULL) {
        local_close_spawner(self);
        return error != 0
                   ? acre_fail(err, ACRE_EUNAVAILABLE, "%s ended before it could start supervisors",
                               self->program != NULL ? self->program : "acre shim")
                   : ACRE_EIO;
    }
    flush(self);
    return 0;
}

void local_close_spawner(struct local *self) {
    acre_watch_cancel(self->spawner_watch);
    self->spawner_watch = NULL;
    if (self->spawner >= 0) {
        close(self->spawner); /* it takes over what is in the socket, then it ends */
        self->spawner = -1;
        while (waitpid(self->spawner_pid, NULL, 0) < 0 && errno == EINTR) {
        }
    }
}

/* Its children are orphans now; what it had not counted may or may not have been started. */
static void replace_spawner(struct local *self) {
    local_close_spawner(self);
    local_read_facts(self);
    struct local_queue rest = {0};
    while (self->in_flight > 0) {
        struct local_run *run = take_sent(self);
        struct fact fact;
        if (run != NULL && run->stage == ACRE_LOCAL_SENT &&
            local_look(self, run->run, &fact) == ACRE_LOCAL_ABSENT) {
            run->stage = ACRE_LOCAL_QUEUED;
            push(&rest, run);
        } else if (run != NULL) {
            acre_buf_finish(&run->message);
        }
    }
    for (struct local_run *run; (run = pop(&self->queued)) != NULL;) {
        push(&rest, run);
    }
    self->queued = rest;
    self->spawner_failures++;
    if (self->spawner_failures < SPAWNER_FAILURES_MAX) {
        open_or_fail(self);
    }
    for (struct local_run *run; self->spawner < 0 && (run = pop(&self->queued)) != NULL;) {
        local_not_started(self, run, "the program that starts supervisors keeps failing");
    }
    for (uint32_t i = self->known.count; i-- > 0;) {
        struct local_run *run = acre_local_at(self, i);
        if (run->stage == ACRE_LOCAL_SENT || run->stage == ACRE_LOCAL_RUNNING) {
            run->orphan = true;
            local_check(self, run); /* and watch it: no spawner does now */
        }
    }
}

static void handle(struct local *self, const struct shim_note *note) {
    self->spawner_failures = 0;
    for (uint32_t i = 0; i < note->handled && self->in_flight > 0; i++) {
        struct local_run *run = take_sent(self);
        if (run != NULL) {
            acre_buf_finish(&run->message);
        }
    }
    if (note->failed != 0) {
        struct local_run *run = local_find(self, note->run);
        if (run != NULL && run->stage == ACRE_LOCAL_SENT) {
            struct acre_error err = {0};
            acre_fail_errno(&err, (int)note->failed, "supervisor");
            local_not_started(self, run, err.text);
        }
    }
    if (note->lost_pid != 0) {
        local_read_facts(self); /* it may have told its end before */
        for (uint32_t i = self->known.count; i-- > 0;) {
            struct local_run *run = acre_local_at(self, i);
            bool may_be_it = run->shim_pid == 0 || run->shim_pid == note->lost_pid;
            if (may_be_it && (run->stage == ACRE_LOCAL_SENT || run->stage == ACRE_LOCAL_RUNNING)) {
                run->supervisor_gone = run->supervisor_gone || run->shim_pid != 0;
                local_check(self, run);
            }
        }
    }
}

static void on_spawner(void *context) {
    struct local *self = context;
    for (;;) {
        struct shim_note note;
        ssize_t got = recv(self->spawner, &note, sizeof(note), MSG_DONTWAIT);
        if (got == (ssize_t)sizeof(note)) {
            handle(self, &note);
        } else if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
            break;
        } else {
            replace_spawner(self);
            return;
        }
    }
    flush(self);
}
