/* remote_call.c - the table of a seat in a runner: calls that wait for an answer.
 *
 * A call takes a slot, writes numbers and bytes, and waits: it polls for a moment, then sleeps on
 * the slot's eventfd and the runner's pidfd. No other call uses the slot meanwhile. If the runner
 * dies, all calls return with the reason. */
#include "compute/runner/remote_call.h"
#include "core/futex.h"
#include "core/spin.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    ALL_SLOTS = (1 << WIRE_SLOTS) - 1,
    PAYLOAD_KEPT = 1 << 16, /* of the payload's pages: more is given back after a call */
};

struct remote_call {
    struct remote *remote;
    uint32_t index;
    struct wire_slot *slot;
    uint8_t *payload;
    struct wire_request request;
    struct wire_answer answer; /* a copy, checked */
};

int remote_code(int code) {
    return code < 0 && strcmp(acre_error_name(code), "UNKNOWN") != 0 ? code : ACRE_EINTERNAL;
}

/* --- a call --------------------------------------------------------------------------------- */

/* The number of a slot that is the caller's now. */
static uint32_t take_slot(struct remote *remote) {
    pthread_mutex_lock(&remote->slot_lock);
    while (remote->slots_taken == ALL_SLOTS) {
        pthread_cond_wait(&remote->slot_freed, &remote->slot_lock);
    }
    uint32_t index = (uint32_t)__builtin_ctz(~remote->slots_taken);
    remote->slots_taken |= 1U << index;
    pthread_mutex_unlock(&remote->slot_lock);
    return index;
}

static void give_slot(struct remote *remote, uint32_t index) {
    pthread_mutex_lock(&remote->slot_lock);
    remote->slots_taken &= ~(1U << index);
    pthread_cond_broadcast(&remote->slot_freed);
    pthread_mutex_unlock(&remote->slot_lock);
}

void remote_drain(struct remote *remote) {
    pthread_mutex_lock(&remote->slot_lock);
    while (remote->slots_taken != 0) {
        pthread_cond_wait(&remote->slot_freed, &remote->slot_lock);
    }
    pthread_mutex_unlock(&remote->slot_lock);
}

/* Takes a slot, if the runner is there and the payload fits. */
static int begin(struct remote *remote, uint32_t op, size_t payload_bytes,
                 struct remote_call *ret_call, struct acre_error *err) {
    if (payload_bytes > WIRE_PAYLOAD_MAX) {
        return acre_fail(err, ACRE_ELIMIT,
                         "a request of %zu bytes to the runner; accepted: at most %d",
                         payload_bytes, WIRE_PAYLOAD_MAX);
    }
    if (atomic_load(&remote->ended)) {
        return remote_refuse(remote, err);
    }
    uint32_t index = take_slot(remote);
    if (atomic_load(&remote->ended)) { /* meanwhile: remote_drain may be over */
        give_slot(remote, index);
        return remote_refuse(remote, err);
    }
    *ret_call =
        (struct remote_call){.remote = remote,
                             .index = index,
                             .slot = &remote->shared->slots[index],
                             .payload = remote->shared->payload[index],
                             .request = {.op = op, .payload_bytes = (uint32_t)payload_bytes}};
    return 0;
}

_Static_assert(offsetof(struct wire_shared, payload) % WIRE_PAGE == 0 &&
                   WIRE_PAYLOAD_MAX % WIRE_PAGE == 0,
               "madvise takes whole pages");

static void finish(const struct remote_call *call) {
    struct remote *remote = call->remote;
    uint32_t used = ACRE_MAX(call->request.payload_bytes, call->answer.payload_bytes);
    if (used > PAYLOAD_KEPT) {
        madvise(call->payload, WIRE_PAYLOAD_MAX, MADV_REMOVE);
    }
    give_slot(remote, call->index);
}

static int await_answer(struct remote_call *call, struct acre_error *err) {
    struct wire_slot *slot = call->slot;
    struct acre_spin spin = {0};
    while (atomic_load(&slot->state) != WIRE_SLOT_ANSWERED) {
        if (acre_spin(&spin, ACRE_SPIN_ANSWER_NS)) {
            continue;
        }
        atomic_store(&slot->caller_sleeps, 1); /* pairs with runner_slot_main */
        if (atomic_load(&slot->state) != WIRE_SLOT_ANSWERED) {
            int r = remote_look(call->remote, err);
            if (r < 0) {
                return r;
            }
            remote_sleep(call->remote, call->remote->answer_fds[call->index]);
        }
        atomic_store(&slot->caller_sleeps, 0);
    }
    return 0;
}

