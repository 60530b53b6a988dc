/* ring_serve.c - answer the messages of a ring, and watch those that do.
 *
 * Resident: one launch of acre_ring that stays until its stop word is set. Worker: a thread that
 * launches acre_ring_batch for the waiting messages, and publishes their answers when it is done.
 * The watcher wakes several times within `hang_ms`: it moves the head past answered messages, kills
 * the runner of a handler that takes too long, restarts the ring after its context was lost or its
 * device rested (breaker.h), and lets the resident kernel leave while the ring is idle.
 *
 * A device counts as able to keep a kernel resident only after a probe has shown that kernel and
 * host see each other's writes while the kernel runs: some rounds of ping and pong. */
#include "compute/ring/inner.h"

#include "compute/context.h"
#include "compute/runner/remote.h"
#include "compute/stream.h"
#include "core/futex.h"
#include "core/spin.h"
#include "core/thread.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    BATCHES_PER_HANG = 8,
    LOOK_MS = 125, /* at most, between two looks of the watcher */
    PROBE_MS = 500,
    AFTER_LOSS_NS = 1000000,
    SOURCE_MAX = 5 << 20
};

void ring_wake(_Atomic uint32_t *word) {
    atomic_fetch_add(word, 1);
    acre_futex_wake(word, ACRE_FUTEX_ALL, ACRE_FUTEX_PRIVATE);
}

void ring_sleep(_Atomic uint32_t *word, uint32_t seen, uint64_t ns) {
    acre_futex_wait(word, seen, ns, ACRE_FUTEX_PRIVATE);
}

/* --- building --------------------------------------------------------------------------------- */

static const struct acre_grid one_item = {.groups = {1}, .group = {1}};

static int launch_batch(struct acre_ring *ring, struct acre_stream *stream,
                        struct acre_kernel *kernel, uint64_t first, uint32_t count,
                        struct acre_error *err) {
    struct acre_arg args[] = {ACRE_BUFFER_AT(ring->memory, ring_in_at()),
                              ACRE_BUFFER_AT(ring->memory, ring_out_at(ring)),
                              ACRE_BUFFER(ring->state),
                              ACRE_BUFFER(ring->memory),
                              ACRE_U32(ring->in_vectors),
                              ACRE_U32(ring->out_vectors),
                              ACRE_U32(ring->slots - 1),
                              ACRE_U32((uint32_t)first),
                              ACRE_U32(count)};
    struct acre_grid grid = one_item;
    grid.groups[0] = ACRE_MAX(ACRE_MIN(ring->warps, count), 1U);
    return acre_launch(stream, kernel, grid, args, ACRE_COUNT(args), err);
}

/* Some compilers (PoCL's) finish their work at the first launch, which may take longer than a
 * message may: a launch for no message comes before the first. */
static int warm_up(struct acre_ring *ring, struct acre_program *program, struct acre_error *err) {
    struct acre_kernel *kernel;
    struct acre_stream *stream;
    int r = acre_kernel_find(program, "acre_ring_batch", &kernel, err);
    r = r == 0 ? acre_stream_create(ring->context, &stream, err) : r;
    if (r < 0) {
        return r;
    }
    r = launch_batch(ring, stream, kernel, 0, 0, err);
    r = r == 0 ? acre_stream_sync(stream, ACRE_FOREVER, err) : r;
    acre_stream_destroy(stream);
    return r;
}

