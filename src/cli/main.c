/* main.c - finds the command in the table and runs it.
 *
 * A command is a row: name, options, function. `help` prints the rows; `version` is one line.
 * Exit codes are those of the error table (error.h). */
#include "cli/cli.h"

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

static const struct acre_command *const commands[] = {
    &acre_command_gpus, &acre_command_doctor, &acre_command_simulate_packing,
    &acre_command_shim, &command_version,     &command_help,
};

int acre_cli_fail(const struct acre_error *err) {
    fprintf(stderr, "acre: %s\n", err->text);
    return acre_error_exit(err->code);
}

int acre_cli_write(const struct acre_buf *out) {
    size_t done = 0;
    struct acre_error err = {0};
    if (acre_buf_failed(out)) {
        acre_fail(&err, ACRE_ELIMIT, "the output is longer than %zu bytes", out->max);
        return acre_cli_fail(&err);
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
            return acre_cli_fail(&err);
        }
        done += (size_t)wrote;
    }
    return 0;
}

static int print_help(const struct acre_command *command) {
    struct acre_buf out;
    acre_buf_init(&out, HELP_MAX_BYTES);
    if (command != NULL) {
        acre_opt_help(command, &out);
    } else {
        acre_buf_puts(&out, "Acre shares a GPU cluster: by the job, by the fraction, by the "
                            "grain.\n\nUsage: acre COMMAND [options]\n\nCommands:\n");
        for (size_t i = 0; i < ACRE_COUNT(commands); i++) {
            acre_buf_printf(&out, "  %-18s %s\n", commands[i]->name, commands[i]->summary);
        }
        acre_buf_puts(&out, "\n'acre COMMAND --help' explains a command.\n");
    }
    int r = acre_cli_write(&out);
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
    const struct acre_command *command =
        acre_command_find(commands, ACRE_COUNT(commands), argument_count, arguments, &words, &err);
    return command != NULL ? print_help(command) : acre_cli_fail(&err);
}

static int run_version(int argument_count, char **arguments, void *options) {
    (void)argument_count;
    (void)arguments;
    (void)options;
    struct acre_buf out;
    acre_buf_init(&out, HELP_MAX_BYTES);
    acre_buf_puts(&out, "acre " ACRE_VERSION "\n");
    int r = acre_cli_write(&out);
    acre_buf_finish(&out);
    return r;
}

static int run(const struct acre_command *command, int argc, char **argv) {
    struct acre_error err = {0};
    int count = 0;
    void *options = acre_calloc(1, ACRE_MAX(command->options_size, (size_t)1));
    if (command->defaults != NULL) {
        memcpy(options, command->defaults, command->options_size);
    }
    int r = acre_opt_parse(command, argc, argv, options, &count, &err);
    if (r == ACRE_ENOTFOUND) {
        r = print_help(command);
    } else if (r < 0) {
        r = acre_cli_fail(&err);
    } else {
        r = command->run(count, argv, options);
    }
    free(options);
    return r;
}

int main(int argc, char **argv) {
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
    const struct acre_command *command =
        acre_command_find(commands, ACRE_COUNT(commands), argc - 1, argv + 1, &words, &err);
    if (command == NULL) {
        return acre_cli_fail(&err);
    }
    return run(command, argc - 1 - words, argv + 1 + words);
}
