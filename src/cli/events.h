/* events.h - parses server-sent events from bytes that arrive in pieces.
 *
 * One thread; no I/O. An event with a line over the limit is dropped. */
#ifndef ACRE_CLI_EVENTS_H
#define ACRE_CLI_EVENTS_H

#include "core/buf.h"
#include "core/str.h"

struct server_event {
    const char *name; /* "message" when not given */
    const char *data; /* lines joined by '\n' */
};

typedef void events_handler(void *context, const struct server_event *event);

struct events {
    events_handler *handler;
    void *context;
    struct acre_buf line, data;
    char name[64];
    char last_id[64]; /* for Last-Event-ID; "": none yet */
    bool too_long;
    bool after_return; /* the line before ended with '\r' */
};

void events_init(struct events *events, events_handler *handler, void *context);
void events_finish(struct events *events);
void events_feed(struct events *events, struct acre_str bytes);
/* The stream begins anew: half an event is forgotten, the last id stays. */
void events_restart(struct events *events);

#endif