int ring_build(struct acre_ring *ring, const struct acre_source *source,
               struct acre_program **ret_program, struct acre_error *err) {
    if (source->text == NULL) {
        return acre_fail(err, ACRE_EINVALID, "ring '%s': source.text: must not be NULL",
                         ring->handler);
    }
    if (source->language != ACRE_LANGUAGE_AUTO && source->language != ACRE_LANGUAGE_PORTABLE) {
        return acre_fail(err, ACRE_EINVALID, "ring '%s': handlers must be in the portable dialect",
                         ring->handler);
    }
    bool may_stay = (context_device(ring->context)->capabilities & ACRE_CAN_RING) != 0;
    struct acre_buf text;
    acre_buf_init(&text, SOURCE_MAX);
    int r = ring_source_write(source->text, ring->handler, may_stay, &text);
    if (r < 0) {
        acre_buf_finish(&text);
        return acre_fail(err, r, "ring '%s': the source is too long", ring->handler);
    }
    struct acre_source whole = *source;
    whole.text = text.data;
    whole.language = ACRE_LANGUAGE_PORTABLE;
    struct acre_program *program;
    r = acre_program_build(ring->context, &whole, &program, NULL, err);
    acre_buf_finish(&text);
    if (r == 0 && ring->path == ACRE_RING_WORKER) {
        r = warm_up(ring, program, err);
        if (r < 0) {
            acre_program_destroy(program);
        }
    }
    if (r == 0) {
        *ret_program = program;
    }
    return r;
}

int ring_adopt(struct acre_ring *ring, struct acre_program *program, struct acre_program **ret_old,
               struct acre_error *err) {
    const char *name = ring->path == ACRE_RING_RESIDENT ? "acre_ring" : "acre_ring_batch";
    int r = acre_kernel_find(program, name, &ring->kernel, err);
    if (r < 0) {
        acre_program_destroy(program);
        return r;
    }
    *ret_old = ring->program;
    ring->program = program;
    return 0;
}

void ring_settle(struct acre_ring *ring) {
    uint64_t begun = atomic_load(&ring->batches);
    while (begun % 2 != 0 && atomic_load(&ring->batches) == begun) {
        ring_sleep(&ring->alarm, atomic_load(&ring->alarm), ACRE_SPIN_WORK_NS);
    }
}

/* --- the resident kernel ---------------------------------------------------------------------- */

static bool see_pong(struct acre_ring *ring, uint32_t round) {
    uint64_t begun_ns = acre_monotonic_ns();
    while (atomic_load(&ring->control[RING_PONG]) != round) {
        if (acre_monotonic_ns() - begun_ns > (uint64_t)PROBE_MS * 1000000) {
            return false;
        }
    }
    return true;
}

/* Empty reason: kernel and host see each other. */
static int probe(struct acre_ring *ring, struct acre_error *err) {
    struct acre_kernel *kernel;
    int r = acre_kernel_find(ring->program, "acre_ring_probe", &kernel, err);
    if (r < 0) {
        return r;
    }
    atomic_store(&ring->control[RING_PING], 0);
    atomic_store(&ring->control[RING_PONG], 0);
    struct acre_arg arg = ACRE_BUFFER(ring->memory);
    r = acre_launch(ring->stream, kernel, one_item, &arg, 1, err);
    for (uint32_t i = 1; r == 0 && i <= RING_PROBES && ring->reason[0] == '\0'; i++) {
        atomic_store(&ring->control[RING_PING], i);
        if (!see_pong(ring, i)) {
            snprintf(ring->reason, sizeof(ring->reason),
                     "a running kernel and the host did not see each other's writes within %d ms "
                     "(round %u of %d)",
                     PROBE_MS, i, RING_PROBES);
        }
    }
    return r == 0 ? acre_stream_sync(ring->stream, 2 * PROBE_MS * RING_PROBES, err) : r;
}

static int choose_path(struct acre_ring *ring, struct acre_error *err) {
    if (ring->path != ACRE_RING_RESIDENT || ring->is_proven) {
        return 0;
    }
    int r = probe(ring, err);
    ring->is_proven = r == 0; /* once: a ring that came back as a worker would have no thread */
    if (r == 0 && ring->reason[0] != '\0') {
        ring->path = ACRE_RING_WORKER;
        atomic_store(&ring->stream->is_resident, false);
        r = acre_kernel_find(ring->program, "acre_ring_batch", &ring->kernel, err);
    }
    return r;
}

void ring_begin_at(struct acre_ring *ring, uint64_t next) {
    for (uint32_t i = 0; i < ring->warps; i++) {
        /* Warp i takes the numbers that leave i when divided by the number of warps. */
        uint64_t own = next + (i + ring->warps - next % ring->warps) % ring->warps;
        atomic_store(&ring->control[RING_NEXT + i], (uint32_t)own);
    }
    atomic_store(&ring->is_refused, false);
    atomic_store(&ring->epoch, atomic_load(&ring->context->epoch));
}

