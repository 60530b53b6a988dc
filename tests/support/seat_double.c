/* seat_double.c - see seat_double.h. One lock for everything; a handle is an index plus one. */
#include "support/seat_double.h"

#include "compute/context.h"
#include "compute/memory/buffer.h"
#include "compute/stream.h"
#include "core/futex.h"
#include "core/rand.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { REGIONS_MAX = 4096, STREAMS_MAX = 256 };

enum work_kind { WORK_COPY, WORK_FILL, WORK_SIGNAL, WORK_WAIT };

struct work {
    struct work *next;
    enum work_kind kind;
    struct native_copy copy;
    struct native_fill fill;
    uint64_t region, offset, value;
};

struct stream_double {
    bool is_taken;
    uint64_t word_region, word_offset;
    struct work *first, **last;
};

struct region_double {
    uint8_t *bytes;
    uint64_t size;
    enum acre_memory kind;
    bool is_import;
};

struct double_seat {
    pthread_mutex_t lock;
    pthread_cond_t more;
    pthread_t thread;
    bool has_thread, is_ending;
    struct acre_rand rand;
    uint64_t memory_bytes, refuse_above;
    struct double_counts counts;
    struct region_double regions[REGIONS_MAX];
    struct stream_double streams[STREAMS_MAX];
};

/* --- regions -------------------------------------------------------------------------------- */

static int add_region(struct double_seat *seat, struct region_double region,
                      struct native_region *ret_region) {
    for (uint64_t i = 0; i < REGIONS_MAX; i++) {
        if (seat->regions[i].bytes == NULL) {
            seat->regions[i] = region;
            seat->counts.regions++;
            seat->counts.created++;
            *ret_region =
                (struct native_region){.handle = i + 1, .address = (uintptr_t)region.bytes};
            return 0;
        }
    }
    return ACRE_ELIMIT;
}

static int region_create(void *self, enum acre_memory kind, uint64_t bytes, void *host,
                         struct native_region *ret_region, struct acre_error *err) {
    struct double_seat *seat = self;
    bool is_device = kind == ACRE_MEMORY_DEVICE;
    pthread_mutex_lock(&seat->lock);
    int r = 0;
    if (is_device &&
        (bytes > seat->memory_bytes - seat->counts.device_bytes || bytes > seat->refuse_above)) {
        r = acre_fail(err, ACRE_ENOMEM, "double: no memory");
    } else {
        ACRE_ASSERT(is_device == (host == NULL));
        ACRE_ASSERT(is_device || ((uintptr_t)host % 4096 == 0 && bytes % 4096 == 0));
        struct region_double region = {
            .bytes = is_device ? calloc(1, bytes) : host, .size = bytes, .kind = kind};
        ACRE_ASSERT(region.bytes != NULL);
        r = add_region(seat, region, ret_region);
        *(is_device ? &seat->counts.device_bytes : &seat->counts.host_bytes) += bytes;
    }
    pthread_mutex_unlock(&seat->lock);
    return r;
}

static void drop_region(struct double_seat *seat, uint64_t handle) {
    ACRE_ASSERT(handle > 0 && handle <= REGIONS_MAX && seat->regions[handle - 1].bytes != NULL);
    struct region_double *region = &seat->regions[handle - 1];
    if (region->kind == ACRE_MEMORY_DEVICE && !region->is_import) {
        seat->counts.device_bytes -= region->size;
        free(region->bytes);
    } else if (!region->is_import) {
        seat->counts.host_bytes -= region->size;
    }
    *region = (struct region_double){0};
    seat->counts.regions--;
}

static void region_destroy(void *self, uint64_t handle) {
    struct double_seat *seat = self;
    pthread_mutex_lock(&seat->lock);
    drop_region(seat, handle);
    pthread_mutex_unlock(&seat->lock);
}

static uint8_t *at(struct double_seat *seat, uint64_t handle, uint64_t offset, uint64_t bytes) {
    ACRE_ASSERT(handle > 0 && handle <= REGIONS_MAX);
    struct region_double *region = &seat->regions[handle - 1];
    ACRE_ASSERT(region->bytes != NULL && offset <= region->size && bytes <= region->size - offset);
    return region->bytes + offset;
}

static int region_export(void *self, uint64_t handle, uint8_t ret_ticket[64],
                         struct acre_error *err) {
    struct double_seat *seat = self;
    (void)err;
    pthread_mutex_lock(&seat->lock);
    struct region_double region = seat->regions[handle - 1];
    pthread_mutex_unlock(&seat->lock);
    memcpy(ret_ticket, &region, sizeof(region));
    return 0;
}

