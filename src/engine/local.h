/* local.h - the own options of the engine that runs jobs on this machine (acre_engine_local).
 *
 * Below `state_directory` (0700) it keeps runs/ (one small record a run, until it is forgotten),
 * logs/ (<job>.<attempt>.out and .err, and .1 for the older part; each the account's), facts (a
 * FIFO) and engine.lock (one process at a time). */
#ifndef ACRE_ENGINE_LOCAL_H
#define ACRE_ENGINE_LOCAL_H

#include "engine/engines.h"

#include <sys/types.h>

struct visible_roots;

struct local_options {
    const char *state_directory;
    const char *program; /* what is started to supervise; NULL: acre-shim beside this program, or
                            else this program itself with the argument "shim" */
    const char *run_as;  /* all jobs run as this account; NULL: as the one named like the user */
    bool allow_root;     /* root's jobs run as root; otherwise they are not started */
    uid_t min_uid;       /* nor are those of accounts below; 0: of any */
    const char *cgroup_name;   /* NULL: "acre" */
    const char *mps_directory; /* NULL: "/run/acre-mps"; jobs must be able to reach it */
    const char *mps_program;   /* NULL: nvidia-cuda-mps-control, from PATH */
    uint64_t log_max_bytes;    /* of a stream's newest file; 0: 64 MiB */
    uint32_t pids_max;         /* where a run has no limit of its own; 0: 4096 */
    uint64_t margin_ms; /* a run that should have ended so long ago is ended from here; 0: 5 s */
    /* NULL: this machine's. */
    const char *mountinfo;
    const struct visible_roots *roots;
};

#endif
