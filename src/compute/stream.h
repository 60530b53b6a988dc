/* stream.h - how the front queues work on a stream and waits for it. */
#ifndef ACRE_COMPUTE_STREAM_H
#define ACRE_COMPUTE_STREAM_H

#include "compute/inner.h"

/* A stream for a kernel that stays. */
int stream_create_resident(struct acre_context *context, struct acre_stream **ret_stream,
                           struct acre_error *err);

/* Everything that gives work: enter, resolve handles, queue, leave. enter fails when the context is
 * lost for good or its circuit is open, makes the stream's handle anew after a loss, and leaves the
 * gate held for reading only when it returns 0. */
int stream_enter(struct acre_stream *stream, struct acre_error *err);
void stream_leave(struct acre_stream *stream,
                  int result);                /* result: of the work, for the breaker */
void stream_pass(struct acre_stream *stream); /* leave, as context_pass */
/* Between these, what entering and leaving hold too: nobody else gives it work. Gate held. */
void stream_take(struct acre_stream *stream);
void stream_let(struct acre_stream *stream);
/* Have the stream of this word signal what it was given, unless it is at work or stays so: its
 * user may never come back to it, and others wait for what was freed. Neither entered nor locked.
 */
void stream_nudge(struct acre_context *context, uint32_t word_index);
/* Number of the piece of work just queued. */
uint64_t stream_issue(struct acre_stream *stream);
/* The same for a launch (NULL: not known of what). */
int stream_launched(struct acre_stream *stream, const struct acre_kernel *kernel,
                    struct acre_error *err);
/* Queue a signal for all work so far, unless there is one. Entered. */
int stream_signal(struct acre_stream *stream, struct acre_error *err);
/* Wait for a number; not entered. As acre_event_wait. */
int stream_wait(struct acre_stream *stream, uint64_t sequence, int timeout_ms,
                struct acre_error *err);
/* The same for the word of a stream that may be gone; 0 also when it was lost. */
int word_wait(struct acre_context *context, uint32_t word_index, uint64_t sequence, int timeout_ms,
              struct acre_error *err);
/* Wait for all it was given, also while the circuit is open: what is under way must be over. The
 * answer as of stream_wait. */
int stream_drain(struct acre_stream *stream, struct acre_error *err);
/* A look without waiting: has it come (or been lost)? */
bool stream_is_past(const struct acre_stream *stream, uint64_t sequence);
/* The second half of acre_stream_destroy, which leaves it to the closing of a context that was lost
 * in this process: waits for what the back end has not ended yet. */
void stream_release(struct acre_stream *stream);
/* All streams of a context that was lost: the epoch grows, waiters look. Gate written. */
void streams_lose(struct acre_context *context);

#endif
