/* term.c - fits columns to the width in four rounds: shorten long texts a little, drop the least
 * useful columns, cut texts to their minimum, drop more columns by rank.
 *
 * Widths are counted in characters (UTF-8 lead bytes), not bytes. A cut keeps the head and the tail
 * of a text, because ids differ at either end. */
#include "cli/term.h"

#include "core/arena.h"
#include "core/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
    COLUMNS_MAX = 40,
    GAP = 2,
    WIDTH_DEFAULT = 80,
    LUXURY_RANK = 7,           /* columns dropped before any text is cut */
    CELLS_MAX_BYTES = 64 << 20 /* rows are limited by the callers long before */
};

#define SCREEN_IS_OURS (ACRE_TERM_CLEAR - 1) /* what a cleared screen is to the next picture */

struct cell {
    const char *text;
    enum colour colour;
};

struct text_table {
    struct acre_arena *arena;
    const struct table_column *columns;
    uint32_t count;
    struct cell *cells; /* row after row */
    uint32_t rows, capacity;
    uint32_t filled; /* cells of the last row */
};

struct table_layout {
    bool shown[COLUMNS_MAX];
    uint32_t width[COLUMNS_MAX];
};

struct term term_detect(int fd) {
    struct term term = {.is_terminal = isatty(fd) == 1};
    if (!term.is_terminal) {
        return term;
    }
    struct winsize size = {0};
    const char *no_colour = getenv("NO_COLOR");
    const char *kind = getenv("TERM");
    term.colour =
        (no_colour == NULL || no_colour[0] == '\0') && (kind == NULL || strcmp(kind, "dumb") != 0);
    bool known = ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    term.width = known ? size.ws_col : WIDTH_DEFAULT;
    term.height = known ? size.ws_row : 0;
    return term;
}

void term_put(const struct term *term, struct acre_buf *out, enum colour colour, const char *text) {
    static const char *const codes[] = {
        [ACRE_COLOUR_NONE] = "",          [ACRE_COLOUR_BOLD] = "\033[1m",
        [ACRE_COLOUR_DIM] = "\033[2m",    [ACRE_COLOUR_RED] = "\033[31m",
        [ACRE_COLOUR_GREEN] = "\033[32m", [ACRE_COLOUR_YELLOW] = "\033[33m",
    };
    ACRE_ASSERT((size_t)colour < ACRE_COUNT(codes));
    bool coloured = term->colour && colour != ACRE_COLOUR_NONE;
    acre_buf_printf(out, "%s%s%s", coloured ? codes[colour] : "", text, coloured ? "\033[0m" : "");
}

void term_wrap(const struct term *term, struct acre_buf *out, uint32_t indent, const char *text) {
    struct acre_split words = acre_split_begin(acre_str_from(text), ' ');
    struct acre_str word;
    uint32_t column = indent;
    bool first = true;
    while (acre_split_next(&words, &word)) {
        bool fits = term->width == 0 || column + 1 + word.length <= term->width;
        if (!first && fits) {
            acre_buf_putc(out, ' ');
            column++;
        } else if (!first) {
            acre_buf_printf(out, "\n%*s", (int)indent, "");
            column = indent;
        }
        acre_buf_append(out, word.data, word.length);
        column += (uint32_t)word.length;
        first = false;
    }
    acre_buf_putc(out, '\n');
}

/* Back to where the last picture began, each line cleared to its end, then the rest of the screen.
 * The whole screen begins at home, wherever the cursor is after the window has changed. */
void term_redraw(const struct term *term, const struct acre_buf *picture, uint32_t *lines,
                 struct acre_buf *out) {
    struct acre_split split =
        acre_split_begin((struct acre_str){picture->data, picture->length}, '\n');
    struct acre_str line;
    uint32_t room = term->height > 1 ? term->height - 1 : UINT32_MAX, drawn = 0;
    bool whole = *lines == ACRE_TERM_CLEAR || *lines == SCREEN_IS_OURS;
    if (whole) {
        acre_buf_puts(out, *lines == ACRE_TERM_CLEAR ? "\033[H\033[2J" : "\033[H");
    } else if (*lines > 0) {
        acre_buf_printf(out, "\033[%uA", *lines);
    }
    while (drawn < room && acre_split_next(&split, &line) && !(split.done && line.length == 0)) {
        acre_buf_append(out, line.data, line.length);
        acre_buf_puts(out, "\033[K\n");
        drawn++;
    }
    acre_buf_puts(out, "\033[J");
    *lines = whole ? SCREEN_IS_OURS : drawn;
}

