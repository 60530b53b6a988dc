/* sandbox.c - from the supervisor to the command, as few system calls as it takes.
 *
 * The child runs in the supervisor's memory, on a stack of its own, until it has become the
 * command. That spares copying page tables (0.1 ms of a start that takes 0.6 ms), and a failure is
 * reported by a plain store. Unlike after vfork, the supervisor does not wait: what the user's
 * files do to a chdir or an exec (a lease, a network that hangs, SIGSTOP) must not keep it from its
 * limits and signals. A pipe that exec closes says when the child is done with our memory.
 *
 * Both run at the same time, on one thread-local storage. So the child calls the kernel and nothing
 * else: libc's wrappers would write to the supervisor's errno. It changes nothing but its own
 * struct child_start. libc has no clone of this kind with CLONE_INTO_CGROUP, hence the few
 * lines of assembly. Sanitizers do not follow a second stack, and other machines have other
 * instructions: there the child gets its own copy of the memory, and the start is in a shared page.
 *
 * Order matters: cgroups and user first (they need root), then no_new_privs, then the filter,
 * which forbids nothing that comes after it. Signals have their default meaning already (the
 * spawner saw to it once). The directory is entered, and the command looked up, with the rights of
 * the user, and only in processes that can be killed: the supervisor opens no path of the user. */
#include "engine/sandbox.h"

#include "core/str.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    PAGE_BYTES = 4096,
    STACK_BYTES = 64 * 1024,
    OPEN_FILES_MAX = 65536,
    SHOWN = 100,
    DIRECTORY_MS = 10000, /* a directory on a network answers in milliseconds, or not at all */
    STATUS_FD = 3,        /* in the child, where everything above 2 is closed */
};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SHARES_MEMORY 0
#elif defined(__x86_64__) || defined(__aarch64__)
#define SHARES_MEMORY 1
#else
#define SHARES_MEMORY 0
#endif

/* ---- the view ---- */

static int loopback_up(void) {
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq request = {.ifr_flags = IFF_UP | IFF_RUNNING};
    memcpy(request.ifr_name, "lo", sizeof("lo"));
    int error = fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) != 0 ? errno : 0;
    if (fd >= 0) {
        close(fd);
    }
    return error;
}

/* One file system for all three: each of its own costs as much as the namespace. */
static const char *const private_directories[] = {"/tmp", "/var/tmp", "/dev/shm"};

/* Below a private place, and spelled so that it cannot be anywhere else. */
static bool is_hidden(const char *directory) {
    for (size_t i = 0; i < ACRE_COUNT(private_directories); i++) {
        size_t length = strlen(private_directories[i]);
        if (strncmp(directory, private_directories[i], length) == 0 && directory[length] == '/') {
            return strstr(directory, "/..") == NULL && strlen(directory) < PATH_MAX;
        }
    }
    return false;
}

/* What the working directory is when all links are followed. */
struct real_directory {
    int fd; /* of one below a private directory, which is shown again; -1: of another */
    char path[PATH_MAX]; /* "": it is not there for this user */
};

static void send_real(int socket, const struct real_directory *real) {
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {.bytes = {0}};
    struct iovec part = {.iov_base = (char *)(uintptr_t)real->path, .iov_len = strlen(real->path)};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (real->fd >= 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof(control.bytes);
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(&control.header), &real->fd, sizeof(real->fd));
    }
    sendmsg(socket, &message, MSG_NOSIGNAL);
}

/* Unchanged: nothing came, and nothing will. */
static void receive_real(int socket, struct real_directory *ret_real) {
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec part = {.iov_base = ret_real->path, .iov_len = sizeof(ret_real->path) - 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof(control.bytes)};
    ssize_t got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    ret_real->path[got > 0 ? got : 0] = '\0';
    if (got > 0 && CMSG_FIRSTHDR(&message) != NULL) {
        memcpy(&ret_real->fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(ret_real->fd));
    }
}

/* Never by /proc/self/fd/5 and its like: what we have open is of the view outside. */
static int open_directory(int from, const char *path, uint64_t resolve) {
    struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
                           .resolve = RESOLVE_NO_MAGICLINKS | resolve};
    return (int)syscall(SYS_openat2, from, path, &how, sizeof(how));
}

static bool find_path_of(int fd, char path[PATH_MAX]) {
    char link[32];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t length = fd >= 0 ? readlink(link, path, PATH_MAX - 1) : -1;
    path[length > 0 ? length : 0] = '\0';
    return length > 0;
}

