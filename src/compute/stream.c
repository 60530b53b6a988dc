/* stream.c - streams, events, and waiting for them.
 *
 * A stream's work is numbered. The device writes the number it has reached into the stream's word,
 * which this process polls. An event is a number. Numbers have the epoch of the context in their
 * upper bits: after a loss they continue above all earlier ones. For each earlier epoch the stream
 * keeps how far it had come, so old events still show whether their work was done.
 *
 * Waiting spins for a little longer than a small kernel takes, then sleeps on the word as a futex;
 * back ends that run on the host wake it. A GPU writes words without waking anyone: there the wait
 * spins longer, yielding the CPU, and then sleeps in steps that grow with the time waited, so that
 * the end of a kernel is seen within a hundredth of its time. */
#include "compute/stream.h"

#include "compute/context.h"
#include "compute/graph.h"
#include "compute/process.h"
#include "core/futex.h"
#include "core/spin.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>

enum {
    EPOCH_SHIFT = 40, /* 2^40 pieces of work of one stream in one epoch: weeks at full speed */
    STEP_MIN_NS = 20000,
    STEP_MAX_NS = 1000000,
    STEPS = 128,
};

static uint32_t epoch_of(uint64_t sequence) {
    return (uint32_t)(sequence >> EPOCH_SHIFT);
}

static uint64_t first_of_epoch(uint32_t epoch) {
    return (uint64_t)epoch << EPOCH_SHIFT;
}

static _Atomic uint64_t *word_of(const struct acre_stream *stream) {
    return &stream->context->words[stream->word_index];
}

/* How far an earlier epoch came; nothing is known of those long past. */
static uint64_t done_in(const struct acre_stream *stream, uint32_t epoch) {
    uint32_t now = atomic_load(&stream->context->epoch);
    return epoch + LOSSES_KEPT > now ? stream->done[epoch % LOSSES_KEPT] : 0;
}

bool stream_is_past(const struct acre_stream *stream, uint64_t sequence) {
    return atomic_load_explicit(word_of(stream), memory_order_acquire) >= sequence;
}

/* --- giving work ---------------------------------------------------------------------------- */

static int take_word(struct acre_context *context, uint32_t *ret_index, struct acre_error *err) {
    for (uint32_t i = 0; i < WORDS_MAX; i++) {
        if ((context->words_taken[i / 64] >> i % 64 & 1) == 0) {
            context->words_taken[i / 64] |= UINT64_C(1) << i % 64;
            *ret_index = i;
            return 0;
        }
    }
    return acre_fail(err, ACRE_ELIMIT, "a context has at most %d streams", WORDS_MAX);
}

/* Make the back end's stream in the present epoch. Gate held. */
static int renew(struct acre_stream *stream, struct acre_error *err) {
    struct acre_context *context = stream->context;
    uint32_t epoch = atomic_load(&context->epoch);
    int r =
        context->table->stream_create(context->seat, context->words_region,
                                      stream->word_index * sizeof(uint64_t), &stream->handle, err);
    if (r < 0) {
        return r;
    }
    r = stream->is_resident && context->table->stream_own != NULL
            ? context->table->stream_own(context->seat, stream->handle, err)
            : 0;
    if (r < 0) {
        context->table->stream_destroy(context->seat, stream->handle);
        return r;
    }
    if (stream->is_profiled) {
        context->table->profile(context->seat, stream->handle, true, NULL);
    }
    if (stream->epoch != 0 && atomic_load(&stream->told) != stream->epoch &&
        stream->issued > done_in(stream, stream->epoch)) {
        stream->owed = stream->issued;
    }
    stream->epoch = epoch;
    /* Above all that an earlier stream with this word was given: what waits for that is done. */
    stream->issued = ACRE_MAX(first_of_epoch(epoch), atomic_load(word_of(stream)) + 1);
    stream->signaled = stream->issued;
    atomic_store(&stream->watched, stream->signaled);
    atomic_store(word_of(stream), stream->issued);
    return 0;
}

static bool try_take(struct acre_stream *stream) {
    return !atomic_exchange_explicit(&stream->is_taken, true, memory_order_acquire);
}

void stream_take(struct acre_stream *stream) {
    while (!try_take(stream)) { /* nudged by another thread: a moment */
        sched_yield();
    }
}

void stream_let(struct acre_stream *stream) {
    atomic_store_explicit(&stream->is_taken, false, memory_order_release);
}

