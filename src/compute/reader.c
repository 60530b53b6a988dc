/* reader.c - tokens without directives, brackets skipped with a bounded nesting.
 *
 * Macros are not expanded: a reader that did would be a compiler. So a macro whose body has the
 * word that makes a kernel is refused, with its line; all other macros can only hide what does not
 * matter here, or make a parameter that is not understood, which is an error of its own. */
#include "compute/reader.h"

#include <stdio.h>
#include <string.h>

bool reader_is_kernel_word(enum acre_language language, struct acre_str word) {
    switch (language) {
    case ACRE_LANGUAGE_CUDA:
    case ACRE_LANGUAGE_HIP:
        return acre_str_is(word, "__global__");
    case ACRE_LANGUAGE_OPENCL:
        return acre_str_is(word, "__kernel") || acre_str_is(word, "kernel");
    case ACRE_LANGUAGE_PORTABLE:
        return acre_str_is(word, "kernel");
    case ACRE_LANGUAGE_AUTO:
    default:
        return false;
    }
}

int reader_refuse(const struct reader *reader, struct acre_error *err, const char *what) {
    char shown[64], kernel[112] = "", text[320];
    const struct token *token = &reader->token;
    acre_str_show(token->text, shown, sizeof(shown));
    if (reader->in.length > 0) {
        char name[64], number[24] = "";
        if (reader->parameter > 0) {
            snprintf(number, sizeof(number), ", parameter %u", reader->parameter);
        }
        snprintf(kernel, sizeof(kernel),
                 "kernel '%s'%s: ", acre_str_show(reader->in, name, sizeof(name)), number);
    }
    const char *at = strstr(what, "%s");
    if (at == NULL) {
        snprintf(text, sizeof(text), "%s", what);
    } else {
        snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - what), what,
                 token->kind == TOKEN_END ? "the end of the text" : shown, at + 2);
    }
    return acre_fail(err, ACRE_EINVALID, "%s:%u: %s%s", reader->lexer.name, token->line, kernel,
                     text);
}

/* A macro's parameters are its own words, whatever they are called. */
static bool has_word(struct acre_str text, struct acre_str word) {
    struct lexer lexer = lexer_begin("", text);
    struct token token;
    lexer.in_line = true; /* '#' is an operator here */
    while (lexer_next(&lexer, &token, NULL) == 0 && token.kind != TOKEN_END) {
        if (token.kind == TOKEN_WORD && acre_str_equal(token.text, word)) {
            return true;
        }
    }
    return false;
}

/* The part of a #define before its body: "NAME" or "NAME(a, b)". */
static size_t macro_head(struct acre_str define) {
    size_t at = 0;
    while (at < define.length && strchr(" \t\r\n\\(", define.data[at]) == NULL) {
        at++;
    }
    if (at < define.length && define.data[at] == '(') {
        const char *end = memchr(define.data + at, ')', define.length - at);
        at = end != NULL ? (size_t)(end - define.data) + 1 : define.length;
    }
    return at;
}

/* `#define KERNEL(name) kernel void name(...)`: the kernels it makes cannot be seen. */
static int check_define(const struct reader *reader, struct acre_str define,
                        struct acre_error *err) {
    size_t head = macro_head(define);
    struct acre_str name = {define.data, head};
    struct acre_str body = {define.data + head, define.length - head};
    static const struct acre_str words[] = {{"__global__", 10}, {"__kernel", 8}, {"kernel", 6}};
    for (size_t i = 0; i < ACRE_COUNT(words); i++) {
        if (reader_is_kernel_word(reader->language, words[i]) && has_word(body, words[i]) &&
            !has_word(name, words[i])) {
            char shown[64];
            return acre_fail(err, ACRE_EINVALID,
                             "%s:%u: the macro '%s' hides a kernel ('%s' in it); accepted: "
                             "kernels written out, so that their parameters can be read",
                             reader->lexer.name, reader->token.line,
                             acre_str_show(name, shown, sizeof(shown)), words[i].data);
        }
    }
    return 0;
}

/* "0", whatever comments and blanks (the CR of a CRLF) are behind it. */
static bool is_never(struct acre_str condition) {
    struct lexer lexer = lexer_begin("", condition);
    struct token token, end;
    lexer.in_line = true;
    return lexer_next(&lexer, &token, NULL) == 0 && acre_str_is(token.text, "0") &&
           lexer_next(&lexer, &end, NULL) == 0 && end.kind == TOKEN_END;
}

static bool is_conditional(struct acre_str word) {
    return acre_str_is(word, "if") || acre_str_is(word, "ifdef") || acre_str_is(word, "ifndef") ||
           acre_str_is(word, "elif") || acre_str_is(word, "else") || acre_str_is(word, "endif");
}

