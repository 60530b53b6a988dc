/* wire.c - messages between a seat and its runner: written, and read with suspicion.
 *
 * Structs travel as they are (both sides are one build, checked by WIRE_MAGIC), followed by the
 * data their pointers point to. Readers get a private copy, so that nothing changes between a check
 * and its use, and return pointers into it. */
#include "compute/runner/wire.h"

#include "compute/runner/wire_shared.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static size_t round_up(size_t bytes) {
    return (bytes + WIRE_ALIGN - 1) / WIRE_ALIGN * WIRE_ALIGN;
}

/* --- launches ------------------------------------------------------------------------------- */

static size_t tail_bytes(uint32_t arg_count, uint32_t extra_bytes) {
    return round_up(arg_count * sizeof(struct native_arg) + extra_bytes);
}

static void put_launch(struct wire_launch *to, uint8_t *behind,
                       const struct native_launch *launch) {
    size_t args_bytes = launch->arg_count * sizeof(struct native_arg);
    *to = (struct wire_launch){.kernel = launch->kernel,
                               .grid = launch->grid,
                               .arg_count = launch->arg_count,
                               .extra_bytes = launch->extra_bytes};
    if (args_bytes > 0) {
        memcpy(behind, launch->args, args_bytes);
    }
    if (launch->extra_bytes > 0) {
        memcpy(behind + args_bytes, launch->extra, launch->extra_bytes);
    }
}

static int check_arg(const struct native_arg *arg, uint32_t extra_bytes, uint32_t index,
                     struct acre_error *err) {
    if (arg->kind > ACRE_NATIVE_LOCAL) {
        return acre_fail(err, ACRE_EINVALID, "argument %u: unknown kind %u", index, arg->kind);
    }
    if (arg->kind == ACRE_NATIVE_VALUE &&
        (arg->bytes > extra_bytes || arg->region > extra_bytes - arg->bytes)) {
        return acre_fail(err, ACRE_EINVALID, "argument %u: its value is outside the message",
                         index);
    }
    return 0;
}

/* `length` bytes are behind it; how many are its own, in `ret_used`. */
static int get_launch(const struct wire_launch *from, const uint8_t *behind, size_t length,
                      struct native_launch *ret_launch, size_t *ret_used, struct acre_error *err) {
    if (from->arg_count > ACRE_ARGS_MAX || from->extra_bytes > ACRE_EXTRA_MAX) {
        return acre_fail(err, ACRE_EINVALID, "launch: %u arguments, %u bytes of values",
                         from->arg_count, from->extra_bytes);
    }
    size_t used = tail_bytes(from->arg_count, from->extra_bytes);
    if (used > length) {
        return acre_fail(err, ACRE_EINVALID, "launch: cut short");
    }
    for (uint32_t i = 0; i < 3; i++) {
        if (from->grid.groups[i] == 0 || from->grid.group[i] == 0) {
            return acre_fail(err, ACRE_EINVALID, "launch: an empty grid");
        }
    }
    const struct native_arg *args = (const void *)behind;
    for (uint32_t i = 0; i < from->arg_count; i++) {
        int r = check_arg(&args[i], from->extra_bytes, i, err);
        if (r < 0) {
            return r;
        }
    }
    *ret_launch = (struct native_launch){.kernel = from->kernel,
                                         .grid = from->grid,
                                         .args = args,
                                         .arg_count = from->arg_count,
                                         .extra_bytes = from->extra_bytes,
                                         .extra = behind + from->arg_count * sizeof(*args)};
    *ret_used = used;
    return 0;
}

/* --- queued work ---------------------------------------------------------------------------- */

uint32_t wire_bytes(uint32_t op) {
    static const uint8_t bytes[WIRE_OPS] = {
        [WIRE_PAD] = 16,    [WIRE_COPY] = 64,         [WIRE_FILL] = 64,
        [WIRE_LAUNCH] = 64, [WIRE_SIGNAL] = 32,       [WIRE_WAIT] = 48,
        [WIRE_NOTIFY] = 32, [WIRE_GRAPH_LAUNCH] = 32, [WIRE_FORGET] = 32,
    };
    return op < WIRE_OPS ? bytes[op] : 0;
}

