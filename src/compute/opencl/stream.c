/* stream.c - in-order queues, and the completions that signal, notify and end waits.
 *
 * A signal is a marker in the queue. The driver calls its completion, which stores the stream's
 * word and wakes waiting threads. Drivers promise no order among callbacks, so a value is stored
 * only if it is above the last one, which we keep ourselves: a late completion of an early signal
 * must not touch the word, which may be freed by then. For the same reason a signal first fires the
 * notices before it whose own completions have not come: a caller that sees the word may close
 * their eventfds.
 *
 * A wait for another stream's word is a barrier on the event of the first pending signal that
 * brings the word far enough: the device then orders the two by itself. If no such signal is queued
 * yet, the barrier is on a user event, which the signal's completion sets. */
#include "compute/opencl/seat.h"
#include "core/futex.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* A signal (seat->due) or notification (stream->notices) under way, or a wait for a signal to come
 * (seat->wanted). */
struct completion {
    struct opencl_link link;
    struct opencl_seat *seat;
    struct opencl_stream *stream; /* NULL: a wait */
    _Atomic uint64_t *word;       /* NULL: only notifies */
    uint64_t value;
    uint64_t order; /* among those of its stream */
    int event_fd;   /* -1: none, or added to */
    opencl_event event;
    uint32_t refs; /* of whoever uses `event`; under seat->lock */
};

/* --- lives ---------------------------------------------------------------------------------- */

static void completion_unref(struct opencl_seat *seat, struct completion *completion) {
    pthread_mutex_lock(&seat->lock);
    bool is_last = --completion->refs == 0;
    pthread_mutex_unlock(&seat->lock);
    if (is_last) {
        seat->api->release_event(completion->event);
        free(completion);
    }
}

/* Lock held. */
static void stream_unref(struct opencl_stream *stream) {
    if (--stream->refs == 0) {
        free(stream);
    }
}

static _Atomic uint64_t *word_at(uint64_t handle, uint64_t offset) {
    const struct opencl_region *region = (const struct opencl_region *)(uintptr_t)handle;
    ACRE_ASSERT(region->kind == ACRE_MEMORY_MAPPED && region->base != NULL && offset % 8 == 0);
    ACRE_ASSERT(region->bytes >= 8 && offset <= region->bytes - 8);
    return (_Atomic uint64_t *)(void *)(region->base + offset);
}

int opencl_stream_create(void *in, uint64_t word_region, uint64_t word_offset, uint64_t *ret_stream,
                         struct acre_error *err) {
    struct opencl_seat *seat = in;
    struct opencl_stream *stream = calloc(1, sizeof(*stream));
    if (stream == NULL) {
        return acre_fail(err, ACRE_ENOMEM, "stream");
    }
    int32_t code = OPENCL_SUCCESS;
    stream->queues[0] = seat->api->create_queue(seat->context, seat->device, 0, &code);
    if (code != OPENCL_SUCCESS) {
        free(stream);
        return opencl_fail(err, code, "clCreateCommandQueue");
    }
    stream->word = word_at(word_region, word_offset);
    stream->notices = (struct opencl_link){.next = &stream->notices, .previous = &stream->notices};
    stream->refs = 1;
    pthread_mutex_lock(&seat->lock);
    stream->number = seat->streams_made++;
    opencl_link_add(&seat->streams, &stream->link);
    pthread_mutex_unlock(&seat->lock);
    *ret_stream = (uintptr_t)stream;
    return 0;
}

void opencl_stream_destroy(void *in, uint64_t handle) {
    struct opencl_seat *seat = in;
    struct opencl_stream *stream = (struct opencl_stream *)(uintptr_t)handle;
    pthread_mutex_lock(&seat->lock); /* first: what completions told under it is seen here then */
    opencl_link_remove(&stream->link);
    pthread_mutex_unlock(&seat->lock);
    opencl_measured_drop(seat, stream);
    free(stream->measured);
    if (stream->scratch != NULL) {
        opencl_region_free(seat, stream->scratch);
    }
    for (size_t i = 0; i < ACRE_COUNT(stream->queues); i++) {
        if (stream->queues[i] != NULL) {
            seat->api->release_queue(stream->queues[i]);
        }
    }
    pthread_mutex_lock(&seat->lock);
    stream_unref(stream);
    pthread_mutex_unlock(&seat->lock);
}

/* --- completions ---------------------------------------------------------------------------- */

/* Lock held. The waits that a word at `value` ends, off their list and into `ended`. */
static void take_wanted(struct opencl_seat *seat, const _Atomic uint64_t *word, uint64_t value,
                        struct opencl_link *ended) {
    struct opencl_link *next;
    for (struct opencl_link *link = seat->wanted.next; link != &seat->wanted; link = next) {
        next = link->next;
        const struct completion *wait = (const struct completion *)link;
        if (wait->word == word && wait->value <= value) {
            opencl_link_remove(link);
            opencl_link_add(ended, link);
        }
    }
}

