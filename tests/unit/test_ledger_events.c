/* Events (ALC-6): exactly what happened, in order, with its time, owner and id. */
#include "support/ledger_kit.h"

#include "core/buf.h"

#include <inttypes.h>

static void write_event(void *context, const struct acre_ledger_event *event) {
    struct acre_buf *out = context;
    acre_buf_printf(out, "%s %" PRIu64 " owner %" PRIu64, acre_ledger_event_name(event->kind),
                    event->now_ms, event->owner);
    if (event->allocation != 0) {
        acre_buf_printf(out, " #%" PRIu64, event->allocation);
    }
    if (event->code != 0) {
        acre_buf_printf(out, " %s", acre_error_name(event->code));
    }
    acre_buf_puts(out, "\n");
}

static struct acre_ledger *create(struct acre_buf *out, uint32_t devices) {
    acre_buf_init(out, 1 << 20);
    struct acre_ledger_options options = {.event = write_event, .event_context = out};
    struct acre_ledger *ledger = acre_ledger_create(&options);
    kit_add(ledger, "a", devices, KIT_MEMORY_MIB);
    return ledger;
}

static void finish(struct acre_ledger *ledger, struct acre_buf *out) {
    kit_destroy(ledger);
    acre_buf_finish(out);
}

/* Compare what was told since the last look. */
#define TOLD(out, text)                                                                            \
    (acre_check_str((out)->data, (text), false, "told", "expected", __FILE__, __LINE__),           \
     acre_buf_clear(out))

static int allocate(struct acre_ledger *ledger, uint64_t owner, struct acre_request request,
                    uint64_t now_ms, uint64_t *ret_id) {
    request.owner = owner;
    return acre_ledger_allocate(ledger, &request, now_ms, ret_id, NULL);
}

static void names_of_events(void) { /* ALC-6 */
    static const char *const names[] = {"requested", "allocated", "failed",
                                        "released",  "expired",   "modified"};
    for (size_t i = 0; i < ACRE_COUNT(names); i++) {
        CHECK_STR(acre_ledger_event_name((enum acre_ledger_event_kind)i), names[i]);
    }
}

static void allocation_and_release_are_told(void) {
    struct acre_buf out;
    struct acre_ledger *ledger = create(&out, 1);
    TOLD(&out, "");
    uint64_t id;
    CHECK_EQ(allocate(ledger, 11, kit_share(600), 1000, &id), 0);
    TOLD(&out, "requested 1000 owner 11\nallocated 1000 owner 11 #1\n");
    CHECK_EQ(allocate(ledger, 12, kit_share(600), 1001, &id), ACRE_ENOFIT);
    TOLD(&out, "requested 1001 owner 12\nfailed 1001 owner 12 NOFIT\n");
    CHECK_EQ(acre_ledger_release(ledger, 1, ACRE_ALLOCATION_COMPLETED, 1002, NULL), 0);
    TOLD(&out, "released 1002 owner 11 #1\n");
    CHECK_EQ(allocate(ledger, 12, kit_share(600), 1003, &id), 0);
    CHECK_EQ(acre_ledger_release(ledger, 2, ACRE_ALLOCATION_FAILED, 1004, NULL), 0);
    TOLD(&out, "requested 1003 owner 12\nallocated 1003 owner 12 #2\n"
               "released 1004 owner 12 #2 INTERNAL\n");
    finish(ledger, &out);
}

static void what_changed_nothing_is_not_told(void) {
    struct acre_buf out;
    struct acre_ledger *ledger = create(&out, 1);
    uint64_t id;
    struct acre_part part;
    uint32_t count;
    struct acre_request request = kit_share(500);
    CHECK_EQ(allocate(ledger, 1, kit_share(1001), 1000, &id), ACRE_EINVALID);
    request.expires_ms = 1000;
    CHECK_EQ(allocate(ledger, 1, request, 1000, &id), ACRE_EINVALID);
    request.expires_ms = 0;
    CHECK_EQ(acre_ledger_plan(ledger, &request, 1000, &part, 1, &count, NULL), 0);
    part.milli = 1001;
    CHECK_EQ(acre_ledger_place(ledger, &request, &part, 1, 0, 1000, &id, NULL), ACRE_ECONFLICT);
    CHECK_EQ(acre_ledger_release(ledger, 1, ACRE_ALLOCATION_COMPLETED, 1, NULL), ACRE_ENOTFOUND);
    CHECK_EQ(acre_ledger_activate(ledger, 1, 1, NULL), ACRE_ENOTFOUND);
    CHECK_EQ(acre_ledger_extend(ledger, 1, 5, 1, NULL), ACRE_ENOTFOUND);
    CHECK_EQ(acre_ledger_tick(ledger, 5000), 0);
    CHECK_EQ(acre_ledger_drain_device(ledger, 0, "hot", NULL), 0);
    CHECK_EQ(acre_ledger_set_foreign(ledger, 0, 5, NULL), 0);
    TOLD(&out, "");
    finish(ledger, &out);
}

