/* Health of a device (CAP-10). */
#include "device/health.h"
#include "device/xid.h"
#include "support/test.h"

enum { MINUTE_MS = 60000, NOW_MS = 1000000 };

/* All fields known, nothing wrong. */
static struct acre_health_sample good_sample(void) {
    return (struct acre_health_sample){
        .valid = ACRE_HEALTH_ALL,
        .temperature_c = 50,
        .max_temperature_c = 85,
        .power_mw = 300000,
        .power_limit_mw = 700000,
        .memory_used_mib = 10000,
        .memory_total_mib = 140000,
    };
}

static struct acre_health_sample with_failures(uint32_t count) {
    struct acre_health_sample sample = good_sample();
    sample.consecutive_failures = count;
    return sample;
}

static struct acre_health_sample with_ecc(uint64_t errors) {
    struct acre_health_sample sample = good_sample();
    sample.ecc_errors = errors;
    return sample;
}

static struct acre_health_sample hot_sample(int32_t temperature_c, bool throttling) {
    struct acre_health_sample sample = good_sample();
    sample.temperature_c = temperature_c;
    sample.throttling = throttling;
    return sample;
}

static enum acre_health_action observe(struct acre_health *health, struct acre_health_sample sample,
                                       uint64_t now_ms) {
    struct acre_health_policy policy = acre_health_policy_default();
    return acre_health_observe(health, &policy, &sample, now_ms);
}

static enum acre_health_action observe_xid(struct acre_health *health, uint32_t code,
                                           uint64_t now_ms) {
    struct acre_health_sample sample = good_sample();
    sample.xids = &code;
    sample.xid_count = 1;
    return observe(health, sample, now_ms);
}

static enum acre_health_action probed(struct acre_health *health, bool passed, uint64_t now_ms) {
    struct acre_health_policy policy = acre_health_policy_default();
    return acre_health_probed(health, &policy, passed, "the sum was 9, not 10", now_ms);
}

/* The formula, a term at a time; each threshold from both sides */
static const struct {
    const char *what;
    struct acre_health_sample sample;
    double expect;
    bool good;
} scores[] = {
    {"nothing known", {.temperature_c = 500, .throttling = true, .ecc_errors = 99}, 1, true},
    {"80 % of the maximum",
     {.valid = ACRE_HEALTH_ALL, .temperature_c = 80, .max_temperature_c = 100},
     1,
     true},
    {"90 %", {.valid = ACRE_HEALTH_ALL, .temperature_c = 90, .max_temperature_c = 100}, .75, true},
    {"at the maximum",
     {.valid = ACRE_HEALTH_ALL, .temperature_c = 100, .max_temperature_c = 100},
     .5,
     false},
    {"maximum unknown", {.valid = ACRE_HEALTH_TEMPERATURE, .temperature_c = 100}, 1, true},
    {"maximum 0", {.valid = ACRE_HEALTH_ALL, .temperature_c = 100}, 1, true},
    {"below zero",
     {.valid = ACRE_HEALTH_ALL, .temperature_c = -20, .max_temperature_c = 85},
     1,
     true},
    {"throttling", {.valid = ACRE_HEALTH_ALL, .throttling = true}, .7, true},
    {"power at 95 %", {.valid = ACRE_HEALTH_ALL, .power_mw = 95, .power_limit_mw = 100}, 1, true},
    {"power at 96 %", {.valid = ACRE_HEALTH_ALL, .power_mw = 96, .power_limit_mw = 100}, .8, true},
    {"no limit", {.valid = ACRE_HEALTH_ALL, .power_mw = 96}, 1, true},
    {"limit unknown", {.valid = ACRE_HEALTH_POWER, .power_mw = 96, .power_limit_mw = 9}, 1, true},
    {"memory at 90 %",
     {.valid = ACRE_HEALTH_ALL, .memory_used_mib = 90, .memory_total_mib = 100},
     1,
     true},
    {"memory at 91 %",
     {.valid = ACRE_HEALTH_ALL, .memory_used_mib = 91, .memory_total_mib = 100},
     .8,
     true},
    {"no memory", {.valid = ACRE_HEALTH_ALL, .memory_used_mib = 91}, 1, true},
    {"3 ECC errors", {.valid = ACRE_HEALTH_ALL, .ecc_errors = 3}, .85, true},
    {"8 ECC errors", {.valid = ACRE_HEALTH_ALL, .ecc_errors = 8}, .6, false},
    {"any more", {.valid = ACRE_HEALTH_ALL, .ecc_errors = UINT64_MAX}, .6, false},
    {"2 failures", {.valid = ACRE_HEALTH_ALL, .consecutive_failures = 2}, .8, true},
    {"3 failures", {.valid = ACRE_HEALTH_ALL, .consecutive_failures = 3}, .7, false},
    {"many failures", {.valid = ACRE_HEALTH_ALL, .consecutive_failures = UINT32_MAX}, .5, false},
    {"failure half likely", {.valid = ACRE_HEALTH_ALL, .predicted_failure_milli = 500}, .85, true},
    {"failure certain and more",
     {.valid = ACRE_HEALTH_ALL, .predicted_failure_milli = 5000},
     .7,
     true},
    {"everything",
     {ACRE_HEALTH_ALL, 100, 100, true, 99, 100, 99, 100, 99, 99, 1000, NULL, 0},
     0,
     false},
};

