/* field.c - one walk over the table for what is missing or wrong, one over the request for what is
 * unknown.
 *
 * A value is accepted when one of the field's kinds accepts it. The refusal does not depend on
 * which kind came closest: it shows the value and prints the whole of what the row accepts, which
 * is also what the document says. */
#include "api/field.h"

#include "core/units.h"
#include "http/http.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN_BYTES = 80, ACCEPTED_BYTES = 320 };

#define DURATION_MAX_S (ACRE_DURATION_MAX_MS / 1000)

static uint32_t length_max(const struct field *field, enum field_kind kind) {
    bool is_text = kind == ACRE_KIND_STRING;
    uint32_t fallback = is_text ? ACRE_FIELD_LENGTH_MAX : ACRE_FIELD_ITEMS_MAX;
    return field->max_length != 0 ? field->max_length : fallback;
}

static double number_max(const struct field *field) {
    return field->min == 0 && field->max == 0 ? ACRE_FIELD_NUMBER_MAX : field->max;
}

/* Shown in place of "anything": what the row accepts, for people. */
static const char *accepted_of(const struct field *field, char text[ACCEPTED_BYTES]) {
    struct acre_buf buf;
    acre_buf_init(&buf, ACCEPTED_BYTES - 1);
    const char *between = "";
    for (uint32_t bit = 1; bit <= ACRE_KIND_ARRAY; bit <<= 1) {
        if ((field->kinds & bit) == 0) {
            continue;
        }
        acre_buf_puts(&buf, between);
        between = ", or ";
        switch ((enum field_kind)bit) {
        case ACRE_KIND_STRING:
            for (size_t i = 0; field->words != NULL && field->words[i] != NULL; i++) {
                acre_buf_printf(&buf, "%s%s", i > 0 ? ", " : "", field->words[i]);
            }
            if (field->words == NULL) {
                acre_buf_printf(&buf, "a string of at most %u bytes",
                                length_max(field, ACRE_KIND_STRING));
            }
            break;
        case ACRE_KIND_INTEGER:
            acre_buf_printf(&buf, "a whole number from %.16g to %.16g", field->min,
                            number_max(field));
            break;
        case ACRE_KIND_NUMBER:
            acre_buf_printf(&buf, "a number from %.16g to %.16g", field->min, number_max(field));
            break;
        case ACRE_KIND_BOOL:
            acre_buf_puts(&buf, "true or false");
            break;
        case ACRE_KIND_STRINGS:
            acre_buf_printf(&buf, "a list of at most %u strings",
                            length_max(field, ACRE_KIND_STRINGS));
            break;
        case ACRE_KIND_MAP:
            acre_buf_printf(&buf, "an object of at most %u strings",
                            length_max(field, ACRE_KIND_MAP));
            break;
        case ACRE_KIND_DURATION:
            acre_buf_puts(&buf, "a duration like \"2h30m\" or a number of seconds");
            break;
        case ACRE_KIND_MEMORY:
            acre_buf_puts(&buf, "a size like \"20GiB\" or a number of MiB");
            break;
        case ACRE_KIND_TIME:
            acre_buf_puts(&buf, "a time like \"2026-11-15T02:30:00Z\"");
            break;
        case ACRE_KIND_OBJECT:
            acre_buf_puts(&buf, "an object");
            break;
        case ACRE_KIND_ARRAY:
            acre_buf_puts(&buf, "a list");
            break;
        }
    }
    acre_str_copy(text, ACCEPTED_BYTES, (struct acre_str){buf.data, buf.length});
    acre_buf_finish(&buf);
    return text;
}

static int refuse(const struct field *field, struct acre_str shown, const char *what,
                  struct acre_error *err) {
    char value[SHOWN_BYTES], accepted[ACCEPTED_BYTES];
    return acre_fail(err, ACRE_EINVALID, "%s: '%s' %s; accepted: %s", field->name,
                     acre_str_show(shown, value, sizeof(value)), what,
                     accepted_of(field, accepted));
}

