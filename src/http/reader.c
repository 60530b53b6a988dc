/* reader.c - a state a part of the request; each step uses up what it understands.
 *
 * The head is used only as a whole (its scan remembers where it was, so that drips cost nothing
 * twice); so are the short lines between chunks. Body bytes are used as they come. The buffer of a
 * body grows with what has arrived, never with what was announced. */
#include "http/reader.h"

#include <string.h>

enum {
    BAD_REQUEST = 400,
    TOO_LARGE = 413,
    CHUNK_LINE_MAX = 256, /* sizes have up to 16 digits; nobody uses extensions */
    TRAILER_MAX = 4096,
    ARENA_MAX = 64 * 1024 * 1024, /* heads take 16 KiB of it; the rest is for handlers */
};

void http_message_finish(struct http_message *message) {
    acre_arena_destroy(message->arena);
    acre_buf_finish(&message->body);
    *message = (struct http_message){0};
}

void http_reader_init(struct http_reader *reader, uint64_t body_max) {
    *reader = (struct http_reader){.body_max = body_max};
}

void http_reader_finish(struct http_reader *reader) {
    http_message_finish(&reader->message);
}

bool http_reader_is_inside(const struct http_reader *reader) {
    return reader->state != ACRE_HTTP_HEAD;
}

bool http_reader_wants_continue(const struct http_reader *reader) {
    return reader->message.head.expects_continue &&
           (reader->state == ACRE_HTTP_BODY || reader->state == ACRE_HTTP_CHUNK_SIZE) &&
           reader->message.body.length == 0;
}

struct http_message http_reader_take(struct http_reader *reader) {
    ACRE_ASSERT(reader->state == ACRE_HTTP_DONE);
    struct http_message message = reader->message;
    http_reader_init(reader, reader->body_max);
    return message;
}

static int refuse(struct acre_error *err, const char *what, const char *accepted) {
    acre_fail(err, ACRE_EINVALID, "%s; accepted: %s", what, accepted);
    return BAD_REQUEST;
}

/* Each step: 1 it made progress (or is done), 0 it needs more, else a status. It adds to *used. */

static int read_head(struct http_reader *reader, struct acre_str bytes, size_t *used,
                     struct acre_error *err) {
    int r = http_head_scan(&reader->scan, bytes, err);
    if (r != 1) {
        return r;
    }
    size_t length = reader->scan.end;
    reader->scan = (struct http_scan){0};
    if (length == 2) {
        *used += length;
        bool again = reader->skipped_line;
        reader->skipped_line = true;
        return again ? refuse(err, "an empty line instead of a request", "METHOD /path HTTP/1.1")
                     : 1;
    }
    reader->message.arena = acre_arena_create(ARENA_MAX);
    struct acre_str head = {bytes.data, length};
    int status =
        http_head_parse(head, reader->body_max, reader->message.arena, &reader->message.head, err);
    if (status != 0) {
        return status;
    }
    *used += length;
    reader->left = reader->message.head.body_bytes;
    reader->state = reader->message.head.chunked ? ACRE_HTTP_CHUNK_SIZE
                    : reader->left > 0           ? ACRE_HTTP_BODY
                                                 : ACRE_HTTP_DONE;
    if (reader->state != ACRE_HTTP_DONE) {
        acre_buf_init(&reader->message.body, reader->body_max);
    }
    return 1;
}

static int read_bytes(struct http_reader *reader, struct acre_str bytes, size_t *used) {
    size_t length = (size_t)ACRE_MIN((uint64_t)bytes.length, reader->left);
    int r = acre_buf_append(&reader->message.body, bytes.data, length);
    ACRE_ASSERT(r == 0); /* `left` never goes past the limit */
    *used += length;
    reader->left -= length;
    if (reader->left > 0) {
        return 0;
    }
    reader->state = reader->state == ACRE_HTTP_BODY ? ACRE_HTTP_DONE : ACRE_HTTP_CHUNK_END;
    return 1;
}

/* A line of at most `max` bytes without its CR LF; 0 when its end is not here yet. */
static int find_line(struct acre_str bytes, size_t max, struct acre_str *ret_line,
                     struct acre_error *err) {
    for (size_t i = 0; i < bytes.length && i <= max; i++) {
        unsigned char c = (unsigned char)bytes.data[i];
        if (c == '\r' && i + 1 == bytes.length) {
            return 0;
        }
        if (c == '\r' && bytes.data[i + 1] == '\n') {
            *ret_line = (struct acre_str){bytes.data, i};
            return 1;
        }
        if ((c < ' ' && c != '\t') || c == 0x7f) {
            return refuse(err, "control character between chunks", "lines that end with CR LF");
        }
    }
    return bytes.length > max ? refuse(err, "a line between chunks is too long", "shorter lines")
                              : 0;
}

