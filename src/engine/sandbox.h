/* sandbox.h - what a job's process gives up before it becomes the command.
 *
 * The supervisor prepares the view that all members share (mounts, network); each child then
 * drops everything else on its way to exec. Shim only, one thread. It limits no resources:
 * that is cgroup.h. */
#ifndef ACRE_ENGINE_SANDBOX_H
#define ACRE_ENGINE_SANDBOX_H

#include "engine/cgroup.h"

#include <linux/filter.h>
#include <sys/types.h>

struct acre_sandbox_view {
    uint64_t tmp_mib;      /* most of the private /tmp; 0: half of the RAM */
    bool no_network;       /* nothing but loopback */
    const char *directory; /* stays visible though it is below a private place; "" : none */
    uint32_t uid, gid;     /* with whose rights it is found */
};
/* Whether mounts can be made that nobody else sees: not in a chroot, whose root is no mount. */
bool acre_sandbox_can_mount(void);
/* Private, empty /tmp where mounts can be made, also seen as /var/tmp and /dev/shm (memory that
 * vanishes with the run): for the calling process and all its children. Needs root; one thread. */
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
    char *const *arguments;
    char *const *environment;
};

/* Start the command. 0: it runs (its pid in ret_pid); the text says at which stage it failed. */
int acre_sandbox_start(const struct acre_sandbox *sandbox, pid_t *ret_pid, struct acre_error *err);

#endif
