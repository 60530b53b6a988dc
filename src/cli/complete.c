/* complete.c - completes the last word: a command, an option, an option's value or an argument.
 *
 * The words before it are read as the parser reads them (opt.c): an option's value is not an
 * argument, and everything after the start of a job's command belongs to that command. */
#include "cli/complete.h"

#include "core/str.h"

#include <string.h>

static void put(struct acre_buf *out, struct acre_str word, const char *before,
                struct acre_str name, const char *help) {
    char whole[256];
    if (!acre_str_copy(whole, sizeof(whole), name)) {
        return;
    }
    struct acre_buf candidate;
    acre_buf_init(&candidate, sizeof(whole) * 2);
    acre_buf_printf(&candidate, "%s%s", before, whole);
    if (candidate.length >= word.length && memcmp(candidate.data, word.data, word.length) == 0) {
        acre_buf_printf(out, "%s\t%s\n", candidate.data, help != NULL ? help : "");
    }
    acre_buf_finish(&candidate);
}

/* The next word of every command that goes on from the words before; families once. */
static void put_commands(const struct acre_command *const *commands, size_t count, int word_count,
                         char **words, struct acre_buf *out) {
    char last[64] = "";
    struct acre_str partial = acre_str_from(words[word_count - 1]);
    for (size_t i = 0; i < count; i++) {
        struct acre_split split = acre_split_begin(acre_str_from(commands[i]->name), ' ');
        struct acre_str word = {0};
        bool fits = !commands[i]->hidden;
        for (int w = 0; w < word_count - 1 && fits; w++) {
            fits = acre_split_next(&split, &word) && acre_str_is(word, words[w]);
        }
        if (!fits || !acre_split_next(&split, &word) || acre_str_is(word, last)) {
            continue;
        }
        acre_str_copy(last, sizeof(last), word);
        put(out, partial, "", word, split.done ? commands[i]->summary : "");
    }
}

static void put_choices(struct acre_str word, const char *before, const char *choices,
                        struct acre_buf *out) {
    struct acre_split split = acre_split_begin(acre_str_from(choices), ',');
    struct acre_str choice;
    while (acre_split_next(&split, &choice)) {
        put(out, word, before, acre_str_trim(choice), "");
    }
}

static void put_value(const struct acre_opt *row, struct acre_str word, const char *before,
                      struct acre_buf *out) {
    const char *value = row->value != NULL ? row->value : "";
    if (row->kind == ACRE_OPT_CHOICE) {
        put_choices(word, before, row->choices, out);
    } else if (strstr(value, "FILE") != NULL || strstr(value, "DIR") != NULL ||
               strstr(value, "PATH") != NULL) {
        acre_buf_puts(out, ":files\n");
    }
}

static const struct acre_opt *find_row(const struct acre_command *command, const char *word) {
    const struct acre_opt *row;
    bool is_long = strncmp(word, "--", 2) == 0;
    struct acre_str name = {word + 2, is_long ? strcspn(word + 2, "=") : 0};
    for (size_t i = 0; (row = acre_command_row(command, i)) != NULL; i++) {
        if (is_long ? acre_str_is(name, row->name)
                    : word[0] == '-' && word[1] == row->letter && row->letter != 0) {
            return row;
        }
    }
    return NULL;
}

static bool was_given(const struct acre_opt *row, const struct acre_command *command, int count,
                      char **words) {
    for (int i = 0; i < count && row->kind != ACRE_OPT_LIST; i++) {
        if (words[i][0] == '-' && find_row(command, words[i]) == row) {
            return true;
        }
    }
    return false;
}

static void put_options(const struct acre_command *command, int count, char **words,
                        struct acre_buf *out) {
    const struct acre_opt *row;
    struct acre_str partial = acre_str_from(words[count]);
    for (size_t i = 0; (row = acre_command_row(command, i)) != NULL; i++) {
        if (!was_given(row, command, count, words)) {
            put(out, partial, "--", acre_str_from(row->name), row->help);
        }
    }
    put(out, partial, "--", ACRE_STR("help"), "print this help");
}

