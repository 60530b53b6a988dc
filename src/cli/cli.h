/* cli.h - the commands of `acre`, one file each, and what they share.
 *
 * Programs only, one thread. */
#ifndef ACRE_CLI_CLI_H
#define ACRE_CLI_CLI_H

#include "cli/term.h"
#include "core/error.h"
#include "core/opt.h"

extern const struct acre_command command_serve;
extern const struct acre_command command_submit;
extern const struct acre_command command_run;
extern const struct acre_command command_queue;
extern const struct acre_command command_show;
extern const struct acre_command command_why;
extern const struct acre_command command_logs;
extern const struct acre_command command_cancel;
extern const struct acre_command command_hold;
extern const struct acre_command command_release;
extern const struct acre_command command_priority;
extern const struct acre_command command_nodes;
extern const struct acre_command command_balance;
extern const struct acre_command command_gpus;
extern const struct acre_command command_drain;
extern const struct acre_command command_undrain;
extern const struct acre_command command_reserve;
extern const struct acre_command command_reserve_list;
extern const struct acre_command command_reserve_cancel;
extern const struct acre_command command_policy_show;
extern const struct acre_command command_policy_set;
extern const struct acre_command command_quota_list;
extern const struct acre_command command_quota_set;
extern const struct acre_command command_quota_remove;
extern const struct acre_command command_usage;
extern const struct acre_command command_stats;
extern const struct acre_command command_token_list;
extern const struct acre_command command_token_create;
extern const struct acre_command command_token_revoke;
extern const struct acre_command command_audit;
extern const struct acre_command command_doctor;
extern const struct acre_command command_compute_devices;
extern const struct acre_command command_compute_run;
extern const struct acre_command command_compute_bench;
extern const struct acre_command command_compute_explain;
extern const struct acre_command command_compute_cache;
extern const struct acre_command command_shim;
extern const struct acre_command command_simulate_faults;
extern const struct acre_command command_simulate_packing;
extern const struct acre_command command_simulate_replay;
extern const struct acre_command command_completion;
extern const struct acre_command command_man;
extern const struct acre_command command_complete;

/* All commands, in the order of --help. */
const struct acre_command *const *cli_commands(size_t *ret_count);
/* The one that the words name; `acre token` alone is `acre token list`, `acre policy` is `show`,
 * `acre compute` is `devices`. NULL: see err. */
const struct acre_command *cli_find(int argc, char **argv, int *ret_words, struct acre_error *err);

/* Print "acre: <text>" to standard error; returns the exit code of err. */
int cli_fail(const struct acre_error *err);

/* Write all of `out` to standard output, on a terminal without what could command it (screen.h);
 * returns 0 or the exit code of the failure, which was told. A reader that went away (EPIPE) ends
 * quietly: that is what `head` does. */
int cli_write(const struct acre_buf *out);
/* The same for a picture that is drawn over the one before (term_redraw). */
int cli_redraw(const struct term *term, const struct acre_buf *picture, uint32_t *lines);

#endif
