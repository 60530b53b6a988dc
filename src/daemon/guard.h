/* guard.h - what follows from readings of GPUs: memory limits enforced, unhealthy devices taken out
 * of service and returned, strangers' memory counted, use recorded.
 *
 * Loop thread only. It reads nothing itself (sampler.h) and ends nothing itself (the engine). */
#ifndef ACRE_DAEMON_GUARD_H
#define ACRE_DAEMON_GUARD_H

#include "daemon/sampler.h"
#include "sched/job.h"

struct acre_desk;
struct acre_guard;

struct acre_guard *acre_guard_create(void);
void acre_guard_destroy(struct acre_guard *guard); /* NULL is fine */
/* When the desk is loaded, before the first round. */
void acre_guard_set(struct acre_guard *guard, struct acre_desk *desk, struct acre_sampler *sampler);

/* For the sampler. */
void acre_guard_round(void *guard, const struct acre_sampled_round *round);
/* For the desk's sink. */
void acre_guard_begin(void *guard, struct acre_run run, const struct acre_run_device *devices,
                      uint32_t count);
void acre_guard_end(void *guard, struct acre_run run, struct acre_job_exit *exit);

#endif
