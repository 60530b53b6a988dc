/* sandbox.c - from the supervisor to the command, as few system calls as it takes.
 *
 * The child is made like vfork's: it runs in the supervisor's memory, on a stack of its own,
 * while the supervisor waits until it has become the command or failed. That spares copying page
 * tables (0.1 ms of a start that takes 0.6 ms), and a failure is reported by a plain store. It
 * must therefore call nothing that allocates, locks or buffers, and change nothing but `failure`.
 * libc has no such call with CLONE_INTO_CGROUP, hence the few lines of assembly. Sanitizers do not
 * follow a second stack, and other machines have other instructions: there the child gets its own
 * copy of the memory, and `failure` is in a shared page.
 *
 * Order matters: cgroups and user first (they need root), then no_new_privs, then the filter,
 * which forbids nothing that comes after it. Signals have their default meaning already (the
 * spawner saw to it once). The directory is entered, and the command looked up, with the rights of
 * the user. */
#include "engine/sandbox.h"

#include "core/str.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
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

enum { STACK_BYTES = 64 * 1024, OPEN_FILES_MAX = 65536, SHOWN = 100 };

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
static const char *const private_places[] = {"/tmp", "/var/tmp", "/dev/shm"};

/* Below a private place, and spelled so that it cannot be anywhere else. */
static bool is_hidden(const char *directory) {
    for (size_t i = 0; i < ACRE_COUNT(private_places); i++) {
        size_t length = strlen(private_places[i]);
        if (strncmp(directory, private_places[i], length) == 0 && directory[length] == '/') {
            return strstr(directory, "/..") == NULL && strlen(directory) < PATH_MAX;
        }
    }
    return false;
}