static int launch_resident(struct acre_ring *ring, struct acre_error *err) {
    atomic_store(&ring->control[RING_STOP], 0);
    atomic_store(&ring->begun_beats, ring_beats(ring));
    struct acre_arg args[] = {ACRE_BUFFER(ring->memory),
                              ACRE_BUFFER_AT(ring->memory, ring_in_at()),
                              ACRE_BUFFER_AT(ring->memory, ring_out_at(ring)),
                              ACRE_BUFFER(ring->state),
                              ACRE_U32(ring->in_vectors),
                              ACRE_U32(ring->out_vectors),
                              ACRE_U32(ring->slots - 1)};
    struct acre_grid grid = {.groups = {ring->warps}, .group = {RING_LANES}};
    int r = acre_launch(ring->stream, ring->kernel, grid, args, ACRE_COUNT(args), err);
    if (r < 0) {
        return r;
    }
    struct acre_event ignored; /* may be one of before a loss, to tell of it */
    r = acre_event_record(ring->stream, &ignored, err);
    ring->end = ring->stream->signaled;
    ring->is_serving = r == 0;
    atomic_store(&ring->is_dozing, false);
    if (r < 0) { /* nobody would see its end: it leaves at once */
        atomic_store(&ring->control[RING_STOP], 1);
    }
    return r;
}

int ring_serve(struct acre_ring *ring, struct acre_error *err) {
    if (ring->is_serving) {
        return 0;
    }
    ring->is_starting =
        true; /* its module may have to be loaded, for which rings pause and resume */
    int r = choose_path(ring, err);
    r = r == 0 && ring->path == ACRE_RING_RESIDENT ? launch_resident(ring, err) : r;
    ring->is_starting = false;
    return r;
}

void ring_halt(struct acre_ring *ring) {
    struct acre_context *context = ring->context;
    if (!ring->is_serving) {
        return;
    }
    atomic_store(&ring->control[RING_STOP], 1);
    uint64_t begun_ns = acre_monotonic_ns();
    bool is_gone = false;
    while (!is_gone && acre_monotonic_ns() - begun_ns < (uint64_t)ring->hang_ms * 2000000) {
        uint32_t seen = atomic_load(&ring->alarm);
        if (acre_monotonic_ns() - begun_ns > ACRE_SPIN_WORK_NS) {
            ring_sleep(&ring->alarm, seen, ACRE_SPIN_WORK_NS);
        }
        is_gone = stream_is_past(ring->stream, ring->end) ||
                  context->table->check(context->seat, NULL) < 0;
    }
    if (!is_gone && context->is_remote) { /* what comes next would wait for it for ever */
        char why[200];
        snprintf(why, sizeof(why), "ring '%s': its kernel did not leave the device within %u ms",
                 ring->handler, 2 * ring->hang_ms);
        atomic_fetch_add(&ring->hangs, 1);
        remote_end(context->seat, why);
    }
    ring->is_serving = false;
}

void rings_pause(struct acre_context *context) {
    pthread_mutex_lock(&context->rings_lock);
    if (context->ring_pauses++ == 0) {
        for (struct acre_ring *ring = context->rings; ring != NULL; ring = ring->next) {
            ring_halt(ring);
        }
    }
}

static void fail(struct acre_ring *ring, const char *why) {
    snprintf(ring->failure, sizeof(ring->failure), "%s", why);
    atomic_store(&ring->lost_below, UINT64_MAX);
    atomic_store(&ring->state_now, RING_FAILED);
}

/* What was posted since the last loss gets no answer, for which no loss is the reason. Where it was
 * answered, its answer counts. */
static void refuse_posted(struct acre_ring *ring) {
    uint64_t tail = ring_tail(ring);
    uint64_t first = ACRE_MAX(atomic_load(&ring->lost_below), tail - ring->slots);
    for (uint64_t number = first; number < tail; number++) {
        atomic_store(&ring->turns[number & (ring->slots - 1)].refused, number);
    }
    atomic_store(&ring->lost_below, tail);
}

