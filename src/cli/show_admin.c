/* show_admin.c - formats policy, quotas, usage, tokens, the audit log and statistics. */
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
        snprintf(text, size, "%zu row%s", json_array_size(value),
                 json_array_size(value) == 1 ? "" : "s");
    } else {
        snprintf(text, size, "-");
    }
}

void show_quotas(const struct show *view, const json_t *answer) {
    static const struct table_column columns[] = {
        {.heading = "WHO"},
        {.heading = "GPUS", .right = true},
        {.heading = "GPU MEMORY", .right = true},
        {.heading = "RUNNING", .right = true},
        {.heading = "QUEUED", .right = true},
        {.heading = "GPU HOURS", .right = true},
        {.heading = "KIND"},
    };
    static const char *const keys[] = {"gpus", "memory", "running", "queued", "gpu_hours"};
    struct text_table *table = table_create(columns, ACRE_COUNT(columns));
    const json_t *quota;
    size_t i;
    json_array_foreach(answer_at(answer, "quotas"), i, quota) {
        char text[64];
        table_row(table);
        show_cell(table, answer_string(quota, "who", "-"));
        for (size_t k = 0; k < ACRE_COUNT(keys); k++) {
            value_text(answer_at(quota, keys[k]), text, sizeof(text));
            show_cell(table, strcmp(text, "0") == 0 ? "-" : text);
        }
        show_cell(table, answer_true(quota, "soft") ? "soft" : "hard");
    }
    show_table(view, table, "No quotas: usage is not limited. ('acre quota set' sets one.)");
}

void show_policy(const struct show *view, const json_t *answer) {
    const json_t *inner = answer_at(answer, "policy");
    const json_t *policy = json_is_object(inner) ? inner : answer;
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)policy, key, value) {
        char text[ACRE_SHOW_TEXT_MAX];
        value_text(value, text, sizeof(text));
        acre_buf_printf(view->out, "%-20s %s\n", key, text);
    }
}

static void put_ratio(struct text_table *table, const json_t *row, const char *path, double scale,
                      const char *unit) {
    double value;
    char text[64];
    if (!answer_number(row, path, &value)) {
        show_cell(table, "-");
        return;
    }
    snprintf(text, sizeof(text), "%.1f%s", value * scale, unit);
    show_cell(table, text);
}

