/* follow.h - follows a job until it ends, and returns its exit status.
 *
 * Programs only, one thread. */
#ifndef ACRE_CLI_FOLLOW_H
#define ACRE_CLI_FOLLOW_H

#include "cli/common.h"

/* Follow job `id`. `logs`: copy its output to ours, live; else only wait. The first SIGINT or
 * SIGTERM cancels the job, the second leaves it. Returns the exit status of `acre run`: the job's
 * own, 128 + signal, 130 when it was canceled, or one of the error table's. */
int follow_job(struct session *session, uint64_t id, bool logs);

/* The status a shell would give for how the job ended. */
int follow_status(const json_t *job);

/* Whether the job has not come to its end. */
bool follow_is_live(const json_t *job);

/* A descriptor that can be read when SIGINT or SIGTERM has come (they are blocked from then on). */
int follow_signals(void);

#endif
