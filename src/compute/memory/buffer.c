/* buffer.c - a table of slots that never move, and buffers made of the pools' chunks.
 *
 * An id names a slot and one of its generations. Looking it up is two loads of the generation with
 * the members between them, so launches take no lock for their arguments. A slot that has used up
 * its generations is not used again: ids never repeat.
 *
 * A buffer may be freed on another stream than those that use it. So each slot keeps its last few
 * users, with the number of their work; freeing passes the unfinished ones to the pool. The first
 * is the stream that allocated it, from that moment on: the memory may have been its own before,
 * and its earlier work may still use it. */
#include "compute/memory/buffer_inner.h"

#include "compute/context.h"
#include "compute/process.h"
#include "compute/stream.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    GENERATION_LAST = (1 << GENERATION_BITS) - 1,
    WORD_SHIFT = 52, /* of a user: 12 bits of stream, 52 of number */
};

#define MIB           (UINT64_C(1) << 20)
#define SEQUENCE_MASK ((UINT64_C(1) << WORD_SHIFT) - 1)
_Static_assert(WORDS_MAX <= 1 << (64 - WORD_SHIFT), "a stream fits");
_Static_assert(CONTEXTS_MAX <= 1 << 12, "a context fits");

/* --- the table ------------------------------------------------------------------------------ */

static uint32_t number_of(struct acre_buffer buffer) {
    return (uint32_t)(buffer.id >> (SLOT_BITS + GENERATION_BITS));
}

static uint32_t slot_number(struct acre_buffer buffer) {
    return (uint32_t)(buffer.id >> GENERATION_BITS) & (SLOTS_MAX - 1);
}

static uint32_t generation_of(struct acre_buffer buffer) {
    return (uint32_t)buffer.id & GENERATION_LAST;
}

static struct acre_buffer make_id(const struct acre_context *context, uint32_t number,
                                  uint32_t generation) {
    return (struct acre_buffer){(uint64_t)context->number << (SLOT_BITS + GENERATION_BITS) |
                                (uint64_t)number << GENERATION_BITS | generation};
}

/* NULL: its segment was never needed. */
static struct buffer_slot *slot_look(const struct buffers *buffers, uint32_t number) {
    struct buffer_slot *segment =
        atomic_load_explicit(&buffers->segments[number / SEGMENT_SLOTS], memory_order_acquire);
    return segment != NULL ? &segment[number % SEGMENT_SLOTS] : NULL;
}

static struct buffer_slot *slot_at(const struct buffers *buffers, uint32_t number) {
    struct buffer_slot *slot = slot_look(buffers, number);
    ACRE_ASSERT(slot != NULL);
    return slot;
}

struct buffer_slot *slot_find(const struct acre_context *context, struct acre_buffer buffer) {
    if (number_of(buffer) != context->number) {
        return NULL;
    }
    struct buffer_slot *slot = slot_look(context->buffers, slot_number(buffer));
    uint32_t generation = generation_of(buffer);
    bool is_live = slot != NULL && generation % 2 == 1 &&
                   atomic_load_explicit(&slot->generation, memory_order_acquire) == generation;
    return is_live ? slot : NULL;
}

bool slot_id(const struct acre_context *context, uint32_t number, struct acre_buffer *ret_buffer) {
    if (number > context->buffers->slot_count) {
        return false;
    }
    uint32_t generation = atomic_load(&slot_at(context->buffers, number)->generation);
    *ret_buffer =
        generation % 2 == 1 ? make_id(context, number, generation) : (struct acre_buffer){0};
    return true;
}

