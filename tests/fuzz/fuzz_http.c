/* HTTP: whatever the bytes and however they are cut, the reader finds the same requests, and what
 * it hands out obeys its rules: a clean path, no control characters, no body over the limit.
 *
 * The first byte chooses how the rest is cut. */
#include "fuzz.h"
#include "http/http.h"
#include "http/reader.h"

#include <strings.h>

enum { BODY_MAX = 200, INPUT_MAX = 40000, REQUESTS_MAX = 64 };

/* What became of the input: a hash of all requests, and how it ended. */
struct outcome {
    uint64_t hash;
    unsigned requests;
    int status; /* 0: more bytes are needed */
    size_t used;
};

static void mix(struct outcome *outcome, const char *bytes, size_t length) {
    outcome->hash = outcome->hash * 1000003 ^ acre_hash_bytes(bytes, length) ^ length;
}

static void check_text(const char *text) {
    for (; *text != '\0'; text++) {
        ACRE_ASSERT((unsigned char)*text >= ' ' && *text != 0x7f);
    }
}

/* No control characters but the one that stands for an encoded slash. */
static void check_path(const char *path) {
    ACRE_ASSERT(path[0] == '/');
    for (const char *at = path; *at != '\0'; at++) {
        ACRE_ASSERT(*at == ACRE_HTTP_SLASH || ((unsigned char)*at >= ' ' && *at != 0x7f));
    }
    struct acre_split split = acre_split_begin(acre_str_from(path), '/');
    struct acre_str part;
    while (acre_split_next(&split, &part)) {
        ACRE_ASSERT(!acre_str_is(part, ".") && !acre_str_is(part, ".."));
    }
    for (struct acre_str rest = acre_str_from(path); rest.length > 0;) {
        size_t length = acre_str_utf8(rest);
        ACRE_ASSERT(length > 0);
        rest.data += length;
        rest.length -= length;
    }
}

static void check_message(const struct http_message *message, struct outcome *outcome) {
    const struct http_head *head = &message->head;
    unsigned framings = 0, hosts = 0;
    ACRE_ASSERT(head->method[0] != '\0' && strlen(head->method) <= ACRE_HTTP_METHOD_MAX);
    check_text(head->method);
    check_path(head->path);
    mix(outcome, head->method, strlen(head->method));
    mix(outcome, head->path, strlen(head->path));
    ACRE_ASSERT(head->header_count <= ACRE_HTTP_HEADERS_MAX);
    for (uint32_t i = 0; i < head->header_count; i++) {
        const struct http_pair *field = &head->headers[i];
        framings += strcasecmp(field->name, "content-length") == 0;
        framings += strcasecmp(field->name, "transfer-encoding") == 0;
        hosts += strcasecmp(field->name, "host") == 0;
        ACRE_ASSERT(strpbrk(field->name, " \t:") == NULL && field->name[0] != '\0');
        mix(outcome, field->name, strlen(field->name));
        mix(outcome, field->value, strlen(field->value));
        for (const char *c = field->value; *c != '\0'; c++) {
            ACRE_ASSERT((unsigned char)*c >= ' ' || *c == '\t');
        }
    }
    ACRE_ASSERT(framings <= 1 && hosts <= 1 && (hosts == 1 || head->is_http10));
    ACRE_ASSERT(head->query_count <= ACRE_HTTP_QUERY_MAX);
    for (uint32_t i = 0; i < head->query_count; i++) {
        check_text(head->query[i].name);
        check_text(head->query[i].value);
        mix(outcome, head->query[i].name, strlen(head->query[i].name));
        mix(outcome, head->query[i].value, strlen(head->query[i].value));
    }
    ACRE_ASSERT(message->body.length <= BODY_MAX);
    ACRE_ASSERT(head->chunked || message->body.length == head->body_bytes);
    mix(outcome, message->body.data != NULL ? message->body.data : "", message->body.length);
}

/* Show the reader the input in pieces of `piece` bytes, as a connection would. */
static struct outcome read_all(struct acre_str input, size_t piece) {
    struct outcome outcome = {0};
    struct http_reader reader;
    struct acre_error err = {0};
    size_t shown = 0;
    http_reader_init(&reader, BODY_MAX);
    for (bool more = true; more && outcome.status == 0 && outcome.requests < REQUESTS_MAX;) {
        more = shown < input.length;
        shown += ACRE_MIN(piece, input.length - shown);
        for (int r = 1; r == 1 && outcome.requests < REQUESTS_MAX;) {
            size_t used = 0;
            struct acre_str view = {input.data + outcome.used, shown - outcome.used};
            r = http_reader_feed(&reader, view, &used, &err);
            ACRE_ASSERT(used <= view.length);
            outcome.used += used;
            if (r == 1) {
                struct http_message message = http_reader_take(&reader);
                check_message(&message, &outcome);
                http_message_finish(&message);
                outcome.requests++;
            } else if (r > 1) {
                ACRE_ASSERT(r >= 400 && r <= 505);
                acre_fuzz_check_error(&err, err.code);
                outcome.status = r;
            }
        }
    }
    http_reader_finish(&reader);
    return outcome;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1 || size > INPUT_MAX) {
        return 0;
    }
    struct acre_str input = {(const char *)data + 1, size - 1};
    struct outcome whole = read_all(input, SIZE_MAX / 2);
    struct outcome cut = read_all(input, (size_t)data[0] % 61 + 1);
    ACRE_ASSERT(whole.requests == cut.requests && whole.hash == cut.hash);
    ACRE_ASSERT(whole.status == cut.status);
    return 0;
}
