/* csv.h - a strict reader for small comma-separated files with a header line.
 *
 * The header must name the wanted columns, in any order; extra columns are ignored. Every row must
 * have as many cells as the header. There is no quoting: a '"' is refused. Lines end with LF or
 * CRLF; without a final newline the file counts as truncated. Errors give file:line, the column,
 * the value and what is accepted. */
#ifndef ACRE_CORE_CSV_H
#define ACRE_CORE_CSV_H

#include "core/error.h"
#include "core/str.h"

enum { ACRE_CSV_COLUMNS_MAX = 32 };

struct acre_csv {
    const char *name; /* file name for messages */
    struct acre_str rest;
    uint32_t line; /* of the row last read, from 1 */
    uint32_t columns;
    uint32_t wanted;
    const char *const *wanted_names;
    uint8_t position[ACRE_CSV_COLUMNS_MAX]; /* wanted index -> file column */
    struct acre_str cells[ACRE_CSV_COLUMNS_MAX];
};

/* `wanted` column names; `text` must outlive the reader. */
int acre_csv_begin(struct acre_csv *csv, const char *name, struct acre_str text,
                   const char *const *wanted, uint32_t count, struct acre_error *err);
/* 1: a row was read; 0: the end; negative: an error. */
int acre_csv_next(struct acre_csv *csv, struct acre_error *err);
struct acre_str acre_csv_cell(const struct acre_csv *csv, uint32_t wanted_index);
int acre_csv_u64(const struct acre_csv *csv, uint32_t wanted_index, uint64_t min, uint64_t max,
                 uint64_t *ret_value, struct acre_error *err);
/* An error about this cell: "file:line: column 'c': <text>". */
int acre_csv_fail(const struct acre_csv *csv, uint32_t wanted_index, struct acre_error *err,
                  const char *format, ...) ACRE_PRINTF(4, 5);

#endif