/* If it is below a private directory: open it again from there, so that no link leads elsewhere. */
static void find_below(const char *private_directory, struct real_directory *real) {
    char top[PATH_MAX], path[PATH_MAX];
    int from = open_directory(AT_FDCWD, private_directory, 0);
    size_t length = find_path_of(from, top) ? strlen(top) : 0;
    const char *rest = real->path + length + 1;
    if (length > 0 && strncmp(real->path, top, length) == 0 && real->path[length] == '/') {
        real->fd = open_directory(from, rest, RESOLVE_BENEATH);
        int wrote = snprintf(path, sizeof(path), "%s/%s", private_directory, rest);
        bool is_there = real->fd >= 0 && wrote < (int)sizeof(path);
        memcpy(real->path, is_there ? path : "", is_there ? (size_t)wrote + 1 : 1);
    }
}

static _Noreturn void find_directory(const struct sandbox_view *view, int socket) {
    struct real_directory real = {.fd = -1};
    /* Raw calls: libc's would wait for threads that this process, made by clone3, does not have. */
    if (cgroup_join(view->group) == 0 &&
        syscall(SYS_setgroups, view->group_count, view->groups) == 0 &&
        syscall(SYS_setresgid, view->gid, view->gid, view->gid) == 0 &&
        syscall(SYS_setresuid, view->uid, view->uid, view->uid) == 0 &&
        prctl(PR_SET_DUMPABLE, 0) == 0 &&
        find_path_of(open_directory(AT_FDCWD, view->directory, 0), real.path)) {
        for (size_t i = 0; i < ACRE_COUNT(private_directories) && real.fd < 0; i++) {
            find_below(private_directories[i], &real);
        }
        send_real(socket, &real);
    }
    _exit(0);
}

/* The directory as the user finds it, with the user's groups and no others: a link to what others
 * may not enter leads nowhere. A process of the run opens it: it can hang (a file system of the
 * user's own), and then it is killed. It is reaped with the others. 0 or an errno. */
static int find_as_user(const struct sandbox_view *view, struct real_directory *ret_real) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        return errno;
    }
    struct clone_args args = {.exit_signal = SIGCHLD};
    if (view->group->directory >= 0) {
        args.flags = CLONE_INTO_CGROUP;
        args.cgroup = (uint64_t)view->group->directory;
    }
    long pid = syscall(SYS_clone3, &args, sizeof(args));
    int error = pid < 0 ? errno : 0;
    if (pid == 0) {
        find_directory(view, ends[1]);
    }
    close(ends[1]);
    struct pollfd answer = {.fd = ends[0], .events = POLLIN};
    if (pid > 0 && poll(&answer, 1, DIRECTORY_MS) > 0) {
        receive_real(ends[0], ret_real);
    } else if (pid > 0) {
        kill((pid_t)pid, SIGKILL); /* ours, and not reaped: it is nobody else's number */
        error = ETIMEDOUT;
    }
    close(ends[0]);
    return error;
}