/* Whether the device takes no work now, but may later: what has no answer gets none, and nothing is
 * taken until the watcher brings the ring back. Nothing it was given is under way. */
static bool rest_if_refused(struct acre_ring *ring) {
    struct acre_context *context = ring->context;
    struct acre_error why = {0};
    enum ring_state state = atomic_load(&ring->state_now);
    bool is_for_good = atomic_load(&context->failed) != 0 && !context->is_remote;
    if (state == RING_FAILED || is_for_good || context_look(context, &why) == 0) {
        return false;
    }
    snprintf(ring->failure, sizeof(ring->failure), "%s", why.text);
    if (state == RING_RUNNING) { /* one that is stopped stays so */
        atomic_store(&ring->state_now, RING_RESTING);
    }
    atomic_fetch_or(&ring->tail, RING_CLOSED);
    refuse_posted(ring);
    return true;
}

/* True: the ring answers again. Where its context is lost meanwhile the watcher tries again in the
 * next epoch. */
static bool serve_again(struct acre_ring *ring) {
    struct acre_context *context = ring->context;
    struct acre_error err = {0};
    if (ring_serve(ring, &err) == 0) {
        return true;
    }
    if (ring->epoch == atomic_load(&context->epoch) &&
        !(context->is_remote && context->table->check(context->seat, NULL) < 0) &&
        !rest_if_refused(ring)) {
        fail(ring, err.text);
    }
    return false;
}

static bool is_wanted(const struct acre_ring *ring) {
    return (ring->is_stopping || atomic_load(&ring->state_now) == RING_RUNNING) &&
           ring->epoch == atomic_load(&ring->context->epoch);
}

void rings_resume(struct acre_context *context) {
    if (--context->ring_pauses == 0) {
        for (struct acre_ring *ring = context->rings; ring != NULL; ring = ring->next) {
            if (is_wanted(ring) && !ring->is_starting && !atomic_load(&ring->is_dozing)) {
                serve_again(ring);
            }
        }
    }
    pthread_mutex_unlock(&context->rings_lock);
}

/* --- the worker ------------------------------------------------------------------------------- */

static uint32_t waiting(const struct acre_ring *ring, uint64_t first) {
    uint32_t count = 0;
    while (count < ring->slots && ring_is_posted(ring, first + count)) {
        count++;
    }
    return count;
}

static void publish(struct acre_ring *ring, uint64_t first, uint32_t count) {
    for (uint64_t number = first; number < first + count; number++) {
        uint32_t *vector = ring->out + (size_t)(number & (ring->slots - 1)) * ring->out_vectors * 4;
        for (uint32_t i = 0; i < ring->out_vectors; i++) {
            __atomic_store_n(&vector[i * 4 + 3], (uint32_t)number, __ATOMIC_RELEASE);
        }
    }
    if (atomic_load(&ring->sleepers) > 0) {
        ring_wake(&ring->bell);
    }
}

static int handle_batch(struct acre_ring *ring, uint64_t first, uint32_t count) {
    atomic_store(&ring->begun_beats, ring_beats(ring));
    atomic_fetch_add(&ring->batches, 1); /* from here on a kernel that is exchanged stays */
    pthread_mutex_lock(&ring->context->rings_lock);
    struct acre_kernel *kernel = ring->kernel;
    pthread_mutex_unlock(&ring->context->rings_lock);
    struct acre_error err = {0};
    int r = launch_batch(ring, ring->stream, kernel, first, count, &err);
    bool is_given = r == 0;
    if (is_given) {
        atomic_store(&ring->is_refused, false);
        r = stream_drain(ring->stream, &err);
    }
    atomic_fetch_add(&ring->batches, 1);
    if (r == 0) {
        context_tell(ring->context, 0);
        return 0;
    }
    pthread_mutex_lock(&ring->context->rings_lock);
    snprintf(ring->refusal, sizeof(ring->refusal), "%s", err.text);
    bool rests = !is_given && r == ACRE_EUNAVAILABLE && rest_if_refused(ring);
    pthread_mutex_unlock(&ring->context->rings_lock);
    atomic_store(&ring->is_refused, !is_given && !rests); /* what was given and lost was not */
    return r;
}

