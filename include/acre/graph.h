/* graph.h - work recorded once and launched as a whole, many times.
 *
 * Between begin and end a stream records (launches, copies between buffers, fills, and waits for
 * events of streams that record for the same graph) instead of working; a stream that is told to
 * wait for an event of a stream that records (acre_stream_after) records with it. One thread
 * records. A graph of the same shape as one that was destroyed only brings its arguments up to
 * date. Programs stay until their graphs are destroyed; buffers that were freed are found at the
 * launch. */
#ifndef ACRE_GRAPH_H
#define ACRE_GRAPH_H

#include <acre/kernel.h>

#ifdef __cplusplus
extern "C" {
#endif

struct acre_graph;

ACRE_API int acre_graph_begin(struct acre_stream *stream, struct acre_error *err);
/* On the stream it was begun on. The recording is over then, also when no graph comes of it. */
ACRE_API int acre_graph_end(struct acre_stream *stream, struct acre_graph **ret_graph,
                            struct acre_error *err);
/* On any stream of the context. */
ACRE_API int acre_graph_launch(struct acre_graph *graph, struct acre_stream *stream,
                               struct acre_error *err);
/* Other arguments for one launch in it, from the next launch of the graph on: `node` counts the
 * launches alone, in order of recording, from 0. */
ACRE_API int acre_graph_update(struct acre_graph *graph, uint32_t node, struct acre_grid grid,
                               const struct acre_arg *args, uint32_t count, struct acre_error *err);
ACRE_API void acre_graph_destroy(struct acre_graph *graph); /* NULL is fine */

#ifdef __cplusplus
}
#endif

#endif
