/* serve.h - `acre serve`: the daemon, put together.
 *
 * Programs only; it takes over the calling thread until it is told to stop (SIGTERM, SIGINT). */
#ifndef ACRE_DAEMON_SERVE_H
#define ACRE_DAEMON_SERVE_H

#include "daemon/settings.h"

/* Returns the exit code. What goes wrong is told on standard error. */
int acre_serve(const struct acre_settings_given *given);

#endif
