/* Reservations (ALC-8): windows on devices, what may be beside them, and their states. */
#include "support/ledger_kit.h"

#include <stdio.h>
#include <stdlib.h>

#define DAY_MS    (UINT64_C(24) * 3600 * 1000)
#define PENDING   ACRE_RESERVATION_PENDING
#define ACTIVE    ACRE_RESERVATION_ACTIVE
#define COMPLETED ACRE_RESERVATION_COMPLETED
#define CANCELLED ACRE_RESERVATION_CANCELLED
#define EXPIRED   ACRE_RESERVATION_EXPIRED

static const uint32_t device_zero[] = {0};

/* Device 0 from `start_ms` to `end_ms` for user 1. */
static struct acre_reservation_spec window(uint32_t milli, uint64_t start_ms, uint64_t end_ms) {
    return (struct acre_reservation_spec){.user = 1,
                                          .devices = device_zero,
                                          .device_count = 1,
                                          .milli = milli,
                                          .start_ms = start_ms,
                                          .end_ms = end_ms};
}

static int try_reserve(struct acre_ledger *ledger, struct acre_reservation_spec spec) {
    uint64_t id = 4711;
    char *before = kit_snapshot(ledger);
    int r = acre_ledger_reserve(ledger, &spec, KIT_NOW_MS, &id, NULL);
    if (r < 0) {
        char *after = kit_snapshot(ledger);
        CHECK_STR(after, before);
        CHECK_U64(id, 4711);
        free(after);
    }
    free(before);
    KIT_SOUND(ledger);
    return r;
}

static uint64_t reserve(struct acre_ledger *ledger, struct acre_reservation_spec spec) {
    uint64_t id = 0;
    struct acre_error err = {0};
    acre_ledger_reserve(ledger, &spec, KIT_NOW_MS, &id, &err);
    CHECK_STR(err.text, "");
    REQUIRE(id != 0);
    KIT_SOUND(ledger);
    return id;
}

static enum acre_reservation_state state_of(const struct acre_ledger *ledger, uint64_t id) {
    struct acre_reservation reservation;
    REQUIRE(acre_ledger_find_reservation(ledger, id, &reservation));
    CHECK_EQ(reservation.allocation != 0, reservation.state == ACTIVE);
    return reservation.state;
}

static struct acre_request until(struct acre_request request, uint64_t expires_ms) {
    request.expires_ms = expires_ms;
    return request;
}

static void bad_specs_are_refused(void) { /* seed vector B6, and what else can be wrong */
    static const uint32_t twice[] = {0, 1, 0};
    static const uint32_t unknown[] = {0, 2};
    static const uint32_t last[] = {UINT32_MAX};
    static const struct {
        const char *what;
        struct acre_reservation_spec spec;
        int code;
        const char *says;
    } cases[] = {
        {"nobody", {0, device_zero, 1, 500, 0, 2000, 3000}, ACRE_EINVALID, "user: empty"},
        {"nothing", {1, device_zero, 0, 500, 0, 2000, 3000}, ACRE_EINVALID, "devices: 0 devices;"},
        {"unknown device",
         {1, unknown, 2, 500, 0, 2000, 3000},
         ACRE_ENOTFOUND,
         "there is no device 2;"},
        {"no such device", {1, last, 1, 500, 0, 2000, 3000}, ACRE_ENOTFOUND, "there are 2 devices"},
        {"twice", {1, twice, 3, 500, 0, 2000, 3000}, ACRE_EINVALID, "devices: 'a/0' appears twice"},
        {"isolation",
         {1, device_zero, 1, 500, 4, 2000, 3000},
         ACRE_EINVALID,
         "unknown isolation 4;"},
        {"past start",
         {1, device_zero, 1, 500, 0, 999, 3000},
         ACRE_EINVALID,
         "start_ms: 999 is in"},
        {"no duration", {1, device_zero, 1, 500, 0, 2000, 2000}, ACRE_EINVALID, "end_ms: not"},
        {"ends before it starts",
         {1, device_zero, 1, 500, 0, 2000, 1500},
         ACRE_EINVALID,
         "end_ms: not after the start; accepted: at most 7 days after it"},
        {"too long",
         {1, device_zero, 1, 500, 0, 2000, 2001 + 7 * DAY_MS},
         ACRE_EINVALID,
         "end_ms: 7 days 1 h after the start; accepted: at most 7 days"},
        {"overflowing end", {1, device_zero, 1, 500, 0, 2000, UINT64_MAX}, ACRE_EINVALID, "end_ms"},
        {"too far ahead",
         {1, device_zero, 1, 500, 0, 1001 + 30 * DAY_MS, 2000 + 30 * DAY_MS},
         ACRE_EINVALID,
         "start_ms: 30 days 1 h ahead is too far; accepted: at most 30 days ahead"},
        {"overflowing start",
         {1, device_zero, 1, 500, 0, UINT64_MAX - 1, UINT64_MAX},
         ACRE_EINVALID,
         "ahead is too far"},
        {"no share", {1, device_zero, 1, 0, 0, 2000, 3000}, ACRE_EINVALID, "milli: 0"},
        {"1.001 devices", {1, device_zero, 1, 1001, 0, 2000, 3000}, ACRE_EINVALID, "1001"},
        {"1.5 devices", {1, device_zero, 1, 1500, 0, 2000, 3000}, ACRE_EINVALID, "milli: 1500"},
        {"overflowing share",
         {1, device_zero, 1, UINT32_MAX, 0, 2000, 3000},
         ACRE_EINVALID,
         "milli: 4294967295"},
    };
    static const uint64_t memories_mib[] = {KIT_MEMORY_MIB, 0};
    for (size_t m = 0; m < ACRE_COUNT(memories_mib); m++) {
        struct acre_ledger *ledger = kit_create(ACRE_STRATEGY_DEFAULT);
        kit_add(ledger, "a", 2, memories_mib[m]);
        for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
            acre_test_context("%s", cases[i].what);
            CHECK_EQ(try_reserve(ledger, cases[i].spec), cases[i].code);
            uint64_t id;
            struct acre_error err = {0};
            acre_ledger_reserve(ledger, &cases[i].spec, KIT_NOW_MS, &id, &err);
            CHECK_EQ(err.code, cases[i].code);
            CHECK_HAS(err.text, cases[i].says);
        }
        kit_destroy(ledger);
    }
}

