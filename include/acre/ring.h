/* ring.h - a resident kernel that answers messages without a launch.
 *
 * A handler, in the portable dialect,
 *     handler void handle(local const uint *in, local uint *out, global uint *state, uint lane,
 *                         uint lanes)
 * stays on the device and takes messages from shared memory; `lanes` work items run it for one
 * message (32 where it stays, else 1; lane_sync() lets them meet). Where a kernel cannot stay
 * (OpenCL, HIP, CPU, a device that fails the coherence probe) a worker thread launches it for the
 * messages that wait: same results, and the report says why. What a handler writes to `state` is
 * seen by later messages of its warp; by other warps, streams and the host when the ring has
 * stopped, or earlier where the handler uses atomics for it.
 *
 * Loading a program or giving memory back to the driver interrupts a resident kernel for some tens
 * of microseconds, because the driver would wait for its end.
 *
 * A device that takes no work for a while, because too many of its calls failed, stops its rings
 * when they would have to be launched: messages without an answer and new ones fail with
 * ACRE_EUNAVAILABLE, the text says for how long, and the ring comes back by itself.
 *
 * Any number of threads may call at once. Messages are taken in order of posting; with one warp
 * (the default) they are also finished in that order. */
#ifndef ACRE_RING_H
#define ACRE_RING_H

#include <acre/kernel.h>

#ifdef __cplusplus
extern "C" {
#endif

struct acre_ring;

struct acre_ring_options {
    const char *handler;      /* its name in the source; NULL: "handle" */
    uint32_t in_words;        /* of a message, 32 bits each: 1 to 96 */
    uint32_t out_words;       /* of an answer: 1 to 96 */
    uint32_t slots;           /* messages under way at most, a power of two, 2 to 65536; 0: 1024 */
    uint32_t warps;           /* messages handled at once, 1 to 64; 0: 1 */
    uint32_t hang_ms;         /* a message that takes longer is hung: its context is lost, as by
                               * a kernel that never ends; 0: 1000. On OpenCL and HIP waiting
                               * behind other kernels of the context counts too */
    uint32_t idle_ms;         /* without messages for so long its kernel leaves the device, where
                               * it is in the way of who shares it, and is back for the next, a
                               * launch later; 0: it stays */
    struct acre_buffer state; /* what the handler gets as `state`; id 0: 16 bytes of zeros */
};

enum acre_ring_path { ACRE_RING_RESIDENT, ACRE_RING_WORKER };

struct acre_ring_report {
    enum acre_ring_path path;
    char reason[160]; /* why not resident; "" */
    bool is_running;
    bool is_resident;                 /* its kernel is on the device now */
    uint64_t posted, answered, beats; /* beats: of the kernel's health tick */
    uint32_t restarts, reloads, hangs;
    uint32_t naps; /* how often its kernel left because nobody called */
};

/* Compile, probe, start. The first three of a context are resident where the device can do that.
 * What can block a resident kernel (loading of modules, growth of pools) is done before it starts.
 */
ACRE_API int acre_ring_create(struct acre_context *context, const struct acre_source *source,
                              const struct acre_ring_options *options, struct acre_ring **ret_ring,
                              struct acre_error *err);
ACRE_API void acre_ring_destroy(struct acre_ring *ring); /* NULL is fine */
/* What was posted is answered first. A stopped ring refuses messages (ACRE_ECONFLICT). */
ACRE_API int acre_ring_stop(struct acre_ring *ring, struct acre_error *err);
ACRE_API int acre_ring_start(struct acre_ring *ring, struct acre_error *err);
/* Another handler, from the next message on; nothing posted is lost. The old one stays when the
 * new one does not compile. */
ACRE_API int acre_ring_reload(struct acre_ring *ring, const struct acre_source *source,
                              struct acre_error *err);

/* Post without waiting (waits only while all slots are taken; ACRE_ETIMEOUT then), and collect.
 * Tickets are collected once each, by any thread, in any order; a slot is taken until then.
 * ACRE_ENOTFOUND: no such ticket, or collected before; ACRE_ETIMEOUT: no answer within
 * `timeout_ms`, it can be collected later. A message that was lost with its context tells that
 * loss. */
ACRE_API int acre_ring_post(struct acre_ring *ring, const uint32_t *in, int timeout_ms,
                            uint64_t *ret_ticket, struct acre_error *err);
ACRE_API int acre_ring_collect(struct acre_ring *ring, uint64_t ticket, uint32_t *ret_out,
                               int timeout_ms, struct acre_error *err);
/* Both, within `timeout_ms` in all; after ACRE_ETIMEOUT nobody can have the answer any more. */
ACRE_API int acre_ring_call(struct acre_ring *ring, const uint32_t *in, uint32_t *ret_out,
                            int timeout_ms, struct acre_error *err);
ACRE_API void acre_ring_report(struct acre_ring *ring, struct acre_ring_report *ret_report);

#ifdef __cplusplus
}
#endif

#endif
