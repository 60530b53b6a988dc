/* call.c - messages: posting and collecting, by any number of threads.
 *
 * A bounded multi-producer queue after Vyukov: a slot's turn shows which number it is free for.
 * Producers take numbers by compare-and-swap of the tail, only if their slot is free, so a full
 * ring changes nothing. Slots come round in order, but tickets are collected in any order: an
 * answer still in the slot of the next message is moved aside, because a producer that posts
 * several before it collects could otherwise wait for itself. A vector's words are written before
 * its tag: the device reads whole vectors, and finds the tag only with its words. */
#include "compute/ring/inner.h"

#include "compute/context.h"
#include "compute/ring/check.h"
#include "compute/stream.h"
#include "core/spin.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { STEP_MIN_NS = 20000, STEP_MAX_NS = 1000000 };

/* Patience: spins first, then sleeps in growing steps; false when the time is over. A call waits
 * for a slot and then for its answer: `waited_ns` of the first counts for both. */
struct patience {
    uint32_t spins;
    uint64_t begun_ns;  /* of this wait; 0: not yet */
    uint64_t waited_ns; /* before it */
};

static bool wait_a_little(struct acre_ring *ring, struct patience *patience, int timeout_ms) {
    if (++patience->spins % 64 != 0) {
        acre_cpu_relax();
        return true;
    }
    uint64_t now = acre_monotonic_ns();
    patience->begun_ns = patience->begun_ns != 0 ? patience->begun_ns : now;
    uint64_t waited_ns = now - patience->begun_ns;
    if (timeout_ms >= 0 && patience->waited_ns + waited_ns >= (uint64_t)timeout_ms * 1000000) {
        return false;
    }
    if (waited_ns > ACRE_SPIN_KERNEL_NS) {
        uint64_t step_ns = ACRE_MAX(waited_ns / 16, (uint64_t)STEP_MIN_NS);
        uint32_t seen = atomic_load(&ring->bell);
        atomic_fetch_add(&ring->sleepers, 1);
        ring_sleep(&ring->bell, seen, ACRE_MIN(step_ns, (uint64_t)STEP_MAX_NS));
        atomic_fetch_sub(&ring->sleepers, 1);
    }
    return true;
}

/* What comes is waited for anew, spinning first; the time goes on. */
static void wait_for_another(struct patience *patience) {
    if (patience->begun_ns != 0) {
        patience->waited_ns += acre_monotonic_ns() - patience->begun_ns;
    }
    patience->begun_ns = 0;
}

static int tell_failure(struct acre_ring *ring, struct acre_error *err) {
    pthread_mutex_lock(&ring->context->rings_lock);
    int r = acre_fail(err, ACRE_EUNAVAILABLE, "ring '%s': %s", ring->handler, ring->failure);
    pthread_mutex_unlock(&ring->context->rings_lock);
    return r;
}

static int refuse(struct acre_ring *ring, enum ring_state state, struct acre_error *err) {
    if (state == RING_FAILED) {
        return tell_failure(ring, err);
    }
    if (state == RING_STOPPED) {
        return acre_fail(err, ACRE_ECONFLICT, "ring '%s' is stopped", ring->handler);
    }
    struct acre_error why = {0}; /* asked now: it says for how long */
    bool is_over = context_look(ring->context, &why) == 0;
    return acre_fail(err, ACRE_EUNAVAILABLE, "ring '%s': %s", ring->handler,
                     is_over ? "restarting after a rest; try again" : why.text);
}

/* While the slot is its own. */
static bool is_refused(const struct acre_ring *ring, uint64_t number) {
    return atomic_load(&ring->turns[number & (ring->slots - 1)].refused) == number;
}

/* Why a message has no answer: its ring failed or rested, for which no loss may be the reason, or
 * the context was lost. */
static int tell_loss(struct acre_ring *ring, bool was_refused, struct acre_error *err) {
    struct acre_context *context = ring->context;
    pthread_mutex_lock(&context->lock);
    bool has_lost = context->loss != 0;
    pthread_mutex_unlock(&context->lock);
    return was_refused || !has_lost || atomic_load(&ring->lost_below) == UINT64_MAX
               ? tell_failure(ring, err)
               : context_loss(context, err);
}

