/* Server-sent events, cut anywhere, are the same events. */
#include "cli/events.h"

#include "support/test.h"

static void note(void *context, const struct server_event *event) {
    acre_buf_printf(context, "[%s|%s]", event->name, event->data);
}

static void events_are_the_same_however_they_are_cut(void) { /* API-2 */
    static const char stream[] = ": hello\n\n"
                                 "id: 7\nevent: job\ndata: {\"a\":1}\n\n"
                                 "data:no blank\r\ndata: second\r\n\r\n"
                                 "event: lost\n\n"
                                 "unknown: field\ndata\n\n"
                                 "id:8\rdata: cr\r\r"
                                 "data: half";
    static const char expect[] = "[job|{\"a\":1}][message|no blank\nsecond][message|][message|cr]";
    for (size_t piece = 1; piece < sizeof(stream); piece++) {
        struct acre_buf seen;
        struct events events;
        acre_buf_init(&seen, 4096);
        events_init(&events, note, &seen);
        for (size_t at = 0; at < sizeof(stream) - 1; at += piece) {
            size_t length = ACRE_MIN(piece, sizeof(stream) - 1 - at);
            events_feed(&events, (struct acre_str){stream + at, length});
        }
        acre_test_context("pieces of %zu", piece);
        CHECK_STR(seen.data, expect);
        CHECK_STR(events.last_id, "8");
        events_restart(&events);
        events_feed(&events, ACRE_STR("data: new\n\n"));
        CHECK_HAS(seen.data, "[message|new]");
        CHECK(strstr(seen.data, "half") == NULL);
        CHECK_STR(events.last_id, "8");
        events_finish(&events);
        acre_buf_finish(&seen);
    }
}

static void too_long_lines_are_dropped_with_their_event(void) {
    struct acre_buf seen;
    struct events events;
    static char much[1 << 16];
    memset(much, 'x', sizeof(much));
    acre_buf_init(&seen, 4096);
    events_init(&events, note, &seen);
    events_feed(&events, ACRE_STR("data: "));
    for (int i = 0; i < 20; i++) {
        events_feed(&events, (struct acre_str){much, sizeof(much)});
    }
    events_feed(&events, ACRE_STR("\n\ndata: after\n\n"));
    CHECK_STR(seen.data, "[message|after]");
    events_finish(&events);
    acre_buf_finish(&seen);
}

static const struct acre_test tests[] = {
    {"events_are_the_same_however_they_are_cut", events_are_the_same_however_they_are_cut, 0},
    {"too_long_lines_are_dropped_with_their_event", too_long_lines_are_dropped_with_their_event, 0},
};

ACRE_TEST_MAIN(tests)