static void devices_that_are_not_shared_that_way(void) { /* ALC-4, DEV-2 */
    struct acre_ledger *ledger = kit_create(ACRE_STRATEGY_DEFAULT);
    struct acre_device_spec devices[] = {{.memory_mib = 1000, .exclusive_only = true},
                                         {.memory_mib = 1000, .is_mig = true},
                                         {.memory_mib = 1000, .step_milli = 125}};
    kit_add_devices(ledger, "a", devices, 3);
    for (uint32_t device = 0; device < 3; device++) {
        struct acre_reservation_spec spec = window(300, 2000, 3000);
        spec.devices = &device;
        struct acre_error err = {0};
        uint64_t id;
        CHECK_EQ(try_reserve(ledger, spec), ACRE_EINVALID);
        acre_ledger_reserve(ledger, &spec, KIT_NOW_MS, &id, &err);
        CHECK_HAS(err.text, "milli: 0.3; device 'a/");
        spec.milli = 1000;
        CHECK_EQ(try_reserve(ledger, spec), 0);
    }
    uint32_t device = 2;
    struct acre_reservation_spec spec = window(375, 4000, 5000);
    spec.devices = &device;
    CHECK_EQ(try_reserve(ledger, spec), 0);
    kit_destroy(ledger);
}

static void windows_meet_only_when_they_share_and_fit(void) { /* ALC-8, B6: overlap */
    enum { NO = ACRE_ECONFLICT };
    static const struct {
        const char *what;
        uint32_t first_milli;
        uint32_t milli;
        enum acre_isolation isolation;
        uint64_t start_ms, end_ms; /* the first one's: 2000 to 3000 */
        int expect;
    } cases[] = {
        {"the same window", 1000, 1000, ACRE_ISOLATION_NONE, 2000, 3000, NO},
        {"over its start", 1000, 1000, ACRE_ISOLATION_NONE, 1500, 2001, NO},
        {"over its end", 1000, 1000, ACRE_ISOLATION_NONE, 2999, 3500, NO},
        {"around it", 1000, 1000, ACRE_ISOLATION_NONE, 1500, 3500, NO},
        {"inside it", 1000, 1000, ACRE_ISOLATION_NONE, 2400, 2600, NO},
        {"up to its start", 1000, 1000, ACRE_ISOLATION_NONE, 1500, 2000, 0},
        {"from its end", 1000, 1000, ACRE_ISOLATION_NONE, 3000, 3500, 0},
        {"both share and fit", 500, 500, ACRE_ISOLATION_NONE, 2500, 3500, 0},
        {"both share and do not fit", 600, 500, ACRE_ISOLATION_NONE, 2500, 3500, NO},
        {"around it, and do not fit", 600, 500, ACRE_ISOLATION_NONE, 1500, 3500, NO},
        {"shares of two kinds", 300, 300, ACRE_ISOLATION_MPS, 2500, 3500, NO},
        {"shares of two kinds, one after the other", 300, 300, ACRE_ISOLATION_MPS, 3000, 3500, 0},
        {"a share beside a whole", 1000, 100, ACRE_ISOLATION_NONE, 2500, 3500, NO},
        {"a whole beside a share", 100, 1000, ACRE_ISOLATION_NONE, 2500, 3500, NO},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        acre_test_context("%s", cases[i].what);
        struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_DEFAULT, "0 0");
        reserve(ledger, window(cases[i].first_milli, 2000, 3000));
        struct acre_reservation_spec spec =
            window(cases[i].milli, cases[i].start_ms, cases[i].end_ms);
        spec.isolation = cases[i].isolation;
        CHECK_EQ(try_reserve(ledger, spec), cases[i].expect);
        struct acre_error err = {0};
        uint64_t id;
        if (cases[i].expect < 0) {
            acre_ledger_reserve(ledger, &spec, KIT_NOW_MS, &id, &err);
            CHECK_HAS(err.text, "device 'a/0' is in use or reserved in that period; a share of");
        }
        uint32_t other = 1; /* another device: no conflict */
        spec.devices = &other;
        CHECK_EQ(try_reserve(ledger, spec), 0);
        kit_destroy(ledger);
    }
}

