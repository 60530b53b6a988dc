/* Files of learned costs: whatever the bytes, reading looks at nothing outside of them; what it
 * accepts says the same when it is written and read again, and can be chosen from. */
#include "compute/auto/cost.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct costs costs, again;
    struct acre_str bytes = {(const char *)data, size};
    struct cost_owner owner = {0}, read = {0};
    struct acre_error err = {0};
    int r = costs_read(bytes, &owner, &costs, &err);
    if (r < 0) {
        acre_fuzz_check_error(&err, r);
        ACRE_ASSERT(r == ACRE_ECORRUPT);
        return 0;
    }
    struct acre_buf text;
    acre_buf_init(&text, COST_TEXT_MAX_BYTES);
    costs_write(&costs, &owner, &text);
    ACRE_ASSERT(!acre_buf_failed(&text));
    r = costs_read((struct acre_str){text.data, text.length}, &read, &again, NULL);
    ACRE_ASSERT(r == 0 && read.key == owner.key);
    for (uint32_t i = 0; i < COST_BUCKETS; i++) {
        struct cost_choice choice = costs_choose(&again, i, (1U << COST_VARIANTS_COUNT) - 1);
        ACRE_ASSERT(choice.variant < COST_VARIANTS_COUNT);
        for (uint32_t j = 0; j < COST_VARIANTS_COUNT; j++) {
            ACRE_ASSERT((costs.all[i][j].us < 0) == (again.all[i][j].us < 0));
            ACRE_ASSERT(costs.all[i][j].calls == again.all[i][j].calls);
        }
    }
    acre_buf_finish(&text);
    return 0;
}
