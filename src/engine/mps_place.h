/* mps_place.h - where the MPS control daemon of one GPU lives: its directories, who may enter
 * them, and which process it is. Private to mps*.c.
 *
 * File system and /proc only; nothing here waits. */
#ifndef ACRE_ENGINE_MPS_PLACE_H
#define ACRE_ENGINE_MPS_PLACE_H

#include "core/error.h"

#include <sys/types.h>

enum {
    ACRE_MPS_PATH = 108,  /* of a pipe directory: the size of sun_path */
    ACRE_MPS_SERVERS = 64 /* of one daemon; one a user */
};

struct acre_mps_place {
    char pipe[ACRE_MPS_PATH];
    char log[ACRE_MPS_PATH + 12];
};

/* ACRE_EINVALID: `device` is no UUID; ACRE_ELIMIT: its sockets would have too long a path. */
int acre_mps_place_init(struct acre_mps_place *place, const char *directory, const char *device,
                        struct acre_error *err);

/* Make both directories; what a daemon that is gone left in the pipe directory is removed. */
int acre_mps_place_prepare(const struct acre_mps_place *place, struct acre_error *err);

/* Let these users (sorted, each once) and ourselves use the directories, nobody else. Where the
 * file system keeps no lists of users, everybody may, as is the vendor's default. */
int acre_mps_place_admit(const struct acre_mps_place *place, const uid_t *users, uint32_t count,
                         struct acre_error *err);

/* The process that the pid file names, when it lives and is that daemon; 0: none. */
pid_t acre_mps_place_daemon(const struct acre_mps_place *place);
/* Is it a process of this daemon (itself, or a server of it)? */
bool acre_mps_place_owns(const struct acre_mps_place *place, pid_t pid);

/* Pids in the answer to get_server_list, up to ACRE_MPS_SERVERS; false: it is something else. */
bool acre_mps_parse_servers(const char *text, size_t length, int64_t ret_pids[ACRE_MPS_SERVERS],
                            uint32_t *ret_count);

#endif
