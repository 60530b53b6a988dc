/* serve.c - `acre serve`: the row of the command; the daemon itself is src/daemon. */
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
     .help = "settings, one 'name = value' a line: any of these options"},
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

const struct acre_command acre_command_serve = {
    .name = "serve",
    .summary = "run the daemon: queue, scheduler, API",
    .usage = "acre serve [options]",
    .details =
        "Serves on a unix socket, where users are known by their accounts, and on TCP, where "
        "they are known by tokens. The first start leaves a token for the admin in the file "
        "admin-token of the state directory.\n\n"
        "Every option is also a variable (ACRE_LOG_LEVEL) and a line of the file given with "
        "--config (log-level = debug); a flag wins over a variable, a variable over the "
        "file. SIGHUP reads them again: policy, names of admins and operators, project, "
        "rate, failures, log-level and a renewed certificate count at once, the rest with the "
        "next start. SIGTERM stops the daemon; jobs run on.",
    .options = rows,
    .option_count = ACRE_COUNT(rows),
    .run = run,
    .options_size = sizeof(struct acre_settings_given),
};