static void read_answer(const struct acre_ring *ring, uint64_t number, uint32_t *ret_out) {
    const uint32_t *vector =
        ring->out + (size_t)(number & (ring->slots - 1)) * ring->out_vectors * 4;
    for (uint32_t i = 0, left = ring->out_words; i < ring->out_vectors; i++, vector += 4) {
        uint32_t count = ACRE_MIN(left, 3U);
        memcpy(ret_out + i * 3, vector, count * sizeof(*ret_out));
        left -= count;
    }
}

static void free_slot(struct acre_ring *ring, uint64_t number) {
    atomic_store_explicit(&ring->turns[number & (ring->slots - 1)].turn,
                          (number + ring->slots) * 4 + SLOT_FREE, memory_order_release);
}

bool ring_release_abandoned(struct acre_ring *ring, uint64_t number) {
    uint64_t turn = number * 4 + SLOT_ABANDONED;
    bool is_released =
        atomic_compare_exchange_strong(&ring->turns[number & (ring->slots - 1)].turn, &turn,
                                       (number + ring->slots) * 4 + SLOT_FREE);
    if (is_released) {
        atomic_fetch_sub(&ring->under_way, 1);
    }
    return is_released;
}

/* --- answers moved aside ---------------------------------------------------------------------- */

enum { ROW_LOST, ROW_ANSWERED, ROW_REFUSED }; /* the first word of a row */

static bool make_rows(struct acre_ring *ring) {
    if (ring->rows != NULL) {
        return true;
    }
    ring->rows = calloc((size_t)ring->slots * (ring->out_words + 1), sizeof(*ring->rows));
    ring->free_rows = calloc(ring->slots, sizeof(*ring->free_rows));
    if (ring->rows == NULL || ring->free_rows == NULL) {
        free(ring->rows);
        free(ring->free_rows);
        ring->rows = ring->free_rows = NULL;
        return false;
    }
    for (uint32_t i = 0; i < ring->slots; i++) {
        ring->free_rows[ring->free_row_count++] = i;
    }
    return true;
}

/* Make the slot free of a message that has its answer, or lost it. False: it has to stay. */
static bool move_aside(struct acre_ring *ring, uint64_t number) {
    bool is_answered = ring_is_answered(ring, number);
    bool is_over = is_answered || number < atomic_load(&ring->lost_below);
    if (is_over && ring_release_abandoned(ring, number)) {
        return true; /* nobody wants it, and the watcher may not look for long */
    }
    pthread_mutex_lock(&ring->moved_lock);
    uint64_t turn = number * 4 + SLOT_TAKEN;
    bool is_moved = is_over && make_rows(ring) &&
                    atomic_compare_exchange_strong(&ring->turns[number & (ring->slots - 1)].turn,
                                                   &turn, number * 4 + SLOT_COLLECTING);
    if (is_moved) {
        uint32_t index = ring->free_rows[--ring->free_row_count]; /* one for each under way */
        uint32_t *row = ring->rows + (size_t)index * (ring->out_words + 1);
        row[0] = is_answered ? ROW_ANSWERED : is_refused(ring, number) ? ROW_REFUSED : ROW_LOST;
        read_answer(ring, number, row + 1);
        acre_map_put(&ring->moved, number, index);
        free_slot(ring, number);
    }
    pthread_mutex_unlock(&ring->moved_lock);
    return is_moved;
}

/* An answer that was moved. */
static int collect_moved(struct acre_ring *ring, uint64_t ticket, uint32_t *ret_out,
                         struct acre_error *err) {
    pthread_mutex_lock(&ring->moved_lock);
    uint32_t index = ticket != 0 ? acre_map_get(&ring->moved, ticket) : ACRE_MAP_NONE;
    uint32_t kind = ROW_LOST;
    if (index != ACRE_MAP_NONE) {
        const uint32_t *row = ring->rows + (size_t)index * (ring->out_words + 1);
        kind = row[0];
        memcpy(ret_out, row + 1, kind == ROW_ANSWERED ? ring->out_words * sizeof(*row) : 0);
        acre_map_remove(&ring->moved, ticket);
        ring->free_rows[ring->free_row_count++] = index;
        atomic_fetch_sub(&ring->under_way, 1);
    }
    pthread_mutex_unlock(&ring->moved_lock);
    if (index == ACRE_MAP_NONE) {
        return acre_fail(err, ACRE_ENOTFOUND,
                         "ring '%s': no ticket %" PRIu64 ", or its answer was already collected",
                         ring->handler, ticket);
    }
    return kind == ROW_ANSWERED ? 0 : tell_loss(ring, kind == ROW_REFUSED, err);
}

