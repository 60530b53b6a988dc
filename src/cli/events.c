/* events.c - parses HTML's event stream format byte by byte: lines end with LF, CR or CRLF;
 * "field: value" lines fill an event and an empty line ends it; a line that starts with ':' only
 * keeps the connection alive. */
#include "cli/events.h"

#include <string.h>

enum { LINE_MAX_BYTES = 1 << 20 };

void events_init(struct events *events, events_handler *handler, void *context) {
    *events = (struct events){.handler = handler, .context = context};
    acre_buf_init(&events->line, LINE_MAX_BYTES);
    acre_buf_init(&events->data, LINE_MAX_BYTES);
}

void events_finish(struct events *events) {
    acre_buf_finish(&events->line);
    acre_buf_finish(&events->data);
}

void events_restart(struct events *events) {
    acre_buf_clear(&events->line);
    acre_buf_clear(&events->data);
    events->name[0] = '\0';
    events->too_long = false;
    events->after_return = false;
}

static void end_event(struct events *events) {
    if (events->data.length > 0 && !events->too_long) {
        events->data.data[--events->data.length] = '\0'; /* the '\n' after the last line */
        struct server_event event = {.name = events->name[0] != '\0' ? events->name : "message",
                                     .data = events->data.data};
        events->handler(events->context, &event);
    }
    acre_buf_clear(&events->data);
    events->name[0] = '\0';
    events->too_long = false;
}

static void end_line(struct events *events) {
    struct acre_str line = {events->line.data, events->line.length};
    if (acre_buf_failed(&events->line)) {
        events->too_long = true;
    } else if (line.length == 0) {
        end_event(events);
    } else {
        const char *colon = memchr(line.data, ':', line.length);
        size_t name = colon != NULL ? (size_t)(colon - line.data) : line.length;
        struct acre_str field = {line.data, name};
        struct acre_str value = {line.data + line.length, 0};
        if (colon != NULL) {
            value = (struct acre_str){colon + 1, line.length - name - 1};
            if (value.length > 0 && value.data[0] == ' ') {
                value.data++;
                value.length--;
            }
        }
        if (acre_str_is(field, "data")) {
            acre_buf_append(&events->data, value.data, value.length);
            acre_buf_putc(&events->data, '\n');
            events->too_long = events->too_long || acre_buf_failed(&events->data);
        } else if (acre_str_is(field, "event")) {
            acre_str_copy(events->name, sizeof(events->name), value);
        } else if (acre_str_is(field, "id")) {
            acre_str_copy(events->last_id, sizeof(events->last_id), value);
        }
    }
    acre_buf_clear(&events->line);
}

void events_feed(struct events *events, struct acre_str bytes) {
    for (size_t i = 0; i < bytes.length; i++) {
        char c = bytes.data[i];
        bool second = c == '\n' && events->after_return;
        events->after_return = c == '\r';
        if (second) {
            continue; /* of CRLF */
        }
        if (c == '\n' || c == '\r') {
            end_line(events);
        } else {
            acre_buf_putc(&events->line, c);
        }
    }
}
