/* check.c - every invariant of records.h, computed again from the jobs alone.
 *
 * Counts, sums and memberships are taken from a walk over all records and compared with what the
 * scheduler keeps; nothing is shared with the code that keeps it but the records' own fields. Slow
 * on purpose: it sorts and walks everything. */
#include "sched/burden.h"
#include "sched/inner.h"

#include <stdlib.h>
#include <string.h>

struct seen {
    uint8_t in_order, in_line; /* how many trees it was met in */
    uint8_t in_list;
};

struct checking {
    const struct acre_sched *sched;
    struct seen *seen; /* by job */
    uint32_t previous; /* member met before; NONE: the first */
    const char *where;
    int r;
    struct acre_error *err;
};

static int wrong(struct checking *checking, uint64_t job, const char *what) {
    if (checking->r == 0) {
        checking->r =
            acre_fail(checking->err, ACRE_EINTERNAL, "job %llu: %s%s%s", (unsigned long long)job,
                      what, checking->where[0] != 0 ? " in " : "", checking->where);
    }
    return checking->r;
}

/* Walk a tree by its links: sizes, order and every member once. */
static uint32_t walk_tree(struct checking *checking, uint32_t at, bool by_id, bool line_links) {
    const struct acre_sched *sched = checking->sched;
    if (at == TREE_NONE || checking->r != 0) {
        return 0;
    }
    if (at >= sched->job_limit || sched->jobs[at].id == 0) {
        wrong(checking, 0, "a record that is free");
        return 0;
    }
    const struct job *job = &sched->jobs[at];
    const struct tree_links *links = line_links ? &job->in_line : &job->in_order;
    uint32_t count = walk_tree(checking, links->left, by_id, line_links);
    if (checking->previous != NONE) {
        const struct job *last = &sched->jobs[checking->previous];
        bool ordered = by_id || last->key == job->key ? last->id < job->id : last->key < job->key;
        if (!ordered) {
            wrong(checking, job->id, "out of order");
        }
    }
    checking->previous = at;
    uint8_t *met = line_links ? &checking->seen[at].in_line : &checking->seen[at].in_order;
    ++*met;
    count += 1 + walk_tree(checking, links->right, by_id, line_links);
    if (checking->r == 0 && links->size != count) {
        wrong(checking, job->id, "a wrong size");
    }
    return count;
}

static uint32_t check_tree(struct checking *checking, const struct tree *tree, bool by_id,
                           bool line_links, const char *where) {
    checking->previous = NONE;
    checking->where = where;
    uint32_t count = walk_tree(checking, tree->root, by_id, line_links);
    checking->where = "";
    return count;
}

static void check_lines(struct checking *checking) {
    const struct acre_sched *sched = checking->sched;
    uint32_t *waiting = acre_calloc(ACRE_MAX(sched->class_limit, 1U), sizeof(*waiting));
    for (uint32_t i = 0; i < sched->line_limit && checking->r == 0; i++) {
        const struct line *line = &sched->lines[i];
        if (line->account == NONE) {
            continue;
        }
        uint32_t count = check_tree(checking, &line->jobs, false, true, "a line");
        waiting[line->class] += count;
        uint64_t row = (size_t)line->account * sched->open_words + line->class / 64;
        bool bit = (sched->open_lines[row] >> line->class % 64 & 1) != 0;
        if (checking->r == 0 &&
            (count == 0 || bit != (line->blocker == NONE) || sched->jobs[line->first].line != i ||
             sched->jobs[line->first].key != line->first_key ||
             sched->jobs[line->first].id != line->first_id)) {
            wrong(checking, line->first_id, "a line that is not as its jobs are");
        }
    }
    for (uint32_t i = 0; i < sched->class_limit && checking->r == 0; i++) {
        const struct job_class *class = &sched->classes[i];
        if (class->jobs > 0 && class->waiting != waiting[i]) {
            wrong(checking, 0, "a class that counts its jobs wrongly");
        }
    }
    free(waiting);
}

/* The lines of a class, in the order they were filed in; all that are not parked. */
static void check_class(struct checking *checking, uint32_t at) {
    const struct acre_sched *sched = checking->sched;
    void *trees = (void *)(uintptr_t)sched; /* only read */
    const struct tree *tree = &sched->classes[at].lines;
    uint32_t shown = 0;
    for (uint32_t i = 0; i < sched->line_limit; i++) {
        const struct line *line = &sched->lines[i];
        shown += line->account != NONE && line->class == at && line->blocker == NONE;
    }
    uint32_t last = TREE_NONE;
    for (uint32_t rank = 0; rank < shown; rank++) {
        uint32_t next = tree_at(&lines_by_first, trees, tree, rank);
        if (next == TREE_NONE ||
            (last != TREE_NONE && !lines_by_first.is_before(sched, last, next))) {
            wrong(checking, 0, "a class whose lines are not in order");
            return;
        }
        last = next;
    }
    if (tree_size(&lines_by_first, trees, tree) != shown) {
        wrong(checking, 0, "a class with lines that are not its own");
    }
}

