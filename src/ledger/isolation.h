/* isolation.h - how the shares of one device are kept apart (ALC-4).
 *
 * Pure; any thread. Enforcement is the engine's business; the ledger only sees to it that
 * shares of different kinds never meet on one device. */
#ifndef ACRE_LEDGER_ISOLATION_H
#define ACRE_LEDGER_ISOLATION_H

#include "core/str.h"

enum acre_isolation {
    ACRE_ISOLATION_NONE,
    ACRE_ISOLATION_TIME_SLICING,
    ACRE_ISOLATION_MPS,
    ACRE_ISOLATION_MIG,
    ACRE_ISOLATION_COUNT,
};

const char *acre_isolation_name(enum acre_isolation isolation); /* "time-slicing" */
bool acre_isolation_parse(struct acre_str text, enum acre_isolation *ret_isolation);

#endif
