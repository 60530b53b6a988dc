/* opt.h - command lines as tables: one row per option serves --help, parsing and completion.
 *
 * Accepts "--name VALUE", "--name=VALUE", "-n VALUE" and flags without a value; "--" ends options.
 * An unknown option is refused with the nearest known one ("did you mean --json?"), a bad value
 * with the option, the value and what is accepted; an option may not be given twice. On failure the
 * target struct is unspecified: exit. */
#ifndef ACRE_CORE_OPT_H
#define ACRE_CORE_OPT_H

#include "core/buf.h"

enum acre_opt_kind {
    ACRE_OPT_FLAG,     /* bool */
    ACRE_OPT_STRING,   /* const char * */
    ACRE_OPT_COUNT,    /* uint64_t within [min, max] */
    ACRE_OPT_MIB,      /* uint64_t */
    ACRE_OPT_DURATION, /* uint64_t, ms, within [min, max] */
    ACRE_OPT_MILLI,    /* uint32_t within [min, max] */
    ACRE_OPT_CHOICE,   /* const char *, one of the comma-separated `choices` */
    ACRE_OPT_LIST,     /* struct acre_opt_list: may be given several times */
};

enum { ACRE_OPT_LIST_MAX = 64 };

struct acre_opt_list {
    const char *items[ACRE_OPT_LIST_MAX];
    uint32_t count;
};

struct acre_opt {
    const char *name; /* without dashes */
    char letter;      /* 0: none */
    enum acre_opt_kind kind;
    size_t offset;     /* in the target struct */
    const char *value; /* placeholder in help: "FILE" */
    const char *help;
    uint64_t min, max;
    const char *choices;
    bool required;
    /* STRING and LIST: judges a value before it is stored; NULL: any will do. */
    int (*check)(const char *field, const char *value, struct acre_error *err);
};

struct acre_command {
    const char *name;    /* "gpus" or "simulate packing" */
    const char *summary; /* one line */
    const char *usage;   /* "acre gpus [options]" */
    const char *details; /* paragraphs and examples, may be NULL */
    const struct acre_opt *options;
    size_t option_count;
    const struct acre_opt *shared; /* rows of many commands, whose targets begin alike; or NULL */
    size_t shared_count;
    uint32_t min_arguments, max_arguments; /* UINT32_MAX: as many as you like */
    bool options_first; /* options end at the first argument; a "--" there stays, as argument 0 */
    bool hidden;        /* for programs: not listed, not completed */
    const char *takes;  /* what its arguments are, for completion: "jobs"; NULL: nothing */
    int (*run)(int argument_count, char **arguments, void *options); /* returns the exit code */
    size_t options_size;
    const void *defaults; /* options_size bytes, NULL: zero */
};

/* Parse argv (after the command's name) into `target`. Positional arguments are moved to the
 * front of argv; `ret_count` says how many. ACRE_EINVALID with the text, or ACRE_ENOTFOUND
 * when --help was asked for (print it, exit 0). */
int acre_opt_parse(const struct acre_command *command, int argc, char **argv, void *target,
                   int *ret_count, struct acre_error *err);
/* The rows of a command, its own and then the shared ones; NULL past the last. */
const struct acre_opt *acre_command_row(const struct acre_command *command, size_t index);
void acre_opt_help(const struct acre_command *command, struct acre_buf *out);

/* Find the command by the longest match of argv's first words (NULL: none; `err` suggests the
 * nearest). `ret_words` is how many words named it. */
const struct acre_command *acre_command_find(const struct acre_command *const *commands,
                                             size_t count, int argc, char **argv, int *ret_words,
                                             struct acre_error *err);

#endif
