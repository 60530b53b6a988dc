/* burden.h - what the jobs of each user take of the daemon itself, whatever they run, and how much
 * of it a user may take (policy.h: acre_user_limits).
 *
 * Counted for all users, from the submission until the job is dropped, and rebuilt by
 * acre_sched_restore. Only acre_sched_within_limits applies the limits: the caller decides for
 * which users. Pure; core thread only. */
#ifndef ACRE_SCHED_BURDEN_H
#define ACRE_SCHED_BURDEN_H

#include "sched/sched.h"

struct acre_burden {
    uint64_t queued; /* live jobs that do not run */
    uint64_t bytes;  /* what is kept to start them; an array's counts once */
    uint32_t names;  /* distinct names of jobs */
};

/* Zeros for a user without jobs. */
void acre_sched_burden(const struct acre_sched *sched, uint32_t user,
                       struct acre_burden *ret_burden);
/* May these jobs be added, `count` of them with one spec? ACRE_ELIMIT names the limit of the policy
 * that is in the way, what is there, what was asked and what helps. */
int acre_sched_within_limits(const struct acre_sched *sched, const struct acre_job_spec *spec,
                             uint32_t count, struct acre_error *err);

/* Private to src/sched from here on. */
struct acre_burdens;
struct job;

struct acre_burdens *acre_burdens_create(void);
void acre_burdens_destroy(struct acre_burdens *burdens); /* NULL is fine */
size_t acre_burdens_bytes(const struct acre_burdens *burdens);

void acre_burdens_add_text(struct acre_burdens *burdens, uint32_t user, uint32_t bytes);
void acre_burdens_remove_text(struct acre_burdens *burdens, uint32_t user, uint32_t bytes);
/* A job came or is dropped: its name, and its text unless that is its array's. */
void acre_burden_add(struct acre_sched *sched, const struct job *job);
void acre_burden_remove(struct acre_sched *sched, const struct job *job);

#endif