/* How the words of a command before the last one are to be read. */
struct prior_words {
    const struct acre_opt *wants_value; /* the last word is this option's value */
    int arguments;                      /* before the last word */
    bool options_over;
};

static struct prior_words read_words(const struct acre_command *command, int count, char **words) {
    struct prior_words prior = {0};
    for (int i = 0; i < count; i++) {
        const struct acre_opt *row = words[i][0] == '-' ? find_row(command, words[i]) : NULL;
        if (prior.wants_value != NULL) {
            prior.wants_value = NULL;
        } else if (prior.options_over || words[i][0] != '-') {
            prior.arguments++;
            prior.options_over = prior.options_over || command->options_first;
        } else if (strcmp(words[i], "--") == 0) {
            prior.options_over = true;
        } else if (row != NULL && row->kind != ACRE_OPT_FLAG && strchr(words[i], '=') == NULL) {
            prior.wants_value = row;
        }
    }
    return prior;
}

static void put_arguments(const struct acre_command *command, const struct prior_words *prior,
                          struct acre_str partial, complete_live *live, void *context,
                          struct acre_buf *out) {
    const char *takes = command->takes != NULL ? command->takes : "";
    bool full = (uint32_t)prior->arguments >= command->max_arguments;
    if (strcmp(takes, "files") == 0) {
        acre_buf_puts(out, ":files\n");
    } else if (strcmp(takes, "shells") == 0 && !full) {
        put_choices(partial, "", "bash,zsh,fish", out);
    } else if (strcmp(takes, "cache") == 0 && !full) {
        put_choices(partial, "", "list,verify,prune,clear", out);
    } else if (takes[0] != '\0' && !full && live != NULL) {
        struct acre_buf names;
        acre_buf_init(&names, 1 << 20);
        live(context, takes, &names);
        struct acre_split lines =
            acre_split_begin((struct acre_str){names.data, names.length}, '\n');
        struct acre_str line;
        while (acre_split_next(&lines, &line)) {
            if (line.length > 0 && line.length >= partial.length &&
                memcmp(line.data, partial.data, partial.length) == 0) {
                acre_buf_append(out, line.data, line.length);
                acre_buf_putc(out, '\n');
            }
        }
        acre_buf_finish(&names);
    }
}

void complete_words(const struct acre_command *const *commands, size_t count, int word_count,
                    char **words, complete_live *live, void *context, struct acre_buf *out) {
    ACRE_ASSERT(word_count > 0);
    int named = 0;
    const char *partial = words[word_count - 1];
    const struct acre_command *command =
        word_count > 1 ? acre_command_find(commands, count, word_count - 1, words, &named, NULL)
                       : NULL;
    if (command == NULL || partial[0] != '-') {
        put_commands(commands, count, word_count, words, out); /* "reserve" goes on: "list" */
    }
    if (command == NULL) {
        return;
    }
    int rest = word_count - 1 - named;
    struct prior_words prior = read_words(command, rest, words + named);
    const struct acre_opt *row = NULL;
    const char *equals = strncmp(partial, "--", 2) == 0 ? strchr(partial, '=') : NULL;
    if (prior.wants_value != NULL) {
        put_value(prior.wants_value, acre_str_from(partial), "", out);
    } else if (!prior.options_over && equals != NULL &&
               (row = find_row(command, partial)) != NULL) {
        char before[64];
        if (acre_str_copy(before, sizeof(before),
                          (struct acre_str){partial, (size_t)(equals + 1 - partial)})) {
            put_value(row, acre_str_from(partial), before, out);
        }
    } else if (!prior.options_over && partial[0] == '-') {
        put_options(command, rest, words + named, out);
    } else {
        put_arguments(command, &prior, acre_str_from(partial), live, context, out);
    }
}
