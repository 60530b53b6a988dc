/* keeper.h - the thread that watches a context. */
#ifndef ACRE_COMPUTE_KEEPER_H
#define ACRE_COMPUTE_KEEPER_H

#include "compute/inner.h"

/* Nothing to watch (in this process, no limit): no thread. */
int keeper_start(struct acre_context *context, struct acre_error *err);
void keeper_stop(struct acre_context *context);

#endif
