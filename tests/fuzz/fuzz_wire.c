/* Starts, as the supervisor reads them: a damaged block is refused; of a whole one everything it
 * points to is inside. */
#include "engine/shim_wire.h"
#include "fuzz.h"

#include <stdlib.h>

/* Reads every byte that the job points to. */
static size_t walk(struct wire_job *job) {
    size_t sum = strlen(job->directory);
    for (uint32_t i = 0; i < job->argument_count; i++) {
        sum += strlen(job->arguments[i]);
    }
    ACRE_ASSERT(job->arguments[job->argument_count] == NULL);
    for (uint32_t i = 0; i < job->member_count; i++) {
        for (char **line = wire_environment(job, i); *line != NULL; line++) {
            sum += strlen(*line);
        }
    }
    for (uint32_t i = 0; i < job->group_count; i++) {
        sum += job->groups[i] & 1;
    }
    for (uint32_t i = 0; i < job->rule_count; i++) {
        sum += ((const unsigned char *)&job->rules[i])[0];
    }
    for (uint64_t i = 0; job->has_stdin && i < job->stdin_bytes; i++) {
        sum += (unsigned char)job->stdin_text[i];
    }
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *bytes = acre_calloc(1, ACRE_MAX(size, (size_t)1)); /* its end is guarded */
    if (size > 0) {
        memcpy(bytes, data, size);
    }
    struct wire_job job;
    struct acre_error err = {0};
    int r = wire_decode(bytes, size, &job, &err);
    if (r < 0) {
        acre_fuzz_check_error(&err, r);
    } else {
        volatile size_t sum = walk(&job);
        (void)sum;
        wire_job_finish(&job);
    }
    free(bytes);
    return 0;
}
