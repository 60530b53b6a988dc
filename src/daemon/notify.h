/* notify.h - reports the daemon's state to systemd (sd_notify(3), without its library).
 *
 * Any thread. Does nothing without NOTIFY_SOCKET. */
#ifndef ACRE_DAEMON_NOTIFY_H
#define ACRE_DAEMON_NOTIFY_H

/* "READY=1", "STOPPING=1", "STATUS=...". */
void notify_systemd(const char *state);

#endif
