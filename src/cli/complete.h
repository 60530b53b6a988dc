/* complete.h - what can come next on a command line, from the option tables.
 *
 * No I/O except through `live`; one thread. */
#ifndef ACRE_CLI_COMPLETE_H
#define ACRE_CLI_COMPLETE_H

#include "core/opt.h"

/* Names that only the daemon knows ("jobs", "nodes", ...), as lines "name\tdescription"; it may add
 * nothing, and must be quick. */
typedef void complete_live(void *context, const char *kind, struct acre_buf *out);

/* Lines "candidate\tdescription" that may stand for the last word, which may be empty; or the one
 * line ":files" where file names are wanted. */
void complete_words(const struct acre_command *const *commands, size_t count, int word_count,
                    char **words, complete_live *live, void *context, struct acre_buf *out);

#endif
