/* Server-sent events (API-2): ids, topics, coming back, being too late, and going away. */
#include "http/problem.h"
#include "http/sse.h"
#include "support/http_kit.h"
#include "support/test.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

struct hub {
    struct http_kit kit;
    struct acre_sse_options options;
    struct acre_sse *sse; /* loop thread only */
    uint32_t followers;
    uint32_t left, seen_left;
    uint64_t last;
};

static void note_left(void *context) {
    struct hub *hub = context;
    hub->left++;
}

/* /events/TOPIC */
static void handle(void *context, struct acre_exchange *exchange,
                   const struct acre_http_request *request) {
    struct hub *hub = context;
    struct acre_error err = {0};
    uint64_t topic = strtoull(request->path + strlen("/events/"), NULL, 10);
    if (acre_sse_follow(hub->sse, exchange, topic, note_left, hub, &err) < 0) {
        acre_problem_answer(exchange, &err);
    }
}

static void create(void *context) {
    struct hub *hub = context;
    hub->options.loop = hub->kit.loop;
    hub->sse = acre_sse_create(&hub->options);
}

static void start(struct hub *hub) {
    hub->kit.options.handler = handle;
    hub->kit.options.context = hub;
    http_kit_start(&hub->kit);
    http_kit_do(&hub->kit, create, hub);
}

static void destroy(void *context) {
    struct hub *hub = context;
    acre_sse_destroy(hub->sse);
    acre_sse_destroy(NULL);
}

static void stop(struct hub *hub) {
    http_kit_do(&hub->kit, destroy, hub);
    http_kit_stop(&hub->kit);
}

struct publication {
    struct hub *hub;
    uint64_t topic;
    const char *data;
};

static void publish(void *context) {
    struct publication *p = context;
    acre_sse_publish(p->hub->sse, "job", p->topic, acre_str_from(p->data));
}

static void say(struct hub *hub, uint64_t topic, const char *data) {
    struct publication publication = {hub, topic, data};
    http_kit_do(&hub->kit, publish, &publication);
}

static void look(void *context) {
    struct hub *hub = context;
    hub->followers = acre_sse_followers(hub->sse);
    hub->last = acre_sse_last_id(hub->sse);
    hub->seen_left = hub->left;
}

static void wait_for_followers(struct hub *hub, uint32_t count) {
    for (int i = 0;; i++) {
        http_kit_do(&hub->kit, look, hub);
        if (hub->followers == count) {
            return;
        }
        REQUIRE(i < 60000);
        poll(NULL, 0, 1);
    }
}

static struct http_client follow(struct hub *hub, uint64_t topic, const char *last) {
    char request[256];
    struct http_client client = http_client_open(&hub->kit);
    /* HTTP/1.0: no chunks between the events */
    snprintf(request, sizeof(request), "GET /events/%d HTTP/1.0\r\n%s%s%s\r\n", (int)topic,
             last != NULL ? "Last-Event-ID: " : "", last != NULL ? last : "",
             last != NULL ? "\r\n" : "");
    http_client_puts(&client, request);
    return client;
}

/* Read until `text` was seen; what came before it since the head, too. */
static void expect(struct http_client *client, const char *text) {
    while (strstr(client->in.data, text) == NULL) {
        REQUIRE(http_client_more(client));
    }
}

static void check_events(const struct http_client *client, const char *events) {
    const char *start = strstr(client->in.data, "retry: 2000\n\n");
    REQUIRE(start != NULL);
    CHECK_STR(start + strlen("retry: 2000\n\n"), events);
}

