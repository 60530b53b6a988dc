/* usage.c - accounts as `acre usage` shows and the store keeps them. */
#include "sched/inner.h"
#include "sched/why.h"

#include <math.h>

static void show(const struct acre_sched *sched, uint32_t account, uint64_t now_ms,
                 struct acre_usage *ret_usage) {
    struct account_summary row;
    accounts_get(sched->accounts, account, now_ms, &row);
    *ret_usage = (struct acre_usage){
        .project = row.project,
        .user = row.user,
        .gpu_hours = row.use_milli_ms / ACRE_MILLI_MS_PER_HOUR,
        .share = row.share,
        .used = row.used,
        .factor = exp2(-row.level),
        .held_milli = (uint32_t)ACRE_MIN(row.held_milli, (uint64_t)UINT32_MAX),
        .running = row.running,
        .queued = row.queued,
        .charged_ms = row.charged_milli_ms,
        .stored_use = row.stored_use_milli_ms,
        .stored_at_ms = now_ms,
    };
}

/* An account also arises from a submission that was refused; nothing is ever said of that one. */
static bool is_used(const struct acre_usage *usage) {
    return usage->running + usage->queued > 0 || usage->charged_ms > 0 || usage->stored_use > 0;
}

bool acre_sched_usage(const struct acre_sched *sched, uint64_t now_ms, uint32_t *cursor,
                      struct acre_usage *ret_usage) {
    uint32_t count = accounts_count(sched->accounts);
    while (*cursor < count) {
        struct acre_usage usage;
        show(sched, (*cursor)++, now_ms, &usage);
        if (is_used(&usage)) {
            *ret_usage = usage;
            return true;
        }
    }
    return false;
}

bool acre_sched_find_usage(const struct acre_sched *sched, uint32_t project, uint32_t user,
                           uint64_t now_ms, struct acre_usage *ret_usage) {
    uint32_t account = accounts_find(sched->accounts, project, user);
    if (account == UINT32_MAX) {
        return false;
    }
    struct acre_usage usage;
    show(sched, account, now_ms, &usage);
    if (is_used(&usage)) {
        *ret_usage = usage;
        return true;
    }
    return false;
}

void acre_sched_restore_usage(struct acre_sched *sched, const struct acre_usage *usage) {
    uint32_t account = accounts_intern(sched->accounts, usage->project, usage->user);
    accounts_restore(sched->accounts, account, usage->charged_ms, usage->stored_use,
                     usage->stored_at_ms);
}
