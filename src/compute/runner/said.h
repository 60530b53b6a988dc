/* said.h - what a driver writes to standard error while it compiles belongs in the log.
 *
 * PoCL prints there ("1 error generated."), and the runner shares standard error with the program
 * that started it. This is done only in a runner, where the process is ours: all threads share
 * descriptors. Meanwhile whatever other threads write there goes into the log too; the caller holds
 * a lock, so that only one capture is active at a time. */
#ifndef ACRE_COMPUTE_RUNNER_SAID_H
#define ACRE_COMPUTE_RUNNER_SAID_H

#include "core/buf.h"

struct said {
    int file, before; /* what stands for standard error, and what it was; -1: nothing is changed */
};

struct said said_begin(void);
void said_end(struct said said, struct acre_buf *log);

#endif
