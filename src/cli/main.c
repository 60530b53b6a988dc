/* main.c - finds the command in the table and runs it.
 *
 * A command is a row: name, options, function. `help` prints the rows. Exit codes come from the
 * error table (error.h). */
#include "cli/cli.h"

#include "cli/screen.h"
#include "core/file.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HELP_MAX_BYTES = 1 << 20 };

static int run_help(int argument_count, char **arguments, void *options);
static int run_version(int argument_count, char **arguments, void *options);

static const struct acre_command command_help = {
    .name = "help",
    .summary = "list the commands, or explain one",
    .usage = "acre help [COMMAND]",
    .max_arguments = 2, /* "simulate packing" is two words */
    .run = run_help,
};

static const struct acre_command command_version = {
    .name = "version",
    .summary = "print the version",
    .usage = "acre version",
    .run = run_version,
};

/* clang-format off */
static const struct acre_command *const commands[] = {
    &command_submit, &command_run, &command_queue, &command_show,
    &command_why, &command_logs, &command_cancel, &command_hold,
    &command_release, &command_priority,

    &command_nodes, &command_balance, &command_gpus, &command_drain,
    &command_undrain, &command_reserve, &command_reserve_list,
    &command_reserve_cancel,

    &command_policy_show, &command_policy_set, &command_quota_list,
    &command_quota_set, &command_quota_remove, &command_usage, &command_stats,
    &command_token_list, &command_token_create, &command_token_revoke,
    &command_audit,

    &command_compute_devices, &command_compute_run, &command_compute_bench,
    &command_compute_explain, &command_compute_cache,

    &command_serve, &command_doctor, &command_simulate_packing,
    &command_simulate_replay, &command_simulate_faults,
    &command_completion, &command_man, &command_version, &command_help,
    &command_shim, &command_complete,
};

/* What --help says before these. */
static const struct {
    const struct acre_command *first;
    const char *heading;
} headings[] = {
    {&command_submit, "Jobs"},
    {&command_nodes, "Cluster"},
    {&command_policy_show, "Policy, accounts, audit"},
    {&command_compute_devices, "Kernels"},
    {&command_serve, "This machine"},
};
/* clang-format on */

const struct acre_command *const *cli_commands(size_t *ret_count) {
    *ret_count = ACRE_COUNT(commands);
    return commands;
}

/* The text as it may be shown on a terminal. The caller finishes it. */
static struct acre_buf screen(const struct acre_buf *text) {
    struct screen filter;
    struct acre_buf shown;
    acre_buf_init(&shown, 4 * text->max); /* "\x1b" for one byte */
    screen_init(&filter, "\n\t");
    screen_put(&filter, (struct acre_str){text->data, text->length}, &shown);
    screen_end(&filter, &shown);
    return shown;
}

int cli_fail(const struct acre_error *err) {
    struct acre_buf text;
    acre_buf_init(&text, 2 * sizeof(err->text));
    acre_buf_printf(&text, "acre: %s\n", err->text);
    struct acre_buf shown = screen(&text);
    fputs(isatty(STDERR_FILENO) ? shown.data : text.data, stderr);
    acre_buf_finish(&shown);
    acre_buf_finish(&text);
    return acre_error_exit(err->code);
}

static int write_all(const struct acre_buf *out) {
    size_t done = 0;
    struct acre_error err = {0};
    if (acre_buf_failed(out)) {
        acre_fail(&err, ACRE_ELIMIT, "the output is longer than %zu bytes", out->max);
        return cli_fail(&err);
    }
    while (done < out->length) {
        ssize_t wrote = write(STDOUT_FILENO, out->data + done, out->length - done);
        if (wrote < 0 && errno == EINTR) {
            continue;
        }
        if (wrote < 0 && errno == EPIPE) {
            exit(EXIT_SUCCESS);
        }
        if (wrote < 0) {
            acre_fail_errno(&err, errno, "standard output");
            return cli_fail(&err);
        }
        done += (size_t)wrote;
    }
    return 0;
}

int cli_write(const struct acre_buf *out) {
    if (!isatty(STDOUT_FILENO) || acre_buf_failed(out)) {
        return write_all(out);
    }
    struct acre_buf shown = screen(out);
    int r = write_all(&shown);
    acre_buf_finish(&shown);
    return r;
}

