/* job_trace.h - reads recorded jobs with their times, in the CSV format of the Philly trace.
 *
 *   timestamp,duration,num_gpus,gpu_time,cluster       ("2017-09-04 10:30:41", seconds, ...)
 *
 * sorted by timestamp; gpu_time is ignored. A job with more GPUs than a node has becomes a gang of
 * equal members. Reading files is the only I/O; parsing is pure. */
#ifndef ACRE_SIM_JOB_TRACE_H
#define ACRE_SIM_JOB_TRACE_H

#include "core/error.h"
#include "core/names.h"

struct trace_job {
    uint64_t submit_ms; /* since 1970 */
    uint64_t duration_ms;
    uint32_t gpus;
    uint32_t cluster; /* of acre_job_trace.names: the virtual cluster */
};

struct acre_job_trace {
    struct acre_names *names;
    struct trace_job *jobs;
    uint32_t count;
};

enum { ACRE_TRACE_JOB_GPUS_MAX = 4096 };

int job_trace_parse(const char *name, struct acre_str text, struct acre_job_trace **ret_trace,
                    struct acre_error *err);
int job_trace_load(const char *path, struct acre_job_trace **ret_trace, struct acre_error *err);
void job_trace_destroy(struct acre_job_trace *trace); /* NULL is fine */

#endif
