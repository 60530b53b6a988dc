/* burden.c - sums by user, and a count of jobs for each name a user has.
 *
 * Jobs that wait are counted by account.c. A name counts for as long as one of its user's jobs has
 * it; two users with the same name have one each. Every step is a look-up or two in a hash. */
#include "sched/burden.h"

#include "core/units.h"
#include "sched/inner.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct sum {
    uint64_t bytes;
    uint32_t names;
};

struct acre_burdens {
    struct sum *sums;
    uint32_t count, capacity;
    struct acre_map sum_of_user;
    struct acre_map jobs_of_name; /* user << 32 | name: how many jobs have it */
};

struct acre_burdens *acre_burdens_create(void) {
    return acre_calloc(1, sizeof(struct acre_burdens));
}

void acre_burdens_destroy(struct acre_burdens *burdens) {
    if (burdens != NULL) {
        acre_map_finish(&burdens->sum_of_user);
        acre_map_finish(&burdens->jobs_of_name);
        free(burdens->sums);
        free(burdens);
    }
}

size_t acre_burdens_bytes(const struct acre_burdens *burdens) {
    return sizeof(*burdens) + burdens->capacity * sizeof(*burdens->sums) +
           acre_map_bytes(&burdens->sum_of_user) + acre_map_bytes(&burdens->jobs_of_name);
}

static struct sum *sum_of(struct acre_burdens *burdens, uint32_t user) {
    uint32_t at = acre_map_get(&burdens->sum_of_user, user);
    if (at == ACRE_MAP_NONE) {
        burdens->sums =
            acre_grow(burdens->sums, burdens->count, &burdens->capacity, sizeof(*burdens->sums));
        at = burdens->count++;
        burdens->sums[at] = (struct sum){0};
        acre_map_put(&burdens->sum_of_user, user, at);
    }
    return &burdens->sums[at];
}

void acre_burdens_add_text(struct acre_burdens *burdens, uint32_t user, uint32_t bytes) {
    sum_of(burdens, user)->bytes += bytes;
}

void acre_burdens_remove_text(struct acre_burdens *burdens, uint32_t user, uint32_t bytes) {
    struct sum *sum = sum_of(burdens, user);
    ACRE_ASSERT(sum->bytes >= bytes);
    sum->bytes -= bytes;
}

static uint64_t name_key(uint32_t user, uint32_t name) {
    return (uint64_t)user << 32 | name;
}

void acre_burden_add(struct acre_sched *sched, const struct job *job) {
    ACRE_ASSERT(job->id != 0 && job->user != 0);
    struct acre_burdens *burdens = sched->burdens;
    if (job->array == NONE) {
        acre_burdens_add_text(burdens, job->user, job->bytes);
    }
    if (job->name == 0) {
        return;
    }
    uint64_t key = name_key(job->user, job->name);
    uint32_t jobs = acre_map_get(&burdens->jobs_of_name, key);
    bool is_new = jobs == ACRE_MAP_NONE;
    acre_map_put(&burdens->jobs_of_name, key, is_new ? 1 : jobs + 1);
    sum_of(burdens, job->user)->names += is_new;
    acre_names_take_again(acre_ledger_names(sched->ledger), job->name);
}

void acre_burden_remove(struct acre_sched *sched, const struct job *job) {
    struct acre_burdens *burdens = sched->burdens;
    if (job->array == NONE) {
        acre_burdens_remove_text(burdens, job->user, job->bytes);
    }
    if (job->name == 0) {
        return;
    }
    uint64_t key = name_key(job->user, job->name);
    uint32_t jobs = acre_map_get(&burdens->jobs_of_name, key);
    ACRE_ASSERT(jobs != ACRE_MAP_NONE && jobs > 0);
    if (jobs > 1) {
        acre_map_put(&burdens->jobs_of_name, key, jobs - 1);
    } else {
        acre_map_remove(&burdens->jobs_of_name, key);
        ACRE_ASSERT(sum_of(burdens, job->user)->names > 0);
        sum_of(burdens, job->user)->names--;
    }
    acre_names_give(acre_ledger_names(sched->ledger), job->name);
}

void acre_sched_burden(const struct acre_sched *sched, uint32_t user,
                       struct acre_burden *ret_burden) {
    uint32_t at = acre_map_get(&sched->burdens->sum_of_user, user);
    struct sum sum = at != ACRE_MAP_NONE ? sched->burdens->sums[at] : (struct sum){0};
    *ret_burden = (struct acre_burden){
        .queued = accounts_queued(sched->accounts, user), .bytes = sum.bytes, .names = sum.names};
}

/* "0.9 MiB": never 0.0 for something. */
static double shown_mib(uint64_t bytes) {
    double mib = (double)bytes / (1 << 20);
    return bytes > 0 && mib < 0.1 ? 0.1 : mib;
}

int acre_sched_within_limits(const struct acre_sched *sched, const struct acre_job_spec *spec,
                             uint32_t count, struct acre_error *err) {
    const struct acre_user_limits *limits = &sched->policy.limits;
    struct acre_burden now;
    char waiting[32];
    acre_sched_burden(sched, spec->user, &now);
    if (now.queued + count > limits->queued_jobs) {
        return acre_fail(
            err, ACRE_ELIMIT,
            "max_queued_jobs: you have %s waiting, and this submission adds %u; a user "
            "may have %u. Wait until some of them have started, or cancel some",
            acre_format_count(now.queued, "job", waiting, sizeof(waiting)), count,
            limits->queued_jobs);
    }
    if (now.bytes + spec->bytes > limits->queued_mib << 20) {
        char allowed[32];
        return acre_fail(
            err, ACRE_ELIMIT,
            "max_queued_size: your jobs have %.1f MiB of scripts, commands and environments, and "
            "this submission adds %.1f MiB; a user may have %s. Wait until some of them have "
            "ended, submit similar jobs as an array, or read large input from files",
            shown_mib(now.bytes), shown_mib(spec->bytes),
            acre_format_mib(limits->queued_mib, allowed, sizeof(allowed)));
    }
    bool is_new = spec->name != 0 &&
                  acre_map_get(&sched->burdens->jobs_of_name, name_key(spec->user, spec->name)) ==
                      ACRE_MAP_NONE;
    if (is_new && now.names >= limits->names) {
        return acre_fail(err, ACRE_ELIMIT,
                         "max_names: your jobs have %u different names, and '%s' is a new one; a "
                         "user may have %u. Reuse a name, submit similar jobs as an array, or wait "
                         "until some of them have ended",
                         now.names, acre_names_text(acre_ledger_names(sched->ledger), spec->name),
                         limits->names);
    }
    return 0;
}
