/* context.h - what the front asks of a context. */
#ifndef ACRE_COMPUTE_CONTEXT_H
#define ACRE_COMPUTE_CONTEXT_H

#include "compute/inner.h"

/* Its locks and its circuit (rest_ms and rest_calls are set), before anything else; and the end of
 * them. */
void context_init(struct acre_context *context);
void context_finish(struct acre_context *context);
/* It does not work now: why, as the caller must answer. */
int context_failure(struct acre_context *context, struct acre_error *err);
/* Host memory that is shared with the runner where there is one. */
int context_map(struct acre_context *context, uint64_t bytes, void **ret_host,
                struct acre_error *err);
void context_unmap(struct acre_context *context, void *host, uint64_t bytes);
const struct acre_compute_device *context_device(const struct acre_context *context);
/* The gate held for reading, also when nothing works: handles are of this epoch while that lasts.
 */
void context_read(struct acre_context *context);
/* The gate held for reading, unless the context is lost for good or its circuit is open. */
int context_enter(struct acre_context *context, struct acre_error *err);
void context_leave(struct acre_context *context, int result); /* result: for the circuit */
/* Leave when nothing was asked of the device (a buffer was lost before, say): that says nothing of
 * it, and another call may try whether it works again. */
void context_pass(struct acre_context *context);
/* Whether it could be entered now, for who only wants to know; gate held or not. */
int context_look(struct acre_context *context, struct acre_error *err);
/* How work went, for the circuit: what a caller did wrong says nothing. */
void context_tell(struct acre_context *context, int result);
/* Work was lost with it: why. */
int context_loss(struct acre_context *context, struct acre_error *err);
/* The seat is gone, or must go: everything on the device is lost, the context made anew where it
 * can be. By the keeper and by rings' watchers; neither gate nor rings_lock held. */
void context_lose(struct acre_context *context, int code, const char *why);
/* The same when its runner has ended: that is looked at when nobody is within the gate, so that who
 * gives work does not see its own fault before it has left. */
void context_lose_runner(struct acre_context *context);
/* The same unless another thread has the gate now: by a thread that waits, and tries again. */
void context_try_lose(struct acre_context *context, int code, const char *why);

#endif