static void three_windows_are_added_up(void) { /* the least over time is what counts */
    struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_DEFAULT, "0");
    reserve(ledger, window(400, 2000, 4000));
    reserve(ledger, window(400, 3000, 5000));
    CHECK_EQ(try_reserve(ledger, window(300, 2000, 3500)), ACRE_ECONFLICT); /* 1100 at 3000 */
    CHECK_EQ(try_reserve(ledger, window(300, 2000, 3000)), 0);
    CHECK_EQ(try_reserve(ledger, window(600, 4000, 6000)), 0);
    CHECK_EQ(try_reserve(ledger, window(100, 4500, 4600)), ACRE_ECONFLICT);
    CHECK_EQ(try_reserve(ledger, window(1000, 6000, 7000)), 0);
    kit_destroy(ledger);
}

static void work_counts_until_its_end(void) { /* ALC-8: held in that window */
    static const struct {
        const char *what;
        uint32_t held_milli;
        uint64_t held_until_ms;
        uint32_t milli;
        int expect; /* of a window from 5000 to 6000 */
    } cases[] = {
        {"open-ended work, whole", 500, 0, 1000, ACRE_ECONFLICT},
        {"open-ended work, beside it", 500, 0, 500, 0},
        {"open-ended work, too much beside it", 500, 0, 501, ACRE_ECONFLICT},
        {"work that ends before", 500, 4000, 1000, 0},
        {"work that ends at the start", 1000, 5000, 1000, 0},
        {"work that ends after the start", 500, 5001, 1000, ACRE_ECONFLICT},
        {"work that ends after the start, beside it", 500, 5001, 500, 0},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        acre_test_context("%s", cases[i].what);
        struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_DEFAULT, "0");
        KIT_TAKE(ledger, until(kit_share(cases[i].held_milli), cases[i].held_until_ms));
        CHECK_EQ(try_reserve(ledger, window(cases[i].milli, 5000, 6000)), cases[i].expect);
        kit_destroy(ledger);
    }
}