static void events_arrive_with_ids_and_by_topic(void) {
    struct hub hub = {0};
    start(&hub);
    struct http_client all = follow(&hub, 0, NULL);
    struct http_client seven = follow(&hub, 7, NULL);
    wait_for_followers(&hub, 2);
    say(&hub, 7, "{\"a\":1}");
    say(&hub, 8, "{\"b\":2}");
    say(&hub, 7, "{\"c\":3}");
    expect(&all, "{\"c\":3}\n\n");
    expect(&seven, "{\"c\":3}\n\n");
    CHECK_HAS(all.in.data, "Content-Type: text/event-stream\r\n");
    CHECK_HAS(all.in.data, "Cache-Control: no-store\r\n");
    check_events(&all, "id: 1\nevent: job\ndata: {\"a\":1}\n\n"
                       "id: 2\nevent: job\ndata: {\"b\":2}\n\n"
                       "id: 3\nevent: job\ndata: {\"c\":3}\n\n");
    check_events(&seven, "id: 1\nevent: job\ndata: {\"a\":1}\n\n"
                         "id: 3\nevent: job\ndata: {\"c\":3}\n\n");
    http_client_close(&all);
    wait_for_followers(&hub, 1);
    http_client_close(&seven);
    wait_for_followers(&hub, 0);
    stop(&hub);
}

/* The ring holds 4: ids 3 to 6 after six events. */
static void coming_back_gets_what_was_missed_or_a_reset(void) {
    static const struct {
        uint64_t topic;
        const char *last, *events;
    } rows[] = {
        {0, "6", ""},
        {0, "5", "id: 6\nevent: job\ndata: 6\n\n"},
        {0, "2",
         "id: 3\nevent: job\ndata: 3\n\nid: 4\nevent: job\ndata: 4\n\n"
         "id: 5\nevent: job\ndata: 5\n\nid: 6\nevent: job\ndata: 6\n\n"},
        {1, "2", "id: 3\nevent: job\ndata: 3\n\nid: 5\nevent: job\ndata: 5\n\n"},
        {0, "1", "id: 6\nevent: reset\ndata: {\"asked\":1,\"last\":6}\n\n"},
        {0, "0", "id: 6\nevent: reset\ndata: {\"asked\":0,\"last\":6}\n\n"},
        {0, "7", "id: 6\nevent: reset\ndata: {\"asked\":7,\"last\":6}\n\n"},
        {0, "999999999999", "id: 6\nevent: reset\ndata: {\"asked\":999999999999,\"last\":6}\n\n"},
        {0, "", ""},
    };
    struct hub hub = {.options.ring = 4};
    start(&hub);
    for (int i = 1; i <= 6; i++) {
        char data[16];
        snprintf(data, sizeof(data), "%d", i);
        say(&hub, i % 2 == 1 ? 1 : 2, data);
    }
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        acre_test_context("after '%s'", rows[i].last);
        struct http_client client = follow(&hub, rows[i].topic, rows[i].last);
        expect(&client, "retry: 2000\n\n");
        expect(&client, rows[i].events);
        check_events(&client, rows[i].events);
        http_client_close(&client);
    }
    wait_for_followers(&hub, 0);
    CHECK_U64(hub.last, 6);
    stop(&hub);
}

static void ids_go_on_after_a_restart(void) {
    struct hub hub = {.options.first_id = 1000};
    start(&hub);
    struct http_client client = follow(&hub, 0, "900");
    expect(&client, "event: reset\ndata: {\"asked\":900,\"last\":999}\n\n");
    say(&hub, 0, "x");
    expect(&client, "id: 1000\nevent: job\ndata: x\n\n");
    http_client_close(&client);
    client = follow(&hub, 0, "999"); /* nothing was missed in between */
    expect(&client, "retry: 2000\n\nid: 1000\nevent: job\n");
    http_client_close(&client);
    stop(&hub);
}

static void what_does_not_fit_a_stream_is_a_reset(void) {
    struct hub hub = {0};
    start(&hub);
    static char data[60 * 1024];
    memset(data, 'x', sizeof(data) - 1);
    for (int i = 0; i < 10; i++) {
        say(&hub, 0, data);
    }
    struct http_client client = follow(&hub, 0, "1"); /* nine of 60 KiB are too many */
    expect(&client, "event: reset\n");
    http_client_close(&client);
    client = follow(&hub, 0, "5");
    expect(&client, "id: 10\nevent: job\n");
    http_client_close(&client);
    stop(&hub);
}

