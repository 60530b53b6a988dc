/* answer.c - looks up a dotted path in JSON; one formatter per kind of value. */
#include "cli/answer.h"

#include "cli/when.h"
#include "core/str.h"
#include "core/units.h"

#include <inttypes.h>
#include <stdio.h>

const json_t *answer_at(const json_t *root, const char *path) {
    struct acre_split split = acre_split_begin(acre_str_from(path), '.');
    struct acre_str key;
    const json_t *at = root;
    while (at != NULL && acre_split_next(&split, &key)) {
        char name[64];
        at = acre_str_copy(name, sizeof(name), key) ? json_object_get(at, name) : NULL;
    }
    return json_is_null(at) ? NULL : at;
}

bool answer_u64(const json_t *root, const char *path, uint64_t *ret_value) {
    const json_t *value = answer_at(root, path);
    if (!json_is_integer(value) || json_integer_value(value) < 0) {
        return false;
    }
    *ret_value = (uint64_t)json_integer_value(value);
    return true;
}

bool answer_number(const json_t *root, const char *path, double *ret_value) {
    const json_t *value = answer_at(root, path);
    if (!json_is_number(value)) {
        return false;
    }
    *ret_value = json_number_value(value);
    return true;
}

bool answer_true(const json_t *root, const char *path) {
    return json_is_true(answer_at(root, path));
}

const char *answer_string(const json_t *root, const char *path, const char *fallback) {
    const char *text = json_string_value(answer_at(root, path));
    return text != NULL && text[0] != '\0' ? text : fallback;
}

bool answer_time(const json_t *root, const char *path, uint64_t *ret_ms) {
    const char *text = json_string_value(answer_at(root, path));
    return text != NULL && when_parse(text, ret_ms);
}

char *answer_count(const json_t *root, const char *path, char *text, size_t size) {
    uint64_t value;
    if (answer_u64(root, path, &value)) {
        snprintf(text, size, "%" PRIu64, value);
    } else {
        snprintf(text, size, "-");
    }
    return text;
}

char *answer_mib(const json_t *root, const char *path, char *text, size_t size) {
    uint64_t value;
    snprintf(text, size, "-");
    return answer_u64(root, path, &value) ? acre_format_mib(value, text, size) : text;
}

char *answer_milli(const json_t *root, const char *path, char *text, size_t size) {
    uint64_t value;
    snprintf(text, size, "-");
    return answer_u64(root, path, &value) ? acre_format_milli(value, text, size) : text;
}

char *answer_span(const json_t *root, const char *path, char *text, size_t size) {
    uint64_t value;
    snprintf(text, size, "-");
    return answer_u64(root, path, &value) ? when_span(value, text, size) : text;
}

char *answer_ago(const json_t *root, const char *path, uint64_t now_ms, char *text, size_t size) {
    uint64_t value;
    snprintf(text, size, "-");
    return answer_time(root, path, &value) ? when_relative(value, now_ms, text, size) : text;
}
