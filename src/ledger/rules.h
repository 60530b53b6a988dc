#ifndef ACRE_LEDGER_RULES_H
#define ACRE_LEDGER_RULES_H
#include "core/error.h"
#include "ledger/isolation.h"
struct acre_rules {
    uint32_t min_milli, max_milli, isolation_mask, max_allocations_per_device;
    bool sharing_allowed;
};
const struct acre_rules *acre_rules_default(void);
int acre_rules_check(const struct acre_rules *rules, uint32_t milli, enum acre_isolation isolation,
                     bool shared, struct acre_error *err);
#endif
