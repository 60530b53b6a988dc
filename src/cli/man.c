/* man.c - prints manual pages from the tables behind parsing and --help.
 *
 * One page per command and one for the program. `details` holds paragraphs, indented lines that
 * are printed as they are, and examples after the word "Examples:", which get their own section.
 * Pages have no date: the same program prints the same page. */
#include "cli/cli.h"
#include "core/file.h"
#include "core/str.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { PAGE_MAX_BYTES = 1 << 20 };

struct man_options {
    const char *directory;
};

/* Text for roff: no line may look like a request, a '-' is a minus, a '\' is itself. */
static void put_text(struct acre_buf *out, struct acre_str text) {
    if (text.length > 0 && (text.data[0] == '.' || text.data[0] == '\'')) {
        acre_buf_puts(out, "\\&");
    }
    for (size_t i = 0; i < text.length; i++) {
        char c = text.data[i];
        if (c == '\\') {
            acre_buf_puts(out, "\\e");
        } else if (c == '-') {
            acre_buf_puts(out, "\\-");
        } else {
            acre_buf_putc(out, c);
        }
    }
}

static void put_line(struct acre_buf *out, const char *text) {
    put_text(out, acre_str_from(text));
    acre_buf_putc(out, '\n');
}

/* "acre-reserve-list" */
static void put_name(struct acre_buf *out, const char *name, bool escaped) {
    acre_buf_puts(out, escaped ? "acre\\-" : "acre-");
    for (const char *p = name; *p != '\0'; p++) {
        acre_buf_puts(out, *p != ' ' && *p != '-' ? (char[]){*p, '\0'} : escaped ? "\\-" : "-");
    }
}

static void put_head(struct acre_buf *out, const char *title) {
    acre_buf_puts(out, ".\\\" printed by 'acre man'\n.TH ");
    for (const char *p = title; *p != '\0'; p++) {
        acre_buf_putc(out, *p >= 'a' && *p <= 'z' ? (char)(*p - 32) : *p == ' ' ? '-' : *p);
    }
    acre_buf_puts(out, " 1 \"\" \"acre " ACRE_VERSION "\" \"Acre\"\n");
}

static void put_option(struct acre_buf *out, const struct acre_opt *row) {
    acre_buf_puts(out, ".TP\n");
    if (row->letter != 0) {
        acre_buf_printf(out, "\\fB\\-%c\\fR, ", row->letter);
    }
    acre_buf_puts(out, "\\fB\\-\\-");
    put_text(out, acre_str_from(row->name));
    acre_buf_puts(out, "\\fR");
    if (row->kind != ACRE_OPT_FLAG) {
        acre_buf_puts(out, " \\fI");
        put_text(out, acre_str_from(row->value != NULL ? row->value : "VALUE"));
        acre_buf_puts(out, "\\fR");
    }
    acre_buf_putc(out, '\n');
    put_text(out, acre_str_from(row->help != NULL ? row->help : ""));
    if (row->kind == ACRE_OPT_CHOICE) {
        acre_buf_puts(out, ": ");
        put_text(out, acre_str_from(row->choices));
    }
    acre_buf_puts(out, row->required ? " (required)\n" : "\n");
}

/* Where the examples begin; the end of the text when there are none. */
static const char *find_examples(const char *details) {
    const char *plural = strstr(details, "Examples:\n"), *one = strstr(details, "Example:\n");
    return plural != NULL ? plural : one != NULL ? one : details + strlen(details);
}

/* Paragraphs; what is indented is set as it stands. */
static void put_paragraphs(struct acre_buf *out, struct acre_str text) {
    struct acre_split lines = acre_split_begin(text, '\n');
    struct acre_str line;
    bool exact = false, pause = false;
    while (acre_split_next(&lines, &line)) {
        bool indented = line.length > 0 && line.data[0] == ' ';
        if (line.length == 0) {
            pause = true;
            continue;
        }
        if (indented != exact) {
            acre_buf_puts(out, indented ? ".RS\n.nf\n" : ".fi\n.RE\n");
            exact = indented;
        }
        acre_buf_puts(out, pause ? (exact ? "\n" : ".PP\n") : "");
        pause = false;
        put_text(out, acre_str_trim(line));
        acre_buf_putc(out, '\n');
    }
    acre_buf_puts(out, exact ? ".fi\n.RE\n" : "");
}

static void put_command(struct acre_buf *out, const struct acre_command *command) {
    char title[64];
    snprintf(title, sizeof(title), "acre-%s", command->name);
    put_head(out, title);
    acre_buf_puts(out, ".SH NAME\n");
    put_name(out, command->name, true);
    acre_buf_puts(out, " \\- ");
    put_line(out, command->summary);
    acre_buf_puts(out, ".SH SYNOPSIS\n.B ");
    put_line(out, command->usage);
    const char *details = command->details != NULL ? command->details : "";
    const char *examples = find_examples(details);
    if (examples != details) {
        acre_buf_puts(out, ".SH DESCRIPTION\n");
        put_paragraphs(out, (struct acre_str){details, (size_t)(examples - details)});
    }
    acre_buf_puts(out, ".SH OPTIONS\n");
    const struct acre_opt *row;
    for (size_t i = 0; (row = acre_command_row(command, i)) != NULL; i++) {
        put_option(out, row);
    }
    put_option(
        out, &(struct acre_opt){.name = "help", .letter = 'h', .help = "print a short help text"});
    if (examples[0] != '\0') {
        acre_buf_puts(out, ".SH EXAMPLES\n");
        put_paragraphs(out, acre_str_from(strchr(examples, '\n') + 1));
    }
    acre_buf_puts(out, ".SH SEE ALSO\n.BR acre (1)\n");
}

