/* forecast.h - what the scheduler has learnt: how long jobs really run, how wrong start estimates
 * really are; and the timeline made of it, which when.c keeps.
 *
 * Owned by the scheduler, which tells it what happens (each call is O(1)) and asks through why.h.
 * Pure; core thread only. It decides nothing: no order, no placement. */
#ifndef ACRE_SCHED_FORECAST_H
#define ACRE_SCHED_FORECAST_H

#include "sched/job.h"

struct acre_forecast;

struct acre_forecast *acre_forecast_create(void);
void acre_forecast_destroy(struct acre_forecast *forecast); /* NULL is fine */
size_t acre_forecast_bytes(const struct acre_forecast *forecast);

/* The timeline must be made anew: a run ended, a job went, was held, released or preempted, the
 * priority of one, the policy or the cluster changed. A submission and a start say so themselves.
 */
void acre_forecast_changed(struct acre_forecast *forecast);
/* A job joined the queue (submitted). It is put behind what is there when that is its place. */
void acre_forecast_submitted(struct acre_forecast *forecast, uint64_t job);
/* A run began: the wait is compared with what was estimated first. */
void acre_forecast_started(struct acre_forecast *forecast, uint64_t job, uint64_t now_ms);
/* A queued job went without a run (canceled): nothing is learnt; it is forgotten. */
void acre_forecast_forget(struct acre_forecast *forecast, uint64_t job);
/* A run ended by itself, after `ran_ms` (not for canceled, preempted or lost runs). */
void acre_forecast_ended(struct acre_forecast *forecast, const struct acre_job_spec *spec,
                         uint64_t ran_ms);

/* How long a run of this job is expected to take: what its owner's runs of this name took, else
 * its estimate, limit or `default_ms`, corrected by how its owner's runs compared with theirs;
 * never longer than its limit, never 0. (Also the order of the policy sjf.) */
uint64_t acre_forecast_run_ms(const struct acre_forecast *forecast,
                              const struct acre_job_spec *spec, uint64_t default_ms);

#endif