/* The directories on the way to `path`, in the new, empty /tmp. */
static int make_parents(char *path) {
    for (char *at = strchr(path + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
        *at = '\0';
        if (mkdir(path, 0755) != 0 && errno != EEXIST) {
            return errno;
        }
        *at = '/';
    }
    return 0;
}

/* The same path with one slash between names, and without ".": two that differ are two places. */
static void simplify(const char *directory, char path[PATH_MAX]) {
    size_t length = 0;
    for (const char *name = directory; *name != '\0';) {
        size_t size = strcspn(name, "/");
        if (size > 0 && !(size == 1 && name[0] == '.')) {
            path[length++] = '/';
            memcpy(path + length, name, size);
            length += size;
        }
        name += size > 0 ? size : 1;
    }
    path[length] = '\0';
}

static int show_directory(struct real_directory *real) {
    char from[32];
    int error = make_parents(real->path);
    if (error != 0 || (mkdir(real->path, 0755) != 0 && errno != EEXIST)) {
        return error != 0 ? error : errno;
    }
    snprintf(from, sizeof(from), "/proc/self/fd/%d", real->fd);
    return mount(from, real->path, NULL, MS_BIND, NULL) != 0 ? errno : 0;
}

/* Show the working directory again in the new, empty /tmp. If a link led to it, there is a link
 * again, which is followed in the view of the job, as everything else. */
static int show_again(const char *directory, struct real_directory *real) {
    char path[PATH_MAX];
    if (real->path[0] == '\0') {
        return 0;
    }
    simplify(directory, path); /* is_hidden: it is short enough */
    if (strcmp(path, real->path) != 0) {
        int error = make_parents(path);
        if (error != 0 || (symlink(real->path, path) != 0 && errno != EEXIST)) {
            return error != 0 ? error : errno;
        }
    }
    return real->fd >= 0 ? show_directory(real) : 0;
}

static int make_private(const struct sandbox_view *view, struct acre_error *err) {
    char options[64];
    snprintf(options, sizeof(options),
             view->tmp_mib > 0 ? "mode=1777,size=%" PRIu64 "m" : "mode=1777", view->tmp_mib);
    if (mount("acre", private_directories[0], "tmpfs", MS_NOSUID | MS_NODEV, options) != 0) {
        return acre_fail_errno(err, errno, "private %s", private_directories[0]);
    }
    for (size_t i = 1; i < ACRE_COUNT(private_directories); i++) {
        if (mount(private_directories[0], private_directories[i], NULL, MS_BIND, NULL) != 0 &&
            errno != ENOENT) {
            return acre_fail_errno(err, errno, "private %s", private_directories[i]);
        }
    }
    return 0;
}

bool sandbox_can_mount(void) {
    struct statx root;
    return statx(AT_FDCWD, "/", AT_NO_AUTOMOUNT, 0, &root) != 0 ||
           (root.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) == 0 ||
           (root.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

/* Queues of messages that have files: those of our own IPC namespace. */
static int show_queues(void) {
    static const char queues[] = "/dev/mqueue";
    int r = mount("acre", queues, "mqueue", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
    return r != 0 && errno != ENOENT && errno != ENODEV ? errno : 0;
}

static int show_processes(void) {
    return mount("acre", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) != 0 ? errno : 0;
}

static int hide_files(const struct sandbox_view *view, struct acre_error *err) {
    /* Mounts made outside are still seen; ours are not seen outside. */
    if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) != 0) {
        return acre_fail_errno(err, errno, "private mounts");
    }
    struct real_directory real = {.fd = -1};
    int error = is_hidden(view->directory) ? find_as_user(view, &real) : 0;
    if (error != 0) {
        return acre_fail_errno(err, error, "working directory %s", view->directory);
    }
    int r = make_private(view, err);
    if (r == 0 && (error = show_again(view->directory, &real)) != 0) {
        r = acre_fail_errno(err, error, "working directory %s", view->directory);
    }
    if (real.fd >= 0) {
        close(real.fd);
    }
    if (r == 0 && (error = show_queues()) != 0) {
        r = acre_fail_errno(err, error, "private message queues");
    }
    if (r == 0 && view->private_processes && (error = show_processes()) != 0) {
        r = acre_fail_errno(err, error, "private /proc");
    }
    return r;
}

bool sandbox_may_hang(const struct sandbox_view *view) {
    return is_hidden(view->directory);
}

int sandbox_isolate(const struct sandbox_view *view, struct acre_error *err) {
    bool mounts = sandbox_can_mount();
    if (view->private_processes && !mounts) {
        return acre_fail(err, ACRE_EUNSUPPORTED,
                         "private_processes: not possible in a chroot; the root directory must be "
                         "a mount point");
    }
    if (unshare(CLONE_NEWIPC | (mounts ? CLONE_NEWNS : 0)) != 0) {
        return acre_fail_errno(err, errno, "private shared memory%s", mounts ? " and /tmp" : "");
    }
    int r = mounts ? hide_files(view, err) : 0;
    if (r < 0 || !view->no_network) {
        return r;
    }
    if (unshare(CLONE_NEWNET) != 0) {
        return acre_fail_errno(err, errno, "private network");
    }
    int error = loopback_up();
    return error == 0 ? 0 : acre_fail_errno(err, error, "loopback of the private network");
}

/* ---- the child ---- */

/* One child on its way. At the start of a mapping whose rest is the child's stack. */
struct child_start {
    struct sandbox sandbox; /* the caller's may change before the child is done */
    pid_t parent, pid;
    int status;   /* our end of the pipe */
    int closes;   /* the child's end */
    int64_t seen; /* its pid, as the daemon sees it; 0: not known */
    /* What went wrong on the way, written by the child. Read when the pipe has ended. */
    const char *stage; /* NULL: nothing; a literal */
    int error;
};
_Static_assert(sizeof(struct child_start) <= PAGE_BYTES, "the stack begins on the next page");

/* A system call: its result or -errno, and no trace in libc. */
#if SHARES_MEMORY && defined(__x86_64__)
static long call5(long number, long a, long b, long c, long d, long e) {
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
                     : "rcx", "r11", "memory");
    return result;
}
#elif SHARES_MEMORY
static long call5(long number, long a, long b, long c, long d, long e) {
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory");
    return x0;
}
#else
static long call5(long number, long a, long b, long c, long d, long e) {
    long result = syscall(number, a, b, c, d, e);
    return result < 0 ? -errno : result;
}
#endif

static long call(long number, long a, long b, long c) {
    return call5(number, a, b, c, 0, 0);
}

static long at(const void *pointer) {
    return (long)(uintptr_t)pointer;
}

static _Noreturn void give_up(struct child_start *start, const char *stage, long error) {
    start->error = (int)-error;
    start->stage = stage;
    for (;;) {
        call(SYS_exit_group, 127, 0, 0);
    }
}

/* In a namespace of its own the child does not know its number outside; the old /proc does. */
static void see_pid(struct child_start *start) {
    char text[24] = "";
    long length = start->sandbox.proc >= 0 ? call5(SYS_readlinkat, start->sandbox.proc, at("self"),
                                                   at(text), sizeof(text), 0)
                                           : 0;
    int64_t pid = 0;
    for (long i = 0; i < length; i++) {
        pid = pid * 10 + (text[i] - '0');
    }
    start->seen = pid;
}

static void join_groups(struct child_start *start) {
    for (size_t i = 0; i < ACRE_CGROUP_CONTROLLERS; i++) {
        int tasks = start->sandbox.group->tasks[i];
        long wrote = tasks >= 0 ? call(SYS_write, tasks, at("0"), 1) : 1;
        if (wrote < 0) {
            give_up(start, "cgroup", wrote);
        }
    }
}

static void set_limit(int resource, rlim_t soft, rlim_t hard) {
    struct rlimit limit = {soft, hard};
    call5(SYS_prlimit64, 0, resource, at(&limit), 0, 0);
}

static void set_limits(const struct sandbox *sandbox) {
    set_limit(RLIMIT_CORE, 0, 0);
    struct rlimit files;
    if (call5(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, at(&files), 0) == 0) {
        rlim_t most = ACRE_MIN(files.rlim_max, (rlim_t)OPEN_FILES_MAX);
        set_limit(RLIMIT_NOFILE, ACRE_MIN((rlim_t)1024, most), most); /* select() still works */
    }
    if (sandbox->data_mib > 0) {
        rlim_t bytes = (rlim_t)ACRE_MIN(sandbox->data_mib, UINT64_C(1) << 40) << 20;
        set_limit(RLIMIT_DATA, bytes, bytes);
    }
}

static void become_user(struct child_start *start) {
    const struct sandbox *sandbox = &start->sandbox;
    if (!sandbox->change_user) {
        return;
    }
    long r = call(SYS_setgroups, sandbox->group_count, at(sandbox->groups), 0);
    if (r != 0) {
        give_up(start, "groups of the account", r);
    }
    r = call(SYS_setresgid, sandbox->gid, sandbox->gid, sandbox->gid);
    if (r != 0) {
        give_up(start, "group of the account", r);
    }
    r = call(SYS_setresuid, sandbox->uid, sandbox->uid, sandbox->uid);
    if (r != 0) {
        give_up(start, "account", r);
    }
    /* fs.suid_dumpable may have made it the user's to trace, with the memory of the supervisor.
     * The command has memory of its own, and can be traced. */
    r = call(SYS_prctl, PR_SET_DUMPABLE, 0, 0);
    if (r != 0) {
        give_up(start, "protection from tracing", r);
    }
}

/* Of our descriptors only the status is left, until exec closes it. */
static void take_streams(struct child_start *start) {
    for (int i = 0; i < 3; i++) {
        long r = call(SYS_dup3, start->sandbox.streams[i], i, 0);
        if (r < 0) {
            give_up(start, "standard streams", r);
        }
    }
    if (start->closes != STATUS_FD) {
        call(SYS_dup3, start->closes, STATUS_FD, O_CLOEXEC);
    }
    if (call(SYS_close_range, STATUS_FD + 1, ~0U, 0) != 0) {
        for (int fd = STATUS_FD + 1; fd < 64; fd++) { /* all are close-on-exec: twice is safe */
            call(SYS_close, fd, 0, 0);
        }
    }
}

/* As chdir, but not by the links in /proc that lead past all paths. What it opens, exec closes. */
static long enter(const char *directory) {
    struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
                           .resolve = RESOLVE_NO_MAGICLINKS};
    long fd = call5(SYS_openat2, AT_FDCWD, at(directory), at(&how), sizeof(how), 0);
    if (fd == -ENOSYS) {
        return call(SYS_chdir, at(directory), 0, 0);
    }
    return fd < 0 ? fd : call(SYS_fchdir, fd, 0, 0);
}

