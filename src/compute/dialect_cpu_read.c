/* dialect_cpu_read.c - what kernels of a portable source do, by the words in them.
 *
 * Functions and macros are units, with the words between their braces or on their line. A unit has
 * a trait when a word of it means so, or names a unit that has it; that is closed over with a
 * matrix of who names whom. It is not a parser and need not be: a word too many makes a kernel
 * slower, never wrong, and where something cannot be seen from here (an #include, more units than
 * the matrix has room for, a word made by the options) all kernels have all traits. */
#include "compute/dialect_cpu.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { UNITS_MAX = 512 };

struct unit {
    struct acre_str name;
    uint8_t traits;
};

struct units {
    struct unit units[UNITS_MAX];
    uint32_t count;
    uint64_t names[UNITS_MAX][UNITS_MAX / 64]; /* [a] has b: a names b */
    uint8_t everywhere;                        /* traits of all */
};

enum token_kind { TOKEN_END, TOKEN_WORD, TOKEN_MARK, TOKEN_DIRECTIVE, TOKEN_LINE_END };

struct scan {
    char *text;
    size_t length, at;
    bool is_line_start, in_directive;
};

struct token {
    enum token_kind kind;
    struct acre_str text;
};

/* --- tokens --------------------------------------------------------------------------------- */

static bool is_word_char(char c) {
    return isalnum((unsigned char)c) != 0 || c == '_';
}

static char peek(const struct scan *scan, size_t ahead) {
    return scan->length - scan->at > ahead ? scan->text[scan->at + ahead] : '\0';
}

static void skip_to(struct scan *scan, const char *end) {
    const char *from = scan->text + scan->at;
    const char *found = memmem(from, scan->length - scan->at, end, strlen(end));
    scan->at = found != NULL ? (size_t)(found - scan->text) + strlen(end) : scan->length;
}

static void skip_string(struct scan *scan, char quote) {
    scan->at++;
    while (scan->at < scan->length && peek(scan, 0) != quote && peek(scan, 0) != '\n') {
        scan->at += peek(scan, 0) == '\\' && scan->length - scan->at > 1 ? 2 : 1;
    }
    scan->at += scan->at < scan->length && peek(scan, 0) == quote;
}

/* True when something was skipped that is no token. */
static bool skip_blank(struct scan *scan) {
    char c = peek(scan, 0);
    if (c == '\\' && peek(scan, 1) == '\n') {
        scan->at += 2;
    } else if (c == '/' && peek(scan, 1) == '*') {
        scan->at += 2;
        skip_to(scan, "*/");
    } else if (c == '/' && peek(scan, 1) == '/') {
        const char *from = scan->text + scan->at;
        const char *end = memchr(from, '\n', scan->length - scan->at);
        scan->at = end != NULL ? (size_t)(end - scan->text) : scan->length;
    } else if (c == '"' || c == '\'') {
        skip_string(scan, c);
    } else if (c == '\n' && !scan->in_directive) {
        scan->at++;
        scan->is_line_start = true;
    } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
        scan->at++;
    } else {
        return false;
    }
    return true;
}

static struct token next_token(struct scan *scan) {
    while (scan->at < scan->length && skip_blank(scan)) {
    }
    struct token token = {.text = {scan->text + scan->at, 1}};
    if (scan->at >= scan->length) {
        return (struct token){0};
    }
    char c = peek(scan, 0);
    if (is_word_char(c)) {
        token.kind = TOKEN_WORD;
        while (is_word_char(peek(scan, token.text.length))) {
            token.text.length++;
        }
    } else if (c == '\n') {
        token.kind = TOKEN_LINE_END;
        scan->in_directive = false;
    } else if (c == '#' && scan->is_line_start) {
        token.kind = TOKEN_DIRECTIVE;
        scan->in_directive = true;
    } else {
        token.kind = TOKEN_MARK;
    }
    scan->is_line_start = c == '\n';
    scan->at += token.text.length;
    return token;
}

/* --- words ---------------------------------------------------------------------------------- */