static int refuse_json(const struct field *field, const json_t *value, struct acre_error *err) {
    const char *what = "is not valid";
    if (json_is_string(value)) {
        struct acre_str text = {json_string_value(value), json_string_length(value)};
        return refuse(field, text, what, err);
    }
    if (json_is_object(value) || json_is_array(value)) { /* as long as the client likes */
        return refuse(field, acre_str_from(json_is_array(value) ? "[...]" : "{...}"), what, err);
    }
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
    int r = refuse(field, acre_str_from(text), what, err);
    free(text);
    return r;
}

static bool is_known_word(const struct field *field, const char *text) {
    for (size_t i = 0; field->words != NULL && field->words[i] != NULL; i++) {
        if (strcmp(field->words[i], text) == 0) {
            return true;
        }
    }
    return field->words == NULL;
}

static bool is_in_range(const struct field *field, double number) {
    return isfinite(number) && number >= field->min && number <= number_max(field);
}

/* Two digits or more at `*text`, as many as `count`, a number up to `max`. */
static bool take_digits(const char **text, unsigned count, unsigned max, unsigned *ret_number) {
    unsigned number = 0;
    for (unsigned i = 0; i < count; i++, (*text)++) {
        if (**text < '0' || **text > '9') {
            return false;
        }
        number = number * 10 + (unsigned)(**text - '0');
    }
    *ret_number = number;
    return number <= max;
}

static bool take_char(const char **text, const char *accepted) {
    if (**text == '\0' || strchr(accepted, **text) == NULL) {
        return false;
    }
    (*text)++;
    return true;
}

/* Days from 1970-01-01 in the Gregorian calendar; years are 1970 to 9999 here. */
static uint64_t days_of(unsigned year, unsigned month, unsigned day) {
    unsigned y = month <= 2 ? year - 1 : year; /* years begin in March, so leap days are last */
    unsigned m = month <= 2 ? month + 9 : month - 3;
    return (uint64_t)365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719468;
}

static unsigned days_in(unsigned year, unsigned month) {
    static const unsigned char days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return days[month - 1] + (month == 2 && is_leap);
}

/* "Z" or "+02:00": minutes east. */
static bool take_zone(const char **text, int *ret_minutes) {
    char sign = **text;
    unsigned hours = 0, minutes = 0;
    if (!take_char(text, "Zz+-")) {
        return false;
    }
    if (sign == '+' || sign == '-') {
        if (!take_digits(text, 2, 23, &hours) || !take_char(text, ":") ||
            !take_digits(text, 2, 59, &minutes)) {
            return false;
        }
    }
    *ret_minutes = (int)(hours * 60 + minutes) * (sign == '-' ? -1 : 1);
    return **text == '\0';
}

bool field_time_text(const char *text, uint64_t *ret_wall_ms) {
    unsigned year, month, day, hour, minute, second, ms = 0;
    if (!take_digits(&text, 4, 9999, &year) || !take_char(&text, "-") ||
        !take_digits(&text, 2, 12, &month) || !take_char(&text, "-") ||
        !take_digits(&text, 2, 31, &day) || !take_char(&text, "Tt ") ||
        !take_digits(&text, 2, 23, &hour) || !take_char(&text, ":") ||
        !take_digits(&text, 2, 59, &minute) || !take_char(&text, ":") ||
        !take_digits(&text, 2, 59, &second)) {
        return false;
    }
    if (year < 1970 || month == 0 || day == 0 || day > days_in(year, month)) {
        return false;
    }
    if (take_char(&text, ".")) {
        unsigned digits = 0, scale = 100;
        for (; *text >= '0' && *text <= '9' && digits < 9; text++, digits++, scale /= 10) {
            ms += scale * (unsigned)(*text - '0'); /* past the third they count nothing */
        }
        if (digits == 0) {
            return false;
        }
    }
    int zone_minutes = 0;
    if (!take_zone(&text, &zone_minutes)) {
        return false;
    }
    int64_t minutes = (int64_t)days_of(year, month, day) * 1440 + hour * 60 + minute - zone_minutes;
    if (minutes < 0) {
        return false;
    }
    *ret_wall_ms = ((uint64_t)minutes * 60 + second) * 1000 + ms;
    return true;
}