static const char *find_path(char *const *environment) {
    for (size_t i = 0; environment[i] != NULL; i++) {
        if (strncmp(environment[i], "PATH=", 5) == 0) {
            return environment[i] + 5;
        }
    }
    return "/usr/bin:/bin";
}

/* As execvpe, without its fallback to a shell. Returns the -errno that tells most. */
static long execute(const struct sandbox *sandbox) {
    const char *name = sandbox->arguments[0];
    long arguments = at(sandbox->arguments), environment = at(sandbox->environment);
    if (strchr(name, '/') != NULL) {
        return call(SYS_execve, at(name), arguments, environment);
    }
    long error = -ENOENT;
    for (const char *entry = find_path(sandbox->environment); entry != NULL;) {
        char path[PATH_MAX];
        size_t length = strcspn(entry, ":");
        if (length > 0 && length + strlen(name) + 2 <= sizeof(path)) {
            memcpy(path, entry, length);
            path[length] = '/';
            memcpy(path + length + 1, name, strlen(name) + 1);
            long r = call(SYS_execve, at(path), arguments, environment);
            if (r != -ENOENT && r != -ENOTDIR) {
                error = r;
            }
        }
        entry = entry[length] == ':' ? entry + length + 1 : NULL;
    }
    return error;
}

static _Noreturn void run_child(struct child_start *start) {
    const struct sandbox *sandbox = &start->sandbox;
    const uint64_t no_signals = 0;
    see_pid(start);
    join_groups(start);
    call(SYS_setsid, 0, 0, 0);
    call5(SYS_rt_sigprocmask, SIG_SETMASK, at(&no_signals), 0, sizeof(no_signals), 0);
    set_limits(sandbox);
    call(SYS_umask, 022, 0, 0);
    become_user(start);
    /* Should the supervisor be killed. Changing the user has cleared it: only now. */
    call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0);
    if (call(SYS_getppid, 0, 0, 0) != start->parent) {
        give_up(start, "supervisor", -ESRCH);
    }
    take_streams(start); /* before the user's path: /proc/self/fd shows what is open */
    long r = enter(sandbox->directory);
    if (r != 0 && !(sandbox->any_directory && call(SYS_chdir, at("/"), 0, 0) == 0)) {
        give_up(start, "working directory", r);
    }
    r = call(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0);
    if (r != 0) {
        give_up(start, "no new privileges", r);
    }
    struct sock_fprog program = {.len = sandbox->filter_length,
                                 .filter = (struct sock_filter *)(uintptr_t)sandbox->filter};
    r = sandbox->filter != NULL ? call(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, at(&program)) : 0;
    if (r != 0) {
        give_up(start, "system call filter", r);
    }
    give_up(start, "command", execute(sandbox));
}