int cli_redraw(const struct term *term, const struct acre_buf *picture, uint32_t *lines) {
    if (acre_buf_failed(picture)) {
        return write_all(picture);
    }
    struct acre_buf drawn, shown = screen(picture);
    acre_buf_init(&drawn, 2 * shown.max);
    term_redraw(term, &shown, lines, &drawn);
    int r = write_all(&drawn);
    acre_buf_finish(&drawn);
    acre_buf_finish(&shown);
    return r;
}

static void list_commands(struct acre_buf *out) {
    acre_buf_puts(out,
                  "Acre shares a GPU cluster between people: by the job and by the fraction.\n\n"
                  "Usage: acre COMMAND [options]\n");
    for (size_t i = 0; i < ACRE_COUNT(commands); i++) {
        for (size_t h = 0; h < ACRE_COUNT(headings); h++) {
            if (headings[h].first == commands[i]) {
                acre_buf_printf(out, "\n%s:\n", headings[h].heading);
            }
        }
        if (!commands[i]->hidden) {
            acre_buf_printf(out, "  %-18s %s\n", commands[i]->name, commands[i]->summary);
        }
    }
}

static int print_help(const struct acre_command *command) {
    struct acre_buf out;
    acre_buf_init(&out, HELP_MAX_BYTES);
    if (command != NULL) {
        acre_opt_help(command, &out);
    } else {
        list_commands(&out);
        acre_buf_puts(&out, "\nRun 'acre COMMAND --help' for details.\n");
    }
    int r = cli_write(&out);
    acre_buf_finish(&out);
    return r;
}

static int run_help(int argument_count, char **arguments, void *options) {
    (void)options;
    if (argument_count == 0) {
        return print_help(NULL);
    }
    struct acre_error err = {0};
    int words = 0;
    const struct acre_command *command = cli_find(argument_count, arguments, &words, &err);
    return command != NULL ? print_help(command) : cli_fail(&err);
}

static int run_version(int argument_count, char **arguments, void *options) {
    (void)argument_count;
    (void)arguments;
    (void)options;
    struct acre_buf out;
    acre_buf_init(&out, HELP_MAX_BYTES);
    acre_buf_puts(&out, "acre " ACRE_VERSION "\n");
    int r = cli_write(&out);
    acre_buf_finish(&out);
    return r;
}

static int run(const struct acre_command *command, int argc, char **argv) {
    struct acre_error err = {0};
    int count = 0;
    void *options = acre_calloc(1, ACRE_MAX(command->options_size, (size_t)1));
    int r = acre_opt_parse(command, argc, argv, options, &count, &err);
    if (r == ACRE_ENOTFOUND) {
        r = print_help(command);
    } else if (r < 0) {
        r = cli_fail(&err);
    } else {
        r = command->run(count, argv, options);
    }
    free(options);
    return r;
}

const struct acre_command *cli_find(int argc, char **argv, int *ret_words, struct acre_error *err) {
    static const char *const verbs[] = {"list", "show", "devices"};
    const struct acre_command *command =
        acre_command_find(commands, ACRE_COUNT(commands), argc, argv, ret_words, err);
    bool alone = argc == 1 || (argc > 1 && argv[1][0] == '-');
    for (size_t i = 0; command == NULL && alone && i < ACRE_COUNT(verbs); i++) {
        char *both[] = {argv[0], (char *)(uintptr_t)verbs[i]};
        command = acre_command_find(commands, ACRE_COUNT(commands), 2, both, ret_words, NULL);
        *ret_words = 1;
    }
    return command;
}

int main(int argc, char **argv) {
    acre_file_keep_standard();
    signal(SIGPIPE, SIG_IGN); /* writes answer EPIPE instead */
    static const struct {
        const char *option;
        const struct acre_command *command;
    } aliases[] = {
        {"--help", &command_help}, {"-h", &command_help}, {"--version", &command_version}};
    for (size_t i = 0; argc > 1 && i < ACRE_COUNT(aliases); i++) {
        if (strcmp(argv[1], aliases[i].option) == 0) {
            return run(aliases[i].command, 0, argv + argc);
        }
    }
    if (argc < 2) {
        print_help(NULL);
        return acre_error_exit(ACRE_EINVALID);
    }
    struct acre_error err = {0};
    int words = 0;
    const struct acre_command *command = cli_find(argc - 1, argv + 1, &words, &err);
    if (command == NULL) {
        return cli_fail(&err);
    }
    return run(command, argc - 1 - words, argv + 1 + words);
}