size_t wire_launch_bytes(const struct native_launch *launch) {
    return sizeof(struct wire_message) + tail_bytes(launch->arg_count, launch->extra_bytes);
}

void wire_put_launch(struct wire_message *message, uint32_t stream,
                     const struct native_launch *launch) {
    message->bytes = (uint32_t)wire_launch_bytes(launch);
    message->op = WIRE_LAUNCH;
    message->stream = stream;
    put_launch(&message->launch, (uint8_t *)(message + 1), launch);
}

int wire_check_message(const struct wire_message *message, struct native_launch *ret_launch,
                       struct acre_error *err) {
    uint32_t bytes = wire_bytes(message->op);
    if (bytes == 0 || message->bytes < bytes || message->stream >= WIRE_STREAMS_MAX) {
        return acre_fail(err, ACRE_EINVALID, "message %u of %u bytes for stream %u", message->op,
                         message->bytes, message->stream);
    }
    if (message->op == WIRE_PAD) {
        return 0;
    }
    if (message->op == WIRE_LAUNCH) {
        size_t used;
        int r = get_launch(&message->launch, (const uint8_t *)(message + 1), message->bytes - bytes,
                           ret_launch, &used, err);
        if (r < 0) {
            return r;
        }
        bytes += (uint32_t)used;
    }
    if (message->bytes != bytes) {
        return acre_fail(err, ACRE_EINVALID, "message %u has %u bytes instead of %u", message->op,
                         message->bytes, bytes);
    }
    return 0;
}

/* --- graphs --------------------------------------------------------------------------------- */

struct wire_node { /* behind it: a launch's arguments and values; numbers of nodes before it */
    uint32_t kind;
    uint32_t after_count;
    union {
        struct wire_launch launch;
        struct native_copy copy;
        struct native_fill fill;
    };
};
_Static_assert(sizeof(struct wire_node) % WIRE_ALIGN == 0, "what follows is aligned");

size_t wire_nodes_bytes(const struct native_node *nodes, uint32_t count) {
    size_t bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct native_node *node = &nodes[i];
        bytes += sizeof(struct wire_node) + round_up(node->after_count * sizeof(uint32_t));
        if (node->kind == ACRE_NODE_LAUNCH) {
            bytes += tail_bytes(node->launch.arg_count, node->launch.extra_bytes);
        }
    }
    return bytes;
}

void wire_put_nodes(uint8_t *to, const struct native_node *nodes, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        const struct native_node *node = &nodes[i];
        struct wire_node *wire = (void *)to;
        *wire = (struct wire_node){.kind = node->kind, .after_count = node->after_count};
        to += sizeof(*wire);
        if (node->kind == ACRE_NODE_LAUNCH) {
            put_launch(&wire->launch, to, &node->launch);
            to += tail_bytes(node->launch.arg_count, node->launch.extra_bytes);
        } else if (node->kind == ACRE_NODE_COPY) {
            wire->copy = node->copy;
        } else {
            wire->fill = node->fill;
        }
        if (node->after_count > 0) {
            memcpy(to, node->after, node->after_count * sizeof(uint32_t));
        }
        to += round_up(node->after_count * sizeof(uint32_t));
    }
}

