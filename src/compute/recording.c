/* recording.c - what streams record between acre_graph_begin and acre_graph_end.
 *
 * Each stream that takes part has its heads: the nodes its next node waits for. A node becomes the
 * only head. An event is a mark: the heads at that moment. A stream that waits for it adds them to
 * its own, and takes part from then on. So the order of streams and events becomes edges between
 * nodes, as it would have been in time. One thread makes a recording. */
#include "compute/graph.h"

#include "compute/context.h"
#include "compute/process.h"

#include <stdlib.h>
#include <string.h>

static const uint64_t mark_bit = UINT64_C(1) << 63;

enum { MARKS_MAX = 1 << 16, MARK_SHIFT = 17 };

struct heads {
    uint32_t *nodes;
    uint32_t count;
};

struct capture {
    struct recipe recipe;
    struct acre_stream *origin;
    uint64_t marked;              /* what its marks have besides their number */
    struct recording *recordings; /* of the streams that take part */
    struct heads *marks;
    uint32_t mark_count, mark_capacity;
};

struct recording {
    struct capture *capture;
    struct acre_stream *stream;
    struct recording *next;
    struct heads heads;
};

static int no_memory(struct acre_error *err) {
    return acre_fail(err, ACRE_ENOMEM, "graph: out of memory for the recording");
}

/* Room for one more item in an array that doubles; NULL: no memory, and the array is as it was. */
static void *room_for_one(void *array, uint32_t count, uint32_t *capacity, size_t size) {
    if (count < *capacity) {
        return array;
    }
    uint32_t wanted = *capacity > 0 ? *capacity * 2 : 16;
    void *larger = reallocarray(array, wanted, size);
    if (larger != NULL) {
        *capacity = wanted;
    }
    return larger;
}

static int heads_copy(const struct heads *heads, struct heads *ret_heads) {
    uint32_t *nodes = calloc(heads->count + 1, sizeof(*nodes));
    if (nodes == NULL) {
        return ACRE_ENOMEM;
    }
    if (heads->count > 0) { /* else there are no nodes to point to */
        memcpy(nodes, heads->nodes, heads->count * sizeof(*nodes));
    }
    *ret_heads = (struct heads){.nodes = nodes, .count = heads->count};
    return 0;
}

static int heads_add(struct heads *heads, const struct heads *more) {
    uint32_t *nodes = reallocarray(heads->nodes, heads->count + more->count + 1, sizeof(*nodes));
    if (nodes == NULL) {
        return ACRE_ENOMEM;
    }
    heads->nodes = nodes;
    for (uint32_t i = 0; i < more->count; i++) {
        bool is_known = false;
        for (uint32_t j = 0; j < heads->count; j++) {
            is_known = is_known || nodes[j] == more->nodes[i];
        }
        if (!is_known) {
            nodes[heads->count++] = more->nodes[i];
        }
    }
    return 0;
}

/* --- nodes ---------------------------------------------------------------------------------- */

int graph_call_copy(const struct graph_call *call, struct graph_call *ret_call) {
    size_t bytes = 0;
    for (uint32_t i = 0; i < call->count; i++) {
        bytes += call->args[i].kind == ACRE_ARG_BYTES ? call->args[i].bytes : 0;
    }
    struct acre_arg *args = malloc(call->count * sizeof(*args) + bytes + 1);
    if (args == NULL) {
        return ACRE_ENOMEM;
    }
    uint8_t *values = (uint8_t *)(args + call->count);
    for (uint32_t i = 0; i < call->count; i++) {
        args[i] = call->args[i];
        if (args[i].kind == ACRE_ARG_BYTES) {
            memcpy(values, args[i].pointer, args[i].bytes);
            args[i].pointer = values;
            values += args[i].bytes;
        }
    }
    *ret_call = *call;
    ret_call->args = args;
    return 0;
}

void graph_call_finish(struct graph_call *call) {
    free((void *)call->args);
    call->args = NULL;
}

void recipe_finish(struct recipe *recipe) {
    for (uint32_t i = 0; i < recipe->count; i++) {
        if (recipe->nodes[i].kind == ACRE_NODE_LAUNCH) {
            graph_call_finish(&recipe->nodes[i].call);
        }
        free(recipe->nodes[i].after);
    }
    free(recipe->nodes);
    *recipe = (struct recipe){0};
}

/* The node (whatever it owns is taken over on success only) after the stream's heads. */
static int add_node(struct recording *recording, struct graph_node node, struct acre_error *err) {
    struct recipe *recipe = &recording->capture->recipe;
    if (recipe->count == GRAPH_NODES_MAX) {
        return acre_fail(err, ACRE_ELIMIT,
                         "graph: too much work; accepted: at most %d launches, copies and fills",
                         GRAPH_NODES_MAX);
    }
    struct graph_node *nodes =
        room_for_one(recipe->nodes, recipe->count, &recipe->capacity, sizeof(*nodes));
    uint32_t *head = malloc(sizeof(*head));
    if (nodes == NULL || head == NULL) {
        recipe->nodes = nodes != NULL ? nodes : recipe->nodes;
        free(head);
        return no_memory(err);
    }
    recipe->nodes = nodes;
    node.after = recording->heads.nodes;
    node.after_count = recording->heads.count;
    nodes[recipe->count] = node;
    *head = recipe->count++;
    recording->heads = (struct heads){.nodes = head, .count = 1};
    return 0;
}

int recording_launch(struct acre_stream *stream, const struct graph_call *call,
                     struct acre_error *err) {
    struct graph_node node = {.kind = ACRE_NODE_LAUNCH};
    if (graph_call_copy(call, &node.call) < 0) {
        return no_memory(err);
    }
    int r = add_node(stream->recording, node, err);
    if (r < 0) {
        graph_call_finish(&node.call);
    }
    return r;
}

