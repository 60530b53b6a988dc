/* runner_serve.c - requests, answered by the runner: one thread for each slot.
 *
 * A table has a function for each request. It gets a private copy of the request; its answer goes
 * back through the same payload. Requests that change what queued work uses wait until the queue
 * has reached the point where the request was made. All others pass it, so a compilation delays no
 * one and a query is never delayed. */
#include "compute/runner/runner.h"
#include "compute/runner/said.h"
#include "core/clock.h"
#include "core/futex.h"
#include "core/spin.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct runner_call {
    struct runner *runner;
    const struct backend *table;
    void *seat;
    const uint64_t *in;     /* numbers */
    const uint8_t *payload; /* private */
    uint32_t bytes;
    uint8_t *out; /* payload of the answer */
    struct wire_answer *answer;
};

/* --- memory and state ----------------------------------------------------------------------- */

static int serve_memory(struct runner_call *call, struct acre_error *err) {
    return call->table->memory(call->seat, &call->answer->number[0], &call->answer->number[1], err);
}

static int serve_check(struct runner_call *call, struct acre_error *err) {
    return call->table->check(call->seat, err);
}

static int map_host(struct runner *runner, uint64_t offset, uint64_t bytes, void **ret_host,
                    struct acre_error *err) {
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    struct stat facts;
    if (fstat(runner->host_fd, &facts) < 0) {
        return acre_fail_errno(err, errno, "host memory");
    }
    if (offset % page != 0 || bytes > (uint64_t)facts.st_size ||
        offset > (uint64_t)facts.st_size - bytes) {
        return acre_fail(err, ACRE_EINVALID, "region: host memory at %llu with %llu bytes",
                         (unsigned long long)offset, (unsigned long long)bytes);
    }
    void *host = wire_map(runner->host_fd, offset, bytes);
    if (host == MAP_FAILED) {
        return acre_fail_errno(err, errno, "%llu bytes of host memory", (unsigned long long)bytes);
    }
    *ret_host = host;
    return 0;
}

static int serve_region_create(struct runner_call *call, struct acre_error *err) {
    struct native_region made;
    struct runner *runner = call->runner;
    uint64_t bytes = call->in[1];
    void *host = NULL;
    struct runner_region *region = NULL;
    int r = 0;
    if (call->in[0] != ACRE_MEMORY_DEVICE) {
        region = acre_calloc(1, sizeof(*region));
        r = map_host(runner, call->in[2], bytes, &host, err);
    }
    if (r == 0) {
        r = call->table->region_create(call->seat, (enum acre_memory)call->in[0], bytes, host,
                                       &made, err);
    }
    if (r < 0) {
        if (host != NULL) {
            munmap(host, bytes);
        }
        free(region);
        return r;
    }
    if (region != NULL) {
        *region = (struct runner_region){.handle = made.handle, .host = host, .bytes = bytes};
        pthread_mutex_lock(&runner->lock);
        region->next = runner->regions;
        runner->regions = region;
        pthread_mutex_unlock(&runner->lock);
    }
    call->answer->number[0] = made.handle;
    call->answer->number[1] = made.address;
    return 0;
}

/* Out of the list first: once destroyed, its handle may be that of a new one. */
static int serve_region_destroy(struct runner_call *call, struct acre_error *err) {
    (void)err;
    struct runner *runner = call->runner;
    pthread_mutex_lock(&runner->lock);
    struct runner_region **link = &runner->regions;
    while (*link != NULL && (*link)->handle != call->in[0]) {
        link = &(*link)->next;
    }
    struct runner_region *region = *link;
    if (region != NULL) {
        *link = region->next;
    }
    pthread_mutex_unlock(&runner->lock);
    call->table->region_destroy(call->seat, call->in[0]);
    if (region != NULL) {
        munmap(region->host, region->bytes);
        free(region);
    }
    return 0;
}

