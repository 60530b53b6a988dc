/* show_cluster.c - formats nodes, devices and reservations: what is free, and who holds the rest.
 */
#include "cli/show.h"
#include "cli/when.h"
#include "core/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The word for how a node or device stands, and its colour. */
static void put_state(struct text_table *table, const json_t *item) {
    const char *state = answer_string(item, "state", "ok");
    const char *health = answer_string(item, "health", "");
    if (answer_true(item, "drained")) {
        table_cell(table, ACRE_COLOUR_YELLOW, "drained");
    } else if (strcmp(state, "lost") == 0 || strcmp(health, "unhealthy") == 0) {
        table_cell(table, ACRE_COLOUR_RED, strcmp(state, "lost") == 0 ? state : health);
    } else {
        table_cell(table, ACRE_COLOUR_GREEN, "ok");
    }
}

void show_simulated(struct text_table *table, const json_t *item) {
    bool simulated = answer_true(item, "simulated");
    table_cell(table, simulated ? ACRE_COLOUR_YELLOW : ACRE_COLOUR_DIM,
               simulated ? "SIMULATED" : "-");
}

/* "3.5 of 8": how many GPUs are free. */
static void put_free(struct text_table *table, const json_t *node) {
    uint64_t milli, gpus;
    char text[64], share[32];
    if (!answer_u64(node, "gpus", &gpus) || !answer_u64(node, "free_milli", &milli)) {
        show_cell(table, "-");
        return;
    }
    if (milli % 1000 == 0) {
        snprintf(share, sizeof(share), "%" PRIu64, milli / 1000);
    } else {
        acre_format_milli(milli, share, sizeof(share));
    }
    snprintf(text, sizeof(text), "%s of %" PRIu64, share, gpus);
    table_cell(table, ACRE_COLOUR_NONE, text);
}

static void put_parts(struct text_table *table, const json_t *node, const char *free_path,
                      const char *total_path, bool memory) {
    uint64_t rest, total;
    char text[80], low[32], high[32];
    bool known = answer_u64(node, total_path, &total);
    if (!known) {
        show_cell(table, "-");
        return;
    }
    if (memory) {
        acre_format_mib(total, high, sizeof(high));
    } else {
        snprintf(high, sizeof(high), "%" PRIu64, total / 1000);
    }
    if (!answer_u64(node, free_path, &rest)) {
        snprintf(text, sizeof(text), "%s", high);
    } else if (memory) {
        snprintf(text, sizeof(text), "%s of %s", acre_format_mib(rest, low, sizeof(low)), high);
    } else {
        snprintf(text, sizeof(text), "%" PRIu64 " of %s", rest / 1000, high);
    }
    table_cell(table, ACRE_COLOUR_NONE, text);
}

static void join_texts(const json_t *list, char *text, size_t size) {
    const json_t *item;
    size_t i, used = 0;
    snprintf(text, size, "-");
    json_array_foreach(list, i, item) {
        const char *word = json_string_value(item);
        int length = snprintf(text + used, size - used, "%s%s", used > 0 ? "," : "",
                              word != NULL ? word : "?");
        used = ACRE_MIN(used + (size_t)ACRE_MAX(length, 0), size - 1);
    }
}

void show_nodes(const struct show *view, const json_t *answer) {
    static const struct table_column columns[] = {
        {.heading = "NODE", .shrink_to = 8},
        {.heading = "STATE"},
        {.heading = "GPUS FREE", .right = true},
        {.heading = "CPUS FREE", .right = true, .rank = 4},
        {.heading = "RAM FREE", .right = true, .rank = 5},
        {.heading = "JOBS", .right = true, .rank = 6},
        {.heading = "LABELS", .rank = 7, .shrink_to = 8},
        {.heading = "NOTE"},
        {.heading = "REASON", .rank = 1, .shrink_to = 12, .cut_end = true},
    };
    struct text_table *table = table_create(columns, ACRE_COUNT(columns));
    const json_t *node;
    size_t i;
    json_array_foreach(answer_at(answer, "nodes"), i, node) {
        char text[ACRE_SHOW_TEXT_MAX];
        table_row(table);
        show_cell(table, answer_string(node, "name", "-"));
        put_state(table, node);
        put_free(table, node);
        put_parts(table, node, "cpu_free_milli", "cpu_milli", false);
        put_parts(table, node, "ram_free_mib", "ram_mib", true);
        show_cell(table, answer_count(node, "jobs", text, sizeof(text)));
        join_texts(answer_at(node, "labels"), text, sizeof(text));
        show_cell(table, text);
        show_simulated(table, node);
        show_cell(table, answer_string(node, "reason", "-"));
    }
    show_table(view, table, "No nodes.");
}

/* "[####......] 0.6 free" */
static void put_share(struct text_table *table, const json_t *gpu) {
    uint64_t milli;
    char bar[32], share[32], text[96];
    if (!answer_u64(gpu, "free_milli", &milli)) {
        show_cell(table, "-");
        return;
    }
    snprintf(text, sizeof(text), "%s %s free",
             show_bar(1000 - ACRE_MIN(milli, UINT64_C(1000)), bar, sizeof(bar)),
             acre_format_milli(milli, share, sizeof(share)));
    table_cell(table, milli == 0 ? ACRE_COLOUR_NONE : ACRE_COLOUR_GREEN, text);
}

