/* mps_paths.h - where the MPS control daemon of one GPU lives: its directories, and who may enter
 * them. Private to mps*.c.
 *
 * File system only; nothing here waits. */
#ifndef ACRE_ENGINE_MPS_PATHS_H
#define ACRE_ENGINE_MPS_PATHS_H

#include "core/error.h"

#include <sys/types.h>

enum { ACRE_MPS_PATH = 108 }; /* of a pipe directory: the size of sun_path */

struct mps_paths {
    char home[ACRE_MPS_PATH]; /* the directory of all GPUs */
    char pipe[ACRE_MPS_PATH];
    char log[ACRE_MPS_PATH + 12];
};

/* ACRE_EINVALID: `device` is no UUID; ACRE_ELIMIT: its sockets would have too long a path. */
int mps_paths_init(struct mps_paths *paths, const char *home, const char *device,
                   struct acre_error *err);

/* Make the directory of all GPUs, or check it and close it to others' writing. ACRE_EDENIED: it is
 * a link, no directory, or another user's. */
int mps_paths_make_home(const char *home, struct acre_error *err);

/* New, empty directories that only we may enter, for a daemon to be started. The logs of the last
 * one are in <log>.old. On failure no daemon may be started here: something that somebody else
 * made could be left. */
int mps_paths_renew(const struct mps_paths *paths, struct acre_error *err);

/* Let these users (sorted, each once) connect to the daemon, and no others. Only for a daemon that
 * is up: it has made its files, and they are closed to others' writing here. */
int mps_paths_admit(const struct mps_paths *paths, const uid_t *users, uint32_t count,
                    struct acre_error *err);
/* Let nobody but ourselves in any more. */
void mps_paths_close(const struct mps_paths *paths);

/* The pipe directory, if it is ours: a descriptor, to be closed. */
int mps_paths_open(const struct mps_paths *paths, struct acre_error *err);

#endif
