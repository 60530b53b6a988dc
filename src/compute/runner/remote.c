/* remote.c - the table of a seat in a runner: queued calls.
 *
 * Calls of all streams are written to one queue, under a lock that is held for the few dozen
 * nanoseconds a message takes: the driver takes them one at a time anyway, and the runner has only
 * one head to poll. It is woken only if it sleeps. If the queue is full, the caller waits. */
#include "compute/runner/remote_call.h"
#include "compute/runner/remote_inner.h"
#include "core/futex.h"
#include "core/spin.h"

#include <string.h>

/* --- the queue ------------------------------------------------------------------------------- */

static bool has_room(struct remote *remote, uint64_t bytes) {
    if (remote->head + bytes - remote->tail <= WIRE_QUEUE_BYTES) {
        return true;
    }
    remote->tail = atomic_load(&remote->shared->tail);
    return remote->head + bytes - remote->tail <= WIRE_QUEUE_BYTES;
}

/* Queue lock held. */
static int await_room(struct remote *remote, uint64_t bytes, struct acre_error *err) {
    struct acre_spin spin = {0};
    while (acre_spin(&spin, ACRE_SPIN_WORK_NS)) {
        if (has_room(remote, bytes)) {
            return 0;
        }
    }
    for (;;) {
        atomic_store(&remote->shared->room_wanted, 1); /* pairs with announce, queue_reader.c */
        if (has_room(remote, bytes)) {
            return 0;
        }
        int r = remote_look(remote, err);
        if (r < 0) {
            return r;
        }
        remote_sleep(remote, remote->room_fd);
    }
}

/* Room for a message, in one piece; the queue is locked if there is. */
static int reserve(struct remote *remote, uint32_t bytes, struct wire_message **ret_message,
                   struct acre_error *err) {
    if (atomic_load_explicit(&remote->ended, memory_order_acquire)) {
        return remote_refuse(remote, err);
    }
    pthread_mutex_lock(&remote->queue_lock);
    uint32_t at = (uint32_t)(remote->head % WIRE_QUEUE_BYTES);
    uint32_t pad = WIRE_QUEUE_BYTES - at < bytes ? WIRE_QUEUE_BYTES - at : 0;
    if (!has_room(remote, pad + bytes)) {
        int r = await_room(remote, pad + bytes, err);
        if (r < 0) {
            pthread_mutex_unlock(&remote->queue_lock);
            return r;
        }
    }
    struct wire_message *message = (void *)(remote->shared->queue + at);
    if (pad > 0) {
        message->bytes = pad;
        message->op = WIRE_PAD;
        message->stream = 0;
        remote->head += pad;
        message = (void *)remote->shared->queue;
    }
    message->bytes = bytes;
    *ret_message = message;
    return 0;
}

static void publish(struct remote *remote, uint32_t bytes) {
    struct wire_shared *shared = remote->shared;
    remote->head += bytes;
    atomic_store(&shared->head, remote->head); /* pairs with doze, queue_reader.c */
    pthread_mutex_unlock(&remote->queue_lock);
    if (atomic_load(&shared->queue_sleeps) != 0 && atomic_exchange(&shared->queue_sleeps, 0) != 0 &&
        acre_futex_wake(&shared->queue_sleeps, 1, ACRE_FUTEX_SHARED) == 0) {
        remote_look(remote, NULL); /* it was about to sleep, or is no more */
    }
}

/* --- failures ------------------------------------------------------------------------------- */

static int take_failure(struct remote *remote, struct wire_failure *failure,
                        struct acre_error *err) {
    uint32_t told = WIRE_FAILURE_TOLD; /* pairs with fail, queue_reader.c */
    if (!atomic_compare_exchange_strong(&failure->state, &told, WIRE_FAILURE_TAKEN)) {
        return 0; /* another thread has it */
    }
    struct acre_error error = failure->error;
    error.text[sizeof(error.text) - 1] = '\0';
    atomic_store(&failure->resume, atomic_load(&remote->shared->head));
    atomic_store(&failure->state, WIRE_FAILURE_NONE);
    return acre_fail(err, remote_code(error.code), "%s", error.text);
}

static int remote_stream_error(void *seat, uint64_t stream, struct acre_error *err) {
    struct remote *remote = seat;
    struct wire_failure *failure = &remote->shared->failures[remote_stream(stream)];
    if (atomic_load_explicit(&failure->state, memory_order_acquire) != WIRE_FAILURE_TOLD) {
        return 0;
    }
    return take_failure(remote, failure, err);
}

/* --- queued calls --------------------------------------------------------------------------- */

/* A message of its size without what follows; the queue is locked if there is. */
static int begin(struct remote *remote, uint32_t op, uint64_t stream,
                 struct wire_message **ret_message, struct acre_error *err) {
    int r = remote_stream_error(remote, stream, err);
    r = r < 0 ? r : reserve(remote, wire_bytes(op), ret_message, err);
    if (r == 0) {
        (*ret_message)->op = op;
        (*ret_message)->stream = remote_stream(stream);
    }
    return r;
}

