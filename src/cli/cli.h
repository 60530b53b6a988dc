/* cli.h - the commands of the program `acre`, one file each, and what they share.
 *
 * Programs only, one thread. */
#ifndef ACRE_CLI_CLI_H
#define ACRE_CLI_CLI_H

#include "core/error.h"
#include "core/opt.h"

extern const struct acre_command acre_command_doctor;
extern const struct acre_command acre_command_gpus;
extern const struct acre_command acre_command_shim;
extern const struct acre_command acre_command_simulate_packing;

/* Print "acre: <text>" to standard error; returns the exit code of err. */
int acre_cli_fail(const struct acre_error *err);

/* Write all of `out` to standard output; returns 0 or the exit code of the failure, which was
 * told. A reader that went away (EPIPE) ends quietly: that is what `head` does. */
int acre_cli_write(const struct acre_buf *out);

#endif
