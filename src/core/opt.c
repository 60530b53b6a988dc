/* opt.c - parses command lines by table.
 *
 * One pass over argv. Options are looked up in the command's rows, and their values stored by kind
 * at the row's offset; the arguments move to the front. Nothing is guessed: there are no
 * abbreviations and no bundled letters, and a value that starts with "--" must be written
 * --name=VALUE, because usually the value was forgotten. A mistyped name gets the nearest one
 * within two edits as a suggestion. */
#include "core/opt.h"

#include "core/str.h"
#include "core/units.h"

#include <stdio.h>
#include <string.h>

enum {
    NAME_MAX_BYTES = 48,
    SHOWN_BYTES = 64,
    DURATION_BYTES = 40,
    LIST_BYTES = 300,
    EDITS_MAX = 2,
    ROWS_MAX = 64,
};

/* Insertions, deletions, changes and swaps of neighbours that lead from `a` to `b`; three rows
 * of the usual table are enough. Names too long count as far away. */
static size_t edit_distance(struct acre_str a, struct acre_str b) {
    size_t rows[3][NAME_MAX_BYTES + 1];
    if (a.length > NAME_MAX_BYTES || b.length > NAME_MAX_BYTES) {
        return SIZE_MAX;
    }
    for (size_t j = 0; j <= b.length; j++) {
        rows[0][j] = j;
    }
    for (size_t i = 1; i <= a.length; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i + 2) % 3], *two_above = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= b.length; j++) {
            size_t changed = above[j - 1] + (a.data[i - 1] != b.data[j - 1]);
            row[j] = ACRE_MIN(changed, ACRE_MIN(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a.data[i - 1] == b.data[j - 2] &&
                a.data[i - 2] == b.data[j - 1]) {
                row[j] = ACRE_MIN(row[j], two_above[j - 2] + 1);
            }
        }
    }
    return rows[a.length % 3][b.length];
}

/* Keep in *best the candidate nearest to `typed`, if near enough to be a slip of it. */
static void keep_nearest(struct acre_str typed, const char *candidate, size_t *best_distance,
                         const char **best) {
    size_t distance = edit_distance(typed, acre_str_from(candidate));
    if (distance <= EDITS_MAX && distance < typed.length && distance < *best_distance) {
        *best_distance = distance;
        *best = candidate;
    }
}

const struct acre_opt *acre_command_row(const struct acre_command *command, size_t index) {
    if (index < command->option_count) {
        return &command->options[index];
    }
    index -= command->option_count;
    return index < command->shared_count ? &command->shared[index] : NULL;
}

static int refuse_unknown(const struct acre_command *command, const char *argument,
                          struct acre_str name, struct acre_error *err) {
    const char *nearest = NULL;
    size_t distance = SIZE_MAX;
    const struct acre_opt *row;
    for (size_t i = 0; (row = acre_command_row(command, i)) != NULL; i++) {
        keep_nearest(name, row->name, &distance, &nearest);
    }
    keep_nearest(name, "help", &distance, &nearest);
    char shown[SHOWN_BYTES];
    acre_str_show(acre_str_from(argument), shown, sizeof(shown));
    if (nearest != NULL) {
        return acre_fail(err, ACRE_EINVALID, "unknown option '%s'; did you mean --%s?", shown,
                         nearest);
    }
    return acre_fail(err, ACRE_EINVALID, "unknown option '%s'; --help lists what '%s' accepts",
                     shown, command->name);
}

static int store_choice(const struct acre_opt *option, const char *field, const char *value,
                        const char **ret_value, struct acre_error *err) {
    struct acre_split split = acre_split_begin(acre_str_from(option->choices), ',');
    struct acre_str choice;
    struct acre_buf list;
    acre_buf_init(&list, LIST_BYTES);
    bool found = false;
    while (!found && acre_split_next(&split, &choice)) {
        choice = acre_str_trim(choice);
        found = acre_str_is(choice, value);
        acre_buf_printf(&list, "%s%.*s", list.length > 0 ? ", " : "", (int)choice.length,
                        choice.data);
    }
    int r = 0;
    if (found) {
        *ret_value = value;
    } else {
        char shown[SHOWN_BYTES];
        acre_str_show(acre_str_from(value), shown, sizeof(shown));
        r = acre_fail(err, ACRE_EINVALID, "%s: unknown value '%s'; accepted: %s%s", field, shown,
                      list.data, acre_buf_failed(&list) ? ", ..." : "");
    }
    acre_buf_finish(&list);
    return r;
}