static void check_trees(struct checking *checking) {
    const struct acre_sched *sched = checking->sched;
    check_tree(checking, &sched->order, false, false, "the order");
    for (uint32_t i = 0; i < sched->owner_count; i++) {
        check_tree(checking, &sched->owners[i].order, false, false, "an account's order");
    }
    check_tree(checking, &sched->aside, true, false, "those aside");
    check_tree(checking, &sched->holding, true, false, "those holding");
    check_tree(checking, &sched->ends, false, true, "the ends");
    check_lines(checking);
    for (uint32_t i = 0; i < sched->class_limit && checking->r == 0; i++) {
        if (sched->classes[i].jobs > 0) {
            check_class(checking, i);
        }
    }
    for (uint32_t i = 0; i < sched->array_limit; i++) {
        if (sched->arrays[i].id != 0) {
            check_tree(checking, &sched->arrays[i].waiting, false, true, "an array");
        }
    }
    for (size_t p = 0; p < ACRE_COUNT(sched->newest); p++) {
        uint32_t newer = NONE;
        for (uint32_t at = sched->newest[p]; at != NONE && checking->r == 0;
             newer = at, at = job_run(sched, &sched->jobs[at])->older) {
            checking->seen[at].in_list++;
            if (sched->jobs[at].priority != p || job_run(sched, &sched->jobs[at])->newer != newer) {
                wrong(checking, sched->jobs[at].id, "wrong in the list of its priority");
            }
        }
    }
}

/* Where a job is must be where its state and fields say it is. */
static void check_job(struct checking *checking, const struct job *job, const struct seen *seen) {
    const struct acre_sched *sched = checking->sched;
    bool holds = acre_job_state_holds((enum acre_job_state)job->state);
    bool live = acre_job_state_is_live((enum acre_job_state)job->state);
    bool in_line = job->stand == STAND_LINE || job->stand == STAND_ARRAY || holds;
    const char *what = NULL;
    if (holds != (job->stand == STAND_HOLDING) || live == (job->stand == STAND_ENDED)) {
        what = "a state that is not where it stands";
    } else if (seen->in_order != live || seen->in_line != in_line || seen->in_list != holds) {
        what = "not in exactly one of each";
    } else if ((job->line != NONE) != (job->stand == STAND_LINE)) {
        what = "a line it does not stand in";
    } else if (job->held != (job->stand == STAND_HELD) && live && !holds) {
        what = "held and not aside, or the other way round";
    } else if (job->needs != NONE && job->stand != STAND_DEPENDENCY && job->stand != STAND_HELD) {
        what = "dependencies that are open";
    } else if ((promise_of(sched, job->id) != NULL) != (job->stand == STAND_PROMISED)) {
        what = "a promise that is not its own";
    } else if (job->stand == STAND_LINE && (sched->lines[job->line].class != job->class ||
                                            sched->lines[job->line].account != job->account)) {
        what = "a line that is not its own";
    }
    if (what != NULL) {
        wrong(checking, job->id, what);
        return;
    }
    struct acre_allocation held;
    const struct run *run = job_run(sched, job);
    bool in_ledger = run != NULL && run->allocation != 0 &&
                     acre_ledger_find(sched->ledger, run->allocation, &held) &&
                     held.owner == job->id;
    bool is_over = holds && sched->classes[job->class].request.reservation != 0;
    if (in_ledger != holds && !is_over) { /* a reservation may end before those drawn on it */
        wrong(checking, job->id, "not in the ledger as its state says");
    }
}

static void count_job(const struct job *job, struct acre_sched_counts *counts) {
    if (job->stand == STAND_ENDED) {
        return;
    }
    counts->jobs[job->state]++;
    counts->held += job->stand == STAND_HELD;
    counts->waiting_dependency += job->stand == STAND_DEPENDENCY || job->stand == STAND_ARRAY;
    counts->waiting_begin += job->stand == STAND_BEGIN;
    counts->waiting_retry += job->stand == STAND_RETRY;
    counts->eligible += job->stand == STAND_LINE || job->stand == STAND_PROMISED;
}

static void check_arrays(struct checking *checking) {
    const struct acre_sched *sched = checking->sched;
    struct array *sums = acre_calloc(ACRE_MAX(sched->array_limit, 1U), sizeof(*sums));
    for (uint32_t i = 0; i < sched->job_limit; i++) {
        const struct job *job = &sched->jobs[i];
        if (job->id != 0 && job->array != NONE) {
            sums[job->array].members++;
            sums[job->array].open += job->stand == STAND_LINE || job->stand == STAND_PROMISED ||
                                     job->stand == STAND_HOLDING;
        }
    }
    for (uint32_t i = 0; i < sched->array_limit; i++) {
        const struct array *array = &sched->arrays[i];
        if (array->id != 0 && (array->members != sums[i].members || array->open != sums[i].open)) {
            wrong(checking, array->id, "an array that counts its members wrongly");
        }
    }
    free(sums);
}