/* The node number `index`; how many bytes it took, in `ret_used`. */
static int get_node(const uint8_t *bytes, size_t length, uint32_t index,
                    struct native_node *ret_node, size_t *ret_used, struct acre_error *err) {
    const struct wire_node *wire = (const void *)bytes;
    if (length < sizeof(*wire) || wire->kind > ACRE_NODE_FILL || wire->after_count > index) {
        return acre_fail(err, ACRE_EINVALID, "node %u of a graph is damaged", index);
    }
    struct native_node node = {.kind = wire->kind, .after_count = wire->after_count};
    size_t used = sizeof(*wire);
    if (wire->kind == ACRE_NODE_LAUNCH) {
        size_t tail;
        int r = get_launch(&wire->launch, bytes + used, length - used, &node.launch, &tail, err);
        if (r < 0) {
            return r;
        }
        used += tail;
    } else if (wire->kind == ACRE_NODE_COPY) {
        node.copy = wire->copy;
    } else {
        node.fill = wire->fill;
    }
    size_t after_bytes = round_up(node.after_count * sizeof(uint32_t));
    if (after_bytes > length - used) {
        return acre_fail(err, ACRE_EINVALID, "node %u of a graph is cut short", index);
    }
    node.after = (const void *)(bytes + used);
    for (uint32_t i = 0; i < node.after_count; i++) {
        if (node.after[i] >= index) {
            return acre_fail(err, ACRE_EINVALID, "node %u of a graph waits for node %u", index,
                             node.after[i]);
        }
    }
    *ret_node = node;
    *ret_used = used + after_bytes;
    return 0;
}

int wire_get_nodes(const uint8_t *bytes, size_t length, uint32_t count,
                   struct native_node **ret_nodes, struct acre_error *err) {
    if (count == 0 || count > WIRE_NODES_MAX || count > length / sizeof(struct wire_node)) {
        return acre_fail(err, ACRE_EINVALID, "a graph of %u nodes in %zu bytes", count, length);
    }
    struct native_node *nodes = calloc(count, sizeof(*nodes));
    if (nodes == NULL) {
        return acre_fail(err, ACRE_ENOMEM, "a graph of %u nodes", count);
    }
    size_t at = 0;
    int r = 0;
    for (uint32_t i = 0; i < count && r == 0; i++) {
        size_t used = 0;
        r = get_node(bytes + at, length - at, i, &nodes[i], &used, err);
        at += used;
    }
    if (r == 0 && at != length) {
        r = acre_fail(err, ACRE_EINVALID, "a graph followed by %zu extra bytes", length - at);
    }
    if (r < 0) {
        free(nodes);
        return r;
    }
    *ret_nodes = nodes;
    return 0;
}

/* --- requests ------------------------------------------------------------------------------- */

static int refuse(const struct wire_request *request, struct acre_error *err) {
    return acre_fail(err, ACRE_EINVALID, "request %u with %u bytes is damaged", request->op,
                     request->payload_bytes);
}

/* The payload is `count` texts, each with its NUL. */
static bool is_texts(const uint8_t *payload, size_t length, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        const uint8_t *end = length > 0 ? memchr(payload, '\0', length) : NULL;
        if (end == NULL) {
            return false;
        }
        length -= (size_t)(end + 1 - payload);
        payload = end + 1;
    }
    return length == 0;
}

static bool is_launch(const uint8_t *payload, uint32_t length) {
    const struct wire_message *message = (const void *)payload;
    struct native_launch launch;
    return length >= sizeof(*message) && message->bytes == length && message->op == WIRE_LAUNCH &&
           wire_check_message(message, &launch, NULL) == 0;
}

int wire_check_request(const struct wire_request *request, const uint8_t *payload,
                       struct acre_error *err) {
    const uint64_t *number = request->number;
    uint32_t length = request->payload_bytes;
    bool ok;
    switch (request->op) {
    case WIRE_REQUEST_REGION_CREATE:
        ok = length == 0 && number[0] <= ACRE_MEMORY_MAPPED && number[1] > 0;
        break;
    case WIRE_REQUEST_COMPILE:
        ok = number[0] <= WIRE_NODES_MAX && is_texts(payload, length, 2 + number[0]);
        break;
    case WIRE_REQUEST_LOAD:
        ok = true;
        break;
    case WIRE_REQUEST_KERNEL:
        ok = length <= WIRE_NAME_MAX && is_texts(payload, length, 1);
        break;
    case WIRE_REQUEST_GRAPH_CREATE: /* wire_get_nodes checks the rest */
        ok = number[0] > 0 && number[0] <= WIRE_NODES_MAX;
        break;
    case WIRE_REQUEST_GRAPH_UPDATE:
        ok = number[1] < WIRE_NODES_MAX && is_launch(payload, length);
        break;
    case WIRE_REQUEST_PROFILE:
        ok = length == 0 && number[0] < WIRE_STREAMS_MAX && number[1] <= 1;
        break;
    case WIRE_REQUEST_STREAM_DESTROY:
    case WIRE_REQUEST_STREAM_OWN:
        ok = length == 0 && number[0] < WIRE_STREAMS_MAX;
        break;
    case WIRE_REQUEST_TIMINGS:
        ok = length == 0 && number[0] < WIRE_STREAMS_MAX && number[1] <= WIRE_TIMINGS_MAX;
        break;
    case WIRE_REQUEST_TRANSFER:
        ok = length <= WIRE_NAME_MAX && number[4] <= 1 && is_texts(payload, length, 1);
        break;
    case WIRE_REQUEST_IMPORT:
        ok = length == 64;
        break;
    default:
        ok = length == 0 && request->op < WIRE_REQUEST_OPS;
        break;
    }
    return ok ? 0 : refuse(request, err);
}