/* --- messages --------------------------------------------------------------------------------- */

static void write_message(struct acre_ring *ring, uint64_t number, const uint32_t *in) {
    uint32_t *vector = ring->in + (size_t)(number & (ring->slots - 1)) * ring->in_vectors * 4;
    for (uint32_t i = 0, left = ring->in_words; i < ring->in_vectors; i++, vector += 4) {
        uint32_t count = ACRE_MIN(left, 3U);
        memcpy(vector, in + i * 3, count * sizeof(*in));
        left -= count;
        __atomic_store_n(&vector[3], (uint32_t)number, __ATOMIC_RELEASE);
    }
}

static int refuse_full(const struct acre_ring *ring, struct acre_error *err) {
    return acre_fail(
        err, ACRE_ETIMEOUT,
        "ring '%s': all %u slots are in use; collect answers, or create it with more slots",
        ring->handler, ring->slots);
}

/* A ring whose rest is over comes back: the watcher looks now, and is waited for. The one call that
 * tries the device may be the watcher's own, hence the order: it begins to return before it tries,
 * and runs before it has returned. */
static bool await_return(struct acre_ring *ring, struct patience *patience, int timeout_ms) {
    if (patience->spins % 64 == 0) {
        ring_wake(&ring->alarm);
    }
    bool may_return = context_look(ring->context, NULL) == 0 || atomic_load(&ring->is_returning) ||
                      atomic_load(&ring->state_now) != RING_RESTING;
    return may_return && wait_a_little(ring, patience, timeout_ms);
}

/* Its context was lost, and the watcher has not begun anew: what is posted now would be lost with
 * what was before. */
static bool is_away(const struct acre_ring *ring) {
    return atomic_load_explicit(&ring->epoch, memory_order_relaxed) !=
           atomic_load_explicit(&ring->context->epoch, memory_order_relaxed);
}

static int await_begin(struct acre_ring *ring, struct patience *patience, int timeout_ms,
                       struct acre_error *err) {
    if (patience->spins % 64 == 0) {
        ring_wake(&ring->alarm);
    }
    return wait_a_little(ring, patience, timeout_ms)
               ? 0
               : acre_fail(err, ACRE_ETIMEOUT,
                           "ring '%s': did not restart within %d ms after its context was lost",
                           ring->handler, timeout_ms);
}

/* The right to have one more message under way. */
static int take_room(struct acre_ring *ring, struct patience *patience, int timeout_ms,
                     struct acre_error *err) {
    uint32_t under_way = atomic_load_explicit(&ring->under_way, memory_order_relaxed);
    for (;;) {
        enum ring_state state = atomic_load(&ring->state_now);
        if (state == RING_RESTING && await_return(ring, patience, timeout_ms)) {
            continue;
        }
        if (state != RING_RUNNING) {
            return refuse(ring, state, err);
        }
        if (is_away(ring)) {
            int r = await_begin(ring, patience, timeout_ms, err);
            if (r < 0) {
                return r;
            }
        } else if (under_way >= ring->slots) {
            if (patience->spins % 1024 == 1023) {
                ring_wake(&ring->alarm); /* the watcher frees slots that were abandoned */
            }
            if (!wait_a_little(ring, patience, timeout_ms)) {
                return refuse_full(ring, err);
            }
            under_way = atomic_load(&ring->under_way);
        } else if (atomic_compare_exchange_weak(&ring->under_way, &under_way, under_way + 1)) {
            return 0;
        }
    }
}

static int take_number(struct acre_ring *ring, struct patience *patience, int timeout_ms,
                       uint64_t *ret_number, struct acre_error *err) {
    uint64_t number = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    for (;;) {
        bool is_open = number < RING_CLOSED;
        const struct ring_slot *slot = &ring->turns[number & (ring->slots - 1)];
        if (is_open &&
            atomic_load_explicit(&slot->turn, memory_order_acquire) == number * 4 + SLOT_FREE) {
            if (atomic_compare_exchange_weak(&ring->tail, &number, number + 1)) {
                *ret_number = number;
                return 0;
            }
            continue;
        }
        uint64_t now = atomic_load(&ring->tail);
        if (now == number && !(is_open && move_aside(ring, number - ring->slots))) {
            enum ring_state state = atomic_load(&ring->state_now);
            if (state != RING_RUNNING) {
                return refuse(ring, state, err);
            }
            if (!wait_a_little(ring, patience, timeout_ms)) {
                return refuse_full(ring, err);
            }
        }
        number = now;
    }
}

