/* notify.h - telling systemd how the daemon is (sd_notify(3), without its library).
 *
 * Any thread. Without NOTIFY_SOCKET nobody wants to know, and nothing happens. */
#ifndef ACRE_DAEMON_NOTIFY_H
#define ACRE_DAEMON_NOTIFY_H

/* "READY=1", "STOPPING=1", "STATUS=...". */
void acre_notify(const char *state);

#endif
