/* log.c - one logfmt line per event, built on the stack and written with one write(2).
 *
 * Lines from several threads never mix, because the kernel takes each write as a whole, and a log
 * call never allocates or waits for a lock. Values go through acre_str_show_unit, so no value can
 * end its line, forge another key or reach the terminal as an escape sequence. */
#include "core/log.h"

#include "core/clock.h"
#include "core/str.h"

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 4096 }; /* PIPE_BUF: up to there a write to a pipe is atomic */

static const char *const level_names[] = {"debug", "info", "warn", "error", "none"};

static _Atomic int current_level = ACRE_LOG_INFO; /* relaxed: pairs with nothing */

void acre_log_set_level(enum acre_log_level level) {
    atomic_store_explicit(&current_level, (int)level, memory_order_relaxed);
}

bool acre_log_enabled(enum acre_log_level level) {
    return level != ACRE_LOG_NONE &&
           (int)level >= atomic_load_explicit(&current_level, memory_order_relaxed);
}

bool acre_log_level_parse(const char *text, enum acre_log_level *ret_level) {
    for (size_t i = 0; i < ACRE_COUNT(level_names); i++) {
        if (strcmp(text, level_names[i]) == 0) {
            *ret_level = (enum acre_log_level)i;
            return true;
        }
    }
    return false;
}

struct log_line {
    char *text;
    size_t size; /* room, NUL included */
    size_t length;
    bool full; /* once a piece did not fit, nothing follows it */
};

static void put(struct log_line *line, const char *piece, size_t length) {
    if (line->full || length >= line->size - line->length) {
        line->full = true;
        return;
    }
    memcpy(line->text + line->length, piece, length);
    line->length += length;
    line->text[line->length] = '\0';
}

static void put_text(struct log_line *line, const char *text) {
    put(line, text, strlen(text));
}

/* As it is when it is one plain word; quoted otherwise. */
static bool needs_quotes(const char *value) {
    for (const char *p = value; *p != '\0'; p++) {
        if (*p <= ' ' || (unsigned char)*p >= 0x7f || *p == '"' || *p == '=' || *p == '\\') {
            return true;
        }
    }
    return value[0] == '\0';
}

static void put_value(struct log_line *line, const char *value) {
    if (!needs_quotes(value)) {
        put_text(line, value);
        return;
    }
    if (line->full || line->size - line->length < sizeof("\"\"")) {
        line->full = true;
        return;
    }
    put(line, "\"", 1);
    line->size--; /* the closing quote always fits, even when the value is cut */
    for (struct acre_str rest = acre_str_from(value); rest.length > 0 && !line->full;) {
        char unit[ACRE_SHOW_UNIT_MAX];
        size_t used;
        size_t shown = acre_str_show_unit(rest, unit, &used);
        if (rest.data[0] == '"') {
            put(line, "\\\"", 2);
        } else {
            put(line, unit, shown);
        }
        rest.data += used;
        rest.length -= used;
    }
    line->size++;
    line->text[line->length++] = '"';
    line->text[line->length] = '\0';
}

static void put_pair(struct log_line *line, const char *key, const char *value) {
    put_text(line, key);
    put(line, "=", 1);
    put_value(line, value != NULL ? value : "");
}

char *acre_log_format(char *text, size_t size, uint64_t wall_ms, enum acre_log_level level,
                      const char *message, const struct acre_log_pair *pairs, size_t count) {
    ACRE_ASSERT(size > 0 && (size_t)level < ACRE_COUNT(level_names));
    struct log_line line = {.text = text, .size = size};
    text[0] = '\0';
    char time[25];
    put_pair(&line, "ts", acre_format_time(wall_ms, time));
    put_text(&line, " ");
    put_pair(&line, "level", level_names[level]);
    put_text(&line, " ");
    put_pair(&line, "msg", message);
    for (size_t i = 0; i < count; i++) {
        put_text(&line, " ");
        put_pair(&line, pairs[i].key, pairs[i].value);
    }
    return text;
}

void acre_log_write(enum acre_log_level level, const char *message,
                    const struct acre_log_pair *pairs, size_t count) {
    if (!acre_log_enabled(level)) {
        return;
    }
    struct acre_clock clock = acre_clock_real();
    char line[LINE_MAX_BYTES];
    acre_log_format(line, sizeof(line), acre_clock_wall_ms(&clock), level, message, pairs, count);
    size_t length = strlen(line);
    line[length++] = '\n'; /* over the NUL */
    ssize_t written = write(STDERR_FILENO, line, length);
    (void)written; /* nobody is left to tell */
}
