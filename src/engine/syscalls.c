/* syscalls.c - a table of refused calls, turned into one BPF program.
 *
 * Refused calls answer EPERM, so programs that merely try go on. Those of io_uring answer ENOSYS,
 * as on a kernel without it: what a ring does is done by the kernel past this filter, and programs
 * that could use one fall back to ordinary calls. The libseccomp tree option makes
 * the program a search tree; the kernel remembers which calls are always allowed, so a job's
 * ordinary calls do not run it at all. clone3 hides its flags in memory, where a filter cannot
 * look: it answers ENOSYS, and libc falls back to clone, whose flags are checked. */
#include "engine/syscalls.h"

#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <unistd.h>

/* clang-format off */
static const char *const refused[] = {
    /* mounts and roots */
    "mount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree", "fsopen", "fsconfig",
    "fsmount", "fspick", "mount_setattr",
    /* the kernel itself */
    "init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot",
    "bpf", "perf_event_open", "userfaultfd", "lookup_dcookie", "nfsservctl", "vhangup",
    "swapon", "swapoff", "acct", "quotactl", "quotactl_fd", "syslog", "fanotify_init",
    /* hardware and time */
    "iopl", "ioperm", "settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "stime",
    /* around permissions */
    "open_by_handle_at", "keyctl", "add_key", "request_key", "sethostname", "setdomainname",
    /* new namespaces */
    "unshare", "setns",
};
/* clang-format on */

/* clone3 among them; see above. */
static const char *const absent[] = {"clone3", "io_uring_setup", "io_uring_enter",
                                     "io_uring_register"};

static const unsigned long namespace_flags[] = {CLONE_NEWNS,    CLONE_NEWUTS, CLONE_NEWIPC,
                                                CLONE_NEWUSER,  CLONE_NEWPID, CLONE_NEWNET,
                                                CLONE_NEWCGROUP};

static int refuse(scmp_filter_ctx filter, const char *const *names, size_t count, uint16_t error) {
    int r = 0;
    for (size_t i = 0; i < count && r == 0; i++) {
        int number = seccomp_syscall_resolve_name(names[i]);
        if (number >= 0) { /* negative: not on this machine */
            r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(error), number, 0);
        }
    }
    return r;
}

static int add_rules(scmp_filter_ctx filter) {
    int r = refuse(filter, refused, ACRE_COUNT(refused), EPERM);
    r = r == 0 ? refuse(filter, absent, ACRE_COUNT(absent), ENOSYS) : r;
    for (size_t i = 0; i < ACRE_COUNT(namespace_flags) && r == 0; i++) {
        struct scmp_arg_cmp has_flag =
            SCMP_A0(SCMP_CMP_MASKED_EQ, namespace_flags[i], namespace_flags[i]);
        r = seccomp_rule_add_array(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1, &has_flag);
    }
    return r;
}

static int export_program(scmp_filter_ctx filter, struct acre_buf *out) {
    int fd = memfd_create("acre-filter", MFD_CLOEXEC);
    if (fd < 0) {
        return -errno;
    }
    int r = seccomp_export_bpf(filter, fd);
    off_t offset = 0;
    char piece[4096];
    for (ssize_t got = 1; r == 0 && got > 0; offset += got) {
        got = pread(fd, piece, sizeof(piece), offset);
        if (got < 0) {
            r = -errno;
        } else if (acre_buf_append(out, piece, (size_t)got) < 0) {
            r = -E2BIG;
        }
    }
    close(fd);
    return r;
}

int syscalls_build(struct acre_buf *out, struct acre_error *err) {
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    if (filter == NULL) {
        return acre_fail(err, ACRE_EUNAVAILABLE, "system call filter: libseccomp failed to start");
    }
    (void)seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2); /* a tree; older ones: a list */
    int r = add_rules(filter);
    r = r == 0 ? export_program(filter, out) : r;
    seccomp_release(filter);
    return r == 0 ? 0 : acre_fail_errno(err, -r, "system call filter");
}
