/* json.h - reads JSON strictly (jansson), and writes it directly into a buffer.
 *
 * Reading: duplicate keys, depth over ACRE_JSON_DEPTH_MAX, more than `max_bytes`, NUL in strings
 * and trailing bytes are refused, with line and column. The getters name the field and what is
 * accepted, and refuse numbers that do not fit; with `required` false they leave the output
 * unchanged if the key is absent or null.
 *
 * Writing: the writer adds commas, quotes and escapes; asserts check the nesting. Invalid UTF-8 is
 * written as U+FFFD. One thread at a time. */
#ifndef ACRE_CORE_JSON_H
#define ACRE_CORE_JSON_H

#include "core/buf.h"
#include "core/str.h"

#include <jansson.h>

enum { ACRE_JSON_DEPTH_MAX = 32 }; /* our deepest document has 7 levels */

/* `name` is the file or source for the message. The caller json_decref()s the result. */
int acre_json_parse(const char *name, struct acre_str text, size_t max_bytes, json_t **ret_root,
                    struct acre_error *err);

int acre_json_get_u64(const json_t *object, const char *key, bool required, uint64_t min,
                      uint64_t max, uint64_t *ret_value, struct acre_error *err);
int acre_json_get_bool(const json_t *object, const char *key, bool required, bool *ret_value,
                       struct acre_error *err);
int acre_json_get_string(const json_t *object, const char *key, bool required, size_t max_length,
                         const char **ret_value, struct acre_error *err); /* borrowed */
/* ACRE_EINVALID naming the first key of `object` that is not among `known`. */
int acre_json_only_keys(const json_t *object, const char *const *known, size_t count,
                        struct acre_error *err);

struct acre_json {
    struct acre_buf *buf;
    uint32_t depth;
    bool pretty; /* two blanks of indent, for people */
    bool after_key;
    uint64_t has_items; /* a bit per depth */
    uint64_t is_object; /* a bit per depth */
};

void acre_json_begin(struct acre_json *json, struct acre_buf *buf, bool pretty);
int acre_json_end(struct acre_json *json); /* ACRE_ELIMIT when the buffer failed */

void acre_json_object(struct acre_json *json);
void acre_json_object_end(struct acre_json *json);
void acre_json_array(struct acre_json *json);
void acre_json_array_end(struct acre_json *json);
void acre_json_key(struct acre_json *json, const char *key);
void acre_json_string(struct acre_json *json, const char *value); /* NULL writes null */
void acre_json_str(struct acre_json *json, struct acre_str value);
void acre_json_u64(struct acre_json *json, uint64_t value);
void acre_json_i64(struct acre_json *json, int64_t value);
void acre_json_double(struct acre_json *json, double value, int decimals); /* NaN: null */
void acre_json_bool(struct acre_json *json, bool value);
void acre_json_null(struct acre_json *json);
void acre_json_raw(struct acre_json *json, struct acre_str value); /* JSON already */

/* key + value in one call */
void acre_json_put_string(struct acre_json *json, const char *key, const char *value);
void acre_json_put_u64(struct acre_json *json, const char *key, uint64_t value);
void acre_json_put_double(struct acre_json *json, const char *key, double value, int decimals);
void acre_json_put_bool(struct acre_json *json, const char *key, bool value);
void acre_json_put_null(struct acre_json *json, const char *key);

#endif
