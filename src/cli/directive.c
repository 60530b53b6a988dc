/* directive.c - parses each directive line as a command line, with the same option table.
 *
 * Two traps of other systems are closed: a directive after the first command, and "# ACRE" with a
 * space, are plain comments to them; here both are errors, because a job that silently ignores
 * what its script asks for costs a day. */
#include "cli/directive.h"

#include <stdlib.h>
#include <string.h>

enum { WORDS_MAX = 64, SHOWN_BYTES = 64 };

static bool is_blank(char c) {
    return c == ' ' || c == '\t';
}

/* Cut the next word off `*rest`, quotes removed. 1: a word; 0: none is left; negative: a quote is
 * open. A word that begins with '#' ends the line. */
static int next_word(struct acre_str *rest, struct acre_arena *arena, char **ret_word) {
    *rest = acre_str_trim(*rest);
    if (rest->length == 0 || rest->data[0] == '#') {
        return 0;
    }
    size_t end = 0, length = 0;
    char quote = '\0';
    for (; end < rest->length && (quote != '\0' || !is_blank(rest->data[end])); end++) {
        char c = rest->data[end];
        bool opens = quote == '\0' && (c == '"' || c == '\'');
        quote = c == quote ? '\0' : opens ? c : quote;
    }
    if (quote != '\0') {
        return ACRE_EINVALID;
    }
    char *word = acre_arena_alloc(arena, end + 1);
    for (size_t i = 0; i < end; i++) {
        char c = rest->data[i];
        bool opens = quote == '\0' && (c == '"' || c == '\'');
        if (c == quote || opens) {
            quote = opens ? c : '\0';
        } else {
            word[length++] = c;
        }
    }
    rest->data += end;
    rest->length -= end;
    *ret_word = word;
    return 1;
}

static int split_words(struct acre_str rest, struct acre_arena *arena, char **words, int *ret_count,
                       struct acre_error *err) {
    int count = 0, r;
    if (memchr(rest.data, '\0', rest.length) != NULL) {
        return acre_fail(err, ACRE_EINVALID, "the directive contains a NUL byte");
    }
    char *word;
    while ((r = next_word(&rest, arena, &word)) > 0) {
        if (count == WORDS_MAX) {
            return acre_fail(err, ACRE_EINVALID, "more than %d words in one directive", WORDS_MAX);
        }
        words[count++] = word;
    }
    if (r < 0) {
        return acre_fail(err, ACRE_EINVALID, "unclosed quote");
    }
    *ret_count = count;
    return 0;
}

/* Where a row keeps its value in a target, and whether there is one. */
static bool is_given(const struct acre_opt *row, const void *target) {
    const void *at = (const char *)target + row->offset;
    switch (row->kind) {
    case ACRE_OPT_FLAG:
        return *(const bool *)at;
    case ACRE_OPT_STRING:
    case ACRE_OPT_CHOICE:
        return *(const char *const *)at != NULL;
    case ACRE_OPT_LIST:
        return ((const struct acre_opt_list *)at)->count > 0;
    case ACRE_OPT_COUNT:
    case ACRE_OPT_MIB:
    case ACRE_OPT_DURATION:
    case ACRE_OPT_MILLI:
        break;
    }
    ACRE_ASSERT(row->kind == ACRE_OPT_STRING); /* others cannot tell whether they were given */
    return false;
}

static size_t size_of(const struct acre_opt *row) {
    return row->kind == ACRE_OPT_FLAG   ? sizeof(bool)
           : row->kind == ACRE_OPT_LIST ? sizeof(struct acre_opt_list)
                                        : sizeof(const char *);
}

static void copy_value(const struct acre_opt *row, void *target, const void *from) {
    memcpy((char *)target + row->offset, (const char *)from + row->offset, size_of(row));
}

void directive_under(const struct acre_command *command, void *target, const void *from) {
    for (size_t i = 0; i < command->option_count; i++) {
        const struct acre_opt *row = &command->options[i];
        if (!is_given(row, target) && is_given(row, from)) {
            copy_value(row, target, from);
        }
    }
}

