/* context.c - a tenant's seat on a device: open, report, lose and rebuild, close.
 *
 * A lost context is rebuilt with the gate held for writing: no work is being queued, and no handle
 * of the old seat survives. Streams and modules are made again when they are next used. Host
 * memory is registered with the new seat at once. Device memory is lost, and its buffers say so.
 *
 * A kernel in this process cannot be killed: one that was given up keeps running, in memory and
 * code that must stay. A separate thread closes such a context and waits for the kernel, forever if
 * need be; the caller of close waits for that thread only for a while. */
#include "compute/context.h"

#include "compute/graph.h"
#include "compute/keeper.h"
#include "compute/memory/buffer.h"
#include "compute/process.h"
#include "compute/program.h"
#include "compute/quiet.h"
#include "compute/ring/ring.h"
#include "compute/runner/remote.h"
#include "compute/stream.h"
#include "core/clock.h"
#include "core/futex.h"
#include "core/thread.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum {
    CLOSE_S = 2,      /* a kernel that is a little late, on a busy machine, is still waited for */
    WAY_NS = 1000000, /* readers stay away so long at most for who waits to write */
};

const struct acre_compute_device *context_device(const struct acre_context *context) {
    return &context->compute->devices[context->device];
}

static int tell_failure(struct acre_context *context, int code, struct acre_error *err) {
    pthread_mutex_lock(&context->lock);
    int r = acre_fail(err, code, "%s: %s", context_device(context)->name, context->failure);
    pthread_mutex_unlock(&context->lock);
    return r;
}

int context_failure(struct acre_context *context, struct acre_error *err) {
    return tell_failure(context, atomic_load(&context->failed), err);
}

int context_loss(struct acre_context *context, struct acre_error *err) {
    pthread_mutex_lock(&context->lock);
    int r = acre_fail(err, context->loss, "%s: %s; the contents of its device memory are lost",
                      context_device(context)->name, context->failure);
    pthread_mutex_unlock(&context->lock);
    return r;
}

void context_read(struct acre_context *context) {
    uint32_t losers = atomic_load_explicit(&context->losers, memory_order_relaxed);
    if (losers != 0) {
        acre_futex_wait(&context->losers, losers, WAY_NS, ACRE_FUTEX_PRIVATE);
    }
    pthread_rwlock_rdlock(&context->gate);
}

int context_enter(struct acre_context *context, struct acre_error *err) {
    context_read(context);
    int r = 0;
    if (atomic_load(&context->failed) != 0) {
        r = context_failure(context, err);
    } else if (atomic_load(&context->breaker.state) != BREAKER_CLOSED) {
        r = breaker_ask(&context->breaker, acre_monotonic_ns() / 1000000, err);
    }
    if (r < 0) {
        pthread_rwlock_unlock(&context->gate);
    }
    return r;
}

int context_look(struct acre_context *context, struct acre_error *err) {
    int failed = atomic_load(&context->failed); /* once: it may work again the next moment */
    return failed != 0 ? tell_failure(context, failed, err)
                       : breaker_look(&context->breaker, acre_monotonic_ns() / 1000000, err);
}

void context_leave(struct acre_context *context, int result) {
    /* A runner that is gone is one failure, however many calls find that before it is lost. */
    bool is_known =
        result == ACRE_EUNAVAILABLE && context->is_remote && remote_has_ended(context->seat);
    pthread_rwlock_unlock(&context->gate);
    /* While one call tries whether the device works again, that one must say how it went: all
     * others are refused until then, a wait for its work too. */
    if ((result < 0 && !is_known) || atomic_load(&context->breaker.state) == BREAKER_HALF_OPEN) {
        context_tell(context, result);
    }
}

void context_pass(struct acre_context *context) {
    pthread_rwlock_unlock(&context->gate);
    if (atomic_load(&context->breaker.state) == BREAKER_HALF_OPEN) {
        breaker_pass(&context->breaker);
    }
}

void context_tell(struct acre_context *context, int result) {
    bool is_of_device = result == ACRE_EUNAVAILABLE || result == ACRE_EINTERNAL ||
                        result == ACRE_ETIMEOUT || result == ACRE_EIO;
    if (result == 0 || is_of_device) {
        breaker_tell(&context->breaker, acre_monotonic_ns() / 1000000, result == 0);
    } else {
        breaker_pass(&context->breaker);
    }
}

