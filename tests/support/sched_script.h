/* sched_script.h - tests of the scheduler as scripts: what happens, and what must then be true.
 *
 * A script is steps separated by ';'. Jobs are numbered by the script, times are seconds from the
 * start. Cluster as in ledger_kit.h; policy is JSON over SCRIPT_POLICY. After every step the
 * scheduler and the ledger check all their invariants. What happens:
 *
 *   at S                      time is S
 *   job ID USER WHAT [k=v]    submit. WHAT: 2 whole GPUs, 0.5 of one, 4x8 (members x GPUs), 100m
 *                             MiB, 2c CPUs. k: prio limit est begin retries project name array
 *                             index max (of the array at once) held fixed oom exclusive
 *                             after (ok:1+any:2+3)
 *   refuse CODE TEXT job ...  the same, but it must be refused with this code, TEXT in the reason
 *   bad CODE STEP             the step must fail so
 *   pass [N]                  one pass (of N tries)
 *   go                        passes until nothing happens; what is placed is launched and starts
 *   launched ID, started ID, exit ID CODE, die ID KIND (signal oom lost busy time nostart)
 *   late ID CODE              an exit of the attempt before
 *   use ID MILLI              a sample of utilisation
 *   cancel ID, hold ID, release ID, prio ID N, drop ID, pause, resume, policy JSON
 *
 * What must be true:
 *
 *   run A B ...               exactly these hold GPUs; - for nobody
 *   wait A B ...              exactly these wait, in this order
 *   state ID NAME, where ID DEVICES, tries ID ATTEMPT RETRIES, due S (next_ms; now, never)
 *   log TEXT                  exactly this was told since the last log: "scheduled 1, start 1" */
#ifndef ACRE_TEST_SCHED_SCRIPT_H
#define ACRE_TEST_SCHED_SCRIPT_H

#include "sched/sched.h"
#include "support/ledger_kit.h"

/* Plain FCFS without anything clever, so that a test turns on what it is about. */
#define SCRIPT_POLICY                                                                              \
    "{\"policy\": \"fcfs\", \"backfill\": false, \"preemption\": false, \"idle\": \"never\"}"
#define SCRIPT_START_MS UINT64_C(1700000000000)

void sched_script(const char *cluster, const char *policy, const char *script, const char *file,
                  int line);
#define CHECK_SCRIPT(cluster, policy, script)                                                      \
    sched_script(cluster, policy, script, __FILE__, __LINE__)

#endif