/* Send the request, wait, and check the answer's form. The slot stays the call's. */
static int ask(struct remote_call *call, struct acre_error *err) {
    struct wire_slot *slot = call->slot;
    struct wire_shared *shared = call->remote->shared;
    call->request.after = atomic_load(&shared->head);
    slot->request = call->request;
    atomic_store(&slot->state, WIRE_SLOT_ASKED); /* pairs with await_request, runner_serve.c */
    if (atomic_load(&slot->runner_sleeps) != 0) {
        acre_futex_wake(&slot->state, 1, ACRE_FUTEX_SHARED);
    }
    int r = await_answer(call, err);
    if (r < 0) {
        return r;
    }
    call->answer = slot->answer;
    atomic_store(&slot->state, WIRE_SLOT_FREE);
    call->answer.error.text[sizeof(call->answer.error.text) - 1] = '\0';
    if (call->answer.payload_bytes > WIRE_PAYLOAD_MAX) {
        call->answer.payload_bytes = 0;
        return acre_fail(err, ACRE_EINTERNAL, "the runner's answer is damaged");
    }
    if (call->answer.error.code != 0) {
        return acre_fail(err, remote_code(call->answer.error.code), "%s", call->answer.error.text);
    }
    return 0;
}

/* A call with numbers alone; the answer's numbers in `ret_number` (NULL: none are). */
static int ask_numbers(struct remote *remote, uint32_t op, const uint64_t *number, uint32_t count,
                       uint64_t *ret_number, struct acre_error *err) {
    struct remote_call call;
    int r = begin(remote, op, 0, &call, err);
    if (r < 0) {
        return r;
    }
    memcpy(call.request.number, number, count * sizeof(*number));
    r = ask(&call, err);
    if (r == 0 && ret_number != NULL) {
        memcpy(ret_number, call.answer.number, sizeof(call.answer.number));
    }
    finish(&call);
    return r;
}

static void tell(void *seat, uint32_t op, uint64_t number) {
    ask_numbers(seat, op, &number, 1, NULL, NULL);
}

/* --- memory and streams --------------------------------------------------------------------- */

/* With all slots taken, maybe behind work that never ends, it does not wait for one: the runner
 * looks by itself, and ends when nothing works. */
int remote_check(void *seat, struct acre_error *err) {
    struct remote *remote = seat;
    uint64_t none = 0;
    int r = remote_look(remote, err);
    pthread_mutex_lock(&remote->slot_lock);
    bool is_busy = remote->slots_taken == ALL_SLOTS;
    pthread_mutex_unlock(&remote->slot_lock);
    return r < 0 || is_busy ? r : ask_numbers(remote, WIRE_REQUEST_CHECK, &none, 0, NULL, err);
}

int remote_memory(void *seat, uint64_t *ret_free, uint64_t *ret_total, struct acre_error *err) {
    uint64_t number[WIRE_NUMBERS] = {0};
    int r = ask_numbers(seat, WIRE_REQUEST_MEMORY, number, 0, number, err);
    if (r == 0) {
        *ret_free = number[0];
        *ret_total = number[1];
    }
    return r;
}

int remote_region_create(void *seat, enum acre_memory kind, uint64_t bytes, void *host,
                         struct native_region *ret_region, struct acre_error *err) {
    uint64_t number[WIRE_NUMBERS] = {kind, bytes};
    int r = kind == ACRE_MEMORY_DEVICE ? 0 : remote_find(seat, host, bytes, &number[2], err);
    r = r < 0 ? r : ask_numbers(seat, WIRE_REQUEST_REGION_CREATE, number, 3, number, err);
    if (r == 0) {
        *ret_region = (struct native_region){.handle = number[0], .address = number[1]};
    }
    return r;
}

void remote_region_destroy(void *seat, uint64_t region) {
    tell(seat, WIRE_REQUEST_REGION_DESTROY, region);
}

int remote_stream_create(void *seat, uint64_t word_region, uint64_t word_offset,
                         uint64_t *ret_stream, struct acre_error *err) {
    uint64_t number[WIRE_NUMBERS] = {word_region, word_offset};
    int r = ask_numbers(seat, WIRE_REQUEST_STREAM_CREATE, number, 2, number, err);
    if (r == 0 && number[0] >= WIRE_STREAMS_MAX) {
        r = acre_fail(err, ACRE_EINTERNAL, "the runner's answer is damaged");
    }
    if (r == 0) {
        *ret_stream = number[0] + 1;
    }
    return r;
}

void remote_stream_destroy(void *seat, uint64_t stream) {
    tell(seat, WIRE_REQUEST_STREAM_DESTROY, remote_stream(stream));
}

