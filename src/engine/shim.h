/* shim.h - `acre shim`: the spawner, and the supervisors it forks, one for each run.
 *
 * Started by the local engine with descriptors of fixed numbers (wire.h), never by people. The
 * spawner is small and has one thread, so that forking it is cheap; it ends with the daemon. The
 * supervisors do not. */
#ifndef ACRE_ENGINE_SHIM_H
#define ACRE_ENGINE_SHIM_H

#include "engine/shim_wire.h"

int acre_shim_main(int argc, char **argv); /* returns the exit code */

/* What the spawner hands to a supervisor it has just forked. */
struct acre_shim {
    const struct acre_wire_hello *hello;
    const struct sock_filter *filter; /* NULL: none */
    uint16_t filter_length;
    int record;         /* runs/<name>, locked */
    int null;           /* /dev/null, open for both */
    int logs_directory; /* open */
    int facts;          /* the FIFO, for writing, not blocking */
};
/* Run the job to its end, write its record, tell the daemon if there is one, and exit. A start of
 * more than ACRE_WIRE_INLINE_MAX bytes is a mapping: it is unmapped when all members run. */
_Noreturn void acre_shim_supervise(const struct acre_shim *shim, char *start, size_t length);

#endif
