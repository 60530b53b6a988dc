/* lexer.c - one pass over the bytes, without tables: a token's first byte says what it is.
 *
 * What matters is not to mistake other text for code: comments, strings (raw ones of C++ too),
 * characters, and preprocessor lines with their continuations. Bytes over 127 are letters, as in
 * compilers; a backslash at the end of a line is a blank. */
#include "compute/source/lexer.h"

#include <string.h>

enum { RAW_DELIMITER_MAX = 16 }; /* C++ says so */

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' ||
           (unsigned char)c >= 0x80;
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_space(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

struct lexer lexer_begin(const char *name, struct acre_str text) {
    ACRE_ASSERT(text.length < UINT32_MAX);
    return (struct lexer){.text = text, .name = name, .line = 1};
}

/* The byte so far ahead; NUL behind the end. */
static char ahead(const struct lexer *lexer, size_t distance) {
    size_t at = lexer->at + distance;
    return at < lexer->text.length ? lexer->text.data[at] : '\0';
}

static bool at_end(const struct lexer *lexer) {
    return lexer->at >= lexer->text.length;
}

static void step(struct lexer *lexer) {
    if (lexer->text.data[lexer->at] == '\n') {
        lexer->line++;
        lexer->in_line = false;
    }
    lexer->at++;
}

static void step_over(struct lexer *lexer, size_t length) {
    for (size_t i = 0; i < length && !at_end(lexer); i++) {
        step(lexer);
    }
}

/* A backslash and the end of the line: its length, or 0. */
static size_t splice(const struct lexer *lexer) {
    if (ahead(lexer, 0) != '\\') {
        return 0;
    }
    return ahead(lexer, 1) == '\n' ? 2 : ahead(lexer, 1) == '\r' && ahead(lexer, 2) == '\n' ? 3 : 0;
}

/* Over a line's continuation: the directive or comment goes on, so `in_line` stays. */
static void step_splice(struct lexer *lexer, size_t length) {
    bool in_line = lexer->in_line;
    step_over(lexer, length);
    lexer->in_line = in_line;
}

static int skip_block_comment(struct lexer *lexer, struct acre_error *err) {
    uint32_t line = lexer->line;
    bool in_line = lexer->in_line;
    step_over(lexer, 2);
    while (!at_end(lexer)) {
        if (ahead(lexer, 0) == '*' && ahead(lexer, 1) == '/') {
            step_over(lexer, 2);
            lexer->in_line = in_line; /* a comment is one blank, wherever it ends */
            return 0;
        }
        step(lexer);
    }
    return acre_fail(err, ACRE_EINVALID, "%s:%u: unterminated comment", lexer->name, line);
}

static void skip_line_comment(struct lexer *lexer) {
    while (!at_end(lexer) && ahead(lexer, 0) != '\n') {
        size_t length = splice(lexer);
        if (length > 0) {
            step_splice(lexer, length);
        } else {
            step(lexer);
        }
    }
}

static int skip_blanks(struct lexer *lexer, struct acre_error *err) {
    while (!at_end(lexer)) {
        size_t length = splice(lexer);
        if (length > 0) {
            step_splice(lexer, length);
        } else if (is_space(ahead(lexer, 0))) {
            step(lexer);
        } else if (ahead(lexer, 0) == '/' && ahead(lexer, 1) == '/') {
            skip_line_comment(lexer);
        } else if (ahead(lexer, 0) == '/' && ahead(lexer, 1) == '*') {
            int r = skip_block_comment(lexer, err);
            if (r < 0) {
                return r;
            }
        } else {
            break;
        }
    }
    return 0;
}

/* From the opening quote to behind the closing one; false when the line ends before. */
static bool skip_quoted(struct lexer *lexer) {
    char quote = ahead(lexer, 0);
    step(lexer);
    while (!at_end(lexer) && ahead(lexer, 0) != '\n') {
        char c = ahead(lexer, 0);
        size_t length = splice(lexer);
        if (length > 0) {
            step_splice(lexer, length);
            continue;
        }
        step(lexer);
        if (c == quote) {
            return true;
        }
        if (c == '\\' && !at_end(lexer) && ahead(lexer, 0) != '\n') {
            step(lexer);
        }
    }
    return false;
}

/* A directive ends with its line, but a comment or a continuation takes it further. Quotes in it
 * need not be closed: "#error don't". */
static int skip_directive(struct lexer *lexer, struct acre_error *err) {
    lexer->in_line = true;
    while (!at_end(lexer) && ahead(lexer, 0) != '\n') {
        size_t length = splice(lexer);
        char c = ahead(lexer, 0);
        if (length > 0) {
            step_splice(lexer, length);
        } else if (c == '/' && ahead(lexer, 1) == '*') {
            int r = skip_block_comment(lexer, err);
            if (r < 0) {
                return r;
            }
        } else if (c == '/' && ahead(lexer, 1) == '/') {
            skip_line_comment(lexer);
        } else if (c == '"' || c == '\'') {
            skip_quoted(lexer);
        } else {
            step(lexer);
        }
    }
    return 0;
}

/* R"x( ... )x", from the quote on. */
static bool skip_raw(struct lexer *lexer) {
    char close[RAW_DELIMITER_MAX + 2] = ")";
    size_t length = 1;
    step(lexer);
    while (length <= RAW_DELIMITER_MAX && !at_end(lexer) && ahead(lexer, 0) != '(' &&
           ahead(lexer, 0) != '\n') {
        close[length++] = ahead(lexer, 0);
        step(lexer);
    }
    if (ahead(lexer, 0) != '(') {
        return false;
    }
    close[length++] = '"';
    const char *end =
        memmem(lexer->text.data + lexer->at, lexer->text.length - lexer->at, close, length);
    if (end != NULL) {
        bool in_line = lexer->in_line;
        step_over(lexer, (size_t)(end - lexer->text.data) - lexer->at + length);
        lexer->in_line = in_line;
    }
    return end != NULL;
}

static bool is_raw_prefix(struct acre_str word) {
    static const char *const prefixes[] = {"R", "LR", "uR", "UR", "u8R"};
    for (size_t i = 0; i < ACRE_COUNT(prefixes); i++) {
        if (acre_str_is(word, prefixes[i])) {
            return true;
        }
    }
    return false;
}

/* 0x1p-3f, 1e+10, 1'000: what the preprocessor calls a number. */
static void skip_number(struct lexer *lexer) {
    while (!at_end(lexer)) {
        char c = ahead(lexer, 0), next = ahead(lexer, 1);
        if (((c | 0x20) == 'e' || (c | 0x20) == 'p') && (next == '+' || next == '-')) {
            step_over(lexer, 2);
        } else if (is_digit(c) || is_letter(c) || c == '.' ||
                   (c == '\'' && (is_digit(next) || is_letter(next)))) {
            step(lexer);
        } else {
            break;
        }
    }
}

static struct acre_str since(const struct lexer *lexer, size_t start) {
    return (struct acre_str){lexer->text.data + start, lexer->at - start};
}

static void count_conditions(struct lexer *lexer, const struct source_token *token) {
    struct acre_str rest;
    enum branch branch = token->kind == TOKEN_DIRECTIVE
                             ? directive_branch(directive_word(token->text, &rest))
                             : BRANCH_NONE;
    lexer->conditions += branch == BRANCH_IF;
    lexer->conditions -= branch == BRANCH_END && lexer->conditions > 0;
}

static int next(struct lexer *lexer, struct source_token *ret_token, struct acre_error *err) {
    int r = skip_blanks(lexer, err);
    if (r < 0) {
        return r;
    }
    size_t start = lexer->at;
    struct source_token token = {.kind = TOKEN_END, .line = lexer->line, .offset = (uint32_t)start};
    char c = ahead(lexer, 0);
    bool ended = true;
    if (at_end(lexer)) {
        /* nothing left */
    } else if (c == '#' && !lexer->in_line) {
        token.kind = TOKEN_DIRECTIVE;
        r = skip_directive(lexer, err);
    } else if (is_letter(c)) {
        token.kind = TOKEN_WORD;
        while (!at_end(lexer) && (is_letter(ahead(lexer, 0)) || is_digit(ahead(lexer, 0)))) {
            step(lexer);
        }
        if (ahead(lexer, 0) == '"' && is_raw_prefix(since(lexer, start))) {
            token.kind = TOKEN_STRING;
            ended = skip_raw(lexer);
        }
    } else if (is_digit(c) || (c == '.' && is_digit(ahead(lexer, 1)))) {
        token.kind = TOKEN_NUMBER;
        skip_number(lexer);
    } else if (c == '"' || c == '\'') {
        token.kind = TOKEN_STRING;
        ended = skip_quoted(lexer);
    } else {
        token.kind = TOKEN_MARK;
        step(lexer);
    }
    bool is_raw = token.kind == TOKEN_STRING && is_letter(c);
    if (!ended && (lexer->conditions == 0 || is_raw)) {
        r = acre_fail(err, ACRE_EINVALID, "%s:%u: unterminated %s", lexer->name, token.line,
                      c == '\'' ? "character" : "string");
    }
    if (r == 0) {
        lexer->in_line = token.kind != TOKEN_DIRECTIVE || lexer->in_line;
        token.text = since(lexer, start);
        count_conditions(lexer, &token);
        *ret_token = token;
    }
    return r;
}

int lexer_next(struct lexer *lexer, struct source_token *ret_token, struct acre_error *err) {
    struct lexer before = *lexer;
    int r = next(lexer, ret_token, err);
    if (r < 0) {
        *lexer = before; /* so that the next call fails likewise */
    }
    return r;
}

bool lexer_skip_group(struct lexer *lexer) {
    uint32_t depth = 0;
    while (!at_end(lexer)) {
        size_t start = lexer->at;
        while (!at_end(lexer) && ahead(lexer, 0) != '\n') {
            size_t length = splice(lexer);
            step_over(lexer, ACRE_MAX(length, (size_t)1));
        }
        struct acre_str line = acre_str_trim(since(lexer, start));
        struct acre_str rest;
        enum branch branch = directive_branch(directive_word(line, &rest));
        bool is_end = branch == BRANCH_END;
        if (depth == 0 && (is_end || branch == BRANCH_ELSE)) {
            lexer->conditions -= is_end && lexer->conditions > 0;
            return is_end;
        }
        depth -= is_end;
        depth += branch == BRANCH_IF;
        step_over(lexer, 1);
    }
    return true;
}

void lexer_skip_branches(struct lexer *lexer) {
    while (!lexer_skip_group(lexer)) {
    }
}

enum branch directive_branch(struct acre_str word) {
    static const struct {
        const char *word;
        enum branch branch;
    } rows[] = {
        {"if", BRANCH_IF},         {"ifdef", BRANCH_IF},  {"ifndef", BRANCH_IF},
        {"else", BRANCH_ELSE},     {"elif", BRANCH_ELSE}, {"elifdef", BRANCH_ELSE},
        {"elifndef", BRANCH_ELSE}, {"endif", BRANCH_END},
    };
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        if (acre_str_is(word, rows[i].word)) {
            return rows[i].branch;
        }
    }
    return BRANCH_NONE;
}

bool token_is(const struct source_token *token, const char *text) {
    return (token->kind == TOKEN_WORD || token->kind == TOKEN_MARK) &&
           acre_str_is(token->text, text);
}

struct acre_str directive_word(struct acre_str directive, struct acre_str *ret_rest) {
    size_t at = 0;
    if (directive.length == 0 || directive.data[0] != '#') {
        *ret_rest = (struct acre_str){directive.data, 0};
        return *ret_rest;
    }
    for (at = 1; at < directive.length && is_space(directive.data[at]); at++) {
    }
    size_t start = at;
    while (at < directive.length && is_letter(directive.data[at])) {
        at++;
    }
    *ret_rest = acre_str_trim((struct acre_str){directive.data + at, directive.length - at});
    return (struct acre_str){directive.data + start, at - start};
}
