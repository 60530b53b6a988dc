/* mps.h - one NVIDIA MPS control daemon for each GPU that is given out in shares.
 *
 * Started when the first share of a GPU is taken, asked regularly whether it still answers,
 * started again when it died, asked to quit when the last share is given back. It outlives this
 * process on purpose (its clients would die with it); the next one finds it by its socket. Users
 * may connect while they hold a share; they may change nothing in its directories.
 * Everything is asynchronous on the loop; loop thread only. It never changes a GPU's compute mode
 * and limits nothing by itself: the limits are in the clients' environment (visible.h). */
#ifndef ACRE_ENGINE_MPS_H
#define ACRE_ENGINE_MPS_H

#include "core/loop.h"

#include <sys/types.h>

struct mps;

struct mps_sink {
    /* The daemon of `device` died with all that its clients had on the GPU; it is being started
     * again. Users of the device should be ended or will fail by themselves. The
     * text is valid during the call. May be NULL. */
    void (*lost)(void *context, const char *device, const char *text);
    void *context;
};

struct mps_options {
    const char *directory; /* pipe directories go here, one a GPU; see below */
    const char *program;   /* NULL: "nvidia-cuda-mps-control", found in PATH */
    struct mps_sink sink;
    bool multiuser;     /* one server of ours for all users; needs root. Without it each user has
                           one, and a second user's processes wait until the first's have gone */
    uint64_t check_ms;  /* between questions; 0: 5,000 */
    uint64_t answer_ms; /* for one answer; 0: 10,000 */
};

/* `directory` is made when it is not there, and 0711 in any case; one of another user and a link
 * are refused (ACRE_EDENIED). Job users must be able to reach it: keep it out of directories that
 * only the daemon's user may enter, or bind it into the job's view. Its path must be short: sockets
 * have 107 bytes (ACRE_ELIMIT). */
int mps_create(const struct mps_options *options, struct acre_loop *loop, struct mps **ret_mps,
               struct acre_error *err);
void mps_destroy(struct mps *mps); /* NULL is fine; control daemons run on */

/* Result 0: clients may connect through the pipe directory now. Otherwise `err` says why not, and
 * the share is not taken. Never called before mps_take returned. */
typedef void mps_ready(void *context, int result, const struct acre_error *err);

/* Take a share of `device` (UUID) for processes of `user`; starts or adopts its daemon. The same
 * `holder` (any number of the caller's, e.g. a job) takes a device once; repeating is harmless and
 * calls `ready` again. ACRE_EINVALID: `device` is no UUID. `ready` NULL: not told. */
int mps_take(struct mps *mps, const char *device, uint64_t holder, uid_t user, mps_ready *ready,
             void *context, struct acre_error *err);
/* Give it back (unknown ones are passed over); a `ready` still to come is not called. After the
 * last one the daemon is told to quit, and killed when it does not. */
void mps_give(struct mps *mps, const char *device, uint64_t holder);

/* Where clients of `device` connect: CUDA_MPS_PIPE_DIRECTORY. Fixed: the same for every process. */
void mps_pipe(const struct mps *mps, const char *device, char ret_pipe[108]);

/* After a restart, when all shares that still live were taken again: tell the daemon of `device`
 * that an earlier process left to quit. False: there is none, or somebody holds it. */
bool mps_reap(struct mps *mps, const char *device);

/* The servers' pids (their memory is no run's), as last reported and checked. Returns how many
 * there are. */
uint32_t mps_servers(const struct mps *mps, int64_t *pids, uint32_t max);
/* How many daemons are up or coming up, and how many were lost so far. */
uint32_t mps_count(const struct mps *mps, uint32_t *ret_lost);

/* Is the program here? ACRE_EUNAVAILABLE says where it was looked for. */
int mps_find(const char *program, char ret_path[256], struct acre_error *err);

#endif
