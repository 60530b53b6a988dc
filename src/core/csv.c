/* csv.c - splits lines into cells without copying.
 *
 * One line at a time is taken from the text and split at commas into views. The header maps each
 * wanted column to its place in the file once; after that a row is a lookup. There is no quoting,
 * so splitting needs no state, and a stray '"' is refused rather than misread. */
#include "core/csv.h"

#include "core/units.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { SHOWN_BYTES = 64, LIST_BYTES = 256, NAME_BYTES = 160 };

static char *show_name(const struct acre_csv *csv, char shown[NAME_BYTES]) {
    return acre_str_show(acre_str_from(csv->name), shown, NAME_BYTES);
}

static int fail_line(const struct acre_csv *csv, struct acre_error *err, const char *format, ...)
    ACRE_PRINTF(3, 4);

static int fail_line(const struct acre_csv *csv, struct acre_error *err, const char *format, ...) {
    struct acre_error text = {0};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text.text, sizeof(text.text), format, arguments);
    va_end(arguments);
    char shown[NAME_BYTES];
    return acre_fail(err, ACRE_EINVALID, "%s:%u: %s", show_name(csv, shown), csv->line, text.text);
}

/* Cut the next line off the text, without its end. */
static int take_line(struct acre_csv *csv, struct acre_str *ret_line, struct acre_error *err) {
    csv->line++;
    const char *end = memchr(csv->rest.data, '\n', csv->rest.length);
    if (end == NULL) {
        return fail_line(csv, err, "the file is truncated: its last line has no newline");
    }
    struct acre_str line = {csv->rest.data, (size_t)(end - csv->rest.data)};
    csv->rest.data = end + 1;
    csv->rest.length -= line.length + 1;
    if (line.length > 0 && line.data[line.length - 1] == '\r') {
        line.length--;
    }
    for (size_t i = 0; i < line.length; i++) {
        unsigned char c = (unsigned char)line.data[i];
        if (c == '"' || (c < ' ' && c != '\t') || c == 0x7f) {
            char shown[SHOWN_BYTES];
            acre_str_show((struct acre_str){line.data + i, 1}, shown, sizeof(shown));
            return fail_line(
                csv, err, "invalid character '%s' at byte %zu; accepted: plain text without quotes",
                shown, i + 1);
        }
    }
    *ret_line = line;
    return 0;
}

/* Split into csv->cells; returns how many there are, even past the maximum. */
static uint32_t split_line(struct acre_csv *csv, struct acre_str line) {
    uint32_t count = 0;
    struct acre_str part;
    struct acre_split split = acre_split_begin(line, ',');
    while (acre_split_next(&split, &part)) {
        if (count < ACRE_CSV_COLUMNS_MAX) {
            csv->cells[count] = part;
        }
        count++;
    }
    return count;
}

static int find_column(struct acre_csv *csv, uint32_t wanted, struct acre_error *err) {
    const char *name = csv->wanted_names[wanted];
    bool found = false;
    for (uint32_t i = 0; i < csv->columns; i++) {
        if (acre_str_is(csv->cells[i], name)) {
            if (found) {
                return fail_line(csv, err, "column '%s' appears twice", name);
            }
            csv->position[wanted] = (uint8_t)i;
            found = true;
        }
    }
    return found ? 0 : ACRE_ENOTFOUND;
}

static int read_header(struct acre_csv *csv, struct acre_error *err) {
    struct acre_str line;
    int r = take_line(csv, &line, err);
    if (r < 0) {
        return r;
    }
    csv->columns = split_line(csv, line);
    if (csv->columns > ACRE_CSV_COLUMNS_MAX) {
        return fail_line(csv, err, "%u columns; accepted: at most %d", csv->columns,
                         (int)ACRE_CSV_COLUMNS_MAX);
    }
    for (uint32_t i = 0; i < csv->wanted; i++) {
        r = find_column(csv, i, err);
        if (r == ACRE_ENOTFOUND) {
            char shown[LIST_BYTES];
            return fail_line(csv, err, "column '%s' is missing; the header is '%s'",
                             csv->wanted_names[i], acre_str_show(line, shown, sizeof(shown)));
        }
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

int acre_csv_begin(struct acre_csv *csv, const char *name, struct acre_str text,
                   const char *const *wanted, uint32_t count, struct acre_error *err) {
    ACRE_ASSERT(count > 0 && count <= ACRE_CSV_COLUMNS_MAX);
    *csv = (struct acre_csv){.name = name, .rest = text, .wanted = count, .wanted_names = wanted};
    if (text.length > UINT32_MAX) { /* so that no line number wraps */
        char shown[NAME_BYTES];
        return acre_fail(err, ACRE_ELIMIT, "%s: too large; accepted: less than 4 GiB",
                         show_name(csv, shown));
    }
    if (text.length == 0) {
        csv->line = 1;
        return fail_line(csv, err, "the file is empty; accepted: a header line");
    }
    return read_header(csv, err);
}

int acre_csv_next(struct acre_csv *csv, struct acre_error *err) {
    if (csv->rest.length == 0) {
        return 0;
    }
    struct acre_str line;
    int r = take_line(csv, &line, err);
    if (r < 0) {
        return r;
    }
    uint32_t count = split_line(csv, line);
    if (count != csv->columns) {
        return fail_line(csv, err, "%u fields; accepted: %u, as in the header", count,
                         csv->columns);
    }
    return 1;
}

struct acre_str acre_csv_cell(const struct acre_csv *csv, uint32_t wanted_index) {
    ACRE_ASSERT(wanted_index < csv->wanted);
    return csv->cells[csv->position[wanted_index]];
}

int acre_csv_u64(const struct acre_csv *csv, uint32_t wanted_index, uint64_t min, uint64_t max,
                 uint64_t *ret_value, struct acre_error *err) {
    struct acre_str cell = acre_csv_cell(csv, wanted_index);
    char column[SHOWN_BYTES], text[SHOWN_BYTES];
    snprintf(column, sizeof(column), "column '%s'", csv->wanted_names[wanted_index]);
    if (!acre_str_copy(text, sizeof(text), cell)) {
        acre_str_show(cell, text, sizeof(text)); /* too long for a number: refused just below */
    }
    int r = acre_parse_count(column, text, min, max, ret_value, err);
    char shown[NAME_BYTES];
    return r < 0 ? acre_fail_in(err, r, "%s:%u", show_name(csv, shown), csv->line) : 0;
}

int acre_csv_fail(const struct acre_csv *csv, uint32_t wanted_index, struct acre_error *err,
                  const char *format, ...) {
    ACRE_ASSERT(wanted_index < csv->wanted);
    struct acre_error text = {0};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text.text, sizeof(text.text), format, arguments);
    va_end(arguments);
    return fail_line(csv, err, "column '%s': %s", csv->wanted_names[wanted_index], text.text);
}