static int queue_numbers(struct remote *remote, uint32_t op, uint64_t stream,
                         const uint64_t number[], uint32_t count, struct acre_error *err) {
    struct wire_message *message;
    int r = begin(remote, op, stream, &message, err);
    if (r == 0) {
        memcpy(message->number, number, count * sizeof(*number));
        publish(remote, wire_bytes(op));
    }
    return r;
}

static int remote_copy(void *seat, uint64_t stream, const struct native_copy *copy,
                       struct acre_error *err) {
    struct wire_message *message;
    int r = begin(seat, WIRE_COPY, stream, &message, err);
    if (r == 0) {
        message->copy = *copy;
        publish(seat, wire_bytes(WIRE_COPY));
    }
    return r;
}

static int remote_fill(void *seat, uint64_t stream, const struct native_fill *fill,
                       struct acre_error *err) {
    struct wire_message *message;
    int r = begin(seat, WIRE_FILL, stream, &message, err);
    if (r == 0) {
        message->fill = *fill;
        publish(seat, wire_bytes(WIRE_FILL));
    }
    return r;
}

static int remote_launch(void *seat, uint64_t stream, const struct native_launch *launch,
                         struct acre_error *err) {
    ACRE_ASSERT(launch->arg_count <= ACRE_ARGS_MAX && launch->extra_bytes <= ACRE_EXTRA_MAX);
    uint32_t bytes = (uint32_t)wire_launch_bytes(launch);
    struct wire_message *message;
    int r = remote_stream_error(seat, stream, err);
    r = r < 0 ? r : reserve(seat, bytes, &message, err);
    if (r == 0) {
        wire_put_launch(message, remote_stream(stream), launch);
        publish(seat, bytes);
    }
    return r;
}

/* Behind a failure too: whoever waits for it finds the failure then. */
static int remote_signal(void *seat, uint64_t stream, uint64_t value, struct acre_error *err) {
    struct wire_message *message;
    int r = reserve(seat, wire_bytes(WIRE_SIGNAL), &message, err);
    if (r == 0) {
        message->op = WIRE_SIGNAL;
        message->stream = remote_stream(stream);
        message->number[0] = value;
        publish(seat, wire_bytes(WIRE_SIGNAL));
    }
    return r;
}

static int remote_wait(void *seat, uint64_t stream, uint64_t word_region, uint64_t word_offset,
                       uint64_t value, struct acre_error *err) {
    const uint64_t number[] = {word_region, word_offset, value};
    return queue_numbers(seat, WIRE_WAIT, stream, number, ACRE_COUNT(number), err);
}

static int remote_graph_launch(void *seat, uint64_t stream, uint64_t graph,
                               struct acre_error *err) {
    return queue_numbers(seat, WIRE_GRAPH_LAUNCH, stream, &graph, 1, err);
}

/* Eventfds are sent, and forgotten, under the queue's lock: no message that names one comes before
 * its sending or after its being forgotten. */
static int remote_notify(void *seat, uint64_t stream, int event_fd, struct acre_error *err) {
    struct remote *remote = seat;
    struct wire_message *message;
    int r = begin(remote, WIRE_NOTIFY, stream, &message, err);
    if (r < 0) {
        return r;
    }
    r = remote_send_eventfd(remote, event_fd, &message->number[0], err);
    if (r < 0) {
        pthread_mutex_unlock(&remote->queue_lock);
        return r;
    }
    publish(remote, wire_bytes(WIRE_NOTIFY));
    return 0;
}

static void remote_forget(void *seat, int event_fd) {
    struct remote *remote = seat;
    struct wire_message *message;
    if (reserve(remote, wire_bytes(WIRE_FORGET), &message, NULL) < 0) {
        return; /* the next runner knows none */
    }
    uint64_t number = remote_take_eventfd(remote, event_fd);
    if (number == 0) {
        pthread_mutex_unlock(&remote->queue_lock);
        return;
    }
    message->op = WIRE_FORGET;
    message->stream = 0;
    message->number[0] = number;
    publish(remote, wire_bytes(WIRE_FORGET));
}

const struct backend backend_remote = {
    .name = "remote",
    .what = "a back end in another process",
    .seat_close = remote_close,
    .seat_let_go = remote_let_go,
    .check = remote_check,
    .memory = remote_memory,
    .region_create = remote_region_create,
    .region_destroy = remote_region_destroy,
    .stream_create = remote_stream_create,
    .stream_own = remote_stream_own,
    .stream_destroy = remote_stream_destroy,
    .copy = remote_copy,
    .fill = remote_fill,
    .launch = remote_launch,
    .signal = remote_signal,
    .wait = remote_wait,
    .notify = remote_notify,
    .forget = remote_forget,
    .stream_error = remote_stream_error,
    .compile = remote_compile,
    .load = remote_load,
    .unload = remote_unload,
    .kernel = remote_kernel,
    .graph_create = remote_graph_create,
    .graph_update = remote_graph_update,
    .graph_launch = remote_graph_launch,
    .graph_destroy = remote_graph_destroy,
    .profile = remote_profile,
    .timings = remote_timings,
    .transfer = remote_transfer,
    .region_export = remote_region_export,
    .region_import = remote_region_import,
};
