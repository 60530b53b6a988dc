/* term.h - the terminal (is it one, how wide, does it take colors) and tables that fit it.
 *
 * Programs only, one thread. Tables are printed into a buffer; the caller writes it. */
#ifndef ACRE_CLI_TERM_H
#define ACRE_CLI_TERM_H

#include "core/buf.h"

struct term {
    bool is_terminal;
    bool colour;     /* a terminal, NO_COLOR unset or empty, TERM not "dumb" */
    uint32_t width;  /* columns; 0: as wide as it gets (pipes, files) */
    uint32_t height; /* lines; 0: unknown */
};

struct term term_detect(int fd);

enum colour {
    ACRE_COLOUR_NONE,
    ACRE_COLOUR_BOLD,
    ACRE_COLOUR_DIM,
    ACRE_COLOUR_RED,
    ACRE_COLOUR_GREEN,
    ACRE_COLOUR_YELLOW,
};

/* `text` in colour when the terminal takes it. */
void term_put(const struct term *term, struct acre_buf *out, enum colour colour, const char *text);

/* `text` and a newline, wrapped at blanks; the cursor and further lines stand at `indent`. */
void term_wrap(const struct term *term, struct acre_buf *out, uint32_t indent, const char *text);

/* `picture` as bytes that draw it over the one before. `lines` remembers it; start with
 * 0 to begin where the cursor is, or with ACRE_TERM_CLEAR to take the whole screen. Lines past
 * the last are left off, since they would scroll. */
#define ACRE_TERM_CLEAR UINT32_MAX
void term_redraw(const struct term *term, const struct acre_buf *picture, uint32_t *lines,
                 struct acre_buf *out);

struct table_column {
    const char *heading;
    bool right;         /* numbers */
    uint32_t rank;      /* dropped first: the highest; 0: never */
    uint32_t shrink_to; /* cut in the middle down to this many characters; 0: never cut */
    bool cut_end;       /* sentences: cut at the end instead */
};

struct text_table;

struct text_table *table_create(const struct table_column *columns, uint32_t count);
void table_destroy(struct text_table *table); /* NULL is fine */

/* Start a row, then fill its cells from the left; missing cells are empty. Texts are copied. */
void table_row(struct text_table *table);
void table_cell(struct text_table *table, enum colour colour, const char *text);
uint32_t table_rows(const struct text_table *table);

/* Print with headings. On a terminal columns of nothing but "-" are left out; when it is
 * narrow, long texts are cut to twice shrink_to, then columns of rank 7 and more go, then texts
 * are cut to shrink_to, then the other columns go by rank. Pipes and files get everything. */
void table_print(const struct text_table *table, const struct term *term, struct acre_buf *out);

#endif
