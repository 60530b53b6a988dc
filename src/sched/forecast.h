/* forecast.h - what the scheduler has learnt: how long jobs really run, and how wrong the estimates
 * of their starts really are.
 *
 * Owned by the scheduler, which reports events to it (each call is O(1)); plan.c keeps its plan in
 * it. Bounded: old habits are overwritten, old errors fade. Pure; core thread only. It decides
 * nothing: no order, no placement. */
#ifndef ACRE_SCHED_FORECAST_H
#define ACRE_SCHED_FORECAST_H

#include "sched/job.h"

struct forecast;

/* `names` (borrowed) tells names of jobs apart by their texts: an id may become another's. NULL: by
 * their ids. */
struct forecast *forecast_create(const struct acre_names *names);
void forecast_destroy(struct forecast *forecast); /* NULL is fine */
size_t forecast_bytes(const struct forecast *forecast);

/* The plan must be made anew: a run ended, a job went, was held, released or preempted, the
 * priority of one, the policy or the cluster changed. A submission and a start say so themselves.
 */
void forecast_changed(struct forecast *forecast);
/* A job joined the queue (submitted). */
void forecast_submitted(struct forecast *forecast, uint64_t job);
/* A run began: the wait is compared with what was estimated first. */
void forecast_started(struct forecast *forecast, uint64_t job, uint64_t now_ms);
/* A queued job went without a run (canceled), or was held or moved by its owner: what was estimated
 * for it says nothing about estimates. */
void forecast_forget(struct forecast *forecast, uint64_t job);
/* A run ended by itself after `ran_ms` (not canceled, preempted or lost). */
void forecast_ended(struct forecast *forecast, const struct acre_job_spec *spec, uint64_t ran_ms);

/* How long a run of this job is expected to take: what its owner's last two runs of this name took;
 * else its estimate, limit or `default_ms`, corrected by how its account's runs compared with
 * theirs. Never longer than its limit, never 0. */
uint64_t forecast_run_ms(const struct forecast *forecast, const struct acre_job_spec *spec,
                         uint64_t default_ms);

/* Remember what was estimated for a job, the first time; forecast_started compares. */
void forecast_estimated(struct forecast *forecast, uint64_t job, uint64_t now_ms,
                        uint64_t start_ms);
/* What a wait that the plan says turns out to be: in the middle, and nine in ten. */
struct forecast_wait {
    uint64_t middle_ms, least_ms, most_ms;
};
struct forecast_wait forecast_wait(const struct forecast *forecast, uint64_t planned_ms);
/* How many starts were compared, for reports. */
uint64_t forecast_compared(const struct forecast *forecast);

/* The plan of plan.c. */
struct plan;
struct plan *forecast_plan(struct forecast *forecast);

#endif
