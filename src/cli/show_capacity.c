/* show_capacity.c - nodes' reports, the best node, and the load of GPUs, for people. */
#include "cli/show.h"
#include "core/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A number with `decimals`, "-" when it is unknown. */
static char *number(const json_t *item, const char *key, int decimals, char *text, size_t size) {
    double value;
    if (answer_number(item, key, &value)) {
        snprintf(text, size, "%.*f", decimals, value);
    } else {
        snprintf(text, size, "-");
    }
    return text;
}

/* "480 GiB of 640 GiB" */
static void put_memory(struct text_table *table, const json_t *item, const char *free_key,
                       const char *total_key) {
    char text[80], some[32], all[32];
    uint64_t total;
    if (!answer_u64(item, total_key, &total)) {
        show_cell(table, "-");
        return;
    }
    snprintf(text, sizeof(text), "%s of %s", answer_mib(item, free_key, some, sizeof(some)),
             acre_format_mib(total, all, sizeof(all)));
    show_cell(table, text);
}

/* What to know before trusting the report. */
static void put_state(struct text_table *table, const json_t *node) {
    bool stale = answer_true(node, "stale");
    bool drained = answer_true(node, "drained");
    table_cell(table, stale || drained ? ACRE_COLOUR_YELLOW : ACRE_COLOUR_GREEN,
               stale     ? "stale"
               : drained ? "drained"
                         : "ok");
}

/* "1 node", "2 nodes". */
static const char *counted(const json_t *stats, const char *key, const char *noun, char text[32]) {
    uint64_t count = 0;
    answer_u64(stats, key, &count);
    return acre_format_count(count, noun, text, 32);
}

static void put_statistics(const struct show *view, const json_t *answer) {
    const json_t *stats = answer_at(answer, "statistics");
    char nodes[32], capable[32], devices[32], some[32], all[32], jobs[32], mean[32];
    acre_buf_printf(view->out, "%s, %s with room; %s, %s of %s free; %s, %s per node with room\n",
                    counted(stats, "nodes", "node", nodes),
                    answer_count(stats, "capable_nodes", capable, sizeof(capable)),
                    counted(stats, "devices", "GPU", devices),
                    answer_mib(stats, "available_mib", some, sizeof(some)),
                    answer_mib(stats, "total_mib", all, sizeof(all)),
                    counted(stats, "queue_depth", "job", jobs),
                    number(stats, "average_queue", 1, mean, sizeof(mean)));
}

void show_capacity(const struct show *view, const json_t *answer) {
    static const struct table_column columns[] = {
        {.heading = "NODE", .shrink_to = 8},
        {.heading = "STATE"},
        {.heading = "SCORE", .right = true},
        {.heading = "GPUS", .right = true, .rank = 3},
        {.heading = "GPU MEMORY FREE", .right = true},
        {.heading = "ON ONE GPU", .right = true, .rank = 2},
        {.heading = "JOBS", .right = true, .rank = 4},
        {.heading = "BACKEND", .rank = 5},
        {.heading = "REPORTED", .rank = 6},
        {.heading = "NOTE"},
    };
    struct text_table *table = table_create(columns, ACRE_COUNT(columns));
    const json_t *node;
    size_t i;
    json_array_foreach(answer_at(answer, "nodes"), i, node) {
        char text[64];
        table_row(table);
        show_cell(table, answer_string(node, "name", "-"));
        put_state(table, node);
        show_cell(table, number(node, "score", 1, text, sizeof(text)));
        show_cell(table, answer_count(node, "devices", text, sizeof(text)));
        put_memory(table, node, "available_mib", "total_mib");
        show_cell(table, answer_mib(node, "largest_device_available_mib", text, sizeof(text)));
        show_cell(table, answer_count(node, "queue_depth", text, sizeof(text)));
        show_cell(table, answer_string(node, "backend", "-"));
        show_cell(table, answer_ago(node, "reported", view->now_ms, text, sizeof(text)));
        show_simulated(table, node);
    }
    show_table(view, table, "No node has reported.");
    put_statistics(view, answer);
}

void show_best_name(const struct show *view, const json_t *answer) {
    acre_buf_printf(view->out, "%s\n", answer_string(answer, "node.name", "-"));
}