static int region_import(void *self, const uint8_t ticket[64], struct native_region *ret_region,
                         struct acre_error *err) {
    struct double_seat *seat = self;
    struct region_double region;
    (void)err;
    memcpy(&region, ticket, sizeof(region));
    region.is_import = true;
    pthread_mutex_lock(&seat->lock);
    int r = add_region(seat, region, ret_region);
    seat->counts.imports++;
    pthread_mutex_unlock(&seat->lock);
    return r;
}

static int memory(void *self, uint64_t *ret_free, uint64_t *ret_total, struct acre_error *err) {
    struct double_seat *seat = self;
    (void)err;
    pthread_mutex_lock(&seat->lock);
    *ret_free = seat->memory_bytes - seat->counts.device_bytes;
    *ret_total = seat->memory_bytes;
    pthread_mutex_unlock(&seat->lock);
    return 0;
}

static int check(void *self, struct acre_error *err) {
    (void)self;
    (void)err;
    return 0;
}

/* --- work ----------------------------------------------------------------------------------- */

static int stream_create(void *self, uint64_t word_region, uint64_t word_offset,
                         uint64_t *ret_stream, struct acre_error *err) {
    struct double_seat *seat = self;
    (void)err;
    pthread_mutex_lock(&seat->lock);
    uint64_t i = 0;
    while (seat->streams[i].is_taken) {
        i++;
        ACRE_ASSERT(i < STREAMS_MAX);
    }
    seat->streams[i] = (struct stream_double){
        .is_taken = true, .word_region = word_region, .word_offset = word_offset};
    seat->streams[i].last = &seat->streams[i].first;
    *ret_stream = i + 1;
    pthread_mutex_unlock(&seat->lock);
    return 0;
}

static void stream_destroy(void *self, uint64_t handle) {
    struct double_seat *seat = self;
    pthread_mutex_lock(&seat->lock);
    ACRE_ASSERT(seat->streams[handle - 1].first == NULL); /* idle */
    seat->streams[handle - 1].is_taken = false;
    pthread_mutex_unlock(&seat->lock);
}

static int give(struct double_seat *seat, uint64_t handle, const struct work *work) {
    struct work *own = malloc(sizeof(*own));
    ACRE_ASSERT(own != NULL);
    *own = *work;
    own->next = NULL;
    pthread_mutex_lock(&seat->lock);
    struct stream_double *stream = &seat->streams[handle - 1];
    ACRE_ASSERT(stream->is_taken);
    *stream->last = own;
    stream->last = &own->next;
    seat->counts.signals += work->kind == WORK_SIGNAL;
    seat->counts.copies += work->kind == WORK_COPY;
    pthread_cond_signal(&seat->more);
    pthread_mutex_unlock(&seat->lock);
    return 0;
}

static int copy(void *self, uint64_t stream, const struct native_copy *copy_,
                struct acre_error *err) {
    struct work work = {.kind = WORK_COPY, .copy = *copy_};
    (void)err;
    return give(self, stream, &work);
}

static int fill(void *self, uint64_t stream, const struct native_fill *fill_,
                struct acre_error *err) {
    struct work work = {.kind = WORK_FILL, .fill = *fill_};
    (void)err;
    return give(self, stream, &work);
}

static int signal_word(void *self, uint64_t stream, uint64_t value, struct acre_error *err) {
    struct work work = {.kind = WORK_SIGNAL, .value = value};
    (void)err;
    return give(self, stream, &work);
}

static int wait_word(void *self, uint64_t stream, uint64_t region, uint64_t offset, uint64_t value,
                     struct acre_error *err) {
    struct work work = {.kind = WORK_WAIT, .region = region, .offset = offset, .value = value};
    (void)err;
    return give(self, stream, &work);
}

static _Atomic uint64_t *word_at(struct double_seat *seat, uint64_t region, uint64_t offset) {
    return (_Atomic uint64_t *)(void *)at(seat, region, offset, sizeof(uint64_t));
}

