/* submit.h - shared by `acre submit` and `acre run`: a job's options, and the request made from
 * them.
 *
 * Programs only, one thread. */
#ifndef ACRE_CLI_SUBMIT_H
#define ACRE_CLI_SUBMIT_H

#include "cli/common.h"
#include "core/arena.h"

/* Everything is kept as text: the daemon judges it again, and NULL is "not given". */
struct submit_options {
    struct common common;
    const char *gpus, *gpu_memory, *nodes, *cpus, *memory, *model, *priority, *time, *estimate;
    const char *retries, *isolation, *begin, *array, *name, *project, *directory, *reservation;
    const char *warn, *warn_signal, *grace, *annotations;
    struct acre_opt_list labels, after, env;
    bool exclusive, hold, export_all, no_network, smaller_on_oom, no_preempt;
    bool wait;
};

enum { ACRE_SUBMIT_ROWS = 31 }; /* the last is --wait, which is of no use to `run` */
extern const struct acre_opt submit_option_rows[ACRE_SUBMIT_ROWS];

/* The request for what the arguments name: ["--", command...] or [script]. `command` gives the rows
 * for directives; their words live in `arena`. NULL: see err. */
json_t *submit_write_body(const struct acre_command *command, struct submit_options *options,
                          int argument_count, char **arguments, struct acre_arena *arena,
                          struct acre_error *err);

#endif
