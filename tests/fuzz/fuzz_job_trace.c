/* Recorded jobs: what is accepted is sorted and in range; refusals name the file. */
#include "fuzz.h"
#include "sim/job_trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct acre_job_trace *trace = NULL;
    struct acre_error err = {0};
    int r = job_trace_parse("jobs", (struct acre_str){(const char *)data, size}, &trace, &err);
    if (r < 0) {
        acre_fuzz_check_error(&err, r);
        ACRE_ASSERT(trace == NULL && strncmp(err.text, "jobs:", 5) == 0);
        return 0;
    }
    ACRE_ASSERT(trace->count > 0);
    for (uint32_t i = 0; i < trace->count; i++) {
        const struct trace_job *job = &trace->jobs[i];
        ACRE_ASSERT(job->gpus >= 1 && job->gpus <= ACRE_TRACE_JOB_GPUS_MAX);
        ACRE_ASSERT(job->cluster >= 1 && job->cluster <= acre_names_count(trace->names));
        ACRE_ASSERT(i == 0 || job->submit_ms >= trace->jobs[i - 1].submit_ms);
        ACRE_ASSERT(job->submit_ms < (UINT64_C(1) << 43) && job->duration_ms < (UINT64_C(1) << 43));
    }
    job_trace_destroy(trace);
    return 0;
}
