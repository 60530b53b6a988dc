/* said.h - what a driver writes to standard error while it compiles: it belongs into the log.
 *
 * PoCL prints there ("1 error generated."), which is the standard error of the program whose runner
 * this is. Only here, where the process is ours: descriptors are those of all threads. Between the
 * two, what other threads write there goes into the log too; the caller has a lock, so that there
 * is one at a time. */
#ifndef ACRE_COMPUTE_RUNNER_SAID_H
#define ACRE_COMPUTE_RUNNER_SAID_H

#include "core/buf.h"

struct said {
    int file, before; /* what stands for standard error, and what it was; -1: nothing is changed */
};

struct said said_begin(void);
void said_end(struct said said, struct acre_buf *log);

#endif
