/* graph.h - streams that record instead of working. */
#ifndef ACRE_COMPUTE_GRAPH_H
#define ACRE_COMPUTE_GRAPH_H

#include "compute/launch.h"

/* The calls of a stream that records (stream->recording is not NULL), entered. */
int recording_launch(struct acre_stream *stream, struct acre_kernel *kernel,
                     const struct launch *launch, struct acre_error *err);
int recording_copy(struct acre_stream *stream, const struct acre_native_copy *copy,
                   struct acre_error *err);
int recording_fill(struct acre_stream *stream, const struct acre_native_fill *fill,
                   struct acre_error *err);
/* Not entered. */
int recording_event(struct acre_stream *stream, struct acre_event *ret_event,
                    struct acre_error *err);
int recording_after(struct acre_stream *stream, struct acre_event event, struct acre_error *err);
void recording_drop(struct acre_stream *stream); /* none is fine */

#endif
