/* descendants.h - the descendants of a process, from /proc.
 *
 * A supervisor that is a subreaper is the ancestor of everything its job ever started, whatever
 * sessions and double forks there were: this finds and ends them where no cgroup does. A snapshot:
 * who forks meanwhile is found by the next one. Any thread. */
#ifndef ACRE_ENGINE_DESCENDANTS_H
#define ACRE_ENGINE_DESCENDANTS_H

#include "core/base.h"

/* All descendants of `root`, not itself: how many there are; fills up to max. */
uint32_t descendants_find(int64_t root, int64_t *pids, uint32_t max);
/* SIGKILL to all of them. Each is stopped first, until no new ones appear: a fork bomb cannot
 * outrun it. The caller waits for their deaths. */
void descendants_kill(int64_t root);

#endif
