/* shim.c - `acre shim`: what the daemon starts to start supervisors, where acre-shim is not
 * beside it. Nothing for people; started by hand it says so. */
#include "cli/cli.h"

#include "engine/shim.h"

static int run(int argument_count, char **arguments, void *options) {
    (void)options;
    return acre_shim_main(argument_count, arguments);
}

const struct acre_command acre_command_shim = {
    .name = "shim",
    .summary = "supervise jobs (internal: started by the daemon)",
    .usage = "acre shim",
    .hidden = true,
    .details = "The daemon starts this beside its jobs; there is no use for it by hand.\n",
    .run = run,
};
