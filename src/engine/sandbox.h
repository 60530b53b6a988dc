/* sandbox.h - what a job's process gives up before it becomes the command.
 *
 * The supervisor prepares the view that all members share (mounts, IPC, network); each child then
 * drops everything else on its way to exec. Shim only, one thread. It limits no resources:
 * that is cgroup.h. */
#ifndef ACRE_ENGINE_SANDBOX_H
#define ACRE_ENGINE_SANDBOX_H

#include "engine/cgroup.h"

#include <linux/filter.h>
#include <sys/types.h>

struct sandbox_view {
    uint64_t tmp_mib;       /* most of the private /tmp; 0: half of the RAM */
    bool no_network;        /* nothing but loopback */
    bool private_processes; /* the caller is the first of a PID namespace: its own /proc */
    const char *directory;  /* stays visible though it is below a private directory; "" : none */
    /* With whose rights it is found, and in which group. */
    uint32_t uid, gid;
    const uint32_t *groups;
    uint32_t group_count;
    const struct cgroup_run *group;
};
/* Whether mounts can be made that nobody else sees: not in a chroot, whose root is no mount. */
bool sandbox_can_mount(void);
/* Whether the next one touches files of the user, and may take its time (seconds). */
bool sandbox_may_hang(const struct sandbox_view *view);
/* Shared memory, semaphores and queues of System V and POSIX that end with the run. Private, empty
 * /tmp where mounts can be made, also seen as /var/tmp and /dev/shm (memory that vanishes with the
 * run): for the calling process and all its children. Needs root; one thread. It may leave a child
 * behind, which the caller reaps. */
int sandbox_isolate(const struct sandbox_view *view, struct acre_error *err);

struct sandbox {
    const struct cgroup_run *group;
    bool change_user; /* the supervisor is root */
    uid_t uid;
    gid_t gid;
    const uint32_t *groups;
    uint32_t group_count;
    const struct sock_filter *filter; /* NULL: none */
    uint16_t filter_length;
    const char *directory; /* entered as the user */
    bool any_directory;    /* "/" will do, too */
    int streams[3];        /* become 0, 1, 2; each above 2 */
    uint64_t data_mib;     /* RLIMIT_DATA, where no cgroup limits memory; 0: none */
    int proc;              /* /proc as the daemon sees it, in a PID namespace; -1: no need */
    char *const *arguments;
    char *const *environment;
};

/* A child on its way to the command. It uses what `sandbox` points to until it is over. */
struct child_start;

/* Begin; never waits for the child. */
int sandbox_start(const struct sandbox *sandbox, struct child_start **ret_start,
                  struct acre_error *err);
pid_t child_start_pid(const struct child_start *start); /* to wait for */
/* Can be read when the child has become the command, or has failed, or was killed. */
int child_start_descriptor(const struct child_start *start);
bool child_start_is_over(const struct child_start *start);
/* Of one that is over; frees it. 0: the command runs (`ret_pid` as the daemon sees it), or the
 * child was killed on its way; otherwise the text says at which stage it failed. */
int child_start_finish(struct child_start *start, int64_t *ret_pid, struct acre_error *err);

#endif
