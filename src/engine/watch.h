/* watch.h - the watchdog: GPU memory of each run against its limits, and of each device against
 * what it was before.
 *
 * Fed with readings, it says what to do. A run over its limit on a device is warned once, asked to
 * terminate after `warn_ms`, killed `grace_ms` later. When a run has ended, what is left on its
 * devices must go back to the level from before within `return_ms`, or the device should be
 * quarantined. Pure: no I/O, no clock; one thread at a time. It ends nothing by itself. */
#ifndef ACRE_ENGINE_WATCH_H
#define ACRE_ENGINE_WATCH_H

#include "engine/engine.h"

struct acre_watchdog_options {
    uint64_t tolerance_mib; /* over a limit or a baseline and still fine: driver bookkeeping */
    uint64_t warn_ms;       /* from the warning to TERMINATE */
    uint64_t grace_ms;      /* from TERMINATE to KILL */
    uint64_t return_ms;     /* for memory to come back after the end of a run */
};
struct acre_watchdog_options acre_watchdog_defaults(void); /* 64 MiB, 10 s, 30 s, 30 s */

struct acre_watchdog_process { /* one process on one device, as the driver lists it */
    int64_t pid;
    const char *device;
    uint64_t mib; /* or unknown */
};
struct acre_watchdog_level { /* one device */
    const char *device;
    uint64_t used_mib;  /* or unknown */
    uint64_t use_milli; /* utilisation 0 ... 1000, or unknown */
};
struct acre_watchdog_pid { /* whose process it is */
    int64_t pid;
    struct acre_run run; /* job 0: an MPS server's */
};
struct acre_watchdog_reading {
    uint64_t now_ms; /* monotonic */
    const struct acre_watchdog_level *levels;
    uint32_t level_count;
    const struct acre_watchdog_process *processes;
    uint32_t process_count;
    const struct acre_watchdog_pid *pids; /* of all runs and servers */
    uint32_t pid_count;
};

enum acre_watchdog_kind {
    ACRE_WATCHDOG_WARN,       /* run, device: over the limit */
    ACRE_WATCHDOG_FINE,       /* run, device: under it again, after a warning */
    ACRE_WATCHDOG_TERMINATE,  /* run */
    ACRE_WATCHDOG_KILL,       /* run */
    ACRE_WATCHDOG_QUARANTINE, /* device; run: whose memory did not come back */
    ACRE_WATCHDOG_RESTORED,   /* device: it came back after all */
};
struct acre_watchdog_event {
    enum acre_watchdog_kind kind;
    struct acre_run run;
    const char *device;
    uint64_t used_mib, limit_mib; /* QUARANTINE, RESTORED: level and baseline */
    char text[200];               /* the reason, for people */
};
/* Must not call the watchdog. */
typedef void acre_watchdog_tell(void *context, const struct acre_watchdog_event *event);

struct acre_watchdog_use { /* for the record; unknown when nothing was read */
    uint64_t peak_mib;     /* highest sum over its processes and devices */
    uint64_t mean_milli;   /* utilisation of its devices over time, as far as nobody shared them */
};

struct acre_watchdog;

struct acre_watchdog *acre_watchdog_create(const struct acre_watchdog_options *options);
void acre_watchdog_destroy(struct acre_watchdog *watchdog); /* NULL is fine */

/* A run is about to start. Its devices' baselines are those of the last reading without runs, or,
 * when others run there, the one they are judged by. Simulated devices are passed over. Repeating
 * a run changes nothing. */
void acre_watchdog_begin(struct acre_watchdog *watchdog, struct acre_run run,
                         const struct acre_run_device *devices, uint32_t count);
/* It has ended; its use goes to `ret_use` (NULL is fine). Unknown runs: unknown use. */
void acre_watchdog_end(struct acre_watchdog *watchdog, struct acre_run run, uint64_t now_ms,
                       struct acre_watchdog_use *ret_use);
void acre_watchdog_step(struct acre_watchdog *watchdog, const struct acre_watchdog_reading *reading,
                        acre_watchdog_tell *tell, void *context);

/* Memory on `device` of processes that belong to no run and no server, by the last reading. */
uint64_t acre_watchdog_foreign_mib(const struct acre_watchdog *watchdog, const char *device);
/* Are there devices whose memory is still awaited? (Then keep reading.) */
bool acre_watchdog_waits(const struct acre_watchdog *watchdog);

#endif