bool field_duration_text(const char *text, uint64_t *ret_ms) {
    uint64_t seconds = 0;
    if (acre_parse_count("", text, 0, DURATION_MAX_S, &seconds, NULL) == 0) {
        *ret_ms = seconds * 1000;
        return true;
    }
    return acre_parse_duration("", text, ret_ms, NULL) == 0;
}

bool field_duration(const json_t *value, uint64_t *ret_ms) {
    if (json_is_string(value)) {
        return acre_parse_duration("", json_string_value(value), ret_ms, NULL) == 0;
    }
    double seconds = json_number_value(value);
    if (!json_is_number(value) || !(seconds >= 0 && seconds <= (double)DURATION_MAX_S)) {
        return false;
    }
    *ret_ms = (uint64_t)llround(seconds * 1000);
    return true;
}

bool field_memory(const json_t *value, uint64_t *ret_mib) {
    if (json_is_string(value)) {
        return acre_parse_mib("", json_string_value(value), ret_mib, NULL) == 0;
    }
    json_int_t mib = json_integer_value(value);
    if (!json_is_integer(value) || mib < 1 || (uint64_t)mib > ACRE_MIB_MAX) {
        return false;
    }
    *ret_mib = (uint64_t)mib;
    return true;
}

bool field_time(const json_t *value, uint64_t *ret_wall_ms) {
    return json_is_string(value) && field_time_text(json_string_value(value), ret_wall_ms);
}

static bool all_strings(const json_t *value) {
    for (size_t i = 0; i < json_array_size(value); i++) {
        const json_t *item = json_array_get(value, i);
        if (!json_is_string(item) || json_string_length(item) > ACRE_FIELD_LENGTH_MAX) {
            return false;
        }
    }
    return true;
}

static bool all_string_members(const json_t *value) {
    const char *key;
    json_t *member;
    json_object_foreach((json_t *)(uintptr_t)value, key, member) {
        if (!json_is_string(member)) {
            return false;
        }
    }
    return true;
}

static bool accepts(const struct field *field, enum field_kind kind, const json_t *value) {
    uint64_t ignored;
    switch (kind) {
    case ACRE_KIND_STRING:
        return json_is_string(value) && json_string_length(value) <= length_max(field, kind) &&
               is_known_word(field, json_string_value(value));
    case ACRE_KIND_INTEGER:
        return json_is_integer(value) && is_in_range(field, (double)json_integer_value(value));
    case ACRE_KIND_NUMBER:
        return json_is_number(value) && is_in_range(field, json_number_value(value));
    case ACRE_KIND_BOOL:
        return json_is_boolean(value);
    case ACRE_KIND_STRINGS:
        return json_is_array(value) && json_array_size(value) <= length_max(field, kind) &&
               all_strings(value);
    case ACRE_KIND_MAP:
        return json_is_object(value) && json_object_size(value) <= length_max(field, kind) &&
               all_string_members(value);
    case ACRE_KIND_DURATION:
        return field_duration(value, &ignored);
    case ACRE_KIND_MEMORY:
        return field_memory(value, &ignored);
    case ACRE_KIND_TIME:
        return field_time(value, &ignored);
    case ACRE_KIND_OBJECT:
        return json_is_object(value);
    case ACRE_KIND_ARRAY:
        return json_is_array(value);
    }
    return false;
}

static int check_value(const struct field *field, const json_t *value, struct acre_error *err) {
    for (uint32_t bit = 1; bit <= ACRE_KIND_ARRAY; bit <<= 1) {
        if ((field->kinds & bit) != 0 && accepts(field, (enum field_kind)bit, value)) {
            return 0;
        }
    }
    return refuse_json(field, value, err);
}

static const struct field *find_field(const struct field *fields, const char *name) {
    for (; fields != NULL && fields->name != NULL; fields++) {
        if (strcmp(fields->name, name) == 0) {
            return fields;
        }
    }
    return NULL;
}

