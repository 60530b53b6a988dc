/* events.h - server-sent events out of bytes that come in any pieces.
 *
 * One thread; no I/O. Lines over the limit are dropped with their event. */
#ifndef ACRE_CLI_EVENTS_H
#define ACRE_CLI_EVENTS_H

#include "core/buf.h"
#include "core/str.h"

struct acre_server_event {
    const char *name; /* "message" when not given */
    const char *data; /* lines joined by '\n' */
};

typedef void acre_events_handler(void *context, const struct acre_server_event *event);

struct acre_events {
    acre_events_handler *handler;
    void *context;
    struct acre_buf line, data;
    char name[64];
    char last_id[64]; /* for Last-Event-ID; "": none yet */
    bool too_long;
    bool after_return; /* the line before ended with '\r' */
};

void acre_events_init(struct acre_events *events, acre_events_handler *handler, void *context);
void acre_events_finish(struct acre_events *events);
void acre_events_feed(struct acre_events *events, struct acre_str bytes);
/* The stream begins anew: half an event is forgotten, the last id stays. */
void acre_events_restart(struct acre_events *events);

#endif