static void the_score_takes_off_each_fault(void) {
    for (size_t i = 0; i < ACRE_COUNT(scores); i++) {
        acre_test_context("%s", scores[i].what);
        CHECK_NEAR(acre_health_score(&scores[i].sample), scores[i].expect, 1e-12);
        CHECK_EQ(acre_health_is_good(&scores[i].sample), scores[i].good);
    }
    struct acre_health_sample three = with_failures(3);
    CHECK(!acre_health_is_good(&three));
    three.valid &= ~(uint32_t)ACRE_HEALTH_FAILURES; /* unknown */
    CHECK(acre_health_is_good(&three));
}

static void xids_of_applications_are_only_counted(void) {
    static const struct {
        uint32_t code;
        enum xid_cause expect;
    } rows[] = {
        {13, ACRE_XID_APPLICATION},  {31, ACRE_XID_APPLICATION}, {43, ACRE_XID_APPLICATION},
        {45, ACRE_XID_APPLICATION},  {68, ACRE_XID_APPLICATION}, {94, ACRE_XID_APPLICATION},
        {109, ACRE_XID_APPLICATION}, {48, ACRE_XID_HARDWARE},    {63, ACRE_XID_HARDWARE},
        {64, ACRE_XID_HARDWARE},     {74, ACRE_XID_HARDWARE},    {79, ACRE_XID_HARDWARE},
        {95, ACRE_XID_HARDWARE},     {119, ACRE_XID_HARDWARE},   {120, ACRE_XID_HARDWARE},
        {0, ACRE_XID_UNKNOWN},       {9999, ACRE_XID_UNKNOWN},
    };
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        acre_test_context("XID %u", rows[i].code);
        const struct xid *xid = xid_find(rows[i].code);
        REQUIRE_EQ(xid == NULL ? ACRE_XID_UNKNOWN : xid->cause, rows[i].expect);
        struct acre_health health;
        acre_health_init(&health, 0);
        bool hardware = rows[i].expect == ACRE_XID_HARDWARE;
        CHECK_EQ(observe_xid(&health, rows[i].code, NOW_MS),
                 hardware ? ACRE_HEALTH_DRAIN : ACRE_HEALTH_NOTHING);
        CHECK_EQ(health.state, hardware ? ACRE_HEALTH_DRAINING : ACRE_HEALTH_HEALTHY);
        CHECK_U64(health.application_xids, rows[i].expect == ACRE_XID_APPLICATION);
        CHECK_U64(health.hardware_xids, hardware);
        CHECK_U64(health.unknown_xids, rows[i].expect == ACRE_XID_UNKNOWN);
        CHECK_NEAR(health.score, 1, 0);
        if (hardware) {
            CHECK_HAS(health.reason, xid->text);
        }
    }
    struct acre_health health;
    acre_health_init(&health, 0);
    static const uint32_t several[] = {13, 79, 48, 7777};
    struct acre_health_sample sample = good_sample();
    sample.xids = several;
    sample.xid_count = 4;
    sample.valid &= ~(uint32_t)ACRE_HEALTH_XIDS;
    CHECK_EQ(observe(&health, sample, NOW_MS), ACRE_HEALTH_NOTHING); /* not known: not counted */
    sample.valid |= ACRE_HEALTH_XIDS;
    CHECK_EQ(observe(&health, sample, NOW_MS), ACRE_HEALTH_DRAIN);
    CHECK_STR(health.reason, "XID 79: GPU has fallen off the bus");
    CHECK_U64(health.hardware_xids, 2);
}

