/* show.c - the pieces that all views share.
 *
 * Names and commands come from other people: control characters in them are made visible here, on
 * the way into a cell or a fact. */
#include "cli/show.h"

#include "core/str.h"

#include <stdio.h>
#include <string.h>

enum { LABEL_COLUMNS = 13, BAR_CELLS = 10 };

void show_fact(const struct show *view, const char *label, const char *text) {
    char padded[32];
    if (text == NULL || text[0] == '\0' || strcmp(text, "-") == 0) {
        return;
    }
    char shown[4 * ACRE_SHOW_TEXT_MAX];
    snprintf(padded, sizeof(padded), "  %-*s", LABEL_COLUMNS - 2, label);
    term_put(&view->term, view->out, ACRE_COLOUR_DIM, padded);
    term_wrap(&view->term, view->out, LABEL_COLUMNS,
              acre_str_show_text(acre_str_from(text), shown, sizeof(shown)));
}

void show_cell(struct text_table *table, const char *text) {
    char shown[ACRE_SHOW_TEXT_MAX];
    acre_str_show_text(acre_str_from(text), shown, sizeof(shown));
    table_cell(table, strcmp(text, "-") == 0 ? ACRE_COLOUR_DIM : ACRE_COLOUR_NONE, shown);
}

void show_table(const struct show *view, struct text_table *table, const char *empty) {
    if (table_rows(table) > 0) {
        table_print(table, &view->term, view->out);
    } else {
        acre_buf_printf(view->out, "%s\n", empty);
    }
    table_destroy(table);
}

char *show_bar(uint64_t used_milli, char *text, size_t size) {
    ACRE_ASSERT(size > BAR_CELLS + 2);
    uint64_t cells = (ACRE_MIN(used_milli, UINT64_C(1000)) * BAR_CELLS + 999) / 1000;
    char *at = text;
    *at++ = '[';
    for (uint64_t i = 0; i < BAR_CELLS; i++) {
        *at++ = i < cells ? '#' : '.';
    }
    *at++ = ']';
    *at = '\0';
    return text;
}

/* One member of each item of a list, numbers and texts alike. */
static void put_members(const struct show *view, const json_t *answer, const char *key,
                        const char *member) {
    const json_t *item;
    size_t i;
    json_array_foreach(answer_at(answer, key), i, item) {
        char number[32];
        const char *text = answer_string(item, member, NULL);
        acre_buf_printf(view->out, "%s\n",
                        text != NULL ? text : answer_count(item, member, number, sizeof(number)));
    }
}

void show_id_list(const struct show *view, const json_t *answer, const char *key) {
    put_members(view, answer, key, "id");
}

void show_node_names(const struct show *view, const json_t *answer) {
    put_members(view, answer, "nodes", "name");
}

void show_gpu_ids(const struct show *view, const json_t *answer) {
    put_members(view, answer, "gpus", "id");
}
