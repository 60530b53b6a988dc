/* graph.h - recorded work: the recipe (what users asked for), its recording, its executables.
 *
 * A recipe names kernels and buffers as users do, so that it can be resolved again after a loss and
 * its buffers checked before each launch. An executable is what the back end made of it. */
#ifndef ACRE_COMPUTE_GRAPH_H
#define ACRE_COMPUTE_GRAPH_H

#include "compute/launch.h"

#include <acre/graph.h>

enum { GRAPH_NODES_MAX = 1 << 16 };

struct graph_call {
    struct acre_kernel *kernel;
    struct acre_grid grid;
    const struct acre_arg *args; /* of a node: its own, and what BYTES point to */
    uint32_t count;
};

struct graph_copy {
    struct acre_buffer to, from;
    uint64_t to_offset, from_offset, bytes;
};

struct graph_fill {
    struct acre_buffer to;
    uint64_t to_offset, bytes, pattern;
    uint32_t pattern_bytes;
};

struct graph_node {
    enum node_kind kind;
    union {
        struct graph_call call;
        struct graph_copy copy;
        struct graph_fill fill;
    };
    uint32_t *after; /* earlier nodes it waits for */
    uint32_t after_count;
};

struct recipe {
    struct graph_node *nodes;
    uint32_t count, capacity;
};

void recipe_finish(struct recipe *recipe);
/* The node's own copy of a call's arguments. */
int graph_call_copy(const struct graph_call *call, struct graph_call *ret_call);
void graph_call_finish(struct graph_call *call);

/* --- recording.c: streams that record instead of working (stream->recording is not NULL) ------ */

/* What is given is checked already. */
int recording_launch(struct acre_stream *stream, const struct graph_call *call,
                     struct acre_error *err);
int recording_copy(struct acre_stream *stream, const struct graph_copy *copy,
                   struct acre_error *err);
int recording_fill(struct acre_stream *stream, const struct graph_fill *fill,
                   struct acre_error *err);
/* Events of a recording are marks in it, told from others by their sequence. */
int recording_event(struct acre_stream *stream, struct acre_event *ret_event,
                    struct acre_error *err);
int recording_after(struct acre_stream *stream, struct acre_event event, struct acre_error *err);
bool recording_is_mark(struct acre_event event);
void recording_drop(struct acre_stream *stream); /* none is fine */

/* --- graph.c ---------------------------------------------------------------------------------- */

/* Takes the recipe over, also when it fails. */
int graph_make(struct acre_context *context, struct recipe *recipe, struct acre_graph **ret_graph,
               struct acre_error *err);
/* A kernel goes away: no idle executable may know it. Gate held. */
void graphs_forget(const struct quiet *quiet);
/* Of a context that closes. */
void graphs_destroy(struct acre_context *context);

#endif
