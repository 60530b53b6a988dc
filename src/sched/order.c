/* order.c - which job goes first.
 *
 * Waiting raises every job at the same rate, so the difference of two jobs never changes: each
 * policy is a number per job that is fixed once the job may start, and nothing is sorted again as
 * time passes. With a = policy.priority_age_ms, smaller first, then by id:
 *
 *     fcfs       eligible_ms
 *     priority   eligible_ms - a * priority          a level is worth waiting for `a`
 *     sjf        eligible_ms + a * log2(run)         half the length is worth waiting for `a`
 *     gang       eligible_ms - a * log2(milli-GPU)   twice the GPUs are worth waiting for `a`
 *
 * Logarithms, because lengths and sizes spread over five decades: in proportion, the longest job
 * would wait for months or the rule would mean nothing to the short ones.
 *
 * Fair share orders accounts, and the jobs of one account by priority as above. An account stands
 * by its level (account.h: decayed use for its share) plus what it holds now for its share: use
 * accrues only as time passes, and without the second term the first account in a pass would take
 * everything that is free. Levels are computed once in ten seconds (use is remembered for days) and
 * sorted by insertion, since few change places; what is held counts at once. */
#include "sched/inner.h"

#include "ledger/nodes.h"

#include <string.h>

enum { RANK_EVERY_MS = 10000 };

/* Keys stay far inside 2^53, so that they are exact as doubles too: times up to the year 10000 are
 * below 2^48 ms, ages below 2^42 ms (139 years) times 64 levels. */
#define KEY_TIME_MAX (UINT64_C(1) << 48)
#define KEY_AGE_MAX  (UINT64_C(1) << 42)

static struct tree_links *job_order_links(void *context, uint32_t job) {
    return &((struct acre_sched *)context)->jobs[job].in_order;
}

static struct tree_links *job_line_links(void *context, uint32_t job) {
    return &((struct acre_sched *)context)->jobs[job].in_line;
}

static bool key_is_before(const void *context, uint32_t a, uint32_t b) {
    const struct job *x = &((const struct acre_sched *)context)->jobs[a];
    const struct job *y = &((const struct acre_sched *)context)->jobs[b];
    return key_precedes(x->key, x->id, y->key, y->id);
}

static bool id_is_before(const void *context, uint32_t a, uint32_t b) {
    const struct acre_sched *sched = context;
    return sched->jobs[a].id < sched->jobs[b].id;
}

static uint32_t job_duration(const void *context, uint32_t job) {
    return ((const struct acre_sched *)context)->jobs[job].duration_s;
}

static struct tree_links *line_links(void *context, uint32_t line) {
    return &((struct acre_sched *)context)->lines[line].in_class;
}

static bool filed_before(const void *context, uint32_t a, uint32_t b) {
    const struct line *x = &((const struct acre_sched *)context)->lines[a];
    const struct line *y = &((const struct acre_sched *)context)->lines[b];
    return key_precedes(x->filed_key, x->filed_id, y->filed_key, y->filed_id);
}

bool line_is_before(const struct acre_sched *sched, uint32_t a, uint32_t b) {
    const struct line *x = &sched->lines[a];
    const struct line *y = &sched->lines[b];
    return key_precedes(x->first_key, x->first_id, y->first_key, y->first_id);
}

static uint32_t line_duration(const void *context, uint32_t line) {
    return ((const struct acre_sched *)context)->lines[line].filed_s;
}

const struct tree_kind order_by_key = {job_order_links, key_is_before, NULL};
const struct tree_kind order_by_id = {job_order_links, id_is_before, NULL};
const struct tree_kind line_by_key = {job_line_links, key_is_before, job_duration};
const struct tree_kind lines_by_first = {line_links, filed_before, line_duration};

