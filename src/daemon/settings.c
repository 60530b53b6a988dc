/* settings.c - one table, three sources.
 *
 * A setting's value is looked up on the command line, then in the environment, then in the file,
 * and parsed once, by its kind. So all sources give the same errors, and a new setting is a new
 * row. */
#include "daemon/settings.h"

#include "core/file.h"
#include "core/log.h"
#include "core/str.h"
#include "core/units.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_MAX_BYTES = 1 << 20, NAME_MAX_BYTES = 64, SHOWN = 80 };

enum setting_kind { STRING, FLAG, COUNT, DURATION, LIST };

struct setting_row {
    const char *name;
    enum setting_kind kind;
    const char *absent;
    size_t given, to; /* offsets */
};

static const struct setting_row rows[] = {
#define X(member, name, kind, value, absent, help)                                                 \
    {name, kind, absent, offsetof(struct acre_settings_given, member),                             \
     offsetof(struct settings, member)},
    ACRE_SETTINGS(X)
#undef X
};

/* A line of the file. */
struct setting_line {
    uint32_t number;
    size_t row;
    char *value;
};

struct file {
    const char *name;
    struct setting_line *lines;
    uint32_t count;
};

/* A value and where it came from, for messages. */
struct setting_value {
    const char *text;
    char from[160];
};

/* --- the file ------------------------------------------------------------------------------- */

static int read_line(struct file *file, uint32_t number, struct acre_str text,
                     struct acre_error *err) {
    char name[NAME_MAX_BYTES];
    char shown[SHOWN];
    text = acre_str_trim(text);
    if (text.length > 0 && text.data[text.length - 1] == '\r') {
        text.length--;
    }
    if (text.length == 0 || text.data[0] == '#') {
        return 0;
    }
    const char *equals = memchr(text.data, '=', text.length);
    size_t before = equals != NULL ? (size_t)(equals - text.data) : 0;
    if (equals == NULL) {
        return acre_fail(err, ACRE_EINVALID, "%s:%u: malformed line '%s'; accepted: name = value",
                         file->name, number, acre_str_show(text, shown, sizeof(shown)));
    }
    struct acre_str key = acre_str_trim((struct acre_str){text.data, before});
    struct acre_str value = acre_str_trim((struct acre_str){equals + 1, text.length - before - 1});
    size_t row = 0;
    bool fits = acre_str_copy(name, sizeof(name), key);
    while (row < ACRE_COUNT(rows) && (!fits || strcmp(rows[row].name, name) != 0)) {
        row++;
    }
    if (row == ACRE_COUNT(rows)) {
        return acre_fail(err, ACRE_EINVALID,
                         "%s:%u: unknown setting '%s'; 'acre help serve' lists them", file->name,
                         number, acre_str_show(key, shown, sizeof(shown)));
    }
    for (uint32_t i = 0; i < file->count && rows[row].kind != LIST; i++) {
        if (file->lines[i].row == row) {
            return acre_fail(err, ACRE_EINVALID, "%s:%u: '%s' is given twice", file->name, number,
                             rows[row].name);
        }
    }
    file->lines = acre_realloc(file->lines, file->count + 1U, sizeof(*file->lines));
    struct setting_line *line = &file->lines[file->count++];
    *line = (struct setting_line){.number = number, .row = row};
    line->value = acre_calloc(value.length + 1, 1);
    memcpy(line->value, value.data, value.length);
    return 0;
}

static int read_file(const char *path, struct file *file, struct acre_error *err) {
    struct acre_buf text;
    acre_buf_init(&text, FILE_MAX_BYTES);
    int r = acre_file_read(path, FILE_MAX_BYTES, &text, err);
    struct acre_split lines = acre_split_begin((struct acre_str){text.data, text.length}, '\n');
    struct acre_str line;
    file->name = path;
    for (uint32_t number = 1; r == 0 && acre_split_next(&lines, &line); number++) {
        r = read_line(file, number, line, err);
    }
    acre_buf_finish(&text);
    return r;
}

static void file_finish(struct file *file) {
    for (uint32_t i = 0; i < file->count; i++) {
        free(file->lines[i].value);
    }
    free(file->lines);
}

/* --- values --------------------------------------------------------------------------------- */

static const char *from_environment(const char *name, char variable[NAME_MAX_BYTES]) {
    snprintf(variable, NAME_MAX_BYTES, "ACRE_%s", name);
    for (char *c = variable; *c != '\0'; c++) {
        *c = *c == '-' ? '_' : (char)toupper((unsigned char)*c);
    }
    return getenv(variable);
}

/* The value of a setting that is not a list; text NULL: nobody said anything. */
static struct setting_value find(const struct setting_row *row, const void *given,
                                 const struct file *file) {
    struct setting_value found = {.text = row->absent};
    char variable[NAME_MAX_BYTES];
    snprintf(found.from, sizeof(found.from), "--%s", row->name);
    if (row->kind == FLAG && *(const bool *)((const char *)given + row->given)) {
        found.text = "true";
        return found;
    }
    const void *flag = (const char *)given + row->given;
    if (row->kind != FLAG && *(char *const *)flag != NULL) {
        found.text = *(char *const *)flag;
        return found;
    }
    const char *text = from_environment(row->name, variable);
    if (text != NULL) {
        found.text = text;
        snprintf(found.from, sizeof(found.from), "%s", variable);
        return found;
    }
    for (uint32_t i = 0; i < file->count; i++) {
        if (&rows[file->lines[i].row] == row) {
            found.text = file->lines[i].value;
            snprintf(found.from, sizeof(found.from), "%s:%u: %s", file->name, file->lines[i].number,
                     row->name);
        }
    }
    return found;
}