static int store_item(const char *field, const char *value, struct acre_opt_list *list,
                      struct acre_error *err) {
    if (list->count == ACRE_OPT_LIST_MAX) {
        return acre_fail(err, ACRE_EINVALID, "%s: given more than %d times", field,
                         ACRE_OPT_LIST_MAX);
    }
    list->items[list->count++] = value;
    return 0;
}

static int store_duration(const struct acre_opt *option, const char *field, const char *value,
                          uint64_t *ret_ms, struct acre_error *err) {
    char shown[SHOWN_BYTES], low[DURATION_BYTES], high[DURATION_BYTES];
    uint64_t ms = 0;
    int r = acre_parse_duration(field, value, &ms, err);
    if (r == 0 && option->max > 0 && (ms < option->min || ms > option->max)) {
        return acre_fail(err, ACRE_EINVALID, "%s: '%s' is out of range; accepted: %s to %s", field,
                         acre_str_show(acre_str_from(value), shown, sizeof(shown)),
                         acre_format_duration(option->min, low, sizeof(low)),
                         acre_format_duration(option->max, high, sizeof(high)));
    }
    if (r == 0) {
        *ret_ms = ms;
    }
    return r;
}

/* Parse `value` by the row's kind and store it; flags come with NULL. */
static int store_value(const struct acre_opt *option, const char *value, void *target,
                       struct acre_error *err) {
    void *to = (char *)target + option->offset;
    char field[NAME_MAX_BYTES + 4];
    snprintf(field, sizeof(field), "--%s", option->name);
    bool ranged = option->max > 0; /* a row without a range takes what the kind can hold */
    int r = option->check != NULL ? option->check(field, value, err) : 0;
    if (r < 0) {
        return r;
    }
    switch (option->kind) {
    case ACRE_OPT_FLAG:
        *(bool *)to = true;
        return 0;
    case ACRE_OPT_STRING:
        *(const char **)to = value;
        return 0;
    case ACRE_OPT_COUNT:
        return acre_parse_count(field, value, option->min, ranged ? option->max : UINT64_MAX, to,
                                err);
    case ACRE_OPT_MIB:
        return acre_parse_mib(field, value, to, err);
    case ACRE_OPT_DURATION:
        return store_duration(option, field, value, to, err);
    case ACRE_OPT_MILLI:
        return acre_parse_milli(field, value, ranged ? (uint32_t)option->min : 1,
                                ranged ? (uint32_t)option->max : 1000, to, err);
    case ACRE_OPT_CHOICE:
        return store_choice(option, field, value, to, err);
    case ACRE_OPT_LIST:
        return store_item(field, value, to, err);
    }
    return acre_fail(err, ACRE_EINTERNAL, "%s: unknown kind %d", field, (int)option->kind);
}

struct parse {
    const struct acre_command *command;
    int argc;
    char **argv;
    int at;
    void *target;
    uint64_t seen; /* a bit per row */
};

/* Find the row of an argument like "--name", "--name=VALUE" or "-n"; `ret_value` is the part
 * after '=' or NULL. */
static const struct acre_opt *find_option(const struct acre_command *command, const char *argument,
                                          struct acre_str *ret_name, const char **ret_value,
                                          size_t *ret_index) {
    bool is_long = argument[1] == '-';
    const char *name = argument + (is_long ? 2 : 1);
    const char *equals = is_long ? strchr(name, '=') : NULL;
    *ret_value = equals != NULL ? equals + 1 : NULL;
    *ret_name = (struct acre_str){name, equals != NULL ? (size_t)(equals - name) : strlen(name)};
    const struct acre_opt *option;
    for (size_t i = 0; (option = acre_command_row(command, i)) != NULL; i++) {
        if (is_long ? acre_str_is(*ret_name, option->name)
                    : (name[0] == option->letter && name[0] != '\0' && name[1] == '\0')) {
            *ret_index = i;
            return option;
        }
    }
    return NULL;
}