static void put_exits(struct acre_buf *out) {
    static const struct {
        int exit;
        const char *message;
    } exits[] = {
#define X(name, code, http, exit, message) {exit, message},
        ACRE_ERRORS(X)
#undef X
    };
    acre_buf_puts(out, ".SH EXIT STATUS\n.TP\n0\nsuccess\n");
    for (size_t i = 0; i < ACRE_COUNT(exits); i++) {
        if (i > 0 && exits[i].exit == exits[i - 1].exit) {
            continue;
        }
        acre_buf_printf(out, ".TP\n%d\n", exits[i].exit);
        put_line(out, exits[i].message);
    }
}

static void put_program(struct acre_buf *out) {
    static const struct {
        const char *name, *text;
    } surroundings[] = {
        {"ACRE_SERVER", "the daemon's socket or URL, as with --server"},
        {"ACRE_TOKEN", "your token, for HTTP"},
        {"ACRE_INSECURE", "1 allows unencrypted http to another machine, as with --insecure"},
        {"NO_COLOR", "if set, output has no colors"},
    };
    size_t count;
    const struct acre_command *const *commands = cli_commands(&count);
    put_head(out, "acre");
    acre_buf_puts(out, ".SH NAME\nacre \\- share a GPU cluster, by the job and by the fraction\n"
                       ".SH SYNOPSIS\n.B acre\n.I COMMAND\n[options]\n.SH COMMANDS\n");
    for (size_t i = 0; i < count; i++) {
        if (!commands[i]->hidden) {
            acre_buf_puts(out, ".TP\n.B ");
            put_line(out, commands[i]->name);
            put_line(out, commands[i]->summary);
        }
    }
    put_exits(out);
    acre_buf_puts(out, ".SH ENVIRONMENT\n");
    for (size_t i = 0; i < ACRE_COUNT(surroundings); i++) {
        acre_buf_printf(out, ".TP\n.B %s\n", surroundings[i].name);
        put_line(out, surroundings[i].text);
    }
    acre_buf_puts(out, ".SH FILES\n.TP\n~/.config/acre/tokens\n"
                       "one line per server: its URL and your token; mode 600\n"
                       ".TP\n/run/acre/acre.sock, ~/.local/state/acre/acre.sock\n"
                       "the daemon's socket: root's, and a user's own\n");
}

static int write_page(const char *directory, const struct acre_command *command,
                      struct acre_error *err) {
    struct acre_buf page, path;
    acre_buf_init(&page, PAGE_MAX_BYTES);
    acre_buf_init(&path, 4096);
    acre_buf_printf(&path, "%s/", directory);
    if (command != NULL) {
        put_command(&page, command);
        put_name(&path, command->name, false);
    } else {
        put_program(&page);
        acre_buf_puts(&path, "acre");
    }
    acre_buf_puts(&path, ".1");
    int r = acre_file_write(path.data, page.data, page.length, err);
    acre_buf_finish(&page);
    acre_buf_finish(&path);
    return r;
}

static int write_all(const char *directory) {
    struct acre_error err = {0};
    size_t count;
    const struct acre_command *const *commands = cli_commands(&count);
    int r = 0;
    if (mkdir(directory, 0777) < 0 && errno != EEXIST) {
        r = acre_fail_errno(&err, errno, "%s", directory);
    }
    for (size_t i = 0; i < count && r == 0; i++) {
        r = commands[i]->hidden ? 0 : write_page(directory, commands[i], &err);
    }
    r = r == 0 ? write_page(directory, NULL, &err) : r;
    return r < 0 ? cli_fail(&err) : 0;
}

static int run(int argument_count, char **arguments, void *target) {
    const struct man_options *options = target;
    struct acre_error err = {0};
    int words = 0;
    const struct acre_command *command = NULL;
    if (options->directory != NULL) {
        return write_all(options->directory);
    }
    if (argument_count > 0) {
        command = cli_find(argument_count, arguments, &words, &err);
        if (command == NULL) {
            return cli_fail(&err);
        }
    }
    struct acre_buf out;
    acre_buf_init(&out, PAGE_MAX_BYTES);
    if (command != NULL) {
        put_command(&out, command);
    } else {
        put_program(&out);
    }
    int r = cli_write(&out);
    acre_buf_finish(&out);
    return r;
}

static const struct acre_opt rows[] = {
    {.name = "directory",
     .letter = 'd',
     .kind = ACRE_OPT_STRING,
     .offset = offsetof(struct man_options, directory),
     .value = "DIR",
     .help = "write all pages to DIR, as 'make install' does"},
};

const struct acre_command command_man = {
    .name = "man",
    .summary = "print a manual page",
    .usage = "acre man [COMMAND]",
    .details = "Examples:\n"
               "  acre man submit | man -l -\n"
               "  acre man >acre.1",
    .options = rows,
    .option_count = ACRE_COUNT(rows),
    .max_arguments = 2,
    .run = run,
    .options_size = sizeof(struct man_options),
};