struct text_table *table_create(const struct table_column *columns, uint32_t count) {
    ACRE_ASSERT(count > 0 && count <= COLUMNS_MAX);
    struct text_table *table = acre_calloc(1, sizeof(*table));
    table->arena = acre_arena_create(CELLS_MAX_BYTES);
    table->columns = columns;
    table->count = count;
    return table;
}

void table_destroy(struct text_table *table) {
    if (table == NULL) {
        return;
    }
    acre_arena_destroy(table->arena);
    free(table->cells);
    free(table);
}

void table_row(struct text_table *table) {
    if (table->rows == table->capacity) {
        table->capacity = ACRE_MAX(16U, table->capacity * 2);
        table->cells = acre_realloc(table->cells, (size_t)table->capacity * table->count,
                                    sizeof(*table->cells));
    }
    for (uint32_t i = 0; i < table->count; i++) {
        table->cells[(size_t)table->rows * table->count + i] = (struct cell){"", 0};
    }
    table->rows++;
    table->filled = 0;
}

void table_cell(struct text_table *table, enum colour colour, const char *text) {
    ACRE_ASSERT(table->rows > 0 && table->filled < table->count);
    size_t at = (size_t)(table->rows - 1) * table->count + table->filled++;
    table->cells[at] = (struct cell){acre_arena_strndup(table->arena, text, strlen(text)), colour};
}

uint32_t table_rows(const struct text_table *table) {
    return table->rows;
}

static uint32_t characters(const char *text) {
    uint32_t count = 0;
    for (const char *p = text; *p != '\0'; p++) {
        count += ((unsigned char)*p & 0xc0) != 0x80;
    }
    return count;
}

static void natural_widths(const struct text_table *table, struct table_layout *layout) {
    for (uint32_t c = 0; c < table->count; c++) {
        layout->shown[c] = true;
        layout->width[c] = characters(table->columns[c].heading);
        for (uint32_t r = 0; r < table->rows; r++) {
            uint32_t width = characters(table->cells[(size_t)r * table->count + c].text);
            layout->width[c] = ACRE_MAX(layout->width[c], width);
        }
    }
}

/* On a terminal a column that knows nothing of any row only takes room. */
static void hide_unknown(const struct text_table *table, struct table_layout *layout) {
    for (uint32_t c = 0; c < table->count; c++) {
        bool known = table->rows == 0;
        for (uint32_t r = 0; r < table->rows; r++) {
            known = known || strcmp(table->cells[(size_t)r * table->count + c].text, "-") != 0;
        }
        layout->shown[c] = known;
    }
}

static uint32_t total_width(const struct text_table *table, const struct table_layout *layout) {
    uint32_t total = 0;
    for (uint32_t c = 0; c < table->count; c++) {
        total += layout->shown[c] ? layout->width[c] + (total > 0 ? GAP : 0) : 0;
    }
    return total;
}

/* Drop columns of rank `least` and more, the highest first, until it fits. */
static void drop(const struct text_table *table, struct table_layout *layout, uint32_t width,
                 uint32_t least) {
    while (total_width(table, layout) > width) {
        uint32_t worst = table->count;
        for (uint32_t c = 0; c < table->count; c++) {
            uint32_t rank = table->columns[c].rank;
            if (layout->shown[c] && rank >= least &&
                (worst == table->count || rank >= table->columns[worst].rank)) {
                worst = c;
            }
        }
        if (worst == table->count) {
            return;
        }
        layout->shown[worst] = false;
    }
}