int remote_stream_own(void *seat, uint64_t stream, struct acre_error *err) {
    uint64_t number[WIRE_NUMBERS] = {remote_stream(stream)};
    return ask_numbers(seat, WIRE_REQUEST_STREAM_OWN, number, 1, number, err);
}

int remote_region_export(void *seat, uint64_t region, uint8_t ret_ticket[64],
                         struct acre_error *err) {
    struct remote_call call;
    int r = begin(seat, WIRE_REQUEST_EXPORT, 0, &call, err);
    if (r < 0) {
        return r;
    }
    call.request.number[0] = region;
    r = ask(&call, err);
    if (r == 0) {
        memcpy(ret_ticket, call.payload, 64);
    }
    finish(&call);
    return r;
}

int remote_region_import(void *seat, const uint8_t ticket[64], struct native_region *ret_region,
                         struct acre_error *err) {
    struct remote_call call;
    int r = begin(seat, WIRE_REQUEST_IMPORT, 64, &call, err);
    if (r < 0) {
        return r;
    }
    memcpy(call.payload, ticket, 64);
    r = ask(&call, err);
    if (r == 0) {
        *ret_region = (struct native_region){.handle = call.answer.number[0],
                                             .address = call.answer.number[1]};
    }
    finish(&call);
    return r;
}

int remote_profile(void *seat, uint64_t stream, bool on, struct acre_error *err) {
    const uint64_t number[] = {remote_stream(stream), on};
    return ask_numbers(seat, WIRE_REQUEST_PROFILE, number, 2, NULL, err);
}

int remote_timings(void *seat, uint64_t stream, struct acre_timing *ret_timings, uint32_t max,
                   uint32_t *ret_count, struct acre_error *err) {
    struct remote_call call;
    int r = begin(seat, WIRE_REQUEST_TIMINGS, 0, &call, err);
    if (r < 0) {
        return r;
    }
    max = ACRE_MIN(max, (uint32_t)WIRE_TIMINGS_MAX);
    call.request.number[0] = remote_stream(stream);
    call.request.number[1] = max;
    r = ask(&call, err);
    if (r == 0) {
        uint32_t count = (uint32_t)ACRE_MIN(call.answer.number[0], (uint64_t)max);
        memcpy(ret_timings, call.payload, count * sizeof(*ret_timings));
        for (uint32_t i = 0; i < count; i++) {
            ret_timings[i].name[sizeof(ret_timings[i].name) - 1] = '\0';
        }
        *ret_count = count;
    }
    finish(&call);
    return r;
}

/* --- programs and graphs -------------------------------------------------------------------- */

static uint8_t *put(uint8_t *to, const void *bytes, size_t length) {
    if (length > 0) {
        memcpy(to, bytes, length);
    }
    to[length] = '\0';
    return to + length + 1;
}

/* The binary, and the log, which comes compiled or not. */
static int take_compiled(const struct remote_call *call, bool is_compiled, struct acre_buf *binary,
                         struct acre_buf *log, struct acre_error *err) {
    uint64_t binary_bytes = call->answer.number[0];
    uint64_t log_bytes = call->answer.number[1];
    uint64_t bytes = call->answer.payload_bytes;
    if (binary_bytes > bytes || log_bytes > bytes - binary_bytes) {
        return acre_fail(err, ACRE_EINTERNAL, "the runner's answer is damaged");
    }
    int r = is_compiled ? acre_buf_append(binary, call->payload, binary_bytes) : 0;
    if (r == 0 && acre_buf_append(log, call->payload + binary_bytes, log_bytes) < 0) {
        acre_buf_append(log, call->payload + binary_bytes,
                        ACRE_MIN(log_bytes, log->max - log->length)); /* as much as there is room */
    }
    return r == 0
               ? 0
               : acre_fail(err, r, "compiled code of %llu bytes", (unsigned long long)binary_bytes);
}

int remote_compile(void *seat, const struct native_source *source, struct acre_buf *binary,
                   struct acre_buf *log, struct acre_error *err) {
    struct remote_call call;
    size_t bytes = source->length + 1 + strlen(source->options) + 1;
    for (uint32_t i = 0; i < source->kernel_count; i++) {
        bytes += strlen(source->kernels[i]) + 1;
    }
    int r = begin(seat, WIRE_REQUEST_COMPILE, bytes, &call, err);
    if (r < 0) {
        return r;
    }
    uint8_t *to = put(call.payload, source->text, source->length);
    to = put(to, source->options, strlen(source->options));
    for (uint32_t i = 0; i < source->kernel_count; i++) {
        to = put(to, source->kernels[i], strlen(source->kernels[i]));
    }
    call.request.number[0] = source->kernel_count;
    r = ask(&call, err);
    int taken = take_compiled(&call, r == 0, binary, log, r == 0 ? err : NULL);
    finish(&call);
    return r < 0 ? r : taken;
}

