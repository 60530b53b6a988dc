/* shim.c - `acre shim`: starts supervisors for the daemon when acre-shim is not installed next to
 * it. Not for people; started by hand it says so. */
#include "cli/cli.h"

#include "engine/shim.h"

static int run(int argument_count, char **arguments, void *options) {
    (void)options;
    return acre_shim_main(argument_count, arguments);
}

const struct acre_command command_shim = {
    .name = "shim",
    .summary = "supervise jobs (internal: started by the daemon)",
    .usage = "acre shim",
    .hidden = true,
    .details = "The daemon starts this to supervise its jobs; do not run it by hand.\n",
    .run = run,
};