static void one_bad_sample_changes_nothing_and_two_degrade(void) {
    struct acre_health health;
    acre_health_init(&health, NOW_MS);
    CHECK_STR(acre_health_state_name(health.state), "healthy");
    for (int i = 0; i < 5; i++) { /* alternating: never two in a row */
        CHECK_EQ(observe(&health, with_ecc(8), NOW_MS), ACRE_HEALTH_NOTHING);
        CHECK_EQ(observe(&health, good_sample(), NOW_MS), ACRE_HEALTH_NOTHING);
        CHECK_EQ(health.state, ACRE_HEALTH_HEALTHY);
    }
    CHECK_EQ(observe(&health, with_ecc(8), NOW_MS + 1), ACRE_HEALTH_NOTHING);
    CHECK_EQ(observe(&health, with_ecc(8), NOW_MS + 2), ACRE_HEALTH_NOTHING);
    CHECK_EQ(health.state, ACRE_HEALTH_DEGRADED);
    CHECK_U64(health.since_ms, NOW_MS + 2);
    CHECK_STR(health.reason, "score 0.60: 8 ECC errors");
    /* .75 is over the threshold down and under the one up: it stays. */
    for (int i = 0; i < 9; i++) {
        CHECK_EQ(observe(&health, with_ecc(5), NOW_MS + 3), ACRE_HEALTH_NOTHING);
        CHECK_EQ(health.state, ACRE_HEALTH_DEGRADED);
    }
    observe(&health, with_ecc(4), NOW_MS + 4); /* .8 */
    observe(&health, with_ecc(4), NOW_MS + 4);
    CHECK_EQ(health.state, ACRE_HEALTH_DEGRADED);
    observe(&health, with_ecc(4), NOW_MS + 5);
    CHECK_EQ(health.state, ACRE_HEALTH_HEALTHY);
    CHECK_STR(health.reason, "");
}

static void three_very_bad_samples_drain_with_the_reason(void) {
    struct acre_health health;
    acre_health_init(&health, NOW_MS);
    struct acre_health_sample sample = hot_sample(84, true); /* 1 - .47 - .3 = .23 */
    CHECK_EQ(observe(&health, sample, NOW_MS), ACRE_HEALTH_NOTHING);
    CHECK_EQ(observe(&health, sample, NOW_MS), ACRE_HEALTH_NOTHING);
    CHECK_EQ(health.state, ACRE_HEALTH_DEGRADED);
    CHECK_EQ(observe(&health, sample, NOW_MS + 9), ACRE_HEALTH_DRAIN);
    CHECK_EQ(health.state, ACRE_HEALTH_DRAINING);
    CHECK_STR(acre_health_state_name(health.state), "draining");
    CHECK_STR(health.reason, "score 0.23: temperature 84 C (limit 85 C), throttling");
    CHECK_EQ(observe(&health, sample, NOW_MS + 10), ACRE_HEALTH_NOTHING); /* said already */
    CHECK_U64(health.since_ms, NOW_MS + 9);
    acre_health_init(&health, NOW_MS);
    CHECK_EQ(observe(&health, with_failures(2), NOW_MS), ACRE_HEALTH_NOTHING);
    CHECK_EQ(observe(&health, with_failures(3), NOW_MS), ACRE_HEALTH_DRAIN); /* at once */
    CHECK_STR(health.reason, "score 0.70: 3 failures in a row");
}