static void check_accounts(struct checking *checking) {
    const struct acre_sched *sched = checking->sched;
    struct account_summary *sums = acre_calloc(ACRE_MAX(sched->owner_count, 1U), sizeof(*sums));
    for (uint32_t i = 0; i < sched->job_limit; i++) {
        const struct job *job = &sched->jobs[i];
        if (job->id == 0 || job->stand == STAND_ENDED) {
            continue;
        }
        bool holds = job->stand == STAND_HOLDING;
        sums[job->account].running += holds;
        sums[job->account].queued += !holds;
        sums[job->account].held_milli += holds ? job_run(sched, job)->load.milli : 0;
    }
    for (uint32_t i = 0; i < sched->owner_count; i++) {
        struct account_summary now;
        accounts_get(sched->accounts, i, 0, &now);
        if (now.running != sums[i].running || now.queued != sums[i].queued ||
            now.held_milli != sums[i].held_milli ||
            sched->owners[i].held_milli != sums[i].held_milli) {
            wrong(checking, 0, "an account that counts its jobs wrongly");
        }
    }
    free(sums);
}

static int compare_keys(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Every name of every user once: user << 32 | name, in order. */
static uint64_t *list_names(const struct acre_sched *sched, uint32_t *ret_count) {
    uint64_t *keys = acre_calloc(ACRE_MAX(sched->job_limit, 1U), sizeof(*keys));
    uint32_t count = 0, kept = 0;
    for (uint32_t i = 0; i < sched->job_limit; i++) {
        const struct job *job = &sched->jobs[i];
        if (job->id != 0 && job->name != 0) {
            keys[count++] = (uint64_t)job->user << 32 | job->name;
        }
    }
    qsort(keys, count, sizeof(*keys), compare_keys);
    for (uint32_t i = 0; i < count; i++) {
        if (i == 0 || keys[i] != keys[i - 1]) {
            keys[kept++] = keys[i];
        }
    }
    *ret_count = kept;
    return keys;
}

static struct acre_burden sum_burden(const struct acre_sched *sched, uint32_t user,
                                     const uint64_t *names, uint32_t name_count) {
    struct acre_burden sum = {0};
    for (uint32_t i = 0; i < sched->job_limit; i++) {
        const struct job *job = &sched->jobs[i];
        if (job->id != 0 && job->user == user) {
            sum.queued += job->stand < STAND_HOLDING;
            sum.bytes += job->array == NONE ? job->bytes : 0;
        }
    }
    for (uint32_t i = 0; i < sched->array_limit; i++) {
        const struct array *array = &sched->arrays[i];
        sum.bytes += array->id != 0 && array->user == user ? array->bytes : 0;
    }
    for (uint32_t i = 0; i < name_count; i++) {
        sum.names += names[i] >> 32 == user;
    }
    return sum;
}

static void check_burdens(struct checking *checking) {
    const struct acre_sched *sched = checking->sched;
    uint32_t name_count;
    uint64_t *names = list_names(sched, &name_count);
    for (uint32_t i = 0; i < sched->owner_count; i++) {
        struct account_summary account;
        struct acre_burden kept;
        accounts_get(sched->accounts, i, 0, &account);
        acre_sched_burden(sched, account.user, &kept);
        struct acre_burden sum = sum_burden(sched, account.user, names, name_count);
        if (kept.queued != sum.queued || kept.bytes != sum.bytes || kept.names != sum.names) {
            wrong(checking, 0, "a user whose burden is not that of the jobs");
        }
    }
    free(names);
}

int acre_sched_check(const struct acre_sched *sched, struct acre_error *err) {
    struct checking checking = {.sched = sched, .where = "", .err = err};
    checking.seen = acre_calloc(ACRE_MAX(sched->job_limit, 1U), sizeof(*checking.seen));
    check_trees(&checking);
    struct acre_sched_counts counts = {0};
    for (uint32_t i = 0; i < sched->job_limit && checking.r == 0; i++) {
        const struct job *job = &sched->jobs[i];
        if (job->id != 0) {
            check_job(&checking, job, &checking.seen[i]);
            count_job(job, &counts);
            if (job_find(sched, job->id) != job) {
                wrong(&checking, job->id, "not found by its id");
            }
        }
    }
    if (checking.r == 0 && memcmp(&counts, &sched->counts, sizeof(counts)) != 0) {
        wrong(&checking, 0, "counts that differ from the jobs");
    }
    check_arrays(&checking);
    check_accounts(&checking);
    check_burdens(&checking);
    free(checking.seen);
    return checking.r;
}