/* "1a" or "1a;extension": digits, then nothing or blanks and a semicolon. */
static int parse_size(struct acre_str line, uint64_t *ret_size, struct acre_error *err) {
    uint64_t size = 0;
    size_t i = 0;
    for (; i < line.length; i++) {
        char lower = (char)(line.data[i] | 0x20);
        bool is_digit = line.data[i] >= '0' && line.data[i] <= '9';
        if (!is_digit && (lower < 'a' || lower > 'f')) {
            break;
        }
        uint64_t digit = (uint64_t)(is_digit ? line.data[i] - '0' : lower - 'a' + 10);
        if (size > UINT64_MAX >> 4) {
            return refuse(err, "the size of a chunk does not fit in 64 bits", "hexadecimal digits");
        }
        size = size << 4 | digit;
    }
    struct acre_str rest = acre_str_trim((struct acre_str){line.data + i, line.length - i});
    if (i == 0 || (rest.length > 0 && rest.data[0] != ';') ||
        (rest.length == 0 && i < line.length)) {
        return refuse(err, "the size of a chunk is not a number", "hexadecimal digits");
    }
    *ret_size = size;
    return 0;
}

static int read_chunk_size(struct http_reader *reader, struct acre_str bytes, size_t *used,
                           struct acre_error *err) {
    struct acre_str line;
    int r = find_line(bytes, CHUNK_LINE_MAX, &line, err);
    if (r != 1) {
        return r;
    }
    uint64_t size = 0;
    int status = parse_size(line, &size, err);
    if (status != 0) {
        return status;
    }
    if (size > reader->body_max - reader->message.body.length) {
        acre_fail(err, ACRE_ELIMIT, "the body is too long; accepted: at most %llu bytes",
                  (unsigned long long)reader->body_max);
        return TOO_LARGE;
    }
    *used += line.length + 2;
    reader->left = size;
    reader->state = size > 0 ? ACRE_HTTP_CHUNK_DATA : ACRE_HTTP_TRAILER;
    return 1;
}

static int read_chunk_end(struct http_reader *reader, struct acre_str bytes, size_t *used,
                          struct acre_error *err) {
    if (bytes.data[0] != '\r' || (bytes.length > 1 && bytes.data[1] != '\n')) {
        return refuse(err, "a chunk is not followed by CR LF", "chunks of the size they announce");
    }
    if (bytes.length < 2) {
        return 0;
    }
    *used += 2;
    reader->state = ACRE_HTTP_CHUNK_SIZE;
    return 1;
}

static int read_trailer(struct http_reader *reader, struct acre_str bytes, size_t *used,
                        struct acre_error *err) {
    struct acre_str line, name, value;
    int r = find_line(bytes, TRAILER_MAX - reader->trailer_bytes, &line, err);
    if (r != 1) {
        return r;
    }
    if (line.length > 0 && !http_header_split(line, &name, &value)) {
        return refuse(err, "a trailer is not a header", "name: value");
    }
    *used += line.length + 2;
    reader->trailer_bytes += line.length;
    if (line.length == 0) {
        reader->state = ACRE_HTTP_DONE;
    }
    return 1;
}

static int step(struct http_reader *reader, struct acre_str bytes, size_t *used,
                struct acre_error *err) {
    switch (reader->state) {
    case ACRE_HTTP_HEAD:
        return read_head(reader, bytes, used, err);
    case ACRE_HTTP_BODY:
    case ACRE_HTTP_CHUNK_DATA:
        return read_bytes(reader, bytes, used);
    case ACRE_HTTP_CHUNK_SIZE:
        return read_chunk_size(reader, bytes, used, err);
    case ACRE_HTTP_CHUNK_END:
        return read_chunk_end(reader, bytes, used, err);
    case ACRE_HTTP_TRAILER:
        return read_trailer(reader, bytes, used, err);
    case ACRE_HTTP_DONE:
        break;
    }
    return 1;
}

int http_reader_feed(struct http_reader *reader, struct acre_str bytes, size_t *ret_used,
                     struct acre_error *err) {
    size_t used = 0;
    int r = 0;
    while (used < bytes.length && reader->state != ACRE_HTTP_DONE) {
        struct acre_str rest = {bytes.data + used, bytes.length - used};
        r = step(reader, rest, &used, err);
        if (r != 1) {
            break;
        }
    }
    *ret_used = used;
    return r > 1 ? r : reader->state == ACRE_HTTP_DONE;
}
