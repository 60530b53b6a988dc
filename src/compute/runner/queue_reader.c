/* queue_reader.c - the runner's thread that reads the queue.
 *
 * After work it spins: the next piece is picked up within a fraction of a microsecond, and a launch
 * and its signal without a gap. If nothing comes it sleeps on a futex, and spins half as long the
 * next time, until work arrives while it spins: a caller with long pauses costs little, a busy one
 * never waits for a wake-up. While the device is busy it spins for longer: waking up costs as much
 * as a twentieth of a one-millisecond kernel.
 *
 * When the back end refuses a call, the caller's function has long returned success. So the first
 * failure of a stream is left for it in shared memory; later work on that stream is skipped, except
 * signals and notices, so that waiting callers return and find the failure. */
#include "compute/runner/runner.h"
#include "core/futex.h"
#include "core/spin.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MESSAGES_PER_LOOK = 256 };

/* --- doing ---------------------------------------------------------------------------------- */

static void fail(struct runner *runner, uint32_t index, const struct acre_error *err) {
    struct wire_failure *failure = &runner->shared->failures[index];
    runner_look(runner);
    runner->streams[index].has_failed = true;
    if (atomic_load(&failure->state) == WIRE_FAILURE_NONE) {
        failure->error = *err;
        atomic_store(&failure->state, WIRE_FAILURE_TOLD); /* pairs with take_failure, remote.c */
    }
}

/* Whether work at `position` follows a failure that its caller did not know. */
static bool is_passed_over(struct runner *runner, uint32_t index, uint64_t position) {
    struct runner_stream *stream = &runner->streams[index];
    if (!stream->has_failed) {
        return false;
    }
    const struct wire_failure *failure = &runner->shared->failures[index];
    if (atomic_load(&failure->state) == WIRE_FAILURE_NONE &&
        position >= atomic_load(&failure->resume)) {
        stream->has_failed = false;
    }
    return stream->has_failed;
}

static int give(struct runner *runner, struct runner_stream *stream,
                const struct wire_message *message, const struct native_launch *launch,
                struct acre_error *err) {
    const struct backend *table = runner->table;
    switch (message->op) {
    case WIRE_COPY:
        return table->copy(runner->seat, stream->handle, &message->copy, err);
    case WIRE_FILL:
        return table->fill(runner->seat, stream->handle, &message->fill, err);
    case WIRE_LAUNCH:
        return table->launch(runner->seat, stream->handle, launch, err);
    case WIRE_WAIT:
        return table->wait == NULL
                   ? acre_fail(err, ACRE_EUNSUPPORTED, "streams of this back end cannot wait")
                   : table->wait(runner->seat, stream->handle, message->number[0],
                                 message->number[1], message->number[2], err);
    case WIRE_GRAPH_LAUNCH:
        return table->graph_launch == NULL
                   ? acre_fail(err, ACRE_EUNSUPPORTED, "this back end does not support graphs")
                   : table->graph_launch(runner->seat, stream->handle, message->number[0], err);
    default:
        return acre_fail(err, ACRE_EINVALID, "unknown message %u", message->op);
    }
}

/* What a caller waits for: done also behind a failure. */
static int tell(struct runner *runner, struct runner_stream *stream,
                const struct wire_message *message, struct acre_error *err) {
    if (message->op == WIRE_SIGNAL) {
        int r = runner->table->signal(runner->seat, stream->handle, message->number[0], err);
        if (r == 0) {
            stream->signaled = message->number[0];
            stream->is_silent = false;
        }
        return r;
    }
    int fd = runner_eventfd(runner, message->number[0]);
    return fd < 0 ? acre_fail(err, ACRE_EINVALID, "the eventfd of a notice was not sent")
                  : runner->table->notify(runner->seat, stream->handle, fd, err);
}

static void execute(struct runner *runner, const struct wire_message *message,
                    const struct native_launch *launch, uint64_t position) {
    struct acre_error err = {0};
    if (message->op == WIRE_FORGET) {
        runner_forget(runner, message->number[0]);
        return;
    }
    struct runner_stream *stream = &runner->streams[message->stream];
    if (!atomic_load_explicit(&stream->exists, memory_order_acquire)) {
        runner_end(runner, ACRE_EINTERNAL, "a message for an unknown stream");
    }
    int r = 0;
    if (message->op == WIRE_SIGNAL || message->op == WIRE_NOTIFY) {
        r = tell(runner, stream, message, &err);
    } else if (!is_passed_over(runner, message->stream, position)) {
        stream->is_silent = true;
        r = give(runner, stream, message, launch, &err);
    }
    if (r < 0) {
        fail(runner, message->stream, &err);
    }
}

uint32_t runner_take(struct runner *runner, uint64_t tail, uint64_t head) {
    _Alignas(WIRE_LINE) uint8_t copy[WIRE_MESSAGE_MAX];
    struct wire_message *message = (void *)copy;
    uint32_t at = (uint32_t)(tail % WIRE_QUEUE_BYTES);
    uint32_t room = (uint32_t)ACRE_MIN(head - tail, (uint64_t)WIRE_QUEUE_BYTES - at);
    uint32_t bytes;
    memcpy(&bytes, runner->shared->queue + at, sizeof(bytes));
    if (bytes < WIRE_ALIGN || bytes % WIRE_ALIGN != 0 || bytes > room || bytes > sizeof(copy)) {
        runner_end(runner, ACRE_EINTERNAL, "a message of the wrong length");
    }
    memcpy(copy, runner->shared->queue + at, bytes);
    message->bytes = bytes; /* what was checked, whatever it is by now */
    struct native_launch launch;
    struct acre_error err;
    if (wire_check_message(message, &launch, &err) < 0) {
        runner_end(runner, ACRE_EINTERNAL, err.text);
    }
    if (message->op != WIRE_PAD) {
        atomic_load_explicit(&runner->answered, memory_order_acquire);
        execute(runner, message, &launch, tail);
    }
    return bytes;
}

