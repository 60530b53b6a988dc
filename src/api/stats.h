/* stats.h - the numbers several routes show. Loop thread only. */
#ifndef ACRE_API_STATS_H
#define ACRE_API_STATS_H

#include "api/api.h"

struct stats {
    struct acre_sched_counts counts;
    struct acre_job_statistics ended; /* in the window */
    uint64_t window_ms;
    uint64_t ended_last_hour;
    uint64_t used_milli;
    uint32_t gpus, free_gpus, busy_gpus, drained;
};
int stats_read(struct acre_api *api, struct stats *ret_stats, struct acre_error *err);

#endif