/* The first piece of a stream's work; false: there is none, or it waits. Lock held. */
static bool step(struct double_seat *seat, struct stream_double *stream) {
    struct work *work = stream->is_taken ? stream->first : NULL;
    if (work == NULL || (work->kind == WORK_WAIT &&
                         atomic_load(word_at(seat, work->region, work->offset)) < work->value)) {
        return false;
    }
    if (work->kind == WORK_COPY) {
        const struct native_copy *c = &work->copy;
        memmove(at(seat, c->to, c->to_offset, c->bytes),
                at(seat, c->from, c->from_offset, c->bytes), c->bytes);
    } else if (work->kind == WORK_FILL) {
        const struct native_fill *f = &work->fill;
        uint8_t *to = at(seat, f->to, f->to_offset, f->bytes);
        for (uint64_t i = 0; i < f->bytes; i += f->pattern_bytes) {
            memcpy(to + i, &f->pattern, f->pattern_bytes);
        }
    } else if (work->kind == WORK_SIGNAL) {
        _Atomic uint64_t *word = word_at(seat, stream->word_region, stream->word_offset);
        atomic_store(word, work->value);
        acre_futex_wake(acre_futex_low_half(word), ACRE_FUTEX_ALL, ACRE_FUTEX_SHARED);
    }
    stream->first = work->next;
    stream->last = stream->first == NULL ? &stream->first : stream->last;
    free(work);
    return true;
}

/* One piece of some stream. Lock held. */
static bool step_any(struct double_seat *seat) {
    uint64_t first = acre_rand_below(&seat->rand, STREAMS_MAX);
    for (uint64_t i = 0; i < STREAMS_MAX; i++) {
        if (step(seat, &seat->streams[(first + i) % STREAMS_MAX])) {
            return true;
        }
    }
    return false;
}

void double_run(struct acre_context *context, const struct acre_stream *stream, uint32_t count) {
    struct double_seat *seat = context->seat;
    pthread_mutex_lock(&seat->lock);
    while (count-- > 0 &&
           (stream != NULL ? step(seat, &seat->streams[stream->handle - 1]) : step_any(seat))) {
    }
    pthread_mutex_unlock(&seat->lock);
}

static void *work_on(void *argument) {
    struct double_seat *seat = argument;
    pthread_mutex_lock(&seat->lock);
    while (!seat->is_ending) {
        if (!step_any(seat)) {
            pthread_cond_wait(&seat->more, &seat->lock);
        } else if (acre_rand_below(&seat->rand, 4) == 0) { /* let others in */
            pthread_mutex_unlock(&seat->lock);
            pthread_mutex_lock(&seat->lock);
        }
    }
    pthread_mutex_unlock(&seat->lock);
    return NULL;
}

void double_start(struct acre_context *context) {
    struct double_seat *seat = context->seat;
    seat->has_thread = pthread_create(&seat->thread, NULL, work_on, seat) == 0;
    ACRE_ASSERT(seat->has_thread);
}

static void end(struct double_seat *seat) {
    if (seat->has_thread) {
        pthread_mutex_lock(&seat->lock);
        seat->is_ending = true;
        pthread_cond_signal(&seat->more);
        pthread_mutex_unlock(&seat->lock);
        pthread_join(seat->thread, NULL);
        seat->has_thread = seat->is_ending = false;
    }
    for (size_t i = 0; i < STREAMS_MAX; i++) {
        while (seat->streams[i].first != NULL) {
            struct work *work = seat->streams[i].first;
            seat->streams[i].first = work->next;
            free(work);
        }
        seat->streams[i] = (struct stream_double){0};
    }
    for (uint64_t i = 0; i < REGIONS_MAX; i++) {
        if (seat->regions[i].bytes != NULL) {
            drop_region(seat, i + 1);
        }
    }
}

/* --- contexts ------------------------------------------------------------------------------- */

#define PLAIN                                                                                      \
    .name = "double", .region_create = region_create, .region_destroy = region_destroy,            \
    .memory = memory, .check = check, .stream_create = stream_create,                              \
    .stream_destroy = stream_destroy, .copy = copy, .fill = fill, .signal = signal_word,           \
    .wait = wait_word

static const struct backend plain = {PLAIN};
static const struct backend importing = {PLAIN, .region_export = region_export,
                                         .region_import = region_import};

static void make_words(struct acre_context *context) {
    struct native_region region;
    int r = region_create(context->seat, ACRE_MEMORY_MAPPED, WORDS_MAX * sizeof(uint64_t),
                          (void *)context->words, &region, NULL);
    ACRE_ASSERT(r == 0);
    context->words_region = region.handle;
}