static int post(struct acre_ring *ring, const uint32_t *in, struct patience *patience,
                int timeout_ms, uint64_t *ret_ticket, struct acre_error *err) {
    uint64_t number = 0;
    int r = take_room(ring, patience, timeout_ms, err);
    if (r < 0) {
        return r;
    }
    r = take_number(ring, patience, timeout_ms, &number, err);
    if (r < 0) {
        atomic_fetch_sub(&ring->under_way, 1);
        return r;
    }
    write_message(ring, number, in);
    /* Only now: a slot that is taken may be given to the next, when its message is lost. */
    atomic_store(&ring->turns[number & (ring->slots - 1)].turn, number * 4 + SLOT_TAKEN);
    if (ring->path == ACRE_RING_WORKER) {
        /* The message is there before the look: work() looks for messages after it said that it
         * sleeps, so one of the two sees the other. */
        atomic_thread_fence(memory_order_seq_cst);
        if (atomic_load(&ring->worker_sleeps)) {
            ring_wake(&ring->alarm);
        }
    } else if (atomic_load(&ring->is_dozing)) { /* pairs with doze: the tail was moved before */
        ring_wake(&ring->alarm);
    }
    *ret_ticket = number;
    return 0;
}

int acre_ring_post(struct acre_ring *ring, const uint32_t *in, int timeout_ms, uint64_t *ret_ticket,
                   struct acre_error *err) {
    struct patience patience = {0};
    int r = ring_check(ring, err);
    return r < 0 ? r : post(ring, in, &patience, timeout_ms, ret_ticket, err);
}

/* The slot goes to `otherwise` when time is over. */
static int collect(struct acre_ring *ring, uint64_t ticket, uint32_t *ret_out,
                   struct patience *patience, int timeout_ms, enum slot_turn otherwise,
                   struct acre_error *err) {
    struct ring_slot *slot = &ring->turns[ticket & (ring->slots - 1)];
    uint64_t turn = ticket * 4 + SLOT_TAKEN;
    if (!atomic_compare_exchange_strong(&slot->turn, &turn, ticket * 4 + SLOT_COLLECTING)) {
        return collect_moved(ring, ticket, ret_out, err);
    }
    while (!ring_is_answered(ring, ticket)) {
        if (ticket < atomic_load_explicit(&ring->lost_below, memory_order_relaxed) &&
            !ring_is_answered(ring, ticket)) {
            bool was_refused = is_refused(ring, ticket);
            free_slot(ring, ticket);
            atomic_fetch_sub(&ring->under_way, 1);
            return tell_loss(ring, was_refused, err);
        }
        if (!wait_a_little(ring, patience, timeout_ms)) {
            atomic_store(&slot->turn, ticket * 4 + otherwise);
            /* The watcher may have passed it before it was abandoned. The answer is read after
             * that is written, which an acquire alone does not say. */
            atomic_thread_fence(memory_order_seq_cst);
            if (otherwise == SLOT_ABANDONED &&
                (ring_is_answered(ring, ticket) || ticket < atomic_load(&ring->lost_below))) {
                ring_release_abandoned(ring, ticket);
            }
            return acre_fail(err, ACRE_ETIMEOUT, "ring '%s': no answer within %d ms", ring->handler,
                             timeout_ms);
        }
    }
    read_answer(ring, ticket, ret_out);
    free_slot(ring, ticket);
    atomic_fetch_sub(&ring->under_way, 1);
    return 0;
}

int acre_ring_collect(struct acre_ring *ring, uint64_t ticket, uint32_t *ret_out, int timeout_ms,
                      struct acre_error *err) {
    struct patience patience = {0};
    int r = ring_check(ring, err);
    return r < 0 ? r : collect(ring, ticket, ret_out, &patience, timeout_ms, SLOT_TAKEN, err);
}

int acre_ring_call(struct acre_ring *ring, const uint32_t *in, uint32_t *ret_out, int timeout_ms,
                   struct acre_error *err) {
    int r = ring_check(ring, err);
    if (r < 0) {
        return r;
    }
    struct patience patience = {0};
    uint64_t ticket;
    r = post(ring, in, &patience, timeout_ms, &ticket, err);
    if (r < 0) {
        return r;
    }
    wait_for_another(&patience);
    return collect(ring, ticket, ret_out, &patience, timeout_ms, SLOT_ABANDONED, err);
}
