/* tally.c - waits are gathered and sorted once: 100,000 take some ms, and there is no bucket width
 * to choose. */
#include "store/tally.h"

#include <stdlib.h>
#include <string.h>

void tally_add(struct row_tally *tally, const char *state, uint64_t submitted_ms,
               uint64_t started_ms, uint64_t ended_ms) {
    tally->counts.completed += strcmp(state, "completed") == 0;
    tally->counts.failed += strcmp(state, "failed") == 0;
    tally->counts.canceled += strcmp(state, "canceled") == 0;
    if (started_ms == 0) {
        return;
    }
    tally->waits_ms =
        acre_grow(tally->waits_ms, tally->wait_count, &tally->capacity, sizeof(uint64_t));
    uint64_t wait_ms = started_ms > submitted_ms ? started_ms - submitted_ms : 0;
    tally->waits_ms[tally->wait_count++] = wait_ms;
    tally->wait_sum_ms += (double)wait_ms;
    tally->run_sum_ms += ended_ms > started_ms ? (double)(ended_ms - started_ms) : 0;
}

static int compare_ms(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static uint64_t percentile(const struct row_tally *tally, size_t percent) {
    ACRE_ASSERT(tally->wait_count > 0 && percent >= 1 && percent <= 100);
    return tally->waits_ms[(tally->wait_count * percent + 99) / 100 - 1];
}

struct acre_job_statistics tally_finish(struct row_tally *tally) {
    struct acre_job_statistics result = tally->counts;
    if (tally->wait_count > 0) {
        qsort(tally->waits_ms, tally->wait_count, sizeof(uint64_t), compare_ms);
        result.wait_p50_ms = percentile(tally, 50);
        result.wait_p90_ms = percentile(tally, 90);
        result.wait_p99_ms = percentile(tally, 99);
        result.wait_mean_ms = (uint64_t)(tally->wait_sum_ms / (double)tally->wait_count + 0.5);
        result.run_mean_ms = (uint64_t)(tally->run_sum_ms / (double)tally->wait_count + 0.5);
    }
    free(tally->waits_ms);
    *tally = (struct row_tally){0};
    return result;
}
