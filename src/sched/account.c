/* account.c - decayed use in closed form, shares on two levels, quotas as rows.
 *
 * Use. A sum (of an account, a project, a user, the cluster) is two numbers that were right at
 * `at_ms`: what ended runs left (`stored`) and what the present ones have accrued (`live`), with
 * the rate at which it grows (milli-GPUs held). Between two events use decays by half in every
 * half-life h and grows at that rate, which has a closed form:
 *
 *     use(t) = use(t0) 2^(-(t-t0)/h) + rate (h / ln 2) (1 - 2^(-(t-t0)/h))
 *
 * so nothing is walked as time passes: an event touches the four sums of one account. When a run
 * ends, what it alone has accrued (the second term, from its start) moves from live to stored.
 * When no run is left live is set to 0, so that rounding never adds up. After a change of the
 * half-life runs that began before it are charged by the new one.
 *
 * Level (POL-1). Classic fair share on two levels. With project p of weight w among those with
 * live jobs, user u in it likewise:
 *
 *     share_p = w_p / sum of w            share_u = w_u / sum of w in p
 *     used_p  = use_p / use of all        used_u  = use_u / use of all
 *     effective_u = used_u + (used_p - used_u) share_u
 *     level = effective_u / (share_p share_u)          factor = 2^-level
 *
 * The effective use lets a user answer for part of what the rest of the project used: a new user
 * in a project that has had its share does not go before all others. Only those with live jobs
 * count in the sums of weights: the share of absent users goes to those present.
 *
 * Quotas. A limit is a row: its name in the policy, what is held of it, what a job adds. */
#include "sched/account.h"

#include "core/map.h"
#include "core/units.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LN2        0.693147180559945309417
#define QUOTA_NONE UINT32_MAX

struct account_sums {
    double stored, live; /* milli-GPU ms, right at at_ms */
    uint64_t at_ms;
    uint64_t milli, mib; /* held now; milli is also the rate of use */
    uint32_t running, queued;
};

struct account {
    struct account_sums sums;
    uint32_t project, user; /* indexes of parties */
    uint64_t charged_milli_ms;
};

/* A project, or a user over all projects. */
struct party {
    struct account_sums sums;
    uint64_t active_weight; /* projects: of the users in it with live jobs */
    uint32_t name;
    uint32_t weight;
    uint32_t quota; /* index in the policy; QUOTA_NONE */
    bool is_user;
};

struct accounts {
    const struct acre_names *names;
    struct acre_policy policy;
    struct account *accounts;
    struct party *parties;
    uint32_t account_count, account_capacity;
    uint32_t party_count, party_capacity;
    struct acre_map account_of_pair, party_of_name; /* keys: see pair_key, party_key */
    struct account_sums all;
    uint64_t active_weight; /* of projects with live jobs */
};

static double decay(const struct accounts *accounts, uint64_t ms) {
    return exp2(-(double)ms / (double)accounts->policy.half_life_ms);
}

/* What one milli-GPU held for so long has accrued, decayed as it went. */
static double accrued(const struct accounts *accounts, uint64_t ms) {
    double half_life_ms = (double)accounts->policy.half_life_ms;
    return half_life_ms / LN2 * -expm1(-(double)ms / half_life_ms * LN2);
}

/* The sums as of `now_ms`; a clock that went back changes nothing. */
static struct account_sums as_of(const struct accounts *accounts, const struct account_sums *sums,
                                 uint64_t now_ms) {
    struct account_sums now = *sums;
    if (now_ms > now.at_ms) {
        uint64_t ms = now_ms - now.at_ms;
        if (now.stored > 0 || now.live > 0) { /* most accounts are new or long gone */
            double left = decay(accounts, ms);
            now.stored *= left;
            now.live *= left;
        }
        if (now.milli > 0) {
            now.live += (double)now.milli * accrued(accounts, ms);
        }
        now.at_ms = now_ms;
    }
    return now;
}

static double use_of(const struct accounts *accounts, const struct account_sums *sums,
                     uint64_t now_ms) {
    struct account_sums now = as_of(accounts, sums, now_ms);
    return now.stored + now.live;
}