int stream_enter(struct acre_stream *stream, struct acre_error *err) {
    struct acre_context *context = stream->context;
    int r = context_enter(context, err);
    if (r < 0) {
        return r;
    }
    stream_take(stream);
    r = stream->epoch != atomic_load(&context->epoch) ? renew(stream, err) : 0;
    if (r < 0) {
        stream_leave(stream, r);
    }
    return r;
}

void stream_leave(struct acre_stream *stream, int result) {
    stream_let(stream);
    context_leave(stream->context, result);
}

void stream_pass(struct acre_stream *stream) {
    stream_let(stream);
    context_pass(stream->context);
}

/* Not entered by the circuit: that is for work, and what is under way comes anyhow. */
void stream_nudge(struct acre_context *context, uint32_t word_index) {
    context_read(context);
    pthread_mutex_lock(&context->lock);
    struct acre_stream *stream = context->streams;
    while (stream != NULL && stream->word_index != word_index) {
        stream = stream->next;
    }
    bool has = stream != NULL && !stream->is_resident && try_take(stream);
    pthread_mutex_unlock(&context->lock);
    if (has) { /* so it is not destroyed meanwhile */
        if (stream->epoch == atomic_load(&context->epoch) && atomic_load(&context->failed) == 0) {
            stream_signal(stream, NULL);
        }
        stream_let(stream);
    }
    pthread_rwlock_unlock(&context->gate);
}

uint64_t stream_issue(struct acre_stream *stream) {
    return ++stream->issued;
}

int stream_signal(struct acre_stream *stream, struct acre_error *err) {
    if (stream->signaled == stream->issued) {
        return 0;
    }
    struct acre_context *context = stream->context;
    int r = context->table->signal(context->seat, stream->handle, stream->issued, err);
    if (r == 0) {
        stream->signaled = stream->issued;
        atomic_store_explicit(&stream->watched, stream->signaled, memory_order_relaxed);
    }
    return r;
}

int stream_launched(struct acre_stream *stream, const struct acre_kernel *kernel,
                    struct acre_error *err) {
    uint64_t sequence = stream_issue(stream);
    struct launched *launched = &stream->launched[sequence % LAUNCHES_KEPT];
    atomic_store_explicit(&launched->kernel, kernel, memory_order_relaxed);
    atomic_store_explicit(&launched->sequence, sequence, memory_order_release);
    /* With a limit for kernels each must be seen to end. */
    return stream->context->kernel_limit_ms > 0 ? stream_signal(stream, err) : 0;
}

/* --- waiting -------------------------------------------------------------------------------- */

/* Whether something before it was accepted and then refused. */
static int late_refusal(struct acre_stream *stream, uint32_t epoch, struct acre_error *err) {
    struct acre_context *context = stream->context;
    if (context->table->stream_error == NULL) {
        return 0;
    }
    int r = 0;
    context_read(context); /* the handle is of this epoch while that lasts */
    if (atomic_load(&context->epoch) == epoch) {
        r = context->table->stream_error(context->seat, stream->handle, err);
    }
    pthread_rwlock_unlock(&context->gate);
    return r;
}

static int answer(struct acre_stream *stream, uint64_t sequence, struct acre_error *err) {
    struct acre_context *context = stream->context;
    uint32_t epoch = epoch_of(sequence);
    if (epoch < atomic_load(&context->epoch) && sequence > done_in(stream, epoch)) {
        atomic_store(&stream->told, epoch);
        return context_loss(context, err);
    }
    return late_refusal(stream, epoch, err);
}

static void sleep_on(_Atomic uint64_t *word, uint64_t seen, uint64_t ns) {
    acre_futex_wait(acre_futex_low_half(word), (uint32_t)seen, ns, ACRE_FUTEX_SHARED);
}

/* Failed work never comes. A runner's death is its keeper's business; in this process the seat is
 * asked by whoever waits. */
static void look_at_seat(struct acre_context *context) {
    struct acre_error why = {0};
    if (!context->is_remote && atomic_load(&context->failed) == 0 &&
        context->table->check(context->seat, &why) < 0) {
        context_try_lose(context, ACRE_EUNAVAILABLE, why.text);
    }
}

