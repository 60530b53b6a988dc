/* str.c - views, splitting, names, and values made safe to show.
 *
 * Everything that shows outside bytes to people (errors, logs, JSON) uses the same two functions:
 * acre_str_utf8 returns the length of the valid sequence at the front, and acre_str_show_unit its
 * visible form. So only one place decides what is printable. */
#include "core/str.h"

#include <stdio.h>
#include <string.h>

struct acre_str acre_str_from(const char *text) {
    return text == NULL ? (struct acre_str){"", 0} : (struct acre_str){text, strlen(text)};
}

bool acre_str_equal(struct acre_str a, struct acre_str b) {
    return a.length == b.length && (a.length == 0 || memcmp(a.data, b.data, a.length) == 0);
}

bool acre_str_is(struct acre_str a, const char *text) {
    return acre_str_equal(a, acre_str_from(text));
}

static bool is_blank(char c) {
    return c == ' ' || c == '\t';
}

struct acre_str acre_str_trim(struct acre_str text) {
    while (text.length > 0 && is_blank(text.data[0])) {
        text.data++;
        text.length--;
    }
    while (text.length > 0 && is_blank(text.data[text.length - 1])) {
        text.length--;
    }
    return text;
}

struct acre_split acre_split_begin(struct acre_str text, char separator) {
    return (struct acre_split){.rest = text, .separator = separator};
}

bool acre_split_next(struct acre_split *split, struct acre_str *ret_part) {
    if (split->done) {
        return false;
    }
    struct acre_str *rest = &split->rest;
    const char *at = rest->length > 0 ? memchr(rest->data, split->separator, rest->length) : NULL;
    if (at == NULL) {
        split->done = true;
        *ret_part = *rest;
        return true;
    }
    size_t length = (size_t)(at - rest->data);
    *ret_part = (struct acre_str){rest->data, length};
    rest->data += length + 1;
    rest->length -= length + 1;
    return true;
}

const char *acre_str_after_mark(const char *text) {
    return strncmp(text, "\xef\xbb\xbf", 3) == 0 ? text + 3 : text;
}

bool acre_str_copy(char *to, size_t size, struct acre_str from) {
    if (from.length >= size) {
        return false;
    }
    if (from.length > 0) {
        memcpy(to, from.data, from.length);
    }
    to[from.length] = '\0';
    return true;
}

static bool is_name_byte(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("-_./:@+ ", c) != NULL);
}

bool acre_str_is_name(struct acre_str text, size_t max) {
    if (text.length == 0 || text.length > max || text.data[0] == ' ' ||
        text.data[text.length - 1] == ' ') {
        return false;
    }
    for (size_t i = 0; i < text.length; i++) {
        if (!is_name_byte(text.data[i])) {
            return false;
        }
    }
    return true;
}

/* Code point of the sequence at the front, its length in *ret_length; length 0 when the bytes
 * are not UTF-8 (overlong forms, surrogates and values past U+10FFFF included). */
static uint32_t decode(struct acre_str text, size_t *ret_length) {
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *bytes = (const unsigned char *)text.data;
    *ret_length = 0;
    if (text.length == 0) {
        return 0;
    }
    if (bytes[0] < 0x80) {
        *ret_length = 1;
        return bytes[0];
    }
    size_t length = bytes[0] >= 0xf0 ? 4 : bytes[0] >= 0xe0 ? 3 : 2;
    if (bytes[0] < 0xc2 || bytes[0] > 0xf4 || length > text.length) {
        return 0;
    }
    uint32_t point = bytes[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((bytes[i] & 0xc0) != 0x80) {
            return 0;
        }
        point = point << 6 | (bytes[i] & 0x3fu);
    }
    if (point < smallest[length] || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff)) {
        return 0;
    }
    *ret_length = length;
    return point;
}

size_t acre_str_utf8(struct acre_str text) {
    size_t length;
    (void)decode(text, &length);
    return length;
}

/* Controls, and the invisible marks with which a name can pretend to be another one. */
static bool is_hidden(uint32_t point) {
    static const struct {
        uint32_t first, last;
    } ranges[] = {
        {0x00, 0x1f},     {0x7f, 0x9f},     {0xad, 0xad},     {0x200b, 0x200f},   {0x2028, 0x202e},
        {0x2060, 0x206f}, {0xfeff, 0xfeff}, {0xfff0, 0xfffb}, {0xe0000, 0xe0fff},
    };
    for (size_t i = 0; i < ACRE_COUNT(ranges); i++) {
        if (point >= ranges[i].first && point <= ranges[i].last) {
            return true;
        }
    }
    return false;
}

size_t acre_str_show_unit(struct acre_str text, char out[ACRE_SHOW_UNIT_MAX],
                          size_t *ret_used_bytes) {
    static const char escapes[][2] = {{'\n', 'n'}, {'\r', 'r'}, {'\t', 't'}, {'\\', '\\'}};
    ACRE_ASSERT(text.length > 0);
    *ret_used_bytes = 1;
    for (size_t i = 0; i < ACRE_COUNT(escapes); i++) {
        if (text.data[0] == escapes[i][0]) {
            snprintf(out, ACRE_SHOW_UNIT_MAX, "\\%c", escapes[i][1]);
            return 2;
        }
    }
    size_t length;
    uint32_t point = decode(text, &length);
    if (length > 0 && !is_hidden(point)) {
        memcpy(out, text.data, length);
        out[length] = '\0';
        *ret_used_bytes = length;
        return length;
    }
    snprintf(out, ACRE_SHOW_UNIT_MAX, "\\x%02x", (unsigned char)text.data[0]);
    return 4;
}

static char *show(struct acre_str text, bool is_text, char *out, size_t size) {
    ACRE_ASSERT(size > 0);
    static const char mark[] = "...";
    size_t length = 0;
    size_t cut_at = 0; /* the last place where the mark still fits */
    while (text.length > 0) {
        char unit[ACRE_SHOW_UNIT_MAX];
        size_t used;
        size_t shown = acre_str_show_unit(text, unit, &used);
        if (is_text && text.data[0] == '\\') {
            shown = 1; /* the first of the two */
        }
        if (length + sizeof(mark) <= size) {
            cut_at = length;
        }
        if (length + shown >= size) {
            length = cut_at;
            snprintf(out + length, size - length, "%s", mark);
            return out;
        }
        memcpy(out + length, unit, shown);
        length += shown;
        text.data += used;
        text.length -= used;
    }
    out[length] = '\0';
    return out;
}

char *acre_str_show(struct acre_str text, char *out, size_t size) {
    return show(text, false, out, size);
}

char *acre_str_show_text(struct acre_str text, char *out, size_t size) {
    return show(text, true, out, size);
}

uint64_t acre_hash_bytes(const void *bytes, size_t length) {
    const unsigned char *at = bytes;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < length; i++) {
        hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    }
    return hash ^ hash >> 32; /* FNV mixes upwards; tables index by the low bits */
}
