/* engine.h - where jobs run: start, signal, adopt, forget; and facts about them.
 *
 * An engine has nodes, and reports them: which there are, which is lost, which is back. A run is
 * named by its token (job, attempt); every call is idempotent by token, so that after a crash the
 * caller may simply repeat it. Facts come through the sink on the loop thread; they may be repeated
 * after a restart. An engine decides nothing and keeps no queue. Loop thread only.
 *
 * A new engine is a file with a const table, and a row of engines.c. */
#ifndef ACRE_ENGINE_ENGINE_H
#define ACRE_ENGINE_ENGINE_H

#include "core/buf.h"
#include "core/loop.h"
#include "engine/node.h"
#include "engine/run.h"

/* Called on the loop thread. */
struct acre_engine_sink {
    /* `started` comes before `exited` for a run that began. */
    void (*started)(void *context, struct acre_run run, uint64_t now_ms, int64_t pid);
    void (*exited)(void *context, struct acre_run run, const struct acre_run_result *result);
    /* Optional from here on. A node the engine has, with all of its devices: during open for those
     * it knows by then, later when one joins, and again when a lost one is back or readings are
     * new. */
    void (*node)(void *context, const struct acre_engine_node *node);
    /* Nothing new can be started there until it is reported again. What becomes of its runs is
     * reported run by run, when the engine knows. */
    void (*node_lost)(void *context, const char *name, const char *why);
    /* Bytes of a run's standard output (1) or error (2), from `offset` on: for engines that keep no
     * logs on this machine. What was delivered before may come again. */
    void (*output)(void *context, struct acre_run run, int stream, uint64_t offset,
                   const void *bytes, size_t length);
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

/* How the daemon opens engines: all get the same, and take what concerns them. */
struct acre_engine_options {
    const char *state_directory; /* the engine's files go here */
    const char *group;           /* unique to this daemon: names of cgroups and the like */
    const char *address;         /* of a cluster ("ray=http://..."); NULL: none was given */
    const char *const *sim;      /* files of simulated nodes, instead of real ones */
    uint32_t sim_count;
    const char *run_as; /* all jobs run as this account; NULL: as the one named like the user */
    bool allow_root;
    uint32_t min_uid;
    const void *own; /* the engine's own options instead of all above, for tests; NULL: none */
};

struct acre_engine_driver {
    const char *name;
    const char *what; /* one line for people */
    /* Its nodes may be away when the daemon starts: they are remembered, as lost, until reported.
     */
    bool remembers_nodes;

    /* Mandatory. open: nodes are reported before it returns, as far as they are known. start: 0
     * means accepted; the outcome comes as a fact, even when the command cannot be run. A run that
     * was started before (also by an earlier process) is not started again: its facts are told
     * again. signal: ACRE_ENOTFOUND for a run it does not know. adopt: after open, for each run the
     * caller believes to be live: its facts are told again, or ACRE_RUN_LOST. reap: end and remove
     * what no one asked to adopt; returns how many. forget: the end is recorded; the engine's own
     * record may go (logs stay). */
    int (*open)(const struct acre_engine_options *options, struct acre_loop *loop,
                const struct acre_engine_sink *sink, void **ret_self, struct acre_error *err);
    void (*close)(void *self); /* jobs run on */
    int (*start)(void *self, const struct acre_run_spec *spec, struct acre_error *err);
    int (*signal)(void *self, struct acre_run run, enum acre_run_signal signal,
                  struct acre_error *err);
    void (*adopt)(void *self, struct acre_run run);
    uint32_t (*reap)(void *self);
    void (*forget)(void *self, struct acre_run run);

    /* Optional. log_path: of a stream's newest file, "" when none yet; `stream` 1 or 2 (an engine
     * without it delivers `output`). pids: the run's processes (for GPU accounting; job 0: the
     * engine's own servers on GPUs); returns how many there are, fills up to max.
     * limit: from now on; what runs keeps what it has.
     * describe: what it can contain and what it cannot, one line each, for people. */
    int (*log_path)(void *self, struct acre_run run, int stream, char *path, size_t size,
                    struct acre_error *err);
    uint32_t (*pids)(void *self, struct acre_run run, int64_t *pids, uint32_t max);
    void (*limit)(void *self, const struct acre_engine_limits *limits);
    void (*describe)(void *self, struct acre_buf *out);
};

#endif
