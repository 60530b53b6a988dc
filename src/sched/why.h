/* why.h - why a job waits, and when it will start (POL-9): one object for the API, the command
 * line, the page and the metrics.
 *
 * Pure. Core thread only. Asking changes nothing but caches. */
#ifndef ACRE_SCHED_WHY_H
#define ACRE_SCHED_WHY_H

#include "sched/sched.h"

/* In order of precedence: the first that holds is the reason. */
/* clang-format off */
#define ACRE_REASONS(X)                                                                     \
    /* name          text                                                                */ \
    X(NEVER_FITS,    "never-fits")    /* no node here could, even empty                  */ \
    X(HARD_QUOTA,    "hard-quota")    /* asks for more than its owner may ever hold      */ \
    X(HELD,          "held")                                                                \
    X(DEPENDENCY,    "dependency")                                                          \
    X(BEGINS_LATER,  "begins-later")  /* begin-at, or the back-off of a retry            */ \
    X(RESERVED,      "reserved")      /* its reservation begins later, or others' is there */ \
    X(OVER_QUOTA,    "over-quota")    /* its owner holds what it may now                 */ \
    X(FRAGMENTED,    "fragmented")    /* enough is free in sum, not on one device or node */ \
    X(BUSY,          "busy")          /* everything that fits is taken                   */ \
    X(BEHIND,        "behind")        /* it would fit, but would delay the head          */ \
    X(PREEMPTING,    "preempting")    /* others are yielding for it                      */ \
    X(PAUSED,        "paused")        /* the orchestrator is stopped                     */ \
    X(EVALUATING,    "evaluating")    /* the next pass decides                           */
/* clang-format on */
enum acre_reason {
#define X(name, text) ACRE_REASON_##name,
    ACRE_REASONS(X)
#undef X
};
const char *acre_reason_name(enum acre_reason reason);

enum { ACRE_WHY_TEXT_MAX = 320 };

struct acre_why {
    enum acre_reason reason;
    char text[ACRE_WHY_TEXT_MAX];   /* one sentence with its numbers */
    char advice[ACRE_WHY_TEXT_MAX]; /* what would change it */
    uint32_t position;              /* in the queue, 1 is next; 0: not in it (held, not eligible) */
    uint32_t ahead;                 /* jobs considered before it */
    uint64_t other;                 /* a job or reservation it is about; 0: none */
    uint64_t asked, available;      /* the numbers of the reason, in `unit` */
    const char *unit;               /* "milli-GPU", "MiB", "jobs", ...; "" when none */
};

/* ACRE_ENOTFOUND; ACRE_ECONFLICT when it is not waiting. */
int acre_sched_why(struct acre_sched *sched, uint64_t job, uint64_t now_ms,
                   struct acre_why *ret_why, struct acre_error *err);

struct acre_when {
    bool known; /* false: held, a dependency without end, no capacity ever */
    uint64_t start_ms;
    uint64_t earliest_ms, latest_ms; /* nine in ten start between these */
};

/* From a conservative timeline of everything that runs and waits, made anew when it is older than
 * the changes it must know. ACRE_ENOTFOUND. A running job: when it started. */
int acre_sched_when(struct acre_sched *sched, uint64_t job, uint64_t now_ms,
                    struct acre_when *ret_when, struct acre_error *err);

/* Decayed use and factor of an account, for `acre usage`. Walk with *cursor from 0. */
struct acre_usage {
    uint32_t project, user;
    double gpu_hours;    /* decayed, running jobs included */
    double share;        /* of the whole, 0 ... 1 */
    double used;         /* part of all use, 0 ... 1 */
    double factor;       /* 2^(-used/share), the use of the rest of its project felt: account.c */
    uint32_t held_milli; /* now */
    uint32_t running, queued;
    uint64_t charged_ms; /* milli-GPU ms of ended runs, not decayed: what is stored */
    double stored_use;   /* decayed milli-GPU ms of ended runs at stored_at_ms: what is stored */
    uint64_t stored_at_ms;
};
/* The next account from `cursor` (0) on that was ever charged or has a live job. */
bool acre_sched_usage(const struct acre_sched *sched, uint64_t now_ms, uint32_t *cursor,
                      struct acre_usage *ret_usage);
/* One account; false when it was never charged and has no live job. */
bool acre_sched_find_usage(const struct acre_sched *sched, uint32_t project, uint32_t user,
                           uint64_t now_ms, struct acre_usage *ret_usage);
/* Put back a stored account (project, user, charged_ms, stored_use, stored_at_ms). */
void acre_sched_restore_usage(struct acre_sched *sched, const struct acre_usage *usage);

#endif
