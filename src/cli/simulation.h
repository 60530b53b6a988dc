/* simulation.h - shared by the `acre simulate` commands: progress, lists of names, plots.
 *
 * Programs only, one thread. */
#ifndef ACRE_CLI_SIMULATION_H
#define ACRE_CLI_SIMULATION_H

#include "core/buf.h"
#include "core/clock.h"

/* A line on standard error that is drawn over, when that is a terminal. */
struct progress {
    const char *what;
    struct acre_clock clock;
    uint64_t began_ns, last_ns;
    bool shown;
};
void progress_begin(struct progress *progress, const char *what, bool quiet);
/* "what: <text>", at most five times a second. */
void progress_show(struct progress *progress, const char *format, ...) ACRE_PRINTF(2, 3);
/* The same at once: what begins now may take long. */
void progress_stage(struct progress *progress, const char *text);
double progress_end(struct progress *progress); /* seconds since begin; clears the line */

/* Call `run` for each of the comma-separated names, up to `max` and the first failure. */
typedef int name_function(void *context, size_t index, const char *name, struct acre_error *err);
int each_name(const char *option, const char *names, size_t max, name_function *run, void *context,
              size_t *ret_count, struct acre_error *err);

/* Write the picture to its file; `drawn` is what drawing it answered. */
int write_picture(const char *path, const struct acre_buf *svg, int drawn, struct acre_error *err);

#endif
