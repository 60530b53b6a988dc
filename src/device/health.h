/* health.h - the health of a device, and when it must leave service and may come back (CAP-10).
 *
 *   healthy   -> degraded  score below 0.7, 2 samples in a row
 *   degraded  -> healthy   score from 0.8 up, 3 in a row
 *   either    -> draining  faults bring it below 0.4, 3 in a row; at once: a hardware XID, or 3
 *                          failures in a row
 *   draining  -> probing   nothing runs on it and it has cooled down
 *   probing   -> healthy   3 probes in a row pass
 *   probing   -> draining  a probe fails or a sample is bad; the next wait is twice as long
 *
 * Pure: each call returns what the caller must do (stop placing and drain, run a probe, return to
 * service) and changes only the acre_health passed to it. A value that is not valid never counts
 * against a device. One thread at a time per device. */
#ifndef ACRE_DEVICE_HEALTH_H
#define ACRE_DEVICE_HEALTH_H

#include "core/base.h"

enum { /* which readings of a sample are known */
       ACRE_HEALTH_TEMPERATURE = 1 << 0,
       ACRE_HEALTH_MAX_TEMPERATURE = 1 << 1,
       ACRE_HEALTH_THROTTLING = 1 << 2,
       ACRE_HEALTH_POWER = 1 << 3,
       ACRE_HEALTH_POWER_LIMIT = 1 << 4,
       ACRE_HEALTH_MEMORY = 1 << 5, /* used and total */
       ACRE_HEALTH_ECC = 1 << 6,
       ACRE_HEALTH_FAILURES = 1 << 7,
       ACRE_HEALTH_PREDICTION = 1 << 8,
       ACRE_HEALTH_XIDS = 1 << 9,
       ACRE_HEALTH_ALL = (1 << 10) - 1,
};

struct acre_health_sample {
    uint32_t valid;
    int32_t temperature_c;
    int32_t max_temperature_c;
    bool throttling; /* slowed down by heat or by the hardware; not by a power limit */
    uint64_t power_mw;
    uint64_t power_limit_mw;
    uint64_t memory_used_mib;
    uint64_t memory_total_mib;
    uint64_t ecc_errors; /* uncorrected, since the last reset */
    uint32_t consecutive_failures;
    uint32_t predicted_failure_milli; /* chance within the hour, in thousandths */
    const uint32_t *xids;             /* new since the sample before */
    uint32_t xid_count;
};

/* 1 less 2.5 (temperature / max - 0.8)+, 0.3 throttling, 0.2 power over 95 % of its limit, 0.2
 * memory over 90 %, 0.05 an ECC error up to 0.4, 0.1 a failure in a row up to 0.5, 0.3 times the
 * predicted failure; within 0..1. */
double acre_health_score(const struct acre_health_sample *sample);
/* Score at least 0.7 and fewer than 3 failures in a row. */
bool acre_health_is_good(const struct acre_health_sample *sample);

enum acre_health_state {
    ACRE_HEALTH_HEALTHY,
    ACRE_HEALTH_DEGRADED, /* still used; better ones are preferred */
    ACRE_HEALTH_DRAINING, /* nothing new is placed; what runs may end */
    ACRE_HEALTH_PROBING,  /* empty; probes decide */
};

enum acre_health_action {
    ACRE_HEALTH_NOTHING,
    ACRE_HEALTH_DRAIN,  /* place nothing more; `reason` says why */
    ACRE_HEALTH_PROBE,  /* run a probe and report it */
    ACRE_HEALTH_RETURN, /* back to service */
};

struct acre_health_policy {
    double degrade_below, recover_from, drain_below;
    uint32_t degrade_after, recover_after, drain_after; /* samples in a row */
    uint32_t failures_max;                              /* in a row: drained at once */
    uint32_t probes_needed;                             /* passed in a row */
    uint64_t cool_down_ms;                              /* before the first probe, then doubled */
    uint64_t cool_down_max_ms;
    uint64_t forgive_ms; /* in service so long without a drain: the next one is a first one */
};

struct acre_health_policy acre_health_policy_default(void);

enum { ACRE_HEALTH_REASON_MAX = 192 };

struct acre_health {
    enum acre_health_state state;
    uint64_t since_ms;                                  /* in this state */
    uint64_t in_service_ms;                             /* since when, degraded or not */
    double score;                                       /* of the last sample */
    uint32_t below_degrade, below_drain, above_recover; /* samples in a row */
    uint32_t drains;                                    /* doubles the cool-down */
    uint32_t probes_passed;
    uint64_t probe_from_ms;
    uint64_t application_xids, hardware_xids, unknown_xids;
    char reason[ACRE_HEALTH_REASON_MAX]; /* why it is not healthy; "" when it is */
};

void acre_health_init(struct acre_health *health, uint64_t now_ms);
const char *acre_health_state_name(enum acre_health_state state);

/* A new sample: NOTHING, or DRAIN when it is to be drained (again, for a hardware XID meanwhile).
 */
enum acre_health_action acre_health_observe(struct acre_health *health,
                                            const struct acre_health_policy *policy,
                                            const struct acre_health_sample *sample,
                                            uint64_t now_ms);
/* Time passes; `is_empty`: no allocation is left on it. PROBE when a probe is due (each call
 * while probing asks again), else NOTHING. */
enum acre_health_action acre_health_tick(struct acre_health *health, bool is_empty,
                                         uint64_t now_ms);
/* A probe ended: RETURN, PROBE for the next one, or DRAIN (`why`: what the probe found). Ignored
 * when not probing. */
enum acre_health_action acre_health_probed(struct acre_health *health,
                                           const struct acre_health_policy *policy, bool passed,
                                           const char *why, uint64_t now_ms);

#endif