/* --- memory, futexes, the socket ------------------------------------------------------------ */

void *wire_map(int fd, uint64_t offset, size_t bytes) {
    const size_t large = (size_t)2 << 20;
    if (bytes < large) {
        return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);
    }
    uint8_t *room =
        mmap(NULL, bytes + large, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) {
        return MAP_FAILED;
    }
    size_t before = (large - (uintptr_t)room % large) % large;
    uint8_t *at = room + before;
    void *mapped = mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE,
                        fd, (off_t)offset);
    int error = errno;
    if (mapped == MAP_FAILED) {
        munmap(room, bytes + large);
        errno = error;
        return MAP_FAILED;
    }
    if (before > 0) {
        munmap(room, before);
    }
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *end = at + (bytes + page - 1) / page * page;
    if (end < room + bytes + large) {
        munmap(end, (size_t)(room + bytes + large - end));
    }
    madvise(at, bytes, MADV_HUGEPAGE); /* where shared memory may have them */
    return at;
}

union wire_control {
    char bytes[CMSG_SPACE(WIRE_FDS * sizeof(int))];
    struct cmsghdr align;
};

int wire_send(int socket, const struct wire_note *note, const int *fds, uint32_t count) {
    ACRE_ASSERT(count <= WIRE_FDS);
    union wire_control control = {0};
    struct iovec part = {.iov_base = (void *)(uintptr_t)note, .iov_len = sizeof(*note)};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (count > 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(count * sizeof(int));
        memcpy(CMSG_DATA(header), fds, count * sizeof(int));
    }
    ssize_t sent;
    do {
        sent = sendmsg(socket, &message, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    return sent < 0 ? -errno : 0;
}

int wire_receive(int socket, struct wire_note *ret_note, int flags, int ret_fds[WIRE_FDS],
                 uint32_t *ret_count) {
    union wire_control control = {0};
    struct wire_note note;
    struct iovec part = {.iov_base = &note, .iov_len = sizeof(note)};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = CMSG_LEN(sizeof(int) * WIRE_FDS)};
    ssize_t got;
    do {
        got = recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);
    } while (got < 0 && errno == EINTR);
    if (got < 0) {
        return -errno;
    }
    uint32_t count = 0;
    int fds[WIRE_FDS];
    const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header != NULL && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
        count = (uint32_t)((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        ACRE_ASSERT(count <= WIRE_FDS); /* there was no room for more */
        memcpy(fds, CMSG_DATA(header), count * sizeof(int));
    }
    if (got == 0 || got != (ssize_t)sizeof(note) || note.magic != WIRE_MAGIC) {
        for (uint32_t i = 0; i < count; i++) {
            close(fds[i]);
        }
        return got == 0 ? -EPIPE : -EPROTO;
    }
    note.backend[sizeof(note.backend) - 1] = '\0';
    note.error.text[sizeof(note.error.text) - 1] = '\0';
    memcpy(ret_fds, fds, count * sizeof(int));
    *ret_count = count;
    *ret_note = note;
    return 0;
}