static int serve_export(struct runner_call *call, struct acre_error *err) {
    if (call->table->region_export == NULL) {
        return acre_fail(err, ACRE_EUNSUPPORTED,
                         "this back end cannot share memory between processes");
    }
    call->answer->payload_bytes = 64;
    return call->table->region_export(call->seat, call->in[0], call->out, err);
}

static int serve_import(struct runner_call *call, struct acre_error *err) {
    if (call->table->region_import == NULL) {
        return acre_fail(err, ACRE_EUNSUPPORTED,
                         "this back end cannot share memory between processes");
    }
    struct native_region region;
    int r = call->table->region_import(call->seat, call->payload, &region, err);
    if (r == 0) {
        call->answer->number[0] = region.handle;
        call->answer->number[1] = region.address;
    }
    return r;
}

/* --- streams -------------------------------------------------------------------------------- */

static const _Atomic uint64_t *find_word(struct runner *runner, uint64_t handle, uint64_t offset) {
    const _Atomic uint64_t *word = NULL;
    pthread_mutex_lock(&runner->lock);
    for (struct runner_region *region = runner->regions; region != NULL; region = region->next) {
        if (region->handle == handle && offset % sizeof(*word) == 0 && offset < region->bytes) {
            word = (const void *)(region->host + offset);
        }
    }
    pthread_mutex_unlock(&runner->lock);
    return word;
}

static int serve_stream_create(struct runner_call *call, struct acre_error *err) {
    struct runner *runner = call->runner;
    const _Atomic uint64_t *word = find_word(runner, call->in[0], call->in[1]);
    if (word == NULL) {
        return acre_fail(err, ACRE_EINVALID, "stream: its counter is not in host memory");
    }
    uint64_t handle;
    int r = call->table->stream_create(call->seat, call->in[0], call->in[1], &handle, err);
    if (r < 0) {
        return r;
    }
    uint32_t index = 0;
    pthread_mutex_lock(&runner->lock);
    while (index < WIRE_STREAMS_MAX && atomic_load(&runner->streams[index].exists)) {
        index++;
    }
    if (index < WIRE_STREAMS_MAX) {
        struct runner_stream *stream = &runner->streams[index];
        stream->handle = handle;
        stream->word = word;
        stream->signaled = 0;
        stream->is_silent = stream->has_failed = false;
        atomic_store(&runner->shared->failures[index].state, WIRE_FAILURE_NONE);
        atomic_store_explicit(&stream->exists, true, memory_order_release);
        runner->stream_end = ACRE_MAX(runner->stream_end, index + 1);
    }
    pthread_mutex_unlock(&runner->lock);
    if (index == WIRE_STREAMS_MAX) {
        call->table->stream_destroy(call->seat, handle);
        return acre_fail(err, ACRE_ELIMIT, "a runner has at most %d streams", WIRE_STREAMS_MAX);
    }
    call->answer->number[0] = index;
    return 0;
}

static int find_stream(const struct runner_call *call, uint64_t *ret_handle,
                       struct acre_error *err) {
    const struct runner_stream *stream = &call->runner->streams[call->in[0]];
    if (!atomic_load_explicit(&stream->exists, memory_order_acquire)) {
        return acre_fail(err, ACRE_ENOTFOUND, "stream: already destroyed");
    }
    *ret_handle = stream->handle;
    return 0;
}

/* The number is free for another when the back end's stream is gone. */
static int serve_stream_destroy(struct runner_call *call, struct acre_error *err) {
    uint64_t handle = 0;
    int r = find_stream(call, &handle, err);
    if (r < 0) {
        return r;
    }
    call->table->stream_destroy(call->seat, handle);
    pthread_mutex_lock(&call->runner->lock);
    atomic_store(&call->runner->streams[call->in[0]].exists, false);
    pthread_mutex_unlock(&call->runner->lock);
    return 0;
}

static int serve_stream_own(struct runner_call *call, struct acre_error *err) {
    uint64_t handle = 0;
    int r = find_stream(call, &handle, err);
    return r < 0 || call->table->stream_own == NULL
               ? r
               : call->table->stream_own(call->seat, handle, err);
}

