/* inner.h - a ring, shared by its three files: ring.c (life), call.c (messages) and ring_serve.c
 * (the resident kernel or the worker that answers, and the watcher).
 *
 * Messages have numbers, starting at `slots`, so that no slot's first number is zero, the initial
 * value of memory. Their low 32 bits are the tag of vectors. */
#ifndef ACRE_COMPUTE_RING_INNER_H
#define ACRE_COMPUTE_RING_INNER_H

#include "compute/ring/ring.h"
#include "core/map.h"

/* RESTING: the device takes no work for now (its circuit is open, or its runner is being made
 * anew); the watcher brings the ring back when it does. */
enum ring_state { RING_RUNNING, RING_STOPPED, RING_RESTING, RING_FAILED };

/* A slot of the host's: who has it. `turn` is number * 4 + one of these. */
enum slot_turn { SLOT_FREE, SLOT_TAKEN, SLOT_COLLECTING, SLOT_ABANDONED };

/* In the tail: no number is given any more (a ring that is stopped, or rests). */
#define RING_CLOSED (UINT64_C(1) << 63)

struct ring_slot {
    _Alignas(64) _Atomic uint64_t turn;
    _Atomic uint64_t refused; /* number of the last one that got no answer because the ring rested;
                               * written before lost_below is */
};

struct acre_ring {
    struct acre_context *context;
    struct acre_ring *next;
    char handler[128];
    uint32_t in_words, out_words, in_vectors, out_vectors;
    uint32_t slots, warps, hang_ms, idle_ms;
    struct acre_buffer memory; /* mapped: control, messages, answers */
    struct acre_buffer state;
    bool owns_state;
    _Atomic uint32_t *control;
    uint32_t *in, *out;
    struct ring_slot *turns;
    struct acre_stream *stream;

    /* Under the context's rings_lock. */
    struct acre_program *program;
    struct acre_kernel *kernel; /* of the path */
    enum acre_ring_path path;
    char reason[160];
    bool is_serving;         /* the resident kernel is there */
    bool is_starting;        /* it is being launched: nobody else does */
    bool is_stopping;        /* acre_ring_stop waits for what was posted */
    bool is_proven, is_seen; /* the probe was made; what kernels write is seen while they run */
    uint64_t end;            /* number of its end in the stream */
    atomic_uint epoch;       /* of the context, when it was started; written under the lock */
    uint32_t restarts, reloads, naps;
    char failure[256]; /* why it failed, or rested last */

    pthread_mutex_t moved_lock; /* answers that made room for later messages (call.c) */
    struct acre_map moved;      /* ticket -> row of `rows` */
    uint32_t *rows;             /* an answer each, behind whether it is one; NULL: none moved */
    uint32_t *free_rows;        /* stack */
    uint32_t free_row_count;

    _Alignas(64) _Atomic uint64_t tail; /* number of the next message; see ring_tail */
    _Atomic uint32_t under_way;         /* posted and not collected: at most `slots` */
    _Atomic enum ring_state state_now;
    _Atomic bool is_dozing;      /* nobody called, so its kernel left; under the rings_lock */
    _Atomic bool is_returning;   /* from its rest: the watcher tries the device */
    _Atomic uint64_t lost_below; /* what has no answer below it gets none */
    _Atomic uint64_t head;       /* all before it are answered or lost */
    _Atomic uint32_t hangs;
    _Atomic uint32_t sleepers, bell; /* who sleeps for an answer, and what for */

    pthread_t watcher, worker;
    bool has_watcher, has_worker;
    _Atomic bool watcher_ends, worker_ends, worker_sleeps;
    _Atomic uint32_t alarm;       /* futex: wakes watcher and worker */
    _Atomic uint64_t batches;     /* of the worker, begun and ended: odd while it is at one */
    _Atomic uint32_t begun_beats; /* beats there were before it, or before the resident kernel */
    _Atomic bool is_refused;      /* its last batch could not be given, and why (rings_lock) */
    char refusal[256];
};

static inline uint64_t ring_tail(const struct acre_ring *ring) {
    return atomic_load(&ring->tail) & ~RING_CLOSED;
}

/* Messages and answers begin at multiples of it in `memory`: parts of buffers do on OpenCL. */
enum { RING_PART_BYTES = 1024 };

static inline uint64_t ring_in_at(void) {
    return (RING_CONTROL_WORDS * sizeof(uint32_t) + RING_PART_BYTES - 1) / RING_PART_BYTES *
           RING_PART_BYTES;
}

static inline uint64_t ring_out_at(const struct acre_ring *ring) {
    uint64_t in_bytes = (uint64_t)ring->slots * ring->in_vectors * 16;
    return ring_in_at() + (in_bytes + RING_PART_BYTES - 1) / RING_PART_BYTES * RING_PART_BYTES;
}

static inline bool ring_is_answered(const struct acre_ring *ring, uint64_t number) {
    const uint32_t *vector =
        ring->out + (size_t)(number & (ring->slots - 1)) * ring->out_vectors * 4;
    for (uint32_t i = 0; i < ring->out_vectors; i++) {
        if (__atomic_load_n(&vector[i * 4 + 3], __ATOMIC_ACQUIRE) != (uint32_t)number) {
            return false;
        }
    }
    return true;
}

static inline bool ring_is_posted(const struct acre_ring *ring, uint64_t number) {
    size_t behind = ((size_t)(number & (ring->slots - 1)) + 1) * ring->in_vectors * 4;
    /* The last word of a message is written last. */
    return __atomic_load_n(&ring->in[behind - 1], __ATOMIC_ACQUIRE) == (uint32_t)number;
}

/* Messages that were begun, by the worker's kernels; of a resident one its health ticks. */
static inline uint32_t ring_beats(const struct acre_ring *ring) {
    uint32_t sum = 0;
    for (uint32_t i = 0; i < ring->warps; i++) {
        sum += atomic_load(&ring->control[RING_BEATS + i]);
    }
    return sum;
}

/* Free the slot of a message, answered or lost, that nobody will ask for. False: somebody will. */
bool ring_release_abandoned(struct acre_ring *ring, uint64_t number);

/* --- ring_serve.c: rings_lock held ------------------------------------------------------------ */

/* Compile and load a handler and what is around it; rings_lock not needed. */
int ring_build(struct acre_ring *ring, const struct acre_source *source,
               struct acre_program **ret_program, struct acre_error *err);
/* Take the program over instead of the old one, which is given back (NULL: none) and may be at work
 * until ring_settle; when it fails, the new one is destroyed. */
int ring_adopt(struct acre_ring *ring, struct acre_program *program, struct acre_program **ret_old,
               struct acre_error *err);
/* Wait until the worker is past what it had begun; rings_lock not held. */
void ring_settle(struct acre_ring *ring);
/* Begin in the present epoch with the message `next`. */
void ring_begin_at(struct acre_ring *ring, uint64_t next);
int ring_serve(struct acre_ring *ring, struct acre_error *err); /* start answering; is: fine */
void ring_halt(struct acre_ring *ring);                         /* the resident kernel leaves */
int ring_threads_start(struct acre_ring *ring, struct acre_error *err);
/* The worker ends first: the watcher ends what it may wait for. rings_lock not held. */
void ring_worker_stop(struct acre_ring *ring);
void ring_watcher_stop(struct acre_ring *ring);
void ring_wake(_Atomic uint32_t *word);
void ring_sleep(_Atomic uint32_t *word, uint32_t seen, uint64_t ns);

#endif
