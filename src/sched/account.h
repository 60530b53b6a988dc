/* account.h - usage and current holdings by user and project, and what they allow (POL-1, POL-7).
 *
 * An account is a pair (project, user); it is made at first use and named by a small index that
 * stays good. Every account, its project, its user and the whole cluster keep the same sums, so
 * a look-up, a change and a check cost the same with ten accounts as with ten thousand.
 * Pure: callers pass now_ms. Core thread only. It counts and compares; it does not decide. */
#ifndef ACRE_SCHED_ACCOUNT_H
#define ACRE_SCHED_ACCOUNT_H

#include "ledger/ledger.h"
#include "sched/policy.h"

struct accounts;

#define ACRE_MILLI_MS_PER_HOUR 3.6e9 /* milli-GPU ms of a GPU-hour */

/* `names` turns the ids of projects and users into the names of the policy; borrowed. */
struct accounts *accounts_create(struct acre_names *names, const struct acre_policy *policy);
void accounts_destroy(struct accounts *accounts); /* NULL is fine */
/* New shares, quotas and half-life; use so far has decayed by the old one. Copied. */
void accounts_set_policy(struct accounts *accounts, const struct acre_policy *policy,
                         uint64_t now_ms);
size_t accounts_bytes(const struct accounts *accounts);

/* The account of a pair, made when new; indexes count from 0. */
uint32_t accounts_intern(struct accounts *accounts, uint32_t project, uint32_t user);
/* UINT32_MAX: there is none. */
uint32_t accounts_find(const struct accounts *accounts, uint32_t project, uint32_t user);
uint32_t accounts_count(const struct accounts *accounts);

/* What a job holds, or would hold, of all its devices together. */
struct account_load {
    uint64_t milli;
    uint64_t mib;
};
/* By what is asked. Memory in proportion to a share, and the share of a request by memory alone,
 * are known only with a place: they count 0 here. */
struct account_load load_of_request(const struct acre_request *request);
struct account_load load_of_parts(const struct acre_part *parts, uint32_t count);

/* A live job that does not run came (submitted, requeued, restored) or went (placed, ended). */
void accounts_queue(struct accounts *accounts, uint32_t account);
void accounts_unqueue(struct accounts *accounts, uint32_t account);
/* How many there are of a user's, over all projects. */
uint32_t accounts_queued(const struct accounts *accounts, uint32_t user);
/* A job took its devices at since_ms (now, or earlier when it is restored): use accrues from then
 * on. It counts as running. */
void accounts_take(struct accounts *accounts, uint32_t account, struct account_load load,
                   uint64_t since_ms, uint64_t now_ms);
/* It gave them back: the same load and since_ms. Its use is charged. */
void accounts_release(struct accounts *accounts, uint32_t account, struct account_load load,
                      uint64_t since_ms, uint64_t now_ms);

struct account_summary {
    uint32_t project, user;
    double use_milli_ms; /* decayed, running jobs included */
    double share;        /* of the whole, 0 ... 1, among those with live jobs and this one */
    double used;         /* part of all use, 0 ... 1 */
    /* How much of its share it has used, 0 for nothing, 1 for exactly its share: the lower, the
     * sooner it is served. The factor of POL-1 is 2^-level, but that becomes 0 for heavy users and
     * then orders nothing, so sort by the level. The formula stands in account.c. */
    double level;
    uint64_t held_milli, held_mib;
    uint32_t running, queued;
    uint64_t charged_milli_ms;  /* ended runs, not decayed */
    double stored_use_milli_ms; /* ended runs, decayed to now */
};
void accounts_get(const struct accounts *accounts, uint32_t account, uint64_t now_ms,
                  struct account_summary *ret_account);
/* Put back what ended runs had used: `use_milli_ms` as of `at_ms`. Once per account. */
void accounts_restore(struct accounts *accounts, uint32_t account, uint64_t charged_milli_ms,
                      double use_milli_ms, uint64_t at_ms);

/* Quotas. */
/* clang-format off */
#define ACRE_QUOTA_LIMITS(X)      \
    /* name       unit         */ \
    X(GPUS,       "milli-GPU")    \
    X(MEMORY,     "MiB")          \
    X(RUNNING,    "jobs")         \
    X(QUEUED,     "jobs")         \
    X(GPU_HOURS,  "GPU-hours")
/* clang-format on */
enum quota_limit {
#define X(name, unit) ACRE_QUOTA_##name,
    ACRE_QUOTA_LIMITS(X)
#undef X
};

/* The limit that is in the way, with its numbers. */
struct quota_hit {
    char who[ACRE_POLICY_NAME_MAX + 16]; /* "user:ada", also when the quota is for "user:*" */
    enum quota_limit limit;
    bool of_project; /* else of a user */
    bool soft;
    uint64_t asked, held, allowed; /* in `unit` */
    const char *unit;
};

/* Could this load ever be held, with nothing else held? Hard quotas only. False: `ret_hit`. */
bool accounts_may_ever(const struct accounts *accounts, uint32_t account, struct account_load load,
                       struct quota_hit *ret_hit);
/* May one more job wait? `queued` is hard in a soft quota too. False: refuse, ret_hit. */
bool accounts_may_queue(const struct accounts *accounts, uint32_t account,
                        struct quota_hit *ret_hit);

enum quota_answer {
    ACRE_QUOTA_WITHIN,
    ACRE_QUOTA_OVER_SOFT, /* may, while nobody within their quotas wants the place */
    ACRE_QUOTA_OVER_HARD, /* may not, until something of its owner ends */
};
/* May one more job with this load run now? `ret_hit` is set unless ACRE_QUOTA_WITHIN. */
enum quota_answer accounts_may_run(const struct accounts *accounts, uint32_t account,
                                   struct account_load load, uint64_t now_ms,
                                   struct quota_hit *ret_hit);
/* Is more held now than a soft quota allows? Then its jobs are the first to be preempted. */
bool accounts_over_soft(const struct accounts *accounts, uint32_t account, uint64_t now_ms);

/* For plans: the hard quota of the account's user or project (NULL: none), and a number that says
 * whose it is. When decayed use passes its GPU-hours, `ret_below_ms` is when it will not any more
 * if nothing is added (else 0). */
const struct acre_quota *accounts_hard_quota(const struct accounts *accounts, uint32_t account,
                                             bool of_project, uint64_t now_ms, uint32_t *ret_party,
                                             uint64_t *ret_below_ms);

/* "user:ada holds 3.5 of 4 GPUs and asks for 1" : returns `text`. */
char *quota_hit_show(const struct quota_hit *hit, char *text, size_t size);

#endif
