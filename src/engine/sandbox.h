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

struct acre_sandbox_view {
    uint64_t tmp_mib;       /* most of the private /tmp; 0: half of the RAM */
    bool no_network;        /* nothing but loopback */
    bool private_processes; /* the caller is the first of a PID namespace: its own /proc */
    const char *directory;  /* stays visible though it is below a private place; "" : none */
    /* With whose rights it is found, and in which group. */
    uint32_t uid, gid;
    const uint32_t *groups;
    uint32_t group_count;
    const struct acre_cgroup_run *group;
};
/* Whether mounts can be made that nobody else sees: not in a chroot, whose root is no mount. */
bool acre_sandbox_can_mount(void);
/* Whether the next one touches files of the user, and may take its time (seconds). */
bool acre_sandbox_may_hang(const struct acre_sandbox_view *view);
/* Shared memory, semaphores and queues of System V and POSIX that end with the run. Private, empty
 * /tmp where mounts can be made, also seen as /var/tmp and /dev/shm (memory that vanishes with the
 * run): for the calling process and all its children. Needs root; one thread. It may leave a child
 * behind, which the caller reaps. */
int acre_sandbox_isolate(const struct acre_sandbox_view *view, struct acre_error *err);

struct acre_sandbox {
    const struct acre_cgroup_run *group;
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
struct acre_launch;

/* Begin; never waits for the child. */
int acre_sandbox_start(const struct acre_sandbox *sandbox, struct acre_launch **ret_launch,
                       struct acre_error *err);
pid_t acre_launch_pid(const struct acre_launch *launch); /* to wait for */
/* Can be read when the child has become the command, or has failed, or was killed. */
int acre_launch_descriptor(const struct acre_launch *launch);
bool acre_launch_is_over(const struct acre_launch *launch);
/* Of one that is over; frees it. 0: the command runs (`ret_pid` as the daemon sees it), or the
 * child was killed on its way; otherwise the text says at which stage it failed. */
int acre_launch_finish(struct acre_launch *launch, int64_t *ret_pid, struct acre_error *err);

#endif
