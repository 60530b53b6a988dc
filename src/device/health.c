/* health.c - a table of penalties makes the score; three runs of samples make the state.
 *
 * A single bad sample must not drain a device and a single good one must not bring it back: each
 * change of state needs several samples in a row, and the thresholds down and up differ, so a
 * device at the edge does not flap. What cannot wait (a hardware XID, repeated failures) drains at
 * once. A device that comes back and fails again waits twice as long for its next probe, until it
 * has stayed in service for a day.
 *
 * Full memory and power at its limit are what a busy GPU looks like: they lower the score (and may
 * make the device degraded, so that others are preferred), but draining is decided on the score
 * without them. */
#include "device/health.h"

#include "core/units.h"
#include "device/xid.h"

#include <inttypes.h>
#include <stdio.h>

static bool has(const struct acre_health_sample *sample, uint32_t readings) {
    return (sample->valid & readings) == readings;
}

static double penalty_temperature(const struct acre_health_sample *sample) {
    if (!has(sample, ACRE_HEALTH_TEMPERATURE | ACRE_HEALTH_MAX_TEMPERATURE) ||
        sample->max_temperature_c <= 0) {
        return 0;
    }
    double ratio = (double)sample->temperature_c / sample->max_temperature_c;
    return ratio > 0.8 ? (ratio - 0.8) * 2.5 : 0;
}

static double penalty_throttling(const struct acre_health_sample *sample) {
    return has(sample, ACRE_HEALTH_THROTTLING) && sample->throttling ? 0.3 : 0;
}

static double penalty_power(const struct acre_health_sample *sample) {
    return has(sample, ACRE_HEALTH_POWER | ACRE_HEALTH_POWER_LIMIT) && sample->power_limit_mw > 0 &&
                   (double)sample->power_mw > (double)sample->power_limit_mw * 0.95
               ? 0.2
               : 0;
}

static double penalty_memory(const struct acre_health_sample *sample) {
    return has(sample, ACRE_HEALTH_MEMORY) && sample->memory_total_mib > 0 &&
                   (double)sample->memory_used_mib > (double)sample->memory_total_mib * 0.9
               ? 0.2
               : 0;
}

static double penalty_ecc(const struct acre_health_sample *sample) {
    return has(sample, ACRE_HEALTH_ECC) ? ACRE_MIN(0.4, 0.05 * (double)sample->ecc_errors) : 0;
}

static double penalty_failures(const struct acre_health_sample *sample) {
    return has(sample, ACRE_HEALTH_FAILURES) ? ACRE_MIN(0.5, 0.1 * sample->consecutive_failures)
                                             : 0;
}

static double penalty_prediction(const struct acre_health_sample *sample) {
    return has(sample, ACRE_HEALTH_PREDICTION)
               ? 0.3 * ACRE_MIN(sample->predicted_failure_milli, 1000U) / 1000
               : 0;
}

static int say_temperature(const struct acre_health_sample *sample, char *text, size_t size) {
    return snprintf(text, size, "temperature %" PRId32 " C (limit %" PRId32 " C)",
                    sample->temperature_c, sample->max_temperature_c);
}

static int say_throttling(const struct acre_health_sample *sample, char *text, size_t size) {
    (void)sample;
    return snprintf(text, size, "throttling");
}

static int say_power(const struct acre_health_sample *sample, char *text, size_t size) {
    return snprintf(text, size, "power %" PRIu64 " of %" PRIu64 " W", sample->power_mw / 1000,
                    sample->power_limit_mw / 1000);
}

static int say_memory(const struct acre_health_sample *sample, char *text, size_t size) {
    char used[32], total[32];
    return snprintf(text, size, "memory %s of %s",
                    acre_format_mib(sample->memory_used_mib, used, sizeof(used)),
                    acre_format_mib(sample->memory_total_mib, total, sizeof(total)));
}

static int say_ecc(const struct acre_health_sample *sample, char *text, size_t size) {
    return snprintf(text, size, "%" PRIu64 " ECC error%s", sample->ecc_errors,
                    sample->ecc_errors == 1 ? "" : "s");
}

static int say_failures(const struct acre_health_sample *sample, char *text, size_t size) {
    return snprintf(text, size, "%" PRIu32 " failure%s in a row", sample->consecutive_failures,
                    sample->consecutive_failures == 1 ? "" : "s");
}

