/* run.h - one run of a job: its name, what is to be started, and how it ended.
 *
 * Plain values with borrowed strings; any thread may make one. */
#ifndef ACRE_ENGINE_RUN_H
#define ACRE_ENGINE_RUN_H

#include "core/base.h"

/* The token of a run. */
struct acre_run {
    uint64_t job;
    uint32_t attempt; /* 1 ... */
};

/* One GPU given to the run. */
struct acre_run_device {
    const char *id;        /* UUID or PCI id */
    const char *vendor;    /* "nvidia", "amd", "" */
    const char *pci;       /* bus id, "" when unknown: finds the device node */
    uint32_t milli;        /* 1000: whole */
    uint64_t mib;          /* limit of its memory; 0: none */
    const char *isolation; /* "none", "time-slicing", "mps", "mig" */
    uint32_t member;       /* whose it is; in order */
    bool simulated;        /* no hardware behind it: named in the environment, nothing enforced */
    uint32_t units;        /* AMD: compute units it has; 0: unknown */
    const char *cu_ranges; /* AMD share: those the engine chose; NULL: all */
    uint32_t gpu_instance, compute_instance; /* of a MIG slice (id "MIG-...") */
};

struct acre_run_spec {
    struct acre_run run;
    const char *user;         /* whose job: the Unix account it runs as (see local.h) */
    const char *const *argv;  /* NULL-terminated, at least one */
    const char *const *env;   /* "NAME=value", NULL-terminated; added to a clean base */
    const char *directory;    /* working directory; "" : the account's home, else / */
    const char *const *nodes; /* one for each member; shown to it as ACRE_NODE */
    uint32_t members; /* processes of a gang, 1 for most: each sees its own devices, ACRE_RANK and
                         ACRE_MEMBERS; the first that fails ends the others */
    const struct acre_run_device *devices;
    uint32_t device_count;
    uint64_t cpu_milli; /* 0: no limit */
    uint64_t ram_mib;   /* 0: the engine's default */
    uint32_t pids_max;  /* 0: the engine's default */
    uint64_t limit_ms;  /* wall time; 0: none */
    uint64_t warn_ms;   /* the warning signal comes so long before; 0: none */
    uint64_t grace_ms;  /* between SIGTERM and SIGKILL */
    int warn_signal;    /* SIGUSR1 by default: checkpoint, or the limit is near */
    bool no_network;
    bool private_processes; /* sees no processes but its own */
    const char *stdin_text; /* a script fed to the command; NULL: /dev/null */
};

enum run_ending {
    ACRE_RUN_EXITED,        /* code: exit status */
    ACRE_RUN_SIGNALED,      /* code: signal */
    ACRE_RUN_TIME_LIMIT,    /* ended by the supervisor at its limit; code: signal */
    ACRE_RUN_OUT_OF_MEMORY, /* the kernel killed it at its RAM limit; code: signal */
    ACRE_RUN_NOT_STARTED,   /* text says why */
    ACRE_RUN_LOST,          /* no supervisor, no record */
};

struct acre_run_result {
    enum run_ending ending;
    int code;
    uint64_t started_ms, ended_ms; /* wall clock; started 0: never */
    uint64_t peak_ram_mib;         /* UINT64_MAX: unknown */
    uint64_t cpu_ms;
    uint64_t log_bytes;
    char text[160]; /* "" or why */
};

#endif