static int slot_take(struct buffers *buffers, uint32_t *ret_number) {
    if (buffers->free_slot != 0) {
        *ret_number = buffers->free_slot;
        buffers->free_slot = slot_at(buffers, *ret_number)->next_free;
        return 0;
    }
    uint32_t number = buffers->slot_count + 1;
    if (number >= SLOTS_MAX) {
        return ACRE_ELIMIT;
    }
    if (slot_look(buffers, number) == NULL) {
        struct buffer_slot *segment = calloc(SEGMENT_SLOTS, sizeof(*segment));
        if (segment == NULL) {
            return ACRE_ENOMEM;
        }
        const struct acre_context *context = buffers->heaps[HEAP_DEVICE].context;
        uint32_t generation = context->compute->generations[context->number];
        for (uint32_t i = 0; generation != 0 && i < SEGMENT_SLOTS; i++) {
            atomic_store_explicit(&segment[i].generation, generation, memory_order_relaxed);
        }
        atomic_store_explicit(&buffers->segments[number / SEGMENT_SLOTS], segment,
                              memory_order_release);
    }
    buffers->slot_count = number;
    *ret_number = number;
    return 0;
}

static void slot_put(struct buffers *buffers, uint32_t number) {
    struct buffer_slot *slot = slot_at(buffers, number);
    uint32_t generation = atomic_load_explicit(&slot->generation, memory_order_relaxed);
    atomic_store_explicit(&slot->generation, generation + 1, memory_order_release);
    for (size_t i = 0; i < USERS_MAX; i++) {
        atomic_store_explicit(&slot->users[i], 0, memory_order_release);
    }
    slot->chunk = NULL;
    if (generation + 2 < GENERATION_LAST) {
        slot->next_free = buffers->free_slot;
        buffers->free_slot = number;
    }
}

static void read_slot(const struct buffer_slot *slot, struct buffer_range *ret_range,
                      uint32_t *ret_epoch) {
    ret_range->region = atomic_load_explicit(&slot->region, memory_order_acquire);
    ret_range->offset = atomic_load_explicit(&slot->offset, memory_order_acquire);
    ret_range->bytes = atomic_load_explicit(&slot->bytes, memory_order_acquire);
    ret_range->kind = atomic_load_explicit(&slot->kind, memory_order_acquire);
    ret_range->host = atomic_load_explicit(&slot->host, memory_order_acquire);
    *ret_epoch = atomic_load_explicit(&slot->epoch, memory_order_acquire);
}

static void write_slot(struct buffer_slot *slot, const struct buffer_range *range, uint32_t epoch) {
    atomic_store_explicit(&slot->region, range->region, memory_order_release);
    atomic_store_explicit(&slot->offset, range->offset, memory_order_release);
    atomic_store_explicit(&slot->bytes, range->bytes, memory_order_release);
    atomic_store_explicit(&slot->kind, range->kind, memory_order_release);
    atomic_store_explicit(&slot->host, range->host, memory_order_release);
    atomic_store_explicit(&slot->epoch, epoch, memory_order_release);
    atomic_store_explicit(&slot->is_crowded, false, memory_order_release);
}

/* --- looking up ----------------------------------------------------------------------------- */

struct acre_context *buffer_context(struct acre_compute *compute, struct acre_buffer buffer) {
    uint32_t number = number_of(buffer);
    if (number >= CONTEXTS_MAX) {
        return NULL;
    }
    pthread_mutex_lock(&compute->lock);
    struct acre_context *context = compute->contexts[number];
    pthread_mutex_unlock(&compute->lock);
    return context;
}

static int refuse(struct acre_context *context, struct acre_buffer buffer, const char *what,
                  struct acre_error *err) {
    if (buffer.id == 0) {
        return acre_fail(err, ACRE_ENOTFOUND, "%s: no buffer was given (id 0)", what);
    }
    if (number_of(buffer) != context->number) {
        struct acre_context *other = buffer_context(context->compute, buffer);
        return other == NULL
                   ? acre_fail(err, ACRE_ENOTFOUND,
                               "%s: the buffer's context does not exist or was closed", what)
                   : acre_fail(err, ACRE_EINVALID,
                               "%s: the buffer belongs to another context (tenant '%s' on %s); "
                               "accepted: buffers of this context (tenant '%s' on %s)",
                               what, other->tenant, context_device(other)->name, context->tenant,
                               context_device(context)->name);
    }
    return acre_fail(err, ACRE_ENOTFOUND, "%s: the buffer was freed", what);
}

