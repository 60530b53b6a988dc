/* lines.c - files of lines, read whole: they are a few hundred bytes. */
#include "engine/lines.h"

#include "core/file.h"
#include "core/str.h"
#include "core/units.h"

enum { FILE_MAX = 64 * 1024, NUMBER_TEXT = 24, SHOWN = 60 };

/* The value when the line begins with the key. */
static bool match(struct acre_str line, const char *key, char separator,
                  struct acre_str *ret_value) {
    struct acre_split parts = acre_split_begin(acre_str_trim(line), separator);
    struct acre_str part;
    if (key[0] == '\0') {
        *ret_value = acre_str_trim(line);
        return true;
    }
    if (!acre_split_next(&parts, &part) || !acre_str_is(acre_str_trim(part), key) || parts.done) {
        return false;
    }
    *ret_value = acre_str_trim(parts.rest);
    return true;
}

static int parse(const char *path, struct acre_str value, uint32_t *ret_number,
                 struct acre_error *err) {
    char text[NUMBER_TEXT], shown[SHOWN];
    uint64_t number;
    if (!acre_str_copy(text, sizeof(text), value) ||
        acre_parse_count("value", text, 0, UINT32_MAX, &number, NULL) < 0) {
        return acre_fail(err, ACRE_EINVALID, "%s: '%s' is not a number; accepted: at most %u", path,
                         acre_str_show(value, shown, sizeof(shown)), UINT32_MAX);
    }
    *ret_number = (uint32_t)number;
    return 0;
}

int lines_number(const char *path, const char *key, char separator, uint32_t *ret_number,
                 struct acre_error *err) {
    struct acre_buf text;
    acre_buf_init(&text, FILE_MAX);
    int r = acre_file_read(path, FILE_MAX, &text, err);
    if (r < 0) {
        acre_buf_finish(&text);
        return r;
    }
    bool found = false;
    struct acre_split lines = acre_split_begin((struct acre_str){text.data, text.length}, '\n');
    struct acre_str line, value;
    while (!found && acre_split_next(&lines, &line)) {
        found = match(line, key, separator, &value);
    }
    r = found ? parse(path, value, ret_number, err)
              : acre_fail(err, ACRE_ENOTFOUND, "%s has no line '%s'", path, key);
    acre_buf_finish(&text);
    return r;
}
