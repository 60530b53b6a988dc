/* place_double.c - see place_double.h. One lock for everything; a handle is an index plus one. */
#include "support/place_double.h"

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
    struct acre_native_copy copy;
    struct acre_native_fill fill;
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

struct double_place {
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

static int add_region(struct double_place *place, struct region_double region,
                      struct acre_region *ret_region) {
    for (uint64_t i = 0; i < REGIONS_MAX; i++) {
        if (place->regions[i].bytes == NULL) {
            place->regions[i] = region;
            place->counts.regions++;
            place->counts.created++;
            *ret_region = (struct acre_region){.handle = i + 1, .address = (uintptr_t)region.bytes};
            return 0;
        }
    }
    return ACRE_ELIMIT;
}

static int region_create(void *self, enum acre_memory kind, uint64_t bytes, void *host,
                         struct acre_region *ret_region, struct acre_error *err) {
    struct double_place *place = self;
    bool is_device = kind == ACRE_MEMORY_DEVICE;
    pthread_mutex_lock(&place->lock);
    int r = 0;
    if (is_device &&
        (bytes > place->memory_bytes - place->counts.device_bytes || bytes > place->refuse_above)) {
        r = acre_fail(err, ACRE_ENOMEM, "double: no memory");
    } else {
        ACRE_ASSERT(is_device == (host == NULL));
        ACRE_ASSERT(is_device || ((uintptr_t)host % 4096 == 0 && bytes % 4096 == 0));
        struct region_double region = {
            .bytes = is_device ? calloc(1, bytes) : host, .size = bytes, .kind = kind};
        ACRE_ASSERT(region.bytes != NULL);
        r = add_region(place, region, ret_region);
        *(is_device ? &place->counts.device_bytes : &place->counts.host_bytes) += bytes;
    }
    pthread_mutex_unlock(&place->lock);
    return r;
}

static void drop_region(struct double_place *place, uint64_t handle) {
    ACRE_ASSERT(handle > 0 && handle <= REGIONS_MAX && place->regions[handle - 1].bytes != NULL);
    struct region_double *region = &place->regions[handle - 1];
    if (region->kind == ACRE_MEMORY_DEVICE && !region->is_import) {
        place->counts.device_bytes -= region->size;
        free(region->bytes);
    } else if (!region->is_import) {
        place->counts.host_bytes -= region->size;
    }
    *region = (struct region_double){0};
    place->counts.regions--;
}

static void region_destroy(void *self, uint64_t handle) {
    struct double_place *place = self;
    pthread_mutex_lock(&place->lock);
    drop_region(place, handle);
    pthread_mutex_unlock(&place->lock);
}

static uint8_t *at(struct double_place *place, uint64_t handle, uint64_t offset, uint64_t bytes) {
    ACRE_ASSERT(handle > 0 && handle <= REGIONS_MAX);
    struct region_double *region = &place->regions[handle - 1];
    ACRE_ASSERT(region->bytes != NULL && offset <= region->size && bytes <= region->size - offset);
    return region->bytes + offset;
}

static int region_export(void *self, uint64_t handle, uint8_t ret_ticket[64],
                         struct acre_error *err) {
    struct double_place *place = self;
    (void)err;
    pthread_mutex_lock(&place->lock);
    struct region_double region = place->regions[handle - 1];
    pthread_mutex_unlock(&place->lock);
    memcpy(ret_ticket, &region, sizeof(region));
    return 0;
}

static int region_import(void *self, const uint8_t ticket[64], struct acre_region *ret_region,
                         struct acre_error *err) {
    struct double_place *place = self;
    struct region_double region;
    (void)err;
    memcpy(&region, ticket, sizeof(region));
    region.is_import = true;
    pthread_mutex_lock(&place->lock);
    int r = add_region(place, region, ret_region);
    place->counts.imports++;
    pthread_mutex_unlock(&place->lock);
    return r;
}

static int memory(void *self, uint64_t *ret_free, uint64_t *ret_total, struct acre_error *err) {
    struct double_place *place = self;
    (void)err;
    pthread_mutex_lock(&place->lock);
    *ret_free = place->memory_bytes - place->counts.device_bytes;
    *ret_total = place->memory_bytes;
    pthread_mutex_unlock(&place->lock);
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
    struct double_place *place = self;
    (void)err;
    pthread_mutex_lock(&place->lock);
    uint64_t i = 0;
    while (place->streams[i].is_taken) {
        i++;
        ACRE_ASSERT(i < STREAMS_MAX);
    }
    place->streams[i] = (struct stream_double){
        .is_taken = true, .word_region = word_region, .word_offset = word_offset};
    place->streams[i].last = &place->streams[i].first;
    *ret_stream = i + 1;
    pthread_mutex_unlock(&place->lock);
    return 0;
}

static void stream_destroy(void *self, uint64_t handle) {
    struct double_place *place = self;
    pthread_mutex_lock(&place->lock);
    ACRE_ASSERT(place->streams[handle - 1].first == NULL); /* idle */
    place->streams[handle - 1].is_taken = false;
    pthread_mutex_unlock(&place->lock);
}

static int give(struct double_place *place, uint64_t handle, const struct work *work) {
    struct work *own = malloc(sizeof(*own));
    ACRE_ASSERT(own != NULL);
    *own = *work;
    own->next = NULL;
    pthread_mutex_lock(&place->lock);
    struct stream_double *stream = &place->streams[handle - 1];
    ACRE_ASSERT(stream->is_taken);
    *stream->last = own;
    stream->last = &own->next;
    place->counts.signals += work->kind == WORK_SIGNAL;
    place->counts.copies += work->kind == WORK_COPY;
    pthread_cond_signal(&place->more);
    pthread_mutex_unlock(&place->lock);
    return 0;
}

static int copy(void *self, uint64_t stream, const struct acre_native_copy *copy_,
                struct acre_error *err) {
    struct work work = {.kind = WORK_COPY, .copy = *copy_};
    (void)err;
    return give(self, stream, &work);
}

static int fill(void *self, uint64_t stream, const struct acre_native_fill *fill_,
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

static _Atomic uint64_t *word_at(struct double_place *place, uint64_t region, uint64_t offset) {
    return (_Atomic uint64_t *)(void *)at(place, region, offset, sizeof(uint64_t));
}

/* The first piece of a stream's work; false: there is none, or it waits. Lock held. */
static bool step(struct double_place *place, struct stream_double *stream) {
    struct work *work = stream->is_taken ? stream->first : NULL;
    if (work == NULL || (work->kind == WORK_WAIT &&
                         atomic_load(word_at(place, work->region, work->offset)) < work->value)) {
        return false;
    }
    if (work->kind == WORK_COPY) {
        const struct acre_native_copy *c = &work->copy;
        memmove(at(place, c->to, c->to_offset, c->bytes),
                at(place, c->from, c->from_offset, c->bytes), c->bytes);
    } else if (work->kind == WORK_FILL) {
        const struct acre_native_fill *f = &work->fill;
        uint8_t *to = at(place, f->to, f->to_offset, f->bytes);
        for (uint64_t i = 0; i < f->bytes; i += f->pattern_bytes) {
            memcpy(to + i, &f->pattern, f->pattern_bytes);
        }
    } else if (work->kind == WORK_SIGNAL) {
        _Atomic uint64_t *word = word_at(place, stream->word_region, stream->word_offset);
        atomic_store(word, work->value);
        acre_futex_wake(acre_futex_low_half(word), ACRE_FUTEX_ALL, ACRE_FUTEX_SHARED);
    }
    stream->first = work->next;
    stream->last = stream->first == NULL ? &stream->first : stream->last;
    free(work);
    return true;
}

/* One piece of some stream. Lock held. */
static bool step_any(struct double_place *place) {
    uint64_t first = acre_rand_below(&place->rand, STREAMS_MAX);
    for (uint64_t i = 0; i < STREAMS_MAX; i++) {
        if (step(place, &place->streams[(first + i) % STREAMS_MAX])) {
            return true;
        }
    }
    return false;
}

void double_run(struct acre_context *context, const struct acre_stream *stream, uint32_t count) {
    struct double_place *place = context->place;
    pthread_mutex_lock(&place->lock);
    while (count-- > 0 &&
           (stream != NULL ? step(place, &place->streams[stream->handle - 1]) : step_any(place))) {
    }
    pthread_mutex_unlock(&place->lock);
}

static void *work_on(void *argument) {
    struct double_place *place = argument;
    pthread_mutex_lock(&place->lock);
    while (!place->is_ending) {
        if (!step_any(place)) {
            pthread_cond_wait(&place->more, &place->lock);
        } else if (acre_rand_below(&place->rand, 4) == 0) { /* let others in */
            pthread_mutex_unlock(&place->lock);
            pthread_mutex_lock(&place->lock);
        }
    }
    pthread_mutex_unlock(&place->lock);
    return NULL;
}

void double_start(struct acre_context *context) {
    struct double_place *place = context->place;
    place->has_thread = pthread_create(&place->thread, NULL, work_on, place) == 0;
    ACRE_ASSERT(place->has_thread);
}

static void end(struct double_place *place) {
    if (place->has_thread) {
        pthread_mutex_lock(&place->lock);
        place->is_ending = true;
        pthread_cond_signal(&place->more);
        pthread_mutex_unlock(&place->lock);
        pthread_join(place->thread, NULL);
        place->has_thread = place->is_ending = false;
    }
    for (size_t i = 0; i < STREAMS_MAX; i++) {
        while (place->streams[i].first != NULL) {
            struct work *work = place->streams[i].first;
            place->streams[i].first = work->next;
            free(work);
        }
        place->streams[i] = (struct stream_double){0};
    }
    for (uint64_t i = 0; i < REGIONS_MAX; i++) {
        if (place->regions[i].bytes != NULL) {
            drop_region(place, i + 1);
        }
    }
}

/* --- contexts ------------------------------------------------------------------------------- */

#define PLAIN                                                                                      \
    .name = "double", .region_create = region_create, .region_destroy = region_destroy,            \
    .memory = memory, .check = check, .stream_create = stream_create,                              \
    .stream_destroy = stream_destroy, .copy = copy, .fill = fill, .signal = signal_word,           \
    .wait = wait_word

static const struct acre_backend plain = {PLAIN};
static const struct acre_backend importing = {PLAIN, .region_export = region_export,
                                              .region_import = region_import};

static void make_words(struct acre_context *context) {
    struct acre_region region;
    int r = region_create(context->place, ACRE_MEMORY_MAPPED, WORDS_MAX * sizeof(uint64_t),
                          (void *)context->words, &region, NULL);
    ACRE_ASSERT(r == 0);
    context->words_region = region.handle;
}

static void open_context(struct acre_compute *compute, uint32_t number,
                         const struct double_options *options) {
    struct double_place *place = acre_calloc(1, sizeof(*place));
    pthread_mutex_init(&place->lock, NULL);
    pthread_cond_init(&place->more, NULL);
    place->memory_bytes = compute->devices[0].memory_bytes;
    place->refuse_above = UINT64_MAX;
    acre_rand_seed(&place->rand, options->seed + number);
    struct acre_context *context = acre_calloc(1, sizeof(*context));
    *context = (struct acre_context){.compute = compute,
                                     .table = options->is_importing ? &importing : &plain,
                                     .place = place,
                                     .number = number,
                                     .tenant = "test",
                                     .limit_bytes = options->limit_bytes != 0 ? options->limit_bytes
                                                                              : place->memory_bytes,
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
    struct double_place *place = context->place;
    double_run(context, NULL, UINT32_MAX);
    while (context->streams != NULL) {
        if (!place->has_thread) { /* what it waits for happens now */
            double_start(context);
        }
        if (atomic_load(&context->failed) != 0) {
            stream_release(context->streams); /* as closing does */
        } else {
            acre_stream_destroy(context->streams);
        }
    }
    buffers_destroy(context);
    region_destroy(place, context->words_region);
    ACRE_ASSERT(place->counts.regions == 0); /* nothing is left behind */
    end(place);
    munmap((void *)context->words, WORDS_MAX * sizeof(uint64_t));
    pthread_cond_destroy(&place->more);
    pthread_mutex_destroy(&place->lock);
    free(place);
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
    struct double_place *place = context->place;
    bool had_thread = place->has_thread;
    snprintf(context->failure, sizeof(context->failure), "it was told to");
    context->loss = code;
    end(place);
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
    struct double_place *place = context->place;
    pthread_mutex_lock(&place->lock);
    struct double_counts counts = place->counts;
    pthread_mutex_unlock(&place->lock);
    return counts;
}

void double_refuse_above(struct acre_context *context, uint64_t bytes) {
    struct double_place *place = context->place;
    pthread_mutex_lock(&place->lock);
    place->refuse_above = bytes;
    pthread_mutex_unlock(&place->lock);
}

uint8_t *double_memory(struct acre_context *context, uint64_t region, uint64_t offset) {
    return at(context->place, region, offset, 0);
}
