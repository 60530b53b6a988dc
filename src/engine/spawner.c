/* spawner.c - the process that forks supervisors.
 *
 * A daemon with threads and hundreds of mappings should not fork: it would copy page tables for
 * half a millisecond each time. So it starts this one small process once and sends it the starts.
 * For each the spawner makes and locks the run's record file and forks; the lock passes to the
 * child with the descriptor. Because the spawner also holds (a copy of) the daemon's lock on the
 * state directory, a later daemon that gets that lock knows: every start that was ever accepted
 * has its record by now, and no other will appear.
 *
 * Notes to the daemon are counted, not sent one for one: it only needs to know how many starts
 * may still be in the socket. A child that ended otherwise than by exit(0) did not finish its
 * work: its pid is reported to the daemon. */
#include "engine/shim.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct spawner {
    struct acre_wire_hello hello;
    struct acre_shim shim;
    int runs_directory;
    int signals;
    uint32_t handled; /* not yet told */
    char *buffer;     /* ACRE_WIRE_INLINE_MAX */
};

/* A full socket, or a daemon that is gone: the next receive tells which; nothing is lost that
 * the record files do not say. */
static void tell(struct spawner *spawner, struct shim_note note) {
    note.handled = spawner->handled;
    if (send(ACRE_WIRE_SOCKET_FD, &note, sizeof(note), MSG_NOSIGNAL) >= 0) {
        spawner->handled = 0;
    }
}

/* A start that came in a memory file; NULL: it cannot be read. A mapping, of which nothing is left
 * in the heap that all supervisors inherit. */
static char *map_file(int fd, size_t *ret_length) {
    struct stat info;
    if (fstat(fd, &info) != 0 || info.st_size <= ACRE_WIRE_INLINE_MAX ||
        info.st_size > ACRE_WIRE_START_MAX) {
        return NULL;
    }
    *ret_length = (size_t)info.st_size;
    char *bytes = mmap(NULL, *ret_length, PROT_READ, MAP_PRIVATE, fd, 0);
    return bytes != MAP_FAILED ? bytes : NULL;
}

/* A run that is to see no other processes has its supervisor as the first of a PID namespace: what
 * is left in it ends with that process, whatever happens. */
static pid_t fork_supervisor(bool private_processes) {
    struct clone_args args = {.flags = CLONE_NEWPID, .exit_signal = SIGCHLD};
    return private_processes ? (pid_t)syscall(SYS_clone3, &args, sizeof(args)) : fork();
}

/* Make the record, fork. The run is the first field of a start. */
static void start(struct spawner *spawner, char *bytes, size_t length) {
    struct acre_run run;
    char name[ACRE_RUN_NAME_MAX];
    if (length < sizeof(struct wire_job)) {
        return;
    }
    memcpy(&run, bytes + offsetof(struct wire_job, run), sizeof(run));
    run_make_name(run, name);
    int record = openat(spawner->runs_directory, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    /* The daemon may be looking at it, with a lock of its own: that takes no time. */
    if (record < 0 || flock(record, LOCK_EX) != 0) {
        if (errno != EEXIST) { /* exists: was started before, and is not started again */
            tell(spawner, (struct shim_note){.failed = (uint32_t)errno, .run = run});
        }
        if (record >= 0) {
            close(record);
        }
        return;
    }
    spawner->shim.record = record;
    uint8_t private_processes = (uint8_t)bytes[offsetof(struct wire_job, private_processes)];
    pid_t child = fork_supervisor(private_processes != 0);
    if (child == 0) {
        close(ACRE_WIRE_SOCKET_FD);
        close(ACRE_WIRE_LOCK_FD);
        close(spawner->signals);
        close(spawner->runs_directory);
        for (int fd = 0; fd < 3; fd++) { /* whoever reads the daemon's output must see its end */
            dup2(spawner->shim.null, fd);
        }
        acre_shim_supervise(&spawner->shim, bytes, length);
    }
    int error = errno;
    close(record);
    if (child < 0) {
        unlinkat(spawner->runs_directory, name, 0);
        tell(spawner, (struct shim_note){.failed = (uint32_t)error, .run = run});
    }
}

/* Take one message; false when there is none now. Ends the process when there will be none. */
static bool receive(struct spawner *spawner) {
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec part = {.iov_base = spawner->buffer, .iov_len = ACRE_WIRE_INLINE_MAX};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof(control.bytes)};
    ssize_t got = recvmsg(ACRE_WIRE_SOCKET_FD, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return false;
    }
    if (got <= 0) {
        exit(0); /* the daemon is gone */
    }
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header != NULL && header->cmsg_type == SCM_RIGHTS) {
        int fd;
        memcpy(&fd, CMSG_DATA(header), sizeof(fd));
        size_t length = 0;
        char *bytes = map_file(fd, &length);
        close(fd);
        if (bytes != NULL) {
            start(spawner, bytes, length);
            munmap(bytes, length);
        } else if (got == (ssize_t)sizeof(struct acre_run)) { /* comes along, for this case */
            struct shim_note note = {.failed = EIO};
            memcpy(&note.run, spawner->buffer, sizeof(note.run));
            tell(spawner, note);
        }
    } else {
        start(spawner, spawner->buffer, (size_t)got);
    }
    spawner->handled++;
    return true;
}

