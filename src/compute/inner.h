/* inner.h - what the files of the front share: runtime, contexts, streams.
 *
 * Locks, in the order they are taken; each may be skipped, none is taken after a later one:
 *   context->rings_lock   the list of rings, and quiet scopes (quiet.h), which hold it. Recursive:
 *                         a scope within a scope, and a ring that is launched in one
 *   staging->lock         the context's own stream (copy.c)
 *   context->gate         read, once per thread: by everything that passes work or handles to the
 *                         back end; written: by the rebuilding of a lost context, so that no
 *                         handle outlives its seat
 *   a program's lock, or a graph's   its handles
 *   context->lock         buffers, pool, lists of streams, programs and graphs
 *   those of the breaker, of notices, of a ring's moved answers (ring/call.c), of the runtime, and
 *   all of a back end: nothing is taken after one of these
 * Waiting for work never holds the gate, because the loss that would end the wait writes it; with
 * the rings_lock held, waits are limited in time.
 * Only one thread at a time uses a stream, except for `word`, which the device writes.
 *
 * Each loss increments the context's epoch. Objects from an earlier epoch are made again on next
 * use (streams, modules, pinned regions) or are lost (buffers on the device). */
#ifndef ACRE_COMPUTE_INNER_H
#define ACRE_COMPUTE_INNER_H

#include "compute/backend.h"
#include "compute/breaker.h"
#include "compute/notice.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
    CONTEXTS_MAX = 1024,       /* of one runtime: a buffer's id has 12 bits for it */
    WORDS_MAX = 4096,          /* streams of one context */
    LAUNCHES_KEPT = 64,        /* of a stream, to name the one that hangs */
    GENERATIONS_MAX = 1 << 29, /* of buffers: a context's number is not used again after so many */
    LOSSES_KEPT = 8,           /* of a context: how far each stream had come */
    DESTROYED_KEPT = 32,       /* streams of a context, to say so of those that are used again */
    STREAM_MAGIC = 0x5354524d, /* a stream that was not destroyed */
};

struct backend_slot {
    const struct backend *table;
    void *self;
    uint32_t first, count; /* of its devices in the list */
    char absent[256];
};

struct acre_compute {
    struct backend_slot backends[ACRE_BACKEND_COUNT];
    uint32_t backend_count;
    struct acre_compute_device *devices;
    uint32_t device_count;
    char *cache;                                 /* directory; "": none */
    pthread_mutex_t lock;                        /* contexts */
    struct acre_context *contexts[CONTEXTS_MAX]; /* by number; 0 is not used */
    uint32_t
        generations[CONTEXTS_MAX]; /* of buffers: the next context of that number begins here */
    uint32_t process;              /* that opened it (process.h) */
    _Atomic uint32_t users; /* whose it is, and contexts that close later than it (context.c) */
};
/* compute.c: one user less; the last one takes all of it along. */
void compute_unref(struct acre_compute *compute);

struct buffers;     /* buffer.h */
struct memory_pool; /* pool.h */
struct staging;     /* copy.c */

struct acre_context {
    struct acre_compute *compute;
    struct acre_context *next_open; /* process.c */
    uint32_t process;               /* that opened it */
    const struct backend *table;    /* the back end's, or backend_remote */
    void *seat;
    uint32_t device; /* in the runtime's list */
    uint32_t number;
    char tenant[64];
    uint64_t limit_bytes;
    uint32_t kernel_limit_ms;
    uint32_t rest_ms, rest_calls; /* of the breaker */
    bool debug;
    bool is_remote, has_seat;
    bool wakes; /* the back end wakes who waits for a word */

    pthread_rwlock_t gate;
    atomic_uint losers; /* who waits to write it */
    atomic_uint epoch;
    atomic_int failed; /* ACRE_E*; 0: works. Written under the gate */
    char failure[256]; /* of the last loss; under the lock, as the next two */
    int loss;          /* ACRE_E* of it */
    uint32_t rebuilt;

    pthread_mutex_t lock;
    struct buffers *buffers;
    struct memory_pool *pool;
    struct staging *staging;
    acre_pressure_function *on_pressure;
    void *pressure_user;
    struct acre_stream *streams;   /* list */
    struct acre_stream *destroyed; /* the last ones, oldest first */
    uint32_t destroyed_count;
    struct acre_program *programs;  /* list */
    struct acre_graph *graphs;      /* list */
    struct executable *idle_graphs; /* graph.c: executables for the next of their shape */
    _Atomic uint64_t regions_gone;  /* so many: handles that may come back for others */
    _Atomic uint64_t captures;      /* begun so far: a mark says of which it is (recording.c) */
    struct breaker breaker;
    struct notice_files notice_files; /* has a lock of its own */

    pthread_mutex_t rings_lock;   /* recursive */
    struct acre_ring *rings;      /* list */
    _Atomic uint32_t ring_pauses; /* written under the lock */
    _Atomic uint32_t stack_bytes; /* of a work item, most so far in this epoch (launch.c) */

    _Atomic uint64_t *words; /* a MAPPED region, one for each stream */
    uint64_t words_region;
    uint64_t words_taken[WORDS_MAX / 64];

    pthread_t keeper; /* watches the runner and the kernel limit (keeper.c) */
    bool has_keeper;
    int keeper_fd; /* eventfd: look again, or end */
};

/* Written by the stream's thread, read by the keeper. */
struct launched {
    _Atomic uint64_t sequence;
    const struct acre_kernel *_Atomic kernel;
};

struct acre_stream {
    uint32_t magic; /* STREAM_MAGIC; 0: destroyed */
    struct acre_context *context;
    struct acre_stream *next; /* of the context */
    uint32_t word_index;
    uint64_t handle;            /* of the back end */
    uint32_t epoch;             /* the handle's; 0: none yet */
    atomic_bool is_resident;    /* its kernel stays (ring.c): no sign of a hang */
    atomic_bool is_taken;       /* by who gives it work: what follows is theirs meanwhile */
    uint64_t issued;            /* number of the last piece of work */
    uint64_t signaled;          /* number of the last one that has a signal */
    uint64_t freed_weight;      /* memory_heap.c: what was freed since then */
    _Atomic uint64_t watched;   /* `signaled`, for the keeper */
    uint64_t done[LOSSES_KEPT]; /* number it had come to when an epoch was lost; by epoch */
    uint64_t owed;              /* lost, and nobody was told yet: what the next event is about */
    atomic_uint told;           /* last epoch whose loss a waiter was told */
    struct launched launched[LAUNCHES_KEPT]; /* by sequence */
    bool is_profiled;
    struct notices notices;
    struct recording *recording; /* graph.c; NULL: works */
};

#endif
