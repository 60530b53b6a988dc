/* wire_shared.h - the block of memory that a seat shares with its runner, and the notes on their
 * socket. See wire.h.
 *
 * In every pair of "I sleep" and "there is something", each side writes its own and then reads the
 * other, all sequentially consistent: at least one of the two sees the other. */
#ifndef ACRE_COMPUTE_RUNNER_WIRE_SHARED_H
#define ACRE_COMPUTE_RUNNER_WIRE_SHARED_H

#include "compute/runner/wire.h"

#include <time.h>

enum { WIRE_LINE = 64, WIRE_PAGE = 65536 /* the largest there are: on arm64 */ };
enum wire_slot_state { WIRE_SLOT_FREE, WIRE_SLOT_ASKED, WIRE_SLOT_ANSWERED, WIRE_SLOT_CLOSED };
enum wire_end_state { WIRE_END_NONE, WIRE_END_WRITING, WIRE_END_TOLD };
enum wire_failure_state { WIRE_FAILURE_NONE, WIRE_FAILURE_TOLD, WIRE_FAILURE_TAKEN };

struct wire_slot {
    /* The runner's thread sleeps on `state` (a futex) with `runner_sleeps` set, the caller on the
     * slot's eventfd with `caller_sleeps`. */
    _Alignas(WIRE_LINE) _Atomic uint32_t state;
    _Atomic uint32_t runner_sleeps, caller_sleeps;
    struct wire_request request; /* the caller's until ASKED, then the runner's until ANSWERED */
    struct wire_answer answer;
};

/* The first failure of a stream's queued calls. The runner writes NONE -> TOLD, a caller
 * TOLD -> TAKEN -> NONE; work before `resume` (a position in the queue) is not done then. */
struct wire_failure {
    _Alignas(WIRE_LINE) _Atomic uint32_t state;
    _Atomic uint64_t resume;
    struct acre_error error;
};

struct wire_shared {
    uint64_t magic;
    _Atomic uint32_t end_state; /* the runner ends by itself: then `end` tells why */
    struct acre_error end;
    _Alignas(WIRE_LINE) _Atomic uint64_t head;         /* written by callers, under their lock */
    _Alignas(WIRE_LINE) _Atomic uint64_t tail;         /* written by the runner */
    _Atomic uint32_t room_wanted;                      /* a caller waits for the tail to move */
    _Alignas(WIRE_LINE) _Atomic uint32_t queue_sleeps; /* futex of the runner's queue */
    struct wire_slot slots[WIRE_SLOTS];
    struct wire_failure failures[WIRE_STREAMS_MAX];
    _Alignas(WIRE_PAGE) uint8_t queue[WIRE_QUEUE_BYTES];
    _Alignas(WIRE_PAGE) uint8_t payload[WIRE_SLOTS][WIRE_PAYLOAD_MAX]; /* pages come when touched */
};

/* --- the socket ----------------------------------------------------------------------------- */

enum wire_note_kind {
    WIRE_NOTE_HELLO,   /* caller: device, backend; with WIRE_FDS descriptors: shared memory, host
                          memory, "there is room", "answered" of each slot */
    WIRE_NOTE_READY,   /* runner: error, and a bit for each function its table has */
    WIRE_NOTE_EVENTFD, /* caller: number, with a descriptor */
    WIRE_NOTE_BYE,     /* caller: end in good order; runner: nothing is under way, it only has to
                          clean up */
};

struct wire_note {
    uint64_t magic;
    uint32_t kind;
    uint32_t device;
    uint64_t number; /* EVENTFD: its number; READY: bits; HELLO: process id of the caller */
    char backend[16];
    struct acre_error error;
};

enum wire_can {
    WIRE_CAN_WAIT = 1 << 0,
    WIRE_CAN_COMPILE = 1 << 1,
    WIRE_CAN_GRAPH = 1 << 2,
    WIRE_CAN_PROFILE = 1 << 3,
    WIRE_CAN_TRANSFER = 1 << 4,
    WIRE_CAN_EXPORT = 1 << 5,
    WIRE_CAN_OWN = 1 << 6,
};

/* With up to WIRE_FDS descriptors. 0, -EAGAIN, or another negative errno; 0 bytes read: -EPIPE. */
int wire_send(int socket, const struct wire_note *note, const int *fds, uint32_t count);
int wire_receive(int socket, struct wire_note *ret_note, int flags, int ret_fds[WIRE_FDS],
                 uint32_t *ret_count);

#endif
