/* mps_process.h - which processes are the MPS control daemon of a GPU and its servers. Private to
 * mps*.c.
 *
 * Reads /proc and one socket; nothing here waits. A process may end at any moment and its number
 * be given to another: open a pidfd first, then ask. */
#ifndef ACRE_ENGINE_MPS_PROCESS_H
#define ACRE_ENGINE_MPS_PROCESS_H

#include "engine/mps_paths.h"

enum { ACRE_MPS_SERVERS = 64 }; /* of one daemon; one a user */

/* The daemon that listens in this place, if it is one we could have started; 0: none. `program`
 * is that of mps_options. */
pid_t mps_process_find(const struct mps_paths *paths, const char *program);
/* Is it a process of our user that runs `program` for this place? */
bool mps_process_is_daemon(const struct mps_paths *paths, const char *program, pid_t pid);
/* Is it a process of our user that `daemon` started, or that was started for this place? */
bool mps_process_is_server(const struct mps_paths *paths, pid_t daemon, pid_t pid);

/* Pids in the answer to get_server_list, up to ACRE_MPS_SERVERS; false: it is something else. */
bool mps_parse_servers(const char *text, size_t length, int64_t ret_pids[ACRE_MPS_SERVERS],
                       uint32_t *ret_count);

#endif
