/* json.c - reads JSON with jansson, with limits before and strict getters after.
 *
 * jansson parses by recursion, so the depth is checked first: one scan counts brackets outside
 * strings. What jansson then accepts is strict JSON without duplicate keys, with integers that fit
 * 63 bits; the getters refuse anything else and name the field. */
#include "core/json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN_BYTES = 64, NAME_BYTES = 160, MESSAGE_BYTES = 256, KEYS_BYTES = 256 };

/* 0, or the offset + 1 of the bracket that goes too deep. */
static size_t find_too_deep(struct acre_str text) {
    unsigned depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < text.length; i++) {
        char c = text.data[i];
        if (in_string) {
            i += c == '\\'; /* whatever is escaped, it does not end the string */
            in_string = c != '"';
        } else if (c == '"') {
            in_string = true;
        } else if (c == '[' || c == '{') {
            if (++depth > ACRE_JSON_DEPTH_MAX) {
                return i + 1;
            }
        } else if ((c == ']' || c == '}') && depth > 0) {
            depth--;
        }
    }
    return 0;
}

static void find_position(struct acre_str text, size_t offset, unsigned *ret_line,
                          unsigned *ret_column) {
    *ret_line = 1;
    *ret_column = 1;
    for (size_t i = 0; i < offset; i++) {
        *ret_column += 1;
        if (text.data[i] == '\n') {
            *ret_line += 1;
            *ret_column = 1;
        }
    }
}

int acre_json_parse(const char *name, struct acre_str text, size_t max_bytes, json_t **ret_root,
                    struct acre_error *err) {
    char place[NAME_BYTES];
    if (text.length > max_bytes) {
        return acre_fail(err, ACRE_ELIMIT, "%s: %zu bytes; accepted: at most %zu",
                         acre_str_show(acre_str_from(name), place, sizeof(place)), text.length,
                         max_bytes);
    }
    size_t too_deep = find_too_deep(text);
    if (too_deep > 0) {
        unsigned line, column;
        find_position(text, too_deep - 1, &line, &column);
        return acre_fail(err, ACRE_ELIMIT,
                         "%s:%u:%u: nested too deeply; accepted: at most %d levels",
                         acre_str_show(acre_str_from(name), place, sizeof(place)), line, column,
                         (int)ACRE_JSON_DEPTH_MAX);
    }
    json_error_t error;
    json_t *root =
        json_loadb(text.data != NULL ? text.data : "", text.length, JSON_REJECT_DUPLICATES, &error);
    if (root == NULL) {
        char shown[MESSAGE_BYTES]; /* jansson quotes the input as it is */
        acre_str_show(acre_str_from(error.text), shown, sizeof(shown));
        return acre_fail(err, ACRE_EINVALID, "%s:%d:%d: %s",
                         acre_str_show(acre_str_from(name), place, sizeof(place)), error.line,
                         error.column, shown);
    }
    *ret_root = root;
    return 0;
}

static const char *type_name(const json_t *value) {
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "an array";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
        return "an integer";
    case JSON_REAL:
        return "a real number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "a boolean";
    case JSON_NULL:
        break;
    }
    return "null";
}

/* "key: 'value' is <what>; accepted: ..." */
static int refuse(const char *key, const json_t *value, const char *what, const char *accepted,
                  struct acre_error *err) {
    if (json_is_object(value) || json_is_array(value)) {
        return acre_fail(err, ACRE_EINVALID, "%s: is %s; accepted: %s", key, what, accepted);
    }
    char shown[SHOWN_BYTES];
    char *text = json_is_string(value) ? NULL : json_dumps(value, JSON_ENCODE_ANY);
    acre_str_show(acre_str_from(text != NULL ? text : json_string_value(value)), shown,
                  sizeof(shown));
    free(text);
    return acre_fail(err, ACRE_EINVALID, "%s: '%s' is %s; accepted: %s", key, shown, what,
                     accepted);
}