#if SHARES_MEMORY && defined(__x86_64__)
/* The child comes back on its new stack, where nothing of ours is: it is given what it needs in
 * registers that the call keeps, and never returns. */
static long clone_onto(struct clone_args *args, void (*function)(struct child_start *),
                       struct child_start *start) {
    long result;
    register void (*keep_function)(struct child_start *) __asm__("r12") = function;
    register struct child_start *keep_start __asm__("r13") = start;
    __asm__ volatile("syscall\n\t"
                     "testq %%rax, %%rax\n\t"
                     "jnz 1f\n\t"
                     "xorl %%ebp, %%ebp\n\t"
                     "movq %%r13, %%rdi\n\t"
                     "callq *%%r12\n\t"
                     "hlt\n"
                     "1:"
                     : "=a"(result)
                     : "0"((long)SYS_clone3), "D"(args), "S"(sizeof(*args)), "r"(keep_function),
                       "r"(keep_start)
                     : "rcx", "r11", "memory");
    return result;
}
#elif SHARES_MEMORY
static long clone_onto(struct clone_args *args, void (*function)(struct child_start *),
                       struct child_start *start) {
    register long x8 __asm__("x8") = SYS_clone3;
    register long x0 __asm__("x0") = (long)(uintptr_t)args;
    register long x1 __asm__("x1") = sizeof(*args);
    register void (*keep_function)(struct child_start *) __asm__("x20") = function;
    register struct child_start *keep_start __asm__("x21") = start;
    __asm__ volatile("svc #0\n\t"
                     "cbnz x0, 1f\n\t"
                     "mov x29, xzr\n\t"
                     "mov x0, x21\n\t"
                     "blr x20\n\t"
                     "brk #0\n"
                     "1:"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(keep_function), "r"(keep_start)
                     : "memory");
    return x0;
}
#else
static long clone_onto(struct clone_args *args, void (*function)(struct child_start *),
                       struct child_start *start) {
    long result = syscall(SYS_clone3, args, sizeof(*args));
    if (result == 0) {
        function(start);
    }
    return result < 0 ? -errno : result;
}
#endif