static int take_option(struct parse *parse, const char *argument, struct acre_error *err) {
    struct acre_str name;
    const char *value;
    size_t index = 0;
    const struct acre_opt *option = find_option(parse->command, argument, &name, &value, &index);
    if (option == NULL) {
        if (strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0) {
            return acre_fail(err, ACRE_ENOTFOUND, "help requested");
        }
        return refuse_unknown(parse->command, argument, name, err);
    }
    uint64_t bit = UINT64_C(1) << index;
    if ((parse->seen & bit) && option->kind != ACRE_OPT_LIST) {
        return acre_fail(err, ACRE_EINVALID, "--%s: given twice", option->name);
    }
    parse->seen |= bit;
    if (option->kind == ACRE_OPT_FLAG && value != NULL) {
        char shown[SHOWN_BYTES];
        acre_str_show(acre_str_from(value), shown, sizeof(shown));
        return acre_fail(err, ACRE_EINVALID, "--%s takes no value, but got '%s'", option->name,
                         shown);
    }
    if (option->kind != ACRE_OPT_FLAG && value == NULL) {
        if (parse->at == parse->argc || strncmp(parse->argv[parse->at], "--", 2) == 0) {
            return acre_fail(err, ACRE_EINVALID, "--%s needs a value: --%s %s", option->name,
                             option->name, option->value != NULL ? option->value : "VALUE");
        }
        value = parse->argv[parse->at++];
    }
    return store_value(option, value, parse->target, err);
}

static int check_complete(const struct parse *parse, uint32_t arguments, struct acre_error *err) {
    const struct acre_command *command = parse->command;
    const struct acre_opt *option;
    for (size_t i = 0; (option = acre_command_row(command, i)) != NULL; i++) {
        if (option->required && !(parse->seen & UINT64_C(1) << i)) {
            return acre_fail(err, ACRE_EINVALID, "--%s is missing; usage: %s", option->name,
                             command->usage);
        }
    }
    if (arguments < command->min_arguments && command->max_arguments == UINT32_MAX) {
        return acre_fail(err, ACRE_EINVALID, "got %u argument%s; accepted: %u or more; usage: %s",
                         arguments, arguments == 1 ? "" : "s", command->min_arguments,
                         command->usage);
    }
    if (arguments < command->min_arguments || arguments > command->max_arguments) {
        char shown[SHOWN_BYTES] = "";
        if (arguments > command->max_arguments) {
            char value[SHOWN_BYTES / 2];
            snprintf(shown, sizeof(shown), " ('%s' is one too many)",
                     acre_str_show(acre_str_from(parse->argv[command->max_arguments]), value,
                                   sizeof(value)));
        }
        char accepted[SHOWN_BYTES];
        bool is_one = command->min_arguments == command->max_arguments;
        snprintf(accepted, sizeof(accepted), is_one ? "%u" : "%u to %u", command->min_arguments,
                 command->max_arguments);
        return acre_fail(err, ACRE_EINVALID, "got %u argument%s%s; accepted: %s; usage: %s",
                         arguments, arguments == 1 ? "" : "s", shown,
                         command->max_arguments == 0 ? "none" : accepted, command->usage);
    }
    return 0;
}

