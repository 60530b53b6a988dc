/* tally.h - counts ended jobs for acre_store_statistics. Private to src/store.
 *
 * One thread at a time. Percentiles are exact (nearest rank): every wait is kept until the end,
 * 8 bytes each. */
#ifndef ACRE_STORE_TALLY_H
#define ACRE_STORE_TALLY_H

#include "store/store.h"

struct row_tally {
    struct acre_job_statistics counts;
    uint64_t *waits_ms;
    size_t wait_count;
    uint32_t capacity;
    double wait_sum_ms, run_sum_ms;
};

/* Waits and runs are those of jobs that started; a clock that went back makes them 0. */
void tally_add(struct row_tally *tally, const char *state, uint64_t submitted_ms,
               uint64_t started_ms, uint64_t ended_ms);
/* Frees what the tally holds. */
struct acre_job_statistics tally_finish(struct row_tally *tally);

#endif
