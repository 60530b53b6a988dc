/* lexer.h - the tokens of a kernel's source: C, CUDA, HIP and OpenCL alike.
 *
 * Comments and blanks are skipped; a preprocessor line, with its continuations, is one token. A
 * lexer is a value: a copy is a position to return to. Each byte is read a bounded number of times.
 * It expands no macro. Pure. */
#ifndef ACRE_COMPUTE_SOURCE_LEXER_H
#define ACRE_COMPUTE_SOURCE_LEXER_H

#include "core/error.h"
#include "core/str.h"

enum token_kind {
    TOKEN_END,
    TOKEN_WORD,
    TOKEN_NUMBER,
    TOKEN_STRING, /* or a character, quotes and all */
    TOKEN_MARK,   /* one character of punctuation */
    TOKEN_DIRECTIVE,
};

struct source_token {
    enum token_kind kind;
    struct acre_str text;
    uint32_t line;   /* from 1 */
    uint32_t offset; /* in the source */
};

struct lexer {
    struct acre_str text; /* at most 4 GiB - 1 */
    const char *name;     /* of the source, for messages */
    size_t at;
    uint32_t line;
    bool in_line;        /* a token came before on this line: a '#' is none of a directive */
    uint32_t conditions; /* #ifs that are open */
};

/* What a directive does to the text around it. */
enum branch { BRANCH_NONE, BRANCH_IF, BRANCH_ELSE, BRANCH_END };

struct lexer lexer_begin(const char *name, struct acre_str text);
/* ACRE_EINVALID: a comment or a string that does not end. TOKEN_END for ever at the end. Under an
 * #if a quote may stand alone ("it's"): nobody may ever compile it. */
int lexer_next(struct lexer *lexer, struct source_token *ret_token, struct acre_error *err);
/* After `#if 0`: go on behind the #else, #elif or #endif that ends it. True: it is the #endif. */
bool lexer_skip_group(struct lexer *lexer);
/* After an #else or #elif: go on behind the #endif. */
void lexer_skip_branches(struct lexer *lexer);

bool token_is(const struct source_token *token, const char *text); /* a word or a mark */
/* The first word after the '#' of a directive, and what follows it. */
struct acre_str directive_word(struct acre_str directive, struct acre_str *ret_rest);
enum branch directive_branch(struct acre_str word);

#endif
