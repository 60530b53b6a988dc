/* dialect_cpu_read.c - what kernels of a portable source do, judged by the words in them.
 *
 * Functions and macros are units, with the words between their braces or on their line. A unit has
 * a trait if one of its words implies it, or names a unit that has it; a matrix of which unit names
 * which gives the transitive closure. This is not a parser and need not be: a word too many makes a
 * kernel slower, never wrong. If something cannot be seen from here (an #include, more units than
 * the matrix has room for, a word made by the options), all kernels have all traits. */
#include "compute/source/dialect_cpu.h"
#include "compute/source/dialect_text.h"

#include <stdlib.h>
#include <string.h>

enum { UNITS_MAX = 512 };

struct text_unit {
    struct acre_str name;
    uint8_t traits;
};

struct text_units {
    struct text_unit units[UNITS_MAX];
    uint32_t count;
    uint64_t names[UNITS_MAX][UNITS_MAX / 64]; /* [a] has b: a names b */
    uint8_t everywhere;                        /* traits of all */
};

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

static uint32_t find_unit(const struct text_units *units, struct acre_str name) {
    uint32_t i = 0;
    while (i < units->count && !acre_str_equal(units->units[i].name, name)) {
        i++;
    }
    return i;
}

static uint32_t add_unit(struct text_units *units, struct acre_str name) {
    uint32_t index = find_unit(units, name); /* macros may be defined twice, under conditions */
    if (index == UNITS_MAX) {
        units->everywhere = CPU_ALL_TRAITS;
        return UNITS_MAX - 1;
    }
    if (index == units->count) {
        units->units[units->count++] = (struct text_unit){.name = name};
    }
    return index;
}

/* --- the walk ------------------------------------------------------------------------------- */

enum { OUTSIDE = UNITS_MAX };

struct text_walk {
    char *text;
    struct text_units *units;
    bool is_second; /* units are known: traits and names are noted */
    bool in_macro;
    uint32_t unit; /* that the words belong to; OUTSIDE */
    uint32_t braces, parens;
    struct acre_str previous, candidate; /* words; the one before "(" outside of functions */
    uint8_t head;                        /* traits of words before a function's brace */
    uint8_t index;                       /* type words in this statement */
};

static void note(struct text_walk *walk, uint32_t unit, uint8_t traits, struct acre_str word) {
    struct text_units *units = walk->units;
    units->units[unit].traits |= traits;
    uint32_t other = find_unit(units, word);
    if (other < units->count) {
        units->names[unit][other / 64] |= UINT64_C(1) << other % 64;
    }
}

static void take_word(struct text_walk *walk, const struct lexer *lexer, struct acre_str word) {
    uint8_t traits = traits_of(word);
    bool is_const = false;
    /* `local float *p` says what p points to; `local float a[9]` declares. */
    if (walk->is_second && acre_str_is(word, "local") &&
        (walk->parens > 0 || dialect_points(*lexer, &is_const))) {
        memset(walk->text + (word.data - walk->text), ' ', word.length);
    }
    walk->index |= acre_str_is(word, "int") ? CPU_INT_INDEX : 0;
    walk->index |= acre_str_is(word, "uint") || acre_str_is(word, "unsigned") ? CPU_UINT_INDEX : 0;
    if (acre_str_is(word, "global_id") || acre_str_is(word, "group_id")) {
        traits |= walk->index;
    }
    walk->previous = word;
    if (walk->unit == OUTSIDE) {
        walk->head |= traits;
    } else if (walk->is_second) {
        note(walk, walk->unit, traits, word);
    }
}

static void open_brace(struct text_walk *walk) {
    if (walk->braces++ > 0 || walk->candidate.length == 0) {
        return;
    }
    walk->unit = add_unit(walk->units, walk->candidate);
    if (walk->is_second) {
        walk->units->units[walk->unit].traits |= walk->head;
    }
}

static void take_mark(struct text_walk *walk, char mark) {
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
    walk->index = is_end ? 0 : walk->index;
    if (walk->braces == 0 && walk->parens == 0 && (mark == ';' || mark == '}')) {
        walk->unit = OUTSIDE;
        walk->candidate = (struct acre_str){0};
        walk->head = 0;
    }
}

static void walk_tokens(struct text_walk *walk, struct lexer *lexer);

/* The line of a #define is a unit. Its marks do not count: braces of macros need not match. */
static void take_directive(struct text_walk *walk, struct acre_str directive) {
    struct acre_str rest;
    struct acre_str word = directive_word(directive, &rest);
    if (acre_str_is(word, "include")) {
        walk->units->everywhere = CPU_ALL_TRAITS;
    }
    struct lexer lexer = lexer_begin("", rest);
    lexer.in_line = true;
    struct source_token name;
    if (acre_str_is(word, "define") && lexer_next(&lexer, &name, NULL) == 0 &&
        name.kind == TOKEN_WORD) {
        struct text_walk inner = {.text = walk->text,
                                  .units = walk->units,
                                  .is_second = walk->is_second,
                                  .in_macro = true,
                                  .unit = add_unit(walk->units, name.text)};
        walk_tokens(&inner, &lexer);
    }
}

/* To the end, or to what the compiler will refuse. */
static void walk_tokens(struct text_walk *walk, struct lexer *lexer) {
    struct source_token token;
    while (lexer_next(lexer, &token, NULL) == 0 && token.kind != TOKEN_END) {
        if (token.kind == TOKEN_WORD) {
            take_word(walk, lexer, token.text);
        } else if (token.kind == TOKEN_MARK && !walk->in_macro) {
            take_mark(walk, token.text.data[0]);
        } else if (token.kind == TOKEN_DIRECTIVE) {
            take_directive(walk, token.text);
        }
    }
}

static void walk_once(char *text, size_t length, struct text_units *units, bool is_second) {
    struct text_walk walk = {.text = text, .units = units, .is_second = is_second, .unit = OUTSIDE};
    struct lexer lexer = lexer_begin("", (struct acre_str){text, length});
    walk_tokens(&walk, &lexer);
}

/* Warshall: who names whom over others. A unit that comes back to itself may do so for ever. */
static void close_over(struct text_units *units) {
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

static uint8_t traits_over(const struct text_units *units, uint32_t unit) {
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
    struct text_units *units = calloc(1, sizeof(*units));
    if (units == NULL) {
        return acre_fail(err, ACRE_ENOMEM, "reading a source");
    }
    walk_once(text, length, units, false);
    walk_once(text, length, units, true);
    close_over(units);
    struct lexer lexer = lexer_begin("", acre_str_from(options));
    struct source_token token;
    while (lexer_next(&lexer, &token, NULL) == 0 && token.kind != TOKEN_END) {
        units->everywhere |= traits_of(token.text) != 0 ? CPU_ALL_TRAITS : 0;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t unit = find_unit(units, acre_str_from(all[i].name));
        ret_traits[i] = unit < units->count ? traits_over(units, unit) : CPU_ALL_TRAITS;
    }
    free(units);
    return 0;
}