int word_wait(struct acre_context *context, uint32_t word_index, uint64_t sequence, int timeout_ms,
              struct acre_error *err) {
    _Atomic uint64_t *word = &context->words[word_index];
    uint64_t begun_ns = 0;
    for (uint32_t spins = 0;; spins++) {
        uint64_t seen = atomic_load_explicit(word, memory_order_acquire);
        if (seen >= sequence) { /* also after a loss: words go on above what was lost */
            return 0;
        }
        if (spins % ACRE_SPIN_LOOKS != ACRE_SPIN_LOOKS - 1) {
            acre_cpu_relax();
            continue;
        }
        uint64_t now = acre_monotonic_ns();
        begun_ns = begun_ns != 0 ? begun_ns : now;
        uint64_t waited_ns = now - begun_ns;
        if (atomic_load(&context->failed) != 0) {
            return context_failure(context, err);
        }
        if (timeout_ms >= 0 && waited_ns >= (uint64_t)timeout_ms * 1000000) {
            look_at_seat(context); /* who only looks, again and again, hears of a failure too */
            if (atomic_load(&context->failed) == 0) {
                return acre_fail(err, ACRE_ETIMEOUT, "not done within %d ms", timeout_ms);
            }
            continue;
        }
        if (waited_ns > ACRE_SPIN_KERNEL_NS && waited_ns < ACRE_SPIN_YIELD_NS && !context->wakes) {
            sched_yield();
        } else if (waited_ns > ACRE_SPIN_KERNEL_NS) {
            uint64_t step_ns = waited_ns / STEPS;
            step_ns = ACRE_MIN(ACRE_MAX(step_ns, (uint64_t)STEP_MIN_NS), (uint64_t)STEP_MAX_NS);
            sleep_on(word, seen, step_ns);
            look_at_seat(context);
        }
    }
}

int stream_wait(struct acre_stream *stream, uint64_t sequence, int timeout_ms,
                struct acre_error *err) {
    int r = word_wait(stream->context, stream->word_index, sequence, timeout_ms, err);
    return r == 0 ? answer(stream, sequence, err) : r;
}

int acre_event_record(struct acre_stream *stream, struct acre_event *ret_event,
                      struct acre_error *err) {
    int r = stream_check(stream, err);
    if (r < 0) {
        return r;
    }
    if (stream->recording != NULL) {
        return recording_event(stream, ret_event, err);
    }
    r = stream_enter(stream, err);
    if (r < 0) {
        return r;
    }
    r = stream_signal(stream, err);
    struct acre_event event = {.stream = stream, .sequence = stream->issued};
    if (r == 0 && stream->owed != 0) { /* what was given before is lost: this event tells of it */
        event.sequence =
            atomic_load(&stream->told) != epoch_of(stream->owed) ? stream->owed : event.sequence;
        stream->owed = 0;
    }
    stream_leave(stream, r);
    if (r == 0) {
        *ret_event = event;
    }
    return r;
}

/* Given, of a stream that is there. */
static int check_event(struct acre_event event, struct acre_error *err) {
    if (event.stream == NULL) {
        return acre_fail(err, ACRE_EINVALID, "event: never recorded");
    }
    return stream_is_good(event.stream)
               ? 0
               : acre_fail_in(err, process_refuse_stream(event.stream, err), "event");
}

int acre_event_wait(struct acre_event event, int timeout_ms, struct acre_error *err) {
    int r = check_event(event, err);
    if (r < 0) {
        return r;
    }
    if (recording_is_mark(event)) {
        return acre_fail(err, ACRE_ECONFLICT,
                         "event: part of a graph; wait for the stream that runs the graph");
    }
    r = stream_wait(event.stream, event.sequence, timeout_ms, err);
    if (r == 0) { /* a loss was told when it happened, and impatience says nothing */
        context_tell(event.stream->context, 0);
    }
    return r;
}

int acre_stream_sync(struct acre_stream *stream, int timeout_ms, struct acre_error *err) {
    struct acre_event event;
    int r = stream_check(stream, err);
    if (r < 0) {
        return r;
    }
    if (stream->recording != NULL) {
        return acre_fail(err, ACRE_ECONFLICT,
                         "stream: is recording a graph; end the recording first");
    }
    r = acre_event_record(stream, &event, err);
    return r == 0 ? acre_event_wait(event, timeout_ms, err) : r;
}

