/* Spinning: for as long as asked, no less, and not again after that. */
#include "core/spin.h"
#include "support/test.h"

static void it_lasts_as_long_as_asked_and_then_is_over(void) {
    static const uint64_t limits_ns[] = {0, 1, ACRE_SPIN_ANSWER_NS, ACRE_SPIN_QUEUE_NS};
    for (size_t i = 0; i < ACRE_COUNT(limits_ns); i++) {
        acre_test_context("limit %zu", i);
        struct acre_spin spin = {0};
        uint64_t begun_ns = acre_monotonic_ns();
        uint64_t looks = 0;
        while (acre_spin(&spin, limits_ns[i])) {
            looks++;
        }
        CHECK(acre_monotonic_ns() - begun_ns >= limits_ns[i]);
        CHECK_EQ(looks % ACRE_SPIN_LOOKS, 0); /* the clock was read at no other look */
        CHECK_EQ(looks > 0, limits_ns[i] > 0);
        for (uint32_t again = 0; again < 3 * ACRE_SPIN_LOOKS; again++) {
            CHECK(!acre_spin(&spin, limits_ns[i]));
            CHECK(!acre_spin(&spin, UINT64_MAX));
        }
    }
}

/* And does not begin again when the clock is read. */
static void a_wait_begins_with_its_first_look(void) {
    struct acre_spin spin = {0};
    CHECK(acre_spin(&spin, UINT64_C(3600000000000)));
    uint64_t begun_ns = spin.begun_ns;
    CHECK(begun_ns > 0 && begun_ns <= acre_monotonic_ns());
    for (uint32_t i = 0; i < 10 * ACRE_SPIN_LOOKS; i++) {
        CHECK(acre_spin(&spin, UINT64_C(3600000000000)));
    }
    CHECK_U64(spin.begun_ns, begun_ns);
}

static const struct acre_test tests[] = {
    {"it_lasts_as_long_as_asked_and_then_is_over", it_lasts_as_long_as_asked_and_then_is_over, 0},
    {"a_wait_begins_with_its_first_look", a_wait_begins_with_its_first_look, 0},
};
ACRE_TEST_MAIN(tests)