/* A batch is answered as a whole, so it should take a small part of the time that one message may:
 * as many as that is, going by the `count` of the last; few at first. `most` it was. */
static uint32_t choose_most(const struct acre_ring *ring, uint32_t most, uint32_t count,
                            uint64_t took_ns) {
    uint64_t each_ns = took_ns / count + 1;
    uint64_t fit = (uint64_t)ring->hang_ms * 1000000 / BATCHES_PER_HANG / each_ns;
    return (uint32_t)ACRE_MAX(ACRE_MIN(fit, ACRE_MAX(most, 4 * count)), 1U);
}

static void *work(void *argument) {
    struct acre_ring *ring = argument;
    uint64_t next = ring->slots;
    uint64_t idle_since_ns = 0;
    uint32_t most = 1;
    while (!atomic_load(&ring->worker_ends)) {
        /* After a loss the watcher says first what is lost: what hung is not given again. */
        bool is_told = atomic_load(&ring->epoch) == atomic_load(&ring->context->epoch);
        uint64_t lost = atomic_load(&ring->lost_below);
        next = lost != UINT64_MAX ? ACRE_MAX(next, lost) : next;
        uint32_t seen = atomic_load(&ring->alarm);
        uint32_t count = lost != UINT64_MAX ? waiting(ring, next) : 0;
        if (count > 0) {
            uint64_t begun_ns = acre_monotonic_ns();
            count = ACRE_MIN(count, most);
            if (is_told && handle_batch(ring, next, count) == 0) {
                publish(ring, next, count);
                next += count;
                most = choose_most(ring, most, count, acre_monotonic_ns() - begun_ns);
            } else {
                ring_wake(&ring->alarm); /* the watcher sees why; then lost_below moves on */
                ring_sleep(&ring->alarm, atomic_load(&ring->alarm), AFTER_LOSS_NS);
            }
            idle_since_ns = 0;
            continue;
        }
        uint64_t now = acre_monotonic_ns();
        idle_since_ns = idle_since_ns != 0 ? idle_since_ns : now;
        if (now - idle_since_ns > ACRE_SPIN_WORK_NS) {
            atomic_store(&ring->worker_sleeps, true);
            /* Pairs with the fence of post: an acquire alone may be read before the store. */
            atomic_thread_fence(memory_order_seq_cst);
            if (waiting(ring, next) == 0) {
                ring_sleep(&ring->alarm, seen, UINT64_C(1000000000));
            }
            atomic_store(&ring->worker_sleeps, false);
        }
    }
    return NULL;
}

/* --- the watcher ------------------------------------------------------------------------------ */

/* Over what is answered, or lost. */
static uint64_t move_head(struct acre_ring *ring) {
    uint64_t head = atomic_load(&ring->head);
    uint64_t tail = ring_tail(ring);
    uint64_t lost_below = atomic_load(&ring->lost_below);
    while (head < tail) {
        /* A slot that serves a later number already was answered, too. */
        uint64_t turn = atomic_load(&ring->turns[head & (ring->slots - 1)].turn);
        if (turn / 4 == head && head >= lost_below && !ring_is_answered(ring, head)) {
            break;
        }
        ring_release_abandoned(ring, head);
        head++;
    }
    atomic_store(&ring->head, head);
    return head;
}

/* The context was lost: what had no answer will get none, and another kernel begins. */
static void begin_again(struct acre_ring *ring) {
    struct acre_context *context = ring->context;
    pthread_mutex_lock(&context->rings_lock);
    ring_halt(ring); /* gone with the loss, or started in this epoch by who was faster */
    atomic_store(&ring->lost_below, ring_tail(ring));
    ring_begin_at(ring, move_head(ring));
    ring->restarts++;
    bool has_failed = atomic_load(&context->failed) != 0;
    if (has_failed && !context->is_remote) {
        struct acre_error err = {0};
        context_failure(context, &err);
        fail(ring, err.text);
    } else if (atomic_load(&ring->state_now) == RING_RUNNING &&
               !(has_failed && rest_if_refused(ring))) {
        serve_again(ring);
    }
    pthread_mutex_unlock(&context->rings_lock);
}

