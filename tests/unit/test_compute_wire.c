/* What a runner reads: whole messages are understood, damaged ones refused (GPU-6). */
#include "compute/runner/wire.h"
#include "support/test.h"

#include <stdlib.h>

static const struct native_arg args[] = {
    {.kind = ACRE_NATIVE_BUFFER, .region = 7, .offset = 16, .length = 64},
    {.kind = ACRE_NATIVE_VALUE, .bytes = 8, .region = 16},
    {.kind = ACRE_NATIVE_LOCAL, .bytes = 256}};
static const uint8_t extra[24] = {[16] = 1, [23] = 2};

static struct native_launch whole(void) {
    return (struct native_launch){.kernel = 5,
                                  .grid = {{2, 1, 1}, {64, 1, 1}},
                                  .args = args,
                                  .arg_count = ACRE_COUNT(args),
                                  .extra = extra,
                                  .extra_bytes = sizeof(extra)};
}

static union {
    struct wire_message message;
    uint8_t bytes[WIRE_MESSAGE_MAX];
} room;

static void put_whole(void) {
    struct native_launch launch = whole();
    memset(&room, 0, sizeof(room));
    wire_put_launch(&room.message, 9, &launch);
}

static void a_launch_arrives_as_it_was(void) {
    struct native_launch got;
    struct acre_error err = {0};
    put_whole();
    CHECK_EQ(room.message.bytes % WIRE_ALIGN, 0);
    REQUIRE_EQ(wire_check_message(&room.message, &got, &err), 0);
    CHECK_EQ(got.kernel, 5);
    CHECK_EQ(got.arg_count, 3);
    CHECK_EQ(memcmp(got.args, args, sizeof(args)), 0);
    CHECK_EQ(got.extra_bytes, sizeof(extra));
    CHECK_EQ(memcmp(got.extra, extra, sizeof(extra)), 0);
    CHECK_EQ((uintptr_t)got.extra % 16, 0);
}

/* Each row spoils one 32-bit word of a whole message. */
static const struct {
    const char *what;
    size_t at;
    uint32_t value;
} damages[] = {
    {"longer than what is in it", offsetof(struct wire_message, bytes), 64 + 96 + 48},
    {"shorter than what is in it", offsetof(struct wire_message, bytes), 64 + 96 + 16},
    {"shorter than a launch", offsetof(struct wire_message, bytes), 16},
    {"no such message", offsetof(struct wire_message, op), WIRE_OPS},
    {"another message of that length", offsetof(struct wire_message, op), WIRE_COPY},
    {"no such stream", offsetof(struct wire_message, stream), WIRE_STREAMS_MAX},
    {"no groups", offsetof(struct wire_message, launch.grid.groups[1]), 0},
    {"groups of nothing", offsetof(struct wire_message, launch.grid.group[2]), 0},
    {"too many arguments", offsetof(struct wire_message, launch.arg_count), ACRE_ARGS_MAX + 1},
    {"arguments past the end", offsetof(struct wire_message, launch.arg_count), 5},
    {"too many bytes of values", offsetof(struct wire_message, launch.extra_bytes),
     ACRE_EXTRA_MAX + 1},
    {"values past the end", offsetof(struct wire_message, launch.extra_bytes), 33},
    {"no such kind", 64, 3},
    {"a value larger than all values", 64 + 32 + 4, 25},
    {"a value that ends behind them", 64 + 32 + 8, 17},
    {"a value at the end of the world", 64 + 32 + 12, UINT32_MAX},
};

static void damaged_messages_are_refused(void) {
    for (size_t i = 0; i < ACRE_COUNT(damages); i++) {
        struct native_launch got;
        struct acre_error err = {0};
        acre_test_context("%s", damages[i].what);
        put_whole();
        memcpy(room.bytes + damages[i].at, &damages[i].value, sizeof(damages[i].value));
        CHECK_EQ(wire_check_message(&room.message, &got, &err), ACRE_EINVALID);
        CHECK(err.text[0] != '\0');
    }
}

/* --- requests ------------------------------------------------------------------------------- */