/* Full memory and full power make it less preferred, not sick. */
static void a_busy_device_is_not_drained(void) {
    struct acre_health health;
    acre_health_init(&health, NOW_MS);
    struct acre_health_sample sample = hot_sample(80, false);
    sample.power_mw = 699000;
    sample.memory_used_mib = 139000;
    CHECK(acre_health_score(&sample) < .4);
    for (int i = 0; i < 100; i++) {
        CHECK_EQ(observe(&health, sample, NOW_MS), ACRE_HEALTH_NOTHING);
    }
    CHECK_EQ(health.state, ACRE_HEALTH_DEGRADED);
    CHECK_STR(health.reason, "score 0.25: temperature 80 C (limit 85 C), power 699 of 700 W, "
                             "memory 135.7 GiB of 136.7 GiB");
}

static void the_longest_reason_is_cut_not_overrun(void) {
    struct acre_health health;
    acre_health_init(&health, NOW_MS);
    struct acre_health_sample sample = {
        ACRE_HEALTH_ALL, INT32_MAX,  1,          true, UINT64_MAX, 1, UINT64_MAX, 1,
        UINT64_MAX,      UINT32_MAX, UINT32_MAX, NULL, 0,
    };
    CHECK_EQ(observe(&health, sample, NOW_MS), ACRE_HEALTH_DRAIN);
    CHECK_U64(strlen(health.reason), ACRE_HEALTH_REASON_MAX - 1);
    CHECK_HAS(health.reason,
              "score 0.00: temperature 2147483647 C (limit 1 C), throttling, power 18446");
    sample = good_sample();
    sample.predicted_failure_milli = 900;
    sample.ecc_errors = 9;
    acre_health_init(&health, NOW_MS);
    for (int i = 0; i < 3; i++) {
        observe(&health, sample, NOW_MS);
    }
    CHECK_EQ(health.state, ACRE_HEALTH_DRAINING);
    CHECK_STR(health.reason, "score 0.33: 9 ECC errors, failure predicted with 90 %");
}

static void an_empty_device_is_probed_and_returned(void) {
    struct acre_health health;
    acre_health_init(&health, NOW_MS);
    CHECK_EQ(acre_health_tick(&health, true, NOW_MS), ACRE_HEALTH_NOTHING);
    CHECK_EQ(probed(&health, false, NOW_MS), ACRE_HEALTH_NOTHING); /* not probing: ignored */
    CHECK_EQ(observe_xid(&health, 48, NOW_MS), ACRE_HEALTH_DRAIN);
    uint64_t cool_ms = NOW_MS + MINUTE_MS;
    CHECK_EQ(acre_health_tick(&health, true, cool_ms - 1), ACRE_HEALTH_NOTHING);
    CHECK_EQ(acre_health_tick(&health, false, cool_ms), ACRE_HEALTH_NOTHING); /* still busy */
    CHECK_EQ(health.state, ACRE_HEALTH_DRAINING);
    CHECK_EQ(acre_health_tick(&health, true, cool_ms), ACRE_HEALTH_PROBE);
    CHECK_EQ(health.state, ACRE_HEALTH_PROBING);
    CHECK_STR(health.reason, "XID 48: double-bit ECC error"); /* kept while it is away */
    CHECK_EQ(observe(&health, good_sample(), cool_ms), ACRE_HEALTH_NOTHING);
    CHECK_EQ(health.state, ACRE_HEALTH_PROBING);
    CHECK_EQ(probed(&health, true, cool_ms), ACRE_HEALTH_PROBE);
    CHECK_EQ(acre_health_tick(&health, true, cool_ms), ACRE_HEALTH_PROBE);
    CHECK_EQ(probed(&health, true, cool_ms), ACRE_HEALTH_PROBE);
    CHECK_EQ(probed(&health, true, cool_ms + 5), ACRE_HEALTH_RETURN);
    CHECK_EQ(health.state, ACRE_HEALTH_HEALTHY);
    CHECK_STR(health.reason, "");
    CHECK_U64(health.in_service_ms, cool_ms + 5);
}