int remote_load(void *seat, const void *binary, size_t length, uint64_t *ret_module,
                struct acre_error *err) {
    struct remote_call call;
    int r = begin(seat, WIRE_REQUEST_LOAD, length, &call, err);
    if (r < 0) {
        return r;
    }
    if (length > 0) {
        memcpy(call.payload, binary, length);
    }
    r = ask(&call, err);
    if (r == 0) {
        *ret_module = call.answer.number[0];
    }
    finish(&call);
    return r;
}

void remote_unload(void *seat, uint64_t module) {
    tell(seat, WIRE_REQUEST_UNLOAD, module);
}

int remote_kernel(void *seat, uint64_t module, const char *name, uint64_t *ret_kernel,
                  struct kernel_facts *ret_facts, struct acre_error *err) {
    struct remote_call call;
    size_t length = strlen(name);
    if (length >= WIRE_NAME_MAX) {
        return acre_fail(err, ACRE_ENOTFOUND, "a kernel's name of %zu bytes", length);
    }
    int r = begin(seat, WIRE_REQUEST_KERNEL, length + 1, &call, err);
    if (r < 0) {
        return r;
    }
    put(call.payload, name, length);
    call.request.number[0] = module;
    r = ask(&call, err);
    if (r == 0) {
        *ret_kernel = call.answer.number[0];
        memcpy(ret_facts, call.payload, sizeof(*ret_facts));
    }
    finish(&call);
    return r;
}

int remote_graph_create(void *seat, const struct native_node *nodes, uint32_t count,
                        uint64_t *ret_graph, struct acre_error *err) {
    struct remote_call call;
    if (count == 0 || count > WIRE_NODES_MAX) {
        return acre_fail(err, ACRE_ELIMIT, "a graph of %u nodes; accepted: 1 to %d", count,
                         WIRE_NODES_MAX);
    }
    int r = begin(seat, WIRE_REQUEST_GRAPH_CREATE, wire_nodes_bytes(nodes, count), &call, err);
    if (r < 0) {
        return r;
    }
    wire_put_nodes(call.payload, nodes, count);
    call.request.number[0] = count;
    r = ask(&call, err);
    if (r == 0) {
        *ret_graph = call.answer.number[0];
    }
    finish(&call);
    return r;
}

int remote_graph_update(void *seat, uint64_t graph, uint32_t node,
                        const struct native_launch *launch, struct acre_error *err) {
    struct remote_call call;
    ACRE_ASSERT(launch->arg_count <= ACRE_ARGS_MAX && launch->extra_bytes <= ACRE_EXTRA_MAX);
    int r = begin(seat, WIRE_REQUEST_GRAPH_UPDATE, wire_launch_bytes(launch), &call, err);
    if (r < 0) {
        return r;
    }
    wire_put_launch((void *)call.payload, 0, launch);
    call.request.number[0] = graph;
    call.request.number[1] = node;
    r = ask(&call, err);
    finish(&call);
    return r;
}

void remote_graph_destroy(void *seat, uint64_t graph) {
    tell(seat, WIRE_REQUEST_GRAPH_DESTROY, graph);
}

/* --- files ---------------------------------------------------------------------------------- */

/* The runner has a working directory of its own. */
static int whole_path(const char *file, char path[PATH_MAX], struct acre_error *err) {
    char directory[PATH_MAX] = "";
    if (file[0] != '/' && getcwd(directory, sizeof(directory)) == NULL) {
        return acre_fail_errno(err, errno, "working directory");
    }
    int length = snprintf(path, PATH_MAX, "%s%s%s", directory, file[0] != '/' ? "/" : "", file);
    return length < PATH_MAX ? 0 : acre_fail_errno(err, ENAMETOOLONG, "%s", file);
}

int remote_transfer(void *seat, const char *file, uint64_t file_offset, uint64_t region,
                    uint64_t region_offset, uint64_t bytes, bool is_write, char *how,
                    struct acre_error *err) {
    struct remote_call call;
    char path[PATH_MAX];
    int r = whole_path(file, path, err);
    r = r < 0 ? r : begin(seat, WIRE_REQUEST_TRANSFER, strlen(path) + 1, &call, err);
    if (r < 0) {
        return r;
    }
    const uint64_t number[WIRE_NUMBERS] = {file_offset, region, region_offset, bytes, is_write};
    put(call.payload, path, strlen(path));
    memcpy(call.request.number, number, sizeof(number));
    r = ask(&call, err);
    if (r == 0) {
        snprintf(how, 96, "%.95s", (const char *)call.payload);
    }
    finish(&call);
    return r;
}