/* The four sums an account adds to. */
enum { SUMS_OF_ACCOUNT = 4 };
static void sums_of(struct accounts *accounts, uint32_t account,
                    struct account_sums *ret_sums[SUMS_OF_ACCOUNT]) {
    ACRE_ASSERT(account < accounts->account_count);
    struct account *row = &accounts->accounts[account];
    ret_sums[0] = &row->sums;
    ret_sums[1] = &accounts->parties[row->project].sums;
    ret_sums[2] = &accounts->parties[row->user].sums;
    ret_sums[3] = &accounts->all;
}

static bool is_live(const struct account_sums *sums) {
    return sums->running + sums->queued > 0;
}

/* Call around a change of running and queued: weights of who has live jobs are kept summed. */
static void weigh(struct accounts *accounts, uint32_t account, bool add) {
    const struct account *row = &accounts->accounts[account];
    struct party *project = &accounts->parties[row->project];
    uint64_t user_weight = is_live(&row->sums) ? accounts->parties[row->user].weight : 0;
    uint64_t project_weight = is_live(&project->sums) ? project->weight : 0;
    if (add) {
        project->active_weight += user_weight;
        accounts->active_weight += project_weight;
    } else {
        project->active_weight -= user_weight;
        accounts->active_weight -= project_weight;
    }
}

/* The row of the policy for "user:ada" or "project:vision": the index, or QUOTA_NONE. */
static bool is_for(const char *who, bool is_user, const char *name) {
    const char *kind = is_user ? "user:" : "project:";
    size_t length = strlen(kind);
    return strncmp(who, kind, length) == 0 && strcmp(who + length, name) == 0;
}

static uint32_t find_quota(const struct acre_policy *policy, bool is_user, const char *name) {
    uint32_t everybody = QUOTA_NONE;
    for (uint32_t i = 0; i < policy->quota_count; i++) {
        if (is_for(policy->quotas[i].who, is_user, name)) {
            return i;
        }
        if (is_for(policy->quotas[i].who, is_user, "*")) {
            everybody = i;
        }
    }
    return everybody;
}

static uint32_t find_weight(const struct acre_policy *policy, bool is_user, const char *name) {
    for (uint32_t i = 0; i < policy->share_count; i++) {
        if (is_for(policy->shares[i].who, is_user, name)) {
            return ACRE_MAX(policy->shares[i].weight, 1U);
        }
    }
    return 1;
}

static void apply_policy(struct accounts *accounts, struct party *party) {
    const char *name = acre_names_text(accounts->names, party->name);
    party->quota = find_quota(&accounts->policy, party->is_user, name);
    party->weight = find_weight(&accounts->policy, party->is_user, name);
}

struct accounts *accounts_create(struct acre_names *names, const struct acre_policy *policy) {
    struct accounts *accounts = acre_calloc(1, sizeof(*accounts));
    accounts->names = names;
    accounts->policy = *policy;
    ACRE_ASSERT(policy->half_life_ms > 0);
    return accounts;
}

void accounts_destroy(struct accounts *accounts) {
    if (accounts == NULL) {
        return;
    }
    acre_map_finish(&accounts->account_of_pair);
    acre_map_finish(&accounts->party_of_name);
    free(accounts->accounts);
    free(accounts->parties);
    free(accounts);
}

size_t accounts_bytes(const struct accounts *accounts) {
    return sizeof(*accounts) + accounts->account_capacity * sizeof(*accounts->accounts) +
           accounts->party_capacity * sizeof(*accounts->parties) +
           acre_map_bytes(&accounts->account_of_pair) + acre_map_bytes(&accounts->party_of_name);
}

void accounts_set_policy(struct accounts *accounts, const struct acre_policy *policy,
                         uint64_t now_ms) {
    ACRE_ASSERT(policy->half_life_ms > 0);
    accounts->all = as_of(accounts, &accounts->all, now_ms);
    for (uint32_t i = 0; i < accounts->account_count; i++) {
        struct account *row = &accounts->accounts[i];
        row->sums = as_of(accounts, &row->sums, now_ms);
    }
    for (uint32_t i = 0; i < accounts->party_count; i++) {
        struct party *party = &accounts->parties[i];
        party->sums = as_of(accounts, &party->sums, now_ms);
    }
    accounts->policy = *policy;
    accounts->active_weight = 0;
    for (uint32_t i = 0; i < accounts->party_count; i++) {
        struct party *party = &accounts->parties[i];
        apply_policy(accounts, party);
        party->active_weight = 0;
        if (!party->is_user && is_live(&party->sums)) {
            accounts->active_weight += party->weight;
        }
    }
    for (uint32_t i = 0; i < accounts->account_count; i++) {
        const struct account *row = &accounts->accounts[i];
        if (is_live(&row->sums)) {
            accounts->parties[row->project].active_weight += accounts->parties[row->user].weight;
        }
    }
}

