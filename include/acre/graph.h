/* graph.h - work recorded once and launched as a whole, many times.
 *
 * Between begin and end a stream records instead of running: launches, copies between buffers,
 * fills, and waits for events of streams that record for the same graph. A stream that waits for
 * an event of a recording stream (acre_stream_after) joins the recording. One thread records.
 * A graph of the same shape as one destroyed earlier is cheap: only its arguments are updated.
 * A program must outlive the graphs that use it. A freed buffer is detected at the launch. */
#ifndef ACRE_GRAPH_H
#define ACRE_GRAPH_H

#include <acre/kernel.h>

#ifdef __cplusplus
extern "C" {
#endif

struct acre_graph;

/* ACRE_ECONFLICT: the stream already records. */
ACRE_API int acre_graph_begin(struct acre_stream *stream, struct acre_error *err);
/* On the stream where recording began. Recording is over afterwards, even if this fails. The caller
 * destroys the graph. */
ACRE_API int acre_graph_end(struct acre_stream *stream, struct acre_graph **ret_graph,
                            struct acre_error *err);
/* On any stream of the context. ACRE_ENOTFOUND: a buffer was freed. */
ACRE_API int acre_graph_launch(struct acre_graph *graph, struct acre_stream *stream,
                               struct acre_error *err);
/* Changes the arguments of one kernel launch, from the next launch of the graph on. `node` counts
 * kernel launches only, in the order of recording, from 0. */
ACRE_API int acre_graph_update(struct acre_graph *graph, uint32_t node, struct acre_grid grid,
                               const struct acre_arg *args, uint32_t count, struct acre_error *err);
ACRE_API void acre_graph_destroy(struct acre_graph *graph); /* NULL is fine */

#ifdef __cplusplus
}
#endif

#endif