static int say_prediction(const struct acre_health_sample *sample, char *text, size_t size) {
    return snprintf(text, size, "failure predicted with %" PRIu32 " %%",
                    sample->predicted_failure_milli / 10);
}

static const struct {
    bool is_fault; /* or a mark of hard work, which is no reason to take a device away */
    double (*penalty)(const struct acre_health_sample *sample);
    int (*say)(const struct acre_health_sample *sample, char *text, size_t size);
} penalties[] = {
    {true, penalty_temperature, say_temperature},
    {true, penalty_throttling, say_throttling},
    {false, penalty_power, say_power},
    {false, penalty_memory, say_memory},
    {true, penalty_ecc, say_ecc},
    {true, penalty_failures, say_failures},
    {true, penalty_prediction, say_prediction},
};

static double score_of(const struct acre_health_sample *sample, bool faults_only) {
    double score = 1;
    for (size_t i = 0; i < ACRE_COUNT(penalties); i++) {
        if (penalties[i].is_fault || !faults_only) {
            score -= penalties[i].penalty(sample);
        }
    }
    return ACRE_MIN(ACRE_MAX(score, 0.0), 1.0);
}

double acre_health_score(const struct acre_health_sample *sample) {
    return score_of(sample, false);
}

/* "score 0.35: temperature 92 C (limit 85 C), throttling", cut at the end of the buffer. */
static void say_why(const struct acre_health_sample *sample, double score, char *text,
                    size_t size) {
    size_t length = (size_t)snprintf(text, size, "score %.2f", score);
    const char *before = ": ";
    for (size_t i = 0; i < ACRE_COUNT(penalties) && length < size; i++) {
        if (penalties[i].penalty(sample) > 0) {
            length += (size_t)snprintf(text + length, size - length, "%s", before);
            if (length < size) {
                length += (size_t)penalties[i].say(sample, text + length, size - length);
            }
            before = ", ";
        }
    }
}

static uint32_t failures(const struct acre_health_sample *sample) {
    return has(sample, ACRE_HEALTH_FAILURES) ? sample->consecutive_failures : 0;
}

bool acre_health_is_good(const struct acre_health_sample *sample) {
    return acre_health_score(sample) >= 0.7 && failures(sample) < 3;
}

struct acre_health_policy acre_health_policy_default(void) {
    return (struct acre_health_policy){
        .degrade_below = 0.7,
        .recover_from = 0.8,
        .drain_below = 0.4,
        .degrade_after = 2,
        .recover_after = 3,
        .drain_after = 3,
        .failures_max = 3,
        .probes_needed = 3,
        .cool_down_ms = 60 * 1000,
        .cool_down_max_ms = 3600 * 1000,
        .forgive_ms = 24 * 3600 * 1000,
    };
}

void acre_health_init(struct acre_health *health, uint64_t now_ms) {
    *health = (struct acre_health){
        .state = ACRE_HEALTH_HEALTHY, .since_ms = now_ms, .in_service_ms = now_ms, .score = 1};
}

const char *acre_health_state_name(enum acre_health_state state) {
    static const char *const names[] = {"healthy", "degraded", "draining", "probing"};
    ACRE_ASSERT((unsigned)state < ACRE_COUNT(names));
    return names[state];
}

static void enter(struct acre_health *health, enum acre_health_state state, uint64_t now_ms) {
    health->state = state;
    health->since_ms = now_ms;
    health->below_degrade = health->below_drain = health->above_recover = 0;
    health->probes_passed = 0;
    if (state == ACRE_HEALTH_HEALTHY) {
        health->reason[0] = '\0';
    }
}

static uint64_t cool_down(const struct acre_health_policy *policy, uint32_t drains) {
    uint64_t wait_ms = policy->cool_down_ms;
    for (uint32_t i = 1; i < drains && wait_ms < policy->cool_down_max_ms; i++) {
        wait_ms *= 2;
    }
    return ACRE_MIN(wait_ms, policy->cool_down_max_ms);
}

/* `reason` is already written. */
static enum acre_health_action drain(struct acre_health *health,
                                     const struct acre_health_policy *policy, uint64_t now_ms) {
    ACRE_ASSERT(policy->cool_down_max_ms < UINT64_C(1) << 62);
    bool in_service = health->state == ACRE_HEALTH_HEALTHY || health->state == ACRE_HEALTH_DEGRADED;
    if (in_service && now_ms >= health->in_service_ms + policy->forgive_ms) {
        health->drains = 0;
    }
    if (health->state != ACRE_HEALTH_DRAINING && health->drains < UINT32_MAX) {
        health->drains++;
    }
    enter(health, ACRE_HEALTH_DRAINING, now_ms);
    health->probe_from_ms = now_ms + cool_down(policy, health->drains);
    return ACRE_HEALTH_DRAIN;
}