/* log2 in 1/256, linear between powers of two: the same on every machine. */
static int64_t log2_256(uint64_t x) {
    x = ACRE_MAX(x, UINT64_C(1));
    uint32_t whole = 63 - (uint32_t)__builtin_clzll(x);
    uint64_t mantissa = x << (63 - whole); /* the top bit is set */
    return (int64_t)whole * 256 + (int64_t)(mantissa >> 55 & 255);
}

int64_t order_key(const struct acre_sched *sched, const struct job *job) {
    int64_t eligible = (int64_t)ACRE_MIN(job->eligible_ms, KEY_TIME_MAX);
    int64_t age = (int64_t)ACRE_MIN(sched->policy.priority_age_ms, KEY_AGE_MAX);
    switch (sched->policy.kind) {
    case ACRE_POLICY_FCFS:
        return eligible;
    case ACRE_POLICY_SJF:
        return eligible + age * log2_256(job_predicted_ms(sched, job)) / 256;
    case ACRE_POLICY_GANG:
        return eligible - age * log2_256(sched->classes[job->class].load.milli + 1) / 256;
    case ACRE_POLICY_FAIR_SHARE:
    case ACRE_POLICY_PRIORITY:
    case ACRE_POLICY_COUNT:
        break;
    }
    return eligible - age * job->priority;
}

struct tree *order_of(struct acre_sched *sched, const struct job *job) {
    return sched->policy.kind == ACRE_POLICY_FAIR_SHARE ? &owner_at(sched, job->account)->order
                                                        : &sched->order;
}

static double owner_level(const struct owner *owner) {
    return owner->level + (double)owner->held_milli * owner->per_milli;
}

static bool goes_before(const struct acre_sched *sched, uint32_t a, uint32_t b) {
    double x = owner_level(&sched->owners[a]);
    double y = owner_level(&sched->owners[b]);
    return x != y ? x < y : a < b;
}

bool order_before(const struct acre_sched *sched, uint32_t a, uint32_t b) {
    const struct job *x = &sched->jobs[a];
    const struct job *y = &sched->jobs[b];
    return sched->policy.kind == ACRE_POLICY_FAIR_SHARE && x->account != y->account
               ? goes_before(sched, x->account, y->account)
               : key_is_before(sched, a, b);
}

static void compute_level(struct acre_sched *sched, uint32_t account, uint64_t now_ms) {
    struct account_summary now;
    accounts_get(sched->accounts, account, now_ms, &now);
    double devices = ACRE_MAX(acre_ledger_device_count(sched->ledger), 1U);
    struct owner *owner = &sched->owners[account];
    owner->level = now.level;
    owner->per_milli = now.share > 0 ? 1 / (now.share * devices * 1000) : 0;
}