static void work_that_ends_in_time_may_use_the_device(void) { /* ALC-8 */
    for (int strategy = ACRE_STRATEGY_LEAST_WASTE; strategy < ACRE_STRATEGY_COUNT; strategy++) {
        acre_test_context("%s", acre_strategy_name((enum acre_strategy)strategy));
        struct acre_ledger *ledger = kit_cluster((enum acre_strategy)strategy, "0");
        reserve(ledger, window(600, 5000, 6000));
        CHECK_EQ(kit_row(ledger, "a/0").largest_milli, 400);
        KIT_REFUSED(ledger, kit_share(500), ACRE_ENOFIT,
                    "no room now: the largest free share of a GPU is 0.4 on a; it asks for 0.5; "
                    "ask for less or wait");
        KIT_REFUSED(ledger, until(kit_share(500), 5001), ACRE_ENOFIT, "no room now");
        KIT_REFUSED(ledger, until(kit_share(500), UINT64_MAX), ACRE_ENOFIT, "no room now");
        uint64_t short_work = KIT_TAKE(ledger, until(kit_share(500), 5000));
        KIT_TAKE(ledger, kit_share(400)); /* beside the window, for ever */
        KIT_REFUSED(ledger, kit_share(100), ACRE_ENOFIT, "full");
        KIT_TAKE(ledger, until(kit_share(100), 4999));
        KIT_RELEASE(ledger, short_work);
        struct acre_request other = until(kit_share(100), 5001);
        KIT_REFUSED(ledger, other, ACRE_ENOFIT, "no room now");
        CHECK_EQ(acre_ledger_tick(ledger, 5000), 2);
        CHECK_EQ(state_of(ledger, 1), ACTIVE);
        CHECK_EQ(kit_row(ledger, "a/0").milli_used, 1000);
        kit_destroy(ledger);
    }
}

static void whole_work_before_a_whole_window(void) { /* on the reserved device if it must */
    struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_DEFAULT, "0|0");
    reserve(ledger, window(1000, 5000, 6000));
    KIT_PLACED(ledger, until(kit_whole(1), 5000), "b/0"); /* free ones first */
    uint64_t id = KIT_PLACED(ledger, until(kit_whole(1), 5000), "a/0");
    KIT_PLACED(ledger, until(kit_whole(1), 5000), "-");
    CHECK_EQ(acre_ledger_extend(ledger, id, 4000, KIT_NOW_MS, NULL), 0);
    struct acre_error err = {0};
    CHECK_EQ(acre_ledger_extend(ledger, id, 5001, KIT_NOW_MS, &err), ACRE_ECONFLICT);
    CHECK_HAS(err.text, "device 'a/0' is reserved before that");
    CHECK_EQ(acre_ledger_extend(ledger, id, 0, KIT_NOW_MS, &err), ACRE_ECONFLICT);
    CHECK_EQ(acre_ledger_extend(ledger, id, 5000, KIT_NOW_MS, NULL), 0);
    struct acre_allocation allocation;
    REQUIRE(acre_ledger_find(ledger, id, &allocation));
    CHECK_U64(allocation.expires_ms, 5000);
    KIT_SOUND(ledger);
    CHECK_EQ(acre_ledger_tick(ledger, 5000), 3);
    CHECK_EQ(state_of(ledger, 1), ACTIVE);
    kit_destroy(ledger);
}

static void ties_before_a_window_do_not_depend_on_history(void) { /* ALC-3: the freer, the first */
    static const uint32_t orders[][2] = {{0, 1}, {1, 0}};
    for (size_t i = 0; i < ACRE_COUNT(orders); i++) {
        acre_test_context("reserved as %u, %u", orders[i][0], orders[i][1]);
        struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_BEST_FIT, "0 0");
        struct acre_reservation_spec spec = window(1000, 5000, 6000);
        spec.devices = orders[i];
        spec.device_count = 2;
        reserve(ledger, spec);
        static const struct acre_part parts[] = {
            {.device = 0, .milli = 500, .mib = 40779, .by_share = true},
            {.device = 1, .milli = 500, .mib = 1000},
        };
        for (size_t j = 0; j < ACRE_COUNT(parts); j++) {
            struct acre_request request = until(kit_share(500), 4000);
            uint64_t id;
            REQUIRE_EQ(acre_ledger_place(ledger, &request, &parts[j], 1, 0, KIT_NOW_MS, &id, NULL),
                       0);
        }
        KIT_PLACED(ledger, until(kit_share(300), 4000), "a/1"); /* equal shares, more memory */
        kit_destroy(ledger);
    }
}

static void an_extension_leaves_room_for_the_window(void) { /* all parts of it together */
    struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_DEFAULT, "0");
    uint64_t gang = KIT_TAKE(ledger, until(kit_gang(2, 1, 400), 3000));
    uint64_t single = KIT_TAKE(ledger, until(kit_share(200), 3000));
    uint64_t id = reserve(ledger, window(500, 5000, 6000));
    CHECK_EQ(acre_ledger_extend(ledger, gang, 5500, KIT_NOW_MS, NULL), ACRE_ECONFLICT);
    CHECK_EQ(acre_ledger_extend(ledger, gang, 0, KIT_NOW_MS, NULL), ACRE_ECONFLICT);
    CHECK_EQ(acre_ledger_extend(ledger, gang, 5000, KIT_NOW_MS, NULL), 0);
    CHECK_EQ(acre_ledger_extend(ledger, single, 5500, KIT_NOW_MS, NULL), 0);
    CHECK_EQ(acre_ledger_extend(ledger, single, 0, KIT_NOW_MS, NULL), 0);
    KIT_SOUND(ledger);
    acre_ledger_tick(ledger, 5000);
    CHECK_EQ(state_of(ledger, id), ACTIVE);
    kit_destroy(ledger);
}

