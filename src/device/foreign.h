/* foreign.h - memory on a device that Acre did not allocate (DEV-6).
 *
 * Pure; any thread. It does not decide what to do about it: the ledger subtracts it. */
#ifndef ACRE_DEVICE_FOREIGN_H
#define ACRE_DEVICE_FOREIGN_H

#include "device/tables.h"

struct foreign {
    bool known;                /* false: the driver does not say how much is used */
    bool exact;                /* false: a known process's own use is unknown, so this is a bound */
    uint64_t memory_mib;       /* used - sum of known processes; never below 0 */
    uint64_t unattributed_mib; /* used - sum of all listed processes; never below 0 */
    uint32_t processes;        /* listed and not known */
};

/* Marks each process as foreign or not, and adds up. `known_pids` are processes Acre started. */
struct foreign device_foreign(const struct acre_device_sample *sample,
                              struct acre_device_process *processes, uint32_t count,
                              const uint64_t *known_pids, uint32_t known_count);

#endif