int context_map(struct acre_context *context, uint64_t bytes, void **ret_host,
                struct acre_error *err) {
    if (context->is_remote) {
        return remote_map_host(context->seat, bytes, ret_host, err);
    }
    void *host = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (host == MAP_FAILED) {
        return acre_fail(err, ACRE_ENOMEM, "cannot map %llu bytes of host memory",
                         (unsigned long long)bytes);
    }
    *ret_host = host;
    return 0;
}

void context_unmap(struct acre_context *context, void *host, uint64_t bytes) {
    if (context->is_remote) {
        remote_unmap(context->seat, host, bytes);
    } else {
        munmap(host, bytes);
    }
}

/* --- opening -------------------------------------------------------------------------------- */

static int open_seat(struct acre_context *context, enum acre_context_isolation isolation,
                     struct acre_error *err) {
    const struct acre_compute *compute = context->compute;
    const struct backend_slot *slot = compute->backends;
    while (context->device < slot->first || context->device >= slot->first + slot->count) {
        slot++;
    }
    uint32_t index = context->device - slot->first;
    context->wakes = slot->table->wakes;
    context->is_remote = isolation == ACRE_CONTEXT_ISOLATION_AUTO
                             ? !slot->table->is_local
                             : isolation == ACRE_CONTEXT_ISOLATION_PROCESS;
    if (context->is_remote) {
        int r = remote_open(slot->table->name, index, &context->seat, err);
        if (r == 0) {
            context->table = remote_table(context->seat);
        }
        return r;
    }
    context->table = slot->table;
    return slot->table->seat_open(slot->self, index, &context->seat, err);
}

static int make_words(struct acre_context *context, struct acre_error *err) {
    struct native_region region;
    int r = context->table->region_create(context->seat, ACRE_MEMORY_MAPPED,
                                          WORDS_MAX * sizeof(uint64_t), (void *)context->words,
                                          &region, err);
    if (r == 0) {
        context->words_region = region.handle;
    }
    return r;
}

static int take_number(struct acre_context *context, struct acre_error *err) {
    struct acre_compute *compute = context->compute;
    pthread_mutex_lock(&compute->lock);
    for (uint32_t i = 1; i < CONTEXTS_MAX && context->number == 0; i++) {
        if (compute->contexts[i] == NULL && compute->generations[i] < GENERATIONS_MAX) {
            compute->contexts[i] = context;
            context->number = i;
        }
    }
    pthread_mutex_unlock(&compute->lock);
    return context->number != 0
               ? 0
               : acre_fail(err, ACRE_ELIMIT, "a runtime has at most %d contexts", CONTEXTS_MAX - 1);
}

static void forget_eventfd(void *with, int fd) {
    const struct acre_context *context = with;
    if (context->table->forget != NULL) {
        context->table->forget(context->seat, fd);
    }
}

void context_init(struct acre_context *context) {
    context->process = atomic_load(&process_number);
    process_add(context);
    pthread_rwlock_init(&context->gate, NULL);
    pthread_mutex_init(&context->lock, NULL);
    pthread_mutexattr_t recursive;
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&context->rings_lock, &recursive);
    pthread_mutexattr_destroy(&recursive);
    breaker_init(&context->breaker, context->rest_ms, context->rest_calls);
    notice_files_init(&context->notice_files, forget_eventfd, context);
    atomic_store(&context->epoch, 1);
}

void context_finish(struct acre_context *context) {
    process_take(context); /* of one that was not closed */
    while (context->destroyed != NULL) {
        struct acre_stream *stream = context->destroyed;
        context->destroyed = stream->next;
        free(stream);
    }
    notice_files_finish(&context->notice_files);
    breaker_finish(&context->breaker);
    pthread_mutex_destroy(&context->rings_lock);
    pthread_mutex_destroy(&context->lock);
    pthread_rwlock_destroy(&context->gate);
}