static int serve_profile(struct runner_call *call, struct acre_error *err) {
    uint64_t handle = 0;
    if (call->table->profile == NULL) {
        return acre_fail(err, ACRE_EUNSUPPORTED, "this back end cannot measure times");
    }
    int r = find_stream(call, &handle, err);
    return r < 0 ? r : call->table->profile(call->seat, handle, call->in[1] != 0, err);
}

static int serve_timings(struct runner_call *call, struct acre_error *err) {
    uint64_t handle = 0;
    if (call->table->timings == NULL) {
        return acre_fail(err, ACRE_EUNSUPPORTED, "this back end cannot measure times");
    }
    int r = find_stream(call, &handle, err);
    uint32_t count = 0;
    if (r == 0) {
        r = call->table->timings(call->seat, handle, (void *)call->out, (uint32_t)call->in[1],
                                 &count, err);
    }
    if (r == 0) {
        call->answer->number[0] = count;
        call->answer->payload_bytes = count * (uint32_t)sizeof(struct acre_timing);
    }
    return r;
}
_Static_assert(WIRE_TIMINGS_MAX <= WIRE_PAYLOAD_MAX / sizeof(struct acre_timing), "they fit");

/* --- programs and graphs -------------------------------------------------------------------- */

static const char *next_text(const char *text) {
    return text + strlen(text) + 1;
}

static int compile(struct runner_call *call, const struct native_source *source,
                   struct acre_buf *binary, struct acre_buf *log, struct acre_error *err) {
    if (call->table->language != ACRE_LANGUAGE_OPENCL) {
        return call->table->compile(call->seat, source, binary, log, err);
    }
    pthread_mutex_lock(&call->runner->said_lock);
    struct said said = said_begin();
    int r = call->table->compile(call->seat, source, binary, log, err);
    said_end(said, log);
    pthread_mutex_unlock(&call->runner->said_lock);
    return r;
}

static int serve_compile(struct runner_call *call, struct acre_error *err) {
    if (call->table->compile == NULL) {
        return acre_fail(err, ACRE_EUNSUPPORTED, "this back end cannot compile source");
    }
    uint32_t count = (uint32_t)call->in[0];
    const char **kernels = acre_calloc(ACRE_MAX(count, 1U), sizeof(*kernels));
    const char *text = (const char *)call->payload;
    const char *options = next_text(text);
    const char *name = next_text(options);
    for (uint32_t i = 0; i < count; i++) {
        kernels[i] = name;
        name = next_text(name);
    }
    struct native_source source = {.text = text,
                                   .length = strlen(text),
                                   .options = options,
                                   .kernels = kernels,
                                   .kernel_count = count};
    struct acre_buf binary, log;
    acre_buf_init(&binary, WIRE_PAYLOAD_MAX - WIRE_LOG_MAX);
    acre_buf_init(&log, WIRE_LOG_MAX);
    int r = compile(call, &source, &binary, &log, err);
    if (r == 0 && acre_buf_failed(&binary)) {
        r = acre_fail(err, ACRE_ELIMIT, "compiled code of more than %d bytes",
                      WIRE_PAYLOAD_MAX - WIRE_LOG_MAX);
    }
    size_t binary_bytes = r == 0 ? binary.length : 0;
    if (binary_bytes > 0) {
        memcpy(call->out, binary.data, binary_bytes);
    }
    if (log.length > 0) { /* compiled or not */
        memcpy(call->out + binary_bytes, log.data, log.length);
    }
    call->answer->number[0] = binary_bytes;
    call->answer->number[1] = log.length;
    call->answer->payload_bytes = (uint32_t)(binary_bytes + log.length);
    acre_buf_finish(&binary);
    acre_buf_finish(&log);
    free(kernels);
    return r;
}

static int serve_load(struct runner_call *call, struct acre_error *err) {
    return call->table->load(call->seat, call->payload, call->bytes, &call->answer->number[0], err);
}

static int serve_unload(struct runner_call *call, struct acre_error *err) {
    (void)err;
    call->table->unload(call->seat, call->in[0]);
    return 0;
}

