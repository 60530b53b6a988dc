/* buffer.h - the table of live buffers of a context, and how kernels' arguments are resolved.
 *
 * Slots are reused, each time with a new generation; an id that does not match is reported as
 * stale. Lookup is lock-free (slots never move); allocating and freeing need context->lock. */
#ifndef ACRE_COMPUTE_MEMORY_BUFFER_H
#define ACRE_COMPUTE_MEMORY_BUFFER_H

#include "compute/inner.h"

/* A live buffer where the back end has it. */
struct buffer_range {
    uint64_t region; /* handle */
    uint64_t offset;
    uint64_t bytes;
    enum acre_memory kind;
    void *host; /* NULL: device memory */
};

/* Gate held. `what` names the argument in messages ("argument 2 'out'"). ACRE_ENOTFOUND: never was,
 * or freed; ACRE_EINVALID: of another context (the text says which device), or offset + bytes past
 * its end; ACRE_EUNAVAILABLE: lost with its context. */
int buffer_resolve(struct acre_context *context, struct acre_buffer buffer, uint64_t offset,
                   uint64_t bytes, const char *what, struct buffer_range *ret_range,
                   struct acre_error *err);
/* Note that `stream` uses it: freeing on another stream then waits for that. Gate held. */
void buffer_used(struct acre_context *context, struct acre_buffer buffer,
                 const struct acre_stream *stream);
/* The pinned or mapped buffer that holds these host bytes, whole. False: plain memory. */
bool buffer_of_host(struct acre_context *context, const void *host, uint64_t bytes,
                    struct buffer_range *ret_range);

/* The same as a buffer: id 0 for plain memory. */
struct acre_buffer buffer_at_host(struct acre_context *context, const void *host, uint64_t bytes);
/* The context of a buffer's id, of the same runtime; NULL: there is none (any more). */
struct acre_context *buffer_context(struct acre_compute *compute, struct acre_buffer buffer);

int buffers_create(struct acre_context *context, struct acre_error *err);
void buffers_destroy(struct acre_context *context); /* all regions too; seat still open */
/* The context was lost: device memory is gone, host memory is made known to the new seat. Gate
 * written. */
int buffers_rebuild(struct acre_context *context, struct acre_error *err);
/* Even, above all that its ids had: none of them comes back when the context's number does. */
uint32_t buffers_generation(const struct acre_context *context);
void buffers_count(struct acre_context *context, uint32_t *ret_live, uint32_t *ret_lost);

#endif