/* The ring rests: perhaps not any longer. Its launch may be the one that tries the device. */
static void come_back(struct acre_ring *ring) {
    struct acre_context *context = ring->context;
    pthread_mutex_lock(&context->rings_lock);
    if (atomic_load(&ring->state_now) == RING_RESTING && context_look(context, NULL) == 0) {
        atomic_store(&ring->is_returning, true); /* pairs with await_return */
        ring_begin_at(ring, move_head(ring));
        if (serve_again(ring)) {
            ring->restarts++;
            atomic_store(&ring->state_now, RING_RUNNING);
            atomic_fetch_and(&ring->tail, ~RING_CLOSED);
        }
        atomic_store(&ring->is_returning, false);
    }
    pthread_mutex_unlock(&context->rings_lock);
}

static void end_hung(struct acre_ring *ring, uint64_t number) {
    struct acre_context *context = ring->context;
    char why[200];
    snprintf(why, sizeof(why), "ring '%s': message %" PRIu64 " took longer than %u ms",
             ring->handler, number - ring->slots, ring->hang_ms);
    atomic_fetch_add(&ring->hangs, 1);
    if (context->is_remote) {
        remote_end(context->seat, why); /* the keeper makes the context anew */
    } else {
        context_lose(context, ACRE_ETIMEOUT, why);
    }
}

/* The message `number` has waited for too long. */
static void end_wait(struct acre_ring *ring, uint64_t number) {
    if (!atomic_load(&ring->is_refused)) {
        end_hung(ring, number);
        return;
    }
    /* Nothing hangs: the device is not given the messages. */
    pthread_mutex_lock(&ring->context->rings_lock);
    fail(ring, ring->refusal);
    pthread_mutex_unlock(&ring->context->rings_lock);
}

/* Whether the time that the message waits is its own: it was written (its producer may have been
 * interrupted before), and where one can see that, what was given to the device has begun there: it
 * may be behind other work of the context, which has limits of its own. */
static bool is_counted(const struct acre_ring *ring, uint64_t number) {
    /* What is refused again and again is at a batch most of the time, and gives none. */
    bool is_given =
        ring->path == ACRE_RING_RESIDENT ||
        (ring->is_seen && atomic_load(&ring->batches) % 2 != 0 && !atomic_load(&ring->is_refused));
    return ring_is_posted(ring, number) &&
           !(is_given && ring_beats(ring) == atomic_load(&ring->begun_beats));
}

/* --- idleness --------------------------------------------------------------------------------- */

struct ring_idleness { /* what the watcher knows of it */
    uint64_t tail, since_ns;
};

static void doze(struct acre_ring *ring) {
    pthread_mutex_lock(&ring->context->rings_lock);
    if (ring->is_serving && atomic_load(&ring->state_now) == RING_RUNNING) {
        /* Then the tail: who posts moves it, then looks, so one of the two sees the other. */
        atomic_store(&ring->is_dozing, true);
        if (atomic_load(&ring->head) == ring_tail(ring)) {
            ring_halt(ring);
            ring->naps++;
        } else {
            atomic_store(&ring->is_dozing, false);
        }
    }
    pthread_mutex_unlock(&ring->context->rings_lock);
}

static void rouse(struct acre_ring *ring) {
    pthread_mutex_lock(&ring->context->rings_lock);
    if (atomic_load(&ring->is_dozing) && is_wanted(ring)) {
        serve_again(ring);
    }
    pthread_mutex_unlock(&ring->context->rings_lock);
}