/* How many in the ranking go before the account; where it stands, if it is in. */
static uint32_t rank_of(const struct acre_sched *sched, uint32_t account) {
    uint32_t from = 0;
    uint32_t to = sched->ranking_count;
    while (from < to) {
        uint32_t middle = from + (to - from) / 2;
        if (goes_before(sched, sched->ranking[middle], account)) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    return from;
}

void rank_enter(struct acre_sched *sched, uint32_t account, uint64_t now_ms) {
    struct owner *owner = owner_at(sched, account);
    if (sched->policy.kind != ACRE_POLICY_FAIR_SHARE || owner->is_ranked) {
        return;
    }
    owner->is_ranked = true;
    compute_level(sched, account, now_ms);
    sched->ranking = acre_grow(sched->ranking, sched->ranking_count, &sched->ranking_capacity,
                               sizeof(*sched->ranking));
    uint32_t at = rank_of(sched, account);
    memmove(sched->ranking + at + 1, sched->ranking + at,
            (sched->ranking_count - at) * sizeof(*sched->ranking));
    sched->ranking[at] = account;
    sched->ranking_count++;
}

void rank_change(struct acre_sched *sched, uint32_t account, int64_t milli) {
    struct owner *owner = owner_at(sched, account);
    uint32_t from = owner->is_ranked ? rank_of(sched, account) : 0;
    ACRE_ASSERT(!owner->is_ranked || sched->ranking[from] == account);
    owner->held_milli += (uint64_t)milli;
    if (!owner->is_ranked) {
        return;
    }
    memmove(sched->ranking + from, sched->ranking + from + 1,
            (--sched->ranking_count - from) * sizeof(*sched->ranking));
    uint32_t to = rank_of(sched, account);
    memmove(sched->ranking + to + 1, sched->ranking + to,
            (sched->ranking_count++ - to) * sizeof(*sched->ranking));
    sched->ranking[to] = account;
}

void order_rank(struct acre_sched *sched, uint64_t now_ms) {
    bool is_old = now_ms < sched->ranked_ms || now_ms - sched->ranked_ms >= RANK_EVERY_MS;
    if (sched->policy.kind != ACRE_POLICY_FAIR_SHARE || !is_old) {
        return;
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < sched->ranking_count; i++) {
        uint32_t account = sched->ranking[i];
        struct owner *owner = &sched->owners[account];
        owner->is_ranked = owner->order.root != TREE_NONE;
        if (!owner->is_ranked) {
            continue;
        }
        compute_level(sched, account, now_ms);
        uint32_t at = kept++;
        while (at > 0 && goes_before(sched, account, sched->ranking[at - 1])) {
            sched->ranking[at] = sched->ranking[at - 1];
            at--;
        }
        sched->ranking[at] = account;
    }
    sched->ranking_count = kept;
    sched->ranked_ms = now_ms;
}

static void *changeable(const struct acre_sched *sched) {
    return (void *)(uintptr_t)sched; /* trees are only read here; their links are not const */
}

static uint32_t size_of(const struct acre_sched *sched, const struct tree *tree) {
    return tree_size(&order_by_key, changeable(sched), tree);
}

bool order_has(const struct job *job) {
    return job->stand == STAND_LINE || job->stand == STAND_PROMISED;
}

uint32_t order_ahead(const struct acre_sched *sched, const struct job *job) {
    const struct tree *tree = &sched->order;
    uint32_t ahead = 0;
    if (sched->policy.kind == ACRE_POLICY_FAIR_SHARE) {
        tree = &sched->owners[job->account].order;
        for (uint32_t i = 0; i < sched->ranking_count && sched->ranking[i] != job->account; i++) {
            ahead += size_of(sched, &sched->owners[sched->ranking[i]].order);
        }
    }
    return ahead + tree_rank(&order_by_key, changeable(sched), tree, job_index(sched, job));
}

uint32_t order_length(const struct acre_sched *sched) {
    uint32_t length = size_of(sched, &sched->order);
    for (uint32_t i = 0; i < sched->ranking_count; i++) {
        length += size_of(sched, &sched->owners[sched->ranking[i]].order);
    }
    return length;
}

const struct job *order_walk(const struct acre_sched *sched, uint64_t *cursor) {
    if (sched->policy.kind != ACRE_POLICY_FAIR_SHARE) {
        uint32_t at = tree_at(&order_by_key, changeable(sched), &sched->order, (uint32_t)*cursor);
        *cursor += at != TREE_NONE;
        return at != TREE_NONE ? &sched->jobs[at] : NULL;
    }
    /* The account's place in the ranking above, the job's place in its order below. */
    uint32_t rank = (uint32_t)(*cursor >> 32);
    uint32_t position = (uint32_t)*cursor;
    for (; rank < sched->ranking_count; rank++, position = 0) {
        const struct tree *tree = &sched->owners[sched->ranking[rank]].order;
        uint32_t at = tree_at(&order_by_key, changeable(sched), tree, position);
        if (at != TREE_NONE) {
            *cursor = (uint64_t)rank << 32 | (position + 1);
            return &sched->jobs[at];
        }
    }
    return NULL;
}
