/* remote_inner.h - what the files of remote.h share: the caller's side of a runner.
 *
 * Locks, in the order they are taken:
 *   queue_lock  head of the queue, and the eventfds that messages name
 *   slot_lock   which slots are free
 *   lock        how the runner ended, and the memory shared with it
 * `ended` is read without a lock: once it is set, nothing else of the runner is touched until it is
 * started again. */
#ifndef ACRE_COMPUTE_RUNNER_REMOTE_INNER_H
#define ACRE_COMPUTE_RUNNER_REMOTE_INNER_H

#include "compute/runner/remote.h"
#include "compute/runner/wire_shared.h"

#include <limits.h>
#include <pthread.h>
#include <sys/types.h>

struct remote_map {
    struct remote_map *next;
    uint8_t *host;
    uint64_t bytes, offset;
};

struct remote {
    struct backend table; /* backend_remote, less what the runner cannot */
    char backend[16];
    uint32_t device;
    char program[PATH_MAX]; /* of all runners of this seat */
    struct wire_shared *shared;
    int shared_fd, host_fd, room_fd, answer_fds[WIRE_SLOTS];

    int socket, pidfd; /* of the present runner; -1 */
    pid_t pid;
    atomic_bool ended;
    int end_limit_ms; /* how long a killed runner is waited for */

    pthread_mutex_t queue_lock;
    uint64_t head, tail; /* the tail as last seen */
    uint64_t *eventfds;  /* by descriptor: its number in messages; 0: the runner has it not */
    uint32_t eventfd_room;
    uint64_t eventfd_number; /* the last; none is used twice, since notes overtake messages */

    pthread_mutex_t slot_lock;
    pthread_cond_t slot_freed;
    uint32_t slots_taken; /* bits */

    pthread_mutex_t lock;
    char why[ACRE_ERROR_TEXT_MAX]; /* it ended, or is being ended */
    struct remote_map *maps;
    uint64_t host_bytes; /* of the file behind them: given out once, in order */
};

/* ACRE_EUNAVAILABLE with the reason when the runner has ended (asks the kernel), or was killed. */
int remote_look(struct remote *remote, struct acre_error *err);
/* The same, for one that is known to have ended. */
int remote_refuse(struct remote *remote, struct acre_error *err);
/* Where host memory is in the file. ACRE_EINVALID: it is not of remote_map_host. */
int remote_find(struct remote *remote, const void *host, uint64_t bytes, uint64_t *ret_offset,
                struct acre_error *err);
/* Sleep until `fd` (an eventfd, then cleared) is written or the runner ends. */
void remote_sleep(const struct remote *remote, int fd);
/* Queue lock held: the number that the runner knows an eventfd by; sent if it does not. */
int remote_send_eventfd(struct remote *remote, int fd, uint64_t *ret_number,
                        struct acre_error *err);
/* Queue lock held: the number it was known by, and is no more; 0: none. */
uint64_t remote_take_eventfd(struct remote *remote, int fd);
/* `ended` is set: all who wait for an answer have come back. */
void remote_drain(struct remote *remote);
void remote_forget_eventfds(struct remote *remote); /* all */
void remote_close(void *seat);
void remote_let_go(void *seat);

#endif
