/* rules.h - what one request may ask for, by policy (ALC-9).
 *
 * A value loaded from JSON and checked before anything is allocated:
 *
 *   {"min_milli": 100, "max_milli": 1000, "sharing_allowed": true,
 *    "isolation": ["none", "time-slicing", "mps", "mig"], "max_allocations_per_device": 10}
 *
 * Every key is optional and has the value above when absent. Pure; any thread. Quotas per user and
 * project are not here: they need to know who asks. */
#ifndef ACRE_LEDGER_RULES_H
#define ACRE_LEDGER_RULES_H

#include "core/error.h"
#include "ledger/isolation.h"

enum {
    ACRE_RULES_MIN_MILLI = 100, /* ALC-1: 0.1 to 1.0 of a GPU */
    ACRE_RULES_MAX_MILLI = 1000,
    ACRE_RULES_ALLOCATIONS = 10,
    ACRE_RULES_ALLOCATIONS_MAX = 255, /* the ledger counts them in a byte */
    ACRE_RULES_BYTES_MAX = 4096,
};

struct acre_rules {
    uint32_t min_milli;
    uint32_t max_milli;
    uint32_t isolation_mask; /* 1 << enum acre_isolation */
    uint32_t max_allocations_per_device;
    bool sharing_allowed;
};

const struct acre_rules *rules_default(void);

/* Unknown keys, wrong types, numbers out of range, min over max, an isolation that is unknown,
 * doubled, or none at all: ACRE_EINVALID naming the key. `name` is the file for the message. */
int rules_load(const char *name, struct acre_str text, struct acre_rules *ret_rules,
               struct acre_error *err);

/* May this be asked for at all? `milli` is the share of each GPU, 1000 for whole ones; 0: by memory
 * alone, no share to judge. ACRE_EDENIED with the number asked and the number allowed. */
int rules_check(const struct acre_rules *rules, uint32_t milli, enum acre_isolation isolation,
                bool shared, struct acre_error *err);

#endif