static void states_follow_the_clock(void) { /* ALC-8 */
    static const struct {
        uint64_t now_ms;
        enum acre_reservation_state early, late; /* windows 2000-3000 and 3000-4000 */
        uint32_t changed;
    } steps[] = {
        {1500, PENDING, PENDING, 0},     {1999, PENDING, PENDING, 0},
        {2000, ACTIVE, PENDING, 1},      {2999, ACTIVE, PENDING, 0},
        {3000, COMPLETED, ACTIVE, 2},    {3500, COMPLETED, ACTIVE, 0},
        {4000, COMPLETED, COMPLETED, 1}, {9000, COMPLETED, COMPLETED, 0},
    };
    struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_DEFAULT, "0");
    uint64_t early = reserve(ledger, window(1000, 2000, 3000));
    uint64_t late = reserve(ledger, window(1000, 3000, 4000));
    for (size_t i = 0; i < ACRE_COUNT(steps); i++) {
        acre_test_context("at %llu", (unsigned long long)steps[i].now_ms);
        CHECK_EQ(acre_ledger_tick(ledger, steps[i].now_ms), steps[i].changed);
        KIT_SOUND(ledger);
        CHECK_EQ(state_of(ledger, early), steps[i].early);
        CHECK_EQ(state_of(ledger, late), steps[i].late);
        bool held = steps[i].early == ACTIVE || steps[i].late == ACTIVE;
        CHECK_EQ(kit_row(ledger, "a/0").milli_used, held ? 1000 : 0);
    }
    KIT_TAKE(ledger, kit_whole(1));
    kit_destroy(ledger);
}

static void a_window_nobody_ticked_is_expired(void) { /* reservation.h */
    struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_DEFAULT, "0");
    uint64_t id = reserve(ledger, window(1000, 2000, 3000));
    uint64_t next = reserve(ledger, window(1000, 5000, 6000));
    CHECK_EQ(acre_ledger_tick(ledger, 3000), 1);
    CHECK_EQ(state_of(ledger, id), EXPIRED);
    CHECK_EQ(state_of(ledger, next), PENDING);
    CHECK_EQ(acre_ledger_cancel_reservation(ledger, id, 3000, NULL), ACRE_ECONFLICT);
    CHECK_EQ(acre_ledger_tick(ledger, 7000), 1);
    CHECK_EQ(state_of(ledger, next), EXPIRED);
    KIT_TAKE(ledger, kit_whole(1));
    kit_destroy(ledger);
}

static void one_that_starts_now_is_active_at_once(void) {
    struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_DEFAULT, "0 0");
    static const uint32_t both[] = {1, 0};
    struct acre_reservation_spec spec = window(600, KIT_NOW_MS, 3000);
    spec.devices = both;
    spec.device_count = 2;
    spec.isolation = ACRE_ISOLATION_MPS;
    uint64_t id = reserve(ledger, spec);
    struct acre_reservation shown;
    REQUIRE(acre_ledger_find_reservation(ledger, id, &shown));
    CHECK_EQ(shown.state, ACTIVE);
    CHECK_EQ(shown.user, 1);
    CHECK_EQ(shown.milli, 600);
    CHECK_EQ(shown.isolation, ACRE_ISOLATION_MPS);
    CHECK_U64(shown.start_ms, KIT_NOW_MS);
    CHECK_U64(shown.end_ms, 3000);
    CHECK_EQ(shown.device_count, 2);
    CHECK_EQ(shown.devices[0], 1);
    CHECK_EQ(shown.devices[1], 0);
    struct acre_allocation own;
    REQUIRE(acre_ledger_find(ledger, shown.allocation, &own));
    CHECK_EQ(own.part_count, 2);
    CHECK_EQ(own.parts[0].device, 1);
    CHECK_EQ(own.parts[0].milli, 600);
    CHECK_EQ(own.parts[0].mib, KIT_MEMORY_MIB * 6 / 10);
    CHECK_EQ(own.tenant, 1);
    CHECK(!own.exclusive);
    KIT_REFUSED(ledger, kit_share(100), ACRE_ENOFIT, ""); /* another kind */
    struct acre_request beside = kit_share(400);
    beside.isolation = ACRE_ISOLATION_MPS;
    KIT_PLACED(ledger, beside, "a/0");
    kit_destroy(ledger);
}

