/* remote.h - a place in another process: the runner.
 *
 * acre_remote speaks the table of backend.h (as far as the back end in the runner does) over
 * shared memory: queued work is written to a ring that the runner's thread polls, and needs no
 * answer; the rest waits for one. Memory of the host (PINNED, MAPPED) is shared, so signals, rings
 * and copies are the same memory on both sides. When the runner dies or is ended, every call
 * answers ACRE_EUNAVAILABLE with the reason until it is started again; queued calls may be accepted
 * until somebody has noticed (check(), or one of the other calls).
 *
 * A queued call that the back end refuses later is told once, by stream_error() or by the next
 * queued call of its stream, whichever comes first; what was queued behind it is not done, but for
 * signals and notices, so that waiting ends. Calls that wait for an answer see the effects of all
 * queued calls before them where that can matter (destroying, updating, profiling, transfers). */
#ifndef ACRE_COMPUTE_RUNNER_REMOTE_H
#define ACRE_COMPUTE_RUNNER_REMOTE_H

#include "compute/backend.h"

/* Same table, other place: never in the list of back ends. */
extern const struct acre_backend acre_backend_remote;

/* Start a runner with one device of one back end open, and be its place. */
int acre_remote_open(const char *backend, uint32_t device, void **ret_place,
                     struct acre_error *err);
/* acre_backend_remote less what the back end in the runner cannot; lives as long as the place. */
const struct acre_backend *acre_remote_table(void *place);
/* For waiting on its death; stays the same for a runner's life. */
int acre_remote_pidfd(void *place);
/* Whether calls answer that it is gone. */
bool acre_remote_has_ended(void *place);
/* Kill the runner (a kernel hangs); `why` is what calls answer from then on. */
void acre_remote_end(void *place, const char *why);
/* A new runner for the same place: nothing that was made in it exists any more. Not while other
 * threads call, except for calls that fail. */
int acre_remote_restart(void *place, struct acre_error *err);
/* Whole pages shared with this place's runners: what its PINNED and MAPPED regions are made of.
 * They stay over a restart, and are made regions of the new runner by region_create. */
int acre_remote_map(void *place, uint64_t bytes, void **ret_host, struct acre_error *err);
void acre_remote_unmap(void *place, void *host, uint64_t bytes);

#endif