static void end_waits(struct opencl_seat *seat, struct opencl_link *ended) {
    while (ended->next != ended) {
        struct completion *wait = (struct completion *)ended->next;
        opencl_link_remove(&wait->link);
        seat->api->set_user_event(wait->event, OPENCL_COMPLETE);
        completion_unref(seat, wait);
    }
}

/* Lock held: so that no word behind it is stored before. */
static void fire(struct completion *notification) {
    uint64_t one = 1;
    ssize_t written = write(notification->event_fd, &one, sizeof(one));
    (void)written; /* at its maximum: nothing can be added */
    notification->event_fd = -1;
}

/* Lock held. Those before `order`, off their list. */
static void fire_notices(struct opencl_stream *stream, uint64_t order) {
    while (stream->notices.next != &stream->notices) {
        struct completion *first = (struct completion *)stream->notices.next;
        if (first->order >= order) {
            return;
        }
        opencl_link_remove(&first->link);
        first->link = (struct opencl_link){.next = &first->link, .previous = &first->link};
        fire(first);
    }
}

/* Lock held. Whether the word was stored: its sleepers are to be woken. */
static bool store_word(struct completion *completion, struct opencl_link *ended) {
    struct opencl_stream *stream = completion->stream;
    if (completion->word == NULL || completion->value <= stream->reached) {
        return false;
    }
    fire_notices(stream, completion->order);
    stream->reached = completion->value;
    /* Pairs with the load of whoever waits (stream_wait). */
    atomic_store_explicit(completion->word, completion->value, memory_order_release);
    take_wanted(completion->seat, completion->word, completion->value, ended);
    return true;
}

/* Lock held. The first failure is what check() tells. */
static void remember(struct opencl_seat *seat, int32_t status) {
    char name[32];
    if (seat->failed == 0) {
        seat->failed = ACRE_EUNAVAILABLE;
        snprintf(seat->failure, sizeof(seat->failure), "work on a stream failed: %s",
                 opencl_error_name(status, name));
    }
}

/* Called by the driver, on any thread, also from within clSetEventCallback. */
static void complete(opencl_event event, int32_t status, void *user) {
    (void)event;
    struct completion *completion = user;
    struct opencl_seat *seat = completion->seat;
    struct opencl_link ended = {.next = &ended, .previous = &ended};
    pthread_mutex_lock(&seat->lock);
    opencl_link_remove(&completion->link);
    if (completion->event_fd >= 0) { /* after a failure too: who polls has to look */
        fire(completion);
    }
    bool is_stored = status >= 0 && store_word(completion, &ended);
    if (status < 0) {
        remember(seat, status);
    }
    stream_unref(completion->stream);
    pthread_mutex_unlock(&seat->lock);
    if (is_stored) {
        acre_futex_wake(acre_futex_low_half(completion->word), ACRE_FUTEX_ALL, ACRE_FUTEX_SHARED);
    }
    end_waits(seat, &ended);
    completion_unref(seat, completion);
    pthread_mutex_lock(&seat->lock);
    if (--seat->completions_due == 0) {
        pthread_cond_broadcast(&seat->quiet);
    }
    pthread_mutex_unlock(&seat->lock); /* the last touch: the seat may close now */
}

static int add_completion(struct opencl_seat *seat, struct opencl_stream *stream,
                          struct completion from, struct acre_error *err) {
    const struct opencl_api *api = seat->api;
    struct completion *completion = malloc(sizeof(*completion));
    if (completion == NULL) {
        return acre_fail(err, ACRE_ENOMEM, "completion");
    }
    *completion = from;
    opencl_queue queue = opencl_stream_queue(stream);
    int32_t code = api->marker(queue, 0, NULL, &completion->event);
    if (code != OPENCL_SUCCESS) {
        free(completion);
        return opencl_fail(err, code, "clEnqueueMarkerWithWaitList");
    }
    completion->seat = seat;
    completion->stream = stream;
    completion->refs = 1;
    pthread_mutex_lock(&seat->lock);
    opencl_link_add(completion->event_fd < 0 ? &seat->due : &stream->notices, &completion->link);
    completion->order = stream->completions++;
    seat->completions_due++;
    stream->refs++;
    pthread_mutex_unlock(&seat->lock);
    code = api->on_event(completion->event, OPENCL_COMPLETE, complete, completion);
    if (code != OPENCL_SUCCESS) {
        pthread_mutex_lock(&seat->lock);
        opencl_link_remove(&completion->link);
        seat->completions_due--;
        stream_unref(stream);
        pthread_mutex_unlock(&seat->lock);
        completion_unref(seat, completion);
        return opencl_fail(err, code, "clSetEventCallback");
    }
    code = api->flush(queue);
    return code == OPENCL_SUCCESS ? 0 : opencl_fail(err, code, "clFlush");
}

int opencl_signal(void *in, uint64_t on, uint64_t value, struct acre_error *err) {
    struct opencl_stream *stream = (struct opencl_stream *)(uintptr_t)on;
    struct completion signal = {.word = stream->word, .value = value, .event_fd = -1};
    return add_completion(in, stream, signal, err);
}

