/* graph.h - work recorded once and launched as a whole, many times.
 *
 * Between begin and end a stream records (launches, copies between buffers, fills, and waits for
 * events of streams that record for the same graph) instead of working. One thread records. A graph
 * of the same shape as one that was destroyed only brings its arguments up to date. Programs stay
 * until their graphs are destroyed; buffers that were freed are found at the launch. */
#ifndef ACRE_GRAPH_H
#define ACRE_GRAPH_H

#include <acre/kernel.h>

#ifdef __cplusplus
extern "C" {
#endif

struct acre_graph;

ACRE_API int acre_graph_begin(struct acre_stream *stream, struct acre_error *err);
ACRE_API int acre_graph_end(struct acre_stream *stream, struct acre_graph **ret_graph,
                            struct acre_error *err);
ACRE_API int acre_graph_launch(struct acre_graph *graph, struct acre_stream *stream,
                               struct acre_error *err);
/* Other arguments for the launch number `node` (in order of recording) from the next launch on. */
ACRE_API int acre_graph_update(struct acre_graph *graph, uint32_t node, struct acre_grid grid,
                               const struct acre_arg *args, uint32_t count, struct acre_error *err);
ACRE_API void acre_graph_destroy(struct acre_graph *graph); /* NULL is fine */

#ifdef __cplusplus
}
#endif

#endif