/* --- waiting -------------------------------------------------------------------------------- */

/* When to look at the seat though no work comes; 0: not at all. Under the lock, for no message
 * says that these streams are there: the next may take their place, and their words be unmapped. */
static uint64_t look_again_ns(struct runner *runner) {
    uint64_t ns = 0;
    pthread_mutex_lock(&runner->lock);
    for (uint32_t i = 0; i < runner->stream_end; i++) {
        const struct runner_stream *stream = &runner->streams[i];
        if (!atomic_load_explicit(&stream->exists, memory_order_relaxed)) {
            continue;
        }
        if (atomic_load_explicit(stream->word, memory_order_relaxed) < stream->signaled) {
            ns = RUNNER_CHECK_MS * UINT64_C(1000000);
            break;
        }
        if (stream->is_silent) {
            ns = RUNNER_CHECK_SILENT_MS * UINT64_C(1000000);
        }
    }
    pthread_mutex_unlock(&runner->lock);
    return ns;
}

bool runner_is_idle(struct runner *runner) {
    return look_again_ns(runner) == 0;
}

/* Somebody waits for a signal, most likely, and has more work when it comes. */
static bool is_under_way(struct runner *runner) {
    return look_again_ns(runner) == RUNNER_CHECK_MS * UINT64_C(1000000);
}

static void look(struct runner *runner, uint64_t now_ns) {
    runner->check_ns = now_ns;
    runner_look(runner);
}

/* Whether something came while spinning. */
static bool look_for_more(const struct runner *runner, uint64_t tail, uint64_t spin_ns) {
    struct acre_spin spin = {0};
    bool found = false;
    do {
        found = atomic_load_explicit(&runner->shared->head, memory_order_relaxed) != tail;
    } while (!found && acre_spin(&spin, spin_ns));
    return found;
}

static void doze(struct runner *runner, uint64_t tail) {
    struct wire_shared *shared = runner->shared;
    uint64_t ns = look_again_ns(runner);
    if (ns > 0) {
        look(runner, acre_monotonic_ns());
    }
    atomic_store(&shared->queue_sleeps, 1); /* pairs with publish, remote.c */
    if (atomic_load(&shared->head) == tail && !atomic_load(&runner->stops)) {
        acre_futex_wait(&shared->queue_sleeps, 1, ns > 0 ? ns : ACRE_FUTEX_NO_LIMIT,
                        ACRE_FUTEX_SHARED);
    }
    atomic_store(&shared->queue_sleeps, 0);
}

static void announce(struct runner *runner, uint64_t tail) {
    struct wire_shared *shared = runner->shared;
    atomic_store(&shared->tail, tail); /* pairs with await_room, and with the next function */
    if (atomic_load(&shared->room_wanted) != 0) {
        atomic_store(&shared->room_wanted, 0);
        uint64_t one = 1;
        ssize_t written = write(runner->room_fd, &one, sizeof(one));
        (void)written; /* it counts to 2^64: never full */
    }
    if (atomic_load(&runner->tail_waiters) > 0) {
        pthread_mutex_lock(&runner->tail_lock);
        pthread_cond_broadcast(&runner->tail_moved);
        pthread_mutex_unlock(&runner->tail_lock);
    }
}

void runner_queue_reach(struct runner *runner, uint64_t position) {
    if (atomic_load(&runner->shared->tail) >= position) {
        return;
    }
    atomic_fetch_add(&runner->tail_waiters, 1);
    pthread_mutex_lock(&runner->tail_lock);
    while (atomic_load(&runner->shared->tail) < position && !atomic_load(&runner->stops)) {
        pthread_cond_wait(&runner->tail_moved, &runner->tail_lock);
    }
    pthread_mutex_unlock(&runner->tail_lock);
    atomic_fetch_sub(&runner->tail_waiters, 1);
}

void *runner_queue_main(void *argument) {
    struct runner *runner = argument;
    struct wire_shared *shared = runner->shared;
    uint64_t tail = 0;
    uint64_t spin_ns = runner->spin_max_ns;
    bool has_come = false; /* work, since it last slept */
    for (uint32_t count = 0; !atomic_load_explicit(&runner->stops, memory_order_relaxed);) {
        uint64_t head = atomic_load_explicit(&shared->head, memory_order_acquire);
        if (head == tail) {
            uint64_t ns = has_come && is_under_way(runner) ? runner->spin_busy_ns : spin_ns;
            if (look_for_more(runner, tail, ns)) {
                spin_ns = runner->spin_max_ns;
            } else {
                has_come = false;
                spin_ns = ACRE_MAX(spin_ns / 2, (uint64_t)ACRE_SPIN_ANSWER_NS);
                spin_ns = ACRE_MIN(spin_ns, runner->spin_max_ns);
                doze(runner, tail);
            }
            continue;
        }
        if (head - tail > WIRE_QUEUE_BYTES) {
            runner_end(runner, ACRE_EINTERNAL, "the queue holds more than its size");
        }
        tail += runner_take(runner, tail, head);
        has_come = true;
        announce(runner, tail);
        if (++count % MESSAGES_PER_LOOK == 0 &&
            acre_monotonic_ns() - runner->check_ns > RUNNER_CHECK_MS * UINT64_C(1000000)) {
            look(runner, acre_monotonic_ns());
        }
    }
    return NULL;
}
