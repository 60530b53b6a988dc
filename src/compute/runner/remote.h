/* remote.h - a seat in another process: the runner.
 *
 * acre_remote implements the table of backend.h (as far as the back end in the runner does) over
 * shared memory: queued work is written to a queue that the runner's thread polls, and needs no
 * answer; other calls wait for one. Host memory (PINNED, MAPPED) is shared, so signals, rings and
 * copies use the same memory on both sides. When the runner dies or is killed, every call returns
 * ACRE_EUNAVAILABLE with the reason until it is started again; queued calls may be accepted until
 * the death is noticed (by check(), or by one of the other calls).
 *
 * If the back end refuses a queued call later, stream_error() or the next queued call of its stream
 * reports it once, whichever comes first. Work queued after it is not done, except signals and
 * notices, so that waits end. Calls that wait for an answer see the effects of all queued calls
 * before them where that can matter (destroying, updating, profiling, transfers). */
#ifndef ACRE_COMPUTE_RUNNER_REMOTE_H
#define ACRE_COMPUTE_RUNNER_REMOTE_H

#include "compute/backend.h"

/* Same table, other seat: never in the list of back ends. */
extern const struct backend backend_remote;

/* Start a runner with one device of one back end open, and be its seat. */
int remote_open(const char *backend, uint32_t device, void **ret_seat, struct acre_error *err);
/* backend_remote less what the back end in the runner cannot; lives as long as the seat. */
const struct backend *remote_table(void *seat);
/* For waiting on its death; stays the same for a runner's life. */
int remote_pidfd(void *seat);
/* Whether calls answer that it is gone. */
bool remote_has_ended(void *seat);
/* Kill the runner (a kernel hangs); `why` is what calls answer from then on. */
void remote_end(void *seat, const char *why);
/* A new runner for the same seat: nothing that was made in it exists any more. Not while other
 * threads call, except for calls that fail. */
int remote_restart(void *seat, struct acre_error *err);
/* Whole pages shared with this seat's runners: what its PINNED and MAPPED regions are made of.
 * They stay over a restart, and are made regions of the new runner by region_create. */
int remote_map_host(void *seat, uint64_t bytes, void **ret_host, struct acre_error *err);
void remote_unmap(void *seat, void *host, uint64_t bytes);

#endif
