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
        {.heading = "PARENT", .right = true, .rank = 6},
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
        acre_show_cell(table, acre_answer_count(token, "parent", text, sizeof(text)));
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
        acre_buf_puts(
            view->out,
            "This is shown once. Keep it where you use it, in ~/.config/acre/tokens (mode\n"
            "600), as a line 'https://HOST:PORT TOKEN'.\n");
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
    if (good) {
        acre_buf_printf(view->out, ": %s records checked\n",
                        acre_answer_count(answer, "count", count, sizeof(count)));
    } else {
        acre_buf_printf(view->out, ": %s\n", acre_answer_text(answer, "text", "-"));
    }
}

/* "running 3, queued 5": what is not zero. */
static void put_states(const struct acre_show *view, const json_t *answer) {
    const char *key;
    json_t *value;
    struct acre_buf line;
    acre_buf_init(&line, ACRE_SHOW_TEXT_MAX);
    json_object_foreach((json_t *)acre_answer_at(answer, "jobs"), key, value) {
        if (json_integer_value(value) > 0) {
            acre_buf_printf(&line, "%s%s %" JSON_INTEGER_FORMAT, line.length > 0 ? ", " : "", key,
                            json_integer_value(value));
        }
    }
    acre_show_fact(view, "jobs", line.length > 0 ? line.data : "none");
    acre_buf_finish(&line);
}

static void put_waits(const struct acre_show *view, const json_t *answer) {
    char line[ACRE_SHOW_TEXT_MAX], half[32], most[32], all[32], mean[32];
    uint64_t known, hour;
    double rate;
    if (acre_answer_u64(answer, "wait_ms.mean", &known)) {
        snprintf(line, sizeof(line), "mean %s; half within %s, 90 %% within %s, 99 %% within %s",
                 acre_answer_span(answer, "wait_ms.mean", mean, sizeof(mean)),
                 acre_answer_span(answer, "wait_ms.p50", half, sizeof(half)),
                 acre_answer_span(answer, "wait_ms.p90", most, sizeof(most)),
                 acre_answer_span(answer, "wait_ms.p99", all, sizeof(all)));
        acre_show_fact(view, "waits", line);
    }
    if (acre_answer_u64(answer, "jobs_last_hour", &hour)) {
        snprintf(line, sizeof(line), "%" PRIu64 " jobs ended in the last hour", hour);
        acre_show_fact(view, "throughput", line);
    }
    if (acre_answer_number(answer, "success_rate", &rate)) {
        snprintf(line, sizeof(line), "%.1f %% of those that ended by themselves", rate * 100);
        acre_show_fact(view, "success", line);
    }
}

static void put_gpus(const struct acre_show *view, const json_t *answer) {
    static const char *const parts[] = {"total", "free", "busy", "drained"};
    char line[ACRE_SHOW_TEXT_MAX], text[32], used[32];
    size_t length = 0;
    if (acre_answer_at(answer, "gpus") == NULL) {
        return;
    }
    for (size_t i = 0; i < ACRE_COUNT(parts); i++) {
        char path[32];
        snprintf(path, sizeof(path), "gpus.%s", parts[i]);
        int wrote = snprintf(line + length, sizeof(line) - length, "%s %s, ",
                             acre_answer_count(answer, path, text, sizeof(text)), parts[i]);
        length += (size_t)ACRE_MAX(wrote, 0);
    }
    snprintf(line + length, sizeof(line) - length, "%s given out%s",
             acre_answer_milli(answer, "gpus.used_milli", used, sizeof(used)),
             acre_answer_true(answer, "simulated") ? "; SIMULATED" : "");
    acre_show_fact(view, "GPUs", line);
}

/* "0.21 ms, at most 3.40 ms" */
static void put_timing(const struct acre_show *view, const json_t *answer, const char *label,
                       const char *last_path, const char *most_path) {
    uint64_t last, most;
    char line[96];
    if (acre_answer_u64(answer, last_path, &last) && acre_answer_u64(answer, most_path, &most)) {
        snprintf(line, sizeof(line), "%.2f ms the last time, at most %.2f ms", (double)last / 1000,
                 (double)most / 1000);
        acre_show_fact(view, label, line);
    }
}

void acre_show_stats(const struct acre_show *view, const json_t *answer) {
    char text[2 * ACRE_WHEN_MAX];
    uint64_t since;
    acre_show_fact(view, "policy", acre_answer_text(answer, "policy", NULL));
    if (acre_answer_time(answer, "started", &since)) {
        acre_show_fact(view, "up since", acre_when_both(since, view->now_ms, text, sizeof(text)));
    }
    put_gpus(view, answer);
    put_states(view, answer);
    put_waits(view, answer);
    put_timing(view, answer, "decision", "scheduler.pass_last_us", "scheduler.pass_max_us");
    put_timing(view, answer, "commit", "scheduler.commit_last_us", "scheduler.commit_max_us");
    if (acre_answer_true(answer, "scheduler.paused")) {
        acre_show_fact(view, "paused", "nothing new starts (POST /orchestrator/start goes on)");
    }
}