void show_best(const struct show *view, const json_t *answer) {
    char shown[ACRE_SHOW_TEXT_MAX];
    acre_buf_puts(view->out,
                  acre_str_show_text(acre_str_from(answer_string(answer, "node.name", "-")), shown,
                                     sizeof(shown)));
    if (answer_true(answer, "node.simulated")) {
        acre_buf_puts(view->out, " ");
        term_put(&view->term, view->out, ACRE_COLOUR_YELLOW, "SIMULATED");
    }
    acre_buf_puts(view->out, "\n");
    show_fact(view, "why", answer_string(answer, "why", NULL));
}

/* --- balance -------------------------------------------------------------------------------- */

static void put_percent(struct text_table *table, const json_t *item, const char *key) {
    double value;
    char text[32] = "-";
    if (answer_number(item, key, &value)) {
        snprintf(text, sizeof(text), "%.0f %%", value * 100);
    }
    show_cell(table, text);
}

static void show_advice(const struct show *view, const json_t *advice) {
    char text[ACRE_SHOW_TEXT_MAX], part[64];
    const json_t *move;
    size_t i;
    uint64_t unknown = 0;
    snprintf(text, sizeof(text), "%s (urgency: %s)", answer_string(advice, "reason", "-"),
             answer_string(advice, "urgency", "unknown"));
    show_fact(view, "advice", text);
    json_array_foreach(answer_at(advice, "moves"), i, move) {
        snprintf(text, sizeof(text), "work from %s to %s, which lowers its load by %s",
                 answer_string(move, "from", "-"), answer_string(move, "to", "-"),
                 number(move, "reduction", 2, part, sizeof(part)));
        show_fact(view, "move", text);
    }
    if (answer_u64(advice, "unknown", &unknown) && unknown > 0) {
        snprintf(text, sizeof(text), "%" PRIu64 " GPU%s without a known utilization %s not judged",
                 unknown, unknown == 1 ? "" : "s", unknown == 1 ? "is" : "are");
        show_fact(view, "note", text);
    }
}

static void show_choice(const struct show *view, const json_t *choice) {
    char text[ACRE_SHOW_TEXT_MAX], score[32];
    if (choice == NULL) {
        return;
    }
    if (answer_true(choice, "fallback")) {
        snprintf(text, sizeof(text), "%s, as a fallback: %s", answer_string(choice, "gpu", "-"),
                 answer_string(choice, "reason", "-"));
    } else {
        snprintf(text, sizeof(text), "%s: %s (%s, score %s)", answer_string(choice, "gpu", "none"),
                 answer_string(choice, "reason", "-"), answer_string(choice, "strategy", "-"),
                 number(choice, "score", 2, score, sizeof(score)));
    }
    show_fact(view, "choice", text);
}

void show_balance(const struct show *view, const json_t *answer) {
    static const struct table_column columns[] = {
        {.heading = "GPU", .shrink_to = 12},
        {.heading = "NODE", .rank = 3, .shrink_to = 8},
        {.heading = "LOAD", .right = true},
        {.heading = "GIVEN", .right = true, .rank = 2},
        {.heading = "TREND", .rank = 5},
        {.heading = "USE", .right = true, .rank = 1},
        {.heading = "MEMORY FREE", .right = true, .rank = 4},
        {.heading = "STATE", .rank = 6},
        {.heading = "NOTE"},
    };
    struct text_table *table = table_create(columns, ACRE_COUNT(columns));
    const json_t *gpu;
    size_t i;
    json_array_foreach(answer_at(answer, "gpus"), i, gpu) {
        char text[32];
        table_row(table);
        show_cell(table, answer_string(gpu, "id", "-"));
        show_cell(table, answer_string(gpu, "node", "-"));
        show_cell(table, number(gpu, "load", 2, text, sizeof(text)));
        put_percent(table, gpu, "queue");
        show_cell(table, answer_string(gpu, "trend", "-"));
        put_percent(table, gpu, "utilization");
        put_memory(table, gpu, "available_mib", "memory_mib");
        put_state(table, gpu);
        show_simulated(table, gpu);
    }
    show_table(view, table, "No GPU.");
    show_advice(view, answer_at(answer, "advice"));
    show_choice(view, answer_at(answer, "choice"));
}

void show_choice_id(const struct show *view, const json_t *answer) {
    acre_buf_printf(view->out, "%s\n", answer_string(answer, "choice.gpu", "-"));
}
