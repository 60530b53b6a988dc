/* sse.c - a ring of ready-made texts.
 *
 * An event is formatted once, kept in the ring as the bytes that go out, and handed to every
 * follower whose topic fits. Ids are consecutive, so the ring needs no index: an id's place is its
 * remainder. What a returning follower missed is sent at once when it fits the buffer of a stream;
 * more than that is treated like an id that is too old.
 *
 * The heartbeat carries the newest id in an event without data, which clients note and do not show:
 * so a follower of a quiet topic still comes back with an id that the ring knows. */
#include "http/sse.h"

#include "core/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    RING = 8192,
    HEARTBEAT_MS = 15000,
    EVENT_MAX = 64 * 1024,
    REPLAY_MAX = 512 * 1024, /* half of what may wait for a stream */
    RETRY_MS = 2000,
};

struct sse_event {
    char *text; /* NULL: never used */
    size_t length;
    uint64_t topic;
};

struct follower {
    struct acre_sse *sse; /* NULL: it is gone */
    struct follower *next, **previous;
    struct acre_exchange *exchange;
    uint64_t topic;
    acre_loop_function *gone; /* may be NULL */
    void *context;
};

struct acre_sse {
    struct acre_loop *loop;
    struct sse_event *ring;
    uint32_t size;
    uint64_t first_id, next_id;
    struct follower *followers;
    uint32_t count;
    uint64_t heartbeat_ms;
    struct acre_timer *heartbeat; /* while there are followers */
};

struct acre_sse *acre_sse_create(const struct acre_sse_options *options) {
    struct acre_sse *sse = acre_calloc(1, sizeof(*sse));
    sse->loop = options->loop;
    sse->size = options->ring != 0 ? options->ring : RING;
    sse->ring = acre_calloc(sse->size, sizeof(*sse->ring));
    sse->heartbeat_ms = options->heartbeat_ms != 0 ? options->heartbeat_ms : HEARTBEAT_MS;
    sse->first_id = sse->next_id = options->first_id != 0 ? options->first_id : 1;
    return sse;
}

static void leave(struct follower *follower) {
    struct acre_sse *sse = follower->sse;
    *follower->previous = follower->next;
    if (follower->next != NULL) {
        follower->next->previous = follower->previous;
    }
    follower->sse = NULL;
    sse->count--;
    if (sse->count == 0) {
        acre_timer_cancel(sse->heartbeat);
        sse->heartbeat = NULL;
    }
}

static void on_closed(void *context) {
    struct follower *follower = context;
    if (follower->sse != NULL) {
        leave(follower);
    }
    if (follower->gone != NULL) {
        follower->gone(follower->context);
    }
    free(follower);
}

void acre_sse_destroy(struct acre_sse *sse) {
    if (sse == NULL) {
        return;
    }
    while (sse->followers != NULL) {
        struct follower *follower = sse->followers; /* freed by on_closed */
        leave(follower);
        acre_http_end(follower->exchange);
    }
    for (uint32_t i = 0; i < sse->size; i++) {
        free(sse->ring[i].text);
    }
    free(sse->ring);
    free(sse);
}

static void on_heartbeat(void *context) {
    struct acre_sse *sse = context;
    char text[64];
    int length = snprintf(text, sizeof(text), ": alive\nid: %" PRIu64 "\n\n", sse->next_id - 1);
    for (struct follower *f = sse->followers; f != NULL; f = f->next) {
        acre_http_send(f->exchange, (struct acre_str){text, (size_t)length});
    }
}

static bool wants(const struct follower *follower, uint64_t topic) {
    return follower->topic == 0 || follower->topic == topic;
}

