/* show_account.c - policy, quotas, usage, tokens, the audit trail and statistics for people. */
#include "cli/show.h"
#include "cli/when.h"
#include "core/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A JSON value in one line, as people write it on the command line. */
static void value_text(const json_t *value, char *text, size_t size) {
    if (json_is_string(value)) {
        snprintf(text, size, "%s", json_string_value(value));
    } else if (json_is_integer(value)) {
        snprintf(text, size, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    } else if (json_is_real(value)) {
        snprintf(text, size, "%g", json_real_value(value));
    } else if (json_is_boolean(value)) {
        snprintf(text, size, "%s", json_is_true(value) ? "true" : "false");
    } else if (json_is_array(value)) {
        snprintf(text, size, "%zu rows", json_array_size(value));
    } else {
        snprintf(text, size, "-");
    }
}

void acre_show_quotas(const struct acre_show *view, const json_t *answer) {
    static const struct acre_table_column columns[] = {
        {.heading = "WHO"},
        {.heading = "GPUS", .right = true},
        {.heading = "GPU MEMORY", .right = true},
        {.heading = "RUNNING", .right = true},
        {.heading = "QUEUED", .right = true},
        {.heading = "GPU HOURS", .right = true},
        {.heading = "KIND"},
    };
    static const char *const keys[] = {"gpus", "memory", "running", "queued", "gpu_hours"};
    struct acre_table *table = acre_table_create(columns, ACRE_COUNT(columns));
    const json_t *quota;
    size_t i;
    json_array_foreach(acre_answer_at(answer, "quotas"), i, quota) {
        char text[64];
        acre_table_row(table);
        acre_show_cell(table, acre_answer_text(quota, "who", "-"));
        for (size_t k = 0; k < ACRE_COUNT(keys); k++) {
            value_text(acre_answer_at(quota, keys[k]), text, sizeof(text));
            acre_show_cell(table, strcmp(text, "0") == 0 ? "-" : text);
        }
        acre_show_cell(table, acre_answer_true(quota, "soft") ? "soft" : "hard");
    }
    acre_show_table(view, table, "No quota: nobody is limited. ('acre quota set' makes one.)");
}

void acre_show_policy(const struct acre_show *view, const json_t *answer) {
    const json_t *inner = acre_answer_at(answer, "policy");
    const json_t *policy = json_is_object(inner) ? inner : answer;
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)policy, key, value) {
        char text[ACRE_SHOW_TEXT_MAX];
        value_text(value, text, sizeof(text));
        acre_buf_printf(view->out, "%-20s %s\n", key, text);
    }
}

static void put_ratio(struct acre_table *table, const json_t *row, const char *path, double scale,
                      const char *unit) {
    double value;
    char text[64];
    if (!acre_answer_number(row, path, &value)) {
        acre_show_cell(table, "-");
        return;
    }
    snprintf(text, sizeof(text), "%.1f%s", value * scale, unit);
    acre_show_cell(table, text);
}

void acre_show_usage(const struct acre_show *view, const json_t *answer) {
    static const struct acre_table_column columns[] = {
        {.heading = "PROJECT"},
        {.heading = "USER"},
        {.heading = "GPU HOURS", .right = true},
        {.heading = "USED", .right = true},
        {.heading = "SHARE", .right = true},
        {.heading = "FACTOR", .right = true, .rank = 3},
        {.heading = "GPUS NOW", .right = true},
        {.heading = "RUNNING", .right = true, .rank = 2},
        {.heading = "QUEUED", .right = true, .rank = 2},
    };
    struct acre_table *table = acre_table_create(columns, ACRE_COUNT(columns));
    const json_t *row;
    size_t i;
    json_array_foreach(acre_answer_at(answer, "accounts"), i, row) {
        char text[64];
        double factor;
        acre_table_row(table);
        acre_show_cell(table, acre_answer_text(row, "project", "-"));
        acre_show_cell(table, acre_answer_text(row, "user", "-"));
        put_ratio(table, row, "gpu_hours", 1, "");
        put_ratio(table, row, "used", 100, " %");
        put_ratio(table, row, "share", 100, " %");
        snprintf(text, sizeof(text), "-");
        if (acre_answer_number(row, "factor", &factor)) {
            snprintf(text, sizeof(text), "%.3f", factor);
        }
        acre_show_cell(table, text);
        acre_show_cell(table, acre_answer_milli(row, "held_milli", text, sizeof(text)));
        acre_show_cell(table, acre_answer_count(row, "running", text, sizeof(text)));
        acre_show_cell(table, acre_answer_count(row, "queued", text, sizeof(text)));
    }
    acre_show_table(view, table, "Nobody has used anything yet.");
}

