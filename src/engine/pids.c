/* pids.c - list, open, list again, send.
 *
 * A pidfd is one process for good, but it is opened by number. So the list is made once more after
 * the descriptors are open: a number that is still on it is either the process that was opened, or
 * a new one of the same run; in that case the opened one is dead, and the signal goes nowhere. A
 * process that was never on the list cannot be hit. Descriptors are few, so it goes in batches. */
#include "engine/pids.h"

#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { BATCH = 256 }; /* under the usual 1024 descriptors, with room for others */

static int compare(const void *a, const void *b) {
    int64_t one = *(const int64_t *)a, other = *(const int64_t *)b;
    return (one > other) - (one < other);
}

static uint32_t list_sorted(pids_list *list, void *context, int64_t *pids) {
    uint32_t count = ACRE_MIN(list(context, pids, ACRE_PIDS_MAX), (uint32_t)ACRE_PIDS_MAX);
    qsort(pids, count, sizeof(*pids), compare);
    return count;
}

uint32_t pids_signal(pids_list *list, pids_filter *wants, void *context, int number) {
    int64_t *pids = acre_calloc(2 * (size_t)ACRE_PIDS_MAX, sizeof(*pids));
    int64_t *again = pids + ACRE_PIDS_MAX;
    uint32_t count = list_sorted(list, context, pids);
    for (uint32_t from = 0; from < count; from += BATCH) {
        int fds[BATCH];
        uint32_t batch = ACRE_MIN(count - from, (uint32_t)BATCH);
        for (uint32_t i = 0; i < batch; i++) {
            pid_t pid = (pid_t)pids[from + i];
            fds[i] = pid > 1 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
        }
        uint32_t still = list_sorted(list, context, again);
        for (uint32_t i = 0; i < batch; i++) {
            const int64_t *pid = &pids[from + i];
            if (fds[i] >= 0 && bsearch(pid, again, still, sizeof(*again), compare) != NULL &&
                (wants == NULL || wants(context, *pid))) {
                (void)syscall(SYS_pidfd_send_signal, fds[i], number, NULL, 0); /* dead: no matter */
            }
            if (fds[i] >= 0) {
                close(fds[i]);
            }
        }
    }
    free(pids);
    return count;
}