static int fill(struct acre_context *context, const struct acre_context_options *options,
                struct acre_error *err) {
    snprintf(context->tenant, sizeof(context->tenant), "%s",
             options->tenant != NULL ? options->tenant : "default");
    context->limit_bytes = options->memory_limit_bytes != 0 ? options->memory_limit_bytes
                                                            : context_device(context)->memory_bytes;
    context->kernel_limit_ms = options->kernel_limit_ms;
    context->debug = options->debug;
    context->rest_ms = options->rest_ms;
    context->rest_calls = options->rest_calls;
    context_init(context);
    int r = open_seat(context, options->isolation, err);
    if (r < 0) {
        return r;
    }
    context->has_seat = true;
    void *words;
    r = context_map(context, WORDS_MAX * sizeof(uint64_t), &words, err);
    if (r < 0) {
        return r;
    }
    context->words = words;
    r = make_words(context, err);
    r = r == 0 ? buffers_create(context, err) : r;
    r = r == 0 ? take_number(context, err) : r;
    return r == 0 ? keeper_start(context, err) : r;
}

static int refuse_device(const struct acre_compute *compute, uint32_t device,
                         struct acre_error *err) {
    if (compute->device_count > 0) {
        return acre_fail(err, ACRE_EINVALID, "device: %u; accepted: 0 to %u", device,
                         compute->device_count - 1);
    }
    const struct backend_slot *first = &compute->backends[0];
    return acre_fail(err, ACRE_EUNAVAILABLE, "no device: %s: %s", first->table->name,
                     first->absent[0] != '\0' ? first->absent : "it lists no devices");
}

int acre_context_open(struct acre_compute *compute, uint32_t device,
                      const struct acre_context_options *options, struct acre_context **ret_context,
                      struct acre_error *err) {
    static const struct acre_context_options defaults = {0};
    options = options != NULL ? options : &defaults;
    int r = compute_check(compute, err);
    if (r < 0) {
        return r;
    }
    if (device >= compute->device_count) {
        return refuse_device(compute, device, err);
    }
    if ((uint32_t)options->isolation > ACRE_CONTEXT_ISOLATION_NONE) {
        return acre_fail(err, ACRE_EINVALID, "unknown isolation %d; accepted: 0 to %d",
                         (int)options->isolation, ACRE_CONTEXT_ISOLATION_NONE);
    }
    struct acre_context *context = calloc(1, sizeof(*context));
    if (context == NULL) {
        return acre_fail(err, ACRE_ENOMEM, "context");
    }
    context->compute = compute;
    context->device = device;
    r = fill(context, options, err);
    if (r < 0) {
        acre_context_close(context);
        return r;
    }
    *ret_context = context;
    return 0;
}

/* --- losing --------------------------------------------------------------------------------- */

static int rebuild(struct acre_context *context, struct acre_error *err) {
    int r = remote_restart(context->seat, err);
    r = r == 0 ? make_words(context, err) : r;
    return r == 0 ? buffers_rebuild(context, err) : r;
}

/* Gate written, and given up at the end. */
static void lose(struct acre_context *context, int code, const char *why) {
    pthread_mutex_lock(&context->lock);
    snprintf(context->failure, sizeof(context->failure), "%s", why);
    context->loss = code;
    pthread_mutex_unlock(&context->lock);
    if (atomic_load(&context->failed) == 0) { /* else it was lost before, and is tried again */
        breaker_tell(&context->breaker, acre_monotonic_ns() / 1000000, false);
        streams_lose(context);
    }
    struct acre_error err = {0};
    int r = context->is_remote
                ? rebuild(context, &err)
                : acre_fail(&err, code, "only a context in a separate process can be rebuilt");
    pthread_mutex_lock(&context->lock);
    if (r == 0) {
        context->rebuilt++;
    } else {
        size_t length = strlen(context->failure);
        snprintf(context->failure + length, sizeof(context->failure) - length, "; %s", err.text);
    }
    pthread_mutex_unlock(&context->lock);
    atomic_store(&context->failed, r == 0 ? 0 : code);
    pthread_rwlock_unlock(&context->gate);
}

/* A gate lets readers pass who waits to write: many that try again and again would keep it. */
static void write_gate(struct acre_context *context) {
    atomic_fetch_add(&context->losers, 1);
    pthread_rwlock_wrlock(&context->gate);
    atomic_fetch_sub(&context->losers, 1);
    acre_futex_wake(&context->losers, ACRE_FUTEX_ALL, ACRE_FUTEX_PRIVATE);
}

