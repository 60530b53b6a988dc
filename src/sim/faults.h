/* faults.h - drives the scheduler and the ledger through everything that can go wrong, from one
 * seed.
 *
 * A small world around the pure core: an engine whose messages arrive late, twice or never; a store
 * whose commits fail; a process that dies between any two steps and restarts from what was
 * committed; a clock that jumps; nodes that disappear and return; people who submit, cancel, hold
 * and change their minds. After every step it checks the invariants of sched and ledger, that no
 * run started twice, that no job has two live runs, that no device is given out twice, and that
 * nothing acknowledged was forgotten. When the faults stop, every job must end.
 *
 * Pure: the same seed does the same thing on every machine. */
#ifndef ACRE_SIM_FAULTS_H
#define ACRE_SIM_FAULTS_H

#include "core/buf.h"
#include "core/error.h"

struct acre_faults_counts {
    uint64_t steps, crashes, failed_commits, lost_messages, repeated_messages, clock_jumps;
    uint64_t vanished_nodes, submitted, runs, preemptions, completed, failed, canceled;
    uint64_t fingerprint; /* of every event and action in order */
};

struct acre_faults_options {
    uint64_t seed;
    uint32_t steps;         /* before the faults stop */
    struct acre_buf *story; /* NULL, or what happened step by step is appended */
};

/* ACRE_EINTERNAL: what did not hold, at which step. Counts are added to. */
int acre_faults_run(const struct acre_faults_options *options, struct acre_faults_counts *counts,
                    struct acre_error *err);

#endif
