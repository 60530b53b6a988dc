/* stream.h - streams and events: the order in which work runs, and its progress.
 *
 * Only one thread at a time may use a stream; any thread may wait for its events. */
#ifndef ACRE_STREAM_H
#define ACRE_STREAM_H

#include <acre/context.h>

#ifdef __cplusplus
extern "C" {
#endif

struct acre_stream;

/* A point in a stream: it is reached when all work queued before it is done. A plain value: copy
 * it freely, never free it. Valid as long as its stream. */
struct acre_event {
    struct acre_stream *stream;
    uint64_t sequence;
};

enum { ACRE_FOREVER = -1 };

/* Belongs to its context, which closes it. ACRE_ELIMIT: the context has too many streams. */
ACRE_API int acre_stream_create(struct acre_context *context, struct acre_stream **ret_stream,
                                struct acre_error *err);
ACRE_API void acre_stream_destroy(struct acre_stream *stream); /* waits for it; NULL is fine */
ACRE_API int acre_event_record(struct acre_stream *stream, struct acre_event *ret_event,
                               struct acre_error *err);
/* 0: reached; ACRE_ETIMEOUT: not within `timeout_ms` (0: check only; or ACRE_FOREVER); other codes:
 * the work before it failed. */
ACRE_API int acre_event_wait(struct acre_event event, int timeout_ms, struct acre_error *err);
/* The same for everything queued on the stream so far. */
ACRE_API int acre_stream_sync(struct acre_stream *stream, int timeout_ms, struct acre_error *err);
/* Later work on `stream` waits for the event, which may belong to any stream. For an event of
 * another context this call itself waits: devices cannot wait for each other's events. */
ACRE_API int acre_stream_after(struct acre_stream *stream, struct acre_event event,
                               struct acre_error *err);
/* For poll loops: adds 1 to the eventfd when everything queued so far is done or lost;
 * acre_event_wait and acre_stream_sync report which. If the context is lost at that moment, 1 may
 * be added twice. You may close the descriptor at once: the library keeps a copy, at least until
 * then and at most until the context is closed. Remove it from an epoll set before you close it:
 * epoll reports a file for as long as anyone has it open. */
ACRE_API int acre_stream_notify(struct acre_stream *stream, int event_fd, struct acre_error *err);

#ifdef __cplusplus
}
#endif

#endif
