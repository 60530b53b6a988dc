/* wire.h - what a seat (remote.c) and its runner (runner.c) send each other.
 *
 * It is all in one block of shared memory. Queued work goes into `queue`: each wire_message and its
 * data in one piece; WIRE_PAD fills the space left at the end. `head` is where the next is written,
 * `tail` where the next is read; both only grow. Everything else is a request in one of a few
 * slots, each served by its own thread, with up to WIRE_PAYLOAD_MAX bytes of payload. Descriptors
 * travel over a socket (wire_note).
 *
 * A reader takes a copy first and trusts nothing in it: the functions here check all lengths and
 * counts. Any thread. */
#ifndef ACRE_COMPUTE_RUNNER_WIRE_H
#define ACRE_COMPUTE_RUNNER_WIRE_H

#include "compute/native.h"
#include "core/error.h"

#include <stdatomic.h>

#define WIRE_MAGIC UINT64_C(0x0003524e52455243) /* its upper half changes with this file */

enum {
    WIRE_ALIGN = 16,
    WIRE_MESSAGE_MAX = 8192,    /* a launch with all it may have is 6208 */
    WIRE_QUEUE_BYTES = 1 << 18, /* some 1500 small launches: more than drivers take at once */
    WIRE_SLOTS = 4,             /* slow calls (compile, transfer) at a time, before others wait */
    WIRE_STREAMS_MAX = 4096,
    WIRE_NUMBERS = 5,
    WIRE_PAYLOAD_MAX = 1 << 28,
    WIRE_LOG_MAX = 1 << 20, /* of what a compiler says */
    WIRE_NODES_MAX = 1 << 16,
    WIRE_TIMINGS_MAX = 1 << 20,
    WIRE_NAME_MAX = 4096, /* of a kernel, of a file */
    WIRE_SOCKET_FD = 3,   /* the runner's only descriptor */
    WIRE_FDS = 3 + WIRE_SLOTS,
};

/* --- queued work ---------------------------------------------------------------------------- */

enum wire_op {
    WIRE_PAD, /* nothing, to the end of the queue */
    WIRE_COPY,
    WIRE_FILL,
    WIRE_LAUNCH,
    WIRE_SIGNAL,
    WIRE_WAIT,
    WIRE_NOTIFY,
    WIRE_GRAPH_LAUNCH,
    WIRE_FORGET, /* an eventfd; of no stream */
    WIRE_OPS
};

struct wire_launch { /* behind it: arguments, values */
    uint64_t kernel;
    struct acre_grid grid;
    uint32_t arg_count, extra_bytes;
};

struct wire_message {
    uint32_t bytes; /* with all that follows; a multiple of WIRE_ALIGN */
    uint32_t op;
    uint32_t stream, unused;
    union {
        uint64_t number[3]; /* SIGNAL: value; NOTIFY, FORGET: eventfd; GRAPH_LAUNCH: graph;
                               WAIT: region, offset, value */
        struct native_copy copy;
        struct native_fill fill;
        struct {
            struct wire_launch launch;
            uint64_t room; /* so that arguments and values start at multiples of 16 */
        };
    };
};
_Static_assert(sizeof(struct wire_message) == 64, "a cache line");
_Static_assert(sizeof(struct native_arg) == 32, "as both sides read it");
_Static_assert(64 + 32 * ACRE_ARGS_MAX + ACRE_EXTRA_MAX <= WIRE_MESSAGE_MAX, "a launch fits");

uint32_t wire_bytes(uint32_t op); /* of a message without what follows */
size_t wire_launch_bytes(const struct native_launch *launch); /* of a message */
void wire_put_launch(struct wire_message *message, uint32_t stream,
                     const struct native_launch *launch);
/* `message` has its `bytes` bytes, whole and aligned. A launch points into it. */
int wire_check_message(const struct wire_message *message, struct native_launch *ret_launch,
                       struct acre_error *err);

/* --- requests ------------------------------------------------------------------------------- */

/* clang-format off */
#define WIRE_REQUESTS(X)                                                                       \
    /* name         after?  numbers, payload                       answer                   */ \
    X(MEMORY,         false) /*                                     free, total              */ \
    X(CHECK,          false)                                                                    \
    X(REGION_CREATE,  false) /* kind, bytes, offset of host memory  handle, address          */ \
    X(REGION_DESTROY, true)  /* region                                                       */ \
    X(STREAM_CREATE,  false) /* region, offset of the word          stream                   */ \
    X(STREAM_DESTROY, true)  /* stream                                                       */ \
    X(STREAM_OWN,     true)  /* stream                                                       */ \
    X(COMPILE,        false) /* kernels; text, options, names       bytes, log; both         */ \
    X(LOAD,           false) /* bytes                               module                   */ \
    X(UNLOAD,         true)  /* module                                                       */ \
    X(KERNEL,         false) /* module; name                        kernel; the facts        */ \
    X(GRAPH_CREATE,   false) /* count; nodes                        graph                    */ \
    X(GRAPH_UPDATE,   true)  /* graph, node; message of a launch                             */ \
    X(GRAPH_DESTROY,  true)  /* graph                                                        */ \
    X(PROFILE,        true)  /* stream, on                                                   */ \
    X(TIMINGS,        true)  /* stream, most                        count; timings           */ \
    X(TRANSFER,       true)  /* offset, region, offset, bytes, write?; file     how          */ \
    X(EXPORT,         false) /* region                              ticket                   */ \
    X(IMPORT,         false) /* ticket                              handle, address          */
/* clang-format on */

enum wire_request_op {
#define X(name, after) WIRE_REQUEST_##name,
    WIRE_REQUESTS(X)
#undef X
        WIRE_REQUEST_OPS
};

struct wire_request {
    uint32_t op;
    uint32_t payload_bytes;
    uint64_t after; /* where `head` was: for some, the work before it goes first */
    uint64_t number[WIRE_NUMBERS];
};

struct wire_answer {
    struct acre_error error; /* code 0: done */
    uint32_t payload_bytes;
    uint64_t number[WIRE_NUMBERS];
};

/* A request's numbers and payload as far as they can be wrong without knowing the device. */
int wire_check_request(const struct wire_request *request, const uint8_t *payload,
                       struct acre_error *err);
size_t wire_nodes_bytes(const struct native_node *nodes, uint32_t count);
void wire_put_nodes(uint8_t *to, const struct native_node *nodes, uint32_t count);
/* They point into `bytes`, which is aligned; free() them. */
int wire_get_nodes(const uint8_t *bytes, size_t length, uint32_t count,
                   struct native_node **ret_nodes, struct acre_error *err);

/* Of `fd` from `offset` on, large pages where it is large; MAP_FAILED and errno. */
void *wire_map(int fd, uint64_t offset, size_t bytes);

#endif
