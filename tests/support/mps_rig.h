/* mps_rig.h - MPS daemons under test: the control program is a double (mps_double.c); processes,
 * sockets, pid files, access lists and signals are real.
 *
 * Waiting is for conditions, with a deadline that fails the test. */
#ifndef ACRE_TEST_MPS_RIG_H
#define ACRE_TEST_MPS_RIG_H

#include "engine/mps.h"
#include "engine/mps_process.h"
#include "support/tree.h"

#define MPS_GPU "GPU-11111111-2222-3333-4444-555555555555"

struct mps_rig {
    struct tree tree; /* users may pass through it */
    struct acre_loop *loop;
    struct mps *mps;
    char directory[96]; /* <tree>/mps */
    struct mps_paths paths;
    uint32_t ready, failed, lost;
    char text[ACRE_ERROR_TEXT_MAX]; /* of the last failure or loss */
    bool (*condition)(struct mps_rig *rig);
    uint64_t guard_ms;
    pid_t pid; /* of the test's choice */
};

void mps_rig_init(struct mps_rig *rig, uint64_t check_ms, uint64_t answer_ms);
void mps_rig_open(struct mps_rig *rig, uint64_t check_ms, uint64_t answer_ms); /* once more */
void mps_rig_finish(struct mps_rig *rig);

/* Run the loop until it holds; `what` is said when it never does. */
void mps_rig_wait(struct mps_rig *rig, bool (*condition)(struct mps_rig *rig), const char *what);
bool mps_rig_is_ready(struct mps_rig *rig);   /* one holder was told so */
bool mps_rig_is_twice(struct mps_rig *rig);   /* two were */
bool mps_rig_has_failed(struct mps_rig *rig); /* one was refused */
bool mps_rig_has_lost(struct mps_rig *rig);   /* one loss was told */
bool mps_rig_is_down(struct mps_rig *rig);
bool mps_rig_is_other(struct mps_rig *rig); /* a daemon is there, and not rig->pid */

void mps_rig_take(struct mps_rig *rig, uint64_t holder, uid_t user);
pid_t mps_rig_daemon(const struct mps_rig *rig); /* 0: none */
bool mps_rig_lives(pid_t pid);                   /* a zombie does not */
/* Write a file of the double's script. */
void mps_rig_script(const struct mps_rig *rig, const char *name, const char *text);

/* Call `act` in a process of that user without groups; its result (0 to 254), as root only. */
int mps_rig_as(const struct mps_rig *rig, uid_t user, int (*act)(const struct mps_rig *rig));
/* A process of that user with the environment of one that belongs to the daemon: the double as a
 * daemon (which forks), or one that sleeps for a minute. */
pid_t mps_rig_spawn(const struct mps_rig *rig, uid_t user, bool is_daemon);

#endif