static int refuse_lost(struct acre_context *context, const char *what, struct acre_error *err) {
    pthread_mutex_lock(&context->lock);
    acre_fail(err, ACRE_EUNAVAILABLE, "%s: the buffer was lost with its context: %s", what,
              context->failure);
    pthread_mutex_unlock(&context->lock);
    return ACRE_EUNAVAILABLE;
}

int buffer_resolve(struct acre_context *context, struct acre_buffer buffer, uint64_t offset,
                   uint64_t bytes, const char *what, struct buffer_range *ret_range,
                   struct acre_error *err) {
    const struct buffer_slot *slot = slot_find(context, buffer);
    struct buffer_range range;
    uint32_t epoch;
    if (slot != NULL) {
        read_slot(slot, &range, &epoch);
    }
    if (slot == NULL || slot_find(context, buffer) == NULL) {
        return refuse(context, buffer, what, err);
    }
    if (range.kind == ACRE_MEMORY_DEVICE && epoch != atomic_load(&context->epoch)) {
        return refuse_lost(context, what, err);
    }
    if (offset > range.bytes || bytes > range.bytes - offset) {
        return acre_fail(err, ACRE_EINVALID,
                         "%s: %" PRIu64 " bytes at offset %" PRIu64
                         " reach past the end of the buffer; its size is %" PRIu64,
                         what, bytes, offset, range.bytes);
    }
    *ret_range = range;
    return 0;
}

/* A stream and a number of its work in one word. The epochs in the number wrap after 4096: a
 * context that was lost so often has other worries. */
static uint64_t make_user(const struct acre_stream *stream, uint64_t sequence) {
    return (uint64_t)stream->word_index << WORD_SHIFT | (sequence & SEQUENCE_MASK);
}

static struct pool_point point_of(const struct acre_context *context, uint64_t user) {
    uint64_t above = (uint64_t)atomic_load(&context->epoch) << 40 & ~SEQUENCE_MASK;
    return (struct pool_point){.stream = (uint32_t)(user >> WORD_SHIFT),
                               .sequence = user == 0 ? 0 : above | (user & SEQUENCE_MASK)};
}

bool buffer_born(const struct acre_context *context, struct acre_buffer buffer,
                 struct pool_point *ret_point) {
    const struct buffer_slot *slot = slot_find(context, buffer);
    uint64_t user = slot != NULL ? atomic_load_explicit(&slot->born, memory_order_acquire) : 0;
    *ret_point = point_of(context, user);
    return slot_find(context, buffer) != NULL;
}

void buffer_used(struct acre_context *context, struct acre_buffer buffer,
                 const struct acre_stream *stream) {
    struct buffer_slot *slot = slot_find(context, buffer);
    uint64_t user = make_user(stream, stream->issued + 1);
    for (size_t i = 0; slot != NULL && i < USERS_MAX; i++) {
        uint64_t seen = atomic_load_explicit(&slot->users[i], memory_order_relaxed);
        if (seen != 0 && seen >> WORD_SHIFT == stream->word_index) {
            atomic_store_explicit(&slot->users[i], user, memory_order_relaxed);
            return; /* nobody else writes a stream's entry, but slot_put */
        }
        if (seen == 0 && atomic_compare_exchange_strong(&slot->users[i], &seen, user)) {
            return;
        }
    }
    if (slot != NULL) {
        uint64_t number = stream->issued + 1;
        atomic_store_explicit(&context->buffers->crowd[stream->word_index], number,
                              memory_order_relaxed);
        atomic_store_explicit(&slot->is_crowded, true, memory_order_relaxed);
    }
}

/* --- memory of the host --------------------------------------------------------------------- */