static int put_flag(const struct setting_value *found, bool *to, struct acre_error *err) {
    char shown[SHOWN];
    if (strcmp(found->text, "true") == 0 || strcmp(found->text, "1") == 0) {
        *to = true;
    } else if (strcmp(found->text, "false") != 0 && strcmp(found->text, "0") != 0) {
        return acre_fail(err, ACRE_EINVALID, "%s: invalid value '%s'; accepted: true or false",
                         found->from,
                         acre_str_show(acre_str_from(found->text), shown, sizeof(shown)));
    }
    return 0;
}

static int add_item(const struct setting_row *row, struct settings *settings, const char *text,
                    struct acre_error *err) {
    struct settings_list *list = (void *)((char *)settings + row->to);
    if (list->count == ACRE_OPT_LIST_MAX) {
        char shown[SHOWN];
        return acre_fail(err, ACRE_EINVALID, "%s: '%s' is one too many; accepted: at most %d",
                         row->name, acre_str_show(acre_str_from(text), shown, sizeof(shown)),
                         ACRE_OPT_LIST_MAX);
    }
    list->items[list->count++] = acre_strdup(text);
    return 0;
}

static int put_list(const struct setting_row *row, const void *given, const struct file *file,
                    struct settings *settings, struct acre_error *err) {
    const struct acre_opt_list *flags = (const void *)((const char *)given + row->given);
    char variable[NAME_MAX_BYTES];
    const char *text = from_environment(row->name, variable);
    int r = 0;
    for (uint32_t i = 0; i < flags->count && r == 0; i++) {
        r = add_item(row, settings, flags->items[i], err);
    }
    if (flags->count == 0 && text != NULL) {
        r = add_item(row, settings, text, err);
    }
    for (uint32_t i = 0; i < file->count && flags->count == 0 && text == NULL && r == 0; i++) {
        if (&rows[file->lines[i].row] == row) {
            r = add_item(row, settings, file->lines[i].value, err);
        }
    }
    return r;
}

static int put(const struct setting_row *row, const void *given, const struct file *file,
               struct settings *settings, struct acre_error *err) {
    if (row->kind == LIST) {
        return put_list(row, given, file, settings, err);
    }
    struct setting_value found = find(row, given, file);
    void *to = (char *)settings + row->to;
    if (found.text == NULL) {
        return 0;
    }
    switch (row->kind) {
    case STRING:
        *(char **)to = acre_strdup(found.text);
        return 0;
    case FLAG:
        return put_flag(&found, to, err);
    case COUNT:
        return acre_parse_count(found.from, found.text, 1, 1000000, to, err);
    case DURATION:
        return acre_parse_duration(found.from, found.text, to, err);
    case LIST:
        break;
    }
    return 0;
}

static int check(const struct settings *settings, struct acre_error *err) {
    enum acre_log_level level;
    char shown[SHOWN];
    if (!acre_log_level_parse(settings->log_level, &level)) {
        return acre_fail(
            err, ACRE_EINVALID,
            "log-level: unknown level '%s'; accepted: debug, info, warn, error or none",
            acre_str_show(acre_str_from(settings->log_level), shown, sizeof(shown)));
    }
    if ((settings->tls_cert != NULL) != (settings->tls_key != NULL)) {
        return acre_fail(err, ACRE_EINVALID,
                         "tls-%s is missing; TLS needs both tls-cert and tls-key",
                         settings->tls_cert != NULL ? "key" : "cert");
    }
    if (settings->sample < 100) {
        return acre_fail(err, ACRE_EINVALID, "sample: '%s' is too short; accepted: 100ms or more",
                         acre_format_duration(settings->sample, shown, sizeof(shown)));
    }
    return 0;
}

int settings_read(const struct acre_settings_given *given, struct settings *ret_settings,
                  struct acre_error *err) {
    struct settings settings = {0};
    struct file file = {0};
    const char *path = given->config != NULL ? given->config : getenv("ACRE_CONFIG");
    int r = path != NULL ? read_file(path, &file, err) : 0;
    for (size_t i = 0; i < ACRE_COUNT(rows) && r == 0; i++) {
        r = put(&rows[i], given, &file, &settings, err);
    }
    if (r == 0) {
        r = check(&settings, err);
    }
    file_finish(&file);
    if (r < 0) {
        settings_finish(&settings);
        return r;
    }
    *ret_settings = settings;
    return 0;
}

void settings_finish(struct settings *settings) {
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        void *at = (char *)settings + rows[i].to;
        if (rows[i].kind == STRING) {
            free(*(char **)at);
        }
        struct settings_list *list = at;
        for (uint32_t item = 0; rows[i].kind == LIST && item < list->count; item++) {
            free(list->items[item]);
        }
    }
    *settings = (struct settings){0};
}