static void cancelling(void) { /* B6: cancel completed -> error */
    struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_DEFAULT, "0");
    struct acre_error err = {0};
    CHECK_EQ(acre_ledger_cancel_reservation(ledger, 1, KIT_NOW_MS, &err), ACRE_ENOTFOUND);
    CHECK_HAS(err.text, "there is no reservation 1");
    uint64_t pending = reserve(ledger, window(1000, 2000, 3000));
    CHECK_EQ(acre_ledger_cancel_reservation(ledger, pending, KIT_NOW_MS, NULL), 0);
    CHECK_EQ(state_of(ledger, pending), CANCELLED);
    CHECK_EQ(kit_row(ledger, "a/0").largest_milli, 1000);
    CHECK_EQ(acre_ledger_cancel_reservation(ledger, pending, KIT_NOW_MS, &err), ACRE_ECONFLICT);
    CHECK_HAS(err.text, "reservation 1 has already ended (cancelled)");
    uint64_t active = reserve(ledger, window(1000, KIT_NOW_MS, 3000));
    CHECK_EQ(state_of(ledger, active), ACTIVE);
    CHECK_EQ(acre_ledger_cancel_reservation(ledger, active, 1500, NULL), 0);
    KIT_SOUND(ledger);
    CHECK_EQ(state_of(ledger, active), CANCELLED);
    CHECK_EQ(kit_row(ledger, "a/0").milli_used, 0);
    uint64_t done = reserve(ledger, window(1000, KIT_NOW_MS, 3000));
    acre_ledger_tick(ledger, 3000);
    CHECK_EQ(acre_ledger_cancel_reservation(ledger, done, 3000, &err), ACRE_ECONFLICT);
    CHECK_HAS(err.text, "reservation 3 has already ended (completed)");
    kit_destroy(ledger);
}

static void limits_per_user_and_device(void) { /* ALC-8, B6: the third of two is an error */
    struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_DEFAULT, "0 0 0");
    struct acre_reservation_limits limits = {
        .per_user = 2, .per_device = 10, .max_duration_ms = 1000, .max_ahead_ms = 100000};
    acre_ledger_set_reservation_limits(ledger, &limits);
    struct acre_reservation_spec spec = window(1000, 2000, 3000);
    spec.user = kit_name(ledger, "ann");
    uint64_t first = reserve(ledger, spec);
    spec.start_ms = 3000;
    spec.end_ms = 4000;
    reserve(ledger, spec);
    spec.start_ms = 4000;
    spec.end_ms = 5000;
    struct acre_error err = {0};
    uint64_t id;
    CHECK_EQ(try_reserve(ledger, spec), ACRE_ELIMIT);
    acre_ledger_reserve(ledger, &spec, KIT_NOW_MS, &id, &err);
    CHECK_HAS(err.text, "user 'ann' already has 2 reservations; accepted: at most 2");
    CHECK_EQ(acre_ledger_cancel_reservation(ledger, first, KIT_NOW_MS, NULL), 0);
    reserve(ledger, spec); /* a cancelled one does not count */
    spec.user = kit_name(ledger, "bob");
    limits.per_device = 2;
    acre_ledger_set_reservation_limits(ledger, &limits);
    spec.start_ms = 6000;
    spec.end_ms = 7000;
    CHECK_EQ(try_reserve(ledger, spec), ACRE_ELIMIT);
    acre_ledger_reserve(ledger, &spec, KIT_NOW_MS, &id, &err);
    CHECK_HAS(err.text, "device 'a/0' already has 2 reservations; accepted: at most 2");
    uint32_t other = 1;
    spec.devices = &other;
    CHECK_EQ(try_reserve(ledger, spec), 0);
    spec.end_ms = 7001;
    CHECK_EQ(try_reserve(ledger, spec), ACRE_EINVALID); /* longer than 1000 ms */
    acre_ledger_set_reservation_limits(ledger, NULL);   /* the default */
    CHECK_EQ(acre_reservation_limits_default.per_user, 5);
    CHECK_EQ(acre_reservation_limits_default.per_device, 10);
    spec.start_ms = 7000;
    spec.end_ms = 7000 + 7 * DAY_MS;
    CHECK_EQ(try_reserve(ledger, spec), 0);
    kit_destroy(ledger);
}

