/* token_reader.h - the tokens of a source as the signature reader needs them, and one parameter.
 *
 * Directives are handled on the way: text under `#if 0` is skipped, and a macro that makes a kernel
 * is refused. Pure. */
#ifndef ACRE_COMPUTE_SOURCE_TOKEN_READER_H
#define ACRE_COMPUTE_SOURCE_TOKEN_READER_H

#include "compute/source/lexer.h"
#include "compute/source/signature.h"

enum {
    ALIASES_MAX = 256, /* typedefs of scalars and vectors that are kept; others are structs */
    MACROS_MAX = 256,  /* macros of words that are kept; others are words of their own */
    NESTING_MAX = 256, /* of parentheses, and of namespaces */
};

struct alias {
    char name[48];
    enum parameter_kind kind;
    uint16_t bytes;
    bool is_three, is_size; /* as in struct typing */
};

/* `#define REAL float`, `#define RESTRICT __restrict__`: words, and '*', in place of a word. */
struct macro {
    struct acre_str name, body;
    bool is_nothing; /* of it says anything about a size */
    bool is_unknown; /* nobody can tell from here which of its definitions holds */
    bool is_odd;     /* more than the words, and stars, of a type */
};

struct reader {
    struct lexer lexer;
    struct source_token token; /* the present one */
    enum acre_language language;
    bool is_strict;     /* the rules of the portable dialect hold */
    struct acre_str in; /* the kernel being read, */
    uint32_t parameter; /* and its parameter, from 1; for messages */
    bool after_branch;  /* an #if, #else or #endif is before the token */
    bool in_parameters; /* of a kernel: an #if there is refused */
    bool in_body;       /* between braces that are skipped: one branch of an #if is enough */
    uint32_t outside;   /* #ifs around these braces */
    struct alias aliases[ALIASES_MAX];
    uint32_t alias_count;
    struct macro macros[MACROS_MAX];
    uint32_t macro_count;
};

/* `language` is none of AUTO. The present token is the first one. */
int reader_begin(struct reader *reader, const char *name, struct acre_str text,
                 enum acre_language language, struct acre_error *err);
int reader_advance(struct reader *reader, struct acre_error *err);
/* The present token opens a bracket: go behind the one that closes it. */
int reader_skip_brackets(struct reader *reader, struct acre_error *err);
/* The same for '<'. */
int reader_skip_angles(struct reader *reader, struct acre_error *err);
/* Whether the present token may be followed by something in parentheses that says nothing about
 * the type: __attribute__, __launch_bounds__ ... */
bool reader_at_attribute(const struct reader *reader);
int reader_skip_attribute(struct reader *reader, struct acre_error *err);
bool reader_is_c(enum acre_language language); /* and not C++ */
/* The word that makes a function a kernel, in this language. */
bool reader_is_kernel_word(enum acre_language language, struct acre_str word);
/* The macro that a word is; NULL: none, or one with parameters. */
const struct macro *reader_macro(const struct reader *reader, struct acre_str word);
/* ACRE_EINVALID: "name:line: kernel 'k': <what>", with `%s` for the present token. */
int reader_refuse(const struct reader *reader, struct acre_error *err, const char *what);

/* Whether a word says nothing about a parameter's size. */
bool parameter_ignores(struct acre_str word);
/* One parameter, up to the ',' ')' or ';' behind it. `number` is for messages. */
int parameter_read(struct reader *reader, uint32_t number, struct parameter *ret_parameter,
                   struct acre_error *err);
/* Behind `typedef`: remember the numbers and pointers it names, up to its ';'. What is not
 * understood is no error, but a bracket that is never closed. */
int typedef_read(struct reader *reader, struct acre_error *err);
/* A struct, class or union has this name: it is none of what others are called so. */
void tag_read(struct reader *reader, struct acre_str name);
/* Behind `using`, likewise. */
int using_read(struct reader *reader, struct acre_error *err);

#endif