void show_usage(const struct show *view, const json_t *answer) {
    static const struct table_column columns[] = {
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
    struct text_table *table = table_create(columns, ACRE_COUNT(columns));
    const json_t *row;
    size_t i;
    json_array_foreach(answer_at(answer, "accounts"), i, row) {
        char text[64];
        double factor;
        table_row(table);
        show_cell(table, answer_string(row, "project", "-"));
        show_cell(table, answer_string(row, "user", "-"));
        put_ratio(table, row, "gpu_hours", 1, "");
        put_ratio(table, row, "used", 100, " %");
        put_ratio(table, row, "share", 100, " %");
        snprintf(text, sizeof(text), "-");
        if (answer_number(row, "factor", &factor)) {
            snprintf(text, sizeof(text), "%.3f", factor);
        }
        show_cell(table, text);
        show_cell(table, answer_milli(row, "held_milli", text, sizeof(text)));
        show_cell(table, answer_count(row, "running", text, sizeof(text)));
        show_cell(table, answer_count(row, "queued", text, sizeof(text)));
    }
    show_table(view, table, "No usage yet.");
}

void show_tokens(const struct show *view, const json_t *answer) {
    static const struct table_column columns[] = {
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
    struct text_table *table = table_create(columns, ACRE_COUNT(columns));
    const json_t *token;
    size_t i;
    json_array_foreach(answer_at(answer, "tokens"), i, token) {
        char text[64];
        uint64_t at;
        bool revoked = answer_time(token, "revoked", &at);
        bool expired = answer_time(token, "expires", &at) && at <= view->now_ms;
        table_row(table);
        show_cell(table, answer_count(token, "id", text, sizeof(text)));
        show_cell(table, answer_string(token, "user", "-"));
        show_cell(table, answer_string(token, "project", "-"));
        show_cell(table, answer_string(token, "role", "-"));
        show_cell(table, answer_count(token, "parent", text, sizeof(text)));
        show_cell(table, answer_ago(token, "created", view->now_ms, text, sizeof(text)));
        show_cell(table, answer_ago(token, "expires", view->now_ms, text, sizeof(text)));
        table_cell(table, revoked || expired ? ACRE_COLOUR_DIM : ACRE_COLOUR_GREEN,
                   revoked   ? "revoked"
                   : expired ? "expired"
                             : "active");
        show_cell(table, answer_string(token, "note", "-"));
    }
    show_table(view, table, "No tokens.");
}

void show_token(const struct show *view, const json_t *answer) {
    const char *secret = answer_string(answer, "secret", answer_string(answer, "token", "-"));
    acre_buf_printf(view->out, "%s\n", secret);
    if (view->term.is_terminal) {
        acre_buf_puts(view->out,
                      "The token is shown only once. Save it on the machine where you use it, in\n"
                      "~/.config/acre/tokens (mode 600), as a line 'https://HOST:PORT TOKEN'.\n");
    }
}

void show_audit(const struct show *view, const json_t *answer) {
    static const struct table_column columns[] = {
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
    struct text_table *table = table_create(columns, ACRE_COUNT(columns));
    const json_t *row;
    size_t i;
    json_array_foreach(answer_at(answer, "audit"), i, row) {
        char text[64] = "-";
        uint64_t at;
        table_row(table);
        show_cell(table, answer_count(row, "seq", text, sizeof(text)));
        snprintf(text, sizeof(text), "-");
        if (answer_time(row, "at", &at)) {
            when_clock(at, view->now_ms, text, sizeof(text));
        }
        show_cell(table, text);
        for (size_t k = 0; k < ACRE_COUNT(keys); k++) {
            show_cell(table, answer_string(row, keys[k], "-"));
        }
        const char *result = answer_string(row, "result", "-");
        table_cell(table, strcmp(result, "ok") == 0 ? ACRE_COLOUR_NONE : ACRE_COLOUR_RED, result);
        show_cell(table, answer_string(row, "detail", "-"));
    }
    show_table(view, table, "No matching records.");
}

void show_audit_verdict(const struct show *view, const json_t *answer) {
    char count[32];
    bool good = answer_true(answer, "ok");
    term_put(&view->term, view->out, good ? ACRE_COLOUR_GREEN : ACRE_COLOUR_RED,
             good ? "unchanged" : "CHANGED");
    if (good) {
        answer_count(answer, "count", count, sizeof(count));
        acre_buf_printf(view->out, ": %s record%s checked\n", count,
                        strcmp(count, "1") == 0 ? "" : "s");
    } else {
        acre_buf_printf(view->out, ": %s\n", answer_string(answer, "text", "-"));
    }
}

/* "running 3, queued 5": what is not zero. */
static void put_states(const struct show *view, const json_t *answer) {
    const char *key;
    json_t *value;
    struct acre_buf line;
    acre_buf_init(&line, ACRE_SHOW_TEXT_MAX);
    json_object_foreach((json_t *)answer_at(answer, "jobs"), key, value) {
        if (json_integer_value(value) > 0) {
            acre_buf_printf(&line, "%s%s %" JSON_INTEGER_FORMAT, line.length > 0 ? ", " : "", key,
                            json_integer_value(value));
        }
    }
    show_fact(view, "jobs", line.length > 0 ? line.data : "none");
    acre_buf_finish(&line);
}

static void put_waits(const struct show *view, const json_t *answer) {
    char line[ACRE_SHOW_TEXT_MAX], half[32], most[32], all[32], mean[32];
    uint64_t known, hour;
    double rate;
    if (answer_u64(answer, "wait_ms.mean", &known)) {
        snprintf(line, sizeof(line), "mean %s, median %s, 90 %% within %s, 99 %% within %s",
                 answer_span(answer, "wait_ms.mean", mean, sizeof(mean)),
                 answer_span(answer, "wait_ms.p50", half, sizeof(half)),
                 answer_span(answer, "wait_ms.p90", most, sizeof(most)),
                 answer_span(answer, "wait_ms.p99", all, sizeof(all)));
        show_fact(view, "waits", line);
    }
    if (answer_u64(answer, "jobs_last_hour", &hour)) {
        snprintf(line, sizeof(line), "%" PRIu64 " job%s ended in the last hour", hour,
                 hour == 1 ? "" : "s");
        show_fact(view, "throughput", line);
    }
    if (answer_number(answer, "success_rate", &rate)) {
        snprintf(line, sizeof(line), "%.1f %% of the jobs that completed or failed", rate * 100);
        show_fact(view, "success", line);
    }
}

static void put_gpus(const struct show *view, const json_t *answer) {
    static const char *const parts[] = {"total", "free", "busy", "drained"};
    char line[ACRE_SHOW_TEXT_MAX], text[32], used[32];
    size_t length = 0;
    if (answer_at(answer, "gpus") == NULL) {
        return;
    }
    for (size_t i = 0; i < ACRE_COUNT(parts); i++) {
        char path[32];
        snprintf(path, sizeof(path), "gpus.%s", parts[i]);
        int wrote = snprintf(line + length, sizeof(line) - length, "%s %s, ",
                             answer_count(answer, path, text, sizeof(text)), parts[i]);
        length += (size_t)ACRE_MAX(wrote, 0);
    }
    snprintf(line + length, sizeof(line) - length, "%s allocated%s",
             answer_milli(answer, "gpus.used_milli", used, sizeof(used)),
             answer_true(answer, "simulated") ? "; SIMULATED" : "");
    show_fact(view, "GPUs", line);
}

/* "last 0.21 ms, at most 3.40 ms" */
static void put_timing(const struct show *view, const json_t *answer, const char *label,
                       const char *last_path, const char *most_path) {
    uint64_t last, most;
    char line[96];
    if (answer_u64(answer, last_path, &last) && answer_u64(answer, most_path, &most)) {
        snprintf(line, sizeof(line), "last %.2f ms, at most %.2f ms", (double)last / 1000,
                 (double)most / 1000);
        show_fact(view, label, line);
    }
}

void show_stats(const struct show *view, const json_t *answer) {
    char text[2 * ACRE_WHEN_MAX];
    uint64_t since;
    show_fact(view, "policy", answer_string(answer, "policy", NULL));
    if (answer_time(answer, "started", &since)) {
        show_fact(view, "up since", when_both(since, view->now_ms, text, sizeof(text)));
    }
    put_gpus(view, answer);
    put_states(view, answer);
    put_waits(view, answer);
    put_timing(view, answer, "decision", "scheduler.pass_last_us", "scheduler.pass_max_us");
    put_timing(view, answer, "commit", "scheduler.commit_last_us", "scheduler.commit_max_us");
    if (answer_true(answer, "scheduler.paused")) {
        show_fact(view, "paused", "no new jobs start (POST /orchestrator/start resumes)");
    }
}