static void the_tenth_of_a_device_and_the_fifth_of_a_user(void) { /* the default limits */
    struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_DEFAULT, "0");
    for (uint32_t i = 0; i < 11; i++) {
        struct acre_reservation_spec spec = window(1000, 2000 + 10 * i, 2010 + 10 * i);
        spec.user = 1 + i / 5;
        CHECK_EQ(try_reserve(ledger, spec), i < 10 ? 0 : ACRE_ELIMIT);
        spec = window(1000, 5000, 6000);
        CHECK_EQ(i < 4 ? 0 : try_reserve(ledger, spec), i < 4 ? 0 : ACRE_ELIMIT);
    }
    kit_destroy(ledger);
}

static void the_allocation_of_a_reservation_is_its_own(void) { /* only its end ends it */
    struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_DEFAULT, "0");
    uint64_t id = reserve(ledger, window(600, KIT_NOW_MS, 3000));
    struct acre_reservation shown;
    REQUIRE(acre_ledger_find_reservation(ledger, id, &shown));
    struct acre_error err = {0};
    CHECK_EQ(acre_ledger_release(ledger, shown.allocation, ACRE_ALLOCATION_COMPLETED, 1500, &err),
             ACRE_ECONFLICT);
    CHECK_HAS(err.text, "reservation 1");
    CHECK_EQ(acre_ledger_extend(ledger, shown.allocation, 2000, 1500, &err), ACRE_ECONFLICT);
    CHECK_EQ(acre_ledger_extend(ledger, shown.allocation, 0, 1500, &err), ACRE_ECONFLICT);
    CHECK_EQ(acre_ledger_tick(ledger, 2500), 0);
    CHECK_EQ(state_of(ledger, id), ACTIVE);
    CHECK_EQ(acre_ledger_tick(ledger, 3000), 1);
    CHECK_EQ(state_of(ledger, id), COMPLETED);
    CHECK_EQ(kit_row(ledger, "a/0").milli_used, 0);
    kit_destroy(ledger);
}

static void one_that_cannot_start_tries_again(void) { /* a replayed share is in the way */
    struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_DEFAULT, "0");
    uint64_t id = reserve(ledger, window(1000, 2000, 5000));
    struct acre_request request = kit_share(500);
    struct acre_part part = {.milli = 500, .mib = 40779, .by_share = true};
    uint64_t held;
    REQUIRE_EQ(acre_ledger_place(ledger, &request, &part, 1, 0, KIT_NOW_MS, &held, NULL), 0);
    CHECK_EQ(acre_ledger_tick(ledger, 2000), 0);
    CHECK_EQ(state_of(ledger, id), PENDING);
    KIT_REFUSED(ledger, kit_share(100), ACRE_ENOFIT, "full"); /* still kept for it */
    KIT_RELEASE(ledger, held);
    CHECK_EQ(acre_ledger_tick(ledger, 2500), 1);
    CHECK_EQ(state_of(ledger, id), ACTIVE);
    kit_destroy(ledger);
}

static void finished_ones_are_kept_a_while(void) { /* reservation.h: to be asked about */
    struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_DEFAULT, "0");
    uint64_t kept = reserve(ledger, window(100, 2000, 3000)); /* live ones are never forgotten */
    for (int i = 0; i < 1100; i++) {
        uint64_t id = reserve(ledger, window(100, 2000, 3000));
        CHECK_EQ(acre_ledger_cancel_reservation(ledger, id, KIT_NOW_MS, NULL), 0);
    }
    uint32_t count = 0;
    uint64_t last = 0;
    struct acre_reservation shown = {0};
    while (acre_ledger_next_reservation(ledger, shown.id, &shown)) {
        CHECK(shown.id > last);
        last = shown.id;
        count++;
    }
    CHECK_EQ(last, 1101);
    CHECK(count >= 1024 && count < 1101);
    CHECK_EQ(state_of(ledger, kept), PENDING);
    CHECK(!acre_ledger_find_reservation(ledger, 2, &shown));
    CHECK(acre_ledger_find_reservation(ledger, 1101, &shown));
    CHECK(!acre_ledger_find_reservation(ledger, 1102, &shown));
    kit_destroy(ledger);
}

static void names_of_states(void) { /* ALC-8 */
    static const char *const names[] = {"pending", "active", "completed", "cancelled", "expired"};
    for (size_t i = 0; i < ACRE_COUNT(names); i++) {
        CHECK_STR(acre_reservation_state_name((enum acre_reservation_state)i), names[i]);
    }
}