static int follow_directive(struct reader *reader, struct acre_error *err) {
    struct acre_str rest;
    struct acre_str word = directive_word(reader->token.text, &rest);
    if (acre_str_is(word, "define")) {
        return check_define(reader, rest, err);
    }
    bool opens =
        acre_str_is(word, "if") || acre_str_is(word, "ifdef") || acre_str_is(word, "ifndef");
    reader->conditions += opens;
    reader->conditions -= acre_str_is(word, "endif") && reader->conditions > 0;
    if (acre_str_is(word, "if") && is_never(rest)) {
        reader->conditions -= lexer_skip_group(&reader->lexer);
    } else if (reader->in_parameters && is_conditional(word)) {
        return reader_refuse(reader, err,
                             "'%s' among the parameters; accepted: an #if around the whole kernel");
    } else if (reader->in_body && (acre_str_is(word, "else") || acre_str_is(word, "elif"))) {
        /* Braces of one branch count, not of all: "#if A  if (x) {  #else  if (y) {  #endif". */
        lexer_skip_branches(&reader->lexer);
        reader->conditions -= reader->conditions > 0;
    }
    return 0;
}

int reader_advance(struct reader *reader, struct acre_error *err) {
    int r;
    do {
        r = lexer_next(&reader->lexer, &reader->token, err);
        if (r == 0 && reader->token.kind == TOKEN_DIRECTIVE) {
            r = follow_directive(reader, err);
        }
    } while (r == 0 && reader->token.kind == TOKEN_DIRECTIVE);
    return r;
}

int reader_begin(struct reader *reader, const char *name, struct acre_str text,
                 enum acre_language language, struct acre_error *err) {
    ACRE_ASSERT(language != ACRE_LANGUAGE_AUTO);
    reader->lexer = lexer_begin(name, text);
    reader->language = language;
    reader->is_strict = language == ACRE_LANGUAGE_PORTABLE;
    reader->in = (struct acre_str){"", 0};
    reader->parameter = 0;
    reader->conditions = 0;
    reader->in_parameters = reader->in_body = false;
    reader->alias_count = 0;
    return reader_advance(reader, err);
}

static int never_closed(const struct reader *reader, const struct token *open,
                        struct acre_error *err) {
    struct reader at = *reader;
    at.token = *open;
    return reader_refuse(&at, err, "the '%s' is never closed");
}

int reader_skip_brackets(struct reader *reader, struct acre_error *err) {
    struct token open = reader->token;
    char kind = open.text.data[0];
    char close = kind == '(' ? ')' : kind == '[' ? ']' : '}';
    uint32_t depth = 0;
    bool was_in_body = reader->in_body;
    reader->in_body |= kind == '{';
    do {
        const struct token *token = &reader->token;
        if (token->kind == TOKEN_END) {
            return never_closed(reader, &open, err);
        }
        if (token->kind == TOKEN_MARK) {
            depth += token->text.data[0] == kind;
            depth -= token->text.data[0] == close;
        }
        reader->in_body = depth > 0 ? reader->in_body : was_in_body;
        int r = reader_advance(reader, err);
        if (r < 0) {
            return r;
        }
    } while (depth > 0);
    return 0;
}

int reader_skip_angles(struct reader *reader, struct acre_error *err) {
    struct token open = reader->token;
    uint32_t depth = 0;
    do {
        int r;
        if (reader->token.kind == TOKEN_END || token_is(&reader->token, ";") ||
            token_is(&reader->token, "{")) {
            return never_closed(reader, &open, err);
        }
        if (token_is(&reader->token, "(")) {
            r = reader_skip_brackets(reader, err);
        } else {
            depth += token_is(&reader->token, "<");
            depth -= token_is(&reader->token, ">");
            r = reader_advance(reader, err);
        }
        if (r < 0) {
            return r;
        }
    } while (depth > 0);
    return 0;
}

static const char *const attributes[] = {"__attribute__",    "__attribute",    "__launch_bounds__",
                                         "__cluster_dims__", "__block_size__", "__maxnreg__",
                                         "__align__",        "alignas",        "_Alignas",
                                         "__declspec",       "noexcept"};

bool reader_at_attribute(const struct reader *reader) {
    for (size_t i = 0; i < ACRE_COUNT(attributes); i++) {
        if (token_is(&reader->token, attributes[i])) {
            return true;
        }
    }
    return token_is(&reader->token, "["); /* [[deprecated]] */
}

int reader_skip_attribute(struct reader *reader, struct acre_error *err) {
    if (token_is(&reader->token, "[")) {
        return reader_skip_brackets(reader, err);
    }
    int r = reader_advance(reader, err);
    return r == 0 && token_is(&reader->token, "(") ? reader_skip_brackets(reader, err) : r;
}