int acre_stream_after(struct acre_stream *stream, struct acre_event event, struct acre_error *err) {
    int r = stream_check(stream, err);
    r = r == 0 ? check_event(event, err) : r;
    if (r < 0) {
        return r;
    }
    if (stream->recording != NULL || recording_is_mark(event)) {
        return recording_after(stream, event, err);
    }
    if (event.stream == stream || stream_is_past(event.stream, event.sequence)) {
        return answer(event.stream, event.sequence, err);
    }
    struct acre_context *context = stream->context;
    if (event.stream->context != context || context->table->wait == NULL) {
        /* Words of another context are not known to this device: the host waits. */
        return acre_event_wait(event, ACRE_FOREVER, err);
    }
    r = stream_enter(stream, err);
    if (r < 0) {
        return r;
    }
    r = context->table->wait(context->seat, stream->handle, context->words_region,
                             event.stream->word_index * sizeof(uint64_t), event.sequence, err);
    if (r == 0) {
        stream_issue(stream);
    }
    stream_leave(stream, r);
    return r;
}

int acre_stream_notify(struct acre_stream *stream, int event_fd, struct acre_error *err) {
    int r = stream_check(stream, err);
    if (r < 0) {
        return r;
    }
    if (stream->recording != NULL) {
        return acre_fail(err, ACRE_EUNSUPPORTED,
                         "notify: the stream is recording a graph; notify on the stream that runs "
                         "the graph, after its launch");
    }
    r = stream_enter(stream, err);
    if (r < 0) {
        return r;
    }
    struct acre_context *context = stream->context;
    uint32_t file;
    int fd;
    r = notices_prepare(&stream->notices, event_fd, atomic_load(word_of(stream)), &file, &fd, err);
    if (r < 0) {
        stream_leave(stream, r);
        return r;
    }
    r = context->table->notify(context->seat, stream->handle, fd, err);
    if (r == 0) {
        notices_add(&stream->notices, stream_issue(stream), file);
        r = stream_signal(stream, err); /* so that it is seen to have fired */
    } else {
        notices_cancel(&stream->notices, file);
    }
    stream_leave(stream, r);
    return r;
}

/* --- times ---------------------------------------------------------------------------------- */

int acre_stream_profile(struct acre_stream *stream, bool on, struct acre_error *err) {
    int r = stream_check(stream, err);
    r = r == 0 ? stream_enter(stream, err) : r;
    if (r < 0) {
        return r;
    }
    struct acre_context *context = stream->context;
    r = context->table->profile == NULL
            ? acre_fail(err, ACRE_EUNSUPPORTED, "%s cannot measure times",
                        context_device(context)->name)
            : context->table->profile(context->seat, stream->handle, on, err);
    stream->is_profiled = r == 0 ? on : stream->is_profiled;
    stream_leave(stream, r);
    return r;
}

int acre_stream_timings(struct acre_stream *stream, struct acre_timing *ret_timings, uint32_t max,
                        uint32_t *ret_count, struct acre_error *err) {
    int r = acre_stream_sync(stream, ACRE_FOREVER, err);
    r = r == 0 ? stream_enter(stream, err) : r;
    if (r < 0) {
        return r;
    }
    struct acre_context *context = stream->context;
    r = context->table->timings == NULL
            ? acre_fail(err, ACRE_EUNSUPPORTED, "%s cannot measure times",
                        context_device(context)->name)
            : context->table->timings(context->seat, stream->handle, ret_timings, max, ret_count,
                                      err);
    stream_leave(stream, r);
    return r;
}

/* --- life ----------------------------------------------------------------------------------- */

static int create(struct acre_context *context, bool is_resident, struct acre_stream **ret_stream,
                  struct acre_error *err) {
    struct acre_stream *stream = calloc(1, sizeof(*stream));
    if (stream == NULL) {
        return acre_fail(err, ACRE_ENOMEM, "stream");
    }
    stream->magic = STREAM_MAGIC;
    stream->context = context;
    stream->notices.files = &context->notice_files;
    atomic_store(&stream->is_resident, is_resident);
    pthread_mutex_lock(&context->lock);
    int r = take_word(context, &stream->word_index, err);
    pthread_mutex_unlock(&context->lock);
    if (r < 0) {
        free(stream);
        return r;
    }
    r = stream_enter(stream, err); /* its epoch is 0: made there */
    pthread_mutex_lock(&context->lock);
    if (r == 0) {
        stream->next = context->streams;
        context->streams = stream;
    } else {
        context->words_taken[stream->word_index / 64] &= ~(UINT64_C(1) << stream->word_index % 64);
    }
    pthread_mutex_unlock(&context->lock);
    if (r < 0) {
        free(stream);
        return r;
    }
    stream_leave(stream, 0); /* in the list by now: a loss finds it there */
    *ret_stream = stream;
    return 0;
}