/* Keys of maps are never 0. */
static uint64_t party_key(uint32_t name, bool is_user) {
    return ((uint64_t)name << 1 | is_user) + 1;
}

static uint64_t pair_key(uint32_t project, uint32_t user) {
    return ((uint64_t)project << 32 | user) + 1;
}

static uint32_t intern_party(struct accounts *accounts, uint32_t name, bool is_user) {
    uint32_t found = acre_map_get(&accounts->party_of_name, party_key(name, is_user));
    if (found != ACRE_MAP_NONE) {
        return found;
    }
    accounts->parties = acre_grow(accounts->parties, accounts->party_count,
                                  &accounts->party_capacity, sizeof(*accounts->parties));
    uint32_t at = accounts->party_count++;
    accounts->parties[at] = (struct party){.name = name, .is_user = is_user};
    apply_policy(accounts, &accounts->parties[at]);
    acre_map_put(&accounts->party_of_name, party_key(name, is_user), at);
    return at;
}

uint32_t accounts_find(const struct accounts *accounts, uint32_t project, uint32_t user) {
    return acre_map_get(&accounts->account_of_pair, pair_key(project, user));
}

uint32_t accounts_count(const struct accounts *accounts) {
    return accounts->account_count;
}

uint32_t accounts_intern(struct accounts *accounts, uint32_t project, uint32_t user) {
    uint32_t found = accounts_find(accounts, project, user);
    if (found != ACRE_MAP_NONE) {
        return found;
    }
    accounts->accounts = acre_grow(accounts->accounts, accounts->account_count,
                                   &accounts->account_capacity, sizeof(*accounts->accounts));
    uint32_t at = accounts->account_count++;
    uint32_t project_at = intern_party(accounts, project, false);
    uint32_t user_at = intern_party(accounts, user, true);
    accounts->accounts[at] = (struct account){.project = project_at, .user = user_at};
    acre_map_put(&accounts->account_of_pair, pair_key(project, user), at);
    return at;
}

