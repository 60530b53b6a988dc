/* engine.h - where jobs run: start, signal, adopt, forget; and facts about them.
 *
 * A run is named by its token (job, attempt); every call is idempotent by token, so that after a
 * crash the caller may simply repeat it. Facts come through the sink on the loop thread; they may
 * be repeated after a restart. An engine decides nothing and keeps no queue. Loop thread only. */
#ifndef ACRE_ENGINE_ENGINE_H
#define ACRE_ENGINE_ENGINE_H

#include "core/buf.h"
#include "core/loop.h"

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

enum acre_run_ending {
    ACRE_RUN_EXITED,        /* code: exit status */
    ACRE_RUN_SIGNALED,      /* code: signal */
    ACRE_RUN_TIME_LIMIT,    /* ended by the supervisor at its limit; code: signal */
    ACRE_RUN_OUT_OF_MEMORY, /* the kernel killed it at its RAM limit; code: signal */
    ACRE_RUN_NOT_STARTED,   /* text says why */
    ACRE_RUN_LOST,          /* no supervisor, no record */
};

struct acre_run_result {
    enum acre_run_ending ending;
    int code;
    uint64_t started_ms, ended_ms; /* wall clock; started 0: never */
    uint64_t peak_ram_mib;         /* UINT64_MAX: unknown */
    uint64_t cpu_ms;
    uint64_t log_bytes;
    char text[160]; /* "" or why */
};

/* Told on the loop thread. `started` comes before `exited` for a run that began. */
struct acre_engine_sink {
    void (*started)(void *context, struct acre_run run, uint64_t now_ms, int64_t pid);
    void (*exited)(void *context, struct acre_run run, const struct acre_run_result *result);
    void *context;
};

enum acre_run_signal {
    ACRE_RUN_CHECKPOINT, /* warn_signal to the job */
    ACRE_RUN_TERMINATE,  /* SIGTERM to all its processes, SIGKILL after grace_ms */
    ACRE_RUN_KILL,       /* everything, now */
};

/* Rules of the policy that engines apply; zeros: none. */
struct acre_engine_limits {
    uint32_t memory_milli; /* of a machine's RAM: the limit of a run that asks for none */
    uint64_t logs_mib;     /* kept of one account's runs; the oldest that have ended go first */
};

struct acre_engine_driver {
    const char *name;
    const char *what; /* one line for people */

    /* Mandatory. start: 0 means accepted; the outcome comes as a fact, even when the command
     * cannot be run. A run that was started before (also by an earlier process) is not started
     * again: its facts are told again. signal: ACRE_ENOTFOUND for a run it does not know.
     * adopt: after open, for each run the caller believes to be live: its facts are told again,
     * or ACRE_RUN_LOST. reap: end and remove what no one asked to adopt; returns how many.
     * forget: the end is recorded; the engine's own record may go (logs stay). */
    int (*open)(const void *options, struct acre_loop *loop, const struct acre_engine_sink *sink,
                void **ret_self, struct acre_error *err);
    void (*close)(void *self); /* jobs run on */
    int (*start)(void *self, const struct acre_run_spec *spec, struct acre_error *err);
    int (*signal)(void *self, struct acre_run run, enum acre_run_signal signal,
                  struct acre_error *err);
    void (*adopt)(void *self, struct acre_run run);
    uint32_t (*reap)(void *self);
    void (*forget)(void *self, struct acre_run run);

    /* Optional. logs: path of a stream's newest file, "" when none yet; `stream` 1 or 2. pids: the
     * run's processes (for GPU accounting; job 0: the engine's own servers on GPUs); returns how
     * many there are, fills up to max.
     * limit: from now on; what runs keeps what it has.
     * describe: what it can contain and what it cannot, one line each, for people. */
    int (*log_path)(void *self, struct acre_run run, int stream, char *path, size_t size,
                    struct acre_error *err);
    uint32_t (*pids)(void *self, struct acre_run run, int64_t *pids, uint32_t max);
    void (*limit)(void *self, const struct acre_engine_limits *limits);
    void (*describe)(void *self, struct acre_buf *out);
};

extern const struct acre_engine_driver acre_engine_local; /* options: struct acre_local_options */
extern const struct acre_engine_driver acre_engine_fake;  /* options: struct acre_fake_options */

#endif
