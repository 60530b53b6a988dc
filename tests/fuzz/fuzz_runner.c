/* What a runner reads: messages of the queue, requests, graphs. Damaged ones are refused; of whole
 * ones everything they point to is inside. The first byte says which it is. */
#include "compute/runner/wire.h"
#include "fuzz.h"

#include <stdlib.h>

static size_t walk_launch(const struct native_launch *launch) {
    size_t sum = launch->kernel != 0;
    ACRE_ASSERT(launch->arg_count <= ACRE_ARGS_MAX && launch->extra_bytes <= ACRE_EXTRA_MAX);
    for (uint32_t i = 0; i < launch->arg_count; i++) {
        const struct native_arg *arg = &launch->args[i];
        ACRE_ASSERT(arg->kind <= ACRE_NATIVE_LOCAL);
        for (uint32_t j = 0; arg->kind == ACRE_NATIVE_VALUE && j < arg->bytes; j++) {
            sum += launch->extra[arg->region + j];
        }
    }
    for (uint32_t i = 0; i < launch->extra_bytes; i++) {
        sum += launch->extra[i];
    }
    return sum;
}

static size_t walk_nodes(const struct native_node *nodes, uint32_t count) {
    size_t sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        ACRE_ASSERT(nodes[i].kind <= ACRE_NODE_FILL);
        sum += nodes[i].kind == ACRE_NODE_LAUNCH ? walk_launch(&nodes[i].launch) : 0;
        for (uint32_t j = 0; j < nodes[i].after_count; j++) {
            ACRE_ASSERT(nodes[i].after[j] < i);
        }
    }
    return sum;
}

static size_t try_message(const uint8_t *bytes, size_t size) {
    const struct wire_message *message = (const void *)bytes;
    struct native_launch launch;
    struct acre_error err = {0};
    uint32_t length;
    memcpy(&length, bytes, sizeof(length));
    if (size < WIRE_ALIGN || length != size || size % WIRE_ALIGN != 0) {
        return 0; /* the queue's reader has seen to that */
    }
    int r = wire_check_message(message, &launch, &err);
    if (r < 0) {
        acre_fuzz_check_error(&err, r);
        return 0;
    }
    return message->op == WIRE_LAUNCH ? walk_launch(&launch) : 0;
}

static size_t try_request(const uint8_t *bytes, size_t size) {
    struct wire_request request;
    struct acre_error err = {0};
    if (size < sizeof(request)) {
        return 0;
    }
    memcpy(&request, bytes, sizeof(request));
    request.payload_bytes = (uint32_t)(size - sizeof(request));
    uint8_t *payload = malloc(ACRE_MAX(request.payload_bytes, 1U)); /* its end is guarded */
    ACRE_ASSERT(payload != NULL);
    memcpy(payload, bytes + sizeof(request), request.payload_bytes);
    size_t sum = 0;
    int r = wire_check_request(&request, payload, &err);
    if (r == 0 && request.op == WIRE_REQUEST_GRAPH_CREATE) {
        struct native_node *nodes;
        uint32_t count = (uint32_t)request.number[0];
        r = wire_get_nodes(payload, request.payload_bytes, count, &nodes, &err);
        if (r == 0) {
            sum = walk_nodes(nodes, count);
            free(nodes);
        }
    } else if (r == 0 && request.op == WIRE_REQUEST_GRAPH_UPDATE) {
        sum = try_message(payload, request.payload_bytes);
    } else if (r == 0 && request.op == WIRE_REQUEST_COMPILE) {
        const char *text = (const char *)payload;
        for (uint64_t i = 0; i < 2 + request.number[0]; i++) {
            text += strlen(text) + 1;
        }
        ACRE_ASSERT(text == (const char *)payload + request.payload_bytes);
    }
    if (r < 0) {
        acre_fuzz_check_error(&err, r);
    }
    free(payload);
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1 + sizeof(uint32_t)) {
        return 0;
    }
    uint8_t *bytes = malloc(size - 1); /* aligned, its end is guarded */
    ACRE_ASSERT(bytes != NULL);
    memcpy(bytes, data + 1, size - 1);
    volatile size_t sum =
        data[0] % 2 == 0 ? try_message(bytes, size - 1) : try_request(bytes, size - 1);
    (void)sum;
    free(bytes);
    return 0;
}
