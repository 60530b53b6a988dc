/* serve.c - `acre serve`: the command's row; the daemon itself is src/daemon. */
#include "daemon/serve.h"
#include "cli/cli.h"

#define OPT_STRING   ACRE_OPT_STRING
#define OPT_COUNT    ACRE_OPT_STRING /* parsed with those of the environment and the file */
#define OPT_DURATION ACRE_OPT_STRING
#define OPT_FLAG     ACRE_OPT_FLAG
#define OPT_LIST     ACRE_OPT_LIST

static const struct acre_opt rows[] = {
    {.name = "config",
     .kind = ACRE_OPT_STRING,
     .offset = offsetof(struct acre_settings_given, config),
     .value = "FILE",
     .help = "settings file: any of these options, one 'name = value' per line"},
#define X(member, name_, kind_, value_, absent, help_)                                             \
    {.name = name_,                                                                                \
     .kind = OPT_##kind_,                                                                          \
     .offset = offsetof(struct acre_settings_given, member),                                       \
     .value = value_,                                                                              \
     .help = help_},
    ACRE_SETTINGS(X)
#undef X
};

static int run(int argument_count, char **arguments, void *options) {
    (void)argument_count;
    (void)arguments;
    return acre_serve(options);
}

const struct acre_command command_serve = {
    .name = "serve",
    .summary = "run the daemon: queue, scheduler and API",
    .usage = "acre serve [options]",
    .details =
        "Listens on a Unix socket, where users are identified by their accounts, and on TCP, where "
        "they are identified by tokens. The first start writes a token for the admin to the file "
        "admin-token in the state directory.\n\n"
        "Every option can also be set by an environment variable (ACRE_LOG_LEVEL) or a line in "
        "the --config file (log-level = debug). The command line overrides the environment, "
        "which overrides the file. SIGHUP reads them again: policy, admins, operators, project, "
        "rate, failures, log-level and a renewed certificate take effect immediately, the rest "
        "at the next start. SIGTERM stops the daemon; jobs keep running.\n\n"
        "Examples:\n"
        "  acre serve --state state --no-tcp\n"
        "  acre serve --state state --no-tcp --sim examples/two-nodes.acre",
    .options = rows,
    .option_count = ACRE_COUNT(rows),
    .run = run,
    .options_size = sizeof(struct acre_settings_given),
};
