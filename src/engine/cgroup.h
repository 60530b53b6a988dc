/* cgroup.h - the kernel's containers for runs, in whichever of the four layouts this machine has.
 *
 *   v2      one hierarchy with cpu, memory and pids; killed as a whole; devices filtered by eBPF
 *   hybrid  limits by v1 controllers; v2 (without controllers) to kill, to start in, to filter
 *   v1      limits by v1 controllers; killed one by one with forking forbidden first
 *   none    nothing may be made here: limits are lacking (describe says so)
 *
 * Where no group lists the processes of a run (none; v1 without pids), they are tracked as
 * descendants of their supervisor (tree.h).
 *
 * Plain data and files: any thread, daemon, spawner and shim alike. It starts nothing and waits
 * for nothing but cgroup_end. */
#ifndef ACRE_ENGINE_CGROUP_H
#define ACRE_ENGINE_CGROUP_H

#include "engine/bpf.h"
#include "engine/engine.h"

enum cgroup_layout {
    ACRE_CGROUP_NONE,
    ACRE_CGROUP_V1,
    ACRE_CGROUP_HYBRID,
    ACRE_CGROUP_V2,
};

enum cgroup_controller {
    ACRE_CGROUP_CPU,
    ACRE_CGROUP_MEMORY,
    ACRE_CGROUP_PIDS,
    ACRE_CGROUP_DEVICES, /* v1 only: v2 filters by program */
    ACRE_CGROUP_CONTROLLERS,
};

enum { ACRE_CGROUP_PATH_MAX = 192, ACRE_RUN_NAME_MAX = 36 }; /* name: 20 + '.' + 10, rounded up */

/* Which directories runs are made in. Plain data: the daemon finds it, the spawner is sent it. */
struct cgroup {
    enum cgroup_layout layout;
    char unified[ACRE_CGROUP_PATH_MAX]; /* v2 parent; runs are made in its run/ and plain/ */
    char v1[ACRE_CGROUP_CONTROLLERS][ACRE_CGROUP_PATH_MAX]; /* "" : not there */
    bool limits[ACRE_CGROUP_CONTROLLERS];                   /* what can be limited */
    bool kills;                                             /* cgroup.kill */
    bool filters;                                           /* devices, by program or v1 files */
    uint64_t ram_mib;   /* of the machine, or of the container this is; 0: unknown */
    uint64_t jobs_mib;  /* all runs together have at most this; 0: no such limit */
    uint64_t jobs_pids; /* and so many processes and threads */
};

struct cgroup_limits {
    uint64_t cpu_milli, ram_mib; /* 0: none */
    bool ram_is_default;         /* not asked for: many runs have the same */
    uint32_t pids_max;
    const struct bpf_rule *rules; /* devices besides the base */
    uint32_t rule_count;
};

/* One run's directories, open. */
struct cgroup_run {
    const struct cgroup *cgroup;
    char name[ACRE_RUN_NAME_MAX];
    bool plain;                         /* has no devices: in plain/, whose filter it shares */
    uint64_t idle_mib;                  /* v1: may serve other runs with this limit; 0: may not */
    bool used;                          /* its memory group served others before */
    bool clean;                         /* and may serve more: it is as good as new */
    int directory;                      /* v2, for CLONE_INTO_CGROUP; -1: none */
    int tasks[ACRE_CGROUP_CONTROLLERS]; /* v1; the child writes "0" to each; -1: none */
};

struct cgroup_use {
    uint64_t peak_mib; /* UINT64_MAX: unknown */
    uint64_t cpu_ms;   /* UINT64_MAX: unknown */
    uint64_t oom_kills;
    bool at_own_limit; /* with oom_kills; otherwise at that of all runs, or of the machine */
};

/* Find the layout and make the parents (named `name`). `mountinfo` NULL: this process's. Whatever
 * is lacking is no error: the layout says so. */
void cgroup_open(const char *mountinfo, const char *name, struct cgroup *ret_cgroup);
/* Remove the parents; those that still have runs stay. Supervisors on their way out are waited
 * for, at most `wait_ms`. */
void cgroup_close(const struct cgroup *cgroup, int wait_ms);
/* Move the calling process out of whatever cgroup it is in (a service's is killed when the
 * service stops) into the one for supervisors. Failure is harmless. */
void cgroup_leave(const struct cgroup *cgroup);

char *run_make_name(struct acre_run run, char name[ACRE_RUN_NAME_MAX]); /* "42.1" */
bool run_parse(const char *name, struct acre_run *ret_run);             /* exactly that form */

/* Of the run, without any directory: what the others begin with and leave behind. */
struct cgroup_run cgroup_run_none(const struct cgroup *cgroup, struct acre_run run);
/* Make the run's directories with its limits. On failure they are gone again. */
int cgroup_make(const struct cgroup *cgroup, struct acre_run run,
                const struct cgroup_limits *limits, struct cgroup_run *ret_group,
                struct acre_error *err);
/* In the child, before it gives up root: join the v1 groups. 0 or errno. Async-signal-safe. */
int cgroup_join(const struct cgroup_run *group);
/* Is there a group for every run that lists its processes? Otherwise the next two do nothing. */
bool cgroup_lists(const struct cgroup *cgroup);
/* SIGKILL to everything in it, now. Without cgroup.kill: one pass; repeat while it is not empty. */
void cgroup_kill(const struct cgroup_run *group);
/* Its processes: how many there are; fills up to max. */
uint32_t cgroup_pids(const struct cgroup_run *group, int64_t *pids, uint32_t max);
/* What it used; what costs more to find out only where it is asked for. */
void cgroup_read(struct cgroup_run *group, bool with_cpu, bool with_kills,
                 struct cgroup_use *ret_use);
/* Close and remove; what is not empty stays (cgroup_end). */
void cgroup_drop(struct cgroup_run *group);

/* The directories of a run that was made earlier, maybe by another process; false: none. Close it
 * with cgroup_drop or cgroup_shut (which removes nothing). */
bool cgroup_find(const struct cgroup *cgroup, struct acre_run run, struct cgroup_run *ret_group);
void cgroup_shut(struct cgroup_run *group);
/* Kill a run without a supervisor, wait (at most `wait_ms`) until it is empty, remove it. True:
 * there was something. */
bool cgroup_end(const struct cgroup *cgroup, struct acre_run run, int wait_ms);
/* Call for each run that has a directory. */
void cgroup_each(const struct cgroup *cgroup, void (*function)(void *context, struct acre_run run),
                 void *context);

/* What it can contain and what it cannot, one line each. */
void cgroup_describe(const struct cgroup *cgroup, struct acre_buf *out);

#endif