/* A kernel that only polls is in the way of who shares the device, and makes it look busy. */
static void mind_idleness(struct acre_ring *ring, struct ring_idleness *quiet, uint64_t now_ns) {
    uint64_t tail = ring_tail(ring);
    bool is_quiet = atomic_load(&ring->head) == tail;
    if (tail != quiet->tail || !is_quiet) {
        *quiet = (struct ring_idleness){tail, now_ns};
    }
    if (atomic_load(&ring->is_dozing)) {
        if (!is_quiet) {
            rouse(ring);
        }
    } else if (ring->idle_ms != 0 && ring->path == ACRE_RING_RESIDENT &&
               now_ns - quiet->since_ns > (uint64_t)ring->idle_ms * 1000000) {
        doze(ring);
    }
}

/* --- the watcher's thread --------------------------------------------------------------------- */

static uint64_t step_ns_of(const struct acre_ring *ring) {
    uint32_t ms = ACRE_MIN(ring->hang_ms / 8, (uint32_t)LOOK_MS);
    ms = ring->idle_ms != 0 ? ACRE_MIN(ring->idle_ms, ms) : ms;
    return (uint64_t)ACRE_MAX(ms, 1U) * 1000000;
}

static void *watch(void *argument) {
    struct acre_ring *ring = argument;
    struct acre_context *context = ring->context;
    uint64_t step_ns = step_ns_of(ring);
    uint64_t hang_ns = (uint64_t)ring->hang_ms * 1000000;
    uint64_t waits = 0;     /* the message that was found waiting; 0: none */
    uint32_t beats = 0;     /* then */
    uint64_t waited_ns = 0; /* since, as far as this thread could look */
    uint64_t looked_ns = acre_monotonic_ns();
    struct ring_idleness quiet = {.since_ns = looked_ns};
    while (!atomic_load(&ring->watcher_ends)) {
        uint32_t seen = atomic_load(&ring->alarm);
        enum ring_state state = atomic_load(&ring->state_now);
        bool has_failed = atomic_load(&context->failed) != 0 &&
                          (state == RING_RUNNING || !context->is_remote); /* the keeper tries on */
        if (state != RING_FAILED && (has_failed || atomic_load(&context->epoch) != ring->epoch)) {
            begin_again(ring);
        } else if (state == RING_RESTING) {
            come_back(ring);
        }
        uint64_t head = move_head(ring);
        uint64_t now = acre_monotonic_ns();
        bool is_paused = ring->path == ACRE_RING_RESIDENT && atomic_load(&context->ring_pauses) > 0;
        uint64_t waiting_now = head == ring_tail(ring) || is_paused ? 0 : head;
        uint32_t beats_now = ring->path == ACRE_RING_WORKER ? ring_beats(ring) : 0;
        if (waiting_now != waits || beats_now != beats || !is_counted(ring, head)) {
            waits = waiting_now;
            beats = beats_now;
            waited_ns = 0;
        } else if (waits != 0) {
            /* A process that was stopped has waited for nothing. */
            waited_ns += ACRE_MIN(now - looked_ns, 2 * step_ns);
            if (waited_ns > hang_ns) {
                end_wait(ring, head);
                waited_ns = 0;
            }
        }
        looked_ns = now;
        mind_idleness(ring, &quiet, now);
        ring_sleep(&ring->alarm, seen, step_ns);
    }
    return NULL;
}

int ring_threads_start(struct acre_ring *ring, struct acre_error *err) {
    int error = acre_thread_start(&ring->watcher, "acre-watch", watch, ring);
    ring->has_watcher = error == 0;
    if (error == 0 && ring->path == ACRE_RING_WORKER) {
        error = acre_thread_start(&ring->worker, "acre-ring", work, ring);
        ring->has_worker = error == 0;
    }
    return error == 0
               ? 0
               : acre_fail_errno(err, error, "ring '%s': cannot start its thread", ring->handler);
}

void ring_worker_stop(struct acre_ring *ring) {
    atomic_store(&ring->worker_ends, true);
    ring_wake(&ring->alarm);
    if (ring->has_worker) {
        pthread_join(ring->worker, NULL);
    }
}

void ring_watcher_stop(struct acre_ring *ring) {
    atomic_store(&ring->watcher_ends, true);
    ring_wake(&ring->alarm);
    if (ring->has_watcher) {
        pthread_join(ring->watcher, NULL);
    }
}
