/* head.c - one scan for the end of the head, then one pass over its lines.
 *
 * The scan looks at each byte once, however they are cut, and refuses at the first that no request
 * may hold: control characters, a CR without LF, a LF without CR. After it, a line is a line for
 * every parser, so the pass needs no second opinion about where it ends.
 *
 * The pass copies the head into the arena and ends names and values with NUL in place; decoding
 * never lengthens. What decides where the request ends (Content-Length, Transfer-Encoding, Host)
 * may be there once at most, in one spelling: request smuggling lives on "the first", "the last"
 * and "the sum of both". */
#include "http/head.h"

#include "http/http.h"

#include <string.h>
#include <strings.h>

enum { SHOWN_BYTES = 64, BAD_REQUEST = 400, LENGTH_DIGITS_MAX = 18 };

/* What may be in a token (RFC 9110, 5.6.2), in a header value, in a request target. */
enum { IS_TOKEN = 1, IS_VALUE = 2, IS_TARGET = 4, IS_HOST = 8 };

static unsigned class_of(unsigned char c) {
    if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
        return IS_TOKEN | IS_VALUE | IS_TARGET | IS_HOST;
    }
    if (c == ' ' || c == '\t' || c >= 0x80) {
        return IS_VALUE;
    }
    if (c < ' ' || c == 0x7f) {
        return 0;
    }
    return IS_VALUE | (c != '#' ? IS_TARGET : 0U) |
           (strchr("!#$%&'*+-.^_`|~", c) != NULL ? IS_TOKEN : 0U) |
           (strchr("-._~!$&'()*+,;=:[]%", c) != NULL ? IS_HOST : 0U);
}

static bool all_are(struct acre_str text, unsigned class) {
    for (size_t i = 0; i < text.length; i++) {
        if ((class_of((unsigned char)text.data[i]) & class) == 0) {
            return false;
        }
    }
    return true;
}

static int refuse(struct acre_error *err, const char *what, struct acre_str value,
                  const char *accepted) {
    char shown[SHOWN_BYTES];
    acre_fail(err, ACRE_EINVALID, "%s: '%s'; accepted: %s", what,
              acre_str_show(value, shown, sizeof(shown)), accepted);
    return BAD_REQUEST;
}

/* Past the limit: which part is too long? */
static int refuse_length(const struct http_scan *scan, struct acre_error *err) {
    acre_fail(err, ACRE_ELIMIT, "%s; accepted: at most %d bytes of request line and headers",
              scan->line == 0 ? "the request line is too long" : "the headers are too long",
              (int)ACRE_HTTP_HEAD_MAX);
    return scan->line == 0 ? 414 : 431;
}

int http_head_scan(struct http_scan *scan, struct acre_str bytes, struct acre_error *err) {
    size_t limit = ACRE_MIN(bytes.length, (size_t)ACRE_HTTP_HEAD_MAX);
    size_t i = scan->at;
    while (i < limit) {
        unsigned char c = (unsigned char)bytes.data[i];
        if ((c >= ' ' && c != 0x7f) || c == '\t') {
            i++;
            continue;
        }
        if (c != '\r' || (i + 1 < limit && bytes.data[i + 1] != '\n')) {
            struct acre_str bad = {bytes.data + i, 1};
            return refuse(err, "control character in the headers", bad,
                          "lines that end with CR LF, and no other control characters except tabs");
        }
        if (i + 1 >= limit) {
            break; /* the LF has yet to come, or is past the limit */
        }
        bool is_empty = i == scan->line;
        i += 2;
        if (is_empty) {
            scan->end = i;
            return 1;
        }
        scan->line = i;
    }
    scan->at = i;
    /* A head of exactly the limit has been found by now. */
    return bytes.length >= ACRE_HTTP_HEAD_MAX ? refuse_length(scan, err) : 0;
}

bool http_header_split(struct acre_str line, struct acre_str *ret_name,
                       struct acre_str *ret_value) {
    const char *colon = line.length > 0 ? memchr(line.data, ':', line.length) : NULL;
    if (colon == NULL || colon == line.data) {
        return false;
    }
    size_t name_length = (size_t)(colon - line.data);
    struct acre_str name = {line.data, name_length};
    struct acre_str value = {colon + 1, line.length - name_length - 1};
    if (!all_are(name, IS_TOKEN) || !all_are(value, IS_VALUE)) {
        return false;
    }
    *ret_name = name;
    *ret_value = acre_str_trim(value);
    return true;
}