static const struct {
    uint32_t op;
    const char *payload;
    uint32_t bytes;
    uint64_t number[WIRE_NUMBERS];
    int expect;
} requests[] = {
    {WIRE_REQUEST_MEMORY, "", 0, {0}, 0},
    {WIRE_REQUEST_MEMORY, "x", 1, {0}, ACRE_EINVALID},
    {WIRE_REQUEST_OPS, "", 0, {0}, ACRE_EINVALID},
    {WIRE_REQUEST_REGION_CREATE, "", 0, {ACRE_MEMORY_MAPPED, 4096}, 0},
    {WIRE_REQUEST_REGION_CREATE, "", 0, {ACRE_MEMORY_MAPPED + 1, 4096}, ACRE_EINVALID},
    {WIRE_REQUEST_REGION_CREATE, "", 0, {0, 0}, ACRE_EINVALID},
    {WIRE_REQUEST_STREAM_DESTROY, "", 0, {WIRE_STREAMS_MAX - 1}, 0},
    {WIRE_REQUEST_STREAM_DESTROY, "", 0, {WIRE_STREAMS_MAX}, ACRE_EINVALID},
    {WIRE_REQUEST_PROFILE, "", 0, {0, 1}, 0},
    {WIRE_REQUEST_PROFILE, "", 0, {0, 2}, ACRE_EINVALID},
    {WIRE_REQUEST_TIMINGS, "", 0, {0, WIRE_TIMINGS_MAX}, 0},
    {WIRE_REQUEST_TIMINGS, "", 0, {0, WIRE_TIMINGS_MAX + 1}, ACRE_EINVALID},
    {WIRE_REQUEST_COMPILE, "text\0-O\0name", 13, {1}, 0},
    {WIRE_REQUEST_COMPILE, "text\0-O\0name", 12, {1}, ACRE_EINVALID},
    {WIRE_REQUEST_COMPILE, "text\0-O\0name", 13, {2}, ACRE_EINVALID},
    {WIRE_REQUEST_COMPILE, "text\0-O\0name", 13, {0}, ACRE_EINVALID},
    {WIRE_REQUEST_COMPILE, "text\0-O\0name", 13, {UINT64_MAX - 1}, ACRE_EINVALID},
    {WIRE_REQUEST_KERNEL, "name", 5, {3}, 0},
    {WIRE_REQUEST_KERNEL, "name", 4, {3}, ACRE_EINVALID},
    {WIRE_REQUEST_KERNEL, "", 0, {3}, ACRE_EINVALID},
    {WIRE_REQUEST_TRANSFER, "/f", 3, {0, 0, 0, 0, 1}, 0},
    {WIRE_REQUEST_TRANSFER, "/f", 3, {0, 0, 0, 0, 2}, ACRE_EINVALID},
    {WIRE_REQUEST_IMPORT, "", 0, {0}, ACRE_EINVALID},
    {WIRE_REQUEST_GRAPH_CREATE, "", 0, {0}, ACRE_EINVALID},
    {WIRE_REQUEST_GRAPH_CREATE, "", 0, {WIRE_NODES_MAX + 1}, ACRE_EINVALID},
    {WIRE_REQUEST_GRAPH_UPDATE, "launch", 6, {0, 0}, ACRE_EINVALID},
};

static void requests_are_checked(void) {
    for (size_t i = 0; i < ACRE_COUNT(requests); i++) {
        struct wire_request request = {.op = requests[i].op, .payload_bytes = requests[i].bytes};
        memcpy(request.number, requests[i].number, sizeof(request.number));
        acre_test_context("row %zu", i);
        CHECK_EQ(wire_check_request(&request, (const uint8_t *)requests[i].payload, NULL),
                 requests[i].expect);
    }
}

/* --- graphs --------------------------------------------------------------------------------- */

enum { NODES = 3 };

static size_t put_graph(uint8_t *to) {
    const uint32_t after[] = {0, 1};
    const struct native_node nodes[NODES] = {
        {.kind = ACRE_NODE_COPY, .copy = {1, 2, 3, 4, 5}},
        {.kind = ACRE_NODE_LAUNCH, .launch = whole(), .after = after, .after_count = 1},
        {.kind = ACRE_NODE_FILL, .fill = {1, 2, 8, 9, 4}, .after = after, .after_count = 2}};
    wire_put_nodes(to, nodes, NODES);
    return wire_nodes_bytes(nodes, NODES);
}

static void graphs_arrive_as_they_were(void) {
    _Alignas(16) static uint8_t bytes[4096];
    struct native_node *nodes;
    size_t length = put_graph(bytes);
    REQUIRE_EQ(wire_get_nodes(bytes, length, NODES, &nodes, NULL), 0);
    CHECK_EQ(nodes[0].copy.bytes, 5);
    CHECK_EQ(memcmp(nodes[1].launch.args, args, sizeof(args)), 0);
    CHECK_EQ(nodes[2].after[1], 1);
    CHECK_EQ(nodes[2].fill.pattern, 9);
    free(nodes);
}

/* Cut anywhere, or with a node or byte more, it is no graph; nor when a node waits for a later. */
static void damaged_graphs_are_refused(void) {
    _Alignas(16) static uint8_t bytes[4096];
    struct native_node *nodes;
    size_t length = put_graph(bytes);
    for (size_t i = 0; i < length; i++) {
        uint8_t *cut = malloc(i + 1); /* its end is guarded */
        REQUIRE(cut != NULL);
        memcpy(cut, bytes, i);
        CHECK_EQ(wire_get_nodes(cut, i, NODES, &nodes, NULL), ACRE_EINVALID);
        free(cut);
    }
    CHECK_EQ(wire_get_nodes(bytes, length + 16, NODES, &nodes, NULL), ACRE_EINVALID);
    CHECK_EQ(wire_get_nodes(bytes, length, NODES - 1, &nodes, NULL), ACRE_EINVALID);
    CHECK_EQ(wire_get_nodes(bytes, length, NODES + 1, &nodes, NULL), ACRE_EINVALID);
    const uint32_t itself = 2;
    memcpy(bytes + length - 16, &itself, sizeof(itself));
    CHECK_EQ(wire_get_nodes(bytes, length, NODES, &nodes, NULL), ACRE_EINVALID);
}

static const struct acre_test tests[] = {
    {"a_launch_arrives_as_it_was", a_launch_arrives_as_it_was, 0},
    {"damaged_messages_are_refused", damaged_messages_are_refused, 0},
    {"requests_are_checked", requests_are_checked, 0},
    {"graphs_arrive_as_they_were", graphs_arrive_as_they_were, 0},
    {"damaged_graphs_are_refused", damaged_graphs_are_refused, 0},
};
ACRE_TEST_MAIN(tests)