/* How many pinned and mapped buffers begin at or below. context->lock held. */
static uint32_t host_rank(const struct buffers *buffers, uintptr_t address) {
    uint32_t low = 0;
    uint32_t high = buffers->host_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct buffer_slot *slot = slot_at(buffers, buffers->host_slots[middle]);
        if ((uintptr_t)atomic_load_explicit(&slot->host, memory_order_relaxed) <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static int host_reserve(struct buffers *buffers) {
    if (buffers->host_count < buffers->host_capacity) {
        return 0;
    }
    uint32_t capacity = ACRE_MAX(2 * buffers->host_capacity, 64U);
    uint32_t *slots = realloc(buffers->host_slots, capacity * sizeof(*slots));
    if (slots == NULL) {
        return ACRE_ENOMEM;
    }
    buffers->host_slots = slots;
    buffers->host_capacity = capacity;
    return 0;
}

static void host_add(struct buffers *buffers, uint32_t number, const struct buffer_range *range) {
    uintptr_t address = (uintptr_t)range->host;
    uint32_t at = host_rank(buffers, address);
    memmove(&buffers->host_slots[at + 1], &buffers->host_slots[at],
            (buffers->host_count - at) * sizeof(uint32_t));
    buffers->host_slots[at] = number;
    buffers->host_count++;
    if (address < atomic_load(&buffers->host_low)) {
        atomic_store(&buffers->host_low, address);
    }
    if (address + range->bytes > atomic_load(&buffers->host_high)) {
        atomic_store(&buffers->host_high, address + range->bytes);
    }
}

static void host_remove(struct buffers *buffers, uint32_t number, const void *host) {
    uint32_t at = host_rank(buffers, (uintptr_t)host) - 1;
    ACRE_ASSERT(buffers->host_slots[at] == number);
    buffers->host_count--;
    memmove(&buffers->host_slots[at], &buffers->host_slots[at + 1],
            (buffers->host_count - at) * sizeof(uint32_t));
}

struct acre_buffer buffer_at_host(struct acre_context *context, const void *host, uint64_t bytes) {
    struct buffers *buffers = context->buffers;
    struct acre_buffer buffer = {0};
    uintptr_t address = (uintptr_t)host;
    if (address < atomic_load(&buffers->host_low) || address >= atomic_load(&buffers->host_high)) {
        return buffer;
    }
    pthread_mutex_lock(&context->lock);
    uint32_t rank = host_rank(buffers, address);
    if (rank > 0) {
        uint32_t number = buffers->host_slots[rank - 1];
        const struct buffer_slot *slot = slot_at(buffers, number);
        uint64_t offset = address - (uintptr_t)atomic_load(&slot->host);
        uint64_t size = atomic_load(&slot->bytes);
        if (offset <= size && bytes <= size - offset) {
            buffer = make_id(context, number, atomic_load(&slot->generation));
        }
    }
    pthread_mutex_unlock(&context->lock);
    return buffer;
}

bool buffer_of_host(struct acre_context *context, const void *host, uint64_t bytes,
                    struct buffer_range *ret_range) {
    struct acre_buffer buffer = buffer_at_host(context, host, bytes);
    struct buffer_range range;
    if (buffer.id == 0 || buffer_resolve(context, buffer, 0, bytes, "", &range, NULL) < 0) {
        return false;
    }
    uint64_t skipped = (uint64_t)((const char *)host - (const char *)range.host);
    range.offset += skipped;
    range.bytes -= skipped;
    range.host = (char *)range.host + skipped;
    *ret_range = range;
    return true;
}

/* --- making and freeing --------------------------------------------------------------------- */

/* The chunk as a buffer. Entered. */
static int add(struct acre_stream *stream, enum acre_memory kind, struct chunk *chunk,
               uint64_t bytes, struct acre_buffer *ret_buffer) {
    struct acre_context *context = stream->context;
    struct buffers *buffers = context->buffers;
    struct pool_range at = pool_range(chunk);
    uint64_t guard = context->debug ? GUARD_BYTES : 0;
    struct buffer_range range = {.region = at.region,
                                 .offset = at.offset + guard,
                                 .bytes = bytes,
                                 .kind = kind,
                                 .host = at.host != NULL ? (char *)at.host + guard : NULL};
    uint32_t number = 0;
    int r = kind != ACRE_MEMORY_DEVICE ? host_reserve(buffers) : 0;
    r = r == 0 ? slot_take(buffers, &number) : r;
    if (r < 0) {
        return r;
    }
    struct buffer_slot *slot = slot_at(buffers, number);
    uint32_t generation = atomic_load_explicit(&slot->generation, memory_order_relaxed) + 1;
    write_slot(slot, &range, atomic_load(&context->epoch));
    uint64_t born = make_user(stream, stream->issued);
    atomic_store_explicit(&slot->born, born, memory_order_release);
    atomic_store_explicit(&slot->users[0], born, memory_order_release);
    slot->chunk = chunk;
    if (kind != ACRE_MEMORY_DEVICE) {
        host_add(buffers, number, &range);
    }
    buffers->live++;
    atomic_store_explicit(&slot->generation, generation, memory_order_release);
    *ret_buffer = make_id(context, number, generation);
    return 0;
}

/* The chunk is not needed after all. context->lock held. */
static void give_up(struct acre_stream *stream, struct memory_heap *heap, struct chunk *chunk) {
    struct pool_point point = {.stream = stream->word_index, .sequence = stream->issued};
    pool_free(heap->pool, chunk, point, NULL, 0);
}

/* Entered, with context->lock: both are held still when it returns 0, neither when it fails. */
static int take(struct acre_stream *stream, struct memory_heap *heap, uint64_t bytes,
                struct quiet *quiet, struct chunk **ret_chunk, struct acre_error *err) {
    struct acre_context *context = stream->context;
    uint64_t taken = context->debug ? guard_bytes(bytes) : bytes;
    int r = pool_alloc(heap->pool, stream->word_index, taken, ret_chunk);
    if (r == 0 && !context->debug) {
        return 0; /* nearly always */
    }
    pthread_mutex_unlock(&context->lock);
    r = r == 0 ? 0
               : heap_alloc(heap, stream, taken, &context->buffers->live, quiet, ret_chunk, err);
    if (r < 0) {
        return r;
    }
    if (context->debug) {
        struct pool_range range = pool_range(*ret_chunk);
        r = guard_arm(stream, &range, bytes, err);
    }
    pthread_mutex_lock(&context->lock);
    if (r < 0) {
        give_up(stream, heap, *ret_chunk);
        pthread_mutex_unlock(&context->lock);
        stream_leave(stream, r);
    }
    return r;
}

static int make(struct acre_stream *stream, enum acre_memory kind, uint64_t bytes,
                struct quiet *quiet, struct acre_buffer *ret_buffer, bool *ret_changed,
                struct acre_error *err) {
    struct acre_context *context = stream->context;
    struct buffers *buffers = context->buffers;
    struct memory_heap *heap = &buffers->heaps[kind];
    struct chunk *chunk;
    pthread_mutex_lock(&context->lock);
    int r = take(stream, heap, bytes, quiet, &chunk, err);
    if (r < 0) {
        return r;
    }
    r = add(stream, kind, chunk, bytes, ret_buffer);
    if (r < 0) {
        acre_fail(err, r, "too many buffers: %u; accepted: at most %d", buffers->live,
                  SLOTS_MAX - 1);
        give_up(stream, heap, chunk);
    }
    *ret_changed = pressure_update(context);
    pthread_mutex_unlock(&context->lock);
    stream_leave(stream, r);
    return r;
}

int acre_buffer_alloc(struct acre_stream *stream, enum acre_memory kind, uint64_t bytes,
                      struct acre_buffer *ret_buffer, struct acre_error *err) {
    int r = stream_check(stream, err);
    if (r < 0) {
        return r;
    }
    if ((uint32_t)kind > ACRE_MEMORY_MAPPED) {
        return acre_fail(
            err, ACRE_EINVALID,
            "unknown kind %d; accepted: ACRE_MEMORY_DEVICE, ACRE_MEMORY_PINNED, ACRE_MEMORY_MAPPED",
            (int)kind);
    }
    if (bytes == 0) {
        return acre_fail(err, ACRE_EINVALID, "bytes: 0; accepted: 1 or more");
    }
    r = stream_enter(stream, err);
    if (r < 0) {
        return r;
    }
    bool has_changed = false;
    struct quiet quiet = {0};
    r = make(stream, kind, bytes, &quiet, ret_buffer, &has_changed, err);
    quiet_end(&quiet);
    if (has_changed) {
        pressure_tell(stream->context);
    }
    return r;
}

/* Streams other than this one that still use it, as the pool wants to know. context->lock held. */
static int list_users(struct acre_context *context, const struct buffer_slot *slot, uint32_t own,
                      struct pool_point **ret_points, uint32_t *ret_count) {
    struct buffers *buffers = context->buffers;
    const struct memory_pool *pool = buffers->heaps[HEAP_DEVICE].pool;
    bool is_crowded = atomic_load_explicit(&slot->is_crowded, memory_order_relaxed);
    uint32_t max = USERS_MAX + (is_crowded ? WORDS_MAX : 0);
    struct pool_point *points = NULL;
    uint32_t count = 0;
    for (uint32_t i = 0; i < max; i++) {
        struct pool_point point;
        if (i < USERS_MAX) {
            point = point_of(context, atomic_load_explicit(&slot->users[i], memory_order_relaxed));
        } else {
            point = (struct pool_point){.stream = i - USERS_MAX,
                                        .sequence = atomic_load_explicit(
                                            &buffers->crowd[i - USERS_MAX], memory_order_relaxed)};
        }
        if (point.stream == own || pool_is_past(pool, point)) {
            continue;
        }
        points = points != NULL ? points : calloc(max, sizeof(*points));
        if (points == NULL) {
            return ACRE_ENOMEM;
        }
        points[count++] = point;
    }
    *ret_points = points;
    *ret_count = count;
    return 0;
}

/* Gate held. */
static int drop(struct acre_stream *stream, struct acre_buffer buffer, bool *ret_changed,
                struct acre_error *err) {
    struct acre_context *context = stream->context;
    struct buffers *buffers = context->buffers;
    pthread_mutex_lock(&context->lock);
    struct buffer_slot *slot = slot_find(context, buffer);
    if (slot == NULL) {
        pthread_mutex_unlock(&context->lock);
        return refuse(context, buffer, "buffer", err);
    }
    /* What the stream was given in this epoch; nothing, if it has not been used in it. */
    bool is_present = stream->epoch == atomic_load(&context->epoch);
    struct pool_point point = {.stream = stream->word_index,
                               .sequence = is_present ? stream->issued : 0};
    struct pool_point *more = NULL;
    uint32_t more_count = 0;
    int r = list_users(context, slot, stream->word_index, &more, &more_count);
    if (r < 0) {
        pthread_mutex_unlock(&context->lock);
        return acre_fail(err, r, "buffer: no memory for the list of its %d users", USERS_MAX);
    }
    uint32_t kind = atomic_load(&slot->kind);
    uint64_t bytes = atomic_load(&slot->bytes);
    if (kind != ACRE_MEMORY_DEVICE) {
        host_remove(buffers, slot_number(buffer), atomic_load(&slot->host));
    }
    if (slot->chunk != NULL) {
        pool_free(buffers->heaps[kind].pool, slot->chunk, point, more, more_count);
    } else {
        free(more);
    }
    slot_put(buffers, slot_number(buffer));
    buffers->live--;
    *ret_changed = pressure_update(context);
    pthread_mutex_unlock(&context->lock);
    if (is_present && atomic_load(&context->failed) == 0) {
        heap_freed(stream, bytes);
    }
    return 0;
}

/* Whether other streams still use it. */
static bool is_shared(struct acre_stream *stream, struct acre_buffer buffer) {
    struct acre_context *context = stream->context;
    struct pool_point *points = NULL;
    uint32_t count = 0;
    pthread_mutex_lock(&context->lock);
    const struct buffer_slot *slot = slot_find(context, buffer);
    bool is = slot == NULL || list_users(context, slot, stream->word_index, &points, &count) < 0;
    pthread_mutex_unlock(&context->lock);
    free(points);
    return is || count > 0;
}

/* Look at the canaries, then overwrite the buffer, when its stream has come so far, on a stream of
 * the context's own: how the user's work went is for who waits for it, and told once. Only damage
 * is an answer: a device that does not work keeps nobody from freeing. */
static int inspect(struct acre_stream *stream, struct acre_buffer buffer, struct acre_error *err) {
    struct acre_context *context = stream->context;
    struct acre_error found = {0};
    struct acre_stream *own;
    if (stream_enter(stream, NULL) < 0) {
        return 0;
    }
    int r = stream_signal(stream, NULL);
    uint64_t sequence = stream->issued;
    stream_leave(stream, r);
    r = r == 0 ? word_wait(context, stream->word_index, sequence, ACRE_FOREVER, NULL) : r;
    if (r < 0 || staging_stream(context, &own, NULL) < 0) {
        return 0;
    }
    int damage = guard_check(own, buffer, &found);
    if (stream_enter(own, NULL) == 0) {
        struct buffer_range range;
        r = buffer_resolve(context, buffer, 0, 0, "buffer", &range, NULL);
        if (r == 0 && !is_shared(own, buffer)) {
            buffer_used(context, buffer, own);
            guard_poison(own, &range, NULL);
            stream_signal(own, NULL);
        }
        sequence = own->signaled;
        stream_leave(own, 0);
        word_wait(context, own->word_index, sequence, ACRE_FOREVER, NULL);
    }
    staging_stream_done(context);
    return damage == ACRE_ECORRUPT ? acre_fail(err, damage, "%s", found.text) : 0;
}

int acre_buffer_free(struct acre_stream *stream, struct acre_buffer buffer,
                     struct acre_error *err) {
    int r = stream_check(stream, err);
    if (r < 0) {
        return r;
    }
    struct acre_context *context = stream->context;
    int found = context->debug ? inspect(stream, buffer, err) : 0;
    bool has_changed = false;
    /* Not stream_enter: freeing must not fail because the device does. */
    context_read(context);
    stream_take(stream);
    r = drop(stream, buffer, &has_changed, err);
    stream_let(stream);
    pthread_rwlock_unlock(&context->gate);
    if (has_changed) {
        pressure_tell(context);
    }
    return r < 0 ? r : found;
}

void *acre_buffer_host(struct acre_context *context, struct acre_buffer buffer) {
    if (context_check(context, NULL) < 0) {
        return NULL;
    }
    const struct buffer_slot *slot = slot_find(context, buffer);
    void *host = slot != NULL ? atomic_load_explicit(&slot->host, memory_order_acquire) : NULL;
    return slot_find(context, buffer) != NULL ? host : NULL;
}

int acre_buffer_size(struct acre_context *context, struct acre_buffer buffer, uint64_t *ret_bytes,
                     struct acre_error *err) {
    int r = context_check(context, err);
    if (r < 0) {
        return r;
    }
    struct buffer_range range;
    r = buffer_resolve(context, buffer, 0, 0, "buffer", &range, err);
    if (r == 0) {
        *ret_bytes = range.bytes;
    }
    return r;
}

/* --- life ----------------------------------------------------------------------------------- */

static const struct {
    enum acre_memory kind;
    uint64_t block_min_bytes, block_max_bytes;
} heap_plans[HEAPS] = {
    [HEAP_DEVICE] = {ACRE_MEMORY_DEVICE, 32 * MIB, 1024 * MIB},
    [HEAP_PINNED] = {ACRE_MEMORY_PINNED, 4 * MIB, 64 * MIB},
    [HEAP_MAPPED] = {ACRE_MEMORY_MAPPED, 4 * MIB, 64 * MIB},
    [HEAP_STAGING] = {ACRE_MEMORY_PINNED, 4 * MIB, 8 * MIB},
};

/* With `debug` blocks are small: who goes far over the edge of a buffer most likely leaves its
 * block too, which the device, or compute-sanitizer, notices. */
static const uint64_t DEBUG_BLOCK_BYTES = 64 << 10;

int buffers_create(struct acre_context *context, struct acre_error *err) {
    struct buffers *buffers = calloc(1, sizeof(*buffers));
    if (buffers == NULL) {
        return acre_fail(err, ACRE_ENOMEM, "table of buffers");
    }
    context->buffers = buffers; /* from here on buffers_destroy frees it */
    buffers->host_low = UINTPTR_MAX;
    buffers->warning_bytes = context->limit_bytes / 2;
    buffers->critical_bytes = context->limit_bytes / 10 * 8;
    buffers->crowd = calloc(WORDS_MAX, sizeof(*buffers->crowd));
    int r = buffers->crowd != NULL ? 0 : acre_fail(err, ACRE_ENOMEM, "table of buffers");
    for (size_t i = 0; i < HEAPS && r == 0; i++) {
        bool is_small = i == HEAP_DEVICE && context->debug;
        r = heap_init(&buffers->heaps[i], context, heap_plans[i].kind,
                      is_small ? DEBUG_BLOCK_BYTES : heap_plans[i].block_min_bytes,
                      is_small ? DEBUG_BLOCK_BYTES : heap_plans[i].block_max_bytes, err);
    }
    context->pool = buffers->heaps[HEAP_DEVICE].pool;
    return r == 0 ? staging_create(context, err) : r;
}

void buffers_destroy(struct acre_context *context) {
    struct buffers *buffers = context->buffers;
    if (buffers == NULL) {
        return;
    }
    staging_destroy(context);
    struct quiet quiet;
    quiet_begin(&quiet, context);
    for (size_t i = 0; i < HEAPS; i++) {
        heap_finish(&buffers->heaps[i], &quiet);
    }
    quiet_end(&quiet);
    for (size_t i = 0; i < SEGMENTS_MAX; i++) {
        free(buffers->segments[i]);
    }
    free(buffers->host_slots);
    free(buffers->crowd);
    free(buffers);
    context->buffers = NULL;
    context->pool = NULL;
}

/* A live slot after a loss: lost, or at its offset in the new region. context->lock held. */
static void renew(struct buffer_slot *slot) {
    if (atomic_load(&slot->kind) == ACRE_MEMORY_DEVICE) {
        slot->chunk = NULL;
    } else {
        atomic_store(&slot->region, pool_range(slot->chunk).region);
    }
}

int buffers_rebuild(struct acre_context *context, struct acre_error *err) {
    struct buffers *buffers = context->buffers;
    int r = 0;
    pthread_mutex_lock(&context->lock);
    for (size_t i = 0; i < HEAPS && r == 0; i++) {
        r = heap_rebuild(&buffers->heaps[i], err);
    }
    /* Also when that failed: device blocks are gone already. */
    for (uint32_t number = 1; number <= buffers->slot_count; number++) {
        struct buffer_slot *slot = slot_at(buffers, number);
        if (atomic_load(&slot->generation) % 2 == 1) {
            renew(slot);
        }
    }
    pthread_mutex_unlock(&context->lock);
    return r;
}

uint32_t buffers_generation(const struct acre_context *context) {
    const struct buffers *buffers = context->buffers;
    uint32_t last = context->compute->generations[context->number];
    for (uint32_t number = 1; buffers != NULL && number <= buffers->slot_count; number++) {
        last = ACRE_MAX(last, atomic_load(&slot_at(buffers, number)->generation));
    }
    return last + last % 2;
}

void buffers_count(struct acre_context *context, uint32_t *ret_live, uint32_t *ret_lost) {
    const struct buffers *buffers = context->buffers;
    uint32_t epoch = atomic_load(&context->epoch);
    uint32_t lost = 0;
    pthread_mutex_lock(&context->lock);
    for (uint32_t number = 1; number <= buffers->slot_count; number++) {
        const struct buffer_slot *slot = slot_at(buffers, number);
        lost += atomic_load(&slot->generation) % 2 == 1 &&
                atomic_load(&slot->kind) == ACRE_MEMORY_DEVICE &&
                atomic_load(&slot->epoch) != epoch;
    }
    *ret_live = buffers->live;
    *ret_lost = lost;
    pthread_mutex_unlock(&context->lock);
}