/* Count the codes; the first hardware error, or NULL. */
static const struct xid *count_xids(struct acre_health *health,
                                    const struct acre_health_sample *sample) {
    const struct xid *worst = NULL;
    for (uint32_t i = 0; has(sample, ACRE_HEALTH_XIDS) && i < sample->xid_count; i++) {
        const struct xid *xid = xid_find(sample->xids[i]);
        if (xid == NULL) {
            health->unknown_xids++;
        } else if (xid->cause == ACRE_XID_APPLICATION) {
            health->application_xids++;
        } else {
            health->hardware_xids++;
            worst = worst != NULL ? worst : xid;
        }
    }
    return worst;
}

static void count_runs(struct acre_health *health, const struct acre_health_policy *policy,
                       double fault_score) {
    uint32_t *const runs[] = {&health->below_degrade, &health->below_drain, &health->above_recover};
    const bool goes_on[] = {health->score < policy->degrade_below,
                            fault_score < policy->drain_below,
                            health->score >= policy->recover_from};
    for (size_t i = 0; i < ACRE_COUNT(runs); i++) {
        *runs[i] = goes_on[i] ? *runs[i] + (*runs[i] < UINT32_MAX) : 0;
    }
}

enum acre_health_action acre_health_observe(struct acre_health *health,
                                            const struct acre_health_policy *policy,
                                            const struct acre_health_sample *sample,
                                            uint64_t now_ms) {
    health->score = acre_health_score(sample);
    const struct xid *xid = count_xids(health, sample);
    count_runs(health, policy, score_of(sample, true));
    if (xid != NULL) {
        snprintf(health->reason, sizeof(health->reason), "XID %" PRIu32 ": %s", xid->code,
                 xid->text);
        return drain(health, policy, now_ms); /* again while draining: the wait starts anew */
    }
    if (health->state == ACRE_HEALTH_DRAINING) {
        return ACRE_HEALTH_NOTHING;
    }
    bool bad_probe = health->state == ACRE_HEALTH_PROBING && health->below_degrade > 0;
    if (bad_probe || failures(sample) >= policy->failures_max ||
        health->below_drain >= policy->drain_after) {
        say_why(sample, health->score, health->reason, sizeof(health->reason));
        return drain(health, policy, now_ms);
    }
    if (health->state == ACRE_HEALTH_HEALTHY && health->below_degrade >= policy->degrade_after) {
        uint32_t below_drain = health->below_drain;
        say_why(sample, health->score, health->reason, sizeof(health->reason));
        enter(health, ACRE_HEALTH_DEGRADED, now_ms);
        health->below_drain = below_drain; /* the run towards draining goes on */
    } else if (health->state == ACRE_HEALTH_DEGRADED &&
               health->above_recover >= policy->recover_after) {
        enter(health, ACRE_HEALTH_HEALTHY, now_ms);
    }
    return ACRE_HEALTH_NOTHING;
}

enum acre_health_action acre_health_tick(struct acre_health *health, bool is_empty,
                                         uint64_t now_ms) {
    if (health->state == ACRE_HEALTH_DRAINING && is_empty && now_ms >= health->probe_from_ms) {
        enter(health, ACRE_HEALTH_PROBING, now_ms);
    }
    return health->state == ACRE_HEALTH_PROBING ? ACRE_HEALTH_PROBE : ACRE_HEALTH_NOTHING;
}

enum acre_health_action acre_health_probed(struct acre_health *health,
                                           const struct acre_health_policy *policy, bool passed,
                                           const char *why, uint64_t now_ms) {
    if (health->state != ACRE_HEALTH_PROBING) {
        return ACRE_HEALTH_NOTHING;
    }
    if (!passed) {
        snprintf(health->reason, sizeof(health->reason), "probe failed: %s", why);
        return drain(health, policy, now_ms);
    }
    health->probes_passed++;
    if (health->probes_passed < policy->probes_needed) {
        return ACRE_HEALTH_PROBE;
    }
    enter(health, ACRE_HEALTH_HEALTHY, now_ms);
    health->in_service_ms = now_ms;
    return ACRE_HEALTH_RETURN;
}