static void open_context(struct acre_compute *compute, uint32_t number,
                         const struct double_options *options) {
    struct double_seat *seat = acre_calloc(1, sizeof(*seat));
    pthread_mutex_init(&seat->lock, NULL);
    pthread_cond_init(&seat->more, NULL);
    seat->memory_bytes = compute->devices[0].memory_bytes;
    seat->refuse_above = UINT64_MAX;
    acre_rand_seed(&seat->rand, options->seed + number);
    struct acre_context *context = acre_calloc(1, sizeof(*context));
    *context = (struct acre_context){.compute = compute,
                                     .table = options->is_importing ? &importing : &plain,
                                     .seat = seat,
                                     .number = number,
                                     .tenant = "test",
                                     .limit_bytes = options->limit_bytes != 0 ? options->limit_bytes
                                                                              : seat->memory_bytes,
                                     .debug = options->debug};
    context_init(context);
    context->words = mmap(NULL, WORDS_MAX * sizeof(uint64_t), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ACRE_ASSERT((void *)context->words != MAP_FAILED);
    make_words(context);
    int r = buffers_create(context, NULL);
    ACRE_ASSERT(r == 0);
    compute->contexts[number] = context;
}

struct acre_compute *double_open(const struct double_options *options, uint32_t count) {
    struct acre_compute *compute = acre_calloc(1, sizeof(*compute));
    pthread_mutex_init(&compute->lock, NULL);
    compute->devices = acre_calloc(1, sizeof(*compute->devices));
    compute->device_count = 1;
    *compute->devices = (struct acre_compute_device){
        .backend = "double",
        .name = "Double",
        .memory_bytes = options->memory_bytes != 0 ? options->memory_bytes : UINT64_C(1) << 30};
    for (uint32_t i = 0; i < count; i++) {
        open_context(compute, i + 1, options);
    }
    return compute;
}

static void close_context(struct acre_context *context) {
    struct double_seat *seat = context->seat;
    double_run(context, NULL, UINT32_MAX);
    while (context->streams != NULL) {
        if (!seat->has_thread) { /* what it waits for happens now */
            double_start(context);
        }
        if (atomic_load(&context->failed) != 0) {
            stream_release(context->streams); /* as closing does */
        } else {
            acre_stream_destroy(context->streams);
        }
    }
    buffers_destroy(context);
    region_destroy(seat, context->words_region);
    ACRE_ASSERT(seat->counts.regions == 0); /* nothing is left behind */
    end(seat);
    munmap((void *)context->words, WORDS_MAX * sizeof(uint64_t));
    pthread_cond_destroy(&seat->more);
    pthread_mutex_destroy(&seat->lock);
    free(seat);
    context_finish(context);
    free(context);
}

void double_close(struct acre_compute *compute) {
    for (uint32_t i = 0; i < CONTEXTS_MAX; i++) {
        if (compute->contexts[i] != NULL) {
            close_context(compute->contexts[i]);
        }
    }
    pthread_mutex_destroy(&compute->lock);
    free(compute->devices);
    free(compute);
}

struct acre_context *double_context(struct acre_compute *compute, uint32_t number) {
    return compute->contexts[number + 1];
}

void double_lose(struct acre_context *context) {
    double_lose_by(context, ACRE_EUNAVAILABLE);
}

void double_lose_by(struct acre_context *context, int code) {
    pthread_rwlock_wrlock(&context->gate);
    struct double_seat *seat = context->seat;
    bool had_thread = seat->has_thread;
    snprintf(context->failure, sizeof(context->failure), "it was told to");
    context->loss = code;
    end(seat);
    streams_lose(context);
    make_words(context);
    int r = buffers_rebuild(context, NULL);
    ACRE_ASSERT(r == 0);
    pthread_mutex_lock(&context->lock);
    context->rebuilt++;
    pthread_mutex_unlock(&context->lock);
    if (had_thread) {
        double_start(context);
    }
    pthread_rwlock_unlock(&context->gate);
}

struct double_counts double_counts(struct acre_context *context) {
    struct double_seat *seat = context->seat;
    pthread_mutex_lock(&seat->lock);
    struct double_counts counts = seat->counts;
    pthread_mutex_unlock(&seat->lock);
    return counts;
}

void double_refuse_above(struct acre_context *context, uint64_t bytes) {
    struct double_seat *seat = context->seat;
    pthread_mutex_lock(&seat->lock);
    seat->refuse_above = bytes;
    pthread_mutex_unlock(&seat->lock);
}

uint8_t *double_memory(struct acre_context *context, uint64_t region, uint64_t offset) {
    return at(context->seat, region, offset, 0);
}
