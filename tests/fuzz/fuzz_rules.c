/* Rules: whatever the bytes, rules within their ranges under which something is allowed, or a
 * refusal that can be read and leaves the rules alone. */
#include "fuzz.h"
#include "ledger/rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct acre_str text = {(const char *)data, size};
    struct acre_rules rules = {.min_milli = 77};
    struct acre_error err = {0};
    int r = rules_load("rules", text, &rules, &err);
    if (r < 0) {
        acre_fuzz_check_error(&err, r);
        ACRE_ASSERT(rules.min_milli == 77 && rules.isolation_mask == 0);
        return 0;
    }
    ACRE_ASSERT(rules.min_milli >= ACRE_RULES_MIN_MILLI && rules.min_milli <= rules.max_milli);
    ACRE_ASSERT(rules.max_milli <= ACRE_RULES_MAX_MILLI);
    ACRE_ASSERT(rules.isolation_mask > 0 && rules.isolation_mask < 1 << ACRE_ISOLATION_COUNT);
    ACRE_ASSERT(rules.max_allocations_per_device >= 1);
    ACRE_ASSERT(rules.max_allocations_per_device <= ACRE_RULES_ALLOCATIONS_MAX);
    for (unsigned i = 0; i < ACRE_ISOLATION_COUNT; i++) {
        bool allowed = (rules.isolation_mask & 1U << i) != 0;
        enum acre_isolation isolation = (enum acre_isolation)i;
        ACRE_ASSERT(rules_check(&rules, rules.max_milli, isolation, false, &err) ==
                    (allowed ? 0 : ACRE_EDENIED));
        ACRE_ASSERT(rules_check(&rules, rules.min_milli - 1, isolation, false, &err) ==
                    ACRE_EDENIED);
    }
    return 0;
}
