/* rows.h - the rows of the store, as plain values with borrowed strings.
 *
 * Any thread. Times are wall-clock ms, 0 for "not yet" or "never". */
#ifndef ACRE_STORE_ROWS_H
#define ACRE_STORE_ROWS_H

#include "core/str.h"

struct acre_store_job {
    uint64_t id;
    const char *user, *project, *name;
    const char *state; /* as sched/job.h names it */
    bool live;         /* not ended: read back at start */
    uint32_t priority;
    uint64_t array; /* 0: none */
    uint32_t attempt;
    uint64_t submitted_ms, started_ms, ended_ms; /* 0: not yet */
    struct acre_str spec;   /* JSON; as submitted; written once; empty when it is another job's: */
    uint64_t spec_id;       /* the job whose spec is this one's too; 0: it has its own */
    struct acre_str detail; /* JSON; everything else that changes */
};
struct acre_store_account {
    const char *project, *user;
    uint64_t charged_ms; /* milli-GPU ms */
    double use;          /* decayed, at at_ms */
    uint64_t at_ms;
};
struct acre_store_token {
    uint64_t id;
    uint8_t hash[32]; /* SHA-256 of the secret */
    const char *user, *project, *role, *note;
    uint64_t created_ms, expires_ms, revoked_ms; /* 0: never */
    uint64_t parent;                             /* the token it was made with; 0: none */
};
struct acre_store_reservation {
    uint64_t id;
    const char *user, *state;
    uint64_t start_ms, end_ms;
    struct acre_str detail; /* JSON: devices, share, isolation */
};
struct acre_store_drain {
    const char *target; /* "node:gpu-1" or "device:GPU-5a..." */
    const char *reason;
    uint64_t since_ms;
};
/* SEC-3. `seq`, `hash` are given by the store: hash = SHA-256 over the one before and all fields.
 */
struct acre_store_audit {
    uint64_t seq;
    uint64_t at_ms;
    const char *actor;  /* "user:ada", "acre" for decisions of its own */
    const char *origin; /* "unix:1000", "10.0.0.7", "" */
    const char *action; /* "job submitted" */
    const char *target; /* "job:42" */
    const char *result; /* "ok" or an error's name */
    const char *detail; /* one line, may be "" */
    uint8_t hash[32];
};

#endif