static int refuse_unknown(const struct field *fields, const char *what, const char *name,
                          struct acre_error *err) {
    char shown[SHOWN_BYTES], known[ACCEPTED_BYTES] = "none";
    struct acre_buf buf;
    acre_buf_init(&buf, sizeof(known) - 1);
    for (const struct field *f = fields; f != NULL && f->name != NULL; f++) {
        acre_buf_printf(&buf, "%s%s", buf.length > 0 ? ", " : "", f->name);
    }
    if (buf.length > 0) {
        snprintf(known, sizeof(known), "%s%s", buf.data, buf.failed ? ", ..." : "");
    }
    acre_buf_finish(&buf);
    acre_str_show(acre_str_from(name), shown, sizeof(shown));
    return acre_fail(err, ACRE_EINVALID, "%s: unknown %s; accepted: %s", shown, what, known);
}

static int refuse_missing(const struct field *field, struct acre_error *err) {
    char accepted[ACCEPTED_BYTES];
    return acre_fail(err, ACRE_EINVALID, "%s: required; accepted: %s", field->name,
                     accepted_of(field, accepted));
}

int fields_check_body(const struct field *fields, const json_t *body, struct acre_error *err) {
    if (body != NULL && !json_is_object(body)) {
        return acre_fail(err, ACRE_EINVALID, "body: not an object; accepted: {\"field\": ...}");
    }
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)body, key, value) {
        if (find_field(fields, key) == NULL) {
            return refuse_unknown(fields, "field", key, err);
        }
    }
    for (const struct field *f = fields; f != NULL && f->name != NULL; f++) {
        const json_t *given = json_object_get(body, f->name);
        bool is_absent = given == NULL || json_is_null(given);
        int r = 0;
        if (is_absent && f->required) {
            r = refuse_missing(f, err);
        } else if (!is_absent) {
            r = check_value(f, given, err);
        }
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

/* A number as people write it; exact for whole ones up to 2^53. */
static bool parse_number(const char *text, bool whole, double *ret_number) {
    char *end = NULL;
    size_t digits = strspn(text + (text[0] == '-'), whole ? "0123456789" : "0123456789.");
    if (digits == 0 || digits > 32 || text[(text[0] == '-') + digits] != '\0') {
        return false;
    }
    errno = 0;
    *ret_number = strtod(text, &end);
    return errno == 0 && *end == '\0';
}

int field_check_text(const struct field *field, const char *text, struct acre_error *err) {
    struct acre_str view = acre_str_from(text);
    double number;
    uint64_t ignored;
    bool ok =
        ((field->kinds & ACRE_KIND_STRING) != 0 &&
         view.length <= length_max(field, ACRE_KIND_STRING) && is_known_word(field, text)) ||
        ((field->kinds & ACRE_KIND_INTEGER) != 0 && parse_number(text, true, &number) &&
         is_in_range(field, number)) ||
        ((field->kinds & ACRE_KIND_NUMBER) != 0 && parse_number(text, false, &number) &&
         is_in_range(field, number)) ||
        ((field->kinds & ACRE_KIND_BOOL) != 0 &&
         (strcmp(text, "1") == 0 || strcmp(text, "true") == 0 || strcmp(text, "0") == 0 ||
          strcmp(text, "false") == 0)) ||
        ((field->kinds & ACRE_KIND_DURATION) != 0 && field_duration_text(text, &ignored)) ||
        ((field->kinds & ACRE_KIND_MEMORY) != 0 && acre_parse_mib("", text, &ignored, NULL) == 0) ||
        ((field->kinds & ACRE_KIND_TIME) != 0 && field_time_text(text, &ignored));
    return ok ? 0 : refuse(field, view, "is not valid", err);
}

int fields_check_query(const struct field *fields, struct acre_exchange *exchange,
                       struct acre_error *err) {
    const char *key, *value;
    for (uint32_t i = 0; acre_http_query_at(exchange, i, &key, &value); i++) {
        const struct field *field = find_field(fields, key);
        int r = field != NULL ? field_check_text(field, value, err)
                              : refuse_unknown(fields, "query parameter", key, err);
        if (r < 0) {
            return r;
        }
    }
    for (const struct field *f = fields; f != NULL && f->name != NULL; f++) {
        if (f->required && acre_http_query(exchange, f->name) == NULL) {
            return refuse_missing(f, err);
        }
    }
    return 0;
}
