/* json_write.c - writes JSON directly into a buffer, without a tree in between.
 *
 * The writer keeps two bits per level: whether something was written there already (then a comma
 * comes first) and whether it is an object (then a key must). Misuse is a programming error and
 * asserts; acre_json_end reports a full buffer. */
#include "core/json.h"

#include <math.h>
#include <string.h>

static uint64_t bit(const struct acre_json *json) {
    return UINT64_C(1) << json->depth;
}

void acre_json_begin(struct acre_json *json, struct acre_buf *buf, bool pretty) {
    *json = (struct acre_json){.buf = buf, .pretty = pretty};
}

int acre_json_end(struct acre_json *json) {
    ACRE_ASSERT(json->depth == 0 && !json->after_key);
    ACRE_ASSERT(json->has_items & 1); /* a document holds a value */
    return acre_buf_failed(json->buf) ? ACRE_ELIMIT : 0;
}

static void new_line(struct acre_json *json) {
    if (json->pretty) {
        acre_buf_printf(json->buf, "\n%*s", (int)json->depth * 2, "");
    }
}

/* Comma and new line before an item (a key, or a value inside an array). */
static void begin_item(struct acre_json *json) {
    bool first = !(json->has_items & bit(json));
    ACRE_ASSERT(first || json->depth > 0); /* one value at the top */
    if (!first) {
        acre_buf_putc(json->buf, ',');
    }
    if (json->depth > 0) {
        new_line(json);
    }
    json->has_items |= bit(json);
}

static void begin_value(struct acre_json *json) {
    bool in_object = json->is_object & bit(json);
    ACRE_ASSERT(in_object == json->after_key); /* a key before each value, only in objects */
    if (!in_object) {
        begin_item(json);
    }
    json->after_key = false;
}

static void open_level(struct acre_json *json, char bracket, bool is_object) {
    begin_value(json);
    acre_buf_putc(json->buf, bracket);
    ACRE_ASSERT(json->depth < ACRE_JSON_DEPTH_MAX); /* what we write we must be able to read */
    json->depth++;
    json->has_items &= ~bit(json);
    json->is_object = is_object ? json->is_object | bit(json) : json->is_object & ~bit(json);
}

static void close_level(struct acre_json *json, char bracket, bool is_object) {
    ACRE_ASSERT(json->depth > 0 && !json->after_key);
    ACRE_ASSERT(is_object == !!(json->is_object & bit(json)));
    bool empty = !(json->has_items & bit(json));
    json->depth--;
    if (!empty) {
        new_line(json);
    }
    acre_buf_putc(json->buf, bracket);
}

void acre_json_object(struct acre_json *json) {
    open_level(json, '{', true);
}

void acre_json_object_end(struct acre_json *json) {
    close_level(json, '}', true);
}

void acre_json_array(struct acre_json *json) {
    open_level(json, '[', false);
}

void acre_json_array_end(struct acre_json *json) {
    close_level(json, ']', false);
}

static void put_escape(struct acre_buf *buf, char c) {
    static const char short_forms[][2] = {{'"', '"'},  {'\\', '\\'}, {'\n', 'n'}, {'\r', 'r'},
                                          {'\t', 't'}, {'\b', 'b'},  {'\f', 'f'}};
    for (size_t i = 0; i < ACRE_COUNT(short_forms); i++) {
        if (c == short_forms[i][0]) {
            acre_buf_printf(buf, "\\%c", short_forms[i][1]);
            return;
        }
    }
    acre_buf_printf(buf, "\\u%04x", (unsigned char)c);
}

/* How much of the text needs no second look: printable ASCII without quotes and backslashes. */
static size_t plain_length(struct acre_str text) {
    size_t length = 0;
    while (length < text.length) {
        unsigned char c = (unsigned char)text.data[length];
        if (c < ' ' || c >= 0x7f || c == '"' || c == '\\') {
            break;
        }
        length++;
    }
    return length;
}

static void put_quoted(struct acre_buf *buf, struct acre_str text) {
    acre_buf_putc(buf, '"');
    while (text.length > 0) {
        size_t length = plain_length(text);
        if (length == 0) {
            length = acre_str_utf8(text);
            if (length == 0) {
                acre_buf_puts(buf, "\xef\xbf\xbd"); /* U+FFFD */
                length = 1;
            } else if (length == 1) {
                put_escape(buf, text.data[0]);
            } else {
                acre_buf_append(buf, text.data, length);
            }
        } else {
            acre_buf_append(buf, text.data, length);
        }
        text.data += length;
        text.length -= length;
    }
    acre_buf_putc(buf, '"');
}

void acre_json_key(struct acre_json *json, const char *key) {
    ACRE_ASSERT(!json->after_key && (json->is_object & bit(json)));
    begin_item(json);
    put_quoted(json->buf, acre_str_from(key));
    acre_buf_puts(json->buf, json->pretty ? ": " : ":");
    json->after_key = true;
}

void acre_json_string(struct acre_json *json, const char *value) {
    if (value == NULL) {
        acre_json_null(json);
    } else {
        acre_json_str(json, acre_str_from(value));
    }
}

void acre_json_str(struct acre_json *json, struct acre_str value) {
    begin_value(json);
    put_quoted(json->buf, value);
}

/* By hand: answers are mostly numbers, and printf formats twice to know the length. */
static void put_number(struct acre_buf *buf, uint64_t value, bool negative) {
    char digits[24];
    size_t at = sizeof(digits);
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    if (negative) {
        digits[--at] = '-';
    }
    acre_buf_append(buf, digits + at, sizeof(digits) - at);
}

void acre_json_u64(struct acre_json *json, uint64_t value) {
    begin_value(json);
    put_number(json->buf, value, false);
}

void acre_json_i64(struct acre_json *json, int64_t value) {
    begin_value(json);
    put_number(json->buf, value < 0 ? 0 - (uint64_t)value : (uint64_t)value, value < 0);
}

void acre_json_double(struct acre_json *json, double value, int decimals) {
    ACRE_ASSERT(decimals >= 0 && decimals <= 17);
    if (!isfinite(value)) { /* JSON has no word for it */
        acre_json_null(json);
        return;
    }
    begin_value(json);
    acre_buf_printf(json->buf, "%.*f", decimals, value);
}

void acre_json_bool(struct acre_json *json, bool value) {
    begin_value(json);
    acre_buf_puts(json->buf, value ? "true" : "false");
}

void acre_json_null(struct acre_json *json) {
    begin_value(json);
    acre_buf_puts(json->buf, "null");
}

void acre_json_raw(struct acre_json *json, struct acre_str value) {
    ACRE_ASSERT(value.length > 0);
    begin_value(json);
    acre_buf_append(json->buf, value.data, value.length);
}

void acre_json_put_string(struct acre_json *json, const char *key, const char *value) {
    acre_json_key(json, key);
    acre_json_string(json, value);
}

void acre_json_put_u64(struct acre_json *json, const char *key, uint64_t value) {
    acre_json_key(json, key);
    acre_json_u64(json, value);
}

void acre_json_put_double(struct acre_json *json, const char *key, double value, int decimals) {
    acre_json_key(json, key);
    acre_json_double(json, value, decimals);
}

void acre_json_put_bool(struct acre_json *json, const char *key, bool value) {
    acre_json_key(json, key);
    acre_json_bool(json, value);
}

void acre_json_put_null(struct acre_json *json, const char *key) {
    acre_json_key(json, key);
    acre_json_null(json);
}
