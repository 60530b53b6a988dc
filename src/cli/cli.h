/* cli.h - the commands of the program `acre`, one file each, and what they share.
 *
 * Programs only, one thread. */
#ifndef ACRE_CLI_CLI_H
#define ACRE_CLI_CLI_H

#include "cli/term.h"
#include "core/error.h"
#include "core/opt.h"

extern const struct acre_command acre_command_serve;
extern const struct acre_command acre_command_submit;
extern const struct acre_command acre_command_run;
extern const struct acre_command acre_command_queue;
extern const struct acre_command acre_command_show;
extern const struct acre_command acre_command_why;
extern const struct acre_command acre_command_logs;
extern const struct acre_command acre_command_cancel;
extern const struct acre_command acre_command_hold;
extern const struct acre_command acre_command_release;
extern const struct acre_command acre_command_priority;
extern const struct acre_command acre_command_nodes;
extern const struct acre_command acre_command_gpus;
extern const struct acre_command acre_command_drain;
extern const struct acre_command acre_command_undrain;
extern const struct acre_command acre_command_reserve;
extern const struct acre_command acre_command_reserve_list;
extern const struct acre_command acre_command_reserve_cancel;
extern const struct acre_command acre_command_policy_show;
extern const struct acre_command acre_command_policy_set;
extern const struct acre_command acre_command_quota_list;
extern const struct acre_command acre_command_quota_set;
extern const struct acre_command acre_command_quota_remove;
extern const struct acre_command acre_command_usage;
extern const struct acre_command acre_command_stats;
extern const struct acre_command acre_command_token_list;
extern const struct acre_command acre_command_token_create;
extern const struct acre_command acre_command_token_revoke;
extern const struct acre_command acre_command_audit;
extern const struct acre_command acre_command_doctor;
extern const struct acre_command acre_command_compute_devices;
extern const struct acre_command acre_command_compute_run;
extern const struct acre_command acre_command_compute_bench;
extern const struct acre_command acre_command_compute_explain;
extern const struct acre_command acre_command_compute_cache;
extern const struct acre_command acre_command_shim;
extern const struct acre_command acre_command_simulate_faults;
extern const struct acre_command acre_command_simulate_packing;
extern const struct acre_command acre_command_simulate_replay;
extern const struct acre_command acre_command_completion;
extern const struct acre_command acre_command_man;
extern const struct acre_command acre_command_complete;

/* All commands, in the order of --help. */
const struct acre_command *const *acre_cli_commands(size_t *ret_count);
/* The one that the words name; `acre token` alone is `acre token list`, `acre policy` is `show`,
 * `acre compute` is `devices`. NULL: see err. */
const struct acre_command *acre_cli_find(int argc, char **argv, int *ret_words,
                                         struct acre_error *err);

/* Print "acre: <text>" to standard error; returns the exit code of err. */
int acre_cli_fail(const struct acre_error *err);

/* Write all of `out` to standard output, on a terminal without what could command it (screen.h);
 * returns 0 or the exit code of the failure, which was told. A reader that went away (EPIPE) ends
 * quietly: that is what `head` does. */
int acre_cli_write(const struct acre_buf *out);
/* The same for a picture that is drawn over the one before (acre_term_redraw). */
int acre_cli_redraw(const struct acre_term *term, const struct acre_buf *picture, uint32_t *lines);

#endif