int opencl_notify(void *in, uint64_t on, int event_fd, struct acre_error *err) {
    struct completion notification = {.event_fd = event_fd};
    return add_completion(in, (struct opencl_stream *)(uintptr_t)on, notification, err);
}

void opencl_completions_end(struct opencl_seat *seat) {
    struct opencl_link ended = {.next = &ended, .previous = &ended};
    pthread_mutex_lock(&seat->lock);
    while (seat->wanted.next != &seat->wanted) {
        struct opencl_link *link = seat->wanted.next;
        opencl_link_remove(link);
        opencl_link_add(&ended, link);
    }
    pthread_mutex_unlock(&seat->lock);
    /* As if their signals had come: an event that fails would be the truth, but PoCL aborts. */
    end_waits(seat, &ended);
    struct opencl_link *first = seat->streams.next; /* nobody else uses the seat any more */
    for (struct opencl_link *link = first; link != &seat->streams; link = link->next) {
        struct opencl_stream *stream = (struct opencl_stream *)link;
        seat->api->finish(opencl_stream_queue(stream));
    }
    pthread_mutex_lock(&seat->lock);
    while (seat->completions_due > 0) {
        pthread_cond_wait(&seat->quiet, &seat->lock);
    }
    pthread_mutex_unlock(&seat->lock);
}

/* --- waits ---------------------------------------------------------------------------------- */

/* Lock held. The first signal under way after which the word is at least `value`. */
static struct completion *find_due(struct opencl_seat *seat, const _Atomic uint64_t *word,
                                   uint64_t value) {
    struct completion *first = NULL;
    for (struct opencl_link *link = seat->due.next; link != &seat->due; link = link->next) {
        struct completion *due = (struct completion *)link;
        if (due->word == word && due->value >= value &&
            (first == NULL || due->value < first->value)) {
            first = due;
        }
    }
    return first;
}

enum signal_found { FOUND_PAST, FOUND_DUE, FOUND_NOTHING };

/* Whether to wait, and for which signal (with a reference to it). If there is none yet, `fresh`
 * (may be NULL) is put on the list of those wanted. */
static enum signal_found find(struct opencl_seat *seat, _Atomic uint64_t *word, uint64_t value,
                              struct completion *fresh, struct completion **ret_due) {
    enum signal_found found = FOUND_PAST;
    pthread_mutex_lock(&seat->lock);
    if (atomic_load_explicit(word, memory_order_acquire) < value) {
        struct completion *due = find_due(seat, word, value);
        found = due != NULL ? FOUND_DUE : FOUND_NOTHING;
        if (due != NULL) {
            due->refs++;
            *ret_due = due;
        } else if (fresh != NULL) {
            fresh->refs++;
            opencl_link_add(&seat->wanted, &fresh->link);
        }
    }
    pthread_mutex_unlock(&seat->lock);
    return found;
}

static int make_wanted(struct opencl_seat *seat, _Atomic uint64_t *word, uint64_t value,
                       struct completion **ret_wanted, struct acre_error *err) {
    struct completion *wanted = calloc(1, sizeof(*wanted));
    if (wanted == NULL) {
        return acre_fail(err, ACRE_ENOMEM, "wait");
    }
    int32_t code = OPENCL_SUCCESS;
    *wanted =
        (struct completion){.seat = seat, .word = word, .value = value, .event_fd = -1, .refs = 1};
    wanted->event = seat->api->create_user_event(seat->context, &code);
    if (code != OPENCL_SUCCESS) {
        free(wanted);
        return opencl_fail(err, code, "clCreateUserEvent");
    }
    *ret_wanted = wanted;
    return 0;
}

int opencl_wait(void *in, uint64_t on, uint64_t word_region, uint64_t word_offset, uint64_t value,
                struct acre_error *err) {
    struct opencl_seat *seat = in;
    const struct opencl_api *api = seat->api;
    _Atomic uint64_t *word = word_at(word_region, word_offset);
    struct completion *due = NULL;
    enum signal_found found = find(seat, word, value, NULL, &due);
    if (found == FOUND_NOTHING) {
        struct completion *fresh = NULL;
        int r = make_wanted(seat, word, value, &fresh, err);
        if (r < 0) {
            return r;
        }
        found = find(seat, word, value, fresh, &due);
        if (found == FOUND_NOTHING) {
            due = fresh;
        } else {
            api->set_user_event(fresh->event, OPENCL_COMPLETE);
            completion_unref(seat, fresh);
        }
    }
    if (found == FOUND_PAST) {
        return 0;
    }
    opencl_queue queue = opencl_stream_queue((const struct opencl_stream *)(uintptr_t)on);
    int32_t code = api->barrier(queue, 1, &due->event, NULL);
    completion_unref(seat, due);
    return code == OPENCL_SUCCESS ? 0 : opencl_fail(err, code, "clEnqueueBarrierWithWaitList");
}
