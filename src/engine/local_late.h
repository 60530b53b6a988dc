/* local_late.h - ending runs that do not end: deadlines, and supervisors that have died.
 *
 * Included by local*.c only. Loop thread only. */
#ifndef ACRE_ENGINE_LOCAL_LATE_H
#define ACRE_ENGINE_LOCAL_LATE_H

#include "engine/local_state.h"

/* Its end must be told in so many ms from now, and a margin; otherwise it is ended from here. */
void local_expect_end(struct local_run *run, uint64_t in_ms);
void local_expect_limit(struct local_run *run); /* as its plan says */
/* Of a run whose supervisor is gone: has it no processes? Otherwise they are killed, and it is
 * checked again soon. */
bool local_is_empty(struct local *self, struct local_run *run);
/* Of a run whose supervisor is gone while somebody holds its lock still: kill its processes, and
 * check it again soon. */
void local_await_lock(struct local *self, struct local_run *run);
/* Of a run whose supervisor is not known yet: check it again soon, until it is. */
void local_await_word(struct local_run *run);

#endif
