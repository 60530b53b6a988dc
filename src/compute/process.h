/* process.h - whether a handle may be used here: not NULL, open, and of this process.
 *
 * A runtime belongs to the process that opened it. A child made by fork() has copies of its memory
 * and descriptors, but none of its threads; using them would affect the parent's runner and rings.
 * So each context remembers its process number, which a fork changes, and every public function
 * checks it before it takes a lock: another thread may have held the lock at the moment of the
 * fork. Any thread. */
#ifndef ACRE_COMPUTE_PROCESS_H
#define ACRE_COMPUTE_PROCESS_H

#include "compute/inner.h"

/* How many forks after the first runtime was opened made this process. */
extern _Atomic uint32_t process_number;

void process_init(void); /* before a runtime is opened: forks are counted from now on */

/* Contexts that are open in this process. `take` says whether it was one, and is one no more. */
void process_add(struct acre_context *context);
bool process_take(struct acre_context *context);

/* ACRE_EINVALID: it is NULL; else ACRE_ECONFLICT: it belongs to the parent. */
int process_refuse(const char *what, const void *handle, struct acre_error *err);
/* ACRE_EINVALID also when the stream was destroyed. */
int process_refuse_stream(const struct acre_stream *stream, struct acre_error *err);

static inline bool process_is_ours(uint32_t process) {
    return process == atomic_load_explicit(&process_number, memory_order_relaxed);
}

static inline int compute_check(const struct acre_compute *compute, struct acre_error *err) {
    return compute != NULL && process_is_ours(compute->process)
               ? 0
               : process_refuse("compute", compute, err);
}

static inline int context_check(const struct acre_context *context, struct acre_error *err) {
    return context != NULL && process_is_ours(context->process)
               ? 0
               : process_refuse("context", context, err);
}

static inline bool stream_is_good(const struct acre_stream *stream) {
    return stream != NULL && stream->magic == STREAM_MAGIC &&
           process_is_ours(stream->context->process);
}

static inline int stream_check(const struct acre_stream *stream, struct acre_error *err) {
    return stream_is_good(stream) ? 0 : process_refuse_stream(stream, err);
}

#endif
