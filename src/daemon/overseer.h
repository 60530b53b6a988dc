/* overseer.h - acts on GPU readings: enforces memory limits, takes unhealthy devices out of service
 * and returns them, counts memory of foreign processes, records usage.
 *
 * Loop thread only. The sampler reads the GPUs (sampler.h), and the engine ends runs. */
#ifndef ACRE_DAEMON_OVERSEER_H
#define ACRE_DAEMON_OVERSEER_H

#include "daemon/sampler.h"
#include "sched/job.h"

struct acre_desk;
struct overseer;

struct overseer *overseer_create(void);
void overseer_destroy(struct overseer *overseer); /* NULL is fine */
/* When the desk is loaded, before the first round. */
void overseer_set(struct overseer *overseer, struct acre_desk *desk, struct sampler *sampler);

/* For the sampler. */
void overseer_round(void *overseer, const struct sampled_round *round);
/* For the desk's sink. */
void overseer_begin(void *overseer, struct acre_run run, const struct acre_run_device *devices,
                    uint32_t count);
void overseer_end(void *overseer, struct acre_run run, struct acre_job_exit *exit);

#endif
