/* opt_help.c - prints --help from the rows that parse.
 *
 * Options form one column as wide as the widest of them, up to LEFT_MAX; their texts are wrapped at
 * blanks in the column next to it. `details` is printed as written, because examples must not be
 * reflowed, except for paragraphs written as one line. */
#include "core/opt.h"

#include "core/str.h"

#include <string.h>

enum { WIDTH = 80, LONG = 100, LEFT_MAX = 30, GAP = 2 };

static const struct acre_opt help_row = {
    .name = "help", .letter = 'h', .kind = ACRE_OPT_FLAG, .help = "print this help"};

static void put_left(const struct acre_opt *option, struct acre_buf *out) {
    if (option->letter != 0) {
        acre_buf_printf(out, "  -%c, --%s", option->letter, option->name);
    } else {
        acre_buf_printf(out, "      --%s", option->name);
    }
    if (option->kind != ACRE_OPT_FLAG) {
        acre_buf_printf(out, " %s", option->value != NULL ? option->value : "VALUE");
    }
}

static void put_right(const struct acre_opt *option, struct acre_buf *out) {
    acre_buf_puts(out, option->help != NULL ? option->help : "");
    if (option->kind == ACRE_OPT_CHOICE) {
        struct acre_split split = acre_split_begin(acre_str_from(option->choices), ',');
        struct acre_str choice;
        const char *before = ": ";
        while (acre_split_next(&split, &choice)) {
            choice = acre_str_trim(choice);
            acre_buf_printf(out, "%s%.*s", before, (int)choice.length, choice.data);
            before = ", ";
        }
    }
    if (option->required) {
        acre_buf_puts(out, " (required)");
    }
}

/* Append `text`, wrapped to the columns from `indent` on; the first line starts at `column`. */
static void put_wrapped(struct acre_str text, size_t column, size_t indent, struct acre_buf *out) {
    struct acre_split split = acre_split_begin(text, ' ');
    struct acre_str word;
    bool line_start = true;
    while (acre_split_next(&split, &word)) {
        if (word.length == 0) {
            continue;
        }
        if (!line_start && column + 1 + word.length > WIDTH) {
            acre_buf_putc(out, '\n');
            column = 0;
            line_start = true;
        }
        if (line_start) {
            size_t pad = column < indent ? indent - column : 0;
            acre_buf_printf(out, "%*s", (int)pad, "");
            column += pad;
        } else {
            acre_buf_putc(out, ' ');
            column++;
        }
        acre_buf_append(out, word.data, word.length);
        column += word.length;
        line_start = false;
    }
    acre_buf_putc(out, '\n');
}

static size_t left_width(const struct acre_opt *option) {
    struct acre_buf left;
    acre_buf_init(&left, SIZE_MAX);
    put_left(option, &left);
    size_t width = left.length;
    acre_buf_finish(&left);
    return width;
}

static void put_option(const struct acre_opt *option, size_t indent, struct acre_buf *out) {
    size_t width = left_width(option);
    put_left(option, out);
    if (width + GAP > indent) {
        acre_buf_putc(out, '\n');
        width = 0;
    }
    struct acre_buf right;
    acre_buf_init(&right, out->max);
    put_right(option, &right);
    put_wrapped((struct acre_str){right.data, right.length}, width, indent, out);
    acre_buf_finish(&right);
}

/* As they are written, but for lines too long for the screen. */
static void put_details(struct acre_str details, struct acre_buf *out) {
    if (details.length > 0 && details.data[details.length - 1] == '\n') {
        details.length--;
    }
    struct acre_split lines = acre_split_begin(details, '\n');
    struct acre_str line;
    while (acre_split_next(&lines, &line)) {
        if (line.length > LONG && line.data[0] != ' ') {
            put_wrapped(line, 0, 0, out);
        } else {
            acre_buf_append(out, line.data, line.length);
            acre_buf_putc(out, '\n');
        }
    }
}

void acre_opt_help(const struct acre_command *command, struct acre_buf *out) {
    acre_buf_printf(out, "Usage: %s\n\n", command->usage);
    put_wrapped(acre_str_from(command->summary), 0, 0, out);
    acre_buf_puts(out, "\nOptions:\n");
    size_t widest = left_width(&help_row);
    const struct acre_opt *row;
    for (size_t i = 0; (row = acre_command_row(command, i)) != NULL; i++) {
        widest = ACRE_MAX(widest, left_width(row));
    }
    size_t indent = ACRE_MIN(widest, (size_t)LEFT_MAX) + GAP;
    for (size_t i = 0; (row = acre_command_row(command, i)) != NULL; i++) {
        put_option(row, indent, out);
    }
    put_option(&help_row, indent, out);
    if (command->details != NULL) {
        acre_buf_putc(out, '\n');
        put_details(acre_str_from(command->details), out);
    }
}
