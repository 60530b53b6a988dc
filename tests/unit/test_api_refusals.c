/* What of a flood of refusals is recorded (SEC-3): some one by one, the others as a number; nobody
 * uses up what is others'. */
#include "api/refusals.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

struct seen {
    uint32_t sums;
    uint64_t more;
    char last_user[80], last_address[80];
};

static void look(void *context, const struct refusals_sum *sum) {
    struct seen *seen = context;
    seen->sums++;
    seen->more += sum->more;
    snprintf(seen->last_user, sizeof(seen->last_user), "%s",
             sum->user != NULL ? sum->user : "nobody");
    snprintf(seen->last_address, sizeof(seen->last_address), "%s", sum->address);
}

static uint64_t note(struct acre_refusals *refusals, const char *user, const char *address,
                     uint64_t times) {
    uint64_t recorded = 0;
    for (uint64_t i = 0; i < times; i++) {
        recorded += refusals_note(refusals, user, address);
    }
    return recorded;
}

static void a_caller_has_its_records_and_the_rest_is_counted(void) {
    struct acre_refusals *refusals = refusals_create();
    for (int minute = 0; minute < 3; minute++) { /* each begins anew */
        struct seen seen = {0};
        CHECK_U64(note(refusals, "ada", "unix:1", 10), 10);
        CHECK_U64(note(refusals, "mallory", "10.0.0.1", 100000), ACRE_REFUSALS_EACH);
        CHECK_U64(note(refusals, "mallory", "10.0.0.2", 5), 0); /* from wherever */
        CHECK_U64(note(refusals, "ada", "unix:1", 10), 10);
        refusals_turn(refusals, look, &seen);
        CHECK_EQ(seen.sums, 1);
        CHECK_U64(seen.more, 100005 - ACRE_REFUSALS_EACH);
        CHECK_STR(seen.last_user, "mallory");
        CHECK_STR(seen.last_address, "10.0.0.2");
    }
    struct seen nothing = {0};
    refusals_turn(refusals, look, &nothing);
    CHECK_EQ(nothing.sums, 0);
    refusals_destroy(refusals);
    refusals_destroy(NULL);
}

/* However many addresses there are: few records, few sums, none lost, and users keep theirs. */
static void many_addresses_are_counted_together(void) {
    struct acre_refusals *refusals = refusals_create();
    uint64_t recorded = 0;
    for (int i = 0; i < 50000; i++) {
        char address[64];
        snprintf(address, sizeof(address), "10.%d.%d.%d", i / 65536, i / 256 % 256, i % 256);
        recorded += refusals_note(refusals, NULL, address);
    }
    CHECK(recorded > 0 && recorded <= ACRE_REFUSALS_STRANGERS);
    CHECK_U64(note(refusals, "ada", "unix:1", 60), 60);
    struct seen seen = {0};
    refusals_turn(refusals, look, &seen);
    CHECK(seen.sums <= ACRE_REFUSALS_STRANGERS_KEPT + 1);
    CHECK_U64(seen.more + recorded, 50000);
    CHECK_STR(seen.last_user, "nobody");
    CHECK_STR(seen.last_address, "");
    refusals_destroy(refusals);
}

static void all_users_together_have_a_limit_too(void) {
    struct acre_refusals *refusals = refusals_create();
    uint64_t recorded = 0;
    for (int i = 0; i < 1000; i++) {
        char name[128];
        snprintf(name, sizeof(name), "user-%d", i);
        recorded += note(refusals, name, "unix:1", 50);
    }
    CHECK_U64(recorded, ACRE_REFUSALS_USERS);
    struct seen seen = {0};
    refusals_turn(refusals, look, &seen);
    CHECK(seen.sums <= ACRE_REFUSALS_USERS_KEPT + 1);
    CHECK_U64(seen.more + recorded, 50000);
    char name[4096]; /* nothing is written over */
    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    CHECK_U64(note(refusals, name, name, 61), 60);
    CHECK_U64(note(refusals, NULL, name, 61), 60);
    refusals_destroy(refusals);
}

static const struct acre_test tests[] = {
    {"a_caller_has_its_records_and_the_rest_is_counted",
     a_caller_has_its_records_and_the_rest_is_counted, 0},
    {"many_addresses_are_counted_together", many_addresses_are_counted_together, 0},
    {"all_users_together_have_a_limit_too", all_users_together_have_a_limit_too, 0},
};

ACRE_TEST_MAIN(tests)