void context_lose(struct acre_context *context, int code, const char *why) {
    write_gate(context);
    lose(context, code, why);
}

void context_lose_runner(struct acre_context *context) {
    struct acre_error why = {0};
    write_gate(context);
    bool has_ended = context->table->check(context->seat, &why) < 0;
    if (!has_ended && atomic_load(&context->failed) == 0) { /* someone was faster: it is anew */
        pthread_rwlock_unlock(&context->gate);
        return;
    }
    lose(context, ACRE_EUNAVAILABLE, has_ended ? why.text : "the new runner could not be set up");
}

void context_try_lose(struct acre_context *context, int code, const char *why) {
    if (pthread_rwlock_trywrlock(&context->gate) == 0) {
        lose(context, code, why);
    }
}

void acre_context_report(struct acre_context *context, struct acre_context_report *ret_report) {
    struct acre_error why;
    if (context_check(context, &why) < 0) {
        *ret_report = (struct acre_context_report){0};
        snprintf(ret_report->failure, sizeof(ret_report->failure), "%s", why.text);
        return;
    }
    struct acre_context_report report = {.is_isolated = context->is_remote};
    buffers_count(context, &report.buffers, &report.lost);
    pthread_mutex_lock(&context->lock);
    report.rebuilt = context->rebuilt;
    snprintf(report.failure, sizeof(report.failure), "%s", context->failure);
    pthread_mutex_unlock(&context->lock);
    *ret_report = report;
}

/* --- closing -------------------------------------------------------------------------------- */

static void finish(struct acre_context *context) {
    while (context->streams != NULL) {
        stream_release(context->streams);
    }
    graphs_destroy(context);
    if (context->has_seat) {
        programs_destroy(context);
        buffers_destroy(context);
        if (context->words_region != 0) {
            struct quiet quiet;
            quiet_begin(&quiet, context);
            quiet_region_destroy(&quiet, context->words_region);
            quiet_end(&quiet);
        }
        if (context->words != NULL) {
            context_unmap(context, (void *)context->words, WORDS_MAX * sizeof(uint64_t));
        }
        context->table->seat_close(context->seat);
    }
    context_finish(context);
    free(context);
}

static void *finish_late(void *argument) {
    struct acre_context *context = argument;
    struct acre_compute *compute = context->compute;
    finish(context);
    compute_unref(compute);
    return NULL;
}

static int finish_lost(struct acre_context *context) {
    atomic_fetch_add(&context->compute->users, 1);
    pthread_t thread;
    if (acre_thread_start(&thread, "acre-finish", finish_late, context) != 0) {
        return ACRE_ETIMEOUT; /* nobody is there to wait */
    }
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += CLOSE_S;
    if (pthread_timedjoin_np(thread, NULL, &until) != 0) {
        pthread_detach(thread);
        return ACRE_ETIMEOUT;
    }
    return 0;
}

/* In a child of the process that opened it: what is the child's own, as far as it is whole. Another
 * thread may have been changing the rest at the moment of the fork; that stays until the process
 * ends or becomes another program. */
static void let_go(struct acre_context *context) {
    context->compute->contexts[context->number] = NULL;
    notice_files_let_go(&context->notice_files);
    if (context->has_keeper) {
        close(context->keeper_fd);
    }
    if (context->has_seat && context->table->seat_let_go != NULL) {
        context->table->seat_let_go(context->seat);
    }
    free(context);
}

int acre_context_close(struct acre_context *context) {
    if (context == NULL) {
        return 0;
    }
    if (!process_take(context)) {
        return ACRE_EINVALID; /* closed before */
    }
    if (!process_is_ours(context->process)) {
        let_go(context);
        return 0;
    }
    rings_destroy(context);
    if (context->number != 0) {
        pthread_mutex_lock(&context->compute->lock);
        context->compute->contexts[context->number] = NULL;
        context->compute->generations[context->number] = buffers_generation(context);
        pthread_mutex_unlock(&context->compute->lock);
    }
    struct acre_stream *next;
    for (struct acre_stream *stream = context->streams; stream != NULL; stream = next) {
        next = stream->next;
        acre_stream_destroy(stream); /* the keeper ends what never would */
    }
    keeper_stop(context);
    if (context->streams != NULL) {
        return finish_lost(context);
    }
    finish(context);
    return 0;
}
