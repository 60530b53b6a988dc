/* ring.h - what the rest of the front needs to know about rings. */
#ifndef ACRE_COMPUTE_RING_RING_H
#define ACRE_COMPUTE_RING_RING_H

#include "compute/inner.h"

#include "core/buf.h"

#include <acre/ring.h>

/* The two ends of a quiet scope, and for it alone (quiet.h says what it is for): resident kernels
 * leave, and come back. The rings_lock is held in between. */
void rings_pause(struct acre_context *context);
void rings_resume(struct acre_context *context);
/* Of a context that closes. */
void rings_destroy(struct acre_context *context);

/* --- source.c ---------------------------------------------------------------------------- */

enum {
    RING_LANES = 32,
    RING_WORDS_MAX = RING_LANES * 3, /* a vector of a lane: three words and the tag */
    RING_WARPS_MAX = 64,
    /* Words of the control block: each on a cache line of its own. */
    RING_STOP = 0,
    RING_PING = 16,
    RING_PONG = 32,
    RING_NEXT = 48, /* of each warp: number of its next message */
    RING_BEATS = RING_NEXT + RING_WARPS_MAX,
    RING_CONTROL_WORDS = 256,
    RING_PROBES = 16,
    RING_LOOK_CYCLES = 1 << 16, /* of the device, before it looks whether to stop: some 30 us */
};

/* The user's handler and our kernels around it: "acre_ring" (where a kernel can stay),
 * "acre_ring_probe" and "acre_ring_batch". */
int ring_source_write(const char *text, const char *handler, bool is_resident,
                      struct acre_buf *out);

#endif