static int serve_kernel(struct runner_call *call, struct acre_error *err) {
    struct kernel_facts facts = {0};
    int r = call->table->kernel(call->seat, call->in[0], (const char *)call->payload,
                                &call->answer->number[0], &facts, err);
    memcpy(call->out, &facts, sizeof(facts));
    call->answer->payload_bytes = sizeof(facts);
    return r;
}

static int serve_graph_create(struct runner_call *call, struct acre_error *err) {
    if (call->table->graph_create == NULL) {
        return acre_fail(err, ACRE_EUNSUPPORTED, "this back end does not support graphs");
    }
    uint32_t count = (uint32_t)call->in[0];
    struct native_node *nodes;
    int r = wire_get_nodes(call->payload, call->bytes, count, &nodes, err);
    if (r < 0) {
        return r;
    }
    r = call->table->graph_create(call->seat, nodes, count, &call->answer->number[0], err);
    free(nodes);
    return r;
}

static int serve_graph_update(struct runner_call *call, struct acre_error *err) {
    if (call->table->graph_update == NULL) {
        return acre_fail(err, ACRE_EUNSUPPORTED, "this back end does not support graphs");
    }
    struct native_launch launch;
    int r = wire_check_message((const void *)call->payload, &launch, err);
    return r < 0 ? r
                 : call->table->graph_update(call->seat, call->in[0], (uint32_t)call->in[1],
                                             &launch, err);
}

static int serve_graph_destroy(struct runner_call *call, struct acre_error *err) {
    if (call->table->graph_destroy == NULL) {
        return acre_fail(err, ACRE_EUNSUPPORTED, "this back end does not support graphs");
    }
    call->table->graph_destroy(call->seat, call->in[0]);
    return 0;
}

static int serve_transfer(struct runner_call *call, struct acre_error *err) {
    if (call->table->transfer == NULL) {
        return acre_fail(err, ACRE_EUNSUPPORTED,
                         "this back end has no direct path from files to the device");
    }
    char how[96] = {0};
    int r = call->table->transfer(call->seat, (const char *)call->payload, call->in[0], call->in[1],
                                  call->in[2], call->in[3], call->in[4] != 0, how, err);
    memcpy(call->out, how, sizeof(how));
    call->answer->payload_bytes = sizeof(how);
    return r;
}

/* --- the table ------------------------------------------------------------------------------ */

typedef int serve_function(struct runner_call *call, struct acre_error *err);

static serve_function *const functions[WIRE_REQUEST_OPS] = {
    [WIRE_REQUEST_MEMORY] = serve_memory,
    [WIRE_REQUEST_CHECK] = serve_check,
    [WIRE_REQUEST_REGION_CREATE] = serve_region_create,
    [WIRE_REQUEST_REGION_DESTROY] = serve_region_destroy,
    [WIRE_REQUEST_STREAM_CREATE] = serve_stream_create,
    [WIRE_REQUEST_STREAM_DESTROY] = serve_stream_destroy,
    [WIRE_REQUEST_STREAM_OWN] = serve_stream_own,
    [WIRE_REQUEST_COMPILE] = serve_compile,
    [WIRE_REQUEST_LOAD] = serve_load,
    [WIRE_REQUEST_UNLOAD] = serve_unload,
    [WIRE_REQUEST_KERNEL] = serve_kernel,
    [WIRE_REQUEST_GRAPH_CREATE] = serve_graph_create,
    [WIRE_REQUEST_GRAPH_UPDATE] = serve_graph_update,
    [WIRE_REQUEST_GRAPH_DESTROY] = serve_graph_destroy,
    [WIRE_REQUEST_PROFILE] = serve_profile,
    [WIRE_REQUEST_TIMINGS] = serve_timings,
    [WIRE_REQUEST_TRANSFER] = serve_transfer,
    [WIRE_REQUEST_EXPORT] = serve_export,
    [WIRE_REQUEST_IMPORT] = serve_import,
};

