/* ring.c - the life of rings: create, start, stop, reload, destroy.
 *
 * One lock for all rings of a context guards this; messages take no lock (call.c). */
#include "compute/ring/inner.h"

#include "compute/context.h"
#include "compute/quiet.h"
#include "compute/ring/check.h"
#include "compute/stream.h"
#include "core/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS_MIN = 2, SLOTS_MAX = 65536, SLOTS = 1024, HANG_MS = 1000, STATE_BYTES = 16 };

static int check_number(const char *option, uint32_t value, uint32_t min, uint32_t max,
                        struct acre_error *err) {
    if (value < min || value > max) {
        return acre_fail(err, ACRE_EINVALID, "ring: %s: %u; accepted: %u to %u", option, value, min,
                         max);
    }
    return 0;
}

static int check_options(struct acre_ring *ring, const struct acre_ring_options *options,
                         struct acre_error *err) {
    const char *handler = options->handler != NULL ? options->handler : "handle";
    size_t length = strlen(handler);
    bool is_name =
        length > 0 && length < sizeof(ring->handler) &&
        strspn(handler, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") ==
            length;
    if (!is_name) {
        char shown[64];
        return acre_fail(
            err, ACRE_EINVALID, "ring: handler: '%s'; accepted: 1 to %zu letters, digits or _",
            acre_str_show(acre_str_from(handler), shown, sizeof(shown)), sizeof(ring->handler) - 1);
    }
    memcpy(ring->handler, handler, length + 1);
    ring->in_words = options->in_words;
    ring->out_words = options->out_words;
    ring->slots = options->slots != 0 ? options->slots : SLOTS;
    ring->warps = options->warps != 0 ? options->warps : 1;
    ring->hang_ms = options->hang_ms != 0 ? options->hang_ms : HANG_MS;
    ring->idle_ms = options->idle_ms;
    int r = check_number("in_words", ring->in_words, 1, RING_WORDS_MAX, err);
    r = r == 0 ? check_number("out_words", ring->out_words, 1, RING_WORDS_MAX, err) : r;
    r = r == 0 ? check_number("slots", ring->slots, SLOTS_MIN, SLOTS_MAX, err) : r;
    r = r == 0 ? check_number("warps", ring->warps, 1, RING_WARPS_MAX, err) : r;
    if (r == 0 && (ring->slots & (ring->slots - 1)) != 0) {
        r = acre_fail(err, ACRE_EINVALID, "ring: slots: %u; accepted: powers of two", ring->slots);
    }
    ring->in_vectors = (ring->in_words + 2) / 3;
    ring->out_vectors = (ring->out_words + 2) / 3;
    return r;
}

static int make_memory(struct acre_ring *ring, struct acre_error *err) {
    struct acre_context *context = ring->context;
    uint64_t out_at = ring_out_at(ring);
    uint64_t bytes = out_at + (uint64_t)ring->slots * ring->out_vectors * 16;
    int r = acre_buffer_alloc(ring->stream, ACRE_MEMORY_MAPPED, bytes, &ring->memory, err);
    if (r < 0) {
        return r;
    }
    uint8_t *host = acre_buffer_host(context, ring->memory);
    memset(host, 0, bytes);
    ring->control = (_Atomic uint32_t *)(void *)host;
    ring->in = (uint32_t *)(void *)(host + ring_in_at());
    ring->out = (uint32_t *)(void *)(host + out_at);
    ring->turns = aligned_alloc(_Alignof(struct ring_slot), ring->slots * sizeof(*ring->turns));
    if (ring->turns == NULL) {
        return acre_fail(err, ACRE_ENOMEM, "ring '%s': slots", ring->handler);
    }
    for (uint32_t i = 0; i < ring->slots; i++) {
        atomic_init(&ring->turns[i].turn, (uint64_t)(ring->slots + i) * 4 + SLOT_FREE);
    }
    atomic_store(&ring->tail, ring->slots);
    atomic_store(&ring->head, ring->slots);
    if (ring->state.id != 0) {
        uint64_t ignored;
        r = acre_buffer_size(context, ring->state, &ignored, err);
        return r < 0 ? acre_fail_in(err, r, "ring '%s': state", ring->handler) : 0;
    }
    /* The host's, which a loss of the context leaves: nobody has to make it again. */
    r = acre_buffer_alloc(ring->stream, ACRE_MEMORY_MAPPED, STATE_BYTES, &ring->state, err);
    ring->owns_state = r == 0;
    return r == 0 ? acre_fill(ring->stream, ring->state, 0, STATE_BYTES, 0, 4, err) : r;
}

static int make_stream(struct acre_ring *ring, struct acre_error *err) {
    struct acre_context *context = ring->context;
    const struct acre_compute_device *device = context_device(context);
    if ((device->capabilities & ACRE_CAN_RING) != 0) {
        ring->path = ACRE_RING_RESIDENT;
        struct acre_error said = {0};
        int r = stream_create_resident(context, &ring->stream, &said);
        if (r != ACRE_ELIMIT) {
            return r == 0 ? 0 : acre_fail(err, r, "%s", said.text);
        }
        snprintf(ring->reason, sizeof(ring->reason), "%s", said.text);
        ring->is_seen = true;
    } else {
        ring->is_seen = context->wakes;
        snprintf(ring->reason, sizeof(ring->reason), "%s cannot keep a kernel resident",
                 device->backend);
    }
    ring->path = ACRE_RING_WORKER;
    return acre_stream_create(context, &ring->stream, err);
}

static int fill(struct acre_ring *ring, const struct acre_source *source,
                const struct acre_ring_options *options, struct acre_error *err) {
    struct acre_context *context = ring->context;
    int r = check_options(ring, options, err);
    if (r < 0) {
        return r;
    }
    r = make_stream(ring, err);
    r = r == 0 ? make_memory(ring, err) : r;
    if (r < 0) {
        return r;
    }
    struct acre_program *program;
    r = ring_build(ring, source, &program, err);
    if (r < 0) {
        return r;
    }
    pthread_mutex_lock(&context->rings_lock);
    ring_begin_at(ring, ring->slots);
    struct acre_program *none;
    r = ring_adopt(ring, program, &none, err);
    r = r == 0 ? ring_serve(ring, err) : r;
    if (r == 0) {
        atomic_store(&ring->state_now, RING_RUNNING);
    }
    pthread_mutex_unlock(&context->rings_lock);
    return r == 0 ? ring_threads_start(ring, err) : r;
}

int acre_ring_create(struct acre_context *context, const struct acre_source *source,
                     const struct acre_ring_options *options, struct acre_ring **ret_ring,
                     struct acre_error *err) {
    int r = context_check(context, err);
    if (r < 0) {
        return r;
    }
    if (options == NULL) {
        return acre_fail(err, ACRE_EINVALID,
                         "options: must not be NULL; set at least in_words and out_words");
    }
    struct acre_ring *ring = aligned_alloc(_Alignof(struct acre_ring), sizeof(*ring));
    if (ring == NULL) {
        return acre_fail(err, ACRE_ENOMEM, "ring");
    }
    memset(ring, 0, sizeof(*ring));
    pthread_mutex_init(&ring->moved_lock, NULL);
    ring->context = context;
    ring->state = options->state;
    pthread_mutex_lock(&context->rings_lock);
    ring->next = context->rings;
    context->rings = ring;
    atomic_store(&ring->state_now, RING_STOPPED);
    pthread_mutex_unlock(&context->rings_lock);
    r = fill(ring, source, options, err);
    if (r < 0) {
        acre_ring_destroy(ring);
        return r;
    }
    *ret_ring = ring;
    return 0;
}

void acre_ring_destroy(struct acre_ring *ring) {
    if (ring_check(ring, NULL) < 0) {
        return;
    }
    struct acre_context *context = ring->context;
    pthread_mutex_lock(&context->rings_lock);
    atomic_store(&ring->state_now, RING_STOPPED); /* no loss brings it back */
    pthread_mutex_unlock(&context->rings_lock);
    /* A handler may hang in either of the two: the watcher looks until both are over. */
    ring_worker_stop(ring);
    pthread_mutex_lock(&context->rings_lock);
    ring_halt(ring);
    pthread_mutex_unlock(&context->rings_lock);
    ring_watcher_stop(ring);
    pthread_mutex_lock(&context->rings_lock);
    struct acre_ring **link = &context->rings;
    while (*link != ring) {
        link = &(*link)->next;
    }
    *link = ring->next;
    pthread_mutex_unlock(&context->rings_lock);
    if (ring->memory.id != 0) {
        acre_buffer_free(ring->stream, ring->memory, NULL);
    }
    if (ring->owns_state) {
        acre_buffer_free(ring->stream, ring->state, NULL);
    }
    acre_stream_destroy(ring->stream);
    acre_program_destroy(ring->program);
    acre_map_finish(&ring->moved);
    free(ring->rows);
    free(ring->free_rows);
    pthread_mutex_destroy(&ring->moved_lock);
    free(ring->turns);
    free(ring);
}

void rings_destroy(struct acre_context *context) {
    while (context->rings != NULL) {
        acre_ring_destroy(context->rings);
    }
}

/* Under the rings_lock. True: it is over, because all is answered or somebody started it again. */
static bool end_stop(struct acre_ring *ring) {
    bool is_stopped = atomic_load(&ring->state_now) == RING_STOPPED;
    bool is_done = atomic_load(&ring->head) >= ring_tail(ring);
    if (is_stopped && is_done) {
        ring_halt(ring);
    }
    ring->is_stopping = !is_done && is_stopped;
    return !ring->is_stopping;
}

int acre_ring_stop(struct acre_ring *ring, struct acre_error *err) {
    int r = ring_check(ring, err);
    if (r < 0) {
        return r;
    }
    pthread_mutex_t *lock = &ring->context->rings_lock;
    pthread_mutex_lock(lock);
    enum ring_state state = atomic_load(&ring->state_now);
    bool runs = state == RING_RUNNING || state == RING_RESTING;
    if (runs) { /* who found it running and has no number yet gets none */
        atomic_store(&ring->state_now, RING_STOPPED);
        atomic_fetch_or(&ring->tail, RING_CLOSED);
        ring->is_stopping = true;
    }
    pthread_mutex_unlock(lock);
    if (!runs) {
        return acre_fail(err, ACRE_ECONFLICT, "ring '%s' is not running", ring->handler);
    }
    for (bool is_over = false; !is_over;) {
        /* The watcher moves the head over answers, and over what a loss or a hang takes away. */
        ring_wake(&ring->alarm);
        ring_sleep(&ring->alarm, atomic_load(&ring->alarm), 50000);
        pthread_mutex_lock(lock);
        is_over = end_stop(ring);
        pthread_mutex_unlock(lock);
    }
    return 0;
}

int acre_ring_start(struct acre_ring *ring, struct acre_error *err) {
    int r = ring_check(ring, err);
    if (r < 0) {
        return r;
    }
    static const char *const states[] = {[RING_RUNNING] = "is already running",
                                         [RING_RESTING] = "rests, and will restart by itself",
                                         [RING_FAILED] = "has failed; create a new one"};
    pthread_mutex_lock(&ring->context->rings_lock);
    r = 0;
    enum ring_state state = atomic_load(&ring->state_now);
    if (state != RING_STOPPED) {
        r = acre_fail(err, ACRE_ECONFLICT, "ring '%s' %s", ring->handler, states[state]);
    } else {
        uint64_t head = atomic_load(&ring->head);
        if (!ring->is_serving && head >= ring_tail(ring)) { /* what was lost is not handled now */
            ring_begin_at(ring, head);
        }
        /* After a loss the watcher begins anew, where nothing is handled twice. */
        bool is_lost = ring->epoch != atomic_load(&ring->context->epoch);
        r = is_lost ? 0 : ring_serve(ring, err);
        if (r == 0) {
            ring->restarts++;
            atomic_store(&ring->state_now, RING_RUNNING);
            atomic_fetch_and(&ring->tail, ~RING_CLOSED);
        }
    }
    pthread_mutex_unlock(&ring->context->rings_lock);
    return r;
}

int acre_ring_reload(struct acre_ring *ring, const struct acre_source *source,
                     struct acre_error *err) {
    int r = ring_check(ring, err);
    if (r < 0) {
        return r;
    }
    struct acre_program *program;
    r = ring_build(ring, source, &program, err);
    if (r < 0) {
        return r;
    }
    struct quiet quiet; /* the kernel that is there leaves, too */
    quiet_begin(&quiet, ring->context);
    struct acre_program *old = NULL;
    r = ring_adopt(ring, program, &old, err);
    ring->reloads += r == 0;
    quiet_end(&quiet);
    ring_settle(ring);
    acre_program_destroy(old);
    return r;
}

void acre_ring_report(struct acre_ring *ring, struct acre_ring_report *ret_report) {
    if (ring_check(ring, NULL) < 0) {
        *ret_report = (struct acre_ring_report){0};
        return;
    }
    struct acre_ring_report report = {.hangs = atomic_load(&ring->hangs)};
    pthread_mutex_lock(&ring->context->rings_lock);
    report.path = ring->path;
    snprintf(report.reason, sizeof(report.reason), "%s", ring->reason);
    report.is_running = atomic_load(&ring->state_now) == RING_RUNNING;
    report.restarts = ring->restarts;
    report.reloads = ring->reloads;
    report.naps = ring->naps;
    report.is_resident = ring->is_serving;
    pthread_mutex_unlock(&ring->context->rings_lock);
    report.posted = ring_tail(ring) - ring->slots;
    uint64_t head = atomic_load(&ring->head);
    for (uint64_t number = head; number < report.posted + ring->slots; number++) {
        uint64_t turn = atomic_load(&ring->turns[number & (ring->slots - 1)].turn);
        head += turn / 4 != number || ring_is_answered(ring, number);
    }
    report.answered = head - ring->slots;
    report.beats = ring_beats(ring);
    *ret_report = report;
}