static void a_bad_id_is_refused_and_who_left_is_counted(void) {
    struct hub hub = {0};
    start(&hub);
    struct http_client client = follow(&hub, 0, "abc");
    struct http_answer answer;
    REQUIRE(http_client_read(&client, &answer));
    CHECK_EQ(answer.status, 400);
    CHECK_HAS(answer.body.data, "\"field\":\"Last-Event-ID\"");
    http_answer_free(&answer);
    http_client_close(&client);
    struct http_client one = follow(&hub, 0, NULL);
    struct http_client two = follow(&hub, 0, NULL);
    wait_for_followers(&hub, 2);
    http_client_close(&one);
    wait_for_followers(&hub, 1);
    CHECK_EQ(hub.seen_left, 1); /* the one who was refused never came */
    stop(&hub);
    CHECK_EQ(hub.left, 2);
    http_client_close(&two);
}

static void a_heartbeat_tells_the_newest_id(void) {
    struct hub hub = {.options.heartbeat_ms = 20};
    start(&hub);
    struct http_client client = follow(&hub, 42, NULL);
    wait_for_followers(&hub, 1);
    say(&hub, 1, "not for 42");
    expect(&client, ": alive\nid: 1\n\n");
    CHECK(strstr(client.in.data, "not for 42") == NULL);
    http_client_close(&client);
    wait_for_followers(&hub, 0);
    stop(&hub);
}

static void the_end_of_the_hub_ends_the_streams(void) {
    struct hub hub = {0};
    start(&hub);
    struct http_client client = follow(&hub, 0, NULL);
    wait_for_followers(&hub, 1);
    say(&hub, 0, "last words");
    http_kit_do(&hub.kit, destroy, &hub);
    CHECK(http_client_ends(&client));
    CHECK_HAS(client.in.data, "data: last words\n\n");
    http_client_close(&client);
    http_kit_stop(&hub.kit);
}

/* One that never reads is cut; the others miss nothing. */
static void a_slow_follower_harms_nobody(void) {
    struct hub hub = {0};
    start(&hub);
    struct http_client slow = follow(&hub, 0, NULL);
    int bytes = 4096;
    setsockopt(slow.fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
    struct http_client good = follow(&hub, 0, NULL);
    wait_for_followers(&hub, 2);
    static char data[32 * 1024];
    memset(data, 'x', sizeof(data) - 1);
    for (int i = 0; i < 2000; i++) {
        say(&hub, 0, data);
        while (good.in.length < (size_t)i * sizeof(data)) {
            REQUIRE(http_client_more(&good));
        }
        http_kit_do(&hub.kit, look, &hub);
        if (hub.followers == 1) {
            break;
        }
    }
    CHECK_EQ(hub.followers, 1);
    say(&hub, 0, "still here");
    expect(&good, "still here");
    http_client_close(&slow);
    http_client_close(&good);
    stop(&hub);
}

static const struct acre_test tests[] = {
    {"events_arrive_with_ids_and_by_topic", events_arrive_with_ids_and_by_topic, 0},
    {"coming_back_gets_what_was_missed_or_a_reset", coming_back_gets_what_was_missed_or_a_reset, 0},
    {"ids_go_on_after_a_restart", ids_go_on_after_a_restart, 0},
    {"what_does_not_fit_a_stream_is_a_reset", what_does_not_fit_a_stream_is_a_reset, 0},
    {"a_bad_id_is_refused_and_who_left_is_counted", a_bad_id_is_refused_and_who_left_is_counted, 0},
    {"a_heartbeat_tells_the_newest_id", a_heartbeat_tells_the_newest_id, 0},
    {"the_end_of_the_hub_ends_the_streams", the_end_of_the_hub_ends_the_streams, 0},
    {"a_slow_follower_harms_nobody", a_slow_follower_harms_nobody, 0},
};

ACRE_TEST_MAIN(tests)