/* 1: *ret_value is there; 0: absent and that is fine; negative: refused. */
static int find_value(const json_t *object, const char *key, bool required,
                      const json_t **ret_value, struct acre_error *err, const char *accepted) {
    if (!json_is_object(object)) {
        return acre_fail(err, ACRE_EINVALID, "%s: not inside an object", key);
    }
    const json_t *value = json_object_get(object, key);
    if (value != NULL && !json_is_null(value)) {
        *ret_value = value;
        return 1;
    }
    if (!required) {
        return 0;
    }
    return acre_fail(err, ACRE_EINVALID, "%s: %s; accepted: %s", key,
                     value == NULL ? "is missing" : "is null", accepted);
}

int acre_json_get_u64(const json_t *object, const char *key, bool required, uint64_t min,
                      uint64_t max, uint64_t *ret_value, struct acre_error *err) {
    ACRE_ASSERT(min <= max);
    char accepted[80];
    snprintf(accepted, sizeof(accepted), "whole numbers from %" PRIu64 " to %" PRIu64, min, max);
    const json_t *value = NULL;
    int r = find_value(object, key, required, &value, err, accepted);
    if (r <= 0) {
        return r;
    }
    json_int_t number = json_integer_value(value); /* 0 when it is something else */
    if (!json_is_integer(value) || number < 0 || (uint64_t)number < min || (uint64_t)number > max) {
        const char *what = json_is_integer(value) ? "out of range" : type_name(value);
        return refuse(key, value, what, accepted, err);
    }
    *ret_value = (uint64_t)number;
    return 0;
}

int acre_json_get_bool(const json_t *object, const char *key, bool required, bool *ret_value,
                       struct acre_error *err) {
    const json_t *value = NULL;
    int r = find_value(object, key, required, &value, err, "true or false");
    if (r <= 0) {
        return r;
    }
    if (!json_is_boolean(value)) {
        return refuse(key, value, type_name(value), "true or false", err);
    }
    *ret_value = json_is_true(value);
    return 0;
}

int acre_json_get_string(const json_t *object, const char *key, bool required, size_t max_length,
                         const char **ret_value, struct acre_error *err) {
    char accepted[80];
    snprintf(accepted, sizeof(accepted), "a string of at most %zu bytes", max_length);
    const json_t *value = NULL;
    int r = find_value(object, key, required, &value, err, accepted);
    if (r <= 0) {
        return r;
    }
    if (!json_is_string(value)) {
        return refuse(key, value, type_name(value), accepted, err);
    }
    if (json_string_length(value) > max_length) {
        char shown[SHOWN_BYTES];
        acre_str_show(acre_str_from(json_string_value(value)), shown, sizeof(shown));
        return acre_fail(err, ACRE_EINVALID, "%s: '%s' has %zu bytes; accepted: %s", key, shown,
                         json_string_length(value), accepted);
    }
    *ret_value = json_string_value(value);
    return 0;
}

static bool is_known(const char *key, const char *const *known, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (strcmp(key, known[i]) == 0) {
            return true;
        }
    }
    return false;
}

int acre_json_only_keys(const json_t *object, const char *const *known, size_t count,
                        struct acre_error *err) {
    json_t *unlocked = (json_t *)(uintptr_t)object; /* jansson's iterators take no const */
    for (void *at = json_object_iter(unlocked); at != NULL;
         at = json_object_iter_next(unlocked, at)) {
        const char *key = json_object_iter_key(at);
        if (is_known(key, known, count)) {
            continue;
        }
        struct acre_buf keys;
        acre_buf_init(&keys, KEYS_BYTES);
        for (size_t i = 0; i < count; i++) {
            acre_buf_printf(&keys, "%s%s", i > 0 ? ", " : "", known[i]);
        }
        char shown[SHOWN_BYTES];
        acre_str_show(acre_str_from(key), shown, sizeof(shown));
        int r = acre_fail(err, ACRE_EINVALID, "%s: unknown key; accepted: %s%s", shown, keys.data,
                          acre_buf_failed(&keys) ? ", ..." : "");
        acre_buf_finish(&keys);
        return r;
    }
    return 0;
}