/* Cut long texts down to `times` what they must keep, no further than needed. */
static void shrink(const struct text_table *table, struct table_layout *layout, uint32_t width,
                   uint32_t times) {
    for (uint32_t c = 0; c < table->count; c++) {
        uint32_t total = total_width(table, layout);
        uint32_t least =
            ACRE_MAX(table->columns[c].shrink_to * times, characters(table->columns[c].heading));
        if (total > width && layout->shown[c] && table->columns[c].shrink_to > 0 &&
            layout->width[c] > least) {
            uint32_t spare = layout->width[c] - least;
            layout->width[c] -= ACRE_MIN(spare, total - width);
        }
    }
}

/* Give columns that were cut the room that dropping others made; sentences first. */
static void relax(const struct text_table *table, struct table_layout *layout,
                  const struct table_layout *natural, uint32_t width) {
    for (uint32_t i = 0; i < 2 * table->count; i++) {
        uint32_t c = i % table->count;
        uint32_t total = total_width(table, layout);
        bool turn = i >= table->count || table->columns[c].cut_end;
        if (layout->shown[c] && total < width && turn) {
            layout->width[c] += ACRE_MIN(natural->width[c] - layout->width[c], width - total);
        }
    }
}

static struct table_layout fit(const struct text_table *table, uint32_t width) {
    struct table_layout natural = {0};
    natural_widths(table, &natural);
    struct table_layout layout = natural;
    if (width > 0) {
        hide_unknown(table, &layout);
        shrink(table, &layout, width, 2);
        drop(table, &layout, width, LUXURY_RANK);
        shrink(table, &layout, width, 1);
        drop(table, &layout, width, 1);
        relax(table, &layout, &natural, width);
    }
    return layout;
}

/* Bytes of the first `count` characters. */
static size_t prefix_bytes(const char *text, uint32_t count) {
    size_t at = 0;
    while (text[at] != '\0' && (count > 0 || ((unsigned char)text[at] & 0xc0) == 0x80)) {
        count -= ((unsigned char)text[at] & 0xc0) != 0x80;
        at++;
    }
    return at;
}

static const char *cut(const char *text, uint32_t width, bool at_end, char *out, size_t size) {
    uint32_t length = characters(text);
    if (length <= width) {
        return text;
    }
    uint32_t kept = width > 2 ? width - 2 : 0;
    uint32_t tail = at_end ? 0 : kept / 3;
    snprintf(out, size, "%.*s..%s", (int)prefix_bytes(text, kept - tail), text,
             text + prefix_bytes(text, length - tail));
    return out;
}

static void print_row(const struct text_table *table, const struct table_layout *layout,
                      const struct term *term, struct acre_buf *out, const struct cell *cells) {
    uint32_t last = 0;
    for (uint32_t c = 0; c < table->count; c++) {
        last = layout->shown[c] ? c : last;
    }
    bool first = true;
    for (uint32_t c = 0; c <= last; c++) {
        if (!layout->shown[c]) {
            continue;
        }
        char room[512];
        struct cell cell =
            cells != NULL ? cells[c] : (struct cell){table->columns[c].heading, ACRE_COLOUR_BOLD};
        const char *text =
            cut(cell.text, layout->width[c], table->columns[c].cut_end, room, sizeof(room));
        int pad = (int)(layout->width[c] - ACRE_MIN(characters(text), layout->width[c]));
        bool right = table->columns[c].right;
        acre_buf_printf(out, "%s%*s", first ? "" : "  ", right ? pad : 0, "");
        term_put(term, out, cell.colour, text);
        acre_buf_printf(out, "%*s", right || c == last ? 0 : pad, "");
        first = false;
    }
    acre_buf_putc(out, '\n');
}

void table_print(const struct text_table *table, const struct term *term, struct acre_buf *out) {
    struct table_layout layout = fit(table, term->width);
    print_row(table, &layout, term, out, NULL);
    for (uint32_t r = 0; r < table->rows; r++) {
        print_row(table, &layout, term, out, &table->cells[(size_t)r * table->count]);
    }
}