static uint64_t add_capped(uint64_t a, uint64_t b) {
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static uint64_t multiply_capped(uint64_t a, uint64_t b) {
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

struct account_load load_of_request(const struct acre_request *request) {
    uint64_t devices = (uint64_t)request->replicas * request->gpus;
    return (struct account_load){
        .milli = devices * (request->exclusive ? 1000 : request->milli),
        .mib = multiply_capped(devices, request->mib),
    };
}

struct account_load load_of_parts(const struct acre_part *parts, uint32_t count) {
    struct account_load load = {0};
    for (uint32_t i = 0; i < count; i++) {
        if (parts[i].device != ACRE_DEVICE_NONE) {
            load.milli += parts[i].milli;
            load.mib += parts[i].mib;
        }
    }
    return load;
}

/* One more or fewer of a counter of all four sums. */
static void count_queued(struct accounts *accounts, uint32_t account, int by) {
    struct account_sums *sums[SUMS_OF_ACCOUNT];
    sums_of(accounts, account, sums);
    weigh(accounts, account, false);
    for (int i = 0; i < SUMS_OF_ACCOUNT; i++) {
        ACRE_ASSERT(by > 0 || sums[i]->queued > 0);
        sums[i]->queued += (uint32_t)by;
    }
    weigh(accounts, account, true);
}

void accounts_queue(struct accounts *accounts, uint32_t account) {
    count_queued(accounts, account, 1);
}

void accounts_unqueue(struct accounts *accounts, uint32_t account) {
    count_queued(accounts, account, -1);
}

uint32_t accounts_queued(const struct accounts *accounts, uint32_t user) {
    uint32_t at = acre_map_get(&accounts->party_of_name, party_key(user, true));
    return at != ACRE_MAP_NONE ? accounts->parties[at].sums.queued : 0;
}

static uint64_t age(uint64_t since_ms, uint64_t now_ms) {
    return now_ms > since_ms ? now_ms - since_ms : 0;
}

void accounts_take(struct accounts *accounts, uint32_t account, struct account_load load,
                   uint64_t since_ms, uint64_t now_ms) {
    struct account_sums *sums[SUMS_OF_ACCOUNT];
    sums_of(accounts, account, sums);
    double before = (double)load.milli * accrued(accounts, age(since_ms, now_ms));
    weigh(accounts, account, false);
    for (int i = 0; i < SUMS_OF_ACCOUNT; i++) {
        *sums[i] = as_of(accounts, sums[i], now_ms);
        sums[i]->live += before;
        sums[i]->milli += load.milli;
        sums[i]->mib += load.mib;
        sums[i]->running++;
    }
    weigh(accounts, account, true);
}

void accounts_release(struct accounts *accounts, uint32_t account, struct account_load load,
                      uint64_t since_ms, uint64_t now_ms) {
    struct account_sums *sums[SUMS_OF_ACCOUNT];
    sums_of(accounts, account, sums);
    double run = (double)load.milli * accrued(accounts, age(since_ms, now_ms));
    weigh(accounts, account, false);
    for (int i = 0; i < SUMS_OF_ACCOUNT; i++) {
        ACRE_ASSERT(sums[i]->running > 0 && sums[i]->milli >= load.milli &&
                    sums[i]->mib >= load.mib);
        *sums[i] = as_of(accounts, sums[i], now_ms);
        sums[i]->milli -= load.milli;
        sums[i]->mib -= load.mib;
        sums[i]->running--;
        sums[i]->live = sums[i]->milli > 0 ? fmax(sums[i]->live - run, 0) : 0;
        sums[i]->stored += run;
    }
    weigh(accounts, account, true);
    struct account *row = &accounts->accounts[account];
    row->charged_milli_ms =
        add_capped(row->charged_milli_ms, multiply_capped(load.milli, age(since_ms, now_ms)));
}

void accounts_restore(struct accounts *accounts, uint32_t account, uint64_t charged_milli_ms,
                      double use_milli_ms, uint64_t at_ms) {
    struct account_sums *sums[SUMS_OF_ACCOUNT];
    sums_of(accounts, account, sums);
    double use = isfinite(use_milli_ms) && use_milli_ms > 0 ? use_milli_ms : 0;
    for (int i = 0; i < SUMS_OF_ACCOUNT; i++) {
        *sums[i] = as_of(accounts, sums[i], at_ms);
        sums[i]->stored += use * decay(accounts, age(at_ms, sums[i]->at_ms));
    }
    struct account *row = &accounts->accounts[account];
    row->charged_milli_ms = add_capped(row->charged_milli_ms, charged_milli_ms);
}

/* Its part of the sum of weights; one that is not in the sum yet counts as if it were. */
static double part_of(uint32_t weight, uint64_t sum, bool counted) {
    return (double)weight / (double)(counted ? sum : sum + weight);
}

static void judge(const struct accounts *accounts, const struct account *row, uint64_t now_ms,
                  struct account_summary *out) {
    const struct party *project = &accounts->parties[row->project];
    const struct party *user = &accounts->parties[row->user];
    double project_share =
        part_of(project->weight, accounts->active_weight, is_live(&project->sums));
    double user_share = part_of(user->weight, project->active_weight, is_live(&row->sums));
    double all = use_of(accounts, &accounts->all, now_ms);
    out->use_milli_ms = use_of(accounts, &row->sums, now_ms);
    out->share = project_share * user_share;
    out->used = 0;
    out->level = 0;
    if (all > 0) {
        double project_used = use_of(accounts, &project->sums, now_ms) / all;
        out->used = fmin(out->use_milli_ms / all, 1);
        double others = fmax(project_used - out->used, 0);
        out->level = (out->used + others * user_share) / out->share;
    }
}

void accounts_get(const struct accounts *accounts, uint32_t account, uint64_t now_ms,
                  struct account_summary *ret_account) {
    ACRE_ASSERT(account < accounts->account_count);
    const struct account *row = &accounts->accounts[account];
    struct account_sums now = as_of(accounts, &row->sums, now_ms);
    struct account_summary out = {
        .project = accounts->parties[row->project].name,
        .user = accounts->parties[row->user].name,
        .held_milli = now.milli,
        .held_mib = now.mib,
        .running = now.running,
        .queued = now.queued,
        .charged_milli_ms = row->charged_milli_ms,
        .stored_use_milli_ms = now.stored,
    };
    judge(accounts, row, now_ms, &out);
    *ret_account = out;
}

/* What a check asks about: what would be added, and whether what is held counts. */
struct quota_question {
    struct account_load load;
    uint32_t jobs;
    uint64_t now_ms;
    bool alone;  /* with nothing else held */
    bool passed; /* is it passed already? (nothing is asked for) */
};

/* The numbers of one limit of a quota. allowed 0: there is none. */
static struct quota_hit numbers(const struct accounts *accounts, const struct acre_quota *quota,
                                const struct account_sums *sums, enum quota_limit limit,
                                const struct quota_question *ask) {
    static const char *const units[] = {
#define X(name, unit) unit,
        ACRE_QUOTA_LIMITS(X)
#undef X
    };
    struct quota_hit hit = {.limit = limit, .soft = quota->soft, .unit = units[limit]};
    switch (limit) {
    case ACRE_QUOTA_GPUS:
        hit.asked = ask->load.milli, hit.held = sums->milli, hit.allowed = quota->gpu_milli;
        break;
    case ACRE_QUOTA_MEMORY:
        hit.asked = ask->load.mib, hit.held = sums->mib, hit.allowed = quota->gpu_mib;
        break;
    case ACRE_QUOTA_RUNNING:
        hit.asked = ask->jobs, hit.held = sums->running, hit.allowed = quota->running;
        break;
    case ACRE_QUOTA_QUEUED:
        hit.asked = ask->jobs, hit.held = sums->queued, hit.allowed = quota->queued;
        hit.soft = false;
        break;
    case ACRE_QUOTA_GPU_HOURS: /* use cannot be asked for: at the limit, nothing more is begun */
        hit.asked = ask->load.milli > 0 || ask->load.mib > 0;
        hit.allowed = quota->gpu_hours;
        hit.held = hit.allowed == 0
                       ? 0
                       : (uint64_t)(use_of(accounts, sums, ask->now_ms) / ACRE_MILLI_MS_PER_HOUR);
        break;
    }
    hit.held = ask->alone ? 0 : hit.held;
    return hit;
}

static bool is_over(const struct quota_hit *hit, const struct quota_question *ask) {
    if (hit->allowed == 0) {
        return false;
    }
    if (ask->passed) {
        return hit->limit == ACRE_QUOTA_GPU_HOURS ? hit->held >= hit->allowed
                                                  : hit->held > hit->allowed;
    }
    return hit->asked > 0 && add_capped(hit->held, hit->asked) > hit->allowed;
}

/* The first limit among `limits` (bits) of the account's two quotas that is in the way. */
static bool find_hit(const struct accounts *accounts, uint32_t account, uint32_t limits, bool soft,
                     const struct quota_question *ask, struct quota_hit *ret_hit) {
    ACRE_ASSERT(account < accounts->account_count);
    const struct account *row = &accounts->accounts[account];
    const uint32_t parties[] = {row->user, row->project};
    for (size_t i = 0; i < ACRE_COUNT(parties); i++) {
        const struct party *party = &accounts->parties[parties[i]];
        if (party->quota == QUOTA_NONE) {
            continue;
        }
        const struct acre_quota *quota = &accounts->policy.quotas[party->quota];
        for (unsigned limit = 0; limit <= ACRE_QUOTA_GPU_HOURS; limit++) {
            if ((limits & 1U << limit) == 0) {
                continue;
            }
            struct quota_hit hit =
                numbers(accounts, quota, &party->sums, (enum quota_limit)limit, ask);
            if (hit.soft != soft || !is_over(&hit, ask)) {
                continue;
            }
            hit.of_project = !party->is_user;
            snprintf(hit.who, sizeof(hit.who), "%s:%s", party->is_user ? "user" : "project",
                     acre_names_text(accounts->names, party->name));
            *ret_hit = hit;
            return true;
        }
    }
    return false;
}

enum {
    HELD_LIMITS = 1 << ACRE_QUOTA_GPUS | 1 << ACRE_QUOTA_MEMORY,
    RUN_LIMITS = HELD_LIMITS | 1 << ACRE_QUOTA_RUNNING | 1 << ACRE_QUOTA_GPU_HOURS,
};

bool accounts_may_ever(const struct accounts *accounts, uint32_t account, struct account_load load,
                       struct quota_hit *ret_hit) {
    struct quota_question ask = {.load = load, .alone = true};
    return !find_hit(accounts, account, HELD_LIMITS, false, &ask, ret_hit);
}

bool accounts_may_queue(const struct accounts *accounts, uint32_t account,
                        struct quota_hit *ret_hit) {
    struct quota_question ask = {.jobs = 1};
    return !find_hit(accounts, account, 1 << ACRE_QUOTA_QUEUED, false, &ask, ret_hit);
}

enum quota_answer accounts_may_run(const struct accounts *accounts, uint32_t account,
                                   struct account_load load, uint64_t now_ms,
                                   struct quota_hit *ret_hit) {
    struct quota_question ask = {.load = load, .jobs = 1, .now_ms = now_ms};
    if (find_hit(accounts, account, RUN_LIMITS, false, &ask, ret_hit)) {
        return ACRE_QUOTA_OVER_HARD;
    }
    return find_hit(accounts, account, RUN_LIMITS, true, &ask, ret_hit) ? ACRE_QUOTA_OVER_SOFT
                                                                        : ACRE_QUOTA_WITHIN;
}

bool accounts_over_soft(const struct accounts *accounts, uint32_t account, uint64_t now_ms) {
    struct quota_question ask = {.now_ms = now_ms, .passed = true};
    struct quota_hit hit;
    return find_hit(accounts, account, RUN_LIMITS, true, &ask, &hit);
}

const struct acre_quota *accounts_hard_quota(const struct accounts *accounts, uint32_t account,
                                             bool of_project, uint64_t now_ms, uint32_t *ret_party,
                                             uint64_t *ret_below_ms) {
    ACRE_ASSERT(account < accounts->account_count);
    const struct account *row = &accounts->accounts[account];
    uint32_t at = of_project ? row->project : row->user;
    const struct party *party = &accounts->parties[at];
    if (party->quota == QUOTA_NONE || accounts->policy.quotas[party->quota].soft) {
        return NULL;
    }
    const struct acre_quota *quota = &accounts->policy.quotas[party->quota];
    double hours = use_of(accounts, &party->sums, now_ms) / ACRE_MILLI_MS_PER_HOUR;
    double over = quota->gpu_hours > 0 ? hours / (double)quota->gpu_hours : 0;
    double wait_ms = over > 1 ? log2(over) * (double)accounts->policy.half_life_ms : 0;
    *ret_party = at;
    *ret_below_ms = over > 1 ? now_ms + (uint64_t)fmin(wait_ms, 1e15) : 0;
    return quota;
}

char *quota_hit_show(const struct quota_hit *hit, char *text, size_t size) {
    char asked[32], held[32], allowed[32];
    bool memory = hit->limit == ACRE_QUOTA_MEMORY;
    switch (hit->limit) {
    case ACRE_QUOTA_GPUS:
    case ACRE_QUOTA_MEMORY:
        if (memory) {
            acre_format_mib(hit->asked, asked, sizeof(asked));
            acre_format_mib(hit->held, held, sizeof(held));
            acre_format_mib(hit->allowed, allowed, sizeof(allowed));
        } else {
            acre_format_amount(hit->asked, "GPU", asked, sizeof(asked));
            acre_format_amount(hit->held, "GPU", held, sizeof(held));
            acre_format_amount(hit->allowed, "GPU", allowed, sizeof(allowed));
        }
        if (hit->asked > hit->allowed) {
            snprintf(text, size, "%s may hold %s%s at once; this asks for %s", hit->who, allowed,
                     memory ? " of GPU memory" : "", asked);
        } else {
            snprintf(text, size, "%s holds %s%s, the limit is %s, and this asks for %s", hit->who,
                     held, memory ? " of GPU memory" : "", allowed, asked);
        }
        break;
    case ACRE_QUOTA_RUNNING:
        snprintf(text, size, "%s has %" PRIu64 " of at most %" PRIu64 " jobs running", hit->who,
                 hit->held, hit->allowed);
        break;
    case ACRE_QUOTA_QUEUED:
        snprintf(text, size,
                 "%s has %" PRIu64 " of at most %" PRIu64 " jobs waiting and submits "
                 "%" PRIu64 " more",
                 hit->who, hit->held, hit->allowed, hit->asked);
        break;
    case ACRE_QUOTA_GPU_HOURS:
        snprintf(text, size,
                 "%s has used %" PRIu64 " of %" PRIu64 " GPU-hours (older use counts "
                 "less)",
                 hit->who, hit->held, hit->allowed);
        break;
    }
    return text;
}