/* ALC-8, STO-1: after a restart reservations are there under their ids, the active one holds its
 * device, and new ids go on after the largest. */
static void recorded_ones_come_back_under_their_ids(void) {
    struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_DEFAULT, "0 0");
    const uint32_t zero = 0;
    const uint32_t one = 1;
    struct acre_reservation active = {.id = 7,
                                      .user = 1,
                                      .state = ACRE_RESERVATION_ACTIVE,
                                      .milli = 1000,
                                      .start_ms = 500,
                                      .end_ms = 9000,
                                      .devices = &zero,
                                      .device_count = 1};
    struct acre_reservation pending = active;
    pending.id = 3;
    pending.state = ACRE_RESERVATION_PENDING;
    pending.start_ms = 5000;
    pending.devices = &one;
    struct acre_error err = {0};
    REQUIRE_EQ(acre_ledger_restore_reservation(ledger, &active, 1000, &err), 0);
    REQUIRE_EQ(acre_ledger_restore_reservation(ledger, &pending, 1000, &err), 0);
    CHECK_EQ(acre_ledger_restore_reservation(ledger, &pending, 1000, &err), ACRE_EEXISTS);
    struct acre_reservation again = active;
    again.id = 8;
    CHECK_EQ(acre_ledger_restore_reservation(ledger, &again, 1000, &err), ACRE_ECONFLICT);
    again.milli = 0;
    CHECK_EQ(acre_ledger_restore_reservation(ledger, &again, 1000, &err), ACRE_EINVALID);

    struct acre_reservation found;
    REQUIRE(acre_ledger_next_reservation(ledger, 0, &found));
    CHECK_U64(found.id, 3);
    REQUIRE(acre_ledger_next_reservation(ledger, 3, &found));
    CHECK_U64(found.id, 7);
    CHECK(found.allocation != 0);
    CHECK_EQ(acre_ledger_check(ledger, &err), 0);
    uint64_t id = 0;
    struct acre_reservation_spec spec = {1, &one, 1, 1000, 0, 2000, 3000};
    REQUIRE_EQ(acre_ledger_reserve(ledger, &spec, 1000, &id, &err), 0);
    CHECK_U64(id, 8);
    acre_ledger_tick(ledger, 9000);
    REQUIRE(acre_ledger_find_reservation(ledger, 7, &found));
    CHECK_EQ(found.state, ACRE_RESERVATION_COMPLETED);
    acre_ledger_destroy(ledger);
}

static const struct acre_test tests[] = {
    {"bad_specs_are_refused", bad_specs_are_refused, 0},
    {"devices_that_are_not_shared_that_way", devices_that_are_not_shared_that_way, 0},
    {"windows_meet_only_when_they_share_and_fit", windows_meet_only_when_they_share_and_fit, 0},
    {"three_windows_are_added_up", three_windows_are_added_up, 0},
    {"work_counts_until_its_end", work_counts_until_its_end, 0},
    {"work_that_ends_in_time_may_use_the_device", work_that_ends_in_time_may_use_the_device, 0},
    {"whole_work_before_a_whole_window", whole_work_before_a_whole_window, 0},
    {"ties_before_a_window_do_not_depend_on_history", ties_before_a_window_do_not_depend_on_history,
     0},
    {"an_extension_leaves_room_for_the_window", an_extension_leaves_room_for_the_window, 0},
    {"states_follow_the_clock", states_follow_the_clock, 0},
    {"a_window_nobody_ticked_is_expired", a_window_nobody_ticked_is_expired, 0},
    {"one_that_starts_now_is_active_at_once", one_that_starts_now_is_active_at_once, 0},
    {"cancelling", cancelling, 0},
    {"limits_per_user_and_device", limits_per_user_and_device, 0},
    {"the_tenth_of_a_device_and_the_fifth_of_a_user", the_tenth_of_a_device_and_the_fifth_of_a_user,
     0},
    {"the_allocation_of_a_reservation_is_its_own", the_allocation_of_a_reservation_is_its_own, 0},
    {"one_that_cannot_start_tries_again", one_that_cannot_start_tries_again, 0},
    {"finished_ones_are_kept_a_while", finished_ones_are_kept_a_while, 0},
    {"names_of_states", names_of_states, 0},
    {"recorded_ones_come_back_under_their_ids", recorded_ones_come_back_under_their_ids, 0},
};
ACRE_TEST_MAIN(tests)
