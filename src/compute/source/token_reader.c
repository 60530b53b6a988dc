/* token_reader.c - tokens without directives; brackets are skipped with bounded nesting.
 *
 * Macros are not expanded: a reader that did would be a compiler. So a macro whose body has the
 * word that makes a kernel is refused, with its line. Macros that stand for a type or a qualifier
 * are remembered for parameters. All others can only hide what does not matter here, or make a
 * parameter that cannot be read, which is an error of its own. */
#include "compute/source/token_reader.h"

#include <stdio.h>
#include <string.h>

enum { MACRO_BODY_MAX = 128 }; /* "const unsigned long long *", and room for a comment */

bool reader_is_c(enum acre_language language) {
    return language == ACRE_LANGUAGE_OPENCL || language == ACRE_LANGUAGE_PORTABLE;
}

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
    const struct source_token *token = &reader->token;
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
        bool is_end = token->kind == TOKEN_END;
        int quote = is_end && at > what && at[-1] == '\'' && at[2] == '\'' ? 1 : 0;
        snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - what) - quote, what,
                 is_end ? "end of text" : shown, at + 2 + quote);
    }
    return acre_fail(err, ACRE_EINVALID, "%s:%u: %s%s", reader->lexer.name, token->line, kernel,
                     text);
}

/* A macro's parameters are its own words, whatever they are called. */
static bool has_word(struct acre_str text, struct acre_str word) {
    struct lexer lexer = lexer_begin("", text);
    struct source_token token;
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

/* What a macro's body is made of, for a parameter: nothing that says anything about its size, words
 * and stars, the name of a struct (of which nobody knows more), or something else. */
static void look_at_body(struct macro *macro) {
    static const char *const tags[] = {"struct", "union", "class", "enum"};
    struct lexer lexer = lexer_begin("", macro->body);
    struct source_token token;
    bool has_tag = false, has_star = false;
    bool ok = macro->body.length <= MACRO_BODY_MAX;
    lexer.in_line = true;
    macro->is_nothing = true;
    while (ok && (ok = lexer_next(&lexer, &token, NULL) == 0) && token.kind != TOKEN_END) {
        bool is_star = token_is(&token, "*");
        ok = token.kind == TOKEN_WORD || is_star;
        has_star |= is_star;
        for (size_t i = 0; i < ACRE_COUNT(tags); i++) {
            has_tag |= token_is(&token, tags[i]);
        }
        macro->is_nothing = macro->is_nothing && parameter_ignores(token.text);
    }
    macro->is_odd = !ok || (has_tag && has_star);
    macro->is_unknown = has_tag;
}

/* The index, or `macro_count`. */
static uint32_t find_macro(const struct reader *reader, struct acre_str name) {
    uint32_t i = 0;
    while (i < reader->macro_count && !acre_str_equal(reader->macros[i].name, name)) {
        i++;
    }
    return i;
}

/* A type defined under an #if may be another: "#ifndef REAL", and the compiler's options have one.
 * A qualifier in its place would be a qualifier too. */
static void remember_macro(struct reader *reader, struct acre_str name, struct acre_str body) {
    struct macro macro = {.name = name, .body = body};
    look_at_body(&macro);
    macro.is_nothing = macro.is_nothing && !macro.is_odd;
    macro.is_unknown |= !macro.is_nothing && reader->lexer.conditions > 0;
    uint32_t index = find_macro(reader, name);
    struct macro *old = &reader->macros[index];
    if (index < reader->macro_count) {
        bool is_same = acre_str_equal(old->body, body) || (macro.is_nothing && old->is_nothing);
        old->is_unknown |= macro.is_unknown || !is_same;
        old->is_odd |= macro.is_odd;
    } else if (index < MACROS_MAX) {
        reader->macro_count++;
        *old = macro;
    }
}

/* Outside of every #if it is none any more. */
static void forget_macro(struct reader *reader, struct acre_str name) {
    uint32_t index = find_macro(reader, name);
    if (index < reader->macro_count && reader->lexer.conditions == 0) {
        reader->macros[index] = reader->macros[--reader->macro_count];
    } else if (index < reader->macro_count) {
        reader->macros[index].is_unknown = true;
    }
}

const struct macro *reader_macro(const struct reader *reader, struct acre_str word) {
    uint32_t index = find_macro(reader, word);
    return index < reader->macro_count ? &reader->macros[index] : NULL;
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
                             "%s:%u: the macro '%s' hides a kernel (it contains '%s'); write the "
                             "kernel out so that its parameters can be read",
                             reader->lexer.name, reader->token.line,
                             acre_str_show(name, shown, sizeof(shown)), words[i].data);
        }
    }
    return 0;
}

