/* pids.h - signals to the processes on a list, and to no others.
 *
 * A number on a list may be another process by the time it is used. Any thread. It does not
 * make lists: that is cgroup.h and tree.h. */
#ifndef ACRE_ENGINE_PIDS_H
#define ACRE_ENGINE_PIDS_H

#include "core/base.h"

enum { ACRE_PIDS_MAX = 65536 }; /* of one run; the kernel's limit on most machines is half of it */

/* Which processes there are now: how many; fills up to max. */
typedef uint32_t pids_list(void *context, int64_t *pids, uint32_t max);
/* Whether this one is to get the signal. */
typedef bool pids_filter(void *context, int64_t pid);

/* `number` to everything listed that `wants` (NULL: all) accepts. How many were listed. Those
 * forked meanwhile are missed. */
uint32_t pids_signal(pids_list *list, pids_filter *wants, void *context, int number);

#endif