static uint8_t traits_of(struct acre_str word) {
    static const struct {
        const char *word;
        uint8_t traits;
    } rows[] = {
        {"barrier", CPU_HAS_BARRIER},  {"for", CPU_HAS_LOOP},         {"while", CPU_HAS_LOOP},
        {"do", CPU_HAS_LOOP},          {"goto", CPU_HAS_LOOP},        {"local", CPU_NEEDS_GROUP},
        {"local_id", CPU_NEEDS_GROUP}, {"group_id", CPU_NEEDS_GROUP}, {"include", CPU_ALL_TRAITS},
        {"_Pragma", CPU_ALL_TRAITS},   {"asm", CPU_HAS_LOOP},         {"__asm__", CPU_HAS_LOOP},
    };
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        if (acre_str_is(word, rows[i].word)) {
            return rows[i].traits;
        }
    }
    return 0;
}

static uint32_t find_unit(const struct units *units, struct acre_str name) {
    uint32_t i = 0;
    while (i < units->count && !acre_str_equal(units->units[i].name, name)) {
        i++;
    }
    return i;
}

static uint32_t add_unit(struct units *units, struct acre_str name) {
    uint32_t index = find_unit(units, name); /* macros may be defined twice, under conditions */
    if (index == UNITS_MAX) {
        units->everywhere = CPU_ALL_TRAITS;
        return UNITS_MAX - 1;
    }
    if (index == units->count) {
        units->units[units->count++] = (struct unit){.name = name};
    }
    return index;
}

/* `local float *p` says what p points to; `local float a[9]` declares. */
static bool is_qualifier(const struct scan *scan, uint32_t parens) {
    size_t at = scan->at;
    while (at < scan->length && strchr(";[=*(),{}\n", scan->text[at]) == NULL) {
        at++;
    }
    return parens > 0 || (at < scan->length && scan->text[at] == '*');
}

/* --- the walk ------------------------------------------------------------------------------- */

enum { OUTSIDE = UNITS_MAX };

struct walk {
    struct scan scan;
    struct units *units;
    bool is_second;       /* units are known: traits and names are noted */
    uint32_t unit, macro; /* that the words belong to; OUTSIDE */
    uint32_t braces, parens;
    struct acre_str previous, candidate; /* words; the one before "(" outside of functions */
    uint8_t head;                        /* traits of words before a function's brace */
    bool has_int;                        /* in this statement */
};

static void note(struct walk *walk, uint32_t unit, uint8_t traits, struct acre_str word) {
    struct units *units = walk->units;
    units->units[unit].traits |= traits;
    uint32_t other = find_unit(units, word);
    if (other < units->count) {
        units->names[unit][other / 64] |= UINT64_C(1) << other % 64;
    }
}

static void take_word(struct walk *walk, struct acre_str word) {
    struct scan *scan = &walk->scan;
    uint8_t traits = traits_of(word);
    if (acre_str_is(word, "local") && walk->is_second && is_qualifier(scan, walk->parens)) {
        memset(scan->text + (word.data - scan->text), ' ', word.length);
    }
    walk->has_int |= acre_str_is(word, "int");
    if (acre_str_is(word, "global_id") && walk->has_int) {
        traits |= CPU_INT_INDEX;
    }
    walk->previous = word;
    uint32_t unit = walk->scan.in_directive ? walk->macro : walk->unit;
    if (unit != OUTSIDE && walk->is_second) {
        note(walk, unit, traits, word);
    } else if (unit == OUTSIDE && !walk->scan.in_directive) {
        walk->head |= traits;
    }
}

static void open_brace(struct walk *walk) {
    if (walk->braces++ > 0 || walk->candidate.length == 0) {
        return;
    }
    walk->unit = add_unit(walk->units, walk->candidate);
    if (walk->is_second) {
        walk->units->units[walk->unit].traits |= walk->head;
    }
}

