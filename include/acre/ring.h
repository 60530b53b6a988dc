/* ring.h - a resident kernel that answers messages without a launch.
 *
 * A handler, in the portable dialect,
 *     handler void handle(local const uint *in, local uint *out, global uint *state, uint lane,
 *                         uint lanes)
 * stays on the device and takes messages from shared memory. `lanes` work items handle one message
 * (32 if the kernel is resident, otherwise 1) and meet at lane_sync(). Where a kernel cannot stay
 * (OpenCL, HIP, CPU, a device that fails the coherence probe), a worker thread launches it for the
 * waiting messages: the results are the same, and the report says why. Later messages of the same
 * warp see what a handler writes to `state`. Other warps, streams and the host see it when the ring
 * has stopped, or earlier if the handler uses atomics.
 *
 * Loading a program or returning memory to the driver interrupts a resident kernel for some tens
 * of microseconds, because the driver would otherwise wait for the kernel to end.
 *
 * A context refuses calls for a while when too many of them fail. A ring that must be launched in
 * that time stops: unanswered and new messages fail with ACRE_EUNAVAILABLE, the text says for how
 * long, and the ring restarts automatically.
 *
 * Threads. Any number of threads may post, collect, call and ask for a report at once, also while
 * another one stops, starts or reloads the ring; destroy it, or close its context, only when no
 * other thread uses it. Any thread may collect a ticket: if several try, one gets the answer and
 * the others get ACRE_ENOTFOUND. Messages are handled in the order they are posted: those of one
 * thread in its own order, a post that has returned before posts that begin later in any thread,
 * simultaneous posts in some order. With one warp (the default) they also finish in that order;
 * with more, messages handled at once share `state`: use atomics. If a thread never returns from a
 * post (asynchronous cancellation), all later messages wait. Signal handlers may not use a ring.
 * All threads share the slots: if all post and none collects, all wait. */
#ifndef ACRE_RING_H
#define ACRE_RING_H

#include <acre/kernel.h>

#ifdef __cplusplus
extern "C" {
#endif

struct acre_ring;

struct acre_ring_options {
    const char *handler;      /* its name in the source; NULL: "handle" */
    uint32_t in_words;        /* 32-bit words in a message: 1 to 96 */
    uint32_t out_words;       /* 32-bit words in an answer: 1 to 96 */
    uint32_t slots;           /* most messages in flight, a power of two, 2 to 65536; 0: 1024 */
    uint32_t warps;           /* messages handled at once, 1 to 64; 0: 1 */
    uint32_t hang_ms;         /* a message that takes longer is hung: its context is lost, as with
                               * a kernel that never ends; 0: 1000. On OpenCL and HIP, time spent
                               * waiting for other kernels of the context counts too */
    uint32_t idle_ms;         /* after this long without messages the kernel leaves the device,
                               * where it would slow down others; the next message brings it back,
                               * at the cost of a launch. 0: it stays */
    struct acre_buffer state; /* passed to the handler as `state`; id 0: 16 bytes of zeros */
};

enum acre_ring_path { ACRE_RING_RESIDENT, ACRE_RING_WORKER };

struct acre_ring_report {
    enum acre_ring_path path;
    char reason[160]; /* why the path is not RESIDENT; "": it is */
    bool is_running;
    bool is_resident;                 /* its kernel is on the device now */
    uint64_t posted, answered, beats; /* beats: the kernel's heartbeat counter */
    uint32_t restarts, reloads, hangs;
    uint32_t naps; /* how many times its kernel left the device because the ring was idle */
};

/* Compiles, probes, starts. The first three rings of a context are resident if the device can keep
 * a kernel. Whatever could block a resident kernel (loading modules, growing pools) is done before
 * it starts. ACRE_EINVALID: the options are bad, or the source does not compile. */
ACRE_API int acre_ring_create(struct acre_context *context, const struct acre_source *source,
                              const struct acre_ring_options *options, struct acre_ring **ret_ring,
                              struct acre_error *err);
ACRE_API void acre_ring_destroy(struct acre_ring *ring); /* NULL is fine */
/* Answers what was posted, then stops. A stopped ring refuses messages (ACRE_ECONFLICT). */
ACRE_API int acre_ring_stop(struct acre_ring *ring, struct acre_error *err);
/* ACRE_ECONFLICT: it is running, resting or failed. */
ACRE_API int acre_ring_start(struct acre_ring *ring, struct acre_error *err);
/* Switches to another handler from the next message on; no posted message is lost. The old handler
 * stays if the new one does not compile. */
ACRE_API int acre_ring_reload(struct acre_ring *ring, const struct acre_source *source,
                              struct acre_error *err);

/* Post a message, and collect its answer later. Posting waits only while all slots are taken
 * (ACRE_ETIMEOUT: none came free). Collect each ticket once, from any thread, in any order; the
 * message keeps its slot until then. ACRE_ENOTFOUND: no such ticket, or already collected;
 * ACRE_ETIMEOUT: no answer within `timeout_ms`, collect it later. If the message was lost with its
 * context, collecting returns that failure. */
ACRE_API int acre_ring_post(struct acre_ring *ring, const uint32_t *in, int timeout_ms,
                            uint64_t *ret_ticket, struct acre_error *err);
ACRE_API int acre_ring_collect(struct acre_ring *ring, uint64_t ticket, uint32_t *ret_out,
                               int timeout_ms, struct acre_error *err);
/* Both, within `timeout_ms` in all. After ACRE_ETIMEOUT the answer can no longer be collected. */
ACRE_API int acre_ring_call(struct acre_ring *ring, const uint32_t *in, uint32_t *ret_out,
                            int timeout_ms, struct acre_error *err);
ACRE_API void acre_ring_report(struct acre_ring *ring, struct acre_ring_report *ret_report);

#ifdef __cplusplus
}
#endif

#endif