/* Whether a comma-separated list holds the word, in any case. */
static bool list_has(const char *list, const char *word) {
    size_t length = strlen(word);
    struct acre_split split = acre_split_begin(acre_str_from(list), ',');
    struct acre_str part;
    while (acre_split_next(&split, &part)) {
        part = acre_str_trim(part);
        if (part.length == length && strncasecmp(part.data, word, length) == 0) {
            return true;
        }
    }
    return false;
}

static int hex_value(char c) {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    char lower = (char)(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* Decode %XX (and '+' in a query) in place and end with NUL. False: a broken %XX, a control
 * character, or what is not UTF-8. An encoded slash separates nothing: it is kept apart. */
static bool decode(char *text, size_t length, bool is_query) {
    size_t out = 0;
    for (size_t i = 0; i < length; i++) {
        char c = text[i];
        if (c == '%') {
            int high = i + 2 < length ? hex_value(text[i + 1]) : -1;
            int low = i + 2 < length ? hex_value(text[i + 2]) : -1;
            if (high < 0 || low < 0) {
                return false;
            }
            c = (char)(high * 16 + low);
            i += 2;
            if ((unsigned char)c < ' ' || c == 0x7f) {
                return false;
            }
            c = c == '/' && !is_query ? ACRE_HTTP_SLASH : c;
        } else if (c == '+' && is_query) {
            c = ' ';
        }
        text[out++] = c;
    }
    text[out] = '\0';
    for (struct acre_str rest = {text, out}; rest.length > 0;) {
        size_t unit = acre_str_utf8(rest);
        if (unit == 0) {
            return false;
        }
        rest.data += unit;
        rest.length -= unit;
    }
    return true;
}

/* No segment "." or "..": nobody downstream has to wonder what they mean. */
static bool has_dots(const char *path) {
    struct acre_split split = acre_split_begin(acre_str_from(path), '/');
    struct acre_str part;
    while (acre_split_next(&split, &part)) {
        if (acre_str_is(part, ".") || acre_str_is(part, "..")) {
            return true;
        }
    }
    return false;
}

static int parse_query(char *text, size_t length, struct acre_arena *arena, struct http_head *head,
                       struct acre_error *err) {
    struct acre_str whole = {text, length};
    struct acre_split split = acre_split_begin(whole, '&');
    struct acre_str part;
    head->query = acre_arena_alloc(arena, ACRE_HTTP_QUERY_MAX * sizeof(*head->query));
    while (acre_split_next(&split, &part)) {
        if (part.length == 0) {
            continue;
        }
        if (head->query_count == ACRE_HTTP_QUERY_MAX) {
            acre_fail(err, ACRE_EINVALID, "the query has too many parameters; accepted: at most %d",
                      (int)ACRE_HTTP_QUERY_MAX);
            return BAD_REQUEST;
        }
        char *key = text + (part.data - text);
        char *equals = memchr(key, '=', part.length);
        size_t key_length = equals != NULL ? (size_t)(equals - key) : part.length;
        char *value = equals != NULL ? equals + 1 : key + part.length;
        size_t value_length = part.length - (size_t)(value - key);
        /* The value first: the NUL of the key may stand where the value begins. */
        bool ok = decode(value, value_length, true);
        ok = decode(key, key_length, true) && ok;
        if (!ok || key_length == 0) {
            return refuse(err, "query", part,
                          "key=value in UTF-8 with %XX escapes, without control characters");
        }
        head->query[head->query_count++] = (struct http_pair){key, equals != NULL ? value : ""};
    }
    return 0;
}

/* "http://host/path" is "/path" (RFC 9112, 3.2.2). An empty view: not such a target. */
static struct acre_str cut_authority(struct acre_str target) {
    static const char *const schemes[] = {"http://", "https://"};
    for (size_t i = 0; i < ACRE_COUNT(schemes); i++) {
        size_t length = strlen(schemes[i]);
        if (target.length <= length || strncasecmp(target.data, schemes[i], length) != 0) {
            continue;
        }
        const char *host = target.data + length;
        const char *slash = memchr(host, '/', target.length - length);
        if (slash != NULL && slash > host &&
            all_are((struct acre_str){host, (size_t)(slash - host)}, IS_HOST)) {
            return (struct acre_str){slash, target.length - (size_t)(slash - target.data)};
        }
    }
    return (struct acre_str){0};
}

static int parse_target(struct acre_str target, struct acre_arena *arena, struct http_head *head,
                        struct acre_error *err) {
    struct acre_str origin = target;
    if (target.length == 0 || target.data[0] != '/') {
        origin = cut_authority(target);
    }
    if (origin.length == 0 || !all_are(origin, IS_TARGET)) {
        return refuse(err, "request target", target, "a path that begins with /");
    }
    char *path = acre_arena_strndup(arena, origin.data, origin.length);
    char *mark = memchr(path, '?', origin.length);
    size_t path_length = mark != NULL ? (size_t)(mark - path) : origin.length;
    if (!decode(path, path_length, false) || has_dots(path)) {
        return refuse(err, "path", (struct acre_str){origin.data, path_length},
                      "UTF-8 with %XX escapes, without dot segments or control characters");
    }
    head->path = path;
    if (mark == NULL) {
        return 0;
    }
    return parse_query(mark + 1, origin.length - path_length - 1, arena, head, err);
}

static int parse_version(struct acre_str version, struct http_head *head, struct acre_error *err) {
    head->is_http10 = acre_str_is(version, "HTTP/1.0");
    if (head->is_http10 || acre_str_is(version, "HTTP/1.1")) {
        return 0;
    }
    int status = refuse(err, "HTTP version", version, "HTTP/1.1 or HTTP/1.0");
    bool is_other = version.length == 8 && memcmp(version.data, "HTTP/", 5) == 0;
    return is_other ? 505 : status;
}

static int parse_request_line(struct acre_str line, struct acre_arena *arena,
                              struct http_head *head, struct acre_error *err) {
    struct acre_split split = acre_split_begin(line, ' ');
    struct acre_str method = {0}, target = {0}, version = {0}, more;
    if (!acre_split_next(&split, &method) || !acre_split_next(&split, &target) ||
        !acre_split_next(&split, &version) || acre_split_next(&split, &more)) {
        return refuse(err, "request line", line,
                      "METHOD /path HTTP/1.1, separated by single spaces");
    }
    if (method.length == 0 || method.length > ACRE_HTTP_METHOD_MAX || !all_are(method, IS_TOKEN)) {
        return refuse(err, "method", method, "a word of at most 16 letters");
    }
    int status = parse_version(version, head, err);
    if (status != 0) {
        return status;
    }
    head->method = acre_arena_strndup(arena, method.data, method.length);
    return parse_target(target, arena, head, err);
}

static int parse_headers(struct acre_str lines, struct acre_arena *arena, struct http_head *head,
                         struct acre_error *err) {
    char *text = acre_arena_strndup(arena, lines.data, lines.length);
    struct http_pair headers[ACRE_HTTP_HEADERS_MAX];
    uint32_t count = 0;
    for (size_t at = 0; at < lines.length;) {
        const char *end = memchr(text + at, '\r', lines.length - at);
        if (end == NULL) { /* the scan has seen to it */
            return refuse(err, "header fields", lines, "lines that end with CR LF");
        }
        struct acre_str line = {text + at, (size_t)(end - text) - at};
        struct acre_str name, value;
        at += line.length + 2;
        if (count == ACRE_HTTP_HEADERS_MAX) {
            acre_fail(err, ACRE_ELIMIT, "too many headers; accepted: at most %d",
                      (int)ACRE_HTTP_HEADERS_MAX);
            return 431;
        }
        if (!http_header_split(line, &name, &value)) {
            return refuse(err, "header field", line,
                          "name: value, on one line, with no space before the colon");
        }
        text[(name.data - text) + (ptrdiff_t)name.length] = '\0';
        text[(value.data - text) + (ptrdiff_t)value.length] = '\0'; /* at the CR at the latest */
        headers[count++] = (struct http_pair){name.data, value.data};
    }
    head->headers = acre_arena_alloc(arena, count * sizeof(headers[0]));
    memcpy(head->headers, headers, count * sizeof(headers[0]));
    head->header_count = count;
    return 0;
}

/* The fields that decide how the request is framed, each with how often it came. */
struct framing {
    const char *host, *length, *coding, *expect;
    unsigned hosts, lengths, codings;
    bool says_close;
};

static void collect(const struct http_head *head, struct framing *framing) {
    for (uint32_t i = 0; i < head->header_count; i++) {
        const char *name = head->headers[i].name;
        const char *value = head->headers[i].value;
        if (strcasecmp(name, "host") == 0) {
            framing->host = value;
            framing->hosts++;
        } else if (strcasecmp(name, "content-length") == 0) {
            framing->length = value;
            framing->lengths++;
        } else if (strcasecmp(name, "transfer-encoding") == 0) {
            framing->coding = value;
            framing->codings++;
        } else if (strcasecmp(name, "connection") == 0) {
            framing->says_close = framing->says_close || list_has(value, "close");
        } else if (strcasecmp(name, "expect") == 0) {
            framing->expect = value;
        }
    }
}

static int parse_length(const char *text, uint64_t body_max, uint64_t *ret_bytes,
                        struct acre_error *err) {
    uint64_t bytes = 0;
    size_t length = strlen(text);
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9') {
            return refuse(err, "Content-Length", acre_str_from(text), "one number, digits only");
        }
        /* More digits than fit are more than any limit, too. */
        bytes = i < LENGTH_DIGITS_MAX ? bytes * 10 + (uint64_t)(text[i] - '0') : UINT64_MAX;
    }
    if (length == 0) {
        return refuse(err, "Content-Length", acre_str_from(text), "one number, digits only");
    }
    if (bytes > body_max) {
        acre_fail(err, ACRE_ELIMIT, "the body is too long (%s bytes); accepted: at most %llu bytes",
                  length <= LENGTH_DIGITS_MAX ? text : "over 10^18", (unsigned long long)body_max);
        return 413;
    }
    *ret_bytes = bytes;
    return 0;
}