static const bool goes_after[WIRE_REQUEST_OPS] = {
#define X(name, after) [WIRE_REQUEST_##name] = (after),
    WIRE_REQUESTS(X)
#undef X
};

static int serve(struct runner *runner, const struct wire_request *request, const uint8_t *payload,
                 uint8_t *out, struct wire_answer *answer, struct acre_error *err) {
    int r = wire_check_request(request, payload, err);
    if (r < 0) {
        return r;
    }
    atomic_load_explicit(&runner->answered, memory_order_acquire);
    atomic_load_explicit(&runner->shared->tail, memory_order_acquire);
    if (goes_after[request->op]) {
        if (request->after > atomic_load(&runner->shared->head)) {
            return acre_fail(err, ACRE_EINVALID, "request: waits for work that was never queued");
        }
        runner_queue_reach(runner, request->after);
    }
    struct runner_call call = {.runner = runner,
                               .table = runner->table,
                               .seat = runner->seat,
                               .in = request->number,
                               .payload = payload,
                               .bytes = request->payload_bytes,
                               .out = out,
                               .answer = answer};
    return functions[request->op](&call, err);
}

void runner_serve(struct runner *runner, const struct wire_request *request, uint8_t *payload,
                  struct wire_answer *ret_answer) {
    struct wire_answer answer = {0};
    struct acre_error *err = &answer.error;
    uint8_t *copy = NULL;
    int r = 0;
    if (request->payload_bytes > WIRE_PAYLOAD_MAX) {
        r = acre_fail(err, ACRE_EINVALID, "request: %u bytes", request->payload_bytes);
    } else {
        copy = malloc(ACRE_MAX(request->payload_bytes, 1U));
        r = copy != NULL ? 0
                         : acre_fail(err, ACRE_ENOMEM, "request: %u bytes", request->payload_bytes);
    }
    if (r == 0) {
        if (request->payload_bytes > 0) {
            memcpy(copy, payload, request->payload_bytes);
        }
        r = serve(runner, request, copy, payload, &answer, err);
    }
    free(copy);
    if (r < 0) {
        err->code = r;
        runner_look(runner);
    } else {
        err->code = 0;
    }
    *ret_answer = answer;
}

static void await_request(struct runner *runner, struct wire_slot *slot) {
    struct acre_spin spin = {0};
    uint64_t spin_ns = ACRE_MIN(runner->spin_max_ns, (uint64_t)ACRE_SPIN_ANSWER_NS);
    while (atomic_load(&slot->state) != WIRE_SLOT_ASKED && !atomic_load(&runner->stops)) {
        if (acre_spin(&spin, spin_ns)) {
            continue;
        }
        atomic_store(&slot->runner_sleeps, 1); /* pairs with ask, remote_call.c */
        uint32_t state = atomic_load(&slot->state);
        if (state != WIRE_SLOT_ASKED && !atomic_load(&runner->stops)) {
            acre_futex_wait(&slot->state, state, ACRE_FUTEX_NO_LIMIT, ACRE_FUTEX_SHARED);
        }
        atomic_store(&slot->runner_sleeps, 0);
    }
}

void *runner_slot_main(void *argument) {
    struct runner_slot at = *(struct runner_slot *)argument;
    free(argument);
    struct runner *runner = at.runner;
    struct wire_slot *slot = &runner->shared->slots[at.index];
    for (;;) {
        await_request(runner, slot);
        if (atomic_load(&runner->stops)) {
            return NULL;
        }
        struct wire_request request = slot->request;
        runner_serve(runner, &request, runner->shared->payload[at.index], &slot->answer);
        atomic_fetch_add_explicit(&runner->answered, 1, memory_order_release);
        atomic_store(&slot->state, WIRE_SLOT_ANSWERED); /* pairs with await_answer */
        if (atomic_load(&slot->caller_sleeps) != 0) {
            uint64_t one = 1;
            ssize_t written = write(runner->answer_fds[at.index], &one, sizeof(one));
            (void)written; /* it counts to 2^64: never full */
        }
    }
}