static void each_failed_probe_doubles_the_wait(void) {
    struct acre_health health;
    acre_health_init(&health, 0);
    uint64_t now_ms = NOW_MS;
    observe_xid(&health, 79, now_ms);
    static const uint64_t wait_min[] = {1, 2, 4, 8, 16, 32, 60, 60};
    for (size_t i = 0; i < ACRE_COUNT(wait_min); i++) {
        acre_test_context("wait %zu", i);
        CHECK_EQ(acre_health_tick(&health, true, now_ms + wait_min[i] * MINUTE_MS - 1),
                 ACRE_HEALTH_NOTHING);
        now_ms += wait_min[i] * MINUTE_MS;
        CHECK_EQ(acre_health_tick(&health, true, now_ms), ACRE_HEALTH_PROBE);
        probed(&health, true, now_ms); /* one passed does not help */
        CHECK_EQ(probed(&health, false, now_ms), ACRE_HEALTH_DRAIN);
        CHECK_STR(health.reason, "probe failed: the sum was 9, not 10");
    }
}

static void trouble_while_probing_drains_again(void) {
    struct acre_health health;
    acre_health_init(&health, 0);
    observe_xid(&health, 79, NOW_MS);
    acre_health_tick(&health, true, NOW_MS + MINUTE_MS);
    CHECK_EQ(health.state, ACRE_HEALTH_PROBING);
    CHECK_EQ(observe(&health, with_ecc(8), NOW_MS + MINUTE_MS), ACRE_HEALTH_DRAIN);
    CHECK_HAS(health.reason, "8 ECC errors");
    CHECK_U64(health.probe_from_ms, NOW_MS + 3 * MINUTE_MS);
    /* A hardware error while draining starts the wait anew, but is not one more drain. */
    CHECK_EQ(observe_xid(&health, 74, NOW_MS + 2 * MINUTE_MS), ACRE_HEALTH_DRAIN);
    CHECK_HAS(health.reason, "NVLink");
    CHECK_U64(health.probe_from_ms, NOW_MS + 4 * MINUTE_MS);
}

static void a_day_in_service_is_forgiven(void) {
    static const uint64_t day_ms = UINT64_C(24) * 60 * MINUTE_MS;
    static const struct {
        uint64_t served_ms, wait_ms;
    } rows[] = {{day_ms - 1, 2 * MINUTE_MS}, {day_ms, MINUTE_MS}};
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct acre_health health;
        acre_health_init(&health, 0);
        observe_xid(&health, 79, 0);
        acre_health_tick(&health, true, MINUTE_MS);
        for (int k = 0; k < 3; k++) {
            probed(&health, true, MINUTE_MS);
        }
        CHECK_EQ(health.state, ACRE_HEALTH_HEALTHY);
        /* Being degraded in between does not start the day anew. */
        observe(&health, with_ecc(8), MINUTE_MS + 5000);
        observe(&health, with_ecc(8), MINUTE_MS + 5000);
        CHECK_EQ(health.state, ACRE_HEALTH_DEGRADED);
        uint64_t now_ms = MINUTE_MS + rows[i].served_ms;
        observe_xid(&health, 79, now_ms);
        CHECK_U64(health.probe_from_ms, now_ms + rows[i].wait_ms);
    }
}

static const struct acre_test tests[] = {
    {"the_score_takes_off_each_fault", the_score_takes_off_each_fault, 0},
    {"xids_of_applications_are_only_counted", xids_of_applications_are_only_counted, 0},
    {"one_bad_sample_changes_nothing_and_two_degrade",
     one_bad_sample_changes_nothing_and_two_degrade, 0},
    {"three_very_bad_samples_drain_with_the_reason", three_very_bad_samples_drain_with_the_reason,
     0},
    {"a_busy_device_is_not_drained", a_busy_device_is_not_drained, 0},
    {"the_longest_reason_is_cut_not_overrun", the_longest_reason_is_cut_not_overrun, 0},
    {"an_empty_device_is_probed_and_returned", an_empty_device_is_probed_and_returned, 0},
    {"each_failed_probe_doubles_the_wait", each_failed_probe_doubles_the_wait, 0},
    {"trouble_while_probing_drains_again", trouble_while_probing_drains_again, 0},
    {"a_day_in_service_is_forgiven", a_day_in_service_is_forgiven, 0},
};

ACRE_TEST_MAIN(tests)
