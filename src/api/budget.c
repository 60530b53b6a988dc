/* budget.c - two token buckets for each user: KiB added to the store, and members of arrays.
 *
 * Both follow the policy's limits on what may wait at once, because that is what a user must be
 * able to submit in one go; a new policy resets them. */
#include "api/budget.h"

#include "core/units.h"

enum {
    BURST_MAX = 1000 * 1000, /* what limit.h takes */
    USERS_MAX = 4096,
    ROWS_A_KIB = 4, /* of the audit trail, and the job's own row, which is written again */
};

bool budget_limits(const struct acre_call *call) {
    return call->user.role < ACRE_ROLE_OPERATOR;
}

/* How many ms until the caller may have `count` of it, and the same in words; 0: now. */
static uint64_t ask(struct acre_api *api, const struct acre_call *call,
                    struct acre_allowance *allowance, struct acre_limit_options options,
                    uint32_t count, char *ret_wait, size_t wait_size) {
    if (allowance->limit == NULL || allowance->burst != options.burst) {
        limit_destroy(allowance->limit);
        allowance->limit = limit_create(&options);
        allowance->burst = options.burst;
    }
    uint64_t wait_ms = limit_ask(allowance->limit, acre_str_from(call->user.name), count,
                                 acre_desk_now(api->desk));
    if (wait_ms > 0) {
        acre_format_span((wait_ms + 999) / 1000 * 1000, ret_wait, wait_size);
    }
    return wait_ms;
}

/* All that may wait at once, and in an hour four times as much. */
static int check_records(struct acre_api *api, const struct acre_call *call, uint32_t kib,
                         struct acre_error *err) {
    const struct acre_user_limits *limits = &acre_desk_policy(api->desk)->limits;
    uint64_t all_kib = (limits->queued_mib << 10) + (uint64_t)limits->queued_jobs * ACRE_JOB_KIB;
    uint32_t burst = (uint32_t)ACRE_MIN(all_kib, (uint64_t)BURST_MAX);
    struct acre_limit_options options = {
        .keys = USERS_MAX, .burst = burst, .per_minute = ACRE_MAX(burst / 15, 1U)};
    char wait[32];
    if (ask(api, call, &api->records, options, kib, wait, sizeof(wait)) == 0) {
        return 0;
    }
    return acre_fail(err, ACRE_ELIMIT,
                     "this request needs %u KiB on disk, more than your budget allows now; try "
                     "again in %s. A user may store %u MiB at once and four times as much per hour "
                     "(max_queued_size and max_queued_jobs in the policy)",
                     kib, wait, burst >> 10);
}

/* An array is made, or changed, in one step, for which the others wait. */
static int check_members(struct acre_api *api, const struct acre_call *call, uint32_t count,
                         struct acre_error *err) {
    uint32_t queued = acre_desk_policy(api->desk)->limits.queued_jobs;
    uint32_t burst = ACRE_MAX(ACRE_MIN(queued, (uint32_t)BURST_MAX), 1U);
    struct acre_limit_options options = {.keys = USERS_MAX, .burst = burst, .per_minute = burst};
    char wait[32];
    if (count == 1 || ask(api, call, &api->members, options, count, wait, sizeof(wait)) == 0) {
        return 0;
    }
    return acre_fail(
        err, ACRE_ELIMIT,
        "array: %u members are more than you may submit or change now; try again in %s. A user may "
        "change %u at once and %u per minute (max_queued_jobs in the policy)",
        count, wait, burst, burst);
}

int budget_check(struct acre_api *api, const struct acre_call *call, struct record_cost cost,
                 struct acre_error *err) {
    if (!budget_limits(call)) {
        return 0;
    }
    int r = check_records(api, call, cost.kib, err);
    return r == 0 ? check_members(api, call, cost.members, err) : r;
}

static void charge(struct acre_api *api, const struct acre_call *call,
                   struct acre_allowance *allowance, uint32_t count) {
    limit_charge(allowance->limit, acre_str_from(call->user.name), count, acre_desk_now(api->desk));
}

void budget_pay(struct acre_api *api, const struct acre_call *call, struct record_cost cost) {
    if (!budget_limits(call)) {
        return;
    }
    charge(api, call, &api->records, cost.kib);
    if (cost.members > 1) {
        charge(api, call, &api->members, cost.members);
    }
}

bool budget_take(struct acre_api *api, struct acre_call *call, uint32_t count) {
    struct record_cost cost = {.kib = (count + ROWS_A_KIB - 1) / ROWS_A_KIB, .members = count};
    struct acre_error err = {0};
    if (budget_check(api, call, cost, &err) < 0) {
        acre_api_fail(api, call, &err);
        return false;
    }
    budget_pay(api, call, cost);
    return true;
}
