/* Policies: whatever the bytes, a policy that is written and read back the same, or a refusal that
 * can be read and leaves the output alone. */
#include "fuzz.h"
#include "sched/policy.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct acre_str text = {(const char *)data, size};
    struct acre_policy *policies = acre_calloc(2, sizeof(*policies));
    struct acre_error err = {0};
    int r = acre_policy_load("policy", text, acre_policy_default(), &policies[0], &err);
    if (r < 0) {
        acre_fuzz_check_error(&err, r);
        ACRE_ASSERT(policies[0].half_life_ms == 0 && policies[0].quota_count == 0);
        free(policies);
        return 0;
    }
    ACRE_ASSERT((unsigned)policies[0].kind < ACRE_POLICY_COUNT);
    ACRE_ASSERT(policies[0].half_life_ms >= 1000 && policies[0].priority_age_ms >= 1000);
    ACRE_ASSERT(policies[0].retry_base_ms <= policies[0].retry_max_ms);
    struct acre_buf buf;
    struct acre_json json;
    acre_buf_init(&buf, ACRE_POLICY_BYTES_MAX);
    acre_json_begin(&json, &buf, false);
    acre_policy_write(&policies[0], &json);
    ACRE_ASSERT(acre_json_end(&json) == 0);
    r = acre_policy_load("again", acre_str_from(buf.data), acre_policy_default(), &policies[1],
                         &err);
    ACRE_ASSERT(r == 0 && memcmp(&policies[0], &policies[1], sizeof(policies[0])) == 0);
    acre_buf_finish(&buf);
    free(policies);
    return 0;
}
