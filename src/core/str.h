/* str.h - string views and a few text helpers for the parsers.
 *
 * A view borrows; it is not NUL-terminated. Pure; any thread. */
#ifndef ACRE_CORE_STR_H
#define ACRE_CORE_STR_H

#include "core/base.h"

struct acre_str {
    const char *data;
    size_t length;
};

#define ACRE_STR(literal) ((struct acre_str){(literal), sizeof(literal) - 1})

struct acre_str acre_str_from(const char *text); /* NULL gives the empty view */
bool acre_str_equal(struct acre_str a, struct acre_str b);
bool acre_str_is(struct acre_str a, const char *text);
struct acre_str acre_str_trim(struct acre_str text); /* blanks and tabs at both ends */

/* Cut the part before the first `separator` off `*rest`. False when `*rest` is used up;
 * "a,,b" gives "a", "", "b". Start with acre_split_begin. */
struct acre_split {
    struct acre_str rest;
    char separator;
    bool done;
};
struct acre_split acre_split_begin(struct acre_str text, char separator);
bool acre_split_next(struct acre_split *split, struct acre_str *ret_part);

/* Behind the byte order mark that some editors begin a file with. */
const char *acre_str_after_mark(const char *text);

/* Copy with NUL; false (and nothing written) when it does not fit. */
bool acre_str_copy(char *to, size_t size, struct acre_str from);

/* Names of nodes, users, labels, models: 1..max bytes of letters, digits and "-_./:@+ ".
 * No control characters, no quotes, no leading or trailing blank. */
bool acre_str_is_name(struct acre_str text, size_t max);

/* Length of the valid UTF-8 sequence at the front; 0 when there is none. */
size_t acre_str_utf8(struct acre_str text);

/* Write `text` to `out` with everything but printable ASCII and UTF-8 letters made visible
 * (\n, \x1b ...), cut to `size` with "..." : for values shown in error messages. */
char *acre_str_show(struct acre_str text, char *out, size_t size);

/* The same, but backslashes stay as they are: for whole texts, such as a command, and for those
 * that were made visible before, such as a daemon's answer, which would be escaped twice over. */
char *acre_str_show_text(struct acre_str text, char *out, size_t size);

/* The same for the first unit (one character, or one byte that is not text) of a view that is
 * not empty. Returns the length written; `ret_used_bytes` says how much of `text` it stands for. */
enum { ACRE_SHOW_UNIT_MAX = 8 };
size_t acre_str_show_unit(struct acre_str text, char out[ACRE_SHOW_UNIT_MAX],
                          size_t *ret_used_bytes);

uint64_t acre_hash_bytes(const void *bytes, size_t length); /* FNV-1a folded; stable */

#endif
