/* term.h - the terminal: is it one, how wide, may we colour; and tables that fit it.
 *
 * Programs only, one thread. Tables are printed into a buffer: whoever owns the file writes. */
#ifndef ACRE_CLI_TERM_H
#define ACRE_CLI_TERM_H

#include "core/buf.h"

struct acre_term {
    bool is_terminal;
    bool colour;     /* a terminal, NO_COLOR unset or empty, TERM not "dumb" */
    uint32_t width;  /* columns; 0: as wide as it gets (pipes, files) */
    uint32_t height; /* lines; 0: unknown */
};

struct acre_term acre_term_detect(int fd);

enum acre_colour {
    ACRE_COLOUR_NONE,
    ACRE_COLOUR_BOLD,
    ACRE_COLOUR_DIM,
    ACRE_COLOUR_RED,
    ACRE_COLOUR_GREEN,
    ACRE_COLOUR_YELLOW,
};

/* `text` in colour when the terminal takes it. */
void acre_term_put(const struct acre_term *term, struct acre_buf *out, enum acre_colour colour,
                   const char *text);

/* `text` and a newline, wrapped at blanks; the cursor and further lines stand at `indent`. */
void acre_term_wrap(const struct acre_term *term, struct acre_buf *out, uint32_t indent,
                    const char *text);

/* `picture` as bytes that draw it over the one before. `lines` remembers it; start with
 * 0 to begin where the cursor is, or with ACRE_TERM_CLEAR to take the whole screen. Lines past
 * the last are left off, since they would scroll. */
#define ACRE_TERM_CLEAR UINT32_MAX
void acre_term_redraw(const struct acre_term *term, const struct acre_buf *picture, uint32_t *lines,
                      struct acre_buf *out);

struct acre_table_column {
    const char *heading;
    bool right;         /* numbers */
    uint32_t rank;      /* dropped first: the highest; 0: never */
    uint32_t shrink_to; /* cut in the middle down to this many characters; 0: never cut */
    bool cut_end;       /* sentences: cut at the end instead */
};

struct acre_table;

struct acre_table *acre_table_create(const struct acre_table_column *columns, uint32_t count);
void acre_table_destroy(struct acre_table *table); /* NULL is fine */

/* Start a row, then fill its cells from the left; missing cells are empty. Texts are copied. */
void acre_table_row(struct acre_table *table);
void acre_table_cell(struct acre_table *table, enum acre_colour colour, const char *text);
uint32_t acre_table_rows(const struct acre_table *table);

/* Print with headings. On a terminal columns of nothing but "-" are left out; when it is
 * narrow, long texts are cut to twice shrink_to, then columns of rank 7 and more go, then texts
 * are cut to shrink_to, then the other columns go by rank. Pipes and files get everything. */
void acre_table_print(const struct acre_table *table, const struct acre_term *term,
                      struct acre_buf *out);

#endif
