/* log_room.h - how much room the logs of each account take, and making some when it is too much.
 *
 * Whose a log is says its owner on disk: supervisors give the file to the job's account, in a
 * directory that only the daemon can enter. Totals are found by looking through the directory,
 * which a thread does after the start and whenever an account has too much; in between, what ends
 * is added. Loop thread only. */
#ifndef ACRE_ENGINE_LOG_ROOM_H
#define ACRE_ENGINE_LOG_ROOM_H

#include "core/loop.h"
#include "engine/engine.h"

struct log_room;

/* `logs` and `runs` are descriptors of these directories of the state; they stay the caller's. */
struct log_room *log_room_create(struct acre_loop *loop, int logs, int runs);
void log_room_destroy(struct log_room *room); /* NULL is fine */

/* Of one account, from now on; root's has none. 0: no limit. */
void log_room_limit(struct log_room *room, uint64_t limit_mib);
/* The run has ended, and may have written something. */
void log_room_add(struct log_room *room, struct acre_run run);

#endif