void acre_show_tokens(const struct acre_show *view, const json_t *answer) {
    static const struct acre_table_column columns[] = {
        {.heading = "ID", .right = true},
        {.heading = "USER"},
        {.heading = "PROJECT", .rank = 4},
        {.heading = "ROLE"},
        {.heading = "CREATED", .rank = 3},
        {.heading = "EXPIRES"},
        {.heading = "STATE"},
        {.heading = "NOTE", .rank = 5, .shrink_to = 10, .cut_end = true},
    };
    struct acre_table *table = acre_table_create(columns, ACRE_COUNT(columns));
    const json_t *token;
    size_t i;
    json_array_foreach(acre_answer_at(answer, "tokens"), i, token) {
        char text[64];
        uint64_t at;
        bool revoked = acre_answer_time(token, "revoked", &at);
        bool expired = acre_answer_time(token, "expires", &at) && at <= view->now_ms;
        acre_table_row(table);
        acre_show_cell(table, acre_answer_count(token, "id", text, sizeof(text)));
        acre_show_cell(table, acre_answer_text(token, "user", "-"));
        acre_show_cell(table, acre_answer_text(token, "project", "-"));
        acre_show_cell(table, acre_answer_text(token, "role", "-"));
        acre_show_cell(table, acre_answer_ago(token, "created", view->now_ms, text, sizeof(text)));
        acre_show_cell(table, acre_answer_ago(token, "expires", view->now_ms, text, sizeof(text)));
        acre_table_cell(table, revoked || expired ? ACRE_COLOUR_DIM : ACRE_COLOUR_GREEN,
                        revoked   ? "revoked"
                        : expired ? "expired"
                                  : "good");
        acre_show_cell(table, acre_answer_text(token, "note", "-"));
    }
    acre_show_table(view, table, "No token.");
}

void acre_show_token(const struct acre_show *view, const json_t *answer) {
    const char *secret = acre_answer_text(answer, "secret", acre_answer_text(answer, "token", "-"));
    acre_buf_printf(view->out, "%s\n", secret);
    if (view->term.is_terminal) {
        acre_buf_puts(view->out,
                      "This is shown once. Keep it in ~/.config/acre/token (mode 600).\n");
    }
}

void acre_show_audit(const struct acre_show *view, const json_t *answer) {
    static const struct acre_table_column columns[] = {
        {.heading = "SEQ", .right = true, .rank = 5},
        {.heading = "TIME"},
        {.heading = "WHO"},
        {.heading = "FROM", .rank = 4},
        {.heading = "WHAT"},
        {.heading = "TARGET"},
        {.heading = "RESULT"},
        {.heading = "DETAIL", .rank = 2, .shrink_to = 12, .cut_end = true},
    };
    static const char *const keys[] = {"actor", "origin", "action", "target"};
    struct acre_table *table = acre_table_create(columns, ACRE_COUNT(columns));
    const json_t *row;
    size_t i;
    json_array_foreach(acre_answer_at(answer, "audit"), i, row) {
        char text[64] = "-";
        uint64_t at;
        acre_table_row(table);
        acre_show_cell(table, acre_answer_count(row, "seq", text, sizeof(text)));
        snprintf(text, sizeof(text), "-");
        if (acre_answer_time(row, "at", &at)) {
            acre_when_clock(at, view->now_ms, text, sizeof(text));
        }
        acre_show_cell(table, text);
        for (size_t k = 0; k < ACRE_COUNT(keys); k++) {
            acre_show_cell(table, acre_answer_text(row, keys[k], "-"));
        }
        const char *result = acre_answer_text(row, "result", "-");
        acre_table_cell(table, strcmp(result, "ok") == 0 ? ACRE_COLOUR_NONE : ACRE_COLOUR_RED,
                        result);
        acre_show_cell(table, acre_answer_text(row, "detail", "-"));
    }
    acre_show_table(view, table, "Nothing is recorded that fits.");
}

void acre_show_audit_verdict(const struct acre_show *view, const json_t *answer) {
    char count[32];
    bool good = acre_answer_true(answer, "ok");
    acre_term_put(&view->term, view->out, good ? ACRE_COLOUR_GREEN : ACRE_COLOUR_RED,
                  good ? "unchanged" : "CHANGED");
    acre_buf_printf(view->out, ": %s records checked%s%s\n",
                    acre_answer_count(answer, "count", count, sizeof(count)), good ? "" : "; ",
                    acre_answer_text(answer, "text", ""));
}

void acre_show_stats(const struct acre_show *view, const json_t *answer) {
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)answer, key, value) {
        char text[ACRE_SHOW_TEXT_MAX];
        if (json_is_object(value)) {
            const char *inner;
            json_t *part;
            acre_term_put(&view->term, view->out, ACRE_COLOUR_BOLD, key);
            acre_buf_putc(view->out, '\n');
            json_object_foreach(value, inner, part) {
                value_text(part, text, sizeof(text));
                acre_buf_printf(view->out, "  %-22s %s\n", inner, text);
            }
        } else {
            value_text(value, text, sizeof(text));
            acre_buf_printf(view->out, "%-24s %s\n", key, text);
        }
    }
}