static int parse_framing(struct http_head *head, uint64_t body_max, struct acre_error *err) {
    struct framing framing = {0};
    collect(head, &framing);
    if (framing.hosts > 1 || (framing.hosts == 0 && !head->is_http10) ||
        !all_are(acre_str_from(framing.host), IS_HOST)) {
        return refuse(err, "Host", acre_str_from(framing.host), "exactly one host and port");
    }
    if (framing.lengths + framing.codings > 1) {
        acre_fail(err, ACRE_EINVALID,
                  "the length of the body is given %u times; accepted: one "
                  "Content-Length or one Transfer-Encoding",
                  framing.lengths + framing.codings);
        return BAD_REQUEST;
    }
    if (framing.coding != NULL && (head->is_http10 || strcasecmp(framing.coding, "chunked") != 0)) {
        return refuse(err, "Transfer-Encoding", acre_str_from(framing.coding),
                      "only chunked, with HTTP/1.1");
    }
    head->chunked = framing.coding != NULL;
    head->keep_alive = !head->is_http10 && !framing.says_close;
    if (framing.expect != NULL && strcasecmp(framing.expect, "100-continue") != 0) {
        refuse(err, "Expect", acre_str_from(framing.expect), "100-continue");
        return 417;
    }
    head->expects_continue = framing.expect != NULL && !head->is_http10;
    if (framing.length == NULL) {
        return 0;
    }
    return parse_length(framing.length, body_max, &head->body_bytes, err);
}

int http_head_parse(struct acre_str bytes, uint64_t body_max, struct acre_arena *arena,
                    struct http_head *ret_head, struct acre_error *err) {
    ACRE_ASSERT(bytes.length >= 4 && bytes.length <= ACRE_HTTP_HEAD_MAX);
    const char *end = memchr(bytes.data, '\r', bytes.length);
    struct acre_str line = {bytes.data, (size_t)(end - bytes.data)};
    struct acre_str rest = {end + 2, bytes.length - line.length - 4}; /* without the empty line */
    struct http_head head = {0};
    int status = parse_request_line(line, arena, &head, err);
    if (status == 0) {
        status = parse_headers(rest, arena, &head, err);
    }
    if (status == 0) {
        status = parse_framing(&head, body_max, err);
    }
    if (status == 0) {
        *ret_head = head;
    }
    return status;
}
