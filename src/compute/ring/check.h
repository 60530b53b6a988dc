/* check.h - whether a ring may be used here (process.h). Every call checks this first. */
#ifndef ACRE_COMPUTE_RING_CHECK_H
#define ACRE_COMPUTE_RING_CHECK_H

#include "compute/process.h"
#include "compute/ring/inner.h"

static inline int ring_check(const struct acre_ring *ring, struct acre_error *err) {
    return ring != NULL && process_is_ours(ring->context->process)
               ? 0
               : process_refuse("ring", ring, err);
}

#endif