/* "0", whatever comments and blanks (the CR of a CRLF) are behind it. */
static bool is_never(struct acre_str condition) {
    struct lexer lexer = lexer_begin("", condition);
    struct source_token token, end;
    lexer.in_line = true;
    return lexer_next(&lexer, &token, NULL) == 0 && acre_str_is(token.text, "0") &&
           lexer_next(&lexer, &end, NULL) == 0 && end.kind == TOKEN_END;
}

/* Braces of one branch count, not of all: "#if A  if (x) {  #else  if (y) {  #endif". But where
 * the #if began before the body, the other branch may have the kernel with other parameters. */
static int pass_branches(struct reader *reader, struct acre_error *err) {
    if (reader->in.length > 0 && reader->lexer.conditions <= reader->outside) {
        return reader_refuse(reader, err,
                             "'%s' in a body that began in the previous branch; put the #if around "
                             "the whole kernel or inside its body");
    }
    lexer_skip_branches(&reader->lexer);
    return 0;
}

static int follow_directive(struct reader *reader, struct acre_str word, struct acre_str rest,
                            struct acre_error *err) {
    enum branch branch = directive_branch(word);
    if (acre_str_is(word, "define")) {
        size_t head = macro_head(rest);
        remember_macro(reader, (struct acre_str){rest.data, head},
                       acre_str_trim((struct acre_str){rest.data + head, rest.length - head}));
        return check_define(reader, rest, err);
    }
    if (acre_str_is(word, "undef")) {
        forget_macro(reader, (struct acre_str){rest.data, macro_head(rest)});
    } else if (acre_str_is(word, "if") && is_never(rest)) {
        lexer_skip_group(&reader->lexer);
    } else if (reader->in_parameters && branch != BRANCH_NONE) {
        return reader_refuse(reader, err,
                             "'%s' among the parameters; put the #if around the whole kernel");
    } else if (reader->in_body && branch == BRANCH_ELSE) {
        return pass_branches(reader, err);
    }
    return 0;
}

int reader_advance(struct reader *reader, struct acre_error *err) {
    int r;
    reader->after_branch = false;
    do {
        r = lexer_next(&reader->lexer, &reader->token, err);
        if (r == 0 && reader->token.kind == TOKEN_DIRECTIVE) {
            struct acre_str rest;
            struct acre_str word = directive_word(reader->token.text, &rest);
            reader->after_branch |= directive_branch(word) != BRANCH_NONE;
            r = follow_directive(reader, word, rest, err);
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
    reader->in_parameters = reader->in_body = false;
    reader->outside = 0;
    reader->alias_count = reader->macro_count = 0;
    return reader_advance(reader, err);
}

static int never_closed(const struct reader *reader, const struct source_token *open,
                        struct acre_error *err) {
    struct reader at = *reader;
    at.token = *open;
    return reader_refuse(&at, err, "the '%s' is never closed");
}

int reader_skip_brackets(struct reader *reader, struct acre_error *err) {
    struct source_token open = reader->token;
    char kind = open.text.data[0];
    char close = kind == '(' ? ')' : kind == '[' ? ']' : '}';
    uint32_t depth = 0;
    bool was_in_body = reader->in_body;
    reader->in_body |= kind == '{';
    reader->outside = was_in_body ? reader->outside : reader->lexer.conditions;
    do {
        const struct source_token *token = &reader->token;
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
            reader->in_body = was_in_body;
            return r;
        }
    } while (depth > 0);
    return 0;
}

int reader_skip_angles(struct reader *reader, struct acre_error *err) {
    struct source_token open = reader->token;
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