int acre_stream_create(struct acre_context *context, struct acre_stream **ret_stream,
                       struct acre_error *err) {
    int r = context_check(context, err);
    return r == 0 ? create(context, false, ret_stream, err) : r;
}

int stream_create_resident(struct acre_context *context, struct acre_stream **ret_stream,
                           struct acre_error *err) {
    return create(context, true, ret_stream, err);
}

int stream_drain(struct acre_stream *stream, struct acre_error *err) {
    struct acre_context *context = stream->context;
    context_read(context);
    stream_take(stream);
    int r = 0;
    if (atomic_load(&context->failed) != 0) {
        r = context_failure(context, err);
    } else if (stream->epoch != atomic_load(&context->epoch)) {
        r = context_loss(context, err);
    } else {
        r = stream_signal(stream, err);
    }
    uint64_t sequence = stream->signaled;
    stream_let(stream);
    pthread_rwlock_unlock(&context->gate);
    return r == 0 ? stream_wait(stream, sequence, ACRE_FOREVER, err) : r;
}

void acre_stream_destroy(struct acre_stream *stream) {
    if (!stream_is_good(stream)) {
        return; /* NULL, destroyed before, or the parent's */
    }
    struct acre_context *context = stream->context;
    recording_drop(stream);
    stream_drain(stream, NULL);
    context_read(context); /* who is losing the context has said so then */
    bool may_run = !context->is_remote && atomic_load(&context->failed) != 0;
    pthread_rwlock_unlock(&context->gate);
    if (!may_run) {
        stream_release(stream);
    }
}

/* The last ones are kept for those who use them again: an answer instead of a crash. Lock held. */
static void bury(struct acre_stream *stream) {
    struct acre_context *context = stream->context;
    struct acre_stream **end = &context->destroyed;
    while (*end != NULL) {
        end = &(*end)->next;
    }
    stream->magic = 0;
    stream->next = NULL;
    *end = stream;
    if (++context->destroyed_count > DESTROYED_KEPT) {
        struct acre_stream *oldest = context->destroyed;
        context->destroyed = oldest->next;
        context->destroyed_count--;
        free(oldest);
    }
}

void stream_release(struct acre_stream *stream) {
    struct acre_context *context = stream->context;
    context_read(context);
    stream_take(stream);
    pthread_mutex_lock(&context->lock);
    /* A seat in this process is never made anew: what was lost is there, and may still run. */
    bool is_there = stream->epoch == atomic_load(&context->epoch) ||
                    (!context->is_remote && context->rebuilt == 0);
    pthread_mutex_unlock(&context->lock);
    if (is_there) {
        context->table->stream_destroy(context->seat, stream->handle);
    }
    pthread_mutex_lock(&context->lock);
    struct acre_stream **link = &context->streams;
    while (*link != stream) {
        link = &(*link)->next;
    }
    *link = stream->next;
    context->words_taken[stream->word_index / 64] &= ~(UINT64_C(1) << stream->word_index % 64);
    pthread_mutex_unlock(&context->lock);
    notices_finish(&stream->notices); /* a runner is told what to forget: within the gate */
    pthread_mutex_lock(&context->lock);
    bury(stream);
    pthread_mutex_unlock(&context->lock);
    pthread_rwlock_unlock(&context->gate);
}

/* Gate written. What was under way will not come; words go on above it, so that waiters look. */
void streams_lose(struct acre_context *context) {
    uint32_t old = atomic_load(&context->epoch);
    for (struct acre_stream *stream = context->streams; stream != NULL; stream = stream->next) {
        _Atomic uint64_t *word = word_of(stream);
        stream->done[old % LOSSES_KEPT] = atomic_load(word);
    }
    atomic_store(&context->epoch, old + 1);
    atomic_store(&context->stack_bytes, 0);
    for (struct acre_stream *stream = context->streams; stream != NULL; stream = stream->next) {
        _Atomic uint64_t *word = word_of(stream);
        atomic_store(word, first_of_epoch(old + 1));
        acre_futex_wake(acre_futex_low_half(word), ACRE_FUTEX_ALL, ACRE_FUTEX_SHARED);
        notices_fire(&stream->notices, stream->done[old % LOSSES_KEPT], !context->is_remote);
    }
}
