/* resident.h - automatic calls of a few items through a resident ring. Lock held. */
#ifndef ACRE_COMPUTE_AUTO_RESIDENT_H
#define ACRE_COMPUTE_AUTO_RESIDENT_H

#include "compute/auto/inner.h"

/* Whether the kernel can be a handler; "" or why not. */
void auto_ring_init(struct acre_auto *automatic, char *reason);
int auto_ring_prepare(struct acre_auto *automatic, const struct auto_call *call,
                      struct acre_error *err);
int auto_ring_go(struct acre_auto *automatic, const struct auto_call *call, struct acre_error *err);
/* A call went elsewhere: a ring that is not used for long does not stay on the device. */
void auto_ring_pass(struct acre_auto *automatic);
/* A call as a message, and the answer to it. */
void auto_ring_pack(const struct acre_auto *automatic, const struct auto_call *call, uint32_t *in);
void auto_ring_unpack(const struct acre_auto *automatic, const struct auto_call *call,
                      const uint32_t *out);
/* The kernel's source as a handler's. */
int auto_ring_source(const struct acre_auto *automatic, struct acre_buf *out);

#endif
