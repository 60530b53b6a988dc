/* A caller that would spoil the books is stopped before it does: asserts at the ledger's boundary.
 * Bad requests are no such thing: they get an error (test_ledger_refuse.c). */
#include "ledger/outlook.h"
#include "ledger/place.h"
#include "ledger/shape.h"
#include "support/dies.h"
#include "support/ledger_kit.h"

static struct acre_ledger *ledger; /* a/0 has 300 milli in use by share, b is drained */

static const struct acre_part on_a0 = {.node = 0, .device = 0, .milli = 300, .by_share = true};

static void give_more_than_is_held(void) {
    struct acre_part part = on_a0;
    part.milli = 301;
    books_give(ledger, &part, 1, false);
}
static void give_memory_that_was_not_asked_for(void) {
    struct acre_part part = on_a0;
    part.by_share = false;
    part.mib = 1;
    books_give(ledger, &part, 1, false);
}
static void give_nothing(void) {
    books_give(ledger, &on_a0, 0, false);
}
static void take_as_no_kind(void) {
    books_take(ledger, &on_a0, 1, ACRE_ISOLATION_COUNT, false, false, NULL);
}
static void end_as_pending(void) {
    grant_end(ledger, grants_find(ledger->grants, 1), ACRE_ALLOCATION_PENDING, KIT_NOW_MS);
}
static void refile_a_device_of_another_node(void) {
    shapes_refile_device(ledger, 0, 2);
}
static void refile_a_drained_node(void) {
    shapes_refile_device(ledger, 1, 2);
}
static void place_on_a_drained_node(void) {
    struct acre_part part;
    struct acre_request request = kit_share(100);
    struct want want;
    if (want_from(ledger, &request, &want, NULL) == 0) {
        place_on_slot(ledger, &want, 1, 0, &part);
    }
}
static void ask_a_node_that_is_not_there(void) {
    struct acre_request request = kit_share(100);
    acre_ledger_may_fit_on(ledger, &request, 2);
}
static void name_an_event_that_is_none(void) {
    acre_ledger_event_name((enum acre_ledger_event_kind)99);
}
static void create_with_rules_that_allow_nothing(void) {
    struct acre_rules rules = *rules_default();
    rules.min_milli = rules.max_milli + 1;
    acre_ledger_create(&(struct acre_ledger_options){.rules = &rules});
}

static void a_wrong_caller_is_stopped(void) {
    static const struct {
        const char *what;
        void (*call)(void);
    } rows[] = {
        {"give more than is held", give_more_than_is_held},
        {"give memory that was not asked for", give_memory_that_was_not_asked_for},
        {"give nothing", give_nothing},
        {"take as no kind", take_as_no_kind},
        {"end as pending", end_as_pending},
        {"refile a device of another node", refile_a_device_of_another_node},
        {"refile a drained node", refile_a_drained_node},
        {"place on a drained node", place_on_a_drained_node},
        {"ask a node that is not there", ask_a_node_that_is_not_there},
        {"name an event that is none", name_an_event_that_is_none},
        {"create with rules that allow nothing", create_with_rules_that_allow_nothing},
    };
    ledger = kit_cluster(ACRE_STRATEGY_FIRST_FIT, "300 0|0");
    REQUIRE_EQ(acre_ledger_drain_node(ledger, 1, true, NULL), 0);
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        acre_test_context("%s", rows[i].what);
        CHECK(acre_dies(rows[i].call));
    }
    kit_destroy(ledger);
}

static const struct acre_test tests[] = {
    {"a_wrong_caller_is_stopped", a_wrong_caller_is_stopped, 0},
};

ACRE_TEST_MAIN(tests)