int acre_opt_parse(const struct acre_command *command, int argc, char **argv, void *target,
                   int *ret_count, struct acre_error *err) {
    /* a bit each in `seen` */
    ACRE_ASSERT(command->option_count + command->shared_count <= ROWS_MAX);
    struct parse parse = {.command = command, .argc = argc, .argv = argv, .target = target};
    if (command->options_size > 0 && command->defaults != NULL) {
        memcpy(target, command->defaults, command->options_size);
    } else if (command->options_size > 0) {
        memset(target, 0, command->options_size);
    }
    int count = 0;
    bool options_over = false;
    while (parse.at < argc) {
        char *argument = argv[parse.at++];
        if (options_over || argument[0] != '-' || argument[1] == '\0') {
            argv[count++] = argument; /* count < at: nothing unread is overwritten */
            options_over = options_over || command->options_first;
        } else if (strcmp(argument, "--") == 0) {
            options_over = true;
            if (command->options_first) {
                argv[count++] = argument;
            }
        } else {
            int r = take_option(&parse, argument, err);
            if (r < 0) {
                return r;
            }
        }
    }
    int r = check_complete(&parse, (uint32_t)count, err);
    if (r == 0) {
        *ret_count = count;
    }
    return r;
}

/* How many words of argv name this command; 0 when they do not. */
static int match_words(const char *name, int argc, char **argv) {
    struct acre_split split = acre_split_begin(acre_str_from(name), ' ');
    struct acre_str word;
    int words = 0;
    while (acre_split_next(&split, &word)) {
        if (words == argc || !acre_str_is(word, argv[words])) {
            return 0;
        }
        words++;
    }
    return words;
}

/* The first `words` of argv with blanks between them, cut at `size`. */
static struct acre_str join_words(int words, char **argv, char *out, size_t size) {
    size_t used = 0;
    out[0] = '\0';
    for (int i = 0; i < words && used < size; i++) {
        int length = snprintf(out + used, size - used, "%s%s", i > 0 ? " " : "", argv[i]);
        used += (size_t)ACRE_MAX(length, 0);
    }
    return acre_str_from(out);
}

static void refuse_command(const struct acre_command *const *commands, size_t count, int argc,
                           char **argv, struct acre_error *err) {
    struct acre_buf family; /* commands that begin with the word that was typed */
    acre_buf_init(&family, LIST_BYTES);
    const char *nearest = NULL;
    size_t distance = SIZE_MAX;
    for (size_t i = 0; i < count; i++) {
        const char *name = commands[i]->name;
        if (commands[i]->hidden) {
            continue;
        }
        int words = 1;
        for (const char *p = name; *p != '\0'; p++) {
            words += *p == ' ';
        }
        char typed[NAME_MAX_BYTES];
        keep_nearest(join_words(ACRE_MIN(words, argc), argv, typed, sizeof(typed)), name, &distance,
                     &nearest);
        size_t first = strcspn(name, " ");
        if (name[first] == ' ' && strlen(argv[0]) == first && strncmp(name, argv[0], first) == 0) {
            acre_buf_printf(&family, "%s%s", family.length > 0 ? ", " : "", name);
        }
    }
    char joined[SHOWN_BYTES], shown[SHOWN_BYTES];
    bool in_family = family.length > 0;
    join_words(in_family ? ACRE_MIN(argc, 2) : 1, argv, joined, sizeof(joined));
    acre_str_show(acre_str_from(joined), shown, sizeof(shown));
    if (nearest != NULL) {
        acre_fail(err, ACRE_EINVALID, "unknown command '%s'; did you mean '%s'?", shown, nearest);
    } else if (in_family) {
        acre_fail(err, ACRE_EINVALID, "unknown command '%s'; accepted: %s", shown, family.data);
    } else {
        acre_fail(err, ACRE_EINVALID, "unknown command '%s'; --help lists the commands", shown);
    }
    acre_buf_finish(&family);
}

const struct acre_command *acre_command_find(const struct acre_command *const *commands,
                                             size_t count, int argc, char **argv, int *ret_words,
                                             struct acre_error *err) {
    if (argc == 0) {
        acre_fail(err, ACRE_EINVALID, "no command given; --help lists the commands");
        return NULL;
    }
    const struct acre_command *found = NULL;
    int longest = 0;
    for (size_t i = 0; i < count; i++) {
        int words = match_words(commands[i]->name, argc, argv);
        if (words > longest) {
            longest = words;
            found = commands[i];
        }
    }
    if (found == NULL) {
        refuse_command(commands, count, argc, argv, err);
        return NULL;
    }
    *ret_words = longest;
    return found;
}