/* "job 3 ada (0.5), reservation 4": who holds it, and how much if it is not all of it. */
static void put_holders(struct text_table *table, const json_t *gpu) {
    const json_t *holder;
    size_t i;
    struct acre_buf text;
    acre_buf_init(&text, ACRE_SHOW_TEXT_MAX - 1);
    json_array_foreach(answer_at(gpu, "holders"), i, holder) {
        const char *kind = answer_at(holder, "job") != NULL ? "job" : "reservation";
        const char *user = answer_string(holder, "user", "");
        char id[32], share[32];
        uint64_t milli = 1000;
        acre_buf_printf(&text, "%s%s %s%s%s", i > 0 ? ", " : "", kind,
                        answer_count(holder, kind, id, sizeof(id)), user[0] != '\0' ? " " : "",
                        user);
        if (answer_u64(holder, "share_milli", &milli) && milli < 1000) {
            acre_buf_printf(&text, " (%s)", acre_format_milli(milli, share, sizeof(share)));
        }
    }
    show_cell(table, text.length > 0 ? text.data : "-");
    acre_buf_finish(&text);
}

void show_gpus_table(const struct show *view, const json_t *answer) {
    static const struct table_column columns[] = {
        {.heading = "NODE", .rank = 2, .shrink_to = 8},
        {.heading = "GPU", .shrink_to = 12},
        {.heading = "MODEL", .rank = 5, .shrink_to = 10},
        {.heading = "STATE"},
        {.heading = "SHARE"},
        {.heading = "MEMORY FREE", .right = true, .rank = 4},
        {.heading = "USE", .right = true, .rank = 6},
        {.heading = "HELD BY", .shrink_to = 10, .cut_end = true},
        {.heading = "NOTE", .rank = 3},
        {.heading = "REASON", .rank = 1, .shrink_to = 12, .cut_end = true},
    };
    struct text_table *table = table_create(columns, ACRE_COUNT(columns));
    const json_t *gpu;
    size_t i;
    bool simulated = false;
    json_array_foreach(answer_at(answer, "gpus"), i, gpu) {
        char text[64];
        uint64_t use;
        table_row(table);
        show_cell(table, answer_string(gpu, "node", "-"));
        show_cell(table, answer_string(gpu, "id", "-"));
        show_cell(table, answer_string(gpu, "model", "-"));
        put_state(table, gpu);
        put_share(table, gpu);
        show_cell(table, answer_mib(gpu, "free_mib", text, sizeof(text)));
        snprintf(text, sizeof(text), "-");
        if (answer_u64(gpu, "utilization_pct", &use)) {
            snprintf(text, sizeof(text), "%" PRIu64 " %%", use);
        }
        show_cell(table, text);
        put_holders(table, gpu);
        show_simulated(table, gpu);
        show_cell(table, answer_string(gpu, "reason", "-"));
        simulated = simulated || answer_true(gpu, "simulated");
    }
    show_table(view, table, "No GPUs. 'acre doctor' on the daemon's machine shows why.");
    if (simulated) {
        term_put(&view->term, view->out, ACRE_COLOUR_YELLOW, "SIMULATED");
        acre_buf_puts(view->out, " devices are not real hardware.\n");
    }
}

void show_reservation_list(const struct show *view, const json_t *answer) {
    static const struct table_column columns[] = {
        {.heading = "ID", .right = true},
        {.heading = "USER", .shrink_to = 6},
        {.heading = "STATE"},
        {.heading = "GPUS", .right = true},
        {.heading = "SHARE", .right = true, .rank = 4},
        {.heading = "FROM"},
        {.heading = "UNTIL"},
        {.heading = "DEVICES", .rank = 5, .shrink_to = 12, .cut_end = true},
    };
    struct text_table *table = table_create(columns, ACRE_COUNT(columns));
    const json_t *item;
    size_t i;
    json_array_foreach(answer_at(answer, "reservations"), i, item) {
        char text[ACRE_SHOW_TEXT_MAX];
        const json_t *devices = answer_at(item, "devices");
        table_row(table);
        show_cell(table, answer_count(item, "id", text, sizeof(text)));
        show_cell(table, answer_string(item, "user", "-"));
        show_cell(table, answer_string(item, "state", "-"));
        snprintf(text, sizeof(text), "%zu", json_array_size(devices));
        show_cell(table, text);
        show_cell(table, answer_milli(item, "share_milli", text, sizeof(text)));
        show_cell(table, answer_ago(item, "start", view->now_ms, text, sizeof(text)));
        show_cell(table, answer_ago(item, "end", view->now_ms, text, sizeof(text)));
        join_texts(devices, text, sizeof(text));
        show_cell(table, text);
    }
    show_table(view, table, "No reservations.");
}

void show_reservation(const struct show *view, const json_t *answer) {
    const json_t *item = answer_at(answer, "reservation");
    char id[32], from[2 * ACRE_WHEN_MAX] = "-", until[2 * ACRE_WHEN_MAX] = "-";
    uint64_t at;
    if (answer_time(item, "start", &at)) {
        when_both(at, view->now_ms, from, sizeof(from));
    }
    if (answer_time(item, "end", &at)) {
        when_both(at, view->now_ms, until, sizeof(until));
    }
    size_t count = json_array_size(answer_at(item, "devices"));
    acre_buf_printf(view->out, "reservation %s %s: %zu GPU%s from %s until %s\n",
                    answer_count(item, "id", id, sizeof(id)), answer_string(item, "state", "-"),
                    count, count == 1 ? "" : "s", from, until);
}
