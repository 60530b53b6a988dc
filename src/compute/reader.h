/* reader.h - the tokens of a source as the reader of signatures wants them, and one parameter.
 *
 * Directives are dealt with on the way: what is under `#if 0` is not seen, and a macro that makes a
 * kernel is refused. Pure. */
#ifndef ACRE_COMPUTE_READER_H
#define ACRE_COMPUTE_READER_H

#include "compute/lexer.h"
#include "compute/signature.h"

enum {
    ALIASES_MAX = 256, /* typedefs of scalars and vectors that are kept; others are structs */
    NESTING_MAX = 256, /* of parentheses, and of namespaces */
};

struct alias {
    char name[48];
    enum parameter_kind kind;
    uint16_t bytes;
};

struct reader {
    struct lexer lexer;
    struct token token; /* the present one */
    enum acre_language language;
    bool is_strict;      /* the rules of the portable dialect hold */
    struct acre_str in;  /* the kernel being read, */
    uint32_t parameter;  /* and its parameter, from 1; for messages */
    uint32_t conditions; /* #ifs around it */
    bool in_parameters;  /* of a kernel: an #if there is refused */
    bool in_body;        /* between braces that are skipped: one branch of an #if is enough */
    struct alias aliases[ALIASES_MAX];
    uint32_t alias_count;
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
/* The word that makes a function a kernel, in this language. */
bool reader_is_kernel_word(enum acre_language language, struct acre_str word);
/* ACRE_EINVALID: "name:line: kernel 'k': <what>", with `%s` for the present token. */
int reader_refuse(const struct reader *reader, struct acre_error *err, const char *what);

/* One parameter (or what a typedef names), up to the ',' ')' or ';' behind it. `number` is for
 * messages. */
int parameter_read(struct reader *reader, uint32_t number, struct parameter *ret_parameter,
                   struct acre_error *err);

#endif