static void reap(struct spawner *spawner) {
    struct signalfd_siginfo info;
    while (read(spawner->signals, &info, sizeof(info)) > 0) {
    }
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
        if (status != 0) {
            tell(spawner, (struct shim_note){.lost_pid = pid});
        }
    }
}

/* The first message: how things are here. */
static bool greet(struct spawner *spawner) {
    ssize_t got = recv(ACRE_WIRE_SOCKET_FD, spawner->buffer, ACRE_WIRE_INLINE_MAX, 0);
    if (got < (ssize_t)sizeof(spawner->hello)) {
        return false;
    }
    memcpy(&spawner->hello, spawner->buffer, sizeof(spawner->hello));
    size_t bytes = spawner->hello.filter_bytes;
    if (spawner->hello.magic != ACRE_WIRE_MAGIC || (size_t)got != sizeof(spawner->hello) + bytes ||
        bytes % sizeof(struct sock_filter) != 0) {
        return false;
    }
    struct sock_filter *filter = bytes > 0 ? acre_calloc(bytes, 1) : NULL;
    if (filter != NULL) {
        memcpy(filter, spawner->buffer + sizeof(spawner->hello), bytes);
    }
    spawner->shim = (struct acre_shim){
        .hello = &spawner->hello,
        .filter = filter,
        .filter_length = (uint16_t)(bytes / sizeof(struct sock_filter)),
        .null = open("/dev/null", O_RDWR | O_CLOEXEC),
        .logs_directory = openat(ACRE_WIRE_STATE_FD, ACRE_LOGS_DIRECTORY,
                                 O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
        .facts = openat(ACRE_WIRE_STATE_FD, ACRE_FACT_PIPE, O_WRONLY | O_NONBLOCK | O_CLOEXEC),
    };
    spawner->runs_directory =
        openat(ACRE_WIRE_STATE_FD, ACRE_RUNS_DIRECTORY, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return spawner->shim.null >= 0 && spawner->shim.logs_directory >= 0 &&
           spawner->shim.facts >= 0 && spawner->runs_directory >= 0;
}

/* Everything blocked, so that no signal is missed between a fork and the child's first look; and
 * every signal with its default meaning, because the jobs will inherit it. */
static int prepare_signals(void) {
    for (int number = 1; number < NSIG; number++) {
        signal(number, SIG_DFL); /* refused for a few: they cannot be changed */
    }
    sigset_t all, children;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    return signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
}

int acre_shim_main(int argc, char **argv) {
    (void)argc;
    (void)argv;
    int kind = 0;
    socklen_t size = sizeof(kind);
    if (getsockopt(ACRE_WIRE_SOCKET_FD, SOL_SOCKET, SO_TYPE, &kind, &size) != 0 ||
        kind != SOCK_SEQPACKET) {
        fputs("acre shim: 'acre serve' starts this for its jobs; do not start it by hand\n",
              stderr);
        return acre_error_exit(ACRE_EINVALID);
    }
    for (int fd = ACRE_WIRE_SOCKET_FD; fd <= ACRE_WIRE_LOCK_FD; fd++) {
        fcntl(fd, F_SETFD, FD_CLOEXEC);
    }
    /* What the daemon was started with and did not mean for us. Older kernels: it stays. */
    (void)syscall(SYS_close_range, ACRE_WIRE_LOCK_FD + 1U, ~0U, 0U);
    struct spawner spawner = {.buffer = acre_calloc(ACRE_WIRE_INLINE_MAX, 1)};
    spawner.signals = prepare_signals();
    if (spawner.signals < 0 || !greet(&spawner)) {
        free(spawner.buffer);
        return acre_error_exit(ACRE_EIO);
    }
    cgroup_leave(&spawner.hello.cgroup);
    for (;;) {
        struct pollfd fds[] = {{.fd = ACRE_WIRE_SOCKET_FD, .events = POLLIN},
                               {.fd = spawner.signals, .events = POLLIN}};
        if (poll(fds, 2, -1) < 0) {
            continue;
        }
        if (fds[1].revents != 0) {
            reap(&spawner);
        }
        while (fds[0].revents != 0 && receive(&spawner)) {
            if (spawner.handled >= ACRE_WIRE_ACK_EVERY) {
                tell(&spawner, (struct shim_note){0});
            }
        }
        if (spawner.handled > 0) {
            tell(&spawner, (struct shim_note){0});
        }
    }
}
