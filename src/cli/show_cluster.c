/* show_cluster.c - nodes, devices and reservations for people: what is free, who holds the rest. */
#include "cli/show.h"
#include "cli/when.h"
#include "core/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The word for how a node or device stands, and its colour. */
static void put_state(struct acre_table *table, const json_t *item) {
    const char *state = acre_answer_text(item, "state", "ok");
    const char *health = acre_answer_text(item, "health", "");
    if (acre_answer_true(item, "drained")) {
        acre_table_cell(table, ACRE_COLOUR_YELLOW, "drained");
    } else if (strcmp(state, "lost") == 0 || strcmp(health, "unhealthy") == 0) {
        acre_table_cell(table, ACRE_COLOUR_RED, strcmp(state, "lost") == 0 ? state : health);
    } else {
        acre_table_cell(table, ACRE_COLOUR_GREEN, "ok");
    }
}

static void put_simulated(struct acre_table *table, const json_t *item) {
    bool simulated = acre_answer_true(item, "simulated");
    acre_table_cell(table, simulated ? ACRE_COLOUR_YELLOW : ACRE_COLOUR_DIM,
                    simulated ? "SIMULATED" : "-");
}

/* "3.5 of 8": how many GPUs are free. */
static void put_free(struct acre_table *table, const json_t *node) {
    uint64_t milli, gpus;
    char text[64], share[32];
    if (!acre_answer_u64(node, "gpus", &gpus) || !acre_answer_u64(node, "free_milli", &milli)) {
        acre_show_cell(table, "-");
        return;
    }
    if (milli % 1000 == 0) {
        snprintf(share, sizeof(share), "%" PRIu64, milli / 1000);
    } else {
        acre_format_milli(milli, share, sizeof(share));
    }
    snprintf(text, sizeof(text), "%s of %" PRIu64, share, gpus);
    acre_table_cell(table, ACRE_COLOUR_NONE, text);
}