/* What one line gave joins what the lines before it gave; lists grow, the rest comes once. */
static int join(const struct acre_command *command, void *target, const void *line,
                struct acre_error *err) {
    for (size_t i = 0; i < command->option_count; i++) {
        const struct acre_opt *row = &command->options[i];
        if (!is_given(row, line)) {
            continue;
        }
        if (row->kind != ACRE_OPT_LIST && is_given(row, target)) {
            return acre_fail(err, ACRE_EINVALID, "--%s: given twice", row->name);
        }
        if (row->kind != ACRE_OPT_LIST) {
            copy_value(row, target, line);
            continue;
        }
        struct acre_opt_list *all = (void *)((char *)target + row->offset);
        const struct acre_opt_list *more = (const void *)((const char *)line + row->offset);
        if (all->count + more->count > ACRE_OPT_LIST_MAX) {
            return acre_fail(err, ACRE_EINVALID, "--%s: given more than %d times", row->name,
                             ACRE_OPT_LIST_MAX);
        }
        memcpy(all->items + all->count, more->items, more->count * sizeof(more->items[0]));
        all->count += more->count;
    }
    return 0;
}

/* `line` is room for the options of one line. */
static int parse_line(struct acre_str rest, const struct acre_command *command, void *target,
                      void *line, struct acre_arena *arena, struct acre_error *err) {
    char *words[WORDS_MAX];
    int count = 0, arguments = 0;
    struct acre_command bare = *command; /* the same rows, without arguments and shared ones */
    bare.usage = "#ACRE --option value ...";
    bare.shared_count = 0;
    bare.min_arguments = bare.max_arguments = 0;
    bare.options_first = false;
    bare.defaults = NULL;
    int r = split_words(rest, arena, words, &count, err);
    if (r == 0) {
        r = acre_opt_parse(&bare, count, words, line, &arguments, err);
    }
    if (r == ACRE_ENOTFOUND) {
        r = acre_fail(err, ACRE_EINVALID, "--help works only on the command line");
    }
    return r < 0 ? r : join(command, target, line, err);
}

/* What a line of a script is to us. */
enum line_kind { LINE_CODE, LINE_COMMENT, LINE_DIRECTIVE, LINE_ALMOST };

static enum line_kind classify(struct acre_str line, struct acre_str *ret_rest) {
    static const struct acre_str mark = {"ACRE", 4};
    if (acre_str_trim(line).length == 0) {
        return LINE_COMMENT;
    }
    if (line.data[0] != '#') {
        return LINE_CODE;
    }
    struct acre_str rest = {line.data + 1, line.length - 1};
    struct acre_str trimmed = acre_str_trim(rest);
    bool marked = trimmed.length >= mark.length &&
                  memcmp(trimmed.data, mark.data, mark.length) == 0 &&
                  (trimmed.length == mark.length || is_blank(trimmed.data[mark.length]));
    if (!marked) {
        return LINE_COMMENT;
    }
    trimmed.data += mark.length;
    trimmed.length -= mark.length;
    *ret_rest = acre_str_trim(trimmed);
    if (rest.data[0] == 'A') {
        return LINE_DIRECTIVE;
    }
    bool option = ret_rest->length > 1 && ret_rest->data[0] == '-';
    return option ? LINE_ALMOST : LINE_COMMENT; /* prose about Acre is no directive */
}

static int read_lines(const char *name, struct acre_str text, const struct acre_command *command,
                      void *target, void *room, struct acre_arena *arena, struct acre_error *err) {
    struct acre_split lines = acre_split_begin(text, '\n');
    struct acre_str line, rest;
    bool in_code = false;
    for (uint32_t number = 1; acre_split_next(&lines, &line); number++) {
        if (line.length > 0 && line.data[line.length - 1] == '\r') {
            line.length--;
        }
        enum line_kind kind = classify(line, &rest);
        int r = 0;
        if (kind == LINE_CODE) {
            in_code = true;
        } else if (kind == LINE_ALMOST && !in_code) {
            r = acre_fail(err, ACRE_EINVALID, "write #ACRE, without a space");
        } else if (kind == LINE_DIRECTIVE && in_code) {
            r = acre_fail(err, ACRE_EINVALID,
                          "this directive comes after the first command; move it to the top");
        } else if (kind == LINE_DIRECTIVE) {
            r = parse_line(rest, command, target, room, arena, err);
        }
        if (r < 0) {
            char shown[SHOWN_BYTES];
            return acre_fail_in(err, r, "%s:%u",
                                acre_str_show(acre_str_from(name), shown, sizeof(shown)), number);
        }
    }
    return 0;
}

int directive_read(const char *name, struct acre_str text, const struct acre_command *command,
                   void *target, struct acre_arena *arena, struct acre_error *err) {
    memset(target, 0, command->options_size);
    void *room = acre_calloc(1, command->options_size);
    int r = read_lines(name, text, command, target, room, arena, err);
    free(room);
    return r;
}
