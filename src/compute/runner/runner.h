/* runner.h - the other side of remote.h: a process with one seat in it, which obeys its parent.
 *
 * Threads: the first watches socket and parent (runner.c); one reads the queue and passes work to
 * the back end (queue_reader.c); one for each slot answers requests (runner_serve.c). A runner ends
 * when its parent does, when it is asked to, when its seat no longer works, and when it reads an
 * invalid message; in the last two cases it leaves the reason in shared memory. */
#ifndef ACRE_COMPUTE_RUNNER_RUNNER_H
#define ACRE_COMPUTE_RUNNER_RUNNER_H

#include "compute/backend.h"
#include "compute/runner/wire_shared.h"
#include "core/map.h"

#include <pthread.h>

enum {
    RUNNER_EXIT_TOLD = 3,         /* exit code: `end` says why */
    RUNNER_CHECK_MS = 50,         /* how often the seat is looked at while work is pending */
    RUNNER_CHECK_SILENT_MS = 1000 /* the same, when nobody has asked for a signal */
};

struct runner_stream {
    atomic_bool exists; /* set last, and cleared, under the lock; read by the queue without */
    uint64_t handle;
    const _Atomic uint64_t *word;
    uint64_t signaled; /* the rest is the queue's */
    bool is_silent;    /* work was given since */
    bool has_failed;   /* what comes is passed over, until the caller knows */
};

struct runner_region { /* of host memory */
    struct runner_region *next;
    uint64_t handle;
    uint8_t *host;
    size_t bytes;
};

struct runner {
    const struct backend *table;
    uint32_t device;
    void *self, *seat;
    struct wire_shared *shared;
    int socket, host_fd, room_fd, answer_fds[WIRE_SLOTS];
    atomic_bool stops;
    uint64_t spin_max_ns;
    uint64_t spin_busy_ns; /* while the device works */

    pthread_t queue, slots[WIRE_SLOTS];
    bool has_queue;
    uint32_t slot_count;
    uint64_t check_ns;         /* when the queue last looked at the seat */
    pthread_mutex_t tail_lock; /* slots wait here for the queue to come to a position */
    pthread_cond_t tail_moved;
    atomic_uint tail_waiters;
    /* One more with each answer, and read before each message and request: what was made for an
     * earlier answer is seen by them. The caller's word for it is another process's. */
    atomic_uint answered;

    pthread_mutex_t said_lock; /* standard error is another file (said.h) */

    pthread_mutex_t lock; /* all below */
    struct runner_stream streams[WIRE_STREAMS_MAX];
    uint32_t stream_end; /* above all that ever were */
    struct runner_region *regions;
    struct acre_map eventfds; /* number to descriptor */
};

/* What the executable is: the caller is on WIRE_SOCKET_FD. Returns the exit code. */
int runner_run(const struct backend *const *tables, size_t count);

/* For good, leaving the reason. */
_Noreturn void runner_end(struct runner *runner, int code, const char *text);
/* End if nothing works any more. */
void runner_look(struct runner *runner);
/* The descriptor for a number; -1: there is none. */
int runner_eventfd(struct runner *runner, uint64_t number);
/* Close it: its notices have fired, or its caller says what is not so. */
void runner_forget(struct runner *runner, uint64_t number);

void *runner_queue_main(void *runner);
/* Nothing of its streams is under way. The queue may have ended. */
bool runner_is_idle(struct runner *runner);
/* One message of the queue at `tail`, with `head` above it: how many bytes it took. */
uint32_t runner_take(struct runner *runner, uint64_t tail, uint64_t head);
/* Wait until the queue has come to `position`. */
void runner_queue_reach(struct runner *runner, uint64_t position);

struct runner_slot {
    struct runner *runner;
    uint32_t index;
};
void *runner_slot_main(void *slot); /* frees it */
/* One request; `payload` has room for WIRE_PAYLOAD_MAX bytes. */
void runner_serve(struct runner *runner, const struct wire_request *request, uint8_t *payload,
                  struct wire_answer *ret_answer);

#endif
