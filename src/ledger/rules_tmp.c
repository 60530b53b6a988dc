#include "ledger/rules.h"
static const struct acre_rules d = {100, 1000, 15, 10, true};
const struct acre_rules *acre_rules_default(void) {
    return &d;
}
int acre_rules_check(const struct acre_rules *rules, uint32_t milli, enum acre_isolation isolation,
                     bool shared, struct acre_error *err) {
    (void)rules;
    (void)milli;
    (void)isolation;
    (void)shared;
    (void)err;
    return 0;
}
const char *acre_isolation_name(enum acre_isolation i) {
    (void)i;
    return "x";
}