static void take_mark(struct walk *walk, char mark) {
    bool is_outside = walk->braces == 0;
    switch (mark) {
    case '(':
        if (is_outside && walk->parens == 0 && !acre_str_is(walk->previous, "__attribute__")) {
            walk->candidate = walk->previous;
        }
        walk->parens++;
        break;
    case ')':
        walk->parens -= walk->parens > 0;
        break;
    case '{':
        open_brace(walk);
        break;
    case '}':
        walk->braces -= walk->braces > 0;
        break;
    default:
        break;
    }
    bool is_end = mark == ';' || mark == '{' || mark == '}';
    walk->has_int &= !is_end;
    if (walk->braces == 0 && walk->parens == 0 && (mark == ';' || mark == '}')) {
        walk->unit = OUTSIDE;
        walk->candidate = (struct acre_str){0};
        walk->head = 0;
    }
}

/* "#define NAME" begins a unit that ends with the line. */
static void take_directive(struct walk *walk) {
    struct token token = next_token(&walk->scan);
    walk->macro = OUTSIDE;
    if (token.kind != TOKEN_WORD) {
        walk->scan.in_directive &= token.kind != TOKEN_LINE_END;
        return;
    }
    if (acre_str_is(token.text, "include")) {
        walk->units->everywhere = CPU_ALL_TRAITS;
    }
    if (acre_str_is(token.text, "define")) {
        token = next_token(&walk->scan);
        if (token.kind == TOKEN_WORD) {
            walk->macro = add_unit(walk->units, token.text);
        }
    }
}

/* Marks in directives do not count: braces of macros need not match. */
static void walk_text(struct walk *walk) {
    for (;;) {
        struct token token = next_token(&walk->scan);
        switch (token.kind) {
        case TOKEN_END:
            return;
        case TOKEN_WORD:
            take_word(walk, token.text);
            break;
        case TOKEN_MARK:
            if (!walk->scan.in_directive) {
                take_mark(walk, token.text.data[0]);
            }
            break;
        case TOKEN_DIRECTIVE:
            take_directive(walk);
            break;
        case TOKEN_LINE_END:
            walk->macro = OUTSIDE;
            walk->has_int = false;
            break;
        }
    }
}

static void walk_once(char *text, size_t length, struct units *units, bool is_second) {
    struct walk walk = {.scan = {.text = text, .length = length, .is_line_start = true},
                        .units = units,
                        .is_second = is_second,
                        .unit = OUTSIDE,
                        .macro = OUTSIDE};
    walk_text(&walk);
}

/* Warshall: who names whom over others. A unit that comes back to itself may do so for ever. */
static void close_over(struct units *units) {
    for (uint32_t k = 0; k < units->count; k++) {
        for (uint32_t i = 0; i < units->count; i++) {
            if ((units->names[i][k / 64] >> k % 64 & 1) == 0) {
                continue;
            }
            for (uint32_t w = 0; w < UNITS_MAX / 64; w++) {
                units->names[i][w] |= units->names[k][w];
            }
        }
    }
}

static uint8_t traits_over(const struct units *units, uint32_t unit) {
    uint8_t traits = units->units[unit].traits | units->everywhere;
    for (uint32_t k = 0; k < units->count; k++) {
        if ((units->names[unit][k / 64] >> k % 64 & 1) != 0) {
            traits |= units->units[k].traits;
            bool is_circle = (units->names[k][k / 64] >> k % 64 & 1) != 0;
            traits |= is_circle ? CPU_HAS_LOOP : 0;
        }
    }
    return traits;
}

int cpu_source_read(char *text, size_t length, const char *options, const struct signature *all,
                    uint32_t count, uint8_t *ret_traits, struct acre_error *err) {
    struct units *units = calloc(1, sizeof(*units));
    char *words = strdup(options);
    if (units == NULL || words == NULL) {
        free(units);
        free(words);
        return acre_fail(err, ACRE_ENOMEM, "reading a source");
    }
    walk_once(text, length, units, false);
    walk_once(text, length, units, true);
    close_over(units);
    struct scan scan = {.text = words, .length = strlen(words)};
    for (struct token token = next_token(&scan); token.kind != TOKEN_END;
         token = next_token(&scan)) {
        units->everywhere |= traits_of(token.text) != 0 ? CPU_ALL_TRAITS : 0;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t unit = find_unit(units, acre_str_from(all[i].name));
        ret_traits[i] = unit < units->count ? traits_over(units, unit) : CPU_ALL_TRAITS;
    }
    free(words);
    free(units);
    return 0;
}