uint64_t acre_sse_publish(struct acre_sse *sse, const char *name, uint64_t topic,
                          struct acre_str data) {
    ACRE_ASSERT(data.length < EVENT_MAX);
    ACRE_ASSERT(data.length == 0 || (memchr(data.data, '\n', data.length) == NULL &&
                                     memchr(data.data, '\r', data.length) == NULL));
    uint64_t id = sse->next_id++;
    struct sse_event *event = &sse->ring[id % sse->size];
    struct acre_buf text;
    acre_buf_init(&text, 2 * (size_t)EVENT_MAX);
    acre_buf_printf(&text, "id: %" PRIu64 "\nevent: %s\ndata: ", id, name);
    acre_buf_append(&text, data.data, data.length);
    acre_buf_puts(&text, "\n\n");
    ACRE_ASSERT(!acre_buf_failed(&text));
    free(event->text);
    *event = (struct sse_event){.length = text.length, .topic = topic};
    event->text = acre_realloc(text.data, text.length, 1); /* no larger than it is */
    for (struct follower *f = sse->followers; f != NULL; f = f->next) {
        if (wants(f, topic)) {
            acre_http_send(f->exchange, (struct acre_str){event->text, event->length});
        }
    }
    return id;
}

/* Whether everything after `last` is in the ring and can be sent at once. */
static bool can_resume(const struct acre_sse *sse, uint64_t last, uint64_t topic) {
    uint64_t kept = ACRE_MIN(sse->next_id - sse->first_id, (uint64_t)sse->size);
    if (last >= sse->next_id || last + 1 < sse->next_id - kept) {
        return false;
    }
    size_t bytes = 0;
    for (uint64_t id = last + 1; id < sse->next_id && bytes <= REPLAY_MAX; id++) {
        const struct sse_event *event = &sse->ring[id % sse->size];
        bytes += topic == 0 || topic == event->topic ? event->length : 0;
    }
    return bytes <= REPLAY_MAX;
}

static void resume(struct acre_sse *sse, struct follower *follower, uint64_t last) {
    if (!can_resume(sse, last, follower->topic)) {
        char text[128];
        int length = snprintf(text, sizeof(text),
                              "id: %" PRIu64 "\nevent: reset\ndata: {\"asked\":%" PRIu64
                              ",\"last\":%" PRIu64 "}\n\n",
                              sse->next_id - 1, last, sse->next_id - 1);
        acre_http_send(follower->exchange, (struct acre_str){text, (size_t)length});
        return;
    }
    for (uint64_t id = last + 1; id < sse->next_id; id++) {
        const struct sse_event *event = &sse->ring[id % sse->size];
        if (wants(follower, event->topic)) {
            acre_http_send(follower->exchange, (struct acre_str){event->text, event->length});
        }
    }
}

int acre_sse_follow(struct acre_sse *sse, struct acre_exchange *exchange, uint64_t topic,
                    acre_loop_function *gone, void *context, struct acre_error *err) {
    const char *asked = acre_http_header(exchange, "Last-Event-ID");
    asked = asked != NULL ? asked : acre_http_query(exchange, "last_event_id");
    bool resumes = asked != NULL && asked[0] != '\0';
    uint64_t last = 0;
    if (resumes) {
        int r = acre_parse_count("Last-Event-ID", asked, 0, UINT64_MAX / 2, &last, err);
        if (r < 0) {
            return r;
        }
    }
    struct follower *follower = acre_calloc(1, sizeof(*follower));
    *follower = (struct follower){.sse = sse,
                                  .next = sse->followers,
                                  .exchange = exchange,
                                  .topic = topic,
                                  .gone = gone,
                                  .context = context};
    follower->previous = &sse->followers;
    if (follower->next != NULL) {
        follower->next->previous = &follower->next;
    }
    sse->followers = follower;
    if (sse->count++ == 0) {
        sse->heartbeat =
            acre_loop_timer(sse->loop, sse->heartbeat_ms, sse->heartbeat_ms, on_heartbeat, sse);
    }
    char text[32];
    int length = snprintf(text, sizeof(text), "retry: %d\n\n", (int)RETRY_MS);
    acre_http_add_header(exchange, "Cache-Control", "no-store");
    acre_http_stream(exchange, 200, "text/event-stream", on_closed, follower);
    acre_http_send(exchange, (struct acre_str){text, (size_t)length});
    if (resumes) {
        resume(sse, follower, last);
    }
    return 0;
}

uint32_t acre_sse_followers(const struct acre_sse *sse) {
    return sse->count;
}

uint64_t acre_sse_last_id(const struct acre_sse *sse) {
    return sse->next_id - 1;
}