/* ---- the supervisor's side ---- */

static int fail_stage(const struct child_start *start, struct acre_error *err) {
    const struct sandbox *sandbox = &start->sandbox;
    char shown[SHOWN];
    const char *what = strcmp(start->stage, "command") == 0             ? sandbox->arguments[0]
                       : strcmp(start->stage, "working directory") == 0 ? sandbox->directory
                                                                        : "";
    acre_str_show(acre_str_from(what), shown, sizeof(shown));
    if (what == sandbox->arguments[0] && start->error == ENOEXEC) {
        return acre_fail(err, ACRE_EINVALID,
                         "command %s: neither a program nor a script that starts with #!", shown);
    }
    if (what == sandbox->arguments[0] && start->error == ENOENT && strchr(what, '/') == NULL) {
        return acre_fail(err, ACRE_ENOTFOUND, "command %s: not found in PATH", shown);
    }
    return acre_fail_errno(err, start->error, "%s%s%s", start->stage, what[0] != '\0' ? " " : "",
                           shown);
}

static void free_start(struct child_start *start) {
    close(start->status);
    munmap(start, PAGE_BYTES + STACK_BYTES);
}

int sandbox_start(const struct sandbox *sandbox, struct child_start **ret_start,
                  struct acre_error *err) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return acre_fail_errno(err, errno, "pipe of the child");
    }
    struct child_start *start =
        mmap(NULL, PAGE_BYTES + STACK_BYTES, PROT_READ | PROT_WRITE,
             (SHARES_MEMORY ? MAP_PRIVATE : MAP_SHARED) | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) {
        close(ends[0]);
        close(ends[1]);
        return acre_fail_errno(err, errno, "stack of the child");
    }
    start->sandbox = *sandbox;
    start->parent = getpid();
    start->status = ends[0];
    start->closes = ends[1];
    int group = sandbox->group->directory;
    struct clone_args args = {
        .flags = (SHARES_MEMORY ? CLONE_VM : 0) | (group >= 0 ? CLONE_INTO_CGROUP : 0),
        .exit_signal = SIGCHLD,
        .stack = SHARES_MEMORY ? (uintptr_t)start + PAGE_BYTES : 0,
        .stack_size = SHARES_MEMORY ? STACK_BYTES : 0,
        .cgroup = group >= 0 ? (uint64_t)group : 0,
    };
    long pid = clone_onto(&args, run_child, start);
    close(ends[1]);
    if (pid < 0) {
        free_start(start);
        return acre_fail_errno(err, (int)-pid, "process");
    }
    start->pid = (pid_t)pid;
    *ret_start = start;
    return 0;
}

pid_t child_start_pid(const struct child_start *start) {
    return start->pid;
}

int child_start_descriptor(const struct child_start *start) {
    return start->status;
}

bool child_start_is_over(const struct child_start *start) {
    struct pollfd status = {.fd = start->status, .events = POLLIN};
    return poll(&status, 1, 0) > 0;
}

int child_start_finish(struct child_start *start, int64_t *ret_pid, struct acre_error *err) {
    ACRE_ASSERT(child_start_is_over(start)); /* or the child would lose its stack */
    int r = start->stage != NULL ? fail_stage(start, err) : 0;
    *ret_pid = start->seen != 0 ? start->seen : start->pid;
    free_start(start);
    return r;
}