static void a_replayed_allocation_was_requested_before(void) { /* place: allocated only */
    struct acre_buf out;
    struct acre_ledger *ledger = create(&out, 1);
    struct acre_request request = kit_share(500);
    request.owner = 5;
    struct acre_part part = {.milli = 500, .mib = 40779, .by_share = true};
    uint64_t id;
    CHECK_EQ(acre_ledger_place(ledger, &request, &part, 1, 77, 1000, &id, NULL), 0);
    TOLD(&out, "allocated 1000 owner 5 #77\n");
    finish(ledger, &out);
}

static void changes_and_ends_are_told(void) {
    struct acre_buf out;
    struct acre_ledger *ledger = create(&out, 1);
    uint64_t id;
    struct acre_request request = kit_share(200);
    request.pending = true;
    request.expires_ms = 3000;
    CHECK_EQ(allocate(ledger, 1, request, 1000, &id), 0);
    request.expires_ms = 2000;
    CHECK_EQ(allocate(ledger, 2, request, 1000, &id), 0);
    request.expires_ms = 2000;
    CHECK_EQ(allocate(ledger, 3, request, 1000, &id), 0);
    acre_buf_clear(&out);
    CHECK_EQ(acre_ledger_activate(ledger, 1, 1100, NULL), 0);
    CHECK_EQ(acre_ledger_extend(ledger, 1, 2500, 1200, NULL), 0);
    TOLD(&out, "modified 1100 owner 1 #1\nmodified 1200 owner 1 #1\n");
    CHECK_EQ(acre_ledger_tick(ledger, 2600), 3); /* soonest first, then by id */
    TOLD(&out, "expired 2600 owner 2 #2\nexpired 2600 owner 3 #3\nexpired 2600 owner 1 #1\n");
    finish(ledger, &out);
}

static void a_reservation_tells_like_any_other(void) { /* ALC-8: its allocation, and what it ends */
    struct acre_buf out;
    struct acre_ledger *ledger = create(&out, 2);
    const uint32_t devices[] = {0, 1};
    struct acre_reservation_spec spec = {.user = kit_name(ledger, "ann"),
                                         .devices = devices,
                                         .device_count = 2,
                                         .milli = 1000,
                                         .start_ms = 2000,
                                         .end_ms = 3000};
    uint64_t reservation;
    uint64_t id;
    CHECK_EQ(acre_ledger_reserve(ledger, &spec, 1000, &reservation, NULL), 0);
    TOLD(&out, "");
    CHECK_EQ(acre_ledger_tick(ledger, 2000), 1);
    TOLD(&out, "allocated 2000 owner 1 #1\n");
    struct acre_request request = kit_share(500);
    request.reservation = reservation;
    CHECK_EQ(allocate(ledger, 9, request, 2100, &id), 0);
    TOLD(&out, "requested 2100 owner 9\nallocated 2100 owner 9 #2\n");
    request.milli = 1000;
    request.gpus = 2;
    CHECK_EQ(allocate(ledger, 9, request, 2100, &id), ACRE_ENOFIT);
    TOLD(&out, "requested 2100 owner 9\nfailed 2100 owner 9 NOFIT\n");
    CHECK_EQ(acre_ledger_tick(ledger, 3000), 2); /* the reservation, and what was drawn on it */
    TOLD(&out, "expired 3000 owner 9 #2\nreleased 3000 owner 1 #1\n");
    finish(ledger, &out);
}

static const struct acre_test tests[] = {
    {"names_of_events", names_of_events, 0},
    {"allocation_and_release_are_told", allocation_and_release_are_told, 0},
    {"what_changed_nothing_is_not_told", what_changed_nothing_is_not_told, 0},
    {"a_replayed_allocation_was_requested_before", a_replayed_allocation_was_requested_before, 0},
    {"changes_and_ends_are_told", changes_and_ends_are_told, 0},
    {"a_reservation_tells_like_any_other", a_reservation_tells_like_any_other, 0},
};
ACRE_TEST_MAIN(tests)
