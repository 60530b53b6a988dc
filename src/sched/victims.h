/* victims.h - which runs must yield so that a job fits: the smallest sufficient set, or none
 * (POL-2).
 *
 * Pure; any thread. It chooses; what "fits" means is the caller's function, and so is everything
 * that a candidate must satisfy (lower priority, minimum run time, not fixed). */
#ifndef ACRE_SCHED_VICTIMS_H
#define ACRE_SCHED_VICTIMS_H

#include "core/base.h"

/* A gang is one candidate: it goes as a whole. */
struct victim {
    uint64_t job;
    uint64_t size_milli; /* of all its devices: larger ones are tried first among equals */
    uint64_t run_ms;     /* of this run: what would be lost */
    uint32_t priority;
    bool over_quota; /* its account is over a soft quota */
};

/* Would the job fit if the jobs of these candidates were gone? `chosen` are indexes of the array
 * below, ascending. Called with 1 ... `candidate_count` of them. Adding to a set that fits must
 * not make it unfit. */
typedef bool victims_fits(void *context, const uint32_t *chosen, uint32_t count);

enum { ACRE_VICTIMS_MAX = 4096 }; /* candidates; the caller passes the likeliest ones */

/* Candidates are put in order: over quota first, then lowest priority, then youngest run, then
 * largest, then highest id. `candidates` is sorted in place; `ret_chosen` (room for `count`)
 * receives indexes of the sorted array, ascending. Returns how many must yield; 0: all of them
 * together would not be enough, and nobody is to be disturbed. No victim can be spared, and among
 * few candidates no smaller set would do: victims.c says when, and how often `fits` is called
 * (at most 512 times and 26 times for every victim). */
uint32_t victims_choose(struct victim *candidates, uint32_t count, victims_fits *fits,
                        void *context, uint32_t *ret_chosen);

#endif