/* The directory as the user finds it: a link to what others may not enter leads nowhere. */
static int open_as_user(const struct acre_sandbox_view *view) {
    int fd = -1;
    if (setegid(view->gid) == 0 && seteuid(view->uid) == 0) {
        fd = open(view->directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    }
    if (seteuid(0) != 0 || setegid(0) != 0) {
        _exit(127); /* never go on as somebody else */
    }
    return fd;
}

/* Show the directory `fd` at its old path in the new, empty /tmp. */
static int show_again(const char *directory, int fd) {
    char path[PATH_MAX], from[32];
    snprintf(path, sizeof(path), "%s", directory);
    for (char *at = strchr(path + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
        *at = '\0';
        if (mkdir(path, 0755) != 0 && errno != EEXIST) {
            return errno;
        }
        *at = '/';
    }
    if (mkdir(path, 0755) != 0 && errno != EEXIST) {
        return errno;
    }
    snprintf(from, sizeof(from), "/proc/self/fd/%d", fd);
    return mount(from, path, NULL, MS_BIND, NULL) != 0 ? errno : 0;
}

static int make_private(const struct acre_sandbox_view *view, struct acre_error *err) {
    char options[64];
    snprintf(options, sizeof(options),
             view->tmp_mib > 0 ? "mode=1777,size=%" PRIu64 "m" : "mode=1777", view->tmp_mib);
    if (mount("acre", private_places[0], "tmpfs", MS_NOSUID | MS_NODEV, options) != 0) {
        return acre_fail_errno(err, errno, "private %s", private_places[0]);
    }
    for (size_t i = 1; i < ACRE_COUNT(private_places); i++) {
        if (mount(private_places[0], private_places[i], NULL, MS_BIND, NULL) != 0 &&
            errno != ENOENT) {
            return acre_fail_errno(err, errno, "private %s", private_places[i]);
        }
    }
    return 0;
}

bool acre_sandbox_can_mount(void) {
    struct statx root;
    return statx(AT_FDCWD, "/", AT_NO_AUTOMOUNT, 0, &root) != 0 ||
           (root.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) == 0 ||
           (root.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

static int hide_files(const struct acre_sandbox_view *view, struct acre_error *err) {
    if (unshare(CLONE_NEWNS) != 0) {
        return acre_fail_errno(err, errno, "private /tmp");
    }
    /* Mounts made outside are still seen; ours are not seen outside. */
    if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) != 0) {
        return acre_fail_errno(err, errno, "private mounts");
    }
    int kept = is_hidden(view->directory) ? open_as_user(view) : -1;
    int r = make_private(view, err);
    if (r == 0 && kept >= 0) {
        int error = show_again(view->directory, kept);
        r = error != 0 ? acre_fail_errno(err, error, "working directory %s", view->directory) : 0;
    }
    if (kept >= 0) {
        close(kept);
    }
    return r;
}

int acre_sandbox_isolate(const struct acre_sandbox_view *view, struct acre_error *err) {
    int r = acre_sandbox_can_mount() ? hide_files(view, err) : 0;
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

/* What went wrong on the way, written by the child to memory shared with the supervisor. */
struct failure {
    const char *stage; /* NULL: nothing; a literal */
    int error;
};

struct child {
    const struct acre_sandbox *sandbox;
    struct failure *failure;
    pid_t parent;
};

static _Noreturn void give_up(const struct child *child, const char *stage, int error) {
    child->failure->stage = stage;
    child->failure->error = error;
    _exit(127);
}

static void set_limits(const struct acre_sandbox *sandbox) {
    struct rlimit core = {0, 0};
    setrlimit(RLIMIT_CORE, &core);
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_max = ACRE_MIN(files.rlim_max, (rlim_t)OPEN_FILES_MAX);
        files.rlim_cur = ACRE_MIN((rlim_t)1024, files.rlim_max); /* select() still works */
        setrlimit(RLIMIT_NOFILE, &files);
    }
    if (sandbox->data_mib > 0) {
        rlim_t bytes = (rlim_t)ACRE_MIN(sandbox->data_mib, UINT64_C(1) << 40) << 20;
        struct rlimit data = {bytes, bytes};
        setrlimit(RLIMIT_DATA, &data);
    }
}

/* Raw calls: libc's would tell all threads, and there the supervisor's memory is ours. */
static void become_user(const struct child *child) {
    const struct acre_sandbox *sandbox = child->sandbox;
    if (!sandbox->change_user) {
        return;
    }
    if (syscall(SYS_setgroups, sandbox->group_count, sandbox->groups) != 0) {
        give_up(child, "groups of the account", errno);
    }
    if (syscall(SYS_setresgid, sandbox->gid, sandbox->gid, sandbox->gid) != 0) {
        give_up(child, "group of the account", errno);
    }
    if (syscall(SYS_setresuid, sandbox->uid, sandbox->uid, sandbox->uid) != 0) {
        give_up(child, "account", errno);
    }
}

static void take_streams(const struct child *child) {
    for (int i = 0; i < 3; i++) {
        if (dup2(child->sandbox->streams[i], i) < 0) {
            give_up(child, "standard streams", errno);
        }
    }
    if (syscall(SYS_close_range, 3U, ~0U, 0U) != 0) { /* all are close-on-exec: twice is safe */
        for (int fd = 3; fd < 64; fd++) {
            close(fd);
        }
    }
}

static const char *find_path(char *const *environment) {
    for (size_t i = 0; environment[i] != NULL; i++) {
        if (strncmp(environment[i], "PATH=", 5) == 0) {
            return environment[i] + 5;
        }
    }
    return "/usr/bin:/bin";
}

/* As execvpe, without its fallback to a shell. Returns the errno that tells most. Raw calls: what
 * is hooked into libc's (coverage) would run in the supervisor's memory. */
static int execute(const struct acre_sandbox *sandbox) {
    const char *name = sandbox->arguments[0];
    if (strchr(name, '/') != NULL) {
        syscall(SYS_execve, name, sandbox->arguments, sandbox->environment);
        return errno;
    }
    int error = ENOENT;
    for (const char *at = find_path(sandbox->environment); at != NULL;) {
        char path[PATH_MAX];
        size_t length = strcspn(at, ":");
        if (length > 0 && length + strlen(name) + 2 <= sizeof(path)) {
            memcpy(path, at, length);
            path[length] = '/';
            memcpy(path + length + 1, name, strlen(name) + 1);
            syscall(SYS_execve, path, sandbox->arguments, sandbox->environment);
            if (errno != ENOENT && errno != ENOTDIR) {
                error = errno;
            }
        }
        at = at[length] == ':' ? at + length + 1 : NULL;
    }
    return error;
}

static _Noreturn void run_child(const struct child *child) {
    const struct acre_sandbox *sandbox = child->sandbox;
    int error = acre_cgroup_join(sandbox->group);
    if (error != 0) {
        give_up(child, "cgroup", error);
    }
    setsid();
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    set_limits(sandbox);
    umask(022);
    become_user(child);
    /* Should the supervisor be killed. Changing the user has cleared it: only now. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != child->parent) {
        give_up(child, "supervisor", ESRCH);
    }
    if (chdir(sandbox->directory) != 0 && !(sandbox->any_directory && chdir("/") == 0)) {
        give_up(child, "working directory", errno);
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        give_up(child, "no new privileges", errno);
    }
    take_streams(child);
    struct sock_fprog program = {.len = sandbox->filter_length,
                                 .filter = (struct sock_filter *)(uintptr_t)sandbox->filter};
    if (sandbox->filter != NULL &&
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0) {
        give_up(child, "system call filter", errno);
    }
    give_up(child, "command", execute(sandbox));
}

#if SHARES_MEMORY && defined(__x86_64__)
/* The child comes back on its new stack, where nothing of ours is: it is given what it needs in
 * registers that the call keeps, and never returns. */
static long clone_onto(struct clone_args *args, void (*function)(const struct child *),
                       const struct child *child) {
    long result;
    register void (*keep_function)(const struct child *) __asm__("r12") = function;
    register const struct child *keep_child __asm__("r13") = child;
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
                       "r"(keep_child)
                     : "rcx", "r11", "memory");
    return result;
}
#elif SHARES_MEMORY
static long clone_onto(struct clone_args *args, void (*function)(const struct child *),
                       const struct child *child) {
    register long x8 __asm__("x8") = SYS_clone3;
    register long x0 __asm__("x0") = (long)(uintptr_t)args;
    register long x1 __asm__("x1") = sizeof(*args);
    register void (*keep_function)(const struct child *) __asm__("x20") = function;
    register const struct child *keep_child __asm__("x21") = child;
    __asm__ volatile("svc #0\n\t"
                     "cbnz x0, 1f\n\t"
                     "mov x29, xzr\n\t"
                     "mov x0, x21\n\t"
                     "blr x20\n\t"
                     "brk #0\n"
                     "1:"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(keep_function), "r"(keep_child)
                     : "memory");
    return x0;
}
#else
static long clone_onto(struct clone_args *args, void (*function)(const struct child *),
                       const struct child *child) {
    long result = syscall(SYS_clone3, args, sizeof(*args));
    if (result == 0) {
        function(child);
    }
    return result < 0 ? -errno : result;
}
#endif

static int fail_stage(const struct acre_sandbox *sandbox, const struct failure *failure,
                      struct acre_error *err) {
    char shown[SHOWN];
    const char *what = strcmp(failure->stage, "command") == 0             ? sandbox->arguments[0]
                       : strcmp(failure->stage, "working directory") == 0 ? sandbox->directory
                                                                          : "";
    acre_str_show(acre_str_from(what), shown, sizeof(shown));
    if (what == sandbox->arguments[0] && failure->error == ENOEXEC) {
        return acre_fail(err, ACRE_EINVALID,
                         "command %s: neither a program nor a script that begins with #!", shown);
    }
    if (what == sandbox->arguments[0] && failure->error == ENOENT && strchr(what, '/') == NULL) {
        return acre_fail(err, ACRE_ENOTFOUND, "command %s: not found in PATH", shown);
    }
    return acre_fail_errno(err, failure->error, "%s%s%s", failure->stage,
                           what[0] != '\0' ? " " : "", shown);
}

int acre_sandbox_start(const struct acre_sandbox *sandbox, pid_t *ret_pid, struct acre_error *err) {
    /* The stack, and below it the word for failures, visible to both. */
    char *memory = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                        (SHARES_MEMORY ? MAP_PRIVATE : MAP_SHARED) | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return acre_fail_errno(err, errno, "stack of the child");
    }
    struct failure *failure = (void *)memory;
    struct child child = {.sandbox = sandbox, .failure = failure, .parent = getpid()};
    size_t reserved = 4096; /* a page for `failure`: the stack grows down towards it */
    struct clone_args args = {
        .flags = CLONE_VFORK | (SHARES_MEMORY ? CLONE_VM : 0) |
                 (sandbox->group->directory >= 0 ? CLONE_INTO_CGROUP : 0),
        .exit_signal = SIGCHLD,
        .stack = SHARES_MEMORY ? (uintptr_t)memory + reserved : 0,
        .stack_size = SHARES_MEMORY ? STACK_BYTES - reserved : 0,
        .cgroup = sandbox->group->directory >= 0 ? (uint64_t)sandbox->group->directory : 0,
    };
    long pid = clone_onto(&args, run_child, &child);
    int r = 0;
    if (pid < 0) {
        r = acre_fail_errno(err, (int)-pid, "process");
    } else if (failure->stage != NULL) {
        r = fail_stage(sandbox, failure, err);
        while (waitpid((pid_t)pid, NULL, 0) < 0 && errno == EINTR) {
        }
    } else {
        *ret_pid = (pid_t)pid;
    }
    munmap(memory, STACK_BYTES);
    return r;
}