int recording_copy(struct acre_stream *stream, const struct graph_copy *copy,
                   struct acre_error *err) {
    struct graph_node node = {.kind = ACRE_NODE_COPY, .copy = *copy};
    return add_node(stream->recording, node, err);
}

int recording_fill(struct acre_stream *stream, const struct graph_fill *fill,
                   struct acre_error *err) {
    struct graph_node node = {.kind = ACRE_NODE_FILL, .fill = *fill};
    return add_node(stream->recording, node, err);
}

/* --- events --------------------------------------------------------------------------------- */

bool recording_is_mark(struct acre_event event) {
    return (event.sequence & mark_bit) != 0;
}

int recording_event(struct acre_stream *stream, struct acre_event *ret_event,
                    struct acre_error *err) {
    struct capture *capture = stream->recording->capture;
    if (capture->mark_count == MARKS_MAX) {
        return acre_fail(err, ACRE_ELIMIT, "graph: too many events; accepted: at most %d",
                         MARKS_MAX);
    }
    struct heads *marks =
        room_for_one(capture->marks, capture->mark_count, &capture->mark_capacity, sizeof(*marks));
    if (marks == NULL) {
        return no_memory(err);
    }
    capture->marks = marks;
    if (heads_copy(&stream->recording->heads, &marks[capture->mark_count]) < 0) {
        return no_memory(err);
    }
    *ret_event =
        (struct acre_event){.stream = stream, .sequence = capture->marked | capture->mark_count++};
    return 0;
}

static int take_part(struct capture *capture, struct acre_stream *stream, struct acre_error *err) {
    if (stream->context != capture->origin->context) {
        return acre_fail(err, ACRE_EINVALID, "graph: all its streams must belong to one context");
    }
    struct recording *recording = calloc(1, sizeof(*recording));
    if (recording == NULL) {
        return no_memory(err);
    }
    *recording =
        (struct recording){.capture = capture, .stream = stream, .next = capture->recordings};
    capture->recordings = recording;
    stream->recording = recording;
    return 0;
}

int recording_after(struct acre_stream *stream, struct acre_event event, struct acre_error *err) {
    struct recording *other = event.stream->recording;
    if (!recording_is_mark(event)) {
        return acre_fail(
            err, ACRE_ECONFLICT,
            "event: recorded before the graph; a graph can wait only for its own events");
    }
    uint64_t number = event.sequence & ((UINT64_C(1) << MARK_SHIFT) - 1);
    if (other == NULL || event.sequence - number != other->capture->marked ||
        number >= other->capture->mark_count ||
        (stream->recording != NULL && stream->recording->capture != other->capture)) {
        return acre_fail(err, ACRE_ECONFLICT, "event: belongs to another graph");
    }
    if (stream->recording == NULL) {
        int r = take_part(other->capture, stream, err);
        if (r < 0) {
            return r;
        }
    }
    const struct heads *mark = &other->capture->marks[number];
    return heads_add(&stream->recording->heads, mark) < 0 ? no_memory(err) : 0;
}

/* --- beginning and ending --------------------------------------------------------------------- */

static void capture_destroy(struct capture *capture) {
    while (capture->recordings != NULL) {
        struct recording *recording = capture->recordings;
        capture->recordings = recording->next;
        recording->stream->recording = NULL;
        free(recording->heads.nodes);
        free(recording);
    }
    for (uint32_t i = 0; i < capture->mark_count; i++) {
        free(capture->marks[i].nodes);
    }
    free(capture->marks);
    recipe_finish(&capture->recipe);
    free(capture);
}

void recording_drop(struct acre_stream *stream) {
    struct recording *recording = stream->recording;
    if (recording == NULL) {
        return;
    }
    if (recording->capture->origin == stream) {
        capture_destroy(recording->capture);
        return;
    }
    struct recording **link = &recording->capture->recordings;
    while (*link != recording) {
        link = &(*link)->next;
    }
    *link = recording->next;
    stream->recording = NULL;
    free(recording->heads.nodes);
    free(recording);
}

int acre_graph_begin(struct acre_stream *stream, struct acre_error *err) {
    int r = stream_check(stream, err);
    if (r < 0) {
        return r;
    }
    if (stream->recording != NULL) {
        return acre_fail(err, ACRE_ECONFLICT, "stream: is already recording a graph");
    }
    struct capture *capture = calloc(1, sizeof(*capture));
    if (capture == NULL) {
        return no_memory(err);
    }
    capture->origin = stream;
    capture->marked =
        mark_bit | (atomic_fetch_add(&stream->context->captures, 1) << MARK_SHIFT & ~mark_bit);
    r = take_part(capture, stream, err);
    if (r < 0) {
        capture_destroy(capture);
    }
    return r;
}

int acre_graph_end(struct acre_stream *stream, struct acre_graph **ret_graph,
                   struct acre_error *err) {
    int r = stream_check(stream, err);
    if (r < 0) {
        return r;
    }
    if (stream->recording == NULL) {
        return acre_fail(err, ACRE_ECONFLICT, "stream: is not recording a graph");
    }
    struct capture *capture = stream->recording->capture;
    if (capture->origin != stream) {
        return acre_fail(err, ACRE_ECONFLICT,
                         "stream: the recording began on another stream; end it there");
    }
    struct recipe recipe = capture->recipe;
    capture->recipe = (struct recipe){0};
    capture_destroy(capture);
    return graph_make(stream->context, &recipe, ret_graph, err);
}
