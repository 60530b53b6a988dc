/* serve.h - `acre serve`: the daemon, put together.
 *
 * Programs only; it runs on the calling thread until SIGTERM or SIGINT. */
#ifndef ACRE_DAEMON_SERVE_H
#define ACRE_DAEMON_SERVE_H

#include "daemon/settings.h"

/* Returns the exit code. What goes wrong is told on standard error. */
int acre_serve(const struct acre_settings_given *given);

#endif