static void put_parts(struct acre_table *table, const json_t *node, const char *free_path,
                      const char *total_path, bool memory) {
    uint64_t rest, total;
    char text[80], low[32], high[32];
    bool known = acre_answer_u64(node, total_path, &total);
    if (!known) {
        acre_show_cell(table, "-");
        return;
    }
    if (memory) {
        acre_format_mib(total, high, sizeof(high));
    } else {
        snprintf(high, sizeof(high), "%" PRIu64, total / 1000);
    }
    if (!acre_answer_u64(node, free_path, &rest)) {
        snprintf(text, sizeof(text), "%s", high);
    } else if (memory) {
        snprintf(text, sizeof(text), "%s of %s", acre_format_mib(rest, low, sizeof(low)), high);
    } else {
        snprintf(text, sizeof(text), "%" PRIu64 " of %s", rest / 1000, high);
    }
    acre_table_cell(table, ACRE_COLOUR_NONE, text);
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

void acre_show_nodes(const struct acre_show *view, const json_t *answer) {
    static const struct acre_table_column columns[] = {
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
    struct acre_table *table = acre_table_create(columns, ACRE_COUNT(columns));
    const json_t *node;
    size_t i;
    json_array_foreach(acre_answer_at(answer, "nodes"), i, node) {
        char text[ACRE_SHOW_TEXT_MAX];
        acre_table_row(table);
        acre_show_cell(table, acre_answer_text(node, "name", "-"));
        put_state(table, node);
        put_free(table, node);
        put_parts(table, node, "cpu_free_milli", "cpu_milli", false);
        put_parts(table, node, "ram_free_mib", "ram_mib", true);
        acre_show_cell(table, acre_answer_count(node, "jobs", text, sizeof(text)));
        join_texts(acre_answer_at(node, "labels"), text, sizeof(text));
        acre_show_cell(table, text);
        put_simulated(table, node);
        acre_show_cell(table, acre_answer_text(node, "reason", "-"));
    }
    acre_show_table(view, table, "No node.");
}

/* "[####......] 0.6 free" */
static void put_share(struct acre_table *table, const json_t *gpu) {
    uint64_t milli;
    char bar[32], share[32], text[96];
    if (!acre_answer_u64(gpu, "free_milli", &milli)) {
        acre_show_cell(table, "-");
        return;
    }
    snprintf(text, sizeof(text), "%s %s free",
             acre_show_bar(1000 - ACRE_MIN(milli, UINT64_C(1000)), bar, sizeof(bar)),
             acre_format_milli(milli, share, sizeof(share)));
    acre_table_cell(table, milli == 0 ? ACRE_COLOUR_NONE : ACRE_COLOUR_GREEN, text);
}

/* "job 3 ada (0.5), reservation 4": who holds it, and how much if it is not all of it. */
static void put_holders(struct acre_table *table, const json_t *gpu) {
    const json_t *holder;
    size_t i;
    struct acre_buf text;
    acre_buf_init(&text, ACRE_SHOW_TEXT_MAX - 1);
    json_array_foreach(acre_answer_at(gpu, "holders"), i, holder) {
        const char *kind = acre_answer_at(holder, "job") != NULL ? "job" : "reservation";
        const char *user = acre_answer_text(holder, "user", "");
        char id[32], share[32];
        uint64_t milli = 1000;
        acre_buf_printf(&text, "%s%s %s%s%s", i > 0 ? ", " : "", kind,
                        acre_answer_count(holder, kind, id, sizeof(id)), user[0] != '\0' ? " " : "",
                        user);
        if (acre_answer_u64(holder, "share_milli", &milli) && milli < 1000) {
            acre_buf_printf(&text, " (%s)", acre_format_milli(milli, share, sizeof(share)));
        }
    }
    acre_show_cell(table, text.length > 0 ? text.data : "-");
    acre_buf_finish(&text);
}

void acre_show_gpus_table(const struct acre_show *view, const json_t *answer) {
    static const struct acre_table_column columns[] = {
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
    struct acre_table *table = acre_table_create(columns, ACRE_COUNT(columns));
    const json_t *gpu;
    size_t i;
    bool simulated = false;
    json_array_foreach(acre_answer_at(answer, "gpus"), i, gpu) {
        char text[64];
        uint64_t use;
        acre_table_row(table);
        acre_show_cell(table, acre_answer_text(gpu, "node", "-"));
        acre_show_cell(table, acre_answer_text(gpu, "id", "-"));
        acre_show_cell(table, acre_answer_text(gpu, "model", "-"));
        put_state(table, gpu);
        put_share(table, gpu);
        acre_show_cell(table, acre_answer_mib(gpu, "free_mib", text, sizeof(text)));
        snprintf(text, sizeof(text), "-");
        if (acre_answer_u64(gpu, "utilization_pct", &use)) {
            snprintf(text, sizeof(text), "%" PRIu64 " %%", use);
        }
        acre_show_cell(table, text);
        put_holders(table, gpu);
        put_simulated(table, gpu);
        acre_show_cell(table, acre_answer_text(gpu, "reason", "-"));
        simulated = simulated || acre_answer_true(gpu, "simulated");
    }
    acre_show_table(view, table, "No GPU. 'acre doctor' on the daemon's machine says why.");
    if (simulated) {
        acre_term_put(&view->term, view->out, ACRE_COLOUR_YELLOW, "SIMULATED");
        acre_buf_puts(view->out, " devices are counted, not there.\n");
    }
}

void acre_show_reservations(const struct acre_show *view, const json_t *answer) {
    static const struct acre_table_column columns[] = {
        {.heading = "ID", .right = true},
        {.heading = "USER", .shrink_to = 6},
        {.heading = "STATE"},
        {.heading = "GPUS", .right = true},
        {.heading = "SHARE", .right = true, .rank = 4},
        {.heading = "FROM"},
        {.heading = "UNTIL"},
        {.heading = "DEVICES", .rank = 5, .shrink_to = 12, .cut_end = true},
    };
    struct acre_table *table = acre_table_create(columns, ACRE_COUNT(columns));
    const json_t *item;
    size_t i;
    json_array_foreach(acre_answer_at(answer, "reservations"), i, item) {
        char text[ACRE_SHOW_TEXT_MAX];
        const json_t *devices = acre_answer_at(item, "devices");
        acre_table_row(table);
        acre_show_cell(table, acre_answer_count(item, "id", text, sizeof(text)));
        acre_show_cell(table, acre_answer_text(item, "user", "-"));
        acre_show_cell(table, acre_answer_text(item, "state", "-"));
        snprintf(text, sizeof(text), "%zu", json_array_size(devices));
        acre_show_cell(table, text);
        acre_show_cell(table, acre_answer_milli(item, "share_milli", text, sizeof(text)));
        acre_show_cell(table, acre_answer_ago(item, "start", view->now_ms, text, sizeof(text)));
        acre_show_cell(table, acre_answer_ago(item, "end", view->now_ms, text, sizeof(text)));
        join_texts(devices, text, sizeof(text));
        acre_show_cell(table, text);
    }
    acre_show_table(view, table, "No reservation.");
}

void acre_show_reservation(const struct acre_show *view, const json_t *answer) {
    const json_t *item = acre_answer_at(answer, "reservation");
    char id[32], from[2 * ACRE_WHEN_MAX] = "-", until[2 * ACRE_WHEN_MAX] = "-";
    uint64_t at;
    if (acre_answer_time(item, "start", &at)) {
        acre_when_both(at, view->now_ms, from, sizeof(from));
    }
    if (acre_answer_time(item, "end", &at)) {
        acre_when_both(at, view->now_ms, until, sizeof(until));
    }
    acre_buf_printf(view->out, "reservation %s %s: %zu GPUs from %s until %s\n",
                    acre_answer_count(item, "id", id, sizeof(id)),
                    acre_answer_text(item, "state", "-"),
                    json_array_size(acre_answer_at(item, "devices")), from, until);
}
