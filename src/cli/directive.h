/* directive.h - options written in a script: "#ACRE --gpus 0.5 --time 2h".
 *
 * No I/O; one thread. Directives are in the comment block at the top of a script. They take the
 * command's own options, not the shared ones: where the daemon runs is not a property of a job.
 * The target's options must be of kind string, choice, flag or list. */
#ifndef ACRE_CLI_DIRECTIVE_H
#define ACRE_CLI_DIRECTIVE_H

#include "core/arena.h"
#include "core/opt.h"
#include "core/str.h"

/* Read all directives of `text` into `target` (zeroed first); the words live in `arena`.
 * ACRE_EINVALID with "name:line: ...": a bad option, one given twice, a word that is none, a quote
 * that is not closed, a directive after the first command. */
int directive_read(const char *name, struct acre_str text, const struct acre_command *command,
                   void *target, struct acre_arena *arena, struct acre_error *err);

/* Give `target` what it lacks of `from`: what was given on the command line stays. */
void directive_under(const struct acre_command *command, void *target, const void *from);

#endif
